
/*
 * Nonces, before the ledger is asked.  A nonce is reserved in the zone; who
 * finds it taken is refused here only when that is certain: it is durable
 * under another key, so this is no replay, and nonces never fall.  Everything
 * else is for the sequencer, and so are preconditions, which come first.
 */

#include "ngx_http_ron_limit.h"
#include "ron_port.h"


static ngx_uint_t ngx_http_ron_nonce_zone(ngx_http_request_t *r,
    ron_zone_t *zone);
static ngx_int_t ngx_http_ron_nonce_refuse(ngx_http_request_t *r,
    const ron_unit_t *unit, uint64_t expected);


static ngx_uint_t
ngx_http_ron_nonce_zone(ngx_http_request_t *r, ron_zone_t *zone)
{
    ngx_http_ron_limit_main_conf_t  *lmcf;

    if (ngx_http_ron_zone(r) == NULL) {
        return 0;
    }

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_limit_module);

    *zone = *ngx_http_ron_zone(r);
    zone->shards = lmcf->shards;

    return 1;
}


ngx_int_t
ngx_http_ron_nonce_ask(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    const ron_unit_t *unit)
{
    ron_zone_t           zone;
    const ron_entry_t   *e;
    ron_zone_balance_t   balance;

    e = &unit->ops[0];
    ctx->nonce = 0;

    if (unit->type != RON_UNIT_WALLET || unit->has_match
        || e->kind == RON_KIND_MINT || !(e->fields & RON_F_NONCE)
        || !ngx_http_ron_nonce_zone(r, &zone))
    {
        return NGX_OK;
    }

    ron_zone_nonce_init(&zone, e->account, &ctx->nonce_account);

    if (ron_zone_nonce_reserve(&zone, &ctx->nonce_account, e->nonce,
                               &ctx->nonce_last)
        == RON_OK)
    {
        ctx->nonce = e->nonce;
        ron_zone_nonce_near(&zone, &ctx->nonce_account, e->nonce);
        return NGX_OK;
    }

    if (!ron_zone_nonce_taken(&zone, &ctx->nonce_account, e->nonce,
                              unit->key)
        || ron_zone_balance_get(&zone, e->account, e->asset, &balance,
                                ron_clock_wall_ms())
           != RON_OK
        || balance.nonce < e->nonce)
    {
        return NGX_OK;
    }

    return ngx_http_ron_nonce_refuse(r, unit, balance.nonce + 1);
}


static ngx_int_t
ngx_http_ron_nonce_refuse(ngx_http_request_t *r, const ron_unit_t *unit,
    uint64_t expected)
{
    ron_api_error_t  err;

    (void) ron_api_refuse(&err, RON_REASON_NONCE, NULL, NULL);

    err.detail = unit->nonce_strict ? RON_DETAIL_NONCE_NEXT
                                    : RON_DETAIL_NONCE_LOW;
    err.value = expected;
    err.has_value = true;

    return ngx_http_ron_problem(r, &err);
}


void
ngx_http_ron_nonce_drop(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_zone_t  zone;

    if (ctx->nonce && ngx_http_ron_nonce_zone(r, &zone)) {
        ron_zone_nonce_release(&zone, &ctx->nonce_account, ctx->nonce,
                               ctx->nonce_last);
    }

    ctx->nonce = 0;
}


void
ngx_http_ron_nonce_tell(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    const ron_outcome_t *outcome, const ron_entry_t *e)
{
    ron_zone_t  zone;

    if (ctx->nonce == 0 || !ngx_http_ron_nonce_zone(r, &zone)) {
        return;
    }

    if (outcome->reason != RON_REASON_OK) {
        ron_zone_nonce_release(&zone, &ctx->nonce_account, ctx->nonce,
                               ctx->nonce_last);

        /* the sequencer knows better, and says what is next */

        if (outcome->reason == RON_REASON_NONCE && outcome->value > 1) {
            ron_zone_nonce_commit(&zone, &ctx->nonce_account,
                                  outcome->value - 1);
        }

        return;
    }

    if (e == NULL || e->nonce != ctx->nonce) {
        return;
    }

    ron_zone_nonce_note(&zone, &ctx->nonce_account, e->nonce, e->key);
}
