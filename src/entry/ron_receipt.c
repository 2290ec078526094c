
#include "ron_receipt.h"
#include "ron_amount.h"
#include "ron_codec.h"
#include "ron_digest.h"
#include "ron_json.h"


/* What is shown has and the hash does not cover: itself, and seq. */
#define RON_RECEIPT_MORE  (28 + 2 * RON_HASH_LEN + RON_AMOUNT_MAX)


/*
 * Members of a receipt, in the order in which the hash has them.  Each begins
 * in the hashed text where the one before it ends.
 */
typedef enum {
    RON_RECEIPT_AMOUNT = 0,
    RON_RECEIPT_ASSET,
    RON_RECEIPT_FROM,
    RON_RECEIPT_IDEM,
    RON_RECEIPT_NONCE,
    RON_RECEIPT_OP,
    RON_RECEIPT_TO,
    RON_RECEIPT_TS,
    RON_RECEIPT_TXID,
    RON_RECEIPT_N
} ron_receipt_member_t;


/* What a receipt says that the entry does not have as text. */
typedef struct {
    ron_str_t  from;
    ron_str_t  to;
    ron_str_t  txid;
    ron_str_t  ts;
    char       txid_text[RON_TXID_LEN + 1];
    char       ts_text[RON_TIME_LEN + 1];
} ron_receipt_parts_t;


static void ron_receipt_parts(const ron_entry_t *e, ron_receipt_parts_t *p);
static void ron_receipt_sorted(const ron_entry_t *e,
    const ron_receipt_parts_t *p, ron_buf_t *out, size_t *end);
static uint8_t *ron_receipt_shown(const uint8_t *sorted, const size_t *end,
    uint8_t *p);
static ron_str_t ron_receipt_from(const ron_entry_t *e);
static ron_str_t ron_receipt_to(const ron_entry_t *e);
static void ron_receipt_nonce(const ron_entry_t *e, ron_buf_t *out);
static void ron_put_time(ron_buf_t *out, ron_str_t name, uint64_t ms);
static void ron_put_hash(ron_buf_t *out, const ron_hash_t *hash);


void
ron_txid_print(uint64_t time_ms, uint16_t ledger_id, uint64_t seq,
    char buf[RON_TXID_LEN + 1])
{
    ron_u128_t  v;

    v = (ron_u128_t) (time_ms << 16 | ledger_id) << 64 | seq;

    memcpy(buf, "tx_", 3);
    (void) ron_crockford_encode(v, buf + 3);
    buf[RON_TXID_LEN] = '\0';
}


ron_status_t
ron_txid_parse(ron_str_t txid, uint64_t *time_ms, uint16_t *ledger_id,
    uint64_t *seq)
{
    uint64_t    high;
    ron_str_t   digits;
    ron_u128_t  v;

    *time_ms = 0;
    *ledger_id = 0;
    *seq = 0;

    if (txid.len != RON_TXID_LEN || memcmp(txid.data, "tx_", 3) != 0) {
        return RON_EINVAL;
    }

    digits.data = txid.data + 3;
    digits.len = txid.len - 3;

    if (ron_crockford_decode(digits, &v) != RON_OK || (uint64_t) v == 0) {
        return RON_EINVAL;
    }

    high = (uint64_t) (v >> 64);

    *time_ms = high >> 16;
    *ledger_id = (uint16_t) high;
    *seq = (uint64_t) v;

    return RON_OK;
}


/* The account that an entry takes from, as people would say it. */

static ron_str_t
ron_receipt_from(const ron_entry_t *e)
{
    switch (e->kind) {

    case RON_KIND_MINT:
    case RON_KIND_CREDIT:
        return ron_null_str;

    default:
        return e->account;
    }
}


static ron_str_t
ron_receipt_to(const ron_entry_t *e)
{
    switch (e->kind) {

    case RON_KIND_MINT:
    case RON_KIND_CREDIT:
        return e->account;

    default:
        return e->to;
    }
}


static void
ron_receipt_nonce(const ron_entry_t *e, ron_buf_t *out)
{
    char       text[32];
    ron_str_t  s;

    if (e->fields & RON_F_NONCE) {
        ron_json_put_member_u64(out, ron_str("nonce"), e->nonce);
        return;
    }

    if (e->fields & RON_F_NONCE16) {
        s = (ron_str_t) { RON_NONCE_LEN, e->nonce16 };
        s = (ron_str_t) { ron_base64_encode(s, text), (uint8_t *) text };
        ron_json_put_member(out, ron_str("nonce"), s);
    }
}


static void
ron_put_time(ron_buf_t *out, ron_str_t name, uint64_t ms)
{
    char  text[RON_TIME_LEN + 1];

    RON_ASSERT(ron_time_print(ms, text) == RON_OK);

    ron_json_put_member(out, name,
                        (ron_str_t) { RON_TIME_LEN, (uint8_t *) text });
}


static void
ron_receipt_parts(const ron_entry_t *e, ron_receipt_parts_t *p)
{
    p->from = ron_receipt_from(e);
    p->to = ron_receipt_to(e);

    ron_txid_print(e->time_ms, e->ledger_id, e->seq, p->txid_text);
    p->txid = (ron_str_t) { RON_TXID_LEN, (uint8_t *) p->txid_text };

    RON_ASSERT(ron_time_print(e->time_ms, p->ts_text) == RON_OK);
    p->ts = (ron_str_t) { RON_TIME_LEN, (uint8_t *) p->ts_text };
}


ron_status_t
ron_receipt_hashed(const ron_entry_t *e, ron_buf_t *out)
{
    size_t               end[RON_RECEIPT_N];
    ron_receipt_parts_t  parts;

    ron_receipt_parts(e, &parts);
    ron_receipt_sorted(e, &parts, out, end);

    return ron_buf_status(out);
}


static void
ron_receipt_sorted(const ron_entry_t *e, const ron_receipt_parts_t *p,
    ron_buf_t *out, size_t *end)
{
    size_t  begin;

    begin = out->len;

    ron_buf_put_u8(out, '{');
    ron_json_put_member_amount(out, ron_str("amount_minor"), e->amount);
    end[RON_RECEIPT_AMOUNT] = out->len - begin;

    ron_json_put_member(out, ron_str("asset"), e->asset);
    end[RON_RECEIPT_ASSET] = out->len - begin;

    if (p->from.len != 0) {
        ron_json_put_member(out, ron_str("from"), p->from);
    }

    end[RON_RECEIPT_FROM] = out->len - begin;

    if (e->fields & RON_F_KEY) {
        ron_json_put_member(out, ron_str("idem"), e->key);
    }

    end[RON_RECEIPT_IDEM] = out->len - begin;

    ron_receipt_nonce(e, out);
    end[RON_RECEIPT_NONCE] = out->len - begin;

    ron_json_put_member(out, ron_str("op"), ron_cstr(ron_kind_op(e->kind)));
    end[RON_RECEIPT_OP] = out->len - begin;

    if (p->to.len != 0) {
        ron_json_put_member(out, ron_str("to"), p->to);
    }

    end[RON_RECEIPT_TO] = out->len - begin;

    ron_json_put_member(out, ron_str("ts"), p->ts);
    end[RON_RECEIPT_TS] = out->len - begin;

    ron_json_put_member(out, ron_str("txid"), p->txid);
    end[RON_RECEIPT_TXID] = out->len - begin;

    ron_buf_put_u8(out, '}');
}


ron_status_t
ron_receipt_hash(const ron_entry_t *e, ron_hash_t *hash)
{
    ron_buf_t     text;
    ron_status_t  status;

    memset(hash, 0, sizeof(ron_hash_t));

    ron_buf_init(&text, RON_RECEIPT_MAX);

    status = ron_receipt_hashed(e, &text);
    if (status == RON_OK) {
        ron_blake3(text.data, text.len, hash);
    }

    ron_buf_free(&text);

    return status;
}


/*
 * The hash covers compact JSON with sorted keys; the receipt that is shown
 * has the same members in the order in which people read them.  So the hashed
 * text is built at the end of `out`, what is shown is put together from it
 * behind it, and then takes its place.
 */

ron_status_t
ron_receipt_put(const ron_entry_t *e, ron_buf_t *out)
{
    size_t               begin, len;
    uint8_t             *p, *shown;
    ron_str_t            sorted;
    ron_hash_t           hash;
    size_t               end[RON_RECEIPT_N];
    ron_receipt_parts_t  parts;

    begin = out->len;

    ron_receipt_parts(e, &parts);
    ron_receipt_sorted(e, &parts, out, end);

    len = out->len - begin;
    shown = ron_buf_reserve(out, len + RON_RECEIPT_MORE);

    if (shown == NULL) {
        return ron_buf_status(out);
    }

    sorted = (ron_str_t) { len, out->data + begin };
    ron_blake3(sorted.data, sorted.len, &hash);

    p = ron_receipt_shown(sorted.data, end, shown);

    memcpy(p, ",\"receipt_hash\":\"b3:", 20);
    p += 20;
    p += ron_hex_encode((ron_str_t) { RON_HASH_LEN, hash.b }, (char *) p);
    memcpy(p, "\",\"seq\":", 8);
    p += 8;
    p += ron_amount_print(e->seq, (char *) p);
    *p++ = '}';

    len = (size_t) (p - shown);
    RON_ASSERT(len <= sorted.len + RON_RECEIPT_MORE);

    memmove(out->data + begin, shown, len);
    out->len = begin + len;

    return RON_OK;
}


/* Each member brings the comma that is before it, only the first has none. */

static uint8_t *
ron_receipt_shown(const uint8_t *sorted, const size_t *end, uint8_t *p)
{
    size_t    i, from, to;
    uint8_t  *first;

    static const uint8_t  order[RON_RECEIPT_N] = {
        RON_RECEIPT_TXID, RON_RECEIPT_OP, RON_RECEIPT_FROM, RON_RECEIPT_TO,
        RON_RECEIPT_ASSET, RON_RECEIPT_AMOUNT, RON_RECEIPT_NONCE,
        RON_RECEIPT_IDEM, RON_RECEIPT_TS
    };

    first = p;

    for (i = 0; i < RON_RECEIPT_N; i++) {
        from = order[i] == 0 ? 0 : end[order[i] - 1];
        to = end[order[i]];

        memcpy(p, sorted + from, to - from);

        /* what was the first has a brace where the others have a comma */

        if (order[i] == 0) {
            *p = ',';
        }

        p += to - from;
    }

    *first = '{';

    return p;
}


static void
ron_put_hash(ron_buf_t *out, const ron_hash_t *hash)
{
    char  hex[2 * RON_HASH_LEN];

    (void) ron_hex_encode((ron_str_t) { RON_HASH_LEN, hash->b }, hex);

    ron_buf_put_cstr(out, "\"b3:");
    ron_buf_put(out, hex, sizeof(hex));
    ron_buf_put_u8(out, '"');
}


ron_status_t
ron_entry_put_json(const ron_entry_t *e, ron_buf_t *out)
{
    uint32_t  f;

    f = e->fields;

    ron_buf_put_u8(out, '{');
    ron_json_put_member_u64(out, ron_str("seq"), e->seq);
    ron_put_time(out, ron_str("time"), e->time_ms);
    ron_json_put_member(out, ron_str("kind"),
                        ron_cstr(ron_kind_name(e->kind)));

    if (f & RON_F_ACCOUNT) {
        ron_json_put_member(out, ron_str("account"), e->account);
    }

    if (f & RON_F_TO) {
        ron_json_put_member(out, ron_str("to"), e->to);
    }

    ron_json_put_member(out, ron_str("asset"), e->asset);
    ron_json_put_member_amount(out, ron_str("amount"), e->amount);
    ron_receipt_nonce(e, out);

    if (f & RON_F_ID) {
        ron_json_put_member(out, ron_str("id"), e->id);
    }

    if (f & RON_F_SOURCE) {
        ron_json_put_member_u64(out, ron_str("ts"), e->source_ms);
    }

    if (f & RON_F_REF) {
        ron_json_put_member_u64(out, ron_str("ref"), e->ref);
    }

    if (f & RON_F_POSTING) {
        ron_json_put_member_u64(out, ron_str("posting"), e->posting_first);
        ron_json_put_member_u64(out, ron_str("legs"), e->posting_n);
    }

    if (f & RON_F_EXPIRY) {
        ron_put_time(out, ron_str("expires"), e->expiry_ms);
    }

    if (f & RON_F_MEMO) {
        ron_json_put_key(out, ron_str("memo_hash"));
        ron_put_hash(out, &e->memo);
    }

    if (f & RON_F_CAPREF) {
        ron_json_put_member(out, ron_str("capability_ref"), e->capref);
    }

    if (f & RON_F_SCHEMA) {
        ron_json_put_member_u64(out, ron_str("v"), e->schema);
    }

    if (f & RON_F_EXPIRED) {
        ron_json_put_member_bool(out, ron_str("expired"), true);
    }

    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}
