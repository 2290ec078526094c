
#include "ron_codec.h"


#define RON_DAY_MS       UINT64_C(86400000)
#define RON_CIVIL_SHIFT  719468     /* days from 0000-03-01 to 1970-01-01 */
#define RON_ERA_DAYS     146097     /* days in 400 years */

#define RON_NO_DIGIT     0xff


static const char  ron_base64_std[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char  ron_base64_url[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char  ron_crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";


static size_t ron_base64_put(const char *digits, ron_str_t in, char *out);
static ron_status_t ron_base64_get(const char *digits, ron_str_t text,
    uint8_t *out, size_t cap, size_t *len);
static inline uint32_t ron_base64_value(const char *digits, uint8_t c);
static inline uint32_t ron_hex_value(uint8_t c);
static uint32_t ron_crockford_value(uint8_t c);
static void ron_civil_from_days(uint32_t days, uint32_t *year,
    uint32_t *month, uint32_t *day);
static uint32_t ron_civil_to_days(uint32_t year, uint32_t month, uint32_t day);
static uint32_t ron_civil_month_days(uint32_t year, uint32_t month);
static void ron_digits_put(char *out, size_t n, uint32_t v);
static bool ron_digits_get(const uint8_t *p, size_t n, uint32_t *v);
static inline size_t ron_utf8_sequence(const uint8_t *p, size_t left);


size_t
ron_base64_encode(ron_str_t in, char *out)
{
    size_t  n;

    n = ron_base64_put(ron_base64_std, in, out);

    while (n % 4 != 0) {
        out[n++] = '=';
    }

    return n;
}


size_t
ron_base64url_encode(ron_str_t in, char *out)
{
    return ron_base64_put(ron_base64_url, in, out);
}


static size_t
ron_base64_put(const char *digits, ron_str_t in, char *out)
{
    char           *o;
    size_t          left;
    uint32_t        v;
    const uint8_t  *p;

    o = out;
    p = in.data;

    for (left = in.len; left >= 3; left -= 3, p += 3) {
        v = (uint32_t) p[0] << 16 | (uint32_t) p[1] << 8 | p[2];

        *o++ = digits[v >> 18];
        *o++ = digits[v >> 12 & 63];
        *o++ = digits[v >> 6 & 63];
        *o++ = digits[v & 63];
    }

    if (left != 0) {
        v = (uint32_t) p[0] << 16;

        if (left == 2) {
            v |= (uint32_t) p[1] << 8;
        }

        *o++ = digits[v >> 18];
        *o++ = digits[v >> 12 & 63];

        if (left == 2) {
            *o++ = digits[v >> 6 & 63];
        }
    }

    return (size_t) (o - out);
}


ron_status_t
ron_base64_decode(ron_str_t text, uint8_t *out, size_t cap, size_t *len)
{
    *len = 0;

    if (text.len % 4 != 0) {
        return RON_EINVAL;
    }

    if (text.len != 0 && text.data[text.len - 1] == '=') {
        text.len--;

        if (text.data[text.len - 1] == '=') {
            text.len--;
        }
    }

    return ron_base64_get(ron_base64_std, text, out, cap, len);
}


ron_status_t
ron_base64url_decode(ron_str_t text, uint8_t *out, size_t cap, size_t *len)
{
    return ron_base64_get(ron_base64_url, text, out, cap, len);
}


/* No padding here; the bits that no byte takes must be zero. */
static ron_status_t
ron_base64_get(const char *digits, ron_str_t text, uint8_t *out, size_t cap,
    size_t *len)
{
    size_t    i, n;
    unsigned  bits;
    uint32_t  acc, value;

    *len = 0;

    if (text.len % 4 == 1) {
        return RON_EINVAL;
    }

    acc = 0;
    bits = 0;
    n = 0;

    for (i = 0; i < text.len; i++) {
        value = ron_base64_value(digits, text.data[i]);

        if (value == RON_NO_DIGIT) {
            return RON_EINVAL;
        }

        acc = acc << 6 | value;
        bits += 6;

        if (bits >= 8) {
            bits -= 8;

            if (n < cap) {
                out[n] = (uint8_t) (acc >> bits);
            }

            n++;
            acc &= (1u << bits) - 1;
        }
    }

    if (acc != 0) {
        return RON_EINVAL;
    }

    if (n > cap) {
        return RON_ERANGE;
    }

    *len = n;

    return RON_OK;
}


static inline uint32_t
ron_base64_value(const char *digits, uint8_t c)
{
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26u;
    }

    if (c >= 'A' && c <= 'Z') {
        return c - 'A' + 0u;
    }

    if (c >= '0' && c <= '9') {
        return c - '0' + 52u;
    }

    if (c == (uint8_t) digits[62]) {
        return 62;
    }

    return c == (uint8_t) digits[63] ? 63 : RON_NO_DIGIT;
}


size_t
ron_hex_encode(ron_str_t in, char *out)
{
    size_t  i;

#define RON_HEX_ROW(h)                                                        \
    h "0" h "1" h "2" h "3" h "4" h "5" h "6" h "7"                           \
    h "8" h "9" h "a" h "b" h "c" h "d" h "e" h "f"

    static const char  pairs[] =
        RON_HEX_ROW("0") RON_HEX_ROW("1") RON_HEX_ROW("2") RON_HEX_ROW("3")
        RON_HEX_ROW("4") RON_HEX_ROW("5") RON_HEX_ROW("6") RON_HEX_ROW("7")
        RON_HEX_ROW("8") RON_HEX_ROW("9") RON_HEX_ROW("a") RON_HEX_ROW("b")
        RON_HEX_ROW("c") RON_HEX_ROW("d") RON_HEX_ROW("e") RON_HEX_ROW("f");

#undef RON_HEX_ROW

    for (i = 0; i < in.len; i++) {
        memcpy(out + 2 * i, pairs + 2 * in.data[i], 2);
    }

    return 2 * in.len;
}


ron_status_t
ron_hex_decode(ron_str_t text, uint8_t *out, size_t len)
{
    size_t    i;
    uint32_t  hi, lo;

    if (text.len == 2 * len) {
        for (i = 0; i < len; i++) {
            hi = ron_hex_value(text.data[2 * i]);
            lo = ron_hex_value(text.data[2 * i + 1]);

            if ((hi | lo) > 15) {
                break;
            }

            out[i] = (uint8_t) (hi << 4 | lo);
        }

        if (i == len) {
            return RON_OK;
        }
    }

    memset(out, 0, len);

    return RON_EINVAL;
}


static inline uint32_t
ron_hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0' + 0u;
    }

    return c >= 'a' && c <= 'f' ? c - 'a' + 10u : RON_NO_DIGIT;
}


size_t
ron_crockford_encode(ron_u128_t v, char out[RON_CROCKFORD_LEN])
{
    size_t    i;
    uint64_t  high, low;

    /* twelve digits are 60 bits, and words are faster than wide integers */

    low = (uint64_t) v & ((UINT64_C(1) << 60) - 1);
    high = (uint64_t) (v >> 60) & ((UINT64_C(1) << 60) - 1);

    out[0] = ron_crockford[(unsigned) (v >> 125)];
    out[1] = ron_crockford[(unsigned) (v >> 120) & 31];

    for (i = 0; i < 12; i++) {
        out[2 + i] = ron_crockford[high >> (55 - 5 * i) & 31];
        out[14 + i] = ron_crockford[low >> (55 - 5 * i) & 31];
    }

    return RON_CROCKFORD_LEN;
}


ron_status_t
ron_crockford_decode(ron_str_t text, ron_u128_t *v)
{
    size_t      i;
    uint32_t    digit;
    ron_u128_t  value;

    *v = 0;

    if (text.len != RON_CROCKFORD_LEN) {
        return RON_EINVAL;
    }

    value = 0;

    for (i = 0; i < RON_CROCKFORD_LEN; i++) {
        digit = ron_crockford_value(text.data[i]);

        if (digit == RON_NO_DIGIT) {
            return RON_EINVAL;
        }

        value = value << 5 | digit;
    }

    /* 26 digits are 130 bits: the first one has only three of its five */

    if (ron_crockford_value(text.data[0]) > 7) {
        return RON_ERANGE;
    }

    *v = value;

    return RON_OK;
}


/* The alphabet leaves out I, L, O and U. */
static uint32_t
ron_crockford_value(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0' + 0u;
    }

    if (c < 'A' || c > 'Z' || c == 'I' || c == 'L' || c == 'O' || c == 'U') {
        return RON_NO_DIGIT;
    }

    return 10u + c - 'A' - (c > 'I') - (c > 'L') - (c > 'O') - (c > 'U');
}


size_t
ron_ulid_encode(uint64_t ms, const uint8_t random[RON_ULID_RANDOM_LEN],
    char out[RON_ULID_LEN])
{
    size_t      i;
    uint64_t    high, low;

    high = ms << 16 | (uint64_t) random[0] << 8 | random[1];
    low = 0;

    for (i = 2; i < RON_ULID_RANDOM_LEN; i++) {
        low = low << 8 | random[i];
    }

    return ron_crockford_encode((ron_u128_t) high << 64 | low, out);
}


ron_status_t
ron_ulid_decode(ron_str_t text, uint64_t *ms,
    uint8_t random[RON_ULID_RANDOM_LEN])
{
    size_t        i;
    ron_u128_t    v;
    ron_status_t  rc;

    rc = ron_crockford_decode(text, &v);

    for (i = RON_ULID_RANDOM_LEN; i != 0; i--) {
        random[i - 1] = (uint8_t) v;
        v >>= 8;
    }

    *ms = (uint64_t) v;

    return rc;
}


ron_status_t
ron_time_print(uint64_t ms, char out[RON_TIME_LEN + 1])
{
    uint32_t  year, month, day, rest;
    uint64_t  second;

    /* mostly it is the second that it was, and dividing is what costs */

    static _Thread_local uint64_t  last = UINT64_MAX;
    static _Thread_local char      text[] = "0000-00-00T00:00:00.000Z";

    out[0] = '\0';

    if (ms > RON_TIME_MAX_MS) {
        return RON_ERANGE;
    }

    second = ms / 1000;

    if (second != last) {
        last = second;
        ron_civil_from_days((uint32_t) (ms / RON_DAY_MS), &year, &month,
                            &day);
        rest = (uint32_t) (ms % RON_DAY_MS);

        ron_digits_put(text, 4, year);
        ron_digits_put(text + 5, 2, month);
        ron_digits_put(text + 8, 2, day);
        ron_digits_put(text + 11, 2, rest / 3600000);
        ron_digits_put(text + 14, 2, rest / 60000 % 60);
        ron_digits_put(text + 17, 2, rest / 1000 % 60);
    }

    memcpy(out, text, RON_TIME_LEN + 1);
    ron_digits_put(out + 20, 3, (uint32_t) (ms % 1000));

    return RON_OK;
}


ron_status_t
ron_time_parse(ron_str_t text, uint64_t *ms)
{
    uint32_t        year, month, day, hour, minute, second, milli;
    const uint8_t  *p;

    *ms = 0;
    p = text.data;

    if (text.len != RON_TIME_LEN
        || p[4] != '-' || p[7] != '-' || p[10] != 'T' || p[13] != ':'
        || p[16] != ':' || p[19] != '.' || p[23] != 'Z'
        || !ron_digits_get(p, 4, &year)
        || !ron_digits_get(p + 5, 2, &month)
        || !ron_digits_get(p + 8, 2, &day)
        || !ron_digits_get(p + 11, 2, &hour)
        || !ron_digits_get(p + 14, 2, &minute)
        || !ron_digits_get(p + 17, 2, &second)
        || !ron_digits_get(p + 20, 3, &milli)
        || month < 1 || month > 12 || day < 1
        || day > ron_civil_month_days(year, month)
        || hour > 23 || minute > 59 || second > 59)
    {
        return RON_EINVAL;
    }

    if (year < 1970) {
        return RON_ERANGE;
    }

    *ms = ron_civil_to_days(year, month, day) * RON_DAY_MS
          + hour * UINT64_C(3600000) + minute * UINT64_C(60000)
          + second * UINT64_C(1000) + milli;

    return RON_OK;
}


/*
 * Both ways count years from the first of March: then the leap day is the last
 * day of its year, and the months from March on have the lengths 31 30 31 30
 * 31 twice over and a rest, which is what (153 * m + 2) / 5 adds up.
 */
static void
ron_civil_from_days(uint32_t days, uint32_t *year, uint32_t *month,
    uint32_t *day)
{
    uint32_t  era, of_era, year_of_era, of_year, m;

    days += RON_CIVIL_SHIFT;
    era = days / RON_ERA_DAYS;
    of_era = days % RON_ERA_DAYS;

    /* take out the leap days before this one, then divide */
    year_of_era = (of_era - of_era / 1460 + of_era / 36524
                   - of_era / (RON_ERA_DAYS - 1)) / 365;
    of_year = of_era - (365 * year_of_era + year_of_era / 4
                        - year_of_era / 100);
    m = (5 * of_year + 2) / 153;

    *day = of_year - (153 * m + 2) / 5 + 1;
    *month = m < 10 ? m + 3 : m - 9;
    *year = era * 400 + year_of_era + (*month <= 2);
}


static uint32_t
ron_civil_to_days(uint32_t year, uint32_t month, uint32_t day)
{
    uint32_t  year_of_era, of_year;

    year -= month <= 2;
    year_of_era = year % 400;
    of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return year / 400 * RON_ERA_DAYS + year_of_era * 365 + year_of_era / 4
           - year_of_era / 100 + of_year - RON_CIVIL_SHIFT;
}


static uint32_t
ron_civil_month_days(uint32_t year, uint32_t month)
{
    if (month == 2) {
        return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    }

    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}


static void
ron_digits_put(char *out, size_t n, uint32_t v)
{
    while (n != 0) {
        out[--n] = (char) ('0' + v % 10);
        v /= 10;
    }
}


static bool
ron_digits_get(const uint8_t *p, size_t n, uint32_t *v)
{
    size_t  i;

    *v = 0;

    for (i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return false;
        }

        *v = *v * 10 + (uint32_t) (p[i] - '0');
    }

    return true;
}


ron_status_t
ron_utf8_check(ron_str_t s, size_t *off)
{
    size_t    i, n;
    uint64_t  a, b;

    if (off != NULL) {
        *off = 0;
    }

    for (i = 0; i < s.len; i += n) {

        /* nearly all text is ASCII: look at 16 bytes at once */

        if (s.len - i >= 16) {
            memcpy(&a, s.data + i, 8);
            memcpy(&b, s.data + i + 8, 8);

            if (((a | b) & UINT64_C(0x8080808080808080)) == 0) {
                n = 16;
                continue;
            }

        } else if (s.len >= 16) {

            /* what is left, and some of what was looked at before */

            memcpy(&a, s.data + s.len - 16, 8);
            memcpy(&b, s.data + s.len - 8, 8);

            if (((a | b) & UINT64_C(0x8080808080808080)) == 0) {
                return RON_OK;
            }
        }

        n = ron_utf8_sequence(s.data + i, s.len - i);

        if (n == 0) {
            if (off != NULL) {
                *off = i;
            }

            return RON_EINVAL;
        }
    }

    return RON_OK;
}


/*
 * The length of the well-formed sequence at p, or 0.  Overlong forms,
 * surrogates and what is over U+10FFFF all show in the second byte.
 */
static inline size_t
ron_utf8_sequence(const uint8_t *p, size_t left)
{
    size_t   i, n;
    uint8_t  low, high;

    if (p[0] < 0x80) {
        return 1;
    }

    low = 0x80;
    high = 0xbf;

    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2;

    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        n = 3;
        low = p[0] == 0xe0 ? 0xa0 : low;
        high = p[0] == 0xed ? 0x9f : high;

    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        low = p[0] == 0xf0 ? 0x90 : low;
        high = p[0] == 0xf4 ? 0x8f : high;

    } else {
        return 0;
    }

    if (left < n || p[1] < low || p[1] > high) {
        return 0;
    }

    for (i = 2; i < n; i++) {
        if (p[i] < 0x80 || p[i] > 0xbf) {
            return 0;
        }
    }

    return n;
}
