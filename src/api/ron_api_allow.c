
/*
 * Capabilities against requests.  A caveat about accounts binds who loses
 * money (an issue: who gets it), and nothing else.
 */

#include "ron_api.h"


static ron_status_t ron_api_allow_op(const ron_cap_t *cap, unsigned svcs,
    const ron_entry_t *op, bool *unknown, ron_api_error_t *err);
static ron_status_t ron_api_forbid(ron_api_error_t *err, const char *text);


ron_status_t
ron_api_allow(const ron_cap_t *cap, unsigned svcs, ron_unit_t *unit,
    ron_buf_t *room, bool *unknown, ron_api_error_t *err)
{
    uint32_t      i;
    ron_status_t  rc;

    *unknown = false;

    for (i = 0; i < unit->op_n; i++) {
        rc = ron_api_allow_op(cap, svcs, &unit->ops[i], unknown, err);
        if (rc != RON_OK) {
            return rc;
        }
    }

    if (cap->has_max_daily) {
        if (cap->max_daily == 0) {
            return ron_api_forbid(err, "the capability's daily bound is 0");
        }

        unit->cap_daily = cap->max_daily;
    }

    return ron_api_cap_name(cap, room, &unit->cap);
}


ron_status_t
ron_api_cap_name(const ron_cap_t *cap, ron_buf_t *room, ron_str_t *name)
{
    ron_buf_reset(room);
    ron_buf_put_cstr(room, cap->kid);
    ron_buf_put_u8(room, ':');
    ron_buf_put_cstr(room, cap->id);

    if (ron_buf_status(room) != RON_OK) {
        return RON_ENOMEM;
    }

    *name = ron_buf_str(room);

    return RON_OK;
}


static ron_status_t
ron_api_allow_op(const ron_cap_t *cap, unsigned svcs, const ron_entry_t *op,
    bool *unknown, ron_api_error_t *err)
{
    if (!ron_cap_allows_act(cap, svcs, ron_api_kind_act(op->kind))) {
        return ron_api_forbid(err, "the capability does not have this act");
    }

    if (op->fields & RON_F_ACCOUNT) {

        /* a Credit takes nothing from its account */

        if (op->kind != RON_KIND_CREDIT
            && !ron_cap_allows_account(cap, op->account))
        {
            return ron_api_forbid(err,
                                  "the capability is for other accounts");
        }

    } else {
        *unknown |= cap->accounts_n != 0;
    }

    if (op->fields & RON_F_ASSET) {
        if (!ron_cap_allows_asset(cap, op->asset)) {
            return ron_api_forbid(err, "the capability is for other assets");
        }

    } else {
        *unknown |= cap->assets_n != 0;
    }

    if ((op->fields & RON_F_AMOUNT)
        && !ron_cap_allows_amount(cap, op->amount))
    {
        return ron_api_forbid(err, "the capability is for smaller amounts");
    }

    return RON_OK;
}


ron_status_t
ron_api_allow_read(const ron_cap_t *cap, ron_str_t account, ron_str_t asset,
    ron_api_error_t *err)
{
    if (!ron_cap_allows_account(cap, account)) {
        return ron_api_forbid(err, "the capability is for other accounts");
    }

    if (asset.len != 0 && !ron_cap_allows_asset(cap, asset)) {
        return ron_api_forbid(err, "the capability is for other assets");
    }

    return RON_OK;
}


static ron_status_t
ron_api_forbid(ron_api_error_t *err, const char *text)
{
    return ron_api_refuse(err, RON_REASON_CAP_INVALID, text, NULL);
}
