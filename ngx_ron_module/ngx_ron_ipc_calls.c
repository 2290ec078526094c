
/*
 * A worker's calls to the helper that wait for an answer: the pending table.
 *
 * A call is owned by the worker and not by the request that made it: it has
 * its own copy of what was sent, so that the same bytes can be sent again to
 * the next helper, and a time-out.  Nearly all calls have the same, so they are
 * due in the order in which they came, and one timer is set for all of them;
 * who is due before the last one has a timer of its own.  Neither is
 * cancelable: a worker that is shutting down waits for its answers, and not
 * for ever.
 *
 *     NEW ---- ready ----> SENT ---- answer ----> done, NGX_OK
 *      ^                    |
 *      +---- connection lost, tries left
 *                           +---- deadline, last try ----> done, NGX_ABORT
 *
 * A try has a second.  When nothing at all was heard in it, the connection is
 * given up, and everything goes again to whoever answers next.  A helper that
 * does answer others has this call as well: it is not sent twice to the same
 * one, and only its time goes on.
 *
 * Once a try has ended without an answer nobody knows what became of it, so
 * a later "not now" is no answer either: it says nothing of the earlier copy.
 */

#include "ngx_ron_ipc.h"


#define NGX_RON_IPC_CALLS        4096
#define NGX_RON_IPC_FREE         256
#define NGX_RON_IPC_KEEP         16384
#define NGX_RON_IPC_TRIES        3
#define NGX_RON_IPC_TICK         100

/* Ids rise by one: calls share a slot only when one outlives thousands. */
#define ngx_ron_ipc_slot(ipc, id)                                             \
    (&(ipc)->table[(id) & (NGX_RON_IPC_TABLE - 1)])


static void ngx_ron_ipc_done(ngx_ron_call_t *call, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static void ngx_ron_ipc_due_at(ngx_ron_ipc_t *ipc, ngx_ron_call_t *call,
    ngx_msec_t timeout);
static void ngx_ron_ipc_due_not(ngx_ron_ipc_t *ipc, ngx_ron_call_t *call);
static void ngx_ron_ipc_due(ngx_event_t *ev);
static void ngx_ron_ipc_timeout(ngx_event_t *ev);
static void ngx_ron_ipc_give_up(ngx_ron_call_t *call);
static void ngx_ron_ipc_retry(ngx_event_t *ev);
static void ngx_ron_ipc_tick(ngx_event_t *ev);
static ngx_uint_t ngx_ron_ipc_is_late(ngx_ron_call_t *call);
static ngx_int_t ngx_ron_ipc_late(ngx_ron_call_t *call);
static ngx_msec_t ngx_ron_ipc_jitter(void);
static void ngx_ron_ipc_count_retry(ngx_ron_call_t *call);
static void ngx_ron_ipc_count_timeout(ngx_ron_call_t *call);
static ngx_uint_t ngx_ron_ipc_service(ngx_ron_call_t *call);


void
ngx_ron_ipc_calls_init(void)
{
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;

    ngx_queue_init(&ipc->calls);
    ngx_queue_init(&ipc->free);
    ngx_queue_init(&ipc->due);

    ipc->due_timer.handler = ngx_ron_ipc_due;
    ipc->due_timer.data = &ngx_ron_ident;
    ipc->due_timer.log = ipc->log;

    ipc->tick.handler = ngx_ron_ipc_tick;
    ipc->tick.data = &ngx_ron_ident;
    ipc->tick.log = ipc->log;
    ipc->tick.cancelable = 1;
}


void
ngx_ron_ipc_calls_exit(void)
{
    ngx_queue_t     *q;
    ngx_ron_ipc_t   *ipc;
    ngx_ron_call_t  *call;

    ipc = &ngx_ron_ipc;

    for (q = ngx_queue_head(&ipc->calls);
         q != ngx_queue_sentinel(&ipc->calls);
         q = ngx_queue_next(q))
    {
        call = ngx_queue_data(q, ngx_ron_call_t, queue);

        if (call->type == RON_FRAME_UNIT && call->tries) {
            ngx_ron_tasks_operation(ngx_ron_ipc_service(call),
                                    NGX_RON_ABORTED);
        }
    }
}


ngx_ron_call_t *
ngx_ron_ipc_call(ron_frame_type_t type, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data)
{
    ron_buf_t        wire;
    ngx_queue_t     *q;
    ngx_ron_ipc_t   *ipc;
    ngx_ron_call_t  *call, **slot;

    ipc = &ngx_ron_ipc;

    if (ipc->client == NULL || ipc->calls_n == NGX_RON_IPC_CALLS) {
        return NULL;
    }

    if (ipc->free_n) {
        q = ngx_queue_head(&ipc->free);
        ngx_queue_remove(q);
        ipc->free_n--;

        call = ngx_queue_data(q, ngx_ron_call_t, queue);

        wire = call->wire;
        ngx_memzero(call, sizeof(ngx_ron_call_t));
        call->wire = wire;
        ron_buf_reset(&call->wire);

    } else {
        call = ngx_calloc(sizeof(ngx_ron_call_t), ipc->log);
        if (call == NULL) {
            return NULL;
        }

        ron_buf_init(&call->wire, RON_FRAME_MAX - RON_FRAME_HEADER);
    }

    call->fd = -1;
    call->type = type;
    call->handler = handler;
    call->data = data;

    call->timer.handler = ngx_ron_ipc_timeout;
    call->timer.data = call;
    call->timer.log = ipc->log;

    call->retry.handler = ngx_ron_ipc_retry;
    call->retry.data = call;
    call->retry.log = ipc->log;

    call->id = ron_client_call(ipc->client);

    slot = ngx_ron_ipc_slot(ipc, call->id);
    call->next = *slot;
    *slot = call;

    ngx_queue_insert_tail(&ipc->calls, &call->queue);
    ipc->calls_n++;

    ngx_ron_ipc_due_at(ipc, call, timeout);

    return call;
}


static void
ngx_ron_ipc_due_at(ngx_ron_ipc_t *ipc, ngx_ron_call_t *call,
    ngx_msec_t timeout)
{
    ngx_ron_call_t  *last;

    call->due_at = ngx_current_msec + timeout;

    if (!ngx_queue_empty(&ipc->due)) {
        last = ngx_queue_data(ngx_queue_last(&ipc->due), ngx_ron_call_t, due);

        if ((ngx_msec_int_t) (call->due_at - last->due_at) < 0) {
            ngx_add_timer(&call->timer, timeout);
            return;
        }

    } else {
        ngx_add_timer(&ipc->due_timer, timeout);
    }

    ngx_queue_insert_tail(&ipc->due, &call->due);
}


static void
ngx_ron_ipc_due_not(ngx_ron_ipc_t *ipc, ngx_ron_call_t *call)
{
    if (call->timer.timer_set) {
        ngx_del_timer(&call->timer);
    }

    if (call->due.next == NULL) {
        return;
    }

    ngx_queue_remove(&call->due);
    call->due.next = NULL;

    if (ngx_queue_empty(&ipc->due) && ipc->due_timer.timer_set) {
        ngx_del_timer(&ipc->due_timer);
    }
}


void
ngx_ron_ipc_detach(ngx_ron_call_t *call)
{
    call->handler = NULL;
    call->data = NULL;
}


void
ngx_ron_ipc_free(ngx_ron_call_t *call)
{
    ngx_ron_ipc_t   *ipc;
    ngx_ron_call_t **slot;

    ipc = &ngx_ron_ipc;

    ngx_ron_ipc_due_not(ipc, call);

    if (call->retry.timer_set) {
        ngx_del_timer(&call->retry);
    }

    slot = ngx_ron_ipc_slot(ipc, call->id);

    while (*slot != call) {
        slot = &(*slot)->next;
    }

    *slot = call->next;

    ngx_queue_remove(&call->queue);
    ipc->calls_n--;

    ngx_ron_ipc_drained(ipc);

    if (ipc->free_n < NGX_RON_IPC_FREE
        && call->wire.cap <= NGX_RON_IPC_KEEP)
    {
        ngx_queue_insert_head(&ipc->free, &call->queue);
        ipc->free_n++;
        return;
    }

    ron_buf_free(&call->wire);
    ngx_free(call);
}


static void
ngx_ron_ipc_done(ngx_ron_call_t *call, ngx_int_t rc, ron_frame_type_t type,
    ron_str_t payload)
{
    void             *data;
    ngx_ron_call_pt   handler;

    handler = call->handler;
    data = call->data;

    if (rc == NGX_ABORT && call->type == RON_FRAME_UNIT) {
        ngx_ron_tasks_operation(ngx_ron_ipc_service(call), NGX_RON_ABORTED);

        ngx_log_error(NGX_LOG_WARN, ngx_ron_ipc.log, 0,
                      "ron: an operation is given up: no answer of the helper"
                      " in %ui tries", call->tries);
    }

    ngx_ron_ipc_free(call);

    if (handler) {
        handler(data, rc, type, payload);
    }
}


void
ngx_ron_ipc_send(ngx_ron_call_t *call)
{
    ron_status_t    rc;
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;

    if (call->sent || call->retry.timer_set) {
        return;
    }

    if (!ron_client_ready(ipc->client)) {
        return;
    }

    rc = ngx_ron_ipc_put(ipc->client, call);

    if (rc == RON_OK) {

        if (call->tries++) {
            ngx_ron_ipc_count_retry(call);

        } else if (call->type == RON_FRAME_UNIT) {
            ngx_ron_tasks_operation(ngx_ron_ipc_service(call),
                                    NGX_RON_SPAWNED);
        }

        call->sent = 1;
        call->sent_at = ngx_current_msec;

        if (!ipc->tick.timer_set) {
            ngx_add_timer(&ipc->tick, NGX_RON_IPC_TRY);
        }

        ngx_ron_ipc_put_one();

        return;
    }

    /* the helper does not read: try when something has left */

    if (rc == RON_EFULL) {
        ngx_add_timer(&call->retry,
                      NGX_RON_IPC_JITTER + ngx_random() % NGX_RON_IPC_JITTER);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, ipc->log, 0, "ron: a call cannot be sent: %s",
                  ron_status_name(rc));
}


/* Handlers of those that are due may make calls, and end others. */

static void
ngx_ron_ipc_due(ngx_event_t *ev)
{
    ngx_ron_ipc_t   *ipc;
    ngx_msec_int_t   left;
    ngx_ron_call_t  *call;

    ipc = &ngx_ron_ipc;

    while (!ngx_queue_empty(&ipc->due)) {
        call = ngx_queue_data(ngx_queue_head(&ipc->due), ngx_ron_call_t, due);
        left = (ngx_msec_int_t) (call->due_at - ngx_current_msec);

        if (left > 0) {
            ngx_add_timer(ev, left);
            return;
        }

        ngx_ron_ipc_give_up(call);
    }
}


static void
ngx_ron_ipc_timeout(ngx_event_t *ev)
{
    ngx_ron_ipc_give_up(ev->data);
}


static void
ngx_ron_ipc_give_up(ngx_ron_call_t *call)
{
    if (call->sent) {
        ngx_ron_ipc_count_timeout(call);
    }

    ngx_ron_ipc_done(call, call->tries ? NGX_ABORT : NGX_DECLINED,
                     call->type, ron_null_str);
}


static void
ngx_ron_ipc_retry(ngx_event_t *ev)
{
    ngx_ron_ipc_send(ev->data);
}


/*
 * A pass over what is sent, ten times a second and not at all when nothing
 * is: cheaper than a second timer for each call.
 */

static void
ngx_ron_ipc_tick(ngx_event_t *ev)
{
    ngx_uint_t       sent, silent;
    ngx_queue_t     *q;
    ngx_ron_ipc_t   *ipc;
    ngx_ron_call_t  *call;

    ipc = &ngx_ron_ipc;

    sent = 0;
    silent = 0;

    for (q = ngx_queue_head(&ipc->calls);
         q != ngx_queue_sentinel(&ipc->calls);
         q = ngx_queue_next(q))
    {
        call = ngx_queue_data(q, ngx_ron_call_t, queue);

        sent |= call->sent;

        if (call->sent && call->type == RON_FRAME_ADMIN) {

            /* a clean verify may take its time, and the helper with it */

            silent = 0;
            break;
        }

        silent |= ngx_ron_ipc_is_late(call)
                  && (ngx_msec_int_t) (ipc->heard_at - call->sent_at) <= 0;
    }

    if (silent && ipc->connection) {
        ngx_ron_ipc_close(NGX_LOG_ERR, "nothing was heard for a second");
        return;
    }

    q = ngx_queue_head(&ipc->calls);

    while (q != ngx_queue_sentinel(&ipc->calls)) {
        call = ngx_queue_data(q, ngx_ron_call_t, queue);

        q = ngx_queue_next(q);

        if (ngx_ron_ipc_is_late(call) && ngx_ron_ipc_late(call) == NGX_DONE) {

            /* its handler may have made calls, and ended others */

            q = ngx_queue_head(&ipc->calls);
        }
    }

    if (sent) {
        ngx_add_timer(ev, NGX_RON_IPC_TICK);
    }
}


static ngx_uint_t
ngx_ron_ipc_is_late(ngx_ron_call_t *call)
{
    return call->sent && call->type != RON_FRAME_ADMIN
           && (ngx_msec_int_t) (ngx_current_msec - call->sent_at)
              >= NGX_RON_IPC_TRY;
}


/* A helper that lives has not answered this one: its next try begins. */

static ngx_int_t
ngx_ron_ipc_late(ngx_ron_call_t *call)
{
    ngx_ron_ipc_count_timeout(call);
    call->doubt = 1;

    if (call->tries >= NGX_RON_IPC_TRIES) {
        ngx_ron_ipc_done(call, NGX_ABORT, call->type, ron_null_str);
        return NGX_DONE;
    }

    call->tries++;
    call->sent_at = ngx_current_msec + ngx_ron_ipc_jitter();
    ngx_ron_ipc_count_retry(call);

    return NGX_OK;
}


static ngx_msec_t
ngx_ron_ipc_jitter(void)
{
    return NGX_RON_IPC_BACKOFF_MIN
           + ngx_random() % (NGX_RON_IPC_BACKOFF_MAX
                             - NGX_RON_IPC_BACKOFF_MIN);
}


void
ngx_ron_ipc_calls_send(void)
{
    ngx_queue_t    *q;
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;

    for (q = ngx_queue_head(&ipc->calls);
         q != ngx_queue_sentinel(&ipc->calls);
         q = ngx_queue_next(q))
    {
        ngx_ron_ipc_send(ngx_queue_data(q, ngx_ron_call_t, queue));
    }
}


/*
 * What was sent may have been committed: it goes again, in its order, to the
 * next helper.  Handlers may make new calls: they are not in the list that is
 * walked.
 */

void
ngx_ron_ipc_calls_lost(void)
{
    ngx_queue_t      calls, *q;
    ngx_ron_ipc_t   *ipc;
    ngx_ron_call_t  *call;

    ipc = &ngx_ron_ipc;

    ngx_queue_init(&calls);

    if (!ngx_queue_empty(&ipc->calls)) {
        ngx_queue_add(&calls, &ipc->calls);
        ngx_queue_init(&ipc->calls);
    }

    while (!ngx_queue_empty(&calls)) {
        q = ngx_queue_head(&calls);
        call = ngx_queue_data(q, ngx_ron_call_t, queue);

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&ipc->calls, q);

        if (ngx_ron_ipc_is_late(call)) {
            ngx_ron_ipc_count_timeout(call);
        }

        call->doubt |= call->sent;
        call->sent = 0;

        if (call->tries >= NGX_RON_IPC_TRIES) {
            ngx_ron_ipc_done(call, NGX_ABORT, call->type, ron_null_str);
        }
    }
}


void
ngx_ron_ipc_calls_answer(void *ctx, uint64_t id, ron_frame_type_t type,
    ron_str_t payload)
{
    ngx_ron_ipc_t *ipc = ctx;

    ron_reason_t     reason;
    ngx_ron_call_t  *call;

    call = *ngx_ron_ipc_slot(ipc, id);

    while (call && call->id != id) {
        call = call->next;
    }

    if (call == NULL) {
        return;
    }

    if (call->doubt && ngx_ron_ipc_unsaid(type, payload)) {
        ngx_ron_ipc_done(call, NGX_ABORT, type, ron_null_str);
        return;
    }

    /*
     * The helper drops its oldest unit when it has too many.  A wallet must
     * not lose an older payment to a newer one, so that one is sent again.
     */

    reason = type == RON_FRAME_OUTCOME ? ron_msg_outcome_reason(payload)
                                       : RON_REASON_OK;

    if (!call->ingest && call->tries < NGX_RON_IPC_TRIES
        && reason == RON_REASON_PREVAL_DROPPED)
    {
        call->sent = 0;
        ngx_add_timer(&call->retry,
                      NGX_RON_IPC_BACKOFF_MIN
                      + ngx_random() % NGX_RON_IPC_BACKOFF_MIN);
        return;
    }

    if (reason == RON_REASON_DRAINING) {

        /* past the deadline of a drain, what was not begun is given up */

        if (ron_client_state(ipc->client) == RON_STATE_ABORTING
            && call->type == RON_FRAME_UNIT)
        {
            ngx_ron_tasks_operation(ngx_ron_ipc_service(call),
                                    NGX_RON_ABORTED);
        }

        /* a shutdown came while it waited to be decided */

        ngx_ron_tasks_operation(ngx_ron_ipc_service(call), NGX_RON_CANCELED);
    }

    ngx_ron_ipc_done(call, NGX_OK, type, payload);
}


static void
ngx_ron_ipc_count_retry(ngx_ron_call_t *call)
{
    if (call->ingest || call->type == RON_FRAME_ADMIN) {
        ngx_ron_count(RON_M_BACKOFF_RETRIES_L, 0, RON_D_RETRY_OP_LEDGER_RPC,
                      0, 0);
        return;
    }

    ngx_ron_count(RON_M_BACKOFF_RETRIES_W, 0, RON_D_SVC_LEDGER,
                  call->type == RON_FRAME_UNIT ? RON_D_CALL_COMMIT
                                               : RON_D_CALL_READ, 0);
}


static void
ngx_ron_ipc_count_timeout(ngx_ron_call_t *call)
{
    ngx_ron_count(RON_M_IO_TIMEOUTS, ngx_ron_ipc_service(call),
                  RON_D_IO_LEDGER_RPC, 0, 0);
}


static ngx_uint_t
ngx_ron_ipc_service(ngx_ron_call_t *call)
{
    return call->ingest || call->type == RON_FRAME_ADMIN
           ? RON_D_SERVICE_LEDGER : RON_D_SERVICE_WALLET;
}
