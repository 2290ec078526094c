
/*
 * The record of a request that is traced; see ron_trace.h.
 *
 * Whether it is, is decided by the share of ron_otlp and the trace's id, not
 * by the caller's flag: a stranger could have everything traced.  In safe
 * mode, and while a breaker is open, everything is.
 */

#include "ngx_http_ron_limit.h"
#include "ngx_http_ron_remote.h"
#include "ron_port.h"


#define ngx_http_ron_trace_text(to, from)                                     \
    ngx_http_ron_trace_copy(to, sizeof(to), (from).data, (from).len)


static void ngx_http_ron_trace_copy(char *to, size_t size,
    const u_char *from, size_t len);
static void ngx_http_ron_trace_random(uint8_t *id, size_t len);
static void ngx_http_ron_trace_operation(ron_trace_request_t *q);


static const char  *ngx_http_ron_trace_routes[] = {
#define ngx_http_ron_trace_route(dim, id, text)  text,
    RON_DIM_ROUTE(ngx_http_ron_trace_route)
#undef ngx_http_ron_trace_route
};


void
ngx_http_ron_trace_begin(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    uint64_t spent)
{
    uint8_t               trace[RON_TRACE_ID_LEN], parent[RON_SPAN_ID_LEN];
    uint32_t              share;
    ngx_uint_t            known, sampled;
    ron_trace_request_t  *q;

    if (ctx->traceparent.len == 0 && !ngx_ron_otlp_on()) {
        return;
    }

    known = ron_traceparent_parse(ngx_ron_str(&ctx->traceparent), trace,
                                  parent)
            == RON_OK;

    if (!known) {
        ctx->traceparent.len = 0;
    }

    if (!ngx_ron_otlp_on()) {
        return;
    }

    share = ngx_ron_otlp_share();
    sampled = known ? ron_trace_sampled(trace, share)
                    : (uint32_t) ngx_random() % RON_TRACE_ALL < share;

    if (!sampled && ngx_ron_ipc_state() != RON_STATE_SAFE_MODE
        && !ngx_http_ron_breaker_down(r)
        && !ngx_http_ron_remote_down(r, RON_D_TARGET_N))
    {
        return;
    }

    q = ngx_pcalloc(r->pool, sizeof(ron_trace_request_t));
    if (q == NULL) {
        return;
    }

    if (known) {
        ngx_memcpy(q->trace, trace, RON_TRACE_ID_LEN);
        ngx_memcpy(q->parent, parent, RON_SPAN_ID_LEN);
        q->has_parent = 1;

    } else {
        ngx_http_ron_trace_random(q->trace, RON_TRACE_ID_LEN);
    }

    ngx_http_ron_trace_random(q->span, RON_SPAN_ID_LEN);

    /* the reading of the clock that its checks begin with */

    q->begin_us = ctx->begin_us - spent * 1000;

    ctx->trace = q;
}


static void
ngx_http_ron_trace_random(uint8_t *id, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i += 2) {
        *(id + i) = (uint8_t) (ngx_random() >> 8);
        *(id + i + 1) = (uint8_t) ngx_random();
    }

    /* all zeros is no id; and the last byte tells its spans apart */

    id[0] |= 1;
}


static void
ngx_http_ron_trace_copy(char *to, size_t size, const u_char *from, size_t len)
{
    len = ngx_min(len, size - 1);

    if (len) {
        ngx_memcpy(to, from, len);
    }

    to[len] = '\0';
}


void
ngx_http_ron_trace_sent(ngx_http_ron_ctx_t *ctx)
{
    if (ctx->trace && (ctx->route->flags & NGX_HTTP_RON_WRITE)) {
        ctx->trace->sent_us = ron_clock_mono_us();
    }
}


void
ngx_http_ron_trace_entry(ngx_http_ron_ctx_t *ctx, ron_str_t id)
{
    if (ctx->trace) {
        ngx_http_ron_trace_text(ctx->trace->entry_id, id);
    }
}


void
ngx_http_ron_trace_outcome(ngx_http_ron_ctx_t *ctx,
    const ron_outcome_t *outcome)
{
    uint32_t              i;
    const ron_result_t   *result;
    ron_trace_request_t  *q;

    q = ctx->trace;

    if (q == NULL) {
        return;
    }

    q->answered_us = ron_clock_mono_us();

    for (i = 0; i < outcome->result_n; i++) {
        result = &outcome->results[i];

        if (result->reason == RON_REASON_OK
            && (q->seq == 0 || result->seq < q->seq))
        {
            q->seq = result->seq;
        }
    }
}


void
ngx_http_ron_trace_receipt(ngx_http_ron_ctx_t *ctx, ron_buf_t *receipt)
{
    u_char     *p, *last;
    ron_str_t   id;

    if (ctx->trace == NULL || receipt->len == 0) {
        return;
    }

    last = receipt->data + receipt->len;
    p = ngx_strlcasestrn(receipt->data, last, (u_char *) "\"txid\":\"",
                         sizeof("\"txid\":\"") - 1 - 1);

    if (p) {
        id.data = p + sizeof("\"txid\":\"") - 1;
        p = ngx_strlchr((u_char *) id.data, last, '"');
        id.len = p ? (size_t) (p - id.data) : 0;

        ngx_http_ron_trace_text(ctx->trace->entry_id, id);
    }
}


/* "/v1/transfer" is "transfer", "/v1/tx/{txid}" is "tx". */

static void
ngx_http_ron_trace_operation(ron_trace_request_t *q)
{
    size_t       len;
    const char  *from;

    from = q->route;

    if (ngx_strncmp(from, "/v1/", 4) == 0) {
        from += 4;
    }

    len = strcspn(from, "/");

    ngx_http_ron_trace_copy(q->operation, sizeof(q->operation),
                            (const u_char *) from, len);
}


void
ngx_http_ron_trace_end(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_service_t *service)
{
    ngx_str_t             text;
    ngx_uint_t            route;
    ron_trace_request_t  *q;

    q = ctx->trace;

    if (q == NULL) {
        return;
    }

    ctx->trace = NULL;

    route = ctx->route ? ctx->route->metric : service->other;
    text.data = (u_char *) ngx_http_ron_trace_routes[route];
    text.len = ngx_strlen(text.data);

    q->end_us = ron_clock_mono_us();
    q->status = r->headers_out.status;
    q->wallet = service->metric == RON_D_SERVICE_WALLET;

    ngx_http_ron_trace_text(q->route, text);
    ngx_http_ron_trace_text(q->method, r->method_name);
    ngx_http_ron_trace_text(q->corr_id, ctx->corr_id);

    if (q->wallet) {
        ngx_http_ron_trace_operation(q);
    }

    if (q->sent_us && q->answered_us == 0) {
        q->answered_us = q->end_us;
    }

    if (ctx->route && (ctx->route->flags & NGX_HTTP_RON_WRITE)) {
        ngx_str_set(&text, "ingress");

        if (service->queue == RON_ADMIT_WORK) {
            ngx_str_set(&text, "work");
        }

        ngx_http_ron_trace_text(q->queue, text);
    }

    if (ctx->reason != RON_REASON_OK) {
        text.data = (u_char *) ngx_http_ron_reason_name(ctx->reason);
        text.len = ngx_strlen(text.data);
        ngx_http_ron_trace_text(q->reason, text);
    }

    if (ctx->cap && ctx->cap->valid) {
        text.data = (u_char *) ctx->cap->kid;
        text.len = ngx_strlen(text.data);
        ngx_http_ron_trace_text(q->kid, text);

        text.data = (u_char *) ctx->cap->id;
        text.len = ngx_strlen(text.data);
        ngx_http_ron_trace_text(q->cap_id, text);
    }

    ngx_ron_otlp_put(q);
}


/*
 * What a service that is asked for this request is told: this request as its
 * caller, or whoever called us.  Empty: nobody traces.
 */

ngx_str_t
ngx_http_ron_trace_header(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ngx_str_t  header;

    ngx_str_null(&header);

    if (ctx->trace == NULL) {
        return ctx->traceparent;
    }

    header.data = ngx_pnalloc(r->pool, RON_TRACEPARENT_LEN);

    if (header.data) {
        header.len = RON_TRACEPARENT_LEN;
        ron_traceparent_put(ctx->trace->trace, ctx->trace->span, true,
                            (char *) header.data);
    }

    return header;
}
