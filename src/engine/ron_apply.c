
/*
 * What an entry does to the state: balances, holds, nonces, reversed totals,
 * daily sums.  The same for an entry that was just decided and for one of the
 * journal, so nothing is refused here for being unwise: what cannot follow
 * from the state is RON_ECORRUPT.
 *
 * A state that was loaded from slices of different ages is made whole by the
 * journal behind the first of them.  Each record knows as of which seq it is
 * ("as_of"), and an entry up to there does nothing to it.
 */

#include "ron_state_impl.h"
#include "ron_amount.h"

#include <stdlib.h>


static bool ron_held_back(const ron_state_t *st, uint32_t account,
    uint64_t seq);
static ron_status_t ron_apply_from(ron_state_t *st, const ron_entry_t *e,
    const ron_moves_t *m, ron_touch_t *touch);
static ron_status_t ron_apply_to(ron_state_t *st, const ron_entry_t *e,
    const ron_moves_t *m, ron_touch_t *touch);
static ron_status_t ron_apply_supply(ron_state_t *st, const ron_entry_t *e,
    const ron_moves_t *m);
static void ron_apply_wallet(ron_state_t *st, const ron_entry_t *e,
    uint32_t account);
static ron_status_t ron_apply_cap(ron_state_t *st, const ron_entry_t *e,
    const ron_moves_t *m);
static ron_status_t ron_apply_hold(ron_state_t *st, const ron_entry_t *e,
    const ron_touch_t *touch);
static ron_status_t ron_apply_hold_use(ron_state_t *st, const ron_entry_t *e);
static ron_status_t ron_apply_reverse(ron_state_t *st, const ron_entry_t *e);


/* Does the checkpoint slice of this account hold the entry already? */

static bool
ron_held_back(const ron_state_t *st, uint32_t account, uint64_t seq)
{
    uint32_t  cell;

    cell = account / RON_SLICE_ACCOUNTS;

    return cell < st->as_of_n && seq <= st->as_of[cell];
}


ron_status_t
ron_state_apply(ron_state_t *st, const ron_entry_t *e, ron_touch_t *touch)
{
    ron_moves_t   m;
    ron_status_t  status;

    if (e->seq != st->seq + 1 || e->time_ms < st->time_ms) {
        return ron_corrupt();
    }

    ron_entry_moves(e, &m);

    if ((status = ron_apply_supply(st, e, &m)) != RON_OK
        || (status = ron_apply_from(st, e, &m, touch)) != RON_OK
        || (status = ron_apply_to(st, e, &m, touch)) != RON_OK)
    {
        return status;
    }

    switch (e->kind) {

    case RON_KIND_HOLD:
        status = ron_apply_hold(st, e, touch);
        break;

    case RON_KIND_CAPTURE:
    case RON_KIND_RELEASE:
        status = ron_apply_hold_use(st, e);
        break;

    case RON_KIND_REVERSE:
        status = ron_apply_reverse(st, e);
        break;

    default:
        break;
    }

    if (status == RON_OK && (e->fields & RON_F_WALLET)) {
        ron_apply_wallet(st, e, m.from.len ? touch->from : touch->to);
    }

    if (status == RON_OK && (e->fields & RON_F_CAP)) {
        status = ron_apply_cap(st, e, &m);
    }

    if (status != RON_OK || st->failed) {
        return status != RON_OK ? status : RON_ENOMEM;
    }

    ron_undo_keep(st, &st->seq, sizeof(st->seq));
    ron_undo_keep(st, &st->time_ms, sizeof(st->time_ms));
    st->seq = e->seq;
    st->time_ms = e->time_ms;

    if (st->as_of_last != 0 && e->seq >= st->as_of_last) {
        free(st->as_of);
        st->as_of = NULL;
        st->as_of_n = 0;
        st->as_of_last = 0;
    }

    return RON_OK;
}


static ron_status_t
ron_apply_supply(ron_state_t *st, const ron_entry_t *e, const ron_moves_t *m)
{
    uint32_t      asset;
    ron_u128_t    supply;
    ron_asset_t  *a;

    asset = ron_state_asset(st, e->asset);

    if (asset == RON_NONE) {
        asset = m->mints ? ron_state_add_asset(st, e->asset) : RON_NONE;
        if (asset == RON_NONE) {
            return st->failed ? RON_ENOMEM : ron_corrupt();
        }
    }

    st->asset_last = asset;

    if ((!m->mints && !m->burns) || e->seq <= st->as_of_assets) {
        return RON_OK;
    }

    a = &st->assets[asset];
    supply = a->minted - a->burned;
    ron_undo_keep(st, &a->minted, sizeof(ron_u128_t));
    ron_undo_keep(st, &a->burned, sizeof(ron_u128_t));

    if (m->mints) {
        a->minted += e->amount;
        return ron_amount_add(supply, e->amount, &supply) == RON_OK
                   ? RON_OK : ron_corrupt();
    }

    a->burned += e->amount;

    return e->amount <= supply ? RON_OK : ron_corrupt();
}


/*
 * Legs of one posting, or of its reversal, follow one another, and only their
 * sum has to be possible: on the way a balance may wrap, and it comes back.
 */

static bool
ron_is_leg(const ron_entry_t *e)
{
    return e->kind == RON_KIND_DEBIT || e->kind == RON_KIND_CREDIT
           || (e->kind == RON_KIND_REVERSE
               && (e->fields & (RON_F_ACCOUNT | RON_F_TO))
                      != (RON_F_ACCOUNT | RON_F_TO));
}


static ron_status_t
ron_apply_from(ron_state_t *st, const ron_entry_t *e, const ron_moves_t *m,
    ron_touch_t *touch)
{
    uint32_t            no;
    bool                leg;
    ron_u128_t         *left;
    ron_purse_t         purse;
    ron_account_t      *a;
    ron_balance_rec_t  *b;

    if (m->from.len == 0) {
        touch->from = RON_NONE;
        return RON_OK;
    }

    leg = ron_is_leg(e);

    if (touch->from == RON_NONE) {
        touch->from = ron_state_account(st, m->from);

        if (touch->from == RON_NONE && leg) {
            touch->from = ron_state_add_account(st, m->from);
        }

        if (touch->from == RON_NONE) {
            return st->failed ? RON_ENOMEM : ron_corrupt();
        }
    }

    if (ron_held_back(st, touch->from, e->seq)) {
        return RON_OK;
    }

    no = ron_state_balance(st, touch->from, st->asset_last);

    if (no == RON_NONE && leg) {
        no = ron_state_add_balance(st, touch->from, st->asset_last);
    }

    if (no == RON_NONE) {
        return st->failed ? RON_ENOMEM : ron_corrupt();
    }

    a = ron_account_at(st, touch->from);
    b = ron_balance_at(st, no);
    purse = ron_cell_get(st, b->purse);
    left = m->from_held ? &purse.held : &purse.available;

    if (leg) {
        *left -= e->amount;

    } else if (ron_amount_sub(*left, e->amount, left) != RON_OK) {
        return ron_corrupt();
    }

    ron_undo_keep(st, a, sizeof(ron_account_t));
    ron_undo_keep(st, b, sizeof(ron_balance_rec_t));
    a->version++;
    ron_cell_set(st, &b->purse, purse);

    return RON_OK;
}


static ron_status_t
ron_apply_to(ron_state_t *st, const ron_entry_t *e, const ron_moves_t *m,
    ron_touch_t *touch)
{
    uint32_t            no;
    ron_u128_t         *sum;
    ron_purse_t         purse;
    ron_account_t      *a;
    ron_balance_rec_t  *b;

    if (m->to.len == 0) {
        touch->to = RON_NONE;
        return RON_OK;
    }

    if (touch->to == RON_NONE) {
        touch->to = ron_state_account(st, m->to);

        if (touch->to == RON_NONE) {
            touch->to = ron_state_add_account(st, m->to);
            if (touch->to == RON_NONE) {
                return RON_ENOMEM;
            }
        }
    }

    if (ron_held_back(st, touch->to, e->seq)) {
        return RON_OK;
    }

    no = ron_state_balance(st, touch->to, st->asset_last);

    if (no == RON_NONE) {
        no = ron_state_add_balance(st, touch->to, st->asset_last);
        if (no == RON_NONE) {
            return RON_ENOMEM;
        }
    }

    a = ron_account_at(st, touch->to);
    b = ron_balance_at(st, no);
    purse = ron_cell_get(st, b->purse);
    sum = m->to_held ? &purse.held : &purse.available;

    if (ron_is_leg(e)) {
        *sum += e->amount;

    } else if (ron_amount_add(*sum, e->amount, sum) != RON_OK) {
        return ron_corrupt();
    }

    ron_undo_keep(st, b, sizeof(ron_balance_rec_t));
    ron_cell_set(st, &b->purse, purse);

    if (touch->to != touch->from) {
        ron_undo_keep(st, a, sizeof(ron_account_t));
        a->version++;
    }

    return RON_OK;
}


/* Nonce and what was moved today; `account` is the operation's own. */

static void
ron_apply_wallet(ron_state_t *st, const ron_entry_t *e, uint32_t account)
{
    ron_u128_t      sum;
    ron_account_t  *a;

    if ((e->kind != RON_KIND_MINT && e->kind != RON_KIND_BURN
         && e->kind != RON_KIND_TRANSFER && e->kind != RON_KIND_HOLD)
        || ron_held_back(st, account, e->seq))
    {
        return;
    }

    if (ron_amount_add(ron_state_daily(st, account, e->time_ms), e->amount,
                       &sum)
        != RON_OK)
    {
        sum = ~(ron_u128_t) 0;
    }

    a = ron_account_at(st, account);
    ron_undo_keep(st, a, sizeof(ron_account_t));
    a->day = ron_account_day(e->time_ms);
    ron_cell_set(st, &a->daily, (ron_purse_t) { sum, 0 });

    if ((e->fields & RON_F_NONCE) && e->kind != RON_KIND_MINT) {
        a->nonce = e->nonce;
    }
}


/* What the capability moved today. */

static ron_status_t
ron_apply_cap(ron_state_t *st, const ron_entry_t *e, const ron_moves_t *m)
{
    ron_cap_sum_t  *c;

    if (!ron_moves_spend(m) || e->time_ms / RON_DAY_MS != st->caps_day) {
        return RON_OK;
    }

    c = ron_cap_find(st, e->cap);

    if (c == NULL) {
        c = ron_state_add_cap(st, e->cap);
        if (c == NULL) {
            return RON_ENOMEM;
        }
    }

    if (e->seq > c->as_of) {
        ron_undo_keep(st, c, sizeof(ron_cap_sum_t));

        if (ron_amount_add(c->sum, e->amount, &c->sum) != RON_OK) {
            c->sum = ~(ron_u128_t) 0;
        }
    }

    return RON_OK;
}


static ron_status_t
ron_apply_hold(ron_state_t *st, const ron_entry_t *e,
    const ron_touch_t *touch)
{
    uint32_t    to;
    ron_hold_t  hold;

    if (ron_state_hold(st, e->seq) != RON_NONE) {
        return e->seq <= st->as_of_last ? RON_OK : ron_corrupt();
    }

    to = ron_state_account(st, e->to);

    if (to == RON_NONE) {
        to = ron_state_add_account(st, e->to);
        if (to == RON_NONE) {
            return RON_ENOMEM;
        }
    }

    memset(&hold, 0, sizeof(hold));
    hold.seq = e->seq;
    hold.time_ms = e->time_ms;
    hold.left = e->amount;
    hold.account = touch->from;
    hold.to = to;
    hold.asset = (uint16_t) st->asset_last;
    hold.expiry_ms = (e->fields & RON_F_EXPIRY) ? e->expiry_ms : 0;

    return ron_state_add_hold(st, &hold);
}


static ron_status_t
ron_apply_hold_use(ron_state_t *st, const ron_entry_t *e)
{
    uint32_t     no;
    ron_hold_t  *h;

    no = ron_state_hold(st, e->ref);

    if (no == RON_NONE) {
        return e->seq <= st->as_of_last ? RON_OK : ron_corrupt();
    }

    h = ron_hold_at(st, no);

    if (e->seq <= h->as_of) {
        return RON_OK;
    }

    if (e->amount > h->left
        || (e->kind == RON_KIND_RELEASE && e->amount != h->left))
    {
        return ron_corrupt();
    }

    if (e->amount < h->left) {
        ron_undo_keep(st, h, sizeof(ron_hold_t));
        h->left -= e->amount;
        return RON_OK;
    }

    ron_state_del_hold(st, no);

    return RON_OK;
}


static ron_status_t
ron_apply_reverse(ron_state_t *st, const ron_entry_t *e)
{
    uint32_t         no;
    ron_reversed_t  *r;

    no = ron_reversed_find(st, e->ref);

    if (no == RON_NONE) {
        r = ron_state_add_reversed(st, e->ref);
        if (r == NULL) {
            return RON_ENOMEM;
        }

    } else {
        r = ron_pool_at(&st->reversed, no);
    }

    if (e->seq <= r->as_of) {
        return RON_OK;
    }

    ron_undo_keep(st, r, sizeof(ron_reversed_t));

    return ron_amount_add(r->total, e->amount, &r->total) == RON_OK
               ? RON_OK : ron_corrupt();
}
