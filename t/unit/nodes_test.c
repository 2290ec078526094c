
/*
 * The cache of nodes against proofs made from tiles: every size near the
 * borders of tiles, random ones between, in a cache that holds all and in one
 * that holds almost nothing, while the tree grows, from several threads.
 */

#include "ron_nodes.h"
#include "ron_port.h"

#include "ron_seed.h"
#include "ron_test.h"


#define LEAVES   140000U                /* more than two tiles of level 1 */
#define LEVELS   3
#define THREADS  4


static ron_digest_t  digest = RON_DIGEST_BLAKE3;
static ron_hash_t   *level[LEVELS];
static uint32_t      level_n[LEVELS];
static uint64_t      seed = 7;
static _Thread_local uint32_t  asked;
static uint32_t      fail_at;
static _Atomic bool  partial_above;


static uint64_t
rnd(uint64_t below)
{
    return ron_seed_below(&seed, below);
}


static void
make(void)
{
    ron_tile_t  tile;

    level_n[0] = LEAVES;

    for (unsigned l = 0; l < LEVELS; l++) {
        level[l] = calloc(level_n[l] + 1, sizeof(ron_hash_t));
        RON_ASSERT(level[l] != NULL);

        for (uint32_t i = 0; i < level_n[l]; i++) {
            if (l == 0) {
                ron_digest_leaf(digest, (uint8_t *) &i, sizeof(i),
                                &level[0][i]);
                continue;
            }

            tile.width = RON_TILE_WIDTH;
            memcpy(tile.hashes, &level[l - 1][i * RON_TILE_WIDTH],
                   sizeof(tile.hashes));
            ron_tile_root(digest, &tile, &level[l][i]);
        }

        if (l + 1 < LEVELS) {
            level_n[l + 1] = level_n[l] / RON_TILE_WIDTH;
        }
    }
}


/* Any tile of a tree of `size` leaves. */

static ron_status_t
from_levels(void *ctx, uint64_t size, ron_tile_t *tile)
{
    (void) ctx;

    RON_ASSERT(tile->level < LEVELS);
    RON_ASSERT(tile->index * RON_TILE_WIDTH + tile->width
               <= size >> (8 * tile->level));

    memcpy(tile->hashes, &level[tile->level][tile->index * RON_TILE_WIDTH],
           tile->width * sizeof(ron_hash_t));

    return RON_OK;
}


/* What the cache may ask: as a store has it. */

static ron_status_t
from_store(void *ctx, uint64_t size, ron_tile_t *tile)
{
    asked++;

    if (fail_at != 0 && asked == fail_at) {
        return RON_EIO;
    }

    if (tile->level > 0 && tile->width != RON_TILE_WIDTH) {
        partial_above = true;
    }

    return from_levels(ctx, size, tile);
}


static bool
same(ron_nodes_t *nodes, uint64_t index, uint64_t size)
{
    ron_hash_t   leaf, root, want_root;
    ron_proof_t  proof, want;

    if (ron_nodes_inclusion(nodes, index, size, from_store, NULL, &leaf,
                            &root, &proof)
        != RON_OK
        || ron_proof_inclusion(digest, index, size, from_levels, NULL, &want)
           != RON_OK
        || ron_proof_root(digest, size, from_levels, NULL, &want_root)
           != RON_OK)
    {
        return false;
    }

    return proof.n == want.n && ron_hash_eq(&root, &want_root)
           && memcmp(proof.path, want.path, want.n * sizeof(ron_hash_t)) == 0
           && ron_hash_eq(&leaf, &level[0][index]);
}


static unsigned
borders(ron_nodes_t *nodes)
{
    uint64_t  size;
    unsigned  wrong;

    static const uint32_t  at[] = { 1, 2, 3, 255, 256, 257, 511, 512, 513,
                                    65535, 65536, 65537, 65791, 65792, 65793,
                                    131071, 131072, 131073, LEAVES };

    wrong = 0;

    for (size_t i = 0; i < ron_array_n(at); i++) {
        size = at[i];
        wrong += !same(nodes, 0, size);
        wrong += !same(nodes, size - 1, size);
        wrong += !same(nodes, size / 2, size);

        for (unsigned n = 0; n < 20; n++) {
            wrong += !same(nodes, rnd(size), size);
        }
    }

    for (unsigned n = 0; n < 500; n++) {
        size = 1 + rnd(LEAVES);
        wrong += !same(nodes, rnd(size), size);
    }

    return wrong;
}


static void
test_against_tiles(size_t ram, const char *what)
{
    ron_nodes_t  *nodes;

    is_status(ron_nodes_create(digest, ram, &nodes), RON_OK, "%s", what);
    partial_above = false;
    is_u64(borders(nodes), 0, "%s: the proofs are those of the tiles", what);
    ok(!partial_above, "%s: and only what stores have was asked for", what);
    ron_nodes_free(nodes);
}


static void
test_memory(void)
{
    ron_hash_t    leaf, root;
    ron_nodes_t  *nodes;
    ron_proof_t   proof;

    RON_ASSERT(ron_nodes_create(digest, 4 << 20, &nodes) == RON_OK);

    is_status(ron_nodes_inclusion(nodes, 70000, 100000, NULL, NULL, &leaf,
                                  &root, &proof),
              RON_AGAIN, "what is not there is not waited for");
    is_status(ron_nodes_inclusion(nodes, 10, 10, NULL, NULL, &leaf, &root,
                                  &proof),
              RON_ERANGE, "a leaf past the end");

    fail_at = 3;
    asked = 0;
    is_status(ron_nodes_inclusion(nodes, 70000, 100000, from_store, NULL,
                                  &leaf, &root, &proof),
              RON_EIO, "the source fails, and so does the proof");
    fail_at = 0;
    ok(same(nodes, 70000, 100000), "and nothing bad is kept");

    asked = 0;
    is_status(ron_nodes_inclusion(nodes, 70000, 100000, NULL, NULL, &leaf,
                                  &root, &proof),
              RON_OK, "now it is there");
    ok(same(nodes, 70001, 100000), "so is its neighbour");
    is_u64(asked, 0, "and nobody is asked");

    ok(same(nodes, 70000, 100000 + 256), "a tree that grew by a tile");
    ok(asked <= 4, "costs what is new, %u tiles", asked);

    ok(same(nodes, 70000, 99999), "a smaller tree than one that was seen");
    ron_nodes_free(nodes);
}


static bool
remembered(ron_nodes_t *nodes, uint64_t index, uint64_t size)
{
    ron_hash_t   leaf, root;
    ron_proof_t  proof;

    return ron_nodes_inclusion(nodes, index, size, NULL, NULL, &leaf, &root,
                               &proof) == RON_OK;
}


/* Eight slots, so that tiles go soon; but their halves are remembered. */

static void
test_halves(void)
{
    bool          same_after;
    ron_nodes_t  *nodes;

    RON_ASSERT(ron_nodes_create(digest, 200 << 10, &nodes) == RON_OK);

    ok(same(nodes, 10, 100000), "a tile that was never seen");
    ok(remembered(nodes, 200, 100000), "is made as a whole");

    for (uint64_t i = 0; i < 20; i++) {
        RON_ASSERT(same(nodes, (10 + i) * RON_TILE_WIDTH, 100000));
    }

    ok(!remembered(nodes, 10, 100000), "it makes room for others");

    asked = 0;
    ok(same(nodes, 10, 100000), "and comes back");
    is_u64(asked, 1, "with one tile");
    ok(remembered(nodes, 127, 100000), "its half that was asked for");
    ok(!remembered(nodes, 128, 100000), "and not the other one");

    same_after = same(nodes, 127, 129) && same(nodes, 128, 129)
                 && same(nodes, 200, 201) && same(nodes, 20, 21);
    ok(same_after, "trees that end within it");

    RON_ASSERT(same(nodes, 99999, 100000));
    asked = 0;
    ok(same(nodes, 200, 100000), "the other half");
    ok(same(nodes, 20, 100000), "and the first one");
    ok(remembered(nodes, 10, 100000) && remembered(nodes, 255, 100000),
       "are both there then");
    is_u64(asked, 2, "which takes a tile each");

    ron_nodes_free(nodes);
}


/* Tiles of level 0 come and go, those above them stay for longer. */

static void
test_levels(void)
{
    ron_nodes_t  *nodes;

    RON_ASSERT(ron_nodes_create(digest, 200 << 10, &nodes) == RON_OK);

    RON_ASSERT(same(nodes, 0, 131072) && same(nodes, 70000, 131072));

    for (uint64_t i = 1; i < 50; i++) {
        RON_ASSERT(same(nodes, i * RON_TILE_WIDTH, 131072));
    }

    asked = 0;
    ok(same(nodes, 70000, 131072), "after 49 others below another tile");
    is_u64(asked, 1, "a proof takes no tile but its own");

    for (uint64_t i = 0; i < 300; i++) {
        RON_ASSERT(same(nodes, i % 6 * RON_TILE_WIDTH, 131072));
    }

    asked = 0;

    for (uint64_t i = 0; i < 6; i++) {
        RON_ASSERT(same(nodes, i * RON_TILE_WIDTH, 131072));
    }

    is_u64(asked, 0, "unless nobody wants it any more");
    ron_nodes_free(nodes);
}


typedef struct {
    ron_nodes_t  *nodes;
    uint64_t      first;
    unsigned      wrong;
} worker_t;


static void
work(void *arg)
{
    uint64_t   size;
    worker_t  *w = arg;

    for (unsigned i = 0; i < 400; i++) {
        size = 60000 + (w->first + i * UINT64_C(7919)) % 80000;
        w->wrong += !same(w->nodes, (size * (i + 1)) % size + i % 256, size);
    }
}


static void
test_threads(void)
{
    unsigned       wrong;
    worker_t       w[THREADS];
    ron_nodes_t   *nodes;
    ron_thread_t  *thread[THREADS];

    wrong = 0;
    RON_ASSERT(ron_nodes_create(digest, 1 << 20, &nodes) == RON_OK);

    for (unsigned i = 0; i < THREADS; i++) {
        w[i] = (worker_t) { nodes, i * 1000, 0 };
        RON_ASSERT(ron_thread_start(&thread[i], "nodes", RON_THREAD_USUAL,
                                    work, &w[i])
                   == RON_OK);
    }

    for (unsigned i = 0; i < THREADS; i++) {
        RON_ASSERT(ron_thread_join(thread[i], 120000) == RON_OK);
        wrong += w[i].wrong;
    }

    is_u64(wrong, 0, "%u threads over one cache", THREADS);
    ron_nodes_free(nodes);
}


int
main(void)
{
    make();

    test_against_tiles(32 << 20, "everything fits");
    test_against_tiles(1, "eight slots");
    test_against_tiles(200 << 10, "eight slots, and every tile's halves");
    test_memory();
    test_halves();
    test_levels();
    test_threads();

    for (unsigned l = 0; l < LEVELS; l++) {
        free(level[l]);
    }

    return done_testing();
}
