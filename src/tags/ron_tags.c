
/*
 * A tag store as its owner sees it; the parts are
 *
 *     ron_tag_table      tables in RAM, and the log for undo
 *     ron_tag_segment    the files
 *     ron_tag_manifest   which files count
 *     ron_tag_view       the files of one moment, as look-ups use them
 *     ron_tag_merge      several files into one
 *     ron_tags_work      the background thread
 *     ron_tags_int.h     who owns what, and how a table goes round
 *
 * Invariants on the owner's side:
 *
 *   - a tag is in the active table, the frozen table or a segment, and in
 *     one of them only (two after a power failure in an odd place, with the
 *     same seq);
 *   - what is not committed is in the active table and in the log, which
 *     holds nothing else: so undo is exact, and cannot reach a frozen table;
 *   - active holds every tag with seq > frozen_seq, the frozen table with the
 *     segments every other one.  frozen_seq is what the interval of the next
 *     segment begins with.
 */

#include "ron_tags_int.h"

#include "ron_log.h"

#include <stdlib.h>


#define RON_TAGS_FANOUT        8
#define RON_TAGS_FANOUT_MAX    64
#define RON_TAGS_WAIT_US       100000
#define RON_TAGS_JOIN_MS       1000
#define RON_TAGS_LOAD_TRIES    5

/*
 * A start reads again what no segment covers, before anything is decided, so
 * it is this that bounds how long a restart takes, and not the tables: what
 * they hold beyond it is what may come while a segment is written.
 */
#define RON_TAGS_SPAN          100000


static ron_status_t ron_tags_conf(const ron_tags_conf_t *conf,
    ron_tags_t *tags);
static ron_status_t ron_tags_load(ron_tags_t *tags, ron_tag_view_t **view);
static ron_status_t ron_tags_load_write(ron_tags_t *tags,
    ron_tag_view_t **view);
static void ron_tags_free(ron_tags_t *tags);
static bool ron_tags_disk(const ron_tags_t *tags);
static void ron_tags_await(ron_tags_t *tags);
static void ron_tags_adopt(ron_tags_t *tags);
static void ron_tags_adopt_locked(ron_tags_t *tags);
static void ron_tags_set_view(ron_tags_t *tags, ron_tag_view_t *view);
static ron_status_t ron_tags_search(ron_tags_t *tags, ron_tag_key_t key,
    uint64_t *seq);
static ron_status_t ron_tags_room(ron_tags_t *tags);
static bool ron_tags_ripe(const ron_tags_t *tags);
static void ron_tags_warm(ron_tags_t *tags);
static ron_status_t ron_tags_spare(ron_tags_t *tags);
static ron_status_t ron_tags_freeze(ron_tags_t *tags);
static ron_status_t ron_tags_settle(ron_tags_t *tags);
static void ron_tags_stretch(ron_tags_t *tags);
static ron_status_t ron_tags_refresh(ron_tags_t *tags);
static ron_status_t ron_tags_drop(ron_tags_t *tags, uint64_t covered);
static void ron_tags_forget(ron_tags_t *tags, uint64_t covered);
static void ron_tags_take_back(ron_tag_table_t *table,
    const ron_tag_put_t *put);


ron_status_t
ron_tags_open(const ron_tags_conf_t *conf, ron_tags_t **out)
{
    ron_tags_t    *tags;
    ron_status_t   status;

    *out = NULL;

    tags = calloc(1, sizeof(ron_tags_t));
    if (tags == NULL) {
        return RON_ENOMEM;
    }

    status = ron_tags_conf(conf, tags);

    if (status == RON_OK) {
        status = ron_mutex_create(&tags->mutex, RON_LOCK_TAGS);
    }

    if (status == RON_OK) {
        status = ron_cond_create(&tags->work);
    }

    if (status == RON_OK) {
        status = ron_cond_create(&tags->done);
    }

    if (status == RON_OK) {
        status = ron_tag_table_create(&tags->table[0], tags->table_bytes);
    }

    if (status == RON_OK && tags->dir) {
        status = ron_tag_table_create(&tags->table[1], tags->table_bytes);
    }

    if (status == RON_OK) {
        tags->active = &tags->table[0];
        tags->turning = &tags->table[1];
        tags->freeze_at = tags->active->limit;
        tags->table_bytes = ron_tag_table_bytes(tags->active);

        status = tags->dir ? ron_tags_load(tags, &tags->view)
                           : ron_tag_view_empty(&tags->view);
    }

    if (status == RON_OK) {
        atomic_init(&tags->published, tags->view);

        tags->committed = tags->view->covered;
        tags->committed_ms = tags->view->covered_ms;
        tags->frozen_seq = tags->view->covered;
        tags->frozen_ms = tags->view->covered_ms;
        tags->dropped_seq = tags->view->covered;

        if (ron_tags_disk(tags)) {
            status = ron_thread_start(&tags->thread, "ron-tags",
                                      RON_THREAD_USUAL, ron_tags_work, tags);
        }
    }

    if (status != RON_OK) {
        ron_tags_free(tags);
        return status;
    }

    *out = tags;

    return RON_OK;
}


static ron_status_t
ron_tags_conf(const ron_tags_conf_t *conf, ron_tags_t *tags)
{
    size_t  len;

    len = strlen(conf->name);

    if (len == 0 || len > RON_TAG_NAME_MAX || strchr(conf->name, '/')) {
        return RON_EINVAL;
    }

    tags->name = strdup(conf->name);
    if (tags->name == NULL) {
        return RON_ENOMEM;
    }

    tags->fanout = conf->fanout ? conf->fanout : RON_TAGS_FANOUT;
    tags->fanout = ron_max(tags->fanout, 2);
    tags->fanout = ron_min(tags->fanout, RON_TAGS_FANOUT_MAX);
    tags->span = conf->span ? conf->span : RON_TAGS_SPAN;
    tags->read_only = conf->read_only;
    tags->table_bytes = conf->dir ? conf->ram_bytes / 2 : conf->ram_bytes;

    if (conf->dir) {

        if (strlen(conf->dir) > RON_TAG_PATH_MAX - 2 * RON_TAG_NAME_MAX) {
            return RON_EINVAL;
        }

        tags->dir = strdup(conf->dir);
        if (tags->dir == NULL) {
            return RON_ENOMEM;
        }
    }

    tags->place.dir = tags->dir;
    tags->place.name = tags->name;
    tags->place.ledger_id = conf->ledger_id;

    return RON_OK;
}


/* What the directory holds, as a follower or as the writer. */

static ron_status_t
ron_tags_load(ron_tags_t *tags, ron_tag_view_t **view)
{
    bool           whole;
    unsigned       tries;
    ron_status_t   status;

    if (!tags->read_only) {
        status = ron_dir_make(tags->dir);
        return status == RON_OK ? ron_tags_load_write(tags, view) : status;
    }

    /* the writer may merge away a file between manifest and open */

    for (tries = 1; /* void */ ; tries++) {

        status = ron_tag_view_load(&tags->place, tags->view,
                                   tries < RON_TAGS_LOAD_TRIES, view,
                                   &tags->next_no, &whole);
        if (status != RON_AGAIN) {
            return status;
        }
    }
}


/*
 * What was left out goes from the manifest before its file goes; when there
 * is no manifest to be written, files stay, and are in nobody's way.
 */

static ron_status_t
ron_tags_load_write(ron_tags_t *tags, ron_tag_view_t **view)
{
    bool           whole, replaced;
    ron_status_t   status;

    status = ron_tag_view_load(&tags->place, tags->view, false, view,
                               &tags->next_no, &whole);
    if (status != RON_OK) {
        return status;
    }

    status = ron_tag_view_sweep(&tags->place, *view, false, &tags->next_no);

    if (status == RON_OK && !whole) {
        status = ron_tag_view_save(&tags->place, *view, tags->next_no,
                                   &replaced);
    }

    if (status == RON_OK) {
        status = ron_tag_view_sweep(&tags->place, *view, true,
                                    &tags->next_no);
    }

    if (status != RON_OK) {
        ron_log(RON_LOG_WARN, "tags: cannot tidy up \"%s\" in \"%s\": %s (%s)",
                tags->name, tags->dir, ron_status_name(status),
                ron_port_error());
    }

    return RON_OK;
}


void
ron_tags_close(ron_tags_t *tags)
{
    if (tags == NULL) {
        return;
    }

    if (tags->thread) {
        ron_mutex_lock(tags->mutex);
        tags->stop = true;
        ron_cond_signal(tags->work);
        ron_mutex_unlock(tags->mutex);

        while (ron_thread_join(tags->thread, RON_TAGS_JOIN_MS) == RON_AGAIN) {
            /* void: it ends its write */
        }
    }

    ron_tags_free(tags);
}


static void
ron_tags_free(ron_tags_t *tags)
{
    ron_tag_view_t  *view, *next, *published;

    for (view = tags->garbage; view != NULL; view = next) {
        next = view->next;
        ron_tag_view_free(view);
    }

    published = atomic_load(&tags->published);

    if (published != tags->view) {
        ron_tag_view_free(published);
    }

    ron_tag_view_free(tags->view);

    ron_tag_table_free(&tags->table[0]);
    ron_tag_table_free(&tags->table[1]);
    ron_tag_log_free(&tags->log);

    if (tags->done) {
        ron_cond_destroy(tags->done);
    }

    if (tags->work) {
        ron_cond_destroy(tags->work);
    }

    if (tags->mutex) {
        ron_mutex_destroy(tags->mutex);
    }

    free(tags->dir);
    free(tags->name);
    free(tags);
}


/* Whether this handle writes files. */

static bool
ron_tags_disk(const ron_tags_t *tags)
{
    return tags->dir != NULL && !tags->read_only;
}


uint64_t
ron_tags_covered(const ron_tags_t *tags)
{
    return tags->view->covered;
}


static void
ron_tags_adopt(ron_tags_t *tags)
{
    if (atomic_load_explicit(&tags->published, memory_order_acquire)
        == tags->view)
    {
        return;
    }

    ron_mutex_lock(tags->mutex);
    ron_tags_adopt_locked(tags);
    ron_mutex_unlock(tags->mutex);
}


static void
ron_tags_adopt_locked(ron_tags_t *tags)
{
    ron_tag_view_t  *old, *view;

    view = atomic_load_explicit(&tags->published, memory_order_relaxed);

    if (view != tags->view) {
        old = tags->view;
        tags->view = view;
        old->next = tags->garbage;
        tags->garbage = old;
        ron_cond_signal(tags->work);
    }

    if (tags->turn == RON_TAGS_WRITTEN) {
        tags->turn = RON_TAGS_DIRTY;
        tags->frozen = NULL;
        ron_cond_signal(tags->work);
    }
}


/* The view of a handle that has no worker. */

static void
ron_tags_set_view(ron_tags_t *tags, ron_tag_view_t *view)
{
    ron_tag_view_t  *old;

    old = tags->view;

    tags->view = view;
    atomic_store(&tags->published, view);

    ron_tag_view_free(old);
}


void
ron_tags_prefetch(ron_tags_t *tags, const ron_tag_t *tag)
{
    uint32_t                i;
    ron_tag_key_t           key;
    const char             *p;
    const ron_tag_probe_t  *probe;

    key = ron_tag_key(tag);

    /* a probe runs over two or three slots: two lines hold nearly all */

    p = (const char *) ron_tag_table_home(tags->active, key.hi);
    __builtin_prefetch(p, 1);
    __builtin_prefetch(p + RON_TAG_LINE_LEN, 1);

    if (tags->frozen) {
        p = (const char *) ron_tag_table_home(tags->frozen, key.hi);
        __builtin_prefetch(p);
        __builtin_prefetch(p + RON_TAG_LINE_LEN);
    }

    for (i = 0; i < tags->view->n; i++) {
        probe = &tags->view->probe[i];
        __builtin_prefetch(probe->line + RON_TAG_LINE_WORDS
                                         * ron_tag_scale(key.hi,
                                                         probe->line_n));
    }
}


ron_status_t
ron_tags_get(ron_tags_t *tags, const ron_tag_t *tag, uint64_t *seq)
{
    ron_tag_key_t  key;

    key = ron_tag_key(tag);

    tags->lookups++;

    *seq = ron_tag_table_find(tags->active, key);
    if (*seq != 0) {
        return RON_OK;
    }

    if (tags->frozen) {
        *seq = ron_tag_table_find(tags->frozen, key);
        if (*seq != 0) {
            return RON_OK;
        }
    }

    return ron_tags_search(tags, key, seq);
}


/* In the segments, the newest first. */

static ron_status_t
ron_tags_search(ron_tags_t *tags, ron_tag_key_t key, uint64_t *seq)
{
    uint32_t               i;
    ron_status_t           status;
    ron_tag_mask_t         mask;
    const uint64_t        *line;
    const ron_tag_view_t  *view;

    *seq = 0;

    view = tags->view;

    ron_tag_mask(&mask, key);

    for (i = view->n; i-- > 0; /* void */ ) {

        line = view->probe[i].line
               + RON_TAG_LINE_WORDS
                 * ron_tag_scale(key.hi, view->probe[i].line_n);

        if (!ron_tag_line_has(line, &mask)) {
            continue;
        }

        tags->block_reads++;

        status = ron_tag_segment_find(view->segment[i], key, seq);
        if (status != RON_ENOTFOUND) {
            return status;
        }
    }

    return RON_ENOTFOUND;
}


ron_status_t
ron_tags_put(ron_tags_t *tags, const ron_tag_t *tag, uint64_t seq)
{
    uint64_t        old;
    ron_status_t    status, rc;
    ron_tag_key_t   key;

    if (seq == 0) {
        return RON_EINVAL;
    }

    key = ron_tag_key(tag);
    old = ron_tag_table_find(tags->active, key);

    if (old >= seq
        || (tags->frozen && ron_tag_table_find(tags->frozen, key) >= seq))
    {
        return RON_OK;
    }

    status = RON_OK;

    if (tags->active->used >= tags->freeze_at) {
        status = ron_tags_room(tags);

        /* what was not committed has moved to the other table */
        old = ron_tag_table_find(tags->active, key);
    }

    if (seq > tags->committed) {
        rc = ron_tag_log_reserve(&tags->log);
        if (rc != RON_OK) {
            return rc;
        }
    }

    rc = ron_tag_table_set(tags->active, key, seq);
    if (rc != RON_OK) {
        return rc;
    }

    if (seq > tags->committed) {
        ron_tag_log_push(&tags->log, key, seq, old);
    }

    return status;
}


/*
 * The active table is full: freezes it, as soon as the spare one is there.
 * Where that cannot be, or would not help because most of it must stay, it
 * grows instead.  RON_EIO when the reason is that segments cannot be written.
 */

static ron_status_t
ron_tags_room(ron_tags_t *tags)
{
    ron_status_t  status;

    if (tags->dir == NULL) {
        ron_tags_stretch(tags);
        return RON_OK;
    }

    if (tags->read_only) {
        return tags->active->used < tags->active->limit
               ? RON_OK : ron_tags_refresh(tags);
    }

    ron_tags_adopt(tags);

    if (tags->log.n > tags->active->used / 2) {
        ron_tags_stretch(tags);
        return RON_OK;
    }

    status = ron_tags_spare(tags);

    if (status == RON_OK) {
        status = ron_tags_freeze(tags);
    }

    if (status != RON_OK) {
        ron_tags_stretch(tags);
    }

    return status;
}


/* Grows when it must.  Without memory for that the table fills to the brim. */

static void
ron_tags_stretch(ron_tags_t *tags)
{
    if (tags->active->used >= tags->active->limit) {
        (void) ron_tag_table_grow(tags->active);
    }

    if (tags->dir == NULL) {
        tags->freeze_at = tags->active->limit;
    }
}


/* Waits for the spare table to be empty. */

static ron_status_t
ron_tags_spare(ron_tags_t *tags)
{
    bool          waited;
    ron_status_t  status;

    waited = false;
    status = RON_OK;

    ron_mutex_lock(tags->mutex);

    for ( ;; ) {

        ron_tags_adopt_locked(tags);

        if (tags->turn == RON_TAGS_FREE) {
            break;
        }

        if (tags->turn == RON_TAGS_TURNING && tags->write_status != RON_OK) {
            status = RON_EIO;
            break;
        }

        if (!waited) {
            waited = true;
            tags->waits++;
        }

        ron_tags_await(tags);
    }

    ron_mutex_unlock(tags->mutex);

    return status;
}


/* Under the mutex: for what the worker does, which does not rest meanwhile. */

static void
ron_tags_await(ron_tags_t *tags)
{
    tags->awaited = true;
    ron_cond_signal(tags->work);
    (void) ron_cond_wait(tags->done, tags->mutex, RON_TAGS_WAIT_US);
    tags->awaited = false;
}


/*
 * Hands the active table to the worker, with everything up to the watermark,
 * and goes on in the spare one, which must be empty, with the rest.
 */

static ron_status_t
ron_tags_freeze(ron_tags_t *tags)
{
    size_t                 i;
    ron_status_t           status;
    ron_tag_key_t          key;
    ron_tag_table_t       *full, *spare;
    const ron_tag_put_t   *s;

    full = tags->active;
    spare = full == &tags->table[0] ? &tags->table[1] : &tags->table[0];

    for (i = 0; i < tags->log.n; i++) {

        s = ron_tag_log_at(&tags->log, i);
        key.hi = s->hi;
        key.lo = s->lo;

        status = RON_OK;

        if (spare->used >= spare->limit) {
            status = ron_tag_table_grow(spare);
        }

        if (status == RON_OK) {
            status = ron_tag_table_set(spare, key, s->seq);
        }

        if (status != RON_OK) {
            ron_tag_table_clear(spare);
            return status;
        }
    }

    /* Backwards, so that of two puts of a tag the older is what remains. */

    for (i = tags->log.n; i-- > 0; /* void */ ) {
        s = ron_tag_log_at(&tags->log, i);
        ron_tags_take_back(full, s);
        ron_tag_log_moved(&tags->log, i, tags->committed);
    }

    ron_mutex_lock(tags->mutex);

    RON_ASSERT(tags->turn == RON_TAGS_FREE);

    memset(&tags->turning_info, 0, sizeof(ron_tag_info_t));
    tags->turning_info.seq_lo = tags->frozen_seq;
    tags->turning_info.seq_hi = tags->committed;
    tags->turning_info.oldest_ms = tags->frozen_ms;
    tags->turning_info.newest_ms = tags->committed_ms;

    tags->turning = full;
    tags->turn = RON_TAGS_TURNING;
    ron_cond_signal(tags->work);

    ron_mutex_unlock(tags->mutex);

    tags->frozen = full;
    tags->active = spare;
    tags->frozen_seq = tags->committed;
    tags->frozen_ms = tags->committed_ms;

    return RON_OK;
}


void
ron_tags_undo(ron_tags_t *tags, uint64_t last_seq)
{
    const ron_tag_put_t  *s;

    RON_ASSERT(last_seq >= tags->committed);

    while ((s = ron_tag_log_pop(&tags->log, last_seq)) != NULL) {
        ron_tags_take_back(tags->active, s);
    }
}


/* Makes a table what it was before a put. */

static void
ron_tags_take_back(ron_tag_table_t *table, const ron_tag_put_t *put)
{
    ron_tag_key_t  key;

    key.hi = put->hi;
    key.lo = put->lo;

    if (put->old != 0) {
        RON_ASSERT(ron_tag_table_set(table, key, put->old) == RON_OK);
        return;
    }

    RON_ASSERT(ron_tag_table_remove(table, key));
}


void
ron_tags_commit(ron_tags_t *tags, uint64_t committed_seq, uint64_t ledger_ms)
{
    bool  ready;

    if (committed_seq > tags->committed) {
        tags->committed = committed_seq;
        ron_tag_log_commit(&tags->log, committed_seq);
    }

    tags->committed_ms = ron_max(tags->committed_ms, ledger_ms);

    if (!ron_tags_disk(tags)) {
        return;
    }

    ron_tags_adopt(tags);

    if (!tags->warmed && tags->active->used != 0
        && (tags->active->used >= tags->freeze_at / 2
            || tags->committed - tags->frozen_seq >= tags->span / 2))
    {
        ron_tags_warm(tags);
    }

    if (!ron_tags_ripe(tags) || tags->log.n > tags->active->used / 2) {
        return;
    }

    /* here it costs nobody a wait; a put would have to insist */

    ron_mutex_lock(tags->mutex);
    ready = tags->turn == RON_TAGS_FREE;
    ron_mutex_unlock(tags->mutex);

    if (ready) {
        (void) ron_tags_freeze(tags);
    }
}


/*
 * Half-way to the first freeze: lets the worker have the memory of the spare
 * table there, which whoever begins has no time for.
 */

static void
ron_tags_warm(ron_tags_t *tags)
{
    tags->warmed = true;

    ron_mutex_lock(tags->mutex);

    if (tags->turn == RON_TAGS_FREE) {
        tags->turn = RON_TAGS_COLD;
        ron_cond_signal(tags->work);
    }

    ron_mutex_unlock(tags->mutex);
}


/*
 * Full, or behind by as many entries as a start may read again.  What is
 * written then may be small or empty; it is the coverage that counts.
 */

static bool
ron_tags_ripe(const ron_tags_t *tags)
{
    return tags->active->used >= tags->freeze_at
           || tags->committed - tags->frozen_seq >= tags->span;
}


/*
 * The worker does it; what it cannot do yet it tries again.  It is not woken
 * for nothing: time goes on with every commit, and the oldest segment is too
 * old once in hours.
 */

ron_status_t
ron_tags_expire(ron_tags_t *tags, uint64_t before_ms)
{
    ron_tag_view_t  *view;

    if (!ron_tags_disk(tags)) {
        return RON_OK;
    }

    ron_mutex_lock(tags->mutex);

    if (before_ms > tags->expire_ms) {
        tags->expire_ms = before_ms;

        if (tags->committed_ms > before_ms) {
            tags->keep_ms = tags->committed_ms - before_ms;
        }

        view = atomic_load_explicit(&tags->published, memory_order_relaxed);

        if (view->n > 0 && view->segment[0]->info.newest_ms < before_ms) {
            ron_cond_signal(tags->work);
        }
    }

    ron_mutex_unlock(tags->mutex);

    return RON_OK;
}


ron_status_t
ron_tags_flush(ron_tags_t *tags)
{
    ron_status_t  status;

    if (!ron_tags_disk(tags)) {
        return RON_OK;
    }

    status = ron_tags_settle(tags);
    if (status != RON_OK) {
        return status;
    }

    if (tags->committed > tags->frozen_seq
        || tags->active->used > tags->log.n)
    {
        status = ron_tags_freeze(tags);

        if (status == RON_OK) {
            status = ron_tags_settle(tags);
        }
    }

    return status;
}


/* Until the worker has nothing to write or expire, or has failed at it. */

static ron_status_t
ron_tags_settle(ron_tags_t *tags)
{
    uint64_t      failures;
    ron_status_t  status;

    status = RON_OK;

    ron_mutex_lock(tags->mutex);

    failures = tags->failures;
    tags->retry_at_us = 0;
    ron_cond_signal(tags->work);

    for ( ;; ) {

        ron_tags_adopt_locked(tags);

        if (tags->turn == RON_TAGS_FREE
            && tags->expire_ms <= tags->expired_ms)
        {
            break;
        }

        if (tags->failures != failures) {
            status = tags->write_status;
            break;
        }

        ron_tags_await(tags);
    }

    ron_mutex_unlock(tags->mutex);

    return status;
}


ron_status_t
ron_tags_reset(ron_tags_t *tags)
{
    ron_status_t  status;

    if (tags->dir != NULL && tags->read_only) {
        return RON_EINVAL;
    }

    status = RON_OK;

    if (ron_tags_disk(tags)) {

        ron_mutex_lock(tags->mutex);

        tags->reset = true;
        ron_cond_signal(tags->work);

        while (tags->reset) {
            (void) ron_cond_wait(tags->done, tags->mutex, RON_TAGS_WAIT_US);
        }

        status = tags->reset_status;

        ron_tags_adopt_locked(tags);
        ron_mutex_unlock(tags->mutex);
    }

    if (status == RON_OK) {
        ron_tags_forget(tags, 0);
    }

    return status;
}


/* RAM without a tag, behind segments that hold everything up to `covered`. */

static void
ron_tags_forget(ron_tags_t *tags, uint64_t covered)
{
    ron_tag_table_clear(tags->active);
    ron_tag_log_commit(&tags->log, UINT64_MAX);

    tags->committed = covered;
    tags->committed_ms = tags->view->covered_ms;
    tags->frozen_seq = covered;
    tags->frozen_ms = tags->view->covered_ms;
    tags->dropped_seq = covered;
}


/*
 * A follower's table is full: what the writer has put into segments since can
 * go.  When that was little, or the directory cannot be read, it grows.
 */

static ron_status_t
ron_tags_refresh(ron_tags_t *tags)
{
    ron_status_t     status;
    ron_tag_view_t  *view;

    status = ron_tags_load(tags, &view);

    if (status == RON_OK && view->covered <= tags->view->covered) {

        /* nothing new; or a gap, and then what is open is worth more */

        ron_tag_view_free(view);

    } else if (status == RON_OK) {
        ron_tags_set_view(tags, view);
        (void) ron_tags_drop(tags, view->covered);
    }

    if (tags->active->used >= tags->active->limit / 2) {
        (void) ron_tag_table_grow(tags->active);
    }

    return RON_OK;
}


/* Drops from RAM what segments hold.  Without memory it stays, no harm. */

static ron_status_t
ron_tags_drop(ron_tags_t *tags, uint64_t covered)
{
    size_t            i, left;
    ron_status_t      status;
    ron_tag_table_t  *spare;

    /* looking makes both tables resident, which a restart has no time for */

    if (covered <= tags->dropped_seq) {
        return RON_OK;
    }

    spare = tags->active == &tags->table[0] ? &tags->table[1]
                                            : &tags->table[0];
    left = 0;

    for (i = 0; i < tags->active->slot_n; i++) {
        left += tags->active->slot[i].seq > covered;
    }

    while (left > spare->limit) {
        status = ron_tag_table_grow(spare);
        if (status != RON_OK) {
            return status;
        }
    }

    status = ron_tag_table_copy(spare, tags->active, covered);

    if (status != RON_OK) {
        ron_tag_table_clear(spare);
        return status;
    }

    ron_tag_log_commit(&tags->log, covered);
    ron_tag_table_clear(tags->active);
    tags->active = spare;
    tags->dropped_seq = covered;

    return RON_OK;
}


ron_status_t
ron_tags_promote(ron_tags_t *tags)
{
    ron_status_t     status;
    ron_tag_view_t  *view;

    if (!tags->read_only) {
        return RON_EINVAL;
    }

    if (tags->dir == NULL) {
        tags->read_only = false;
        return RON_OK;
    }

    status = ron_tags_load_write(tags, &view);
    if (status != RON_OK) {
        return status;
    }

    ron_tags_set_view(tags, view);

    if (view->covered < tags->dropped_seq) {

        /* segments that this RAM counted on are gone: from there, again */

        ron_tags_forget(tags, view->covered);

    } else {
        (void) ron_tags_drop(tags, view->covered);

        tags->committed = ron_max(tags->committed, view->covered);
        tags->committed_ms = ron_max(tags->committed_ms, view->covered_ms);
        tags->frozen_seq = view->covered;
        tags->frozen_ms = view->covered_ms;
    }

    tags->turning = tags->active == &tags->table[0] ? &tags->table[1]
                                                    : &tags->table[0];

    status = ron_thread_start(&tags->thread, "ron-tags", RON_THREAD_USUAL,
                              ron_tags_work, tags);
    if (status == RON_OK) {
        tags->read_only = false;
    }

    return status;
}


ron_status_t
ron_tags_check(ron_tags_t *tags)
{
    uint32_t      i;
    ron_status_t  status;

    for (i = 0; i < tags->view->n; i++) {

        status = ron_tag_segment_check(tags->view->segment[i]);
        if (status != RON_OK) {
            return status;
        }
    }

    return RON_OK;
}


void
ron_tags_stat(const ron_tags_t *tags, ron_tags_stat_t *stat)
{
    uint32_t                  i;
    const ron_tag_segment_t  *s;

    memset(stat, 0, sizeof(ron_tags_stat_t));

    stat->ram_tags = tags->active->used;
    stat->ram_tags += tags->frozen ? tags->frozen->used : 0;
    stat->lookups = tags->lookups;
    stat->filter_hits = tags->block_reads;
    stat->waits = tags->waits;
    stat->segments = tags->view->n;

    for (i = 0; i < tags->view->n; i++) {
        s = tags->view->segment[i];
        stat->disk_tags += s->info.tag_n;
        stat->disk_bytes += ron_tag_segment_bytes(s);
        stat->filter_bytes += s->line_n * RON_TAG_LINE_LEN
                              + s->block_n * sizeof(uint64_t);
    }

    ron_mutex_lock(tags->mutex);

    stat->ram_bytes = ron_tag_table_bytes(&tags->table[0]);
    stat->ram_bytes += ron_tag_table_bytes(&tags->table[1]);
    stat->merges = tags->merges;
    stat->write_failures = tags->failures;
    stat->merge_failures = tags->merge_failures;
    stat->failing = tags->write_status != RON_OK
                    || tags->merge_status != RON_OK;

    ron_mutex_unlock(tags->mutex);
}
