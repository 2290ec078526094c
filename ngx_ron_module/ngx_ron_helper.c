
/*
 * The helper: NGINX's cache manager process, in which libron's threads run
 * the ledger.  This is its event loop's side: it starts them, says in shared
 * memory how they are, and stops them.
 *
 *     first call of the manager -> wrap the channel -> (wait) -> start
 *     quit from the master      -> a successor is there: exit now
 *                                  no successor: serve until the workers are
 *                                  gone, or the drain deadline
 *     exit(0), whoever calls it -> stop libron within 200 ms, or _exit(0)
 *
 * NGINX's own handler of the channel would let the process exit at the first
 * word of the master, before workers have finished.  An exit() while a thread
 * works is not safe, so nothing here exits on an error: it is logged, and
 * tried again.
 */

#include "ngx_ron.h"
#include "ron_history.h"
#include "ron_port.h"

#include <ngx_channel.h>
#include <sys/stat.h>


#define NGX_RON_TICK            50
#define NGX_RON_STALE_US        200000
#define NGX_RON_SWEEP           20
#define NGX_RON_RETRY           1000
#define NGX_RON_HELPER_AHEAD    16u


static void ngx_ron_helper_init(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf);
static uint64_t ngx_ron_helper_newest(void);
static ngx_msec_t ngx_ron_helper_delay(ngx_ron_conf_t *rcf,
    ngx_ron_sh_t *sh, ngx_log_t *log);
static void ngx_ron_helper_wrap(ngx_cycle_t *cycle);
static void ngx_ron_helper_channel(ngx_event_t *ev);
static void ngx_ron_helper_quit(void);
static uint64_t ngx_ron_helper_workers(void);
static void ngx_ron_helper_tick(ngx_event_t *ev);
static void ngx_ron_helper_start(ngx_event_t *ev);
static void ngx_ron_helper_publish(void);
static ngx_uint_t ngx_ron_helper_speaks(const ron_zone_t *zone,
    const ron_service_stat_t *stat, uint64_t now_us);
static void ngx_ron_helper_beat(const ron_zone_t *zone);
static void ngx_ron_helper_committers(void);
static void ngx_ron_helper_project(ngx_log_t *log);
static uint64_t ngx_ron_helper_admitted(void *ctx);
static void ngx_ron_helper_on_head(void *ctx, uint64_t seq, uint64_t time_ms,
    const ron_hash_t *root);
static void ngx_ron_helper_on_state(void *ctx, ron_life_t state,
    const char *reason);
static ngx_uint_t ngx_ron_helper_safe_reason(const char *reason);
static bool ngx_ron_helper_alive(void *ctx, uint32_t pid);
static void ngx_ron_helper_exit(void);
static void ngx_ron_helper_last(ngx_uint_t level, ngx_uint_t drained,
    uint64_t aborted, uint64_t canceled, uint64_t leaked, uint64_t seq);
static void ngx_ron_helper_ended(ngx_ron_end_t end);
static void ngx_ron_helper_left(ngx_ron_sh_t *sh);
static void ngx_ron_helper_on_commit(void *ctx, const ron_batch_t *batch);
static void ngx_ron_helper_balances(const ron_zone_t *zone,
    const ron_batch_t *batch, ron_bus_filter_t *touched);
static void ngx_ron_helper_balance(const ron_zone_t *zone,
    const ron_balance_t *balance, const ron_zone_key_t *key, uint64_t seq,
    uint64_t now);
static void ngx_ron_helper_on_balance(void *ctx,
    const ron_balance_t *balance, uint64_t seq);


static ngx_cycle_t         *ngx_ron_helper_cycle;
static ngx_connection_t    *ngx_ron_helper_channel_c;
static ngx_event_handler_pt ngx_ron_helper_channel_handler;
static ngx_event_t          ngx_ron_helper_tick_ev;
static ngx_event_t          ngx_ron_helper_start_ev;
static ron_service_t       *ngx_ron_helper_service;
static ngx_uint_t           ngx_ron_helper_unclean;
static ngx_uint_t           ngx_ron_helper_begun;   /* committers, counted */
static uint64_t             ngx_ron_helper_published;
static ron_history_thread_t *ngx_ron_helper_history;
static ngx_uint_t           ngx_ron_helper_history_told;
static ngx_uint_t           ngx_ron_helper_history_cut;
static uint64_t             ngx_ron_helper_drain_end;
static ngx_uint_t           ngx_ron_helper_drained;
static ngx_uint_t           ngx_ron_helper_ticks;


/* the sequencer's: balances were wiped, why it is in safe mode (0: is not) */

static ngx_uint_t           ngx_ron_helper_wiped;
static ngx_uint_t           ngx_ron_helper_safe;

#define ngx_ron_helper_text(dim, id, text)  text,

static const char  *ngx_ron_helper_safe_reasons[] = {
    RON_DIM_SAFE_REASON(ngx_ron_helper_text)
};


/* the newest durable batch, under the mutex; so is the beat written */

static ngx_uint_t           ngx_ron_helper_headed;  /* took the lock */

static uint64_t             ngx_ron_helper_seq;
static uint64_t             ngx_ron_helper_time;
static ron_hash_t           ngx_ron_helper_root;
static ron_bus_key_t        ngx_ron_helper_bus;
static uint64_t             ngx_ron_helper_sampled_us;
static ron_mutex_t         *ngx_ron_helper_mutex;


ngx_msec_t
ngx_ron_helper_manager(void *data)
{
    if (ngx_process == NGX_PROCESS_HELPER && ngx_ron_helper_cycle == NULL) {
        ngx_ron_helper_cycle = (ngx_cycle_t *) ngx_cycle;
        ngx_ron_helper_init(ngx_ron_helper_cycle,
                            ngx_ron_get_conf(ngx_ron_helper_cycle));
    }

    /* NGINX's timer for all managers; ours are our own */

    return 3600 * 1000;
}


static void
ngx_ron_helper_init(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf)
{
    ngx_msec_t     delay;
    ngx_event_t   *ev;
    ngx_ron_sh_t  *sh;

    umask(0077);

    /* before there are threads: they go where this one does */

    if (rcf->cpus_n) {
        ngx_setaffinity(&rcf->cpus, cycle->log);
    }

    ngx_ron_log_init(cycle->log->log_level);

    if (ron_mutex_create(&ngx_ron_helper_mutex, RON_LOCK_HELPER) != RON_OK) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "ron: no mutex");
        return;
    }

    if (atexit(ngx_ron_helper_exit) != 0) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0, "atexit() failed");
    }

    ngx_ron_slot_claim(cycle);
    ngx_ron_otlp_helper(cycle);
    ngx_ron_events_init(cycle);
    ngx_ron_helper_wrap(cycle);

    sh = ngx_ron_shared(cycle);
    delay = ngx_ron_helper_delay(rcf, sh, cycle->log);

    /* with a reload the one before is alive, and no reason for a replay */

    ngx_ron_helper_unclean = !sh->helper_clean
                             && !ngx_ron_helper_alive(NULL, sh->helper_pid);
    ngx_ron_helper_published = ngx_ron_helper_newest();

    sh->helper_clean = 0;
    sh->helper_committed = 0;
    sh->helper_headed = 0;
    sh->helper_generation = rcf->generation;
    sh->helper_pid = ngx_pid;

    ngx_ron_tasks_helper(NGX_RON_SPAWNED);

    ev = &ngx_ron_helper_tick_ev;
    ev->handler = ngx_ron_helper_tick;
    ev->data = &ngx_ron_ident;
    ev->log = cycle->log;

    ngx_add_timer(ev, NGX_RON_TICK);

    ev = &ngx_ron_helper_start_ev;
    ev->handler = ngx_ron_helper_start;
    ev->data = &ngx_ron_ident;
    ev->log = cycle->log;

    if (delay) {
        ngx_add_timer(ev, delay);

    } else {
        ngx_ron_helper_start(ev);
    }
}


/*
 * The highest seq that anybody was told of.  A zone that outlived its helper
 * remembers it; one that is new knows nothing.
 */

static uint64_t
ngx_ron_helper_newest(void)
{
    uint64_t      seq, lost, cursor;
    ron_beat_t    beat;
    ron_zone_t   *zone;
    ron_event_t   event;

    zone = ngx_ron_zone();
    seq = 0;

    if (zone == NULL) {
        return 0;
    }

    if (ron_zone_beat_read(zone, &beat) == RON_OK && beat.generation) {
        seq = beat.seq;
    }

    cursor = 0;

    while (ron_zone_event_get(zone, RON_RING_LEDGER, &cursor, &event, &lost)
           == RON_OK)
    {
        if (event.type == RON_EVENT_COMMIT) {
            seq = ngx_max(seq, event.seq);
        }
    }

    return seq;
}


/*
 * A helper that dies before it has committed anything would be forked again
 * at once, hundreds of times a second.
 */

static ngx_msec_t
ngx_ron_helper_delay(ngx_ron_conf_t *rcf, ngx_ron_sh_t *sh, ngx_log_t *log)
{
    ngx_uint_t  n;
    ngx_msec_t  delay;

    if (sh->helper_clean || sh->helper_generation != rcf->generation) {
        sh->backoff = 0;
        return 0;
    }

    n = ngx_ron_restarted(ngx_ron_helper_cycle, RON_D_TASK_HELPER);

    /* it could not count that itself */

    ngx_ron_tasks_helper(NGX_RON_ABORTED);
    ngx_ron_tasks_thread(RON_D_KIND_SEQUENCER, NGX_RON_ABORTED);

    if (sh->helper_headed) {
        ngx_ron_tasks_thread(RON_D_KIND_COMMITTER, NGX_RON_ABORTED);
    }

    delay = ngx_ron_backoff(&sh->backoff, sh->helper_committed);

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "ron: helper %P died, restart %ui of the ledger in %M ms",
                  (ngx_pid_t) sh->helper_pid, n, delay);

    return delay;
}


static void
ngx_ron_helper_wrap(ngx_cycle_t *cycle)
{
    ngx_uint_t         i;
    ngx_connection_t  *c;

    c = cycle->connections;

    for (i = 0; i < cycle->connection_n; i++) {

        if (c[i].fd == ngx_channel && c[i].read && c[i].read->channel
            && c[i].read->handler)
        {
            ngx_ron_helper_channel_c = &c[i];
            ngx_ron_helper_channel_handler = c[i].read->handler;
            c[i].read->handler = ngx_ron_helper_channel;
            return;
        }
    }

    ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                  "ron: no channel to the master was found, "
                  "quit will not wait for workers");
}


static void
ngx_ron_helper_channel(ngx_event_t *ev)
{
    ngx_ron_helper_channel_handler(ev);

    if (ngx_quit && !ngx_terminate) {
        ngx_quit = 0;
        ngx_ron_helper_quit();
    }
}


/* The master wants us to go. */

static void
ngx_ron_helper_quit(void)
{
    uint64_t         workers;
    ngx_ron_sh_t    *sh;
    ngx_ron_conf_t  *rcf;

    if (ngx_ron_helper_drain_end) {
        return;
    }

    rcf = ngx_ron_get_conf(ngx_ron_helper_cycle);
    sh = ngx_ron_shared(ngx_ron_helper_cycle);

    if (ngx_ron_helper_service == NULL || sh->generation != rcf->generation) {
        ngx_quit = 1;
        return;
    }

    workers = ngx_ron_helper_workers();

    if (workers == 0) {
        ngx_ron_helper_drained = 1;
        ngx_quit = 1;
        return;
    }

    ngx_ron_helper_drain_end = ngx_ron_now() + rcf->drain_deadline;

    ngx_log_error(NGX_LOG_NOTICE, ngx_ron_helper_cycle->log, 0,
                  "ron: waiting for %uL workers", workers);
}


/*
 * Of our own master: those that have a slot in our zone.  They need not be
 * connected yet, who waits for the ledger has met nobody.  And who is connected
 * need not be ours: with a binary upgrade the workers of the other master stay,
 * its helper waits for our lock, and they go on with that one.
 */

static uint64_t
ngx_ron_helper_workers(void)
{
    uint32_t             owners;
    ron_service_stat_t   stat;

    if (ngx_ron_zone() == NULL) {
        ron_service_stat(ngx_ron_helper_service, &stat);
        return stat.connections;
    }

    owners = ron_zone_slots_alive(ngx_ron_zone(), ngx_ron_helper_alive, NULL);

    if (ngx_ron_slot() != RON_ZONE_SLOT_NONE && owners) {
        owners--;
    }

    return owners;
}


static void
ngx_ron_helper_tick(ngx_event_t *ev)
{
    ron_zone_t  *zone;

    zone = ngx_ron_zone();

    ngx_ron_log_flush(ev->log);
    ngx_ron_helper_publish();
    ngx_ron_events_follow(ev->log);
    ngx_ron_snapshot_tick();
    ngx_ron_helper_committers();

    if (++ngx_ron_helper_ticks % NGX_RON_SWEEP == 0) {

        if (zone) {
            (void) ron_zone_slots_sweep(zone, ngx_ron_helper_alive, NULL);
        }

        ngx_ron_helper_project(ev->log);
    }

    if (ngx_ron_helper_drain_end == 0 && getppid() != ngx_parent) {
        ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                      "ron: the master %P is gone, leaving",
                      ngx_parent);
        ngx_ron_helper_quit();
    }

    if (ngx_ron_helper_drain_end) {

        if (ngx_ron_helper_workers() == 0) {
            ngx_ron_helper_drained = 1;
            ngx_quit = 1;

        } else if (ngx_ron_now() >= ngx_ron_helper_drain_end) {
            ngx_quit = 1;
        }
    }

    ngx_add_timer(ev, NGX_RON_TICK);
}


static void
ngx_ron_helper_start(ngx_event_t *ev)
{
    ngx_cycle_t         *cycle;
    ron_status_t         rc;
    ngx_ron_conf_t      *rcf;
    ron_service_t       *service;
    ron_service_conf_t   conf;

    static ron_status_t  said;

    cycle = ngx_ron_helper_cycle;
    rcf = ngx_ron_get_conf(cycle);

    ron_service_conf_init(&conf);

    conf.engine.store.url = (char *) rcf->url.data;
    conf.engine.store.create = 1;
    conf.engine.store.digest = rcf->digest;

    if (rcf->memory_zone) {
        conf.engine.store.region = rcf->memory_zone->data;
        conf.engine.store.region_len = ngx_ron_memory_len(rcf);
    }

    conf.engine.signer = rcf->signer;
    conf.engine.signer_old = rcf->signer_old;
    conf.engine.origin = rcf->origin.len ? (char *) rcf->origin.data : NULL;
    conf.engine.checkpoint_n = rcf->checkpoint_entries;
    conf.engine.tag_ram = rcf->tag_memory;
    conf.engine.key_ram = rcf->key_memory;
    conf.engine.key_ttl_ms = rcf->key_ttl;
    conf.engine.batch_ops = rcf->batch_ops;
    conf.engine.clock_step_ms = rcf->clock_step;
    conf.engine.clock = &ngx_ron_shared(cycle)->clock;

    conf.socket = (char *) rcf->socket.data;
    ngx_memcpy(conf.auth_key, rcf->auth_key.b, RON_AUTH_KEY_LEN);
    ngx_ron_bus_key(cycle, &ngx_ron_helper_bus);
    conf.generation = rcf->generation;
    conf.queue_preval = rcf->queue_preval;
    conf.queue_commit = rcf->queue_commit;
    conf.commit_delay_us = (uint64_t) rcf->commit_delay * 1000;
    conf.drain_ms = rcf->drain_deadline;
    conf.unclean = ngx_ron_helper_unclean;
    conf.drained = ngx_ron_shared(cycle)->drained == rcf->generation;
    conf.published_seq = ngx_ron_helper_published;
    conf.admitted = ngx_ron_helper_admitted;
    conf.on_head = ngx_ron_helper_on_head;
    conf.snapshots = ngx_ron_snapshot_start(cycle);
    conf.on_unit = ngx_ron_events_on_unit;
    conf.on_commit = ngx_ron_helper_on_commit;
    conf.on_balance = ngx_ron_helper_on_balance;
    conf.on_state = ngx_ron_helper_on_state;
    conf.ctx = ngx_ron_shared(cycle);

    rc = ron_service_start(&conf, &service);

    if (rc != RON_OK) {

        /* once a second, and once told */

        if (rc != said) {
            ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                          "ron: the ledger \"%V\" did not start: %s; it is "
                          "tried again each second", &rcf->url,
                          ron_status_name(rc));
            said = rc;
        }

        ngx_add_timer(ev, NGX_RON_RETRY);

    } else {
        ron_mutex_lock(ngx_ron_helper_mutex);
        ngx_ron_helper_service = service;
        ron_mutex_unlock(ngx_ron_helper_mutex);

        ngx_ron_tasks_thread(RON_D_KIND_SEQUENCER, NGX_RON_SPAWNED);
    }

    ngx_ron_log_flush(cycle->log);
}


/* On the sequencer's thread: shared memory and nothing else. */

static uint64_t
ngx_ron_helper_admitted(void *ctx)
{
    ron_zone_t  *zone;

    zone = ngx_ron_zone();

    return zone ? ron_zone_admitted(zone, RON_ADMIT_INGRESS)
                  + ron_zone_admitted(zone, RON_ADMIT_WORK) : 0;
}


static void
ngx_ron_helper_on_head(void *ctx, uint64_t seq, uint64_t time_ms,
    const ron_hash_t *root)
{
    ngx_ron_sh_t  *sh = ctx;

    ron_event_t  event;

    sh->helper_headed = 1;

    ron_mutex_lock(ngx_ron_helper_mutex);
    ngx_ron_helper_headed++;
    ngx_ron_helper_seq = seq;
    ngx_ron_helper_time = time_ms;
    ngx_ron_helper_root = *root;
    ron_mutex_unlock(ngx_ron_helper_mutex);

    /* who follows the bus compares it with what was committed before */

    if (ngx_ron_zone()) {
        memset(&event, 0, sizeof(ron_event_t));

        event.type = RON_EVENT_HEAD;
        event.seq = seq;
        event.time_ms = time_ms;
        event.data_len = RON_HASH_LEN;
        memcpy(event.data, root->b, RON_HASH_LEN);

        (void) ron_zone_event_put(ngx_ron_zone(), RON_RING_LEDGER, &event);
    }
}


static void
ngx_ron_helper_on_state(void *ctx, ron_life_t state, const char *reason)
{
    ngx_ron_sh_t  *sh = ctx;

    ngx_uint_t   safe;
    ron_zone_t  *zone;

    zone = ngx_ron_zone();

    ngx_ron_count(RON_M_LIFECYCLE, 0, state, 0, 0);

    /* what an operator said outlives us, and not a reload */

    if (state == RON_STATE_DRAINING || state == RON_STATE_STOPPED) {
        sh->drained = ngx_ron_get_conf(ngx_ron_helper_cycle)->generation;

    } else if (state == RON_STATE_RUNNING) {
        sh->drained = 0;
    }

    /* another reason ends the one before, so that on and off agree */

    safe = state == RON_STATE_SAFE_MODE
           ? 1 + ngx_ron_helper_safe_reason(reason) : 0;

    if (safe != ngx_ron_helper_safe) {

        if (ngx_ron_helper_safe) {
            ngx_ron_count(RON_M_SAFE_TRANSITIONS, 0, RON_D_SAFE_TO_OFF,
                          ngx_ron_helper_safe - 1, 0);
        }

        if (safe) {
            ngx_ron_count(RON_M_SAFE_TRANSITIONS, 0, RON_D_SAFE_TO_ON,
                          safe - 1, 0);
        }

        ngx_ron_helper_safe = safe;
    }

    /* what an earlier writer published must not be believed */

    if (zone && state == RON_STATE_RUNNING && !ngx_ron_helper_wiped) {
        ngx_ron_helper_wiped = 1;
        ron_zone_balances_wipe(zone);
        ron_zone_notes_wipe(zone);
    }

    /*
     * Before anybody is told: a worker that has not heard yet, or is not
     * connected, must not take what another one's client knows is refused.
     */

    if (zone) {
        ngx_ron_helper_beat(zone);
    }
}


/* The first word of the reason is the label. */

static ngx_uint_t
ngx_ron_helper_safe_reason(const char *reason)
{
    size_t       len;
    ngx_uint_t   i;

    for (i = 0; i < RON_D_SAFE_REASON_OTHER; i++) {
        len = ngx_strlen(ngx_ron_helper_safe_reasons[i]);

        if (ngx_strncmp(reason, ngx_ron_helper_safe_reasons[i], len) == 0
            && reason[len] == ':')
        {
            break;
        }
    }

    return i;
}


static void
ngx_ron_helper_on_commit(void *ctx, const ron_batch_t *batch)
{
    ngx_ron_sh_t  *sh = ctx;

    uint32_t           slot;
    ron_zone_t        *zone;
    ron_event_t        event;
    ron_bus_filter_t   touched;

    if (batch->status != RON_OK || batch->count == 0) {
        return;
    }

    sh->helper_committed = 1;
    ngx_ron_otlp_batch(batch);

    ron_mutex_lock(ngx_ron_helper_mutex);
    ngx_ron_helper_seq = batch->seq + batch->count - 1;
    ngx_ron_helper_time = batch->time_ms;
    ngx_ron_helper_root = batch->root;
    ron_mutex_unlock(ngx_ron_helper_mutex);

    zone = ngx_ron_zone();

    if (zone == NULL) {
        return;
    }

    memset(&touched, 0, sizeof(ron_bus_filter_t));

    ngx_ron_helper_balances(zone, batch, &touched);

    memset(&event, 0, sizeof(ron_event_t));

    event.type = RON_EVENT_COMMIT;
    event.seq = batch->seq + batch->count - 1;
    event.count = batch->count;
    event.time_ms = batch->time_ms;
    ron_bus_event(&event, &batch->root, &touched);

    (void) ron_zone_event_put(zone, RON_RING_LEDGER, &event);

    slot = ngx_ron_slot();

    ron_metric_add(zone, slot, RON_M_LEDGER_ENTRIES, 0, 0, 0, 0,
                   batch->count);
    ron_metric_add(zone, slot, RON_M_LEDGER_COMMITS, 0, 0, 0, 0, 1);
    ron_metric_add(zone, slot, RON_M_ROOTS_PUBLISHED, 0, 0, 0, 0, 1);
    ron_metric_add(zone, slot, RON_M_LEDGER_ROOTS_PUBLISHED, 0, 0, 0, 0, 1);
    ron_metric_observe(zone, slot, RON_M_LEDGER_COMMIT_LATENCY, 0, 0, 0, 0,
                       batch->commit_us);
    ron_metric_observe(zone, slot, RON_M_COMMITTER_LATENCY, 0, 0, 0, 0,
                       batch->commit_us);
    ron_metric_observe(zone, slot, RON_M_SEQUENCER_BATCH, 0, 0, 0, 0,
                       batch->count);
}


/* Memory is asked for some of them before the first one is written. */

static void
ngx_ron_helper_balances(const ron_zone_t *zone, const ron_batch_t *batch,
    ron_bus_filter_t *touched)
{
    uint32_t              i, k, n;
    uint64_t              now;
    ron_zone_key_t        keys[NGX_RON_HELPER_AHEAD];
    const ron_balance_t  *b;

    now = ron_clock_wall_ms();

    for (i = 0; i < batch->balance_n; i += n) {
        b = &batch->balances[i];
        n = ron_min(batch->balance_n - i, NGX_RON_HELPER_AHEAD);

        for (k = 0; k < n; k++) {
            ron_zone_key(zone, b[k].account, b[k].asset, &keys[k]);
        }

        ron_zone_balances_ahead(zone, keys, n);

        for (k = 0; k < n; k++) {
            ron_bus_filter_add(touched, &ngx_ron_helper_bus, b[k].account);
        }

        for (k = 0; k < n; k++) {
            ngx_ron_helper_balance(zone, &b[k], &keys[k],
                                   batch->seq + batch->count - 1, now);
        }
    }
}


/* Committed, or asked for: nobody has to ask for it again. */

static void
ngx_ron_helper_on_balance(void *ctx, const ron_balance_t *balance,
    uint64_t seq)
{
    ron_zone_t      *zone;
    ron_zone_key_t   key;

    zone = ngx_ron_zone();

    if (zone == NULL) {
        return;
    }

    ron_zone_key(zone, balance->account, balance->asset, &key);
    ngx_ron_helper_balance(zone, balance, &key, seq, ron_clock_wall_ms());
}


static void
ngx_ron_helper_balance(const ron_zone_t *zone, const ron_balance_t *balance,
    const ron_zone_key_t *key, uint64_t seq, uint64_t now)
{
    ron_zone_balance_t  b;

    b.available = balance->available;
    b.held = balance->held;
    b.nonce = balance->nonce;
    b.version = balance->version;
    b.seq = seq;
    b.as_of_ms = now;

    ron_zone_balance_put_key(zone, key, &b, now);
}


static void
ngx_ron_helper_publish(void)
{
    uint64_t             now_us;
    ron_zone_t          *zone;
    ron_service_stat_t   stat;

    zone = ngx_ron_zone();

    if (zone == NULL || ngx_ron_helper_service == NULL) {
        return;
    }

    now_us = ron_clock_mono_us();
    ron_service_stat(ngx_ron_helper_service, &stat);

    if (!ngx_ron_helper_speaks(zone, &stat, now_us)) {
        return;
    }

    ngx_ron_sample_counts(&stat);

    if (ngx_ron_sample_due(&stat, now_us)) {
        ngx_ron_sample(&stat, now_us);

        ron_mutex_lock(ngx_ron_helper_mutex);
        ngx_ron_helper_sampled_us = now_us;
        ron_mutex_unlock(ngx_ron_helper_mutex);
    }

    ngx_ron_helper_beat(zone);
    ngx_ron_logs();
}


/*
 * The beat has one writer: the helper that has the ledger.  One that waits
 * for it says so only when nobody else says anything.
 */

static ngx_uint_t
ngx_ron_helper_speaks(const ron_zone_t *zone, const ron_service_stat_t *stat,
    uint64_t now_us)
{
    ron_beat_t  beat;

    if (stat->state != RON_STATE_STARTING
        && stat->state != RON_STATE_FOLLOWING)
    {
        return 1;
    }

    return ron_zone_beat_read(zone, &beat) != RON_OK
           || beat.pid == (uint64_t) ngx_pid
           || beat.beat_us + NGX_RON_STALE_US <= now_us;
}


/*
 * From the timer, and from libron's thread as soon as the state is another.
 * Nothing is said before the first sample, so that who finds us ready finds
 * what was sampled, and until then workers believe our socket.  Only of a
 * drain, which nobody takes back, they are told at once.
 */

static void
ngx_ron_helper_beat(const ron_zone_t *zone)
{
    uint64_t            now_us;
    ron_beat_t          beat;
    ron_service_stat_t  stat;

    ron_mutex_lock(ngx_ron_helper_mutex);

    if (ngx_ron_helper_service == NULL) {
        goto done;
    }

    /* the time first: what it lacks of later commits is not of that time */

    now_us = ron_clock_mono_us();
    ron_service_stat(ngx_ron_helper_service, &stat);

    if (!ngx_ron_helper_speaks(zone, &stat, now_us)
        || (ngx_ron_helper_sampled_us == 0
            && (stat.state == RON_STATE_RUNNING
                || stat.state == RON_STATE_SAFE_MODE)))
    {
        goto done;
    }

    ngx_memzero(&beat, sizeof(ron_beat_t));

    beat.state = stat.state;
    beat.generation = ngx_ron_get_conf(ngx_ron_helper_cycle)->generation;
    beat.pid = ngx_pid;
    beat.beat_us = now_us;
    beat.sync_since_us = stat.sync_since_us;
    beat.seq = stat.seq;
    beat.committed_ms = stat.committed_ms;
    beat.commit_depth = stat.commit_depth;
    beat.sample_us = ngx_ron_helper_sampled_us;
    beat.time_ms = ngx_ron_helper_time;
    beat.root = ngx_ron_helper_root;

    ron_zone_beat_write(zone, &beat);

done:

    ron_mutex_unlock(ngx_ron_helper_mutex);
}


/* Each time that the lock is taken, a committer begins. */

static void
ngx_ron_helper_committers(void)
{
    ngx_uint_t  n;

    ron_mutex_lock(ngx_ron_helper_mutex);
    n = ngx_ron_helper_headed;
    ron_mutex_unlock(ngx_ron_helper_mutex);

    for ( /* void */ ; ngx_ron_helper_begun < n; ngx_ron_helper_begun++) {

        if (ngx_ron_helper_begun) {
            ngx_ron_tasks_thread(RON_D_KIND_COMMITTER, NGX_RON_CANCELED);
            (void) ngx_ron_restarted(ngx_ron_helper_cycle,
                                     RON_D_TASK_COMMITTER);
        }

        ngx_ron_tasks_thread(RON_D_KIND_COMMITTER, NGX_RON_SPAWNED);
    }
}


/*
 * History is projected by whoever has the ledger.  After a reload the helper
 * before may still be at it: that one ends, and then this one begins.
 */

static void
ngx_ron_helper_project(ngx_log_t *log)
{
    ron_buf_t            why;
    ron_status_t         rc;
    ngx_ron_conf_t      *rcf;
    ron_store_conf_t     store;
    ron_history_conf_t   conf;
    ron_history_stat_t   history;
    ron_service_stat_t   stat;

    rcf = ngx_ron_get_conf(ngx_ron_helper_cycle);

    if (ngx_ron_helper_service == NULL || rcf->dir.len == 0) {
        return;
    }

    ron_service_stat(ngx_ron_helper_service, &stat);

    if (ngx_ron_helper_history) {
        ron_history_thread_stat(ngx_ron_helper_history, &history);

        /* it may see a row before we hear of it, but none that is not there */

        if (history.status == RON_ECORRUPT && !ngx_ron_helper_history_cut) {
            ron_service_distrust(ngx_ron_helper_service,
                                 "history.db has other entries than the "
                                 "journal: one of them was cut or changed");
        }

        ngx_ron_helper_history_cut = history.status == RON_ECORRUPT;

        if (ngx_ron_zone() && history.watermark != 0) {
            ron_metric_set(ngx_ron_zone(), ngx_ron_slot(),
                           RON_M_HISTORY_LAG, 0, 0, 0, 0,
                           stat.seq > history.watermark
                               ? stat.seq - history.watermark : 0);
        }

        return;
    }

    if (stat.state != RON_STATE_RUNNING || ngx_ron_helper_drain_end) {
        return;
    }

    ngx_memzero(&store, sizeof(ron_store_conf_t));
    store.url = (char *) rcf->url.data;
    store.digest = rcf->digest;

    conf.cache = rcf->history_cache;
    conf.share = rcf->history_share;

    ron_buf_init(&why, 0);

    rc = ron_history_thread_start(&store, &conf, &ngx_ron_helper_history,
                                  &why);

    if (rc != RON_OK) {
        ngx_ron_helper_history = NULL;

        if (rc != RON_EFENCED && !ngx_ron_helper_history_told) {
            ngx_ron_helper_history_told = 1;
            ngx_log_error(NGX_LOG_ERR, log, 0,
                          "ron: history is not projected: %s: %*s",
                          ron_status_name(rc), why.len, why.data);
        }
    }

    ron_buf_free(&why);
}


static bool
ngx_ron_helper_alive(void *ctx, uint32_t pid)
{
    return kill(pid, 0) == 0 || ngx_errno != ESRCH;
}


/*
 * Runs inside exit().  libron's threads are joined here, or the process goes
 * without running anything further.
 */

static void
ngx_ron_helper_exit(void)
{
    uint64_t             aborted, canceled, leaked, told, left, join;
    ngx_log_t           *log;
    ngx_uint_t           drained;
    ron_status_t         rc;
    ngx_ron_sh_t        *sh;
    ron_service_stat_t   stat;

    if (ngx_process != NGX_PROCESS_HELPER || ngx_ron_helper_cycle == NULL) {
        return;
    }

    log = ngx_ron_helper_cycle->log;
    sh = ngx_ron_shared(ngx_ron_helper_cycle);

    if (ngx_ron_helper_service == NULL) {
        ngx_ron_helper_left(sh);
        ngx_ron_log_flush(log);
        ngx_ron_slot_leave();
        ngx_ron_helper_last(NGX_LOG_NOTICE, 1, 0, 0, 0,
                            ngx_ron_helper_published);
        return;
    }

    ron_service_stat(ngx_ron_helper_service, &stat);
    ngx_ron_sample_counts(&stat);

    /* told first and asked last: a sync of its log cannot be cut short */

    told = ngx_ron_now();

    if (ngx_ron_helper_history) {
        ron_history_thread_cancel(ngx_ron_helper_history);
    }

    join = ron_timeout_info(RON_TIMEOUT_JOIN)->ms;
    rc = ron_service_stop(ngx_ron_helper_service, join);

    /* a sequencer that did not end may still ask for one */

    if (rc == RON_OK && ngx_ron_snapshot_stop(join / 2) != NGX_OK) {
        rc = RON_AGAIN;
    }

    join = ron_timeout_info(RON_TIMEOUT_JOIN_HISTORY)->ms;
    left = ngx_ron_now() - told;
    left = join - ngx_min(left, join);

    if (ngx_ron_helper_history
        && ron_history_thread_stop(ngx_ron_helper_history, left) != RON_OK)
    {
        rc = RON_AGAIN;
    }

    ngx_ron_log_flush(log);

    /*
     * What was decided is finished when all went well, or nobody knows of it:
     * what waits for the committer, and what it has.  The rest is not begun.
     */

    canceled = stat.preval_depth;
    aborted = rc == RON_OK ? 0 : stat.commit_depth + stat.work_taken;

    ngx_ron_helper_ended(rc == RON_OK ? NGX_RON_CANCELED : NGX_RON_ABORTED);

    leaked = ron_thread_count();
    ngx_ron_count_n(RON_M_TASKS_LEAKED, RON_D_SERVICE_LEDGER, 0, 0, 0,
                    leaked);
    ngx_ron_slot_leave();

    drained = ngx_ron_helper_drained || stat.connections == 0;

    if (rc != RON_OK) {
        ngx_ron_helper_last(NGX_LOG_ERR, drained, aborted, canceled, leaked,
                            stat.seq);
        _exit(0);
    }

    ngx_ron_helper_left(sh);
    ngx_ron_helper_last(NGX_LOG_NOTICE, drained, aborted, canceled, leaked,
                        stat.seq);
}


/* The root is known when this helper has had the ledger. */

static void
ngx_ron_helper_last(ngx_uint_t level, ngx_uint_t drained, uint64_t aborted,
    uint64_t canceled, uint64_t leaked, uint64_t seq)
{
    u_char  *p, root[2 * RON_HASH_LEN + 2];

    p = ngx_cpymem(root, "null", sizeof("null") - 1);

    ron_mutex_lock(ngx_ron_helper_mutex);

    if (ngx_ron_helper_headed) {
        seq = ngx_ron_helper_seq;

        p = root;
        *p++ = '"';
        p = ngx_hex_dump(p, ngx_ron_helper_root.b, RON_HASH_LEN);
        *p++ = '"';
    }

    ron_mutex_unlock(ngx_ron_helper_mutex);

    ngx_log_error(level, ngx_ron_helper_cycle->log, 0,
                  "ron: {\"event\":\"shutdown\",\"drained\":%s,"
                  "\"aborted\":%uL,\"canceled\":%uL,\"leaked\":%uL,"
                  "\"seq\":%uL,\"root\":%*s}",
                  drained ? "true" : "false", aborted, canceled, leaked, seq,
                  (size_t) (p - root), root);
}


static void
ngx_ron_helper_ended(ngx_ron_end_t end)
{
    ngx_ron_helper_committers();

    ngx_ron_tasks_helper(NGX_RON_CANCELED);
    ngx_ron_tasks_thread(RON_D_KIND_SEQUENCER, end);

    if (ngx_ron_helper_begun) {
        ngx_ron_tasks_thread(RON_D_KIND_COMMITTER, end);
    }
}


/* A successor need not replay: this one has ended what it began. */

static void
ngx_ron_helper_left(ngx_ron_sh_t *sh)
{
    if (sh->helper_pid == (ngx_atomic_uint_t) ngx_pid) {
        sh->helper_clean = 1;
    }
}
