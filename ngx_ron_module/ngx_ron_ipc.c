
/*
 * A worker's connection to the helper: opened again whenever it is lost.
 *
 * What goes over it is in ngx_ron_ipc_calls.c, the calls that wait for an
 * answer, and in ngx_ron_ipc_frames.c, what a call and its answer say.
 *
 * What is put during one turn of the event loop leaves in one write, from a
 * posted event; and before that whenever there is a group of calls, so that
 * the helper decides and commits them while the worker reads the others.
 */

#include "ngx_ron_ipc.h"


#define NGX_RON_IPC_READ         65536
#define NGX_RON_IPC_HANDSHAKE    1000
#define NGX_RON_IPC_SOON         5
#define NGX_RON_IPC_GROUP        48


static void ngx_ron_ipc_connect(ngx_event_t *ev);
static void ngx_ron_ipc_connect_later(ngx_ron_ipc_t *ipc);
static ngx_int_t ngx_ron_ipc_open(ngx_ron_ipc_t *ipc);
static void ngx_ron_ipc_flush(ngx_event_t *ev);
static ngx_int_t ngx_ron_ipc_write_out(ngx_ron_ipc_t *ipc);
static void ngx_ron_ipc_read(ngx_event_t *ev);
static void ngx_ron_ipc_read_all(ngx_event_t *ev);
static void ngx_ron_ipc_write(ngx_event_t *ev);
static void ngx_ron_ipc_on_ready(void *ctx, const ron_hello_t *hello,
    const ron_ready_t *ready);
static void ngx_ron_ipc_on_state(void *ctx, const ron_msg_state_t *state);
static void ngx_ron_ipc_on_commit(void *ctx, const ron_msg_commit_t *commit);


ngx_ron_ipc_t             ngx_ron_ipc;

static ngx_ron_commit_pt  ngx_ron_ipc_watcher;
static void             (*ngx_ron_ipc_after)(void);


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

    ipc->log = cycle->log;
    ipc->name = rcf->socket;
    ipc->lost_at = ngx_current_msec;

    ngx_ron_ipc_calls_init();

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
    conf.on_state = ngx_ron_ipc_on_state;
    conf.on_answer = ngx_ron_ipc_calls_answer;
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
    ipc->connect.data = &ngx_ron_ident;
    ipc->connect.log = cycle->log;
    ipc->connect.cancelable = 1;

    ngx_add_timer(&ipc->connect, 1);

    return NGX_OK;
}


void
ngx_ron_ipc_exit_process(ngx_cycle_t *cycle)
{
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;
    ipc->closing = 1;

    if (ipc->connection) {
        ngx_ron_ipc_close(NGX_LOG_INFO, "the worker exits");
    }

    if (ipc->client == NULL) {
        return;
    }

    ngx_ron_ipc_calls_exit();
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


ngx_pid_t
ngx_ron_ipc_helper(void)
{
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;

    return ipc->client && ron_client_ready(ipc->client) ? ipc->helper : 0;
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

    ngx_ron_ipc_connect_later(ipc);
}


/*
 * A helper that was killed is there again within a part of a second, and what
 * waits for it is not to wait for us as well: in the first second it is asked
 * for often, which costs one connect() that fails.  One that is there and
 * turns us away is asked less and less.
 */

static void
ngx_ron_ipc_connect_later(ngx_ron_ipc_t *ipc)
{
    if (ngx_current_msec - ipc->lost_at < NGX_RON_IPC_TRY) {
        ngx_add_timer(&ipc->connect,
                      NGX_RON_IPC_SOON + ngx_random() % NGX_RON_IPC_SOON);
        return;
    }

    ipc->backoff = ngx_max(ipc->backoff * 2, NGX_RON_IPC_BACKOFF_MIN / 2);
    ipc->backoff = ngx_min(ipc->backoff, NGX_RON_IPC_BACKOFF_MAX);

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
    socklen_t          len;
    ngx_err_t          err;
    ngx_socket_t       s;
    struct ucred       peer;
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

    len = sizeof(struct ucred);
    ipc->helper = getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0
                  ? peer.pid : 0;

    c->recv = ngx_recv;
    c->send = ngx_send;
    c->data = ipc;
    c->log = ipc->log;
    c->read->log = c->log;
    c->write->log = c->log;
    c->read->handler = ngx_ron_ipc_read;
    c->write->handler = ngx_ron_ipc_write;
    c->number = ngx_atomic_fetch_add(ngx_connection_counter, 1);

    /*
     * Not ngx_add_conn(): whatever the helper reads would wake us up, to say
     * that we may write.  We can nearly always, and ask when we cannot.
     */

    if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
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


void
ngx_ron_ipc_close(ngx_uint_t level, const char *why)
{
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;

    ngx_log_error(level, ipc->log, 0,
                  "ron: connection to the helper closed: %s, %ui calls wait",
                  why, ipc->calls_n);

    ngx_close_connection(ipc->connection);
    ipc->connection = NULL;

    if (ron_client_ready(ipc->client)) {
        ipc->lost_at = ngx_current_msec;

    } else {
        ipc->lost_at = ngx_current_msec - NGX_RON_IPC_TRY;
    }

    ron_client_reset(ipc->client);

    if (ipc->closing) {
        return;
    }

    ngx_ron_ipc_calls_lost();

    if (!ipc->connect.timer_set) {
        ngx_ron_ipc_connect_later(ipc);
    }
}


static void
ngx_ron_ipc_read(ngx_event_t *ev)
{
    ngx_ron_ipc_read_all(ev);

    if (ngx_ron_ipc_after) {
        ngx_ron_ipc_after();
    }
}


static void
ngx_ron_ipc_read_all(ngx_event_t *ev)
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

    /* asked for since the socket was full: it takes more now */

    if (ev->active && ngx_del_event(ev, NGX_WRITE_EVENT, 0) != NGX_OK) {
        ngx_ron_ipc_close(NGX_LOG_ERR, "no event");
        return;
    }

    ngx_ron_ipc_flush(&((ngx_ron_ipc_t *) c->data)->flush);
}


static void
ngx_ron_ipc_flush(ngx_event_t *ev)
{
    ngx_ron_ipc_t     *ipc;
    ngx_connection_t  *c;

    ipc = ev->data;
    c = ipc->connection;

    if (c == NULL) {
        return;
    }

    if (ngx_ron_ipc_write_out(ipc) != NGX_OK) {
        ngx_ron_ipc_close(NGX_LOG_INFO, "by the helper");
        return;
    }

    if (ngx_handle_write_event(c->write, 0) != NGX_OK) {
        ngx_ron_ipc_close(NGX_LOG_ERR, "no event");
    }
}


/* Called from within a request: what fails is found by the posted event. */

void
ngx_ron_ipc_put_one(void)
{
    ngx_ron_ipc_t  *ipc;

    ipc = &ngx_ron_ipc;

    if (!ipc->flush.posted) {
        ngx_post_event(&ipc->flush, &ngx_posted_events);
    }

    if (++ipc->put_n >= NGX_RON_IPC_GROUP && ipc->connection->write->ready) {
        (void) ngx_ron_ipc_write_out(ipc);
    }
}


/* As much as the socket takes. */

static ngx_int_t
ngx_ron_ipc_write_out(ngx_ron_ipc_t *ipc)
{
    ssize_t            n;
    ron_str_t          out;
    ngx_connection_t  *c;

    c = ipc->connection;
    ipc->put_n = 0;

    for ( ;; ) {
        out = ron_client_output(ipc->client);

        if (out.len == 0) {
            return NGX_OK;
        }

        n = c->send(c, (u_char *) out.data, out.len);

        if (n == NGX_AGAIN) {
            return NGX_OK;
        }

        if (n == NGX_ERROR || n == 0) {
            return NGX_ERROR;
        }

        ron_client_sent(ipc->client, n);
    }
}


static void
ngx_ron_ipc_on_ready(void *ctx, const ron_hello_t *hello,
    const ron_ready_t *ready)
{
    ngx_ron_ipc_t *ipc = ctx;

    ipc->backoff = 0;
    ipc->told = 0;

    /* one that was silent and is heard again has not changed for that */

    if (ipc->greeted && ipc->greeted != ipc->helper) {
        ngx_ron_breaker_close();
    }

    ipc->greeted = ipc->helper;

    if (ipc->connection->read->timer_set) {
        ngx_del_timer(ipc->connection->read);
    }

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, ipc->log, 0,
                   "ron helper ready, generation:%uL state:%s",
                   hello->generation, ron_state_name(ready->state));

    ngx_ron_ipc_calls_send();

    if (ngx_ron_ipc_watcher) {
        ngx_ron_ipc_watcher(ready->seq, NULL);
    }
}


void
ngx_ron_ipc_watch(ngx_ron_commit_pt handler)
{
    ngx_ron_ipc_watcher = handler;
}


void
ngx_ron_ipc_answered(void (*handler)(void))
{
    ngx_ron_ipc_after = handler;
}


/* The steps of a worker in a drain: it says each of them once. */

static void
ngx_ron_ipc_on_state(void *ctx, const ron_msg_state_t *state)
{
    ngx_ron_ipc_t *ipc = ctx;

    if (state->state == RON_STATE_DRAINING && !ipc->draining) {
        ngx_log_error(NGX_LOG_NOTICE, ipc->log, 0,
                      "ron: intake stopped, %ui calls wait", ipc->calls_n);
        ipc->draining = 1;
        ngx_ron_ipc_drained(ipc);
    }

    if (state->state == RON_STATE_RUNNING) {
        ipc->draining = 0;
    }
}


void
ngx_ron_ipc_drained(ngx_ron_ipc_t *ipc)
{
    if (!ipc->draining || ipc->calls_n != 0) {
        return;
    }

    ipc->draining = 0;

    ngx_log_error(NGX_LOG_NOTICE, ipc->log, 0, "ron: no call waits any more");
}


static void
ngx_ron_ipc_on_commit(void *ctx, const ron_msg_commit_t *commit)
{
    if (ngx_ron_ipc_watcher) {
        ngx_ron_ipc_watcher(commit->seq, commit);
    }
}
