
/*
 * What became of an operation: by its key, and by its txid.
 */

#include "ngx_http_ron_limit.h"
#include "ngx_http_ron_remote.h"
#include "ron_receipt.h"


static ngx_int_t ngx_http_ron_wallet_outcome_remote(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t account, uint64_t age);
static void ngx_http_ron_wallet_outcome_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload);
static ngx_int_t ngx_http_ron_wallet_outcome_reply(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_msg_lookup_t *lookup);
static ron_status_t ngx_http_ron_wallet_outcome_batch(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_outcome_t *batch, ron_api_error_t *err);
static ron_status_t ngx_http_ron_wallet_outcome_entry(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t bytes, ron_api_error_t *err);
static ron_status_t ngx_http_ron_wallet_may_read(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_entry_t *e, ron_api_error_t *err);
static ron_status_t ngx_http_ron_wallet_tx_work(ngx_http_ron_task_t *task);
static ngx_int_t ngx_http_ron_wallet_tx_after(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ngx_http_ron_task_t *task);


/* A worker's: a batch that is answered again, and a capability's name. */

static ron_result_t  ngx_http_ron_receipts[RON_API_BATCH_MAX];
static ron_buf_t     ngx_http_ron_receipts_cap;


/*
 * "Unknown" is final when no request under the key can be executed any more.
 * The sequencer refuses what comes after its deadline, and only the client
 * knows when it sent its last request: `age` says so many milliseconds ago.
 */

ngx_int_t
ngx_http_ron_wallet_outcome(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t          age, late;
    ngx_msec_t        left;
    ron_msg_ask_t     ask;
    ron_api_error_t   err;
    ngx_ron_call_t   *call;

    ask.account = ron_api_arg(ctx->args, ctx->args_n, ron_str("account"));
    ask.key = ngx_ron_str(&ctx->idem_key);

    if (!ron_account_valid(ask.account)) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "an account is needed", "account");
    }

    if (ngx_http_ron_arg_u64(ctx, "age", 0, &age) != NGX_OK) {
        return ngx_http_ron_refuse(r, RON_REASON_MALFORMED,
                                   "not a number of milliseconds", "age");
    }

    if (ngx_http_ron_limit_read(r, ctx, ask.account, ron_null_str, &err)
        != RON_OK)
    {
        return ngx_http_ron_problem(r, &err);
    }

    late = ngx_ron_deadline_max() + ron_timeout_info(RON_TIMEOUT_TRANSIT)->ms;

    if (ngx_http_ron_remote_ledger(r)) {
        return ngx_http_ron_wallet_outcome_remote(r, ctx, ask.account,
                                                  age > late ? age - late
                                                             : 0);
    }

    ctx->final = age >= late;

    left = ngx_http_ron_time_left(ctx);

    if (left == 0) {
        return ngx_http_ron_unanswered(r, NGX_DECLINED);
    }

    if (ron_api_cap_name(ctx->cap, &ngx_http_ron_receipts_cap, &ask.cap)
        != RON_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    call = ngx_ron_ipc_lookup(&ask, left, ngx_http_ron_wallet_outcome_answer,
                              ctx);
    if (call == NULL) {
        return ngx_http_ron_refuse(r, RON_REASON_BUSY, NULL, NULL);
    }

    return ngx_http_ron_wait(r, ctx, call);
}


/*
 * The ledger counts from the last try that we may have sent, and not from the
 * client's last request: `age` is what has passed since then.
 */

static ngx_int_t
ngx_http_ron_wallet_outcome_remote(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t account, uint64_t age)
{
    size_t     len;
    ngx_str_t  args;

    len = sizeof("account=&age=") - 1 + account.len + NGX_INT64_LEN;

    args.data = ngx_pnalloc(r->pool, len);
    if (args.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* no character of an account means something else in a query */

    args.len = ngx_sprintf(args.data, "account=%*s&age=%uL", account.len,
                           account.data, age)
               - args.data;

    return ngx_http_ron_remote_read(r, ctx, "ops/outcome", &args);
}


static void
ngx_http_ron_wallet_outcome_answer(void *data, ngx_int_t rc,
    ron_frame_type_t type, ron_str_t payload)
{
    ngx_http_ron_ctx_t *ctx = data;

    ron_msg_lookup_t  lookup;

    ctx->call = NULL;

    if (rc != NGX_OK) {
        rc = ngx_http_ron_unanswered(ctx->request, NGX_DECLINED);

    } else if (type != RON_FRAME_LOOKUP_IS
               || ron_msg_lookup_get(payload, &lookup) != RON_OK)
    {
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    } else {
        rc = ngx_http_ron_wallet_outcome_reply(ctx->request, ctx, &lookup);
    }

    ngx_http_ron_done(ctx, rc);
}


static ngx_int_t
ngx_http_ron_wallet_outcome_reply(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_msg_lookup_t *lookup)
{
    ron_buf_t        *buf;
    ron_status_t      rc;
    ron_outcome_t     batch;
    ron_api_error_t   err;

    rc = RON_OK;

    if (lookup->batch) {
        rc = ron_outcome_decode(lookup->entry, &batch,
                                ngx_http_ron_receipts,
                                RON_API_BATCH_MAX);
        if (rc != RON_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        rc = ngx_http_ron_wallet_outcome_batch(r, ctx, &batch, &err);

    } else if (lookup->what == RON_LOOKUP_COMMITTED) {
        rc = ngx_http_ron_wallet_outcome_entry(r, ctx, lookup->entry, &err);
    }

    if (rc == RON_EINVAL) {
        return ngx_http_ron_problem(r, &err);
    }

    buf = ngx_http_ron_scratch();

    if (rc == RON_OK) {
        rc = ron_api_outcome_answer(buf, lookup,
                                    lookup->batch ? &batch : NULL,
                                    ctx->final);
    }

    switch (rc) {

    case RON_OK:
        return ngx_http_ron_json(r, NGX_HTTP_OK, buf);

    case RON_AGAIN:
        return ngx_http_ron_refuse(r, RON_REASON_RETRY_LATER,
                                   "the ledger cannot tell now", NULL);

    default:
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
}


/*
 * The key is one of all tokens of the capability, and this one may be for
 * fewer accounts than the one that the batch came with.
 */

static ron_status_t
ngx_http_ron_wallet_outcome_batch(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_outcome_t *batch, ron_api_error_t *err)
{
    uint32_t      i;
    ron_status_t  rc;

    for (i = 0; i < batch->result_n; i++) {

        if (batch->results[i].reason != RON_REASON_OK) {
            continue;
        }

        rc = ngx_http_ron_wallet_outcome_entry(r, ctx,
                                               batch->results[i].bytes, err);
        if (rc != RON_OK) {
            return rc;
        }
    }

    return RON_OK;
}


/* Of which asset it was nobody knew when it was asked for. */

static ron_status_t
ngx_http_ron_wallet_outcome_entry(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_str_t bytes, ron_api_error_t *err)
{
    ron_entry_t   e;
    ron_status_t  rc;

    rc = ron_entry_decode(bytes, &e);

    return rc == RON_OK ? ngx_http_ron_wallet_may_read(r, ctx, &e, err)
                        : ron_corrupt();
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
        return ngx_http_ron_remote_read(r, ctx, "ops/tx/", &r->args);
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

    return task->flag ? ngx_http_ron_wallet_proof_work(task)
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

    if (ngx_http_ron_wallet_may_read(r, ctx, &e, &err) != RON_OK) {
        return ngx_http_ron_problem(r, &err);
    }

    return ngx_http_ron_json(r, NGX_HTTP_OK, &task->out);
}


/* Whoever may read one side may have the receipt. */

static ron_status_t
ngx_http_ron_wallet_may_read(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_entry_t *e, ron_api_error_t *err)
{
    ron_status_t  rc;

    rc = ngx_http_ron_limit_read(r, ctx, e->account, e->asset, err);

    if (rc != RON_OK && (e->fields & RON_F_TO)) {
        rc = ngx_http_ron_limit_read(r, ctx, e->to, e->asset, err);
    }

    return rc;
}
