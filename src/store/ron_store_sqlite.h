
/*
 * Private to src/store: what the parts of the sqlite store share.
 */

#ifndef RON_STORE_SQLITE_H
#define RON_STORE_SQLITE_H


#include <sqlite3.h>

#include "ron_port.h"
#include "ron_store_impl.h"


/* "RONL", so that file(1) and a wrong --db option can tell. */
#define RON_SQLITE_APP_ID    0x524f4e4c

/* SQLite's own bound on a path name, and what our longest name needs of it. */
#define RON_SQLITE_PATH_MAX  512
#define RON_SQLITE_NAME_MAX  24
#define RON_SQLITE_DIR_MAX   (RON_SQLITE_PATH_MAX - RON_SQLITE_NAME_MAX)

#define RON_SQLITE_PAGE_SIZE 4096

#define RON_SQLITE_DB        "ledger.db"
#define RON_SQLITE_WAL       "ledger.db-wal"
#define RON_SQLITE_LOCK      "ledger.lock"
#define RON_SQLITE_HEAD      "head"
#define RON_SQLITE_MARK      "safe-mode"
#define RON_SQLITE_MARK_TMP  "safe-mode.tmp"
#define RON_SQLITE_PROBE     "probe"


/* What every message about missing rights ends with. */
#define RON_SQLITE_FIX                                                        \
    "; run as the user that owns the ledger's directory, which must be able " \
    "to write there: even reading may have to create ledger.db-shm"


#define ron_sqlite_slice_key(gen, no)                                         \
    ((sqlite3_int64) ((gen) << RON_STORE_NO_BITS | (no)))


/* Somebody else in a transaction: a shell, or a reader that recovers. */
#define RON_SQLITE_WRITE_BUSY  1000


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
    uint64_t       wal_small_us;    /* a small checkpoint; 0: no idea yet */
    uint64_t       wal_rest_us;     /* no small checkpoint before */
    bool           wal_partial;     /* which readers kept from finishing */
} ron_sqlite_t;


/* Opens a connection for one thread with what every connection needs. */
ron_status_t ron_sqlite_connect(const char *dir, const char *vfs, int flags,
    int busy_ms, sqlite3 **db, char *error);

/* Runs statements that give no row, or whose rows nobody wants. */
ron_status_t ron_sqlite_exec(sqlite3 *db, const char *sql, char *error);

/* A statement that lives as long as its connection. */
ron_status_t ron_sqlite_prepare(sqlite3 *db, const char *sql,
    sqlite3_stmt **stmt, char *error);

/* What a failed call means; the connection's message goes into error. */
ron_status_t ron_sqlite_failed(sqlite3 *db, const char *what, char *error);

/* RON_ENOTFOUND: the database is there, but nobody made a ledger of it. */
ron_status_t ron_sqlite_meta(sqlite3 *db, ron_ledger_meta_t *meta,
    char *error);

ron_status_t ron_sqlite_reader(const char *dir, const char *vfs,
    ron_reader_t **reader, char *error);


/* "<dir>/<name>", in RON_SQLITE_PATH_MAX bytes. */
void ron_sqlite_path(const ron_sqlite_t *s, const char *name,
    char *path);

/* Says which file failed and why, with the way out where rights are missing. */
ron_status_t ron_sqlite_file_failed(ron_sqlite_t *s,
    ron_status_t status, const char *name);

/* The kernel's locks of a writer; RON_AGAIN while another has them. */
ron_status_t ron_sqlite_lock(ron_sqlite_t *s);
void ron_sqlite_unlock(ron_sqlite_t *s);


/* ---- ron_store_sqlite_make.c -------------------------------------------- */

/* A directory that nobody else may enter, made if it may be. */
ron_status_t ron_sqlite_dir_check(ron_sqlite_t *s,
    const ron_store_conf_t *conf);

/* RON_ENOTFOUND: there is no ledger yet. */
ron_status_t ron_sqlite_load_meta(ron_sqlite_t *s);
ron_status_t ron_sqlite_create(ron_sqlite_t *s,
    const ron_store_conf_t *conf);

/*
 * Makes the names of our files durable, and the directory's own in a parent
 * that we may read.
 */
ron_status_t ron_sqlite_sync_names(ron_sqlite_t *s);


/* ---- ron_store_sqlite_log.c --------------------------------------------- */

/*
 * Writes the WAL once more, syncs it, and has its index made anew of what is
 * there then.  The connection is open, and nothing was read through it yet.
 * RON_AGAIN: somebody else writes, or checkpoints, for longer than
 * RON_SQLITE_WRITE_BUSY.
 */
ron_status_t ron_sqlite_log_again(ron_sqlite_t *s);


/* ---- ron_store_sqlite_page.c -------------------------------------------- */

/* For the writer: both files, made if need be. */
ron_status_t ron_sqlite_open_pages(ron_sqlite_t *s);

ron_status_t ron_sqlite_head_write(ron_store_t *store,
    const uint8_t *page);
ron_status_t ron_sqlite_head_read(ron_store_t *store, uint8_t *page);
ron_status_t ron_sqlite_mark_write(ron_store_t *store,
    const uint8_t *page);
ron_status_t ron_sqlite_mark_read(ron_store_t *store, uint8_t *page);
ron_status_t ron_sqlite_probe(ron_store_t *store);


#endif /* RON_STORE_SQLITE_H */
