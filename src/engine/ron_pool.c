
#include "ron_pool.h"
#include "ron_port.h"

#include <stdlib.h>


#define RON_INDEX_MIN  64


static ron_status_t ron_index_grow(ron_index_t *index,
    ron_index_hash_pt rehash, const void *ctx);
static uint8_t *ron_index_numbers(const ron_index_t *index, uint32_t *end);


void
ron_pool_init(ron_pool_t *pool, uint32_t rec_len)
{
    memset(pool, 0, sizeof(ron_pool_t));
    pool->rec_len = rec_len;
}


void
ron_pool_free(ron_pool_t *pool)
{
    for (uint32_t i = 0; i < pool->chunk_n; i++) {
        free(pool->chunks[i]);
    }

    free(pool->chunks);
    ron_pool_init(pool, pool->rec_len);
}


uint64_t
ron_pool_bytes(const ron_pool_t *pool)
{
    return (uint64_t) pool->chunk_n
           * ((uint64_t) RON_CHUNK_RECS * pool->rec_len + sizeof(uint8_t *));
}


uint32_t
ron_pool_add(ron_pool_t *pool)
{
    uint8_t  *chunk, **chunks;

    if (pool->n == RON_POOL_MAX) {
        return RON_NONE;
    }

    if (pool->n == pool->chunk_n * RON_CHUNK_RECS) {
        chunks = realloc(pool->chunks,
                         (pool->chunk_n + 1) * sizeof(uint8_t *));
        if (chunks == NULL) {
            return RON_NONE;
        }

        pool->chunks = chunks;

        chunk = malloc((size_t) RON_CHUNK_RECS * pool->rec_len);
        if (chunk == NULL) {
            return RON_NONE;
        }

        pool->chunks[pool->chunk_n++] = chunk;
    }

    memset(ron_pool_at(pool, pool->n), 0, pool->rec_len);

    return pool->n++;
}


void
ron_pool_pop(ron_pool_t *pool)
{
    RON_ASSERT(pool->n > 0);

    pool->n--;
}


void *
ron_pool_at(const ron_pool_t *pool, uint32_t no)
{
    return pool->chunks[no / RON_CHUNK_RECS]
           + (size_t) (no % RON_CHUNK_RECS) * pool->rec_len;
}


void
ron_index_init(ron_index_t *index)
{
    memset(index, 0, sizeof(ron_index_t));
}


void
ron_index_free(ron_index_t *index)
{
    free(index->slots);
    ron_index_init(index);
}


ron_status_t
ron_index_put(ron_index_t *index, uint64_t hash, uint32_t no,
    ron_index_hash_pt rehash, const void *ctx)
{
    uint32_t  i;

    if (index->mask == 0 || index->used >= (index->mask + 1) / 4 * 3) {
        if (ron_index_grow(index, rehash, ctx) != RON_OK) {
            return RON_ENOMEM;
        }
    }

    i = (uint32_t) hash & index->mask;

    while (index->slots[i] != RON_NONE) {
        i = (i + 1) & index->mask;
    }

    index->slots[i] = ron_index_slot(hash, no);
    index->used++;

    return RON_OK;
}


/*
 * In the order of their numbers, in which records and names lie in memory too:
 * in that of the old slots, each of a million would be waited for.
 */

static ron_status_t
ron_index_grow(ron_index_t *index, ron_index_hash_pt rehash, const void *ctx)
{
    uint8_t   *there;
    uint32_t   old_n, mask, i, end, *slots;
    uint64_t   n, hash;

    old_n = index->mask ? index->mask + 1 : 0;
    n = old_n ? (uint64_t) old_n * 2 : RON_INDEX_MIN;

    if (n > (uint64_t) 1 << 31) {
        return RON_ENOMEM;
    }

    slots = malloc(n * sizeof(uint32_t));
    there = ron_index_numbers(index, &end);

    if (slots == NULL || there == NULL) {
        free(slots);
        free(there);
        return RON_ENOMEM;
    }

    ron_memory_large(slots, n * sizeof(uint32_t));
    memset(slots, 0xff, n * sizeof(uint32_t));
    mask = (uint32_t) n - 1;

    for (uint32_t no = 0; no < end; no++) {
        if (!(there[no / 8] & 1u << no % 8)) {
            continue;
        }

        hash = rehash(ctx, no);
        i = (uint32_t) hash & mask;

        while (slots[i] != RON_NONE) {
            i = (i + 1) & mask;
        }

        slots[i] = ron_index_slot(hash, no);
    }

    free(there);
    free(index->slots);
    index->slots = slots;
    index->mask = mask;

    return RON_OK;
}


/* A bit for each number in the index; all are below `end`.  NULL: no memory. */

static uint8_t *
ron_index_numbers(const ron_index_t *index, uint32_t *end)
{
    uint8_t   *there;
    uint32_t   no, n;

    n = index->mask ? index->mask + 1 : 0;
    *end = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (index->slots[i] != RON_NONE) {
            no = index->slots[i] & RON_INDEX_NO;
            *end = ron_max(*end, no + 1);
        }
    }

    there = calloc(*end / 8 + 1, 1);

    for (uint32_t i = 0; there != NULL && i < n; i++) {
        if (index->slots[i] != RON_NONE) {
            no = index->slots[i] & RON_INDEX_NO;
            there[no / 8] |= (uint8_t) (1u << no % 8);
        }
    }

    return there;
}


/*
 * Removal without tombstones: whoever sits behind the hole, and would be
 * found earlier, moves into it.
 */

void
ron_index_del(ron_index_t *index, uint64_t hash, uint32_t no,
    ron_index_hash_pt rehash, const void *ctx)
{
    uint32_t  hole, i, home;

    RON_ASSERT(index->mask != 0);

    hole = (uint32_t) hash & index->mask;

    while (index->slots[hole] != ron_index_slot(hash, no)) {
        RON_ASSERT(index->slots[hole] != RON_NONE);
        hole = (hole + 1) & index->mask;
    }

    for (i = (hole + 1) & index->mask;
         index->slots[i] != RON_NONE;
         i = (i + 1) & index->mask)
    {
        home = (uint32_t) rehash(ctx, index->slots[i] & RON_INDEX_NO)
               & index->mask;

        if (((i - home) & index->mask) >= ((i - hole) & index->mask)) {
            index->slots[hole] = index->slots[i];
            hole = i;
        }
    }

    index->slots[hole] = RON_NONE;
    index->used--;
}
