
/*
 * Snapshots of a ledger that is being served: one at a time, each on a thread
 * of its own at idle priority, which is there only as long as it works.  The
 * journal is read in short transactions, as by any reader; the sequencer and
 * the committer know nothing of it.
 *
 * A snapshot has a name, which is a directory in the directory of snapshots.
 * A name that is there already is brought up to date by copying what came
 * since; what was interrupted goes on where it was.
 */

#ifndef RON_SNAPSHOT_THREAD_H
#define RON_SNAPSHOT_THREAD_H


#include "ron_snapshot.h"


#define RON_SNAPSHOT_NAME_MAX  64
#define RON_SNAPSHOT_WHY_MAX   256


#define RON_SNAPSHOT_STATES(X)                                                \
    X(IDLE, "idle")                                                           \
    X(RUNNING, "running")                                                     \
    X(DONE, "done")                                                           \
    X(FAILED, "failed")

typedef enum {
#define RON_SNAPSHOT_STATE(id, text)  RON_SNAPSHOT_##id,
    RON_SNAPSHOT_STATES(RON_SNAPSHOT_STATE)
#undef RON_SNAPSHOT_STATE
    RON_SNAPSHOT_STATE_N
} ron_snapshot_state_t;


typedef struct {
    ron_store_conf_t     store;         /* its strings outlive the thread */
    const char          *dir;           /* of snapshots; so does this */
    const ron_signer_t  *signer;        /* NULL: the ledger's own key */
    uint32_t             max;           /* names */

    /*
     * Is there room for a copy of the ledger in `ledger`, as far as `copy`
     * does not have it?  NULL: there is.  Must not open the ledger's file: in
     * the process that writes it that would drop SQLite's locks.
     */
    bool               (*room)(void *ctx, const char *ledger,
        const char *copy);
    void                *ctx;
} ron_snapshot_thread_conf_t;

typedef struct {
    ron_snapshot_state_t  state;
    char                  name[RON_SNAPSHOT_NAME_MAX + 1];
    uint64_t              began_ms;     /* wall */
    uint64_t              done;         /* entries copied, of */
    uint64_t              total;
    ron_snapshot_info_t   info;         /* DONE */
    char                  why[RON_SNAPSHOT_WHY_MAX];        /* FAILED */
} ron_snapshot_stat_t;

typedef struct ron_snapshot_thread_s  ron_snapshot_thread_t;


/* 1-64 of [A-Za-z0-9._-], the first no dot. */
bool ron_snapshot_name_valid(ron_str_t name);
const char *ron_snapshot_state_name(ron_snapshot_state_t state);

ron_status_t ron_snapshot_thread_start(const ron_snapshot_thread_conf_t *conf,
    ron_snapshot_thread_t **thread);

/*
 * Any thread, never waits: begin one.  RON_EFENCED: one is being taken;
 * RON_EINVAL: not a name.  What becomes of it, stat() tells.
 */
ron_status_t ron_snapshot_thread_take(ron_snapshot_thread_t *thread,
    ron_str_t name);
void ron_snapshot_thread_stat(ron_snapshot_thread_t *thread,
    ron_snapshot_stat_t *stat);

/*
 * The owner's, from its event loop: starts what take() asked for, and joins
 * what has ended.
 */
void ron_snapshot_thread_tick(ron_snapshot_thread_t *thread);

/*
 * Ends the one in hand where it is.  RON_AGAIN: it did not end in time; it
 * holds what it was given, so the caller must _exit().
 */
ron_status_t ron_snapshot_thread_stop(ron_snapshot_thread_t *thread,
    uint64_t timeout_ms);


#endif /* RON_SNAPSHOT_THREAD_H */
