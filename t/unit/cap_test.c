
/*
 * Capabilities: the keyring, the token, and what caveats allow.  The vectors
 * with a fixed text were minted by the npm package "macaroon".
 */

#include "ron_cap.h"
#include "ron_codec.h"
#include "ron_test.h"


#define TEXT(s)  { sizeof(s) - 1, (const uint8_t *) s }

#define KEY_A    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define KEY_B    "//////////////////////////////////////////8="

#define NOW_MS   UINT64_C(1767323045678)
#define NOW_S    "1767323045"
#define NEXT_S   "1767323046"


static ron_keyring_t    ring;
static ron_cap_t        cap;
static ron_cap_error_t  err;


/* A token of key `dev` with some caveats, in a buffer that is used again. */
static ron_str_t
mint(const char *location, const ron_str_t *caveats, size_t n)
{
    static ron_buf_t  b;

    ron_buf_free(&b);
    ron_buf_init(&b, 0);

    if (ron_cap_mint(&ring.keys[0], ron_str("cap-1"), ron_cstr(location),
                     caveats, n, &b) != RON_OK)
    {
        fail("mint");
    }

    return ron_buf_str(&b);
}


static ron_status_t
verify(ron_str_t token)
{
    memset(&cap, 0xff, sizeof(cap));
    err.why = RON_CAP_REFUSAL_COUNT;

    return ron_cap_verify(&ring, token, NOW_MS, &cap, &err);
}


static bool
is_zeroed(const ron_cap_t *c)
{
    size_t          i;
    const uint8_t  *p;

    p = (const uint8_t *) c;

    for (i = 0; i < sizeof(ron_cap_t); i++) {
        if (p[i] != 0) {
            return false;
        }
    }

    return true;
}


static void
test_keyring(void)
{
    size_t               i;
    ron_buf_t            b;
    ron_keyring_t        r;
    ron_keyring_error_t  kerr;

    static const struct {
        const char  *text;
        size_t       line;
        const char  *reason;
    } bad[] = {
        { "", 0, "no key" },
        { "\n\n# only a comment\n", 0, "no key" },
        { "dev\n", 1, "key is not the base64 of 32 bytes" },
        { "dev \n", 1, "key is not the base64 of 32 bytes" },
        { "dev AAAA\n", 1, "key is not the base64 of 32 bytes" },
        { "\n#\ndev " KEY_A "=\n", 3, "key is not the base64 of 32 bytes" },
        { "dev AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=", 1,
          "key is not the base64 of 32 bytes" },
        { "dev AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", 1,
          "key is not the base64 of 32 bytes" },
        { "dev AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g", 1,
          "key is not the base64 of 32 bytes" },
        { "dev " KEY_A " x\n", 1, "key is not the base64 of 32 bytes" },
        { "dev " KEY_A " # x\n", 1, "key is not the base64 of 32 bytes" },
        { "d:v " KEY_A, 1, "kid is not 1 to 64 of A-Z a-z 0-9 _ . -" },
        { "a234567890123456789012345678901234567890123456789012345678901234x "
          KEY_A, 1, "kid is not 1 to 64 of A-Z a-z 0-9 _ . -" },
        { "\xc3\xa9 " KEY_A, 1, "kid is not 1 to 64 of A-Z a-z 0-9 _ . -" },
        { "dev " KEY_A "\nnew " KEY_B "\ndev " KEY_B "\n", 3,
          "duplicate kid" },
    };

    is_status(ron_keyring_parse(ron_str(
        "# keys\r\n\n  dev   " KEY_A "  \r\n\t\n"
        "A.b_c-9\t" KEY_B), &r, &kerr), RON_OK, "two keys");
    is_u64(r.keys_n, 2, "are two");
    is_str(r.keys[0].kid, "dev", "the first");
    is_str(r.keys[1].kid, "A.b_c-9", "the second");
    ok(r.keys[0].secret[0] == 0 && r.keys[0].secret[31] == 31, "its secret");
    ok(ron_keyring_find(&r, ron_str("A.b_c-9")) == &r.keys[1], "found");
    ok(ron_keyring_find(&r, ron_str("de")) == NULL
       && ron_keyring_find(&r, ron_str("devx")) == NULL
       && ron_keyring_find(&r, ron_null_str) == NULL, "not found");

    ron_keyring_wipe(&r);
    ok(r.keys_n == 0 && r.keys[0].secret[31] == 0 && r.keys[0].root[0] == 0,
       "wiped");

    for (i = 0; i < ron_array_n(bad); i++) {
        memset(&r, 0xff, sizeof(r));
        is_status(ron_keyring_parse(ron_cstr(bad[i].text), &r, &kerr),
                  RON_EINVAL, "keys row %zu refused", i);
        is_u64(kerr.line, bad[i].line, "its line");
        is_str(kerr.reason, bad[i].reason, "its reason");
        ok(r.keys_n == 0 && r.keys[0].secret[31] == 0, "nothing is left");
    }

    ron_buf_init(&b, 0);

    for (i = 0; i < 16; i++) {
        ron_buf_printf(&b, "k%zu %s\n", i, KEY_A);
    }

    is_status(ron_keyring_parse(ron_buf_str(&b), &r, &kerr), RON_OK,
              "16 keys");
    ron_buf_put_cstr(&b, "k16 " KEY_A);
    is_status(ron_keyring_parse(ron_buf_str(&b), &r, &kerr), RON_EINVAL,
              "17 keys");
    is_u64(kerr.line, 17, "the 17th");

    ron_buf_free(&b);
}


static void
test_revoked(void)
{
    size_t               i, wrong;
    char                 id[16];
    ron_buf_t            b;
    ron_revoked_t        list;
    ron_keyring_error_t  kerr;

    is_status(ron_revoked_parse(ron_str("# none\n\n"), &list, &kerr), RON_OK,
              "no id");
    ok(!ron_revoked_has(&list, ron_str("cap-1")), "not in it");
    ok(!ron_revoked_has(NULL, ron_str("cap-1")), "and not in no list");
    ron_revoked_free(&list);

    is_status(ron_revoked_parse(ron_str("ok\n\ncap 1\n"), &list, &kerr),
              RON_EINVAL, "a blank in an id");
    is_u64(kerr.line, 3, "its line");
    ok(list.ids == NULL && list.text == NULL, "nothing is left");

    ron_buf_init(&b, 0);

    for (i = 0; i < 1000; i++) {
        ron_buf_printf(&b, "id-%zu\r\n", i * 7919 % 1000 * 2);
    }

    ron_buf_put_cstr(&b, "id-0\nlast");

    is_status(ron_revoked_parse(ron_buf_str(&b), &list, &kerr), RON_OK,
              "1002 ids");
    is_u64(list.ids_n, 1002, "all there");
    ron_buf_free(&b);

    wrong = 0;

    for (i = 0; i < 2000; i++) {
        (void) snprintf(id, sizeof(id), "id-%zu", i);
        wrong += ron_revoked_has(&list, ron_cstr(id)) != (i % 2 == 0);
    }

    is_u64(wrong, 0, "each even one is in it");
    ok(ron_revoked_has(&list, ron_str("last")), "the last one");
    ok(!ron_revoked_has(&list, ron_str("las")), "not a part of it");
    ron_revoked_free(&list);
}


static void
test_vectors(void)
{
    ron_str_t       token;
    ron_macaroon_t  m;

    static const ron_str_t  caveats[] = {
        TEXT("svc = wallet"), TEXT("act = read transfer"),
        TEXT("account = acc_a acc_b*")
    };

    static const ron_str_t  plain =
        TEXT("AgIJZGV2OmNhcC0xAAAGIL4rpNdYFZIOS4bPAfQoTbs4nUb2BZEwIR91g-fTcX7"
             "T");
    static const ron_str_t  full =
        TEXT("AgEDcm9uAglkZXY6Y2FwLTEAAgxzdmMgPSB3YWxsZXQAAhNhY3QgPSByZWFkIHR"
             "yYW5zZmVyAAIWYWNjb3VudCA9IGFjY19hIGFjY19iKgAABiD0bstB0a8dqnQ6WG"
             "4bScRQlckuaiLpLp8YNk2-FWdiAg");
    static const ron_str_t  third =
        TEXT("AgIJZGV2OmNhcC0xAAEFdGhlcmUCAmlkBEi1KqYumCue2aCkDWqYtYQVlg_bNkJ"
             "v7M21-OzXyhyuZcie7C3P8_hzlNeRISa9a90zRLfDqRpt5Btj3WeaqZei7nwm50"
             "Q-pw0AAAYgSfawBBG9B46BlXoW_Q9GlDOMgqiOJb0x_g31pYsr-p8");

    token = mint("", NULL, 0);
    ok(ron_str_eq(token, plain), "mint without caveats");

    token = mint("ron", caveats, 3);
    ok(ron_str_eq(token, full), "mint with three");

    is_status(verify(plain), RON_OK, "the first verifies");
    is_status(verify(full), RON_OK, "the second verifies");
    is_u64(err.why, RON_CAP_ACCEPTED, "without a refusal");
    is_str(cap.kid, "dev", "kid");
    is_str(cap.id, "cap-1", "id");
    is_u64(cap.svcs, RON_CAP_SVC_WALLET, "services");
    is_u64(cap.acts, RON_CAP_ACT_READ | RON_CAP_ACT_TRANSFER, "acts");

    is_status(ron_cap_parse(full, &m, &err), RON_OK, "parse");
    ok(ron_str_eq(m.location, ron_str("ron")), "location");
    ok(ron_str_eq(m.identifier, ron_str("dev:cap-1")), "identifier");
    is_u64(m.caveats_n, 3, "caveats");
    ok(ron_str_eq(m.caveats[2], caveats[2]), "the last one");

    is_status(verify(third), RON_EINVAL, "a third-party caveat");
    is_u64(err.why, RON_CAP_THIRD_PARTY, "is refused as that");
    is_u64(err.status, 401, "401");
    ok(is_zeroed(&cap), "and zeroed");
}


static void
put_field(ron_buf_t *b, unsigned type, const char *s, size_t len)
{
    ron_buf_put_varint(b, type);
    ron_buf_put_varint(b, len);
    ron_buf_put(b, s, len);
}


/* Bytes that are no token, whatever the signature says. */
static void
test_malformed(void)
{
    char        text[8192], long_id[200];
    size_t      i, n;
    ron_buf_t   b;

    static const char  sig[33] = "";

    static const struct {
        const char  *what;
        ron_str_t    bytes;     /* without the signature field */
        bool         signature;
    } rows[] = {
        { "nothing", TEXT(""), false },
        { "version 1", TEXT("\x01\x02\x05" "dev:a\0\0"), true },
        { "version 3", TEXT("\x03\x02\x05" "dev:a\0\0"), true },
        { "JSON", TEXT("{\"v\":2}"), false },
        { "version 1 packets", TEXT("0011location ron\n"), false },
        { "no identifier", TEXT("\x02\0\0"), true },
        { "location only", TEXT("\x02\x01\x03ron\0\0"), true },
        { "two locations", TEXT("\x02\x01\x01r\x01\x01r\x02\x05" "dev:a\0\0"),
          true },
        { "location last", TEXT("\x02\x02\x05" "dev:a\x01\x01r\0\0"), true },
        { "two identifiers", TEXT("\x02\x02\x05" "dev:a\x02\x05" "dev:a\0\0"),
          true },
        { "empty identifier", TEXT("\x02\x02\0\0\0"), true },
        { "no colon", TEXT("\x02\x02\x04" "deva\0\0"), true },
        { "no kid", TEXT("\x02\x02\x02:a\0\0"), true },
        { "no id", TEXT("\x02\x02\x04" "dev:\0\0"), true },
        { "blank in the id", TEXT("\x02\x02\x06" "dev:a \0\0"), true },
        { "NUL in the id", TEXT("\x02\x02\x06" "dev:a\0\0\0"), true },
        { "id not ASCII", TEXT("\x02\x02\x06" "dev:\xc3\xa9\0\0"), true },
        { "bad kid", TEXT("\x02\x02\x05" "d/v:a\0\0"), true },
        { "no end of header", TEXT("\x02\x02\x05" "dev:a"), true },
        { "no end of caveats", TEXT("\x02\x02\x05" "dev:a\0"), true },
        { "no signature", TEXT("\x02\x02\x05" "dev:a\0\0"), false },
        { "caveat without end", TEXT("\x02\x02\x05" "dev:a\0\x02\x01x\0"),
          true },
        { "caveat of a signature", TEXT("\x02\x02\x05" "dev:a\0\x06\x01x\0\0"),
          true },
        { "two in one caveat",
          TEXT("\x02\x02\x05" "dev:a\0\x02\x01x\x02\x01y\0\0"), true },
        { "unknown field", TEXT("\x02\x02\x05" "dev:a\x07\x01x\0\0"), true },
        { "length too large", TEXT("\x02\x02\x7f" "dev:a\0\0"), true },
        { "length of 2^63",
          TEXT("\x02\x02\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01" "dev:a\0\0"),
          true },
        { "length in two bytes", TEXT("\x02\x02\x85\0" "dev:a\0\0"), true },
        { "type in two bytes", TEXT("\x02\x82\0\x05" "dev:a\0\0"), true },
        { "short signature",
          TEXT("\x02\x02\x05" "dev:a\0\0\x06\x03" "abc"), false },
    };

    ron_buf_init(&b, 0);

    for (i = 0; i < ron_array_n(rows); i++) {
        ron_buf_reset(&b);
        ron_buf_put_str(&b, rows[i].bytes);

        if (rows[i].signature) {
            put_field(&b, 6, sig, 32);
        }

        n = ron_base64url_encode(ron_buf_str(&b), text);
        is_status(verify((ron_str_t) { n, (uint8_t *) text }), RON_EINVAL,
                  "%s", rows[i].what);
        is_u64(err.why, RON_CAP_MALFORMED, "is malformed");
        is_u64(err.status, 401, "401");
        ok(is_zeroed(&cap), "zeroed");
    }

    /* the frame that all of those spoil, with a wrong signature only */

    ron_buf_reset(&b);
    ron_buf_put_str(&b, ron_str("\x02\x02\x05" "dev:a\0\x02\x01x\0\0"));
    put_field(&b, 6, sig, 32);
    n = ron_base64url_encode(ron_buf_str(&b), text);
    (void) verify((ron_str_t) { n, (uint8_t *) text });
    is_u64(err.why, RON_CAP_SIGNATURE, "a good frame has a bad signature");

    ron_buf_put_u8(&b, 0);
    n = ron_base64url_encode(ron_buf_str(&b), text);
    (void) verify((ron_str_t) { n, (uint8_t *) text });
    is_u64(err.why, RON_CAP_MALFORMED, "a byte more is malformed");

    ron_buf_reset(&b);
    ron_buf_put_str(&b, ron_str("\x02\x02\x05" "dev:a\0\0"));
    put_field(&b, 6, sig, 33);
    n = ron_base64url_encode(ron_buf_str(&b), text);
    (void) verify((ron_str_t) { n, (uint8_t *) text });
    is_u64(err.why, RON_CAP_MALFORMED, "33 bytes of signature too");

    ron_buf_reset(&b);
    ron_buf_put_str(&b, ron_str("\x02\x02\x05" "dev:a\0"));

    for (i = 0; i < RON_CAP_CAVEATS_MAX; i++) {
        put_field(&b, 2, "x", 1);
        ron_buf_put_u8(&b, 0);
    }

    i = b.len;
    ron_buf_put_u8(&b, 0);
    put_field(&b, 6, sig, 32);
    n = ron_base64url_encode(ron_buf_str(&b), text);
    (void) verify((ron_str_t) { n, (uint8_t *) text });
    is_u64(err.why, RON_CAP_SIGNATURE, "32 caveats");

    b.len = i;
    put_field(&b, 2, "x", 1);
    ron_buf_put_u8(&b, 0);
    ron_buf_put_u8(&b, 0);
    put_field(&b, 6, sig, 32);
    n = ron_base64url_encode(ron_buf_str(&b), text);
    (void) verify((ron_str_t) { n, (uint8_t *) text });
    is_u64(err.why, RON_CAP_MALFORMED, "33 caveats");

    /* an id of 128 and of 129 */

    memset(long_id, 'i', sizeof(long_id));
    memcpy(long_id, "dev:", 4);

    for (i = 0; i < 2; i++) {
        ron_buf_reset(&b);
        ron_buf_put_u8(&b, 2);
        put_field(&b, 2, long_id, 132 + i);
        ron_buf_put(&b, "\0\0", 2);
        put_field(&b, 6, sig, 32);
        n = ron_base64url_encode(ron_buf_str(&b), text);
        (void) verify((ron_str_t) { n, (uint8_t *) text });
        is_u64(err.why, i ? RON_CAP_MALFORMED : RON_CAP_SIGNATURE,
               "an id of %zu", 128 + i);
    }

    memset(text, 'A', sizeof(text));
    (void) verify((ron_str_t) { 4100, (uint8_t *) text });
    is_u64(err.why, RON_CAP_MALFORMED, "more than 4096 characters");

    ron_buf_free(&b);
}


static void
test_damage(void)
{
    char        text[512];
    size_t      i, bit, n, taken, padded;
    uint8_t     bytes[512], copy[512];
    ron_str_t   token, t;

    static const ron_str_t  caveats[] = {
        TEXT("svc = wallet"), TEXT("before = " NEXT_S)
    };

    token = mint("", caveats, 2);
    is_status(verify(token), RON_OK, "whole");

    taken = 0;

    for (i = 0; i < token.len; i++) {
        t = token;
        t.len = i;
        taken += verify(t) == RON_OK || !is_zeroed(&cap);
    }

    is_u64(taken, 0, "no one of %zu truncated texts verifies", token.len);

    (void) ron_base64url_decode(token, bytes, sizeof(bytes), &n);
    t.data = (const uint8_t *) text;

    for (i = 0; i < n; i++) {
        t.len = ron_base64url_encode((ron_str_t) { i, bytes }, text);
        taken += verify(t) == RON_OK || !is_zeroed(&cap);
    }

    is_u64(taken, 0, "no one of %zu truncated byte strings", n);

    for (i = 0; i < n; i++) {
        for (bit = 0; bit < 8; bit++) {
            memcpy(copy, bytes, n);
            copy[i] ^= (uint8_t) (1u << bit);
            t.len = ron_base64url_encode((ron_str_t) { n, copy }, text);
            taken += verify(t) == RON_OK || !is_zeroed(&cap);
        }
    }

    is_u64(taken, 0, "no one of %zu with one bit turned", n * 8);

    for (i = 0; i < token.len; i++) {
        for (bit = 0; bit < 8; bit++) {
            memcpy(text, token.data, token.len);
            text[i] = (char) (text[i] ^ (char) (1u << bit));
            t.len = token.len;
            taken += verify(t) == RON_OK || !is_zeroed(&cap);
        }
    }

    is_u64(taken, 0, "no one of %zu texts with one bit turned", token.len * 8);

    /* the location is a hint: only its own bytes may change */

    token = mint("here", caveats, 2);
    (void) ron_base64url_decode(token, bytes, sizeof(bytes), &n);

    for (i = 0; i < n; i++) {
        for (bit = 0; bit < 8; bit++) {
            memcpy(copy, bytes, n);
            copy[i] ^= (uint8_t) (1u << bit);
            t.len = ron_base64url_encode((ron_str_t) { n, copy }, text);
            taken += (verify(t) == RON_OK) != (i >= 3 && i < 7);
        }
    }

    is_u64(taken, 0, "and in one with a location only there");

    /* padding, right and wrong, for all lengths of a token */

    padded = 0;

    for (i = 0; i < 3; i++) {
        token = mint(&"abc"[i], caveats, 2);
        memcpy(text, token.data, token.len);
        memset(text + token.len, '=', 8);
        n = (4 - token.len % 4) % 4;

        for (t.len = token.len; t.len < token.len + 5; t.len++) {
            taken += (verify(t) == RON_OK)
                     != (t.len == token.len || t.len == token.len + n);
        }

        padded += n;
    }

    is_u64(taken, 0, "padded to a multiple of four, or not at all");
    is_u64(padded, 3, "with none, one and two");

    taken += verify(ron_str("")) == RON_OK;
    taken += verify(ron_null_str) == RON_OK;
    taken += verify(ron_str("====")) == RON_OK;
    taken += verify(ron_str("dev")) == RON_OK;
    is_u64(taken, 0, "and some that are nothing");
}


static void
test_refusals(void)
{
    size_t         i;
    ron_buf_t      b;
    ron_key_t      other;
    ron_str_t      token;
    ron_revoked_t  list;
    uint8_t        secret[32];

    ron_keyring_error_t  kerr;

    static const ron_str_t  time_rows[][2] = {
        { TEXT("before = " NEXT_S), TEXT("after = " NOW_S) },
        { TEXT("before = " NOW_S), TEXT("after = 0") },
        { TEXT("before = " NEXT_S), TEXT("after = " NEXT_S) },
        { TEXT("before = " NEXT_S), TEXT("before = " NOW_S) },
        { TEXT("after = 0"), TEXT("after = " NEXT_S) },
        { TEXT("before = 18446744073709551615"), TEXT("after = 0") },
        { TEXT("before = " NOW_S), TEXT("what = ever") },
        { TEXT("after = " NEXT_S), TEXT("what = ever") },
    };

    static const ron_cap_refusal_t  time_want[] = {
        RON_CAP_ACCEPTED, RON_CAP_EXPIRED, RON_CAP_NOT_YET, RON_CAP_EXPIRED,
        RON_CAP_NOT_YET, RON_CAP_ACCEPTED, RON_CAP_EXPIRED, RON_CAP_NOT_YET
    };

    for (i = 0; i < ron_array_n(time_rows); i++) {
        (void) verify(mint("", time_rows[i], 2));
        is_u64(err.why, time_want[i], "time row %zu: %s", i, err.reason);
        is_u64(err.status, time_want[i] == RON_CAP_ACCEPTED ? 200 : 401,
               "its status");
    }

    /* a key that nobody knows, and a known kid with another secret */

    ron_buf_init(&b, 0);
    memset(secret, 7, sizeof(secret));

    is_status(ron_key_init(&other, ron_str("other"),
                           (ron_str_t) { 32, secret }), RON_OK, "a key");
    is_status(ron_key_init(&other, ron_str("o:"), (ron_str_t) { 32, secret }),
              RON_EINVAL, "bad kid");
    is_status(ron_key_init(&other, ron_str("o"), (ron_str_t) { 31, secret }),
              RON_EINVAL, "bad length");
    (void) ron_key_init(&other, ron_str("other"), (ron_str_t) { 32, secret });
    (void) ron_cap_mint(&other, ron_str("x"), ron_null_str, NULL, 0, &b);
    is_status(verify(ron_buf_str(&b)), RON_EINVAL, "unknown kid");
    is_u64(err.why, RON_CAP_UNKNOWN_KID, "is that");
    is_u64(err.status, 401, "401");

    (void) ron_key_init(&other, ron_str("dev"), (ron_str_t) { 32, secret });
    ron_buf_reset(&b);
    (void) ron_cap_mint(&other, ron_str("x"), ron_null_str, NULL, 0, &b);
    is_status(verify(ron_buf_str(&b)), RON_EINVAL, "wrong secret");
    is_u64(err.why, RON_CAP_SIGNATURE, "is a wrong signature");

    /* two kids at once */

    ron_buf_reset(&b);
    (void) ron_cap_mint(&ring.keys[1], ron_str("y"), ron_null_str, NULL, 0,
                        &b);
    is_status(verify(ron_buf_str(&b)), RON_OK, "the other key of the ring");
    is_str(cap.kid, "new", "its kid");

    /* revoked */

    (void) ron_revoked_parse(ron_str("cap-0\ncap-1\n"), &list, &kerr);
    ring.revoked = &list;
    token = mint("", NULL, 0);
    is_status(verify(token), RON_EINVAL, "revoked");
    is_u64(err.why, RON_CAP_REVOKED, "is that");
    is_u64(err.status, 401, "401");
    is_status(verify(ron_buf_str(&b)), RON_OK, "another one is not");
    ring.revoked = NULL;
    is_status(verify(token), RON_OK, "without the list");
    ron_revoked_free(&list);

    /* an id with a colon */

    ron_buf_reset(&b);
    (void) ron_cap_mint(&ring.keys[0], ron_str("a:b"), ron_null_str, NULL, 0,
                        &b);
    is_status(verify(ron_buf_str(&b)), RON_OK, "colon in an id");
    is_str(cap.id, "a:b", "the id");
    ron_buf_free(&b);
}


/* Where another service has the key: all but the signature is judged. */

static void
test_read(void)
{
    uint8_t              secret[32];
    ron_buf_t            b;
    ron_key_t            other;
    ron_str_t            token;
    ron_revoked_t        list;
    ron_keyring_error_t  kerr;

    static const ron_str_t  good[] = { TEXT("svc = wallet"),
                                       TEXT("account = al*") };
    static const ron_str_t  late[] = { TEXT("before = " NOW_S) };
    static const ron_str_t  odd[] = { TEXT("what = ever") };

    ron_buf_init(&b, 0);
    memset(secret, 7, sizeof(secret));
    (void) ron_key_init(&other, ron_str("far"), (ron_str_t) { 32, secret });
    (void) ron_cap_mint(&other, ron_str("x"), ron_null_str, good, 2, &b);

    token = ron_buf_str(&b);

    is_status(verify(token), RON_EINVAL, "a key that is not here");
    is_status(ron_cap_read(NULL, token, NOW_MS, &cap, &err), RON_OK,
              "what its token would allow");
    is_str(cap.kid, "far", "its kid");
    ok(ron_cap_allows_account(&cap, ron_str("alice"))
       && !ron_cap_allows_account(&cap, ron_str("bob"))
       && !ron_cap_allows_act(&cap, RON_CAP_SVC_LEDGER, RON_CAP_ACT_READ),
       "and no more");

    (void) ron_revoked_parse(ron_str("x\n"), &list, &kerr);
    is_status(ron_cap_read(&list, token, NOW_MS, &cap, &err), RON_EINVAL,
              "revoked here");
    is_u64(err.why, RON_CAP_REVOKED, "is revoked");
    ok(is_zeroed(&cap), "and allows nothing");
    ron_revoked_free(&list);

    is_status(ron_cap_read(NULL, mint("", late, 1), NOW_MS, &cap, &err),
              RON_EINVAL, "too late");
    is_u64(err.why, RON_CAP_EXPIRED, "is expired");
    is_status(ron_cap_read(NULL, mint("", odd, 1), NOW_MS, &cap, &err),
              RON_EINVAL, "a caveat that nobody knows");
    is_u64(err.status, 403, "is forbidden");
    is_status(ron_cap_read(NULL, ron_str("x"), NOW_MS, &cap, &err),
              RON_EINVAL, "no token");

    ron_buf_free(&b);
}


static void
test_caveats(void)
{
    size_t     i;
    ron_str_t  c;

    static const ron_str_t  good[] = {
        TEXT("svc = wallet"), TEXT("svc = wallet ledger rewarder interop"),
        TEXT("svc = something"), TEXT("act = compute"),
        TEXT("account = *"), TEXT("account = acc_a* x"),
        TEXT("asset = ron roc"), TEXT("max_amount = 0"),
        TEXT("max_amount = 340282366920938463463374607431768211455"),
        TEXT("max_daily = 1"), TEXT("before = 9999999999"),
        TEXT("after = 0"), TEXT("tenant = t"), TEXT("ip = 10.0.0.0/8"),
        TEXT("ip = 10.1.2.3"), TEXT("ip = ::1"), TEXT("ip = 2001:db8::/32"),
        TEXT("ip = 0.0.0.0/0"), TEXT("ip = ::/0"), TEXT("ip = ::/128")
    };

    static const ron_str_t  bad[] = {
        TEXT("x"), TEXT(" "), TEXT("="), TEXT(" = "), TEXT("svc"),
        TEXT("svc="), TEXT("svc=wallet"), TEXT("svc = "), TEXT("svc =wallet"),
        TEXT("svc= wallet"), TEXT("svc  = wallet"), TEXT("svc =  wallet"),
        TEXT("svc = wallet "), TEXT(" svc = wallet"),
        TEXT("svc = wallet  ledger"), TEXT("svc = wallet\tledger"),
        TEXT("svc = wallet\n"), TEXT("svc = wallet\0"), TEXT("Svc = wallet"),
        TEXT("service = wallet"), TEXT("svc == wallet"), TEXT("act = "),
        TEXT("act =  "), TEXT("act = r\xc3\xa9" "ad"), TEXT("account = "),
        TEXT("account = a*b"), TEXT("account = **"), TEXT("account = a "),
        TEXT("asset = "), TEXT("max_amount = "), TEXT("max_amount = -1"),
        TEXT("max_amount = 01"), TEXT("max_amount = 1.0"),
        TEXT("max_amount = 1e3"), TEXT("max_amount = 1 2"),
        TEXT("max_amount = 340282366920938463463374607431768211456"),
        TEXT("max_daily = x"), TEXT("before = "), TEXT("before = now"),
        TEXT("before = -1"), TEXT("before = 18446744073709551616"),
        TEXT("before = 2026-01-02T03:04:05Z"), TEXT("after = 1.5"),
        TEXT("tenant = "), TEXT("tenant = a b"), TEXT("ip = "),
        TEXT("ip = 10.0.0.0/33"), TEXT("ip = 10.0.0.0/"),
        TEXT("ip = 10.0.0/8"), TEXT("ip = 10.0.0.0/08"),
        TEXT("ip = 10.0.0.0/-1"), TEXT("ip = 010.0.0.1"),
        TEXT("ip = 10.0.0.1 10.0.0.2"), TEXT("ip = localhost"),
        TEXT("ip = ::/129"), TEXT("ip = :::"), TEXT("ip = /8"),
        TEXT("ip = 10.0.0.1\0"), TEXT("ip = 1::2::3"),
        TEXT("time < 2030"), TEXT("path = /x"), TEXT("acta = read"),
        TEXT("ac = read"), TEXT("ip = 0000:0000:0000:0000:0000:0000:0000:0000:"
                                "0000:0000:0000:0000")
    };

    for (i = 0; i < ron_array_n(good); i++) {
        is_status(ron_cap_caveat_check(good[i]), RON_OK, "%s",
                  (const char *) good[i].data);
        is_status(verify(mint("", &good[i], 1)), RON_OK, "in a token");
    }

    for (i = 0; i < ron_array_n(bad); i++) {
        c = bad[i];
        is_status(ron_cap_caveat_check(c), RON_EINVAL, "not \"%s\"",
                  memchr(c.data, '\n', c.len) ? "(newline)"
                                              : (const char *) c.data);
        is_status(verify(mint("", &c, 1)), RON_EINVAL, "nor in a token");
        is_u64(err.why, RON_CAP_CAVEAT, "a caveat");
        is_u64(err.status, 403, "403");
        ok(is_zeroed(&cap), "zeroed");
    }

    is_status(ron_cap_caveat_check(ron_null_str), RON_EINVAL, "empty");
}


static const ron_cap_t *
with(const char *a, const char *b, const char *c)
{
    size_t     n;
    ron_str_t  caveats[3];

    n = 0;

    if (a != NULL) {
        caveats[n++] = ron_cstr(a);
    }

    if (b != NULL) {
        caveats[n++] = ron_cstr(b);
    }

    if (c != NULL) {
        caveats[n++] = ron_cstr(c);
    }

    if (verify(mint("", caveats, n)) != RON_OK) {
        fail("verify %s: %s", a ? a : "", err.reason);
    }

    return &cap;
}


static void
test_acts(void)
{
    const ron_cap_t  *c;

    c = with(NULL, NULL, NULL);
    ok(ron_cap_allows_act(c, RON_CAP_SVC_LEDGER, RON_CAP_ACT_ADMIN),
       "no caveat: every act");
    ok(ron_cap_allows_word(c, RON_CAP_SVC_EDGE, ron_str("purge")),
       "and every word");
    ok(ron_cap_allows_account(c, ron_str("acc_x"))
       && ron_cap_allows_asset(c, ron_str("ron"))
       && ron_cap_allows_amount(c, ~(ron_u128_t) 0)
       && ron_cap_allows_tenant(c, ron_str("t"))
       && ron_cap_allows_ip(c, ron_null_str)
       && ron_cap_allows_time(c, UINT64_MAX / 2), "and all else");
    ok(!c->has_max_amount && !c->has_max_daily, "no bounds");

    c = with("svc = wallet ledger", "act = read transfer issue", NULL);
    ok(ron_cap_allows_act(c, RON_CAP_SVC_WALLET, RON_CAP_ACT_READ), "read");
    ok(ron_cap_allows_act(c, RON_CAP_SVC_LEDGER,
                          RON_CAP_ACT_READ | RON_CAP_ACT_ISSUE), "two acts");
    ok(!ron_cap_allows_act(c, RON_CAP_SVC_LEDGER,
                           RON_CAP_ACT_READ | RON_CAP_ACT_BURN), "one not");
    ok(!ron_cap_allows_act(c, RON_CAP_SVC_EDGE, RON_CAP_ACT_READ),
       "other service");
    ok(!ron_cap_allows_word(c, RON_CAP_SVC_WALLET, ron_str("purge")),
       "other word");

    c = with("act = read transfer issue", "act = transfer burn issue",
             "act = burn transfer");
    is_u64(c->acts, RON_CAP_ACT_TRANSFER, "three lists: what is in all");
    ok(ron_cap_allows_word(c, 0, ron_str("transfer"))
       && !ron_cap_allows_word(c, 0, ron_str("burn")), "by word too");

    c = with("act = compute settle", NULL, NULL);
    is_u64(c->acts, 0, "words of a service are no acts of ours");
    ok(ron_cap_allows_word(c, RON_CAP_SVC_REWARDER, ron_str("compute")),
       "but words");
    ok(!ron_cap_allows_word(c, RON_CAP_SVC_REWARDER, ron_str("comput")),
       "whole ones");

    c = with("svc = elsewhere", NULL, NULL);
    ok(!ron_cap_allows_act(c, RON_CAP_SVC_WALLET, RON_CAP_ACT_READ),
       "for somebody else");

    c = with("svc = wallet", "svc = ledger", NULL);
    is_u64(c->svcs, 0, "nothing is both");
}


static void
test_accounts(void)
{
    const ron_cap_t  *c;

    c = with("account = acc_a acc_b*", NULL, NULL);
    ok(ron_cap_allows_account(c, ron_str("acc_a")), "exact");
    ok(!ron_cap_allows_account(c, ron_str("acc_a1")), "and no more");
    ok(!ron_cap_allows_account(c, ron_str("acc_")), "and no less");
    ok(ron_cap_allows_account(c, ron_str("acc_b")), "prefix");
    ok(ron_cap_allows_account(c, ron_str("acc_bob")), "and more");
    ok(!ron_cap_allows_account(c, ron_str("acc_")), "not less");
    ok(!ron_cap_allows_account(c, ron_str("xacc_b")), "not inside");
    ok(!ron_cap_allows_account(c, ron_null_str), "not the empty one");
    ok(!ron_cap_allows_account(c, ron_str("acc_a acc_b")), "not the list");

    c = with("account = acc_*", "account = acc_b* other", NULL);
    ok(ron_cap_allows_account(c, ron_str("acc_bob")), "in both");
    ok(!ron_cap_allows_account(c, ron_str("acc_a")), "in the first");
    ok(!ron_cap_allows_account(c, ron_str("other")), "in the second");

    c = with("account = *", NULL, NULL);
    ok(ron_cap_allows_account(c, ron_str("any")), "all");

    c = with("asset = ron roc", "asset = roc", NULL);
    ok(ron_cap_allows_asset(c, ron_str("roc")), "asset");
    ok(!ron_cap_allows_asset(c, ron_str("ron")), "only in one");
    ok(!ron_cap_allows_asset(c, ron_str("ro")), "no part");

    c = with("asset = ro*", NULL, NULL);
    ok(!ron_cap_allows_asset(c, ron_str("ron")), "an asset is no pattern");

    c = with("max_amount = 100", "max_amount = 50", "max_daily = 70");
    ok(ron_cap_allows_amount(c, 50) && !ron_cap_allows_amount(c, 51),
       "the smaller amount");
    ok(c->has_max_daily && c->max_daily == 70, "daily");
    c = with("max_amount = 50", "max_amount = 100", "max_daily = 0");
    ok(!ron_cap_allows_amount(c, 51) && c->has_max_daily && c->max_daily == 0,
       "in any order");

    c = with("tenant = a", "tenant = a", NULL);
    ok(ron_cap_allows_tenant(c, ron_str("a"))
       && !ron_cap_allows_tenant(c, ron_str("b"))
       && !ron_cap_allows_tenant(c, ron_null_str), "tenant");
    c = with("tenant = a", "tenant = b", NULL);
    ok(!ron_cap_allows_tenant(c, ron_str("a"))
       && !ron_cap_allows_tenant(c, ron_str("b")), "two tenants");

    c = with("after = 100", "after = 50", "before = 2000000000");
    ok(!ron_cap_allows_time(c, 99999) && ron_cap_allows_time(c, 100000)
       && ron_cap_allows_time(c, UINT64_C(1999999999999))
       && !ron_cap_allows_time(c, UINT64_C(2000000000000)), "time later");
}


static void
test_ip(void)
{
    size_t  i;

    static const struct {
        const char  *caveat;
        ron_str_t    addr;
        bool         want;
    } rows[] = {
        { "ip = 10.1.2.3", TEXT("\x0a\x01\x02\x03"), true },
        { "ip = 10.1.2.3", TEXT("\x0a\x01\x02\x04"), false },
        { "ip = 10.0.0.0/8", TEXT("\x0a\xff\xff\xff"), true },
        { "ip = 10.0.0.0/8", TEXT("\x0b\0\0\0"), false },
        { "ip = 10.1.2.3/8", TEXT("\x0a\xff\0\0"), true },
        { "ip = 192.168.16.0/20", TEXT("\xc0\xa8\x1f\xff"), true },
        { "ip = 192.168.16.0/20", TEXT("\xc0\xa8\x20\0"), false },
        { "ip = 128.0.0.0/1", TEXT("\xff\0\0\0"), true },
        { "ip = 128.0.0.0/1", TEXT("\x7f\0\0\0"), false },
        { "ip = 1.2.3.4/31", TEXT("\x01\x02\x03\x05"), true },
        { "ip = 1.2.3.4/31", TEXT("\x01\x02\x03\x06"), false },
        { "ip = 0.0.0.0/0", TEXT("\x01\x02\x03\x04"), true },
        { "ip = 0.0.0.0/0", TEXT(""), false },
        { "ip = 0.0.0.0/0", TEXT("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"), false },
        { "ip = ::/0", TEXT("\x01\x02\x03\x04"), false },
        { "ip = 10.0.0.0/8",
          TEXT("\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\1\2\3"), true },
        { "ip = ::1", TEXT("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"), true },
        { "ip = ::1", TEXT("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2"), false },
        { "ip = 2001:db8::/33",
          TEXT("\x20\x01\x0d\xb8\x7f\0\0\0\0\0\0\0\0\0\0\1"), true },
        { "ip = 2001:db8::/33",
          TEXT("\x20\x01\x0d\xb8\x80\0\0\0\0\0\0\0\0\0\0\1"), false }
    };

    for (i = 0; i < ron_array_n(rows); i++) {
        ok(ron_cap_allows_ip(with(rows[i].caveat, NULL, NULL), rows[i].addr)
           == rows[i].want, "ip row %zu: %s", i, rows[i].caveat);
    }

    ok(ron_cap_allows_ip(with("ip = 10.0.0.0/8", "ip = 10.1.0.0/16", NULL),
                         ron_str("\x0a\x01\0\0")), "in both networks");
    ok(!ron_cap_allows_ip(with("ip = 10.0.0.0/8", "ip = 10.1.0.0/16", NULL),
                          ron_str("\x0a\x02\0\0")), "only in one");
}


static void
test_zeroed(void)
{
    ron_cap_t  none, copy;

    memset(&none, 0, sizeof(none));

    ok(!ron_cap_allows_act(&none, 0, 0)
       && !ron_cap_allows_word(&none, 0, ron_str("x"))
       && !ron_cap_allows_account(&none, ron_str("a"))
       && !ron_cap_allows_asset(&none, ron_str("a"))
       && !ron_cap_allows_amount(&none, 0)
       && !ron_cap_allows_tenant(&none, ron_str("a"))
       && !ron_cap_allows_time(&none, 0)
       && !ron_cap_allows_ip(&none, ron_str("\1\2\3\4")),
       "a zeroed capability allows nothing");

    memset(&copy, 0x55, sizeof(copy));
    (void) with("account = acc_a*", "tenant = t", "asset = ron");
    ok(ron_cap_size(&cap) < 2048, "small: %zu bytes", ron_cap_size(&cap));
    memcpy(&copy, &cap, ron_cap_size(&cap));
    memset(&cap, 0, sizeof(cap));
    ok(ron_cap_allows_account(&copy, ron_str("acc_a1"))
       && !ron_cap_allows_account(&copy, ron_str("acc_b"))
       && ron_cap_allows_tenant(&copy, ron_str("t"))
       && ron_cap_allows_asset(&copy, ron_str("ron")), "a copy is as good");

    memset(&copy, 0x55, sizeof(copy));
    (void) with("svc = wallet", "max_amount = 5", NULL);
    ok(ron_cap_size(&cap) < 512, "without lists: %zu bytes",
       ron_cap_size(&cap));
    memcpy(&copy, &cap, ron_cap_size(&cap));
    memset(&cap, 0, sizeof(cap));
    ok(ron_cap_allows_act(&copy, RON_CAP_SVC_WALLET, RON_CAP_ACT_TRANSFER)
       && !ron_cap_allows_act(&copy, RON_CAP_SVC_LEDGER, RON_CAP_ACT_READ)
       && ron_cap_allows_word(&copy, RON_CAP_SVC_WALLET, ron_str("x"))
       && ron_cap_allows_account(&copy, ron_str("a"))
       && ron_cap_allows_asset(&copy, ron_str("ron"))
       && ron_cap_allows_tenant(&copy, ron_str("t"))
       && ron_cap_allows_ip(&copy, ron_str("\1\2\3\4"))
       && ron_cap_allows_amount(&copy, 5)
       && !ron_cap_allows_amount(&copy, 6), "a copy of it is as good");

    (void) with("ip = 10.0.0.0/8", NULL, NULL);
    memcpy(&copy, &cap, ron_cap_size(&cap));
    memset(&cap, 0, sizeof(cap));
    ok(ron_cap_allows_ip(&copy, ron_str("\x0a\2\3\4"))
       && !ron_cap_allows_ip(&copy, ron_str("\1\2\3\4")),
       "and of one with networks only");
}


static void
test_attenuate(void)
{
    char       big[3000];
    size_t     i;
    ron_buf_t  b, c;
    ron_str_t  caveat, many[RON_CAP_CAVEATS_MAX + 1], token;

    static const ron_str_t  all[] = {
        TEXT("svc = wallet"), TEXT("act = read"), TEXT("max_amount = 5")
    };

    ron_buf_init(&b, 0);
    ron_buf_init(&c, 0);

    token = mint("here", all, 1);
    is_status(ron_cap_attenuate(token, all + 1, 2, &b), RON_OK,
              "two more caveats");
    is_status(verify(ron_buf_str(&b)), RON_OK, "verify");
    ok(!ron_cap_allows_amount(&cap, 6) && cap.acts == RON_CAP_ACT_READ
       && cap.svcs == RON_CAP_SVC_WALLET, "and hold");
    ok(ron_str_eq(mint("here", all, 3), ron_buf_str(&b)),
       "the same token as minted at once");

    token = mint("here", all, 1);       /* the buffer is used again */

    is_status(ron_cap_attenuate(ron_buf_str(&b), NULL, 0, &c), RON_OK,
              "none more");
    ok(ron_str_eq(ron_buf_str(&b), ron_buf_str(&c)), "the same token");

    ron_buf_reset(&c);
    is_status(ron_cap_attenuate(ron_str("AgIx"), all, 1, &c), RON_EINVAL,
              "no token");
    is_u64(c.len, 0, "nothing written");

    caveat = ron_null_str;
    is_status(ron_cap_attenuate(token, &caveat, 1, &c), RON_EINVAL,
              "an empty caveat");
    is_status(ron_cap_mint(&ring.keys[0], ron_str("a b"), ron_null_str, NULL,
                           0, &c), RON_EINVAL, "bad id");
    is_status(ron_cap_mint(&ring.keys[0], ron_null_str, ron_null_str, NULL, 0,
                           &c), RON_EINVAL, "no id");

    for (i = 0; i < ron_array_n(many); i++) {
        many[i] = all[i % 2];
    }

    is_status(ron_cap_mint(&ring.keys[0], ron_str("m"), ron_null_str, many, 32,
                           &c), RON_OK, "32 caveats");
    is_status(verify(ron_buf_str(&c)), RON_OK, "verify");
    is_status(ron_cap_attenuate(ron_buf_str(&c), all, 1, &b), RON_ERANGE,
              "33");
    ron_buf_reset(&c);
    is_status(ron_cap_mint(&ring.keys[0], ron_str("m"), ron_null_str, many, 33,
                           &c), RON_ERANGE, "33 at once");

    /* as long as a token can be: 3072 bytes, 4096 characters */

    memset(big, 'x', sizeof(big));
    memcpy(big, "account = ", 10);
    caveat.data = (const uint8_t *) big;
    ron_buf_reset(&c);

    for (caveat.len = 3000; c.len == 0 && caveat.len > 2900; caveat.len--) {
        ron_buf_reset(&c);
        (void) ron_cap_mint(&ring.keys[0], ron_str("m2345678901234567890123456"
                                                   "7890123456"),
                            ron_null_str, &caveat, 1, &c);
    }

    is_u64(c.len, 4096, "the longest token");
    is_status(verify(ron_buf_str(&c)), RON_OK, "verifies");
    caveat.len += 2;
    ron_buf_reset(&c);
    is_status(ron_cap_mint(&ring.keys[0], ron_str("m2345678901234567890123456"
                                                  "7890123456"),
                           ron_null_str, &caveat, 1, &c), RON_ERANGE,
              "one byte more");
    is_u64(c.len, 0, "nothing written");

    ron_buf_free(&b);
    ron_buf_free(&c);
}


int
main(void)
{
    ron_keyring_error_t  kerr;

    test_keyring();
    test_revoked();

    (void) ron_keyring_parse(ron_str("dev " KEY_A "\nnew " KEY_B "\n"), &ring,
                             &kerr);

    test_vectors();
    test_malformed();
    test_damage();
    test_refusals();
    test_read();
    test_caveats();
    test_acts();
    test_accounts();
    test_ip();
    test_zeroed();
    test_attenuate();

    return done_testing();
}
