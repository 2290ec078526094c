
/*
 * Deciding a batch: expired holds first, then units in order, each operation
 * on the authoritative state as the ones before it left it.
 *
 * An operation is looked at (ron_op_money and the checks of its own kind of
 * unit), and when nothing speaks against it, accepted: encoded with the next
 * seq and applied.  What is refused leaves no trace, so a refusal burns
 * neither key nor nonce nor seq.
 */

#include "ron_decide.h"
#include "ron_amount.h"

#include <stdlib.h>


static ron_status_t ron_decide_expired(ron_engine_t *en, ron_work_t *w);
static void ron_work_prefetch(ron_engine_t *en, ron_work_t *w);
static ron_status_t ron_work_room(ron_work_t *w, uint32_t results);
static void ron_outcome_settle(ron_work_t *w, ron_outcome_t *out,
    uint32_t base, uint32_t n);
static void ron_work_settle(ron_engine_t *en, ron_work_t *w);
static bool ron_op_funds(ron_op_t *op);
static bool ron_op_supply(ron_op_t *op);
static bool ron_op_hold(ron_op_t *op);
static bool ron_op_reverse(ron_op_t *op);
static void ron_work_touch(ron_work_t *w, uint32_t account, uint32_t asset);
static void ron_atomic_refused(ron_work_t *w, uint32_t base, uint32_t n);
static ron_status_t ron_unit_replay(ron_engine_t *en, ron_work_t *w,
    const ron_unit_t *unit, uint32_t base, uint64_t seq,
    const ron_tag_t *tag, ron_outcome_t *out, bool *same);
static void ron_unit_note(ron_engine_t *en, ron_work_t *w,
    const ron_unit_t *unit, uint32_t base, const ron_tag_t *tag);
static bool ron_op_hold_closed(ron_op_t *op);


ron_status_t
ron_decide_units(ron_engine_t *en, ron_work_t *w, uint64_t time_ms,
    uint64_t now_us)
{
    uint32_t        base, results;
    ron_unit_t     *unit;
    ron_status_t    status;
    ron_outcome_t  *out;

    results = 0;

    for (uint32_t i = 0; i < w->pub.unit_n; i++) {
        results += w->pub.units[i]->op_n;
    }

    status = ron_work_room(w, results);
    if (status != RON_OK) {
        return status;
    }

    ron_work_prefetch(en, w);

    w->pub.seq = en->state.seq + 1;
    w->pub.count = 0;
    w->pub.time_ms = ron_max(time_ms, en->state.time_ms);
    en->now = w;

    ron_state_advance(&en->state, w->pub.time_ms);

    status = ron_decide_expired(en, w);
    if (status != RON_OK) {
        return status;
    }

    base = 0;

    for (uint32_t i = 0; i < w->pub.unit_n; i++) {
        unit = w->pub.units[i];
        out = &w->pub.outcomes[i];

        switch (unit->type) {
        case RON_UNIT_INGEST:
            ron_decide_ingest(en, w, unit, out, base, now_us);
            break;
        case RON_UNIT_WALLET:
            ron_decide_wallet(en, w, unit, out, base, now_us);
            break;
        case RON_UNIT_BATCH:
            ron_decide_batch(en, w, unit, out, base, now_us);
            break;
        }

        if (en->state.failed) {
            return RON_ENOMEM;
        }

        ron_outcome_settle(w, out, base, unit->op_n);
        base += unit->op_n;
    }

    ron_work_settle(en, w);

    return ron_buf_status(&w->body) == RON_OK
               && ron_buf_status(&w->notes) == RON_OK
               && ron_buf_status(&w->extra) == RON_OK ? RON_OK : RON_ENOMEM;
}


/* What deciding will wait for is asked for now: tags and accounts. */

static void
ron_work_prefetch(ron_engine_t *en, ron_work_t *w)
{
    uint32_t           base;
    ron_op_tags_t     *t;
    const ron_unit_t  *unit;

    base = 0;

    for (uint32_t i = 0; i < w->pub.unit_n; i++) {
        unit = w->pub.units[i];

        for (uint32_t k = 0; k < unit->op_n; k++) {
            t = &w->tags[base++];

            ron_ahead_one(en, &unit->ops[k], t);
            ron_tag_ops(en, unit, k, t);
        }
    }

    ron_ahead_all(en, w->tags, base);
}


/* Room for the results of all units, all of them unset. */

static ron_status_t
ron_work_room(ron_work_t *w, uint32_t results)
{
    void  *p;

    if (results > w->result_cap) {
        p = realloc(w->results, results * sizeof(ron_result_t));
        if (p == NULL) {
            return RON_ENOMEM;
        }

        w->results = p;

        p = realloc(w->spans, results * sizeof(ron_span_t));
        if (p == NULL) {
            return RON_ENOMEM;
        }

        w->spans = p;

        p = realloc(w->tags, results * sizeof(ron_op_tags_t));
        if (p == NULL) {
            return RON_ENOMEM;
        }

        w->tags = p;
        w->result_cap = results;
    }

    w->result_n = results;

    if (results == 0) {
        return RON_OK;
    }

    memset(w->results, 0, results * sizeof(ron_result_t));
    memset(w->spans, 0, results * sizeof(ron_span_t));

    for (uint32_t i = 0; i < results; i++) {
        w->results[i].reason = RON_REASON_N;
    }

    return RON_OK;
}


static ron_status_t
ron_decide_expired(ron_engine_t *en, ron_work_t *w)
{
    uint32_t           no;
    ron_op_t           op;
    const ron_hold_t  *h;

    for (uint32_t n = 0;
         n < w->expired_max
         && ron_state_expired(&en->state, w->pub.time_ms, &no) == RON_OK;
         n++)
    {
        h = ron_hold_at(&en->state, no);

        memset(&op, 0, sizeof(op));
        op.en = en;
        op.w = w;
        op.touch = (ron_touch_t) { h->account, h->account };
        op.e.kind = RON_KIND_RELEASE;
        op.e.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT | RON_F_REF
                      | RON_F_EXPIRED;
        op.e.asset = ron_asset_name(&en->state, h->asset);
        op.e.account = ron_name_at(&en->state,
                                   ron_account_at(&en->state,
                                                  h->account)->name);
        op.e.amount = h->left;
        op.e.ref = h->seq;

        if (!ron_op_accept(&op)) {
            return ron_corrupt();
        }
    }

    return RON_OK;
}


/* A unit is OK when any of its operations is. */

static void
ron_outcome_settle(ron_work_t *w, ron_outcome_t *out, uint32_t base,
    uint32_t n)
{
    const ron_result_t  *r, *first;

    RON_ASSERT(n >= 1);

    out->result_n = n;
    out->results = &w->results[base];
    first = out->results;

    for (uint32_t i = 0; i < n; i++) {
        r = &w->results[base + i];

        RON_ASSERT(r->reason != RON_REASON_N);

        if (r->reason == RON_REASON_OK) {
            out->reason = RON_REASON_OK;
            out->detail = RON_DETAIL_NONE;
            out->value = 0;
            return;
        }

        if (first->reason == RON_REASON_ABORTED) {
            first = r;
        }
    }

    out->reason = first->reason;
    out->detail = first->detail;
    out->value = first->value;
}


/* Buffers have stopped growing: offsets become pointers. */

static void
ron_work_settle(ron_engine_t *en, ron_work_t *w)
{
    uint32_t           no;
    const ron_span_t  *s;

    for (uint32_t i = 0; i < w->result_n; i++) {
        s = &w->spans[i];

        if (s->where != RON_SPAN_NONE) {
            w->results[i].bytes.len = s->len;
            w->results[i].bytes.data = s->off
                + (s->where == RON_SPAN_BODY ? w->body.data : w->extra.data);
        }
    }

    w->pub.balance_n = 0;

    for (uint32_t i = 0; i < w->touched_n; i++) {
        no = ron_state_balance(&en->state, w->touched[i].account,
                               w->touched[i].asset);
        if (no == RON_NONE) {
            continue;
        }

        ron_balance_fill(&en->state, w->touched[i].account, no,
                         &w->pub.balances[w->pub.balance_n++]);
    }
}


bool
ron_op_refuse(ron_op_t *op, ron_reason_t reason, ron_detail_t detail,
    uint64_t value)
{
    op->result->reason = reason;
    op->result->detail = detail;
    op->result->value = value;
    op->result->seq = 0;
    op->result->repeat = false;

    return false;
}


bool
ron_op_storage(ron_op_t *op, ron_status_t status)
{
    RON_ASSERT(status != RON_OK);

    return ron_op_refuse(op, RON_REASON_STORAGE, RON_DETAIL_STORAGE, 0);
}


bool
ron_op_repeat(ron_op_t *op, uint64_t seq, ron_str_t bytes)
{
    op->result->reason = RON_REASON_OK;
    op->result->detail = RON_DETAIL_NONE;
    op->result->repeat = true;
    op->result->seq = seq;

    if (bytes.len != 0) {
        *op->span = (ron_span_t) { RON_SPAN_EXTRA, op->w->extra.len,
                                   bytes.len };
        ron_buf_put_str(&op->w->extra, bytes);
    }

    return true;
}


void
ron_op_init(ron_op_t *op, ron_engine_t *en, ron_work_t *w,
    const ron_unit_t *unit, uint32_t base, uint32_t i)
{
    op->en = en;
    op->w = w;
    op->unit = unit;
    op->e = unit->ops[i];
    op->result = &w->results[base + i];
    op->span = &w->spans[base + i];
    op->tags = &w->tags[base + i];

    op->account = (op->e.fields & RON_F_ACCOUNT)
                      ? ron_state_find(&en->state, op->e.account,
                                       op->tags->from_hash)
                      : RON_NONE;
    op->to = (op->e.fields & RON_F_TO)
                 ? ron_state_find(&en->state, op->e.to, op->tags->to_hash)
                 : RON_NONE;

    op->touch = (ron_touch_t) { RON_NONE, RON_NONE };
}


void
ron_unit_refuse(ron_work_t *w, uint32_t base, uint32_t n,
    ron_reason_t reason, ron_detail_t detail)
{
    for (uint32_t i = 0; i < n; i++) {
        memset(&w->results[base + i], 0, sizeof(ron_result_t));
        w->results[base + i].reason = reason;
        w->results[base + i].detail = detail;
    }
}


bool
ron_unit_late(const ron_unit_t *unit, uint64_t now_us)
{
    return unit->deadline_us != 0 && now_us >= unit->deadline_us;
}


bool
ron_op_accept(ron_op_t *op)
{
    size_t         begin, len;
    ron_work_t    *w;
    ron_state_t   *st;
    ron_status_t   status;

    w = op->w;
    st = &op->en->state;

    op->e.ledger_id = op->en->meta.ledger_id;
    op->e.seq = st->seq + 1;
    op->e.time_ms = w->pub.time_ms;

    ron_buf_reset(&op->en->scratch);

    status = ron_entry_encode(&op->e, &op->en->scratch);

    if (status == RON_OK) {
        status = ron_state_apply(st, &op->e, &op->touch);
    }

    if (status == RON_OK) {
        status = ron_tag_entry(op->en, &op->e, op->tags);

        /* Over its bound, but not lost: the store says so elsewhere. */
        status = (status == RON_EIO) ? RON_OK : status;
    }

    if (status != RON_OK) {
        st->failed = true;
        return op->result == NULL
               || ron_op_refuse(op, RON_REASON_INTERNAL, RON_DETAIL_NONE, 0);
    }

    len = op->en->scratch.len;
    ron_body_put(&w->body, ron_buf_str(&op->en->scratch));
    begin = w->body.len - len;
    w->pub.count++;

    if (op->touch.from != RON_NONE) {
        ron_work_touch(w, op->touch.from, st->asset_last);
    }

    if (op->touch.to != RON_NONE && op->touch.to != op->touch.from) {
        ron_work_touch(w, op->touch.to, st->asset_last);
    }

    if (op->result != NULL) {
        op->result->reason = RON_REASON_OK;
        op->result->seq = op->e.seq;

        if (op->e.fields & RON_F_WALLET) {
            *op->span = (ron_span_t) { RON_SPAN_BODY, begin, len };
        }
    }

    return true;
}


static void
ron_work_touch(ron_work_t *w, uint32_t account, uint32_t asset)
{
    void      *p;
    uint32_t   cap;

    /* A hot account is touched by every entry: keep its last place only. */

    for (uint32_t i = w->touched_n; i > 0 && i + 4 > w->touched_n; i--) {
        if (w->touched[i - 1].account == account
            && w->touched[i - 1].asset == asset)
        {
            return;
        }
    }

    if (w->touched_n == w->touched_cap) {
        cap = w->touched_cap ? w->touched_cap * 2 : 256;

        p = realloc(w->touched, cap * sizeof(w->touched[0]));
        if (p == NULL) {
            w->body.failed = true;
            return;
        }

        w->touched = p;

        p = realloc(w->pub.balances, cap * sizeof(ron_balance_t));
        if (p == NULL) {
            w->body.failed = true;
            return;
        }

        w->pub.balances = p;
        w->touched_cap = cap;
    }

    w->touched[w->touched_n].account = account;
    w->touched[w->touched_n].asset = asset;
    w->touched_n++;
}


void
ron_mark_begin(ron_engine_t *en, ron_work_t *w, ron_mark_t *mark)
{
    mark->body_len = w->body.len;
    mark->count = w->pub.count;
    mark->touched_n = w->touched_n;
    mark->seq = en->state.seq;

    ron_state_begin(&en->state);
}


void
ron_mark_keep(ron_engine_t *en)
{
    ron_state_end(&en->state);
}


void
ron_mark_drop(ron_engine_t *en, ron_work_t *w, const ron_mark_t *mark)
{
    ron_state_rollback(&en->state);
    ron_tags_undo(en->tags, mark->seq);
    ron_tags_undo(en->keys, mark->seq);

    w->body.len = mark->body_len;
    w->pub.count = mark->count;
    w->touched_n = mark->touched_n;
}


void
ron_unit_begin(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    ron_mark_t *mark)
{
    ron_mark_begin(en, w, mark);

    if (!unit->atomic) {
        ron_mark_keep(en);
    }
}


void
ron_unit_finish(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    uint32_t base, const ron_mark_t *mark, bool ok, const ron_tag_t *tag)
{
    if (unit->atomic && !ok) {
        ron_mark_drop(en, w, mark);
        ron_atomic_refused(w, base, unit->op_n);
        return;
    }

    if (unit->atomic) {
        ron_mark_keep(en);
    }

    if (unit->key.len != 0 && w->pub.count > mark->count) {
        ron_unit_note(en, w, unit, base, tag);
    }
}


/*
 * Whoever was refused for itself keeps its reason, all others were aborted
 * with it.
 */

static void
ron_atomic_refused(ron_work_t *w, uint32_t base, uint32_t n)
{
    ron_result_t  *r;

    for (uint32_t i = base; i < base + n; i++) {
        r = &w->results[i];
        w->spans[i].where = RON_SPAN_NONE;

        if (r->reason == RON_REASON_OK || r->reason == RON_REASON_N) {
            memset(r, 0, sizeof(ron_result_t));
            r->reason = RON_REASON_ABORTED;
            r->detail = RON_DETAIL_ATOMIC;
        }
    }
}


/* ---- keyed batches ------------------------------------------------------ */


bool
ron_unit_known(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    uint32_t base, ron_tag_kind_t kind, const ron_tag_t *tag,
    ron_outcome_t *out)
{
    bool          same;
    uint64_t      seq;
    ron_str_t     bytes;
    ron_entry_t   e;
    ron_status_t  status;

    same = false;
    status = ron_tag_find(en, kind, tag, &seq);

    if (status == RON_OK && kind == RON_TAG_CAPKEY) {
        status = ron_entry_find(en, seq, &e, &bytes);

        if (status == RON_OK && ron_key_expired(en, w, &e)) {
            status = RON_ENOTFOUND;
        }
    }

    if (status == RON_ENOTFOUND) {
        return false;
    }

    if (status == RON_OK) {
        status = ron_unit_replay(en, w, unit, base, seq, tag, out, &same);
    }

    if (status != RON_OK) {
        ron_unit_refuse(w, base, unit->op_n, RON_REASON_STORAGE,
                        RON_DETAIL_STORAGE);

    } else if (!same && kind == RON_TAG_CAPKEY) {
        ron_unit_refuse(w, base, unit->op_n, RON_REASON_IDEM_MISMATCH,
                        RON_DETAIL_KEY_REUSED);

    } else if (!same) {
        ron_unit_refuse(w, base, unit->op_n, RON_REASON_CONFLICT,
                        RON_DETAIL_BATCH_REUSED);
    }

    return true;
}


bool
ron_key_expired(const ron_engine_t *en, const ron_work_t *w,
    const ron_entry_t *e)
{
    return w->pub.time_ms - e->time_ms >= en->conf.key_ttl_ms;
}


/* Reads the first outcome back into the results at `base`. */

static ron_status_t
ron_unit_replay(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    uint32_t base, uint64_t seq, const ron_tag_t *tag, ron_outcome_t *out,
    bool *same)
{
    ron_op_t       op;
    ron_str_t      text;
    ron_hash_t     digest, ours, old;
    ron_entry_t    e;
    ron_status_t   status;
    ron_outcome_t  first;

    *same = false;

    if (ron_unit_digest(unit, &en->scratch, &ours) != RON_OK
        || ron_unit_digest_old(unit, &en->scratch, &old) != RON_OK)
    {
        return RON_ENOMEM;
    }

    status = ron_outcome_find(en, seq, tag, &digest, &text);

    if (status != RON_OK
        || (!ron_hash_eq(&digest, &ours) && !ron_hash_eq(&digest, &old)))
    {
        return status;
    }

    status = ron_outcome_decode(text, &first, &w->results[base], unit->op_n);

    if (status != RON_OK || first.result_n != unit->op_n) {
        return ron_corrupt();
    }

    *same = true;
    out->replayed = true;

    for (uint32_t i = 0; i < unit->op_n && unit->type == RON_UNIT_BATCH; i++) {
        if (w->results[base + i].reason != RON_REASON_OK) {
            continue;
        }

        seq = w->results[base + i].seq;

        status = ron_entry_find(en, seq, &e, &text);
        if (status != RON_OK) {
            return status;
        }

        ron_op_init(&op, en, w, unit, base, i);
        (void) ron_op_repeat(&op, seq, text);
        op.result->repeat = false;
    }

    return RON_OK;
}


/* Writes the outcome beside the entries. */

static void
ron_unit_note(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    uint32_t base, const ron_tag_t *tag)
{
    ron_hash_t     digest;
    ron_outcome_t  out;

    memset(&out, 0, sizeof(out));
    out.result_n = unit->op_n;
    out.results = &w->results[base];

    if (ron_unit_digest(unit, &en->scratch, &digest) != RON_OK) {
        w->notes.failed = true;
        return;
    }

    ron_outcome_note(&w->notes, tag, &digest, &out);
}


/* ---- the rules of money ------------------------------------------------- */


bool
ron_op_money(ron_op_t *op)
{
    switch (op->e.kind) {

    case RON_KIND_MINT:
        return ron_op_supply(op);

    case RON_KIND_TRANSFER:
        op->touch.to = op->to;
        return ron_op_funds(op);

    case RON_KIND_BURN:
    case RON_KIND_HOLD:
        return ron_op_funds(op);

    case RON_KIND_DEBIT:
    case RON_KIND_CREDIT:
        return true;

    case RON_KIND_CAPTURE:
    case RON_KIND_RELEASE:
        return ron_op_hold(op);

    case RON_KIND_REVERSE:
        return ron_op_reverse(op);

    default:
        return ron_op_refuse(op, RON_REASON_UNKNOWN_KIND, RON_DETAIL_NONE, 0);
    }
}


bool
ron_op_cap_daily(ron_op_t *op)
{
    ron_moves_t  m;

    if (op->unit->cap_daily == 0) {
        return true;
    }

    ron_entry_moves(&op->e, &m);

    return !ron_moves_spend(&m)
           || !ron_amount_over(ron_state_cap_daily(&op->en->state,
                                                   op->unit->cap),
                               op->e.amount, op->unit->cap_daily)
           || ron_op_refuse(op, RON_REASON_LIMITS, RON_DETAIL_DAILY_CAP, 0);
}


static bool
ron_op_supply(ron_op_t *op)
{
    uint32_t            no;
    ron_u128_t          sum;
    const ron_asset_t  *a;

    no = ron_state_asset(&op->en->state, op->e.asset);

    if (no == RON_NONE) {
        return op->en->state.asset_n < RON_ASSETS_MAX
               || ron_op_refuse(op, RON_REASON_CONFLICT, RON_DETAIL_ASSETS, 0);
    }

    a = &op->en->state.assets[no];

    return ron_amount_add(a->minted - a->burned, op->e.amount, &sum) == RON_OK
           || ron_op_refuse(op, RON_REASON_CONFLICT, RON_DETAIL_SUPPLY, 0);
}


/* Enough available on the account that the entry takes from. */

static bool
ron_op_funds(ron_op_t *op)
{
    uint32_t      asset, no;
    ron_state_t  *st;

    st = &op->en->state;
    asset = ron_state_asset(st, op->e.asset);

    op->touch.from = op->account;

    no = (asset == RON_NONE || op->touch.from == RON_NONE)
             ? RON_NONE : ron_state_balance(st, op->touch.from, asset);

    if (no == RON_NONE || ron_state_purse(st, no).available < op->e.amount) {
        return ron_op_refuse(op, RON_REASON_INSUFFICIENT,
                             RON_DETAIL_AVAILABLE, 0);
    }

    return true;
}


ron_status_t
ron_op_ref(const ron_op_t *op, ron_entry_t *e, ron_str_t *bytes)
{
    if (op->e.ref == 0 || op->e.ref > op->en->state.seq) {
        return RON_ENOTFOUND;
    }

    return ron_entry_find(op->en, op->e.ref, e, bytes);
}


/* A hold out of a checkpoint does not say its time, so that is read once. */

ron_status_t
ron_op_hold_find(const ron_op_t *op, uint32_t *no)
{
    ron_str_t      bytes;
    ron_hold_t    *h;
    ron_entry_t    e;
    ron_status_t   status;

    *no = ron_state_hold(&op->en->state, op->e.ref);

    if (*no == RON_NONE) {
        return RON_ENOTFOUND;
    }

    h = ron_hold_at(&op->en->state, *no);

    if (h->time_ms == 0 && (op->e.fields & RON_F_TXID)) {

        status = ron_op_ref(op, &e, &bytes);
        if (status != RON_OK) {
            return status == RON_ENOTFOUND ? ron_corrupt() : status;
        }

        h->time_ms = e.time_ms;
    }

    return ron_op_named(op, h->time_ms) ? RON_OK : RON_ENOTFOUND;
}


bool
ron_op_named(const ron_op_t *op, uint64_t time_ms)
{
    return !(op->e.fields & RON_F_TXID)
           || (op->e.ledger_id == op->en->meta.ledger_id
               && op->e.time_ms == time_ms);
}


/* The caller names the hold; holder, beneficiary and asset are the hold's. */

static bool
ron_op_hold(ron_op_t *op)
{
    uint32_t           no;
    ron_str_t          name;
    ron_state_t       *st;
    ron_status_t       status;
    const ron_hold_t  *h;

    st = &op->en->state;
    status = ron_op_hold_find(op, &no);

    if (status != RON_OK) {
        return status == RON_ENOTFOUND ? ron_op_hold_closed(op)
                                       : ron_op_storage(op, status);
    }

    h = ron_hold_at(st, no);
    name = ron_name_at(st, ron_account_at(st, h->account)->name);

    if (((op->e.fields & RON_F_ACCOUNT)
         && !ron_str_eq(name, op->e.account))
        || ((op->e.fields & RON_F_ASSET)
            && ron_state_asset(st, op->e.asset) != h->asset))
    {
        return ron_op_refuse(op, RON_REASON_HOLD_NOT_FOUND,
                             RON_DETAIL_HOLD_REF, 0);
    }

    if ((op->e.fields & RON_F_AMOUNT)
        && (op->e.amount > h->left
            || (op->e.kind == RON_KIND_RELEASE && op->e.amount != h->left)))
    {
        return ron_op_refuse(op, RON_REASON_CONFLICT, RON_DETAIL_HELD,
                             h->left > UINT64_MAX ? UINT64_MAX
                                                  : (uint64_t) h->left);
    }

    op->e.fields &= ~(uint32_t) RON_F_TXID;
    op->e.fields |= RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    op->e.asset = ron_asset_name(st, h->asset);
    op->e.account = name;
    op->touch.from = h->account;

    if (op->e.kind == RON_KIND_RELEASE) {
        op->e.amount = h->left;
        op->touch.to = h->account;
        return true;
    }

    op->e.fields |= RON_F_TO;
    op->e.to = ron_name_at(st, ron_account_at(st, h->to)->name);
    op->touch.to = h->to;

    return true;
}


/* A hold that is not open was closed, or never was one: the journal knows. */

static bool
ron_op_hold_closed(ron_op_t *op)
{
    ron_str_t     bytes;
    ron_entry_t   e;
    ron_status_t  status;

    status = ron_op_ref(op, &e, &bytes);

    if (status != RON_OK && status != RON_ENOTFOUND) {
        return ron_op_storage(op, status);
    }

    if (status == RON_OK && e.kind == RON_KIND_HOLD
        && ron_op_named(op, e.time_ms)
        && (!(op->e.fields & RON_F_ACCOUNT)
            || ron_str_eq(e.account, op->e.account)))
    {
        return ron_op_refuse(op, RON_REASON_HOLD_CLOSED, RON_DETAIL_HOLD_DONE,
                             0);
    }

    return ron_op_refuse(op, RON_REASON_HOLD_NOT_FOUND, RON_DETAIL_HOLD_REF,
                         0);
}


/*
 * The reversal of a Transfer, or of one leg (whose group the caller has
 * checked): sides, total, funds.  A debit leg is given back, so it only has
 * `to`; a credit leg is taken back, so it only has `account`.
 */

static bool
ron_op_reverse(ron_op_t *op)
{
    ron_str_t     bytes, other;
    ron_u128_t    total;
    ron_entry_t   e;
    ron_status_t  status;

    status = ron_op_ref(op, &e, &bytes);

    if (status != RON_OK && status != RON_ENOTFOUND) {
        return ron_op_storage(op, status);
    }

    if (status != RON_OK
        || (e.kind != RON_KIND_TRANSFER && e.kind != RON_KIND_DEBIT
            && e.kind != RON_KIND_CREDIT))
    {
        return ron_op_refuse(op, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_REF,
                             0);
    }

    other = (e.kind == RON_KIND_TRANSFER) ? e.to : e.account;

    if (!ron_str_eq(op->e.asset, e.asset)
        || !ron_str_eq(op->e.account, other)
        || ((op->e.fields & RON_F_TO)
            && (e.kind != RON_KIND_TRANSFER
                || !ron_str_eq(op->e.to, e.account))))
    {
        return ron_op_refuse(op, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_SIDE,
                             0);
    }

    if (ron_amount_add(ron_state_reversed(&op->en->state, op->e.ref),
                       op->e.amount, &total)
        != RON_OK
        || total > e.amount)
    {
        return ron_op_refuse(op, RON_REASON_CONFLICT, RON_DETAIL_REVERSE_OVER,
                             0);
    }

    if (e.kind == RON_KIND_DEBIT) {
        op->e.fields &= ~(uint32_t) RON_F_ACCOUNT;
        op->e.fields |= RON_F_TO;
        op->e.to = op->e.account;
        op->e.account = ron_null_str;
        return true;
    }

    if (e.kind == RON_KIND_CREDIT) {
        return true;
    }

    if (!(op->e.fields & RON_F_TO)) {
        op->touch.to = ron_state_account(&op->en->state, e.account);
        RON_ASSERT(op->touch.to != RON_NONE);

        op->e.fields |= RON_F_TO;
        op->e.to = ron_name_at(&op->en->state,
                               ron_account_at(&op->en->state,
                                              op->touch.to)->name);
    }

    return ron_op_funds(op);
}
