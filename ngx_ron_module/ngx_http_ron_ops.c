
/*
 * POST /ledger/ops: what a wallet whose ledger is another nginx sends.  The
 * envelope has what the wallet's own clients say in headers; from there on an
 * operation is the same as one of a local wallet, so its decision and its
 * receipt are too.
 */

#include "ngx_http_ron_ingress.h"
#include "ron_port.h"


static ngx_int_t ngx_http_ron_ops_deadline(ngx_http_ron_ctx_t *ctx,
    const ron_api_ops_t *ops);


/* a worker's */

static ron_api_t  ngx_http_ron_ops_api;


ngx_int_t
ngx_http_ron_ops(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_unit_t                *unit;
    ron_status_t               rc;
    ron_api_ops_t              ops;
    ron_api_body_t            *body;
    ron_api_error_t            err;
    ron_api_limits_t           limits;
    ngx_http_ron_loc_conf_t   *rlcf;
    ngx_http_ron_main_conf_t  *rmcf;

    body = ngx_http_ron_ingress_parsed(ctx);

    if (body) {
        unit = &body->api.unit;
        ops = body->ops;
        err = body->err;
        rc = body->rc;

    } else {
        rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);
        rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

        limits = *rmcf->limits;
        limits.nonce_strict = rlcf->nonce;

        unit = &ngx_http_ron_ops_api.unit;
        rc = ron_api_ops_parse(&ngx_http_ron_ops_api, ctx->body, &limits,
                               &ops, &err);
    }

    if (rc == RON_EINVAL) {
        return ngx_http_ron_problem(r, &err);
    }

    if (rc != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_ron_ops_deadline(ctx, &ops) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                   "the deadline has passed, by the clock of "
                                   "this ledger", "deadline");
    }

    ctx->number = ops.op;

    return ngx_http_ron_wallet_unit(r, ctx, RON_CAP_SVC_LEDGER, unit);
}


/*
 * A time of the wall clock: what lay in the socket of a process that was
 * stopped is not executed when it goes on.
 */

static ngx_int_t
ngx_http_ron_ops_deadline(ngx_http_ron_ctx_t *ctx, const ron_api_ops_t *ops)
{
    uint64_t  now, left;

    if (ops->deadline_ms == 0) {
        return NGX_OK;
    }

    now = ron_clock_wall_ms();

    if (ops->deadline_ms <= now) {
        return NGX_DECLINED;
    }

    left = ron_clock_mono_us() + (ops->deadline_ms - now) * 1000;
    ctx->deadline_us = ngx_min(ctx->deadline_us, left);

    return NGX_OK;
}
