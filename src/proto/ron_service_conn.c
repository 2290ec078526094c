
/*
 * Connections of the service.
 *
 * A peer is found by its number and its serial, never by a pointer that was
 * kept, because the unit it sent may come back long after it has gone.
 *
 * Writing.  Answers are put into the connection's buffer; every peer that has
 * something new is in the dirty list, and is written once at the end of the
 * turn: all answers of one batch leave in one write.
 *
 * Binding.  To a temporary name first, and renamed over the public one, so
 * that there is no instant without a socket, and a worker that connects to
 * the old one finds out by its end.
 */

#include "ron_service_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>


#define RON_PEER_READ     (64 * 1024)
#define RON_PEER_READS    4                 /* a turn */
#define RON_PEER_BACKLOG  511

#define RON_EPOLL_LISTENER  UINT64_C(0xffffffffffffffff)


static ron_status_t ron_service_bind(ron_service_t *s, int fd);
static bool ron_service_allowed(ron_service_t *s, int fd);
static void ron_service_listener_off(ron_service_t *s, bool off);
static ron_status_t ron_peer_open(ron_service_t *s, int fd);
static void ron_peer_close(ron_service_t *s, ron_peer_t *p);
static void ron_peer_doom(ron_service_t *s, ron_peer_t *p);
static void ron_peer_dirty(ron_service_t *s, ron_peer_t *p);
static void ron_peer_poll_out(ron_service_t *s, ron_peer_t *p, bool on);
static void ron_peer_read(ron_service_t *s, ron_peer_t *p);
static void ron_peer_write(ron_service_t *s, ron_peer_t *p);
static void ron_peer_frames(ron_service_t *s, ron_peer_t *p);
static ron_status_t ron_peer_frame(ron_service_t *s, ron_peer_t *p,
    const ron_frame_t *frame);
static ron_status_t ron_peer_hello(ron_service_t *s, ron_peer_t *p);
static ron_status_t ron_peer_got_auth(ron_service_t *s, ron_peer_t *p,
    const ron_frame_t *frame);
static void ron_peer_failed(ron_service_t *s, ron_peer_t *p,
    ron_status_t status);


static uint64_t
ron_peer_token(const ron_peer_t *p)
{
    return p->serial << 16 | p->no;
}


/* ---- listening ---------------------------------------------------------- */

ron_status_t
ron_service_listen(ron_service_t *s)
{
    int                 fd;
    ron_status_t        status;
    struct epoll_event  ev;

    if (s->listener != -1) {
        return RON_OK;
    }

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd == -1) {
        return RON_EIO;
    }

    memset(&ev, 0, sizeof(ev));
    ev.events = EPOLLIN;
    ev.data.u64 = RON_EPOLL_LISTENER;

    status = ron_service_bind(s, fd);

    if (status == RON_OK && epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) == -1)
    {
        status = RON_EIO;
    }

    if (status != RON_OK) {
        (void) close(fd);
        return status;
    }

    s->listener = fd;
    s->listener_off = false;
    s->bound = !s->abstract;

    return RON_OK;
}


/*
 * The socket listens before it gets its name, so whoever can see it can
 * connect.  0660: its directory says who may come near, our handshake who
 * may speak.
 */

static ron_status_t
ron_service_bind(ron_service_t *s, int fd)
{
    struct stat         st;
    struct sockaddr_un  addr;

    if (s->abstract) {
        if (bind(fd, (struct sockaddr *) &s->addr, s->addr_len) == -1) {
            return errno == EADDRINUSE ? RON_AGAIN : RON_EIO;
        }

        return listen(fd, RON_PEER_BACKLOG) == -1 ? RON_EIO : RON_OK;
    }

    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;
    memcpy(addr.sun_path, s->temp, strlen(s->temp));

    (void) ron_file_unlink(s->temp);

    if (bind(fd, (struct sockaddr *) &addr, sizeof(addr)) == -1) {
        return RON_EIO;
    }

    if (chmod(s->temp, 0660) == -1 || listen(fd, RON_PEER_BACKLOG) == -1
        || stat(s->temp, &st) == -1
        || ron_file_rename(s->temp, s->conf.socket) != RON_OK)
    {
        (void) ron_file_unlink(s->temp);
        return RON_EIO;
    }

    s->ino = (uint64_t) st.st_ino;
    s->dev = (uint64_t) st.st_dev;

    return RON_OK;
}


/* Unlinked only while the ledger's lock says that the name is ours. */

void
ron_service_unlisten(ron_service_t *s, bool unlink)
{
    if (s->listener != -1) {
        (void) close(s->listener);
        s->listener = -1;
    }

    if (s->bound && unlink) {
        (void) ron_file_unlink(s->conf.socket);
    }

    s->bound = false;
}


static void
ron_service_listener_off(ron_service_t *s, bool off)
{
    struct epoll_event  ev;

    if (s->listener == -1 || s->listener_off == off) {
        return;
    }

    memset(&ev, 0, sizeof(ev));
    ev.events = off ? 0 : EPOLLIN;
    ev.data.u64 = RON_EPOLL_LISTENER;
    (void) epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->listener, &ev);
    s->listener_off = off;
}


static bool
ron_service_allowed(ron_service_t *s, int fd)
{
    socklen_t     len;
    struct ucred  cred;

    len = sizeof(cred);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1) {
        return false;
    }

    if (s->conf.allow) {
        return s->conf.allow(s->conf.ctx, cred.uid, cred.gid,
                             (uint32_t) cred.pid);
    }

    return cred.uid == 0 || cred.uid == geteuid();
}


void
ron_service_accept(ron_service_t *s)
{
    int  fd;

    for ( ;; ) {
        fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd == -1) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM
                || errno == ENOBUFS)
            {
                /* Looked at again with the next tick, instead of spinning. */
                ron_service_listener_off(s, true);
            }

            if (errno == ECONNABORTED || errno == EINTR) {
                continue;
            }

            return;
        }

        if (!ron_service_allowed(s, fd)) {
            ron_service_count(s, RON_STAT_DENIED, 1);
            (void) close(fd);
            continue;
        }

        if (s->peer_n == s->conf.connections
            || ron_peer_open(s, fd) != RON_OK)
        {
            (void) close(fd);
        }
    }
}


/* ---- peers -------------------------------------------------------------- */

static ron_status_t
ron_peer_open(ron_service_t *s, int fd)
{
    uint32_t            no;
    ron_peer_t         *p;
    struct epoll_event  ev;

    for (no = 0; s->peers[no] != NULL; no++) { /* void */ }

    p = calloc(1, sizeof(ron_peer_t));
    if (p == NULL) {
        return RON_ENOMEM;
    }

    p->fd = fd;
    p->no = no;
    p->serial = ++s->serial & ((UINT64_C(1) << 48) - 1);
    p->since_us = ron_clock_mono_us();
    ron_conn_init(&p->conn, s->conf.out_max);
    ron_buf_init(&p->hello, 0);

    memset(&ev, 0, sizeof(ev));
    ev.events = EPOLLIN | EPOLLRDHUP;
    ev.data.u64 = ron_peer_token(p);

    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) == -1
        || ron_peer_hello(s, p) != RON_OK)
    {
        ron_conn_free(&p->conn);
        ron_buf_free(&p->hello);
        free(p);
        return RON_EIO;
    }

    s->peers[no] = p;
    s->peer_n++;
    s->unready_n++;
    ron_service_gauge(s, RON_STAT_CONNECTIONS, s->peer_n);
    ron_peer_dirty(s, p);

    return RON_OK;
}


static void
ron_peer_close(ron_service_t *s, ron_peer_t *p)
{
    uint32_t  i;

    if (p->dirty) {
        for (i = 0; s->dirty[i] != p; i++) { /* void */ }
        s->dirty[i] = s->dirty[--s->dirty_n];
    }

    (void) close(p->fd);
    ron_conn_free(&p->conn);
    ron_buf_free(&p->hello);

    s->unready_n -= !p->ready;
    s->peers[p->no] = NULL;
    s->peer_n--;
    ron_service_gauge(s, RON_STAT_CONNECTIONS, s->peer_n);
    free(p);
}


/* Closed at the end of the turn, when nobody looks at it any more. */

static void
ron_peer_doom(ron_service_t *s, ron_peer_t *p)
{
    p->doomed = true;
    ron_peer_dirty(s, p);
}


static void
ron_peer_dirty(ron_service_t *s, ron_peer_t *p)
{
    if (!p->dirty) {
        p->dirty = true;
        s->dirty[s->dirty_n++] = p;
    }
}


static void
ron_peer_poll_out(ron_service_t *s, ron_peer_t *p, bool on)
{
    struct epoll_event  ev;

    if (p->polled_out == on) {
        return;
    }

    memset(&ev, 0, sizeof(ev));
    ev.events = EPOLLIN | EPOLLRDHUP | (on ? EPOLLOUT : 0);
    ev.data.u64 = ron_peer_token(p);
    (void) epoll_ctl(s->epoll, EPOLL_CTL_MOD, p->fd, &ev);
    p->polled_out = on;
}


void
ron_service_peer_event(ron_service_t *s, uint32_t no, uint64_t serial,
    uint32_t events)
{
    ron_peer_t  *p;

    p = no < s->conf.connections ? s->peers[no] : NULL;

    if (p == NULL || p->serial != serial || p->doomed) {
        return;
    }

    /*
     * Who has hung up sends what is unread here again, over a connection that
     * may be read before this one: the older copy must not come later.
     */

    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        ron_peer_doom(s, p);
        return;
    }

    if (events & EPOLLIN) {
        ron_peer_read(s, p);
    }

    if (events & EPOLLOUT) {
        ron_peer_dirty(s, p);
    }
}


static void
ron_peer_read(ron_service_t *s, ron_peer_t *p)
{
    size_t    room;
    ssize_t   n;
    uint8_t  *to;
    unsigned  reads;

    for (reads = 0; reads < RON_PEER_READS && !p->doomed; reads++) {
        to = ron_conn_space(&p->conn, RON_PEER_READ, &room);
        if (to == NULL) {
            ron_peer_doom(s, p);
            return;
        }

        n = recv(p->fd, to, room, 0);

        if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }

        if (n <= 0) {
            ron_peer_doom(s, p);
            return;
        }

        ron_conn_came(&p->conn, (size_t) n);
        ron_peer_frames(s, p);

        if ((size_t) n < room) {
            return;
        }
    }
}


static void
ron_peer_frames(ron_service_t *s, ron_peer_t *p)
{
    ron_frame_t   frame;
    ron_status_t  status;

    while (!p->doomed) {
        status = ron_conn_next(&p->conn, &frame);

        if (status == RON_AGAIN) {
            return;
        }

        if (status == RON_OK) {
            status = ron_peer_frame(s, p, &frame);
        }

        if (status != RON_OK) {
            ron_peer_failed(s, p, status);
            return;
        }
    }
}


static void
ron_peer_failed(ron_service_t *s, ron_peer_t *p, ron_status_t status)
{
    if (status == RON_ENOTFOUND) {
        ron_service_count(s, RON_STAT_AUTH_FAILURES, 1);
        ron_log(RON_LOG_WARN, "a peer of the ledger's socket does not have"
                " the key");

    } else {
        ron_service_count(s, RON_STAT_PROTOCOL_ERRORS, 1);
        ron_log(RON_LOG_WARN, "a peer of the ledger's socket is closed, for"
                " what it sent is wrong: %s", ron_status_name(status));
    }

    ron_peer_doom(s, p);
}


static ron_status_t
ron_peer_hello(ron_service_t *s, ron_peer_t *p)
{
    ron_hello_t   hello;
    ron_status_t  status;

    memset(&hello, 0, sizeof(hello));
    hello.version_min = RON_FRAME_VERSION;
    hello.version_max = RON_FRAME_VERSION;
    hello.generation = s->conf.generation;

    status = ron_random(hello.nonce, sizeof(hello.nonce));
    if (status != RON_OK) {
        return status;
    }

    ron_hello_put(&p->hello, &hello);

    return ron_conn_put(&p->conn, RON_FRAME_HELLO, 0, 0,
                        ron_buf_str(&p->hello));
}


static ron_status_t
ron_peer_got_auth(ron_service_t *s, ron_peer_t *p, const ron_frame_t *frame)
{
    ron_auth_t    auth;
    ron_ready_t   ready;
    ron_status_t  status;

    if (frame->type != RON_FRAME_AUTH) {
        return RON_EINVAL;
    }

    status = ron_auth_check(frame->payload, &s->key, ron_buf_str(&p->hello),
                            &auth);
    if (status != RON_OK) {
        return status;
    }

    memset(&ready, 0, sizeof(ready));
    ready.state = s->state;
    ready.seq = s->seq;
    ready.time_ms = s->time_ms;
    ready.root = s->root;

    ron_buf_reset(&s->scratch);
    status = ron_ready_put(&s->scratch, &s->key, ron_buf_str(&p->hello),
                           frame->payload, &ready);

    if (status == RON_OK) {
        status = ron_conn_put(&p->conn, RON_FRAME_READY, 0, 0,
                              ron_buf_str(&s->scratch));
    }

    if (status == RON_OK) {
        p->ready = true;
        p->pid = auth.pid;
        p->slot = auth.slot;
        s->unready_n--;
        ron_buf_free(&p->hello);
        ron_peer_dirty(s, p);
    }

    return status;
}


static ron_status_t
ron_peer_frame(ron_service_t *s, ron_peer_t *p, const ron_frame_t *frame)
{
    ron_reply_t  reply;

    if (!p->ready) {
        return ron_peer_got_auth(s, p, frame);
    }

    if (frame->call == 0) {
        return RON_EINVAL;
    }

    reply = (ron_reply_t) { p->no, p->serial, frame->call };

    switch (frame->type) {

    case RON_FRAME_UNIT:
        return ron_service_got_unit(s, &reply, frame->payload);

    case RON_FRAME_BALANCE:
        return ron_service_got_balance(s, &reply, frame->payload);

    case RON_FRAME_LOOKUP:
        return ron_service_got_lookup(s, &reply, frame->payload);

    case RON_FRAME_ADMIN:
        return ron_service_got_admin(s, &reply, frame->payload);

    default:
        return RON_EINVAL;
    }
}


/* ---- writing ------------------------------------------------------------ */

static void
ron_peer_write(ron_service_t *s, ron_peer_t *p)
{
    ssize_t    n;
    ron_str_t  out;

    for ( ;; ) {
        out = ron_conn_output(&p->conn);

        if (out.len == 0) {
            ron_peer_poll_out(s, p, false);
            return;
        }

        n = send(p->fd, out.data, out.len, MSG_NOSIGNAL);

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n == -1 && errno == EAGAIN) {
            ron_peer_poll_out(s, p, true);
            return;
        }

        if (n == -1) {
            p->doomed = true;
            return;
        }

        ron_conn_sent(&p->conn, (size_t) n);
    }
}


void
ron_service_peers_flush(ron_service_t *s)
{
    ron_peer_t  *p;

    while (s->dirty_n > 0) {
        p = s->dirty[--s->dirty_n];
        p->dirty = false;

        if (!p->doomed) {
            ron_peer_write(s, p);
        }

        if (p->doomed) {
            ron_peer_close(s, p);
        }
    }
}


/* Once a tick: handshakes that take too long, and the paused listener. */

void
ron_service_peers_expire(ron_service_t *s, uint64_t now_us)
{
    uint32_t     no;
    uint64_t     limit_us;
    ron_peer_t  *p;

    ron_service_listener_off(s, false);

    limit_us = UINT64_C(1000) * ron_timeout_info(RON_TIMEOUT_HANDSHAKE)->ms;

    for (no = 0; s->unready_n > 0 && no < s->conf.connections; no++) {
        p = s->peers[no];

        if (p != NULL && !p->ready && !p->doomed
            && now_us - p->since_us > limit_us)
        {
            ron_service_count(s, RON_STAT_AUTH_FAILURES, 1);
            ron_peer_doom(s, p);
        }
    }
}


void
ron_service_peers_close(ron_service_t *s)
{
    uint32_t  no;

    for (no = 0; no < s->conf.connections; no++) {
        if (s->peers[no] != NULL) {
            ron_peer_close(s, s->peers[no]);
        }
    }
}


void
ron_service_push(ron_service_t *s, ron_frame_type_t type, ron_str_t payload)
{
    uint32_t     no;
    ron_peer_t  *p;
    ron_reply_t  reply;

    for (no = 0; no < s->conf.connections; no++) {
        p = s->peers[no];

        if (p != NULL && p->ready && !p->doomed) {
            reply = (ron_reply_t) { no, p->serial, 0 };
            ron_service_answer(s, &reply, type, payload);
        }
    }
}


void
ron_service_answer(ron_service_t *s, const ron_reply_t *reply,
    ron_frame_type_t type, ron_str_t payload)
{
    ron_peer_t    *p;
    ron_status_t   status;

    p = s->peers[reply->no];

    if (p == NULL || p->serial != reply->serial || p->doomed) {
        return;
    }

    status = ron_conn_put_long(&p->conn, type, reply->call, payload);

    if (status != RON_OK) {
        if (status == RON_EFULL) {
            ron_service_count(s, RON_STAT_SLOW_CLOSED, 1);
            ron_log(RON_LOG_WARN, "worker %u does not read its answers, its"
                    " connection is closed", p->pid);
        }

        ron_peer_doom(s, p);
        return;
    }

    ron_peer_dirty(s, p);
}
