
/*
 * POST /ledger/admin/snapshot begins a snapshot, GET tells how it goes or
 * what came of it.
 */

#include "ngx_http_ron_snapshot.h"
#include "ron_api_snapshot.h"


static void ngx_http_ron_snapshot_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);


ngx_int_t
ngx_http_ron_snapshot(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_str_t        name;
    ngx_msec_t       left;
    ngx_ron_call_t  *call;

    name = ron_api_arg(ctx->args, ctx->args_n, ron_str("name"));

    if (name.data == NULL) {
        name = ron_str("current");
    }

    if (!ron_snapshot_name_valid(name)) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "1 to 64 letters, digits, dots, hyphens "
                                   "and underscores, the first no dot",
                                   "name");
    }

    left = ngx_http_ron_time_left(ctx);
    call = NULL;

    if (left) {
        call = ngx_ron_ipc_snapshot(ctx->route->method == NGX_HTTP_POST,
                                    name, left,
                                    ngx_http_ron_snapshot_answer, ctx);
    }

    if (call == NULL) {
        return ngx_http_ron_unanswered(r, NGX_DECLINED);
    }

    return ngx_http_ron_wait(r, ctx, call);
}


static void
ngx_http_ron_snapshot_answer(void *data, ngx_int_t rc, ron_frame_type_t type,
    ron_str_t payload)
{
    ngx_http_ron_ctx_t *ctx = data;

    ron_buf_t           *buf;
    ngx_uint_t           status;
    ron_api_error_t      err;
    ron_msg_admin_t      admin;
    ngx_http_request_t  *r;

    r = ctx->request;
    ctx->call = NULL;

    if (rc != NGX_OK) {
        ngx_http_ron_done(ctx, ngx_http_ron_unanswered(r, rc));
        return;
    }

    rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    if (type == RON_FRAME_ADMIN_IS
        && ron_msg_admin_get(payload, &admin) == RON_OK)
    {
        buf = ngx_http_ron_scratch();
        status = ctx->route->method == NGX_HTTP_POST ? NGX_HTTP_ACCEPTED
                                                     : NGX_HTTP_OK;

        switch (ron_api_snapshot_answer(buf, &admin, &err)) {

        case RON_OK:
            rc = ngx_http_ron_json(r, status, buf);
            break;

        case RON_EINVAL:
            rc = ngx_http_ron_problem(r, &err);
            break;

        default:
            break;
        }
    }

    ngx_http_ron_done(ctx, rc);
}
