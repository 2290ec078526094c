
/*
 * Errors that NGINX makes by itself become problems, and every response of a
 * ron location carries its correlation id.
 *
 * It stands where NGINX puts third parties: before the filters that write the
 * header and before gzip, so what it puts is what they see.
 */

#include "ngx_http_ron.h"


static ngx_int_t ngx_http_ron_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_ron_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_ron_filter_problem(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ngx_int_t ngx_http_ron_filter_init(ngx_conf_t *cf);


static ngx_http_module_t  ngx_http_ron_filter_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_ron_filter_init,              /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_ron_filter_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_filter_module_ctx,       /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_next_body_filter;


static ngx_int_t
ngx_http_ron_header_filter(ngx_http_request_t *r)
{
    ngx_http_ron_ctx_t       *ctx;
    ngx_http_ron_loc_conf_t  *rlcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    if (!rlcf->errors || r != r->main) {
        return ngx_http_next_header_filter(r);
    }

    ctx = ngx_http_ron_get_ctx(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    if (!ctx->replied && r->upstream == NULL
        && (r->err_status >= 400 || r->headers_out.status >= 400)
        && ngx_http_ron_filter_problem(r, ctx) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_ron_header(r, "X-Corr-ID", &ctx->corr_id) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_next_header_filter(r);
}


static ngx_int_t
ngx_http_ron_filter_problem(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_buf_t        *buf;
    ngx_uint_t        status;
    ron_api_error_t   err;

    status = r->err_status ? r->err_status : r->headers_out.status;

    /* NGINX's own codes, which never leave it as they are */

    if (status >= NGX_HTTP_REQUEST_HEADER_TOO_LARGE
        && status < NGX_HTTP_INTERNAL_SERVER_ERROR)
    {
        status = NGX_HTTP_BAD_REQUEST;
    }

    (void) ron_api_refuse(&err, ron_api_reason(status), NULL, NULL);
    err.status = status;
    ctx->reason = err.reason;

    buf = ngx_http_ron_scratch();

    if (ron_api_problem(buf, &err, ngx_ron_str(&ctx->corr_id)) != RON_OK) {
        return NGX_ERROR;
    }

    ron_buf_put_u8(buf, LF);

    if (ron_buf_status(buf) != RON_OK) {
        return NGX_ERROR;
    }

    ctx->problem.len = buf->len;
    ctx->problem.data = ngx_pnalloc(r->pool, buf->len);

    if (ctx->problem.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(ctx->problem.data, buf->data, buf->len);

    if (ron_api_retryable(status)
        && ngx_http_ron_retry_after(r, status, 0) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_last_modified(r);
    ngx_http_clear_etag(r);

    r->headers_out.content_length_n = ctx->problem.len;
    ngx_str_set(&r->headers_out.content_type, "application/problem+json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    return NGX_OK;
}


static ngx_int_t
ngx_http_ron_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_buf_t           *b;
    ngx_chain_t          out, *cl;
    ngx_http_ron_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    if (ctx == NULL || ctx->problem.len == 0 || in == NULL) {
        return ngx_http_next_body_filter(r, in);
    }

    /* NGINX's page is taken as sent */

    for (cl = in; cl; cl = cl->next) {
        cl->buf->pos = cl->buf->last;
        cl->buf->file_pos = cl->buf->file_last;
    }

    if (ctx->replaced) {
        return NGX_OK;
    }

    ctx->replaced = 1;

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->memory = 1;
    b->pos = ctx->problem.data;
    b->last = ctx->problem.data + ctx->problem.len;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_next_body_filter(r, &out);
}


static ngx_int_t
ngx_http_ron_filter_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_ron_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_ron_body_filter;

    return NGX_OK;
}
