
#include "lib_vfs.h"
#include "ron_seed.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define VFS_NODES   512
#define VFS_SECTOR  512


typedef enum {
    ENTRY_WRITE = 1,
    ENTRY_CUT,
    ENTRY_SYNC,
    ENTRY_LINK,
    ENTRY_RENAME,
    ENTRY_UNLINK,
    ENTRY_DIRSYNC
} vfs_entry_type_t;


/* One change.  `off` is the new size of a cut; a lost write never lands. */
typedef struct {
    vfs_entry_type_t  type;
    int               node;
    bool              lost;
    uint64_t          off;
    size_t            len;
    uint8_t          *data;
    char              name[40];
    char              to[40];
} vfs_entry_t;


typedef struct {
    char  name[40];                 /* empty: without a name by now */
} vfs_node_t;


typedef struct {
    sqlite3_file        base;
    int                 node;
    bool                fresh;
    vfs_file_class_t    class;
    sqlite3_file       *real;       /* behind this one in memory */
} vfs_sqlite_file_t;


static pthread_mutex_t  vfs_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t         vfs_counts[VFS_OP_N][VFS_FILE_N];
static bool             vfs_real_sync;
static _Atomic bool     vfs_recording;
static bool             vfs_no_syncs;

static struct {
    vfs_fault_t         fault;
    vfs_op_t            op;
    vfs_file_class_t    file;
    uint64_t            n;
    bool                sticky;
    bool                hit;
} vfs_planned;

static struct {
    uint64_t            n;
    uint64_t            steps;
    void              (*fn)(void *ctx);
    void               *ctx;
    bool                done;
} vfs_middle;

static vfs_entry_t     *vfs_trace;
static size_t           vfs_trace_n;
static size_t           vfs_trace_cap;
static vfs_node_t       vfs_nodes[VFS_NODES];
static int              vfs_node_n;


/* ---- plan --------------------------------------------------------------- */


void
vfs_reset(void)
{
    for (size_t i = 0; i < vfs_trace_n; i++) {
        free(vfs_trace[i].data);
    }

    free(vfs_trace);
    vfs_trace = NULL;
    vfs_trace_n = 0;
    vfs_trace_cap = 0;
    vfs_node_n = 0;
    vfs_recording = false;
    vfs_no_syncs = false;

    vfs_heal();
}


void
vfs_heal(void)
{
    pthread_mutex_lock(&vfs_mutex);
    memset(&vfs_planned, 0, sizeof(vfs_planned));
    memset(vfs_counts, 0, sizeof(vfs_counts));
    pthread_mutex_unlock(&vfs_mutex);
}


void
vfs_plan(vfs_fault_t fault, vfs_op_t op, vfs_file_class_t file, uint64_t n,
    bool sticky)
{
    vfs_heal();

    pthread_mutex_lock(&vfs_mutex);
    vfs_planned.fault = fault;
    vfs_planned.op = op;
    vfs_planned.file = file;
    vfs_planned.n = n;
    vfs_planned.sticky = sticky;
    pthread_mutex_unlock(&vfs_mutex);
}


bool
vfs_hit(void)
{
    bool  hit;

    pthread_mutex_lock(&vfs_mutex);
    hit = vfs_planned.hit;
    pthread_mutex_unlock(&vfs_mutex);

    return hit;
}


uint64_t
vfs_count(vfs_op_t op, vfs_file_class_t file)
{
    uint64_t  n;

    pthread_mutex_lock(&vfs_mutex);
    n = vfs_counts[op][file];
    pthread_mutex_unlock(&vfs_mutex);

    return n;
}


void
vfs_between(uint64_t n, void (*fn)(void *ctx), void *ctx)
{
    memset(&vfs_middle, 0, sizeof(vfs_middle));

    vfs_middle.n = n;
    vfs_middle.fn = fn;
    vfs_middle.ctx = ctx;
}


bool
vfs_between_done(void)
{
    return vfs_middle.done;
}


static void
vfs_step(void)
{
    if (vfs_middle.fn != NULL && !vfs_middle.done
        && ++vfs_middle.steps == vfs_middle.n)
    {
        vfs_middle.done = true;
        vfs_middle.fn(vfs_middle.ctx);
    }
}


vfs_fault_t
vfs_next(vfs_op_t op, vfs_file_class_t file)
{
    uint64_t      n;
    vfs_fault_t   fault;

    fault = VFS_NONE;

    vfs_step();

    pthread_mutex_lock(&vfs_mutex);

    vfs_counts[op][file]++;

    if (file != VFS_PORT) {
        vfs_counts[op][VFS_ANY]++;
    }

    n = vfs_counts[op][vfs_planned.file];

    if (vfs_planned.fault != VFS_NONE && vfs_planned.op == op
        && (vfs_planned.file == file
            || (vfs_planned.file == VFS_ANY && file != VFS_PORT))
        && (n == vfs_planned.n || (vfs_planned.sticky && n > vfs_planned.n)))
    {
        vfs_planned.hit = true;
        fault = vfs_planned.fault;
    }

    pthread_mutex_unlock(&vfs_mutex);

    return fault;
}


void
vfs_sync_for_real(bool real)
{
    vfs_real_sync = real;
}


/* ---- recorder ----------------------------------------------------------- */


void
vfs_record(bool on)
{
    vfs_recording = on;
}


void
vfs_ignore_syncs(bool ignore)
{
    vfs_no_syncs = ignore;
}


size_t
vfs_trace_len(void)
{
    size_t  n;

    pthread_mutex_lock(&vfs_mutex);
    n = vfs_trace_n;
    pthread_mutex_unlock(&vfs_mutex);

    return n;
}


/* Call with the mutex held. */
static vfs_entry_t *
vfs_entry(vfs_entry_type_t type, int node)
{
    vfs_entry_t  *e;

    if (vfs_trace_n == vfs_trace_cap) {
        vfs_trace_cap = vfs_trace_cap ? 2 * vfs_trace_cap : 1024;
        vfs_trace = realloc(vfs_trace, vfs_trace_cap * sizeof(vfs_entry_t));
        RON_ASSERT(vfs_trace != NULL);
    }

    e = &vfs_trace[vfs_trace_n++];
    memset(e, 0, sizeof(vfs_entry_t));
    e->type = type;
    e->node = node;

    return e;
}


static const char *
vfs_basename(const char *path)
{
    const char  *slash;

    slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}


static int
vfs_node_find(const char *name)
{
    for (int i = 0; i < vfs_node_n; i++) {
        if (strcmp(vfs_nodes[i].name, name) == 0) {
            return i;
        }
    }

    return -1;
}


int
vfs_node(const char *path, bool create)
{
    int           node;
    const char   *name;
    vfs_entry_t  *e;

    if (!vfs_recording) {
        return -1;
    }

    name = vfs_basename(path);

    pthread_mutex_lock(&vfs_mutex);

    node = vfs_node_find(name);

    if (node == -1 && create) {
        RON_ASSERT(vfs_node_n < VFS_NODES);
        node = vfs_node_n++;
        snprintf(vfs_nodes[node].name, sizeof(vfs_nodes[node].name), "%s",
                 name);
        e = vfs_entry(ENTRY_LINK, node);
        snprintf(e->name, sizeof(e->name), "%s", name);
    }

    pthread_mutex_unlock(&vfs_mutex);

    return node;
}


void
vfs_wrote(int node, const void *data, size_t len, uint64_t off)
{
    vfs_entry_t  *e;

    if (!vfs_recording || node < 0) {
        return;
    }

    pthread_mutex_lock(&vfs_mutex);
    e = vfs_entry(ENTRY_WRITE, node);
    e->off = off;
    e->len = len;
    e->data = malloc(len + 1);
    RON_ASSERT(e->data != NULL);
    memcpy(e->data, data, len);
    pthread_mutex_unlock(&vfs_mutex);
}


static void
vfs_put(vfs_entry_type_t type, int node, uint64_t off)
{
    if (vfs_recording && node >= 0) {
        pthread_mutex_lock(&vfs_mutex);
        vfs_entry(type, node)->off = off;
        pthread_mutex_unlock(&vfs_mutex);
    }
}


void
vfs_cut(int node, uint64_t size)
{
    vfs_put(ENTRY_CUT, node, size);
}


void
vfs_synced(int node)
{
    vfs_put(ENTRY_SYNC, node, 0);
}


void
vfs_dir_synced(void)
{
    vfs_put(ENTRY_DIRSYNC, 0, 0);
}


/* What the failed sync should have written will never be, unless again. */

void
vfs_lost(int node)
{
    pthread_mutex_lock(&vfs_mutex);

    for (size_t i = vfs_trace_n; vfs_recording && i-- > 0; ) {
        if (vfs_trace[i].node != node) {
            continue;
        }

        if (vfs_trace[i].type == ENTRY_SYNC) {
            break;
        }

        vfs_trace[i].lost |= (vfs_trace[i].type == ENTRY_WRITE);
    }

    pthread_mutex_unlock(&vfs_mutex);
}


void
vfs_renamed(const char *from, const char *to)
{
    int           node, over;
    vfs_entry_t  *e;

    if (!vfs_recording) {
        return;
    }

    from = vfs_basename(from);
    to = vfs_basename(to);

    pthread_mutex_lock(&vfs_mutex);

    node = vfs_node_find(from);
    over = vfs_node_find(to);

    if (over >= 0) {
        vfs_nodes[over].name[0] = '\0';
    }

    if (node >= 0) {
        snprintf(vfs_nodes[node].name, sizeof(vfs_nodes[node].name), "%s", to);
        e = vfs_entry(ENTRY_RENAME, node);
        snprintf(e->name, sizeof(e->name), "%s", from);
        snprintf(e->to, sizeof(e->to), "%s", to);
    }

    pthread_mutex_unlock(&vfs_mutex);
}


void
vfs_removed(const char *name)
{
    int           node;
    vfs_entry_t  *e;

    if (!vfs_recording) {
        return;
    }

    name = vfs_basename(name);

    pthread_mutex_lock(&vfs_mutex);

    node = vfs_node_find(name);

    if (node >= 0) {
        vfs_nodes[node].name[0] = '\0';
        e = vfs_entry(ENTRY_UNLINK, node);
        snprintf(e->name, sizeof(e->name), "%s", name);
    }

    pthread_mutex_unlock(&vfs_mutex);
}


/* ---- what a disk may hold ----------------------------------------------- */


/* Sectors are those of the disk: they begin at multiples of their size. */

static bool
vfs_land(int fd, const vfs_entry_t *e, bool torn, uint64_t *rnd)
{
    size_t    n;
    uint64_t  at, end;

    if (e->type == ENTRY_CUT) {
        return ftruncate(fd, (off_t) e->off) == 0;
    }

    for (size_t done = 0; done < e->len; done += n) {
        at = e->off + done;
        end = (at / VFS_SECTOR + 1) * VFS_SECTOR;
        n = ron_min((size_t) (end - at), e->len - done);

        if (torn && ron_seed_next(rnd) % 2 == 0) {
            continue;
        }

        if (pwrite(fd, e->data + done, n, (off_t) at) != (ssize_t) n) {
            return false;
        }
    }

    return true;
}


static bool
vfs_rebuild_node(int node, int fd, size_t cut, vfs_mode_t mode,
    uint64_t *rnd)
{
    bool          torn;
    size_t        i, sure, unsure, keep, k;
    vfs_entry_t  *e;

    sure = 0;
    unsure = 0;

    for (i = 0; i < cut; i++) {
        if (vfs_trace[i].node == node && vfs_trace[i].type == ENTRY_SYNC
            && !vfs_no_syncs)
        {
            sure = i + 1;
            unsure = 0;

        } else if (vfs_trace[i].node == node
                   && vfs_trace[i].type <= ENTRY_CUT)
        {
            unsure++;
        }
    }

    keep = unsure ? ron_seed_next(rnd) % (unsure + 1) : 0;
    k = 0;

    for (i = 0; i < cut; i++) {
        e = &vfs_trace[i];

        if (e->node != node || e->lost
            || (e->type != ENTRY_WRITE && e->type != ENTRY_CUT))
        {
            continue;
        }

        torn = false;

        if (i >= sure) {
            k++;

            if (mode == VFS_DROP || (mode == VFS_PREFIX && k > keep)) {
                return true;
            }

            if (mode == VFS_PREFIX) {
                torn = (k == keep);

            } else if (mode == VFS_RANDOM) {
                if (ron_seed_next(rnd) % 3 == 0) {
                    continue;
                }

                torn = ron_seed_next(rnd) % 4 == 0;
            }
        }

        if (!vfs_land(fd, e, torn, rnd)) {
            return false;
        }
    }

    return true;
}


/* Names, after so many of the changes to them. */

static void
vfs_rebuild_names(size_t cut, vfs_mode_t mode, uint64_t *rnd,
    char names[VFS_NODES][40])
{
    size_t        i, sure, unsure, keep, k;
    vfs_entry_t  *e;

    sure = 0;
    unsure = 0;

    for (i = 0; i < cut; i++) {
        if (vfs_trace[i].type == ENTRY_DIRSYNC) {
            sure = i + 1;
            unsure = 0;

        } else if (vfs_trace[i].type >= ENTRY_LINK) {
            unsure++;
        }
    }

    keep = (mode == VFS_DROP) ? 0 : (mode == VFS_KEEP) ? unsure
           : ron_seed_next(rnd) % (unsure + 1);
    k = 0;

    memset(names, 0, VFS_NODES * sizeof(names[0]));

    for (i = 0; i < cut; i++) {
        e = &vfs_trace[i];

        if (e->type < ENTRY_LINK || (i >= sure && ++k > keep)) {
            continue;
        }

        if (e->type == ENTRY_LINK) {
            memcpy(names[e->node], e->name, sizeof(names[0]));

        } else if (e->type == ENTRY_RENAME) {
            for (int n = 0; n < VFS_NODES; n++) {
                if (strcmp(names[n], e->to) == 0) {
                    names[n][0] = '\0';
                }
            }

            memcpy(names[e->node], e->to, sizeof(names[0]));

        } else if (e->type == ENTRY_UNLINK) {
            names[e->node][0] = '\0';
        }
    }
}


bool
vfs_rebuild(size_t cut, vfs_mode_t mode, uint64_t seed, const char *dir)
{
    int          fd;
    bool         good;
    char         path[512];
    uint64_t     rnd;
    static char  names[VFS_NODES][40];

    rnd = seed;
    good = true;

    pthread_mutex_lock(&vfs_mutex);

    vfs_rebuild_names(cut, mode, &rnd, names);

    for (int node = 0; node < vfs_node_n && good; node++) {
        if (names[node][0] == '\0') {
            continue;
        }

        snprintf(path, sizeof(path), "%s/%.39s", dir, names[node]);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        good = fd != -1 && vfs_rebuild_node(node, fd, cut, mode, &rnd);

        if (fd != -1) {
            close(fd);
        }
    }

    pthread_mutex_unlock(&vfs_mutex);

    return good;
}


/* ---- the VFS ------------------------------------------------------------ */


static int
vfs_close(sqlite3_file *file)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    return f->real->pMethods->xClose(f->real);
}


static int
vfs_read(sqlite3_file *file, void *buf, int len, sqlite3_int64 off)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    if (vfs_next(VFS_READ, f->class) != VFS_NONE) {
        return SQLITE_IOERR_READ;
    }

    return f->real->pMethods->xRead(f->real, buf, len, off);
}


static int
vfs_write(sqlite3_file *file, const void *buf, int len, sqlite3_int64 off)
{
    int                 rc, done;
    vfs_fault_t         fault;
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    fault = vfs_next(VFS_WRITE, f->class);

    done = (fault == VFS_NONE || fault == VFS_LATE) ? len
           : (fault == VFS_SHORT || fault == VFS_FULL_SHORT) ? len / 2 : 0;

    rc = SQLITE_OK;

    if (done > 0) {
        rc = f->real->pMethods->xWrite(f->real, buf, done, off);
        vfs_wrote(f->node, buf, (size_t) done, (uint64_t) off);
    }

    switch (fault) {
    case VFS_NONE:
        return rc;
    case VFS_FULL:
    case VFS_FULL_SHORT:
        return SQLITE_FULL;
    default:
        return SQLITE_IOERR_WRITE;
    }
}


static int
vfs_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    if (vfs_next(VFS_TRUNCATE, f->class) != VFS_NONE) {
        return SQLITE_IOERR_TRUNCATE;
    }

    vfs_cut(f->node, (uint64_t) size);

    return f->real->pMethods->xTruncate(f->real, size);
}


static int
vfs_sync(sqlite3_file *file, int flags)
{
    int                 rc;
    vfs_fault_t         fault;
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    fault = vfs_next(VFS_SYNC, f->class);

    if (fault == VFS_LOST) {
        vfs_lost(f->node);
    }

    if (fault != VFS_NONE) {
        return SQLITE_IOERR_FSYNC;
    }

    rc = vfs_real_sync ? f->real->pMethods->xSync(f->real, flags)
                       : SQLITE_OK;

    if (rc == SQLITE_OK) {
        vfs_synced(f->node);

        if (f->fresh) {

            /* SQLite syncs the directory with a log that it has made. */

            vfs_dir_synced();
            f->fresh = false;
        }
    }

    return rc;
}


static int
vfs_size(sqlite3_file *file, sqlite3_int64 *size)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    vfs_step();

    return f->real->pMethods->xFileSize(f->real, size);
}


static int
vfs_lock(sqlite3_file *file, int level)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    vfs_step();

    return f->real->pMethods->xLock(f->real, level);
}


static int
vfs_unlock(sqlite3_file *file, int level)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    vfs_step();

    return f->real->pMethods->xUnlock(f->real, level);
}


static int
vfs_reserved(sqlite3_file *file, int *out)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    return f->real->pMethods->xCheckReservedLock(f->real, out);
}


static int
vfs_control(sqlite3_file *file, int op, void *arg)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    return f->real->pMethods->xFileControl(f->real, op, arg);
}


static int
vfs_sector(sqlite3_file *file)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    return f->real->pMethods->xSectorSize(f->real);
}


static int
vfs_device(sqlite3_file *file)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    return f->real->pMethods->xDeviceCharacteristics(f->real);
}


static int
vfs_shm_map(sqlite3_file *file, int page, int size, int extend,
    void volatile **p)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    return f->real->pMethods->xShmMap(f->real, page, size, extend, p);
}


static int
vfs_shm_lock(sqlite3_file *file, int off, int n, int flags)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    vfs_step();

    return f->real->pMethods->xShmLock(f->real, off, n, flags);
}


static void
vfs_shm_barrier(sqlite3_file *file)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    f->real->pMethods->xShmBarrier(f->real);
}


static int
vfs_shm_unmap(sqlite3_file *file, int gone)
{
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    return f->real->pMethods->xShmUnmap(f->real, gone);
}


static const sqlite3_io_methods  vfs_methods = {
    .iVersion = 2,
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_unlock,
    .xCheckReservedLock = vfs_reserved,
    .xFileControl = vfs_control,
    .xSectorSize = vfs_sector,
    .xDeviceCharacteristics = vfs_device,
    .xShmMap = vfs_shm_map,
    .xShmLock = vfs_shm_lock,
    .xShmBarrier = vfs_shm_barrier,
    .xShmUnmap = vfs_shm_unmap,
};


static int
vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
    int *out)
{
    int                 rc;
    sqlite3_vfs        *real = vfs->pAppData;
    vfs_sqlite_file_t  *f = (vfs_sqlite_file_t *) file;

    memset(f, 0, sizeof(vfs_sqlite_file_t));

    f->real = (sqlite3_file *) (f + 1);
    f->class = (flags & SQLITE_OPEN_WAL) ? VFS_WAL
               : (flags & SQLITE_OPEN_MAIN_DB) ? VFS_DB : VFS_JOURNAL;
    f->node = -1;

    rc = real->xOpen(real, name, f->real, flags, out);

    if (rc == SQLITE_OK) {
        f->base.pMethods = &vfs_methods;

        if (name != NULL) {
            f->fresh = vfs_node(name, false) == -1;
            f->node = vfs_node(name, (flags & SQLITE_OPEN_READWRITE) != 0);
        }
    }

    return rc;
}


static int
vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
    int           rc;
    sqlite3_vfs  *real = vfs->pAppData;

    rc = real->xDelete(real, name, 0);

    if (rc == SQLITE_OK) {
        vfs_removed(name);

        if (sync_dir) {
            vfs_dir_synced();
        }
    }

    return rc;
}


static int
vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    sqlite3_vfs  *real = vfs->pAppData;

    return real->xAccess(real, name, flags, out);
}


static int
vfs_full_path(sqlite3_vfs *vfs, const char *name, int n, char *out)
{
    sqlite3_vfs  *real = vfs->pAppData;

    return real->xFullPathname(real, name, n, out);
}


static int
vfs_randomness(sqlite3_vfs *vfs, int n, char *out)
{
    sqlite3_vfs  *real = vfs->pAppData;

    return real->xRandomness(real, n, out);
}


static int
vfs_sleep(sqlite3_vfs *vfs, int us)
{
    sqlite3_vfs  *real = vfs->pAppData;

    return vfs_middle.fn != NULL ? us : real->xSleep(real, us);
}


static int
vfs_time(sqlite3_vfs *vfs, double *now)
{
    sqlite3_vfs  *real = vfs->pAppData;

    return real->xCurrentTime(real, now);
}


static int
vfs_last_error(sqlite3_vfs *vfs, int n, char *out)
{
    sqlite3_vfs  *real = vfs->pAppData;

    return real->xGetLastError(real, n, out);
}


void
vfs_register(void)
{
    sqlite3_vfs         *real;
    static sqlite3_vfs   vfs;

    if (vfs.zName != NULL) {
        return;
    }

    real = sqlite3_vfs_find(NULL);
    RON_ASSERT(real != NULL);

    vfs.iVersion = 1;
    vfs.szOsFile = (int) sizeof(vfs_sqlite_file_t) + real->szOsFile;
    vfs.mxPathname = real->mxPathname;
    vfs.zName = VFS_NAME;
    vfs.pAppData = real;
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    vfs.xAccess = vfs_access;
    vfs.xFullPathname = vfs_full_path;
    vfs.xRandomness = vfs_randomness;
    vfs.xSleep = vfs_sleep;
    vfs.xCurrentTime = vfs_time;
    vfs.xGetLastError = vfs_last_error;

    RON_ASSERT(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}
