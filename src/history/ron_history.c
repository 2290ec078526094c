
/*
 * The projector.  Watermark and rows change in one transaction, so whatever
 * happens in between, the next step begins where the last whole one ended.
 *
 * WAL and synchronous=NORMAL: a power failure may take the last steps, never
 * the consistency.  It is SQLite that notices a deleted file
 * (SQLITE_FCNTL_HAS_MOVED); leftovers of it are removed before a new one is
 * made, so that no old log is replayed into a new database.
 */

#include "ron_history_impl.h"
#include "ron_log.h"
#include "ron_port.h"
#include "ron_wal_vfs.h"

#include <stdio.h>
#include <stdlib.h>


#define RON_HISTORY_PAGE       ((size_t) 256 << 10)

/* A step that wrote more pages than this is followed by a shorter one. */
#define RON_HISTORY_STEP_PAGES  32000


struct ron_history_s {
    char                 dir[RON_HISTORY_DIR_MAX];
    ron_ledger_meta_t    meta;
    ron_reader_t        *reader;
    ron_fd_t             lock_fd;
    _Atomic bool         abandoned;
    ron_mutex_t         *mutex;         /* of the next */
    sqlite3             *open;          /* db, while it may be interrupted */
    sqlite3             *db;
    ron_history_rows_t  *rows;
    ron_history_pace_t   pace;
    size_t               cache;         /* bytes */
    uint32_t             step;          /* entries */
    uint64_t             watermark;
    ron_hash_t           chain;         /* of the commit that ends there */

    /* of the step in hand */
    uint64_t             seq;
    ron_hash_t           seq_chain;
    uint64_t             time_ms;
    uint32_t             left;
};


const ron_history_conf_t  ron_history_usual = {
    .cache = (size_t) 32 << 20,
    .share = 25
};


static const char  ron_history_pragmas[] =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA secure_delete = OFF;"
    "PRAGMA journal_size_limit = 67108864";


static const char  ron_history_schema[] =
    "CREATE TABLE meta ("
    " id INTEGER PRIMARY KEY CHECK (id = 1),"
    " ledger_id INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " links_key BLOB NOT NULL) STRICT;"

    "CREATE TABLE watermark ("
    " id INTEGER PRIMARY KEY CHECK (id = 1),"
    " seq INTEGER NOT NULL,"
    " time_ms INTEGER NOT NULL,"
    " chain BLOB NOT NULL) STRICT;"

    "CREATE TABLE entries ("
    " seq INTEGER PRIMARY KEY,"
    " time_ms INTEGER NOT NULL,"
    " kind TEXT NOT NULL,"
    " account TEXT NOT NULL,"
    " to_account TEXT,"
    " asset TEXT NOT NULL,"
    " amount TEXT NOT NULL,"
    " nonce INTEGER,"
    " id TEXT,"
    " source_ms INTEGER,"
    " ref INTEGER,"
    " posting INTEGER,"
    " expiry_ms INTEGER,"
    " commit_seq INTEGER NOT NULL) STRICT;"

    "CREATE TABLE account_runs ("
    " first_seq INTEGER PRIMARY KEY,"
    " last_seq INTEGER NOT NULL,"
    " run INTEGER NOT NULL) STRICT;"

    "CREATE TABLE account_links ("
    " run INTEGER NOT NULL,"
    " first INTEGER NOT NULL,"
    " links BLOB NOT NULL,"
    " PRIMARY KEY (run, first)) STRICT;"

    "CREATE TABLE holds ("
    " seq INTEGER PRIMARY KEY,"
    " account TEXT NOT NULL,"
    " to_account TEXT,"
    " asset TEXT NOT NULL,"
    " amount TEXT NOT NULL,"
    " remaining TEXT NOT NULL,"
    " expiry_ms INTEGER,"
    " closed_seq INTEGER) STRICT;"

    "CREATE TABLE commits ("
    " seq INTEGER PRIMARY KEY,"
    " count INTEGER NOT NULL,"
    " time_ms INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL,"
    " root BLOB NOT NULL) STRICT;"

    "CREATE VIEW account_history AS"
    " SELECT account AS name, * FROM entries WHERE account <> ''"
    " UNION ALL SELECT to_account, * FROM entries"
    " WHERE to_account <> account AND to_account <> '';"

    "CREATE VIEW accounts AS"
    " SELECT name, min(seq) AS first_seq FROM account_history GROUP BY name;"

    "INSERT INTO watermark VALUES (1, 0, 0, zeroblob(32));";


static ron_status_t ron_history_lock(ron_history_t *h, ron_buf_t *why);
static ron_status_t ron_history_connect(ron_history_t *h, ron_buf_t *why);
static ron_status_t ron_history_sizes(ron_history_t *h);
static ron_status_t ron_history_connect_once(ron_history_t *h, ron_buf_t *why);
static ron_status_t ron_history_make(ron_history_t *h);
static ron_status_t ron_history_find(void *ctx, const char *name);
static ron_status_t ron_history_load(ron_history_t *h, ron_buf_t *why);
static ron_status_t ron_history_create(ron_history_t *h);
static void ron_history_disconnect(ron_history_t *h);
static ron_status_t ron_history_remove(ron_history_t *h, ron_buf_t *why);
static ron_status_t ron_history_check(ron_history_t *h, ron_buf_t *why);
static bool ron_history_gone(ron_history_t *h);
static uint32_t ron_history_pages(const ron_history_t *h);
static void ron_history_adapt(ron_history_t *h, uint32_t pages);
static ron_status_t ron_history_project(ron_history_t *h);
static ron_status_t ron_history_row(void *ctx, const ron_row_t *row);


ron_status_t
ron_history_path(const char *dir, const char *name,
    char path[RON_HISTORY_PATH_MAX])
{
    int  n;

    n = snprintf(path, RON_HISTORY_PATH_MAX, "%s/%s", dir, name);

    return n > 0 && n < RON_HISTORY_PATH_MAX ? RON_OK : RON_EINVAL;
}


ron_status_t
ron_history_failed(sqlite3 *db)
{
    switch (sqlite3_extended_errcode(db) & 0xff) {

    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
        return RON_AGAIN;

    case SQLITE_FULL:
        return RON_EFULL;

    case SQLITE_NOMEM:
        return RON_ENOMEM;

    case SQLITE_CANTOPEN:
        return RON_ENOTFOUND;

    default:
        return RON_EIO;
    }
}


/* ---- opening ------------------------------------------------------------ */

ron_status_t
ron_history_open(ron_store_t *store, const ron_history_conf_t *conf,
    ron_history_t **history, ron_buf_t *why)
{
    const char     *dir;
    ron_status_t    status;
    ron_history_t  *h;

    *history = NULL;
    dir = ron_store_dir(store);

    if (dir == NULL) {
        ron_buf_put_cstr(why, "a ledger in memory has no history");
        return RON_ENOTFOUND;
    }

    if (strlen(dir) >= RON_HISTORY_DIR_MAX) {
        ron_buf_put_cstr(why, "the name of the directory is too long");
        return RON_EINVAL;
    }

    h = calloc(1, sizeof(ron_history_t));
    if (h == NULL) {
        return RON_ENOMEM;
    }

    (void) snprintf(h->dir, sizeof(h->dir), "%s", dir);
    h->meta = *ron_store_meta(store);
    h->lock_fd = RON_FD_NONE;
    h->cache = conf->cache;
    h->step = RON_HISTORY_STEP;

    status = ron_history_rows_create(&h->rows, &h->pace);

    if (status == RON_OK) {
        status = ron_mutex_create(&h->mutex, RON_LOCK_PROJECTOR);
    }

    if (status == RON_OK) {
        status = ron_history_lock(h, why);
    }

    if (status == RON_OK) {
        status = ron_reader_open(store, &h->reader);

        if (status == RON_OK) {
            status = ron_history_pace_open(&h->pace, store, conf->share,
                                           &h->abandoned);
        }

        if (status != RON_OK) {
            ron_buf_put_cstr(why, ron_store_error(store));
        }
    }

    if (status == RON_OK) {
        status = ron_history_connect(h, why);
    }

    if (status != RON_OK) {
        ron_history_close(h);
        return status;
    }

    *history = h;

    return RON_OK;
}


static ron_status_t
ron_history_lock(ron_history_t *h, ron_buf_t *why)
{
    char          path[RON_HISTORY_PATH_MAX];
    ron_status_t  status;

    (void) ron_history_path(h->dir, RON_HISTORY_LOCK, path);

    status = ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE,
                           &h->lock_fd);

    if (status == RON_OK) {
        status = ron_file_lock(h->lock_fd);
    }

    if (status != RON_OK) {
        ron_buf_printf(why, "%s: %s", path, status == RON_EFENCED
                       ? "another process writes history"
                       : ron_port_error());
    }

    return status;
}


/* With a large cache the log is as large: a page is then written seldom. */

static ron_status_t
ron_history_sizes(ron_history_t *h)
{
    char    sql[128];
    size_t  kib;

    kib = ron_max(h->cache / 1024, 1);

    (void) snprintf(sql, sizeof(sql), "PRAGMA cache_size = -%zu;"
                    "PRAGMA wal_autocheckpoint = %zu", kib,
                    ron_max(kib / 4, (size_t) 16000));

    return sqlite3_exec(h->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? RON_OK : ron_history_failed(h->db);
}


/* A file that is not what we wrote is made again: it is derived. */

static ron_status_t
ron_history_connect(ron_history_t *h, ron_buf_t *why)
{
    ron_status_t  status;

    status = ron_history_connect_once(h, why);

    if (status != RON_OK && status != RON_ENOMEM && status != RON_EFULL
        && status != RON_AGAIN && status != RON_ECORRUPT)
    {
        ron_log(RON_LOG_WARN, "history.db is built again from the first "
                "entry: %s", status == RON_EVERSION ? "it has another format"
                             : h->db != NULL ? sqlite3_errmsg(h->db)
                                             : "it cannot be opened");

        status = ron_history_remove(h, why);

        if (status == RON_OK) {
            status = ron_history_connect_once(h, why);
        }
    }

    if (status == RON_ECORRUPT) {
        ron_history_disconnect(h);
        return status;
    }

    if (status != RON_OK) {
        ron_buf_printf(why, "%s/" RON_HISTORY_DB ": %s", h->dir,
                       h->db != NULL ? sqlite3_errmsg(h->db)
                                     : ron_status_name(status));

        /* half of a connection is none: the next step begins anew */

        ron_history_disconnect(h);
        return status;
    }

    return ron_history_check(h, why);
}


static ron_status_t
ron_history_connect_once(ron_history_t *h, ron_buf_t *why)
{
    char          path[RON_HISTORY_PATH_MAX];
    ron_status_t  status;

    status = ron_history_make(h);

    if (status != RON_OK) {
        return status;
    }

    (void) ron_history_path(h->dir, RON_HISTORY_DB, path);

    if (sqlite3_open_v2(path, &h->db, SQLITE_OPEN_READWRITE
                                      | SQLITE_OPEN_NOMUTEX,
                        ron_wal_vfs_paced(NULL))
        != SQLITE_OK)
    {
        return RON_EIO;
    }

    ron_mutex_lock(h->mutex);
    h->open = h->db;
    ron_mutex_unlock(h->mutex);

    (void) sqlite3_extended_result_codes(h->db, 1);
    (void) sqlite3_busy_timeout(h->db, RON_HISTORY_BUSY_MS);

    if (sqlite3_exec(h->db, ron_history_pragmas, NULL, NULL, NULL)
        != SQLITE_OK)
    {
        return ron_history_failed(h->db);
    }

    status = ron_history_sizes(h);

    if (status == RON_OK) {
        status = ron_history_load(h, why);
    }

    if (status == RON_ENOTFOUND) {
        status = ron_history_create(h);
    }

    if (status != RON_OK) {
        return status;
    }

    ron_wal_vfs_rest(h->db, ron_history_pace_rest, &h->pace);

    return ron_history_rows_open(h->rows, h->db);
}


/*
 * Made here, so that its mode is ours.  An old log goes first: while there is
 * no database nobody can open it, and later somebody might.
 */

static ron_status_t
ron_history_make(ron_history_t *h)
{
    bool          there;
    char          path[RON_HISTORY_PATH_MAX];
    ron_fd_t      fd;
    ron_status_t  status;

    there = false;
    status = ron_dir_each(h->dir, ron_history_find, &there);

    if (status != RON_OK || there) {
        return status;
    }

    (void) ron_history_path(h->dir, RON_HISTORY_DB "-wal", path);
    (void) ron_file_unlink(path);
    (void) ron_history_path(h->dir, RON_HISTORY_DB "-shm", path);
    (void) ron_file_unlink(path);
    (void) ron_history_path(h->dir, RON_HISTORY_DB, path);

    status = ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE
                                 | RON_OPEN_EXCL, &fd);
    ron_file_close(fd);

    return status;
}


/*
 * By name, as the store does: to close any descriptor of a database drops the
 * locks that SQLite holds on it in this process.
 */

static ron_status_t
ron_history_find(void *ctx, const char *name)
{
    bool  *there = ctx;

    if (strcmp(name, RON_HISTORY_DB) == 0) {
        *there = true;
    }

    return RON_OK;
}


/*
 * RON_ENOTFOUND: an empty file.  RON_EIO: not ours, or another ledger's.
 * RON_EVERSION: another format, which loses nothing by being made again; what
 * any format can tell is whether it knows more than the journal, RON_ECORRUPT.
 */

static ron_status_t
ron_history_load(ron_history_t *h, ron_buf_t *why)
{
    int            app_id, version, rc;
    const void    *chain;
    ron_status_t   status;
    sqlite3_stmt  *stmt;

    if (sqlite3_prepare_v2(h->db, "SELECT application_id, user_version "
                           "FROM pragma_application_id, pragma_user_version",
                           -1, &stmt, NULL) != SQLITE_OK)
    {
        return ron_history_failed(h->db);
    }

    rc = sqlite3_step(stmt);
    app_id = sqlite3_column_int(stmt, 0);
    version = sqlite3_column_int(stmt, 1);
    (void) sqlite3_finalize(stmt);

    if (rc != SQLITE_ROW) {
        return ron_history_failed(h->db);
    }

    if (app_id == 0 && version == 0) {
        return RON_ENOTFOUND;
    }

    if (app_id != RON_HISTORY_APP_ID
        || sqlite3_prepare_v2(h->db, "SELECT ledger_id, created_ms, seq, "
                              "chain FROM meta, watermark", -1, &stmt, NULL)
           != SQLITE_OK)
    {
        return RON_EIO;
    }

    status = RON_EIO;

    if (sqlite3_step(stmt) == SQLITE_ROW
        && sqlite3_column_int64(stmt, 0) == h->meta.ledger_id
        && (uint64_t) sqlite3_column_int64(stmt, 1) == h->meta.created_ms
        && sqlite3_column_bytes(stmt, 3) == RON_HASH_LEN)
    {
        h->watermark = (uint64_t) sqlite3_column_int64(stmt, 2);
        chain = sqlite3_column_blob(stmt, 3);
        memcpy(h->chain.b, chain, RON_HASH_LEN);
        status = RON_OK;
    }

    (void) sqlite3_finalize(stmt);

    if (status == RON_OK && version != RON_HISTORY_FORMAT) {
        status = ron_history_check(h, why);

        return status == RON_OK ? RON_EVERSION
               : status == RON_ECORRUPT ? status : RON_AGAIN;
    }

    return status;
}


static ron_status_t
ron_history_create(ron_history_t *h)
{
    char          sql[256];
    ron_sipkey_t  key;

    if (ron_random(&key, sizeof(key)) != RON_OK) {
        return RON_EIO;
    }

    (void) snprintf(sql, sizeof(sql), "INSERT INTO meta VALUES (1, %u, %llu, "
                    "x'%016llx%016llx');"
                    "PRAGMA application_id = %d; PRAGMA user_version = %d;"
                    "COMMIT", h->meta.ledger_id,
                    (unsigned long long) h->meta.created_ms,
                    (unsigned long long) key.k0, (unsigned long long) key.k1,
                    RON_HISTORY_APP_ID, RON_HISTORY_FORMAT);

    if (sqlite3_exec(h->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK
        || sqlite3_exec(h->db, ron_history_schema, NULL, NULL, NULL)
           != SQLITE_OK
        || sqlite3_exec(h->db, sql, NULL, NULL, NULL) != SQLITE_OK)
    {
        return ron_history_failed(h->db);
    }

    h->watermark = 0;
    memset(&h->chain, 0, sizeof(h->chain));

    return RON_OK;
}


/* Does the journal have what history has? */

static ron_status_t
ron_history_check(ron_history_t *h, ron_buf_t *why)
{
    ron_row_t     row;
    ron_status_t  status;

    if (h->watermark == 0) {
        return RON_OK;
    }

    status = ron_reader_row(h->reader, h->watermark, &row);

    if (status == RON_ENOTFOUND
        || (status == RON_OK
            && (row.seq + row.count - 1 != h->watermark
                || !ron_hash_eq(&row.chain, &h->chain))))
    {
        ron_buf_printf(why, "history.db has entries up to seq %llu and the "
                       "journal %s: it was cut or changed",
                       (unsigned long long) h->watermark,
                       status == RON_OK ? "has others there"
                                        : "does not reach it");
        return ron_corrupt();
    }

    if (status != RON_OK) {
        ron_buf_put_cstr(why, ron_reader_error(h->reader));
    }

    return status;
}


static void
ron_history_disconnect(ron_history_t *h)
{
    ron_mutex_lock(h->mutex);
    h->open = NULL;
    ron_mutex_unlock(h->mutex);

    ron_history_rows_close(h->rows);

    /* else the last one to close it moves all of the log into the database */

    if (h->abandoned && h->db != NULL) {
        (void) sqlite3_db_config(h->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                                 NULL);
    }

    (void) sqlite3_close(h->db);
    h->db = NULL;
    h->watermark = 0;
}


static ron_status_t
ron_history_remove(ron_history_t *h, ron_buf_t *why)
{
    char                      path[RON_HISTORY_PATH_MAX];
    ron_status_t              status;
    static const char *const  names[] = {
        RON_HISTORY_DB, RON_HISTORY_DB "-wal", RON_HISTORY_DB "-shm",
        RON_HISTORY_DB "-journal"
    };

    ron_history_disconnect(h);

    for (unsigned i = 0; i < ron_array_n(names); i++) {
        (void) ron_history_path(h->dir, names[i], path);
        status = ron_file_unlink(path);

        if (status != RON_OK && status != RON_ENOTFOUND) {
            ron_buf_printf(why, "%s: %s", path, ron_port_error());
            return status;
        }
    }

    return RON_OK;
}


ron_status_t
ron_history_reset(ron_history_t *h, ron_buf_t *why)
{
    ron_status_t  status;

    status = ron_history_remove(h, why);

    return status == RON_OK ? ron_history_connect(h, why) : status;
}


void
ron_history_close(ron_history_t *h)
{
    if (h == NULL) {
        return;
    }

    if (h->mutex != NULL) {
        ron_history_disconnect(h);
        ron_mutex_destroy(h->mutex);
    }

    ron_history_pace_close(&h->pace);
    ron_reader_close(h->reader);
    ron_file_close(h->lock_fd);
    ron_history_rows_free(h->rows);
    free(h);
}


void
ron_history_abandon(ron_history_t *h)
{
    h->abandoned = true;

    ron_mutex_lock(h->mutex);

    if (h->open != NULL) {
        sqlite3_interrupt(h->open);
    }

    ron_mutex_unlock(h->mutex);
}


bool
ron_history_more(const ron_history_t *h)
{
    return h->left == 0;
}


uint64_t
ron_history_watermark(const ron_history_t *h)
{
    return h->watermark;
}


/* ---- projecting --------------------------------------------------------- */

static bool
ron_history_gone(ron_history_t *h)
{
    int  moved;

    moved = 0;

    return h->db == NULL
           || (sqlite3_file_control(h->db, "main", SQLITE_FCNTL_HAS_MOVED,
                                    &moved) == SQLITE_OK && moved);
}


ron_status_t
ron_history_step(ron_history_t *h, uint32_t max_n, ron_buf_t *why)
{
    int            rc;
    uint32_t       pages;
    ron_status_t   status;

    if (ron_history_gone(h)) {
        ron_history_disconnect(h);
        status = ron_history_connect(h, why);

        if (status != RON_OK) {
            return status;
        }
    }

    ron_history_pace_begin(&h->pace);
    h->left = max_n != 0 ? ron_min(max_n, RON_HISTORY_STEP_MAX) : h->step;
    h->seq = h->watermark;
    pages = ron_history_pages(h);

    status = ron_history_project(h);

    if (status == RON_OK) {
        h->watermark = h->seq;
        h->chain = h->seq_chain;
        ron_history_adapt(h, ron_history_pages(h) - pages);
        status = ron_history_rows_merge(h->rows);

        if (status == RON_OK) {
            return RON_OK;
        }
    }

    rc = sqlite3_extended_errcode(h->db) & 0xff;

    if (h->seq != h->watermark || !sqlite3_get_autocommit(h->db)) {
        ron_history_rows_undo(h->rows);
    }

    /* Level: but is it still the same journal? */

    if (status == RON_ENOTFOUND) {
        status = ron_history_check(h, why);
        return status == RON_OK ? RON_ENOTFOUND : status;
    }

    if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB) {
        ron_log(RON_LOG_WARN, "history.db is damaged and is built again");
        status = ron_history_reset(h, why);
        return status == RON_OK ? RON_AGAIN : status;
    }

    if (why->len == 0) {
        ron_buf_printf(why, "history at seq %llu: %s",
                       (unsigned long long) h->seq + 1,
                       rc != SQLITE_OK && rc != SQLITE_DONE
                       && rc != SQLITE_ROW ? sqlite3_errmsg(h->db)
                                           : ron_status_name(status));
    }

    return status;
}


/* Pages that this connection wrote: the difference of two counts. */

static uint32_t
ron_history_pages(const ron_history_t *h)
{
    int  now, peak;

    now = 0;
    (void) sqlite3_db_status(h->db, SQLITE_DBSTATUS_CACHE_WRITE, &now, &peak,
                             0);

    return (uint32_t) now;
}


/*
 * The log cannot start over within a transaction.  With many accounts nearly
 * every entry writes pages of its own, so that a long step has no use and a
 * large log.
 */

static void
ron_history_adapt(ron_history_t *h, uint32_t pages)
{
    if (pages > RON_HISTORY_STEP_PAGES) {
        h->step = ron_max(h->step / 2, RON_HISTORY_STEP);

    } else if (ron_history_more(h)) {
        h->step = ron_min(h->step * 2, RON_HISTORY_STEP_MAX);
    }
}


/* One transaction, from the first row read to the watermark. */

static ron_status_t
ron_history_project(ron_history_t *h)
{
    uint64_t      next;
    ron_status_t  status, page;

    status = RON_OK;
    page = RON_OK;

    while (status == RON_OK && page == RON_OK && h->left != 0) {
        page = ron_reader_rows(h->reader, h->seq + 1, RON_HISTORY_PAGE,
                               ron_history_row, h, &next);

        if (page != RON_OK && page != RON_ENOTFOUND && page != RON_ECANCELED) {
            status = page;
        }
    }

    if (status != RON_OK) {
        return status;
    }

    if (h->seq == h->watermark) {
        return RON_ENOTFOUND;
    }

    return ron_history_rows_commit(h->rows, h->seq, h->time_ms, &h->seq_chain);
}


/* RON_ECANCELED: enough for one step. */

static ron_status_t
ron_history_row(void *ctx, const ron_row_t *row)
{
    ron_status_t    status;
    ron_history_t  *h = ctx;

    if (h->left == 0) {
        return RON_ECANCELED;
    }

    if (h->abandoned) {
        return RON_AGAIN;
    }

    if (row->seq != h->seq + 1) {
        return ron_corrupt();
    }

    status = ron_history_rows_put(h->rows, row);

    if (status == RON_OK) {
        h->seq = row->seq + row->count - 1;
        h->seq_chain = row->chain;
        h->time_ms = row->time_ms;
        h->left -= (uint32_t) ron_min(row->count, h->left);
        ron_history_pace_rest(&h->pace);
    }

    return status;
}
