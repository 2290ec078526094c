
/*
 * The tree against the definitions of RFC 9162, written down here as the
 * recursions that the RFC has, against vectors that other implementations
 * share, and against itself: tiles handed out, tiles read back.
 */

#include "ron_digest.h"
#include "ron_tree.h"
#include "ron_verify.h"

#include "ron_seed.h"
#include "ron_test.h"


#define LEAVES   131700U        /* two tiles of level 1 and a bit */
#define LEVELS   3


static ron_digest_t  digest;
static ron_hash_t   *leaves;
static ron_hash_t   *level[LEVELS];     /* naive, all complete ones */
static uint64_t      seed = 20;


/* What the last call asked its source for. */

static struct {
    uint32_t  n;
    uint32_t  fail_at;              /* 0: never */
    uint32_t  bad;
    struct {
        uint8_t   level;
        uint64_t  index;
    } tile[64];
} asked;


static uint64_t
rnd(uint64_t below)
{
    return ron_seed_below(&seed, below);
}


static void
unhex(const char *hex, ron_hash_t *hash)
{
    unsigned  i, v;

    for (i = 0; i < RON_HASH_LEN; i++) {
        RON_ASSERT(sscanf(hex + 2 * i, "%2x", &v) == 1);
        hash->b[i] = (uint8_t) v;
    }
}


/* ---- the RFC, word by word ---------------------------------------------- */

static uint64_t
split(uint64_t n)
{
    uint64_t  k;

    for (k = 1; k * 2 < n; k *= 2) { /* void */ }

    return k;
}


static void
mth(const ron_hash_t *d, uint64_t n, ron_hash_t *out)
{
    uint64_t    k;
    ron_hash_t  left, right;

    if (n == 0) {
        ron_digest_bytes(digest, "", 0, out);
        return;
    }

    if (n == 1) {
        *out = d[0];
        return;
    }

    k = split(n);
    mth(d, k, &left);
    mth(d + k, n - k, &right);
    ron_digest_node(digest, &left, &right, out);
}


static void
path(uint64_t m, const ron_hash_t *d, uint64_t n, ron_proof_t *proof)
{
    uint64_t  k;

    if (n == 1) {
        return;
    }

    k = split(n);

    if (m < k) {
        path(m, d, k, proof);
        mth(d + k, n - k, &proof->path[proof->n++]);

    } else {
        path(m - k, d + k, n - k, proof);
        mth(d, k, &proof->path[proof->n++]);
    }
}


static void
subproof(uint64_t m, const ron_hash_t *d, uint64_t n, bool whole,
    ron_proof_t *proof)
{
    uint64_t  k;

    if (m == n) {
        if (!whole) {
            mth(d, n, &proof->path[proof->n++]);
        }

        return;
    }

    k = split(n);

    if (m <= k) {
        subproof(m, d, k, whole, proof);
        mth(d + k, n - k, &proof->path[proof->n++]);

    } else {
        subproof(m - k, d + k, n - k, false, proof);
        mth(d, k, &proof->path[proof->n++]);
    }
}


/*
 * The sides that a proof's hashes stand on, lowest first, in one number: a
 * proof says nothing about its sizes but this.
 */

static uint64_t
inclusion_shape(uint64_t m, uint64_t n)
{
    uint64_t  k;

    if (n == 1) {
        return 1;
    }

    k = split(n);

    return m < k ? inclusion_shape(m, k) * 2
                 : inclusion_shape(m - k, n - k) * 2 + 1;
}


static uint64_t
consistency_shape(uint64_t m, uint64_t n, bool whole)
{
    uint64_t  k;

    if (m == n) {
        return whole ? 2 : 3;
    }

    k = split(n);

    return m <= k ? consistency_shape(m, k, whole) * 2
                  : consistency_shape(m - k, n - k, false) * 2 + 1;
}


/* ---- sources and sinks -------------------------------------------------- */

/* From the leaves, by definition; and strict about what is asked for. */

static ron_status_t
source(void *ctx, uint64_t size, ron_tile_t *tile)
{
    uint32_t  i;
    uint64_t  have;

    (void) ctx;

    for (i = 0; i < asked.n; i++) {
        asked.bad += asked.tile[i].level == tile->level
                     && asked.tile[i].index == tile->index;
    }

    have = size >> 8 * tile->level;

    asked.bad += tile->level >= LEVELS || tile->index * 256 >= have
                 || tile->width != ron_min(have - tile->index * 256, 256);
    asked.bad += asked.n == ron_array_n(asked.tile);

    if (asked.bad != 0) {
        return RON_EINVAL;
    }

    asked.tile[asked.n].level = tile->level;
    asked.tile[asked.n].index = tile->index;

    if (++asked.n == asked.fail_at) {
        return RON_EIO;
    }

    memset(tile->hashes, 0xaa, sizeof(tile->hashes));
    memcpy(tile->hashes, level[tile->level] + tile->index * 256,
           tile->width * sizeof(ron_hash_t));

    return RON_OK;
}


static struct {
    uint64_t  n[LEVELS];
    uint32_t  bad;
    uint32_t  calls;
    uint32_t  fail_at;
} sunk;


static ron_status_t
sink(void *ctx, const ron_tile_t *tile)
{
    (void) ctx;

    if (++sunk.calls == sunk.fail_at) {
        return RON_EIO;
    }

    if (tile->level >= LEVELS
        || tile->width != 256
        || tile->index != sunk.n[tile->level]
        || memcmp(tile->hashes, level[tile->level] + tile->index * 256,
                  sizeof(tile->hashes)) != 0)
    {
        sunk.bad++;
        return RON_OK;
    }

    sunk.n[tile->level]++;

    return RON_OK;
}


/* A store that has complete tiles only, beside a tree with the edge. */

static ron_status_t
edge_source(void *ctx, uint64_t size, ron_tile_t *tile)
{
    if (ron_tree_edge(ctx, tile) == RON_OK) {
        return RON_OK;
    }

    if (tile->index >= sunk.n[tile->level]) {
        return RON_ENOTFOUND;
    }

    return source(NULL, size, tile);
}


/* All leaves the same: then any size up to the largest can be had. */

static ron_status_t
same_source(void *ctx, uint64_t size, ron_tile_t *tile)
{
    uint32_t           i;
    const ron_hash_t  *of_bit = ctx;

    if (tile->width == 0
        || tile->index * 256 + tile->width > size >> 8 * tile->level)
    {
        return RON_EINVAL;
    }

    for (i = 0; i < tile->width; i++) {
        tile->hashes[i] = of_bit[8 * tile->level];
    }

    return RON_OK;
}


static bool
proof_eq(const ron_proof_t *a, const ron_proof_t *b)
{
    return a->n == b->n
           && memcmp(a->path, b->path, a->n * sizeof(ron_hash_t)) == 0;
}


static ron_status_t
inclusion(uint64_t index, uint64_t size, ron_proof_t *proof)
{
    asked.n = 0;

    return ron_proof_inclusion(digest, index, size, source, NULL, proof);
}


static ron_status_t
consistency(uint64_t from, uint64_t to, ron_proof_t *proof)
{
    asked.n = 0;

    return ron_proof_consistency(digest, from, to, source, NULL, proof);
}


/* ---- hashes ------------------------------------------------------------- */

static void
test_digest(void)
{
    size_t        i, at;
    uint8_t       data[2100];
    uint32_t      bad;
    ron_hash_t    hash, want;
    ron_blake3_t  h;
    ron_digest_t  d;

    static const struct {
        size_t       len;
        const char  *hash;
    } vector[] = {
        { 0, "af1349b9f5f9a1a6a0404dea36dcc949"
             "9bcb25c9adc112b7cc9a93cae41f3262" },
        { 1, "2d3adedff11b61f14c886e35afa03673"
             "6dcd87a74d27b5c1510225d0f592e213" },
        { 1024, "42214739f095a406f3fc83deb889744a"
                "c00df831c10daa55189b5d121c855af7" },
        { 1025, "d00278ae47eb27b34faecf67b4fe263f"
                "82d5412916c1ffd97c8cb7fb814b8444" }
    };

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t) (i % 251);
    }

    for (i = 0; i < ron_array_n(vector); i++) {
        unhex(vector[i].hash, &want);
        ron_blake3(data, vector[i].len, &hash);
        is_mem(hash.b, want.b, 32, "blake3 of %zu bytes", vector[i].len);
    }

    unhex(vector[1].hash, &want);
    ron_digest_leaf(RON_DIGEST_BLAKE3, "", 0, &hash);
    is_mem(hash.b, want.b, 32, "blake3 leaf of the empty entry");

    /* one chunk at once goes another way than the same in pieces */

    bad = 0;

    for (i = 0; i <= 1100; i++) {
        ron_blake3_init(&h);
        at = rnd(i + 1);
        ron_blake3_update(&h, data, at);
        ron_blake3_update(&h, data + at, i - at);
        ron_blake3_final(&h, &want);
        ron_blake3(data, i, &hash);
        bad += !ron_hash_eq(&hash, &want);

        ron_blake3_init(&h);
        ron_blake3_update(&h, "", 1);
        ron_blake3_update(&h, data, i);
        ron_blake3_final(&h, &want);
        ron_digest_leaf(RON_DIGEST_BLAKE3, data, i, &hash);
        bad += !ron_hash_eq(&hash, &want);

        memcpy(data + 1600 + 1, data, 64);
        data[1600] = 1;
        ron_blake3_init(&h);
        ron_blake3_update(&h, data + 1600, 65);
        ron_blake3_final(&h, &want);
        memcpy(hash.b, data + 32, 32);
        ron_digest_node(RON_DIGEST_BLAKE3, (ron_hash_t *) data, &hash, &hash);
        bad += !ron_hash_eq(&hash, &want);

        data[i] ^= (uint8_t) (i * 7);
    }

    is_u64(bad, 0, "blake3 at once equals blake3 in pieces, 0 to 1100 bytes");

    ron_blake3_init(&h);
    ron_blake3_update_u64(&h, 0x0102030405060708);
    ron_blake3_final(&h, &hash);
    ron_blake3("\1\2\3\4\5\6\7\10", 8, &want);
    is_mem(hash.b, want.b, 32, "an integer is hashed big-endian");

    unhex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
          &want);
    ron_digest_bytes(RON_DIGEST_SHA256, "abc", 3, &hash);
    is_mem(hash.b, want.b, 32, "sha256 of \"abc\"");

    is_status(ron_digest_parse(ron_str("blake3"), &d), RON_OK, "blake3");
    is_u64(d, RON_DIGEST_BLAKE3, "is blake3");
    is_status(ron_digest_parse(ron_str("sha256"), &d), RON_OK, "sha256");
    is_u64(d, RON_DIGEST_SHA256, "is sha256");
    is_status(ron_digest_parse(ron_str("sha25"), &d), RON_EINVAL, "sha25");
    is_status(ron_digest_parse(ron_str("BLAKE3"), &d), RON_EINVAL, "BLAKE3");
    is_status(ron_digest_parse(ron_null_str, &d), RON_EINVAL, "no name");
    is_str(ron_digest_name(RON_DIGEST_BLAKE3), "blake3", "blake3 by name");
    is_str(ron_digest_name(RON_DIGEST_SHA256), "sha256", "sha256 by name");
}


/* ---- vectors shared by the implementations of certificate transparency -- */

static void
test_vectors(void)
{
    uint32_t      i, k, bad;
    ron_tree_t   *tree;
    ron_hash_t    root, want, roots[9];
    ron_proof_t   proof;
    ron_digest_t  saved;

    static const ron_str_t  entry[] = {
        { 0, (const uint8_t *) "" },
        { 1, (const uint8_t *) "\x00" },
        { 1, (const uint8_t *) "\x10" },
        { 2, (const uint8_t *) "\x20\x21" },
        { 2, (const uint8_t *) "\x30\x31" },
        { 4, (const uint8_t *) "\x40\x41\x42\x43" },
        { 8, (const uint8_t *) "\x50\x51\x52\x53\x54\x55\x56\x57" },
        { 16, (const uint8_t *) "\x60\x61\x62\x63\x64\x65\x66\x67"
                                "\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f" }
    };

    static const char  *root_of[] = {
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
    };

    static const struct {
        uint64_t     a, b;
        uint32_t     n;
        const char  *path[3];
    } inclusions[] = {
        { 0, 1, 0, { NULL, NULL, NULL } },
        { 0, 8, 3, {
          "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
          "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
          "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"
          } },
        { 5, 8, 3, {
          "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
          "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
          "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"
          } },
        { 2, 3, 1, {
          "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
          NULL, NULL } }
    }, consistencies[] = {
        { 1, 1, 0, { NULL, NULL, NULL } },
        { 2, 5, 2, {
          "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
          "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
          NULL } },
        { 2, 8, 2, {
          "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
          "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
          NULL } },
        { 6, 8, 3, {
          "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
          "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
          "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"
          } }
    };

    saved = digest;
    digest = RON_DIGEST_SHA256;
    level[0] = calloc(8, sizeof(ron_hash_t));
    tree = malloc(sizeof(ron_tree_t));
    RON_ASSERT(level[0] != NULL && tree != NULL);

    ron_tree_init(tree, digest);

    for (i = 0; i <= 8; i++) {
        unhex(root_of[i], &want);
        ron_tree_root(tree, &roots[i]);
        is_mem(roots[i].b, want.b, 32, "known root of %u leaves", i);

        if (i < 8) {
            ron_digest_leaf(digest, entry[i].data, entry[i].len, &level[0][i]);
            RON_ASSERT(ron_tree_append(tree, &level[0][i], NULL, NULL)
                       == RON_OK);
        }
    }

    for (i = 0; i < ron_array_n(inclusions); i++) {
        bad = inclusion(inclusions[i].a, inclusions[i].b, &proof) != RON_OK
              || proof.n != inclusions[i].n;

        for (k = 0; k < proof.n && !bad; k++) {
            unhex(inclusions[i].path[k], &want);
            bad = !ron_hash_eq(&proof.path[k], &want);
        }

        ok(!bad, "known inclusion proof of leaf %u of %u",
           (unsigned) inclusions[i].a, (unsigned) inclusions[i].b);
        is_status(ron_verify_inclusion(digest, &level[0][inclusions[i].a],
                                       inclusions[i].a, inclusions[i].b,
                                       &proof, &roots[inclusions[i].b]),
                  RON_OK, "and it verifies");
    }

    for (i = 0; i < ron_array_n(consistencies); i++) {
        bad = consistency(consistencies[i].a, consistencies[i].b, &proof)
              != RON_OK || proof.n != consistencies[i].n;

        for (k = 0; k < proof.n && !bad; k++) {
            unhex(consistencies[i].path[k], &want);
            bad = !ron_hash_eq(&proof.path[k], &want);
        }

        ok(!bad, "known consistency proof from %u to %u",
           (unsigned) consistencies[i].a, (unsigned) consistencies[i].b);
        is_status(ron_verify_consistency(digest, consistencies[i].a,
                                         consistencies[i].b,
                                         &roots[consistencies[i].a],
                                         &roots[consistencies[i].b], &proof),
                  RON_OK, "and it verifies");
    }

    asked.n = 0;
    is_status(ron_proof_root(digest, 7, source, NULL, &root), RON_OK,
              "root of 7 from tiles");
    is_mem(root.b, roots[7].b, 32, "is the known one");

    free(level[0]);
    free(tree);
    digest = saved;
}


/* ---- one digest, all sizes ---------------------------------------------- */

static void
make_leaves(void)
{
    char      entry[32];
    uint64_t  i, n;
    unsigned  k;

    for (k = 0; k < LEVELS; k++) {
        level[k] = calloc(LEAVES >> 8 * k, sizeof(ron_hash_t));
        RON_ASSERT(level[k] != NULL);
    }

    leaves = level[0];

    for (i = 0; i < LEAVES; i++) {
        n = (uint64_t) snprintf(entry, sizeof(entry), "entry %u",
                                (unsigned) i);
        ron_digest_leaf(digest, entry, n, &leaves[i]);
    }

    for (k = 1; k < LEVELS; k++) {
        for (i = 0; i < LEAVES >> 8 * k; i++) {
            mth(leaves + (i << 8 * k), (uint64_t) 1 << 8 * k, &level[k][i]);
        }
    }
}


static void
free_leaves(void)
{
    unsigned  k;

    for (k = 0; k < LEVELS; k++) {
        free(level[k]);
    }
}


static bool
interesting(uint64_t size)
{
    uint64_t  near;

    near = (size + 3) % 65536;

    return size <= 600 || near < 7 || (size > LEAVES - 4)
           || (size % 256 < 2 && rnd(40) == 0) || rnd(3000) == 0;
}


static void
test_tree(void)
{
    uint32_t       bad_root, bad_load, bad_edge, bad_grown, n;
    uint64_t       size;
    ron_hash_t     root, want, again;
    ron_tile_t    *tile;
    ron_tree_t    *tree, *other;

    tree = malloc(sizeof(ron_tree_t));
    other = malloc(sizeof(ron_tree_t));
    tile = malloc(sizeof(ron_tile_t));
    RON_ASSERT(tree != NULL && other != NULL && tile != NULL);

    memset(&sunk, 0, sizeof(sunk));
    bad_root = bad_load = bad_edge = bad_grown = n = 0;

    ron_tree_init(tree, digest);

    for (size = 0; size <= LEAVES; size++) {

        if (interesting(size)) {
            n++;
            ron_tree_root(tree, &root);
            mth(leaves, size, &want);
            bad_root += !ron_hash_eq(&root, &want);

            asked.n = 0;
            bad_load += ron_tree_load(other, digest, size, source, NULL)
                        != RON_OK || other->size != size
                        || memcmp(other->edge_n, tree->edge_n,
                                  sizeof(tree->edge_n)) != 0;
            ron_tree_root(other, &again);
            bad_load += !ron_hash_eq(&again, &want);

            asked.n = 0;
            bad_root += ron_proof_root(digest, size, source, NULL, &again)
                        != RON_OK || !ron_hash_eq(&again, &want);

            /* complete tiles and the edge in memory are all of the tree */

            asked.n = 0;
            bad_edge += ron_proof_root(digest, size, edge_source, tree, &again)
                        != RON_OK || !ron_hash_eq(&again, &want);

            /* what was loaded grows like what was built */

            if (size < LEAVES) {
                bad_grown += ron_tree_append(other, &leaves[size], NULL, NULL)
                             != RON_OK;
                ron_tree_root(other, &again);
                mth(leaves, size + 1, &want);
                bad_grown += !ron_hash_eq(&again, &want);
            }
        }

        if (size < LEAVES
            && ron_tree_append(tree, &leaves[size], sink, NULL) != RON_OK)
        {
            break;
        }
    }

    ok(n > 650, "%u sizes up to %u were looked at", n, LEAVES);
    is_u64(bad_root, 0, "root at every size is the recursion's");
    is_u64(bad_load, 0, "a loaded edge has the same root at every size");
    is_u64(bad_edge, 0, "complete tiles and the edge make the same root");
    is_u64(bad_grown, 0, "a loaded tree grows like the original");
    is_u64(sunk.bad, 0, "every tile handed out is the recursion's");
    is_u64(sunk.n[0], LEAVES / 256, "all complete tiles of level 0");
    is_u64(sunk.n[1], LEAVES / 65536, "all complete tiles of level 1");
    is_u64(sunk.n[2], 0, "no tile of level 2 is complete");
    is_u64(asked.bad, 0, "only tiles that exist were asked for, once each");

    tile->width = 256;
    memcpy(tile->hashes, level[0] + 256 * 300, sizeof(tile->hashes));
    ron_tile_root(digest, tile, &root);
    is_mem(root.b, level[1][300].b, 32, "a tile's root is above it");

    tile->level = 1;
    tile->index = LEAVES / 65536;
    tile->width = (LEAVES >> 8) % 256;
    is_status(ron_tree_edge(tree, tile), RON_OK, "the edge has its tile");
    is_mem(tile->hashes, level[1] + 256 * tile->index,
           tile->width * sizeof(ron_hash_t), "with the right hashes");
    tile->width++;
    is_status(ron_tree_edge(tree, tile), RON_ENOTFOUND, "and no wider one");
    tile->width = 1;
    tile->index--;
    is_status(ron_tree_edge(tree, tile), RON_ENOTFOUND, "nor another one");
    tile->level = 8;
    is_status(ron_tree_edge(tree, tile), RON_ENOTFOUND, "nor a ninth level");

    free(tree);
    free(other);
    free(tile);
}


/* ---- proofs ------------------------------------------------------------- */

static void
test_exhaustive(void)
{
    uint32_t     bad, refused;
    uint64_t     a, b, n;
    ron_hash_t   roots[131];
    ron_proof_t  got, want;

    for (a = 0; a <= 130; a++) {
        mth(leaves, a, &roots[a]);
    }

    bad = refused = 0;
    n = 0;

    for (b = 1; b <= 130; b++) {
        for (a = 0; a < b; a++, n++) {
            want.n = 0;
            path(a, leaves, b, &want);

            bad += inclusion(a, b, &got) != RON_OK || !proof_eq(&got, &want);
            refused += ron_verify_inclusion(digest, &leaves[a], a, b, &got,
                                            &roots[b]) != RON_OK;
        }
    }

    is_u64(bad, 0, "%u inclusion proofs up to 130", (unsigned) n);
    is_u64(refused, 0, "and all verify");

    bad = refused = 0;
    n = 0;

    for (b = 0; b <= 130; b++) {
        for (a = 0; a <= b; a++, n++) {
            want.n = 0;

            if (a != 0) {
                subproof(a, leaves, b, true, &want);
            }

            bad += consistency(a, b, &got) != RON_OK || !proof_eq(&got, &want);
            refused += ron_verify_consistency(digest, a, b, &roots[a],
                                              &roots[b], &got) != RON_OK;
        }
    }

    is_u64(bad, 0, "%u consistency proofs up to 130", (unsigned) n);
    is_u64(refused, 0, "and all verify");
    is_u64(asked.bad, 0, "only tiles that exist were asked for, once each");
}


static uint64_t
some_size(void)
{
    static const uint64_t  edge[] = { 255, 256, 257, 511, 512, 65535, 65536,
                                      65537, 65792, 65793, 131071, 131072,
                                      131073, LEAVES };

    return rnd(2) ? edge[rnd(ron_array_n(edge))] : 131 + rnd(LEAVES - 131);
}


static void
test_large(void)
{
    uint32_t     i, bad, refused, most;
    uint64_t     a, b;
    ron_hash_t   root_a, root_b;
    ron_proof_t  got, want;

    bad = refused = most = 0;

    for (i = 0; i < 60; i++) {
        b = some_size();
        a = rnd(3) ? rnd(b) : b - 1;
        mth(leaves, b, &root_b);

        want.n = 0;
        path(a, leaves, b, &want);
        bad += inclusion(a, b, &got) != RON_OK || !proof_eq(&got, &want);
        most = ron_max(most, asked.n);
        refused += ron_verify_inclusion(digest, &leaves[a], a, b, &got,
                                        &root_b) != RON_OK;

        a = some_size();
        if (a > b) {
            a = 1 + rnd(b);
        }

        mth(leaves, a, &root_a);

        want.n = 0;
        subproof(a, leaves, b, true, &want);
        bad += consistency(a, b, &got) != RON_OK || !proof_eq(&got, &want);
        most = ron_max(most, asked.n);
        refused += ron_verify_consistency(digest, a, b, &root_a, &root_b,
                                          &got) != RON_OK;
    }

    is_u64(bad, 0, "120 random proofs in trees of up to %u leaves", LEAVES);
    is_u64(refused, 0, "and all verify");
    is_u64(asked.bad, 0, "only tiles that exist were asked for, once each");
    ok(most <= 2 * LEVELS, "with at most %u tiles for a proof", most);
}


/*
 * With other sizes a proof holds exactly when it would look the same there.
 */
static void
test_wrong_sizes(void)
{
    uint32_t     bad, held;
    uint64_t     a, b, c, d;
    ron_hash_t   root_a, root_b;
    ron_proof_t  proof;

    bad = held = 0;

    for (b = 1; b <= 24; b++) {
        mth(leaves, b, &root_b);

        for (a = 0; a < b; a++) {
            bad += inclusion(a, b, &proof) != RON_OK;

            for (d = 0; d <= 40; d++) {
                for (c = 0; c <= 40; c++) {
                    bool  same = c < d && inclusion_shape(c, d)
                                          == inclusion_shape(a, b);

                    held += same;
                    bad += (ron_verify_inclusion(digest, &leaves[a], c, d,
                                                 &proof, &root_b) == RON_OK)
                           != same;
                }
            }
        }
    }

    ok(bad == 0 && held > 24 * 25 / 2, "inclusion proofs with other sizes");

    bad = held = 0;

    for (b = 2; b <= 24; b++) {
        mth(leaves, b, &root_b);

        for (a = 1; a < b; a++) {
            mth(leaves, a, &root_a);
            bad += consistency(a, b, &proof) != RON_OK;

            for (d = 0; d <= 40; d++) {
                for (c = 0; c <= 40; c++) {
                    bool  same = c > 0 && c < d
                                 && consistency_shape(c, d, true)
                                    == consistency_shape(a, b, true);

                    held += same;
                    bad += (ron_verify_consistency(digest, c, d, &root_a,
                                                   &root_b, &proof) == RON_OK)
                           != same;
                }
            }
        }
    }

    ok(bad == 0 && held > 23 * 24 / 2, "consistency proofs with other sizes");
}


typedef struct {
    bool         inclusion;
    uint64_t     a, b;
    ron_hash_t   first, second;     /* leaf and root, or two roots */
    ron_proof_t  proof;
} ron_case_t;


static bool
holds(const ron_case_t *c)
{
    ron_status_t  rc;

    rc = c->inclusion
         ? ron_verify_inclusion(digest, &c->first, c->a, c->b, &c->proof,
                                &c->second)
         : ron_verify_consistency(digest, c->a, c->b, &c->first, &c->second,
                                  &c->proof);

    RON_ASSERT(rc == RON_OK || rc == RON_ECORRUPT);

    return rc == RON_OK;
}


static uint32_t
mutate(const ron_case_t *good, uint32_t *tried)
{
    uint32_t    i, bit, bad;
    ron_case_t  c;

    bad = !holds(good);

    for (bit = 0; bit < 256; bit++) {
        for (i = 0; i < good->proof.n; i++) {
            c = *good;
            c.proof.path[i].b[bit / 8] ^= (uint8_t) (1 << bit % 8);
            bad += holds(&c);
            (*tried)++;
        }

        c = *good;
        c.first.b[bit / 8] ^= (uint8_t) (1 << bit % 8);
        bad += holds(&c);

        c = *good;
        c.second.b[bit / 8] ^= (uint8_t) (1 << bit % 8);
        bad += holds(&c);
        *tried += 2;
    }

    for (i = 0; i <= good->proof.n && good->proof.n < RON_PROOF_MAX; i++) {
        c = *good;                                  /* one too many at i */
        memmove(&c.proof.path[i + 1], &c.proof.path[i],
                (c.proof.n - i) * sizeof(ron_hash_t));
        c.proof.path[i] = leaves[rnd(LEAVES)];
        c.proof.n++;
        bad += holds(&c);
        (*tried)++;
    }

    for (i = 0; i < good->proof.n; i++) {
        c = *good;                                  /* one missing at i */
        memmove(&c.proof.path[i], &c.proof.path[i + 1],
                (c.proof.n - i - 1) * sizeof(ron_hash_t));
        c.proof.n--;
        bad += holds(&c);

        c = *good;                                  /* two changed places */
        c.proof.path[i] = good->proof.path[good->proof.n - 1 - i];
        c.proof.path[good->proof.n - 1 - i] = good->proof.path[i];
        bad += 2 * i + 1 != good->proof.n && holds(&c);
        *tried += 2;
    }

    c = *good;
    c.proof.n = 0;
    bad += good->proof.n != 0 && holds(&c);

    c.proof.n = RON_PROOF_MAX + 1;
    bad += holds(&c);

    c.proof.n = UINT32_MAX;
    bad += holds(&c);
    *tried += 3;

    return bad;
}


static void
test_mutated(void)
{
    uint32_t    i, bad, tried;
    ron_case_t  c;

    bad = tried = 0;

    for (i = 0; i < 40; i++) {
        c.inclusion = i % 2;
        c.b = i < 30 ? 2 + rnd(300) : some_size();
        c.a = c.inclusion ? rnd(c.b) : 1 + rnd(c.b - 1);

        mth(leaves, c.b, &c.second);

        if (c.inclusion) {
            c.first = leaves[c.a];
            bad += inclusion(c.a, c.b, &c.proof) != RON_OK;

        } else {
            mth(leaves, c.a, &c.first);
            bad += consistency(c.a, c.b, &c.proof) != RON_OK;
        }

        bad += mutate(&c, &tried);
    }

    ok(bad == 0 && tried > 40 * 512, "%u changed proofs are refused", tried);
}


static void
test_trivial(void)
{
    ron_hash_t   empty, root, other;
    ron_proof_t  proof;

    ron_digest_bytes(digest, "", 0, &empty);
    mth(leaves, 5, &root);
    mth(leaves, 6, &other);
    proof.n = 0;

    is_status(ron_verify_consistency(digest, 0, 0, &empty, &empty, &proof),
              RON_OK, "the empty tree is itself");
    is_status(ron_verify_consistency(digest, 0, 5, &empty, &root, &proof),
              RON_OK, "anything follows the empty tree");
    is_status(ron_verify_consistency(digest, 0, 5, &root, &root, &proof),
              RON_ECORRUPT, "but its root is known");
    is_status(ron_verify_consistency(digest, 0, 0, &empty, &root, &proof),
              RON_ECORRUPT, "both times");
    is_status(ron_verify_consistency(digest, 5, 5, &root, &root, &proof),
              RON_OK, "a tree is itself");
    is_status(ron_verify_consistency(digest, 5, 5, &root, &other, &proof),
              RON_ECORRUPT, "and has one root");
    is_status(ron_verify_consistency(digest, 6, 5, &other, &root, &proof),
              RON_ECORRUPT, "a tree does not shrink");

    proof.n = 1;
    proof.path[0] = root;
    is_status(ron_verify_consistency(digest, 5, 5, &root, &root, &proof),
              RON_ECORRUPT, "nothing to prove, so no proof");
    is_status(ron_verify_consistency(digest, 0, 5, &empty, &root, &proof),
              RON_ECORRUPT, "nor from the empty tree");

    is_status(inclusion(5, 5, &proof), RON_ERANGE, "leaf beyond the tree");
    is_u64(proof.n, 0, "has no proof");
    is_status(inclusion(0, 0, &proof), RON_ERANGE, "leaf of the empty tree");
    is_status(consistency(6, 5, &proof), RON_ERANGE, "from more to less");
    is_status(inclusion(0, RON_TREE_MAX + 1, &proof), RON_ERANGE,
              "more leaves than there can be");
    is_status(consistency(3, UINT64_MAX, &proof), RON_ERANGE,
              "nor a consistency proof to so many");
    is_status(ron_proof_root(digest, UINT64_MAX, source, NULL, &root),
              RON_ERANGE, "nor a root");
}


/* ---- many at once ------------------------------------------------------- */

/* A tile goes to the store behind all that are complete before it. */

static ron_status_t
rising_sink(void *ctx, const ron_tile_t *tile)
{
    uint64_t  key, *last = ctx;

    key = (tile->index + 1) << 8 * (tile->level + 1) | tile->level;
    sunk.bad += key <= *last;
    *last = key;

    return sink(NULL, tile);
}


static bool
same_tree(const ron_tree_t *a, const ron_tree_t *b)
{
    if (a->size != b->size
        || memcmp(a->edge_n, b->edge_n, sizeof(a->edge_n)) != 0)
    {
        return false;
    }

    for (unsigned l = 0; l < RON_TILE_LEVELS; l++) {
        if (memcmp(a->edge[l], b->edge[l],
                   a->edge_n[l] * sizeof(ron_hash_t)) != 0)
        {
            return false;
        }
    }

    for (unsigned bit = 0; bit < RON_TREE_BITS; bit++) {
        if (a->size >> bit & 1
            && !ron_hash_eq(&a->peak[bit], &b->peak[bit]))
        {
            return false;
        }
    }

    return true;
}


static void
test_many(void)
{
    uint32_t       bad, failed, n, size;
    uint64_t       last;
    ron_tree_t    *tree, *one;
    ron_status_t   rc;

    tree = malloc(sizeof(ron_tree_t));
    one = malloc(sizeof(ron_tree_t));
    RON_ASSERT(tree != NULL && one != NULL);

    ron_tree_init(tree, digest);
    ron_tree_init(one, digest);
    memset(&sunk, 0, sizeof(sunk));
    bad = failed = 0;
    last = 0;

    for (size = 0; size < LEAVES; /* void */) {
        n = (uint32_t) rnd(rnd(8) == 0 ? 1500 : 100) + 1;
        n = ron_min(n, LEAVES - size);

        /* now and then the sink fails, and they are offered again */

        if (rnd(16) == 0) {
            sunk.calls = 0;
            sunk.fail_at = 1 + (uint32_t) rnd(2);
        }

        rc = ron_tree_append_all(tree, &leaves[size], n, rising_sink, &last);
        bad += rc != (sunk.fail_at != 0 && sunk.calls >= sunk.fail_at
                      ? RON_EIO : RON_OK);

        if (rc != RON_OK) {
            failed++;
            n = (uint32_t) tree->size - size;

            for (unsigned l = 0; l < LEVELS; l++) {
                sunk.n[l] = (uint32_t) (tree->size >> 8 * (l + 1));
            }

            last = 0;
        }

        sunk.fail_at = 0;

        for (uint32_t i = 0; i < n; i++) {
            bad += ron_tree_append(one, &leaves[size + i], NULL, NULL)
                   != RON_OK;
        }

        size += n;
        bad += !same_tree(tree, one);
    }

    ok(bad == 0, "many at once make the tree that one by one makes");
    ok(failed > 0, "also after %u failures of the sink", failed);
    ok(sunk.bad == 0 && sunk.n[0] == LEAVES / 256
       && sunk.n[1] == LEAVES / 65536, "the same tiles, in rising order");

    memset(tree, 0, sizeof(ron_tree_t));
    tree->digest = digest;
    tree->size = RON_TREE_MAX - 2;
    is_status(ron_tree_append_all(tree, leaves, 3, NULL, NULL), RON_ERANGE,
              "three more than there is room for two");

    free(tree);
    free(one);
}


/* ---- failures ----------------------------------------------------------- */

static void
test_failures(void)
{
    uint32_t       i, bad, failed;
    uint64_t       size;
    ron_hash_t     root, want;
    ron_tree_t    *tree, *saved;
    ron_proof_t    proof;
    ron_status_t   rc;

    static const ron_proof_t  none;

    tree = malloc(sizeof(ron_tree_t));
    saved = malloc(sizeof(ron_tree_t));
    RON_ASSERT(tree != NULL && saved != NULL);

    bad = failed = 0;

    for (i = 1; /* void */; i++) {
        asked.fail_at = i;
        rc = inclusion(70000, 131073, &proof);

        if (rc == RON_OK) {
            break;
        }

        failed++;
        bad += rc != RON_EIO || memcmp(&proof, &none, sizeof(proof)) != 0;

        rc = consistency(70001, 131073, &proof);
        bad += rc != RON_EIO || memcmp(&proof, &none, sizeof(proof)) != 0;
    }

    ok(bad == 0 && failed >= 3, "a source that fails at call 1 to %u", failed);

    for (i = 1; /* void */; i++) {
        asked.n = 0;
        asked.fail_at = i;
        rc = ron_tree_load(tree, digest, LEAVES, source, NULL);

        if (rc == RON_OK) {
            break;
        }

        bad += rc != RON_EIO || tree->size != 0 || tree->edge_n[0] != 0;
    }

    ok(bad == 0 && i == LEVELS + 1, "loading fails with its source");

    asked.n = 0;
    asked.fail_at = 1;
    is_status(ron_proof_root(digest, 5, source, NULL, &root), RON_EIO,
              "so does a root");
    asked.fail_at = 0;

    /* every 256th leaf fails once at one tile, every 65536th at both */

    memset(&sunk, 0, sizeof(sunk));
    ron_tree_init(tree, digest);
    bad = failed = 0;

    for (size = 0; size < 66000; size++) {

        if (size % 256 == 255) {
            *saved = *tree;
            ron_tree_root(tree, &want);

            for (i = 1; i <= 1 + (size == 65535); i++) {
                sunk.calls = 0;
                sunk.fail_at = i;
                sunk.n[0] = size / 256;

                failed++;
                bad += ron_tree_append(tree, &leaves[size], sink, NULL)
                       != RON_EIO;
                ron_tree_root(tree, &root);
                bad += tree->size != saved->size
                       || !ron_hash_eq(&root, &want)
                       || memcmp(tree->edge_n, saved->edge_n,
                                 sizeof(saved->edge_n)) != 0;
            }

            sunk.n[0] = size / 256;
            sunk.fail_at = 0;
        }

        bad += ron_tree_append(tree, &leaves[size], sink, NULL) != RON_OK;
    }

    ron_tree_root(tree, &root);
    mth(leaves, 66000, &want);
    ok(bad == 0 && sunk.bad == 0 && sunk.n[0] == 66000 / 256
       && sunk.n[1] == 1 && ron_hash_eq(&root, &want),
       "after %u failures of the sink the tree is what it would be", failed);

    free(tree);
    free(saved);
}


/* ---- the largest trees -------------------------------------------------- */

static void
test_huge(void)
{
    uint32_t       i, bad, k;
    uint64_t       a, b;
    ron_hash_t     of_bit[64], root_a, root_b, root;
    ron_tree_t    *tree;
    ron_proof_t    proof;
    ron_status_t   rc;

    tree = malloc(sizeof(ron_tree_t));
    RON_ASSERT(tree != NULL);

    of_bit[0] = leaves[0];

    for (i = 1; i < 64; i++) {
        ron_digest_node(digest, &of_bit[i - 1], &of_bit[i - 1], &of_bit[i]);
    }

    bad = 0;

    for (i = 0; i < 400; i++) {
        k = (uint32_t) rnd(63);
        b = ((uint64_t) 1 << k) + rnd(i % 2 ? 3 : (uint64_t) 1 << k);

        if (i < 4) {
            b = RON_TREE_MAX - i % 2;
        }

        a = rnd(2) ? rnd(b) : b - 1;

        bad += ron_proof_root(digest, b, same_source, of_bit, &root_b)
               != RON_OK;
        bad += ron_proof_inclusion(digest, a, b, same_source, of_bit, &proof)
               != RON_OK;
        bad += ron_verify_inclusion(digest, &of_bit[0], a, b, &proof, &root_b)
               != RON_OK;

        a = i < 4 ? 3 - i / 2 : rnd(b + 1);

        bad += ron_proof_root(digest, a, same_source, of_bit, &root_a)
               != RON_OK;
        bad += ron_proof_consistency(digest, a, b, same_source, of_bit, &proof)
               != RON_OK;
        bad += ron_verify_consistency(digest, a, b, &root_a, &root_b, &proof)
               != RON_OK;

        bad += ron_tree_load(tree, digest, b, same_source, of_bit) != RON_OK;
        ron_tree_root(tree, &root);
        bad += !ron_hash_eq(&root, &root_b);

        for (k = 0; k < 5; k++) {
            rc = ron_tree_append(tree, &of_bit[0], NULL, NULL);

            if (b + k >= RON_TREE_MAX) {
                bad += rc != RON_ERANGE || tree->size != RON_TREE_MAX;
                break;
            }

            bad += rc != RON_OK
                   || ron_proof_root(digest, b + k + 1, same_source, of_bit,
                                     &root_b) != RON_OK;
            ron_tree_root(tree, &root);
            bad += !ron_hash_eq(&root, &root_b);
        }
    }

    is_u64(bad, 0, "400 trees of up to 2^63 equal leaves");
    is_status(ron_tree_load(tree, digest, RON_TREE_MAX + 1, same_source,
                            of_bit), RON_ERANGE, "and none beyond");

    free(tree);
}


int
main(void)
{
    test_digest();
    test_vectors();

    for (digest = RON_DIGEST_BLAKE3; digest <= RON_DIGEST_SHA256; digest++) {
        diag("%s", ron_digest_name(digest));

        make_leaves();
        test_tree();
        test_exhaustive();
        test_large();
        test_wrong_sizes();
        test_mutated();
        test_trivial();
        test_many();
        test_failures();
        test_huge();
        free_leaves();
    }

    return done_testing();
}
