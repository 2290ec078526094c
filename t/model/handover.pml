/*
 * The writer's lock over reload and binary upgrade: several helpers, each
 * of them may be slow, stopped for a while, or killed.  The kernel gives the
 * lock of a dead process back.  Taking the lock raises the epoch in the
 * journal, and the journal refuses rows of an older epoch.
 *
 * Helpers are killed at any instant, but not all of them: one stays, and a
 * fenced one begins again, as its master has it do.
 *
 * Checked: never two rows of two writers interleaved out of epoch order, a
 * journal that always continues at its head, and somebody serves in the end:
 * has the ledger and appends all that it has.
 *
 * Variants that must be refuted:
 *   -DNO_LOCK     a helper writes without asking for the lock
 *   -DSTALE_LOCK -DNO_FENCE   and the journal takes rows of any epoch
 *   -DSTALE_LOCK  the lock is lost without its holder noticing (a network
 *                 file system): only the fence is left, and it must hold;
 *                 this one must pass
 *   -DKEPT_LOCK   a dead helper keeps its lock
 *   -DSTALE_LOCK -DFENCED_ENDS    nobody begins again after the fence
 */

#define HELPERS  3
#define KILLS    2
#define LOSSES   2                  /* of the lock, unnoticed */
#define ROWS     2                  /* rows each helper tries to append */

byte holder = HELPERS;              /* HELPERS: nobody */
byte epoch;                         /* in the journal */
byte head;                          /* rows */
byte head_epoch;
byte writers;                       /* who have taken over, and live */
byte kills, losses;
bool served;

proctype Helper(byte me)
{
    byte mine, saw, n;

again:

    /* wait for the lock */

    do
#ifdef NO_LOCK
    :: true -> break
#else
    :: atomic { holder == HELPERS -> holder = me; break }
#endif
    :: atomic { kills < KILLS -> kills++; goto dead }
    od;

    /* only then read the head, and raise the epoch */

    atomic {
        epoch++;
        mine = epoch;
        saw = head;
        writers++;
#ifndef STALE_LOCK
        assert(writers == 1)
#endif
    };

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
                n++;
                served = served || n == ROWS
#ifndef NO_FENCE
            :: else -> goto fenced
#endif
            fi
        }
#ifdef STALE_LOCK
    :: atomic { holder == me && losses < LOSSES ->
                losses++; holder = HELPERS }
#endif
    :: atomic { kills < KILLS -> kills++; goto killed }
    od;

    atomic { writers--; holder = (holder == me -> HELPERS : holder) };
    goto end;

fenced:
    atomic {
        writers--;
        holder = (holder == me -> HELPERS : holder);
        n = 0; mine = 0; saw = 0
    };
#ifdef FENCED_ENDS
    goto end;
#else
    goto again;
#endif

killed:
    writers--;
dead:
#ifndef KEPT_LOCK
    holder = (holder == me -> HELPERS : holder);
#endif
end:
    skip
}

init
{
    atomic {
        run Helper(0);
        run Helper(1);
        run Helper(2)
    }
}

ltl served_in_the_end { <> served }
