
/*
 * The directory of a ledger, and how a new one is made: the database with its
 * tables and triggers, under the locks of a writer.
 */

#include "ron_store_sqlite.h"
#include "ron_port.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>


/* How long ron_store_open() waits for somebody who creates the ledger. */
#define RON_SQLITE_CREATE_US     1000000
#define RON_SQLITE_CREATE_NAP    5000


static ron_status_t ron_sqlite_find(void *ctx, const char *name);
static ron_status_t ron_sqlite_create_locked(ron_sqlite_t *s,
    const ron_store_conf_t *conf);
static ron_status_t ron_sqlite_create_schema(ron_sqlite_t *s, sqlite3 *db,
    const ron_store_conf_t *conf);


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


void
ron_sqlite_path(const ron_sqlite_t *s, const char *name, char *path)
{
    (void) snprintf(path, RON_SQLITE_PATH_MAX, "%s/%.*s", s->dir,
                    RON_SQLITE_NAME_MAX - 2, name);
}


ron_status_t
ron_sqlite_file_failed(ron_sqlite_t *s, ron_status_t status, const char *name)
{
    int  err;

    err = ron_port_errno();

    ron_store_say(s->base.error, "%s/%s: %s%s", s->dir, name,
                  ron_port_error(), err == EACCES || err == EPERM
                                    ? RON_SQLITE_FIX : "");
    return status;
}


/*
 * The port has no call for a file's mode, hence stat() itself.  A directory
 * that others may enter would let them open ledger.db under their own locks,
 * or plant a -shm file before us.
 */

ron_status_t
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


ron_status_t
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

ron_status_t
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

    return ron_sqlite_sync_names(s);
}


ron_status_t
ron_sqlite_sync_names(ron_sqlite_t *s)
{
    char          *slash;
    char           path[RON_SQLITE_PATH_MAX];
    ron_status_t   status;

    status = ron_dir_sync(s->dir);
    if (status != RON_OK) {
        return ron_sqlite_file_failed(s, status, "");
    }

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
