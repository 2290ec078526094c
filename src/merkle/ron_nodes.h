
/*
 * A cache of the tree for inclusion proofs.
 *
 * A proof asks for about twenty nodes.  Making them from tiles costs up to
 * 255 hashes a tile, and at the right edge of the tree the tiles of the upper
 * levels are not stored at all.  Here a tile is kept with the nodes over it,
 * so that a proof out of memory is twenty copies; and the partial tiles of
 * the edge grow by what is new.
 *
 *     slot    level, index, width; 256 hashes, and 128, 64, ... 2 nodes
 *     top     index; the roots of both halves of a tile of level 0
 *
 * Slots are in sets of eight.  The least recently used of a set makes room,
 * and those above level 0 age slowly: a proof out of a tile that is not there
 * still needs all those above it.
 *
 * A ledger has many more tiles than slots, but not than tops, which are 72
 * bytes each.  With its top, only the half of a tile that a leaf is in has to
 * be made, and the nodes over the other half are left out of its slot until
 * they are asked for.  Half of the memory is slots, half is tops.
 *
 * What the peaks of a size fold to is kept for the last size: the root, and
 * the only node of a path that is not complete.
 *
 * What is committed never changes, so nothing is ever invalidated: a partial
 * tile is good for every tree whose part of it is not wider.
 *
 * Any thread may call: the lock is held over copies in memory only, and a
 * source is asked without it.
 */

#ifndef RON_NODES_H
#define RON_NODES_H


#include "ron_tree.h"


typedef struct ron_nodes_s  ron_nodes_t;


/* About `ram` bytes, at least eight slots and a top (130 KiB). */
ron_status_t ron_nodes_create(ron_digest_t digest, size_t ram,
    ron_nodes_t **nodes);
void ron_nodes_free(ron_nodes_t *nodes);

/*
 * The proof of leaf `index` (seq - 1) in the tree of the first `size` leaves,
 * the leaf's hash and that tree's root.  Without a source: RON_AGAIN when
 * something is not there.  With one, complete tiles and the partial one of
 * level 0 are asked of it, and its failure is returned as it is.  RON_ERANGE
 * as ron_proof_inclusion().
 */
ron_status_t ron_nodes_inclusion(ron_nodes_t *nodes, uint64_t index,
    uint64_t size, ron_tile_source_pt source, void *ctx, ron_hash_t *leaf,
    ron_hash_t *root, ron_proof_t *proof);


#endif /* RON_NODES_H */
