
/*
 * A call and its tries.
 *
 *     start ---- breaker ----> try ---- answer < 500 ----> done
 *                  |            |
 *                  |            +---- 500 and more, none ----+
 *                  |                                         |
 *                  +<--------------- pause <----- tries left +
 *                  |                                         |
 *                 done                                      done
 *
 * The whole answer is read where NGINX reads the header: it is parsed by
 * libron, nothing of it goes through filters, and the subrequest then ends
 * without a response of its own.
 */

#include "ngx_http_ron_remote.h"
#include "ron_port.h"


#define NGX_HTTP_RON_REMOTE_BUFFER_MAX  (8 * 1024 * 1024)
#define NGX_HTTP_RON_REMOTE_JITTER      20
#define NGX_HTTP_RON_REMOTE_POLL        5


static ngx_int_t ngx_http_ron_remote_text(ngx_http_request_t *r,
    ngx_http_ron_rcall_t *call, ngx_str_t *tail, ngx_str_t *args,
    ron_str_t body);
static void ngx_http_ron_remote_cleanup(void *data);
static void ngx_http_ron_remote_event(ngx_event_t *ev);
static void ngx_http_ron_remote_try(ngx_http_ron_rcall_t *call);
static ngx_int_t ngx_http_ron_remote_slot(ngx_http_ron_rcall_t *call,
    ngx_msec_t left);
static void ngx_http_ron_remote_slot_done(ngx_http_ron_rcall_t *call);
static void ngx_http_ron_remote_slot_poll(ngx_event_t *ev);
static ngx_int_t ngx_http_ron_remote_launch(ngx_http_ron_rcall_t *call,
    ngx_msec_t timeout);
static void ngx_http_ron_remote_run(ngx_http_request_t *sr);
static ngx_int_t ngx_http_ron_remote_create_request(ngx_http_request_t *sr);
static ngx_int_t ngx_http_ron_remote_reinit_request(ngx_http_request_t *sr);
static ngx_int_t ngx_http_ron_remote_process_header(ngx_http_request_t *sr);
static ngx_int_t ngx_http_ron_remote_grow(ngx_http_request_t *sr,
    ngx_http_ron_rcall_t *call);
static void ngx_http_ron_remote_abort_request(ngx_http_request_t *sr);
static void ngx_http_ron_remote_finalize_request(ngx_http_request_t *sr,
    ngx_int_t rc);
static ngx_int_t ngx_http_ron_remote_over(ngx_http_request_t *sr, void *data,
    ngx_int_t rc);
static void ngx_http_ron_remote_late(ngx_event_t *ev);
static void ngx_http_ron_remote_judge(ngx_http_ron_rcall_t *call);
static void ngx_http_ron_remote_done(ngx_http_ron_rcall_t *call,
    ngx_int_t rc);


/*
 * Calls of this worker that wait for one of the prevalidators, of which all
 * workers have some together: another's is noticed by asking again.
 */

static ngx_queue_t  ngx_http_ron_remote_waiting;
static ngx_event_t  ngx_http_ron_remote_poll;


ngx_int_t
ngx_http_ron_remote_call(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_remote_t *remote, ngx_str_t *tail, ngx_str_t *args,
    ron_str_t body, ngx_uint_t op, ngx_http_ron_remote_pt handler)
{
    ngx_pool_cleanup_t    *cln;
    ngx_http_ron_rcall_t  *call;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_ron_rcall_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    call = cln->data;
    ngx_memzero(call, sizeof(ngx_http_ron_rcall_t));

    call->ctx = ctx;
    call->remote = remote;
    call->handler = handler;
    call->op = op;

    call->event.handler = ngx_http_ron_remote_event;
    call->event.data = r->connection;
    call->event.log = r->connection->log;

    call->timer.handler = ngx_http_ron_remote_late;
    call->timer.data = r->connection;
    call->timer.log = r->connection->log;

    cln->handler = ngx_http_ron_remote_cleanup;

    if (ngx_http_ron_remote_text(r, call, tail, args, body) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->remote = call;

    /* a client that goes away is noticed, and its request let go */

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    r->main->count++;

    /* the handler is never called before this returns */

    ngx_post_event(&call->event, &ngx_posted_events);

    return NGX_DONE;
}


static void
ngx_http_ron_remote_cleanup(void *data)
{
    ngx_http_ron_rcall_t  *call = data;

    ngx_http_ron_remote_untold(call);

    if (call->event.timer_set) {
        ngx_del_timer(&call->event);
    }

    if (call->event.posted) {
        ngx_delete_posted_event(&call->event);
    }

    if (call->timer.timer_set) {
        ngx_del_timer(&call->timer);
    }

    if (call->queued) {
        call->queued = 0;
        ngx_queue_remove(&call->queue);
    }

    ngx_http_ron_remote_slot_done(call);
}


/*
 * The same bytes in every try: what a deadline is, is said as a time.  Values
 * come from parsed headers, and have no line ends in them.
 */

static ngx_int_t
ngx_http_ron_remote_text(ngx_http_request_t *r, ngx_http_ron_rcall_t *call,
    ngx_str_t *tail, ngx_str_t *args, ron_str_t body)
{
    size_t                  len;
    u_char                 *p;
    ngx_str_t               token, key, trace;
    ngx_connection_t       *c;
    ngx_http_ron_ctx_t     *ctx;
    ngx_http_ron_remote_t  *remote;

    c = r->connection;
    ctx = call->ctx;
    remote = call->remote;

    ngx_str_null(&token);
    ngx_str_null(&key);
    trace = ngx_http_ron_trace_header(r, ctx);

    /* only who decides about a token may see it */

    if (r->headers_in.authorization
        && (remote->target == RON_D_TARGET_LEDGER
            || remote->target == RON_D_TARGET_KMS))
    {
        token = r->headers_in.authorization->value;
    }

    if (remote->target == RON_D_TARGET_LEDGER && body.len == 0) {
        key = ctx->idem_key;
    }

    len = sizeof("POST ? HTTP/1.1" CRLF "Host: " CRLF "X-Corr-ID: " CRLF
                 "X-Forwarded-For: " CRLF "Authorization: " CRLF
                 "traceparent: " CRLF
                 "Idempotency-Key: " CRLF "Content-Type: application/json"
                 CRLF "Content-Length: " CRLF CRLF) - 1
          + remote->path.len + tail->len + (args ? args->len : 0)
          + remote->host.len
          + ctx->corr_id.len + c->addr_text.len + token.len + key.len
          + trace.len
          + NGX_INT64_LEN + body.len;

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    call->text.data = p;

    p = ngx_sprintf(p, "%s %V%V", body.len ? "POST" : "GET", &remote->path,
                    tail);

    if (args && args->len) {
        p = ngx_sprintf(p, "?%V", args);
    }

    p = ngx_sprintf(p, " HTTP/1.1" CRLF "Host: %V" CRLF "X-Corr-ID: %V" CRLF
                       "X-Forwarded-For: %V" CRLF,
                    &remote->host, &ctx->corr_id, &c->addr_text);

    if (trace.len) {
        p = ngx_sprintf(p, "traceparent: %V" CRLF, &trace);
    }

    if (token.len) {
        p = ngx_sprintf(p, "Authorization: %V" CRLF, &token);
    }

    if (key.len) {
        p = ngx_sprintf(p, "Idempotency-Key: %V" CRLF, &key);
    }

    if (body.len) {
        p = ngx_sprintf(p, "Content-Type: application/json" CRLF
                           "Content-Length: %uz" CRLF, body.len);
    }

    *p++ = CR;
    *p++ = LF;

    if (body.len) {
        p = ngx_cpymem(p, body.data, body.len);
    }

    call->text.len = p - call->text.data;

    return NGX_OK;
}


static void
ngx_http_ron_remote_event(ngx_event_t *ev)
{
    ngx_connection_t      *c;
    ngx_http_request_t    *r;
    ngx_http_ron_ctx_t    *ctx;
    ngx_http_ron_rcall_t  *call;

    c = ev->data;
    r = c->data;
    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);
    call = ctx->remote;

    ngx_http_set_log_request(c->log, r);

    if (call->ended) {
        ngx_http_ron_remote_judge(call);

    } else {
        ngx_http_ron_remote_try(call);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_ron_remote_try(ngx_http_ron_rcall_t *call)
{
    ngx_msec_t  left;

    left = ngx_http_ron_time_left(call->ctx);

    if (call->queued) {
        call->queued = 0;
        ngx_queue_remove(&call->queue);
    }

    if (left == 0) {
        call->late = (call->tried == 0);
        ngx_http_ron_remote_done(call, NGX_ERROR);
        return;
    }

    /* the breaker of a check stands before a call, not before its tries */

    if ((call->tried == 0 || call->remote->target == RON_D_TARGET_LEDGER)
        && ngx_http_ron_remote_ask(call) != NGX_OK)
    {
        call->refused = 1;
        ngx_http_ron_remote_done(call, NGX_ERROR);
        return;
    }

    if (ngx_http_ron_remote_slot(call, left) != NGX_OK) {
        return;
    }

    call->whole = 0;
    call->sent = 0;
    call->late = 0;
    call->cut = (left < call->remote->timeout);
    call->tried++;
    call->since_us = ron_clock_mono_us();

    ngx_memzero(&call->answer, sizeof(ron_api_http_t));

    if (ngx_http_ron_remote_launch(call, ngx_min(left, call->remote->timeout))
        != NGX_OK)
    {
        ngx_http_ron_remote_done(call, NGX_ERROR);
    }
}


/* A wallet's ledger is no check, and its work queue bounds the calls to it. */

static ngx_int_t
ngx_http_ron_remote_slot(ngx_http_ron_rcall_t *call, ngx_msec_t left)
{
    ngx_http_ron_remote_main_conf_t  *rrmcf;

    if (call->slot || call->remote->target == RON_D_TARGET_LEDGER) {
        return NGX_OK;
    }

    rrmcf = ngx_http_get_module_main_conf(call->ctx->request,
                                          ngx_http_ron_remote_module);

    if (ngx_http_ron_remote_waiting.next == NULL) {
        ngx_queue_init(&ngx_http_ron_remote_waiting);

        ngx_http_ron_remote_poll.handler = ngx_http_ron_remote_slot_poll;
        ngx_http_ron_remote_poll.data = &ngx_ron_ident;
        ngx_http_ron_remote_poll.log = ngx_cycle->log;
        ngx_http_ron_remote_poll.cancelable = 1;
    }

    if (ngx_ron_admit(RON_ADMIT_CHECK, rrmcf->prevalidators) == NGX_OK) {
        call->slot = 1;
        ngx_http_ron_checks_begin(call->ctx);

        return NGX_OK;
    }

    ngx_http_ron_checks_pause(call->ctx);

    call->queued = 1;
    ngx_queue_insert_tail(&ngx_http_ron_remote_waiting, &call->queue);

    ngx_add_timer(&call->event, left);

    if (!ngx_http_ron_remote_poll.timer_set) {
        ngx_add_timer(&ngx_http_ron_remote_poll, NGX_HTTP_RON_REMOTE_POLL);
    }

    return NGX_AGAIN;
}


static void
ngx_http_ron_remote_slot_done(ngx_http_ron_rcall_t *call)
{
    if (!call->slot) {
        return;
    }

    call->slot = 0;
    ngx_ron_admit_done(RON_ADMIT_CHECK);
    ngx_http_ron_checks_pause(call->ctx);

    if (!ngx_queue_empty(&ngx_http_ron_remote_waiting)) {
        ngx_http_ron_remote_slot_poll(&ngx_http_ron_remote_poll);
    }
}


/* The oldest first, as many as there is room for. */

static void
ngx_http_ron_remote_slot_poll(ngx_event_t *ev)
{
    ngx_queue_t                      *q;
    ngx_http_ron_rcall_t             *call;
    ngx_http_ron_remote_main_conf_t  *rrmcf;

    while (!ngx_queue_empty(&ngx_http_ron_remote_waiting)) {

        q = ngx_queue_head(&ngx_http_ron_remote_waiting);
        call = ngx_queue_data(q, ngx_http_ron_rcall_t, queue);

        rrmcf = ngx_http_get_module_main_conf(call->ctx->request,
                                              ngx_http_ron_remote_module);

        if (ngx_ron_admit(RON_ADMIT_CHECK, rrmcf->prevalidators) != NGX_OK) {

            if (!ev->timer_set) {
                ngx_add_timer(ev, NGX_HTTP_RON_REMOTE_POLL);
            }

            return;
        }

        ngx_queue_remove(q);

        call->queued = 0;
        call->slot = 1;
        ngx_http_ron_checks_begin(call->ctx);

        if (call->event.timer_set) {
            ngx_del_timer(&call->event);
        }

        ngx_post_event(&call->event, &ngx_posted_events);
    }
}


static ngx_int_t
ngx_http_ron_remote_launch(ngx_http_ron_rcall_t *call, ngx_msec_t timeout)
{
    ngx_http_request_t          *r, *sr;
    ngx_http_post_subrequest_t  *ps;

    r = call->ctx->request;

    ps = ngx_palloc(r->pool, sizeof(ngx_http_post_subrequest_t));
    if (ps == NULL) {
        return NGX_ERROR;
    }

    ps->handler = ngx_http_ron_remote_over;
    ps->data = call;

    if (call->conf == NULL) {
        call->conf = ngx_palloc(r->pool, sizeof(ngx_http_upstream_conf_t));
        if (call->conf == NULL) {
            return NGX_ERROR;
        }
    }

    *call->conf = call->remote->upstream;

    call->conf->connect_timeout = timeout;
    call->conf->send_timeout = timeout;
    call->conf->read_timeout = timeout;

    if (ngx_http_subrequest(r, &r->uri, NULL, &sr, ps,
                            NGX_HTTP_SUBREQUEST_BACKGROUND)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* no phases and no location: it only carries an upstream */

    sr->write_event_handler = ngx_http_ron_remote_run;
    sr->request_body = NULL;
    sr->loc_conf = r->loc_conf;

    ngx_http_set_ctx(sr, call, ngx_http_ron_remote_module);

    call->sr = sr;

    /* NGINX's time-outs are of one step each, this one is of all */

    ngx_add_timer(&call->timer, timeout);

    return NGX_OK;
}


static void
ngx_http_ron_remote_run(ngx_http_request_t *sr)
{
    ngx_http_upstream_t   *u;
    ngx_http_ron_rcall_t  *call;

    call = ngx_http_get_module_ctx(sr, ngx_http_ron_remote_module);

    sr->write_event_handler = ngx_http_request_empty_handler;

    if (ngx_http_upstream_create(sr) != NGX_OK) {
        ngx_http_finalize_request(sr, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    u = sr->upstream;

    ngx_str_set(&u->schema, "http://");
    u->output.tag = (ngx_buf_tag_t) &ngx_http_ron_remote_module;
    u->conf = call->conf;

    u->create_request = ngx_http_ron_remote_create_request;
    u->reinit_request = ngx_http_ron_remote_reinit_request;
    u->process_header = ngx_http_ron_remote_process_header;
    u->abort_request = ngx_http_ron_remote_abort_request;
    u->finalize_request = ngx_http_ron_remote_finalize_request;

    ngx_http_upstream_init(sr);
}


static ngx_int_t
ngx_http_ron_remote_create_request(ngx_http_request_t *sr)
{
    ngx_buf_t             *b;
    ngx_chain_t           *cl;
    ngx_http_ron_rcall_t  *call;

    call = ngx_http_get_module_ctx(sr, ngx_http_ron_remote_module);

    b = ngx_calloc_buf(sr->pool);
    cl = ngx_alloc_chain_link(sr->pool);

    if (b == NULL || cl == NULL) {
        return NGX_ERROR;
    }

    b->start = call->text.data;
    b->pos = b->start;
    b->last = b->start + call->text.len;
    b->end = b->last;
    b->memory = 1;
    b->last_buf = 1;

    cl->buf = b;
    cl->next = NULL;

    sr->upstream->request_bufs = cl;

    return NGX_OK;
}


/* A kept connection was closed under the request: NGINX takes another. */

static ngx_int_t
ngx_http_ron_remote_reinit_request(ngx_http_request_t *sr)
{
    ngx_http_ron_rcall_t  *call;

    call = ngx_http_get_module_ctx(sr, ngx_http_ron_remote_module);

    call->maybe = 1;

    return NGX_OK;
}


/*
 * NGX_ERROR also when the answer is whole: that ends the subrequest, and
 * gives the connection back, without a response from it.
 */

static ngx_int_t
ngx_http_ron_remote_process_header(ngx_http_request_t *sr)
{
    ngx_http_upstream_t   *u;
    ngx_http_ron_rcall_t  *call;

    u = sr->upstream;
    call = ngx_http_get_module_ctx(sr, ngx_http_ron_remote_module);

    switch (ron_api_http_parse(u->buffer.start,
                               u->buffer.last - u->buffer.start,
                               &call->answer))
    {

    case RON_OK:
        u->keepalive = call->answer.keepalive;
        u->headers_in.status_n = call->answer.status;

        if (u->state) {
            u->state->status = call->answer.status;
        }

        call->whole = 1;

        return NGX_ERROR;

    case RON_AGAIN:
        return ngx_http_ron_remote_grow(sr, call);

    default:
        ngx_log_error(NGX_LOG_ERR, sr->connection->log, 0,
                      "ron: upstream \"%V\" sent an invalid answer",
                      &call->remote->host);

        return NGX_HTTP_UPSTREAM_INVALID_HEADER;
    }
}


static ngx_int_t
ngx_http_ron_remote_grow(ngx_http_request_t *sr, ngx_http_ron_rcall_t *call)
{
    size_t      len, size;
    u_char     *p;
    ngx_buf_t  *b;

    b = &sr->upstream->buffer;

    if (b->last != b->end) {
        return NGX_AGAIN;
    }

    len = b->last - b->start;
    size = ngx_max(2 * len, call->answer.total);

    if (size > NGX_HTTP_RON_REMOTE_BUFFER_MAX) {
        return NGX_AGAIN;
    }

    p = ngx_palloc(sr->pool, size);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(p, b->start, len);

    b->start = p;
    b->pos = p;
    b->last = p + len;
    b->end = p + size;

    return NGX_AGAIN;
}


static void
ngx_http_ron_remote_abort_request(ngx_http_request_t *sr)
{
    return;
}


static void
ngx_http_ron_remote_finalize_request(ngx_http_request_t *sr, ngx_int_t rc)
{
    ngx_http_ron_rcall_t  *call;

    call = ngx_http_get_module_ctx(sr, ngx_http_ron_remote_module);

    call->sent = sr->upstream->request_sent;
    call->late = (!call->whole && rc == NGX_HTTP_GATEWAY_TIME_OUT);
}


/* Also called when there was no upstream to finalize. */

static ngx_int_t
ngx_http_ron_remote_over(ngx_http_request_t *sr, void *data, ngx_int_t rc)
{
    ngx_http_ron_rcall_t  *call = data;

    call->sr = NULL;
    call->ended = 1;

    if (call->timer.timer_set) {
        ngx_del_timer(&call->timer);
    }

    if (!call->event.posted) {
        ngx_post_event(&call->event, &ngx_posted_events);
    }

    return NGX_OK;
}


/* As if NGINX's own timer had come. */

static void
ngx_http_ron_remote_late(ngx_event_t *ev)
{
    ngx_event_t           *rev;
    ngx_connection_t      *c;
    ngx_http_ron_ctx_t    *ctx;
    ngx_http_ron_rcall_t  *call;

    c = ev->data;
    ctx = ngx_http_get_module_ctx((ngx_http_request_t *) c->data,
                                  ngx_http_ron_module);
    call = ctx->remote;

    if (call->sr == NULL || call->sr->upstream == NULL
        || call->sr->upstream->peer.connection == NULL)
    {
        return;
    }

    rev = call->sr->upstream->peer.connection->read;

    rev->timedout = 1;
    rev->handler(rev);
}


static void
ngx_http_ron_remote_judge(ngx_http_ron_rcall_t *call)
{
    ngx_msec_t              pause, left;
    ngx_uint_t              failed;
    ngx_http_ron_remote_t  *remote;

    remote = call->remote;

    call->ended = 0;

    failed = !call->whole || call->answer.status >= 500;

    ngx_http_ron_remote_count(call, failed);

    /* a caller without patience says nothing about the service */

    if (!failed
        || (remote->target == RON_D_TARGET_LEDGER
            && !(call->late && call->cut)))
    {
        ngx_http_ron_remote_tell(call, !failed);

    } else if (remote->target == RON_D_TARGET_LEDGER) {
        ngx_http_ron_remote_untold(call);
    }

    if (!failed) {
        ngx_http_ron_remote_done(call, NGX_OK);
        return;
    }

    if (call->whole ? ngx_http_ron_remote_unknown(call) : call->sent) {
        call->maybe = 1;
    }

    left = ngx_http_ron_time_left(call->ctx);

    pause = ron_timeout_info(RON_TIMEOUT_RETRY_FIRST)->ms;
    pause <<= call->tried - 1;
    pause = ngx_min(pause, remote->backoff)
            + ngx_random() % NGX_HTTP_RON_REMOTE_JITTER;

    if (pause > remote->backoff) {
        pause = remote->backoff - ngx_random() % NGX_HTTP_RON_REMOTE_JITTER;
    }

    if (call->tried >= remote->tries || pause >= left) {
        ngx_http_ron_remote_done(call, NGX_ERROR);
        return;
    }

    ngx_http_ron_remote_retried(call);

    ngx_add_timer(&call->event, pause);
}


static void
ngx_http_ron_remote_done(ngx_http_ron_rcall_t *call, ngx_int_t rc)
{
    ngx_http_ron_ctx_t  *ctx;

    ctx = call->ctx;
    ctx->remote = NULL;

    ngx_http_ron_remote_slot_done(call);

    if (rc != NGX_OK) {

        if (call->remote->target != RON_D_TARGET_LEDGER && call->tried
            && !(call->late && call->cut))
        {
            ngx_http_ron_remote_tell(call, 0);
        }

        ngx_http_ron_remote_failed(call);
    }

    ngx_http_ron_remote_untold(call);

    call->handler(ctx, call, rc);
}
