
/*
 * SQLite VFSes that write a WAL otherwise; for src/store and src/history.
 *
 * SQLite writes each frame of a WAL in two pieces, 24 bytes and a page, and a
 * commit has a dozen frames: two dozen system calls, each touching pages that
 * the one before has touched.  Here they are gathered and go out as one write
 * when the commit is synced.
 *
 * Nothing else changes: whatever asks about the file (read, size, truncate,
 * sync, close) writes first.  An error of that write is the error of the call
 * that caused it, so a commit whose frames did not get out fails at its sync,
 * before its end is published in the WAL index.
 */

#ifndef RON_WAL_VFS_H
#define RON_WAL_VFS_H


#include <sqlite3.h>


/*
 * The name of a VFS that does this over the VFS `base` (NULL: the default);
 * `base` itself when it cannot be had.  It lives as long as the process.
 */
const char *ron_wal_vfs(const char *base);

/*
 * One that gathers nothing, for a commit without a sync must be written when it
 * is published, and syncs a log or database whenever 512 KiB went to it: many
 * megabytes at once would hold up the syncs of another file, which somebody
 * waits for.
 */
const char *ron_wal_vfs_paced(const char *base);

/*
 * Calls `rest` whenever it has synced so much; the connection has read before,
 * so that its log is open.
 */
void ron_wal_vfs_rest(sqlite3 *db, void (*rest)(void *ctx), void *ctx);


#endif /* RON_WAL_VFS_H */
