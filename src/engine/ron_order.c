
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
static bool ron_order_counts(const ron_unit_t *unit);
static bool ron_order_nonces_due(const ron_place_t *places, uint32_t n);


ron_status_t
ron_order_units(ron_unit_t **units, uint32_t n)
{
    uint32_t      count_n;
    ron_place_t  *places, *by_nonce;

    if (n < 2) {
        return RON_OK;
    }

    places = malloc(2 * (size_t) n * sizeof(ron_place_t));
    if (places == NULL) {
        return RON_ENOMEM;
    }

    by_nonce = places + n;

    for (uint32_t i = 0; i < n; i++) {
        places[i] = (ron_place_t) { units[i], i };
    }

    qsort(places, n, sizeof(ron_place_t), ron_order_by_time);

    count_n = 0;

    for (uint32_t i = 0; i < n; i++) {
        units[i] = places[i].unit;

        if (ron_order_counts(units[i])) {
            by_nonce[count_n++] = (ron_place_t) { units[i], i };
        }
    }

    memcpy(places, by_nonce, count_n * sizeof(ron_place_t));
    qsort(places, count_n, sizeof(ron_place_t), ron_order_by_account);

    if (ron_order_nonces_due(places, count_n)) {
        memcpy(by_nonce, places, count_n * sizeof(ron_place_t));
        qsort(by_nonce, count_n, sizeof(ron_place_t), ron_order_by_nonce);

        for (uint32_t i = 0; i < count_n; i++) {
            units[places[i].place] = by_nonce[i].unit;
        }
    }

    free(places);

    return RON_OK;
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


static bool
ron_order_nonces_due(const ron_place_t *places, uint32_t n)
{
    const ron_entry_t  *a, *b;

    for (uint32_t i = 1; i < n; i++) {
        a = &places[i - 1].unit->ops[0];
        b = &places[i].unit->ops[0];

        if (ron_str_eq(a->account, b->account) && a->nonce > b->nonce) {
            return true;
        }
    }

    return false;
}
