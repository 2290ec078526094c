
/*
 * The breaker before our own ledger: shared by all workers, in the zone.  What
 * is refused by rules is a success of the ledger; an error is an operation
 * that nobody answered, or whose outcome nobody knows.  A client with little
 * patience is no error: an unanswered operation counts when it had the time
 * that a call to another service has.
 */

#include "ngx_http_ron_limit.h"
#include "ron_port.h"


static ngx_int_t ngx_http_ron_breaker_find(uint32_t *breaker);


static ron_str_t  ngx_http_ron_breaker_name = {
    sizeof("local ledger") - 1, (const uint8_t *) "local ledger"
};


/* A name keeps its place in a zone, and a process its zone: looked up once. */

static ngx_int_t
ngx_http_ron_breaker_find(uint32_t *breaker)
{
    ron_zone_t  *zone;

    static uint32_t           place;
    static const ron_zone_t  *known;

    zone = ngx_ron_zone();

    if (zone == NULL) {
        return NGX_DECLINED;
    }

    if (zone != known) {
        if (ron_zone_breaker(zone, ngx_http_ron_breaker_name, &place)
            != RON_OK)
        {
            return NGX_DECLINED;
        }

        known = zone;
    }

    *breaker = place;

    return NGX_OK;
}


ngx_int_t
ngx_http_ron_breaker_ask(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    uint64_t now_us)
{
    bool                             probe;
    uint32_t                         breaker;
    uint64_t                         retry_ms;
    ngx_http_ron_limit_main_conf_t  *lmcf;

    if (ngx_http_ron_breaker_find(&breaker) != NGX_OK) {
        return NGX_OK;
    }

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_limit_module);

    if (ron_zone_breaker_ask(ngx_ron_zone(), breaker, &lmcf->breaker,
                             now_us / 1000, &probe, &retry_ms)
        == RON_OK)
    {
        ctx->asked_us = now_us;
        ctx->probe = probe;
        return NGX_OK;
    }

    ctx->retry_after = (retry_ms + 999) / 1000;

    ngx_ron_count(RON_M_UPSTREAM_FAIL, 0, RON_D_SVC_LEDGER, 0, 0);

    return NGX_BUSY;
}


void
ngx_http_ron_breaker_tell(ngx_http_ron_ctx_t *ctx, ngx_uint_t success)
{
    uint32_t                         breaker;
    uint64_t                         since, state_ms;
    ngx_http_ron_limit_main_conf_t  *lmcf;

    since = ctx->asked_us;
    ctx->asked_us = 0;

    if (since == 0 || ngx_http_ron_breaker_find(&breaker) != NGX_OK) {
        return;
    }

    /* nothing changes in one that is closed, and nearly all of them are */

    if (success && !ctx->probe
        && ron_zone_breaker_look(ngx_ron_zone(), breaker, &state_ms)
           == RON_BREAKER_CLOSED)
    {
        return;
    }

    if (!success
        && ron_clock_mono_us() - since
           < (uint64_t) ron_timeout_info(RON_TIMEOUT_UPSTREAM)->ms * 1000)
    {
        ngx_http_ron_breaker_drop(ctx);
        return;
    }

    ctx->probe = 0;

    lmcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_ron_limit_module);

    if (!ron_zone_breaker_tell(ngx_ron_zone(), breaker, &lmcf->breaker,
                               ngx_ron_now(), success))
    {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, ctx->request->connection->log, 0,
                  "ron: the ledger did not answer too often, the wallet does "
                  "not ask it for %uD ms", lmcf->breaker.open_ms);

    ngx_ron_count(RON_M_CIRCUIT_OPEN, 0, RON_D_SVC_LEDGER, 0, 0);
    ngx_ron_count(RON_M_BREAKER_OPEN, 0, RON_D_TARGET_LEDGER, 0, 0);
}


/* A probe that nobody tells of would keep all others out for its time. */

void
ngx_http_ron_breaker_drop(ngx_http_ron_ctx_t *ctx)
{
    uint32_t                         breaker;
    ngx_http_ron_limit_main_conf_t  *lmcf;

    ctx->asked_us = 0;

    if (!ctx->probe || ngx_http_ron_breaker_find(&breaker) != NGX_OK) {
        return;
    }

    ctx->probe = 0;
    lmcf = ngx_http_get_module_main_conf(ctx->request,
                                         ngx_http_ron_limit_module);

    ron_zone_breaker_return(ngx_ron_zone(), breaker, &lmcf->breaker);
}


void
ngx_ron_breaker_close(void)
{
    uint32_t  breaker;

    if (ngx_http_ron_breaker_find(&breaker) == NGX_OK) {
        ron_zone_breaker_close(ngx_ron_zone(), breaker);
    }
}


ngx_uint_t
ngx_http_ron_breaker_down(ngx_http_request_t *r)
{
    uint32_t                         breaker;
    uint64_t                         since;
    ngx_http_ron_limit_main_conf_t  *lmcf;

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_limit_module);

    /* past its time the next operation is a probe, and that needs clients */

    return ngx_http_ron_breaker_find(&breaker) == NGX_OK
           && ron_zone_breaker_look(ngx_ron_zone(), breaker, &since)
              == RON_BREAKER_OPEN
           && ngx_ron_now() < since + lmcf->breaker.open_ms;
}


/* After the breakers of other services, whose series these are too. */

void
ngx_http_ron_breaker_sample(void)
{
    uint32_t              breaker;
    uint64_t              since;
    ron_breaker_state_t   s;

    if (ngx_http_ron_breaker_find(&breaker) != NGX_OK) {
        return;
    }

    s = ron_zone_breaker_look(ngx_ron_zone(), breaker, &since);

    if (s == RON_BREAKER_CLOSED) {
        return;
    }

    ron_metric_set(ngx_ron_zone(), 0, RON_M_BREAKER_STATE, 0,
                   RON_D_TARGET_LEDGER, 0, 0, s);

    if (s == RON_BREAKER_OPEN) {
        ron_metric_set(ngx_ron_zone(), 0, RON_M_BREAKER_OPEN_SECONDS, 0,
                       RON_D_TARGET_LEDGER, 0, 0,
                       (ngx_ron_now() - since) * 1000);
    }
}
