
#include "ron_ctl_http.h"
#include "ron_port.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>


#define HTTP_EVENTS    256
#define HTTP_READ      (16 * 1024)
#define HTTP_BODY_MAX  ((size_t) 256 * 1024 * 1024)
#define HTTP_SCAN_US   20000
#define HTTP_TICK_US   100000
#define HTTP_AGAIN_US  50000

/*
 * Of an open loop, what is due within so long is sent together: a wake-up for
 * each would take more of the processor than all else, from whoever is
 * measured on the same machine.  A latency counts from when it was due.
 */
#define HTTP_PACE_US   200


typedef enum {
    HTTP_CLOSED = 0,
    HTTP_CONNECTING,
    HTTP_IDLE,                  /* open, and nothing is due */
    HTTP_BUSY,
    HTTP_DONE
} http_state_t;


typedef struct {
    int           fd;
    http_state_t  state;
    uint32_t      events;

    ron_str_t     request;      /* null: none is under way */
    size_t        sent;
    uint64_t      since_us;
    uint64_t      limit_us;
    uint64_t      again_us;     /* 0, or when the same is tried again */
    uint64_t      answers;      /* on this connection */
    bool          resent;
    bool          waits;        /* in the ring of the idle */

    /*
     * What came: a header of `head` bytes, and of the body what is read, with
     * chunks already put together up to `end`.
     */
    uint8_t      *in;
    size_t        in_len;
    size_t        in_cap;
    size_t        head;
    size_t        end;
    size_t        left;         /* of the body, or of the chunk */
    unsigned      status;
    bool          chunked;
    bool          last_chunk;
    bool          close;
} http_conn_t;


typedef struct {
    const ron_http_conf_t  *conf;
    ron_http_stat_t        *st;
    int                     epoll;
    http_conn_t            *conns;
    struct addrinfo        *addr;
    unsigned                active;
    unsigned               *idle;       /* a ring */
    unsigned                idle_head;
    unsigned                idle_n;
    uint64_t                due_n;
    uint64_t                taken_us;   /* when one was due last */
    uint64_t                end_us;
    uint64_t                scan_us;
    uint64_t                tick_us;
    uint64_t                now_us;
    bool                    stop;
    bool                    fatal;
} http_t;


typedef enum {
    HTTP_MORE = 0,              /* the answer is not whole yet */
    HTTP_WHOLE,
    HTTP_BAD
} http_parse_t;


static bool http_address(http_t *h);
static void http_loop(http_t *h);
static uint64_t http_due_us(const http_t *h);
static void http_wait(http_t *h, struct epoll_event *events, int *n);
static void http_scan(http_t *h);
static void http_event(http_t *h, http_conn_t *c, uint32_t events);
static void http_next(http_t *h, http_conn_t *c);
static void http_idle_leave(http_t *h, http_conn_t *c);
static bool http_due(http_t *h, uint64_t *since_us);
static void http_begin(http_t *h, http_conn_t *c);
static void http_done(http_t *h, http_conn_t *c);
static void http_connect(http_t *h, http_conn_t *c);
static void http_connected(http_t *h, http_conn_t *c);
static void http_watch(http_t *h, http_conn_t *c, uint32_t events);
static void http_send(http_t *h, http_conn_t *c);
static void http_read(http_t *h, http_conn_t *c);
static void http_answer(http_t *h, http_conn_t *c);
static void http_broken(http_t *h, http_conn_t *c, const char *why);
static void http_reset(http_conn_t *c);
static void http_fatal(http_t *h, const char *why);
static http_parse_t http_parse(http_conn_t *c);
static http_parse_t http_head(http_conn_t *c);
static bool http_field(http_conn_t *c, const char *line, size_t len);
static http_parse_t http_chunks(http_conn_t *c);


bool
ron_http_host(const char *url, ron_str_t *host)
{
    size_t  len;

    if (strncmp(url, "http://", 7) != 0) {
        return false;
    }

    url += 7;
    len = strcspn(url, "/");
    *host = (ron_str_t) { len, (const uint8_t *) url };

    return len > 0 && len < 256 && (url[len] == '\0' || url[len + 1] == '\0');
}


ron_status_t
ron_http_run(const ron_http_conf_t *conf, ron_http_stat_t *st)
{
    http_t  h;

    memset(st, 0, sizeof(ron_http_stat_t));
    memset(&h, 0, sizeof(h));
    h.conf = conf;
    h.st = st;
    h.epoll = epoll_create1(EPOLL_CLOEXEC);
    h.conns = calloc(conf->connections, sizeof(http_conn_t));
    h.idle = calloc(conf->connections, sizeof(unsigned));

    if (h.epoll < 0 || h.conns == NULL || h.idle == NULL) {
        http_fatal(&h, "no memory");

    } else if (http_address(&h)) {
        http_loop(&h);
    }

    for (unsigned i = 0; h.conns != NULL && i < conf->connections; i++) {
        if (h.conns[i].fd > 0) {
            close(h.conns[i].fd);
        }

        free(h.conns[i].in);
    }

    if (h.epoll >= 0) {
        close(h.epoll);
    }

    if (h.addr != NULL) {
        freeaddrinfo(h.addr);
    }

    free(h.conns);
    free(h.idle);

    return h.fatal ? RON_EIO : RON_OK;
}


static bool
http_address(http_t *h)
{
    char             host[256], *port;
    ron_str_t        name;
    struct addrinfo  hints;

    if (!ron_http_host(h->conf->url, &name)) {
        http_fatal(h, "the URL must be http://host:port");
        return false;
    }

    snprintf(host, sizeof(host), "%.*s", (int) name.len,
             (const char *) name.data);
    port = strrchr(host, ':');

    if (port != NULL) {
        *port++ = '\0';
    }

    memset(&hints, 0, sizeof(hints));
    hints.ai_socktype = SOCK_STREAM;

    if (getaddrinfo(host, port != NULL ? port : "80", &hints, &h->addr) != 0) {
        h->addr = NULL;
        http_fatal(h, "the host of the URL is not known");
        return false;
    }

    return true;
}


/* ---- time --------------------------------------------------------------- */

static void
http_loop(http_t *h)
{
    int                 n;
    uint64_t            all;
    struct epoll_event  events[HTTP_EVENTS];

    h->now_us = ron_clock_mono_us();
    h->st->begin_us = h->now_us;
    h->scan_us = h->now_us + HTTP_SCAN_US;
    h->end_us = h->conf->run_us ? h->now_us + h->conf->run_us : UINT64_MAX;
    h->active = h->conf->connections;

    for (unsigned i = 0; i < h->conf->connections && !h->fatal; i++) {
        http_connect(h, &h->conns[i]);
    }

    while (h->active > 0 && !h->fatal) {
        http_wait(h, events, &n);
        h->now_us = ron_clock_mono_us();

        for (int i = 0; i < n && !h->fatal; i++) {
            http_event(h, events[i].data.ptr, events[i].events);
        }

        if (h->now_us >= h->scan_us) {
            http_scan(h);
        }

        while (h->idle_n > 0
               && (h->stop || h->now_us >= h->end_us
                   || h->now_us >= http_due_us(h)))
        {
            http_next(h, &h->conns[h->idle[h->idle_head]]);
        }
    }

    all = h->conf->run_us * h->conf->rate / 1000000;

    if (!h->stop && all > h->due_n) {
        h->st->late = all - h->due_n;
        h->st->due_us = http_due_us(h);
    }

    h->st->end_us = ron_clock_mono_us();
}


/* When the next request is due. */

static uint64_t
http_due_us(const http_t *h)
{
    return h->st->begin_us + h->due_n * 1000000 / h->conf->rate;
}


/* Until something happens, something is due, or it is time to look around. */

static void
http_wait(http_t *h, struct epoll_event *events, int *n)
{
    uint64_t         until_us, left_us, due_us;
    struct timespec  left;

    until_us = h->scan_us;

    if (h->idle_n > 0) {
        due_us = http_due_us(h);
        due_us = ron_max(due_us, h->taken_us + HTTP_PACE_US);
        until_us = ron_min(until_us, due_us);
    }

    h->now_us = ron_clock_mono_us();
    left_us = until_us > h->now_us ? until_us - h->now_us : 0;
    left.tv_sec = 0;
    left.tv_nsec = (long) left_us * 1000;

    *n = epoll_pwait2(h->epoll, events, HTTP_EVENTS, &left, NULL);

    if (*n < 0 && errno != EINTR) {
        http_fatal(h, strerror(errno));
    }
}


static void
http_scan(http_t *h)
{
    http_conn_t  *c;

    h->scan_us = h->now_us + HTTP_SCAN_US;

    if (h->now_us >= h->tick_us) {
        h->tick_us = h->now_us + HTTP_TICK_US;
        h->stop = h->stop || (h->conf->tick != NULL
                              && !h->conf->tick(h->conf->ctx, h->now_us));
    }

    for (unsigned i = 0; i < h->conf->connections && !h->fatal; i++) {
        c = &h->conns[i];

        if (c->request.data != NULL && h->now_us > c->limit_us) {
            h->st->unanswered++;
            h->st->error = "no answer in time";

            if (h->conf->lost != NULL) {
                h->conf->lost(h->conf->ctx, c->since_us, h->now_us);
            }

            c->request = ron_null_str;
            c->again_us = 0;
            http_reset(c);
            http_connect(h, c);

        } else if (c->again_us != 0 && h->now_us >= c->again_us) {
            c->again_us = 0;

            if (c->state == HTTP_CLOSED) {
                http_connect(h, c);

            } else {
                http_begin(h, c);
            }

        } else if (c->state == HTTP_CLOSED && c->request.data == NULL
                   && (h->stop || h->now_us >= h->end_us))
        {
            http_done(h, c);
        }
    }
}


static void
http_event(http_t *h, http_conn_t *c, uint32_t events)
{
    if (c->state == HTTP_CONNECTING) {
        http_connected(h, c);
        return;
    }

    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        http_read(h, c);
    }

    if ((events & EPOLLOUT) && c->state == HTTP_BUSY
        && c->sent < c->request.len)
    {
        http_send(h, c);
    }
}


/* ---- requests ----------------------------------------------------------- */

/* An open connection without a request gets one, waits for one, or ends. */

static void
http_next(http_t *h, http_conn_t *c)
{
    uint64_t  since_us;

    http_idle_leave(h, c);
    c->state = HTTP_IDLE;
    since_us = h->now_us;

    if (h->stop || h->now_us >= h->end_us) {
        http_done(h, c);
        return;
    }

    if (h->conf->rate != 0 && !http_due(h, &since_us)) {
        h->idle[(h->idle_head + h->idle_n++) % h->conf->connections] =
            (unsigned) (c - h->conns);
        c->waits = true;
        return;
    }

    if (!h->conf->request(h->conf->ctx, (unsigned) (c - h->conns),
                          &c->request))
    {
        c->request = ron_null_str;
        http_done(h, c);
        return;
    }

    h->st->sent++;
    c->resent = false;
    c->since_us = since_us;
    c->limit_us = h->now_us + h->conf->timeout_us;
    http_begin(h, c);
}


/* Out of the ring of those that wait, as a rule from its front. */

static void
http_idle_leave(http_t *h, http_conn_t *c)
{
    unsigned  i, at;

    if (!c->waits) {
        return;
    }

    c->waits = false;
    at = h->idle_head;

    for (i = 0; i < h->idle_n && &h->conns[h->idle[at]] != c; i++) {
        at = (at + 1) % h->conf->connections;
    }

    h->idle[at] = h->idle[h->idle_head];
    h->idle_head = (h->idle_head + 1) % h->conf->connections;
    h->idle_n--;
}


/* Open loop: takes the next request that is due. */

static bool
http_due(http_t *h, uint64_t *since_us)
{
    uint64_t  due_us;

    due_us = http_due_us(h);

    if (due_us > h->now_us) {
        return false;
    }

    h->due_n++;
    h->taken_us = h->now_us;
    *since_us = due_us;

    return true;
}


static void
http_begin(http_t *h, http_conn_t *c)
{
    c->state = HTTP_BUSY;
    c->sent = 0;
    c->in_len = 0;
    c->head = 0;
    http_send(h, c);
}


static void
http_done(http_t *h, http_conn_t *c)
{
    if (c->state != HTTP_DONE) {
        http_reset(c);
        c->state = HTTP_DONE;
        h->active--;
    }
}


/* ---- the socket --------------------------------------------------------- */

static void
http_connect(http_t *h, http_conn_t *c)
{
    int                 one;
    struct epoll_event  event;

    c->fd = socket(h->addr->ai_family,
                   SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (c->fd < 0) {
        http_fatal(h, strerror(errno));
        return;
    }

    one = 1;
    (void) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));

    c->state = HTTP_CONNECTING;
    c->answers = 0;
    c->events = EPOLLOUT;
    event.events = EPOLLOUT;
    event.data.ptr = c;

    if (connect(c->fd, h->addr->ai_addr, h->addr->ai_addrlen) != 0
        && errno != EINPROGRESS)
    {
        http_broken(h, c, strerror(errno));

    } else if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, c->fd, &event) != 0) {
        http_fatal(h, strerror(errno));
    }
}


static void
http_connected(http_t *h, http_conn_t *c)
{
    int        err;
    socklen_t  len;

    err = 0;
    len = sizeof(err);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0 || err != 0) {
        http_broken(h, c, strerror(err ? err : errno));
        return;
    }

    h->st->connects++;
    http_watch(h, c, EPOLLIN);

    if (c->request.data != NULL) {
        http_begin(h, c);

    } else {
        http_next(h, c);
    }
}


static void
http_watch(http_t *h, http_conn_t *c, uint32_t events)
{
    struct epoll_event  event;

    if (c->events == events) {
        return;
    }

    c->events = events;
    event.events = events;
    event.data.ptr = c;

    if (epoll_ctl(h->epoll, EPOLL_CTL_MOD, c->fd, &event) != 0) {
        http_fatal(h, strerror(errno));
    }
}


static void
http_send(http_t *h, http_conn_t *c)
{
    ssize_t  n;

    n = send(c->fd, c->request.data + c->sent, c->request.len - c->sent,
             MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN) {
        http_broken(h, c, strerror(errno));
        return;
    }

    if (n > 0) {
        c->sent += (size_t) n;
        h->st->bytes_out += (uint64_t) n;
    }

    http_watch(h, c, c->sent < c->request.len ? EPOLLIN | EPOLLOUT : EPOLLIN);
}


static void
http_read(http_t *h, http_conn_t *c)
{
    size_t        cap;
    ssize_t       n;
    uint8_t      *in;

    if (c->in_cap - c->in_len < HTTP_READ) {
        cap = ron_max(c->in_cap * 2, (size_t) 2 * HTTP_READ);
        in = cap > HTTP_BODY_MAX ? NULL : realloc(c->in, cap);

        if (in == NULL) {
            http_fatal(h, "an answer is too long");
            return;
        }

        c->in = in;
        c->in_cap = cap;
    }

    n = recv(c->fd, c->in + c->in_len, c->in_cap - c->in_len, 0);

    if (n < 0 && errno == EAGAIN) {
        return;
    }

    if (n <= 0) {
        http_broken(h, c, n == 0 ? "the server closed the connection"
                                 : strerror(errno));
        return;
    }

    h->st->bytes_in += (uint64_t) n;
    c->in_len += (size_t) n;

    if (c->request.data == NULL || c->again_us != 0) {
        http_broken(h, c, "an answer that nobody asked for");
        return;
    }

    switch (http_parse(c)) {

    case HTTP_MORE:
        break;

    case HTTP_WHOLE:
        http_answer(h, c);
        break;

    case HTTP_BAD:
        http_fatal(h, "what answers does not speak HTTP/1.1");
        break;
    }
}


static void
http_answer(http_t *h, http_conn_t *c)
{
    ron_http_answer_t  a;

    a.status = c->status;
    a.body = (ron_str_t) { c->end - c->head, c->in + c->head };
    a.now_us = h->now_us;
    a.us = h->now_us > c->since_us ? h->now_us - c->since_us : 0;
    a.resent = c->resent;

    c->answers++;

    if (!h->conf->answer(h->conf->ctx, (unsigned) (c - h->conns), &a)) {
        c->again_us = h->now_us + HTTP_AGAIN_US;
        c->resent = true;

        if (c->close) {
            http_reset(c);
        }

        return;
    }

    h->st->answered++;
    c->request = ron_null_str;

    if (c->close) {
        http_reset(c);
        http_connect(h, c);
        return;
    }

    http_next(h, c);
}


/*
 * What was not answered is sent again: at once when it was only a connection
 * that had served its time, else after a pause.
 */

static void
http_broken(http_t *h, http_conn_t *c, const char *why)
{
    bool  worn;

    worn = (c->answers > 0 && c->in_len == 0);
    h->st->error = why;

    if (h->st->connects == 0) {
        http_fatal(h, why);
        return;
    }

    http_idle_leave(h, c);

    if (c->request.data != NULL) {
        h->st->resent++;
        c->resent = true;
    }

    http_reset(c);

    if (worn) {
        http_connect(h, c);

    } else {
        c->again_us = h->now_us + HTTP_AGAIN_US;
    }
}


static void
http_reset(http_conn_t *c)
{
    if (c->fd > 0) {
        close(c->fd);
    }

    c->fd = -1;
    c->in_len = 0;
    c->head = 0;
    c->answers = 0;
    c->state = HTTP_CLOSED;
}


static void
http_fatal(http_t *h, const char *why)
{
    h->st->error = why;
    h->fatal = true;
}


/* ---- answers ------------------------------------------------------------ */

static http_parse_t
http_parse(http_conn_t *c)
{
    http_parse_t  rc;

    if (c->head == 0) {
        rc = http_head(c);

        if (rc != HTTP_WHOLE) {
            return rc;
        }
    }

    if (c->chunked) {
        return http_chunks(c);
    }

    c->end = c->head + c->left;

    return c->in_len >= c->end ? HTTP_WHOLE : HTTP_MORE;
}


static http_parse_t
http_head(http_conn_t *c)
{
    const char  *line, *end, *eol;

    end = memmem(c->in, c->in_len, "\r\n\r\n", 4);

    if (end == NULL) {
        return c->in_len > 65536 ? HTTP_BAD : HTTP_MORE;
    }

    line = (const char *) c->in;

    if (memcmp(line, "HTTP/1.1 ", 9) != 0 || end - line < 12) {
        return HTTP_BAD;
    }

    c->status = 0;

    for (unsigned i = 9; i < 12; i++) {
        if (line[i] < '0' || line[i] > '9') {
            return HTTP_BAD;
        }

        c->status = c->status * 10 + (unsigned) (line[i] - '0');
    }

    c->head = (size_t) (end + 4 - (const char *) c->in);
    c->end = c->head;
    c->left = 0;
    c->chunked = false;
    c->last_chunk = false;
    c->close = false;

    for (line = memchr(line, '\n', c->head); line != NULL && line < end;
         line = eol)
    {
        line++;
        eol = memchr(line, '\n', (size_t) (end + 2 - line));

        if (eol == NULL) {
            break;
        }

        if (!http_field(c, line, (size_t) (eol - line))) {
            return HTTP_BAD;
        }
    }

    return c->status < RON_HTTP_STATUS_N && c->status >= 200 ? HTTP_WHOLE
                                                             : HTTP_BAD;
}


static bool
http_field(http_conn_t *c, const char *line, size_t len)
{
    char  first;

    first = (char) (line[0] | 0x20);

    if (first == 'c' && len > 15
        && strncasecmp(line, "content-length:", 15) == 0)
    {
        for (size_t i = 15; i < len && line[i] != '\r'; i++) {
            if (line[i] == ' ') {
                continue;
            }

            if (line[i] < '0' || line[i] > '9' || c->left > HTTP_BODY_MAX) {
                return false;
            }

            c->left = c->left * 10 + (size_t) (line[i] - '0');
        }

    } else if (first == 'c' && len > 17
               && strncasecmp(line, "connection: close", 17) == 0)
    {
        c->close = true;

    } else if (first == 't' && len > 26
               && strncasecmp(line, "transfer-encoding: chunked", 26) == 0)
    {
        c->chunked = true;
    }

    return true;
}


/* Puts chunks together in place: what is behind c->end is not decoded yet. */

static http_parse_t
http_chunks(http_conn_t *c)
{
    size_t          n, raw;
    const uint8_t  *eol;

    for (raw = c->end; /* void */ ; /* void */) {

        if (c->left > 0) {
            n = ron_min(c->left, c->in_len - raw);
            memmove(c->in + c->end, c->in + raw, n);
            c->end += n;
            c->left -= n;
            raw += n;

            if (c->left > 0) {
                break;
            }
        }

        eol = memchr(c->in + raw, '\n', c->in_len - raw);

        if (eol == NULL) {
            break;
        }

        n = (size_t) (eol + 1 - (c->in + raw));

        if (c->last_chunk) {
            return HTTP_WHOLE;
        }

        if (n > 2) {
            c->left = strtoul((const char *) c->in + raw, NULL, 16);
            c->last_chunk = (c->left == 0);
        }

        raw += n;
    }

    memmove(c->in + c->end, c->in + raw, c->in_len - raw);
    c->in_len -= raw - c->end;

    return HTTP_MORE;
}
