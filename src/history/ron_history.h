
/*
 * history.db: the journal once more, as tables for questions and for any
 * sqlite3 shell.  Nothing depends on it: receipts, proofs, roots and balances
 * come from elsewhere, so it may lag, and may be deleted at any time.
 *
 *     entries          one row an entry: seq, time_ms, kind, account,
 *                      to_account, asset, amount, nonce, id, source_ms, ref,
 *                      posting, expiry_ms, commit_seq
 *     account_runs,    which entries concern an account, for
 *     account_links    ron_history_account() only: see ron_history_links.c
 *     holds            seq, account, to_account, asset, amount, remaining,
 *                      expiry_ms, closed_seq
 *     commits          seq, count, time_ms, epoch, root
 *     account_history  a view: name, and an entry that has it as account or
 *                      to_account; it reads all entries
 *     accounts         a view of that: name, first_seq
 *     watermark        seq of the last entry that is here, the chain of its
 *                      commit; moved in the transaction that adds the rows
 *
 * Amounts are decimal text, because SQLite's integers have 64 bits.  Neither
 * idempotency keys nor capabilities are kept here.
 *
 * The projector is the only writer, by a lock on history.lock.  It reads the
 * journal in short transactions, which are over when it looks at what it read,
 * writes at most so many entries in one of its own, and starts over by itself
 * when its file was deleted or is damaged.
 */

#ifndef RON_HISTORY_H
#define RON_HISTORY_H


#include "ron_store.h"


#define RON_HISTORY_DB    "history.db"
#define RON_HISTORY_LOCK  "history.lock"

/*
 * Entries of one transaction, when the caller has no wish: at first, and at
 * most, once that writes few pages.
 */
#define RON_HISTORY_STEP      20000
#define RON_HISTORY_STEP_MAX  200000


typedef struct {
    size_t        cache;            /* bytes of the database in memory */
    uint32_t      share;            /* percent of the time that it works while
                                       the journal grows, 1 to 100 */
} ron_history_conf_t;

extern const ron_history_conf_t  ron_history_usual;


/* ---- the projector ------------------------------------------------------ */

typedef struct ron_history_s  ron_history_t;


/*
 * RON_EFENCED: another projector is at work.  RON_ENOTFOUND: a ledger in
 * memory has no history.  RON_ECORRUPT: history knows entries that the
 * journal does not have, or another chain: the journal was cut or changed,
 * and somebody must look at it.  *why says what happened.
 *
 * The store is used to open readers and must outlive the projector.
 */
ron_status_t ron_history_open(ron_store_t *store,
    const ron_history_conf_t *conf, ron_history_t **history, ron_buf_t *why);
void ron_history_close(ron_history_t *history);

/*
 * From another thread, before it is closed: a step that is under way is given
 * up, and closing leaves its log to whoever opens it next.
 */
void ron_history_abandon(ron_history_t *history);

/*
 * Projects about max_n entries (0: as many as seem good; whole commits).
 * RON_OK: it did, there may be more.  RON_ENOTFOUND: level with the journal.
 * RON_AGAIN: busy, ask again.  RON_ECORRUPT as above.
 */
ron_status_t ron_history_step(ron_history_t *history, uint32_t max_n,
    ron_buf_t *why);

uint64_t ron_history_watermark(const ron_history_t *history);

/* Did the last step end because it was long enough?  Then there may be more. */
bool ron_history_more(const ron_history_t *history);

/* Deletes what is there and begins again with the first entry. */
ron_status_t ron_history_reset(ron_history_t *history, ron_buf_t *why);

/* ---- the projector on a thread of its own, at idle priority ------------- */

typedef struct ron_history_thread_s  ron_history_thread_t;

typedef struct {
    uint64_t      watermark;
    ron_status_t  status;           /* RON_ECORRUPT: history knows more than
                                       the journal; it is asked again once
                                       a second, and the log says why */
} ron_history_stat_t;

/* Opens the ledger `store` for itself; both are used before this returns. */
ron_status_t ron_history_thread_start(const ron_store_conf_t *store,
    const ron_history_conf_t *conf, ron_history_thread_t **thread,
    ron_buf_t *why);

/* From any thread; waits for nobody. */
void ron_history_thread_stat(ron_history_thread_t *thread,
    ron_history_stat_t *stat);

/*
 * It ends as soon as it can, in the middle of a step if need be; waits for
 * nobody.  What is left to do is ron_history_thread_stop().
 */
void ron_history_thread_cancel(ron_history_thread_t *thread);

/* RON_AGAIN when it did not end in time: ask again, it is being stopped. */
ron_status_t ron_history_thread_stop(ron_history_thread_t *thread,
    uint64_t timeout_ms);


/* ---- readers: one thread each, short transactions ----------------------- */

typedef struct ron_history_reader_s  ron_history_reader_t;

ron_status_t ron_history_reader_open(const char *dir,
    ron_history_reader_t **reader);
void ron_history_reader_close(ron_history_reader_t *reader);

/*
 * RON_ENOTFOUND: there is no history yet.  RON_AGAIN: ask again; so when the
 * file was found damaged, which removes it, and the projector builds it anew.
 */
ron_status_t ron_history_reader_watermark(ron_history_reader_t *reader,
    uint64_t *watermark);

/*
 * RON_ENOTFOUND: the entry does not name the account.  History knows names by
 * a hash of 39 bits, and has few that are not what was asked for, but some.
 */
typedef ron_status_t (*ron_history_pt)(void *ctx, uint64_t seq);

/*
 * Up to `limit` (at most 10 000) entries that name the account, newest first,
 * those with a seq below `before` (0: all); fn is called after the read has
 * ended.  *watermark is what the answer is complete up to.  RON_ENOTFOUND:
 * there is no history yet; no entry for an account is RON_OK and no call.
 */
ron_status_t ron_history_account(ron_history_reader_t *reader,
    ron_str_t account, uint64_t before, uint32_t limit, ron_history_pt fn,
    void *ctx, uint64_t *watermark);


/*
 * The watermark of a directory, once; RON_ENOTFOUND: there is none.  RON_EIO
 * for a damaged file, which stays where it is.
 */
ron_status_t ron_history_peek(const char *dir, uint64_t *watermark);


#endif /* RON_HISTORY_H */
