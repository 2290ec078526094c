
/*
 * Seeds in, verdicts out.  Every seed is a process of its own, so that what
 * leaks or crashes does it there; counters and the verdict come back through
 * shared memory.  A seed that failed is run again with its trace on.
 *
 *     sim [-q] [-t] [-c early|sync|lock] [-j] FIRST [COUNT [SECONDS]]
 *     sim small [PREEMPTIONS]
 *
 *     -t   the trace of every seed
 *     -q   a line for each failure only, no trace
 *     -c   a control: something is broken on purpose, and must be found
 *     -d   the digest of every seed
 */

#include "sim.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define SIM_SECONDS_MAX  60                     /* of real time, a seed */


static bool  opt_quiet;
static bool  opt_trace;
static bool  opt_digest;

static const char *const  sim_count_names[] = {
#define SIM_COUNT_NAME(id, name)  name,
    SIM_COUNTS(SIM_COUNT_NAME)
#undef SIM_COUNT_NAME
};


static void
main_crash(int sig)
{
    (void) snprintf(sim_verdict, SIM_VERDICT_LEN, "at %.3f ms, point %llu,"
                    " in %s: signal %d", (double) sim.mono_us / 1000,
                    (unsigned long long) sim.points, sim_task_name(), sig);

    if (sim.trace) {
        (void) printf("FAILED %s\n", sim_verdict);
        (void) fflush(stdout);
    }

    _exit(1);
}


static void
main_signals(void)
{
    struct sigaction  sa;

    static uint8_t  stack[65536];
    const stack_t   ss = { .ss_sp = stack, .ss_size = sizeof(stack) };

    memset(&sa, 0, sizeof(sa));
    sa.sa_handler = main_crash;
    sa.sa_flags = SA_ONSTACK;

    RON_ASSERT(sigaltstack(&ss, NULL) == 0);
    RON_ASSERT(sigaction(SIGABRT, &sa, NULL) == 0);
    RON_ASSERT(sigaction(SIGSEGV, &sa, NULL) == 0);
    RON_ASSERT(sigaction(SIGBUS, &sa, NULL) == 0);
    RON_ASSERT(sigaction(SIGFPE, &sa, NULL) == 0);
    RON_ASSERT(sigaction(SIGALRM, &sa, NULL) == 0);
}


static bool
main_seed(uint64_t seed, bool trace)
{
    int    status;
    pid_t  pid;

    sim_verdict[0] = '\0';
    *sim_digest = UINT64_C(0xcbf29ce484222325);
    (void) fflush(stdout);

    pid = fork();
    RON_ASSERT(pid >= 0);

    if (pid == 0) {
        main_signals();
        (void) alarm(SIM_SECONDS_MAX);
        sim.trace = trace;

        if (!trace && freopen("/dev/null", "w", stderr) == NULL) {
            _exit(2);
        }

        world_run(seed);
        (void) fflush(stdout);
        _exit(0);
    }

    RON_ASSERT(waitpid(pid, &status, 0) == pid);

    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}


static double
main_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}


static void
main_small(const char *name, void (*run)(uint32_t preempt_max, bool late),
    uint32_t n, bool late)
{
    int     status;
    pid_t   pid;
    double  begin;

    sim_verdict[0] = '\0';
    memset(sim_counts, 0, SIM_COUNT_N * sizeof(uint64_t));
    (void) fflush(stdout);
    begin = main_now();
    pid = fork();
    RON_ASSERT(pid >= 0);

    if (pid == 0) {
        main_signals();
        run(n, late);
        _exit(0);
    }

    RON_ASSERT(waitpid(pid, &status, 0) == pid);

    status = !(WIFEXITED(status) && WEXITSTATUS(status) == 0
               && sim_verdict[0] == '\0');
    (void) printf("%s: %s, shutdown %s, at most %u preemptions: %llu"
                  " interleavings, %.1f s%s%s\n", status ? "FAILED" : "ok",
                  name, late ? "when all is done" : "at any step", n,
                  (unsigned long long) sim_counts[SIM_SCANS],
                  main_now() - begin, status ? ": " : "", sim_verdict);
    (void) fflush(stdout);

    if (status) {
        exit(1);
    }
}


static int
main_seeds(uint64_t first, uint64_t count, double seconds)
{
    double    begin;
    uint64_t  seed, failed, i;

    begin = main_now();
    failed = 0;

    for (seed = first; seed - first < count; seed++) {
        if (seconds > 0 && main_now() - begin > seconds) {
            break;
        }

        if (main_seed(seed, opt_trace)) {
            if (opt_digest) {
                (void) printf("seed %llu %016llx\n", (unsigned long long) seed,
                              (unsigned long long) *sim_digest);
            }
            continue;
        }

        failed++;
        (void) printf("seed %llu FAILED %s\n", (unsigned long long) seed,
                      sim_verdict[0] ? sim_verdict : "it was killed");

        if (!opt_quiet && !opt_trace && failed == 1) {
            (void) printf("its trace:\n");
            (void) main_seed(seed, true);
            (void) printf("again with: make sim SEED=%llu\n",
                          (unsigned long long) seed);
        }
    }

    (void) printf("%llu seeds, %llu failed, %.1f s, %.1f seeds/s\n",
                  (unsigned long long) (seed - first),
                  (unsigned long long) failed, main_now() - begin,
                  (double) (seed - first) / (main_now() - begin));

    for (i = 0; i < SIM_COUNT_N; i++) {
        (void) printf("%12llu  %s\n", (unsigned long long) sim_counts[i],
                      sim_count_names[i]);
    }

    return failed != 0;
}


int
main(int argc, char **argv)
{
    int       opt;
    void     *shared;
    uint32_t  n, i;

    while ((opt = getopt(argc, argv, "qtdc:")) != -1) {
        switch (opt) {

        case 'q':
            opt_quiet = true;
            break;

        case 't':
            opt_trace = true;
            break;

        case 'd':
            opt_digest = true;
            break;

        case 'c':
            sim.lie_early = strcmp(optarg, "early") == 0;
            sim.lie_sync = strcmp(optarg, "sync") == 0;
            sim.lie_lock = strcmp(optarg, "lock") == 0;
            break;

        default:
            return 2;
        }
    }

    shared = mmap(NULL, 16384, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    RON_ASSERT(shared != MAP_FAILED);
    sim_digest = shared;
    sim_counts = (uint64_t *) shared + 1;
    sim_verdict = (char *) shared + 8192;

    sim_vfs_init();

    if (optind < argc && strcmp(argv[optind], "small") == 0) {
        n = optind + 1 < argc ? (uint32_t) strtoul(argv[optind + 1],
                                                          NULL, 10)
                                : 0;

        for (i = 0; i < 2; i++) {
            main_small("engine: 1 producer, 3 sends, queue of 2, 1 consumer",
                       small_engine, n ? n : 2, i != 0);
            main_small("service: 2 connections, 2 sends each, queue of 2",
                       small_wallet, n ? n : 2, i != 0);
        }

        return 0;
    }

    return main_seeds(optind < argc ? strtoull(argv[optind], NULL, 10) : 1,
                      optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 10)
                                        : 1,
                      optind + 2 < argc ? strtod(argv[optind + 2], NULL) : 0);
}
