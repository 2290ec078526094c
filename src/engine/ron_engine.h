
/*
 * The engine: a ledger as two owners and a bounded queue between them.
 *
 *     units -> [sequencer: decides, orders, assigns seq, encodes]
 *                   | batches (bounded)
 *              [committer: tree, append, fsync]
 *                   | batches, durable, in order
 *              -> outcomes
 *
 * The caller's thread is the sequencer.  The committer is a thread of its own
 * (ron_engine_start), or is run by hand (ron_engine_step) by tests and by the
 * simulator.  Deciding goes on while the committer syncs; what was decided on
 * an unsynced batch comes back from ron_engine_reap() only after everything
 * before it is durable.
 *
 * Life: open -> follow* -> acquire -> (start) -> decide/reap ... -> close.
 * Between open and acquire the engine is a follower: it reads checkpoint and
 * journal and keeps up, so that taking over costs the tail.
 *
 * After any failed append the engine is `failed`: batches in flight come back
 * in doubt (ron_batch_t.status), nothing more is decided, and the way back is
 * close and open again; the journal then tells what happened.
 */

#ifndef RON_ENGINE_H
#define RON_ENGINE_H


#include "ron_unit.h"
#include "ron_store.h"
#include "ron_note.h"


/*
 * What of ledger time has to outlive an engine: in memory of the embedder that
 * is lost with the machine's monotonic clock or before it.  One writer, the
 * sequencer of whoever has the ledger; read by anybody.
 */
typedef struct {
    _Atomic uint64_t  ahead_us;         /* of the monotonic clock; 0: unknown */
    _Atomic uint64_t  drift_us;         /* the wall clock is off by so much */
    _Atomic uint64_t  steps;            /* how often by over clock_step_ms */
    _Atomic uint64_t  leaps;            /* openings that went ahead by more */
} ron_ledger_clock_t;


typedef struct {
    ron_store_conf_t     store;
    const ron_signer_t  *signer;            /* NULL: the ledger's own key */
    const ron_signer_t  *signer_old;        /* announces `signer`, or NULL */
    const char          *origin;            /* NULL: the signer's own name */
    uint64_t             checkpoint_n;      /* entries between; 100 000 */
    size_t               tag_ram;           /* bytes; 64 MiB */
    size_t               key_ram;           /* bytes; 64 MiB */
    uint64_t             key_ttl_ms;        /* 24 h */
    uint32_t             batch_ops;         /* operations a batch; 1 024 */
    uint32_t             queue_batches;     /* between the owners; 2 */
    uint64_t             clock_step_ms;     /* alert over this; 5 000 */
    ron_ledger_clock_t  *clock;             /* NULL: ends with the engine */
} ron_engine_conf_t;


/* One balance after a batch, for caches that are told of commits. */
typedef struct {
    ron_str_t   account;
    ron_str_t   asset;
    ron_u128_t  available;
    ron_u128_t  held;
    uint64_t    nonce;
    uint64_t    version;
} ron_balance_t;


/*
 * A decided batch.  `status` after reaping: RON_OK durable; anything else: in
 * doubt (or, for RON_ECANCELED and RON_EFULL, surely not written).  A batch
 * that holds no entry (all repeats and refusals) writes no row, but keeps its
 * place in the order.  All pointers are good until ron_engine_release().
 */
typedef struct ron_batch_s  ron_batch_t;

struct ron_batch_s {
    ron_status_t    status;
    uint64_t        seq;                /* first; next seq when count == 0 */
    uint64_t        count;
    uint64_t        time_ms;
    ron_hash_t      root;               /* valid once durable */
    uint32_t        unit_n;
    ron_unit_t    **units;              /* as given */
    uint32_t        work_n;             /* how many of them a wallet sent */
    ron_outcome_t  *outcomes;           /* outcomes[i] is that of units[i] */
    uint32_t        balance_n;
    ron_balance_t  *balances;
    uint64_t        commit_us;          /* the append took this long */
    uint64_t        decide_us;          /* monotonic: deciding began, */
    uint64_t        decided_us;         /* ended, */
    uint64_t        append_us;          /* and the append began */
};


typedef struct {
    uint64_t  seq;                      /* durable */
    uint64_t  decided_seq;
    uint64_t  time_ms;                  /* ledger time of the head */
    uint64_t  accounts;
    uint64_t  balances;
    uint64_t  holds;
    uint64_t  state_bytes;              /* RAM, names included */
    uint64_t  name_bytes;
    uint64_t  checkpoint_gen;
    uint64_t  checkpoint_seq;
    uint64_t  replayed;                 /* entries read by open and follow */
    uint64_t  clock_drift_ms;
    uint32_t  queue_units;              /* decided, not taken by committer */
    uint32_t  queue_work;               /* those of them that a wallet sent */
    bool      failed;
    bool      summed;                   /* acquire added the money up, */
    bool      conserved;                /* and there is none too much */
} ron_engine_stat_t;


typedef struct ron_engine_s  ron_engine_t;


/* Fills in every default. */
void ron_engine_conf_init(ron_engine_conf_t *conf);

/*
 * Opens (or creates) the ledger and loads its newest valid checkpoint.
 * On failure *why gets one line that names the sequence and the reason.
 */
ron_status_t ron_engine_open(const ron_engine_conf_t *conf,
    ron_engine_t **engine, ron_buf_t *why);

/*
 * Reads up to max_bytes more of the journal.  RON_OK: there may be more.
 * RON_ENOTFOUND: it is level with the head.  RON_ECORRUPT: as above.
 */
ron_status_t ron_engine_follow(ron_engine_t *engine, size_t max_bytes,
    ron_buf_t *why);

/*
 * Becomes the writer: RON_AGAIN while another one holds the lock.  Reads the
 * tail, rebuilds what tags are missing, checks root, conservation, published
 * head and the safe-mode mark.  RON_ECORRUPT or RON_EIO: safe mode, *why says
 * which sequence and reason; reads stay possible.
 */
ron_status_t ron_engine_acquire(ron_engine_t *engine, ron_buf_t *why);

/* Runs the committer on its own thread; notify is called after each batch. */
ron_status_t ron_engine_start(ron_engine_t *engine,
    void (*notify)(void *ctx), void *ctx);

/* One batch of the committer's work by hand; RON_AGAIN when there is none. */
ron_status_t ron_engine_step(ron_engine_t *engine);

/* How many batches ron_engine_decide() would take now. */
uint32_t ron_engine_room(ron_engine_t *engine);

/*
 * Ledger time for a batch that is decided now, by the writer: it never falls
 * and never jumps, but goes on with the monotonic clock and leans towards the
 * wall clock.  Only where conf.clock knows nothing, at the first reading of a
 * machine or a master that has begun anew, it may leap to the wall clock, over
 * time that nobody measured.
 */
uint64_t ron_engine_clock(ron_engine_t *engine, uint64_t mono_us,
    uint64_t wall_ms);

/*
 * Decides units (sorted in here, by the order of the architecture) at a
 * ledger time that never falls, and gives the batch to the committer.
 * `now_us` is what deadlines are compared with.  RON_AGAIN: none of these
 * units was decided, ask again: there was no room in the queue, or so many
 * holds had expired that they took a batch of their own.  RON_EIO: failed or
 * not the writer.  n may be 0: expired holds are released.
 */
ron_status_t ron_engine_decide(ron_engine_t *engine, uint64_t time_ms,
    uint64_t now_us, ron_unit_t **units, uint32_t n);

/* When the next hold expires (ledger time), 0: none does. */
uint64_t ron_engine_next_expiry(const ron_engine_t *engine);

/* The next finished batch, in order; RON_AGAIN when there is none. */
ron_status_t ron_engine_reap(ron_engine_t *engine, ron_batch_t **batch);
void ron_engine_release(ron_engine_t *engine, ron_batch_t *batch);

/*
 * Signs and writes the head that was reaped last, after its callers have been
 * told: at once when there is nothing else to do, at most every 5 ms while
 * batches follow each other.  ron_engine_close() signs what is left.
 */
void ron_engine_sign(ron_engine_t *engine, bool idle);

/* Waits until everything decided is durable, or the time is over. */
ron_status_t ron_engine_quiesce(ron_engine_t *engine, uint64_t timeout_ms);

/*
 * What is authoritative, decided but perhaps not durable: for the sequencer's
 * own thread only.  RON_ENOTFOUND for an unknown account or asset.
 */
ron_status_t ron_engine_balance(ron_engine_t *engine, ron_str_t account,
    ron_str_t asset, ron_balance_t *balance);

/* Calls fn for every balance; for checks and tools. */
ron_status_t ron_engine_each_balance(ron_engine_t *engine,
    ron_status_t (*fn)(void *ctx, const ron_balance_t *b), void *ctx);

/* minted and burned so far, and the sums over all accounts. */
typedef struct {
    ron_str_t   asset;
    ron_u128_t  minted;
    ron_u128_t  burned;
    ron_u128_t  available;
    ron_u128_t  held;
} ron_supply_t;

ron_status_t ron_engine_each_supply(ron_engine_t *engine,
    ron_status_t (*fn)(void *ctx, const ron_supply_t *s), void *ctx);

/*
 * The outcome look-up: the entry that a wallet key stands for.
 * RON_OK: *bytes are its canonical bytes (good until the next call), and
 * *durable says whether it is on disk.  RON_ENOTFOUND: never seen.
 */
ron_status_t ron_engine_lookup_key(ron_engine_t *engine, ron_str_t scope,
    ron_str_t key, ron_str_t *bytes, bool *durable);

/*
 * The same for a batch's key, whose scope is the capability: *wire is the
 * wire form of its outcome, with the entries that it made.
 */
ron_status_t ron_engine_lookup_batch(ron_engine_t *engine, ron_str_t cap,
    ron_str_t key, ron_str_t *wire, bool *durable);

/*
 * The row of the commit that an entry came with, which must be durable: what
 * was answered to a batch, when it comes again.  Good until the next look-up.
 */
ron_status_t ron_engine_row(ron_engine_t *engine, uint64_t seq,
    ron_row_t *row);

ron_store_t *ron_engine_store(ron_engine_t *engine);

/* The key that a ledger made for itself; RON_ENOTFOUND: it did not. */
ron_status_t ron_signing_load(const char *dir, ron_signer_t **signer);

void ron_engine_stat(ron_engine_t *engine, ron_engine_stat_t *stat);

/* Stops the committer (its batch in hand is finished) and gives up the lock. */
void ron_engine_close(ron_engine_t *engine);


#endif /* RON_ENGINE_H */
