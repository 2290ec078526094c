
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


#define RON_SQLITE_PAGE_SIZE     4096

#define RON_SQLITE_WAL_PAGES     1000

/*
 * Past this many times wal_pages readers have kept the WAL from starting over
 * for too long, and the next checkpoint waits for them (they are bound to end
 * within 100 ms).
 */
#define RON_SQLITE_WAL_PATIENCE  8

/* Somebody else in a transaction: a shell, or a reader that recovers. */
#define RON_SQLITE_WRITE_BUSY    1000
#define RON_SQLITE_RESTART_BUSY  150

/* Rows of old generations that one ron_store_maintain() removes. */
#define RON_SQLITE_FORGET_N      64

/* How long ron_store_open() waits for somebody who creates the ledger. */
#define RON_SQLITE_CREATE_US     1000000
#define RON_SQLITE_CREATE_NAP    5000

/* What is read and written at a time when the WAL is written again. */
#define RON_SQLITE_COPY          ((size_t) 256 << 10)


typedef struct {
    ron_store_t    base;
    char           dir[RON_SQLITE_DIR_MAX];
    char           vfs_name[64];
    const char    *vfs;
    uint32_t       wal_pages;

    /* the writer's, closed and none otherwise */

    ron_fd_t       dir_fd;
    ron_fd_t       lock_fd;
    ron_fd_t       head_fd;
    ron_fd_t       mark_fd;
    sqlite3       *db;
    sqlite3_stmt  *begin;
    sqlite3_stmt  *commit;
    sqlite3_stmt  *rollback;
    sqlite3_stmt  *journal;
    sqlite3_stmt  *tile;
    sqlite3_stmt  *slice;
    sqlite3_stmt  *oldest;
    sqlite3_stmt  *forget;

    uint32_t       wal_n;           /* frames in the WAL */
    uint32_t       wal_tried;       /* frames at the last checkpoint */
    bool           wal_partial;     /* which readers kept from finishing */
} ron_sqlite_t;


static void ron_sqlite_path(const ron_sqlite_t *s, const char *name,
    char *path);
static ron_status_t ron_sqlite_dir_check(ron_sqlite_t *s,
    const ron_store_conf_t *conf);
static ron_status_t ron_sqlite_load_meta(ron_sqlite_t *s);
static ron_status_t ron_sqlite_find(void *ctx, const char *name);
static ron_status_t ron_sqlite_create(ron_sqlite_t *s,
    const ron_store_conf_t *conf);
static ron_status_t ron_sqlite_create_locked(ron_sqlite_t *s,
    const ron_store_conf_t *conf);
static ron_status_t ron_sqlite_create_schema(ron_sqlite_t *s, sqlite3 *db,
    const ron_store_conf_t *conf);

static ron_status_t ron_sqlite_lock(ron_sqlite_t *s);
static void ron_sqlite_unlock(ron_sqlite_t *s);
static ron_status_t ron_sqlite_acquire(ron_store_t *store, uint64_t *epoch);
static ron_status_t ron_sqlite_acquire_locked(ron_sqlite_t *s,
    uint64_t *epoch);
static ron_status_t ron_sqlite_log_again(ron_sqlite_t *s);
static ron_status_t ron_sqlite_setup(ron_sqlite_t *s);
static ron_status_t ron_sqlite_setup_stmts(ron_sqlite_t *s);
static ron_status_t ron_sqlite_settle(ron_sqlite_t *s);
static ron_status_t ron_sqlite_raise(ron_sqlite_t *s, uint64_t *epoch);
static ron_status_t ron_sqlite_open_pages(ron_sqlite_t *s);
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
static ron_status_t ron_sqlite_checkpoint(ron_sqlite_t *s);
static ron_status_t ron_sqlite_forget(ron_sqlite_t *s, uint64_t keep_gen);

static ron_status_t ron_sqlite_head_write(ron_store_t *store,
    const uint8_t *page);
static ron_status_t ron_sqlite_head_read(ron_store_t *store, uint8_t *page);
static ron_status_t ron_sqlite_mark_write(ron_store_t *store,
    const uint8_t *page);
static ron_status_t ron_sqlite_mark_read(ron_store_t *store, uint8_t *page);
static ron_status_t ron_sqlite_mark_create(ron_sqlite_t *s,
    const uint8_t *page);
static ron_status_t ron_sqlite_probe(ron_store_t *store);
static ron_status_t ron_sqlite_store_reader(ron_store_t *store,
    ron_reader_t **reader);
static ron_status_t ron_sqlite_file_failed(ron_sqlite_t *s,
    ron_status_t status, const char *name);


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


/*
 * A statement like `UPDATE journal SET ...` in any sqlite3 shell runs into
 * these triggers as well; whoever wants to get around them has to drop them
 * first, and then the hash chain tells.
 */

static const char  ron_sqlite_schema[] =
    "CREATE TABLE meta ("
    " id INTEGER PRIMARY KEY CHECK (id = 1),"
    " format INTEGER NOT NULL,"
    " ledger_id INTEGER NOT NULL,"
    " digest TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL"
    ") STRICT;"

    "CREATE TABLE writer ("
    " id INTEGER PRIMARY KEY CHECK (id = 1),"
    " epoch INTEGER NOT NULL"
    ") STRICT;"

    "CREATE TABLE journal ("
    " seq INTEGER PRIMARY KEY,"
    " count INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL,"
    " time_ms INTEGER NOT NULL,"
    " prev_root BLOB NOT NULL,"
    " root BLOB NOT NULL,"
    " checkpoint BLOB,"
    " chain BLOB NOT NULL,"
    " notes BLOB,"
    " body BLOB NOT NULL"
    ") STRICT;"

    "CREATE TABLE tile ("
    " id INTEGER PRIMARY KEY,"
    " hashes BLOB NOT NULL"
    ") STRICT;"

    "CREATE TABLE checkpoint ("
    " key INTEGER PRIMARY KEY,"
    " last INTEGER NOT NULL,"
    " seq INTEGER NOT NULL,"
    " body BLOB NOT NULL,"
    " gen INTEGER AS (key >> 23) VIRTUAL,"
    " no INTEGER AS (key & 8388607) VIRTUAL"
    ") STRICT;"

    "CREATE TRIGGER journal_insert BEFORE INSERT ON journal BEGIN"
    " SELECT RAISE(ABORT, 'ron: malformed row')"
    "  WHERE NEW.count < 1 OR length(NEW.prev_root) <> 32"
    "  OR length(NEW.root) <> 32 OR length(NEW.chain) <> 32"
    "  OR length(NEW.checkpoint) <> 32 OR length(NEW.body) = 0;"
    " SELECT RAISE(ABORT, 'ron: the writer has been replaced')"
    "  FROM writer WHERE NEW.epoch <> epoch;"
    " SELECT RAISE(ABORT, 'ron: row does not follow the head')"
    "  FROM journal WHERE seq = (SELECT max(seq) FROM journal)"
    "  AND (NEW.seq <> seq + count OR NEW.prev_root <> root"
    "   OR NEW.epoch < epoch);"
    " SELECT RAISE(ABORT, 'ron: the first row has seq 1')"
    "  WHERE NEW.seq <> 1 AND NOT EXISTS (SELECT 1 FROM journal);"
    " END;"

    "CREATE TRIGGER journal_update BEFORE UPDATE ON journal BEGIN"
    " SELECT RAISE(ABORT, 'ron: the journal is append-only'); END;"
    "CREATE TRIGGER journal_delete BEFORE DELETE ON journal BEGIN"
    " SELECT RAISE(ABORT, 'ron: the journal is append-only'); END;"

    "CREATE TRIGGER tile_insert BEFORE INSERT ON tile BEGIN"
    " SELECT RAISE(ABORT, 'ron: tiles are append-only')"
    "  WHERE NEW.id <= (SELECT max(id) FROM tile)"
    "  OR length(NEW.hashes) <> 8192; END;"
    "CREATE TRIGGER tile_update BEFORE UPDATE ON tile BEGIN"
    " SELECT RAISE(ABORT, 'ron: tiles are append-only'); END;"
    "CREATE TRIGGER tile_delete BEFORE DELETE ON tile BEGIN"
    " SELECT RAISE(ABORT, 'ron: tiles are append-only'); END;"

    "CREATE TRIGGER writer_insert BEFORE INSERT ON writer"
    " WHEN EXISTS (SELECT 1 FROM writer) BEGIN"
    " SELECT RAISE(ABORT, 'ron: there is one writer'); END;"
    "CREATE TRIGGER writer_update BEFORE UPDATE ON writer"
    " WHEN NEW.epoch <= OLD.epoch OR NEW.id <> OLD.id BEGIN"
    " SELECT RAISE(ABORT, 'ron: an epoch only rises'); END;"
    "CREATE TRIGGER writer_delete BEFORE DELETE ON writer BEGIN"
    " SELECT RAISE(ABORT, 'ron: there is one writer'); END;"

    "CREATE TRIGGER meta_insert BEFORE INSERT ON meta"
    " WHEN EXISTS (SELECT 1 FROM meta) BEGIN"
    " SELECT RAISE(ABORT, 'ron: meta never changes'); END;"
    "CREATE TRIGGER meta_update BEFORE UPDATE ON meta BEGIN"
    " SELECT RAISE(ABORT, 'ron: meta never changes'); END;"
    "CREATE TRIGGER meta_delete BEFORE DELETE ON meta BEGIN"
    " SELECT RAISE(ABORT, 'ron: meta never changes'); END;"

    "INSERT INTO writer VALUES (1, 0);";


static void
ron_sqlite_path(const ron_sqlite_t *s, const char *name, char *path)
{
    (void) snprintf(path, RON_SQLITE_PATH_MAX, "%s/%.*s", s->dir,
                    RON_SQLITE_NAME_MAX - 2, name);
}


static ron_status_t
ron_sqlite_file_failed(ron_sqlite_t *s, ron_status_t status, const char *name)
{
    int  err;

    err = ron_port_errno();

    ron_store_say(s->base.error, "%s/%s: %s%s", s->dir, name,
                  ron_port_error(), err == EACCES || err == EPERM
                                    ? RON_SQLITE_FIX : "");
    return status;
}


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


/*
 * The port has no call for a file's mode, hence stat() itself.  A directory
 * that others may enter would let them open ledger.db under their own locks,
 * or plant a -shm file before us.
 */

static ron_status_t
ron_sqlite_dir_check(ron_sqlite_t *s, const ron_store_conf_t *conf)
{
    struct stat  st;

    if (conf->create && ron_dir_make(s->dir) != RON_OK) {
        ron_store_say(s->base.error, "%s: cannot make the directory: %s",
                      s->dir, ron_port_error());
        return RON_EIO;
    }

    if (stat(s->dir, &st) != 0) {
        ron_store_say(s->base.error, "%s: no such directory", s->dir);
        return RON_ENOTFOUND;
    }

    if (!S_ISDIR(st.st_mode)) {
        ron_store_say(s->base.error, "%s: not a directory", s->dir);
        return RON_EINVAL;
    }

    if ((st.st_mode & 077) != 0) {
        ron_store_say(s->base.error, "%s: mode is %04o, others can reach the "
                      "ledger; run: chmod 0700 %s", s->dir,
                      (unsigned) st.st_mode & 07777, s->dir);
        return RON_EINVAL;
    }

    return RON_OK;
}


/*
 * ledger.db is looked for by name and never opened but by SQLite: to close
 * any descriptor of it drops the locks that SQLite holds in this process.
 */

static ron_status_t
ron_sqlite_find(void *ctx, const char *name)
{
    bool  *found;

    found = ctx;

    if (strcmp(name, RON_SQLITE_DB) == 0) {
        *found = true;
    }

    return RON_OK;
}


static ron_status_t
ron_sqlite_load_meta(ron_sqlite_t *s)
{
    bool           found;
    sqlite3       *db;
    ron_status_t   status;

    found = false;

    status = ron_dir_each(s->dir, ron_sqlite_find, &found);

    if (status != RON_OK) {
        return ron_sqlite_file_failed(s, status, "");
    }

    if (!found) {
        ron_store_say(s->base.error, "%s: there is no ledger here", s->dir);
        return RON_ENOTFOUND;
    }

    status = ron_sqlite_connect(s->dir, s->vfs, SQLITE_OPEN_READONLY,
                                RON_SQLITE_WRITE_BUSY, &db, s->base.error);
    if (status != RON_OK) {
        return status;
    }

    (void) sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);

    status = ron_sqlite_meta(db, &s->base.meta, s->base.error);

    (void) sqlite3_close(db);

    return status;
}


/* Two may try at once; the one who comes second finds it made. */

static ron_status_t
ron_sqlite_create(ron_sqlite_t *s, const ron_store_conf_t *conf)
{
    uint64_t      since_us;
    ron_status_t  status;

    since_us = ron_clock_mono_us();

    for ( ;; ) {

        status = ron_sqlite_lock(s);

        if (status == RON_OK) {
            status = ron_sqlite_load_meta(s);

            if (status == RON_ENOTFOUND) {
                status = ron_sqlite_create_locked(s, conf);
            }

            ron_sqlite_unlock(s);

            return status == RON_OK ? ron_sqlite_load_meta(s) : status;
        }

        if (status != RON_AGAIN) {
            return status;
        }

        if (ron_sqlite_load_meta(s) == RON_OK) {
            return RON_OK;
        }

        if (ron_clock_mono_us() - since_us > RON_SQLITE_CREATE_US) {
            ron_store_say(s->base.error, "%s: locked by somebody who does not "
                          "make a ledger of it", s->dir);
            return RON_AGAIN;
        }

        ron_sleep_us(RON_SQLITE_CREATE_NAP);
    }
}


/*
 * The file is made here and not by SQLite, whose files follow the umask; its
 * WAL and index then copy the mode from it.  Everything up to the first
 * commit can be repeated, and is: a database without a user_version is one
 * whose creation did not get to its end.
 */

static ron_status_t
ron_sqlite_create_locked(ron_sqlite_t *s, const ron_store_conf_t *conf)
{
    char           path[RON_SQLITE_PATH_MAX];
    char          *slash;
    sqlite3       *db;
    ron_fd_t       fd;
    ron_status_t   status;

    ron_sqlite_path(s, RON_SQLITE_DB, path);

    status = ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE
                                 | RON_OPEN_EXCL, &fd);
    if (status == RON_OK) {
        ron_file_close(fd);

    } else if (status != RON_EEXIST) {
        return ron_sqlite_file_failed(s, status, RON_SQLITE_DB);
    }

    status = ron_sqlite_connect(s->dir, s->vfs, SQLITE_OPEN_READWRITE,
                                RON_SQLITE_WRITE_BUSY, &db, s->base.error);
    if (status != RON_OK) {
        return status;
    }

    status = ron_sqlite_create_schema(s, db, conf);

    (void) sqlite3_close(db);

    if (status != RON_OK) {
        return status;
    }

    status = ron_dir_sync(s->dir);
    if (status != RON_OK) {
        return ron_sqlite_file_failed(s, status, "");
    }

    /* the directory's own name; a parent that we may not read is not ours */

    memcpy(path, s->dir, sizeof(s->dir));
    slash = strrchr(path, '/');

    if (slash != NULL) {
        slash[slash == path] = '\0';
    }

    (void) ron_dir_sync(slash != NULL ? path : ".");

    return RON_OK;
}


static ron_status_t
ron_sqlite_create_schema(ron_sqlite_t *s, sqlite3 *db,
    const ron_store_conf_t *conf)
{
    char           sql[512];
    const char    *digest;
    uint16_t       ledger_id;
    ron_status_t   status;

    ledger_id = conf->ledger_id;

    while (ledger_id == 0) {
        status = ron_random(&ledger_id, sizeof(ledger_id));
        if (status != RON_OK) {
            ron_store_say(s->base.error, "no randomness: %s",
                          ron_port_error());
            return status;
        }
    }

    digest = ron_digest_name(conf->digest != 0 ? conf->digest
                                               : RON_DIGEST_BLAKE3);

    (void) snprintf(sql, sizeof(sql),
                    "PRAGMA page_size = %d;"
                    "PRAGMA journal_mode = WAL;"
                    "PRAGMA synchronous = FULL;"
                    "PRAGMA secure_delete = OFF;"
                    "BEGIN IMMEDIATE;", RON_SQLITE_PAGE_SIZE);

    status = ron_sqlite_exec(db, sql, s->base.error);

    if (status == RON_OK) {
        status = ron_sqlite_exec(db, ron_sqlite_schema, s->base.error);
    }

    (void) snprintf(sql, sizeof(sql),
                    "INSERT INTO meta VALUES (1, %d, %u, '%s', %llu);"
                    "PRAGMA application_id = %d;"
                    "PRAGMA user_version = %d;"
                    "COMMIT;",
                    RON_STORE_FORMAT, ledger_id, digest,
                    (unsigned long long) ron_clock_wall_ms(),
                    RON_SQLITE_APP_ID, RON_STORE_FORMAT);

    if (status == RON_OK) {
        status = ron_sqlite_exec(db, sql, s->base.error);
    }

    return status;
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

static ron_status_t
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


static void
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


/*
 * Writes the WAL over itself and syncs it.  A sync that failed, here or in a
 * writer that is gone, may have left pages that are read from the cache and
 * are not on the disk, and that no later sync will write: they are not dirty.
 * To append behind such a hole would be to promise what a power cut takes
 * away.  The bytes are the same, so readers do not notice.
 */

static ron_status_t
ron_sqlite_log_again(ron_sqlite_t *s)
{
    char           path[RON_SQLITE_PATH_MAX];
    size_t         n;
    uint8_t       *buf;
    uint64_t       size, off;
    ron_fd_t       fd;
    ron_status_t   status;

    ron_sqlite_path(s, RON_SQLITE_WAL, path);

    status = ron_file_open(path, RON_OPEN_WRITE, &fd);

    if (status != RON_OK) {
        return status == RON_ENOTFOUND
               ? RON_OK : ron_sqlite_file_failed(s, status, RON_SQLITE_WAL);
    }

    buf = malloc(RON_SQLITE_COPY);
    status = buf != NULL ? ron_file_size(fd, &size) : RON_ENOMEM;

    for (off = 0; status == RON_OK && off < size; off += n) {
        n = (size_t) ron_min(size - off, (uint64_t) RON_SQLITE_COPY);
        status = ron_file_pread(fd, buf, n, off);

        if (status == RON_OK) {
            status = ron_file_pwrite(fd, buf, n, off);
        }
    }

    if (status == RON_OK) {
        status = ron_file_sync(fd);
    }

    free(buf);
    ron_file_close(fd);

    return status == RON_OK
           ? RON_OK : ron_sqlite_file_failed(s, status, RON_SQLITE_WAL);
}


static ron_status_t
ron_sqlite_acquire_locked(ron_sqlite_t *s, uint64_t *epoch)
{
    int                on;
    ron_status_t       status;
    ron_ledger_meta_t  meta;

    status = ron_sqlite_log_again(s);
    if (status != RON_OK) {
        return status;
    }

    status = ron_sqlite_connect(s->dir, ron_wal_vfs(s->vfs),
                                SQLITE_OPEN_READWRITE,
                                RON_SQLITE_WRITE_BUSY, &s->db,
                                s->base.error);
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
                    "PRAGMA cache_size = -8192;"
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


static ron_status_t
ron_sqlite_open_pages(ron_sqlite_t *s)
{
    char          path[RON_SQLITE_PATH_MAX];
    uint8_t       page[RON_STORE_PAGE];
    uint64_t      size;
    ron_status_t  status;

    status = ron_sqlite_mark_create(s, NULL);

    if (status == RON_OK) {
        ron_sqlite_path(s, RON_SQLITE_MARK, path);
        status = ron_file_open(path, RON_OPEN_WRITE, &s->mark_fd);
    }

    if (status != RON_OK) {
        return ron_sqlite_file_failed(s, status, RON_SQLITE_MARK);
    }

    ron_sqlite_path(s, RON_SQLITE_HEAD, path);

    status = ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE,
                           &s->head_fd);
    if (status == RON_OK) {
        status = ron_file_size(s->head_fd, &size);
    }

    if (status == RON_OK && size < RON_STORE_PAGE) {

        /* so that no later write of a head needs a block */

        memset(page, 0, sizeof(page));
        status = ron_file_pwrite(s->head_fd, page, sizeof(page), 0);

        if (status == RON_OK) {
            status = ron_file_sync(s->head_fd);
        }
    }

    if (status != RON_OK) {
        return ron_sqlite_file_failed(s, status, RON_SQLITE_HEAD);
    }

    return RON_OK;
}


/*
 * Closing checkpoints the WAL if nobody else has the ledger open, which is
 * the state a backup likes best; after a failure nothing more is touched.
 */

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

    if (s->wal_n - s->wal_tried < (s->wal_partial ? s->wal_pages / 8
                                                  : s->wal_pages))
    {
        return RON_OK;
    }

    return ron_sqlite_checkpoint(s);
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


/* ---- the pages that are written in place -------------------------------- */

static ron_status_t
ron_sqlite_head_write(ron_store_t *store, const uint8_t *page)
{
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    status = ron_file_pwrite(s->head_fd, page, RON_STORE_PAGE, 0);

    return status == RON_OK
           ? RON_OK : ron_sqlite_file_failed(s, status, RON_SQLITE_HEAD);
}


static ron_status_t
ron_sqlite_head_read(ron_store_t *store, uint8_t *page)
{
    char           path[RON_SQLITE_PATH_MAX];
    ron_fd_t       fd;
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    ron_sqlite_path(s, RON_SQLITE_HEAD, path);

    status = ron_file_open(path, RON_OPEN_READ, &fd);

    if (status == RON_OK) {
        status = ron_file_pread(fd, page, RON_STORE_PAGE, 0);
        ron_file_close(fd);
    }

    if (status != RON_OK && status != RON_ENOTFOUND) {
        return ron_sqlite_file_failed(s, status, RON_SQLITE_HEAD);
    }

    return status;
}


static ron_status_t
ron_sqlite_mark_read(ron_store_t *store, uint8_t *page)
{
    char           path[RON_SQLITE_PATH_MAX];
    ron_fd_t       fd;
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    ron_sqlite_path(s, RON_SQLITE_MARK, path);

    status = ron_file_open(path, RON_OPEN_READ, &fd);

    if (status != RON_OK) {
        return status == RON_ENOTFOUND
               ? RON_ENOTFOUND
               : ron_sqlite_file_failed(s, status, RON_SQLITE_MARK);
    }

    status = ron_file_pread(fd, page, RON_STORE_PAGE, 0);
    ron_file_close(fd);

    /* a file that ends too early is a mark, not the absence of one */

    return status == RON_ENOTFOUND ? RON_EIO : status;
}


static ron_status_t
ron_sqlite_mark_write(ron_store_t *store, const uint8_t *page)
{
    char           path[RON_SQLITE_PATH_MAX];
    ron_fd_t       fd;
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;
    fd = s->mark_fd;

    if (fd == RON_FD_NONE) {
        ron_sqlite_path(s, RON_SQLITE_MARK, path);
        status = ron_file_open(path, RON_OPEN_WRITE, &fd);

        if (status == RON_ENOTFOUND) {
            status = ron_sqlite_mark_create(s, page);

            return status == RON_OK ? RON_OK
                   : ron_sqlite_file_failed(s, status, RON_SQLITE_MARK);
        }

        if (status != RON_OK) {
            return ron_sqlite_file_failed(s, status, RON_SQLITE_MARK);
        }
    }

    status = ron_file_pwrite(fd, page, RON_STORE_PAGE, 0);

    if (status == RON_OK) {
        status = ron_file_sync(fd);
    }

    if (fd != s->mark_fd) {
        ron_file_close(fd);
    }

    return status == RON_OK
           ? RON_OK : ron_sqlite_file_failed(s, status, RON_SQLITE_MARK);
}


/*
 * Made under another name first, since a mark of no bytes, which a crash in
 * between would leave, is one that cannot be read and keeps the ledger shut.
 * Without a page given, an existing mark is left alone and a new one is clear.
 */

static ron_status_t
ron_sqlite_mark_create(ron_sqlite_t *s, const uint8_t *page)
{
    char          path[RON_SQLITE_PATH_MAX], tmp[RON_SQLITE_PATH_MAX];
    uint8_t       clear[RON_STORE_PAGE];
    ron_fd_t      fd;
    ron_status_t  status;

    ron_sqlite_path(s, RON_SQLITE_MARK, path);
    ron_sqlite_path(s, RON_SQLITE_MARK_TMP, tmp);

    if (page == NULL) {
        status = ron_file_open(path, RON_OPEN_READ, &fd);

        if (status == RON_OK) {
            ron_file_close(fd);
        }

        if (status != RON_ENOTFOUND) {
            return status;
        }

        ron_store_page_put(clear, RON_STORE_KIND_MARK, ron_null_str);
        page = clear;
    }

    status = ron_file_open(tmp, RON_OPEN_WRITE | RON_OPEN_CREATE, &fd);
    if (status != RON_OK) {
        return status;
    }

    status = ron_file_pwrite(fd, page, RON_STORE_PAGE, 0);

    if (status == RON_OK) {
        status = ron_file_sync(fd);
    }

    ron_file_close(fd);

    if (status == RON_OK) {
        status = ron_file_rename(tmp, path);
    }

    return status == RON_OK ? ron_dir_sync(s->dir) : status;
}


/* A new file each time: a full disk may still overwrite what it has. */

static ron_status_t
ron_sqlite_probe(ron_store_t *store)
{
    char           path[RON_SQLITE_PATH_MAX];
    uint8_t        page[RON_STORE_PAGE];
    ron_fd_t       fd;
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    ron_sqlite_path(s, RON_SQLITE_PROBE, path);
    memset(page, 0x5a, sizeof(page));

    status = ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE, &fd);

    if (status == RON_OK) {
        status = ron_file_pwrite(fd, page, sizeof(page), 0);

        if (status == RON_OK) {
            status = ron_file_sync(fd);
        }

        ron_file_close(fd);
        (void) ron_file_unlink(path);
    }

    return status == RON_OK
           ? RON_OK : ron_sqlite_file_failed(s, status, RON_SQLITE_PROBE);
}
