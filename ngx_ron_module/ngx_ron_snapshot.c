
/*
 * ron_snapshot_dir: where POST /ledger/admin/snapshot puts its copies, and
 * the thread of the helper that makes them.
 *
 * The directory holds what the ledger holds, so it is made with mode 0700 for
 * the worker user, and one that others may enter is refused.
 */

#include "ngx_ron.h"

#include <sys/stat.h>
#include <sys/statvfs.h>


#define NGX_RON_SNAPSHOT_MAX    8
#define NGX_RON_SNAPSHOT_SPARE  (16 * 1024 * 1024)


typedef struct {
    ngx_str_t     dir;
    ngx_uint_t    max;
    ngx_path_t   *path;
    u_char       *file;
    ngx_uint_t    line;
} ngx_ron_snapshot_conf_t;


static void *ngx_ron_snapshot_create_conf(ngx_cycle_t *cycle);
static char *ngx_ron_snapshot_init_conf(ngx_cycle_t *cycle, void *conf);
static ngx_int_t ngx_ron_snapshot_check(ngx_cycle_t *cycle,
    ngx_ron_snapshot_conf_t *scf);
static ngx_int_t ngx_ron_snapshot_path(ngx_cycle_t *cycle,
    ngx_ron_snapshot_conf_t *scf);
static char *ngx_ron_snapshot_dir(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static bool ngx_ron_snapshot_room(void *ctx, const char *ledger,
    const char *copy);
static uint64_t ngx_ron_snapshot_size(const char *dir);


static ngx_command_t  ngx_ron_snapshot_commands[] = {

    { ngx_string("ron_snapshot_dir"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE12,
      ngx_ron_snapshot_dir,
      0,
      0,
      NULL },

      ngx_null_command
};


static ngx_core_module_t  ngx_ron_snapshot_module_ctx = {
    ngx_string("ron_snapshot"),
    ngx_ron_snapshot_create_conf,
    ngx_ron_snapshot_init_conf
};


ngx_module_t  ngx_ron_snapshot_module = {
    NGX_MODULE_V1,
    &ngx_ron_snapshot_module_ctx,          /* module context */
    ngx_ron_snapshot_commands,             /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/* the helper's */

static ron_snapshot_thread_t  *ngx_ron_snapshot_thread;


ron_snapshot_thread_t *
ngx_ron_snapshot_start(ngx_cycle_t *cycle)
{
    ron_status_t                 rc;
    ngx_ron_conf_t              *rcf;
    ngx_ron_snapshot_conf_t     *scf;
    ron_snapshot_thread_conf_t   conf;

    rcf = ngx_ron_get_conf(cycle);
    scf = (ngx_ron_snapshot_conf_t *) ngx_get_conf(cycle->conf_ctx,
                                                   ngx_ron_snapshot_module);

    if (scf->dir.len == 0 || ngx_ron_snapshot_thread) {
        return ngx_ron_snapshot_thread;
    }

    ngx_memzero(&conf, sizeof(ron_snapshot_thread_conf_t));

    conf.store.url = (char *) rcf->url.data;
    conf.store.digest = rcf->digest;
    conf.dir = (char *) scf->dir.data;
    conf.signer = rcf->signer;
    conf.max = scf->max;
    conf.room = ngx_ron_snapshot_room;

    rc = ron_snapshot_thread_start(&conf, &ngx_ron_snapshot_thread);

    if (rc != RON_OK) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                      "ron: no snapshots: %s",
                      ron_status_name(rc));
        ngx_ron_snapshot_thread = NULL;
    }

    return ngx_ron_snapshot_thread;
}


void
ngx_ron_snapshot_tick(void)
{
    if (ngx_ron_snapshot_thread) {
        ron_snapshot_thread_tick(ngx_ron_snapshot_thread);
    }
}


ngx_int_t
ngx_ron_snapshot_stop(ngx_msec_t timeout)
{
    if (ngx_ron_snapshot_thread == NULL) {
        return NGX_OK;
    }

    return ron_snapshot_thread_stop(ngx_ron_snapshot_thread, timeout)
           == RON_OK ? NGX_OK : NGX_AGAIN;
}


/* On the thread of snapshots: no call of NGINX's. */

static bool
ngx_ron_snapshot_room(void *ctx, const char *ledger, const char *copy)
{
    char            parent[NGX_MAX_PATH];
    uint64_t        need, have;
    struct statvfs  fs;

    need = ngx_ron_snapshot_size(ledger) + NGX_RON_SNAPSHOT_SPARE;
    have = ngx_ron_snapshot_size(copy);
    need -= ngx_min(need, have);

    (void) snprintf(parent, sizeof(parent), "%s/..", copy);

    /* the copy may not be there yet; what cannot be asked is tried */

    if (statvfs(copy, &fs) == -1 && statvfs(parent, &fs) == -1) {
        *strrchr(parent, '/') = '\0';
        *strrchr(parent, '/') = '\0';

        if (statvfs(parent, &fs) == -1) {
            return true;
        }
    }

    return (uint64_t) fs.f_bavail * fs.f_frsize >= need;
}


static uint64_t
ngx_ron_snapshot_size(const char *dir)
{
    char         path[NGX_MAX_PATH];
    struct stat  st;

    (void) snprintf(path, sizeof(path), "%s/ledger.db", dir);

    return stat(path, &st) == 0 ? (uint64_t) st.st_size : 0;
}


static void *
ngx_ron_snapshot_create_conf(ngx_cycle_t *cycle)
{
    return ngx_pcalloc(cycle->pool, sizeof(ngx_ron_snapshot_conf_t));
}


static char *
ngx_ron_snapshot_dir(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_ron_snapshot_conf_t *scf = conf;

    ngx_int_t   n;
    ngx_str_t  *value;

    if (scf->dir.len) {
        return "is duplicate";
    }

    value = cf->args->elts;

    scf->max = NGX_RON_SNAPSHOT_MAX;

    if (cf->args->nelts == 3) {

        n = ngx_strncmp(value[2].data, "max=", 4) == 0
            ? ngx_atoi(value[2].data + 4, value[2].len - 4) : NGX_ERROR;

        if (n < 1 || n > 1000) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\", it must be "
                               "max=1 to max=1000", &value[2]);
            return NGX_CONF_ERROR;
        }

        scf->max = n;
    }

    scf->dir = value[1];

    if (scf->dir.len && scf->dir.data[scf->dir.len - 1] == '/') {
        scf->dir.data[--scf->dir.len] = '\0';
    }

    if (ngx_conf_full_name(cf->cycle, &scf->dir, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    scf->file = cf->conf_file->file.name.data;
    scf->line = cf->conf_file->line;

    return NGX_CONF_OK;
}


static char *
ngx_ron_snapshot_init_conf(ngx_cycle_t *cycle, void *conf)
{
    ngx_ron_snapshot_conf_t *scf = conf;

    ngx_ron_conf_t  *rcf;

    if (scf->dir.len == 0) {
        return NGX_CONF_OK;
    }

    rcf = ngx_ron_get_conf(cycle);

    if (rcf->dir.len == 0) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"ron_snapshot_dir\" needs \"ron_ledger sqlite:...\": "
                      "a ledger in memory must not reach a disk");
        return NGX_CONF_ERROR;
    }

    if (rcf->dir.len == scf->dir.len
        && ngx_strncmp(rcf->dir.data, scf->dir.data, scf->dir.len) == 0)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"ron_snapshot_dir\" is the directory of the ledger "
                      "itself, it must be another one");
        return NGX_CONF_ERROR;
    }

    if (ngx_ron_snapshot_check(cycle, scf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_test_config) {
        return NGX_CONF_OK;
    }

    return ngx_ron_snapshot_path(cycle, scf) == NGX_OK ? NGX_CONF_OK
                                                       : NGX_CONF_ERROR;
}


static ngx_int_t
ngx_ron_snapshot_check(ngx_cycle_t *cycle, ngx_ron_snapshot_conf_t *scf)
{
    ngx_file_info_t  fi;

    if (ngx_ron_check_enter(cycle, &scf->dir) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_file_info(scf->dir.data, &fi) == NGX_FILE_ERROR) {

        if (ngx_errno == NGX_ENOENT) {
            return NGX_OK;
        }

        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      ngx_file_info_n " \"%V\" failed", &scf->dir);
        return NGX_ERROR;
    }

    if (!ngx_is_dir(&fi)) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"%V\" is not a directory", &scf->dir);
        return NGX_ERROR;
    }

    if (ngx_file_access(&fi) & 077) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "directory \"%V\" is open to others (mode 0%ui%ui%ui), "
                      "it must be 0700", &scf->dir, ngx_ron_mode(&fi));
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* NGINX makes it, for the worker user. */

static ngx_int_t
ngx_ron_snapshot_path(ngx_cycle_t *cycle, ngx_ron_snapshot_conf_t *scf)
{
    ngx_conf_t  cf;

    scf->path = ngx_pcalloc(cycle->pool, sizeof(ngx_path_t));
    if (scf->path == NULL) {
        return NGX_ERROR;
    }

    scf->path->name = scf->dir;
    scf->path->conf_file = scf->file;
    scf->path->line = scf->line;

    ngx_memzero(&cf, sizeof(ngx_conf_t));
    cf.cycle = cycle;
    cf.pool = cycle->pool;
    cf.log = cycle->log;

    return ngx_add_path(&cf, &scf->path);
}
