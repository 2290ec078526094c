
/*
 * ron_wallet_ledger_pass: a wallet whose ledger is another nginx.  What its
 * clients send is parsed and bounded here and decided there; the answer is
 * relayed as it came, so that a receipt is the same to the byte.
 */

#include "ngx_http_ron_remote.h"
#include "ron_port.h"


#define NGX_HTTP_RON_REMOTE_BUFFER  8192
#define NGX_HTTP_RON_REMOTE_CACHE   (4 * 1024 * 1024)
#define NGX_HTTP_RON_REMOTE_CACHE_MIN  (2 * 1024 * 1024)


static void ngx_http_ron_remote_unit_answer(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc);
static ngx_int_t ngx_http_ron_remote_relay(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_api_http_t *answer);
static ngx_int_t ngx_http_ron_remote_in_vain(ngx_http_request_t *r,
    ngx_http_ron_rcall_t *call);
static ngx_uint_t ngx_http_ron_remote_receipts(ron_str_t body);
static ron_reason_t ngx_http_ron_remote_reason(ron_api_http_t *answer);

static ngx_int_t ngx_http_ron_remote_breaker(ngx_http_ron_remote_t *remote,
    uint32_t *breaker);

static void *ngx_http_ron_remote_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_ron_remote_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_ron_remote_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_ron_remote_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_ron_remote_pass(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_ron_remote_upstream(ngx_conf_t *cf,
    ngx_http_ron_remote_t *remote, ngx_str_t *name);
static ngx_int_t ngx_http_ron_remote_option(ngx_conf_t *cf,
    ngx_http_ron_remote_t *remote, ngx_str_t *value);
static ngx_int_t ngx_http_ron_remote_cache(ngx_conf_t *cf,
    ngx_http_ron_remote_t *remote, ngx_str_t *value);


static ngx_conf_num_bounds_t  ngx_http_ron_remote_threshold_bounds = {
    ngx_conf_check_num_bounds, 1, 1000000
};

static ngx_conf_num_bounds_t  ngx_http_ron_remote_prevalidator_bounds = {
    ngx_conf_check_num_bounds, 1, 100000
};


static ngx_command_t  ngx_http_ron_remote_commands[] = {

    { ngx_string("ron_wallet_ledger_pass"),
      NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_ron_remote_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_ron_remote_loc_conf_t, ledger),
      NULL },

    { ngx_string("ron_kms_pass"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_ron_remote_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_ron_remote_loc_conf_t, kms),
      NULL },

    { ngx_string("ron_policy_pass"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_ron_remote_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_ron_remote_loc_conf_t, policy),
      NULL },

    { ngx_string("ron_wallet_check_pass"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_ron_remote_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_ron_remote_loc_conf_t, wallet),
      NULL },

    { ngx_string("ron_breaker_threshold"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_remote_main_conf_t, threshold),
      &ngx_http_ron_remote_threshold_bounds },

    { ngx_string("ron_ledger_prevalidators"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_ron_remote_main_conf_t, prevalidators),
      &ngx_http_ron_remote_prevalidator_bounds },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_ron_remote_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_ron_remote_create_main_conf,  /* create main configuration */
    ngx_http_ron_remote_init_main_conf,    /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_ron_remote_create_loc_conf,   /* create location configuration */
    ngx_http_ron_remote_merge_loc_conf     /* merge location configuration */
};


ngx_module_t  ngx_http_ron_remote_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_remote_module_ctx,       /* module context */
    ngx_http_ron_remote_commands,          /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/*
 * What the options are, and what they may be.  A size is a number, a
 * millisecond or an integer; `offset` is where it goes.
 */

static struct {
    ngx_str_t   name;
    size_t      offset;
    ngx_uint_t  word;                   /* unsigned  word:1; not 32 bits */
    ngx_uint_t  time;                   /* unsigned  time:1; */
    ngx_int_t   min;
    ngx_int_t   max;
} ngx_http_ron_remote_options[] = {

    { ngx_string("timeout="), offsetof(ngx_http_ron_remote_t, timeout),
      1, 1, 1, 60000 },
    { ngx_string("tries="), offsetof(ngx_http_ron_remote_t, tries),
      1, 0, 1, 10 },
    { ngx_string("backoff="), offsetof(ngx_http_ron_remote_t, backoff),
      1, 1, 50, 60000 },
    { ngx_string("errors="), offsetof(ngx_http_ron_remote_t, breaker.errors),
      0, 0, 1, 1000000 },
    { ngx_string("window="),
      offsetof(ngx_http_ron_remote_t, breaker.window_ms), 0, 1, 100,
      3600000 },
    { ngx_string("open="), offsetof(ngx_http_ron_remote_t, breaker.open_ms),
      0, 1, 100, 3600000 },
    { ngx_string("probes="), offsetof(ngx_http_ron_remote_t, breaker.probes),
      0, 0, 1, 63 },
    { ngx_null_string, 0, 0, 0, 0, 0 }
};


/* What the targets are when nothing is said; the labels of their metrics. */

static struct {
    const char  *name;
    ngx_str_t    path;
    ngx_msec_t   timeout;
    ngx_uint_t   tries;
    ngx_msec_t   backoff;
    uint32_t     probes;
    ngx_uint_t   service;
    ngx_uint_t   svc;
    ngx_uint_t   io;
    ngx_uint_t   retry;
} ngx_http_ron_remote_targets[] = {

    [RON_D_TARGET_KMS] = { "kms", ngx_string("/kms/verify"), 1000, 3, 250, 1,
                           RON_D_SERVICE_LEDGER, RON_D_SVC_KMS, RON_D_IO_KMS,
                           RON_D_RETRY_OP_KMS },

    [RON_D_TARGET_POLICY] = { "policy", ngx_string("/policy/check"), 800, 2,
                              150, 1, RON_D_SERVICE_LEDGER, RON_D_SVC_POLICY,
                              RON_D_IO_POLICY, RON_D_RETRY_OP_POLICY },

    [RON_D_TARGET_WALLET] = { "wallet", ngx_string("/wallet/check"), 1000, 2,
                              150, 1, RON_D_SERVICE_LEDGER, RON_D_SVC_N,
                              RON_D_IO_WALLET, RON_D_RETRY_OP_WALLET },

    [RON_D_TARGET_LEDGER] = { "ledger", ngx_string("/ledger/"), 1000, 3, 1000,
                              10, RON_D_SERVICE_WALLET, RON_D_SVC_LEDGER,
                              RON_D_IO_LEDGER_RPC, RON_D_RETRY_OP_LEDGER_RPC },
};


static ngx_str_t  ngx_http_ron_remote_json = ngx_string("application/json");
static ngx_str_t  ngx_http_ron_remote_problem =
    ngx_string("application/problem+json");


ngx_http_ron_remote_t *
ngx_http_ron_remote_ledger(ngx_http_request_t *r)
{
    ngx_http_ron_remote_loc_conf_t  *rrlcf;

    rrlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_remote_module);

    return rrlcf->ledger;
}


ngx_int_t
ngx_http_ron_remote_unit(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_unit_t *unit)
{
    ron_buf_t      *buf;
    ngx_msec_t      left;
    ron_api_ops_t   ops;

    static ngx_str_t  tail = ngx_string("ops");

    left = ngx_http_ron_time_left(ctx);

    if (left == 0) {
        return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                   "the deadline has passed", NULL);
    }

    ngx_http_ron_checks_end(ctx);

    ngx_memzero(&ops, sizeof(ron_api_ops_t));

    ops.op = ctx->number;
    ops.key = unit->key;
    ops.deadline_ms = ron_clock_wall_ms() + left;
    ops.has_match = unit->has_match;
    ops.match = unit->match;
    ops.nonce_strict = unit->nonce_strict;
    ops.account_daily = unit->account_daily;
    ops.account_total = unit->account_total;

    buf = ngx_http_ron_scratch();

    if (ron_api_ops_put(buf, &ops, ctx->body) != RON_OK
        || ngx_http_ron_remote_call(r, ctx, ngx_http_ron_remote_ledger(r),
                                    &tail, &r->args, ron_buf_str(buf),
                                    RON_D_CALL_COMMIT,
                                    ngx_http_ron_remote_unit_answer)
           != NGX_DONE)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DONE;
}


static void
ngx_http_ron_remote_unit_answer(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc)
{
    ngx_http_request_t  *r;

    r = ctx->request;

    if (rc != NGX_OK) {
        rc = ngx_http_ron_remote_in_vain(r, call);

    } else if (!call->answer.json) {
        rc = ngx_http_ron_refuse(r, RON_REASON_UPSTREAM,
                                 "what answered is not a ledger", NULL);

    } else if (call->maybe && ngx_http_ron_remote_unknown(call)) {

        /* this try was refused at the door, and an earlier one perhaps not */

        rc = ngx_http_ron_refuse(r, RON_REASON_TIMEOUT, NULL, NULL);

    } else {
        if (call->answer.has_seq) {
            ngx_http_ron_follow_wrote(call->remote, call->answer.seq);
        }

        rc = ngx_http_ron_remote_relay(r, ctx, &call->answer);
    }

    ngx_http_ron_done(ctx, rc);
}


/*
 * Refusals that are not the sequencer's say nothing about an earlier try, and
 * limits are looked at by the door, too, which may have other ones by now.  Of
 * what a ledger answers with 500 and more, these say that nothing was done.
 */

ngx_uint_t
ngx_http_ron_remote_unknown(ngx_http_ron_rcall_t *call)
{
    if (call->answer.status < 300) {
        return 0;
    }

    switch (ngx_http_ron_remote_reason(&call->answer)) {

    case RON_REASON_HOLD_NOT_FOUND:
    case RON_REASON_CONFLICT:
    case RON_REASON_INSUFFICIENT:
    case RON_REASON_NONCE:
    case RON_REASON_HOLD_CLOSED:
    case RON_REASON_PRECONDITION:
    case RON_REASON_IDEM_MISMATCH:
        return 0;

    case RON_REASON_RETRY_LATER:
    case RON_REASON_SAFE_MODE:
    case RON_REASON_DRAINING:
        return call->maybe;

    default:
        return 1;
    }
}


static ngx_int_t
ngx_http_ron_remote_in_vain(ngx_http_request_t *r, ngx_http_ron_rcall_t *call)
{
    if (call->maybe) {
        return ngx_http_ron_refuse(r, RON_REASON_TIMEOUT, NULL, NULL);
    }

    if (call->whole && call->answer.json) {
        return ngx_http_ron_remote_relay(r, call->ctx, &call->answer);
    }

    if (call->tried == 0 && call->late) {
        return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                   "the deadline has passed", NULL);
    }

    return ngx_http_ron_refuse(r, RON_REASON_UPSTREAM,
                               call->refused
                                   ? "the ledger failed too often, it is "
                                     "not asked now; nothing was done"
                                   : "the ledger cannot be reached, nothing "
                                     "was done",
                               NULL);
}


static ngx_int_t
ngx_http_ron_remote_relay(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_api_http_t *answer)
{
    static ngx_str_t  replayed = ngx_string("true");

    if (answer->status >= NGX_HTTP_BAD_REQUEST) {
        ctx->reason = ngx_http_ron_remote_reason(answer);

        return ngx_http_ron_reply(r, answer->status,
                                  &ngx_http_ron_remote_problem, answer->body);
    }

    ngx_http_ron_context_receipt(ctx, answer->body);

    if (answer->replayed) {
        ngx_ron_count(RON_M_WALLET_REPLAYS, 0, 0, 0, 0);
        ngx_ron_count(RON_M_WALLET_REPLAYS_LONG, 0, 0, 0, 0);

        if (ngx_http_ron_header(r, "Idempotent-Replayed", &replayed)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

    } else {
        ngx_http_ron_count_ops(ctx,
                               ngx_http_ron_remote_receipts(answer->body));
    }

    return ngx_http_ron_reply(r, answer->status, &ngx_http_ron_remote_json,
                              answer->body);
}


/* No text in an answer has a quotation mark: each of these is a receipt. */

static ngx_uint_t
ngx_http_ron_remote_receipts(ron_str_t body)
{
    ngx_uint_t      n;
    const uint8_t  *p;

    static const char  txid[] = "{\"txid\":\"";

    n = 0;

    for (p = body.data; body.len; p += sizeof(txid) - 1) {
        p = memmem(p, body.data + body.len - p, txid, sizeof(txid) - 1);

        if (p == NULL) {
            break;
        }

        n++;
    }

    return n;
}


/* The first reason that has the problem's code. */

static ron_reason_t
ngx_http_ron_remote_reason(ron_api_http_t *answer)
{
    size_t          len;
    u_char         *p, *last;
    ngx_uint_t      i;
    const char     *code;

    static u_char   member[] = "\"code\":\"";

    if (!answer->json || answer->body.len == 0) {
        return RON_REASON_INTERNAL;
    }

    p = (u_char *) answer->body.data;
    last = p + answer->body.len;

    p = ngx_strlcasestrn(p, last, member, sizeof(member) - 2);

    if (p == NULL) {
        return RON_REASON_INTERNAL;
    }

    p += sizeof(member) - 1;

    for (i = 0; i < RON_REASON_N; i++) {
        code = ron_reason_info(i)->code;
        len = ngx_strlen(code);

        if ((size_t) (last - p) > len && ngx_strncmp(p, code, len) == 0
            && p[len] == '"')
        {
            return i;
        }
    }

    return RON_REASON_INTERNAL;
}


ngx_int_t
ngx_http_ron_remote_read(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    const char *what, ngx_str_t *args)
{
    ngx_str_t   tail;

    /* `what` and the path behind it: both were checked */

    tail.len = ngx_strlen(what) + ctx->path.len;
    tail.data = ngx_pnalloc(r->pool, tail.len);

    if (tail.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(ngx_cpymem(tail.data, what, tail.len - ctx->path.len),
               ctx->path.data, ctx->path.len);

    if (ngx_http_ron_remote_call(r, ctx, ngx_http_ron_remote_ledger(r),
                                 &tail, args, ron_null_str, RON_D_CALL_READ,
                                 ngx_http_ron_remote_read_answer)
        != NGX_DONE)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DONE;
}


void
ngx_http_ron_remote_read_answer(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc)
{
    ngx_uint_t           same;
    ngx_http_request_t  *r;

    r = ctx->request;
    same = 0;

    /* reading changes nothing: nothing is unknown */

    call->maybe = 0;

    if (rc != NGX_OK) {
        rc = ngx_http_ron_remote_in_vain(r, call);
        goto done;
    }

    if (!call->answer.json) {
        rc = ngx_http_ron_refuse(r, RON_REASON_UPSTREAM,
                                 "what answered is not a ledger", NULL);
        goto done;
    }

    if (call->answer.has_version && call->answer.status == NGX_HTTP_OK
        && ngx_http_ron_etag(r, ctx, call->answer.version, &same) != NGX_OK)
    {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
        goto done;
    }

    rc = same ? ngx_http_ron_not_modified(r)
              : ngx_http_ron_remote_relay(r, ctx, &call->answer);

done:

    ngx_http_ron_done(ctx, rc);
}


/* ---- breakers and metrics ----------------------------------------------- */

static ngx_int_t
ngx_http_ron_remote_breaker(ngx_http_ron_remote_t *remote, uint32_t *breaker)
{
    ron_zone_t  *zone;

    zone = ngx_ron_zone();

    return zone && ron_zone_breaker(zone, ngx_ron_str(&remote->name), breaker)
                   == RON_OK
           ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_ron_remote_ask(ngx_http_ron_rcall_t *call)
{
    bool                    probe;
    uint32_t                breaker;
    uint64_t                retry_ms;
    ngx_http_ron_remote_t  *remote;

    remote = call->remote;

    if (ngx_http_ron_remote_breaker(remote, &breaker) != NGX_OK) {
        return NGX_OK;
    }

    if (ron_zone_breaker_ask(ngx_ron_zone(), breaker, &remote->breaker,
                             ngx_ron_now(), &probe, &retry_ms)
        != RON_OK)
    {
        return NGX_BUSY;
    }

    call->probe = probe;

    return NGX_OK;
}


void
ngx_http_ron_remote_untold(ngx_http_ron_rcall_t *call)
{
    uint32_t  breaker;

    if (call->probe
        && ngx_http_ron_remote_breaker(call->remote, &breaker) == NGX_OK)
    {
        ron_zone_breaker_return(ngx_ron_zone(), breaker,
                                &call->remote->breaker);
    }

    call->probe = 0;
}


void
ngx_http_ron_remote_tell(ngx_http_ron_rcall_t *call, ngx_uint_t success)
{
    uint32_t                breaker;
    ngx_uint_t              svc;
    ngx_http_ron_remote_t  *remote;

    remote = call->remote;
    call->probe = 0;

    if (ngx_http_ron_remote_breaker(remote, &breaker) != NGX_OK
        || !ron_zone_breaker_tell(ngx_ron_zone(), breaker, &remote->breaker,
                                  ngx_ron_now(), success))
    {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, call->ctx->request->connection->log, 0,
                  "ron: upstream \"%V\" failed too often, it is not asked "
                  "for %uD ms", &remote->host, remote->breaker.open_ms);

    svc = ngx_http_ron_remote_targets[remote->target].svc;

    if (svc != RON_D_SVC_N) {
        ngx_ron_count(RON_M_CIRCUIT_OPEN, 0, svc, 0, 0);
    }

    ngx_ron_count(RON_M_BREAKER_OPEN, 0, remote->target, 0, 0);
}


void
ngx_http_ron_remote_count(ngx_http_ron_rcall_t *call, ngx_uint_t failed)
{
    uint64_t    us;
    ngx_uint_t  svc, target, result;

    target = call->remote->target;
    svc = ngx_http_ron_remote_targets[target].svc;

    result = !failed ? RON_D_RESULT_OK
                     : call->late ? RON_D_RESULT_TIMEOUT : RON_D_RESULT_ERROR;

    if (call->late) {
        ngx_ron_count(RON_M_IO_TIMEOUTS,
                      ngx_http_ron_remote_targets[target].service,
                      ngx_http_ron_remote_targets[target].io, 0, 0);
    }

    if (svc == RON_D_SVC_N || ngx_ron_zone() == NULL) {
        return;
    }

    us = ron_clock_mono_us() - call->since_us;

    ngx_ron_count(RON_M_UPSTREAM_CALLS, 0, svc, call->op, result);
    ron_metric_observe(ngx_ron_zone(), ngx_ron_slot(), RON_M_UPSTREAM_LATENCY,
                       0, svc, call->op, 0, us);
}


void
ngx_http_ron_remote_retried(ngx_http_ron_rcall_t *call)
{
    ngx_uint_t  svc;

    svc = ngx_http_ron_remote_targets[call->remote->target].svc;

    if (call->remote->target != RON_D_TARGET_LEDGER) {
        ngx_ron_count(RON_M_BACKOFF_RETRIES_L, 0,
                      ngx_http_ron_remote_targets[call->remote->target].retry,
                      0, 0);
        return;
    }

    ngx_ron_count(RON_M_BACKOFF_RETRIES_W, 0, svc, call->op, 0);
}


void
ngx_http_ron_remote_failed(ngx_http_ron_rcall_t *call)
{
    ngx_uint_t  svc;

    svc = ngx_http_ron_remote_targets[call->remote->target].svc;

    if (svc != RON_D_SVC_N) {
        ngx_ron_count(RON_M_UPSTREAM_FAIL, 0, svc, 0, 0);
    }
}


ngx_uint_t
ngx_http_ron_remote_down(ngx_http_request_t *r, ngx_uint_t target)
{
    uint32_t                          breaker;
    uint64_t                          since;
    ngx_uint_t                        i;
    ngx_http_ron_remote_t           **remote;
    ngx_http_ron_remote_main_conf_t  *rrmcf;

    rrmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_remote_module);
    remote = rrmcf->all.elts;

    for (i = 0; i < rrmcf->all.nelts; i++) {

        /* past its time the next call is a probe, and that needs callers */

        if ((remote[i]->target == target || target == RON_D_TARGET_N)
            && ngx_http_ron_remote_breaker(remote[i], &breaker) == NGX_OK
            && ron_zone_breaker_look(ngx_ron_zone(), breaker, &since)
               == RON_BREAKER_OPEN
            && ngx_ron_now() < since + remote[i]->breaker.open_ms)
        {
            return 1;
        }
    }

    return 0;
}


/*
 * What is the zone's and no process's stands in the first slot's block,
 * whoever writes it: a sum over all blocks is then that one value.
 */

void
ngx_http_ron_remote_sample(ngx_http_request_t *r)
{
    uint32_t                          breaker;
    uint64_t                          since, us[RON_D_TARGET_N];
    ron_zone_t                       *zone;
    ngx_uint_t                        i, t, state[RON_D_TARGET_N];
    ron_breaker_state_t               s;
    ngx_http_ron_remote_t           **remote;
    ngx_http_ron_remote_main_conf_t  *rrmcf;

    zone = ngx_ron_zone();

    if (zone == NULL) {
        return;
    }

    ngx_memzero(us, sizeof(us));
    ngx_memzero(state, sizeof(state));

    rrmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_remote_module);
    remote = rrmcf->all.elts;

    for (i = 0; i < rrmcf->all.nelts; i++) {

        if (ngx_http_ron_remote_breaker(remote[i], &breaker) != NGX_OK) {
            continue;
        }

        t = remote[i]->target;
        s = ron_zone_breaker_look(zone, breaker, &since);

        if (s == RON_BREAKER_CLOSED) {
            continue;
        }

        if (state[t] != RON_BREAKER_OPEN) {
            state[t] = s;
        }

        if (s == RON_BREAKER_OPEN) {
            us[t] = ngx_max(us[t], (ngx_ron_now() - since) * 1000);
        }
    }

    for (t = 0; t < RON_D_TARGET_N; t++) {
        ron_metric_set(zone, 0, RON_M_BREAKER_STATE, 0, t, 0, 0, state[t]);
        ron_metric_set(zone, 0, RON_M_BREAKER_OPEN_SECONDS, 0, t, 0, 0,
                       us[t]);
    }
}


/* ---- configuration ------------------------------------------------------ */

static void *
ngx_http_ron_remote_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_ron_remote_main_conf_t  *rrmcf;

    rrmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_remote_main_conf_t));
    if (rrmcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&rrmcf->all, cf->pool, 4,
                       sizeof(ngx_http_ron_remote_t *))
        != NGX_OK)
    {
        return NULL;
    }

    rrmcf->threshold = NGX_CONF_UNSET_UINT;
    rrmcf->prevalidators = NGX_CONF_UNSET_UINT;

    return rrmcf;
}


static char *
ngx_http_ron_remote_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_ron_remote_main_conf_t *rrmcf = conf;

    ngx_uint_t               i;
    ngx_http_ron_remote_t  **remote;

    ngx_conf_init_uint_value(rrmcf->threshold, 1);
    ngx_conf_init_uint_value(rrmcf->prevalidators,
                             (ngx_uint_t) ngx_max(2, ngx_ncpu / 2));

    remote = rrmcf->all.elts;

    for (i = 0; i < rrmcf->all.nelts; i++) {
        if (remote[i]->breaker.errors == 0) {
            remote[i]->breaker.errors = (uint32_t) rrmcf->threshold;
        }
    }

    return NGX_CONF_OK;
}


static void *
ngx_http_ron_remote_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_ron_remote_loc_conf_t  *rrlcf;

    rrlcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_remote_loc_conf_t));
    if (rrlcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     rrlcf->ledger = NULL;
     */

    rrlcf->kms = NGX_CONF_UNSET_PTR;
    rrlcf->policy = NGX_CONF_UNSET_PTR;
    rrlcf->wallet = NGX_CONF_UNSET_PTR;

    return rrlcf;
}


ngx_uint_t
ngx_http_ron_remote_has_ledger(ngx_conf_t *cf)
{
    ngx_http_ron_remote_loc_conf_t  *rrlcf;

    rrlcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_ron_remote_module);

    return rrlcf->ledger != NULL;
}


static char *
ngx_http_ron_remote_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_ron_remote_loc_conf_t *prev = parent;
    ngx_http_ron_remote_loc_conf_t *conf = child;

    ngx_http_ron_loc_conf_t  *rlcf;

    ngx_conf_merge_ptr_value(conf->kms, prev->kms, NULL);
    ngx_conf_merge_ptr_value(conf->policy, prev->policy, NULL);
    ngx_conf_merge_ptr_value(conf->wallet, prev->wallet, NULL);

    rlcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_ron_module);

    if (conf->ledger
        && (rlcf->service == NULL
            || rlcf->service->svc != RON_CAP_SVC_WALLET))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"ron_wallet_ledger_pass\" needs \"ron_wallet\" "
                           "in the same location");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_ron_remote_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                        *value;
    ngx_uint_t                        i, t;
    ngx_http_ron_remote_t            *remote, **field, **all;
    ngx_http_ron_remote_main_conf_t  *rrmcf;

    field = (ngx_http_ron_remote_t **) ((u_char *) conf + cmd->offset);

    if (*field && *field != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    switch (cmd->offset) {

    case offsetof(ngx_http_ron_remote_loc_conf_t, kms):
        t = RON_D_TARGET_KMS;
        break;

    case offsetof(ngx_http_ron_remote_loc_conf_t, policy):
        t = RON_D_TARGET_POLICY;
        break;

    case offsetof(ngx_http_ron_remote_loc_conf_t, wallet):
        t = RON_D_TARGET_WALLET;
        break;

    default:
        t = RON_D_TARGET_LEDGER;
    }

    if (t != RON_D_TARGET_LEDGER && cf->args->nelts == 2
        && ngx_strcmp(value[1].data, "off") == 0)
    {
        *field = NULL;
        return NGX_CONF_OK;
    }

    remote = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_remote_t));
    if (remote == NULL) {
        return NGX_CONF_ERROR;
    }

    remote->target = t;
    remote->path = ngx_http_ron_remote_targets[t].path;
    remote->timeout = ngx_http_ron_remote_targets[t].timeout;
    remote->tries = ngx_http_ron_remote_targets[t].tries;
    remote->backoff = ngx_http_ron_remote_targets[t].backoff;

    ron_breaker_conf_init(&remote->breaker);

    remote->breaker.probes = ngx_http_ron_remote_targets[t].probes;

    if (t != RON_D_TARGET_LEDGER) {
        remote->breaker.errors = 0;

    } else {
        remote->cache = NGX_HTTP_RON_REMOTE_CACHE;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_ron_remote_option(cf, remote, &value[i]) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    if (ngx_http_ron_remote_upstream(cf, remote, &value[1]) != NGX_OK
        || ngx_http_ron_follow_add(cf, remote) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    rrmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_ron_remote_module);

    all = ngx_array_push(&rrmcf->all);
    if (all == NULL) {
        return NGX_CONF_ERROR;
    }

    *all = remote;
    *field = remote;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_ron_remote_upstream(ngx_conf_t *cf, ngx_http_ron_remote_t *remote,
    ngx_str_t *name)
{
    u_char     *p;
    ngx_url_t   u;

    ngx_memzero(&u, sizeof(ngx_url_t));

    u.url = *name;
    u.default_port = 80;
    u.no_resolve = 1;

    remote->upstream.upstream = ngx_http_upstream_add(cf, &u, 0);
    if (remote->upstream.upstream == NULL) {
        return NGX_ERROR;
    }

    /*
     * One peer a try: which is next is decided by what is tried again, except
     * when it was a kept connection that had been closed.
     */

    remote->upstream.next_upstream = NGX_CONF_BITMASK_SET
                                     |NGX_HTTP_UPSTREAM_FT_ERROR;
    remote->upstream.next_upstream_tries = 1;
    remote->upstream.buffer_size = NGX_HTTP_RON_REMOTE_BUFFER;
    remote->upstream.ignore_client_abort = 1;

    remote->host = *name;

    if (name->len > 5 && ngx_strncasecmp(name->data, (u_char *) "unix:", 5)
                         == 0)
    {
        ngx_str_set(&remote->host, "localhost");
    }

    /* names of breakers are short; a long one is told by its checksum */

    remote->name.data = ngx_pnalloc(cf->pool, RON_ZONE_NAME_MAX);
    if (remote->name.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(remote->name.data, "%s:",
                    ngx_http_ron_remote_targets[remote->target].name);

    if (p - remote->name.data + name->len <= RON_ZONE_NAME_MAX) {
        p = ngx_cpymem(p, name->data, name->len);

    } else {
        p = ngx_sprintf(p, "%08xD", ngx_crc32_long(name->data, name->len));
    }

    remote->name.len = p - remote->name.data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_ron_remote_option(ngx_conf_t *cf, ngx_http_ron_remote_t *remote,
    ngx_str_t *value)
{
    u_char      *field;
    ngx_str_t    s, *name;
    ngx_int_t    n;
    ngx_uint_t   i;

    if (value->len >= 6 && ngx_strncmp(value->data, "path=/", 6) == 0
        && (remote->target != RON_D_TARGET_LEDGER
            || value->data[value->len - 1] == '/'))
    {
        remote->path.data = value->data + 5;
        remote->path.len = value->len - 5;

        return NGX_OK;
    }

    if (value->len > 6 && ngx_strncmp(value->data, "cache=", 6) == 0
        && remote->target == RON_D_TARGET_LEDGER)
    {
        return ngx_http_ron_remote_cache(cf, remote, value);
    }

    for (i = 0; ngx_http_ron_remote_options[i].name.len; i++) {
        name = &ngx_http_ron_remote_options[i].name;

        if (value->len <= name->len
            || ngx_strncmp(value->data, name->data, name->len) != 0)
        {
            continue;
        }

        s.data = value->data + name->len;
        s.len = value->len - name->len;

        n = ngx_http_ron_remote_options[i].time ? ngx_parse_time(&s, 0)
                                                : ngx_atoi(s.data, s.len);

        if (n == NGX_ERROR || n < ngx_http_ron_remote_options[i].min
            || n > ngx_http_ron_remote_options[i].max)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid value in \"%V\", it must be from "
                               "%i to %i%s", value,
                               ngx_http_ron_remote_options[i].min,
                               ngx_http_ron_remote_options[i].max,
                               ngx_http_ron_remote_options[i].time ? " ms"
                                                                   : "");
            return NGX_ERROR;
        }

        field = (u_char *) remote + ngx_http_ron_remote_options[i].offset;

        if (ngx_http_ron_remote_options[i].word) {
            *(ngx_uint_t *) (void *) field = n;

        } else {
            *(uint32_t *) (void *) field = (uint32_t) n;
        }

        return NGX_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\", it must be one of "
                       "path=/... timeout= tries= backoff= errors= window= "
                       "open= probes=%s", value,
                       remote->target == RON_D_TARGET_LEDGER ? " cache=" : "");

    return NGX_ERROR;
}


/* Of balances: a size, or "off". */

static ngx_int_t
ngx_http_ron_remote_cache(ngx_conf_t *cf, ngx_http_ron_remote_t *remote,
    ngx_str_t *value)
{
    ssize_t    size;
    ngx_str_t  s;

    s.data = value->data + 6;
    s.len = value->len - 6;

    if (s.len == 3 && ngx_strncmp(s.data, "off", 3) == 0) {
        remote->cache = 0;
        return NGX_OK;
    }

    size = ngx_parse_size(&s);

    if (size == NGX_ERROR || size < NGX_HTTP_RON_REMOTE_CACHE_MIN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value in \"%V\", it must be \"off\" or a "
                           "size of at least 2m", value);
        return NGX_ERROR;
    }

    remote->cache = size;

    return NGX_OK;
}
