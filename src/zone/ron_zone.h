
/*
 * The zone: caches and counters in memory that all processes share.
 *
 * Plain C over a region that the embedder gives (NGINX: one slab allocation).
 * The journal is the truth; the zone may be thrown away at any time, and
 * nothing that is read here decides about money.
 *
 *     header     magic, version, sizes and offsets of the areas
 *     beat       state, head and time of the ledger, written by the helper
 *     slots      one a process: who owns it, what it has admitted
 *     metrics    one block of cells a slot
 *     breakers   a small table
 *     rings      the last 1 024 events of the ledger, and of the wallet
 *     balances   \
 *     idem        > caches: buckets of 8 entries, share of what is left
 *     tokens     /
 *     nonces     64 shards
 *     rates      token buckets
 *
 * No locks.  A process may be killed between any two instructions, and
 * nobody unlocks for it, so there is nothing to unlock: counters are single
 * atomic words, everything longer is behind a sequence word (odd: being
 * written) and a checksum.  A reader that finds an odd sequence, a sequence
 * that moved or a wrong sum has found nothing, and asks the ledger.  The next
 * writer of that place heals it.
 *
 * No pointers.  The region is mapped at different addresses; everything in it
 * is an offset or a number.
 *
 * Adopting.  ron_zone_adopt() runs for a configuration that may never come to
 * life, and under a test of a configuration: it validates and writes nothing.
 */

#ifndef RON_ZONE_H
#define RON_ZONE_H


#include <stdatomic.h>

#include "ron.h"
#include "ron_buf.h"
#include "ron_frame.h"
#include "ron_registry.h"


#define RON_ZONE_VERSION      7
#define RON_ZONE_SLOTS        128
#define RON_ZONE_SLOT_NONE    UINT32_MAX
#define RON_ZONE_MIN          (8 * 1024 * 1024)
#define RON_ZONE_EVENTS       1024
#define RON_ZONE_EVENT_MAX    224
#define RON_ZONE_SHARDS       64
#define RON_ZONE_BREAKERS     32
#define RON_ZONE_NAME_MAX     32


typedef _Atomic uint64_t  ron_word_t;

/* Process-local: where things are.  Copy it freely. */
typedef struct {
    uint8_t  *base;
    size_t    len;
    size_t    beat;
    size_t    slots;
    size_t    metrics;
    size_t    breakers;
    size_t    rings;
    size_t    balances;
    size_t    balance_marks;
    size_t    notes;
    size_t    nonces;
    size_t    rates;
    uint64_t  balance_buckets;
    uint64_t  note_buckets;
    uint64_t  nonce_buckets;            /* a shard's */
    uint64_t  rate_buckets;
    uint64_t  shards;                   /* of nonces; 0: RON_ZONE_SHARDS */
} ron_zone_t;


/*
 * Lays out a fresh region, which must be 64-byte aligned.  RON_EFULL: shorter
 * than RON_ZONE_MIN.  The magic is written last, so a region whose
 * initialisation was cut off is refused by adopt.
 */
ron_status_t ron_zone_init(void *region, size_t len, ron_zone_t *zone);

/*
 * Attaches to a region that another process laid out, without writing.
 * RON_EINVAL: not a zone, or not of this length.  RON_EVERSION: of a build
 * whose layout differs; use a fresh region.
 */
ron_status_t ron_zone_adopt(void *region, size_t len, ron_zone_t *zone);


/* ---- heartbeat: one writer, the process that holds the ledger ----------- */

typedef struct {
    ron_life_t   state;
    uint64_t     generation;        /* of the writer; 0: never was one */
    uint64_t     pid;
    uint64_t     beat_us;           /* monotonic, of the newest publication */
    uint64_t     sync_since_us;     /* monotonic; 0: not in an append */
    uint64_t     seq;               /* durable */
    uint64_t     time_ms;           /* ledger time of it */
    uint64_t     committed_ms;      /* wall, of the newest durable batch */
    uint64_t     sample_us;         /* monotonic, of the sampled gauges */
    uint64_t     commit_depth;
    ron_hash_t   root;
    uint64_t     mark;              /* of reading; see ron_zone_beat_same() */
} ron_beat_t;

void ron_zone_beat_write(const ron_zone_t *zone, const ron_beat_t *beat);

/* RON_AGAIN: it was being written all the time (or its writer died). */
ron_status_t ron_zone_beat_read(const ron_zone_t *zone, ron_beat_t *beat);

/*
 * Nothing was written since it was read, but maybe sync_since_us: who asks
 * often reads it again only when there is another.
 */
bool ron_zone_beat_same(const ron_zone_t *zone, const ron_beat_t *beat);


/* ---- slots: one a process ----------------------------------------------- */

/* RON_EFULL when every slot has an owner. */
ron_status_t ron_zone_slot_claim(const ron_zone_t *zone, uint32_t pid,
    uint32_t *slot);
void ron_zone_slot_leave(const ron_zone_t *zone, uint32_t slot);
uint32_t ron_zone_slot_pid(const ron_zone_t *zone, uint32_t slot);

/* How many slots have an owner that is alive. */
uint32_t ron_zone_slots_alive(const ron_zone_t *zone,
    bool (*alive)(void *ctx, uint32_t pid), void *ctx);

/*
 * Gives back what owners took that are dead: the slot, what it had admitted,
 * its gauges.  Its counters stay: a counter never goes down.  Returns how
 * many slots were reclaimed.
 */
uint32_t ron_zone_slots_sweep(const ron_zone_t *zone,
    bool (*alive)(void *ctx, uint32_t pid), void *ctx);


/* ---- admission: ingress and work, counted over all processes ------------ */

typedef enum {
    RON_ADMIT_INGRESS = 0,
    RON_ADMIT_WORK,
    RON_ADMIT_CHECK,                /* checks by other services, under way */
    RON_ADMIT_PARSE,                /* bodies in threads */
    RON_ADMIT_PARSE_WAIT,           /* and those that wait for one */
    RON_ADMIT_N
} ron_admit_t;

/*
 * One more request.  RON_EFULL when `capacity` are in: never more, however
 * many processes ask at once.  Each RON_OK needs one ron_zone_admit_done().
 */
ron_status_t ron_zone_admit(const ron_zone_t *zone, uint32_t slot,
    ron_admit_t queue, uint64_t capacity);
void ron_zone_admit_done(const ron_zone_t *zone, uint32_t slot,
    ron_admit_t queue);
uint64_t ron_zone_admitted(const ron_zone_t *zone, ron_admit_t queue);


/* ---- caches ------------------------------------------------------------- */

/*
 * Entries are found by 128 bits of SipHash-2-4 over all parts of the key, with
 * a secret of the zone that is made with it.  So two keys are the same to a
 * cache with probability 2^-128, nobody outside can look for such keys, and
 * account names and tokens are not in the zone at all.  A key means nothing to
 * another zone.
 */
typedef struct {
    uint64_t  w[2];
} ron_zone_key_t;

void ron_zone_key(const ron_zone_t *zone, ron_str_t a, ron_str_t b,
    ron_zone_key_t *key);

typedef struct {
    ron_u128_t  available;
    ron_u128_t  held;
    uint64_t    nonce;
    uint64_t    version;
    uint64_t    seq;                /* right as of this entry, */
    uint64_t    as_of_ms;           /* and of this wall time */
} ron_zone_balance_t;

/*
 * Balances: written by the helper after each durable batch.  An older seq
 * never replaces a newer one.  RON_ENOTFOUND: ask the ledger.
 */
void ron_zone_balance_put(const ron_zone_t *zone, ron_str_t account,
    ron_str_t asset, const ron_zone_balance_t *balance, uint64_t now_ms);

/*
 * The same with keys, each ron_zone_key() of account and asset: memory is
 * asked for what will be touched, so that who writes many does not wait for
 * one after the other.
 */
void ron_zone_balances_ahead(const ron_zone_t *zone,
    const ron_zone_key_t *keys, size_t n);
void ron_zone_balance_put_key(const ron_zone_t *zone,
    const ron_zone_key_t *key, const ron_zone_balance_t *balance,
    uint64_t now_ms);

ron_status_t ron_zone_balance_get(const ron_zone_t *zone, ron_str_t account,
    ron_str_t asset, ron_zone_balance_t *balance, uint64_t now_ms);

/* A new writer: what an earlier one left must not be believed. */
void ron_zone_balances_wipe(const ron_zone_t *zone);


/* ---- nonces: an early hint, never an authority -------------------------- */

/* An account, as nonces know it: its hash, and its shard by its prefix. */

typedef struct {
    ron_zone_key_t  key;
    uint64_t        prefix;
} ron_zone_nonce_t;

void ron_zone_nonce_init(const ron_zone_t *zone, ron_str_t account,
    ron_zone_nonce_t *n);

/*
 * Moves the account's counter from below `nonce` to `nonce` by compare-and-
 * swap.  RON_EEXIST: it is there already, or further (*last).  That is a
 * hint: a replay has an old nonce too, so a request that may be a replay goes
 * to the sequencer all the same.
 */
ron_status_t ron_zone_nonce_reserve(const ron_zone_t *zone,
    const ron_zone_nonce_t *n, uint64_t nonce, uint64_t *last);

/* A reservation that was refused: back, unless somebody went further. */
void ron_zone_nonce_release(const ron_zone_t *zone,
    const ron_zone_nonce_t *n, uint64_t nonce, uint64_t last);

/* What a commit says: at least this. */
void ron_zone_nonce_commit(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce);

/*
 * Keeps under which idempotency key a nonce is durable, as long as there is
 * room.  ron_zone_nonce_taken(): it is, and the key was another one; so this
 * request is no replay, and cannot be accepted.  False when that is not
 * certain.
 */
void ron_zone_nonce_note(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce, ron_str_t key);
bool ron_zone_nonce_taken(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce, ron_str_t key);

/* The note of this nonce will be written: its memory is asked for. */
void ron_zone_nonce_near(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce);

/* A new writer: what it has may be another ledger. */
void ron_zone_notes_wipe(const ron_zone_t *zone);


/* ---- rate limits -------------------------------------------------------- */

typedef struct {
    uint64_t  left;                 /* tokens */
    uint64_t  full_us;              /* until it is full again */
    uint64_t  retry_us;             /* until there is one; 0: there was */
} ron_zone_rate_t;

/*
 * A token bucket of `burst` tokens filled at `rate` a second (rate 0: no
 * limit), as one word: the time at which it will be full again.  RON_EFULL:
 * empty, and is->retry_us says for how long.  When the table is full the
 * bucket that has been full for longest makes room.
 */
ron_status_t ron_zone_rate_take(const ron_zone_t *zone,
    const ron_zone_key_t *key, uint64_t rate, uint64_t burst,
    uint64_t now_us, ron_zone_rate_t *is);


/* ---- breakers ----------------------------------------------------------- */

typedef struct {
    uint32_t  errors;               /* in the window; 20 */
    uint32_t  window_ms;            /* 10 000 */
    uint32_t  open_ms;              /* 5 000 */
    uint32_t  probes;               /* 10, at most 63 */
} ron_breaker_conf_t;

typedef enum {
    RON_BREAKER_CLOSED = 0,
    RON_BREAKER_OPEN,
    RON_BREAKER_HALF_OPEN
} ron_breaker_state_t;

void ron_breaker_conf_init(ron_breaker_conf_t *conf);

/* By name, shared by all processes; RON_EFULL when the table is. */
ron_status_t ron_zone_breaker(const ron_zone_t *zone, ron_str_t name,
    uint32_t *breaker);

/*
 * May a call be made?  RON_ECANCELED: no, for *retry_ms.  *probe: this call
 * is one of the few that decide whether to close; its result must be told.
 */
ron_status_t ron_zone_breaker_ask(const ron_zone_t *zone, uint32_t breaker,
    const ron_breaker_conf_t *conf, uint64_t now_ms, bool *probe,
    uint64_t *retry_ms);

/* What became of it; true when this result opened the breaker. */
bool ron_zone_breaker_tell(const ron_zone_t *zone, uint32_t breaker,
    const ron_breaker_conf_t *conf, uint64_t now_ms, bool success);

/*
 * A probe that nobody can tell of: its client went away, it was not sent, or
 * it had too little time to say anything.  Another may be made in its place.
 */
void ron_zone_breaker_return(const ron_zone_t *zone, uint32_t breaker,
    const ron_breaker_conf_t *conf);

/* Closes it at once: a hello from a new helper. */
void ron_zone_breaker_close(const ron_zone_t *zone, uint32_t breaker);
ron_breaker_state_t ron_zone_breaker_state(const ron_zone_t *zone,
    uint32_t breaker);

/* The same without asking it for a call, and since when it is so. */
ron_breaker_state_t ron_zone_breaker_look(const ron_zone_t *zone,
    uint32_t breaker, uint64_t *since_ms);


/* ---- rings of events: one writer, any number of readers ----------------- */

/*
 * A number of 48 bits that this zone has had since it was laid out, and no
 * other has: indexes of events say nothing without it.
 */
uint64_t ron_zone_life(const ron_zone_t *zone);

/* LEDGER is the ledger bus: what is durable.  WALLET is the audit stream's. */
typedef enum {
    RON_RING_LEDGER = 0,
    RON_RING_WALLET,
    RON_RING_N
} ron_ring_t;

typedef enum {
    RON_EVENT_COMMIT = 1,           /* a batch is durable: seq, count, root */
    RON_EVENT_HEAD,                 /* a writer begins: seq, root */
    RON_EVENT_WALLET                /* what became of a wallet operation */
} ron_event_type_t;

typedef struct {
    uint64_t  index;                /* 0, 1, 2 ... since the zone began */
    uint64_t  type;
    uint64_t  seq;
    uint64_t  count;
    uint64_t  time_ms;
    uint64_t  data_len;
    uint8_t   data[RON_ZONE_EVENT_MAX];
} ron_event_t;

/* index is given here.  RON_ERANGE: data too long. */
ron_status_t ron_zone_event_put(const ron_zone_t *zone, ron_ring_t ring,
    const ron_event_t *event);

/* Where a new subscriber begins: behind the newest event. */
uint64_t ron_zone_event_cursor(const ron_zone_t *zone, ron_ring_t ring);

/*
 * The event at *cursor, which moves on.  RON_AGAIN: nothing newer.  *lost:
 * so many were overwritten before they were read; the cursor is then at the
 * oldest that is left.
 */
ron_status_t ron_zone_event_get(const ron_zone_t *zone, ron_ring_t ring,
    uint64_t *cursor, ron_event_t *event, uint64_t *lost);

/*
 * A ring that nobody reads need not be filled: subscribers say now and then
 * that they listen, and the writer asks whether one did in the last minute.
 */
void ron_zone_ring_listen(const ron_zone_t *zone, ron_ring_t ring,
    uint64_t now_ms);
bool ron_zone_ring_heard(const ron_zone_t *zone, ron_ring_t ring,
    uint64_t now_ms);


/* ---- the invalidator of balances, a reader of the ledger bus ------------ */

/*
 * Balances are published with their commit, before its event is.  So a commit
 * whose event does not join on to the one before, or an event that was
 * overwritten before it was read, means that balances may have changed which
 * nobody here has seen: then all of them are dropped.
 */
typedef struct {
    uint64_t  cursor;
    uint64_t  seq;                  /* followed up to here; 0: not yet */
} ron_zone_bus_t;

/* Where it begins: at the newest event. */
void ron_zone_bus_init(const ron_zone_t *zone, ron_zone_bus_t *bus);

/*
 * Reads what is new.  How many commits were missed; when that is not 0, the
 * balances have been dropped.
 */
uint64_t ron_zone_bus_follow(const ron_zone_t *zone, ron_zone_bus_t *bus);


/* ---- inside ------------------------------------------------------------- */

/*
 * A region that has been laid out: zeroed, with a secret of its own.  Without
 * one (ron_random()) it is as it was.
 */
ron_status_t ron_zone_clear(const ron_zone_t *zone);

static inline ron_word_t *
ron_zone_words(const ron_zone_t *zone, size_t offset)
{
    return (ron_word_t *) (void *) (zone->base + offset);
}


#endif /* RON_ZONE_H */
