
/*
 * The two hash functions a ledger can be created with, behind one face.
 *
 * blake3 is the default; sha256 makes the tree one that stock transparency
 * log tools verify unchanged.  The choice is written into the ledger and
 * never changes.
 *
 * Nothing here can fail, allocates, or shares state between threads.
 */

#ifndef RON_DIGEST_H
#define RON_DIGEST_H


#include "ron.h"


typedef enum {
    RON_DIGEST_BLAKE3 = 1,
    RON_DIGEST_SHA256 = 2
} ron_digest_t;


/* "blake3" and "sha256"; RON_EINVAL for another name. */
ron_status_t ron_digest_parse(ron_str_t name, ron_digest_t *digest);
const char *ron_digest_name(ron_digest_t digest);

/* H(data). */
void ron_digest_bytes(ron_digest_t digest, const void *data, size_t len,
    ron_hash_t *out);

/*
 * RFC 9162: H(0x00 || entry) and H(0x01 || left || right).  `out` may be
 * `left` or `right`.
 */
void ron_digest_leaf(ron_digest_t digest, const void *data, size_t len,
    ron_hash_t *out);
void ron_digest_node(ron_digest_t digest, const ron_hash_t *left,
    const ron_hash_t *right, ron_hash_t *out);

/*
 * `n` nodes of one level: out[i] is that of pairs[2 * i] and pairs[2 * i + 1].
 * `out` may be `pairs`.  Several are made at once where the processor can:
 * ron_digest_lanes() of them, 1 where it cannot.
 */
void ron_digest_nodes(ron_digest_t digest, const ron_hash_t *pairs, size_t n,
    ron_hash_t *out);
size_t ron_digest_lanes(void);

/* The same of leaves: out[i] is ron_digest_leaf() of entries[i]. */
void ron_digest_leaves(ron_digest_t digest, const ron_str_t *entries,
    size_t n, ron_hash_t *out);


/* BLAKE3 for everything that is not the tree: at once, or in pieces. */

void ron_blake3(const void *data, size_t len, ron_hash_t *out);

typedef struct ron_blake3_s  ron_blake3_t;

#define RON_BLAKE3_SIZE  1920

/* Storage for a running hash, without dragging in BLAKE3's own header. */
struct ron_blake3_s {
    _Alignas(16) uint8_t  opaque[RON_BLAKE3_SIZE];
};

void ron_blake3_init(ron_blake3_t *h);
void ron_blake3_update(ron_blake3_t *h, const void *data, size_t len);
void ron_blake3_update_u64(ron_blake3_t *h, uint64_t v);      /* big-endian */
/* The hash of what came so far; more may follow. */
void ron_blake3_final(const ron_blake3_t *h, ron_hash_t *out);


#endif /* RON_DIGEST_H */
