
/*
 * Buffers and readers.
 *
 * Invariants of a buffer: len <= cap, and cap <= max when there is a max.
 * What was put before a failure stays readable; the put that failed left
 * nothing behind.  The block is one byte longer than cap, so that printf's
 * terminator never needs room that the bound would refuse.
 *
 * Invariants of a reader: a failed reader has nothing left, so a loop over
 * ron_rd_left() ends, and every get from it is zero or empty.
 */

#include "ron_buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


#define RON_BUF_FIRST_CAP  64

/*
 * There are two reasons to fail and one flag.  The second reason lives in the
 * top bit of `max`, which no real bound can have; it is set only together
 * with `failed`.
 */
#define RON_BUF_NO_MEMORY  (SIZE_MAX / 2 + 1)
#define RON_BUF_MAX        (SIZE_MAX / 2 - 1)


static bool ron_buf_grow(ron_buf_t *b, size_t n);
static void ron_buf_put_be(ron_buf_t *b, uint64_t v, size_t len);
static inline void ron_be64_put(uint8_t *p, uint64_t v);
static inline uint64_t ron_be64_get(const uint8_t *p);
static const uint8_t *ron_rd_take(ron_rd_t *rd, uint64_t len);
static uint64_t ron_rd_be(ron_rd_t *rd, size_t len);
static void ron_rd_fail(ron_rd_t *rd);


void
ron_buf_init(ron_buf_t *b, size_t max)
{
    memset(b, 0, sizeof(ron_buf_t));
    b->max = ron_min(max, RON_BUF_MAX);
}


void
ron_buf_free(ron_buf_t *b)
{
    free(b->data);
    ron_buf_init(b, b->max & ~RON_BUF_NO_MEMORY);
}


void
ron_buf_reset(ron_buf_t *b)
{
    b->len = 0;
    b->failed = false;
    b->max &= ~RON_BUF_NO_MEMORY;
}


ron_status_t
ron_buf_status(const ron_buf_t *b)
{
    if (!b->failed) {
        return RON_OK;
    }

    return b->max & RON_BUF_NO_MEMORY ? RON_ENOMEM : RON_EFULL;
}


uint8_t *
ron_buf_more(ron_buf_t *b, size_t n)
{
    if (b->failed) {
        return NULL;
    }

    if ((n > b->cap - b->len || b->data == NULL) && !ron_buf_grow(b, n)) {
        return NULL;
    }

    return b->data + b->len;
}


/* Doubles, so that n puts cost O(n); the bound and the need come first. */

static bool
ron_buf_grow(ron_buf_t *b, size_t n)
{
    size_t    max, cap;
    uint8_t  *data;

    max = b->max ? b->max : RON_BUF_MAX;

    if (n > max - b->len) {
        b->failed = true;
        b->max |= b->max ? 0 : RON_BUF_NO_MEMORY;
        return false;
    }

    cap = b->cap > max / 2 ? max : b->cap * 2;
    cap = ron_max(cap, b->len + n);
    cap = ron_max(cap, RON_BUF_FIRST_CAP);
    cap = ron_min(cap, max);

    data = realloc(b->data, cap + 1);
    if (data == NULL) {
        b->failed = true;
        b->max |= RON_BUF_NO_MEMORY;
        return false;
    }

    b->data = data;
    b->cap = cap;

    return true;
}


void
ron_buf_put_str(ron_buf_t *b, ron_str_t s)
{
    ron_buf_put(b, s.data, s.len);
}


void
ron_buf_put_cstr(ron_buf_t *b, const char *s)
{
    ron_buf_put(b, s, strlen(s));
}


/* Most integers have eight bytes: one instruction or two. */

static inline void
ron_be64_put(uint8_t *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif

    memcpy(p, &v, sizeof(v));
}


static inline uint64_t
ron_be64_get(const uint8_t *p)
{
    uint64_t  v;

    memcpy(&v, p, sizeof(v));

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif

    return v;
}


static void
ron_buf_put_be(ron_buf_t *b, uint64_t v, size_t len)
{
    uint8_t  *p;

    p = ron_buf_reserve(b, len);
    if (p == NULL) {
        return;
    }

    b->len += len;

    while (len--) {
        p[len] = (uint8_t) v;
        v >>= 8;
    }
}


void
ron_buf_put_u16(ron_buf_t *b, uint16_t v)
{
    ron_buf_put_be(b, v, 2);
}


void
ron_buf_put_u32(ron_buf_t *b, uint32_t v)
{
    ron_buf_put_be(b, v, 4);
}


void
ron_buf_put_u48(ron_buf_t *b, uint64_t v)
{
    RON_ASSERT(v >> 48 == 0);

    ron_buf_put_be(b, v, 6);
}


void
ron_buf_put_u64(ron_buf_t *b, uint64_t v)
{
    uint8_t  *p;

    p = ron_buf_reserve(b, 8);
    if (p == NULL) {
        return;
    }

    ron_be64_put(p, v);
    b->len += 8;
}


/* Both halves or none, so that a full buffer never ends in half of it. */

void
ron_buf_put_u128(ron_buf_t *b, ron_u128_t v)
{
    uint8_t  *p;

    p = ron_buf_reserve(b, 16);
    if (p == NULL) {
        return;
    }

    ron_be64_put(p, (uint64_t) (v >> 64));
    ron_be64_put(p + 8, (uint64_t) v);
    b->len += 16;
}


void
ron_buf_put_varint_long(ron_buf_t *b, uint64_t v)
{
    size_t   len;
    uint8_t  bytes[10];

    len = 0;

    while (v >= 0x80) {
        bytes[len++] = (uint8_t) (v | 0x80);
        v >>= 7;
    }

    bytes[len++] = (uint8_t) v;

    ron_buf_put(b, bytes, len);
}


void
ron_buf_put_lstr(ron_buf_t *b, ron_str_t s)
{
    size_t    len;
    uint8_t  *p;

    if (s.len < 0x80) {
        p = ron_buf_reserve(b, 1 + s.len);

        if (p != NULL) {
            *p++ = (uint8_t) s.len;
            b->len += 1 + s.len;

            if (s.len != 0) {
                memcpy(p, s.data, s.len);
            }
        }

        return;
    }

    len = b->len;

    ron_buf_put_varint(b, s.len);
    ron_buf_put(b, s.data, s.len);

    if (b->failed) {
        b->len = len;
    }
}


void
ron_buf_printf(ron_buf_t *b, const char *fmt, ...)
{
    int       n;
    size_t    room;
    uint8_t  *p;
    va_list   args;

    p = ron_buf_reserve(b, 0);
    if (p == NULL) {
        return;
    }

    room = b->cap - b->len;

    va_start(args, fmt);
    n = vsnprintf((char *) p, room + 1, fmt, args);
    va_end(args);

    RON_ASSERT(n >= 0);

    if ((size_t) n > room) {

        p = ron_buf_reserve(b, (size_t) n);
        if (p == NULL) {
            return;
        }

        va_start(args, fmt);
        (void) vsnprintf((char *) p, (size_t) n + 1, fmt, args);
        va_end(args);
    }

    b->len += (size_t) n;
}


void
ron_rd_init(ron_rd_t *rd, ron_str_t s)
{
    rd->pos = s.data;
    rd->end = s.len ? s.data + s.len : s.data;
    rd->failed = false;
}


size_t
ron_rd_left(const ron_rd_t *rd)
{
    return (size_t) (rd->end - rd->pos);
}


ron_status_t
ron_rd_end(const ron_rd_t *rd)
{
    return rd->failed || rd->pos != rd->end ? RON_EINVAL : RON_OK;
}


static void
ron_rd_fail(ron_rd_t *rd)
{
    rd->failed = true;
    rd->pos = rd->end;
}


/* The next len bytes, or NULL and a failed reader. */

static const uint8_t *
ron_rd_take(ron_rd_t *rd, uint64_t len)
{
    const uint8_t  *p;

    if (rd->failed || len > ron_rd_left(rd)) {
        ron_rd_fail(rd);
        return NULL;
    }

    p = rd->pos;

    if (len) {
        rd->pos += len;
    }

    return p;
}


static uint64_t
ron_rd_be(ron_rd_t *rd, size_t len)
{
    uint64_t        v;
    const uint8_t  *p;

    p = ron_rd_take(rd, len);
    if (p == NULL) {
        return 0;
    }

    v = 0;

    while (len--) {
        v = v << 8 | *p++;
    }

    return v;
}


uint8_t
ron_rd_u8_fail(ron_rd_t *rd)
{
    ron_rd_fail(rd);

    return 0;
}


uint16_t
ron_rd_u16(ron_rd_t *rd)
{
    return (uint16_t) ron_rd_be(rd, 2);
}


uint32_t
ron_rd_u32(ron_rd_t *rd)
{
    return (uint32_t) ron_rd_be(rd, 4);
}


uint64_t
ron_rd_u48(ron_rd_t *rd)
{
    return ron_rd_be(rd, 6);
}


uint64_t
ron_rd_u64(ron_rd_t *rd)
{
    const uint8_t  *p;

    p = ron_rd_take(rd, 8);

    return p != NULL ? ron_be64_get(p) : 0;
}


ron_u128_t
ron_rd_u128(ron_rd_t *rd)
{
    uint64_t  high, low;

    high = ron_rd_u64(rd);
    low = ron_rd_u64(rd);

    return rd->failed ? 0 : (ron_u128_t) high << 64 | low;
}


uint64_t
ron_rd_varint_long(ron_rd_t *rd)
{
    uint8_t   byte;
    uint64_t  v;
    unsigned  shift;

    v = 0;

    for (shift = 0; shift < 64; shift += 7) {

        byte = ron_rd_u8(rd);

        if (rd->failed) {
            return 0;
        }

        /* the tenth byte has room for one bit */

        if (shift == 63 && byte > 1) {
            break;
        }

        v |= (uint64_t) (byte & 0x7f) << shift;

        if (byte & 0x80) {
            continue;
        }

        /* a last byte of zero says nothing: there is a shorter form */

        if (byte == 0 && shift != 0) {
            break;
        }

        return v;
    }

    ron_rd_fail(rd);

    return 0;
}


ron_str_t
ron_rd_bytes(ron_rd_t *rd, size_t len)
{
    const uint8_t  *p;

    p = ron_rd_take(rd, len);
    if (p == NULL) {
        return ron_null_str;
    }

    return (ron_str_t) { len, p };
}


ron_str_t
ron_rd_lstr(ron_rd_t *rd)
{
    uint64_t        len;
    const uint8_t  *p;

    len = ron_rd_varint(rd);

    p = ron_rd_take(rd, len);
    if (p == NULL) {
        return ron_null_str;
    }

    return (ron_str_t) { (size_t) len, p };
}


void
ron_rd_hash(ron_rd_t *rd, ron_hash_t *hash)
{
    const uint8_t  *p;

    p = ron_rd_take(rd, RON_HASH_LEN);

    if (p == NULL) {
        memset(hash, 0, sizeof(ron_hash_t));
        return;
    }

    memcpy(hash->b, p, RON_HASH_LEN);
}
