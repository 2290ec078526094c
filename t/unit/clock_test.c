
/*
 * Ledger time: with the wall clock in sight it goes with it, a wall clock that
 * steps is leant towards and said to be off, an engine that dies and comes
 * back goes on from where the last one was, and only who knows nothing leaps.
 */

#include "ron_test.h"
#include "ron_engine.h"
#include "ron_log.h"

#include <stdatomic.h>
#include <string.h>


#define WALL0   UINT64_C(1800000000000)     /* ms */
#define MONO0   UINT64_C(777000000)         /* us */
#define SECOND  UINT64_C(1000)
#define DAY     (UINT64_C(86400) * SECOND)
#define REGION  (4 * 1024 * 1024)


typedef struct {
    ron_engine_t        *en;
    ron_engine_conf_t    conf;
    ron_ledger_clock_t   kept;              /* as an embedder has it */
    uint64_t             mono_us;
    uint64_t             wall_ms;
    bool                 replayed;
    uint64_t             seq;
} scene_t;


static unsigned  said_error;
static unsigned  said_leap;


static void
said(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;

    said_error += level == RON_LOG_ERROR && strstr(line, "wall clock") != NULL;
    said_leap += strstr(line, "leaps") != NULL;
}


static void
scene_open(scene_t *s)
{
    ron_buf_t     why;
    ron_status_t  status;

    ron_buf_init(&why, 0);

    status = ron_engine_open(&s->conf, &s->en, &why);
    if (status == RON_OK) {
        status = ron_engine_acquire(s->en, &why);
    }

    RON_ASSERT(status == RON_OK);
    ron_buf_free(&why);
}


static void
scene_begin(scene_t *s, bool kept)
{
    memset(s, 0, sizeof(scene_t));

    ron_engine_conf_init(&s->conf);
    s->conf.store.url = "memory:4m";
    s->conf.store.region = aligned_alloc(4096, REGION);
    s->conf.store.region_len = REGION;
    s->conf.store.create = true;
    s->conf.store.ledger_id = 7;
    s->conf.tag_ram = 1024 * 1024;
    s->conf.key_ram = 1024 * 1024;
    s->conf.clock = kept ? &s->kept : NULL;

    memset(s->conf.store.region, 0, REGION);

    s->mono_us = MONO0;
    s->wall_ms = WALL0;
    said_error = 0;
    said_leap = 0;

    scene_open(s);
}


static void
scene_end(scene_t *s)
{
    ron_engine_close(s->en);
    free(s->conf.store.region);
}


/* The engine's process is killed, and another one begins after `ms`. */

static void
scene_die(scene_t *s, uint64_t ms)
{
    ron_engine_close(s->en);
    s->mono_us += ms * 1000;
    s->wall_ms += ms;
    scene_open(s);
}


/* So long passes by both clocks; ledger time then. */

static uint64_t
after(scene_t *s, uint64_t ms)
{
    s->mono_us += ms * 1000;
    s->wall_ms += ms;

    return ron_engine_clock(s->en, s->mono_us, s->wall_ms);
}


static ron_reason_t
scene_do(scene_t *s, ron_kind_t kind, uint64_t amount, const char *key,
    uint64_t expiry_ms)
{
    ron_unit_t    u, *units[1];
    ron_batch_t  *batch;
    ron_entry_t   e;
    ron_reason_t  reason;

    memset(&e, 0, sizeof(e));
    e.kind = kind;
    e.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    e.asset = ron_str("ron");
    e.account = ron_str("a");
    e.amount = amount;

    if (kind == RON_KIND_HOLD) {
        e.fields |= RON_F_TO | RON_F_EXPIRY | RON_F_NONCE;
        e.to = ron_str("shop");
        e.expiry_ms = expiry_ms;
        e.nonce = 1;
    }

    memset(&u, 0, sizeof(u));
    u.type = RON_UNIT_WALLET;
    u.key = ron_cstr(key);
    u.cap = ron_str("dev:tester");
    u.op_n = 1;
    u.ops = &e;
    units[0] = &u;

    RON_ASSERT(ron_engine_decide(s->en,
                                 ron_engine_clock(s->en, s->mono_us,
                                                  s->wall_ms),
                                 s->mono_us, units, 1) == RON_OK
               && ron_engine_step(s->en) == RON_OK
               && ron_engine_reap(s->en, &batch) == RON_OK
               && batch->status == RON_OK);

    reason = batch->outcomes[0].reason;
    s->replayed = batch->outcomes[0].replayed;
    s->seq = batch->outcomes[0].results[0].seq;

    ron_engine_release(s->en, batch);

    return reason;
}


static uint64_t
minted(scene_t *s, uint64_t *held)
{
    ron_balance_t  b;

    RON_ASSERT(ron_engine_balance(s->en, ron_str("a"), ron_str("ron"), &b)
               == RON_OK);
    *held = (uint64_t) b.held;

    return (uint64_t) (b.available + b.held);
}


static void
test_slew(void)
{
    scene_t   s;
    uint64_t  begin, last, now;

    scene_begin(&s, true);

    begin = after(&s, 0);
    is_u64(begin, WALL0, "a new ledger begins with the wall clock");
    is_u64(after(&s, 7 * SECOND), WALL0 + 7 * SECOND, "and goes with it");

    s.wall_ms += SECOND;
    is_u64(after(&s, 0), WALL0 + 7 * SECOND, "a second ahead: no jump");
    is_u64(after(&s, 5 * SECOND), WALL0 + 12 * SECOND + SECOND / 2,
           "after five seconds half of it is made up");
    now = after(&s, 5 * SECOND);
    is_u64(now, s.wall_ms, "after ten all of it");
    now = after(&s, 5 * SECOND);
    is_u64(now, s.wall_ms, "and no more");

    s.wall_ms -= SECOND;
    last = after(&s, 0);
    is_u64(last, s.wall_ms + SECOND, "a second behind: it does not fall");

    for (unsigned i = 0; i < 100000; i++) {
        s.mono_us += 100;
        s.wall_ms += i % 10 == 9;
        now = ron_engine_clock(s.en, s.mono_us, s.wall_ms);

        if (now < last || now > last + 1) {
            break;
        }

        last = now;
    }

    is_u64(last, s.wall_ms, "and is there after ten seconds, however often"
           " the clock is read");
    is_u64(said_error + said_leap, 0, "of which nothing is said");
    is_u64(s.kept.steps + s.kept.leaps, 0, "or counted");

    scene_end(&s);
}


static void
test_step(void)
{
    scene_t            s;
    uint64_t           now, last;
    ron_engine_stat_t  stat;

    scene_begin(&s, true);

    last = after(&s, SECOND);
    s.wall_ms += 2 * DAY;

    is_u64(after(&s, 0), last, "two days ahead: no jump");
    is_u64(after(&s, 10 * SECOND), last + 11 * SECOND, "but a tenth faster");
    is_u64(said_error, 1, "the log says so once");
    is_u64(s.kept.steps, 1, "and it is one step");
    is_u64(s.kept.drift_us / 1000, 2 * DAY - SECOND, "this is the drift");

    ron_engine_stat(s.en, &stat);
    is_u64(stat.clock_drift_ms, 2 * DAY - SECOND, "which can be asked for");

    s.wall_ms -= 2 * DAY;
    is_u64(after(&s, 0), last + 11 * SECOND, "and back: it does not fall");
    is_u64(s.kept.drift_us / 1000, SECOND, "the drift is small");
    now = after(&s, 10 * SECOND);
    is_u64(now, s.wall_ms, "and is gone");

    s.wall_ms -= DAY;
    is_u64(after(&s, 10 * SECOND), last + 30 * SECOND - SECOND,
           "a day behind: a tenth slower");
    is_u64(said_error, 2, "the log says so again");
    is_u64(s.kept.steps, 2, "and it is another step");

    s.wall_ms += DAY + 5 * SECOND + 1;
    (void) after(&s, 0);
    is_u64(s.kept.steps, 2, "less than ron_clock_step is none");
    is_u64(said_leap, 0, "a step is no leap");

    scene_end(&s);
}


/* The hazard: a bad wall clock, a helper that dies, a client that retries. */

static void
test_respawn(void)
{
    scene_t   s;
    uint64_t  held, time_ms;

    scene_begin(&s, true);

    is_u64(scene_do(&s, RON_KIND_MINT, 100, "k1", 0), RON_REASON_OK, "money");
    is_u64(scene_do(&s, RON_KIND_HOLD, 40, "k2", DAY), RON_REASON_OK, "hold");

    time_ms = after(&s, SECOND);
    s.wall_ms += 2 * DAY;
    scene_die(&s, 3 * SECOND);

    is_u64(ron_engine_clock(s.en, s.mono_us, s.wall_ms),
           time_ms + 3 * SECOND, "respawned: time goes on");
    is_u64(s.kept.leaps, 0, "without a leap");
    is_u64(s.kept.steps, 1, "and the wall clock's step is noticed");
    is_u64(said_error, 1, "and said");

    is_u64(scene_do(&s, RON_KIND_MINT, 100, "k1", 0), RON_REASON_OK,
           "a key is tried again");
    ok(s.replayed && s.seq == 1, "and is known");
    is_u64(minted(&s, &held), 100, "money is minted once");
    is_u64(held, 40, "the hold lives");

    /* the same, and nothing was ever written of the time before */

    (void) after(&s, 30 * SECOND);
    time_ms = after(&s, 0);
    s.wall_ms -= 9 * DAY;
    scene_die(&s, 0);
    is_u64(ron_engine_clock(s.en, s.mono_us, s.wall_ms), time_ms,
           "and with a clock that is behind");

    /* it was dead for long: the machine's clock has counted that */

    s.wall_ms = ron_engine_clock(s.en, s.mono_us, s.wall_ms);
    (void) after(&s, 0);
    scene_die(&s, 2 * DAY);
    is_u64(after(&s, 0), time_ms + 2 * DAY, "a real outage of two days");
    is_u64(said_leap, 0, "is no leap either");

    scene_end(&s);
}


/* A machine, or a master, that has begun anew. */

static void
test_leap(void)
{
    scene_t   s;
    uint64_t  last;

    scene_begin(&s, false);

    is_u64(scene_do(&s, RON_KIND_MINT, 100, "k1", 0), RON_REASON_OK, "money");
    is_u64(said_leap, 0, "a new ledger's first entry is no leap");

    s.mono_us = 5;                              /* of another boot */
    scene_die(&s, 4 * SECOND);
    is_u64(after(&s, 0), WALL0 + 4 * SECOND, "four seconds later");
    is_u64(said_leap, 0, "is not worth a line");

    scene_die(&s, 2 * DAY);
    is_u64(after(&s, 0), WALL0 + 2 * DAY + 4 * SECOND,
           "two days later it goes on from the wall clock");
    is_u64(said_leap, 1, "and says so");
    is_u64(said_error, 0, "which is no error");

    last = after(&s, 0);
    is_u64(scene_do(&s, RON_KIND_MINT, 100, "k3", 0), RON_REASON_OK, "money");
    s.wall_ms -= DAY;
    scene_die(&s, 0);
    is_u64(after(&s, 0), last, "a wall clock behind the journal: no fall");
    is_u64(said_error, 1, "and the step is noticed");
    is_u64(said_leap, 1, "but nothing leapt");

    scene_end(&s);
}


/* Another master has written meanwhile, whose clock was further. */

static void
test_other(void)
{
    scene_t             s;
    uint64_t            last;
    ron_ledger_clock_t  other;

    scene_begin(&s, true);

    is_u64(scene_do(&s, RON_KIND_MINT, 100, "k1", 0), RON_REASON_OK, "money");

    memset(&other, 0, sizeof(other));
    s.conf.clock = &other;
    s.wall_ms += DAY;
    scene_die(&s, 0);
    is_u64(scene_do(&s, RON_KIND_MINT, 100, "k2", 0), RON_REASON_OK,
           "another master's");
    is_u64(other.leaps, 1, "which leapt");

    last = after(&s, 0);
    s.conf.clock = &s.kept;
    scene_die(&s, 0);
    is_u64(after(&s, 0), last, "the first one goes on from there");
    is_u64(s.kept.leaps, 1, "and that is a leap of its clock");
    is_u64(said_leap, 2, "as the log says");

    scene_end(&s);
}


/* Read at the begin of a turn, and told at its end: that was counted. */

static void
test_late(void)
{
    scene_t   s;
    uint64_t  began_us, last;

    scene_begin(&s, false);

    (void) after(&s, 10);
    began_us = s.mono_us;
    last = after(&s, 2 * SECOND);
    is_u64(ron_engine_clock(s.en, began_us, s.wall_ms), last,
           "an old reading is none");
    is_u64(after(&s, 10), last + 10, "and no time is counted twice");

    scene_end(&s);
}


int
main(void)
{
    ron_log_set(said, NULL, RON_LOG_INFO);

    test_slew();
    test_step();
    test_respawn();
    test_leap();
    test_other();
    test_late();

    return done_testing();
}
