
/*
 * Ledger time.  It is in the journal, so that it must never fall; holds and
 * idempotency keys end by it, so that it must never jump either, whatever the
 * wall clock does, and whoever dies meanwhile: how far it is ahead of the
 * monotonic clock is kept where the next engine finds it.
 */

#include "ron_engine_impl.h"

#include <stdatomic.h>


/* The clock may run a tenth faster or slower to come back to the wall's. */
#define RON_CLOCK_SLEW  10


static uint64_t ron_clock_first(ron_engine_t *en, uint64_t mono_us,
    uint64_t wall_us);
static uint64_t ron_clock_next(ron_engine_t *en, uint64_t mono_us,
    uint64_t wall_us);
static void ron_clock_drift(ron_engine_t *en, uint64_t ours_us,
    uint64_t wall_us);


uint64_t
ron_engine_clock(ron_engine_t *en, uint64_t mono_us, uint64_t wall_ms)
{
    uint64_t  wall_us, ours_us;

    wall_us = wall_ms * 1000;

    /* What was read before and comes later must not count its time twice. */

    if (en->clock_us != 0) {
        mono_us = ron_max(mono_us, en->clock_mono_us);
    }

    ours_us = en->clock_us == 0 ? ron_clock_first(en, mono_us, wall_us)
                                : ron_clock_next(en, mono_us, wall_us);

    ours_us = ron_max(ours_us, en->state.time_ms * 1000);

    ron_clock_drift(en, ours_us, wall_us);

    en->clock_us = ours_us;
    en->clock_mono_us = mono_us;

    atomic_store_explicit(&en->clock->ahead_us, ours_us - mono_us,
                          memory_order_relaxed);

    return ron_min(ours_us / 1000, RON_TIME_MAX);
}


/*
 * Where an engine of this machine has read the clock before, ledger time has
 * gone on since.  Otherwise nobody has measured how long the ledger lay, and
 * the wall clock is all there is.
 */

static uint64_t
ron_clock_first(ron_engine_t *en, uint64_t mono_us, uint64_t wall_us)
{
    uint64_t  ahead_us, from_us, last_us, ours_us;

    ahead_us = atomic_load_explicit(&en->clock->ahead_us,
                                    memory_order_relaxed);
    last_us = en->state.time_ms * 1000;

    if (ahead_us != 0) {
        from_us = mono_us + ahead_us;
        ours_us = ron_max(from_us, last_us);

    } else {
        from_us = last_us;
        ours_us = ron_max(wall_us, last_us);
    }

    if (from_us != 0 && ours_us - from_us > en->conf.clock_step_ms * 1000) {
        atomic_fetch_add_explicit(&en->clock->leaps, 1, memory_order_relaxed);
        ron_log(RON_LOG_INFO, "ledger time leaps %llu ms ahead, to the %s",
                (unsigned long long) (ours_us - from_us) / 1000,
                ahead_us != 0 ? "newest entry" : "wall clock");
    }

    return ours_us;
}


static uint64_t
ron_clock_next(ron_engine_t *en, uint64_t mono_us, uint64_t wall_us)
{
    uint64_t  ours_us, elapsed_us, lean_us;

    elapsed_us = mono_us - en->clock_mono_us;
    ours_us = en->clock_us + elapsed_us;

    /* What is too short to lean is saved for the next reading. */

    en->clock_idle_us += elapsed_us;
    lean_us = en->clock_idle_us / RON_CLOCK_SLEW;
    en->clock_idle_us %= RON_CLOCK_SLEW;

    if (wall_us > ours_us) {
        return ours_us + ron_min(lean_us, wall_us - ours_us);
    }

    return ours_us - ron_min(lean_us, ours_us - wall_us);
}


static void
ron_clock_drift(ron_engine_t *en, uint64_t ours_us, uint64_t wall_us)
{
    bool      far_off;
    uint64_t  drift_us;

    drift_us = ours_us > wall_us ? ours_us - wall_us : wall_us - ours_us;
    far_off = drift_us > en->conf.clock_step_ms * 1000;

    atomic_store_explicit(&en->clock->drift_us, drift_us,
                          memory_order_relaxed);

    if (far_off && !en->drift_said) {
        atomic_fetch_add_explicit(&en->clock->steps, 1, memory_order_relaxed);
        ron_log(RON_LOG_ERROR, "the wall clock is %llu ms %s ledger time,"
                " which goes on without it: check the machine's clock",
                (unsigned long long) drift_us / 1000,
                ours_us > wall_us ? "behind" : "ahead of");
    }

    en->drift_said = far_off;
}
