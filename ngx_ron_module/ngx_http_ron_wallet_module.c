
#include "ngx_http_ron_limit.h"
#include "ngx_http_ron_remote.h"
#include "ngx_http_ron_stream.h"
#include "ron_port.h"
#include "ron_receipt.h"


/* A balance of the zone, and how far it can be believed. */

typedef struct {
    ron_msg_balance_t    balance;
    uint64_t             as_of;         /* wall, ms */
    uint64_t             stale;         /* ms */
    uint64_t             silent;        /* ms since the helper's last beat */
    ngx_uint_t           live;          /* unsigned  live:1; */
} ngx_http_ron_cached_t;


static ngx_int_t ngx_http_ron_wallet_post(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ngx_int_t ngx_http_ron_wallet_send(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_unit_t *unit);
static void ngx_http_ron_wallet_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static ngx_int_t ngx_http_ron_wallet_reply(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t payload);
static ngx_uint_t ngx_http_ron_wallet_proof(ngx_http_ron_ctx_t *ctx);
static ron_status_t ngx_http_ron_wallet_proof_work(
    ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_wallet_hold(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, uint64_t seq);
static ron_status_t ngx_http_ron_wallet_hold_work(ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_wallet_hold_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task);
static void ngx_http_ron_wallet_balance_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static ngx_int_t ngx_http_ron_wallet_balance_reply(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_msg_balance_t *balance, uint64_t as_of,
    uint64_t stale);
static void ngx_http_ron_wallet_outcome_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static ron_status_t ngx_http_ron_wallet_tx_work(ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_wallet_tx_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task);
static char *ngx_http_ron_wallet(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#define NGX_HTTP_RON_POST                                                     \
    (NGX_HTTP_RON_JSON|NGX_HTTP_RON_WRITE|NGX_HTTP_RON_KEY|NGX_HTTP_RON_GZIP)

static ngx_http_ron_route_t  ngx_http_ron_wallet_routes[] = {

    { ngx_string("transfer"), NGX_HTTP_POST, NGX_HTTP_RON_POST,
      RON_CAP_ACT_TRANSFER, RON_API_TRANSFER, ngx_http_ron_wallet_post,
      RON_D_ROUTE_WALLET_TRANSFER },

    { ngx_string("issue"), NGX_HTTP_POST, NGX_HTTP_RON_POST,
      RON_CAP_ACT_ISSUE, RON_API_ISSUE, ngx_http_ron_wallet_post,
      RON_D_ROUTE_WALLET_ISSUE },

    { ngx_string("burn"), NGX_HTTP_POST, NGX_HTTP_RON_POST,
      RON_CAP_ACT_BURN, RON_API_BURN, ngx_http_ron_wallet_post,
      RON_D_ROUTE_WALLET_BURN },

    { ngx_string("hold"), NGX_HTTP_POST, NGX_HTTP_RON_POST,
      RON_CAP_ACT_HOLD, RON_API_HOLD, ngx_http_ron_wallet_post,
      RON_D_ROUTE_WALLET_HOLD },

    { ngx_string("capture"), NGX_HTTP_POST, NGX_HTTP_RON_POST,
      RON_CAP_ACT_HOLD, RON_API_CAPTURE, ngx_http_ron_wallet_post,
      RON_D_ROUTE_WALLET_CAPTURE },

    { ngx_string("release"), NGX_HTTP_POST, NGX_HTTP_RON_POST,
      RON_CAP_ACT_HOLD, RON_API_RELEASE, ngx_http_ron_wallet_post,
      RON_D_ROUTE_WALLET_RELEASE },

    { ngx_string("batch"), NGX_HTTP_POST, NGX_HTTP_RON_POST,
      0, RON_API_BATCH, ngx_http_ron_wallet_post,
      RON_D_ROUTE_WALLET_BATCH },

    { ngx_string("balance"), NGX_HTTP_GET, 0,
      RON_CAP_ACT_READ, 0, ngx_http_ron_wallet_balance,
      RON_D_ROUTE_WALLET_BALANCE },

    { ngx_string("outcome"), NGX_HTTP_GET, NGX_HTTP_RON_KEY,
      RON_CAP_ACT_READ, 0, ngx_http_ron_wallet_outcome,
      RON_D_ROUTE_WALLET_OUTCOME },

    { ngx_string("tx/"), NGX_HTTP_GET, NGX_HTTP_RON_PREFIX,
      RON_CAP_ACT_READ, 0, ngx_http_ron_wallet_tx,
      RON_D_ROUTE_WALLET_TX },

    { ngx_string("audit/stream"), NGX_HTTP_GET, 0, 0, 0,
      ngx_http_ron_events_stream, RON_D_ROUTE_WALLET_AUDIT },

    { ngx_null_string, 0, 0, 0, 0, NULL, 0 }
};


static ngx_http_ron_service_t  ngx_http_ron_wallet_service = {
    ngx_string("wallet"),
    RON_CAP_SVC_WALLET,
    RON_D_SERVICE_WALLET,
    RON_D_ROUTE_WALLET_OTHER,
    RON_ADMIT_WORK,
    ngx_http_ron_wallet_routes
};


static ngx_command_t  ngx_http_ron_wallet_commands[] = {

    { ngx_string("ron_wallet"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_ron_wallet,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_ron_wallet_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_ron_wallet_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_wallet_module_ctx,       /* module context */
    ngx_http_ron_wallet_commands,          /* module directives */
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


/* A worker's: a unit is encoded before the next one is parsed. */

static ron_api_t     ngx_http_ron_wallet_api;
static ron_buf_t     ngx_http_ron_wallet_cap;
static ron_result_t  ngx_http_ron_wallet_results[RON_API_BATCH_MAX];


static ngx_int_t
ngx_http_ron_wallet_post(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_unit_t                *unit;
    ron_status_t               rc;
    ron_api_error_t            err;
    ron_api_limits_t           limits;
    ngx_http_ron_loc_conf_t   *rlcf;
    ngx_http_ron_main_conf_t  *rmcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);
    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    limits = *rmcf->limits;
    limits.nonce_strict = rlcf->nonce;

    /* what was compressed may be longer than a body, and has its own bound */

    ngx_http_ron_wallet_api.body_max = ctx->gzip ? ctx->body.len : 0;

    rc = ron_api_wallet_parse(&ngx_http_ron_wallet_api, ctx->route->number,
                              ctx->body, ngx_ron_str(&ctx->idem_key),
                              &limits, &err);

    if (rc == RON_EINVAL) {
        return ngx_http_ron_problem(r, &err);
    }

    if (rc != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    unit = &ngx_http_ron_wallet_api.unit;

    if (ctx->if_match.len) {
        unit->has_match = true;

        if (ron_api_match(ngx_ron_str(&ctx->if_match), &unit->match)
            != RON_OK)
        {
            return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                       "If-Match must be one version",
                                       "If-Match");
        }
    }

    ctx->number = ctx->route->number;

    return ngx_http_ron_wallet_unit(r, ctx, RON_CAP_SVC_WALLET, unit);
}


ngx_int_t
ngx_http_ron_wallet_unit(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    unsigned svc, ron_unit_t *unit)
{
    bool              unknown, open;
    ngx_uint_t        remote;
    ron_status_t      rc;
    ron_api_error_t   err;
    ron_api_policy_t  policy;

    open = false;

    rc = ron_api_allow(ctx->cap, svc, unit, &ngx_http_ron_wallet_cap,
                       &unknown, &err);

    if (rc == RON_OK) {
        ngx_http_ron_limit_policy(r, ctx, &policy);
        rc = ron_api_policy(&policy, ctx->cap, 0, unit, &open, &err);
    }

    /* whose hold it is stands in the ledger, wherever that is */

    remote = ngx_http_ron_remote_ledger(r) != NULL;

    if (rc == RON_OK && remote && open) {
        rc = ron_api_refuse(&err, RON_REASON_POLICY_DENIED,
                            "the policy is about accounts or assets, and the "
                            "hold is in another server's ledger", "hold");

    } else if (rc == RON_OK && !remote && (unknown || open) && !ctx->held) {

        if (unit->op_n == 1) {
            return ngx_http_ron_wallet_hold(r, ctx, unit->ops[0].ref);
        }

        rc = ron_api_refuse(&err, unknown ? RON_REASON_CAP_INVALID
                                          : RON_REASON_POLICY_DENIED,
                            "what is allowed for some accounts or assets "
                            "cannot capture or release in a batch", "hold");
    }

    if (rc == RON_EINVAL) {
        return ngx_http_ron_problem(r, &err);
    }

    if (rc != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!ctx->checked && ngx_http_ron_check_units(r)) {
        return ngx_http_ron_check_unit(r, ctx, unit);
    }

    return remote ? ngx_http_ron_remote_unit(r, ctx, unit)
                  : ngx_http_ron_wallet_send(r, ctx, unit);
}


/*
 * A capture or release names only its hold.  For a capability that is for
 * some accounts or assets the hold is read first, and then the request begins
 * again; the sequencer decides on the hold as it is then.
 */

static ngx_int_t
ngx_http_ron_wallet_hold(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    uint64_t seq)
{
    ngx_http_ron_task_t  *task;

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_wallet_hold_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    task->a = seq;
    task->after = ngx_http_ron_wallet_hold_after;

    return ngx_http_ron_task_post(r, task);
}


static ron_status_t
ngx_http_ron_wallet_hold_work(ngx_http_ron_task_t *task)
{
    ron_entry_t   e;
    ron_status_t  rc;

    rc = ron_api_entry_read(task->reader, task->a, &task->more, &e);

    if (rc == RON_ENOTFOUND || (rc == RON_OK && e.kind != RON_KIND_HOLD)) {
        return ngx_http_ron_task_refuse(task, RON_REASON_HOLD_NOT_FOUND,
                                        NULL);
    }

    return rc;
}


static ngx_int_t
ngx_http_ron_wallet_hold_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task)
{
    ron_entry_t      e;
    ron_api_error_t  err;

    if (ron_entry_decode(ron_buf_str(&task->more), &e) != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ron_api_allow_read(ctx->cap, e.account, e.asset, &err) != RON_OK) {
        return ngx_http_ron_problem(r, &err);
    }

    ctx->held = 1;

    /* the task's buffer lives as long as the request */

    ctx->held_account.data = (u_char *) e.account.data;
    ctx->held_account.len = e.account.len;
    ctx->held_asset.data = (u_char *) e.asset.data;
    ctx->held_asset.len = e.asset.len;

    return ctx->route->handler(r, ctx);
}


static ngx_int_t
ngx_http_ron_wallet_send(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_unit_t *unit)
{
    ngx_int_t        rc;
    ngx_msec_t       left;
    ngx_uint_t       too_long;
    ngx_ron_call_t  *call;

    left = ngx_http_ron_time_left(ctx);

    if (left == 0) {
        return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                   "the deadline has passed", NULL);
    }

    rc = ngx_http_ron_nonce_ask(r, ctx, unit);

    if (rc != NGX_OK || ctx->replied) {
        return rc;
    }

    if (ngx_http_ron_breaker_ask(r, ctx) != NGX_OK) {
        ngx_http_ron_nonce_drop(r, ctx);

        return ngx_http_ron_refuse(r, RON_REASON_UPSTREAM,
                                   "the ledger did not answer too often, it "
                                   "is left alone for a while", NULL);
    }

    unit->source_us = (uint64_t) r->start_sec * 1000000
                      + r->start_msec * 1000;
    unit->deadline_us = ctx->deadline_us;

    call = ngx_ron_ipc_unit(unit, left, ngx_http_ron_wallet_answer, ctx,
                            &too_long);

    if (call == NULL) {
        ngx_http_ron_nonce_drop(r, ctx);

        return ngx_http_ron_refuse(r, too_long ? RON_REASON_TOO_LARGE
                                               : RON_REASON_BUSY,
                                   NULL, NULL);
    }

    return ngx_http_ron_wait(r, ctx, call);
}


static void
ngx_http_ron_wallet_answer(void *data, ngx_int_t rc, ron_frame_type_t type,
    ron_str_t payload)
{
    ngx_http_ron_ctx_t *ctx = data;

    ctx->call = NULL;

    ngx_http_ron_breaker_tell(ctx, rc == NGX_OK);

    if (rc != NGX_OK) {
        rc = ngx_http_ron_unanswered(ctx->request, rc);

    } else if (type != RON_FRAME_OUTCOME) {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else {
        rc = ngx_http_ron_wallet_reply(ctx->request, ctx, payload);
    }

    ngx_http_ron_done(ctx, rc);
}


static ngx_int_t
ngx_http_ron_wallet_reply(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_str_t payload)
{
    uint16_t              status;
    ron_buf_t            *buf;
    ron_status_t          rc;
    ngx_uint_t            proof;
    ron_outcome_t         outcome;
    ron_api_error_t       err;
    ron_msg_batch_t       batch;
    ngx_http_ron_task_t  *task;

    static ngx_str_t      replayed = ngx_string("true");

    if (ron_msg_outcome_get(payload, &batch, &outcome,
                            ngx_http_ron_wallet_results, RON_API_BATCH_MAX)
        != RON_OK)
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "ron: the helper's outcome is malformed");
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_ron_trace_outcome(ctx, &outcome);
    ngx_http_ron_nonce_tell(r, ctx, &outcome);

    buf = ngx_http_ron_scratch();
    status = NGX_HTTP_OK;

    if (ctx->number == RON_API_BATCH) {
        rc = ron_api_batch_answer(buf, &outcome, &status, &err);

    } else {
        rc = ron_api_wallet_answer(buf, &outcome, &err);
    }

    if (rc == RON_EINVAL) {
        return ngx_http_ron_problem(r, &err);
    }

    if (rc != RON_OK) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "ron: no receipt can be made: %s", ron_status_name(rc));
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_ron_trace_receipt(ctx, buf);

    proof = ngx_http_ron_wallet_proof(ctx)
            && ctx->number != RON_API_BATCH;

    if (outcome.replayed) {
        ngx_ron_count(RON_M_WALLET_REPLAYS, 0, 0, 0, 0);
        ngx_ron_count(RON_M_WALLET_REPLAYS_LONG, 0, 0, 0, 0);

        if (ngx_http_ron_header(r, "Idempotent-Replayed", &replayed)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (proof) {
        task = ngx_http_ron_task(r, ctx, ngx_http_ron_wallet_proof_work);

        if (task) {
            task->a = outcome.results[0].seq;

            return ngx_http_ron_task_post(r, task);
        }

        /* it is committed: a receipt without its proof is better than none */
    }

    return ngx_http_ron_json(r, status, buf);
}


static ngx_uint_t
ngx_http_ron_wallet_proof(ngx_http_ron_ctx_t *ctx)
{
    return ron_str_eq(ron_api_arg(ctx->args, ctx->args_n, ron_str("proof")),
                      ron_str("1"));
}


static ron_status_t
ngx_http_ron_wallet_proof_work(ngx_http_ron_task_t *task)
{
    return ron_api_receipt_proof(task->store, task->reader, task->a,
                                 &task->out);
}


/*
 * What the zone has.  While the helper beats, nothing newer is durable, so a
 * balance is right as of the last beat, however long ago it was published;
 * when the helper's state is another, only as of its publication.
 */

static ngx_uint_t
ngx_http_ron_wallet_cached(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_cached_t *c)
{
    uint64_t             now_us, now_ms;
    ron_str_t            account, asset;
    ron_beat_t           beat;
    ron_zone_t          *zone;
    ngx_uint_t           running;
    ron_zone_balance_t   cached;

    ngx_http_ron_limit_main_conf_t  *lmcf;

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_limit_module);

    ngx_memzero(c, sizeof(ngx_http_ron_cached_t));

    zone = ngx_http_ron_zone(r);
    now_us = ron_clock_mono_us();
    now_ms = ron_clock_wall_ms();

    account = ron_api_arg(ctx->args, ctx->args_n, ron_str("account"));
    asset = ron_api_arg(ctx->args, ctx->args_n, ron_str("asset"));

    c->silent = UINT64_MAX;
    running = 0;

    if (ron_zone_beat_read(zone, &beat) == RON_OK && beat.generation
        && now_us >= beat.beat_us)
    {
        c->silent = (now_us - beat.beat_us) / 1000;
        running = beat.state == RON_STATE_RUNNING;
    }

    if (ron_zone_balance_get(zone, account, asset, &cached, now_ms)
        != RON_OK)
    {
        return 0;
    }

    c->balance.found = true;
    c->balance.available = cached.available;
    c->balance.held = cached.held;
    c->balance.nonce = cached.nonce;
    c->balance.version = cached.version;

    c->stale = now_ms > cached.as_of_ms ? now_ms - cached.as_of_ms : 0;

    if (running && c->silent < c->stale) {
        c->stale = c->silent;
    }

    c->as_of = now_ms - c->stale;
    c->live = running
              && c->silent
                 <= lmcf->stale;

    return 1;
}


/*
 * From the zone while the helper lives and beats, else from the sequencer,
 * else what the zone had last, which says how old it is.  Who has something
 * to fall back on does not wait long, and not at all for a helper that has
 * said nothing for longer than anybody may.
 */

ngx_int_t
ngx_http_ron_wallet_balance(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_str_t               account, asset;
    ngx_msec_t              left;
    ngx_uint_t              found, ask;
    ron_api_error_t         err;
    ngx_ron_call_t         *call;
    ngx_http_ron_cached_t   cached;

    account = ron_api_arg(ctx->args, ctx->args_n, ron_str("account"));
    asset = ron_api_arg(ctx->args, ctx->args_n, ron_str("asset"));

    if (!ron_account_valid(account)) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "an account is needed", "account");
    }

    if (!ron_asset_valid(asset)) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "an asset is needed", "asset");
    }

    if (ngx_http_ron_limit_read(r, ctx, account, asset, &err) != RON_OK) {
        return ngx_http_ron_problem(r, &err);
    }

    if (ngx_http_ron_remote_ledger(r)) {
        return ngx_http_ron_remote_read(r, ctx, "ops/balance");
    }

    found = ngx_http_ron_wallet_cached(r, ctx, &cached);
    left = ngx_http_ron_time_left(ctx);
    ask = !found;

    if (found && !cached.live) {
        left = ngx_min(left, ron_timeout_info(RON_TIMEOUT_BALANCE_ASK)->ms);
        ask = ngx_ron_ipc_state() != RON_STATE_STARTING
              && cached.silent
                 <= ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle)
                    ->committer_lag;
    }

    if (ask && left) {

        call = ngx_ron_ipc_balance(account, asset, left,
                                   ngx_http_ron_wallet_balance_answer, ctx);
        if (call) {
            return ngx_http_ron_wait(r, ctx, call);
        }
    }

    if (found) {
        return ngx_http_ron_wallet_balance_reply(r, ctx, &cached.balance,
                                                 cached.as_of, cached.stale);
    }

    return ngx_http_ron_unanswered(r, NGX_DECLINED);
}


static void
ngx_http_ron_wallet_balance_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload)
{
    ngx_http_ron_ctx_t *ctx = data;

    ngx_http_request_t     *r;
    ron_msg_balance_t       balance;
    ngx_http_ron_cached_t   cached;

    ctx->call = NULL;
    r = ctx->request;

    if (rc == NGX_OK
        && (type != RON_FRAME_BALANCE_IS
            || ron_msg_balance_get(payload, &balance) != RON_OK))
    {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else if (rc == NGX_OK && !balance.unavailable) {
        rc = ngx_http_ron_wallet_balance_reply(r, ctx, &balance,
                                               ron_clock_wall_ms(), 0);

    } else if (ngx_http_ron_wallet_cached(r, ctx, &cached)) {
        rc = ngx_http_ron_wallet_balance_reply(r, ctx, &cached.balance,
                                               cached.as_of, cached.stale);

    } else {

        /* reading changes nothing: nothing is unknown */

        rc = ngx_http_ron_unanswered(r, NGX_DECLINED);
    }

    ngx_http_ron_done(ctx, rc);
}


static ngx_int_t
ngx_http_ron_wallet_balance_reply(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_msg_balance_t *balance, uint64_t as_of,
    uint64_t stale)
{
    ron_buf_t   *buf;
    ron_str_t    account, asset;
    ngx_uint_t   same;

    account = ron_api_arg(ctx->args, ctx->args_n, ron_str("account"));
    asset = ron_api_arg(ctx->args, ctx->args_n, ron_str("asset"));

    if (ngx_http_ron_etag(r, ctx, balance->version, &same) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (same) {
        return ngx_http_ron_not_modified(r);
    }

    buf = ngx_http_ron_scratch();

    if (ron_api_balance_answer(buf, account, asset, balance, as_of, stale)
        != RON_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_json(r, NGX_HTTP_OK, buf);
}


/*
 * "Unknown" is final when no request under the key can be executed any more.
 * The sequencer refuses what comes after its deadline, and only the client
 * knows when it sent its last request: `age` says so many milliseconds ago.
 */

ngx_int_t
ngx_http_ron_wallet_outcome(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t          age;
    ngx_ron_sh_t     *sh;
    ron_str_t         account;
    ngx_msec_t        left;
    ron_api_error_t   err;
    ngx_ron_call_t   *call;

    account = ron_api_arg(ctx->args, ctx->args_n, ron_str("account"));

    if (!ron_account_valid(account)) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "an account is needed", "account");
    }

    if (ngx_http_ron_arg_u64(ctx, "age", 0, &age) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "not a number of milliseconds", "age");
    }

    if (ngx_http_ron_limit_read(r, ctx, account, ron_null_str, &err)
        != RON_OK)
    {
        return ngx_http_ron_problem(r, &err);
    }

    if (ngx_http_ron_remote_ledger(r)) {
        return ngx_http_ron_remote_read(r, ctx, "ops/outcome");
    }

    sh = ngx_ron_shared((ngx_cycle_t *) ngx_cycle);

    ctx->final = sh && age >= sh->deadline_max
                              + ron_timeout_info(RON_TIMEOUT_TRANSIT)->ms;

    left = ngx_http_ron_time_left(ctx);

    if (left == 0) {
        return ngx_http_ron_unanswered(r, NGX_DECLINED);
    }

    call = ngx_ron_ipc_lookup(account, ngx_ron_str(&ctx->idem_key), left,
                              ngx_http_ron_wallet_outcome_answer, ctx);
    if (call == NULL) {
        return ngx_http_ron_refuse(r, RON_REASON_BUSY, NULL, NULL);
    }

    return ngx_http_ron_wait(r, ctx, call);
}


static void
ngx_http_ron_wallet_outcome_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload)
{
    ngx_http_ron_ctx_t *ctx = data;

    ron_buf_t         *buf;
    ron_msg_lookup_t   lookup;

    ctx->call = NULL;

    if (rc != NGX_OK) {
        rc = ngx_http_ron_unanswered(ctx->request, NGX_DECLINED);
        goto done;
    }

    rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    if (type != RON_FRAME_LOOKUP_IS
        || ron_msg_lookup_get(payload, &lookup) != RON_OK)
    {
        goto done;
    }

    buf = ngx_http_ron_scratch();

    switch (ron_api_outcome_answer(buf, &lookup, ctx->final)) {

    case RON_OK:
        rc = ngx_http_ron_json(ctx->request, NGX_HTTP_OK, buf);
        break;

    case RON_AGAIN:
        rc = ngx_http_ron_refuse(ctx->request, RON_REASON_RETRY_LATER,
                                 "the ledger cannot tell now", NULL);
        break;

    default:
        break;
    }

done:

    ngx_http_ron_done(ctx, rc);
}


ngx_int_t
ngx_http_ron_wallet_tx(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t              time_ms, seq;
    uint16_t              ledger_id;
    ngx_http_ron_task_t  *task;

    if (ron_txid_parse(ngx_ron_str(&ctx->path), &time_ms, &ledger_id, &seq)
        != RON_OK)
    {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "not a transaction id", "txid");
    }

    if (ngx_http_ron_remote_ledger(r)) {
        return ngx_http_ron_remote_read(r, ctx, "ops/tx/");
    }

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_wallet_tx_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    task->a = seq;
    task->b = time_ms;
    task->c = ledger_id;
    task->flag = ngx_http_ron_wallet_proof(ctx);
    task->after = ngx_http_ron_wallet_tx_after;

    return ngx_http_ron_task_post(r, task);
}


/* The entry's bytes go into `more`; in the thread nobody knows the token. */

static ron_status_t
ngx_http_ron_wallet_tx_work(ngx_http_ron_task_t *task)
{
    ron_entry_t   e;
    ron_status_t  rc;

    rc = ron_api_entry_read(task->reader, task->a, &task->more, &e);

    if (rc == RON_ENOTFOUND
        || (rc == RON_OK
            && (e.time_ms != task->b || e.ledger_id != task->c
                || !(e.fields & RON_F_WALLET))))
    {
        return ngx_http_ron_task_refuse(task, RON_REASON_NOT_FOUND,
                                        "there is no such transaction");
    }

    if (rc != RON_OK) {
        return rc;
    }

    return task->flag ? ron_api_receipt_proof(task->store, task->reader,
                                              task->a, &task->out)
                      : ron_receipt_put(&e, &task->out);
}


static ngx_int_t
ngx_http_ron_wallet_tx_after(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_task_t *task)
{
    ron_entry_t      e;
    ron_api_error_t  err;

    if (ron_entry_decode(ron_buf_str(&task->more), &e) != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* whoever may read one side may have the receipt */

    if (ngx_http_ron_limit_read(r, ctx, e.account, e.asset, &err) != RON_OK
        && (!(e.fields & RON_F_TO)
            || ngx_http_ron_limit_read(r, ctx, e.to, e.asset, &err) != RON_OK))
    {
        return ngx_http_ron_problem(r, &err);
    }

    return ngx_http_ron_json(r, NGX_HTTP_OK, &task->out);
}


static char *
ngx_http_ron_wallet(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_ron_set_service(cf, &ngx_http_ron_wallet_service);
}
