
/*
 * The projector on a thread of its own.  It runs at idle priority, so on a
 * busy machine it gets what nobody else wants; what it holds while it waits
 * for the processor is its own database, never the journal's.
 */

#include "ron_history_impl.h"
#include "ron_log.h"
#include "ron_port.h"

#include <stdatomic.h>
#include <stdlib.h>


/*
 * How often it looks for more, and again after a failure.  Under load a step
 * waits for company: the pages of accounts that many entries touch are then
 * written once for all of them.
 */
#define RON_HISTORY_NAP_US    UINT64_C(200000)
#define RON_HISTORY_LOAD_US   UINT64_C(500000)
#define RON_HISTORY_LOAD_N    2000
#define RON_HISTORY_RETRY_US  UINT64_C(1000000)


struct ron_history_thread_s {
    ron_store_t         *store;
    ron_history_conf_t   conf;
    ron_thread_t        *thread;
    ron_mutex_t         *mutex;
    ron_cond_t          *cond;
    ron_history_t       *history;       /* under mutex, once it is open */
    bool                 stopping;
    _Atomic uint64_t     watermark;
    _Atomic int          status;
};


static void ron_history_main(void *arg);
static ron_status_t ron_history_turn(ron_history_thread_t *t,
    ron_history_t **history, ron_buf_t *why);
static void ron_history_report(ron_history_thread_t *t,
    const ron_history_t *history, ron_status_t status, const ron_buf_t *why);
static uint64_t ron_history_nap(const ron_history_t *history,
    uint64_t before);
static void ron_history_end(ron_history_thread_t *t,
    ron_history_t **history);
static bool ron_history_pause(ron_history_thread_t *t, uint64_t us);
static void ron_history_thread_free(ron_history_thread_t *t);


ron_status_t
ron_history_thread_start(const ron_store_conf_t *store,
    const ron_history_conf_t *conf, ron_history_thread_t **thread,
    ron_buf_t *why)
{
    ron_status_t           status;
    ron_store_conf_t       own;
    ron_history_thread_t  *t;

    *thread = NULL;

    t = calloc(1, sizeof(ron_history_thread_t));
    if (t == NULL) {
        return RON_ENOMEM;
    }

    t->conf = *conf;
    own = *store;
    own.create = false;
    status = ron_store_open(&own, &t->store);

    if (status != RON_OK) {
        ron_buf_put_cstr(why, ron_store_error(NULL));

    } else if (ron_store_dir(t->store) == NULL) {
        ron_buf_put_cstr(why, "a ledger in memory has no history");
        status = RON_ENOTFOUND;
    }

    if (status == RON_OK) {
        status = ron_mutex_create(&t->mutex, RON_LOCK_HISTORY);
    }

    if (status == RON_OK) {
        status = ron_cond_create(&t->cond);
    }

    if (status == RON_OK) {
        status = ron_thread_start(&t->thread, "ron-history", RON_THREAD_IDLE,
                                  ron_history_main, t);
    }

    if (status != RON_OK) {
        ron_history_thread_free(t);
        return status;
    }

    *thread = t;

    return RON_OK;
}


static void
ron_history_main(void *arg)
{
    uint64_t               us, before;
    ron_buf_t              why;
    ron_status_t           status;
    ron_history_t         *history;
    ron_history_thread_t  *t = arg;

    history = NULL;
    ron_buf_init(&why, 256);

    for ( ;; ) {
        ron_buf_reset(&why);
        before = history != NULL ? ron_history_watermark(history) : 0;
        status = ron_history_turn(t, &history, &why);
        ron_history_report(t, history, status, &why);

        us = status == RON_OK
             ? ron_history_nap(history, before)
             : status == RON_ENOTFOUND && history != NULL
               ? RON_HISTORY_NAP_US : RON_HISTORY_RETRY_US;

        if (ron_history_pause(t, us)) {
            break;
        }
    }

    ron_history_end(t, &history);
    ron_buf_free(&why);
}


/* After a step that began behind this entry. */

static uint64_t
ron_history_nap(const ron_history_t *history, uint64_t before)
{
    if (ron_history_more(history)) {
        return 0;
    }

    return ron_history_watermark(history) - before >= RON_HISTORY_LOAD_N
               ? RON_HISTORY_LOAD_US : RON_HISTORY_NAP_US;
}


/* From now on nobody may interrupt it: it is as good as closed. */

static void
ron_history_end(ron_history_thread_t *t, ron_history_t **history)
{
    ron_mutex_lock(t->mutex);
    t->history = NULL;
    ron_mutex_unlock(t->mutex);

    ron_history_close(*history);
    *history = NULL;
}


/* A projector that failed is closed: the next turn opens it anew. */

static ron_status_t
ron_history_turn(ron_history_thread_t *t, ron_history_t **history,
    ron_buf_t *why)
{
    ron_status_t  status;

    status = *history == NULL
                 ? ron_history_open(t->store, &t->conf, history, why)
                 : RON_OK;

    ron_mutex_lock(t->mutex);
    t->history = *history;

    if (t->stopping && *history != NULL) {

        /* it was not there yet when the others were told */

        ron_history_abandon(*history);
    }

    ron_mutex_unlock(t->mutex);

    if (status == RON_OK) {
        status = ron_history_step(*history, 0, why);
    }

    if (status != RON_OK && status != RON_ENOTFOUND && status != RON_AGAIN) {
        ron_history_end(t, history);
    }

    return status;
}


static void
ron_history_report(ron_history_thread_t *t, const ron_history_t *history,
    ron_status_t status, const ron_buf_t *why)
{
    bool  changed;

    if (history != NULL) {
        atomic_store(&t->watermark, ron_history_watermark(history));
    }

    if (status == RON_AGAIN) {
        return;
    }

    if (status == RON_ENOTFOUND && history != NULL) {
        status = RON_OK;
    }

    changed = (int) status != atomic_exchange(&t->status, (int) status);

    if (changed && status == RON_OK) {
        ron_log(RON_LOG_INFO, "history: projecting again");

    } else if (changed && status != RON_EFENCED) {
        ron_log(RON_LOG_WARN, "history: %.*s", (int) why->len,
                why->len ? (const char *) why->data : "");
    }
}


static bool
ron_history_pause(ron_history_thread_t *t, uint64_t us)
{
    bool  stopping;

    ron_mutex_lock(t->mutex);

    if (us != 0 && !t->stopping) {
        (void) ron_cond_wait(t->cond, t->mutex, us);
    }

    stopping = t->stopping;

    ron_mutex_unlock(t->mutex);

    return stopping;
}


void
ron_history_thread_stat(ron_history_thread_t *t, ron_history_stat_t *stat)
{
    stat->watermark = atomic_load(&t->watermark);
    stat->status = (ron_status_t) atomic_load(&t->status);
}


void
ron_history_thread_cancel(ron_history_thread_t *t)
{
    ron_mutex_lock(t->mutex);
    t->stopping = true;

    if (t->history != NULL) {
        ron_history_abandon(t->history);
    }

    ron_cond_broadcast(t->cond);
    ron_mutex_unlock(t->mutex);

    ron_thread_hurry(t->thread);
}


ron_status_t
ron_history_thread_stop(ron_history_thread_t *t, uint64_t timeout_ms)
{
    ron_status_t  status;

    ron_history_thread_cancel(t);

    status = ron_thread_join(t->thread, timeout_ms);
    if (status != RON_OK) {
        return status;
    }

    t->thread = NULL;
    ron_history_thread_free(t);

    return RON_OK;
}


static void
ron_history_thread_free(ron_history_thread_t *t)
{
    if (t->cond != NULL) {
        ron_cond_destroy(t->cond);
    }

    if (t->mutex != NULL) {
        ron_mutex_destroy(t->mutex);
    }

    ron_store_close(t->store);
    free(t);
}
