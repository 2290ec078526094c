
/*
 * GET /v1/audit/stream: what becomes of wallet operations, as server-sent
 * events or as lines of JSON.
 *
 * Lossy by design: the ring has 1 024 events, and a client that is slower is
 * told how many it lost.  Who needs every operation reads the ledger.
 */

#include "ngx_http_ron_limit.h"
#include "ngx_http_ron_remote.h"
#include "ngx_http_ron_stream.h"
#include "ron_api_event.h"
#include "ron_api_stream.h"
#include "ron_port.h"


#define NGX_HTTP_RON_EVENTS_LISTEN  1000


static ron_status_t ngx_http_ron_events_allowed(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_api_error_t *err);
static ngx_int_t ngx_http_ron_events_pump(ngx_http_ron_stream_t *st);
static void ngx_http_ron_events_listen(ron_zone_t *zone);
static ngx_uint_t ngx_http_ron_events_wanted(ngx_http_ron_stream_t *st,
    const ron_event_t *event);
static void ngx_http_ron_events_lagged(ngx_http_ron_stream_t *st,
    uint64_t lost);


static ngx_http_ron_feed_t  ngx_http_ron_events_sse = {
    ngx_string("text/event-stream"),
    ngx_string(": ping\n\n"),
    RON_D_SERVICE_WALLET,
    RON_RING_WALLET,
    ngx_http_ron_events_pump,
    0
};

static ngx_http_ron_feed_t  ngx_http_ron_events_lines = {
    ngx_string("application/x-ndjson"),
    ngx_string("{\"event\":\"ping\"}\n"),
    RON_D_SERVICE_WALLET,
    RON_RING_WALLET,
    ngx_http_ron_events_pump,
    1
};


ngx_int_t
ngx_http_ron_events_stream(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    char                    id[RON_API_EVENT_ID_LEN + 1];
    uint64_t                since, head, life;
    ngx_int_t               rc, said;
    ron_str_t               place;
    ngx_str_t              *accept;
    ron_buf_t              *buf;
    ron_zone_t             *zone;
    ron_api_error_t         err;
    ngx_http_ron_feed_t    *feed;
    ngx_http_ron_stream_t  *st;

    static ngx_str_t        name = ngx_string("accept");

    since = 0;
    life = 0;

    if (ngx_http_ron_events_allowed(r, ctx, &err) != RON_OK) {
        return ngx_http_ron_problem(r, &err);
    }

    if (ngx_http_ron_remote_ledger(r)) {
        return ngx_http_ron_refuse(r, RON_REASON_NOT_FOUND,
                                   "this wallet's ledger is another server, "
                                   "which has the audit stream", NULL);
    }

    said = ngx_http_ron_stream_place(r, ctx, &place);

    if (said == NGX_OK
        && ron_api_event_id_parse(place, &life, &since) != RON_OK)
    {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "not the id of an event", "Last-Event-ID");
    }

    accept = ngx_http_ron_stream_field(r, &name);
    feed = accept && ngx_strlcasestrn(accept->data,
                                      accept->data + accept->len,
                                      (u_char *) "application/x-ndjson",
                                      sizeof("application/x-ndjson") - 2)
           ? &ngx_http_ron_events_lines : &ngx_http_ron_events_sse;

    zone = ngx_ron_zone();

    if (zone == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    st = ngx_http_ron_stream_open(r, ctx, feed, &rc);
    if (st == NULL) {
        return rc;
    }

    ngx_http_ron_events_listen(zone);

    head = ron_zone_event_cursor(zone, RON_RING_WALLET);
    buf = ngx_http_ron_scratch();

    if (feed == &ngx_http_ron_events_sse) {
        ron_buf_put_cstr(buf, "retry: 1000\n\n");
    }

    st->cursor = head;

    if (said == NGX_OK && life == ron_zone_life(zone) && since <= head) {
        st->cursor = since;

    } else if (said == NGX_OK) {

        /* of another life of the zone: what was in it is gone */

        (void) ron_api_event_id(ron_zone_life(zone), head, id);

        ron_buf_printf(buf, feed == &ngx_http_ron_events_lines
                            ? "{\"event\":\"reset\",\"id\":\"%s\"}\n"
                            : "event: reset\nid: %s\n"
                              "data: {\"id\":\"%s\"}\n\n", id, id);
    }

    (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));

    return ngx_http_ron_stream_run(st);
}


/* Once a second is often enough: the writer looks a minute back. */

static void
ngx_http_ron_events_listen(ron_zone_t *zone)
{
    uint64_t         now;

    static uint64_t  last;

    now = ron_clock_wall_ms();

    if (now - last >= NGX_HTTP_RON_EVENTS_LISTEN) {
        last = now;
        ron_zone_ring_listen(zone, RON_RING_WALLET, now);
    }
}


static ngx_int_t
ngx_http_ron_events_pump(ngx_http_ron_stream_t *st)
{
    uint64_t       seq, lost;
    ron_buf_t     *buf;
    ngx_uint_t     lines;
    ron_zone_t    *zone;
    ron_event_t    event;
    ron_status_t   rc;

    zone = ngx_ron_zone();
    lines = st->feed->lines;

    ngx_http_ron_events_listen(zone);

    while (ngx_http_ron_stream_room(st) >= 2 * RON_API_EVENT_MAX) {

        rc = ron_zone_event_get(zone, RON_RING_WALLET, &st->cursor, &event,
                                &lost);

        if (lost) {
            ngx_http_ron_events_lagged(st, lost);
        }

        if (rc != RON_OK) {

            if (!ngx_http_ron_roots_drained(&seq)) {
                return NGX_OK;
            }

            buf = ngx_http_ron_scratch();
            ron_buf_printf(buf, lines
                                ? "{\"event\":\"final\",\"seq\":%llu}\n"
                                : "retry: 5000\nevent: final\n"
                                  "data: {\"seq\":%llu}\n\n",
                           (unsigned long long) seq);
            (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));

            return NGX_DONE;
        }

        if (!ngx_http_ron_events_wanted(st, &event)) {
            continue;
        }

        buf = ngx_http_ron_scratch();

        if (ron_api_event_put(&event, ron_zone_life(zone), lines, buf)
            == RON_OK)
        {
            (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));
        }
    }

    return NGX_OK;
}


/*
 * Reading, or an operator's act, by capability and policy; of all accounts,
 * so that only rules about none in particular speak of it.
 */

static ron_status_t
ngx_http_ron_events_allowed(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_api_error_t *err)
{
    ron_status_t      rc;
    ngx_uint_t        i;
    ron_api_policy_t  policy;

    static const unsigned  acts[] = { RON_CAP_ACT_READ, RON_CAP_ACT_ADMIN };

    if (ctx->cap->accounts_n) {
        return ron_api_refuse(err, RON_REASON_CAP_INVALID,
                              "the capability is for some accounts only",
                              NULL);
    }

    rc = ron_api_refuse(err, RON_REASON_CAP_INVALID, "the capability must "
                        "have the act read or admin", NULL);

    ngx_http_ron_limit_policy(r, ctx, &policy);

    for (i = 0; i < ron_array_n(acts) && rc != RON_OK; i++) {
        if (ron_cap_allows_act(ctx->cap, RON_CAP_SVC_WALLET, acts[i])) {
            rc = ron_api_policy_read(&policy, ctx->cap, acts[i],
                                     ron_null_str, ron_null_str, err);
        }
    }

    return rc;
}


/* A capability for some assets is told of these. */

static ngx_uint_t
ngx_http_ron_events_wanted(ngx_http_ron_stream_t *st,
    const ron_event_t *event)
{
    ron_str_t  asset;

    return ron_api_event_asset(event, &asset)
           && (st->ctx->cap->assets_n == 0
               || (asset.len
                   && ron_cap_allows_asset(st->ctx->cap, asset)));
}


static void
ngx_http_ron_events_lagged(ngx_http_ron_stream_t *st, uint64_t lost)
{
    ron_buf_t  *buf;

    ngx_ron_count_n(RON_M_BUS_LAGGED_W, 0, RON_D_BUS_EVENTS, 0, 0, lost);
    ngx_ron_count_n(RON_M_QUEUE_DROPPED_W, 0, RON_D_QUEUE_W_EVENTS, 0, 0,
                    lost);

    ngx_log_error(NGX_LOG_WARN, st->request->connection->log, 0,
                  "ron: an audit stream is slow: %uL events are lost to it",
                  lost);

    buf = ngx_http_ron_scratch();

    if (st->feed->lines) {
        ron_buf_printf(buf, "{\"event\":\"lagged\",\"lost\":%llu}\n",
                       (unsigned long long) lost);

    } else {
        ron_buf_printf(buf, "event: lagged\ndata: {\"lost\":%llu}\n\n",
                       (unsigned long long) lost);
    }

    (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));
}
