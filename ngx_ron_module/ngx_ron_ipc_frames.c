
/*
 * What a worker's call to the helper says, and what its answer says.
 */

#include "ngx_ron_ipc.h"


static ngx_ron_call_t *ngx_ron_ipc_ask(ron_frame_type_t type, ron_str_t a,
    ron_str_t b, ron_str_t c, ngx_msec_t timeout, ngx_ron_call_pt handler,
    void *data);


ngx_ron_call_t *
ngx_ron_ipc_unit(const ron_unit_t *unit, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data, ngx_uint_t *too_long)
{
    ngx_ron_call_t  *call;

    *too_long = 0;

    call = ngx_ron_ipc_call(RON_FRAME_UNIT, timeout, handler, data);
    if (call == NULL) {
        return NULL;
    }

    switch (ron_unit_encode(unit, &call->wire)) {

    case RON_OK:
        break;

    case RON_EFULL:
        *too_long = 1;

        /* fall through */

    default:
        ngx_ron_ipc_free(call);
        return NULL;
    }

    call->ingest = unit->type == RON_UNIT_INGEST;

    ngx_ron_ipc_send(call);

    return call;
}


ngx_ron_call_t *
ngx_ron_ipc_wire(ron_str_t wire, ngx_msec_t timeout, ngx_ron_call_pt handler,
    void *data)
{
    ngx_ron_call_t  *call;

    call = ngx_ron_ipc_call(RON_FRAME_UNIT, timeout, handler, data);
    if (call == NULL) {
        return NULL;
    }

    ron_buf_put_str(&call->wire, wire);

    if (ron_buf_status(&call->wire) != RON_OK) {
        ngx_ron_ipc_free(call);
        return NULL;
    }

    call->ingest = 1;

    ngx_ron_ipc_send(call);

    return call;
}


ngx_ron_call_t *
ngx_ron_ipc_balance(ron_str_t account, ron_str_t asset, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data)
{
    return ngx_ron_ipc_ask(RON_FRAME_BALANCE, account, asset, ron_null_str,
                           timeout, handler, data);
}


ngx_ron_call_t *
ngx_ron_ipc_lookup(const ron_msg_ask_t *ask, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data)
{
    return ngx_ron_ipc_ask(RON_FRAME_LOOKUP, ask->account, ask->cap, ask->key,
                           timeout, handler, data);
}


static ngx_ron_call_t *
ngx_ron_ipc_ask(ron_frame_type_t type, ron_str_t a, ron_str_t b, ron_str_t c,
    ngx_msec_t timeout, ngx_ron_call_pt handler, void *data)
{
    ngx_ron_call_t  *call;

    call = ngx_ron_ipc_call(type, timeout, handler, data);
    if (call == NULL) {
        return NULL;
    }

    ron_buf_put_str(&call->wire, a);
    ron_buf_put_str(&call->wire, b);
    ron_buf_put_str(&call->wire, c);
    call->first_len = a.len;
    call->second_len = b.len;

    if (ron_buf_status(&call->wire) != RON_OK) {
        ngx_ron_ipc_free(call);
        return NULL;
    }

    ngx_ron_ipc_send(call);

    return call;
}


ngx_ron_call_t *
ngx_ron_ipc_admin(ron_admin_t what, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data)
{
    ngx_ron_call_t  *call;

    call = ngx_ron_ipc_call(RON_FRAME_ADMIN, timeout, handler, data);
    if (call == NULL) {
        return NULL;
    }

    call->admin = what;
    ngx_ron_ipc_send(call);

    return call;
}


ngx_ron_call_t *
ngx_ron_ipc_snapshot(ngx_uint_t take, ron_str_t name, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data)
{
    ngx_ron_call_t  *call;

    call = ngx_ron_ipc_call(RON_FRAME_ADMIN, timeout, handler, data);
    if (call == NULL) {
        return NULL;
    }

    call->admin = RON_ADMIN_SNAPSHOT;
    ron_buf_put_u8(&call->wire, take ? 1 : 0);
    ron_buf_put_str(&call->wire, name);

    if (ron_buf_status(&call->wire) != RON_OK) {
        ngx_ron_ipc_free(call);
        return NULL;
    }

    ngx_ron_ipc_send(call);

    return call;
}


ron_status_t
ngx_ron_ipc_put(ron_client_t *client, ngx_ron_call_t *call)
{
    ron_str_t      wire, a, b, c;
    ron_msg_ask_t  ask;

    wire = ron_buf_str(&call->wire);

    a.data = wire.data;
    a.len = call->first_len;
    b.data = a.data + a.len;
    b.len = call->second_len;
    c.data = b.data + b.len;
    c.len = wire.len - a.len - b.len;

    switch (call->type) {

    case RON_FRAME_UNIT:
        return ron_client_unit_wire(client, call->id, wire);

    case RON_FRAME_BALANCE:
        return ron_client_balance(client, call->id, a, b);

    case RON_FRAME_LOOKUP:
        ask.account = a;
        ask.cap = b;
        ask.key = c;

        return ron_client_lookup(client, call->id, &ask);

    default: /* RON_FRAME_ADMIN */
        return ron_client_admin(client, call->id, call->admin, wire);
    }
}


ngx_uint_t
ngx_ron_ipc_unsaid(ron_frame_type_t type, ron_str_t payload)
{
    ngx_uint_t        status;
    ron_status_t      rc;
    ron_result_t     *results;
    ron_outcome_t     outcome;
    ron_msg_batch_t   batch;

    if (type != RON_FRAME_OUTCOME) {
        return 0;
    }

    results = ngx_alloc(RON_UNIT_OPS_MAX * sizeof(ron_result_t),
                        ngx_ron_ipc.log);
    if (results == NULL) {
        return 1;
    }

    rc = ron_msg_outcome_get(payload, &batch, &outcome, results,
                             RON_UNIT_OPS_MAX);

    status = ron_reason_info(outcome.reason)->status;

    ngx_free(results);

    return rc != RON_OK || status == 429 || status == 503;
}
