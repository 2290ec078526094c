
/*
 * Deciding wallet operations: key, deadline, precondition, nonce, limits,
 * funds, in this order.
 */

#include "ron_decide.h"
#include "ron_amount.h"


static bool ron_wallet_fields(ron_op_t *op);
static bool ron_wallet_scope(ron_op_t *op, ron_str_t *scope);
static bool ron_wallet_known(ron_op_t *op, ron_str_t scope, bool *replayed);
static bool ron_wallet_same(const ron_entry_t *e, const ron_entry_t *op);
static bool ron_wallet_match(ron_op_t *op, ron_str_t scope);
static bool ron_batch_match(ron_engine_t *en, ron_work_t *w,
    const ron_unit_t *unit, uint32_t base);
static bool ron_wallet_nonce(ron_op_t *op);
static bool ron_wallet_daily(ron_op_t *op);
static bool ron_wallet_total(ron_op_t *op);
static bool ron_wallet_run(ron_op_t *op);
static bool ron_kind_counts(ron_kind_t kind);


void
ron_decide_wallet(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    ron_outcome_t *out, uint32_t base, uint64_t now_us)
{
    bool       replayed;
    ron_op_t   op;
    ron_str_t  scope;

    ron_op_init(&op, en, w, unit, base, 0);

    if (unit->op_n != 1 || unit->key.len == 0
        || unit->key.len > RON_KEY_MAX)
    {
        ron_unit_refuse(w, base, unit->op_n, RON_REASON_MALFORMED,
                        RON_DETAIL_FIELDS);
        return;
    }

    if (!ron_wallet_scope(&op, &scope)) {
        return;
    }

    if (ron_wallet_known(&op, scope, &replayed)) {
        out->replayed = replayed;
        return;
    }

    if (ron_unit_late(unit, now_us)) {
        (void) ron_op_refuse(&op, RON_REASON_RETRY_LATER, RON_DETAIL_DEADLINE,
                             0);
        return;
    }

    if (ron_wallet_fields(&op) && ron_wallet_match(&op, scope)) {
        (void) ron_wallet_run(&op);
    }
}


void
ron_decide_batch(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    ron_outcome_t *out, uint32_t base, uint64_t now_us)
{
    bool        ok;
    ron_op_t    op;
    ron_tag_t   tag;
    ron_mark_t  mark;

    if (unit->key.len == 0 || unit->key.len > RON_KEY_MAX
        || unit->cap.len == 0 || unit->cap.len > RON_SCOPE_MAX)
    {
        ron_unit_refuse(w, base, unit->op_n, RON_REASON_MALFORMED,
                        RON_DETAIL_FIELDS);
        return;
    }

    ron_tag_make(RON_TAG_CAPKEY, unit->cap, unit->key, &tag);

    if (ron_unit_known(en, w, unit, base, RON_TAG_CAPKEY, &tag, out)) {
        return;
    }

    if (ron_unit_late(unit, now_us)) {
        ron_unit_refuse(w, base, unit->op_n, RON_REASON_RETRY_LATER,
                        RON_DETAIL_DEADLINE);
        return;
    }

    if (!ron_batch_match(en, w, unit, base)) {
        return;
    }

    ok = true;
    ron_unit_begin(en, w, unit, &mark);

    for (uint32_t i = 0; i < unit->op_n && (ok || !unit->atomic); i++) {
        ron_op_init(&op, en, w, unit, base, i);
        op.e.fields |= RON_F_SCOPE;
        op.e.scope = unit->cap;

        ok = ron_wallet_fields(&op) && ron_wallet_run(&op) && ok;
    }

    ron_unit_finish(en, w, unit, base, &mark, ok, &tag);
}


/*
 * One version is that of one account, so all operations must be about the
 * same: the account that pays, that an issue credits, that a hold is from.
 * False: the batch is refused as a whole, whether atomic or not.
 */

static bool
ron_batch_match(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    uint32_t base)
{
    ron_op_t      op;
    ron_str_t     scope, first;
    ron_result_t  refused;

    if (!unit->has_match || unit->op_n == 0) {
        return true;
    }

    first = ron_null_str;

    for (uint32_t i = 0; i < unit->op_n; i++) {
        ron_op_init(&op, en, w, unit, base, i);

        if (!ron_wallet_scope(&op, &scope)) {
            ron_unit_refuse(w, base, unit->op_n, op.result->reason,
                            op.result->detail);
            return false;
        }

        if (i == 0) {
            first = scope;

        } else if (!ron_str_eq(scope, first)) {
            ron_unit_refuse(w, base, unit->op_n, RON_REASON_MALFORMED,
                            RON_DETAIL_MATCH);
            return false;
        }
    }

    if (ron_wallet_match(&op, first)) {
        return true;
    }

    refused = *op.result;

    for (uint32_t i = 0; i < unit->op_n; i++) {
        w->results[base + i] = refused;
    }

    return false;
}


/* Operations that have a nonce, and count as moved today. */

static bool
ron_kind_counts(ron_kind_t kind)
{
    return kind == RON_KIND_TRANSFER || kind == RON_KIND_BURN
           || kind == RON_KIND_HOLD;
}


static bool
ron_wallet_fields(ron_op_t *op)
{
    uint32_t            needs, allows;
    const ron_entry_t  *e;

    e = &op->e;
    allows = RON_F_MEMO | RON_F_SCOPE;

    switch (e->kind) {

    case RON_KIND_MINT:
        needs = ron_kind_needs(e->kind);
        allows |= RON_F_NONCE;
        break;

    case RON_KIND_BURN:
    case RON_KIND_TRANSFER:
        needs = ron_kind_needs(e->kind) | RON_F_NONCE;
        break;

    case RON_KIND_HOLD:
        needs = ron_kind_needs(e->kind) | RON_F_NONCE;
        allows |= RON_F_EXPIRY;
        break;

    case RON_KIND_CAPTURE:
        needs = RON_F_REF | RON_F_AMOUNT;
        allows |= RON_F_TXID;
        break;

    case RON_KIND_RELEASE:
        needs = RON_F_REF;
        allows |= RON_F_TXID;
        break;

    default:
        return ron_op_refuse(op, RON_REASON_UNKNOWN_KIND, RON_DETAIL_NONE, 0);
    }

    if ((e->fields & needs) != needs || (e->fields & ~(needs | allows)) != 0) {
        return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_FIELDS, 0);
    }

    if ((needs & RON_F_AMOUNT) && e->amount == 0) {
        return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_AMOUNT, 0);
    }

    if (!ron_entry_values_valid(e)) {
        return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_FIELDS, 0);
    }

    if ((e->fields & RON_F_EXPIRY)
        && (e->expiry_ms == 0
            || e->expiry_ms > RON_TIME_MAX - op->w->pub.time_ms))
    {
        return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_EXPIRY, 0);
    }

    if ((needs & RON_F_TO) && ron_str_eq(e->account, e->to)) {
        return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_ACCOUNTS, 0);
    }

    return true;
}


/*
 * Whose keys: the account that pays, that an issue credits, or that a hold
 * was taken from.  False: refused, there is no such hold.
 */

static bool
ron_wallet_scope(ron_op_t *op, ron_str_t *scope)
{
    uint32_t            no;
    ron_str_t           bytes;
    ron_entry_t         e;
    ron_state_t        *st;
    ron_status_t        status;
    const ron_hold_t   *h;

    st = &op->en->state;

    if (op->e.kind != RON_KIND_CAPTURE && op->e.kind != RON_KIND_RELEASE) {
        if (!(op->e.fields & RON_F_ACCOUNT)
            || !ron_account_valid(op->e.account))
        {
            return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_FIELDS,
                                 0);
        }

        *scope = op->e.account;
        return true;
    }

    status = ron_op_hold_find(op, &no);

    if (status == RON_OK) {
        h = ron_hold_at(st, no);
        *scope = ron_name_at(st, ron_account_at(st, h->account)->name);
        return true;
    }

    if (status != RON_ENOTFOUND) {
        return ron_op_storage(op, status);
    }

    status = ron_op_ref(op, &e, &bytes);

    if (status == RON_OK && e.kind == RON_KIND_HOLD
        && ron_op_named(op, e.time_ms))
    {
        no = ron_state_account(st, e.account);
        RON_ASSERT(no != RON_NONE);
        *scope = ron_name_at(st, ron_account_at(st, no)->name);
        return true;
    }

    if (status != RON_OK && status != RON_ENOTFOUND) {
        return ron_op_storage(op, status);
    }

    return ron_op_refuse(op, RON_REASON_HOLD_NOT_FOUND, RON_DETAIL_HOLD_REF,
                         0);
}


/* True: the result is set, by a replay or by a refusal. */

static bool
ron_wallet_known(ron_op_t *op, ron_str_t scope, bool *replayed)
{
    uint64_t      seq;
    ron_str_t     bytes;
    ron_entry_t   e;
    ron_status_t  status;

    *replayed = false;

    /* A capture's scope is the hold's account, which is known only now. */

    if (!op->tags->made) {
        ron_tag_make(RON_TAG_KEY, scope, op->unit->key, &op->tags->first);
        op->tags->made = true;
    }

    status = ron_tag_find(op->en, RON_TAG_KEY, &op->tags->first, &seq);

    if (status == RON_ENOTFOUND) {
        return false;
    }

    if (status == RON_OK) {
        status = ron_entry_find(op->en, seq, &e, &bytes);
    }

    if (status != RON_OK) {
        (void) ron_op_storage(op, status);
        return true;
    }

    if (ron_key_expired(op->en, op->w, &e)) {
        return false;
    }

    if (!ron_str_eq(e.key, op->unit->key) || !ron_wallet_same(&e, &op->e)) {
        (void) ron_op_refuse(op, RON_REASON_IDEM_MISMATCH,
                             RON_DETAIL_KEY_REUSED, 0);
        return true;
    }

    *replayed = true;

    return ron_op_repeat(op, seq, bytes);
}


/* The same endpoint, and the same members as the caller gave them. */

static bool
ron_wallet_same(const ron_entry_t *e, const ron_entry_t *op)
{
    uint64_t  lives_ms;
    uint32_t  bits, given;

    bits = RON_F_MEMO | RON_F_NONCE | RON_F_EXPIRY | RON_F_REF;
    given = RON_F_ASSET | RON_F_ACCOUNT | RON_F_TO | RON_F_AMOUNT;
    lives_ms = (e->fields & RON_F_EXPIRY) ? e->expiry_ms - e->time_ms : 0;

    return e->kind == op->kind
           && (e->fields & bits) == (op->fields & bits)
           && (e->fields & op->fields & given) == (op->fields & given)
           && (!(op->fields & RON_F_ASSET) || ron_str_eq(e->asset, op->asset))
           && (!(op->fields & RON_F_ACCOUNT)
               || ron_str_eq(e->account, op->account))
           && (!(op->fields & RON_F_TO) || ron_str_eq(e->to, op->to))
           && (!(op->fields & RON_F_AMOUNT) || e->amount == op->amount)
           && e->nonce == op->nonce
           && e->ref == op->ref
           && lives_ms == op->expiry_ms
           && ron_hash_eq(&e->memo, &op->memo);
}


static bool
ron_wallet_match(ron_op_t *op, ron_str_t scope)
{
    uint32_t  no;
    uint64_t  version;

    if (!op->unit->has_match) {
        return true;
    }

    no = ron_state_account(&op->en->state, scope);
    version = (no == RON_NONE) ? 0
                               : ron_account_at(&op->en->state, no)->version;

    return version == op->unit->match
           || ron_op_refuse(op, RON_REASON_PRECONDITION, RON_DETAIL_VERSION,
                            version);
}


static bool
ron_wallet_run(ron_op_t *op)
{
    if (!ron_wallet_nonce(op) || !ron_wallet_daily(op)) {
        return false;
    }

    if (op->e.fields & RON_F_EXPIRY) {
        op->e.expiry_ms += op->w->pub.time_ms;
    }

    /* Whom a capture credits is known only after its hold was found. */

    if ((op->e.kind != RON_KIND_CAPTURE && !ron_wallet_total(op))
        || !ron_op_money(op)
        || (op->e.kind == RON_KIND_CAPTURE && !ron_wallet_total(op)))
    {
        return false;
    }

    op->e.fields |= RON_F_WALLET | RON_F_KEY;
    op->e.key = op->unit->key;

    if (op->unit->cap.len != 0) {
        op->e.fields |= RON_F_CAP;
        op->e.cap = op->unit->cap;
    }

    return ron_op_accept(op);
}


static bool
ron_wallet_nonce(ron_op_t *op)
{
    uint64_t  last;

    if (!ron_kind_counts(op->e.kind)) {
        return true;
    }

    last = (op->account == RON_NONE)
               ? 0 : ron_account_at(&op->en->state, op->account)->nonce;

    if (op->unit->nonce_strict && op->e.nonce != last + 1) {
        return ron_op_refuse(op, RON_REASON_NONCE, RON_DETAIL_NONCE_NEXT,
                             last + 1);
    }

    return op->e.nonce > last
           || ron_op_refuse(op, RON_REASON_NONCE, RON_DETAIL_NONCE_LOW,
                            last + 1);
}


static bool
ron_wallet_daily(ron_op_t *op)
{
    ron_state_t  *st;

    if (!ron_kind_counts(op->e.kind) && op->e.kind != RON_KIND_MINT) {
        return true;
    }

    st = &op->en->state;

    if (op->unit->account_daily != 0) {
        if (ron_amount_over(ron_state_daily(st, op->account,
                                            op->w->pub.time_ms),
                            op->e.amount, op->unit->account_daily))
        {
            return ron_op_refuse(op, RON_REASON_LIMITS,
                                 RON_DETAIL_DAILY_ACCOUNT, 0);
        }
    }

    return ron_op_cap_daily(op);
}


/* What the credited account would hold, available and held together. */

static bool
ron_wallet_total(ron_op_t *op)
{
    uint32_t      account, asset, no;
    ron_u128_t    total;
    ron_purse_t   purse;
    ron_state_t  *st;

    st = &op->en->state;

    switch (op->e.kind) {
    case RON_KIND_MINT:
        account = op->account;
        break;
    case RON_KIND_TRANSFER:
        account = op->to;
        break;
    case RON_KIND_CAPTURE:
        account = op->touch.to;
        break;
    default:
        return true;
    }

    if (op->unit->account_total == 0) {
        return true;
    }

    asset = ron_state_asset(st, op->e.asset);
    no = (account == RON_NONE || asset == RON_NONE)
             ? RON_NONE : ron_state_balance(st, account, asset);
    total = 0;

    if (no != RON_NONE) {
        purse = ron_state_purse(st, no);
        total = purse.available + purse.held;
    }

    return !ron_amount_over(total, op->e.amount, op->unit->account_total)
           || ron_op_refuse(op, RON_REASON_LIMITS, RON_DETAIL_TOTAL, 0);
}
