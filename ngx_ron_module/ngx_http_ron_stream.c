
/*
 * Answers that do not end.
 *
 *     wake, tick, socket -> pump -> feed -> buffer -> client
 *
 * A worker has at most ron_streams of them, each with a buffer of
 * ron_stream_buffer, which is filled anew when all of it has left.  Nobody
 * waits for a client: what it misses meanwhile is in a ring, and when the
 * ring has gone on without it, it is told.
 *
 * A stream has no end of its own, so it must not hold one up.  Its connection
 * is idle for NGINX: a worker that is to leave closes it, by calling its read
 * handler, which is ours.  A stream of HTTP/2 is not a connection that NGINX
 * knows, so the tick looks as well.  The tick cannot be cancelled: while
 * there are streams, a worker that leaves waits for it, and no longer.
 */

#include "ngx_http_ron_stream.h"
#include "ron_port.h"


#define NGX_HTTP_RON_STREAM_TICK   250
#define NGX_HTTP_RON_STREAM_RETRY  250
#define NGX_HTTP_RON_STREAM_SPREAD 1000
#define NGX_HTTP_RON_STREAM_READS  4


typedef struct {
    ngx_uint_t  max;
    size_t      buffer;
    ngx_msec_t  ping;
} ngx_http_ron_stream_conf_t;


static ngx_int_t ngx_http_ron_stream_header(ngx_http_request_t *r,
    ngx_http_ron_feed_t *feed);
static void ngx_http_ron_stream_watch(ngx_http_ron_stream_t *st);
static void ngx_http_ron_stream_pump(ngx_http_ron_stream_t *st);
static ngx_int_t ngx_http_ron_stream_send(ngx_http_ron_stream_t *st);
static ngx_int_t ngx_http_ron_stream_output(ngx_http_ron_stream_t *st,
    ngx_chain_t *out);
static void ngx_http_ron_stream_end(ngx_http_ron_stream_t *st, ngx_int_t rc);
static ngx_uint_t ngx_http_ron_stream_stuck(ngx_http_ron_stream_t *st);
static void ngx_http_ron_stream_leave(ngx_http_ron_stream_t *st);
static void ngx_http_ron_stream_read_done(ngx_http_ron_stream_t *st);
static void ngx_http_ron_stream_read_event(ngx_event_t *ev);
static void ngx_http_ron_stream_write(ngx_http_request_t *r);
static void ngx_http_ron_stream_woken(ngx_event_t *ev);
static void ngx_http_ron_stream_tick(ngx_event_t *ev);
static void ngx_http_ron_stream_each(
    void (*handler)(ngx_http_ron_stream_t *st));
static void ngx_http_ron_stream_tend(ngx_http_ron_stream_t *st);
static void ngx_http_ron_stream_depth(void);
static void ngx_http_ron_stream_destroy(void *data);
static void ngx_http_ron_stream_close(ngx_http_ron_stream_t *st);
static void ngx_http_ron_stream_gauge(ngx_uint_t service, ngx_int_t n);

static ngx_int_t ngx_http_ron_stream_init_process(ngx_cycle_t *cycle);
static void *ngx_http_ron_stream_create_conf(ngx_conf_t *cf);
static char *ngx_http_ron_stream_init_conf(ngx_conf_t *cf, void *conf);


static ngx_conf_num_bounds_t  ngx_http_ron_stream_bounds = {
    ngx_conf_check_num_bounds, 0, 65536
};


static ngx_command_t  ngx_http_ron_stream_commands[] = {

    { ngx_string("ron_streams"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_stream_conf_t, max),
      &ngx_http_ron_stream_bounds },

    { ngx_string("ron_stream_buffer"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_stream_conf_t, buffer),
      NULL },

    { ngx_string("ron_stream_ping"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_stream_conf_t, ping),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_ron_stream_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_ron_stream_create_conf,       /* create main configuration */
    ngx_http_ron_stream_init_conf,         /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_ron_stream_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_stream_module_ctx,       /* module context */
    ngx_http_ron_stream_commands,          /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_ron_stream_init_process,      /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/* a worker's */

static ngx_queue_t  ngx_http_ron_streams;
static ngx_uint_t   ngx_http_ron_streams_n;
static ngx_uint_t   ngx_http_ron_streams_of[RON_D_SERVICE_N];
static ngx_uint_t   ngx_http_ron_streams_reads;
static ngx_uint_t   ngx_http_ron_streams_waiting;
static ngx_uint_t   ngx_http_ron_streams_woken;
static ngx_event_t  ngx_http_ron_streams_tick;
static ngx_event_t  ngx_http_ron_streams_wake;


ngx_http_ron_stream_t *
ngx_http_ron_stream_open(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_feed_t *feed, ngx_int_t *rc)
{
    ngx_pool_cleanup_t          *cln;
    ngx_http_ron_stream_t       *st;
    ngx_http_ron_stream_conf_t  *conf;

    conf = ngx_http_get_module_main_conf(r, ngx_http_ron_stream_module);

    if (ngx_http_ron_streams_n >= conf->max || ngx_exiting) {
        *rc = ngx_http_ron_refuse(r, RON_REASON_BUSY,
                                  "there are too many streams", NULL);
        return NULL;
    }

    *rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    st = ngx_pcalloc(r->pool, sizeof(ngx_http_ron_stream_t));
    if (st == NULL) {
        return NULL;
    }

    st->buf = ngx_create_temp_buf(r->pool, conf->buffer);
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (st->buf == NULL || cln == NULL) {
        return NULL;
    }

    st->request = r;
    st->ctx = ctx;
    st->feed = feed;
    st->said = ngx_current_msec;
    st->gone = 1;

    cln->handler = ngx_http_ron_stream_destroy;
    cln->data = st;

    ngx_http_set_ctx(r, st, ngx_http_ron_stream_module);

    return st;
}


ngx_int_t
ngx_http_ron_stream_run(ngx_http_ron_stream_t *st)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = st->request;

    rc = ngx_http_ron_stream_header(r, st->feed);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    /* without a first word the header would wait for the second one */

    if (st->buf->pos == st->buf->last
        && ngx_http_send_special(r, NGX_HTTP_FLUSH) == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    ngx_http_ron_stream_watch(st);
    ngx_http_ron_stream_pump(st);

    return NGX_DONE;
}


static ngx_int_t
ngx_http_ron_stream_header(ngx_http_request_t *r, ngx_http_ron_feed_t *feed)
{
    ngx_http_ron_ctx_t  *ctx;

    static ngx_str_t     no_store = ngx_string("no-store");
    static ngx_str_t     no = ngx_string("no");

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);
    ctx->replied = 1;

    /* a proxy in front must not collect it */

    if (ngx_http_ron_header(r, "Cache-Control", &no_store) != NGX_OK
        || ngx_http_ron_header(r, "X-Accel-Buffering", &no) != NGX_OK)
    {
        return NGX_ERROR;
    }

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = -1;
    r->headers_out.content_type = feed->type;
    r->headers_out.content_type_len = feed->type.len;
    r->headers_out.content_type_lowcase = NULL;
    r->disable_not_modified = 1;

    return ngx_http_send_header(r);
}


/* From here on the request is the stream's. */

static void
ngx_http_ron_stream_watch(ngx_http_ron_stream_t *st)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = st->request;
    c = r->connection;

    r->main->count++;
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_ron_stream_write;

    st->read_handler = c->read->handler;
    c->read->handler = ngx_http_ron_stream_read_event;
    c->idle = 1;

    st->gone = 0;
    ngx_queue_insert_tail(&ngx_http_ron_streams, &st->queue);
    ngx_http_ron_streams_n++;
    ngx_http_ron_stream_gauge(st->feed->service, 1);

    if (!ngx_http_ron_streams_tick.timer_set) {
        ngx_add_timer(&ngx_http_ron_streams_tick, NGX_HTTP_RON_STREAM_TICK);
    }
}


static void
ngx_http_ron_stream_gauge(ngx_uint_t service, ngx_int_t n)
{
    ngx_http_ron_streams_of[service] += n;

    if (ngx_ron_zone()) {
        ron_metric_set(ngx_ron_zone(), ngx_ron_slot(), RON_M_STREAMS_OPEN,
                       service, 0, 0, 0, ngx_http_ron_streams_of[service]);
    }
}


size_t
ngx_http_ron_stream_room(ngx_http_ron_stream_t *st)
{
    return st->buf->end - st->buf->last;
}


size_t
ngx_http_ron_stream_put(ngx_http_ron_stream_t *st, ron_str_t s)
{
    size_t  n;

    n = ngx_min(s.len, ngx_http_ron_stream_room(st));

    /* nothing may be at no address, which no copy may be from */

    if (n != 0) {
        st->buf->last = ngx_cpymem(st->buf->last, s.data, n);
    }

    return n;
}


static void
ngx_http_ron_stream_pump(ngx_http_ron_stream_t *st)
{
    ngx_int_t   rc;
    ngx_buf_t  *b;

    b = st->buf;

    while (!st->gone) {

        if (st->busy) {
            if (b->pos != b->last) {
                return;
            }

            st->busy = 0;
            b->pos = b->start;
            b->last = b->start;
        }

        if (st->last && b->pos == b->last) {
            ngx_http_ron_stream_end(st, NGX_OK);
            return;
        }

        if (st->leave && !st->reading) {
            ngx_http_ron_stream_leave(st);
            return;
        }

        if (!st->last) {
            st->last = (st->feed->pump(st) == NGX_DONE);
        }

        if (b->pos != b->last) {
            rc = ngx_http_ron_stream_send(st);

            if (rc == NGX_ERROR) {
                ngx_http_ron_stream_end(st, NGX_ERROR);
                return;
            }

        } else if (!st->last) {
            return;
        }
    }
}


static ngx_int_t
ngx_http_ron_stream_send(ngx_http_ron_stream_t *st)
{
    st->busy = 1;
    st->said = ngx_current_msec;
    st->buf->flush = 1;
    st->out.buf = st->buf;
    st->out.next = NULL;

    return ngx_http_ron_stream_output(st, &st->out);
}


static ngx_int_t
ngx_http_ron_stream_output(ngx_http_ron_stream_t *st, ngx_chain_t *out)
{
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = st->request;
    c = r->connection;

    if (ngx_http_output_filter(r, out) == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (st->buf->pos == st->buf->last) {
        if (c->write->timer_set) {
            ngx_del_timer(c->write);
        }

    } else if (out || !c->write->timer_set) {
        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
        ngx_add_timer(c->write, clcf->send_timeout);
    }

    return ngx_handle_write_event(c->write, 0);
}


static void
ngx_http_ron_stream_write(ngx_http_request_t *r)
{
    ngx_connection_t       *c;
    ngx_http_ron_stream_t  *st;

    c = r->connection;
    st = ngx_http_get_module_ctx(r, ngx_http_ron_stream_module);

    if (st->gone) {
        return;
    }

    if (c->write->timedout) {
        c->timedout = 1;
        ngx_http_ron_stream_end(st, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (st->busy && ngx_http_ron_stream_output(st, NULL) != NGX_OK) {
        ngx_http_ron_stream_end(st, NGX_ERROR);
        return;
    }

    ngx_http_ron_stream_pump(st);
}


/* The socket may have been ready meanwhile, and nobody looked. */

void
ngx_http_ron_stream_resume(ngx_http_ron_stream_t *st)
{
    ngx_http_ron_stream_read_done(st);

    if (st->gone) {
        return;
    }

    /* whoever waits for a thread is before this one */

    ngx_queue_remove(&st->queue);
    ngx_queue_insert_tail(&ngx_http_ron_streams, &st->queue);

    st->request->write_event_handler = ngx_http_ron_stream_write;

    ngx_http_ron_stream_write(st->request);
}


/*
 * Each read has a reader of the ledger for itself, with descriptors and a
 * cache: after a reload all clients come back at once, and most of them wait.
 */

ngx_int_t
ngx_http_ron_stream_read(ngx_http_ron_stream_t *st)
{
    if (ngx_http_ron_streams_reads == NGX_HTTP_RON_STREAM_READS
        || ngx_http_ron_streams_woken)
    {
        ngx_http_ron_streams_waiting = 1;
        return NGX_BUSY;
    }

    if (ngx_http_ron_task_post(st->request, st->task) != NGX_DONE) {
        return NGX_ERROR;
    }

    st->reading = 1;
    ngx_http_ron_streams_reads++;

    return NGX_OK;
}


static void
ngx_http_ron_stream_read_done(ngx_http_ron_stream_t *st)
{
    if (!st->reading) {
        return;
    }

    st->reading = 0;
    ngx_http_ron_streams_reads--;

    if (ngx_http_ron_streams_waiting) {
        ngx_http_ron_streams_waiting = 0;
        ngx_http_ron_streams_woken = 1;
        ngx_http_ron_stream_wake();
    }
}


/*
 * Not while a thread reads for it.  What cannot be sent at once when the
 * worker leaves is not waited for.
 */

static void
ngx_http_ron_stream_end(ngx_http_ron_stream_t *st, ngx_int_t rc)
{
    ngx_http_request_t  *r;

    r = st->request;

    if (st->gone) {
        return;
    }

    if (rc == NGX_OK) {
        rc = ngx_http_send_special(r, NGX_HTTP_LAST);

        if (rc == NGX_AGAIN && !ngx_exiting) {
            rc = NGX_OK;
        }

        if (rc == NGX_AGAIN) {
            rc = NGX_ERROR;
        }
    }

    ngx_http_ron_stream_close(st);
    ngx_http_finalize_request(r, rc);
}


/* There are bytes that the client does not take. */

static ngx_uint_t
ngx_http_ron_stream_stuck(ngx_http_ron_stream_t *st)
{
    return st->busy && st->buf->pos != st->buf->last && !st->reading;
}


/* The worker is to leave: the client shall come back, to another one. */

static void
ngx_http_ron_stream_leave(ngx_http_ron_stream_t *st)
{
    ngx_int_t   rc;
    ron_buf_t  *buf;

    buf = ngx_http_ron_scratch();

    ron_buf_printf(buf, st->feed->lines
                        ? "{\"event\":\"retry\",\"retry_ms\":%lu}\n"
                        : "retry: %lu\n: the server reloads\n\n",
                   (unsigned long) (NGX_HTTP_RON_STREAM_RETRY
                                    + ngx_random()
                                      % NGX_HTTP_RON_STREAM_SPREAD));

    (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));

    rc = ngx_http_ron_stream_send(st);

    if (rc == NGX_OK && st->buf->pos != st->buf->last) {
        rc = NGX_ERROR;
    }

    ngx_http_ron_stream_end(st, rc);
}


/* NGINX closes idle connections through their read handlers. */

static void
ngx_http_ron_stream_read_event(ngx_event_t *ev)
{
    ngx_connection_t       *c;
    ngx_http_request_t     *r;
    ngx_http_ron_stream_t  *st;

    c = ev->data;
    r = c->data;
    st = ngx_http_get_module_ctx(r, ngx_http_ron_stream_module);

    if (!c->close || c->error) {
        st->read_handler(ev);
        return;
    }

    ngx_http_set_log_request(c->log, r);

    st->leave = 1;

    if (ngx_http_ron_stream_stuck(st)) {
        ngx_http_ron_stream_end(st, NGX_ERROR);

    } else {
        ngx_http_ron_stream_pump(st);
    }

    ngx_http_run_posted_requests(c);
}


void
ngx_http_ron_stream_wake(void)
{
    if (ngx_http_ron_streams_n == 0) {
        ngx_http_ron_streams_woken = 0;
        return;
    }

    if (!ngx_http_ron_streams_wake.posted) {
        ngx_post_event(&ngx_http_ron_streams_wake, &ngx_posted_events);
    }
}


static void
ngx_http_ron_stream_woken(ngx_event_t *ev)
{
    ngx_http_ron_streams_woken = 0;
    ngx_http_ron_stream_each(ngx_http_ron_stream_pump);
}


static void
ngx_http_ron_stream_tick(ngx_event_t *ev)
{
    ngx_http_ron_stream_each(ngx_http_ron_stream_tend);
    ngx_http_ron_stream_depth();

    if (ngx_http_ron_streams_n) {
        ngx_add_timer(ev, NGX_HTTP_RON_STREAM_TICK);
    }
}


static void
ngx_http_ron_stream_each(void (*handler)(ngx_http_ron_stream_t *st))
{
    ngx_queue_t             all, *q;
    ngx_connection_t       *c;
    ngx_http_ron_stream_t  *st;

    /* the end of one may be the end of others: none is kept in hand */

    ngx_queue_init(&all);

    if (!ngx_queue_empty(&ngx_http_ron_streams)) {
        ngx_queue_add(&all, &ngx_http_ron_streams);
        ngx_queue_init(&ngx_http_ron_streams);
    }

    while (!ngx_queue_empty(&all)) {
        q = ngx_queue_head(&all);

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&ngx_http_ron_streams, q);

        st = ngx_queue_data(q, ngx_http_ron_stream_t, queue);
        c = st->request->connection;

        ngx_http_set_log_request(c->log, st->request);

        handler(st);
        ngx_http_run_posted_requests(c);
    }
}


/* A ping, another try of what did not work, or the end. */

static void
ngx_http_ron_stream_tend(ngx_http_ron_stream_t *st)
{
    ngx_http_ron_stream_conf_t  *conf;

    st->later = 0;

    if (ngx_exiting) {
        st->leave = 1;

        if (ngx_http_ron_stream_stuck(st)) {
            ngx_http_ron_stream_end(st, NGX_ERROR);
            return;
        }
    }

    ngx_http_ron_stream_pump(st);

    if (st->gone || st->busy || st->reading) {
        return;
    }

    conf = ngx_http_get_module_main_conf(st->request,
                                         ngx_http_ron_stream_module);

    if (ngx_current_msec - st->said < conf->ping) {
        return;
    }

    (void) ngx_http_ron_stream_put(st, ngx_ron_str(&st->feed->ping));

    if (ngx_http_ron_stream_send(st) == NGX_ERROR) {
        ngx_http_ron_stream_end(st, NGX_ERROR);
    }
}


/* How far the slowest one is behind its ring. */

static void
ngx_http_ron_stream_depth(void)
{
    uint32_t                slot;
    uint64_t                n, depth[RON_RING_N];
    ngx_queue_t            *q;
    ron_zone_t             *zone;
    ngx_http_ron_stream_t  *st;

    zone = ngx_ron_zone();

    if (zone == NULL) {
        return;
    }

    ngx_memzero(depth, sizeof(depth));

    for (q = ngx_queue_head(&ngx_http_ron_streams);
         q != ngx_queue_sentinel(&ngx_http_ron_streams);
         q = ngx_queue_next(q))
    {
        st = ngx_queue_data(q, ngx_http_ron_stream_t, queue);

        n = ron_zone_event_cursor(zone, st->feed->ring) - st->cursor;
        n = ngx_min(n, RON_ZONE_EVENTS);

        depth[st->feed->ring] = ngx_max(depth[st->feed->ring], n);
    }

    slot = ngx_ron_slot();

    ron_metric_set(zone, slot, RON_M_QUEUE_DEPTH_L, 0, RON_D_Q_ROOT_PUB, 0, 0,
                   depth[RON_RING_LEDGER]);
    ron_metric_set(zone, slot, RON_M_QUEUE_DEPTH_W, 0, RON_D_QUEUE_W_EVENTS,
                   0, 0, depth[RON_RING_WALLET]);
}


/* A thread's answer may have found its request terminated. */

static void
ngx_http_ron_stream_destroy(void *data)
{
    ngx_http_ron_stream_t  *st = data;

    if (!st->gone) {
        ngx_ron_unclosed(st->request, "a stream");
    }

    ngx_http_ron_stream_close(data);
    ngx_http_ron_stream_read_done(data);
}


static void
ngx_http_ron_stream_close(ngx_http_ron_stream_t *st)
{
    ngx_connection_t  *c;

    if (st->gone) {
        return;
    }

    c = st->request->connection;

    c->read->handler = st->read_handler;
    c->idle = 0;

    st->gone = 1;
    ngx_queue_remove(&st->queue);
    ngx_http_ron_streams_n--;
    ngx_http_ron_stream_gauge(st->feed->service, -1);
}


ngx_str_t *
ngx_http_ron_stream_field(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].key.len == name->len
                && ngx_strncmp(h[i].lowcase_key, name->data, name->len) == 0)
            {
                return &h[i].value;
            }
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_ron_stream_place(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_str_t *place)
{
    ngx_str_t        *value;

    static ngx_str_t  name = ngx_string("last-event-id");

    value = ngx_http_ron_stream_field(r, &name);

    *place = value ? ngx_ron_str(value)
                   : ron_api_arg(ctx->args, ctx->args_n, ron_str("since"));

    return place->data == NULL || place->len == 0 ? NGX_DECLINED : NGX_OK;
}


ngx_int_t
ngx_http_ron_stream_since(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    uint64_t *since)
{
    ron_str_t  place;

    if (ngx_http_ron_stream_place(r, ctx, &place) != NGX_OK) {
        return NGX_DECLINED;
    }

    return ron_api_u64(place, since) == RON_OK ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_ron_stream_init_process(ngx_cycle_t *cycle)
{
    ngx_event_t  *ev;

    ngx_queue_init(&ngx_http_ron_streams);

    ev = &ngx_http_ron_streams_tick;
    ev->handler = ngx_http_ron_stream_tick;
    ev->data = &ngx_ron_ident;
    ev->log = cycle->log;

    ev = &ngx_http_ron_streams_wake;
    ev->handler = ngx_http_ron_stream_woken;
    ev->data = &ngx_ron_ident;
    ev->log = cycle->log;

    ngx_http_ron_roots_init();

    return NGX_OK;
}


static void *
ngx_http_ron_stream_create_conf(ngx_conf_t *cf)
{
    ngx_http_ron_stream_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_stream_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->max = NGX_CONF_UNSET_UINT;
    conf->buffer = NGX_CONF_UNSET_SIZE;
    conf->ping = NGX_CONF_UNSET_MSEC;

    return conf;
}


static char *
ngx_http_ron_stream_init_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_ron_stream_conf_t *scf = conf;

    ngx_conf_init_uint_value(scf->max, 256);
    ngx_conf_init_size_value(scf->buffer, 16384);
    ngx_conf_init_msec_value(scf->ping,
                             ron_timeout_info(RON_TIMEOUT_STREAM_PING)->ms);

    if (scf->buffer < 4096 || scf->buffer > RON_FRAME_CHUNK) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"ron_stream_buffer\" must be from 4k to 64k");
        return NGX_CONF_ERROR;
    }

    if (scf->ping < 1000 || scf->ping > 3600 * 1000) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"ron_stream_ping\" must be from 1s to 1h");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
