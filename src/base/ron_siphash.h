
/*
 * SipHash with a 128-bit key.
 *
 * SipHash-1-3, 64 bits: for hash tables in RAM whose keys clients choose.  The
 * key is random per process, so nothing may depend on it but where a record
 * sits.
 *
 * SipHash-2-4, 128 bits: a name for a short text that stands for the text
 * itself.  Who does not know the key can neither find two texts of one name
 * nor a text for a name, however long they compute; by chance it is 2^-128.
 */

#ifndef RON_SIPHASH_H
#define RON_SIPHASH_H


#include "ron.h"


typedef struct {
    uint64_t  k0;
    uint64_t  k1;
} ron_sipkey_t;


#define RON_SIP_ROTL(x, b)  ((x) << (b) | (x) >> (64 - (b)))

#define RON_SIP_ROUND(v0, v1, v2, v3)                                         \
    do {                                                                      \
        v0 += v1; v1 = RON_SIP_ROTL(v1, 13); v1 ^= v0;                        \
        v0 = RON_SIP_ROTL(v0, 32);                                            \
        v2 += v3; v3 = RON_SIP_ROTL(v3, 16); v3 ^= v2;                        \
        v0 += v3; v3 = RON_SIP_ROTL(v3, 21); v3 ^= v0;                        \
        v2 += v1; v1 = RON_SIP_ROTL(v1, 17); v1 ^= v2;                        \
        v2 = RON_SIP_ROTL(v2, 32);                                            \
    } while (0)


static inline uint64_t
ron_siphash(const ron_sipkey_t *key, ron_str_t s)
{
    size_t    i;
    uint64_t  v0, v1, v2, v3, m;

    v0 = key->k0 ^ UINT64_C(0x736f6d6570736575);
    v1 = key->k1 ^ UINT64_C(0x646f72616e646f6d);
    v2 = key->k0 ^ UINT64_C(0x6c7967656e657261);
    v3 = key->k1 ^ UINT64_C(0x7465646279746573);

    for (i = 0; i + 8 <= s.len; i += 8) {
        memcpy(&m, s.data + i, 8);
        v3 ^= m;
        RON_SIP_ROUND(v0, v1, v2, v3);
        v0 ^= m;
    }

    m = 0;

    if (i < s.len) {
        memcpy(&m, s.data + i, s.len - i);
    }

    m |= (uint64_t) s.len << 56;

    v3 ^= m;
    RON_SIP_ROUND(v0, v1, v2, v3);
    v0 ^= m;

    v2 ^= 0xff;
    RON_SIP_ROUND(v0, v1, v2, v3);
    RON_SIP_ROUND(v0, v1, v2, v3);
    RON_SIP_ROUND(v0, v1, v2, v3);

    return v0 ^ v1 ^ v2 ^ v3;
}


/* SipHash-2-4-128 of several parts, one after the other. */

typedef struct {
    uint64_t  v0, v1, v2, v3;
    uint64_t  rest;                     /* bytes of a word that is not full */
    size_t    len;
} ron_sip_t;


static inline void
ron_sip_init(ron_sip_t *s, const ron_sipkey_t *key)
{
    s->v0 = key->k0 ^ UINT64_C(0x736f6d6570736575);
    s->v1 = key->k1 ^ UINT64_C(0x646f72616e646f6d) ^ 0xee;
    s->v2 = key->k0 ^ UINT64_C(0x6c7967656e657261);
    s->v3 = key->k1 ^ UINT64_C(0x7465646279746573);
    s->rest = 0;
    s->len = 0;
}


static inline void
ron_sip_word(ron_sip_t *s, uint64_t m)
{
    s->v3 ^= m;
    RON_SIP_ROUND(s->v0, s->v1, s->v2, s->v3);
    RON_SIP_ROUND(s->v0, s->v1, s->v2, s->v3);
    s->v0 ^= m;
}


static inline void
ron_sip_update(ron_sip_t *s, const void *data, size_t n)
{
    uint64_t        m;
    unsigned        shift;
    const uint8_t  *p;

    p = data;
    shift = (unsigned) (s->len & 7) * 8;
    s->len += n;

    for (/* void */ ; n >= 8; n -= 8, p += 8) {
        memcpy(&m, p, 8);
        ron_sip_word(s, s->rest | m << shift);
        s->rest = shift != 0 ? m >> (64 - shift) : 0;
    }

    for (/* void */ ; n != 0; n--) {
        s->rest |= (uint64_t) *p++ << shift;
        shift += 8;

        if (shift == 64) {
            ron_sip_word(s, s->rest);
            s->rest = 0;
            shift = 0;
        }
    }
}


static inline void
ron_sip_final(ron_sip_t *s, uint64_t out[2])
{
    ron_sip_word(s, s->rest | (uint64_t) s->len << 56);

    s->v2 ^= 0xee;
    RON_SIP_ROUND(s->v0, s->v1, s->v2, s->v3);
    RON_SIP_ROUND(s->v0, s->v1, s->v2, s->v3);
    RON_SIP_ROUND(s->v0, s->v1, s->v2, s->v3);
    RON_SIP_ROUND(s->v0, s->v1, s->v2, s->v3);
    out[0] = s->v0 ^ s->v1 ^ s->v2 ^ s->v3;

    s->v1 ^= 0xdd;
    RON_SIP_ROUND(s->v0, s->v1, s->v2, s->v3);
    RON_SIP_ROUND(s->v0, s->v1, s->v2, s->v3);
    RON_SIP_ROUND(s->v0, s->v1, s->v2, s->v3);
    RON_SIP_ROUND(s->v0, s->v1, s->v2, s->v3);
    out[1] = s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}


#endif /* RON_SIPHASH_H */
