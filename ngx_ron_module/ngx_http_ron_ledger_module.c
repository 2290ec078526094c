
#include "ngx_http_ron_ingress.h"
#include "ngx_http_ron_limit.h"
#include "ngx_http_ron_snapshot.h"
#include "ngx_http_ron_stream.h"
#include "ron_receipt.h"


#define NGX_HTTP_RON_ROOTS      100
#define NGX_HTTP_RON_ROOTS_MAX  1000


static ngx_int_t ngx_http_ron_ledger_ingest(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static void ngx_http_ron_ledger_ingest_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static ngx_int_t ngx_http_ron_ledger_ingest_reply(ngx_http_request_t *r,
    ron_str_t payload);
static ngx_int_t ngx_http_ron_ledger_roots(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ron_status_t ngx_http_ron_ledger_roots_work(
    ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_ledger_checkpoint(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ron_status_t ngx_http_ron_ledger_checkpoint_work(
    ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_ledger_consistency(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ron_status_t ngx_http_ron_ledger_consistency_work(
    ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_ledger_tile(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ron_status_t ngx_http_ron_ledger_tile_work(ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_ledger_entry(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ron_status_t ngx_http_ron_ledger_entry_work(
    ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_ledger_entry_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_ledger_entries(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ron_status_t ngx_http_ron_ledger_entries_work(
    ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_ledger_entries_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_ledger_account(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static ngx_int_t ngx_http_ron_ledger_account_next(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static void ngx_http_ron_ledger_account_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static ngx_int_t ngx_http_ron_ledger_account_entries(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t account);
static ron_status_t ngx_http_ron_ledger_account_work(
    ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_ledger_admin(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);
static void ngx_http_ron_ledger_admin_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static char *ngx_http_ron_ledger(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


/* what is asked of the helper by POST /admin/... */

#define NGX_HTTP_RON_ADMIN_SAFE  0


static ngx_http_ron_route_t  ngx_http_ron_ledger_routes[] = {

    { ngx_string("ingest"), NGX_HTTP_POST,
      NGX_HTTP_RON_JSON|NGX_HTTP_RON_LINES|NGX_HTTP_RON_WRITE,
      RON_CAP_ACT_INGEST, 0,
      ngx_http_ron_ledger_ingest, RON_D_ROUTE_LEDGER_INGEST },

    { ngx_string("ops"), NGX_HTTP_POST,
      NGX_HTTP_RON_JSON|NGX_HTTP_RON_WRITE, 0, 0,
      ngx_http_ron_ops, RON_D_ROUTE_LEDGER_OPS },

    { ngx_string("ops/balance"), NGX_HTTP_GET, 0, RON_CAP_ACT_READ, 0,
      ngx_http_ron_wallet_balance, RON_D_ROUTE_LEDGER_OPS },

    { ngx_string("ops/outcome"), NGX_HTTP_GET, NGX_HTTP_RON_KEY,
      RON_CAP_ACT_READ, 0,
      ngx_http_ron_wallet_outcome, RON_D_ROUTE_LEDGER_OPS },

    { ngx_string("ops/tx/"), NGX_HTTP_GET, NGX_HTTP_RON_PREFIX,
      RON_CAP_ACT_READ, 0,
      ngx_http_ron_wallet_tx, RON_D_ROUTE_LEDGER_OPS },

    { ngx_string("roots"), NGX_HTTP_GET, NGX_HTTP_RON_OPEN, 0, 0,
      ngx_http_ron_ledger_roots, RON_D_ROUTE_LEDGER_ROOTS },

    { ngx_string("roots/stream"), NGX_HTTP_GET, NGX_HTTP_RON_OPEN, 0, 0,
      ngx_http_ron_roots_stream, RON_D_ROUTE_LEDGER_ROOTS_STREAM },

    { ngx_string("bus"), NGX_HTTP_GET, NGX_HTTP_RON_OPEN, 0, 0,
      ngx_http_ron_bus_stream, RON_D_ROUTE_LEDGER_BUS },

    { ngx_string("checkpoint"), NGX_HTTP_GET, NGX_HTTP_RON_OPEN, 0, 0,
      ngx_http_ron_ledger_checkpoint, RON_D_ROUTE_LEDGER_CHECKPOINT },

    { ngx_string("proof/inclusion"), NGX_HTTP_GET, NGX_HTTP_RON_OPEN, 0, 0,
      ngx_http_ron_proof_inclusion, RON_D_ROUTE_LEDGER_PROOF_INCLUSION },

    { ngx_string("proof/consistency"), NGX_HTTP_GET, NGX_HTTP_RON_OPEN, 0, 0,
      ngx_http_ron_ledger_consistency,
      RON_D_ROUTE_LEDGER_PROOF_CONSISTENCY },

    { ngx_string("tile/"), NGX_HTTP_GET,
      NGX_HTTP_RON_OPEN|NGX_HTTP_RON_PREFIX, 0, 0,
      ngx_http_ron_ledger_tile, RON_D_ROUTE_LEDGER_TILE },

    { ngx_string("entries"), NGX_HTTP_GET, 0, RON_CAP_ACT_READ, 0,
      ngx_http_ron_ledger_entries, RON_D_ROUTE_LEDGER_ENTRIES },

    { ngx_string("entries/"), NGX_HTTP_GET, NGX_HTTP_RON_PREFIX,
      RON_CAP_ACT_READ, 0,
      ngx_http_ron_ledger_entry, RON_D_ROUTE_LEDGER_ENTRY },

    { ngx_string("accounts/"), NGX_HTTP_GET, NGX_HTTP_RON_PREFIX,
      RON_CAP_ACT_READ, 0,
      ngx_http_ron_ledger_account, RON_D_ROUTE_LEDGER_ACCOUNT },

    { ngx_string("admin/drain"), NGX_HTTP_POST, 0, RON_CAP_ACT_ADMIN,
      RON_ADMIN_DRAIN,
      ngx_http_ron_ledger_admin, RON_D_ROUTE_LEDGER_ADMIN_DRAIN },

    { ngx_string("admin/safe-mode"), NGX_HTTP_POST, NGX_HTTP_RON_JSON,
      RON_CAP_ACT_ADMIN, NGX_HTTP_RON_ADMIN_SAFE,
      ngx_http_ron_ledger_admin, RON_D_ROUTE_LEDGER_ADMIN_SAFE },

    { ngx_string("admin/snapshot"), NGX_HTTP_POST, 0, RON_CAP_ACT_ADMIN, 0,
      ngx_http_ron_snapshot, RON_D_ROUTE_LEDGER_ADMIN_SNAPSHOT },

    { ngx_string("admin/snapshot"), NGX_HTTP_GET, 0, RON_CAP_ACT_ADMIN, 0,
      ngx_http_ron_snapshot, RON_D_ROUTE_LEDGER_ADMIN_SNAPSHOT },

    { ngx_null_string, 0, 0, 0, 0, NULL, 0 }
};


static ngx_http_ron_service_t  ngx_http_ron_ledger_service = {
    ngx_string("ledger"),
    RON_CAP_SVC_LEDGER,
    RON_D_SERVICE_LEDGER,
    RON_D_ROUTE_LEDGER_OTHER,
    RON_ADMIT_INGRESS,
    ngx_http_ron_ledger_routes
};


static ngx_command_t  ngx_http_ron_ledger_commands[] = {

    { ngx_string("ron_ledger_api"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_ron_ledger,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_ron_ledger_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_ron_ledger_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_ledger_module_ctx,       /* module context */
    ngx_http_ron_ledger_commands,          /* module directives */
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


static ngx_str_t  ngx_http_ron_type_text = ngx_string("text/plain");
static ngx_str_t  ngx_http_ron_type_bytes =
    ngx_string("application/octet-stream");


/* a worker's */

static ron_api_t      ngx_http_ron_ledger_api;
static ron_buf_t      ngx_http_ron_ledger_cap;
static ron_result_t  *ngx_http_ron_ledger_results;


static ngx_int_t
ngx_http_ron_ledger_ingest(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    bool              unknown;
    ngx_msec_t        left;
    ron_unit_t       *unit;
    ngx_uint_t        too_long;
    ron_status_t      rc;
    ron_api_body_t   *body;
    ngx_ron_call_t   *call;
    ron_api_error_t   err;
    ron_api_policy_t  policy;

    body = ngx_http_ron_ingress_parsed(ctx);

    if (body) {
        unit = &body->api.unit;
        err = body->err;
        rc = body->rc;

    } else {
        unit = &ngx_http_ron_ledger_api.unit;
        rc = ron_api_ingest_parse(&ngx_http_ron_ledger_api, ctx->body, &err);
    }

    if (rc == RON_OK) {
        rc = ron_api_allow(ctx->cap, RON_CAP_SVC_LEDGER, unit,
                           &ngx_http_ron_ledger_cap, &unknown, &err);
    }

    if (rc == RON_OK) {
        ngx_http_ron_limit_policy(r, ctx, &policy);
        rc = ron_api_policy(&policy, ctx->cap, RON_CAP_ACT_INGEST, unit,
                            &unknown, &err);
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

    left = ngx_http_ron_time_left(ctx);

    if (left == 0) {
        return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                   "the deadline has passed", NULL);
    }

    unit->source_us = (uint64_t) r->start_sec * 1000000
                      + r->start_msec * 1000;
    unit->deadline_us = ctx->deadline_us;

    ngx_http_ron_trace_entry(ctx, unit->ops[0].id);

    call = ngx_ron_ipc_unit(unit, left, ngx_http_ron_ledger_ingest_answer,
                            ctx, &too_long);

    if (call == NULL) {
        return ngx_http_ron_refuse(r, too_long ? RON_REASON_TOO_LARGE
                                               : RON_REASON_BUSY,
                                   NULL, NULL);
    }

    return ngx_http_ron_wait(r, ctx, call);
}


static void
ngx_http_ron_ledger_ingest_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload)
{
    ngx_http_ron_ctx_t *ctx = data;

    ctx->call = NULL;

    if (rc != NGX_OK) {
        rc = ngx_http_ron_unanswered(ctx->request, rc);

    } else if (type != RON_FRAME_OUTCOME) {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else {
        ngx_http_ron_burst_hold(ctx);
        rc = ngx_http_ron_ledger_ingest_reply(ctx->request, payload);
    }

    ngx_http_ron_done(ctx, rc);
}


static ngx_int_t
ngx_http_ron_ledger_ingest_reply(ngx_http_request_t *r, ron_str_t payload)
{
    uint16_t         status;
    ron_buf_t       *buf;
    ron_status_t     rc;
    ron_outcome_t    outcome;
    ron_api_error_t  err;
    ron_msg_batch_t  batch;

    if (ngx_http_ron_ledger_results == NULL) {
        ngx_http_ron_ledger_results =
            ngx_alloc(RON_UNIT_OPS_MAX * sizeof(ron_result_t),
                      r->connection->log);

        if (ngx_http_ron_ledger_results == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (ron_msg_outcome_get(payload, &batch, &outcome,
                            ngx_http_ron_ledger_results, RON_UNIT_OPS_MAX)
        != RON_OK)
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "ron: the helper's outcome is malformed");
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_ron_trace_outcome(ngx_http_get_module_ctx(r, ngx_http_ron_module),
                               &outcome);

    buf = ngx_http_ron_scratch();

    rc = ron_api_ingest_answer(buf, &batch, &outcome, &status, &err);

    if (rc == RON_EINVAL) {
        return ngx_http_ron_problem(r, &err);
    }

    if (rc != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_json(r, status, buf);
}


static ngx_int_t
ngx_http_ron_ledger_roots(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t              since, limit;
    ngx_http_ron_task_t  *task;

    if (ngx_http_ron_arg_u64(ctx, "since", 0, &since) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED, "not a number",
                                   "since");
    }

    if (ngx_http_ron_arg_u64(ctx, "limit", NGX_HTTP_RON_ROOTS, &limit)
            != NGX_OK
        || limit == 0)
    {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED, "not a number",
                                   "limit");
    }

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_ledger_roots_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    task->a = since;
    task->b = ngx_min(limit, NGX_HTTP_RON_ROOTS_MAX);

    return ngx_http_ron_task_post(r, task);
}


static ron_status_t
ngx_http_ron_ledger_roots_work(ngx_http_ron_task_t *task)
{
    return ron_api_roots(task->reader, task->a, task->b, &task->out);
}


static ngx_int_t
ngx_http_ron_ledger_checkpoint(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx)
{
    ngx_http_ron_task_t  *task;

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_ledger_checkpoint_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    task->type = &ngx_http_ron_type_text;

    return ngx_http_ron_task_post(r, task);
}


static ron_status_t
ngx_http_ron_ledger_checkpoint_work(ngx_http_ron_task_t *task)
{
    ron_status_t  rc;

    rc = ron_api_checkpoint(task->store, task->reader, &task->out);

    if (rc == RON_ENOTFOUND) {
        return ngx_http_ron_task_refuse(task, RON_REASON_NOT_FOUND,
                                        "there is no checkpoint yet");
    }

    return rc;
}


/* What the tree does not have is the client's mistake, not ours. */

ron_status_t
ngx_http_ron_ledger_range(ron_api_error_t *err, ron_status_t rc)
{
    switch (rc) {

    case RON_ERANGE:
        return ron_api_refuse(err, RON_REASON_NOT_FOUND,
                              "the tree has no such size or leaf", NULL);

    case RON_ENOTFOUND:
        return ron_api_refuse(err, RON_REASON_NOT_FOUND, NULL, NULL);

    case RON_EINVAL:
        return ron_api_refuse(err, RON_REASON_MALFORMED, "not such a path",
                              NULL);

    default:
        return rc;
    }
}


static ngx_int_t
ngx_http_ron_ledger_consistency(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx)
{
    uint64_t              from, to;
    ngx_http_ron_task_t  *task;

    if (ngx_http_ron_arg_u64(ctx, "from", 0, &from) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED, "not a number",
                                   "from");
    }

    if (ngx_http_ron_arg_u64(ctx, "to", 0, &to) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED, "not a number",
                                   "to");
    }

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_ledger_consistency_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    task->a = from;
    task->b = to;

    return ngx_http_ron_task_post(r, task);
}


static ron_status_t
ngx_http_ron_ledger_consistency_work(ngx_http_ron_task_t *task)
{
    return ngx_http_ron_ledger_range(&task->err,
               ron_api_consistency(task->reader,
                                   ron_store_meta(task->store)->digest,
                                   task->a, task->b, &task->out));
}


static ngx_int_t
ngx_http_ron_ledger_tile(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ngx_http_ron_task_t  *task;

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_ledger_tile_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    /* the request outlives its task */

    ron_buf_put_str(&task->more, ngx_ron_str(&ctx->path));
    task->type = &ngx_http_ron_type_bytes;

    return ngx_http_ron_task_post(r, task);
}


static ron_status_t
ngx_http_ron_ledger_tile_work(ngx_http_ron_task_t *task)
{
    return ngx_http_ron_ledger_range(&task->err,
               ron_api_tile(task->reader,
                            ron_store_meta(task->store)->digest,
                            ron_buf_str(&task->more), &task->out));
}


static ngx_int_t
ngx_http_ron_ledger_entry(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t              seq;
    ngx_http_ron_task_t  *task;

    if (ron_api_u64(ngx_ron_str(&ctx->path), &seq) != RON_OK || seq == 0) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "not a sequence number", "seq");
    }

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_ledger_entry_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    task->a = seq;
    task->after = ngx_http_ron_ledger_entry_after;

    return ngx_http_ron_task_post(r, task);
}


static ron_status_t
ngx_http_ron_ledger_entry_work(ngx_http_ron_task_t *task)
{
    ron_entry_t   e;
    ron_status_t  rc;

    rc = ron_api_entry_read(task->reader, task->a, &task->more, &e);

    if (rc == RON_OK) {
        rc = ron_entry_put_json(&e, &task->out);
    }

    return ngx_http_ron_ledger_range(&task->err, rc);
}


static ngx_int_t
ngx_http_ron_ledger_entry_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task)
{
    ron_entry_t      e;
    ron_api_error_t  err;

    if (ron_entry_decode(ron_buf_str(&task->more), &e) != RON_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if ((!(e.fields & RON_F_ACCOUNT)
         || ngx_http_ron_limit_read(r, ctx, e.account, e.asset, &err) != RON_OK)
        && (!(e.fields & RON_F_TO)
            || ngx_http_ron_limit_read(r, ctx, e.to, e.asset, &err) != RON_OK))
    {
        return ngx_http_ron_problem(r, &err);
    }

    return ngx_http_ron_json(r, NGX_HTTP_OK, &task->out);
}


static ngx_int_t
ngx_http_ron_ledger_entries(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t              from, to;
    ron_api_error_t       err;
    ngx_http_ron_task_t  *task;

    /* this shows everybody's entries */

    if (ctx->cap->accounts_n || ctx->cap->assets_n) {
        return ngx_http_ron_refuse(r, RON_REASON_CAP_INVALID,
                                   "the capability is for some accounts or "
                                   "assets only", NULL);
    }

    if (ngx_http_ron_limit_read(r, ctx, ron_null_str, ron_null_str, &err)
        != RON_OK)
    {
        return ngx_http_ron_problem(r, &err);
    }

    if (ngx_http_ron_arg_u64(ctx, "from", 1, &from) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED, "not a number",
                                   "from");
    }

    if (ngx_http_ron_arg_u64(ctx, "to", 0, &to) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED, "not a number",
                                   "to");
    }

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_ledger_entries_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    task->a = from;
    task->b = to;
    task->after = ngx_http_ron_ledger_entries_after;

    return ngx_http_ron_task_post(r, task);
}


static ron_status_t
ngx_http_ron_ledger_entries_work(ngx_http_ron_task_t *task)
{
    return ron_api_entries(task->reader, task->a, task->b, &task->out,
                           &task->watermark);
}


static ngx_int_t
ngx_http_ron_ledger_entries_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task)
{
    u_char     *p;
    ngx_str_t   value;

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    value.data = p;
    value.len = ngx_sprintf(p, "%uL", task->watermark) - p;

    if (ngx_http_ron_header(r, "Ledger-Watermark", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_ron_json(r, NGX_HTTP_OK, &task->out);
}


/*
 * Accounts may have slashes in their names: what ends in /entries is the list
 * of entries of what stands before.
 */

static ngx_int_t
ngx_http_ron_ledger_account(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    ron_str_t         account;
    ngx_uint_t        entries;
    ron_api_error_t   err;

    static ngx_str_t  suffix = ngx_string("/entries");

    account = ngx_ron_str(&ctx->path);

    entries = account.len > suffix.len
              && ngx_strncmp(account.data + account.len - suffix.len,
                             suffix.data, suffix.len)
                 == 0;

    if (entries) {
        account.len -= suffix.len;
        ctx->path.len -= suffix.len;
    }

    if (!ron_account_valid(account)) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "not an account", "account");
    }

    if (ngx_http_ron_limit_read(r, ctx, account, ron_null_str, &err)
        != RON_OK)
    {
        return ngx_http_ron_problem(r, &err);
    }

    if (entries) {
        return ngx_http_ron_ledger_account_entries(r, ctx, account);
    }

    ron_buf_init(&ctx->body_buf, 0);
    ctx->number = 0;

    return ngx_http_ron_ledger_account_next(r, ctx);
}


/* One asset after the other is asked for; the answer grows in body_buf. */

static ngx_int_t
ngx_http_ron_ledger_account_next(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx)
{
    ron_str_t                  asset;
    ngx_msec_t                 left;
    ngx_ron_call_t            *call;
    ngx_http_ron_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    while (ctx->number < rmcf->limits->asset_n
           && !ron_cap_allows_asset(ctx->cap,
                                    rmcf->limits->asset[ctx->number]))
    {
        ctx->number++;
    }

    if (ctx->number == rmcf->limits->asset_n) {

        if (ctx->body_buf.len == 0) {
            return ngx_http_ron_refuse(r, RON_REASON_CAP_INVALID,
                                       "the capability is for other assets",
                                       NULL);
        }

        ron_buf_put_cstr(&ctx->body_buf, "]}");

        return ngx_http_ron_json(r, NGX_HTTP_OK, &ctx->body_buf);
    }

    asset = rmcf->limits->asset[ctx->number];
    left = ngx_http_ron_time_left(ctx);
    call = NULL;

    if (left) {
        call = ngx_ron_ipc_balance(ngx_ron_str(&ctx->path), asset, left,
                                   ngx_http_ron_ledger_account_answer, ctx);
    }

    if (call == NULL) {
        return ngx_http_ron_unanswered(r, NGX_DECLINED);
    }

    return ngx_http_ron_wait(r, ctx, call);
}


static void
ngx_http_ron_ledger_account_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload)
{
    ngx_http_ron_ctx_t *ctx = data;

    ron_msg_balance_t          balance;
    ngx_http_ron_main_conf_t  *rmcf;

    ctx->call = NULL;

    if (rc != NGX_OK) {
        rc = ngx_http_ron_unanswered(ctx->request, NGX_DECLINED);

    } else if (type != RON_FRAME_BALANCE_IS
               || ron_msg_balance_get(payload, &balance) != RON_OK)
    {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else {
        rmcf = ngx_http_get_module_main_conf(ctx->request,
                                             ngx_http_ron_module);

        ron_api_account_put(&ctx->body_buf, ngx_ron_str(&ctx->path),
                            rmcf->limits->asset[ctx->number], &balance);
        ctx->number++;

        rc = ngx_http_ron_ledger_account_next(ctx->request, ctx);
    }

    ngx_http_ron_done(ctx, rc);
}


static ngx_int_t
ngx_http_ron_ledger_account_entries(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t account)
{
    uint64_t              before, limit;
    ngx_ron_conf_t       *rcf;
    ngx_http_ron_task_t  *task;

    if (ctx->cap->assets_n) {
        return ngx_http_ron_refuse(r, RON_REASON_CAP_INVALID,
                                   "the capability is for some assets only",
                                   NULL);
    }

    if (ngx_http_ron_arg_u64(ctx, "before", 0, &before) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED, "not a number",
                                   "before");
    }

    if (ngx_http_ron_arg_u64(ctx, "limit", NGX_HTTP_RON_ROOTS, &limit)
            != NGX_OK
        || limit == 0)
    {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED, "not a number",
                                   "limit");
    }

    rcf = ngx_ron_get_conf((ngx_cycle_t *) ngx_cycle);

    /* what lists entries by account is in a file, and there is none */

    if (rcf->memory_zone) {
        return ngx_http_ron_refuse(r, RON_REASON_NOT_FOUND,
                                   "a ledger in memory has no history of "
                                   "accounts, it has /ledger/entries", NULL);
    }

    task = ngx_http_ron_task(r, ctx, ngx_http_ron_ledger_account_work);
    if (task == NULL) {
        return ngx_http_ron_no_ledger(r);
    }

    ron_buf_put_str(&task->more, account);
    task->a = before;
    task->b = ngx_min(limit, NGX_HTTP_RON_ROOTS_MAX);
    task->after = ngx_http_ron_ledger_entries_after;

    return ngx_http_ron_task_post(r, task);
}


static ron_status_t
ngx_http_ron_ledger_account_work(ngx_http_ron_task_t *task)
{
    ron_status_t  rc;

    rc = ron_api_account_entries(task->store, task->reader,
                                 ron_buf_str(&task->more), task->a, task->b,
                                 &task->out, &task->watermark);

    if (rc == RON_ENOTFOUND) {
        return ngx_http_ron_task_refuse(task, RON_REASON_RETRY_LATER,
                                        "there is no history yet");
    }

    if (rc == RON_AGAIN) {
        return ngx_http_ron_task_refuse(task, RON_REASON_RETRY_LATER,
                                        "history is busy, or being mended");
    }

    return rc;
}


static ngx_int_t
ngx_http_ron_ledger_admin(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    bool              enter;
    ngx_msec_t        left;
    ron_admin_t       what;
    ron_status_t      rc;
    ngx_ron_call_t   *call;
    ron_api_error_t   err;

    what = ctx->route->number;

    if (what == NGX_HTTP_RON_ADMIN_SAFE) {

        rc = ron_api_safe_mode_parse(&ngx_http_ron_ledger_api, ctx->body,
                                     &enter, &err);
        if (rc != RON_OK) {
            return ngx_http_ron_problem(r, &err);
        }

        what = enter ? RON_ADMIN_SAFE_ENTER : RON_ADMIN_SAFE_LEAVE;
    }

    left = ngx_http_ron_time_left(ctx);
    call = NULL;

    if (left) {
        call = ngx_ron_ipc_admin(what, left,
                                 ngx_http_ron_ledger_admin_answer, ctx);
    }

    if (call == NULL) {
        return ngx_http_ron_unanswered(r, NGX_DECLINED);
    }

    return ngx_http_ron_wait(r, ctx, call);
}


static void
ngx_http_ron_ledger_admin_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload)
{
    ngx_http_ron_ctx_t *ctx = data;

    ron_buf_t         *buf;
    ron_api_error_t    err;
    ron_msg_admin_t    admin;

    ctx->call = NULL;

    if (rc != NGX_OK) {
        rc = ngx_http_ron_unanswered(ctx->request, rc);

    } else if (type != RON_FRAME_ADMIN_IS
               || ron_msg_admin_get(payload, &admin) != RON_OK)
    {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else {
        buf = ngx_http_ron_scratch();

        switch (ron_api_admin_answer(buf, &admin, &err)) {

        case RON_OK:
            rc = ngx_http_ron_json(ctx->request, NGX_HTTP_OK, buf);
            break;

        case RON_EINVAL:
            rc = ngx_http_ron_problem(ctx->request, &err);
            break;

        default:
            rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    ngx_http_ron_done(ctx, rc);
}


static char *
ngx_http_ron_ledger(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_ron_set_service(cf, &ngx_http_ron_ledger_service);
}
