
/*
 * Entries.  Bytes that decode encode to the same bytes and render as JSON
 * that reads back; fields that pass the check survive both ways, fields that
 * do not are never encoded; a body is walked to its end or refused.
 */

#include "ron_fuzz.h"
#include "ron_codec.h"
#include "ron_digest.h"
#include "ron_entry.h"
#include "ron_json.h"
#include "ron_receipt.h"


static ron_buf_t       one, two;
static ron_json_doc_t  doc;


static void
reads_back(const ron_buf_t *text)
{
    ron_json_error_t   err;
    const ron_json_t  *root;

    RON_ASSERT(ron_utf8_check(ron_buf_str(text), NULL) == RON_OK);

    if (ron_json_parse(&doc, ron_buf_str(text), NULL, &root, &err) != RON_OK) {
        RON_ASSERT(strcmp(err.reason, "NUL in a string") == 0);
        return;
    }

    RON_ASSERT(ron_json_kind(root) == RON_JSON_OBJECT);
}


static void
renders(const ron_entry_t *e)
{
    char          txid[RON_TXID_LEN + 1];
    uint16_t      ledger_id;
    uint64_t      time_ms, seq;
    ron_hash_t    hash, want;
    ron_moves_t   m;
    ron_status_t  status;

    ron_txid_print(e->time_ms, e->ledger_id, e->seq, txid);
    RON_ASSERT(ron_txid_parse(ron_cstr(txid), &time_ms, &ledger_id, &seq)
               == RON_OK);
    RON_ASSERT(time_ms == e->time_ms && ledger_id == e->ledger_id
               && seq == e->seq);

    ron_entry_moves(e, &m);
    RON_ASSERT(m.from.len || m.to.len);
    RON_ASSERT(!(m.mints && m.burns));

    /* Text of callers may be no UTF-8: then there is no JSON of it. */

    ron_buf_reset(&one);
    if (ron_entry_put_json(e, &one) == RON_OK) {
        reads_back(&one);
    }

    ron_buf_reset(&one);
    status = ron_receipt_put(e, &one);

    if (status == RON_OK) {
        RON_ASSERT(one.len <= RON_RECEIPT_MAX);
        reads_back(&one);
        ron_buf_reset(&one);
        RON_ASSERT(ron_receipt_hashed(e, &one) == RON_OK);
        reads_back(&one);
        ron_blake3(one.data, one.len, &want);
        RON_ASSERT(ron_receipt_hash(e, &hash) == RON_OK);
        RON_ASSERT(ron_hash_eq(&hash, &want));
    }
}


static void
fuzz_decode(ron_str_t bytes)
{
    ron_entry_t   e;
    ron_status_t  status;

    status = ron_entry_decode(bytes, &e);

    if (status != RON_OK) {
        RON_ASSERT(status == RON_EVERSION || status == RON_ECORRUPT);
        RON_ASSERT(e.fields == 0 && e.seq == 0);
        return;
    }

    RON_ASSERT(ron_entry_check(&e) == RON_OK);
    ron_buf_reset(&one);
    RON_ASSERT(ron_entry_encode(&e, &one) == RON_OK);
    RON_ASSERT(ron_str_eq(ron_buf_str(&one), bytes));
    renders(&e);
}


static ron_str_t
a_text(fuzz_t *f, size_t max)
{
    static const uint8_t  letters[300] = {
        [0 ... 299] = 'a',
    };

    uint8_t  how;

    how = fuzz_u8(f);

    switch (how % 4) {
    case 0:
        return (ron_str_t) { how / 4, letters };
    case 1:
        return (ron_str_t) { max, letters };
    case 2:
        return (ron_str_t) { max + 1, letters };
    default:
        return fuzz_bytes(f, how / 4);
    }
}


static uint64_t
a_number(fuzz_t *f, uint64_t edge)
{
    uint8_t  how;

    how = fuzz_u8(f);

    return how < 200 ? how : how < 228 ? edge + (how & 3) - 2
                                       : fuzz_int(f, 8);
}


static void
an_entry(fuzz_t *f, ron_entry_t *e)
{
    memset(e, 0, sizeof(ron_entry_t));

    e->kind = (ron_kind_t) (fuzz_u8(f) % (RON_KIND_N + 1));
    e->fields = (uint32_t) fuzz_int(f, 3) & RON_F_ALL;

    /* Mostly what its kind wants: else nothing would ever pass. */

    if (e->kind < RON_KIND_N && (fuzz_u8(f) & 3)) {
        e->fields &= ron_kind_allows(e->kind);
        e->fields |= ron_kind_needs(e->kind);
    }

    e->ledger_id = (uint16_t) fuzz_int(f, 2);
    e->seq = a_number(f, UINT64_MAX);
    e->time_ms = a_number(f, RON_TIME_MAX);
    e->asset = a_text(f, RON_ASSET_MAX);
    e->account = a_text(f, RON_ACCOUNT_MAX);
    e->to = a_text(f, RON_ACCOUNT_MAX);
    e->amount = fuzz_u128(f) >> (fuzz_u8(f) & 127);
    e->nonce = a_number(f, RON_NONCE_MAX);
    e->id = a_text(f, RON_ID_MAX);
    e->source_ms = a_number(f, RON_TIME_MAX);
    e->scope = a_text(f, RON_SCOPE_MAX);
    e->key = a_text(f, RON_KEY_MAX);
    e->ref = a_number(f, e->seq);
    e->posting_first = a_number(f, e->seq);
    e->posting_n = (uint32_t) a_number(f, UINT32_MAX);
    e->expiry_ms = a_number(f, RON_TIME_MAX);
    e->cap = a_text(f, RON_CAP_MAX);
    e->capref = a_text(f, RON_ID_MAX);
    e->schema = (uint32_t) a_number(f, UINT32_MAX);
    memset(e->memo.b, fuzz_u8(f), RON_HASH_LEN);
    memset(e->nonce16, fuzz_u8(f), RON_NONCE_LEN);
}


static void
fuzz_fields(fuzz_t *f)
{
    ron_str_t     bytes;
    ron_entry_t   e, back;
    ron_status_t  status;

    an_entry(f, &e);
    ron_buf_reset(&two);
    status = ron_entry_encode(&e, &two);

    if (ron_entry_check(&e) != RON_OK) {
        RON_ASSERT(status != RON_OK && two.len == 0);
        return;
    }

    RON_ASSERT(status == RON_OK && two.len <= RON_ENTRY_MAX);
    bytes = ron_buf_str(&two);
    RON_ASSERT(ron_entry_decode(bytes, &back) == RON_OK);

#define SAME(bit, expr)  RON_ASSERT(!(e.fields & (bit)) || (expr))

    RON_ASSERT(e.kind == back.kind && e.fields == back.fields
               && e.seq == back.seq && e.time_ms == back.time_ms
               && e.ledger_id == back.ledger_id);
    SAME(RON_F_ASSET, ron_str_eq(e.asset, back.asset));
    SAME(RON_F_ACCOUNT, ron_str_eq(e.account, back.account));
    SAME(RON_F_TO, ron_str_eq(e.to, back.to));
    SAME(RON_F_AMOUNT, e.amount == back.amount);
    SAME(RON_F_NONCE, e.nonce == back.nonce);
    SAME(RON_F_NONCE16, memcmp(e.nonce16, back.nonce16, RON_NONCE_LEN) == 0);
    SAME(RON_F_ID, ron_str_eq(e.id, back.id));
    SAME(RON_F_SOURCE, e.source_ms == back.source_ms);
    SAME(RON_F_SCOPE, ron_str_eq(e.scope, back.scope));
    SAME(RON_F_KEY, ron_str_eq(e.key, back.key));
    SAME(RON_F_REF, e.ref == back.ref);
    SAME(RON_F_POSTING, e.posting_first == back.posting_first
                        && e.posting_n == back.posting_n);
    SAME(RON_F_EXPIRY, e.expiry_ms == back.expiry_ms);
    SAME(RON_F_MEMO, ron_hash_eq(&e.memo, &back.memo));
    SAME(RON_F_CAP, ron_str_eq(e.cap, back.cap));
    SAME(RON_F_CAPREF, ron_str_eq(e.capref, back.capref));
    SAME(RON_F_SCHEMA, e.schema == back.schema);

    for (size_t n = 0; n < bytes.len; n++) {
        RON_ASSERT(ron_entry_decode((ron_str_t) { n, bytes.data }, &back)
                   != RON_OK);
    }

    fuzz_decode(bytes);
}


static void
fuzz_body(ron_str_t body)
{
    ron_rd_t      rd;
    ron_str_t     bytes;
    ron_status_t  status;

    ron_rd_init(&rd, body);
    ron_buf_reset(&two);

    while ((status = ron_body_next(&rd, &bytes)) == RON_OK) {
        RON_ASSERT(bytes.len > 0);
        ron_body_put(&two, bytes);
        fuzz_decode(bytes);
    }

    RON_ASSERT(bytes.len == 0);

    /* What was taken is the beginning; a body that ends is all of it. */

    RON_ASSERT(two.len <= body.len
               && (two.len == 0
                   || memcmp(two.data, body.data, two.len) == 0));
    RON_ASSERT(status == RON_ECORRUPT
               || (status == RON_ENOTFOUND && two.len == body.len));
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t   f = { data, data + len };
    uint8_t  what;

    what = fuzz_u8(&f);

    switch (what % 3) {
    case 0:
        fuzz_decode(fuzz_rest(&f));
        break;
    case 1:
        fuzz_fields(&f);
        break;
    default:
        fuzz_body(fuzz_rest(&f));
    }

    return 0;
}
