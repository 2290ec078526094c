
/*
 * Bodies to units and outcomes to bodies.  What is accepted is a unit that
 * the wire takes and whose every value is in bounds; what a capability allows
 * is what its caveats say; every answer and every problem is JSON.
 */

#include "ron_fuzz.h"
#include "ron_api.h"
#include "ron_codec.h"


#define OPS_MAX  2000


static ron_api_t         api;
static ron_buf_t         out, room;
static ron_cap_t         cap;
static ron_entry_t       ops[OPS_MAX];
static ron_result_t      results[64];
static ron_json_doc_t    doc;
static ron_api_limits_t  limits;


static void
setup(void)
{
    ron_api_init(&api);
    ron_buf_init(&out, 0);
    ron_buf_init(&room, 0);
    ron_json_doc_init(&doc, 0);
    ron_api_limits_init(&limits);
    ron_cap_init(&cap);
    memcpy(cap.kid, "dev", 4);
    memcpy(cap.id, "c1", 3);

    RON_ASSERT(ron_cap_caveat_add(&cap, ron_str("account = alice")) == RON_OK);
    RON_ASSERT(ron_cap_caveat_add(&cap, ron_str("asset = ron")) == RON_OK);
    RON_ASSERT(ron_cap_caveat_add(&cap, ron_str("max_amount = 100"))
               == RON_OK);
    RON_ASSERT(ron_cap_caveat_add(&cap, ron_str("act = transfer hold"))
               == RON_OK);
}


static void
is_json(bool admin)
{
    ron_json_error_t   err;
    const ron_json_t  *root;

    RON_ASSERT(ron_buf_status(&out) == RON_OK);
    RON_ASSERT(ron_utf8_check(ron_buf_str(&out), NULL) == RON_OK);

    /* Names in an answer to an operator are the helper's, and so distinct. */

    if (ron_json_parse(&doc, ron_buf_str(&out), NULL, &root, &err) != RON_OK) {
        RON_ASSERT(strcmp(err.reason, "NUL in a string") == 0
                   || (admin && strcmp(err.reason, "duplicate member") == 0));
    }
}


static void
is_problem(const ron_api_error_t *err)
{
    uint16_t  status;

    status = ron_api_status(err);
    RON_ASSERT(err->reason != RON_REASON_OK && err->reason < RON_REASON_N);
    RON_ASSERT(status >= 400 && status <= 599);
    RON_ASSERT(strlen(err->field) <= RON_JSON_NAME_MAX);
    ron_buf_reset(&out);
    RON_ASSERT(ron_api_problem(&out, err, ron_str("corr")) == RON_OK);
    is_json(false);
}


static void
allowed(void)
{
    bool              unknown;
    unsigned          act;
    ron_api_error_t   err;
    const ron_entry_t *e;

    ron_buf_reset(&room);
    memset(&err, 0, sizeof(err));

    if (ron_api_allow(&cap, RON_CAP_SVC_WALLET | RON_CAP_SVC_LEDGER,
                      &api.unit, &room, &unknown, &err) != RON_OK)
    {
        is_problem(&err);
        return;
    }

    RON_ASSERT(ron_str_eq(api.unit.cap, ron_str("dev:c1")));

    for (uint32_t i = 0; i < api.unit.op_n; i++) {
        e = &api.unit.ops[i];
        act = ron_api_kind_act(e->kind);
        RON_ASSERT(act == RON_CAP_ACT_TRANSFER || act == RON_CAP_ACT_HOLD);

        if (!(e->fields & RON_F_ACCOUNT)) {
            RON_ASSERT(unknown && (e->fields & RON_F_REF));

        } else {
            RON_ASSERT(ron_str_eq(e->account, ron_str("alice")));
        }

        RON_ASSERT(!(e->fields & RON_F_ASSET)
                   || ron_str_eq(e->asset, ron_str("ron")));
        RON_ASSERT(!(e->fields & RON_F_AMOUNT) || e->amount <= 100);
    }
}


static void
accepted(bool wallet)
{
    bool                found;
    ron_unit_t          back;
    ron_hash_t          a, b;
    const ron_entry_t  *e;

    RON_ASSERT(api.unit.op_n >= 1 && api.unit.op_n <= RON_UNIT_OPS_MAX);
    RON_ASSERT(api.unit.op_n <= OPS_MAX);

    for (uint32_t i = 0; i < api.unit.op_n; i++) {
        e = &api.unit.ops[i];
        RON_ASSERT(e->kind > RON_KIND_NONE && e->kind < RON_KIND_N);
        RON_ASSERT(ron_entry_values_valid(e));
        RON_ASSERT(!(e->fields & RON_F_SOURCE) || !wallet);

        if (!wallet) {
            RON_ASSERT((e->fields & (RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE))
                       == (RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE));
            continue;
        }

        RON_ASSERT(!(e->fields & RON_F_AMOUNT) || e->amount <= limits.op_max);
        found = !(e->fields & RON_F_ASSET);

        for (uint32_t k = 0; k < limits.asset_n; k++) {
            found = found || ron_str_eq(e->asset, limits.asset[k]);
        }

        RON_ASSERT(found);
    }

    ron_buf_reset(&out);
    RON_ASSERT(ron_unit_encode(&api.unit, &out) == RON_OK);
    RON_ASSERT(ron_unit_decode(ron_buf_str(&out), &back, ops, OPS_MAX)
               == RON_OK);
    RON_ASSERT(ron_unit_digest(&api.unit, &room, &a) == RON_OK);
    RON_ASSERT(ron_unit_digest(&back, &room, &b) == RON_OK);
    RON_ASSERT(ron_hash_eq(&a, &b) && ron_str_eq(back.key, api.unit.key));

    allowed();
}


/* In an envelope it is the same unit. */
static void
enveloped(ron_api_wallet_t op, ron_str_t body, ron_str_t key)
{
    ron_hash_t       a, b;
    ron_api_ops_t    ops_in, ops_out;
    ron_api_error_t  err;

    RON_ASSERT(ron_unit_digest(&api.unit, &room, &a) == RON_OK);

    memset(&ops_in, 0, sizeof(ops_in));
    ops_in.op = op;
    ops_in.key = key;
    ops_in.has_match = true;
    ops_in.match = body.len;
    ops_in.account_daily = limits.account_daily;

    ron_buf_reset(&out);
    RON_ASSERT(ron_api_ops_put(&out, &ops_in, body) == RON_OK);

    if (out.len > RON_JSON_LEN) {
        return;
    }

    RON_ASSERT(ron_api_ops_parse(&api, ron_buf_str(&out), &limits, &ops_out,
                                 &err) == RON_OK);
    RON_ASSERT(ops_out.op == op && ron_str_eq(ops_out.key, key));
    RON_ASSERT(api.unit.has_match && api.unit.match == body.len);
    RON_ASSERT(ron_unit_digest(&api.unit, &room, &b) == RON_OK);
    RON_ASSERT(ron_hash_eq(&a, &b));
}


static void
fuzz_wallet(fuzz_t *f)
{
    uint8_t           n;
    ron_str_t         key, body;
    ron_api_ops_t     ops_out;
    ron_api_error_t   err;
    ron_api_wallet_t  op;

    memset(&err, 0, sizeof(err));
    n = fuzz_u8(f);
    op = (ron_api_wallet_t) (n % RON_API_WALLET_N);
    key = ron_str("key");
    body = fuzz_rest(f);

    if (n >= 0x80) {
        if (ron_api_ops_parse(&api, body, &limits, &ops_out, &err) != RON_OK) {
            is_problem(&err);

        } else {
            RON_ASSERT(ron_str_eq(api.unit.key, ops_out.key));
            accepted(true);
        }

        return;
    }

    if (ron_api_wallet_parse(&api, op, body, key, &limits, &err) != RON_OK) {
        is_problem(&err);
        return;
    }

    RON_ASSERT(ron_str_eq(api.unit.key, key));
    RON_ASSERT(api.unit.type == (op == RON_API_BATCH ? RON_UNIT_BATCH
                                                     : RON_UNIT_WALLET));
    accepted(true);
    enveloped(op, body, key);
}


static void
fuzz_ingest(fuzz_t *f)
{
    ron_api_error_t  err;

    memset(&err, 0, sizeof(err));

    if (ron_api_ingest_parse(&api, fuzz_rest(f), &err) != RON_OK) {
        is_problem(&err);
        return;
    }

    RON_ASSERT(api.unit.type == RON_UNIT_INGEST);
    accepted(false);
}


static void
fuzz_headers(ron_str_t s)
{
    bool             enter;
    size_t           n;
    uint8_t          space[4096];
    uint64_t         v;
    ron_str_t        key, again;
    ron_api_arg_t    args[16];
    ron_api_error_t  err;

    memset(&err, 0, sizeof(err));
    s.len = ron_min(s.len, sizeof(space));

    if (ron_api_key(s, &key) == RON_OK) {
        RON_ASSERT(key.len >= 1 && key.len <= RON_API_KEY_MAX);
        RON_ASSERT(ron_api_key(key, &again) == RON_OK
                   && ron_str_eq(key, again));
        RON_ASSERT(ron_api_corr_valid(key));
    }

    if (ron_api_u64(s, &v) == RON_OK) {
        RON_ASSERT(ron_api_match(s, &v) == RON_OK);
    }

    (void) ron_api_match(s, &v);

    if (ron_api_if_match(s, &enter, &v) == RON_OK) {
        RON_ASSERT(enter == ron_str_eq(s, ron_str("*")));
    }

    n = ron_array_n(args);

    if (ron_api_query(s, space, args, &n) == RON_OK) {
        RON_ASSERT(n <= ron_array_n(args));

        for (size_t i = 0; i < n; i++) {
            for (size_t k = i + 1; k < n; k++) {
                RON_ASSERT(!ron_str_eq(args[i].name, args[k].name));
            }

            RON_ASSERT(ron_str_eq(ron_api_arg(args, n, args[i].name),
                                  args[i].value));
        }
    }

    if (ron_api_safe_mode_parse(&api, s, &enter, &err) != RON_OK) {
        is_problem(&err);
    }
}


/* Names are words of the helper and are put as they are. */
static bool
plain(const ron_msg_admin_t *admin)
{
    ron_str_t  key;

    for (uint32_t i = 0; i < admin->pair_n; i++) {
        key = admin->pair[i].key;

        for (size_t k = 0; k < key.len; k++) {
            if (key.data[k] < 0x20 || key.data[k] == '"'
                || key.data[k] == '\\')
            {
                return false;
            }
        }
    }

    return true;
}


static void
fuzz_answers(ron_str_t s)
{
    bool               of_batch;
    uint16_t           status;
    ron_entry_t        e;
    ron_outcome_t      o;
    ron_msg_batch_t    batch;
    ron_msg_admin_t    admin;
    ron_msg_lookup_t   lookup;
    ron_api_error_t    err;

    memset(&err, 0, sizeof(err));

    if (ron_msg_outcome_get(s, &batch, &o, results, ron_array_n(results))
        == RON_OK && o.result_n > 0)
    {
        ron_buf_reset(&out);
        if (ron_api_wallet_answer(&out, &o, &e, &err) == RON_OK) {
            is_json(false);
        }

        ron_buf_reset(&out);
        if (ron_api_batch_answer(&out, &o, NULL, &status, &err) == RON_OK) {
            RON_ASSERT(status == 200 || status == 207);
            is_json(false);
        }

        ron_buf_reset(&out);
        if (ron_api_ingest_answer(&out, &batch, &o, &status, &err) == RON_OK) {
            RON_ASSERT(status == 200 || status == 207);
            is_json(false);
        }
    }

    if (ron_msg_lookup_get(s, &lookup) == RON_OK) {
        of_batch = lookup.batch
                   && ron_outcome_decode(lookup.entry, &o, results,
                                         ron_array_n(results)) == RON_OK;

        ron_buf_reset(&out);
        if (ron_api_outcome_answer(&out, &lookup, of_batch ? &o : NULL, true)
            == RON_OK)
        {
            is_json(false);
        }
    }

    if (ron_msg_admin_get(s, &admin) == RON_OK) {
        ron_buf_reset(&out);
        if (ron_api_admin_answer(&out, &admin, &err) == RON_OK
            && ron_utf8_check(s, NULL) == RON_OK && plain(&admin))
        {
            is_json(true);
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t   f = { data, data + len };
    uint8_t  what;

    if (limits.asset_n == 0) {
        setup();
    }

    what = fuzz_u8(&f);

    switch (what % 4) {
    case 0:
        fuzz_wallet(&f);
        break;
    case 1:
        fuzz_ingest(&f);
        break;
    case 2:
        fuzz_headers(fuzz_rest(&f));
        break;
    default:
        fuzz_answers(fuzz_rest(&f));
    }

    return 0;
}
