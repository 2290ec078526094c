
/*
 * Money over a thousand accounts: issues, transfers, burns, holds, captures,
 * releases and holds that expire, in batches of all sizes.  After every batch
 * each asset's available and held money is what was minted and not burned, no
 * account has more than there is, and every balance is what a table kept
 * beside says.
 *
 *     RON_SEED=<n>  RON_N=<operations>
 */

#include "ron_seed.h"
#include "ron_test.h"
#include "ron_engine.h"
#include "ron_log.h"

#include <stdlib.h>


#define ACCOUNTS  1000
#define HOLDS     4096
#define BATCH     64
#define T0        UINT64_C(1700000000000)
#define REGION    (256 * 1024 * 1024)


typedef struct {
    uint64_t  seq;
    uint32_t  from;
    uint32_t  to;
    uint64_t  left;
    uint64_t  expires_ms;               /* 0: never */
} held_t;

typedef struct {
    ron_engine_t  *en;
    uint64_t       rnd;
    uint64_t       time_ms;
    uint64_t       source_us;
    uint64_t       ops;                 /* accepted */
    uint64_t       refused;
    uint64_t       by_kind[RON_KIND_N];
    uint64_t       nonce[ACCOUNTS];
    uint64_t       available[ACCOUNTS];
    uint64_t       held[ACCOUNTS];
    uint64_t       minted;
    uint64_t       burned;
    uint64_t       expired;
    held_t         holds[HOLDS];
    uint32_t       holds_n;
    uint64_t       bad;
    char           names[ACCOUNTS][16];
    uint64_t       seen_available;
    uint64_t       seen_held;
    uint64_t       seen_n;
} bank_t;


/* What one operation of a batch asked for. */

typedef struct {
    ron_unit_t    unit;
    ron_unit_t   *self;
    ron_entry_t   e;
    uint32_t      from;
    uint32_t      to;
    uint32_t      hold;
    uint64_t      lives_ms;
    char          key[24];
} asked_t;


static bank_t   bank;
static asked_t  asked[BATCH];


static uint64_t
below(bank_t *b, uint64_t n)
{
    return ron_seed_below(&b->rnd, n);
}


static void
ask(bank_t *b, asked_t *a, uint64_t number)
{
    unsigned      what;
    ron_entry_t  *e;

    memset(a, 0, sizeof(asked_t));
    e = &a->e;
    a->from = (uint32_t) below(b, ACCOUNTS);
    a->to = (uint32_t) ((a->from + 1 + below(b, ACCOUNTS - 1)) % ACCOUNTS);
    a->hold = UINT32_MAX;

    e->fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    e->asset = ron_str("ron");
    e->account = ron_cstr(b->names[a->from]);
    e->amount = 1 + below(b, below(b, 8) ? 100 : 100000);

    what = (unsigned) below(b, 100);

    if (what < 20) {
        e->kind = RON_KIND_MINT;

    } else if (b->holds_n > 0 && what < 40) {
        a->hold = (uint32_t) below(b, b->holds_n);
        e->kind = what < 32 ? RON_KIND_CAPTURE : RON_KIND_RELEASE;
        e->fields = RON_F_REF
                    | (e->kind == RON_KIND_CAPTURE ? RON_F_AMOUNT : 0);
        e->ref = b->holds[a->hold].seq;
        e->account = ron_null_str;
        e->asset = ron_null_str;

        if (below(b, 4)) {
            e->amount = 1 + below(b, b->holds[a->hold].left + 1);
        }

    } else {
        e->kind = what < 70 ? RON_KIND_TRANSFER
                            : what < 80 ? RON_KIND_BURN : RON_KIND_HOLD;
        e->fields |= RON_F_NONCE;
        e->nonce = ++b->nonce[a->from];

        if (e->kind != RON_KIND_BURN) {
            e->fields |= RON_F_TO;
            e->to = ron_cstr(b->names[a->to]);
        }

        if (e->kind == RON_KIND_HOLD && below(b, 2)) {
            e->fields |= RON_F_EXPIRY;
            e->expiry_ms = a->lives_ms = 1 + below(b, 5000);
        }
    }

    snprintf(a->key, sizeof(a->key), "k%llu", (unsigned long long) number);

    a->unit.type = RON_UNIT_WALLET;
    a->unit.key = ron_cstr(a->key);
    a->unit.cap = ron_str("dev:bank");
    a->unit.source_us = ++b->source_us;
    a->unit.op_n = 1;
    a->unit.ops = e;
    a->unit.ctx = a;
}


static void
hold_gone(bank_t *b, uint32_t i)
{
    b->held[b->holds[i].from] -= b->holds[i].left;
    b->available[b->holds[i].from] += b->holds[i].left;
    b->holds[i] = b->holds[--b->holds_n];
}


/* Before a batch: what has expired by its time, in whatever order. */

static void
expire(bank_t *b)
{
    for (uint32_t i = 0; i < b->holds_n; /* void */) {
        if (b->holds[i].expires_ms && b->holds[i].expires_ms <= b->time_ms) {
            hold_gone(b, i);
            b->expired++;

        } else {
            i++;
        }
    }
}


/* The table's own opinion; false: it cannot be done. */

static bool
book(bank_t *b, const asked_t *a, uint64_t seq)
{
    uint64_t   n;
    held_t    *h;
    uint32_t   i;

    n = (uint64_t) a->e.amount;

    switch (a->e.kind) {

    case RON_KIND_MINT:
        b->available[a->from] += n;
        b->minted += n;
        return true;

    case RON_KIND_CAPTURE:
    case RON_KIND_RELEASE:
        for (i = 0; i < b->holds_n && b->holds[i].seq != a->e.ref; i++) {
            /* void */
        }

        if (i == b->holds_n) {
            return false;
        }

        if (a->e.kind == RON_KIND_RELEASE) {
            hold_gone(b, i);
            return true;
        }

        h = &b->holds[i];

        if (n > h->left) {
            return false;
        }

        h->left -= n;
        b->held[h->from] -= n;
        b->available[h->to] += n;

        if (h->left == 0) {
            hold_gone(b, i);
        }

        return true;

    default:
        break;
    }

    if (b->available[a->from] < n) {
        return false;
    }

    b->available[a->from] -= n;

    if (a->e.kind == RON_KIND_TRANSFER) {
        b->available[a->to] += n;

    } else if (a->e.kind == RON_KIND_BURN) {
        b->burned += n;

    } else {
        b->held[a->from] += n;
        RON_ASSERT(b->holds_n < HOLDS);
        b->holds[b->holds_n++] = (held_t) { seq, a->from, a->to, n,
                                            a->lives_ms
                                            ? b->time_ms + a->lives_ms : 0 };
    }

    return true;
}


static ron_status_t
see_supply(void *ctx, const ron_supply_t *s)
{
    bank_t *b = ctx;

    b->bad += s->minted != b->minted || s->burned != b->burned
              || s->available + s->held != s->minted - s->burned;

    return RON_OK;
}


static ron_status_t
see_balance(void *ctx, const ron_balance_t *s)
{
    bank_t    *b = ctx;
    uint32_t   i;

    i = 0;

    for (size_t k = 1; k < s->account.len; k++) {
        i = i * 10 + s->account.data[k] - '0';
    }

    RON_ASSERT(i < ACCOUNTS);

    b->bad += s->available != b->available[i] || s->held != b->held[i]
              || s->available > b->minted || s->held > b->minted;
    b->seen_available += (uint64_t) s->available;
    b->seen_held += (uint64_t) s->held;
    b->seen_n++;

    return RON_OK;
}


/* One batch, its answers against the table, then the whole bank. */

static void
batch(bank_t *b, uint32_t n, bool all)
{
    bool            done;
    asked_t        *a;
    ron_unit_t     *units[BATCH];
    ron_batch_t    *out;
    ron_status_t    status;

    for (uint32_t i = 0; i < n; i++) {
        units[i] = &asked[i].unit;
    }

    do {
        status = ron_engine_decide(b->en, b->time_ms, 1, units, n);
        RON_ASSERT(status == RON_OK || status == RON_AGAIN);
        RON_ASSERT(ron_engine_step(b->en) == RON_OK);
        RON_ASSERT(ron_engine_reap(b->en, &out) == RON_OK);
        RON_ASSERT(out->status == RON_OK);

        if (status == RON_AGAIN) {
            ron_engine_release(b->en, out);
        }

    } while (status == RON_AGAIN);

    expire(b);

    for (uint32_t i = 0; i < out->unit_n; i++) {
        a = out->units[i]->ctx;
        done = book(b, a, out->outcomes[i].results[0].seq);

        b->bad += done != (out->outcomes[i].reason == RON_REASON_OK);
        b->ops += done;
        b->refused += !done;
        b->by_kind[a->e.kind] += done;
    }

    ron_engine_release(b->en, out);

    b->bad += ron_engine_each_supply(b->en, see_supply, b) != RON_OK;

    if (!all) {
        return;
    }

    b->seen_available = 0;
    b->seen_held = 0;
    b->bad += ron_engine_each_balance(b->en, see_balance, b) != RON_OK;
    b->bad += b->seen_available + b->seen_held != b->minted - b->burned;
}


static uint64_t
given(const char *name, uint64_t missing)
{
    const char  *s;

    s = getenv(name);

    return s != NULL ? strtoull(s, NULL, 10) : missing;
}


int
main(void)
{
    void               *region;
    uint64_t            asked_n, seed, total;
    uint32_t            n;
    ron_buf_t           why;
    ron_engine_conf_t   conf;

    ron_log_set(NULL, NULL, RON_LOG_ALERT);

    seed = given("RON_SEED", 1);
    total = given("RON_N", 100000);
    diag("RON_SEED=%llu RON_N=%llu", (unsigned long long) seed,
         (unsigned long long) total);

    memset(&bank, 0, sizeof(bank));
    bank.rnd = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    bank.time_ms = T0;

    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        snprintf(bank.names[i], sizeof(bank.names[i]), "a%u", i);
    }

    region = aligned_alloc(4096, REGION);
    RON_ASSERT(region != NULL);
    memset(region, 0, REGION);

    ron_engine_conf_init(&conf);
    conf.store.url = "memory:256m";
    conf.store.region = region;
    conf.store.region_len = REGION;
    conf.store.create = true;
    conf.store.ledger_id = 7;

    ron_buf_init(&why, 0);
    ok(ron_engine_open(&conf, &bank.en, &why) == RON_OK, "open");

    while (ron_engine_follow(bank.en, 1024 * 1024, &why) == RON_OK) {
        /* void */
    }

    ok(ron_engine_acquire(bank.en, &why) == RON_OK, "the writer");

    for (asked_n = 0; asked_n < total; asked_n += n) {
        n = 1 + (uint32_t) below(&bank, BATCH);
        bank.time_ms += below(&bank, 400);

        for (uint32_t i = 0; i < n; i++) {
            ask(&bank, &asked[i], asked_n + i);
        }

        batch(&bank, n, asked_n % 7 == 0);
    }

    /* a last time, long after: no hold that expires is left */

    bank.time_ms += 100000;
    ask(&bank, &asked[0], asked_n);
    batch(&bank, 1, true);

    is_u64(bank.bad, 0, "%llu operations done, %llu refused: every balance "
           "and every sum is right", (unsigned long long) bank.ops,
           (unsigned long long) bank.refused);
    ok(bank.ops >= total / 4 && bank.refused >= total / 100,
       "both came up often");
    ok(bank.by_kind[RON_KIND_MINT] && bank.by_kind[RON_KIND_TRANSFER]
       && bank.by_kind[RON_KIND_BURN] && bank.by_kind[RON_KIND_HOLD]
       && bank.by_kind[RON_KIND_CAPTURE] && bank.by_kind[RON_KIND_RELEASE]
       && bank.expired, "so did each kind, %llu holds expired",
       (unsigned long long) bank.expired);

    ron_engine_close(bank.en);
    ron_buf_free(&why);
    free(region);

    return done_testing();
}
