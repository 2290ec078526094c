
#include "ngx_ron.h"
#include "ngx_ron_lock.h"
#include "ron_digest.h"
#include "ron_history.h"
#include "ron_port.h"

#include <sys/fsuid.h>


#define NGX_RON_MAGIC  0x726f6e31

/* The helper binds a name of its own first: this, its pid and ".tmp". */
#define NGX_RON_SOCKET_MAX  (sizeof(((struct sockaddr_un *) 0)->sun_path)     \
                             - sizeof(".4194304.tmp"))


static void *ngx_ron_create_conf(ngx_cycle_t *cycle);
static char *ngx_ron_init_conf(ngx_cycle_t *cycle, void *conf);
static char *ngx_ron_ledger(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *ngx_ron_set_socket(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_ron_set_cpu_affinity(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_ron_set_queue(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static void ngx_ron_init_defaults(ngx_ron_conf_t *rcf);
static ngx_int_t ngx_ron_init_reload(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf);
static ngx_int_t ngx_ron_init_dir(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf);
static ngx_int_t ngx_ron_init_socket(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf);
static ngx_int_t ngx_ron_init_path(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf);
static ngx_int_t ngx_ron_init_zones(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf);
static ngx_int_t ngx_ron_init_state_zone(ngx_shm_zone_t *zone, void *data);
static ngx_int_t ngx_ron_init_memory_zone(ngx_shm_zone_t *zone, void *data);
static ngx_int_t ngx_ron_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_ron_init_process(ngx_cycle_t *cycle);
static void ngx_ron_exit_process(ngx_cycle_t *cycle);


/* the master's, and what a worker was forked with */

static ngx_msec_t  ngx_ron_deadline;


static ngx_conf_num_bounds_t  ngx_ron_queue_bounds = {
    ngx_conf_check_num_bounds, 1, 1000000
};

static ngx_conf_num_bounds_t  ngx_ron_restart_bounds = {
    ngx_conf_check_num_bounds, 1, NGX_RON_RESTARTS - 1
};

static ngx_conf_num_bounds_t  ngx_ron_history_bounds = {
    ngx_conf_check_num_bounds, 1, 100
};

static ngx_conf_num_bounds_t  ngx_ron_batch_bounds = {
    ngx_conf_check_num_bounds, 1, RON_UNIT_OPS_MAX
};


static ngx_command_t  ngx_ron_commands[] = {

    { ngx_string("ron_ledger"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE12,
      ngx_ron_ledger,
      0,
      0,
      NULL },

    { ngx_string("ron_socket"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_ron_set_socket,
      0,
      0,
      NULL },

    { ngx_string("ron_helper_cpu_affinity"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_ron_set_cpu_affinity,
      0,
      0,
      NULL },

    { ngx_string("ron_origin"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      0,
      offsetof(ngx_ron_conf_t, origin),
      NULL },

    { ngx_string("ron_signing_key"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      0,
      offsetof(ngx_ron_conf_t, signing_key),
      NULL },

    { ngx_string("ron_signing_key_old"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      0,
      offsetof(ngx_ron_conf_t, signing_key_old),
      NULL },

    { ngx_string("ron_queue"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_1MORE,
      ngx_ron_set_queue,
      0,
      0,
      NULL },

    { ngx_string("ron_batch"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      0,
      offsetof(ngx_ron_conf_t, batch_ops),
      &ngx_ron_batch_bounds },

    { ngx_string("ron_checkpoint"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      0,
      offsetof(ngx_ron_conf_t, checkpoint_entries),
      NULL },

    { ngx_string("ron_tag_memory"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      0,
      offsetof(ngx_ron_conf_t, tag_memory),
      NULL },

    { ngx_string("ron_key_memory"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      0,
      offsetof(ngx_ron_conf_t, key_memory),
      NULL },

    { ngx_string("ron_history_cache"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      0,
      offsetof(ngx_ron_conf_t, history_cache),
      NULL },

    { ngx_string("ron_history_share"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      0,
      offsetof(ngx_ron_conf_t, history_share),
      &ngx_ron_history_bounds },

    { ngx_string("ron_key_ttl"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_ron_conf_t, key_ttl),
      NULL },

    { ngx_string("ron_drain_deadline"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_ron_conf_t, drain_deadline),
      NULL },

    { ngx_string("ron_clock_step"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_ron_conf_t, clock_step),
      NULL },

    { ngx_string("ron_metrics_tick"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_ron_conf_t, metrics_tick),
      NULL },

    { ngx_string("ron_committer_lag_max"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_ron_conf_t, committer_lag),
      NULL },

    { ngx_string("ron_commit_delay"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      0,
      offsetof(ngx_ron_conf_t, commit_delay),
      NULL },

    { ngx_string("ron_restart_limit"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      0,
      offsetof(ngx_ron_conf_t, restart_limit),
      &ngx_ron_restart_bounds },

      ngx_null_command
};


static ngx_core_module_t  ngx_ron_module_ctx = {
    ngx_string("ron"),
    ngx_ron_create_conf,
    ngx_ron_init_conf
};


ngx_module_t  ngx_ron_module = {
    NGX_MODULE_V1,
    &ngx_ron_module_ctx,                   /* module context */
    ngx_ron_commands,                      /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_ron_init_module,                   /* init module */
    ngx_ron_init_process,                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_ron_exit_process,                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


ngx_ron_ident_t  ngx_ron_ident = { { NULL, NULL, NULL }, -1 };


static struct {
    ngx_str_t  name;
    size_t     offset;
} ngx_ron_queues[] = {
    { ngx_string("ingress"), offsetof(ngx_ron_conf_t, queue_ingress) },
    { ngx_string("preval"), offsetof(ngx_ron_conf_t, queue_preval) },
    { ngx_string("commit"), offsetof(ngx_ron_conf_t, queue_commit) },
    { ngx_string("work"), offsetof(ngx_ron_conf_t, queue_work) },
    { ngx_string("parse"), offsetof(ngx_ron_conf_t, queue_parse) },
    { ngx_string("proofs"), offsetof(ngx_ron_conf_t, queue_proofs) },
    { ngx_null_string, 0 }
};


ngx_ron_conf_t *
ngx_ron_get_conf(ngx_cycle_t *cycle)
{
    return (ngx_ron_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_ron_module);
}


ngx_ron_sh_t *
ngx_ron_shared(ngx_cycle_t *cycle)
{
    ngx_ron_conf_t  *rcf;

    rcf = ngx_ron_get_conf(cycle);

    return rcf->state_zone ? rcf->state_zone->data : NULL;
}


ngx_msec_t
ngx_ron_deadline_max(void)
{
    ngx_ron_sh_t  *sh;

    sh = ngx_ron_shared((ngx_cycle_t *) ngx_cycle);

    if (sh != NULL) {
        return sh->deadline_max;
    }

    /* there is no ledger: who was forked before does not know what came */

    return ngx_exiting ? NGX_RON_DEADLINE_MAX : ngx_ron_deadline;
}


size_t
ngx_ron_memory_len(ngx_ron_conf_t *rcf)
{
    return rcf->memory;
}


uint64_t
ngx_ron_now(void)
{
    return ron_clock_mono_us() / 1000;
}


static void *
ngx_ron_create_conf(ngx_cycle_t *cycle)
{
    ngx_ron_conf_t  *rcf;

    rcf = ngx_pcalloc(cycle->pool, sizeof(ngx_ron_conf_t));
    if (rcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     rcf->url = { 0, NULL };
     *     rcf->dir = { 0, NULL };
     *     rcf->memory = 0;
     *     rcf->digest = RON_DIGEST_BLAKE3;
     *     rcf->socket = { 0, NULL };
     *     rcf->origin = { 0, NULL };
     *     rcf->signing_key, rcf->signing_key_old = { 0, NULL };
     *     rcf->path, rcf->state_zone, rcf->memory_zone = NULL;
     *     rcf->signer, rcf->signer_old = NULL;
     *     rcf->cpus = empty, rcf->cpus_n = 0;
     *     rcf->has_auth_key, rcf->has_api = 0;
     */

    rcf->drain_deadline = NGX_CONF_UNSET_MSEC;
    rcf->clock_step = NGX_CONF_UNSET_MSEC;
    rcf->metrics_tick = NGX_CONF_UNSET_MSEC;
    rcf->committer_lag = NGX_CONF_UNSET_MSEC;
    rcf->commit_delay = NGX_CONF_UNSET_MSEC;
    rcf->restart_limit = NGX_CONF_UNSET_UINT;
    rcf->queue_ingress = NGX_CONF_UNSET_UINT;
    rcf->queue_preval = NGX_CONF_UNSET_UINT;
    rcf->queue_commit = NGX_CONF_UNSET_UINT;
    rcf->queue_work = NGX_CONF_UNSET_UINT;
    rcf->queue_parse = NGX_CONF_UNSET_UINT;
    rcf->queue_proofs = NGX_CONF_UNSET_UINT;
    rcf->batch_ops = NGX_CONF_UNSET_UINT;
    rcf->checkpoint_entries = NGX_CONF_UNSET_UINT;
    rcf->tag_memory = NGX_CONF_UNSET_SIZE;
    rcf->key_memory = NGX_CONF_UNSET_SIZE;
    rcf->history_cache = NGX_CONF_UNSET_SIZE;
    rcf->history_share = NGX_CONF_UNSET_UINT;
    rcf->key_ttl = NGX_CONF_UNSET_MSEC;

    return rcf;
}


static char *
ngx_ron_ledger(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_ron_conf_t  *rcf = conf;

    ssize_t     size;
    ngx_str_t  *value, s;

    value = cf->args->elts;

    if (rcf->url.len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "a second \"ron_ledger\" \"%V\", one nginx has "
                           "one ledger and it is \"%V\": remove one of "
                           "them, or use another nginx and "
                           "\"ron_wallet_ledger_pass\"",
                           &value[1], &rcf->url);
        return NGX_CONF_ERROR;
    }

    s = value[1];

    if (s.len > 7 && ngx_strncmp(s.data, "sqlite:", 7) == 0) {

        rcf->dir.data = s.data + 7;
        rcf->dir.len = s.len - 7;

        if (ngx_conf_full_name(cf->cycle, &rcf->dir, 0) != NGX_OK) {
            return NGX_CONF_ERROR;
        }

        while (rcf->dir.len > 1 && rcf->dir.data[rcf->dir.len - 1] == '/') {
            rcf->dir.data[--rcf->dir.len] = '\0';
        }

        rcf->url.len = rcf->dir.len + 7;
        rcf->url.data = ngx_pnalloc(cf->pool, rcf->url.len + 1);
        if (rcf->url.data == NULL) {
            return NGX_CONF_ERROR;
        }

        ngx_sprintf(rcf->url.data, "sqlite:%V%Z", &rcf->dir);

    } else if (s.len > 7 && ngx_strncmp(s.data, "memory:", 7) == 0) {

        s.data += 7;
        s.len -= 7;

        size = ngx_parse_size(&s);

        if (size < (ssize_t) (1024 * 1024)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid size of a ledger in memory \"%V\", "
                               "at least 1m is needed", &s);
            return NGX_CONF_ERROR;
        }

        rcf->memory = size;
        rcf->url = value[1];

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid ledger \"%V\", it must be "
                           "\"sqlite:<directory>\" or \"memory:<size>\"",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    if (cf->args->nelts == 3) {

        s = value[2];

        if (s.len <= 5 || ngx_strncmp(s.data, "hash=", 5) != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\"", &value[2]);
            return NGX_CONF_ERROR;
        }

        s.data += 5;
        s.len -= 5;

        if (ron_digest_parse(ngx_ron_str(&s), &rcf->digest) != RON_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid hash \"%V\", it must be \"blake3\" "
                               "or \"sha256\"", &s);
            return NGX_CONF_ERROR;
        }
    }

    rcf->file = cf->conf_file->file.name.data;
    rcf->line = cf->conf_file->line;

    return NGX_CONF_OK;
}


static char *
ngx_ron_set_socket(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_ron_conf_t  *rcf = conf;

    ngx_str_t  *value;

    if (rcf->socket.len) {
        return "is duplicate";
    }

    value = cf->args->elts;
    rcf->socket = value[1];

    if (rcf->socket.len == 0) {
        return "is empty";
    }

    if (rcf->socket.data[0] != '@'
        && ngx_conf_full_name(cf->cycle, &rcf->socket, 0) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* A mask as those of worker_cpu_affinity: the last digit is processor 0. */

static char *
ngx_ron_set_cpu_affinity(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
#if (NGX_HAVE_CPU_AFFINITY)

    ngx_ron_conf_t  *rcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   cpu;

    if (rcf->cpus_n) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (value[1].len > CPU_SETSIZE) {
        return "has too many processors";
    }

    for (cpu = 0; cpu < value[1].len; cpu++) {

        switch (value[1].data[value[1].len - 1 - cpu]) {

        case '0':
            break;

        case '1':
            CPU_SET(cpu, &rcf->cpus);
            rcf->cpus_n++;
            break;

        default:
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid mask \"%V\", it must be digits 0 and "
                               "1, the last one for processor 0", &value[1]);
            return NGX_CONF_ERROR;
        }
    }

    if (rcf->cpus_n == 0) {
        return "has no processor";
    }

#else

    ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                       "\"%V\" is not supported on this platform, ignored",
                       &cmd->name);
#endif

    return NGX_CONF_OK;
}


static char *
ngx_ron_set_queue(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_ron_conf_t  *rcf = conf;

    char        *rv;
    ngx_int_t    n;
    ngx_str_t   *value, s;
    ngx_uint_t   i, q, *queue;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        for (q = 0; ngx_ron_queues[q].name.len; q++) {
            s = ngx_ron_queues[q].name;

            if (value[i].len > s.len + 1
                && ngx_strncmp(value[i].data, s.data, s.len) == 0
                && value[i].data[s.len] == '=')
            {
                break;
            }
        }

        if (ngx_ron_queues[q].name.len == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\", the queues are "
                               "ingress, preval, commit, work, parse and "
                               "proofs",
                               &value[i]);
            return NGX_CONF_ERROR;
        }

        queue = (ngx_uint_t *) ((u_char *) rcf + ngx_ron_queues[q].offset);

        if (*queue != NGX_CONF_UNSET_UINT) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate queue \"%V\"", &s);
            return NGX_CONF_ERROR;
        }

        n = ngx_atoi(value[i].data + s.len + 1, value[i].len - s.len - 1);

        if (n == NGX_ERROR) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid number in \"%V\"", &value[i]);
            return NGX_CONF_ERROR;
        }

        rv = ngx_conf_check_num_bounds(cf, &ngx_ron_queue_bounds, &n);
        if (rv != NGX_CONF_OK) {
            return rv;
        }

        *queue = n;
    }

    return NGX_CONF_OK;
}


/*
 * Runs when the whole file has been read, http{} too, and before NGINX makes
 * directories and shared memory.  Under "nginx -t" nothing is added that
 * NGINX would make.
 */

static char *
ngx_ron_init_conf(ngx_cycle_t *cycle, void *conf)
{
    ngx_ron_conf_t  *rcf = conf;

    ngx_core_conf_t  *ccf;

    ngx_ron_init_defaults(rcf);

    if (rcf->key_ttl < 60000 || rcf->key_ttl > 72 * 3600000) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"ron_key_ttl\" must be from 1m to 72h");
        return NGX_CONF_ERROR;
    }

    /* the helper beats every 50 ms */

    if (rcf->committer_lag < 100) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"ron_committer_lag_max\" must be at least 100ms");
        return NGX_CONF_ERROR;
    }

    if (rcf->commit_delay > 60000) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"ron_commit_delay\" must be at most 60s");
        return NGX_CONF_ERROR;
    }

    if (rcf->commit_delay) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "\"ron_commit_delay\" is for tests: the committer "
                      "waits %M ms after each batch", rcf->commit_delay);
    }

    if (rcf->drain_deadline < 1000 || rcf->drain_deadline > 5000) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"ron_drain_deadline\" must be from 1s to 5s");
        return NGX_CONF_ERROR;
    }

    if (rcf->url.len == 0) {

        if (rcf->has_api) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "a \"ron\" location needs a ledger, and there is "
                          "no \"ron_ledger\" in the main context; a wallet "
                          "may have \"ron_wallet_ledger_pass\" instead");
            return NGX_CONF_ERROR;
        }

        return ngx_ron_init_reload(cycle, rcf) == NGX_OK ? NGX_CONF_OK
                                                         : NGX_CONF_ERROR;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    /* core modules are initialised in order: this one may be still unset */

    if (ccf->master == 0) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"ron_ledger\" cannot work with \"master_process "
                      "off\": the ledger lives in a helper process of the "
                      "master; remove one of them");
        return NGX_CONF_ERROR;
    }

    if (ngx_ron_init_reload(cycle, rcf) != NGX_OK
        || ngx_ron_init_dir(cycle, rcf) != NGX_OK
        || ngx_ron_init_socket(cycle, rcf) != NGX_OK
        || ngx_ron_init_signer(cycle, rcf) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_test_config) {
        return NGX_CONF_OK;
    }

    /* without keys nobody has to know the socket's key but our processes */

    if (!rcf->has_auth_key
        && ron_random(&rcf->auth_key, sizeof(ron_auth_key_t)) != RON_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "no random bytes");
        return NGX_CONF_ERROR;
    }

    if (ngx_ron_init_path(cycle, rcf) != NGX_OK
        || ngx_ron_init_zones(cycle, rcf) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    ngx_ron_listen_clean(cycle);

    return NGX_CONF_OK;
}


static void
ngx_ron_init_defaults(ngx_ron_conf_t *rcf)
{
    ngx_conf_init_msec_value(rcf->drain_deadline,
                             ron_timeout_info(RON_TIMEOUT_DRAIN)->ms);
    ngx_conf_init_msec_value(rcf->clock_step, 5000);
    ngx_conf_init_msec_value(rcf->metrics_tick,
                             ron_timeout_info(RON_TIMEOUT_METRICS_TICK)->ms);
    ngx_conf_init_msec_value(rcf->committer_lag, 1000);
    ngx_conf_init_msec_value(rcf->commit_delay, 0);
    ngx_conf_init_uint_value(rcf->restart_limit, 5);
    ngx_conf_init_uint_value(rcf->queue_ingress,
                             ron_queue_info(RON_QUEUE_INGRESS)->capacity);
    ngx_conf_init_uint_value(rcf->queue_preval,
                             ron_queue_info(RON_QUEUE_PREVAL)->capacity);
    ngx_conf_init_uint_value(rcf->queue_commit,
                             ron_queue_info(RON_QUEUE_COMMIT)->capacity);
    ngx_conf_init_uint_value(rcf->queue_work,
                             ron_queue_info(RON_QUEUE_WALLET_WORK)->capacity);
    ngx_conf_init_uint_value(rcf->queue_parse,
                             ron_queue_info(RON_QUEUE_PARSE)->capacity);
    ngx_conf_init_uint_value(rcf->queue_proofs,
                             ron_queue_info(RON_QUEUE_PROOFS)->capacity);
    ngx_conf_init_uint_value(rcf->batch_ops, 1024);
    ngx_conf_init_uint_value(rcf->checkpoint_entries, 100000);
    ngx_conf_init_size_value(rcf->tag_memory, 64 * 1024 * 1024);
    ngx_conf_init_size_value(rcf->key_memory, 64 * 1024 * 1024);
    ngx_conf_init_size_value(rcf->history_cache, ron_history_usual.cache);
    ngx_conf_init_uint_value(rcf->history_share, ron_history_usual.share);
    ngx_conf_init_msec_value(rcf->key_ttl,
                             ron_timeout_info(RON_TIMEOUT_IDEM_TTL)->ms);
}


/*
 * Workers of the old configuration go on with the ledger that they know, and
 * a ledger in memory would be gone with its zone.
 */

static ngx_int_t
ngx_ron_init_reload(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf)
{
    ngx_ron_conf_t  *old;

    if (cycle->old_cycle == NULL || ngx_is_init_cycle(cycle->old_cycle)
        || ngx_ron_module.index >= ngx_max_module
        || cycle->old_cycle->conf_ctx[ngx_ron_module.index] == NULL)
    {
        return NGX_OK;
    }

    old = ngx_ron_get_conf(cycle->old_cycle);

    if (old->url.len == 0) {
        return NGX_OK;
    }

    if (old->url.len == rcf->url.len
        && ngx_strncmp(old->url.data, rcf->url.data, rcf->url.len) == 0)
    {
        /*
         * Old workers send what they have under way to the new helper, also
         * when the keys have changed: the socket's key lives as long as the
         * master.
         */

        rcf->auth_key = old->auth_key;
        rcf->has_auth_key = 1;

        return NGX_OK;
    }

    if (rcf->url.len == 0) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"ron_ledger %V\" cannot be removed by a reload, nginx "
                      "must be restarted", &old->url);
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                  "\"ron_ledger\" cannot change from \"%V\" to \"%V\" by a "
                  "reload, nginx must be restarted", &old->url, &rcf->url);

    return NGX_ERROR;
}


static ngx_int_t
ngx_ron_init_dir(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf)
{
    ngx_file_info_t  fi;

    if (rcf->dir.len == 0) {
        return NGX_OK;
    }

    if (ngx_ron_check_enter(cycle, &rcf->dir) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_file_info(rcf->dir.data, &fi) == NGX_FILE_ERROR) {

        if (ngx_errno == NGX_ENOENT) {
            return NGX_OK;
        }

        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      ngx_file_info_n " \"%s\" failed", rcf->dir.data);
        return NGX_ERROR;
    }

    if (!ngx_is_dir(&fi)) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "the ledger \"%V\" is not a directory", &rcf->dir);
        return NGX_ERROR;
    }

    if (ngx_file_access(&fi) & 077) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "the ledger's directory \"%V\" is open to others "
                      "(mode 0%ui%ui%ui), it must be 0700",
                      &rcf->dir, ngx_ron_mode(&fi));
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Root gets everywhere, and the helper, which could not, would say so once a
 * second and serve nobody.  So the master looks with the worker user's rights,
 * groups too: the kernel knows of lists and mounts that a mode does not show.
 */

ngx_int_t
ngx_ron_check_enter(ngx_cycle_t *cycle, ngx_str_t *dir)
{
    int               n;
    gid_t            *groups;
    ngx_err_t         err;
    ngx_uint_t        taken;
    ngx_file_info_t   fi;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (geteuid() != 0 || ccf->username == NULL) {
        return NGX_OK;
    }

    n = ngx_max(getgroups(0, NULL), 0);

    groups = ngx_palloc(cycle->pool, (n + 1) * sizeof(gid_t));
    if (groups == NULL) {
        return NGX_ERROR;
    }

    /* who may not take groups has none as a worker either */

    taken = getgroups(n, groups) == n
            && initgroups(ccf->username, ccf->group) == 0;

    (void) setfsgid(ccf->group);
    (void) setfsuid(ccf->user);

    err = ngx_file_info(dir->data, &fi) == NGX_FILE_ERROR ? ngx_errno : 0;

    (void) setfsuid(geteuid());
    (void) setfsgid(getegid());

    if (taken && setgroups(n, groups) == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "setgroups() failed");
        return NGX_ERROR;
    }

    if (err == NGX_EACCES) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "the worker user %s cannot enter \"%V\": choose "
                      "another directory, or open those above it (chmod o+x)",
                      ccf->username, dir);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_ron_init_socket(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf)
{
    u_char  *p;

    if (rcf->socket.len == 0) {

        p = ngx_pnalloc(cycle->pool, rcf->dir.len + sizeof("/ledger.sock")
                                     + sizeof("@ngx_ron-00000000"));
        if (p == NULL) {
            return NGX_ERROR;
        }

        rcf->socket.data = p;

        if (rcf->dir.len) {
            p = ngx_sprintf(p, "%V/ledger.sock%Z", &rcf->dir);

        } else {
            /* two servers have two configuration files */
            p = ngx_sprintf(p, "@ngx_ron-%08xD%Z",
                            ngx_crc32_short(cycle->conf_file.data,
                                            cycle->conf_file.len));
        }

        rcf->socket.len = p - rcf->socket.data - 1;
    }

    if (rcf->socket.len > NGX_RON_SOCKET_MAX) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "the socket's path \"%V\" is too long, at most %uz "
                      "bytes are possible: set \"ron_socket\"",
                      &rcf->socket, (size_t) NGX_RON_SOCKET_MAX);
        return NGX_ERROR;
    }

    if (rcf->dir.len == 0 && rcf->socket.data[0] != '@') {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "a ledger in memory needs an abstract \"ron_socket\", "
                      "\"%V\" does not begin with \"@\"", &rcf->socket);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * A path with a manager is what makes the master fork a helper.  A ledger in
 * memory has no directory, so it takes a path that is there anyway and has no
 * manager: any temporary path of http{}.
 */

static ngx_int_t
ngx_ron_init_path(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf)
{
    ngx_uint_t     i;
    ngx_conf_t     cf;
    ngx_path_t   **path;

    if (rcf->dir.len == 0) {

        path = cycle->paths.elts;

        for (i = 0; i < cycle->paths.nelts; i++) {
            if (path[i]->manager == NULL && path[i]->loader == NULL) {
                path[i]->manager = ngx_ron_helper_manager;
                rcf->path = path[i];

                return NGX_OK;
            }
        }

        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "a ledger in memory needs an \"http\" block");
        return NGX_ERROR;
    }

    rcf->path = ngx_pcalloc(cycle->pool, sizeof(ngx_path_t));
    if (rcf->path == NULL) {
        return NGX_ERROR;
    }

    rcf->path->name = rcf->dir;
    rcf->path->manager = ngx_ron_helper_manager;
    rcf->path->data = rcf;
    rcf->path->conf_file = rcf->file;
    rcf->path->line = rcf->line;

    ngx_memzero(&cf, sizeof(ngx_conf_t));
    cf.cycle = cycle;
    cf.pool = cycle->pool;
    cf.log = cycle->log;

    return ngx_add_path(&cf, &rcf->path);
}


static ngx_int_t
ngx_ron_init_zones(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf)
{
    ngx_str_t   name;
    ngx_conf_t  cf;

    ngx_memzero(&cf, sizeof(ngx_conf_t));
    cf.cycle = cycle;
    cf.pool = cycle->pool;
    cf.log = cycle->log;

    ngx_str_set(&name, "ngx_ron_state");

    rcf->state_zone = ngx_shared_memory_add(&cf, &name, 8 * ngx_pagesize,
                                            &ngx_ron_module);
    if (rcf->state_zone == NULL) {
        return NGX_ERROR;
    }

    rcf->state_zone->init = ngx_ron_init_state_zone;

    if (rcf->memory == 0) {
        return NGX_OK;
    }

    ngx_str_set(&name, "ngx_ron_journal");

    /* the slab allocator keeps a little for each page, and for itself */

    rcf->memory_zone = ngx_shared_memory_add(&cf, &name,
                                             rcf->memory + rcf->memory / 64
                                             + 16 * ngx_pagesize,
                                             &ngx_ron_module);
    if (rcf->memory_zone == NULL) {
        return NGX_ERROR;
    }

    rcf->memory_zone->init = ngx_ron_init_memory_zone;
    rcf->memory_zone->data = rcf;

    return NGX_OK;
}


/* An adopted zone is looked at and not written: the reload may still fail. */

static ngx_int_t
ngx_ron_init_state_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_ron_sh_t     *sh;
    ngx_slab_pool_t  *shpool;

    sh = data;

    if (sh != NULL && sh->magic == NGX_RON_MAGIC
        && sh->size == sizeof(ngx_ron_sh_t))
    {
        zone->data = sh;
        return NGX_OK;
    }

    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    sh = ngx_slab_calloc(shpool, sizeof(ngx_ron_sh_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    sh->magic = NGX_RON_MAGIC;
    sh->size = sizeof(ngx_ron_sh_t);
    sh->helper_clean = 1;

    zone->data = sh;

    return NGX_OK;
}


static ngx_int_t
ngx_ron_init_memory_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_ron_conf_t   *rcf;
    ngx_slab_pool_t  *shpool;

    if (data != NULL) {
        zone->data = data;
        return NGX_OK;
    }

    /* from here on the zone's data is the journal itself */

    rcf = zone->data;
    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    zone->data = ngx_slab_alloc(shpool, rcf->memory);

    return zone->data ? NGX_OK : NGX_ERROR;
}


/* Nothing here may fail: the configuration has been taken. */

static ngx_int_t
ngx_ron_init_module(ngx_cycle_t *cycle)
{
    ngx_ron_sh_t    *sh;
    ngx_ron_conf_t  *rcf;

    if (ngx_test_config) {
        return NGX_OK;
    }

    rcf = ngx_ron_get_conf(cycle);
    sh = ngx_ron_shared(cycle);

    ngx_ron_deadline = ngx_max(ngx_ron_deadline, rcf->deadline_max);

    if (sh != NULL) {
        rcf->generation = ngx_atomic_fetch_add(&sh->generation, 1) + 1;
        sh->deadline_max = ngx_max(sh->deadline_max, rcf->deadline_max);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_ron_init_process(ngx_cycle_t *cycle)
{
    ngx_ron_conf_t  *rcf;

    rcf = ngx_ron_get_conf(cycle);

    ngx_ron_lock_init(cycle);

    if (ngx_process != NGX_PROCESS_WORKER) {
        return NGX_OK;
    }

    if (rcf->url.len || rcf->cache_zone) {
        ngx_ron_worker_orphan(cycle);
    }

    if (rcf->url.len == 0) {
        ngx_ron_slot_sweep();
        ngx_ron_slot_claim(cycle);

        return NGX_OK;
    }

    ngx_ron_log_init(cycle->log->log_level);
    ngx_ron_slot_claim(cycle);
    ngx_ron_worker_begins(cycle);

    return ngx_ron_ipc_init_process(cycle);
}


static void
ngx_ron_exit_process(ngx_cycle_t *cycle)
{
    ngx_ron_conf_t  *rcf;

    rcf = ngx_ron_get_conf(cycle);

    if (ngx_process != NGX_PROCESS_WORKER) {
        return;
    }

    if (rcf->url.len == 0) {
        ngx_ron_slot_leave();
        return;
    }

    ngx_ron_ipc_exit_process(cycle);
    ngx_ron_worker_ends(cycle);
    ngx_ron_slot_leave();
    ngx_ron_log_flush(cycle->log);
}
