
/*
 * Units and outcomes on the wire: what goes in comes out, what is cut or out
 * of bounds is refused, and nothing that arrives can be read beyond its end.
 */

#include "ron_unit.h"

#include "ron_seed.h"
#include "ron_test.h"


#define UNITS_N   5000
#define OPS_MAX   12


static uint64_t  seed = 13;
static uint8_t   pool[1 << 16];
static size_t    pool_n;


static uint64_t
rnd(uint64_t below)
{
    return ron_seed_below(&seed, below);
}


static uint64_t
rnd_u64(void)
{
    return (rnd(UINT64_MAX) << 1 | rnd(2)) >> rnd(64);
}


/* Bytes of any value: what they may say is checked where they are used. */

static ron_str_t
rnd_text(size_t max)
{
    size_t    n;
    uint8_t  *s;

    n = rnd(4) == 0 ? rnd(max + 1) : rnd(ron_min(max, 12) + 1);

    RON_ASSERT(pool_n + n <= sizeof(pool));
    s = pool + pool_n;
    pool_n += n;

    for (size_t i = 0; i < n; i++) {
        s[i] = (uint8_t) rnd(256);
    }

    return n == 0 ? ron_null_str : (ron_str_t) { n, s };
}


#define OP_FIELDS                                                             \
    (RON_F_ASSET | RON_F_ACCOUNT | RON_F_TO | RON_F_AMOUNT | RON_F_NONCE      \
     | RON_F_NONCE16 | RON_F_ID | RON_F_SOURCE | RON_F_REF | RON_F_EXPIRY     \
     | RON_F_MEMO | RON_F_CAPREF | RON_F_SCHEMA)


static void
rnd_op(ron_entry_t *op)
{
    uint32_t  f;

    memset(op, 0, sizeof(ron_entry_t));
    op->kind = (ron_kind_t) (1 + rnd(RON_KIND_N - 1));
    op->fields = f = (uint32_t) rnd(RON_F_ALL + 1) & OP_FIELDS;

    if (f & RON_F_ASSET) { op->asset = rnd_text(RON_ASSET_MAX); }
    if (f & RON_F_ACCOUNT) { op->account = rnd_text(RON_ACCOUNT_MAX); }
    if (f & RON_F_TO) { op->to = rnd_text(RON_ACCOUNT_MAX); }
    if (f & RON_F_ID) { op->id = rnd_text(RON_ID_MAX); }
    if (f & RON_F_CAPREF) { op->capref = rnd_text(RON_ID_MAX); }
    if (f & RON_F_NONCE) { op->nonce = rnd_u64(); }
    if (f & RON_F_SOURCE) { op->source_ms = rnd(UINT64_C(1) << 48); }
    if (f & RON_F_REF) { op->ref = rnd_u64(); }

    if ((f & RON_F_REF) && rnd(2)) {
        op->fields |= RON_F_TXID;
        op->ledger_id = (uint16_t) rnd(65536);
        op->time_ms = rnd(UINT64_C(1) << 48);
    }

    if (f & RON_F_EXPIRY) { op->expiry_ms = rnd_u64(); }
    if (f & RON_F_SCHEMA) { op->schema = (uint32_t) rnd(UINT32_MAX); }

    if (f & RON_F_AMOUNT) {
        op->amount = (ron_u128_t) rnd_u64() << 64 | rnd_u64();
    }

    for (unsigned i = 0; i < RON_HASH_LEN; i++) {
        if (f & RON_F_MEMO) {
            op->memo.b[i] = (uint8_t) rnd(256);
        }

        if (f & RON_F_NONCE16) {
            op->nonce16[i % RON_NONCE_LEN] = (uint8_t) rnd(256);
        }
    }
}


static void
rnd_unit(ron_unit_t *unit, ron_entry_t *ops)
{
    pool_n = 0;

    memset(unit, 0, sizeof(ron_unit_t));
    unit->type = (ron_unit_type_t) (1 + rnd(3));
    unit->atomic = rnd(2);
    unit->nonce_strict = rnd(2);
    unit->has_match = rnd(2);
    unit->match = unit->has_match ? rnd_u64() : 0;
    unit->source_us = rnd_u64();
    unit->deadline_us = rnd_u64();
    unit->cap_daily = rnd(2) ? (ron_u128_t) rnd_u64() << 64 | 1 : 0;
    unit->account_daily = rnd(2) ? rnd_u64() : 0;
    unit->account_total = rnd(2) ? ~(ron_u128_t) 0 : 0;
    unit->cap = rnd_text(RON_CAP_MAX);
    unit->key = rnd_text(RON_KEY_MAX);
    unit->corr = rnd(2) ? rnd_text(RON_CORR_MAX) : ron_str("");
    unit->op_n = (uint32_t) (1 + rnd(OPS_MAX));
    unit->ops = ops;

    for (uint32_t i = 0; i < unit->op_n; i++) {
        rnd_op(&ops[i]);
    }
}


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


static bool
same_unit(const ron_unit_t *a, const ron_unit_t *b)
{
    bool  same;

    same = a->type == b->type && a->atomic == b->atomic
           && a->nonce_strict == b->nonce_strict
           && a->has_match == b->has_match && a->match == b->match
           && a->source_us == b->source_us
           && a->deadline_us == b->deadline_us
           && a->cap_daily == b->cap_daily
           && a->account_daily == b->account_daily
           && a->account_total == b->account_total
           && ron_str_eq(a->cap, b->cap) && ron_str_eq(a->key, b->key)
           && ron_str_eq(a->corr, b->corr)
           && a->op_n == b->op_n;

    for (uint32_t i = 0; same && i < a->op_n; i++) {
        same = same_op(&a->ops[i], &b->ops[i]);
    }

    return same;
}


/* From a copy of exactly its length, so that a checker sees a read beyond. */

static ron_status_t
decode_exact(const uint8_t *data, size_t len, ron_unit_t *unit,
    ron_entry_t *ops, uint32_t max, uint8_t **copy)
{
    *copy = malloc(len != 0 ? len : 1);
    RON_ASSERT(*copy != NULL);

    if (len != 0) {
        memcpy(*copy, data, len);
    }

    return ron_unit_decode((ron_str_t) { len, *copy }, unit, ops, max);
}


static void
test_units(void)
{
    size_t        same, prefixes, refused, changed;
    uint8_t      *copy;
    ron_buf_t     out;
    ron_unit_t    unit, back;
    ron_entry_t   ops[OPS_MAX], back_ops[OPS_MAX];

    same = prefixes = refused = changed = 0;

    for (unsigned i = 0; i < UNITS_N; i++) {
        rnd_unit(&unit, ops);
        ron_buf_init(&out, 0);

        same += ron_unit_encode(&unit, &out) == RON_OK
                && decode_exact(out.data, out.len, &back, back_ops,
                                unit.op_n, &copy) == RON_OK
                && same_unit(&unit, &back);
        free(copy);

        for (size_t n = i % 16; n < out.len; n += 16) {
            prefixes++;
            refused += decode_exact(out.data, n, &back, back_ops, OPS_MAX,
                                    &copy) == RON_EINVAL;
            free(copy);
        }

        ron_buf_put_u8(&out, 0);
        prefixes++;
        refused += decode_exact(out.data, out.len, &back, back_ops, OPS_MAX,
                                &copy) == RON_EINVAL;
        free(copy);

        /* anything may become of it, but not a read beyond its end */

        out.data[rnd(out.len)] ^= (uint8_t) (1 + rnd(255));
        changed += decode_exact(out.data, out.len - 1, &back, back_ops,
                                OPS_MAX, &copy) == RON_OK;
        free(copy);
        ron_buf_free(&out);
    }

    is_u64(same, UNITS_N, "units come back as they were");
    is_u64(refused, prefixes, "what is cut or too long is refused");
    ok(changed > UNITS_N / 10 && changed < UNITS_N,
       "of %u with one byte changed %zu are other units", UNITS_N, changed);
}


/* ---- the form, byte for byte -------------------------------------------- */

#define MOMENT  "\0\0\0\0\0\0\0\x05" "\0\0\0\0\0\0\0\x09"
#define OP      "\x03\x01\x01r"

#define is_unit(bytes, status, ...)                                           \
    is_decoded(bytes, sizeof(bytes) - 1, status, __VA_ARGS__)


static void
is_decoded(const char *bytes, size_t len, ron_status_t status,
    const char *why)
{
    uint8_t      *copy;
    ron_unit_t    unit;
    ron_entry_t   ops[2];

    is_status(decode_exact((const uint8_t *) bytes, len, &unit, ops, 2,
                           &copy),
              status, "%s", why);
    free(copy);
}


static void
test_form(void)
{
    ron_buf_t    out;
    ron_unit_t   unit;
    ron_entry_t  op;

    memset(&unit, 0, sizeof(unit));
    memset(&op, 0, sizeof(op));
    op.kind = RON_KIND_TRANSFER;
    op.fields = RON_F_ASSET;
    op.asset = ron_str("r");
    unit.type = RON_UNIT_WALLET;
    unit.source_us = 5;
    unit.deadline_us = 9;
    unit.cap = ron_str("c");
    unit.key = ron_str("kk");
    unit.op_n = 1;
    unit.ops = &op;

    ron_buf_init(&out, 0);
    is_status(ron_unit_encode(&unit, &out), RON_OK, "a small unit");
    ok(out.len == 28
       && memcmp(out.data, "\x02\0" MOMENT "\x01" "c\x02kk\x01" OP, 28) == 0,
       "has these bytes");
    ron_buf_free(&out);

    is_unit("\x02\0" MOMENT "\x01" "c\x02kk\x01" OP, RON_OK, "and is read");
    is_unit("\x02\0" MOMENT "\0\0\x02" OP OP, RON_OK, "two operations");
    is_unit("\0\0" MOMENT "\0\0\x01" OP, RON_EINVAL, "type 0");
    is_unit("\x04\0" MOMENT "\0\0\x01" OP, RON_EINVAL, "type 4");
    is_unit("\x02\x80" MOMENT "\0\0\x01" OP, RON_EINVAL, "an unknown flag");
    is_unit("\x02\x40" MOMENT "\x01" "x\0\0\x01" OP, RON_OK, "a correlation id");
    is_unit("\x02\x40" MOMENT "\0\0\0\x01" OP, RON_EINVAL, "an empty one");
    is_unit("\x02\0" MOMENT "\0\0\0", RON_EINVAL, "no operation");
    is_unit("\x02\0" MOMENT "\0\0\x03" OP OP OP, RON_EINVAL,
            "more operations than there is room for");
    is_unit("\x02\0" MOMENT "\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            RON_EINVAL, "2^64-1 operations");
    is_unit("\x02\0" MOMENT "\0\0\x02" OP, RON_EINVAL, "one too few");
    is_unit("\x02\0" MOMENT "\0\0\x01" OP "\0", RON_EINVAL, "a byte more");
    is_unit("\x02\0" MOMENT "\0\0\x01\0\x01\x01r", RON_EINVAL, "kind 0");
    is_unit("\x02\0" MOMENT "\0\0\x01\x0a\x01\x01r", RON_EINVAL, "kind 10");
    is_unit("\x02\0" MOMENT "\0\0\x01\x03\x80\x04\x01k", RON_EINVAL,
            "an operation's own key");
    is_unit("\x02\0" MOMENT "\0\0\x01\x03\x80\x10\x01\x01", RON_EINVAL,
            "an operation's own posting");
    is_unit("\x02\0" MOMENT "\0\0\x01\x08\x80\x80\x10", RON_EINVAL,
            "an expiry that somebody asks for");
    is_unit("\x02\0" MOMENT "\0\0\x01\x03\x80\x80\x04\x80\x80\x80\x80\x10",
            RON_EINVAL, "v 2^32");
    is_unit("\x02\0" MOMENT "\0\0\x01\x03\x80\x80\x04\x80\x00", RON_EINVAL,
            "a varint that is too long");
    is_unit("\x02\0" MOMENT "\x7f" "c", RON_EINVAL, "a text beyond the end");
    is_unit("", RON_EINVAL, "nothing");
}


static void
test_lengths(void)
{
    ron_buf_t    out;
    ron_unit_t   unit, back;
    ron_entry_t  ops[1], op;
    static char  text[300];

    memset(text, 'x', sizeof(text));

    for (size_t cap = RON_CAP_MAX - 1; cap <= RON_CAP_MAX + 1; cap++) {
        for (size_t key = RON_KEY_MAX - 1; key <= RON_KEY_MAX + 1; key++) {
            memset(&unit, 0, sizeof(unit));
            rnd_op(&op);
            unit.type = RON_UNIT_BATCH;
            unit.cap = (ron_str_t) { cap, (uint8_t *) text };
            unit.key = (ron_str_t) { key, (uint8_t *) text };
            unit.op_n = 1;
            unit.ops = &op;

            ron_buf_init(&out, 0);
            (void) ron_unit_encode(&unit, &out);
            is_status(ron_unit_decode(ron_buf_str(&out), &back, ops, 1),
                      cap <= RON_CAP_MAX && key <= RON_KEY_MAX ? RON_OK
                                                               : RON_EINVAL,
                      "capability of %zu bytes, key of %zu", cap, key);
            ron_buf_free(&out);
        }
    }
}


/* ---- digests ------------------------------------------------------------ */

static void
test_digests(void)
{
    size_t        equal, other;
    ron_buf_t     scratch;
    ron_hash_t    first, second;
    ron_unit_t    unit;
    ron_entry_t   ops[OPS_MAX];

    equal = other = 0;
    ron_buf_init(&scratch, 0);

    for (unsigned i = 0; i < 500; i++) {
        rnd_unit(&unit, ops);
        (void) ron_unit_digest(&unit, &scratch, &first);

        /* who asked and when is not what was asked */

        unit.source_us++;
        unit.deadline_us++;
        unit.has_match = !unit.has_match;
        unit.nonce_strict = !unit.nonce_strict;
        unit.cap_daily++;
        unit.cap = ron_str("another");
        unit.key = ron_str("another");
        (void) ron_unit_digest(&unit, &scratch, &second);
        equal += ron_hash_eq(&first, &second);

        switch (i % 5) {
        case 0:
            unit.atomic = !unit.atomic;
            break;
        case 1:
            unit.type = unit.type == RON_UNIT_BATCH ? RON_UNIT_INGEST
                                                    : RON_UNIT_BATCH;
            break;
        case 2:
            unit.op_n--;
            break;
        case 3:
            ops[unit.op_n - 1].fields ^= RON_F_AMOUNT;
            break;
        default:
            ops[0].kind = ops[0].kind == RON_KIND_MINT ? RON_KIND_BURN
                                                       : RON_KIND_MINT;
        }

        (void) ron_unit_digest(&unit, &scratch, &second);
        other += !ron_hash_eq(&first, &second);
    }

    is_u64(equal, 500, "a digest is of what was asked for");
    is_u64(other, 500, "and of all of it");

    rnd_unit(&unit, ops);
    unit.op_n = 1;
    ops[0].fields |= RON_F_REF | RON_F_TXID;
    (void) ron_unit_digest(&unit, &scratch, &first);
    ops[0].time_ms++;
    (void) ron_unit_digest(&unit, &scratch, &second);
    ok(!ron_hash_eq(&first, &second), "the time of a txid, too");
    ops[0].time_ms--;
    ops[0].ledger_id++;
    (void) ron_unit_digest(&unit, &scratch, &second);
    ok(!ron_hash_eq(&first, &second), "and its ledger");
    (void) ron_unit_digest_old(&unit, &scratch, &first);
    ops[0].fields &= ~(uint32_t) RON_F_TXID;
    (void) ron_unit_digest(&unit, &scratch, &second);
    ok(ron_hash_eq(&first, &second), "an older digest had neither");
    (void) ron_unit_digest_old(&unit, &scratch, &first);
    ok(ron_hash_eq(&first, &second), "and is the same without");

    ron_buf_free(&scratch);
}


/* ---- outcomes ----------------------------------------------------------- */

static bool
same_result(const ron_result_t *a, const ron_result_t *b)
{
    return a->reason == b->reason && a->detail == b->detail
           && a->repeat == b->repeat && a->seq == b->seq
           && a->value == b->value && ron_str_eq(a->bytes, b->bytes);
}


static bool
same_outcome(const ron_outcome_t *a, const ron_outcome_t *b)
{
    bool  same;

    same = a->reason == b->reason && a->detail == b->detail
           && a->replayed == b->replayed && a->value == b->value
           && a->result_n == b->result_n;

    for (uint32_t i = 0; same && i < a->result_n; i++) {
        same = same_result(&a->results[i], &b->results[i]);
    }

    return same;
}


static void
rnd_outcome(ron_outcome_t *out, ron_result_t *results)
{
    pool_n = 0;

    out->reason = (ron_reason_t) rnd(RON_REASON_N);
    out->detail = (ron_detail_t) rnd(RON_DETAIL_N);
    out->replayed = rnd(2);
    out->value = rnd_u64();
    out->result_n = (uint32_t) rnd(OPS_MAX + 1);
    out->results = results;

    for (uint32_t i = 0; i < out->result_n; i++) {
        results[i].reason = (ron_reason_t) rnd(RON_REASON_N);
        results[i].detail = (ron_detail_t) rnd(RON_DETAIL_N);
        results[i].repeat = rnd(2);
        results[i].seq = rnd_u64();
        results[i].value = rnd_u64();
        results[i].bytes = rnd_text(200);
    }
}


static ron_status_t
outcome_exact(const uint8_t *data, size_t len, ron_outcome_t *out,
    ron_result_t *results, uint32_t max, uint8_t **copy)
{
    *copy = malloc(len != 0 ? len : 1);
    RON_ASSERT(*copy != NULL);

    if (len != 0) {
        memcpy(*copy, data, len);
    }

    return ron_outcome_decode((ron_str_t) { len, *copy }, out, results, max);
}


static void
test_outcomes(void)
{
    size_t         same, prefixes, refused;
    uint8_t       *copy;
    ron_buf_t      bytes;
    ron_result_t   results[OPS_MAX], back_results[OPS_MAX];
    ron_outcome_t  out, back;

    same = prefixes = refused = 0;

    for (unsigned i = 0; i < UNITS_N; i++) {
        rnd_outcome(&out, results);
        ron_buf_init(&bytes, 0);

        same += ron_outcome_encode(&out, &bytes) == RON_OK
                && outcome_exact(bytes.data, bytes.len, &back, back_results,
                                 OPS_MAX, &copy) == RON_OK
                && same_outcome(&out, &back);
        free(copy);

        for (size_t n = i % 8; n < bytes.len; n += 8) {
            prefixes++;
            refused += outcome_exact(bytes.data, n, &back, back_results,
                                     OPS_MAX, &copy) == RON_EINVAL;
            free(copy);
        }

        ron_buf_put_u8(&bytes, 0);
        prefixes++;
        refused += outcome_exact(bytes.data, bytes.len, &back, back_results,
                                 OPS_MAX, &copy) == RON_EINVAL;
        free(copy);

        bytes.data[rnd(bytes.len)] ^= (uint8_t) (1 + rnd(255));
        (void) outcome_exact(bytes.data, bytes.len - 1, &back, back_results,
                             OPS_MAX, &copy);
        free(copy);
        ron_buf_free(&bytes);
    }

    is_u64(same, UNITS_N, "outcomes come back as they were");
    is_u64(refused, prefixes, "what is cut or too long is refused");
}


static void
test_outcome_form(void)
{
    uint8_t        bytes[] = "\x0b\x01\x01\x80\x01\x01"
                             "\x00\x00\x01\x05\x00\x02xy";
    uint8_t       *copy;
    ron_result_t   result;
    ron_outcome_t  out;

    ok(outcome_exact(bytes, 14, &out, &result, 1, &copy) == RON_OK
       && out.reason == RON_REASON_INSUFFICIENT
       && out.detail == RON_DETAIL_FIELDS && out.replayed && out.value == 128
       && out.result_n == 1 && result.reason == RON_REASON_OK
       && result.repeat && result.seq == 5
       && ron_str_eq(result.bytes, ron_str("xy")), "an outcome, read");
    free(copy);

    is_status(outcome_exact(bytes, 14, &out, &result, 0, &copy), RON_EINVAL,
              "more results than there is room for");
    free(copy);

    bytes[0] = RON_REASON_N;
    is_status(outcome_exact(bytes, 14, &out, &result, 1, &copy), RON_EINVAL,
              "no such reason");
    free(copy);

    bytes[0] = 0;
    bytes[7] = RON_DETAIL_N;
    is_status(outcome_exact(bytes, 14, &out, &result, 1, &copy), RON_EINVAL,
              "no such detail of a result");
    free(copy);
}


/* ---- reasons ------------------------------------------------------------ */

static void
test_reasons(void)
{
    size_t                    wrong;
    const ron_reason_info_t  *r;

    wrong = 0;

    for (unsigned i = 0; i < RON_REASON_N; i++) {
        r = ron_reason_info((ron_reason_t) i);
        wrong += r->name == NULL || r->ingest[0] == '\0'
                 || r->title[0] == '\0' || r->status < 200 || r->status > 503
                 || strspn(r->code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")
                    != strlen(r->code);
    }

    is_u64(wrong, 0, "every reason says what it is");
    is_u64(ron_reason_info(RON_REASON_INSUFFICIENT)->status, 409,
           "and is where it should be");

    for (unsigned i = 1; i < RON_DETAIL_N; i++) {
        wrong += ron_detail_text((ron_detail_t) i)[0] == '\0';
    }

    is_u64(wrong, 0, "every detail has a text");
    is_str(ron_detail_text(RON_DETAIL_NONE), "", "but the one that is none");
}


int
main(void)
{
    test_units();
    test_form();
    test_lengths();
    test_digests();
    test_outcomes();
    test_outcome_form();
    test_reasons();

    return done_testing();
}
