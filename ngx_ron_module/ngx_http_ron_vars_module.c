
/*
 * Variables for an access log of one JSON object a line, in UTC:
 *
 *     $ron_time        2026-11-18T15:04:05.678Z, when the line is written
 *     $ron_level       info, warn (4xx) or error (5xx)
 *     $ron_latency_ms  since the first byte of the request, with microseconds
 *                      cut off
 *     $ron_status      as $status, and always a number: 0 and not 000
 *     $ron_amnesia     true when the ledger leaves no trace on a disk
 *     $ron_line        all of them and more as one JSON object: what
 *                      conf/nginx.conf.in logs, in one go, since twelve
 *                      variables cost more than a balance
 *
 * Those of the request itself (route, service, reason, correlation id) are in
 * ngx_http_ron_module.c, those of an operation in ngx_http_ron_context.c.
 */

#include "ngx_http_ron.h"
#include "ron_amount.h"


#define NGX_HTTP_RON_VAR_TIME     0
#define NGX_HTTP_RON_VAR_LEVEL    1
#define NGX_HTTP_RON_VAR_LATENCY  2
#define NGX_HTTP_RON_VAR_STATUS   3
#define NGX_HTTP_RON_VAR_AMNESIA  4

#define NGX_HTTP_RON_LINE_TIME    sizeof("1970-09-28T12:00:00.000Z")

/*
 * The longest line but for what is in the arguments.  A transfer's is the last
 * that fits into the first block of its request's memory.
 */
#define NGX_HTTP_RON_LINE_ROOM                                                \
    (256 + NGX_HTTP_RON_LINE_TIME + 2 * NGX_INT64_LEN)

#define ngx_http_ron_line_put(p, text)                                        \
    ngx_cpymem(p, text, sizeof(text) - 1)


static ngx_int_t ngx_http_ron_vars_add(ngx_conf_t *cf);
static ngx_int_t ngx_http_ron_vars_list(ngx_conf_t *cf,
    ngx_http_variable_t *v);
static ngx_int_t ngx_http_ron_vars_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_ron_vars_get(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static u_char *ngx_http_ron_vars_time(u_char *p);
static u_char *ngx_http_ron_vars_number(u_char *p, uint64_t n);
static u_char *ngx_http_ron_line_str(u_char *p, ngx_str_t s);
static size_t ngx_http_ron_vars_escape(ngx_str_t *id);
static ngx_uint_t ngx_http_ron_vars_ms(ngx_http_request_t *r);
static ngx_uint_t ngx_http_ron_vars_amnesia(void);
static ngx_int_t ngx_http_ron_vars_line(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


static ngx_http_variable_t  ngx_http_ron_vars[] = {

    { ngx_string("ron_time"), NULL, ngx_http_ron_vars_get,
      NGX_HTTP_RON_VAR_TIME, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_level"), NULL, ngx_http_ron_vars_get,
      NGX_HTTP_RON_VAR_LEVEL, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_latency_ms"), NULL, ngx_http_ron_vars_get,
      NGX_HTTP_RON_VAR_LATENCY, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_status"), NULL, ngx_http_ron_vars_get,
      NGX_HTTP_RON_VAR_STATUS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_amnesia"), NULL, ngx_http_ron_vars_get,
      NGX_HTTP_RON_VAR_AMNESIA, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_line"), NULL, ngx_http_ron_vars_line,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


static ngx_http_variable_t  ngx_http_ron_context_vars[] = {

    { ngx_string("ron_op"), NULL, ngx_http_ron_context_variable,
      NGX_HTTP_RON_CONTEXT_OP, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_asset"), NULL, ngx_http_ron_context_variable,
      NGX_HTTP_RON_CONTEXT_ASSET, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_amount_minor"), NULL, ngx_http_ron_context_variable,
      NGX_HTTP_RON_CONTEXT_AMOUNT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_nonce"), NULL, ngx_http_ron_context_variable,
      NGX_HTTP_RON_CONTEXT_NONCE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_txid"), NULL, ngx_http_ron_context_variable,
      NGX_HTTP_RON_CONTEXT_TXID, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_account_hash"), NULL, ngx_http_ron_context_variable,
      NGX_HTTP_RON_CONTEXT_ACCOUNT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


static ngx_http_module_t  ngx_http_ron_vars_module_ctx = {
    ngx_http_ron_vars_add,                 /* preconfiguration */
    ngx_http_ron_vars_init,                /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_ron_vars_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_vars_module_ctx,         /* module context */
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


static ngx_int_t
ngx_http_ron_vars_add(ngx_conf_t *cf)
{
    if (ngx_http_ron_vars_list(cf, ngx_http_ron_vars) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_ron_vars_list(cf, ngx_http_ron_context_vars);
}


static ngx_int_t
ngx_http_ron_vars_list(ngx_conf_t *cf, ngx_http_variable_t *v)
{
    ngx_http_variable_t  *var;

    for ( /* void */ ; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/* Those that some directive has named have an index. */

static ngx_int_t
ngx_http_ron_vars_init(ngx_conf_t *cf)
{
    ngx_uint_t                  i;
    ngx_http_variable_t        *v, *named;
    ngx_http_ron_main_conf_t   *rmcf;
    ngx_http_core_main_conf_t  *cmcf;

    rmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_ron_module);
    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    named = cmcf->variables.elts;

    for (i = 0; i < cmcf->variables.nelts; i++) {

        for (v = ngx_http_ron_context_vars; v->name.len; v++) {

            if (v->name.len == named[i].name.len
                && ngx_strncmp(v->name.data, named[i].name.data, v->name.len)
                   == 0)
            {
                rmcf->has_context = 1;
            }
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_ron_vars_get(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char      *p;
    ngx_uint_t   status;

    p = ngx_pnalloc(r->pool, NGX_HTTP_RON_LINE_TIME);
    if (p == NULL) {
        return NGX_ERROR;
    }

    v->data = p;
    status = r->err_status ? r->err_status : r->headers_out.status;

    switch (data) {

    case NGX_HTTP_RON_VAR_TIME:
        p = ngx_http_ron_vars_time(p);
        break;

    case NGX_HTTP_RON_VAR_LEVEL:
        p = status < 400 ? ngx_cpymem(p, "info", 4)
            : status < 500 ? ngx_cpymem(p, "warn", 4)
                           : ngx_cpymem(p, "error", 5);
        break;

    case NGX_HTTP_RON_VAR_LATENCY:
        p = ngx_http_ron_vars_number(p, ngx_http_ron_vars_ms(r));
        break;

    case NGX_HTTP_RON_VAR_STATUS:
        p = ngx_http_ron_vars_number(p, status);
        break;

    default: /* NGX_HTTP_RON_VAR_AMNESIA */
        p = ngx_http_ron_vars_amnesia() ? ngx_cpymem(p, "true", 4)
                                        : ngx_cpymem(p, "false", 5);
        break;
    }

    v->len = p - v->data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


/*
 * One line of a log, whatever came of the request.  Of all that is in it only
 * the correlation id is a client's text; NGINX takes no method but of capital
 * letters, '-' and '_'.
 */

static ngx_int_t
ngx_http_ron_vars_line(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char               *p;
    size_t                escape;
    ngx_str_t            *addr;
    ngx_uint_t            status;
    ngx_http_ron_line_t   line;

    status = r->err_status ? r->err_status : r->headers_out.status;
    addr = &r->connection->addr_text;

    ngx_http_ron_line(r, &line);

    escape = ngx_http_ron_vars_escape(&line.corr_id);

    p = ngx_pnalloc(r->pool, NGX_HTTP_RON_LINE_ROOM + line.service.len
                             + line.reason.len + line.corr_id.len + escape
                             + line.route.len + r->method_name.len
                             + addr->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    v->data = p;

    p = ngx_http_ron_line_put(p, "{\"ts\":\"");
    p = ngx_http_ron_vars_time(p);

    p = status < 400 ? ngx_http_ron_line_put(p, "\",\"level\":\"info")
        : status < 500 ? ngx_http_ron_line_put(p, "\",\"level\":\"warn")
                       : ngx_http_ron_line_put(p, "\",\"level\":\"error");

    p = ngx_http_ron_line_put(p, "\",\"service\":\"");
    p = ngx_http_ron_line_str(p, line.service);

    p = ngx_http_ron_line_put(p, "\",\"event\":\"request\",\"reason\":\"");
    p = ngx_http_ron_line_str(p, line.reason);

    p = ngx_http_ron_line_put(p, "\",\"corr_id\":\"");
    p = escape ? (u_char *) ngx_escape_json(p, line.corr_id.data,
                                            line.corr_id.len)
               : ngx_http_ron_line_str(p, line.corr_id);

    p = ngx_http_ron_line_put(p, "\",\"route\":\"");
    p = ngx_http_ron_line_str(p, line.route);

    p = ngx_http_ron_line_put(p, "\",\"method\":\"");
    p = ngx_http_ron_line_str(p, r->method_name);

    p = ngx_http_ron_line_put(p, "\",\"status\":");
    p = ngx_http_ron_vars_number(p, status);

    p = ngx_http_ron_line_put(p, ",\"latency_ms\":");
    p = ngx_http_ron_vars_number(p, ngx_http_ron_vars_ms(r));

    p = ngx_http_ron_line_put(p, ",\"peer_addr\":\"");
    p = ngx_http_ron_line_str(p, *addr);

    p = ngx_http_ron_vars_amnesia()
        ? ngx_http_ron_line_put(p, "\",\"amnesia\":true}")
        : ngx_http_ron_line_put(p, "\",\"amnesia\":false}");

    v->len = p - v->data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


/* What a request does not have is NULL, which memcpy() may not be given. */

static u_char *
ngx_http_ron_line_str(u_char *p, ngx_str_t s)
{
    return s.len != 0 ? ngx_cpymem(p, s.data, s.len) : p;
}


/*
 * What JSON adds to a correlation id, which is visible ASCII whoever made it:
 * most have nothing to escape, and the search for that is long.
 */

static size_t
ngx_http_ron_vars_escape(ngx_str_t *id)
{
    if (id->len == 0
        || (memchr(id->data, '"', id->len) == NULL
            && memchr(id->data, '\\', id->len) == NULL))
    {
        return 0;
    }

    return ngx_escape_json(NULL, id->data, id->len);
}


static ngx_uint_t
ngx_http_ron_vars_ms(ngx_http_request_t *r)
{
    ngx_time_t      *tp;
    ngx_msec_int_t   ms;

    tp = ngx_timeofday();
    ms = (ngx_msec_int_t) ((tp->sec - r->start_sec) * 1000
                           + (tp->msec - r->start_msec));

    return ngx_max(ms, 0);
}


static ngx_uint_t
ngx_http_ron_vars_amnesia(void)
{
    ngx_ron_conf_t  *rcf;

    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);

    return rcf->url.len && rcf->dir.len == 0;
}


static u_char *
ngx_http_ron_vars_number(u_char *p, uint64_t n)
{
    char    text[RON_AMOUNT_MAX];
    size_t  len;

    /* a status, and most latencies */

    if (n < 1000) {
        if (n >= 100) {
            *p++ = (u_char) ('0' + n / 100);
        }

        if (n >= 10) {
            *p++ = (u_char) ('0' + n / 10 % 10);
        }

        *p++ = (u_char) ('0' + n % 10);
        return p;
    }

    len = ron_amount_print(n, text);

    return ngx_cpymem(p, text, len);
}


/* NGINX's own are in local time. */

static u_char *
ngx_http_ron_vars_time(u_char *p)
{
    ngx_tm_t       tm;
    ngx_time_t    *tp;

    /* a line has it, and there are many lines a second */

    static time_t  sec;
    static u_char  text[sizeof("1970-09-28T12:00:00.")];

    tp = ngx_timeofday();

    if (tp->sec != sec) {
        sec = tp->sec;
        ngx_gmtime(sec, &tm);

        (void) ngx_snprintf(text, sizeof(text),
                            "%4d-%02d-%02dT%02d:%02d:%02d.",
                            tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                            tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec);
    }

    p = ngx_cpymem(p, text, sizeof(text) - 1);
    *p++ = (u_char) ('0' + tp->msec / 100);
    *p++ = (u_char) ('0' + tp->msec / 10 % 10);
    *p++ = (u_char) ('0' + tp->msec % 10);
    *p++ = 'Z';

    return p;
}
