
/*
 * Amounts against OpenSSL's big numbers, which know no 128 bits.
 */

#include <openssl/bn.h>
#include <openssl/crypto.h>

#include "ron_fuzz.h"
#include "ron_amount.h"


static BN_CTX  *ctx;
static BIGNUM  *na, *nb, *nd, *nr, *nq;


static void
to_bn(BIGNUM *n, ron_u128_t v)
{
    uint8_t  b[16];

    for (unsigned i = 0; i < 16; i++) {
        b[i] = (uint8_t) (v >> (8 * (15 - i)));
    }

    RON_ASSERT(BN_bin2bn(b, sizeof(b), n) != NULL);
}


/* The status and result of an operation whose exact result is n. */
static void
agree(ron_status_t status, ron_u128_t got, const BIGNUM *n)
{
    if (BN_is_negative(n) || BN_num_bits(n) > 128) {
        RON_ASSERT(status == RON_ERANGE && got == 0);
        return;
    }

    to_bn(nr, got);
    RON_ASSERT(status == RON_OK && BN_cmp(nr, n) == 0);
}


static void
fuzz_sums(ron_u128_t a, ron_u128_t b, ron_u128_t d)
{
    ron_u128_t    v, rem;
    ron_status_t  status;

    to_bn(na, a);
    to_bn(nb, b);

    status = ron_amount_add(a, b, &v);
    RON_ASSERT(BN_add(nq, na, nb));
    agree(status, v, nq);

    status = ron_amount_sub(a, b, &v);
    RON_ASSERT(BN_sub(nq, na, nb));
    agree(status, v, nq);

    status = ron_amount_mul(a, b, &v);
    RON_ASSERT(BN_mul(nq, na, nb, ctx));
    agree(status, v, nq);

    status = ron_amount_muldiv(a, b, d, &v, &rem);

    if (d == 0) {
        RON_ASSERT(status == RON_EINVAL && v == 0 && rem == 0);
        return;
    }

    to_bn(nd, d);
    RON_ASSERT(BN_mul(na, na, nb, ctx));
    RON_ASSERT(BN_div(nq, nb, na, nd, ctx));
    agree(status, v, nq);

    if (status == RON_OK) {
        agree(status, rem, nb);
    }

    v = a;
    RON_ASSERT(ron_amount_add(v, b, &v) != RON_OK || v == a + b);
    RON_ASSERT(ron_amount_muldiv(a, b, d, &v, NULL) == status);
}


static void
fuzz_print(ron_u128_t v)
{
    char        text[RON_AMOUNT_MAX];
    char       *other;
    size_t      n;
    ron_u128_t  back;

    n = ron_amount_print(v, text);
    to_bn(na, v);
    other = BN_bn2dec(na);
    RON_ASSERT(other != NULL && strcmp(text, other) == 0 && strlen(text) == n);
    OPENSSL_free(other);

    RON_ASSERT(ron_amount_parse(ron_cstr(text), &back) == RON_OK && back == v);
}


static void
fuzz_parse(ron_str_t s)
{
    bool          number;
    char          text[128];
    BIGNUM       *n;
    ron_u128_t    v;
    ron_status_t  status;

    s.len = ron_min(s.len, sizeof(text) - 1);
    number = s.len > 0 && (s.len == 1 || s.data[0] != '0');

    for (size_t i = 0; i < s.len; i++) {
        number = number && s.data[i] >= '0' && s.data[i] <= '9';
        text[i] = (char) s.data[i];
    }

    text[s.len] = '\0';
    status = ron_amount_parse(s, &v);

    if (!number) {
        RON_ASSERT(status == RON_EINVAL && v == 0);
        return;
    }

    n = NULL;
    RON_ASSERT(BN_dec2bn(&n, text) == (int) s.len);
    agree(status, v, n);
    BN_free(n);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t      f = { data, data + len };
    ron_u128_t  a, b, d;

    if (ctx == NULL) {
        ctx = BN_CTX_new();
        na = BN_new();
        nb = BN_new();
        nd = BN_new();
        nr = BN_new();
        nq = BN_new();
        RON_ASSERT(ctx && na && nb && nd && nr && nq);
    }

    if (len > 0 && data[0] >= '0') {
        fuzz_parse(fuzz_rest(&f));
        return 0;
    }

    (void) fuzz_u8(&f);
    a = fuzz_u128(&f) >> (fuzz_u8(&f) % 128);
    b = fuzz_u128(&f) >> (fuzz_u8(&f) % 128);
    d = fuzz_u128(&f) >> (fuzz_u8(&f) % 128);

    fuzz_sums(a, b, d);
    fuzz_sums(~a, b, d);
    fuzz_sums(a, ~b, ~d);
    fuzz_print(a);
    fuzz_print(~b);
    fuzz_parse(fuzz_rest(&f));

    return 0;
}
