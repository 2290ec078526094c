
/*
 * Spans as OTLP's JSON.  Ids are hex and 64-bit integers are strings, as its
 * specification says.
 */

#include "ron_trace.h"

#include "ron_json.h"


/* The spans of one request; their ids differ from its own in the last byte. */
typedef enum {
    RON_SPAN_ROOT = 0,
    RON_SPAN_CHECK,
    RON_SPAN_CALL,
    RON_SPAN_ASSIGN,
    RON_SPAN_APPEND,
    RON_SPAN_PUBLISH
} ron_span_no_t;

enum {
    RON_SPAN_INTERNAL = 1,              /* OTLP's numbers */
    RON_SPAN_SERVER = 2,
    RON_SPAN_CLIENT = 3,

    RON_SPAN_STATUS_ERROR = 2
};

typedef struct {
    ron_span_no_t  no;
    ron_span_no_t  above;
    uint32_t       kind;
    uint64_t       begin_us;
    uint64_t       end_us;
} ron_span_t;


static uint32_t ron_trace_request(ron_buf_t *out,
    const ron_trace_conf_t *conf, const ron_trace_request_t *q,
    const ron_trace_batches_t *batches);
static void ron_trace_root(ron_buf_t *out, const ron_trace_conf_t *conf,
    const ron_trace_request_t *q);
static uint32_t ron_trace_batch(ron_buf_t *out, const ron_trace_conf_t *conf,
    const ron_trace_request_t *q, const ron_trace_batch_t *b);
static void ron_span_put(ron_buf_t *out, const ron_trace_conf_t *conf,
    const ron_trace_request_t *q, const ron_span_t *span, const char *name,
    const char *operation);
static void ron_span_id(const ron_trace_request_t *q, ron_span_no_t no,
    uint8_t *id);
static void ron_span_time(ron_buf_t *out, const ron_trace_conf_t *conf,
    const char *key, uint64_t us);
static void ron_span_text(ron_buf_t *out, const char *key, const char *value);
static void ron_span_number(ron_buf_t *out, const char *key, uint64_t value);
static void ron_span_close(ron_buf_t *out, uint32_t status);
static void ron_span_common(ron_buf_t *out, const ron_trace_request_t *q);


ron_status_t
ron_trace_json(ron_buf_t *out, const ron_trace_conf_t *conf,
    const ron_trace_request_t *requests, uint32_t n,
    const ron_trace_batches_t *batches, uint32_t *spans)
{
    uint32_t  i;

    *spans = 0;

    ron_buf_put_cstr(out, "{\"resourceSpans\":[{\"resource\":"
                          "{\"attributes\":[");
    ron_span_text(out, "service.name", "ngx_ron");
    ron_buf_put_cstr(out, ",{\"key\":\"service.version\",\"value\":"
                          "{\"stringValue\":");
    ron_json_put_string(out, conf->version);
    ron_buf_put_cstr(out, "}},{\"key\":\"service.instance.id\",\"value\":"
                          "{\"stringValue\":");
    ron_json_put_string(out, conf->instance);
    ron_buf_put_cstr(out, "}}]},\"scopeSpans\":[{\"scope\":"
                          "{\"name\":\"ngx_ron\"},\"spans\":[");

    for (i = 0; i < n; i++) {
        *spans += ron_trace_request(out, conf, &requests[i], batches);
    }

    ron_buf_put_cstr(out, "]}]}]}");

    return ron_buf_status(out);
}


static uint32_t
ron_trace_request(ron_buf_t *out, const ron_trace_conf_t *conf,
    const ron_trace_request_t *q, const ron_trace_batches_t *batches)
{
    uint32_t                  n;
    ron_span_t                span;
    const ron_trace_batch_t  *b;

    ron_trace_root(out, conf, q);
    n = 1;

    if (q->checked_us) {
        span = (ron_span_t) { RON_SPAN_CHECK, RON_SPAN_ROOT,
                              RON_SPAN_INTERNAL,
                              q->checked_us - q->checks_us, q->checked_us };
        ron_span_put(out, conf, q, &span, "svc.ron-ledger.prevalidator.check",
                     "");
        ron_span_common(out, q);
        ron_span_close(out, 0);
        n++;
    }

    if (q->wallet && q->sent_us && q->answered_us) {
        span = (ron_span_t) { RON_SPAN_CALL, RON_SPAN_ROOT, RON_SPAN_CLIENT,
                              q->sent_us, q->answered_us };
        ron_span_put(out, conf, q, &span, "svc.wallet.ledger.commit", "");
        ron_span_common(out, q);
        ron_span_close(out, q->seq ? 0 : RON_SPAN_STATUS_ERROR);
        n++;
    }

    b = q->seq && batches ? ron_trace_batches_find(batches, q->seq) : NULL;

    return b ? n + ron_trace_batch(out, conf, q, b) : n;
}


static void
ron_trace_root(ron_buf_t *out, const ron_trace_conf_t *conf,
    const ron_trace_request_t *q)
{
    ron_span_t  span;

    span = (ron_span_t) { RON_SPAN_ROOT, RON_SPAN_ROOT, RON_SPAN_SERVER,
                          q->begin_us, q->end_us };

    ron_span_put(out, conf, q, &span,
                 q->wallet ? "svc.wallet." : "svc.ron-ledger.ingress.handle",
                 q->operation);
    ron_span_common(out, q);
    ron_span_text(out, "queue", q->queue);
    ron_span_text(out, "reason", q->reason);
    ron_span_text(out, "http.request.method", q->method);
    ron_span_text(out, "http.route", q->route);
    ron_span_number(out, "http.response.status_code", q->status);
    ron_span_close(out, q->status >= 500 ? RON_SPAN_STATUS_ERROR : 0);
}


/* What the helper did with the batch that this request was in. */

static uint32_t
ron_trace_batch(ron_buf_t *out, const ron_trace_conf_t *conf,
    const ron_trace_request_t *q, const ron_trace_batch_t *b)
{
    uint32_t       i;
    ron_span_no_t  above;

    const struct {
        ron_span_no_t  no;
        const char    *name;
        const char    *queue;
        uint64_t       begin_us;
        uint64_t       end_us;
    } steps[] = {
        { RON_SPAN_ASSIGN, "svc.ron-ledger.sequencer.assign", "preval",
          b->decide_us, b->decided_us },
        { RON_SPAN_APPEND, "svc.ron-ledger.commit.append_wal", "commit",
          b->append_us, b->durable_us },
        { RON_SPAN_PUBLISH, "svc.ron-ledger.publish.root", "root_pub",
          b->durable_us, b->published_us }
    };

    above = q->wallet && q->sent_us && q->answered_us ? RON_SPAN_CALL
                                                      : RON_SPAN_ROOT;

    for (i = 0; i < ron_array_n(steps); i++) {
        ron_span_put(out, conf, q,
                     &(ron_span_t) { steps[i].no, above, RON_SPAN_INTERNAL,
                                     steps[i].begin_us, steps[i].end_us },
                     steps[i].name, "");
        ron_span_common(out, q);
        ron_span_text(out, "queue", steps[i].queue);
        ron_span_number(out, "batch_size", b->count);
        ron_span_close(out, 0);
    }

    return ron_array_n(steps);
}


/* Up to its attributes, of which the first is there. */

static void
ron_span_put(ron_buf_t *out, const ron_trace_conf_t *conf,
    const ron_trace_request_t *q, const ron_span_t *span, const char *name,
    const char *operation)
{
    uint8_t  id[RON_SPAN_ID_LEN];

    ron_json_put_comma(out);
    ron_buf_put_cstr(out, "{\"traceId\":");
    ron_json_put_hex(out, (ron_str_t) { RON_TRACE_ID_LEN, q->trace });

    ron_span_id(q, span->no, id);
    ron_buf_put_cstr(out, ",\"spanId\":");
    ron_json_put_hex(out, (ron_str_t) { RON_SPAN_ID_LEN, id });

    if (span->no != RON_SPAN_ROOT) {
        ron_span_id(q, span->above, id);

    } else if (q->has_parent) {
        memcpy(id, q->parent, RON_SPAN_ID_LEN);
    }

    if (span->no != RON_SPAN_ROOT || q->has_parent) {
        ron_buf_put_cstr(out, ",\"parentSpanId\":");
        ron_json_put_hex(out, (ron_str_t) { RON_SPAN_ID_LEN, id });
    }

    ron_buf_printf(out, ",\"name\":\"%s%s\",\"kind\":%u", name, operation,
                   span->kind);
    ron_span_time(out, conf, "startTimeUnixNano", span->begin_us);
    ron_span_time(out, conf, "endTimeUnixNano",
                  ron_max(span->end_us, span->begin_us));

    ron_buf_put_cstr(out, ",\"attributes\":[");
}


static void
ron_span_id(const ron_trace_request_t *q, ron_span_no_t no, uint8_t *id)
{
    memcpy(id, q->span, RON_SPAN_ID_LEN);
    id[RON_SPAN_ID_LEN - 1] ^= (uint8_t) no;
}


static void
ron_span_time(ron_buf_t *out, const ron_trace_conf_t *conf, const char *key,
    uint64_t us)
{
    ron_buf_printf(out, ",\"%s\":\"%lld000\"", key,
                   (long long) us + (long long) conf->wall_us);
}


static void
ron_span_text(ron_buf_t *out, const char *key, const char *value)
{
    if (value[0] == '\0') {
        return;
    }

    ron_json_put_comma(out);
    ron_buf_printf(out, "{\"key\":\"%s\",\"value\":{\"stringValue\":", key);
    ron_json_put_string(out, ron_cstr(value));
    ron_buf_put_cstr(out, "}}");
}


static void
ron_span_number(ron_buf_t *out, const char *key, uint64_t value)
{
    ron_json_put_comma(out);
    ron_buf_printf(out, "{\"key\":\"%s\",\"value\":{\"intValue\":\"%llu\"}}",
                   key, (unsigned long long) value);
}


static void
ron_span_close(ron_buf_t *out, uint32_t status)
{
    ron_buf_printf(out, "],\"status\":{\"code\":%u}}", status);
}


/* What every span of a request says. */

static void
ron_span_common(ron_buf_t *out, const ron_trace_request_t *q)
{
    ron_span_text(out, "corr_id", q->corr_id);

    if (q->seq) {
        ron_span_number(out, "seq", q->seq);
    }

    ron_span_text(out, "entry_id", q->entry_id);
    ron_span_text(out, "kid", q->kid);
    ron_span_text(out, "capability_ref", q->cap_id);
}
