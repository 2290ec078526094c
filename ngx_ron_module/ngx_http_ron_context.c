
/*
 * What a log may say about an operation of the wallet:
 *
 *     $ron_op            issue, transfer, ..., batch, balance, outcome, tx
 *     $ron_asset
 *     $ron_amount_minor
 *     $ron_nonce
 *     $ron_txid          when it is committed
 *     $ron_account_hash  whose money it is, by the name that audit events
 *                        have for the account: nobody else's key makes it
 *
 * Of a batch the first only.  An operation is kept for them only while some
 * directive names one of them, so that all others pay nothing.
 */

#include "ngx_http_ron.h"
#include "ron_amount.h"
#include "ron_api_event.h"
#include "ron_codec.h"
#include "ron_receipt.h"


struct ngx_http_ron_context_s {
    ngx_uint_t  fields;             /* RON_F_* */
    size_t      asset_len;
    size_t      txid_len;
    size_t      amount_len;
    size_t      nonce_len;
    u_char      hash[2 * RON_API_HASH_LEN];
    u_char      asset[RON_ASSET_MAX];
    char        amount[RON_AMOUNT_MAX];
    char        nonce[RON_AMOUNT_MAX];
    char        txid[RON_TXID_LEN + 1];
};


static void ngx_http_ron_context_put(ngx_http_ron_context_t *c,
    const ron_entry_t *e);
static void ngx_http_ron_context_hash(ron_str_t account, u_char *hash);
static ngx_int_t ngx_http_ron_context_copy(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, const void *data, size_t len);
static ngx_int_t ngx_http_ron_context_op(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_variable_value_t *v);
static ngx_int_t ngx_http_ron_context_asked(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_variable_value_t *v, uintptr_t data);


#define ngx_http_ron_context_text(dim, id, text)  ngx_string(text),

static ngx_str_t  ngx_http_ron_context_ops[] = {
    RON_DIM_ENDPOINT_W(ngx_http_ron_context_text)
};


/* An operation that was parsed; it may be refused yet. */

void
ngx_http_ron_context_unit(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    const ron_unit_t *unit)
{
    ngx_http_ron_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    if (!rmcf->has_context || unit->type != RON_UNIT_WALLET
        || unit->op_n != 1)
    {
        return;
    }

    /* a line of a log that lacks this is better than an operation refused */

    if (ctx->context == NULL) {
        ctx->context = ngx_pcalloc(r->pool, sizeof(ngx_http_ron_context_t));
    }

    if (ctx->context) {
        ngx_http_ron_context_put(ctx->context, &unit->ops[0]);
    }
}


/* It is an entry: a capture has all that its hold had. */

void
ngx_http_ron_context_entry(ngx_http_ron_ctx_t *ctx, const ron_entry_t *e)
{
    if (ctx->context) {
        ngx_http_ron_context_put(ctx->context, e);
        ron_txid_print(e->time_ms, e->ledger_id, e->seq, ctx->context->txid);
        ctx->context->txid_len = RON_TXID_LEN;
    }
}


/* The same of another server's answer. */

void
ngx_http_ron_context_receipt(ngx_http_ron_ctx_t *ctx, ron_str_t receipt)
{
    static const char  txid[] = "{\"txid\":\"";

    if (ctx->context && receipt.len > sizeof(txid) - 1 + RON_TXID_LEN
        && ngx_memcmp(receipt.data, txid, sizeof(txid) - 1) == 0)
    {
        ngx_memcpy(ctx->context->txid, receipt.data + sizeof(txid) - 1,
                   RON_TXID_LEN);
        ctx->context->txid_len = RON_TXID_LEN;
    }
}


static void
ngx_http_ron_context_put(ngx_http_ron_context_t *c, const ron_entry_t *e)
{
    if ((e->fields & RON_F_ASSET) && e->asset.len <= RON_ASSET_MAX) {
        c->asset_len = e->asset.len;
        ngx_memcpy(c->asset, e->asset.data, e->asset.len);
    }

    if (e->fields & RON_F_AMOUNT) {
        c->amount_len = ron_amount_print(e->amount, c->amount);
    }

    if (e->fields & RON_F_NONCE) {
        c->nonce_len = ron_amount_print(e->nonce, c->nonce);
    }

    if (e->fields & RON_F_ACCOUNT) {
        ngx_http_ron_context_hash(e->account, c->hash);
    }

    c->fields |= e->fields;
}


static void
ngx_http_ron_context_hash(ron_str_t account, u_char *hash)
{
    uint8_t          full[RON_API_HASH_LEN];
    ngx_ron_conf_t  *rcf;

    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);

    ron_api_account_hash(rcf->auth_key.b, account, full);
    (void) ngx_hex_dump(hash, full, RON_API_HASH_LEN);
}


ngx_int_t
ngx_http_ron_context_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_ron_ctx_t      *ctx;
    ngx_http_ron_context_t  *c;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    if (ctx == NULL || ctx->route == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    if (data == NGX_HTTP_RON_CONTEXT_OP) {
        return ngx_http_ron_context_op(r, ctx, v);
    }

    c = ctx->context;

    if (c == NULL) {
        return ngx_http_ron_context_asked(r, ctx, v, data);
    }

    switch (data) {

    case NGX_HTTP_RON_CONTEXT_ASSET:
        return ngx_http_ron_context_copy(r, v, c->asset, c->asset_len);

    case NGX_HTTP_RON_CONTEXT_AMOUNT:
        return ngx_http_ron_context_copy(r, v, c->amount, c->amount_len);

    case NGX_HTTP_RON_CONTEXT_NONCE:
        return ngx_http_ron_context_copy(r, v, c->nonce, c->nonce_len);

    case NGX_HTTP_RON_CONTEXT_TXID:
        return ngx_http_ron_context_copy(r, v, c->txid, c->txid_len);

    default: /* NGX_HTTP_RON_CONTEXT_ACCOUNT */
        return ngx_http_ron_context_copy(r, v, c->hash,
                                         c->fields & RON_F_ACCOUNT
                                             ? sizeof(c->hash) : 0);
    }
}


static ngx_int_t
ngx_http_ron_context_copy(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, const void *data, size_t len)
{
    if (len == 0) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->data = ngx_pnalloc(r->pool, len);
    if (v->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(v->data, data, len);
    v->len = len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


/* POST /ledger/ops says in its body which one it is. */

static ngx_int_t
ngx_http_ron_context_op(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_variable_value_t *v)
{
    ngx_str_t   *op;
    ngx_uint_t   route;

    route = ctx->route->metric;

    if (ngx_http_ron_count_wallet(route)) {
        op = &ngx_http_ron_context_ops[route - RON_D_ROUTE_WALLET_ISSUE];

    } else if (ctx->context) {
        op = &ngx_http_ron_context_ops[ctx->number];

    } else {
        v->not_found = 1;
        return NGX_OK;
    }

    return ngx_http_ron_context_copy(r, v, op->data, op->len);
}


/* Of a look: what it was about. */

static ngx_int_t
ngx_http_ron_context_asked(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char     hash[2 * RON_API_HASH_LEN];
    ron_str_t  arg;

    if (ngx_http_ron_count_wallet(ctx->route->metric)) {

        if (data == NGX_HTTP_RON_CONTEXT_ASSET) {
            arg = ron_api_arg(ctx->args, ctx->args_n, ron_str("asset"));

            if (ron_asset_valid(arg)) {
                return ngx_http_ron_context_copy(r, v, arg.data, arg.len);
            }
        }

        if (data == NGX_HTTP_RON_CONTEXT_ACCOUNT) {
            arg = ron_api_arg(ctx->args, ctx->args_n, ron_str("account"));

            if (ron_account_valid(arg)) {
                ngx_http_ron_context_hash(arg, hash);
                return ngx_http_ron_context_copy(r, v, hash, sizeof(hash));
            }
        }
    }

    v->not_found = 1;

    return NGX_OK;
}
