
#include "ron_amount.h"


/* The largest power of ten in 64 bits: text is cut into groups of 19 digits. */
#define RON_AMOUNT_GROUP    19
#define RON_AMOUNT_TEN_19   UINT64_C(10000000000000000000)
#define RON_AMOUNT_DIGITS   39


static void ron_amount_wide_mul(ron_u128_t a, ron_u128_t b, ron_u128_t *hi,
    ron_u128_t *lo);
static uint64_t ron_amount_group(const uint8_t *p, size_t n);
static char *ron_amount_digits(char *end, uint64_t v);


ron_status_t
ron_amount_add(ron_u128_t a, ron_u128_t b, ron_u128_t *sum)
{
    if (__builtin_add_overflow(a, b, sum)) {
        *sum = 0;
        return RON_ERANGE;
    }

    return RON_OK;
}


ron_status_t
ron_amount_sub(ron_u128_t a, ron_u128_t b, ron_u128_t *diff)
{
    if (b > a) {
        *diff = 0;
        return RON_ERANGE;
    }

    *diff = a - b;

    return RON_OK;
}


bool
ron_amount_over(ron_u128_t a, ron_u128_t b, ron_u128_t limit)
{
    ron_u128_t  sum;

    return ron_amount_add(a, b, &sum) != RON_OK || sum > limit;
}


ron_status_t
ron_amount_mul(ron_u128_t a, ron_u128_t b, ron_u128_t *product)
{
    ron_u128_t  hi, lo;

    ron_amount_wide_mul(a, b, &hi, &lo);

    if (hi != 0) {
        *product = 0;
        return RON_ERANGE;
    }

    *product = lo;

    return RON_OK;
}


ron_status_t
ron_amount_muldiv(ron_u128_t a, ron_u128_t b, ron_u128_t d, ron_u128_t *quot,
    ron_u128_t *rem)
{
    bool        carry;
    unsigned    i;
    ron_u128_t  hi, lo, unused;

    if (rem == NULL) {
        rem = &unused;
    }

    *quot = 0;
    *rem = 0;

    if (d == 0) {
        return RON_EINVAL;
    }

    ron_amount_wide_mul(a, b, &hi, &lo);

    if (hi == 0) {
        *quot = lo / d;
        *rem = lo % d;
        return RON_OK;
    }

    if (hi >= d) {
        return RON_ERANGE;
    }

    /*
     * hi < d, so the quotient has at most 128 bits: one step of the school
     * division for each.  The partial remainder is below d before a step and
     * may need a 129th bit after its shift.
     */

    for (i = 0; i < 128; i++) {
        carry = (hi >> 127) != 0;
        hi = (hi << 1) | (lo >> 127);
        lo <<= 1;

        if (carry || hi >= d) {
            hi -= d;
            lo |= 1;
        }
    }

    *quot = lo;
    *rem = hi;

    return RON_OK;
}


static void
ron_amount_wide_mul(ron_u128_t a, ron_u128_t b, ron_u128_t *hi, ron_u128_t *lo)
{
    uint64_t    a0, a1, b0, b1;
    ron_u128_t  low, mid, mid2;

    a0 = (uint64_t) a;
    a1 = (uint64_t) (a >> 64);
    b0 = (uint64_t) b;
    b1 = (uint64_t) (b >> 64);

    low = (ron_u128_t) a0 * b0;

    /* (2^64 - 1)^2 + 2 * (2^64 - 1) < 2^128: neither sum can wrap */
    mid = (ron_u128_t) a1 * b0 + (uint64_t) (low >> 64);
    mid2 = (ron_u128_t) a0 * b1 + (uint64_t) mid;

    *lo = (mid2 << 64) | (uint64_t) low;
    *hi = (ron_u128_t) a1 * b1 + (uint64_t) (mid >> 64)
          + (uint64_t) (mid2 >> 64);
}


ron_status_t
ron_amount_parse(ron_str_t s, ron_u128_t *v)
{
    size_t      i, n, first;
    uint64_t    low;
    ron_u128_t  value;

    *v = 0;

    if (s.len == 0 || (s.data[0] == '0' && s.len > 1)) {
        return RON_EINVAL;
    }

    for (i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9') {
            return RON_EINVAL;
        }
    }

    if (s.len > RON_AMOUNT_DIGITS) {
        return RON_ERANGE;
    }

    first = s.len % RON_AMOUNT_GROUP;
    value = ron_amount_group(s.data, first);

    for (n = first; n < s.len; n += RON_AMOUNT_GROUP) {
        low = ron_amount_group(s.data + n, RON_AMOUNT_GROUP);

        if (ron_amount_mul(value, RON_AMOUNT_TEN_19, &value) != RON_OK
            || ron_amount_add(value, low, &value) != RON_OK)
        {
            return RON_ERANGE;
        }
    }

    *v = value;

    return RON_OK;
}


static uint64_t
ron_amount_group(const uint8_t *p, size_t n)
{
    size_t    i;
    uint64_t  v;

    v = 0;

    for (i = 0; i < n; i++) {
        v = v * 10 + (uint64_t) (p[i] - '0');
    }

    return v;
}


size_t
ron_amount_print(ron_u128_t v, char buf[RON_AMOUNT_MAX])
{
    char      *p, *end, tmp[3 * RON_AMOUNT_GROUP];
    size_t     len;
    uint64_t   group;

    end = tmp + sizeof(tmp);
    p = end;

    while (v > UINT64_MAX) {
        group = (uint64_t) (v % RON_AMOUNT_TEN_19);
        v /= RON_AMOUNT_TEN_19;

        end -= RON_AMOUNT_GROUP;
        p = ron_amount_digits(p, group);

        while (p > end) {
            *--p = '0';
        }
    }

    /* below 2^64 there may still be 20 digits, hence no fixed group here */

    if (v != 0 || p == tmp + sizeof(tmp)) {
        p = ron_amount_digits(p, (uint64_t) v);
    }

    len = (size_t) (tmp + sizeof(tmp) - p);

    RON_ASSERT(len < RON_AMOUNT_MAX);

    memcpy(buf, p, len);
    buf[len] = '\0';

    return len;
}


/* Writes v so that it ends before `end`; returns where it begins. */
static char *
ron_amount_digits(char *end, uint64_t v)
{
    static const char  pairs[] =
        "0001020304050607080910111213141516171819"
        "2021222324252627282930313233343536373839"
        "4041424344454647484950515253545556575859"
        "6061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";

    while (v >= 100) {
        end -= 2;
        memcpy(end, pairs + 2 * (v % 100), 2);
        v /= 100;
    }

    if (v >= 10) {
        end -= 2;
        memcpy(end, pairs + 2 * v, 2);

    } else {
        *--end = (char) ('0' + v);
    }

    return end;
}
