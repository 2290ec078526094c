
/*
 * Reads /readyz and the text format of /metrics into a sample.  What is
 * wanted of the latter stands in three tables: figures, histograms, and what
 * has a row for each value of a label.
 */

#include "ron_ctl_top.h"
#include "ron_json.h"


typedef struct {
    ron_str_t  name;
    ron_str_t  labels;
    uint64_t   value;           /* in millionths */
} top_line_t;


static bool top_line(ron_str_t *rest, top_line_t *line);
static uint64_t top_millionths(ron_str_t text);
static ron_str_t top_label(const top_line_t *line, const char *name);
static void top_take(ron_top_sample_t *s, const top_line_t *line);
static void top_take_bucket(ron_top_hist_t *h, const top_line_t *line);
static ron_top_row_t *top_row(ron_top_table_t *table, ron_str_t service,
    ron_str_t name);
static void top_copy(char to[RON_TOP_NAME], ron_str_t from);


static const struct {
    const char  *metric;
    const char  *service;
} top_values[RON_TOP_VALUES] = {
    [RON_TOP_SEQ]      = { "ledger_seq", "ledger" },
    [RON_TOP_PAYMENTS] = { "wallet_ops_total", "wallet" },
    [RON_TOP_COMMITS]  = { "ledger_commits_total", "ledger" },
    [RON_TOP_ENTRIES]  = { "ledger_entries_total", "ledger" },
    [RON_TOP_LAG]      = { "committer_lag_seconds", "ledger" },
    [RON_TOP_HISTORY]  = { "ledger_history_lag_entries", "ledger" },
    [RON_TOP_BACKLOG]  = { "ledger_backlog", "ledger" },
    [RON_TOP_AGE]      = { "metrics_sample_age_seconds", "ledger" }
};

static const struct {
    const char  *metric;
    const char  *service;
} top_hists[RON_TOP_HISTS] = {
    [RON_TOP_COMMIT] = { "ledger_commit_latency_seconds_bucket", "ledger" },
    [RON_TOP_WALLET] = { "request_latency_seconds_bucket", "wallet" }
};

static const struct {
    const char          *metric;
    ron_top_table_id_t   table;
    const char          *label;
    bool                 capacity;
} top_tables[] = {
    { "queue_depth", RON_TOP_QUEUES, "q", false },
    { "queue_depth", RON_TOP_QUEUES, "queue", false },
    { "queue_capacity", RON_TOP_QUEUES, "q", true },
    { "queue_capacity", RON_TOP_QUEUES, "queue", true },
    { "rejected_total", RON_TOP_REFUSED, "reason", false },
    { "service_restarts_total", RON_TOP_RESTARTS, "task", false }
};


void
ron_top_readyz(ron_top_sample_t *s, ron_str_t body)
{
    ron_json_doc_t      doc;
    ron_json_error_t    err;
    const ron_json_t   *root, *state;

    memset(&err, 0, sizeof(err));
    ron_json_doc_init(&doc, 0);
    top_copy(s->state, ron_str("unknown"));

    if (ron_json_parse(&doc, body, NULL, &root, &err) == RON_OK
        && ron_json_kind(root) == RON_JSON_OBJECT)
    {
        state = ron_json_get(root, ron_str("state"));

        if (state != NULL && ron_json_kind(state) == RON_JSON_STRING) {
            top_copy(s->state, ron_json_text(state));
        }
    }

    ron_json_doc_free(&doc);
}


void
ron_top_metrics(ron_top_sample_t *s, ron_str_t body)
{
    top_line_t  line;

    while (body.len != 0) {
        if (top_line(&body, &line)) {
            top_take(s, &line);
        }
    }
}


/* Takes a line off: name{labels} value.  False: it is no series. */

static bool
top_line(ron_str_t *rest, top_line_t *line)
{
    size_t          len, left;
    const uint8_t  *p, *end, *brace, *space;

    p = rest->data;
    end = memchr(p, '\n', rest->len);
    len = end != NULL ? (size_t) (end - p) : rest->len;
    left = rest->len - len - (end != NULL);
    *rest = (ron_str_t) { left, p + rest->len - left };

    brace = memchr(p, '{', len);
    space = memrchr(p, ' ', len);

    if (len == 0 || p[0] == '#' || brace == NULL || space == NULL
        || space <= brace + 1 || space[-1] != '}')
    {
        return false;
    }

    line->name = (ron_str_t) { (size_t) (brace - p), p };
    line->labels = (ron_str_t) { (size_t) (space - brace) - 2, brace + 1 };
    line->value = top_millionths((ron_str_t) { (size_t) (p + len - space) - 1,
                                               space + 1 });

    return true;
}


/* "0.0025" is 2 500; what is no number, as "+Inf", is RON_TOP_NONE. */

static uint64_t
top_millionths(ron_str_t text)
{
    bool      point;
    size_t    i;
    uint64_t  v, unit;

    v = 0;
    unit = 1000000;
    point = false;

    for (i = 0; i < text.len; i++) {

        if (text.data[i] == '.' && !point) {
            point = true;
            continue;
        }

        if (text.data[i] < '0' || text.data[i] > '9'
            || v > UINT64_MAX / 10000000 - 1)
        {
            return RON_TOP_NONE;
        }

        if (point) {
            unit /= 10;
            v += (text.data[i] - '0') * unit;

        } else {
            v = v * 10 + (text.data[i] - '0') * unit;
        }
    }

    return text.len != 0 ? v : RON_TOP_NONE;
}


static ron_str_t
top_label(const top_line_t *line, const char *name)
{
    size_t          len, n;
    const uint8_t  *p, *end, *quote;

    len = strlen(name);
    p = line->labels.data;
    end = p + line->labels.len;

    while (p < end) {
        quote = memchr(p, '"', (size_t) (end - p));
        n = quote != NULL ? (size_t) (quote - p) : 0;

        if (n == 0 || p[n - 1] != '=') {
            break;
        }

        quote = memchr(p + n + 1, '"', (size_t) (end - p) - n - 1);
        if (quote == NULL) {
            break;
        }

        if (n - 1 == len && memcmp(p, name, len) == 0) {
            return (ron_str_t) { (size_t) (quote - p) - n - 1, p + n + 1 };
        }

        p = quote + (quote + 1 < end && quote[1] == ',' ? 2 : 1);
    }

    return ron_null_str;
}


static void
top_take(ron_top_sample_t *s, const top_line_t *line)
{
    ron_str_t   service, name;
    ron_top_row_t  *row;

    if (line->value == RON_TOP_NONE) {
        return;
    }

    service = top_label(line, "service");

    for (unsigned i = 0; i < RON_TOP_VALUES; i++) {
        if (ron_str_eq(line->name, ron_cstr(top_values[i].metric))
            && ron_str_eq(service, ron_cstr(top_values[i].service)))
        {
            s->value[i] += line->value;
            s->metrics |= i == RON_TOP_SEQ;
        }
    }

    for (unsigned i = 0; i < RON_TOP_HISTS; i++) {
        if (ron_str_eq(line->name, ron_cstr(top_hists[i].metric))
            && ron_str_eq(service, ron_cstr(top_hists[i].service)))
        {
            top_take_bucket(&s->hist[i], line);
        }
    }

    for (size_t i = 0; i < ron_array_n(top_tables); i++) {
        name = top_label(line, top_tables[i].label);

        /* most reasons for a refusal never come */

        if (name.len == 0
            || !ron_str_eq(line->name, ron_cstr(top_tables[i].metric))
            || (line->value == 0 && top_tables[i].table == RON_TOP_REFUSED))
        {
            continue;
        }

        row = top_row(&s->table[top_tables[i].table], service, name);
        if (row == NULL) {
            continue;
        }

        if (top_tables[i].capacity) {
            row->capacity += line->value / 1000000;

        } else {
            row->value += line->value / 1000000;
        }
    }
}


/* Several series of one histogram, as of several routes, are one here. */

static void
top_take_bucket(ron_top_hist_t *h, const top_line_t *line)
{
    unsigned  i;
    uint64_t  le_us;

    le_us = top_millionths(top_label(line, "le"));

    for (i = 0; i < h->n && h->at[i].le_us < le_us; i++) {
        /* they are in order */
    }

    if (i == h->n || h->at[i].le_us != le_us) {
        if (h->n == RON_TOP_BUCKETS) {
            return;
        }

        memmove(&h->at[i + 1], &h->at[i],
                (h->n - i) * sizeof(ron_top_bucket_t));
        h->at[i] = (ron_top_bucket_t) { le_us, 0 };
        h->n++;
    }

    h->at[i].n += line->value / 1000000;
}


/* The row of that name, a new one if need be; NULL: there are too many. */

static ron_top_row_t *
top_row(ron_top_table_t *table, ron_str_t service, ron_str_t name)
{
    ron_top_row_t        like;
    const ron_top_row_t  *row;

    memset(&like, 0, sizeof(ron_top_row_t));
    top_copy(like.service, service);
    top_copy(like.name, name);

    row = ron_top_find(table, &like);

    if (row == NULL && table->n < RON_TOP_ROWS) {
        table->row[table->n] = like;
        row = &table->row[table->n++];
    }

    return row != NULL ? &table->row[row - table->row] : NULL;
}


const ron_top_row_t *
ron_top_find(const ron_top_table_t *table, const ron_top_row_t *like)
{
    for (unsigned i = 0; i < table->n; i++) {
        if (strcmp(table->row[i].service, like->service) == 0
            && strcmp(table->row[i].name, like->name) == 0)
        {
            return &table->row[i];
        }
    }

    return NULL;
}


/* What somebody else says must not move a cursor or end a JSON string. */

static void
top_copy(char to[RON_TOP_NAME], ron_str_t from)
{
    size_t  i;

    for (i = 0; i < from.len && i < RON_TOP_NAME - 1; i++) {
        to[i] = from.data[i] <= ' ' || from.data[i] >= 0x7f
                || from.data[i] == '"' || from.data[i] == '\\'
                ? '?' : (char) from.data[i];
    }

    to[i] = '\0';
}


uint64_t
ron_top_bucket(const ron_top_hist_t *h, uint64_t le_us)
{
    for (unsigned i = 0; i < h->n; i++) {
        if (h->at[i].le_us == le_us) {
            return h->at[i].n;
        }
    }

    return 0;
}
