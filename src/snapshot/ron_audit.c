
/*
 * The walk along the journal; see ron_audit.h for what is checked and
 * ron_audit_impl.h for who does it.
 *
 * The first thing that is wrong ends the walk: behind a broken link every
 * other check would only repeat that it is broken.
 */

#include "ron_audit_impl.h"
#include "ron_entry.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


/* A reader that finds the log being recovered asks again. */
#define RON_AUDIT_TRIES     200
#define RON_AUDIT_SLEEP_US  5000


static ron_status_t ron_audit_open(ron_audit_run_t *au);
static ron_status_t ron_audit_begin(ron_audit_run_t *au);
static ron_status_t ron_audit_walk(ron_audit_run_t *au);
static ron_status_t ron_audit_read(ron_audit_run_t *au,
    ron_audit_page_t *page, size_t max_bytes);
static ron_status_t ron_audit_collect(void *ctx, const ron_row_t *row);
static ron_status_t ron_audit_unreadable(ron_audit_run_t *au,
    ron_audit_page_t *page, ron_status_t status);
static ron_status_t ron_audit_row(ron_audit_run_t *au, const ron_row_t *row);
static ron_status_t ron_audit_leaves(ron_audit_run_t *au,
    const ron_row_t *row, uint64_t *entries);
static ron_status_t ron_audit_tile(void *ctx, const ron_tile_t *tile);
static ron_status_t ron_audit_tile_bad(ron_audit_run_t *au,
    const ron_row_t *row);
static void ron_audit_close(ron_audit_run_t *au);


ron_status_t
ron_audit(ron_store_t *store, const ron_audit_conf_t *conf,
    ron_audit_report_t *report)
{
    uint64_t          begin_us;
    ron_status_t      status, replay;
    ron_audit_run_t  *au;

    memset(report, 0, sizeof(ron_audit_report_t));
    begin_us = ron_clock_mono_us();

    au = calloc(1, sizeof(ron_audit_run_t));
    if (au == NULL) {
        (void) snprintf(report->why, sizeof(report->why), "no memory");
        return RON_ENOMEM;
    }

    au->store = store;
    au->conf = conf;
    au->report = report;

    status = ron_audit_open(au);

    if (status == RON_OK) {
        status = ron_audit_walk(au);
    }

    /* What the replay found is about a commit that the walk has passed. */

    replay = ron_audit_replay_end(au);

    if (replay != RON_OK && (status == RON_OK || status == RON_ECORRUPT)) {
        status = replay;
    }

    if (status == RON_OK) {
        report->root = au->prev.root;
        report->chain = au->prev.chain;
        report->time_ms = au->prev.time_ms;
        report->epoch = au->prev.epoch;
        status = ron_audit_heads(au);
    }

    if (status == RON_OK && !conf->no_beside) {
        status = ron_audit_beside(au);
    }

    /* Damage that a reader met before any check of ours could name it. */

    if (status == RON_ECORRUPT && report->what == NULL) {
        report->what = "malformed";

        if (report->why[0] == '\0') {
            (void) snprintf(report->why, sizeof(report->why), "the database "
                            "cannot be read: %s", au->reader != NULL
                            ? ron_reader_error(au->reader)
                            : ron_store_error(store));
        }
    }

    ron_audit_close(au);
    report->took_us = ron_clock_mono_us() - begin_us;

    return status;
}


static ron_status_t
ron_audit_open(ron_audit_run_t *au)
{
    ron_status_t  status;

    au->meta = *ron_store_meta(au->store);
    status = ron_reader_open(au->store, &au->reader);

    for (unsigned i = 0; status == RON_OK && i < RON_AUDIT_PAGES; i++) {
        status = ron_reader_open(au->store, &au->pages[i].reader);
    }

    if (status != RON_OK) {
        (void) snprintf(au->report->why, sizeof(au->report->why), "%s",
                        ron_store_error(au->store));
        return status;
    }

    /* The published head first: whatever it promises must be found after. */

    status = ron_audit_head_read(au);

    return status == RON_OK ? ron_audit_begin(au) : status;
}


static ron_status_t
ron_audit_begin(ron_audit_run_t *au)
{
    unsigned           tries;
    ron_row_t          row;
    ron_status_t       status;
    ron_tile_reader_t  tiles;

    for (tries = 0; (status = ron_reader_head(au->reader, &row)) == RON_AGAIN
                    && tries < RON_AUDIT_TRIES; tries++)
    {
        ron_sleep_us(RON_AUDIT_SLEEP_US);
    }

    if (status != RON_OK && status != RON_ENOTFOUND
        && status != RON_ECORRUPT)
    {
        (void) snprintf(au->report->why, sizeof(au->report->why), "%s",
                        ron_reader_error(au->reader));
        return status;
    }

    /* A head that makes no sense: the walk finds where sense ends. */

    au->headless = status == RON_ECORRUPT;
    au->target = status == RON_OK ? row.seq + row.count - 1
                 : au->headless ? UINT64_MAX : 0;
    au->next = 1;
    ron_tree_init(&au->tree, au->meta.digest);
    ron_tree_root(&au->tree, &au->prev.root);

    if (au->conf->from > 1 && au->conf->from <= au->target) {
        status = ron_reader_row(au->reader, au->conf->from, &row);

        if (status == RON_OK && row.seq > 1) {
            au->next = row.seq;
            status = ron_reader_row(au->reader, row.seq - 1, &row);
        }

        if (status != RON_OK) {
            return ron_audit_bad(au, "missing", NULL, "no commit holds seq "
                                 "%llu", (unsigned long long) au->conf->from);
        }

        if (au->next > 1) {
            au->prev = row;
            tiles = (ron_tile_reader_t) { au->reader, au->meta.digest };
            status = ron_tree_load(&au->tree, au->meta.digest, au->next - 1,
                                   ron_tile_from_reader, &tiles);
            if (status != RON_OK) {
                return ron_audit_bad(au, "tile", NULL, "the tree of %llu "
                                     "entries cannot be read from its tiles",
                                     (unsigned long long) au->next - 1);
            }
        }
    }

    au->report->from = au->next;
    au->report->seq = au->next - 1;
    au->replay = !au->conf->no_replay && au->next == 1;

    return au->replay ? ron_audit_replay_start(au) : RON_OK;
}


static ron_status_t
ron_audit_walk(ron_audit_run_t *au)
{
    size_t             i;
    ron_status_t       status;
    ron_audit_page_t  *page;

    while (au->next <= au->target) {

        if (au->conf->progress != NULL
            && !au->conf->progress(au->conf->ctx, au->next - 1,
                                   au->headless ? au->next : au->target))
        {
            return RON_ECANCELED;
        }

        page = ron_audit_replay_page(au);

        if (page == NULL) {
            return RON_ECORRUPT;        /* found by the replay */
        }

        status = ron_audit_read(au, page, RON_AUDIT_PAGE_BYTES);
        if (status != RON_OK) {
            return status;
        }

        for (i = 0; i < page->n && au->next <= au->target; i++) {
            status = ron_audit_row(au, &page->rows[i]);
            if (status != RON_OK) {
                break;
            }
        }

        page->n = i;
        ron_audit_replay_give(au);

        if (status != RON_OK) {
            return status;
        }
    }

    if (au->conf->progress != NULL) {
        (void) au->conf->progress(au->conf->ctx, au->target, au->target);
    }

    return RON_OK;
}


static ron_status_t
ron_audit_read(ron_audit_run_t *au, ron_audit_page_t *page, size_t max_bytes)
{
    unsigned      tries;
    uint64_t      next;
    ron_status_t  status;

    for (tries = 0; tries < RON_AUDIT_TRIES; tries++) {
        page->n = 0;
        status = ron_reader_rows(page->reader, au->next, max_bytes,
                                 ron_audit_collect, page, &next);

        if (status == RON_OK) {
            return RON_OK;
        }

        if (status != RON_AGAIN) {
            break;
        }

        ron_sleep_us(RON_AUDIT_SLEEP_US);
    }

    /* One damaged row spoils a whole page: find it, keep those before it. */

    if (status == RON_ECORRUPT && max_bytes > 1) {
        return ron_audit_read(au, page, 1);
    }

    return ron_audit_unreadable(au, page, status);
}


static ron_status_t
ron_audit_collect(void *ctx, const ron_row_t *row)
{
    size_t             cap;
    ron_row_t         *rows;
    ron_audit_page_t  *page = ctx;

    if (page->n == page->cap) {
        cap = page->cap ? page->cap * 2 : 256;

        rows = realloc(page->rows, cap * sizeof(ron_row_t));
        if (rows == NULL) {
            return RON_ENOMEM;
        }

        page->rows = rows;
        page->cap = cap;
    }

    page->rows[page->n++] = *row;

    return RON_OK;
}


static ron_status_t
ron_audit_unreadable(ron_audit_run_t *au, ron_audit_page_t *page,
    ron_status_t status)
{
    ron_row_t  row;

    memset(&row, 0, sizeof(row));
    row.seq = au->next;

    if (status == RON_ENOTFOUND && au->headless) {
        return ron_audit_bad(au, "missing", &row, "no commit begins at seq "
                             "%llu, and what is stored behind it makes no "
                             "sense", (unsigned long long) au->next);
    }

    if (status == RON_ENOTFOUND) {
        return ron_audit_bad(au, "missing", &row, "no commit begins at seq "
                             "%llu, and the journal goes on to %llu",
                             (unsigned long long) au->next,
                             (unsigned long long) au->target);
    }

    if (status == RON_ECORRUPT) {
        return ron_audit_bad(au, "malformed", &row, "the commit that begins "
                             "at seq %llu cannot be read: %s",
                             (unsigned long long) au->next,
                             ron_reader_error(page->reader));
    }

    (void) snprintf(au->report->why, sizeof(au->report->why),
                    "the journal cannot be read at seq %llu: %s",
                    (unsigned long long) au->next,
                    ron_reader_error(page->reader));

    return status;
}


static ron_status_t
ron_audit_row(ron_audit_run_t *au, const ron_row_t *row)
{
    uint64_t      entries;
    ron_hash_t    chain, root;
    ron_status_t  status;

    if (row->seq != au->next) {
        return ron_audit_bad(au, "missing", &(ron_row_t) { .seq = au->next },
                             "no commit begins at seq %llu; the next one has "
                             "seq %llu", (unsigned long long) au->next,
                             (unsigned long long) row->seq);
    }

    au->tile_bad = false;
    status = ron_audit_leaves(au, row, &entries);

    if (status != RON_OK && status != RON_ECORRUPT) {
        (void) snprintf(au->report->why, sizeof(au->report->why),
                        "seq %llu: %s", (unsigned long long) row->seq,
                        ron_status_name(status));
        return status;
    }

    ron_tree_root(&au->tree, &root);
    ron_row_chain(&au->prev.chain, row, &chain);

    if (status != RON_OK
        || entries != row->count
        || row->epoch < au->prev.epoch
        || row->time_ms < au->prev.time_ms
        || !ron_hash_eq(&row->prev_root, &au->prev.root)
        || !ron_hash_eq(&row->root, &root)
        || !ron_hash_eq(&row->chain, &chain))
    {
        return ron_audit_blame(au, row, status == RON_OK ? entries : 0,
                               &root);
    }

    if (au->tile_bad) {
        return ron_audit_tile_bad(au, row);
    }

    if (au->note_bad || au->head_bad) {
        return ron_audit_bad(au, au->note_bad ? "note" : "head", row,
                             "%s has another root at seq %llu than the "
                             "journal: history was rewritten", au->note_bad
                             ? "the checkpoint that was kept"
                             : "the head that was published",
                             (unsigned long long) (au->note_bad
                                 ? au->note_size : au->head_size));
    }

    au->prev = *row;
    au->prev.body = ron_null_str;
    au->prev.notes = ron_null_str;
    au->next += row->count;
    au->report->seq = au->next - 1;
    au->report->commits++;
    au->report->entries += row->count;

    return RON_OK;
}


static ron_status_t
ron_audit_leaves(ron_audit_run_t *au, const ron_row_t *row, uint64_t *entries)
{
    ron_rd_t      rd;
    ron_str_t     bytes;
    ron_hash_t    leaf, root;
    ron_status_t  status;

    ron_rd_init(&rd, row->body);

    for (*entries = 0; (status = ron_body_next(&rd, &bytes)) == RON_OK;
         (*entries)++)
    {
        ron_digest_leaf(au->meta.digest, bytes.data, bytes.len, &leaf);

        status = ron_tree_append(&au->tree, &leaf, ron_audit_tile, au);
        if (status != RON_OK) {
            return status;
        }

        /* A note of another tool may be of the middle of a commit. */

        if (au->tree.size == au->note_size || au->tree.size == au->head_size) {
            ron_tree_root(&au->tree, &root);

            au->note_bad = au->note_bad
                           || (au->tree.size == au->note_size
                               && !ron_hash_eq(&root, &au->note_root));
            au->head_bad = au->head_bad
                           || (au->tree.size == au->head_size
                               && !ron_hash_eq(&root, &au->head_root));
        }
    }

    return status == RON_ENOTFOUND ? RON_OK : RON_ECORRUPT;
}


/* Only noted here: if the root is wrong too, the entries are to blame. */

static ron_status_t
ron_audit_tile(void *ctx, const ron_tile_t *tile)
{
    ron_tile_t        stored;
    ron_status_t      status;
    ron_audit_run_t  *au = ctx;

    status = ron_reader_tile(au->reader, tile->level, tile->index, &stored);

    for (unsigned i = 0; status == RON_AGAIN && i < RON_AUDIT_TRIES; i++) {
        ron_sleep_us(RON_AUDIT_SLEEP_US);
        status = ron_reader_tile(au->reader, tile->level, tile->index,
                                 &stored);
    }

    au->report->tiles++;

    if (status == RON_OK
        && memcmp(stored.hashes, tile->hashes, sizeof(tile->hashes)) == 0)
    {
        return RON_OK;
    }

    if (!au->tile_bad) {
        au->tile_bad = true;
        au->tile_status = status;
        au->tile_level = tile->level;
        au->tile_index = tile->index;
    }

    return RON_OK;
}


static ron_status_t
ron_audit_tile_bad(ron_audit_run_t *au, const ron_row_t *row)
{
    return ron_audit_bad(au, "tile", row, "the stored tile %u/%llu, which "
                         "this commit completed, %s", au->tile_level,
                         (unsigned long long) au->tile_index,
                         au->tile_status == RON_OK
                         ? "is not what the entries give"
                         : au->tile_status == RON_ENOTFOUND
                           ? "is not there" : "cannot be read");
}


ron_status_t
ron_audit_bad(ron_audit_run_t *au, const char *what, const ron_row_t *row,
    const char *fmt, ...)
{
    va_list              args;
    ron_audit_report_t  *r;

    r = au->report;

    if (r->what != NULL) {
        return RON_ECORRUPT;
    }

    r->what = what;

    if (row != NULL) {
        r->bad_seq = row->seq;
        r->bad_last = row->count ? row->seq + row->count - 1 : 0;
    }

    va_start(args, fmt);
    (void) vsnprintf(r->why, sizeof(r->why), fmt, args);
    va_end(args);

    return ron_corrupt();
}


static void
ron_audit_close(ron_audit_run_t *au)
{
    for (unsigned i = 0; i < RON_AUDIT_PAGES; i++) {
        ron_reader_close(au->pages[i].reader);
        free(au->pages[i].rows);
    }

    ron_reader_close(au->reader);

    if (au->replay) {
        ron_state_free(&au->state);
    }

    free(au);
}
