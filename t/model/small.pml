/*
 * The smallest of the models, as the concurrency documents draw it: producers
 * with three sends each that do not wait, a queue of two, consumers that look
 * until they see the shutdown, which may come at any step.
 *
 * With one of each it is the ledger's; PRODUCERS=2 CONSUMERS=2 the wallet's,
 * whose workers send and whose answers several take.  DROP_OLDEST is the
 * policy of `preval` and of the rings: the new one goes in, the oldest goes
 * out and is counted; otherwise a full queue refuses.
 *
 * Checked: consumed <= produced, the queue is bounded, nothing is in nobody's
 * count, no deadlock.
 *
 * Variants that must be refuted:
 *   -DUNBOUNDED   the send forgets to look at the bound
 *   -DUNCOUNTED   what is dropped is not counted
 *   -DTORN        a consumer looks first and takes later
 */

#ifndef PRODUCERS
#define PRODUCERS  1
#endif
#ifndef CONSUMERS
#define CONSUMERS  1
#endif

#define BOUND  2

byte depth, produced, consumed, dropped;
bool shutdown;

active [PRODUCERS] proctype Producer()
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
#ifdef DROP_OLDEST
            :: else -> produced++;
#ifndef UNCOUNTED
                dropped++
#endif
#else
            :: else                         /* refused: Busy */
#endif
#endif
            fi;
            n++
        }
    od
}

active [CONSUMERS] proctype Consumer()
{
    do
    :: shutdown -> break
#ifdef TORN
    :: !shutdown && depth > 0 -> atomic { depth--; consumed++ }
#else
    :: atomic { !shutdown && depth > 0 -> depth--; consumed++ }
#endif
    od
}

active proctype Shutdown()
{
    shutdown = true
}

ltl bounded { [] (depth <= BOUND && consumed <= produced
                  && produced == consumed + depth + dropped) }
