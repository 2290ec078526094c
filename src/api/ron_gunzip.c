
#include <limits.h>
#include <zlib.h>

#include "ron_gunzip.h"


#define RON_GUNZIP_CHUNK   16384
#define RON_GUNZIP_WINDOW  (15 + 16)        /* 32 KiB, a gzip header only */


static ron_status_t ron_gunzip_run(z_stream *z, size_t max, ron_buf_t *out);


ron_status_t
ron_gunzip(ron_str_t in, size_t max, ron_buf_t *out)
{
    z_stream      z;
    ron_status_t  rc;

    if (in.len == 0 || in.len > UINT_MAX) {
        return RON_EINVAL;
    }

    memset(&z, 0, sizeof(z));

    if (inflateInit2(&z, RON_GUNZIP_WINDOW) != Z_OK) {
        return RON_ENOMEM;
    }

    /* zlib reads from it only */

    z.next_in = (Bytef *) (uintptr_t) in.data;
    z.avail_in = (uInt) in.len;

    rc = ron_gunzip_run(&z, max, out);

    (void) inflateEnd(&z);

    return rc;
}


static ron_status_t
ron_gunzip_run(z_stream *z, size_t max, ron_buf_t *out)
{
    int      rc;
    size_t   n, total;
    uint8_t  chunk[RON_GUNZIP_CHUNK];

    total = 0;

    do {
        z->next_out = chunk;
        z->avail_out = sizeof(chunk);

        rc = inflate(z, Z_NO_FLUSH);

        n = sizeof(chunk) - z->avail_out;
        total += n;

        if (total > max) {
            return RON_EFULL;
        }

        ron_buf_put(out, chunk, n);

        if (ron_buf_status(out) != RON_OK) {
            return ron_buf_status(out);
        }

        /* no progress: the input has ended, and the member has not */

        if (rc == Z_BUF_ERROR || (rc == Z_OK && n == 0 && z->avail_in == 0)) {
            return RON_EINVAL;
        }

    } while (rc == Z_OK);

    if (rc == Z_MEM_ERROR) {
        return RON_ENOMEM;
    }

    return rc == Z_STREAM_END && z->avail_in == 0 ? RON_OK : RON_EINVAL;
}
