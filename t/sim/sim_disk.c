
/*
 * A disk and the page cache over it.
 *
 * Every file has the bytes that programs see and the bytes that the platter
 * has; between them is a list of writes that no sync has asked for yet.  The
 * power cut plays a part of that list onto the platter: all of it, none of
 * it, a beginning of it, or any part of any write in 512-byte sectors, and
 * what programs see becomes what the platter has.
 *
 * A sync that fails has lost the list, as Linux does: what was to be written
 * is no longer dirty, is still seen until it is evicted, and no later sync
 * brings it to the platter.
 *
 * Names are files' entries in directories; a change of one is on the platter
 * after a sync of its directory, and a power cut keeps a beginning of those
 * that were not synced: a journaling file system keeps their order.
 */

#include "sim.h"

#include <stdio.h>
#include <stdlib.h>


#define DISK_SECTOR     512
#define DISK_NAMES_MAX  512
#define DISK_OPS_MAX    4096
#define DISK_LOCKS      8


typedef struct {
    bool      cut;                              /* to the length `off` */
    uint64_t  off;
    size_t    len;
    uint8_t  *data;
} disk_write_t;

struct sim_file_s {
    uint32_t       refs;                        /* names and descriptors */
    bool           dir;
    uint8_t       *seen;
    size_t         seen_len;
    size_t         seen_cap;
    uint8_t       *hard;
    size_t         hard_len;
    size_t         hard_cap;
    disk_write_t  *list;
    uint32_t       list_n;
    uint32_t       list_cap;
    struct {
        const void  *owner;
        sim_proc_t  *proc;
    }              locks[DISK_LOCKS];
    uint32_t       lock_n;
};

typedef struct {
    char         path[96];
    sim_file_t  *file;
} disk_name_t;

typedef enum { NAME_MAKE = 0, NAME_DROP, NAME_MOVE } disk_op_kind_t;

typedef struct {
    disk_op_kind_t  kind;
    char            path[96];
    char            to[96];
    sim_file_t     *file;
} disk_op_t;


sim_disk_faults_t  sim_disk;

static disk_name_t  disk_seen[DISK_NAMES_MAX];
static uint32_t     disk_seen_n;
static disk_name_t  disk_hard[DISK_NAMES_MAX];
static uint32_t     disk_hard_n;
static disk_op_t    disk_ops[DISK_OPS_MAX];
static uint32_t     disk_op_n;


/* ---- names -------------------------------------------------------------- */

static disk_name_t *
name_find(disk_name_t *names, uint32_t n, const char *path)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (strcmp(names[i].path, path) == 0) {
            return &names[i];
        }
    }

    return NULL;
}


static void
name_drop(disk_name_t *names, uint32_t *n, const char *path)
{
    disk_name_t  *name;

    name = name_find(names, *n, path);

    if (name != NULL) {
        *name = names[--*n];
    }
}


static void
name_put(disk_name_t *names, uint32_t *n, const char *path, sim_file_t *f)
{
    disk_name_t  *name;

    name = name_find(names, *n, path);

    if (name == NULL) {
        RON_ASSERT(*n < DISK_NAMES_MAX);
        name = &names[(*n)++];
        (void) snprintf(name->path, sizeof(name->path), "%s", path);
    }

    name->file = f;
}


static void
name_apply(disk_name_t *names, uint32_t *n, const disk_op_t *op)
{
    switch (op->kind) {

    case NAME_MAKE:
        name_put(names, n, op->path, op->file);
        break;

    case NAME_DROP:
        name_drop(names, n, op->path);
        break;

    case NAME_MOVE:
        name_drop(names, n, op->path);
        name_put(names, n, op->to, op->file);
        break;
    }
}


static void
name_change(disk_op_kind_t kind, const char *path, const char *to,
    sim_file_t *f)
{
    disk_op_t  *op;

    RON_ASSERT(disk_op_n < DISK_OPS_MAX);
    op = &disk_ops[disk_op_n++];
    op->kind = kind;
    op->file = f;
    (void) snprintf(op->path, sizeof(op->path), "%s", path);
    (void) snprintf(op->to, sizeof(op->to), "%s", to ? to : "");
    name_apply(disk_seen, &disk_seen_n, op);
}


/* Is `path` an entry of the directory `dir`? */

static const char *
name_in(const char *path, const char *dir)
{
    size_t  len;

    len = strlen(dir);

    if (strncmp(path, dir, len) != 0 || path[len] != '/'
        || strchr(path + len + 1, '/') != NULL)
    {
        return NULL;
    }

    return path + len + 1;
}


void
sim_disk_init(void)
{
    sim_file_t  *f;

    (void) sim_disk_create("/m", true, &f);
    (void) sim_disk_create("/m/run", true, &f);
    memcpy(disk_hard, disk_seen, sizeof(disk_seen));
    disk_hard_n = disk_seen_n;
    disk_op_n = 0;
}


sim_file_t *
sim_disk_find(const char *path)
{
    disk_name_t  *name;

    name = name_find(disk_seen, disk_seen_n, path);

    return name ? name->file : NULL;
}


sim_io_t
sim_disk_create(const char *path, bool dir, sim_file_t **file)
{
    sim_file_t  *f;

    *file = NULL;

    if (!sim.oracle && sim_disk.full && sim_chance(1, 2)) {
        sim_count(SIM_F_FULL, 1);
        sim_trace("disk full: cannot make %s", path);
        return SIM_IO_FULL;
    }

    f = calloc(1, sizeof(sim_file_t));
    RON_ASSERT(f != NULL);
    f->dir = dir;
    name_change(NAME_MAKE, path, NULL, f);
    *file = f;

    return SIM_IO_OK;
}


bool
sim_disk_unlink(const char *path)
{
    sim_file_t  *f;

    f = sim_disk_find(path);

    if (f == NULL) {
        return false;
    }

    name_change(NAME_DROP, path, NULL, f);

    return true;
}


bool
sim_disk_rename(const char *from, const char *to)
{
    sim_file_t  *f;

    f = sim_disk_find(from);

    if (f == NULL) {
        return false;
    }

    name_change(NAME_MOVE, from, to, f);

    return true;
}


void
sim_disk_each(const char *dir, bool (*fn)(void *ctx, const char *name),
    void *ctx)
{
    uint32_t      i, n;
    const char   *name;
    disk_name_t  *copy;

    n = disk_seen_n;
    copy = malloc((n + 1) * sizeof(disk_name_t));
    RON_ASSERT(copy != NULL);
    memcpy(copy, disk_seen, n * sizeof(disk_name_t));

    for (i = 0; i < n; i++) {
        name = name_in(copy[i].path, dir);

        if (name != NULL && !fn(ctx, name)) {
            break;
        }
    }

    free(copy);
}


sim_io_t
sim_dir_flush(const char *path, bool of_parent)
{
    char      dir[96], *slash;
    uint32_t  i, n;

    (void) snprintf(dir, sizeof(dir), "%s", path);
    slash = strrchr(dir, '/');

    if (of_parent && slash != NULL) {
        *slash = '\0';
    }

    if (sim_disk.eio_sync && sim_chance(1, sim_disk.eio_sync)) {
        sim_count(SIM_F_EIO_SYNC, 1);
        sim_trace("sync of directory %s fails", dir);
        return SIM_IO_ERROR;
    }

    if (sim.lie_sync) {
        return SIM_IO_OK;
    }

    for (i = 0, n = 0; i < disk_op_n; i++) {
        if (name_in(disk_ops[i].path, dir) != NULL) {
            name_apply(disk_hard, &disk_hard_n, &disk_ops[i]);

        } else {
            disk_ops[n++] = disk_ops[i];
        }
    }

    disk_op_n = n;

    return SIM_IO_OK;
}


/* ---- bytes -------------------------------------------------------------- */

static void
bytes_put(uint8_t **p, size_t *len, size_t *cap, uint64_t off,
    const void *data, size_t n)
{
    size_t  end, more;

    end = (size_t) off + n;

    if (end > *cap) {
        more = ron_max(end, *cap * 2);
        *p = realloc(*p, more);
        RON_ASSERT(*p != NULL);
        memset(*p + *cap, 0, more - *cap);
        *cap = more;
    }

    if (n > 0) {
        memcpy(*p + off, data, n);
    }

    *len = ron_max(*len, end);
}


static void
bytes_cut(uint8_t **p, size_t *len, size_t *cap, uint64_t to)
{
    if (to > *len) {
        bytes_put(p, len, cap, to, NULL, 0);
        return;
    }

    if (*len > to) {
        memset(*p + to, 0, *len - (size_t) to);
    }

    *len = (size_t) to;
}


static void
file_apply(sim_file_t *f, const disk_write_t *w)
{
    if (w->cut) {
        bytes_cut(&f->hard, &f->hard_len, &f->hard_cap, w->off);

    } else {
        bytes_put(&f->hard, &f->hard_len, &f->hard_cap, w->off, w->data,
                  w->len);
    }
}


/* Some sectors of it; what is missing of a growing file reads as zeros. */

static void
file_apply_torn(sim_file_t *f, const disk_write_t *w)
{
    size_t  at, n, unit;

    if (w->cut) {
        if (sim_chance(1, 2)) {
            file_apply(f, w);
        }
        return;
    }

    unit = sim_chance(1, 8) ? 1 + (size_t) sim_below(DISK_SECTOR)
                            : DISK_SECTOR;

    for (at = 0; at < w->len; at += n) {
        n = ron_min(unit - (size_t) (w->off + at) % unit, w->len - at);

        if (sim_chance(1, 2)) {
            bytes_put(&f->hard, &f->hard_len, &f->hard_cap, w->off + at,
                      w->data + at, n);
        }
    }
}


static void
file_forget(sim_file_t *f)
{
    uint32_t  i;

    for (i = 0; i < f->list_n; i++) {
        free(f->list[i].data);
    }

    f->list_n = 0;
}


static void
file_reload(sim_file_t *f)
{
    f->seen_len = 0;
    if (f->seen_cap) {
        memset(f->seen, 0, f->seen_cap);
    }
    bytes_put(&f->seen, &f->seen_len, &f->seen_cap, 0, f->hard, f->hard_len);
}


static void
file_later(sim_file_t *f, bool cut, uint64_t off, const void *data, size_t len)
{
    disk_write_t  *w;

    if (f->list_n == f->list_cap) {
        f->list_cap = f->list_cap ? f->list_cap * 2 : 16;
        f->list = realloc(f->list, f->list_cap * sizeof(disk_write_t));
        RON_ASSERT(f->list != NULL);
    }

    w = &f->list[f->list_n++];
    w->cut = cut;
    w->off = off;
    w->len = len;
    w->data = NULL;

    if (len > 0) {
        w->data = malloc(len);
        RON_ASSERT(w->data != NULL);
        memcpy(w->data, data, len);
    }
}


sim_file_t *
sim_file_hold(sim_file_t *f)
{
    f->refs++;

    return f;
}


void
sim_file_drop(sim_file_t *f)
{
    f->refs--;                  /* a seed is short: nothing is freed */
}


bool
sim_file_is_dir(const sim_file_t *f)
{
    return f->dir;
}


uint64_t
sim_file_len(const sim_file_t *f)
{
    return f->seen_len;
}


int64_t
sim_file_read(sim_file_t *f, void *buf, size_t len, uint64_t off)
{
    size_t  n;

    if (!sim.oracle && sim_disk.eio_read
        && sim_chance(1, sim_disk.eio_read))
    {
        sim_count(SIM_F_EIO_READ, 1);
        sim_trace("read fails");
        return -1;
    }

    if (off >= f->seen_len) {
        return 0;
    }

    n = ron_min(len, f->seen_len - (size_t) off);
    memcpy(buf, f->seen + off, n);

    return (int64_t) n;
}


sim_io_t
sim_file_write(sim_file_t *f, const void *buf, size_t len, uint64_t off)
{
    size_t    done;
    sim_io_t  io;

    RON_ASSERT(!sim.oracle);

    done = len;
    io = SIM_IO_OK;

    /* what a file has it keeps: only growing needs a block */

    if (sim_disk.full && off + len > f->seen_len) {
        sim_count(SIM_F_FULL, 1);
        sim_trace("write fails, disk full");
        done = off < f->seen_len ? f->seen_len - (size_t) off : 0;
        done = sim_chance(1, 2) ? done : done + (size_t) sim_below(len - done);
        io = SIM_IO_FULL;

    } else if (sim_disk.eio_write && sim_chance(1, sim_disk.eio_write)) {
        sim_count(SIM_F_EIO_WRITE, 1);
        sim_trace("write fails");
        done = sim_chance(1, 2) ? 0 : (size_t) sim_below(len + 1);
        io = SIM_IO_ERROR;
    }

    if (done > 0) {
        bytes_put(&f->seen, &f->seen_len, &f->seen_cap, off, buf, done);
        file_later(f, false, off, buf, done);
    }

    return io;
}


sim_io_t
sim_file_cut(sim_file_t *f, uint64_t len)
{
    RON_ASSERT(!sim.oracle);

    if (sim_disk.eio_write && sim_chance(1, sim_disk.eio_write)) {
        sim_count(SIM_F_EIO_WRITE, 1);
        return SIM_IO_ERROR;
    }

    bytes_cut(&f->seen, &f->seen_len, &f->seen_cap, len);
    file_later(f, true, len, NULL, 0);

    return SIM_IO_OK;
}


static sim_io_t
file_flush_fails(sim_file_t *f)
{
    uint32_t  i;

    sim_count(SIM_F_EIO_SYNC, 1);
    sim_trace("sync fails, %u writes are lost or not", f->list_n);

    for (i = 0; i < f->list_n; i++) {
        if (sim_chance(1, 2)) {
            file_apply_torn(f, &f->list[i]);
        }
    }

    file_forget(f);

    if (sim_chance(1, 3)) {
        sim_count(SIM_F_EVICT, 1);
        sim_trace("and their pages are evicted");
        file_reload(f);
    }

    return SIM_IO_ERROR;
}


sim_io_t
sim_file_flush(sim_file_t *f)
{
    uint32_t  i;

    RON_ASSERT(!sim.oracle);

    if (!sim.exhaustive) {
        sim.mono_us += 30 + sim_below(sim_chance(1, 20) ? 20000 : 600);
    }

    if (sim_disk.eio_sync && sim_chance(1, sim_disk.eio_sync)) {
        return file_flush_fails(f);
    }

    if (sim.lie_sync) {
        return SIM_IO_OK;
    }

    for (i = 0; i < f->list_n; i++) {
        file_apply(f, &f->list[i]);
    }

    file_forget(f);

    return SIM_IO_OK;
}


/* ---- the power ---------------------------------------------------------- */

static void
file_power_cut(const char *path, sim_file_t *f, uint64_t mode)
{
    uint32_t  i, keep;

    keep = (uint32_t) sim_below(f->list_n + 1);

    if (f->list_n > 0) {
        sim_trace("of %s, %u writes were not synced: mode %llu", path,
                  f->list_n, (unsigned long long) mode);
    }

    for (i = 0; i < f->list_n; i++) {

        if (mode == 1 || (mode == 2 && i < keep)) {
            file_apply(f, &f->list[i]);

        } else if (mode == 3 || (mode == 2 && i == keep)) {
            sim_count(SIM_F_TORN, 1);
            file_apply_torn(f, &f->list[i]);

        } else {
            sim_count(SIM_F_DROP, 1);
        }
    }

    file_forget(f);
    file_reload(f);
    f->lock_n = 0;
}


void
sim_disk_power_cut(void)
{
    uint32_t      i, keep;
    uint64_t      mode;
    sim_file_t   *f;

    mode = sim_below(4);
    keep = mode == 0 ? 0 : mode == 1 ? disk_op_n
                                     : (uint32_t) sim_below(disk_op_n + 1);
    sim_trace("power cut: mode %llu, %u of %u names",
              (unsigned long long) mode, keep, disk_op_n);
    sim_count(SIM_F_NAME, disk_op_n - keep);

    for (i = 0; i < keep; i++) {
        name_apply(disk_hard, &disk_hard_n, &disk_ops[i]);
    }

    disk_op_n = 0;
    memcpy(disk_seen, disk_hard, sizeof(disk_seen));
    disk_seen_n = disk_hard_n;

    for (i = 0; i < disk_seen_n; i++) {
        f = disk_seen[i].file;
        f->refs = 0;
        file_power_cut(disk_seen[i].path, f, sim_chance(1, 3) ? sim_below(4) : mode);
    }

    memset(&sim_disk, 0, sizeof(sim_disk));
}


/* ---- locks -------------------------------------------------------------- */

bool
sim_file_lock(sim_file_t *f, const void *owner, sim_proc_t *proc)
{
    uint32_t  i;

    for (i = 0; i < f->lock_n; i++) {
        if (f->locks[i].owner == owner) {
            return true;
        }
    }

    if (f->lock_n > 0 && !sim.lie_lock) {
        return false;
    }

    RON_ASSERT(f->lock_n < DISK_LOCKS);
    f->locks[f->lock_n].owner = owner;
    f->locks[f->lock_n++].proc = proc;

    return true;
}


void
sim_file_unlock(sim_file_t *f, const void *owner)
{
    uint32_t  i;

    for (i = 0; i < f->lock_n; i++) {
        if (f->locks[i].owner == owner) {
            f->locks[i] = f->locks[--f->lock_n];
            return;
        }
    }
}


/* Does this process, and no other, hold the lock of `path`? */

bool
sim_proc_locks(sim_proc_t *proc, const char *path)
{
    sim_file_t  *f;

    f = sim_disk_find(path);

    return f != NULL && f->lock_n == 1 && f->locks[0].proc == proc;
}
