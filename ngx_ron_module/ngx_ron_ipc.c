
/*
 * A worker's calls to the helper: one connection, one pending table.
 *
 * A call is owned by the worker and not by the request that made it: it has
 * its own copy of what was sent, so that the same bytes can be sent again to
 * the next helper, and a timer of its own, which is not cancelable, so that a
 * worker that is shutting down waits for its answer, and not for ever.
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
 *
 * Everything that is put during one turn of the event loop leaves in one
 * write, from a posted event.
 */

#include "ngx_ron.h"


#define NGX_RON_IPC_CALLS        4096
#define NGX_RON_IPC_FREE         256
#define NGX_RON_IPC_KEEP         16384
#define NGX_RON_IPC_TRIES        3
#define NGX_RON_IPC_READ         65536
#define NGX_RON_IPC_BACKOFF_MIN  50
#define NGX_RON_IPC_BACKOFF_MAX  1000
#define NGX_RON_IPC_JITTER       50
#define NGX_RON_IPC_HANDSHAKE    1000
#define NGX_RON_IPC_TRY          1000
#define NGX_RON_IPC_TICK         100


struct ngx_ron_call_s {
    /* looks like a connection to what reads the fd of an event's data */
    ngx_queue_t          queue;
    void                *padding;
    int                  fd;

    ngx_rbtree_node_t    node;              /* key: the call's id */

    ngx_ron_call_pt      handler;           /* NULL: nobody waits */
    void                *data;

    ngx_event_t          timer;
    ngx_event_t          retry;

    ron_frame_type_t     type;
    ron_admin_t          admin;
    ron_buf_t            wire;              /* UNIT, or two strings */
    size_t               first_len;
    ngx_msec_t           sent_at;
    ngx_uint_t           tries;
    ngx_uint_t           retry_drops;
    unsigned             sent:1;
    unsigned             ingest:1;
    unsigned             doubt:1;           /* an earlier try is open */
};


typedef struct {
    ngx_cycle_t         *cycle;
    ngx_log_t           *log;
    ron_client_t        *client;
    ngx_connection_t    *connection;

    ngx_queue_t          calls;
    ngx_queue_t          free;
    ngx_rbtree_t         tree;
    ngx_rbtree_node_t    sentinel;
    ngx_uint_t           calls_n;
    ngx_uint_t           free_n;

    ngx_event_t          flush;
    ngx_event_t          connect;
    ngx_event_t          tick;              /* set while calls are sent */
    ngx_msec_t           heard_at;
    ngx_msec_t           backoff;
    ngx_msec_t           lost_at;

    struct sockaddr_un   sockaddr;
    socklen_t            socklen;
    ngx_str_t            name;

    unsigned             closing:1;
    unsigned             greeted:1;         /* a helper was there before */
    unsigned             told:1;            /* what was wrong was logged */
    unsigned             absent:1;          /* likewise, that it is not there */
} ngx_ron_ipc_t;


static ngx_ron_call_t *ngx_ron_ipc_call(ron_frame_type_t type,
    ngx_msec_t timeout, ngx_ron_call_pt handler, void *data);
static ngx_ron_call_t *ngx_ron_ipc_two(ron_frame_type_t type, ron_str_t a,
    ron_str_t b, ngx_msec_t timeout, ngx_ron_call_pt handler, void *data);
static void ngx_ron_ipc_send(ngx_ron_call_t *call);
static void ngx_ron_ipc_free(ngx_ron_call_t *call);
static void ngx_ron_ipc_done(ngx_ron_call_t *call, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static void ngx_ron_ipc_timeout(ngx_event_t *ev);
static void ngx_ron_ipc_retry(ngx_event_t *ev);
static void ngx_ron_ipc_tick(ngx_event_t *ev);
static ngx_uint_t ngx_ron_ipc_is_late(ngx_ron_call_t *call);
static ngx_int_t ngx_ron_ipc_late(ngx_ron_call_t *call);
static ngx_msec_t ngx_ron_ipc_jitter(void);
static void ngx_ron_ipc_count_retry(ngx_ron_call_t *call);
static void ngx_ron_ipc_count_timeout(ngx_ron_call_t *call);
static ngx_uint_t ngx_ron_ipc_service(ngx_ron_call_t *call);
static ngx_uint_t ngx_ron_ipc_unsaid(ron_frame_type_t type,
    ron_str_t payload);
static ngx_uint_t ngx_ron_ipc_dropped(ngx_ron_call_t *call,
    ron_frame_type_t type, ron_str_t payload);
static void ngx_ron_ipc_connect(ngx_event_t *ev);
static ngx_int_t ngx_ron_ipc_open(ngx_ron_ipc_t *ipc);
static void ngx_ron_ipc_close(ngx_uint_t level, const char *why);
static void ngx_ron_ipc_flush(ngx_event_t *ev);
static void ngx_ron_ipc_read(ngx_event_t *ev);
static void ngx_ron_ipc_write(ngx_event_t *ev);
static void ngx_ron_ipc_on_ready(void *ctx, const ron_hello_t *hello,
    const ron_ready_t *ready);
static void ngx_ron_ipc_on_answer(void *ctx, uint64_t id,
    ron_frame_type_t type, ron_str_t payload);
static void ngx_ron_ipc_on_commit(void *ctx, const ron_msg_commit_t *commit);


static ngx_ron_ipc_t       ngx_ron_ipc;
static ngx_ron_commit_pt   ngx_ron_ipc_watcher;

/* an event's data looks like a connection: debug logs read its fd */

static struct {
    void  *padding[3];
    int    fd;
} ngx_ron_ipc_ident = { { NULL, NULL, NULL }, -1 };


ngx_int_t
ngx_ron_ipc_init_process(ngx_cycle_t *cycle)
{
    u_char             *path;
    ngx_ron_ipc_t      *ipc;
    ngx_ron_conf_t     *rcf;
    ron_client_conf_t   conf;

    ipc = &ngx_ron_ipc;
    rcf = ngx_ron_get_conf(cycle);

    ngx_memzero(ipc, sizeof(ngx_ron_ipc_t));

    ipc->cycle = cycle;
    ipc->log = cycle->log;
    ipc->name = rcf->socket;

    ngx_queue_init(&ipc->calls);
    ngx_queue_init(&ipc->free);
    ngx_rbtree_init(&ipc->tree, &ipc->sentinel, ngx_rbtree_insert_value);

    ipc->sockaddr.sun_family = AF_UNIX;
    path = (u_char *) ipc->sockaddr.sun_path;
    ngx_memcpy(path, rcf->socket.data, rcf->socket.len);

    ipc->socklen = offsetof(struct sockaddr_un, sun_path) + rcf->socket.len;

    if (path[0] == '@') {
        path[0] = '\0';

    } else {
        ipc->socklen++;
    }

    ron_client_conf_init(&conf);

    conf.key = rcf->auth_key;
    conf.slot = ngx_process_slot;
    conf.pid = ngx_pid;
    conf.on_ready = ngx_ron_ipc_on_ready;
    conf.on_answer = ngx_ron_ipc_on_answer;
    conf.on_commit = ngx_ron_ipc_on_commit;
    conf.ctx = ipc;

    if (ron_client_create(&conf, &ipc->client) != RON_OK) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                      "ron: no memory for the helper's connection");
        ipc->client = NULL;

        /* an error here would leave NGINX without workers */
        return NGX_OK;
    }

    ipc->flush.handler = ngx_ron_ipc_flush;
    ipc->flush.data = ipc;
    ipc->flush.log = cycle->log;

    ipc->connect.handler = ngx_ron_ipc_connect;
    ipc->connect.data = &ngx_ron_ipc_ident;
    ipc->connect.log = cycle->log;
    ipc->connect.cancelable = 1;

    ngx_add_timer(&ipc->connect, 1);

    ipc->tick.handler = ngx_ron_ipc_tick;
    ipc->tick.data = &ngx_ron_ipc_ident;
    ipc->tick.log = cycle->log;
    ipc->tick.cancelable = 1;

    return NGX_OK;
}


void
ngx_ron_ipc_exit_process(ngx_cycle_t *cycle)
{
    ngx_queue_t     *q;
    ngx_ron_ipc_t   *ipc;
    ngx_ron_call_t  *call;

    ipc = &ngx_ron_ipc;
    ipc->closing = 1;

    if (ipc->connection) {
        ngx_ron_ipc_close(NGX_LOG_INFO, "the worker exits");
    }

    if (ipc->client == NULL) {
        return;
    }

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


ron_life_t
ngx_ron_ipc_state(void)
{
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;

    if (ipc->client == NULL || !ron_client_ready(ipc->client)) {
        return RON_STATE_STARTING;
    }

    return ron_client_state(ipc->client);
}


ngx_ron_call_t *
ngx_ron_ipc_unit(const ron_unit_t *unit, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data, ngx_uint_t *too_long)
{
    ngx_ron_call_t  *call;

    *too_long = 0;

    call = ngx_ron_ipc_call(RON_FRAME_UNIT, timeout, handler, data);
    if (call == NULL) {
        return NULL;
    }

    switch (ron_unit_encode(unit, &call->wire)) {

    case RON_OK:
        break;

    case RON_EFULL:
        *too_long = 1;

        /* fall through */

    default:
        ngx_ron_ipc_free(call);
        return NULL;
    }

    call->ingest = unit->type == RON_UNIT_INGEST;
    call->retry_drops = !call->ingest;

    ngx_ron_ipc_send(call);

    return call;
}


ngx_ron_call_t *
ngx_ron_ipc_balance(ron_str_t account, ron_str_t asset, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data)
{
    return ngx_ron_ipc_two(RON_FRAME_BALANCE, account, asset, timeout,
                           handler, data);
}


ngx_ron_call_t *
ngx_ron_ipc_lookup(ron_str_t scope, ron_str_t key, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data)
{
    return ngx_ron_ipc_two(RON_FRAME_LOOKUP, scope, key, timeout, handler,
                           data);
}


static ngx_ron_call_t *
ngx_ron_ipc_two(ron_frame_type_t type, ron_str_t a, ron_str_t b,
    ngx_msec_t timeout, ngx_ron_call_pt handler, void *data)
{
    ngx_ron_call_t  *call;

    call = ngx_ron_ipc_call(type, timeout, handler, data);
    if (call == NULL) {
        return NULL;
    }

    ron_buf_put_str(&call->wire, a);
    ron_buf_put_str(&call->wire, b);
    call->first_len = a.len;

    if (ron_buf_status(&call->wire) != RON_OK) {
        ngx_ron_ipc_free(call);
        return NULL;
    }

    ngx_ron_ipc_send(call);

    return call;
}


ngx_ron_call_t *
ngx_ron_ipc_admin(ron_admin_t what, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data)
{
    ngx_ron_call_t  *call;

    call = ngx_ron_ipc_call(RON_FRAME_ADMIN, timeout, handler, data);
    if (call == NULL) {
        return NULL;
    }

    call->admin = what;
    ngx_ron_ipc_send(call);

    return call;
}


ngx_ron_call_t *
ngx_ron_ipc_snapshot(ngx_uint_t take, ron_str_t name, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data)
{
    ngx_ron_call_t  *call;

    call = ngx_ron_ipc_call(RON_FRAME_ADMIN, timeout, handler, data);
    if (call == NULL) {
        return NULL;
    }

    call->admin = RON_ADMIN_SNAPSHOT;
    ron_buf_put_u8(&call->wire, take ? 1 : 0);
    ron_buf_put_str(&call->wire, name);

    if (ron_buf_status(&call->wire) != RON_OK) {
        ngx_ron_ipc_free(call);
        return NULL;
    }

    ngx_ron_ipc_send(call);

    return call;
}


void
ngx_ron_ipc_detach(ngx_ron_call_t *call)
{
    call->handler = NULL;
    call->data = NULL;
}


static ngx_ron_call_t *
ngx_ron_ipc_call(ron_frame_type_t type, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data)
{
    ron_buf_t        wire;
    ngx_queue_t     *q;
    ngx_ron_ipc_t   *ipc;
    ngx_ron_call_t  *call;

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

    call->node.key = (ngx_rbtree_key_t) ron_client_call(ipc->client);

    ngx_rbtree_insert(&ipc->tree, &call->node);
    ngx_queue_insert_tail(&ipc->calls, &call->queue);
    ipc->calls_n++;

    ngx_add_timer(&call->timer, timeout);

    return call;
}


static void
ngx_ron_ipc_free(ngx_ron_call_t *call)
{
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;

    if (call->timer.timer_set) {
        ngx_del_timer(&call->timer);
    }

    if (call->retry.timer_set) {
        ngx_del_timer(&call->retry);
    }

    ngx_rbtree_delete(&ipc->tree, &call->node);
    ngx_queue_remove(&call->queue);
    ipc->calls_n--;

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
    }

    ngx_ron_ipc_free(call);

    if (handler) {
        handler(data, rc, type, payload);
    }
}


/* Puts the call's frame, or leaves that for when there is a connection. */

static void
ngx_ron_ipc_send(ngx_ron_call_t *call)
{
    ron_str_t       wire, a, b;
    ron_status_t    rc;
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;

    if (call->sent || call->retry.timer_set) {
        return;
    }

    if (!ron_client_ready(ipc->client)) {
        return;
    }

    wire = ron_buf_str(&call->wire);

    a.data = wire.data;
    a.len = call->first_len;
    b.data = wire.data + call->first_len;
    b.len = wire.len - call->first_len;

    switch (call->type) {

    case RON_FRAME_UNIT:
        rc = ron_client_unit_wire(ipc->client, call->node.key, wire);
        break;

    case RON_FRAME_BALANCE:
        rc = ron_client_balance(ipc->client, call->node.key, a, b);
        break;

    case RON_FRAME_LOOKUP:
        rc = ron_client_lookup(ipc->client, call->node.key, a, b);
        break;

    default: /* RON_FRAME_ADMIN */
        rc = ron_client_admin(ipc->client, call->node.key, call->admin,
                              wire);
        break;
    }

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

        if (!ipc->flush.posted) {
            ngx_post_event(&ipc->flush, &ngx_posted_events);
        }

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


static void
ngx_ron_ipc_timeout(ngx_event_t *ev)
{
    ngx_ron_call_t  *call;

    call = ev->data;

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


static void
ngx_ron_ipc_connect(ngx_event_t *ev)
{
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;

    if (ipc->connection || ipc->closing) {
        return;
    }

    ron_client_reset(ipc->client);

    if (ngx_ron_ipc_open(ipc) == NGX_OK) {
        return;
    }

    /* one that was killed is there again within a part of a second */

    if (ngx_current_msec - ipc->lost_at < NGX_RON_IPC_TRY
        || ipc->backoff == 0)
    {
        ipc->backoff = NGX_RON_IPC_BACKOFF_MIN / 2;

    } else {
        ipc->backoff = ngx_min(ipc->backoff * 2, NGX_RON_IPC_BACKOFF_MAX);
    }

    ngx_add_timer(&ipc->connect,
                  ipc->backoff + ngx_random() % NGX_RON_IPC_JITTER);
}


/*
 * A helper that is not there, or not yet, is normal for a moment: it is said
 * once, which ngx_event_connect_peer() would not do.
 */

static ngx_int_t
ngx_ron_ipc_open(ngx_ron_ipc_t *ipc)
{
    ngx_err_t          err;
    ngx_socket_t       s;
    ngx_connection_t  *c;

    s = ngx_socket(AF_UNIX, SOCK_STREAM, 0);

    if (s == (ngx_socket_t) -1) {
        ngx_log_error(NGX_LOG_ALERT, ipc->log, ngx_socket_errno,
                      ngx_socket_n " failed");
        return NGX_ERROR;
    }

    c = ngx_get_connection(s, ipc->log);

    if (c == NULL) {
        if (ngx_close_socket(s) == -1) {
            ngx_log_error(NGX_LOG_ALERT, ipc->log, ngx_socket_errno,
                          ngx_close_socket_n " failed");
        }

        return NGX_ERROR;
    }

    if (fcntl(s, F_SETFD, FD_CLOEXEC) == -1 || ngx_nonblocking(s) == -1) {
        ngx_log_error(NGX_LOG_ALERT, ipc->log, ngx_socket_errno,
                      ngx_nonblocking_n " failed");
        goto failed;
    }

    if (connect(s, (struct sockaddr *) &ipc->sockaddr, ipc->socklen) == -1) {
        err = ngx_socket_errno;

        if (!ipc->absent) {
            ipc->absent = 1;
            ngx_log_error(NGX_LOG_INFO, ipc->log, err,
                          "ron: the helper is not at \"%V\" yet", &ipc->name);
        }

        goto failed;
    }

    ipc->absent = 0;

    c->recv = ngx_recv;
    c->send = ngx_send;
    c->data = ipc;
    c->log = ipc->log;
    c->read->log = c->log;
    c->write->log = c->log;
    c->read->handler = ngx_ron_ipc_read;
    c->write->handler = ngx_ron_ipc_write;
    c->number = ngx_atomic_fetch_add(ngx_connection_counter, 1);

    if (ngx_add_conn) {
        if (ngx_add_conn(c) == NGX_ERROR) {
            goto failed;
        }

    } else if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
        goto failed;
    }

    c->write->ready = 1;
    ipc->connection = c;

    /* a helper that is stopped accepts and says nothing */

    ngx_add_timer(c->read, NGX_RON_IPC_HANDSHAKE);
    c->read->cancelable = 1;

    return NGX_OK;

failed:

    ngx_close_connection(c);

    return NGX_ERROR;
}


static void
ngx_ron_ipc_close(ngx_uint_t level, const char *why)
{
    ngx_queue_t      calls, *q;
    ngx_ron_ipc_t   *ipc;
    ngx_ron_call_t  *call;

    ipc = &ngx_ron_ipc;

    ngx_log_error(level, ipc->log, 0,
                  "ron: connection to the helper closed: %s, %ui calls wait",
                  why, ipc->calls_n);

    ngx_close_connection(ipc->connection);
    ipc->connection = NULL;
    ipc->lost_at = ngx_current_msec;

    ron_client_reset(ipc->client);

    if (ipc->closing) {
        return;
    }

    /*
     * What was sent may have been committed: it goes again, in its order,
     * to the next helper.  Handlers may make new calls: they are not in the
     * list that is walked.
     */

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

    if (!ipc->connect.timer_set) {
        ngx_add_timer(&ipc->connect,
                      1 + ngx_random() % NGX_RON_IPC_BACKOFF_MIN);
    }
}


static void
ngx_ron_ipc_read(ngx_event_t *ev)
{
    size_t             len;
    ssize_t            n;
    uint8_t           *p;
    ron_status_t       rc;
    ngx_ron_ipc_t     *ipc;
    ngx_connection_t  *c;

    c = ev->data;
    ipc = c->data;

    if (ev->timedout) {
        ngx_ron_count(RON_M_IO_TIMEOUTS, RON_D_SERVICE_LEDGER,
                      RON_D_IO_CONNECT, 0, 0);
        ngx_ron_ipc_close(ipc->told ? NGX_LOG_INFO : NGX_LOG_ERR,
                          "no handshake in time");
        ipc->told = 1;
        return;
    }

    for ( ;; ) {

        p = ron_client_space(ipc->client, NGX_RON_IPC_READ, &len);
        if (p == NULL) {
            ngx_ron_ipc_close(NGX_LOG_ERR, "no memory");
            return;
        }

        n = c->recv(c, p, len);

        if (n == NGX_AGAIN) {
            break;
        }

        if (n == NGX_ERROR || n == 0) {
            ngx_ron_ipc_close(NGX_LOG_INFO, "by the helper");
            return;
        }

        ipc->heard_at = ngx_current_msec;

        rc = ron_client_came(ipc->client, n);

        if (rc != RON_OK) {
            ipc->backoff = NGX_RON_IPC_BACKOFF_MAX;

            ngx_ron_ipc_close(ipc->told ? NGX_LOG_INFO : NGX_LOG_ERR,
                              rc == RON_ENOTFOUND
                                  ? "it does not know our key"
                                  : ron_status_name(rc));
            ipc->told = 1;
            return;
        }
    }

    if (ngx_handle_read_event(ev, 0) != NGX_OK) {
        ngx_ron_ipc_close(NGX_LOG_ERR, "no event");
        return;
    }

    if (ron_client_output(ipc->client).len && !ipc->flush.posted) {
        ngx_post_event(&ipc->flush, &ngx_posted_events);
    }
}


static void
ngx_ron_ipc_write(ngx_event_t *ev)
{
    ngx_connection_t  *c;

    c = ev->data;

    ngx_ron_ipc_flush(&((ngx_ron_ipc_t *) c->data)->flush);
}


static void
ngx_ron_ipc_flush(ngx_event_t *ev)
{
    ssize_t            n;
    ron_str_t          out;
    ngx_ron_ipc_t     *ipc;
    ngx_connection_t  *c;

    ipc = ev->data;
    c = ipc->connection;

    if (c == NULL) {
        return;
    }

    for ( ;; ) {
        out = ron_client_output(ipc->client);

        if (out.len == 0) {
            break;
        }

        n = c->send(c, (u_char *) out.data, out.len);

        if (n == NGX_AGAIN) {
            break;
        }

        if (n == NGX_ERROR || n == 0) {
            ngx_ron_ipc_close(NGX_LOG_INFO, "by the helper");
            return;
        }

        ron_client_sent(ipc->client, n);
    }

    if (ngx_handle_write_event(c->write, 0) != NGX_OK) {
        ngx_ron_ipc_close(NGX_LOG_ERR, "no event");
    }
}


static void
ngx_ron_ipc_on_ready(void *ctx, const ron_hello_t *hello,
    const ron_ready_t *ready)
{
    ngx_ron_ipc_t *ipc = ctx;

    ngx_queue_t     *q;
    ngx_ron_call_t  *call;

    ipc->backoff = 0;
    ipc->told = 0;

    if (ipc->greeted) {
        ngx_ron_breaker_close();
    }

    ipc->greeted = 1;

    if (ipc->connection->read->timer_set) {
        ngx_del_timer(ipc->connection->read);
    }

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, ipc->log, 0,
                   "ron helper ready, generation:%uL state:%s",
                   hello->generation, ron_state_name(ready->state));

    for (q = ngx_queue_head(&ipc->calls);
         q != ngx_queue_sentinel(&ipc->calls);
         q = ngx_queue_next(q))
    {
        call = ngx_queue_data(q, ngx_ron_call_t, queue);
        ngx_ron_ipc_send(call);
    }

    if (ngx_ron_ipc_watcher) {
        ngx_ron_ipc_watcher(ready->seq, NULL);
    }
}


void
ngx_ron_ipc_watch(ngx_ron_commit_pt handler)
{
    ngx_ron_ipc_watcher = handler;
}


static void
ngx_ron_ipc_on_commit(void *ctx, const ron_msg_commit_t *commit)
{
    if (ngx_ron_ipc_watcher) {
        ngx_ron_ipc_watcher(commit->seq, commit);
    }
}


static void
ngx_ron_ipc_on_answer(void *ctx, uint64_t id, ron_frame_type_t type,
    ron_str_t payload)
{
    ngx_ron_ipc_t *ipc = ctx;

    ngx_ron_call_t     *call;
    ngx_rbtree_node_t  *node;

    node = ipc->tree.root;

    while (node != &ipc->sentinel && node->key != id) {
        node = id < node->key ? node->left : node->right;
    }

    if (node == &ipc->sentinel) {
        return;
    }

    call = ngx_rbtree_data(node, ngx_ron_call_t, node);

    if (call->doubt && ngx_ron_ipc_unsaid(type, payload)) {
        ngx_ron_ipc_done(call, NGX_ABORT, type, ron_null_str);
        return;
    }

    if (ngx_ron_ipc_dropped(call, type, payload)) {
        return;
    }

    ngx_ron_ipc_done(call, NGX_OK, type, payload);
}


/*
 * "Not now" is true of the copy that it answers.  What was sent before may be
 * in the committer's hands.
 */

static ngx_uint_t
ngx_ron_ipc_unsaid(ron_frame_type_t type, ron_str_t payload)
{
    ngx_uint_t        status;
    ron_status_t      rc;
    ron_result_t     *results;
    ron_outcome_t     outcome;
    ron_msg_batch_t   batch;

    if (type != RON_FRAME_OUTCOME) {
        return 0;
    }

    results = ngx_alloc(RON_UNIT_OPS_MAX * sizeof(ron_result_t),
                        ngx_ron_ipc.log);
    if (results == NULL) {
        return 1;
    }

    rc = ron_msg_outcome_get(payload, &batch, &outcome, results,
                             RON_UNIT_OPS_MAX);

    status = ron_reason_info(outcome.reason)->status;

    ngx_free(results);

    return rc != RON_OK || status == 429 || status == 503;
}


/*
 * The helper drops its oldest unit when it has too many.  A wallet must not
 * lose an older payment to a newer one, so that one is sent again.
 */

static ngx_uint_t
ngx_ron_ipc_dropped(ngx_ron_call_t *call, ron_frame_type_t type,
    ron_str_t payload)
{
    ron_result_t     result;
    ron_outcome_t    outcome;
    ron_msg_batch_t  batch;

    if (!call->retry_drops || type != RON_FRAME_OUTCOME
        || call->tries >= NGX_RON_IPC_TRIES
        || ron_msg_outcome_get(payload, &batch, &outcome, &result, 1)
           != RON_OK
        || outcome.reason != RON_REASON_PREVAL_DROPPED)
    {
        return 0;
    }

    call->sent = 0;
    ngx_add_timer(&call->retry,
                  NGX_RON_IPC_BACKOFF_MIN
                  + ngx_random() % NGX_RON_IPC_BACKOFF_MIN);

    return 1;
}
