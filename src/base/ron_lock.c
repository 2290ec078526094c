
/*
 * Which locks a thread holds, in the order in which it took them.  A lock has
 * to be above the last one, so they are as many as the registry has at most.
 */

#include "ron_lock.h"

#ifdef RON_LOCK_CHECK

#include <stdio.h>
#include <stdlib.h>


static _Noreturn void ron_lock_wrong(const char *what, ron_lock_id_t held);


static _Thread_local ron_lock_id_t  ron_lock_held[RON_LOCK_N];
static _Thread_local uint32_t       ron_lock_held_n;


void
ron_lock_take(ron_lock_id_t lock)
{
    char           what[128];
    ron_lock_id_t  last;

    if (ron_lock_held_n != 0) {
        last = ron_lock_held[ron_lock_held_n - 1];

        if (ron_lock_info(lock)->order <= ron_lock_info(last)->order) {
            (void) snprintf(what, sizeof(what), "\"%s\" (order %u) is taken",
                            ron_lock_info(lock)->name,
                            (unsigned) ron_lock_info(lock)->order);
            ron_lock_wrong(what, last);
        }
    }

    ron_lock_held[ron_lock_held_n++] = lock;
}


void
ron_lock_leave(ron_lock_id_t lock)
{
    uint32_t  i;

    for (i = ron_lock_held_n; i > 0; i--) {
        if (ron_lock_held[i - 1] == lock) {
            break;
        }
    }

    RON_ASSERT(i > 0);

    for (ron_lock_held_n--; i <= ron_lock_held_n; i++) {
        ron_lock_held[i - 1] = ron_lock_held[i];
    }
}


void
ron_lock_wait(const char *what)
{
    char  text[128];

    if (ron_lock_held_n != 0) {
        (void) snprintf(text, sizeof(text), "a wait for %s", what);
        ron_lock_wrong(text, ron_lock_held[ron_lock_held_n - 1]);
    }
}


void
ron_lock_wait_for(ron_lock_id_t lock)
{
    char      text[128];
    uint32_t  i;

    for (i = 0; i < ron_lock_held_n; i++) {
        if (ron_lock_held[i] != lock) {
            (void) snprintf(text, sizeof(text),
                            "a wait for a condition of \"%s\" (order %u)",
                            ron_lock_info(lock)->name,
                            (unsigned) ron_lock_info(lock)->order);
            ron_lock_wrong(text, ron_lock_held[i]);
        }
    }

    RON_ASSERT(ron_lock_held_n == 1);
}


/* To standard error, for a line of the log may be what is wrong. */

static _Noreturn void
ron_lock_wrong(const char *what, ron_lock_id_t held)
{
    fprintf(stderr, "ron: lock order: %s, with \"%s\" (order %u) held\n",
            what, ron_lock_info(held)->name,
            (unsigned) ron_lock_info(held)->order);
    fflush(stderr);

    abort();
}


#endif /* RON_LOCK_CHECK */
