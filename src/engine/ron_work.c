
/*
 * Batches, which are used again, and the lists that they wait in.
 */

#include "ron_engine_impl.h"

#include <stdlib.h>


ron_work_t *
ron_work_get(ron_engine_t *en, uint32_t units)
{
    void        *p;
    ron_work_t  *w;

    w = en->free_works;

    if (w != NULL) {
        en->free_works = w->next;

    } else {
        w = calloc(1, sizeof(ron_work_t));
        if (w == NULL) {
            return NULL;
        }

        ron_buf_init(&w->body, 0);
        ron_buf_init(&w->notes, 0);
        ron_buf_init(&w->extra, 0);
        ron_buf_init(&w->slice_body, 0);
    }

    w->next = NULL;

    if (units > w->unit_cap) {
        p = realloc(w->pub.units, units * sizeof(ron_unit_t *));
        if (p == NULL) {
            ron_work_put_back(en, w);
            return NULL;
        }

        w->pub.units = p;

        p = realloc(w->pub.outcomes, units * sizeof(ron_outcome_t));
        if (p == NULL) {
            ron_work_put_back(en, w);
            return NULL;
        }

        w->pub.outcomes = p;
        w->unit_cap = units;
    }

    w->pub.status = RON_AGAIN;
    w->pub.unit_n = units;
    w->pub.commit_us = 0;
    w->pub.count = 0;
    w->has_slice = false;
    w->touched_n = 0;
    w->result_n = 0;

    ron_buf_reset(&w->body);
    ron_buf_reset(&w->notes);
    ron_buf_reset(&w->extra);
    ron_buf_reset(&w->slice_body);

    if (units != 0) {
        memset(w->pub.outcomes, 0, units * sizeof(ron_outcome_t));
    }

    return w;
}


void
ron_work_put_back(ron_engine_t *en, ron_work_t *w)
{
    w->next = en->free_works;
    en->free_works = w;
}


void
ron_work_free(ron_work_t *w)
{
    ron_buf_free(&w->body);
    ron_buf_free(&w->notes);
    ron_buf_free(&w->extra);
    ron_buf_free(&w->slice_body);

    free(w->pub.units);
    free(w->pub.outcomes);
    free(w->pub.balances);
    free(w->results);
    free(w->spans);
    free(w->tags);
    free(w->touched);
    free(w);
}


void
ron_list_push(ron_work_list_t *list, ron_work_t *w)
{
    w->next = NULL;

    if (list->tail == NULL) {
        list->head = w;

    } else {
        list->tail->next = w;
    }

    list->tail = w;
    list->n++;
}


ron_work_t *
ron_list_pop(ron_work_list_t *list)
{
    ron_work_t  *w;

    w = list->head;

    if (w != NULL) {
        list->head = w->next;
        list->n--;

        if (list->head == NULL) {
            list->tail = NULL;
        }
    }

    return w;
}
