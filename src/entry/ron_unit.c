
/*
 * Wire form of units and outcomes.  Units live between processes of one
 * version and may change with RON_FRAME_VERSION.  Outcomes are also kept, in
 * the notes of the journal: their form, and the numbers of reasons and
 * details, only ever grow.  Both are bounded and checked like anything that
 * comes from outside, because the worker's uid may be shared with others.
 *
 *     unit     u8 type | u8 flags | u64 source_us | u64 deadline_us |
 *              [u64 match] | [u128 cap_daily] | [u128 account_daily] |
 *              [u128 account_total] | [lstr corr] | lstr cap | lstr key |
 *              varint n | ops
 *     op       u8 kind | varint fields | the fields present, in bit order;
 *              RON_F_TXID is u16 ledger | u48 time_ms
 *     outcome  u8 reason | u8 detail | u8 replayed | varint value |
 *              varint n | results
 *     result   u8 reason | u8 detail | u8 repeat | varint seq |
 *              varint value | lstr bytes
 */

#include "ron_unit.h"
#include "ron_digest.h"


#define RON_UNIT_F_ATOMIC         0x01
#define RON_UNIT_F_STRICT         0x02
#define RON_UNIT_F_MATCH          0x04
#define RON_UNIT_F_CAP_DAILY      0x08
#define RON_UNIT_F_ACCOUNT_DAILY  0x10
#define RON_UNIT_F_ACCOUNT_TOTAL  0x20
#define RON_UNIT_F_CORR           0x40
#define RON_UNIT_F_ALL            0x7f


static uint8_t ron_unit_flags(const ron_unit_t *unit);
static ron_status_t ron_unit_hash(const ron_unit_t *unit, uint32_t fields,
    ron_buf_t *scratch, ron_hash_t *digest);
static void ron_op_encode(const ron_entry_t *op, uint32_t fields,
    ron_buf_t *out);
static void ron_op_decode(ron_rd_t *rd, ron_entry_t *op);
static void ron_op_decode_money(ron_rd_t *rd, ron_entry_t *op);
static void ron_op_decode_rest(ron_rd_t *rd, ron_entry_t *op);


ron_status_t
ron_unit_encode(const ron_unit_t *unit, ron_buf_t *out)
{
    uint8_t  flags;

    flags = ron_unit_flags(unit);

    ron_buf_put_u8(out, (uint8_t) unit->type);
    ron_buf_put_u8(out, flags);
    ron_buf_put_u64(out, unit->source_us);
    ron_buf_put_u64(out, unit->deadline_us);

    if (flags & RON_UNIT_F_MATCH) {
        ron_buf_put_u64(out, unit->match);
    }

    if (flags & RON_UNIT_F_CAP_DAILY) {
        ron_buf_put_u128(out, unit->cap_daily);
    }

    if (flags & RON_UNIT_F_ACCOUNT_DAILY) {
        ron_buf_put_u128(out, unit->account_daily);
    }

    if (flags & RON_UNIT_F_ACCOUNT_TOTAL) {
        ron_buf_put_u128(out, unit->account_total);
    }

    if (flags & RON_UNIT_F_CORR) {
        ron_buf_put_lstr(out, unit->corr);
    }

    ron_buf_put_lstr(out, unit->cap);
    ron_buf_put_lstr(out, unit->key);
    ron_buf_put_varint(out, unit->op_n);

    for (uint32_t i = 0; i < unit->op_n; i++) {
        ron_op_encode(&unit->ops[i], UINT32_MAX, out);
    }

    return ron_buf_status(out);
}


ron_status_t
ron_unit_digest(const ron_unit_t *unit, ron_buf_t *scratch,
    ron_hash_t *digest)
{
    return ron_unit_hash(unit, UINT32_MAX, scratch, digest);
}


ron_status_t
ron_unit_digest_old(const ron_unit_t *unit, ron_buf_t *scratch,
    ron_hash_t *digest)
{
    return ron_unit_hash(unit, ~(uint32_t) RON_F_TXID, scratch, digest);
}


static ron_status_t
ron_unit_hash(const ron_unit_t *unit, uint32_t fields, ron_buf_t *scratch,
    ron_hash_t *digest)
{
    memset(digest, 0, sizeof(ron_hash_t));
    ron_buf_reset(scratch);

    ron_buf_put_u8(scratch, (uint8_t) unit->type);
    ron_buf_put_u8(scratch, unit->atomic);

    for (uint32_t i = 0; i < unit->op_n; i++) {
        ron_op_encode(&unit->ops[i], fields, scratch);
    }

    if (ron_buf_status(scratch) == RON_OK) {
        ron_blake3(scratch->data, scratch->len, digest);
    }

    return ron_buf_status(scratch);
}


static uint8_t
ron_unit_flags(const ron_unit_t *unit)
{
    unsigned  flags;

    flags = 0;
    flags |= unit->atomic ? RON_UNIT_F_ATOMIC : 0;
    flags |= unit->nonce_strict ? RON_UNIT_F_STRICT : 0;
    flags |= unit->has_match ? RON_UNIT_F_MATCH : 0;
    flags |= unit->cap_daily != 0 ? RON_UNIT_F_CAP_DAILY : 0;
    flags |= unit->account_daily != 0 ? RON_UNIT_F_ACCOUNT_DAILY : 0;
    flags |= unit->account_total != 0 ? RON_UNIT_F_ACCOUNT_TOTAL : 0;
    flags |= unit->corr.len != 0 ? RON_UNIT_F_CORR : 0;

    return (uint8_t) flags;
}


static void
ron_op_encode(const ron_entry_t *op, uint32_t fields, ron_buf_t *out)
{
    uint32_t  f;

    f = op->fields & fields;

    ron_buf_put_u8(out, (uint8_t) op->kind);
    ron_buf_put_varint(out, f);

    if (f & RON_F_ASSET) {
        ron_buf_put_lstr(out, op->asset);
    }

    if (f & RON_F_ACCOUNT) {
        ron_buf_put_lstr(out, op->account);
    }

    if (f & RON_F_TO) {
        ron_buf_put_lstr(out, op->to);
    }

    if (f & RON_F_AMOUNT) {
        ron_buf_put_u128(out, op->amount);
    }

    if (f & RON_F_NONCE) {
        ron_buf_put_varint(out, op->nonce);
    }

    if (f & RON_F_NONCE16) {
        ron_buf_put(out, op->nonce16, RON_NONCE_LEN);
    }

    if (f & RON_F_ID) {
        ron_buf_put_lstr(out, op->id);
    }

    if (f & RON_F_SOURCE) {
        ron_buf_put_u48(out, op->source_ms);
    }

    if (f & RON_F_REF) {
        ron_buf_put_varint(out, op->ref);
    }

    if (f & RON_F_EXPIRY) {
        ron_buf_put_varint(out, op->expiry_ms);
    }

    if (f & RON_F_MEMO) {
        ron_buf_put(out, op->memo.b, RON_HASH_LEN);
    }

    if (f & RON_F_CAPREF) {
        ron_buf_put_lstr(out, op->capref);
    }

    if (f & RON_F_SCHEMA) {
        ron_buf_put_varint(out, op->schema);
    }

    if (f & RON_F_TXID) {
        ron_buf_put_u16(out, op->ledger_id);
        ron_buf_put_u48(out, op->time_ms);
    }
}


/* What a caller can give; the rest is the sequencer's to say. */
#define RON_OP_FIELDS                                                         \
    (RON_F_ASSET | RON_F_ACCOUNT | RON_F_TO | RON_F_AMOUNT | RON_F_NONCE      \
     | RON_F_NONCE16 | RON_F_ID | RON_F_SOURCE | RON_F_REF | RON_F_EXPIRY     \
     | RON_F_MEMO | RON_F_CAPREF | RON_F_SCHEMA | RON_F_TXID)


ron_status_t
ron_unit_decode(ron_str_t bytes, ron_unit_t *unit, ron_entry_t *ops,
    uint32_t ops_max)
{
    ron_rd_t  rd;
    uint64_t  n;
    uint8_t   type, flags;

    memset(unit, 0, sizeof(ron_unit_t));
    ron_rd_init(&rd, bytes);

    type = ron_rd_u8(&rd);
    flags = ron_rd_u8(&rd);
    unit->source_us = ron_rd_u64(&rd);
    unit->deadline_us = ron_rd_u64(&rd);

    if (type < RON_UNIT_INGEST || type > RON_UNIT_BATCH
        || (flags & ~RON_UNIT_F_ALL) != 0)
    {
        return RON_EINVAL;
    }

    unit->type = (ron_unit_type_t) type;
    unit->atomic = (flags & RON_UNIT_F_ATOMIC) != 0;
    unit->nonce_strict = (flags & RON_UNIT_F_STRICT) != 0;
    unit->has_match = (flags & RON_UNIT_F_MATCH) != 0;
    unit->match = unit->has_match ? ron_rd_u64(&rd) : 0;
    unit->cap_daily = (flags & RON_UNIT_F_CAP_DAILY) ? ron_rd_u128(&rd) : 0;
    unit->account_daily = (flags & RON_UNIT_F_ACCOUNT_DAILY)
                              ? ron_rd_u128(&rd) : 0;
    unit->account_total = (flags & RON_UNIT_F_ACCOUNT_TOTAL)
                              ? ron_rd_u128(&rd) : 0;
    unit->corr = (flags & RON_UNIT_F_CORR) ? ron_rd_lstr(&rd) : ron_str("");
    unit->cap = ron_rd_lstr(&rd);
    unit->key = ron_rd_lstr(&rd);
    n = ron_rd_varint(&rd);

    if (rd.failed || n == 0 || n > ops_max || unit->cap.len > RON_CAP_MAX
        || unit->key.len > RON_KEY_MAX || unit->corr.len > RON_CORR_MAX
        || ((flags & RON_UNIT_F_CORR) && unit->corr.len == 0))
    {
        return RON_EINVAL;
    }

    unit->op_n = (uint32_t) n;
    unit->ops = ops;

    for (uint32_t i = 0; i < unit->op_n && !rd.failed; i++) {
        ron_op_decode(&rd, &ops[i]);
    }

    return ron_rd_end(&rd);
}


static void
ron_op_decode(ron_rd_t *rd, ron_entry_t *op)
{
    uint8_t   kind;
    uint64_t  fields;

    memset(op, 0, sizeof(ron_entry_t));

    kind = ron_rd_u8(rd);
    fields = ron_rd_varint(rd);

    if (kind == RON_KIND_NONE || kind >= RON_KIND_N
        || (fields & ~(uint64_t) RON_OP_FIELDS) != 0)
    {
        rd->failed = true;
        return;
    }

    op->kind = (ron_kind_t) kind;
    op->fields = (uint32_t) fields;

    ron_op_decode_money(rd, op);
    ron_op_decode_rest(rd, op);
}


static void
ron_op_decode_money(ron_rd_t *rd, ron_entry_t *op)
{
    uint32_t   f;
    ron_str_t  s;

    f = op->fields;

    if (f & RON_F_ASSET) {
        op->asset = ron_rd_lstr(rd);
    }

    if (f & RON_F_ACCOUNT) {
        op->account = ron_rd_lstr(rd);
    }

    if (f & RON_F_TO) {
        op->to = ron_rd_lstr(rd);
    }

    if (f & RON_F_AMOUNT) {
        op->amount = ron_rd_u128(rd);
    }

    if (f & RON_F_NONCE) {
        op->nonce = ron_rd_varint(rd);
    }

    if (f & RON_F_NONCE16) {
        s = ron_rd_bytes(rd, RON_NONCE_LEN);
        if (s.len == RON_NONCE_LEN) {
            memcpy(op->nonce16, s.data, RON_NONCE_LEN);
        }
    }
}


static void
ron_op_decode_rest(ron_rd_t *rd, ron_entry_t *op)
{
    uint32_t  f;
    uint64_t  schema;

    f = op->fields;

    if (f & RON_F_ID) {
        op->id = ron_rd_lstr(rd);
    }

    if (f & RON_F_SOURCE) {
        op->source_ms = ron_rd_u48(rd);
    }

    if (f & RON_F_REF) {
        op->ref = ron_rd_varint(rd);
    }

    if (f & RON_F_EXPIRY) {
        op->expiry_ms = ron_rd_varint(rd);
    }

    if (f & RON_F_MEMO) {
        ron_rd_hash(rd, &op->memo);
    }

    if (f & RON_F_CAPREF) {
        op->capref = ron_rd_lstr(rd);
    }

    if (f & RON_F_SCHEMA) {
        schema = ron_rd_varint(rd);
        rd->failed |= schema > UINT32_MAX;
        op->schema = (uint32_t) schema;
    }

    if (f & RON_F_TXID) {
        op->ledger_id = ron_rd_u16(rd);
        op->time_ms = ron_rd_u48(rd);
        rd->failed |= !(f & RON_F_REF);
    }
}


ron_status_t
ron_outcome_encode(const ron_outcome_t *outcome, ron_buf_t *out)
{
    ron_buf_put_u8(out, (uint8_t) outcome->reason);
    ron_buf_put_u8(out, (uint8_t) outcome->detail);
    ron_buf_put_u8(out, outcome->replayed);
    ron_buf_put_varint(out, outcome->value);
    ron_buf_put_varint(out, outcome->result_n);

    for (uint32_t i = 0; i < outcome->result_n; i++) {
        ron_buf_put_u8(out, (uint8_t) outcome->results[i].reason);
        ron_buf_put_u8(out, (uint8_t) outcome->results[i].detail);
        ron_buf_put_u8(out, outcome->results[i].repeat);
        ron_buf_put_varint(out, outcome->results[i].seq);
        ron_buf_put_varint(out, outcome->results[i].value);
        ron_buf_put_lstr(out, outcome->results[i].bytes);
    }

    return ron_buf_status(out);
}


/* A reason and its detail; anything out of range fails the reader. */

static void
ron_rd_reason(ron_rd_t *rd, ron_reason_t *reason, ron_detail_t *detail)
{
    uint8_t  r, d;

    r = ron_rd_u8(rd);
    d = ron_rd_u8(rd);

    if (r >= RON_REASON_N || d >= RON_DETAIL_N) {
        rd->failed = true;
        return;
    }

    *reason = (ron_reason_t) r;
    *detail = (ron_detail_t) d;
}


/* A boolean is 0 or 1 and nothing else. */

static bool
ron_rd_bool(ron_rd_t *rd)
{
    uint8_t  v;

    v = ron_rd_u8(rd);
    rd->failed |= v > 1;

    return v == 1;
}


ron_status_t
ron_outcome_decode(ron_str_t bytes, ron_outcome_t *outcome,
    ron_result_t *results, uint32_t results_max)
{
    ron_rd_t       rd;
    uint64_t       n;
    ron_result_t  *result;

    memset(outcome, 0, sizeof(ron_outcome_t));
    ron_rd_init(&rd, bytes);

    ron_rd_reason(&rd, &outcome->reason, &outcome->detail);
    outcome->replayed = ron_rd_bool(&rd);
    outcome->value = ron_rd_varint(&rd);
    n = ron_rd_varint(&rd);

    if (rd.failed || n > results_max) {
        return RON_EINVAL;
    }

    outcome->result_n = (uint32_t) n;
    outcome->results = results;

    for (uint32_t i = 0; i < outcome->result_n && !rd.failed; i++) {
        result = &results[i];
        memset(result, 0, sizeof(ron_result_t));

        ron_rd_reason(&rd, &result->reason, &result->detail);
        result->repeat = ron_rd_bool(&rd);
        result->seq = ron_rd_varint(&rd);
        result->value = ron_rd_varint(&rd);
        result->bytes = ron_rd_lstr(&rd);
    }

    return ron_rd_end(&rd);
}
