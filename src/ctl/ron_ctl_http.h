
/*
 * Many HTTP/1.1 connections to one server in one thread: at most one request
 * under way on each, keep-alive, epoll.  What is sent and what an answer means
 * is the caller's; this only moves bytes and measures.
 *
 * Closed loop: a connection sends its next request when it has the answer to
 * the last one.  Open loop: requests are due at fixed times, and a request's
 * latency begins when it was due and not when a connection was free for it,
 * so that a stall of the server counts for everything that waited.  What was
 * due and never sent is the caller's to count, from `due_us` on, `late` times.
 *
 * A connection that the server closes before it answered is opened again and
 * the same bytes are sent again: requests must be idempotent.
 */

#ifndef RON_CTL_HTTP_H
#define RON_CTL_HTTP_H


#include "ron.h"
#include "ron_buf.h"


#define RON_HTTP_STATUS_N  600


typedef struct {
    unsigned   status;
    ron_str_t  body;
    uint64_t   us;              /* since it was sent, or due */
    uint64_t   now_us;
    bool       resent;
} ron_http_answer_t;


typedef struct {
    const char  *url;           /* http://host[:port][/] */
    unsigned     connections;
    uint64_t     rate;          /* requests a second; 0: closed loop */
    uint64_t     run_us;        /* no request begins later; 0: no end */
    uint64_t     timeout_us;    /* of one answer, and of connecting */

    /* The bytes of the next request; false: none.  Valid until answered. */
    bool       (*request)(void *ctx, unsigned connection, ron_str_t *bytes);

    /* False: the same request is sent again a little later. */
    bool       (*answer)(void *ctx, unsigned connection,
                         const ron_http_answer_t *answer);

    /* One that was given up; may be NULL. */
    void       (*lost)(void *ctx, uint64_t since_us, uint64_t now_us);

    /* About ten times a second; false stops. */
    bool       (*tick)(void *ctx, uint64_t now_us);
    void        *ctx;
} ron_http_conf_t;


typedef struct {
    uint64_t     begin_us;
    uint64_t     end_us;        /* of the run, answers and all */
    uint64_t     sent;          /* requests; one sent again counts once */
    uint64_t     answered;
    uint64_t     resent;
    uint64_t     connects;
    uint64_t     unanswered;    /* given up, outcome unknown */
    uint64_t     late;          /* open loop: due, and never sent */
    uint64_t     due_us;        /* when the first of those was due */
    uint64_t     bytes_out;
    uint64_t     bytes_in;
    const char  *error;         /* the last one, or NULL */
} ron_http_stat_t;


/* The host of a URL, with its port when it names one; false: no such URL. */
bool ron_http_host(const char *url, ron_str_t *host);

/*
 * Runs until the time is over and what was sent is answered or timed out, or
 * until no connection has a request left.  RON_EIO: the server cannot be
 * reached at all, or its answers are not HTTP; st->error says what.
 */
ron_status_t ron_http_run(const ron_http_conf_t *conf, ron_http_stat_t *st);


#endif /* RON_CTL_HTTP_H */
