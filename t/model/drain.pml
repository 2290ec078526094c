/*
 * Draining: two producers that do not wait, a queue of two, two consumers,
 * and a shutdown that may come at any step.  Intake stops first; what is
 * queued is finished or, past the deadline, given back; then everybody ends.
 *
 * Checked: consumed <= produced, nothing applied twice, every accepted item
 * is either consumed or reported as aborted, no consumer sleeps for ever, and
 * the shutdown is observed by all.
 *
 * Variants that must be refuted:
 *   -DLOST_WAKEUP    a consumer looks, then sleeps, and the wake-up between
 *                    the two is lost
 *   -DINTAKE_LAST    consumers stop before the intake has
 *
 * A producer looks at the shutdown before it sends, not while it does: what it
 * had begun to send still arrives.
 */

#define PRODUCERS  2
#define SENDS      3
#define QUEUE      2
#define CONSUMERS  2

chan queue = [QUEUE] of { byte };

byte produced, consumed, busy, aborted;
bool applied[PRODUCERS * SENDS];
bool closing, late;
byte intake = PRODUCERS;
byte ended;
bool signal[CONSUMERS];

inline wake_all()
{
    d_step { signal[0] = true; signal[1] = true }
}

proctype Producer(byte p)
{
    byte n;

    do
    :: n == SENDS || closing -> break
    :: n < SENDS && !closing ->
        if
        :: atomic { nfull(queue) ->
                    queue!(p * SENDS + n); produced++; wake_all() }
        :: atomic { full(queue) -> busy++ }
        :: closing
        fi;
        n++
    od;

    atomic { intake--; wake_all() }
}

proctype Consumer(byte c)
{
    byte item;
    bool stop;

    do
    :: atomic { queue?[item] && !late -> queue?item;
                assert(!applied[item]); applied[item] = true; consumed++ }
    :: atomic { queue?[item] && late -> queue?item; aborted++ }
#ifdef INTAKE_LAST
    :: atomic { empty(queue) && closing -> break }
#else
    :: atomic { empty(queue) && closing && intake == 0 -> break }
#endif
#ifdef LOST_WAKEUP
    :: empty(queue) && !(closing && intake == 0) ->
        signal[c] = false;
        signal[c]
#else
    :: atomic { empty(queue) && !(closing && intake == 0)
                -> signal[c] = false };
        signal[c]
#endif
    od;

    ended++
}

proctype Shutdown()
{
    closing = true;
    wake_all();

    if
    :: late = true
    :: skip
    fi
}

init
{
    atomic {
        run Producer(0);
        run Producer(1);
        run Consumer(0);
        run Consumer(1);
        run Shutdown()
    };

    /* a deadlock is an invalid end state: this line is then never reached */

    ended == CONSUMERS;
    assert(consumed + aborted == produced);
    assert(consumed <= produced);
    assert(empty(queue))
}
