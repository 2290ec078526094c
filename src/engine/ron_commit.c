
/*
 * The committer: takes a decided batch, extends the tree, appends the row
 * and waits until it is durable.  It is the only one that touches the tree,
 * the chain and the store's writing side.
 */

#include "ron_engine_impl.h"

#include <stdlib.h>


static ron_status_t ron_commit_tile(void *ctx, const ron_tile_t *tile);
static ron_status_t ron_commit_leaves(ron_engine_t *en, ron_work_t *w);


ron_status_t
ron_commit_work(ron_engine_t *en, ron_work_t *w)
{
    uint64_t      begin_us;
    ron_row_t     row;
    ron_status_t  status;

    if (w->pub.count == 0) {
        w->pub.root = en->head.root;
        return RON_OK;
    }

    begin_us = ron_clock_mono_us();

    status = ron_commit_leaves(en, w);
    if (status != RON_OK) {
        return status;
    }

    memset(&row, 0, sizeof(row));
    row.seq = w->pub.seq;
    row.count = w->pub.count;
    row.epoch = en->epoch;
    row.time_ms = w->pub.time_ms;
    row.prev_root = en->head.root;
    row.checkpoint = w->checkpoint;
    row.body = ron_buf_str(&w->body);
    row.notes = ron_buf_str(&w->notes);
    ron_tree_root(&en->tree, &row.root);

    status = ron_store_append(en->store, &row, &en->head.chain, en->tiles,
                              en->tile_n, w->has_slice ? &w->slice : NULL);
    if (status != RON_OK) {
        ron_log(RON_LOG_ERROR, "the journal could not be extended at seq %llu:"
                " %s", (unsigned long long) row.seq,
                ron_store_error(en->store));
        return status;
    }

    en->head = row;
    en->head.body = ron_null_str;
    en->head.notes = ron_null_str;

    w->pub.root = row.root;
    w->pub.append_us = begin_us;
    w->pub.commit_us = ron_clock_mono_us() - begin_us;

    return RON_OK;
}


/* As many entries at once as a tile has: hashes are made side by side. */

static ron_status_t
ron_commit_leaves(ron_engine_t *en, ron_work_t *w)
{
    size_t        n;
    uint64_t      count;
    ron_rd_t      rd;
    ron_str_t     entries[RON_TILE_WIDTH];
    ron_hash_t    leaves[RON_TILE_WIDTH];
    ron_status_t  rc, status;

    en->tile_n = 0;
    count = 0;
    ron_rd_init(&rd, ron_buf_str(&w->body));

    do {
        n = 0;

        do {
            status = ron_body_next(&rd, &entries[n]);
        } while (status == RON_OK && ++n < RON_TILE_WIDTH);

        if (status != RON_OK && status != RON_ENOTFOUND) {
            return ron_corrupt();
        }

        ron_digest_leaves(en->meta.digest, entries, n, leaves);
        count += n;

        rc = ron_tree_append_all(&en->tree, leaves, n, ron_commit_tile, en);
        if (rc != RON_OK) {
            return rc;
        }

    } while (status == RON_OK);

    return count == w->pub.count ? RON_OK : ron_corrupt();
}


static ron_status_t
ron_commit_tile(void *ctx, const ron_tile_t *tile)
{
    uint32_t       cap;
    ron_tile_t    *tiles;
    ron_engine_t  *en = ctx;

    if (en->tile_n == en->tile_cap) {
        cap = en->tile_cap ? en->tile_cap * 2 : 16;

        tiles = realloc(en->tiles, cap * sizeof(ron_tile_t));
        if (tiles == NULL) {
            return RON_ENOMEM;
        }

        en->tiles = tiles;
        en->tile_cap = cap;
    }

    en->tiles[en->tile_n++] = *tile;

    return RON_OK;
}


void
ron_commit_maintain(ron_engine_t *en, uint64_t keep_gen)
{
    if (ron_store_maintain(en->store, keep_gen) != RON_OK) {
        ron_log(RON_LOG_WARN, "maintenance of the journal failed: %s",
                ron_store_error(en->store));
    }
}
