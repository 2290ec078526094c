
/*
 * The simulator: one machine in one thread, driven by one seed.
 *
 * What runs is the code of src/, unchanged.  What it stands on is made here:
 *
 *     ron_port_sim.c   clock, randomness, files, threads (ron_port.h)
 *     sim_disk.c       a page cache over a disk that can lose power
 *     sim_vfs.c        SQLite's door to the same disk
 *     sim_net.c        sockets, epoll, eventfd, by link-time wrapping
 *     sim_task.c       coroutines, processes, the scheduler, the clock
 *     sim_oracle.c     what must be true, judged from the journal alone
 *     sim_world.c      workers, helpers, masters, operator, faults
 *     sim_small.c      small configurations, every interleaving of them
 *     sim_main.c       seeds, child processes, reports
 *
 * A step is what a task does between two points; a point is every call that
 * leaves src/ through one of these doors.  At each point the seed decides who
 * goes on, how much time passed, and whether something dies.
 */

#ifndef SIM_H
#define SIM_H


#include "ron.h"
#include "ron_buf.h"
#include "ron_engine.h"


#define SIM_NEVER  UINT64_MAX


/* ---- chance ------------------------------------------------------------- */

uint64_t sim_rand(void);
uint64_t sim_below(uint64_t n);                 /* 0 when n is 0 */
bool sim_chance(uint64_t num, uint64_t den);

/*
 * A choice of the scheduler: 0 .. n-1.  By the seed, or, when everything is
 * explored, each of them in a world of its own.
 */
uint32_t sim_choose(uint32_t n);


/* ---- tasks and processes ------------------------------------------------ */

typedef struct sim_task_s  sim_task_t;
typedef struct sim_proc_s  sim_proc_t;

struct sim_proc_s {
    uint32_t     no;
    char         name[24];
    bool         dead;
    uint64_t     die_in;                        /* points; 0: not planned */
    uint32_t     tasks;                         /* that have not ended */
    uint32_t     fds;
    void        *data;
    sim_proc_t  *next;
};


typedef struct {
    uint64_t     seed;
    uint64_t     mono_us;
    int64_t      wall_skew_ms;
    uint64_t     points;
    uint64_t     switches;
    uint64_t     point_max;
    uint64_t     cut_in;                        /* points to a power cut */
    uint32_t     sticky;                        /* percent: same task again */
    uint32_t     pace_us;                       /* at most, a point */
    bool         trace;
    bool         oracle;                        /* the judge reads: no points */
    bool         exhaustive;
    bool         over;

    /* looks at a process behind each of its steps; no points in it */
    void       (*watch)(const sim_proc_t *proc);

    /* controls: what the simulator must be able to find */
    bool         lie_early;                     /* answers before fsync */
    bool         lie_sync;                      /* a disk that ignores it */
    bool         lie_lock;                      /* a store without lock */
} sim_t;

extern sim_t  sim;

sim_proc_t *sim_proc_new(const char *name);
void sim_proc_kill(sim_proc_t *proc);           /* perhaps our own */
sim_proc_t *sim_proc(void);                     /* NULL: the world's */

sim_task_t *sim_task_start(sim_proc_t *proc, const char *name,
    void (*fn)(void *arg), void *arg);
sim_task_t *sim_task(void);
bool sim_task_done(const sim_task_t *task);
const char *sim_task_name(void);

/* Somebody else may go on now, or we may be dead. */
void sim_point(void);

/* Blocks until sim_wake() of this channel (true) or the time (false). */
bool sim_wait(const void *chan, uint64_t until_us);
void sim_wake(const void *chan, bool all);
void sim_sleep(uint64_t us);

/*
 * How many switches away from a task that could go on are explored; `strict`:
 * how many choices that are not the first one.
 */
void sim_preempt_set(uint32_t n, bool strict);

/* Runs until sim.over. */
void sim_run(void);

void sim_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void sim_fail(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

#define sim_check(cond, ...)                                                  \
    ((cond) ? (void) 0 : sim_fail(__VA_ARGS__))


/* ---- counters, over all seeds ------------------------------------------- */

#define SIM_COUNTS(X)                                                         \
    X(POINTS, "points")                                                       \
    X(SWITCHES, "task switches")                                              \
    X(UNITS, "units asked for")                                               \
    X(SENDS, "units sent")                                                    \
    X(ACKS, "units acknowledged")                                             \
    X(REFUSED, "units refused")                                               \
    X(REPEATS, "answers that were repeats")                                   \
    X(LATE, "refused, and an older copy then done")                           \
    X(ENTRIES, "entries judged")                                              \
    X(SCANS, "journal walks")                                                 \
    X(BALANCES, "published balances judged")                                  \
    X(TAKEOVERS, "ledgers taken over")                                        \
    X(SAFE, "safe mode entered")                                              \
    X(SAFE_LEFT, "safe mode left by the operator")                            \
    X(F_KILL, "fault: helper killed")                                         \
    X(F_POWER, "fault: power cut")                                            \
    X(F_WORKER, "fault: worker killed")                                       \
    X(F_CONN, "fault: connection lost")                                       \
    X(F_CLOCK, "fault: clock jumped")                                         \
    X(F_FULL, "fault: write refused, disk full")                              \
    X(F_EIO_WRITE, "fault: write failed")                                     \
    X(F_EIO_READ, "fault: read failed")                                       \
    X(F_EIO_SYNC, "fault: sync failed")                                       \
    X(F_EVICT, "fault: pages lost after a failed sync")                       \
    X(F_TORN, "fault: write torn by a power cut")                             \
    X(F_DROP, "fault: write lost in a power cut")                             \
    X(F_NAME, "fault: name lost in a power cut")                              \
    X(F_STALL, "fault: task stalled")                                         \
    X(F_RELOAD, "event: reload, two helpers")                                 \
    X(F_UPGRADE, "event: upgrade, two masters")                               \
    X(F_DRAIN, "event: drain")                                                \
    X(F_STOP, "event: stop")                                                  \
    X(STOP_LATE, "stops that ended in _exit")

typedef enum {
#define SIM_COUNT_ENUM(id, name)  SIM_##id,
    SIM_COUNTS(SIM_COUNT_ENUM)
#undef SIM_COUNT_ENUM
    SIM_COUNT_N
} sim_count_t;

extern uint64_t  *sim_counts;                   /* shared with the parent */
extern char      *sim_verdict;                  /* likewise: why it failed */
extern uint64_t  *sim_digest;                   /* of everything traced */

#define SIM_VERDICT_LEN  1024

static inline void
sim_count(sim_count_t what, uint64_t n)
{
    sim_counts[what] += n;
}


/* ---- the disk ----------------------------------------------------------- */

typedef struct sim_file_s  sim_file_t;

typedef enum { SIM_IO_OK = 0, SIM_IO_FULL, SIM_IO_ERROR } sim_io_t;

void sim_disk_init(void);

sim_file_t *sim_disk_find(const char *path);    /* NULL: no such name */
sim_io_t sim_disk_create(const char *path, bool dir, sim_file_t **file);
bool sim_disk_unlink(const char *path);
bool sim_disk_rename(const char *from, const char *to);
void sim_disk_each(const char *dir, bool (*fn)(void *ctx, const char *name),
    void *ctx);
bool sim_file_is_dir(const sim_file_t *f);

sim_file_t *sim_file_hold(sim_file_t *f);       /* an open descriptor */
void sim_file_drop(sim_file_t *f);

uint64_t sim_file_len(const sim_file_t *f);
/* Bytes read, short at the end of the file; -1: an error. */
int64_t sim_file_read(sim_file_t *f, void *buf, size_t len, uint64_t off);
sim_io_t sim_file_write(sim_file_t *f, const void *buf, size_t len,
    uint64_t off);
sim_io_t sim_file_cut(sim_file_t *f, uint64_t len);
sim_io_t sim_file_flush(sim_file_t *f);
/* Names; `parent` of a path when `of_parent`. */
sim_io_t sim_dir_flush(const char *path, bool of_parent);

/* The power goes: what was not flushed is there, is not, or is in pieces. */
void sim_disk_power_cut(void);

typedef struct {
    bool      full;
    uint32_t  eio_write;                        /* one in so many; 0: never */
    uint32_t  eio_read;
    uint32_t  eio_sync;
} sim_disk_faults_t;

extern sim_disk_faults_t  sim_disk;

/* Locks of descriptors: `owner` is any pointer.  false: held by another. */
bool sim_file_lock(sim_file_t *f, const void *owner, sim_proc_t *proc);
void sim_file_unlock(sim_file_t *f, const void *owner);
bool sim_proc_locks(sim_proc_t *proc, const char *path);


/* ---- SQLite -------------------------------------------------------------- */

#define SIM_VFS  "ron-sim"

void sim_vfs_init(void);
void sim_vfs_proc_died(sim_proc_t *proc);
void sim_vfs_power_cut(void);
uint32_t sim_vfs_open(const sim_proc_t *proc);  /* handles of a process */


/* ---- sockets ------------------------------------------------------------ */

typedef struct sim_end_s  sim_end_t;            /* one end of a stream */

/* What the port opens is a descriptor here too. */
int sim_fd_new_file(sim_file_t *f, bool writable);
sim_file_t *sim_fd_file(int fd);
void sim_fd_close(int fd);
const void *sim_fd_owner(int fd);

void sim_net_proc_died(sim_proc_t *proc);
void sim_net_forget_names(void);
bool sim_net_rename(const char *from, const char *to);
bool sim_net_unlink(const char *path);

/* The other side, for tasks of the world. */
sim_end_t *sim_connect(const char *path);       /* NULL: refused */
void sim_end_close(sim_end_t *e);
/* -1: closed by the peer; 0: nothing now. */
int64_t sim_end_recv(sim_end_t *e, void *buf, size_t len);
int64_t sim_end_send(sim_end_t *e, const void *buf, size_t len);
/* Until something has come, or can be sent, or the stream has ended. */
void sim_end_wait(sim_end_t *e);
/* Breaks the stream; what is under way may be lost. */
void sim_end_break(sim_end_t *e);


/* ---- the judge ---------------------------------------------------------- */

#define SIM_OPS_MAX  8

typedef struct {
    uint64_t    uid;                            /* first 8 bytes of the memo */
    uint8_t     kind;
    ron_u128_t  amount;
    uint32_t    sent;                           /* copies */
    bool        done;                           /* acknowledged */
    bool        refused;                        /* for good */
    uint64_t    seq;                            /* as acknowledged */
    ron_hash_t  bytes;                          /* BLAKE3 of them */
    bool        has_bytes;
    uint64_t    found;                          /* seq in the journal */
} sim_op_t;

void oracle_init(void);
sim_op_t *oracle_op(uint8_t kind, ron_u128_t amount);
/* An answer: every one of them is checked now or at the next walk. */
void oracle_done(sim_op_t *op, uint64_t seq, ron_str_t bytes);
void oracle_refused(sim_op_t *op);

/* The tree that an answer came with. */
void oracle_head(uint64_t size, const ron_hash_t *root);

/*
 * Walks what is new in the journal; `again`: from its beginning.  false: it
 * cannot be read this instant.
 */
bool oracle_scan(bool again);
/* A batch that a helper published, with its balances. */
void oracle_commit(sim_proc_t *proc, const ron_batch_t *batch);
/* Everything at rest: every acknowledged entry is there. */
void oracle_settle(void);
bool oracle_purse(uint32_t n, ron_str_t *account, ron_str_t *asset,
    ron_u128_t *available, ron_u128_t *held);
uint64_t oracle_seq(void);
void oracle_root(ron_hash_t *root);
bool oracle_hold(uint64_t n, uint64_t *seq, ron_u128_t *left);


/* ---- worlds ------------------------------------------------------------- */

#define SIM_DIR   "/m/led"
#define SIM_URL   "sqlite:/m/led"
#define SIM_SOCK  "/m/run/ron.sock"

/* One seed: does not return when it fails. */
void world_run(uint64_t seed);

/*
 * Every interleaving with at most so many preemptions; shutdown at any step,
 * or `late`, when all is done.
 */
void small_engine(uint32_t preempt_max, bool late);
void small_wallet(uint32_t preempt_max, bool late);


#endif /* SIM_H */
