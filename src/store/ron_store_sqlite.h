
/*
 * Private to src/store: what the two halves of the sqlite store share.
 */

#ifndef RON_STORE_SQLITE_H
#define RON_STORE_SQLITE_H


#include <sqlite3.h>

#include "ron_store_impl.h"


/* "RONL", so that file(1) and a wrong --db option can tell. */
#define RON_SQLITE_APP_ID    0x524f4e4c

/* SQLite's own bound on a path name, and what our longest name needs of it. */
#define RON_SQLITE_PATH_MAX  512
#define RON_SQLITE_NAME_MAX  24
#define RON_SQLITE_DIR_MAX   (RON_SQLITE_PATH_MAX - RON_SQLITE_NAME_MAX)

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


#endif /* RON_STORE_SQLITE_H */
