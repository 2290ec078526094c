
/*
 * The authoritative state: every field that a decision reads, in RAM.
 *
 *     accounts   name, last nonce, version, what was debited today
 *     balances   available and held, one an account and asset, in the
 *                account's list
 *     assets     minted and burned, both modulo 2^128; their difference, the
 *                supply, is exact and never passes 2^128 - 1
 *     holds      what is left of each open hold; a heap of their expiries
 *     reversed   how much of an entry was reversed
 *     caps       what each capability moved today
 *
 * State changes in one way only: ron_state_apply() of an entry.  Deciding
 * (ron_decide.c) looks, builds the entry and applies it; recovery, followers
 * and verifiers apply what the journal holds.  So a replay cannot disagree.
 *
 * Memory, at most: 48 bytes an account with one balance, its name and a byte
 * rounded up to two, and 5.3 to 10.7 bytes of index.  Records sit in chunks
 * that never move.  Few balances are held in part, or reach 2^63, so a record
 * has 8 bytes (ron_cell_t); one that did, or was below 0 between two legs of a
 * posting, has 32 more, from then on, as has a day's debits of 2^63.
 *
 * Undo.  Between ron_state_begin() and ron_state_end() every change is noted,
 * and ron_state_rollback() takes all of them back: atomic batches and
 * postings try, and keep or drop.
 *
 * Checkpoints are fuzzy (ron_checkpoint.c): slice by slice, each right as of
 * its own seq.  While a journal is replayed over such a checkpoint, an entry
 * changes an object only if the object's slice does not hold it already;
 * `as_of` remembers that, and is forgotten when the replay has passed the
 * last slice.
 */

#ifndef RON_STATE_H
#define RON_STATE_H


#include "ron.h"
#include "ron_buf.h"
#include "ron_entry.h"
#include "ron_heap.h"
#include "ron_siphash.h"


#define RON_NONE        UINT32_MAX
#define RON_ASSETS_MAX  65535

#define RON_DAY_MS      UINT64_C(86400000)

/* Accounts in one checkpoint slice, and in one cell of `as_of`. */
#define RON_SLICE_ACCOUNTS  256


typedef struct {
    ron_u128_t  available;
    ron_u128_t  held;
} ron_purse_t;


/*
 * What is available, when that is below 2^63 and nothing is held; else that
 * bit and a number in `purses`.
 */
typedef uint64_t  ron_cell_t  __attribute__((aligned(2)));


typedef struct {
    uint32_t    name;               /* where: ron_name_at() */
    uint32_t    first;              /* balance, or RON_NONE */
    uint16_t    day;                /* of `daily`: ron_account_day() */
    uint64_t    nonce;
    uint64_t    version;
    ron_cell_t  daily;              /* nothing of it is held */
} __attribute__((packed, aligned(2))) ron_account_t;


typedef struct {
    ron_cell_t  purse;
    uint32_t    next;
    uint16_t    asset;
} __attribute__((packed, aligned(2))) ron_balance_rec_t;


typedef struct {
    char        name[RON_ASSET_MAX];
    uint32_t    name_len;
    ron_u128_t  minted;
    ron_u128_t  burned;
} ron_asset_t;


typedef struct {
    uint64_t    seq;                /* 0: a free record */
    uint64_t    expiry_ms;          /* 0: none */
    uint64_t    as_of;
    uint64_t    time_ms;            /* of the entry; 0: its entry knows */
    ron_u128_t  left;
    uint32_t    account;
    uint32_t    to;
    uint16_t    asset;
} ron_hold_t;


typedef struct {
    uint64_t    seq;                /* of the entry that was reversed */
    uint64_t    as_of;
    ron_u128_t  total;
} ron_reversed_t;


typedef struct {
    uint32_t    name;               /* offset in cap_names */
    uint64_t    as_of;
    ron_u128_t  sum;
} ron_cap_sum_t;


/* Fixed-size records in chunks that never move. */
typedef struct {
    uint8_t   **chunks;
    uint32_t    chunk_n;
    uint32_t    n;
    uint32_t    rec_len;
} ron_pool_t;


/* Open addressing over record numbers; the keys are in the records. */
typedef struct {
    uint32_t  *slots;
    uint32_t   mask;                /* slots - 1; 0: no table yet */
    uint32_t   used;
} ron_index_t;


typedef struct ron_undo_s  ron_undo_t;


typedef struct {
    ron_sipkey_t   sip;
    uint64_t       seq;             /* applied */
    uint64_t       time_ms;

    ron_pool_t     accounts;
    ron_pool_t     balances;
    ron_pool_t     purses;          /* what no cell holds */
    ron_index_t    by_name;

    uint8_t      **names;           /* chunks of names */
    uint32_t       name_chunk_n;
    uint64_t       name_used;       /* units */

    ron_asset_t   *assets;
    uint32_t       asset_n;
    uint32_t       asset_cap;
    uint32_t       asset_last;      /* most entries name the same one */

    ron_pool_t     holds;
    ron_index_t    by_hold;
    uint32_t       hold_free;       /* list through ron_hold_t.account */
    uint32_t       hold_n;          /* open */
    ron_heap_t     expiries;

    ron_pool_t     reversed;
    ron_index_t    by_reversed;

    ron_pool_t     caps;            /* only of caps_day */
    ron_index_t    by_cap;
    ron_buf_t      cap_names;
    uint64_t       caps_day;
    uint64_t       caps_purges;

    uint64_t      *as_of;           /* one cell RON_SLICE_ACCOUNTS accounts */
    uint32_t       as_of_n;
    uint64_t       as_of_assets;
    uint64_t       as_of_last;      /* no object is later than this */

    bool           undo_on;
    ron_undo_t    *undo;
    uint32_t       undo_n;
    uint32_t       undo_cap;

    bool           failed;          /* memory ran out half-way */
} ron_state_t;


ron_status_t ron_state_init(ron_state_t *st);
void ron_state_free(ron_state_t *st);

/*
 * Before the first entry of a batch: what capabilities moved on an earlier
 * day is forgotten.  Not between begin and end.  A replay over a checkpoint
 * may come from a day before that of the loaded sums: those stay.
 */
void ron_state_advance(ron_state_t *st, uint64_t time_ms);

/* What an entry is about to touch, when the caller has looked already. */
typedef struct {
    uint32_t  from;                 /* account numbers, or RON_NONE */
    uint32_t  to;
} ron_touch_t;

/*
 * The effect of an entry whose seq is one more than the last.  RON_ECORRUPT
 * when it cannot follow from the state (the journal, or we, are wrong).
 * `touch` gets the accounts whose balances it moved; may carry hints in.
 */
ron_status_t ron_state_apply(ron_state_t *st, const ron_entry_t *e,
    ron_touch_t *touch);

/* RON_NONE when unknown. */
uint32_t ron_state_account(const ron_state_t *st, ron_str_t name);
uint32_t ron_state_asset(ron_state_t *st, ron_str_t name);
uint32_t ron_state_balance(const ron_state_t *st, uint32_t account,
    uint32_t asset);
uint32_t ron_state_hold(const ron_state_t *st, uint64_t seq);
ron_u128_t ron_state_reversed(const ron_state_t *st, uint64_t seq);

/* Days since the epoch, of which every 65 536th is the same. */

static inline uint16_t
ron_account_day(uint64_t time_ms)
{
    return (uint16_t) (time_ms / RON_DAY_MS);
}


/* What a capability moved today, an account on the day of time_ms. */
ron_u128_t ron_state_cap_daily(const ron_state_t *st, ron_str_t cap);
ron_u128_t ron_state_daily(const ron_state_t *st, uint32_t account,
    uint64_t time_ms);

/* The records; the number is one that the functions above returned. */
ron_account_t *ron_account_at(const ron_state_t *st, uint32_t no);
ron_balance_rec_t *ron_balance_at(const ron_state_t *st, uint32_t no);
ron_hold_t *ron_hold_at(const ron_state_t *st, uint32_t no);

/* The amounts of a balance.  Of an account's day: ron_state_daily(). */
ron_purse_t ron_state_purse(const ron_state_t *st, uint32_t balance);

/* A cell of a record; what can be undone is kept before it is set. */
ron_purse_t ron_cell_get(const ron_state_t *st, ron_cell_t cell);
void ron_cell_set(ron_state_t *st, ron_cell_t *cell, ron_purse_t purse);

ron_str_t ron_name_at(const ron_state_t *st, uint32_t where);
ron_str_t ron_asset_name(const ron_state_t *st, uint32_t no);
ron_str_t ron_cap_name_at(const ron_state_t *st, uint32_t where);

/*
 * The hold that expires first, if its time has come: RON_OK and its number,
 * in the order (expiry, seq).  It stays there until it is released.
 */
ron_status_t ron_state_expired(ron_state_t *st, uint64_t time_ms,
    uint32_t *hold);
uint64_t ron_state_next_expiry(ron_state_t *st);

/* How many have expired, counted up to `max`. */
uint32_t ron_state_expired_n(const ron_state_t *st, uint64_t time_ms,
    uint32_t max);

/* See "Undo" above.  They do not nest. */
void ron_state_begin(ron_state_t *st);
void ron_state_rollback(ron_state_t *st);
void ron_state_end(ron_state_t *st);

/*
 * The same look-up in two halves, for a caller that knows its accounts early:
 * the hash of a name, and what it leads to.
 */
uint64_t ron_state_hash(const ron_state_t *st, ron_str_t name);
uint32_t ron_state_find(const ron_state_t *st, ron_str_t name, uint64_t hash);

/*
 * Starts fetching what ron_state_find() will touch, one step further each
 * stage: 0 the index, 1 the account, 2 its name and balance.  Called for all
 * accounts of a batch, stage by stage, it hides the latency of memory.
 */
void ron_state_prefetch(const ron_state_t *st, uint64_t hash, unsigned stage);

/* Per asset: available + held over all accounts = minted - burned. */
ron_status_t ron_state_check(ron_state_t *st);

/* Bytes of RAM, and those of them that names take. */
uint64_t ron_state_bytes(const ron_state_t *st, uint64_t *names);


/* For ron_checkpoint.c, which loads records instead of deciding them. */
uint32_t ron_state_add_account(ron_state_t *st, ron_str_t name);
uint32_t ron_state_add_balance(ron_state_t *st, uint32_t account,
    uint32_t asset);
uint32_t ron_state_add_asset(ron_state_t *st, ron_str_t name);
ron_status_t ron_state_add_hold(ron_state_t *st, const ron_hold_t *hold);
ron_reversed_t *ron_state_add_reversed(ron_state_t *st, uint64_t seq);
ron_cap_sum_t *ron_state_add_cap(ron_state_t *st, ron_str_t cap);
void *ron_pool_at(const ron_pool_t *pool, uint32_t no);


#endif /* RON_STATE_H */
