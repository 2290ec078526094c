
#include "ngx_http_ron_ingress.h"
#include "ngx_http_ron_limit.h"
#include "ron_port.h"

#include <ngx_thread_pool.h>


#define NGX_HTTP_RON_INGRESS_POLL  5


struct ngx_http_ron_ingress_s {
    ngx_thread_task_t        thread;
    ngx_queue_t              queue;
    ngx_http_ron_ctx_t      *ctx;           /* NULL: nobody waits for it */
    ngx_msec_t               delay;
    ron_api_body_t          *body;
    unsigned                 queued:1;
    unsigned                 running:1;
    unsigned                 done:1;
};


static ngx_int_t ngx_http_ron_ingress_kind(ngx_http_ron_ctx_t *ctx,
    ron_api_body_kind_t *kind);
static ngx_http_ron_ingress_t *ngx_http_ron_ingress_create(
    ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_api_body_kind_t kind);
static ngx_int_t ngx_http_ron_ingress_own(ngx_http_ron_ctx_t *ctx,
    ron_api_body_t *b);
static void ngx_http_ron_ingress_free(ngx_http_ron_ingress_t *task);
static ngx_int_t ngx_http_ron_ingress_begin(ngx_http_request_t *r,
    ngx_http_ron_ingress_t *task);
static ngx_int_t ngx_http_ron_ingress_start(ngx_http_ron_ingress_t *task);
static void ngx_http_ron_ingress_thread(void *data, ngx_log_t *log);
static void ngx_http_ron_ingress_event(ngx_event_t *ev);
static void ngx_http_ron_ingress_late(ngx_event_t *ev);
static void ngx_http_ron_ingress_poll(ngx_event_t *ev);
static void *ngx_http_ron_ingress_create_conf(ngx_conf_t *cf);
static char *ngx_http_ron_ingress_init_conf(ngx_conf_t *cf, void *conf);


static ngx_conf_num_bounds_t  ngx_http_ron_ingress_bounds = {
    ngx_conf_check_num_bounds, 1, 1024
};


static ngx_command_t  ngx_http_ron_ingress_commands[] = {

    { ngx_string("ron_ledger_ingress_workers"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_ingress_conf_t, workers),
      &ngx_http_ron_ingress_bounds },

    { ngx_string("ron_ingress_offload"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_ingress_conf_t, offload),
      NULL },

    { ngx_string("ron_ingress_delay"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_ingress_conf_t, delay),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_ron_ingress_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_ron_ingress_create_conf,      /* create main configuration */
    ngx_http_ron_ingress_init_conf,        /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_ron_ingress_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_ingress_module_ctx,      /* module context */
    ngx_http_ron_ingress_commands,         /* module directives */
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
 * Bodies of this worker that wait for a place, of which all workers have some
 * together: another's that is free again is noticed by asking.
 */

static ngx_queue_t  ngx_http_ron_ingress_waiting;
static ngx_event_t  ngx_http_ron_ingress_timer;

/* an event's data looks like a connection: debug logs read its fd */

static struct {
    void  *padding[3];
    int    fd;
} ngx_http_ron_ingress_ident = { { NULL, NULL, NULL }, -1 };


ngx_int_t
ngx_http_ron_ingress(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ngx_int_t                     rc;
    ron_api_body_kind_t           kind;
    ngx_http_ron_ingress_t       *task;
    ngx_http_ron_ingress_conf_t  *icf;

    icf = ngx_http_get_module_main_conf(r, ngx_http_ron_ingress_module);

    if ((ctx->gzip ? ngx_http_ron_inflate_max(r, ctx->body.len)
                   : ctx->body.len)
            <= icf->offload
        || ngx_http_ron_ingress_kind(ctx, &kind) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    /* a thread's time begins when it has one */

    ngx_http_ron_checks_pause(ctx);

    if (ngx_http_ron_time_left(ctx) == 0) {
        return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                   "the deadline has passed", NULL);
    }

    task = ngx_http_ron_ingress_create(r, ctx, kind);
    if (task == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_ron_ingress_begin(r, task);

    if (rc == NGX_BUSY) {
        ngx_http_ron_ingress_free(task);
        ngx_ron_count(RON_M_BUSY_L, 0, RON_D_Q_PARSE, 0, 0);

        return ngx_http_ron_refuse(r, RON_REASON_BUSY,
                                   "too many long bodies are waiting", NULL);
    }

    ctx->ingress = task;

    ctx->body_timer.handler = ngx_http_ron_ingress_late;
    ctx->body_timer.data = r->connection;
    ctx->body_timer.log = r->connection->log;

    ngx_add_timer(&ctx->body_timer, ngx_http_ron_time_left(ctx) + 1);

    /* a client that goes away is noticed, and its request let go */

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    r->main->count++;

    return NGX_DONE;
}


static ngx_int_t
ngx_http_ron_ingress_kind(ngx_http_ron_ctx_t *ctx, ron_api_body_kind_t *kind)
{
    switch (ctx->route->metric) {

    case RON_D_ROUTE_LEDGER_INGEST:
        *kind = RON_API_BODY_INGEST;
        return NGX_OK;

    case RON_D_ROUTE_LEDGER_OPS:
        *kind = RON_API_BODY_OPS;
        return NGX_OK;

    default:
        *kind = RON_API_BODY_WALLET;

        return ngx_http_ron_count_wallet(ctx->route->metric)
               && ctx->route->number < RON_API_WALLET_N ? NGX_OK
                                                        : NGX_DECLINED;
    }
}


static ngx_http_ron_ingress_t *
ngx_http_ron_ingress_create(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_api_body_kind_t kind)
{
    ron_api_body_t               *b;
    ngx_http_ron_ingress_t       *task;
    ngx_http_ron_loc_conf_t      *rlcf;
    ngx_http_ron_main_conf_t     *rmcf;
    ngx_http_ron_ingress_conf_t  *icf;

    icf = ngx_http_get_module_main_conf(r, ngx_http_ron_ingress_module);
    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);
    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    task = ngx_calloc(sizeof(ngx_http_ron_ingress_t), r->connection->log);
    b = ngx_alloc(sizeof(ron_api_body_t), r->connection->log);

    if (task == NULL || b == NULL) {
        ngx_free(task);
        ngx_free(b);
        return NULL;
    }

    ron_api_body_init(b);

    task->body = b;
    task->ctx = ctx;
    task->delay = icf->delay;

    b->kind = kind;
    b->op = ctx->route->number;
    b->gzip = ctx->gzip;
    b->plain_max = ngx_http_ron_inflate_max(r, ctx->body.len);
    b->limits = *rmcf->limits;
    b->limits.nonce_strict = rlcf->nonce;

    if (kind == RON_API_BODY_WALLET) {
        ron_api_body_key(b, ngx_ron_str(&ctx->idem_key));
    }

    if (ngx_http_ron_ingress_own(ctx, b) != NGX_OK) {
        ngx_http_ron_ingress_free(task);
        return NULL;
    }

    return task;
}


/* What was read in pieces changes its owner, the rest is copied. */

static ngx_int_t
ngx_http_ron_ingress_own(ngx_http_ron_ctx_t *ctx, ron_api_body_t *b)
{
    if (ctx->body.data == ctx->body_buf.data) {
        b->body = ctx->body_buf;
        ron_buf_init(&ctx->body_buf, 0);

    } else {
        ron_buf_put(&b->body, ctx->body.data, ctx->body.len);
    }

    ctx->body = ron_null_str;

    return ron_buf_status(&b->body) == RON_OK ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_ron_ingress_free(ngx_http_ron_ingress_t *task)
{
    ron_api_body_free(task->body);
    ngx_free(task->body);
    ngx_free(task);
}


/* NGX_BUSY: neither a place nor one in the queue. */

static ngx_int_t
ngx_http_ron_ingress_begin(ngx_http_request_t *r,
    ngx_http_ron_ingress_t *task)
{
    ngx_event_t                  *ev;
    ngx_ron_conf_t               *rcf;
    ngx_http_ron_ingress_conf_t  *icf;

    icf = ngx_http_get_module_main_conf(r, ngx_http_ron_ingress_module);
    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);
    ev = &ngx_http_ron_ingress_timer;

    if (ngx_http_ron_ingress_waiting.next == NULL) {
        ngx_queue_init(&ngx_http_ron_ingress_waiting);

        ev->handler = ngx_http_ron_ingress_poll;
        ev->data = &ngx_http_ron_ingress_ident;
        ev->log = ngx_cycle->log;
        ev->cancelable = 1;
    }

    if (ngx_queue_empty(&ngx_http_ron_ingress_waiting)
        && ngx_ron_admit(RON_ADMIT_PARSE, icf->workers) == NGX_OK)
    {
        return ngx_http_ron_ingress_start(task);
    }

    if (ngx_ron_admit(RON_ADMIT_PARSE_WAIT, rcf->queue_parse) != NGX_OK) {
        return NGX_BUSY;
    }

    task->queued = 1;
    ngx_queue_insert_tail(&ngx_http_ron_ingress_waiting, &task->queue);

    if (!ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_RON_INGRESS_POLL);
    }

    return NGX_OK;
}


/* There is a place for it: given back with NGX_BUSY, else when it is done. */

static ngx_int_t
ngx_http_ron_ingress_start(ngx_http_ron_ingress_t *task)
{
    ngx_http_ron_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(task->ctx->request,
                                         ngx_http_ron_module);

    task->thread.ctx = task;
    task->thread.handler = ngx_http_ron_ingress_thread;
    task->thread.event.handler = ngx_http_ron_ingress_event;
    task->thread.event.data = task;

    if (ngx_thread_task_post(rmcf->thread_pool, &task->thread) != NGX_OK) {
        ngx_ron_admit_done(RON_ADMIT_PARSE);
        return NGX_BUSY;
    }

    task->running = 1;

    ngx_http_ron_checks_begin(task->ctx);

    return NGX_OK;
}


/* In a thread: no request, no pool, no log. */

static void
ngx_http_ron_ingress_thread(void *data, ngx_log_t *log)
{
    ngx_http_ron_ingress_t  *task = data;

    if (task->delay) {
        ron_sleep_us((uint64_t) task->delay * 1000);
    }

    ron_api_body_parse(task->body);
}


static void
ngx_http_ron_ingress_event(ngx_event_t *ev)
{
    ngx_http_ron_ctx_t      *ctx;
    ngx_http_ron_ingress_t  *task;

    task = ev->data;
    ctx = task->ctx;

    task->running = 0;
    task->done = 1;

    ngx_ron_admit_done(RON_ADMIT_PARSE);
    ngx_http_ron_ingress_poll(&ngx_http_ron_ingress_timer);

    if (ctx == NULL) {
        ngx_http_ron_ingress_free(task);
        return;
    }

    if (ctx->body_timer.timer_set) {
        ngx_del_timer(&ctx->body_timer);
    }

    ctx->body = task->body->text;

    ngx_http_set_log_request(ctx->request->connection->log, ctx->request);

    ngx_http_ron_done(ctx, ctx->route->handler(ctx->request, ctx));
}


static void
ngx_http_ron_ingress_late(ngx_event_t *ev)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_http_ron_ctx_t  *ctx;

    c = ev->data;
    r = c->data;
    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);

    ngx_http_set_log_request(c->log, r);

    ngx_http_ron_ingress_drop(ctx);

    ngx_http_ron_done(ctx, ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                               "the deadline has passed",
                                               NULL));
}


/* The oldest first, as many as there is room for. */

static void
ngx_http_ron_ingress_poll(ngx_event_t *ev)
{
    ngx_queue_t                  *q;
    ngx_http_ron_ctx_t           *ctx;
    ngx_http_ron_ingress_t       *task;
    ngx_http_ron_ingress_conf_t  *icf;

    while (!ngx_queue_empty(&ngx_http_ron_ingress_waiting)) {

        q = ngx_queue_head(&ngx_http_ron_ingress_waiting);
        task = ngx_queue_data(q, ngx_http_ron_ingress_t, queue);
        ctx = task->ctx;

        icf = ngx_http_get_module_main_conf(ctx->request,
                                            ngx_http_ron_ingress_module);

        if (ngx_ron_admit(RON_ADMIT_PARSE, icf->workers) != NGX_OK) {

            if (!ev->timer_set) {
                ngx_add_timer(ev, NGX_HTTP_RON_INGRESS_POLL);
            }

            return;
        }

        ngx_queue_remove(q);

        task->queued = 0;
        ngx_ron_admit_done(RON_ADMIT_PARSE_WAIT);

        if (ngx_http_ron_ingress_start(task) != NGX_OK) {

            /* the pool's own queue is full */

            ngx_http_ron_ingress_drop(ctx);
            ngx_ron_count(RON_M_BUSY_L, 0, RON_D_Q_PARSE, 0, 0);

            ngx_http_ron_done(ctx,
                ngx_http_ron_refuse(ctx->request, RON_REASON_BUSY,
                                    "too many long bodies are waiting",
                                    NULL));
        }
    }
}


ron_api_body_t *
ngx_http_ron_ingress_parsed(ngx_http_ron_ctx_t *ctx)
{
    return ctx->ingress && ctx->ingress->done ? ctx->ingress->body : NULL;
}


void
ngx_http_ron_ingress_drop(ngx_http_ron_ctx_t *ctx)
{
    ngx_http_ron_ingress_t  *task;

    task = ctx->ingress;

    if (task == NULL) {
        return;
    }

    ctx->ingress = NULL;
    ctx->body = ron_null_str;
    task->ctx = NULL;

    if (ctx->body_timer.timer_set) {
        ngx_del_timer(&ctx->body_timer);
    }

    if (task->queued) {
        ngx_queue_remove(&task->queue);
        ngx_ron_admit_done(RON_ADMIT_PARSE_WAIT);
    }

    if (!task->running) {
        ngx_http_ron_ingress_free(task);
    }
}


static void *
ngx_http_ron_ingress_create_conf(ngx_conf_t *cf)
{
    ngx_http_ron_ingress_conf_t  *icf;

    icf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_ingress_conf_t));
    if (icf == NULL) {
        return NULL;
    }

    icf->workers = NGX_CONF_UNSET_UINT;
    icf->offload = NGX_CONF_UNSET_SIZE;
    icf->delay = NGX_CONF_UNSET_MSEC;

    return icf;
}


static char *
ngx_http_ron_ingress_init_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_ron_ingress_conf_t *icf = conf;

    ngx_conf_init_uint_value(icf->workers,
                             (ngx_uint_t) ngx_max(1, ngx_ncpu / 4));
    ngx_conf_init_size_value(icf->offload, 64 * 1024);
    ngx_conf_init_msec_value(icf->delay, 0);

    if (icf->offload < 1024 || icf->offload > 1024 * 1024) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"ron_ingress_offload\" must be from 1k to 1m");
        return NGX_CONF_ERROR;
    }

    if (icf->delay > 60000) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"ron_ingress_delay\" must be at most 60s");
        return NGX_CONF_ERROR;
    }

    if (icf->delay) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"ron_ingress_delay\" is for tests: a thread waits "
                      "%M ms before it parses", icf->delay);
    }

    return NGX_CONF_OK;
}
