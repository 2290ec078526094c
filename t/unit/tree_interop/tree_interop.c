
/*
 * Prints what libron makes of the entries "entry 0", "entry 1", ... under
 * sha256, for t/04-tree-interop.t to compare with another implementation:
 *
 *     root <size> <hash>
 *     inclusion <index> <size> <hash>...
 *     consistency <from> <to> <hash>...
 *     note <verifier key> <signed note in hex>
 */

#include "ron_note.h"
#include "ron_tree.h"

#include <stdio.h>
#include <stdlib.h>


#define ENTRIES  66000U


static ron_tile_t  *stored;
static uint64_t     stored_n[2];
static ron_tree_t   tree;


/* Room for the complete tiles of level 0, and behind them those of level 1. */

static ron_tile_t *
place(unsigned level, uint64_t index)
{
    return &stored[(level == 0 ? 0 : ENTRIES / RON_TILE_WIDTH) + index];
}


static ron_status_t
sink(void *ctx, const ron_tile_t *tile)
{
    (void) ctx;

    RON_ASSERT(tile->level < 2 && tile->index == stored_n[tile->level]);

    *place(tile->level, tile->index) = *tile;
    stored_n[tile->level]++;

    return RON_OK;
}


static ron_status_t
source(void *ctx, uint64_t size, ron_tile_t *tile)
{
    (void) ctx;
    (void) size;

    if (ron_tree_edge(&tree, tile) == RON_OK) {
        return RON_OK;
    }

    if (tile->level >= 2 || tile->index >= stored_n[tile->level]) {
        return RON_ENOTFOUND;
    }

    memcpy(tile->hashes, place(tile->level, tile->index)->hashes,
           tile->width * sizeof(ron_hash_t));

    return RON_OK;
}


static void
print_hex(const void *data, size_t len)
{
    size_t          i;
    const uint8_t  *p = data;

    putchar(' ');

    for (i = 0; i < len; i++) {
        printf("%02x", p[i]);
    }
}


static void
print_proof(const ron_proof_t *proof)
{
    uint32_t  i;

    for (i = 0; i < proof->n; i++) {
        print_hex(proof->path[i].b, RON_HASH_LEN);
    }

    putchar('\n');
}


static void
print_root(uint64_t size)
{
    ron_hash_t  root;

    RON_ASSERT(ron_proof_root(RON_DIGEST_SHA256, size, source, NULL, &root)
               == RON_OK);

    printf("root %u", (unsigned) size);
    print_hex(root.b, RON_HASH_LEN);
    putchar('\n');
}


static void
print_inclusion(uint64_t index, uint64_t size)
{
    ron_proof_t  proof;

    RON_ASSERT(ron_proof_inclusion(RON_DIGEST_SHA256, index, size, source,
                                   NULL, &proof) == RON_OK);

    printf("inclusion %u %u", (unsigned) index, (unsigned) size);
    print_proof(&proof);
}


static void
print_consistency(uint64_t from, uint64_t to)
{
    ron_proof_t  proof;

    RON_ASSERT(ron_proof_consistency(RON_DIGEST_SHA256, from, to, source,
                                     NULL, &proof) == RON_OK);

    printf("consistency %u %u", (unsigned) from, (unsigned) to);
    print_proof(&proof);
}


static void
print_note(void)
{
    ron_buf_t              key, note;
    ron_signer_t          *signer;
    ron_checkpoint_note_t  cp;

    ron_buf_init(&key, 0);
    ron_buf_init(&note, 0);

    RON_ASSERT(ron_signer_generate(ron_str("ledger.example/interop"), &signer)
               == RON_OK);

    memset(&cp, 0, sizeof(cp));
    cp.origin = ron_signer_name(signer);
    cp.size = tree.size;
    ron_tree_root(&tree, &cp.root);

    RON_ASSERT(ron_signer_public_text(signer, &key) == RON_OK
               && ron_note_sign(signer, &cp, &note) == RON_OK);

    printf("note %.*s", (int) key.len, (char *) key.data);
    print_hex(note.data, note.len);
    putchar('\n');

    ron_signer_free(signer);
    ron_buf_free(&key);
    ron_buf_free(&note);
}


int
main(void)
{
    int         n;
    char        entry[32];
    uint64_t    i, k, size;
    ron_hash_t  leaf;

    static const uint64_t  large[] = { 255, 256, 257, 511, 513, 1000, 65537,
                                       ENTRIES };

    stored = calloc(ENTRIES / RON_TILE_WIDTH + 1, sizeof(ron_tile_t));
    RON_ASSERT(stored != NULL);

    ron_tree_init(&tree, RON_DIGEST_SHA256);

    for (i = 0; i < ENTRIES; i++) {
        n = snprintf(entry, sizeof(entry), "entry %u", (unsigned) i);
        ron_digest_leaf(RON_DIGEST_SHA256, entry, (size_t) n, &leaf);
        RON_ASSERT(ron_tree_append(&tree, &leaf, sink, NULL) == RON_OK);
    }

    for (size = 0; size <= 24; size++) {
        print_root(size);

        for (i = 0; i < size; i++) {
            print_inclusion(i, size);
        }

        for (i = 1; i < size; i++) {
            print_consistency(i, size);
        }
    }

    for (size = 25; size <= 130; size++) {
        print_root(size);
        print_inclusion(size * 7 % size, size);
        print_inclusion(size - 1, size);
        print_inclusion(size * size / 3 % size, size);
        print_consistency(1 + size * 5 / 7 % size, size);
        print_consistency(size / 2, size);
        print_consistency(size - 1, size);
    }

    for (k = 0; k < ron_array_n(large); k++) {
        size = large[k];
        print_root(size);
        print_inclusion(size - 1, size);
        print_inclusion(size / 3, size);
        print_consistency(size - 1, size);
        print_consistency(size / 2 + 1, size);
    }

    print_note();
    free(stored);

    return 0;
}
