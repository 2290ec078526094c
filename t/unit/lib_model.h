
/*
 * The ledger in its simplest form, to judge the engine by.
 *
 * There is one piece of state: the list of entries so far, with what was
 * asked for each.  A balance, a nonce, what is left of a hold, the sum of a
 * day: every question is answered by reading that list from its beginning.
 * Undoing is shortening the list.  No index, no cache, no running total: slow
 * and easy to believe.
 *
 * It is written from the contract and shares no code with src/engine.
 */

#ifndef LIB_MODEL_H
#define LIB_MODEL_H


#include "ron_unit.h"


typedef struct {
    ron_entry_t  entry;             /* as the journal has it */
    ron_entry_t  asked;             /* as the caller gave it */
} model_entry_t;


typedef struct {
    ron_reason_t  reason;
    ron_detail_t  detail;
    bool          repeat;
    bool          done;             /* there is an answer */
    uint64_t      seq;
    uint64_t      value;
} model_result_t;


typedef struct {
    ron_reason_t     reason;
    ron_detail_t     detail;
    bool             replayed;
    uint64_t         value;
    uint32_t         result_n;
    model_result_t  *results;
} model_outcome_t;


/* A unit that changed the ledger, and its answer. */
typedef struct {
    ron_unit_t        asked;
    uint64_t          time_ms;
    uint64_t          first;        /* the first seq that is its own */
    model_outcome_t  *outcome;
} model_unit_t;


typedef struct model_chunk_s  model_chunk_t;

typedef struct {
    uint16_t        ledger_id;
    uint64_t        key_ttl_ms;
    uint64_t        time_ms;

    model_entry_t  *entries;        /* entries[i] has seq i + 1 */
    uint64_t        entry_n;
    uint64_t        entry_max;

    model_unit_t   *units;
    uint32_t        unit_n;
    uint32_t        unit_max;

    model_chunk_t  *chunks;         /* memory, all freed at the end */
} model_t;


void model_init(model_t *m, uint16_t ledger_id, uint64_t key_ttl_ms);
void model_free(model_t *m);

/*
 * Decides units as ron_engine_decide() must.  outcomes[i] is that of
 * units[i]; it lives as long as the model, and nothing of `units` is kept.
 * order[k], when not NULL, gets the unit that was decided as the k-th.
 */
void model_decide(model_t *m, uint64_t time_ms, uint64_t now_us,
    ron_unit_t **units, uint32_t n, model_outcome_t **outcomes,
    uint32_t *order);

/* Forgets all after entry `seq`, the end of a batch: what a crash does. */
void model_cut(model_t *m, uint64_t seq);

/* Balances as they were after entry `seq`. */
ron_u128_t model_available(const model_t *m, uint64_t seq, ron_str_t account,
    ron_str_t asset);
ron_u128_t model_held(const model_t *m, uint64_t seq, ron_str_t account,
    ron_str_t asset);
uint64_t model_nonce(const model_t *m, uint64_t seq, ron_str_t account);
uint64_t model_version(const model_t *m, uint64_t seq, ron_str_t account);
ron_u128_t model_minted(const model_t *m, uint64_t seq, ron_str_t asset);
ron_u128_t model_burned(const model_t *m, uint64_t seq, ron_str_t asset);

/* What a hold has left; 0 when `seq` is no hold. */
ron_u128_t model_left(const model_t *m, uint64_t seq);

/* When the next hold expires, 0: none does. */
uint64_t model_next_expiry(const model_t *m);


#endif /* LIB_MODEL_H */
