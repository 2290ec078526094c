
#include "lib_vector.h"

#include <stdio.h>


#define T0       UINT64_C(1767322245678)        /* 2026-01-02T02:50:45.678Z */
#define LEDGER   0x2a07

#define U128(high, low)  ((ron_u128_t) UINT64_C(high) << 64 | UINT64_C(low))

#define MONEY    (RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT)
#define INGEST   (RON_F_NONCE16 | RON_F_ID | RON_F_SOURCE)


static vector_t   table[VECTORS_MAX];
static size_t     table_n;
static refused_t  bad[VECTORS_MAX];
static size_t     bad_n;


/* ---- the second encoder ------------------------------------------------- */

static void
raw_amount(ron_u128_t v, ron_buf_t *out)
{
    uint8_t   be[16];
    unsigned  n;

    for (unsigned i = 0; i < 16; i++) {
        be[15 - i] = (uint8_t) (v >> (8 * i));
    }

    for (n = 0; n < 16 && be[n] == 0; n++) { /* void */ }

    ron_buf_put_u8(out, (uint8_t) (16 - n));
    ron_buf_put(out, be + n, 16 - n);
}


void
vector_raw(const ron_entry_t *e, ron_buf_t *out)
{
    uint32_t  f;

    f = e->fields;

    ron_buf_put_u8(out, 1);
    ron_buf_put_u8(out, (uint8_t) e->kind);
    ron_buf_put_u16(out, e->ledger_id);
    ron_buf_put_varint(out, e->seq);
    ron_buf_put_u48(out, e->time_ms);
    ron_buf_put_varint(out, f);

    if (f & 1 << 0) { ron_buf_put_lstr(out, e->asset); }
    if (f & 1 << 1) { ron_buf_put_lstr(out, e->account); }
    if (f & 1 << 2) { ron_buf_put_lstr(out, e->to); }
    if (f & 1 << 3) { raw_amount(e->amount, out); }
    if (f & 1 << 4) { ron_buf_put_varint(out, e->nonce); }
    if (f & 1 << 5) { ron_buf_put(out, e->nonce16, 16); }
    if (f & 1 << 6) { ron_buf_put_lstr(out, e->id); }
    if (f & 1 << 7) { ron_buf_put_u48(out, e->source_ms); }
    if (f & 1 << 8) { ron_buf_put_lstr(out, e->scope); }
    if (f & 1 << 9) { ron_buf_put_lstr(out, e->key); }
    if (f & 1 << 10) { ron_buf_put_varint(out, e->ref); }
    if (f & 1 << 11) { ron_buf_put_varint(out, e->posting_first); }
    if (f & 1 << 11) { ron_buf_put_varint(out, e->posting_n); }
    if (f & 1 << 12) { ron_buf_put_u48(out, e->expiry_ms); }
    if (f & 1 << 13) { ron_buf_put(out, e->memo.b, 32); }
    if (f & 1 << 14) { ron_buf_put_lstr(out, e->cap); }
    if (f & 1 << 15) { ron_buf_put_lstr(out, e->capref); }
    if (f & 1 << 16) { ron_buf_put_varint(out, e->schema); }
}


/* ---- entries ------------------------------------------------------------ */

/* `n` bytes of text that say at every place where they are. */

static ron_str_t
text(size_t n)
{
    static const char  chars[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static char        room[8192];
    static size_t      used;
    char              *s;

    RON_ASSERT(n <= sizeof(room) - used);
    s = room + used;
    used += n;

    for (size_t i = 0; i < n; i++) {
        s[i] = chars[(i * 7 + n) % 36];
    }

    return (ron_str_t) { n, (uint8_t *) s };
}


/* A new vector: its kind and what that kind cannot be without. */

static ron_entry_t *
add(const char *name, ron_kind_t kind)
{
    vector_t     *v;
    ron_entry_t  *e;

    RON_ASSERT(table_n < VECTORS_MAX);

    v = &table[table_n++];
    v->name = name;
    e = &v->e;

    e->kind = kind;
    e->ledger_id = LEDGER;
    e->seq = 1000 + table_n;
    e->time_ms = T0 + table_n;
    e->fields = MONEY;
    e->asset = ron_str("ron");
    e->account = ron_str("acc_alice");
    e->amount = 250;

    switch (kind) {

    case RON_KIND_TRANSFER:
    case RON_KIND_HOLD:
        e->fields |= RON_F_TO;
        e->to = ron_str("acc_bob");
        break;

    case RON_KIND_DEBIT:
    case RON_KIND_CREDIT:
        e->fields |= RON_F_POSTING;
        e->posting_first = e->seq;
        e->posting_n = 2;
        break;

    case RON_KIND_CAPTURE:
        e->fields |= RON_F_TO | RON_F_REF;
        e->to = ron_str("acc_bob");
        e->ref = 12;
        break;

    case RON_KIND_RELEASE:
    case RON_KIND_REVERSE:
        e->fields |= RON_F_REF;
        e->ref = 12;
        break;

    default:
        break;
    }

    return e;
}


static void
as_wallet(ron_entry_t *e, const char *key)
{
    e->fields |= RON_F_WALLET | RON_F_KEY | RON_F_CAP;
    e->key = ron_cstr(key);
    e->cap = ron_str("dev:cap-1");
}


static void
as_ingest(ron_entry_t *e, const char *id)
{
    e->fields |= INGEST | RON_F_CAP;
    e->id = ron_cstr(id);
    e->source_ms = e->time_ms - 3;
    e->cap = ron_str("dev:cap-2");

    for (unsigned i = 0; i < RON_NONCE_LEN; i++) {
        e->nonce16[i] = (uint8_t) (0xf0 + i * 17);
    }
}


static void
set_nonce(ron_entry_t *e, uint64_t nonce)
{
    e->fields |= RON_F_NONCE;
    e->nonce = nonce;
}


static void
set_memo(ron_entry_t *e, uint8_t first)
{
    e->fields |= RON_F_MEMO;

    for (unsigned i = 0; i < RON_HASH_LEN; i++) {
        e->memo.b[i] = (uint8_t) (first + i);
    }
}


static void
add_amounts(void)
{
    static const struct {
        const char  *name;
        ron_u128_t   amount;
    } amounts[] = {
        { "amount 1", 1 },
        { "amount 127", 127 },
        { "amount 128", 128 },
        { "amount 255", 255 },
        { "amount 256", 256 },
        { "amount 65535", 65535 },
        { "amount 2^53", UINT64_C(1) << 53 },
        { "amount 2^63", UINT64_C(1) << 63 },
        { "amount 2^64-1", UINT64_MAX },
        { "amount 2^64", U128(1, 0) },
        { "amount 10^20", U128(5, 0x6bc75e2d63100000) },
        { "amount 2^127", U128(0x8000000000000000, 0) },
        { "amount 2^128-1", ~(ron_u128_t) 0 },
    };

    for (size_t i = 0; i < ron_array_n(amounts); i++) {
        add(amounts[i].name, RON_KIND_MINT)->amount = amounts[i].amount;
    }
}


static void
add_heads(void)
{
    static const struct {
        const char  *name;
        uint64_t     seq;
    } seqs[] = {
        { "seq 127, the longest varint of one byte", 127 },
        { "seq 128, the shortest of two", 128 },
        { "seq 16384", 16384 },
        { "seq 2^32", UINT64_C(1) << 32 },
        { "seq 2^53-1", (UINT64_C(1) << 53) - 1 },
    };

    ron_entry_t  *e;

    e = add("the smallest entry that there is", RON_KIND_MINT);
    e->ledger_id = 0;
    e->seq = 1;
    e->time_ms = 0;
    e->amount = 1;
    e->asset = ron_str("r");
    e->account = ron_str("a");

    for (size_t i = 0; i < ron_array_n(seqs); i++) {
        add(seqs[i].name, RON_KIND_BURN)->seq = seqs[i].seq;
    }

    add("the last millisecond of the year 9999", RON_KIND_BURN)->time_ms =
        RON_TIME_MAX;
    add("ledger id 65535", RON_KIND_BURN)->ledger_id = 65535;
    add("the day after a leap day", RON_KIND_BURN)->time_ms =
        UINT64_C(1709251200000);
}


static void
add_plain(void)
{
    ron_entry_t  *e;

    (void) add("Mint", RON_KIND_MINT);
    (void) add("Burn", RON_KIND_BURN);
    (void) add("Transfer", RON_KIND_TRANSFER);

    e = add("Debit, first leg of two", RON_KIND_DEBIT);
    e = add("Credit, second leg of the same posting", RON_KIND_CREDIT);
    e->posting_first = e->seq - 1;

    e = add("Credit, last leg of 16384", RON_KIND_CREDIT);
    e->seq = 20000;
    e->posting_first = 20000 - 16383;
    e->posting_n = 16384;

    (void) add("Hold without expiry", RON_KIND_HOLD);

    e = add("Hold with expiry", RON_KIND_HOLD);
    e->fields |= RON_F_EXPIRY;
    e->expiry_ms = e->time_ms + 60000;

    e = add("Hold until the last millisecond", RON_KIND_HOLD);
    e->fields |= RON_F_EXPIRY;
    e->expiry_ms = RON_TIME_MAX;

    (void) add("Capture", RON_KIND_CAPTURE);
    (void) add("Release", RON_KIND_RELEASE);

    e = add("Release by expiry", RON_KIND_RELEASE);
    e->fields |= RON_F_EXPIRED;

    e = add("Reverse of a Transfer: both sides", RON_KIND_REVERSE);
    e->fields |= RON_F_TO;
    e->account = ron_str("acc_bob");
    e->to = ron_str("acc_alice");

    e = add("Reverse of a Credit: it only takes", RON_KIND_REVERSE);
    e->account = ron_str("acc_bob");

    e = add("Reverse of a Debit: it only gives", RON_KIND_REVERSE);
    e->fields = (e->fields & ~(uint32_t) RON_F_ACCOUNT) | RON_F_TO;
    e->account = ron_null_str;
    e->to = ron_str("acc_alice");

    e = add("ref one less than seq", RON_KIND_CAPTURE);
    e->ref = e->seq - 1;
}


static void
add_wallet(void)
{
    ron_entry_t  *e;

    e = add("wallet issue", RON_KIND_MINT);
    as_wallet(e, "issue-1");
    set_nonce(e, 1);

    as_wallet(add("wallet issue without nonce", RON_KIND_MINT), "issue-2");

    e = add("wallet transfer", RON_KIND_TRANSFER);
    as_wallet(e, "3d8a1e0c-0000-4000-8000-1f2e3d4c5b6a");
    set_nonce(e, 7);
    set_memo(e, 0x40);

    e = add("wallet transfer, nonce 2^53-1", RON_KIND_TRANSFER);
    as_wallet(e, "k");
    set_nonce(e, RON_NONCE_MAX);

    e = add("wallet transfer, key of 64 bytes", RON_KIND_TRANSFER);
    as_wallet(e, "");
    e->key = text(64);
    set_nonce(e, 128);

    e = add("wallet burn", RON_KIND_BURN);
    as_wallet(e, "burn-1");
    set_nonce(e, 9);

    e = add("wallet hold", RON_KIND_HOLD);
    as_wallet(e, "hold-1");
    set_nonce(e, 10);
    e->fields |= RON_F_EXPIRY;
    e->expiry_ms = e->time_ms + 86400000;

    as_wallet(add("wallet capture", RON_KIND_CAPTURE), "capture-1");
    as_wallet(add("wallet release", RON_KIND_RELEASE), "release-1");

    e = add("wallet batch: the key has a scope", RON_KIND_TRANSFER);
    as_wallet(e, "batch-1");
    set_nonce(e, 11);
    e->fields |= RON_F_SCOPE;
    e->scope = ron_str("dev:cap-1");

    e = add("wallet transfer without a capability", RON_KIND_TRANSFER);
    as_wallet(e, "open-1");
    e->fields &= ~(uint32_t) RON_F_CAP;
    e->cap = ron_null_str;
    set_nonce(e, 12);
}


static void
add_ingest(void)
{
    ron_entry_t  *e;

    as_ingest(add("ingested Mint", RON_KIND_MINT), "mint:1");
    as_ingest(add("ingested Burn", RON_KIND_BURN), "burn:1");

    e = add("ingested Transfer with idem_id, capability_ref, v",
            RON_KIND_TRANSFER);
    as_ingest(e, "transfer:1");
    e->fields |= RON_F_KEY | RON_F_CAPREF | RON_F_SCHEMA;
    e->key = ron_str("run-42/0");
    e->capref = ron_str("cap:ref/9");
    e->schema = 2;

    e = add("ingested Debit", RON_KIND_DEBIT);
    as_ingest(e, "leg:1");
    e->posting_n = 3;

    as_ingest(add("ingested Capture", RON_KIND_CAPTURE), "capture:1");
    as_ingest(add("ingested Release", RON_KIND_RELEASE), "release:1");

    e = add("ingested Reverse", RON_KIND_REVERSE);
    as_ingest(e, "reverse:1");
    e->fields |= RON_F_TO;
    e->to = ron_str("acc_carol");

    e = add("nonce of zero bytes, source time 0", RON_KIND_MINT);
    as_ingest(e, "zero");
    memset(e->nonce16, 0, RON_NONCE_LEN);
    e->source_ms = 0;

    e = add("nonce of one bits, source time the last", RON_KIND_MINT);
    as_ingest(e, "ones");
    memset(e->nonce16, 0xff, RON_NONCE_LEN);
    e->source_ms = RON_TIME_MAX;

    e = add("v 2^32-1", RON_KIND_MINT);
    as_ingest(e, "schema");
    e->fields |= RON_F_SCHEMA;
    e->schema = UINT32_MAX;
}


static void
add_texts(void)
{
    ron_entry_t  *e;

    e = add("accounts of 256 bytes, asset of 32", RON_KIND_TRANSFER);
    e->asset = text(32);
    e->account = text(256);
    e->to = text(255);

    e = add("every character of an account", RON_KIND_TRANSFER);
    e->account = ron_str("ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "abcdefghijklmnopqrstuvwxyz0123456789:/_.@-");
    e->to = ron_str("-");
    e->asset = ron_str("a:b/c_d.e@f-G");

    e = add("a key with what JSON escapes", RON_KIND_TRANSFER);
    as_ingest(e, "escapes");
    e->fields |= RON_F_KEY;
    e->key = ron_str("\"\\/\b\f\n\r\t\x01\x1f\x7f <&> \xc3\xa9 "
                     "\xe2\x80\xa8 \xf0\x9f\xaa\x99");

    e = add("an id and a capability_ref outside of ASCII", RON_KIND_MINT);
    as_ingest(e, "\xe6\x9d\xb1\xe4\xba\xac-1");
    e->fields |= RON_F_CAPREF;
    e->capref = ron_str("\xce\xb1\xce\xb2");

    e = add("everything at its bound", RON_KIND_TRANSFER);
    e->seq = (UINT64_C(1) << 53) - 1;
    e->time_ms = RON_TIME_MAX;
    e->ledger_id = 65535;
    e->amount = ~(ron_u128_t) 0;
    as_ingest(e, "");
    e->fields |= RON_F_SCOPE | RON_F_KEY | RON_F_CAPREF | RON_F_SCHEMA
                 | RON_F_WALLET;
    e->asset = text(32);
    e->account = text(256);
    e->to = text(255);
    e->id = text(128);
    e->scope = text(256);
    e->key = text(128);
    e->cap = text(256);
    e->capref = text(128);
    e->schema = UINT32_MAX;
    set_memo(e, 0xe0);
}


const vector_t *
vectors(size_t *n)
{
    if (table_n == 0) {
        add_heads();
        add_amounts();
        add_plain();
        add_wallet();
        add_ingest();
        add_texts();
    }

    *n = table_n;

    return table;
}


void
vector_plain(uint64_t seq, uint64_t time_ms, ron_entry_t *e)
{
    memset(e, 0, sizeof(ron_entry_t));

    e->kind = seq == 1 ? RON_KIND_MINT : RON_KIND_TRANSFER;
    e->ledger_id = LEDGER;
    e->seq = seq;
    e->time_ms = time_ms;
    e->fields = MONEY | RON_F_WALLET | RON_F_KEY | RON_F_NONCE;
    e->asset = ron_str("ron");
    e->account = ron_str("acc_alice");
    e->amount = seq == 1 ? UINT64_C(1000000000000) : seq;
    e->nonce = seq;
    e->key = ron_str("k");

    if (seq != 1) {
        e->fields |= RON_F_TO;
        e->to = ron_str("acc_bob");
    }
}


/* ---- what must be refused ----------------------------------------------- */

static ron_buf_t *
refuse(const char *name, const char *why, ron_status_t status)
{
    refused_t  *r;

    RON_ASSERT(bad_n < VECTORS_MAX);

    r = &bad[bad_n++];
    r->name = name;
    r->why = why;
    r->status = status;
    ron_buf_init(&r->bytes, 0);

    return &r->bytes;
}


static void
refuse_entry(const char *name, const char *why, const ron_entry_t *e)
{
    vector_raw(e, refuse(name, why, RON_ECORRUPT));
}


/* The fixed part, with what varies given as bytes. */

static void
refuse_head(const char *name, const char *why, const char *seq, size_t seq_n,
    const char *fields, size_t fields_n)
{
    ron_buf_t  *b;

    b = refuse(name, why, RON_ECORRUPT);

    ron_buf_put(b, "\x01\x01\x2a\x07", 4);
    ron_buf_put(b, seq, seq_n);
    ron_buf_put_u48(b, T0);
    ron_buf_put(b, fields, fields_n);
    ron_buf_put(b, "\x03ron\x01" "a\x01\x05", 8);
}


/* A Mint whose amount is given as bytes. */

static void
refuse_amount(const char *name, const char *why, const char *amount, size_t n)
{
    ron_buf_t  *b;

    b = refuse(name, why, RON_ECORRUPT);

    ron_buf_put(b, "\x01\x01\x2a\x07\x09", 5);
    ron_buf_put_u48(b, T0);
    ron_buf_put(b, "\x0b\x03ron\x01" "a", 7);
    ron_buf_put(b, amount, n);
}


#define HEAD(name, why, seq, fields)                                          \
    refuse_head(name, why, seq, sizeof(seq) - 1, fields, sizeof(fields) - 1)

#define AMOUNT(name, why, bytes)                                              \
    refuse_amount(name, why, bytes, sizeof(bytes) - 1)


static void
bad_frames(void)
{
    ron_buf_t     good, *b;
    ron_entry_t   e;

    (void) refuse("nothing", "there is no version", RON_ECORRUPT);
    ron_buf_put_u8(refuse("one byte", "there is no kind", RON_ECORRUPT), 1);

    vector_plain(9, T0, &e);
    ron_buf_init(&good, 0);
    vector_raw(&e, &good);

    b = refuse("version 0", "the version is 1", RON_EVERSION);
    ron_buf_put_str(b, ron_buf_str(&good));
    b->data[0] = 0;

    b = refuse("version 2", "the version is 1", RON_EVERSION);
    ron_buf_put_str(b, ron_buf_str(&good));
    b->data[0] = 2;

    b = refuse("kind 0", "kinds are 1 to 9", RON_EVERSION);
    ron_buf_put_str(b, ron_buf_str(&good));
    b->data[1] = 0;

    b = refuse("kind 10", "kinds are 1 to 9", RON_EVERSION);
    ron_buf_put_str(b, ron_buf_str(&good));
    b->data[1] = 10;

    b = refuse("the last byte is missing", "it ends too early", RON_ECORRUPT);
    ron_buf_put(b, good.data, good.len - 1);

    b = refuse("one byte more", "nothing follows the last field",
               RON_ECORRUPT);
    ron_buf_put_str(b, ron_buf_str(&good));
    ron_buf_put_u8(b, 0);

    b = refuse("twice the same entry", "nothing follows the last field",
               RON_ECORRUPT);
    ron_buf_put_str(b, ron_buf_str(&good));
    ron_buf_put_str(b, ron_buf_str(&good));

    ron_buf_free(&good);
}


static void
bad_varints(void)
{
    HEAD("seq in two bytes where one is enough", "varints are as short as "
         "they can be", "\x89\x00", "\x0b");
    HEAD("seq in eleven bytes", "a varint has at most ten",
         "\x89\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", "\x0b");
    HEAD("seq over 2^64", "a varint is at most 2^64-1",
         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "\x0b");
    HEAD("a seq that never ends", "a varint has at most ten bytes",
         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x0b");
    HEAD("seq 0", "the first entry has seq 1", "\x00", "\x0b");
    HEAD("fields in two bytes where one is enough", "varints are as short as "
         "they can be", "\x09", "\x8b\x00");
    HEAD("field bit 19", "bits over 18 are none", "\x09", "\x8b\x80\x20");
    HEAD("field bit 40", "bits over 18 are none", "\x09",
         "\x8b\x80\x80\x80\x80\x20");
    HEAD("no fields", "a Mint needs asset, account and amount", "\x09",
         "\x00");
}


static void
bad_amounts(void)
{
    AMOUNT("amount without bytes", "an amount has 1 to 16 bytes", "\x00");
    AMOUNT("amount 0", "an amount is positive", "\x01\x00");
    AMOUNT("amount with a leading zero", "an amount is as short as it can be",
           "\x02\x00\x05");
    AMOUNT("amount of 17 bytes", "an amount has 1 to 16 bytes",
           "\x11\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
           "\x00\x05");
    AMOUNT("amount that ends too early", "it ends too early", "\x02\x05");
}


/* Each of these is a good entry with one thing wrong. */

static ron_entry_t
good(ron_kind_t kind)
{
    size_t       n;
    ron_entry_t  e;

    n = table_n;
    e = *add("", kind);
    memset(&table[n], 0, sizeof(vector_t));
    table_n = n;

    e.seq = 1000;
    e.time_ms = T0;

    if (e.fields & RON_F_POSTING) {
        e.posting_first = 1000;
    }

    return e;
}


static void
bad_kinds(void)
{
    ron_entry_t  e;

    e = good(RON_KIND_TRANSFER);
    e.fields &= ~(uint32_t) RON_F_TO;
    refuse_entry("Transfer without to", "a Transfer needs it", &e);

    e = good(RON_KIND_TRANSFER);
    e.to = e.account;
    refuse_entry("Transfer to itself", "account and to differ", &e);

    e = good(RON_KIND_HOLD);
    e.to = e.account;
    refuse_entry("Hold for itself", "account and to differ", &e);

    e = good(RON_KIND_MINT);
    e.fields |= RON_F_TO;
    e.to = ron_str("acc_bob");
    refuse_entry("Mint with to", "a Mint has none", &e);

    e = good(RON_KIND_BURN);
    e.fields |= RON_F_REF;
    e.ref = 5;
    refuse_entry("Burn with ref", "a Burn has none", &e);

    e = good(RON_KIND_TRANSFER);
    e.fields |= RON_F_EXPIRY;
    e.expiry_ms = T0;
    refuse_entry("Transfer with expiry", "only a Hold has one", &e);

    e = good(RON_KIND_TRANSFER);
    e.fields |= RON_F_POSTING;
    e.posting_first = 1000;
    e.posting_n = 1;
    refuse_entry("Transfer in a posting", "legs are Debit and Credit", &e);

    e = good(RON_KIND_DEBIT);
    e.fields &= ~(uint32_t) RON_F_POSTING;
    refuse_entry("Debit without posting", "a Debit is a leg of one", &e);

    e = good(RON_KIND_CAPTURE);
    e.fields |= RON_F_EXPIRED;
    refuse_entry("Capture by expiry", "only a Release happens by itself", &e);

    e = good(RON_KIND_CAPTURE);
    e.fields &= ~(uint32_t) RON_F_REF;
    refuse_entry("Capture without ref", "a Capture names its Hold", &e);

    e = good(RON_KIND_RELEASE);
    e.fields |= RON_F_TO;
    e.to = ron_str("acc_bob");
    refuse_entry("Release with to", "a Release has none", &e);

    e = good(RON_KIND_REVERSE);
    e.fields &= ~(uint32_t) (RON_F_ACCOUNT | RON_F_TO);
    refuse_entry("Reverse of nobody", "one side at least", &e);

    e = good(RON_KIND_REVERSE);
    e.fields &= ~(uint32_t) RON_F_REF;
    refuse_entry("Reverse without ref", "a Reverse names its original", &e);
}


static void
bad_numbers(void)
{
    ron_entry_t  e;

    e = good(RON_KIND_MINT);
    e.time_ms = RON_TIME_MAX + 1;
    refuse_entry("time after the year 9999", "RFC 3339 cannot write it", &e);

    e = good(RON_KIND_TRANSFER);
    set_nonce(&e, 0);
    refuse_entry("nonce 0", "nonces begin with 1", &e);

    e = good(RON_KIND_TRANSFER);
    set_nonce(&e, RON_NONCE_MAX + 1);
    refuse_entry("nonce 2^53", "nonces end with 2^53-1", &e);

    e = good(RON_KIND_TRANSFER);
    as_ingest(&e, "x");
    set_nonce(&e, 1);
    refuse_entry("both nonces", "an entry has one of them", &e);

    e = good(RON_KIND_MINT);
    as_ingest(&e, "x");
    e.source_ms = RON_TIME_MAX + 1;
    refuse_entry("source time after the year 9999", "RFC 3339 cannot write "
                 "it", &e);

    e = good(RON_KIND_HOLD);
    e.fields |= RON_F_EXPIRY;
    e.expiry_ms = RON_TIME_MAX + 1;
    refuse_entry("expiry after the year 9999", "RFC 3339 cannot write it",
                 &e);

    e = good(RON_KIND_CAPTURE);
    e.ref = 0;
    refuse_entry("ref 0", "no entry has seq 0", &e);

    e = good(RON_KIND_CAPTURE);
    e.ref = e.seq;
    refuse_entry("ref to itself", "ref is less than seq", &e);

    e = good(RON_KIND_REVERSE);
    e.ref = e.seq + 1;
    refuse_entry("ref to a later entry", "ref is less than seq", &e);

    e = good(RON_KIND_MINT);
    e.fields |= RON_F_SCHEMA;
    e.schema = 0;
    refuse_entry("v 0", "v is there when it is 2 or more", &e);

    e.schema = 1;
    refuse_entry("v 1", "v is there when it is 2 or more", &e);
}


static void
bad_postings(void)
{
    ron_entry_t  e;

    e = good(RON_KIND_DEBIT);
    e.posting_n = 0;
    refuse_entry("posting of no legs", "a leg is one of its legs", &e);

    e = good(RON_KIND_DEBIT);
    e.posting_first = 0;
    refuse_entry("posting that begins with 0", "no entry has seq 0", &e);

    e = good(RON_KIND_CREDIT);
    e.posting_first = e.seq + 1;
    refuse_entry("posting that begins later", "first <= seq", &e);

    e = good(RON_KIND_CREDIT);
    e.posting_first = e.seq - 2;
    refuse_entry("posting that has ended before", "seq < first + n", &e);

    e = good(RON_KIND_CREDIT);
    e.posting_first = UINT64_MAX - 4;
    e.posting_n = 2000;
    refuse_entry("posting that begins near 2^64", "first <= seq", &e);
}


static void
bad_texts(void)
{
    ron_entry_t  e;

    e = good(RON_KIND_MINT);
    e.account = ron_null_str;
    refuse_entry("account without characters", "1 to 256", &e);

    e.account = text(257);
    refuse_entry("account of 257 bytes", "1 to 256", &e);

    e.account = ron_str("acc alice");
    refuse_entry("account with a space", "[A-Za-z0-9:/_.@-] only", &e);

    e.account = ron_str("acc\0alice");
    refuse_entry("account with a zero byte", "[A-Za-z0-9:/_.@-] only", &e);

    e.account = ron_str("acc_\xc3\xa9");
    refuse_entry("account outside of ASCII", "[A-Za-z0-9:/_.@-] only", &e);

    e = good(RON_KIND_TRANSFER);
    e.to = ron_str("acc+bob");
    refuse_entry("to with a plus", "[A-Za-z0-9:/_.@-] only", &e);

    e = good(RON_KIND_MINT);
    e.asset = ron_null_str;
    refuse_entry("asset without characters", "1 to 32", &e);

    e.asset = text(33);
    refuse_entry("asset of 33 bytes", "1 to 32", &e);

    e.asset = ron_str("r n");
    refuse_entry("asset with a space", "[A-Za-z0-9:/_.@-] only", &e);
}


static void
bad_names(void)
{
    ron_entry_t  e;

    e = good(RON_KIND_MINT);
    as_ingest(&e, "");
    refuse_entry("id without bytes", "1 to 128", &e);

    e.id = text(129);
    refuse_entry("id of 129 bytes", "1 to 128", &e);

    e = good(RON_KIND_MINT);
    as_wallet(&e, "");
    refuse_entry("key without bytes", "1 to 128", &e);

    e.key = text(129);
    refuse_entry("key of 129 bytes", "1 to 128", &e);

    e.key = ron_str("k");
    e.cap = ron_null_str;
    refuse_entry("capability without bytes", "1 to 256", &e);

    e.cap = text(257);
    refuse_entry("capability of 257 bytes", "1 to 256", &e);

    e = good(RON_KIND_MINT);
    e.fields |= RON_F_CAPREF;
    refuse_entry("capability_ref without bytes", "1 to 128", &e);

    e.capref = text(129);
    refuse_entry("capability_ref of 129 bytes", "1 to 128", &e);

    e = good(RON_KIND_MINT);
    e.fields |= RON_F_SCOPE;
    e.scope = ron_str("dev:cap-1");
    refuse_entry("scope without key", "a scope is of a key", &e);

    e.fields |= RON_F_KEY;
    e.key = ron_str("k");
    e.scope = text(257);
    refuse_entry("scope of 257 bytes", "1 to 256", &e);
}


static void
bad_lengths(void)
{
    ron_buf_t  *b;

    b = refuse("a text that is longer than the entry", "it ends too early",
               RON_ECORRUPT);
    ron_buf_put(b, "\x01\x01\x2a\x07\x09", 5);
    ron_buf_put_u48(b, T0);
    ron_buf_put(b, "\x0b\x7fron", 5);

    b = refuse("the length of a text in two bytes", "varints are as short as "
               "they can be", RON_ECORRUPT);
    ron_buf_put(b, "\x01\x01\x2a\x07\x09", 5);
    ron_buf_put_u48(b, T0);
    ron_buf_put(b, "\x0b\x83\x00ron\x01" "a\x01\x05", 10);

    b = refuse("a posting of 2^32 legs", "it has at most 2^32-1",
               RON_ECORRUPT);
    ron_buf_put(b, "\x01\x04\x2a\x07\x09", 5);
    ron_buf_put_u48(b, T0);
    ron_buf_put(b, "\x8b\x10\x03ron\x01" "a\x01\x05\x09"
                   "\x80\x80\x80\x80\x10", 16);

    b = refuse("v 2^32", "v is at most 2^32-1", RON_ECORRUPT);
    ron_buf_put(b, "\x01\x01\x2a\x07\x09", 5);
    ron_buf_put_u48(b, T0);
    ron_buf_put(b, "\x8b\x80\x04\x03ron\x01" "a\x01\x05"
                   "\x80\x80\x80\x80\x10", 16);
}


const refused_t *
vectors_refused(size_t *n)
{
    (void) vectors(n);

    if (bad_n == 0) {
        bad_frames();
        bad_varints();
        bad_amounts();
        bad_kinds();
        bad_numbers();
        bad_postings();
        bad_texts();
        bad_names();
        bad_lengths();
    }

    *n = bad_n;

    return bad;
}


/* ---- files -------------------------------------------------------------- */

unsigned
vector_file_differs(const char *path, const ron_buf_t *want)
{
    int       ch;
    FILE     *file;
    size_t    i;
    unsigned  line;

    file = fopen(path, "rb");
    if (file == NULL) {
        return 1;
    }

    line = 1;

    for (i = 0; (ch = getc(file)) != EOF; i++) {
        if (i == want->len || want->data[i] != (uint8_t) ch) {
            break;
        }

        line += (ch == '\n');
    }

    (void) fclose(file);

    return ch == EOF && i == want->len ? 0 : line;
}
