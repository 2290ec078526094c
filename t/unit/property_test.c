
/*
 * The engine against the naive model, on random histories.
 *
 *     RON_SEED=n   the first seed (its history alone is shown when it fails)
 *     RON_N=n      how many histories; RON_SQLITE_N of them on SQLite
 *
 * A history that fails is made as small as it gets, and shown.
 */

#include "ron_test.h"
#include "lib_history.h"
#include "ron_port.h"


#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PROPERTY_N         1500
#define PROPERTY_SQLITE_N  50
#else
#define PROPERTY_N         10000
#define PROPERTY_SQLITE_N  300
#endif


static uint64_t
setting(const char *name, uint64_t otherwise)
{
    const char  *value;

    value = getenv(name);

    return value != NULL ? strtoull(value, NULL, 0) : otherwise;
}


static void
report(history_t *h, const world_t *w)
{
    world_t  again;

    diag("RON_SEED=%" PRIu64 " RON_N=1%s: %s (line %d)", h->seed,
         h->sqlite ? " RON_SQLITE_N=1" : "", w->why, w->line);

    if (history_play(h, &again)) {
        diag("played again, it does not fail");
        history_show(h);
        return;
    }

    history_shrink(h, w->line);
    (void) history_play(h, &again);

    diag("the smallest such history: %s", again.why);
    history_show(h);
}


typedef struct {
    uint64_t  entries;
    uint64_t  counts[RON_REASON_N];
    uint64_t  repeats;
    uint64_t  replays;
} totals_t;


static bool
one_history(uint64_t seed, bool sqlite, totals_t *totals)
{
    bool         good;
    step_t      *step;
    world_t      w;
    history_t    h;
    uint32_t     steps;
    generator_t  g;

    history_init(&h, seed);
    generator_init(&g, &h);

    h.sqlite = sqlite;

    if (sqlite && generator_below(&g, 3) == 0) {
        h.tag_ram = 1;                      /* the least there is */
        h.key_ram = 1;
    }

    if (sqlite && generator_below(&g, 12) == 0) {
        g.account_n = 700;                  /* checkpoints of many slices */
        g.crowd = 700;
        h.checkpoint_n = 1;
    }

    steps = 2 + (uint32_t) generator_below(&g, 50);
    good = world_open(&w, &h);

    for (uint32_t i = 0; good && i < steps; i++) {
        step = generator_step(&g, &w.model);
        good = world_step(&w, step);
    }

    good = good && world_end(&w);

    totals->entries += w.model.entry_n;
    totals->repeats += w.repeats;
    totals->replays += w.replays;

    for (unsigned r = 0; r < RON_REASON_N; r++) {
        totals->counts[r] += w.counts[r];
    }

    while (w.queued > 0) {
        free(w.queue[--w.queued].outcomes);
    }

    world_close(&w);

    if (!good) {
        report(&h, &w);
    }

    generator_free(&g);
    history_free(&h);

    return good;
}


static void
many_histories(const char *store, bool sqlite, uint64_t first, uint64_t n,
    totals_t *totals)
{
    uint64_t  i, start_us;

    memset(totals, 0, sizeof(totals_t));
    start_us = ron_clock_mono_us();

    for (i = 0; i < n; i++) {
        if (!one_history(first + i, sqlite, totals)) {
            break;
        }
    }

    ok(i == n, "%" PRIu64 " histories from seed %" PRIu64 " on %s: engine "
       "and model agree", n, first, store);

    diag("%s: %" PRIu64 " histories, %" PRIu64 " entries, %" PRIu64
         " repeats, %" PRIu64 " replays, %" PRIu64 " ms", store, i,
         totals->entries, totals->repeats, totals->replays,
         (ron_clock_mono_us() - start_us) / 1000);
}


/* A generator that never reaches a rule tests nothing of it. */
static void
reached(const totals_t *t)
{
    static const ron_reason_t  wanted[] = {
        RON_REASON_OK, RON_REASON_MALFORMED, RON_REASON_LIMITS,
        RON_REASON_HOLD_NOT_FOUND, RON_REASON_CONFLICT,
        RON_REASON_INSUFFICIENT, RON_REASON_NONCE, RON_REASON_HOLD_CLOSED,
        RON_REASON_PRECONDITION, RON_REASON_IDEM_MISMATCH,
        RON_REASON_RETRY_LATER, RON_REASON_ABORTED,
    };

    for (size_t i = 0; i < ron_array_n(wanted); i++) {
        ok(t->counts[wanted[i]] > 0, "%s came up %" PRIu64 " times",
           ron_reason_info(wanted[i])->name, t->counts[wanted[i]]);
    }

    ok(t->repeats > 0 && t->replays > 0, "so did repeats and replays");
}


int
main(void)
{
    uint64_t  seed, n, sqlite_n;
    totals_t  totals;

    n = setting("RON_N", PROPERTY_N);
    sqlite_n = setting("RON_SQLITE_N", n == PROPERTY_N ? PROPERTY_SQLITE_N
                                                       : 0);
    seed = setting("RON_SEED", 1);

    diag("RON_SEED=%" PRIu64 " RON_N=%" PRIu64 " RON_SQLITE_N=%" PRIu64,
         seed, n, sqlite_n);

    if (sqlite_n > 0) {
        many_histories("sqlite", true, seed, sqlite_n, &totals);
    }

    if (n > sqlite_n || sqlite_n == 0) {
        many_histories("memory", false, seed, n, &totals);
    }

    if (n >= 1000) {
        reached(&totals);
    }

    return done_testing();
}
