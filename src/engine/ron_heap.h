
/*
 * When holds expire: a binary heap of (expiry, seq).  A hold that is closed
 * early stays in it until it comes up, or until the heap is thinned out.
 */

#ifndef RON_HEAP_H
#define RON_HEAP_H


#include "ron.h"


typedef struct {
    uint64_t  expiry_ms;
    uint64_t  seq;
} ron_expiry_t;


typedef struct {
    ron_expiry_t  *at;              /* at[0] is the first to come up */
    uint32_t       n;
    uint32_t       cap;
} ron_heap_t;


void ron_heap_free(ron_heap_t *heap);

/* RON_ENOMEM: nothing has changed. */
ron_status_t ron_heap_push(ron_heap_t *heap, uint64_t expiry_ms,
    uint64_t seq);

/* Drops the first. */
void ron_heap_pop(ron_heap_t *heap);

/* Keeps those that `wanted` wants. */
void ron_heap_thin(ron_heap_t *heap,
    bool (*wanted)(const void *ctx, const ron_expiry_t *e), const void *ctx);

/* How many have an expiry of time_ms or before, counted up to `max`. */
uint32_t ron_heap_due(const ron_heap_t *heap, uint64_t time_ms, uint32_t max);


#endif /* RON_HEAP_H */
