
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

#include <ngx_channel.h>
#include <poll.h>
#include <sys/prctl.h>


#define NGX_RON_QUIET        60
#define NGX_RON_GENERATION   32

#define NGX_RON_JITTER          51
#define NGX_RON_BACKOFF_MIN     100
#define NGX_RON_BACKOFF_JITTER  300
#define NGX_RON_BACKOFF_MAX     5000

/* A worker that has lived for so long had worked. */
#define NGX_RON_WORKED          1000


static void ngx_ron_tasks_count(ngx_uint_t service, ngx_uint_t kind,
    ngx_ron_end_t end);
static ngx_uint_t ngx_ron_workers_add(ngx_cycle_t *cycle, ngx_int_t n);
static void ngx_ron_worker_again(ngx_cycle_t *cycle, ngx_ron_sh_t *sh);
static void ngx_ron_worker_pause(ngx_msec_t delay, ngx_log_t *log);
static void ngx_ron_worker_leave(ngx_event_t *ev);


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


ngx_msec_t
ngx_ron_backoff(ngx_atomic_t *backoff, ngx_uint_t worked)
{
    if (worked) {
        *backoff = 0;
        return ngx_random() % NGX_RON_JITTER;
    }

    if (*backoff == 0) {
        *backoff = NGX_RON_BACKOFF_MIN
                   + ngx_random() % NGX_RON_BACKOFF_JITTER;

    } else {
        *backoff = ngx_min(*backoff * 2, NGX_RON_BACKOFF_MAX);
    }

    return *backoff;
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


/*
 * A master that was killed leaves nobody who would start the helper again, or
 * tell anybody to go: its workers end by themselves.  It may have died before
 * the signal was asked for; then ours is another parent by now.
 */

void
ngx_ron_worker_orphan(ngx_cycle_t *cycle)
{
    ngx_event_t  *ev;

    static ngx_event_t  leave;

    if (prctl(PR_SET_PDEATHSIG, SIGQUIT) == -1) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, ngx_errno,
                      "prctl(PR_SET_PDEATHSIG) failed");
    }

    if (getppid() == ngx_parent) {
        return;
    }

    ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                  "ron: the master %P is gone, leaving", ngx_parent);

    /* the loop looks at ngx_quit after its first event */

    ev = &leave;
    ev->handler = ngx_ron_worker_leave;
    ev->data = &ngx_ron_ident;
    ev->log = cycle->log;

    ngx_add_timer(ev, 1);
}


static void
ngx_ron_worker_leave(ngx_event_t *ev)
{
    ngx_quit = 1;
}


void
ngx_ron_worker_begins(ngx_cycle_t *cycle)
{
    ngx_uint_t        n;
    ngx_ron_sh_t     *sh;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    sh = ngx_ron_shared(cycle);

    n = ngx_ron_workers_add(cycle, 1);

    ngx_ron_tasks_worker(NGX_RON_SPAWNED);

    if (n > (ngx_uint_t) ccf->worker_processes) {

        /* the one that died is not among them any more */

        (void) ngx_ron_workers_add(cycle, -1);
        ngx_ron_tasks_worker(NGX_RON_ABORTED);
        ngx_ron_worker_again(cycle, sh);
    }

    if (sh) {
        sh->worker[ngx_worker % NGX_RON_WORKERS].since = ngx_ron_now();
    }
}


/* In the place of one that died: not at once, when that did not live long. */

static void
ngx_ron_worker_again(ngx_cycle_t *cycle, ngx_ron_sh_t *sh)
{
    uint64_t        since;
    ngx_uint_t      n, i;
    ngx_msec_t      delay;

    i = ngx_worker % NGX_RON_WORKERS;
    since = sh->worker[i].since;
    sh->worker[i].since = 0;

    n = ngx_ron_restarted(cycle, RON_D_TASK_WORKER);

    delay = ngx_ron_backoff(&sh->worker[i].backoff,
                            since
                            && ngx_ron_now() - since >= NGX_RON_WORKED);

    ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                  "ron: worker %ui died, restart %ui of a worker in %M ms",
                  ngx_worker, n, delay);

    ngx_ron_worker_pause(delay, cycle->log);
}


/*
 * The loop of events has not begun, so what the master says is looked at
 * here: of others that were started and ended it is taken as NGINX would, and
 * everything else ends the pause and is left for the loop.
 */

static void
ngx_ron_worker_pause(ngx_msec_t delay, ngx_log_t *log)
{
    uint64_t       now, end;
    struct pollfd  pfd;
    ngx_channel_t  ch;

    end = ngx_ron_now() + delay;
    pfd.fd = ngx_channel;
    pfd.events = POLLIN;

    for ( ;; ) {
        now = ngx_ron_now();

        if (ngx_quit || ngx_terminate || now >= end) {
            break;
        }

        if (poll(&pfd, 1, end - now) <= 0) {
            continue;
        }

        if (recv(ngx_channel, &ch, sizeof(ngx_channel_t), MSG_PEEK)
            != sizeof(ngx_channel_t)
            || (ch.command != NGX_CMD_OPEN_CHANNEL
                && ch.command != NGX_CMD_CLOSE_CHANNEL)
            || ngx_read_channel(ngx_channel, &ch, sizeof(ngx_channel_t), log)
               != sizeof(ngx_channel_t))
        {
            break;
        }

        if (ch.command == NGX_CMD_OPEN_CHANNEL) {
            ngx_processes[ch.slot].pid = ch.pid;
            ngx_processes[ch.slot].channel[0] = ch.fd;

        } else {
            (void) close(ngx_processes[ch.slot].channel[0]);
            ngx_processes[ch.slot].channel[0] = -1;
        }
    }

    ngx_time_update();
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


/* A worker's, of a wallet whose ledger is another server. */

void
ngx_ron_tasks_invalidator(ngx_ron_end_t end)
{
    ngx_ron_tasks_count(RON_D_SERVICE_WALLET, RON_D_KIND_INVALIDATOR, end);
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
