
/*
 * The store's front: arguments are checked, chains computed and results
 * zeroed here, once, so that the two stores behind it differ in nothing that
 * a caller can see.
 *
 * What ends a writer.  An append that failed half-way may still be found on
 * disk after reopening, so nothing may be decided on top of a guess: the
 * handle is poisoned, and the way on is to close, open, and read what is
 * there.  Three failures do not poison, because each of them is proof that
 * nothing was written: a malformed argument, a refusal by the journal itself,
 * and a full disk that was noticed before the commit record was whole.
 */

#include "ron_store_impl.h"
#include "ron_entry.h"
#include "ron_port.h"

#include <stdarg.h>
#include <stdio.h>


/* A page being overwritten this instant is whole again very soon. */
#define RON_STORE_TORN_TRIES     5
#define RON_STORE_TORN_SLEEP_US  200

/* What ron_tile_from_reader() asks of the journal at a time. */
#define RON_STORE_LEAF_BYTES     ((size_t) 64 << 10)


typedef struct {
    ron_tile_t    *tile;
    ron_digest_t   digest;
    uint64_t       next;            /* the seq of the leaf wanted next */
    uint16_t       n;
} ron_store_leaves_t;


static ron_status_t ron_store_in_doubt(ron_store_t *store);
static ron_status_t ron_store_check_row(ron_store_t *store,
    const ron_row_t *row);
static ron_status_t ron_store_check_tiles(ron_store_t *store,
    const ron_row_t *row, const ron_tile_t *tiles, size_t tile_n);
static ron_status_t ron_store_check_slice(ron_store_t *store,
    const ron_slice_t *slice);
static ron_status_t ron_store_page_get(const uint8_t *page, const char *kind,
    ron_buf_t *text);
static void ron_store_page_sum(const uint8_t *page, size_t len,
    ron_hash_t *sum);
static ron_status_t ron_tile_from_leaves(ron_tile_reader_t *source,
    ron_tile_t *tile);
static ron_status_t ron_tile_row(void *ctx, const ron_row_t *row);
static ron_status_t ron_tile_from_tiles(ron_tile_reader_t *source,
    ron_tile_t *tile);


static _Thread_local char  ron_store_open_error[RON_STORE_ERROR_MAX];


void
ron_store_say(char *error, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(error, RON_STORE_ERROR_MAX, fmt, args);
    va_end(args);
}


ron_status_t
ron_store_open(const ron_store_conf_t *conf, ron_store_t **store)
{
    const char  *url;

    *store = NULL;
    ron_store_open_error[0] = '\0';

    url = conf->url != NULL ? conf->url : "";

    if (strncmp(url, "sqlite:", 7) == 0) {
        return ron_sqlite_open(conf, url + 7, ron_store_open_error, store);
    }

    if (strncmp(url, "memory:", 7) == 0) {
        return ron_memory_open(conf, url + 7, ron_store_open_error, store);
    }

    ron_store_say(ron_store_open_error,
                  "\"%s\" is neither \"sqlite:<directory>\" nor "
                  "\"memory:<size>\"", url);

    return RON_EINVAL;
}


void
ron_store_close(ron_store_t *store)
{
    if (store == NULL) {
        return;
    }

    ron_store_release(store);
    store->ops->close(store);
}


const ron_ledger_meta_t *
ron_store_meta(const ron_store_t *store)
{
    return &store->meta;
}


const char *
ron_store_dir(const ron_store_t *store)
{
    return store->dir;
}


const char *
ron_store_error(const ron_store_t *store)
{
    return store != NULL ? store->error : ron_store_open_error;
}


ron_status_t
ron_store_acquire(ron_store_t *store, uint64_t *epoch)
{
    ron_status_t  status;

    *epoch = 0;

    if (store->writer) {
        ron_store_say(store->error, "this handle is the writer already");
        return RON_EEXIST;
    }

    if (store->poisoned) {
        return ron_store_in_doubt(store);
    }

    status = store->ops->acquire(store, epoch);

    store->writer = status == RON_OK;

    if (status != RON_OK) {
        *epoch = 0;
    }

    return status;
}


void
ron_store_release(ron_store_t *store)
{
    if (store->writer) {
        store->ops->release(store);
        store->writer = false;
    }
}


ron_status_t
ron_store_append(ron_store_t *store, ron_row_t *row,
    const ron_hash_t *prev_chain, const ron_tile_t *tiles, size_t tile_n,
    const ron_slice_t *slice)
{
    ron_status_t  status;

    memset(&row->chain, 0, sizeof(row->chain));

    if (store->poisoned) {
        return ron_store_in_doubt(store);
    }

    if (!store->writer) {
        ron_store_say(store->error, "the writer's lock is not held");
        return RON_EFENCED;
    }

    status = ron_store_check_row(store, row);

    if (status == RON_OK) {
        status = ron_store_check_tiles(store, row, tiles, tile_n);
    }

    if (status == RON_OK && slice != NULL) {
        status = ron_store_check_slice(store, slice);
    }

    if (status != RON_OK) {
        return status;
    }

    ron_row_chain(prev_chain, row, &row->chain);

    status = store->ops->append(store, row, tiles, tile_n, slice);

    if (status != RON_OK) {
        memset(&row->chain, 0, sizeof(row->chain));
    }

    return status;
}


static ron_status_t
ron_store_in_doubt(ron_store_t *store)
{
    ron_store_say(store->error, "an earlier commit is in doubt: the ledger "
                  "must be reopened");

    return RON_EIO;
}


static ron_status_t
ron_store_check_row(ron_store_t *store, const ron_row_t *row)
{
    if (row->seq == 0 || row->count == 0
        || row->seq > RON_STORE_SEQ_MAX || row->count > RON_STORE_SEQ_MAX)
    {
        ron_store_say(store->error, "a row with seq %llu and %llu entries",
                      (unsigned long long) row->seq,
                      (unsigned long long) row->count);
        return RON_EINVAL;
    }

    if (row->body.len / 2 < row->count
        || row->body.len > RON_STORE_ROW_MAX
        || row->notes.len > RON_STORE_ROW_MAX
        || row->time_ms > RON_STORE_TIME_MAX)
    {
        ron_store_say(store->error, "row %llu: %llu entries in %zu bytes with "
                      "%zu bytes of notes", (unsigned long long) row->seq,
                      (unsigned long long) row->count, row->body.len,
                      row->notes.len);
        return RON_EINVAL;
    }

    return RON_OK;
}


/*
 * A tile belongs to the commit that holds its last leaf: the memory store
 * finds tiles by that, and the sqlite store writes them in that order.
 */

static ron_status_t
ron_store_check_tiles(ron_store_t *store, const ron_row_t *row,
    const ron_tile_t *tiles, size_t tile_n)
{
    size_t    i;
    uint64_t  end;

    for (i = 0; i < tile_n; i++) {

        end = ron_tile_end(tiles[i].level, tiles[i].index);

        if (tiles[i].width != RON_TILE_WIDTH || end < row->seq
            || end - row->seq >= row->count)
        {
            ron_store_say(store->error, "row %llu: tile %u/%llu of width %u "
                          "does not become complete here",
                          (unsigned long long) row->seq, tiles[i].level,
                          (unsigned long long) tiles[i].index,
                          tiles[i].width);
            return RON_EINVAL;
        }
    }

    return RON_OK;
}


static ron_status_t
ron_store_check_slice(ron_store_t *store, const ron_slice_t *slice)
{
    if (slice->gen > RON_STORE_GEN_MAX || slice->no > RON_STORE_NO_MAX
        || slice->seq > RON_STORE_SEQ_MAX * 2
        || slice->body.len > RON_STORE_ROW_MAX)
    {
        ron_store_say(store->error, "slice %lu of generation %llu is out of "
                      "bounds", (unsigned long) slice->no,
                      (unsigned long long) slice->gen);
        return RON_EINVAL;
    }

    return RON_OK;
}


/* Zero, which no row holds, for a tile that can never be complete. */

uint64_t
ron_tile_end(uint8_t level, uint64_t index)
{
    unsigned  shift;

    if (level > RON_STORE_LEVEL_MAX) {
        return 0;
    }

    shift = 8 * ((unsigned) level + 1);

    if (index >= RON_STORE_SEQ_MAX >> shift) {
        return 0;
    }

    return (index + 1) << shift;
}


ron_status_t
ron_store_maintain(ron_store_t *store, uint64_t keep_gen)
{
    if (store->poisoned) {
        return ron_store_in_doubt(store);
    }

    if (!store->writer) {
        ron_store_say(store->error, "the writer's lock is not held");
        return RON_EFENCED;
    }

    return store->ops->maintain(store, keep_gen);
}


/* ---- the two pages that are written in place ---------------------------- */

static void
ron_store_page_sum(const uint8_t *page, size_t len, ron_hash_t *sum)
{
    ron_blake3_t  h;

    ron_blake3_init(&h);
    ron_blake3_update(&h, page, 8 + 4);
    ron_blake3_update(&h, page + RON_STORE_PAGE_HEAD, len);
    ron_blake3_final(&h, sum);
}


void
ron_store_page_put(uint8_t *page, const char *kind, ron_str_t text)
{
    ron_hash_t  sum;

    memset(page, 0, RON_STORE_PAGE);

    memcpy(page, kind, 8);
    page[10] = (uint8_t) (text.len >> 8);
    page[11] = (uint8_t) text.len;

    if (text.len != 0) {
        memcpy(page + RON_STORE_PAGE_HEAD, text.data, text.len);
    }

    ron_store_page_sum(page, text.len, &sum);
    memcpy(page + 12, sum.b, 16);
}


static ron_status_t
ron_store_page_get(const uint8_t *page, const char *kind, ron_buf_t *text)
{
    size_t      len;
    ron_hash_t  sum;

    len = (size_t) page[10] << 8 | page[11];

    if (memcmp(page, kind, 8) != 0 || page[8] != 0 || page[9] != 0
        || len > RON_STORE_PAGE_TEXT)
    {
        return RON_EINVAL;
    }

    ron_store_page_sum(page, len, &sum);

    if (memcmp(page + 12, sum.b, 16) != 0) {
        return RON_EINVAL;
    }

    ron_buf_put(text, page + RON_STORE_PAGE_HEAD, len);

    return ron_buf_status(text);
}


ron_status_t
ron_store_head_write(ron_store_t *store, ron_str_t note)
{
    uint8_t  page[RON_STORE_PAGE];

    if (!store->writer) {
        ron_store_say(store->error, "the writer's lock is not held");
        return RON_EFENCED;
    }

    if (note.len > RON_STORE_PAGE_TEXT) {
        ron_store_say(store->error, "a head of %zu bytes, at most %d fit",
                      note.len, RON_STORE_PAGE_TEXT);
        return RON_ERANGE;
    }

    ron_store_page_put(page, RON_STORE_KIND_HEAD, note);

    return store->ops->head_write(store, page);
}


/*
 * A head that stays torn is absent: it was being written when the power went,
 * and the promise that it held was not synced either.
 */

ron_status_t
ron_store_head_read(ron_store_t *store, ron_buf_t *note)
{
    unsigned      tries;
    uint8_t       page[RON_STORE_PAGE];
    ron_status_t  status;

    ron_buf_reset(note);

    for (tries = 0; tries < RON_STORE_TORN_TRIES; tries++) {

        status = store->ops->head_read(store, page);
        if (status != RON_OK) {
            return status;
        }

        status = ron_store_page_get(page, RON_STORE_KIND_HEAD, note);
        if (status != RON_EINVAL) {
            return status;
        }

        ron_sleep_us(RON_STORE_TORN_SLEEP_US);
    }

    return RON_ENOTFOUND;
}


/*
 * Anybody may set a mark, since it only makes the ledger stricter, and the
 * one who must set it may have lost the lock or the database by then.  To
 * clear it takes the writer.
 */

ron_status_t
ron_store_mark_write(ron_store_t *store, ron_str_t reason)
{
    uint8_t  page[RON_STORE_PAGE];

    if (reason.len == 0 && !store->writer) {
        ron_store_say(store->error, "the safe-mode mark is cleared by the "
                      "writer only");
        return RON_EFENCED;
    }

    if (reason.len > RON_STORE_PAGE_TEXT) {
        reason.len = RON_STORE_PAGE_TEXT;
    }

    ron_store_page_put(page, RON_STORE_KIND_MARK, reason);

    return store->ops->mark_write(store, page);
}


/* Fails closed: whatever cannot be read and believed is a mark. */

ron_status_t
ron_store_mark_read(ron_store_t *store, ron_buf_t *reason)
{
    unsigned      tries;
    uint8_t       page[RON_STORE_PAGE];
    ron_status_t  status;

    for (tries = 0; tries < RON_STORE_TORN_TRIES; tries++) {

        ron_buf_reset(reason);

        status = store->ops->mark_read(store, page);

        if (status == RON_ENOTFOUND) {
            return RON_ENOTFOUND;
        }

        if (status == RON_OK) {
            status = ron_store_page_get(page, RON_STORE_KIND_MARK, reason);
        }

        if (status == RON_OK) {
            return reason->len == 0 ? RON_ENOTFOUND : RON_OK;
        }

        ron_sleep_us(RON_STORE_TORN_SLEEP_US);
    }

    ron_buf_reset(reason);
    ron_buf_put_cstr(reason, RON_STORE_MARK_LOST);

    return ron_buf_status(reason);
}


ron_status_t
ron_store_probe(ron_store_t *store)
{
    return store->ops->probe(store);
}


/* ---- readers ------------------------------------------------------------ */

ron_status_t
ron_reader_open(ron_store_t *store, ron_reader_t **reader)
{
    *reader = NULL;

    return store->ops->reader(store, reader);
}


void
ron_reader_close(ron_reader_t *reader)
{
    if (reader != NULL) {
        reader->ops->close(reader);
    }
}


const char *
ron_reader_error(const ron_reader_t *reader)
{
    return reader->error;
}


ron_status_t
ron_reader_head(ron_reader_t *reader, ron_row_t *row)
{
    ron_status_t  status;

    status = reader->ops->head(reader, row);

    if (status != RON_OK) {
        memset(row, 0, sizeof(ron_row_t));
    }

    return status;
}


ron_status_t
ron_reader_row(ron_reader_t *reader, uint64_t seq, ron_row_t *row)
{
    ron_status_t  status;

    status = seq == 0 || seq > RON_STORE_SEQ_MAX * 2
             ? RON_ENOTFOUND : reader->ops->row(reader, seq, row);

    if (status != RON_OK) {
        memset(row, 0, sizeof(ron_row_t));
    }

    return status;
}


ron_status_t
ron_reader_rows(ron_reader_t *reader, uint64_t seq, size_t max_bytes,
    ron_row_pt fn, void *ctx, uint64_t *next)
{
    *next = 0;

    if (seq == 0 || seq > RON_STORE_SEQ_MAX * 2) {
        return RON_ENOTFOUND;
    }

    return reader->ops->rows(reader, seq, max_bytes, fn, ctx, next);
}


ron_status_t
ron_reader_hold(ron_reader_t *reader)
{
    return reader->ops->hold(reader, true);
}


ron_status_t
ron_reader_release(ron_reader_t *reader)
{
    return reader->ops->hold(reader, false);
}


ron_status_t
ron_reader_tile(ron_reader_t *reader, uint8_t level, uint64_t index,
    ron_tile_t *tile)
{
    ron_status_t  status;

    tile->level = level;
    tile->index = index;
    tile->width = RON_TILE_WIDTH;

    status = ron_tile_end(level, index) == 0
             ? RON_ENOTFOUND : reader->ops->tile(reader, tile);

    if (status != RON_OK) {
        memset(tile, 0, sizeof(ron_tile_t));
    }

    return status;
}


ron_status_t
ron_reader_gen(ron_reader_t *reader, uint64_t max_gen, uint64_t *gen,
    uint32_t *count, bool *complete)
{
    ron_status_t  status;

    max_gen = ron_min(max_gen, RON_STORE_GEN_MAX);

    status = reader->ops->gen(reader, max_gen, gen, count, complete);

    if (status != RON_OK) {
        *gen = 0;
        *count = 0;
        *complete = false;
    }

    return status;
}


ron_status_t
ron_reader_slice(ron_reader_t *reader, uint64_t gen, uint32_t no,
    ron_slice_t *slice)
{
    ron_status_t  status;

    status = gen > RON_STORE_GEN_MAX || no > RON_STORE_NO_MAX
             ? RON_ENOTFOUND : reader->ops->slice(reader, gen, no, slice);

    if (status != RON_OK) {
        memset(slice, 0, sizeof(ron_slice_t));
    }

    return status;
}


/* ---- pure helpers ------------------------------------------------------- */

/* Every column is in it, and lengths are, so no two rows read the same. */

void
ron_row_chain(const ron_hash_t *prev_chain, const ron_row_t *row,
    ron_hash_t *chain)
{
    ron_blake3_t  h;

    ron_blake3_init(&h);
    ron_blake3_update(&h, prev_chain->b, RON_HASH_LEN);
    ron_blake3_update_u64(&h, row->seq);
    ron_blake3_update_u64(&h, row->count);
    ron_blake3_update_u64(&h, row->epoch);
    ron_blake3_update_u64(&h, row->time_ms);
    ron_blake3_update(&h, row->prev_root.b, RON_HASH_LEN);
    ron_blake3_update(&h, row->root.b, RON_HASH_LEN);
    ron_blake3_update(&h, row->checkpoint.b, RON_HASH_LEN);
    ron_blake3_update_u64(&h, row->body.len);
    ron_blake3_update_u64(&h, row->notes.len);

    if (row->body.len != 0) {
        ron_blake3_update(&h, row->body.data, row->body.len);
    }

    if (row->notes.len != 0) {
        ron_blake3_update(&h, row->notes.data, row->notes.len);
    }

    ron_blake3_final(&h, chain);
}


/*
 * A tile that is partial in the tree of `size` leaves may have become
 * complete since; its front is then the partial one.
 */

ron_status_t
ron_tile_from_reader(void *ctx, uint64_t size, ron_tile_t *tile)
{
    uint8_t             level;
    uint16_t            width;
    uint64_t            index;
    ron_status_t        status;
    ron_tile_reader_t  *source;

    (void) size;

    source = ctx;
    level = tile->level;
    index = tile->index;
    width = tile->width;

    if (width == 0 || width > RON_TILE_WIDTH || level >= RON_TILE_LEVELS) {
        return RON_EINVAL;
    }

    status = ron_reader_tile(source->reader, level, index, tile);

    tile->level = level;
    tile->index = index;
    tile->width = width;

    if (status != RON_ENOTFOUND) {
        return status;
    }

    if (width == RON_TILE_WIDTH) {
        return RON_ENOTFOUND;
    }

    return level == 0 ? ron_tile_from_leaves(source, tile)
                      : ron_tile_from_tiles(source, tile);
}


static ron_status_t
ron_tile_from_leaves(ron_tile_reader_t *source, ron_tile_t *tile)
{
    uint64_t            next;
    ron_status_t        status;
    ron_store_leaves_t  leaves;

    leaves.tile = tile;
    leaves.digest = source->digest;
    leaves.next = tile->index * RON_TILE_WIDTH + 1;
    leaves.n = 0;

    while (leaves.n < tile->width) {

        status = ron_reader_rows(source->reader, leaves.next,
                                 RON_STORE_LEAF_BYTES, ron_tile_row, &leaves,
                                 &next);
        if (status != RON_OK) {
            return status;
        }
    }

    return RON_OK;
}


static ron_status_t
ron_tile_row(void *ctx, const ron_row_t *row)
{
    uint64_t             seq;
    ron_rd_t             rd;
    ron_str_t            entry;
    ron_status_t         status;
    ron_store_leaves_t  *leaves;

    leaves = ctx;

    ron_rd_init(&rd, row->body);

    for (seq = row->seq; seq < row->seq + row->count; seq++) {

        if (leaves->n == leaves->tile->width) {
            return RON_OK;
        }

        status = ron_body_next(&rd, &entry);

        if (status == RON_ENOTFOUND) {
            return ron_corrupt();
        }

        if (status != RON_OK) {
            return status;
        }

        if (seq != leaves->next) {
            continue;
        }

        ron_digest_leaf(leaves->digest, entry.data, entry.len,
                        &leaves->tile->hashes[leaves->n]);
        leaves->n++;
        leaves->next++;
    }

    return RON_OK;
}


/* Each hash of a tile is the root of a complete tile of the level below. */

static ron_status_t
ron_tile_from_tiles(ron_tile_reader_t *source, ron_tile_t *tile)
{
    unsigned      i, n;
    ron_tile_t    below;
    ron_status_t  status;

    for (i = 0; i < tile->width; i++) {

        status = ron_reader_tile(source->reader, tile->level - 1,
                                 tile->index * RON_TILE_WIDTH + i, &below);
        if (status != RON_OK) {
            return status;
        }

        for (n = RON_TILE_WIDTH / 2; n >= 1; n /= 2) {
            ron_digest_nodes(source->digest, below.hashes, n, below.hashes);
        }

        tile->hashes[i] = below.hashes[0];
    }

    return RON_OK;
}
