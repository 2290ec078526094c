
#include "ngx_http_ron_ingress.h"
#include "ngx_http_ron_limit.h"
#include "ngx_http_ron_remote.h"
#include "ngx_http_ron_stream.h"
#include "ron_port.h"
#include "ron_receipt.h"


/* Proofs make receipts four times as long: with more than this, none. */
#define NGX_HTTP_RON_WALLET_PROOFS  (6 * 1024 * 1024)

/* A beat that is further ahead of us is none, us. */
#define NGX_HTTP_RON_WALLET_AHEAD  1000000


static ngx_int_t ngx_http_ron_wallet_post(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ron_status_t ngx_http_ron_wallet_parse(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_api_error_t *err);
static ron_status_t ngx_http_ron_wallet_match(ngx_http_ron_ctx_t *ctx,
    ron_unit_t *unit, ron_api_error_t *err);
static ngx_int_t ngx_http_ron_wallet_send(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_unit_t *unit);
static void ngx_http_ron_wallet_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static ngx_int_t ngx_http_ron_wallet_reply(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t payload);
static uint64_t ngx_http_ron_wallet_newest(const ron_outcome_t *outcome);
static ngx_uint_t ngx_http_ron_wallet_entries(const ron_outcome_t *outcome);
static ngx_http_ron_task_t *ngx_http_ron_wallet_proof_task(
    ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    const ron_outcome_t *outcome, uint16_t status, ron_str_t payload);
static ron_status_t ngx_http_ron_wallet_batch_work(
    ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_wallet_batch_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_wallet_hold(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_entry_t *op);
static ron_status_t ngx_http_ron_wallet_hold_work(ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_wallet_hold_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task);
static void ngx_http_ron_wallet_balance_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
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
    ron_unit_t      *unit;
    ron_status_t     rc;
    ron_api_body_t  *body;
    ron_api_error_t  err;

    body = ngx_http_ron_ingress_parsed(ctx);

    if (body) {
        unit = &body->api.unit;
        err = body->err;
        rc = body->rc;

    } else {
        unit = &ngx_http_ron_wallet_api.unit;
        rc = ngx_http_ron_wallet_parse(r, ctx, &err);
    }

    if (rc == RON_OK && ctx->if_match.data) {
        rc = ngx_http_ron_wallet_match(ctx, unit, &err);
    }

    if (rc == RON_EINVAL) {
        return ngx_http_ron_problem(r, &err);
    }

    if (rc != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->number = ctx->route->number;

    return ngx_http_ron_wallet_unit(r, ctx, RON_CAP_SVC_WALLET, unit);
}


static ron_status_t
ngx_http_ron_wallet_parse(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_api_error_t *err)
{
    ron_api_limits_t           limits;
    ngx_http_ron_loc_conf_t   *rlcf;
    ngx_http_ron_main_conf_t  *rmcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);
    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    limits = *rmcf->limits;
    limits.nonce_strict = rlcf->nonce;

    /* what was compressed may be longer than a body, and has its own bound */

    ngx_http_ron_wallet_api.body_max = ctx->gzip ? ctx->body.len : 0;

    return ron_api_wallet_parse(&ngx_http_ron_wallet_api, ctx->route->number,
                                ctx->body, ngx_ron_str(&ctx->idem_key),
                                &limits, err);
}


static ron_status_t
ngx_http_ron_wallet_match(ngx_http_ron_ctx_t *ctx, ron_unit_t *unit,
    ron_api_error_t *err)
{
    bool  any;

    /* NGINX refuses two lines of it by itself */

    switch (ron_api_if_match(ngx_ron_str(&ctx->if_match), &any,
                             &unit->match))
    {

    case RON_OK:
        unit->has_match = !any;
        return RON_OK;

    case RON_ENOTFOUND:
        return ron_api_refuse(err, RON_REASON_PRECONDITION,
                              "no version of an account has such a tag",
                              "If-Match");

    case RON_ERANGE:
        return ron_api_refuse(err, RON_REASON_MALFORMED,
                              "If-Match must name one version",
                              "If-Match");

    default:
        return ron_api_refuse(err, RON_REASON_MALFORMED,
                              "If-Match must be \"<version>\", as the ETag "
                              "of a balance says it, or *", "If-Match");
    }
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
    ngx_http_ron_context_unit(r, ctx, unit);

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
            return ngx_http_ron_wallet_hold(r, ctx, &unit->ops[0]);
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
    ron_entry_t *op)
{
    ngx_http_ron_task_t  *task;

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_wallet_hold_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    task->a = op->ref;
    task->b = op->time_ms;
    task->c = op->ledger_id;
    task->after = ngx_http_ron_wallet_hold_after;

    return ngx_http_ron_task_post(r, task);
}


static ron_status_t
ngx_http_ron_wallet_hold_work(ngx_http_ron_task_t *task)
{
    ron_entry_t   e;
    ron_status_t  rc;

    rc = ron_api_entry_read(task->reader, task->a, &task->more, &e);

    if (rc == RON_ENOTFOUND
        || (rc == RON_OK
            && (e.kind != RON_KIND_HOLD || e.time_ms != task->b
                || e.ledger_id != task->c)))
    {
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
    uint64_t         now_us;
    ngx_int_t        rc;
    ngx_msec_t       left;
    ngx_uint_t       too_long;
    ngx_ron_call_t  *call;

    now_us = ron_clock_mono_us();
    left = ngx_http_ron_time_left_at(ctx, now_us);

    if (left == 0) {
        return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                   "the deadline has passed", NULL);
    }

    rc = ngx_http_ron_nonce_ask(r, ctx, unit);

    if (rc != NGX_OK || ctx->replied) {
        return rc;
    }

    if (ngx_http_ron_breaker_ask(r, ctx, now_us) != NGX_OK) {
        ngx_http_ron_nonce_drop(r, ctx);

        return ngx_http_ron_refuse(r, RON_REASON_UPSTREAM,
                                   "the ledger did not answer too often, it "
                                   "is left alone for a while", NULL);
    }

    unit->source_us = (uint64_t) r->start_sec * 1000000
                      + r->start_msec * 1000;
    unit->deadline_us = ctx->deadline_us;
    unit->corr = ngx_ron_str(&ctx->corr_id);

    call = ngx_ron_ipc_unit(unit, left, ngx_http_ron_wallet_answer, ctx,
                            &too_long);

    if (call == NULL) {
        ngx_http_ron_breaker_drop(ctx);
        ngx_http_ron_nonce_drop(r, ctx);

        return ngx_http_ron_refuse(r, too_long ? RON_REASON_TOO_LARGE
                                               : RON_REASON_BUSY,
                                   NULL, NULL);
    }

    ngx_http_ron_checks_until(ctx, now_us);

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
        ngx_http_ron_burst_hold(ctx);
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
    ron_entry_t           e;
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

    buf = ngx_http_ron_scratch();
    status = NGX_HTTP_OK;

    if (ctx->number == RON_API_BATCH) {
        rc = ron_api_batch_answer(buf, &outcome, NULL, &status, &err);

    } else {
        rc = ron_api_wallet_answer(buf, &outcome, &e, &err);
        ngx_http_ron_nonce_tell(r, ctx, &outcome, rc == RON_OK ? &e : NULL);

        if (rc == RON_OK) {
            ngx_http_ron_context_entry(ctx, &e);
        }
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

    if (ngx_http_ron_bus_tell(r, ngx_http_ron_wallet_newest(&outcome))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (outcome.replayed) {
        ngx_ron_count(RON_M_WALLET_REPLAYS, 0, 0, 0, 0);
        ngx_ron_count(RON_M_WALLET_REPLAYS_LONG, 0, 0, 0, 0);

        if (ngx_http_ron_header(r, "Idempotent-Replayed", &replayed)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

    } else {
        ngx_http_ron_count_ops(ctx, ngx_http_ron_wallet_entries(&outcome));
    }

    if (ngx_http_ron_wallet_proof(ctx)) {
        task = ngx_http_ron_wallet_proof_task(r, ctx, &outcome, status,
                                              payload);
        if (task && ngx_http_ron_task_try(r, task) == NGX_DONE) {
            return NGX_DONE;
        }

        /* it is committed: a receipt without its proof is better than none */
    }

    return ngx_http_ron_json(r, status, buf);
}


static uint64_t
ngx_http_ron_wallet_newest(const ron_outcome_t *outcome)
{
    uint32_t  i;
    uint64_t  seq;

    seq = 0;

    for (i = 0; i < outcome->result_n; i++) {
        seq = ngx_max(seq, outcome->results[i].seq);
    }

    return seq;
}


static ngx_uint_t
ngx_http_ron_wallet_entries(const ron_outcome_t *outcome)
{
    uint32_t    i;
    ngx_uint_t  n;

    n = 0;

    for (i = 0; i < outcome->result_n; i++) {
        n += outcome->results[i].reason == RON_REASON_OK;
    }

    return n;
}


ngx_uint_t
ngx_http_ron_wallet_proof(ngx_http_ron_ctx_t *ctx)
{
    return ron_str_eq(ron_api_arg(ctx->args, ctx->args_n, ron_str("proof")),
                      ron_str("1"));
}


/* A batch's outcome goes with the task: the answer is made again there. */

static ngx_http_ron_task_t *
ngx_http_ron_wallet_proof_task(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    const ron_outcome_t *outcome, uint16_t status, ron_str_t payload)
{
    ngx_http_ron_task_t  *task;

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_wallet_proof_work);
    if (task == NULL) {
        return NULL;
    }

    task->a = outcome->results[0].seq;

    if (ctx->number == RON_API_BATCH) {
        task->b = status;
        task->work = ngx_http_ron_wallet_batch_work;
        task->after = ngx_http_ron_wallet_batch_after;

        ron_buf_put_str(&task->more, payload);

        if (ron_buf_status(&task->more) != RON_OK) {
            return NULL;
        }
    }

    return task;
}


ron_status_t
ngx_http_ron_wallet_proof_work(ngx_http_ron_task_t *task)
{
    ron_digest_t  digest;

    digest = ron_store_meta(task->store)->digest;

    return ron_api_receipt_proof(task->store, task->reader,
                                 ngx_http_ron_proof_cache(digest), task->a,
                                 &task->out);
}


static ron_status_t
ngx_http_ron_wallet_batch_work(ngx_http_ron_task_t *task)
{
    ron_digest_t  digest;

    digest = ron_store_meta(task->store)->digest;

    return ron_api_batch_proof(task->store, task->reader,
                               ngx_http_ron_proof_cache(digest),
                               ron_buf_str(&task->more),
                               NGX_HTTP_RON_WALLET_PROOFS, &task->out);
}


static ngx_int_t
ngx_http_ron_wallet_batch_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task)
{
    return ngx_http_ron_json(r, task->b, &task->out);
}


/*
 * What the zone has.  While the helper beats, nothing newer is durable, so a
 * balance is right as of the last beat, however long ago it was published;
 * when the helper's state is another, only as of its publication.
 */

static ngx_uint_t
ngx_http_ron_wallet_cached(ngx_http_request_t *r, ron_str_t account,
    ron_str_t asset, uint64_t now_us, ngx_http_ron_cached_t *c)
{
    uint64_t             now_ms;
    ngx_time_t          *tp;
    ron_zone_t          *zone;
    ngx_uint_t           running;
    ron_zone_balance_t   cached;

    /* a worker's own: one beat is read by many requests */

    static ron_beat_t    beat;

    ngx_http_ron_limit_main_conf_t  *lmcf;

    lmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_limit_module);

    ngx_memzero(c, sizeof(ngx_http_ron_cached_t));

    zone = ngx_http_ron_zone(r);
    tp = ngx_timeofday();
    now_ms = (uint64_t) tp->sec * 1000 + tp->msec;

    c->silent = UINT64_MAX;
    running = 0;
    c->foreign = ngx_ron_ipc_helper() != 0;

    /* a beat may be newer than the request, if only by so much */

    if ((ron_zone_beat_same(zone, &beat)
         || ron_zone_beat_read(zone, &beat) == RON_OK)
        && beat.generation
        && now_us + NGX_HTTP_RON_WALLET_AHEAD >= beat.beat_us)
    {
        c->silent = now_us > beat.beat_us
                    ? (now_us - beat.beat_us + 999) / 1000 : 0;
        running = beat.state == RON_STATE_RUNNING;
        c->foreign = c->foreign
                     && beat.pid != (uint64_t) ngx_ron_ipc_helper();
    }

    if (ron_zone_balance_get(zone, account, asset, &cached, now_ms) != RON_OK) {
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
 *
 * With a binary upgrade the helper that we are connected to may be another
 * master's, which writes another zone: then ours says nothing about it, and
 * it is asked for as long as a committer may take that lives.
 */

ngx_int_t
ngx_http_ron_wallet_balance(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_str_t               account, asset;
    ngx_msec_t              left, lag;
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

    if (ngx_http_ron_remote_ledger(r) != NULL) {
        return ngx_http_ron_follow_balance(r, ctx);
    }

    ctx->seq = ngx_http_ron_bus_seq(r);

    found = ngx_http_ron_wallet_cached(r, account, asset, ctx->begin_us,
                                       &cached);
    left = found && cached.live ? 0 : ngx_http_ron_time_left(ctx);
    ask = !found;

    if (found && !cached.live) {
        lag = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle)->committer_lag;
        left = ngx_min(left, cached.foreign
                             ? lag
                             : ron_timeout_info(RON_TIMEOUT_BALANCE_ASK)->ms);
        ask = ngx_ron_ipc_state() != RON_STATE_STARTING
              && (cached.foreign || cached.silent <= lag);
    }

    if (ask && left) {

        call = ngx_ron_ipc_balance(account, asset, left,
                                   ngx_http_ron_wallet_balance_answer, ctx);
        if (call) {
            return ngx_http_ron_wait(r, ctx, call);
        }
    }

    if (found) {
        return ngx_http_ron_wallet_balance_reply(r, ctx, account, asset,
                                                 &cached);
    }

    return ngx_http_ron_unanswered(r, NGX_DECLINED);
}


static void
ngx_http_ron_wallet_balance_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload)
{
    ngx_http_ron_ctx_t *ctx = data;

    ron_str_t               account, asset;
    ngx_http_request_t     *r;
    ngx_http_ron_cached_t   cached;

    ctx->call = NULL;
    r = ctx->request;

    account = ron_api_arg(ctx->args, ctx->args_n, ron_str("account"));
    asset = ron_api_arg(ctx->args, ctx->args_n, ron_str("asset"));

    ngx_memzero(&cached, sizeof(ngx_http_ron_cached_t));

    if (rc == NGX_OK
        && (type != RON_FRAME_BALANCE_IS
            || ron_msg_balance_get(payload, &cached.balance) != RON_OK))
    {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else if (rc == NGX_OK && !cached.balance.unavailable) {
        cached.as_of = ron_clock_wall_ms();
        rc = ngx_http_ron_wallet_balance_reply(r, ctx, account, asset,
                                               &cached);

    } else if (ngx_http_ron_wallet_cached(r, account, asset,
                                          ron_clock_mono_us(), &cached))
    {
        rc = ngx_http_ron_wallet_balance_reply(r, ctx, account, asset,
                                               &cached);

    } else {

        /* reading changes nothing: nothing is unknown */

        rc = ngx_http_ron_unanswered(r, NGX_DECLINED);
    }

    ngx_http_ron_done(ctx, rc);
}


ngx_int_t
ngx_http_ron_wallet_balance_reply(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t account, ron_str_t asset,
    ngx_http_ron_cached_t *c)
{
    ron_buf_t   *buf;
    ngx_uint_t   same;

    if (ngx_http_ron_etag(r, ctx, c->balance.version, &same) != NGX_OK
        || ngx_http_ron_bus_tell(r, ctx->seq) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (same) {
        return ngx_http_ron_not_modified(r);
    }

    buf = ngx_http_ron_scratch();

    if (ron_api_balance_answer(buf, account, asset, &c->balance, c->as_of,
                               c->stale)
        != RON_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_json(r, NGX_HTTP_OK, buf);
}


static char *
ngx_http_ron_wallet(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_ron_set_service(cf, &ngx_http_ron_wallet_service);
}
