
#include "ngx_http_ron_limit.h"
#include "ngx_http_ron_remote.h"
#include "ngx_ron_build.h"


#ifdef __clang__
#define NGX_RON_TOOLCHAIN  __VERSION__
#else
#define NGX_RON_TOOLCHAIN  "gcc " __VERSION__
#endif


static ngx_int_t ngx_http_ron_status_live(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static void ngx_http_ron_status_health(ngx_http_request_t *r,
    ron_api_health_t *h);
static ngx_int_t ngx_http_ron_status_ready(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ngx_int_t ngx_http_ron_status_version(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ngx_int_t ngx_http_ron_status_metrics(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static char *ngx_http_ron_status_set_health(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_ron_status_set_version(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_ron_status_set_metrics(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);


#define ngx_http_ron_status_service(name, handler, metric)                    \
    static ngx_http_ron_route_t  ngx_http_ron_##name##_routes[] = {           \
        { ngx_string(""), NGX_HTTP_GET, NGX_HTTP_RON_OPEN, 0, 0, handler,     \
          metric },                                                           \
        { ngx_null_string, 0, 0, 0, 0, NULL, 0 }                              \
    };                                                                        \
                                                                              \
    static ngx_http_ron_service_t  ngx_http_ron_##name##_service = {          \
        ngx_string(#name), 0, RON_D_SERVICE_LEDGER,                           \
        RON_D_ROUTE_LEDGER_OTHER, RON_ADMIT_INGRESS,                          \
        ngx_http_ron_##name##_routes                                          \
    }

ngx_http_ron_status_service(live, ngx_http_ron_status_live,
                            RON_D_ROUTE_LEDGER_HEALTHZ);
ngx_http_ron_status_service(ready, ngx_http_ron_status_ready,
                            RON_D_ROUTE_LEDGER_READYZ);
ngx_http_ron_status_service(version, ngx_http_ron_status_version,
                            RON_D_ROUTE_LEDGER_VERSION);
ngx_http_ron_status_service(metrics, ngx_http_ron_status_metrics,
                            RON_D_ROUTE_LEDGER_METRICS);


static ngx_command_t  ngx_http_ron_status_commands[] = {

    { ngx_string("ron_health"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_ron_status_set_health,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_version"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_ron_status_set_version,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_metrics"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_ron_status_set_metrics,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_ron_status_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_ron_status_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_status_module_ctx,       /* module context */
    ngx_http_ron_status_commands,          /* module directives */
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


static ngx_str_t  ngx_http_ron_type_metrics =
    ngx_string("text/plain; version=0.0.4; charset=utf-8");


static ngx_int_t
ngx_http_ron_status_live(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint16_t           status;
    ron_buf_t         *buf;
    ron_api_health_t   h;

    ngx_http_ron_health(&h);

    buf = ngx_http_ron_scratch();

    if (ron_api_healthz(buf, &h, &status) != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_json(r, status, buf);
}


static void
ngx_http_ron_status_health(ngx_http_request_t *r, ron_api_health_t *h)
{
    ngx_ron_conf_t  *rcf;

    ngx_http_ron_health(h);

    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);
    h->work_capacity = rcf->queue_work;

    if (ngx_ron_zone()) {
        h->work_depth = ron_zone_admitted(ngx_ron_zone(), RON_ADMIT_WORK);
    }

    h->ledger_down = ngx_http_ron_remote_down(r, RON_D_TARGET_LEDGER)
                     || ngx_http_ron_breaker_down(r);
    h->kms_down = ngx_http_ron_remote_down(r, RON_D_TARGET_KMS);
    h->policy_down = ngx_http_ron_remote_down(r, RON_D_TARGET_POLICY);
    h->wallet_down = ngx_http_ron_remote_down(r, RON_D_TARGET_WALLET);
}


static ngx_int_t
ngx_http_ron_status_ready(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint16_t           status;
    ron_buf_t         *buf;
    ron_api_health_t   h;

    ngx_http_ron_status_health(r, &h);

    buf = ngx_http_ron_scratch();

    if (ron_api_readyz(buf, &h, &status) != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_json(r, status, buf);
}


static ngx_int_t
ngx_http_ron_status_version(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_buf_t  *buf;

    buf = ngx_http_ron_scratch();

    ron_buf_put_cstr(buf, "{\"name\":\"ngx_ron\",\"version\":\""
                          NGX_RON_VERSION "\",\"git\":\"" NGX_RON_COMMIT
                          "\",\"toolchain\":\"" NGX_RON_TOOLCHAIN
                          "\",\"nginx\":\"" NGINX_VERSION
                          "\",\"features\":[\"threads\""
#if (NGX_HAVE_INET6)
                          ",\"ipv6\""
#endif
#if (NGX_HTTP_SSL)
                          ",\"ssl\""
#endif
#ifdef RON_LOCK_CHECK
                          ",\"lock_check\""
#endif
                          "],\"entry_format\":");
    ron_buf_printf(buf, "%d", RON_ENTRY_VERSION);
    ron_buf_put_u8(buf, '}');

    return ngx_http_ron_json(r, NGX_HTTP_OK, buf);
}


static ngx_int_t
ngx_http_ron_status_metrics(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_buf_t         *buf;
    ron_zone_t        *zone;
    ron_api_health_t   h;

    zone = ngx_ron_zone();

    if (zone == NULL) {
        return ngx_http_ron_refuse(r, RON_REASON_NOT_FOUND,
                                   "there is no zone", NULL);
    }

    ngx_http_ron_remote_sample(r);
    ngx_http_ron_breaker_sample();

    /* in one place for all workers, as the breakers are */

    ngx_http_ron_status_health(r, &h);
    ron_metric_set(zone, 0, RON_M_WALLET_READY, 0, 0, 0, 0,
                   ron_api_ready(&h));
    ron_metric_set(zone, 0, RON_M_PREVALIDATORS_BUSY, 0, 0, 0, 0,
                   ron_zone_admitted(zone, RON_ADMIT_CHECK));
    ron_metric_set(zone, 0, RON_M_INGRESS_BUSY, 0, 0, 0, 0,
                   ron_zone_admitted(zone, RON_ADMIT_PARSE));

    buf = ngx_http_ron_scratch();

    if (ron_metrics_render(zone, buf) != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_reply(r, NGX_HTTP_OK, &ngx_http_ron_type_metrics,
                              ron_buf_str(buf));
}


static char *
ngx_http_ron_status_set_health(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_str_t  *value;

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "live") == 0) {
        return ngx_http_ron_set_service(cf, &ngx_http_ron_live_service);
    }

    if (ngx_strcmp(value[1].data, "ready") == 0) {
        return ngx_http_ron_set_service(cf, &ngx_http_ron_ready_service);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\", it must be \"live\" or "
                       "\"ready\"", &value[1]);

    return NGX_CONF_ERROR;
}


static char *
ngx_http_ron_status_set_version(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    return ngx_http_ron_set_service(cf, &ngx_http_ron_version_service);
}


static char *
ngx_http_ron_status_set_metrics(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    return ngx_http_ron_set_service(cf, &ngx_http_ron_metrics_service);
}
