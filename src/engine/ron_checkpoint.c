
#include "ron_checkpoint.h"
#include "ron_digest.h"

#include <stdlib.h>


#define RON_SLICE_RECS  512


static void ron_ckpt_put_amount(ron_buf_t *out, ron_u128_t v);
static ron_u128_t ron_ckpt_rd_amount(ron_rd_t *rd);
static uint32_t ron_ckpt_range(const ron_ckpt_t *ck, const ron_state_t *st,
    uint32_t size);
static uint32_t ron_ckpt_total(uint8_t phase, const ron_state_t *st);
static uint8_t ron_ckpt_next_phase(uint8_t phase);
static void ron_ckpt_put_account(const ron_state_t *st, uint32_t no,
    ron_buf_t *out);
static void ron_ckpt_put_hold(const ron_state_t *st, uint32_t no,
    ron_buf_t *out);
static void ron_ckpt_put_reversed(const ron_state_t *st, uint32_t no,
    ron_buf_t *out);
static void ron_ckpt_put_cap(const ron_state_t *st, uint32_t no,
    ron_buf_t *out);
static void ron_ckpt_put_assets(const ron_state_t *st, ron_buf_t *out);
static ron_status_t ron_ckpt_load_slice(ron_state_t *st,
    const ron_slice_t *slice);
static ron_status_t ron_ckpt_load_last(ron_state_t *st,
    const ron_slice_t *slice);
static void ron_ckpt_rd_account(ron_state_t *st, ron_rd_t *rd);
static void ron_ckpt_rd_hold(ron_state_t *st, ron_rd_t *rd, uint64_t as_of);
static void ron_ckpt_rd_reversed(ron_state_t *st, ron_rd_t *rd,
    uint64_t as_of);
static void ron_ckpt_rd_cap(ron_state_t *st, ron_rd_t *rd, uint64_t as_of,
    bool keep);
static void ron_ckpt_hash(ron_blake3_t *h, const ron_slice_t *slice);


void
ron_ckpt_begin(ron_ckpt_t *ck, const ron_state_t *st, uint64_t gen)
{
    ck->active = true;
    ck->phase = 'A';
    ck->next = 0;
    ck->no = 0;
    ck->gen = gen;
    ck->begun_seq = st->seq;
    ck->begun_ms = st->time_ms;
    ck->caps_purges = st->caps_purges;

    ron_blake3_init(&ck->hash);
}


static uint32_t
ron_ckpt_total(uint8_t phase, const ron_state_t *st)
{
    switch (phase) {
    case 'A':
        return st->accounts.n;
    case 'H':
        return st->holds.n;
    case 'R':
        return st->reversed.n;
    case 'C':
        return st->caps.n;
    default:
        return 0;
    }
}


static uint8_t
ron_ckpt_next_phase(uint8_t phase)
{
    return phase == 'A' ? 'H' : phase == 'H' ? 'R' : phase == 'R' ? 'C' : 'S';
}


/* How many records the next slice takes, from ck->next on. */

static uint32_t
ron_ckpt_range(const ron_ckpt_t *ck, const ron_state_t *st, uint32_t size)
{
    uint32_t  max, total;

    max = size * (ck->phase == 'A' ? RON_SLICE_ACCOUNTS : RON_SLICE_RECS);
    total = ron_ckpt_total(ck->phase, st);

    return total > ck->next ? ron_min(total - ck->next, max) : 0;
}


ron_status_t
ron_ckpt_slice(ron_ckpt_t *ck, const ron_state_t *st, uint32_t size,
    ron_buf_t *out, ron_slice_t *slice, ron_hash_t *hash)
{
    static void (*const put[])(const ron_state_t *, uint32_t, ron_buf_t *) = {
        ['A'] = ron_ckpt_put_account,
        ['H'] = ron_ckpt_put_hold,
        ['R'] = ron_ckpt_put_reversed,
        ['C'] = ron_ckpt_put_cap,
    };

    size_t    begin;
    uint32_t  n;

    RON_ASSERT(ck->active && size >= 1 && size <= RON_SLICE_UNITS_MAX);

    /* A purge renumbers capability sums: those written are no range now. */

    if (ck->phase == 'C' && ck->caps_purges != st->caps_purges) {
        ck->next = 0;
        ck->caps_purges = st->caps_purges;
    }

    while (ck->phase != 'S' && ron_ckpt_range(ck, st, size) == 0) {
        ck->phase = ron_ckpt_next_phase(ck->phase);
        ck->next = 0;
    }

    begin = out->len;
    n = ron_ckpt_range(ck, st, size);

    ron_buf_put_u8(out, ck->phase);
    ron_buf_put_varint(out, st->time_ms);
    ron_buf_put_varint(out, ck->next);
    ron_buf_put_varint(out, n);

    if (ck->phase == 'S') {
        ron_ckpt_put_assets(st, out);

    } else {
        for (uint32_t i = 0; i < n; i++) {
            put[ck->phase](st, ck->next + i, out);
        }
    }

    if (ron_buf_status(out) != RON_OK) {
        return ron_buf_status(out);
    }

    slice->gen = ck->gen;
    slice->no = ck->no++;
    slice->last = (ck->phase == 'S');
    slice->seq = st->seq;
    slice->body = (ron_str_t) { out->len - begin, out->data + begin };
    ck->next += n;

    /* Cells are written once and whole: accounts that came later replay. */

    if (ck->phase == 'A' && ck->next % RON_SLICE_ACCOUNTS != 0) {
        ck->phase = ron_ckpt_next_phase(ck->phase);
        ck->next = 0;
    }

    ron_ckpt_hash(&ck->hash, slice);

    if (slice->last) {
        ron_blake3_final(&ck->hash, hash);
        ck->active = false;
    }

    return RON_OK;
}


static void
ron_ckpt_hash(ron_blake3_t *h, const ron_slice_t *slice)
{
    ron_blake3_update_u64(h, slice->gen);
    ron_blake3_update_u64(h, slice->no);
    ron_blake3_update_u64(h, slice->last);
    ron_blake3_update_u64(h, slice->seq);
    ron_blake3_update_u64(h, slice->body.len);
    ron_blake3_update(h, slice->body.data, slice->body.len);
}


static void
ron_ckpt_put_amount(ron_buf_t *out, ron_u128_t v)
{
    ron_buf_put_varint(out, (uint64_t) v);
    ron_buf_put_varint(out, (uint64_t) (v >> 64));
}


static ron_u128_t
ron_ckpt_rd_amount(ron_rd_t *rd)
{
    uint64_t  low, high;

    low = ron_rd_varint(rd);
    high = ron_rd_varint(rd);

    return (ron_u128_t) high << 64 | low;
}


static void
ron_ckpt_put_account(const ron_state_t *st, uint32_t no, ron_buf_t *out)
{
    uint32_t                  i, n;
    ron_purse_t               purse;
    const ron_account_t      *a;
    const ron_balance_rec_t  *b;

    a = ron_account_at(st, no);
    n = 0;

    for (i = a->first; i != RON_NONE; i = ron_balance_at(st, i)->next) {
        n++;
    }

    ron_buf_put_lstr(out, ron_name_at(st, a->name));
    ron_buf_put_varint(out, a->nonce);
    ron_buf_put_varint(out, a->version);
    ron_buf_put_varint(out, a->day);
    ron_ckpt_put_amount(out, ron_cell_get(st, a->daily).available);
    ron_buf_put_varint(out, n);

    for (i = a->first; i != RON_NONE; i = b->next) {
        b = ron_balance_at(st, i);
        ron_buf_put_varint(out, b->asset);
        purse = ron_cell_get(st, b->purse);
        ron_ckpt_put_amount(out, purse.available);
        ron_ckpt_put_amount(out, purse.held);
    }
}


static void
ron_ckpt_put_hold(const ron_state_t *st, uint32_t no, ron_buf_t *out)
{
    const ron_hold_t  *h;

    h = ron_hold_at(st, no);

    ron_buf_put_varint(out, h->seq);

    if (h->seq != 0) {
        ron_buf_put_varint(out, h->expiry_ms);
        ron_ckpt_put_amount(out, h->left);
        ron_buf_put_varint(out, h->account);
        ron_buf_put_varint(out, h->to);
        ron_buf_put_varint(out, h->asset);
    }
}


static void
ron_ckpt_put_reversed(const ron_state_t *st, uint32_t no, ron_buf_t *out)
{
    const ron_reversed_t  *r;

    r = ron_pool_at(&st->reversed, no);

    ron_buf_put_varint(out, r->seq);
    ron_ckpt_put_amount(out, r->total);
}


static void
ron_ckpt_put_cap(const ron_state_t *st, uint32_t no, ron_buf_t *out)
{
    const ron_cap_sum_t  *c;

    c = ron_pool_at(&st->caps, no);

    ron_buf_put_lstr(out, ron_cap_name_at(st, c->name));
    ron_ckpt_put_amount(out, c->sum);
}


static void
ron_ckpt_put_assets(const ron_state_t *st, ron_buf_t *out)
{
    const ron_asset_t  *a;

    ron_buf_put_varint(out, st->caps_day);
    ron_buf_put_varint(out, st->accounts.n);
    ron_buf_put_varint(out, st->asset_n);

    for (uint32_t i = 0; i < st->asset_n; i++) {
        a = &st->assets[i];
        ron_buf_put_lstr(out, (ron_str_t) { a->name_len,
                                            (const uint8_t *) a->name });
        ron_ckpt_put_amount(out, a->minted);
        ron_ckpt_put_amount(out, a->burned);
    }
}


/*
 * The last slice is read first, for the assets that the others name by
 * number; the hash runs over all of them in their own order.
 */

ron_status_t
ron_ckpt_load(ron_state_t *st, ron_reader_t *reader, uint64_t gen,
    uint32_t count, ron_hash_t *hash, uint64_t *last_seq)
{
    uint64_t      first_seq, first_ms;
    ron_rd_t      rd;
    ron_slice_t   slice;
    ron_blake3_t  h;
    ron_status_t  status;

    memset(hash, 0, sizeof(ron_hash_t));
    *last_seq = 0;
    first_seq = 0;
    first_ms = 0;

    status = ron_reader_slice(reader, gen, count - 1, &slice);
    if (status == RON_OK) {
        *last_seq = slice.seq;
        status = slice.last ? ron_ckpt_load_last(st, &slice) : ron_corrupt();
    }

    if (status != RON_OK) {
        return status;
    }

    ron_blake3_init(&h);

    for (uint32_t no = 0; no < count; no++) {
        status = ron_reader_slice(reader, gen, no, &slice);
        if (status != RON_OK) {
            return status;
        }

        if (slice.no != no || slice.gen != gen
            || slice.last != (no == count - 1))
        {
            return ron_corrupt();
        }

        ron_ckpt_hash(&h, &slice);

        if (no == 0) {
            ron_rd_init(&rd, slice.body);
            (void) ron_rd_u8(&rd);
            first_ms = ron_rd_varint(&rd);
            first_seq = slice.seq;
        }

        status = slice.last ? RON_OK : ron_ckpt_load_slice(st, &slice);
        if (status != RON_OK) {
            return status;
        }
    }

    ron_blake3_final(&h, hash);

    st->seq = first_seq;
    st->time_ms = first_ms;
    st->as_of_last = (*last_seq > first_seq) ? *last_seq : 0;

    return RON_OK;
}


static ron_status_t
ron_ckpt_load_last(ron_state_t *st, const ron_slice_t *slice)
{
    uint8_t    phase;
    uint32_t   no;
    uint64_t   n, accounts;
    ron_rd_t   rd;
    ron_str_t  name;

    ron_rd_init(&rd, slice->body);

    phase = ron_rd_u8(&rd);
    (void) ron_rd_varint(&rd);
    (void) ron_rd_varint(&rd);
    (void) ron_rd_varint(&rd);
    st->caps_day = ron_rd_varint(&rd);
    accounts = ron_rd_varint(&rd);
    n = ron_rd_varint(&rd);

    if (phase != 'S' || rd.failed || n > RON_ASSETS_MAX
        || accounts >= RON_NONE)
    {
        return ron_corrupt();
    }

    for (uint64_t i = 0; i < n && !rd.failed; i++) {
        name = ron_rd_lstr(&rd);
        no = rd.failed ? RON_NONE : ron_state_add_asset(st, name);

        if (no == RON_NONE) {
            return ron_corrupt();
        }

        st->assets[no].minted = ron_ckpt_rd_amount(&rd);
        st->assets[no].burned = ron_ckpt_rd_amount(&rd);
    }

    st->as_of_assets = slice->seq;
    st->as_of_n = (uint32_t) ((accounts + RON_SLICE_ACCOUNTS - 1)
                              / RON_SLICE_ACCOUNTS);
    st->as_of = calloc((size_t) st->as_of_n + 1, sizeof(uint64_t));

    if (st->as_of == NULL) {
        return RON_ENOMEM;
    }

    return ron_rd_end(&rd) == RON_OK ? RON_OK : ron_corrupt();
}


static ron_status_t
ron_ckpt_load_slice(ron_state_t *st, const ron_slice_t *slice)
{
    bool      keep;
    uint8_t   phase;
    uint64_t  time_ms, from, n;
    ron_rd_t  rd;

    ron_rd_init(&rd, slice->body);

    phase = ron_rd_u8(&rd);
    time_ms = ron_rd_varint(&rd);
    from = ron_rd_varint(&rd);
    n = ron_rd_varint(&rd);
    keep = (time_ms / RON_DAY_MS == st->caps_day);

    if (rd.failed || n > RON_SLICE_UNITS_MAX * RON_SLICE_RECS) {
        return ron_corrupt();
    }

    if (phase == 'A') {
        if (from != st->accounts.n || from % RON_SLICE_ACCOUNTS != 0
            || n == 0 || (from + n - 1) / RON_SLICE_ACCOUNTS >= st->as_of_n)
        {
            return ron_corrupt();
        }

        for (uint64_t i = from; i < from + n; i += RON_SLICE_ACCOUNTS) {
            st->as_of[i / RON_SLICE_ACCOUNTS] = slice->seq;
        }
    }

    while (n-- > 0 && !rd.failed && !st->failed) {
        switch (phase) {
        case 'A':
            ron_ckpt_rd_account(st, &rd);
            break;
        case 'H':
            ron_ckpt_rd_hold(st, &rd, slice->seq);
            break;
        case 'R':
            ron_ckpt_rd_reversed(st, &rd, slice->seq);
            break;
        case 'C':
            ron_ckpt_rd_cap(st, &rd, slice->seq, keep);
            break;
        default:
            rd.failed = true;
        }
    }

    if (st->failed) {
        return RON_ENOMEM;
    }

    return ron_rd_end(&rd) == RON_OK ? RON_OK : ron_corrupt();
}


static void
ron_ckpt_rd_account(ron_state_t *st, ron_rd_t *rd)
{
    uint32_t            no, bal;
    uint64_t            n, asset;
    ron_str_t           name;
    ron_purse_t         purse;
    ron_account_t      *a;

    name = ron_rd_lstr(rd);

    if (rd->failed || !ron_account_valid(name)
        || ron_state_account(st, name) != RON_NONE)
    {
        rd->failed = true;
        return;
    }

    no = ron_state_add_account(st, name);
    if (no == RON_NONE) {
        return;
    }

    a = ron_account_at(st, no);
    a->nonce = ron_rd_varint(rd);
    a->version = ron_rd_varint(rd);
    a->day = (uint16_t) ron_rd_varint(rd);
    purse = (ron_purse_t) { ron_ckpt_rd_amount(rd), 0 };
    ron_cell_set(st, &a->daily, purse);

    for (n = ron_rd_varint(rd); n > 0 && !rd->failed; n--) {
        asset = ron_rd_varint(rd);

        if (asset >= st->asset_n
            || ron_state_balance(st, no, (uint32_t) asset) != RON_NONE)
        {
            rd->failed = true;
            return;
        }

        bal = ron_state_add_balance(st, no, (uint32_t) asset);
        if (bal == RON_NONE) {
            return;
        }

        purse.available = ron_ckpt_rd_amount(rd);
        purse.held = ron_ckpt_rd_amount(rd);
        ron_cell_set(st, &ron_balance_at(st, bal)->purse, purse);
    }
}


static void
ron_ckpt_rd_hold(ron_state_t *st, ron_rd_t *rd, uint64_t as_of)
{
    uint64_t    account, to, asset;
    ron_hold_t  h;

    memset(&h, 0, sizeof(h));

    h.seq = ron_rd_varint(rd);

    if (h.seq == 0) {
        return;                     /* a free record */
    }

    h.as_of = as_of;
    h.expiry_ms = ron_rd_varint(rd);
    h.left = ron_ckpt_rd_amount(rd);
    account = ron_rd_varint(rd);
    to = ron_rd_varint(rd);
    asset = ron_rd_varint(rd);

    /* The accounts may be younger than their slices: the replay adds them. */

    if (account >= RON_NONE || to >= RON_NONE || asset >= st->asset_n
        || ron_state_hold(st, h.seq) != RON_NONE)
    {
        rd->failed = true;
        return;
    }

    h.account = (uint32_t) account;
    h.to = (uint32_t) to;
    h.asset = (uint16_t) asset;

    if (!rd->failed) {
        (void) ron_state_add_hold(st, &h);
    }
}


static void
ron_ckpt_rd_reversed(ron_state_t *st, ron_rd_t *rd, uint64_t as_of)
{
    uint64_t         seq;
    ron_u128_t       total;
    ron_reversed_t  *r;

    seq = ron_rd_varint(rd);
    total = ron_ckpt_rd_amount(rd);

    if (rd->failed || ron_state_reversed(st, seq) != 0) {
        rd->failed = true;
        return;
    }

    r = ron_state_add_reversed(st, seq);

    if (r != NULL) {
        r->total = total;
        r->as_of = as_of;
    }
}


/* Sums of a day that is over are skipped; so are doubles after a purge. */

static void
ron_ckpt_rd_cap(ron_state_t *st, ron_rd_t *rd, uint64_t as_of, bool keep)
{
    ron_str_t       name;
    ron_u128_t      sum;
    ron_cap_sum_t  *c;

    name = ron_rd_lstr(rd);
    sum = ron_ckpt_rd_amount(rd);

    if (rd->failed || !keep || ron_state_cap_daily(st, name) != 0) {
        return;
    }

    c = ron_state_add_cap(st, name);

    if (c != NULL) {
        c->sum = sum;
        c->as_of = as_of;
    }
}
