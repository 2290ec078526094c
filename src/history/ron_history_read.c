
/*
 * The reading side.  The projector may throw its file away between two calls,
 * so a reader asks before each whether it still reads the one that is there.
 */

#include "ron_history_impl.h"
#include "ron_log.h"
#include "ron_port.h"

#include <stdlib.h>


#define RON_HISTORY_LIMIT_MAX  10000


struct ron_history_reader_s {
    char           path[RON_HISTORY_PATH_MAX];
    sqlite3       *db;
    sqlite3_stmt  *begin;
    sqlite3_stmt  *end;
    sqlite3_stmt  *watermark;
    sqlite3_stmt  *runs;            /* NULL until an account is asked for */
    sqlite3_stmt  *links;
    ron_sipkey_t   key;
    ron_buf_t      seqs;
    bool           keep;            /* a damaged file, as evidence */
};


static bool ron_history_reader_moved(ron_history_reader_t *r);
static ron_status_t ron_history_reader_ready(ron_history_reader_t *r);
static void ron_history_reader_drop(ron_history_reader_t *r);
static ron_status_t ron_history_reader_prepare(ron_history_reader_t *r);
static ron_status_t ron_history_reader_mark(ron_history_reader_t *r,
    uint64_t *watermark);
static ron_status_t ron_history_reader_collect(ron_history_reader_t *r,
    ron_str_t account, uint64_t before, size_t max, uint64_t *watermark);
static ron_status_t ron_history_reader_runs(ron_history_reader_t *r,
    uint64_t hash, uint64_t before, size_t max);
static ron_status_t ron_history_reader_run(ron_history_reader_t *r,
    sqlite3_int64 run, uint64_t first, uint64_t link, size_t max);
static ron_status_t ron_history_reader_end(ron_history_reader_t *r,
    ron_status_t status);
static ron_status_t ron_history_reader_fail(ron_history_reader_t *r,
    ron_status_t status);
static ron_status_t ron_history_reader_discard(ron_history_reader_t *r);


ron_status_t
ron_history_reader_open(const char *dir, ron_history_reader_t **reader)
{
    ron_history_reader_t  *r;

    *reader = NULL;

    r = calloc(1, sizeof(ron_history_reader_t));
    if (r == NULL) {
        return RON_ENOMEM;
    }

    ron_buf_init(&r->seqs, 0);

    if (ron_history_path(dir, RON_HISTORY_DB, r->path) != RON_OK) {
        free(r);
        return RON_EINVAL;
    }

    *reader = r;

    return RON_OK;
}


void
ron_history_reader_close(ron_history_reader_t *r)
{
    if (r == NULL) {
        return;
    }

    ron_history_reader_drop(r);
    ron_buf_free(&r->seqs);
    free(r);
}


static void
ron_history_reader_drop(ron_history_reader_t *r)
{
    (void) sqlite3_finalize(r->begin);
    (void) sqlite3_finalize(r->end);
    (void) sqlite3_finalize(r->watermark);
    (void) sqlite3_finalize(r->runs);
    (void) sqlite3_finalize(r->links);
    (void) sqlite3_close(r->db);

    r->begin = r->end = r->watermark = NULL;
    r->runs = r->links = NULL;
    r->db = NULL;
}


/* Is it another file that is there now?  Who cannot tell takes it for one. */

static bool
ron_history_reader_moved(ron_history_reader_t *r)
{
    int  moved;

    moved = 0;

    return sqlite3_file_control(r->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved)
               != SQLITE_OK
           || moved;
}


static ron_status_t
ron_history_reader_ready(ron_history_reader_t *r)
{
    ron_status_t  status;

    if (r->db != NULL && ron_history_reader_moved(r)) {
        ron_history_reader_drop(r);
    }

    if (r->db != NULL) {
        return RON_OK;
    }

    if (sqlite3_open_v2(r->path, &r->db, SQLITE_OPEN_READONLY
                                         | SQLITE_OPEN_NOMUTEX, NULL)
        != SQLITE_OK)
    {
        status = r->db != NULL ? ron_history_failed(r->db) : RON_ENOMEM;
        ron_history_reader_drop(r);
        return status;
    }

    (void) sqlite3_extended_result_codes(r->db, 1);
    (void) sqlite3_busy_timeout(r->db, RON_HISTORY_BUSY_MS);
    (void) sqlite3_wal_autocheckpoint(r->db, 0);
    (void) sqlite3_db_config(r->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                             NULL);

    if (sqlite3_prepare_v2(r->db, "BEGIN", -1, &r->begin, NULL) != SQLITE_OK
        || sqlite3_prepare_v2(r->db, "COMMIT", -1, &r->end, NULL)
           != SQLITE_OK
        || sqlite3_prepare_v2(r->db, "SELECT seq FROM watermark", -1,
                              &r->watermark, NULL) != SQLITE_OK)
    {
        /* The file is there, its tables not yet: it is being made. */

        status = sqlite3_errcode(r->db) == SQLITE_ERROR
                 ? RON_ENOTFOUND : ron_history_failed(r->db);
        return ron_history_reader_fail(r, status);
    }

    return RON_OK;
}


/*
 * What accounts are read with.  A file of another format has a watermark like
 * any other, but these it has not: the projector is about to replace it.
 */

static ron_status_t
ron_history_reader_prepare(ron_history_reader_t *r)
{
    ron_status_t  status;

    if (r->links != NULL) {
        return RON_OK;
    }

    status = ron_history_key(r->db, &r->key);

    if (status == RON_OK
        && (sqlite3_prepare_v2(r->db, "SELECT run, first_seq, last_seq FROM "
                               "account_runs WHERE first_seq < ?1 "
                               "ORDER BY first_seq DESC", -1, &r->runs, NULL)
            != SQLITE_OK
            || sqlite3_prepare_v2(r->db, "SELECT links FROM account_links "
                                  "WHERE run = ?1 AND first <= ?2 "
                                  "ORDER BY first DESC", -1, &r->links, NULL)
               != SQLITE_OK))
    {
        status = ron_history_failed(r->db);
    }

    return status == RON_OK ? RON_OK : ron_history_reader_fail(r, status);
}


static ron_status_t
ron_history_reader_mark(ron_history_reader_t *r, uint64_t *watermark)
{
    ron_status_t  status;

    *watermark = 0;

    if (sqlite3_step(r->watermark) == SQLITE_ROW) {
        *watermark = (uint64_t) sqlite3_column_int64(r->watermark, 0);
        status = RON_OK;

    } else {
        status = ron_history_failed(r->db);
    }

    (void) sqlite3_reset(r->watermark);

    return status;
}


ron_status_t
ron_history_reader_watermark(ron_history_reader_t *r, uint64_t *watermark)
{
    ron_status_t  status;

    *watermark = 0;
    status = ron_history_reader_ready(r);

    if (status == RON_OK) {
        status = ron_history_reader_end(r,
                                        ron_history_reader_mark(r, watermark));
    }

    return status;
}


ron_status_t
ron_history_account(ron_history_reader_t *r, ron_str_t account,
    uint64_t before, uint32_t limit, ron_history_pt fn, void *ctx,
    uint64_t *watermark)
{
    size_t           i, n, wanted, left;
    ron_status_t     status;
    const uint64_t  *seqs;

    *watermark = 0;
    status = ron_history_reader_ready(r);

    if (status == RON_OK) {
        status = ron_history_reader_prepare(r);
    }

    if (before == 0 || before > INT64_MAX) {
        before = INT64_MAX;
    }

    left = ron_min(limit, (uint32_t) RON_HISTORY_LIMIT_MAX);

    while (status == RON_OK) {
        wanted = left;
        status = ron_history_reader_collect(r, account, before, wanted,
                                            watermark);
        seqs = (const void *) r->seqs.data;
        n = r->seqs.len / sizeof(uint64_t);

        if (status != RON_OK || n == 0) {
            break;
        }

        before = seqs[n - 1];

        /* for each that is another's there is one more to look for */

        for (i = 0; i < n && status == RON_OK; i++) {
            status = fn(ctx, seqs[i]);
            left -= status == RON_OK;

            if (status == RON_ENOTFOUND) {
                status = RON_OK;
            }
        }

        if (n < wanted || left == 0) {
            break;
        }
    }

    return status;
}


/* Up to `max` seqs; the first time with the watermark. */

static ron_status_t
ron_history_reader_collect(ron_history_reader_t *r, ron_str_t account,
    uint64_t before, size_t max, uint64_t *watermark)
{
    ron_status_t  status;

    ron_buf_reset(&r->seqs);

    /* Both in one snapshot: complete up to that watermark. */

    status = sqlite3_step(r->begin) == SQLITE_DONE
             ? RON_OK : ron_history_failed(r->db);
    (void) sqlite3_reset(r->begin);

    if (status == RON_OK && *watermark == 0) {
        status = ron_history_reader_mark(r, watermark);
    }

    if (status == RON_OK) {
        status = ron_history_reader_runs(r, ron_history_link(&r->key, account),
                                         before, max);
    }

    return ron_history_reader_end(r, status);
}


/* From the newest run to the oldest, until there are enough. */

static ron_status_t
ron_history_reader_runs(ron_history_reader_t *r, uint64_t hash,
    uint64_t before, size_t max)
{
    int            rc;
    uint64_t       first, last;
    ron_status_t   status;

    status = RON_OK;
    rc = SQLITE_DONE;
    sqlite3_bind_int64(r->runs, 1, (sqlite3_int64) before);

    while (status == RON_OK && r->seqs.len / sizeof(uint64_t) < max
           && (rc = sqlite3_step(r->runs)) == SQLITE_ROW)
    {
        first = (uint64_t) sqlite3_column_int64(r->runs, 1);
        last = (uint64_t) sqlite3_column_int64(r->runs, 2);
        last = ron_min(ron_min(last, before - 1) - first,
                       RON_HISTORY_LINK_SEQ);
        status = ron_history_reader_run(r, sqlite3_column_int64(r->runs, 0),
                                        first, hash | last, max);
    }

    if (status == RON_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) {
        status = ron_history_failed(r->db);
    }

    /* else it would be forgotten what happened, and the connection is closed */

    if (status == RON_OK || status == RON_AGAIN) {
        (void) sqlite3_reset(r->runs);
    }

    return status;
}


/* Links of one hash, from `link` downwards. */

static ron_status_t
ron_history_reader_run(ron_history_reader_t *r, sqlite3_int64 run,
    uint64_t first, uint64_t link, size_t max)
{
    int       rc;
    size_t    n, low, high;
    uint64_t  seq, hash, links[RON_HISTORY_BLOCK];

    hash = link & ~RON_HISTORY_LINK_SEQ;
    n = 0;
    rc = SQLITE_DONE;
    sqlite3_bind_int64(r->links, 1, run);
    sqlite3_bind_int64(r->links, 2, (sqlite3_int64) link);

    /* until a link of another account comes, which is not counted in n */

    while (n == 0 && (rc = sqlite3_step(r->links)) == SQLITE_ROW) {
        n = (size_t) sqlite3_column_bytes(r->links, 0) / sizeof(uint64_t);
        n = ron_min(n, (size_t) RON_HISTORY_BLOCK);

        if (n != 0) {
            memcpy(links, sqlite3_column_blob(r->links, 0),
                   n * sizeof(uint64_t));
        }

        for (low = 0, high = n; low < high; /* void */) {
            if (ron_history_link_swap(links[(low + high) / 2]) <= link) {
                low = (low + high) / 2 + 1;

            } else {
                high = (low + high) / 2;
            }
        }

        for (n = low; n > 0 && r->seqs.len / sizeof(uint64_t) < max; n--) {
            link = ron_history_link_swap(links[n - 1]);

            if ((link & ~RON_HISTORY_LINK_SEQ) != hash) {
                break;
            }

            seq = first + (link & RON_HISTORY_LINK_SEQ);
            ron_buf_put(&r->seqs, &seq, sizeof(seq));
        }
    }

    (void) sqlite3_reset(r->links);

    if (n == 0 && rc != SQLITE_DONE) {
        return ron_history_failed(r->db);
    }

    return ron_buf_status(&r->seqs);
}


static ron_status_t
ron_history_reader_end(ron_history_reader_t *r, ron_status_t status)
{
    if (status != RON_OK && status != RON_AGAIN) {
        return ron_history_reader_fail(r, status);
    }

    if (!sqlite3_get_autocommit(r->db)) {
        (void) sqlite3_step(r->end);
        (void) sqlite3_reset(r->end);
    }

    return status;
}


/* A file that cannot be read is opened anew next time. */

static ron_status_t
ron_history_reader_fail(ron_history_reader_t *r, ron_status_t status)
{
    int  rc;

    rc = sqlite3_errcode(r->db) & 0xff;

    if (!r->keep && (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB)) {
        status = ron_history_reader_discard(r);
    }

    ron_history_reader_drop(r);

    return status;
}


/*
 * A damaged page that the projector has no need of is seen by readers only.
 * The projector makes a file anew that is not there any more.
 */

static ron_status_t
ron_history_reader_discard(ron_history_reader_t *r)
{
    ron_status_t  status;

    if (ron_history_reader_moved(r)) {
        return RON_AGAIN;
    }

    ron_log(RON_LOG_WARN, "history.db is damaged, it is thrown away and built"
            " again");

    status = ron_file_unlink(r->path);

    return status == RON_OK || status == RON_ENOTFOUND ? RON_AGAIN : status;
}


ron_status_t
ron_history_peek(const char *dir, uint64_t *watermark)
{
    ron_status_t           status;
    ron_history_reader_t  *reader;

    *watermark = 0;
    status = ron_history_reader_open(dir, &reader);

    if (status == RON_OK) {
        reader->keep = true;
        status = ron_history_reader_watermark(reader, watermark);
        ron_history_reader_close(reader);
    }

    return status;
}
