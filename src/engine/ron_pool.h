
/*
 * The two containers of the state: records in chunks that never move, and an
 * index of record numbers.
 *
 * A slot of the index is 32 bits: 27 of the record's number and 5 of its
 * hash, so that of 31 records that are not the one looked for, 30 are passed
 * over without touching them.  The index knows no keys: its user walks the
 * candidates and compares.
 */

#ifndef RON_POOL_H
#define RON_POOL_H


#include "ron_state.h"


#define RON_CHUNK_RECS    4096

#define RON_INDEX_BITS    27
#define RON_INDEX_NO      ((UINT32_C(1) << RON_INDEX_BITS) - 1)

/* Records in one pool; the last number would look like an empty slot. */
#define RON_POOL_MAX      (RON_INDEX_NO - 1)


void ron_pool_init(ron_pool_t *pool, uint32_t rec_len);
void ron_pool_free(ron_pool_t *pool);
uint64_t ron_pool_bytes(const ron_pool_t *pool);

/* A zeroed record at the end, or RON_NONE without memory. */
uint32_t ron_pool_add(ron_pool_t *pool);

/* Takes the last record back. */
void ron_pool_pop(ron_pool_t *pool);


/* The hash of the record that a slot names: for growing and removing. */
typedef uint64_t (*ron_index_hash_pt)(const void *ctx, uint32_t no);

void ron_index_init(ron_index_t *index);
void ron_index_free(ron_index_t *index);

ron_status_t ron_index_put(ron_index_t *index, uint64_t hash, uint32_t no,
    ron_index_hash_pt rehash, const void *ctx);
void ron_index_del(ron_index_t *index, uint64_t hash, uint32_t no,
    ron_index_hash_pt rehash, const void *ctx);


static inline uint32_t
ron_index_slot(uint64_t hash, uint32_t no)
{
    return (uint32_t) (hash >> 59) << RON_INDEX_BITS | no;
}


/* The next candidate; *step starts as 0, RON_NONE ends the walk. */

static inline uint32_t
ron_index_next(const ron_index_t *index, uint64_t hash, uint32_t *step)
{
    uint32_t  slot;

    if (index->mask == 0) {
        return RON_NONE;
    }

    do {
        slot = index->slots[((uint32_t) hash + (*step)++) & index->mask];

        if (slot == RON_NONE) {
            return RON_NONE;
        }

    } while (slot >> RON_INDEX_BITS != (uint32_t) (hash >> 59));

    return slot & RON_INDEX_NO;
}


#endif /* RON_POOL_H */
