
/*
 * The two containers of the state: records in chunks that never move, and an
 * index of record numbers.  The index knows neither keys nor hashes: its user
 * walks the probe sequence and compares.
 */

#ifndef RON_POOL_H
#define RON_POOL_H


#include "ron_state.h"


#define RON_CHUNK_RECS  4096


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


/* Walks candidates: *at starts as the hash; RON_NONE ends the walk. */
static inline uint32_t
ron_index_next(const ron_index_t *index, uint64_t *at)
{
    uint32_t  no;

    if (index->mask == 0) {
        return RON_NONE;
    }

    no = index->slots[*at & index->mask];
    (*at)++;

    return no;
}


#endif /* RON_POOL_H */
