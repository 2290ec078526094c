
/*
 * Descriptors: files of the port, and the few system calls of the service's
 * event loop, which the linker (--wrap) sends here.
 *
 * A stream is two directions of bounded bytes.  A piece arrives some time
 * after it was sent, in order; a read gives part of what has arrived; a write
 * takes part of what was offered.  Whoever closes still gets his bytes
 * delivered; whoever breaks a stream loses any part of them.
 */

#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>


#define NET_FDS      1024
#define NET_FD_BASE  1000
#define NET_WATCH    64
#define NET_BACKLOG  64
#define NET_PIECES   256
#define NET_NAMES    32


typedef struct {
    uint64_t  at_us;
    size_t    len;
    size_t    pos;
    uint8_t  *data;
} piece_t;

struct sim_end_s {
    sim_end_t   *peer;                  /* NULL: forgotten */
    piece_t      in[NET_PIECES];
    uint32_t     in_at;
    uint32_t     in_n;
    size_t       in_len;
    size_t       in_max;
    bool         eof;                   /* after what is in */
    bool         closed;                /* by its owner */
    bool         broken;
    const void  *chan;                  /* the epoll that watches, or NULL */
};

typedef enum {
    FD_NONE = 0, FD_FILE, FD_EPOLL, FD_EVENT, FD_SOCKET, FD_LISTENER, FD_STREAM
} fd_kind_t;

typedef struct {
    int       fd;
    uint32_t  events;
    uint64_t  data;
} watch_t;

typedef struct {
    fd_kind_t    kind;
    sim_proc_t  *proc;
    sim_file_t  *file;
    bool         writable;
    uint64_t     count;                 /* of an eventfd */
    watch_t      watch[NET_WATCH];
    uint32_t     watch_n;
    int          watched_by;            /* an epoll's descriptor, -1 */
    sim_end_t   *end;
    sim_end_t   *queue[NET_BACKLOG];    /* not accepted yet */
    uint32_t     queue_n;
} net_fd_t;

typedef struct {
    char  path[112];
    int   fd;                           /* -1: nobody listens any more */
} net_name_t;


static net_fd_t    net_fds[NET_FDS];
static net_name_t  net_names[NET_NAMES];
static uint32_t    net_name_n;


int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int max,
    int timeout_ms);
int __wrap_eventfd(unsigned count, int flags);
ssize_t __wrap_read(int fd, void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
int __wrap_close(int fd);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_listen(int fd, int backlog);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags);
int __wrap_getsockopt(int fd, int level, int name, void *value,
    socklen_t *len);
int __wrap_chmod(const char *path, mode_t mode);
int __wrap_stat(const char *path, struct stat *st);
uid_t __wrap_geteuid(void);
pid_t __wrap_getpid(void);


static net_fd_t *
net_fd(int fd)
{
    RON_ASSERT(fd >= NET_FD_BASE && fd < NET_FD_BASE + NET_FDS);
    RON_ASSERT(net_fds[fd - NET_FD_BASE].kind != FD_NONE);

    return &net_fds[fd - NET_FD_BASE];
}


static int
net_new(fd_kind_t kind)
{
    uint32_t  i;

    for (i = 0; i < NET_FDS; i++) {
        if (net_fds[i].kind == FD_NONE) {
            memset(&net_fds[i], 0, sizeof(net_fd_t));
            net_fds[i].kind = kind;
            net_fds[i].proc = sim_proc();
            net_fds[i].watched_by = -1;

            if (sim_proc()) {
                sim_proc()->fds++;
            }

            return NET_FD_BASE + (int) i;
        }
    }

    sim_fail("no descriptor is left: they leak");
}


int
sim_fd_new_file(sim_file_t *f, bool writable)
{
    int  fd;

    fd = net_new(FD_FILE);
    net_fd(fd)->file = sim_file_hold(f);
    net_fd(fd)->writable = writable;

    return fd;
}


sim_file_t *
sim_fd_file(int fd)
{
    return net_fd(fd)->file;
}


const void *
sim_fd_owner(int fd)
{
    return net_fd(fd);
}


/* ---- streams ------------------------------------------------------------ */

static sim_end_t *
end_new(void)
{
    sim_end_t  *e;

    e = calloc(1, sizeof(sim_end_t));
    RON_ASSERT(e != NULL);
    e->in_max = sim.exhaustive ? 1 << 20 : 512 + (size_t) sim_below(65536);

    return e;
}


static void
end_wake(sim_end_t *e)
{
    if (e != NULL && e->chan != NULL) {
        sim_wake(e->chan, true);
    }
}


static bool
end_readable(const sim_end_t *e, uint64_t *when_us)
{
    if (e->in_n > 0) {
        if (e->in[e->in_at].at_us <= sim.mono_us) {
            return true;
        }

        *when_us = ron_min(*when_us, e->in[e->in_at].at_us);
        return false;
    }

    return e->eof;
}


static bool
end_writable(const sim_end_t *e)
{
    return e->peer == NULL || e->peer->closed || e->broken
           || (e->peer->in_len < e->peer->in_max
               && e->peer->in_n < NET_PIECES);
}


int64_t
sim_end_recv(sim_end_t *e, void *buf, size_t len)
{
    size_t    n;
    uint64_t  when_us;
    piece_t  *p;

    when_us = SIM_NEVER;

    if (!end_readable(e, &when_us)) {
        return 0;
    }

    if (e->in_n == 0) {
        return -1;
    }

    p = &e->in[e->in_at];
    n = ron_min(len, p->len - p->pos);

    if (sim_chance(1, 8)) {
        n = 1 + (size_t) sim_below(n);
    }

    memcpy(buf, p->data + p->pos, n);
    p->pos += n;
    e->in_len -= n;

    if (p->pos == p->len) {
        free(p->data);
        e->in_at = (e->in_at + 1) % NET_PIECES;
        e->in_n--;
    }

    end_wake(e->peer);

    return (int64_t) n;
}


int64_t
sim_end_send(sim_end_t *e, const void *buf, size_t len)
{
    size_t      n;
    uint64_t    at_us;
    piece_t    *p;
    sim_end_t  *to;

    to = e->peer;

    if (to == NULL || to->closed || e->broken) {
        return -1;
    }

    if (!end_writable(e)) {
        return 0;
    }

    n = ron_min(len, to->in_max - to->in_len);

    if (sim_chance(1, 8)) {
        n = 1 + (size_t) sim_below(n);
    }

    at_us = sim.mono_us;

    if (!sim.exhaustive) {
        at_us += sim_below(sim_chance(1, 30) ? 200000 : 300);
    }

    if (to->in_n > 0) {
        at_us = ron_max(at_us, to->in[(to->in_at + to->in_n - 1)
                                      % NET_PIECES].at_us);
    }

    p = &to->in[(to->in_at + to->in_n++) % NET_PIECES];
    p->at_us = at_us;
    p->pos = 0;
    p->len = n;
    p->data = malloc(n);
    RON_ASSERT(p->data != NULL);
    memcpy(p->data, buf, n);
    to->in_len += n;
    end_wake(to);

    return (int64_t) n;
}


void
sim_end_close(sim_end_t *e)
{
    e->closed = true;

    if (e->peer != NULL) {
        e->peer->eof = true;
        end_wake(e->peer);
    }
}


void
sim_end_wait(sim_end_t *e)
{
    uint64_t  when_us;

    when_us = SIM_NEVER;

    if (!end_readable(e, &when_us)) {
        e->chan = e;
        (void) sim_wait(e, when_us);
    }
}


static void
end_lose(sim_end_t *e)
{
    e->broken = true;
    e->eof = true;

    while (e->in_n > 0 && !sim_chance(1, 3)) {
        e->in_n--;
        e->in_len -= e->in[(e->in_at + e->in_n) % NET_PIECES].len
                     - e->in[(e->in_at + e->in_n) % NET_PIECES].pos;
    }

    end_wake(e);
}


void
sim_end_break(sim_end_t *e)
{
    end_lose(e);

    if (e->peer != NULL) {
        end_lose(e->peer);
    }
}


static net_name_t *
net_name(const char *path)
{
    uint32_t  i;

    for (i = 0; i < net_name_n; i++) {
        if (strcmp(net_names[i].path, path) == 0) {
            return &net_names[i];
        }
    }

    return NULL;
}


sim_end_t *
sim_connect(const char *path)
{
    net_fd_t    *l;
    sim_end_t   *a, *b;
    net_name_t  *name;

    name = net_name(path);

    if (name == NULL || name->fd == -1) {
        return NULL;
    }

    l = net_fd(name->fd);

    if (l->kind != FD_LISTENER || l->queue_n == NET_BACKLOG) {
        return NULL;
    }

    a = end_new();
    b = end_new();
    a->peer = b;
    b->peer = a;
    l->queue[l->queue_n++] = b;

    if (l->watched_by != -1) {
        sim_wake(net_fd(l->watched_by), true);
    }

    return a;
}


bool
sim_net_rename(const char *from, const char *to)
{
    net_name_t  *a, *b;

    a = net_name(from);

    if (a == NULL) {
        return false;
    }

    b = net_name(to);

    if (b != NULL) {
        b->fd = a->fd;
        *a = net_names[--net_name_n];

    } else {
        (void) snprintf(a->path, sizeof(a->path), "%s", to);
    }

    return true;
}


bool
sim_net_unlink(const char *path)
{
    net_name_t  *name;

    name = net_name(path);

    if (name == NULL) {
        return false;
    }

    *name = net_names[--net_name_n];

    return true;
}


void
sim_net_forget_names(void)
{
    net_name_n = 0;
}


/* ---- descriptors: the end ----------------------------------------------- */

void
sim_fd_close(int fd)
{
    uint32_t   i, k;
    net_fd_t  *n;

    n = net_fd(fd);

    if (n->watched_by != -1
        && net_fds[n->watched_by - NET_FD_BASE].kind == FD_EPOLL)
    {
        net_fd_t  *ep = net_fd(n->watched_by);

        for (i = 0; i < ep->watch_n; i++) {
            if (ep->watch[i].fd == fd) {
                ep->watch[i] = ep->watch[--ep->watch_n];
                break;
            }
        }
    }

    switch (n->kind) {

    case FD_FILE:
        sim_file_unlock(n->file, n);
        sim_file_drop(n->file);
        break;

    case FD_STREAM:
        n->end->chan = NULL;
        sim_end_close(n->end);
        break;

    case FD_SOCKET:
    case FD_LISTENER:
        for (k = 0; k < n->queue_n; k++) {
            sim_end_close(n->queue[k]);
        }

        for (k = 0; k < net_name_n; k++) {
            if (net_names[k].fd == fd) {
                net_names[k].fd = -1;
            }
        }
        break;

    default:
        break;
    }

    if (n->proc) {
        n->proc->fds--;
    }

    n->kind = FD_NONE;
}


void
sim_net_proc_died(sim_proc_t *proc)
{
    uint32_t  i;

    for (i = 0; i < NET_FDS; i++) {
        if (net_fds[i].kind != FD_NONE && net_fds[i].proc == proc) {
            sim_fd_close(NET_FD_BASE + (int) i);
        }
    }
}


/* ---- what the linker sends here ----------------------------------------- */

int
__wrap_epoll_create1(int flags)
{
    (void) flags;

    return net_new(FD_EPOLL);
}


int
__wrap_eventfd(unsigned count, int flags)
{
    int  fd;

    (void) flags;
    fd = net_new(FD_EVENT);
    net_fd(fd)->count = count;

    return fd;
}


int
__wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
    uint32_t   i;
    net_fd_t  *ep, *n;

    ep = net_fd(epfd);
    n = net_fd(fd);

    for (i = 0; i < ep->watch_n && ep->watch[i].fd != fd; i++) { /**/ }

    if (op == EPOLL_CTL_DEL) {
        RON_ASSERT(i < ep->watch_n);
        ep->watch[i] = ep->watch[--ep->watch_n];
        n->watched_by = -1;
        return 0;
    }

    RON_ASSERT(i < NET_WATCH && (op == EPOLL_CTL_ADD) == (i == ep->watch_n));

    if (op == EPOLL_CTL_ADD) {
        ep->watch_n++;
        n->watched_by = epfd;

        if (n->kind == FD_STREAM) {
            n->end->chan = ep;
        }
    }

    ep->watch[i].fd = fd;
    ep->watch[i].events = ev->events;
    ep->watch[i].data = ev->data.u64;

    return 0;
}


static uint32_t
net_ready(const watch_t *w, uint64_t *when_us)
{
    uint32_t   events;
    net_fd_t  *n;

    n = net_fd(w->fd);
    events = 0;

    switch (n->kind) {

    case FD_EVENT:
        events = n->count > 0 ? EPOLLIN : 0;
        break;

    case FD_LISTENER:
        events = n->queue_n > 0 ? EPOLLIN : 0;
        break;

    case FD_STREAM:
        events = end_readable(n->end, when_us) ? EPOLLIN : 0;
        events |= n->end->eof && n->end->in_n == 0 ? EPOLLRDHUP : 0;
        events |= end_writable(n->end) ? EPOLLOUT : 0;
        break;

    default:
        break;
    }

    return events & w->events;
}


int
__wrap_epoll_wait(int epfd, struct epoll_event *events, int max,
    int timeout_ms)
{
    int        n;
    uint32_t   i, k, ready;
    uint64_t   end_us, when_us;
    net_fd_t  *ep;

    sim_point();

    end_us = timeout_ms < 0 || (timeout_ms > 0 && sim.exhaustive)
             ? SIM_NEVER : sim.mono_us + (uint64_t) timeout_ms * 1000;

    for ( ;; ) {
        ep = net_fd(epfd);
        when_us = end_us;
        n = 0;
        k = ep->watch_n > 1 && !sim.exhaustive ? (uint32_t) sim_below(ep->watch_n) : 0;

        for (i = 0; i < ep->watch_n && n < max; i++) {
            watch_t  *w = &ep->watch[(i + k) % ep->watch_n];

            ready = net_ready(w, &when_us);

            if (ready != 0) {
                events[n].events = ready;
                events[n++].data.u64 = w->data;
            }
        }

        if (n > 0 || sim.mono_us >= end_us) {
            return n;
        }

        (void) sim_wait(ep, when_us);
    }
}


ssize_t
__wrap_read(int fd, void *buf, size_t len)
{
    net_fd_t  *n;

    n = net_fd(fd);
    RON_ASSERT(n->kind == FD_EVENT && len == sizeof(uint64_t));

    if (n->count == 0) {
        errno = EAGAIN;
        return -1;
    }

    memcpy(buf, &n->count, sizeof(uint64_t));
    n->count = 0;

    return (ssize_t) len;
}


ssize_t
__wrap_write(int fd, const void *buf, size_t len)
{
    uint64_t   add;
    net_fd_t  *n;

    n = net_fd(fd);
    RON_ASSERT(n->kind == FD_EVENT && len == sizeof(uint64_t));

    memcpy(&add, buf, sizeof(add));
    n->count += add;

    if (n->watched_by != -1) {
        sim_wake(net_fd(n->watched_by), true);
    }

    return (ssize_t) len;
}


int
__wrap_close(int fd)
{
    sim_fd_close(fd);

    return 0;
}


int
__wrap_socket(int domain, int type, int protocol)
{
    (void) type;
    (void) protocol;
    RON_ASSERT(domain == AF_UNIX);

    return net_new(FD_SOCKET);
}


int
__wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    char                       path[112];
    net_name_t                *name;
    const struct sockaddr_un  *un;

    un = (const void *) addr;
    (void) snprintf(path, sizeof(path), "%.*s", (int) sizeof(un->sun_path),
                    un->sun_path[0] ? un->sun_path : "@");

    if (un->sun_path[0] == '\0') {
        memcpy(path + 1, un->sun_path + 1,
               ron_min((size_t) len - sizeof(sa_family_t) - 1,
                       sizeof(path) - 2));
    }

    name = net_name(path);

    if (name != NULL && (path[0] != '@' || name->fd != -1)) {
        errno = EADDRINUSE;
        return -1;
    }

    if (name == NULL) {
        RON_ASSERT(net_name_n < NET_NAMES);
        name = &net_names[net_name_n++];
        (void) snprintf(name->path, sizeof(name->path), "%s", path);
    }

    name->fd = fd;

    return 0;
}


int
__wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    sim_end_t                 *end;
    const struct sockaddr_un  *un;

    (void) len;
    un = (const void *) addr;
    end = sim_connect(un->sun_path);

    if (end == NULL) {
        errno = net_name(un->sun_path) ? ECONNREFUSED : ENOENT;
        return -1;
    }

    net_fd(fd)->kind = FD_STREAM;
    net_fd(fd)->end = end;

    return 0;
}


int
__wrap_listen(int fd, int backlog)
{
    (void) backlog;
    net_fd(fd)->kind = FD_LISTENER;

    return 0;
}


int
__wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    int         no;
    net_fd_t   *n;
    sim_end_t  *e;

    (void) addr;
    (void) len;
    (void) flags;

    n = net_fd(fd);

    if (n->queue_n == 0) {
        errno = EAGAIN;
        return -1;
    }

    e = n->queue[0];
    n->queue_n--;
    memmove(n->queue, n->queue + 1, n->queue_n * sizeof(n->queue[0]));

    no = net_new(FD_STREAM);
    net_fd(no)->end = e;

    return no;
}


ssize_t
__wrap_recv(int fd, void *buf, size_t len, int flags)
{
    int64_t     n;
    uint64_t    when_us;
    sim_end_t  *e;

    (void) flags;
    e = net_fd(fd)->end;
    when_us = SIM_NEVER;

    if (!end_readable(e, &when_us)) {
        errno = EAGAIN;
        return -1;
    }

    n = sim_end_recv(e, buf, len);

    if (n < 0 && e->broken) {
        errno = ECONNRESET;
        return -1;
    }

    return n < 0 ? 0 : (ssize_t) n;
}


ssize_t
__wrap_send(int fd, const void *buf, size_t len, int flags)
{
    int64_t  n;

    (void) flags;
    n = sim_end_send(net_fd(fd)->end, buf, len);

    if (n == 0) {
        errno = EAGAIN;
        return -1;
    }

    if (n < 0) {
        errno = EPIPE;
        return -1;
    }

    return (ssize_t) n;
}


int
__wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    struct ucred  cred;

    (void) fd;
    RON_ASSERT(level == SOL_SOCKET && name == SO_PEERCRED
               && *len == sizeof(cred));
    memset(&cred, 0, sizeof(cred));
    memcpy(value, &cred, sizeof(cred));

    return 0;
}


int
__wrap_chmod(const char *path, mode_t mode)
{
    (void) mode;

    return net_name(path) != NULL ? 0 : -1;
}


int
__wrap_stat(const char *path, struct stat *st)
{
    sim_file_t  *f;
    net_name_t  *name;

    memset(st, 0, sizeof(struct stat));
    name = net_name(path);

    if (name != NULL) {
        st->st_mode = S_IFSOCK | 0660;
        st->st_ino = (ino_t) (name->fd + 1);
        return 0;
    }

    f = sim_disk_find(path);

    if (f == NULL) {
        errno = ENOENT;
        return -1;
    }

    st->st_mode = sim_file_is_dir(f) ? S_IFDIR | 0700 : S_IFREG | 0600;

    return 0;
}


uid_t
__wrap_geteuid(void)
{
    return 0;
}


pid_t
__wrap_getpid(void)
{
    return sim_proc() ? (pid_t) sim_proc()->no : 1;
}
