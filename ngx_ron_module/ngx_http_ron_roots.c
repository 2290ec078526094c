
/*
 * GET /ledger/roots/stream: each root that becomes durable.
 *
 * The helper pushes every commit to every worker; that wakes the streams,
 * which read the ring of the zone, each with a cursor of its own.  Where the
 * ring does not join on to what a stream has sent (it begins, it was too
 * slow, the helper is another one), roots are read from the journal until it
 * does, so no root is ever left out; what a slow client makes us read again
 * is counted, and the client is told.
 */

#include "ngx_http_ron_stream.h"
#include "ron_api_stream.h"


static ngx_int_t ngx_http_ron_roots_pump(ngx_http_ron_stream_t *st);
static ngx_uint_t ngx_http_ron_roots_ring(ngx_http_ron_stream_t *st);
static void ngx_http_ron_roots_task(ngx_http_ron_stream_t *st);
static ron_status_t ngx_http_ron_roots_work(ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_roots_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task);
static void ngx_http_ron_roots_watch(uint64_t seq,
    const ron_msg_commit_t *commit);
static uint64_t ngx_http_ron_roots_head(void);
static void ngx_http_ron_roots_lagged(ngx_http_ron_stream_t *st,
    uint64_t lost);


static ngx_http_ron_feed_t  ngx_http_ron_roots_feed = {
    ngx_string("text/event-stream"),
    ngx_string(": ping\n\n"),
    RON_D_SERVICE_LEDGER,
    RON_RING_LEDGER,
    ngx_http_ron_roots_pump,
    0
};


/* a worker's: as the helper said last */

static uint64_t          ngx_http_ron_roots_seq;
static ngx_uint_t        ngx_http_ron_roots_ended;
static ron_msg_commit_t  ngx_http_ron_roots_final;


void
ngx_http_ron_roots_init(void)
{
    ngx_ron_ipc_watch(ngx_http_ron_roots_watch);
}


static void
ngx_http_ron_roots_watch(uint64_t seq, const ron_msg_commit_t *commit)
{
    ngx_http_ron_roots_seq = seq;
    ngx_http_ron_roots_ended = 0;

    if (commit && commit->count == 0) {
        ngx_http_ron_roots_ended = 1;
        ngx_http_ron_roots_final = *commit;
    }

    ngx_http_ron_stream_wake();
}


ngx_uint_t
ngx_http_ron_roots_drained(uint64_t *seq)
{
    *seq = ngx_http_ron_roots_final.seq;

    return ngx_http_ron_roots_ended;
}


/* The newest that anybody here knows of. */

static uint64_t
ngx_http_ron_roots_head(void)
{
    uint64_t      head, cursor, lost;
    ron_beat_t    beat;
    ron_zone_t   *zone;
    ron_event_t   event;

    head = ngx_http_ron_roots_seq;
    zone = ngx_ron_zone();

    if (zone == NULL) {
        return head;
    }

    if (ron_zone_beat_read(zone, &beat) == RON_OK) {
        head = ngx_max(head, beat.seq);
    }

    cursor = ron_zone_event_cursor(zone, RON_RING_LEDGER);

    if (cursor) {
        cursor--;

        if (ron_zone_event_get(zone, RON_RING_LEDGER, &cursor, &event,
                               &lost) == RON_OK
            && event.type == RON_EVENT_COMMIT)
        {
            head = ngx_max(head, event.seq);
        }
    }

    return head;
}


ngx_int_t
ngx_http_ron_roots_stream(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t                since, head;
    ngx_int_t               rc, said;
    ron_buf_t              *buf;
    ngx_http_ron_task_t    *task;
    ngx_http_ron_stream_t  *st;

    said = ngx_http_ron_stream_since(r, ctx, &since);

    if (said == NGX_ERROR) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "not a sequence number", "Last-Event-ID");
    }

    head = ngx_http_ron_roots_head();

    st = ngx_http_ron_stream_open(r, ctx, &ngx_http_ron_roots_feed, &rc);
    if (st == NULL) {
        return rc;
    }

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_roots_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    task->always = true;
    task->after = ngx_http_ron_roots_after;
    task->flag = true;

    buf = ngx_http_ron_scratch();
    ron_buf_put_cstr(buf, "retry: 1000\n\n");

    if (said == NGX_OK && since > head) {

        /* not of this ledger, or of one that was restored since */

        ron_buf_printf(buf, "event: reset\ndata: {\"seq\":%llu}\n\n",
                       (unsigned long long) head);
        said = NGX_DECLINED;
    }

    (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));

    /* a client that does not say what it has begins with the newest */

    st->seq = said == NGX_OK ? since : head - (head > 0);
    st->task = task;
    st->behind = 1;

    return ngx_http_ron_stream_run(st);
}


static ngx_int_t
ngx_http_ron_roots_pump(ngx_http_ron_stream_t *st)
{
    ron_str_t   s;
    ron_buf_t  *buf;

    for ( ;; ) {

        if (st->reading) {
            return NGX_OK;
        }

        s = ron_buf_str(&st->task->out);

        if (st->taken < s.len) {
            s.data += st->taken;
            s.len -= st->taken;
            st->taken += ngx_http_ron_stream_put(st, s);

            return NGX_OK;
        }

        if (st->behind) {
            if (!st->later) {
                ngx_http_ron_roots_task(st);
            }

            return NGX_OK;
        }

        if (ngx_http_ron_stream_room(st) < 2 * RON_API_SSE_ROOT_MAX) {
            return NGX_OK;
        }

        if (ngx_http_ron_roots_ring(st)) {
            continue;
        }

        if (ngx_http_ron_roots_seq > st->seq
            && ngx_http_ron_roots_seq > st->tried)
        {
            st->behind = 1;
            continue;
        }

        if (ngx_http_ron_roots_ended
            && st->seq >= ngx_http_ron_roots_final.seq)
        {
            buf = ngx_http_ron_scratch();
            ron_buf_put_cstr(buf, "retry: 5000\n");
            ron_api_sse_root(buf, "final", ngx_http_ron_roots_final.seq,
                             ngx_http_ron_roots_final.time_ms,
                             &ngx_http_ron_roots_final.root);
            (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));

            return NGX_DONE;
        }

        return NGX_OK;
    }
}


/* One event of the ring; 0: there is none. */

static ngx_uint_t
ngx_http_ron_roots_ring(ngx_http_ron_stream_t *st)
{
    uint64_t       lost;
    ron_buf_t     *buf;
    ron_hash_t     root;
    ron_zone_t    *zone;
    ron_event_t    event;
    ron_status_t   rc;

    zone = ngx_ron_zone();

    if (zone == NULL) {
        return 0;
    }

    rc = ron_zone_event_get(zone, RON_RING_LEDGER, &st->cursor, &event, &lost);

    if (lost) {
        ngx_http_ron_roots_lagged(st, lost);
        st->behind = 1;
        return 1;
    }

    if (rc != RON_OK) {
        return 0;
    }

    if (event.type != RON_EVENT_COMMIT || event.seq <= st->seq
        || event.data_len < RON_HASH_LEN)
    {
        return 1;
    }

    if (event.seq - event.count != st->seq) {
        st->behind = 1;
        return 1;
    }

    ngx_memcpy(root.b, event.data, RON_HASH_LEN);

    buf = ngx_http_ron_scratch();
    ron_api_sse_root(buf, NULL, event.seq, event.time_ms, &root);
    (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));
    st->seq = event.seq;

    return 1;
}


static void
ngx_http_ron_roots_lagged(ngx_http_ron_stream_t *st, uint64_t lost)
{
    ron_buf_t  *buf;

    ngx_ron_count_n(RON_M_BUS_LAGGED_L, 0, RON_D_BUS_ROOT_PUB, 0, 0, lost);
    ngx_ron_count_n(RON_M_DROPS, 0, RON_D_Q_ROOT_PUB, 0, 0, lost);

    ngx_log_error(NGX_LOG_WARN, st->request->connection->log, 0,
                  "ron: a stream of roots is slow: %uL commits were not read "
                  "in time, it goes on from seq %uL", lost, st->seq);

    buf = ngx_http_ron_scratch();
    ron_api_sse_lagged(buf, lost, st->seq);
    (void) ngx_http_ron_stream_put(st, ron_buf_str(buf));
}


/* ---- roots that the ring has no more ------------------------------------ */

static void
ngx_http_ron_roots_task(ngx_http_ron_stream_t *st)
{
    ngx_http_ron_task_t  *task;

    task = st->task;

    ron_buf_reset(&task->out);
    st->taken = 0;

    task->a = st->seq;
    task->b = ngx_max((st->buf->end - st->buf->start) / RON_API_SSE_ROOT_MAX,
                      1);
    task->c = 0;

    /* what is committed from now on is in the ring */

    if (ngx_ron_zone()) {
        st->cursor = ron_zone_event_cursor(ngx_ron_zone(),
                                           RON_RING_LEDGER);
    }

    st->later = (ngx_http_ron_stream_read(st) == NGX_ERROR);
}


static ron_status_t
ngx_http_ron_roots_work(ngx_http_ron_task_t *task)
{
    return ron_api_sse_roots(task->reader, task->a, task->b, &task->out,
                             &task->a, &task->c);
}


static ngx_int_t
ngx_http_ron_roots_after(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_task_t *task)
{
    ngx_http_ron_stream_t  *st;

    st = ngx_http_get_module_ctx(r, ngx_http_ron_stream_module);

    if (st->gone || r->connection->error) {

        /* read_done() is for its destruction */

        return NGX_ERROR;
    }

    if (task->rc == RON_OK) {
        task->flag = true;
        st->seq = task->a;
        st->behind = (task->c == task->b);
        st->tried = task->c ? 0 : ngx_http_ron_roots_seq;

    } else {
        ron_buf_reset(&task->out);
        st->later = 1;

        if (task->flag) {
            task->flag = false;
            ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                          "ron: roots cannot be read: %s, trying again",
                          ron_status_name(task->rc));
        }
    }

    ngx_http_ron_stream_resume(st);

    return NGX_DONE;
}
