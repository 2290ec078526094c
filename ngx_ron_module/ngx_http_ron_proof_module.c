
/*
 * Inclusion proofs.  Each worker has a cache of the tree (ron_nodes.h): a
 * proof that is all in it is answered at once, in the tree of the newest
 * commit that the zone tells of; what is missing is read in a thread, and is
 * there for the next one.
 *
 *     ron_proof_cache 8m;
 *
 * A ledger is larger than any cache, and a thread for each proof costs more
 * than the proof: it is woken, it begins and ends a transaction, it wakes the
 * worker.  So what one turn of the event loop could not answer goes to a
 * thread together, up to a batch; while as many batches are read as there may
 * be, the next ones fill up.
 *
 * A batch is a worker's, and is used again.  What a thread sees of it knows
 * of no request; a client that leaves is taken off by its pool's cleanup.
 */

#include "ngx_http_ron.h"
#include "ron_port.h"
#include "ron_registry.h"

#include <ngx_thread_pool.h>


#define NGX_HTTP_RON_PROOF_MIN      (256 * 1024)

#define NGX_HTTP_RON_PROOF_BATCH    32
#define NGX_HTTP_RON_PROOF_RUNNING  8


typedef struct {
    ngx_http_ron_ctx_t  *ctx;           /* NULL: its client has left */
    ngx_pool_cleanup_t  *cleanup;
    uint64_t             seq;
    uint64_t             size;
    size_t               end;           /* of its text in the batch's */
    ron_status_t         rc;
    ron_api_error_t      err;
    unsigned             there:1;       /* the tree is known to have it */
} ngx_http_ron_proof_item_t;

/*
 * A batch that is read has a reader, which is not a thread's: threads take
 * turns, and each would open one and warm its pages.  The one that was used
 * last is used first.
 */

typedef struct {
    ngx_queue_t                 queue;
    ron_reader_t               *reader;         /* NULL: to be opened */
} ngx_http_ron_proof_slot_t;

typedef struct {
    ngx_queue_t                 queue;
    ngx_thread_task_t           task;
    ngx_ron_conf_t             *conf;
    ron_store_t                *store;
    ngx_http_ron_proof_slot_t  *slot;
    ngx_uint_t                  n;
    ron_buf_t                   one;
    ron_buf_t                   out;
    ngx_http_ron_proof_item_t   items[NGX_HTTP_RON_PROOF_BATCH];
} ngx_http_ron_proof_batch_t;

typedef struct {
    ngx_queue_t                  waiting;   /* batches, the last one fills */
    ngx_queue_t                  unused;
    ngx_queue_t                  slots;     /* those that are free */
    ngx_http_ron_proof_slot_t    slot[NGX_HTTP_RON_PROOF_RUNNING];
    ngx_http_ron_proof_batch_t  *filling;
    ngx_uint_t                   items;     /* in all of them */
    ngx_thread_pool_t           *pool;
    ngx_event_t                  event;
} ngx_http_ron_proof_work_t;


typedef struct {
    size_t  cache;                      /* of each worker; 0: none */
} ngx_http_ron_proof_conf_t;


static ngx_int_t ngx_http_ron_proof_cached(ngx_http_request_t *r,
    uint64_t seq, uint64_t size);
static ngx_int_t ngx_http_ron_proof_wait(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, uint64_t seq, uint64_t size, ngx_uint_t there);
static ngx_http_ron_proof_batch_t *ngx_http_ron_proof_batch(
    ngx_http_request_t *r);
static void ngx_http_ron_proof_init(ngx_http_request_t *r);
static void ngx_http_ron_proof_depth(void);
static void ngx_http_ron_proof_left(void *data);
static void ngx_http_ron_proof_event(ngx_event_t *ev);
static void ngx_http_ron_proof_post(void);
static void ngx_http_ron_proof_thread(void *data, ngx_log_t *log);
static ron_status_t ngx_http_ron_proof_one(ngx_http_ron_proof_batch_t *b,
    ngx_http_ron_proof_item_t *item);
static ron_status_t ngx_http_ron_proof_read(ngx_http_ron_proof_batch_t *b,
    ngx_http_ron_proof_item_t *item);
static void ngx_http_ron_proof_done(ngx_event_t *ev);
static ngx_int_t ngx_http_ron_proof_answer(ngx_http_ron_proof_item_t *item,
    ron_str_t text);
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

static ron_nodes_t * volatile      ngx_http_ron_proof_nodes;

static ngx_http_ron_proof_work_t   ngx_http_ron_proof_work;


ngx_int_t
ngx_http_ron_proof_inclusion(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t     seq, size;
    ngx_int_t    rc;
    ngx_uint_t   there;
    ron_beat_t   beat;
    ron_zone_t  *zone;

    if (ngx_http_ron_arg_u64(ctx, "seq", 0, &seq) != NGX_OK || seq == 0) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "not a sequence number", "seq");
    }

    if (ngx_http_ron_arg_u64(ctx, "size", 0, &size) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED, "not a number",
                                   "size");
    }

    /* what the zone says of the head is durable, and new enough */

    zone = ngx_http_ron_zone(r);
    there = 0;

    if (zone && ron_zone_beat_read(zone, &beat) == RON_OK && beat.generation
        && size <= beat.seq && seq <= (size ? size : beat.seq))
    {
        there = 1;
        size = size ? size : beat.seq;

        rc = ngx_http_ron_proof_cached(r, seq, size);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_http_ron_proof_wait(r, ctx, seq, size, there);
}


static ngx_int_t
ngx_http_ron_proof_cached(ngx_http_request_t *r, uint64_t seq, uint64_t size)
{
    ron_buf_t    *buf;
    ron_hash_t    leaf, root;
    ron_proof_t   proof;

    if (ngx_http_ron_proof_nodes == NULL
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


/* ---- what is read in threads -------------------------------------------- */

static ngx_int_t
ngx_http_ron_proof_wait(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    uint64_t seq, uint64_t size, ngx_uint_t there)
{
    ngx_ron_conf_t              *rcf;
    ngx_pool_cleanup_t          *cln;
    ngx_http_ron_proof_item_t   *item;
    ngx_http_ron_proof_work_t   *w;
    ngx_http_ron_proof_batch_t  *b;

    w = &ngx_http_ron_proof_work;
    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);

    if (w->items >= rcf->queue_proofs) {
        ngx_ron_count(RON_M_BUSY_L, 0, RON_D_Q_PROOFS, 0, 0);

        return ngx_http_ron_refuse(r, RON_REASON_BUSY,
                                   "too many proofs are waiting", NULL);
    }

    b = ngx_http_ron_proof_batch(r);
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (b == NULL || cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    item = &b->items[b->n++];
    w->items++;
    ngx_http_ron_proof_depth();

    ngx_memzero(item, sizeof(ngx_http_ron_proof_item_t));

    item->ctx = ctx;
    item->cleanup = cln;
    item->seq = seq;
    item->size = size;
    item->there = there;

    cln->handler = ngx_http_ron_proof_left;
    cln->data = item;

    if (b->n == NGX_HTTP_RON_PROOF_BATCH) {
        w->filling = NULL;
    }

    /* when this turn of the event loop is over */

    ngx_post_event(&w->event, &ngx_posted_events);

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    r->main->count++;

    return NGX_DONE;
}


/* The batch that is filled, NULL: there is no memory. */

static ngx_http_ron_proof_batch_t *
ngx_http_ron_proof_batch(ngx_http_request_t *r)
{
    ngx_queue_t                 *q;
    ngx_http_ron_proof_work_t   *w;
    ngx_http_ron_proof_batch_t  *b;

    w = &ngx_http_ron_proof_work;

    if (w->filling) {
        return w->filling;
    }

    if (w->pool == NULL) {
        ngx_http_ron_proof_init(r);
    }

    if (!ngx_queue_empty(&w->unused)) {
        q = ngx_queue_head(&w->unused);
        ngx_queue_remove(q);
        b = ngx_queue_data(q, ngx_http_ron_proof_batch_t, queue);

    } else {
        b = ngx_calloc(sizeof(ngx_http_ron_proof_batch_t), ngx_cycle->log);
        if (b == NULL) {
            return NULL;
        }

        ron_buf_init(&b->one, 0);
        ron_buf_init(&b->out, 0);
    }

    b->n = 0;
    b->conf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);

    ngx_queue_insert_tail(&w->waiting, &b->queue);
    w->filling = b;

    return b;
}


static void
ngx_http_ron_proof_init(ngx_http_request_t *r)
{
    ngx_uint_t                  i;
    ngx_http_ron_main_conf_t   *rmcf;
    ngx_http_ron_proof_work_t  *w;

    w = &ngx_http_ron_proof_work;
    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    ngx_queue_init(&w->waiting);
    ngx_queue_init(&w->unused);
    ngx_queue_init(&w->slots);

    for (i = 0; i < NGX_HTTP_RON_PROOF_RUNNING; i++) {
        ngx_queue_insert_head(&w->slots, &w->slot[i].queue);
    }

    w->pool = rmcf->thread_pool;
    w->event.handler = ngx_http_ron_proof_event;
    w->event.log = ngx_cycle->log;
}


/* This worker's part: those that wait, and those that are read. */

static void
ngx_http_ron_proof_depth(void)
{
    ron_metric_set(ngx_ron_zone(), ngx_ron_slot(), RON_M_QUEUE_DEPTH_L, 0,
                   RON_D_Q_PROOFS, 0, 0, ngx_http_ron_proof_work.items);
}


/* The client went away, or its request was ended: nobody is to be told. */

static void
ngx_http_ron_proof_left(void *data)
{
    ngx_http_ron_proof_item_t  *item = data;

    ngx_ron_unclosed(item->ctx->request, "a proof");
    item->ctx = NULL;
}


static void
ngx_http_ron_proof_event(ngx_event_t *ev)
{
    ngx_http_ron_proof_post();
}


static void
ngx_http_ron_proof_post(void)
{
    ngx_uint_t                   i;
    ngx_queue_t                 *q;
    ngx_http_ron_proof_work_t   *w;
    ngx_http_ron_proof_batch_t  *b;

    w = &ngx_http_ron_proof_work;

    while (!ngx_queue_empty(&w->slots) && !ngx_queue_empty(&w->waiting)) {

        q = ngx_queue_head(&w->waiting);
        ngx_queue_remove(q);
        b = ngx_queue_data(q, ngx_http_ron_proof_batch_t, queue);

        q = ngx_queue_head(&w->slots);
        ngx_queue_remove(q);
        b->slot = ngx_queue_data(q, ngx_http_ron_proof_slot_t, queue);

        if (b == w->filling) {
            w->filling = NULL;
        }

        b->task.ctx = b;
        b->task.handler = ngx_http_ron_proof_thread;
        b->task.event.handler = ngx_http_ron_proof_done;
        b->task.event.data = b;

        ngx_http_ron_task_begin();

        if (ngx_thread_task_post(w->pool, &b->task) == NGX_OK) {
            continue;
        }

        for (i = 0; i < b->n; i++) {
            b->items[i].rc = ron_api_refuse(&b->items[i].err,
                                            RON_REASON_BUSY,
                                            "too many reads are waiting",
                                            NULL);
        }

        ngx_http_ron_proof_done(&b->task.event);
    }
}


/* In a thread: no request, no pool, no log. */

static void
ngx_http_ron_proof_thread(void *data, ngx_log_t *log)
{
    ngx_http_ron_proof_batch_t *b = data;

    uint64_t                    since_us;
    ngx_uint_t                  i, held;
    ngx_http_ron_proof_item_t  *item;
    ngx_http_ron_proof_slot_t  *slot;

    ngx_http_ron_task_place(b->conf);

    held = 0;
    since_us = 0;
    slot = b->slot;
    ron_buf_reset(&b->out);

    for (i = 0; i < b->n; i++) {
        item = &b->items[i];

        /* a size that we do not know of may be newer than what is held */

        if (held && (!item->there || ron_clock_mono_us() - since_us
                                     > RON_READER_HOLD_US / 2))
        {
            (void) ron_reader_release(slot->reader);
            held = 0;
        }

        /* the first may have to wait for the tiles of another thread */

        if (i != 0 && !held && item->there && slot->reader
            && ron_reader_hold(slot->reader) == RON_OK)
        {
            since_us = ron_clock_mono_us();
            held = 1;
        }

        item->rc = ngx_http_ron_proof_one(b, item);
        item->end = b->out.len;

        if (slot->reader == NULL) {
            held = 0;
        }
    }

    if (held) {
        (void) ron_reader_release(slot->reader);
    }
}


/* Opens the reader, and gives it up after a failure that may be its own. */

static ron_status_t
ngx_http_ron_proof_one(ngx_http_ron_proof_batch_t *b,
    ngx_http_ron_proof_item_t *item)
{
    ron_status_t                rc;
    ngx_http_ron_proof_slot_t  *slot;

    slot = b->slot;

    rc = ngx_http_ron_task_store(b->conf, &b->store);

    if (slot->reader == NULL) {
        if (rc == RON_OK) {
            rc = ron_reader_open(b->store, &slot->reader);
        }

        if (rc != RON_OK) {
            slot->reader = NULL;
            (void) ron_api_refuse(&item->err, RON_REASON_RETRY_LATER,
                                  "the ledger cannot be read now", NULL);
            return rc;
        }
    }

    rc = ngx_http_ron_proof_read(b, item);

    if (rc != RON_OK && rc != RON_EINVAL) {
        ron_reader_close(slot->reader);
        slot->reader = NULL;

        (void) ron_api_refuse(&item->err, RON_REASON_INTERNAL,
                              "the ledger could not be read", NULL);
    }

    return rc;
}


static ron_status_t
ngx_http_ron_proof_read(ngx_http_ron_proof_batch_t *b,
    ngx_http_ron_proof_item_t *item)
{
    ron_nodes_t   *nodes;
    ron_reader_t  *reader;
    ron_status_t   rc;
    ron_digest_t   digest;

    reader = b->slot->reader;
    digest = ron_store_meta(b->store)->digest;
    nodes = ngx_http_ron_proof_cache(digest);

    ron_buf_reset(&b->one);

    if (nodes == NULL) {
        rc = ron_api_inclusion(reader, digest, item->seq, item->size,
                               &b->one);

    } else if (item->there) {
        rc = ron_api_inclusion_at(reader, nodes, digest, item->seq,
                                  item->size, &b->one);

    } else {
        rc = ron_api_inclusion_cached(reader, nodes, digest, item->seq,
                                      item->size, &b->one);
    }

    if (rc != RON_OK) {
        return ngx_http_ron_ledger_range(&item->err, rc);
    }

    ron_buf_put_u8(&b->one, LF);
    ron_buf_put_str(&b->out, ron_buf_str(&b->one));

    return ron_buf_status(&b->one) == RON_OK ? ron_buf_status(&b->out)
                                             : RON_ENOMEM;
}


static void
ngx_http_ron_proof_done(ngx_event_t *ev)
{
    size_t                       from;
    ron_str_t                    text;
    ngx_uint_t                   i;
    ngx_http_ron_ctx_t          *ctx;
    ngx_http_ron_proof_item_t   *item;
    ngx_http_ron_proof_work_t   *w;
    ngx_http_ron_proof_batch_t  *b;

    ngx_http_ron_task_end();

    b = ev->data;
    w = &ngx_http_ron_proof_work;
    from = 0;

    for (i = 0; i < b->n; i++) {
        item = &b->items[i];
        text.data = b->out.data + from;
        text.len = item->end - from;
        from = item->end;

        ctx = item->ctx;

        if (ctx) {
            item->cleanup->handler = NULL;
            ngx_http_ron_burst_hold(ctx);
            ngx_http_ron_done(ctx, ngx_http_ron_proof_answer(item, text));
        }
    }

    ngx_http_ron_burst_over();

    w->items -= b->n;
    ngx_http_ron_proof_depth();

    ngx_queue_insert_head(&w->slots, &b->slot->queue);
    ngx_queue_insert_head(&w->unused, &b->queue);

    ngx_http_ron_proof_post();
}


static ngx_int_t
ngx_http_ron_proof_answer(ngx_http_ron_proof_item_t *item, ron_str_t text)
{
    ngx_http_request_t  *r;

    static ngx_str_t     json = ngx_string("application/json");

    r = item->ctx->request;

    if (item->rc == RON_OK) {
        return ngx_http_ron_reply(r, NGX_HTTP_OK, &json, text);
    }

    if (ron_api_status(&item->err) >= 500) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "ron: reading the ledger: %s",
                      ron_status_name(item->rc));
    }

    return ngx_http_ron_problem(r, &item->err);
}


/* Another thread may do the same at this instant. */

ron_nodes_t *
ngx_http_ron_proof_cache(ron_digest_t digest)
{
    ron_nodes_t                *nodes;
    ngx_http_ron_proof_conf_t  *pcf;

    pcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                              ngx_http_ron_proof_module);

    if (ngx_http_ron_proof_nodes != NULL || pcf->cache == 0
        || ron_nodes_create(digest, pcf->cache, &nodes) != RON_OK)
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
