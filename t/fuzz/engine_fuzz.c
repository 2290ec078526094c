
/*
 * Decisions: an input is a history of batches over few accounts, keys, ids
 * and seqs, and is played to the engine and to the naive model of
 * t/unit/lib_model.c.  Both must give every operation the same answer, and
 * the journal, balances, supplies and next expiry that follow from it; a
 * refusal has a row in the table of reasons and leaves nothing behind.
 */

#include <stdio.h>
#include <stdlib.h>

#include "ron_fuzz.h"
#include "lib_history.h"


#define STEPS_MAX  48
#define UNITS_MAX  4
#define OPS_MAX    6


static ron_entry_t  ops[OPS_MAX];


static ron_str_t
pick(fuzz_t *f, const char *const *names, uint32_t n)
{
    return ron_cstr(names[fuzz_u8(f) % n]);
}


static ron_u128_t
an_amount(fuzz_t *f)
{
    uint8_t  how;

    how = fuzz_u8(f);

    if (how < 200) {
        return how % 64;
    }

    return how < 240 ? (ron_u128_t) 1 << (how % 128)
                     : ~(ron_u128_t) 0 - how % 8;
}


static uint64_t
a_ref(fuzz_t *f, uint64_t seq)
{
    uint8_t  how;

    how = fuzz_u8(f);

    return how < 240 ? seq + 3 - ron_min(seq + 3, (uint64_t) how % 32)
                     : how - 240u;
}


static void
an_op(fuzz_t *f, const model_t *m, ron_unit_type_t type, ron_entry_t *op)
{
    bool                refers;
    uint8_t             how;
    uint32_t            wanted;
    const ron_entry_t  *e;

    static const char *const  accounts[] = {
        "a", "b", "c", "a", "b", "shop",
    };
    static const char *const  assets[] = { "ron", "ron", "ron", "roc" };
    static const char *const  ids[] = {
        "i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8", "i9", "i10",
        "i11", "i12", "i13", "i14", "i15",
    };

    memset(op, 0, sizeof(ron_entry_t));
    op->kind = (ron_kind_t) (1 + fuzz_u8(f) % (RON_KIND_N - 1));
    op->asset = pick(f, assets, ron_array_n(assets));
    op->account = pick(f, accounts, ron_array_n(accounts));
    op->to = pick(f, accounts, ron_array_n(accounts));
    op->amount = an_amount(f);
    op->ref = a_ref(f, m->entry_n);
    op->schema = 2;
    op->capref = ron_str("ref");
    wanted = ron_kind_needs(op->kind);

    if (type == RON_UNIT_INGEST) {
        wanted |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
        op->id = pick(f, ids, ron_array_n(ids));
        op->nonce16[0] = fuzz_u8(f) % 64;
        op->source_ms = 1000 + (fuzz_u8(f) & 1);

    } else {
        op->nonce = fuzz_u8(f);
        wanted |= RON_F_NONCE;

        if (op->kind == RON_KIND_CAPTURE || op->kind == RON_KIND_RELEASE) {
            wanted = RON_F_REF
                     | (op->kind == RON_KIND_CAPTURE ? RON_F_AMOUNT : 0);
        }
    }

    how = fuzz_u8(f);

    /* What refers to an entry agrees with it, more often than not. */

    if (how & 1 && (wanted & RON_F_REF) && op->ref >= 1
        && op->ref <= m->entry_n)
    {
        e = &m->entries[op->ref - 1].entry;
        op->asset = e->asset;
        op->account = e->account;
        op->to = e->to;

        if (op->kind == RON_KIND_REVERSE) {
            op->account = e->kind == RON_KIND_TRANSFER ? e->to : e->account;
            op->to = e->account;
            wanted |= e->kind == RON_KIND_TRANSFER
                      ? RON_F_ACCOUNT | RON_F_TO
                      : e->kind == RON_KIND_DEBIT ? RON_F_TO : RON_F_ACCOUNT;
        }

        if (how & 2) {
            op->amount = e->amount;
        }
    }

    if (how & 4 && (op->kind == RON_KIND_HOLD)) {
        wanted |= RON_F_EXPIRY;
        op->expiry_ms = (type == RON_UNIT_INGEST ? m->time_ms : 0)
                        + fuzz_u8(f) * 100u;
    }

    if (how & 8) {
        wanted |= RON_F_MEMO | RON_F_SCHEMA | RON_F_CAPREF;
        memset(op->memo.b, fuzz_u8(f) & 1, RON_HASH_LEN);
        wanted &= type == RON_UNIT_INGEST ? ~(uint32_t) RON_F_MEMO
                  : ~(uint32_t) (RON_F_SCHEMA | RON_F_CAPREF);
    }

    /*
     * And sometimes one fault, but not two: which one would be named first is
     * nobody's promise.
     */

    op->amount = ron_max(op->amount, (ron_u128_t) 1);
    op->nonce = ron_max(op->nonce, UINT64_C(1));
    op->ref = ron_max(op->ref, UINT64_C(1));
    op->account = op->account.len ? op->account : ron_str("c");
    op->to = op->to.len && !ron_str_eq(op->to, op->account)
             ? op->to : ron_str("d");
    op->fields = wanted;

    refers = type != RON_UNIT_INGEST && (wanted & RON_F_REF);

    switch (how < 232 || refers ? 0 : fuzz_u8(f) % 8) {
    case 0:
        break;
    case 1:
        op->amount = 0;
        break;
    case 2:
        op->ref = 0;
        break;
    case 3:
        op->account = ron_str("not an account");
        break;
    case 4:
        op->to = op->account;
        break;
    default:
        op->fields = wanted ^ (1u << (fuzz_u8(f) % 17));
        op->fields |= wanted & RON_F_SOURCE;
    }

    op->fields &= ~(uint32_t) (RON_F_SCOPE | RON_F_KEY | RON_F_POSTING
                               | RON_F_CAP);
}


/* Through the wire form, so that what a field bit does not say is not there. */
static ron_unit_t *
a_unit(fuzz_t *f, history_t *h, const model_t *m)
{
    uint8_t      how;
    ron_buf_t    wire;
    ron_str_t    copy;
    ron_unit_t   u, *unit;
    ron_entry_t *own;

    static const char *const  keys[] = {
        "", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
    };
    static const char *const  caps[] = { "", "k:c1", "k:c1", "k:c2" };

    memset(&u, 0, sizeof(u));
    u.type = (ron_unit_type_t) (1 + fuzz_u8(f) % 3);
    how = fuzz_u8(f);
    u.atomic = (how & 1) != 0;
    u.nonce_strict = (how & 2) != 0;
    u.has_match = (how & 12) == 12 && u.type != RON_UNIT_INGEST;
    u.match = u.has_match ? fuzz_u8(f) % 16 : 0;
    u.source_us = fuzz_u8(f) % 8;
    u.deadline_us = (how & 0x30) == 0x30 ? fuzz_u8(f) : 0;

    if ((how & 0xc0) == 0xc0) {
        u.cap_daily = fuzz_u8(f);
        u.account_daily = fuzz_u8(f) * 2u;
        u.account_total = fuzz_u8(f) * 2u;
    }

    u.key = pick(f, keys, ron_array_n(keys));
    u.cap = pick(f, caps, ron_array_n(caps));

    /* The model takes these for granted. */

    if (u.type != RON_UNIT_INGEST && u.key.len == 0) {
        u.key = ron_str("k1");
    }

    if (u.type == RON_UNIT_BATCH && u.cap.len == 0) {
        u.cap = ron_str("k:c1");
    }

    u.op_n = u.type == RON_UNIT_WALLET ? 1 : 1 + fuzz_u8(f) % OPS_MAX;
    u.ops = ops;

    for (uint32_t i = 0; i < u.op_n; i++) {
        an_op(f, m, u.type, &ops[i]);
    }

    ron_buf_init(&wire, 0);
    RON_ASSERT(ron_unit_encode(&u, &wire) == RON_OK);
    copy.len = wire.len;
    copy.data = memcpy(history_alloc(h, wire.len), wire.data, wire.len);
    ron_buf_free(&wire);

    unit = history_alloc(h, sizeof(ron_unit_t));
    own = history_alloc(h, u.op_n * sizeof(ron_entry_t));
    RON_ASSERT(ron_unit_decode(copy, unit, own, u.op_n) == RON_OK);

    return unit;
}


static void
a_step(fuzz_t *f, history_t *h, const model_t *m, step_t *step)
{
    uint8_t  how;

    how = fuzz_u8(f);
    step->kind = how >= 252 ? STEP_CRASH : how >= 244 ? STEP_REOPEN
                                                      : STEP_DECIDE;
    step->lag = (how & 1) != 0;
    step->time_ms += fuzz_u8(f) * ((how & 6) == 6 ? 1000000u : 50u);
    step->now_us += fuzz_u8(f) & 15;
    step->unit_n = step->kind == STEP_DECIDE ? fuzz_u8(f) % UNITS_MAX : 0;
    step->units = history_alloc(h, (UNITS_MAX + 1) * sizeof(ron_unit_t *));

    for (uint32_t i = 0; i < step->unit_n; i++) {
        step->units[i] = a_unit(f, h, m);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t     f = { data, data + len };
    step_t     step;
    world_t    w;
    history_t  h;

    history_init(&h, 1);
    h.checkpoint_n = 1 + fuzz_u8(&f);
    h.queue_batches = 1 + fuzz_u8(&f) % 3;
    h.key_ttl_ms = (fuzz_u8(&f) & 1) ? 86400000 : 60000;

    h.steps = calloc(STEPS_MAX, sizeof(step_t));
    h.step_max = STEPS_MAX;
    RON_ASSERT(h.steps != NULL);

    memset(&step, 0, sizeof(step));
    step.time_ms = UINT64_C(1700000000000);
    step.now_us = 1;

    RON_ASSERT(world_open(&w, &h));

    while (fuzz_left(&f) > 0 && step.no < STEPS_MAX && w.line == 0) {
        a_step(&f, &h, &w.model, &step);
        h.steps[h.step_n++] = step;
        (void) world_step(&w, &step);
        step.no++;
    }

    (void) world_end(&w);

    if (w.line != 0) {
        history_show(&h);
        fprintf(stderr, "lib_world.c:%d: %s\n", w.line, w.why);
        RON_ASSERT(!"engine and model differ");
    }

    for (unsigned r = 0; r < RON_REASON_N; r++) {
        RON_ASSERT(w.counts[r] == 0
                   || ron_reason_info((ron_reason_t) r)->title[0] != '\0');
    }

    world_close(&w);
    history_free(&h);

    return 0;
}
