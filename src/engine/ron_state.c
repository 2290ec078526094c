
#include "ron_state_impl.h"
#include "ron_amount.h"
#include "ron_pool.h"
#include "ron_port.h"

#include <stdlib.h>


/*
 * Names live in chunks of this many units of two bytes, none in two of them: a
 * byte that is one less than its length, then the name.
 */
#define RON_NAME_CHUNK  (128 * 1024)
#define RON_NAME_UNIT   2

/* Places in the heap of expiries whose holds are closed, before they go. */
#define RON_EXPIRIES_SPARE  1024

#define RON_CELL_ELSEWHERE  (UINT64_C(1) << 63)


typedef enum {
    RON_UNDO_BYTES,
    RON_UNDO_ACCOUNT,
    RON_UNDO_BALANCE,
    RON_UNDO_PURSE,
    RON_UNDO_ASSET,
    RON_UNDO_HOLD_ADD,
    RON_UNDO_HOLD_DEL,
    RON_UNDO_REVERSED,
    RON_UNDO_CAP
} ron_undo_type_t;


struct ron_undo_s {
    ron_undo_type_t  type;
    uint32_t         no;
    uint32_t         len;
    void            *ptr;
    _Alignas(16) uint8_t  bytes[sizeof(ron_hold_t)];
};


static ron_undo_t *ron_undo_add(ron_state_t *st, ron_undo_type_t type,
    uint32_t no);
static void ron_undo_one(ron_state_t *st, const ron_undo_t *u);
static ron_purse_t *ron_purse_at(const ron_state_t *st, ron_cell_t cell);
static uint32_t ron_name_put(ron_state_t *st, ron_str_t name);
static uint8_t *ron_name_byte(const ron_state_t *st, uint32_t where);
static uint64_t ron_hash_u64(const ron_state_t *st, uint64_t v);
static uint64_t ron_account_rehash(const void *ctx, uint32_t no);
static uint64_t ron_hold_rehash(const void *ctx, uint32_t no);
static uint64_t ron_reversed_rehash(const void *ctx, uint32_t no);
static uint64_t ron_cap_rehash(const void *ctx, uint32_t no);
static void ron_hold_unlink(ron_state_t *st, uint32_t no);
static bool ron_hold_expires(const void *ctx, const ron_expiry_t *e);


ron_status_t
ron_state_init(ron_state_t *st)
{
    memset(st, 0, sizeof(ron_state_t));

    ron_pool_init(&st->accounts, sizeof(ron_account_t));
    ron_pool_init(&st->balances, sizeof(ron_balance_rec_t));
    ron_pool_init(&st->purses, sizeof(ron_purse_t));
    ron_pool_init(&st->holds, sizeof(ron_hold_t));
    ron_pool_init(&st->reversed, sizeof(ron_reversed_t));
    ron_pool_init(&st->caps, sizeof(ron_cap_sum_t));
    ron_buf_init(&st->cap_names, UINT32_MAX);
    st->hold_free = RON_NONE;
    st->asset_last = RON_NONE;

    return ron_random(&st->sip, sizeof(st->sip));
}


void
ron_state_free(ron_state_t *st)
{
    ron_pool_free(&st->accounts);
    ron_pool_free(&st->balances);
    ron_pool_free(&st->purses);
    ron_pool_free(&st->holds);
    ron_pool_free(&st->reversed);
    ron_pool_free(&st->caps);
    ron_index_free(&st->by_name);
    ron_index_free(&st->by_hold);
    ron_index_free(&st->by_reversed);
    ron_index_free(&st->by_cap);
    ron_buf_free(&st->cap_names);

    for (uint32_t i = 0; i < st->name_chunk_n; i++) {
        free(st->names[i]);
    }

    free(st->names);
    free(st->assets);
    ron_heap_free(&st->expiries);
    free(st->as_of);
    free(st->undo);
    memset(st, 0, sizeof(ron_state_t));
}


/* ---- undo --------------------------------------------------------------- */


void
ron_state_begin(ron_state_t *st)
{
    RON_ASSERT(!st->undo_on);

    st->undo_on = true;
    st->undo_n = 0;
}


void
ron_state_end(ron_state_t *st)
{
    st->undo_on = false;
    st->undo_n = 0;
}


void
ron_state_rollback(ron_state_t *st)
{
    RON_ASSERT(st->undo_on);

    while (st->undo_n > 0) {
        st->undo_n--;
        ron_undo_one(st, &st->undo[st->undo_n]);
    }

    st->undo_on = false;
}


static ron_undo_t *
ron_undo_add(ron_state_t *st, ron_undo_type_t type, uint32_t no)
{
    uint32_t     cap;
    ron_undo_t  *undo, *u;

    if (!st->undo_on) {
        return NULL;
    }

    if (st->undo_n == st->undo_cap) {
        cap = st->undo_cap ? st->undo_cap * 2 : 256;

        undo = realloc(st->undo, cap * sizeof(ron_undo_t));
        if (undo == NULL) {
            st->failed = true;
            return NULL;
        }

        st->undo = undo;
        st->undo_cap = cap;
    }

    u = &st->undo[st->undo_n++];
    u->type = type;
    u->no = no;
    u->ptr = NULL;
    u->len = 0;

    return u;
}


void
ron_undo_save(ron_state_t *st, void *ptr, uint32_t len)
{
    ron_undo_t  *u;

    RON_ASSERT(len <= sizeof(u->bytes));

    u = ron_undo_add(st, RON_UNDO_BYTES, 0);
    if (u == NULL) {
        return;
    }

    u->ptr = ptr;
    u->len = len;
    memcpy(u->bytes, ptr, len);
}


static void
ron_undo_one(ron_state_t *st, const ron_undo_t *u)
{
    ron_hold_t  *hold;

    switch (u->type) {

    case RON_UNDO_BYTES:
        memcpy(u->ptr, u->bytes, u->len);
        break;

    case RON_UNDO_ACCOUNT:
        ron_index_del(&st->by_name, ron_account_rehash(st, u->no), u->no,
                      ron_account_rehash, st);
        ron_pool_pop(&st->accounts);
        break;

    case RON_UNDO_BALANCE:
        ron_pool_pop(&st->balances);
        break;

    case RON_UNDO_PURSE:
        ron_pool_pop(&st->purses);
        break;

    case RON_UNDO_ASSET:
        st->asset_n--;
        st->asset_last = RON_NONE;
        break;

    case RON_UNDO_HOLD_ADD:
        ron_hold_unlink(st, u->no);
        break;

    case RON_UNDO_HOLD_DEL:
        hold = ron_hold_at(st, u->no);
        st->hold_free = hold->account;
        memcpy(hold, u->bytes, sizeof(ron_hold_t));
        (void) ron_index_put(&st->by_hold, ron_hold_rehash(st, u->no), u->no,
                             ron_hold_rehash, st);
        st->hold_n++;
        break;

    case RON_UNDO_REVERSED:
        ron_index_del(&st->by_reversed, ron_reversed_rehash(st, u->no), u->no,
                      ron_reversed_rehash, st);
        ron_pool_pop(&st->reversed);
        break;

    case RON_UNDO_CAP:
        ron_index_del(&st->by_cap, ron_cap_rehash(st, u->no), u->no,
                      ron_cap_rehash, st);
        st->cap_names.len = ((ron_cap_sum_t *) ron_pool_at(&st->caps, u->no))
                            ->name;
        ron_pool_pop(&st->caps);
        break;
    }
}


/* ---- names, accounts, balances, assets ---------------------------------- */


static uint32_t
ron_name_put(ron_state_t *st, ron_str_t name)
{
    uint8_t   **names, *p;
    uint64_t    units, where;

    RON_ASSERT(name.len - 1 <= UINT8_MAX);

    units = (1 + name.len + RON_NAME_UNIT - 1) / RON_NAME_UNIT;
    where = st->name_used;

    if (where % RON_NAME_CHUNK + units > RON_NAME_CHUNK) {
        where += RON_NAME_CHUNK - where % RON_NAME_CHUNK;
    }

    if (where + units > RON_NONE) {
        return RON_NONE;
    }

    if (where / RON_NAME_CHUNK == st->name_chunk_n) {
        names = realloc(st->names, (st->name_chunk_n + 1) * sizeof(uint8_t *));
        if (names == NULL) {
            return RON_NONE;
        }

        st->names = names;

        p = malloc((size_t) RON_NAME_CHUNK * RON_NAME_UNIT);
        if (p == NULL) {
            return RON_NONE;
        }

        st->names[st->name_chunk_n++] = p;
    }

    p = ron_name_byte(st, (uint32_t) where);
    p[0] = (uint8_t) (name.len - 1);
    memcpy(p + 1, name.data, name.len);

    ron_undo_keep(st, &st->name_used, sizeof(st->name_used));
    st->name_used = where + units;

    return (uint32_t) where;
}


ron_str_t
ron_name_at(const ron_state_t *st, uint32_t where)
{
    const uint8_t  *p;

    p = ron_name_byte(st, where);

    return (ron_str_t) { (size_t) p[0] + 1, p + 1 };
}


static uint8_t *
ron_name_byte(const ron_state_t *st, uint32_t where)
{
    return st->names[where / RON_NAME_CHUNK]
           + (size_t) (where % RON_NAME_CHUNK) * RON_NAME_UNIT;
}


ron_str_t
ron_asset_name(const ron_state_t *st, uint32_t no)
{
    return (ron_str_t) { st->assets[no].name_len,
                         (const uint8_t *) st->assets[no].name };
}


ron_str_t
ron_cap_name_at(const ron_state_t *st, uint32_t where)
{
    const uint8_t  *p;

    p = st->cap_names.data + where;

    return (ron_str_t) { (size_t) p[0] << 8 | p[1], p + 2 };
}


ron_account_t *
ron_account_at(const ron_state_t *st, uint32_t no)
{
    return ron_pool_at(&st->accounts, no);
}


ron_balance_rec_t *
ron_balance_at(const ron_state_t *st, uint32_t no)
{
    return ron_pool_at(&st->balances, no);
}


ron_hold_t *
ron_hold_at(const ron_state_t *st, uint32_t no)
{
    return ron_pool_at(&st->holds, no);
}


ron_purse_t
ron_state_purse(const ron_state_t *st, uint32_t balance)
{
    return ron_cell_get(st, ron_balance_at(st, balance)->purse);
}


ron_purse_t
ron_cell_get(const ron_state_t *st, ron_cell_t cell)
{
    return (cell & RON_CELL_ELSEWHERE) ? *ron_purse_at(st, cell)
                                       : (ron_purse_t) { cell, 0 };
}


/* A purse that is elsewhere stays there: undone, it is where it was. */

void
ron_cell_set(ron_state_t *st, ron_cell_t *cell, ron_purse_t purse)
{
    uint32_t  no;

    if (!(*cell & RON_CELL_ELSEWHERE)) {
        if (purse.available < RON_CELL_ELSEWHERE && purse.held == 0) {
            *cell = (ron_cell_t) purse.available;
            return;
        }

        no = ron_pool_add(&st->purses);
        if (no == RON_NONE) {
            st->failed = true;
            return;
        }

        (void) ron_undo_add(st, RON_UNDO_PURSE, no);
        *cell = RON_CELL_ELSEWHERE | no;
    }

    ron_undo_keep(st, ron_purse_at(st, *cell), sizeof(ron_purse_t));
    *ron_purse_at(st, *cell) = purse;
}


static ron_purse_t *
ron_purse_at(const ron_state_t *st, ron_cell_t cell)
{
    return ron_pool_at(&st->purses, (uint32_t) cell);
}


static uint64_t
ron_hash_u64(const ron_state_t *st, uint64_t v)
{
    return ron_siphash(&st->sip,
                       (ron_str_t) { sizeof(v), (const uint8_t *) &v });
}


static uint64_t
ron_account_rehash(const void *ctx, uint32_t no)
{
    const ron_state_t  *st = ctx;

    return ron_siphash(&st->sip,
                       ron_name_at(st, ron_account_at(st, no)->name));
}


static uint64_t
ron_hold_rehash(const void *ctx, uint32_t no)
{
    const ron_state_t  *st = ctx;

    return ron_hash_u64(st, ron_hold_at(st, no)->seq);
}


static uint64_t
ron_reversed_rehash(const void *ctx, uint32_t no)
{
    const ron_state_t     *st = ctx;
    const ron_reversed_t  *r;

    r = ron_pool_at(&st->reversed, no);

    return ron_hash_u64(st, r->seq);
}


static uint64_t
ron_cap_rehash(const void *ctx, uint32_t no)
{
    const ron_state_t    *st = ctx;
    const ron_cap_sum_t  *c;

    c = ron_pool_at(&st->caps, no);

    return ron_siphash(&st->sip, ron_cap_name_at(st, c->name));
}


uint32_t
ron_state_account(const ron_state_t *st, ron_str_t name)
{
    return ron_state_find(st, name, ron_state_hash(st, name));
}


uint64_t
ron_state_hash(const ron_state_t *st, ron_str_t name)
{
    return ron_siphash(&st->sip, name);
}


uint32_t
ron_state_find(const ron_state_t *st, ron_str_t name, uint64_t hash)
{
    uint32_t  no, step;

    step = 0;

    for ( ;; ) {
        no = ron_index_next(&st->by_name, hash, &step);

        if (no == RON_NONE
            || ron_str_eq(ron_name_at(st, ron_account_at(st, no)->name),
                          name))
        {
            return no;
        }
    }
}


/* Records are packed: half of them lie in two lines. */

static inline void
ron_prefetch(const void *record, size_t len)
{
    __builtin_prefetch(record);
    __builtin_prefetch((const char *) record + len - 1);
}


void
ron_state_prefetch(const ron_state_t *st, uint64_t hash, unsigned stage)
{
    uint32_t              no, step;
    const ron_account_t  *a;

    if (st->by_name.mask == 0) {
        return;
    }

    if (stage == 0) {
        __builtin_prefetch(&st->by_name.slots[hash & st->by_name.mask]);
        return;
    }

    step = 0;
    no = ron_index_next(&st->by_name, hash, &step);

    if (no == RON_NONE) {
        return;
    }

    a = ron_account_at(st, no);

    if (stage == 1) {
        ron_prefetch(a, sizeof(ron_account_t));
        return;
    }

    __builtin_prefetch(ron_name_byte(st, a->name));

    if (a->first != RON_NONE) {
        ron_prefetch(ron_balance_at(st, a->first), sizeof(ron_balance_rec_t));
    }
}


uint32_t
ron_state_asset(ron_state_t *st, ron_str_t name)
{
    const ron_asset_t  *a;

    if (st->asset_last != RON_NONE) {
        a = &st->assets[st->asset_last];

        if (a->name_len == name.len
            && memcmp(a->name, name.data, name.len) == 0)
        {
            return st->asset_last;
        }
    }

    for (uint32_t i = 0; i < st->asset_n; i++) {
        a = &st->assets[i];

        if (a->name_len == name.len
            && memcmp(a->name, name.data, name.len) == 0)
        {
            st->asset_last = i;
            return i;
        }
    }

    return RON_NONE;
}


uint32_t
ron_state_balance(const ron_state_t *st, uint32_t account, uint32_t asset)
{
    uint32_t                  no;
    const ron_balance_rec_t  *b;

    for (no = ron_account_at(st, account)->first;
         no != RON_NONE;
         no = b->next)
    {
        b = ron_balance_at(st, no);

        if (b->asset == asset) {
            break;
        }
    }

    return no;
}


uint32_t
ron_state_add_account(ron_state_t *st, ron_str_t name)
{
    uint32_t        no, where;
    ron_account_t  *a;

    where = ron_name_put(st, name);
    no = (where == RON_NONE) ? RON_NONE : ron_pool_add(&st->accounts);

    if (no == RON_NONE) {
        st->failed = true;
        return RON_NONE;
    }

    a = ron_account_at(st, no);
    a->name = where;
    a->first = RON_NONE;

    if (ron_index_put(&st->by_name, ron_siphash(&st->sip, name), no,
                      ron_account_rehash, st)
        != RON_OK)
    {
        ron_pool_pop(&st->accounts);
        st->failed = true;
        return RON_NONE;
    }

    (void) ron_undo_add(st, RON_UNDO_ACCOUNT, no);

    return no;
}


uint32_t
ron_state_add_balance(ron_state_t *st, uint32_t account, uint32_t asset)
{
    uint32_t            no;
    ron_account_t      *a;
    ron_balance_rec_t  *b;

    no = ron_pool_add(&st->balances);

    if (no == RON_NONE) {
        st->failed = true;
        return RON_NONE;
    }

    (void) ron_undo_add(st, RON_UNDO_BALANCE, no);

    a = ron_account_at(st, account);
    b = ron_balance_at(st, no);

    ron_undo_keep(st, a, sizeof(ron_account_t));
    b->asset = (uint16_t) asset;
    b->next = a->first;
    a->first = no;

    return no;
}


uint32_t
ron_state_add_asset(ron_state_t *st, ron_str_t name)
{
    uint32_t      cap;
    ron_asset_t  *assets, *a;

    /* All of them at once: names are pointed at, so they never move. */

    if (st->asset_n == RON_ASSETS_MAX || name.len > RON_ASSET_MAX) {
        return RON_NONE;
    }

    if (st->asset_n == st->asset_cap) {
        cap = RON_ASSETS_MAX;

        assets = realloc(st->assets, cap * sizeof(ron_asset_t));
        if (assets == NULL) {
            st->failed = true;
            return RON_NONE;
        }

        st->assets = assets;
        st->asset_cap = cap;
    }

    (void) ron_undo_add(st, RON_UNDO_ASSET, st->asset_n);

    a = &st->assets[st->asset_n];
    memset(a, 0, sizeof(ron_asset_t));
    memcpy(a->name, name.data, name.len);
    a->name_len = (uint32_t) name.len;

    return st->asset_n++;
}


/* ---- holds -------------------------------------------------------------- */


uint32_t
ron_state_hold(const ron_state_t *st, uint64_t seq)
{
    uint32_t  no, step;
    uint64_t  hash;

    hash = ron_hash_u64(st, seq);
    step = 0;

    do {
        no = ron_index_next(&st->by_hold, hash, &step);
    } while (no != RON_NONE && ron_hold_at(st, no)->seq != seq);

    return no;
}


ron_status_t
ron_state_add_hold(ron_state_t *st, const ron_hold_t *hold)
{
    uint32_t     no;
    ron_hold_t  *h;

    no = st->hold_free;

    if (no == RON_NONE) {
        no = ron_pool_add(&st->holds);
        if (no == RON_NONE) {
            st->failed = true;
            return RON_ENOMEM;
        }

        h = ron_hold_at(st, no);

    } else {
        h = ron_hold_at(st, no);
        st->hold_free = h->account;
    }

    *h = *hold;

    if ((hold->expiry_ms != 0
         && ron_heap_push(&st->expiries, hold->expiry_ms, hold->seq)
            != RON_OK)
        || ron_index_put(&st->by_hold, ron_hash_u64(st, hold->seq), no,
                         ron_hold_rehash, st)
           != RON_OK)
    {
        h->seq = 0;
        h->account = st->hold_free;
        st->hold_free = no;
        st->failed = true;
        return RON_ENOMEM;
    }

    st->hold_n++;
    (void) ron_undo_add(st, RON_UNDO_HOLD_ADD, no);

    return RON_OK;
}


void
ron_state_del_hold(ron_state_t *st, uint32_t no)
{
    ron_undo_t  *u;

    u = ron_undo_add(st, RON_UNDO_HOLD_DEL, no);
    if (u != NULL) {
        memcpy(u->bytes, ron_hold_at(st, no), sizeof(ron_hold_t));
    }

    ron_hold_unlink(st, no);
}


/* Its place in the heap stays until it comes up, and is ignored then. */

static void
ron_hold_unlink(ron_state_t *st, uint32_t no)
{
    ron_hold_t  *h;

    h = ron_hold_at(st, no);

    ron_index_del(&st->by_hold, ron_hash_u64(st, h->seq), no,
                  ron_hold_rehash, st);

    memset(h, 0, sizeof(ron_hold_t));
    h->account = st->hold_free;
    st->hold_free = no;
    st->hold_n--;
}


/* Not of a hold that is closed already. */

static bool
ron_hold_expires(const void *ctx, const ron_expiry_t *e)
{
    uint32_t            no;
    const ron_state_t  *st = ctx;

    no = ron_state_hold(st, e->seq);

    return no != RON_NONE && ron_hold_at(st, no)->expiry_ms == e->expiry_ms;
}


uint64_t
ron_state_next_expiry(ron_state_t *st)
{
    while (st->expiries.n > 0) {
        if (ron_hold_expires(st, &st->expiries.at[0])) {
            return st->expiries.at[0].expiry_ms;
        }

        ron_heap_pop(&st->expiries);
    }

    return 0;
}


ron_status_t
ron_state_expired(ron_state_t *st, uint64_t time_ms, uint32_t *hold)
{
    uint64_t  expiry_ms;

    *hold = RON_NONE;
    expiry_ms = ron_state_next_expiry(st);

    if (expiry_ms == 0 || expiry_ms > time_ms) {
        return RON_ENOTFOUND;
    }

    *hold = ron_state_hold(st, st->expiries.at[0].seq);

    return RON_OK;
}


uint32_t
ron_state_expired_n(const ron_state_t *st, uint64_t time_ms, uint32_t max)
{
    return ron_heap_due(&st->expiries, time_ms, max);
}


/* ---- reversed totals, capability sums ----------------------------------- */


uint32_t
ron_reversed_find(const ron_state_t *st, uint64_t seq)
{
    uint32_t               no, step;
    uint64_t               hash;
    const ron_reversed_t  *r;

    hash = ron_hash_u64(st, seq);
    step = 0;

    for ( ;; ) {
        no = ron_index_next(&st->by_reversed, hash, &step);

        if (no == RON_NONE) {
            return RON_NONE;
        }

        r = ron_pool_at(&st->reversed, no);

        if (r->seq == seq) {
            return no;
        }
    }
}


ron_u128_t
ron_state_reversed(const ron_state_t *st, uint64_t seq)
{
    uint32_t               no;
    const ron_reversed_t  *r;

    no = ron_reversed_find(st, seq);

    if (no == RON_NONE) {
        return 0;
    }

    r = ron_pool_at(&st->reversed, no);

    return r->total;
}


ron_reversed_t *
ron_state_add_reversed(ron_state_t *st, uint64_t seq)
{
    uint32_t         no;
    ron_reversed_t  *r;

    no = ron_pool_add(&st->reversed);

    if (no == RON_NONE) {
        st->failed = true;
        return NULL;
    }

    r = ron_pool_at(&st->reversed, no);
    r->seq = seq;

    if (ron_index_put(&st->by_reversed, ron_hash_u64(st, seq), no,
                      ron_reversed_rehash, st)
        != RON_OK)
    {
        ron_pool_pop(&st->reversed);
        st->failed = true;
        return NULL;
    }

    (void) ron_undo_add(st, RON_UNDO_REVERSED, no);

    return r;
}


ron_cap_sum_t *
ron_cap_find(const ron_state_t *st, ron_str_t cap)
{
    uint32_t        no, step;
    uint64_t        hash;
    ron_cap_sum_t  *c;

    hash = ron_siphash(&st->sip, cap);
    step = 0;

    for ( ;; ) {
        no = ron_index_next(&st->by_cap, hash, &step);

        if (no == RON_NONE) {
            return NULL;
        }

        c = ron_pool_at(&st->caps, no);

        if (ron_str_eq(ron_cap_name_at(st, c->name), cap)) {
            return c;
        }
    }
}


ron_cap_sum_t *
ron_state_add_cap(ron_state_t *st, ron_str_t cap)
{
    uint32_t        no, where;
    ron_cap_sum_t  *c;

    where = (uint32_t) st->cap_names.len;
    ron_buf_put_u16(&st->cap_names, (uint16_t) cap.len);
    ron_buf_put_str(&st->cap_names, cap);

    no = ron_pool_add(&st->caps);

    if (no == RON_NONE || ron_buf_status(&st->cap_names) != RON_OK) {
        st->failed = true;
        return NULL;
    }

    c = ron_pool_at(&st->caps, no);
    c->name = where;

    if (ron_index_put(&st->by_cap, ron_siphash(&st->sip, cap), no,
                      ron_cap_rehash, st)
        != RON_OK)
    {
        ron_pool_pop(&st->caps);
        st->failed = true;
        return NULL;
    }

    (void) ron_undo_add(st, RON_UNDO_CAP, no);

    return c;
}


ron_u128_t
ron_state_cap_daily(const ron_state_t *st, ron_str_t cap)
{
    const ron_cap_sum_t  *c;

    c = ron_cap_find(st, cap);

    return (c == NULL) ? 0 : c->sum;
}


ron_u128_t
ron_state_daily(const ron_state_t *st, uint32_t account, uint64_t time_ms)
{
    const ron_account_t  *a;

    if (account == RON_NONE) {
        return 0;
    }

    a = ron_account_at(st, account);

    return (a->day == ron_account_day(time_ms))
               ? ron_cell_get(st, a->daily).available : 0;
}


void
ron_state_advance(ron_state_t *st, uint64_t time_ms)
{
    uint64_t  day;

    RON_ASSERT(!st->undo_on);

    /* here, because what can be undone may bring a closed hold back */

    if (st->expiries.n > 2 * st->hold_n + RON_EXPIRIES_SPARE) {
        ron_heap_thin(&st->expiries, ron_hold_expires, st);
    }

    day = time_ms / RON_DAY_MS;

    if (day <= st->caps_day) {
        return;
    }

    ron_pool_free(&st->caps);
    ron_index_free(&st->by_cap);
    ron_buf_reset(&st->cap_names);
    st->caps_day = day;
    st->caps_purges++;
}


/* ---- checks and figures ------------------------------------------------- */


ron_status_t
ron_state_check(ron_state_t *st)
{
    uint32_t                  no;
    ron_u128_t               *sums, *sum;
    ron_purse_t               purse;
    ron_status_t              status;

    sums = calloc(st->asset_n + 1, sizeof(ron_u128_t));
    if (sums == NULL) {
        return RON_ENOMEM;
    }

    status = RON_OK;

    for (no = 0; no < st->balances.n && status == RON_OK; no++) {
        sum = &sums[ron_balance_at(st, no)->asset];
        purse = ron_state_purse(st, no);

        if (ron_amount_add(*sum, purse.available, sum) != RON_OK
            || ron_amount_add(*sum, purse.held, sum) != RON_OK)
        {
            status = ron_corrupt();
        }
    }

    for (no = 0; no < st->asset_n && status == RON_OK; no++) {
        if (sums[no] != st->assets[no].minted - st->assets[no].burned) {
            status = ron_corrupt();
        }
    }

    free(sums);

    return status;
}


uint64_t
ron_state_bytes(const ron_state_t *st, uint64_t *names)
{
    *names = st->name_used * RON_NAME_UNIT;

    return ron_pool_bytes(&st->accounts) + ron_pool_bytes(&st->balances)
           + ron_pool_bytes(&st->purses) + ron_pool_bytes(&st->holds)
           + ron_pool_bytes(&st->reversed) + ron_pool_bytes(&st->caps)
           + st->cap_names.cap
           + ((uint64_t) st->by_name.mask + st->by_hold.mask
              + st->by_reversed.mask + st->by_cap.mask) * sizeof(uint32_t)
           + (uint64_t) st->name_chunk_n * RON_NAME_CHUNK * RON_NAME_UNIT
           + (uint64_t) st->expiries.cap * sizeof(ron_expiry_t)
           + (uint64_t) st->asset_n * sizeof(ron_asset_t);
}
