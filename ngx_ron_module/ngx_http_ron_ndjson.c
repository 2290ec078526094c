
/*
 * POST /ledger/ingest as lines: read as they come, sent to the helper in
 * batches, answered while the rest is still on its way.
 *
 *     socket -> text -> batch -> call ... outcome -> lines -> client
 *
 * Everything is bounded: a batch, the batches under way, and the text that
 * waits for one; nothing is read while too many results are unsent.  All of
 * it runs from pump(), which is called whenever something has changed, and
 * which does what can be done now.  The request has one count of its own
 * until finish().
 *
 * While nothing comes the connection is idle for NGINX: a worker that is to
 * leave calls its read handler, and does not wait for a client that has
 * nothing to say.  One whose body has an end is given a second for it.
 *
 * The first line of results sends the header, 200.  What goes wrong before is
 * a problem like any other; after it, the problem is the last line.
 *
 * At most one batch is parsed in a turn of the event loop: others are served
 * between.  Where other services check entries, they are asked about one batch
 * after the other, and it waits for them as it will be sent.
 */

#include "ngx_http_ron_limit.h"
#include "ron_api_ndjson.h"
#include "ron_port.h"


#define NGX_HTTP_RON_ND_BATCHES  8
#define NGX_HTTP_RON_ND_UNSENT   (256 * 1024)
#define NGX_HTTP_RON_ND_BUF      16384
#define NGX_HTTP_RON_ND_LEAVE    1000
#define NGX_HTTP_RON_ND_CHECKED  4096       /* batches: each takes memory */


typedef struct ngx_http_ron_nd_s  ngx_http_ron_nd_t;

typedef struct {
    ngx_http_ron_nd_t    *stream;           /* NULL: free */
    ngx_ron_call_t       *call;
    ron_api_ndbatch_t     batch;
} ngx_http_ron_nd_batch_t;

struct ngx_http_ron_nd_s {
    ngx_http_request_t       *request;
    ngx_http_ron_ctx_t       *ctx;
    ron_buf_t                 text;
    ron_buf_t                 out;
    ngx_chain_t              *free;
    ngx_chain_t              *busy;
    uint64_t                  total;
    uint64_t                  line;
    uint64_t                  batches_n;
    ngx_uint_t                under_way;
    ngx_msec_t                leave_at;     /* 0: the worker stays */
    ngx_event_t               more;         /* another batch is there */
    ngx_http_ron_nd_batch_t  *asking;       /* others, about this one */
    ron_buf_t                 wire;         /* which is here */
    ngx_event_handler_pt      read_handler; /* NGINX's own */
    ron_api_results_t         results;
    ron_api_error_t           err;
    ngx_http_ron_nd_batch_t   batch[NGX_HTTP_RON_ND_BATCHES];
    unsigned                  all:1;        /* the body has been read */
    unsigned                  failed:1;
    unsigned                  header:1;
};


static void ngx_http_ron_nd_cleanup(void *data);
static void ngx_http_ron_nd_event(ngx_http_request_t *r);
static void ngx_http_ron_nd_read_event(ngx_http_request_t *r);
static void ngx_http_ron_nd_socket(ngx_event_t *ev);
static void ngx_http_ron_nd_wait(ngx_http_ron_nd_t *st);
static void ngx_http_ron_nd_pump(ngx_http_ron_nd_t *st);
static ngx_int_t ngx_http_ron_nd_read(ngx_http_ron_nd_t *st,
    ngx_uint_t *dry);
static ngx_int_t ngx_http_ron_nd_take(ngx_http_ron_nd_t *st);
static ngx_uint_t ngx_http_ron_nd_due(ngx_http_ron_nd_t *st, ngx_uint_t dry,
    size_t *len);
static void ngx_http_ron_nd_more(ngx_event_t *ev);
static void ngx_http_ron_nd_next(ngx_http_ron_nd_t *st, size_t len);
static ngx_int_t ngx_http_ron_nd_batch(ngx_http_ron_nd_t *st, size_t len);
static ngx_int_t ngx_http_ron_nd_send(ngx_http_ron_nd_t *st,
    ngx_http_ron_nd_batch_t *nb);
static ngx_int_t ngx_http_ron_nd_ask(ngx_http_ron_nd_t *st,
    ngx_http_ron_nd_batch_t *nb);
static ngx_int_t ngx_http_ron_nd_refused(ngx_http_ron_nd_t *st,
    ngx_http_ron_nd_batch_t *nb, ron_reason_t reason);
static void ngx_http_ron_nd_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static ngx_int_t ngx_http_ron_nd_outcome(ngx_http_ron_nd_t *st,
    ron_api_ndbatch_t *b, ron_str_t payload);
static void ngx_http_ron_nd_fail(ngx_http_ron_nd_t *st, ron_reason_t reason,
    const char *text);
static size_t ngx_http_ron_nd_unsent(ngx_http_ron_nd_t *st);
static ngx_int_t ngx_http_ron_nd_room(ngx_http_ron_nd_t *st);
static ngx_int_t ngx_http_ron_nd_output(ngx_http_ron_nd_t *st,
    ngx_uint_t last);
static void ngx_http_ron_nd_finish(ngx_http_ron_nd_t *st);


/* a worker's: what is parsed is encoded before the next is */

static ron_api_ndjson_t   ngx_http_ron_nd_space;
static ron_result_t      *ngx_http_ron_nd_results;


void
ngx_http_ron_ndjson(ngx_http_request_t *r)
{
    ngx_uint_t           i;
    ngx_http_ron_nd_t   *st;
    ngx_pool_cleanup_t  *cln;
    ngx_http_ron_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);
    ngx_http_ron_checks_pause(ctx);

    if (ngx_http_ron_nd_results == NULL) {
        ron_api_ndjson_init(&ngx_http_ron_nd_space);

        ngx_http_ron_nd_results =
            ngx_alloc(RON_UNIT_OPS_MAX * sizeof(ron_result_t),
                      r->connection->log);
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_ron_nd_t));

    if (cln == NULL || ngx_http_ron_nd_results == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    st = cln->data;
    ngx_memzero(st, sizeof(ngx_http_ron_nd_t));

    st->request = r;
    st->ctx = ctx;
    st->line = 1;

    ron_buf_init(&st->text, 0);
    ron_buf_init(&st->out, 0);
    ron_buf_init(&st->wire, RON_FRAME_PAYLOAD_MAX);

    st->more.handler = ngx_http_ron_nd_more;
    st->more.data = r->connection;
    st->more.log = r->connection->log;

    for (i = 0; i < NGX_HTTP_RON_ND_BATCHES; i++) {
        ron_buf_init(&st->batch[i].batch.lines, 0);
    }

    cln->handler = ngx_http_ron_nd_cleanup;

    ctx->data = st;

    if (ron_api_ndjson_results(ron_api_arg(ctx->args, ctx->args_n,
                                           ron_str("results")),
                               &st->results)
        != RON_OK)
    {
        ngx_http_finalize_request(r,
            ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                "rejected, all or summary", "results"));
        return;
    }

    r->read_event_handler = ngx_http_ron_nd_read_event;
    r->write_event_handler = ngx_http_ron_nd_event;

    st->read_handler = r->connection->read->handler;
    r->connection->read->handler = ngx_http_ron_nd_socket;

    if (ngx_http_ron_nd_take(st) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    st->all = !r->reading_body;

    ngx_http_ron_nd_pump(st);
}


/* The client is gone: what was sent is committed, and nobody is told. */

static void
ngx_http_ron_nd_cleanup(void *data)
{
    ngx_http_ron_nd_t *st = data;

    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_RON_ND_BATCHES; i++) {

        if (st->batch[i].call) {
            ngx_ron_unclosed(st->request, "a batch of lines");
            ngx_ron_ipc_detach(st->batch[i].call);
            st->batch[i].call = NULL;
        }

        ron_buf_free(&st->batch[i].batch.lines);
    }

    if (st->more.posted) {
        ngx_delete_posted_event(&st->more);
    }

    ron_buf_free(&st->text);
    ron_buf_free(&st->out);
    ron_buf_free(&st->wire);
}


static void
ngx_http_ron_nd_event(ngx_http_request_t *r)
{
    ngx_http_ron_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    if (r->connection->write->timedout) {
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    ngx_http_ron_nd_pump(ctx->data);
}


static void
ngx_http_ron_nd_read_event(ngx_http_request_t *r)
{
    ngx_http_ron_nd_t   *st;
    ngx_http_ron_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);
    st = ctx->data;

    if (!st->all && r->connection->read->timedout) {
        r->connection->read->timedout = 0;
        r->keepalive = 0;

        if (st->leave_at) {
            ngx_http_ron_nd_fail(st, RON_REASON_DRAINING, NULL);

        } else {
            ngx_http_ron_nd_fail(st, RON_REASON_RETRY_LATER,
                                 "the body did not come in time");
        }
    }

    ngx_http_ron_nd_pump(st);
}


/* NGINX's own handler would end the request without a last line. */

static void
ngx_http_ron_nd_socket(ngx_event_t *ev)
{
    ngx_connection_t    *c;
    ngx_http_ron_nd_t   *st;
    ngx_http_request_t  *r;
    ngx_http_ron_ctx_t  *ctx;

    c = ev->data;
    r = c->data;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);
    st = ctx->data;

    if (!c->close) {
        st->read_handler(ev);
        return;
    }

    c->close = 0;

    ngx_http_set_log_request(c->log, r);

    ngx_http_ron_nd_wait(st);
    ngx_http_ron_nd_pump(st);
    ngx_http_run_posted_requests(c);
}


/* Nothing is there, more is to come: whoever leaves does not wait for it. */

static void
ngx_http_ron_nd_wait(ngx_http_ron_nd_t *st)
{
    ngx_msec_int_t            left;
    ngx_connection_t         *c;
    ngx_http_request_t       *r;
    ngx_http_ron_loc_conf_t  *rlcf;

    r = st->request;
    c = r->connection;

    if (!ngx_exiting) {
        c->idle = 1;
        return;
    }

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    if (st->leave_at == 0) {
        st->leave_at = ngx_current_msec + NGX_HTTP_RON_ND_LEAVE;
    }

    left = (ngx_msec_int_t) (st->leave_at - ngx_current_msec);

    if (rlcf->stream_max == 0 || left <= 0) {
        r->keepalive = 0;
        ngx_http_ron_nd_fail(st, RON_REASON_DRAINING, NULL);
        return;
    }

    ngx_add_timer(c->read, left);
}


static void
ngx_http_ron_nd_pump(ngx_http_ron_nd_t *st)
{
    size_t               len;
    ngx_int_t            rc;
    ngx_uint_t           due, dry, wait, parsed;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = st->request;
    c = r->connection;
    c->idle = 0;
    len = 0;
    dry = 0;
    parsed = 0;

    for ( ;; ) {

        due = ngx_http_ron_nd_due(st, dry, &len);

        if (due || !(st->all || st->failed || dry)) {
            rc = ngx_http_ron_nd_room(st);

            if (rc == NGX_ERROR) {
                ngx_http_finalize_request(r, NGX_ERROR);
                return;
            }

            if (rc == NGX_AGAIN) {
                break;
            }
        }

        if (due) {

            if (parsed) {

                /* somebody else's turn */

                if (!st->more.posted) {
                    ngx_post_event(&st->more, &ngx_posted_next_events);
                }

                break;
            }

            parsed = 1;
            ngx_http_ron_nd_next(st, len);
            continue;
        }

        if (dry && !st->all && !st->failed) {
            ngx_http_ron_nd_wait(st);
        }

        if (st->all || st->failed || dry) {
            break;
        }

        wait = st->text.len > RON_API_NDJSON_LINE
               || ((st->under_way == NGX_HTTP_RON_ND_BATCHES || st->asking)
                   && st->text.len >= RON_API_NDJSON_BATCH);

        if (wait) {

            /* an answer goes on here */

            if (c->read->timer_set) {
                ngx_del_timer(c->read);
            }

            if (st->under_way == 0
                && st->text.len > RON_API_NDJSON_LINE)
            {
                ngx_http_ron_nd_fail(st, RON_REASON_TOO_LARGE,
                                     "a line is longer than 1 MiB");
            }

            break;
        }

        rc = ngx_http_ron_nd_read(st, &dry);

        if (rc != NGX_OK) {
            ngx_http_finalize_request(r, rc);
            return;
        }
    }

    /* what the client is waited for with takes nobody's place */

    if (st->under_way == 0 && !st->asking && !st->more.posted) {
        ngx_http_ron_release(st->ctx);
    }

    if ((st->all && st->text.len == 0) || st->failed) {

        if (st->under_way == 0) {
            ngx_http_ron_nd_finish(st);
            return;
        }

        if (st->all) {
            r->read_event_handler = ngx_http_test_reading;
        }
    }

    if (ngx_http_ron_nd_output(st, 0) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
    }
}


static void
ngx_http_ron_nd_next(ngx_http_ron_nd_t *st, size_t len)
{
    ron_reason_t  reason;

    reason = ngx_http_ron_admit(st->request, st->ctx);

    if (reason == RON_REASON_OK && len > RON_API_NDJSON_LINE) {
        reason = RON_REASON_TOO_LARGE;
    }

    if (reason == RON_REASON_OK && ngx_http_ron_nd_batch(st, len) != NGX_OK) {
        reason = RON_REASON_BUSY;
    }

    if (reason != RON_REASON_OK) {
        ngx_http_ron_nd_fail(st, reason, NULL);
    }
}


/* A full batch, or what there is when nobody else is served. */

static ngx_uint_t
ngx_http_ron_nd_due(ngx_http_ron_nd_t *st, ngx_uint_t dry, size_t *len)
{
    if (st->failed || st->asking
        || st->under_way == NGX_HTTP_RON_ND_BATCHES)
    {
        return 0;
    }

    if (st->text.len < RON_API_NDJSON_BATCH && !st->all
        && !(dry && st->under_way == 0))
    {
        return 0;
    }

    *len = ron_api_ndjson_cut(ron_buf_str(&st->text), st->all);

    return *len != 0;
}


static void
ngx_http_ron_nd_more(ngx_event_t *ev)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_http_ron_ctx_t  *ctx;

    c = ev->data;
    r = c->data;
    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    ngx_http_set_log_request(c->log, r);

    ngx_http_ron_nd_pump(ctx->data);
    ngx_http_run_posted_requests(c);
}


/* *dry: there is nothing in the socket, an event will come. */

static ngx_int_t
ngx_http_ron_nd_read(ngx_http_ron_nd_t *st, ngx_uint_t *dry)
{
    ngx_int_t                 rc;
    ngx_uint_t                came;
    ngx_http_request_t       *r;
    ngx_http_ron_loc_conf_t  *rlcf;

    r = st->request;

    rc = ngx_http_read_unbuffered_request_body(r);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {

        if (!st->header || rc == NGX_HTTP_CLIENT_CLOSED_REQUEST) {
            return rc;
        }

        r->keepalive = 0;
        ngx_http_ron_nd_fail(st, ron_api_reason(rc), NULL);

        return NGX_OK;
    }

    came = (r->request_body->bufs != NULL);

    if (ngx_http_ron_nd_take(st) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    if (rlcf->stream_max && st->total > rlcf->stream_max) {
        r->keepalive = 0;
        ngx_http_ron_nd_fail(st, RON_REASON_TOO_LARGE, NULL);
        return NGX_OK;
    }

    if (!r->reading_body) {
        st->all = 1;
        return NGX_OK;
    }

    /* a stream without an end does not keep a worker that is to go */

    if (ngx_exiting && rlcf->stream_max == 0) {
        r->keepalive = 0;
        ngx_http_ron_nd_fail(st, RON_REASON_DRAINING, NULL);
        return NGX_OK;
    }

    *dry = (rc == NGX_AGAIN && !came);

    return NGX_OK;
}


static ngx_int_t
ngx_http_ron_nd_take(ngx_http_ron_nd_t *st)
{
    ngx_buf_t    *b;
    ron_str_t     chunk;
    ngx_chain_t  *cl;

    for (cl = st->request->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;

        if (!ngx_buf_in_memory(b)) {
            continue;
        }

        while (b->pos < b->last) {
            chunk.data = b->pos;
            chunk.len = ngx_min(b->last - b->pos, RON_FRAME_CHUNK);

            if (ron_api_ndjson_feed(&st->text, chunk) != RON_OK) {
                return NGX_ERROR;
            }

            st->total += chunk.len;
            b->pos += chunk.len;
        }
    }

    st->request->request_body->bufs = NULL;

    return NGX_OK;
}


/* The first `len` bytes of the text become a batch. */

static ngx_int_t
ngx_http_ron_nd_batch(ngx_http_ron_nd_t *st, size_t len)
{
    ngx_int_t                 rc;
    ron_str_t                 text;
    ngx_uint_t                i;
    ron_api_policy_t          policy;
    ngx_http_ron_nd_batch_t  *nb;

    for (i = 0; st->batch[i].stream; i++) { /* void */ }

    nb = &st->batch[i];

    text.data = st->text.data;
    text.len = len;

    nb->batch.first = st->line;

    ngx_http_ron_limit_policy(st->request, st->ctx, &policy);
    ngx_http_ron_nd_space.policy = &policy;

    ngx_http_ron_checks_begin(st->ctx);

    rc = ron_api_ndjson_parse(&ngx_http_ron_nd_space, text, st->ctx->cap,
                              st->results, &nb->batch, &st->out)
                 == RON_OK ? NGX_OK : NGX_ERROR;

    ngx_http_ron_checks_end(st->ctx);

    ngx_http_ron_nd_space.policy = NULL;

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    if (nb->batch.op_n) {

        rc = ngx_http_ron_check_units(st->request)
                 ? ngx_http_ron_nd_ask(st, nb)
                 : ngx_http_ron_nd_send(st, nb);

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        nb->stream = st;
        nb->batch.number = ++st->batches_n;
        st->under_way++;

    } else if (nb->batch.bad_n) {
        nb->batch.number = ++st->batches_n;

        if (ron_api_ndjson_answer(&st->out, &nb->batch, st->results, NULL,
                                  NULL)
            != RON_OK)
        {
            return NGX_ERROR;
        }
    }

    st->line = nb->batch.last + 1;
    st->text.len -= len;

    ngx_memmove(st->text.data, st->text.data + len, st->text.len);

    return NGX_OK;
}


/* What was just parsed: its deadline begins now. */

static ngx_int_t
ngx_http_ron_nd_send(ngx_http_ron_nd_t *st, ngx_http_ron_nd_batch_t *nb)
{
    ngx_uint_t                too_long;
    ron_unit_t               *unit;
    ngx_time_t               *tp;
    ngx_http_ron_loc_conf_t  *rlcf;

    rlcf = ngx_http_get_module_loc_conf(st->request, ngx_http_ron_module);
    tp = ngx_timeofday();

    unit = &ngx_http_ron_nd_space.unit;

    unit->source_us = (uint64_t) tp->sec * 1000000 + tp->msec * 1000;
    unit->deadline_us = ron_clock_mono_us() + (uint64_t) rlcf->deadline * 1000;

    nb->call = ngx_ron_ipc_unit(unit, rlcf->deadline, ngx_http_ron_nd_answer,
                                nb, &too_long);

    return nb->call ? NGX_OK : NGX_ERROR;
}


/*
 * Others are asked first, under the batch's own deadline.  The stream goes on
 * reading meanwhile, and parses nothing: the workspace is everybody's.
 */

static ngx_int_t
ngx_http_ron_nd_ask(ngx_http_ron_nd_t *st, ngx_http_ron_nd_batch_t *nb)
{
    ngx_int_t                  rc;
    ron_unit_t                *unit;
    ngx_time_t                *tp;
    ngx_http_request_t        *r;
    ngx_http_ron_loc_conf_t   *rlcf;
    ngx_http_event_handler_pt  read, write;

    if (st->batches_n == NGX_HTTP_RON_ND_CHECKED) {
        st->request->keepalive = 0;
        ngx_http_ron_nd_fail(st, RON_REASON_TOO_LARGE,
                             "another service checks entries here, and the "
                             "stream is too long for that: begin another");
        return NGX_ERROR;
    }

    r = st->request;
    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);
    tp = ngx_timeofday();

    unit = &ngx_http_ron_nd_space.unit;

    st->ctx->deadline_us = ron_clock_mono_us()
                           + (uint64_t) rlcf->deadline * 1000;

    unit->source_us = (uint64_t) tp->sec * 1000000 + tp->msec * 1000;
    unit->deadline_us = st->ctx->deadline_us;

    ron_buf_reset(&st->wire);

    if (ron_unit_encode(unit, &st->wire) != RON_OK) {
        return NGX_ERROR;
    }

    read = r->read_event_handler;
    write = r->write_event_handler;

    rc = ngx_http_ron_check_unit(r, st->ctx, unit);

    r->read_event_handler = read;
    r->write_event_handler = write;

    if (rc != NGX_DONE) {
        return NGX_ERROR;
    }

    st->asking = nb;

    return NGX_OK;
}


/* The request has a count for the call, and another one for the stream. */

void
ngx_http_ron_ndjson_checked(ngx_http_ron_ctx_t *ctx, ron_reason_t reason,
    const char *text)
{
    ngx_connection_t         *c;
    ngx_http_ron_nd_t        *st;
    ngx_http_request_t       *r;
    ngx_http_ron_nd_batch_t  *nb;

    r = ctx->request;
    c = r->connection;
    st = ctx->data;
    nb = st->asking;

    ngx_http_finalize_request(r, NGX_DONE);

    st->asking = NULL;
    ngx_http_ron_checks_end(ctx);

    switch (reason) {

    case RON_REASON_OK:
        nb->call = ngx_ron_ipc_wire(ron_buf_str(&st->wire),
                                    ngx_http_ron_time_left(ctx) + 1,
                                    ngx_http_ron_nd_answer, nb);
        if (nb->call) {
            break;
        }

        nb->stream = NULL;
        st->under_way--;
        ngx_http_ron_nd_fail(st, RON_REASON_BUSY, NULL);
        break;

    case RON_REASON_BUSY:
    case RON_REASON_UPSTREAM:
    case RON_REASON_RETRY_LATER:

        /* not a word about this batch: nor will there be about the next */

        nb->stream = NULL;
        st->under_way--;
        ngx_http_ron_nd_fail(st, reason, text);
        break;

    default:
        if (ngx_http_ron_nd_refused(st, nb, reason) != NGX_OK) {
            ngx_http_ron_nd_fail(st, RON_REASON_INTERNAL, NULL);
        }
    }

    ngx_http_ron_nd_pump(st);
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_ron_nd_refused(ngx_http_ron_nd_t *st, ngx_http_ron_nd_batch_t *nb,
    ron_reason_t reason)
{
    ron_outcome_t  outcome;

    ngx_memzero(&outcome, sizeof(ron_outcome_t));

    outcome.reason = reason;
    outcome.detail = RON_DETAIL_CHECK;

    nb->stream = NULL;
    st->under_way--;

    return ron_api_ndjson_answer(&st->out, &nb->batch, st->results, NULL,
                                 &outcome)
               == RON_OK ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_ron_nd_answer(void *data, ngx_int_t rc, ron_frame_type_t type,
    ron_str_t payload)
{
    ngx_http_ron_nd_batch_t *nb = data;

    ngx_connection_t   *c;
    ngx_http_ron_nd_t  *st;

    st = nb->stream;
    c = st->request->connection;

    ngx_http_set_log_request(c->log, st->request);

    nb->call = NULL;
    nb->stream = NULL;
    st->under_way--;

    if (rc != NGX_OK) {
        ngx_http_ron_nd_fail(st, rc == NGX_DECLINED ? RON_REASON_RETRY_LATER
                                                    : RON_REASON_TIMEOUT,
                             NULL);

    } else if (type != RON_FRAME_OUTCOME
               || ngx_http_ron_nd_outcome(st, &nb->batch, payload) != NGX_OK)
    {
        ngx_http_ron_nd_fail(st, RON_REASON_INTERNAL, NULL);
    }

    ngx_http_ron_nd_pump(st);
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_ron_nd_outcome(ngx_http_ron_nd_t *st, ron_api_ndbatch_t *b,
    ron_str_t payload)
{
    ron_outcome_t    outcome;
    ron_msg_batch_t  batch;

    if (ron_msg_outcome_get(payload, &batch, &outcome,
                            ngx_http_ron_nd_results, RON_UNIT_OPS_MAX)
        != RON_OK
        || ron_api_ndjson_answer(&st->out, b, st->results, &batch, &outcome)
           != RON_OK)
    {
        ngx_log_error(NGX_LOG_ERR, st->request->connection->log, 0,
                      "ron: the helper's outcome is malformed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* The first reason stays.  Nothing more is read or sent. */

static void
ngx_http_ron_nd_fail(ngx_http_ron_nd_t *st, ron_reason_t reason,
    const char *text)
{
    if (!st->failed) {
        st->failed = 1;
        (void) ron_api_refuse(&st->err, reason, text, NULL);
    }
}


static size_t
ngx_http_ron_nd_unsent(ngx_http_ron_nd_t *st)
{
    size_t        n;
    ngx_chain_t  *cl;

    n = st->out.len;

    for (cl = st->busy; cl; cl = cl->next) {
        n += ngx_buf_size(cl->buf);
    }

    return n;
}


/*
 * NGX_AGAIN: too many results are unsent, nothing is read or parsed.  An event
 * comes for what the socket does not take, and only then.
 */

static ngx_int_t
ngx_http_ron_nd_room(ngx_http_ron_nd_t *st)
{
    ngx_event_t  *rev;

    if (ngx_http_ron_nd_unsent(st) < NGX_HTTP_RON_ND_UNSENT) {
        return NGX_OK;
    }

    if (ngx_http_ron_nd_output(st, 0) == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (ngx_http_ron_nd_unsent(st) < NGX_HTTP_RON_ND_UNSENT) {
        return NGX_OK;
    }

    rev = st->request->connection->read;

    if (rev->timer_set) {
        ngx_del_timer(rev);
    }

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_ron_nd_output(ngx_http_ron_nd_t *st, ngx_uint_t last)
{
    size_t                     n, pos;
    ngx_int_t                  rc;
    ngx_buf_t                 *b;
    ngx_chain_t               *cl, *out, **ll;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = st->request;
    c = r->connection;

    if (st->out.len == 0 && !last && st->busy == NULL) {
        return NGX_OK;
    }

    if (ron_buf_status(&st->out) != RON_OK) {
        return NGX_ERROR;
    }

    if (!st->header) {
        st->header = 1;
        st->ctx->replied = 1;

        r->headers_out.status = NGX_HTTP_OK;
        r->headers_out.content_length_n = -1;
        ngx_str_set(&r->headers_out.content_type, "application/x-ndjson");
        r->headers_out.content_type_len = r->headers_out.content_type.len;
        r->headers_out.content_type_lowcase = NULL;
        r->disable_not_modified = 1;

        rc = ngx_http_send_header(r);

        if (rc == NGX_ERROR || rc > NGX_OK) {
            return NGX_ERROR;
        }
    }

    out = NULL;
    ll = &out;

    for (pos = 0; pos < st->out.len; pos += n) {
        cl = ngx_chain_get_free_buf(r->pool, &st->free);
        if (cl == NULL) {
            return NGX_ERROR;
        }

        b = cl->buf;

        if (b->start == NULL) {
            b->start = ngx_palloc(r->pool, NGX_HTTP_RON_ND_BUF);
            if (b->start == NULL) {
                return NGX_ERROR;
            }

            b->end = b->start + NGX_HTTP_RON_ND_BUF;
        }

        n = ngx_min(st->out.len - pos, NGX_HTTP_RON_ND_BUF);

        b->pos = b->start;
        b->last = ngx_cpymem(b->pos, st->out.data + pos, n);
        b->temporary = 1;
        b->flush = 1;
        b->tag = (ngx_buf_tag_t) &ngx_http_ron_ndjson;

        *ll = cl;
        ll = &cl->next;
    }

    *ll = NULL;
    ron_buf_reset(&st->out);

    rc = ngx_http_output_filter(r, out);

    ngx_chain_update_chains(r->pool, &st->free, &st->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_ron_ndjson);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (last) {
        return ngx_http_send_special(r, NGX_HTTP_LAST);
    }

    if (c->write->timer_set) {
        ngx_del_timer(c->write);
    }

    if (st->busy) {
        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
        ngx_add_timer(c->write, clcf->send_timeout);
    }

    return ngx_handle_write_event(c->write, 0);
}


static void
ngx_http_ron_nd_finish(ngx_http_ron_nd_t *st)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = st->request;

    if (r->connection->read->timer_set) {
        ngx_del_timer(r->connection->read);
    }

    r->read_event_handler = ngx_http_block_reading;
    r->connection->read->handler = st->read_handler;

    if (!st->failed && st->batches_n == 0) {
        ngx_http_ron_nd_fail(st, RON_REASON_MALFORMED,
                             "there is no entry in it");
    }

    if (!st->all) {
        r->keepalive = 0;
    }

    if (st->failed && !st->header && st->out.len == 0) {
        ngx_http_finalize_request(r, ngx_http_ron_problem(r, &st->err));
        return;
    }

    if (st->failed) {
        st->ctx->reason = st->err.reason;

        (void) ron_api_problem(&st->out, &st->err,
                               ngx_ron_str(&st->ctx->corr_id));
        ron_buf_put_u8(&st->out, LF);
    }

    rc = ngx_http_ron_nd_output(st, 1);

    if (ngx_exiting && (st->all || st->leave_at)) {

        /* nothing is unread: lingering would only keep the worker */

        r->reading_body = 0;
        r->lingering_close = 0;
        r->connection->read->ready = 0;

    } else if (rc != NGX_ERROR && !st->all
               && ngx_http_discard_request_body(r) != NGX_OK)
    {
        r->keepalive = 0;
    }

    ngx_http_finalize_request(r, rc);
}
