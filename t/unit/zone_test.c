
/*
 * The zone: layout, caches, counters, guards, ring, metrics, registry; with
 * threads that race and processes that are killed in the middle.
 */

#include "ron_seed.h"
#include "ron_test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ron_port.h"
#include "ron_service.h"
#include "ron_zone_layout.h"


#define ZONE_LEN   (48 * 1024 * 1024)
#define THREADS    4
#define BUS      RON_RING_LEDGER


typedef struct {
    const ron_zone_t  *zone;
    unsigned           no;
    uint32_t           slot;
    uint64_t           wrong;
    uint64_t           seen;
    uint64_t           lost;
    atomic_bool       *stop;
} racer_t;


/* When all of them have come to their end: what they saw together. */

static void
race_end(const pthread_t *tid, const racer_t *r, racer_t *all)
{
    memset(all, 0, sizeof(racer_t));

    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(tid[i], NULL);
        all->seen += r[i].seen;
        all->wrong += r[i].wrong;
        all->lost += r[i].lost;
    }
}


static uint64_t      test_seed = UINT64_C(0x9e3779b97f4a7c15);
static atomic_int    test_inside;
static atomic_int    test_most;
static atomic_uint   test_owners[20001];


static uint64_t
test_random(void)
{
    return ron_seed_next(&test_seed);
}


static void *
test_map(size_t len)
{
    void  *region;

    region = mmap(NULL, len, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    RON_ASSERT(region != MAP_FAILED);

    return region;
}


static void
test_zone(ron_zone_t *zone)
{
    RON_ASSERT(ron_zone_init(test_map(ZONE_LEN), ZONE_LEN, zone) == RON_OK);
}


static void
test_unmap(ron_zone_t *zone)
{
    munmap(zone->base, zone->len);
}


/* ---- layout ------------------------------------------------------------- */

static void
test_layout(void)
{
    size_t        n;
    uint8_t      *region;
    uint64_t      i, inside;
    ron_zone_t    zone, other;
    ron_word_t   *head;

    region = test_map(ZONE_LEN);

    is_status(ron_zone_adopt(region, ZONE_LEN, &zone), RON_EINVAL,
              "zeros are not a zone");
    is_status(ron_zone_init(region, RON_ZONE_MIN - 1, &zone), RON_EFULL,
              "too small");
    is_status(ron_zone_init(region + 8, ZONE_LEN - 64, &zone), RON_EINVAL,
              "not aligned");
    is_status(ron_zone_init(region, ZONE_LEN, &zone), RON_OK, "laid out");
    ok(zone.rates + zone.rate_buckets * RON_PAIR_WORDS * 8 <= ZONE_LEN,
       "everything is inside");

    inside = 0;

    for (i = 0; i < 200; i++) {
        n = ZONE_LEN - i * 64;
        RON_ASSERT(ron_zone_init(region, n, &zone) == RON_OK);
        inside += zone.rates + zone.rate_buckets * RON_PAIR_WORDS * 8 <= n;
    }

    is_u64(inside, 200, "of any length");
    RON_ASSERT(ron_zone_init(region, ZONE_LEN, &zone) == RON_OK);
    ok(zone.balance_buckets * RON_ZONE_WAYS > 50000,
       "%llu balances, %llu notes, %u cells a process",
       (unsigned long long) zone.balance_buckets * RON_ZONE_WAYS,
       (unsigned long long) zone.note_buckets * RON_NOTE_WAYS,
       (unsigned) RON_METRIC_CELLS);

    RON_ASSERT(mprotect(region, ZONE_LEN, PROT_READ) == 0);
    is_status(ron_zone_adopt(region, ZONE_LEN, &other), RON_OK,
              "adopting writes nothing");
    RON_ASSERT(mprotect(region, ZONE_LEN, PROT_READ | PROT_WRITE) == 0);
    ok(memcmp(&zone, &other, sizeof(zone)) == 0, "and finds the same places");

    is_status(ron_zone_adopt(region, ZONE_LEN - 4096, &other), RON_EINVAL,
              "another length is refused");
    ok(other.base == NULL, "and nothing is left to use");

    head = ron_zone_words(&zone, 0);
    head[1] = 99;
    is_status(ron_zone_adopt(region, ZONE_LEN, &other), RON_EVERSION,
              "another version");
    head[1] = RON_ZONE_VERSION;
    head[4] ^= 1;
    is_status(ron_zone_adopt(region, ZONE_LEN, &other), RON_EVERSION,
              "another layout");
    head[4] ^= 1;
    is_status(ron_zone_adopt(region, ZONE_LEN, &other), RON_OK, "adopted");
    test_unmap(&zone);

    region = test_map(RON_ZONE_MIN);
    is_status(ron_zone_init(region, RON_ZONE_MIN, &zone), RON_OK,
              "the smallest works");
    test_unmap(&zone);
}


static void
test_beat(void)
{
    ron_beat_t   beat, got, was;
    ron_zone_t   zone;
    ron_word_t  *w;

    test_zone(&zone);
    is_status(ron_zone_beat_read(&zone, &got), RON_OK, "before any beat");
    ok(!ron_zone_beat_same(&zone, &got), "which is none to go on with");
    ok(got.generation == 0 && got.state == RON_STATE_STARTING, "nothing");

    memset(&beat, 0, sizeof(beat));
    beat.state = RON_STATE_RUNNING;
    beat.generation = 3;
    beat.pid = 4;
    beat.beat_us = 5;
    beat.sync_since_us = 6;
    beat.seq = 7;
    beat.time_ms = 8;
    beat.committed_ms = 9;
    beat.sample_us = 10;
    beat.commit_depth = 11;
    memset(beat.root.b, 'r', RON_HASH_LEN);
    ron_zone_beat_write(&zone, &beat);
    is_status(ron_zone_beat_read(&zone, &got), RON_OK, "a beat");
    ok(ron_zone_beat_same(&zone, &got), "there is no other yet");
    ok(!ron_zone_beat_same(&zone, &beat), "but for who has not read it");
    was = got;
    got.mark = 0;
    ok(memcmp(&beat, &got, sizeof(beat)) == 0, "comes back whole");

    w = ron_zone_words(&zone, zone.beat);
    w[0] |= 1;
    ok(!ron_zone_beat_same(&zone, &was), "one that is begun is another");
    is_status(ron_zone_beat_read(&zone, &got), RON_AGAIN,
              "its writer was killed");
    ron_zone_beat_write(&zone, &beat);
    ok(!ron_zone_beat_same(&zone, &was), "and so is the next one");
    is_status(ron_zone_beat_read(&zone, &got), RON_OK, "which heals");
    w[5] ^= 1;
    is_status(ron_zone_beat_read(&zone, &got), RON_AGAIN,
              "a mixture of two is not believed");
    test_unmap(&zone);
}


/* ---- balances ----------------------------------------------------------- */

static void
test_balance(ron_zone_balance_t *b, uint64_t n)
{
    b->available = ((ron_u128_t) n << 64) + n * 3;
    b->held = n * 5;
    b->nonce = n * 7;
    b->version = n;
    b->seq = n;
    b->as_of_ms = n * 11;
}


static bool
test_balance_whole(const ron_zone_balance_t *b)
{
    ron_zone_balance_t  want;

    test_balance(&want, b->version);

    return b->available == want.available && b->held == want.held
           && b->nonce == want.nonce && b->seq == want.seq
           && b->as_of_ms == want.as_of_ms;
}


static void
test_balances(void)
{
    char                 name[32];
    uint64_t             i, found, wrong, mark;
    ron_str_t            asset = ron_str("ron");
    ron_zone_t           zone;
    ron_word_t          *w, *marks;
    ron_zone_key_t       key;
    ron_zone_balance_t   b, got;

    test_zone(&zone);
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_ENOTFOUND, "nothing yet");
    test_balance(&b, 5);
    ron_zone_balance_put(&zone, ron_str("a"), asset, &b, 1);
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_OK, "found");
    ok(got.version == 5 && test_balance_whole(&got), "whole");
    is_status(ron_zone_balance_get(&zone, ron_str("a"), ron_str("roc"), &got,
                                   1), RON_ENOTFOUND, "another asset");
    is_status(ron_zone_balance_get(&zone, ron_str("ar"), ron_str("on"), &got,
                                   1), RON_ENOTFOUND,
              "account and asset do not run into each other");

    test_balance(&b, 4);
    ron_zone_balance_put(&zone, ron_str("a"), asset, &b, 1);
    (void) ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1);
    is_u64(got.version, 5, "an older one does not replace it");
    test_balance(&b, 6);
    ron_zone_balance_put(&zone, ron_str("a"), asset, &b, 1);
    (void) ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1);
    is_u64(got.version, 6, "a newer one does");

    w = ron_zone_words(&zone, zone.balances);
    for (i = 0; w[RON_BALANCE_SEQ] == 0; i++) {
        w += RON_BALANCE_WORDS;
    }
    w[RON_BALANCE_SEQ] |= 1;
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_ENOTFOUND, "its writer was killed: missing");
    ron_zone_balance_put(&zone, ron_str("a"), asset, &b, 1);
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_OK, "a new writer heals it");
    w[RON_BALANCE_DATA + 2] ^= 1;
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_ENOTFOUND, "a wrong bit: missing");
    ron_zone_balance_put(&zone, ron_str("a"), asset, &b, 1);
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_OK, "healed");
    marks = ron_zone_words(&zone, zone.balance_marks);
    while (*marks == 0) {
        marks++;
    }
    mark = *marks;
    *marks = 0;
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_ENOTFOUND, "its writer was killed before the mark: missing");
    ron_zone_balance_put(&zone, ron_str("a"), asset, &b, 1);
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_OK, "healed");
    is_u64(*marks, mark, "where it was");
    *marks = mark * UINT64_C(0x0101010101010100);
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_ENOTFOUND, "marks that lie lead nowhere");
    *marks = mark * UINT64_C(0x0101010101010101);
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_OK, "nor away from where it is");
    *marks = mark;
    w[RON_BALANCE_DATA + 8] = 1000;
    test_balance(&b, 7);
    ron_zone_key(&zone, ron_str("a"), asset, &key);
    ron_zone_balances_ahead(&zone, &key, 1);
    ron_zone_balance_put_key(&zone, &key, &b, 1);
    (void) ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1);
    is_u64(got.version, 7, "what only looks newer is replaced, by its key");
    test_balance(&b, 6);
    ron_zone_key(&zone, ron_str("a"), asset, &key);
    ron_zone_balances_ahead(&zone, &key, 1);
    ron_zone_balance_put_key(&zone, &key, &b, 1);
    (void) ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1);
    is_u64(got.version, 7, "and an older one does not replace it so either");

    ron_zone_balances_wipe(&zone);
    is_status(ron_zone_balance_get(&zone, ron_str("a"), asset, &got, 1),
              RON_ENOTFOUND, "wiped");

    /* Four times what fits: all that is found is right. */

    for (i = 0; i < 500000; i++) {
        (void) snprintf(name, sizeof(name), "acc%llu",
                        (unsigned long long) i);
        test_balance(&b, i + 1);
        ron_zone_balance_put(&zone, ron_cstr(name), asset, &b, i / 100);
    }

    found = 0;
    wrong = 0;

    for (i = 0; i < 500000; i++) {
        (void) snprintf(name, sizeof(name), "acc%llu",
                        (unsigned long long) i);

        if (ron_zone_balance_get(&zone, ron_cstr(name), asset, &got, 3000)
            == RON_OK)
        {
            found++;
            wrong += got.version != i + 1 || !test_balance_whole(&got);
        }
    }

    is_u64(wrong, 0, "of 500000 accounts none is wrong");
    ok(found > zone.balance_buckets * RON_ZONE_WAYS * 9 / 10,
       "%llu of %llu places are in use", (unsigned long long) found,
       (unsigned long long) zone.balance_buckets * RON_ZONE_WAYS);
    test_unmap(&zone);
}


static void *
race_read(void *arg)
{
    char                 name[16];
    unsigned             i;
    racer_t             *r = arg;
    ron_zone_balance_t   b;

    for (i = 0; !atomic_load(r->stop); i++) {
        (void) snprintf(name, sizeof(name), "acc%u", i % 16);

        if (ron_zone_balance_get(r->zone, ron_cstr(name), ron_str("ron"), &b,
                                 1) == RON_OK)
        {
            r->seen++;
            r->wrong += !test_balance_whole(&b);
        }
    }

    return NULL;
}


static void
test_balance_race(void)
{
    char                 name[16];
    racer_t              r[THREADS], all;
    uint64_t             i;
    pthread_t            tid[THREADS];
    ron_zone_t           zone;
    atomic_bool          stop;
    ron_zone_balance_t   b;

    test_zone(&zone);
    memset(r, 0, sizeof(r));
    atomic_init(&stop, false);

    for (i = 0; i < THREADS; i++) {
        r[i].zone = &zone;
        r[i].stop = &stop;
        RON_ASSERT(pthread_create(&tid[i], NULL, race_read, &r[i]) == 0);
    }

    for (i = 1; i < 200000; i++) {
        (void) snprintf(name, sizeof(name), "acc%u", (unsigned) (i % 16));
        test_balance(&b, i);
        ron_zone_balance_put(&zone, ron_cstr(name), ron_str("ron"), &b, 1);
    }

    atomic_store(&stop, true);
    race_end(tid, r, &all);

    ok(all.seen > 1000, "%llu reads while one writes",
       (unsigned long long) all.seen);
    is_u64(all.wrong, 0, "none is torn");
    test_unmap(&zone);
}


/* A writer that is killed at any instant, again and again. */

static void
test_balance_kill(void)
{
    char                 name[16];
    pid_t                pid;
    unsigned             i, round, missing, wrong, unhealed;
    ron_zone_t           zone;
    ron_zone_balance_t   b, got;

    test_zone(&zone);
    missing = 0;
    wrong = 0;
    unhealed = 0;

    for (round = 0; round < 60; round++) {
        pid = fork();
        RON_ASSERT(pid != -1);

        if (pid == 0) {
            for (i = 0; ; i++) {
                (void) snprintf(name, sizeof(name), "acc%u", i % 8);
                test_balance(&b, (uint64_t) round * 100000000 + i);
                ron_zone_balance_put(&zone, ron_cstr(name), ron_str("ron"),
                                     &b, 1);
            }
        }

        ron_sleep_us(500 + test_random() % 3000);
        RON_ASSERT(kill(pid, SIGKILL) == 0);
        RON_ASSERT(waitpid(pid, NULL, 0) == pid);

        for (i = 0; i < 8; i++) {
            (void) snprintf(name, sizeof(name), "acc%u", i);

            if (ron_zone_balance_get(&zone, ron_cstr(name), ron_str("ron"),
                                     &got, 1) == RON_OK)
            {
                wrong += !test_balance_whole(&got);

            } else {
                missing++;
            }
        }
    }

    for (i = 0; i < 8; i++) {
        (void) snprintf(name, sizeof(name), "acc%u", i);
        test_balance(&b, UINT64_C(1) << 60);
        ron_zone_balance_put(&zone, ron_cstr(name), ron_str("ron"), &b, 1);
        unhealed += ron_zone_balance_get(&zone, ron_cstr(name),
                                         ron_str("ron"), &got, 1) != RON_OK;
    }

    is_u64(wrong, 0, "60 killed writers leave nothing wrong (%u missing)",
           missing);
    is_u64(unhealed, 0, "and everything heals");
    test_unmap(&zone);
}


/* Nine keys of one bucket: the one not used for longest goes. */

static void
test_bucket(void)
{
    char                 names[9][32];
    uint64_t             i, n;
    ron_zone_t           zone;
    ron_zone_key_t       key;
    ron_zone_balance_t   b;

    test_zone(&zone);
    test_balance(&b, 1);

    for (i = 0, n = 0; n < 9; i++) {
        (void) snprintf(names[n], sizeof(names[n]), "k%llu",
                        (unsigned long long) i);
        ron_zone_key(&zone, ron_cstr(names[n]), ron_str("ron"), &key);
        n += (uint64_t) ((ron_u128_t) key.w[0] * zone.balance_buckets >> 64)
             == 5;
    }

    for (i = 0; i < 8; i++) {
        ron_zone_balance_put(&zone, ron_cstr(names[i]), ron_str("ron"), &b,
                             100000 + i * 1000);
    }

    (void) ron_zone_balance_get(&zone, ron_cstr(names[0]), ron_str("ron"),
                                &b, 200000);
    ron_zone_balance_put(&zone, ron_cstr(names[8]), ron_str("ron"), &b,
                         201000);
    n = 0;

    for (i = 0; i < 9; i++) {
        n += (uint64_t) (ron_zone_balance_get(&zone, ron_cstr(names[i]),
                                              ron_str("ron"), &b, 202000)
                         == RON_OK) << i;
    }

    is_u64(n, 0x1fd, "the second of nine, since the first was used again");
    test_unmap(&zone);
}


/* ---- slots and admission ------------------------------------------------ */

static bool
test_alive(void *ctx, uint32_t pid)
{
    return pid != *(uint32_t *) ctx;
}


static void
test_slots(void)
{
    uint32_t    i, slot, dead, wrong;
    ron_zone_t  zone;

    test_zone(&zone);
    wrong = 0;

    for (i = 0; i < RON_ZONE_SLOTS; i++) {
        wrong += ron_zone_slot_claim(&zone, 100 + i, &slot) != RON_OK
                 || slot != i;
    }
    is_u64(wrong, 0, "every slot can be claimed");
    is_status(ron_zone_slot_claim(&zone, 999, &slot), RON_EFULL, "no more");
    is_u64(slot, RON_ZONE_SLOT_NONE, "and none is given");
    ron_zone_slot_leave(&zone, 7);
    is_status(ron_zone_slot_claim(&zone, 999, &slot), RON_OK, "one left");
    is_u64(slot, 7, "the same");
    is_u64(ron_zone_slot_pid(&zone, 7), 999, "and has an owner");

    for (i = 0; i < 5; i++) {
        (void) ron_zone_admit(&zone, 7, RON_ADMIT_INGRESS, 10);
    }
    (void) ron_zone_admit(&zone, 8, RON_ADMIT_INGRESS, 10);
    ron_metric_add(&zone, 7, RON_M_LEDGER_COMMITS, 0, 0, 0, 0, 3);
    ron_metric_add(&zone, 7, RON_M_WORKER_INFLIGHT, 0, 0, 0, 0, 4);

    dead = 999;
    is_u64(ron_zone_slots_alive(&zone, test_alive, &dead),
           RON_ZONE_SLOTS - 1, "all owners but one live");
    is_u64(ron_zone_slots_sweep(&zone, test_alive, &dead), 1,
           "its owner died");
    is_u64(ron_zone_slot_pid(&zone, 7), 0, "the slot is free");
    dead = 0;
    is_u64(ron_zone_slots_alive(&zone, test_alive, &dead),
           RON_ZONE_SLOTS - 1, "and one that is free has none");
    dead = 999;
    is_u64(ron_zone_admitted(&zone, RON_ADMIT_INGRESS), 1,
           "what it had admitted is given back");
    is_u64(ron_metric_read(&zone, RON_M_LEDGER_COMMITS, 0, 0, 0, 0), 3,
           "its counters stay");
    is_u64(ron_metric_read(&zone, RON_M_WORKER_INFLIGHT, 0, 0, 0, 0), 0,
           "its gauges do not");
    is_u64(ron_zone_slots_sweep(&zone, test_alive, &dead), 0, "once");

    /* who came too late asks again when somebody has died */

    is_status(ron_zone_slot_claim(&zone, 700, &slot), RON_OK, "full again");
    is_status(ron_zone_slot_claim(&zone, 701, &slot), RON_EFULL, "too late");
    dead = 105;
    is_u64(ron_zone_slots_sweep(&zone, test_alive, &dead), 1, "one died");
    is_status(ron_zone_slot_claim(&zone, 701, &slot), RON_OK, "not for ever");
    is_u64(slot, 5, "in its place");
    is_u64(ron_zone_slots_alive(&zone, test_alive, &dead), RON_ZONE_SLOTS,
           "and all are taken");
    test_unmap(&zone);
}


static void *
race_admit(void *arg)
{
    int         now, most;
    unsigned    i;
    racer_t    *r = arg;

    for (i = 0; i < 50000; i++) {
        if (ron_zone_admit(r->zone, r->slot, RON_ADMIT_WORK, 2) != RON_OK) {
            r->lost++;
            continue;
        }

        r->seen++;
        now = atomic_fetch_add(&test_inside, 1) + 1;
        most = atomic_load(&test_most);
        while (now > most
               && !atomic_compare_exchange_weak(&test_most, &most, now))
        { /* void */ }
        (void) sched_yield();
        atomic_fetch_sub(&test_inside, 1);
        ron_zone_admit_done(r->zone, r->slot, RON_ADMIT_WORK);
    }

    return NULL;
}


static void
test_admission(void)
{
    pid_t       pid;
    racer_t     r[THREADS], all;
    uint32_t    slot, mine, dead;
    uint64_t    i, in, out;
    pthread_t   tid[THREADS];
    ron_zone_t  zone;

    test_zone(&zone);
    RON_ASSERT(ron_zone_slot_claim(&zone, 1, &mine) == RON_OK);
    in = 0;
    out = 0;

    for (i = 0; i < 2500; i++) {
        if (ron_zone_admit(&zone, mine, RON_ADMIT_INGRESS,
                           ron_queue_info(RON_QUEUE_INGRESS)->capacity)
            == RON_OK)
        {
            in++;
        } else {
            out++;
        }
    }
    is_u64(in, 2000, "ingress takes exactly 2000");
    is_u64(out, 500, "and refuses the rest");
    is_u64(ron_zone_admitted(&zone, RON_ADMIT_INGRESS), 2000, "its depth");
    ron_zone_admit_done(&zone, mine, RON_ADMIT_INGRESS);
    is_status(ron_zone_admit(&zone, mine, RON_ADMIT_INGRESS, 2000), RON_OK,
              "one goes, one comes");
    is_status(ron_zone_admit(&zone, mine, RON_ADMIT_INGRESS, 2000), RON_EFULL,
              "not two");
    is_u64(ron_zone_admitted(&zone, RON_ADMIT_WORK), 0, "work is apart");

    memset(r, 0, sizeof(r));
    for (i = 0; i < THREADS; i++) {
        r[i].zone = &zone;
        RON_ASSERT(ron_zone_slot_claim(&zone, 10 + (uint32_t) i, &r[i].slot)
                   == RON_OK);
        RON_ASSERT(pthread_create(&tid[i], NULL, race_admit, &r[i]) == 0);
    }
    race_end(tid, r, &all);
    ok(atomic_load(&test_most) == 2 && all.seen > 0 && all.lost > 0,
       "never more than 2 inside (%d), %llu in, %llu refused",
       atomic_load(&test_most), (unsigned long long) all.seen,
       (unsigned long long) all.lost);
    is_u64(ron_zone_admitted(&zone, RON_ADMIT_WORK), 0, "all are out again");

    /* Processes killed while they admit: nothing is lost for good. */

    for (i = 0; i < 40; i++) {
        pid = fork();
        RON_ASSERT(pid != -1);

        if (pid == 0) {
            RON_ASSERT(ron_zone_slot_claim(&zone, 5555, &slot) == RON_OK);
            for ( ;; ) {
                (void) ron_zone_admit(&zone, slot, RON_ADMIT_WORK, 512);
                (void) ron_zone_admit(&zone, slot, RON_ADMIT_WORK, 512);
                ron_zone_admit_done(&zone, slot, RON_ADMIT_WORK);
            }
        }

        ron_sleep_us(200 + test_random() % 1000);
        RON_ASSERT(kill(pid, SIGKILL) == 0);
        RON_ASSERT(waitpid(pid, NULL, 0) == pid);
        dead = 5555;
        (void) ron_zone_slots_sweep(&zone, test_alive, &dead);
    }
    is_u64(ron_zone_admitted(&zone, RON_ADMIT_WORK), 0,
           "40 processes killed while admitting leave nothing behind");
    in = 0;
    while (ron_zone_admit(&zone, mine, RON_ADMIT_WORK, 512) == RON_OK) {
        in++;
    }
    is_u64(in, 512, "and the capacity is what it was");
    test_unmap(&zone);
}


/* ---- guards ------------------------------------------------------------- */

static void *
race_nonce(void *arg)
{
    uint64_t           n, last;
    racer_t           *r = arg;
    ron_zone_nonce_t   racer;

    ron_zone_nonce_init(r->zone, ron_str("racer"), &racer);

    for (n = 1; n <= 20000; n++) {
        if (ron_zone_nonce_reserve(r->zone, &racer, n, &last) == RON_OK) {
            r->seen++;
            atomic_fetch_add(&test_owners[n], 1);
        }
    }

    return NULL;
}


static void
test_nonces(void)
{
    racer_t            r[THREADS];
    uint64_t           i, last, twice;
    pthread_t          tid[THREADS];
    ron_zone_t         zone;
    ron_zone_nonce_t   a, b;

    test_zone(&zone);
    ron_zone_nonce_init(&zone, ron_str("a"), &a);
    ron_zone_nonce_init(&zone, ron_str("b"), &b);

    is_status(ron_zone_nonce_reserve(&zone, &a, 5, &last), RON_OK,
              "reserved");
    is_u64(last, 0, "the first");
    is_status(ron_zone_nonce_reserve(&zone, &a, 5, &last),
              RON_EEXIST, "not twice");
    is_u64(last, 5, "since it is there");
    is_status(ron_zone_nonce_reserve(&zone, &a, 4, &last),
              RON_EEXIST, "nor lower");
    is_status(ron_zone_nonce_reserve(&zone, &b, 4, &last), RON_OK,
              "accounts are apart");
    is_status(ron_zone_nonce_reserve(&zone, &a, 6, &last), RON_OK,
              "higher");
    ron_zone_nonce_release(&zone, &a, 6, last);
    is_status(ron_zone_nonce_reserve(&zone, &a, 6, &last), RON_OK,
              "a refused request gives it back");
    ron_zone_nonce_commit(&zone, &a, 9);
    ron_zone_nonce_release(&zone, &a, 6, 5);
    is_status(ron_zone_nonce_reserve(&zone, &a, 9, &last),
              RON_EEXIST, "but not below what was committed");
    ron_zone_nonce_commit(&zone, &a, 3);
    (void) ron_zone_nonce_reserve(&zone, &a, 1, &last);
    is_u64(last, 9, "a commit never lowers it");

    /* under which key a nonce is durable */

    ok(!ron_zone_nonce_taken(&zone, &a, 9, ron_str("k1")),
       "nobody knows whose a nonce is");
    ron_zone_nonce_note(&zone, &a, 9, ron_str("k1"));
    ok(!ron_zone_nonce_taken(&zone, &a, 9, ron_str("k1")),
       "with its own key it may be a replay");
    ok(ron_zone_nonce_taken(&zone, &a, 9, ron_str("k2")),
       "with another it is none");
    ok(!ron_zone_nonce_taken(&zone, &a, 8, ron_str("k2"))
       && !ron_zone_nonce_taken(&zone, &b, 9, ron_str("k2")),
       "nothing is said of another nonce or account");
    ron_zone_nonce_note(&zone, &a, 9, ron_str("k2"));
    ok(ron_zone_nonce_taken(&zone, &a, 9, ron_str("k1"))
       && !ron_zone_nonce_taken(&zone, &a, 9, ron_str("k2")),
       "the last word counts");
    ron_zone_notes_wipe(&zone);
    ok(!ron_zone_nonce_taken(&zone, &a, 9, ron_str("k1")),
       "and nothing of an earlier ledger");

    /* any number of shards holds what it is given */

    for (zone.shards = 1; zone.shards <= 1024; zone.shards *= 32) {
        (void) ron_zone_nonce_reserve(&zone, &b, 1000 + zone.shards, &last);
        is_status(ron_zone_nonce_reserve(&zone, &b, 1000 + zone.shards,
                                         &last), RON_EEXIST,
                  "%u shards", (unsigned) zone.shards);
    }
    zone.shards = 0;

    memset(r, 0, sizeof(r));
    for (i = 0; i < THREADS; i++) {
        r[i].zone = &zone;
        RON_ASSERT(pthread_create(&tid[i], NULL, race_nonce, &r[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(tid[i], NULL);
    }
    twice = 0;
    for (i = 1; i <= 20000; i++) {
        twice += atomic_load(&test_owners[i]) > 1;
    }
    is_u64(twice, 0, "at most one of four threads gets a nonce");
    test_unmap(&zone);
}


/*
 * Notes, three times what fits: what is said of one is never wrong, and most of
 * the newest are there.
 */

static void
test_notes(void)
{
    char               key[48];
    uint64_t           i, all, wrong, kept;
    ron_zone_t         zone;
    ron_zone_nonce_t   n;

    test_zone(&zone);
    ron_zone_nonce_init(&zone, ron_str("somebody"), &n);
    all = 3 * zone.note_buckets * RON_NOTE_WAYS;

    for (i = 1; i <= all; i++) {
        (void) snprintf(key, sizeof(key), "a key of its own %llu",
                        (unsigned long long) i);
        ron_zone_nonce_near(&zone, &n, i);
        ron_zone_nonce_note(&zone, &n, i, ron_cstr(key));
    }

    wrong = 0;
    kept = 0;

    for (i = 1; i <= all; i++) {
        (void) snprintf(key, sizeof(key), "a key of its own %llu",
                        (unsigned long long) i);
        wrong += ron_zone_nonce_taken(&zone, &n, i, ron_cstr(key));

        if (i > all - all / 30) {
            kept += ron_zone_nonce_taken(&zone, &n, i, ron_str("other"));
        }
    }

    is_u64(wrong, 0, "of %llu notes none denies its own key",
           (unsigned long long) all);
    ok(kept > all / 30 * 8 / 10, "%llu of the last %llu are kept",
       (unsigned long long) kept, (unsigned long long) all / 30);

    /* keys differ in any byte, and in length */

    memset(key, 'k', sizeof(key));
    wrong = 0;

    for (i = 0; i < sizeof(key); i++) {
        ron_zone_nonce_note(&zone, &n, all + 1,
                            (ron_str_t) { sizeof(key),
                                          (const uint8_t *) key });
        key[i] ^= 1;
        wrong += !ron_zone_nonce_taken(&zone, &n, all + 1,
                                       (ron_str_t) { sizeof(key),
                                                     (const uint8_t *) key });
        key[i] ^= 1;
        wrong += !ron_zone_nonce_taken(&zone, &n, all + 1,
                                       (ron_str_t) { i,
                                                     (const uint8_t *) key });
    }

    is_u64(wrong, 0, "a key that differs by a byte is another");
    test_unmap(&zone);
}


/* Writers of sixteen nonces for four places, each under a key of its own. */

static void *
race_notes(void *arg)
{
    char               key[16];
    unsigned           i, seed, nonce;
    racer_t           *r = arg;
    ron_zone_nonce_t   n;

    seed = r->no + 1;
    ron_zone_nonce_init(r->zone, ron_str("somebody"), &n);

    for (i = 0; i < 200000; i++) {
        nonce = 1 + (unsigned) rand_r(&seed) % 16;
        (void) snprintf(key, sizeof(key), "key %u", nonce);
        ron_zone_nonce_note(r->zone, &n, nonce, ron_cstr(key));

        nonce = 1 + (unsigned) rand_r(&seed) % 16;
        (void) snprintf(key, sizeof(key), "key %u", nonce);
        r->wrong += ron_zone_nonce_taken(r->zone, &n, nonce, ron_cstr(key));
        r->seen += ron_zone_nonce_taken(r->zone, &n, nonce, ron_str("other"));
    }

    return NULL;
}


static void
test_notes_race(void)
{
    racer_t      r[THREADS], all;
    uint64_t     i;
    pthread_t    tid[THREADS];
    ron_zone_t   zone;

    test_zone(&zone);
    zone.note_buckets = 1;
    memset(r, 0, sizeof(r));

    for (i = 0; i < THREADS; i++) {
        r[i].zone = &zone;
        r[i].no = (unsigned) i;
        RON_ASSERT(pthread_create(&tid[i], NULL, race_notes, &r[i]) == 0);
    }

    race_end(tid, r, &all);

    ok(all.seen > 1000, "%llu notes found while four write",
       (unsigned long long) all.seen);
    is_u64(all.wrong, 0, "none with another one's key");
    test_unmap(&zone);
}


static void
test_rates(void)
{
    unsigned         i, n;
    uint64_t         now;
    ron_zone_t       zone;
    ron_zone_key_t   key, other;
    ron_zone_rate_t  is;

    test_zone(&zone);
    ron_zone_key(&zone, ron_str("tenant"), ron_null_str, &key);
    ron_zone_key(&zone, ron_str("another"), ron_null_str, &other);
    now = 1000000000;

    for (i = 0, n = 0; i < 10; i++) {
        n += ron_zone_rate_take(&zone, &key, 10, 5, now, &is) == RON_OK;
    }
    is_u64(n, 5, "a burst of 5");
    is_u64(is.retry_us, 100000, "the next in 100 ms");
    is_u64(is.left, 0, "none is left");
    is_u64(is.full_us, 500000, "it is full again in 500 ms");
    is_status(ron_zone_rate_take(&zone, &other, 10, 5, now, &is), RON_OK,
              "buckets are apart");
    is_u64(is.left, 4, "four of five are left in another");
    is_u64(is.full_us, 100000, "which is full in 100 ms");
    is_status(ron_zone_rate_take(&zone, &key, 10, 5, now + 99999, &is),
              RON_EFULL, "not before");
    is_status(ron_zone_rate_take(&zone, &key, 10, 5, now + 100000, &is),
              RON_OK, "then");

    for (i = 0, n = 0; i < 100000; i++) {
        now += 1000;
        n += ron_zone_rate_take(&zone, &other, 10, 5, now, &is) == RON_OK;
    }
    ok(n >= 1000 && n <= 1006, "over 100 s of 1000 a second %u pass", n);
    is_status(ron_zone_rate_take(&zone, &key, 0, 5, now, &is), RON_OK,
              "rate 0 is no limit");
    test_unmap(&zone);
}


static void
test_breakers(void)
{
    bool                 probe, opened;
    uint32_t             b, c, i, n;
    uint64_t             retry, now;
    ron_zone_t           zone;
    ron_breaker_conf_t   conf;

    test_zone(&zone);
    ron_breaker_conf_init(&conf);
    is_status(ron_zone_breaker(&zone, ron_str("ledger"), &b), RON_OK, "one");
    is_status(ron_zone_breaker(&zone, ron_str("kms"), &c), RON_OK, "two");
    ok(b != c, "by name");
    is_status(ron_zone_breaker(&zone, ron_str("ledger"), &c), RON_OK, "again");
    is_u64(c, b, "the same");

    now = 1000000;
    opened = false;
    for (i = 0; i < 19; i++) {
        opened |= ron_zone_breaker_tell(&zone, b, &conf, now + i, false);
    }
    ok(!opened, "19 errors");
    is_status(ron_zone_breaker_ask(&zone, b, &conf, now, &probe, &retry),
              RON_OK, "closed");
    ok(!probe, "and no probe");
    ok(ron_zone_breaker_tell(&zone, b, &conf, now + 20, false),
       "the 20th opens it");
    is_u64(ron_zone_breaker_state(&zone, b), RON_BREAKER_OPEN, "open");
    is_status(ron_zone_breaker_ask(&zone, b, &conf, now + 5019, &probe,
                                   &retry), RON_ECANCELED, "for 5 s");
    is_u64(retry, 1, "and says for how long");
    (void) ron_zone_breaker_tell(&zone, b, &conf, now + 30, true);
    is_u64(ron_zone_breaker_state(&zone, b), RON_BREAKER_OPEN,
           "a late success does not close it");

    now += 5020;
    for (i = 0, n = 0; i < 20; i++) {
        n += ron_zone_breaker_ask(&zone, b, &conf, now, &probe, &retry)
             == RON_OK && probe;
    }
    is_u64(n, 10, "then 10 probes");
    is_u64(ron_zone_breaker_state(&zone, b), RON_BREAKER_HALF_OPEN,
           "half open");
    for (i = 0; i < 9; i++) {
        (void) ron_zone_breaker_tell(&zone, b, &conf, now, true);
    }
    is_u64(ron_zone_breaker_state(&zone, b), RON_BREAKER_HALF_OPEN, "9 good");
    ok(ron_zone_breaker_tell(&zone, b, &conf, now, false),
       "and one bad open it again");

    now += 5000;
    for (i = 0; i < 10; i++) {
        (void) ron_zone_breaker_ask(&zone, b, &conf, now, &probe, &retry);
    }
    is_status(ron_zone_breaker_ask(&zone, b, &conf, now + 4999, &probe,
                                   &retry), RON_ECANCELED,
              "probes that tell nothing");
    is_status(ron_zone_breaker_ask(&zone, b, &conf, now + 5000, &probe,
                                   &retry), RON_OK, "are given out again");
    for (i = 0, n = 1; i < 20; i++) {
        n += ron_zone_breaker_ask(&zone, b, &conf, now + 5000, &probe, &retry)
             == RON_OK;
    }
    is_u64(n, 10, "all ten, and no more");
    for (i = 0; i < 3; i++) {
        ron_zone_breaker_return(&zone, b, &conf);
    }
    for (i = 0, n = 0; i < 20; i++) {
        n += ron_zone_breaker_ask(&zone, b, &conf, now + 5000, &probe, &retry)
             == RON_OK;
    }
    is_u64(n, 3, "one for each whose client went away");
    for (i = 0; i < 9; i++) {
        (void) ron_zone_breaker_tell(&zone, b, &conf, now + 5000, true);
    }
    for (i = 0, n = 0; i < 20; i++) {
        ron_zone_breaker_return(&zone, b, &conf);
        n += ron_zone_breaker_ask(&zone, b, &conf, now + 5000, &probe, &retry)
             == RON_OK;
    }
    is_u64(n, 20, "the last again and again");
    for (i = 0; i < 5; i++) {
        ron_zone_breaker_return(&zone, b, &conf);
    }
    for (i = 0, n = 0; i < 20; i++) {
        n += ron_zone_breaker_ask(&zone, b, &conf, now + 5000, &probe, &retry)
             == RON_OK;
    }
    is_u64(n, 1, "and never more than are missing");
    for (i = 0; i < 1; i++) {
        (void) ron_zone_breaker_tell(&zone, b, &conf, now + 5000, true);
    }
    is_u64(ron_zone_breaker_state(&zone, b), RON_BREAKER_CLOSED,
           "10 good close it");

    now += 100000;
    opened = false;
    for (i = 0; i < 60; i++) {
        opened |= ron_zone_breaker_tell(&zone, b, &conf, now, false);
        now += 1000;
    }
    ok(!opened, "an error a second never fills a window of 10 s");
    now += 100000;
    for (i = 0; i < 19; i++) {
        (void) ron_zone_breaker_tell(&zone, b, &conf, now, false);
    }
    now += 13000;
    ok(!ron_zone_breaker_tell(&zone, b, &conf, now, false),
       "19 errors and a quiet time");
    is_u64(ron_zone_breaker_state(&zone, b), RON_BREAKER_CLOSED,
           "are forgotten");
    now += 100000;
    for (i = 0; i < 20; i++) {
        (void) ron_zone_breaker_tell(&zone, b, &conf, now, false);
    }
    is_u64(ron_zone_breaker_state(&zone, b), RON_BREAKER_OPEN, "20 at once");
    ron_zone_breaker_close(&zone, b);
    is_u64(ron_zone_breaker_state(&zone, b), RON_BREAKER_CLOSED,
           "closed by hand");
    ron_zone_breaker_return(&zone, b, &conf);
    is_u64(ron_zone_breaker_state(&zone, b), RON_BREAKER_CLOSED,
           "and a probe from before changes nothing");
    for (i = 0; i < 19; i++) {
        (void) ron_zone_breaker_tell(&zone, b, &conf, now, false);
    }
    is_u64(ron_zone_breaker_state(&zone, b), RON_BREAKER_CLOSED,
           "and its errors are forgotten");
    test_unmap(&zone);
}


/* ---- the ring ----------------------------------------------------------- */

static void *
race_ring(void *arg)
{
    racer_t      *r = arg;
    uint64_t      cursor, lost, next;
    ron_event_t   e;

    cursor = 0;
    next = 0;

    for ( ;; ) {
        bool  stop = atomic_load(r->stop);

        if (ron_zone_event_get(r->zone, BUS, &cursor, &e, &lost) == RON_OK) {
            r->seen++;
            r->lost += lost;
            r->wrong += e.index < next || e.seq != e.index * 3
                        || e.data_len != e.index % RON_ZONE_EVENT_MAX;
            next = e.index + 1;
            continue;
        }

        r->lost += lost;

        if (stop) {
            return NULL;
        }
    }
}


/* The invalidator: what it did not see, it does not guess. */

static void
test_bus(void)
{
    uint64_t            i, cursor, lost;
    ron_str_t           a;
    ron_zone_t          zone;
    ron_event_t         e;
    ron_zone_bus_t      bus;
    ron_zone_balance_t  b, got;

    test_zone(&zone);
    a = ron_str("a");
    memset(&b, 0, sizeof(b));
    memset(&e, 0, sizeof(e));
    b.available = 7;
    e.type = RON_EVENT_COMMIT;
    e.count = 2;

    e.seq = 100;
    (void) ron_zone_event_put(&zone, BUS, &e);
    ron_zone_bus_init(&zone, &bus);
    ron_zone_balance_put(&zone, a, a, &b, 1);

    for (e.seq = 110; e.seq <= 120; e.seq += 2) {
        (void) ron_zone_event_put(&zone, BUS, &e);
    }
    is_u64(ron_zone_bus_follow(&zone, &bus), 0, "commits that join on");
    is_u64(ron_zone_bus_follow(&zone, &bus), 0, "nothing new");
    is_status(ron_zone_balance_get(&zone, a, a, &got, 1), RON_OK,
              "balances are kept");

    e.seq = 124;
    (void) ron_zone_event_put(&zone, BUS, &e);
    is_u64(ron_zone_bus_follow(&zone, &bus), 1, "a commit is missing");
    is_status(ron_zone_balance_get(&zone, a, a, &got, 1), RON_ENOTFOUND,
              "all balances are dropped");
    ron_zone_balance_put(&zone, a, a, &b, 1);
    e.seq = 126;
    (void) ron_zone_event_put(&zone, BUS, &e);
    is_u64(ron_zone_bus_follow(&zone, &bus), 0, "and it goes on");

    for (i = 0; i < 1024 + 5; i++) {
        e.seq += 2;
        (void) ron_zone_event_put(&zone, BUS, &e);
    }
    is_u64(ron_zone_bus_follow(&zone, &bus), 5, "slower than the bus");
    is_status(ron_zone_balance_get(&zone, a, a, &got, 1), RON_ENOTFOUND,
              "all balances are dropped");
    is_u64(ron_zone_bus_follow(&zone, &bus), 0, "once");

    cursor = ron_zone_event_cursor(&zone, RON_RING_WALLET);
    is_u64(cursor, 0, "the wallet's ring is another one");
    e.seq = 1;
    (void) ron_zone_event_put(&zone, RON_RING_WALLET, &e);
    is_status(ron_zone_event_get(&zone, RON_RING_WALLET, &cursor, &e, &lost),
              RON_OK, "with events of its own");
    is_u64(e.seq, 1, "this one");
    is_u64(ron_zone_bus_follow(&zone, &bus), 0, "that the bus does not have");

    ok(!ron_zone_ring_heard(&zone, RON_RING_WALLET, 1000), "nobody listens");
    ron_zone_ring_listen(&zone, RON_RING_WALLET, 1000);
    ok(ron_zone_ring_heard(&zone, RON_RING_WALLET, 60999)
       && !ron_zone_ring_heard(&zone, RON_RING_WALLET, 61000)
       && !ron_zone_ring_heard(&zone, BUS, 1000), "for a minute");
    test_unmap(&zone);
}


static void
test_ring(void)
{
    racer_t       r[THREADS], all;
    uint64_t      i, cursor, lost;
    pthread_t     tid[THREADS];
    ron_zone_t    zone;
    atomic_bool   stop;
    ron_event_t   e, got;

    test_zone(&zone);
    cursor = ron_zone_event_cursor(&zone, BUS);
    is_status(ron_zone_event_get(&zone, BUS, &cursor, &got, &lost), RON_AGAIN,
              "nothing yet");
    memset(&e, 0, sizeof(e));
    e.type = RON_EVENT_COMMIT;
    e.seq = 12;
    e.data_len = 4;
    memcpy(e.data, "root", 4);
    is_status(ron_zone_event_put(&zone, BUS, &e), RON_OK, "put");
    is_status(ron_zone_event_get(&zone, BUS, &cursor, &got, &lost), RON_OK,
              "got");
    ok(got.seq == 12 && got.index == 0 && lost == 0
       && memcmp(got.data, "root", 4) == 0, "it");
    e.data_len = RON_ZONE_EVENT_MAX + 1;
    is_status(ron_zone_event_put(&zone, BUS, &e), RON_ERANGE, "too long");

    e.data_len = 0;
    for (i = 0; i < 1024 + 10; i++) {
        (void) ron_zone_event_put(&zone, BUS, &e);
    }
    is_status(ron_zone_event_get(&zone, BUS, &cursor, &got, &lost), RON_OK,
              "a slow subscriber");
    is_u64(lost, 10, "is told that it lost 10");
    is_u64(got.index, 11, "and goes on with the oldest there is");
    for (i = 1;
         ron_zone_event_get(&zone, BUS, &cursor, &got, &lost) == RON_OK;
         i++)
    { /* void */ }
    is_u64(i, 1024, "1024 of them");
    cursor = 999999;
    is_status(ron_zone_event_get(&zone, BUS, &cursor, &got, &lost), RON_AGAIN,
              "a cursor of another life");
    is_u64(cursor, ron_zone_event_cursor(&zone, BUS), "begins at the end");
    test_unmap(&zone);

    test_zone(&zone);
    memset(r, 0, sizeof(r));
    atomic_init(&stop, false);
    for (i = 0; i < THREADS; i++) {
        r[i].zone = &zone;
        r[i].stop = &stop;
        RON_ASSERT(pthread_create(&tid[i], NULL, race_ring, &r[i]) == 0);
    }
    for (i = 0; i < 100000; i++) {
        e.seq = i * 3;
        e.data_len = i % RON_ZONE_EVENT_MAX;
        (void) ron_zone_event_put(&zone, BUS, &e);
    }
    atomic_store(&stop, true);
    race_end(tid, r, &all);
    is_u64(all.seen + all.lost, 100000 * THREADS,
           "every event was read or counted as lost");
    is_u64(all.wrong, 0, "in order and whole");
    test_unmap(&zone);
}


/* ---- metrics ------------------------------------------------------------ */

static const char *const  test_names[] = {
    "tasks_spawned_total", "tasks_aborted_total", "tasks_canceled_total",
    "io_timeouts_total", "backoff_retries_total", "busy_rejections_total",
    "http_requests_total", "request_latency_seconds", "inflight_requests",
    "rejected_total", "service_restarts_total", "queue_depth",
    "queue_capacity", "drops_total", "roots_published_total",
    "tasks_leaked_total", "prevalidator_duration_seconds",
    "sequencer_batch_size", "committer_batch_latency_seconds",
    "ledger_commits_total", "ledger_commit_latency_seconds",
    "ledger_roots_published_total", "ledger_seq_gap_detected_total",
    "seq_gap_detected_total", "ledger_safe_mode",
    "ledger_safe_mode_transitions_total", "lifecycle_transitions_total",
    "ledger_backlog",
    "auth_failures_total", "breaker_open_total", "breaker_open_seconds",
    "breaker_state", "wal_fsync_fail_total", "uds_denied_total",
    "disk_pressure", "queue_dropped_total",
    "worker_inflight", "bus_lagged_total", "wallet_requests_total",
    "wallet_rejects_total", "wallet_idem_replays_total", "wallet_inflight",
    "upstream_calls_total", "upstream_latency_seconds", "upstream_fail_total",
    "circuit_open_total", "wallet_conservation_checks_total",
    "wallet_nonce_conflicts_total", "wallet_successes_total",
    "wallet_idempotency_replays_total", "wallet_ops_total", "wallet_ready",
    "dropped_results_total", "readyz_degraded", "audit_drop_total",
    "brownout_active", "edge_rejects_total"
};


static bool
test_has(const ron_buf_t *text, const char *line)
{
    return memmem(text->data, text->len, line, strlen(line)) != NULL;
}


static void
test_metric_table(void)
{
    unsigned                  i, j, apart, other, missing;
    const ron_metric_info_t  *a, *b;

    apart = 0;
    other = 0;

    for (i = 0; i < RON_METRIC_N; i++) {
        a = ron_metric_info(i);

        for (j = i + 1; j < RON_METRIC_N; j++) {
            b = ron_metric_info(j);
            if (strcmp(a->name, b->name) != 0) {
                continue;
            }
            apart += strcmp(ron_metric_info(j - 1)->name, a->name) != 0;
            other += a->type != b->type || strcmp(a->help, b->help) != 0;
        }
    }

    is_u64(apart, 0, "families of one name stand together");
    is_u64(other, 0, "with one type and one help");

    missing = 0;
    for (i = 0; i < ron_array_n(test_names); i++) {
        for (j = 0; j < RON_METRIC_N; j++) {
            if (strcmp(ron_metric_info(j)->name, test_names[i]) == 0) {
                break;
            }
        }
        if (j == RON_METRIC_N) {
            diag("missing: %s", test_names[i]);
            missing++;
        }
    }
    is_u64(missing, 0, "every name that was promised is there");
}


/* Every line is a comment or a series with a service label and a number. */

static unsigned
test_text_wrong(const ron_buf_t *text)
{
    char       *line, *next, *space, *copy, *end;
    unsigned    wrong;

    copy = malloc(text->len + 1);
    RON_ASSERT(copy != NULL);
    memcpy(copy, text->data, text->len);
    copy[text->len] = '\0';
    wrong = text->len == 0 || text->data[text->len - 1] != '\n';

    for (line = copy; *line; line = next) {
        next = strchr(line, '\n');
        *next++ = '\0';

        if (strncmp(line, "# HELP ", 7) == 0
            || strncmp(line, "# TYPE ", 7) == 0)
        {
            continue;
        }

        space = strrchr(line, ' ');
        if (space == NULL || strstr(line, "{service=\"") == NULL
            || strstr(line, "service=\"\"") != NULL || space[-1] != '}')
        {
            diag("wrong: %s", line);
            wrong++;
            continue;
        }

        (void) strtod(space + 1, &end);
        wrong += *end != '\0' || end == space + 1;
    }

    free(copy);

    return wrong;
}


static void
test_metrics(void)
{
    uint32_t     a, b;
    ron_buf_t    text;
    ron_beat_t   beat;
    ron_zone_t   zone;
    const char  *age;

    static const char  age_of[] = "\nmetrics_sample_age_seconds{service="
                                  "\"ledger\"} ";

    test_metric_table();
    test_zone(&zone);
    ron_buf_init(&text, 0);
    RON_ASSERT(ron_zone_slot_claim(&zone, 1, &a) == RON_OK);
    RON_ASSERT(ron_zone_slot_claim(&zone, 2, &b) == RON_OK);

    ron_metric_add(&zone, a, RON_M_BUSY_L, 0, RON_D_Q_COMMIT, 0, 0, 2);
    ron_metric_add(&zone, b, RON_M_BUSY_L, 0, RON_D_Q_COMMIT, 0, 0, 3);
    ron_metric_add(&zone, RON_ZONE_SLOT_NONE, RON_M_BUSY_L, 0,
                   RON_D_Q_COMMIT, 0, 0, 100);
    ron_metric_set(&zone, b, RON_M_QUEUE_DEPTH_L, 0, RON_D_Q_PREVAL, 0, 0, 9);
    ron_metric_add(&zone, a, RON_M_HTTP_REQUESTS, 0,
                   RON_D_ROUTE_WALLET_TRANSFER, RON_D_METHOD_POST,
                   RON_D_STATUS_200, 11);
    ron_metric_add(&zone, a, RON_M_WORKER_INFLIGHT, 0, 0, 0, 0, 5);
    ron_metric_sub(&zone, a, RON_M_WORKER_INFLIGHT, 0, 0, 0, 0, 2);
    ron_metric_set(&zone, a, RON_M_COMMITTER_LAG, 0, 0, 0, 0, 1250000);
    ron_metric_observe(&zone, a, RON_M_COMMITTER_LATENCY, 0, 0, 0, 0, 5000);
    ron_metric_observe(&zone, b, RON_M_COMMITTER_LATENCY, 0, 0, 0, 0, 5001);
    ron_metric_observe(&zone, b, RON_M_COMMITTER_LATENCY, 0, 0, 0, 0,
                       9000000);
    ron_metric_observe(&zone, b, RON_M_SEQUENCER_BATCH, 0, 0, 0, 0, 100);

    is_u64(ron_metric_read(&zone, RON_M_BUSY_L, 0, RON_D_Q_COMMIT, 0, 0), 5,
           "the sum over processes");
    is_u64(ron_metric_read(&zone, RON_M_COMMITTER_LATENCY, 0, 0, 0, 0), 3,
           "observations");

    memset(&beat, 0, sizeof(beat));
    beat.generation = 1;
    beat.beat_us = ron_clock_mono_us();
    beat.sample_us = beat.beat_us - 7000000;
    ron_zone_beat_write(&zone, &beat);

    is_status(ron_metrics_render(&zone, &text), RON_OK, "rendered");
    age = memmem(text.data, text.len, age_of, sizeof(age_of) - 1);
    ok(age != NULL && strtod(age + sizeof(age_of) - 1, NULL) >= 7
       && strtod(age + sizeof(age_of) - 1, NULL) < 60,
       "how old the newest sample is");
    is_u64(test_text_wrong(&text), 0,
           "every series has a service and a number (%zu bytes)", text.len);
    ok(test_has(&text, "busy_rejections_total{service=\"ledger\",q=\"commit\"}"
                " 5\n"), "a counter");
    ok(test_has(&text, "# TYPE busy_rejections_total counter\n"), "its type");
    ok(test_has(&text, "queue_depth{service=\"ledger\",q=\"preval\"} 9\n"),
       "a gauge");
    ok(test_has(&text, "http_requests_total{service=\"wallet\",route="
                "\"/v1/transfer\",method=\"POST\",status=\"200\"} 11\n"),
       "a route knows its service");
    ok(!test_has(&text, "status=\"207\""), "a big family shows what is not 0");
    ok(test_has(&text, "worker_inflight{service=\"wallet\"} 3\n"),
       "up and down");
    ok(test_has(&text, "committer_lag_seconds{service=\"ledger\"} 1.25\n"),
       "seconds");
    ok(test_has(&text, "committer_batch_latency_seconds_bucket{service="
                "\"ledger\",le=\"0.005\"} 1\n"), "a bucket holds its bound");
    ok(test_has(&text, "committer_batch_latency_seconds_bucket{service="
                "\"ledger\",le=\"0.01\"} 2\n"), "buckets add up");
    ok(test_has(&text, "committer_batch_latency_seconds_bucket{service="
                "\"ledger\",le=\"0.6\"} 2\n"), "to the last");
    ok(test_has(&text, "committer_batch_latency_seconds_bucket{service="
                "\"ledger\",le=\"+Inf\"} 3\n"), "and beyond");
    ok(test_has(&text, "committer_batch_latency_seconds_sum{service="
                "\"ledger\"} 9.010001\n"), "the sum");
    ok(test_has(&text, "committer_batch_latency_seconds_count{service="
                "\"ledger\"} 3\n"), "the count");
    ok(test_has(&text, "sequencer_batch_size_bucket{service=\"ledger\","
                "le=\"64\"} 0\n")
       && test_has(&text, "sequencer_batch_size_bucket{service=\"ledger\","
                   "le=\"128\"} 1\n"), "units are not seconds");
    ron_buf_free(&text);
    test_unmap(&zone);
}


/* ---- registry ----------------------------------------------------------- */

static void
test_registry(void)
{
    unsigned                 i, j, same, falling;
    const ron_queue_info_t  *q, *p;

    is_u64(ron_queue_info(RON_QUEUE_INGRESS)->capacity, 2000, "ingress");
    is_u64(ron_queue_info(RON_QUEUE_PREVAL)->capacity, 2000, "preval");
    is_str(ron_queue_info(RON_QUEUE_PREVAL)->policy, "drop_oldest", "policy");
    is_u64(ron_queue_info(RON_QUEUE_COMMIT)->capacity, 1000, "commit");
    is_str(ron_queue_info(RON_QUEUE_COMMIT)->policy, "reject", "policy");
    is_u64(ron_queue_info(RON_QUEUE_WALLET_WORK)->capacity, 512, "work");
    is_u64(ron_queue_info(RON_QUEUE_ROOT_PUB)->capacity, RON_ZONE_EVENTS,
           "the ring");

    same = 0;
    for (i = 0; i < RON_QUEUE_N; i++) {
        for (j = i + 1; j < RON_QUEUE_N; j++) {
            q = ron_queue_info(i);
            p = ron_queue_info(j);
            same += strcmp(q->service, p->service) == 0
                    && strcmp(q->name, p->name) == 0;
        }
    }
    is_u64(same, 0, "a service has one queue of a name");

    falling = 0;
    for (i = 1; i < RON_LOCK_N; i++) {
        falling += ron_lock_info(i)->order <= ron_lock_info(i - 1)->order;
    }
    is_u64(falling, 0, "locks are in their order");
    is_u64(ron_timeout_info(RON_TIMEOUT_DRAIN)->ms, 3000, "drain");
    is_u64(ron_timeout_info(RON_TIMEOUT_REQUEST)->ms, 5000, "request");

    /* The service's words for its states are the metric's label values. */

    is_u64(ron_metric_info(RON_M_LIFECYCLE)->dim[1]->n, RON_STATE_N,
           "as many states");

    for (i = 0; i < RON_STATE_N; i++) {
        is_str(ron_metric_info(RON_M_LIFECYCLE)->dim[1]->values[i],
               ron_state_name((ron_life_t) i), "state %u", i);
    }

    /* The service's words for safe mode are the metric's label values. */

#define TEST_SAFE(id, name, ack)                                              \
    is_str(ron_metric_info(RON_M_SAFE_TRANSITIONS)->dim[2]->values            \
           [RON_D_SAFE_REASON_##id], name, "safe mode: " name);
    RON_SERVICE_SAFE(TEST_SAFE)
#undef TEST_SAFE
}


int
main(void)
{
    test_layout();
    test_beat();
    test_balances();
    test_balance_kill();
    test_admission();
    test_balance_race();
    test_bucket();
    test_slots();
    test_nonces();
    test_notes();
    test_notes_race();
    test_rates();
    test_breakers();
    test_ring();
    test_bus();
    test_metrics();
    test_registry();

    return done_testing();
}
