
#include "ngx_http_ron_limit.h"
#include "ron_amount.h"
#include "ron_port.h"


#define NGX_HTTP_RON_RATE_MAX   1000000
#define NGX_HTTP_RON_BURST_MAX  10000000


static ngx_int_t ngx_http_ron_limit_header(ngx_http_request_t *r,
    const char *name, uint64_t n);

static void *ngx_http_ron_limit_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_ron_limit_init_main_conf(ngx_conf_t *cf, void *conf);
static char *ngx_http_ron_limit_init_policy(ngx_conf_t *cf,
    ngx_http_ron_limit_main_conf_t *lmcf);
static void ngx_http_ron_limit_free(void *data);
static void *ngx_http_ron_limit_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_ron_limit_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_ron_limit_set_policy(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_ron_limit_set_rate(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_ron_limit_set_wallet(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_ron_limit_set_breaker(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_ron_limit_set_stale(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_ron_limit_set_shards(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_ron_limit_set_inflate(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);


static ngx_command_t  ngx_http_ron_limit_commands[] = {

    { ngx_string("ron_policy"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_ron_limit_set_policy,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_rate"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_ron_limit_set_rate,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_wallet_limit"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_ron_limit_set_wallet,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_wallet_breaker"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_ron_limit_set_breaker,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_wallet_stale"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_ron_limit_set_stale,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_wallet_shards"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_ron_limit_set_shards,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_inflate_max"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_ron_limit_set_inflate,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_ron_limit_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_ron_limit_create_main_conf,   /* create main configuration */
    ngx_http_ron_limit_init_main_conf,     /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_ron_limit_create_loc_conf,    /* create location configuration */
    ngx_http_ron_limit_merge_loc_conf      /* merge location configuration */
};


ngx_module_t  ngx_http_ron_limit_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_limit_module_ctx,        /* module context */
    ngx_http_ron_limit_commands,           /* module directives */
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


/*
 * Buckets are a capability's, in all locations that have the same rate: a
 * bucket is a time, and times of different rates mean different things.
 */

ngx_int_t
ngx_http_ron_limit_rate(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    u_char                          buf[NGX_INT64_LEN * 2 + 8], *p;
    u_char                          name[RON_KEY_KID_MAX + RON_CAP_ID_MAX + 2];
    ron_str_t                       a, b;
    ron_zone_t                     *zone;
    ron_status_t                    rc;
    ron_zone_key_t                  key;
    ron_zone_rate_t                 rate;
    ngx_http_ron_limit_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_limit_module);
    zone = ngx_http_ron_zone(r);

    if (llcf->rate == 0 || zone == NULL || ctx->cap == NULL) {
        return NGX_OK;
    }

    p = ngx_sprintf(buf, "rate %ui %ui", llcf->rate, llcf->burst);
    a.data = buf;
    a.len = p - buf;

    p = ngx_sprintf(name, "%s:%s", ctx->cap->kid, ctx->cap->id);
    b.data = name;
    b.len = p - name;

    ron_zone_key(zone, a, b, &key);

    rc = ron_zone_rate_take(zone, &key, llcf->rate, llcf->burst,
                            ron_clock_mono_us(), &rate);

    if (ngx_http_ron_limit_header(r, "X-RateLimit-Limit", llcf->burst)
            != NGX_OK
        || ngx_http_ron_limit_header(r, "X-RateLimit-Remaining", rate.left)
            != NGX_OK
        || ngx_http_ron_limit_header(r, "X-RateLimit-Reset",
                                     (rate.full_us + 999999) / 1000000)
            != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == RON_OK) {
        return NGX_OK;
    }

    ctx->retry_after = (rate.retry_us + 999999) / 1000000;

    return ngx_http_ron_refuse(r, RON_REASON_BUSY,
                               "more requests a second than this capability "
                               "has", NULL);
}


static ngx_int_t
ngx_http_ron_limit_header(ngx_http_request_t *r, const char *name,
    uint64_t n)
{
    ngx_str_t  value;

    value.data = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%uL", n) - value.data;

    return ngx_http_ron_header(r, name, &value);
}


void
ngx_http_ron_limit_policy(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_api_policy_t *policy)
{
    ngx_http_ron_loc_conf_t         *rlcf;
    ngx_http_ron_limit_main_conf_t  *lmcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);
    lmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_limit_module);

    policy->rules = lmcf->policy;
    policy->tenant = ngx_ron_str(&rlcf->tenant);
    policy->account = ngx_ron_str(&ctx->held_account);
    policy->asset = ngx_ron_str(&ctx->held_asset);
}


ron_status_t
ngx_http_ron_limit_read(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_str_t account, ron_str_t asset, ron_api_error_t *err)
{
    ron_status_t      rc;
    ron_api_policy_t  policy;

    rc = ron_api_allow_read(ctx->cap, account, asset, err);
    if (rc != RON_OK) {
        return rc;
    }

    ngx_http_ron_limit_policy(r, ctx, &policy);

    return ron_api_policy_read(&policy, ctx->cap, RON_CAP_ACT_READ, account,
                               asset, err);
}


static void *
ngx_http_ron_limit_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_ron_limit_main_conf_t  *lmcf;

    lmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_limit_main_conf_t));
    if (lmcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     lmcf->policy_file = { 0, NULL };
     *     lmcf->policy = NULL;
     *     lmcf->inflate_max = 0;
     *     lmcf->wallet_limit = 0;
     */

    ron_breaker_conf_init(&lmcf->breaker);

    lmcf->stale = NGX_CONF_UNSET_MSEC;
    lmcf->shards = NGX_CONF_UNSET_UINT;
    lmcf->inflate_ratio = NGX_CONF_UNSET_UINT;

    return lmcf;
}


static char *
ngx_http_ron_limit_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_ron_limit_main_conf_t *lmcf = conf;

    ngx_conf_init_msec_value(lmcf->stale,
                             ron_timeout_info(RON_TIMEOUT_BALANCE_STALE)->ms);
    ngx_conf_init_uint_value(lmcf->shards, RON_ZONE_SHARDS);
    ngx_conf_init_uint_value(lmcf->inflate_ratio, 10);

    if (lmcf->inflate_max == 0) {
        lmcf->inflate_max = 10 * 1024 * 1024;
    }

    if (lmcf->policy_file.len == 0) {
        return NGX_CONF_OK;
    }

    return ngx_http_ron_limit_init_policy(cf, lmcf);
}


static char *
ngx_http_ron_limit_init_policy(ngx_conf_t *cf,
    ngx_http_ron_limit_main_conf_t *lmcf)
{
    ngx_str_t            text;
    ngx_pool_cleanup_t  *cln;
    ron_policy_error_t   err;

    if (ngx_http_ron_read_secret(cf, &lmcf->policy_file, 0, &text)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ron_policy_parse(ngx_ron_str(&text), &lmcf->policy, &err) != RON_OK) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%s in %V:%uz",
                      err.reason, &lmcf->policy_file, err.line);
        return NGX_CONF_ERROR;
    }

    cln->handler = ngx_http_ron_limit_free;
    cln->data = lmcf->policy;

    return NGX_CONF_OK;
}


static void
ngx_http_ron_limit_free(void *data)
{
    ron_policy_free(data);
}


static void *
ngx_http_ron_limit_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_ron_limit_loc_conf_t  *llcf;

    llcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_limit_loc_conf_t));
    if (llcf == NULL) {
        return NULL;
    }

    llcf->rate = NGX_CONF_UNSET_UINT;
    llcf->burst = NGX_CONF_UNSET_UINT;

    return llcf;
}


static char *
ngx_http_ron_limit_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_ron_limit_loc_conf_t *prev = parent;
    ngx_http_ron_limit_loc_conf_t *conf = child;

    if (conf->rate == NGX_CONF_UNSET_UINT) {
        conf->burst = prev->burst;
    }

    ngx_conf_merge_uint_value(conf->rate, prev->rate, 0);
    ngx_conf_init_uint_value(conf->burst, 0);

    return NGX_CONF_OK;
}


static char *
ngx_http_ron_limit_set_policy(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_ron_limit_main_conf_t *lmcf = conf;

    ngx_str_t  *value;

    if (lmcf->policy_file.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    lmcf->policy_file = value[1];

    if (ngx_conf_full_name(cf->cycle, &lmcf->policy_file, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* "off", or "<n>r/s [burst=<n>]" */

static char *
ngx_http_ron_limit_set_rate(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_ron_limit_loc_conf_t *llcf = conf;

    ngx_int_t   rate, burst;
    ngx_str_t  *value;

    if (llcf->rate != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && value[1].len == 3
        && ngx_strncmp(value[1].data, "off", 3) == 0)
    {
        llcf->rate = 0;
        return NGX_CONF_OK;
    }

    rate = NGX_ERROR;

    if (value[1].len > 3
        && ngx_strncmp(value[1].data + value[1].len - 3, "r/s", 3) == 0)
    {
        rate = ngx_atoi(value[1].data, value[1].len - 3);
    }

    if (rate < 1 || rate > NGX_HTTP_RON_RATE_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid rate \"%V\", it must be \"off\" or from "
                           "1r/s to %dr/s", &value[1], NGX_HTTP_RON_RATE_MAX);
        return NGX_CONF_ERROR;
    }

    burst = rate;

    if (cf->args->nelts == 3) {
        burst = NGX_ERROR;

        if (value[2].len > 6
            && ngx_strncmp(value[2].data, "burst=", 6) == 0)
        {
            burst = ngx_atoi(value[2].data + 6, value[2].len - 6);
        }

        if (burst < 1 || burst > NGX_HTTP_RON_BURST_MAX) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\", it must be "
                               "burst=<n>, from 1 to %d",
                               &value[2], NGX_HTTP_RON_BURST_MAX);
            return NGX_CONF_ERROR;
        }
    }

    llcf->rate = rate;
    llcf->burst = burst;

    return NGX_CONF_OK;
}


static struct {
    ngx_str_t  name;
    size_t     offset;
} ngx_http_ron_limit_amounts[] = {
    { ngx_string("op="), offsetof(ron_api_limits_t, op_max) },
    { ngx_string("daily="), offsetof(ron_api_limits_t, account_daily) },
    { ngx_string("total="), offsetof(ron_api_limits_t, account_total) },
    { ngx_null_string, 0 }
};


static char *
ngx_http_ron_limit_set_wallet(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_ron_limit_main_conf_t *lmcf = conf;

    ron_str_t                  s;
    ngx_str_t                 *value, *name;
    ron_u128_t                 amount, most;
    ngx_uint_t                 i, n, given;
    ron_api_limits_t          *limits, fresh;
    ngx_http_ron_main_conf_t  *rmcf;

    if (lmcf->wallet_limit) {
        return "is duplicate";
    }

    lmcf->wallet_limit = 1;

    rmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_ron_module);
    limits = rmcf->limits;

    ron_api_limits_init(&fresh);
    most = fresh.account_total;
    given = 0;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        for (n = 0; ngx_http_ron_limit_amounts[n].name.len; n++) {
            name = &ngx_http_ron_limit_amounts[n].name;

            if (value[i].len > name->len
                && ngx_strncmp(value[i].data, name->data, name->len) == 0)
            {
                break;
            }
        }

        name = &ngx_http_ron_limit_amounts[n].name;
        s.data = value[i].data + name->len;
        s.len = value[i].len - name->len;

        if (name->len == 0 || (given & 1 << n)
            || ron_amount_parse(s, &amount) != RON_OK || amount == 0
            || amount > most)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\", it must be "
                               "op=<amount>, daily=<amount> or "
                               "total=<amount>, from 1 to 2^128-1-10^9",
                               &value[i]);
            return NGX_CONF_ERROR;
        }

        given |= 1 << n;
        *(ron_u128_t *) ((u_char *) limits
                         + ngx_http_ron_limit_amounts[n].offset) = amount;
    }

    if (limits->account_daily < limits->op_max) {
        return "lets one operation move more than an account may in a day: "
               "\"daily\" must not be less than \"op\"";
    }

    if (limits->account_total < limits->account_daily) {
        return "lets an account move more in a day than it may have: "
               "\"total\" must not be less than \"daily\"";
    }

    return NGX_CONF_OK;
}


static struct {
    ngx_str_t  name;
    size_t     offset;
    ngx_int_t  min;
    ngx_int_t  max;
    ngx_uint_t time;                    /* unsigned  time:1; */
} ngx_http_ron_limit_breaker[] = {
    { ngx_string("errors="), offsetof(ron_breaker_conf_t, errors),
      1, 1000000, 0 },
    { ngx_string("window="), offsetof(ron_breaker_conf_t, window_ms),
      100, 3600000, 1 },
    { ngx_string("open="), offsetof(ron_breaker_conf_t, open_ms),
      100, 3600000, 1 },
    { ngx_string("probes="), offsetof(ron_breaker_conf_t, probes), 1, 63, 0 },
    { ngx_null_string, 0, 0, 0, 0 }
};


static char *
ngx_http_ron_limit_set_breaker(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_ron_limit_main_conf_t *lmcf = conf;

    ngx_int_t    n;
    ngx_str_t   *value, *name, s;
    ngx_uint_t   i, k, given;

    if (lmcf->wallet_breaker) {
        return "is duplicate";
    }

    lmcf->wallet_breaker = 1;
    value = cf->args->elts;
    given = 0;

    for (i = 1; i < cf->args->nelts; i++) {

        for (k = 0; ngx_http_ron_limit_breaker[k].name.len; k++) {
            name = &ngx_http_ron_limit_breaker[k].name;

            if (value[i].len > name->len
                && ngx_strncmp(value[i].data, name->data, name->len) == 0)
            {
                break;
            }
        }

        name = &ngx_http_ron_limit_breaker[k].name;
        s.data = value[i].data + name->len;
        s.len = value[i].len - name->len;

        n = ngx_http_ron_limit_breaker[k].time ? ngx_parse_time(&s, 0)
                                               : ngx_atoi(s.data, s.len);

        if (name->len == 0 || (given & 1 << k)
            || n < ngx_http_ron_limit_breaker[k].min
            || n > ngx_http_ron_limit_breaker[k].max)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\", it must be "
                               "errors=<n>, window=<time>, open=<time> or "
                               "probes=<n, at most 63>", &value[i]);
            return NGX_CONF_ERROR;
        }

        given |= 1 << k;
        *(uint32_t *) ((u_char *) &lmcf->breaker
                       + ngx_http_ron_limit_breaker[k].offset) = n;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_ron_limit_set_stale(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_ron_limit_main_conf_t *lmcf = conf;

    ngx_str_t  *value;
    ngx_int_t   ms;

    if (lmcf->stale != NGX_CONF_UNSET_MSEC) {
        return "is duplicate";
    }

    value = cf->args->elts;
    ms = ngx_parse_time(&value[1], 0);

    if (ms < 10 || ms > 5000) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid time \"%V\", it must be from 10ms to 5s",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    lmcf->stale = ms;

    return NGX_CONF_OK;
}


static char *
ngx_http_ron_limit_set_shards(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_ron_limit_main_conf_t *lmcf = conf;

    ngx_str_t  *value;
    ngx_int_t   n;

    if (lmcf->shards != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;
    n = ngx_atoi(value[1].data, value[1].len);

    if (n < 1 || n > 1024) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number \"%V\", it must be from 1 to 1024",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    lmcf->shards = n;

    return NGX_CONF_OK;
}


/* "<size> [ratio=<n>]" */

static char *
ngx_http_ron_limit_set_inflate(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_ron_limit_main_conf_t *lmcf = conf;

    ssize_t     size;
    ngx_int_t   ratio;
    ngx_str_t  *value;

    if (lmcf->inflate_max) {
        return "is duplicate";
    }

    value = cf->args->elts;
    size = ngx_parse_size(&value[1]);

    if (size < 1024 || size > 10 * 1024 * 1024) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid size \"%V\", it must be from 1k to 10m",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    lmcf->inflate_max = size;

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    ratio = NGX_ERROR;

    if (value[2].len > 6 && ngx_strncmp(value[2].data, "ratio=", 6) == 0) {
        ratio = ngx_atoi(value[2].data + 6, value[2].len - 6);
    }

    if (ratio < 1 || ratio > 1000) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\", it must be ratio=<n>, "
                           "from 1 to 1000", &value[2]);
        return NGX_CONF_ERROR;
    }

    lmcf->inflate_ratio = ratio;

    return NGX_CONF_OK;
}
