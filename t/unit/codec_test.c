
/*
 * The text codecs: vectors of their RFCs, everything that is refused, and
 * round trips.
 */

#include "ron_codec.h"
#include "ron_seed.h"
#include "ron_test.h"


#define TEXT(s)  { sizeof(s) - 1, (const uint8_t *) s }


static uint64_t  seed = UINT64_C(0x243f6a8885a308d3);


static uint64_t
next64(void)
{
    return ron_seed_next(&seed);
}


static void
test_base64(void)
{
    char       text[64];
    size_t     i, j, n, len, wrong;
    uint8_t    in[32], out[32];
    ron_str_t  s;

    static const struct {
        ron_str_t    bytes;
        const char  *std, *url;
    } rows[] = {
        { TEXT(""), "", "" },
        { TEXT("f"), "Zg==", "Zg" },
        { TEXT("fo"), "Zm8=", "Zm8" },
        { TEXT("foo"), "Zm9v", "Zm9v" },
        { TEXT("foob"), "Zm9vYg==", "Zm9vYg" },
        { TEXT("fooba"), "Zm9vYmE=", "Zm9vYmE" },
        { TEXT("foobar"), "Zm9vYmFy", "Zm9vYmFy" },
        { TEXT("\xfb\xff\xfe"), "+//+", "-__-" },
        { TEXT("\0"), "AA==", "AA" },
        { TEXT("\xff\xff"), "//8=", "__8" }
    };

    static const ron_str_t  bad_std[] = {
        TEXT("Z"), TEXT("Zg"), TEXT("Zg="), TEXT("Zg==="), TEXT("="),
        TEXT("=="), TEXT("===="), TEXT("Z==="), TEXT("Zh=="), TEXT("Zm9="),
        TEXT("Zm8"), TEXT("Zm8=="), TEXT("Zm=8"), TEXT("=Zm8"), TEXT("Zm9v "),
        TEXT("Zm 9"), TEXT("Zm9v\n"), TEXT("Zm9\0"), TEXT("-__-"),
        TEXT("Zg==Zg=="), TEXT("Zm8=Zm8="), TEXT("Zm9@"), TEXT("Zm9["),
        TEXT("Zm9`"), TEXT("Zm9{"), TEXT("Zm9:"), TEXT("Zm9\xff")
    };

    static const ron_str_t  bad_url[] = {
        TEXT("Z"), TEXT("Zg=="), TEXT("Zm8="), TEXT("Zh"), TEXT("Zm9"),
        TEXT("+//+"), TEXT("Zm9vY"), TEXT("Zm9v "), TEXT(" "), TEXT("=")
    };

    for (i = 0; i < ron_array_n(rows); i++) {
        n = ron_base64_encode(rows[i].bytes, text);
        text[n] = '\0';
        is_str(text, rows[i].std, "encode %s", rows[i].std);
        is_u64(n, ron_base64_len(rows[i].bytes.len), "its length");

        n = ron_base64url_encode(rows[i].bytes, text);
        text[n] = '\0';
        is_str(text, rows[i].url, "url encode %s", rows[i].url);
        is_u64(n, ron_base64url_len(rows[i].bytes.len), "its length");

        is_status(ron_base64_decode(ron_cstr(rows[i].std), out, sizeof(out),
                                    &len), RON_OK, "decode");
        ok(ron_str_eq((ron_str_t) { len, out }, rows[i].bytes), "its bytes");

        is_status(ron_base64url_decode(ron_cstr(rows[i].url), out,
                                       sizeof(out), &len), RON_OK,
                  "url decode");
        ok(ron_str_eq((ron_str_t) { len, out }, rows[i].bytes), "its bytes");
    }

    for (i = 0; i < ron_array_n(bad_std); i++) {
        len = 7;
        is_status(ron_base64_decode(bad_std[i], out, sizeof(out), &len),
                  RON_EINVAL, "base64 row %zu refused", i);
        is_u64(len, 0, "no bytes");
    }

    for (i = 0; i < ron_array_n(bad_url); i++) {
        len = 7;
        is_status(ron_base64url_decode(bad_url[i], out, sizeof(out), &len),
                  RON_EINVAL, "base64url row %zu refused", i);
        is_u64(len, 0, "no bytes");
    }

    memset(out, 0x55, sizeof(out));
    len = 7;
    is_status(ron_base64_decode(ron_str("Zm9vYmFy"), out, 5, &len), RON_ERANGE,
              "no room");
    ok(len == 0 && out[5] == 0x55, "and not written");
    is_status(ron_base64_decode(ron_str("Zm9vYmFy"), out, 6, &len), RON_OK,
              "just room");

    wrong = 0;

    for (i = 0; i < 20000; i++) {
        s.data = in;
        s.len = next64() % 32;

        for (j = 0; j < s.len; j++) {
            in[j] = (uint8_t) next64();
        }

        n = ron_base64_encode(s, text);
        wrong += ron_base64_decode((ron_str_t) { n, (uint8_t *) text }, out,
                                   sizeof(out), &len) != RON_OK
                 || !ron_str_eq(s, (ron_str_t) { len, out });

        n = ron_base64url_encode(s, text);
        wrong += ron_base64url_decode((ron_str_t) { n, (uint8_t *) text }, out,
                                      sizeof(out), &len) != RON_OK
                 || !ron_str_eq(s, (ron_str_t) { len, out });
    }

    is_u64(wrong, 0, "20000 round trips");
}


/* Whatever is taken is what the encoder would have written. */
static void
test_base64_canonical(void)
{
    char       text[16];
    size_t     i, j, n, len, taken, other;
    uint8_t    in[8], out[16];
    ron_str_t  s;

    static const char  some[] = "AQgw4/+=-_Zz09 \n";

    taken = 0;
    other = 0;

    for (i = 0; i < 300000; i++) {
        s.data = in;
        s.len = next64() % 9;

        for (j = 0; j < s.len; j++) {
            in[j] = (uint8_t) some[next64() % (sizeof(some) - 1)];
        }

        if (ron_base64_decode(s, out, sizeof(out), &len) == RON_OK) {
            n = ron_base64_encode((ron_str_t) { len, out }, text);
            taken++;
            other += !ron_str_eq(s, (ron_str_t) { n, (uint8_t *) text });
        }

        if (ron_base64url_decode(s, out, sizeof(out), &len) == RON_OK) {
            n = ron_base64url_encode((ron_str_t) { len, out }, text);
            taken++;
            other += !ron_str_eq(s, (ron_str_t) { n, (uint8_t *) text });
        }
    }

    ok(taken > 1000, "%zu random texts are base64", taken);
    is_u64(other, 0, "each is the only text of its bytes");
}


static void
test_hex(void)
{
    char     text[64];
    size_t   i, n;
    uint8_t  out[8];

    static const ron_str_t  bad[] = {
        TEXT(""), TEXT("00"), TEXT("000"), TEXT("00000"), TEXT("000000"),
        TEXT("00FF"), TEXT("00fg"), TEXT("00f/"), TEXT("00f:"), TEXT("00`f"),
        TEXT(" 0ff"), TEXT("0x00"), TEXT("00f\0"), TEXT("-1ff")
    };

    n = ron_hex_encode(ron_str("\x00\x01\x7f\x80\xab\xff"), text);
    text[n] = '\0';
    is_str(text, "00017f80abff", "hex");

    is_status(ron_hex_decode(ron_str("00017f80abff"), out, 6), RON_OK,
              "and back");
    is_mem(out, "\x00\x01\x7f\x80\xab\xff", 6, "its bytes");

    for (i = 0; i < ron_array_n(bad); i++) {
        memset(out, 0x55, sizeof(out));
        is_status(ron_hex_decode(bad[i], out, 2), RON_EINVAL,
                  "hex row %zu refused", i);
        is_mem(out, "\0\0\x55", 3, "and zeroed");
    }

    is_status(ron_hex_decode(ron_null_str, out, 0), RON_OK, "nothing");
}


static void
test_crockford(void)
{
    char        text[RON_CROCKFORD_LEN + 1];
    size_t      i, wrong;
    uint8_t     random[RON_ULID_RANDOM_LEN];
    uint64_t    ms;
    ron_u128_t  v, w;

    static const struct {
        uint64_t     hi, lo;
        const char  *text;
    } rows[] = {
        { 0, 0, "00000000000000000000000000" },
        { 0, 1, "00000000000000000000000001" },
        { 0, 31, "0000000000000000000000000Z" },
        { 0, 32, "00000000000000000000000010" },
        { UINT64_MAX, UINT64_MAX, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ" },
        { UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210),
          "014D2PF2DBSQQZXQ5TK1V58CGG" }
    };

    static const struct {
        ron_str_t     text;
        ron_status_t  rc;
    } bad[] = {
        { TEXT(""), RON_EINVAL },
        { TEXT("0000000000000000000000000"), RON_EINVAL },
        { TEXT("000000000000000000000000000"), RON_EINVAL },
        { TEXT("0000000000000000000000000z"), RON_EINVAL },
        { TEXT("0000000000000000000000000I"), RON_EINVAL },
        { TEXT("0000000000000000000000000L"), RON_EINVAL },
        { TEXT("0000000000000000000000000O"), RON_EINVAL },
        { TEXT("0000000000000000000000000U"), RON_EINVAL },
        { TEXT("0000000000000000000000000-"), RON_EINVAL },
        { TEXT("0000000000000000000000000@"), RON_EINVAL },
        { TEXT("0000000000000000000000000["), RON_EINVAL },
        { TEXT("0000000000000000000000000\0"), RON_EINVAL },
        { TEXT("80000000000000000000000000"), RON_ERANGE },
        { TEXT("ZZZZZZZZZZZZZZZZZZZZZZZZZZ"), RON_ERANGE }
    };

    for (i = 0; i < ron_array_n(rows); i++) {
        v = (ron_u128_t) rows[i].hi << 64 | rows[i].lo;
        text[ron_crockford_encode(v, text)] = '\0';
        is_str(text, rows[i].text, "crockford %s", rows[i].text);
        is_status(ron_crockford_decode(ron_cstr(text), &w), RON_OK, "back");
        ok(v == w, "the same");
    }

    for (i = 0; i < ron_array_n(bad); i++) {
        v = 7;
        is_status(ron_crockford_decode(bad[i].text, &v), bad[i].rc,
                  "crockford row %zu refused", i);
        ok(v == 0, "and zeroed");
    }

    wrong = 0;

    for (i = 0; i < 20000; i++) {
        v = (ron_u128_t) next64() << 64 | next64();
        (void) ron_crockford_encode(v, text);
        wrong += ron_crockford_decode((ron_str_t) { 26, (uint8_t *) text }, &w)
                 != RON_OK || v != w;
    }

    is_u64(wrong, 0, "20000 round trips");

    /* the first ten characters of a ULID are its time */

    text[ron_ulid_encode(UINT64_C(1469918176385),
                         (const uint8_t *) "\0\1\2\3\4\5\6\7\x08\x09", text)]
        = '\0';
    ok(memcmp(text, "01ARYZ6S41", 10) == 0, "ULID of a time: %s", text);

    is_status(ron_ulid_decode(ron_cstr(text), &ms, random), RON_OK, "back");
    is_u64(ms, UINT64_C(1469918176385), "the time");
    is_mem(random, "\0\1\2\3\4\5\6\7\x08\x09", 10, "the random bytes");

    text[0] = '8';
    is_status(ron_ulid_decode(ron_cstr(text), &ms, random), RON_ERANGE,
              "over 128 bits");
    ok(ms == 0 && random[9] == 0, "zeroed");
}


static void
test_time(void)
{
    char      text[RON_TIME_LEN + 1];
    size_t    i, wrong, days;
    uint64_t  ms, back;
    unsigned  y, m, d, last;

    static const struct {
        uint64_t     ms;
        const char  *text;
    } rows[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { 1, "1970-01-01T00:00:00.001Z" },
        { UINT64_C(86399999), "1970-01-01T23:59:59.999Z" },
        { UINT64_C(86400000), "1970-01-02T00:00:00.000Z" },
        { UINT64_C(951782400000), "2000-02-29T00:00:00.000Z" },
        { UINT64_C(951868800000), "2000-03-01T00:00:00.000Z" },
        { UINT64_C(1000000000000), "2001-09-09T01:46:40.000Z" },
        { UINT64_C(1234567890123), "2009-02-13T23:31:30.123Z" },
        { UINT64_C(1767323045678), "2026-01-02T03:04:05.678Z" },
        { UINT64_C(2147483647000), "2038-01-19T03:14:07.000Z" },
        { UINT64_C(4107542400000), "2100-03-01T00:00:00.000Z" },
        { RON_TIME_MAX_MS, "9999-12-31T23:59:59.999Z" }
    };

    static const struct {
        ron_str_t     text;
        ron_status_t  rc;
    } bad[] = {
        { TEXT(""), RON_EINVAL },
        { TEXT("2026-01-02T03:04:05.678"), RON_EINVAL },
        { TEXT("2026-01-02T03:04:05.678ZZ"), RON_EINVAL },
        { TEXT("2026-01-02T03:04:05.678z"), RON_EINVAL },
        { TEXT("2026-01-02t03:04:05.678Z"), RON_EINVAL },
        { TEXT("2026-01-02 03:04:05.678Z"), RON_EINVAL },
        { TEXT("2026/01/02T03:04:05.678Z"), RON_EINVAL },
        { TEXT("2026-01-02T03:04:05,678Z"), RON_EINVAL },
        { TEXT("2026-01-02T03:04:05Z"), RON_EINVAL },
        { TEXT("2026-01-02T03:04:05+00:0"), RON_EINVAL },
        { TEXT("2026-00-02T03:04:05.678Z"), RON_EINVAL },
        { TEXT("2026-13-02T03:04:05.678Z"), RON_EINVAL },
        { TEXT("2026-01-00T03:04:05.678Z"), RON_EINVAL },
        { TEXT("2026-01-32T03:04:05.678Z"), RON_EINVAL },
        { TEXT("2026-04-31T03:04:05.678Z"), RON_EINVAL },
        { TEXT("2026-02-29T03:04:05.678Z"), RON_EINVAL },
        { TEXT("2100-02-29T03:04:05.678Z"), RON_EINVAL },
        { TEXT("2024-02-30T03:04:05.678Z"), RON_EINVAL },
        { TEXT("2026-01-02T24:04:05.678Z"), RON_EINVAL },
        { TEXT("2026-01-02T03:60:05.678Z"), RON_EINVAL },
        { TEXT("2016-12-31T23:59:60.000Z"), RON_EINVAL },
        { TEXT("2026-01-02T03:04:05.67aZ"), RON_EINVAL },
        { TEXT("+026-01-02T03:04:05.678Z"), RON_EINVAL },
        { TEXT("2026-01-02T03:04: 5.678Z"), RON_EINVAL },
        { TEXT("1969-12-31T23:59:59.999Z"), RON_ERANGE },
        { TEXT("0000-01-01T00:00:00.000Z"), RON_ERANGE }
    };

    for (i = 0; i < ron_array_n(rows); i++) {
        is_status(ron_time_print(rows[i].ms, text), RON_OK, "print");
        is_str(text, rows[i].text, "time %s", rows[i].text);
        is_status(ron_time_parse(ron_cstr(rows[i].text), &ms), RON_OK,
                  "parse");
        is_u64(ms, rows[i].ms, "its milliseconds");
    }

    is_status(ron_time_print(RON_TIME_MAX_MS + 1, text), RON_ERANGE,
              "the year 10000");
    is_str(text, "", "is no text");
    is_status(ron_time_print(UINT64_MAX, text), RON_ERANGE, "the end of time");

    for (i = 0; i < ron_array_n(bad); i++) {
        ms = 7;
        is_status(ron_time_parse(bad[i].text, &ms), bad[i].rc,
                  "time row %zu refused: %.24s", i,
                  (const char *) bad[i].text.data);
        is_u64(ms, 0, "and zeroed");
    }

    /* every day of 8030 years, counted one by one */

    wrong = 0;
    days = 0;

    for (y = 1970; y <= 9999; y++) {
        for (m = 1; m <= 12; m++) {
            last = 30 + (m + (m > 7)) % 2;

            if (m == 2) {
                last = y % 400 == 0 || (y % 4 == 0 && y % 100 != 0) ? 29 : 28;
            }

            for (d = 1; d <= last; d++) {
                char  want[64];

                ms = days++ * UINT64_C(86400000) + 45296789;
                (void) snprintf(want, sizeof(want),
                                "%04u-%02u-%02uT12:34:56.789Z", y, m, d);

                wrong += ron_time_print(ms, text) != RON_OK
                         || strcmp(text, want) != 0
                         || ron_time_parse(ron_cstr(want), &back) != RON_OK
                         || back != ms;
            }
        }
    }

    is_u64(days, 2932897, "the days from 1970 to 9999");
    is_u64(wrong, 0, "are all right, both ways");
}


/* What RFC 3629 says, by decoding and encoding again. */
static bool
is_utf8(const uint8_t *p, size_t len)
{
    size_t    i, n;
    uint32_t  c;

    static const uint32_t  first[5] = { 0, 0, 0x80, 0x800, 0x10000 };

    while (len != 0) {
        c = p[0];
        n = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3
            : c >> 3 == 30 ? 4 : 0;

        if (n == 0 || n > len) {
            return false;
        }

        c = n == 1 ? c : c & (0x7fu >> n);

        for (i = 1; i < n; i++) {
            if (p[i] >> 6 != 2) {
                return false;
            }

            c = c << 6 | (p[i] & 0x3f);
        }

        if (c < first[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
            return false;
        }

        p += n;
        len -= n;
    }

    return true;
}


static void
test_utf8(void)
{
    size_t    i, j, n, wrong, off;
    uint8_t   p[40];
    uint32_t  v;

    static const uint8_t  seconds[] = {
        0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff
    };

    wrong = 0;

    /* all texts of one, two and three bytes; and of four with these edges */

    for (v = 0; v < 1u << 24; v++) {
        p[0] = (uint8_t) (v >> 16);
        p[1] = (uint8_t) (v >> 8);
        p[2] = (uint8_t) v;

        wrong += (ron_utf8_check((ron_str_t) { 3, p }, NULL) == RON_OK)
                 != is_utf8(p, 3);
    }

    is_u64(wrong, 0, "all texts of three bytes");

    for (v = 0; v < 1u << 16; v++) {
        p[0] = (uint8_t) (v >> 8);
        p[1] = (uint8_t) v;

        wrong += (ron_utf8_check((ron_str_t) { 2, p }, NULL) == RON_OK)
                 != is_utf8(p, 2);
        wrong += (ron_utf8_check((ron_str_t) { 1, p }, NULL) == RON_OK)
                 != is_utf8(p, 1);

        for (i = 0; i < ron_array_n(seconds); i++) {
            for (j = 0; j < ron_array_n(seconds); j++) {
                p[2] = seconds[i];
                p[3] = seconds[j];
                wrong += (ron_utf8_check((ron_str_t) { 4, p }, NULL) == RON_OK)
                         != is_utf8(p, 4);
            }
        }
    }

    is_u64(wrong, 0, "texts of one, two and four bytes");

    /* a bad byte at every place of texts around the fast step */

    n = 0;

    for (i = 1; i <= sizeof(p); i++) {
        for (j = 0; j < i; j++) {
            memset(p, 'a', sizeof(p));
            p[j] = 0x80;
            off = 99;
            wrong += ron_utf8_check((ron_str_t) { i, p }, &off) != RON_EINVAL
                     || off != j;
            n++;

            if (j + 1 < i) {
                p[j] = 0xc3;
                p[j + 1] = 0xa9;
                off = 99;
                wrong += ron_utf8_check((ron_str_t) { i, p }, &off) != RON_OK
                         || off != 0;
                n++;
            }
        }
    }

    is_u64(wrong, 0, "%zu long texts", n);
    is_status(ron_utf8_check(ron_null_str, &off), RON_OK, "the empty text");
}


int
main(void)
{
    test_base64();
    test_base64_canonical();
    test_hex();
    test_crockford();
    test_time();
    test_utf8();

    return done_testing();
}
