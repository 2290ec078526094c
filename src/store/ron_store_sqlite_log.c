
/*
 * The WAL, when a writer takes over.
 *
 * A sync that failed, here or in a writer that is gone, may have left pages
 * that are read from the cache and are not on the disk, and that no later
 * sync will write: they are not dirty.  To append behind such a hole would be
 * to promise what a power cut takes away.  So a new writer writes the WAL
 * over itself and syncs it, before anything is appended.
 *
 * Two things can be between the bytes that are read and the same bytes that
 * are written back.
 *
 * Another writer.  The ledger's lock keeps it out, and where that was lost
 * the journal refuses its rows, but not before we have raised the epoch.  A
 * commit of its that came between our read and our write would be gone after
 * it was acknowledged.  Hence SQLite's own locks: nobody appends to the WAL,
 * restarts it or copies from it meanwhile.
 *
 * The cache.  What failed to be synced may be dropped from it at any time,
 * while the index in shared memory, which lives for as long as anybody has
 * the database open, still says that those frames are there.  Whoever
 * believes it reads whatever lies in their place, and the next checkpoint
 * copies that into ledger.db.  So the index is declared invalid while we hold
 * the locks, and whoever reads next makes it of the frames that are whole: a
 * frame is one only if its checksum, which goes on from that of the frame
 * before, is right.  This is what SQLite does after a crash, and what all
 * readers are ready for.  It is as necessary when our own sync fails.
 *
 * The format is that of sqlite.org/walformat.html: two copies of a header of
 * 48 bytes at the beginning of the index, neither of which counts if it is
 * not the other; eight locks, first the one to write, then the one to
 * checkpoint.
 */

#include "ron_store_sqlite.h"
#include "ron_port.h"

#include <stdlib.h>


/* What is read and written at a time. */
#define RON_SQLITE_COPY         ((size_t) 256 << 10)

#define RON_SQLITE_LOG_NAP      1000

#define RON_SQLITE_INDEX_SIZE   32768
#define RON_SQLITE_INDEX_HEAD   (2 * 48)
#define RON_SQLITE_INDEX_LOCK   0           /* to write, to checkpoint */
#define RON_SQLITE_INDEX_LOCKS  2


static ron_status_t ron_sqlite_log_index(ron_sqlite_t *s, sqlite3_file *file);
static ron_status_t ron_sqlite_log_lock(ron_sqlite_t *s, sqlite3_file *file);
static ron_status_t ron_sqlite_log_copy(ron_sqlite_t *s);
static ron_status_t ron_sqlite_log_failed(ron_sqlite_t *s, const char *what,
    int rc);


ron_status_t
ron_sqlite_log_again(ron_sqlite_t *s)
{
    ron_status_t   status;
    sqlite3_file  *file;

    file = NULL;

    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &file)
        != SQLITE_OK
        || file == NULL || file->pMethods == NULL
        || file->pMethods->iVersion < 2)
    {
        ron_store_say(s->base.error, "%s/" RON_SQLITE_DB ": SQLite's files "
                      "cannot be locked", s->dir);
        return RON_EIO;
    }

    status = ron_sqlite_log_index(s, file);

    (void) file->pMethods->xShmUnmap(file, 0);

    return status;
}


static ron_status_t
ron_sqlite_log_index(ron_sqlite_t *s, sqlite3_file *file)
{
    int             rc;
    size_t          i;
    ron_status_t    status;
    void volatile  *index;

    index = NULL;

    rc = file->pMethods->xShmMap(file, 0, RON_SQLITE_INDEX_SIZE, 1, &index);

    if (rc != SQLITE_OK || index == NULL) {
        return ron_sqlite_log_failed(s, "map", rc);
    }

    status = ron_sqlite_log_lock(s, file);

    if (status != RON_OK) {
        return status;
    }

    status = ron_sqlite_log_copy(s);

    for (i = 0; i < RON_SQLITE_INDEX_HEAD; i++) {
        ((uint8_t volatile *) index)[i] = 0;
    }

    file->pMethods->xShmBarrier(file);

    (void) file->pMethods->xShmLock(file, RON_SQLITE_INDEX_LOCK,
                                    RON_SQLITE_INDEX_LOCKS,
                                    SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);

    return status;
}


/* Readers that make the index have these locks too, for a moment. */

static ron_status_t
ron_sqlite_log_lock(ron_sqlite_t *s, sqlite3_file *file)
{
    int       rc;
    uint64_t  since_us;

    since_us = ron_clock_mono_us();

    for ( ;; ) {
        rc = file->pMethods->xShmLock(file, RON_SQLITE_INDEX_LOCK,
                                      RON_SQLITE_INDEX_LOCKS,
                                      SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE);
        if (rc == SQLITE_OK) {
            return RON_OK;
        }

        if (rc != SQLITE_BUSY
            || ron_clock_mono_us() - since_us
               > (uint64_t) RON_SQLITE_WRITE_BUSY * 1000)
        {
            return ron_sqlite_log_failed(s, "lock", rc);
        }

        ron_sleep_us(RON_SQLITE_LOG_NAP);
    }
}


static ron_status_t
ron_sqlite_log_copy(ron_sqlite_t *s)
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
ron_sqlite_log_failed(ron_sqlite_t *s, const char *what, int rc)
{
    ron_store_say(s->base.error, "%s/" RON_SQLITE_DB "-shm: %s: %s (sqlite "
                  "%d, errno %d)%s", s->dir, what, sqlite3_errstr(rc), rc,
                  sqlite3_system_errno(s->db),
                  rc == SQLITE_BUSY ? "" : RON_SQLITE_FIX);

    return rc == SQLITE_BUSY ? RON_AGAIN
           : rc == SQLITE_NOMEM ? RON_ENOMEM : RON_EIO;
}
