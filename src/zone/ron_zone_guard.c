
/*
 * Guards: nonce hints, rate limits, breakers.  None of them decides about
 * money; each is a few atomic words, and a race makes it a little too
 * generous or a little too strict, once.
 *
 *     nonces, rates   buckets of eight pairs (tag, value)
 *     notes           buckets of four pairs (tag xor value, value)
 *     breaker         0      64-bit hash of its name, 0: free
 *                     1      state word
 *                     4-7    its name, for people
 *                     8-17   errors by tenth of the window
 *
 * A breaker's state word: 2 bits state, 6 bits probes left, 6 bits successes
 * of probes, 50 bits time of the last change.
 */

#include "ron_zone_layout.h"

#include "ron_digest.h"


#define RON_BREAKER_NAME    0
#define RON_BREAKER_WORD    1
#define RON_BREAKER_TEXT    4
#define RON_BREAKER_ERRORS  8

#define RON_BREAKER_MS_MASK ((UINT64_C(1) << 50) - 1)

/* An error bucket: which tenth of a window (44 bits), how many (20 bits). */
#define RON_BREAKER_N_BITS  20
#define RON_BREAKER_N_MASK  ((UINT64_C(1) << RON_BREAKER_N_BITS) - 1)


typedef struct {
    ron_breaker_state_t  state;
    uint32_t             probes;
    uint32_t             successes;
    uint64_t             ms;
} ron_breaker_word_t;


static uint64_t ron_zone_mix(uint64_t x);
static ron_word_t *ron_zone_nonce_pair(const ron_zone_t *zone,
    const ron_zone_nonce_t *n);
static ron_word_t *ron_zone_note(const ron_zone_t *zone,
    const ron_zone_nonce_t *n, uint64_t nonce, uint64_t *tag);
static ron_word_t *ron_zone_note_find(ron_word_t *bucket, uint64_t tag,
    uint64_t *word);
static uint64_t ron_zone_note_word(ron_str_t key);
static ron_word_t *ron_zone_pair(ron_word_t *bucket, uint64_t tag);
static ron_word_t *ron_zone_breaker_words(const ron_zone_t *zone,
    uint32_t breaker);
static void ron_breaker_unpack(uint64_t word, ron_breaker_word_t *b);
static uint64_t ron_breaker_pack(const ron_breaker_word_t *b);
static uint32_t ron_breaker_error(ron_word_t *w,
    const ron_breaker_conf_t *conf, uint64_t now_ms);
static void ron_breaker_forget(ron_word_t *w);


/*
 * The tag's pair, or a new one with value 0.  When the bucket is full the
 * pair with the lowest value goes: of rates the one that is idle for longest.
 */

static ron_word_t *
ron_zone_pair(ron_word_t *bucket, uint64_t tag)
{
    uint32_t     way;
    uint64_t     found, low, value;
    ron_word_t  *pair, *lowest;

    for ( ;; ) {
        low = UINT64_MAX;
        lowest = bucket;

        for (way = 0; way < RON_ZONE_WAYS; way++) {
            pair = bucket + 2 * way;
            found = ron_word_get(&pair[0]);

            if (found == tag) {
                return pair;
            }

            value = found ? ron_word_get(&pair[1]) : 0;

            if (found == 0 || value < low) {
                low = value;
                lowest = pair;

                if (found == 0) {
                    break;
                }
            }
        }

        found = ron_word_get(&lowest[0]);

        if (found == tag) {
            return lowest;
        }

        if (ron_word_cas(&lowest[0], &found, tag)) {
            ron_word_set(&lowest[1], 0);
            return lowest;
        }
    }
}


/* ---- nonces ------------------------------------------------------------- */

/* A word of which every bit depends on every bit of another. */

static uint64_t
ron_zone_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);

    return x ^ x >> 31;
}


void
ron_zone_nonce_init(const ron_zone_t *zone, ron_str_t account,
    ron_zone_nonce_t *n)
{
    size_t  i;

    ron_zone_key(zone, account, ron_null_str, &n->key);
    n->prefix = 0;

    for (i = 0; i < account.len && i < 8; i++) {
        n->prefix = n->prefix << 8 | account.data[i];
    }

    n->prefix = ron_zone_mix(n->prefix);
}


static ron_word_t *
ron_zone_nonce_pair(const ron_zone_t *zone, const ron_zone_nonce_t *n)
{
    uint64_t  bucket, shards, buckets;

    buckets = RON_ZONE_SHARDS * zone->nonce_buckets;
    shards = zone->shards ? ron_min(zone->shards, buckets) : RON_ZONE_SHARDS;
    buckets /= shards;

    bucket = ron_zone_one_of(n->prefix, shards) * buckets
             + ron_zone_one_of(n->key.w[0], buckets);

    return ron_zone_pair(ron_zone_words(zone, zone->nonces)
                         + bucket * RON_PAIR_WORDS, n->key.w[1] | 1);
}


ron_status_t
ron_zone_nonce_reserve(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce, uint64_t *last)
{
    ron_word_t  *value;

    value = &ron_zone_nonce_pair(zone, n)[1];
    *last = ron_word_get(value);

    do {
        if (*last >= nonce) {
            return RON_EEXIST;
        }

    } while (!ron_word_cas(value, last, nonce));

    return RON_OK;
}


void
ron_zone_nonce_release(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce, uint64_t last)
{
    uint64_t  expected;

    expected = nonce;
    (void) ron_word_cas(&ron_zone_nonce_pair(zone, n)[1], &expected, last);
}


void
ron_zone_nonce_commit(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce)
{
    uint64_t  last;

    (void) ron_zone_nonce_reserve(zone, n, nonce, &last);
}


/* A line of four pairs, one for the note of this nonce, and its tag, not 0. */

static ron_word_t *
ron_zone_note(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce, uint64_t *tag)
{
    uint64_t  place;

    place = n->key.w[0] ^ ron_zone_mix(nonce);
    *tag = (n->key.w[1] ^ ron_zone_mix(~nonce)
            ^ ron_zone_epoch(zone, RON_EPOCH_NOTES)) | 1;

    return ron_zone_words(zone, zone->notes)
           + ron_zone_one_of(place, zone->note_buckets) * RON_NOTE_WORDS;
}


/* The pair of a tag and its word; an empty pair has the tag 0. */

static ron_word_t *
ron_zone_note_find(ron_word_t *bucket, uint64_t tag, uint64_t *word)
{
    uint32_t     way;
    uint64_t     mixed;
    ron_word_t  *pair;

    for (way = 0; way < RON_NOTE_WAYS; way++) {
        pair = bucket + 2 * way;
        mixed = ron_word_get(&pair[0]);
        *word = ron_word_get(&pair[1]);

        if ((mixed ^ *word) == tag) {
            return pair;
        }
    }

    return NULL;
}


/* Two keys of one word are taken for one: then nothing is certain. */

static uint64_t
ron_zone_note_word(ron_str_t key)
{
    size_t    i;
    uint64_t  word, part;

    word = key.len;

    for (i = 0; i < key.len; i += sizeof(part)) {
        part = 0;
        memcpy(&part, key.data + i, ron_min(key.len - i, sizeof(part)));
        word = ron_zone_mix(word ^ part);
    }

    return word;
}


void
ron_zone_nonce_near(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce)
{
    uint64_t  tag;

    __builtin_prefetch(ron_zone_note(zone, n, nonce, &tag), 1);
}


/*
 * The place of the same tag, else an empty one, else any.  The tag is written
 * with the word mixed in, so that of two writers' words there is no pair that
 * anybody finds.
 */

void
ron_zone_nonce_note(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce, ron_str_t key)
{
    uint64_t     tag, word, was;
    ron_word_t  *bucket, *pair;

    bucket = ron_zone_note(zone, n, nonce, &tag);
    word = ron_zone_note_word(key);
    pair = ron_zone_note_find(bucket, tag, &was);

    if (pair == NULL) {
        pair = ron_zone_note_find(bucket, 0, &was);
    }

    if (pair == NULL) {
        pair = bucket + 2 * ((tag >> 1) % RON_NOTE_WAYS);
    }

    ron_word_set(&pair[0], tag ^ word);
    ron_word_set(&pair[1], word);
}


bool
ron_zone_nonce_taken(const ron_zone_t *zone, const ron_zone_nonce_t *n,
    uint64_t nonce, ron_str_t key)
{
    uint64_t     tag, word;
    ron_word_t  *bucket;

    bucket = ron_zone_note(zone, n, nonce, &tag);

    return ron_zone_note_find(bucket, tag, &word) != NULL
           && word != ron_zone_note_word(key);
}


void
ron_zone_notes_wipe(const ron_zone_t *zone)
{
    atomic_fetch_add(&ron_zone_words(zone, 0)[RON_HEAD_EPOCH
                                              + RON_EPOCH_NOTES], 1);
}


/* ---- rate limits -------------------------------------------------------- */

ron_status_t
ron_zone_rate_take(const ron_zone_t *zone, const ron_zone_key_t *key,
    uint64_t rate, uint64_t burst, uint64_t now_us, ron_zone_rate_t *is)
{
    uint64_t     full, step, next, depth;
    ron_word_t  *pair;

    memset(is, 0, sizeof(ron_zone_rate_t));

    if (rate == 0) {
        return RON_OK;
    }

    step = ron_max(UINT64_C(1000000) / rate, UINT64_C(1));
    depth = step * ron_max(burst, UINT64_C(1));

    pair = ron_zone_pair(ron_zone_words(zone, zone->rates)
                         + ron_zone_one_of(key->w[0], zone->rate_buckets)
                           * RON_PAIR_WORDS,
                         key->w[1] | 1);

    full = ron_word_get(&pair[1]);

    do {
        next = ron_max(full, now_us) + step;

        if (next - now_us > depth) {
            is->retry_us = next - now_us - depth;
            is->full_us = next - step - now_us;
            return RON_EFULL;
        }

    } while (!ron_word_cas(&pair[1], &full, next));

    is->full_us = next - now_us;
    is->left = (depth - is->full_us) / step;

    return RON_OK;
}


/* ---- breakers ----------------------------------------------------------- */

void
ron_breaker_conf_init(ron_breaker_conf_t *conf)
{
    conf->errors = 20;
    conf->window_ms = ron_timeout_info(RON_TIMEOUT_BREAKER_WINDOW)->ms;
    conf->open_ms = ron_timeout_info(RON_TIMEOUT_BREAKER_OPEN)->ms;
    conf->probes = 10;
}


static ron_word_t *
ron_zone_breaker_words(const ron_zone_t *zone, uint32_t breaker)
{
    RON_ASSERT(breaker < RON_ZONE_BREAKERS);

    return ron_zone_words(zone, zone->breakers)
           + (size_t) breaker * RON_BREAKER_WORDS;
}


ron_status_t
ron_zone_breaker(const ron_zone_t *zone, ron_str_t name, uint32_t *breaker)
{
    uint32_t        i, j;
    uint64_t        found, text[RON_ZONE_NAME_MAX / 8];
    ron_word_t     *w;
    ron_zone_key_t  key;

    *breaker = 0;

    if (name.len == 0 || name.len > RON_ZONE_NAME_MAX) {
        return RON_EINVAL;
    }

    memset(text, 0, sizeof(text));
    memcpy(text, name.data, name.len);
    ron_zone_key(zone, name, ron_null_str, &key);

    for (i = 0; i < RON_ZONE_BREAKERS; i++) {
        w = ron_zone_breaker_words(zone, i);
        found = 0;

        if (ron_word_cas(&w[RON_BREAKER_NAME], &found, key.w[0] | 1)) {
            for (j = 0; j < ron_array_n(text); j++) {
                ron_word_set(&w[RON_BREAKER_TEXT + j], text[j]);
            }

            found = key.w[0] | 1;
        }

        if (found == (key.w[0] | 1)) {
            *breaker = i;
            return RON_OK;
        }
    }

    return RON_EFULL;
}


static void
ron_breaker_unpack(uint64_t word, ron_breaker_word_t *b)
{
    b->state = (ron_breaker_state_t) (word >> 62);
    b->probes = (uint32_t) (word >> 56) & 0x3f;
    b->successes = (uint32_t) (word >> 50) & 0x3f;
    b->ms = word & RON_BREAKER_MS_MASK;
}


static uint64_t
ron_breaker_pack(const ron_breaker_word_t *b)
{
    return (uint64_t) b->state << 62 | (uint64_t) (b->probes & 0x3f) << 56
           | (uint64_t) (b->successes & 0x3f) << 50
           | (b->ms & RON_BREAKER_MS_MASK);
}


/*
 * Half open lasts open_ms too: then the probes that told nothing (their
 * callers died) are given out again.
 */

ron_status_t
ron_zone_breaker_ask(const ron_zone_t *zone, uint32_t breaker,
    const ron_breaker_conf_t *conf, uint64_t now_ms, bool *probe,
    uint64_t *retry_ms)
{
    bool                 over;
    uint64_t             word;
    ron_word_t          *w;
    ron_breaker_word_t   b;

    *probe = false;
    *retry_ms = 0;

    w = ron_zone_breaker_words(zone, breaker);
    word = ron_word_get(&w[RON_BREAKER_WORD]);

    do {
        ron_breaker_unpack(word, &b);

        if (b.state == RON_BREAKER_CLOSED) {
            *probe = false;
            return RON_OK;
        }

        over = now_ms >= b.ms + conf->open_ms;

        if (!over && (b.state == RON_BREAKER_OPEN || b.probes == 0)) {
            *probe = false;
            *retry_ms = b.ms + conf->open_ms - now_ms;
            return RON_ECANCELED;
        }

        if (b.state == RON_BREAKER_OPEN || (over && b.probes == 0)) {
            b.state = RON_BREAKER_HALF_OPEN;
            b.probes = ron_max(ron_min(conf->probes, 63U), 1U);
            b.successes = 0;
            b.ms = now_ms;
        }

        b.probes--;
        *probe = true;

    } while (!ron_word_cas(&w[RON_BREAKER_WORD], &word,
                           ron_breaker_pack(&b)));

    return RON_OK;
}


/* Counts one error; how many the window holds now. */

static uint32_t
ron_breaker_error(ron_word_t *w, const ron_breaker_conf_t *conf,
    uint64_t now_ms)
{
    uint32_t     i, n;
    uint64_t     tenth, word, next;
    ron_word_t  *bucket;

    tenth = now_ms / ron_max(conf->window_ms / RON_BREAKER_BUCKETS, 1U);
    bucket = &w[RON_BREAKER_ERRORS + tenth % RON_BREAKER_BUCKETS];
    word = ron_word_get(bucket);

    do {
        next = word >> RON_BREAKER_N_BITS == tenth
               ? word + ((word & RON_BREAKER_N_MASK) < RON_BREAKER_N_MASK)
               : tenth << RON_BREAKER_N_BITS | 1;

    } while (!ron_word_cas(bucket, &word, next));

    n = 0;

    for (i = 0; i < RON_BREAKER_BUCKETS; i++) {
        word = ron_word_get(&w[RON_BREAKER_ERRORS + i]);

        if ((word >> RON_BREAKER_N_BITS) + RON_BREAKER_BUCKETS > tenth) {
            n += (uint32_t) (word & RON_BREAKER_N_MASK);
        }
    }

    return n;
}


static void
ron_breaker_forget(ron_word_t *w)
{
    uint32_t  i;

    for (i = 0; i < RON_BREAKER_BUCKETS; i++) {
        ron_word_set(&w[RON_BREAKER_ERRORS + i], 0);
    }
}


bool
ron_zone_breaker_tell(const ron_zone_t *zone, uint32_t breaker,
    const ron_breaker_conf_t *conf, uint64_t now_ms, bool success)
{
    bool                 opens;
    uint32_t             errors, probes;
    uint64_t             word;
    ron_word_t          *w;
    ron_breaker_word_t   b;

    w = ron_zone_breaker_words(zone, breaker);
    word = ron_word_get(&w[RON_BREAKER_WORD]);
    ron_breaker_unpack(word, &b);

    errors = 0;
    probes = ron_max(ron_min(conf->probes, 63U), 1U);

    if (b.state == RON_BREAKER_CLOSED) {
        if (success) {
            return false;
        }

        errors = ron_breaker_error(w, conf, now_ms);
    }

    do {
        ron_breaker_unpack(word, &b);

        if (b.state == RON_BREAKER_OPEN) {
            /* An answer to a call from before; its kind has been counted. */
            return false;
        }

        if (b.state == RON_BREAKER_CLOSED) {
            if (success || errors < conf->errors) {
                return false;
            }

            opens = true;

        } else {
            b.successes += success;
            opens = !success;
        }

        if (opens) {
            b.state = RON_BREAKER_OPEN;
            b.probes = 0;
            b.successes = 0;
            b.ms = now_ms;

        } else if (b.successes >= probes) {
            b.state = RON_BREAKER_CLOSED;
            b.probes = 0;
            b.successes = 0;
            b.ms = now_ms;
        }

    } while (!ron_word_cas(&w[RON_BREAKER_WORD], &word,
                           ron_breaker_pack(&b)));

    if (b.state == RON_BREAKER_CLOSED) {
        ron_breaker_forget(w);
    }

    return opens;
}


void
ron_zone_breaker_return(const ron_zone_t *zone, uint32_t breaker,
    const ron_breaker_conf_t *conf)
{
    uint32_t             probes;
    uint64_t             word;
    ron_word_t          *w;
    ron_breaker_word_t   b;

    w = ron_zone_breaker_words(zone, breaker);
    word = ron_word_get(&w[RON_BREAKER_WORD]);
    probes = ron_max(ron_min(conf->probes, 63U), 1U);

    do {
        ron_breaker_unpack(word, &b);

        if (b.state != RON_BREAKER_HALF_OPEN
            || b.probes + b.successes >= probes)
        {
            return;
        }

        b.probes++;

    } while (!ron_word_cas(&w[RON_BREAKER_WORD], &word,
                           ron_breaker_pack(&b)));
}


void
ron_zone_breaker_close(const ron_zone_t *zone, uint32_t breaker)
{
    ron_word_t  *w;

    w = ron_zone_breaker_words(zone, breaker);
    ron_breaker_forget(w);
    ron_word_set(&w[RON_BREAKER_WORD], 0);
}


ron_breaker_state_t
ron_zone_breaker_state(const ron_zone_t *zone, uint32_t breaker)
{
    uint64_t  since_ms;

    return ron_zone_breaker_look(zone, breaker, &since_ms);
}


ron_breaker_state_t
ron_zone_breaker_look(const ron_zone_t *zone, uint32_t breaker,
    uint64_t *since_ms)
{
    ron_breaker_word_t  b;

    ron_breaker_unpack(ron_word_get(&ron_zone_breaker_words(zone, breaker)
                                    [RON_BREAKER_WORD]), &b);
    *since_ms = b.ms;

    return b.state;
}
