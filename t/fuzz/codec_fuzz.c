
/*
 * Text codecs: what a decoder takes is exactly what its encoder writes, and
 * both agree with others: OpenSSL's base64, printf's hexadecimal, libc's
 * calendar, a UTF-8 decoder that is a table of RFC 3629.
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <openssl/evp.h>

#include "ron_fuzz.h"
#include "ron_codec.h"


#define TEXT_MAX  4096


static void
fuzz_base64(ron_str_t s, bool url)
{
    char          text[ron_base64_len(TEXT_MAX) + 1], other[TEXT_MAX * 2];
    size_t        n, len, cap;
    uint8_t       bytes[TEXT_MAX * 2];
    ron_status_t  status;

    n = url ? ron_base64url_encode(s, text) : ron_base64_encode(s, text);
    RON_ASSERT(n == (url ? ron_base64url_len(s.len) : ron_base64_len(s.len)));

    if (!url) {
        (void) EVP_EncodeBlock((unsigned char *) other, s.data, (int) s.len);
        RON_ASSERT(memcmp(text, other, n) == 0);
    }

    status = url ? ron_base64url_decode((ron_str_t) { n, (uint8_t *) text },
                                        bytes, s.len, &len)
                 : ron_base64_decode((ron_str_t) { n, (uint8_t *) text },
                                     bytes, s.len, &len);
    RON_ASSERT(status == RON_OK && len == s.len);
    RON_ASSERT(len == 0 || memcmp(bytes, s.data, len) == 0);

    if (s.len > 0) {
        status = url
            ? ron_base64url_decode((ron_str_t) { n, (uint8_t *) text },
                                   bytes, s.len - 1, &len)
            : ron_base64_decode((ron_str_t) { n, (uint8_t *) text },
                                bytes, s.len - 1, &len);
        RON_ASSERT(status == RON_ERANGE && len == 0);
    }

    cap = sizeof(bytes);
    status = url ? ron_base64url_decode(s, bytes, cap, &len)
                 : ron_base64_decode(s, bytes, cap, &len);

    if (status != RON_OK) {
        RON_ASSERT(status == RON_EINVAL && len == 0);
        return;
    }

    n = url ? ron_base64url_encode((ron_str_t) { len, bytes }, text)
            : ron_base64_encode((ron_str_t) { len, bytes }, text);
    RON_ASSERT(n == s.len && (n == 0 || memcmp(text, s.data, n) == 0));
}


static void
fuzz_hex(ron_str_t s)
{
    char     text[2 * TEXT_MAX + 1], two[3];
    size_t   n;
    uint8_t  bytes[TEXT_MAX];

    n = ron_hex_encode(s, text);
    RON_ASSERT(n == 2 * s.len);

    for (size_t i = 0; i < s.len; i++) {
        snprintf(two, sizeof(two), "%02x", s.data[i]);
        RON_ASSERT(memcmp(text + 2 * i, two, 2) == 0);
    }

    RON_ASSERT(ron_hex_decode((ron_str_t) { n, (uint8_t *) text }, bytes,
                              s.len) == RON_OK);
    RON_ASSERT(s.len == 0 || memcmp(bytes, s.data, s.len) == 0);

    if (ron_hex_decode(s, bytes, s.len / 2) == RON_OK) {
        n = ron_hex_encode((ron_str_t) { s.len / 2, bytes }, text);
        RON_ASSERT(n == s.len && (n == 0 || memcmp(text, s.data, n) == 0));
    }
}


static void
fuzz_crockford(ron_str_t s)
{
    char          text[RON_CROCKFORD_LEN];
    uint8_t       random[RON_ULID_RANDOM_LEN];
    uint64_t      ms;
    ron_u128_t    v, naive;
    const char   *at;
    ron_status_t  status;

    static const char  digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    status = ron_crockford_decode(s, &v);
    RON_ASSERT(status == RON_OK || v == 0);

    if (status == RON_OK) {
        naive = 0;

        for (size_t i = 0; i < s.len; i++) {
            at = strchr(digits, s.data[i]);
            RON_ASSERT(at != NULL && *at != '\0');
            RON_ASSERT(naive >> 123 == 0);
            naive = naive * 32 + (ron_u128_t) (at - digits);
        }

        RON_ASSERT(naive == v);
        RON_ASSERT(ron_crockford_encode(v, text) == RON_CROCKFORD_LEN);
        RON_ASSERT(s.len == RON_CROCKFORD_LEN
                   && memcmp(text, s.data, s.len) == 0);
        RON_ASSERT(ron_ulid_decode(s, &ms, random) == RON_OK);
        RON_ASSERT(ms == (uint64_t) (v >> 80));
        RON_ASSERT(ron_ulid_encode(ms, random, text) == RON_ULID_LEN);
        RON_ASSERT(memcmp(text, s.data, s.len) == 0);
    }

    if (s.len >= 16) {
        memcpy(&v, s.data, sizeof(v));
        (void) ron_crockford_encode(v, text);
        RON_ASSERT(ron_crockford_decode((ron_str_t) { sizeof(text),
                                                      (uint8_t *) text },
                                        &naive) == RON_OK && naive == v);
    }
}


static void
fuzz_time(ron_str_t s)
{
    char       text[RON_TIME_LEN + 1], other[64];
    time_t     seconds;
    uint64_t   ms, back;
    struct tm  tm;

    if (ron_time_parse(s, &ms) == RON_OK) {
        RON_ASSERT(ron_time_print(ms, text) == RON_OK);
        RON_ASSERT(s.len == RON_TIME_LEN && memcmp(text, s.data, s.len) == 0);

    } else {
        RON_ASSERT(ms == 0);
    }

    if (s.len < 8) {
        return;
    }

    memcpy(&ms, s.data, sizeof(ms));
    ms &= UINT64_C(0xffffffffffff);

    if (ron_time_print(ms, text) != RON_OK) {
        RON_ASSERT(ms > RON_TIME_MAX_MS && text[0] == '\0');
        return;
    }

    seconds = (time_t) (ms / 1000);
    RON_ASSERT(gmtime_r(&seconds, &tm) != NULL);
    snprintf(other, sizeof(other), "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ",
             tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
             tm.tm_min, tm.tm_sec, (unsigned) (ms % 1000));
    RON_ASSERT(strcmp(text, other) == 0);
    RON_ASSERT(ron_time_parse(ron_cstr(text), &back) == RON_OK && back == ms);
}


/* Lengths of well-formed sequences, as the table of RFC 3629 section 4. */
static size_t
naive_utf8(const uint8_t *p, size_t len)
{
    static const struct {
        uint8_t  lo, hi, lo2, hi2, more;
    } rows[] = {
        { 0x00, 0x7f, 0, 0, 0 },       { 0xc2, 0xdf, 0x80, 0xbf, 1 },
        { 0xe0, 0xe0, 0xa0, 0xbf, 2 }, { 0xe1, 0xec, 0x80, 0xbf, 2 },
        { 0xed, 0xed, 0x80, 0x9f, 2 }, { 0xee, 0xef, 0x80, 0xbf, 2 },
        { 0xf0, 0xf0, 0x90, 0xbf, 3 }, { 0xf1, 0xf3, 0x80, 0xbf, 3 },
        { 0xf4, 0xf4, 0x80, 0x8f, 3 },
    };

    for (size_t i = 0; i < ron_array_n(rows); i++) {
        if (p[0] < rows[i].lo || p[0] > rows[i].hi) {
            continue;
        }

        if (rows[i].more >= len
            || (rows[i].more && (p[1] < rows[i].lo2 || p[1] > rows[i].hi2)))
        {
            return 0;
        }

        for (size_t k = 2; k <= rows[i].more; k++) {
            if (p[k] < 0x80 || p[k] > 0xbf) {
                return 0;
            }
        }

        return rows[i].more + 1u;
    }

    return 0;
}


static void
fuzz_utf8(ron_str_t s)
{
    size_t  i, n, off;

    for (i = 0; i < s.len; i += n) {
        n = naive_utf8(s.data + i, s.len - i);

        if (n == 0) {
            break;
        }
    }

    if (ron_utf8_check(s, &off) == RON_OK) {
        RON_ASSERT(i == s.len);

    } else {
        RON_ASSERT(i < s.len && off == i);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t     f = { data, data + len };
    uint8_t    what;
    ron_str_t  s;

    if (len > TEXT_MAX) {
        return -1;
    }

    what = fuzz_u8(&f);
    s = fuzz_rest(&f);

    switch (what % 6) {
    case 0:
        fuzz_base64(s, false);
        break;
    case 1:
        fuzz_base64(s, true);
        break;
    case 2:
        fuzz_hex(s);
        break;
    case 3:
        fuzz_crockford(s);
        break;
    case 4:
        fuzz_time(s);
        break;
    default:
        fuzz_utf8(s);
    }

    return 0;
}
