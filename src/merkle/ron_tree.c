
/*
 * Nodes are named by (bit, index): the root of the 2^bit leaves that begin
 * at leaf index * 2^bit.  A node with a multiple of 8 for its bit is stored,
 * as hash `index` of tile level bit / 8; any other is folded from the 2 to
 * 128 stored ones below it, which all lie in one tile.
 *
 * What a proof needs is a handful of such nodes, and at most one root of a
 * range that is no node: the ragged right end of the tree, which is a fold of
 * nodes.  So a proof is first planned, as a list of nodes, and then read: for
 * each tile that the list touches the source is asked once, and every node in
 * it is made before the next one is asked for.  One tile is in memory at a
 * time.
 *
 * Ranges follow the split of the RFC, where the left part is the largest
 * power of two smaller than the whole; therefore every range met begins at a
 * multiple of the largest power of two in its length, and its nodes are the
 * set bits of the length from high to low.
 */

#include "ron_tree.h"


/*
 * Siblings on the way down (at most 63), one of them ragged (64 nodes
 * instead of one), and the node that a consistency proof begins with.
 */
#define RON_PLAN_MAX  (2 * RON_TREE_BITS + 1)

#define RON_TILE_BITS  8


typedef struct {
    uint8_t     bit;
    bool        read;
    uint64_t    index;
    ron_hash_t  hash;
} ron_plan_node_t;


typedef struct {
    uint32_t         node_n;
    uint32_t         range_n;
    uint32_t         first[RON_PROOF_MAX + 1];  /* of each range, its nodes */
    ron_plan_node_t  node[RON_PLAN_MAX];
} ron_plan_t;


static ron_status_t ron_tree_append_part(ron_tree_t *tree,
    const ron_hash_t *leaves, size_t n, ron_tile_sink_pt sink, void *ctx);
static ron_status_t ron_tree_tile(const ron_tree_t *tree, unsigned level,
    size_t count, ron_tile_sink_pt sink, void *ctx);
static void ron_tree_fold(ron_digest_t digest, const ron_hash_t *hashes,
    uint32_t n, ron_hash_t *out);
static unsigned ron_tree_top_bit(uint64_t v);
static uint64_t ron_tree_split(uint64_t n);
static void ron_plan_range(ron_plan_t *plan, uint64_t begin, uint64_t n);
static ron_status_t ron_plan_read(ron_plan_t *plan, ron_digest_t digest,
    uint64_t size, ron_tile_source_pt source, void *ctx);
static ron_status_t ron_plan_read_tile(ron_plan_t *plan, uint32_t from,
    ron_digest_t digest, uint64_t size, ron_tile_source_pt source, void *ctx);
static void ron_plan_range_root(const ron_plan_t *plan, uint32_t range,
    ron_digest_t digest, ron_hash_t *root);
static ron_status_t ron_plan_proof(ron_plan_t *plan, ron_digest_t digest,
    uint64_t size, ron_tile_source_pt source, void *ctx, ron_proof_t *proof);


void
ron_tree_init(ron_tree_t *tree, ron_digest_t digest)
{
    memset(tree, 0, sizeof(*tree));
    tree->digest = digest;
}


ron_status_t
ron_tree_append(ron_tree_t *tree, const ron_hash_t *leaf,
    ron_tile_sink_pt sink, void *ctx)
{
    return ron_tree_append_all(tree, leaf, 1, sink, ctx);
}


/* No part goes beyond a tile: tiles come in the order of their last leaf. */

ron_status_t
ron_tree_append_all(ron_tree_t *tree, const ron_hash_t *leaves, size_t n,
    ron_tile_sink_pt sink, void *ctx)
{
    size_t        part;
    ron_status_t  rc;

    while (n != 0) {
        part = ron_min(n, (size_t) RON_TILE_WIDTH - tree->edge_n[0]);

        rc = ron_tree_append_part(tree, leaves, part, sink, ctx);
        if (rc != RON_OK) {
            return rc;
        }

        leaves += part;
        n -= part;
    }

    return RON_OK;
}


static ron_status_t
ron_tree_append_part(ron_tree_t *tree, const ron_hash_t *leaves, size_t n,
    ron_tile_sink_pt sink, void *ctx)
{
    size_t         count, odd;
    unsigned       bit, bits, level;
    uint16_t       added[RON_TILE_LEVELS];
    ron_hash_t     hashes[RON_TREE_BITS + RON_TILE_WIDTH], *h;
    ron_hash_t     peaks[RON_TREE_BITS];
    ron_status_t   rc;

    if (n > RON_TREE_MAX - tree->size) {
        return RON_ERANGE;
    }

    /*
     * Adding a number: from each height to the next goes a carry, which are
     * the nodes that become complete, made of what came to this height and of
     * the peak that was there, if there was one; what is left over is the
     * peak from now on.  Nothing of the tree that anybody reads is written
     * before the sink has had its say; hashes are put beyond the end of their
     * level and counted afterwards.
     */

    h = hashes + RON_TREE_BITS;
    count = n;
    memcpy(h, leaves, n * sizeof(ron_hash_t));

    for (bit = 0; count != 0; bit++) {

        if (bit % RON_TILE_BITS == 0) {
            level = bit / RON_TILE_BITS;
            added[level] = (uint16_t) count;
            memcpy(&tree->edge[level][tree->edge_n[level]], h,
                   count * sizeof(ron_hash_t));

            rc = ron_tree_tile(tree, level, count, sink, ctx);
            if (rc != RON_OK) {
                return rc;
            }
        }

        odd = tree->size >> bit & 1;

        if (odd) {
            *--h = tree->peak[bit];
        }

        count += odd;
        peaks[bit] = h[count - 1];
        count /= 2;
        ron_digest_nodes(tree->digest, h, count, h);
    }

    tree->size += n;

    for (bits = bit, bit = 0; bit < bits; bit++) {

        if (bit % RON_TILE_BITS == 0) {
            level = bit / RON_TILE_BITS;
            tree->edge_n[level] = (tree->edge_n[level] + added[level])
                                  % RON_TILE_WIDTH;
        }

        if (tree->size >> bit & 1) {
            tree->peak[bit] = peaks[bit];
        }
    }

    return RON_OK;
}


/* A level of which the last of `count` hashes makes a tile complete. */

static ron_status_t
ron_tree_tile(const ron_tree_t *tree, unsigned level, size_t count,
    ron_tile_sink_pt sink, void *ctx)
{
    ron_tile_t  tile;

    if (tree->edge_n[level] + count != RON_TILE_WIDTH || sink == NULL) {
        return RON_OK;
    }

    tile.level = (uint8_t) level;
    tile.width = RON_TILE_WIDTH;
    tile.index = tree->size >> ((level + 1) * RON_TILE_BITS - 1) >> 1;
    memcpy(tile.hashes, tree->edge[level], sizeof(tile.hashes));

    return sink(ctx, &tile);
}


void
ron_tree_root(const ron_tree_t *tree, ron_hash_t *root)
{
    bool      first;
    unsigned  bit;

    if (tree->size == 0) {
        ron_digest_bytes(tree->digest, NULL, 0, root);
        return;
    }

    first = true;

    for (bit = 0; bit < RON_TREE_BITS; bit++) {

        if ((tree->size >> bit & 1) == 0) {
            continue;
        }

        if (first) {
            *root = tree->peak[bit];
            first = false;
            continue;
        }

        ron_digest_node(tree->digest, &tree->peak[bit], root, root);
    }
}


ron_status_t
ron_tree_edge(const ron_tree_t *tree, ron_tile_t *tile)
{
    unsigned  bit;

    if (tile->level >= RON_TILE_LEVELS) {
        return RON_ENOTFOUND;
    }

    bit = tile->level * RON_TILE_BITS;

    if (tile->index != tree->size >> bit >> RON_TILE_BITS
        || tile->width > tree->edge_n[tile->level])
    {
        return RON_ENOTFOUND;
    }

    memcpy(tile->hashes, tree->edge[tile->level],
           tile->width * sizeof(ron_hash_t));

    return RON_OK;
}


void
ron_tile_root(ron_digest_t digest, const ron_tile_t *tile, ron_hash_t *root)
{
    RON_ASSERT(tile->width == RON_TILE_WIDTH);

    ron_tree_fold(digest, tile->hashes, RON_TILE_WIDTH, root);
}


ron_status_t
ron_tree_load(ron_tree_t *tree, ron_digest_t digest, uint64_t size,
    ron_tile_source_pt source, void *ctx)
{
    unsigned      bit, level;
    uint32_t      n, at;
    ron_tile_t    tile;
    ron_status_t  rc;

    ron_tree_init(tree, digest);

    if (size > RON_TREE_MAX) {
        return RON_ERANGE;
    }

    for (level = 0; level < RON_TILE_LEVELS; level++) {
        bit = level * RON_TILE_BITS;
        n = (uint32_t) (size >> bit) % RON_TILE_WIDTH;

        if (n == 0) {
            continue;
        }

        tile.level = (uint8_t) level;
        tile.width = (uint16_t) n;
        tile.index = size >> bit >> RON_TILE_BITS;

        rc = source(ctx, size, &tile);

        if (rc != RON_OK) {
            ron_tree_init(tree, digest);
            return rc;
        }

        memcpy(tree->edge[level], tile.hashes, n * sizeof(ron_hash_t));
        tree->edge_n[level] = (uint16_t) n;

        /* the peaks of this level, smallest first, from its right end */

        for (at = n; at != 0; at &= at - 1) {
            bit = (unsigned) __builtin_ctz(at);

            ron_tree_fold(digest, &tile.hashes[at - (1U << bit)], 1U << bit,
                          &tree->peak[level * RON_TILE_BITS + bit]);
        }
    }

    tree->size = size;

    return RON_OK;
}


ron_status_t
ron_proof_inclusion(ron_digest_t digest, uint64_t index, uint64_t size,
    ron_tile_source_pt source, void *ctx, ron_proof_t *proof)
{
    uint64_t    begin, n, left;
    ron_plan_t  plan;

    memset(proof, 0, sizeof(*proof));

    if (index >= size || size > RON_TREE_MAX) {
        return RON_ERANGE;
    }

    plan.node_n = 0;
    plan.range_n = 0;

    begin = 0;
    n = size;

    while (n > 1) {
        left = ron_tree_split(n);

        if (index - begin < left) {
            ron_plan_range(&plan, begin + left, n - left);
            n = left;

        } else {
            ron_plan_range(&plan, begin, left);
            begin += left;
            n -= left;
        }
    }

    return ron_plan_proof(&plan, digest, size, source, ctx, proof);
}


ron_status_t
ron_proof_consistency(ron_digest_t digest, uint64_t from, uint64_t to,
    ron_tile_source_pt source, void *ctx, ron_proof_t *proof)
{
    uint64_t    begin, n, left;
    ron_plan_t  plan;

    memset(proof, 0, sizeof(*proof));

    if (from > to || to > RON_TREE_MAX) {
        return RON_ERANGE;
    }

    if (from == 0 || from == to) {
        return RON_OK;
    }

    plan.node_n = 0;
    plan.range_n = 0;

    begin = 0;
    n = to;

    while (begin + n != from) {
        left = ron_tree_split(n);

        if (from - begin <= left) {
            ron_plan_range(&plan, begin + left, n - left);
            n = left;

        } else {
            ron_plan_range(&plan, begin, left);
            begin += left;
            n -= left;
        }
    }

    /*
     * The subtree where the old tree ends is the same in both.  When it is
     * the whole old tree, its root is what the verifier has already.
     */

    if (begin != 0) {
        ron_plan_range(&plan, begin, n);
    }

    return ron_plan_proof(&plan, digest, to, source, ctx, proof);
}


ron_status_t
ron_proof_root(ron_digest_t digest, uint64_t size, ron_tile_source_pt source,
    void *ctx, ron_hash_t *root)
{
    ron_plan_t    plan;
    ron_status_t  rc;

    memset(root, 0, sizeof(*root));

    if (size > RON_TREE_MAX) {
        return RON_ERANGE;
    }

    if (size == 0) {
        ron_digest_bytes(digest, NULL, 0, root);
        return RON_OK;
    }

    plan.node_n = 0;
    plan.range_n = 0;

    ron_plan_range(&plan, 0, size);

    rc = ron_plan_read(&plan, digest, size, source, ctx);
    if (rc != RON_OK) {
        return rc;
    }

    ron_plan_range_root(&plan, 0, digest, root);

    return RON_OK;
}


/* The root over n hashes of one height, n being a power of two up to 256. */

static void
ron_tree_fold(ron_digest_t digest, const ron_hash_t *hashes, uint32_t n,
    ron_hash_t *out)
{
    ron_hash_t  half[RON_TILE_WIDTH / 2];

    RON_ASSERT(n != 0 && n <= RON_TILE_WIDTH && (n & (n - 1)) == 0);

    if (n == 1) {
        *out = hashes[0];
        return;
    }

    n /= 2;
    ron_digest_nodes(digest, hashes, n, half);

    while (n > 1) {
        n /= 2;
        ron_digest_nodes(digest, half, n, half);
    }

    *out = half[0];
}


static unsigned
ron_tree_top_bit(uint64_t v)
{
    return 63 - (unsigned) __builtin_clzll(v);
}


/* The largest power of two smaller than n; n is at least 2. */

static uint64_t
ron_tree_split(uint64_t n)
{
    return (uint64_t) 1 << ron_tree_top_bit(n - 1);
}


/* Notes that the root of the n leaves that start at `begin` is wanted. */

static void
ron_plan_range(ron_plan_t *plan, uint64_t begin, uint64_t n)
{
    unsigned          bit;
    ron_plan_node_t  *node;

    RON_ASSERT(plan->range_n < RON_PROOF_MAX);

    plan->first[plan->range_n++] = plan->node_n;

    while (n != 0) {
        RON_ASSERT(plan->node_n < RON_PLAN_MAX);

        bit = ron_tree_top_bit(n);

        node = &plan->node[plan->node_n++];
        node->bit = (uint8_t) bit;
        node->read = false;
        node->index = begin >> bit;

        begin += (uint64_t) 1 << bit;
        n -= (uint64_t) 1 << bit;
    }

    plan->first[plan->range_n] = plan->node_n;
}


static ron_status_t
ron_plan_read(ron_plan_t *plan, ron_digest_t digest, uint64_t size,
    ron_tile_source_pt source, void *ctx)
{
    uint32_t      i;
    ron_status_t  rc;

    for (i = 0; i < plan->node_n; i++) {

        if (plan->node[i].read) {
            continue;
        }

        rc = ron_plan_read_tile(plan, i, digest, size, source, ctx);
        if (rc != RON_OK) {
            return rc;
        }
    }

    return RON_OK;
}


/* Makes all nodes that lie in the same tile as node `from`. */

static ron_status_t
ron_plan_read_tile(ron_plan_t *plan, uint32_t from, ron_digest_t digest,
    uint64_t size, ron_tile_source_pt source, void *ctx)
{
    uint32_t          i;
    uint64_t          stored;
    unsigned          level, height;
    ron_tile_t        tile;
    ron_status_t      rc;
    ron_plan_node_t  *node;

    node = &plan->node[from];
    level = node->bit / RON_TILE_BITS;
    height = node->bit % RON_TILE_BITS;

    tile.level = (uint8_t) level;
    tile.index = node->index >> (RON_TILE_BITS - height);

    stored = (size >> level * RON_TILE_BITS) - tile.index * RON_TILE_WIDTH;
    tile.width = (uint16_t) ron_min(stored, RON_TILE_WIDTH);

    rc = source(ctx, size, &tile);
    if (rc != RON_OK) {
        return rc;
    }

    for (i = from; i < plan->node_n; i++) {
        node = &plan->node[i];
        height = node->bit % RON_TILE_BITS;

        if (node->bit / RON_TILE_BITS != level
            || node->index >> (RON_TILE_BITS - height) != tile.index)
        {
            continue;
        }

        ron_tree_fold(digest,
                      &tile.hashes[(node->index << height) % RON_TILE_WIDTH],
                      1U << height, &node->hash);
        node->read = true;
    }

    return RON_OK;
}


static void
ron_plan_range_root(const ron_plan_t *plan, uint32_t range,
    ron_digest_t digest, ron_hash_t *root)
{
    uint32_t  i;

    i = plan->first[range + 1] - 1;
    *root = plan->node[i].hash;

    while (i > plan->first[range]) {
        i--;
        ron_digest_node(digest, &plan->node[i].hash, root, root);
    }
}


/*
 * The roots of the ranges of a plan as a proof.  The plan was made from the
 * root of the tree down; a proof is read from the leaf up.
 */

static ron_status_t
ron_plan_proof(ron_plan_t *plan, ron_digest_t digest, uint64_t size,
    ron_tile_source_pt source, void *ctx, ron_proof_t *proof)
{
    uint32_t      i;
    ron_status_t  rc;

    rc = ron_plan_read(plan, digest, size, source, ctx);
    if (rc != RON_OK) {
        return rc;
    }

    proof->n = plan->range_n;

    for (i = 0; i < proof->n; i++) {
        ron_plan_range_root(plan, i, digest, &proof->path[proof->n - 1 - i]);
    }

    return RON_OK;
}
