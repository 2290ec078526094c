
/*
 * Tasks in the words of the seeds, and those that are started again.
 *
 * A worker process is one task of each kind that it does the work of, the
 * helper process likewise; sequencer and committer are threads; `worker` is
 * one operation from when it is sent to its answer.
 *
 *     spawned    it began
 *     canceled   it ended because it was asked to
 *     aborted    it was ended from outside: killed, or past its deadline
 *
 * A process that was killed counts nothing any more, so its successor does.
 * Whether a worker has a predecessor that died is known from how many have
 * begun and not ended: one more than there may be is a restart.
 */

#include "ngx_ron.h"


#define NGX_RON_QUIET        60
#define NGX_RON_GENERATION   32


static void ngx_ron_tasks_count(ngx_uint_t service, ngx_uint_t kind,
    ngx_ron_end_t end);
static ngx_uint_t ngx_ron_workers_add(ngx_cycle_t *cycle, ngx_int_t n);


ngx_uint_t
ngx_ron_restarted(ngx_cycle_t *cycle, ngx_uint_t task)
{
    time_t           now;
    ngx_uint_t       i, n, recent;
    ngx_ron_sh_t    *sh;
    ngx_ron_conf_t  *rcf;
    ngx_ron_task_t  *t;

    rcf = ngx_ron_get_conf(cycle);
    sh = ngx_ron_shared(cycle);

    if (sh == NULL) {
        return 0;
    }

    ngx_ron_count(RON_M_SERVICE_RESTARTS, RON_D_SERVICE_LEDGER, task, 0, 0);

    t = &sh->tasks[task];
    now = ngx_time();

    if (now - (time_t) t->last >= NGX_RON_QUIET) {
        t->looping = 0;
    }

    n = ngx_atomic_fetch_add(&t->n, 1);
    t->sec[n % NGX_RON_RESTARTS] = now;
    t->last = now;

    recent = 0;

    for (i = 0; i < NGX_RON_RESTARTS; i++) {
        recent += t->sec[i] && now - (time_t) t->sec[i] < NGX_RON_QUIET;
    }

    if (recent > rcf->restart_limit) {
        t->looping = 1;
    }

    return n + 1;
}


ngx_uint_t
ngx_ron_looping(ngx_cycle_t *cycle, ngx_uint_t task)
{
    ngx_ron_sh_t  *sh;

    sh = ngx_ron_shared(cycle);

    return sh && sh->tasks[task].looping
           && ngx_time() - (time_t) sh->tasks[task].last < NGX_RON_QUIET;
}


/* Of this generation; 0 when there is a newer one. */

static ngx_uint_t
ngx_ron_workers_add(ngx_cycle_t *cycle, ngx_int_t n)
{
    ngx_ron_sh_t       *sh;
    ngx_ron_conf_t     *rcf;
    ngx_atomic_uint_t   old, set, generation;

    rcf = ngx_ron_get_conf(cycle);
    sh = ngx_ron_shared(cycle);

    if (sh == NULL) {
        return 0;
    }

    generation = rcf->generation;

    for ( ;; ) {
        old = sh->workers;

        if (old >> NGX_RON_GENERATION > generation) {
            return 0;
        }

        set = old >> NGX_RON_GENERATION == generation
              ? old : generation << NGX_RON_GENERATION;
        set += n;

        if (ngx_atomic_cmp_set(&sh->workers, old, set)) {
            return set & 0xffffffff;
        }
    }
}


void
ngx_ron_worker_begins(ngx_cycle_t *cycle)
{
    ngx_uint_t        n;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    n = ngx_ron_workers_add(cycle, 1);

    if (n > (ngx_uint_t) ccf->worker_processes) {

        /* the one that died is not among them any more */

        (void) ngx_ron_workers_add(cycle, -1);
        (void) ngx_ron_restarted(cycle, RON_D_TASK_WORKER);
        ngx_ron_tasks_worker(NGX_RON_ABORTED);
    }

    ngx_ron_tasks_worker(NGX_RON_SPAWNED);
}


void
ngx_ron_worker_ends(ngx_cycle_t *cycle)
{
    (void) ngx_ron_workers_add(cycle, -1);

    ngx_ron_tasks_worker(NGX_RON_CANCELED);
}


void
ngx_ron_tasks_worker(ngx_ron_end_t end)
{
    ngx_ron_tasks_count(RON_D_SERVICE_LEDGER, RON_D_KIND_INGRESS, end);
    ngx_ron_tasks_count(RON_D_SERVICE_LEDGER, RON_D_KIND_PREVALIDATOR, end);
    ngx_ron_tasks_count(RON_D_SERVICE_LEDGER, RON_D_KIND_HEALTH, end);
    ngx_ron_tasks_count(RON_D_SERVICE_LEDGER, RON_D_KIND_METRICS, end);
    ngx_ron_tasks_count(RON_D_SERVICE_LEDGER, RON_D_KIND_ADMIN, end);
    ngx_ron_tasks_count(RON_D_SERVICE_WALLET, RON_D_KIND_LISTENER, end);
}


void
ngx_ron_tasks_helper(ngx_ron_end_t end)
{
    ngx_ron_tasks_count(RON_D_SERVICE_LEDGER, RON_D_KIND_ROOTS_PUBLISHER,
                        end);
    ngx_ron_tasks_count(RON_D_SERVICE_WALLET, RON_D_KIND_INVALIDATOR, end);
}


void
ngx_ron_tasks_thread(ngx_uint_t kind, ngx_ron_end_t end)
{
    ngx_ron_tasks_count(RON_D_SERVICE_LEDGER, kind, end);
}


void
ngx_ron_tasks_operation(ngx_uint_t service, ngx_ron_end_t end)
{
    ngx_ron_tasks_count(service, RON_D_KIND_WORKER, end);
}


static void
ngx_ron_tasks_count(ngx_uint_t service, ngx_uint_t kind, ngx_ron_end_t end)
{
    switch (end) {

    case NGX_RON_SPAWNED:
        ngx_ron_count(RON_M_TASKS_SPAWNED, service, kind, 0, 0);
        break;

    case NGX_RON_CANCELED:
        ngx_ron_count(RON_M_TASKS_CANCELED, service, kind, 0, 0);
        break;

    case NGX_RON_ABORTED:
        ngx_ron_count(RON_M_TASKS_ABORTED, service, kind, 0, 0);
        break;
    }
}
