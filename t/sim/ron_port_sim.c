
/*
 * ron_port.h for the simulator: the same promises, on simulated things.
 *
 * Mutexes and conditions check what pthread's error-checking kind checks, and
 * that a process leaves none of them locked behind.  Waking is where the seed
 * has most to say: a condition wakes any of those that wait, or somebody for
 * no reason at all.
 */

#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ron_port.h"


#define SIM_WALL_BASE_MS  UINT64_C(1800000000000)


struct ron_thread_s {
    sim_task_t   *task;
};

struct ron_mutex_s {
    sim_task_t   *owner;
    uint32_t      waiting;
};

struct ron_cond_s {
    uint32_t      waiting;
};


static int   port_err;
static char  port_text[64];


int
ron_port_errno(void)
{
    return port_err;
}


const char *
ron_port_error(void)
{
    (void) snprintf(port_text, sizeof(port_text), "%s",
                    port_err == ENOSPC ? "no space left on device"
                    : port_err == ENOENT ? "no such file"
                    : port_err == EIO ? "input/output error" : "an error");
    return port_text;
}


static ron_status_t
port_status(sim_io_t io)
{
    switch (io) {

    case SIM_IO_OK:
        return RON_OK;

    case SIM_IO_FULL:
        port_err = ENOSPC;
        return RON_EFULL;

    default:
        port_err = EIO;
        return RON_EIO;
    }
}


static ron_status_t
port_absent(void)
{
    port_err = ENOENT;
    return RON_ENOTFOUND;
}


uint64_t
ron_clock_wall_ms(void)
{
    return (uint64_t) ((int64_t) (SIM_WALL_BASE_MS + sim.mono_us / 1000)
                       + sim.wall_skew_ms);
}


uint64_t
ron_clock_mono_us(void)
{
    if (!sim.oracle && !sim.exhaustive) {
        sim.mono_us++;
    }

    return sim.mono_us;
}


ron_status_t
ron_random(void *buf, size_t len)
{
    size_t    i;
    uint8_t  *p = buf;

    for (i = 0; i < len; i++) {
        p[i] = sim.exhaustive ? (uint8_t) (i * 7 + 1) : (uint8_t) sim_rand();
    }

    return RON_OK;
}


void
ron_memory_large(void *p, size_t len)
{
    (void) p;
    (void) len;
}


/* ---- files -------------------------------------------------------------- */

ron_status_t
ron_file_open(const char *path, unsigned flags, ron_fd_t *fd)
{
    sim_io_t     io;
    sim_file_t  *f;

    sim_point();
    *fd = RON_FD_NONE;

    f = sim_disk_find(path);

    if (f != NULL && (flags & RON_OPEN_EXCL)) {
        port_err = EEXIST;
        return RON_EEXIST;
    }

    if (f == NULL) {
        if (!(flags & RON_OPEN_CREATE)) {
            return port_absent();
        }

        io = sim_disk_create(path, false, &f);
        if (io != SIM_IO_OK) {
            return port_status(io);
        }
    }

    if ((flags & RON_OPEN_DIR) && !sim_file_is_dir(f)) {
        port_err = ENOTDIR;
        return RON_EIO;
    }

    *fd = sim_fd_new_file(f, (flags & RON_OPEN_WRITE) != 0);

    return RON_OK;
}


void
ron_file_close(ron_fd_t fd)
{
    if (fd != RON_FD_NONE) {
        sim_fd_close(fd);
    }
}


ron_status_t
ron_file_size(ron_fd_t fd, uint64_t *size)
{
    *size = sim_file_len(sim_fd_file(fd));

    return RON_OK;
}


ron_status_t
ron_file_truncate(ron_fd_t fd, uint64_t size)
{
    sim_point();

    return port_status(sim_file_cut(sim_fd_file(fd), size));
}


ron_status_t
ron_file_pread(ron_fd_t fd, void *buf, size_t len, uint64_t off)
{
    int64_t  n;

    sim_point();

    n = sim_file_read(sim_fd_file(fd), buf, len, off);

    if (n == (int64_t) len) {
        return RON_OK;
    }

    memset(buf, 0, len);
    port_err = n < 0 ? EIO : 0;

    return n < 0 ? RON_EIO : RON_ENOTFOUND;
}


ron_status_t
ron_file_pwrite(ron_fd_t fd, const void *buf, size_t len, uint64_t off)
{
    sim_point();

    return port_status(sim_file_write(sim_fd_file(fd), buf, len, off));
}


ron_status_t
ron_file_sync(ron_fd_t fd)
{
    ron_status_t  status;

    sim_point();
    status = port_status(sim_file_flush(sim_fd_file(fd)));
    sim_point();

    return status;
}


ron_status_t
ron_dir_sync(const char *path)
{
    sim_point();

    return sim_disk_find(path) ? port_status(sim_dir_flush(path, false))
                               : port_absent();
}


ron_status_t
ron_file_rename(const char *from, const char *to)
{
    sim_point();

    return sim_net_rename(from, to) || sim_disk_rename(from, to)
           ? RON_OK : port_absent();
}


ron_status_t
ron_file_unlink(const char *path)
{
    sim_point();

    return sim_net_unlink(path) || sim_disk_unlink(path)
           ? RON_OK : port_absent();
}


ron_status_t
ron_dir_make(const char *path)
{
    sim_file_t  *f;

    sim_point();

    if (sim_disk_find(path) != NULL) {
        return RON_OK;
    }

    return port_status(sim_disk_create(path, true, &f));
}


typedef struct {
    ron_status_t   status;
    ron_status_t (*fn)(void *ctx, const char *name);
    void          *ctx;
} port_each_t;


static bool
port_each(void *ctx, const char *name)
{
    port_each_t  *each = ctx;

    each->status = each->fn(each->ctx, name);

    return each->status == RON_OK;
}


ron_status_t
ron_dir_each(const char *path, ron_status_t (*fn)(void *ctx, const char *name),
    void *ctx)
{
    port_each_t  each = { RON_OK, fn, ctx };

    sim_point();

    if (sim_disk_find(path) == NULL) {
        return port_absent();
    }

    sim_disk_each(path, port_each, &each);

    return each.status;
}


ron_status_t
ron_file_lock(ron_fd_t fd)
{
    sim_point();

    if (sim_file_lock(sim_fd_file(fd), sim_fd_owner(fd), sim_proc())) {
        return RON_OK;
    }

    port_err = EWOULDBLOCK;

    return RON_EFENCED;
}


/* ---- threads ------------------------------------------------------------ */

ron_status_t
ron_thread_start(ron_thread_t **thread, const char *name,
    ron_thread_kind_t kind, void (*fn)(void *arg), void *arg)
{
    ron_thread_t  *t;

    (void) kind;

    t = calloc(1, sizeof(ron_thread_t));
    RON_ASSERT(t != NULL);
    t->task = sim_task_start(sim_proc(), name, fn, arg);
    *thread = t;
    sim_point();

    return RON_OK;
}


void
ron_thread_hurry(ron_thread_t *thread)
{
    (void) thread;
}


ron_status_t
ron_thread_join(ron_thread_t *thread, uint64_t timeout_ms)
{
    uint64_t  end_us;

    end_us = sim.exhaustive || timeout_ms > SIM_NEVER / 2000
             ? SIM_NEVER : sim.mono_us + timeout_ms * 1000;

    while (!sim_task_done(thread->task)) {
        if (!sim_wait(thread->task, end_us) && sim.mono_us >= end_us) {
            return RON_AGAIN;
        }
    }

    free(thread);

    return RON_OK;
}


ron_status_t
ron_mutex_create(ron_mutex_t **mutex, ron_lock_id_t lock)
{
    (void) lock;

    *mutex = calloc(1, sizeof(ron_mutex_t));

    return *mutex ? RON_OK : RON_ENOMEM;
}


void
ron_mutex_destroy(ron_mutex_t *mutex)
{
    sim_check(mutex->owner == NULL && mutex->waiting == 0,
              "a mutex in use is destroyed");
    free(mutex);
}


void
ron_mutex_lock(ron_mutex_t *mutex)
{
    sim_check(mutex->owner == NULL || mutex->owner != sim_task(),
              "a mutex is locked twice by one task");

    sim_point();

    while (mutex->owner != NULL) {
        mutex->waiting++;
        (void) sim_wait(mutex, SIM_NEVER);
        mutex->waiting--;
    }

    mutex->owner = sim_task();
}


void
ron_mutex_unlock(ron_mutex_t *mutex)
{
    sim_check(mutex->owner == sim_task(), "a mutex is unlocked by another");

    mutex->owner = NULL;
    sim_wake(mutex, false);
}


ron_status_t
ron_cond_create(ron_cond_t **cond)
{
    *cond = calloc(1, sizeof(ron_cond_t));

    return *cond ? RON_OK : RON_ENOMEM;
}


void
ron_cond_destroy(ron_cond_t *cond)
{
    sim_check(cond->waiting == 0, "a condition in use is destroyed");
    free(cond);
}


void
ron_cond_signal(ron_cond_t *cond)
{
    sim_wake(cond, false);
}


void
ron_cond_broadcast(ron_cond_t *cond)
{
    sim_wake(cond, true);
}


ron_status_t
ron_cond_wait(ron_cond_t *cond, ron_mutex_t *mutex, uint64_t timeout_us)
{
    bool      woken;
    uint64_t  end_us;

    end_us = sim.exhaustive || timeout_us > SIM_NEVER / 2
             ? SIM_NEVER : sim.mono_us + timeout_us;

    if (sim_chance(1, 50)) {
        end_us = sim.mono_us;                   /* for no reason */
    }

    ron_mutex_unlock(mutex);

    cond->waiting++;
    woken = sim_wait(cond, end_us);
    cond->waiting--;

    while (mutex->owner != NULL) {
        mutex->waiting++;
        (void) sim_wait(mutex, SIM_NEVER);
        mutex->waiting--;
    }

    mutex->owner = sim_task();

    return woken ? RON_OK : RON_AGAIN;
}


void
ron_sleep_us(uint64_t us)
{
    sim_sleep(us);
}
