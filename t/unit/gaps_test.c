
/*
 * What mutants of the money core showed to be checked by nobody: what the
 * state refuses of a journal that cannot be, what undoing gives back, and
 * refusals at their very bounds.
 */

#include <stdlib.h>

#include "ron_test.h"
#include "ron_digest.h"
#include "ron_engine.h"
#include "ron_state.h"


#define T0  UINT64_C(1700000000000)


static ron_state_t  st;


/* ---- the state ----------------------------------------------------------- */


static ron_entry_t
entry(ron_kind_t kind, const char *account, const char *to, ron_u128_t amount)
{
    ron_entry_t  e;

    memset(&e, 0, sizeof(e));
    e.kind = kind;
    e.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    e.seq = st.seq + 1;
    e.time_ms = ron_max(st.time_ms, T0);
    e.asset = ron_str("ron");
    e.account = ron_cstr(account);
    e.amount = amount;

    if (to != NULL) {
        e.fields |= RON_F_TO;
        e.to = ron_cstr(to);
    }

    return e;
}


static ron_status_t
apply(ron_entry_t e)
{
    ron_touch_t  touch = { RON_NONE, RON_NONE };

    return ron_state_apply(&st, &e, &touch);
}


static ron_entry_t
with_ref(ron_entry_t e, uint64_t ref)
{
    e.fields |= RON_F_REF;
    e.ref = ref;

    return e;
}


static void
start(void)
{
    RON_ASSERT(ron_state_init(&st) == RON_OK);
    RON_ASSERT(apply(entry(RON_KIND_MINT, "a", NULL, 1000)) == RON_OK);
}


static void
test_order(void)
{
    ron_entry_t  e;

    start();
    e = entry(RON_KIND_MINT, "a", NULL, 1);
    e.seq++;
    is_status(apply(e), RON_ECORRUPT, "a seq that skips one");
    e.seq -= 2;
    is_status(apply(e), RON_ECORRUPT, "a seq that was");
    e.seq++;
    e.time_ms--;
    is_status(apply(e), RON_ECORRUPT, "a time that falls");
    e.time_ms++;
    is_status(apply(e), RON_OK, "what follows");
    ron_state_free(&st);
}


static void
test_impossible(void)
{
    ron_entry_t  e;

    start();
    RON_ASSERT(apply(entry(RON_KIND_HOLD, "a", "b", 100)) == RON_OK);
    RON_ASSERT(apply(entry(RON_KIND_HOLD, "a", "b", 500)) == RON_OK);

    is_status(apply(with_ref(entry(RON_KIND_CAPTURE, "a", "b", 101), 2)),
              RON_ECORRUPT, "a capture of one more than is left");
    ron_state_free(&st);

    start();
    RON_ASSERT(apply(entry(RON_KIND_HOLD, "a", "b", 100)) == RON_OK);
    is_status(apply(with_ref(entry(RON_KIND_RELEASE, "a", NULL, 99), 2)),
              RON_ECORRUPT, "a release of less than is left");
    ron_state_free(&st);

    /* A leg may take what there is not: only the supply is left to say so. */

    start();
    e = entry(RON_KIND_CREDIT, "b", NULL, 500);
    e.fields |= RON_F_POSTING;
    e.posting_first = e.seq;
    e.posting_n = 2;
    RON_ASSERT(apply(e) == RON_OK);
    RON_ASSERT(ron_state_check(&st) == RON_ECORRUPT);
    RON_ASSERT(apply(entry(RON_KIND_BURN, "a", NULL, 1000)) == RON_OK);
    is_status(apply(entry(RON_KIND_BURN, "b", NULL, 1)), RON_ECORRUPT,
              "a burn of more than was minted");
    ron_state_free(&st);

    start();
    is_status(ron_state_check(&st), RON_OK, "sums that agree");
    e = entry(RON_KIND_CREDIT, "b", NULL, 500);
    e.fields |= RON_F_POSTING;
    e.posting_first = e.seq;
    e.posting_n = 2;
    RON_ASSERT(apply(e) == RON_OK);
    is_status(ron_state_check(&st), RON_ECORRUPT, "and that do not");
    ron_state_free(&st);
}


static void
test_undo(void)
{
    ron_entry_t  e;

    start();
    RON_ASSERT(apply(entry(RON_KIND_TRANSFER, "a", "b", 100)) == RON_OK);
    RON_ASSERT(apply(with_ref(entry(RON_KIND_REVERSE, "b", "a", 10), 2))
               == RON_OK);

    ron_state_begin(&st);
    e = with_ref(entry(RON_KIND_REVERSE, "b", "a", 20), 2);
    e.time_ms += 5000;
    RON_ASSERT(apply(e) == RON_OK);
    ok(ron_state_reversed(&st, 2) == 30, "both reversals are counted");
    ron_state_rollback(&st);
    ron_state_end(&st);

    ok(ron_state_reversed(&st, 2) == 10, "one of them is taken back");
    is_u64(st.time_ms, T0, "and the time with it");
    is_u64(st.seq, 3, "and the seq");

    ron_state_begin(&st);
    e = entry(RON_KIND_MINT, "a", NULL, 7);
    e.asset = ron_str("roc");
    RON_ASSERT(apply(e) == RON_OK);
    ron_state_rollback(&st);
    ron_state_end(&st);
    ok(st.asset_n == 1 && ron_state_asset(&st, ron_str("roc")) == RON_NONE,
       "an asset that was taken back is unknown");
    ron_state_free(&st);
}


static ron_u128_t
purse(const char *account)
{
    return ron_state_purse(&st, ron_state_balance(&st,
        ron_state_account(&st, ron_cstr(account)), 0)).available;
}


/* Mints or burns, so that this account has so much. */
static void
purse_set(const char *account, ron_u128_t now)
{
    ron_u128_t  was;

    was = purse(account);

    RON_ASSERT(now == was
               || apply(entry(now < was ? RON_KIND_BURN : RON_KIND_MINT,
                              account, NULL, now < was ? was - now
                                                       : now - was))
                  == RON_OK);
}


/* Around 2^63, where an amount no longer fits into its record. */
static void
test_purses(void)
{
    uint32_t    before, bad;
    ron_u128_t  was, now, max;

    start();
    bad = 0;

    for (unsigned bit = 60; bit < 128; bit++) {
        for (unsigned more = 0; more < 3; more++) {
            now = ((ron_u128_t) 1 << bit) + more - 1;
            was = purse("a");
            before = st.purses.n;

            ron_state_begin(&st);
            purse_set("a", now);
            RON_ASSERT(apply(entry(RON_KIND_HOLD, "a", "b", now)) == RON_OK);
            bad += purse("a") != 0 || ron_state_purse(&st, 0).held != now;
            ron_state_rollback(&st);
            ron_state_end(&st);
            bad += purse("a") != was || ron_state_purse(&st, 0).held != 0
                   || st.purses.n != before;

            purse_set("a", now);
            bad += purse("a") != now;
        }
    }

    is_u64(bad, 0, "amounts of 60 to 128 bits, held, undone and had");
    is_u64(st.purses.n, 1, "which took one place elsewhere");

    max = ~(ron_u128_t) 0;
    purse_set("a", max);
    RON_ASSERT(apply(entry(RON_KIND_DEBIT, "b", NULL, 2)) == RON_OK);
    ok(purse("b") == max - 1, "a leg is below nothing for a moment");
    RON_ASSERT(apply(entry(RON_KIND_CREDIT, "b", NULL, 2)) == RON_OK);
    ok(purse("b") == 0, "and comes back");
    is_status(ron_state_check(&st), RON_OK, "supply and balances agree");
    ron_state_free(&st);
}


/* Holds come up by (expiry, seq), in whichever order they were made. */
static void
test_expiries(void)
{
    bool               good;
    uint32_t           no;
    uint64_t           last_ms, last_seq, rnd;
    ron_entry_t        e;
    const ron_hold_t  *h;

    start();
    rnd = 7;

    for (unsigned i = 0; i < 300; i++) {
        rnd = rnd * UINT64_C(6364136223846793005) + 1;
        e = entry(RON_KIND_HOLD, "a", "b", 1);
        e.fields |= RON_F_EXPIRY;
        e.expiry_ms = T0 + (rnd >> 33) % 200;
        RON_ASSERT(apply(e) == RON_OK);
    }

    good = true;
    last_ms = 0;
    last_seq = 0;

    for (unsigned i = 0; i < 300; i++) {
        RON_ASSERT(ron_state_expired(&st, T0 + 1000, &no) == RON_OK);
        h = ron_hold_at(&st, no);
        good = good && (h->expiry_ms > last_ms
                        || (h->expiry_ms == last_ms && h->seq > last_seq));
        last_ms = h->expiry_ms;
        last_seq = h->seq;
        RON_ASSERT(apply(with_ref(entry(RON_KIND_RELEASE, "a", NULL, 1),
                                  last_seq)) == RON_OK);
    }

    ok(good, "300 holds expire by time, then by seq");
    is_status(ron_state_expired(&st, UINT64_MAX, &no), RON_ENOTFOUND,
              "and then there is none");
    ron_state_free(&st);
}


static ron_entry_t
hold_until(uint64_t expiry_ms)
{
    ron_entry_t  e;

    e = entry(RON_KIND_HOLD, "a", "b", 1);
    e.fields |= RON_F_EXPIRY;
    e.expiry_ms = expiry_ms;

    return e;
}


static ron_entry_t
release(uint64_t ref)
{
    return with_ref(entry(RON_KIND_RELEASE, "a", NULL, 1), ref);
}


/*
 * Places of closed holds are dropped once there are many.  A hold whose
 * release was taken back still expires.
 */

static void
test_expiry_undone(void)
{
    uint32_t  n;
    uint64_t  first;

    start();
    first = st.seq + 1;
    RON_ASSERT(apply(hold_until(T0 + 5000)) == RON_OK);

    for (unsigned i = 0; i < 2 + 1024; i++) {
        RON_ASSERT(apply(hold_until(T0 + 9000)) == RON_OK);
        RON_ASSERT(apply(release(st.seq)) == RON_OK);
    }

    n = st.expiries.n;
    ron_state_begin(&st);
    RON_ASSERT(apply(release(first)) == RON_OK);
    RON_ASSERT(apply(hold_until(T0 + 7000)) == RON_OK);
    ron_state_rollback(&st);
    ron_state_end(&st);

    ok(n > 1024 && ron_state_hold(&st, first) != RON_NONE,
       "a hold is there again, among %u places", n);
    is_u64(ron_state_next_expiry(&st), T0 + 5000, "and when it expires");

    ron_state_advance(&st, T0);
    is_u64(st.expiries.n, 1, "then the closed ones' places go");
    is_u64(ron_state_next_expiry(&st), T0 + 5000, "and not its own");
    ron_state_free(&st);
}


/* What units that failed asked for leaves nothing that grows. */

static void
test_units_undone(void)
{
    uint32_t     most;
    ron_entry_t  e;

    start();
    most = 0;
    RON_ASSERT(apply(hold_until(T0 + 5000)) == RON_OK);

    for (unsigned i = 0; i < 100; i++) {
        ron_state_advance(&st, T0);
        ron_state_begin(&st);

        for (unsigned k = 0; k < 100; k++) {
            RON_ASSERT(apply(hold_until(T0 + 9000)) == RON_OK);
        }

        e = entry(RON_KIND_MINT, "a", NULL, 5);
        e.fields |= RON_F_WALLET | RON_F_CAP | RON_F_KEY;
        e.key = ron_str("k");
        e.cap = ron_str("dev:c");
        RON_ASSERT(apply(e) == RON_OK);
        most = (uint32_t) ron_max(most, st.expiries.n);

        ron_state_rollback(&st);
        ron_state_end(&st);
    }

    ok(most < 1500, "at most %u places of holds", most);
    is_u64(st.cap_names.len, 0, "and no name of a capability");
    ron_state_free(&st);
}


/* Replayed after midnight, yesterday's entry is not today's. */
static void
test_cap_day(void)
{
    ron_entry_t  e;

    start();
    ron_state_advance(&st, T0 + RON_DAY_MS);
    e = entry(RON_KIND_MINT, "a", NULL, 5);
    e.fields |= RON_F_WALLET | RON_F_CAP | RON_F_KEY;
    e.key = ron_str("k");
    e.cap = ron_str("dev:c");
    RON_ASSERT(apply(e) == RON_OK);
    ok(ron_state_cap_daily(&st, e.cap) == 0, "of another day: not counted");

    e.seq++;
    e.time_ms = T0 + RON_DAY_MS;
    RON_ASSERT(apply(e) == RON_OK);
    ok(ron_state_cap_daily(&st, e.cap) == 5, "of this day: counted");
    ron_state_free(&st);
}


static void
test_posting_n(void)
{
    ron_entry_t  e;

    start();
    e = entry(RON_KIND_DEBIT, "a", NULL, 5);
    e.fields |= RON_F_POSTING;
    e.posting_first = e.seq;
    e.posting_n = 0;
    is_status(ron_entry_check(&e), RON_EINVAL, "a posting without a leg");
    e.posting_n = 1;
    is_status(ron_entry_check(&e), RON_OK, "of one leg");
    ron_state_free(&st);
}


/* ---- the engine ---------------------------------------------------------- */


static ron_engine_t  *en;
static ron_entry_t    ops[8];
static ron_unit_t     unit;
static uint64_t       now_ms;

static _Alignas(4096) uint8_t  region[1 << 20];


static void
reopen_engine(void)
{
    ron_buf_t          why;
    ron_engine_conf_t  conf;

    ron_engine_conf_init(&conf);
    conf.store.url = "memory:1m";
    conf.store.region = region;
    conf.store.region_len = sizeof(region);
    conf.store.create = true;
    conf.store.ledger_id = 7;
    conf.store.digest = RON_DIGEST_BLAKE3;
    conf.tag_ram = (size_t) 1 << 20;
    conf.key_ram = (size_t) 1 << 20;
    conf.key_ttl_ms = 1000;

    ron_buf_init(&why, 0);
    RON_ASSERT(ron_engine_open(&conf, &en, &why) == RON_OK);

    while (ron_engine_follow(en, 4096, &why) == RON_OK) { /* void */ }

    RON_ASSERT(ron_engine_acquire(en, &why) == RON_OK);
    ron_buf_free(&why);
}


static void
open_engine(void)
{
    memset(region, 0, sizeof(region));
    reopen_engine();
    now_ms = T0;
}


static ron_unit_t *
fresh(ron_unit_type_t type, const char *key)
{
    memset(&unit, 0, sizeof(unit));
    memset(ops, 0, sizeof(ops));
    unit.type = type;
    unit.key = ron_cstr(key);
    unit.ops = ops;

    return &unit;
}


static ron_entry_t *
op(ron_kind_t kind, const char *account, const char *to, ron_u128_t amount)
{
    ron_entry_t  *e;

    e = &ops[unit.op_n++];
    e->kind = kind;
    e->fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    e->asset = ron_str("ron");
    e->account = ron_cstr(account);
    e->amount = amount;

    if (to != NULL) {
        e->fields |= RON_F_TO;
        e->to = ron_cstr(to);
    }

    if (unit.type == RON_UNIT_INGEST) {
        e->fields |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
        e->source_ms = T0;
    }

    return e;
}


static ron_entry_t *
named(ron_entry_t *e, const char *id, uint8_t nonce)
{
    e->id = ron_cstr(id);
    memset(e->nonce16, nonce, RON_NONCE_LEN);

    return e;
}


/* The result of operation `i` of the unit, decided alone. */
static ron_result_t
decided(uint32_t i)
{
    ron_unit_t    *units[1] = { &unit };
    ron_batch_t   *batch;
    ron_result_t   result;

    RON_ASSERT(ron_engine_decide(en, now_ms, 1, units, 1) == RON_OK);
    RON_ASSERT(ron_engine_step(en) == RON_OK);
    RON_ASSERT(ron_engine_reap(en, &batch) == RON_OK);
    RON_ASSERT(batch->status == RON_OK);
    result = batch->outcomes[0].results[i];
    result.bytes.data = NULL;           /* gone with the batch */
    ron_engine_release(en, batch);

    return result;
}


static void
is_refused(ron_result_t r, ron_reason_t reason, ron_detail_t detail,
    const char *what)
{
    ok(r.reason == reason && r.detail == detail && r.seq == 0,
       "%s: %s (%s)", what, ron_reason_info(r.reason)->name,
       ron_detail_text(r.detail));
}


static void
test_wallet(void)
{
    ron_result_t  first, r;

    open_engine();

    fresh(RON_UNIT_WALLET, "");
    (void) op(RON_KIND_MINT, "a", NULL, 100);
    is_refused(decided(0), RON_REASON_MALFORMED, RON_DETAIL_FIELDS,
               "a wallet operation without a key");

    fresh(RON_UNIT_WALLET, "k");
    op(RON_KIND_MINT, "a", NULL, 100)->fields |= RON_F_MEMO;
    first = decided(0);
    ok(first.reason == RON_REASON_OK, "with one");

    ops[0].memo.b[31] = 1;
    is_refused(decided(0), RON_REASON_IDEM_MISMATCH, RON_DETAIL_KEY_REUSED,
               "the same key, another memo");
    ops[0].memo.b[31] = 0;

    fresh(RON_UNIT_WALLET, "z");
    (void) op(RON_KIND_MINT, "a", NULL, 0);
    is_refused(decided(0), RON_REASON_MALFORMED, RON_DETAIL_AMOUNT,
               "an amount of nothing");

    fresh(RON_UNIT_WALLET, "k");
    op(RON_KIND_MINT, "a", NULL, 100)->fields |= RON_F_MEMO;

    now_ms = T0 + 999;
    r = decided(0);
    ok(r.repeat && r.seq == first.seq, "a key in the last of its time");
    now_ms = T0 + 1000;
    r = decided(0);
    ok(!r.repeat && r.seq == first.seq + 1, "and after it");

    fresh(RON_UNIT_WALLET, "h");
    op(RON_KIND_HOLD, "a", "b", 1)->fields |= RON_F_NONCE | RON_F_EXPIRY;
    ops[0].nonce = 1;
    ops[0].expiry_ms = RON_TIME_MAX - now_ms + 1;
    is_refused(decided(0), RON_REASON_MALFORMED, RON_DETAIL_EXPIRY,
               "a hold that would outlive the calendar");
    ops[0].expiry_ms--;
    ok(decided(0).reason == RON_REASON_OK, "one that would not");

    ron_engine_close(en);
}


/* A batch cannot be given a time before that of the ledger. */
static void
test_time(void)
{
    ron_unit_t     *units[1] = { &unit };
    ron_batch_t    *batch;

    open_engine();
    fresh(RON_UNIT_WALLET, "k1");
    (void) op(RON_KIND_MINT, "a", NULL, 100);
    (void) decided(0);
    unit.key = ron_str("k2");
    RON_ASSERT(ron_engine_decide(en, T0 - 5000, 1, units, 1) == RON_OK);
    RON_ASSERT(ron_engine_step(en) == RON_OK);
    RON_ASSERT(ron_engine_reap(en, &batch) == RON_OK);
    is_u64(batch->time_ms, T0, "ledger time does not fall");
    ok(batch->outcomes[0].reason == RON_REASON_OK, "and the batch is decided");
    ron_engine_release(en, batch);
    ron_engine_close(en);
}


static void
test_ingest(void)
{
    ron_u128_t  half;

    open_engine();

    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_MINT, "a", NULL, 100), "m", 1);
    RON_ASSERT(decided(0).reason == RON_REASON_OK);

    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_BURN, "a", NULL, 100), "other", 1);
    is_refused(decided(0), RON_REASON_CONFLICT, RON_DETAIL_TUPLE_REUSED,
               "the same tuple, another kind");

    fresh(RON_UNIT_INGEST, "");
    named(op(RON_KIND_MINT, "b", NULL, 9), "s", 2)->fields |= RON_F_SCHEMA;
    ops[0].schema = 2;
    RON_ASSERT(decided(0).reason == RON_REASON_OK);
    ops[0].schema = 3;
    is_refused(decided(0), RON_REASON_CONFLICT, RON_DETAIL_ID_REUSED,
               "the same id, another schema");

    /* Credits of 2^128 and 1, a debit of 1: equal only if sums may wrap. */

    half = (ron_u128_t) 1 << 127;
    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_DEBIT, "a", NULL, 1), "d", 3);
    (void) named(op(RON_KIND_CREDIT, "b", NULL, half), "c1", 4);
    (void) named(op(RON_KIND_CREDIT, "b", NULL, half), "c2", 5);
    (void) named(op(RON_KIND_CREDIT, "b", NULL, 1), "c3", 6);
    is_refused(decided(0), RON_REASON_CONFLICT, RON_DETAIL_UNBALANCED,
               "a posting whose credits wrap");

    ron_engine_close(en);
}


/* Two postings undone in one unit: each has its own legs. */
static void
test_two_reversals(void)
{
    ron_result_t  r;

    open_engine();
    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_MINT, "a", NULL, 100), "m", 1);
    RON_ASSERT(decided(0).seq == 1);

    for (uint8_t i = 0; i < 2; i++) {
        fresh(RON_UNIT_INGEST, "");
        (void) named(op(RON_KIND_DEBIT, "a", NULL, 5u + i), i ? "d1" : "d0",
                     (uint8_t) (2 + i));
        (void) named(op(RON_KIND_CREDIT, "b", NULL, 5u + i), i ? "c1" : "c0",
                     (uint8_t) (4 + i));
        RON_ASSERT(decided(1).seq == 3u + 2u * i);
    }

    /* Both legs of the first, one of the second. */

    fresh(RON_UNIT_INGEST, "");
    named(op(RON_KIND_REVERSE, "a", NULL, 5), "r1", 10)->ref = 2;
    named(op(RON_KIND_REVERSE, "b", NULL, 5), "r2", 11)->ref = 3;
    named(op(RON_KIND_REVERSE, "b", NULL, 6), "r3", 12)->ref = 5;

    for (unsigned i = 0; i < unit.op_n; i++) {
        ops[i].fields |= RON_F_REF;
    }

    r = decided(0);
    ok(r.reason == RON_REASON_OK && r.seq == 6,
       "the whole reversal stands beside half of another");
    unit.op_n = 1;
    ops[0] = ops[2];
    r = decided(0);
    ok(r.reason == RON_REASON_CONFLICT, "which is refused: %s",
       ron_detail_text(r.detail));

    /* The same leg named twice is not both of them. */

    fresh(RON_UNIT_INGEST, "");
    named(op(RON_KIND_REVERSE, "a", NULL, 3), "t1", 13)->ref = 4;
    named(op(RON_KIND_REVERSE, "a", NULL, 3), "t2", 14)->ref = 4;
    ops[0].fields |= RON_F_REF;
    ops[1].fields |= RON_F_REF;
    r = decided(0);
    ok(r.reason == RON_REASON_CONFLICT, "one leg twice: %s",
       ron_detail_text(r.detail));

    ron_engine_close(en);
}


static ron_u128_t
available(const char *account)
{
    ron_balance_t  b;

    return ron_engine_balance(en, ron_cstr(account), ron_str("ron"), &b)
           == RON_OK ? b.available : 0;
}


static void
refs(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t  ref[3] = { a, b, c };

    for (unsigned i = 0; i < unit.op_n; i++) {
        ops[i].fields |= RON_F_REF;
        ops[i].ref = ref[i];
    }
}


/* One debit, two credits; reversals that fail at their last leg or lack one. */
static void
test_three_legs(void)
{
    ron_result_t  r;

    open_engine();
    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_MINT, "a", NULL, 100), "m", 1);
    RON_ASSERT(decided(0).seq == 1);

    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_DEBIT, "a", NULL, 10), "d", 2);
    (void) named(op(RON_KIND_CREDIT, "b", NULL, 5), "cb", 3);
    (void) named(op(RON_KIND_CREDIT, "c", NULL, 5), "cc", 4);
    RON_ASSERT(decided(2).seq == 4);

    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_REVERSE, "a", NULL, 4), "x1", 5);
    (void) named(op(RON_KIND_REVERSE, "b", NULL, 1), "x2", 6);
    (void) named(op(RON_KIND_REVERSE, "b", NULL, 3), "x3", 7);
    refs(2, 3, 3);
    is_refused(decided(0), RON_REASON_CONFLICT, RON_DETAIL_REVERSE_LEGS,
               "one leg twice, another not at all");

    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_REVERSE, "a", NULL, 5), "y1", 8);
    (void) named(op(RON_KIND_REVERSE, "b", NULL, 4), "y2", 9);
    (void) named(op(RON_KIND_REVERSE, "c", NULL, 1), "y3", 10);
    refs(2, 3, 4);
    r = decided(0);
    ok(r.reason == RON_REASON_OK && r.seq == 5, "half of it is reversed");
    ok(available("a") == 95 && available("b") == 1 && available("c") == 4,
       "and given back");

    /* Enough on the account of the last leg, but not in the leg. */

    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_MINT, "b", NULL, 9), "z0", 14);
    RON_ASSERT(decided(0).seq == 8);

    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_REVERSE, "a", NULL, 3), "z1", 11);
    (void) named(op(RON_KIND_REVERSE, "c", NULL, 1), "z2", 12);
    (void) named(op(RON_KIND_REVERSE, "b", NULL, 2), "z3", 13);
    refs(2, 4, 3);
    is_refused(decided(2), RON_REASON_CONFLICT, RON_DETAIL_REVERSE_OVER,
               "a leg over its amount");
    ok(available("a") == 95 && available("c") == 4,
       "and those before it are taken back");

    /* Whoever has only `to` in the journal is known again after a restart. */

    ron_engine_close(en);
    reopen_engine();
    fresh(RON_UNIT_INGEST, "");
    (void) named(op(RON_KIND_REVERSE, "a", NULL, 5), "again1", 8);
    (void) named(op(RON_KIND_REVERSE, "b", NULL, 4), "again2", 9);
    (void) named(op(RON_KIND_REVERSE, "c", NULL, 1), "again3", 10);
    refs(2, 3, 4);
    r = decided(0);
    ok(r.reason == RON_REASON_OK && r.repeat && r.seq == 5,
       "the same tuples after a restart are repeats");
    ron_engine_close(en);
}


static void
test_aborted(void)
{
    ron_result_t  r;

    open_engine();
    fresh(RON_UNIT_BATCH, "k");
    unit.cap = ron_str("dev:c");
    unit.atomic = true;
    (void) op(RON_KIND_MINT, "a", NULL, 10);
    op(RON_KIND_BURN, "a", NULL, 11)->fields |= RON_F_NONCE;
    ops[1].nonce = 1;
    r = decided(0);
    ok(r.reason == RON_REASON_ABORTED && r.seq == 0 && r.bytes.len == 0,
       "an operation that was taken back has no receipt");
    ok(available("a") == 0, "nor an effect");
    ron_engine_close(en);
}


int
main(void)
{
    test_order();
    test_impossible();
    test_undo();
    test_purses();
    test_expiries();
    test_expiry_undone();
    test_units_undone();
    test_cap_day();
    test_posting_n();
    test_wallet();
    test_time();
    test_ingest();
    test_two_reversals();
    test_three_legs();
    test_aborted();

    return done_testing();
}
