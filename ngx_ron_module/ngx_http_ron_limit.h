
/*
 * Limits that a configuration sets: the policy file, requests a second of a
 * capability, ceilings of the wallet, what a compressed body may become.
 */

#ifndef _NGX_HTTP_RON_LIMIT_H_INCLUDED_
#define _NGX_HTTP_RON_LIMIT_H_INCLUDED_


#include "ngx_http_ron.h"


typedef struct {
    ngx_str_t        policy_file;
    ron_policy_t    *policy;                /* NULL: everything is allowed */
    ngx_msec_t       stale;
    ngx_uint_t       shards;
    ngx_uint_t       inflate_ratio;
    size_t           inflate_max;
    ron_breaker_conf_t  breaker;            /* before our own ledger */
    unsigned         wallet_limit:1;
    unsigned         wallet_breaker:1;
} ngx_http_ron_limit_main_conf_t;

typedef struct {
    ngx_uint_t       rate;                  /* a second; 0: no limit */
    ngx_uint_t       burst;
} ngx_http_ron_limit_loc_conf_t;


/* One more request of a verified capability; NGX_OK, or it was answered. */
ngx_int_t ngx_http_ron_limit_rate(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);

/* The policy of this location, good while the request is. */
void ngx_http_ron_limit_policy(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_api_policy_t *policy);

/* Capability and policy for reading an account; an empty asset is any. */
ron_status_t ngx_http_ron_limit_read(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t account, ron_str_t asset,
    ron_api_error_t *err);


/*
 * Before an operation goes to our own ledger, and after.  NGX_BUSY: not now,
 * ctx->retry_after says until when.
 */
ngx_int_t ngx_http_ron_breaker_ask(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, uint64_t now_us);
void ngx_http_ron_breaker_tell(ngx_http_ron_ctx_t *ctx, ngx_uint_t success);

/* Nobody will tell: it was not sent, or its client is gone. */
void ngx_http_ron_breaker_drop(ngx_http_ron_ctx_t *ctx);

/*
 * Reserves the nonce of an operation; refuses it when it certainly would be.
 * What became of it is told after, with the entry that has it (NULL when it
 * was refused); it is dropped when it was not sent.
 */
ngx_int_t ngx_http_ron_nonce_ask(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, const ron_unit_t *unit);
void ngx_http_ron_nonce_drop(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx);
void ngx_http_ron_nonce_tell(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    const ron_outcome_t *outcome, const ron_entry_t *e);

/* Whether it is open now; its state into the metrics. */
ngx_uint_t ngx_http_ron_breaker_down(ngx_http_request_t *r);
void ngx_http_ron_breaker_sample(void);


extern ngx_module_t  ngx_http_ron_limit_module;


#endif /* _NGX_HTTP_RON_LIMIT_H_INCLUDED_ */
