
/*
 * The background thread of a tag store: the only one that writes files and
 * makes views.
 *
 * In order of urgency: empty a table that was written, free what the owner
 * let go, write a frozen table, start over (reset), drop what expired, merge.
 * A merge looks for the urgent ones after each 32 KiB, and gives itself up
 * for a reset or the end; so it never holds a table back.
 *
 * Failure model.  A file is complete and synced before the manifest names it;
 * the manifest is replaced as a whole; only then is anything forgotten: the
 * table, the inputs of a merge, what expired.  When a step fails, its file is
 * thrown away (a sync that failed once proves nothing the second time) and
 * the step begins again later, 50 ms to 5 s.  The exception is a manifest
 * that may or may not have been replaced: then both what it names and what
 * the last one named stays on disk until the next one is written or the store
 * is opened again.
 */

#include "ron_tags_int.h"

#include "ron_log.h"
#include "ron_tag_merge.h"

#include <stdlib.h>


#define RON_TAGS_RETRY_MIN_US  50000
#define RON_TAGS_RETRY_MAX_US  5000000
#define RON_TAGS_IDLE_US       1000000

/*
 * Who computes for long keeps a processor for some milliseconds before the
 * kernel gives it to somebody else, and a payment is faster than that.  So
 * after this much work it rests: as long as it worked while it writes a table
 * out, three times as long in a merge, which is not as urgent.
 */
#define RON_TAGS_SLICE_US      300
#define RON_TAGS_TURN_RESTS    1
#define RON_TAGS_MERGE_RESTS   3
#define RON_TAGS_REST_MAX_US   50000

/* So many slots are less than that when there are no tags in them. */
#define RON_TAGS_SLICE_SLOTS   16384


static bool ron_tags_serve_locked(ron_tags_t *tags);
static bool ron_tags_clean_locked(ron_tags_t *tags);
static bool ron_tags_collect_locked(ron_tags_t *tags);
static bool ron_tags_turn_locked(ron_tags_t *tags);
static ron_status_t ron_tags_turn(ron_tags_t *tags,
    const ron_tag_table_t *table, const ron_tag_info_t *info,
    ron_tag_view_t **view);
static ron_status_t ron_tags_turn_pace(void *ctx);
static void ron_tags_say_locked(ron_tags_t *tags, ron_status_t was,
    ron_status_t status, const char *what);
static void ron_tags_turn_done_locked(ron_tags_t *tags, ron_status_t status,
    ron_tag_view_t *view, const char *what);
static bool ron_tags_reset_locked(ron_tags_t *tags);
static bool ron_tags_expire_locked(ron_tags_t *tags);
static ron_status_t ron_tags_expire_oldest(ron_tags_t *tags,
    const ron_tag_view_t *old, uint32_t n, ron_tag_view_t **view);
static bool ron_tags_merge_locked(ron_tags_t *tags);
static uint32_t ron_tags_merge_pick_locked(const ron_tags_t *tags,
    const ron_tag_view_t *view);
static bool ron_tags_merge_may_locked(const ron_tags_t *tags,
    ron_tag_segment_t *const *s);
static ron_status_t ron_tags_merge(ron_tags_t *tags,
    const ron_tag_view_t *view, uint32_t at, ron_tag_view_t **merged);
static ron_status_t ron_tags_merge_pace(void *ctx);
static void ron_tags_rest(ron_tags_t *tags, uint64_t worked_us,
    uint64_t rests);
static bool ron_tags_hurried(const ron_tags_t *tags,
    const ron_tag_view_t *view);
static ron_status_t ron_tags_save(ron_tags_t *tags, ron_tag_view_t *view,
    uint64_t new_no);
static void ron_tags_publish_locked(ron_tags_t *tags, ron_tag_view_t *view);
static void ron_tags_unlink(ron_tags_t *tags, const uint64_t *no, uint32_t n);
static ron_tag_view_t *ron_tags_current(ron_tags_t *tags);


void
ron_tags_work(void *arg)
{
    uint64_t     now, wait_us;
    ron_tags_t  *tags;

    tags = arg;

    ron_mutex_lock(tags->mutex);

    for ( ;; ) {

        if (ron_tags_reset_locked(tags) || ron_tags_serve_locked(tags)) {
            continue;
        }

        if (tags->stop) {
            break;
        }

        if (ron_tags_expire_locked(tags) || ron_tags_merge_locked(tags)) {
            continue;
        }

        now = ron_clock_mono_us();
        wait_us = RON_TAGS_IDLE_US;

        if (tags->retry_at_us > now) {
            wait_us = ron_min(wait_us, tags->retry_at_us - now);
        }

        if (tags->merge_at_us > now) {
            wait_us = ron_min(wait_us, tags->merge_at_us - now);
        }

        (void) ron_cond_wait(tags->work, tags->mutex, wait_us);
    }

    ron_mutex_unlock(tags->mutex);
}


/* What a merge lets come between.  All of these return true after work. */

static bool
ron_tags_serve_locked(ron_tags_t *tags)
{
    return ron_tags_clean_locked(tags)
           || ron_tags_collect_locked(tags)
           || ron_tags_turn_locked(tags);
}


static bool
ron_tags_clean_locked(ron_tags_t *tags)
{
    bool              renew, cold;
    ron_tag_table_t  *table, fresh, old;

    cold = tags->turn == RON_TAGS_COLD;

    if (tags->turn != RON_TAGS_DIRTY && !cold) {
        return false;
    }

    ron_mutex_unlock(tags->mutex);

    table = tags->turning;
    memset(&old, 0, sizeof(old));

    /* one that had to grow goes back to its size, if memory permits */

    renew = ron_tag_table_bytes(table) > tags->table_bytes
            && ron_tag_table_create(&fresh, tags->table_bytes) == RON_OK;

    if (renew || cold || table->used != 0) {
        ron_tag_table_wipe(renew ? &fresh : table);
    }

    ron_mutex_lock(tags->mutex);

    if (renew) {
        old = *table;
        *table = fresh;
    }

    tags->turn = RON_TAGS_FREE;
    ron_cond_broadcast(tags->done);

    ron_mutex_unlock(tags->mutex);
    ron_tag_table_free(&old);
    ron_mutex_lock(tags->mutex);

    return true;
}


static bool
ron_tags_collect_locked(ron_tags_t *tags)
{
    ron_tag_view_t  *view, *next;

    view = tags->garbage;

    if (view == NULL) {
        return false;
    }

    tags->garbage = NULL;

    ron_mutex_unlock(tags->mutex);

    for ( /* void */ ; view != NULL; view = next) {
        next = view->next;
        ron_tag_view_free(view);
    }

    ron_mutex_lock(tags->mutex);

    return true;
}


static bool
ron_tags_turn_locked(ron_tags_t *tags)
{
    ron_status_t     status;
    ron_tag_info_t   info;
    ron_tag_view_t  *view;

    if (tags->turn != RON_TAGS_TURNING
        || ron_clock_mono_us() < tags->retry_at_us)
    {
        return false;
    }

    info = tags->turning_info;

    ron_mutex_unlock(tags->mutex);

    status = ron_tags_turn(tags, tags->turning, &info, &view);

    ron_mutex_lock(tags->mutex);

    if (status == RON_OK) {
        tags->turn = RON_TAGS_WRITTEN;
    }

    ron_tags_turn_done_locked(tags, status, view, "write out");

    return true;
}


/* The table as a segment, and the view that has it: durable, not published. */

static ron_status_t
ron_tags_turn(ron_tags_t *tags, const ron_tag_table_t *table,
    const ron_tag_info_t *turning, ron_tag_view_t **view)
{
    size_t                 i;
    ron_status_t           status;
    ron_tag_info_t         info;
    ron_tag_key_t          key;
    ron_tag_build_t        b;
    ron_tag_view_t        *old;
    ron_tag_segment_t     *segment;
    const ron_tag_slot_t  *s;

    *view = NULL;

    info = *turning;
    info.no = tags->next_no++;

    status = ron_tag_build_start(&b, &tags->place, &info, table->used,
                                 ron_tags_turn_pace, tags);
    if (status != RON_OK) {
        return status;
    }

    segment = NULL;
    tags->rested_us = ron_clock_mono_us();

    for (i = 0; i < table->slot_n && status == RON_OK; i++) {

        s = &table->slot[i];

        if (s->seq != 0) {
            RON_ASSERT(s->seq <= info.seq_hi);

            key.hi = s->hi;
            key.lo = s->lo;
            status = ron_tag_build_add(&b, key, s->seq);
        }

        if (i % RON_TAGS_SLICE_SLOTS == RON_TAGS_SLICE_SLOTS - 1) {
            (void) ron_tags_turn_pace(tags);
        }
    }

    if (status == RON_OK) {
        status = ron_tag_build_end(&b, &segment);
    }

    if (status != RON_OK) {
        ron_tag_build_abort(&b);
        return status;
    }

    old = ron_tags_current(tags);

    status = ron_tag_view_replace(old, old->n, 0, segment, view);

    if (status != RON_OK) {
        ron_tag_segment_free(segment);
        ron_tags_unlink(tags, &info.no, 1);
        return status;
    }

    status = ron_tags_save(tags, *view, info.no);

    if (status != RON_OK) {
        ron_tag_view_free(*view);
        *view = NULL;
    }

    return status;
}


static ron_status_t
ron_tags_turn_pace(void *ctx)
{
    ron_tags_t  *tags = ctx;

    ron_mutex_lock(tags->mutex);
    ron_tags_rest(tags, ron_clock_mono_us() - tags->rested_us,
                  RON_TAGS_TURN_RESTS);
    ron_mutex_unlock(tags->mutex);

    return RON_OK;
}


/* Under the mutex; whoever has something to be done wakes it. */

static void
ron_tags_rest(ron_tags_t *tags, uint64_t worked_us, uint64_t rests)
{
    if (worked_us < RON_TAGS_SLICE_US) {
        return;
    }

    if (!tags->awaited && !tags->stop && !tags->reset) {
        (void) ron_cond_wait(tags->work, tags->mutex,
                             ron_min(worked_us * rests,
                                     RON_TAGS_REST_MAX_US));
    }

    tags->rested_us = ron_clock_mono_us();
}


/* Only the worker publishes, so for the worker this needs no lock. */

static ron_tag_view_t *
ron_tags_current(ron_tags_t *tags)
{
    return atomic_load_explicit(&tags->published, memory_order_relaxed);
}


/* Publishes the view of what went well, or plans the next try. */

static void
ron_tags_turn_done_locked(ron_tags_t *tags, ron_status_t status,
    ron_tag_view_t *view, const char *what)
{
    ron_status_t  was;

    was = tags->write_status;

    if (status == RON_OK) {
        tags->retry_us = 0;
        tags->retry_at_us = 0;
        ron_tags_publish_locked(tags, view);

    } else {
        tags->failures++;
        tags->retry_us = ron_max(tags->retry_us, RON_TAGS_RETRY_MIN_US / 2);
        tags->retry_us = ron_min(tags->retry_us * 2, RON_TAGS_RETRY_MAX_US);
        tags->retry_at_us = ron_clock_mono_us() + tags->retry_us;
    }

    tags->write_status = status;
    ron_cond_broadcast(tags->done);

    ron_tags_say_locked(tags, was, status, what);
}


/* Says once that something began to fail, or works again, without the lock. */

static void
ron_tags_say_locked(ron_tags_t *tags, ron_status_t was, ron_status_t status,
    const char *what)
{
    if (was == status) {
        return;
    }

    ron_mutex_unlock(tags->mutex);

    if (status == RON_OK) {
        ron_log(RON_LOG_WARN, "tags: can %s \"%s\" in \"%s\" again", what,
                tags->name, tags->dir);

    } else {
        ron_log(RON_LOG_ERROR, "tags: cannot %s \"%s\" in \"%s\": %s (%s), "
                "trying on", what, tags->name, tags->dir,
                ron_status_name(status), ron_port_error());
    }

    ron_mutex_lock(tags->mutex);
}


/*
 * Makes the view the one that counts on disk.  `new_no` is the file that it
 * adds (UINT64_MAX: none), which goes when the manifest surely has not.
 */

static ron_status_t
ron_tags_save(ron_tags_t *tags, ron_tag_view_t *view, uint64_t new_no)
{
    bool          replaced;
    ron_status_t  status;

    status = ron_tag_view_save(&tags->place, view, tags->next_no, &replaced);

    if (status != RON_OK && !replaced && new_no != UINT64_MAX) {
        ron_tags_unlink(tags, &new_no, 1);
    }

    return status;
}


static void
ron_tags_publish_locked(ron_tags_t *tags, ron_tag_view_t *view)
{
    ron_tag_view_t  *old;

    old = ron_tags_current(tags);

    atomic_store_explicit(&tags->published, view, memory_order_release);

    /* the owner never saw it, and now never will */

    if (old != tags->view) {
        old->next = tags->garbage;
        tags->garbage = old;
    }
}


static void
ron_tags_unlink(ron_tags_t *tags, const uint64_t *no, uint32_t n)
{
    char      path[RON_TAG_PATH_MAX];
    uint32_t  i;

    for (i = 0; i < n; i++) {
        ron_tag_segment_path(path, &tags->place, no[i]);
        (void) ron_file_unlink(path);
    }
}


/*
 * A view of nothing.  A table on its way out goes with everything else: the
 * owner empties its own when it sees the answer.
 */

static bool
ron_tags_reset_locked(ron_tags_t *tags)
{
    ron_status_t     status;
    ron_tag_view_t  *view;

    if (!tags->reset) {
        return false;
    }

    ron_mutex_unlock(tags->mutex);

    status = ron_tag_view_empty(&view);

    if (status == RON_OK) {

        status = ron_tags_save(tags, view, UINT64_MAX);

        if (status != RON_OK) {
            ron_tag_view_free(view);

        } else {
            (void) ron_tag_view_sweep(&tags->place, view, true,
                                      &tags->next_no);
        }
    }

    ron_mutex_lock(tags->mutex);

    if (status == RON_OK) {
        ron_tags_publish_locked(tags, view);

        if (tags->turn == RON_TAGS_TURNING) {
            tags->turn = RON_TAGS_WRITTEN;
        }

        tags->write_status = RON_OK;
        tags->merge_status = RON_OK;
        tags->retry_at_us = 0;
        tags->merge_at_us = 0;
        tags->expire_ms = 0;
        tags->expired_ms = 0;
    }

    tags->reset_status = status;
    tags->reset = false;
    ron_cond_broadcast(tags->done);

    return true;
}


/*
 * The oldest segments, as long as all of each is too old.  Coverage begins
 * where they ended.
 */

static bool
ron_tags_expire_locked(ron_tags_t *tags)
{
    uint32_t         n;
    uint64_t         before_ms;
    ron_status_t     status;
    ron_tag_view_t  *old, *view;

    before_ms = tags->expire_ms;

    if (before_ms <= tags->expired_ms
        || ron_clock_mono_us() < tags->retry_at_us)
    {
        return false;
    }

    old = ron_tags_current(tags);

    for (n = 0; n < old->n; n++) {
        if (old->segment[n]->info.newest_ms >= before_ms) {
            break;
        }
    }

    if (n == 0) {
        tags->expired_ms = before_ms;
        ron_cond_broadcast(tags->done);
        return true;
    }

    ron_mutex_unlock(tags->mutex);
    status = ron_tags_expire_oldest(tags, old, n, &view);
    ron_mutex_lock(tags->mutex);

    if (status == RON_OK) {
        tags->expired_ms = ron_max(tags->expired_ms, before_ms);
    }

    ron_tags_turn_done_locked(tags, status, view, "expire tags of");

    return true;
}


static ron_status_t
ron_tags_expire_oldest(ron_tags_t *tags, const ron_tag_view_t *old, uint32_t n,
    ron_tag_view_t **view)
{
    uint32_t         i;
    uint64_t        *no;
    ron_status_t     status;
    ron_tag_view_t  *v;

    *view = NULL;

    no = malloc(n * sizeof(uint64_t));
    if (no == NULL) {
        return RON_ENOMEM;
    }

    for (i = 0; i < n; i++) {
        no[i] = old->segment[i]->info.no;
    }

    status = ron_tag_view_replace(old, 0, n, NULL, &v);

    if (status == RON_OK) {

        v->expired_seq = old->segment[n - 1]->info.seq_hi;
        v->expired_ms = old->segment[n - 1]->info.newest_ms;

        if (v->n == 0) {
            v->covered = v->expired_seq;
            v->covered_ms = v->expired_ms;
        }

        status = ron_tags_save(tags, v, UINT64_MAX);

        if (status != RON_OK) {
            ron_tag_view_free(v);

        } else {
            ron_tags_unlink(tags, no, n);
            *view = v;
        }
    }

    free(no);

    return status;
}


static bool
ron_tags_merge_locked(ron_tags_t *tags)
{
    uint32_t         at;
    ron_status_t     status, was;
    ron_tag_view_t  *view, *merged;

    if (ron_clock_mono_us() < tags->merge_at_us) {
        return false;
    }

    view = ron_tags_current(tags);
    at = ron_tags_merge_pick_locked(tags, view);

    if (at == UINT32_MAX) {
        return false;
    }

    ron_mutex_unlock(tags->mutex);

    status = ron_tags_merge(tags, view, at, &merged);

    ron_mutex_lock(tags->mutex);

    if (status == RON_OK) {
        tags->merges++;
        tags->merge_retry_us = 0;
        ron_tags_publish_locked(tags, merged);

    } else if (status != RON_ECANCELED) {
        tags->merge_failures++;
        tags->merge_retry_us = ron_max(tags->merge_retry_us,
                                       RON_TAGS_RETRY_MIN_US / 2);
        tags->merge_retry_us = ron_min(tags->merge_retry_us * 2,
                                       RON_TAGS_RETRY_MAX_US);
        tags->merge_at_us = ron_clock_mono_us() + tags->merge_retry_us;
    }

    ron_cond_broadcast(tags->done);

    if (status != RON_ECANCELED) {
        was = tags->merge_status;
        tags->merge_status = status;
        ron_tags_say_locked(tags, was, status, "merge segments of");
    }

    return true;
}


/*
 * The first of `fanout` neighbours of one tier that may become one, of the
 * newest neighbours that are as many; UINT32_MAX for none.
 */

static uint32_t
ron_tags_merge_pick_locked(const ron_tags_t *tags, const ron_tag_view_t *view)
{
    uint32_t                   at, end, i;
    ron_tag_segment_t *const  *s;

    s = view->segment;

    for (end = view->n; end > 0; end = at) {

        for (at = end; at > 0; at--) {
            if (s[at - 1]->info.tier != s[end - 1]->info.tier) {
                break;
            }
        }

        for (i = at; i + tags->fanout <= end; i++) {
            if (ron_tags_merge_may_locked(tags, &s[i])) {
                return i;
            }
        }
    }

    return UINT32_MAX;
}


/*
 * Where tags expire, a segment that spans more time than they live would keep
 * dead ones for too long.  The first of a store begins at no time at all: it
 * stays alone, and those after it do not wait for it.
 */

static bool
ron_tags_merge_may_locked(const ron_tags_t *tags, ron_tag_segment_t *const *s)
{
    uint32_t  i;

    for (i = 0; i < tags->fanout; i++) {
        if (s[i]->damaged) {
            return false;
        }
    }

    return tags->keep_ms == 0
           || s[tags->fanout - 1]->info.newest_ms - s[0]->info.oldest_ms
              <= tags->keep_ms;
}


static ron_status_t
ron_tags_merge(ron_tags_t *tags, const ron_tag_view_t *view, uint32_t at,
    ron_tag_view_t **merged)
{
    uint32_t            i, n;
    uint64_t            no[64];
    ron_status_t        status;
    ron_tag_info_t      info;
    ron_tag_view_t     *now;
    ron_tag_segment_t  *in[64], *segment;

    *merged = NULL;

    n = tags->fanout;
    RON_ASSERT(n >= 1 && n <= ron_array_n(in));
    memset(in, 0, sizeof(in));

    for (i = 0; i < n; i++) {
        in[i] = view->segment[at + i];
        no[i] = in[i]->info.no;
    }

    info = in[0]->info;
    info.no = tags->next_no++;
    info.tier++;
    info.seq_hi = in[n - 1]->info.seq_hi;
    info.newest_ms = in[n - 1]->info.newest_ms;

    tags->rested_us = ron_clock_mono_us();
    status = ron_tag_merge(&tags->place, in, n, &info, ron_tags_merge_pace,
                           tags, &segment);
    if (status != RON_OK) {
        return status;
    }

    /* tables may have been written meanwhile, but behind the inputs */

    now = ron_tags_current(tags);
    RON_ASSERT(now->n >= at + n && now->segment[at] == in[0]);

    status = ron_tag_view_replace(now, at, n, segment, merged);

    if (status != RON_OK) {
        ron_tag_segment_free(segment);
        ron_tags_unlink(tags, &info.no, 1);
        return status;
    }

    status = ron_tags_save(tags, *merged, info.no);

    if (status != RON_OK) {
        ron_tag_view_free(*merged);
        *merged = NULL;
        return status;
    }

    ron_tags_unlink(tags, no, n);

    return RON_OK;
}


/* Between two pieces of a merge: what is urgent, and a rest. */

static ron_status_t
ron_tags_merge_pace(void *ctx)
{
    uint64_t       worked_us;
    ron_status_t   status;
    ron_tags_t    *tags = ctx;

    ron_mutex_lock(tags->mutex);

    worked_us = ron_clock_mono_us() - tags->rested_us;

    while (!tags->stop && !tags->reset && ron_tags_serve_locked(tags)) {
        /* void */
    }

    if (!ron_tags_hurried(tags, ron_tags_current(tags))) {
        ron_tags_rest(tags, worked_us, RON_TAGS_MERGE_RESTS);
    }

    status = tags->stop || tags->reset ? RON_ECANCELED : RON_OK;

    ron_mutex_unlock(tags->mutex);

    return status;
}


/* Do segments pile up? */

static bool
ron_tags_hurried(const ron_tags_t *tags, const ron_tag_view_t *view)
{
    uint32_t  n;

    for (n = 0; n < view->n; n++) {
        if (view->segment[view->n - 1 - n]->info.tier != 0) {
            break;
        }
    }

    return n >= 2 * tags->fanout;
}
