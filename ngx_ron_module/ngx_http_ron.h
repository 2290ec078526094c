
/*
 * What the HTTP modules share.
 *
 * A service (wallet, ledger, ...) is a table of routes below the name of its
 * location.  A request to one of them goes:
 *
 *     access phase    context, correlation id, route, method, capability
 *     content phase   body -> parse -> call to the helper, or a task
 *     answer          one reply, ours in every case: ngx_http_ron_reply()
 *
 * What NGINX itself refuses becomes a problem in the filter module.
 */

#ifndef _NGX_HTTP_RON_H_INCLUDED_
#define _NGX_HTTP_RON_H_INCLUDED_


#include "ngx_ron.h"

#include <ngx_http.h>

#include "ron_api.h"
#include "ron_cap.h"


#define NGX_HTTP_RON_ARGS  16


typedef struct ngx_http_ron_ctx_s    ngx_http_ron_ctx_t;
typedef struct ngx_http_ron_route_s  ngx_http_ron_route_t;


/* flags of a route */

#define NGX_HTTP_RON_OPEN    0x01       /* no capability is needed */
#define NGX_HTTP_RON_PREFIX  0x02       /* the path goes on */
#define NGX_HTTP_RON_JSON    0x04       /* a body, application/json */
#define NGX_HTTP_RON_WRITE   0x08       /* refused while writes are shed */
#define NGX_HTTP_RON_KEY     0x10       /* Idempotency-Key is required */
#define NGX_HTTP_RON_LINES   0x20       /* or application/x-ndjson */
#define NGX_HTTP_RON_GZIP    0x40       /* the body may be compressed */

struct ngx_http_ron_route_s {
    ngx_str_t    path;
    ngx_uint_t   method;
    ngx_uint_t   flags;
    unsigned     act;                   /* RON_CAP_ACT_*; 0: any */
    ngx_uint_t   number;                /* the service's own */
    ngx_int_t  (*handler)(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx);
    ngx_uint_t   metric;                /* RON_D_ROUTE_*, the template */
};

typedef struct {
    ngx_str_t              name;
    unsigned               svc;         /* RON_CAP_SVC_* */
    ngx_uint_t             metric;      /* RON_D_SERVICE_* */
    ngx_uint_t             other;       /* RON_D_ROUTE_*_OTHER */
    ron_admit_t            queue;
    ngx_http_ron_route_t  *routes;
} ngx_http_ron_service_t;


typedef struct {
    ngx_str_t              keys_file;
    ngx_str_t              revoked_file;
    ron_keyring_t         *ring;
    ron_revoked_t          revoked;
    ngx_shm_zone_t        *zone;
    ron_api_limits_t      *limits;
    ngx_thread_pool_t     *thread_pool;
    ngx_uint_t             token_cache; /* capabilities; 0: none */
    ngx_uint_t             has_api;     /* unsigned  has_api:1; */
    ngx_uint_t             has_assets;  /* unsigned  has_assets:1; */
} ngx_http_ron_main_conf_t;

typedef struct {
    ngx_http_ron_service_t  *service;
    size_t                   body_max;
    size_t                   stream_max;    /* 0: no limit */
    ngx_msec_t               deadline;
    ngx_flag_t               errors;
    ngx_uint_t               nonce;
    ngx_str_t                tenant;
} ngx_http_ron_loc_conf_t;


struct ngx_http_ron_ctx_s {
    ngx_http_request_t     *request;
    ngx_http_ron_route_t   *route;
    ngx_str_t               path;       /* behind a PREFIX route's path */
    ngx_str_t               corr_id;
    ron_cap_t              *cap;
    ron_str_t               token;
    ron_str_t               question;   /* of the services that check */

    ngx_str_t               idem_key;
    ngx_str_t               if_match;
    ngx_str_t               if_none_match;
    ngx_str_t               request_timeout;
    ngx_str_t               content_encoding;

    ron_str_t               body;
    ron_buf_t               body_buf;
    ron_buf_t               body_plain;         /* inflated */
    ngx_event_t             body_timer;

    ngx_uint_t              args_n;
    ron_api_arg_t           args[NGX_HTTP_RON_ARGS];

    uint64_t                deadline_us;        /* monotonic */
    ngx_ron_call_t         *call;
    void                   *remote;     /* ngx_http_ron_rcall_t */
    void                   *data;               /* a task's thread */
    ngx_uint_t              number;             /* the service's own */
    ngx_str_t               held_account;       /* of a hold that was read */
    ngx_str_t               held_asset;
    ngx_uint_t              retry_after;        /* s; 0: as always */
    uint64_t                asked_us;           /* since when the breaker */
    uint64_t                nonce;              /* reserved; 0: none is */
    uint64_t                nonce_last;
    ron_zone_nonce_t        nonce_account;

    ron_reason_t            reason;             /* of a problem */
    ngx_str_t               problem;            /* for the filter */

    ngx_str_t               traceparent;        /* empty: not a good one */
    ron_trace_request_t    *trace;              /* NULL: not traced */

    ron_cap_refusal_t       cap_why;            /* of the capability */
    uint64_t                checks_us;          /* so far */
    uint64_t                checks_from_us;

    ron_admit_t             queue;
    unsigned                counted:1;  /* in the gauges of its route */
    unsigned                checking:1;
    unsigned                lines:1;    /* application/x-ndjson */
    unsigned                held:1;     /* the hold's account is allowed */
    unsigned                genuine:1;  /* the token: nobody is to be asked */
    unsigned                checked:1;  /* by all services that are asked */
    unsigned                admitted:1;
    unsigned                replied:1;
    unsigned                key_twice:1;
    unsigned                encoded_twice:1;
    unsigned                gzip:1;
    unsigned                final:1;    /* an unknown outcome stays so */
    unsigned                replaced:1;
};


/* Made at first use; NULL without memory. */
ngx_http_ron_ctx_t *ngx_http_ron_get_ctx(ngx_http_request_t *r);

/* The directive of a service's location. */
char *ngx_http_ron_set_service(ngx_conf_t *cf,
    ngx_http_ron_service_t *service);

/* A small file, whole; `secret`: nobody else may read it. */
ngx_int_t ngx_http_ron_read_secret(ngx_conf_t *cf, ngx_str_t *name,
    ngx_uint_t secret, ngx_str_t *text);

/* Content handler of all services; and the rest of it, after a check. */
ngx_int_t ngx_http_ron_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_ron_go(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx);

/*
 * Memory of a pool for what has 128-bit integers in it: NGINX aligns to a
 * word, and the compiler counts on two.
 */
#define ngx_http_ron_memory(pool, size)  ngx_pmemalign(pool, size, 16)

/*
 * Counting.  A request is in the gauges of its route from the access phase to
 * its end; it is checked in one or more stretches, and the last one ends when
 * it is sent to the helper or answered.  count_end() is for the log phase.
 */
void ngx_http_ron_count_route(ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_count_gone(ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_count_late(ngx_http_request_t *r);
void ngx_http_ron_count_end(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_uint_t service);
void ngx_http_ron_checks_begin(ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_checks_pause(ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_checks_end(ngx_http_ron_ctx_t *ctx);

#define ngx_http_ron_count_wallet(route)                                      \
    ((route) >= RON_D_ROUTE_WALLET_ISSUE                                      \
     && (route) < RON_D_ROUTE_WALLET_OTHER)

/*
 * Traces: a request that is sampled has a record from its context to the log
 * phase.  The entry is the one that was asked for, the outcome has its seq;
 * the receipt names it for a wallet.
 */
void ngx_http_ron_trace_begin(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_trace_sent(ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_trace_entry(ngx_http_ron_ctx_t *ctx, ron_str_t id);
void ngx_http_ron_trace_outcome(ngx_http_ron_ctx_t *ctx,
    const ron_outcome_t *outcome);
void ngx_http_ron_trace_receipt(ngx_http_ron_ctx_t *ctx, ron_buf_t *receipt);
void ngx_http_ron_trace_end(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_service_t *service);
ngx_str_t ngx_http_ron_trace_header(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);

/* The body of POST /ledger/ingest as lines. */
void ngx_http_ron_ndjson(ngx_http_request_t *r);

/* ron_cap_verify(), through the worker's cache. */
ron_status_t ngx_http_ron_token_verify(ngx_http_request_t *r,
    ron_str_t token, ron_cap_t *cap, ron_cap_error_t *err);

/*
 * The same where a service is asked about tokens: not *known, it only says
 * what the token would allow.  What it was told to be genuine is kept.
 */
ron_status_t ngx_http_ron_token_read(ngx_http_request_t *r, ron_str_t token,
    ron_cap_t *cap, ron_cap_error_t *err, ngx_uint_t *known);
void ngx_http_ron_token_keep(ngx_http_request_t *r, ron_str_t token,
    const ron_cap_t *cap);

/*
 * Checks by other services.  A token that is not genuine yet: NGX_DONE, and
 * the request goes on when it is.  A unit: NGX_DECLINED when nobody is to be
 * asked (any more), else NGX_DONE, and the route's handler is called again.
 */
ngx_uint_t ngx_http_ron_check_tokens(ngx_http_request_t *r);
ngx_int_t ngx_http_ron_check_token(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
ngx_uint_t ngx_http_ron_check_units(ngx_http_request_t *r);
ngx_int_t ngx_http_ron_check_unit(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_unit_t *unit);

/* The zone of this configuration. */
ron_zone_t *ngx_http_ron_zone(ngx_http_request_t *r);

ngx_msec_t ngx_http_ron_time_left(ngx_http_ron_ctx_t *ctx);


/*
 * A reply.  The body is copied.  What they return is for
 * ngx_http_finalize_request(), or to be returned by a content handler.
 */
ngx_int_t ngx_http_ron_reply(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ron_str_t body);
ngx_int_t ngx_http_ron_json(ngx_http_request_t *r, ngx_uint_t status,
    ron_buf_t *body);
ngx_int_t ngx_http_ron_problem(ngx_http_request_t *r,
    const ron_api_error_t *err);
ngx_int_t ngx_http_ron_refuse(ngx_http_request_t *r, ron_reason_t reason,
    const char *text, const char *field);

ngx_int_t ngx_http_ron_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);

/* The tag of a version; *same when If-None-Match has it. */
ngx_int_t ngx_http_ron_etag(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    uint64_t version, ngx_uint_t *same);

/* 304, without a body. */
ngx_int_t ngx_http_ron_not_modified(ngx_http_request_t *r);

/* A worker's buffer for one answer at a time. */
ron_buf_t *ngx_http_ron_scratch(void);

/*
 * Waiting for a call: the request is kept, and let go by done(), which takes
 * what a reply returned.
 */
ngx_int_t ngx_http_ron_wait(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_ron_call_t *call);
void ngx_http_ron_done(ngx_http_ron_ctx_t *ctx, ngx_int_t rc);

/* The reply when a call has no answer. */
ngx_int_t ngx_http_ron_unanswered(ngx_http_request_t *r, ngx_int_t rc);

/* Whether writes are refused now, and why. */
ron_reason_t ngx_http_ron_shed(void);
void ngx_http_ron_health(ron_api_health_t *h);

/* A required argument, or with `missing` as its default. */
ngx_int_t ngx_http_ron_arg_u64(ngx_http_ron_ctx_t *ctx, const char *name,
    uint64_t missing, uint64_t *v);


/* ---- the wallet's, which /ledger/ops shares ----------------------------- */

/*
 * A unit that was parsed, from its capability to its receipt; ctx->number is
 * its RON_API_*.  The route's handler may be called again.
 */
ngx_int_t ngx_http_ron_wallet_unit(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, unsigned svc, ron_unit_t *unit);

ngx_int_t ngx_http_ron_wallet_balance(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
ngx_int_t ngx_http_ron_wallet_outcome(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
ngx_int_t ngx_http_ron_wallet_tx(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);

/* POST /ledger/ops */
ngx_int_t ngx_http_ron_ops(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx);


/* ---- work that blocks, in a thread of the pool -------------------------- */

typedef struct ngx_http_ron_task_s    ngx_http_ron_task_t;

/*
 * `work` runs in a thread and knows nothing of NGINX; it has a reader of the
 * ledger for itself, and puts its answer into `out`.  RON_OK: `after` is
 * called, or, when that is NULL, status and body are sent; else the problem
 * in `err` is.
 */
struct ngx_http_ron_task_s {
    ron_status_t           (*work)(ngx_http_ron_task_t *task);
    ngx_int_t              (*after)(ngx_http_request_t *r,
                                    ngx_http_ron_ctx_t *ctx,
                                    ngx_http_ron_task_t *task);
    ron_store_t             *store;
    ron_reader_t            *reader;
    ron_buf_t                out;
    ron_buf_t                more;
    ron_api_error_t          err;
    ngx_str_t               *type;
    ron_status_t             rc;
    uint64_t                 watermark;
    uint64_t                 a;
    uint64_t                 b;
    uint64_t                 c;
    bool                     flag;
    bool                     always;        /* `after`, whatever came of it */
    ngx_http_ron_ctx_t      *ctx;
};

/*
 * NULL: the ledger cannot be read, or there is no memory.  A task that was
 * made with `always` may be posted again after its `after`.
 */
ngx_http_ron_task_t *ngx_http_ron_task(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_status_t (*work)(ngx_http_ron_task_t *));
ngx_int_t ngx_http_ron_task_post(ngx_http_request_t *r,
    ngx_http_ron_task_t *task);

/* For `work`: a refusal. */
ron_status_t ngx_http_ron_task_refuse(ngx_http_ron_task_t *task,
    ron_reason_t reason, const char *text);

/* For `work`: what a reading function of the API said. */
ron_status_t ngx_http_ron_ledger_range(ngx_http_ron_task_t *task,
    ron_status_t rc);

/* GET /ledger/proof/inclusion */
ngx_int_t ngx_http_ron_proof_inclusion(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);

/* The reply when there is no task. */
ngx_int_t ngx_http_ron_no_ledger(ngx_http_request_t *r);


/* ---- phases ------------------------------------------------------------- */

ngx_int_t ngx_http_ron_access_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_ron_log_handler(ngx_http_request_t *r);

/* The label of a reason. */
const char *ngx_http_ron_reason_name(ron_reason_t reason);


extern ngx_module_t  ngx_http_ron_module;


#endif /* _NGX_HTTP_RON_H_INCLUDED_ */
