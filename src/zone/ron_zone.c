
/*
 * The zone: layout, heartbeat, slots and admission.
 *
 *     0     magic | version | length | cells | layout sum | slots used
 *     48    secret of the keys
 *     64    admitted to ingress | padding to a cache line
 *     128   admitted to work | padding, and so on, a line each
 *     448   epochs of balances and of notes
 *     512   areas, each 64-byte aligned
 *
 * A process slot is one cache line: owner's pid, what it has admitted.
 *
 * Admission is exact: one shared counter decides.  A process writes its own
 * count first and the shared one second, and takes back in the other order,
 * so its own count is never too low, and whoever sweeps a dead process's slot
 * gives back everything.  A process that is killed between the two
 * instructions makes the shared counter one too low, which admits one request
 * more for as long as the queue is not empty; the sweep notices when it is.
 */

#include "ron_port.h"
#include "ron_zone_layout.h"


#define RON_ZONE_MAGIC    UINT64_C(0x524f4e5a4f4e4531)      /* RONZONE1 */
#define RON_ZONE_HEADER   512

#define RON_HEAD_MAGIC    0
#define RON_HEAD_VERSION  1
#define RON_HEAD_LEN      2
#define RON_HEAD_CELLS    3
#define RON_HEAD_LAYOUT   4
#define RON_HEAD_SLOTS    5
#define RON_HEAD_ADMIT    8                         /* one line a queue */

#define RON_SLOT_PID      0
#define RON_SLOT_ADMIT    1

_Static_assert(RON_HEAD_ADMIT + RON_ADMIT_N * RON_ZONE_LINE <= RON_HEAD_EPOCH,
               "what is admitted must not reach the epochs");
_Static_assert(RON_SLOT_ADMIT + RON_ADMIT_N <= RON_ZONE_LINE,
               "a slot is one line");

/* Shares of what is left behind the fixed areas, in 64ths. */
#define RON_SHARE_BALANCES  50
#define RON_SHARE_NOTES     4
#define RON_SHARE_NONCES    5
#define RON_SHARE_RATES     5

#define RON_BEAT_TRIES      64


static ron_status_t ron_zone_layout(void *region, size_t len,
    ron_zone_t *zone);
static uint64_t ron_zone_layout_sum(const ron_zone_t *zone);
static ron_word_t *ron_zone_slot_word(const ron_zone_t *zone, uint32_t slot,
    size_t word);
static ron_word_t *ron_zone_admit_word(const ron_zone_t *zone,
    ron_admit_t queue);
static void ron_zone_slot_give_back(const ron_zone_t *zone, uint32_t slot);
static void ron_zone_admit_heal(const ron_zone_t *zone, ron_admit_t queue);
static size_t ron_zone_take(size_t *at, size_t words);


static size_t
ron_zone_take(size_t *at, size_t words)
{
    size_t  begin;

    begin = *at;
    *at += (words * sizeof(ron_word_t) + 63) / 64 * 64;

    return begin;
}


/* Where everything is follows from the length alone. */

static ron_status_t
ron_zone_layout(void *region, size_t len, ron_zone_t *zone)
{
    size_t  at, rest;

    memset(zone, 0, sizeof(ron_zone_t));

    if (region == NULL || ((uintptr_t) region & 63) != 0) {
        return RON_EINVAL;
    }

    if (len < RON_ZONE_MIN) {
        return RON_EFULL;
    }

    at = RON_ZONE_HEADER;
    zone->base = region;
    zone->len = len;
    zone->beat = ron_zone_take(&at, 3 * RON_ZONE_LINE);
    zone->slots = ron_zone_take(&at, RON_ZONE_SLOTS * RON_ZONE_LINE);
    zone->breakers = ron_zone_take(&at, RON_ZONE_BREAKERS * RON_BREAKER_WORDS);
    zone->rings = ron_zone_take(&at, RON_RING_N * RON_RING_WORDS);
    zone->metrics = ron_zone_take(&at, (size_t) RON_ZONE_SLOTS
                                       * RON_ZONE_BLOCK);

    if (at + RON_ZONE_MIN / 8 > len) {
        memset(zone, 0, sizeof(ron_zone_t));
        return RON_EFULL;
    }

    rest = (len - at) / 64;

    /* less a line, for the marks of all may end within one */

    zone->balance_buckets = (rest * RON_SHARE_BALANCES - 64)
                            / RON_BALANCE_BUCKET;
    zone->note_buckets = rest * RON_SHARE_NOTES / (RON_NOTE_WORDS * 8);
    zone->nonce_buckets = rest * RON_SHARE_NONCES
                          / (RON_PAIR_WORDS * 8 * RON_ZONE_SHARDS);
    zone->rate_buckets = rest * RON_SHARE_RATES / (RON_PAIR_WORDS * 8);

    zone->balances = ron_zone_take(&at, zone->balance_buckets
                                        * RON_BALANCE_WORDS * RON_ZONE_WAYS);
    zone->balance_marks = ron_zone_take(&at, zone->balance_buckets);
    zone->notes = ron_zone_take(&at, zone->note_buckets * RON_NOTE_WORDS);
    zone->nonces = ron_zone_take(&at, zone->nonce_buckets * RON_PAIR_WORDS
                                      * RON_ZONE_SHARDS);
    zone->rates = ron_zone_take(&at, zone->rate_buckets * RON_PAIR_WORDS);

    RON_ASSERT(at <= len && zone->balance_buckets > 0
               && zone->note_buckets > 0 && zone->nonce_buckets > 0
               && zone->rate_buckets > 0);

    return RON_OK;
}


static uint64_t
ron_zone_layout_sum(const ron_zone_t *zone)
{
    const uint64_t  facts[] = {
        zone->len, zone->beat, zone->slots, zone->metrics, zone->breakers,
        zone->rings, zone->balances, zone->balance_marks, zone->notes,
        zone->nonces, zone->rates,
        zone->balance_buckets, zone->note_buckets, zone->nonce_buckets,
        zone->rate_buckets,
        RON_ZONE_SLOTS, RON_ZONE_BLOCK, RON_EVENT_WORDS,
        ron_metrics_signature()
    };

    return ron_zone_sum(RON_ZONE_VERSION, facts, ron_array_n(facts));
}


ron_status_t
ron_zone_clear(const ron_zone_t *zone)
{
    uint64_t       secret[2];
    ron_word_t    *head;
    ron_status_t   status;

    status = ron_random(secret, sizeof(secret));
    if (status != RON_OK) {
        return status;
    }

    memset(zone->base, 0, zone->len);

    head = ron_zone_words(zone, 0);
    ron_word_set(&head[RON_HEAD_SECRET], secret[0]);
    ron_word_set(&head[RON_HEAD_SECRET + 1], secret[1]);

    return RON_OK;
}


ron_status_t
ron_zone_init(void *region, size_t len, ron_zone_t *zone)
{
    ron_word_t    *head;
    ron_status_t   status;

    status = ron_zone_layout(region, len, zone);

    if (status == RON_OK) {
        status = ron_zone_clear(zone);
    }

    if (status != RON_OK) {
        memset(zone, 0, sizeof(ron_zone_t));
        return status;
    }

    head = ron_zone_words(zone, 0);
    ron_word_set(&head[RON_HEAD_VERSION], RON_ZONE_VERSION);
    ron_word_set(&head[RON_HEAD_LEN], len);
    ron_word_set(&head[RON_HEAD_CELLS], RON_METRIC_CELLS);
    ron_word_set(&head[RON_HEAD_LAYOUT], ron_zone_layout_sum(zone));
    ron_word_set(&head[RON_HEAD_MAGIC], RON_ZONE_MAGIC);

    return RON_OK;
}


ron_status_t
ron_zone_adopt(void *region, size_t len, ron_zone_t *zone)
{
    ron_word_t    *head;
    ron_status_t   status;

    status = ron_zone_layout(region, len, zone);
    if (status != RON_OK) {
        return status;
    }

    head = ron_zone_words(zone, 0);

    if (ron_word_get(&head[RON_HEAD_MAGIC]) != RON_ZONE_MAGIC
        || ron_word_get(&head[RON_HEAD_LEN]) != len)
    {
        status = RON_EINVAL;

    } else if (ron_word_get(&head[RON_HEAD_VERSION]) != RON_ZONE_VERSION
               || ron_word_get(&head[RON_HEAD_CELLS]) != RON_METRIC_CELLS
               || ron_word_get(&head[RON_HEAD_LAYOUT])
                  != ron_zone_layout_sum(zone))
    {
        status = RON_EVERSION;
    }

    if (status != RON_OK) {
        memset(zone, 0, sizeof(ron_zone_t));
    }

    return status;
}


/* ---- sequenced records -------------------------------------------------- */

static inline uint64_t
ron_zone_mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);

    return h ^ h >> 32;
}


uint64_t
ron_zone_sum(uint64_t seq, const uint64_t *data, size_t n)
{
    size_t    i;
    uint64_t  h;

    h = seq ^ UINT64_C(0x9e3779b97f4a7c15);

    for (i = 0; i < n; i++) {
        h = ron_zone_mix(h, data[i]);
    }

    return h;
}


uint64_t
ron_zone_rec_begin(ron_word_t *seq)
{
    uint64_t  old, odd;

    old = ron_word_get(seq);

    do {
        odd = old % 2 ? old + 2 : old + 1;
    } while (!ron_word_cas(seq, &old, odd));

    return odd;
}


void
ron_zone_rec_end(ron_word_t *seq, ron_word_t *sum, ron_word_t *to,
    uint64_t odd, const uint64_t *data, size_t n)
{
    size_t    i;
    uint64_t  expected;

    for (i = 0; i < n; i++) {
        ron_word_set(&to[i], data[i]);
    }

    ron_word_set(sum, ron_zone_sum(odd + 1, data, n));

    expected = odd;
    (void) ron_word_cas(seq, &expected, odd + 1);
}


ron_status_t
ron_zone_rec_read(ron_word_t *seq, ron_word_t *sum, ron_word_t *from,
    uint64_t *data, size_t n)
{
    size_t    i;
    uint64_t  before, check, h;

    before = ron_word_get(seq);

    if (before == 0 || before % 2) {
        return RON_AGAIN;
    }

    h = ron_zone_sum(before, NULL, 0);

    for (i = 0; i < n; i++) {
        data[i] = ron_word_get(&from[i]);
        h = ron_zone_mix(h, data[i]);
    }

    check = ron_word_get(sum);

    if (ron_word_get(seq) != before || check != h) {
        return RON_AGAIN;
    }

    return RON_OK;
}


/* ---- heartbeat ---------------------------------------------------------- */

void
ron_zone_beat_write(const ron_zone_t *zone, const ron_beat_t *beat)
{
    uint64_t     data[RON_BEAT_WORDS];
    ron_word_t  *w;

    data[0] = beat->state;
    data[1] = beat->generation;
    data[2] = beat->pid;
    data[3] = beat->beat_us;
    data[4] = beat->seq;
    data[5] = beat->time_ms;
    data[6] = beat->committed_ms;
    data[7] = beat->sample_us;
    data[8] = beat->commit_depth;
    memcpy(&data[9], beat->root.b, RON_HASH_LEN);

    w = ron_zone_words(zone, zone->beat);
    ron_zone_rec_end(&w[0], &w[1], &w[RON_ZONE_REC_DATA],
                     ron_zone_rec_begin(&w[0]), data, RON_BEAT_WORDS);
    ron_word_set(&w[RON_BEAT_SYNC], beat->sync_since_us);
}


ron_status_t
ron_zone_beat_read(const ron_zone_t *zone, ron_beat_t *beat)
{
    unsigned      tries;
    uint64_t      data[RON_BEAT_WORDS];
    ron_word_t   *w;
    ron_status_t  status;

    memset(beat, 0, sizeof(ron_beat_t));
    w = ron_zone_words(zone, zone->beat);

    if (ron_word_get(&w[0]) == 0) {
        return RON_OK;
    }

    status = RON_AGAIN;

    for (tries = 0; tries < RON_BEAT_TRIES && status != RON_OK; tries++) {

        /* before: one that is written meanwhile makes it another */

        beat->mark = ron_word_get(&w[0]);
        status = ron_zone_rec_read(&w[0], &w[1], &w[RON_ZONE_REC_DATA], data,
                                   RON_BEAT_WORDS);
    }

    if (status != RON_OK || data[0] >= RON_STATE_N) {
        beat->mark = 0;
        return RON_AGAIN;
    }

    beat->state = (ron_life_t) data[0];
    beat->generation = data[1];
    beat->pid = data[2];
    beat->beat_us = data[3];
    beat->seq = data[4];
    beat->time_ms = data[5];
    beat->committed_ms = data[6];
    beat->sample_us = data[7];
    beat->commit_depth = data[8];
    memcpy(beat->root.b, &data[9], RON_HASH_LEN);
    beat->sync_since_us = ron_word_get(&w[RON_BEAT_SYNC]);

    return RON_OK;
}


bool
ron_zone_beat_same(const ron_zone_t *zone, const ron_beat_t *beat)
{
    return beat->mark != 0
           && ron_word_get(&ron_zone_words(zone, zone->beat)[0])
              == beat->mark;
}


/* ---- slots -------------------------------------------------------------- */

static ron_word_t *
ron_zone_slot_word(const ron_zone_t *zone, uint32_t slot, size_t word)
{
    RON_ASSERT(slot < RON_ZONE_SLOTS);

    return ron_zone_words(zone, zone->slots) + slot * RON_ZONE_LINE + word;
}


uint32_t
ron_zone_slots_used(const ron_zone_t *zone)
{
    uint64_t  used;

    used = ron_word_get(&ron_zone_words(zone, 0)[RON_HEAD_SLOTS]);

    return (uint32_t) ron_min(used, (uint64_t) RON_ZONE_SLOTS);
}


ron_status_t
ron_zone_slot_claim(const ron_zone_t *zone, uint32_t pid, uint32_t *slot)
{
    uint32_t     i;
    uint64_t     free_pid, used;
    ron_word_t  *head;

    *slot = RON_ZONE_SLOT_NONE;

    if (pid == 0) {
        return RON_EINVAL;
    }

    head = ron_zone_words(zone, 0);

    for (i = 0; i < RON_ZONE_SLOTS; i++) {
        free_pid = 0;

        if (!ron_word_cas(ron_zone_slot_word(zone, i, RON_SLOT_PID),
                          &free_pid, pid))
        {
            continue;
        }

        used = ron_word_get(&head[RON_HEAD_SLOTS]);

        while (used < i + 1
               && !ron_word_cas(&head[RON_HEAD_SLOTS], &used, i + 1))
        {
            /* void */
        }

        *slot = i;
        return RON_OK;
    }

    return RON_EFULL;
}


/*
 * The pid goes last: until then the slot has an owner, so that nobody can
 * claim it while its counts are being given back.
 */

static void
ron_zone_slot_give_back(const ron_zone_t *zone, uint32_t slot)
{
    uint32_t     q;
    uint64_t     n;
    ron_word_t  *mine;

    ron_metrics_retire(zone, slot);

    for (q = 0; q < RON_ADMIT_N; q++) {
        mine = ron_zone_slot_word(zone, slot, RON_SLOT_ADMIT + q);
        n = atomic_exchange(mine, 0);
        atomic_fetch_sub(ron_zone_admit_word(zone, (ron_admit_t) q), n);
    }
}


void
ron_zone_slot_leave(const ron_zone_t *zone, uint32_t slot)
{
    if (slot == RON_ZONE_SLOT_NONE) {
        return;
    }

    ron_zone_slot_give_back(zone, slot);
    ron_word_set(ron_zone_slot_word(zone, slot, RON_SLOT_PID), 0);
}


uint32_t
ron_zone_slot_pid(const ron_zone_t *zone, uint32_t slot)
{
    return (uint32_t) ron_word_get(ron_zone_slot_word(zone, slot,
                                                      RON_SLOT_PID));
}


/*
 * A sweeper takes the dead owner's place first (the pid's upper half says so),
 * so that of two sweepers only one gives back.
 */

uint32_t
ron_zone_slots_sweep(const ron_zone_t *zone,
    bool (*alive)(void *ctx, uint32_t pid), void *ctx)
{
    uint32_t     slot, slots, swept;
    uint64_t     pid;
    ron_word_t  *word;

    swept = 0;
    slots = ron_zone_slots_used(zone);

    for (slot = 0; slot < slots; slot++) {
        word = ron_zone_slot_word(zone, slot, RON_SLOT_PID);
        pid = ron_word_get(word);

        if (pid == 0 || alive(ctx, (uint32_t) pid)) {
            continue;
        }

        /*
         * An upper half that counts up: a sweeper that was killed here leaves
         * a number behind that the next one replaces.
         */
        if (!ron_word_cas(word, &pid, pid + (UINT64_C(1) << 32))) {
            continue;
        }

        ron_zone_slot_leave(zone, slot);
        swept++;
    }

    for (slot = 0; slot < RON_ADMIT_N; slot++) {
        ron_zone_admit_heal(zone, (ron_admit_t) slot);
    }

    return swept;
}


uint32_t
ron_zone_slots_alive(const ron_zone_t *zone,
    bool (*alive)(void *ctx, uint32_t pid), void *ctx)
{
    uint32_t  slot, pid, n;

    n = 0;

    for (slot = 0; slot < ron_zone_slots_used(zone); slot++) {
        pid = ron_zone_slot_pid(zone, slot);
        n += pid != 0 && alive(ctx, pid);
    }

    return n;
}


/* ---- admission ---------------------------------------------------------- */

static ron_word_t *
ron_zone_admit_word(const ron_zone_t *zone, ron_admit_t queue)
{
    RON_ASSERT((unsigned) queue < RON_ADMIT_N);

    return ron_zone_words(zone, 0) + RON_HEAD_ADMIT
           + (size_t) queue * RON_ZONE_LINE;
}


ron_status_t
ron_zone_admit(const ron_zone_t *zone, uint32_t slot, ron_admit_t queue,
    uint64_t capacity)
{
    uint64_t     n;
    ron_word_t  *all, *mine;

    all = ron_zone_admit_word(zone, queue);
    mine = ron_zone_slot_word(zone, slot, RON_SLOT_ADMIT + queue);
    n = ron_word_get(all);

    /* Below zero is zero: see the head of this file. */

    if ((int64_t) n >= (int64_t) capacity) {
        return RON_EFULL;
    }

    atomic_fetch_add(mine, 1);

    do {
        if ((int64_t) n >= (int64_t) capacity) {
            atomic_fetch_sub(mine, 1);
            return RON_EFULL;
        }

    } while (!ron_word_cas(all, &n, n + 1));

    return RON_OK;
}


void
ron_zone_admit_done(const ron_zone_t *zone, uint32_t slot, ron_admit_t queue)
{
    uint64_t     before;
    ron_word_t  *mine;

    atomic_fetch_sub(ron_zone_admit_word(zone, queue), 1);

    mine = ron_zone_slot_word(zone, slot, RON_SLOT_ADMIT + queue);
    before = atomic_fetch_sub(mine, 1);
    RON_ASSERT(before > 0);
}


uint64_t
ron_zone_admitted(const ron_zone_t *zone, ron_admit_t queue)
{
    int64_t  n;

    n = (int64_t) ron_word_get(ron_zone_admit_word(zone, queue));

    return n > 0 ? (uint64_t) n : 0;
}


/* Nobody has admitted anything, so the shared count must be 0. */

static void
ron_zone_admit_heal(const ron_zone_t *zone, ron_admit_t queue)
{
    uint32_t     slot;
    uint64_t     all;
    ron_word_t  *word;

    word = ron_zone_admit_word(zone, queue);
    all = ron_word_get(word);

    if (all == 0) {
        return;
    }

    for (slot = 0; slot < ron_zone_slots_used(zone); slot++) {
        if (ron_word_get(ron_zone_slot_word(zone, slot,
                                            RON_SLOT_ADMIT + queue)) != 0)
        {
            return;
        }
    }

    (void) ron_word_cas(word, &all, 0);
}
