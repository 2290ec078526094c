
/*
 * The port on Linux and its C library.
 *
 * Failure model.  A call either does all of its work or says that it did not;
 * interrupted calls are repeated, short writes are continued.  A sync that
 * failed is reported and never repeated: the kernel may have dropped the
 * dirty pages and would call the second one a success.
 *
 * Locks are flock() locks.  They belong to the open file description, so the
 * kernel releases them on any death of the process, they work on directories,
 * and nothing that SQLite does with its POSIX locks on other descriptors can
 * drop them.
 *
 * A failed mutex or condition call means that memory was overwritten or that
 * a lock is misused; neither has a way to go on, so these are assertions.
 */

#include "ron_port.h"
#include "ron_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


/* A wait of a year is for ever, and adding it to a clock cannot overflow. */
#define RON_WAIT_MAX_US  (UINT64_C(366) * 86400 * 1000000)

#define RON_THREAD_NAME_LEN  15

/* The shortest that the kernel takes; a usual one is 1 to 3 ms. */
#define RON_THREAD_SLICE_NS  100000

/* What a large page is on the machines that have them. */
#define RON_PAGE_LARGE       ((uintptr_t) 2 << 20)


struct ron_mutex_s {
    pthread_mutex_t   mutex;
    ron_lock_id_t     id;
};


struct ron_cond_s {
    pthread_cond_t    cond;
};


struct ron_thread_s {
    pthread_t         tid;
    void            (*fn)(void *arg);
    void             *arg;
    ron_mutex_t      *mutex;
    ron_cond_t       *ended_cond;
    bool              ended;            /* under mutex */
    ron_thread_kind_t kind;
    char              name[RON_THREAD_NAME_LEN + 1];
};


/* The kernel's struct sched_attr, for which the C library has no name. */

typedef struct {
    uint32_t          size;
    uint32_t          policy;
    uint64_t          flags;
    int32_t           nice;
    uint32_t          priority;
    uint64_t          runtime;
    uint64_t          deadline;
    uint64_t          period;
} ron_sched_attr_t;


static ron_status_t ron_port_failed(int err);
static ron_fd_t ron_fd_above_stdio(ron_fd_t fd);
static ron_status_t ron_dir_walk(DIR *dir,
    ron_status_t (*fn)(void *ctx, const char *name), void *ctx);
static ron_status_t ron_thread_create(ron_thread_t *thread);
static void ron_thread_free(ron_thread_t *thread);
static void *ron_thread_main(void *data);
static void ron_thread_schedule(ron_thread_kind_t kind);
static struct timespec ron_deadline(uint64_t timeout_us);


static _Atomic uint32_t    ron_port_threads;
static _Thread_local int   ron_port_err;
static _Thread_local char  ron_port_err_text[128];


int
ron_port_errno(void)
{
    return ron_port_err;
}


const char *
ron_port_error(void)
{
    return strerror_r(ron_port_err, ron_port_err_text,
                      sizeof(ron_port_err_text));
}


/* Keeps the reason and turns it into the status that callers act on. */

static ron_status_t
ron_port_failed(int err)
{
    ron_port_err = err;

    switch (err) {

    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return RON_EFULL;

    case ENOMEM:
        return RON_ENOMEM;

    case ENOENT:
        return RON_ENOTFOUND;

    case EEXIST:
        return RON_EEXIST;

    default:
        return RON_EIO;
    }
}


uint64_t
ron_clock_wall_ms(void)
{
    struct timespec  ts;

    RON_ASSERT(clock_gettime(CLOCK_REALTIME, &ts) == 0);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


uint64_t
ron_clock_mono_us(void)
{
    struct timespec  ts;

    RON_ASSERT(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


ron_status_t
ron_random(void *buf, size_t len)
{
    size_t    done;
    ssize_t   n;
    uint8_t  *p;

    p = buf;

    for (done = 0; done < len; done += (size_t) n) {

        n = getrandom(p + done, len - done, 0);

        if (n <= 0) {
            if (n < 0 && errno == EINTR) {
                n = 0;
                continue;
            }

            memset(buf, 0, len);
            return ron_port_failed(n < 0 ? errno : EIO);
        }
    }

    return RON_OK;
}


ron_status_t
ron_file_open(const char *path, unsigned flags, ron_fd_t *fd)
{
    int  mode;

    ron_lock_wait("ron_file_open()");

    *fd = RON_FD_NONE;

    mode = O_CLOEXEC | O_NOCTTY;
    mode |= flags & RON_OPEN_WRITE ? O_RDWR : O_RDONLY;
    mode |= flags & RON_OPEN_CREATE ? O_CREAT : 0;
    mode |= flags & RON_OPEN_EXCL ? O_EXCL : 0;
    mode |= flags & RON_OPEN_DIR ? O_DIRECTORY : 0;

    do {
        *fd = open(path, mode, 0600);
    } while (*fd < 0 && errno == EINTR);

    if (*fd >= 0 && *fd <= STDERR_FILENO) {
        *fd = ron_fd_above_stdio(*fd);
    }

    if (*fd < 0) {
        *fd = RON_FD_NONE;
        return ron_port_failed(errno);
    }

    return RON_OK;
}


/*
 * A process started with stdin, stdout or stderr closed would get its first
 * file as one of them, and then print its next error message into the ledger.
 */

static ron_fd_t
ron_fd_above_stdio(ron_fd_t fd)
{
    int  above, err;

    above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    err = errno;

    (void) close(fd);
    errno = err;

    return above;
}


void
ron_file_close(ron_fd_t fd)
{
    /* interrupted or not, Linux has released the descriptor */

    if (fd != RON_FD_NONE) {
        (void) close(fd);
    }
}


ron_status_t
ron_file_size(ron_fd_t fd, uint64_t *size)
{
    struct stat  st;

    ron_lock_wait("ron_file_size()");

    *size = 0;

    if (fstat(fd, &st) != 0) {
        return ron_port_failed(errno);
    }

    *size = (uint64_t) st.st_size;

    return RON_OK;
}


ron_status_t
ron_file_truncate(ron_fd_t fd, uint64_t size)
{
    int  rc;

    ron_lock_wait("ron_file_truncate()");

    if (size > INT64_MAX) {
        return ron_port_failed(EFBIG);
    }

    do {
        rc = ftruncate(fd, (off_t) size);
    } while (rc != 0 && errno == EINTR);

    return rc == 0 ? RON_OK : ron_port_failed(errno);
}


ron_status_t
ron_file_pread(ron_fd_t fd, void *buf, size_t len, uint64_t off)
{
    size_t        done;
    ssize_t       n;
    uint8_t      *p;
    ron_status_t  status;

    ron_lock_wait("ron_file_pread()");

    if (len == 0) {
        return RON_OK;
    }

    p = buf;
    status = RON_OK;

    if (off > INT64_MAX || len > INT64_MAX - off) {
        memset(buf, 0, len);
        return ron_port_failed(EOVERFLOW);
    }

    for (done = 0; done < len; done += (size_t) n) {

        n = pread(fd, p + done, len - done, (off_t) (off + done));

        if (n < 0 && errno == EINTR) {
            n = 0;
            continue;
        }

        if (n < 0) {
            status = ron_port_failed(errno);
            break;
        }

        if (n == 0) {
            ron_port_err = 0;
            status = RON_ENOTFOUND;
            break;
        }
    }

    if (status != RON_OK) {
        memset(buf, 0, len);
    }

    return status;
}


ron_status_t
ron_file_pwrite(ron_fd_t fd, const void *buf, size_t len, uint64_t off)
{
    size_t          done;
    ssize_t         n;
    const uint8_t  *p;

    ron_lock_wait("ron_file_pwrite()");

    p = buf;

    if (off > INT64_MAX || len > INT64_MAX - off) {
        return ron_port_failed(EFBIG);
    }

    for (done = 0; done < len; done += (size_t) n) {

        n = pwrite(fd, p + done, len - done, (off_t) (off + done));

        if (n <= 0) {
            if (n < 0 && errno == EINTR) {
                n = 0;
                continue;
            }

            return ron_port_failed(n < 0 ? errno : EIO);
        }
    }

    return RON_OK;
}


ron_status_t
ron_file_sync(ron_fd_t fd)
{
    int  rc;

    ron_lock_wait("ron_file_sync()");

    do {
        rc = fdatasync(fd);
    } while (rc != 0 && errno == EINTR);

    return rc == 0 ? RON_OK : ron_port_failed(errno);
}


ron_status_t
ron_dir_sync(const char *path)
{
    int           rc;
    ron_fd_t      fd;
    ron_status_t  status;

    status = ron_file_open(path, RON_OPEN_READ | RON_OPEN_DIR, &fd);
    if (status != RON_OK) {
        return status;
    }

    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);

    status = rc == 0 ? RON_OK : ron_port_failed(errno);

    ron_file_close(fd);

    return status;
}


ron_status_t
ron_file_rename(const char *from, const char *to)
{
    ron_lock_wait("ron_file_rename()");

    return rename(from, to) == 0 ? RON_OK : ron_port_failed(errno);
}


ron_status_t
ron_file_unlink(const char *path)
{
    ron_lock_wait("ron_file_unlink()");

    return unlink(path) == 0 ? RON_OK : ron_port_failed(errno);
}


ron_status_t
ron_dir_make(const char *path)
{
    struct stat  st;

    ron_lock_wait("ron_dir_make()");

    if (mkdir(path, 0700) == 0) {
        return RON_OK;
    }

    if (errno != EEXIST) {
        return ron_port_failed(errno);
    }

    if (stat(path, &st) != 0) {
        return ron_port_failed(errno);
    }

    return S_ISDIR(st.st_mode) ? RON_OK : ron_port_failed(ENOTDIR);
}


ron_status_t
ron_dir_each(const char *path, ron_status_t (*fn)(void *ctx, const char *name),
    void *ctx)
{
    DIR           *dir;
    ron_status_t   status;

    ron_lock_wait("ron_dir_each()");

    dir = opendir(path);
    if (dir == NULL) {
        return ron_port_failed(errno);
    }

    status = ron_dir_walk(dir, fn, ctx);

    (void) closedir(dir);

    return status;
}


static ron_status_t
ron_dir_walk(DIR *dir, ron_status_t (*fn)(void *ctx, const char *name),
    void *ctx)
{
    ron_status_t    status;
    struct dirent  *entry;

    for ( ;; ) {

        errno = 0;

        entry = readdir(dir);
        if (entry == NULL) {
            return errno == 0 ? RON_OK : ron_port_failed(errno);
        }

        if (strcmp(entry->d_name, ".") == 0
            || strcmp(entry->d_name, "..") == 0)
        {
            continue;
        }

        status = fn(ctx, entry->d_name);
        if (status != RON_OK) {
            return status;
        }
    }
}


ron_status_t
ron_file_lock(ron_fd_t fd)
{
    int  rc;

    do {
        rc = flock(fd, LOCK_EX | LOCK_NB);
    } while (rc != 0 && errno == EINTR);

    if (rc == 0) {
        return RON_OK;
    }

    if (errno == EWOULDBLOCK) {
        ron_port_err = errno;
        return RON_EFENCED;
    }

    return ron_port_failed(errno);
}


void
ron_memory_large(void *p, size_t len)
{
#ifdef MADV_HUGEPAGE
    uintptr_t  from, to;

    from = ((uintptr_t) p + RON_PAGE_LARGE - 1) & ~(RON_PAGE_LARGE - 1);
    to = ((uintptr_t) p + len) & ~(RON_PAGE_LARGE - 1);

    if (from < to) {
        (void) madvise((void *) from, to - from, MADV_HUGEPAGE);
    }
#else
    (void) p;
    (void) len;
#endif
}


ron_status_t
ron_thread_start(ron_thread_t **thread, const char *name,
    ron_thread_kind_t kind, void (*fn)(void *arg), void *arg)
{
    ron_status_t   status;
    ron_thread_t  *t;

    *thread = NULL;

    t = calloc(1, sizeof(ron_thread_t));
    if (t == NULL) {
        return ron_port_failed(ENOMEM);
    }

    t->fn = fn;
    t->arg = arg;
    t->kind = kind;
    (void) snprintf(t->name, sizeof(t->name), "%s", name);

    status = ron_mutex_create(&t->mutex, RON_LOCK_THREAD);

    if (status == RON_OK) {
        status = ron_cond_create(&t->ended_cond);
    }

    if (status == RON_OK) {
        status = ron_thread_create(t);
    }

    if (status != RON_OK) {
        ron_thread_free(t);
        return status;
    }

    *thread = t;

    return RON_OK;
}


/*
 * The mask is inherited, so it is in force before the first instruction of
 * the thread: a signal can never choose it.
 */

static ron_status_t
ron_thread_create(ron_thread_t *thread)
{
    int       rc;
    sigset_t  all, old;

    sigfillset(&all);

    rc = pthread_sigmask(SIG_SETMASK, &all, &old);
    RON_ASSERT(rc == 0);

    atomic_fetch_add(&ron_port_threads, 1);

    rc = pthread_create(&thread->tid, NULL, ron_thread_main, thread);

    if (rc != 0) {
        atomic_fetch_sub(&ron_port_threads, 1);
    }

    RON_ASSERT(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);

    return rc == 0 ? RON_OK : ron_port_failed(rc);
}


static void *
ron_thread_main(void *data)
{
    ron_thread_t  *thread = data;

    (void) pthread_setname_np(pthread_self(), thread->name);
    ron_thread_schedule(thread->kind);

    thread->fn(thread->arg);

    /* before it is told: who joins does not count it any more */

    atomic_fetch_sub(&ron_port_threads, 1);

    ron_mutex_lock(thread->mutex);
    thread->ended = true;
    ron_cond_signal(thread->ended_cond);
    ron_mutex_unlock(thread->mutex);

    return NULL;
}


/*
 * A thread has the policy and the slice of its starter, if it is not told
 * otherwise.  A sandbox may refuse: the work is then merely late, or not
 * polite.  Slices are of the usual policy: who has chosen another one for all
 * of us knows better, but not who is idle.
 */

static void
ron_thread_schedule(ron_thread_kind_t kind)
{
    ron_sched_attr_t  attr;

    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0) {
        return;
    }

    if (kind == RON_THREAD_IDLE) {
        attr.policy = SCHED_IDLE;
        attr.priority = 0;

    } else if (attr.policy != SCHED_OTHER) {
        return;
    }

    attr.runtime = kind == RON_THREAD_PROMPT ? RON_THREAD_SLICE_NS : 0;

    (void) syscall(SYS_sched_setattr, 0, &attr, 0);
}


void
ron_thread_hurry(ron_thread_t *thread)
{
    struct sched_param  param;

    memset(&param, 0, sizeof(param));
    (void) pthread_setschedparam(thread->tid, SCHED_OTHER, &param);
}


uint32_t
ron_thread_count(void)
{
    return atomic_load(&ron_port_threads);
}


ron_status_t
ron_thread_join(ron_thread_t *thread, uint64_t timeout_ms)
{
    bool      ended;
    uint64_t  now, end;

    ron_lock_wait("a thread's end");

    now = ron_clock_mono_us();
    end = now + ron_min(timeout_ms, RON_WAIT_MAX_US / 1000) * 1000;

    ron_mutex_lock(thread->mutex);

    while (!thread->ended && now < end) {
        (void) ron_cond_wait(thread->ended_cond, thread->mutex, end - now);
        now = ron_clock_mono_us();
    }

    ended = thread->ended;

    ron_mutex_unlock(thread->mutex);

    if (!ended) {
        return RON_AGAIN;
    }

    /* nothing of ours runs any more, so this returns at once */

    RON_ASSERT(pthread_join(thread->tid, NULL) == 0);

    ron_thread_free(thread);

    return RON_OK;
}


static void
ron_thread_free(ron_thread_t *thread)
{
    if (thread->ended_cond) {
        ron_cond_destroy(thread->ended_cond);
    }

    if (thread->mutex) {
        ron_mutex_destroy(thread->mutex);
    }

    free(thread);
}


ron_status_t
ron_mutex_create(ron_mutex_t **mutex, ron_lock_id_t lock)
{
    int                  rc;
    ron_mutex_t         *m;
    pthread_mutexattr_t  attr;

    *mutex = NULL;

    m = calloc(1, sizeof(ron_mutex_t));
    if (m == NULL) {
        return ron_port_failed(ENOMEM);
    }

    /* taken twice by one thread, it is an assertion and not a dead process */

    RON_ASSERT(pthread_mutexattr_init(&attr) == 0);
    RON_ASSERT(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK) == 0);

    rc = pthread_mutex_init(&m->mutex, &attr);

    (void) pthread_mutexattr_destroy(&attr);

    if (rc != 0) {
        free(m);
        return ron_port_failed(rc);
    }

    m->id = lock;
    *mutex = m;

    return RON_OK;
}


void
ron_mutex_destroy(ron_mutex_t *mutex)
{
    RON_ASSERT(pthread_mutex_destroy(&mutex->mutex) == 0);

    free(mutex);
}


void
ron_mutex_lock(ron_mutex_t *mutex)
{
    ron_lock_take(mutex->id);

    RON_ASSERT(pthread_mutex_lock(&mutex->mutex) == 0);
}


void
ron_mutex_unlock(ron_mutex_t *mutex)
{
    ron_lock_leave(mutex->id);

    RON_ASSERT(pthread_mutex_unlock(&mutex->mutex) == 0);
}


ron_status_t
ron_cond_create(ron_cond_t **cond)
{
    int                 rc;
    ron_cond_t         *c;
    pthread_condattr_t  attr;

    *cond = NULL;

    c = calloc(1, sizeof(ron_cond_t));
    if (c == NULL) {
        return ron_port_failed(ENOMEM);
    }

    RON_ASSERT(pthread_condattr_init(&attr) == 0);
    RON_ASSERT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);

    rc = pthread_cond_init(&c->cond, &attr);

    (void) pthread_condattr_destroy(&attr);

    if (rc != 0) {
        free(c);
        return ron_port_failed(rc);
    }

    *cond = c;

    return RON_OK;
}


void
ron_cond_destroy(ron_cond_t *cond)
{
    RON_ASSERT(pthread_cond_destroy(&cond->cond) == 0);

    free(cond);
}


void
ron_cond_signal(ron_cond_t *cond)
{
    RON_ASSERT(pthread_cond_signal(&cond->cond) == 0);
}


void
ron_cond_broadcast(ron_cond_t *cond)
{
    RON_ASSERT(pthread_cond_broadcast(&cond->cond) == 0);
}


ron_status_t
ron_cond_wait(ron_cond_t *cond, ron_mutex_t *mutex, uint64_t timeout_us)
{
    int              rc;
    struct timespec  end;

    ron_lock_wait_for(mutex->id);

    end = ron_deadline(timeout_us);

    rc = pthread_cond_timedwait(&cond->cond, &mutex->mutex, &end);

    RON_ASSERT(rc == 0 || rc == ETIMEDOUT);

    return rc == 0 ? RON_OK : RON_AGAIN;
}


void
ron_sleep_us(uint64_t us)
{
    int              rc;
    struct timespec  end;

    ron_lock_wait("some time");

    end = ron_deadline(us);

    do {
        rc = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
    } while (rc == EINTR);

    RON_ASSERT(rc == 0);
}


static struct timespec
ron_deadline(uint64_t timeout_us)
{
    uint64_t         us;
    struct timespec  end;

    us = ron_clock_mono_us() + ron_min(timeout_us, RON_WAIT_MAX_US);

    /* the clock above is rounded down, a deadline must not be early */

    us++;

    end.tv_sec = (time_t) (us / 1000000);
    end.tv_nsec = (long) (us % 1000000) * 1000;

    return end;
}
