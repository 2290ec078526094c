
/*
 * A growable byte buffer, and the readers and writers of the integers that
 * go into it.  All integers on disk and on the wire are big-endian; lengths
 * and counts are varints (LEB128, at most 10 bytes, shortest form only).
 *
 * A writer never checks each put: a buffer that could not grow becomes
 * `failed`, ignores everything after, and says so once at the end.  A reader
 * works the same way: one check after the last get.
 */

#ifndef RON_BUF_H
#define RON_BUF_H


#include "ron.h"


typedef struct {
    uint8_t  *data;
    size_t    len;
    size_t    cap;
    size_t    max;          /* 0: bounded by memory only */
    bool      failed;
} ron_buf_t;


typedef struct {
    const uint8_t  *pos;
    const uint8_t  *end;
    bool            failed;
} ron_rd_t;


/* An empty buffer that will never hold more than `max` bytes (0: no bound). */
void ron_buf_init(ron_buf_t *b, size_t max);
void ron_buf_free(ron_buf_t *b);
void ron_buf_reset(ron_buf_t *b);

/* RON_OK, or why some put did not fit: RON_ENOMEM or RON_EFULL. */
ron_status_t ron_buf_status(const ron_buf_t *b);

/* For ron_buf_reserve(): when there is no room yet. */
uint8_t *ron_buf_more(ron_buf_t *b, size_t n);

/*
 * Room for n more bytes at the end; NULL if it cannot be had.  Here and in
 * ron_buf_put() the common case is worth being seen by the compiler.
 */
static inline uint8_t *
ron_buf_reserve(ron_buf_t *b, size_t n)
{
    if (b->failed || b->data == NULL || n > b->cap - b->len) {
        return ron_buf_more(b, n);
    }

    return b->data + b->len;
}


static inline void
ron_buf_put(ron_buf_t *b, const void *data, size_t len)
{
    uint8_t  *p;

    if (len == 0) {
        return;
    }

    p = ron_buf_reserve(b, len);

    if (p != NULL) {
        memcpy(p, data, len);
        b->len += len;
    }
}


static inline void
ron_buf_put_u8(ron_buf_t *b, uint8_t v)
{
    uint8_t  *p;

    p = ron_buf_reserve(b, 1);

    if (p != NULL) {
        *p = v;
        b->len++;
    }
}


void ron_buf_put_str(ron_buf_t *b, ron_str_t s);
void ron_buf_put_cstr(ron_buf_t *b, const char *s);
void ron_buf_put_u16(ron_buf_t *b, uint16_t v);
void ron_buf_put_u32(ron_buf_t *b, uint32_t v);
void ron_buf_put_u48(ron_buf_t *b, uint64_t v);
void ron_buf_put_u64(ron_buf_t *b, uint64_t v);
void ron_buf_put_u128(ron_buf_t *b, ron_u128_t v);

/* For ron_buf_put_varint(): more than one byte of it. */
void ron_buf_put_varint_long(ron_buf_t *b, uint64_t v);

static inline void
ron_buf_put_varint(ron_buf_t *b, uint64_t v)
{
    if (v < 0x80) {
        ron_buf_put_u8(b, (uint8_t) v);
        return;
    }

    ron_buf_put_varint_long(b, v);
}

void ron_buf_put_lstr(ron_buf_t *b, ron_str_t s);     /* varint length first */
void ron_buf_printf(ron_buf_t *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static inline ron_str_t
ron_buf_str(const ron_buf_t *b)
{
    return (ron_str_t) { b->len, b->data };
}


void ron_rd_init(ron_rd_t *rd, ron_str_t s);
size_t ron_rd_left(const ron_rd_t *rd);

/* RON_OK when nothing failed and nothing is left, else RON_EINVAL. */
ron_status_t ron_rd_end(const ron_rd_t *rd);

/* For ron_rd_u8() and ron_rd_varint(): the end, or more than one byte. */
uint8_t ron_rd_u8_fail(ron_rd_t *rd);
uint64_t ron_rd_varint_long(ron_rd_t *rd);

static inline uint8_t
ron_rd_u8(ron_rd_t *rd)
{
    if (rd->failed || rd->pos == rd->end) {
        return ron_rd_u8_fail(rd);
    }

    return *rd->pos++;
}

static inline uint64_t
ron_rd_varint(ron_rd_t *rd)
{
    if (rd->failed || rd->pos == rd->end || (*rd->pos & 0x80)) {
        return ron_rd_varint_long(rd);
    }

    return *rd->pos++;
}

uint16_t ron_rd_u16(ron_rd_t *rd);
uint32_t ron_rd_u32(ron_rd_t *rd);
uint64_t ron_rd_u48(ron_rd_t *rd);
uint64_t ron_rd_u64(ron_rd_t *rd);
ron_u128_t ron_rd_u128(ron_rd_t *rd);
ron_str_t ron_rd_bytes(ron_rd_t *rd, size_t len);
ron_str_t ron_rd_lstr(ron_rd_t *rd);
void ron_rd_hash(ron_rd_t *rd, ron_hash_t *hash);


#endif /* RON_BUF_H */
