
/*
 * The service: the sequencer's thread with its socket, around one engine.
 *
 * Plain C, no server: NGINX's helper process starts it, `ronctl` and the
 * tests start it as well.  One thread owns the listening socket, every
 * connection, the ingress of units (the `preval` queue), the clock and the
 * engine; the engine's committer is the second thread.
 *
 *     start -> STARTING -> FOLLOWING (another writer lives; keeps up)
 *           -> RUNNING (lock taken, replayed, socket bound)
 *           -> DRAINING -> STOPPED, or SAFE_MODE
 *
 * The socket is bound to a temporary name and renamed over the public one
 * only when the lock is held.  With the memory store it is abstract.
 *
 * Safe mode.  Units are refused with SAFE_MODE, batches that were in the
 * committer's hands are answered TIMEOUT (in doubt), balances and look-ups
 * are answered as soon as the journal has been read again.  What could pass
 * by itself (the database cannot be opened or read now) is tried again with
 * a growing delay.  What happened to the journal (failed sync, full disk,
 * gap, a drain that was not finished, an operator's wish) is marked beside
 * it and ends by RON_ADMIN_SAFE_LEAVE only, which opens the ledger anew,
 * reads it to its head and checks it before it clears the mark.
 *
 * Bounds.  preval by units and by bytes (drop oldest, the dropped one is told
 * PREVAL_DROPPED); commit by units (BACKPRESSURE, before a seq is consumed);
 * connections; unsent bytes of each (a peer that does not read is closed); a
 * connection that is not authenticated within a second is closed.
 */

#ifndef RON_SERVICE_H
#define RON_SERVICE_H


#include "ron_engine.h"
#include "ron_frame.h"
#include "ron_snapshot_thread.h"


typedef struct ron_service_s  ron_service_t;

typedef struct {
    ron_engine_conf_t  engine;          /* its strings outlive the service */
    const char        *socket;          /* path, or "@name" (abstract) */
    uint8_t            auth_key[32];    /* ron_auth_derive() */
    uint64_t           generation;
    uint32_t           connections;     /* at most; 1 024 */
    uint32_t           queue_preval;    /* units; 2 000, drop oldest */
    size_t             preval_bytes;    /* and bytes; 64 MiB */
    uint32_t           queue_commit;    /* units; 1 000, reject */
    uint64_t           drain_ms;        /* sequencer's share; 3 000 */
    size_t             out_max;         /* unsent bytes a connection; 8 MiB */

    /*
     * The incarnation before this one did not end cleanly: between taking
     * the lock and having replayed, the state is SAFE_MODE ("replay"), and
     * it leaves by itself.  A socket's name at which nobody answers says
     * the same.
     */
    bool               unclean;

    /*
     * It had been told to drain and died: this one takes the ledger over and
     * drains as well.
     */
    bool               drained;

    /* Takes snapshots when an operator asks; NULL: none are taken. */
    ron_snapshot_thread_t  *snapshots;

    /*
     * The highest seq that anybody was told of, as far as is known; 0: none.
     * A journal that ends before it has been cut: SAFE_MODE ("gap").
     */
    uint64_t           published_seq;

    /*
     * For tests: the committer waits for so long before each append, so that
     * the queues behind it can be filled.  0 in production.
     */
    uint64_t           commit_delay_us;

    /*
     * Who may connect (SO_PEERCRED); NULL: our own uid, and root.  Called on
     * the sequencer's thread.
     */
    bool  (*allow)(void *ctx, uint32_t uid, uint32_t gid, uint32_t pid);

    /*
     * How many requests were admitted and are not answered: each may still
     * send a unit, which a drain waits for.  NULL: none.  Called on the
     * sequencer's thread.
     */
    uint64_t  (*admitted)(void *ctx);

    /*
     * Called on the sequencer's thread, never blocking: when the ledger has
     * been taken over and its head is known; for each unit of a durable batch
     * and its outcome, and after the batch (for the zone); for each balance
     * that was asked for and is what durable entries up to `seq` make it, so
     * that nobody has to ask again; and on each change of state.  The reason
     * of SAFE_MODE is a word of RON_SERVICE_SAFE, ": ", and a sentence.
     */
    void  (*on_head)(void *ctx, uint64_t seq, uint64_t time_ms,
        const ron_hash_t *root);
    void  (*on_unit)(void *ctx, const ron_unit_t *unit,
        const ron_outcome_t *outcome, uint64_t time_ms);
    void  (*on_commit)(void *ctx, const ron_batch_t *batch);
    void  (*on_balance)(void *ctx, const ron_balance_t *balance,
        uint64_t seq);
    void  (*on_state)(void *ctx, ron_life_t state, const char *reason);
    void   *ctx;
} ron_service_conf_t;


/* Why safe mode: the first word of the reason, and the metric's label. */
#define RON_SERVICE_SAFE(X)                                                   \
    X(REPLAY, "replay", false)          /* name, marked and acknowledged? */  \
    X(OPEN, "open", false)                                                    \
    X(SYNC, "sync", true)                                                     \
    X(DISK_FULL, "disk_full", true)                                           \
    X(GAP, "gap", true)                                                       \
    X(DRAIN, "drain", true)                                                   \
    X(OPERATOR, "operator", true)                                             \
    X(MARKED, "marked", true)

typedef enum {
#define RON_SERVICE_SAFE_ENUM(id, name, ack)  RON_SAFE_##id,
    RON_SERVICE_SAFE(RON_SERVICE_SAFE_ENUM)
#undef RON_SERVICE_SAFE_ENUM
    RON_SAFE_N
} ron_safe_t;


/* Counters and gauges, read from any thread. */
typedef struct {
    ron_life_t  state;
    bool         writer;                /* this process holds the ledger */
    uint64_t     preval_depth;
    uint64_t     preval_drops;
    uint64_t     commit_depth;
    uint64_t     commit_rejects;
    uint64_t     balance_depth;         /* queries behind a batch */
    uint64_t     balance_rejects;
    uint64_t     work_taken;            /* a wallet's, by the committer */
    uint64_t     connections;
    uint64_t     units;
    uint64_t     batches;
    uint64_t     entries;
    uint64_t     seq;                   /* durable */
    uint64_t     time_ms;               /* ledger time of it */
    uint64_t     committed_ms;          /* wall, of the newest durable batch */
    uint64_t     sync_since_us;         /* monotonic; 0: not in an append */
    uint64_t     auth_failures;
    uint64_t     denied;                /* peers that may not connect */
    uint64_t     protocol_errors;
    uint64_t     slow_closed;           /* peers that did not read */
    uint64_t     safe_entered;
    uint64_t     sync_failures;         /* appends that were tried and failed */
    uint64_t     gaps;                  /* journals that do not hold together */
    uint64_t     conserved;             /* take-overs that added the money up */
    uint64_t     not_conserved;         /* and found some more or missing */
    bool         no_room;               /* the disk was full, nobody said no */
} ron_service_stat_t;


void ron_service_conf_init(ron_service_conf_t *conf);

/*
 * RON_EINVAL: the configuration cannot work (the socket's name is too long);
 * RON_EIO, RON_ENOMEM: no thread, no descriptor.  A ledger that cannot be
 * opened is no failure of this call: the state tells.
 */
ron_status_t ron_service_start(const ron_service_conf_t *conf,
    ron_service_t **service);

/* Any thread: begin draining; the state tells when it is over. */
void ron_service_drain(ron_service_t *service);

/*
 * Any thread: something that was derived from the journal does not agree with
 * it any more.  SAFE_MODE ("gap"), unless the ledger is not ours just now.
 */
void ron_service_distrust(ron_service_t *service, const char *why);

/* Any thread: what a signal handler or an exit handler may ask for. */
void ron_service_stat(ron_service_t *service, ron_service_stat_t *stat);

/*
 * Finishes the batches in hand and answers them, closes the ledger, joins
 * both threads.  Units that were not decided are not answered: their workers
 * send them to the next helper.  RON_AGAIN when the threads did not end in
 * time: the caller must _exit().
 */
ron_status_t ron_service_stop(ron_service_t *service, uint64_t timeout_ms);


#endif /* RON_SERVICE_H */
