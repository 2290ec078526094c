
/*
 * Which column of a damaged commit is not what was written.
 *
 * The row's chain, the root, the row after and the stored tiles are four
 * witnesses that were computed from the same truth.  Putting the value that
 * one of them implies in place of a suspect, and asking the others again,
 * finds the liar; when nobody can be cleared, the message says who is left.
 */

#include "ron_audit_impl.h"
#include "ron_entry.h"


typedef struct {
    ron_audit_run_t  *au;
    const ron_row_t  *row;
    ron_row_t         after;        /* views into au->reader */
    bool              has_after;
    ron_hash_t        after_chain;  /* of the row after, if ours is right */
} ron_blame_t;


static void ron_blame_after(ron_blame_t *b);
static bool ron_blame_try(const ron_blame_t *b, const ron_row_t *changed);
static const char *ron_blame_column(const ron_blame_t *b, uint64_t entries,
    const ron_hash_t *root);
static const char *ron_blame_values(const ron_blame_t *b);
static uint64_t ron_blame_entry(ron_audit_run_t *au, const ron_row_t *row);
static bool ron_blame_time(const ron_row_t *row, uint64_t *time_ms);


ron_status_t
ron_audit_blame(ron_audit_run_t *au, const ron_row_t *row, uint64_t entries,
    const ron_hash_t *root)
{
    bool          chained, rooted;
    uint64_t      entry;
    ron_hash_t    chain;
    const char   *column;
    ron_blame_t   b = { .au = au, .row = row };

    if (au->report->what != NULL) {
        return RON_ECORRUPT;        /* said already */
    }

    ron_row_chain(&au->prev.chain, row, &chain);
    chained = ron_hash_eq(&chain, &row->chain);
    rooted = entries == row->count && ron_hash_eq(root, &row->root);

    ron_blame_after(&b);

    column = chained ? NULL : ron_blame_column(&b, entries, root);

    if (column != NULL) {
        return ron_audit_bad(au, column, row, "the column %s is not what was "
                             "written", column);
    }

    entry = rooted ? 0 : ron_blame_entry(au, row);

    if (!rooted) {
        (void) ron_audit_bad(au, "body", row, "%s%s", entry
                             ? "an entry is not what was written"
                             : "the entries are not what was written",
                             chained ? ", and the chain was made to fit" : "");
        au->report->bad_entry = entry;
        return RON_ECORRUPT;
    }

    if (chained) {
        return ron_audit_bad(au, "order", row, "it does not follow the commit "
                             "before it (previous root, epoch or time), and "
                             "the chain was made to fit");
    }

    return ron_audit_bad(au, "chain", row, "entries and root are good, the "
                         "chain is not: epoch, checkpoint, notes or chain is "
                         "not what was written");
}


/* The row after is read alone: it may be damaged as well. */

static void
ron_blame_after(ron_blame_t *b)
{
    ron_row_t  row;

    b->has_after = ron_reader_row(b->au->reader,
                                  b->row->seq + b->row->count, &row)
                   == RON_OK;

    if (b->has_after) {
        ron_row_chain(&b->row->chain, &row, &b->after_chain);
        b->after = row;
    }
}


/* Would the chain be right, had the row been like this? */

static bool
ron_blame_try(const ron_blame_t *b, const ron_row_t *changed)
{
    ron_hash_t  chain;

    ron_row_chain(&b->au->prev.chain, changed, &chain);

    return ron_hash_eq(&chain, &b->row->chain);
}


static const char *
ron_blame_column(const ron_blame_t *b, uint64_t entries,
    const ron_hash_t *root)
{
    ron_row_t    row;
    ron_hash_t   chain, after;
    const char  *column;

    row = *b->row;
    row.prev_root = b->au->prev.root;

    if (ron_blame_try(b, &row)) {
        return "prev_root";
    }

    row = *b->row;
    row.root = *root;

    if (entries != 0 && ron_blame_try(b, &row)) {
        return "root";
    }

    row = *b->row;
    row.count = entries;

    if (entries != 0 && ron_blame_try(b, &row)) {
        return "count";
    }

    column = ron_blame_values(b);

    if (column != NULL) {
        return column;
    }

    /* Did the commit after continue the chain that this one should have? */

    if (b->has_after && !ron_hash_eq(&b->after_chain, &b->after.chain)) {
        ron_row_chain(&b->au->prev.chain, b->row, &chain);
        ron_row_chain(&chain, &b->after, &after);

        return ron_hash_eq(&after, &b->after.chain) ? "chain" : NULL;
    }

    return NULL;
}


static const char *
ron_blame_values(const ron_blame_t *b)
{
    uint64_t   time_ms;
    ron_row_t  row;

    row = *b->row;

    if (ron_blame_time(&row, &time_ms)) {
        row.time_ms = time_ms;

        if (ron_blame_try(b, &row)) {
            return "time_ms";
        }

        row.time_ms = b->row->time_ms;
    }

    for (unsigned bit = 0; bit < 64; bit++) {
        row.epoch = b->row->epoch ^ (UINT64_C(1) << bit);

        if (ron_blame_try(b, &row)) {
            return "epoch";
        }
    }

    for (unsigned i = 0; i < 2; i++) {
        row.epoch = i == 0 ? b->au->prev.epoch : b->after.epoch;

        if (ron_blame_try(b, &row)) {
            return "epoch";
        }
    }

    row.epoch = b->row->epoch;

    for (unsigned i = 0; i < 3; i++) {
        memset(&row.checkpoint, 0, sizeof(row.checkpoint));

        if (i != 0) {
            row.checkpoint = i == 1 ? b->au->prev.checkpoint
                                    : b->after.checkpoint;
        }

        if (ron_blame_try(b, &row)) {
            return "checkpoint";
        }
    }

    return NULL;
}


/* Every entry carries the time of its commit. */

static bool
ron_blame_time(const ron_row_t *row, uint64_t *time_ms)
{
    ron_rd_t     rd;
    ron_str_t    bytes;
    ron_entry_t  e;

    ron_rd_init(&rd, row->body);

    if (ron_body_next(&rd, &bytes) != RON_OK
        || ron_entry_decode(bytes, &e) != RON_OK
        || e.time_ms == row->time_ms)
    {
        return false;
    }

    *time_ms = e.time_ms;

    return true;
}


/* The first entry whose leaf is not in the stored tile; 0: none, or unknown. */

static uint64_t
ron_blame_entry(ron_audit_run_t *au, const ron_row_t *row)
{
    bool        have;
    uint64_t    seq;
    ron_rd_t    rd;
    ron_str_t   bytes;
    ron_hash_t  leaf;
    ron_tile_t  tile;

    have = false;
    ron_rd_init(&rd, row->body);

    for (seq = row->seq; ron_body_next(&rd, &bytes) == RON_OK; seq++) {
        if (!have || (seq - 1) % RON_TILE_WIDTH == 0) {
            have = ron_reader_tile(au->reader, 0, (seq - 1) / RON_TILE_WIDTH,
                                   &tile) == RON_OK;
        }

        if (!have) {
            continue;
        }

        ron_digest_leaf(au->meta.digest, bytes.data, bytes.len, &leaf);

        if (!ron_hash_eq(&leaf, &tile.hashes[(seq - 1) % RON_TILE_WIDTH])) {
            return seq;
        }
    }

    return 0;
}
