
/*
 * The HTTP contract without HTTP: bodies, headers, queries, answers.
 */

#include "ron_amount.h"
#include "ron_api.h"
#include "ron_receipt.h"
#include "ron_test.h"


static ron_api_t         api;
static ron_api_limits_t  limits;
static ron_api_error_t   err;


static ron_status_t
wallet(ron_api_wallet_t op, const char *body)
{
    memset(&err, 0, sizeof(err));

    return ron_api_wallet_parse(&api, op, ron_cstr(body), ron_str("key"),
                                &limits, &err);
}


static ron_status_t
ingest(const char *body)
{
    memset(&err, 0, sizeof(err));

    return ron_api_ingest_parse(&api, ron_cstr(body), &err);
}


static void
test_wallet(void)
{
    char         memo[600];
    ron_entry_t  *e;

    is_status(wallet(RON_API_TRANSFER,
                     "{\"from\":\"a\",\"to\":\"b\",\"asset\":\"ron\","
                     "\"amount_minor\":\"12\",\"nonce\":7}"),
              RON_OK, "a transfer");

    e = &api.unit.ops[0];

    is_u64(api.unit.type, RON_UNIT_WALLET, "is one wallet operation");
    is_u64(api.unit.op_n, 1, "one");
    is_u64(e->kind, RON_KIND_TRANSFER, "kind");
    ok(ron_str_eq(e->account, ron_str("a")), "from");
    ok(ron_str_eq(e->to, ron_str("b")), "to");
    is_u64(e->amount, 12, "amount");
    is_u64(e->nonce, 7, "nonce");
    is_u64(e->fields, RON_F_ACCOUNT | RON_F_TO | RON_F_ASSET | RON_F_AMOUNT
                      | RON_F_NONCE, "and nothing else");
    ok(ron_str_eq(api.unit.key, ron_str("key")), "key");

    is_status(wallet(RON_API_ISSUE,
                     "{\"to\":\"b\",\"asset\":\"roc\","
                     "\"amount_minor\":\"1\",\"memo\":\"hello\"}"),
              RON_OK, "an issue");

    e = &api.unit.ops[0];

    ok(ron_str_eq(e->account, ron_str("b")), "its account is who gets it");
    ok((e->fields & (RON_F_TO | RON_F_NONCE)) == 0, "no to, no nonce");
    ok((e->fields & RON_F_MEMO) != 0, "the memo's hash");

    is_status(wallet(RON_API_HOLD,
                     "{\"from\":\"a\",\"to\":\"b\",\"asset\":\"ron\","
                     "\"amount_minor\":\"1\",\"nonce\":1,"
                     "\"expires_in\":60}"),
              RON_OK, "a hold");
    is_u64(api.unit.ops[0].expiry_ms, 60000, "expires in milliseconds");

    is_status(wallet(RON_API_CAPTURE,
                     "{\"hold\":\"tx_00000000000000000000000001\","
                     "\"amount_minor\":\"1\"}"), RON_OK, "a capture");
    is_u64(api.unit.ops[0].ref, 1, "refers to the seq of its hold");
    is_status(wallet(RON_API_CAPTURE,
                     "{\"hold\":\"nothing\",\"amount_minor\":\"1\"}"),
              RON_EINVAL, "a hold that is no txid");
    is_str(err.field, "hold", "is named");

    is_status(wallet(RON_API_TRANSFER,
                     "{\"from\":\"a\",\"to\":\"b\",\"asset\":\"gold\","
                     "\"amount_minor\":\"12\",\"nonce\":7}"),
              RON_EINVAL, "an asset that is not there");
    is_str(err.field, "asset", "is named");

    is_status(wallet(RON_API_TRANSFER,
                     "{\"from\":\"a\",\"to\":\"b\",\"asset\":\"ron\","
                     "\"amount_minor\":\"100000000000000000001\","
                     "\"nonce\":7}"),
              RON_EINVAL, "more than an operation may move");
    is_u64(ron_api_status(&err), 403, "is a limit");

    is_status(wallet(RON_API_TRANSFER,
                     "{\"from\":\"a\",\"to\":\"b\",\"asset\":\"ron\","
                     "\"amount_minor\":\"100000000000000000000\","
                     "\"nonce\":9007199254740991}"),
              RON_OK, "as much as it may, and the last nonce");
    is_status(wallet(RON_API_TRANSFER,
                     "{\"from\":\"a\",\"to\":\"b\",\"asset\":\"ron\","
                     "\"amount_minor\":\"1\","
                     "\"nonce\":9007199254740992}"),
              RON_EINVAL, "one nonce more");

    is_status(wallet(RON_API_RELEASE,
                     "{\"hold\":\"tx_00000000000000000000000001\","
                     "\"nonce\":1}"),
              RON_EINVAL, "a member of another operation");
    is_str(err.field, "nonce", "is named");

    snprintf(memo, sizeof(memo), "{\"to\":\"b\",\"asset\":\"ron\","
             "\"amount_minor\":\"1\",\"memo\":\"%0256d\"}", 0);
    is_status(wallet(RON_API_ISSUE, memo), RON_OK, "a memo of 256 bytes");
    snprintf(memo, sizeof(memo), "{\"to\":\"b\",\"asset\":\"ron\","
             "\"amount_minor\":\"1\",\"memo\":\"%0257d\"}", 0);
    is_status(wallet(RON_API_ISSUE, memo), RON_EINVAL, "of 257");
    is_status(wallet(RON_API_ISSUE, "{\"to\":\"b\",\"asset\":\"ron\","
                     "\"amount_minor\":\"1\",\"memo\":\"a\\nb\"}"),
              RON_EINVAL, "with a control character");
}


static void
test_batch(void)
{
    is_status(wallet(RON_API_BATCH,
                     "{\"atomic\":true,\"ops\":["
                     "{\"op\":\"transfer\",\"from\":\"a\",\"to\":\"b\","
                     "\"asset\":\"ron\",\"amount_minor\":\"1\",\"nonce\":1},"
                     "{\"op\":\"burn\",\"from\":\"a\","
                     "\"asset\":\"ron\",\"amount_minor\":\"1\","
                     "\"nonce\":2}]}"),
              RON_OK, "a batch");
    is_u64(api.unit.type, RON_UNIT_BATCH, "is a batch");
    is_u64(api.unit.op_n, 2, "of two");
    ok(api.unit.atomic, "atomic");
    is_u64(api.unit.ops[1].kind, RON_KIND_BURN, "in their order");

    is_status(wallet(RON_API_BATCH, "{\"ops\":[]}"), RON_EINVAL,
              "an empty batch");
    is_status(wallet(RON_API_BATCH, "{\"ops\":[{\"op\":\"batch\","
                     "\"ops\":[]}]}"), RON_EINVAL, "a batch in a batch");
    is_status(wallet(RON_API_BATCH, "{\"ops\":[{\"from\":\"a\"}]}"),
              RON_EINVAL, "an operation that does not say what");
    is_str(err.field, "op", "is named");
}


static void
test_ingest(void)
{
    ron_entry_t  *e;

    is_status(ingest("{\"batch\":[{\"id\":\"i\",\"ts\":5,\"kind\":\"Mint\","
                     "\"account\":\"a\",\"amount\":7,"
                     "\"nonce\":\"AAAAAAAAAAAAAAAAAAAAAA==\",\"v\":1}],"
                     "\"idem_id\":\"run\"}"), RON_OK, "an entry");

    e = &api.unit.ops[0];

    is_u64(api.unit.type, RON_UNIT_INGEST, "is ingested");
    is_u64(e->kind, RON_KIND_MINT, "kind");
    is_u64(e->amount, 7, "an amount as an integer");
    is_u64(e->source_ms, 5, "its time");
    ok(ron_str_eq(e->asset, ron_str("ron")), "the default asset");
    ok((e->fields & RON_F_SCHEMA) == 0, "version 1 needs no field");
    ok(ron_str_eq(api.unit.key, ron_str("run")), "idem_id is its key");

    is_status(ingest("{\"batch\":[{\"id\":\"i\",\"ts\":5,\"kind\":\"Hope\","
                     "\"account\":\"a\",\"amount\":\"7\","
                     "\"nonce\":\"AAAAAAAAAAAAAAAAAAAAAA==\",\"v\":1}]}"),
              RON_EINVAL, "a kind that is none");
    is_u64(err.reason, RON_REASON_UNKNOWN_KIND, "is said to be");

    is_status(ingest("{\"batch\":[{\"id\":\"i\",\"ts\":5,\"kind\":\"Mint\","
                     "\"account\":\"a\",\"amount\":\"7\","
                     "\"nonce\":\"AAAA\",\"v\":1}]}"),
              RON_EINVAL, "a nonce of three bytes");
    is_str(err.field, "nonce", "is named");

    is_status(ingest("{\"batch\":[{\"id\":\"i\",\"ts\":5,\"kind\":\"Mint\","
                     "\"account\":\"a\",\"amount\":\"7\",\"v\":1}]}"),
              RON_EINVAL, "no nonce");
}


/* RFC 9110's forms; what the header is, and what comes of it. */

static void
test_if_match(void)
{
    bool          any;
    size_t        i;
    uint64_t      v;
    ron_status_t  rc;

    static const struct {
        const char    *text;
        ron_status_t   rc;
        uint64_t       version;
    } cases[] = {
        { "\"12\"", RON_OK, 12 },
        { "12", RON_OK, 12 },
        { "\"0\"", RON_OK, 0 },
        { "\"12\",\"12\"", RON_OK, 12 },
        { "\"12\" , W/\"3\"\t,\"a,b\"", RON_OK, 12 },
        { " ,, \"12\",", RON_OK, 12 },
        { "\"18446744073709551615\"", RON_OK, UINT64_MAX },
        { "\"18446744073709551616\"", RON_ENOTFOUND, 0 },
        { "W/\"12\"", RON_ENOTFOUND, 0 },
        { "\"\"", RON_ENOTFOUND, 0 },
        { "\"012\"", RON_ENOTFOUND, 0 },
        { "\"\xc3\xa9\"", RON_ENOTFOUND, 0 },
        { "\"12\",\"13\"", RON_ERANGE, 0 },
        { "", RON_EINVAL, 0 },
        { ",", RON_EINVAL, 0 },
        { "\"", RON_EINVAL, 0 },
        { "W/", RON_EINVAL, 0 },
        { "W/12", RON_EINVAL, 0 },
        { "w/\"12\"", RON_EINVAL, 0 },
        { "\"12", RON_EINVAL, 0 },
        { "12\"", RON_EINVAL, 0 },
        { "\"12\"\"12\"", RON_EINVAL, 0 },
        { "\"12\" \"12\"", RON_EINVAL, 0 },
        { "\"1 2\"", RON_EINVAL, 0 },
        { "\"1\x7f\"", RON_EINVAL, 0 },
        { "12,12", RON_EINVAL, 0 },
        { "*,\"12\"", RON_EINVAL, 0 },
        { "\"12\",*", RON_EINVAL, 0 }
    };

    for (i = 0; i < ron_array_n(cases); i++) {
        rc = ron_api_if_match(ron_cstr(cases[i].text), &any, &v);
        ok(rc == cases[i].rc && !any
           && (rc != RON_OK || v == cases[i].version),
           "If-Match: %s", cases[i].text);
    }

    ok(ron_api_if_match(ron_str("*"), &any, &v) == RON_OK && any,
       "If-Match: *");
}


/* Every byte, wherever it is in texts of every length. */
static void
test_visible(void)
{
    bool       good;
    size_t     len, at, wrong;
    uint8_t    buf[64];
    unsigned   byte;
    ron_str_t  s, key;

    wrong = 0;

    for (len = 1; len <= sizeof(buf); len++) {
        for (at = 0; at < len; at++) {
            for (byte = 0; byte < 256; byte++) {
                memset(buf, byte & 1 ? '!' : '~', sizeof(buf));
                buf[at] = (uint8_t) byte;

                s = (ron_str_t) { len, buf };
                good = byte >= 0x21 && byte <= 0x7e;

                wrong += ron_api_corr_valid(s) != good;

                good = good && byte != '"' && byte != '\\';

                wrong += (ron_api_key(s, &key) == RON_OK) != good;
            }
        }
    }

    is_u64(wrong, 0, "keys and correlation ids are visible characters");
}


static void
test_headers(void)
{
    char       buf[80];
    uint64_t   v;
    ron_str_t  key;

    is_status(ron_api_key(ron_str("abc"), &key), RON_OK, "a bare key");
    is_status(ron_api_key(ron_str("\"abc\""), &key), RON_OK, "a quoted key");
    is_u64(key.len, 3, "without its quotes");
    is_status(ron_api_key(ron_str(""), &key), RON_EINVAL, "no key");
    is_status(ron_api_key(ron_str("\"\""), &key), RON_EINVAL, "quotes only");
    is_status(ron_api_key(ron_str("\""), &key), RON_EINVAL, "one quote");
    is_status(ron_api_key(ron_str("a b"), &key), RON_EINVAL, "a space");
    is_status(ron_api_key(ron_str("a\"b"), &key), RON_EINVAL, "one inside");

    memset(buf, 'x', sizeof(buf));
    is_status(ron_api_key((ron_str_t) { 64, (uint8_t *) buf }, &key), RON_OK,
              "64 characters");
    is_status(ron_api_key((ron_str_t) { 65, (uint8_t *) buf }, &key),
              RON_EINVAL, "65");

    is_status(ron_api_match(ron_str("\"12\""), &v), RON_OK, "If-Match");
    is_u64(v, 12, "its version");
    is_status(ron_api_match(ron_str("W/\"12\""), &v), RON_EINVAL,
              "a weak tag");
    is_status(ron_api_match(ron_str("*"), &v), RON_EINVAL, "any");
    test_if_match();
    is_status(ron_api_u64(ron_str("18446744073709551615"), &v), RON_OK,
              "2^64 - 1");
    is_status(ron_api_u64(ron_str("18446744073709551616"), &v), RON_ERANGE,
              "2^64");
    is_status(ron_api_u64(ron_str("01"), &v), RON_EINVAL, "a leading zero");

    ok(ron_api_corr_valid(ron_str("a-b")), "a correlation id");
    ok(!ron_api_corr_valid(ron_str("a b")), "with a space");
    ok(!ron_api_corr_valid(ron_str("")), "and empty");
    test_visible();
}


static void
test_query(void)
{
    size_t         n;
    uint8_t        room[64];
    ron_api_arg_t  args[2];

    n = 2;
    is_status(ron_api_query(ron_str("a=1&b=x%2Fy+z"), room, args, &n),
              RON_OK, "a query");
    is_u64(n, 2, "two arguments");
    ok(ron_str_eq(ron_api_arg(args, n, ron_str("b")), ron_str("x/y z")),
       "decoded");
    ok(ron_api_arg(args, n, ron_str("c")).data == NULL, "none of that name");

    n = 2;
    is_status(ron_api_query(ron_str("a=1&a=2"), room, args, &n), RON_EINVAL,
              "a name twice");
    n = 2;
    is_status(ron_api_query(ron_str("a=%4"), room, args, &n), RON_EINVAL,
              "half an escape");
    n = 2;
    is_status(ron_api_query(ron_str("a&b&c"), room, args, &n), RON_EINVAL,
              "more than there is room");
    n = 2;
    is_status(ron_api_query(ron_str("&&a=&"), room, args, &n), RON_OK,
              "empty parts");
    is_u64(n, 1, "are none");
}


static void
test_problem(void)
{
    ron_buf_t  out;

    ron_buf_init(&out, 0);

    (void) ron_api_refuse(&err, RON_REASON_NONCE, NULL, NULL);
    err.detail = RON_DETAIL_NONCE_LOW;
    err.value = 5;
    err.has_value = true;

    is_status(ron_api_problem(&out, &err, ron_str("id-1")), RON_OK,
              "a problem");
    ron_buf_put_u8(&out, 0);
    is_str((char *) out.data,
           "{\"type\":\"docs/errors/NONCE_CONFLICT.md\","
           "\"title\":\"the nonce was used or passed\",\"status\":409,"
           "\"detail\":\"the nonce must be greater than the last\","
           "\"code\":\"NONCE_CONFLICT\",\"retryable\":false,"
           "\"corr_id\":\"id-1\","
           "\"details\":{\"reason\":\"conflict\",\"expected\":5}}",
           "has every member");

    is_u64(ron_api_reason(429), RON_REASON_BUSY, "429");
    is_u64(ron_api_reason(418), RON_REASON_MALFORMED, "418");
    is_u64(ron_api_reason(507), RON_REASON_INTERNAL, "507");
    ok(ron_api_retryable(429) && ron_api_retryable(503)
       && !ron_api_retryable(409), "what may be tried again");

    ron_buf_free(&out);
}


static void
test_allow(void)
{
    bool        unknown;
    ron_cap_t   cap;
    ron_buf_t   room;

    ron_buf_init(&room, 0);
    ron_cap_init(&cap);
    cap.valid = true;

    (void) wallet(RON_API_TRANSFER,
                  "{\"from\":\"alice\",\"to\":\"b\",\"asset\":\"ron\","
                  "\"amount_minor\":\"12\",\"nonce\":7}");

    is_status(ron_api_allow(&cap, RON_CAP_SVC_WALLET, &api.unit, &room,
                            &unknown, &err), RON_OK, "everything allowed");
    ok(!unknown, "and known");

    (void) ron_cap_caveat_add(&cap, ron_str("account = al*"));
    is_status(ron_api_allow(&cap, RON_CAP_SVC_WALLET, &api.unit, &room,
                            &unknown, &err), RON_OK, "its accounts");

    (void) wallet(RON_API_CAPTURE,
                  "{\"hold\":\"tx_00000000000000000000000001\","
                  "\"amount_minor\":\"1\"}");
    is_status(ron_api_allow(&cap, RON_CAP_SVC_WALLET, &api.unit, &room,
                            &unknown, &err), RON_OK, "a capture");
    ok(unknown, "of nobody knows whose hold");

    (void) wallet(RON_API_TRANSFER,
                  "{\"from\":\"bob\",\"to\":\"alice\",\"asset\":\"ron\","
                  "\"amount_minor\":\"12\",\"nonce\":7}");
    is_status(ron_api_allow(&cap, RON_CAP_SVC_WALLET, &api.unit, &room,
                            &unknown, &err), RON_EINVAL,
              "another's account");
    is_u64(ron_api_status(&err), 403, "is forbidden");

    (void) wallet(RON_API_ISSUE, "{\"to\":\"bob\",\"asset\":\"ron\","
                  "\"amount_minor\":\"12\"}");
    is_status(ron_api_allow(&cap, RON_CAP_SVC_WALLET, &api.unit, &room,
                            &unknown, &err), RON_EINVAL,
              "also to issue to");

    ron_cap_init(&cap);
    cap.valid = true;
    (void) ron_cap_caveat_add(&cap, ron_str("max_daily = 0"));
    is_status(ron_api_allow(&cap, RON_CAP_SVC_WALLET, &api.unit, &room,
                            &unknown, &err), RON_EINVAL,
              "a daily bound of nothing is one");

    ron_buf_free(&room);
}


static void
test_health(void)
{
    uint16_t          status;
    ron_buf_t         out;
    ron_api_health_t  h;

    ron_buf_init(&out, 0);
    memset(&h, 0, sizeof(h));

    h.lag_max_ms = 1000;
    h.commit_capacity = 1000;

    is_u64(ron_api_shed(&h), RON_REASON_OK,
           "before the first beat a write waits");
    (void) ron_api_readyz(&out, &h, &status);
    is_u64(status, 503, "and it is not ready");

    h.has_beat = true;
    h.state = RON_STATE_RUNNING;

    (void) ron_api_readyz(&out, &h, &status);
    is_u64(status, 200, "running is ready");

    h.commit_depth = 899;
    is_u64(ron_api_shed(&h), RON_REASON_OK, "under nine tenths");
    h.commit_depth = 900;
    is_u64(ron_api_shed(&h), RON_REASON_BACKPRESSURE, "at nine tenths");
    (void) ron_api_readyz(&out, &h, &status);
    is_u64(status, 503, "is not ready");
    h.commit_depth = 0;

    h.lag_ms = 1001;
    is_u64(ron_api_shed(&h), RON_REASON_RETRY_LATER, "a slow append");
    h.lag_ms = 0;
    h.age_ms = 1001;
    is_u64(ron_api_shed(&h), RON_REASON_RETRY_LATER, "no beat");
    h.age_ms = 0;

    h.state = RON_STATE_SAFE_MODE;
    is_u64(ron_api_shed(&h), RON_REASON_SAFE_MODE, "safe mode");
    h.state = RON_STATE_DRAINING;
    is_u64(ron_api_shed(&h), RON_REASON_DRAINING, "draining");
    h.state = RON_STATE_RUNNING;

    h.ledger_down = true;
    (void) ron_api_readyz(&out, &h, &status);
    is_u64(status, 503, "an open breaker is not ready");
    h.ledger_down = false;
    h.policy_down = true;
    (void) ron_api_readyz(&out, &h, &status);
    is_u64(status, 503, "nor is that of a check");
    h.policy_down = false;

    h.has_beat = false;
    h.remote = true;
    (void) ron_api_readyz(&out, &h, &status);
    is_u64(status, 200, "who has no ledger needs no beat");
    is_u64(ron_api_shed(&h), RON_REASON_OK, "and takes writes");
    h.has_beat = true;
    h.remote = false;

    (void) ron_api_healthz(&out, &h, &status);
    is_u64(status, 200, "nothing dies too often");
    h.looping[h.looping_n++] = "committer";
    (void) ron_api_healthz(&out, &h, &status);
    is_u64(status, 503, "a crash loop");
    ron_buf_reset(&out);
    (void) ron_api_readyz(&out, &h, &status);
    is_u64(status, 503, "is not ready");
    ron_buf_put_u8(&out, 0);
    ok(strstr((const char *) out.data, "\"missing\":[\"committer\"]") != NULL,
       "and says which task");
    is_u64(ron_api_shed(&h), RON_REASON_OK, "what can be served is");

    ron_buf_free(&out);
}


int
main(void)
{
    ron_api_init(&api);
    ron_api_limits_init(&limits);

    test_wallet();
    test_batch();
    test_ingest();
    test_headers();
    test_query();
    test_problem();
    test_allow();
    test_health();

    ron_api_free(&api);

    return done_testing();
}
