
/*
 * Many nodes of a tree at once, or many leaves.
 *
 * A proof out of a tile that nobody had in memory takes 255 nodes, and they
 * do not depend on one another within a level; nor do the entries of a commit.
 * BLAKE3's own functions do one at a time, because a node is 65 bytes, an
 * entry any number, and what they do many of are whole blocks of one number;
 * here as many as a vector has lanes go side by side.  Vectors are
 * the compiler's, so there is one text for all widths and machines; what the
 * processor has is asked once a call.
 *
 * On a machine of the other byte order, and for SHA-256, it is one by one.
 */

#include "ron_digest.h"


#define WIDE_BLOCK        64
#define WIDE_CHUNK        1024
#define WIDE_LEAF         0x00
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

static uint32_t wide_leaf_block(const ron_str_t *entry, uint32_t b,
    uint32_t *m, size_t stride, uint32_t *len, uint32_t *flags);


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


typedef struct {
    size_t    lanes;
    void    (*nodes)(const ron_hash_t *pairs, size_t n, ron_hash_t *out);
    void    (*leaves)(const ron_str_t *entries, size_t n, uint32_t blocks,
                      ron_hash_t *out);
} wide_t;


static const wide_t *wide_choose(void);
static uint32_t wide_leaf_blocks(const ron_str_t *entries, size_t n,
    bool *even);


size_t
ron_digest_lanes(void)
{
    const wide_t  *wide;

    wide = wide_choose();

    return wide ? wide->lanes : 1;
}


void
ron_digest_nodes(ron_digest_t digest, const ron_hash_t *pairs, size_t n,
    ron_hash_t *out)
{
    size_t         i, part;
    const wide_t  *wide;

    i = 0;
    wide = digest == RON_DIGEST_BLAKE3 ? wide_choose() : NULL;

    if (wide != NULL) {
        while (n - i >= WIDE_FEW) {
            part = ron_min(n - i, wide->lanes);
            wide->nodes(pairs + 2 * i, part, out + i);
            i += part;
        }
    }

    for (/* void */ ; i < n; i++) {
        ron_digest_node(digest, &pairs[2 * i], &pairs[2 * i + 1], &out[i]);
    }
}


void
ron_digest_leaves(ron_digest_t digest, const ron_str_t *entries, size_t n,
    ron_hash_t *out)
{
    bool           even;
    size_t         i, part;
    uint32_t       blocks;
    const wide_t  *wide;

    wide = digest == RON_DIGEST_BLAKE3 ? wide_choose() : NULL;

    while (n != 0) {
        part = wide != NULL ? ron_min(n, wide->lanes) : n;
        blocks = wide_leaf_blocks(entries, part, &even);

        if (wide != NULL && even) {
            wide->leaves(entries, part, blocks, out);

        } else {
            for (i = 0; i < part; i++) {
                ron_digest_leaf(digest, entries[i].data, entries[i].len,
                                &out[i]);
            }
        }

        entries += part;
        out += part;
        n -= part;
    }
}


/*
 * The blocks of the longest, and whether side by side is worth it: each is one
 * chunk, and all together are several times as long as the longest alone.
 */

static uint32_t
wide_leaf_blocks(const ron_str_t *entries, size_t n, bool *even)
{
    size_t  i, blocks, sum, max;

    sum = 0;
    max = 0;

    for (i = 0; i < n; i++) {
        blocks = entries[i].len / WIDE_BLOCK + 1;
        sum += blocks;
        max = ron_max(max, blocks);
    }

    *even = max <= WIDE_CHUNK / WIDE_BLOCK && sum >= WIDE_FEW * max;

    return (uint32_t) max;
}


#if RON_DIGEST_WIDE

/*
 * Block `b` of a leaf, word by word `stride` apart.  0: it has no such block.
 * With the byte before it an entry of 63 bytes is one block, one of 64 is two.
 */

static uint32_t
wide_leaf_block(const ron_str_t *entry, uint32_t b, uint32_t *m,
    size_t stride, uint32_t *len, uint32_t *flags)
{
    size_t    at, n;
    uint8_t   text[WIDE_BLOCK];
    uint32_t  word;

    at = (size_t) b * WIDE_BLOCK;

    if (at > entry->len) {
        return 0;
    }

    n = ron_min(entry->len + 1 - at, (size_t) WIDE_BLOCK);
    *len = (uint32_t) n;
    *flags = (b == 0 ? WIDE_CHUNK_START : 0)
             | (at + n > entry->len ? WIDE_CHUNK_END | WIDE_ROOT : 0);

    if (n < sizeof(text)) {
        memset(text, 0, sizeof(text));
    }

    if (b == 0) {
        text[0] = WIDE_LEAF;

        if (n > 1) {
            memcpy(text + 1, entry->data, n - 1);
        }

    } else {
        memcpy(text, entry->data + at - 1, n);
    }

    for (unsigned i = 0; i < WIDE_BLOCK / sizeof(word); i++) {
        memcpy(&word, text + i * sizeof(word), sizeof(word));
        m[i * stride] = word;
    }

    return 1;
}

#endif


/* NULL: there is nothing faster than one by one. */

static const wide_t *
wide_choose(void)
{
#if RON_DIGEST_WIDE

    static const wide_t  wide_4 = { 4, wide_nodes_4, wide_leaves_4 };

#if defined(__x86_64__)

    static const wide_t  wide_8 = { 8, wide_nodes_8, wide_leaves_8 };
    static const wide_t  wide_16 = { 16, wide_nodes_16, wide_leaves_16 };

    if (__builtin_cpu_supports("avx512f")) {
        return &wide_16;
    }

    if (__builtin_cpu_supports("avx2")) {
        return &wide_8;
    }

#endif

    return &wide_4;

#else

    return NULL;

#endif
}
