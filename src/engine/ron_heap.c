
#include "ron_heap.h"

#include <stdlib.h>


static bool ron_heap_before(const ron_expiry_t *a, const ron_expiry_t *b);
static void ron_heap_sift(ron_heap_t *heap, uint32_t i);
static void ron_heap_count(const ron_heap_t *heap, uint64_t time_ms,
    uint32_t i, uint32_t max, uint32_t *n);


void
ron_heap_free(ron_heap_t *heap)
{
    free(heap->at);
    memset(heap, 0, sizeof(ron_heap_t));
}


static bool
ron_heap_before(const ron_expiry_t *a, const ron_expiry_t *b)
{
    return a->expiry_ms != b->expiry_ms ? a->expiry_ms < b->expiry_ms
                                        : a->seq < b->seq;
}


ron_status_t
ron_heap_push(ron_heap_t *heap, uint64_t expiry_ms, uint64_t seq)
{
    uint32_t       cap, i, up;
    ron_expiry_t  *at, e;

    if (heap->n == heap->cap) {
        cap = heap->cap ? heap->cap * 2 : 64;

        at = realloc(heap->at, cap * sizeof(ron_expiry_t));
        if (at == NULL) {
            return RON_ENOMEM;
        }

        heap->at = at;
        heap->cap = cap;
    }

    e = (ron_expiry_t) { expiry_ms, seq };

    for (i = heap->n++; i > 0; i = up) {
        up = (i - 1) / 2;

        if (!ron_heap_before(&e, &heap->at[up])) {
            break;
        }

        heap->at[i] = heap->at[up];
    }

    heap->at[i] = e;

    return RON_OK;
}


void
ron_heap_pop(ron_heap_t *heap)
{
    heap->at[0] = heap->at[--heap->n];

    ron_heap_sift(heap, 0);
}


static void
ron_heap_sift(ron_heap_t *heap, uint32_t i)
{
    uint32_t      down;
    ron_expiry_t  e;

    e = heap->at[i];

    for ( ;; ) {
        down = 2 * i + 1;

        if (down >= heap->n) {
            break;
        }

        if (down + 1 < heap->n
            && ron_heap_before(&heap->at[down + 1], &heap->at[down]))
        {
            down++;
        }

        if (!ron_heap_before(&heap->at[down], &e)) {
            break;
        }

        heap->at[i] = heap->at[down];
        i = down;
    }

    heap->at[i] = e;
}


void
ron_heap_thin(ron_heap_t *heap,
    bool (*wanted)(const void *ctx, const ron_expiry_t *e), const void *ctx)
{
    uint32_t  n;

    n = 0;

    for (uint32_t i = 0; i < heap->n; i++) {
        if (wanted(ctx, &heap->at[i])) {
            heap->at[n++] = heap->at[i];
        }
    }

    heap->n = n;

    for (uint32_t i = n / 2; i-- > 0; ) {
        ron_heap_sift(heap, i);
    }
}


uint32_t
ron_heap_due(const ron_heap_t *heap, uint64_t time_ms, uint32_t max)
{
    uint32_t  n;

    n = 0;
    ron_heap_count(heap, time_ms, 0, max, &n);

    return n;
}


/*
 * Walks the part of the heap that is due: a child is never due before its
 * parent, so the walk ends where the due ones end.
 */

static void
ron_heap_count(const ron_heap_t *heap, uint64_t time_ms, uint32_t i,
    uint32_t max, uint32_t *n)
{
    if (i >= heap->n || *n >= max || heap->at[i].expiry_ms > time_ms) {
        return;
    }

    (*n)++;

    ron_heap_count(heap, time_ms, 2 * i + 1, max, n);
    ron_heap_count(heap, time_ms, 2 * i + 2, max, n);
}
