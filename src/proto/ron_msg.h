
/*
 * What is inside the frames, once a connection is ready.
 *
 *     OUTCOME     32 root | u64 size | u64 time_ms | outcome wire form
 *     BALANCE     lstr account | lstr asset
 *     BALANCE_IS  u8 what (0 unknown, 1 found, 2 unavailable) |
 *                 u128 available | u128 held | u64 nonce | u64 version |
 *                 u64 seq | u64 time_ms
 *     LOOKUP      lstr account | lstr capability | lstr key
 *     LOOKUP_IS   u8 what | u8 batch | lstr entry bytes, or a batch's
 *                 outcome wire form
 *     ADMIN       u8 what is asked | its own payload
 *     ADMIN_IS    u8 status | lstr text | varint n | n x (lstr, lstr)
 *     STATE       u8 state | lstr reason
 *     COMMIT      u64 seq | u64 count | u64 time_ms | 32 root
 *
 * UNIT carries the wire form of ron_unit.h and nothing else.  Every get
 * accepts exactly what put produces, to the last byte; views point into the
 * payload.
 */

#ifndef RON_MSG_H
#define RON_MSG_H


#include "ron_frame.h"
#include "ron_unit.h"


#define RON_MSG_REASON_MAX  512
#define RON_MSG_PAIRS_MAX   128


/* The tree after the batch of a unit, or of the ingest that it repeats. */
typedef struct {
    ron_hash_t  root;
    uint64_t    size;                   /* = seq of its last entry */
    uint64_t    time_ms;
} ron_msg_batch_t;

typedef struct {
    bool        found;                  /* false: never seen, all zero */
    bool        unavailable;            /* no authority now, ask again */
    ron_u128_t  available;
    ron_u128_t  held;
    uint64_t    nonce;
    uint64_t    version;
    uint64_t    seq;                    /* durable up to here when asked */
    uint64_t    time_ms;
} ron_msg_balance_t;

typedef enum {
    RON_LOOKUP_UNKNOWN = 0,             /* never seen */
    RON_LOOKUP_PENDING,                 /* queued, or not yet durable */
    RON_LOOKUP_COMMITTED,
    RON_LOOKUP_UNAVAILABLE,             /* no authority now, ask again */
    RON_LOOKUP_N
} ron_lookup_t;

typedef struct {
    ron_lookup_t  what;
    bool          batch;                /* `entry` is an outcome's wire form */
    ron_str_t     entry;                /* canonical bytes, COMMITTED only */
} ron_msg_lookup_t;

typedef enum {
    RON_ADMIN_DONE = 0,
    RON_ADMIN_REFUSED,                  /* not in this state; text says why */
    RON_ADMIN_UNAVAILABLE,              /* this build cannot do that */
    RON_ADMIN_FAILED,
    RON_ADMIN_STATUS_N
} ron_admin_status_t;

typedef struct {
    ron_str_t  key;
    ron_str_t  value;
} ron_msg_pair_t;

typedef struct {
    ron_admin_status_t  status;
    ron_str_t           text;
    uint32_t            pair_n;
    ron_msg_pair_t      pair[RON_MSG_PAIRS_MAX];
} ron_msg_admin_t;

typedef struct {
    ron_life_t  state;
    ron_str_t    reason;
} ron_msg_state_t;

typedef struct {
    uint64_t    seq;                    /* of the batch's last entry */
    uint64_t    count;                  /* 0: the final root of a drain */
    uint64_t    time_ms;
    ron_hash_t  root;
} ron_msg_commit_t;


ron_status_t ron_msg_outcome_put(ron_buf_t *out, const ron_msg_batch_t *batch,
    const ron_outcome_t *outcome);
/* Only the reason of it; RON_REASON_INTERNAL: it cannot be read. */
ron_reason_t ron_msg_outcome_reason(ron_str_t payload);

/* Room for the results is the caller's; RON_EFULL when there are more. */
ron_status_t ron_msg_outcome_get(ron_str_t payload, ron_msg_batch_t *batch,
    ron_outcome_t *outcome, ron_result_t *results, uint32_t results_max);

void ron_msg_balance_put(ron_buf_t *out, const ron_msg_balance_t *balance);
ron_status_t ron_msg_balance_get(ron_str_t payload,
    ron_msg_balance_t *balance);

/* Two strings: BALANCE (account, asset). */
void ron_msg_two_put(ron_buf_t *out, ron_str_t a, ron_str_t b);
ron_status_t ron_msg_two_get(ron_str_t payload, ron_str_t *a, ron_str_t *b);

/*
 * LOOKUP: a key is an operation's of this account, or a batch's of this
 * capability ("<kid>:<capability id>"; empty: batches are not asked for).
 */
typedef struct {
    ron_str_t  account;
    ron_str_t  cap;
    ron_str_t  key;
} ron_msg_ask_t;

void ron_msg_ask_put(ron_buf_t *out, const ron_msg_ask_t *ask);
ron_status_t ron_msg_ask_get(ron_str_t payload, ron_msg_ask_t *ask);

void ron_msg_lookup_put(ron_buf_t *out, const ron_msg_lookup_t *lookup);
ron_status_t ron_msg_lookup_get(ron_str_t payload, ron_msg_lookup_t *lookup);

void ron_msg_admin_put(ron_buf_t *out, const ron_msg_admin_t *admin);
ron_status_t ron_msg_admin_get(ron_str_t payload, ron_msg_admin_t *admin);
void ron_msg_admin_add(ron_msg_admin_t *admin, ron_str_t key,
    ron_str_t value);

void ron_msg_state_put(ron_buf_t *out, const ron_msg_state_t *state);
ron_status_t ron_msg_state_get(ron_str_t payload, ron_msg_state_t *state);

void ron_msg_commit_put(ron_buf_t *out, const ron_msg_commit_t *commit);
ron_status_t ron_msg_commit_get(ron_str_t payload, ron_msg_commit_t *commit);


#endif /* RON_MSG_H */
