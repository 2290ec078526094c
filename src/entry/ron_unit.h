
/*
 * Units: what is asked of the ledger.  One HTTP request is one unit (of a
 * stream, one server batch), with its operations in their own order.
 *
 * An operation is an entry without seq and time: `fields` says what the
 * caller gave.  Two conveniences make requests small, the sequencer fills in
 * the rest: a Capture or Release of a wallet gives only `ref` (and amount),
 * and a wallet's Hold gives `expiry_ms` as a duration.
 *
 * Everything that a decision depends on is in here, so that the same list of
 * (batch time, units) gives the same journal on every machine.
 */

#ifndef RON_UNIT_H
#define RON_UNIT_H


#include "ron_entry.h"
#include "ron_reason.h"


#define RON_UNIT_OPS_MAX  16384

/*
 * In the fields of an operation and of no entry: `ref` came as a txid, and
 * `ledger_id` and `time_ms` are what else that said.
 */
#define RON_F_TXID  0x80000


typedef enum {
    RON_UNIT_INGEST = 1,        /* POST /ledger/ingest: entries */
    RON_UNIT_WALLET,            /* one wallet operation, with a key */
    RON_UNIT_BATCH              /* POST /v1/batch: wallet operations, a key */
} ron_unit_type_t;


typedef struct {
    ron_unit_type_t  type;
    bool             atomic;
    bool             nonce_strict;
    bool             has_match;         /* If-Match */
    uint64_t         source_us;         /* when a worker received it, wall */
    uint64_t         deadline_us;       /* monotonic; 0: none */
    uint64_t         match;             /* account version */
    ron_u128_t       cap_daily;         /* max_daily caveat; 0: none */
    ron_u128_t       account_daily;     /* ceiling; 0: none */
    ron_u128_t       account_total;     /* ceiling; 0: none */
    ron_str_t        cap;               /* "<kid>:<capability id>" */
    ron_str_t        key;               /* idempotency key, or idem_id */
    ron_str_t        corr;              /* X-Corr-ID; empty: none */
    uint32_t         op_n;
    ron_entry_t     *ops;

    void            *ctx;               /* the caller's, untouched */
} ron_unit_t;


/*
 * The wire form (frames, recorded inputs).  Decoding takes room for the
 * operations from `ops` (at most ops_max); the views point into `bytes`.
 * ctx is not part of it.
 */
ron_status_t ron_unit_encode(const ron_unit_t *unit, ron_buf_t *out);
ron_status_t ron_unit_decode(ron_str_t bytes, ron_unit_t *unit,
    ron_entry_t *ops, uint32_t ops_max);


/*
 * What the unit asks for, as 32 bytes: type, atomic, and the operations with
 * everything that the caller gave.  Equal units have equal digests; who asked
 * and when is not part of it.
 */
ron_status_t ron_unit_digest(const ron_unit_t *unit, ron_buf_t *scratch,
    ron_hash_t *digest);

/* The same as it was before operations had RON_F_TXID: older notes have it. */
ron_status_t ron_unit_digest_old(const ron_unit_t *unit, ron_buf_t *scratch,
    ron_hash_t *digest);


/*
 * What became of it.  `seq` is the entry's (of the original, when `repeat`);
 * `bytes` are its canonical bytes, given for wallet operations only; `value`
 * goes with the detail (the nonce that was expected, what is left).
 */
typedef struct {
    ron_reason_t  reason;
    ron_detail_t  detail;
    bool          repeat;
    uint64_t      seq;
    uint64_t      value;
    ron_str_t     bytes;
} ron_result_t;


/*
 * `reason` is OK when at least one operation was accepted; else the first
 * reason.  `replayed`: the answer of an earlier unit with the same key.
 */
typedef struct {
    ron_reason_t   reason;
    ron_detail_t   detail;
    bool           replayed;
    uint64_t       value;
    uint32_t       result_n;
    ron_result_t  *results;             /* one an operation */
} ron_outcome_t;

/* The wire form, given to the worker that asked. */
ron_status_t ron_outcome_encode(const ron_outcome_t *outcome, ron_buf_t *out);
ron_status_t ron_outcome_decode(ron_str_t bytes, ron_outcome_t *outcome,
    ron_result_t *results, uint32_t results_max);


#endif /* RON_UNIT_H */
