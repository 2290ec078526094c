
/*
 * What the helper samples from libron into the zone: what libron has counted
 * since it began, and how things are.
 */

#include "ngx_ron.h"
#include "ron_registry.h"


static void ngx_ron_sample_queues(ron_zone_t *zone, uint32_t slot,
    ngx_ron_conf_t *rcf, const ron_service_stat_t *stat);
static void ngx_ron_sample_clock(ngx_ron_sh_t *sh);
static void ngx_ron_sample_refused(ngx_uint_t capacity);
static void ngx_ron_sample_delta(ron_metric_t metric, ngx_uint_t a,
    uint64_t now, uint64_t *seen);


/* of this helper's libron, what is in the zone already */

static ron_service_stat_t  ngx_ron_sample_seen;

/* what the commit queue refused, in the helper or on a worker's own account */

static struct {
    uint64_t    seen;
    uint64_t    before;
    ngx_msec_t  last;
    unsigned    begun:1;
    unsigned    episode:1;
} ngx_ron_sample_commit;


ngx_uint_t
ngx_ron_sample_due(const ron_service_stat_t *stat, uint64_t now_us)
{
    ngx_uint_t       due;
    ngx_ron_conf_t  *rcf;

    static uint64_t    at;
    static ron_life_t  state = RON_STATE_N;

    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);

    due = stat->state != state
          || now_us - at >= (uint64_t) rcf->metrics_tick * 1000;

    if (due) {
        at = now_us;
        state = stat->state;
    }

    return due;
}


/* Each time, and once more at the end: what is not told here is lost. */

void
ngx_ron_sample_counts(const ron_service_stat_t *stat)
{
    uint64_t             gaps;
    ron_service_stat_t  *seen;

    seen = &ngx_ron_sample_seen;
    gaps = seen->gaps;

    ngx_ron_sample_delta(RON_M_WAL_FSYNC_FAIL, 0, stat->sync_failures,
                         &seen->sync_failures);
    ngx_ron_sample_delta(RON_M_SEQ_GAP, 0, stat->gaps, &gaps);
    ngx_ron_sample_delta(RON_M_LEDGER_SEQ_GAP, 0, stat->gaps, &seen->gaps);
    ngx_ron_sample_delta(RON_M_WALLET_CONSERVATION, RON_D_CHECK_OK,
                         stat->conserved, &seen->conserved);
    ngx_ron_sample_delta(RON_M_WALLET_CONSERVATION, RON_D_CHECK_FAIL,
                         stat->not_conserved, &seen->not_conserved);
    ngx_ron_sample_delta(RON_M_DROPS, RON_D_Q_PREVAL, stat->preval_drops,
                         &seen->preval_drops);
    ngx_ron_sample_delta(RON_M_BUSY_L, RON_D_Q_COMMIT, stat->commit_rejects,
                         &seen->commit_rejects);
    ngx_ron_sample_delta(RON_M_BUSY_L, RON_D_Q_BALANCES,
                         stat->balance_rejects, &seen->balance_rejects);
    ngx_ron_sample_delta(RON_M_AUTH_FAILURES_L, RON_D_PEER_CLASS_WORKER,
                         stat->auth_failures, &seen->auth_failures);
}


void
ngx_ron_sample(const ron_service_stat_t *stat, uint64_t now_us)
{
    uint32_t         slot;
    ron_zone_t      *zone;
    ngx_ron_conf_t  *rcf;

    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);
    zone = ngx_ron_zone();
    slot = ngx_ron_slot();

    ron_metric_set(zone, slot, RON_M_LEDGER_SEQ, 0, 0, 0, 0, stat->seq);
    ron_metric_set(zone, slot, RON_M_LEDGER_BACKLOG, 0, 0, 0, 0,
                   stat->preval_depth + stat->commit_depth);
    ron_metric_set(zone, slot, RON_M_LEDGER_SAFE_MODE, 0, 0, 0, 0,
                   stat->state == RON_STATE_SAFE_MODE);
    ron_metric_set(zone, slot, RON_M_COMMITTER_LAG, 0, 0, 0, 0,
                   stat->sync_since_us && stat->sync_since_us < now_us
                       ? now_us - stat->sync_since_us : 0);
    ron_metric_set(zone, slot, RON_M_DISK_PRESSURE, 0, 0, 0, 0, stat->no_room);
    ron_metric_set(zone, slot, RON_M_WORKER_INFLIGHT, 0, 0, 0, 0,
                   stat->work_taken);

    ngx_ron_sample_queues(zone, slot, rcf, stat);
    ngx_ron_sample_clock(ngx_ron_shared((ngx_cycle_t *) ngx_cycle));
    ngx_ron_sample_refused(rcf->queue_commit);
}


/* Those that somebody else counts have their capacity only. */

static void
ngx_ron_sample_queues(ron_zone_t *zone, uint32_t slot, ngx_ron_conf_t *rcf,
    const ron_service_stat_t *stat)
{
    uint64_t          work;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(ngx_cycle->conf_ctx,
                                           ngx_core_module);

    /*
     * Operations of wallets that are in, without those at the committer, which
     * may have a remote wallet's too: those are admitted elsewhere.
     */

    work = ron_zone_admitted(zone, RON_ADMIT_WORK);
    work -= ngx_min(work, stat->work_taken);

    ron_metric_set(zone, slot, RON_M_QUEUE_DEPTH_L, 0, RON_D_Q_INGRESS, 0, 0,
                   ron_zone_admitted(zone, RON_ADMIT_INGRESS));
    ron_metric_set(zone, slot, RON_M_QUEUE_DEPTH_L, 0, RON_D_Q_PREVAL, 0, 0,
                   stat->preval_depth);
    ron_metric_set(zone, slot, RON_M_QUEUE_DEPTH_L, 0, RON_D_Q_COMMIT, 0, 0,
                   stat->commit_depth);
    ron_metric_set(zone, slot, RON_M_QUEUE_DEPTH_L, 0, RON_D_Q_PARSE, 0, 0,
                   ron_zone_admitted(zone, RON_ADMIT_PARSE_WAIT));
    ron_metric_set(zone, slot, RON_M_QUEUE_DEPTH_L, 0, RON_D_Q_BALANCES, 0, 0,
                   stat->balance_depth);
    ron_metric_set(zone, slot, RON_M_QUEUE_DEPTH_W, 0, RON_D_QUEUE_W_WORK, 0,
                   0, work);

    ron_metric_set(zone, slot, RON_M_QUEUE_CAPACITY_L, 0, RON_D_Q_INGRESS, 0,
                   0, rcf->queue_ingress);
    ron_metric_set(zone, slot, RON_M_QUEUE_CAPACITY_L, 0, RON_D_Q_PREVAL, 0, 0,
                   rcf->queue_preval);
    ron_metric_set(zone, slot, RON_M_QUEUE_CAPACITY_L, 0, RON_D_Q_COMMIT, 0, 0,
                   rcf->queue_commit);
    ron_metric_set(zone, slot, RON_M_QUEUE_CAPACITY_L, 0, RON_D_Q_PARSE, 0, 0,
                   rcf->queue_parse);
    ron_metric_set(zone, slot, RON_M_QUEUE_CAPACITY_L, 0, RON_D_Q_PROOFS, 0, 0,
                   rcf->queue_proofs * ccf->worker_processes);
    ron_metric_set(zone, slot, RON_M_QUEUE_CAPACITY_L, 0, RON_D_Q_BALANCES, 0,
                   0, ron_queue_info(RON_QUEUE_BALANCES)->capacity);
    ron_metric_set(zone, slot, RON_M_QUEUE_CAPACITY_L, 0, RON_D_Q_ROOT_PUB, 0,
                   0, ron_queue_info(RON_QUEUE_ROOT_PUB)->capacity);
    ron_metric_set(zone, slot, RON_M_QUEUE_CAPACITY_W, 0, RON_D_QUEUE_W_WORK,
                   0, 0, rcf->queue_work);
    ron_metric_set(zone, slot, RON_M_QUEUE_CAPACITY_W, 0,
                   RON_D_QUEUE_W_EVENTS, 0, 0,
                   ron_queue_info(RON_QUEUE_WALLET_EVENTS)->capacity);
}


/* What was counted is in shared memory as well: helpers come and go. */

static void
ngx_ron_sample_clock(ngx_ron_sh_t *sh)
{
    ron_metric_set(ngx_ron_zone(), ngx_ron_slot(), RON_M_CLOCK_DRIFT, 0, 0,
                   0, 0, sh->clock.drift_us);

    ngx_ron_sample_delta(RON_M_CLOCK_STEPS, 0, sh->clock.steps,
                         &sh->clock_steps);
    ngx_ron_sample_delta(RON_M_CLOCK_LEAPS, 0, sh->clock.leaps,
                         &sh->clock_leaps);
}


/*
 * Under overload the queue is full and has room again many times a second: it
 * is one episode, with one line when it begins and one when it is over.
 */

static void
ngx_ron_sample_refused(ngx_uint_t capacity)
{
    uint64_t    n;
    ngx_msec_t  quiet;

    n = ron_metric_read(ngx_ron_zone(), RON_M_BUSY_L, 0, RON_D_Q_COMMIT, 0,
                        0);
    quiet = ron_timeout_info(RON_TIMEOUT_EPISODE)->ms;

    if (!ngx_ron_sample_commit.begun) {
        ngx_ron_sample_commit.begun = 1;
        ngx_ron_sample_commit.seen = n;
    }

    if (n != ngx_ron_sample_commit.seen) {

        if (!ngx_ron_sample_commit.episode) {
            ngx_ron_sample_commit.episode = 1;
            ngx_ron_sample_commit.before = ngx_ron_sample_commit.seen;

            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "ron: the committer is behind, its queue of %ui is "
                          "full: writes are refused", capacity);
        }

        ngx_ron_sample_commit.seen = n;
        ngx_ron_sample_commit.last = ngx_current_msec;
        return;
    }

    if (ngx_ron_sample_commit.episode
        && ngx_current_msec - ngx_ron_sample_commit.last >= quiet)
    {
        ngx_ron_sample_commit.episode = 0;

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "ron: the committer keeps up again: %uL writes were "
                      "refused", n - ngx_ron_sample_commit.before);
    }
}


/* libron counts since it began; a counter of the zone never goes down. */

static void
ngx_ron_sample_delta(ron_metric_t metric, ngx_uint_t a, uint64_t now,
    uint64_t *seen)
{
    if (now > *seen) {
        ngx_ron_count_n(metric, 0, a, 0, 0, now - *seen);
        *seen = now;
    }
}
