/*
 * The smallest of the models, as the concurrency document draws it: one
 * producer with three sends that do not wait, a queue of two, one consumer
 * that looks until it sees the shutdown, which may come at any step.
 *
 * Checked: consumed <= produced, the queue is bounded, no deadlock, no lost
 * wake-up.
 *
 * Variant that must be refuted:
 *   -DUNBOUNDED   the send forgets to look at the bound
 */

#define BOUND  2

byte depth, produced, consumed;
bool shutdown;

active proctype Producer()
{
    byte n;

    do
    :: n == 3 -> break
    :: n < 3 ->
        atomic {
            if
#ifdef UNBOUNDED
            :: true -> depth++; produced++
#else
            :: depth < BOUND -> depth++; produced++
            :: else                         /* refused: Busy */
#endif
            fi;
            n++
        }
    od
}

active proctype Consumer()
{
    do
    :: shutdown -> break
    :: atomic { !shutdown && depth > 0 -> depth--; consumed++ }
    od
}

active proctype Shutdown()
{
    shutdown = true
}

ltl bounded { [] (depth <= BOUND && consumed <= produced) }
