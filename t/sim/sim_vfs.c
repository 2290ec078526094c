
/*
 * SQLite's VFS on the simulated disk.
 *
 * Locks are those of POSIX as SQLite's own unix VFS shows them: five levels
 * on a file, eight slots on the WAL index.  The index is memory that all
 * processes share and that is emptied by the first who opens it while nobody
 * has it open, so a process that dies in the middle leaves it as it was to
 * those who live.
 */

#include "sim.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>


#define VFS_HANDLES   128
#define VFS_NODES     64
#define VFS_REGIONS   64
#define VFS_SLOTS     SQLITE_SHM_NLOCK


/* What all handles of one database have in common. */
typedef struct {
    sim_file_t  *file;
    char         path[96];
    uint8_t     *region[VFS_REGIONS];
    int          region_n;
    int          region_len;
    uint32_t     shm_users;
} vfs_node_t;

typedef struct {
    sqlite3_file  base;
    sim_file_t   *file;
    vfs_node_t   *node;
    sim_proc_t   *proc;
    char          path[96];
    int           level;
    bool          new_name;             /* its directory is to be synced */
    bool          persist;
    bool          psow;
    bool          wal;
    bool          guarded;              /* the log or the database */
    bool          shm;
    bool          oracle;
    bool          delete;
    uint32_t      shared;               /* slots of the index, as bits */
    uint32_t      exclusive;
} vfs_file_t;


static vfs_node_t   vfs_nodes[VFS_NODES];
static uint32_t     vfs_node_n;
static vfs_file_t  *vfs_files[VFS_HANDLES];
static uint32_t     vfs_file_n;


static vfs_node_t *
vfs_node(const char *path, sim_file_t *file)
{
    uint32_t  i;

    for (i = 0; i < vfs_node_n; i++) {
        if (vfs_nodes[i].file == file) {
            return &vfs_nodes[i];
        }
    }

    RON_ASSERT(vfs_node_n < VFS_NODES);
    vfs_nodes[vfs_node_n].file = file;
    (void) snprintf(vfs_nodes[vfs_node_n].path,
                    sizeof(vfs_nodes[0].path), "%s", path);

    return &vfs_nodes[vfs_node_n++];
}


static void
vfs_leave_shm(vfs_file_t *v)
{
    if (v->shm) {
        v->shm = false;
        v->node->shm_users--;
    }

    v->shared = 0;
    v->exclusive = 0;
}


static void
vfs_forget(vfs_file_t *v)
{
    uint32_t  i;

    vfs_leave_shm(v);

    for (i = 0; i < vfs_file_n; i++) {
        if (vfs_files[i] == v) {
            vfs_files[i] = vfs_files[--vfs_file_n];
            break;
        }
    }
}


void
sim_vfs_proc_died(sim_proc_t *proc)
{
    uint32_t  i;

    for (i = vfs_file_n; i-- > 0; ) {
        if (vfs_files[i]->proc == proc) {
            vfs_forget(vfs_files[i]);
        }
    }
}


void
sim_vfs_power_cut(void)
{
    uint32_t  i;

    RON_ASSERT(vfs_file_n == 0);

    for (i = 0; i < vfs_node_n; i++) {
        RON_ASSERT(vfs_nodes[i].shm_users == 0);
    }
}


uint32_t
sim_vfs_open(const sim_proc_t *proc)
{
    uint32_t  i, n;

    for (i = 0, n = 0; i < vfs_file_n; i++) {
        n += vfs_files[i]->proc == proc;
    }

    return n;
}


/* ---- a file ------------------------------------------------------------- */

static int
vfs_rc(sim_io_t io, int error)
{
    return io == SIM_IO_OK ? SQLITE_OK
           : io == SIM_IO_FULL ? SQLITE_FULL : error;
}


static int
vfs_close(sqlite3_file *file)
{
    vfs_file_t  *v = (vfs_file_t *) file;

    vfs_forget(v);
    sim_file_drop(v->file);

    if (v->delete) {
        (void) sim_disk_unlink(v->path);
    }

    return SQLITE_OK;
}


static int
vfs_read(sqlite3_file *file, void *buf, int len, sqlite3_int64 off)
{
    int64_t      n;
    vfs_file_t  *v = (vfs_file_t *) file;

    sim_point();

    n = sim_file_read(v->file, buf, (size_t) len, (uint64_t) off);

    if (n < 0) {
        return SQLITE_IOERR_READ;
    }

    if (n < len) {
        memset((uint8_t *) buf + n, 0, (size_t) (len - n));
        return SQLITE_IOERR_SHORT_READ;
    }

    return SQLITE_OK;
}


static int
vfs_write(sqlite3_file *file, const void *buf, int len, sqlite3_int64 off)
{
    vfs_file_t  *v = (vfs_file_t *) file;

    sim_point();

    /* one writer: whoever writes holds the ledger's lock, alone */

    sim_check(!v->guarded || sim_proc_locks(v->proc, SIM_DIR),
              "%s writes to the journal without holding the lock alone",
              v->proc ? v->proc->name : "somebody");

    return vfs_rc(sim_file_write(v->file, buf, (size_t) len, (uint64_t) off),
                  SQLITE_IOERR_WRITE);
}


static int
vfs_truncate(sqlite3_file *file, sqlite3_int64 len)
{
    sim_point();

    return vfs_rc(sim_file_cut(((vfs_file_t *) file)->file, (uint64_t) len),
                  SQLITE_IOERR_TRUNCATE);
}


/* The control: the fsync of a commit comes some time after the answer. */

static void
vfs_sync_late(void *arg)
{
    sim_sleep(2000 + sim_below(60000));
    (void) sim_file_flush(arg);
}


static int
vfs_sync(sqlite3_file *file, int flags)
{
    sim_io_t     io;
    vfs_file_t  *v = (vfs_file_t *) file;

    (void) flags;
    sim_point();

    if (sim.lie_early && v->wal) {
        (void) sim_task_start(NULL, "sync", vfs_sync_late, v->file);
        return SQLITE_OK;
    }

    io = sim_file_flush(v->file);

    if (io == SIM_IO_OK && v->new_name) {
        io = sim_dir_flush(v->path, true);
        v->new_name = io != SIM_IO_OK;
    }

    sim_point();

    return vfs_rc(io, SQLITE_IOERR_FSYNC);
}


static int
vfs_size(sqlite3_file *file, sqlite3_int64 *len)
{
    *len = (sqlite3_int64) sim_file_len(((vfs_file_t *) file)->file);

    return SQLITE_OK;
}


static int
vfs_lock(sqlite3_file *file, int level)
{
    uint32_t     i;
    vfs_file_t  *v = (vfs_file_t *) file, *o;

    sim_point();

    if (v->level >= level) {
        return SQLITE_OK;
    }

    for (i = 0; i < vfs_file_n; i++) {
        o = vfs_files[i];

        if (o == v || o->node != v->node) {
            continue;
        }

        if (level == SQLITE_LOCK_SHARED ? o->level >= SQLITE_LOCK_PENDING
            : level == SQLITE_LOCK_RESERVED ? o->level >= SQLITE_LOCK_RESERVED
            : o->level >= SQLITE_LOCK_SHARED)
        {
            if (level == SQLITE_LOCK_EXCLUSIVE
                && v->level == SQLITE_LOCK_RESERVED
                && o->level == SQLITE_LOCK_SHARED)
            {
                v->level = SQLITE_LOCK_PENDING;
            }

            return SQLITE_BUSY;
        }
    }

    v->level = level;

    return SQLITE_OK;
}


static int
vfs_unlock(sqlite3_file *file, int level)
{
    vfs_file_t  *v = (vfs_file_t *) file;

    v->level = ron_min(v->level, level);
    sim_point();

    return SQLITE_OK;
}


static int
vfs_reserved(sqlite3_file *file, int *out)
{
    uint32_t     i;
    vfs_file_t  *v = (vfs_file_t *) file;

    *out = 0;

    for (i = 0; i < vfs_file_n; i++) {
        if (vfs_files[i]->node == v->node
            && vfs_files[i]->level >= SQLITE_LOCK_RESERVED)
        {
            *out = 1;
        }
    }

    return SQLITE_OK;
}


static int
vfs_control(sqlite3_file *file, int op, void *arg)
{
    int         *n = arg;
    vfs_file_t  *v = (vfs_file_t *) file;

    switch (op) {

    case SQLITE_FCNTL_PERSIST_WAL:
        v->persist = *n < 0 ? v->persist : *n != 0;
        *n = v->persist;
        return SQLITE_OK;

    case SQLITE_FCNTL_POWERSAFE_OVERWRITE:
        v->psow = *n < 0 ? v->psow : *n != 0;
        *n = v->psow;
        return SQLITE_OK;

    case SQLITE_FCNTL_LOCKSTATE:
        *n = v->level;
        return SQLITE_OK;

    case SQLITE_FCNTL_HAS_MOVED:
        *n = sim_disk_find(v->path) != v->file;
        return SQLITE_OK;

    default:
        return SQLITE_NOTFOUND;
    }
}


static int
vfs_sector(sqlite3_file *file)
{
    (void) file;

    return 4096;
}


static int
vfs_character(sqlite3_file *file)
{
    return ((vfs_file_t *) file)->psow ? SQLITE_IOCAP_POWERSAFE_OVERWRITE : 0;
}


/* ---- the WAL index ------------------------------------------------------ */

static int
vfs_shm_map(sqlite3_file *file, int no, int len, int extend,
    void volatile **out)
{
    int          i;
    vfs_file_t  *v = (vfs_file_t *) file;
    vfs_node_t  *node = v->node;

    *out = NULL;

    if (!v->shm) {
        if (node->shm_users == 0) {
            for (i = 0; i < node->region_n; i++) {
                free(node->region[i]);
            }
            node->region_n = 0;
        }

        v->shm = true;
        node->shm_users++;
    }

    RON_ASSERT(no < VFS_REGIONS);

    while (node->region_n <= no) {
        if (!extend) {
            return SQLITE_OK;
        }

        node->region[node->region_n] = calloc(1, (size_t) len);
        RON_ASSERT(node->region[node->region_n] != NULL);
        node->region_n++;
    }

    *out = node->region[no];

    return SQLITE_OK;
}


static int
vfs_shm_lock(sqlite3_file *file, int first, int n, int flags)
{
    uint32_t     i, mask;
    vfs_file_t  *v = (vfs_file_t *) file, *o;

    mask = ((1u << n) - 1) << first;

    if (flags & SQLITE_SHM_UNLOCK) {
        v->shared &= ~mask;
        v->exclusive &= ~mask;
        sim_point();
        return SQLITE_OK;
    }

    sim_point();

    for (i = 0; i < vfs_file_n; i++) {
        o = vfs_files[i];

        if (o == v || o->node != v->node || !o->shm) {
            continue;
        }

        if ((o->exclusive & mask)
            || ((flags & SQLITE_SHM_EXCLUSIVE) && (o->shared & mask)))
        {
            return SQLITE_BUSY;
        }
    }

    if (flags & SQLITE_SHM_EXCLUSIVE) {
        v->exclusive |= mask;

    } else {
        v->shared |= mask;
    }

    return SQLITE_OK;
}


static void
vfs_shm_barrier(sqlite3_file *file)
{
    (void) file;
    sim_point();
}


static int
vfs_shm_unmap(sqlite3_file *file, int drop)
{
    (void) drop;
    vfs_leave_shm((vfs_file_t *) file);

    return SQLITE_OK;
}


static const sqlite3_io_methods  vfs_methods = {
    2,
    vfs_close, vfs_read, vfs_write, vfs_truncate, vfs_sync, vfs_size,
    vfs_lock, vfs_unlock, vfs_reserved, vfs_control, vfs_sector,
    vfs_character,
    vfs_shm_map, vfs_shm_lock, vfs_shm_barrier, vfs_shm_unmap,
    NULL, NULL
};


/* ---- the VFS ------------------------------------------------------------ */

static int
vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
    int *out)
{
    char         made[96];
    bool         is_new;
    sim_io_t     io;
    sim_file_t  *f;
    vfs_file_t  *v = (vfs_file_t *) file;

    static unsigned  temp;

    (void) vfs;
    memset(v, 0, sizeof(vfs_file_t));
    sim_point();

    if (path == NULL) {
        (void) snprintf(made, sizeof(made), "/m/temp-%u", ++temp);
        path = made;
    }

    f = sim_disk_find(path);
    is_new = f == NULL;

    if (is_new) {
        if (!(flags & SQLITE_OPEN_CREATE) || sim.oracle) {
            return SQLITE_CANTOPEN;
        }

        io = sim_disk_create(path, false, &f);
        if (io != SIM_IO_OK) {
            return vfs_rc(io, SQLITE_CANTOPEN);
        }
    }

    v->file = sim_file_hold(f);
    v->node = vfs_node(path, f);
    v->proc = sim.oracle ? NULL : sim_proc();
    v->oracle = sim.oracle;
    v->psow = true;
    v->wal = (flags & SQLITE_OPEN_WAL) != 0;
    v->guarded = (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)) != 0;
    v->delete = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    v->new_name = is_new && (flags & (SQLITE_OPEN_WAL
                                      | SQLITE_OPEN_MAIN_JOURNAL
                                      | SQLITE_OPEN_SUPER_JOURNAL));
    (void) snprintf(v->path, sizeof(v->path), "%s", path);

    RON_ASSERT(vfs_file_n < VFS_HANDLES);
    vfs_files[vfs_file_n++] = v;
    v->base.pMethods = &vfs_methods;

    if (out != NULL) {
        *out = flags;
    }

    return SQLITE_OK;
}


static int
vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_dir)
{
    (void) vfs;
    sim_point();

    if (!sim_disk_unlink(path)) {
        return SQLITE_IOERR_DELETE_NOENT;
    }

    return sync_dir && sim_dir_flush(path, true) != SIM_IO_OK
           ? SQLITE_IOERR_DIR_FSYNC : SQLITE_OK;
}


static int
vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    sim_file_t  *f;

    (void) vfs;
    sim_point();

    f = sim_disk_find(path);
    *out = f != NULL && (flags != SQLITE_ACCESS_EXISTS
                         || sim_file_len(f) > 0);

    return SQLITE_OK;
}


static int
vfs_full_path(sqlite3_vfs *vfs, const char *path, int n, char *out)
{
    (void) vfs;
    (void) snprintf(out, (size_t) n, "%s", path);

    return SQLITE_OK;
}


static int
vfs_randomness(sqlite3_vfs *vfs, int n, char *out)
{
    int  i;

    (void) vfs;

    for (i = 0; i < n; i++) {
        out[i] = (char) (sim.exhaustive || sim.oracle ? i : (int) sim_rand());
    }

    return n;
}


static int
vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void) vfs;
    sim_sleep((uint64_t) us);

    return us;
}


static int
vfs_time64(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    (void) vfs;
    *out = INT64_C(212000000000000) + (sqlite3_int64) (sim.mono_us / 1000);

    return SQLITE_OK;
}


static int
vfs_time(sqlite3_vfs *vfs, double *out)
{
    sqlite3_int64  ms;

    (void) vfs_time64(vfs, &ms);
    *out = (double) ms / 86400000.0;

    return SQLITE_OK;
}


static int
vfs_error(sqlite3_vfs *vfs, int n, char *out)
{
    (void) vfs;

    if (n > 0) {
        out[0] = '\0';
    }

    return 0;
}


void
sim_vfs_init(void)
{
    static sqlite3_vfs  vfs;

    vfs.iVersion = 2;
    vfs.szOsFile = (int) sizeof(vfs_file_t);
    vfs.mxPathname = 90;
    vfs.zName = SIM_VFS;
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    vfs.xAccess = vfs_access;
    vfs.xFullPathname = vfs_full_path;
    vfs.xRandomness = vfs_randomness;
    vfs.xSleep = vfs_sleep;
    vfs.xCurrentTime = vfs_time;
    vfs.xCurrentTimeInt64 = vfs_time64;
    vfs.xGetLastError = vfs_error;

    RON_ASSERT(sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) == SQLITE_OK);
    RON_ASSERT(sqlite3_initialize() == SQLITE_OK);
    RON_ASSERT(sqlite3_vfs_register(&vfs, 1) == SQLITE_OK);
}
