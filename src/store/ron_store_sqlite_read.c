
/*
 * The reading half of the sqlite store.
 *
 * A reader must never be in the writer's way.  A WAL can be checkpointed only
 * up to the oldest snapshot that somebody still reads, and it starts over,
 * instead of growing, only when nobody reads from it at all.  So every call
 * copies what it found, resets its statement, which ends the transaction, and
 * only then lets the caller's code run; a page of many rows ends after
 * RON_SQLITE_READ_US even if the caller asked for more.
 *
 * A reader never writes and never checkpoints: its connection is read-only,
 * query_only and without autocheckpoint, and it leaves the WAL alone when it
 * is the last one to close.  It does need write access to the directory,
 * though: after a crash the WAL index (ledger.db-shm) is rebuilt by whoever
 * comes first, in a file that this reader may have to create.
 */

#include "ron_store_sqlite.h"
#include "ron_port.h"

#include <stdio.h>
#include <stdlib.h>


/* A page of rows is cut at either of these, whatever the caller asked for. */
#define RON_SQLITE_READ_US     50000
#define RON_SQLITE_READ_BYTES  ((size_t) 8 << 20)

/* A snapshot is refused for an instant only: while the WAL is recovered. */
#define RON_SQLITE_READ_BUSY   100

#define RON_SQLITE_COLUMNS                                                    \
    "seq, count, epoch, time_ms, prev_root, root, checkpoint, chain, "        \
    "notes, body"


typedef struct {
    ron_reader_t   base;
    sqlite3       *db;
    sqlite3_stmt  *head;
    sqlite3_stmt  *row;
    sqlite3_stmt  *rows;
    sqlite3_stmt  *tile;
    sqlite3_stmt  *gen;
    sqlite3_stmt  *gen_n;
    sqlite3_stmt  *slice;
    sqlite3_stmt  *begin;
    sqlite3_stmt  *end;
    ron_buf_t      buf;             /* bytes behind the views given out */
    ron_buf_t      list;            /* ron_row_t, while a page is read */
} ron_sqlite_reader_t;


static ron_status_t ron_sqlite_format(sqlite3 *db, char *error);
static ron_status_t ron_sqlite_reader_prepare(ron_sqlite_reader_t *r);
static ron_status_t ron_sqlite_row_head(ron_reader_t *reader, ron_row_t *row);
static ron_status_t ron_sqlite_row_at(ron_reader_t *reader, uint64_t seq,
    ron_row_t *row);
static ron_status_t ron_sqlite_rows(ron_reader_t *reader, uint64_t seq,
    size_t max_bytes, ron_row_pt fn, void *ctx, uint64_t *next);
static ron_status_t ron_sqlite_collect(ron_sqlite_reader_t *r, uint64_t seq,
    size_t max_bytes);
static ron_status_t ron_sqlite_tile(ron_reader_t *reader, ron_tile_t *tile);
static ron_status_t ron_sqlite_gen(ron_reader_t *reader, uint64_t max_gen,
    uint64_t *gen, uint32_t *count, bool *complete);
static ron_status_t ron_sqlite_slice(ron_reader_t *reader, uint64_t gen,
    uint32_t no, ron_slice_t *slice);
static ron_status_t ron_sqlite_hold(ron_reader_t *reader, bool hold);
static void ron_sqlite_reader_close(ron_reader_t *reader);

static ron_status_t ron_sqlite_one_row(ron_sqlite_reader_t *r,
    sqlite3_stmt *stmt, ron_row_t *row);
static ron_status_t ron_sqlite_take_row(ron_sqlite_reader_t *r,
    sqlite3_stmt *stmt, ron_row_t *row);
static void ron_sqlite_row_views(ron_sqlite_reader_t *r, ron_row_t *row,
    size_t off);
static ron_status_t ron_sqlite_column_hash(sqlite3_stmt *stmt, int i,
    ron_hash_t *hash);
static ron_status_t ron_sqlite_reader_step(ron_sqlite_reader_t *r,
    sqlite3_stmt *stmt);


static const ron_reader_ops_t  ron_sqlite_reader_ops = {
    ron_sqlite_row_head,
    ron_sqlite_row_at,
    ron_sqlite_rows,
    ron_sqlite_tile,
    ron_sqlite_gen,
    ron_sqlite_slice,
    ron_sqlite_hold,
    ron_sqlite_reader_close
};


/* ---- shared by both halves ---------------------------------------------- */

ron_status_t
ron_sqlite_connect(const char *dir, const char *vfs, int flags, int busy_ms,
    sqlite3 **db, char *error)
{
    int   rc;
    char  path[RON_SQLITE_PATH_MAX];

    (void) snprintf(path, sizeof(path), "%s/" RON_SQLITE_DB, dir);

    rc = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, vfs);

    if (rc != SQLITE_OK) {

        if (*db != NULL) {
            (void) ron_sqlite_failed(*db, path, error);
            (void) sqlite3_close(*db);
            *db = NULL;
        }

        return rc == SQLITE_NOMEM ? RON_ENOMEM : RON_EIO;
    }

    (void) sqlite3_extended_result_codes(*db, 1);
    (void) sqlite3_busy_timeout(*db, busy_ms);
    (void) sqlite3_wal_autocheckpoint(*db, 0);

    (void) sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void) sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void) sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 1, NULL);

    return RON_OK;
}


ron_status_t
ron_sqlite_exec(sqlite3 *db, const char *sql, char *error)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return ron_sqlite_failed(db, "statement", error);
    }

    return RON_OK;
}


ron_status_t
ron_sqlite_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **stmt,
    char *error)
{
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL)
        != SQLITE_OK)
    {
        return ron_sqlite_failed(db, "schema", error);
    }

    return RON_OK;
}


ron_status_t
ron_sqlite_failed(sqlite3 *db, const char *what, char *error)
{
    int          rc;
    const char  *text, *fix;

    rc = sqlite3_extended_errcode(db);
    text = sqlite3_errmsg(db);
    fix = "";

    switch (rc & 0xff) {

    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        fix = RON_SQLITE_FIX;
        break;

    default:
        break;
    }

    ron_store_say(error, "%s: %s (sqlite %d, errno %d)%s", what, text, rc,
                  sqlite3_system_errno(db), fix);

    switch (rc & 0xff) {

    case SQLITE_READONLY:

        /*
         * A rollback journal is there before the file is in WAL mode and
         * never afterwards: the power went while the ledger was made.
         */

        return rc == SQLITE_READONLY_ROLLBACK ? RON_ENOTFOUND : RON_EIO;

    case SQLITE_CONSTRAINT:
        return strncmp(text, "ron: ", 5) == 0 ? RON_EFENCED : RON_EEXIST;

    case SQLITE_FULL:
        return RON_EFULL;

    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return RON_AGAIN;

    case SQLITE_NOMEM:
        return RON_ENOMEM;

    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return ron_corrupt();

    default:
        return RON_EIO;
    }
}


ron_status_t
ron_sqlite_meta(sqlite3 *db, ron_ledger_meta_t *meta, char *error)
{
    int            rc;
    const char    *digest;
    ron_status_t   status;
    sqlite3_stmt  *stmt;

    memset(meta, 0, sizeof(ron_ledger_meta_t));

    status = ron_sqlite_format(db, error);
    if (status != RON_OK) {
        return status;
    }

    status = ron_sqlite_prepare(db, "SELECT format, ledger_id, digest, "
                                "created_ms FROM meta", &stmt, error);
    if (status != RON_OK) {
        return status;
    }

    rc = sqlite3_step(stmt);

    if (rc == SQLITE_ROW) {
        meta->format = (uint32_t) sqlite3_column_int64(stmt, 0);
        meta->ledger_id = (uint16_t) sqlite3_column_int64(stmt, 1);
        meta->created_ms = (uint64_t) sqlite3_column_int64(stmt, 3);

        /* NULL in a damaged file, and without memory */

        digest = (const char *) sqlite3_column_text(stmt, 2);

        status = digest != NULL
                 ? ron_digest_parse(ron_cstr(digest), &meta->digest)
                 : RON_EINVAL;

    } else if (rc != SQLITE_DONE) {
        status = ron_sqlite_failed(db, "meta", error);
        (void) sqlite3_finalize(stmt);
        return status;
    }

    (void) sqlite3_finalize(stmt);

    if (status != RON_OK || meta->format != RON_STORE_FORMAT) {
        memset(meta, 0, sizeof(ron_ledger_meta_t));
        ron_store_say(error, "the table meta is not what was written");
        return ron_corrupt();
    }

    return RON_OK;
}


/* What the file says of itself, before any of its tables is believed. */

static ron_status_t
ron_sqlite_format(sqlite3 *db, char *error)
{
    int            app_id, version;
    ron_status_t   status;
    sqlite3_stmt  *stmt;

    app_id = 0;
    version = 0;

    status = ron_sqlite_prepare(db, "SELECT application_id, user_version "
                                "FROM pragma_application_id, "
                                "pragma_user_version", &stmt, error);
    if (status != RON_OK) {
        return status;
    }

    if (sqlite3_step(stmt) == SQLITE_ROW) {
        app_id = sqlite3_column_int(stmt, 0);
        version = sqlite3_column_int(stmt, 1);

    } else {
        status = ron_sqlite_failed(db, "meta", error);
    }

    (void) sqlite3_finalize(stmt);

    if (status != RON_OK) {
        return status;
    }

    if (version == 0 && app_id == 0) {
        ron_store_say(error, RON_SQLITE_DB " holds no ledger");
        return RON_ENOTFOUND;
    }

    if (app_id != RON_SQLITE_APP_ID) {
        ron_store_say(error, RON_SQLITE_DB " is another program's database "
                      "(application id 0x%x)", (unsigned) app_id);
        return RON_EINVAL;
    }

    if (version > RON_STORE_FORMAT) {
        ron_store_say(error, "ledger format %d, this program knows %d",
                      version, RON_STORE_FORMAT);
        return RON_EVERSION;
    }

    return RON_OK;
}


/* ---- the reader --------------------------------------------------------- */

ron_status_t
ron_sqlite_reader(const char *dir, const char *vfs, ron_reader_t **reader,
    char *error)
{
    ron_status_t          status;
    ron_sqlite_reader_t  *r;

    *reader = NULL;

    r = calloc(1, sizeof(ron_sqlite_reader_t));
    if (r == NULL) {
        ron_store_say(error, "no memory");
        return RON_ENOMEM;
    }

    r->base.ops = &ron_sqlite_reader_ops;
    ron_buf_init(&r->buf, 0);
    ron_buf_init(&r->list, 0);

    status = ron_sqlite_connect(dir, vfs, SQLITE_OPEN_READONLY,
                                RON_SQLITE_READ_BUSY, &r->db, error);

    if (status == RON_OK) {
        (void) sqlite3_db_config(r->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                                 NULL);

        status = ron_sqlite_exec(r->db,
                                 "PRAGMA query_only = 1;"
                                 "PRAGMA cache_size = -2048;"
                                 "PRAGMA mmap_size = 0;"
                                 "PRAGMA temp_store = MEMORY", error);
    }

    if (status == RON_OK) {
        status = ron_sqlite_reader_prepare(r);

        if (status != RON_OK) {
            memcpy(error, r->base.error, RON_STORE_ERROR_MAX);
        }
    }

    if (status != RON_OK) {
        ron_sqlite_reader_close(&r->base);
        return status;
    }

    *reader = &r->base;

    return RON_OK;
}


static ron_status_t
ron_sqlite_reader_prepare(ron_sqlite_reader_t *r)
{
    size_t         i;
    ron_status_t   status;

    const struct {
        sqlite3_stmt  **stmt;
        const char     *sql;
    } all[] = {

        { &r->head, "SELECT " RON_SQLITE_COLUMNS " FROM journal "
                    "ORDER BY seq DESC LIMIT 1" },

        { &r->row,  "SELECT " RON_SQLITE_COLUMNS " FROM journal "
                    "WHERE seq <= ?1 AND seq + count > ?1 "
                    "AND seq = (SELECT max(seq) FROM journal "
                               "WHERE seq <= ?1)" },

        { &r->rows, "SELECT " RON_SQLITE_COLUMNS " FROM journal "
                    "WHERE seq >= (SELECT max(seq) FROM journal "
                                  "WHERE seq <= ?1) "
                    "ORDER BY seq" },

        { &r->tile, "SELECT hashes FROM tile WHERE id = ?1" },

        { &r->gen,  "SELECT gen, no, last FROM checkpoint "
                    "WHERE key < ?1 ORDER BY key DESC LIMIT 1" },

        { &r->gen_n, "SELECT count(*) FROM checkpoint "
                     "WHERE key BETWEEN ?1 AND ?2" },

        { &r->slice, "SELECT last, seq, body FROM checkpoint "
                     "WHERE key = ?1" },

        { &r->begin, "BEGIN" },

        { &r->end, "COMMIT" },
    };

    for (i = 0; i < ron_array_n(all); i++) {
        status = ron_sqlite_prepare(r->db, all[i].sql, all[i].stmt,
                                    r->base.error);
        if (status != RON_OK) {
            return status;
        }
    }

    return RON_OK;
}


static void
ron_sqlite_reader_close(ron_reader_t *reader)
{
    ron_sqlite_reader_t  *r;

    r = (ron_sqlite_reader_t *) reader;

    (void) sqlite3_finalize(r->head);
    (void) sqlite3_finalize(r->row);
    (void) sqlite3_finalize(r->rows);
    (void) sqlite3_finalize(r->tile);
    (void) sqlite3_finalize(r->gen);
    (void) sqlite3_finalize(r->gen_n);
    (void) sqlite3_finalize(r->slice);
    (void) sqlite3_finalize(r->begin);
    (void) sqlite3_finalize(r->end);
    (void) sqlite3_close(r->db);

    ron_buf_free(&r->buf);
    ron_buf_free(&r->list);
    free(r);
}


/* RON_OK: there is a row.  RON_ENOTFOUND: there is none. */

static ron_status_t
ron_sqlite_reader_step(ron_sqlite_reader_t *r, sqlite3_stmt *stmt)
{
    switch (sqlite3_step(stmt)) {

    case SQLITE_ROW:
        return RON_OK;

    case SQLITE_DONE:
        return RON_ENOTFOUND;

    default:
        return ron_sqlite_failed(r->db, "read", r->base.error);
    }
}


static ron_status_t
ron_sqlite_row_head(ron_reader_t *reader, ron_row_t *row)
{
    ron_sqlite_reader_t  *r;

    r = (ron_sqlite_reader_t *) reader;

    return ron_sqlite_one_row(r, r->head, row);
}


static ron_status_t
ron_sqlite_row_at(ron_reader_t *reader, uint64_t seq, ron_row_t *row)
{
    ron_sqlite_reader_t  *r;

    r = (ron_sqlite_reader_t *) reader;

    (void) sqlite3_bind_int64(r->row, 1, (sqlite3_int64) seq);

    return ron_sqlite_one_row(r, r->row, row);
}


static ron_status_t
ron_sqlite_one_row(ron_sqlite_reader_t *r, sqlite3_stmt *stmt, ron_row_t *row)
{
    ron_status_t  status;

    ron_buf_reset(&r->buf);

    status = ron_sqlite_reader_step(r, stmt);

    if (status == RON_OK) {
        status = ron_sqlite_take_row(r, stmt, row);
    }

    (void) sqlite3_reset(stmt);

    if (status == RON_OK) {
        ron_sqlite_row_views(r, row, 0);
    }

    return status;
}


/*
 * Copies a row.  Body and notes go behind one another into r->buf; their
 * lengths are in the views, and ron_sqlite_row_views() makes pointers of
 * them once the buffer has stopped moving.
 */

static ron_status_t
ron_sqlite_take_row(ron_sqlite_reader_t *r, sqlite3_stmt *stmt,
    ron_row_t *row)
{
    const void  *body, *notes;

    memset(row, 0, sizeof(ron_row_t));

    row->seq = (uint64_t) sqlite3_column_int64(stmt, 0);
    row->count = (uint64_t) sqlite3_column_int64(stmt, 1);
    row->epoch = (uint64_t) sqlite3_column_int64(stmt, 2);
    row->time_ms = (uint64_t) sqlite3_column_int64(stmt, 3);

    if (row->seq == 0 || row->seq > RON_STORE_SEQ_MAX
        || row->count == 0 || row->count > RON_STORE_SEQ_MAX
        || row->epoch > RON_STORE_TIME_MAX
        || row->time_ms > RON_STORE_TIME_MAX
        || ron_sqlite_column_hash(stmt, 4, &row->prev_root) != RON_OK
        || ron_sqlite_column_hash(stmt, 5, &row->root) != RON_OK
        || ron_sqlite_column_hash(stmt, 7, &row->chain) != RON_OK
        || (sqlite3_column_type(stmt, 6) != SQLITE_NULL
            && ron_sqlite_column_hash(stmt, 6, &row->checkpoint) != RON_OK))
    {
        ron_store_say(r->base.error, "journal row %llu is malformed",
                      (unsigned long long) row->seq);
        return ron_corrupt();
    }

    notes = sqlite3_column_blob(stmt, 8);
    row->notes.len = (size_t) sqlite3_column_bytes(stmt, 8);
    body = sqlite3_column_blob(stmt, 9);
    row->body.len = (size_t) sqlite3_column_bytes(stmt, 9);

    /* a blob that could not be loaded comes as NULL with a length of 0 */

    if (row->body.len == 0) {
        return sqlite3_errcode(r->db) == SQLITE_NOMEM ? RON_ENOMEM
                                                      : ron_corrupt();
    }

    ron_buf_put(&r->buf, body, row->body.len);

    if (row->notes.len != 0) {
        ron_buf_put(&r->buf, notes, row->notes.len);
    }

    return ron_buf_status(&r->buf);
}


static void
ron_sqlite_row_views(ron_sqlite_reader_t *r, ron_row_t *row, size_t off)
{
    row->body.data = r->buf.data + off;
    row->notes.data = row->notes.len != 0
                      ? r->buf.data + off + row->body.len : NULL;
}


static ron_status_t
ron_sqlite_column_hash(sqlite3_stmt *stmt, int i, ron_hash_t *hash)
{
    const void  *data;

    data = sqlite3_column_blob(stmt, i);

    if (data == NULL || sqlite3_column_bytes(stmt, i) != RON_HASH_LEN) {
        return RON_ECORRUPT;
    }

    memcpy(hash->b, data, RON_HASH_LEN);

    return RON_OK;
}


static ron_status_t
ron_sqlite_rows(ron_reader_t *reader, uint64_t seq, size_t max_bytes,
    ron_row_pt fn, void *ctx, uint64_t *next)
{
    size_t                i, n, off;
    ron_row_t            *row;
    ron_status_t          status;
    ron_sqlite_reader_t  *r;

    r = (ron_sqlite_reader_t *) reader;

    status = ron_sqlite_collect(r, seq, max_bytes);
    if (status != RON_OK) {
        return status;
    }

    row = (void *) r->list.data;
    n = r->list.len / sizeof(ron_row_t);

    for (i = 0, off = 0; i < n; i++) {

        ron_sqlite_row_views(r, &row[i], off);
        off += row[i].body.len + row[i].notes.len;

        *next = row[i].seq;

        status = fn(ctx, &row[i]);
        if (status != RON_OK) {
            return status;
        }

        *next = row[i].seq + row[i].count;
    }

    return RON_OK;
}


static ron_status_t
ron_sqlite_collect(ron_sqlite_reader_t *r, uint64_t seq, size_t max_bytes)
{
    uint64_t      since_us;
    ron_row_t     row;
    ron_status_t  status;

    ron_buf_reset(&r->buf);
    ron_buf_reset(&r->list);

    max_bytes = ron_min(max_bytes, RON_SQLITE_READ_BYTES);
    since_us = ron_clock_mono_us();

    (void) sqlite3_bind_int64(r->rows, 1, (sqlite3_int64) seq);

    for ( ;; ) {

        status = ron_sqlite_reader_step(r, r->rows);

        if (status == RON_OK) {
            status = ron_sqlite_take_row(r, r->rows, &row);
        }

        if (status != RON_OK) {
            break;
        }

        /* the row before the first one wanted: seq is past the head */

        if (row.seq + row.count <= seq) {
            break;
        }

        ron_buf_put(&r->list, &row, sizeof(ron_row_t));

        if (r->buf.len >= max_bytes
            || ron_clock_mono_us() - since_us > RON_SQLITE_READ_US)
        {
            break;
        }
    }

    (void) sqlite3_reset(r->rows);

    if (status != RON_OK && status != RON_ENOTFOUND) {
        return status;
    }

    if (ron_buf_status(&r->list) != RON_OK) {
        return RON_ENOMEM;
    }

    return r->list.len == 0 ? RON_ENOTFOUND : RON_OK;
}


static ron_status_t
ron_sqlite_tile(ron_reader_t *reader, ron_tile_t *tile)
{
    const void           *data;
    ron_status_t          status;
    ron_sqlite_reader_t  *r;

    r = (ron_sqlite_reader_t *) reader;

    (void) sqlite3_bind_int64(r->tile, 1,
               (sqlite3_int64) (ron_tile_end(tile->level, tile->index) << 3
                                | tile->level));

    status = ron_sqlite_reader_step(r, r->tile);

    if (status == RON_OK) {
        data = sqlite3_column_blob(r->tile, 0);

        if (data != NULL
            && sqlite3_column_bytes(r->tile, 0) == sizeof(tile->hashes))
        {
            memcpy(tile->hashes, data, sizeof(tile->hashes));

        } else {
            ron_store_say(r->base.error, "tile %u/%llu is malformed",
                          tile->level, (unsigned long long) tile->index);
            status = ron_corrupt();
        }
    }

    (void) sqlite3_reset(r->tile);

    return status;
}


static ron_status_t
ron_sqlite_hold(ron_reader_t *reader, bool hold)
{
    ron_status_t          status;
    sqlite3_stmt         *stmt;
    ron_sqlite_reader_t  *r;

    r = (ron_sqlite_reader_t *) reader;

    /* an error may have ended it already */

    if ((sqlite3_get_autocommit(r->db) != 0) != hold) {
        return RON_OK;
    }

    stmt = hold ? r->begin : r->end;
    status = ron_sqlite_reader_step(r, stmt);
    (void) sqlite3_reset(stmt);

    return status == RON_ENOTFOUND ? RON_OK : status;
}


/*
 * Two statements without a transaction around them: slices of the newest
 * generation are only ever added, so a count that is one too new is right
 * when `last` was seen, and merely incomplete when not.
 */

static ron_status_t
ron_sqlite_gen(ron_reader_t *reader, uint64_t max_gen, uint64_t *gen,
    uint32_t *count, bool *complete)
{
    bool                  last;
    uint64_t              no, n;
    ron_status_t          status;
    ron_sqlite_reader_t  *r;

    r = (ron_sqlite_reader_t *) reader;
    last = false;
    no = 0;
    n = 0;

    /* the first key of the generation after, which may be 2^63 */

    (void) sqlite3_bind_int64(r->gen, 1, max_gen == RON_STORE_GEN_MAX
                              ? INT64_MAX
                              : ron_sqlite_slice_key(max_gen + 1, 0));

    status = ron_sqlite_reader_step(r, r->gen);

    if (status == RON_OK) {
        *gen = (uint64_t) sqlite3_column_int64(r->gen, 0);
        no = (uint64_t) sqlite3_column_int64(r->gen, 1);
        last = sqlite3_column_int(r->gen, 2) != 0;
    }

    (void) sqlite3_reset(r->gen);

    if (status != RON_OK) {
        return status;
    }

    (void) sqlite3_bind_int64(r->gen_n, 1, ron_sqlite_slice_key(*gen, 0));
    (void) sqlite3_bind_int64(r->gen_n, 2, ron_sqlite_slice_key(*gen, no));

    status = ron_sqlite_reader_step(r, r->gen_n);

    if (status == RON_OK) {
        n = (uint64_t) sqlite3_column_int64(r->gen_n, 0);
    }

    (void) sqlite3_reset(r->gen_n);

    *count = (uint32_t) n;
    *complete = last && n == no + 1;

    return status;
}


static ron_status_t
ron_sqlite_slice(ron_reader_t *reader, uint64_t gen, uint32_t no,
    ron_slice_t *slice)
{
    const void           *data;
    ron_status_t          status;
    ron_sqlite_reader_t  *r;

    r = (ron_sqlite_reader_t *) reader;

    ron_buf_reset(&r->buf);
    memset(slice, 0, sizeof(ron_slice_t));

    (void) sqlite3_bind_int64(r->slice, 1, ron_sqlite_slice_key(gen, no));

    status = ron_sqlite_reader_step(r, r->slice);

    if (status == RON_OK) {
        slice->gen = gen;
        slice->no = no;
        slice->last = sqlite3_column_int(r->slice, 0) != 0;
        slice->seq = (uint64_t) sqlite3_column_int64(r->slice, 1);
        data = sqlite3_column_blob(r->slice, 2);
        slice->body.len = (size_t) sqlite3_column_bytes(r->slice, 2);

        if (slice->body.len != 0) {
            ron_buf_put(&r->buf, data, slice->body.len);
        }

        status = ron_buf_status(&r->buf);
    }

    (void) sqlite3_reset(r->slice);

    slice->body.data = slice->body.len != 0 ? r->buf.data : NULL;

    return status;
}
