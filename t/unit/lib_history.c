
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib_history.h"
#include "ron_amount.h"
#include "ron_digest.h"
#include "ron_seed.h"


#define HISTORY_MIDNIGHT    (UINT64_C(86400000) * 19676)

#define gen_has(e, field)   (((e)->fields & (field)) != 0)


struct history_chunk_s {
    history_chunk_t  *next;
    size_t            used;
    size_t            size;
    _Alignas(16) uint8_t  data[];
};


static const ron_str_t  gen_accounts[8] = {
    { 5, (const uint8_t *) "alice" },
    { 3, (const uint8_t *) "bob" },
    { 8, (const uint8_t *) "dev:cap1" },       /* also a capability */
    { 1, (const uint8_t *) "c" },
    { 256, (const uint8_t *)
      "long/0123456789012345678901234567890123456789012345678901234567890123"
      "4567890123456789012345678901234567890123456789012345678901234567890123"
      "4567890123456789012345678901234567890123456789012345678901234567890123"
      "456789012345678901234567890123456789012345678901234567890123" },
    { 6, (const uint8_t *) "alice2" },
    { 4, (const uint8_t *) "bob@" },
    { 2, (const uint8_t *) "al" },
};

static const ron_str_t  gen_assets[12] = {
    { 3, (const uint8_t *) "ron" },
    { 3, (const uint8_t *) "roc" },
    { 32, (const uint8_t *) "asset-with-the-longest-name-ever" },
    { 2, (const uint8_t *) "a3" },
    { 2, (const uint8_t *) "a4" },
    { 2, (const uint8_t *) "a5" },
    { 2, (const uint8_t *) "a6" },
    { 2, (const uint8_t *) "a7" },
    { 2, (const uint8_t *) "a8" },
    { 2, (const uint8_t *) "a9" },
    { 3, (const uint8_t *) "a10" },
    { 3, (const uint8_t *) "a11" },
};

static const ron_str_t  gen_caps[3] = {
    { 8, (const uint8_t *) "dev:cap1" },
    { 8, (const uint8_t *) "dev:cap2" },
    { 3, (const uint8_t *) "k:3" },
};


static void gen_wallet_op(generator_t *g, const model_t *m, ron_entry_t *op);


/* ---- memory and text ----------------------------------------------------- */


void
history_init(history_t *h, uint64_t seed)
{
    memset(h, 0, sizeof(history_t));
    h->seed = seed;
    h->digest = RON_DIGEST_BLAKE3;
    h->queue_batches = 2;
    h->checkpoint_n = 1000;
    h->tag_ram = (size_t) 1 << 20;
    h->key_ram = (size_t) 1 << 20;
    h->key_ttl_ms = 86400000;
}


void
history_free(history_t *h)
{
    history_chunk_t  *chunk;

    while ((chunk = h->chunks) != NULL) {
        h->chunks = chunk->next;
        free(chunk);
    }

    free(h->steps);
    memset(h, 0, sizeof(history_t));
}


void *
history_alloc(history_t *h, size_t size)
{
    size_t            want;
    history_chunk_t  *chunk;

    size = (size + 15) & ~(size_t) 15;
    chunk = h->chunks;

    if (chunk == NULL || chunk->size - chunk->used < size) {
        want = ron_max(size, (size_t) 32768);

        chunk = malloc(sizeof(history_chunk_t) + want);
        RON_ASSERT(chunk != NULL);

        chunk->next = h->chunks;
        chunk->used = 0;
        chunk->size = want;
        h->chunks = chunk;
    }

    chunk->used += size;

    return memset(chunk->data + chunk->used - size, 0, size);
}


__attribute__((format(printf, 2, 3)))
static ron_str_t
gen_text(generator_t *g, const char *fmt, ...)
{
    int       n;
    char      buf[64];
    va_list   args;
    uint8_t  *data;

    va_start(args, fmt);
    n = vsnprintf(buf, sizeof(buf), fmt, args);
    va_end(args);

    data = history_alloc(g->h, (size_t) n);
    memcpy(data, buf, (size_t) n);

    return (ron_str_t) { (size_t) n, data };
}


/* The model that is drawn from does not live as long as the history. */
static ron_str_t
gen_keep(generator_t *g, ron_str_t s)
{
    uint8_t  *data;

    data = history_alloc(g->h, s.len);

    if (s.len > 0) {
        memcpy(data, s.data, s.len);
    }

    return (ron_str_t) { s.len, data };
}


/* ---- drawing ------------------------------------------------------------- */


uint64_t
generator_below(generator_t *g, uint64_t n)
{
    return ron_seed_below(&g->rnd, n);
}


static bool
gen_percent(generator_t *g, uint64_t percent)
{
    return generator_below(g, 100) < percent;
}


void
generator_init(generator_t *g, history_t *h)
{
    memset(g, 0, sizeof(generator_t));

    g->h = h;
    g->rnd = h->seed;
    g->account_n = 4 + (uint32_t) generator_below(g, 5);
    g->asset_n = 1 + (uint32_t) generator_below(g, 3);
    g->asset_n = gen_percent(g, 5) ? 12 : g->asset_n;
    g->huge = gen_percent(g, 20);
    g->slow = gen_percent(g, 20);
    g->faults = true;
    g->now_us = 1000000;
    g->time_ms = HISTORY_MIDNIGHT - 1 - generator_below(g, 20000);

    h->key_ttl_ms = gen_percent(g, 50) ? 86400000 : 3000;
    h->checkpoint_n = 1 + generator_below(g, 40);
    h->queue_batches = 1 + (uint32_t) generator_below(g, 4);
    h->digest = gen_percent(g, 80) ? RON_DIGEST_BLAKE3 : RON_DIGEST_SHA256;
}


void
generator_free(generator_t *g)
{
    free(g->units);
    memset(g, 0, sizeof(generator_t));
}


static uint32_t
gen_account(generator_t *g)
{
    uint64_t  a, b;

    a = generator_below(g, g->account_n);
    b = generator_below(g, g->account_n);

    return (uint32_t) ron_min(a, b);
}


static ron_str_t
gen_name(generator_t *g, uint32_t no)
{
    return no < ron_array_n(gen_accounts) ? gen_accounts[no]
                                          : gen_text(g, "m%u", no);
}


static ron_u128_t
gen_amount(generator_t *g)
{
    ron_u128_t  max;

    max = ~(ron_u128_t) 0;

    if (gen_percent(g, g->huge ? 35 : 2)) {
        switch (generator_below(g, 10)) {
        case 0: return max;
        case 1: return max - 1;
        case 2: return max - generator_below(g, 20);
        case 3: return max / 2;
        case 4: return max / 2 + 1;
        case 5: return UINT64_MAX;
        case 6: return (ron_u128_t) UINT64_MAX + 1;
        case 7: return INT64_MAX;
        case 8: return (ron_u128_t) INT64_MAX + 1;
        default: return max / 3;
        }
    }

    return 1 + generator_below(g, gen_percent(g, 80) ? 9 : 200);
}


/*
 * Mostly what there is enough of, often exactly all of it, sometimes one
 * more, sometimes whatever.
 */
static ron_u128_t
gen_spend(generator_t *g, const model_t *m, ron_str_t account,
    ron_str_t asset)
{
    ron_u128_t  amount, available;

    amount = gen_amount(g);

    if (gen_percent(g, 15)) {
        return amount;
    }

    available = model_available(m, m->entry_n, account, asset);

    if (available == 0 || (amount <= available && gen_percent(g, 80))) {
        return amount;
    }

    if (gen_percent(g, 60)) {
        amount = 1 + amount % available;

    } else {
        amount = available;
        amount += gen_percent(g, 20) && ~available != 0;
    }

    return amount;
}


/* The seq of an entry of this kind, one time in eight of any or none. */
static uint64_t
gen_ref(generator_t *g, const model_t *m, ron_kind_t kind)
{
    uint64_t  start, seq;

    if (m->entry_n == 0 || gen_percent(g, 6)) {
        return generator_below(g, m->entry_n + 4);
    }

    start = generator_below(g, m->entry_n);

    for (uint64_t i = 0; i < m->entry_n; i++) {
        seq = (start + i) % m->entry_n + 1;

        if (m->entries[seq - 1].entry.kind == kind) {
            return seq;
        }
    }

    return 1 + start;
}


static void
gen_two_accounts(generator_t *g, ron_entry_t *op)
{
    uint32_t  a, b;

    a = gen_account(g);
    b = gen_account(g);

    if (a == b && !gen_percent(g, 5)) {
        b = (a + 1) % g->account_n;
    }

    op->fields |= RON_F_ACCOUNT | RON_F_TO;
    op->account = gen_name(g, a);
    op->to = gen_name(g, b);
}


static void
gen_common(generator_t *g, ron_entry_t *op, ron_kind_t kind)
{
    memset(op, 0, sizeof(ron_entry_t));
    op->kind = kind;
    op->fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    op->asset = gen_assets[generator_below(g, g->asset_n)];
    op->account = gen_name(g, gen_account(g));
}


/* What every ingested entry has: a name, a nonce, a time. */
static void
gen_ingested(generator_t *g, ron_entry_t *op)
{
    uint32_t  id;

    id = ++g->id_n;

    if (gen_percent(g, 3)) {
        id = 1 + (uint32_t) generator_below(g, id);
    }

    op->fields |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
    op->id = gen_text(g, "i%u", id);
    op->nonce16[0] = (uint8_t) (g->id_n >> 8);
    op->nonce16[15] = (uint8_t) g->id_n;
    op->source_ms = g->time_ms - generator_below(g, 3);

    if (gen_percent(g, 1)) {
        op->fields &= ~(uint32_t) RON_F_SOURCE;
        op->source_ms = 0;
    }

    if (gen_percent(g, 5)) {
        op->fields |= RON_F_SCHEMA;
        op->schema = 2 + (uint32_t) generator_below(g, 2);
    }

    if (gen_percent(g, 5)) {
        op->fields |= RON_F_CAPREF;
        op->capref = gen_text(g, "ref-%u", id);
    }
}


static void
gen_spoil(generator_t *g, ron_entry_t *op)
{
    switch (generator_below(g, 10)) {

    case 9:
        op->expiry_ms = RON_TIME_MAX + 1;
        op->fields |= RON_F_EXPIRY;
        break;

    case 0:
        op->amount = 0;
        op->fields |= RON_F_AMOUNT;
        break;

    case 1:
        op->fields &= ~(uint32_t) RON_F_ACCOUNT;
        op->account = ron_null_str;
        break;

    case 2:
        op->fields &= ~(uint32_t) RON_F_ID;
        op->id = ron_null_str;
        break;

    case 3:
        op->fields &= ~(uint32_t) RON_F_NONCE16;
        memset(op->nonce16, 0, RON_NONCE_LEN);
        break;

    case 4:
        op->fields &= ~(uint32_t) RON_F_TO;
        op->to = ron_null_str;
        break;

    case 5:
        op->fields &= ~(uint32_t) RON_F_REF;
        op->ref = 0;
        break;

    case 6:
        if (op->kind == RON_KIND_MINT || op->kind == RON_KIND_BURN) {
            op->fields |= RON_F_TO;
            op->to = gen_name(g, gen_account(g));
        }
        break;

    case 7:
        op->account = ron_str("not an account");
        break;

    default:
        op->fields |= RON_F_TO;
        op->to = op->account;
    }
}


static void
gen_reverse(generator_t *g, const model_t *m, ron_entry_t *op)
{
    const ron_entry_t  *e;

    op->kind = RON_KIND_REVERSE;
    op->fields |= RON_F_REF;
    op->ref = gen_ref(g, m, RON_KIND_TRANSFER);

    if (op->ref < 1 || op->ref > m->entry_n) {
        return;
    }

    e = &m->entries[op->ref - 1].entry;

    op->asset = gen_keep(g, e->asset);
    op->account = gen_keep(g, e->kind == RON_KIND_TRANSFER ? e->to
                                                           : e->account);
    op->amount = gen_percent(g, 60) ? e->amount : 1 + gen_amount(g) / 2;

    if (gen_percent(g, 30)) {
        op->fields |= RON_F_TO;
        op->to = gen_keep(g, e->account);
    }

    if (gen_percent(g, 4)) {
        op->account = gen_name(g, gen_account(g));
    }

    if (gen_percent(g, 4)) {
        op->asset = gen_assets[generator_below(g, g->asset_n)];
    }

    if (op->account.len == 0) {
        op->account = gen_accounts[0];
    }
}


/* A Capture or Release as ingest has it: with account and asset. */
static void
gen_hold_end(generator_t *g, const model_t *m, ron_entry_t *op)
{
    const ron_entry_t  *e;

    op->fields |= RON_F_REF;
    op->ref = gen_ref(g, m, RON_KIND_HOLD);

    if (op->ref < 1 || op->ref > m->entry_n) {
        return;
    }

    e = &m->entries[op->ref - 1].entry;

    if (e->kind != RON_KIND_HOLD || gen_percent(g, 3)) {
        return;
    }

    op->account = gen_keep(g, e->account);
    op->asset = gen_keep(g, e->asset);

    if (gen_percent(g, op->kind == RON_KIND_RELEASE ? 90 : 40)
        && model_left(m, op->ref) != 0)
    {
        op->amount = model_left(m, op->ref);
    }
}


static void
gen_ingest_op(generator_t *g, const model_t *m, ron_entry_t *op)
{
    uint64_t  dice;

    dice = generator_below(g, 100);

    gen_common(g, op, RON_KIND_MINT);
    op->amount = gen_amount(g);

    if (dice < 28) {
        if (!g->huge) {
            op->amount *= 1 + generator_below(g, 10);
        }

    } else if (dice < 36) {
        op->kind = RON_KIND_BURN;
        op->amount = gen_spend(g, m, op->account, op->asset);

    } else if (dice < 58) {
        op->kind = RON_KIND_TRANSFER;
        gen_two_accounts(g, op);
        op->amount = gen_spend(g, m, op->account, op->asset);

    } else if (dice < 70) {
        op->kind = RON_KIND_HOLD;
        gen_two_accounts(g, op);
        op->amount = gen_spend(g, m, op->account, op->asset);

        if (gen_percent(g, 60)) {
            op->fields |= RON_F_EXPIRY;
            op->expiry_ms = g->time_ms + generator_below(g, 6000);
        }

    } else if (dice < 82) {
        op->kind = RON_KIND_CAPTURE;
        gen_hold_end(g, m, op);

    } else if (dice < 88) {
        op->kind = RON_KIND_RELEASE;
        gen_hold_end(g, m, op);

    } else {
        gen_reverse(g, m, op);
    }

    gen_ingested(g, op);

    if (gen_percent(g, 2)) {
        gen_spoil(g, op);
    }
}


/* Debits and credits that mostly balance, over one asset or two. */
static uint32_t
gen_posting(generator_t *g, const model_t *m, ron_entry_t *ops)
{
    uint32_t    n, parts;
    ron_str_t   asset;
    ron_u128_t  sum, part;

    n = 0;

    do {
        asset = gen_assets[generator_below(g, g->asset_n)];
        gen_common(g, &ops[n], RON_KIND_DEBIT);
        ops[n].asset = asset;
        sum = gen_spend(g, m, ops[n].account, asset);
        ops[n++].amount = sum;

        if (gen_percent(g, 15)) {           /* perhaps over 128 bits */
            gen_common(g, &ops[n], RON_KIND_DEBIT);
            ops[n].asset = asset;
            ops[n++].amount = sum;
            gen_common(g, &ops[n], RON_KIND_CREDIT);
            ops[n].asset = asset;
            ops[n++].amount = sum;
        }

        parts = 1 + (uint32_t) generator_below(g, 3);

        while (sum != 0) {
            part = parts <= 1 ? sum : (sum + 1) / 2;
            parts -= parts > 1;

            gen_common(g, &ops[n], RON_KIND_CREDIT);
            ops[n].asset = asset;
            ops[n++].amount = part;
            sum -= part;

            if (parts <= 1 && sum != 0 && gen_percent(g, 5)) {
                ops[n - 1].amount++;        /* out of balance */
            }
        }
    } while (gen_percent(g, 30) && n < 8);

    for (uint32_t i = 0; i < n; i++) {
        gen_ingested(g, &ops[i]);
    }

    if (gen_percent(g, 3)) {                /* a leg twice, and balanced */
        ops[n] = ops[0];
        ops[n + 1] = ops[1];
        n += 2;

        if (gen_percent(g, 50)) {
            ops[n - 1].id = gen_text(g, "i%u", ++g->id_n);
            ops[n - 2].id = gen_text(g, "i%u", ++g->id_n);
        }
    }

    if (gen_percent(g, 4)) {
        gen_spoil(g, &ops[generator_below(g, n)]);
    }

    return n;
}


/* Reverses of all the legs of some posting, or of all but one. */
static uint32_t
gen_unposting(generator_t *g, const model_t *m, ron_entry_t *ops)
{
    uint32_t            n;
    uint64_t            seq;
    const ron_entry_t  *leg;

    seq = gen_ref(g, m, gen_percent(g, 50) ? RON_KIND_DEBIT : RON_KIND_CREDIT);

    if (seq < 1 || seq > m->entry_n
        || !gen_has(&m->entries[seq - 1].entry, RON_F_POSTING))
    {
        gen_ingest_op(g, m, &ops[0]);
        return 1;
    }

    leg = &m->entries[seq - 1].entry;
    n = 0;

    for (seq = leg->posting_first; seq < leg->posting_first + leg->posting_n;
         seq++)
    {
        if (gen_percent(g, 4)) {
            continue;
        }

        gen_common(g, &ops[n], RON_KIND_REVERSE);
        ops[n].fields |= RON_F_REF;
        ops[n].ref = seq;
        ops[n].asset = gen_keep(g, m->entries[seq - 1].entry.asset);
        ops[n].account = gen_keep(g, m->entries[seq - 1].entry.account);
        ops[n].amount = m->entries[seq - 1].entry.amount;

        if (gen_percent(g, 3)) {
            ops[n].amount = gen_amount(g);
        }

        gen_ingested(g, &ops[n]);
        n++;
    }

    if (n == 0) {
        gen_ingest_op(g, m, &ops[n++]);
    }

    return n;
}


static void
gen_limits(generator_t *g, ron_unit_t *u)
{
    if (gen_percent(g, 15)) {
        u->cap_daily = gen_amount(g) * 8;
    }

    if (gen_percent(g, 15)) {
        u->account_daily = gen_amount(g) * 8;
    }

    if (gen_percent(g, 15)) {
        u->account_total = gen_amount(g) * 4;
    }

    if (gen_percent(g, 5)) {
        u->account_total = ~(ron_u128_t) 0;
        u->account_daily = ~(ron_u128_t) 0;
        u->cap_daily = ~(ron_u128_t) 0;
    }
}


/* As clients name a hold; sometimes one of another ledger, or time. */
static void
gen_txid(generator_t *g, const model_t *m, ron_entry_t *op)
{
    op->fields |= RON_F_TXID;
    op->ledger_id = m->ledger_id;
    op->time_ms = op->ref >= 1 && op->ref <= m->entry_n
                  ? m->entries[op->ref - 1].entry.time_ms : m->time_ms;

    if (gen_percent(g, 8)) {
        op->ledger_id = (uint16_t) (op->ledger_id + 1);
    }

    if (gen_percent(g, 8)) {
        op->time_ms++;
    }
}


static void
gen_wallet_hold_end(generator_t *g, const model_t *m, ron_entry_t *op)
{
    op->fields = RON_F_REF;
    op->ref = gen_ref(g, m, RON_KIND_HOLD);
    op->account = ron_null_str;
    op->asset = ron_null_str;

    if (op->kind == RON_KIND_CAPTURE) {
        op->fields |= RON_F_AMOUNT;

        if (gen_percent(g, 40) && model_left(m, op->ref) != 0) {
            op->amount = model_left(m, op->ref);
        }
    }

    if (gen_percent(g, 70)) {
        gen_txid(g, m, op);
    }
}


static void
gen_wallet_nonce(generator_t *g, const model_t *m, ron_entry_t *op)
{
    uint32_t   a;

    for (a = 0; a < ron_array_n(gen_accounts); a++) {
        if (ron_str_eq(gen_accounts[a], op->account)) {
            break;
        }
    }

    op->fields |= RON_F_NONCE;

    if (a == ron_array_n(gen_accounts)) {       /* one of a crowd */
        op->nonce = model_nonce(m, m->entry_n, op->account) + 1;

    } else if (gen_percent(g, 90)) {
        g->nonces[a] += gen_percent(g, 90) ? 1 : 1 + generator_below(g, 3);
        op->nonce = g->nonces[a];

    } else {
        op->nonce = generator_below(g, g->nonces[a] + 4);
    }

    if (gen_percent(g, 1) && gen_percent(g, 20)) {
        op->nonce = RON_NONCE_MAX + generator_below(g, 2);
    }
}


static void
gen_wallet_op(generator_t *g, const model_t *m, ron_entry_t *op)
{
    uint64_t  dice;

    dice = generator_below(g, 100);

    gen_common(g, op, RON_KIND_MINT);
    op->amount = gen_amount(g);

    if (dice < 25) {
        if (gen_percent(g, 50)) {
            op->fields |= RON_F_NONCE;
            op->nonce = 1 + generator_below(g, 5);
        }

        if (!g->huge) {
            op->amount *= 1 + generator_below(g, 10);
        }

    } else if (dice < 35) {
        op->kind = RON_KIND_BURN;
        op->amount = gen_spend(g, m, op->account, op->asset);
        gen_wallet_nonce(g, m, op);

    } else if (dice < 65) {
        op->kind = RON_KIND_TRANSFER;
        gen_two_accounts(g, op);
        op->amount = gen_spend(g, m, op->account, op->asset);
        gen_wallet_nonce(g, m, op);

    } else if (dice < 80) {
        op->kind = RON_KIND_HOLD;
        gen_two_accounts(g, op);
        op->amount = gen_spend(g, m, op->account, op->asset);
        gen_wallet_nonce(g, m, op);

        if (gen_percent(g, 60)) {
            op->fields |= RON_F_EXPIRY;
            op->expiry_ms = generator_below(g, 6000);
        }

    } else {
        op->kind = dice < 93 ? RON_KIND_CAPTURE : RON_KIND_RELEASE;
        gen_wallet_hold_end(g, m, op);
        return;
    }

    if (gen_percent(g, 20)) {
        op->fields |= RON_F_MEMO;
        op->memo.b[0] = (uint8_t) generator_below(g, 3);
    }

    if (gen_percent(g, 2)) {
        switch (generator_below(g, 5)) {
        case 0: op->amount = 0; break;
        case 1: op->kind = RON_KIND_DEBIT; break;
        case 2: op->to = op->account; op->fields |= RON_F_TO; break;
        case 3:
            op->fields &= ~(uint32_t) RON_F_ASSET;
            op->asset = ron_null_str;
            break;
        default: op->account = ron_str("no account!"); break;
        }
    }
}


static ron_str_t
gen_key(generator_t *g)
{
    uint32_t  key;

    key = ++g->key_n;

    if (gen_percent(g, 8)) {
        key = 1 + (uint32_t) generator_below(g, key);
    }

    return gen_text(g, "k%u", key);
}


static ron_unit_t *
gen_unit(generator_t *g)
{
    ron_unit_t  *u;

    u = history_alloc(g->h, sizeof(ron_unit_t));

    if (g->unit_n == g->unit_max) {
        g->unit_max = g->unit_max * 2 + 32;
        g->units = realloc(g->units, g->unit_max * sizeof(ron_unit_t *));
        RON_ASSERT(g->units != NULL);
    }

    g->units[g->unit_n++] = u;

    return u;
}


static void
gen_ingest(generator_t *g, const model_t *m, ron_unit_t *u)
{
    uint32_t  n, more;

    u->type = RON_UNIT_INGEST;
    u->atomic = gen_percent(g, 20);
    u->ops = history_alloc(g->h, 24 * sizeof(ron_entry_t));

    if (gen_percent(g, 15)) {
        u->cap_daily = gen_amount(g) * 8;
    }

    if (gen_percent(g, 40)) {
        u->key = gen_key(g);
    }

    n = 0;
    more = 1 + (uint32_t) generator_below(g, gen_percent(g, 50) ? 1 : 4);

    while (n < more) {
        gen_ingest_op(g, m, &u->ops[n++]);
    }

    if (gen_percent(g, 15)) {
        n += gen_posting(g, m, &u->ops[n]);

    } else if (gen_percent(g, 12)) {
        n = gen_unposting(g, m, u->ops);
    }

    u->op_n = n;

    /* Legs need not stand together. */

    if (gen_percent(g, 30)) {
        for (uint32_t i = 1; i < n; i++) {
            uint32_t     k = (uint32_t) generator_below(g, i + 1);
            ron_entry_t  t = u->ops[i];

            u->ops[i] = u->ops[k];
            u->ops[k] = t;
        }
    }
}


static void
gen_wallet(generator_t *g, const model_t *m, ron_unit_t *u)
{
    bool         batch;
    ron_entry_t  *op;

    batch = gen_percent(g, 25);

    u->type = batch ? RON_UNIT_BATCH : RON_UNIT_WALLET;
    u->op_n = batch ? 1 + (uint32_t) generator_below(g, 5) : 1;
    u->ops = history_alloc(g->h, u->op_n * sizeof(ron_entry_t));
    u->key = gen_key(g);
    u->nonce_strict = gen_percent(g, 20);
    u->atomic = batch && gen_percent(g, 40);

    for (uint32_t i = 0; i < u->op_n; i++) {
        gen_wallet_op(g, m, &u->ops[i]);
    }

    gen_limits(g, u);

    op = &u->ops[0];

    if (op->account.len > 0 && gen_percent(g, 8)) {

        for (uint32_t i = 1; i < u->op_n; i++) {
            if (u->ops[i].account.len > 0 && !gen_percent(g, 5)
                && !(gen_has(&u->ops[i], RON_F_TO)
                     && ron_str_eq(u->ops[i].to, op->account)))
            {
                u->ops[i].account = op->account;
            }
        }

        u->has_match = true;
        u->match = model_version(m, m->entry_n, op->account)
                   + (gen_percent(g, 20) ? 1 : 0);
    }
}


/* A lot of new accounts at once. */
static void
gen_crowd(generator_t *g, ron_unit_t *u)
{
    u->type = RON_UNIT_INGEST;
    u->op_n = ron_min(g->crowd, 90u);
    u->ops = history_alloc(g->h, u->op_n * sizeof(ron_entry_t));

    for (uint32_t i = 0; i < u->op_n; i++) {
        gen_common(g, &u->ops[i], RON_KIND_MINT);
        u->ops[i].account = gen_name(g, g->account_n - g->crowd--);
        u->ops[i].amount = 20;
        gen_ingested(g, &u->ops[i]);
    }
}


/* Another request that looks like an earlier one. */
static void
gen_change(generator_t *g, ron_unit_t *u)
{
    ron_entry_t  *op;

    op = &u->ops[generator_below(g, u->op_n)];

    switch (generator_below(g, 14)) {

    case 0:
        op->amount += gen_has(op, RON_F_AMOUNT) && ~op->amount != 0;
        break;

    case 1:
        if (gen_has(op, RON_F_ACCOUNT)) {
            op->account = gen_name(g, gen_account(g));
        }
        break;

    case 2:
        if (gen_has(op, RON_F_TO)) {
            op->to = gen_name(g, gen_account(g));
        }
        break;

    case 3:
        if (gen_has(op, RON_F_ASSET)) {
            op->asset = gen_assets[generator_below(g, g->asset_n)];
        }
        break;

    case 4:
        op->source_ms += gen_has(op, RON_F_SOURCE) ? 1 : 0;
        break;

    case 5:                                 /* same tuple, other name */
    case 6:
        if (gen_has(op, RON_F_ID)) {
            op->id = gen_text(g, "i%u", ++g->id_n);
        }
        break;

    case 7:
        u->atomic = u->type != RON_UNIT_WALLET && !u->atomic;
        break;

    case 8:
        u->op_n -= u->op_n > 1;
        break;

    case 9:
        if (u->type != RON_UNIT_INGEST || u->key.len > 0) {
            u->key = gen_key(g);
        }
        break;

    case 10:
        if (u->type == RON_UNIT_INGEST) {
            u->key = u->key.len > 0 ? ron_null_str : gen_key(g);
        }
        break;

    case 11:
        op->expiry_ms += gen_has(op, RON_F_EXPIRY) ? 1 : 0;

        if (gen_has(op, RON_F_ID)) {
            op->fields ^= RON_F_CAPREF;
            op->capref = gen_has(op, RON_F_CAPREF) ? ron_str("c")
                                                   : ron_null_str;
        }
        break;

    case 12:
        if (u->cap.len > 0) {
            u->cap = gen_caps[generator_below(g, 3)];
        }
        break;

    default:
        if (gen_has(op, RON_F_NONCE)) {
            op->nonce++;

        } else if (gen_has(op, RON_F_NONCE16)) {
            op->nonce16[7]++;
        }
    }
}


/* A unit that was drawn before, as it was or a little different. */
static void
gen_again(generator_t *g, ron_unit_t *u)
{
    ron_entry_t       *ops;
    const ron_unit_t  *old;

    old = g->units[generator_below(g, g->unit_n - 1)];

    *u = *old;
    u->ops = history_alloc(g->h, u->op_n * sizeof(ron_entry_t));
    memcpy(u->ops, old->ops, u->op_n * sizeof(ron_entry_t));

    if (u->op_n > 1 && u->type == RON_UNIT_INGEST && gen_percent(g, 20)) {
        ops = u->ops + generator_below(g, u->op_n);
        u->ops = ops;                       /* one operation by itself */
        u->op_n = 1;
    }

    while (gen_percent(g, 45)) {
        gen_change(g, u);
    }
}


static ron_unit_t *
gen_any(generator_t *g, const model_t *m)
{
    ron_unit_t  *u;

    u = gen_unit(g);

    if (g->crowd > 0 && gen_percent(g, 40)) {
        gen_crowd(g, u);

    } else if (g->unit_n > 1 && gen_percent(g, 20)) {
        gen_again(g, u);

    } else {
        if (gen_percent(g, 50)) {
            gen_ingest(g, m, u);

        } else {
            gen_wallet(g, m, u);
        }

        if (u->type != RON_UNIT_INGEST || gen_percent(g, 70)) {
            u->cap = gen_caps[generator_below(g, 3)];
        }
    }

    u->source_us = g->time_ms * 1000 + generator_below(g, 4);
    u->deadline_us = 0;

    if (gen_percent(g, 6)) {
        u->deadline_us = g->now_us - 1 + generator_below(g, 3);
    }

    return u;
}


step_t *
generator_step(generator_t *g, const model_t *m)
{
    step_t     *step;
    history_t  *h;

    h = g->h;

    if (h->step_n == h->step_max) {
        h->step_max = h->step_max * 2 + 32;
        h->steps = realloc(h->steps, h->step_max * sizeof(step_t));
        RON_ASSERT(h->steps != NULL);
    }

    step = &h->steps[h->step_n++];
    memset(step, 0, sizeof(step_t));
    step->no = h->step_n - 1;

    if (g->faults && gen_percent(g, 6)) {
        step->kind = gen_percent(g, 50) ? STEP_REOPEN : STEP_CRASH;
        return step;
    }

    g->time_ms += gen_percent(g, 30) ? 0
                  : generator_below(g, g->slow ? 20000000 : 2000);
    g->now_us += generator_below(g, 1000);

    step->kind = STEP_DECIDE;
    step->lag = gen_percent(g, 50);
    step->time_ms = g->time_ms;
    step->now_us = g->now_us;
    step->unit_n = (uint32_t) generator_below(g, gen_percent(g, 70) ? 4 : 9);
    step->units = history_alloc(h, step->unit_n * sizeof(ron_unit_t *));

    for (uint32_t i = 0; i < step->unit_n; i++) {
        step->units[i] = gen_any(g, m);
    }

    return step;
}


/* ---- showing ------------------------------------------------------------- */


static void
show_str(const char *name, ron_str_t s)
{
    printf(" %s=%.*s", name, (int) ron_min(s.len, (size_t) 40),
           s.len > 0 ? (const char *) s.data : "");
}


static void
show_amount(const char *name, ron_u128_t v)
{
    char  buf[RON_AMOUNT_MAX];

    ron_amount_print(v, buf);
    printf(" %s=%s", name, buf);
}


static void
show_op(const ron_entry_t *op)
{
    printf("#       %s",
           op->kind > 0 && op->kind < RON_KIND_N ? ron_kind_name(op->kind)
                                                 : "(none)");

    if (gen_has(op, RON_F_ACCOUNT)) {
        show_str("account", op->account);
    }

    if (gen_has(op, RON_F_TO)) {
        show_str("to", op->to);
    }

    if (gen_has(op, RON_F_ASSET)) {
        show_str("asset", op->asset);
    }

    if (gen_has(op, RON_F_AMOUNT)) {
        show_amount("amount", op->amount);
    }

    if (gen_has(op, RON_F_REF)) {
        printf(" ref=%llu", (unsigned long long) op->ref);
    }

    if (gen_has(op, RON_F_TXID)) {
        printf(" txid=%u/%llu", op->ledger_id,
               (unsigned long long) op->time_ms);
    }

    if (gen_has(op, RON_F_NONCE)) {
        printf(" nonce=%llu", (unsigned long long) op->nonce);
    }

    if (gen_has(op, RON_F_NONCE16)) {
        printf(" nonce16=%u.%u.%u", op->nonce16[0], op->nonce16[7],
               op->nonce16[15]);
    }

    if (gen_has(op, RON_F_ID)) {
        show_str("id", op->id);
    }

    if (gen_has(op, RON_F_SOURCE)) {
        printf(" source=%llu", (unsigned long long) op->source_ms);
    }

    if (gen_has(op, RON_F_EXPIRY)) {
        printf(" expiry=%llu", (unsigned long long) op->expiry_ms);
    }

    if (gen_has(op, RON_F_MEMO)) {
        printf(" memo=%u", op->memo.b[0]);
    }

    if (gen_has(op, RON_F_SCHEMA)) {
        printf(" schema=%u", op->schema);
    }

    if (gen_has(op, RON_F_CAPREF)) {
        show_str("capref", op->capref);
    }

    printf("\n");
}


static void
show_unit(const ron_unit_t *u)
{
    printf("#     %s source=%llu", u->type == RON_UNIT_INGEST ? "ingest"
                                   : u->type == RON_UNIT_WALLET ? "wallet"
                                                                : "batch",
           (unsigned long long) u->source_us);

    if (u->key.len > 0) {
        show_str("key", u->key);
    }

    if (u->cap.len > 0) {
        show_str("cap", u->cap);
    }

    if (u->cap_daily != 0) {
        show_amount("cap_daily", u->cap_daily);
    }

    if (u->account_daily != 0) {
        show_amount("account_daily", u->account_daily);
    }

    if (u->account_total != 0) {
        show_amount("account_total", u->account_total);
    }

    if (u->has_match) {
        printf(" match=%llu", (unsigned long long) u->match);
    }

    if (u->deadline_us != 0) {
        printf(" deadline=%llu", (unsigned long long) u->deadline_us);
    }

    printf("%s%s\n", u->atomic ? " atomic" : "",
           u->nonce_strict ? " strict" : "");

    for (uint32_t i = 0; i < u->op_n; i++) {
        show_op(&u->ops[i]);
    }
}


void
history_show(const history_t *h)
{
    const step_t  *step;

    printf("# seed %llu, %s, checkpoint %llu, key_ttl_ms %llu, queue %u\n",
           (unsigned long long) h->seed, h->sqlite ? "sqlite" : "memory",
           (unsigned long long) h->checkpoint_n,
           (unsigned long long) h->key_ttl_ms, h->queue_batches);

    for (uint32_t i = 0; i < h->step_n; i++) {
        step = &h->steps[i];

        if (step->dropped) {
            continue;
        }

        if (step->kind != STEP_DECIDE) {
            printf("# %u %s\n", i,
                   step->kind == STEP_REOPEN ? "reopen" : "crash");
            continue;
        }

        printf("# %u decide time=%llu now=%llu%s\n", i,
               (unsigned long long) step->time_ms,
               (unsigned long long) step->now_us, step->lag ? " lag" : "");

        for (uint32_t k = 0; k < step->unit_n; k++) {
            show_unit(step->units[k]);
        }
    }

    fflush(stdout);
}


/* ---- making smaller ------------------------------------------------------ */


static bool
shrink_fails(const history_t *h, int line)
{
    bool     fails;
    world_t  w;

    fails = !history_play(h, &w) && w.line == line;

    return fails;
}


static bool
shrink_steps(history_t *h, int line)
{
    bool     smaller;
    step_t  *step;

    smaller = false;

    for (uint32_t i = h->step_n; i-- > 0; /* void */) {
        step = &h->steps[i];

        if (step->dropped) {
            continue;
        }

        step->dropped = true;

        if (shrink_fails(h, line)) {
            smaller = true;
            continue;
        }

        step->dropped = false;

        if (step->lag) {
            step->lag = false;
            step->lag = !shrink_fails(h, line);
        }
    }

    return smaller;
}


static bool
shrink_units(history_t *h, step_t *step, int line)
{
    bool         smaller;
    uint32_t     i, rest;
    ron_unit_t  *u;

    smaller = false;

    for (i = step->unit_n; i-- > 0; /* void */) {
        u = step->units[i];
        rest = step->unit_n - i - 1;

        memmove(&step->units[i], &step->units[i + 1],
                rest * sizeof(ron_unit_t *));
        step->unit_n--;

        if (shrink_fails(h, line)) {
            smaller = true;
            continue;
        }

        memmove(&step->units[i + 1], &step->units[i],
                rest * sizeof(ron_unit_t *));
        step->units[i] = u;
        step->unit_n++;
    }

    return smaller;
}


static bool
shrink_ops(history_t *h, ron_unit_t *u, int line)
{
    bool         smaller;
    uint32_t     i;
    ron_entry_t  op;

    smaller = false;

    for (i = u->op_n; i-- > 0 && u->op_n > 1; /* void */) {
        op = u->ops[i];

        memmove(&u->ops[i], &u->ops[i + 1],
                (u->op_n - i - 1) * sizeof(ron_entry_t));
        u->op_n--;

        if (shrink_fails(h, line)) {
            smaller = true;
            continue;
        }

        memmove(&u->ops[i + 1], &u->ops[i],
                (u->op_n - i) * sizeof(ron_entry_t));
        u->ops[i] = op;
        u->op_n++;
    }

    return smaller;
}


void
history_shrink(history_t *h, int line)
{
    bool  smaller;

    do {
        smaller = shrink_steps(h, line);

        for (uint32_t i = 0; i < h->step_n; i++) {
            if (h->steps[i].dropped) {
                continue;
            }

            smaller |= shrink_units(h, &h->steps[i], line);

            for (uint32_t k = 0; k < h->steps[i].unit_n; k++) {
                smaller |= shrink_ops(h, h->steps[i].units[k], line);
            }
        }
    } while (smaller);
}
