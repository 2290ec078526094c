
/*
 * Bodies to units.  One table row a member; whatever the table cannot say is
 * checked behind it, and an error always names the member.
 */

#include <stdlib.h>

#include "ron_amount.h"
#include "ron_api.h"
#include "ron_codec.h"
#include "ron_digest.h"
#include "ron_receipt.h"


#define RON_API_OPS_MIN  16


typedef struct {
    ron_str_t          op;
    ron_str_t          from;
    ron_str_t          to;
    ron_str_t          asset;
    ron_str_t          memo;
    ron_str_t          hold;
    ron_u128_t         amount;
    uint64_t           nonce;
    uint64_t           expires_in;
} ron_api_op_t;

typedef struct {
    const ron_json_t  *ops;
    bool               atomic;
} ron_api_batch_t;

typedef struct {
    ron_str_t          op;
    ron_str_t          key;
    const ron_json_t  *request;
    uint64_t           deadline;
    uint64_t           match;
    ron_u128_t         account_daily;
    ron_u128_t         account_total;
    bool               nonce_strict;
} ron_api_envelope_t;

typedef struct {
    const ron_json_t  *batch;
    ron_str_t          idem_id;
    bool               atomic;
} ron_api_ingest_t;

typedef struct {
    bool               enter;
} ron_api_safe_t;

typedef struct {
    ron_str_t          id;
    ron_str_t          kind;
    ron_str_t          account;
    ron_str_t          to;
    ron_str_t          asset;
    ron_str_t          nonce;
    ron_str_t          capref;
    ron_str_t          kid;
    ron_u128_t         amount;
    uint64_t           ts;
    uint64_t           ref;
    uint64_t           expiry;
    uint64_t           v;
} ron_api_entry_t;


static ron_status_t ron_api_json(ron_api_t *api, ron_str_t body,
    const ron_json_t **root, ron_api_error_t *err);
static ron_status_t ron_api_json_error(ron_status_t rc,
    const ron_json_error_t *json, ron_api_error_t *err);
static ron_status_t ron_api_room(ron_api_t *api, size_t n);
static ron_status_t ron_api_op(ron_api_wallet_t op, const ron_json_t *object,
    const ron_api_limits_t *limits, bool named, ron_entry_t *e,
    ron_api_error_t *err);
static ron_status_t ron_api_op_members(uint64_t unknown, uint64_t missing,
    ron_api_error_t *err);
static ron_status_t ron_api_op_check(ron_api_wallet_t op,
    const ron_api_op_t *dto, const ron_api_limits_t *limits,
    ron_api_error_t *err);
static ron_status_t ron_api_op_entry(ron_api_wallet_t op,
    const ron_api_op_t *dto, uint64_t present, ron_entry_t *e,
    ron_api_error_t *err);
static ron_status_t ron_api_wallet(ron_api_t *api, ron_api_wallet_t op,
    const ron_json_t *root, ron_str_t key, const ron_api_limits_t *limits,
    ron_api_error_t *err);
static ron_u128_t ron_api_lower(ron_u128_t a, ron_u128_t b);
static ron_status_t ron_api_batch(ron_api_t *api, const ron_json_t *root,
    const ron_api_limits_t *limits, ron_api_error_t *err);
static ron_status_t ron_api_entry(const ron_json_t *object, ron_entry_t *e,
    ron_api_error_t *err);
static bool ron_api_memo_valid(ron_str_t s);
static bool ron_api_visible(ron_str_t s);
static inline uint64_t ron_api_invisible(uint64_t w);


/* The members of a wallet operation, in the order of the contract. */

#define RON_API_M_OP       0x001
#define RON_API_M_FROM     0x002
#define RON_API_M_TO       0x004
#define RON_API_M_ASSET    0x008
#define RON_API_M_AMOUNT   0x010
#define RON_API_M_NONCE    0x020
#define RON_API_M_EXPIRES  0x040
#define RON_API_M_MEMO     0x080
#define RON_API_M_HOLD     0x100

static const ron_json_field_t  ron_api_op_fields[] = {
    RON_JSON_FIELD(ron_api_op_t, op, "op", STRING, 0, 0, 0, NULL),
    RON_JSON_FIELD(ron_api_op_t, from, "from", STRING, 0, 0, 0,
                   ron_account_valid),
    RON_JSON_FIELD(ron_api_op_t, to, "to", STRING, 0, 0, 0,
                   ron_account_valid),
    RON_JSON_FIELD(ron_api_op_t, asset, "asset", STRING, 0, 0, 0,
                   ron_asset_valid),
    RON_JSON_FIELD(ron_api_op_t, amount, "amount_minor", AMOUNT, 0, 1, 0,
                   NULL),
    RON_JSON_FIELD(ron_api_op_t, nonce, "nonce", U64, 0, 1, RON_NONCE_MAX,
                   NULL),
    RON_JSON_FIELD(ron_api_op_t, expires_in, "expires_in", U64, 0, 1,
                   RON_API_HOLD_MAX_S, NULL),
    RON_JSON_FIELD(ron_api_op_t, memo, "memo", STRING, 0, 1,
                   RON_API_MEMO_MAX, ron_api_memo_valid),
    RON_JSON_FIELD(ron_api_op_t, hold, "hold", STRING, 0, 0, 0, NULL),
};


/* One row an operation: what it is, what it needs, what it may have. */

#define RON_API_M_MONEY  (RON_API_M_ASSET | RON_API_M_AMOUNT)

static const struct {
    const char  *name;
    ron_kind_t   kind;
    uint32_t     needs;
    uint32_t     allows;
} ron_api_ops[RON_API_WALLET_N] = {

    [RON_API_ISSUE] = { "issue", RON_KIND_MINT,
        RON_API_M_TO | RON_API_M_MONEY,
        RON_API_M_NONCE | RON_API_M_MEMO },

    [RON_API_TRANSFER] = { "transfer", RON_KIND_TRANSFER,
        RON_API_M_FROM | RON_API_M_TO | RON_API_M_MONEY | RON_API_M_NONCE,
        RON_API_M_MEMO },

    [RON_API_BURN] = { "burn", RON_KIND_BURN,
        RON_API_M_FROM | RON_API_M_MONEY | RON_API_M_NONCE,
        RON_API_M_MEMO },

    [RON_API_HOLD] = { "hold", RON_KIND_HOLD,
        RON_API_M_FROM | RON_API_M_TO | RON_API_M_MONEY | RON_API_M_NONCE,
        RON_API_M_EXPIRES | RON_API_M_MEMO },

    [RON_API_CAPTURE] = { "capture", RON_KIND_CAPTURE,
        RON_API_M_HOLD | RON_API_M_AMOUNT, 0 },

    [RON_API_RELEASE] = { "release", RON_KIND_RELEASE,
        RON_API_M_HOLD, 0 },

    [RON_API_BATCH] = { "batch", RON_KIND_NONE, 0, 0 },
};


static const ron_json_field_t  ron_api_batch_fields[] = {
    RON_JSON_FIELD(ron_api_batch_t, ops, "ops", ARRAY, RON_JSON_REQUIRED, 1,
                   RON_API_BATCH_MAX, NULL),
    RON_JSON_FIELD(ron_api_batch_t, atomic, "atomic", BOOL, 0, 0, 0, NULL),
};


#define RON_API_O_MATCH  (1 << 4)

static const ron_json_field_t  ron_api_envelope_fields[] = {
    RON_JSON_FIELD(ron_api_envelope_t, op, "op", STRING, RON_JSON_REQUIRED, 0,
                   0, NULL),
    RON_JSON_FIELD(ron_api_envelope_t, key, "key", STRING, RON_JSON_REQUIRED,
                   1, RON_API_KEY_MAX, NULL),
    RON_JSON_FIELD(ron_api_envelope_t, request, "request", OBJECT,
                   RON_JSON_REQUIRED, 0, 0, NULL),
    RON_JSON_FIELD(ron_api_envelope_t, deadline, "deadline", U64, 0, 1,
                   RON_TIME_MAX, NULL),
    RON_JSON_FIELD(ron_api_envelope_t, match, "if_match", U64, 0, 0, 0,
                   NULL),
    RON_JSON_FIELD(ron_api_envelope_t, account_daily, "account_daily", AMOUNT,
                   0, 1, 0, NULL),
    RON_JSON_FIELD(ron_api_envelope_t, account_total, "account_total", AMOUNT,
                   0, 1, 0, NULL),
    RON_JSON_FIELD(ron_api_envelope_t, nonce_strict, "nonce_strict", BOOL, 0,
                   0, 0, NULL),
};


static const ron_json_field_t  ron_api_ingest_fields[] = {
    RON_JSON_FIELD(ron_api_ingest_t, batch, "batch", ARRAY,
                   RON_JSON_REQUIRED, 1, RON_UNIT_OPS_MAX, NULL),
    RON_JSON_FIELD(ron_api_ingest_t, idem_id, "idem_id", STRING, 0, 1,
                   RON_KEY_MAX, NULL),
    RON_JSON_FIELD(ron_api_ingest_t, atomic, "atomic", BOOL, 0, 0, 0, NULL),
};


static const ron_json_field_t  ron_api_safe_fields[] = {
    RON_JSON_FIELD(ron_api_safe_t, enter, "enter", BOOL, RON_JSON_REQUIRED,
                   0, 0, NULL),
};


#define RON_API_E_TO       (1 << 4)
#define RON_API_E_ASSET    (1 << 5)
#define RON_API_E_REF      (1 << 8)
#define RON_API_E_CAPREF   (1 << 9)
#define RON_API_E_EXPIRY   (1 << 11)

static const ron_json_field_t  ron_api_entry_fields[] = {
    RON_JSON_FIELD(ron_api_entry_t, id, "id", STRING, RON_JSON_REQUIRED, 1,
                   RON_ID_MAX, NULL),
    RON_JSON_FIELD(ron_api_entry_t, ts, "ts", U64, RON_JSON_REQUIRED, 0,
                   RON_TIME_MAX, NULL),
    RON_JSON_FIELD(ron_api_entry_t, kind, "kind", STRING, RON_JSON_REQUIRED,
                   0, 0, NULL),
    RON_JSON_FIELD(ron_api_entry_t, account, "account", STRING,
                   RON_JSON_REQUIRED, 0, 0, ron_account_valid),
    RON_JSON_FIELD(ron_api_entry_t, to, "to", STRING, 0, 0, 0,
                   ron_account_valid),
    RON_JSON_FIELD(ron_api_entry_t, asset, "asset", STRING, 0, 0, 0,
                   ron_asset_valid),
    RON_JSON_FIELD(ron_api_entry_t, amount, "amount", AMOUNT_INT,
                   RON_JSON_REQUIRED, 1, 0, NULL),
    RON_JSON_FIELD(ron_api_entry_t, nonce, "nonce", STRING,
                   RON_JSON_REQUIRED, 0, 0, NULL),
    RON_JSON_FIELD(ron_api_entry_t, ref, "ref", U64, 0, 1, 0, NULL),
    RON_JSON_FIELD(ron_api_entry_t, capref, "capability_ref", STRING, 0, 1,
                   RON_ID_MAX, NULL),
    RON_JSON_FIELD(ron_api_entry_t, kid, "kid", STRING, 0, 1, RON_ID_MAX,
                   NULL),
    RON_JSON_FIELD(ron_api_entry_t, expiry, "expiry", U64, 0, 1,
                   RON_TIME_MAX, NULL),
    RON_JSON_FIELD(ron_api_entry_t, v, "v", U64, RON_JSON_REQUIRED, 1,
                   UINT32_MAX, NULL),
};


void
ron_api_limits_init(ron_api_limits_t *limits)
{
    ron_status_t  rc;

    memset(limits, 0, sizeof(ron_api_limits_t));

    limits->asset[0] = ron_str("ron");
    limits->asset[1] = ron_str("roc");
    limits->asset_n = 2;

    rc = ron_amount_parse(ron_str("100000000000000000000"), &limits->op_max);
    RON_ASSERT(rc == RON_OK);

    rc = ron_amount_parse(ron_str("10000000000000000000000"),
                          &limits->account_daily);
    RON_ASSERT(rc == RON_OK);

    limits->account_total = ~(ron_u128_t) 0 - 1000000000;
}


void
ron_api_init(ron_api_t *api)
{
    memset(api, 0, sizeof(ron_api_t));
    ron_json_doc_init(&api->doc, 0);
}


void
ron_api_free(ron_api_t *api)
{
    ron_json_doc_free(&api->doc);
    free(api->ops);
    memset(api, 0, sizeof(ron_api_t));
}


bool
ron_api_wallet_find(ron_str_t name, ron_api_wallet_t *op)
{
    unsigned  i;

    for (i = 0; i < RON_API_WALLET_N; i++) {
        if (ron_str_eq(name, ron_cstr(ron_api_ops[i].name))) {
            *op = (ron_api_wallet_t) i;
            return true;
        }
    }

    return false;
}


const char *
ron_api_wallet_name(ron_api_wallet_t op)
{
    RON_ASSERT(op < RON_API_WALLET_N);

    return ron_api_ops[op].name;
}


unsigned
ron_api_kind_act(ron_kind_t kind)
{
    switch (kind) {

    case RON_KIND_MINT:
        return RON_CAP_ACT_ISSUE;

    case RON_KIND_BURN:
        return RON_CAP_ACT_BURN;

    case RON_KIND_TRANSFER:
    case RON_KIND_DEBIT:
    case RON_KIND_CREDIT:
        return RON_CAP_ACT_TRANSFER;

    case RON_KIND_HOLD:
    case RON_KIND_CAPTURE:
    case RON_KIND_RELEASE:
        return RON_CAP_ACT_HOLD;

    case RON_KIND_REVERSE:
        return RON_CAP_ACT_REVERSE;

    case RON_KIND_NONE:
    case RON_KIND_N:
        break;
    }

    RON_ASSERT(!"a kind of entry");

    return 0;
}


static ron_status_t
ron_api_json(ron_api_t *api, ron_str_t body, const ron_json_t **root,
    ron_api_error_t *err)
{
    ron_status_t       rc;
    ron_json_error_t   json;
    ron_json_limits_t  limits;

    memset(&limits, 0, sizeof(ron_json_limits_t));
    limits.max_len = api->body_max;

    rc = ron_json_parse(&api->doc, body, &limits, root, &json);

    return rc == RON_OK ? RON_OK : ron_api_json_error(rc, &json, err);
}


static ron_status_t
ron_api_json_error(ron_status_t rc, const ron_json_error_t *json,
    ron_api_error_t *err)
{
    if (rc != RON_EINVAL) {
        (void) ron_api_refuse(err, RON_REASON_INTERNAL, NULL, NULL);
        return rc;
    }

    return ron_api_refuse(err, RON_REASON_MALFORMED, json->reason,
                          json->name);
}


static ron_status_t
ron_api_room(ron_api_t *api, size_t n)
{
    size_t        cap;
    ron_entry_t  *ops;

    if (n > api->ops_cap) {
        cap = ron_max(n, RON_API_OPS_MIN);

        ops = realloc(api->ops, cap * sizeof(ron_entry_t));
        if (ops == NULL) {
            return RON_ENOMEM;
        }

        api->ops = ops;
        api->ops_cap = (uint32_t) cap;
    }

    memset(&api->unit, 0, sizeof(ron_unit_t));
    memset(api->ops, 0, n * sizeof(ron_entry_t));

    api->unit.ops = api->ops;
    api->unit.op_n = (uint32_t) n;

    return RON_OK;
}


ron_status_t
ron_api_wallet_parse(ron_api_t *api, ron_api_wallet_t op, ron_str_t body,
    ron_str_t key, const ron_api_limits_t *limits, ron_api_error_t *err)
{
    ron_status_t       rc;
    const ron_json_t  *root;

    rc = ron_api_json(api, body, &root, err);
    if (rc != RON_OK) {
        return rc;
    }

    return ron_api_wallet(api, op, root, key, limits, err);
}


static ron_status_t
ron_api_wallet(ron_api_t *api, ron_api_wallet_t op, const ron_json_t *root,
    ron_str_t key, const ron_api_limits_t *limits, ron_api_error_t *err)
{
    ron_status_t  rc;

    if (op == RON_API_BATCH) {
        rc = ron_api_batch(api, root, limits, err);
        if (rc != RON_OK) {
            return rc;
        }

        api->unit.type = RON_UNIT_BATCH;

    } else {
        rc = ron_api_room(api, 1);
        if (rc != RON_OK) {
            return rc;
        }

        rc = ron_api_op(op, root, limits, false, &api->ops[0], err);
        if (rc != RON_OK) {
            return rc;
        }

        api->unit.type = RON_UNIT_WALLET;
    }

    api->unit.key = key;
    api->unit.nonce_strict = limits->nonce_strict;
    api->unit.account_daily = limits->account_daily;
    api->unit.account_total = limits->account_total;

    return RON_OK;
}


ron_status_t
ron_api_ops_parse(ron_api_t *api, ron_str_t body,
    const ron_api_limits_t *limits, ron_api_ops_t *ops, ron_api_error_t *err)
{
    uint64_t             present;
    ron_status_t         rc;
    ron_json_error_t     json;
    const ron_json_t    *root;
    ron_api_limits_t     lower;
    ron_api_envelope_t   dto;

    memset(ops, 0, sizeof(ron_api_ops_t));

    rc = ron_api_json(api, body, &root, err);
    if (rc != RON_OK) {
        return rc;
    }

    rc = ron_json_bind(root, ron_api_envelope_fields,
                       ron_array_n(ron_api_envelope_fields), &dto, &present,
                       &json);
    if (rc != RON_OK) {
        return ron_api_json_error(rc, &json, err);
    }

    if (!ron_api_wallet_find(dto.op, &ops->op)) {
        return ron_api_refuse(err, RON_REASON_UNKNOWN_KIND,
                              "not an operation", "op");
    }

    /* what a header could not carry is no key here either */

    if (ron_api_key(dto.key, &ops->key) != RON_OK
        || ops->key.len != dto.key.len)
    {
        return ron_api_refuse(err, RON_REASON_MALFORMED,
                              "it must be 1 to 64 visible characters, "
                              "without quotes", "key");
    }

    ops->has_match = (present & RON_API_O_MATCH) != 0;
    ops->match = dto.match;
    ops->deadline_ms = dto.deadline;
    ops->nonce_strict = dto.nonce_strict;
    ops->account_daily = dto.account_daily;
    ops->account_total = dto.account_total;

    lower = *limits;
    lower.nonce_strict |= dto.nonce_strict;
    lower.account_daily = ron_api_lower(lower.account_daily,
                                        dto.account_daily);
    lower.account_total = ron_api_lower(lower.account_total,
                                        dto.account_total);

    rc = ron_api_wallet(api, ops->op, dto.request, ops->key, &lower, err);
    if (rc != RON_OK) {
        return rc;
    }

    api->unit.has_match = ops->has_match;
    api->unit.match = ops->match;

    return RON_OK;
}


/* 0 is no limit. */
static ron_u128_t
ron_api_lower(ron_u128_t a, ron_u128_t b)
{
    if (a == 0 || b == 0) {
        return a + b;
    }

    return ron_min(a, b);
}


ron_status_t
ron_api_ops_put(ron_buf_t *out, const ron_api_ops_t *ops, ron_str_t body)
{
    ron_buf_put_u8(out, '{');
    ron_json_put_member(out, ron_str("op"),
                        ron_cstr(ron_api_wallet_name(ops->op)));
    ron_json_put_member(out, ron_str("key"), ops->key);

    if (ops->deadline_ms != 0) {
        ron_json_put_member_u64(out, ron_str("deadline"), ops->deadline_ms);
    }

    if (ops->has_match) {
        ron_json_put_member_u64(out, ron_str("if_match"), ops->match);
    }

    if (ops->account_daily != 0) {
        ron_json_put_member_amount(out, ron_str("account_daily"),
                                   ops->account_daily);
    }

    if (ops->account_total != 0) {
        ron_json_put_member_amount(out, ron_str("account_total"),
                                   ops->account_total);
    }

    if (ops->nonce_strict) {
        ron_json_put_member_bool(out, ron_str("nonce_strict"), true);
    }

    ron_json_put_key(out, ron_str("request"));
    ron_buf_put(out, body.data, body.len);
    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


static ron_status_t
ron_api_batch(ron_api_t *api, const ron_json_t *root,
    const ron_api_limits_t *limits, ron_api_error_t *err)
{
    uint32_t           i;
    ron_status_t       rc;
    ron_api_batch_t    dto;
    ron_api_wallet_t   op;
    ron_json_error_t   json;
    const ron_json_t  *object, *name;

    rc = ron_json_bind(root, ron_api_batch_fields,
                       ron_array_n(ron_api_batch_fields), &dto, NULL, &json);
    if (rc != RON_OK) {
        return ron_api_json_error(rc, &json, err);
    }

    rc = ron_api_room(api, ron_json_n(dto.ops));
    if (rc != RON_OK) {
        return rc;
    }

    api->unit.atomic = dto.atomic;
    i = 0;

    for (object = ron_json_child(dto.ops);
         object != NULL;
         object = ron_json_next(object))
    {
        name = ron_json_get(object, ron_str("op"));

        if (name == NULL || ron_json_kind(name) != RON_JSON_STRING
            || !ron_api_wallet_find(ron_json_text(name), &op)
            || op == RON_API_BATCH)
        {
            return ron_api_refuse(err, RON_REASON_UNKNOWN_KIND,
                                  "not an operation", "op");
        }

        rc = ron_api_op(op, object, limits, true, &api->ops[i++], err);
        if (rc != RON_OK) {
            return rc;
        }
    }

    return RON_OK;
}


static ron_status_t
ron_api_op(ron_api_wallet_t op, const ron_json_t *object,
    const ron_api_limits_t *limits, bool named, ron_entry_t *e,
    ron_api_error_t *err)
{
    uint64_t          present, known;
    ron_status_t      rc;
    ron_api_op_t      dto;
    ron_json_error_t  json;

    rc = ron_json_bind(object, ron_api_op_fields,
                       ron_array_n(ron_api_op_fields), &dto, &present, &json);
    if (rc != RON_OK) {
        return ron_api_json_error(rc, &json, err);
    }

    known = ron_api_ops[op].needs | ron_api_ops[op].allows
            | (named ? RON_API_M_OP : 0);

    if ((present & ~known) || (ron_api_ops[op].needs & ~present)) {
        return ron_api_op_members(present & ~known,
                                  ron_api_ops[op].needs & ~present, err);
    }

    rc = ron_api_op_check(op, &dto, limits, err);
    if (rc != RON_OK) {
        return rc;
    }

    return ron_api_op_entry(op, &dto, present, e, err);
}


/* The first member, in the order of the table, that is one too many or few. */
static ron_status_t
ron_api_op_members(uint64_t unknown, uint64_t missing, ron_api_error_t *err)
{
    char       name[RON_JSON_NAME_MAX + 1];
    size_t     i;
    ron_str_t  s;

    for (i = 0; !((unknown | missing) >> i & 1); i++) { /* void */ }

    s = ron_api_op_fields[i].name;

    memcpy(name, s.data, s.len);
    name[s.len] = '\0';

    return ron_api_refuse(err, RON_REASON_MALFORMED,
                          unknown >> i & 1 ? "unknown member"
                                           : "missing member", name);
}


static ron_status_t
ron_api_op_check(ron_api_wallet_t op, const ron_api_op_t *dto,
    const ron_api_limits_t *limits, ron_api_error_t *err)
{
    uint32_t  i;

    if (ron_api_ops[op].needs & RON_API_M_ASSET) {
        for (i = 0; i < limits->asset_n; i++) {
            if (ron_str_eq(dto->asset, limits->asset[i])) {
                break;
            }
        }

        if (i == limits->asset_n) {
            return ron_api_refuse(err, RON_REASON_MALFORMED,
                                  "no such asset here", "asset");
        }
    }

    if (dto->amount > limits->op_max) {
        return ron_api_refuse(err, RON_REASON_LIMITS,
                              "more than one operation may move",
                              "amount_minor");
    }

    if (dto->from.len != 0 && ron_str_eq(dto->from, dto->to)) {
        return ron_api_refuse(err, RON_REASON_MALFORMED,
                              ron_detail_text(RON_DETAIL_ACCOUNTS), "to");
    }

    return RON_OK;
}


static ron_status_t
ron_api_op_entry(ron_api_wallet_t op, const ron_api_op_t *dto,
    uint64_t present, ron_entry_t *e, ron_api_error_t *err)
{
    e->kind = ron_api_ops[op].kind;

    if (present & RON_API_M_HOLD) {
        if (ron_txid_parse(dto->hold, &e->time_ms, &e->ledger_id, &e->ref)
                != RON_OK
            || e->ref == 0)
        {
            return ron_api_refuse(err, RON_REASON_MALFORMED,
                                  "not a transaction id", "hold");
        }

        e->fields |= RON_F_REF | RON_F_TXID;
    }

    if (present & RON_API_M_ASSET) {
        e->fields |= RON_F_ASSET;
        e->asset = dto->asset;
    }

    if (present & RON_API_M_AMOUNT) {
        e->fields |= RON_F_AMOUNT;
        e->amount = dto->amount;
    }

    /* an issue's account is the one that gets it */

    if (op == RON_API_ISSUE) {
        e->fields |= RON_F_ACCOUNT;
        e->account = dto->to;

    } else {
        if (present & RON_API_M_FROM) {
            e->fields |= RON_F_ACCOUNT;
            e->account = dto->from;
        }

        if (present & RON_API_M_TO) {
            e->fields |= RON_F_TO;
            e->to = dto->to;
        }
    }

    if (present & RON_API_M_NONCE) {
        e->fields |= RON_F_NONCE;
        e->nonce = dto->nonce;
    }

    if (present & RON_API_M_EXPIRES) {
        e->fields |= RON_F_EXPIRY;
        e->expiry_ms = dto->expires_in * 1000;
    }

    if (present & RON_API_M_MEMO) {
        e->fields |= RON_F_MEMO;
        ron_blake3(dto->memo.data, dto->memo.len, &e->memo);
    }

    return RON_OK;
}


ron_status_t
ron_api_ingest_parse(ron_api_t *api, ron_str_t body, ron_api_error_t *err)
{
    uint32_t           i;
    ron_status_t       rc;
    ron_api_ingest_t   dto;
    ron_json_error_t   json;
    const ron_json_t  *root, *object;

    rc = ron_api_json(api, body, &root, err);
    if (rc != RON_OK) {
        return rc;
    }

    rc = ron_json_bind(root, ron_api_ingest_fields,
                       ron_array_n(ron_api_ingest_fields), &dto, NULL, &json);
    if (rc != RON_OK) {
        return ron_api_json_error(rc, &json, err);
    }

    rc = ron_api_room(api, ron_json_n(dto.batch));
    if (rc != RON_OK) {
        return rc;
    }

    i = 0;

    for (object = ron_json_child(dto.batch);
         object != NULL;
         object = ron_json_next(object))
    {
        rc = ron_api_entry(object, &api->ops[i++], err);
        if (rc != RON_OK) {
            return rc;
        }
    }

    api->unit.type = RON_UNIT_INGEST;
    api->unit.atomic = dto.atomic;
    api->unit.key = dto.idem_id;

    return RON_OK;
}


ron_status_t
ron_api_entry_parse(ron_api_t *api, ron_str_t body, ron_api_error_t *err)
{
    ron_status_t       rc;
    const ron_json_t  *root;

    rc = ron_api_json(api, body, &root, err);
    if (rc != RON_OK) {
        return rc;
    }

    rc = ron_api_room(api, 1);
    if (rc != RON_OK) {
        return rc;
    }

    rc = ron_api_entry(root, &api->ops[0], err);
    if (rc != RON_OK) {
        return rc;
    }

    api->unit.type = RON_UNIT_INGEST;

    return RON_OK;
}


static ron_status_t
ron_api_entry(const ron_json_t *object, ron_entry_t *e, ron_api_error_t *err)
{
    size_t            len;
    uint64_t          present;
    ron_status_t      rc;
    ron_api_entry_t   dto;
    ron_json_error_t  json;

    rc = ron_json_bind(object, ron_api_entry_fields,
                       ron_array_n(ron_api_entry_fields), &dto, &present,
                       &json);
    if (rc != RON_OK) {
        return ron_api_json_error(rc, &json, err);
    }

    e->kind = ron_kind_parse(dto.kind);

    if (e->kind == RON_KIND_NONE) {
        return ron_api_refuse(err, RON_REASON_UNKNOWN_KIND, NULL, "kind");
    }

    if (ron_base64_decode(dto.nonce, e->nonce16, RON_NONCE_LEN, &len)
            != RON_OK
        || len != RON_NONCE_LEN)
    {
        return ron_api_refuse(err, RON_REASON_MALFORMED,
                              "not the base64 of 16 bytes", "nonce");
    }

    e->fields = RON_F_ID | RON_F_SOURCE | RON_F_ACCOUNT | RON_F_ASSET
                | RON_F_AMOUNT | RON_F_NONCE16;
    e->id = dto.id;
    e->source_ms = dto.ts;
    e->account = dto.account;
    e->asset = (present & RON_API_E_ASSET) ? dto.asset : ron_str("ron");
    e->amount = dto.amount;

    if (present & RON_API_E_TO) {
        e->fields |= RON_F_TO;
        e->to = dto.to;
    }

    if (present & RON_API_E_REF) {
        e->fields |= RON_F_REF;
        e->ref = dto.ref;
    }

    if (present & RON_API_E_CAPREF) {
        e->fields |= RON_F_CAPREF;
        e->capref = dto.capref;
    }

    if (present & RON_API_E_EXPIRY) {
        e->fields |= RON_F_EXPIRY;
        e->expiry_ms = dto.expiry;
    }

    if (dto.v != 1) {
        e->fields |= RON_F_SCHEMA;
        e->schema = (uint32_t) dto.v;
    }

    return RON_OK;
}


ron_status_t
ron_api_safe_mode_parse(ron_api_t *api, ron_str_t body, bool *enter,
    ron_api_error_t *err)
{
    ron_status_t       rc;
    ron_api_safe_t     dto;
    ron_json_error_t   json;
    const ron_json_t  *root;

    *enter = false;

    rc = ron_api_json(api, body, &root, err);
    if (rc != RON_OK) {
        return rc;
    }

    rc = ron_json_bind(root, ron_api_safe_fields,
                       ron_array_n(ron_api_safe_fields), &dto, NULL, &json);
    if (rc != RON_OK) {
        return ron_api_json_error(rc, &json, err);
    }

    *enter = dto.enter;

    return RON_OK;
}


/* No control characters; valid UTF-8 it is already. */
static bool
ron_api_memo_valid(ron_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        if (s.data[i] < 0x20 || s.data[i] == 0x7f) {
            return false;
        }
    }

    return true;
}


/* Eight bytes at a time, the last ones twice: keys and ids come in headers. */
static bool
ron_api_visible(ron_str_t s)
{
    size_t    i;
    uint64_t  w, bad;

    if (s.len < 8) {
        for (i = 0; i < s.len; i++) {
            if (s.data[i] < 0x21 || s.data[i] > 0x7e) {
                return false;
            }
        }

        return true;
    }

    memcpy(&w, s.data + s.len - 8, 8);
    bad = ron_api_invisible(w);

    for (i = 0; i + 8 < s.len; i += 8) {
        memcpy(&w, s.data + i, 8);
        bad |= ron_api_invisible(w);
    }

    return bad == 0;
}


/* Not zero: some byte of the word is no visible character of ASCII. */
static inline uint64_t
ron_api_invisible(uint64_t w)
{
    static const uint64_t  ones = UINT64_C(0x0101010101010101);
    static const uint64_t  tops = UINT64_C(0x8080808080808080);

    /* under the bound a byte borrows, with all but its top bit it carries */

    return (w | ((w - ones * 0x21) & ~w) | (w + ones)) & tops;
}


ron_status_t
ron_api_key(ron_str_t header, ron_str_t *key)
{
    ron_str_t  s;

    *key = ron_null_str;
    s = header;

    if (s.len >= 2 && s.data[0] == '"' && s.data[s.len - 1] == '"') {
        s.data++;
        s.len -= 2;
    }

    /* a quote or backslash inside could be read in two ways */

    if (s.len == 0 || s.len > RON_API_KEY_MAX || !ron_api_visible(s)
        || memchr(s.data, '"', s.len) != NULL
        || memchr(s.data, '\\', s.len) != NULL)
    {
        return RON_EINVAL;
    }

    *key = s;

    return RON_OK;
}


bool
ron_api_corr_valid(ron_str_t s)
{
    return s.len >= 1 && s.len <= RON_API_CORR_MAX && ron_api_visible(s);
}
