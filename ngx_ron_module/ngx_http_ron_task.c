
/*
 * Reading the ledger blocks, and so does opening it: both are done in threads
 * of NGINX's pool.  The handle of the store is the worker's, opened by the
 * first thread that wants it; every thread opens a reader of its own at its
 * first task and keeps it, so there are never more than threads.
 *
 * A request whose client goes away while its task runs is kept by NGINX
 * (r->main->blocked) until the thread is done.
 *
 * A worker that is told to end does so when no timer is left, and what a
 * thread has in hand is no timer: the answer would be lost.  So there is one
 * while a thread works, as NGINX itself has for its own since 1.23.
 */

#include "ngx_http_ron.h"

#include <ngx_thread_pool.h>


#define NGX_HTTP_RON_OUT_MAX    (8 * 1024 * 1024)
#define NGX_HTTP_RON_TASK_HOLD  60000


static void ngx_http_ron_task_thread(void *data, ngx_log_t *log);
static void ngx_http_ron_task_event(ngx_event_t *ev);
static void ngx_http_ron_task_stuck(ngx_event_t *ev);
static void ngx_http_ron_task_resume(ngx_http_request_t *r);
static void ngx_http_ron_task_cleanup(void *data);
static ngx_int_t ngx_http_ron_task_answer(ngx_http_request_t *r,
    ngx_http_ron_task_t *task);


/* a worker's, for good */

static ron_store_t * volatile  ngx_http_ron_store;
static ngx_event_t             ngx_http_ron_task_held;
static ngx_uint_t              ngx_http_ron_task_n;


/* a thread's */

static _Thread_local ron_reader_t  *ngx_http_ron_reader;


ngx_http_ron_task_t *
ngx_http_ron_task(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_status_t (*work)(ngx_http_ron_task_t *))
{
    ngx_pool_cleanup_t   *cln;
    ngx_thread_task_t    *thread;
    ngx_http_ron_task_t  *task;

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
    task->conf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);
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


/* In a thread; another one may do the same at this instant. */

ron_status_t
ngx_http_ron_task_store(ngx_ron_conf_t *rcf, ron_store_t **store)
{
    ron_status_t       rc;
    ron_store_conf_t   conf;

    *store = ngx_http_ron_store;

    if (*store) {
        return RON_OK;
    }

    ngx_memzero(&conf, sizeof(ron_store_conf_t));

    conf.url = (char *) rcf->url.data;
    conf.digest = rcf->digest;

    if (rcf->memory_zone) {
        conf.region = rcf->memory_zone->data;
        conf.region_len = ngx_ron_memory_len(rcf);
    }

    rc = ron_store_open(&conf, store);
    if (rc != RON_OK) {
        *store = NULL;
        return rc;
    }

    if (!ngx_atomic_cmp_set((ngx_atomic_t *) &ngx_http_ron_store, 0,
                            (ngx_atomic_uint_t) *store))
    {
        ron_store_close(*store);
        *store = ngx_http_ron_store;
    }

    return RON_OK;
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
    ngx_int_t  rc;

    rc = ngx_http_ron_task_try(r, task);

    if (rc == NGX_BUSY && !task->always) {
        return ngx_http_ron_refuse(r, RON_REASON_BUSY,
                                   "too many reads are waiting", NULL);
    }

    return rc;
}


ngx_int_t
ngx_http_ron_task_try(ngx_http_request_t *r, ngx_http_ron_task_t *task)
{
    ngx_thread_task_t         *thread;
    ngx_http_ron_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    thread = task->ctx->data;
    thread->handler = ngx_http_ron_task_thread;
    thread->event.handler = ngx_http_ron_task_event;
    thread->event.data = task;

    if (ngx_thread_task_post(rmcf->thread_pool, thread) != NGX_OK) {
        return NGX_BUSY;
    }

    ngx_http_ron_task_begin();

    r->main->blocked++;
    r->main->count++;
    r->aio = 1;
    r->write_event_handler = ngx_http_ron_task_resume;

    return NGX_DONE;
}


void
ngx_http_ron_task_begin(void)
{
    ngx_event_t  *ev;

    ev = &ngx_http_ron_task_held;

    ngx_http_ron_task_n++;

    if (!ev->timer_set) {
        ev->handler = ngx_http_ron_task_stuck;
        ev->data = &ngx_ron_ident;
        ev->log = ngx_cycle->log;

        ngx_add_timer(ev, NGX_HTTP_RON_TASK_HOLD);
    }
}


void
ngx_http_ron_task_end(void)
{
    ngx_http_ron_task_n--;

    if (ngx_http_ron_task_n == 0 && ngx_http_ron_task_held.timer_set) {
        ngx_del_timer(&ngx_http_ron_task_held);
    }
}


/* A worker that ends waits for one whole minute, whenever it was told. */

static void
ngx_http_ron_task_stuck(ngx_event_t *ev)
{
    static ngx_uint_t  ending;

    if (!ending) {
        ending = ngx_exiting;
        ngx_add_timer(ev, NGX_HTTP_RON_TASK_HOLD);
        return;
    }

    ngx_log_error(NGX_LOG_WARN, ev->log, 0,
                  "ron: %ui tasks of threads are not waited for any longer",
                  ngx_http_ron_task_n);
}


/*
 * NGINX's threads are where their worker may be, and with worker_cpu_affinity
 * that is one processor, which the worker fills by itself.  Who reads the
 * ledger may be where the helper is as well.  Once, in the thread.
 */

void
ngx_http_ron_task_place(ngx_ron_conf_t *rcf)
{
#if (NGX_HAVE_CPU_AFFINITY)

    cpu_set_t  cpus;

    static __thread ngx_uint_t  placed;

    if (placed || rcf->cpus_n == 0) {
        return;
    }

    placed = 1;

    if (sched_getaffinity(0, sizeof(cpu_set_t), &cpus) == 0) {
        CPU_OR(&cpus, &cpus, &rcf->cpus);
        (void) sched_setaffinity(0, sizeof(cpu_set_t), &cpus);
    }

#endif
}


/* In a thread: no request, no pool, no log. */

static void
ngx_http_ron_task_thread(void *data, ngx_log_t *log)
{
    ngx_http_ron_task_t  *task = data;

    ngx_http_ron_task_place(task->conf);

    task->rc = ngx_http_ron_task_store(task->conf, &task->store);

    if (ngx_http_ron_reader == NULL) {

        if (task->rc == RON_OK) {
            task->rc = ron_reader_open(task->store, &ngx_http_ron_reader);
        }

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

    ngx_http_ron_task_end();

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
