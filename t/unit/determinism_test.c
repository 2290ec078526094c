
/*
 * The same list of (time, units) is the same journal: whatever the batches
 * waited for, whoever committed them, in whichever order the units were
 * presented, however much memory there was, and on every machine.
 */

#include "ron_test.h"
#include "lib_history.h"
#include "ron_port.h"


#define DETERMINISM_N  150


typedef struct {
    const char  *name;
    uint32_t     queue_batches;
    bool         lag;
    bool         threaded;
    bool         sqlite;
    bool         shuffled;
    bool         restarts;
    uint64_t     checkpoint_n;
    size_t       ram;
} variant_t;


static const variant_t  variants[] = {
    { "a batch at a time", 1, false, false, false, false, false, 100000,
      (size_t) 1 << 20 },
    { "two batches ahead", 2, true, false, false, false, false, 100000,
      (size_t) 1 << 20 },
    { "eight batches ahead", 8, true, false, false, false, false, 100000,
      (size_t) 1 << 20 },
    { "a committer thread", 3, true, true, false, false, false, 100000,
      (size_t) 1 << 20 },
    { "a checkpoint at every entry", 2, true, false, false, false, false, 1,
      (size_t) 1 << 20 },
    { "units in another order", 2, true, false, false, true, false, 50,
      (size_t) 1 << 20 },
    { "little memory for tags", 2, true, false, false, true, false, 50, 1 },
    { "much memory for tags", 2, true, false, false, true, false, 50,
      (size_t) 4 << 20 },
    { "a restart between any two batches", 1, false, false, false, false,
      true, 7, (size_t) 1 << 20 },
    { "sqlite, restarts, little memory", 2, false, false, true, true, true, 7,
      1 },
    { "sqlite, a committer thread", 4, true, true, true, true, false, 7,
      (size_t) 1 << 20 },
};


/* ---- one history, played in many ways ------------------------------------ */


/* Draws a history whose units have each their own place in the order. */
static void
draw(history_t *h, uint64_t seed)
{
    uint64_t           tick;
    step_t            *step;
    model_t            m;
    generator_t        g;
    model_outcome_t   *out[16];

    history_init(h, seed);
    generator_init(&g, h);
    g.faults = false;
    model_init(&m, 7, h->key_ttl_ms);

    tick = 0;

    for (unsigned i = 0; i < 20; i++) {
        step = generator_step(&g, &m);

        for (uint32_t k = 0; k < step->unit_n; k++) {
            step->units[k]->source_us = ++tick;
        }

        model_decide(&m, step->time_ms, step->now_us, step->units,
                     step->unit_n, out, NULL);
    }

    model_free(&m);
    generator_free(&g);
}


static void
shuffle(history_t *h)
{
    step_t       *step;
    uint32_t      i, k, other;
    ron_unit_t   *t;
    generator_t   g;

    memset(&g, 0, sizeof(g));
    g.rnd = h->seed + 99;

    for (i = 0; i < h->step_n; i++) {
        step = &h->steps[i];

        for (k = 1; k < step->unit_n; k++) {
            other = (uint32_t) generator_below(&g, k + 1);
            t = step->units[k];
            step->units[k] = step->units[other];
            step->units[other] = t;
        }
    }
}


static bool
play(history_t *h, const variant_t *v, uint64_t *seq, ron_hash_t *root)
{
    bool      good;
    step_t    reopen;
    world_t   w;

    h->queue_batches = v->queue_batches;
    h->threaded = v->threaded;
    h->sqlite = v->sqlite;
    h->checkpoint_n = v->checkpoint_n;
    h->tag_ram = v->ram;
    h->key_ram = v->ram;

    if (v->shuffled) {
        shuffle(h);
    }

    memset(&reopen, 0, sizeof(reopen));
    reopen.kind = STEP_REOPEN;

    good = world_open(&w, h);

    for (uint32_t i = 0; good && i < h->step_n; i++) {
        h->steps[i].lag = v->lag;
        good = world_step(&w, &h->steps[i]);

        if (good && v->restarts) {
            good = world_step(&w, &reopen);
        }
    }

    good = good && world_end(&w);

    if (!good) {
        diag("seed %" PRIu64 ", %s: %s", h->seed, v->name, w.why);
    }

    *seq = w.durable;
    *root = w.root;

    while (w.queued > 0) {
        free(w.queue[--w.queued].outcomes);
    }

    world_close(&w);

    return good;
}


static void
test_variants(void)
{
    bool        same;
    uint64_t    seed, seq, first_seq, entries;
    history_t   h;
    ron_hash_t  root, first_root;

    for (size_t i = 1; i < ron_array_n(variants); i++) {
        same = true;
        entries = 0;

        for (seed = 1; same && seed <= DETERMINISM_N; seed++) {
            if (variants[i].sqlite && seed > DETERMINISM_N / 10) {
                break;
            }

            draw(&h, seed);
            same = play(&h, &variants[0], &first_seq, &first_root)
                   && play(&h, &variants[i], &seq, &root);

            if (same && (seq != first_seq || !ron_hash_eq(&root, &first_root)))
            {
                diag("seed %" PRIu64 ": seq %" PRIu64 ", want %" PRIu64, seed,
                     seq, first_seq);
                same = false;
            }

            entries += first_seq;
            history_free(&h);
        }

        ok(same, "the same journals with %s (%" PRIu64 " entries)",
           variants[i].name, entries);
    }
}


/* ---- one history whose root is known ------------------------------------- */


static history_t    gold;
static ron_unit_t  *gold_unit;
static uint8_t      gold_n;


static void
gold_step(uint64_t time_ms)
{
    step_t  *step;

    gold.steps = realloc(gold.steps, (gold.step_n + 1) * sizeof(step_t));
    RON_ASSERT(gold.steps != NULL);

    step = &gold.steps[gold.step_n++];
    memset(step, 0, sizeof(step_t));
    step->no = gold.step_n - 1;
    step->kind = STEP_DECIDE;
    step->time_ms = time_ms;
    step->now_us = 1;
    step->units = history_alloc(&gold, 8 * sizeof(ron_unit_t *));
}


static void
gold_ask(ron_unit_type_t type, const char *key, const char *cap)
{
    step_t  *step;

    step = &gold.steps[gold.step_n - 1];

    gold_unit = history_alloc(&gold, sizeof(ron_unit_t));
    gold_unit->type = type;
    gold_unit->key = ron_cstr(key);
    gold_unit->cap = ron_cstr(cap);
    gold_unit->source_us = ++gold_n;
    gold_unit->ops = history_alloc(&gold, 8 * sizeof(ron_entry_t));

    step->units[step->unit_n++] = gold_unit;
}


static ron_entry_t *
gold_op(ron_kind_t kind, const char *account, const char *to,
    ron_u128_t amount, uint64_t ref, uint64_t nonce)
{
    ron_entry_t  *e;

    e = &gold_unit->ops[gold_unit->op_n++];
    e->kind = kind;

    if (account != NULL) {
        e->fields |= RON_F_ACCOUNT | RON_F_ASSET;
        e->account = ron_cstr(account);
        e->asset = ron_str("ron");
    }

    if (to != NULL) {
        e->fields |= RON_F_TO;
        e->to = ron_cstr(to);
    }

    e->fields |= amount != 0 ? RON_F_AMOUNT : 0;
    e->amount = amount;
    e->fields |= ref != 0 ? RON_F_REF : 0;
    e->ref = ref;
    e->fields |= nonce != 0 ? RON_F_NONCE : 0;
    e->nonce = nonce;

    return e;
}


static ron_entry_t *
gold_entry(const char *id, ron_kind_t kind, const char *account,
    const char *to, ron_u128_t amount, uint64_t ref)
{
    ron_entry_t  *e;

    e = gold_op(kind, account, to, amount, ref, 0);
    e->fields |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
    e->id = ron_cstr(id);
    e->source_ms = UINT64_C(1700000000000) + ++gold_n;
    memset(e->nonce16, gold_n, RON_NONCE_LEN);

    return e;
}


/* Every kind, both ways in, a refusal among them, an expiry, a long name. */
static void
gold_make(ron_digest_t digest)
{
    ron_entry_t  *e;

    history_init(&gold, 1);
    gold.digest = digest;
    gold_n = 0;

    gold_step(UINT64_C(1700000000000));
    gold_ask(RON_UNIT_INGEST, "genesis", "dev:root");
    gold_entry("m1", RON_KIND_MINT, "alice", NULL, 1000, 0);
    e = gold_entry("m2", RON_KIND_MINT, "treasury/main@bank.example", NULL,
                   ~(ron_u128_t) 0 - 5000, 0);
    e->fields |= RON_F_SCHEMA | RON_F_CAPREF;
    e->schema = 3;
    e->capref = ron_str("order-66");
    gold_entry("b0", RON_KIND_BURN, "nobody", NULL, 1, 0);

    gold_step(UINT64_C(1700000001000));
    gold_ask(RON_UNIT_WALLET, "key-1", "dev:alice");
    e = gold_op(RON_KIND_TRANSFER, "alice", "bob", 250, 0, 1);
    e->fields |= RON_F_MEMO;
    memset(e->memo.b, 0xa5, RON_HASH_LEN);
    gold_ask(RON_UNIT_WALLET, "key-2", "dev:alice");
    e = gold_op(RON_KIND_HOLD, "alice", "shop", 100, 0, 2);
    e->fields |= RON_F_EXPIRY;
    e->expiry_ms = 5000;
    gold_ask(RON_UNIT_WALLET, "key-1", "dev:bob");
    gold_op(RON_KIND_BURN, "bob", NULL, 50, 0, RON_NONCE_MAX);

    gold_step(UINT64_C(1700000002000));
    gold_ask(RON_UNIT_BATCH, "batch-1", "dev:alice");
    gold_op(RON_KIND_MINT, "carol", NULL, 7, 0, 0);
    gold_op(RON_KIND_CAPTURE, NULL, NULL, 60, 4, 0);
    gold_op(RON_KIND_TRANSFER, "alice", "carol", 100000, 0, 9);
    gold_ask(RON_UNIT_INGEST, "", "");
    gold_entry("d1", RON_KIND_DEBIT, "alice", NULL, 30, 0);
    gold_entry("c1", RON_KIND_CREDIT, "bob", NULL, 10, 0);
    gold_entry("c2", RON_KIND_CREDIT, "carol", NULL, 20, 0);
    gold_entry("h1", RON_KIND_HOLD, "bob", "shop", 5, 0);
    gold_entry("t1", RON_KIND_TRANSFER, "carol", "bob", 3, 0);

    gold_step(UINT64_C(1700000006000));
    gold_ask(RON_UNIT_INGEST, "end", "dev:root");
    gold_entry("r1", RON_KIND_REVERSE, "alice", NULL, 30, 8);
    gold_entry("r2", RON_KIND_REVERSE, "bob", NULL, 10, 9);
    gold_entry("r3", RON_KIND_REVERSE, "carol", NULL, 20, 10);
    gold_entry("l1", RON_KIND_RELEASE, "bob", NULL, 5, 11);
    gold_entry("r4", RON_KIND_REVERSE, "bob", "carol", 2, 12);
}


/* The seqs of the journal as it is read back: 1, 2, 3, and nothing missing. */
static ron_status_t
count_row(void *ctx, const ron_row_t *row)
{
    ron_rd_t     rd;
    uint64_t    *next;
    ron_str_t    bytes;
    ron_entry_t  e;

    next = ctx;
    ron_rd_init(&rd, row->body);

    while (ron_body_next(&rd, &bytes) == RON_OK) {
        if (ron_entry_decode(bytes, &e) != RON_OK || e.seq != *next) {
            return RON_ECORRUPT;
        }

        (*next)++;
    }

    return RON_OK;
}


static void
test_golden(ron_digest_t digest, const char *want)
{
    bool           good;
    char           hex[2 * RON_HASH_LEN + 1];
    world_t        w;
    uint64_t       next, from;
    ron_status_t   status;
    ron_reader_t  *reader;

    gold_make(digest);

    good = world_open(&w, &gold);

    for (uint32_t i = 0; good && i < gold.step_n; i++) {
        good = world_step(&w, &gold.steps[i]);
    }

    good = good && world_end(&w);

    ok(good, "the known history, %s: %s", ron_digest_name(digest), w.why);

    if (good) {
        is_u64(w.durable, 18, "its entries");

        for (unsigned i = 0; i < RON_HASH_LEN; i++) {
            snprintf(hex + 2 * i, 3, "%02x", w.root.b[i]);
        }

        is_str(hex, want, "its root");

        status = ron_reader_open(ron_engine_store(w.engine), &reader);
        next = 1;
        from = 1;

        while (status == RON_OK) {
            status = ron_reader_rows(reader, from, 1, count_row, &next, &from);
        }

        ok(status == RON_ENOTFOUND && next == 19, "no seq is missing");

        ron_reader_close(reader);
    }

    world_close(&w);
    history_free(&gold);
}


int
main(void)
{
    test_golden(RON_DIGEST_BLAKE3, "37563366d5020320b0562c0e755f6352"
                                  "c5b0311f1bb370991cd2a31c12dcc3ad");
    test_golden(RON_DIGEST_SHA256, "fa612a47f8c6b0c191cab0c5ada37a80"
                                  "f156e5530d8e8589c01ce5ce970c427c");
    test_variants();

    return done_testing();
}
