
/*
 * A database that many megabytes go to is synced piece by piece, while it is
 * written and while its log is copied into it; nothing of a commit is held
 * back; what a sync could not do is the error of that write.
 */

#include "lib_ledger.h"
#include "lib_vfs.h"
#include "ron_test.h"
#include "ron_wal_vfs.h"

#include <sqlite3.h>


#define PIECE  UINT64_C(524288)
#define ROWS   2048
#define ROW    4000                 /* one to a page */


static char  path[256];


static sqlite3 *
open_with(const char *vfs, const char *more)
{
    sqlite3  *db;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        vfs)
        != SQLITE_OK
        || sqlite3_exec(db, "PRAGMA journal_mode = WAL;"
                        "PRAGMA synchronous = NORMAL;"
                        "PRAGMA wal_autocheckpoint = 0", NULL, NULL, NULL)
           != SQLITE_OK
        || sqlite3_exec(db, more, NULL, NULL, NULL) != SQLITE_OK)
    {
        printf("Bail out! %s: %s\n", path, sqlite3_errmsg(db));
        exit(1);
    }

    return db;
}


/* As many rows more, in one transaction. */

static int
fill(sqlite3 *db)
{
    int   rc;
    char  sql[256];

    (void) snprintf(sql, sizeof(sql),
                    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL"
                    " SELECT i + 1 FROM n WHERE i < %d)"
                    " INSERT INTO t (v) SELECT randomblob(%d) FROM n", ROWS,
                    ROW);

    rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? rc : sqlite3_extended_errcode(db);
}


static uint64_t
rows(sqlite3 *db)
{
    uint64_t       n;
    sqlite3_stmt  *stmt;

    n = UINT64_MAX;

    if (sqlite3_prepare_v2(db, "SELECT count(*) FROM t WHERE length(v) = 4000",
                           -1, &stmt, NULL)
        == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
    {
        n = (uint64_t) sqlite3_column_int64(stmt, 0);
    }

    (void) sqlite3_finalize(stmt);

    return n;
}


static int
checkpoint(sqlite3 *db)
{
    int  n, done, rc;

    rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &n,
                                   &done);

    return rc == SQLITE_OK && done < n ? SQLITE_BUSY
           : rc == SQLITE_OK ? rc : sqlite3_extended_errcode(db);
}


static void
count(void *ctx)
{
    ++*(uint64_t *) ctx;
}


int
main(void)
{
    char         dir[200];
    uint64_t     least, rests;
    sqlite3     *db, *other;
    const char  *paced;

    ledger_dir("paced", dir, sizeof(dir));
    ledger_shell("mkdir '%s'", dir);
    (void) snprintf(path, sizeof(path), "%s/db", dir);

    vfs_register();
    paced = ron_wal_vfs_paced(VFS_NAME);
    is_str(ron_wal_vfs_paced(VFS_NAME), paced, "it is made once");

    least = (uint64_t) ROWS * ROW / PIECE;

    /* as SQLite does it */

    db = open_with(VFS_NAME, "CREATE TABLE t (v)");
    vfs_heal();
    is_u64(fill(db), SQLITE_OK, "8 MB in one commit");
    is_u64(vfs_count(VFS_SYNC, VFS_WAL), 0, "are not synced");
    is_u64(checkpoint(db), SQLITE_OK, "and copied");
    is_u64(vfs_count(VFS_SYNC, VFS_WAL), 1, "behind one sync of the log");
    is_u64(vfs_count(VFS_SYNC, VFS_DB), 1, "before one of the database");
    (void) sqlite3_close(db);

    /* and as it is wanted */

    db = open_with(paced, "");
    other = open_with(VFS_NAME, "");
    rests = 0;
    ron_wal_vfs_rest(db, count, &rests);
    vfs_heal();
    is_u64(fill(db), SQLITE_OK, "8 MB again");
    ok(vfs_count(VFS_SYNC, VFS_WAL) >= least, "in %u pieces",
       (unsigned) vfs_count(VFS_SYNC, VFS_WAL));
    ok(rests >= least, "with a rest after each");
    is_u64(rows(other), 2 * ROWS, "of which another reader sees all");
    is_u64(vfs_count(VFS_SYNC, VFS_DB), 0, "none of it in the database");
    rests = 0;
    is_u64(checkpoint(db), SQLITE_OK, "which it is copied to");
    ok(vfs_count(VFS_SYNC, VFS_DB) >= least, "in %u pieces",
       (unsigned) vfs_count(VFS_SYNC, VFS_DB));
    ok(rests >= least, "with a rest after each");

    /* a sync that fails, of the log and of the database */

    vfs_plan(VFS_EIO, VFS_SYNC, VFS_WAL, 3, false);
    is_u64(fill(db), SQLITE_IOERR_FSYNC, "the third piece cannot be synced");
    ok(vfs_hit(), "it was that one");
    vfs_heal();
    is_u64(rows(other), 2 * ROWS, "nothing is committed");
    is_u64(fill(db), SQLITE_OK, "the next try is");

    vfs_plan(VFS_EIO, VFS_SYNC, VFS_DB, 3, false);
    is_u64(checkpoint(db), SQLITE_IOERR_FSYNC, "nor can one of the copy");
    vfs_heal();
    is_u64(rows(other), 3 * ROWS, "which loses nothing");
    is_u64(checkpoint(db), SQLITE_OK, "and is made again");

    (void) sqlite3_close(other);
    (void) sqlite3_close(db);

    db = open_with(NULL, "");
    is_u64(rows(db), 3 * ROWS, "all of it is there in the end");
    (void) sqlite3_close(db);
    ledger_shell("rm -r '%s'", dir);

    return done_testing();
}
