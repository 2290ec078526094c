
#include "ron_wal_vfs.h"
#include "ron.h"

#include <stdio.h>
#include <stdlib.h>


/* SQLite writes at most 128 KiB less one byte in one call. */
#define RON_WAL_GATHER    (64 * 1024)
#define RON_WAL_PACE      (512 * 1024)
#define RON_WAL_VFS_NAME  64


typedef struct {
    sqlite3_file    base;
    sqlite3_file   *real;
    uint8_t        *buf;            /* NULL: nothing is gathered */
    size_t          len;
    sqlite3_int64   off;            /* of what is gathered */
    size_t          pace;           /* SIZE_MAX: synced when SQLite says so */
    size_t          unsynced;
    bool            durable;        /* all that was ever written here */
    void          (*rest)(void *ctx);
    void           *rest_ctx;
} ron_wal_file_t;


typedef struct {
    sqlite3_vfs     vfs;
    sqlite3_vfs    *base;
    bool            paced;
    char            name[RON_WAL_VFS_NAME];
} ron_wal_vfs_t;


static int ron_wal_flush(ron_wal_file_t *f);
static int ron_wal_put(ron_wal_file_t *f, const void *data, size_t n,
    sqlite3_int64 off);
static int ron_wal_close(sqlite3_file *file);
static int ron_wal_read(sqlite3_file *file, void *buf, int n,
    sqlite3_int64 off);
static int ron_wal_write(sqlite3_file *file, const void *data, int n,
    sqlite3_int64 off);
static int ron_wal_truncate(sqlite3_file *file, sqlite3_int64 size);
static int ron_wal_sync(sqlite3_file *file, int flags);
static int ron_wal_size(sqlite3_file *file, sqlite3_int64 *size);
static int ron_wal_lock(sqlite3_file *file, int lock);
static int ron_wal_unlock(sqlite3_file *file, int lock);
static int ron_wal_check_lock(sqlite3_file *file, int *held);
static int ron_wal_control(sqlite3_file *file, int op, void *arg);
static int ron_wal_sector(sqlite3_file *file);
static int ron_wal_traits(sqlite3_file *file);
static int ron_wal_open(sqlite3_vfs *vfs, const char *path,
    sqlite3_file *file, int flags, int *out);
static int ron_wal_delete(sqlite3_vfs *vfs, const char *path, int sync);
static int ron_wal_access(sqlite3_vfs *vfs, const char *path, int flags,
    int *out);
static int ron_wal_full_path(sqlite3_vfs *vfs, const char *path, int n,
    char *out);
static int ron_wal_random(sqlite3_vfs *vfs, int n, char *out);
static int ron_wal_sleep(sqlite3_vfs *vfs, int us);
static int ron_wal_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ms);
static int ron_wal_error(sqlite3_vfs *vfs, int n, char *out);
static int ron_wal_shm_map(sqlite3_file *file, int page, int size, int extend,
    void volatile **p);
static int ron_wal_shm_lock(sqlite3_file *file, int off, int n, int flags);
static void ron_wal_shm_barrier(sqlite3_file *file);
static int ron_wal_shm_unmap(sqlite3_file *file, int unlink);
static const char *ron_wal_find(const char *base, bool paced);
static const char *ron_wal_make(sqlite3_vfs *base, const char *name,
    bool paced);


/* Version 2: the index of a WAL is its database's, and nothing is mapped. */

static const sqlite3_io_methods  ron_wal_methods = {
    .iVersion = 2,
    .xClose = ron_wal_close,
    .xRead = ron_wal_read,
    .xWrite = ron_wal_write,
    .xTruncate = ron_wal_truncate,
    .xSync = ron_wal_sync,
    .xFileSize = ron_wal_size,
    .xLock = ron_wal_lock,
    .xUnlock = ron_wal_unlock,
    .xCheckReservedLock = ron_wal_check_lock,
    .xFileControl = ron_wal_control,
    .xSectorSize = ron_wal_sector,
    .xDeviceCharacteristics = ron_wal_traits,
    .xShmMap = ron_wal_shm_map,
    .xShmLock = ron_wal_shm_lock,
    .xShmBarrier = ron_wal_shm_barrier,
    .xShmUnmap = ron_wal_shm_unmap
};


const char *
ron_wal_vfs(const char *base)
{
    return ron_wal_find(base, false);
}


const char *
ron_wal_vfs_paced(const char *base)
{
    return ron_wal_find(base, true);
}


static const char *
ron_wal_find(const char *base, bool paced)
{
    char          name[RON_WAL_VFS_NAME];
    const char   *made;
    sqlite3_vfs  *vfs, *there;

    vfs = sqlite3_vfs_find(base);
    if (vfs == NULL) {
        return base;
    }

    (void) snprintf(name, sizeof(name), "ron-%s%s", paced ? "paced-" : "",
                    vfs->zName);
    there = sqlite3_vfs_find(name);

    if (there != NULL) {
        return there->zName;
    }

    made = ron_wal_make(vfs, name, paced);

    return made != NULL ? made : base;
}


void
ron_wal_vfs_rest(sqlite3 *db, void (*rest)(void *ctx), void *ctx)
{
    sqlite3_file      *file;
    ron_wal_file_t    *f;
    static const int   which[] = {
        SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER
    };

    for (unsigned i = 0; i < ron_array_n(which); i++) {
        file = NULL;

        if (sqlite3_file_control(db, "main", which[i], &file) != SQLITE_OK
            || file == NULL || file->pMethods != &ron_wal_methods)
        {
            continue;
        }

        f = (ron_wal_file_t *) file;
        f->rest = rest;
        f->rest_ctx = ctx;
    }
}


/*
 * The base with another way to open.  Everything else is passed on with the
 * pointer of the base, which may look itself up by it.  Two threads that come
 * here at once make two of the same name: SQLite keeps the later, both work.
 */

static const char *
ron_wal_make(sqlite3_vfs *base, const char *name, bool paced)
{
    ron_wal_vfs_t  *made;

    made = calloc(1, sizeof(ron_wal_vfs_t));
    if (made == NULL) {
        return NULL;
    }

    (void) snprintf(made->name, sizeof(made->name), "%s", name);

    made->base = base;
    made->paced = paced;
    made->vfs = (sqlite3_vfs) {
        .iVersion = ron_min(base->iVersion, 2),
        .szOsFile = (int) sizeof(ron_wal_file_t) + base->szOsFile,
        .mxPathname = base->mxPathname,
        .zName = made->name,
        .xOpen = ron_wal_open,
        .xDelete = ron_wal_delete,
        .xAccess = ron_wal_access,
        .xFullPathname = ron_wal_full_path,
        .xRandomness = ron_wal_random,
        .xSleep = ron_wal_sleep,
        .xCurrentTime = base->xCurrentTime,
        .xGetLastError = ron_wal_error,
        .xCurrentTimeInt64 = base->iVersion >= 2 ? ron_wal_time_ms : NULL
    };

    if (sqlite3_vfs_register(&made->vfs, 0) != SQLITE_OK) {
        free(made);
        return NULL;
    }

    return made->name;
}


static int
ron_wal_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file,
    int flags, int *out)
{
    int              rc;
    bool             paced;
    sqlite3_vfs     *base;
    ron_wal_file_t  *f;

    base = ((ron_wal_vfs_t *) vfs)->base;
    paced = ((ron_wal_vfs_t *) vfs)->paced;

    if (!(flags & SQLITE_OPEN_WAL)
        && !(paced && (flags & SQLITE_OPEN_MAIN_DB)))
    {
        return base->xOpen(base, path, file, flags, out);
    }

    f = (ron_wal_file_t *) file;
    memset(f, 0, sizeof(ron_wal_file_t));

    f->real = (sqlite3_file *) (f + 1);
    f->pace = paced ? RON_WAL_PACE : SIZE_MAX;

    if (!paced) {
        f->buf = malloc(RON_WAL_GATHER);
        if (f->buf == NULL) {
            return SQLITE_NOMEM;
        }
    }

    rc = base->xOpen(base, path, f->real, flags, out);

    if (rc != SQLITE_OK) {
        free(f->buf);
        return rc;
    }

    f->base.pMethods = &ron_wal_methods;

    return SQLITE_OK;
}


static int
ron_wal_flush(ron_wal_file_t *f)
{
    int  rc;

    if (f->len == 0) {
        return SQLITE_OK;
    }

    rc = ron_wal_put(f, f->buf, f->len, f->off);

    /* What did not get out is lost here as it is on the disk. */

    f->len = 0;

    return rc;
}


/* A sync has no more than this to write, and nobody waits long behind it. */

static int
ron_wal_put(ron_wal_file_t *f, const void *data, size_t n, sqlite3_int64 off)
{
    int  rc;

    rc = f->real->pMethods->xWrite(f->real, data, (int) n, off);

    f->durable = false;
    f->unsynced += n;

    if (rc == SQLITE_OK && f->unsynced >= f->pace) {
        f->unsynced = 0;
        rc = f->real->pMethods->xSync(f->real, SQLITE_SYNC_NORMAL);

        if (f->rest != NULL) {
            f->rest(f->rest_ctx);
        }
    }

    return rc;
}


static int
ron_wal_close(sqlite3_file *file)
{
    int              rc, flushed;
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    flushed = ron_wal_flush(f);
    rc = f->real->pMethods->xClose(f->real);
    free(f->buf);

    return rc != SQLITE_OK ? rc : flushed;
}


static int
ron_wal_read(sqlite3_file *file, void *buf, int n, sqlite3_int64 off)
{
    int              rc;
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    rc = ron_wal_flush(f);

    return rc != SQLITE_OK ? rc
                           : f->real->pMethods->xRead(f->real, buf, n, off);
}


static int
ron_wal_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 off)
{
    int              rc;
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    if (f->len != 0 && (off != f->off + (sqlite3_int64) f->len
                        || f->len + (size_t) n > RON_WAL_GATHER))
    {
        rc = ron_wal_flush(f);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }

    if (f->buf == NULL || (size_t) n > RON_WAL_GATHER) {
        return ron_wal_put(f, data, (size_t) n, off);
    }

    if (f->len == 0) {
        f->off = off;
    }

    memcpy(f->buf + f->len, data, (size_t) n);
    f->len += (size_t) n;

    return SQLITE_OK;
}


static int
ron_wal_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int              rc;
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    rc = ron_wal_flush(f);

    f->durable = false;

    return rc != SQLITE_OK ? rc
                           : f->real->pMethods->xTruncate(f->real, size);
}


/*
 * A checkpoint syncs the log that each commit has synced, and the disk would
 * be asked to flush its cache once more for nothing.
 */

static int
ron_wal_sync(sqlite3_file *file, int flags)
{
    int              rc;
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    rc = ron_wal_flush(f);

    f->unsynced = 0;

    if (rc == SQLITE_OK && !f->durable) {
        rc = f->real->pMethods->xSync(f->real, flags);
        f->durable = (rc == SQLITE_OK);
    }

    return rc;
}


static int
ron_wal_size(sqlite3_file *file, sqlite3_int64 *size)
{
    int              rc;
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    rc = ron_wal_flush(f);

    return rc != SQLITE_OK ? rc : f->real->pMethods->xFileSize(f->real, size);
}


static int
ron_wal_lock(sqlite3_file *file, int lock)
{
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    return f->real->pMethods->xLock(f->real, lock);
}


static int
ron_wal_unlock(sqlite3_file *file, int lock)
{
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    return f->real->pMethods->xUnlock(f->real, lock);
}


static int
ron_wal_check_lock(sqlite3_file *file, int *held)
{
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    return f->real->pMethods->xCheckReservedLock(f->real, held);
}


static int
ron_wal_control(sqlite3_file *file, int op, void *arg)
{
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    return f->real->pMethods->xFileControl(f->real, op, arg);
}


static int
ron_wal_sector(sqlite3_file *file)
{
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    return f->real->pMethods->xSectorSize(f->real);
}


static int
ron_wal_traits(sqlite3_file *file)
{
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    return f->real->pMethods->xDeviceCharacteristics(f->real);
}


static int
ron_wal_shm_map(sqlite3_file *file, int page, int size, int extend,
    void volatile **p)
{
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    return f->real->pMethods->xShmMap(f->real, page, size, extend, p);
}


static int
ron_wal_shm_lock(sqlite3_file *file, int off, int n, int flags)
{
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    return f->real->pMethods->xShmLock(f->real, off, n, flags);
}


static void
ron_wal_shm_barrier(sqlite3_file *file)
{
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    f->real->pMethods->xShmBarrier(f->real);
}


static int
ron_wal_shm_unmap(sqlite3_file *file, int unlink)
{
    ron_wal_file_t  *f = (ron_wal_file_t *) file;

    return f->real->pMethods->xShmUnmap(f->real, unlink);
}


/* ---- passed on ---------------------------------------------------------- */


static sqlite3_vfs *
ron_wal_base(sqlite3_vfs *vfs)
{
    return ((ron_wal_vfs_t *) vfs)->base;
}


static int
ron_wal_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    vfs = ron_wal_base(vfs);

    return vfs->xDelete(vfs, path, sync);
}


static int
ron_wal_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    vfs = ron_wal_base(vfs);

    return vfs->xAccess(vfs, path, flags, out);
}


static int
ron_wal_full_path(sqlite3_vfs *vfs, const char *path, int n, char *out)
{
    vfs = ron_wal_base(vfs);

    return vfs->xFullPathname(vfs, path, n, out);
}


static int
ron_wal_random(sqlite3_vfs *vfs, int n, char *out)
{
    vfs = ron_wal_base(vfs);

    return vfs->xRandomness(vfs, n, out);
}


static int
ron_wal_sleep(sqlite3_vfs *vfs, int us)
{
    vfs = ron_wal_base(vfs);

    return vfs->xSleep(vfs, us);
}


static int
ron_wal_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ms)
{
    vfs = ron_wal_base(vfs);

    return vfs->xCurrentTimeInt64(vfs, ms);
}


static int
ron_wal_error(sqlite3_vfs *vfs, int n, char *out)
{
    vfs = ron_wal_base(vfs);

    return vfs->xGetLastError(vfs, n, out);
}
