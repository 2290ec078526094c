/*
 * A client that does not wait: two payments of one account, each under its
 * own key and with its own nonce, over two connections that two workers
 * serve.  What the ledger finds when it makes a batch is in any order, and
 * the later nonce may be decided a batch earlier: then the other one is
 * refused, with what is expected, and is sent again under its key.
 *
 * Checked: each key has exactly one effect in the end, nonces ascend, and
 * what meets in one batch is never refused for its order.
 *
 * Variants that must be refuted:
 *   -DBURNT      a refusal is kept under the key, as an effect is
 *   -DUNSORTED   a batch is decided in the order of arrival
 */

#define CLIENTS  2

chan ask = [CLIENTS] of { byte, byte };     /* key, nonce */

byte last;                                  /* nonce of the account */
byte effects[CLIENTS];
byte expected[CLIENTS];
bool answered[CLIENTS];
bool told[CLIENTS];
bool burnt[CLIENTS];
byte refusals;

inline decide(k, n)
{
    if
    :: effects[k] == 1 -> told[k] = true    /* a replay */
    :: effects[k] == 0 && (n <= last || burnt[k]) ->
        expected[k] = last + 1;
        refusals++;
#ifdef BURNT
        burnt[k] = true
#endif
    :: else ->
        assert(n > last);
        last = n;
        effects[k]++;
        told[k] = true
    fi;
    answered[k] = true
}

proctype Client(byte k)
{
    byte nonce = k + 1;

    do
    :: told[k] -> break
    :: else ->
        answered[k] = false;
        ask!k, nonce;
        answered[k];
        if
        :: told[k] -> skip
        :: else -> nonce = expected[k]
        fi
    od;

    assert(effects[k] == 1)
}

proctype Ledger()
{
    byte a, b, x, y, before;
    bool fair;

end:
    do
    :: atomic { nempty(ask) -> ask?a, x;
        refusals = 0;
        if
        :: nempty(ask) -> ask?b, y;         /* both in one batch */
            fair = (x != y && x > last && y > last && !burnt[a] && !burnt[b]);
#ifdef UNSORTED
            decide(a, x);
            decide(b, y);
#else
            if
            :: x <= y -> decide(a, x); decide(b, y)
            :: else -> decide(b, y); decide(a, x)
            fi;
#endif
            assert(!fair || refusals == 0)
        :: decide(a, x)
        fi;
        refusals = 0
        }
    od
}

init
{
    atomic {
        run Client(0);
        run Client(1);
        run Ledger()
    }
}

ltl drained { <> (told[0] && told[1]) }
