
/*
 * Checkpoints whose slices are of different ages, with one operation between
 * each two slices: a capture, a reversal, a payment under a daily ceiling.
 * After every generation the ledger is opened again, from that generation and
 * the journal behind its first slice, and must know what is left of each
 * hold, what of each payment was taken back, what each capability has spent.
 */

#include "lib_ledger.h"

#include "ron_audit.h"
#include "ron_engine_impl.h"
#include "ron_seed.h"
#include "ron_test.h"


#define ACCOUNTS     600            /* three cells of 256 */
#define THINGS       4
#define HELD         1000000
#define GENERATIONS  30
#define DAY          20500


typedef struct {
    ron_engine_conf_t   conf;
    ron_engine_t       *en;
    uint64_t            rnd;
    uint64_t            n;
    uint64_t            time_ms;
    uint64_t            hold[THINGS];
    uint64_t            left[THINGS];
    uint64_t            paid[THINGS];
    uint64_t            back[THINGS];
    uint64_t            spent[THINGS];
    unsigned            midnights;
    unsigned            at_slice[3];    /* operations in a slice's batch */
} slices_t;


static uint64_t
below(slices_t *s, uint64_t n)
{
    return ron_seed_below(&s->rnd, n);
}


static bool
open_ledger(slices_t *s)
{
    ron_buf_t     why;
    ron_status_t  status;

    ron_buf_init(&why, 0);
    status = ron_engine_open(&s->conf, &s->en, &why);

    while (status == RON_OK) {
        status = ron_engine_follow(s->en, SIZE_MAX, &why);
    }

    if (status == RON_ENOTFOUND) {
        status = ron_engine_acquire(s->en, &why);
    }

    if (status != RON_OK) {
        diag("%.*s", (int) why.len, (const char *) why.data);
    }

    ron_buf_free(&why);

    return status == RON_OK;
}


/* One operation in a batch of its own; the seq that it got, 0 for none. */

static uint64_t
one(slices_t *s, ron_kind_t kind, const char *from, const char *to,
    uint64_t amount, uint64_t ref, const char *cap)
{
    char          id[32];
    uint64_t      seq;
    ron_unit_t    unit, *list[1];
    ron_batch_t  *batch;
    ron_entry_t   e;

    memset(&e, 0, sizeof(e));
    memset(&unit, 0, sizeof(unit));
    snprintf(id, sizeof(id), "id-%llu", (unsigned long long) ++s->n);

    e.kind = kind;
    e.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT | RON_F_ID
               | RON_F_NONCE16 | RON_F_SOURCE;
    e.fields |= to ? RON_F_TO : 0;
    e.fields |= ref ? RON_F_REF : 0;
    e.asset = ron_str("ron");
    e.account = ron_cstr(from);
    e.to = to ? ron_cstr(to) : ron_null_str;
    e.amount = amount;
    e.ref = ref;
    e.id = ron_cstr(id);
    e.source_ms = s->time_ms;
    memcpy(e.nonce16, &s->n, sizeof(s->n));

    unit.type = RON_UNIT_INGEST;
    unit.ops = &e;
    unit.op_n = 1;
    unit.cap = ron_cstr(cap ? cap : "dev:tests");
    unit.cap_daily = cap ? (ron_u128_t) 1 << 80 : 0;
    list[0] = &unit;

    seq = 0;
    s->time_ms++;

    if (ron_engine_decide(s->en, s->time_ms, 1000, list, 1) == RON_OK
        && ron_engine_step(s->en) == RON_OK
        && ron_engine_reap(s->en, &batch) == RON_OK)
    {
        if (batch->status == RON_OK
            && batch->outcomes[0].reason == RON_REASON_OK)
        {
            seq = batch->outcomes[0].results[0].seq;
        }

        ron_engine_release(s->en, batch);
    }

    return seq;
}


static bool
fill(slices_t *s)
{
    bool      good;
    char      name[32];
    unsigned  i;

    good = true;

    for (i = 0; good && i < ACCOUNTS; i++) {
        snprintf(name, sizeof(name), "acc_%03u", i);
        good = one(s, RON_KIND_MINT, name, NULL, 1 << 30, 0, NULL) != 0;
    }

    for (i = 0; good && i < THINGS; i++) {
        s->hold[i] = one(s, RON_KIND_HOLD, "acc_000", "acc_300", HELD, 0,
                         NULL);
        s->left[i] = HELD;
        s->paid[i] = one(s, RON_KIND_TRANSFER, "acc_001", "acc_599", HELD, 0,
                         NULL);
        good = s->hold[i] != 0 && s->paid[i] != 0;
    }

    return good;
}


/* The next operation, and what it must have done. */

static bool
step(slices_t *s)
{
    char      cap[16];
    bool      good;
    uint64_t  i, kind, amount;
    uint32_t  no;

    i = below(s, THINGS);
    kind = below(s, 3);
    amount = 1 + below(s, 9);
    no = s->en->ckpt.no;

    switch (kind) {

    case 0:
        good = one(s, RON_KIND_CAPTURE, "acc_000", NULL, amount, s->hold[i],
                   NULL) != 0;
        s->left[i] -= amount;
        break;

    case 1:
        good = one(s, RON_KIND_REVERSE, "acc_599", "acc_001", amount,
                   s->paid[i], NULL) != 0;
        s->back[i] += amount;
        break;

    default:
        snprintf(cap, sizeof(cap), "dev:cap%u", (unsigned) i);
        good = one(s, RON_KIND_TRANSFER, "acc_002", "acc_400", amount, 0,
                   cap) != 0;
        s->spent[i] += amount;
        break;
    }

    s->at_slice[kind] += s->en->ckpt.no != no;

    return good;
}


static bool
same(slices_t *s)
{
    char          cap[16];
    uint32_t      hold;
    unsigned      i;
    ron_state_t  *st;

    st = &s->en->state;

    for (i = 0; i < THINGS; i++) {
        snprintf(cap, sizeof(cap), "dev:cap%u", i);
        hold = ron_state_hold(st, s->hold[i]);

        if (hold == RON_NONE || ron_hold_at(st, hold)->left != s->left[i]
            || ron_state_reversed(st, s->paid[i]) != s->back[i]
            || ron_state_cap_daily(st, ron_cstr(cap)) != s->spent[i])
        {
            diag("thing %u: left %llu not %llu, reversed %llu not %llu,"
                 " spent %llu not %llu", i, hold == RON_NONE ? 0
                 : (unsigned long long) ron_hold_at(st, hold)->left,
                 (unsigned long long) s->left[i],
                 (unsigned long long) ron_state_reversed(st, s->paid[i]),
                 (unsigned long long) s->back[i],
                 (unsigned long long) ron_state_cap_daily(st, ron_cstr(cap)),
                 (unsigned long long) s->spent[i]);
            return false;
        }
    }

    return true;
}


/*
 * Until a generation is complete and a later row vouches for it.  With
 * `midnight` a day ends when the sums of capabilities are written and the last
 * slice is not: none of them is of the day that the checkpoint ends with.
 */

static bool
generation(slices_t *s, bool midnight)
{
    bool      good;
    uint64_t  gen;

    gen = s->en->ckpt_gen;
    good = true;

    while (good && s->en->ckpt_gen == gen) {

        if (midnight && s->en->ckpt.active && s->en->ckpt.phase == 'C'
            && s->en->ckpt.next > 0)
        {
            s->time_ms += 86400000;
            memset(s->spent, 0, sizeof(s->spent));
            s->midnights++;
            midnight = false;
        }

        good = step(s);
    }

    gen = s->en->ckpt_gen;
    good = good && step(s) && step(s);

    ron_engine_close(s->en);

    return good && open_ledger(s) && s->en->ckpt_gen >= gen && same(s);
}


/*
 * A writer that is stopped behind a last slice vouched for nothing.  The next
 * one goes on with the checkpoint before, and whoever verifies the ledger has
 * no reason to call the complete one edited.
 */

static bool
stopped(slices_t *s)
{
    bool                good;
    uint64_t            gen;
    ron_store_t        *store;
    ron_audit_conf_t    conf;
    ron_audit_report_t  report;

    gen = s->en->ckpt_gen;
    good = true;

    while (good && s->en->ckpt_gen == gen) {
        good = step(s);
    }

    ron_engine_close(s->en);
    good = good && open_ledger(s) && s->en->ckpt_gen == gen && step(s);
    ron_engine_close(s->en);

    memset(&conf, 0, sizeof(conf));
    memset(&report, 0, sizeof(report));

    if (ron_store_open(&s->conf.store, &store) != RON_OK) {
        return false;
    }

    is_status(ron_audit(store, &conf, &report), RON_OK, "it is verified");
    is_str(report.why, "", "nothing is said against it");
    ron_store_close(store);

    return good && open_ledger(s) && same(s);
}


int
main(void)
{
    char      dir[128], url[256];
    unsigned  i;
    slices_t  s;

    memset(&s, 0, sizeof(s));
    ledger_dir("slices", dir, sizeof(dir));
    snprintf(url, sizeof(url), "sqlite:%s", dir);

    s.rnd = 88172645463325252u;
    s.time_ms = (uint64_t) DAY * 86400000;
    ron_engine_conf_init(&s.conf);
    s.conf.store.url = url;
    s.conf.store.create = true;
    s.conf.store.ledger_id = 77;
    s.conf.tag_ram = 1024 * 1024;
    s.conf.key_ram = 1024 * 1024;
    s.conf.checkpoint_n = 1;

    if (!open_ledger(&s)) {
        return 1;
    }

    ok(fill(&s), "a ledger of %u accounts", ACCOUNTS);

    for (i = 0; i < GENERATIONS; i++) {
        if (!generation(&s, i % 3 == 2)) {
            break;
        }
    }

    ok(i == GENERATIONS, "opened from %u of %u generations, and all is known",
       i, GENERATIONS);

    for (i = 0; i < 3; i++) {
        ok(s.at_slice[i] > 5, "%s in the batch of a slice: %u times",
           i == 0 ? "captures" : i == 1 ? "reversals" : "capped payments",
           s.at_slice[i]);
    }

    ok(stopped(&s), "a writer that is stopped behind a last slice");

    ron_engine_close(s.en);
    ok(s.midnights == GENERATIONS / 3, "days that end between two slices: %u",
       s.midnights);

    ledger_shell("rm -rf '%s'", dir);

    return done_testing();
}
