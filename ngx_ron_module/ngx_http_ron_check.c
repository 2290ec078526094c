
/*
 * Checks by other services: who issued a capability (ron_kms_pass), what a
 * policy says about a request (ron_policy_pass), and whether money is being
 * spent twice (ron_wallet_check_pass).  Each is made here when no service is
 * named.
 *
 * A service answers with a status: 2xx is yes, 401, 403, 409, 422 and 429 are
 * no, everything else is no answer.  Without an answer nothing is done.
 */

#include "ngx_http_ron_limit.h"
#include "ngx_http_ron_remote.h"
#include "ron_port.h"


static ngx_http_ron_remote_loc_conf_t *ngx_http_ron_check_conf(
    ngx_http_request_t *r);
static void ngx_http_ron_check_token_answer(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc);
static void ngx_http_ron_check_unit_answer(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc);
static ngx_int_t ngx_http_ron_check_ask(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_remote_t *remote);
static ngx_int_t ngx_http_ron_check_refuse(ngx_http_request_t *r,
    ngx_http_ron_rcall_t *call, ngx_int_t rc);
static ron_reason_t ngx_http_ron_check_why(ngx_http_request_t *r,
    ngx_http_ron_rcall_t *call, ngx_int_t rc, const char **text);


static ngx_http_ron_remote_loc_conf_t *
ngx_http_ron_check_conf(ngx_http_request_t *r)
{
    return ngx_http_get_module_loc_conf(r, ngx_http_ron_remote_module);
}


ngx_uint_t
ngx_http_ron_check_tokens(ngx_http_request_t *r)
{
    return ngx_http_ron_check_conf(r)->kms != NULL;
}


ngx_uint_t
ngx_http_ron_check_units(ngx_http_request_t *r)
{
    ngx_http_ron_remote_loc_conf_t  *rrlcf;

    rrlcf = ngx_http_ron_check_conf(r);

    return rrlcf->policy != NULL || rrlcf->wallet != NULL;
}


/* The token itself is in the header Authorization. */

ngx_int_t
ngx_http_ron_check_token(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_buf_t                *buf;
    ngx_str_t                 tail;
    ngx_http_ron_loc_conf_t  *rlcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);
    buf = ngx_http_ron_scratch();

    ron_buf_put_u8(buf, '{');
    ron_json_put_member(buf, ron_str("svc"),
                        ngx_ron_str(&rlcf->service->name));
    ron_json_put_member(buf, ron_str("kid"), ron_cstr(ctx->cap->kid));
    ron_json_put_member(buf, ron_str("capability"), ron_cstr(ctx->cap->id));
    ron_json_put_member_u64(buf, ron_str("deadline"),
                            ron_clock_wall_ms()
                            + ngx_http_ron_time_left(ctx));
    ron_buf_put_u8(buf, '}');

    ngx_str_null(&tail);

    if (ron_buf_status(buf) != RON_OK
        || ngx_http_ron_remote_call(r, ctx, ngx_http_ron_check_conf(r)->kms,
                                    &tail, NULL, ron_buf_str(buf),
                                    RON_D_CALL_VERIFY,
                                    ngx_http_ron_check_token_answer)
           != NGX_DONE)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DONE;
}


static void
ngx_http_ron_check_token_answer(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    if (rc == NGX_OK && call->answer.status < 300) {
        ctx->genuine = 1;
        ngx_http_ron_token_keep(r, ctx->token, ctx->cap);

        rc = ngx_http_ron_limit_rate(r, ctx);

        if (rc == NGX_OK && !ctx->replied) {
            rc = ngx_http_ron_go(r, ctx);
        }

    } else {
        if (rc == NGX_OK) {
            ctx->cap_why = RON_CAP_SIGNATURE;
        }

        rc = ngx_http_ron_check_refuse(r, call, rc);
    }

    ngx_http_ron_done(ctx, rc);
}


/* The question is the same for both services, and is kept for the second. */

ngx_int_t
ngx_http_ron_check_unit(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_unit_t *unit)
{
    u_char                          *p;
    ron_buf_t                       *buf;
    ngx_http_ron_loc_conf_t         *rlcf;
    ngx_http_ron_remote_loc_conf_t  *rrlcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);
    rrlcf = ngx_http_ron_check_conf(r);

    buf = ngx_http_ron_scratch();

    if (ron_api_check_put(buf, ngx_ron_str(&rlcf->service->name), unit,
                          ron_clock_wall_ms() + ngx_http_ron_time_left(ctx))
        != RON_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* of a stream there are many, one after the other */

    if (ctx->question.len) {
        (void) ngx_pfree(r->pool, (u_char *) ctx->question.data);
    }

    p = ngx_pnalloc(r->pool, buf->len);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(p, buf->data, buf->len);

    ctx->question.data = p;
    ctx->question.len = buf->len;

    return ngx_http_ron_check_ask(r, ctx, rrlcf->policy ? rrlcf->policy
                                                        : rrlcf->wallet);
}


static ngx_int_t
ngx_http_ron_check_ask(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_remote_t *remote)
{
    ngx_str_t  tail;

    ngx_str_null(&tail);

    if (ngx_http_ron_remote_call(r, ctx, remote, &tail, NULL,
                                 ctx->question, RON_D_CALL_VERIFY,
                                 ngx_http_ron_check_unit_answer)
        != NGX_DONE)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DONE;
}


static void
ngx_http_ron_check_unit_answer(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc)
{
    const char             *text;
    ron_reason_t            reason;
    ngx_http_request_t     *r;
    ngx_http_ron_remote_t  *wallet;

    r = ctx->request;
    wallet = ngx_http_ron_check_conf(r)->wallet;

    if (ctx->lines) {

        /* of a stream there are many: a question is not kept */

        (void) ngx_pfree(r->pool, call->text.data);
        ngx_str_null(&call->text);
    }

    if (ctx->lines && (rc != NGX_OK || call->answer.status >= 300
                       || call->remote->target != RON_D_TARGET_POLICY
                       || wallet == NULL))
    {
        text = NULL;
        reason = rc == NGX_OK && call->answer.status < 300
                     ? RON_REASON_OK
                     : ngx_http_ron_check_why(r, call, rc, &text);

        ngx_http_ron_ndjson_checked(ctx, reason, text);
        return;
    }

    if (rc != NGX_OK || call->answer.status >= 300) {
        rc = ngx_http_ron_check_refuse(r, call, rc);

    } else if (call->remote->target == RON_D_TARGET_POLICY && wallet) {
        rc = ngx_http_ron_check_ask(r, ctx, wallet);

    } else {

        /* others were parsed meanwhile: the request begins again */

        ctx->checked = 1;
        rc = ctx->route->handler(r, ctx);
    }

    ngx_http_ron_done(ctx, rc);
}


static ngx_int_t
ngx_http_ron_check_refuse(ngx_http_request_t *r, ngx_http_ron_rcall_t *call,
    ngx_int_t rc)
{
    const char    *text;
    ron_reason_t   reason;

    reason = ngx_http_ron_check_why(r, call, rc, &text);

    return ngx_http_ron_refuse(r, reason, text, NULL);
}


static ron_reason_t
ngx_http_ron_check_why(ngx_http_request_t *r, ngx_http_ron_rcall_t *call,
    ngx_int_t rc, const char **text)
{
    ngx_uint_t  target;

    static const char  *no[] = {
        [RON_D_TARGET_KMS] = "the key service does not know this token",
        [RON_D_TARGET_POLICY] = "the policy service refused it",
        [RON_D_TARGET_WALLET] = "the wallet service refused it",
    };

    static const char  *silent[] = {
        [RON_D_TARGET_KMS] = "the key service gave no answer, nothing was "
                             "done",
        [RON_D_TARGET_POLICY] = "the policy service gave no answer, nothing "
                                "was done",
        [RON_D_TARGET_WALLET] = "the wallet service gave no answer, nothing "
                                "was done",
    };

    target = call->remote->target;

    if (rc != NGX_OK && call->tried == 0 && call->late) {
        *text = "the deadline has passed";
        return RON_REASON_RETRY_LATER;
    }

    *text = silent[target];

    if (rc != NGX_OK) {
        return RON_REASON_UPSTREAM;
    }

    switch (call->answer.status) {

    case NGX_HTTP_UNAUTHORIZED:
    case NGX_HTTP_FORBIDDEN:
    case NGX_HTTP_CONFLICT:
    case 422:
    case NGX_HTTP_TOO_MANY_REQUESTS:
        *text = no[target];
        break;

    default:
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "ron: upstream \"%V\" answered a check with %ui, which "
                      "is neither yes nor no", &call->remote->host,
                      (ngx_uint_t) call->answer.status);
        break;
    }

    switch (call->answer.status) {

    case NGX_HTTP_UNAUTHORIZED:
        return RON_REASON_UNAUTH;

    case NGX_HTTP_FORBIDDEN:
        return target == RON_D_TARGET_KMS ? RON_REASON_CAP_INVALID
                                          : RON_REASON_POLICY_DENIED;

    case NGX_HTTP_CONFLICT:
        return RON_REASON_CONFLICT;

    case 422:
        return RON_REASON_LIMITS;

    case NGX_HTTP_TOO_MANY_REQUESTS:
        return RON_REASON_BUSY;

    default:
        return RON_REASON_UPSTREAM;
    }
}
