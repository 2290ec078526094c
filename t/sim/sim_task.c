
/*
 * Tasks, processes, the scheduler and its clock.
 *
 * A task is a coroutine.  It gives up control at points only, so between two
 * points a task is alone, and a world is a function of its seed.  A process
 * is a set of tasks that die together: its stacks are never entered again,
 * its memory stays (a seed is a process of its own), its locks, sockets and
 * SQLite handles are taken away by whoever kept them.
 */

#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "ron_digest.h"
#include "ron_seed.h"


#define SIM_STACK      (256 * 1024)
#define SIM_TASKS_MAX  512
#define SIM_IDLE_MAX   (UINT64_C(3600) * 1000000)


typedef enum { TASK_READY = 0, TASK_WAITS, TASK_DONE, TASK_DEAD } task_state_t;

struct sim_task_s {
    ucontext_t     ctx;
    void          *stack;
    sim_proc_t    *proc;
    void         (*fn)(void *arg);
    void          *arg;
    const void    *chan;
    uint64_t       wake_us;
    task_state_t   state;
    bool           woken;
    bool           ended;
    uint32_t       no;
    char           name[24];
};


sim_t        sim;
uint64_t    *sim_counts;
char        *sim_verdict;
uint64_t    *sim_digest;

static ucontext_t    sim_main_ctx;
static sim_task_t   *sim_tasks[SIM_TASKS_MAX];
static uint32_t      sim_task_n;
static sim_task_t   *sim_now;
static sim_task_t   *sim_before;
static sim_proc_t   *sim_procs;
static uint32_t      sim_proc_n;
static uint32_t      sim_task_no;
static void         *sim_stacks[SIM_TASKS_MAX];
static uint32_t      sim_stack_n;
static uint64_t      sim_state;


/* ---- chance ------------------------------------------------------------- */

uint64_t
sim_rand(void)
{
    if (sim_state == 0) {
        sim_state = sim.seed * UINT64_C(0xd1342543de82ef95) + 1;
    }

    return ron_seed_next(&sim_state);
}


uint64_t
sim_below(uint64_t n)
{
    return n == 0 ? 0 : sim_rand() % n;
}


bool
sim_chance(uint64_t num, uint64_t den)
{
    return !sim.exhaustive && sim_below(den) < num;
}


/* ---- saying ------------------------------------------------------------- */

static void
sim_line(char *line, size_t len)
{
    size_t  i;

    /* FNV-1a over all that happened: equal runs have equal digests */

    for (i = 0; i < len; i++) {
        *sim_digest = (*sim_digest ^ (uint8_t) line[i])
                      * UINT64_C(0x100000001b3);
    }

    if (sim.trace) {
        (void) printf("%10.3f ms %7llu  %-18s %s\n",
                      (double) sim.mono_us / 1000,
                      (unsigned long long) sim.points, sim_task_name(), line);
    }
}


void
sim_trace(const char *fmt, ...)
{
    int      n;
    char     line[512];
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);

    sim_line(line, n < 0 ? 0 : ron_min((size_t) n, sizeof(line) - 1));
}


void
sim_fail(const char *fmt, ...)
{
    int      n;
    va_list  args;

    n = snprintf(sim_verdict, SIM_VERDICT_LEN, "at %.3f ms, point %llu, in %s:"
                 " ", (double) sim.mono_us / 1000,
                 (unsigned long long) sim.points, sim_task_name());

    va_start(args, fmt);
    (void) vsnprintf(sim_verdict + n, SIM_VERDICT_LEN - (size_t) n, fmt, args);
    va_end(args);

    if (sim.trace) {
        (void) printf("FAILED %s\n", sim_verdict);
    }

    (void) fflush(stdout);
    _exit(1);
}


/* ---- processes ---------------------------------------------------------- */

sim_proc_t *
sim_proc_new(const char *name)
{
    sim_proc_t  *p;

    p = calloc(1, sizeof(sim_proc_t));
    RON_ASSERT(p != NULL);

    p->no = ++sim_proc_n;
    (void) snprintf(p->name, sizeof(p->name), "%s", name);
    p->next = sim_procs;
    sim_procs = p;

    return p;
}


sim_proc_t *
sim_proc(void)
{
    return sim_now ? sim_now->proc : NULL;
}


static void
sim_switch(void)
{
    sim_task_t  *me = sim_now;

    RON_ASSERT(swapcontext(&me->ctx, &sim_main_ctx) == 0);
}


void
sim_proc_kill(sim_proc_t *proc)
{
    uint32_t  i;

    if (proc->dead) {
        return;
    }

    sim_trace("process %s dies", proc->name);
    proc->dead = true;
    proc->die_in = 0;

    for (i = 0; i < sim_task_n; i++) {
        if (sim_tasks[i]->proc == proc && sim_tasks[i]->state != TASK_DONE) {
            sim_tasks[i]->state = TASK_DEAD;
        }
    }

    sim_vfs_proc_died(proc);
    sim_net_proc_died(proc);
    sim_wake(proc, true);

    if (sim_now && sim_now->proc == proc) {
        sim_switch();                           /* for good */
    }
}


/* ---- tasks -------------------------------------------------------------- */

sim_task_t *
sim_task(void)
{
    return sim_now;
}


bool
sim_task_done(const sim_task_t *task)
{
    return task->ended;
}


const char *
sim_task_name(void)
{
    return sim_now ? sim_now->name : "scheduler";
}


static void
sim_watch(void)
{
    if (sim.watch != NULL && sim_now->proc != NULL) {
        sim.watch(sim_now->proc);
    }
}


static void
sim_task_main(void)
{
    sim_task_t  *t = sim_now;

    t->fn(t->arg);
    sim_watch();
    t->ended = true;
    t->state = TASK_DONE;

    if (t->proc) {
        t->proc->tasks--;
    }

    sim_wake(t, true);
    sim_switch();
}


sim_task_t *
sim_task_start(sim_proc_t *proc, const char *name, void (*fn)(void *arg),
    void *arg)
{
    sim_task_t  *t;

    t = calloc(1, sizeof(sim_task_t));
    RON_ASSERT(t != NULL && sim_task_n < SIM_TASKS_MAX);

    t->proc = proc;
    t->fn = fn;
    t->arg = arg;
    t->no = ++sim_task_no;
    (void) snprintf(t->name, sizeof(t->name), "%.8s%s%.12s",
                    proc ? proc->name : "", proc ? "/" : "", name);

    if (sim_stack_n > 0) {
        t->stack = sim_stacks[--sim_stack_n];

    } else {
        t->stack = mmap(NULL, SIM_STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        RON_ASSERT(t->stack != MAP_FAILED);
        RON_ASSERT(mprotect(t->stack, 4096, PROT_NONE) == 0);
    }

    RON_ASSERT(getcontext(&t->ctx) == 0);
    t->ctx.uc_stack.ss_sp = t->stack;
    t->ctx.uc_stack.ss_size = SIM_STACK;
    t->ctx.uc_link = NULL;
    makecontext(&t->ctx, sim_task_main, 0);

    sim_tasks[sim_task_n++] = t;

    if (proc) {
        proc->tasks++;
    }

    return t;
}


/* ---- points ------------------------------------------------------------- */

void
sim_point(void)
{
    sim_proc_t  *p;

    if (sim_now == NULL || sim.oracle) {
        return;
    }

    sim_watch();
    sim.points++;

    if (sim.exhaustive) {
        sim_switch();
        return;
    }

    sim.mono_us += 1 + sim_below(sim.pace_us);

    if (sim.point_max != 0 && sim.points > sim.point_max) {
        sim_fail("the world does not come to an end");
    }

    if (sim.cut_in != 0 && --sim.cut_in == 0) {
        sim.cut_in = SIM_NEVER;                 /* the director's to do */
        sim_wake(&sim.cut_in, true);
        sim_switch();
        return;
    }

    p = sim_now->proc;

    if (p != NULL && p->die_in != 0 && --p->die_in == 0) {
        sim_count(SIM_F_KILL, 1);
        sim_proc_kill(p);
    }

    if (!sim_chance(sim.sticky, 100)) {
        sim_switch();
    }
}


bool
sim_wait(const void *chan, uint64_t until_us)
{
    RON_ASSERT(sim_now != NULL);
    RON_ASSERT(!sim.oracle);

    sim_watch();
    sim.points++;
    sim_now->chan = chan;
    sim_now->wake_us = until_us;
    sim_now->woken = false;
    sim_now->state = TASK_WAITS;
    sim_switch();

    return sim_now->woken;
}


void
sim_wake(const void *chan, bool all)
{
    uint32_t     i, n, pick;
    sim_task_t  *waiting[SIM_TASKS_MAX];

    for (i = 0, n = 0; i < sim_task_n; i++) {
        if (sim_tasks[i]->state == TASK_WAITS && sim_tasks[i]->chan == chan) {
            waiting[n++] = sim_tasks[i];
        }
    }

    while (n > 0) {
        pick = all || n == 1 ? n - 1 : sim_choose(n);
        waiting[pick]->state = TASK_READY;
        waiting[pick]->woken = true;
        waiting[pick]->chan = NULL;

        if (!all) {
            return;
        }

        n--;
    }
}


void
sim_sleep(uint64_t us)
{
    if (sim.oracle) {
        return;
    }

    (void) sim_wait(NULL, sim.mono_us + us);
}


/* ---- the scheduler ------------------------------------------------------ */

uint32_t
sim_choose(uint32_t n)
{
    int       status;
    pid_t     pid;
    uint32_t  i;

    if (n < 2) {
        return 0;
    }

    if (!sim.exhaustive) {
        return (uint32_t) sim_below(n);
    }

    /* each but the last of them in a child, which inherits this world */

    for (i = 0; i + 1 < n; i++) {
        (void) fflush(stdout);
        pid = fork();
        RON_ASSERT(pid >= 0);

        if (pid == 0) {
            return i;
        }

        RON_ASSERT(waitpid(pid, &status, 0) == pid);

        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            _exit(1);
        }
    }

    return n - 1;
}


static void
sim_sweep(void)
{
    uint32_t  i, n;

    for (i = 0, n = 0; i < sim_task_n; i++) {
        if (sim_tasks[i]->state == TASK_DONE
            || sim_tasks[i]->state == TASK_DEAD)
        {
            if (sim_stack_n < SIM_TASKS_MAX) {
                sim_stacks[sim_stack_n++] = sim_tasks[i]->stack;
            }

        } else {
            sim_tasks[n++] = sim_tasks[i];
        }
    }

    sim_task_n = n;
}


/* Who may go on now; the clock moves on when nobody may. */

static uint32_t
sim_ready(sim_task_t **ready)
{
    uint32_t     i, n;
    uint64_t     next_us;
    sim_task_t  *t;

    for ( ;; ) {
        next_us = SIM_NEVER;

        for (i = 0, n = 0; i < sim_task_n; i++) {
            t = sim_tasks[i];

            if (t->state == TASK_WAITS && t->wake_us <= sim.mono_us) {
                t->state = TASK_READY;
                t->chan = NULL;
            }

            if (t->state == TASK_READY) {
                ready[n++] = t;

            } else if (t->state == TASK_WAITS) {
                next_us = ron_min(next_us, t->wake_us);
            }
        }

        if (n > 0) {
            return n;
        }

        if (next_us == SIM_NEVER || next_us > sim.mono_us + SIM_IDLE_MAX) {
            for (i = 0; i < sim_task_n; i++) {
                sim_trace("%s waits", sim_tasks[i]->name);
            }

            sim_fail("deadlock: %u tasks, all of them wait", sim_task_n);
        }

        sim.mono_us = next_us;
    }
}


/*
 * When everything is explored: who goes on is free where a task cannot, and
 * where it could, a switch away from it is a preemption.  With `strict` every
 * choice but the first counts: the runs that differ from one order of tasks in
 * so many places, which is what a world of many tasks has time for.
 */

static uint32_t  sim_preempt_left = UINT32_MAX;
static bool      sim_preempt_strict;

void
sim_preempt_set(uint32_t n, bool strict)
{
    sim_preempt_left = n;
    sim_preempt_strict = strict;
}


static sim_task_t *
sim_pick(sim_task_t **ready, uint32_t n)
{
    uint32_t     pick, same;
    sim_task_t  *swap;

    if (!sim.exhaustive) {
        return ready[sim_below(n)];
    }

    for (same = 0; same < n && ready[same] != sim_before; same++) { /**/ }

    if (same == n && !sim_preempt_strict) {
        return ready[sim_choose(n)];
    }

    same = same < n ? same : 0;

    if (sim_preempt_left == 0) {
        return ready[same];
    }

    swap = ready[n - 1];
    ready[n - 1] = ready[same];
    ready[same] = swap;

    pick = sim_choose(n);
    sim_preempt_left -= pick != n - 1;

    return ready[pick];
}


void
sim_run(void)
{
    uint32_t     n;
    sim_task_t  *ready[SIM_TASKS_MAX];

    while (!sim.over) {
        sim_sweep();
        n = sim_ready(ready);
        sim_now = sim_pick(ready, n);

        if (sim_now != sim_before) {
            sim_count(SIM_SWITCHES, 1);
            sim.switches++;
            sim_before = sim_now;
        }

        RON_ASSERT(swapcontext(&sim_main_ctx, &sim_now->ctx) == 0);
        sim_now = NULL;
    }

    sim_count(SIM_POINTS, sim.points);
}
