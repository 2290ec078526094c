
/*
 * GET /ledger/bus: the ledger's bus for wallets on other servers.
 *
 * A stream as that of roots, but nothing is ever read from the journal: who
 * follows it only wants to know what may have changed, so what the ring has no
 * more is said to be lost, and the subscriber forgets all it knew.  A filter
 * says which accounts a commit touched to those who have our secret, and
 * nothing to others, so no capability is needed.
 *
 * A beat every 50 ms says up to when nothing newer was durable: it has the
 * time of the helper's own beat, and there is none while the helper is silent
 * or not running.
 */

#include "ngx_http_ron_stream.h"
#include "ron_api_bus.h"
#include "ron_codec.h"
#include "ron_port.h"


#define NGX_HTTP_RON_BUS_BEAT  50
#define NGX_HTTP_RON_BUS_IDLE  1000


static ngx_uint_t ngx_http_ron_bus_told(ngx_http_request_t *r);
static ngx_int_t ngx_http_ron_bus_from(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, uint64_t *seq, ron_hash_t *root);
static ngx_int_t ngx_http_ron_bus_pump(ngx_http_ron_stream_t *st);
static ngx_uint_t ngx_http_ron_bus_event(ngx_http_ron_stream_t *st);
static void ngx_http_ron_bus_lagged(ngx_http_ron_stream_t *st,
    ron_api_bus_event_t *e, uint64_t lost);
static void ngx_http_ron_bus_live(ngx_http_ron_stream_t *st,
    ron_beat_t *beat);
static void ngx_http_ron_bus_put(ngx_http_ron_stream_t *st,
    const ron_api_bus_event_t *e);
static void ngx_http_ron_bus_tick(ngx_event_t *ev);


static ngx_http_ron_feed_t  ngx_http_ron_bus_feed = {
    ngx_string("text/event-stream"),
    ngx_string(": ping\n\n"),
    RON_D_SERVICE_LEDGER,
    RON_RING_LEDGER,
    ngx_http_ron_bus_pump,
    0
};


/* a worker's */

static ngx_event_t  ngx_http_ron_bus_timer;
static ngx_msec_t   ngx_http_ron_bus_seen;

static struct {
    void  *padding[3];
    int    fd;
} ngx_http_ron_bus_ident = { { NULL, NULL, NULL }, -1 };


/* Only a wallet elsewhere asks as of when an answer is right. */

static ngx_uint_t
ngx_http_ron_bus_told(ngx_http_request_t *r)
{
    ngx_http_ron_loc_conf_t  *rlcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    return rlcf->service && rlcf->service->svc == RON_CAP_SVC_LEDGER;
}


/*
 * The newest commit whose balances are published: what is read after this was
 * called is right as of it, or of a newer one.  0: none, or nobody asks.
 */

uint64_t
ngx_http_ron_bus_seq(ngx_http_request_t *r)
{
    uint64_t      cursor, lost;
    ron_zone_t   *zone;
    ron_event_t   event;

    zone = ngx_ron_zone();

    if (zone == NULL || !ngx_http_ron_bus_told(r)) {
        return 0;
    }

    cursor = ron_zone_event_cursor(zone, RON_RING_LEDGER);

    if (cursor-- == 0
        || ron_zone_event_get(zone, RON_RING_LEDGER, &cursor, &event, &lost)
           != RON_OK)
    {
        return 0;
    }

    return event.seq;
}


ngx_int_t
ngx_http_ron_bus_tell(ngx_http_request_t *r, uint64_t seq)
{
    u_char     buf[NGX_INT64_LEN];
    ngx_str_t  value;

    if (seq == 0 || !ngx_http_ron_bus_told(r)) {
        return NGX_OK;
    }

    value.len = ngx_sprintf(buf, "%uL", seq) - buf;
    value.data = ngx_pnalloc(r->pool, value.len);

    if (value.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(value.data, buf, value.len);

    return ngx_http_ron_header(r, "Ledger-Seq", &value);
}


ngx_int_t
ngx_http_ron_bus_stream(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ngx_int_t               rc, said;
    ron_buf_t              *buf;
    ron_status_t            joined;
    ron_bus_key_t           key;
    ron_api_bus_event_t     e;
    ngx_http_ron_stream_t  *st;

    ngx_memzero(&e, sizeof(ron_api_bus_event_t));

    said = ngx_http_ron_bus_from(r, ctx, &e.seq, &e.root);

    if (said == NGX_ERROR) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "\"since\" is a seq, and \"root\" its root",
                                   "since");
    }

    if (ngx_ron_zone() == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    st = ngx_http_ron_stream_open(r, ctx, &ngx_http_ron_bus_feed, &rc);
    if (st == NULL) {
        return rc;
    }

    joined = ron_bus_join(ngx_ron_zone(), &e.seq, &e.root, &st->cursor);

    if (joined == RON_AGAIN) {
        return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                   "the ledger has not begun", NULL);
    }

    e.type = RON_API_BUS_HELLO;
    e.us = ron_clock_mono_us();
    e.joined = (said == NGX_OK && joined == RON_OK);

    ngx_ron_bus_key((ngx_cycle_t *) ngx_cycle, &key);
    ngx_memcpy(e.check, key.check, RON_BUS_CHECK_LEN);

    buf = ngx_http_ron_scratch();
    ron_buf_put_cstr(buf, "retry: 1000\n\n");
    (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));

    ngx_http_ron_bus_put(st, &e);

    st->seq = e.seq;

    if (!ngx_http_ron_bus_timer.timer_set) {
        ngx_http_ron_bus_timer.handler = ngx_http_ron_bus_tick;
        ngx_http_ron_bus_timer.data = &ngx_http_ron_bus_ident;
        ngx_http_ron_bus_timer.log = ngx_cycle->log;
        ngx_http_ron_bus_timer.cancelable = 1;

        ngx_add_timer(&ngx_http_ron_bus_timer, NGX_HTTP_RON_BUS_BEAT);
    }

    ngx_http_ron_bus_seen = ngx_current_msec;

    return ngx_http_ron_stream_run(st);
}


static ngx_int_t
ngx_http_ron_bus_from(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    uint64_t *seq, ron_hash_t *root)
{
    ngx_int_t  rc;
    ron_str_t  hex;

    rc = ngx_http_ron_stream_since(r, ctx, seq);

    if (rc != NGX_OK) {
        return rc;
    }

    hex = ron_api_arg(ctx->args, ctx->args_n, ron_str("root"));

    return ron_hex_decode(hex, root->b, RON_HASH_LEN) == RON_OK
           ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_ron_bus_pump(ngx_http_ron_stream_t *st)
{
    ron_beat_t  beat;

    ngx_http_ron_bus_seen = ngx_current_msec;

    /* before the ring is read: it then has what the beat speaks of */

    if (ron_zone_beat_read(ngx_ron_zone(), &beat) != RON_OK) {
        ngx_memzero(&beat, sizeof(ron_beat_t));
    }

    while (ngx_http_ron_stream_room(st) >= 3 * RON_API_BUS_EVENT_MAX) {
        if (!ngx_http_ron_bus_event(st)) {
            ngx_http_ron_bus_live(st, &beat);
            break;
        }
    }

    return NGX_OK;
}


/* One event of the ring; 0: there is none. */

static ngx_uint_t
ngx_http_ron_bus_event(ngx_http_ron_stream_t *st)
{
    uint64_t              lost;
    ron_event_t           event;
    ron_status_t          rc;
    ron_api_bus_event_t   e;

    rc = ron_zone_event_get(ngx_ron_zone(), RON_RING_LEDGER, &st->cursor,
                            &event, &lost);

    if (rc != RON_OK) {
        return 0;
    }

    ngx_memzero(&e, sizeof(ron_api_bus_event_t));

    e.type = RON_API_BUS_COMMIT;
    e.seq = event.seq;
    e.count = event.count;

    if (event.type == RON_EVENT_COMMIT && lost == 0
        && event.seq - event.count == st->seq
        && ron_bus_event_get(&event, &e.root, &e.touched) == RON_OK)
    {
        ngx_http_ron_bus_put(st, &e);
        st->seq = event.seq;

        return 1;
    }

    if (event.type == RON_EVENT_HEAD && lost == 0 && event.seq == st->seq) {
        return 1;
    }

    /* what does not join on: nobody knows which accounts were touched */

    ngx_memcpy(e.root.b, event.data, RON_HASH_LEN);
    ngx_http_ron_bus_lagged(st, &e, lost + 1);
    st->seq = event.seq;

    return 1;
}


static void
ngx_http_ron_bus_lagged(ngx_http_ron_stream_t *st, ron_api_bus_event_t *e,
    uint64_t lost)
{
    ngx_ron_count_n(RON_M_BUS_LAGGED_L, 0, RON_D_BUS_ROOT_PUB, 0, 0, lost);
    ngx_ron_count_n(RON_M_DROPS, 0, RON_D_Q_ROOT_PUB, 0, 0, lost);

    ngx_log_error(NGX_LOG_WARN, st->request->connection->log, 0,
                  "ron: a wallet on the bus is slow: %uL commits were not "
                  "read in time, it goes on from seq %uL", lost, e->seq);

    e->type = RON_API_BUS_LAGGED;
    e->lost = lost;

    ngx_http_ron_bus_put(st, e);
}


/* st->tried is when the last beat was sent. */

static void
ngx_http_ron_bus_live(ngx_http_ron_stream_t *st, ron_beat_t *beat)
{
    ron_api_bus_event_t  e;

    if (ngx_current_msec - (ngx_msec_t) st->tried < NGX_HTTP_RON_BUS_BEAT) {
        return;
    }

    if (beat->generation == 0 || beat->state != RON_STATE_RUNNING
        || beat->seq > st->seq)
    {
        /* so that who listens knows that the connection is alive */

        if (ngx_current_msec - st->said >= NGX_HTTP_RON_BUS_IDLE) {
            (void) ngx_http_ron_stream_put(st,
                                  ngx_ron_str(&ngx_http_ron_bus_feed.ping));
        }

        return;
    }

    ngx_memzero(&e, sizeof(ron_api_bus_event_t));

    e.type = RON_API_BUS_BEAT;
    e.seq = st->seq;
    e.us = beat->beat_us;

    ngx_http_ron_bus_put(st, &e);

    st->tried = ngx_current_msec;
}


static void
ngx_http_ron_bus_put(ngx_http_ron_stream_t *st, const ron_api_bus_event_t *e)
{
    ron_buf_t  *buf;

    buf = ngx_http_ron_scratch();
    ron_api_bus_put(buf, e);

    (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));
}


/* As long as there is a stream that is pumped. */

static void
ngx_http_ron_bus_tick(ngx_event_t *ev)
{
    ngx_http_ron_stream_wake();

    if (ngx_current_msec - ngx_http_ron_bus_seen < 20 * NGX_HTTP_RON_BUS_BEAT)
    {
        ngx_add_timer(ev, NGX_HTTP_RON_BUS_BEAT);
    }
}
