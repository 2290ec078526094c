
/*
 * Outcomes to bodies.  What a client reads about an operation is a pure
 * function of its entry; what it reads about a refusal, of the reason.
 */

#include "ron_api.h"
#include "ron_codec.h"
#include "ron_receipt.h"


static ron_status_t ron_api_outcome_error(ron_reason_t reason,
    ron_detail_t detail, uint64_t value, ron_api_error_t *err);
static ron_status_t ron_api_receipt(ron_buf_t *out, ron_str_t bytes);
static void ron_api_put_reasons(ron_buf_t *out, const ron_outcome_t *outcome);
static void ron_api_put_op(ron_buf_t *out, const ron_entry_t *e);


static ron_status_t
ron_api_outcome_error(ron_reason_t reason, ron_detail_t detail,
    uint64_t value, ron_api_error_t *err)
{
    (void) ron_api_refuse(err, reason, NULL, NULL);

    err->detail = detail;
    err->value = value;
    err->has_value = reason == RON_REASON_NONCE;

    return RON_EINVAL;
}


static ron_status_t
ron_api_receipt(ron_buf_t *out, ron_str_t bytes)
{
    ron_entry_t  e;

    if (ron_entry_decode(bytes, &e) != RON_OK) {
        return ron_corrupt();
    }

    return ron_receipt_put(&e, out);
}


ron_status_t
ron_api_wallet_answer(ron_buf_t *out, const ron_outcome_t *outcome,
    ron_entry_t *e, ron_api_error_t *err)
{
    if (outcome->reason != RON_REASON_OK) {
        return ron_api_outcome_error(outcome->reason, outcome->detail,
                                     outcome->value, err);
    }

    if (outcome->result_n != 1
        || outcome->results[0].reason != RON_REASON_OK
        || ron_entry_decode(outcome->results[0].bytes, e) != RON_OK)
    {
        return ron_corrupt();
    }

    return ron_receipt_put(e, out);
}


ron_status_t
ron_api_batch_answer(ron_buf_t *out, const ron_outcome_t *outcome,
    ron_api_proofs_t *proofs, uint16_t *status, ron_api_error_t *err)
{
    uint32_t             i, refused;
    ron_status_t         rc;
    const ron_result_t  *result;

    *status = 0;

    if (outcome->reason != RON_REASON_OK) {
        return ron_api_outcome_error(outcome->reason, outcome->detail,
                                     outcome->value, err);
    }

    refused = 0;

    for (i = 0; i < outcome->result_n; i++) {
        refused += outcome->results[i].reason != RON_REASON_OK;
    }

    ron_buf_put_u8(out, '{');
    ron_json_put_member_bool(out, ron_str("accepted"), refused == 0);
    ron_json_put_key(out, ron_str("receipts"));
    ron_buf_put_u8(out, '[');

    for (i = 0; i < outcome->result_n; i++) {
        result = &outcome->results[i];

        if (result->reason != RON_REASON_OK) {
            continue;
        }

        ron_json_put_comma(out);

        rc = ron_api_receipt(out, result->bytes);

        if (rc == RON_OK && proofs != NULL) {
            rc = ron_api_proofs_put(proofs, result->seq, result->bytes, out);
        }

        if (rc != RON_OK) {
            return rc;
        }
    }

    ron_buf_put_u8(out, ']');
    ron_api_put_reasons(out, outcome);
    ron_buf_put_u8(out, '}');
    *status = refused == 0 ? 200 : 207;

    return ron_buf_status(out);
}


ron_status_t
ron_api_ingest_answer(ron_buf_t *out, const ron_msg_batch_t *batch,
    const ron_outcome_t *outcome, uint16_t *status, ron_api_error_t *err)
{
    uint32_t             i, refused;
    uint64_t             first, last;
    const ron_result_t  *result;

    *status = 0;

    if (outcome->reason != RON_REASON_OK) {
        return ron_api_outcome_error(outcome->reason, outcome->detail,
                                     outcome->value, err);
    }

    first = 0;
    last = 0;
    refused = 0;

    for (i = 0; i < outcome->result_n; i++) {
        result = &outcome->results[i];

        if (result->reason != RON_REASON_OK) {
            refused++;
            continue;
        }

        first = first == 0 ? result->seq : ron_min(first, result->seq);
        last = ron_max(last, result->seq);
    }

    ron_buf_put_u8(out, '{');
    ron_json_put_member_bool(out, ron_str("accepted"), refused == 0);
    ron_json_put_member_u64(out, ron_str("seq_start"), first);
    ron_json_put_member_u64(out, ron_str("seq_end"), last);
    ron_json_put_key(out, ron_str("new_root"));
    ron_json_put_hex(out, (ron_str_t) { RON_HASH_LEN, batch->root.b });
    ron_json_put_key(out, ron_str("entries"));
    ron_buf_put_u8(out, '[');

    for (i = 0; i < outcome->result_n; i++) {
        result = &outcome->results[i];

        if (result->reason == RON_REASON_OK) {
            ron_json_put_comma(out);
            ron_buf_put_u8(out, '{');
            ron_json_put_member_u64(out, ron_str("idx"), i);
            ron_json_put_member_u64(out, ron_str("seq"), result->seq);
            ron_buf_put_u8(out, '}');
        }
    }

    ron_buf_put_u8(out, ']');
    ron_api_put_reasons(out, outcome);
    ron_buf_put_u8(out, '}');
    *status = refused == 0 ? 200 : 207;

    return ron_buf_status(out);
}


/* The member of a batch's answer that says what was refused, and why. */

static void
ron_api_put_reasons(ron_buf_t *out, const ron_outcome_t *outcome)
{
    const ron_result_t  *result;

    ron_json_put_key(out, ron_str("reasons"));
    ron_buf_put_u8(out, '[');

    for (uint32_t i = 0; i < outcome->result_n; i++) {
        result = &outcome->results[i];

        if (result->reason == RON_REASON_OK) {
            continue;
        }

        ron_json_put_comma(out);
        ron_buf_put_u8(out, '{');
        ron_json_put_member_u64(out, ron_str("idx"), i);
        ron_json_put_member(out, ron_str("reason"),
                            ron_cstr(ron_reason_info(result->reason)->ingest));
        ron_json_put_member(out, ron_str("detail"),
                            ron_cstr(ron_detail_text(result->detail)));
        ron_buf_put_u8(out, '}');
    }

    ron_buf_put_u8(out, ']');
}


ron_status_t
ron_api_check_put(ron_buf_t *out, ron_str_t svc, const ron_unit_t *unit,
    uint64_t deadline_ms)
{
    uint32_t            i;
    const ron_entry_t  *e;

    ron_buf_put_u8(out, '{');
    ron_json_put_member(out, ron_str("svc"), svc);
    ron_json_put_member(out, ron_str("capability"), unit->cap);
    ron_json_put_member_u64(out, ron_str("deadline"), deadline_ms);

    if (unit->key.len != 0) {
        ron_json_put_member(out, ron_str("key"), unit->key);
    }

    ron_json_put_member_bool(out, ron_str("atomic"), unit->atomic);
    ron_json_put_key(out, ron_str("ops"));
    ron_buf_put_u8(out, '[');

    for (i = 0; i < unit->op_n; i++) {
        e = &unit->ops[i];

        ron_json_put_comma(out);
        ron_buf_put_u8(out, '{');
        ron_json_put_member(out, ron_str("kind"),
                            ron_cstr(ron_kind_name(e->kind)));
        ron_api_put_op(out, e);
        ron_buf_put_u8(out, '}');
    }

    ron_buf_put_cstr(out, "]}");

    return ron_buf_status(out);
}


/* What the caller gave, under the names of an entry. */
static void
ron_api_put_op(ron_buf_t *out, const ron_entry_t *e)
{
    char    nonce[ron_base64_len(RON_NONCE_LEN)];
    size_t  len;

    if (e->fields & RON_F_ACCOUNT) {
        ron_json_put_member(out, ron_str("account"), e->account);
    }

    if (e->fields & RON_F_TO) {
        ron_json_put_member(out, ron_str("to"), e->to);
    }

    if (e->fields & RON_F_ASSET) {
        ron_json_put_member(out, ron_str("asset"), e->asset);
    }

    if (e->fields & RON_F_AMOUNT) {
        ron_json_put_member_amount(out, ron_str("amount"), e->amount);
    }

    if (e->fields & RON_F_NONCE) {
        ron_json_put_member_u64(out, ron_str("nonce"), e->nonce);
    }

    if (e->fields & RON_F_NONCE16) {
        len = ron_base64_encode((ron_str_t) { RON_NONCE_LEN, e->nonce16 },
                                nonce);
        ron_json_put_member(out, ron_str("nonce"),
                            (ron_str_t) { len, (uint8_t *) nonce });
    }

    if (e->fields & RON_F_ID) {
        ron_json_put_member(out, ron_str("id"), e->id);
    }

    if (e->fields & RON_F_REF) {
        ron_json_put_member_u64(out, ron_str("ref"), e->ref);
    }
}


void
ron_api_account_put(ron_buf_t *out, ron_str_t account, ron_str_t asset,
    const ron_msg_balance_t *balance)
{
    if (out->len == 0) {
        ron_buf_put_u8(out, '{');
        ron_json_put_member(out, ron_str("account"), account);
        ron_json_put_member_u64(out, ron_str("nonce"), balance->nonce);
        ron_json_put_member_u64(out, ron_str("version"), balance->version);
        ron_json_put_key(out, ron_str("balances"));
        ron_buf_put_u8(out, '[');
    }

    ron_json_put_comma(out);
    ron_buf_put_u8(out, '{');
    ron_json_put_member(out, ron_str("asset"), asset);
    ron_json_put_member_amount(out, ron_str("amount_minor"),
                               balance->available);
    ron_json_put_member_amount(out, ron_str("held_minor"), balance->held);
    ron_buf_put_u8(out, '}');
}


ron_status_t
ron_api_outcome_answer(ron_buf_t *out, const ron_msg_lookup_t *lookup,
    const ron_outcome_t *batch, bool final)
{
    uint16_t         status;
    ron_status_t     rc;
    ron_api_error_t  err;

    ron_buf_put_u8(out, '{');

    switch (lookup->what) {

    case RON_LOOKUP_COMMITTED:
        ron_json_put_member(out, ron_str("outcome"), ron_str("committed"));
        ron_json_put_key(out, batch ? ron_str("batch") : ron_str("receipt"));

        rc = batch ? ron_api_batch_answer(out, batch, NULL, &status, &err)
                   : ron_api_receipt(out, lookup->entry);
        if (rc != RON_OK) {
            return rc == RON_EINVAL ? ron_corrupt() : rc;
        }

        break;

    case RON_LOOKUP_PENDING:
        ron_json_put_member(out, ron_str("outcome"), ron_str("pending"));
        break;

    case RON_LOOKUP_UNKNOWN:
        ron_json_put_member(out, ron_str("outcome"), ron_str("unknown"));
        ron_json_put_member_bool(out, ron_str("final"), final);
        break;

    case RON_LOOKUP_UNAVAILABLE:
    case RON_LOOKUP_N:
        return RON_AGAIN;
    }

    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


ron_status_t
ron_api_admin_answer(ron_buf_t *out, const ron_msg_admin_t *admin,
    ron_api_error_t *err)
{
    uint32_t  i;

    switch (admin->status) {

    case RON_ADMIN_DONE:
        break;

    case RON_ADMIN_REFUSED:
        return ron_api_refuse(err, RON_REASON_CONFLICT,
                              "the ledger's state does not allow it", NULL);

    case RON_ADMIN_UNAVAILABLE:
        return ron_api_refuse(err, RON_REASON_NOT_FOUND,
                              "this build cannot do that", NULL);

    case RON_ADMIN_FAILED:
    case RON_ADMIN_STATUS_N:
        return ron_api_refuse(err, RON_REASON_INTERNAL,
                              "it was tried and failed", NULL);
    }

    ron_buf_put_cstr(out, "{\"done\":true");
    ron_json_put_member(out, ron_str("text"), admin->text);

    for (i = 0; i < admin->pair_n; i++) {
        ron_json_put_key(out, admin->pair[i].key);
        ron_json_put_string(out, admin->pair[i].value);
    }

    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}
