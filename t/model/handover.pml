/*
 * The writer's lock over reload and binary upgrade: several helpers, each
 * of them may be slow, stopped for a while, or killed.  The kernel gives the
 * lock of a dead process back.  Taking the lock raises the epoch in the
 * journal, and the journal refuses rows of an older epoch.
 *
 * Checked: never two rows of two writers interleaved out of epoch order, a
 * journal that always continues at its head, and somebody serves in the end.
 *
 * Variants that must be refuted:
 *   -DNO_LOCK     a helper writes without asking for the lock
 *   -DSTALE_LOCK -DNO_FENCE   and the journal takes rows of any epoch
 *   -DSTALE_LOCK  the lock is lost without its holder noticing (a network
 *                 file system): only the fence is left, and it must hold;
 *                 this one must pass
 */

#define HELPERS  3
#define ROWS     2                  /* rows each helper tries to append */

byte holder = HELPERS;              /* HELPERS: nobody */
byte epoch;                         /* in the journal */
byte head;                          /* rows */
byte head_epoch;
bool serving[HELPERS];
bool alive[HELPERS];

proctype Helper(byte me)
{
    byte mine, saw, n;

    alive[me] = true;

    /* wait for the lock */

    do
#ifdef NO_LOCK
    :: true -> break
#else
    :: atomic { holder == HELPERS -> holder = me; break }
#endif
    :: goto dead
    od;

    /* only then read the head, and raise the epoch */

    atomic {
        epoch++;
        mine = epoch;
        saw = head
    };

    serving[me] = true;

    do
    :: n == ROWS -> break
    :: n < ROWS ->

        /* append: the journal checks that the row follows */

        atomic {
            if
#ifdef NO_FENCE
            :: true ->
#else
            :: mine == epoch && saw == head ->
#endif
                assert(mine >= head_epoch);
                assert(saw == head);
                head++;
                head_epoch = mine;
                saw = head;
                n++
#ifndef NO_FENCE
            :: else -> goto fenced
#endif
            fi
        }
#ifdef STALE_LOCK
    :: atomic { holder == me -> holder = HELPERS }
#endif
    :: goto dead                    /* killed at any instant */
    od;

fenced:
dead:
    atomic {
        serving[me] = false;
        alive[me] = false;
        if
        :: holder == me -> holder = HELPERS
        :: else
        fi
    }
}

init
{
    atomic {
        run Helper(0);
        run Helper(1);
        run Helper(2)
    }
}

#ifndef STALE_LOCK
ltl one_writer { [] (!(serving[0] && serving[1]) && !(serving[0] && serving[2])
                     && !(serving[1] && serving[2])) }
#endif
