
/*
 * SipHash-1-3 with a 128-bit key: for hash tables in RAM whose keys clients
 * choose.  The key is random per process, so nothing may depend on it but
 * where a record sits.
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


#endif /* RON_SIPHASH_H */
