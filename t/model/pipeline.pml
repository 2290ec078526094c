/*
 * The write path: producers offer units, the sequencer decides and gives
 * each a seq, the committer makes batches durable, and only then are callers
 * told.  A crash may come at any step; what was not durable is gone and its
 * caller asks again under the same key.
 *
 * Checked: one writer, no seq twice and none left out, no key has two
 * effects, nothing acknowledged is lost, queues stay bounded, money is
 * conserved, and every caller is answered in the end.
 *
 * Variants that must be refuted (see run):
 *   -DEARLY_ANSWER     callers are told before the batch is durable
 *   -DNO_KEYS          a repeat is not recognised
 *   -DTWO_WRITERS      a second committer appends without the lock
 */

#define PRODUCERS  2
#define UNITS      2                /* units a producer has to get done */
#define QUEUE      2
#define CRASHES    2

#define KEY(p, u)  ((p) * UNITS + (u))
#define KEYS       (PRODUCERS * UNITS)

chan preval = [QUEUE] of { byte };          /* keys offered, not sequenced */
chan commit = [QUEUE] of { byte, byte };    /* key, seq: not durable yet */

byte next_seq = 1;                  /* the sequencer's */
bool decided[KEYS];                 /* RAM: lost by a crash */

byte journal_n;                     /* durable from here on */
byte journal_key[KEYS + 4];
bool durable[KEYS];
byte effects[KEYS];

bool told[KEYS];
byte from = KEYS;                   /* money: every effect moves one */
byte to;

byte crashes;
byte writers;
bool up = true;

inline append(k, s)
{
    d_step {
        assert(s == journal_n + 1);
        journal_key[journal_n] = k;
        journal_n++;
        durable[k] = true;
        effects[k]++;
        from--;
        to++;
        assert(effects[k] == 1);
        assert(from + to == KEYS);
    }
}

proctype Producer(byte p)
{
    byte u, k;

    do
    :: u == UNITS -> break
    :: else ->
        k = KEY(p, u);

        do
        :: told[k] -> break
        :: !told[k] && up && nfull(preval) -> preval!k
        :: !told[k] && timeout -> preval!k
        od;

        assert(durable[k]);
        u++
    od
}

proctype Sequencer()
{
    byte k;

end:
    do
    :: atomic { up && nempty(preval) && nfull(commit) -> preval?k };
#ifndef NO_KEYS
        if
        :: atomic { durable[k] -> told[k] = true }
        :: !durable[k] && decided[k]        /* joins: answered with it */
        :: else ->
#endif
            d_step {
                commit!k, next_seq;
                decided[k] = true;
                next_seq++
            }
#ifdef EARLY_ANSWER
            told[k] = true;
#endif
#ifndef NO_KEYS
        fi
#endif
    od
}

proctype Committer()
{
    byte k, s;

end:
    do
    :: atomic { up && commit?[k, s] -> commit?k, s; writers++ };
        assert(writers == 1);

        /* fsync: a crash may come before it, or between it and the answer */

        if
        :: up && s == journal_n + 1 -> append(k, s)
        :: else                             /* of a life that is over */
        fi;

        atomic {
            writers--;
            if
            :: up && durable[k] -> told[k] = true
            :: else
            fi
        }
    od
}

#ifdef TWO_WRITERS
proctype Intruder()
{
    byte k;

end:
    do
    :: atomic { writers < 2 && nempty(commit) -> writers++ };
        assert(writers == 1);
        writers--
    od
}
#endif

/* The process dies and comes back: RAM is made anew from the journal. */

proctype Crash()
{
    byte i, k, s;

    do
    :: crashes == CRASHES -> break
    :: crashes < CRASHES ->
        atomic {
            writers == 0;
            up = false;
            crashes++;
            do
            :: nempty(commit) -> commit?k, s
            :: empty(commit) -> break
            od;
            do
            :: nempty(preval) -> preval?k
            :: empty(preval) -> break
            od;
            i = 0;
            do
            :: i == KEYS -> break
            :: else -> decided[i] = durable[i]; i++
            od;
            next_seq = journal_n + 1;
            up = true
        }
    :: break
    od
}

init
{
    atomic {
        run Producer(0);
        run Producer(1);
        run Sequencer();
        run Committer();
        run Crash();
#ifdef TWO_WRITERS
        run Intruder();
#endif
    }
}

#define all_told  (told[0] && told[1] && told[2] && told[3])

ltl nothing_lost { [] ((told[0] -> durable[0]) && (told[1] -> durable[1])
                       && (told[2] -> durable[2]) && (told[3] -> durable[3])) }
