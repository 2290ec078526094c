
/*
 * The RAM half of a tag store: one table, and the log of what may still be
 * taken back.  Internal to src/tags; see ron_tags.h for the whole.
 */

#ifndef RON_TAG_TABLE_H
#define RON_TAG_TABLE_H


#include "ron_tags.h"


/* A tag as two numbers whose order is the order of its bytes. */
typedef struct {
    uint64_t  hi;
    uint64_t  lo;
} ron_tag_key_t;


/* seq is never 0, so a slot of zeroes is an empty one. */
typedef struct {
    uint64_t  hi;
    uint64_t  lo;
    uint64_t  seq;
} ron_tag_slot_t;


typedef struct {
    ron_tag_slot_t  *slot;
    size_t           home_n;        /* slots that a tag can hash to */
    size_t           slot_n;        /* all of them; the last is never used */
    size_t           used;
    size_t           limit;         /* 80 % of the homes */
} ron_tag_table_t;


/* What a put did: `old` is what the table said before, 0: nothing. */
typedef struct {
    uint64_t  hi;
    uint64_t  lo;
    uint64_t  seq;
    uint64_t  old;
} ron_tag_put_t;


/* Put order, a ring. */
typedef struct {
    ron_tag_put_t   *e;
    size_t           cap;           /* a power of two, or 0 */
    size_t           head;
    size_t           n;
} ron_tag_log_t;


static inline uint64_t
ron_tag_rd64(const uint8_t *p)
{
    uint64_t  v;

    memcpy(&v, p, sizeof(v));

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif

    return v;
}


static inline void
ron_tag_wr64(uint8_t *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif

    memcpy(p, &v, sizeof(v));
}


static inline ron_tag_key_t
ron_tag_key(const ron_tag_t *tag)
{
    return (ron_tag_key_t) { ron_tag_rd64(tag->b), ron_tag_rd64(tag->b + 8) };
}


/* hi as a fraction of 2^64, of n: ascending in hi, and even for hashes. */

static inline uint64_t
ron_tag_scale(uint64_t hi, uint64_t n)
{
    return (uint64_t) (((ron_u128_t) hi * n) >> 64);
}


static inline ron_tag_slot_t *
ron_tag_table_home(const ron_tag_table_t *t, uint64_t hi)
{
    return &t->slot[ron_tag_scale(hi, t->home_n)];
}


/* The slot that holds the key, or the one that it would be put in. */

static inline ron_tag_slot_t *
ron_tag_table_seek(const ron_tag_table_t *t, ron_tag_key_t key)
{
    ron_tag_slot_t  *s;

    s = ron_tag_table_home(t, key.hi);

    while (s->seq != 0
           && (s->hi < key.hi || (s->hi == key.hi && s->lo < key.lo)))
    {
        s++;
    }

    return s;
}


/* The seq of the key, 0 when it is not there. */

static inline uint64_t
ron_tag_table_find(const ron_tag_table_t *t, ron_tag_key_t key)
{
    const ron_tag_slot_t  *s;

    s = ron_tag_table_seek(t, key);

    return s->hi == key.hi && s->lo == key.lo ? s->seq : 0;
}


/* `bytes` of slots, or as few as make sense. */
ron_status_t ron_tag_table_create(ron_tag_table_t *t, size_t bytes);
void ron_tag_table_free(ron_tag_table_t *t);
void ron_tag_table_clear(ron_tag_table_t *t);

/* Empties one piece by piece, and has the memory of a new one there. */
void ron_tag_table_wipe(ron_tag_table_t *t);
size_t ron_tag_table_bytes(const ron_tag_table_t *t);

/* The key must not be there.  Fills up past the limit if it has to. */
ron_status_t ron_tag_table_insert(ron_tag_table_t *t, ron_tag_key_t key,
    uint64_t seq);

/* Puts the key, or gives it another seq.  RON_ENOMEM only for a new one. */
ron_status_t ron_tag_table_set(ron_tag_table_t *t, ron_tag_key_t key,
    uint64_t seq);

/* True when the key was there. */
bool ron_tag_table_remove(ron_tag_table_t *t, ron_tag_key_t key);

/* Twice the homes; on failure the table stays as it was. */
ron_status_t ron_tag_table_grow(ron_tag_table_t *t);

/* Appends what has seq > above to `to`, an empty table. */
ron_status_t ron_tag_table_copy(ron_tag_table_t *to, const ron_tag_table_t *t,
    uint64_t above);


void ron_tag_log_free(ron_tag_log_t *log);

/* Room for one more, so that the push after it cannot fail. */
ron_status_t ron_tag_log_reserve(ron_tag_log_t *log);
void ron_tag_log_push(ron_tag_log_t *log, ron_tag_key_t key, uint64_t seq,
    uint64_t old);

/* The i-th put is in a fresh table now, where nothing committed is. */
void ron_tag_log_moved(ron_tag_log_t *log, size_t i, uint64_t committed);

/* Drops the oldest while their seq <= seq. */
void ron_tag_log_commit(ron_tag_log_t *log, uint64_t seq);

/* Takes back the newest, NULL when its seq <= seq or there is none. */
const ron_tag_put_t *ron_tag_log_pop(ron_tag_log_t *log, uint64_t seq);

/* The i-th oldest. */
const ron_tag_put_t *ron_tag_log_at(const ron_tag_log_t *log, size_t i);


#endif /* RON_TAG_TABLE_H */
