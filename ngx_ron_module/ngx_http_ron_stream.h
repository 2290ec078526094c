
/*
 * Answers that do not end: what streams of roots and of audit events share.
 *
 * A feed fills a stream's buffer from pump(), which is called whenever there
 * may be something new and everything before has left.  The buffer is the
 * bound: a client that does not read makes its own stream fall behind, and
 * nobody else's.
 */

#ifndef _NGX_HTTP_RON_STREAM_H_INCLUDED_
#define _NGX_HTTP_RON_STREAM_H_INCLUDED_


#include "ngx_http_ron.h"


typedef struct ngx_http_ron_stream_s  ngx_http_ron_stream_t;

typedef struct {
    ngx_str_t     type;
    ngx_str_t     ping;
    ngx_uint_t    service;              /* RON_D_SERVICE_* */
    ron_ring_t    ring;

    /*
     * Puts what there is and what has room.  NGX_OK; NGX_DONE: nothing comes
     * after what is in the buffer.
     */
    ngx_int_t   (*pump)(ngx_http_ron_stream_t *st);

    ngx_uint_t    lines;                /* of JSON, no events */
} ngx_http_ron_feed_t;


struct ngx_http_ron_stream_s {
    ngx_queue_t            queue;
    ngx_http_request_t    *request;
    ngx_http_ron_ctx_t    *ctx;
    ngx_http_ron_feed_t   *feed;
    ngx_buf_t             *buf;
    ngx_chain_t            out;
    ngx_event_handler_pt   read_handler;    /* NGINX's */
    ngx_msec_t             said;            /* when something was sent */

    /* the feed's */
    ngx_http_ron_task_t   *task;
    size_t                 taken;           /* of the task's output */
    uint64_t               cursor;          /* of the ring */
    uint64_t               seq;             /* that was sent last */
    uint64_t               tried;           /* reading gave nothing up to it */
    unsigned               behind:1;        /* the journal must be read */
    unsigned               reading:1;       /* a thread does so */
    unsigned               later:1;         /* it failed: at the next tick */

    unsigned               busy:1;          /* the buffer was given away */
    unsigned               last:1;          /* its end is in the buffer */
    unsigned               leave:1;         /* at the next chance */
    unsigned               gone:1;
};


/* NULL: there are too many already, or no memory; the reply is made. */
ngx_http_ron_stream_t *ngx_http_ron_stream_open(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_feed_t *feed, ngx_int_t *rc);

/* Sends the header, and keeps the request until the stream's end. */
ngx_int_t ngx_http_ron_stream_run(ngx_http_ron_stream_t *st);

/* There may be something new, for all of them; done once a turn. */
void ngx_http_ron_stream_wake(void);

/* For a feed whose thread is done, whatever has become of the stream. */
void ngx_http_ron_stream_resume(ngx_http_ron_stream_t *st);

/*
 * Posts the stream's task.  NGX_BUSY: others read, and pump() is called when
 * there is a place; NGX_ERROR: at the next tick.
 */
ngx_int_t ngx_http_ron_stream_read(ngx_http_ron_stream_t *st);

size_t ngx_http_ron_stream_room(ngx_http_ron_stream_t *st);

/* At most room() bytes are taken; how many. */
size_t ngx_http_ron_stream_put(ngx_http_ron_stream_t *st, ron_str_t s);

/*
 * Where the client wants to go on: Last-Event-ID, or the argument `since`, as
 * it says it, and as a number.  NGX_DECLINED: it does not say; NGX_ERROR: not
 * a number.
 */
ngx_int_t ngx_http_ron_stream_place(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t *place);
ngx_int_t ngx_http_ron_stream_since(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, uint64_t *since);


/* The value of a header, by its name in lower case. */
ngx_str_t *ngx_http_ron_stream_field(ngx_http_request_t *r, ngx_str_t *name);


/* GET /v1/audit/stream */
ngx_int_t ngx_http_ron_events_stream(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);

/* GET /ledger/roots/stream */
ngx_int_t ngx_http_ron_roots_stream(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_roots_init(void);

/* GET /ledger/bus */
ngx_int_t ngx_http_ron_bus_stream(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);

/* The ledger was drained, and this was its last seq. */
ngx_uint_t ngx_http_ron_roots_drained(uint64_t *seq);


extern ngx_module_t  ngx_http_ron_stream_module;


#endif /* _NGX_HTTP_RON_STREAM_H_INCLUDED_ */
