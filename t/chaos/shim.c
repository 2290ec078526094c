
/*
 * What a machine does to a server, for LD_PRELOAD, in tests only.
 *
 * RON_SHIM is a page that the test and all processes of a server share; the
 * test writes it while they run:
 *
 *     offset  0  i64  microseconds that the wall clock is off
 *             8  u32  die in a sync of the ledger's files: 1 before it has
 *                     been done, 2 afterwards; the one who does clears it
 *            12  u32  microseconds that such a sync takes longer
 *            16  u32  syncs: 0 honest, 1 none is done, 2 at most one in
 *                     half a second is: an answer before its sync
 *            20  u32  locks of files are given to everybody
 *            24  u32  syncs fail
 *            28  u32  the process that gets no memory
 *            32  u32  the errno of whoever changes the ledger's files: EROFS
 *                     or ENOSPC
 *
 * RON_SHIM_DIR is the ledger's directory.  With RON_SHIM_UNDO, every write to
 * a file in it that is not synced yet leaves what was there before in a file
 * of that directory, named by the inode.  When the power has gone (everything
 * was killed), RonChaos.pm writes that back, and the disk has what was synced.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>


#define SHIM_FDS   4096
#define SHIM_LATE  500000                   /* us */


typedef struct {
    int64_t             clock_us;
    volatile uint32_t   die;
    volatile uint32_t   delay_us;
    volatile uint32_t   syncs;
    volatile uint32_t   no_locks;
    volatile uint32_t   fail;
    volatile uint32_t   starved;
    volatile uint32_t   denied;
} shim_page_t;

typedef struct {
    uint64_t            off;
    uint64_t            len;                /* of the old bytes that follow */
    uint64_t            size;               /* of the file */
} shim_undo_t;


static shim_page_t       none;
static shim_page_t      *page = &none;
static const char       *ledger_dir;
static const char       *undo_dir;
static volatile ino_t    inodes[SHIM_FDS];
static pthread_mutex_t   mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t          synced_us;


int fsync(int fd);
int fdatasync(int fd);
ssize_t pwrite(int fd, const void *buf, size_t len, off_t off);
ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t off);
int ftruncate(int fd, off_t size);
int ftruncate64(int fd, off64_t size);
int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);
int flock(int fd, int op);
void *malloc(size_t size);
int posix_memalign(void **p, size_t align, size_t size);
void *__libc_malloc(size_t size);
void *__libc_memalign(size_t align, size_t size);
int clock_gettime(clockid_t id, struct timespec *ts);
int gettimeofday(struct timeval *restrict tv, void *restrict tz);
time_t time(time_t *t);


__attribute__((constructor))
static void
shim_init(void)
{
    int          fd;
    void        *p;
    const char  *path;

    path = getenv("RON_SHIM");
    ledger_dir = getenv("RON_SHIM_DIR");
    undo_dir = getenv("RON_SHIM_UNDO");

    if (path == NULL) {
        return;
    }

    /* kept, because nginx empties its environment */

    ledger_dir = ledger_dir != NULL ? strdup(ledger_dir) : NULL;
    undo_dir = undo_dir != NULL ? strdup(undo_dir) : NULL;

    fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd >= 0) {
        p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        page = p != MAP_FAILED ? p : &none;
        (void) close(fd);
    }
}


static uint64_t
shim_mono_us(void)
{
    struct timespec  ts;

    (void) syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


/* Is it a file of the ledger?  Its name is asked for each time: descriptors
 * are closed behind our back. */

static bool
shim_ours(int fd, struct stat *st)
{
    char     link[64], path[512];
    ssize_t  n;

    if (ledger_dir == NULL || fstat(fd, st) != 0 || !S_ISREG(st->st_mode)) {
        return false;
    }

    if (fd < SHIM_FDS && inodes[fd] == st->st_ino) {
        return true;
    }

    (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);

    if (n <= 0 || strncmp(path, ledger_dir, strlen(ledger_dir)) != 0) {
        return false;
    }

    if (fd < SHIM_FDS) {
        inodes[fd] = st->st_ino;
    }

    return true;
}


static int
shim_undo_open(const struct stat *st, int flags)
{
    char  path[512];

    (void) snprintf(path, sizeof(path), "%s/%llu", undo_dir,
                    (unsigned long long) st->st_ino);

    return open(path, flags | O_CREAT | O_CLOEXEC, 0666);
}


/* What [off, off + len) has now, before it is written. */

static void
shim_remember(int fd, const struct stat *st, uint64_t off, uint64_t len)
{
    int           u;
    char         *buf;
    ssize_t       n;
    shim_undo_t  *undo;

    buf = malloc(sizeof(shim_undo_t) + len);
    u = shim_undo_open(st, O_WRONLY | O_APPEND);

    if (buf == NULL || u < 0) {
        _exit(99);
    }

    n = len != 0 ? pread(fd, buf + sizeof(shim_undo_t), len, (off_t) off) : 0;

    undo = (shim_undo_t *) (void *) buf;
    undo->off = off;
    undo->len = n > 0 ? (uint64_t) n : 0;
    undo->size = (uint64_t) st->st_size;

    if (write(u, buf, sizeof(shim_undo_t) + undo->len) < 0) {
        _exit(99);
    }

    (void) close(u);
    free(buf);
}


static int
shim_sync(int fd, long call)
{
    int          rc, u;
    bool         done;
    struct stat  st;

    if (!shim_ours(fd, &st)) {
        return (int) syscall(call, fd);
    }

    if (page->die == 1) {
        page->die = 0;
        (void) kill(getpid(), SIGKILL);
    }

    if (page->delay_us != 0) {
        (void) usleep(page->delay_us);
    }

    if (page->fail != 0) {
        errno = EIO;
        return -1;
    }

    (void) pthread_mutex_lock(&mutex);

    done = page->syncs == 0 || (page->syncs == 2 && shim_mono_us() - synced_us
                                                    > SHIM_LATE);
    rc = done ? (int) syscall(call, fd) : 0;

    if (done && rc == 0 && undo_dir != NULL) {
        synced_us = shim_mono_us();
        u = shim_undo_open(&st, O_WRONLY | O_TRUNC);
        (void) close(u);
    }

    (void) pthread_mutex_unlock(&mutex);

    if (page->die == 2) {
        page->die = 0;
        (void) kill(getpid(), SIGKILL);
    }

    return rc;
}


int
fsync(int fd)
{
    return shim_sync(fd, SYS_fsync);
}


int
fdatasync(int fd)
{
    return shim_sync(fd, SYS_fdatasync);
}


/* A file system that may not be written, or has no room left. */

static bool
shim_denied(int fd)
{
    struct stat  st;

    if (page->denied == 0 || !shim_ours(fd, &st)) {
        return false;
    }

    errno = (int) page->denied;

    return true;
}


static int
shim_open(const char *path, int flags, unsigned mode)
{
    if (page->denied == EROFS && (flags & O_ACCMODE) != O_RDONLY
        && ledger_dir != NULL
        && strncmp(path, ledger_dir, strlen(ledger_dir)) == 0)
    {
        errno = EROFS;
        return -1;
    }

    return (int) syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}


int
open(const char *path, int flags, ...)
{
    va_list   args;
    unsigned  mode;

    va_start(args, flags);
    mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, unsigned) : 0;
    va_end(args);

    return shim_open(path, flags, mode);
}


int
open64(const char *path, int flags, ...)
{
    va_list   args;
    unsigned  mode;

    va_start(args, flags);
    mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, unsigned) : 0;
    va_end(args);

    return shim_open(path, flags, mode);
}


static ssize_t
shim_write(int fd, const void *buf, size_t len, off_t off)
{
    ssize_t      n;
    struct stat  st;

    if (shim_denied(fd)) {
        return -1;
    }

    if (undo_dir == NULL || !shim_ours(fd, &st)) {
        return syscall(SYS_pwrite64, fd, buf, len, off);
    }

    (void) pthread_mutex_lock(&mutex);
    (void) fstat(fd, &st);
    shim_remember(fd, &st, (uint64_t) off, len);
    n = syscall(SYS_pwrite64, fd, buf, len, off);
    (void) pthread_mutex_unlock(&mutex);

    return n;
}


ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
    return shim_write(fd, buf, len, off);
}


ssize_t
pwrite64(int fd, const void *buf, size_t len, off64_t off)
{
    return shim_write(fd, buf, len, off);
}


static int
shim_truncate(int fd, off_t size)
{
    int          rc;
    struct stat  st;

    if (shim_denied(fd)) {
        return -1;
    }

    if (undo_dir == NULL || !shim_ours(fd, &st)) {
        return (int) syscall(SYS_ftruncate, fd, size);
    }

    (void) pthread_mutex_lock(&mutex);
    (void) fstat(fd, &st);
    shim_remember(fd, &st, (uint64_t) size,
                  size < st.st_size ? (uint64_t) (st.st_size - size) : 0);
    rc = (int) syscall(SYS_ftruncate, fd, size);
    (void) pthread_mutex_unlock(&mutex);

    return rc;
}


int
ftruncate(int fd, off_t size)
{
    return shim_truncate(fd, size);
}


int
ftruncate64(int fd, off64_t size)
{
    return shim_truncate(fd, size);
}


int
flock(int fd, int op)
{
    return page->no_locks != 0 ? 0 : (int) syscall(SYS_flock, fd, op);
}


/* ---- memory ------------------------------------------------------------- */

static bool
shim_starved(void)
{
    return page->starved != 0 && page->starved == (uint32_t) getpid();
}


void *
malloc(size_t size)
{
    if (shim_starved()) {
        errno = ENOMEM;
        return NULL;
    }

    return __libc_malloc(size);
}


int
posix_memalign(void **p, size_t align, size_t size)
{
    void  *m = shim_starved() ? NULL : __libc_memalign(align, size);

    if (m == NULL) {
        return ENOMEM;
    }

    *p = m;

    return 0;
}


/* ---- the clock ---------------------------------------------------------- */

int
clock_gettime(clockid_t id, struct timespec *ts)
{
    int      rc;
    int64_t  us;

    rc = (int) syscall(SYS_clock_gettime, id, ts);

    if (rc == 0 && page->clock_us != 0
        && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
    {
        us = ts->tv_sec * INT64_C(1000000) + ts->tv_nsec / 1000
             + page->clock_us;
        ts->tv_sec = us / 1000000;
        ts->tv_nsec = us % 1000000 * 1000;
    }

    return rc;
}


int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec  ts;

    (void) tz;
    (void) clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;

    return 0;
}


time_t
time(time_t *t)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_REALTIME, &ts);

    if (t != NULL) {
        *t = ts.tv_sec;
    }

    return ts.tv_sec;
}
