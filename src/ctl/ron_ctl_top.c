
/*
 * ronctl top: how a server is, again and again.
 *
 * A sample is what GET /readyz and GET /metrics say at one moment.  Rates and
 * quantiles are of what came between two samples, so there are none before
 * the second one.  A counter that fell belongs to a server that began anew,
 * and counts from 0.
 *
 * On a terminal the screen is drawn over and over, and given back as it was;
 * elsewhere there is a block of lines, or one JSON object, an interval.
 */

#include "ron_ctl.h"
#include "ron_ctl_http.h"
#include "ron_ctl_top.h"
#include "ron_port.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>


#define TOP_PARTS       2
#define TOP_TIMEOUT_US  5000000
#define TOP_SECOND_US   1000000


typedef struct {
    const ron_ctl_args_t  *args;
    const char            *url;
    ron_buf_t              request[TOP_PARTS];
    unsigned               part;
    bool                   live;        /* stdout is a terminal */
    bool                   seen;        /* `was` is a sample */
    ron_top_sample_t       now;
    ron_top_sample_t       was;
    char                   trouble[256];
} top_t;


static int top_run(top_t *t, uint64_t interval_us, bool once);
static int top_failed(top_t *t, bool once);
static bool top_wait(const top_t *t, uint64_t until_us);
static bool top_sample(top_t *t);
static bool top_request(void *ctx, unsigned connection, ron_str_t *bytes);
static bool top_answer(void *ctx, unsigned connection,
    const ron_http_answer_t *a);
static bool top_tick(void *ctx, uint64_t now_us);
static uint64_t top_grown(uint64_t now, uint64_t was);
static uint64_t top_count(const ron_top_sample_t *s, ron_top_value_t v);
static uint64_t top_rate(const top_t *t, ron_top_value_t v);
static uint64_t top_per_commit_10(const top_t *t);
static uint64_t top_row_rate(const top_t *t, ron_top_table_id_t id,
    const ron_top_row_t *row);
static uint64_t top_quantile(const top_t *t, ron_top_hist_id_t id,
    unsigned percent);
static void top_text(const top_t *t, ron_buf_t *out);
static void top_text_tables(const top_t *t, ron_buf_t *out);
static const char *top_time(uint64_t us, char text[32]);
static const char *top_figure(uint64_t v);
static void top_json(const top_t *t, ron_buf_t *out);
static void top_json_number(ron_buf_t *out, const char *name, uint64_t v);
static void top_json_tables(const top_t *t, ron_buf_t *out);
static void top_show(const top_t *t);
static void top_screen_begin(void);
static void top_screen_end(void);
static void top_draw(const ron_buf_t *text);


static const char *const  top_hists[RON_TOP_HISTS] = {
    [RON_TOP_COMMIT] = "commit",
    [RON_TOP_WALLET] = "wallet"
};

/* What a terminal was before, while it is ours. */
static struct termios  top_termios;
static bool            top_typed;       /* stdin is a terminal, too */
static bool            top_screen;


int
ron_ctl_top(ron_ctl_args_t *args)
{
    int        rc;
    top_t     *t;
    ron_str_t  host;
    uint64_t   interval_us;

    static const char *const  paths[TOP_PARTS] = { "/readyz", "/metrics" };

    rc = ron_ctl_time(args, "interval", TOP_SECOND_US, &interval_us);

    if (rc != RON_EXIT_OK) {
        return rc;
    }

    if (interval_us < TOP_SECOND_US / 10) {
        return ron_ctl_fail(args, RON_EXIT_USAGE,
                            "--interval must be at least 100ms");
    }

    t = calloc(1, sizeof(top_t));
    if (t == NULL) {
        return ron_ctl_failed(args, RON_ENOMEM, NULL);
    }

    t->args = args;
    t->url = ron_ctl_value(args, "url");
    t->url = t->url != NULL ? t->url : "http://127.0.0.1:8080";
    t->live = !args->json && ron_ctl_value(args, "once") == NULL
              && isatty(STDOUT_FILENO);

    if (!ron_http_host(t->url, &host)) {
        rc = ron_ctl_fail(args, RON_EXIT_USAGE,
                          "\"%s\" is not http://HOST[:PORT]", t->url);

    } else {
        for (unsigned i = 0; i < TOP_PARTS; i++) {
            ron_buf_init(&t->request[i], 0);
            ron_buf_printf(&t->request[i], "GET %s HTTP/1.1\r\nHost: %.*s\r\n"
                           "\r\n", paths[i], (int) host.len,
                           (const char *) host.data);
        }

        rc = top_run(t, interval_us, ron_ctl_value(args, "once") != NULL);
        top_screen_end();

        for (unsigned i = 0; i < TOP_PARTS; i++) {
            ron_buf_free(&t->request[i]);
        }
    }

    free(t);

    return rc;
}


static int
top_run(top_t *t, uint64_t interval_us, bool once)
{
    int       rc;
    uint64_t  begin_us;

    for ( ;; ) {
        begin_us = ron_clock_mono_us();

        if (top_sample(t)) {

            if (t->live && !top_screen) {
                top_screen_begin();
            }

            if (t->live || t->seen) {
                top_show(t);

                if (once) {
                    return RON_EXIT_OK;
                }
            }

            t->was = t->now;
            t->seen = true;

        } else if (!ron_ctl_interrupted()) {
            rc = top_failed(t, once);

            if (rc != RON_EXIT_OK) {
                return rc;
            }
        }

        if (!top_wait(t, begin_us + interval_us)) {
            return ron_ctl_interrupted() ? RON_EXIT_INT : RON_EXIT_OK;
        }
    }
}


/* Who has been there may come back; who has not is somewhere else. */

static int
top_failed(top_t *t, bool once)
{
    ron_buf_t  out;

    if (once || !t->seen) {
        top_screen_end();
        return ron_ctl_fail(t->args, RON_EXIT_IO, "%s: %s", t->url,
                            t->trouble);
    }

    ron_buf_init(&out, 0);

    if (t->args->json) {
        ron_buf_printf(&out, "{\"ok\":false,\"error\":\"no answer\"}\n");
        ron_ctl_print(&out);

    } else {
        ron_buf_printf(&out, "%s: no answer: %s\n", t->url, t->trouble);

        if (t->live) {
            top_draw(&out);

        } else {
            ron_ctl_print(&out);
        }
    }

    ron_buf_free(&out);

    return RON_EXIT_OK;
}


/* False: it is the end. */

static bool
top_wait(const top_t *t, uint64_t until_us)
{
    char           c;
    uint64_t       now_us;
    struct pollfd  pfd;

    for ( ;; ) {
        now_us = ron_clock_mono_us();

        if (ron_ctl_interrupted()) {
            return false;
        }

        if (now_us >= until_us) {
            return true;
        }

        pfd = (struct pollfd) { t->live && top_typed ? STDIN_FILENO : -1,
                                POLLIN, 0 };

        if (poll(&pfd, 1, (int) ron_min((until_us - now_us) / 1000 + 1,
                                        UINT64_C(100))) > 0
            && (read(STDIN_FILENO, &c, 1) != 1 || c == 'q'))
        {
            return false;
        }
    }
}


/* ---- a sample ----------------------------------------------------------- */

static bool
top_sample(top_t *t)
{
    ron_http_conf_t  conf;
    ron_http_stat_t  st;

    memset(&t->now, 0, sizeof(ron_top_sample_t));
    memset(&conf, 0, sizeof(ron_http_conf_t));
    t->trouble[0] = '\0';
    t->part = 0;

    conf.url = t->url;
    conf.connections = 1;
    conf.timeout_us = TOP_TIMEOUT_US;
    conf.request = top_request;
    conf.answer = top_answer;
    conf.tick = top_tick;
    conf.ctx = t;

    if (ron_http_run(&conf, &st) != RON_OK || !t->now.metrics) {
        if (t->trouble[0] == '\0') {
            (void) snprintf(t->trouble, sizeof(t->trouble), "%s",
                            st.error != NULL ? st.error : "it is silent");
        }

        return false;
    }

    return true;
}


static bool
top_request(void *ctx, unsigned connection, ron_str_t *bytes)
{
    top_t *t = ctx;

    (void) connection;

    if (t->part == TOP_PARTS) {
        return false;
    }

    *bytes = ron_buf_str(&t->request[t->part]);

    return true;
}


static bool
top_answer(void *ctx, unsigned connection, const ron_http_answer_t *a)
{
    top_t *t = ctx;

    (void) connection;

    if (t->part++ == 0) {
        t->now.ready = a->status == 200;
        ron_top_readyz(&t->now, a->body);

    } else if (a->status == 200) {
        t->now.at_us = a->now_us;
        ron_top_metrics(&t->now, a->body);

        if (!t->now.metrics) {
            (void) snprintf(t->trouble, sizeof(t->trouble),
                            "/metrics has no \"ledger_seq\"");
        }

    } else {
        (void) snprintf(t->trouble, sizeof(t->trouble),
                        "/metrics is %u: is there a location with "
                        "ron_metrics?", a->status);
    }

    return true;
}


static bool
top_tick(void *ctx, uint64_t now_us)
{
    (void) ctx;
    (void) now_us;

    return !ron_ctl_interrupted();
}


/* ---- figures; RON_TOP_NONE is one that there is not --------------------- */

static uint64_t
top_grown(uint64_t now, uint64_t was)
{
    return now >= was ? now - was : now;
}


static uint64_t
top_count(const ron_top_sample_t *s, ron_top_value_t v)
{
    return s->value[v] / 1000000;
}


static uint64_t
top_rate(const top_t *t, ron_top_value_t v)
{
    return !t->seen ? RON_TOP_NONE
           : ron_ctl_per_second(top_grown(top_count(&t->now, v),
                                          top_count(&t->was, v)),
                                t->now.at_us - t->was.at_us);
}


static uint64_t
top_per_commit_10(const top_t *t)
{
    uint64_t  commits;

    commits = top_grown(top_count(&t->now, RON_TOP_COMMITS),
                        top_count(&t->was, RON_TOP_COMMITS));

    return !t->seen || commits == 0 ? RON_TOP_NONE
           : 10 * top_grown(top_count(&t->now, RON_TOP_ENTRIES),
                            top_count(&t->was, RON_TOP_ENTRIES)) / commits;
}


static uint64_t
top_row_rate(const top_t *t, ron_top_table_id_t id, const ron_top_row_t *row)
{
    const ron_top_row_t  *was;

    if (!t->seen) {
        return RON_TOP_NONE;
    }

    was = ron_top_find(&t->was.table[id], row);

    return ron_ctl_per_second(top_grown(row->value, was ? was->value : 0),
                              t->now.at_us - t->was.at_us);
}


/*
 * As Prometheus does: evenly spread within its bucket, and the last bound for
 * what is beyond it.
 */

static uint64_t
top_quantile(const top_t *t, ron_top_hist_id_t id, unsigned percent)
{
    uint64_t             total, want, below, upto, low_us, high_us;
    const ron_top_hist_t    *now, *was;

    now = &t->now.hist[id];
    was = &t->was.hist[id];
    total = top_grown(ron_top_bucket(now, RON_TOP_NONE),
                      ron_top_bucket(was, RON_TOP_NONE));

    if (!t->seen || total == 0) {
        return RON_TOP_NONE;
    }

    want = (total * percent + 99) / 100;
    below = 0;
    low_us = 0;

    for (unsigned i = 0; i < now->n; i++) {
        high_us = now->at[i].le_us;
        upto = top_grown(now->at[i].n, ron_top_bucket(was, high_us));

        if (upto >= want && high_us != RON_TOP_NONE) {
            return low_us + (high_us - low_us) * (want - below)
                            / ron_max(upto - below, UINT64_C(1));
        }

        if (high_us != RON_TOP_NONE) {
            low_us = high_us;
            below = upto;
        }
    }

    return low_us;
}


/* ---- for people --------------------------------------------------------- */

static void
top_show(const top_t *t)
{
    ron_buf_t  out;

    ron_buf_init(&out, 0);

    if (t->args->json) {
        top_json(t, &out);

    } else {
        top_text(t, &out);
    }

    if (t->live) {
        top_draw(&out);

    } else {
        ron_ctl_print(&out);
    }

    ron_buf_free(&out);
}


static void
top_text(const top_t *t, ron_buf_t *out)
{
    char       clock[32], a[32], b[32];
    time_t     now;
    uint64_t   per_10;
    struct tm  tm;

    now = (time_t) (ron_clock_wall_ms() / 1000);
    (void) strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));

    ron_buf_printf(out, "%s  %s  %s, %s\n\n", clock, t->url, t->now.state,
                   t->now.ready ? "ready" : "not ready");

    ron_buf_printf(out, "payments/s  %10s    commits/s  %10s\n",
                   top_figure(top_rate(t, RON_TOP_PAYMENTS)),
                   top_figure(top_rate(t, RON_TOP_COMMITS)));

    per_10 = top_per_commit_10(t);
    (void) snprintf(a, sizeof(a), "-");

    if (per_10 != RON_TOP_NONE) {
        (void) snprintf(a, sizeof(a), "%s.%u", ron_ctl_thousands(per_10 / 10),
                        (unsigned) (per_10 % 10));
    }

    ron_buf_printf(out, "entries/s   %10s    per commit %10s\n\n",
                   top_figure(top_rate(t, RON_TOP_ENTRIES)), a);

    ron_buf_printf(out, "seq         %10s    backlog    %10s\n",
                   top_figure(top_count(&t->now, RON_TOP_SEQ)),
                   top_figure(top_count(&t->now, RON_TOP_BACKLOG)));
    ron_buf_printf(out, "history lag %10s    append for %10s\n",
                   top_figure(top_count(&t->now, RON_TOP_HISTORY)),
                   top_time(t->now.value[RON_TOP_LAG], a));
    ron_buf_printf(out, "gauges are  %10s old\n\n",
                   top_time(t->now.value[RON_TOP_AGE], a));

    ron_buf_printf(out, "%-12s%10s%12s\n", "latency", "p50", "p99");

    for (unsigned i = 0; i < RON_TOP_HISTS; i++) {
        ron_buf_printf(out, "%-12s%10s%12s\n", top_hists[i],
                       top_time(top_quantile(t, i, 50), a),
                       top_time(top_quantile(t, i, 99), b));
    }

    top_text_tables(t, out);
    ron_buf_printf(out, "\n");
}


static void
top_text_tables(const top_t *t, ron_buf_t *out)
{
    char              name[2 * RON_TOP_NAME];
    bool              any;
    const ron_top_row_t  *row;

    ron_buf_printf(out, "\n%-24s%10s%12s\n", "queue", "depth", "capacity");

    for (unsigned i = 0; i < t->now.table[RON_TOP_QUEUES].n; i++) {
        row = &t->now.table[RON_TOP_QUEUES].row[i];

        if (row->capacity != 0) {
            (void) snprintf(name, sizeof(name), "%s %s", row->service,
                            row->name);
            ron_buf_printf(out, "%-24s%10s%12s\n", name,
                           ron_ctl_thousands(row->value),
                           ron_ctl_thousands(row->capacity));
        }
    }

    any = false;

    for (unsigned i = 0; i < t->now.table[RON_TOP_REFUSED].n; i++) {
        row = &t->now.table[RON_TOP_REFUSED].row[i];

        if (row->value != 0) {
            if (!any) {
                ron_buf_printf(out, "\n%-24s%10s%12s\n", "refused", "/s",
                               "all");
                any = true;
            }

            (void) snprintf(name, sizeof(name), "%s %s", row->service,
                            row->name);
            ron_buf_printf(out, "%-24s%10s%12s\n", name,
                           top_figure(top_row_rate(t, RON_TOP_REFUSED, row)),
                           ron_ctl_thousands(row->value));
        }
    }

    ron_buf_printf(out, "\nrestarts:");

    for (unsigned i = 0; i < t->now.table[RON_TOP_RESTARTS].n; i++) {
        row = &t->now.table[RON_TOP_RESTARTS].row[i];

        if (row->value != 0 || (strcmp(row->service, "ledger") == 0
                                && strcmp(row->name, "helper") == 0))
        {
            ron_buf_printf(out, "  %s %s %s", row->service, row->name,
                           ron_ctl_thousands(row->value));
        }
    }

    ron_buf_printf(out, "\n");
}


static const char *
top_time(uint64_t us, char text[32])
{
    if (us == RON_TOP_NONE) {
        (void) snprintf(text, 32, "-");

    } else if (us < 1000) {
        (void) snprintf(text, 32, "%u us", (unsigned) us);

    } else if (us < 10 * UINT64_C(1000000)) {
        (void) snprintf(text, 32, "%u.%u ms", (unsigned) (us / 1000),
                        (unsigned) (us % 1000 / 100));

    } else {
        (void) snprintf(text, 32, "%llu s",
                        (unsigned long long) (us / 1000000));
    }

    return text;
}


static const char *
top_figure(uint64_t v)
{
    return v == RON_TOP_NONE ? "-" : ron_ctl_thousands(v);
}


/* ---- for programs ------------------------------------------------------- */

static void
top_json(const top_t *t, ron_buf_t *out)
{
    uint64_t  per_10;
    char      name[RON_TOP_NAME];

    ron_buf_printf(out, "{\"ok\":true,\"ts_ms\":%llu,\"interval_ms\":%llu,"
                   "\"state\":\"%s\",\"ready\":%s",
                   (unsigned long long) ron_clock_wall_ms(),
                   (unsigned long long) ((t->now.at_us - t->was.at_us) / 1000),
                   t->now.state, t->now.ready ? "true" : "false");

    top_json_number(out, "seq", top_count(&t->now, RON_TOP_SEQ));
    top_json_number(out, "payments_per_s", top_rate(t, RON_TOP_PAYMENTS));
    top_json_number(out, "commits_per_s", top_rate(t, RON_TOP_COMMITS));
    top_json_number(out, "entries_per_s", top_rate(t, RON_TOP_ENTRIES));

    per_10 = top_per_commit_10(t);

    if (per_10 == RON_TOP_NONE) {
        top_json_number(out, "entries_per_commit", RON_TOP_NONE);

    } else {
        ron_buf_printf(out, ",\"entries_per_commit\":%llu.%u",
                       (unsigned long long) per_10 / 10,
                       (unsigned) (per_10 % 10));
    }

    top_json_number(out, "committer_lag_us", t->now.value[RON_TOP_LAG]);
    top_json_number(out, "history_lag", top_count(&t->now, RON_TOP_HISTORY));
    top_json_number(out, "backlog", top_count(&t->now, RON_TOP_BACKLOG));
    top_json_number(out, "sample_age_us", t->now.value[RON_TOP_AGE]);

    for (unsigned i = 0; i < RON_TOP_HISTS; i++) {
        (void) snprintf(name, sizeof(name), "%s_p50_us", top_hists[i]);
        top_json_number(out, name, top_quantile(t, i, 50));
        (void) snprintf(name, sizeof(name), "%s_p99_us", top_hists[i]);
        top_json_number(out, name, top_quantile(t, i, 99));
    }

    top_json_tables(t, out);
    ron_buf_printf(out, "}\n");
}


static void
top_json_number(ron_buf_t *out, const char *name, uint64_t v)
{
    if (v == RON_TOP_NONE) {
        ron_buf_printf(out, ",\"%s\":null", name);

    } else {
        ron_buf_printf(out, ",\"%s\":%llu", name, (unsigned long long) v);
    }
}


static void
top_json_tables(const top_t *t, ron_buf_t *out)
{
    unsigned          n;
    const ron_top_row_t  *row;

    static const struct {
        const char  *name;
        const char  *key;
        const char  *value;
    } tables[RON_TOP_TABLES] = {
        [RON_TOP_QUEUES]   = { "queues", "queue", "depth" },
        [RON_TOP_REFUSED]  = { "refusals", "reason", "total" },
        [RON_TOP_RESTARTS] = { "restarts", "task", "total" }
    };

    for (unsigned id = 0; id < RON_TOP_TABLES; id++) {
        ron_buf_printf(out, ",\"%s\":[", tables[id].name);
        n = 0;

        for (unsigned i = 0; i < t->now.table[id].n; i++) {
            row = &t->now.table[id].row[i];

            if ((id == RON_TOP_QUEUES && row->capacity == 0)
                || (id == RON_TOP_REFUSED && row->value == 0)
                || (id == RON_TOP_RESTARTS && row->value == 0
                    && strcmp(row->service, "ledger") != 0))
            {
                continue;
            }

            ron_buf_printf(out, "%s{\"service\":\"%s\",\"%s\":\"%s\"",
                           n++ ? "," : "", row->service, tables[id].key,
                           row->name);
            top_json_number(out, tables[id].value, row->value);

            if (id == RON_TOP_QUEUES) {
                top_json_number(out, "capacity", row->capacity);

            } else if (id == RON_TOP_REFUSED) {
                top_json_number(out, "per_s", top_row_rate(t, id, row));
            }

            ron_buf_printf(out, "}");
        }

        ron_buf_printf(out, "]");
    }
}


/* ---- the terminal ------------------------------------------------------- */

/* The other screen, no cursor, and keys as they are pressed. */

static void
top_screen_begin(void)
{
    struct termios  tio;

    top_typed = tcgetattr(STDIN_FILENO, &top_termios) == 0;
    top_screen = true;
    (void) atexit(top_screen_end);

    if (top_typed) {
        tio = top_termios;
        tio.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
        (void) tcsetattr(STDIN_FILENO, TCSANOW, &tio);
    }

    /* who is stopped in it would leave it behind */

    (void) signal(SIGTSTP, SIG_IGN);

    fputs("\033[?1049h\033[?25l", stdout);
    fflush(stdout);
}


static void
top_screen_end(void)
{
    if (!top_screen) {
        return;
    }

    top_screen = false;
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);

    if (top_typed) {
        (void) tcsetattr(STDIN_FILENO, TCSANOW, &top_termios);
    }
}


/* Over what is there, as much as fits; what is left of the old is erased. */

static void
top_draw(const ron_buf_t *text)
{
    size_t          len, rest, rows, columns;
    const char     *p, *end;
    struct winsize  size;

    rows = 24;
    columns = 80;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row != 0
        && size.ws_col != 0)
    {
        rows = size.ws_row;
        columns = size.ws_col;
    }

    p = (const char *) ron_buf_str(text).data;
    rest = ron_buf_str(text).len;
    fputs("\033[H", stdout);

    while (rest != 0 && --rows != 0) {
        end = memchr(p, '\n', rest);
        len = end != NULL ? (size_t) (end - p) : rest;

        printf("%.*s\033[K\n", (int) ron_min(len, columns), p);

        len += end != NULL;
        p += len;
        rest -= len;
    }

    fputs("\033[J", stdout);
    fflush(stdout);
}
