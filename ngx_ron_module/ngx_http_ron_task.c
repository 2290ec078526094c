
/*
 * Reading the ledger blocks, so it is done in threads of NGINX's pool.  The
 * worker owns the handle of the store; every thread opens a reader of its own
 * at its first task and keeps it, so there are never more than threads.
 *
 * A request whose client goes away while its task runs is kept by NGINX
 * (r->main->blocked) until the thread is done.
 */

#include "ngx_http_ron.h"

#include <ngx_thread_pool.h>


#define NGX_HTTP_RON_OUT_MAX  (8 * 1024 * 1024)


static ron_store_t *ngx_http_ron_task_store(ngx_http_request_t *r);
static void ngx_http_ron_task_thread(void *data, ngx_log_t *log);
static void ngx_http_ron_task_event(ngx_event_t *ev);
static void ngx_http_ron_task_resume(ngx_http_request_t *r);
static void ngx_http_ron_task_cleanup(void *data);
static ngx_int_t ngx_http_ron_task_answer(ngx_http_request_t *r,
    ngx_http_ron_task_t *task);


/* a worker's */

static ron_store_t  *ngx_http_ron_store;


/* a thread's */

static _Thread_local ron_reader_t  *ngx_http_ron_reader;


ngx_http_ron_task_t *
ngx_http_ron_task(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_status_t (*work)(ngx_http_ron_task_t *))
{
    ron_store_t          *store;
    ngx_pool_cleanup_t   *cln;
    ngx_thread_task_t    *thread;
    ngx_http_ron_task_t  *task;

    store = ngx_http_ron_task_store(r);
    if (store == NULL) {
        return NULL;
    }

    thread = ngx_thread_task_alloc(r->pool, sizeof(ngx_http_ron_task_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (thread == NULL || cln == NULL) {
        return NULL;
    }

    task = thread->ctx;
    ngx_memzero(task, sizeof(ngx_http_ron_task_t));

    ron_buf_init(&task->out, NGX_HTTP_RON_OUT_MAX);
    ron_buf_init(&task->more, NGX_HTTP_RON_OUT_MAX);

    task->work = work;
    task->store = store;
    task->ctx = ctx;

    cln->handler = ngx_http_ron_task_cleanup;
    cln->data = task;

    ctx->data = thread;

    return task;
}


static void
ngx_http_ron_task_cleanup(void *data)
{
    ngx_http_ron_task_t  *task = data;

    ron_buf_free(&task->out);
    ron_buf_free(&task->more);
}


static ron_store_t *
ngx_http_ron_task_store(ngx_http_request_t *r)
{
    ron_status_t       rc;
    ngx_ron_conf_t    *rcf;
    ron_store_conf_t   conf;

    if (ngx_http_ron_store) {
        return ngx_http_ron_store;
    }

    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);

    ngx_memzero(&conf, sizeof(ron_store_conf_t));

    conf.url = (char *) rcf->url.data;
    conf.digest = rcf->digest;

    if (rcf->memory_zone) {
        conf.region = rcf->memory_zone->data;
        conf.region_len = ngx_ron_memory_len(rcf);
    }

    rc = ron_store_open(&conf, &ngx_http_ron_store);

    if (rc != RON_OK) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "ron: the ledger cannot be read: %s",
                      ron_status_name(rc));
        ngx_http_ron_store = NULL;
    }

    return ngx_http_ron_store;
}


ngx_int_t
ngx_http_ron_no_ledger(ngx_http_request_t *r)
{
    return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                               "the ledger cannot be read now", NULL);
}


ron_status_t
ngx_http_ron_task_refuse(ngx_http_ron_task_t *task, ron_reason_t reason,
    const char *text)
{
    return ron_api_refuse(&task->err, reason, text, NULL);
}


ngx_int_t
ngx_http_ron_task_post(ngx_http_request_t *r, ngx_http_ron_task_t *task)
{
    ngx_thread_task_t         *thread;
    ngx_http_ron_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    thread = task->ctx->data;
    thread->handler = ngx_http_ron_task_thread;
    thread->event.handler = ngx_http_ron_task_event;
    thread->event.data = task;

    if (ngx_thread_task_post(rmcf->thread_pool, thread) != NGX_OK) {
        if (task->always) {
            return NGX_BUSY;
        }

        return ngx_http_ron_refuse(r, RON_REASON_BUSY,
                                   "too many reads are waiting", NULL);
    }

    r->main->blocked++;
    r->main->count++;
    r->aio = 1;
    r->write_event_handler = ngx_http_ron_task_resume;

    return NGX_DONE;
}


/* In a thread: no request, no pool, no log. */

static void
ngx_http_ron_task_thread(void *data, ngx_log_t *log)
{
    ngx_http_ron_task_t  *task = data;

    if (ngx_http_ron_reader == NULL) {

        task->rc = ron_reader_open(task->store, &ngx_http_ron_reader);

        if (task->rc != RON_OK) {
            ngx_http_ron_reader = NULL;
            (void) ngx_http_ron_task_refuse(task, RON_REASON_RETRY_LATER,
                                            "the ledger cannot be read now");
            return;
        }
    }

    task->reader = ngx_http_ron_reader;
    task->rc = task->work(task);

    if (task->rc != RON_OK && task->rc != RON_EINVAL) {

        /* what is wrong with the reader may be gone with a new one */

        ron_reader_close(ngx_http_ron_reader);
        ngx_http_ron_reader = NULL;

        (void) ngx_http_ron_task_refuse(task, RON_REASON_INTERNAL,
                                        "the ledger could not be read");
    }
}


static void
ngx_http_ron_task_event(ngx_event_t *ev)
{
    ngx_connection_t     *c;
    ngx_http_request_t   *r;
    ngx_http_ron_task_t  *task;

    task = ev->data;
    r = task->ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    r->main->blocked--;
    r->aio = 0;

    /*
     * When the client went away meanwhile, NGINX has put its own handler in
     * the place of ours, to end what it had begun.
     */

    if (ngx_ron_terminated(r)) {
        c->write->handler(c->write);

    } else {
        r->write_event_handler(r);
        ngx_http_run_posted_requests(c);
    }
}


static void
ngx_http_ron_task_resume(ngx_http_request_t *r)
{
    ngx_thread_task_t   *thread;
    ngx_http_ron_ctx_t  *ctx;

    if (r->aio) {
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_ron_module);
    thread = ctx->data;

    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_http_finalize_request(r, ngx_http_ron_task_answer(r, thread->ctx));
}


static ngx_int_t
ngx_http_ron_task_answer(ngx_http_request_t *r, ngx_http_ron_task_t *task)
{
    if (task->always) {
        return task->after(r, task->ctx, task);
    }

    if (task->rc != RON_OK) {

        if (ron_api_status(&task->err) >= 500) {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "ron: reading the ledger: %s",
                          ron_status_name(task->rc));
        }

        return ngx_http_ron_problem(r, &task->err);
    }

    if (task->after) {
        return task->after(r, task->ctx, task);
    }

    if (task->type) {
        return ngx_http_ron_reply(r, NGX_HTTP_OK, task->type,
                                  ron_buf_str(&task->out));
    }

    return ngx_http_ron_json(r, NGX_HTTP_OK, &task->out);
}
