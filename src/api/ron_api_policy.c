
/*
 * The policy against requests: each operation by itself, and for the unit
 * the lowest of the ceilings that its operations have.
 */

#include "ron_api.h"


static ron_status_t ron_api_policy_op(const ron_api_policy_t *p,
    ron_policy_ask_t *ask, ron_unit_t *unit, const ron_entry_t *op,
    bool *unknown, ron_api_error_t *err);
static ron_u128_t ron_api_policy_lower(ron_u128_t a, ron_u128_t b);


ron_status_t
ron_api_policy(const ron_api_policy_t *p, const ron_cap_t *cap, unsigned act,
    ron_unit_t *unit, bool *unknown, ron_api_error_t *err)
{
    ron_status_t       rc;
    ron_policy_ask_t   ask;

    *unknown = false;

    if (p == NULL || p->rules == NULL) {
        return RON_OK;
    }

    memset(&ask, 0, sizeof(ron_policy_ask_t));
    ask.kid = ron_cstr(cap->kid);
    ask.id = ron_cstr(cap->id);
    ask.tenant = p->tenant;

    for (uint32_t i = 0; i < unit->op_n; i++) {

        /* an ingested entry needs the endpoint's act, and that of its kind */

        if (act != 0) {
            ask.act = act;

            rc = ron_api_policy_op(p, &ask, unit, &unit->ops[i], unknown,
                                   err);
            if (rc != RON_OK) {
                return rc;
            }
        }

        ask.act = ron_api_kind_act(unit->ops[i].kind);

        rc = ron_api_policy_op(p, &ask, unit, &unit->ops[i], unknown, err);
        if (rc != RON_OK) {
            return rc;
        }
    }

    return RON_OK;
}


static ron_status_t
ron_api_policy_op(const ron_api_policy_t *p, ron_policy_ask_t *ask,
    ron_unit_t *unit, const ron_entry_t *op, bool *unknown,
    ron_api_error_t *err)
{
    ron_policy_ceilings_t  c;

    ask->account = (op->fields & RON_F_ACCOUNT) ? op->account : p->account;
    ask->asset = (op->fields & RON_F_ASSET) ? op->asset : p->asset;
    ask->open = true;

    switch (ron_policy_decide(p->rules, ask, &c)) {

    case RON_POLICY_OPEN:
        *unknown = true;
        return RON_OK;

    case RON_POLICY_ALLOWED:
        break;

    default:
        return ron_api_refuse(err, RON_REASON_POLICY_DENIED, NULL, NULL);
    }

    if (c.op != 0 && (op->fields & RON_F_AMOUNT) && op->amount > c.op) {
        return ron_api_refuse(err, RON_REASON_LIMITS,
                              "more than the policy lets one operation move",
                              "amount_minor");
    }

    unit->account_daily = ron_api_policy_lower(unit->account_daily, c.daily);
    unit->account_total = ron_api_policy_lower(unit->account_total, c.total);

    return RON_OK;
}


/* 0 is no ceiling. */

static ron_u128_t
ron_api_policy_lower(ron_u128_t a, ron_u128_t b)
{
    return a == 0 || b == 0 ? a + b : ron_min(a, b);
}


ron_status_t
ron_api_policy_read(const ron_api_policy_t *p, const ron_cap_t *cap,
    unsigned act, ron_str_t account, ron_str_t asset, ron_api_error_t *err)
{
    ron_policy_ask_t       ask;
    ron_policy_ceilings_t  c;

    if (p == NULL || p->rules == NULL) {
        return RON_OK;
    }

    memset(&ask, 0, sizeof(ron_policy_ask_t));
    ask.kid = ron_cstr(cap->kid);
    ask.id = ron_cstr(cap->id);
    ask.tenant = p->tenant;
    ask.act = act;
    ask.account = account;
    ask.asset = asset;

    return ron_policy_decide(p->rules, &ask, &c) == RON_POLICY_ALLOWED
               ? RON_OK
               : ron_api_refuse(err, RON_REASON_POLICY_DENIED, NULL, NULL);
}
