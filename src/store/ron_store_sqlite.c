
/*
 * The writing half of the sqlite store: one directory, mode 0700.
 *
 *     ledger.db      the truth (with its -wal and -shm)
 *     ledger.lock    locked by the writer, as is the directory itself
 *     head           the published head: one page, in place, not synced
 *     safe-mode      the mark: one page, in place, synced
 *
 * ledger.db:
 *
 *     meta        one row, written when the ledger is created
 *     writer      one row: the epoch, which only rises
 *     journal     one row a commit; its key is the seq of its first entry
 *     tile        complete tiles; the key is (leaf << 3 | level), leaf being
 *                 the one that made it complete
 *     checkpoint  slices of engine checkpoints; (generation << 23 | number)
 *
 * All three keys ascend in the order in which rows are written, so that every
 * insert is an append at the right edge of its b-tree: a commit dirties the
 * pages that it fills and no others.
 *
 * Who may write.  The kernel's locks on directory and ledger.lock keep
 * writers apart, and they vanish with their process.  Locks can be lost all
 * the same (a copied directory, a network file system, a bug here), so the
 * journal defends itself: triggers refuse a row that does not follow the head
 * or does not carry the epoch of the last one who acquired, and refuse every
 * update and delete.  INSERT OR REPLACE deletes without asking the delete
 * triggers; it is the insert trigger that stops it.
 *
 * What is durable when.  synchronous=FULL: a commit is one append to the WAL
 * and one sync of it.  The checkpoint that moves pages into ledger.db runs
 * between commits, on this connection and no other (SQLite before 3.51.3 can
 * damage a WAL that two connections write or checkpoint at one instant).
 * The WAL file is never cut or deleted: to overwrite blocks that a file has
 * already is nearly twice as fast as to append to it.
 */

#include "ron_store_sqlite.h"
#include "ron_wal_vfs.h"
#include "ron_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define RON_SQLITE_WAL_PAGES     1000

/*
 * Whoever pays meanwhile waits for a checkpoint, 5 us for each page and two
 * syncs: so there is one as soon as the WAL has a 16th of wal_pages, if that
 * takes no more than a 16th of the time, which it would where a sync is slow.
 */
#define RON_SQLITE_WAL_PART      16

/*
 * Past this many times wal_pages readers have kept the WAL from starting over
 * for too long, and the next checkpoint waits for them (they are bound to end
 * within 100 ms).
 */
#define RON_SQLITE_WAL_PATIENCE  8

/* As RON_SQLITE_WRITE_BUSY, where a commit waits behind it. */
#define RON_SQLITE_RESTART_BUSY  150

/* Rows of old generations that one ron_store_maintain() removes. */
#define RON_SQLITE_FORGET_N      64


static ron_status_t ron_sqlite_acquire(ron_store_t *store, uint64_t *epoch);
static ron_status_t ron_sqlite_acquire_locked(ron_sqlite_t *s,
    uint64_t *epoch);
static ron_status_t ron_sqlite_setup(ron_sqlite_t *s);
static ron_status_t ron_sqlite_setup_stmts(ron_sqlite_t *s);
static ron_status_t ron_sqlite_settle(ron_sqlite_t *s);
static ron_status_t ron_sqlite_raise(ron_sqlite_t *s, uint64_t *epoch);
static void ron_sqlite_release(ron_store_t *store);
static void ron_sqlite_close(ron_store_t *store);
static int ron_sqlite_wal_hook(void *ctx, sqlite3 *db, const char *name,
    int n);

static ron_status_t ron_sqlite_append(ron_store_t *store,
    const ron_row_t *row, const ron_tile_t *tiles, size_t tile_n,
    const ron_slice_t *slice);
static ron_status_t ron_sqlite_insert(ron_sqlite_t *s, const ron_row_t *row,
    const ron_tile_t *tiles, size_t tile_n, const ron_slice_t *slice);
static ron_status_t ron_sqlite_insert_row(ron_sqlite_t *s,
    const ron_row_t *row);
static ron_status_t ron_sqlite_undo(ron_sqlite_t *s, ron_status_t status);
static ron_status_t ron_sqlite_commit(ron_sqlite_t *s);
static ron_status_t ron_sqlite_step(ron_sqlite_t *s, sqlite3_stmt *stmt,
    const char *what);

static ron_status_t ron_sqlite_maintain(ron_store_t *store,
    uint64_t keep_gen);
static void ron_sqlite_took(ron_sqlite_t *s, uint32_t pages,
    uint64_t took_us);
static ron_status_t ron_sqlite_checkpoint(ron_sqlite_t *s);
static ron_status_t ron_sqlite_forget(ron_sqlite_t *s, uint64_t keep_gen);

static ron_status_t ron_sqlite_store_reader(ron_store_t *store,
    ron_reader_t **reader);


static const ron_store_ops_t  ron_sqlite_ops = {
    ron_sqlite_acquire,
    ron_sqlite_release,
    ron_sqlite_append,
    ron_sqlite_maintain,
    ron_sqlite_head_write,
    ron_sqlite_head_read,
    ron_sqlite_mark_write,
    ron_sqlite_mark_read,
    ron_sqlite_probe,
    ron_sqlite_store_reader,
    ron_sqlite_close
};


/* ---- opening and creating ----------------------------------------------- */

ron_status_t
ron_sqlite_open(const ron_store_conf_t *conf, const char *dir, char *error,
    ron_store_t **store)
{
    size_t         len;
    ron_status_t   status;
    ron_sqlite_t  *s;

    len = strlen(dir);

    while (len > 1 && dir[len - 1] == '/') {
        len--;
    }

    /* SQLite may be built to take a name with a "file:" as something else */

    if (len == 0 || len >= RON_SQLITE_DIR_MAX
        || strncmp(dir, "file:", 5) == 0
        || (conf->vfs != NULL && strlen(conf->vfs) >= sizeof(s->vfs_name)))
    {
        ron_store_say(error, "\"sqlite:%s\" does not name a directory in "
                      "fewer than %d bytes", dir, RON_SQLITE_DIR_MAX);
        return RON_EINVAL;
    }

    s = calloc(1, sizeof(ron_sqlite_t));
    if (s == NULL) {
        ron_store_say(error, "no memory");
        return RON_ENOMEM;
    }

    memcpy(s->dir, dir, len);

    if (conf->vfs != NULL) {
        memcpy(s->vfs_name, conf->vfs, strlen(conf->vfs));
        s->vfs = s->vfs_name;
    }

    s->base.ops = &ron_sqlite_ops;
    s->base.dir = s->dir;
    s->wal_pages = conf->wal_pages != 0 ? conf->wal_pages
                                        : RON_SQLITE_WAL_PAGES;
    s->dir_fd = RON_FD_NONE;
    s->lock_fd = RON_FD_NONE;
    s->head_fd = RON_FD_NONE;
    s->mark_fd = RON_FD_NONE;

    status = ron_sqlite_dir_check(s, conf);

    if (status == RON_OK) {
        status = ron_sqlite_load_meta(s);
    }

    if (status == RON_ENOTFOUND && conf->create) {
        status = ron_sqlite_create(s, conf);
    }

    if (status != RON_OK) {
        memcpy(error, s->base.error, RON_STORE_ERROR_MAX);
        free(s);
        return status;
    }

    *store = &s->base;

    return RON_OK;
}


static void
ron_sqlite_close(ron_store_t *store)
{
    free(store);
}


static ron_status_t
ron_sqlite_store_reader(ron_store_t *store, ron_reader_t **reader)
{
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    return ron_sqlite_reader(s->dir, s->vfs, reader, store->error);
}


/* ---- becoming the writer ------------------------------------------------ */

/*
 * Two locks.  The one on the directory goes with the inode, whatever is
 * renamed or deleted inside it; the one on the file is what an operator
 * finds when asking who holds the ledger.
 */

ron_status_t
ron_sqlite_lock(ron_sqlite_t *s)
{
    char          path[RON_SQLITE_PATH_MAX];
    struct stat   st;
    ron_status_t  status;

    if (stat(s->dir, &st) == 0 && st.st_uid != geteuid()) {
        ron_store_say(s->base.error, "%s belongs to user %lu and this is user "
                      "%lu, whose files its owner could not open; run as the "
                      "owner", s->dir, (unsigned long) st.st_uid,
                      (unsigned long) geteuid());
        return RON_EINVAL;
    }

    status = ron_file_open(s->dir, RON_OPEN_READ | RON_OPEN_DIR, &s->dir_fd);

    if (status == RON_OK) {
        status = ron_file_lock(s->dir_fd);
    }

    if (status == RON_OK) {
        ron_sqlite_path(s, RON_SQLITE_LOCK, path);
        status = ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE,
                               &s->lock_fd);
    }

    if (status == RON_OK) {
        status = ron_file_lock(s->lock_fd);
    }

    if (status == RON_OK) {
        return RON_OK;
    }

    if (status == RON_EFENCED) {
        ron_store_say(s->base.error, "%s: another writer holds the lock",
                      s->dir);
        status = RON_AGAIN;

    } else {
        (void) ron_sqlite_file_failed(s, status, RON_SQLITE_LOCK);
    }

    ron_sqlite_unlock(s);

    return status;
}


void
ron_sqlite_unlock(ron_sqlite_t *s)
{
    ron_file_close(s->lock_fd);
    ron_file_close(s->dir_fd);

    s->lock_fd = RON_FD_NONE;
    s->dir_fd = RON_FD_NONE;
}


static ron_status_t
ron_sqlite_acquire(ron_store_t *store, uint64_t *epoch)
{
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    status = ron_sqlite_lock(s);
    if (status != RON_OK) {
        return status;
    }

    status = ron_sqlite_acquire_locked(s, epoch);

    if (status != RON_OK) {
        ron_sqlite_release(store);

        /* the lock is ours: this is nobody's turn but that of an operator */

        return status == RON_AGAIN ? RON_EIO : status;
    }

    return RON_OK;
}


static ron_status_t
ron_sqlite_acquire_locked(ron_sqlite_t *s, uint64_t *epoch)
{
    int                on;
    ron_status_t       status;
    ron_ledger_meta_t  meta;

    status = ron_sqlite_connect(s->dir, ron_wal_vfs(s->vfs),
                                SQLITE_OPEN_READWRITE,
                                RON_SQLITE_WRITE_BUSY, &s->db,
                                s->base.error);

    if (status == RON_OK) {
        status = ron_sqlite_log_again(s);
    }

    if (status != RON_OK) {
        return status;
    }

    /* what ron_sqlite_commit() rests on: no padding behind a commit frame */

    on = 1;
    (void) sqlite3_file_control(s->db, "main",
                                SQLITE_FCNTL_POWERSAFE_OVERWRITE, &on);
    on = 1;
    (void) sqlite3_file_control(s->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);

    status = ron_sqlite_meta(s->db, &meta, s->base.error);
    if (status != RON_OK) {
        return status;
    }

    if (meta.ledger_id != s->base.meta.ledger_id
        || meta.created_ms != s->base.meta.created_ms
        || meta.digest != s->base.meta.digest)
    {
        ron_store_say(s->base.error, "%s: this is not the ledger that was "
                      "opened", s->dir);
        return RON_EINVAL;
    }

    status = ron_sqlite_setup(s);

    if (status == RON_OK) {
        status = ron_sqlite_open_pages(s);
    }

    if (status == RON_OK) {
        status = ron_sqlite_settle(s);
    }

    if (status == RON_OK) {
        status = ron_sqlite_raise(s, epoch);
    }

    /*
     * Each time, because a sync of the directory may have failed in whoever
     * made one of these files: it is there now and gone after a power cut,
     * with all that was committed to it.
     */

    if (status == RON_OK) {
        status = ron_sqlite_sync_names(s);
    }

    return status;
}


static ron_status_t
ron_sqlite_setup(ron_sqlite_t *s)
{
    bool           wal;
    char           sql[512];
    ron_status_t   status;
    sqlite3_stmt  *stmt;

    /*
     * The WAL goes back to four times its usual size after a reader made it
     * grow.  cache_spill: nothing may reach the WAL before COMMIT says so.
     */

    (void) snprintf(sql, sizeof(sql),
                    "PRAGMA synchronous = FULL;"
                    "PRAGMA wal_autocheckpoint = 0;"
                    "PRAGMA secure_delete = OFF;"
                    "PRAGMA cache_size = -2048;"
                    "PRAGMA cache_spill = OFF;"
                    "PRAGMA mmap_size = 0;"
                    "PRAGMA temp_store = MEMORY;"
                    "PRAGMA locking_mode = NORMAL;"
                    "PRAGMA foreign_keys = OFF;"
                    "PRAGMA journal_size_limit = %llu",
                    (unsigned long long) s->wal_pages * 4
                    * (RON_SQLITE_PAGE_SIZE + 24));

    status = ron_sqlite_exec(s->db, sql, s->base.error);

    if (status == RON_OK) {
        status = ron_sqlite_prepare(s->db, "PRAGMA journal_mode = WAL", &stmt,
                                    s->base.error);
    }

    if (status != RON_OK) {
        return status;
    }

    wal = sqlite3_step(stmt) == SQLITE_ROW
          && strcmp((const char *) sqlite3_column_text(stmt, 0), "wal") == 0;

    (void) sqlite3_finalize(stmt);

    if (!wal) {
        ron_store_say(s->base.error, "%s/" RON_SQLITE_DB " cannot be put into "
                      "WAL mode", s->dir);
        return RON_EIO;
    }

    (void) sqlite3_wal_hook(s->db, ron_sqlite_wal_hook, s);

    s->wal_n = 0;
    s->wal_tried = 0;
    s->wal_rest_us = 0;
    s->wal_partial = false;

    return ron_sqlite_setup_stmts(s);
}


static ron_status_t
ron_sqlite_setup_stmts(ron_sqlite_t *s)
{
    size_t         i;
    ron_status_t   status;

    const struct {
        sqlite3_stmt  **stmt;
        const char     *sql;
    } all[] = {

        { &s->begin,    "BEGIN IMMEDIATE" },
        { &s->commit,   "COMMIT" },
        { &s->rollback, "ROLLBACK" },
        { &s->journal,  "INSERT INTO journal VALUES "
                        "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)" },
        { &s->tile,     "INSERT INTO tile VALUES (?1, ?2)" },
        { &s->slice,    "INSERT INTO checkpoint VALUES (?1, ?2, ?3, ?4)" },
        { &s->oldest,   "SELECT 1 FROM checkpoint WHERE key < ?1 LIMIT 1" },
        { &s->forget,   "DELETE FROM checkpoint WHERE key IN "
                        "(SELECT key FROM checkpoint WHERE key < ?1 "
                        "ORDER BY key LIMIT ?2)" },
    };

    for (i = 0; i < ron_array_n(all); i++) {
        status = ron_sqlite_prepare(s->db, all[i].sql, all[i].stmt,
                                    s->base.error);
        if (status != RON_OK) {
            return status;
        }
    }

    return RON_OK;
}


/*
 * What the WAL holds may be in the page cache only: the kernel calls pages
 * clean whose sync failed, and never writes them again.  Frames behind them
 * would be lost with them, however well synced.  So everything that can be
 * read is written once more, to the other file, and the WAL starts over.
 */

static ron_status_t
ron_sqlite_settle(ron_sqlite_t *s)
{
    if (sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_RESTART,
                                  NULL, NULL) == SQLITE_OK)
    {
        return RON_OK;
    }

    return ron_sqlite_failed(s->db, "checkpoint", s->base.error);
}


/* Durable before we return: from here on every earlier writer is refused. */

static ron_status_t
ron_sqlite_raise(ron_sqlite_t *s, uint64_t *epoch)
{
    ron_status_t   status;
    sqlite3_stmt  *stmt;

    status = ron_sqlite_prepare(s->db, "UPDATE writer SET epoch = epoch + 1 "
                                "RETURNING epoch", &stmt, s->base.error);
    if (status != RON_OK) {
        return status;
    }

    if (sqlite3_step(stmt) == SQLITE_ROW) {
        *epoch = (uint64_t) sqlite3_column_int64(stmt, 0);

        /* the row comes before the commit; this step is the commit */

        status = ron_sqlite_step(s, stmt, "epoch");

    } else {
        status = ron_sqlite_failed(s->db, "epoch", s->base.error);
    }

    (void) sqlite3_finalize(stmt);

    return status;
}


static void
ron_sqlite_release(ron_store_t *store)
{
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    if (s->db != NULL) {
        (void) sqlite3_finalize(s->begin);
        (void) sqlite3_finalize(s->commit);
        (void) sqlite3_finalize(s->rollback);
        (void) sqlite3_finalize(s->journal);
        (void) sqlite3_finalize(s->tile);
        (void) sqlite3_finalize(s->slice);
        (void) sqlite3_finalize(s->oldest);
        (void) sqlite3_finalize(s->forget);

        s->begin = s->commit = s->rollback = NULL;
        s->journal = s->tile = s->slice = NULL;
        s->oldest = s->forget = NULL;

        (void) sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
                                 s->base.poisoned || !s->base.writer, NULL);

        /* with a limit the WAL would be cut to nothing on the way out */

        (void) sqlite3_exec(s->db, "PRAGMA journal_size_limit = -1", NULL,
                            NULL, NULL);
        (void) sqlite3_close(s->db);
        s->db = NULL;
    }

    ron_file_close(s->mark_fd);
    ron_file_close(s->head_fd);
    s->mark_fd = RON_FD_NONE;
    s->head_fd = RON_FD_NONE;

    ron_sqlite_unlock(s);
}


static int
ron_sqlite_wal_hook(void *ctx, sqlite3 *db, const char *name, int n)
{
    ron_sqlite_t  *s;

    (void) db;
    (void) name;

    s = ctx;
    s->wal_n = (uint32_t) n;

    /* fewer than before: the WAL has started over */

    if (s->wal_n < s->wal_tried) {
        s->wal_tried = 0;
        s->wal_partial = false;
    }

    return SQLITE_OK;
}


/* ---- the commit --------------------------------------------------------- */

static ron_status_t
ron_sqlite_step(ron_sqlite_t *s, sqlite3_stmt *stmt, const char *what)
{
    int           rc;
    ron_status_t  status;

    rc = sqlite3_step(stmt);

    status = rc == SQLITE_DONE || rc == SQLITE_ROW
             ? RON_OK : ron_sqlite_failed(s->db, what, s->base.error);

    (void) sqlite3_reset(stmt);

    return status;
}


static ron_status_t
ron_sqlite_append(ron_store_t *store, const ron_row_t *row,
    const ron_tile_t *tiles, size_t tile_n, const ron_slice_t *slice)
{
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    status = ron_sqlite_step(s, s->begin, "begin");

    if (status == RON_AGAIN) {

        /* somebody else holds SQLite's own write lock, against ours */

        return RON_EFENCED;
    }

    if (status != RON_OK) {
        store->poisoned = true;
        return status == RON_ENOMEM ? RON_ENOMEM : RON_EIO;
    }

    status = ron_sqlite_insert(s, row, tiles, tile_n, slice);

    if (status != RON_OK) {
        return ron_sqlite_undo(s, status);
    }

    return ron_sqlite_commit(s);
}


static ron_status_t
ron_sqlite_insert(ron_sqlite_t *s, const ron_row_t *row,
    const ron_tile_t *tiles, size_t tile_n, const ron_slice_t *slice)
{
    size_t        i;
    uint64_t      id;
    ron_status_t  status;

    status = ron_sqlite_insert_row(s, row);

    for (i = 0; i < tile_n && status == RON_OK; i++) {

        id = ron_tile_end(tiles[i].level, tiles[i].index) << 3
             | tiles[i].level;

        (void) sqlite3_bind_int64(s->tile, 1, (sqlite3_int64) id);
        (void) sqlite3_bind_blob(s->tile, 2, tiles[i].hashes,
                                 sizeof(tiles[i].hashes), SQLITE_STATIC);

        status = ron_sqlite_step(s, s->tile, "tile");
    }

    if (slice != NULL && status == RON_OK) {

        (void) sqlite3_bind_int64(s->slice, 1,
                   ron_sqlite_slice_key(slice->gen, slice->no));
        (void) sqlite3_bind_int(s->slice, 2, slice->last);
        (void) sqlite3_bind_int64(s->slice, 3, (sqlite3_int64) slice->seq);
        (void) sqlite3_bind_blob(s->slice, 4,
                                 slice->body.len != 0 ? slice->body.data
                                                      : (const void *) "",
                                 (int) slice->body.len, SQLITE_STATIC);

        status = ron_sqlite_step(s, s->slice, "slice");
    }

    return status;
}


static ron_status_t
ron_sqlite_insert_row(ron_sqlite_t *s, const ron_row_t *row)
{
    sqlite3_stmt             *stmt;
    static const ron_hash_t   none;

    stmt = s->journal;

    (void) sqlite3_bind_int64(stmt, 1, (sqlite3_int64) row->seq);
    (void) sqlite3_bind_int64(stmt, 2, (sqlite3_int64) row->count);
    (void) sqlite3_bind_int64(stmt, 3, (sqlite3_int64) row->epoch);
    (void) sqlite3_bind_int64(stmt, 4, (sqlite3_int64) row->time_ms);
    (void) sqlite3_bind_blob(stmt, 5, row->prev_root.b, RON_HASH_LEN,
                             SQLITE_STATIC);
    (void) sqlite3_bind_blob(stmt, 6, row->root.b, RON_HASH_LEN,
                             SQLITE_STATIC);

    if (ron_hash_eq(&row->checkpoint, &none)) {
        (void) sqlite3_bind_null(stmt, 7);

    } else {
        (void) sqlite3_bind_blob(stmt, 7, row->checkpoint.b, RON_HASH_LEN,
                                 SQLITE_STATIC);
    }

    (void) sqlite3_bind_blob(stmt, 8, row->chain.b, RON_HASH_LEN,
                             SQLITE_STATIC);

    if (row->notes.len == 0) {
        (void) sqlite3_bind_null(stmt, 9);

    } else {
        (void) sqlite3_bind_blob(stmt, 9, row->notes.data,
                                 (int) row->notes.len, SQLITE_STATIC);
    }

    (void) sqlite3_bind_blob(stmt, 10, row->body.data, (int) row->body.len,
                             SQLITE_STATIC);

    return ron_sqlite_step(s, stmt, "journal");
}


/*
 * Before COMMIT nothing has been written (the cache does not spill), so all
 * that matters is that the transaction is gone.
 */

static ron_status_t
ron_sqlite_undo(ron_sqlite_t *s, ron_status_t status)
{
    char  error[RON_STORE_ERROR_MAX];

    memcpy(error, s->base.error, sizeof(error));

    if (!sqlite3_get_autocommit(s->db)) {
        (void) ron_sqlite_step(s, s->rollback, "rollback");
    }

    memcpy(s->base.error, error, sizeof(error));

    if (!sqlite3_get_autocommit(s->db)) {
        s->base.poisoned = true;
        return RON_EIO;
    }

    switch (status) {

    case RON_EFENCED:
    case RON_EFULL:
    case RON_EEXIST:
        return status;

    default:
        s->base.poisoned = true;
        return status == RON_AGAIN ? RON_EIO : status;
    }
}


/*
 * SQLITE_FULL is the one failure of a COMMIT that proves that nothing was
 * committed.  COMMIT writes the frames of the transaction to the WAL in order
 * and the frame that carries the commit mark last, then syncs.  SQLITE_FULL
 * comes only from a write that could not be completed, so the last frame is
 * not whole, its checksum cannot match, and no recovery will ever take it for
 * a commit; the next transaction overwrites it.  Two things must hold for
 * that.  There must be no write after the commit frame: the padding up to a
 * sector is turned off by POWERSAFE_OVERWRITE.  And SQLite must have rolled
 * back by itself, which autocommit tells.
 *
 * A quota, a file size limit or any other failed write comes as an I/O error
 * and is in doubt, and so is a failed sync: the kernel may have dropped the
 * pages, or written them.
 */

static ron_status_t
ron_sqlite_commit(ron_sqlite_t *s)
{
    ron_status_t  status;

    status = ron_sqlite_step(s, s->commit, "commit");

    if (status == RON_OK) {
        return RON_OK;
    }

    if (status == RON_EFULL && sqlite3_get_autocommit(s->db)) {
        return RON_EFULL;
    }

    s->base.poisoned = true;

    return status == RON_ENOMEM || status == RON_ECORRUPT ? status : RON_EIO;
}


/* ---- between commits ---------------------------------------------------- */

static ron_status_t
ron_sqlite_maintain(ron_store_t *store, uint64_t keep_gen)
{
    uint32_t       more, few;
    uint64_t       begin_us, end_us;
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    status = ron_sqlite_forget(s, keep_gen);

    if (status != RON_OK) {
        return status;
    }

    /*
     * A checkpoint that readers cut short is worth repeating when a little
     * more is to be gained than the pages that it left behind.
     */

    more = s->wal_n - s->wal_tried;
    few = s->wal_pages / RON_SQLITE_WAL_PART;

    if (more < (s->wal_partial ? 2 * few : few)) {
        return RON_OK;
    }

    begin_us = ron_clock_mono_us();

    if (more < s->wal_pages && begin_us < s->wal_rest_us) {
        return RON_OK;
    }

    status = ron_sqlite_checkpoint(s);

    end_us = ron_clock_mono_us();

    ron_sqlite_took(s, more, end_us - begin_us);
    s->wal_rest_us = end_us + RON_SQLITE_WAL_PART * s->wal_small_us;

    return status;
}


/*
 * What a small checkpoint takes, as a rule.  A longer one tells only when it
 * took less; and one that was held up says little of the next, which would
 * come late for it, be long, and be late again.
 */

static void
ron_sqlite_took(ron_sqlite_t *s, uint32_t pages, uint64_t took_us)
{
    if (s->wal_small_us == 0 || took_us < s->wal_small_us) {
        s->wal_small_us = took_us;

    } else if (pages <= 2 * s->wal_pages / RON_SQLITE_WAL_PART) {
        s->wal_small_us = ron_min(took_us, 2 * s->wal_small_us);
    }
}


static ron_status_t
ron_sqlite_checkpoint(ron_sqlite_t *s)
{
    int           rc, mode, frames, done;
    ron_status_t  status;

    mode = SQLITE_CHECKPOINT_PASSIVE;

    if (s->wal_n / RON_SQLITE_WAL_PATIENCE >= s->wal_pages) {
        mode = SQLITE_CHECKPOINT_RESTART;
        (void) sqlite3_busy_timeout(s->db, RON_SQLITE_RESTART_BUSY);
    }

    frames = 0;
    done = 0;

    rc = sqlite3_wal_checkpoint_v2(s->db, NULL, mode, &frames, &done);

    status = RON_OK;

    if (rc != SQLITE_OK && rc != SQLITE_BUSY) {
        status = ron_sqlite_failed(s->db, "checkpoint", s->base.error);
    }

    (void) sqlite3_busy_timeout(s->db, RON_SQLITE_WRITE_BUSY);

    s->wal_tried = s->wal_n;
    s->wal_partial = rc != SQLITE_OK || done < frames;

    /*
     * Everything that was committed is still in the WAL, and a later attempt
     * writes all of it again.  A disk that failed to sync, though, is not one
     * to promise anything on.
     */

    if (rc == SQLITE_IOERR_FSYNC) {
        s->base.poisoned = true;
    }

    return status == RON_AGAIN ? RON_OK : status;
}


static ron_status_t
ron_sqlite_forget(ron_sqlite_t *s, uint64_t keep_gen)
{
    int            rc;
    ron_status_t   status;
    sqlite3_int64  key;

    if (keep_gen == 0) {
        return RON_OK;
    }

    key = keep_gen > RON_STORE_GEN_MAX ? INT64_MAX
                                       : ron_sqlite_slice_key(keep_gen, 0);

    (void) sqlite3_bind_int64(s->oldest, 1, key);
    rc = sqlite3_step(s->oldest);
    status = rc == SQLITE_ROW || rc == SQLITE_DONE
             ? RON_OK : ron_sqlite_failed(s->db, "forget", s->base.error);
    (void) sqlite3_reset(s->oldest);

    if (rc != SQLITE_ROW) {
        return status;
    }

    if (ron_sqlite_step(s, s->begin, "begin") != RON_OK) {
        return RON_EIO;
    }

    (void) sqlite3_bind_int64(s->forget, 1, key);
    (void) sqlite3_bind_int(s->forget, 2, RON_SQLITE_FORGET_N);

    status = ron_sqlite_step(s, s->forget, "forget");

    if (status != RON_OK) {
        return ron_sqlite_undo(s, status);
    }

    return ron_sqlite_commit(s);
}
