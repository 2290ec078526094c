
/*
 * What the files of the glue share: the core module's configuration, the few
 * words that all processes see, the helper, and the worker's calls to it.
 *
 *     ngx_ron_module.c     ron_ledger and its relatives, life of a process
 *     ngx_ron_helper.c     in the helper: starts, watches and stops libron
 *     ngx_ron_sample.c     what the helper counts
 *     ngx_ron_otlp_module.c  ron_otlp, records of workers, sending of spans
 *     ngx_ron_ipc*.c       in a worker: calls to the helper
 *     ngx_ron_events.c     in the helper: events into the zone's rings
 *     ngx_ron_snapshot.c   ron_snapshot_dir, and snapshots in the helper
 *     ngx_ron_slot.c       a process's counters in the zone
 *     ngx_ron_restart.c    what begins, ends, dies and is started again
 *     ngx_ron_listen.c     UNIX sockets that a server of before left
 *     ngx_ron_log.c        lines of libron's threads into NGINX's log
 *     ngx_http_ron_*.c     HTTP
 */

#ifndef _NGX_RON_H_INCLUDED_
#define _NGX_RON_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_ron_compat.h"
#include "ron_client.h"
#include "ron_metrics.h"
#include "ron_service.h"
#include "ron_trace.h"
#include "ron_zone_bus.h"


#define NGX_RON_VERSION   "0.1.0"

#define NGX_RON_RESTARTS  17            /* one more than may be allowed */
#define NGX_RON_WORKERS   128           /* as many as the zone has slots */


/* Restarts of a task that died: the newest times, in seconds. */

typedef struct {
    ngx_atomic_t     n;
    ngx_atomic_t     last;
    ngx_atomic_t     looping;
    ngx_atomic_t     sec[NGX_RON_RESTARTS];
} ngx_ron_task_t;


/*
 * In shared memory, the same over a reload.  Each group has one
 * writer; `generation` is raised by the master when a configuration has been
 * taken.  All of it may be lost at any time: it only says how things are.
 */

typedef struct {
    uint32_t         magic;
    uint32_t         size;

    ngx_atomic_t     generation;

    /* the helper of the newest generation */

    ngx_atomic_t     helper_pid;
    ngx_atomic_t     helper_generation;
    ngx_atomic_t     helper_clean;          /* it went on purpose */
    ngx_atomic_t     helper_committed;      /* it got something on disk */
    ngx_atomic_t     helper_headed;         /* it had the ledger */
    ngx_atomic_t     backoff;               /* ms before it starts */
    ngx_atomic_t     drained;               /* the generation that was told */

    /* workers: the newest generation, and how many of it did not end */

    ngx_atomic_t     workers;

    struct {
        ngx_atomic_t     since;             /* it works; 0: it does not yet */
        ngx_atomic_t     backoff;
    } worker[NGX_RON_WORKERS];

    ngx_ron_task_t   tasks[RON_D_TASK_N];

    /* the longest ron_deadline that any generation has had, ms */

    ngx_atomic_t     deadline_max;

    /* ledger time goes on when a helper dies; what of it was counted */

    ron_ledger_clock_t  clock;
    uint64_t         clock_steps;
    uint64_t         clock_leaps;
} ngx_ron_sh_t;


typedef struct {
    ngx_str_t        url;                   /* "sqlite:<dir>", "memory:<n>" */
    ngx_str_t        dir;                   /* empty: memory */
    size_t           memory;
    ron_digest_t     digest;
    ngx_str_t        socket;
    ngx_str_t        origin;
    ngx_str_t        signing_key;           /* a file */
    ngx_str_t        signing_key_old;       /* a file */
    ngx_msec_t       drain_deadline;
    ngx_msec_t       clock_step;
    ngx_msec_t       metrics_tick;
    ngx_msec_t       committer_lag;
    ngx_msec_t       commit_delay;          /* for tests */
    ngx_msec_t       deadline_max;          /* of all locations */
    ngx_uint_t       restart_limit;
    ngx_uint_t       queue_preval;
    ngx_uint_t       queue_commit;
    ngx_uint_t       queue_ingress;
    ngx_uint_t       queue_work;
    ngx_uint_t       queue_parse;
    ngx_uint_t       queue_proofs;          /* of each worker */
    ngx_uint_t       batch_ops;
    ngx_uint_t       checkpoint_entries;
    size_t           tag_memory;
    size_t           key_memory;
    size_t           history_cache;
    ngx_uint_t       history_share;
    ngx_msec_t       key_ttl;
    ngx_cpuset_t     cpus;                  /* of the helper */
    ngx_uint_t       cpus_n;                /* 0: any */

    u_char          *file;                  /* where ron_ledger stood */
    ngx_uint_t       line;

    ngx_path_t      *path;
    ngx_shm_zone_t  *state_zone;
    ngx_shm_zone_t  *memory_zone;
    ngx_shm_zone_t  *cache_zone;            /* ron_zone; data: ron_zone_t */
    ron_signer_t    *signer;
    ron_signer_t    *signer_old;
    ron_auth_key_t   auth_key;
    unsigned         has_auth_key:1;
    unsigned         has_api:1;             /* some location needs a ledger */
    ngx_uint_t       generation;
} ngx_ron_conf_t;


/* NULL before the shared page is there, and without ron_ledger. */
ngx_ron_sh_t *ngx_ron_shared(ngx_cycle_t *cycle);

ngx_ron_conf_t *ngx_ron_get_conf(ngx_cycle_t *cycle);

/* The bytes that a ledger in memory has. */
size_t ngx_ron_memory_len(ngx_ron_conf_t *rcf);

/* Monotonic milliseconds, the same in all processes. */
uint64_t ngx_ron_now(void);


/*
 * The zone of ron_zone, NULL without one, and this process's slot in it.
 * Workers and the helper take a slot when they begin; its counters are theirs
 * alone.
 */
ron_zone_t *ngx_ron_zone(void);
uint32_t ngx_ron_slot(void);
void ngx_ron_slot_claim(ngx_cycle_t *cycle);
void ngx_ron_slot_leave(void);

/* Takes back what dead processes had: without a ledger there is no helper. */
void ngx_ron_slot_sweep(void);

#define ngx_ron_count(metric, s, a, b, c)                                     \
    ngx_ron_count_n(metric, s, a, b, c, 1)
void ngx_ron_count_n(ron_metric_t metric, ngx_uint_t s, ngx_uint_t a,
    ngx_uint_t b, ngx_uint_t c, uint64_t n);

/* The keys that the configuration names, for as long as the cycle lives. */
ngx_int_t ngx_ron_init_signer(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf);

/* Whether the worker user can walk down to a directory, if there is one. */
ngx_int_t ngx_ron_check_enter(ngx_cycle_t *cycle, ngx_str_t *dir);

/* Before the first start takes its listeners. */
void ngx_ron_listen_clean(ngx_cycle_t *cycle);

/*
 * ngx_ron_restart.c: a task (RON_D_TASK_*) that died was started again.  More
 * than ron_restart_limit of them in a minute, and it loops, until a minute
 * without one has passed.
 */
ngx_uint_t ngx_ron_restarted(ngx_cycle_t *cycle, ngx_uint_t task);
ngx_uint_t ngx_ron_looping(ngx_cycle_t *cycle, ngx_uint_t task);

/*
 * How long a successor waits, and what the next one needs to know: a moment
 * when the one that died had worked, else longer each time.
 */
ngx_msec_t ngx_ron_backoff(ngx_atomic_t *backoff, ngx_uint_t worked);

/* A task begins, ends when it was asked to, or was ended from outside. */
typedef enum {
    NGX_RON_SPAWNED = 0,
    NGX_RON_CANCELED,
    NGX_RON_ABORTED
} ngx_ron_end_t;

void ngx_ron_worker_orphan(ngx_cycle_t *cycle);
void ngx_ron_worker_begins(ngx_cycle_t *cycle);
void ngx_ron_worker_ends(ngx_cycle_t *cycle);
void ngx_ron_tasks_worker(ngx_ron_end_t end);
void ngx_ron_tasks_helper(ngx_ron_end_t end);
void ngx_ron_tasks_thread(ngx_uint_t kind, ngx_ron_end_t end);
void ngx_ron_tasks_invalidator(ngx_ron_end_t end);
void ngx_ron_tasks_operation(ngx_uint_t service, ngx_ron_end_t end);

/* NGX_BUSY when `capacity` requests of all workers are in. */
ngx_int_t ngx_ron_admit(ron_admit_t queue, ngx_uint_t capacity);
void ngx_ron_admit_done(ron_admit_t queue);


/*
 * In the helper, with a zone: what libron has counted since the last call, and
 * what it has now.  Due once in "ron_metrics_tick", and when the ledger's
 * state has changed.
 */
ngx_uint_t ngx_ron_sample_due(const ron_service_stat_t *stat, uint64_t now_us);
void ngx_ron_sample_counts(const ron_service_stat_t *stat);
void ngx_ron_sample(const ron_service_stat_t *stat, uint64_t now_us);

/* Has NGINX's logs go to the disk as they grow. */
void ngx_ron_logs(void);


/*
 * Traces, with ron_otlp.  In a worker: whether there is one, the share of
 * requests, and one request's record.  In the helper: starts sending; a batch
 * is durable, from the sequencer's thread.
 */
ngx_uint_t ngx_ron_otlp_on(void);
uint32_t ngx_ron_otlp_share(void);
void ngx_ron_otlp_put(const ron_trace_request_t *request);
void ngx_ron_otlp_helper(ngx_cycle_t *cycle);
void ngx_ron_otlp_batch(const ron_batch_t *batch);


/* The path manager, and what NGINX's cache manager process is for us. */
ngx_msec_t ngx_ron_helper_manager(void *data);


/*
 * In the helper: the wallet's audit events, on the sequencer's thread, and
 * the invalidator of balances, which follows the ledger bus.
 */
void ngx_ron_events_init(ngx_cycle_t *cycle);
void ngx_ron_events_on_unit(void *ctx, const ron_unit_t *unit,
    const ron_outcome_t *outcome, uint64_t time_ms);
void ngx_ron_events_follow(ngx_log_t *log);

/* Of the filters on the ledger's bus. */
void ngx_ron_bus_key(ngx_cycle_t *cycle, ron_bus_key_t *key);


/*
 * In the helper: snapshots; NULL without ron_snapshot_dir.  stop() says
 * NGX_AGAIN when its thread did not end.
 */
ron_snapshot_thread_t *ngx_ron_snapshot_start(ngx_cycle_t *cycle);
void ngx_ron_snapshot_tick(void);
ngx_int_t ngx_ron_snapshot_stop(ngx_msec_t timeout);


/*
 * Lines of libron: kept in a bounded ring, whatever thread they come from,
 * and given to NGINX's log by the event loop.
 */
void ngx_ron_log_init(ngx_uint_t level);
void ngx_ron_log_flush(ngx_log_t *log);


/* ---- calls -------------------------------------------------------------- */

typedef struct ngx_ron_call_s  ngx_ron_call_t;

/*
 * NGX_OK and an answer, or NGX_ABORT: no answer came before the deadline or
 * the last try, and nobody knows what has become of it; or NGX_DECLINED: it
 * was never sent.  The payload is good during the callback.
 */
typedef void (*ngx_ron_call_pt)(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);

ngx_int_t ngx_ron_ipc_init_process(ngx_cycle_t *cycle);
void ngx_ron_ipc_exit_process(ngx_cycle_t *cycle);

/* The longest ron_deadline that any generation of this master has had. */
ngx_msec_t ngx_ron_deadline_max(void);

#define NGX_RON_DEADLINE_MAX  60000

/* As the helper said last; RON_STATE_STARTING while there is no connection. */
ron_life_t ngx_ron_ipc_state(void);

/* Who that helper is; 0 while there is no connection, or nobody can tell. */
ngx_pid_t ngx_ron_ipc_helper(void);

/*
 * NULL when the pending table is full, the unit does not fit into a frame
 * (*too_long), or there is no memory.  The callback is never called before
 * these return.
 */
ngx_ron_call_t *ngx_ron_ipc_unit(const ron_unit_t *unit, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data, ngx_uint_t *too_long);

/* The same for an ingest that ron_unit_encode() made of a unit before. */
ngx_ron_call_t *ngx_ron_ipc_wire(ron_str_t wire, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data);

ngx_ron_call_t *ngx_ron_ipc_balance(ron_str_t account, ron_str_t asset,
    ngx_msec_t timeout, ngx_ron_call_pt handler, void *data);
ngx_ron_call_t *ngx_ron_ipc_lookup(const ron_msg_ask_t *ask,
    ngx_msec_t timeout, ngx_ron_call_pt handler, void *data);
ngx_ron_call_t *ngx_ron_ipc_admin(ron_admin_t what, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data);

/* Begins a snapshot, or only asks how the newest one goes. */
ngx_ron_call_t *ngx_ron_ipc_snapshot(ngx_uint_t take, ron_str_t name,
    ngx_msec_t timeout, ngx_ron_call_pt handler, void *data);

/*
 * One watcher a worker: called for each batch that the helper says is durable
 * (count 0: the final root of a drain), and with NULL when a connection to a
 * helper is ready, whose ledger is at seq.
 */
typedef void (*ngx_ron_commit_pt)(uint64_t seq,
    const ron_msg_commit_t *commit);

void ngx_ron_ipc_watch(ngx_ron_commit_pt handler);

/* Called when all that came in one read of the helper's socket is answered. */
void ngx_ron_ipc_answered(void (*handler)(void));

/* A helper that was gone is there: what counts its errors begins anew. */
void ngx_ron_breaker_close(void);

/* Nobody waits any more: the operation goes on, its answer goes nowhere. */
void ngx_ron_ipc_detach(ngx_ron_call_t *call);


/* Three arguments: the digits of a mode, which NGINX cannot print as octal. */

#define ngx_ron_mode(fi)                                                      \
    (ngx_uint_t) (ngx_file_access(fi) >> 6) & 7,                              \
    (ngx_uint_t) (ngx_file_access(fi) >> 3) & 7,                              \
    (ngx_uint_t) ngx_file_access(fi) & 7


/*
 * The data of an event that has no connection.  It looks like one to what
 * reads the fd of an event's data: debug logs do.
 */

typedef struct {
    void            *padding[3];
    int              fd;
} ngx_ron_ident_t;


extern ngx_module_t     ngx_ron_module;
extern ngx_ron_ident_t  ngx_ron_ident;


static ngx_inline ron_str_t
ngx_ron_str(ngx_str_t *s)
{
    ron_str_t  r;

    r.len = s->len;
    r.data = s->data;

    return r;
}


/* A destructor that finds work under way only lets go of it, and says so. */

#define ngx_ron_unclosed(r, what)                                             \
    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, (r)->connection->log, 0,               \
                   "ron: %s was released and not closed", what)


#endif /* _NGX_RON_H_INCLUDED_ */
