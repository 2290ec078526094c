
/*
 * Receipts and transaction ids: texts as clients see them, written out here
 * in full, and the two forms of a receipt agreeing with one another for every
 * golden vector.
 */

#include "ron_receipt.h"
#include "ron_codec.h"
#include "ron_digest.h"

#include "lib_vector.h"
#include "ron_seed.h"
#include "ron_test.h"


static uint64_t  seed = 12;


static uint64_t
rnd(uint64_t below)
{
    return ron_seed_below(&seed, below);
}


static void
is_text(const ron_buf_t *got, const char *want, const char *name)
{
    char  *copy;

    copy = malloc(got->len + 1);
    RON_ASSERT(copy != NULL);

    if (got->len != 0) {
        memcpy(copy, got->data, got->len);
    }

    copy[got->len] = '\0';
    is_str(copy, want, "%s", name);

    free(copy);
}


/* ---- transaction ids ---------------------------------------------------- */

static bool
txid_is(uint64_t ms, uint16_t ledger, uint64_t seq, const char *want)
{
    char      buf[RON_TXID_LEN + 1];
    uint16_t  ledger2;
    uint64_t  ms2, seq2;

    ron_txid_print(ms, ledger, seq, buf);

    return strcmp(buf, want) == 0
           && ron_txid_parse(ron_cstr(want), &ms2, &ledger2, &seq2) == RON_OK
           && ms2 == ms && ledger2 == ledger && seq2 == seq;
}


static void
is_no_txid(const char *text, ron_status_t status, const char *why)
{
    uint16_t  ledger;
    uint64_t  ms, seq;

    ms = seq = 1;
    ledger = 1;

    ok(ron_txid_parse(ron_cstr(text), &ms, &ledger, &seq) == status
       && ms == 0 && ledger == 0 && seq == 0, "no txid: %s", why);
}


static void
test_txid(void)
{
    char      text[RON_TXID_LEN + 1];
    size_t    wrong;
    uint16_t  ledger;
    uint64_t  ms, seq;

    ok(txid_is(0, 0, 1, "tx_00000000000000000000000001"), "the smallest");
    ok(txid_is(0, 0, UINT64_MAX, "tx_0000000000000FZZZZZZZZZZZZ"),
       "the largest seq");
    ok(txid_is(0, 1, 1, "tx_0000000000000G000000000001"), "ledger 1");
    ok(txid_is(0, 65535, 1, "tx_0000000000ZZZG000000000001"), "ledger 65535");
    ok(txid_is(1, 0, 1, "tx_00000000010000000000000001"), "one millisecond");
    ok(txid_is((UINT64_C(1) << 48) - 1, 65535, UINT64_MAX,
               "tx_7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), "the largest");
    ok(txid_is(UINT64_C(1767322245678), 0x2a07, 42,
               "tx_01KDY9TPHE583G00000000001A"), "an ordinary one");

    is_no_txid("", RON_EINVAL, "nothing");
    is_no_txid("tx_", RON_EINVAL, "the prefix");
    is_no_txid("tx_0000000000000000000000001", RON_EINVAL, "too short");
    is_no_txid("tx_000000000000000000000000001", RON_EINVAL, "too long");
    is_no_txid("TX_00000000000000000000000001", RON_EINVAL, "upper prefix");
    is_no_txid("tx-00000000000000000000000001", RON_EINVAL, "other prefix");
    is_no_txid("tx_0000000000000000000000000a", RON_EINVAL, "lower case");
    is_no_txid("tx_0000000000000000000000000O", RON_EINVAL, "letter O");
    is_no_txid("tx_0000000000000000000000000I", RON_EINVAL, "letter I");
    is_no_txid("tx_0000000000000000000000000L", RON_EINVAL, "letter L");
    is_no_txid("tx_0000000000000000000000000U", RON_EINVAL, "letter U");
    is_no_txid("tx_0000000000000000000000000 ", RON_EINVAL, "a space");
    is_no_txid("tx_80000000000000000000000001", RON_EINVAL, "over 2^128");
    is_no_txid("tx_00000000000000000000000000", RON_EINVAL, "seq 0");

    wrong = 0;

    for (unsigned i = 0; i < 100000; i++) {
        ms = rnd(UINT64_C(1) << 48) >> rnd(48);
        ledger = (uint16_t) rnd(65536);
        seq = 1 + (rnd(UINT64_MAX) >> rnd(64));

        ron_txid_print(ms, ledger, seq, text);
        wrong += !txid_is(ms, ledger, seq, text);
    }

    is_u64(wrong, 0, "100000 random ones come back");
}


/* ---- receipts ----------------------------------------------------------- */

static const vector_t *
vector_named(const char *name)
{
    size_t           n;
    const vector_t  *v;

    v = vectors(&n);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(v[i].name, name) == 0) {
            return &v[i];
        }
    }

    fprintf(stderr, "no vector is called \"%s\"\n", name);
    abort();
}


/* The entry of that name, at an instant and a place of its own. */

static ron_entry_t
entry_named(const char *name)
{
    ron_entry_t  e;

    e = vector_named(name)->e;
    e.seq = 42;
    e.time_ms = UINT64_C(1767322245678);

    return e;
}


#define TXID  "tx_01KDY9TPHE583G00000000001A"
#define TIME  "2026-01-02T02:50:45.678Z"


static void
is_hashed(const char *vector, const char *want)
{
    ron_buf_t    out;
    ron_hash_t   hash, ours;
    ron_entry_t  e;

    e = entry_named(vector);
    ron_buf_init(&out, 0);

    is_status(ron_receipt_hashed(&e, &out), RON_OK, "%s", vector);
    is_text(&out, want, vector);

    ron_blake3(want, strlen(want), &hash);
    ok(ron_receipt_hash(&e, &ours) == RON_OK && ron_hash_eq(&hash, &ours),
       "%s: its hash", vector);

    ron_buf_free(&out);
}


static void
test_hashed(void)
{
    is_hashed("wallet transfer",
              "{\"amount_minor\":\"250\",\"asset\":\"ron\","
              "\"from\":\"acc_alice\","
              "\"idem\":\"3d8a1e0c-0000-4000-8000-1f2e3d4c5b6a\","
              "\"nonce\":7,\"op\":\"transfer\",\"to\":\"acc_bob\","
              "\"ts\":\"" TIME "\",\"txid\":\"" TXID "\"}");
    is_hashed("Mint",
              "{\"amount_minor\":\"250\",\"asset\":\"ron\",\"op\":\"issue\","
              "\"to\":\"acc_alice\",\"ts\":\"" TIME "\",\"txid\":\"" TXID
              "\"}");
    is_hashed("Burn",
              "{\"amount_minor\":\"250\",\"asset\":\"ron\","
              "\"from\":\"acc_alice\",\"op\":\"burn\",\"ts\":\"" TIME
              "\",\"txid\":\"" TXID "\"}");
    is_hashed("Release by expiry",
              "{\"amount_minor\":\"250\",\"asset\":\"ron\","
              "\"from\":\"acc_alice\",\"op\":\"release\",\"ts\":\"" TIME
              "\",\"txid\":\"" TXID "\"}");
    is_hashed("Credit, second leg of the same posting",
              "{\"amount_minor\":\"250\",\"asset\":\"ron\","
              "\"op\":\"credit\",\"to\":\"acc_alice\",\"ts\":\"" TIME
              "\",\"txid\":\"" TXID "\"}");
    is_hashed("Debit, first leg of two",
              "{\"amount_minor\":\"250\",\"asset\":\"ron\","
              "\"from\":\"acc_alice\",\"op\":\"debit\",\"ts\":\"" TIME
              "\",\"txid\":\"" TXID "\"}");
    is_hashed("Reverse of a Debit: it only gives",
              "{\"amount_minor\":\"250\",\"asset\":\"ron\","
              "\"op\":\"reverse\",\"to\":\"acc_alice\",\"ts\":\"" TIME
              "\",\"txid\":\"" TXID "\"}");
    is_hashed("a key with what JSON escapes",
              "{\"amount_minor\":\"250\",\"asset\":\"ron\","
              "\"from\":\"acc_alice\",\"idem\":\"\\\"\\\\/\\b\\f\\n\\r\\t"
              "\\u0001\\u001f\x7f <&> \xc3\xa9 \xe2\x80\xa8 "
              "\xf0\x9f\xaa\x99\","
              "\"nonce\":\"8AESIzRFVmd4iZqrvM3e7w==\",\"op\":\"transfer\","
              "\"to\":\"acc_bob\",\"ts\":\"" TIME "\",\"txid\":\"" TXID
              "\"}");
    is_hashed("amount 2^128-1",
              "{\"amount_minor\":\"340282366920938463463374607431768211455\","
              "\"asset\":\"ron\",\"op\":\"issue\",\"to\":\"acc_alice\","
              "\"ts\":\"" TIME "\",\"txid\":\"" TXID "\"}");
    is_hashed("wallet transfer, nonce 2^53-1",
              "{\"amount_minor\":\"250\",\"asset\":\"ron\","
              "\"from\":\"acc_alice\",\"idem\":\"k\","
              "\"nonce\":9007199254740991,\"op\":\"transfer\","
              "\"to\":\"acc_bob\",\"ts\":\"" TIME "\",\"txid\":\"" TXID
              "\"}");
}


static void
test_shown(void)
{
    ron_buf_t    out;
    ron_entry_t  e;

    ron_buf_init(&out, 0);

    e = entry_named("wallet transfer");
    is_status(ron_receipt_put(&e, &out), RON_OK, "a receipt");
    is_text(&out,
            "{\"txid\":\"" TXID "\",\"op\":\"transfer\","
            "\"from\":\"acc_alice\",\"to\":\"acc_bob\",\"asset\":\"ron\","
            "\"amount_minor\":\"250\",\"nonce\":7,"
            "\"idem\":\"3d8a1e0c-0000-4000-8000-1f2e3d4c5b6a\","
            "\"ts\":\"" TIME "\",\"receipt_hash\":\"b3:"
            "5dddf333d85c233b6db894baf95243228a159e34e2d2a2f2dc8348a8ef679afe"
            "\",\"seq\":42}", "as a client sees it");

    ron_buf_reset(&out);
    ron_buf_put_cstr(&out, "[");
    is_status(ron_receipt_put(&e, &out), RON_OK, "behind something else");
    ok(out.data[0] == '[' && out.data[1] == '{', "which stays");

    ron_buf_reset(&out);
    e = entry_named("ingested Transfer with idem_id, capability_ref, v");
    e.source_ms = UINT64_C(1767322245675);
    is_status(ron_entry_put_json(&e, &out), RON_OK, "an entry as JSON");
    is_text(&out,
            "{\"seq\":42,\"time\":\"" TIME "\",\"kind\":\"Transfer\","
            "\"account\":\"acc_alice\",\"to\":\"acc_bob\","
            "\"asset\":\"ron\",\"amount\":\"250\","
            "\"nonce\":\"8AESIzRFVmd4iZqrvM3e7w==\",\"id\":\"transfer:1\","
            "\"ts\":1767322245675,\"capability_ref\":\"cap:ref/9\",\"v\":2}",
            "as the ingest API spells it");

    ron_buf_reset(&out);
    e = entry_named("Release by expiry");
    is_status(ron_entry_put_json(&e, &out), RON_OK, "another");
    is_text(&out,
            "{\"seq\":42,\"time\":\"" TIME "\",\"kind\":\"Release\","
            "\"account\":\"acc_alice\",\"asset\":\"ron\",\"amount\":\"250\","
            "\"ref\":12,\"expired\":true}", "that nobody asked for");

    ron_buf_free(&out);
}


/* What a receipt says is what its hash covers, whatever the entry. */

static size_t
member(const ron_buf_t *receipt, const char *name, char *value, size_t cap)
{
    char        key[32];
    size_t      n, depth;
    const char *at, *end;

    snprintf(key, sizeof(key), "\"%s\":", name);
    at = memmem(receipt->data, receipt->len, key, strlen(key));

    if (at == NULL) {
        return 0;
    }

    at += strlen(key);
    end = at;
    depth = 0;

    while (depth || (*end != ',' && *end != '}')) {
        if (*end == '\\') {
            end++;
        } else if (*end == '"') {
            depth = !depth;
        }

        end++;
    }

    n = (size_t) (end - at);
    RON_ASSERT(n < cap);
    memcpy(value, at, n);
    value[n] = '\0';

    return n;
}


static void
test_agree(void)
{
    static const char *const  sorted[] = {
        "amount_minor", "asset", "from", "idem", "nonce", "op", "to", "ts",
        "txid"
    };

    char             value[2048], hex[2 * RON_HASH_LEN];
    size_t           n, wrong;
    ron_buf_t        shown, built, hashed;
    ron_hash_t       hash;
    const vector_t  *v;

    v = vectors(&n);
    wrong = 0;

    for (size_t i = 0; i < n; i++) {
        ron_buf_init(&shown, 0);
        ron_buf_init(&built, 0);
        ron_buf_init(&hashed, 0);

        wrong += ron_receipt_put(&v[i].e, &shown) != RON_OK;
        wrong += ron_receipt_hashed(&v[i].e, &hashed) != RON_OK;
        ron_buf_put_u8(&built, '{');

        for (size_t k = 0; k < ron_array_n(sorted); k++) {
            if (member(&shown, sorted[k], value, sizeof(value)) != 0) {
                ron_buf_printf(&built, "%s\"%s\":%s",
                               built.len > 1 ? "," : "", sorted[k], value);
            }
        }

        ron_buf_put_u8(&built, '}');

        wrong += built.len != hashed.len
                 || memcmp(built.data, hashed.data, built.len) != 0;

        ron_blake3(built.data, built.len, &hash);
        (void) ron_hex_encode((ron_str_t) { RON_HASH_LEN, hash.b }, hex);
        (void) member(&shown, "receipt_hash", value, sizeof(value));
        wrong += strncmp(value, "\"b3:", 4) != 0
                 || memcmp(value + 4, hex, sizeof(hex)) != 0;

        ron_buf_free(&shown);
        ron_buf_free(&built);
        ron_buf_free(&hashed);
    }

    is_u64(wrong, 0, "%zu receipts say what their hashes cover", n);
}


static void
test_room(void)
{
    size_t       n, full;
    uint8_t      key[RON_KEY_MAX], account[RON_ACCOUNT_MAX];
    ron_buf_t    out;
    ron_hash_t   hash;
    ron_entry_t  e;

    e = entry_named("everything at its bound");
    memset(key, 1, sizeof(key));
    memset(account, 'a', sizeof(account));
    e.key = (ron_str_t) { sizeof(key), key };
    e.account = (ron_str_t) { sizeof(account), account };

    is_status(ron_receipt_hash(&e, &hash), RON_OK,
              "RON_RECEIPT_MAX is enough for the longest");

    ron_buf_init(&out, RON_RECEIPT_MAX);
    is_status(ron_receipt_put(&e, &out), RON_OK, "also as it is shown");
    n = out.len;
    ron_buf_free(&out);

    full = 0;

    for (size_t max = 1; max < n; max++) {
        ron_buf_init(&out, max);
        full += ron_receipt_put(&e, &out) == RON_EFULL;
        ron_buf_free(&out);
    }

    is_u64(full, n - 1, "it says so when there is no room for all of it");
}


int
main(void)
{
    test_txid();
    test_hashed();
    test_shown();
    test_agree();
    test_room();

    return done_testing();
}
