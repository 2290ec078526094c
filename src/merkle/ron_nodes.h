
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
 *
 * Slots are in sets of eight, the least recently used of a set makes room.
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


/* About `ram` bytes, at least eight slots (130 KiB). */
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
