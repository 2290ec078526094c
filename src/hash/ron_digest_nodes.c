
/*
 * Many nodes of a tree at once.
 *
 * A proof out of a tile that nobody had in memory takes 255 nodes, and they
 * do not depend on one another within a level.  BLAKE3's own functions do one
 * at a time, because a node is 65 bytes and what they do many of are whole
 * blocks; here as many as a vector has lanes go side by side.  Vectors are
 * the compiler's, so there is one text for all widths and machines; what the
 * processor has is asked once a call.
 *
 * On a machine of the other byte order, and for SHA-256, it is one by one.
 */

#include "ron_digest.h"


#define WIDE_BLOCK        64
#define WIDE_NODE         0x01
#define WIDE_CHUNK_START  (1 << 0)
#define WIDE_CHUNK_END    (1 << 1)
#define WIDE_ROOT         (1 << 3)

/* Fewer than this are as fast one by one. */
#define WIDE_FEW          4


#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define RON_DIGEST_WIDE  1
#else
#define RON_DIGEST_WIDE  0
#endif


#if RON_DIGEST_WIDE

static const uint32_t  wide_iv[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
};

static const uint8_t  wide_schedule[7][16] = {
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
    { 2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8 },
    { 3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1 },
    { 10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6 },
    { 12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4 },
    { 9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7 },
    { 11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13 }
};


#define WIDE_N         4
#define WIDE_TARGET
#define WIDE(name)     name##_4
#include "ron_digest_wide.def"
#undef WIDE_N
#undef WIDE_TARGET
#undef WIDE

#if defined(__x86_64__)

#define WIDE_N         8
#define WIDE_TARGET    __attribute__((target("avx2")))
#define WIDE(name)     name##_8
#include "ron_digest_wide.def"
#undef WIDE_N
#undef WIDE_TARGET
#undef WIDE

#define WIDE_N         16
#define WIDE_TARGET    __attribute__((target("avx512f")))
#define WIDE(name)     name##_16
#include "ron_digest_wide.def"
#undef WIDE_N
#undef WIDE_TARGET
#undef WIDE

#endif
#endif


typedef void (*wide_pt)(const ron_hash_t *pairs, size_t n, ron_hash_t *out);


static wide_pt wide_choose(size_t *lanes);


size_t
ron_digest_lanes(void)
{
    size_t  lanes;

    (void) wide_choose(&lanes);

    return lanes;
}


void
ron_digest_nodes(ron_digest_t digest, const ron_hash_t *pairs, size_t n,
    ron_hash_t *out)
{
    size_t   i, part, lanes;
    wide_pt  nodes;

    i = 0;
    nodes = digest == RON_DIGEST_BLAKE3 ? wide_choose(&lanes) : NULL;

    if (nodes != NULL) {
        while (n - i >= WIDE_FEW) {
            part = ron_min(n - i, lanes);
            nodes(pairs + 2 * i, part, out + i);
            i += part;
        }
    }

    for (/* void */ ; i < n; i++) {
        ron_digest_node(digest, &pairs[2 * i], &pairs[2 * i + 1], &out[i]);
    }
}


/* NULL: there is nothing faster than one by one. */

static wide_pt
wide_choose(size_t *lanes)
{
#if RON_DIGEST_WIDE

#if defined(__x86_64__)

    if (__builtin_cpu_supports("avx512f")) {
        *lanes = 16;
        return wide_nodes_16;
    }

    if (__builtin_cpu_supports("avx2")) {
        *lanes = 8;
        return wide_nodes_8;
    }

#endif

    *lanes = 4;
    return wide_nodes_4;

#else

    *lanes = 1;
    return NULL;

#endif
}
