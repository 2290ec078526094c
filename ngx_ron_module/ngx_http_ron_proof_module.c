
/*
 * Inclusion proofs.  Each worker has a cache of the tree (ron_nodes.h): a
 * proof that is all in it is answered at once, in the tree of the newest
 * commit that the zone tells of; what is missing is read in a thread, and is
 * there for the next one.
 *
 *     ron_proof_cache 8m;
 */

#include "ngx_http_ron.h"


#define NGX_HTTP_RON_PROOF_MIN  (256 * 1024)


typedef struct {
    size_t  cache;                      /* of each worker; 0: none */
} ngx_http_ron_proof_conf_t;


static ngx_int_t ngx_http_ron_proof_cached(ngx_http_request_t *r,
    uint64_t seq, uint64_t size);
static ron_status_t ngx_http_ron_proof_work(ngx_http_ron_task_t *task);
static ron_nodes_t *ngx_http_ron_proof_create(size_t ram,
    ron_digest_t digest);
static void *ngx_http_ron_proof_create_conf(ngx_conf_t *cf);
static char *ngx_http_ron_proof_init_conf(ngx_conf_t *cf, void *conf);


static ngx_command_t  ngx_http_ron_proof_commands[] = {

    { ngx_string("ron_proof_cache"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_proof_conf_t, cache),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_ron_proof_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_ron_proof_create_conf,        /* create main configuration */
    ngx_http_ron_proof_init_conf,          /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_ron_proof_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_proof_module_ctx,        /* module context */
    ngx_http_ron_proof_commands,           /* module directives */
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
 * A worker's, made by the thread of its first proof: what hash a ledger has
 * is known when somebody reads it.
 */

static ron_nodes_t * volatile  ngx_http_ron_proof_nodes;


ngx_int_t
ngx_http_ron_proof_inclusion(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t              seq, size;
    ngx_int_t             rc;
    ngx_http_ron_task_t  *task;

    ngx_http_ron_proof_conf_t  *pcf;

    if (ngx_http_ron_arg_u64(ctx, "seq", 0, &seq) != NGX_OK || seq == 0) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "not a sequence number", "seq");
    }

    if (ngx_http_ron_arg_u64(ctx, "size", 0, &size) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED, "not a number",
                                   "size");
    }

    pcf = ngx_http_get_module_main_conf(r, ngx_http_ron_proof_module);

    rc = ngx_http_ron_proof_cached(r, seq, size);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_proof_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    task->a = seq;
    task->b = size;
    task->c = pcf->cache;

    return ngx_http_ron_task_post(r, task);
}


/* What the zone says of the head is durable; later commits are not needed. */

static ngx_int_t
ngx_http_ron_proof_cached(ngx_http_request_t *r, uint64_t seq, uint64_t size)
{
    ron_buf_t    *buf;
    ron_beat_t    beat;
    ron_hash_t    leaf, root;
    ron_zone_t   *zone;
    ron_proof_t   proof;

    zone = ngx_http_ron_zone(r);

    if (ngx_http_ron_proof_nodes == NULL || zone == NULL
        || ron_zone_beat_read(zone, &beat) != RON_OK || beat.generation == 0)
    {
        return NGX_DECLINED;
    }

    size = size ? size : beat.seq;

    if (size > beat.seq || seq > size
        || ron_nodes_inclusion(ngx_http_ron_proof_nodes, seq - 1, size, NULL,
                               NULL, &leaf, &root, &proof)
           != RON_OK)
    {
        return NGX_DECLINED;
    }

    buf = ngx_http_ron_scratch();

    if (ron_api_inclusion_put(buf, seq, size, &leaf, &root, &proof)
        != RON_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_json(r, NGX_HTTP_OK, buf);
}


static ron_status_t
ngx_http_ron_proof_work(ngx_http_ron_task_t *task)
{
    ron_nodes_t   *nodes;
    ron_status_t   rc;
    ron_digest_t   digest;

    digest = ron_store_meta(task->store)->digest;
    nodes = task->c ? ngx_http_ron_proof_create(task->c, digest) : NULL;

    if (nodes) {
        rc = ron_api_inclusion_cached(task->reader, nodes, digest,
                                      task->a, task->b, &task->out);
    } else {
        rc = ron_api_inclusion(task->reader, digest, task->a, task->b,
                               &task->out);
    }

    return ngx_http_ron_ledger_range(task, rc);
}


/* In a thread; another one may do the same at this instant. */

static ron_nodes_t *
ngx_http_ron_proof_create(size_t ram, ron_digest_t digest)
{
    ron_nodes_t  *nodes;

    if (ngx_http_ron_proof_nodes != NULL
        || ron_nodes_create(digest, ram, &nodes) != RON_OK)
    {
        return ngx_http_ron_proof_nodes;
    }

    if (!ngx_atomic_cmp_set((ngx_atomic_t *) &ngx_http_ron_proof_nodes, 0,
                            (ngx_atomic_uint_t) nodes))
    {
        ron_nodes_free(nodes);
    }

    return ngx_http_ron_proof_nodes;
}


static void *
ngx_http_ron_proof_create_conf(ngx_conf_t *cf)
{
    ngx_http_ron_proof_conf_t  *pcf;

    pcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_proof_conf_t));
    if (pcf == NULL) {
        return NULL;
    }

    pcf->cache = NGX_CONF_UNSET_SIZE;

    return pcf;
}


static char *
ngx_http_ron_proof_init_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_ron_proof_conf_t *pcf = conf;

    ngx_conf_init_size_value(pcf->cache, 8 * 1024 * 1024);

    if (pcf->cache && pcf->cache < NGX_HTTP_RON_PROOF_MIN) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"ron_proof_cache\" must be 0 or at least 256k");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
