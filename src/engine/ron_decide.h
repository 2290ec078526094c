
/*
 * Inside of deciding: what ingest and wallet share.
 */

#ifndef RON_DECIDE_H
#define RON_DECIDE_H


#include "ron_engine_impl.h"


/*
 * One operation under way: the entry it would become, where its result goes,
 * and the accounts that were looked up for it.
 */
typedef struct {
    ron_engine_t      *en;
    ron_work_t        *w;
    const ron_unit_t  *unit;
    ron_entry_t        e;
    uint32_t           account;         /* as given; RON_NONE: unknown */
    uint32_t           to;
    ron_touch_t        touch;           /* of the entry, as far as known */
    ron_result_t      *result;
    ron_span_t        *span;
    ron_op_tags_t     *tags;
} ron_op_t;


/* What the batch was before a group that may be taken back. */
typedef struct {
    size_t    body_len;
    uint64_t  count;
    uint32_t  touched_n;
    uint64_t  seq;
} ron_mark_t;


/* Sets a reason; always false, so that checks can return it. */
bool ron_op_refuse(ron_op_t *op, ron_reason_t reason, ron_detail_t detail,
    uint64_t value);

/* Starts operation `i` of a unit; its results begin at `base`. */
void ron_op_init(ron_op_t *op, ron_engine_t *en, ron_work_t *w,
    const ron_unit_t *unit, uint32_t base, uint32_t i);

/*
 * The rules of money for the entry's kind: funds, supply, hold, reversal.
 * Fills in what the ledger knows better.  False: refused.
 */
bool ron_op_money(ron_op_t *op);

/* The entry that `ref` names; RON_ENOTFOUND when there is none (yet). */
ron_status_t ron_op_ref(const ron_op_t *op, ron_entry_t *e, ron_str_t *bytes);

/*
 * The open hold that the operation names, by `ref` or by its whole txid;
 * RON_ENOTFOUND when none is open, or it is another's txid.
 */
ron_status_t ron_op_hold_find(const ron_op_t *op, uint32_t *no);

/* Is a txid that was given that of the entry `ref`, which is of this time? */
bool ron_op_named(const ron_op_t *op, uint64_t time_ms);

/* Is it within what the capability may move in a day? */
bool ron_op_cap_daily(ron_op_t *op);

/* Encodes, applies, tags.  False: the engine has failed. */
bool ron_op_accept(ron_op_t *op);

/* The storage did not answer: nothing can be decided about this one. */
bool ron_op_storage(ron_op_t *op, ron_status_t status);

/*
 * Keeps the answer of a look-up in the journal: the op is a repeat of `seq`.
 */
bool ron_op_repeat(ron_op_t *op, uint64_t seq, ron_str_t bytes);

/* Sets the same refusal for every operation of a unit. */
void ron_unit_refuse(ron_work_t *w, uint32_t base, uint32_t n,
    ron_reason_t reason, ron_detail_t detail);

/* Has the key of this entry lived its day? */
bool ron_key_expired(const ron_engine_t *en, const ron_work_t *w,
    const ron_entry_t *e);

void ron_mark_begin(ron_engine_t *en, ron_work_t *w, ron_mark_t *mark);
void ron_mark_keep(ron_engine_t *en);
void ron_mark_drop(ron_engine_t *en, ron_work_t *w, const ron_mark_t *mark);

/* True when the deadline of the unit has passed. */
bool ron_unit_late(const ron_unit_t *unit, uint64_t now_us);

/*
 * Was this keyed batch decided before?  True: it is settled, by the outcome
 * of then or by a refusal.
 */
bool ron_unit_known(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    uint32_t base, ron_tag_kind_t kind, const ron_tag_t *tag,
    ron_outcome_t *out);

/*
 * Around the operations of a batch: an atomic one with a refusal is taken
 * back whole; the outcome of one with a key is kept beside its entries.
 */
void ron_unit_begin(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    ron_mark_t *mark);
void ron_unit_finish(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    uint32_t base, const ron_mark_t *mark, bool ok, const ron_tag_t *tag);

void ron_decide_ingest(ron_engine_t *en, ron_work_t *w,
    const ron_unit_t *unit, ron_outcome_t *out, uint32_t base,
    uint64_t now_us);
void ron_decide_wallet(ron_engine_t *en, ron_work_t *w,
    const ron_unit_t *unit, ron_outcome_t *out, uint32_t base,
    uint64_t now_us);
void ron_decide_batch(ron_engine_t *en, ron_work_t *w,
    const ron_unit_t *unit, ron_outcome_t *out, uint32_t base,
    uint64_t now_us);


#endif /* RON_DECIDE_H */
