
/*
 * What the fuzz targets share.  An input is read as a string of choices; when
 * it has ended, every choice is 0, so that a shorter input is a simpler one.
 * A property that does not hold is a failed RON_ASSERT().
 */

#ifndef RON_FUZZ_H
#define RON_FUZZ_H


#include "ron.h"
#include "ron_buf.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


typedef struct {
    const uint8_t  *pos;
    const uint8_t  *end;
} fuzz_t;


static inline uint64_t
fuzz_int(fuzz_t *f, unsigned bytes)
{
    uint64_t  v;

    for (v = 0; bytes > 0; bytes--) {
        v = v << 8 | (f->pos < f->end ? *f->pos++ : 0);
    }

    return v;
}


static inline uint8_t
fuzz_u8(fuzz_t *f)
{
    return (uint8_t) fuzz_int(f, 1);
}


static inline uint32_t
fuzz_below(fuzz_t *f, uint32_t n)
{
    return (uint32_t) (fuzz_int(f, n > 256 ? 4 : 1) % n);
}


static inline ron_u128_t
fuzz_u128(fuzz_t *f)
{
    ron_u128_t  v;

    v = fuzz_int(f, 8);

    return v << 64 | fuzz_int(f, 8);
}


static inline size_t
fuzz_left(const fuzz_t *f)
{
    return (size_t) (f->end - f->pos);
}


/* At most n bytes of the input itself. */
static inline ron_str_t
fuzz_bytes(fuzz_t *f, size_t n)
{
    ron_str_t  s;

    s.len = ron_min(n, fuzz_left(f));
    s.data = f->pos;
    f->pos += s.len;

    return s;
}


static inline ron_str_t
fuzz_rest(fuzz_t *f)
{
    return fuzz_bytes(f, fuzz_left(f));
}


#endif /* RON_FUZZ_H */
