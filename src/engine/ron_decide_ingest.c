
/*
 * Deciding ingested entries: duplicates by id and by tuple, postings and
 * reversals of postings as groups, everything else one by one.
 */

#include "ron_decide.h"
#include "ron_amount.h"

#include <stdlib.h>


#define RON_OP_INGEST                                                         \
    (RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE | RON_F_CAPREF | RON_F_SCHEMA)


typedef enum {
    RON_KNOWN_NO = 0,
    RON_KNOWN_SAME,
    RON_KNOWN_REFUSED
} ron_known_t;


/* One leg's part in a sum: a debit or credit of an asset. */
typedef struct {
    ron_str_t   asset;
    ron_str_t   account;
    ron_u128_t  amount;
    uint32_t    place;
    bool        gains;
} ron_side_t;


/* The operations of a unit that stand or fall together. */
typedef struct {
    ron_engine_t      *en;
    ron_work_t        *w;
    const ron_unit_t  *unit;
    uint32_t           base;
    uint32_t          *ops;             /* their places in the unit */
    uint32_t           n;
    uint64_t           posting;         /* reversals: first seq of the legs */
    uint32_t           legs;
    bool               nested;          /* the unit is atomic anyway */
} ron_group_t;


static bool ron_ingest_fields(ron_op_t *op);
static ron_known_t ron_ingest_known(ron_op_t *op);
static bool ron_ingest_same(const ron_entry_t *e, const ron_entry_t *op,
    ron_str_t idem);
static bool ron_ingest_same_move(const ron_entry_t *e, const ron_entry_t *op);
static bool ron_ingest_ready(ron_op_t *op);
static bool ron_ingest_one(ron_op_t *op);
static bool ron_ingest_group(ron_group_t *g);
static bool ron_group_repeats(ron_group_t *g, uint32_t *repeats);
static bool ron_group_run(ron_group_t *g);
static bool ron_group_refuse(ron_group_t *g, ron_detail_t detail);
static bool ron_group_balanced(const ron_group_t *g);
static bool ron_group_distinct(const ron_group_t *g);
static int ron_tag_cmp(const void *a, const void *b);
static ron_side_t *ron_group_sides(const ron_group_t *g,
    int (*cmp)(const void *, const void *));
static bool ron_group_covered(ron_group_t *g);
static ron_u128_t ron_side_available(ron_state_t *st, const ron_side_t *side);
static int ron_side_cmp_account(const void *a, const void *b);
static bool ron_group_complete(const ron_group_t *g);
static bool ron_side_of(const ron_group_t *g, uint32_t i, ron_side_t *side);
static int ron_side_cmp(const void *a, const void *b);
static bool ron_ingest_gather(ron_group_t *g, uint32_t first);
static bool ron_reverses_leg(ron_engine_t *en, const ron_entry_t *op,
    uint64_t *posting, uint32_t *legs);


void
ron_decide_ingest(ron_engine_t *en, ron_work_t *w, const ron_unit_t *unit,
    ron_outcome_t *out, uint32_t base, uint64_t now_us)
{
    bool         ok;
    ron_op_t     op;
    ron_tag_t    tag;
    ron_mark_t   mark;
    ron_group_t  g;

    ron_tag_make(RON_TAG_BATCH, unit->key, ron_null_str, &tag);

    if (unit->key.len != 0
        && ron_unit_known(en, w, unit, base, RON_TAG_BATCH, &tag, out))
    {
        return;
    }

    if (ron_unit_late(unit, now_us)) {
        ron_unit_refuse(w, base, unit->op_n, RON_REASON_RETRY_LATER,
                        RON_DETAIL_DEADLINE);
        return;
    }

    memset(&g, 0, sizeof(g));
    g.en = en;
    g.w = w;
    g.unit = unit;
    g.base = base;
    g.nested = unit->atomic;
    g.ops = malloc(unit->op_n * sizeof(uint32_t));

    if (g.ops == NULL) {
        ron_unit_refuse(w, base, unit->op_n, RON_REASON_STORAGE,
                        RON_DETAIL_NONE);
        return;
    }

    ok = true;
    ron_unit_begin(en, w, unit, &mark);

    for (uint32_t i = 0; i < unit->op_n && (ok || !unit->atomic); i++) {
        if (w->results[base + i].reason != RON_REASON_N) {
            continue;
        }

        if (ron_ingest_gather(&g, i)) {
            ok = ron_ingest_group(&g) && ok;

        } else {
            ron_op_init(&op, en, w, unit, base, i);
            ok = ron_ingest_one(&op) && ok;
        }
    }

    free(g.ops);

    ron_unit_finish(en, w, unit, base, &mark, ok, &tag);
}


/* What the caller must and may give, and whether it makes sense alone. */

static bool
ron_ingest_fields(ron_op_t *op)
{
    uint32_t            needs, allows;
    const ron_entry_t  *e;

    e = &op->e;
    needs = ron_kind_needs(e->kind) & ~(uint32_t) RON_F_POSTING;
    allows = 0;

    if (e->kind == RON_KIND_CAPTURE) {
        needs &= ~(uint32_t) RON_F_TO;

    } else if (e->kind == RON_KIND_REVERSE) {
        needs |= RON_F_ACCOUNT;
        allows = RON_F_TO;

    } else if (e->kind == RON_KIND_HOLD) {
        allows = RON_F_EXPIRY;
    }

    needs |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;

    if ((e->fields & needs) != needs
        || (e->fields & ~(needs | allows | RON_OP_INGEST)) != 0)
    {
        return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_FIELDS, 0);
    }

    if (e->amount == 0) {
        return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_AMOUNT, 0);
    }

    if (!ron_entry_values_valid(e)) {
        return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_FIELDS, 0);
    }

    if ((e->kind == RON_KIND_TRANSFER || e->kind == RON_KIND_HOLD)
        && ron_str_eq(e->account, e->to))
    {
        return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_ACCOUNTS, 0);
    }

    return true;
}


/*
 * Seen before?  The id speaks first: the same id must be the same entry in
 * everything that the caller gave.  Then the tuple: the same tuple must move
 * the same money, whatever id and time it came with.
 */

static ron_known_t
ron_ingest_known(ron_op_t *op)
{
    uint64_t      seq;
    ron_str_t     bytes;
    ron_entry_t   e;
    ron_status_t  status;

    RON_ASSERT(op->tags->made);

    status = ron_tag_find(op->en, RON_TAG_ID, &op->tags->first, &seq);

    if (status == RON_OK) {
        status = ron_entry_find(op->en, seq, &e, &bytes);

        if (status == RON_OK) {
            if (ron_ingest_same(&e, &op->e, op->unit->key)) {
                (void) ron_op_repeat(op, seq, ron_null_str);
                return RON_KNOWN_SAME;
            }

            (void) ron_op_refuse(op, RON_REASON_CONFLICT,
                                 RON_DETAIL_ID_REUSED, 0);
            return RON_KNOWN_REFUSED;
        }

        status = ron_corrupt();
    }

    if (status == RON_ENOTFOUND) {
        status = ron_tag_find(op->en, RON_TAG_TUPLE, &op->tags->tuple, &seq);
    }

    if (status == RON_OK) {
        status = ron_entry_find(op->en, seq, &e, &bytes);

        if (status == RON_OK) {
            if (ron_ingest_same_move(&e, &op->e)) {
                (void) ron_op_repeat(op, seq, ron_null_str);
                return RON_KNOWN_SAME;
            }

            (void) ron_op_refuse(op, RON_REASON_CONFLICT,
                                 RON_DETAIL_TUPLE_REUSED, 0);
            return RON_KNOWN_REFUSED;
        }

        status = ron_corrupt();
    }

    if (status == RON_ENOTFOUND) {
        return RON_KNOWN_NO;
    }

    (void) ron_op_storage(op, status);

    return RON_KNOWN_REFUSED;
}


static bool
ron_ingest_same_move(const ron_entry_t *e, const ron_entry_t *op)
{
    bool  ref, to;

    ref = (e->fields & RON_F_REF) == (op->fields & RON_F_REF)
          && e->ref == op->ref;

    /* What the sequencer filled in is no difference. */

    to = !(op->fields & RON_F_TO) || ron_str_eq(e->to, op->to);

    return e->kind == op->kind && ron_str_eq(e->asset, op->asset) && ref && to;
}


static bool
ron_ingest_same(const ron_entry_t *e, const ron_entry_t *op, ron_str_t idem)
{
    uint32_t   bits;
    ron_str_t  account;

    bits = RON_F_SOURCE | RON_F_EXPIRY | RON_F_NONCE16 | RON_F_SCHEMA
           | RON_F_CAPREF;
    account = (e->fields & RON_F_ACCOUNT) ? e->account : e->to;

    return ron_ingest_same_move(e, op)
           && (e->fields & bits) == (op->fields & bits)
           && ron_str_eq(account, op->account)
           && e->amount == op->amount
           && memcmp(e->nonce16, op->nonce16, RON_NONCE_LEN) == 0
           && e->source_ms == op->source_ms
           && e->expiry_ms == op->expiry_ms
           && e->schema == op->schema
           && ron_str_eq(e->capref, op->capref)
           && ron_str_eq(e->key, idem);
}


/* The rules of its kind; then it only has to be accepted. */

static bool
ron_ingest_ready(ron_op_t *op)
{
    if ((op->e.fields & RON_F_EXPIRY)
        && op->e.expiry_ms <= op->w->pub.time_ms)
    {
        return ron_op_refuse(op, RON_REASON_MALFORMED, RON_DETAIL_EXPIRY, 0);
    }

    if (!ron_op_money(op)) {
        return false;
    }

    if (op->unit->key.len != 0) {
        op->e.fields |= RON_F_KEY;
        op->e.key = op->unit->key;
    }

    if (op->unit->cap.len != 0) {
        op->e.fields |= RON_F_CAP;
        op->e.cap = op->unit->cap;
    }

    return ron_op_cap_daily(op);
}


static bool
ron_ingest_one(ron_op_t *op)
{
    if (!ron_ingest_fields(op)) {
        return false;
    }

    switch (ron_ingest_known(op)) {
    case RON_KNOWN_SAME:
        return true;
    case RON_KNOWN_REFUSED:
        return false;
    default:
        return ron_ingest_ready(op) && ron_op_accept(op);
    }
}


/* ---- groups ------------------------------------------------------------- */


/*
 * Does operation `first` begin a group?  All Debits and Credits of a unit
 * are one posting; all Reverses of legs of one posting are one reversal.
 */

static bool
ron_ingest_gather(ron_group_t *g, uint32_t first)
{
    bool                legs;
    uint32_t            n;
    uint64_t            posting;
    const ron_entry_t  *op;

    op = &g->unit->ops[first];
    g->n = 0;
    g->posting = 0;

    legs = (op->kind == RON_KIND_DEBIT || op->kind == RON_KIND_CREDIT);

    if (!legs && !ron_reverses_leg(g->en, op, &g->posting, &g->legs)) {
        return false;
    }

    for (uint32_t i = first; i < g->unit->op_n; i++) {
        op = &g->unit->ops[i];

        if (g->w->results[g->base + i].reason != RON_REASON_N) {
            continue;
        }

        if (legs ? op->kind == RON_KIND_DEBIT || op->kind == RON_KIND_CREDIT
                 : ron_reverses_leg(g->en, op, &posting, &n)
                   && posting == g->posting)
        {
            g->ops[g->n++] = i;
        }
    }

    return true;
}


static bool
ron_reverses_leg(ron_engine_t *en, const ron_entry_t *op, uint64_t *posting,
    uint32_t *legs)
{
    ron_str_t    bytes;
    ron_entry_t  e;

    *posting = 0;
    *legs = 0;

    if (op->kind != RON_KIND_REVERSE || !(op->fields & RON_F_REF)
        || op->ref == 0 || op->ref > en->state.seq
        || ron_entry_find(en, op->ref, &e, &bytes) != RON_OK
        || !(e.fields & RON_F_POSTING))
    {
        return false;
    }

    *posting = e.posting_first;
    *legs = e.posting_n;

    return true;
}


static bool
ron_ingest_group(ron_group_t *g)
{
    bool        ok;
    uint32_t    repeats;
    ron_mark_t  mark;

    if (!ron_group_repeats(g, &repeats)) {
        return ron_group_refuse(g, RON_DETAIL_POSTING);
    }

    if (repeats == g->n) {
        return true;
    }

    if (repeats != 0) {
        for (uint32_t i = 0; i < g->n; i++) {
            g->w->results[g->base + g->ops[i]].reason = RON_REASON_N;
        }

        return ron_group_refuse(g, RON_DETAIL_POSTING);
    }

    if (!ron_group_balanced(g)) {
        return ron_group_refuse(g, RON_DETAIL_UNBALANCED);
    }

    if (!ron_group_distinct(g)) {
        return ron_group_refuse(g, RON_DETAIL_POSTING);
    }

    if (g->posting != 0 && !ron_group_complete(g)) {
        return ron_group_refuse(g, RON_DETAIL_REVERSE_LEGS);
    }

    if (!ron_group_covered(g)) {
        return ron_group_refuse(g, RON_DETAIL_POSTING);
    }

    if (g->nested) {
        return ron_group_run(g) || ron_group_refuse(g, RON_DETAIL_POSTING);
    }

    ron_mark_begin(g->en, g->w, &mark);
    ok = ron_group_run(g);

    if (ok) {
        ron_mark_keep(g->en);
        return true;
    }

    ron_mark_drop(g->en, g->w, &mark);

    return ron_group_refuse(g, RON_DETAIL_POSTING);
}


/*
 * Fields, and duplicates: false when any member is refused for itself.  A
 * repeat is set as one; the others stay unset.
 */

static bool
ron_group_repeats(ron_group_t *g, uint32_t *repeats)
{
    bool      ok;
    ron_op_t  op;

    ok = true;
    *repeats = 0;

    for (uint32_t i = 0; i < g->n; i++) {
        ron_op_init(&op, g->en, g->w, g->unit, g->base, g->ops[i]);

        if (!ron_ingest_fields(&op)) {
            ok = false;
            continue;
        }

        switch (ron_ingest_known(&op)) {
        case RON_KNOWN_SAME:
            (*repeats)++;
            break;
        case RON_KNOWN_REFUSED:
            ok = false;
            break;
        default:
            break;
        }
    }

    return ok;
}


/*
 * Whoever was refused for itself keeps its reason; the others fall with it.
 * Always false.
 */

static bool
ron_group_refuse(ron_group_t *g, ron_detail_t detail)
{
    ron_result_t  *r;

    for (uint32_t i = 0; i < g->n; i++) {
        r = &g->w->results[g->base + g->ops[i]];

        if (r->reason == RON_REASON_N || r->reason == RON_REASON_OK) {
            memset(r, 0, sizeof(ron_result_t));
            r->reason = RON_REASON_CONFLICT;
            r->detail = detail;
        }

        g->w->spans[g->base + g->ops[i]].where = RON_SPAN_NONE;
    }

    return false;
}


static bool
ron_group_run(ron_group_t *g)
{
    uint64_t  first;
    ron_op_t  op;

    first = g->en->state.seq + 1;

    for (uint32_t i = 0; i < g->n; i++) {
        ron_op_init(&op, g->en, g->w, g->unit, g->base, g->ops[i]);

        if (!ron_ingest_ready(&op)) {
            return false;
        }

        if (g->posting == 0) {
            op.e.fields |= RON_F_POSTING;
            op.e.posting_first = first;
            op.e.posting_n = g->n;
        }

        if (!ron_op_accept(&op)) {
            return false;
        }
    }

    return true;
}


/* Gains or loses the account of this member?  False: it can do neither. */

static bool
ron_side_of(const ron_group_t *g, uint32_t i, ron_side_t *side)
{
    ron_str_t           bytes;
    ron_entry_t         e;
    const ron_entry_t  *op;

    op = &g->unit->ops[g->ops[i]];
    side->asset = op->asset;
    side->account = op->account;
    side->amount = op->amount;
    side->place = i;

    if (g->posting == 0) {
        side->gains = (op->kind == RON_KIND_CREDIT);
        return true;
    }

    if (ron_entry_find(g->en, op->ref, &e, &bytes) != RON_OK) {
        return false;
    }

    side->gains = (e.kind == RON_KIND_DEBIT);

    return true;
}


static int
ron_side_cmp(const void *a, const void *b)
{
    const ron_side_t  *x = a, *y = b;

    return ron_str_cmp(x->asset, y->asset);
}


/* Per asset, what is gained is what is lost. */

static bool
ron_group_balanced(const ron_group_t *g)
{
    bool         ok;
    ron_u128_t   gained, lost, *sum;
    int64_t      over;
    ron_side_t  *sides;

    sides = ron_group_sides(g, ron_side_cmp);
    ok = (sides != NULL);

    gained = 0;
    lost = 0;
    over = 0;

    for (uint32_t i = 0; i < g->n && ok; i++) {
        sum = sides[i].gains ? &gained : &lost;
        *sum += sides[i].amount;

        if (*sum < sides[i].amount) {
            over += sides[i].gains ? 1 : -1;
        }

        if (i + 1 == g->n || ron_side_cmp(&sides[i], &sides[i + 1]) != 0) {
            ok = gained == lost && over == 0;
            gained = 0;
            lost = 0;
            over = 0;
        }
    }

    free(sides);

    return ok;
}


static int
ron_tag_cmp(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(ron_tag_t));
}


/* All of them are new; but is each of them only once here? */

static bool
ron_group_distinct(const ron_group_t *g)
{
    bool                  ok;
    uint32_t              n;
    ron_tag_t            *tags;
    const ron_op_tags_t  *made;

    n = 2 * g->n;
    tags = malloc(n * sizeof(ron_tag_t));
    ok = (tags != NULL);

    for (uint32_t i = 0; i < g->n && ok; i++) {
        made = &g->w->tags[g->base + g->ops[i]];
        tags[2 * i] = made->first;
        tags[2 * i + 1] = made->tuple;
    }

    if (ok) {
        qsort(tags, n, sizeof(ron_tag_t), ron_tag_cmp);
    }

    for (uint32_t i = 1; i < n && ok; i++) {
        ok = (ron_tag_cmp(&tags[i - 1], &tags[i]) != 0);
    }

    free(tags);

    return ok;
}


static int
ron_side_cmp_account(const void *a, const void *b)
{
    int                rc;
    const ron_side_t  *x = a, *y = b;

    rc = ron_str_cmp(x->asset, y->asset);
    rc = rc ? rc : ron_str_cmp(x->account, y->account);

    return rc ? rc : (x->place < y->place ? -1 : 1);
}


/* What every member does, sorted; NULL: it cannot be said. */

static ron_side_t *
ron_group_sides(const ron_group_t *g, int (*cmp)(const void *, const void *))
{
    bool         ok;
    ron_side_t  *sides;

    sides = malloc(g->n * sizeof(ron_side_t));
    ok = (sides != NULL);

    for (uint32_t i = 0; i < g->n && ok; i++) {
        ok = ron_side_of(g, i, &sides[i]);
    }

    if (!ok) {
        free(sides);
        return NULL;
    }

    qsort(sides, g->n, sizeof(ron_side_t), cmp);

    return sides;
}


/* What the account of a side has now; none when it is unknown. */

static ron_u128_t
ron_side_available(ron_state_t *st, const ron_side_t *side)
{
    uint32_t  account, asset, no;

    asset = ron_state_asset(st, side->asset);
    account = ron_state_account(st, side->account);
    no = (asset == RON_NONE || account == RON_NONE)
             ? RON_NONE : ron_state_balance(st, account, asset);

    return no == RON_NONE ? 0 : ron_state_purse(st, no).available;
}


/*
 * No balance ends below zero, what it gains counted first.  Who would is
 * refused for itself: the first of them in the order of the unit.
 */

static bool
ron_group_covered(ron_group_t *g)
{
    bool          last;
    int64_t       over;
    uint32_t      i, culprit, loser;
    ron_op_t      op;
    ron_u128_t    sum, available;
    ron_side_t   *sides;
    ron_state_t  *st;

    st = &g->en->state;
    culprit = UINT32_MAX;

    sides = ron_group_sides(g, ron_side_cmp_account);
    if (sides == NULL) {
        return false;
    }

    sum = 0;
    over = 0;
    loser = UINT32_MAX;

    for (i = 0; i < g->n; i++) {

        if (sides[i].gains) {
            sum += sides[i].amount;
            over += (sum < sides[i].amount);

        } else {
            over -= (sum < sides[i].amount);
            sum -= sides[i].amount;
            loser = ron_min(loser, sides[i].place);
        }

        last = i + 1 == g->n
               || !ron_str_eq(sides[i].asset, sides[i + 1].asset)
               || !ron_str_eq(sides[i].account, sides[i + 1].account);
        if (!last) {
            continue;
        }

        available = ron_side_available(st, &sides[i]);
        sum += available;
        over += (sum < available);

        if (over < 0 || ron_state_asset(st, sides[i].asset) == RON_NONE) {
            culprit = ron_min(culprit, loser);
        }

        sum = 0;
        over = 0;
        loser = UINT32_MAX;
    }

    free(sides);

    if (culprit == UINT32_MAX) {
        return true;
    }

    ron_op_init(&op, g->en, g->w, g->unit, g->base, g->ops[culprit]);

    return ron_op_refuse(&op, RON_REASON_INSUFFICIENT, RON_DETAIL_AVAILABLE,
                         0);
}


/* Every leg of the posting is named by some member. */

static bool
ron_group_complete(const ron_group_t *g)
{
    bool      ok;
    uint8_t  *named;
    uint64_t  leg;
    uint32_t  n;

    if (g->n < g->legs) {
        return false;
    }

    named = calloc(g->legs, 1);
    if (named == NULL) {
        return false;
    }

    n = 0;

    for (uint32_t i = 0; i < g->n; i++) {
        leg = g->unit->ops[g->ops[i]].ref - g->posting;
        n += !named[leg];
        named[leg] = 1;
    }

    ok = (n == g->legs);
    free(named);

    return ok;
}
