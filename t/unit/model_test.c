
/*
 * The model itself: a few stories with a known end, and what must hold in
 * any history, whatever was asked.
 */

#include "ron_test.h"
#include "lib_history.h"


#define MODEL_HISTORIES  300


static model_t          m;
static model_outcome_t *last;
static ron_entry_t      ops[8];
static uint32_t         op_n;
static uint64_t         now_ms = 1000000;
static uint8_t          nonce_n;


static ron_entry_t *
op(ron_kind_t kind, const char *account, const char *to, uint64_t amount)
{
    ron_entry_t  *e;

    e = &ops[op_n++];
    memset(e, 0, sizeof(ron_entry_t));

    e->kind = kind;
    e->fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    e->asset = ron_str("ron");
    e->account = ron_cstr(account);
    e->amount = amount;

    if (to != NULL) {
        e->fields |= RON_F_TO;
        e->to = ron_cstr(to);
    }

    return e;
}


static ron_entry_t *
entry(const char *id, ron_kind_t kind, const char *account, const char *to,
    uint64_t amount)
{
    ron_entry_t  *e;

    e = op(kind, account, to, amount);
    e->fields |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
    e->id = ron_cstr(id);
    e->nonce16[0] = ++nonce_n;
    e->source_ms = 5;

    return e;
}


static ron_entry_t *
of(ron_entry_t *e, uint64_t ref)
{
    e->fields |= RON_F_REF;
    e->ref = ref;

    return e;
}


static void
numbered(ron_entry_t *e, uint64_t nonce)
{
    e->fields |= RON_F_NONCE;
    e->nonce = nonce;
}


/* Decides what was put together, as one unit of this type. */
static void
ask(ron_unit_type_t type, const char *key, bool atomic)
{
    ron_unit_t   unit;
    ron_unit_t  *units[1] = { &unit };

    memset(&unit, 0, sizeof(unit));
    unit.type = type;
    unit.key = ron_cstr(key);
    unit.cap = ron_str("k:1");
    unit.atomic = atomic;
    unit.op_n = op_n;
    unit.ops = ops;

    model_decide(&m, now_ms, 0, units, 1, &last, NULL);
    op_n = 0;
}


static void
pass_time(uint64_t ms)
{
    now_ms += ms;
    model_decide(&m, now_ms, 0, NULL, 0, NULL, NULL);
}


static void
is_reason(uint32_t i, ron_reason_t reason, ron_detail_t detail,
    const char *what)
{
    model_result_t  *r;

    r = &last->results[i];

    ok(r->reason == reason && r->detail == detail, "%s: %s (%s)", what,
       ron_reason_info(r->reason)->name, ron_detail_text(r->detail));
}


static uint64_t
available(const char *account)
{
    return (uint64_t) model_available(&m, m.entry_n, ron_cstr(account),
                                      ron_str("ron"));
}


static uint64_t
held(const char *account)
{
    return (uint64_t) model_held(&m, m.entry_n, ron_cstr(account),
                                 ron_str("ron"));
}


static void
start(void)
{
    model_free(&m);
    model_init(&m, 7, 10000);
    op_n = 0;
}


static void
test_entries(void)
{
    ron_entry_t  mint;

    start();

    mint = *entry("i1", RON_KIND_MINT, "a", NULL, 100);
    entry("i2", RON_KIND_TRANSFER, "a", "b", 30);
    entry("i3", RON_KIND_BURN, "b", NULL, 31);
    ask(RON_UNIT_INGEST, "", false);

    is_reason(0, RON_REASON_OK, RON_DETAIL_NONE, "a mint");
    is_reason(2, RON_REASON_INSUFFICIENT, RON_DETAIL_AVAILABLE,
              "an overdraft");
    is_u64(available("a"), 70, "the sender's balance");
    is_u64(available("b"), 30, "the receiver's");
    is_u64(model_version(&m, m.entry_n, ron_str("a")), 2,
           "two entries touch a");

    ops[op_n++] = mint;
    ask(RON_UNIT_INGEST, "", false);
    ok(last->results[0].repeat && last->results[0].seq == 1 && m.entry_n == 2,
       "the same entry again is the old one");

    mint.source_ms++;
    ops[op_n++] = mint;
    ask(RON_UNIT_INGEST, "", false);
    is_reason(0, RON_REASON_CONFLICT, RON_DETAIL_ID_REUSED,
              "the same id with another time");

    mint.id = ron_str("i4");
    ops[op_n++] = mint;
    ask(RON_UNIT_INGEST, "", false);
    ok(last->results[0].repeat && last->results[0].seq == 1,
       "the same tuple with another id is the old one");

    mint.kind = RON_KIND_BURN;
    ops[op_n++] = mint;
    ask(RON_UNIT_INGEST, "", false);
    is_reason(0, RON_REASON_CONFLICT, RON_DETAIL_TUPLE_REUSED,
              "the same tuple of another kind");

    mint.kind = RON_KIND_MINT;
    ops[op_n++] = mint;
    ask(RON_UNIT_INGEST, "batch", false);
    ok(!last->results[0].repeat && m.entry_n == 3,
       "the same tuple in a batch with a name is another tuple");

    of(entry("i5", RON_KIND_REVERSE, "b", "a", 20), 2);
    of(entry("i6", RON_KIND_REVERSE, "b", NULL, 11), 2);
    of(entry("i7", RON_KIND_REVERSE, "b", NULL, 10), 2);
    of(entry("i8", RON_KIND_REVERSE, "a", NULL, 1), 2);
    of(entry("i9", RON_KIND_REVERSE, "a", NULL, 1), 1);
    ask(RON_UNIT_INGEST, "", false);
    is_reason(1, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_OVER,
              "more than is left to reverse");
    is_reason(2, RON_REASON_OK, RON_DETAIL_NONE, "the rest");
    is_reason(3, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_SIDE,
              "the wrong side");
    is_reason(4, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_REF,
              "a mint is not reversed");
    is_u64(available("a"), 200, "all is back");
}


static void
test_postings(void)
{
    uint64_t  first;

    start();
    entry("m", RON_KIND_MINT, "a", NULL, 50);
    ask(RON_UNIT_INGEST, "", false);

    entry("d", RON_KIND_DEBIT, "a", NULL, 40);
    entry("x", RON_KIND_MINT, "z", NULL, 1);
    entry("c", RON_KIND_CREDIT, "b", NULL, 25);
    entry("e", RON_KIND_CREDIT, "c", NULL, 15);
    ask(RON_UNIT_INGEST, "", false);

    first = last->results[0].seq;
    ok(first == 2 && last->results[2].seq == 3 && last->results[3].seq == 4
       && last->results[1].seq == 5, "legs follow one another");
    is_u64(m.entries[3].entry.posting_first, first, "they know the first");
    is_u64(m.entries[3].entry.posting_n, 3, "and their number");

    entry("f", RON_KIND_DEBIT, "a", NULL, 5);
    entry("g", RON_KIND_CREDIT, "b", NULL, 4);
    ask(RON_UNIT_INGEST, "", false);
    is_reason(0, RON_REASON_CONFLICT, RON_DETAIL_UNBALANCED, "out of balance");

    entry("f", RON_KIND_DEBIT, "a", NULL, 11);
    entry("g", RON_KIND_CREDIT, "b", NULL, 11);
    ask(RON_UNIT_INGEST, "", false);
    is_reason(0, RON_REASON_INSUFFICIENT, RON_DETAIL_AVAILABLE, "not covered");
    is_reason(1, RON_REASON_CONFLICT, RON_DETAIL_POSTING, "its other leg");

    entry("f", RON_KIND_DEBIT, "n", NULL, 11);
    entry("g", RON_KIND_CREDIT, "n", NULL, 11);
    ask(RON_UNIT_INGEST, "", false);
    is_reason(0, RON_REASON_OK, RON_DETAIL_NONE, "what comes in counts first");

    of(entry("r1", RON_KIND_REVERSE, "a", NULL, 20), 2);
    of(entry("r2", RON_KIND_REVERSE, "b", NULL, 20), 3);
    ask(RON_UNIT_INGEST, "", false);
    is_reason(1, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_LEGS, "a leg missing");

    of(entry("r1", RON_KIND_REVERSE, "a", NULL, 3), 2);
    of(entry("r2", RON_KIND_REVERSE, "b", NULL, 2), 3);
    of(entry("r3", RON_KIND_REVERSE, "c", NULL, 1), 4);
    ask(RON_UNIT_INGEST, "", false);
    is_reason(0, RON_REASON_OK, RON_DETAIL_NONE, "a part of all legs");
    is_u64(available("a"), 13, "a has some back");
    is_u64(available("b"), 23, "from b");
    is_u64(available("c"), 14, "and c");

    entry("n", RON_KIND_MINT, "b", NULL, 100);
    of(entry("s1", RON_KIND_REVERSE, "a", NULL, 38), 2);
    of(entry("s2", RON_KIND_REVERSE, "b", NULL, 24), 3);
    of(entry("s3", RON_KIND_REVERSE, "c", NULL, 14), 4);
    ask(RON_UNIT_INGEST, "", false);
    is_reason(1, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_OVER,
              "more than is left of a leg");
    is_reason(2, RON_REASON_CONFLICT, RON_DETAIL_POSTING, "another leg");
}


static void
test_wallet(void)
{
    uint64_t  hold;

    start();
    op(RON_KIND_MINT, "a", NULL, 100);
    ask(RON_UNIT_WALLET, "k1", false);

    numbered(op(RON_KIND_TRANSFER, "a", "b", 10), 1);
    ask(RON_UNIT_WALLET, "k2", false);
    is_u64(last->results[0].seq, 2, "a transfer");

    numbered(op(RON_KIND_TRANSFER, "a", "b", 10), 1);
    ask(RON_UNIT_WALLET, "k2", false);
    ok(last->replayed && last->results[0].seq == 2, "its replay");

    numbered(op(RON_KIND_TRANSFER, "a", "b", 11), 1);
    ask(RON_UNIT_WALLET, "k2", false);
    is_reason(0, RON_REASON_IDEM_MISMATCH, RON_DETAIL_KEY_REUSED,
              "the key with another body");

    numbered(op(RON_KIND_TRANSFER, "a", "b", 10), 1);
    ask(RON_UNIT_WALLET, "k3", false);
    is_reason(0, RON_REASON_NONCE, RON_DETAIL_NONCE_LOW, "an old nonce");
    is_u64(last->value, 2, "which was expected");

    numbered(op(RON_KIND_HOLD, "a", "b", 50), 5);
    ops[0].fields |= RON_F_EXPIRY;
    ops[0].expiry_ms = 3000;
    ask(RON_UNIT_WALLET, "k4", false);
    hold = last->results[0].seq;
    is_u64(available("a"), 40, "a hold takes from what is available");
    is_u64(held("a"), 50, "and holds it");

    of(op(RON_KIND_CAPTURE, "", NULL, 20), hold);
    ops[0].fields = RON_F_REF | RON_F_AMOUNT;
    ask(RON_UNIT_WALLET, "k5", false);
    is_u64(available("b"), 30, "a capture pays");
    is_u64(model_left(&m, hold), 30, "and leaves the rest");

    of(entry("o", RON_KIND_CAPTURE, "a", NULL, 31), hold);
    of(entry("p", RON_KIND_CAPTURE, "a", NULL, 30), hold + 1);
    of(entry("q", RON_KIND_RELEASE, "b", NULL, 30), hold);
    of(entry("r", RON_KIND_CAPTURE, "a", NULL, 30), hold);
    ask(RON_UNIT_INGEST, "", true);
    is_reason(0, RON_REASON_CONFLICT, RON_DETAIL_HELD, "over the hold");

    of(entry("r", RON_KIND_CAPTURE, "a", NULL, 29), hold);
    of(entry("s", RON_KIND_CAPTURE, "a", NULL, 1), hold);
    ask(RON_UNIT_INGEST, "", true);
    is_reason(1, RON_REASON_OK, RON_DETAIL_NONE, "all of the rest");
    is_u64(held("a"), 0, "which ends the hold");

    numbered(op(RON_KIND_HOLD, "a", "b", 30), 6);
    ops[0].fields |= RON_F_EXPIRY;
    ops[0].expiry_ms = 3000;
    ask(RON_UNIT_WALLET, "k7", false);
    hold = last->results[0].seq;

    pass_time(2999);
    is_u64(held("a"), 30, "the rest stays till it expires");

    pass_time(1);
    is_u64(held("a"), 0, "and then it goes");
    is_u64(available("a"), 40, "back");

    of(op(RON_KIND_RELEASE, "", NULL, 0), hold);
    ops[0].fields = RON_F_REF;
    ask(RON_UNIT_WALLET, "k6", false);
    is_reason(0, RON_REASON_HOLD_CLOSED, RON_DETAIL_HOLD_DONE,
              "there is nothing to release");

    op(RON_KIND_MINT, "a", NULL, 1);
    numbered(op(RON_KIND_BURN, "a", NULL, 1000), 7);
    ask(RON_UNIT_BATCH, "b1", true);
    is_reason(0, RON_REASON_ABORTED, RON_DETAIL_ATOMIC, "all or nothing");
    is_u64(available("a"), 40, "nothing");

    op(RON_KIND_MINT, "a", NULL, 5);
    ask(RON_UNIT_BATCH, "b1", false);
    op(RON_KIND_MINT, "a", NULL, 5);
    ask(RON_UNIT_BATCH, "b1", false);
    ok(last->replayed && available("a") == 45, "a batch again");

    now_ms += 10000;
    op(RON_KIND_MINT, "a", NULL, 5);
    ask(RON_UNIT_BATCH, "b1", false);
    ok(!last->replayed && available("a") == 50, "long after, a new one");

    numbered(op(RON_KIND_TRANSFER, "a", "b", 1), 7);
    ask(RON_UNIT_WALLET, "k2", false);
    ok(!last->replayed && last->results[0].reason == RON_REASON_OK,
       "a key is forgotten after its time");
}


/* Same source time: by first id, wallets by nonce among their places. */
static void
test_order(void)
{
    uint32_t         order[5];
    ron_unit_t       unit[5];
    ron_unit_t      *units[5];
    model_outcome_t *out[5];
    static const uint64_t  nonces[5] = { 3, 0, 2, 1, 0 };
    static const char     *ids[5] = { "", "y", "", "", "x" };

    start();
    memset(unit, 0, sizeof(unit));

    for (unsigned i = 0; i < 5; i++) {
        units[i] = &unit[i];
        unit[i].op_n = 1;
        unit[i].source_us = i == 3 ? 2 : 1;

        if (nonces[i] != 0) {
            unit[i].type = RON_UNIT_WALLET;
            unit[i].key = ron_str("k");
            numbered(op(RON_KIND_TRANSFER, "a", "b", 1), nonces[i]);

        } else {
            unit[i].type = RON_UNIT_INGEST;
            entry(ids[i], RON_KIND_MINT, "a", NULL, 10 + i);
        }

        unit[i].ops = &ops[i];
    }

    op_n = 0;
    model_decide(&m, now_ms, 0, units, 5, out, order);

    /* By time and id: 0 2 4 1 3; then the nonces 3 2 1 turn to 1 2 3. */

    ok(order[0] == 3 && order[1] == 2 && order[2] == 4 && order[3] == 1
       && order[4] == 0, "order %u %u %u %u %u", order[0], order[1],
       order[2], order[3], order[4]);
}


/* Every entry's id and tuple is its own, and no money comes from nowhere. */
static bool
sound(const model_t *w)
{
    ron_u128_t           supply, a, h;
    const model_entry_t *x, *y;

    for (uint64_t i = 0; i < w->entry_n; i++) {
        x = &w->entries[i];
        supply = model_minted(w, w->entry_n, x->entry.asset)
                 - model_burned(w, w->entry_n, x->entry.asset);

        if (x->entry.fields & RON_F_ACCOUNT) {
            a = model_available(w, w->entry_n, x->entry.account,
                                x->entry.asset);
            h = model_held(w, w->entry_n, x->entry.account, x->entry.asset);

            if (a > supply || h > supply - a) {
                return false;
            }
        }

        if (x->entry.seq != i + 1
            || (i > 0 && x->entry.time_ms < w->entries[i - 1].entry.time_ms))
        {
            return false;
        }

        for (uint64_t k = 0; k < i; k++) {
            y = &w->entries[k];

            if ((x->entry.fields & y->entry.fields & RON_F_ID)
                && (ron_str_eq(x->entry.id, y->entry.id)
                    || (ron_str_eq(x->asked.account, y->asked.account)
                        && x->entry.amount == y->entry.amount
                        && memcmp(x->entry.nonce16, y->entry.nonce16,
                                  RON_NONCE_LEN) == 0
                        && ron_str_eq(x->entry.key, y->entry.key))))
            {
                return false;
            }
        }
    }

    return true;
}


static void
test_histories(void)
{
    uint64_t           seed, entries;
    step_t            *step;
    model_t            w;
    history_t          h;
    generator_t        g;
    model_outcome_t   *out[16];

    entries = 0;

    for (seed = 1; seed <= MODEL_HISTORIES; seed++) {
        history_init(&h, seed);
        generator_init(&g, &h);
        g.faults = false;
        model_init(&w, 1, h.key_ttl_ms);

        for (unsigned i = 0; i < 25; i++) {
            step = generator_step(&g, &w);
            model_decide(&w, step->time_ms, step->now_us, step->units,
                         step->unit_n, out, NULL);
        }

        entries += w.entry_n;

        if (!sound(&w)) {
            history_show(&h);
            break;
        }

        model_free(&w);
        generator_free(&g);
        history_free(&h);
    }

    ok(seed > MODEL_HISTORIES, "%d random histories are sound, with %" PRIu64
       " entries", MODEL_HISTORIES, entries);
    ok(entries > MODEL_HISTORIES * 20, "and long enough");
}


int
main(void)
{
    test_entries();
    test_postings();
    test_wallet();
    test_order();
    test_histories();

    model_free(&m);

    return done_testing();
}
