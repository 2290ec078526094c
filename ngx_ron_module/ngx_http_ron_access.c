
/*
 * What happens to every request of a ron service, whichever it is: in the
 * access phase its route, its headers and its capability; in the log phase
 * its counters.
 */

#include "ngx_http_ron_limit.h"


static ngx_int_t ngx_http_ron_access_route(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_service_t *service);
static ngx_int_t ngx_http_ron_access_headers(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ngx_uint_t ngx_http_ron_access_is(u_char *data, const char *text,
    size_t len);
static ngx_int_t ngx_http_ron_access_encoding(ngx_http_ron_ctx_t *ctx);
static ngx_int_t ngx_http_ron_access_token(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ngx_int_t ngx_http_ron_access_capability(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_service_t *service);
static ngx_int_t ngx_http_ron_allow_header(ngx_http_request_t *r,
    ngx_http_ron_service_t *service, ngx_str_t *path);
static ngx_uint_t ngx_http_ron_reason(ron_reason_t reason);


/* the values of the labels `status` and `reason`, in the table's order */

#define ngx_http_ron_text(dim, id, text)  text,

static const char  *ngx_http_ron_reasons[] = {
    RON_DIM_REASON(ngx_http_ron_text)
};

static ngx_uint_t   ngx_http_ron_statuses[] = {
    200, 202, 206, 207, 304, 400, 401, 403, 404, 405, 409, 412, 413, 415,
    416, 422, 429, 499, 500, 503, 0
};

typedef char  ngx_http_ron_statuses_are_all[
    sizeof(ngx_http_ron_statuses) / sizeof(ngx_uint_t) == RON_D_STATUS_N
    ? 1 : -1];


ngx_int_t
ngx_http_ron_access_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_ron_ctx_t       *ctx;
    ngx_http_ron_loc_conf_t  *rlcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    if (rlcf->service == NULL || r != r->main) {
        return NGX_DECLINED;
    }

    /* preconditions are ours to evaluate */

    r->disable_not_modified = 1;

    ctx = ngx_http_ron_get_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* a step that refuses has replied, and that may be NGX_OK as well */

    rc = ngx_http_ron_access_route(r, ctx, rlcf->service);

    if (rc == NGX_OK && !ctx->replied) {
        ngx_http_ron_count_route(ctx);

        if (ctx->route->flags & NGX_HTTP_RON_WRITE) {
            ngx_http_ron_checks_since(ctx, ctx->begin_us);
        }

        rc = ngx_http_ron_access_headers(r, ctx);
    }

    if (rc == NGX_OK && !ctx->replied) {
        rc = ngx_http_ron_access_capability(r, ctx, rlcf->service);
    }

    if (rc == NGX_OK && !ctx->replied) {
        return NGX_OK;
    }

    ngx_http_finalize_request(r, rc);

    return NGX_DONE;
}


static ngx_int_t
ngx_http_ron_access_route(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_service_t *service)
{
    ngx_str_t                  path;
    ngx_uint_t                 method, known;
    ngx_http_ron_route_t      *route;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    path.data = r->uri.data + clcf->name.len;
    path.len = r->uri.len - clcf->name.len;

    while (path.len && path.data[0] == '/') {
        path.data++;
        path.len--;
    }

    method = r->method == NGX_HTTP_HEAD ? NGX_HTTP_GET : r->method;
    known = 0;

    for (route = service->routes; route->handler; route++) {

        if (route->flags & NGX_HTTP_RON_PREFIX) {
            if (path.len <= route->path.len) {
                continue;
            }

        } else if (path.len != route->path.len) {
            continue;
        }

        if (ngx_memcmp(path.data, route->path.data, route->path.len) != 0) {
            continue;
        }

        known = 1;

        if (route->method == method) {
            ctx->route = route;
            ctx->path.data = path.data + route->path.len;
            ctx->path.len = path.len - route->path.len;

            return NGX_OK;
        }
    }

    if (!known) {
        return ngx_http_ron_refuse(r, RON_REASON_NOT_FOUND,
                                   "there is nothing at this path", NULL);
    }

    if (ngx_http_ron_allow_header(r, service, &path) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_refuse(r, RON_REASON_METHOD, NULL, NULL);
}


static ngx_int_t
ngx_http_ron_allow_header(ngx_http_request_t *r,
    ngx_http_ron_service_t *service, ngx_str_t *path)
{
    ngx_str_t              allow;
    ngx_uint_t             get, post;
    ngx_http_ron_route_t  *route;

    get = 0;
    post = 0;

    for (route = service->routes; route->handler; route++) {

        if (path->len < route->path.len
            || ngx_strncmp(path->data, route->path.data, route->path.len)
            || (path->len != route->path.len)
               != !!(route->flags & NGX_HTTP_RON_PREFIX))
        {
            continue;
        }

        get |= route->method == NGX_HTTP_GET;
        post |= route->method == NGX_HTTP_POST;
    }

    if (get && post) {
        ngx_str_set(&allow, "GET, HEAD, POST");

    } else if (get) {
        ngx_str_set(&allow, "GET, HEAD");

    } else {
        ngx_str_set(&allow, "POST");
    }

    return ngx_http_ron_header(r, "Allow", &allow);
}


static ngx_int_t
ngx_http_ron_access_headers(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    u_char       *p, *last;
    size_t        n;
    ron_str_t     key, header;
    ngx_str_t    *type;
    ngx_uint_t    flags;

    flags = ctx->route->flags;

    if (ctx->timeout_bad) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "Request-Timeout must be seconds, once, a "
                                   "whole number without a leading zero",
                                   "Request-Timeout");
    }

    if (r->args.len) {

        ctx->args = ngx_palloc(r->pool, NGX_HTTP_RON_ARGS
                                        * sizeof(ron_api_arg_t)
                                        + r->args.len);
        if (ctx->args == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        p = (u_char *) &ctx->args[NGX_HTTP_RON_ARGS];
        n = NGX_HTTP_RON_ARGS;

        if (ron_api_query(ngx_ron_str(&r->args), p, ctx->args, &n)
            != RON_OK)
        {
            return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                       "the query is malformed", NULL);
        }

        ctx->args_n = n;
    }

    if (flags & NGX_HTTP_RON_JSON) {

        type = r->headers_in.content_type ? &r->headers_in.content_type->value
                                          : NULL;

        ctx->lines = (flags & NGX_HTTP_RON_LINES) && type
                     && type->len == sizeof("application/x-ndjson") - 1
                     && ngx_strncasecmp(type->data,
                                        (u_char *) "application/x-ndjson",
                                        type->len)
                        == 0;

        if (ctx->lines) {
            goto encoding;
        }

        if (type == NULL
            || type->len < sizeof("application/json") - 1
            || !ngx_http_ron_access_is(type->data, "application/json",
                                       sizeof("application/json") - 1))
        {
            return ngx_http_ron_refuse(r, RON_REASON_MEDIA_TYPE,
                                       "it must be application/json", NULL);
        }

        p = type->data + sizeof("application/json") - 1;
        last = type->data + type->len;

        while (p < last && *p == ' ') {
            p++;
        }

        if (p < last && *p != ';') {
            return ngx_http_ron_refuse(r, RON_REASON_MEDIA_TYPE,
                                       "it must be application/json", NULL);
        }

    encoding:

        if (ngx_http_ron_access_encoding(ctx) != NGX_OK) {
            return ngx_http_ron_refuse(r, RON_REASON_MEDIA_TYPE,
                                       flags & NGX_HTTP_RON_GZIP
                                       ? "gzip is the only content encoding "
                                         "that is accepted"
                                       : "no content encoding is accepted",
                                       NULL);
        }
    }

    if (flags & NGX_HTTP_RON_KEY) {

        if (ctx->key_twice) {
            return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                       "Idempotency-Key is there twice",
                                       "Idempotency-Key");
        }

        header = ngx_ron_str(&ctx->idem_key);

        if (ron_api_key(header, &key) != RON_OK) {
            return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                       "Idempotency-Key must be 1 to 64 "
                                       "visible characters, without quotes "
                                       "or backslashes inside",
                                       "Idempotency-Key");
        }

        ctx->idem_key.data = (u_char *) key.data;
        ctx->idem_key.len = key.len;
    }

    return NGX_OK;
}


/* Whatever its case; nearly all write it as it is written here. */

static ngx_uint_t
ngx_http_ron_access_is(u_char *data, const char *text, size_t len)
{
    return ngx_memcmp(data, text, len) == 0
           || ngx_strncasecmp(data, (u_char *) text, len) == 0;
}


static ngx_int_t
ngx_http_ron_access_encoding(ngx_http_ron_ctx_t *ctx)
{
    ngx_str_t  *e;

    e = &ctx->content_encoding;

    if (e->len == 0
        || (!ctx->encoded_twice && e->len == 8
            && ngx_strncasecmp(e->data, (u_char *) "identity", 8) == 0))
    {
        return NGX_OK;
    }

    if (!(ctx->route->flags & NGX_HTTP_RON_GZIP) || ctx->encoded_twice
        || ((e->len != 4
             || ngx_strncasecmp(e->data, (u_char *) "gzip", 4) != 0)
            && (e->len != 6
                || ngx_strncasecmp(e->data, (u_char *) "x-gzip", 6) != 0)))
    {
        return NGX_DECLINED;
    }

    ctx->gzip = 1;

    return NGX_OK;
}


/* What its token allows; whether it is genuine another service may say. */

static ngx_int_t
ngx_http_ron_access_token(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_str_t         token;
    ngx_str_t        *value;
    ngx_uint_t        genuine;
    ron_status_t      rc;
    ron_cap_error_t   err;

    if (r->headers_in.authorization == NULL) {
        return ngx_http_ron_refuse(r, RON_REASON_UNAUTH,
                                   "there is no bearer token", NULL);
    }

    value = &r->headers_in.authorization->value;

    if (value->len <= 7
        || !ngx_http_ron_access_is(value->data, "Bearer ", 7))
    {
        return ngx_http_ron_refuse(r, RON_REASON_UNAUTH,
                                   "there is no bearer token", NULL);
    }

    token.data = value->data + 7;
    token.len = value->len - 7;

    while (token.len && token.data[0] == ' ') {
        token.data++;
        token.len--;
    }

    ctx->token = token;

    rc = ngx_http_ron_token_get(r, token, !ngx_http_ron_check_tokens(r),
                                &ctx->cap, &err, &genuine);

    if (ctx->cap == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->genuine = genuine;

    if (rc != RON_OK) {
        ctx->cap_why = err.why;

        return ngx_http_ron_refuse(r, err.status == 401
                                          ? RON_REASON_UNAUTH
                                          : err.status == 403
                                            ? RON_REASON_CAP_INVALID
                                            : RON_REASON_INTERNAL,
                                   err.reason, NULL);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_ron_access_capability(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_service_t *service)
{
    ngx_int_t                  rc;
    ron_str_t                  addr;
    ron_api_error_t            refused;
    ron_api_policy_t           policy;
    struct sockaddr_in        *sin;
    ngx_http_ron_loc_conf_t   *rlcf;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6       *sin6;
#endif

    if (ctx->route->flags & NGX_HTTP_RON_OPEN) {
        return NGX_OK;
    }

    rc = ngx_http_ron_access_token(r, ctx);

    if (rc != NGX_OK || ctx->replied) {
        return rc;
    }

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);
    addr = ron_null_str;

    switch (r->connection->sockaddr->sa_family) {

    case AF_INET:
        sin = (struct sockaddr_in *) r->connection->sockaddr;
        addr.data = (u_char *) &sin->sin_addr;
        addr.len = 4;
        break;

#if (NGX_HAVE_INET6)
    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) r->connection->sockaddr;
        addr.data = sin6->sin6_addr.s6_addr;
        addr.len = 16;
        break;
#endif

    default:
        break;
    }

    if (!ron_cap_allows_ip(ctx->cap, addr)) {
        return ngx_http_ron_refuse(r, RON_REASON_CAP_INVALID,
                                   "the capability is for other addresses",
                                   NULL);
    }

    if (!ron_cap_allows_tenant(ctx->cap, ngx_ron_str(&rlcf->tenant))) {
        return ngx_http_ron_refuse(r, RON_REASON_CAP_INVALID,
                                   "the capability is for another tenant",
                                   NULL);
    }

    if (!ron_cap_allows_act(ctx->cap, service->svc, ctx->route->act)) {
        return ngx_http_ron_refuse(r, RON_REASON_CAP_INVALID,
                                   "the capability does not have this "
                                   "service or act", NULL);
    }

    if (ctx->route->act == RON_CAP_ACT_ADMIN) {
        ngx_http_ron_limit_policy(r, ctx, &policy);

        if (ron_api_policy_read(&policy, ctx->cap, RON_CAP_ACT_ADMIN,
                                ron_null_str, ron_null_str, &refused)
            != RON_OK)
        {
            return ngx_http_ron_problem(r, &refused);
        }
    }

    /* who has forged a capability must not use up its rate */

    return ctx->genuine ? ngx_http_ron_limit_rate(r, ctx) : NGX_OK;
}


/* Counts what was answered, by the template of its route. */

ngx_int_t
ngx_http_ron_log_handler(ngx_http_request_t *r)
{
    uint64_t                   us;
    ngx_time_t                *tp;
    ngx_uint_t                 route, method, status, i;
    ngx_http_ron_ctx_t        *ctx;
    ngx_http_ron_loc_conf_t   *rlcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    if (rlcf->service == NULL || ngx_ron_zone() == NULL) {
        return NGX_OK;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    if (ctx) {
        ngx_http_ron_trace_end(r, ctx, rlcf->service);
    }

    route = ctx && ctx->route ? ctx->route->metric : rlcf->service->other;

    switch (r->method) {

    case NGX_HTTP_GET:
        method = RON_D_METHOD_GET;
        break;

    case NGX_HTTP_POST:
        method = RON_D_METHOD_POST;
        break;

    default:
        method = RON_D_METHOD_OTHER;
    }

    status = RON_D_STATUS_OTHER;

    for (i = 0; i < RON_D_STATUS_OTHER; i++) {
        if (ngx_http_ron_statuses[i] == r->headers_out.status) {
            status = i;
            break;
        }
    }

    tp = ngx_timeofday();
    us = ((uint64_t) (tp->sec - r->start_sec) * 1000
          + (tp->msec - r->start_msec))
         * 1000;

    ngx_ron_count(RON_M_HTTP_REQUESTS, 0, route, method, status);
    ron_metric_observe(ngx_ron_zone(), ngx_ron_slot(), RON_M_REQUEST_LATENCY,
                       0, route, method, 0, us);

    ngx_http_ron_count_end(r, ctx, rlcf->service->metric);

    if (ctx && ctx->reason != RON_REASON_OK) {
        i = ngx_http_ron_reason(ctx->reason);

        ngx_ron_count(RON_M_REJECTED, rlcf->service->metric, i, 0, 0);

        if (rlcf->service->metric == RON_D_SERVICE_WALLET) {
            ngx_ron_count(RON_M_WALLET_REJECTS, 0, i, 0, 0);

            if (ctx->reason == RON_REASON_NONCE) {
                ngx_ron_count(RON_M_WALLET_NONCE, 0, 0, 0, 0);
            }
        }
    }

    if (rlcf->service->metric == RON_D_SERVICE_WALLET && ctx && ctx->route) {
        i = ctx->route->metric - RON_D_ROUTE_WALLET_ISSUE;

        ngx_ron_count(RON_M_WALLET_REQUESTS, 0, i, 0, 0);

        if (r->headers_out.status == NGX_HTTP_OK
            && r->method == NGX_HTTP_POST)
        {
            ngx_ron_count(RON_M_WALLET_SUCCESSES, 0, 0, 0, 0);
        }
    }

    return NGX_OK;
}


/* The label of a reason is its code in lower case. */

static ngx_uint_t
ngx_http_ron_reason(ron_reason_t reason)
{
    ngx_uint_t   i;
    const char  *code;

    /* a seed has an alert on it, and its code is that of all bad requests */

    if (reason == RON_REASON_UNKNOWN_KIND) {
        return RON_D_REASON_UNKNOWN_KIND;
    }

    code = ron_reason_info(reason)->code;

    for (i = 0; i < RON_D_REASON_OTHER; i++) {
        if (ngx_strcasecmp((u_char *) code,
                           (u_char *) ngx_http_ron_reasons[i])
            == 0)
        {
            return i;
        }
    }

    return RON_D_REASON_OTHER;
}


const char *
ngx_http_ron_reason_name(ron_reason_t reason)
{
    return ngx_http_ron_reasons[ngx_http_ron_reason(reason)];
}
