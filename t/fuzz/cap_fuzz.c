
/*
 * Capabilities.  A token that verifies has the chain of HMACs that its text
 * says, computed here once more; one that was minted verifies, and not after
 * a change; and to add a caveat never allows more.
 */

#include <openssl/hmac.h>

#include "ron_fuzz.h"
#include "ron_cap.h"
#include "ron_codec.h"


#define NOW_MS  UINT64_C(1700000000000)


static ron_keyring_t  ring;
static ron_revoked_t  revoked;


static void
setup(void)
{
    ron_keyring_error_t  err;

    RON_ASSERT(ron_keyring_parse(ron_str(
        "dev AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
        "old ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=\n"),
        &ring, &err) == RON_OK);
    RON_ASSERT(ron_revoked_parse(ron_str("gone\n"), &revoked, &err)
               == RON_OK);
    ring.revoked = &revoked;
}


static void
naive_hmac(const uint8_t *key, ron_str_t text, uint8_t out[32])
{
    unsigned  n;

    n = 32;
    RON_ASSERT(HMAC(EVP_sha256(), key, 32, text.data, text.len, out, &n));
    RON_ASSERT(n == 32);
}


static void
really_minted(ron_str_t token)
{
    uint8_t           sig[32], next[32];
    const ron_key_t  *key;

    static ron_macaroon_t   m;
    static ron_cap_error_t  err;

    RON_ASSERT(ron_cap_parse(token, &m, &err) == RON_OK);
    key = ron_keyring_find(&ring, m.kid);
    RON_ASSERT(key != NULL && !ron_str_eq(m.id, ron_str("gone")));
    naive_hmac(key->root, m.identifier, sig);

    for (size_t i = 0; i < m.caveats_n; i++) {
        naive_hmac(sig, m.caveats[i], next);
        memcpy(sig, next, sizeof(sig));
        RON_ASSERT(ron_cap_caveat_check(m.caveats[i]) == RON_OK);
    }

    RON_ASSERT(m.sig.len == 32 && memcmp(m.sig.data, sig, 32) == 0);
}


static void
fuzz_token(ron_str_t token)
{
    ron_cap_error_t  err;

    static ron_cap_t       cap;
    static ron_macaroon_t  m;

    if (ron_cap_parse(token, &m, &err) == RON_OK) {
        RON_ASSERT(token.len <= RON_CAP_TEXT_MAX);
        RON_ASSERT(m.caveats_n <= RON_CAP_CAVEATS_MAX);
        RON_ASSERT(m.kid.len + 1 + m.id.len == m.identifier.len);

    } else {
        RON_ASSERT(err.why != RON_CAP_ACCEPTED && err.status == 401);
    }

    if (ron_cap_verify(&ring, token, NOW_MS, &cap, &err) == RON_OK) {
        really_minted(token);

    } else {
        RON_ASSERT(!cap.valid && !ron_cap_allows_act(&cap, 1, 1));
        RON_ASSERT(err.status != 0 && err.reason != NULL);
    }
}


static void
fuzz_bytes_of_token(ron_str_t bytes)
{
    char    text[RON_CAP_TEXT_MAX * 2];
    size_t  n;

    bytes.len = ron_min(bytes.len, (size_t) RON_CAP_BYTES_MAX + 8);
    n = ron_base64url_encode(bytes, text);
    fuzz_token((ron_str_t) { n, (uint8_t *) text });
}


/* A caveat that is understood more often than not. */
static ron_str_t
a_caveat(fuzz_t *f)
{
    static const char  *some[] = {
        "svc = wallet", "svc = wallet ledger", "act = read", "act = transfer",
        "act = transfer hold read", "account = alice", "account = al*",
        "account = *", "account = alice bob", "asset = ron", "asset = roc",
        "asset = ron roc", "max_amount = 10", "max_amount = 1000",
        "max_daily = 5", "before = 1800000000", "before = 1500000000",
        "after = 1500000000", "after = 1800000000", "tenant = a",
        "tenant = b", "ip = 10.0.0.0/8", "ip = 10.1.0.0/16",
        "ip = 2001:db8::/32", "ip = 10.1.2.3", "nonsense = 1",
    };

    uint8_t  how;

    how = fuzz_u8(f);

    return how < 192 ? ron_cstr(some[how % ron_array_n(some)])
                     : fuzz_bytes(f, 1 + how % 64);
}


/* What one allows that has more caveats, the other allowed. */
static void
not_wider(const ron_cap_t *less, const ron_cap_t *more)
{
    static const char  *names[] = {
        "alice", "al", "alba", "bob", "", "a/b", "ron", "roc", "a", "b",
    };
    static const uint8_t  addrs[][16] = {
        { 10, 0, 0, 1 }, { 10, 1, 2, 3 }, { 10, 1, 255, 255 }, { 192, 0, 2, 1 },
        { 0x20, 0x01, 0x0d, 0xb8, 1 },
    };

    ron_str_t  s, addr;

    for (unsigned i = 0; i < 32; i++) {
        for (unsigned k = 0; k < 8; k++) {
            RON_ASSERT(!ron_cap_allows_act(less, i, 1u << k)
                       || ron_cap_allows_act(more, i, 1u << k));
        }
    }

    for (size_t i = 0; i < ron_array_n(names); i++) {
        s = ron_cstr(names[i]);
        RON_ASSERT(!ron_cap_allows_account(less, s)
                   || ron_cap_allows_account(more, s));
        RON_ASSERT(!ron_cap_allows_asset(less, s)
                   || ron_cap_allows_asset(more, s));
        RON_ASSERT(!ron_cap_allows_tenant(less, s)
                   || ron_cap_allows_tenant(more, s));
        RON_ASSERT(!ron_cap_allows_word(less, 1, s)
                   || ron_cap_allows_word(more, 1, s));
    }

    for (size_t i = 0; i < ron_array_n(addrs); i++) {
        addr = (ron_str_t) { i < 4 ? 4 : 16, addrs[i] };
        RON_ASSERT(!ron_cap_allows_ip(less, addr)
                   || ron_cap_allows_ip(more, addr));
    }

    for (unsigned i = 0; i < 128; i++) {
        RON_ASSERT(!ron_cap_allows_amount(less, (ron_u128_t) 1 << i)
                   || ron_cap_allows_amount(more, (ron_u128_t) 1 << i));
    }

    RON_ASSERT(!ron_cap_allows_time(less, NOW_MS)
               || ron_cap_allows_time(more, NOW_MS));
    RON_ASSERT(less->max_daily <= more->max_daily);
}


static void
changed(fuzz_t *f, const ron_buf_t *token)
{
    char             text[RON_CAP_TEXT_MAX];
    size_t           at;
    ron_cap_error_t  err;

    static ron_cap_t  cap;

    static const char  letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm"
                                   "nopqrstuvwxyz0123456789-_";

    memcpy(text, token->data, token->len);
    at = fuzz_below(f, (uint32_t) token->len);
    text[at] = letters[fuzz_u8(f) % 64];

    if (text[at] != (char) token->data[at]) {
        RON_ASSERT(ron_cap_verify(&ring, (ron_str_t) { token->len,
                                                       (uint8_t *) text },
                                  NOW_MS, &cap, &err) != RON_OK);
    }

    RON_ASSERT(ron_cap_verify(&ring, (ron_str_t) { at, token->data }, NOW_MS,
                              &cap, &err) != RON_OK);
}


static void
fuzz_minted(fuzz_t *f)
{
    bool             understood;
    size_t           n;
    ron_buf_t        token, weaker;
    ron_str_t        caveats[8], id;
    ron_status_t     status;
    ron_cap_error_t  err;

    static ron_cap_t  cap, less, full;

    ron_buf_init(&token, 0);
    ron_buf_init(&weaker, 0);
    n = fuzz_u8(f) % 6;
    understood = true;

    for (size_t i = 0; i < 8; i++) {
        caveats[i] = a_caveat(f);
        understood = understood
                     && (i >= n || ron_cap_caveat_check(caveats[i]) == RON_OK);
    }

    id = (fuzz_u8(f) & 7) ? ron_str("cap-1") : ron_str("gone");
    status = ron_cap_mint(&ring.keys[fuzz_u8(f) & 1], id, ron_null_str,
                          caveats, n, &token);

    if (status != RON_OK) {
        RON_ASSERT(token.len == 0);
        goto done;
    }

    status = ron_cap_verify(&ring, ron_buf_str(&token), NOW_MS, &cap, &err);

    if (status == RON_OK) {
        RON_ASSERT(understood && id.len == 5);
        really_minted(ron_buf_str(&token));
        ron_cap_init(&full);
        not_wider(&cap, &full);
        changed(f, &token);

    } else {
        RON_ASSERT(!understood || id.len == 4 || err.why == RON_CAP_EXPIRED
                   || err.why == RON_CAP_NOT_YET);
    }

    if (ron_cap_attenuate(ron_buf_str(&token), caveats + n, 2, &weaker)
        == RON_OK
        && ron_cap_verify(&ring, ron_buf_str(&weaker), NOW_MS, &less, &err)
           == RON_OK)
    {
        RON_ASSERT(status == RON_OK);
        really_minted(ron_buf_str(&weaker));
        not_wider(&less, &cap);
    }

done:

    ron_buf_free(&token);
    ron_buf_free(&weaker);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t   f = { data, data + len };
    uint8_t  what;

    if (ring.keys_n == 0) {
        setup();
    }

    what = fuzz_u8(&f);

    switch (what % 4) {
    case 0:
        fuzz_token(fuzz_rest(&f));
        break;
    case 1:
        fuzz_bytes_of_token(fuzz_rest(&f));
        break;
    default:
        fuzz_minted(&f);
    }

    return 0;
}
