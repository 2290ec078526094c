/*
 * The write path: producers offer units, the sequencer decides and gives
 * each a seq, the committer makes batches durable, and only then are callers
 * told.  A crash may come at any step, between taking a unit and its sync,
 * and between the sync and the answer, too; what was not durable is gone and
 * its caller asks again under the same key.  Callers that waited for too long
 * do so without a crash.
 *
 * Checked: one writer, no seq twice and none left out, no key has two
 * effects, nothing is acknowledged that is not durable, queues stay bounded,
 * what is on disk after a crash is balanced, and every caller is answered in
 * the end.
 *
 * Variants that must be refuted (see run):
 *   -DEARLY_ANSWER   callers are told before the batch is durable
 *   -DNO_KEYS        a repeat is not recognised
 *   -DFORGETFUL      a new life does not know the keys of the journal
 *   -DSTALE_SEQ      nor where the journal ends
 *   -DTORN           debit and credit are not one write
 *   -DTWO_WRITERS    somebody else appends without the lock
 *   -DUNTOLD         who asks again for what is done is not answered
 */

#define QUEUE      2
#define CRASHES    2

/* What a producer has to get done: the first two units, the second one. */

#define UNITS(p)   (2 - (p))
#define KEY(p, u)  ((p) * 2 + (u))
#define KEYS       3

chan preval = [QUEUE] of { byte };          /* keys offered, not sequenced */
chan commit = [QUEUE] of { byte, byte };    /* key, seq: not durable yet */

byte next_seq = 1;                  /* the sequencer's */
bool decided[KEYS];                 /* RAM: lost by a crash */

byte journal_n;                     /* durable from here on */
bool durable[KEYS];
byte from = KEYS;                   /* money: every effect moves one */
byte to;

bool told[KEYS];
byte life;
byte writers;                       /* who hold the writer's lock */

inline tell(k)
{
    told[k] = true;
    assert(durable[k])
}

inline append(k, s)
{
    assert(writers == 1);
    assert(s == journal_n + 1);
    assert(!durable[k]);
    journal_n++;
    durable[k] = true
}

proctype Producer(byte p)
{
    byte u, since;
    bool again;

    do
    :: u == UNITS(p) -> break
    :: u < UNITS(p) ->
        since = life;
        preval!KEY(p, u);

        if
        :: told[KEY(p, u)] -> u++; again = false
        :: !told[KEY(p, u)] && life != since
        :: !told[KEY(p, u)] && !again -> again = true       /* impatient */
        fi
    od
}

proctype Sequencer()
{
    byte k;

end:
    do
    :: atomic { nempty(preval) && nfull(commit) -> preval?k;
        if
#ifndef NO_KEYS
#ifndef FORGETFUL
        :: durable[k] ->
#ifndef UNTOLD
            tell(k)
#else
            skip
#endif
#endif
        :: decided[k]                       /* joins: told with the first */
#endif
        :: else ->
            commit!k, next_seq;
            decided[k] = true;
            next_seq++;
#ifdef EARLY_ANSWER
            tell(k)
#endif
        fi;
        k = 0 }
    od
}

proctype Committer()
{
    byte k, s, since;

end:
    do
    :: atomic { commit?k, s -> since = life; writers++ };

        /* the sync: it may die before */

        atomic {
            if
            :: since == life ->
                append(k, s);
                from--;
#ifndef TORN
                to++
#endif
            :: else
            fi
        };

#ifdef TORN
        atomic {
            if
            :: since == life -> to++
            :: else
            fi
        };
#endif

        /* and between the sync and the answer */

        atomic {
            if
            :: since == life -> writers--; tell(k)
            :: else
            fi;
            k = 0; s = 0; since = 0
        }
    od
}

#ifdef TWO_WRITERS
proctype Intruder()
{
    byte k, s;

end:
    do
    :: atomic { nempty(preval) -> preval?k; s = journal_n + 1; writers++ };
        atomic {
            if
            :: durable[k]
            :: else -> append(k, s); from--; to++
            fi;
            writers--;
            tell(k)
        }
    od
}
#endif

/*
 * The process dies and comes back: RAM is made anew from the journal, and the
 * kernel gives its lock back.
 */

proctype Crash()
{
    byte i, s;

    do
    :: life == CRASHES -> break
    :: break
    :: life < CRASHES ->
        atomic {
            do
            :: nempty(commit) -> commit?i, s
            :: empty(commit) -> break
            od;
            do
            :: nempty(preval) -> preval?i
            :: empty(preval) -> break
            od;
            i = 0;
            do
            :: i == KEYS -> break
            :: else -> decided[i] = false; i++
            od;
            i = 0;
            s = 0;
#ifndef STALE_SEQ
            next_seq = journal_n + 1;
#endif
            writers = 0;
            life++;
            assert(from + to == KEYS)
        }
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
        run Intruder()
#endif
    }
}

ltl answered { <> (told[0] && told[1] && told[2]) }
