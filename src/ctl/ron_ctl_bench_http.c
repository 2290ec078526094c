
/*
 * ronctl bench: fills accounts, puts load on a server, and says what came
 * back: rates, latencies, statuses, and how many operations the server has
 * acknowledged in all, which is what its journal must have.
 */

#include "ron_ctl.h"
#include "ron_cap.h"
#include "ron_codec.h"
#include "ron_ctl_hist.h"
#include "ron_ctl_http.h"
#include "ron_ctl_load.h"
#include "ron_ctl_replay.h"
#include "ron_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>


#define BENCH_URL              "http://127.0.0.1:8080"
#define BENCH_CONNECTIONS_MAX  10000
#define BENCH_ACCOUNTS_MAX     10000000
#define BENCH_RATE_MAX         10000000
#define BENCH_SETUP_CONNS      4
#define BENCH_RECORD_BUF       (1024 * 1024)
#define BENCH_LATE_MAX         1000000


typedef struct {
    ron_ctl_args_t    *args;
    ron_http_conf_t    http;
    ron_http_stat_t    stat;
    ron_load_t         load;
    ron_load_t         setup;
    ron_replay_t       replay;
    uint64_t           duplicates;      /* percent */
    ron_buf_t         *tokens;
    unsigned           token_n;
    uint64_t           warm_us;
    uint64_t           begin_us;        /* of what is measured */
    uint64_t           end_us;
    FILE              *record;
    const char        *record_name;

    ron_hist_t         hist;
    ron_ctl_meter_t    meter;
    uint64_t           status[RON_HTTP_STATUS_N];
    uint64_t           requests;        /* measured */
    uint64_t           ops;             /* measured, acknowledged */
    uint64_t           acked;           /* all but the setup's */
    uint64_t           setup_acked;
    uint64_t           last_seq;
    double             cpu_s;
} bench_http_t;


static int bench_options(bench_http_t *b);
static int bench_shape(bench_http_t *b, bool setup);
static int bench_tokens(bench_http_t *b);
static int bench_mint(bench_http_t *b, const char *path);
static int bench_setup(bench_http_t *b);
static bool bench_setup_request(void *ctx, unsigned connection,
    ron_str_t *bytes);
static bool bench_setup_answer(void *ctx, unsigned connection,
    const ron_http_answer_t *a);
static bool bench_setup_tick(void *ctx, uint64_t now_us);
static int bench_measure(bench_http_t *b);
static bool bench_request(void *ctx, unsigned connection, ron_str_t *bytes);
static bool bench_answer(void *ctx, unsigned connection,
    const ron_http_answer_t *a);
static void bench_lost(void *ctx, uint64_t since_us, uint64_t now_us);
static void bench_late(bench_http_t *b);
static void bench_write_record(bench_http_t *b, unsigned connection,
    ron_str_t body);
static bool bench_tick(void *ctx, uint64_t now_us);
static double bench_cpu(void);
static int bench_verdict(const bench_http_t *b);
static void bench_text(const bench_http_t *b);
static void bench_json(const bench_http_t *b, int rc);
static double bench_seconds(const bench_http_t *b);


static const struct {
    const char  *name;
    uint32_t     per_100k;
} bench_quantiles[] = {
    { "p50", 50000 },
    { "p90", 90000 },
    { "p99", 99000 },
    { "p99_9", 99900 },
};


int
ron_ctl_bench(ron_ctl_args_t *args)
{
    int            rc;
    bench_http_t  *b;

    b = calloc(1, sizeof(bench_http_t));

    if (b == NULL) {
        return ron_ctl_fail(args, RON_EXIT_IO, "no memory");
    }

    b->args = args;
    rc = bench_options(b);

    if (rc == RON_EXIT_OK) {
        rc = bench_tokens(b);
    }

    if (rc == RON_EXIT_OK && ron_ctl_value(args, "no-setup") == NULL) {
        rc = bench_setup(b);
    }

    if (rc == RON_EXIT_OK) {
        rc = bench_measure(b);
    }

    for (unsigned i = 0; i < b->token_n; i++) {
        ron_buf_free(&b->tokens[i]);
    }

    ron_replay_free(&b->replay);
    ron_load_free(&b->setup);
    ron_load_free(&b->load);
    free(b->tokens);
    free(b);

    return rc;
}


/* ---- options ------------------------------------------------------------ */

static int
bench_options(bench_http_t *b)
{
    int          rc;
    char        *end;
    uint64_t     n;
    const char  *name, *run;

    b->http.url = ron_ctl_value(b->args, "url");

    if (b->http.url == NULL) {
        b->http.url = BENCH_URL;
    }

    if (!ron_http_host(b->http.url, &b->load.host)) {
        return ron_ctl_fail(b->args, RON_EXIT_USAGE, "\"%s\" is no URL of a "
                            "server: http://host:port", b->http.url);
    }

    name = ron_ctl_value(b->args, "workload");

    if (!ron_load_find(name != NULL ? name : "transfer", &b->load.kind)) {
        return ron_ctl_fail(b->args, RON_EXIT_USAGE, "there is no workload "
                            "\"%s\": transfer issue batch ingest ndjson "
                            "balance proof", name);
    }

    run = ron_ctl_value(b->args, "run");
    (void) ron_random(&n, sizeof(n));
    b->load.key_run = n & 0xffffff;
    b->load.run = b->load.key_run;
    b->load.nonce = ron_clock_wall_ms() * 1000;

    if (run != NULL) {
        b->load.run = strtoull(run, &end, 16);

        if (strlen(run) != 6 || *end != '\0') {
            return ron_ctl_fail(b->args, RON_EXIT_USAGE, "\"%s\" is no run: "
                                "six hexadecimal digits", run);
        }
    }

    rc = ron_ctl_time(b->args, "duration", 10000000, &b->http.run_us);
    rc = rc ? rc : ron_ctl_time(b->args, "warm-up", 1000000, &b->warm_us);
    rc = rc ? rc : ron_ctl_time(b->args, "timeout", 10000000,
                              &b->http.timeout_us);

    return rc ? rc : bench_shape(b, ron_ctl_value(b->args, "no-setup")
                                    == NULL);
}


/* Numbers, and what fits together. */

static int
bench_shape(bench_http_t *b, bool setup)
{
    uint64_t                connections, ops;
    const ron_load_info_t  *info;

    info = ron_load_info(b->load.kind);
    b->load.hot = ron_ctl_value(b->args, "hot") != NULL;

    if (!ron_ctl_number(b->args, "connections", 64, &connections)
        || !ron_ctl_number(b->args, "ops", info->ops, &ops)
        || !ron_ctl_number(b->args, "accounts", 1000, &b->load.accounts)
        || !ron_ctl_number(b->args, "seqs", 0, &b->load.seqs)
        || !ron_ctl_number(b->args, "rate", 0, &b->http.rate)
        || !ron_ctl_number(b->args, "duplicates", 0, &b->duplicates))
    {
        return RON_EXIT_USAGE;
    }

    if (connections == 0 || connections > BENCH_CONNECTIONS_MAX
        || b->load.accounts < 2 || b->load.accounts > BENCH_ACCOUNTS_MAX
        || b->http.rate > BENCH_RATE_MAX)
    {
        return ron_ctl_fail(b->args, RON_EXIT_USAGE, "up to %d connections, "
                            "2 to %d accounts, up to %d requests a second",
                            BENCH_CONNECTIONS_MAX, BENCH_ACCOUNTS_MAX,
                            BENCH_RATE_MAX);
    }

    if (ops == 0 || ops > info->ops_max) {
        return ron_ctl_fail(b->args, RON_EXIT_USAGE, "a request of %s has 1 "
                            "to %u operations", info->name, info->ops_max);
    }

    if (b->load.accounts < connections
        && (b->load.kind == RON_LOAD_TRANSFER
            || b->load.kind == RON_LOAD_BATCH))
    {
        return ron_ctl_fail(b->args, RON_EXIT_USAGE, "%s needs an account for "
                            "every connection, or nonces would come out of "
                            "order: raise --accounts", info->name);
    }

    if (!setup && b->load.kind == RON_LOAD_PROOF && b->load.seqs == 0) {
        return ron_ctl_fail(b->args, RON_EXIT_USAGE,
                            "proofs without a setup need --seqs");
    }

    if (b->duplicates > 100
        || (b->duplicates > 0 && b->load.kind != RON_LOAD_TRANSFER
            && b->load.kind != RON_LOAD_ISSUE))
    {
        return ron_ctl_fail(b->args, RON_EXIT_USAGE, "--duplicates is 1 to "
                            "100 percent, of transfer or issue");
    }

    b->record_name = ron_ctl_value(b->args, "record");

    if (b->record_name != NULL
        && (info->reads || b->load.kind == RON_LOAD_NDJSON))
    {
        return ron_ctl_fail(b->args, RON_EXIT_USAGE, "answers to %s name no "
                            "entries to record", info->name);
    }

    b->load.connections = (unsigned) connections;
    b->load.ops = (unsigned) ops;
    b->http.connections = b->load.connections;

    return RON_EXIT_OK;
}


/* ---- capabilities ------------------------------------------------------- */

static int
bench_tokens(bench_http_t *b)
{
    const char  *token, *keys;

    keys = ron_ctl_value(b->args, "keys");
    token = ron_ctl_value(b->args, "token");

    if (token == NULL && keys == NULL) {
        token = getenv("RON_TOKEN");
    }

    b->tokens = calloc(b->load.connections, sizeof(ron_buf_t));

    if (b->tokens == NULL) {
        return ron_ctl_fail(b->args, RON_EXIT_IO, "no memory");
    }

    if (token != NULL) {
        ron_buf_init(&b->tokens[0], 0);
        ron_buf_put_cstr(&b->tokens[0], token);
        b->token_n = 1;

    } else if (keys != NULL) {
        return bench_mint(b, keys);
    }

    return RON_EXIT_OK;
}


/* A connection is a client, and has a capability of its own. */

static int
bench_mint(bench_http_t *b, const char *path)
{
    int            rc;
    char           id[32];
    ron_keyring_t  ring;

    rc = ron_ctl_keyring(b->args, path, &ring);

    if (rc != RON_EXIT_OK) {
        return rc;
    }

    for (unsigned i = 0; i < b->load.connections; i++) {
        snprintf(id, sizeof(id), "bench-%06llx-%u",
                 (unsigned long long) b->load.key_run, i);
        ron_buf_init(&b->tokens[i], 0);
        b->token_n++;

        if (ron_cap_mint(&ring.keys[0], ron_cstr(id), ron_null_str, NULL, 0,
                         &b->tokens[i])
            != RON_OK)
        {
            rc = ron_ctl_fail(b->args, RON_EXIT_IO, "no capability can be "
                              "made");
            break;
        }
    }

    ron_keyring_wipe(&ring);

    return rc;
}


/* ---- filling accounts --------------------------------------------------- */

static int
bench_setup(bench_http_t *b)
{
    ron_status_t     rc;
    ron_http_conf_t  conf;

    b->setup = b->load;
    b->setup.kind = RON_LOAD_SETUP;
    b->setup.ops = ron_load_info(RON_LOAD_SETUP)->ops;
    b->setup.connections = ron_min(BENCH_SETUP_CONNS, b->load.connections);
    b->setup.tokens = b->tokens;
    b->setup.token_n = b->token_n;

    if (ron_load_init(&b->setup) != RON_OK) {
        return ron_ctl_fail(b->args, RON_EXIT_IO, "no memory");
    }

    conf = b->http;
    conf.connections = b->setup.connections;
    conf.rate = 0;
    conf.run_us = 0;
    conf.request = bench_setup_request;
    conf.answer = bench_setup_answer;
    conf.tick = bench_setup_tick;
    conf.ctx = b;

    ron_ctl_meter_init(&b->meter, "filling accounts");
    rc = ron_http_run(&conf, &b->stat);
    ron_ctl_meter_end(&b->meter);

    if (ron_ctl_interrupted()) {
        return RON_EXIT_INT;
    }

    for (unsigned i = 0; i < RON_HTTP_STATUS_N && rc == RON_OK; i++) {
        if (b->status[i] != 0) {
            return ron_ctl_fail(b->args, RON_EXIT_IO, "accounts cannot be "
                                "filled: the server answers %u%s", i,
                                i == 401 ? ", see --token and --keys" : "");
        }
    }

    if (rc != RON_OK || b->stat.unanswered > 0) {
        return ron_ctl_fail(b->args, RON_EXIT_IO, "%s: %s", b->http.url,
                            b->stat.error);
    }

    /* a server that says no seqs is one that is compared with */

    if (b->load.seqs == 0) {
        b->load.seqs = b->last_seq ? b->last_seq : b->setup_acked;
    }

    b->load.keys = b->setup.keys;

    return RON_EXIT_OK;
}


static bool
bench_setup_request(void *ctx, unsigned connection, ron_str_t *bytes)
{
    bench_http_t  *b = ctx;

    return ron_load_request(&b->setup, connection, bytes);
}


static bool
bench_setup_answer(void *ctx, unsigned connection, const ron_http_answer_t *a)
{
    uint64_t       seq;
    bench_http_t  *b = ctx;

    (void) connection;

    if (a->status == 429 || a->status == 503) {
        return ron_ctl_interrupted();
    }

    if (a->status != 200) {
        b->status[a->status]++;
    }

    b->setup_acked += ron_load_acked(&b->setup, a->status, a->body, &seq);
    b->last_seq = ron_max(b->last_seq, seq);

    return true;
}


static bool
bench_setup_tick(void *ctx, uint64_t now_us)
{
    bench_http_t  *b = ctx;

    (void) now_us;

    for (unsigned i = 0; i < RON_HTTP_STATUS_N; i++) {
        if (b->status[i] != 0) {
            return false;
        }
    }

    return ron_ctl_meter(&b->meter, b->setup_acked, b->load.accounts);
}


/* ---- the load ----------------------------------------------------------- */

static int
bench_measure(bench_http_t *b)
{
    int           rc;
    double        cpu_s;
    ron_status_t  status;

    b->load.tokens = b->tokens;
    b->load.token_n = b->token_n;

    if (ron_load_init(&b->load) != RON_OK
        || ron_replay_init(&b->replay, b->load.connections, b->duplicates)
           != RON_OK)
    {
        return ron_ctl_fail(b->args, RON_EXIT_IO, "no memory");
    }

    if (b->record_name != NULL) {
        b->record = fopen(b->record_name, "w");

        if (b->record == NULL) {
            return ron_ctl_fail(b->args, RON_EXIT_IO, "%s: %s",
                                b->record_name, strerror(errno));
        }

        (void) setvbuf(b->record, NULL, _IOFBF, BENCH_RECORD_BUF);
    }

    b->begin_us = ron_clock_mono_us() + b->warm_us;
    b->end_us = b->begin_us + b->http.run_us;
    b->http.run_us += b->warm_us;
    b->http.request = bench_request;
    b->http.answer = bench_answer;
    b->http.lost = bench_lost;
    b->http.tick = bench_tick;
    b->http.ctx = b;

    ron_ctl_meter_init(&b->meter, ron_load_info(b->load.kind)->name);
    cpu_s = bench_cpu();
    status = ron_http_run(&b->http, &b->stat);
    b->cpu_s = bench_cpu() - cpu_s;
    ron_ctl_meter_end(&b->meter);

    if (b->record != NULL && fclose(b->record) != 0) {
        return ron_ctl_fail(b->args, RON_EXIT_IO, "%s: %s", b->record_name,
                            strerror(errno));
    }

    if (status != RON_OK) {
        return ron_ctl_fail(b->args, RON_EXIT_IO, "%s: %s", b->http.url,
                            b->stat.error);
    }

    bench_late(b);
    rc = bench_verdict(b);

    if (b->args->json) {
        bench_json(b, rc);

    } else {
        bench_text(b);
    }

    return rc;
}


static bool
bench_request(void *ctx, unsigned connection, ron_str_t *bytes)
{
    bench_http_t  *b = ctx;

    if (ron_replay_request(&b->replay, connection, bytes)) {
        return true;
    }

    if (!ron_load_request(&b->load, connection, bytes)) {
        return false;
    }

    ron_replay_new(&b->replay, connection, *bytes);

    return true;
}


static bool
bench_answer(void *ctx, unsigned connection, const ron_http_answer_t *a)
{
    uint64_t       acked, seq;
    bench_http_t  *b = ctx;

    acked = ron_load_acked(&b->load, a->status, a->body, &seq);

    if (ron_replay_answer(&b->replay, connection, a->status, a->body)) {
        acked = 0;
    }

    b->acked += acked;
    b->last_seq = ron_max(b->last_seq, seq);
    b->status[a->status]++;

    if (b->record != NULL && acked > 0) {
        bench_write_record(b, connection, a->body);
    }

    /*
     * What is answered in the time makes the rate, also when it was asked
     * before; a latency counts when it began in the time, also when it ended
     * after.
     */

    if (a->now_us >= b->begin_us && a->now_us <= b->end_us) {
        b->requests++;
        b->ops += acked;
    }

    if (a->now_us - a->us >= b->begin_us) {
        ron_hist_add(&b->hist, a->us);
    }

    return true;
}


/* No answer in time: it took that long at least. */

static void
bench_lost(void *ctx, uint64_t since_us, uint64_t now_us)
{
    bench_http_t  *b = ctx;

    if (since_us >= b->begin_us) {
        ron_hist_add(&b->hist, now_us - since_us);
    }
}


/*
 * What was due and never sent had waited that long when the time was over.
 * Left out, a server that is too slow would look faster the slower it is.
 * Of very many, evenly spread ones stand for all.
 */

static void
bench_late(bench_http_t *b)
{
    uint64_t  due_us, step;

    step = b->stat.late / BENCH_LATE_MAX + 1;

    for (uint64_t i = 0; i < b->stat.late; i += step) {
        due_us = b->stat.due_us + i * 1000000 / b->http.rate;

        if (due_us >= b->begin_us && due_us < b->end_us) {
            ron_hist_add(&b->hist, b->end_us - due_us);
        }
    }
}


static void
bench_write_record(bench_http_t *b, unsigned connection, ron_str_t body)
{
    char      key[RON_LOAD_KEY_LEN + 1];
    size_t    off;
    uint64_t  seq;

    off = 0;
    ron_load_key(&b->load, connection, key);

    while (ron_load_number(body, "\"seq\":", &off, &seq)) {
        fprintf(b->record, "%s %llu\n", key, (unsigned long long) seq);
    }
}


static bool
bench_tick(void *ctx, uint64_t now_us)
{
    uint64_t       all, left;
    bench_http_t  *b = ctx;

    /* the meter is about work, and the work here is time */

    all = b->http.run_us / 1000;
    left = b->end_us > now_us ? (b->end_us - now_us) / 1000 : 0;

    if (b->meter.on) {
        fprintf(stderr, "\r\033[K%s  %s of %s s  %s answered",
                b->meter.what, ron_ctl_thousands((all - left) / 1000),
                ron_ctl_thousands(all / 1000),
                ron_ctl_thousands(b->stat.answered));
        b->meter.begun = true;
    }

    return !ron_ctl_interrupted();
}


static double
bench_cpu(void)
{
    struct rusage  u;

    getrusage(RUSAGE_SELF, &u);

    return (double) (u.ru_utime.tv_sec + u.ru_stime.tv_sec)
           + (double) (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}


/* ---- the report --------------------------------------------------------- */

static int
bench_verdict(const bench_http_t *b)
{
    uint64_t  bad;

    if (ron_ctl_interrupted()) {
        return RON_EXIT_INT;
    }

    bad = b->stat.unanswered + b->replay.differ + (b->acked == 0);

    for (unsigned i = 0; i < RON_HTTP_STATUS_N; i++) {
        bad += i == 200 ? 0 : b->status[i];
    }

    return bad == 0 ? RON_EXIT_OK : RON_EXIT_NO;
}


static double
bench_seconds(const bench_http_t *b)
{
    uint64_t  end_us;

    end_us = ron_min(b->end_us, ron_max(b->stat.end_us, b->begin_us + 1));

    return (double) (end_us - b->begin_us) / 1e6;
}


static void
bench_text(const bench_http_t *b)
{
    double  s;

    s = bench_seconds(b);
    printf("%s over %u connections to %s, %.1f s%s\n"
           "  requests   %12s /s\n"
           "  operations %12s /s\n  latency    ",
           ron_load_info(b->load.kind)->name, b->load.connections,
           b->http.url, s, b->http.rate ? ", open loop" : "",
           ron_ctl_thousands((uint64_t) ((double) b->requests / s)),
           ron_ctl_thousands((uint64_t) ((double) b->ops / s)));

    for (size_t i = 0; i < ron_array_n(bench_quantiles); i++) {
        printf("%s %llu us, ", bench_quantiles[i].name, (unsigned long long)
               ron_hist_quantile(&b->hist, bench_quantiles[i].per_100k));
    }

    printf("max %llu us\n  answers    ", (unsigned long long) b->hist.max);

    for (unsigned i = 0; i < RON_HTTP_STATUS_N; i++) {
        if (b->status[i] != 0) {
            printf("%u: %s  ", i, ron_ctl_thousands(b->status[i]));
        }
    }

    printf("\n  acknowledged %s operations, and %s of the setup; last seq %s\n"
           "  unanswered %llu, sent again %llu, late %llu, connections opened "
           "%llu%s%s\n"
           "  duplicates %llu, answered as before %llu, otherwise %llu\n"
           "  this program took %.2f s of CPU; run %06llx\n",
           ron_ctl_thousands(b->acked), ron_ctl_thousands(b->setup_acked),
           ron_ctl_thousands(b->last_seq),
           (unsigned long long) b->stat.unanswered,
           (unsigned long long) b->stat.resent,
           (unsigned long long) b->stat.late,
           (unsigned long long) b->stat.connects,
           b->stat.error ? "\n  last trouble: " : "",
           b->stat.error ? b->stat.error : "",
           (unsigned long long) b->replay.sent,
           (unsigned long long) b->replay.same,
           (unsigned long long) b->replay.differ, b->cpu_s,
           (unsigned long long) b->load.run);
}


static void
bench_json(const bench_http_t *b, int rc)
{
    double     s;
    ron_buf_t  out;

    s = bench_seconds(b);
    ron_buf_init(&out, 0);
    ron_buf_printf(&out, "{\"ok\":%s,\"workload\":\"%s\",\"connections\":%u,"
                   "\"rate\":%llu,\"ops\":%u,\"accounts\":%llu,\"run\":"
                   "\"%06llx\",\"seconds\":%.3f,\"requests_per_s\":%.1f,"
                   "\"operations_per_s\":%.1f,\"requests\":%llu,"
                   "\"operations\":%llu,\"acknowledged\":%llu,"
                   "\"setup_acknowledged\":%llu,\"last_seq\":%llu,"
                   "\"latency_us\":{\"mean\":%.1f",
                   rc == RON_EXIT_OK ? "true" : "false",
                   ron_load_info(b->load.kind)->name, b->load.connections,
                   (unsigned long long) b->http.rate, b->load.ops,
                   (unsigned long long) b->load.accounts,
                   (unsigned long long) b->load.run, s,
                   (double) b->requests / s, (double) b->ops / s,
                   (unsigned long long) b->requests,
                   (unsigned long long) b->ops,
                   (unsigned long long) b->acked,
                   (unsigned long long) b->setup_acked,
                   (unsigned long long) b->last_seq,
                   b->hist.n ? (double) b->hist.sum / (double) b->hist.n : 0);

    for (size_t i = 0; i < ron_array_n(bench_quantiles); i++) {
        ron_buf_printf(&out, ",\"%s\":%llu", bench_quantiles[i].name,
                       (unsigned long long)
                       ron_hist_quantile(&b->hist,
                                         bench_quantiles[i].per_100k));
    }

    ron_buf_printf(&out, ",\"max\":%llu},\"status\":{",
                   (unsigned long long) b->hist.max);

    for (unsigned i = 0; i < RON_HTTP_STATUS_N; i++) {
        if (b->status[i] != 0) {
            ron_buf_printf(&out, "%s\"%u\":%llu",
                           out.data[out.len - 1] == '{' ? "" : ",", i,
                           (unsigned long long) b->status[i]);
        }
    }

    ron_buf_printf(&out, "},\"sent\":%llu,\"unanswered\":%llu,"
                   "\"resent\":%llu,\"late\":%llu,"
                   "\"duplicates\":{\"sent\":%llu,\"same\":%llu,"
                   "\"differ\":%llu},"
                   "\"connects\":%llu,\"bytes_in\":%llu,\"bytes_out\":%llu,"
                   "\"cpu_s\":%.3f}\n",
                   (unsigned long long) b->stat.sent,
                   (unsigned long long) b->stat.unanswered,
                   (unsigned long long) b->stat.resent,
                   (unsigned long long) b->stat.late,
                   (unsigned long long) b->replay.sent,
                   (unsigned long long) b->replay.same,
                   (unsigned long long) b->replay.differ,
                   (unsigned long long) b->stat.connects,
                   (unsigned long long) b->stat.bytes_in,
                   (unsigned long long) b->stat.bytes_out, b->cpu_s);
    ron_ctl_print(&out);
    ron_buf_free(&out);
}
