
/*
 * Payloads.  The formats are in ron_msg.h.
 */

#include "ron_msg.h"


#define RON_MSG_BATCH_LEN        (RON_HASH_LEN + 2 * 8)

#define RON_BALANCE_UNKNOWN      0
#define RON_BALANCE_FOUND        1
#define RON_BALANCE_UNAVAILABLE  2


ron_status_t
ron_msg_outcome_put(ron_buf_t *out, const ron_msg_batch_t *batch,
    const ron_outcome_t *outcome)
{
    ron_buf_put(out, batch->root.b, RON_HASH_LEN);
    ron_buf_put_u64(out, batch->size);
    ron_buf_put_u64(out, batch->time_ms);

    return ron_outcome_encode(outcome, out);
}


ron_reason_t
ron_msg_outcome_reason(ron_str_t payload)
{
    uint8_t  reason;

    if (payload.len <= RON_MSG_BATCH_LEN) {
        return RON_REASON_INTERNAL;
    }

    reason = payload.data[RON_MSG_BATCH_LEN];

    return reason < RON_REASON_N ? (ron_reason_t) reason
                                 : RON_REASON_INTERNAL;
}


ron_status_t
ron_msg_outcome_get(ron_str_t payload, ron_msg_batch_t *batch,
    ron_outcome_t *outcome, ron_result_t *results, uint32_t results_max)
{
    ron_rd_t      rd;
    ron_str_t     rest;
    ron_status_t  status;

    memset(batch, 0, sizeof(ron_msg_batch_t));
    memset(outcome, 0, sizeof(ron_outcome_t));

    ron_rd_init(&rd, payload);
    ron_rd_hash(&rd, &batch->root);
    batch->size = ron_rd_u64(&rd);
    batch->time_ms = ron_rd_u64(&rd);

    if (rd.failed) {
        memset(batch, 0, sizeof(ron_msg_batch_t));
        return RON_EINVAL;
    }

    rest.data = rd.pos;
    rest.len = ron_rd_left(&rd);

    status = ron_outcome_decode(rest, outcome, results, results_max);

    if (status != RON_OK) {
        memset(batch, 0, sizeof(ron_msg_batch_t));
        memset(outcome, 0, sizeof(ron_outcome_t));
    }

    return status;
}


void
ron_msg_balance_put(ron_buf_t *out, const ron_msg_balance_t *balance)
{
    ron_buf_put_u8(out, balance->unavailable ? RON_BALANCE_UNAVAILABLE
                        : balance->found ? RON_BALANCE_FOUND
                        : RON_BALANCE_UNKNOWN);
    ron_buf_put_u128(out, balance->available);
    ron_buf_put_u128(out, balance->held);
    ron_buf_put_u64(out, balance->nonce);
    ron_buf_put_u64(out, balance->version);
    ron_buf_put_u64(out, balance->seq);
    ron_buf_put_u64(out, balance->time_ms);
}


ron_status_t
ron_msg_balance_get(ron_str_t payload, ron_msg_balance_t *balance)
{
    uint8_t   what;
    ron_rd_t  rd;

    memset(balance, 0, sizeof(ron_msg_balance_t));

    ron_rd_init(&rd, payload);
    what = ron_rd_u8(&rd);
    balance->found = what == RON_BALANCE_FOUND;
    balance->unavailable = what == RON_BALANCE_UNAVAILABLE;
    balance->available = ron_rd_u128(&rd);
    balance->held = ron_rd_u128(&rd);
    balance->nonce = ron_rd_u64(&rd);
    balance->version = ron_rd_u64(&rd);
    balance->seq = ron_rd_u64(&rd);
    balance->time_ms = ron_rd_u64(&rd);

    if (what > RON_BALANCE_UNAVAILABLE || ron_rd_end(&rd) != RON_OK) {
        memset(balance, 0, sizeof(ron_msg_balance_t));
        return RON_EINVAL;
    }

    return RON_OK;
}


void
ron_msg_two_put(ron_buf_t *out, ron_str_t a, ron_str_t b)
{
    ron_buf_put_lstr(out, a);
    ron_buf_put_lstr(out, b);
}


ron_status_t
ron_msg_two_get(ron_str_t payload, ron_str_t *a, ron_str_t *b)
{
    ron_rd_t  rd;

    ron_rd_init(&rd, payload);
    *a = ron_rd_lstr(&rd);
    *b = ron_rd_lstr(&rd);

    if (ron_rd_end(&rd) != RON_OK) {
        *a = ron_null_str;
        *b = ron_null_str;
        return RON_EINVAL;
    }

    return RON_OK;
}


void
ron_msg_ask_put(ron_buf_t *out, const ron_msg_ask_t *ask)
{
    ron_buf_put_lstr(out, ask->account);
    ron_buf_put_lstr(out, ask->cap);
    ron_buf_put_lstr(out, ask->key);
}


ron_status_t
ron_msg_ask_get(ron_str_t payload, ron_msg_ask_t *ask)
{
    ron_rd_t  rd;

    ron_rd_init(&rd, payload);
    ask->account = ron_rd_lstr(&rd);
    ask->cap = ron_rd_lstr(&rd);
    ask->key = ron_rd_lstr(&rd);

    if (ron_rd_end(&rd) != RON_OK) {
        memset(ask, 0, sizeof(ron_msg_ask_t));
        return RON_EINVAL;
    }

    return RON_OK;
}


void
ron_msg_lookup_put(ron_buf_t *out, const ron_msg_lookup_t *lookup)
{
    ron_buf_put_u8(out, (uint8_t) lookup->what);
    ron_buf_put_u8(out, lookup->batch);
    ron_buf_put_lstr(out, lookup->entry);
}


ron_status_t
ron_msg_lookup_get(ron_str_t payload, ron_msg_lookup_t *lookup)
{
    uint8_t   what, batch;
    ron_rd_t  rd;

    memset(lookup, 0, sizeof(ron_msg_lookup_t));

    ron_rd_init(&rd, payload);
    what = ron_rd_u8(&rd);
    batch = ron_rd_u8(&rd);
    lookup->entry = ron_rd_lstr(&rd);

    if (what >= RON_LOOKUP_N || ron_rd_end(&rd) != RON_OK
        || (lookup->entry.len > 0) != (what == RON_LOOKUP_COMMITTED)
        || batch > (what == RON_LOOKUP_COMMITTED))
    {
        memset(lookup, 0, sizeof(ron_msg_lookup_t));
        return RON_EINVAL;
    }

    lookup->what = (ron_lookup_t) what;
    lookup->batch = batch;

    return RON_OK;
}


void
ron_msg_admin_put(ron_buf_t *out, const ron_msg_admin_t *admin)
{
    uint32_t  i;

    ron_buf_put_u8(out, (uint8_t) admin->status);
    ron_buf_put_lstr(out, admin->text);
    ron_buf_put_varint(out, admin->pair_n);

    for (i = 0; i < admin->pair_n; i++) {
        ron_buf_put_lstr(out, admin->pair[i].key);
        ron_buf_put_lstr(out, admin->pair[i].value);
    }
}


ron_status_t
ron_msg_admin_get(ron_str_t payload, ron_msg_admin_t *admin)
{
    uint8_t   status;
    uint64_t  i, n;
    ron_rd_t  rd;

    memset(admin, 0, sizeof(ron_msg_admin_t));

    ron_rd_init(&rd, payload);
    status = ron_rd_u8(&rd);
    admin->text = ron_rd_lstr(&rd);
    n = ron_rd_varint(&rd);

    for (i = 0; i < n && i < RON_MSG_PAIRS_MAX; i++) {
        admin->pair[i].key = ron_rd_lstr(&rd);
        admin->pair[i].value = ron_rd_lstr(&rd);
    }

    if (status >= RON_ADMIN_STATUS_N || n > RON_MSG_PAIRS_MAX
        || ron_rd_end(&rd) != RON_OK)
    {
        memset(admin, 0, sizeof(ron_msg_admin_t));
        return RON_EINVAL;
    }

    admin->status = (ron_admin_status_t) status;
    admin->pair_n = (uint32_t) n;

    return RON_OK;
}


void
ron_msg_admin_add(ron_msg_admin_t *admin, ron_str_t key, ron_str_t value)
{
    RON_ASSERT(admin->pair_n < RON_MSG_PAIRS_MAX);

    admin->pair[admin->pair_n].key = key;
    admin->pair[admin->pair_n].value = value;
    admin->pair_n++;
}


void
ron_msg_state_put(ron_buf_t *out, const ron_msg_state_t *state)
{
    ron_str_t  reason;

    reason = state->reason;
    reason.len = ron_min(reason.len, (size_t) RON_MSG_REASON_MAX);

    ron_buf_put_u8(out, (uint8_t) state->state);
    ron_buf_put_lstr(out, reason);
}


ron_status_t
ron_msg_state_get(ron_str_t payload, ron_msg_state_t *state)
{
    uint8_t   value;
    ron_rd_t  rd;

    memset(state, 0, sizeof(ron_msg_state_t));

    ron_rd_init(&rd, payload);
    value = ron_rd_u8(&rd);
    state->reason = ron_rd_lstr(&rd);

    if (value >= RON_STATE_N || state->reason.len > RON_MSG_REASON_MAX
        || ron_rd_end(&rd) != RON_OK)
    {
        memset(state, 0, sizeof(ron_msg_state_t));
        return RON_EINVAL;
    }

    state->state = (ron_life_t) value;

    return RON_OK;
}


void
ron_msg_commit_put(ron_buf_t *out, const ron_msg_commit_t *commit)
{
    ron_buf_put_u64(out, commit->seq);
    ron_buf_put_u64(out, commit->count);
    ron_buf_put_u64(out, commit->time_ms);
    ron_buf_put(out, commit->root.b, RON_HASH_LEN);
}


ron_status_t
ron_msg_commit_get(ron_str_t payload, ron_msg_commit_t *commit)
{
    ron_rd_t  rd;

    memset(commit, 0, sizeof(ron_msg_commit_t));

    ron_rd_init(&rd, payload);
    commit->seq = ron_rd_u64(&rd);
    commit->count = ron_rd_u64(&rd);
    commit->time_ms = ron_rd_u64(&rd);
    ron_rd_hash(&rd, &commit->root);

    if (ron_rd_end(&rd) != RON_OK) {
        memset(commit, 0, sizeof(ron_msg_commit_t));
        return RON_EINVAL;
    }

    return RON_OK;
}
