
#include "ngx_http_ron_remote.h"

#if (NGX_THREADS)
#include <ngx_thread_pool.h>
#endif


#define NGX_HTTP_RON_FILE_MAX  (64 * 1024)


static void *ngx_http_ron_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_ron_init_main_conf(ngx_conf_t *cf, void *conf);
static char *ngx_http_ron_init_keys(ngx_conf_t *cf,
    ngx_http_ron_main_conf_t *rmcf, ngx_ron_conf_t *rcf);
static void *ngx_http_ron_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_ron_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_ron_set_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_ron_set_file(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_ron_set_assets(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_ron_add_zone(ngx_conf_t *cf, ngx_str_t *name,
    size_t size);
static ngx_int_t ngx_http_ron_init_zone(ngx_shm_zone_t *zone, void *data);
static void ngx_http_ron_free_keys(void *data);
static ngx_int_t ngx_http_ron_add_variables(ngx_conf_t *cf);
static ngx_int_t ngx_http_ron_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_ron_init(ngx_conf_t *cf);


#define ngx_http_ron_text(dim, id, text)  ngx_string(text),

static ngx_str_t  ngx_http_ron_route_names[] = {
    RON_DIM_ROUTE(ngx_http_ron_text)
};


static ngx_conf_enum_t  ngx_http_ron_nonces[] = {
    { ngx_string("increasing"), 0 },
    { ngx_string("strict"), 1 },
    { ngx_null_string, 0 }
};


static ngx_conf_num_bounds_t  ngx_http_ron_token_bounds = {
    ngx_conf_check_num_bounds, 0, 65536
};


static ngx_command_t  ngx_http_ron_commands[] = {

    { ngx_string("ron_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE2,
      ngx_http_ron_set_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_keys"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_ron_set_file,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_main_conf_t, keys_file),
      NULL },

    { ngx_string("ron_revoked"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_ron_set_file,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_main_conf_t, revoked_file),
      NULL },

    { ngx_string("ron_token_cache"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_main_conf_t, token_cache),
      &ngx_http_ron_token_bounds },

    { ngx_string("ron_asset"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_ron_set_assets,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_body_max"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_ron_loc_conf_t, body_max),
      NULL },

    { ngx_string("ron_ledger_stream_max"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_ron_loc_conf_t, stream_max),
      NULL },

    { ngx_string("ron_deadline"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_ron_loc_conf_t, deadline),
      NULL },

    { ngx_string("ron_errors"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_ron_loc_conf_t, errors),
      NULL },

    { ngx_string("ron_wallet_nonce"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_ron_loc_conf_t, nonce),
      &ngx_http_ron_nonces },

    { ngx_string("ron_tenant"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_ron_loc_conf_t, tenant),
      NULL },

      ngx_null_command
};


#define NGX_HTTP_RON_VAR_ROUTE    0
#define NGX_HTTP_RON_VAR_SERVICE  1
#define NGX_HTTP_RON_VAR_REASON   2
#define NGX_HTTP_RON_VAR_CORR_ID  3

static ngx_http_variable_t  ngx_http_ron_variables[] = {

    { ngx_string("ron_route"), NULL, ngx_http_ron_variable,
      NGX_HTTP_RON_VAR_ROUTE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_service"), NULL, ngx_http_ron_variable,
      NGX_HTTP_RON_VAR_SERVICE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_reason"), NULL, ngx_http_ron_variable,
      NGX_HTTP_RON_VAR_REASON, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("ron_corr_id"), NULL, ngx_http_ron_variable,
      NGX_HTTP_RON_VAR_CORR_ID, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


static ngx_http_module_t  ngx_http_ron_module_ctx = {
    ngx_http_ron_add_variables,            /* preconfiguration */
    ngx_http_ron_init,                     /* postconfiguration */

    ngx_http_ron_create_main_conf,         /* create main configuration */
    ngx_http_ron_init_main_conf,           /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_ron_create_loc_conf,          /* create location configuration */
    ngx_http_ron_merge_loc_conf            /* merge location configuration */
};


ngx_module_t  ngx_http_ron_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_module_ctx,              /* module context */
    ngx_http_ron_commands,                 /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_ron_burst_init,               /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


char *
ngx_http_ron_set_service(ngx_conf_t *cf, ngx_http_ron_service_t *service)
{
    ngx_http_ron_loc_conf_t   *rlcf;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_ron_main_conf_t  *rmcf;

    rlcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_ron_module);
    rmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_ron_module);
    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (rlcf->service) {
        return "has another ron service in its location";
    }

#if (NGX_PCRE)
    if (clcf->regex) {
        return "cannot be in a location with a regular expression";
    }
#endif

    if (clcf->named || clcf->name.len == 0) {
        return "must be in a location with a prefix or an exact path";
    }

    rlcf->service = service;
    clcf->handler = ngx_http_ron_handler;

    if (service->svc) {
        rmcf->has_api = 1;
    }

    return NGX_CONF_OK;
}


static void *
ngx_http_ron_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_ron_main_conf_t  *rmcf;

    rmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_main_conf_t));
    if (rmcf == NULL) {
        return NULL;
    }

    rmcf->limits = ngx_http_ron_memory(cf->pool, sizeof(ron_api_limits_t));
    if (rmcf->limits == NULL) {
        return NULL;
    }

    ron_api_limits_init(rmcf->limits);

    rmcf->token_cache = NGX_CONF_UNSET_UINT;

    return rmcf;
}


static char *
ngx_http_ron_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_ron_main_conf_t *rmcf = conf;

    ngx_str_t        name;
    ngx_ron_conf_t  *rcf;

    rcf = ngx_ron_get_conf(cf->cycle);

    ngx_conf_init_uint_value(rmcf->token_cache, 1024);

    if (rmcf->keys_file.len
        && ngx_http_ron_init_keys(cf, rmcf, rcf) != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (!rmcf->has_api) {
        return NGX_CONF_OK;
    }

    if (rmcf->ring == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "a ron service needs capability keys, and there is "
                      "no \"ron_keys\"");
        return NGX_CONF_ERROR;
    }

    if (rmcf->zone == NULL) {
        ngx_str_set(&name, "ron");

        if (ngx_http_ron_add_zone(cf, &name, 64 * 1024 * 1024) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

#if (NGX_THREADS)
    rmcf->thread_pool = ngx_thread_pool_add(cf, NULL);

    if (rmcf->thread_pool == NULL) {
        return NGX_CONF_ERROR;
    }
#else
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "a ron service needs an nginx with threads");
    return NGX_CONF_ERROR;
#endif

    return NGX_CONF_OK;
}


static char *
ngx_http_ron_init_keys(ngx_conf_t *cf, ngx_http_ron_main_conf_t *rmcf,
    ngx_ron_conf_t *rcf)
{
    ron_str_t             root;
    ngx_str_t             text;
    ron_status_t          rc;
    ngx_pool_cleanup_t   *cln;
    ron_keyring_error_t   err;

    if (ngx_http_ron_read_secret(cf, &rmcf->keys_file, 1, &text) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    rmcf->ring = ngx_pcalloc(cf->pool, sizeof(ron_keyring_t));

    if (cln == NULL || rmcf->ring == NULL) {
        return NGX_CONF_ERROR;
    }

    rc = ron_keyring_parse(ngx_ron_str(&text), rmcf->ring, &err);

    ngx_explicit_memzero(text.data, text.len);

    if (rc != RON_OK) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%s in %V:%uz",
                      err.reason, &rmcf->keys_file, err.line);
        return NGX_CONF_ERROR;
    }

    cln->handler = ngx_http_ron_free_keys;
    cln->data = rmcf;

    /* workers prove to the helper that they know the first key */

    root.data = rmcf->ring->keys[0].secret;
    root.len = RON_KEY_LEN;

    if (ron_auth_derive(root, &rcf->auth_key) != RON_OK) {
        return NGX_CONF_ERROR;
    }

    rcf->has_auth_key = 1;

    if (rmcf->revoked_file.len == 0) {
        return NGX_CONF_OK;
    }

    if (ngx_http_ron_read_secret(cf, &rmcf->revoked_file, 0, &text)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ron_revoked_parse(ngx_ron_str(&text), &rmcf->revoked, &err)
        != RON_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%s in %V:%uz",
                      err.reason, &rmcf->revoked_file, err.line);
        return NGX_CONF_ERROR;
    }

    rmcf->ring->revoked = &rmcf->revoked;

    return NGX_CONF_OK;
}


static void
ngx_http_ron_free_keys(void *data)
{
    ngx_http_ron_main_conf_t  *rmcf = data;

    ron_keyring_wipe(rmcf->ring);
    ron_revoked_free(&rmcf->revoked);
}


ngx_int_t
ngx_http_ron_read_secret(ngx_conf_t *cf, ngx_str_t *name, ngx_uint_t secret,
    ngx_str_t *text)
{
    off_t             size;
    ssize_t           n;
    ngx_fd_t          fd;
    ngx_int_t         rc;
    ngx_file_info_t   fi;

    rc = NGX_ERROR;

    fd = ngx_open_file(name->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, ngx_errno,
                      ngx_open_file_n " \"%V\" failed", name);
        return NGX_ERROR;
    }

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, ngx_errno,
                      ngx_fd_info_n " \"%V\" failed", name);
        goto done;
    }

    if (secret && (ngx_file_access(&fi) & 077)) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%V\" holds secrets and is open to others (mode "
                      "0%ui%ui%ui), it must be 0600", name, ngx_ron_mode(&fi));
        goto done;
    }

    size = ngx_file_size(&fi);

    if (secret && size > NGX_HTTP_RON_FILE_MAX) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "\"%V\" is too large", name);
        goto done;
    }

    text->data = ngx_pnalloc(cf->pool, size + 1);
    if (text->data == NULL) {
        goto done;
    }

    n = ngx_read_fd(fd, text->data, size);

    if (n != size) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, n == -1 ? ngx_errno : 0,
                      ngx_read_fd_n " \"%V\" failed", name);
        goto done;
    }

    text->len = size;
    rc = NGX_OK;

done:

    if (ngx_close_file(fd) == NGX_FILE_ERROR) {
        ngx_log_error(NGX_LOG_ALERT, cf->log, ngx_errno,
                      ngx_close_file_n " \"%V\" failed", name);
    }

    return rc;
}


static void *
ngx_http_ron_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_ron_loc_conf_t  *rlcf;

    rlcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_loc_conf_t));
    if (rlcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     rlcf->service = NULL;
     *     rlcf->tenant = { 0, NULL };
     */

    rlcf->body_max = NGX_CONF_UNSET_SIZE;
    rlcf->stream_max = NGX_CONF_UNSET_SIZE;
    rlcf->deadline = NGX_CONF_UNSET_MSEC;
    rlcf->errors = NGX_CONF_UNSET;
    rlcf->nonce = NGX_CONF_UNSET_UINT;

    return rlcf;
}


static char *
ngx_http_ron_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_ron_loc_conf_t *prev = parent;
    ngx_http_ron_loc_conf_t *conf = child;

    ngx_ron_conf_t            *rcf;
    ngx_http_core_loc_conf_t  *clcf;

    ngx_conf_merge_size_value(conf->body_max, prev->body_max, 1024 * 1024);
    ngx_conf_merge_size_value(conf->stream_max, prev->stream_max,
                              1024 * 1024);
    ngx_conf_merge_msec_value(conf->deadline, prev->deadline,
                              ron_timeout_info(RON_TIMEOUT_REQUEST)->ms);
    ngx_conf_merge_uint_value(conf->nonce, prev->nonce, 0);
    ngx_conf_merge_str_value(conf->tenant, prev->tenant, "");

    if (conf->body_max < 1024 || conf->body_max > RON_JSON_LEN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"ron_body_max\" must be from 1k to 1m");
        return NGX_CONF_ERROR;
    }

    if (conf->deadline < 1 || conf->deadline > NGX_RON_DEADLINE_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"ron_deadline\" must be from 1ms to 60s");
        return NGX_CONF_ERROR;
    }

    rcf = ngx_ron_get_conf(cf->cycle);
    rcf->deadline_max = ngx_max(rcf->deadline_max, conf->deadline);

    if (conf->service == NULL) {
        ngx_conf_merge_value(conf->errors, prev->errors, 0);
        return NGX_CONF_OK;
    }

    if (conf->service->svc && !ngx_http_ron_remote_has_ledger(cf)) {
        ngx_ron_get_conf(cf->cycle)->has_api = 1;
    }

    /* on, whatever was said further out */

    ngx_conf_init_value(conf->errors, 1);

    /* the core has merged its own already: http modules go in order */

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    clcf->client_max_body_size = conf->body_max;

    if (conf->service->svc == RON_CAP_SVC_LEDGER) {

        /* lines may be more: what is not lines is measured when it is read */

        clcf->client_max_body_size =
            conf->stream_max ? ngx_max(conf->stream_max, conf->body_max) : 0;

        clcf->client_body_buffer_size =
            ngx_max(clcf->client_body_buffer_size, 64 * 1024);
    }

    clcf->client_body_in_file_only = 0;

    return NGX_CONF_OK;
}


static char *
ngx_http_ron_set_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_ron_main_conf_t *rmcf = conf;

    ssize_t     size;
    ngx_str_t  *value;

    if (rmcf->zone) {
        return "is duplicate";
    }

    value = cf->args->elts;
    size = ngx_parse_size(&value[2]);

    if (size == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid zone size \"%V\"", &value[2]);
        return NGX_CONF_ERROR;
    }

    if (size < (ssize_t) (16 * 1024 * 1024)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" is too small, at least 16m is needed",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    if (value[1].len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid zone name \"\"");
        return NGX_CONF_ERROR;
    }

    if (ngx_http_ron_add_zone(cf, &value[1], size) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_ron_add_zone(ngx_conf_t *cf, ngx_str_t *name, size_t size)
{
    ngx_http_ron_main_conf_t  *rmcf;

    rmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_ron_module);

    rmcf->zone = ngx_shared_memory_add(cf, name, size, &ngx_http_ron_module);
    if (rmcf->zone == NULL) {
        return NGX_ERROR;
    }

    rmcf->zone->init = ngx_http_ron_init_zone;
    rmcf->zone->data = ngx_pcalloc(cf->pool, sizeof(ron_zone_t));

    if (rmcf->zone->data == NULL) {
        return NGX_ERROR;
    }

    ngx_ron_get_conf(cf->cycle)->cache_zone = rmcf->zone;

    return NGX_OK;
}


static ngx_int_t
ngx_http_ron_init_zone(ngx_shm_zone_t *zone, void *data)
{
    size_t         len;
    u_char        *region;
    ron_status_t   rc;

    region = ngx_http_ron_region(zone, data, &len);

    rc = region == NULL ? RON_ENOMEM
         : data != NULL ? ron_zone_adopt(region, len, zone->data)
                        : ron_zone_init(region, len, zone->data);

    return ngx_http_ron_region_done(zone, data, region, rc);
}


u_char *
ngx_http_ron_region(ngx_shm_zone_t *zone, void *data, size_t *len)
{
    u_char           *region;
    ngx_slab_pool_t  *shpool;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    if (data != NULL) {
        region = shpool->data;
        *len = region ? shpool->end - region : 0;
        *len -= *len % ngx_pagesize;

        return region;
    }

    *len = shpool->pfree * ngx_pagesize;

    return ngx_slab_alloc(shpool, *len);
}


ngx_int_t
ngx_http_ron_region_done(ngx_shm_zone_t *zone, void *data, u_char *region,
    ron_status_t rc)
{
    ngx_slab_pool_t  *shpool;

    if (rc != RON_OK) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                      data ? "zone \"%V\" is of another version, nginx must "
                             "be restarted"
                           : "zone \"%V\" is too small", &zone->shm.name);
        return NGX_ERROR;
    }

    /* a zone that is adopted is not written: the reload may still fail */

    if (data == NULL) {
        shpool = (ngx_slab_pool_t *) zone->shm.addr;
        shpool->data = region;
    }

    return NGX_OK;
}


static char *
ngx_http_ron_set_file(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char *p = conf;

    ngx_str_t  *field, *value;

    field = (ngx_str_t *) (p + cmd->offset);

    if (field->data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    *field = value[1];

    if (ngx_conf_full_name(cf->cycle, field, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_ron_set_assets(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_ron_main_conf_t *rmcf = conf;

    ron_str_t    s;
    ngx_str_t   *value;
    ngx_uint_t   i, n;

    value = cf->args->elts;

    if (!rmcf->has_assets) {
        rmcf->has_assets = 1;
        rmcf->limits->asset_n = 0;
    }

    for (i = 1; i < cf->args->nelts; i++) {
        s = ngx_ron_str(&value[i]);

        if (!ron_asset_valid(s)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid asset \"%V\"", &value[i]);
            return NGX_CONF_ERROR;
        }

        for (n = 0; n < rmcf->limits->asset_n; n++) {
            if (ron_str_eq(rmcf->limits->asset[n], s)) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "duplicate asset \"%V\"", &value[i]);
                return NGX_CONF_ERROR;
            }
        }

        if (n == RON_API_ASSETS_MAX) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "too many assets, at most %d are possible",
                               RON_API_ASSETS_MAX);
            return NGX_CONF_ERROR;
        }

        rmcf->limits->asset[rmcf->limits->asset_n++] = s;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_ron_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_ron_variables; v->name.len; v++) {
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
ngx_http_ron_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t            *field;
    ngx_http_ron_line_t   line;

    ngx_http_ron_line(r, &line);

    switch (data) {

    case NGX_HTTP_RON_VAR_ROUTE:
        field = &line.route;
        break;

    case NGX_HTTP_RON_VAR_SERVICE:
        field = &line.service;
        break;

    case NGX_HTTP_RON_VAR_REASON:
        field = &line.reason;
        break;

    default: /* NGX_HTTP_RON_VAR_CORR_ID */
        field = &line.corr_id;
        break;
    }

    if (field->data == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->data = field->data;
    v->len = field->len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


void
ngx_http_ron_line(ngx_http_request_t *r, ngx_http_ron_line_t *line)
{
    ngx_http_ron_ctx_t       *ctx;
    ngx_http_ron_loc_conf_t  *rlcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);
    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    ngx_memzero(line, sizeof(ngx_http_ron_line_t));

    if (ctx && ctx->route) {
        line->route = ngx_http_ron_route_names[ctx->route->metric];

    } else if (rlcf->service) {
        ngx_str_set(&line->route, "other");
    }

    if (rlcf->service) {
        line->service = rlcf->service->name;
    }

    if (ctx && ctx->reason != RON_REASON_OK) {
        line->reason.data = (u_char *) ngx_http_ron_reason_name(ctx->reason);
        line->reason.len = ngx_strlen(line->reason.data);
    }

    if (ctx) {
        line->corr_id = ctx->corr_id;
    }
}


static ngx_int_t
ngx_http_ron_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_ACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_ron_access_handler;

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_LOG_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_ron_log_handler;

    return NGX_OK;
}
