
/*
 * What the helper samples from libron into the zone with each tick: failures
 * that libron has counted since it began, and what does not move.
 */

#include "ngx_ron.h"
#include "ron_registry.h"


static void ngx_ron_sample_delta(ron_metric_t metric, ngx_uint_t a,
    uint64_t now, uint64_t *seen);


/* of this helper's libron, what is in the zone already */

static ron_service_stat_t  ngx_ron_sample_seen;


void
ngx_ron_sample(const ron_service_stat_t *stat)
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

    ron_metric_set(ngx_ron_zone(), ngx_ron_slot(), RON_M_DISK_PRESSURE, 0, 0,
                   0, 0, stat->no_room);
    ron_metric_set(ngx_ron_zone(), ngx_ron_slot(), RON_M_WORKER_INFLIGHT, 0,
                   0, 0, 0, stat->work_taken);

    ron_metric_set(ngx_ron_zone(), ngx_ron_slot(), RON_M_QUEUE_CAPACITY_L, 0,
                   RON_D_Q_ROOT_PUB, 0, 0,
                   ron_queue_info(RON_QUEUE_ROOT_PUB)->capacity);
    ron_metric_set(ngx_ron_zone(), ngx_ron_slot(), RON_M_QUEUE_CAPACITY_W, 0,
                   RON_D_QUEUE_W_EVENTS, 0, 0,
                   ron_queue_info(RON_QUEUE_WALLET_EVENTS)->capacity);
}


/* The committer may have a remote wallet's too, which is admitted elsewhere. */

uint64_t
ngx_ron_sample_work(const ron_zone_t *zone, const ron_service_stat_t *stat)
{
    uint64_t  admitted;

    admitted = ron_zone_admitted(zone, RON_ADMIT_WORK);

    return admitted - ngx_min(admitted, stat->work_taken);
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
