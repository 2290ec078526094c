
/*
 * Compressed bodies: what comes out, and what is refused.
 */

#include "ron_test.h"
#include "ron_gunzip.h"

#include <stdlib.h>
#include <zlib.h>


/* One member of n bytes: the text again and again, or noise. */

static ron_str_t
gzipped(const char *text, size_t n, uint8_t *room, size_t cap)
{
    uint8_t  *plain;
    z_stream  z;

    plain = malloc(n + 1);

    for (size_t i = 0; i < n; i++) {
        plain[i] = text ? (uint8_t) text[i % strlen(text)]
                        : (uint8_t) (rand() >> 7);
    }

    memset(&z, 0, sizeof(z));
    (void) deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    z.next_in = plain;
    z.avail_in = (uInt) n;
    z.next_out = room;
    z.avail_out = (uInt) cap;
    is_u64((uint64_t) deflate(&z, Z_FINISH), Z_STREAM_END, "a member");
    (void) deflateEnd(&z);
    free(plain);

    return (ron_str_t) { cap - z.avail_out, room };
}


int
main(void)
{
    size_t      i, bad;
    uint8_t    *room;
    ron_str_t   in, part, twice;
    ron_buf_t   out;

    static uint8_t  space[2 * 1024 * 1024];

    room = space;
    ron_buf_init(&out, 0);

    in = gzipped("{\"a\":1}", 7, room, sizeof(space));
    is_status(ron_gunzip(in, 7, &out), RON_OK, "up to the bound");
    ok(ron_str_eq(ron_buf_str(&out), ron_str("{\"a\":1}")), "what it was");

    ron_buf_reset(&out);
    is_status(ron_gunzip(in, 6, &out), RON_EFULL, "one byte over it");

    /* every prefix, and every changed byte that the checksum sees */

    for (i = 0, bad = 0; i < in.len; i++) {
        part = (ron_str_t) { i, in.data };
        ron_buf_reset(&out);
        bad += ron_gunzip(part, 100, &out) != RON_EINVAL;
    }

    is_u64(bad, 0, "no prefix is a member");

    for (i = 10, bad = 0; i < in.len; i++) {
        room[i] ^= 0x40;
        ron_buf_reset(&out);
        bad += ron_gunzip(in, 100, &out) == RON_OK
               && !ron_str_eq(ron_buf_str(&out), ron_str("{\"a\":1}"));
        room[i] ^= 0x40;
    }

    is_u64(bad, 0, "nor is a changed one, but for unused bits");

    memcpy(room + in.len, room, in.len);
    twice = (ron_str_t) { 2 * in.len, room };
    ron_buf_reset(&out);
    is_status(ron_gunzip(twice, 100, &out), RON_EINVAL, "two are refused");
    twice.len = in.len + 1;
    ron_buf_reset(&out);
    is_status(ron_gunzip(twice, 100, &out), RON_EINVAL, "one byte behind");

    ron_buf_reset(&out);
    is_status(ron_gunzip(ron_str("{\"a\":1}"), 100, &out), RON_EINVAL,
              "what is not gzip");

    /* a bomb costs no more than the bound */

    in = gzipped("0", 100 * 1024 * 1024, room, sizeof(space));
    ok(in.len < 200 * 1024, "100 MiB in %zu bytes", in.len);
    ron_buf_reset(&out);
    is_status(ron_gunzip(in, 1024 * 1024, &out), RON_EFULL, "a bomb");
    ok(out.len <= 1024 * 1024 && out.cap <= 4 * 1024 * 1024,
       "took %zu bytes", out.cap);

    in = gzipped(NULL, 1024 * 1024, room, sizeof(space));
    ron_buf_reset(&out);
    is_status(ron_gunzip(in, 1024 * 1024, &out), RON_OK, "noise");
    is_u64(out.len, 1024 * 1024, "of 1 MiB");

    ron_buf_free(&out);

    return done_testing();
}
