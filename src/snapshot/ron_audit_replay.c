
/*
 * The other half of the audit: entries are decoded and applied to a state
 * that begins empty, on a thread of their own, one page behind the walk.
 */

#include "ron_audit_impl.h"
#include "ron_entry.h"

#include <stdarg.h>
#include <stdio.h>


#define RON_AUDIT_WAIT_US  UINT64_C(1000000)
#define RON_AUDIT_JOIN_MS  UINT64_C(60000)
#define RON_AUDIT_WINDOW   16


static void ron_replay_main(void *arg);
static bool ron_replay_next(ron_audit_run_t *au, ron_audit_page_t **page);
static ron_status_t ron_replay_row(ron_audit_run_t *au, const ron_row_t *row);
static ron_status_t ron_replay_decode(ron_audit_run_t *au,
    const ron_row_t *row, uint64_t seq, ron_str_t bytes, ron_entry_t *e);
static ron_status_t ron_replay_apply(ron_audit_run_t *au,
    const ron_row_t *row, const ron_entry_t *e, const uint64_t *hash);
static ron_status_t ron_replay_bad(ron_audit_run_t *au, const ron_row_t *row,
    uint64_t seq, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));


ron_status_t
ron_audit_replay_start(ron_audit_run_t *au)
{
    ron_status_t  status;

    status = ron_state_init(&au->state);

    if (status == RON_OK) {
        status = ron_mutex_create(&au->mutex, RON_LOCK_REPLAY);
    }

    if (status == RON_OK) {
        status = ron_cond_create(&au->cond);
    }

    if (status == RON_OK) {
        status = ron_thread_start(&au->thread, "ron-replay", RON_THREAD_USUAL,
                                  ron_replay_main, au);
    }

    return status;
}


/* A page that nobody reads from; NULL when the replay has found something. */

ron_audit_page_t *
ron_audit_replay_page(ron_audit_run_t *au)
{
    bool  over;

    if (au->thread == NULL) {
        return &au->pages[0];
    }

    ron_mutex_lock(au->mutex);

    while (au->given - au->taken >= RON_AUDIT_PAGES && !au->over) {
        (void) ron_cond_wait(au->cond, au->mutex, RON_AUDIT_WAIT_US);
    }

    over = au->over;

    ron_mutex_unlock(au->mutex);

    return over ? NULL : &au->pages[au->given % RON_AUDIT_PAGES];
}


void
ron_audit_replay_give(ron_audit_run_t *au)
{
    if (au->thread == NULL) {
        return;
    }

    ron_mutex_lock(au->mutex);
    au->given++;
    ron_cond_broadcast(au->cond);
    ron_mutex_unlock(au->mutex);
}


/* Waits for what was given; then says what was found in it. */

ron_status_t
ron_audit_replay_end(ron_audit_run_t *au)
{
    ron_row_t            row;
    ron_audit_report_t  *r;

    if (au->thread != NULL) {
        ron_mutex_lock(au->mutex);
        au->finish = true;
        ron_cond_broadcast(au->cond);
        ron_mutex_unlock(au->mutex);

        while (ron_thread_join(au->thread, RON_AUDIT_JOIN_MS) == RON_AGAIN) {
            /* a page takes milliseconds, a starved machine longer */
        }

        au->thread = NULL;
    }

    if (au->cond != NULL) {
        ron_cond_destroy(au->cond);
        au->cond = NULL;
    }

    if (au->mutex != NULL) {
        ron_mutex_destroy(au->mutex);
        au->mutex = NULL;
    }

    if (!au->replay) {
        return RON_OK;
    }

    r = au->report;
    r->accounts = au->state.accounts.n;

    if (au->replay_status == RON_ECORRUPT) {
        memset(&row, 0, sizeof(row));
        row.seq = au->replay_first;
        row.count = au->replay_last + 1 - au->replay_first;

        /* It comes before whatever the walk found further on. */

        r->what = NULL;
        (void) ron_audit_bad(au, "entry", &row, "%s", au->replay_why);
        r->bad_entry = au->replay_seq;
        r->seq = ron_min(r->seq, au->replay_first - 1);

        return RON_ECORRUPT;
    }

    if (au->replay_status != RON_OK) {
        (void) snprintf(r->why, sizeof(r->why), "replay: %s",
                        ron_status_name(au->replay_status));
        return au->replay_status;
    }

    if (r->what == NULL && au->state.seq == au->target
        && ron_state_check(&au->state) != RON_OK)
    {
        return ron_audit_bad(au, "conservation", NULL, "money is not "
                             "conserved: what accounts have and hold is not "
                             "what was minted less what was burned");
    }

    r->replayed = au->state.seq == au->target;

    return RON_OK;
}


static void
ron_replay_main(void *arg)
{
    ron_status_t       status;
    ron_audit_run_t   *au = arg;
    ron_audit_page_t  *page;

    status = RON_OK;

    while (status == RON_OK && ron_replay_next(au, &page)) {

        for (size_t i = 0; i < page->n && status == RON_OK; i++) {
            status = ron_replay_row(au, &page->rows[i]);
        }

        ron_mutex_lock(au->mutex);
        au->taken++;
        ron_cond_broadcast(au->cond);
        ron_mutex_unlock(au->mutex);
    }

    ron_mutex_lock(au->mutex);
    au->replay_status = status;
    au->over = true;
    ron_cond_broadcast(au->cond);
    ron_mutex_unlock(au->mutex);
}


static bool
ron_replay_next(ron_audit_run_t *au, ron_audit_page_t **page)
{
    bool  have;

    ron_mutex_lock(au->mutex);

    while (au->taken == au->given && !au->finish) {
        (void) ron_cond_wait(au->cond, au->mutex, RON_AUDIT_WAIT_US);
    }

    have = au->taken != au->given;
    *page = &au->pages[au->taken % RON_AUDIT_PAGES];

    ron_mutex_unlock(au->mutex);

    return have;
}


/*
 * A window of entries is decoded before the first of them is applied, so that
 * what their accounts' look-ups will touch is on its way from memory.
 */

static ron_status_t
ron_replay_row(ron_audit_run_t *au, const ron_row_t *row)
{
    unsigned      n;
    uint64_t      seq, hash[2 * RON_AUDIT_WINDOW];
    ron_rd_t      rd;
    ron_str_t     bytes;
    ron_entry_t   window[RON_AUDIT_WINDOW];
    ron_status_t  status;

    ron_rd_init(&rd, row->body);
    ron_state_advance(&au->state, row->time_ms);
    status = RON_OK;

    for (seq = row->seq; status == RON_OK; seq += n) {
        for (n = 0; n < RON_AUDIT_WINDOW
                    && ron_body_next(&rd, &bytes) == RON_OK; n++)
        {
            status = ron_replay_decode(au, row, seq + n, bytes, &window[n]);

            if (status != RON_OK) {
                break;
            }

            hash[2 * n] = ron_state_hash(&au->state, window[n].account);
            hash[2 * n + 1] = window[n].to.len == 0 ? hash[2 * n]
                              : ron_state_hash(&au->state, window[n].to);
        }

        if (n == 0) {
            break;
        }

        for (unsigned stage = 0; stage < 3; stage++) {
            for (unsigned i = 0; i < 2 * n; i++) {
                ron_state_prefetch(&au->state, hash[i], stage);
            }
        }

        for (unsigned i = 0; i < n; i++) {
            if (ron_replay_apply(au, row, &window[i], &hash[2 * i])
                != RON_OK)
            {
                return au->state.failed ? RON_ENOMEM : RON_ECORRUPT;
            }
        }
    }

    return status;
}


static ron_status_t
ron_replay_decode(ron_audit_run_t *au, const ron_row_t *row, uint64_t seq,
    ron_str_t bytes, ron_entry_t *e)
{
    ron_status_t  status;

    status = ron_entry_decode(bytes, e);

    if (status == RON_EVERSION) {
        return ron_replay_bad(au, row, seq, "a version or kind of entry that "
                              "this program does not know");
    }

    if (status != RON_OK) {
        return ron_replay_bad(au, row, seq, "the bytes are not those of an "
                              "entry");
    }

    if (e->seq != seq || e->time_ms != row->time_ms
        || e->ledger_id != au->meta.ledger_id)
    {
        return ron_replay_bad(au, row, seq, "the entry is of another %s",
                              e->seq != seq ? "seq"
                              : e->time_ms != row->time_ms ? "time"
                              : "ledger");
    }

    return RON_OK;
}


static ron_status_t
ron_replay_apply(ron_audit_run_t *au, const ron_row_t *row,
    const ron_entry_t *e, const uint64_t *hash)
{
    ron_touch_t   touch;
    ron_status_t  status;

    touch = (ron_touch_t) { RON_NONE, RON_NONE };

    /* The plainest kind by far: what was looked up is not looked up again. */

    if (e->kind == RON_KIND_TRANSFER) {
        touch.from = ron_state_find(&au->state, e->account, hash[0]);
        touch.to = ron_state_find(&au->state, e->to, hash[1]);
    }

    status = ron_state_apply(&au->state, e, &touch);

    if (status != RON_OK && !au->state.failed) {
        return ron_replay_bad(au, row, e->seq, "this %s cannot follow from "
                              "the state before it (balance, hold or what it "
                              "refers to)", ron_kind_name(e->kind));
    }

    return status;
}


static ron_status_t
ron_replay_bad(ron_audit_run_t *au, const ron_row_t *row, uint64_t seq,
    const char *fmt, ...)
{
    va_list  args;

    au->replay_seq = seq;
    au->replay_first = row->seq;
    au->replay_last = row->seq + row->count - 1;

    va_start(args, fmt);
    (void) vsnprintf(au->replay_why, sizeof(au->replay_why), fmt, args);
    va_end(args);

    return ron_corrupt();
}
