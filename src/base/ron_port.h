
/*
 * The port: the only door from libron to the clock, to files, to threads and
 * to randomness.  ron_port_posix.c is the real one; the simulator links its
 * own.  (SQLite has its own door, the VFS, and the simulator owns that too.)
 *
 * Errors: a call that fails keeps the operating system's reason for
 * ron_port_errno(), which is for log lines only; no decision reads it but
 * "is the disk full" (RON_EFULL: ENOSPC, EDQUOT, EFBIG) against RON_EIO.
 */

#ifndef RON_PORT_H
#define RON_PORT_H


#include "ron.h"
#include "ron_registry.h"


/* Milliseconds since the epoch, and monotonic microseconds. */
uint64_t ron_clock_wall_ms(void);
uint64_t ron_clock_mono_us(void);

ron_status_t ron_random(void *buf, size_t len);


/* ---- files: absolute or relative paths, mode 0600, always CLOEXEC ------- */

typedef int  ron_fd_t;

#define RON_FD_NONE  (-1)

#define RON_OPEN_READ    0x01
#define RON_OPEN_WRITE   0x02      /* implies read */
#define RON_OPEN_CREATE  0x04
#define RON_OPEN_EXCL    0x08
#define RON_OPEN_DIR     0x10

int ron_port_errno(void);
const char *ron_port_error(void);

ron_status_t ron_file_open(const char *path, unsigned flags, ron_fd_t *fd);
void ron_file_close(ron_fd_t fd);
ron_status_t ron_file_size(ron_fd_t fd, uint64_t *size);
ron_status_t ron_file_truncate(ron_fd_t fd, uint64_t size);

/* All of `len` bytes or an error: RON_ENOTFOUND when the file ends before. */
ron_status_t ron_file_pread(ron_fd_t fd, void *buf, size_t len, uint64_t off);
ron_status_t ron_file_pwrite(ron_fd_t fd, const void *buf, size_t len,
    uint64_t off);
ron_status_t ron_file_sync(ron_fd_t fd);            /* fdatasync */
ron_status_t ron_dir_sync(const char *path);
ron_status_t ron_file_rename(const char *from, const char *to);
ron_status_t ron_file_unlink(const char *path);     /* absent: RON_ENOTFOUND */
ron_status_t ron_dir_make(const char *path);        /* 0700; exists: RON_OK */

/* Calls fn for every name in a directory but . and .., in no order. */
ron_status_t ron_dir_each(const char *path,
    ron_status_t (*fn)(void *ctx, const char *name), void *ctx);

/* An exclusive lock that dies with the descriptor; RON_EFENCED when held. */
ron_status_t ron_file_lock(ron_fd_t fd);


/* ---- memory ------------------------------------------------------------- */

/*
 * A hint for large tables that are read at random: fewer, larger pages, where
 * the system gives them.  Best given before the memory is first touched.
 */
void ron_memory_large(void *p, size_t len);


/* ---- threads ------------------------------------------------------------ */

typedef struct ron_thread_s  ron_thread_t;
typedef struct ron_mutex_s   ron_mutex_t;
typedef struct ron_cond_s    ron_cond_t;

/*
 * A prompt thread works for others who wait, a little at a time: where the
 * kernel knows slices (Linux 6.12) it comes before those who compute for long.
 * An idle one has what nobody else wants: SCHED_IDLE.
 */
typedef enum {
    RON_THREAD_USUAL = 0,
    RON_THREAD_PROMPT,
    RON_THREAD_IDLE
} ron_thread_kind_t;

/*
 * A thread with all signals blocked.  The name is at most 15 bytes and shows
 * in ps and perf.
 */
ron_status_t ron_thread_start(ron_thread_t **thread, const char *name,
    ron_thread_kind_t kind, void (*fn)(void *arg), void *arg);

/* Somebody waits for an idle thread: it gets its turn like any other. */
void ron_thread_hurry(ron_thread_t *thread);

/* Joins and frees; RON_AGAIN when it still runs after timeout_ms. */
ron_status_t ron_thread_join(ron_thread_t *thread, uint64_t timeout_ms);

/* Threads of this process that were started here and have not ended. */
uint32_t ron_thread_count(void);

/* Each is a row of the registry, whose order ron_lock.h can assert. */
ron_status_t ron_mutex_create(ron_mutex_t **mutex, ron_lock_id_t lock);
void ron_mutex_destroy(ron_mutex_t *mutex);
void ron_mutex_lock(ron_mutex_t *mutex);
void ron_mutex_unlock(ron_mutex_t *mutex);

ron_status_t ron_cond_create(ron_cond_t **cond);
void ron_cond_destroy(ron_cond_t *cond);
void ron_cond_signal(ron_cond_t *cond);
void ron_cond_broadcast(ron_cond_t *cond);

/* Spurious wake-ups happen; RON_AGAIN after timeout_us. */
ron_status_t ron_cond_wait(ron_cond_t *cond, ron_mutex_t *mutex,
    uint64_t timeout_us);

void ron_sleep_us(uint64_t us);


#endif /* RON_PORT_H */
