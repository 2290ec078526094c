
/*
 * The order of units in a batch: by (source time, first id), ties as given;
 * then the single wallet operations of one account change places among
 * themselves so that their nonces ascend.  A client that pipelines nonces
 * over two connections, and so over two workers, loses none of them to a race
 * that it cannot see.
 */

#include "ron_engine_impl.h"

#include <stdlib.h>


typedef struct {
    ron_unit_t  *unit;
    uint32_t     place;
} ron_place_t;


static int ron_order_by_time(const void *a, const void *b);
static int ron_order_by_account(const void *a, const void *b);
static int ron_order_by_nonce(const void *a, const void *b);
static void ron_order_sort(ron_place_t *places, uint32_t n,
    int (*order)(const void *a, const void *b));
static bool ron_order_counts(const ron_unit_t *unit);
static bool ron_order_nonces_due(const ron_place_t *places, uint32_t n,
    uint32_t *slots, uint32_t slot_n);
static uint32_t ron_order_slot(ron_str_t account);


ron_status_t
ron_order_units(ron_unit_t **units, uint32_t n)
{
    uint32_t      count_n, slot_n, *slots;
    ron_place_t  *places, *by_nonce;

    if (n < 2) {
        return RON_OK;
    }

    /* twice as many slots as units, and a power of two */

    slot_n = UINT32_C(4) << (31 - __builtin_clz(n));

    places = malloc(2 * (size_t) n * sizeof(ron_place_t)
                    + slot_n * sizeof(uint32_t));
    if (places == NULL) {
        return RON_ENOMEM;
    }

    by_nonce = places + n;
    slots = (uint32_t *) (void *) (by_nonce + n);

    for (uint32_t i = 0; i < n; i++) {
        places[i] = (ron_place_t) { units[i], i };
    }

    ron_order_sort(places, n, ron_order_by_time);

    count_n = 0;

    for (uint32_t i = 0; i < n; i++) {
        units[i] = places[i].unit;

        if (ron_order_counts(units[i])) {
            by_nonce[count_n++] = (ron_place_t) { units[i], i };
        }
    }

    memset(slots, 0, slot_n * sizeof(uint32_t));

    if (ron_order_nonces_due(by_nonce, count_n, slots, slot_n)) {
        memcpy(places, by_nonce, count_n * sizeof(ron_place_t));
        ron_order_sort(places, count_n, ron_order_by_account);
        ron_order_sort(by_nonce, count_n, ron_order_by_nonce);

        for (uint32_t i = 0; i < count_n; i++) {
            units[places[i].place] = by_nonce[i].unit;
        }
    }

    free(places);

    return RON_OK;
}


/* What came from one worker is in order nearly always. */

static void
ron_order_sort(ron_place_t *places, uint32_t n,
    int (*order)(const void *a, const void *b))
{
    for (uint32_t i = 1; i < n; i++) {
        if (order(&places[i - 1], &places[i]) > 0) {
            qsort(places, n, sizeof(ron_place_t), order);
            return;
        }
    }
}


static int
ron_order_by_time(const void *a, const void *b)
{
    int                 rc;
    const ron_place_t  *x = a, *y = b;

    if (x->unit->source_us != y->unit->source_us) {
        return x->unit->source_us < y->unit->source_us ? -1 : 1;
    }

    rc = ron_str_cmp(x->unit->ops[0].id, y->unit->ops[0].id);

    return rc ? rc : (x->place < y->place ? -1 : 1);
}


/* Single operations whose nonce is counted: those that take from `account`. */

static bool
ron_order_counts(const ron_unit_t *unit)
{
    const ron_entry_t  *op;

    op = &unit->ops[0];

    return unit->type == RON_UNIT_WALLET && (op->fields & RON_F_NONCE)
           && (op->kind == RON_KIND_TRANSFER || op->kind == RON_KIND_BURN
               || op->kind == RON_KIND_HOLD);
}


static int
ron_order_by_account(const void *a, const void *b)
{
    int                 rc;
    const ron_place_t  *x = a, *y = b;

    rc = ron_str_cmp(x->unit->ops[0].account, y->unit->ops[0].account);

    return rc ? rc : (x->place < y->place ? -1 : 1);
}


static int
ron_order_by_nonce(const void *a, const void *b)
{
    int                 rc;
    const ron_place_t  *x = a, *y = b;

    rc = ron_str_cmp(x->unit->ops[0].account, y->unit->ops[0].account);

    if (rc != 0) {
        return rc;
    }

    if (x->unit->ops[0].nonce != y->unit->ops[0].nonce) {
        return x->unit->ops[0].nonce < y->unit->ops[0].nonce ? -1 : 1;
    }

    return x->place < y->place ? -1 : 1;
}


/*
 * Does a nonce come behind a higher one of its account?  A slot has the place,
 * and one, of the last unit that was seen of an account.  Where accounts are
 * such that too many slots are looked at the answer is yes: to put in order
 * what is in order changes nothing.
 */

static bool
ron_order_nonces_due(const ron_place_t *places, uint32_t n, uint32_t *slots,
    uint32_t slot_n)
{
    uint32_t            at, steps;
    const ron_entry_t  *a, *b;

    steps = 0;

    for (uint32_t i = 0; i < n; i++) {
        b = &places[i].unit->ops[0];
        at = ron_order_slot(b->account) & (slot_n - 1);

        for (/* void */ ; slots[at] != 0; at = (at + 1) & (slot_n - 1)) {
            a = &places[slots[at] - 1].unit->ops[0];

            if (ron_str_eq(a->account, b->account)) {
                if (a->nonce > b->nonce) {
                    return true;
                }

                break;
            }

            if (++steps > slot_n) {
                return true;
            }
        }

        slots[at] = i + 1;
    }

    return false;
}


static uint32_t
ron_order_slot(ron_str_t account)
{
    uint64_t  head, tail;

    head = account.len;
    tail = 0;

    if (account.len >= 8) {
        memcpy(&head, account.data, 8);
        memcpy(&tail, account.data + account.len - 8, 8);

    } else if (account.len > 0) {
        memcpy(&tail, account.data, account.len);
    }

    head ^= tail * UINT64_C(0x9e3779b97f4a7c15);
    head *= UINT64_C(0xbf58476d1ce4e5b9);

    return (uint32_t) (head >> 32);
}
