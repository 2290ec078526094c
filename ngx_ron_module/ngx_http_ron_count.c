
/*
 * What a request counts while it lives: that it is there, for how long it was
 * checked, that it did not prove who it is, that it came or left too slowly.
 *
 * Checked is what happens between its body and the helper: capability, strict
 * parsing, limits, policy, and what asks another service.  The time in which
 * the body came is the client's and is not in it; a body that came with its
 * header takes none, so it is checked in one go.
 *
 * Who has no slot yet counts nothing, and takes nothing back either when it has
 * got one meanwhile.
 */

#include "ngx_http_ron.h"
#include "ron_port.h"


static void ngx_http_ron_checks_stop(ngx_http_ron_ctx_t *ctx,
    uint64_t now_us);
static ngx_uint_t ngx_http_ron_count_stage(ngx_http_ron_ctx_t *ctx);


void
ngx_http_ron_count_route(ngx_http_ron_ctx_t *ctx)
{
    ngx_uint_t  route;

    if (ctx->counted || ngx_ron_slot() == RON_ZONE_SLOT_NONE) {
        return;
    }

    ctx->counted = 1;
    route = ctx->route->metric;

    ron_metric_add(ngx_ron_zone(), ngx_ron_slot(), RON_M_INFLIGHT_REQUESTS,
                   0, route, 0, 0, 1);

    if (ngx_http_ron_count_wallet(route)) {
        ron_metric_add(ngx_ron_zone(), ngx_ron_slot(), RON_M_WALLET_INFLIGHT,
                       0, route - RON_D_ROUTE_WALLET_ISSUE, 0, 0, 1);
    }
}


void
ngx_http_ron_count_gone(ngx_http_ron_ctx_t *ctx)
{
    ngx_uint_t  route;

    ngx_http_ron_checks_end(ctx);

    if (!ctx->counted) {
        return;
    }

    ctx->counted = 0;
    route = ctx->route->metric;

    ron_metric_sub(ngx_ron_zone(), ngx_ron_slot(), RON_M_INFLIGHT_REQUESTS,
                   0, route, 0, 0, 1);

    if (ngx_http_ron_count_wallet(route)) {
        ron_metric_sub(ngx_ron_zone(), ngx_ron_slot(), RON_M_WALLET_INFLIGHT,
                       0, route - RON_D_ROUTE_WALLET_ISSUE, 0, 0, 1);
    }
}


void
ngx_http_ron_checks_begin(ngx_http_ron_ctx_t *ctx)
{
    if (!ctx->checking) {
        ngx_http_ron_checks_since(ctx, ron_clock_mono_us());
    }
}


void
ngx_http_ron_checks_since(ngx_http_ron_ctx_t *ctx, uint64_t now_us)
{
    if (!ctx->checking && ngx_ron_slot() != RON_ZONE_SLOT_NONE) {
        ctx->checking = 1;
        ctx->checks_from_us = now_us;
    }
}


void
ngx_http_ron_checks_pause(ngx_http_ron_ctx_t *ctx)
{
    if (ctx->checking) {
        ngx_http_ron_checks_stop(ctx, ron_clock_mono_us());
    }
}


static void
ngx_http_ron_checks_stop(ngx_http_ron_ctx_t *ctx, uint64_t now_us)
{
    if (ctx->checking) {
        ctx->checking = 0;
        ctx->checks_us += now_us - ctx->checks_from_us;

        if (ctx->trace) {
            ctx->trace->checked_us = now_us;
            ctx->trace->checks_us = ctx->checks_us;
        }
    }
}


void
ngx_http_ron_checks_end(ngx_http_ron_ctx_t *ctx)
{
    if (ctx->checking) {
        ngx_http_ron_checks_until(ctx, ron_clock_mono_us());
    }
}


void
ngx_http_ron_checks_until(ngx_http_ron_ctx_t *ctx, uint64_t now_us)
{
    if (!ctx->checking) {
        return;
    }

    ngx_http_ron_checks_stop(ctx, now_us);

    ron_metric_observe(ngx_ron_zone(), ngx_ron_slot(),
                       RON_M_PREVALIDATOR_DURATION, 0, 0, 0, 0,
                       ctx->checks_us);
    ctx->checks_us = 0;
}


/*
 * What a request became, when it is answered: one that is given again became
 * nothing.  POST /ledger/ops is counted by the wallet that asks.
 */

void
ngx_http_ron_count_ops(ngx_http_ron_ctx_t *ctx, ngx_uint_t n)
{
    ngx_uint_t  route;

    route = ctx->route->metric;

    if (n && ngx_http_ron_count_wallet(route)) {
        ngx_ron_count_n(RON_M_WALLET_OPS, 0,
                        route - RON_D_ROUTE_WALLET_ISSUE, 0, 0, n);
    }
}


/* Why the newest capability of a request was refused, for the counters. */

static ngx_uint_t
ngx_http_ron_count_stage(ngx_http_ron_ctx_t *ctx)
{
    if (ctx->reason == RON_REASON_CAP_INVALID) {
        return RON_D_STAGE_CAVEAT;
    }

    switch (ctx->cap_why) {

    case RON_CAP_ACCEPTED:
        return RON_D_STAGE_MISSING;

    case RON_CAP_UNKNOWN_KID:
    case RON_CAP_SIGNATURE:
        return RON_D_STAGE_SIGNATURE;

    case RON_CAP_REVOKED:
        return RON_D_STAGE_REVOKED;

    case RON_CAP_EXPIRED:
    case RON_CAP_NOT_YET:
        return RON_D_STAGE_EXPIRED;

    default:
        return RON_D_STAGE_PARSE;
    }
}


/* Its body took longer than its deadline. */

void
ngx_http_ron_count_late(ngx_http_request_t *r)
{
    ngx_http_ron_loc_conf_t  *rlcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    ngx_ron_count(RON_M_IO_TIMEOUTS, rlcf->service->metric, RON_D_IO_READ, 0,
                  0);
}


void
ngx_http_ron_count_end(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_uint_t service)
{
    ngx_uint_t  peer;

    if (r->connection->timedout) {
        ngx_ron_count(RON_M_IO_TIMEOUTS, service,
                      r->header_sent ? RON_D_IO_WRITE : RON_D_IO_READ, 0, 0);
    }

    if (ctx == NULL || (ctx->reason != RON_REASON_UNAUTH
                        && ctx->reason != RON_REASON_CAP_INVALID))
    {
        return;
    }

    if (service == RON_D_SERVICE_WALLET) {
        ngx_ron_count(RON_M_AUTH_FAILURES_W, 0,
                      ngx_http_ron_count_stage(ctx), 0, 0);

    } else if (service == RON_D_SERVICE_LEDGER) {
        peer = r->connection->sockaddr->sa_family == AF_UNIX
               ? RON_D_PEER_CLASS_UDS : RON_D_PEER_CLASS_TCP;
        ngx_ron_count(RON_M_AUTH_FAILURES_L, 0, peer, 0, 0);
    }
}
