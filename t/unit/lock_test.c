
/*
 * The order of locks and the golden rule, asserted while the program runs: a
 * process for each way to break them, which has to be aborted with a line
 * that names both sides; and each of these with nothing held, which has to go
 * on.
 */

#include "ron_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ron_lock.h"
#include "ron_log.h"
#include "ron_port.h"


typedef struct {
    const char   *name;                 /* what the line says is waited for */
    void        (*fn)(void);
} wait_case_t;


static sqlite3       *db;
static sqlite3_stmt  *stmt;
static ron_mutex_t   *mutexes[RON_LOCK_N];
static ron_cond_t    *cond;
static int            pipes[2];
static char           path[64];


/* ---- what a process does, and how it ends -------------------------------- */

static void
silent(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;
    (void) level;
    (void) line;
}


/* Runs fn in a process; its standard error is in `text`.  True if aborted. */

static bool
aborts(void (*fn)(void *arg), void *arg, char *text, size_t size)
{
    int      fds[2], state;
    pid_t    pid;
    size_t   len;
    ssize_t  n;

    if (pipe(fds) != 0) {
        exit(1);
    }

    pid = fork();

    if (pid == 0) {
        (void) dup2(fds[1], 2);
        (void) close(fds[0]);
        fn(arg);
        _exit(0);
    }

    (void) close(fds[1]);

    for (len = 0; len + 1 < size; len += (size_t) n) {
        n = read(fds[0], text + len, size - 1 - len);
        if (n <= 0) {
            break;
        }
    }

    text[len] = '\0';

    (void) close(fds[0]);
    (void) waitpid(pid, &state, 0);

    return WIFSIGNALED(state) && WTERMSIG(state) == SIGABRT;
}


/* ---- locks ---------------------------------------------------------------- */

static void
take_two(void *arg)
{
    ron_lock_id_t  *two = arg;

    ron_mutex_lock(mutexes[two[0]]);
    ron_mutex_lock(mutexes[two[1]]);
    ron_mutex_unlock(mutexes[two[0]]);
    ron_mutex_unlock(mutexes[two[1]]);
}


static void
take_namesake(void *arg)
{
    ron_mutex_t  *other;

    (void) arg;

    (void) ron_mutex_create(&other, RON_LOCK_TAGS);
    ron_mutex_lock(mutexes[RON_LOCK_TAGS]);
    ron_mutex_lock(other);
}


static void
give_not_taken(void *arg)
{
    (void) arg;

    ron_lock_leave(RON_LOCK_TAGS);
}


static void
test_order(void)
{
    char           text[512], want[512];
    unsigned       wrong, silence, ended;
    ron_lock_id_t  two[2];

    wrong = 0;
    silence = 0;
    ended = 0;

    for (unsigned i = 0; i < RON_LOCK_N; i++) {
        for (unsigned j = 0; j < RON_LOCK_N; j++) {

            two[0] = (ron_lock_id_t) i;
            two[1] = (ron_lock_id_t) j;

            if (!aborts(take_two, two, text, sizeof(text))) {
                ended++;
                wrong += j <= i || text[0] != '\0';
                continue;
            }

            wrong += j > i;

            (void) snprintf(want, sizeof(want),
                            "ron: lock order: \"%s\" (order %u) is taken, "
                            "with \"%s\" (order %u) held\n",
                            ron_lock_info(two[1])->name,
                            (unsigned) ron_lock_info(two[1])->order,
                            ron_lock_info(two[0])->name,
                            (unsigned) ron_lock_info(two[0])->order);
            silence += strcmp(text, want) != 0;
        }
    }

    is_u64(wrong, 0, "of each two locks one order is right, and not another");
    is_u64(silence, 0, "and each wrong one has a line that names both");
    is_u64(ended, RON_LOCK_N * (RON_LOCK_N - 1) / 2, "%u are right", ended);

    ok(aborts(take_namesake, NULL, text, sizeof(text))
       && strstr(text, "\"tags\" (order 25) is taken, with \"tags\""),
       "two locks of one row have no order");
    ok(aborts(give_not_taken, NULL, text, sizeof(text)),
       "what is not held is not given back");
}


/* A lock in the middle is given back first: the others are still held. */

static void
middle(void *arg)
{
    bool  *again = arg;

    ron_mutex_lock(mutexes[RON_LOCK_ENGINE]);
    ron_mutex_lock(mutexes[RON_LOCK_TAGS]);
    ron_mutex_lock(mutexes[RON_LOCK_NODES]);
    ron_mutex_unlock(mutexes[RON_LOCK_TAGS]);
    ron_mutex_unlock(mutexes[RON_LOCK_NODES]);

    ron_mutex_lock(mutexes[*again ? RON_LOCK_ENGINE : RON_LOCK_TAGS]);
}


static void
test_middle(void)
{
    bool  again;
    char  text[512];

    again = false;
    ok(!aborts(middle, &again, text, sizeof(text)),
       "given back in another order, the next is above what is left: %s", text);

    again = true;
    ok(aborts(middle, &again, text, sizeof(text))
       && strstr(text, "with \"engine\" (order 10) held"),
       "and what is left counts");
}


/* ---- conditions ----------------------------------------------------------- */

static void
wait_alone(void *arg)
{
    (void) arg;

    ron_mutex_lock(mutexes[RON_LOCK_TAGS]);
    (void) ron_cond_wait(cond, mutexes[RON_LOCK_TAGS], 0);
    ron_mutex_unlock(mutexes[RON_LOCK_TAGS]);
    ron_sleep_us(1);
}


static void
wait_holding(void *arg)
{
    (void) arg;

    ron_mutex_lock(mutexes[RON_LOCK_ENGINE]);
    ron_mutex_lock(mutexes[RON_LOCK_TAGS]);
    (void) ron_cond_wait(cond, mutexes[RON_LOCK_TAGS], 0);
}


static void
test_conditions(void)
{
    char  text[512];

    ok(!aborts(wait_alone, NULL, text, sizeof(text)),
       "a condition is waited for with its own lock: %s", text);
    ok(aborts(wait_holding, NULL, text, sizeof(text))
       && strcmp(text, "ron: lock order: a wait for a condition of "
                       "\"tags\" (order 25), with \"engine\" (order 10) "
                       "held\n") == 0,
       "and with no other: %s", text);
}


/* ---- waits ---------------------------------------------------------------- */

static void
do_nothing(void *arg)
{
    (void) arg;
}


static ron_status_t
each_name(void *ctx, const char *name)
{
    (void) ctx;
    (void) name;

    return RON_OK;
}


static void
do_join(void)
{
    ron_thread_t  *thread;

    if (ron_thread_start(&thread, "t", RON_THREAD_USUAL, do_nothing, NULL)
        != RON_OK)
    {
        exit(1);
    }

    (void) ron_thread_join(thread, 1000);
}


static void do_sleep(void) { ron_sleep_us(1); }
static void do_log(void) { ron_log(RON_LOG_DEBUG, "x"); }


static void
do_open(void)
{
    ron_fd_t  fd;

    (void) ron_file_open(path, RON_OPEN_READ, &fd);
}


static void
do_size(void)
{
    uint64_t  size;

    (void) ron_file_size(pipes[0], &size);
}


static void
do_pread(void)
{
    char  c;

    (void) ron_file_pread(pipes[0], &c, 1, 0);
}


static void do_pwrite(void) { (void) ron_file_pwrite(pipes[1], "x", 1, 0); }
static void do_truncate(void) { (void) ron_file_truncate(pipes[1], 0); }
static void do_sync(void) { (void) ron_file_sync(pipes[1]); }
static void do_rename(void) { (void) ron_file_rename(path, path); }
static void do_unlink(void) { (void) ron_file_unlink(path); }
static void do_make(void) { (void) ron_dir_make("/tmp"); }
static void do_each(void) { (void) ron_dir_each("/proc/self/fd", each_name,
                                                NULL); }
static void do_dir_sync(void) { (void) ron_dir_sync("/"); }


static void
do_read(void)
{
    char     c;
    ssize_t  n;

    n = read(pipes[0], &c, 1);
    (void) n;
}


static void
do_write(void)
{
    ssize_t  n;

    n = write(pipes[1], "x", 1);
    (void) n;
}


static void
do_recv(void)
{
    char  c;

    (void) recv(pipes[0], &c, 1, MSG_DONTWAIT);
}


static void do_send(void) { (void) send(pipes[1], "x", 1, MSG_NOSIGNAL); }
static void do_connect(void) { (void) connect(-1, NULL, 0); }
static void do_accept(void) { (void) accept4(-1, NULL, NULL, 0); }


static void
do_epoll(void)
{
    struct epoll_event  ev;

    (void) epoll_wait(-1, &ev, 1, 0);
}


static void
do_sql_open(void)
{
    sqlite3  *other;

    (void) sqlite3_open_v2(":memory:", &other, SQLITE_OPEN_READONLY, NULL);
}


static void do_sql_close(void) { (void) sqlite3_close(NULL); }
static void do_sql_exec(void) { (void) sqlite3_exec(db, "SELECT 1", NULL,
                                                    NULL, NULL); }


static void
do_sql_prepare(void)
{
    sqlite3_stmt  *other;

    (void) sqlite3_prepare_v2(db, "SELECT 1", -1, &other, NULL);
}


static void
do_sql_prepare3(void)
{
    sqlite3_stmt  *other;

    (void) sqlite3_prepare_v3(db, "SELECT 1", -1, 0, &other, NULL);
}


static void do_sql_step(void) { (void) sqlite3_step(stmt); }
static void do_sql_finalize(void) { (void) sqlite3_finalize(NULL); }
static void do_sql_checkpoint(void) { (void) sqlite3_wal_checkpoint_v2(
                                          db, NULL, 0, NULL, NULL); }


static const wait_case_t  waits[] = {
    { "a thread's end", do_join },
    { "some time", do_sleep },
    { "a log line", do_log },
    { "ron_file_open()", do_open },
    { "ron_file_open()", do_dir_sync },
    { "ron_file_size()", do_size },
    { "ron_file_pread()", do_pread },
    { "ron_file_pwrite()", do_pwrite },
    { "ron_file_truncate()", do_truncate },
    { "ron_file_sync()", do_sync },
    { "ron_file_rename()", do_rename },
    { "ron_file_unlink()", do_unlink },
    { "ron_dir_make()", do_make },
    { "ron_dir_each()", do_each },
    { "read()", do_read },
    { "write()", do_write },
    { "recv()", do_recv },
    { "send()", do_send },
    { "connect()", do_connect },
    { "accept4()", do_accept },
    { "epoll_wait()", do_epoll },
    { "sqlite3_open_v2()", do_sql_open },
    { "sqlite3_close()", do_sql_close },
    { "sqlite3_exec()", do_sql_exec },
    { "sqlite3_prepare_v2()", do_sql_prepare },
    { "sqlite3_prepare_v3()", do_sql_prepare3 },
    { "sqlite3_step()", do_sql_step },
    { "sqlite3_finalize()", do_sql_finalize },
    { "sqlite3_wal_checkpoint_v2()", do_sql_checkpoint },
};


static void
wait_without(void *arg)
{
    const wait_case_t  *c = arg;

    ron_mutex_lock(mutexes[RON_LOCK_HISTORY]);
    ron_mutex_unlock(mutexes[RON_LOCK_HISTORY]);
    c->fn();
}


static void
wait_with(void *arg)
{
    const wait_case_t  *c = arg;

    ron_mutex_lock(mutexes[RON_LOCK_HISTORY]);
    c->fn();
}


static void
test_waits(void)
{
    char         text[512], want[256];
    wait_case_t  c;

    for (unsigned i = 0; i < ron_array_n(waits); i++) {
        c = waits[i];

        ok(!aborts(wait_without, &c, text, sizeof(text)),
           "%s is waited for, holding nothing", c.name);

        (void) snprintf(want, sizeof(want), "ron: lock order: a wait for "
                        "%s, with \"history\" (order 30) held\n", c.name);

        ok(aborts(wait_with, &c, text, sizeof(text)), "and not with a lock");
        is_str(text, want, "which it names");
    }
}


/* What one thread holds is nothing to another. */

static void
hold(void *arg)
{
    ron_mutex_lock(arg);
    ron_mutex_unlock(arg);
}


static void
test_threads(void)
{
    ron_thread_t  *thread;

    (void) ron_thread_start(&thread, "t", RON_THREAD_USUAL, hold,
                            mutexes[RON_LOCK_ENGINE]);
    ron_mutex_lock(mutexes[RON_LOCK_LOG]);
    ron_mutex_unlock(mutexes[RON_LOCK_LOG]);
    is_status(ron_thread_join(thread, 10000), RON_OK,
              "each thread has its own");
}


int
main(void)
{
    ron_log_set(silent, NULL, RON_LOG_WARN);

    for (unsigned i = 0; i < RON_LOCK_N; i++) {
        if (ron_mutex_create(&mutexes[i], (ron_lock_id_t) i) != RON_OK) {
            return 1;
        }
    }

    (void) snprintf(path, sizeof(path), "/tmp/ron_lock_test.%d",
                    (int) getpid());

    if (ron_cond_create(&cond) != RON_OK
        || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pipes) != 0
        || sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL) != 0
        || sqlite3_prepare_v2(db, "SELECT 1", -1, &stmt, NULL) != SQLITE_OK)
    {
        return 1;
    }

    test_order();
    test_middle();
    test_conditions();
    test_waits();
    test_threads();

    (void) sqlite3_finalize(stmt);
    (void) sqlite3_close(db);
    ron_cond_destroy(cond);

    for (unsigned i = 0; i < RON_LOCK_N; i++) {
        ron_mutex_destroy(mutexes[i]);
    }

    return done_testing();
}
