
/*
 * Checkpoint slices.  Any slices at all are loaded or refused; those of a
 * state give that state back, and a changed one another hash: so it is never
 * taken for what the journal vouches for.
 */

#include "ron_fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#define ron_reader_slice  fuzz_reader_slice

#include "../../src/engine/ron_checkpoint.c"


#define SLICES_MAX  64


static ron_buf_t    bodies[SLICES_MAX];
static ron_slice_t  slices[SLICES_MAX];
static uint32_t     slice_n;


ron_status_t
fuzz_reader_slice(ron_reader_t *reader, uint64_t gen, uint32_t no,
    ron_slice_t *slice)
{
    (void) reader;
    memset(slice, 0, sizeof(ron_slice_t));

    if (no >= slice_n || slices[no].gen != gen) {
        return RON_ENOTFOUND;
    }

    *slice = slices[no];

    return RON_OK;
}


static void
take_slices(const ron_state_t *st, uint64_t gen, ron_hash_t *hash)
{
    ron_ckpt_t  ck;

    ron_ckpt_begin(&ck, st, gen);
    slice_n = 0;

    do {
        RON_ASSERT(slice_n < SLICES_MAX);
        ron_buf_reset(&bodies[slice_n]);
        RON_ASSERT(ron_ckpt_slice(&ck, st, 1, &bodies[slice_n],
                                  &slices[slice_n], hash) == RON_OK);
    } while (!slices[slice_n++].last);
}


static ron_status_t
load(ron_state_t *st, uint64_t gen, ron_hash_t *hash)
{
    uint64_t      last_seq;
    ron_status_t  status;

    RON_ASSERT(ron_state_init(st) == RON_OK);
    status = ron_ckpt_load(st, NULL, gen, slice_n, hash, &last_seq);

    if (status != RON_OK) {
        RON_ASSERT(status == RON_ECORRUPT || status == RON_ENOTFOUND
                   || status == RON_EVERSION || status == RON_ENOMEM);
    }

    return status;
}


/* What can be asked of a state can be asked of this one. */
static void
ask(ron_state_t *st)
{
    uint64_t       names;
    uint32_t       hold;
    ron_entry_t    e;
    ron_touch_t    touch = { RON_NONE, RON_NONE };

    (void) ron_state_check(st);
    (void) ron_state_bytes(st, &names);
    (void) ron_state_next_expiry(st);
    (void) ron_state_expired(st, UINT64_MAX, &hold);
    (void) ron_state_account(st, ron_str("a"));
    (void) ron_state_cap_daily(st, ron_str("k:c"));

    memset(&e, 0, sizeof(e));
    e.kind = RON_KIND_MINT;
    e.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    e.asset = ron_str("ron");
    e.account = ron_str("a");
    e.amount = 1;
    e.seq = st->seq + 1;
    e.time_ms = st->time_ms;
    (void) ron_state_apply(st, &e, &touch);
}


static void
fuzz_raw(fuzz_t *f)
{
    ron_hash_t   hash;
    ron_state_t  st;

    slice_n = 1 + fuzz_u8(f) % 6;

    for (uint32_t i = 0; i < slice_n; i++) {
        slices[i].gen = 1;
        slices[i].no = i;
        slices[i].last = i + 1 == slice_n;
        slices[i].seq = fuzz_u8(f);
        slices[i].body = fuzz_bytes(f, i + 1 == slice_n ? SIZE_MAX
                                                        : fuzz_int(f, 2));
    }

    if (load(&st, 1, &hash) == RON_OK) {
        ask(&st);
    }

    ron_state_free(&st);
}


/* A state of many small entries, most of which are possible. */
static void
grow(fuzz_t *f, ron_state_t *st)
{
    char         name[2][16];
    uint64_t     time_ms;
    ron_entry_t  e;
    ron_touch_t  touch;

    static const char  *assets[] = { "ron", "roc", "x" };

    time_ms = 1000;

    for (unsigned i = 0; fuzz_left(f) > 64 && i < 400; i++) {
        touch = (ron_touch_t) { RON_NONE, RON_NONE };
        memset(&e, 0, sizeof(e));
        e.seq = st->seq + 1;
        time_ms += fuzz_u8(f) == 255 ? 40000000 : 1;
        e.time_ms = time_ms;
        e.asset = ron_cstr(assets[fuzz_u8(f) % 3]);
        snprintf(name[0], sizeof(name[0]), "a%u", fuzz_u8(f) % 30);
        snprintf(name[1], sizeof(name[1]), "b%u", fuzz_u8(f) % 30);
        e.account = ron_cstr(name[0]);
        e.amount = 1 + fuzz_u8(f) % 100;
        e.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT | RON_F_WALLET
                   | RON_F_KEY | RON_F_CAP;
        e.key = ron_str("k");
        e.cap = (fuzz_u8(f) & 1) ? ron_str("k:c") : ron_str("k:d");

        if (st->seq == 0 || fuzz_u8(f) % 3 == 0
            || ron_state_account(st, e.account) == RON_NONE
            || ron_state_asset(st, e.asset) == RON_NONE
            || ron_state_balance(st, ron_state_account(st, e.account),
                                 ron_state_asset(st, e.asset)) == RON_NONE
            || ron_state_purse(st, ron_state_balance(st,
                   ron_state_account(st, e.account),
                   ron_state_asset(st, e.asset))).available < e.amount)
        {
            e.kind = RON_KIND_MINT;

        } else {
            e.kind = (fuzz_u8(f) & 1) ? RON_KIND_TRANSFER : RON_KIND_HOLD;
            e.fields |= RON_F_TO | RON_F_NONCE;
            e.to = ron_cstr(name[1]);
            e.nonce = e.seq;

            if (e.kind == RON_KIND_HOLD && (fuzz_u8(f) & 1)) {
                e.fields |= RON_F_EXPIRY;
                e.expiry_ms = time_ms + fuzz_u8(f);
            }
        }

        ron_state_advance(st, e.time_ms);
        RON_ASSERT(ron_state_apply(st, &e, &touch) == RON_OK);
    }

    RON_ASSERT(ron_state_check(st) == RON_OK);
}


static void
fuzz_state(fuzz_t *f)
{
    uint32_t     no;
    ron_buf_t   *b;
    ron_hash_t   hash, loaded, again;
    ron_state_t  st, st2;

    RON_ASSERT(ron_state_init(&st) == RON_OK);
    grow(f, &st);
    take_slices(&st, 3, &hash);
    RON_ASSERT(load(&st2, 3, &loaded) == RON_OK);
    RON_ASSERT(ron_hash_eq(&hash, &loaded));
    RON_ASSERT(ron_state_check(&st2) == RON_OK);
    RON_ASSERT(ron_state_next_expiry(&st) == ron_state_next_expiry(&st2));
    RON_ASSERT(st.seq == st2.seq && st.accounts.n == st2.accounts.n
               && st.hold_n == st2.hold_n && st.asset_n == st2.asset_n);
    ron_state_free(&st2);

    /* One byte of one slice, or its seq. */

    no = fuzz_u8(f) % slice_n;
    b = &bodies[no];

    if (b->len > 0 && (fuzz_u8(f) & 7)) {
        b->data[fuzz_int(f, 2) % b->len] ^= (uint8_t) (1 + fuzz_u8(f) % 255);

    } else {
        slices[no].seq ^= 1;
    }

    if (load(&st2, 3, &again) == RON_OK) {
        RON_ASSERT(!ron_hash_eq(&hash, &again));
        ask(&st2);
    }

    ron_state_free(&st2);
    ron_state_free(&st);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t  f = { data, data + len };

    if (fuzz_u8(&f) & 1) {
        fuzz_state(&f);

    } else {
        fuzz_raw(&f);
    }

    return 0;
}
