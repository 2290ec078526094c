/*
 * One nonce of one account, asked for under several keys at once, while the
 * writer may die at any step.  What is decided on top of something that is
 * not durable is told to nobody before both are: a refusal too.
 *
 * Checked: at most one commit for (account, nonce), whoever is refused is
 * refused by something that is on disk, and everybody hears in the end, since
 * arrivals are finite.
 *
 * Variants that must be refuted:
 *   -DFORGETFUL       a new writer does not read the nonces of the journal
 *   -DEARLY_REFUSAL   a refusal is told before what it rests on is durable
 */

#define WORKERS  2
#define CRASHES  2

chan ask = [2] of { byte };
chan decided = [2] of { byte, bool };       /* key, accepted */

bool used;                                  /* RAM: the nonce is taken */
bool used_disk;
bool inflight[WORKERS];

bool durable[WORKERS];
bool told[WORKERS];
bool refused[WORKERS];
byte commits;
byte life;

#define done(k)  (told[k] || refused[k])

proctype Worker(byte k)
{
    byte since;

    do
    :: done(k) -> break
    :: else ->
        since = life;
        ask!k;
        done(k) || life != since            /* else: again, the same key */
    od;

    assert(!told[k] || durable[k])
}

proctype Sequencer()
{
    byte k;

end:
    do
    :: atomic { nempty(ask) && nfull(decided) -> ask?k;
        if
        :: durable[k] -> told[k] = true     /* a replay */
        :: !durable[k] && inflight[k]       /* joins */
        :: !durable[k] && !inflight[k] && !used ->
            used = true;
            inflight[k] = true;
            decided!k, true
        :: !durable[k] && !inflight[k] && used ->
#ifdef EARLY_REFUSAL
            refused[k] = true;
            assert(used_disk)
#else
            inflight[k] = true;
            decided!k, false
#endif
        fi
        }
    od
}

proctype Committer()
{
    byte k, since;
    bool accepted;

end:
    do
    :: atomic { decided?k, accepted ->
        since = life;
        if
        :: accepted ->
            commits++;
            assert(commits <= 1);
            durable[k] = true;
            used_disk = true
        :: else
        fi };

        /* it may die between the sync and the answer */

        atomic {
            if
            :: since == life && accepted -> told[k] = true
            :: since == life && !accepted ->
                refused[k] = true;
                assert(used_disk)
            :: else
            fi;
            inflight[k] = false
        }
    od
}

proctype Crash()
{
    byte k;
    bool b;

    do
    :: life == CRASHES -> break
    :: break
    :: life < CRASHES ->
        atomic {
            do
            :: nempty(decided) -> decided?k, b
            :: empty(decided) -> break
            od;
            do
            :: nempty(ask) -> ask?k
            :: empty(ask) -> break
            od;
            k = 0;
            do
            :: k == WORKERS -> break
            :: else -> inflight[k] = false; k++
            od;
#ifdef FORGETFUL
            used = false;
#else
            used = used_disk;
#endif
            life++
        }
    od
}

init
{
    atomic {
        run Worker(0);
        run Worker(1);
        run Sequencer();
        run Committer();
        run Crash()
    }
}

ltl drained { <> (done(0) && done(1)) }
