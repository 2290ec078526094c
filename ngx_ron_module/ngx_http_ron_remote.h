
/*
 * Calls to other services through NGINX's upstreams: the ledger of a wallet
 * that has none, and the checks of a request.
 *
 * A call is a request as text, sent at most `tries` times with a pause
 * between, each try under its own time-out and all of them under the ron
 * request's deadline; a breaker in the zone, shared by all workers, stands
 * before it.  A try is a background subrequest of the ron request, so that
 * peers, keep-alive connections and clean-up are NGINX's own.
 */

#ifndef _NGX_HTTP_RON_REMOTE_H_INCLUDED_
#define _NGX_HTTP_RON_REMOTE_H_INCLUDED_


#include "ngx_http_ron.h"

#include "ron_api_http.h"


/* Where calls of one kind go; made by a directive. */

typedef struct {
    ngx_http_upstream_conf_t   upstream;
    ngx_str_t                  host;
    ngx_str_t                  path;
    ngx_str_t                  name;        /* of its breaker */
    ngx_uint_t                 target;      /* RON_D_TARGET_* */
    ngx_uint_t                 tries;
    ngx_msec_t                 timeout;     /* of one try */
    ngx_msec_t                 backoff;     /* the longest pause */
    ron_breaker_conf_t         breaker;     /* errors 0: the threshold */
    size_t                     cache;       /* of balances; 0: none */
    ngx_shm_zone_t            *bus;         /* data: ron_bus_t */
} ngx_http_ron_remote_t;


typedef struct {
    ngx_array_t                all;         /* ngx_http_ron_remote_t * */
    ngx_uint_t                 threshold;   /* of the checks' breakers */
    ngx_uint_t                 prevalidators;
} ngx_http_ron_remote_main_conf_t;

typedef struct {
    ngx_http_ron_remote_t     *ledger;
    ngx_http_ron_remote_t     *kms;         /* inherited, as are the next */
    ngx_http_ron_remote_t     *policy;
    ngx_http_ron_remote_t     *wallet;
} ngx_http_ron_remote_loc_conf_t;


typedef struct ngx_http_ron_rcall_s  ngx_http_ron_rcall_t;

/*
 * NGX_OK: call->answer, below 500.  NGX_ERROR: the last answer was 500 or
 * more, or none came; call->refused: a breaker let no try out; call->maybe:
 * some try may have had its effect all the same.
 */
typedef void (*ngx_http_ron_remote_pt)(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc);

struct ngx_http_ron_rcall_s {
    ngx_event_t                event;       /* a pause, or a try is over */
    ngx_event_t                timer;       /* of a try */
    ngx_queue_t                queue;       /* of those that wait for a slot */

    ngx_http_ron_ctx_t        *ctx;
    ngx_http_ron_remote_t     *remote;
    ngx_http_ron_remote_pt     handler;
    ngx_uint_t                 op;          /* RON_D_CALL_* */
    ngx_str_t                  text;        /* the whole request */

    ngx_http_request_t        *sr;          /* the try under way */
    ngx_http_upstream_conf_t  *conf;
    ngx_uint_t                 tried;
    uint64_t                   since_us;

    ron_api_http_t             answer;      /* of the last try, if whole */

    unsigned                   whole:1;
    unsigned                   sent:1;      /* the last try left */
    unsigned                   late:1;
    unsigned                   ended:1;
    unsigned                   maybe:1;
    unsigned                   refused:1;
    unsigned                   cut:1;       /* less time than a try may have */
    unsigned                   slot:1;      /* one of the prevalidators */
    unsigned                   queued:1;
    unsigned                   probe:1;     /* of the breaker, not told of */
};


/*
 * A call whose path, behind the target's own, is `tail`, and `args` what is
 * asked for, NULL: nothing.  POST when there is a body.  NGX_DONE, and the
 * handler is called later; or NGX_ERROR.
 */
ngx_int_t ngx_http_ron_remote_call(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_remote_t *remote, ngx_str_t *tail,
    ngx_str_t *args, ron_str_t body, ngx_uint_t op,
    ngx_http_ron_remote_pt handler);

/* The ledger of this location's wallet, NULL: ours. */
ngx_http_ron_remote_t *ngx_http_ron_remote_ledger(ngx_http_request_t *r);

/* A wallet's requests, sent to that ledger. */
ngx_int_t ngx_http_ron_remote_unit(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_unit_t *unit);
ngx_int_t ngx_http_ron_remote_read(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, const char *what, ngx_str_t *args);

/* What a read was answered: relayed, and the request is done. */
void ngx_http_ron_remote_read_answer(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc);


/* The cache of balances of a ledger: its region; GET /v1/balance through it. */
ngx_int_t ngx_http_ron_follow_add(ngx_conf_t *cf,
    ngx_http_ron_remote_t *remote);
ngx_int_t ngx_http_ron_follow_balance(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);

/* An operation was answered: what is older than its seq is not believed. */
void ngx_http_ron_follow_wrote(ngx_http_ron_remote_t *remote, uint64_t seq);


/* Whether a breaker of this kind is open now. */
ngx_uint_t ngx_http_ron_remote_down(ngx_http_request_t *r, ngx_uint_t target);

/* Puts the state of all breakers into the metrics. */
void ngx_http_ron_remote_sample(ngx_http_request_t *r);

/* Whether the location that is being read has a wallet's ledger elsewhere. */
ngx_uint_t ngx_http_ron_remote_has_ledger(ngx_conf_t *cf);


/* ---- inside ------------------------------------------------------------- */

/* Whether the last answer leaves open what became of the request. */
ngx_uint_t ngx_http_ron_remote_unknown(ngx_http_ron_rcall_t *call);

/* NGX_BUSY: the breaker lets no call out now. */
ngx_int_t ngx_http_ron_remote_ask(ngx_http_ron_rcall_t *call);
void ngx_http_ron_remote_tell(ngx_http_ron_rcall_t *call, ngx_uint_t success);
void ngx_http_ron_remote_untold(ngx_http_ron_rcall_t *call);

/* One try is over; it will be tried again; all of it was in vain. */
void ngx_http_ron_remote_count(ngx_http_ron_rcall_t *call,
    ngx_uint_t failed);
void ngx_http_ron_remote_retried(ngx_http_ron_rcall_t *call);
void ngx_http_ron_remote_failed(ngx_http_ron_rcall_t *call);


extern ngx_module_t  ngx_http_ron_remote_module;


#endif /* _NGX_HTTP_RON_REMOTE_H_INCLUDED_ */
