
/*
 * The handle of a tag store.  Internal to src/tags.
 *
 * Two threads.  The owner calls ron_tags_*(); the worker (ron_tags_work.c)
 * writes tables out, merges, expires.  Everything below is marked with whose
 * it is.  The mutex is never held over I/O, and no look-up takes it.
 *
 * A table goes round:
 *
 *     RON_TAGS_COLD      the worker's, was never touched
 *        worker: its memory is there
 *     RON_TAGS_FREE      empty; the owner's spare
 *        owner: freezes the active one, which the spare replaces
 *     RON_TAGS_TURNING   worker writes it out, owner looks up in it
 *        worker: its segment is durable and in the published view
 *     RON_TAGS_WRITTEN   both may read it
 *        owner: looks up in the new view from now on
 *     RON_TAGS_DIRTY     the worker's, to be emptied
 *        worker: is empty again
 *     RON_TAGS_FREE
 *
 * The spare of a store that nobody uses stays untouched: it becomes cold when
 * it will be needed soon.
 *
 * Views go from the worker to the owner by `published`; the one that the
 * owner let go comes back through `garbage`, because closing files and
 * unmapping filters takes longer than a look-up may.
 */

#ifndef RON_TAGS_INT_H
#define RON_TAGS_INT_H


#include <stdatomic.h>

#include "ron_tag_view.h"


typedef enum {
    RON_TAGS_FREE = 0,
    RON_TAGS_TURNING,
    RON_TAGS_WRITTEN,
    RON_TAGS_DIRTY,
    RON_TAGS_COLD
} ron_tags_turn_t;


struct ron_tags_s {
    /* set at open; read by both */

    ron_tag_place_t           place;
    char                     *dir;
    char                     *name;
    uint32_t                  fanout;
    uint64_t                  span;
    size_t                    table_bytes;

    /* the owner's */

    bool                      read_only;
    ron_tag_table_t          *active;
    const ron_tag_table_t    *frozen;       /* NULL when not to be read */
    ron_tag_view_t           *view;         /* written under mutex */
    size_t                    freeze_at;    /* tags in active */
    ron_tag_log_t             log;          /* what is not committed */
    uint64_t                  committed;
    uint64_t                  committed_ms;
    uint64_t                  frozen_seq;   /* active holds all above */
    uint64_t                  frozen_ms;
    uint64_t                  dropped_seq;  /* a follower's RAM holds above */
    uint64_t                  lookups;
    uint64_t                  block_reads;
    uint64_t                  waits;
    bool                      warmed;       /* the spare was asked for */

    /* shared */

    _Atomic(ron_tag_view_t *) published;    /* written under mutex */
    ron_mutex_t              *mutex;
    ron_cond_t               *work;         /* for the worker */
    ron_cond_t               *done;         /* for the owner */
    ron_thread_t             *thread;       /* NULL: there is no worker */

    /* under mutex */

    ron_tags_turn_t           turn;
    ron_tag_table_t          *turning;      /* owned as `turn` says */
    ron_tag_info_t            turning_info;
    ron_tag_view_t           *garbage;
    uint64_t                  expire_ms;    /* wanted */
    uint64_t                  expired_ms;   /* done */
    uint64_t                  keep_ms;      /* how long tags live, 0: ever */
    uint64_t                  failures;     /* of a turn or an expiry */
    uint64_t                  merge_failures;
    uint64_t                  merges;
    ron_status_t              write_status; /* of the last turn or expiry */
    ron_status_t              merge_status;
    ron_status_t              reset_status;
    uint64_t                  retry_at_us;
    uint64_t                  merge_at_us;
    bool                      awaited;      /* the owner waits */
    bool                      reset;
    bool                      stop;

    /* the worker's */

    uint64_t                  next_no;
    uint64_t                  rested_us;    /* when it last did, or began */
    uint64_t                  retry_us;
    uint64_t                  merge_retry_us;

    ron_tag_table_t           table[2];
};


/* ---- ron_tags_work.c ---------------------------------------------------- */

/* The thread. */
void ron_tags_work(void *arg);


#endif /* RON_TAGS_INT_H */
