
/*
 * What the service counts, and how others read it.
 *
 * A failure is counted where it is found out, once an incident: safe mode
 * tries the same journal again and again, and that is not a second gap.
 */

#include "ron_service_impl.h"


static bool ron_service_marked_full(ron_service_t *s);


void
ron_service_stat(ron_service_t *service, ron_service_stat_t *stat)
{
    uint32_t  i;
    uint64_t  w[RON_STAT_N];

    for (i = 0; i < RON_STAT_N; i++) {
        w[i] = atomic_load_explicit(&service->stat[i], memory_order_relaxed);
    }

    stat->state = (ron_life_t) w[RON_STAT_STATE];
    stat->writer = w[RON_STAT_WRITER] != 0;
    stat->preval_depth = w[RON_STAT_PREVAL_DEPTH];
    stat->preval_drops = w[RON_STAT_PREVAL_DROPS];
    stat->commit_depth = w[RON_STAT_COMMIT_DEPTH];
    stat->commit_rejects = w[RON_STAT_COMMIT_REJECTS];
    stat->balance_depth = w[RON_STAT_BALANCE_DEPTH];
    stat->balance_rejects = w[RON_STAT_BALANCE_REJECTS];
    stat->work_taken = w[RON_STAT_WORK_TAKEN];
    stat->connections = w[RON_STAT_CONNECTIONS];
    stat->units = w[RON_STAT_UNITS];
    stat->batches = w[RON_STAT_BATCHES];
    stat->entries = w[RON_STAT_ENTRIES];
    stat->seq = w[RON_STAT_SEQ];
    stat->time_ms = w[RON_STAT_TIME_MS];
    stat->committed_ms = w[RON_STAT_COMMITTED_MS];
    stat->sync_since_us = w[RON_STAT_SYNC_SINCE_US];
    stat->auth_failures = w[RON_STAT_AUTH_FAILURES];
    stat->denied = w[RON_STAT_DENIED];
    stat->protocol_errors = w[RON_STAT_PROTOCOL_ERRORS];
    stat->slow_closed = w[RON_STAT_SLOW_CLOSED];
    stat->safe_entered = w[RON_STAT_SAFE_ENTERED];
    stat->sync_failures = w[RON_STAT_SYNC_FAILURES];
    stat->gaps = w[RON_STAT_GAPS];
    stat->conserved = w[RON_STAT_CONSERVED];
    stat->not_conserved = w[RON_STAT_NOT_CONSERVED];
    stat->no_room = w[RON_STAT_NO_ROOM] != 0;
}


/*
 * What waits for the committer, and what it has of wallets: decided, taken
 * out of the queue, and not answered.
 */

void
ron_service_depths(ron_service_t *s)
{
    ron_engine_stat_t  stat;

    ron_engine_stat(s->engine, &stat);

    ron_service_gauge(s, RON_STAT_COMMIT_DEPTH, stat.queue_units);
    ron_service_gauge(s, RON_STAT_WORK_TAKEN,
                      s->work_n - ron_min(s->work_n, stat.queue_work));
}


void
ron_service_found(ron_service_t *s, ron_status_t status)
{
    if (status == RON_ECORRUPT && !s->gap) {
        s->gap = true;
        ron_service_count(s, RON_STAT_GAPS, 1);
    }

    /* The mark of an earlier helper says what that one met. */

    if (status == RON_EFULL
        || (status == RON_ECANCELED && ron_service_marked_full(s)))
    {
        ron_service_gauge(s, RON_STAT_NO_ROOM, 1);
    }
}


static bool
ron_service_marked_full(ron_service_t *s)
{
    bool       full;
    ron_str_t  text, word;
    ron_buf_t  reason;

    word = ron_str("disk_full");
    ron_buf_init(&reason, 0);

    full = s->engine != NULL
           && ron_store_mark_read(ron_engine_store(s->engine), &reason)
              == RON_OK;

    text = ron_buf_str(&reason);
    full = full && text.len >= word.len
           && memcmp(text.data, word.data, word.len) == 0;

    ron_buf_free(&reason);

    return full;
}


void
ron_service_summed(ron_service_t *s)
{
    ron_engine_stat_t  stat;

    ron_engine_stat(s->engine, &stat);

    if (stat.summed) {
        ron_service_count(s, stat.conserved ? RON_STAT_CONSERVED
                                            : RON_STAT_NOT_CONSERVED, 1);
    }
}


/* A batch behind a failed one was not tried, and a fence is no failure. */

void
ron_service_tried(ron_service_t *s, ron_status_t status)
{
    switch (status) {

    case RON_OK:
    case RON_ECANCELED:
    case RON_EFENCED:
        return;

    default:
        ron_service_count(s, RON_STAT_SYNC_FAILURES, 1);
    }
}


void
ron_service_timed(ron_service_t *s)
{
    uint64_t           now_us;
    ron_engine_stat_t  stat;

    now_us = ron_clock_mono_us();
    ron_engine_stat(s->engine, &stat);

    ron_log(RON_LOG_INFO, "ledger taken over: %llu entries read, %llu ms to"
            " level, %llu ms for the lock and the checks",
            (unsigned long long) stat.replayed,
            (unsigned long long) (s->lock_us - s->open_us) / 1000,
            (unsigned long long) (now_us - s->lock_us) / 1000);
}
