
/*
 * A request from its context to its reply.
 */

#include "ngx_http_ron_ingress.h"
#include "ngx_http_ron_limit.h"
#include "ngx_http_ron_remote.h"
#include "ron_amount.h"
#include "ron_codec.h"
#include "ron_port.h"


#define NGX_HTTP_RON_BEAT_KEPT  10


static void ngx_http_ron_ctx_headers(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ngx_int_t ngx_http_ron_ctx_corr(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_str_t *given);
static void ngx_http_ron_ctx_deadline(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, uint64_t spent);
static uint64_t ngx_http_ron_spent(ngx_http_request_t *r);
static void ngx_http_ron_ctx_cleanup(void *data);
static void ngx_http_ron_health_beat(ron_api_health_t *h, uint64_t now_us);
static void ngx_http_ron_body(ngx_http_request_t *r);
static void ngx_http_ron_body_read(ngx_http_request_t *r);
static void ngx_http_ron_body_late(ngx_event_t *ev);
static ngx_int_t ngx_http_ron_body_take(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ngx_int_t ngx_http_ron_body_inflate(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static void ngx_http_ron_body_done(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);


/* By length, and where those of a length begin: most headers have another. */

static struct {
    ngx_str_t   name;
    size_t      offset;
} ngx_http_ron_headers[] = {
    { ngx_null_string, 0 },
    { ngx_string("if-match"), offsetof(ngx_http_ron_ctx_t, if_match) },
    { ngx_string("x-corr-id"), offsetof(ngx_http_ron_ctx_t, corr_id) },
    { ngx_string("traceparent"), offsetof(ngx_http_ron_ctx_t, traceparent) },
    { ngx_string("x-request-id"),
      offsetof(ngx_http_ron_ctx_t, request_id) },
    { ngx_string("if-none-match"),
      offsetof(ngx_http_ron_ctx_t, if_none_match) },
    { ngx_string("idempotency-key"),
      offsetof(ngx_http_ron_ctx_t, idem_key) },
    { ngx_string("request-timeout"),
      offsetof(ngx_http_ron_ctx_t, request_timeout) },
    { ngx_string("content-encoding"),
      offsetof(ngx_http_ron_ctx_t, content_encoding) },
    { ngx_null_string, 0 }
};

static u_char  ngx_http_ron_header_first[] = {
    0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 3, 4, 5, 0, 6, 8
};


static ngx_str_t  ngx_http_ron_type_json = ngx_string("application/json");
static ngx_str_t  ngx_http_ron_type_problem =
    ngx_string("application/problem+json");


/* One for all requests of a worker: an answer is copied before the next. */

static ron_buf_t  ngx_http_ron_buf;


ron_buf_t *
ngx_http_ron_scratch(void)
{
    ron_buf_reset(&ngx_http_ron_buf);

    return &ngx_http_ron_buf;
}


ngx_http_ron_ctx_t *
ngx_http_ron_get_ctx(ngx_http_request_t *r)
{
    uint64_t             spent;
    ngx_pool_cleanup_t  *cln;
    ngx_http_ron_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    if (ctx) {
        return ctx;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_ron_ctx_t));
    if (cln == NULL) {
        return NULL;
    }

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_ron_ctx_t));

    ctx->request = r;

    ngx_http_ron_ctx_headers(r, ctx);

    if (ngx_http_ron_ctx_corr(r, ctx, &ctx->corr_id) != NGX_OK) {
        return NULL;
    }

    spent = ngx_http_ron_spent(r);

    ngx_http_ron_ctx_deadline(r, ctx, spent);
    ngx_http_ron_trace_begin(r, ctx, spent);

    cln->handler = ngx_http_ron_ctx_cleanup;

    ngx_http_set_ctx(r, ctx, ngx_http_ron_module);

    return ctx;
}


/* The client is gone, or was answered: the operation goes on without it. */

static void
ngx_http_ron_ctx_cleanup(void *data)
{
    ngx_http_ron_ctx_t  *ctx = data;

    if (ctx->call) {
        ngx_ron_unclosed(ctx->request, "a call");
        ngx_ron_ipc_detach(ctx->call);
        ctx->call = NULL;
    }

    ngx_http_ron_burst_drop(ctx);
    ngx_http_ron_ingress_drop(ctx);
    ngx_http_ron_breaker_drop(ctx);

    if (ctx->body_timer.timer_set) {
        ngx_del_timer(&ctx->body_timer);
    }

    ron_buf_free(&ctx->body_buf);
    ron_buf_free(&ctx->body_plain);
    ngx_http_ron_release(ctx);
    ngx_http_ron_count_gone(ctx);
}


static void
ngx_http_ron_ctx_headers(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ngx_str_t        *field;
    ngx_uint_t        i, n;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *header;

    part = &r->headers_in.headers.part;
    header = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                break;
            }

            part = part->next;
            header = part->elts;
            i = 0;
        }

        if (header[i].key.len >= sizeof(ngx_http_ron_header_first)) {
            continue;
        }

        for (n = ngx_http_ron_header_first[header[i].key.len];
             n && ngx_http_ron_headers[n].name.len == header[i].key.len;
             n++)
        {
            if (ngx_memcmp(header[i].lowcase_key,
                           ngx_http_ron_headers[n].name.data,
                           header[i].key.len)
                != 0)
            {
                continue;
            }

            field = (ngx_str_t *) ((u_char *) ctx
                                   + ngx_http_ron_headers[n].offset);

            if (field->data && field == &ctx->idem_key) {
                ctx->key_twice = 1;
            }

            if (field->data && field == &ctx->content_encoding) {
                ctx->encoded_twice = 1;
            }

            if (field->data && field == &ctx->request_timeout) {
                ctx->timeout_bad = 1;
            }

            *field = header[i].value;
        }
    }
}


static ngx_int_t
ngx_http_ron_ctx_corr(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_str_t *given)
{
    u_char           *p;
    uint64_t          n;
    uint8_t           noise[RON_ULID_RANDOM_LEN];
    ngx_uint_t        i;
    ngx_time_t       *tp;

    /* a worker's own: it makes names that differ, and no secrets */

    static uint64_t   state;

    if (given->len && ron_api_corr_valid(ngx_ron_str(given))) {
        return NGX_OK;
    }

    /* what most proxies call it */

    if (ctx->request_id.len
        && ron_api_corr_valid(ngx_ron_str(&ctx->request_id)))
    {
        *given = ctx->request_id;
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, RON_ULID_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (state == 0) {
        state = (uint64_t) ngx_random() << 32 | (uint64_t) ngx_random() << 1
                | 1;
    }

    for (i = 0; i < RON_ULID_RANDOM_LEN; i += RON_ULID_RANDOM_LEN / 2) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        n = state * UINT64_C(0x2545f4914f6cdd1d);
        ngx_memcpy(noise + i, (u_char *) &n + 2, RON_ULID_RANDOM_LEN / 2);
    }

    tp = ngx_timeofday();

    ctx->corr_id.len = ron_ulid_encode((uint64_t) tp->sec * 1000 + tp->msec,
                                       noise, (char *) p);
    ctx->corr_id.data = p;

    return NGX_OK;
}


/* The client may have less patience than we have, and never more. */

static void
ngx_http_ron_ctx_deadline(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    uint64_t spent)
{
    uint64_t                  s, limit;
    ngx_http_ron_loc_conf_t  *rlcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    limit = rlcf->deadline;

    if (ctx->request_timeout.data) {

        if (ron_api_u64(ngx_ron_str(&ctx->request_timeout), &s) != RON_OK) {
            ctx->timeout_bad = 1;

        } else if (s < limit / 1000 + 1) {
            limit = ngx_min(limit, s * 1000);
        }
    }

    limit = spent < limit ? limit - spent : 0;

    ctx->begin_us = ron_clock_mono_us();
    ctx->deadline_us = ctx->begin_us + limit * 1000;
}


/* For how many ms its header has been coming. */

static uint64_t
ngx_http_ron_spent(ngx_http_request_t *r)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) (tp->sec - r->start_sec) * 1000
           + (tp->msec - r->start_msec);
}


ngx_msec_t
ngx_http_ron_time_left(ngx_http_ron_ctx_t *ctx)
{
    return ngx_http_ron_time_left_at(ctx, ron_clock_mono_us());
}


ngx_msec_t
ngx_http_ron_time_left_at(ngx_http_ron_ctx_t *ctx, uint64_t now_us)
{
    return now_us < ctx->deadline_us ? (ctx->deadline_us - now_us) / 1000 : 0;
}


ron_zone_t *
ngx_http_ron_zone(ngx_http_request_t *r)
{
    ngx_http_ron_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    return rmcf->zone ? rmcf->zone->data : NULL;
}


ngx_int_t
ngx_http_ron_handler(ngx_http_request_t *r)
{
    ron_reason_t         reason;
    ngx_http_ron_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    /* "satisfy any" let somebody in whom the access phase did not see */

    if (ctx == NULL || ctx->route == NULL) {
        return NGX_HTTP_FORBIDDEN;
    }

    if (ctx->route->flags & NGX_HTTP_RON_WRITE) {
        reason = ngx_http_ron_admit(r, ctx);

        if (reason != RON_REASON_OK) {
            return ngx_http_ron_refuse(r, reason, NULL, NULL);
        }
    }

    if (!(ctx->route->flags & NGX_HTTP_RON_OPEN) && !ctx->genuine) {
        ngx_http_ron_checks_pause(ctx);
        return ngx_http_ron_check_token(r, ctx);
    }

    return ngx_http_ron_go(r, ctx);
}


ngx_int_t
ngx_http_ron_go(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ngx_int_t                 rc;
    ngx_http_ron_loc_conf_t  *rlcf;

    if (r->method != NGX_HTTP_POST) {

        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }

        return ctx->route->handler(r, ctx);
    }

    /*
     * Read in pieces into a buffer of our own: NGINX would put a body that
     * outgrows its buffer, or whose chunks do, into a file.
     */

    r->request_body_no_buffering = 1;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    if (!ctx->lines
        && r->headers_in.content_length_n > (off_t) rlcf->body_max)
    {
        return ngx_http_ron_refuse(r, RON_REASON_TOO_LARGE, NULL, NULL);
    }

    rc = ngx_http_read_client_request_body(r, ctx->lines
                                              ? ngx_http_ron_ndjson
                                              : ngx_http_ron_body);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


ron_reason_t
ngx_http_ron_admit(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t                  now_us;
    ron_reason_t              reason;
    ngx_uint_t                capacity;
    ngx_ron_conf_t           *rcf;
    ngx_http_ron_loc_conf_t  *rlcf;

    if (ctx->admitted) {
        return RON_REASON_OK;
    }

    /* what has just begun to be checked needs no other time than that */

    now_us = ctx->checking ? ctx->checks_from_us : ron_clock_mono_us();

    reason = ngx_http_ron_remote_ledger(r) ? RON_REASON_OK
                                           : ngx_http_ron_shed(now_us);

    if (reason != RON_REASON_OK) {

        if (reason == RON_REASON_BACKPRESSURE) {
            ngx_ron_count(RON_M_BUSY_L, 0, RON_D_Q_COMMIT, 0, 0);
        }

        return reason;
    }

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);
    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);

    capacity = rlcf->service->queue == RON_ADMIT_WORK ? rcf->queue_work
                                                      : rcf->queue_ingress;

    if (ngx_ron_admit(rlcf->service->queue, capacity) != NGX_OK) {

        if (rlcf->service->queue == RON_ADMIT_INGRESS) {
            ngx_ron_count(RON_M_BUSY_L, 0, RON_D_Q_INGRESS, 0, 0);

        } else {
            ngx_ron_count(RON_M_BUSY_W, 0, ctx->route->metric
                                           - RON_D_ROUTE_WALLET_ISSUE, 0, 0);
        }

        return RON_REASON_BUSY;
    }

    ctx->admitted = 1;
    ctx->queue = rlcf->service->queue;

    return RON_REASON_OK;
}


void
ngx_http_ron_release(ngx_http_ron_ctx_t *ctx)
{
    if (ctx->admitted) {
        ctx->admitted = 0;
        ngx_ron_admit_done(ctx->queue);
    }
}


#define ngx_http_ron_text(dim, id, text)  text,

static const char  *ngx_http_ron_task_names[] = {
    RON_DIM_TASK(ngx_http_ron_text)
};


void
ngx_http_ron_health(ron_api_health_t *h)
{
    ngx_uint_t  i;

    ngx_http_ron_health_beat(h, ron_clock_mono_us());

    for (i = 0; i < RON_D_TASK_N; i++) {
        if (ngx_ron_looping((ngx_cycle_t *) ngx_cycle, i)) {
            h->looping[h->looping_n++] = ngx_http_ron_task_names[i];
        }
    }
}


/* What the helper says of itself: all that a write is refused for. */

static void
ngx_http_ron_health_beat(ron_api_health_t *h, uint64_t now_us)
{
    ngx_pid_t        helper;
    ron_zone_t      *zone;
    ngx_ron_conf_t  *rcf;

    /* a worker's own: one beat is read by many requests */

    static ron_beat_t  beat;
    static ngx_msec_t  read_at;

    ngx_memzero(h, sizeof(ron_api_health_t));

    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);
    zone = ngx_ron_zone();

    h->remote = (rcf->url.len == 0);
    h->lag_max_ms = rcf->committer_lag;
    h->commit_capacity = rcf->queue_commit;

    if (zone == NULL) {
        return;
    }

    /* the same one may have come to another step of its sync meanwhile */

    if (!ron_zone_beat_same(zone, &beat)
        || ngx_current_msec - read_at > NGX_HTTP_RON_BEAT_KEPT)
    {
        if (ron_zone_beat_read(zone, &beat) != RON_OK) {
            return;
        }

        read_at = ngx_current_msec;
    }

    if (beat.generation == 0) {
        return;
    }

    h->has_beat = true;
    h->state = beat.state;

    /* a beat has a change before anybody is told; ours may not beat yet */

    helper = ngx_ron_ipc_helper();

    if (helper && (uint64_t) helper != beat.pid) {
        h->state = ngx_ron_ipc_state();
    }

    h->seq = beat.seq;
    h->commit_depth = beat.commit_depth;
    h->age_ms = now_us > beat.beat_us ? (now_us - beat.beat_us) / 1000 : 0;

    if (beat.sync_since_us && now_us > beat.sync_since_us) {
        h->lag_ms = (now_us - beat.sync_since_us) / 1000;
    }
}


ron_reason_t
ngx_http_ron_shed(uint64_t now_us)
{
    ron_api_health_t  h;

    ngx_http_ron_health_beat(&h, now_us);

    /*
     * Not connected: a helper that has begun to serve may still have the
     * replay in its last beat.  One that is in safe mode says so.
     */

    if (h.state == RON_STATE_SAFE_MODE && ngx_ron_ipc_helper() == 0) {
        h.state = RON_STATE_STARTING;
    }

    return ron_api_shed(&h);
}


/* The whole body was there with the header, or it comes. */

static void
ngx_http_ron_body(ngx_http_request_t *r)
{
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t         *bufs;
    ngx_http_ron_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    bufs = r->request_body->bufs;

    if (!r->reading_body && bufs && bufs->next == NULL
        && ngx_buf_in_memory(bufs->buf))
    {
        b = bufs->buf;
        ctx->body.data = b->pos;
        ctx->body.len = b->last - b->pos;

        ngx_http_ron_body_done(r, ctx);
        return;
    }

    /* the time in which it comes is its client's */

    ngx_http_ron_checks_pause(ctx);

    ron_buf_init(&ctx->body_buf, 0);

    rc = ngx_http_ron_body_take(r, ctx);

    if (rc != NGX_OK) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    if (!r->reading_body) {
        ngx_http_ron_body_done(r, ctx);
        return;
    }

    ctx->body_timer.handler = ngx_http_ron_body_late;
    ctx->body_timer.data = r->connection;
    ctx->body_timer.log = r->connection->log;

    ngx_add_timer(&ctx->body_timer, ngx_http_ron_time_left(ctx) + 1);

    r->read_event_handler = ngx_http_ron_body_read;
    ngx_http_ron_body_read(r);
}


static void
ngx_http_ron_body_read(ngx_http_request_t *r)
{
    ngx_int_t            rc, taken;
    ngx_uint_t           came;
    ron_reason_t         reason;
    ngx_http_ron_ctx_t  *ctx;

    if (r->connection->read->timedout) {
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    for ( ;; ) {
        rc = ngx_http_read_unbuffered_request_body(r);

        if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            ngx_http_finalize_request(r, rc);
            return;
        }

        /*
         * NGX_AGAIN is also said when the buffer is full, and then no event
         * would come: only when nothing was there has the socket no more.
         */

        came = (r->request_body->bufs != NULL);

        taken = ngx_http_ron_body_take(r, ctx);

        if (taken != NGX_OK) {
            ngx_http_finalize_request(r, taken);
            return;
        }

        if (!r->reading_body) {
            break;
        }

        if (rc == NGX_AGAIN && !came) {

            /* half a request takes nobody's place */

            ngx_http_ron_release(ctx);
            return;
        }
    }

    if (ctx->body_timer.timer_set) {
        ngx_del_timer(&ctx->body_timer);
    }

    r->read_event_handler = ngx_http_block_reading;

    if (ctx->route->flags & NGX_HTTP_RON_WRITE) {
        reason = ngx_http_ron_admit(r, ctx);

        if (reason != RON_REASON_OK) {
            rc = ngx_http_ron_refuse(r, reason, NULL, NULL);
            ngx_http_finalize_request(r, rc);
            return;
        }
    }

    ngx_http_ron_body_done(r, ctx);
}


static void
ngx_http_ron_body_late(ngx_event_t *ev)
{
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    c = ev->data;
    r = c->data;

    ngx_http_set_log_request(c->log, r);

    ngx_http_ron_count_late(r);

    /* what is left of the body is not wanted */

    r->keepalive = 0;
    r->read_event_handler = ngx_http_block_reading;

    rc = ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                             "the body did not come in time", NULL);

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_ron_body_take(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ngx_buf_t                *b;
    ngx_chain_t              *cl;
    ngx_http_ron_loc_conf_t  *rlcf;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;

        if (!ngx_buf_in_memory(b)) {
            continue;
        }

        ron_buf_put(&ctx->body_buf, b->pos, b->last - b->pos);
        b->pos = b->last;
    }

    r->request_body->bufs = NULL;

    if (ron_buf_status(&ctx->body_buf) != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    if (ctx->body_buf.len > rlcf->body_max) {
        return NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
    }

    ctx->body = ron_buf_str(&ctx->body_buf);

    return NGX_OK;
}


/*
 * What it may become is known before: so many times what came, and not more
 * than the directive says, so a bomb costs no more than that.
 */

size_t
ngx_http_ron_inflate_max(ngx_http_request_t *r, size_t len)
{
    ngx_http_ron_limit_main_conf_t  *lmcf;

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_limit_module);

    return ngx_min(len * lmcf->inflate_ratio, lmcf->inflate_max);
}


static ngx_int_t
ngx_http_ron_body_inflate(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_api_error_t  err;

    ron_buf_init(&ctx->body_plain, 0);

    switch (ron_api_inflate(ctx->body,
                            ngx_http_ron_inflate_max(r, ctx->body.len),
                            &ctx->body_plain, &err))
    {

    case RON_OK:
        break;

    case RON_EINVAL:
        return ngx_http_ron_problem(r, &err);

    default:
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->body = ron_buf_str(&ctx->body_plain);

    return NGX_OK;
}


static void
ngx_http_ron_body_done(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_ron_ingress(r, ctx);

    if (rc != NGX_DECLINED) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    if (ctx->gzip) {
        rc = ngx_http_ron_body_inflate(r, ctx);

        if (rc != NGX_OK || ctx->replied) {
            ngx_http_finalize_request(r, rc);
            return;
        }
    }

    if (ctx->route->flags & NGX_HTTP_RON_WRITE) {
        ngx_http_ron_checks_begin(ctx);
    }

    ngx_http_finalize_request(r, ctx->route->handler(r, ctx));
}


ngx_int_t
ngx_http_ron_wait(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_ron_call_t *call)
{
    ctx->call = call;
    ngx_http_ron_checks_end(ctx);

    /* it was sent: nobody needs the body any more */

    ngx_http_ron_ingress_drop(ctx);

    ngx_http_ron_trace_sent(ctx);

    /* a client that goes away is noticed, and its request let go */

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    r->main->count++;

    return NGX_DONE;
}


void
ngx_http_ron_done(ngx_http_ron_ctx_t *ctx, ngx_int_t rc)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_http_finalize_request(r, rc);
    ngx_http_run_posted_requests(c);
}


ngx_int_t
ngx_http_ron_unanswered(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_DECLINED) {
        return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                   "the ledger is not there, nothing was "
                                   "sent", NULL);
    }

    return ngx_http_ron_refuse(r, RON_REASON_TIMEOUT, NULL, NULL);
}


ngx_int_t
ngx_http_ron_reply(ngx_http_request_t *r, ngx_uint_t status, ngx_str_t *type,
    ron_str_t body)
{
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t          out;
    ngx_http_ron_ctx_t  *ctx;

    static ngx_str_t     bearer = ngx_string("Bearer");

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    if (ctx) {
        ctx->replied = 1;
        ngx_http_ron_release(ctx);
        ngx_http_ron_checks_end(ctx);
    }

    if (ngx_http_discard_request_body(r) != NGX_OK) {
        r->keepalive = 0;
    }

    if (ron_api_retryable(status)
        && ngx_http_ron_retry_after(r, status, ctx ? ctx->retry_after : 0)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (status == NGX_HTTP_UNAUTHORIZED
        && ngx_http_ron_header(r, "WWW-Authenticate", &bearer) != NGX_OK)
    {
        return NGX_ERROR;
    }

    r->headers_out.status = status;
    r->headers_out.content_length_n = body.len;
    r->headers_out.content_type = *type;
    r->headers_out.content_type_len = type->len;
    r->headers_out.content_type_lowcase = NULL;
    r->disable_not_modified = 1;

    if (body.len == 0) {
        r->header_only = 1;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b = ngx_create_temp_buf(r->pool, body.len);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->last = ngx_cpymem(b->pos, body.data, body.len);
    b->last_buf = (r == r->main) ? 1 : 0;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


ngx_int_t
ngx_http_ron_retry_after(ngx_http_request_t *r, ngx_uint_t status,
    ngx_uint_t seconds)
{
    ngx_str_t  after;

    static u_char  digits[] = "0123456789";

    if (seconds == 0) {
        seconds = ron_api_retry_after(status);
    }

    /* a server that is full says this often */

    if (seconds < sizeof(digits) - 1) {
        after.len = 1;
        after.data = digits + seconds;

        return ngx_http_ron_header(r, "Retry-After", &after);
    }

    after.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (after.data == NULL) {
        return NGX_ERROR;
    }

    after.len = ngx_sprintf(after.data, "%ui", seconds) - after.data;

    return ngx_http_ron_header(r, "Retry-After", &after);
}


ngx_int_t
ngx_http_ron_json(ngx_http_request_t *r, ngx_uint_t status, ron_buf_t *body)
{
    ron_buf_put_u8(body, LF);

    if (ron_buf_status(body) != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_reply(r, status, &ngx_http_ron_type_json,
                              ron_buf_str(body));
}


ngx_int_t
ngx_http_ron_problem(ngx_http_request_t *r, const ron_api_error_t *err)
{
    ron_buf_t           *buf;
    ngx_http_ron_ctx_t  *ctx;

    ctx = ngx_http_ron_get_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->reason = err->reason;

    buf = ngx_http_ron_scratch();

    if (ron_api_problem(buf, err, ngx_ron_str(&ctx->corr_id)) != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ron_buf_put_u8(buf, LF);

    if (ron_buf_status(buf) != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_reply(r, ron_api_status(err),
                              &ngx_http_ron_type_problem, ron_buf_str(buf));
}


ngx_int_t
ngx_http_ron_refuse(ngx_http_request_t *r, ron_reason_t reason,
    const char *text, const char *field)
{
    ron_api_error_t  err;

    (void) ron_api_refuse(&err, reason, text, field);

    return ngx_http_ron_problem(r, &err);
}


ngx_int_t
ngx_http_ron_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value = *value;
    ngx_ron_table_elt_init(h);

    return NGX_OK;
}


ngx_int_t
ngx_http_ron_etag(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    uint64_t version, ngx_uint_t *same)
{
    u_char     *p;
    ngx_str_t   tag, *have;

    *same = 0;

    p = ngx_pnalloc(r->pool, RON_AMOUNT_MAX + 2);
    if (p == NULL) {
        return NGX_ERROR;
    }

    tag.data = p;
    tag.len = ron_amount_print(version, (char *) p + 1) + 2;
    p[0] = '"';
    p[tag.len - 1] = '"';

    have = &ctx->if_none_match;

    if (have->len
        && ((have->len == 1 && have->data[0] == '*')
            || ngx_strlcasestrn(have->data, have->data + have->len, tag.data,
                                tag.len - 1)
               != NULL))
    {
        *same = 1;
    }

    return ngx_http_ron_header(r, "ETag", &tag);
}


ngx_int_t
ngx_http_ron_not_modified(ngx_http_request_t *r)
{
    ngx_http_ron_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);
    ctx->replied = 1;

    r->headers_out.status = NGX_HTTP_NOT_MODIFIED;
    r->headers_out.content_type.len = 0;
    r->headers_out.content_length_n = -1;
    r->header_only = 1;

    return ngx_http_send_header(r);
}


ngx_int_t
ngx_http_ron_arg_u64(ngx_http_ron_ctx_t *ctx, const char *name,
    uint64_t missing, uint64_t *v)
{
    ron_str_t  s;

    s = ron_api_arg(ctx->args, ctx->args_n, ron_cstr(name));

    if (s.data == NULL) {
        *v = missing;
        return NGX_OK;
    }

    return ron_api_u64(s, v) == RON_OK ? NGX_OK : NGX_DECLINED;
}
