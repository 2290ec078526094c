
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
typedef struct ngx_http_ron_ingress_s  ngx_http_ron_ingress_t;
typedef struct ngx_http_ron_task_s   ngx_http_ron_task_t;
typedef struct ngx_http_ron_context_s  ngx_http_ron_context_t;


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
    ngx_uint_t             has_context; /* unsigned  has_context:1; */
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
    ngx_str_t               request_id; /* when there is no corr_id */
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
    ngx_http_ron_ingress_t *ingress;    /* parsed in a thread; NULL: here */

    ngx_uint_t              args_n;
    ron_api_arg_t          *args;       /* of the query; NULL: it is empty */

    uint64_t                begin_us;           /* monotonic */
    uint64_t                deadline_us;
    ngx_ron_call_t         *call;
    ngx_uint_t              burst;      /* its place there, from 1 on; or 0 */
    void                   *remote;     /* ngx_http_ron_rcall_t */
    void                   *data;               /* a task's thread */
    ngx_uint_t              number;             /* the service's own */
    ngx_str_t               held_account;       /* of a hold that was read */
    ngx_str_t               held_asset;
    ngx_uint_t              retry_after;        /* s; 0: as always */
    uint64_t                asked_us;           /* since when the breaker */
    uint64_t                seq;                /* of the bus, before */
    uint64_t                nonce;              /* reserved; 0: none is */
    uint64_t                nonce_last;
    ron_zone_nonce_t        nonce_account;

    ron_reason_t            reason;             /* of a problem */
    ngx_str_t               problem;            /* for the filter */

    ngx_str_t               traceparent;        /* empty: not a good one */
    ron_trace_request_t    *trace;              /* NULL: not traced */
    ngx_http_ron_context_t *context;            /* NULL: not logged */

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
    unsigned                timeout_bad:1;
    unsigned                encoded_twice:1;
    unsigned                gzip:1;
    unsigned                final:1;    /* an unknown outcome stays so */
    unsigned                replaced:1;
    unsigned                probe:1;    /* of the breaker, not told of yet */
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
 * A place in the queue of the service, once; RON_REASON_OK, or why there is
 * none.  It is given back with the answer, and while a body is waited for.
 */
ron_reason_t ngx_http_ron_admit(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_release(ngx_http_ron_ctx_t *ctx);

/*
 * Memory of a pool for what has 128-bit integers in it: NGINX aligns to a
 * word, and the compiler counts on two.
 */
#define ngx_http_ron_memory(pool, size)  ngx_pmemalign(pool, size, 16)

/* The same out of the pool's own block, for what is small. */
static ngx_inline void *
ngx_http_ron_piece(ngx_pool_t *pool, size_t size)
{
    u_char  *p;

    p = ngx_palloc(pool, size + 15);

    return p ? ngx_align_ptr(p, 16) : NULL;
}

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
void ngx_http_ron_count_ops(ngx_http_ron_ctx_t *ctx, ngx_uint_t n);
void ngx_http_ron_checks_begin(ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_checks_pause(ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_checks_end(ngx_http_ron_ctx_t *ctx);

/* The same begin and end, for who has just read the monotonic clock. */
void ngx_http_ron_checks_since(ngx_http_ron_ctx_t *ctx, uint64_t now_us);
void ngx_http_ron_checks_until(ngx_http_ron_ctx_t *ctx, uint64_t now_us);

#define ngx_http_ron_count_wallet(route)                                      \
    ((route) >= RON_D_ROUTE_WALLET_ISSUE                                      \
     && (route) < RON_D_ROUTE_WALLET_OTHER)

/*
 * Traces: a request that is sampled has a record from its context to the log
 * phase.  The entry is the one that was asked for, the outcome has its seq;
 * the receipt names it for a wallet.
 */
void ngx_http_ron_trace_begin(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    uint64_t spent);
void ngx_http_ron_trace_sent(ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_trace_entry(ngx_http_ron_ctx_t *ctx, ron_str_t id);
void ngx_http_ron_trace_outcome(ngx_http_ron_ctx_t *ctx,
    const ron_outcome_t *outcome);
void ngx_http_ron_trace_receipt(ngx_http_ron_ctx_t *ctx, ron_buf_t *receipt);
void ngx_http_ron_trace_end(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_service_t *service);
ngx_str_t ngx_http_ron_trace_header(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);

/*
 * What a log may say about an operation: kept when it was parsed, and when it
 * is an entry, here or by another server's receipt.  Only while a directive
 * names one of these variables.
 */

#define NGX_HTTP_RON_CONTEXT_OP       0
#define NGX_HTTP_RON_CONTEXT_ASSET    1
#define NGX_HTTP_RON_CONTEXT_AMOUNT   2
#define NGX_HTTP_RON_CONTEXT_NONCE    3
#define NGX_HTTP_RON_CONTEXT_TXID     4
#define NGX_HTTP_RON_CONTEXT_ACCOUNT  5

void ngx_http_ron_context_unit(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, const ron_unit_t *unit);
void ngx_http_ron_context_entry(ngx_http_ron_ctx_t *ctx,
    const ron_entry_t *e);
void ngx_http_ron_context_receipt(ngx_http_ron_ctx_t *ctx,
    ron_str_t receipt);
ngx_int_t ngx_http_ron_context_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/*
 * The body of POST /ledger/ingest as lines; and what services that check said
 * of the batch that they were asked about.
 */
void ngx_http_ron_ndjson(ngx_http_request_t *r);
void ngx_http_ron_ndjson_checked(ngx_http_ron_ctx_t *ctx,
    ron_reason_t reason, const char *text);

/*
 * The capability of a token, through the worker's cache: verified, or, where
 * a service is asked about tokens, as the token says it; then it is *genuine
 * only when it was in the cache.  What a service told to be genuine is kept.
 * RON_ENOMEM, and *cap is NULL: there is no memory.
 */
ron_status_t ngx_http_ron_token_get(ngx_http_request_t *r, ron_str_t token,
    ngx_uint_t verify, ron_cap_t **cap, ron_cap_error_t *err,
    ngx_uint_t *genuine);
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

/*
 * For a shared zone's init handler, `data` as NGINX gives it.  A zone has one
 * region, a single slab allocation that the pool's own `data` points to, since
 * what is kept in a configuration is local to a process.  The first function
 * finds that of an adopted zone or allocates a new one, NULL if there is none;
 * the second ends the handler: it logs why `rc` is not RON_OK, or keeps a new
 * region.
 */
u_char *ngx_http_ron_region(ngx_shm_zone_t *zone, void *data, size_t *len);
ngx_int_t ngx_http_ron_region_done(ngx_shm_zone_t *zone, void *data,
    u_char *region, ron_status_t rc);

ngx_msec_t ngx_http_ron_time_left(ngx_http_ron_ctx_t *ctx);
ngx_msec_t ngx_http_ron_time_left_at(ngx_http_ron_ctx_t *ctx,
    uint64_t now_us);


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

/* `seconds`: 0: as long as the status says. */
ngx_int_t ngx_http_ron_retry_after(ngx_http_request_t *r, ngx_uint_t status,
    ngx_uint_t seconds);

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

/*
 * What a request is answered after hold() is written by over(), with all others
 * that are held.  What the helper answers in one read ends by itself; whoever
 * else holds calls over() before it returns to the event loop.
 */
ngx_int_t ngx_http_ron_burst_init(ngx_cycle_t *cycle);
void ngx_http_ron_burst_hold(ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_burst_drop(ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_burst_over(void);

/* The reply when a call has no answer. */
ngx_int_t ngx_http_ron_unanswered(ngx_http_request_t *r, ngx_int_t rc);

/* Whether writes are refused now, and why. */
ron_reason_t ngx_http_ron_shed(uint64_t now_us);
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

/* Is a receipt asked for with its proof?  And the work of a thread for it. */
ngx_uint_t ngx_http_ron_wallet_proof(ngx_http_ron_ctx_t *ctx);
ron_status_t ngx_http_ron_wallet_proof_work(ngx_http_ron_task_t *task);

/* A balance of the zone, and how far it can be believed. */

typedef struct {
    ron_msg_balance_t    balance;
    uint64_t             as_of;         /* wall, ms */
    uint64_t             stale;         /* ms */
    uint64_t             silent;        /* ms since the helper's last beat */
    ngx_uint_t           live;          /* unsigned  live:1; */
    ngx_uint_t           foreign;       /* unsigned  foreign:1; */
} ngx_http_ron_cached_t;

/* The answer of GET .../balance, from whatever is known. */
ngx_int_t ngx_http_ron_wallet_balance_reply(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t account, ron_str_t asset,
    ngx_http_ron_cached_t *c);

/*
 * For a wallet elsewhere: the newest commit that is published, taken before
 * the answer is looked up, and the header Ledger-Seq, which says as of which
 * seq an answer of /ledger/ops is right.
 */
uint64_t ngx_http_ron_bus_seq(ngx_http_request_t *r);
ngx_int_t ngx_http_ron_bus_tell(ngx_http_request_t *r, uint64_t seq);

/* POST /ledger/ops */
ngx_int_t ngx_http_ron_ops(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx);


/* ---- work that blocks, in a thread of the pool -------------------------- */

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
    ngx_ron_conf_t          *conf;
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
 * NULL: there is no memory.  A task that was made with `always` may be posted
 * again after its `after`.  When too many wait for threads, post() refuses the
 * request, and try() says NGX_BUSY, as post() does for `always`.
 */
ngx_http_ron_task_t *ngx_http_ron_task(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_status_t (*work)(ngx_http_ron_task_t *));
ngx_int_t ngx_http_ron_task_post(ngx_http_request_t *r,
    ngx_http_ron_task_t *task);
ngx_int_t ngx_http_ron_task_try(ngx_http_request_t *r,
    ngx_http_ron_task_t *task);

/* Around what a thread does: a worker that ends waits for it, not for ever. */
void ngx_http_ron_task_begin(void);
void ngx_http_ron_task_end(void);

/* In a thread: the worker's handle of the ledger, which may have to wait. */
ron_status_t ngx_http_ron_task_store(ngx_ron_conf_t *rcf,
    ron_store_t **store);

/* In a thread that reads the ledger: where it may be, the first time. */
void ngx_http_ron_task_place(ngx_ron_conf_t *rcf);

/* For `work`: a refusal. */
ron_status_t ngx_http_ron_task_refuse(ngx_http_ron_task_t *task,
    ron_reason_t reason, const char *text);

/* For `work`: what a reading function of the API said. */
ron_status_t ngx_http_ron_ledger_range(ron_api_error_t *err,
    ron_status_t rc);

/* GET /ledger/proof/inclusion */
ngx_int_t ngx_http_ron_proof_inclusion(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);

/* In a thread: the worker's cache of the tree; NULL: there is none. */
ron_nodes_t *ngx_http_ron_proof_cache(ron_digest_t digest);

/* The reply when there is no task. */
ngx_int_t ngx_http_ron_no_ledger(ngx_http_request_t *r);


/* ---- phases ------------------------------------------------------------- */

ngx_int_t ngx_http_ron_access_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_ron_log_handler(ngx_http_request_t *r);

/* What a log has of a request and NGINX does not know; empty: none. */

typedef struct {
    ngx_str_t  service;
    ngx_str_t  route;
    ngx_str_t  reason;
    ngx_str_t  corr_id;
} ngx_http_ron_line_t;

void ngx_http_ron_line(ngx_http_request_t *r, ngx_http_ron_line_t *line);

/* The label of a reason. */
const char *ngx_http_ron_reason_name(ron_reason_t reason);


extern ngx_module_t  ngx_http_ron_module;


#endif /* _NGX_HTTP_RON_H_INCLUDED_ */
