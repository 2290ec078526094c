
/*
 * A table of tags in RAM: open addressing, linear probing, 24 bytes a slot.
 *
 * The home of a tag is its first 64 bits scaled to the number of homes, which
 * keeps their order, and inside a run of full slots tags are kept ascending
 * as well.  So the whole array, read from the left, is sorted.  That buys
 * three things:
 *
 *   - a look-up of what is not there ends at the first greater tag, not at
 *     the end of the run: 2.5 slots at 75 % instead of 8.5;
 *   - writing a table out as a sorted segment is one walk, no sort;
 *   - making it larger is one walk too, and touches memory in order.
 *
 * Invariants: between the home of a tag and its slot nothing is empty; the
 * array ascends; the last slot is empty, which ends every scan.  Past the
 * last home there is a run-off that the last runs spill into.  It is made
 * longer when a run reaches its end; hashes never do that in practice.
 *
 * The price: putting a tag moves the rest of its run one slot to the right
 * (2.5 slots on average while a table fills).  Tags must be spread evenly for
 * any of these figures; if they are not, everything still holds but speed.
 */

#include "ron_tag_table.h"
#include "ron_port.h"

#include <stdlib.h>


#define RON_TAG_HOMES_MIN   16
#define RON_TAG_RUN_OFF     64
#define RON_TAG_LOG_MIN     256
#define RON_TAG_WIPE        (1 << 20)
#define RON_TAG_WIPE_US     1000


static ron_status_t ron_tag_table_alloc(ron_tag_table_t *t, size_t home_n);
static ron_status_t ron_tag_table_extend(ron_tag_table_t *t, size_t slot_n);


ron_status_t
ron_tag_table_create(ron_tag_table_t *t, size_t bytes)
{
    size_t  n;

    n = bytes / sizeof(ron_tag_slot_t);
    n = n > RON_TAG_RUN_OFF ? n - RON_TAG_RUN_OFF : 0;

    return ron_tag_table_alloc(t, ron_max(n, RON_TAG_HOMES_MIN));
}


static ron_status_t
ron_tag_table_alloc(ron_tag_table_t *t, size_t home_n)
{
    memset(t, 0, sizeof(ron_tag_table_t));

    t->slot = calloc(home_n + RON_TAG_RUN_OFF, sizeof(ron_tag_slot_t));
    if (t->slot == NULL) {
        return RON_ENOMEM;
    }


    ron_memory_large(t->slot, (home_n + RON_TAG_RUN_OFF)
                              * sizeof(ron_tag_slot_t));

    t->home_n = home_n;
    t->slot_n = home_n + RON_TAG_RUN_OFF;
    t->limit = home_n / 5 * 4;

    return RON_OK;
}


void
ron_tag_table_free(ron_tag_table_t *t)
{
    free(t->slot);
    memset(t, 0, sizeof(ron_tag_table_t));
}


/*
 * One that holds nothing is all zeroes already.  Touching tens of megabytes
 * that nobody uses would make them resident, and every start late.
 */

void
ron_tag_table_clear(ron_tag_table_t *t)
{
    if (t->used == 0) {
        return;
    }

    memset(t->slot, 0, t->slot_n * sizeof(ron_tag_slot_t));
    t->used = 0;
}


/*
 * Tags go everywhere in a table, so the first of them touch all of its pages,
 * which the kernel zeroes one after the other: 16 to 50 ms for 32 MiB, in which
 * nothing is decided.  Nor may that take a processor for so long from those who
 * begin to work just then.
 */

void
ron_tag_table_wipe(ron_tag_table_t *t)
{
    size_t    i, len;
    uint8_t  *p;

    t->used = 0;
    p = (uint8_t *) t->slot;
    len = t->slot_n * sizeof(ron_tag_slot_t);

    for (i = 0; i < len; i += RON_TAG_WIPE) {
        memset(p + i, 0, ron_min(len - i, RON_TAG_WIPE));

        if (len - i > RON_TAG_WIPE) {
            ron_sleep_us(RON_TAG_WIPE_US);
        }
    }
}


size_t
ron_tag_table_bytes(const ron_tag_table_t *t)
{
    return t->slot_n * sizeof(ron_tag_slot_t);
}


ron_status_t
ron_tag_table_insert(ron_tag_table_t *t, ron_tag_key_t key, uint64_t seq)
{
    size_t           i, run_n;
    ron_status_t     status;
    ron_tag_slot_t  *s, *end;

    RON_ASSERT(seq != 0);

    s = ron_tag_table_seek(t, key);

    for (end = s; end->seq != 0; end++) { /* void */ }

    run_n = (size_t) (end - s);

    if (end == &t->slot[t->slot_n - 1]) {
        i = (size_t) (s - t->slot);

        status = ron_tag_table_extend(t, t->slot_n + 1);
        if (status != RON_OK) {
            return status;
        }

        s = &t->slot[i];
    }

    memmove(s + 1, s, run_n * sizeof(ron_tag_slot_t));

    s->hi = key.hi;
    s->lo = key.lo;
    s->seq = seq;

    t->used++;

    return RON_OK;
}


ron_status_t
ron_tag_table_set(ron_tag_table_t *t, ron_tag_key_t key, uint64_t seq)
{
    ron_tag_slot_t  *s;

    s = ron_tag_table_seek(t, key);

    if (s->seq != 0 && s->hi == key.hi && s->lo == key.lo) {
        s->seq = seq;
        return RON_OK;
    }

    return ron_tag_table_insert(t, key, seq);
}


/* A longer run-off, with at least slot_n slots in all. */

static ron_status_t
ron_tag_table_extend(ron_tag_table_t *t, size_t slot_n)
{
    ron_tag_slot_t  *slot;

    slot_n += ron_max(slot_n - t->home_n, RON_TAG_RUN_OFF);

    if (slot_n > SIZE_MAX / sizeof(ron_tag_slot_t)) {
        return RON_ENOMEM;
    }

    slot = realloc(t->slot, slot_n * sizeof(ron_tag_slot_t));
    if (slot == NULL) {
        return RON_ENOMEM;
    }

    memset(&slot[t->slot_n], 0,
           (slot_n - t->slot_n) * sizeof(ron_tag_slot_t));

    t->slot = slot;
    t->slot_n = slot_n;

    return RON_OK;
}


bool
ron_tag_table_remove(ron_tag_table_t *t, ron_tag_key_t key)
{
    ron_tag_slot_t  *s, *end;

    s = ron_tag_table_seek(t, key);

    if (s->seq == 0 || s->hi != key.hi || s->lo != key.lo) {
        return false;
    }

    /* whatever was pushed out of its home moves one slot nearer to it */

    for (end = s + 1;
         end->seq != 0 && end != ron_tag_table_home(t, end->hi);
         end++)
    { /* void */ }

    end--;

    memmove(s, s + 1, (size_t) (end - s) * sizeof(ron_tag_slot_t));
    memset(end, 0, sizeof(ron_tag_slot_t));

    t->used--;

    return true;
}


ron_status_t
ron_tag_table_grow(ron_tag_table_t *t)
{
    ron_status_t     status;
    ron_tag_table_t  bigger;

    if (t->home_n > SIZE_MAX / sizeof(ron_tag_slot_t) / 4) {
        return RON_ENOMEM;
    }

    status = ron_tag_table_alloc(&bigger, t->home_n * 2);
    if (status != RON_OK) {
        return status;
    }

    status = ron_tag_table_copy(&bigger, t, 0);
    if (status != RON_OK) {
        ron_tag_table_free(&bigger);
        return status;
    }

    ron_tag_table_free(t);
    *t = bigger;

    return RON_OK;
}


ron_status_t
ron_tag_table_copy(ron_tag_table_t *to, const ron_tag_table_t *t,
    uint64_t above)
{
    size_t                 i, at, next;
    ron_status_t           status;
    const ron_tag_slot_t  *s;

    next = 0;

    for (i = 0; i < t->slot_n; i++) {

        s = &t->slot[i];

        if (s->seq <= above) {
            continue;
        }

        at = ron_tag_scale(s->hi, to->home_n);
        at = ron_max(at, next);

        if (at >= to->slot_n - 1) {
            status = ron_tag_table_extend(to, at + 2);
            if (status != RON_OK) {
                return status;
            }
        }

        to->slot[at] = *s;
        to->used++;
        next = at + 1;
    }

    return RON_OK;
}


void
ron_tag_log_free(ron_tag_log_t *log)
{
    free(log->e);
    memset(log, 0, sizeof(ron_tag_log_t));
}


ron_status_t
ron_tag_log_reserve(ron_tag_log_t *log)
{
    size_t           i, cap;
    ron_tag_put_t  *e;

    if (log->n < log->cap) {
        return RON_OK;
    }

    cap = log->cap ? log->cap * 2 : RON_TAG_LOG_MIN;

    e = calloc(cap, sizeof(ron_tag_put_t));
    if (e == NULL) {
        return RON_ENOMEM;
    }

    for (i = 0; i < log->n; i++) {
        e[i] = *ron_tag_log_at(log, i);
    }

    free(log->e);

    log->e = e;
    log->cap = cap;
    log->head = 0;

    return RON_OK;
}


void
ron_tag_log_push(ron_tag_log_t *log, ron_tag_key_t key, uint64_t seq,
    uint64_t old)
{
    ron_tag_put_t  *s;

    RON_ASSERT(log->n < log->cap);

    s = &log->e[(log->head + log->n) & (log->cap - 1)];

    s->hi = key.hi;
    s->lo = key.lo;
    s->seq = seq;
    s->old = old;

    log->n++;
}


void
ron_tag_log_moved(ron_tag_log_t *log, size_t i, uint64_t committed)
{
    ron_tag_put_t  *s;

    RON_ASSERT(i < log->n);

    s = &log->e[(log->head + i) & (log->cap - 1)];

    if (s->old <= committed) {
        s->old = 0;
    }
}


void
ron_tag_log_commit(ron_tag_log_t *log, uint64_t seq)
{
    while (log->n != 0 && log->e[log->head].seq <= seq) {
        log->head = (log->head + 1) & (log->cap - 1);
        log->n--;
    }
}


const ron_tag_put_t *
ron_tag_log_pop(ron_tag_log_t *log, uint64_t seq)
{
    const ron_tag_put_t  *s;

    if (log->n == 0) {
        return NULL;
    }

    s = ron_tag_log_at(log, log->n - 1);
    if (s->seq <= seq) {
        return NULL;
    }

    log->n--;

    return s;
}


const ron_tag_put_t *
ron_tag_log_at(const ron_tag_log_t *log, size_t i)
{
    RON_ASSERT(i < log->n);

    return &log->e[(log->head + i) & (log->cap - 1)];
}
