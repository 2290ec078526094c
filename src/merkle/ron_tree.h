
/*
 * The accumulator: an RFC 9162 Merkle tree over canonical entry bytes, kept
 * as its right edge only.
 *
 * A tree of n leaves is stored as tiles in the layout of C2SP tlog-tiles:
 * tile (level L, index N) holds the 256 hashes of the subtrees of 256^L
 * leaves each, left to right, starting at subtree 256 * N.  A complete tile
 * never changes, is handed out once by ron_tree_append() and then forgotten;
 * what stays in memory is one partial tile a level (at most 8 * 8 KiB), from
 * which the root of the current size is always computable.
 *
 * Beside the edge stand the peaks: the roots of the complete subtrees that
 * the size is the sum of, one for each of its bits that is set.  They are to
 * the edge what a carry chain is to a counter: appending a leaf makes each
 * node of the tree once and when it becomes complete (one node a leaf over
 * time), and a root folds the peaks, at most one node for each set bit,
 * without looking at the edge at all.
 *
 * The same leaves give the same tiles and roots whatever the batching.
 */

#ifndef RON_TREE_H
#define RON_TREE_H


#include "ron.h"
#include "ron_digest.h"


#define RON_TILE_WIDTH   256
#define RON_TILE_LEVELS  8
#define RON_TREE_BITS    64

/* More leaves than this have proofs longer than RON_PROOF_MAX. */
#define RON_TREE_MAX  ((uint64_t) 1 << 63)


typedef struct {
    uint8_t      level;
    uint16_t     width;                 /* 1 .. 256; 256 = complete */
    uint64_t     index;
    ron_hash_t   hashes[RON_TILE_WIDTH];
} ron_tile_t;


typedef struct {
    ron_digest_t  digest;
    uint64_t      size;
    ron_hash_t    edge[RON_TILE_LEVELS][RON_TILE_WIDTH];
    uint16_t      edge_n[RON_TILE_LEVELS];

    /* peak[b] is of 2^b leaves and there when bit b of the size is set. */
    ron_hash_t    peak[RON_TREE_BITS];
} ron_tree_t;


/*
 * Called for each tile as it becomes complete, lowest level first.  The tile
 * is gone when it returns.
 */
typedef ron_status_t (*ron_tile_sink_pt)(void *ctx, const ron_tile_t *tile);


/* The tree of no leaves. */
void ron_tree_init(ron_tree_t *tree, ron_digest_t digest);

/*
 * Appends a leaf hash; complete tiles go to the sink (which may be NULL).
 * What the sink answers but RON_OK is returned, and the tree is then as it
 * was before the leaf: appending it again offers the same tiles again.
 * RON_ERANGE when there are RON_TREE_MAX leaves already.
 */
ron_status_t ron_tree_append(ron_tree_t *tree, const ron_hash_t *leaf,
    ron_tile_sink_pt sink, void *ctx);

/*
 * Appends several, whose nodes are made side by side.  When the sink fails
 * those are there that end before its tile: the size tells.
 */
ron_status_t ron_tree_append_all(ron_tree_t *tree, const ron_hash_t *leaves,
    size_t n, ron_tile_sink_pt sink, void *ctx);

/* The root of the current size; of the empty tree, H of the empty string. */
void ron_tree_root(const ron_tree_t *tree, ron_hash_t *root);

/*
 * Answers a tile from the edge: fills the `width` hashes of (level, index)
 * when that tile is the partial one of its level and as wide as that, else
 * RON_ENOTFOUND.  A source below can ask here first, and the store after.
 */
ron_status_t ron_tree_edge(const ron_tree_t *tree, ron_tile_t *tile);

/*
 * The root of the 256^(level + 1) leaves below a complete tile, which is one
 * hash of the tile above: how a level is rebuilt from the level below it.
 */
void ron_tile_root(ron_digest_t digest, const ron_tile_t *tile,
    ron_hash_t *root);


/*
 * Where hashes of a tree come from when proofs are made or an edge is loaded:
 * fills `tile->hashes[0 .. width-1]` for (level, index, width), width being
 * 256 for a complete tile and less only at the right edge of `size` leaves.
 *
 * The hashes of a partial tile are the first ones of the same tile at any
 * larger size, so a wider tile may answer, complete or not.  No tile is asked
 * for twice in one call.  A failure of the source is returned as it is.
 */
typedef ron_status_t (*ron_tile_source_pt)(void *ctx, uint64_t size,
    ron_tile_t *tile);


/*
 * Loads the edge of a stored tree of `size` leaves, with one partial tile a
 * level.  Whether it is the right tree is for the caller to see, who knows
 * the root.  RON_ERANGE for a size above RON_TREE_MAX.
 */
ron_status_t ron_tree_load(ron_tree_t *tree, ron_digest_t digest,
    uint64_t size, ron_tile_source_pt source, void *ctx);


#define RON_PROOF_MAX  64

typedef struct {
    uint32_t    n;
    ron_hash_t  path[RON_PROOF_MAX];
} ron_proof_t;


/*
 * RFC 9162 section 2.1.3.1 and 2.1.4.1.  `index` is the leaf (seq - 1), sizes
 * are leaf counts; RON_ERANGE when they are not within one another, or not
 * within RON_TREE_MAX.  A consistency proof from the empty tree, or between
 * equal sizes, is empty.
 */
ron_status_t ron_proof_inclusion(ron_digest_t digest, uint64_t index,
    uint64_t size, ron_tile_source_pt source, void *ctx, ron_proof_t *proof);
ron_status_t ron_proof_consistency(ron_digest_t digest, uint64_t from,
    uint64_t to, ron_tile_source_pt source, void *ctx, ron_proof_t *proof);

/* The root of the first `size` leaves of a stored tree. */
ron_status_t ron_proof_root(ron_digest_t digest, uint64_t size,
    ron_tile_source_pt source, void *ctx, ron_hash_t *root);


#endif /* RON_TREE_H */
