
#include <stdlib.h>

#include "lib_model.h"


#define MODEL_DAY_MS  UINT64_C(86400000)

/* What a caller may say of itself beside the money, in an ingested entry. */
#define MODEL_INGEST_MUST  (RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE)
#define MODEL_INGEST_MAY   (RON_F_CAPREF | RON_F_SCHEMA)


struct model_chunk_s {
    model_chunk_t  *next;
    size_t          used;
    size_t          size;
    _Alignas(16) uint8_t  data[];
};


/* A sum of amounts that cannot overflow. */
typedef struct {
    uint64_t    carry;
    ron_u128_t  low;
} model_sum_t;


/* One line of a journal posting, as seen from the balance it changes. */
typedef struct {
    uint32_t    op;                 /* its place in the unit */
    bool        gains;
    ron_str_t   account;
    ron_str_t   asset;
    ron_u128_t  amount;
} model_leg_t;


/* What is being decided: a unit, and the answers so far. */
typedef struct {
    model_t           *m;
    const ron_unit_t  *unit;
    uint64_t           now_us;
    model_outcome_t   *out;
    bool               refused;     /* some operation was */
} model_case_t;


static void model_unit(model_case_t *c);
static void model_ingest(model_case_t *c);
static void model_batch(model_case_t *c);
static ron_str_t model_scope(const model_t *m, const ron_entry_t *op);
static void model_single(model_case_t *c);
static void model_settle(model_case_t *c, uint64_t before);
static void model_ingest_op(model_case_t *c, uint32_t i);
static void model_wallet_op(model_case_t *c, uint32_t i);
static void model_posting(model_case_t *c);
static void model_unpost(model_case_t *c, uint32_t i);
static void model_drop_legs(model_case_t *c, const model_leg_t *legs,
    uint32_t n);


/* ---- memory -------------------------------------------------------------- */


static void *
model_alloc(model_t *m, size_t size)
{
    size_t          want;
    model_chunk_t  *chunk;

    size = (size + 15) & ~(size_t) 15;
    chunk = m->chunks;

    if (chunk == NULL || chunk->size - chunk->used < size) {
        want = ron_max(size, (size_t) 32768);

        chunk = malloc(sizeof(model_chunk_t) + want);
        RON_ASSERT(chunk != NULL);

        chunk->next = m->chunks;
        chunk->used = 0;
        chunk->size = want;
        m->chunks = chunk;
    }

    chunk->used += size;

    return memset(chunk->data + chunk->used - size, 0, size);
}


static ron_str_t
model_keep(model_t *m, ron_str_t s)
{
    uint8_t  *data;

    if (s.len == 0) {
        return ron_null_str;
    }

    data = model_alloc(m, s.len);
    memcpy(data, s.data, s.len);

    return (ron_str_t) { s.len, data };
}


static ron_entry_t
model_keep_entry(model_t *m, const ron_entry_t *e)
{
    ron_entry_t  kept;

    kept = *e;
    kept.asset = model_keep(m, e->asset);
    kept.account = model_keep(m, e->account);
    kept.to = model_keep(m, e->to);
    kept.id = model_keep(m, e->id);
    kept.scope = model_keep(m, e->scope);
    kept.key = model_keep(m, e->key);
    kept.cap = model_keep(m, e->cap);
    kept.capref = model_keep(m, e->capref);

    return kept;
}


void
model_init(model_t *m, uint16_t ledger_id, uint64_t key_ttl_ms)
{
    memset(m, 0, sizeof(model_t));
    m->ledger_id = ledger_id;
    m->key_ttl_ms = key_ttl_ms;
}


void
model_free(model_t *m)
{
    model_chunk_t  *chunk;

    while ((chunk = m->chunks) != NULL) {
        m->chunks = chunk->next;
        free(chunk);
    }

    free(m->entries);
    free(m->units);
    memset(m, 0, sizeof(model_t));
}


void
model_cut(model_t *m, uint64_t seq)
{
    RON_ASSERT(seq <= m->entry_n);

    m->entry_n = seq;

    while (m->unit_n > 0 && m->units[m->unit_n - 1].first > seq) {
        m->unit_n--;
    }

    m->time_ms = seq > 0 ? m->entries[seq - 1].entry.time_ms : 0;
}


/* ---- reading the list of entries ----------------------------------------- */


static const ron_entry_t *
model_entry(const model_t *m, uint64_t seq)
{
    return seq >= 1 && seq <= m->entry_n ? &m->entries[seq - 1].entry : NULL;
}


static bool
has(const ron_entry_t *e, uint32_t field)
{
    return (e->fields & field) != 0;
}


static bool
is(ron_str_t a, ron_str_t b)
{
    return ron_str_eq(a, b);
}


/*
 * Additions and subtractions wrap, which does no harm: the balance at the end
 * is a number between 0 and 2^128 - 1, whatever the way there.
 */
ron_u128_t
model_available(const model_t *m, uint64_t seq, ron_str_t account,
    ron_str_t asset)
{
    bool                mine, others;
    ron_u128_t          sum;
    const ron_entry_t  *e;

    sum = 0;

    for (uint64_t s = 1; s <= seq; s++) {
        e = model_entry(m, s);

        if (!is(e->asset, asset)) {
            continue;
        }

        mine = has(e, RON_F_ACCOUNT) && is(e->account, account);
        others = has(e, RON_F_TO) && is(e->to, account);

        switch (e->kind) {

        case RON_KIND_MINT:
        case RON_KIND_CREDIT:
        case RON_KIND_RELEASE:
            sum += mine ? e->amount : 0;
            break;

        case RON_KIND_BURN:
        case RON_KIND_DEBIT:
        case RON_KIND_HOLD:
            sum -= mine ? e->amount : 0;
            break;

        case RON_KIND_CAPTURE:
            sum += others ? e->amount : 0;
            break;

        default:                    /* Transfer and Reverse */
            sum -= mine ? e->amount : 0;
            sum += others ? e->amount : 0;
        }
    }

    return sum;
}


ron_u128_t
model_held(const model_t *m, uint64_t seq, ron_str_t account, ron_str_t asset)
{
    ron_u128_t          sum;
    const ron_entry_t  *e;

    sum = 0;

    for (uint64_t s = 1; s <= seq; s++) {
        e = model_entry(m, s);

        if (!is(e->asset, asset) || !is(e->account, account)) {
            continue;
        }

        if (e->kind == RON_KIND_HOLD) {
            sum += e->amount;
        }

        if (e->kind == RON_KIND_CAPTURE || e->kind == RON_KIND_RELEASE) {
            sum -= e->amount;
        }
    }

    return sum;
}


/* An issue's nonce is recorded, not sequenced. */
uint64_t
model_nonce(const model_t *m, uint64_t seq, ron_str_t account)
{
    const ron_entry_t  *e;

    for (uint64_t s = seq; s >= 1; s--) {
        e = model_entry(m, s);

        if (has(e, RON_F_NONCE) && is(e->account, account)
            && (e->kind == RON_KIND_TRANSFER || e->kind == RON_KIND_BURN
                || e->kind == RON_KIND_HOLD))
        {
            return e->nonce;
        }
    }

    return 0;
}


/* A Hold names the account it is for, and does not touch it. */
uint64_t
model_version(const model_t *m, uint64_t seq, ron_str_t account)
{
    uint64_t            version;
    const ron_entry_t  *e;

    version = 0;

    for (uint64_t s = 1; s <= seq; s++) {
        e = model_entry(m, s);

        version += (has(e, RON_F_ACCOUNT) && is(e->account, account))
                   || (has(e, RON_F_TO) && e->kind != RON_KIND_HOLD
                       && is(e->to, account));
    }

    return version;
}


static ron_u128_t
model_sum_of(const model_t *m, uint64_t seq, ron_kind_t kind, ron_str_t asset)
{
    ron_u128_t          sum;
    const ron_entry_t  *e;

    sum = 0;

    for (uint64_t s = 1; s <= seq; s++) {
        e = model_entry(m, s);
        sum += e->kind == kind && is(e->asset, asset) ? e->amount : 0;
    }

    return sum;
}


ron_u128_t
model_minted(const model_t *m, uint64_t seq, ron_str_t asset)
{
    return model_sum_of(m, seq, RON_KIND_MINT, asset);
}


ron_u128_t
model_burned(const model_t *m, uint64_t seq, ron_str_t asset)
{
    return model_sum_of(m, seq, RON_KIND_BURN, asset);
}


static const ron_entry_t *
model_hold(const model_t *m, uint64_t seq)
{
    const ron_entry_t  *e;

    e = model_entry(m, seq);

    return e != NULL && e->kind == RON_KIND_HOLD ? e : NULL;
}


/* The hold of an operation: with a txid, if all of that is the hold's. */
static const ron_entry_t *
model_hold_of(const model_t *m, const ron_entry_t *op)
{
    const ron_entry_t  *hold;

    hold = model_hold(m, op->ref);

    if (hold == NULL || !has(op, RON_F_TXID)) {
        return hold;
    }

    return op->ledger_id == m->ledger_id && op->time_ms == hold->time_ms
           ? hold : NULL;
}


ron_u128_t
model_left(const model_t *m, uint64_t seq)
{
    ron_u128_t          left;
    const ron_entry_t  *e;

    e = model_hold(m, seq);
    left = e != NULL ? e->amount : 0;

    for (uint64_t s = seq + 1; e != NULL && s <= m->entry_n; s++) {
        const ron_entry_t  *next = model_entry(m, s);

        if (next->ref == seq && (next->kind == RON_KIND_CAPTURE
                                 || next->kind == RON_KIND_RELEASE))
        {
            left -= next->amount;
        }
    }

    return left;
}


static ron_u128_t
model_reversed(const model_t *m, uint64_t seq)
{
    ron_u128_t          sum;
    const ron_entry_t  *e;

    sum = 0;

    for (uint64_t s = seq + 1; s <= m->entry_n; s++) {
        e = model_entry(m, s);
        sum += e->kind == RON_KIND_REVERSE && e->ref == seq ? e->amount : 0;
    }

    return sum;
}


/* The open hold that expires first, the older of two. */
static uint64_t
model_first_to_expire(const model_t *m)
{
    uint64_t            first;
    const ron_entry_t  *e;

    first = 0;

    for (uint64_t s = 1; s <= m->entry_n; s++) {
        e = model_hold(m, s);

        if (e == NULL || !has(e, RON_F_EXPIRY) || model_left(m, s) == 0) {
            continue;
        }

        if (first == 0 || e->expiry_ms < model_entry(m, first)->expiry_ms) {
            first = s;
        }
    }

    return first;
}


uint64_t
model_next_expiry(const model_t *m)
{
    uint64_t  first;

    first = model_first_to_expire(m);

    return first != 0 ? model_entry(m, first)->expiry_ms : 0;
}


/* ---- sums that cannot overflow ------------------------------------------- */


static void
model_add(model_sum_t *sum, ron_u128_t amount)
{
    sum->low += amount;
    sum->carry += sum->low < amount;
}


static int
model_compare(model_sum_t a, model_sum_t b)
{
    if (a.carry != b.carry) {
        return a.carry < b.carry ? -1 : 1;
    }

    return a.low == b.low ? 0 : a.low < b.low ? -1 : 1;
}


/* a + b > limit, where a + b may be any number. */
static bool
model_over(model_sum_t a, ron_u128_t b, ron_u128_t limit)
{
    model_add(&a, b);

    return a.carry != 0 || a.low > limit;
}


/* A Reverse that has no account gives somebody back. */
static bool
model_spends(const ron_entry_t *e)
{
    switch (e->kind) {

    case RON_KIND_MINT:
    case RON_KIND_TRANSFER:
    case RON_KIND_BURN:
    case RON_KIND_HOLD:
    case RON_KIND_DEBIT:
        return true;

    case RON_KIND_REVERSE:
        return has(e, RON_F_ACCOUNT);

    default:
        return false;
    }
}


/* What wallet operations of this day moved out of an account, or with a cap. */
static model_sum_t
model_day(const model_t *m, const ron_str_t *account, const ron_str_t *cap)
{
    model_sum_t         sum = { 0, 0 };
    const ron_entry_t  *e;

    for (uint64_t s = 1; s <= m->entry_n; s++) {
        e = model_entry(m, s);

        if (e->time_ms / MODEL_DAY_MS != m->time_ms / MODEL_DAY_MS
            || !model_spends(e))
        {
            continue;
        }

        if ((account != NULL && has(e, RON_F_WALLET)
             && is(e->account, *account))
            || (cap != NULL && is(e->cap, *cap)))
        {
            model_add(&sum, e->amount);
        }
    }

    return sum;
}


/* ---- writing ------------------------------------------------------------- */


static void
model_append(model_t *m, const ron_entry_t *entry, const ron_entry_t *asked)
{
    model_entry_t  *slot;

    if (m->entry_n == m->entry_max) {
        m->entry_max = m->entry_max * 2 + 64;
        m->entries = realloc(m->entries,
                             m->entry_max * sizeof(model_entry_t));
        RON_ASSERT(m->entries != NULL);
    }

    slot = &m->entries[m->entry_n++];
    slot->entry = model_keep_entry(m, entry);
    slot->entry.ledger_id = m->ledger_id;
    slot->entry.seq = m->entry_n;
    slot->entry.time_ms = m->time_ms;
    slot->asked = model_keep_entry(m, asked);
}


/* Commits operation i, with what was filled in; says so in the answer. */
static void
model_accept(model_case_t *c, uint32_t i, ron_entry_t entry)
{
    const ron_unit_t  *u;

    u = c->unit;

    if (u->key.len > 0) {
        entry.fields |= RON_F_KEY;
        entry.key = u->key;
    }

    if (u->cap.len > 0) {
        entry.fields |= RON_F_CAP;
        entry.cap = u->cap;
    }

    if (u->type != RON_UNIT_INGEST) {
        entry.fields |= RON_F_WALLET;
    }

    if (u->type == RON_UNIT_BATCH) {
        entry.fields |= RON_F_SCOPE;
        entry.scope = u->cap;
    }

    model_append(c->m, &entry, &u->ops[i]);

    c->out->results[i].done = true;
    c->out->results[i].seq = c->m->entry_n;
}


static void
model_refuse(model_case_t *c, uint32_t i, ron_reason_t reason,
    ron_detail_t detail, uint64_t value)
{
    model_result_t  *r;

    r = &c->out->results[i];
    r->done = true;
    r->reason = reason;
    r->detail = detail;
    r->value = value;
    c->refused = true;
}


/* Would the capability have moved too much today, `before` it included? */
static bool
model_over_cap(const model_case_t *c, model_sum_t before,
    const ron_entry_t *op)
{
    model_sum_t        day;
    const ron_unit_t  *u;

    u = c->unit;

    if (u->cap_daily == 0 || !model_spends(op)) {
        return false;
    }

    if (u->cap.len > 0) {
        day = model_day(c->m, NULL, &u->cap);
        before.carry += day.carry;
        model_add(&before, day.low);
    }

    return model_over(before, op->amount, u->cap_daily);
}


static bool
model_in_cap(model_case_t *c, uint32_t i, const ron_entry_t *op)
{
    if (!model_over_cap(c, (model_sum_t) { 0, 0 }, op)) {
        return true;
    }

    model_refuse(c, i, RON_REASON_LIMITS, RON_DETAIL_DAILY_CAP, 0);

    return false;
}


/* The legs before k are part of what the day has seen. */
static bool
model_leg_in_cap(model_case_t *c, const model_leg_t *legs, uint32_t n,
    uint32_t k, const ron_entry_t *entries)
{
    model_sum_t  before;

    memset(&before, 0, sizeof(before));

    for (uint32_t j = 0; c->unit->cap.len > 0 && j < k; j++) {
        if (model_spends(&entries[j])) {
            model_add(&before, legs[j].amount);
        }
    }

    if (!model_over_cap(c, before, &entries[k])) {
        return true;
    }

    model_refuse(c, legs[k].op, RON_REASON_LIMITS, RON_DETAIL_DAILY_CAP, 0);
    model_drop_legs(c, legs, n);

    return false;
}


static void
model_repeat(model_case_t *c, uint32_t i, uint64_t seq)
{
    c->out->results[i].done = true;
    c->out->results[i].repeat = true;
    c->out->results[i].seq = seq;
}


static void
model_refuse_unit(model_case_t *c, ron_reason_t reason, ron_detail_t detail)
{
    for (uint32_t i = 0; i < c->unit->op_n; i++) {
        model_refuse(c, i, reason, detail, 0);
    }

    c->out->reason = reason;
    c->out->detail = detail;
}


/* ---- a batch ------------------------------------------------------------- */


static bool
model_comes_before(const ron_unit_t *a, const ron_unit_t *b)
{
    ron_str_t  x, y;

    if (a->source_us != b->source_us) {
        return a->source_us < b->source_us;
    }

    x = a->op_n > 0 && has(&a->ops[0], RON_F_ID) ? a->ops[0].id : ron_null_str;
    y = b->op_n > 0 && has(&b->ops[0], RON_F_ID) ? b->ops[0].id : ron_null_str;

    return ron_str_cmp(x, y) < 0;
}


static bool
model_is_numbered(const ron_unit_t *u)
{
    const ron_entry_t  *op;

    op = u->ops;

    return u->type == RON_UNIT_WALLET && u->op_n == 1
           && has(op, RON_F_NONCE) && has(op, RON_F_ACCOUNT)
           && (op->kind == RON_KIND_TRANSFER || op->kind == RON_KIND_BURN
               || op->kind == RON_KIND_HOLD);
}


/* Two numbered operations of one account, the later one with the lower. */
static bool
model_is_crossed(const ron_unit_t *a, const ron_unit_t *b)
{
    return model_is_numbered(a) && model_is_numbered(b)
           && is(a->ops->account, b->ops->account)
           && b->ops->nonce < a->ops->nonce;
}


static void
model_swap(uint32_t *a, uint32_t *b)
{
    uint32_t  t;

    t = *a;
    *a = *b;
    *b = t;
}


static void
model_sort(ron_unit_t **units, uint32_t n, uint32_t *order)
{
    uint32_t  i, k, last;

    for (i = 0; i < n; i++) {
        order[i] = i;
    }

    for (i = 1; i < n; i++) {
        for (k = i; k > 0; k--) {
            if (!model_comes_before(units[order[k]], units[order[k - 1]])) {
                break;
            }

            model_swap(&order[k], &order[k - 1]);
        }
    }

    /*
     * Among the places of one account: sinks every operation below those with
     * lower nonces, a place at a time, so that equal ones never pass.
     */

    for (i = 1; i < n; i++) {
        last = i;

        for (k = i; k-- > 0; /* void */) {
            if (!model_is_numbered(units[order[k]])
                || !model_is_numbered(units[order[last]])
                || !is(units[order[k]]->ops->account,
                       units[order[last]]->ops->account))
            {
                continue;
            }

            if (!model_is_crossed(units[order[k]], units[order[last]])) {
                break;
            }

            model_swap(&order[k], &order[last]);
            last = k;
        }
    }
}


static void
model_release_expired(model_t *m)
{
    uint64_t            seq;
    ron_entry_t         release;
    const ron_entry_t  *hold;

    while ((seq = model_first_to_expire(m)) != 0) {
        hold = model_entry(m, seq);

        if (hold->expiry_ms > m->time_ms) {
            return;
        }

        memset(&release, 0, sizeof(ron_entry_t));
        release.kind = RON_KIND_RELEASE;
        release.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT
                         | RON_F_REF | RON_F_EXPIRED;
        release.asset = hold->asset;
        release.account = hold->account;
        release.amount = model_left(m, seq);
        release.ref = seq;

        model_append(m, &release, &release);
    }
}


void
model_decide(model_t *m, uint64_t time_ms, uint64_t now_us,
    ron_unit_t **units, uint32_t n, model_outcome_t **outcomes,
    uint32_t *order)
{
    uint32_t      k;
    uint32_t     *sorted;
    model_case_t  c;

    RON_ASSERT(time_ms >= m->time_ms);
    m->time_ms = time_ms;

    model_release_expired(m);

    sorted = model_alloc(m, n * sizeof(uint32_t));
    model_sort(units, n, sorted);

    for (k = 0; k < n; k++) {
        memset(&c, 0, sizeof(c));
        c.m = m;
        c.unit = units[sorted[k]];
        c.now_us = now_us;
        c.out = model_alloc(m, sizeof(model_outcome_t));
        c.out->result_n = c.unit->op_n;
        c.out->results = model_alloc(m, c.unit->op_n * sizeof(model_result_t));

        model_unit(&c);

        outcomes[sorted[k]] = c.out;

        if (order != NULL) {
            order[k] = sorted[k];
        }
    }
}


/* ---- a unit -------------------------------------------------------------- */


static void
model_unit(model_case_t *c)
{
    uint64_t       before;
    model_t       *m;
    model_unit_t  *u;

    m = c->m;
    before = m->entry_n;

    switch (c->unit->type) {

    case RON_UNIT_INGEST:
        model_ingest(c);
        break;

    case RON_UNIT_BATCH:
        model_batch(c);
        break;

    default:
        model_single(c);
    }

    if (m->entry_n == before) {
        return;
    }

    if (m->unit_n == m->unit_max) {
        m->unit_max = m->unit_max * 2 + 16;
        m->units = realloc(m->units, m->unit_max * sizeof(model_unit_t));
        RON_ASSERT(m->units != NULL);
    }

    u = &m->units[m->unit_n++];
    u->asked = *c->unit;
    u->asked.key = model_keep(m, c->unit->key);
    u->asked.cap = model_keep(m, c->unit->cap);
    u->asked.ops = model_alloc(m, c->unit->op_n * sizeof(ron_entry_t));
    u->time_ms = m->time_ms;
    u->first = before + 1;
    u->outcome = c->out;

    for (uint32_t i = 0; i < c->unit->op_n; i++) {
        u->asked.ops[i] = model_keep_entry(m, &c->unit->ops[i]);
    }
}


static bool
model_is_late(const model_case_t *c)
{
    return c->unit->deadline_us != 0 && c->now_us >= c->unit->deadline_us;
}


/* The answer as a whole, once every operation has one. */
static void
model_settle(model_case_t *c, uint64_t before)
{
    uint32_t         i;
    model_result_t  *r, *first;

    if (c->unit->atomic && c->refused) {
        c->m->entry_n = before;

        for (i = 0; i < c->unit->op_n; i++) {
            r = &c->out->results[i];

            if (r->reason == RON_REASON_OK) {
                memset(r, 0, sizeof(model_result_t));
                r->done = true;
                r->reason = RON_REASON_ABORTED;
                r->detail = RON_DETAIL_ATOMIC;
            }
        }
    }

    first = NULL;

    for (i = 0; i < c->unit->op_n; i++) {
        r = &c->out->results[i];

        if (r->reason == RON_REASON_OK) {
            return;
        }

        if (first == NULL && r->reason != RON_REASON_ABORTED) {
            first = r;
        }
    }

    c->out->reason = first->reason;
    c->out->detail = first->detail;
    c->out->value = first->value;
}


/* Whether two lists of operations are the same to the last member. */
static bool
model_same_op(const ron_entry_t *a, const ron_entry_t *b)
{
    uint32_t  f;

    if (a->kind != b->kind || a->fields != b->fields) {
        return false;
    }

    f = a->fields;

    return (!(f & RON_F_ASSET) || is(a->asset, b->asset))
           && (!(f & RON_F_ACCOUNT) || is(a->account, b->account))
           && (!(f & RON_F_TO) || is(a->to, b->to))
           && (!(f & RON_F_AMOUNT) || a->amount == b->amount)
           && (!(f & RON_F_NONCE) || a->nonce == b->nonce)
           && (!(f & RON_F_NONCE16)
               || memcmp(a->nonce16, b->nonce16, RON_NONCE_LEN) == 0)
           && (!(f & RON_F_ID) || is(a->id, b->id))
           && (!(f & RON_F_SOURCE) || a->source_ms == b->source_ms)
           && (!(f & RON_F_REF) || a->ref == b->ref)
           && (!(f & RON_F_EXPIRY) || a->expiry_ms == b->expiry_ms)
           && (!(f & RON_F_MEMO) || ron_hash_eq(&a->memo, &b->memo))
           && (!(f & RON_F_CAPREF) || is(a->capref, b->capref))
           && (!(f & RON_F_SCHEMA) || a->schema == b->schema)
           && (!(f & RON_F_TXID)
               || (a->ledger_id == b->ledger_id && a->time_ms == b->time_ms));
}


static bool
model_same_list(const ron_unit_t *a, const ron_unit_t *b)
{
    if (a->op_n != b->op_n || a->atomic != b->atomic) {
        return false;
    }

    for (uint32_t i = 0; i < a->op_n; i++) {
        if (!model_same_op(&a->ops[i], &b->ops[i])) {
            return false;
        }
    }

    return true;
}


/* The newest unit of this type, key and capability, if it still counts. */
static const model_unit_t *
model_find_unit(const model_case_t *c)
{
    const model_t       *m;
    const model_unit_t  *u;

    m = c->m;

    for (uint32_t i = m->unit_n; i-- > 0; /* void */) {
        u = &m->units[i];

        if (u->asked.type != c->unit->type || !is(u->asked.key, c->unit->key)) {
            continue;
        }

        if (u->asked.type == RON_UNIT_INGEST) {
            return u;
        }

        if (is(u->asked.cap, c->unit->cap)) {
            return u->time_ms + m->key_ttl_ms > m->time_ms ? u : NULL;
        }
    }

    return NULL;
}


/* An earlier answer, given again; false when there is none to give. */
static bool
model_answer_again(model_case_t *c, ron_reason_t other, ron_detail_t detail)
{
    const model_unit_t  *old;

    if (c->unit->key.len == 0 || (old = model_find_unit(c)) == NULL) {
        return false;
    }

    if (!model_same_list(&old->asked, c->unit)) {
        model_refuse_unit(c, other, detail);
        return true;
    }

    *c->out = *old->outcome;
    c->out->replayed = true;

    return true;
}


static void
model_ingest(model_case_t *c)
{
    uint64_t          before;
    const ron_entry_t  *op, *original;

    if (model_answer_again(c, RON_REASON_CONFLICT, RON_DETAIL_BATCH_REUSED)) {
        return;
    }

    if (model_is_late(c)) {
        model_refuse_unit(c, RON_REASON_RETRY_LATER, RON_DETAIL_DEADLINE);
        return;
    }

    before = c->m->entry_n;

    for (uint32_t i = 0; i < c->unit->op_n; i++) {
        if (c->out->results[i].done) {
            continue;
        }

        op = &c->unit->ops[i];
        original = has(op, RON_F_REF) ? model_entry(c->m, op->ref) : NULL;

        if (op->kind == RON_KIND_DEBIT || op->kind == RON_KIND_CREDIT) {
            model_posting(c);

        } else if (op->kind == RON_KIND_REVERSE && original != NULL
                   && has(original, RON_F_POSTING))
        {
            model_unpost(c, i);

        } else {
            model_ingest_op(c, i);
        }

        if (c->unit->atomic && c->refused) {
            break;
        }
    }

    model_settle(c, before);
}


/* A version is asked for: all operations are about one account, as it is. */
static bool
model_batch_matches(model_case_t *c)
{
    uint64_t            version;
    ron_str_t           scope, one;
    const ron_entry_t  *op;

    one = ron_null_str;

    for (uint32_t i = 0; i < c->unit->op_n; i++) {
        op = &c->unit->ops[i];
        scope = model_scope(c->m, op);

        if (scope.len == 0) {
            if (op->kind == RON_KIND_CAPTURE
                || op->kind == RON_KIND_RELEASE)
            {
                model_refuse_unit(c, RON_REASON_HOLD_NOT_FOUND,
                                  RON_DETAIL_HOLD_REF);
                return false;
            }

            model_refuse_unit(c, RON_REASON_MALFORMED, RON_DETAIL_FIELDS);
            return false;
        }

        if (i > 0 && !is(scope, one)) {
            model_refuse_unit(c, RON_REASON_MALFORMED, RON_DETAIL_MATCH);
            return false;
        }

        one = scope;
    }

    version = model_version(c->m, c->m->entry_n, one);

    if (version == c->unit->match) {
        return true;
    }

    model_refuse_unit(c, RON_REASON_PRECONDITION, RON_DETAIL_VERSION);
    c->out->value = version;

    for (uint32_t i = 0; i < c->unit->op_n; i++) {
        c->out->results[i].value = version;
    }

    return false;
}


static void
model_batch(model_case_t *c)
{
    uint64_t  before;

    if (model_answer_again(c, RON_REASON_IDEM_MISMATCH,
                           RON_DETAIL_KEY_REUSED))
    {
        return;
    }

    if (model_is_late(c)) {
        model_refuse_unit(c, RON_REASON_RETRY_LATER, RON_DETAIL_DEADLINE);
        return;
    }

    if (c->unit->has_match && !model_batch_matches(c)) {
        return;
    }

    before = c->m->entry_n;

    for (uint32_t i = 0; i < c->unit->op_n; i++) {
        model_wallet_op(c, i);

        if (c->unit->atomic && c->refused) {
            break;
        }
    }

    model_settle(c, before);
}


/* Whether a wallet asks for what entry `e` is: only what it said counts. */
static bool
model_same_wish(const ron_entry_t *op, const ron_entry_t *e)
{
    if (op->kind != e->kind) {
        return false;
    }

    if (op->kind == RON_KIND_CAPTURE || op->kind == RON_KIND_RELEASE) {
        return op->ref == e->ref
               && (op->kind == RON_KIND_RELEASE || op->amount == e->amount);
    }

    if (has(op, RON_F_EXPIRY) != has(e, RON_F_EXPIRY)
        || (has(op, RON_F_EXPIRY)
            && op->expiry_ms != e->expiry_ms - e->time_ms))
    {
        return false;
    }

    if (has(op, RON_F_MEMO) != has(e, RON_F_MEMO)
        || (has(op, RON_F_MEMO) && !ron_hash_eq(&op->memo, &e->memo)))
    {
        return false;
    }

    return is(op->asset, e->asset) && is(op->account, e->account)
           && op->amount == e->amount
           && has(op, RON_F_NONCE) == has(e, RON_F_NONCE)
           && (!has(op, RON_F_NONCE) || op->nonce == e->nonce)
           && has(op, RON_F_TO) == has(e, RON_F_TO)
           && (!has(op, RON_F_TO) || is(op->to, e->to));
}


/* The account in which a wallet's key must be new; a null string: none. */
static ron_str_t
model_scope(const model_t *m, const ron_entry_t *op)
{
    const ron_entry_t  *hold;

    if (op->kind == RON_KIND_CAPTURE || op->kind == RON_KIND_RELEASE) {
        hold = has(op, RON_F_REF) ? model_hold_of(m, op) : NULL;
        return hold != NULL ? hold->account : ron_null_str;
    }

    return has(op, RON_F_ACCOUNT) && ron_account_valid(op->account)
           ? op->account : ron_null_str;
}


static void
model_single(model_case_t *c)
{
    uint64_t            before;
    model_t            *m;
    ron_str_t           scope;
    const ron_entry_t  *e;

    m = c->m;
    scope = model_scope(m, c->unit->ops);

    /* Without a scope no key can be looked up, so that comes first. */

    if (scope.len == 0) {
        if (c->unit->ops->kind == RON_KIND_CAPTURE
            || c->unit->ops->kind == RON_KIND_RELEASE)
        {
            model_refuse_unit(c, RON_REASON_HOLD_NOT_FOUND,
                              RON_DETAIL_HOLD_REF);

        } else {
            model_refuse_unit(c, RON_REASON_MALFORMED, RON_DETAIL_FIELDS);
        }

        return;
    }

    for (uint64_t s = m->entry_n; s >= 1; s--) {
        e = model_entry(m, s);

        if (!has(e, RON_F_WALLET) || has(e, RON_F_SCOPE)
            || !is(e->key, c->unit->key) || !is(e->account, scope))
        {
            continue;
        }

        if (e->time_ms + m->key_ttl_ms <= m->time_ms) {
            break;
        }

        if (!model_same_wish(c->unit->ops, e)) {
            model_refuse_unit(c, RON_REASON_IDEM_MISMATCH,
                              RON_DETAIL_KEY_REUSED);
            return;
        }

        c->out->replayed = true;
        model_repeat(c, 0, s);
        return;
    }

    if (model_is_late(c)) {
        model_refuse_unit(c, RON_REASON_RETRY_LATER, RON_DETAIL_DEADLINE);
        return;
    }

    before = m->entry_n;
    model_wallet_op(c, 0);
    model_settle(c, before);
}


/* ---- what an operation looks like ---------------------------------------- */


/* RON_DETAIL_NONE, or what is malformed. */
static ron_detail_t
model_shape(const ron_entry_t *op, uint32_t must, uint32_t may)
{
    if ((op->fields & must) != must || (op->fields & ~(must | may)) != 0) {
        return RON_DETAIL_FIELDS;
    }

    if (has(op, RON_F_AMOUNT) && op->amount == 0) {
        return RON_DETAIL_AMOUNT;
    }

    if ((has(op, RON_F_ACCOUNT) && !ron_account_valid(op->account))
        || (has(op, RON_F_TO) && !ron_account_valid(op->to))
        || (has(op, RON_F_ASSET) && !ron_asset_valid(op->asset))
        || (has(op, RON_F_ID)
            && (op->id.len == 0 || op->id.len > RON_ID_MAX))
        || (has(op, RON_F_NONCE)
            && (op->nonce == 0 || op->nonce > RON_NONCE_MAX))
        || (has(op, RON_F_EXPIRY) && op->expiry_ms > RON_TIME_MAX)
        || (has(op, RON_F_REF) && op->ref == 0))
    {
        return RON_DETAIL_FIELDS;
    }

    if ((op->kind == RON_KIND_TRANSFER || op->kind == RON_KIND_HOLD)
        && is(op->account, op->to))
    {
        return RON_DETAIL_ACCOUNTS;
    }

    return RON_DETAIL_NONE;
}


static ron_detail_t
model_ingest_shape(const ron_entry_t *op)
{
    uint32_t  must, may;

    must = MODEL_INGEST_MUST | RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    may = MODEL_INGEST_MAY;

    switch (op->kind) {

    case RON_KIND_TRANSFER:
        must |= RON_F_TO;
        break;

    case RON_KIND_HOLD:
        must |= RON_F_TO;
        may |= RON_F_EXPIRY;
        break;

    case RON_KIND_CAPTURE:
    case RON_KIND_RELEASE:
        must |= RON_F_REF;
        break;

    case RON_KIND_REVERSE:
        must |= RON_F_REF;
        may |= RON_F_TO;
        break;

    default:
        break;
    }

    return model_shape(op, must, may);
}


static ron_detail_t
model_wallet_shape(const ron_entry_t *op, uint64_t time_ms)
{
    uint32_t      must, may;
    ron_detail_t  detail;

    must = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    may = RON_F_MEMO;

    switch (op->kind) {

    case RON_KIND_MINT:
        may |= RON_F_NONCE;
        break;

    case RON_KIND_BURN:
        must |= RON_F_NONCE;
        break;

    case RON_KIND_TRANSFER:
        must |= RON_F_NONCE | RON_F_TO;
        break;

    case RON_KIND_HOLD:
        must |= RON_F_NONCE | RON_F_TO;
        may |= RON_F_EXPIRY;
        break;

    case RON_KIND_CAPTURE:
        must = RON_F_REF | RON_F_AMOUNT;
        may |= RON_F_TXID;
        break;

    case RON_KIND_RELEASE:
        must = RON_F_REF;
        may |= RON_F_TXID;
        break;

    default:
        break;
    }

    detail = model_shape(op, must, may);

    /* A wallet's expiry is a duration. */

    if ((detail == RON_DETAIL_NONE || detail == RON_DETAIL_ACCOUNTS)
        && has(op, RON_F_EXPIRY)
        && (op->expiry_ms == 0 || op->expiry_ms > RON_TIME_MAX - time_ms))
    {
        return RON_DETAIL_EXPIRY;
    }

    return detail;
}


/* ---- an ingested entry --------------------------------------------------- */


/* The parts of an entry that `ref` decides may be left out when asking. */
static bool
model_same_target(const ron_entry_t *op, const model_entry_t *old)
{
    const ron_entry_t  *e;

    e = &old->entry;

    if (!is(op->asset, e->asset) || op->ref != e->ref) {
        return false;
    }

    if (op->kind != RON_KIND_REVERSE) {
        return has(op, RON_F_TO) == has(&old->asked, RON_F_TO)
               && (!has(op, RON_F_TO) || is(op->to, e->to));
    }

    return !has(op, RON_F_TO)
           || (has(e, RON_F_ACCOUNT) && has(e, RON_F_TO) && is(op->to, e->to));
}


static bool
model_same_tuple(const model_case_t *c, const ron_entry_t *op,
    const model_entry_t *old)
{
    return is(op->account, old->asked.account)
           && op->amount == old->entry.amount
           && memcmp(op->nonce16, old->entry.nonce16, RON_NONCE_LEN) == 0
           && is(c->unit->key, old->entry.key);
}


static uint32_t
model_schema(const ron_entry_t *e)
{
    return has(e, RON_F_SCHEMA) ? e->schema : 1;
}


static bool
model_same_content(const model_case_t *c, const ron_entry_t *op,
    const model_entry_t *old)
{
    const ron_entry_t  *e;

    e = &old->entry;

    return op->kind == e->kind && model_same_tuple(c, op, old)
           && model_same_target(op, old)
           && op->source_ms == e->source_ms
           && model_schema(op) == model_schema(e)
           && has(op, RON_F_EXPIRY) == has(e, RON_F_EXPIRY)
           && (!has(op, RON_F_EXPIRY) || op->expiry_ms == e->expiry_ms)
           && has(op, RON_F_CAPREF) == has(e, RON_F_CAPREF)
           && (!has(op, RON_F_CAPREF) || is(op->capref, e->capref));
}


/*
 * Shape and novelty of an ingested entry.  Returns the seq that it repeats,
 * 0 when it is new, and refuses it otherwise.
 */
static bool
model_is_new(model_case_t *c, uint32_t i, uint64_t *repeats)
{
    model_t              *m;
    ron_detail_t          detail;
    const ron_entry_t    *op;
    const model_entry_t  *old;

    m = c->m;
    op = &c->unit->ops[i];
    *repeats = 0;

    detail = model_ingest_shape(op);

    if (detail != RON_DETAIL_NONE) {
        model_refuse(c, i, RON_REASON_MALFORMED, detail, 0);
        return false;
    }

    for (uint64_t s = 1; s <= m->entry_n; s++) {
        old = &m->entries[s - 1];

        if (!has(&old->entry, RON_F_ID) || !is(old->entry.id, op->id)) {
            continue;
        }

        if (!model_same_content(c, op, old)) {
            model_refuse(c, i, RON_REASON_CONFLICT, RON_DETAIL_ID_REUSED, 0);
            return false;
        }

        *repeats = s;
        return true;
    }

    for (uint64_t s = 1; s <= m->entry_n; s++) {
        old = &m->entries[s - 1];

        if (!has(&old->entry, RON_F_NONCE16)
            || !model_same_tuple(c, op, old))
        {
            continue;
        }

        if (op->kind != old->entry.kind || !model_same_target(op, old)) {
            model_refuse(c, i, RON_REASON_CONFLICT, RON_DETAIL_TUPLE_REUSED,
                         0);
            return false;
        }

        *repeats = s;
        return true;
    }

    return true;
}


/* Whether the supply stays below 2^128. */
static bool
model_may_mint(const model_t *m, const ron_entry_t *op)
{
    ron_u128_t  supply;

    supply = model_minted(m, m->entry_n, op->asset)
             - model_burned(m, m->entry_n, op->asset);

    return op->amount <= ~supply;
}


static bool
model_may_spend(const model_t *m, ron_str_t account, ron_str_t asset,
    ron_u128_t amount)
{
    return model_available(m, m->entry_n, account, asset) >= amount;
}


/* What the account that an entry credits would have, all in all. */
static bool
model_in_total(model_case_t *c, uint32_t i, const ron_entry_t *e)
{
    model_sum_t  sum;
    ron_str_t    credited;

    if (c->unit->type == RON_UNIT_INGEST || c->unit->account_total == 0
        || (e->kind != RON_KIND_MINT && e->kind != RON_KIND_TRANSFER
            && e->kind != RON_KIND_CAPTURE))
    {
        return true;
    }

    credited = e->kind == RON_KIND_MINT ? e->account : e->to;

    memset(&sum, 0, sizeof(sum));
    model_add(&sum, model_available(c->m, c->m->entry_n, credited, e->asset));
    model_add(&sum, model_held(c->m, c->m->entry_n, credited, e->asset));

    if (model_over(sum, e->amount, c->unit->account_total)) {
        model_refuse(c, i, RON_REASON_LIMITS, RON_DETAIL_TOTAL, 0);
        return false;
    }

    return true;
}


/* A Capture or Release; what the caller left out is filled in. */
static void
model_end_hold(model_case_t *c, uint32_t i)
{
    ron_entry_t         e;
    ron_u128_t          left;
    const ron_entry_t  *op, *hold;

    op = &c->unit->ops[i];
    hold = model_hold_of(c->m, op);

    left = model_left(c->m, op->ref);

    if (hold == NULL
        || (has(op, RON_F_ACCOUNT) && !is(op->account, hold->account))
        || (left != 0 && has(op, RON_F_ASSET) && !is(op->asset, hold->asset)))
    {
        model_refuse(c, i, RON_REASON_HOLD_NOT_FOUND, RON_DETAIL_HOLD_REF, 0);
        return;
    }

    if (left == 0) {
        model_refuse(c, i, RON_REASON_HOLD_CLOSED, RON_DETAIL_HOLD_DONE, 0);
        return;
    }

    if (has(op, RON_F_AMOUNT)
        && (op->kind == RON_KIND_CAPTURE ? op->amount > left
                                         : op->amount != left))
    {
        model_refuse(c, i, RON_REASON_CONFLICT, RON_DETAIL_HELD,
                     (uint64_t) ron_min(left, (ron_u128_t) UINT64_MAX));
        return;
    }

    e = *op;
    e.fields &= ~(uint32_t) RON_F_TXID;
    e.fields |= RON_F_ACCOUNT | RON_F_ASSET | RON_F_AMOUNT;
    e.account = hold->account;
    e.asset = hold->asset;
    e.amount = op->kind == RON_KIND_CAPTURE ? op->amount : left;

    if (op->kind == RON_KIND_CAPTURE) {
        e.fields |= RON_F_TO;
        e.to = hold->to;
    }

    if (model_in_total(c, i, &e)) {
        model_accept(c, i, e);
    }
}


static void
model_reverse_transfer(model_case_t *c, uint32_t i)
{
    ron_entry_t         e;
    const ron_entry_t  *op, *original;

    op = &c->unit->ops[i];
    original = model_entry(c->m, op->ref);

    if (original == NULL || original->kind != RON_KIND_TRANSFER) {
        model_refuse(c, i, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_REF, 0);
        return;
    }

    if (!is(op->account, original->to) || !is(op->asset, original->asset)
        || (has(op, RON_F_TO) && !is(op->to, original->account)))
    {
        model_refuse(c, i, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_SIDE, 0);
        return;
    }

    if (op->amount > original->amount - model_reversed(c->m, op->ref)) {
        model_refuse(c, i, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_OVER, 0);
        return;
    }

    if (!model_may_spend(c->m, op->account, op->asset, op->amount)) {
        model_refuse(c, i, RON_REASON_INSUFFICIENT, RON_DETAIL_AVAILABLE, 0);
        return;
    }

    e = *op;
    e.fields |= RON_F_TO;
    e.to = original->account;

    if (model_in_cap(c, i, &e)) {
        model_accept(c, i, e);
    }
}


/* Mint, Burn, Transfer and Hold have the same rules wherever they come from. */
static void
model_move(model_case_t *c, uint32_t i, ron_entry_t e)
{
    model_t  *m;

    m = c->m;

    if (!model_in_total(c, i, &e)) {
        return;
    }

    if (e.kind == RON_KIND_MINT) {
        if (!model_may_mint(m, &e)) {
            model_refuse(c, i, RON_REASON_CONFLICT, RON_DETAIL_SUPPLY, 0);
            return;
        }

    } else {
        if (!model_may_spend(m, e.account, e.asset, e.amount)) {
            model_refuse(c, i, RON_REASON_INSUFFICIENT, RON_DETAIL_AVAILABLE,
                         0);
            return;
        }
    }

    if (c->unit->type != RON_UNIT_INGEST || model_in_cap(c, i, &e)) {
        model_accept(c, i, e);
    }
}


static void
model_ingest_op(model_case_t *c, uint32_t i)
{
    uint64_t            repeats;
    const ron_entry_t  *op;

    op = &c->unit->ops[i];

    if (op->kind <= RON_KIND_NONE || op->kind >= RON_KIND_N) {
        model_refuse(c, i, RON_REASON_UNKNOWN_KIND, RON_DETAIL_NONE, 0);
        return;
    }

    if (!model_is_new(c, i, &repeats)) {
        return;
    }

    if (repeats != 0) {
        model_repeat(c, i, repeats);
        return;
    }

    switch (op->kind) {

    case RON_KIND_CAPTURE:
    case RON_KIND_RELEASE:
        model_end_hold(c, i);
        break;

    case RON_KIND_REVERSE:
        model_reverse_transfer(c, i);
        break;

    default:
        if (has(op, RON_F_EXPIRY)
            && op->expiry_ms <= c->m->time_ms)
        {
            model_refuse(c, i, RON_REASON_MALFORMED, RON_DETAIL_EXPIRY, 0);
            break;
        }

        model_move(c, i, *op);
    }
}


/* ---- postings ------------------------------------------------------------ */


/* All legs get the same answer. */
static void
model_refuse_legs(model_case_t *c, const model_leg_t *legs, uint32_t n,
    ron_reason_t reason, ron_detail_t detail)
{
    for (uint32_t k = 0; k < n; k++) {
        model_refuse(c, legs[k].op, reason, detail, 0);
    }
}


/* One leg has its answer, and the others fall with it. */
static void
model_drop_legs(model_case_t *c, const model_leg_t *legs, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        if (!c->out->results[legs[k].op].done) {
            model_refuse(c, legs[k].op, RON_REASON_CONFLICT,
                         RON_DETAIL_POSTING, 0);
        }
    }
}


/*
 * All new: true.  All known: they are repeats.  Anything between: refused.
 */
static bool
model_legs_new(model_case_t *c, const model_leg_t *legs, uint32_t n)
{
    bool       whole;
    uint32_t   k, known;
    uint64_t  *seqs;

    seqs = model_alloc(c->m, n * sizeof(uint64_t));
    known = 0;

    whole = true;

    for (k = 0; k < n; k++) {
        whole = model_is_new(c, legs[k].op, &seqs[k]) && whole;
        known += seqs[k] != 0;
    }

    if (!whole) {
        model_drop_legs(c, legs, n);
        return false;
    }

    if (known == n) {
        for (k = 0; k < n; k++) {
            model_repeat(c, legs[k].op, seqs[k]);
        }

        return false;
    }

    if (known != 0) {
        model_refuse_legs(c, legs, n, RON_REASON_CONFLICT,
                          RON_DETAIL_POSTING);
        return false;
    }

    return true;
}


/* Per asset, what is gained is lost elsewhere. */
static bool
model_balanced(model_case_t *c, const model_leg_t *legs, uint32_t n)
{
    model_sum_t  gains, losses;

    for (uint32_t k = 0; k < n; k++) {
        memset(&gains, 0, sizeof(gains));
        memset(&losses, 0, sizeof(losses));

        for (uint32_t j = 0; j < n; j++) {
            if (is(legs[j].asset, legs[k].asset)) {
                model_add(legs[j].gains ? &gains : &losses, legs[j].amount);
            }
        }

        if (model_compare(gains, losses) != 0) {
            model_refuse_legs(c, legs, n, RON_REASON_CONFLICT,
                              RON_DETAIL_UNBALANCED);
            return false;
        }
    }

    return true;
}


/* Two legs with one name, or of one tuple, are not two new entries. */
static bool
model_legs_differ(model_case_t *c, const model_leg_t *legs, uint32_t n)
{
    const ron_entry_t  *a, *b;

    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t j = 0; j < k; j++) {
            a = &c->unit->ops[legs[j].op];
            b = &c->unit->ops[legs[k].op];

            if (!is(a->id, b->id)
                && (!is(a->account, b->account) || a->amount != b->amount
                    || memcmp(a->nonce16, b->nonce16, RON_NONCE_LEN) != 0))
            {
                continue;
            }

            model_refuse_legs(c, legs, n, RON_REASON_CONFLICT,
                              RON_DETAIL_POSTING);
            return false;
        }
    }

    return true;
}


static bool
model_was_minted(const model_t *m, ron_str_t asset)
{
    const ron_entry_t  *e;

    for (uint64_t s = 1; s <= m->entry_n; s++) {
        e = model_entry(m, s);

        if (e->kind == RON_KIND_MINT && is(e->asset, asset)) {
            return true;
        }
    }

    return false;
}


/*
 * Nobody ends below zero, what comes in counted first; and nobody moves what
 * never was.
 */
static bool
model_covered(model_case_t *c, const model_leg_t *legs, uint32_t n)
{
    model_sum_t  gains, losses;

    for (uint32_t k = 0; k < n; k++) {
        if (legs[k].gains) {
            continue;
        }

        memset(&gains, 0, sizeof(gains));
        memset(&losses, 0, sizeof(losses));
        model_add(&gains, model_available(c->m, c->m->entry_n,
                                          legs[k].account, legs[k].asset));

        for (uint32_t j = 0; j < n; j++) {
            if (is(legs[j].asset, legs[k].asset)
                && is(legs[j].account, legs[k].account))
            {
                model_add(legs[j].gains ? &gains : &losses, legs[j].amount);
            }
        }

        if (model_compare(gains, losses) < 0
            || !model_was_minted(c->m, legs[k].asset))
        {
            model_refuse(c, legs[k].op, RON_REASON_INSUFFICIENT,
                         RON_DETAIL_AVAILABLE, 0);
            model_drop_legs(c, legs, n);
            return false;
        }
    }

    return true;
}


static void
model_posting(model_case_t *c)
{
    uint32_t      i, n;
    uint64_t      first;
    ron_entry_t   e, *entries;
    model_leg_t  *legs;

    legs = model_alloc(c->m, c->unit->op_n * sizeof(model_leg_t));
    n = 0;

    for (i = 0; i < c->unit->op_n; i++) {
        e = c->unit->ops[i];

        if (e.kind == RON_KIND_DEBIT || e.kind == RON_KIND_CREDIT) {
            legs[n].op = i;
            legs[n].gains = e.kind == RON_KIND_CREDIT;
            legs[n].account = e.account;
            legs[n].asset = e.asset;
            legs[n].amount = e.amount;
            n++;
        }
    }

    if (!model_legs_new(c, legs, n) || !model_balanced(c, legs, n)
        || !model_legs_differ(c, legs, n) || !model_covered(c, legs, n))
    {
        return;
    }

    first = c->m->entry_n + 1;
    entries = model_alloc(c->m, n * sizeof(ron_entry_t));

    for (i = 0; i < n; i++) {
        entries[i] = c->unit->ops[legs[i].op];
        entries[i].fields |= RON_F_POSTING;
        entries[i].posting_first = first;
        entries[i].posting_n = n;

        if (!model_leg_in_cap(c, legs, n, i, entries)) {
            return;
        }
    }

    for (i = 0; i < n; i++) {
        model_accept(c, legs[i].op, entries[i]);
    }
}


/* A Reverse of a leg: its own account is who lost or gained by that leg. */
static bool
model_unpost_sides(model_case_t *c, const model_leg_t *legs, uint32_t n,
    ron_entry_t *entries)
{
    model_sum_t         sum;
    const ron_entry_t  *op, *original;

    for (uint32_t k = 0; k < n; k++) {
        op = &c->unit->ops[legs[k].op];
        original = model_entry(c->m, op->ref);

        if (!is(op->account, original->account)
            || !is(op->asset, original->asset) || has(op, RON_F_TO))
        {
            model_refuse(c, legs[k].op, RON_REASON_CONFLICT,
                         RON_DETAIL_REVERSE_SIDE, 0);
            model_drop_legs(c, legs, n);
            return false;
        }

        memset(&sum, 0, sizeof(sum));
        model_add(&sum, model_reversed(c->m, op->ref));

        for (uint32_t j = 0; j < k; j++) {
            if (c->unit->ops[legs[j].op].ref == op->ref) {
                model_add(&sum, legs[j].amount);
            }
        }

        if (model_over(sum, op->amount, original->amount)) {
            model_refuse(c, legs[k].op, RON_REASON_CONFLICT,
                         RON_DETAIL_REVERSE_OVER, 0);
            model_drop_legs(c, legs, n);
            return false;
        }

        entries[k] = *op;

        if (legs[k].gains) {
            entries[k].fields &= ~(uint32_t) RON_F_ACCOUNT;
            entries[k].fields |= RON_F_TO;
            entries[k].to = op->account;
            entries[k].account = ron_null_str;
        }

        if (!model_leg_in_cap(c, legs, n, k, entries)) {
            return false;
        }
    }

    return true;
}


static bool
model_unpost_whole(model_case_t *c, const model_leg_t *legs, uint32_t n,
    const ron_entry_t *leg)
{
    uint32_t  k;
    uint64_t  seq;

    for (seq = leg->posting_first; seq < leg->posting_first + leg->posting_n;
         seq++)
    {
        for (k = 0; k < n; k++) {
            if (c->unit->ops[legs[k].op].ref == seq) {
                break;
            }
        }

        if (k == n) {
            model_refuse_legs(c, legs, n, RON_REASON_CONFLICT,
                              RON_DETAIL_REVERSE_LEGS);
            return false;
        }
    }

    return true;
}


/* All Reverse operations of the unit that belong to the posting of op i's. */
static void
model_unpost(model_case_t *c, uint32_t i)
{
    uint32_t            n;
    ron_entry_t        *entries;
    model_leg_t        *legs;
    const ron_entry_t  *op, *leg, *original;

    legs = model_alloc(c->m, c->unit->op_n * sizeof(model_leg_t));
    entries = model_alloc(c->m, c->unit->op_n * sizeof(ron_entry_t));
    leg = model_entry(c->m, c->unit->ops[i].ref);
    n = 0;

    for (/* void */; i < c->unit->op_n; i++) {
        op = &c->unit->ops[i];

        if (op->kind != RON_KIND_REVERSE || !has(op, RON_F_REF)
            || c->out->results[i].done)
        {
            continue;
        }

        original = model_entry(c->m, op->ref);

        if (original != NULL && has(original, RON_F_POSTING)
            && original->posting_first == leg->posting_first)
        {
            legs[n].op = i;
            legs[n].gains = original->kind == RON_KIND_DEBIT;
            legs[n].account = op->account;
            legs[n].asset = op->asset;
            legs[n].amount = op->amount;
            n++;
        }
    }

    if (!model_legs_new(c, legs, n) || !model_balanced(c, legs, n)
        || !model_legs_differ(c, legs, n)
        || !model_unpost_whole(c, legs, n, leg)
        || !model_covered(c, legs, n)
        || !model_unpost_sides(c, legs, n, entries))
    {
        return;
    }

    for (i = 0; i < n; i++) {
        model_accept(c, legs[i].op, entries[i]);
    }
}


/* ---- a wallet's operation ------------------------------------------------ */


static bool
model_may_nonce(model_case_t *c, uint32_t i)
{
    uint64_t            last;
    const ron_entry_t  *op;

    op = &c->unit->ops[i];

    if (op->kind != RON_KIND_TRANSFER && op->kind != RON_KIND_BURN
        && op->kind != RON_KIND_HOLD)
    {
        return true;
    }

    last = model_nonce(c->m, c->m->entry_n, op->account);

    if (c->unit->nonce_strict && op->nonce != last + 1) {
        model_refuse(c, i, RON_REASON_NONCE, RON_DETAIL_NONCE_NEXT, last + 1);
        return false;
    }

    if (op->nonce <= last) {
        model_refuse(c, i, RON_REASON_NONCE, RON_DETAIL_NONCE_LOW, last + 1);
        return false;
    }

    return true;
}


/* What was moved today, by the account and by the capability. */
static bool
model_in_days(model_case_t *c, uint32_t i)
{
    model_t            *m;
    const ron_unit_t   *u;
    const ron_entry_t  *op;

    m = c->m;
    u = c->unit;
    op = &u->ops[i];

    if (op->kind != RON_KIND_MINT && op->kind != RON_KIND_TRANSFER
        && op->kind != RON_KIND_BURN && op->kind != RON_KIND_HOLD)
    {
        return true;
    }

    if (u->account_daily != 0
        && model_over(model_day(m, &op->account, NULL), op->amount,
                      u->account_daily))
    {
        model_refuse(c, i, RON_REASON_LIMITS, RON_DETAIL_DAILY_ACCOUNT, 0);
        return false;
    }

    return model_in_cap(c, i, op);
}


static void
model_wallet_op(model_case_t *c, uint32_t i)
{
    uint64_t            version;
    ron_entry_t         e;
    ron_detail_t        detail;
    const ron_entry_t  *op;

    op = &c->unit->ops[i];

    if (op->kind <= RON_KIND_NONE || op->kind >= RON_KIND_N
        || op->kind == RON_KIND_DEBIT || op->kind == RON_KIND_CREDIT
        || op->kind == RON_KIND_REVERSE)
    {
        model_refuse(c, i, RON_REASON_UNKNOWN_KIND, RON_DETAIL_NONE, 0);
        return;
    }

    detail = model_wallet_shape(op, c->m->time_ms);

    if (detail != RON_DETAIL_NONE) {
        model_refuse(c, i, RON_REASON_MALFORMED, detail, 0);
        return;
    }

    if (c->unit->has_match && c->unit->type == RON_UNIT_WALLET) {
        version = model_version(c->m, c->m->entry_n, model_scope(c->m, op));

        if (version != c->unit->match) {
            model_refuse(c, i, RON_REASON_PRECONDITION, RON_DETAIL_VERSION,
                         version);
            return;
        }
    }

    if (!model_may_nonce(c, i) || !model_in_days(c, i)) {
        return;
    }

    e = *op;

    if (has(op, RON_F_EXPIRY)) {
        e.expiry_ms = c->m->time_ms + op->expiry_ms;
    }

    if (op->kind == RON_KIND_CAPTURE || op->kind == RON_KIND_RELEASE) {
        model_end_hold(c, i);

    } else {
        model_move(c, i, e);
    }
}
