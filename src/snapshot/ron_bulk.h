
/*
 * Bulk writing of a ledger that nobody serves: snapshots, restores, imports.
 *
 * The store commits once a row, with a sync, because somebody waits for each
 * of them; here nobody does, so many rows go into one transaction.  Every row
 * is checked as a follower would (seq, previous root, epoch, time, chain,
 * root, canonical entries), tiles are made from the entries and never copied,
 * and the triggers of the journal stay in force.
 *
 * The file is in rollback mode meanwhile, so that it is one file, which can
 * be hashed, and read from a medium that cannot be written.
 */

#ifndef RON_BULK_H
#define RON_BULK_H


#include "ron_store.h"


typedef struct ron_bulk_s  ron_bulk_t;


/*
 * Makes the ledger `meta` in `dir`, or goes on with the one that is there:
 * RON_EEXIST when it is another one.  On failure *why says what happened.
 */
ron_status_t ron_bulk_open(const char *dir, const ron_ledger_meta_t *meta,
    ron_bulk_t **bulk, ron_buf_t *why);

/* The last row, without views; seq 0 when there is none yet. */
const ron_row_t *ron_bulk_head(const ron_bulk_t *bulk);

/* Seq of the last entry. */
uint64_t ron_bulk_seq(const ron_bulk_t *bulk);

/*
 * RON_ECORRUPT: the row does not follow, *why says why.  After any failure
 * the only thing left to do is ron_bulk_abort().
 */
ron_status_t ron_bulk_add(ron_bulk_t *bulk, const ron_row_t *row,
    ron_buf_t *why);

/*
 * Copies the newest checkpoint of the engine that the rows here vouch for, if
 * there is one, in place of those that are here.
 */
ron_status_t ron_bulk_checkpoint(ron_bulk_t *bulk, ron_reader_t *from,
    ron_buf_t *why);

/*
 * Makes everything durable and closes.  `serve`: it becomes a ledger that is
 * written next (WAL); else it stays one file.  `commits` may be NULL.
 */
ron_status_t ron_bulk_finish(ron_bulk_t *bulk, bool serve, uint64_t *commits,
    ron_buf_t *why);

/* Gives up: what was not committed is lost, the rest can be gone on with. */
void ron_bulk_abort(ron_bulk_t *bulk);


#endif /* RON_BULK_H */
