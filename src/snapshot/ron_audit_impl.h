
/*
 * Private to src/snapshot: what the files of the audit share.
 *
 * Two threads.  The caller's reads pages of the journal, checks chain, roots
 * and tiles, and passes each page on; the other decodes and replays it.  Rows
 * of a page are views into its reader, hence a reader for each page in
 * flight.
 */

#ifndef RON_AUDIT_IMPL_H
#define RON_AUDIT_IMPL_H


#include "ron_audit.h"
#include "ron_port.h"
#include "ron_state.h"


#define RON_AUDIT_PAGES       3
#define RON_AUDIT_PAGE_BYTES  ((size_t) 4 << 20)


typedef struct {
    ron_reader_t  *reader;
    ron_row_t     *rows;
    size_t         n;
    size_t         cap;
} ron_audit_page_t;


typedef struct {
    ron_store_t              *store;
    const ron_audit_conf_t   *conf;
    ron_audit_report_t       *report;
    ron_ledger_meta_t         meta;
    ron_reader_t             *reader;       /* for everything but pages */

    bool                      headless;     /* the head is damaged */
    uint64_t                  target;
    uint64_t                  next;         /* seq that must come */
    ron_row_t                 prev;         /* no views */
    ron_tree_t                tree;
    bool                      tile_bad;
    bool                      tile_missing;
    uint8_t                   tile_level;
    uint64_t                  tile_index;
    ron_status_t              tile_status;

    /* Roots to be met on the way: of a kept note and the published head. */
    uint64_t                  note_size;
    ron_hash_t                note_root;
    bool                      note_bad;
    uint64_t                  head_size;
    ron_hash_t                head_root;
    bool                      head_bad;

    ron_audit_page_t          pages[RON_AUDIT_PAGES];

    /* The replay, and what both threads touch, under the mutex. */
    bool                      replay;
    ron_state_t               state;
    ron_thread_t             *thread;
    ron_mutex_t              *mutex;
    ron_cond_t               *cond;
    uint64_t                  given;        /* pages passed on */
    uint64_t                  taken;        /* pages replayed */
    bool                      finish;
    bool                      over;         /* the thread has ended */
    ron_status_t              replay_status;
    uint64_t                  replay_seq;   /* its entry, commit, */
    uint64_t                  replay_first;
    uint64_t                  replay_last;
    char                      replay_why[256];
} ron_audit_run_t;


/* Fills the report unless something was found before; RON_ECORRUPT. */
ron_status_t ron_audit_bad(ron_audit_run_t *au, const char *what,
    const ron_row_t *row, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* RON_ECORRUPT: says which column of a row is not what was written. */
ron_status_t ron_audit_blame(ron_audit_run_t *au, const ron_row_t *row,
    uint64_t entries, const ron_hash_t *root);

/* ron_audit_replay.c */
ron_status_t ron_audit_replay_start(ron_audit_run_t *au);
void ron_audit_replay_give(ron_audit_run_t *au);
ron_audit_page_t *ron_audit_replay_page(ron_audit_run_t *au);
ron_status_t ron_audit_replay_end(ron_audit_run_t *au);

/* ron_audit_beside.c: everything that is not the journal. */
ron_status_t ron_audit_head_read(ron_audit_run_t *au);
ron_status_t ron_audit_heads(ron_audit_run_t *au);
ron_status_t ron_audit_beside(ron_audit_run_t *au);


#endif /* RON_AUDIT_IMPL_H */
