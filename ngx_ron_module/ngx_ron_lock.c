
/*
 * What the glue can wait in while it holds a lock: NGINX's mutex of a zone, a
 * line of its log, and the event loop itself.  A handler that returns to the
 * loop with a lock is found when the loop asks for the next events.
 *
 * NGINX's own calls of these functions are not seen, as they are linked into
 * its binary: a slab's allocation, which takes the mutex of its zone, is
 * wrapped for that reason.
 */

#include "ngx_ron_lock.h"

#ifdef RON_LOCK_CHECK

#include <ngx_event.h>

#include "ron_lock.h"


void __real_ngx_shmtx_lock(ngx_shmtx_t *mtx);
void __wrap_ngx_shmtx_lock(ngx_shmtx_t *mtx);
void __real_ngx_shmtx_unlock(ngx_shmtx_t *mtx);
void __wrap_ngx_shmtx_unlock(ngx_shmtx_t *mtx);
void *__real_ngx_slab_alloc(ngx_slab_pool_t *pool, size_t size);
void *__wrap_ngx_slab_alloc(ngx_slab_pool_t *pool, size_t size);
void *__real_ngx_slab_calloc(ngx_slab_pool_t *pool, size_t size);
void *__wrap_ngx_slab_calloc(ngx_slab_pool_t *pool, size_t size);
void __real_ngx_slab_free(ngx_slab_pool_t *pool, void *p);
void __wrap_ngx_slab_free(ngx_slab_pool_t *pool, void *p);
void __real_ngx_log_error_core(ngx_uint_t level, ngx_log_t *log,
    ngx_err_t err, const char *fmt, ...);
void __wrap_ngx_log_error_core(ngx_uint_t level, ngx_log_t *log,
    ngx_err_t err, const char *fmt, ...);

static ngx_int_t ngx_ron_lock_process_events(ngx_cycle_t *cycle,
    ngx_msec_t timer, ngx_uint_t flags);


static ngx_int_t (*ngx_ron_lock_loop)(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags);


void
ngx_ron_lock_init(ngx_cycle_t *cycle)
{
    if (ngx_event_actions.process_events == NULL
        || ngx_event_actions.process_events == ngx_ron_lock_process_events)
    {
        return;
    }

    ngx_ron_lock_loop = ngx_event_actions.process_events;
    ngx_event_actions.process_events = ngx_ron_lock_process_events;

    ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                  "ron: the order of locks is asserted");
}


static ngx_int_t
ngx_ron_lock_process_events(ngx_cycle_t *cycle, ngx_msec_t timer,
    ngx_uint_t flags)
{
    ron_lock_wait("the next event");

    return ngx_ron_lock_loop(cycle, timer, flags);
}


void
__wrap_ngx_shmtx_lock(ngx_shmtx_t *mtx)
{
    ron_lock_take(RON_LOCK_SLAB);

    __real_ngx_shmtx_lock(mtx);
}


void
__wrap_ngx_shmtx_unlock(ngx_shmtx_t *mtx)
{
    ron_lock_leave(RON_LOCK_SLAB);

    __real_ngx_shmtx_unlock(mtx);
}


void *
__wrap_ngx_slab_alloc(ngx_slab_pool_t *pool, size_t size)
{
    void  *p;

    ron_lock_take(RON_LOCK_SLAB);
    p = __real_ngx_slab_alloc(pool, size);
    ron_lock_leave(RON_LOCK_SLAB);

    return p;
}


void *
__wrap_ngx_slab_calloc(ngx_slab_pool_t *pool, size_t size)
{
    void  *p;

    ron_lock_take(RON_LOCK_SLAB);
    p = __real_ngx_slab_calloc(pool, size);
    ron_lock_leave(RON_LOCK_SLAB);

    return p;
}


void
__wrap_ngx_slab_free(ngx_slab_pool_t *pool, void *p)
{
    ron_lock_take(RON_LOCK_SLAB);
    __real_ngx_slab_free(pool, p);
    ron_lock_leave(RON_LOCK_SLAB);
}


/*
 * NGINX's function has no form for a list of arguments, so the line is made
 * here, no longer than NGINX would make it.
 */

void
__wrap_ngx_log_error_core(ngx_uint_t level, ngx_log_t *log, ngx_err_t err,
    const char *fmt, ...)
{
    u_char   *last, line[NGX_MAX_ERROR_STR];
    va_list   args;

    ron_lock_wait("a line of the error log");

    va_start(args, fmt);
    last = ngx_vslprintf(line, line + sizeof(line), fmt, args);
    va_end(args);

    __real_ngx_log_error_core(level, log, err, "%*s",
                              (size_t) (last - line), line);
}


#endif /* RON_LOCK_CHECK */
