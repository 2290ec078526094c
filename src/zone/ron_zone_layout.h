
/*
 * Inside the zone: sizes of its parts, and sequence words.
 *
 * A sequenced record is
 *
 *     word 0    sequence: even and not 0, readable; odd, being written
 *     word 1    checksum over the sequence and the data
 *     word 2... data
 *
 * The writer stores an odd sequence, then the data, each with release order
 * (so nothing moves before the odd sequence), then the sum, then the even
 * sequence.  The reader loads them with acquire order and looks at the
 * sequence again.  A writer that was killed leaves an odd sequence; the next
 * one goes on from there.  If the first was only slow, both write, the sum
 * fits neither mixture, and readers find nothing: a miss, never a lie.
 */

#ifndef RON_ZONE_LAYOUT_H
#define RON_ZONE_LAYOUT_H


#include "ron_metrics.h"


#define RON_ZONE_LINE        8                      /* words */
#define RON_HEAD_SECRET      6                      /* of keys, two words */
#define RON_HEAD_EPOCH       56                     /* of what is wiped */
#define RON_EPOCH_BALANCES   0
#define RON_EPOCH_NOTES      1
#define RON_ZONE_BLOCK       ((RON_METRIC_CELLS + 7) / 8 * 8)
#define RON_ZONE_WAYS        8
#define RON_ZONE_REC_DATA    2

/* A balance: sequence, sum, last use, and then the sequenced data. */
#define RON_BALANCE_SEQ      0
#define RON_BALANCE_SUM      1
#define RON_BALANCE_USED     2
#define RON_BALANCE_DATA     3                      /* its key, two words */
#define RON_BALANCE_DATA_N   10
#define RON_BALANCE_WORDS    16

/* Bytes of a bucket: its places and its marks. */
#define RON_BALANCE_BUCKET   ((RON_BALANCE_WORDS * RON_ZONE_WAYS + 1) * 8)

#define RON_BEAT_WORDS       13
#define RON_BEAT_SYNC        16                     /* a word of its own */
#define RON_EVENT_DATA       (6 + RON_ZONE_EVENT_MAX / 8)
#define RON_EVENT_WORDS      ((RON_ZONE_REC_DATA + RON_EVENT_DATA + 7) / 8 * 8)
#define RON_RING_WORDS       (RON_ZONE_LINE + RON_ZONE_EVENTS * RON_EVENT_WORDS)
#define RON_PAIR_WORDS       (2 * RON_ZONE_WAYS)    /* nonces, rates */
#define RON_NOTE_WAYS        4
#define RON_NOTE_WORDS       (2 * RON_NOTE_WAYS)
#define RON_BREAKER_WORDS    32
#define RON_BREAKER_BUCKETS  10


_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics must be lock-free");
_Static_assert(sizeof(ron_word_t) == 8, "an atomic word is 8 bytes");


static inline uint64_t
ron_word_get(ron_word_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}


static inline void
ron_word_set(ron_word_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}


/*
 * One of n for a hash, by its upper bits: a product, where a remainder takes
 * some thirty times as long.
 */

static inline uint64_t
ron_zone_one_of(uint64_t hash, uint64_t n)
{
    return (uint64_t) ((ron_u128_t) hash * n >> 64);
}


static inline bool
ron_word_cas(ron_word_t *word, uint64_t *expected, uint64_t value)
{
    return atomic_compare_exchange_strong_explicit(word, expected, value,
                                                   memory_order_acq_rel,
                                                   memory_order_acquire);
}


/* Slots that ever had an owner are below this. */
uint32_t ron_zone_slots_used(const ron_zone_t *zone);

/*
 * Mixed into keys: raising it forgets everything at once.  What is left behind
 * is found by nobody and replaced in time.
 */
static inline uint64_t
ron_zone_epoch(const ron_zone_t *zone, uint32_t which)
{
    return ron_word_get(&ron_zone_words(zone, 0)[RON_HEAD_EPOCH + which])
           * UINT64_C(0x9e3779b97f4a7c15);
}


uint64_t ron_zone_sum(uint64_t seq, const uint64_t *data, size_t n);

/*
 * Makes a record odd and returns that sequence; end makes it even, unless
 * somebody else has begun meanwhile.
 */
uint64_t ron_zone_rec_begin(ron_word_t *seq);
void ron_zone_rec_end(ron_word_t *seq, ron_word_t *sum, ron_word_t *to,
    uint64_t odd, const uint64_t *data, size_t n);

/* RON_AGAIN: being written, or changed meanwhile, or its sum is wrong. */
ron_status_t ron_zone_rec_read(ron_word_t *seq, ron_word_t *sum,
    ron_word_t *from, uint64_t *data, size_t n);


#endif /* RON_ZONE_LAYOUT_H */
