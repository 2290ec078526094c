
/*
 * Variables for an access log of one JSON object a line, in UTC:
 *
 *     $ron_time        2026-11-18T15:04:05.678Z, when the line is written
 *     $ron_level       info, warn (4xx) or error (5xx)
 *     $ron_latency_ms  since the first byte of the request, with microseconds
 *                      cut off
 *     $ron_status      as $status, and always a number: 0 and not 000
 *     $ron_amnesia     true when the ledger leaves no trace on a disk
 *
 * Those of the request itself (route, service, reason, correlation id) are in
 * ngx_http_ron_module.c.
 */

#include "ngx_http_ron.h"


#define NGX_HTTP_RON_VAR_TIME     0
#define NGX_HTTP_RON_VAR_LEVEL    1
#define NGX_HTTP_RON_VAR_LATENCY  2
#define NGX_HTTP_RON_VAR_STATUS   3
#define NGX_HTTP_RON_VAR_AMNESIA  4


static ngx_int_t ngx_http_ron_vars_add(ngx_conf_t *cf);
static ngx_int_t ngx_http_ron_vars_get(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static u_char *ngx_http_ron_vars_time(u_char *p);


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

      ngx_http_null_variable
};


static ngx_http_module_t  ngx_http_ron_vars_module_ctx = {
    ngx_http_ron_vars_add,                 /* preconfiguration */
    NULL,                                  /* postconfiguration */

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
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_ron_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_ron_vars_get(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char          *p;
    ngx_time_t      *tp;
    ngx_uint_t       status;
    ngx_msec_int_t   ms;
    ngx_ron_conf_t  *rcf;

    p = ngx_pnalloc(r->pool, sizeof("1970-09-28T12:00:00.000Z"));
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
        tp = ngx_timeofday();
        ms = (ngx_msec_int_t) ((tp->sec - r->start_sec) * 1000
                               + (tp->msec - r->start_msec));
        p = ngx_sprintf(p, "%M", (ngx_msec_t) ngx_max(ms, 0));
        break;

    case NGX_HTTP_RON_VAR_STATUS:
        if (status < 100) {
            p = ngx_sprintf(p, "%ui", status);
            break;
        }

        *p++ = (u_char) ('0' + status / 100 % 10);
        *p++ = (u_char) ('0' + status / 10 % 10);
        *p++ = (u_char) ('0' + status % 10);
        break;

    default: /* NGX_HTTP_RON_VAR_AMNESIA */
        rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);
        p = rcf->url.len && rcf->dir.len == 0 ? ngx_cpymem(p, "true", 4)
                                              : ngx_cpymem(p, "false", 5);
        break;
    }

    v->len = p - v->data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
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
