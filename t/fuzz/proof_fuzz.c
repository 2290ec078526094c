
/*
 * Proofs over a small tree whose root is computed from the definition: what
 * is proven verifies, and no change of leaf, place, path or root does.
 */

#include "ron_fuzz.h"
#include "ron_tree.h"
#include "ron_verify.h"


#define LEAVES_MAX  600


static ron_tile_t    tiles[16];
static uint32_t      tile_n;
static ron_tree_t    tree;
static ron_hash_t    leaves[LEAVES_MAX];
static ron_digest_t  digest;


static void
naive_root(const ron_hash_t *leaf, uint64_t n, ron_hash_t *root)
{
    uint64_t    k;
    ron_hash_t  left, right;

    if (n == 0) {
        ron_digest_bytes(digest, "", 0, root);
        return;
    }

    if (n == 1) {
        *root = leaf[0];
        return;
    }

    for (k = 1; k * 2 < n; k *= 2) { /* void */ }

    naive_root(leaf, k, &left);
    naive_root(leaf + k, n - k, &right);
    ron_digest_node(digest, &left, &right, root);
}


static ron_status_t
sink(void *ctx, const ron_tile_t *tile)
{
    (void) ctx;
    RON_ASSERT(tile_n < ron_array_n(tiles));
    tiles[tile_n++] = *tile;

    return RON_OK;
}


static ron_status_t
source(void *ctx, uint64_t size, ron_tile_t *tile)
{
    (void) ctx;
    (void) size;

    for (uint32_t i = 0; i < tile_n; i++) {
        if (tiles[i].level == tile->level && tiles[i].index == tile->index) {
            memcpy(tile->hashes, tiles[i].hashes,
                   tile->width * sizeof(ron_hash_t));
            return RON_OK;
        }
    }

    /* A wider partial tile may answer for a narrower one. */

    for (uint16_t w = tile->width; w <= RON_TILE_WIDTH; w++) {
        static ron_tile_t  wide;

        wide = *tile;
        wide.width = w;

        if (ron_tree_edge(&tree, &wide) == RON_OK) {
            memcpy(tile->hashes, wide.hashes,
                   tile->width * sizeof(ron_hash_t));
            return RON_OK;
        }
    }

    return RON_ENOTFOUND;
}


static bool
same_path(const ron_proof_t *a, const ron_proof_t *b)
{
    return a->n == b->n
           && memcmp(a->path, b->path, a->n * sizeof(ron_hash_t)) == 0;
}


/* Changes a path; how, the input says. */
static void
change(fuzz_t *f, ron_proof_t *p)
{
    uint32_t  i, k;

    switch (fuzz_u8(f) % 5) {
    case 0:
        if (p->n > 0) {
            i = fuzz_below(f, p->n);
            p->path[i].b[fuzz_u8(f) % RON_HASH_LEN] ^= 1 + fuzz_u8(f) % 255;
        }
        break;
    case 1:
        p->n -= p->n > 0;
        break;
    case 2:
        if (p->n < RON_PROOF_MAX) {
            p->path[p->n] = leaves[fuzz_u8(f)];
            p->n++;
        }
        break;
    case 3:
        if (p->n > 1) {
            i = fuzz_below(f, p->n);
            k = fuzz_below(f, p->n);
            p->path[p->n < RON_PROOF_MAX ? p->n : 0] = p->path[i];
            p->path[i] = p->path[k];
        }
        break;
    default:
        for (i = 0; i < p->n; i++) {
            p->path[i] = leaves[fuzz_u8(f)];
        }
    }
}


static void
inclusion(fuzz_t *f, uint64_t size)
{
    uint64_t     index, other;
    ron_hash_t   root, bad;
    ron_proof_t  p, q;

    index = fuzz_below(f, (uint32_t) size);
    naive_root(leaves, size, &root);

    RON_ASSERT(ron_proof_inclusion(digest, index, size, source, NULL, &p)
               == RON_OK);
    RON_ASSERT(ron_verify_inclusion(digest, &leaves[index], index, size, &p,
                                    &root) == RON_OK);

    other = fuzz_below(f, LEAVES_MAX);

    if (other != index) {
        RON_ASSERT(ron_verify_inclusion(digest, &leaves[other], index, size,
                                        &p, &root) != RON_OK);
        RON_ASSERT(ron_verify_inclusion(digest, &leaves[index], other, size,
                                        &p, &root) != RON_OK);
        RON_ASSERT(ron_verify_inclusion(digest, &leaves[other], other, size,
                                        &p, &root) != RON_OK);
    }

    bad = root;
    bad.b[fuzz_u8(f) % RON_HASH_LEN] ^= 1;
    RON_ASSERT(ron_verify_inclusion(digest, &leaves[index], index, size, &p,
                                    &bad) != RON_OK);

    q = p;
    change(f, &q);

    if (!same_path(&p, &q)) {
        RON_ASSERT(ron_verify_inclusion(digest, &leaves[index], index, size,
                                        &q, &root) != RON_OK);
    }

    RON_ASSERT(ron_proof_inclusion(digest, size, size, source, NULL, &q)
               == RON_ERANGE && q.n == 0);
}


static void
consistency(fuzz_t *f, uint64_t size)
{
    uint64_t     from;
    ron_hash_t   root, old, bad;
    ron_proof_t  p, q;

    from = fuzz_below(f, (uint32_t) size + 1);
    naive_root(leaves, size, &root);
    naive_root(leaves, from, &old);

    RON_ASSERT(ron_proof_consistency(digest, from, size, source, NULL, &p)
               == RON_OK);
    RON_ASSERT(ron_verify_consistency(digest, from, size, &old, &root, &p)
               == RON_OK);

    bad = old;
    bad.b[fuzz_u8(f) % RON_HASH_LEN] ^= 1;
    RON_ASSERT(ron_verify_consistency(digest, from, size, &bad, &root, &p)
               != RON_OK);

    if (from != 0) {
        bad = root;
        bad.b[fuzz_u8(f) % RON_HASH_LEN] ^= 1;
        RON_ASSERT(ron_verify_consistency(digest, from, size, &old, &bad, &p)
                   != RON_OK);
    }

    q = p;
    change(f, &q);

    if (!same_path(&p, &q)) {
        RON_ASSERT(ron_verify_consistency(digest, from, size, &old, &root,
                                          &q) != RON_OK);
    }
}


/* Arbitrary numbers and hashes prove nothing, and end. */
static void
nonsense(fuzz_t *f)
{
    uint64_t     a, b;
    ron_str_t    s;
    ron_proof_t  p;

    a = fuzz_int(f, 8) >> (fuzz_u8(f) & 63);
    b = fuzz_int(f, 8) >> (fuzz_u8(f) & 63);
    memset(&p, fuzz_u8(f), sizeof(p));
    p.n = fuzz_u8(f) % (RON_PROOF_MAX + 2);
    s = fuzz_rest(f);
    memcpy(p.path, s.data, ron_min(s.len, sizeof(p.path)));

    RON_ASSERT(p.n == 0 || ron_verify_inclusion(digest, &leaves[0], a, b, &p,
                                                &leaves[1]) != RON_OK);
    RON_ASSERT(a == 0
               || ron_verify_consistency(digest, a, b, &leaves[0], &leaves[1],
                                         &p) != RON_OK);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t      f = { data, data + len };
    uint8_t     how;
    uint64_t    n, size;
    ron_hash_t  root, want;

    how = fuzz_u8(&f);
    digest = (how & 1) ? RON_DIGEST_SHA256 : RON_DIGEST_BLAKE3;
    n = 1 + fuzz_int(&f, 2) % ((how & 2) ? LEAVES_MAX : 20);

    for (uint32_t i = 0; i < LEAVES_MAX; i++) {
        ron_digest_leaf(digest, &i, sizeof(i), &leaves[i]);
    }

    tile_n = 0;
    ron_tree_init(&tree, digest);

    for (uint64_t i = 0; i < n; i++) {
        RON_ASSERT(ron_tree_append(&tree, &leaves[i], sink, NULL) == RON_OK);
    }

    ron_tree_root(&tree, &root);
    naive_root(leaves, n, &want);
    RON_ASSERT(ron_hash_eq(&root, &want));

    size = 1 + fuzz_below(&f, (uint32_t) n);
    RON_ASSERT(ron_proof_root(digest, size, source, NULL, &root) == RON_OK);
    naive_root(leaves, size, &want);
    RON_ASSERT(ron_hash_eq(&root, &want));

    inclusion(&f, size);
    consistency(&f, size);
    nonsense(&f);

    return 0;
}
