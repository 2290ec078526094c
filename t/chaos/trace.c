
/*
 * Writes down what a server does to the files of its ledger, for LD_PRELOAD,
 * in tests only; cut.c makes of it what a disk may hold when the power goes.
 *
 *     RON_TRACE       the file to write to
 *     RON_TRACE_DIR   the ledger's directory
 *
 * A change is done and written down under a lock of the file, so a test that
 * holds that lock may kill whom it likes: nobody is between the two.  What a
 * mapping changes is not seen, so no file of a ledger but SQLite's index of
 * the WAL (*-shm) may be mapped; that one is never on a disk.
 */

#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>


static char             dir[PATH_MAX];      /* with a / at its end */
static char             trace_path[PATH_MAX];
static int              trace_fd = -1;
static pid_t            trace_pid;
static uint64_t         syncs;
static pthread_mutex_t  mutex = PTHREAD_MUTEX_INITIALIZER;


int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);
int fsync(int fd);
int fdatasync(int fd);
ssize_t pwrite(int fd, const void *buf, size_t len, off_t off);
ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t off);
int ftruncate(int fd, off_t size);
int ftruncate64(int fd, off64_t size);
int rename(const char *from, const char *to);
int unlink(const char *path);


__attribute__((constructor))
static void
trace_init(void)
{
    const char  *p = getenv("RON_TRACE");
    const char  *d = getenv("RON_TRACE_DIR");

    /* kept, because nginx empties its environment */

    if (p != NULL && d != NULL) {
        (void) snprintf(trace_path, sizeof(trace_path), "%s", p);
        (void) snprintf(dir, sizeof(dir), "%s/", d);
    }
}


/* The name of one of ours, without the directory; NULL: it is not. */
static const char *
trace_name(const char *path)
{
    size_t  n = strlen(dir);
    size_t  len = strlen(path);

    if (n == 0 || strncmp(path, dir, n) != 0
        || (len >= 4 && strcmp(path + len - 4, "-shm") == 0))
    {
        return NULL;
    }

    return path + n;
}


/* The inode of one of our files, 0 of the directory; false: neither. */
static bool
trace_fd_ours(int fd, uint64_t *inode)
{
    char         link[64], path[PATH_MAX];
    ssize_t      n;
    struct stat  st;

    if (dir[0] == '\0' || fstat(fd, &st) != 0
        || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
    {
        return false;
    }

    (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 2);

    if (n <= 0) {
        return false;
    }

    path[n] = '\0';

    if (S_ISDIR(st.st_mode)) {
        path[n] = '/';
        path[n + 1] = '\0';
        *inode = 0;

        return strcmp(path, dir) == 0;
    }

    *inode = st.st_ino;

    return trace_name(path) != NULL;
}


/* A process has the file open by itself: a lock that was inherited would
 * keep nobody out. */

static void
trace_lock(void)
{
    (void) pthread_mutex_lock(&mutex);

    if (trace_pid != getpid()) {
        trace_pid = getpid();
        trace_fd = (int) syscall(SYS_openat, AT_FDCWD, trace_path,
                                 O_WRONLY | O_APPEND | O_CLOEXEC);
    }

    if (trace_fd < 0 || flock(trace_fd, LOCK_EX) != 0) {
        _exit(99);
    }
}


static void
trace_unlock(void)
{
    (void) flock(trace_fd, LOCK_UN);
    (void) pthread_mutex_unlock(&mutex);
}


static uint64_t
trace_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


/* Locked, and `us` is from before the change. */
static void
trace_put(uint64_t us, trace_type_t type, uint64_t inode, uint64_t off,
    const void *data, size_t len)
{
    trace_rec_t   rec = { us, inode, off, (uint32_t) len, type };
    struct iovec  iov[2] = { { &rec, sizeof(rec) }, { NULL, len } };

    memcpy(&iov[1].iov_base, &data, sizeof(data));

    if (writev(trace_fd, iov, len != 0 ? 2 : 1)
        != (ssize_t) (sizeof(rec) + len))
    {
        _exit(99);
    }
}


static int
trace_sync(int fd, long call)
{
    int       rc;
    uint64_t  inode, no;

    if (!trace_fd_ours(fd, &inode)) {
        return (int) syscall(call, fd);
    }

    trace_lock();
    no = (uint64_t) trace_pid << 32 | ++syncs;
    trace_put(trace_now(), TRACE_SYNC_BEGIN, inode, no, NULL, 0);
    trace_unlock();

    rc = (int) syscall(call, fd);

    if (rc == 0) {
        trace_lock();
        trace_put(trace_now(), TRACE_SYNC_END, inode, no, NULL, 0);
        trace_unlock();
    }

    return rc;
}


int
fsync(int fd)
{
    return trace_sync(fd, SYS_fsync);
}


int
fdatasync(int fd)
{
    return trace_sync(fd, SYS_fdatasync);
}


static ssize_t
trace_write(int fd, const void *buf, size_t len, off_t off)
{
    ssize_t   n;
    uint64_t  inode, us;

    if (!trace_fd_ours(fd, &inode)) {
        return syscall(SYS_pwrite64, fd, buf, len, off);
    }

    trace_lock();
    us = trace_now();
    n = syscall(SYS_pwrite64, fd, buf, len, off);

    if (n > 0) {
        trace_put(us, TRACE_WRITE, inode, (uint64_t) off, buf, (size_t) n);
    }

    trace_unlock();

    return n;
}


ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
    return trace_write(fd, buf, len, off);
}


ssize_t
pwrite64(int fd, const void *buf, size_t len, off64_t off)
{
    return trace_write(fd, buf, len, off);
}


static int
trace_size(int fd, off_t size)
{
    int       rc;
    uint64_t  inode, us;

    if (!trace_fd_ours(fd, &inode)) {
        return (int) syscall(SYS_ftruncate, fd, size);
    }

    trace_lock();
    us = trace_now();
    rc = (int) syscall(SYS_ftruncate, fd, size);

    if (rc == 0) {
        trace_put(us, TRACE_SIZE, inode, (uint64_t) size, NULL, 0);
    }

    trace_unlock();

    return rc;
}


int
ftruncate(int fd, off_t size)
{
    return trace_size(fd, size);
}


int
ftruncate64(int fd, off64_t size)
{
    return trace_size(fd, size);
}


/* ---- names -------------------------------------------------------------- */

static int
trace_open(const char *path, int flags, mode_t mode)
{
    int          fd;
    bool         there;
    uint64_t     us;
    const char  *name = trace_name(path);
    struct stat  st;

    if (name == NULL || (flags & (O_CREAT | O_TRUNC)) == 0) {
        return (int) syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    }

    trace_lock();
    us = trace_now();
    there = stat(path, &st) == 0;
    fd = (int) syscall(SYS_openat, AT_FDCWD, path, flags, mode);

    if (fd >= 0 && fstat(fd, &st) == 0) {
        if (!there) {
            trace_put(us, TRACE_MAKE, st.st_ino, 0, name, strlen(name) + 1);

        } else if (flags & O_TRUNC) {
            trace_put(us, TRACE_SIZE, st.st_ino, 0, NULL, 0);
        }
    }

    trace_unlock();

    return fd;
}


int
open(const char *path, int flags, ...)
{
    mode_t   mode;
    va_list  args;

    va_start(args, flags);
    mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0;
    va_end(args);

    return trace_open(path, flags, mode);
}


int
open64(const char *path, int flags, ...)
{
    mode_t   mode;
    va_list  args;

    va_start(args, flags);
    mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0;
    va_end(args);

    return trace_open(path, flags, mode);
}


/* Sockets are in the directory too; what is left of one holds nothing. */
static bool
trace_is_file(const char *path)
{
    struct stat  st;

    return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}


int
rename(const char *from, const char *to)
{
    int          rc;
    char         both[2 * PATH_MAX];
    size_t       n;
    uint64_t     us;
    const char  *old = trace_name(from);
    const char  *new = trace_name(to);

    if (old == NULL || new == NULL || !trace_is_file(from)) {
        return (int) syscall(SYS_rename, from, to);
    }

    n = (size_t) snprintf(both, sizeof(both), "%s", old) + 1;
    n += (size_t) snprintf(both + n, sizeof(both) - n, "%s", new) + 1;

    trace_lock();
    us = trace_now();
    rc = (int) syscall(SYS_rename, from, to);

    if (rc == 0) {
        trace_put(us, TRACE_RENAME, 0, 0, both, n);
    }

    trace_unlock();

    return rc;
}


int
unlink(const char *path)
{
    int          rc;
    uint64_t     us;
    const char  *name = trace_name(path);

    if (name == NULL || !trace_is_file(path)) {
        return (int) syscall(SYS_unlink, path);
    }

    trace_lock();
    us = trace_now();
    rc = (int) syscall(SYS_unlink, path);

    if (rc == 0) {
        trace_put(us, TRACE_REMOVE, 0, 0, name, strlen(name) + 1);
    }

    trace_unlock();

    return rc;
}
