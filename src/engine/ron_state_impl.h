
/*
 * What ron_state.c (records, indexes, undo) has for ron_apply.c (effects).
 */

#ifndef RON_STATE_IMPL_H
#define RON_STATE_IMPL_H


#include "ron_state.h"


/* RON_NONE, or NULL, when there is none yet. */
uint32_t ron_reversed_find(const ron_state_t *st, uint64_t seq);
ron_cap_sum_t *ron_cap_find(const ron_state_t *st, ron_str_t cap);

/* A hold that is used up. */
void ron_state_del_hold(ron_state_t *st, uint32_t no);

void ron_undo_save(ron_state_t *st, void *ptr, uint32_t len);


/* Notes what bytes are now, before they change, where that can be undone. */

static inline void
ron_undo_keep(ron_state_t *st, void *ptr, uint32_t len)
{
    if (st->undo_on) {
        ron_undo_save(st, ptr, len);
    }
}


#endif /* RON_STATE_IMPL_H */
