
/*
 * Compressed bodies.  What zlib compresses comes back whole at its length and
 * not one byte below it; anything else is refused or is what zlib says too.
 */

#include <stdlib.h>
#include <zlib.h>

#include "ron_fuzz.h"
#include "ron_gunzip.h"


#define PLAIN_MAX  (256 * 1024)


/* The first bytes of the input, again and again. */

static void
fuzz_back(fuzz_t *f)
{
    int          level;
    size_t       n, period;
    uint8_t     *plain, *room;
    z_stream     z;
    ron_str_t    text;
    ron_buf_t    out;

    level = (int) fuzz_below(f, 10);
    n = fuzz_below(f, PLAIN_MAX) + 1;
    text = fuzz_rest(f);
    period = ron_max(text.len, (size_t) 1);

    plain = malloc(n);
    room = malloc(n + n / 8 + 1024);
    RON_ASSERT(plain != NULL && room != NULL);

    for (size_t i = 0; i < n; i++) {
        plain[i] = text.len ? text.data[i % period] : 0;
    }

    memset(&z, 0, sizeof(z));
    RON_ASSERT(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8,
                            Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = plain;
    z.avail_in = (uInt) n;
    z.next_out = room;
    z.avail_out = (uInt) (n + n / 8 + 1024);
    RON_ASSERT(deflate(&z, Z_FINISH) == Z_STREAM_END);
    text = (ron_str_t) { z.total_out, room };
    (void) deflateEnd(&z);

    ron_buf_init(&out, 0);
    RON_ASSERT(ron_gunzip(text, n, &out) == RON_OK);
    RON_ASSERT(out.len == n && memcmp(out.data, plain, n) == 0);

    ron_buf_reset(&out);
    RON_ASSERT(ron_gunzip(text, n - 1, &out) == RON_EFULL);
    RON_ASSERT(out.len < n);

    text.len--;
    ron_buf_reset(&out);
    RON_ASSERT(ron_gunzip(text, n, &out) == RON_EINVAL);

    ron_buf_free(&out);
    free(plain);
    free(room);
}


static void
fuzz_any(fuzz_t *f)
{
    int           rc;
    size_t        max;
    uint8_t      *plain;
    z_stream      z;
    ron_str_t     text;
    ron_buf_t     out;
    ron_status_t  status;

    max = fuzz_below(f, PLAIN_MAX);
    text = fuzz_rest(f);

    ron_buf_init(&out, 0);
    status = ron_gunzip(text, max, &out);
    RON_ASSERT(status == RON_OK || status == RON_EINVAL
               || status == RON_EFULL);
    RON_ASSERT(out.len <= max);

    plain = malloc(max + 1);
    RON_ASSERT(plain != NULL);
    memset(&z, 0, sizeof(z));
    RON_ASSERT(inflateInit2(&z, 15 + 16) == Z_OK);
    z.next_in = (Bytef *) (uintptr_t) text.data;
    z.avail_in = (uInt) text.len;
    z.next_out = plain;
    z.avail_out = (uInt) max + 1;
    rc = inflate(&z, Z_FINISH);

    RON_ASSERT((status == RON_OK)
               == (rc == Z_STREAM_END && z.avail_in == 0
                   && z.total_out <= max));

    if (status == RON_OK) {
        RON_ASSERT(out.len == z.total_out
                   && (out.len == 0
                       || memcmp(out.data, plain, out.len) == 0));
    }

    (void) inflateEnd(&z);
    free(plain);
    ron_buf_free(&out);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t  f = { data, data + len };

    if (fuzz_u8(&f) & 1) {
        fuzz_back(&f);

    } else {
        fuzz_any(&f);
    }

    return 0;
}
