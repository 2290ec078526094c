
/*
 * A writer with its committer's thread is killed (SIGKILL) at random instants,
 * while it opens, recovers or commits, and started again on what it left.
 * It tells each acknowledgement through a pipe before the next step.
 *
 * After each kill: what was acknowledged is there, rows and chain are those
 * of the undisturbed run, and nothing that was seen once is gone.
 *
 *     RON_KILLS   how often (1000; 150 under a sanitizer)
 */

#include "lib_crash.h"

#include "ron_log.h"
#include "ron_port.h"
#include "ron_seed.h"
#include "ron_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>


#define AHEAD      400              /* steps, more than one life has */
#define RESENT     5                /* acknowledged steps sent again */
#define LOOK       10               /* kills between openings by the test */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define KILLS      150
#else
#define KILLS      1000
#endif


typedef struct {
    uint32_t    kills;
    uint32_t    early;              /* before the first acknowledgement */
    uint32_t    acked;
    uint32_t    doubt;              /* rows there and not acknowledged */
    uint64_t    epoch;
    uint64_t    rnd;
} toll_t;


static bool  lying;


static void
hush(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;
    (void) level;
    (void) line;
}


static uint64_t
draw(toll_t *t, uint64_t n)
{
    return ron_seed_below(&t->rnd, n);
}


static void
tell(void *ctx, uint32_t acked)
{
    int  *fd = ctx;

    acked += lying ? 2 : 0;

    if (write(*fd, &acked, sizeof(acked)) != sizeof(acked)) {
        _exit(0);
    }
}


static void
writer(crash_t *c, uint32_t from, int fd)
{
    c->ack = tell;
    c->ack_ctx = &fd;
    c->acked = 0;

    if (crash_open(c) != RON_OK) {
        fprintf(stderr, "# a writer cannot open: %.*s\n", (int) c->why.len,
                (const char *) c->why.data);
        _exit(2);
    }

    if (crash_start(c) != RON_OK) {
        _exit(3);
    }

    (void) crash_play(c, from, from + AHEAD);

    if (c->wrong[0] != '\0' || c->failed != RON_OK) {
        fprintf(stderr, "# a writer: %s %s\n", ron_status_name(c->failed),
                c->wrong);
        _exit(4);
    }

    pause();
    _exit(5);
}


/* One life.  False: it ended in another way than by being killed. */

static bool
one_kill(crash_t *c, toll_t *t)
{
    int        fds[2], wstatus;
    bool       early;
    pid_t      pid;
    uint32_t   from, acked;

    from = t->acked > RESENT ? t->acked - RESENT : 0;
    early = draw(t, 3) == 0;

    RON_ASSERT(pipe(fds) == 0);
    fflush(NULL);

    pid = fork();

    if (pid == 0) {
        close(fds[0]);
        writer(c, from, fds[1]);
    }

    RON_ASSERT(pid > 0);
    close(fds[1]);

    /* While it opens and recovers, or else some time after it has begun. */

    if (!early && read(fds[0], &acked, sizeof(acked)) == sizeof(acked)) {
        t->acked = ron_max(t->acked, acked);
    }

    ron_sleep_us(draw(t, 12000));
    kill(pid, SIGKILL);
    RON_ASSERT(waitpid(pid, &wstatus, 0) == pid);

    while (read(fds[0], &acked, sizeof(acked)) == sizeof(acked)) {
        t->acked = ron_max(t->acked, acked);
        early = false;
    }

    close(fds[0]);

    t->kills++;
    t->early += early;

    return WIFSIGNALED(wstatus) && WTERMSIG(wstatus) == SIGKILL;
}


/* Reads what is there, as nobody in particular, from the last look on. */

static bool
look(crash_t *c, toll_t *t, crash_walk_t *seen, char *wrong, size_t len)
{
    bool           good;
    uint32_t       rows;
    ron_store_t   *store;
    ron_status_t   status;

    status = ron_store_open(&c->conf.store, &store);
    if (status != RON_OK) {
        snprintf(wrong, len, "the store: %s", ron_store_error(NULL));
        return false;
    }

    rows = seen->rows;
    good = crash_walk(store, seen);
    ron_store_close(store);

    if (!good) {
        snprintf(wrong, len, "%s", seen->wrong);
        return false;
    }

    if (seen->rows < rows || seen->rows < t->acked) {
        snprintf(wrong, len, "%u rows; %u were seen, %u acknowledged",
                 seen->rows, rows, t->acked);
        return false;
    }

    t->doubt += seen->rows - t->acked;
    t->acked = seen->rows;

    return true;
}


/* As the next writer, from the first row on. */

static bool
look_closely(crash_t *c, const crash_walk_t *seen, char *wrong, size_t len)
{
    crash_walk_t  walk;

    if (crash_open(c) != RON_OK) {
        snprintf(wrong, len, "does not open: %.*s", (int) c->why.len,
                 (const char *) c->why.data);
        return false;
    }

    memset(&walk, 0, sizeof(walk));

    if (!crash_walk(ron_engine_store(c->en), &walk)) {
        snprintf(wrong, len, "%s", walk.wrong);
        return false;
    }

    if (walk.rows != seen->rows || walk.seq != seen->seq
        || !ron_hash_eq(&walk.chain, &seen->chain))
    {
        snprintf(wrong, len, "the journal has another end than at a look");
        return false;
    }

    if (!crash_conserved(c)) {
        snprintf(wrong, len, "money is not conserved");
        return false;
    }

    crash_close(c);

    return true;
}


/* Kills until there were enough, or something is wrong. */

static void
kill_all(crash_t *c, toll_t *t, crash_walk_t *seen, uint32_t kills,
    char *wrong, size_t len)
{
    while (t->kills < kills && wrong[0] == '\0') {
        crash_golden(t->acked + AHEAD + 2);

        if (!one_kill(c, t)) {
            snprintf(wrong, len, "a writer ended by itself");

        } else if (look(c, t, seen, wrong, len) && t->kills % LOOK == 0) {
            (void) look_closely(c, seen, wrong, len);
        }
    }
}


/* A writer that acknowledges what it has not committed yet. */

static void
test_control(toll_t *t)
{
    char          wrong[600];
    crash_t       c;
    crash_walk_t  seen;

    memset(&seen, 0, sizeof(seen));
    t->kills = 0;
    t->acked = 0;
    wrong[0] = '\0';
    lying = true;

    crash_init(&c, false);
    kill_all(&c, t, &seen, 30, wrong, sizeof(wrong));
    crash_free(&c);

    lying = false;

    ok(strstr(wrong, "acknowledged") != NULL, "control: a writer that lies is"
       " caught (%s)", wrong);
}


int
main(void)
{
    char          wrong[600];
    toll_t        t;
    crash_t       c;
    uint32_t      kills;
    uint64_t      begin_us;
    crash_walk_t  seen;

    ron_log_set(hush, NULL, RON_LOG_ALERT);

    memset(&t, 0, sizeof(t));
    memset(&seen, 0, sizeof(seen));
    t.rnd = UINT64_C(88172645463325252) ^ (uint64_t) getpid();
    kills = getenv("RON_KILLS") ? (uint32_t) strtoul(getenv("RON_KILLS"),
                                                  NULL, 10)
                                : KILLS;

    diag("seed %llu", (unsigned long long) t.rnd);
    crash_init(&c, false);
    wrong[0] = '\0';
    begin_us = ron_clock_mono_us();

    kill_all(&c, &t, &seen, kills, wrong, sizeof(wrong));

    ok(wrong[0] == '\0', "%u kills: acknowledged is present, the chain is"
       " intact, nothing seen goes away (%s)", t.kills, wrong);

    if (wrong[0] == '\0' && crash_open(&c) == RON_OK) {
        ok(t.acked > kills / 2, "%u steps were committed on the way", t.acked);
        ok(crash_play(&c, 0, t.acked) && c.wrong[0] == '\0',
           "all sent again gives the same answers (%s)", c.wrong);
        ok(crash_same(&c, t.acked, wrong, sizeof(wrong)),
           "and is the undisturbed run (%s)", wrong);
    }

    diag("%u kills, %u before the first acknowledgement; %u rows, %u of them"
         " not acknowledged when their writer died; epoch %llu; %llu ms",
         t.kills, t.early, t.acked, t.doubt, (unsigned long long) seen.epoch,
         (unsigned long long) (ron_clock_mono_us() - begin_us) / 1000);

    crash_free(&c);
    test_control(&t);

    return done_testing();
}
