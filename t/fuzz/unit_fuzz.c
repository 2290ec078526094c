
/*
 * Units, outcomes and all other payloads: what is taken, once written again,
 * is taken as the same thing; and a payload that is not a unit is exactly
 * what would be written.
 */

#include "ron_fuzz.h"
#include "ron_msg.h"


#define OPS_MAX  64


static ron_buf_t     one, two;
static ron_entry_t   ops[OPS_MAX], ops2[OPS_MAX];
static ron_result_t  results[OPS_MAX];


static bool
same_op(const ron_entry_t *a, const ron_entry_t *b)
{
    return a->kind == b->kind && a->fields == b->fields
           && a->amount == b->amount && a->nonce == b->nonce
           && a->source_ms == b->source_ms && a->ref == b->ref
           && a->expiry_ms == b->expiry_ms && a->schema == b->schema
           && a->ledger_id == b->ledger_id && a->time_ms == b->time_ms
           && memcmp(a->nonce16, b->nonce16, RON_NONCE_LEN) == 0
           && ron_hash_eq(&a->memo, &b->memo)
           && ron_str_eq(a->asset, b->asset)
           && ron_str_eq(a->account, b->account)
           && ron_str_eq(a->to, b->to) && ron_str_eq(a->id, b->id)
           && ron_str_eq(a->capref, b->capref);
}


static void
fuzz_unit(ron_str_t s)
{
    ron_unit_t  u, v;
    ron_hash_t  a, b;

    if (ron_unit_decode(s, &u, ops, OPS_MAX) != RON_OK) {
        return;
    }

    RON_ASSERT(u.op_n >= 1 && u.op_n <= OPS_MAX && u.ops == ops);
    RON_ASSERT(u.type >= RON_UNIT_INGEST && u.type <= RON_UNIT_BATCH);
    RON_ASSERT(u.key.len <= RON_KEY_MAX && u.cap.len <= RON_CAP_MAX);

    ron_buf_reset(&one);
    RON_ASSERT(ron_unit_encode(&u, &one) == RON_OK);
    RON_ASSERT(one.len <= s.len);
    RON_ASSERT(ron_unit_decode(ron_buf_str(&one), &v, ops2, OPS_MAX)
               == RON_OK);

    RON_ASSERT(u.type == v.type && u.atomic == v.atomic
               && u.nonce_strict == v.nonce_strict
               && u.has_match == v.has_match && u.match == v.match
               && u.source_us == v.source_us
               && u.deadline_us == v.deadline_us
               && u.cap_daily == v.cap_daily
               && u.account_daily == v.account_daily
               && u.account_total == v.account_total
               && ron_str_eq(u.cap, v.cap) && ron_str_eq(u.key, v.key)
               && ron_str_eq(u.corr, v.corr)
               && u.op_n == v.op_n);

    for (uint32_t i = 0; i < u.op_n; i++) {
        RON_ASSERT(same_op(&ops[i], &ops2[i]));
    }

    /* Who asked and when is not part of the digest, what was asked is. */

    v.source_us++;
    v.deadline_us++;
    v.cap = ron_str("someone else");
    v.corr = ron_str("another try");
    RON_ASSERT(ron_unit_digest(&u, &two, &a) == RON_OK);
    RON_ASSERT(ron_unit_digest(&v, &two, &b) == RON_OK);
    RON_ASSERT(ron_hash_eq(&a, &b));

    if (ops2[0].fields & RON_F_AMOUNT) {
        ops2[0].amount++;

    } else {
        v.atomic = !v.atomic;
    }

    RON_ASSERT(ron_unit_digest(&v, &two, &b) == RON_OK);
    RON_ASSERT(!ron_hash_eq(&a, &b));
}


static void
fuzz_outcome(ron_str_t s)
{
    ron_outcome_t    o, p;
    ron_msg_batch_t  batch;

    if (ron_outcome_decode(s, &o, results, OPS_MAX) == RON_OK) {
        RON_ASSERT(o.reason < RON_REASON_N && o.detail < RON_DETAIL_N);

        for (uint32_t i = 0; i < o.result_n; i++) {
            RON_ASSERT(results[i].reason < RON_REASON_N
                       && results[i].detail < RON_DETAIL_N);
        }

        ron_buf_reset(&one);
        RON_ASSERT(ron_outcome_encode(&o, &one) == RON_OK);
        RON_ASSERT(ron_outcome_decode(ron_buf_str(&one), &p, results, OPS_MAX)
                   == RON_OK);
        ron_buf_reset(&two);
        RON_ASSERT(ron_outcome_encode(&p, &two) == RON_OK);
        RON_ASSERT(ron_str_eq(ron_buf_str(&one), ron_buf_str(&two)));
    }

    if (ron_msg_outcome_get(s, &batch, &o, results, OPS_MAX) == RON_OK) {
        ron_buf_reset(&one);
        RON_ASSERT(ron_msg_outcome_put(&one, &batch, &o) == RON_OK);
        RON_ASSERT(ron_str_eq(ron_buf_str(&one), s));

    } else {
        RON_ASSERT(o.result_n == 0 && o.results == NULL && batch.size == 0);
    }
}


static void
fuzz_others(ron_str_t s)
{
    ron_str_t          a, b;
    ron_msg_ask_t      ask;
    ron_msg_admin_t    admin;
    ron_msg_state_t    state;
    ron_msg_lookup_t   lookup;
    ron_msg_commit_t   commit;
    ron_msg_balance_t  balance;

    ron_buf_reset(&one);

    if (ron_msg_balance_get(s, &balance) == RON_OK) {
        ron_msg_balance_put(&one, &balance);
        RON_ASSERT(ron_str_eq(ron_buf_str(&one), s));
        ron_buf_reset(&one);
    }

    if (ron_msg_two_get(s, &a, &b) == RON_OK) {
        ron_msg_two_put(&one, a, b);
        RON_ASSERT(ron_str_eq(ron_buf_str(&one), s));
        ron_buf_reset(&one);
    }

    if (ron_msg_ask_get(s, &ask) == RON_OK) {
        ron_msg_ask_put(&one, &ask);
        RON_ASSERT(ron_str_eq(ron_buf_str(&one), s));
        ron_buf_reset(&one);
    }

    if (ron_msg_lookup_get(s, &lookup) == RON_OK) {
        RON_ASSERT(lookup.what < RON_LOOKUP_N);
        ron_msg_lookup_put(&one, &lookup);
        RON_ASSERT(ron_str_eq(ron_buf_str(&one), s));
        ron_buf_reset(&one);
    }

    if (ron_msg_admin_get(s, &admin) == RON_OK) {
        RON_ASSERT(admin.pair_n <= RON_MSG_PAIRS_MAX
                   && admin.status < RON_ADMIN_STATUS_N);
        ron_msg_admin_put(&one, &admin);
        RON_ASSERT(ron_str_eq(ron_buf_str(&one), s));
        ron_buf_reset(&one);
    }

    if (ron_msg_state_get(s, &state) == RON_OK) {
        RON_ASSERT(state.state < RON_STATE_N
                   && state.reason.len <= RON_MSG_REASON_MAX);
        ron_msg_state_put(&one, &state);
        RON_ASSERT(ron_str_eq(ron_buf_str(&one), s));
        ron_buf_reset(&one);
    }

    if (ron_msg_commit_get(s, &commit) == RON_OK) {
        ron_msg_commit_put(&one, &commit);
        RON_ASSERT(ron_str_eq(ron_buf_str(&one), s));
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t   f = { data, data + len };
    uint8_t  what;

    if (two.max == 0) {
        ron_buf_init(&one, 1 << 24);
        ron_buf_init(&two, 1 << 24);
    }

    what = fuzz_u8(&f);

    switch (what % 3) {
    case 0:
        fuzz_unit(fuzz_rest(&f));
        break;
    case 1:
        fuzz_outcome(fuzz_rest(&f));
        break;
    default:
        fuzz_others(fuzz_rest(&f));
    }

    return 0;
}
