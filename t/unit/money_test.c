
/*
 * Amounts against numbers written as arrays of decimal digits, which share
 * no code and no representation with what they check.
 */

#include "ron_amount.h"
#include "ron_seed.h"
#include "ron_test.h"


#define CASES   100000
#define DIGITS  84           /* of 2^128 * 2^128: 78 */


typedef struct {
    uint8_t  d[DIGITS];         /* least significant first */
} big_t;


static uint64_t  seed = UINT64_C(0x9e3779b97f4a7c15);


static uint64_t
next64(void)
{
    return ron_seed_next(&seed);
}


static ron_u128_t
u128(uint64_t hi, uint64_t lo)
{
    return (ron_u128_t) hi << 64 | lo;
}


/* Half of them have few bits, or sit beside a power of two or of ten. */
static ron_u128_t
next_amount(void)
{
    unsigned    i, n;
    ron_u128_t  v;

    v = u128(next64(), next64());

    switch (next64() % 6) {

    case 0:
        return v >> next64() % 128;

    case 1:
        return ((ron_u128_t) 1 << next64() % 128) + (uint64_t) (next64() % 3)
               - 1;

    case 2:
        return ~(ron_u128_t) 0 - next64() % 3;

    case 3:
        n = (unsigned) (next64() % 39);
        v = 1;

        for (i = 0; i < n; i++) {
            v *= 10;
        }

        return v + (uint64_t) (next64() % 3) - 1;

    default:
        return v;
    }
}


static void
big_add(big_t *r, const big_t *a, const big_t *b)
{
    unsigned  i, sum, carry;

    carry = 0;

    for (i = 0; i < DIGITS; i++) {
        sum = a->d[i] + b->d[i] + carry;
        r->d[i] = (uint8_t) (sum % 10);
        carry = sum / 10;
    }
}


static void
big_mul(big_t *r, const big_t *a, const big_t *b)
{
    unsigned  i, j, sum, carry;

    memset(r, 0, sizeof(big_t));

    for (i = 0; i < DIGITS / 2; i++) {
        carry = 0;

        for (j = 0; a->d[i] != 0 && j < DIGITS / 2; j++) {
            sum = r->d[i + j] + a->d[i] * b->d[j] + carry;
            r->d[i + j] = (uint8_t) (sum % 10);
            carry = sum / 10;
        }
    }
}


static int
big_cmp(const big_t *a, const big_t *b)
{
    int  i;

    for (i = DIGITS - 1; i >= 0; i--) {
        if (a->d[i] != b->d[i]) {
            return a->d[i] < b->d[i] ? -1 : 1;
        }
    }

    return 0;
}


/* Bit by bit from the top: double, and carry the bit in. */
static big_t
big(ron_u128_t v)
{
    int       i;
    unsigned  j, sum, carry;
    big_t     r;

    memset(&r, 0, sizeof(r));

    for (i = 127; i >= 0; i--) {
        carry = (unsigned) (v >> i) & 1;

        for (j = 0; j < 40; j++) {
            sum = 2u * r.d[j] + carry;
            carry = sum >= 10;
            r.d[j] = (uint8_t) (carry ? sum - 10 : sum);
        }
    }

    return r;
}


static size_t
big_print(const big_t *a, char *out)
{
    int     i;
    size_t  n;

    for (i = DIGITS - 1; i > 0 && a->d[i] == 0; i--) { /* void */ }

    for (n = 0; i >= 0; i--) {
        out[n++] = (char) ('0' + a->d[i]);
    }

    out[n] = '\0';

    return n;
}


static bool
same(ron_status_t rc, ron_u128_t got, const big_t *want, const big_t *limit)
{
    big_t  g;

    if (big_cmp(want, limit) >= 0) {
        return rc == RON_ERANGE && got == 0;
    }

    g = big(got);

    return rc == RON_OK && big_cmp(&g, want) == 0;
}


static void
test_properties(void)
{
    char          text[DIGITS + 1], out[RON_AMOUNT_MAX];
    big_t         a, b, d, r, q, limit, max, product, one;
    size_t        i, len, bad_add, bad_sub, bad_mul, bad_div, bad_print;
    size_t        bad_parse, ranges;
    ron_u128_t    x, y, z, v, rem;
    ron_status_t  rc;

    bad_add = bad_sub = bad_mul = bad_div = bad_print = bad_parse = 0;
    ranges = 0;

    max = big(~(ron_u128_t) 0);
    one = big(1);
    big_add(&limit, &max, &one);

    for (i = 0; i < CASES; i++) {
        x = next_amount();
        y = next_amount();
        z = next_amount();

        a = big(x);
        b = big(y);
        d = big(z);

        rc = ron_amount_add(x, y, &v);
        big_add(&r, &a, &b);
        bad_add += !same(rc, v, &r, &limit);

        /* x - y = v when v + y = x */
        rc = ron_amount_sub(x, y, &v);

        if (big_cmp(&a, &b) < 0) {
            bad_sub += rc != RON_ERANGE || v != 0;

        } else {
            q = big(v);
            big_add(&r, &q, &b);
            bad_sub += rc != RON_OK || big_cmp(&r, &a) != 0;
        }

        rc = ron_amount_mul(x, y, &v);
        big_mul(&product, &a, &b);
        bad_mul += !same(rc, v, &product, &limit);

        /* quot * d + rem = product and rem < d; or product >= 2^128 * d */
        rc = ron_amount_muldiv(x, y, z, &v, &rem);

        if (z == 0) {
            bad_div += rc != RON_EINVAL || v != 0 || rem != 0;

        } else {
            big_mul(&r, &d, &limit);

            if (big_cmp(&product, &r) >= 0) {
                bad_div += rc != RON_ERANGE || v != 0 || rem != 0;
                ranges++;

            } else {
                q = big(v);
                big_mul(&r, &q, &d);
                q = big(rem);
                big_add(&r, &r, &q);
                bad_div += rc != RON_OK || rem >= z
                           || big_cmp(&r, &product) != 0;
            }
        }

        len = big_print(&a, text);
        bad_print += ron_amount_print(x, out) != len || strcmp(out, text) != 0;

        rc = ron_amount_parse(ron_cstr(text), &v);
        bad_parse += rc != RON_OK || v != x;

        /* the same digits and some more: mostly over the end */
        big_mul(&r, &a, &b);
        (void) big_print(&r, text);
        rc = ron_amount_parse(ron_cstr(text), &v);
        bad_parse += !same(rc, v, &r, &limit);
    }

    is_u64(bad_add, 0, "%d random additions", CASES);
    is_u64(bad_sub, 0, "%d random subtractions", CASES);
    is_u64(bad_mul, 0, "%d random products", CASES);
    is_u64(bad_div, 0, "%d random quotients of products", CASES);
    is_u64(bad_print, 0, "%d numbers printed", CASES);
    is_u64(bad_parse, 0, "%d numbers parsed", 2 * CASES);
    ok(ranges > CASES / 10 && ranges < CASES - CASES / 10,
       "a good part, %zu, of the quotients did not fit", ranges);
}


static void
test_known(void)
{
    char          out[RON_AMOUNT_MAX];
    size_t        i, len;
    ron_u128_t    v;
    ron_status_t  rc;

    static const struct {
        const char  *text;
        uint64_t     hi, lo;
    } good[] = {
        { "0", 0, 0 },
        { "1", 0, 1 },
        { "9", 0, 9 },
        { "10", 0, 10 },
        { "18446744073709551615", 0, UINT64_MAX },
        { "18446744073709551616", 1, 0 },
        { "9999999999999999999", 0, UINT64_C(9999999999999999999) },
        { "10000000000000000000", 0, UINT64_C(10000000000000000000) },
        { "100000000000000000000", 5, UINT64_C(0x6bc75e2d63100000) },
        { "170141183460469231731687303715884105728",
          UINT64_C(0x8000000000000000), 0 },
        { "340282366920938463463374607431768211455", UINT64_MAX, UINT64_MAX }
    };

    for (i = 0; i < ron_array_n(good); i++) {
        rc = ron_amount_parse(ron_cstr(good[i].text), &v);
        ok(rc == RON_OK && v == u128(good[i].hi, good[i].lo),
           "parse %s", good[i].text);

        len = ron_amount_print(u128(good[i].hi, good[i].lo), out);
        is_str(out, good[i].text, "print %s", good[i].text);
        is_u64(len, strlen(good[i].text), "its length");
    }
}


static void
test_refused(void)
{
    size_t        i;
    ron_u128_t    v;

    static const struct {
        ron_str_t     text;
        ron_status_t  rc;
    } bad[] = {
        { { 0, NULL }, RON_EINVAL },
#define TEXT(s)  { sizeof(s) - 1, (const uint8_t *) s }
        { TEXT(""), RON_EINVAL },
        { TEXT("00"), RON_EINVAL },
        { TEXT("01"), RON_EINVAL },
        { TEXT("-0"), RON_EINVAL },
        { TEXT("-1"), RON_EINVAL },
        { TEXT("+1"), RON_EINVAL },
        { TEXT(" 1"), RON_EINVAL },
        { TEXT("1 "), RON_EINVAL },
        { TEXT("1\n"), RON_EINVAL },
        { TEXT("1\0"), RON_EINVAL },
        { TEXT("1.0"), RON_EINVAL },
        { TEXT("1e3"), RON_EINVAL },
        { TEXT("1E3"), RON_EINVAL },
        { TEXT("0x10"), RON_EINVAL },
        { TEXT("1_000"), RON_EINVAL },
        { TEXT("1,000"), RON_EINVAL },
        { TEXT("\xd9\xa1"), RON_EINVAL },
        { TEXT("/"), RON_EINVAL },
        { TEXT(":"), RON_EINVAL },
        { TEXT("nan"), RON_EINVAL },
        { TEXT("340282366920938463463374607431768211456"), RON_ERANGE },
        { TEXT("340282366920938463473374607431768211455"), RON_ERANGE },
        { TEXT("999999999999999999999999999999999999999"), RON_ERANGE },
        { TEXT("1000000000000000000000000000000000000000"), RON_ERANGE },
        { TEXT("0340282366920938463463374607431768211455"), RON_EINVAL },
        { TEXT("340282366920938463463374607431768211456000000000000000000000"),
          RON_ERANGE },
        { TEXT("34028236692093846346337460743176821145600000000000000000000x"),
          RON_EINVAL }
    };

    for (i = 0; i < ron_array_n(bad); i++) {
        v = 7;
        is_status(ron_amount_parse(bad[i].text, &v), bad[i].rc,
                  "refused: row %zu \"%.*s\"", i, (int) bad[i].text.len,
                  bad[i].text.len ? (const char *) bad[i].text.data : "");
        ok(v == 0, "and zero");
    }
}


static void
test_edges(void)
{
    ron_u128_t  max, v, rem;

    max = ~(ron_u128_t) 0;

    v = 7;
    is_status(ron_amount_add(max, 1, &v), RON_ERANGE, "max + 1");
    ok(v == 0, "zeroed");
    is_status(ron_amount_add(max, 0, &v), RON_OK, "max + 0");
    ok(v == max, "max");

    v = 7;
    is_status(ron_amount_sub(0, 1, &v), RON_ERANGE, "0 - 1");
    ok(v == 0, "zeroed");
    is_status(ron_amount_sub(max, max, &v), RON_OK, "max - max");
    ok(v == 0, "zero");

    v = 7;
    is_status(ron_amount_mul(u128(1, 0), u128(1, 0), &v), RON_ERANGE,
              "2^64 * 2^64");
    ok(v == 0, "zeroed");
    is_status(ron_amount_mul(UINT64_MAX, u128(1, 1), &v), RON_OK,
              "(2^64 - 1) * (2^64 + 1)");
    ok(v == max, "2^128 - 1");

    is_status(ron_amount_muldiv(max, max, max, &v, &rem), RON_OK,
              "max * max / max");
    ok(v == max && rem == 0, "max");
    is_status(ron_amount_muldiv(max, max, max - 1, &v, &rem), RON_ERANGE,
              "max * max / (max - 1)");
    ok(v == 0 && rem == 0, "zeroed");
    is_status(ron_amount_muldiv(max - 1, max, max, &v, NULL), RON_OK,
              "no remainder wanted");
    ok(v == max - 1, "max - 1");
    is_status(ron_amount_muldiv(7, 3, 0, &v, &rem), RON_EINVAL, "by zero");
    ok(v == 0 && rem == 0, "zeroed");

    /* one token of seven, three ways */
    is_status(ron_amount_muldiv(100, 3, 7, &v, &rem), RON_OK, "100 * 3 / 7");
    ok(v == 42 && rem == 6, "42, rest 6");

    v = 5;
    is_status(ron_amount_add(v, v, &v), RON_OK, "result over its input");
    ok(v == 10, "10");
}


int
main(void)
{
    test_known();
    test_refused();
    test_edges();
    test_properties();

    return done_testing();
}
