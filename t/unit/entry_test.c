
/*
 * Entries: the golden vectors of t/vectors/entries.json byte for byte, one
 * accepted form for each entry, the rules of each kind, what they move.
 *
 *     entry_test --generate >t/vectors/entries.json
 *
 * writes the vectors.  A change in them is a change of the format.
 */

#include "ron_entry.h"
#include "ron_codec.h"
#include "ron_digest.h"
#include "ron_json.h"
#include "ron_receipt.h"

#include "lib_vector.h"
#include "ron_seed.h"
#include "ron_test.h"


#define VECTORS_FILE  "t/vectors/entries.json"

#define RANDOM_N      200000


static uint64_t  seed = 11;


static uint64_t
rnd(uint64_t below)
{
    return ron_seed_below(&seed, below);
}


/* Any 64 bits, small ones as often as large ones. */

static uint64_t
rnd_u64(void)
{
    return (rnd(UINT64_MAX) << 1 | rnd(2)) >> rnd(64);
}


/* ---- the vectors -------------------------------------------------------- */

static void
put_text(ron_buf_t *out, const char *name, ron_str_t s)
{
    ron_buf_put_cstr(out, ",\n      ");
    ron_json_put_string(out, ron_cstr(name));
    ron_buf_put_cstr(out, ": ");
    ron_json_put_string(out, s);
}


static void
put_hex(ron_buf_t *out, const char *name, const void *data, size_t len)
{
    ron_buf_put_cstr(out, ",\n      ");
    ron_json_put_string(out, ron_cstr(name));
    ron_buf_put_cstr(out, ": ");
    ron_json_put_hex(out, (ron_str_t) { len, data });
}


/* Numbers are strings, so that no reader rounds them. */

static void
put_number(ron_buf_t *out, const char *name, ron_u128_t v)
{
    ron_buf_put_cstr(out, ",\n      ");
    ron_json_put_string(out, ron_cstr(name));
    ron_buf_put_cstr(out, ": ");
    ron_json_put_amount(out, v);
}


/* Every field that is there, under the name that docs/FORMAT.md gives it. */

static void
put_fields(const ron_entry_t *e, ron_buf_t *out)
{
    uint32_t  f;

    f = e->fields;

    put_text(out, "kind", ron_cstr(ron_kind_name(e->kind)));
    put_number(out, "ledger", e->ledger_id);
    put_number(out, "seq", e->seq);
    put_number(out, "time_ms", e->time_ms);

    if (f & RON_F_ASSET) { put_text(out, "asset", e->asset); }
    if (f & RON_F_ACCOUNT) { put_text(out, "account", e->account); }
    if (f & RON_F_TO) { put_text(out, "to", e->to); }
    if (f & RON_F_AMOUNT) { put_number(out, "amount", e->amount); }
    if (f & RON_F_NONCE) { put_number(out, "nonce", e->nonce); }
    if (f & RON_F_NONCE16) { put_hex(out, "nonce16", e->nonce16, 16); }
    if (f & RON_F_ID) { put_text(out, "id", e->id); }
    if (f & RON_F_SOURCE) { put_number(out, "source_ms", e->source_ms); }
    if (f & RON_F_SCOPE) { put_text(out, "scope", e->scope); }
    if (f & RON_F_KEY) { put_text(out, "key", e->key); }
    if (f & RON_F_REF) { put_number(out, "ref", e->ref); }

    if (f & RON_F_POSTING) {
        put_number(out, "posting_first", e->posting_first);
        put_number(out, "posting_n", e->posting_n);
    }

    if (f & RON_F_EXPIRY) { put_number(out, "expiry_ms", e->expiry_ms); }
    if (f & RON_F_MEMO) { put_hex(out, "memo", e->memo.b, RON_HASH_LEN); }
    if (f & RON_F_CAP) { put_text(out, "cap", e->cap); }
    if (f & RON_F_CAPREF) { put_text(out, "capref", e->capref); }
    if (f & RON_F_SCHEMA) { put_number(out, "schema", e->schema); }
    if (f & RON_F_WALLET) { put_text(out, "wallet", ron_str("yes")); }
    if (f & RON_F_EXPIRED) { put_text(out, "expired", ron_str("yes")); }
}


static void
put_vector(const vector_t *v, ron_buf_t *out)
{
    char        txid[RON_TXID_LEN + 1];
    ron_buf_t   bytes, text;
    ron_hash_t  hash;

    ron_buf_init(&bytes, 0);
    ron_buf_init(&text, 0);
    vector_raw(&v->e, &bytes);

    ron_buf_put_cstr(out, "    {\n      \"name\": ");
    ron_json_put_string(out, ron_cstr(v->name));
    put_fields(&v->e, out);
    put_hex(out, "bytes", bytes.data, bytes.len);

    ron_txid_print(v->e.time_ms, v->e.ledger_id, v->e.seq, txid);
    put_text(out, "txid", ron_cstr(txid));

    RON_ASSERT(ron_receipt_hashed(&v->e, &text) == RON_OK);
    put_text(out, "hashed", ron_buf_str(&text));
    ron_blake3(text.data, text.len, &hash);
    put_hex(out, "receipt_hash", hash.b, RON_HASH_LEN);

    ron_buf_reset(&text);
    RON_ASSERT(ron_receipt_put(&v->e, &text) == RON_OK);
    put_text(out, "receipt", ron_buf_str(&text));

    ron_digest_leaf(RON_DIGEST_BLAKE3, bytes.data, bytes.len, &hash);
    put_hex(out, "leaf_blake3", hash.b, RON_HASH_LEN);
    ron_digest_leaf(RON_DIGEST_SHA256, bytes.data, bytes.len, &hash);
    put_hex(out, "leaf_sha256", hash.b, RON_HASH_LEN);
    ron_buf_put_cstr(out, "\n    }");

    ron_buf_free(&bytes);
    ron_buf_free(&text);
}


static void
generate(ron_buf_t *out)
{
    size_t            n;
    const vector_t   *v;
    const refused_t  *r;

    ron_buf_init(out, 0);
    ron_buf_put_cstr(out, "{\n  \"version\": 1,\n  \"entries\": [\n");

    v = vectors(&n);

    for (size_t i = 0; i < n; i++) {
        put_vector(&v[i], out);
        ron_buf_put_cstr(out, i + 1 < n ? ",\n" : "\n");
    }

    ron_buf_put_cstr(out, "  ],\n  \"refused\": [\n");

    r = vectors_refused(&n);

    for (size_t i = 0; i < n; i++) {
        ron_buf_put_cstr(out, "    {\n      \"name\": ");
        ron_json_put_string(out, ron_cstr(r[i].name));
        put_text(out, "why", ron_cstr(r[i].why));
        put_hex(out, "bytes", r[i].bytes.data, r[i].bytes.len);
        ron_buf_put_cstr(out, i + 1 < n ? "\n    },\n" : "\n    }\n");
    }

    ron_buf_put_cstr(out, "  ]\n}\n");

    RON_ASSERT(ron_buf_status(out) == RON_OK);
}


static void
test_file(void)
{
    size_t     n;
    ron_buf_t  want;

    generate(&want);

    is_u64(vector_file_differs(VECTORS_FILE, &want), 0,
           VECTORS_FILE " is what is encoded today; the number is its first "
           "line that is not");

    (void) vectors(&n);
    ok(n >= 40, "%zu vectors", n);
    (void) vectors_refused(&n);
    ok(n >= 40, "%zu that are refused", n);

    ron_buf_free(&want);
}


/* ---- one accepted form -------------------------------------------------- */

static bool
same_entry(const ron_entry_t *a, const ron_entry_t *b)
{
    return a->kind == b->kind && a->ledger_id == b->ledger_id
           && a->fields == b->fields && a->posting_n == b->posting_n
           && a->schema == b->schema && a->seq == b->seq
           && a->time_ms == b->time_ms && a->amount == b->amount
           && a->nonce == b->nonce && a->source_ms == b->source_ms
           && a->ref == b->ref && a->posting_first == b->posting_first
           && a->expiry_ms == b->expiry_ms
           && memcmp(a->nonce16, b->nonce16, RON_NONCE_LEN) == 0
           && ron_hash_eq(&a->memo, &b->memo)
           && ron_str_eq(a->asset, b->asset)
           && ron_str_eq(a->account, b->account) && ron_str_eq(a->to, b->to)
           && ron_str_eq(a->id, b->id) && ron_str_eq(a->scope, b->scope)
           && ron_str_eq(a->key, b->key) && ron_str_eq(a->cap, b->cap)
           && ron_str_eq(a->capref, b->capref);
}


/* A copy of exactly its length, so that a checker sees a read beyond it. */

static ron_status_t
decode_exact(const uint8_t *data, size_t len, ron_entry_t *e, uint8_t **copy)
{
    *copy = malloc(len != 0 ? len : 1);
    RON_ASSERT(*copy != NULL);

    if (len != 0) {
        memcpy(*copy, data, len);
    }

    return ron_entry_decode((ron_str_t) { len, *copy }, e);
}


/* Decoding refuses, or encoding gives the very same bytes back. */

static bool
is_canonical(const uint8_t *data, size_t len, bool *accepted)
{
    bool          good;
    uint8_t      *copy;
    ron_buf_t     again;
    ron_entry_t   e, none;

    *accepted = decode_exact(data, len, &e, &copy) == RON_OK;
    good = true;

    if (*accepted) {
        ron_buf_init(&again, 0);
        good = ron_entry_encode(&e, &again) == RON_OK && again.len == len
               && memcmp(again.data, data, len) == 0;
        ron_buf_free(&again);

    } else {
        memset(&none, 0, sizeof(none));
        good = same_entry(&e, &none);
    }

    free(copy);

    return good;
}


static void
test_vector(const vector_t *v)
{
    bool          accepted;
    size_t        prefixes, flips, others, wrong;
    uint8_t      *copy;
    ron_buf_t     raw, out;
    ron_entry_t   e;

    ron_buf_init(&raw, 0);
    ron_buf_init(&out, 0);
    vector_raw(&v->e, &raw);

    ok(ron_entry_encode(&v->e, &out) == RON_OK && out.len == raw.len
       && memcmp(out.data, raw.data, raw.len) == 0,
       "%s: two encoders agree", v->name);

    ok(decode_exact(raw.data, raw.len, &e, &copy) == RON_OK
       && same_entry(&e, &v->e), "%s: decoded", v->name);
    free(copy);

    for (prefixes = 0, wrong = 0; prefixes < raw.len; prefixes++) {
        wrong += !is_canonical(raw.data, prefixes, &accepted) || accepted;
    }

    is_u64(wrong, 0, "%s: each of %zu prefixes is refused", v->name, prefixes);

    for (flips = 0, others = 0, wrong = 0; flips < raw.len * 8; flips++) {
        raw.data[flips / 8] ^= (uint8_t) (1 << flips % 8);
        wrong += !is_canonical(raw.data, raw.len, &accepted);
        others += accepted;
        raw.data[flips / 8] ^= (uint8_t) (1 << flips % 8);
    }

    ok(wrong == 0 && others > 0 && others < flips,
       "%s: of %zu bit flips %zu are other entries, the rest is refused",
       v->name, flips, others);

    ron_buf_free(&raw);
    ron_buf_free(&out);
}


static void
test_refused(const refused_t *r)
{
    uint8_t      *copy;
    ron_entry_t   e, none;

    memset(&none, 0, sizeof(none));

    ok(decode_exact(r->bytes.data, r->bytes.len, &e, &copy) == r->status
       && same_entry(&e, &none), "refused: %s (%s)", r->name, r->why);

    free(copy);
}


/* What is wrong with these is not lost when they are encoded. */

static void
test_bounds(void)
{
    ron_buf_t     out;
    ron_entry_t   e;
    uint8_t      *copy;

    static const struct {
        const char    *text;
        ron_status_t   status;
        const char    *what;
    } texts[] = {
        { "a\xc3\xa9",     RON_OK,     "of UTF-8" },
        { "a\xff",         RON_EINVAL, "with a byte that none has" },
        { "a\xc3",         RON_EINVAL, "with half a character" },
        { "\xc0\x80",      RON_EINVAL, "with a long form" },
        { "\xed\xa0\x80",  RON_EINVAL, "with half a pair" },
        { "",              RON_EINVAL, "that is empty" },
    };

    ron_buf_init(&out, 0);

    vector_plain(2, 1, &e);
    e.kind = RON_KIND_NONE;
    is_status(ron_entry_encode(&e, &out), RON_EVERSION, "no kind");
    e.kind = RON_KIND_N;
    is_status(ron_entry_encode(&e, &out), RON_EVERSION, "a kind of the "
              "future");

    vector_plain(2, 1, &e);
    e.amount = 0;
    is_status(ron_entry_encode(&e, &out), RON_EINVAL, "an amount of 0");
    is_u64(out.len, 0, "and nothing was written");

    vector_plain(2, 1, &e);
    e.seq = RON_SEQ_MAX + 1;
    is_status(ron_entry_encode(&e, &out), RON_EINVAL, "a seq that JSON"
              " cannot say");
    e.seq = RON_SEQ_MAX;
    is_status(ron_entry_encode(&e, &out), RON_OK, "the last that it can");

    ron_buf_reset(&out);

    for (size_t i = 0; i < ron_array_n(texts); i++) {
        vector_plain(2, 1, &e);
        e.fields |= RON_F_ID;
        e.id = ron_cstr(texts[i].text);
        is_status(ron_entry_encode(&e, &out), texts[i].status,
                  "a text: %s", texts[i].what);
        ron_buf_reset(&out);
    }

    vector_plain(2, 1, &e);
    e.fields |= RON_F_ALL + 1;
    is_status(ron_entry_encode(&e, &out), RON_EINVAL, "a field of the "
              "future");

    ron_buf_reset(&out);

    while (out.len <= RON_ENTRY_MAX) {
        ron_buf_put_u8(&out, 1);
    }

    is_status(decode_exact(out.data, out.len, &e, &copy), RON_ECORRUPT,
              "more than RON_ENTRY_MAX bytes");
    free(copy);

    ron_buf_free(&out);
    ron_buf_init(&out, 20);

    vector_plain(2, 1, &e);
    is_status(ron_entry_encode(&e, &out), RON_EFULL, "a buffer without room");
    is_u64(out.len, 0, "has nothing in it");

    ron_buf_free(&out);
}


/* ---- random entries ----------------------------------------------------- */

static ron_str_t
rnd_text(size_t max, bool plain, uint8_t *room)
{
    static const char  chars[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:/_.@-";
    size_t             n;

    n = 1 + (rnd(8) == 0 ? rnd(max) : rnd(ron_min(max, 24)));

    for (size_t i = 0; i < n; i++) {
        room[i] = plain ? (uint8_t) chars[rnd(sizeof(chars) - 1)]
                        : (uint8_t) (1 + rnd(127));
    }

    return (ron_str_t) { n, room };
}


static void
rnd_entry(ron_entry_t *e, uint8_t room[8][256])
{
    memset(e, 0, sizeof(ron_entry_t));

    e->kind = (ron_kind_t) (1 + rnd(RON_KIND_N - 1));
    e->ledger_id = (uint16_t) rnd(65536);
    e->seq = 2 + rnd_u64() % ((UINT64_C(1) << 53) - 2);
    e->time_ms = rnd_u64() % (RON_TIME_MAX + 1);
    e->amount = 1 + (((ron_u128_t) rnd_u64() << 64 | rnd_u64()) >> rnd(128));
    e->nonce = 1 + rnd_u64() % RON_NONCE_MAX;
    e->source_ms = rnd_u64() % (RON_TIME_MAX + 1);
    e->expiry_ms = rnd_u64() % (RON_TIME_MAX + 1);
    e->ref = 1 + rnd(e->seq - 1);
    e->posting_n = (uint32_t) (1 + rnd(UINT32_MAX));
    e->posting_first = e->seq - rnd(ron_min(e->seq, e->posting_n));
    e->schema = (uint32_t) (2 + rnd(UINT32_MAX - 1));

    for (unsigned i = 0; i < RON_HASH_LEN; i++) {
        e->memo.b[i] = (uint8_t) rnd(256);
        e->nonce16[i % RON_NONCE_LEN] = (uint8_t) rnd(256);
    }

    e->asset = rnd_text(RON_ASSET_MAX, true, room[0]);
    e->account = rnd_text(RON_ACCOUNT_MAX, true, room[1]);
    e->to = rnd_text(RON_ACCOUNT_MAX, true, room[2]);
    e->id = rnd_text(RON_ID_MAX, false, room[3]);
    e->scope = rnd_text(RON_SCOPE_MAX, false, room[4]);
    e->key = rnd_text(RON_KEY_MAX, false, room[5]);
    e->cap = rnd_text(RON_CAP_MAX, false, room[6]);
    e->capref = rnd_text(RON_ID_MAX, false, room[7]);
}


/* Fields that this kind may have, and none of the others. */

static void
rnd_fields(ron_entry_t *e)
{
    uint32_t  f;

    f = ron_kind_needs(e->kind)
        | (ron_kind_allows(e->kind) & (uint32_t) rnd(RON_F_ALL + 1));

    if ((f & RON_F_NONCE) && (f & RON_F_NONCE16)) {
        f &= ~(uint32_t) (rnd(2) ? RON_F_NONCE : RON_F_NONCE16);
    }

    if ((f & RON_F_SCOPE) && !(f & RON_F_KEY)) {
        f |= RON_F_KEY;
    }

    if (e->kind == RON_KIND_REVERSE && !(f & (RON_F_ACCOUNT | RON_F_TO))) {
        f |= rnd(2) ? RON_F_ACCOUNT : RON_F_TO;
    }

    e->fields = f;

    if (!(f & RON_F_ASSET)) { e->asset = ron_null_str; }
    if (!(f & RON_F_ACCOUNT)) { e->account = ron_null_str; }
    if (!(f & RON_F_TO)) { e->to = ron_null_str; }
    if (!(f & RON_F_AMOUNT)) { e->amount = 0; }
    if (!(f & RON_F_NONCE)) { e->nonce = 0; }
    if (!(f & RON_F_NONCE16)) { memset(e->nonce16, 0, RON_NONCE_LEN); }
    if (!(f & RON_F_ID)) { e->id = ron_null_str; }
    if (!(f & RON_F_SOURCE)) { e->source_ms = 0; }
    if (!(f & RON_F_SCOPE)) { e->scope = ron_null_str; }
    if (!(f & RON_F_KEY)) { e->key = ron_null_str; }
    if (!(f & RON_F_REF)) { e->ref = 0; }
    if (!(f & RON_F_POSTING)) { e->posting_first = 0; }
    if (!(f & RON_F_POSTING)) { e->posting_n = 0; }
    if (!(f & RON_F_EXPIRY)) { e->expiry_ms = 0; }
    if (!(f & RON_F_MEMO)) { memset(&e->memo, 0, sizeof(e->memo)); }
    if (!(f & RON_F_CAP)) { e->cap = ron_null_str; }
    if (!(f & RON_F_CAPREF)) { e->capref = ron_null_str; }
    if (!(f & RON_F_SCHEMA)) { e->schema = 0; }
}


static void
test_random(void)
{
    bool          accepted;
    size_t        same, canonical, others, longest;
    uint8_t       room[8][256];
    uint8_t      *copy;
    ron_buf_t     out, raw;
    ron_entry_t   e, back;

    same = canonical = others = longest = 0;

    for (unsigned i = 0; i < RANDOM_N; i++) {
        ron_buf_init(&out, 0);
        ron_buf_init(&raw, 0);

        rnd_entry(&e, room);
        rnd_fields(&e);

        if ((e.kind == RON_KIND_TRANSFER || e.kind == RON_KIND_HOLD)
            && ron_str_eq(e.account, e.to))
        {
            e.to = ron_str("another");
        }

        vector_raw(&e, &raw);

        same += ron_entry_encode(&e, &out) == RON_OK
                && out.len == raw.len
                && memcmp(out.data, raw.data, out.len) == 0
                && decode_exact(out.data, out.len, &back, &copy) == RON_OK
                && same_entry(&back, &e) && (free(copy), true);

        longest = ron_max(longest, raw.len);

        raw.data[rnd(raw.len)] ^= (uint8_t) (1 + rnd(255));
        canonical += is_canonical(raw.data, raw.len, &accepted);
        others += accepted;

        ron_buf_free(&out);
        ron_buf_free(&raw);
    }

    is_u64(same, RANDOM_N, "random entries come back as they were");
    is_u64(canonical, RANDOM_N, "with one byte changed, refused or canonical");
    ok(others > RANDOM_N / 10 && others < RANDOM_N / 10 * 9,
       "%zu of them were other entries", others);
    ok(longest > 700 && longest < RON_ENTRY_MAX,
       "the longest had %zu bytes", longest);
}


/* ---- the rules of each kind --------------------------------------------- */

static const struct {
    ron_kind_t   kind;
    const char  *name;
    const char  *op;
    uint32_t     needs;
    uint32_t     allows;
} kinds[] = {
    { RON_KIND_MINT, "Mint", "issue", 0x0000b, 0 },
    { RON_KIND_BURN, "Burn", "burn", 0x0000b, 0 },
    { RON_KIND_TRANSFER, "Transfer", "transfer", 0x0000f, 0 },
    { RON_KIND_DEBIT, "Debit", "debit", 0x0080b, 0 },
    { RON_KIND_CREDIT, "Credit", "credit", 0x0080b, 0 },
    { RON_KIND_HOLD, "Hold", "hold", 0x0000f, 0x01000 },
    { RON_KIND_CAPTURE, "Capture", "capture", 0x0040f, 0 },
    { RON_KIND_RELEASE, "Release", "release", 0x0040b, 0x40000 },
    { RON_KIND_REVERSE, "Reverse", "reverse", 0x00409, 0x00006 },
};

/* What every kind may have. */
#define COMMON  0x3e3f0


static void
test_kinds(void)
{
    size_t        wrong;
    uint8_t       room[8][256];
    uint32_t      f;
    ron_entry_t   e;
    ron_status_t  want;

    is_u64(ron_array_n(kinds), RON_KIND_N - 1, "every kind is here");

    for (size_t i = 0; i < ron_array_n(kinds); i++) {
        ok(strcmp(ron_kind_name(kinds[i].kind), kinds[i].name) == 0
           && strcmp(ron_kind_op(kinds[i].kind), kinds[i].op) == 0
           && ron_kind_parse(ron_cstr(kinds[i].name)) == kinds[i].kind
           && ron_kind_parse(ron_cstr(kinds[i].op)) == RON_KIND_NONE
           && kinds[i].kind == i + 1, "%s has its names and its number",
           kinds[i].name);

        is_u64(ron_kind_needs(kinds[i].kind), kinds[i].needs,
               "%s: what it needs", kinds[i].name);
        is_u64(ron_kind_allows(kinds[i].kind),
               kinds[i].needs | kinds[i].allows | COMMON,
               "%s: what it may have", kinds[i].name);

        /* all sets of fields, with values that are good for any of them */

        wrong = 0;
        rnd_entry(&e, room);
        e.kind = kinds[i].kind;
        e.account = ron_str("a");
        e.to = ron_str("b");

        for (f = 0; f <= 0x7ffff; f++) {
            e.fields = f;
            want = RON_OK;

            if ((f & kinds[i].needs) != kinds[i].needs
                || (f & ~(kinds[i].needs | kinds[i].allows | COMMON)) != 0
                || (f & 0x30) == 0x30 || (f & 0x300) == 0x100
                || (kinds[i].kind == RON_KIND_REVERSE && (f & 6) == 0))
            {
                want = RON_EINVAL;
            }

            wrong += ron_entry_check(&e) != want;
        }

        is_u64(wrong, 0, "%s: all 524288 sets of fields", kinds[i].name);
    }

    is_u64(ron_kind_parse(ron_str("mint")), RON_KIND_NONE, "no such kind");
    is_u64(ron_kind_parse(ron_null_str), RON_KIND_NONE, "nothing is no kind");
}


static void
test_moves(void)
{
    static const struct {
        ron_kind_t   kind;
        const char  *from, *to;
        bool         from_held, to_held, mints, burns;
    } want[] = {
        { RON_KIND_MINT, "", "a", false, false, true, false },
        { RON_KIND_BURN, "a", "", false, false, false, true },
        { RON_KIND_TRANSFER, "a", "b", false, false, false, false },
        { RON_KIND_DEBIT, "a", "", false, false, false, false },
        { RON_KIND_CREDIT, "", "a", false, false, false, false },
        { RON_KIND_HOLD, "a", "a", false, true, false, false },
        { RON_KIND_CAPTURE, "a", "b", true, false, false, false },
        { RON_KIND_RELEASE, "a", "a", true, false, false, false },
        { RON_KIND_REVERSE, "a", "b", false, false, false, false },
    };

    ron_entry_t  e;
    ron_moves_t  m;

    for (size_t i = 0; i < ron_array_n(want); i++) {
        memset(&e, 0, sizeof(e));
        e.kind = want[i].kind;
        e.account = ron_str("a");
        e.to = ron_str("b");

        ron_entry_moves(&e, &m);

        ok(ron_str_eq(m.from, ron_cstr(want[i].from))
           && ron_str_eq(m.to, ron_cstr(want[i].to))
           && m.from_held == want[i].from_held
           && m.to_held == want[i].to_held && m.mints == want[i].mints
           && m.burns == want[i].burns, "%s moves what it says",
           ron_kind_name(want[i].kind));
    }

    memset(&e, 0, sizeof(e));
    e.kind = RON_KIND_REVERSE;
    e.to = ron_str("b");
    ron_entry_moves(&e, &m);
    ok(m.from.len == 0 && ron_str_eq(m.to, ron_str("b")),
       "a Reverse of a Debit takes from nobody");
}


static void
test_characters(void)
{
    size_t     wrong;
    uint8_t    ch;
    ron_str_t  s;

    wrong = 0;

    for (unsigned i = 0; i < 256; i++) {
        ch = (uint8_t) i;
        s = (ron_str_t) { 1, &ch };

        wrong += ron_account_valid(s)
                 != (i != 0
                     && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz"
                               "0123456789:/_.@-", (int) i) != NULL);
        wrong += ron_asset_valid(s) != ron_account_valid(s);
    }

    is_u64(wrong, 0, "the characters of accounts and assets");
}


static void
test_body(void)
{
    ron_rd_t   rd;
    ron_buf_t  body;
    ron_str_t  s;

    ron_buf_init(&body, 0);
    ron_rd_init(&rd, ron_buf_str(&body));
    is_status(ron_body_next(&rd, &s), RON_ENOTFOUND, "a body of no entries");

    ron_body_put(&body, ron_str("one"));
    ron_body_put(&body, ron_str("three"));
    is_mem(body.data, "\x03one\x05three", body.len, "lengths in front");

    ron_rd_init(&rd, ron_buf_str(&body));
    ok(ron_body_next(&rd, &s) == RON_OK && ron_str_eq(s, ron_str("one")),
       "the first");
    ok(ron_body_next(&rd, &s) == RON_OK && ron_str_eq(s, ron_str("three")),
       "the second");
    is_status(ron_body_next(&rd, &s), RON_ENOTFOUND, "the end");
    ok(s.data == NULL, "is a null string");

    ron_rd_init(&rd, ron_str("\x03on"));
    is_status(ron_body_next(&rd, &s), RON_ECORRUPT, "one that is cut");
    ron_rd_init(&rd, ron_str("\x00\x03one"));
    is_status(ron_body_next(&rd, &s), RON_ECORRUPT, "an entry of no bytes");
    ron_rd_init(&rd, ron_str("\x83\x00one"));
    is_status(ron_body_next(&rd, &s), RON_ECORRUPT, "a length that is too "
              "long");

    ron_buf_free(&body);
}


int
main(int argc, char **argv)
{
    size_t            n;
    ron_buf_t         out;
    const vector_t   *v;
    const refused_t  *r;

    if (argc == 2 && strcmp(argv[1], "--generate") == 0) {
        generate(&out);
        return fwrite(out.data, 1, out.len, stdout) == out.len ? 0 : 1;
    }

    test_file();

    v = vectors(&n);

    for (size_t i = 0; i < n; i++) {
        test_vector(&v[i]);
    }

    r = vectors_refused(&n);

    for (size_t i = 0; i < n; i++) {
        test_refused(&r[i]);
    }

    test_bounds();
    test_random();
    test_kinds();
    test_moves();
    test_characters();
    test_body();

    return done_testing();
}
