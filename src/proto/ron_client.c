
/*
 * The asking side.
 *
 *     WAIT_HELLO -> WAIT_READY -> READY
 *
 * Anything out of order is RON_EINVAL and the connection is of no use any
 * more (`broken`), until ron_client_reset().
 *
 * Long answers.  The helper writes the frames of one answer one after the
 * other, but between two of them a pushed STATE or COMMIT may come.  So one
 * half answer is enough; a MORE frame of a second call is an error.
 */

#include "ron_client.h"

#include <stdlib.h>

#include "ron_port.h"


#define RON_CLIENT_OUT_MAX     (8 * 1024 * 1024)
#define RON_CLIENT_ANSWER_MAX  (16 * 1024 * 1024)


typedef enum {
    RON_CLIENT_WAIT_HELLO = 0,
    RON_CLIENT_WAIT_READY,
    RON_CLIENT_READY
} ron_client_phase_t;


struct ron_client_s {
    ron_client_conf_t   conf;
    ron_conn_t          conn;
    ron_buf_t           hello_bytes;
    ron_buf_t           auth_bytes;
    ron_buf_t           scratch;        /* one payload that is being made */
    ron_buf_t           answer;         /* put together from MORE frames */
    ron_frame_type_t    answer_type;
    uint64_t            answer_call;    /* 0: no half answer */
    uint64_t            call;           /* the last one given out */
    ron_hello_t         hello;
    ron_client_phase_t  phase;
    ron_life_t         state;
};


static ron_status_t ron_client_frames(ron_client_t *client);
static ron_status_t ron_client_frame(ron_client_t *client,
    const ron_frame_t *frame);
static ron_status_t ron_client_got_hello(ron_client_t *client,
    const ron_frame_t *frame);
static ron_status_t ron_client_got_ready(ron_client_t *client,
    const ron_frame_t *frame);
static ron_status_t ron_client_got_answer(ron_client_t *client,
    const ron_frame_t *frame);
static ron_status_t ron_client_got_state(ron_client_t *client,
    const ron_frame_t *frame);
static ron_status_t ron_client_got_commit(ron_client_t *client,
    const ron_frame_t *frame);
static ron_status_t ron_client_send(ron_client_t *client,
    ron_frame_type_t type, uint64_t call, ron_str_t payload);
static ron_status_t ron_client_send_scratch(ron_client_t *client,
    ron_frame_type_t type, uint64_t call);


void
ron_client_conf_init(ron_client_conf_t *conf)
{
    memset(conf, 0, sizeof(ron_client_conf_t));
    conf->out_max = RON_CLIENT_OUT_MAX;
    conf->answer_max = RON_CLIENT_ANSWER_MAX;
}


ron_status_t
ron_client_create(const ron_client_conf_t *conf, ron_client_t **client)
{
    ron_client_t  *c;

    *client = NULL;

    if (conf->on_answer == NULL) {
        return RON_EINVAL;
    }

    c = calloc(1, sizeof(ron_client_t));
    if (c == NULL) {
        return RON_ENOMEM;
    }

    c->conf = *conf;

    ron_conn_init(&c->conn, conf->out_max);
    ron_buf_init(&c->hello_bytes, RON_FRAME_MAX);
    ron_buf_init(&c->auth_bytes, RON_FRAME_MAX);
    ron_buf_init(&c->scratch, RON_FRAME_MAX);
    ron_buf_init(&c->answer, ron_max(conf->answer_max, (size_t) 1));

    *client = c;

    return RON_OK;
}


void
ron_client_destroy(ron_client_t *client)
{
    if (client == NULL) {
        return;
    }

    ron_conn_free(&client->conn);
    ron_buf_free(&client->hello_bytes);
    ron_buf_free(&client->auth_bytes);
    ron_buf_free(&client->scratch);
    ron_buf_free(&client->answer);
    memset(&client->conf.key, 0, sizeof(ron_auth_key_t));
    free(client);
}


void
ron_client_reset(ron_client_t *client)
{
    ron_conn_reset(&client->conn);
    ron_buf_reset(&client->hello_bytes);
    ron_buf_reset(&client->auth_bytes);
    ron_buf_reset(&client->answer);
    client->answer_call = 0;
    client->phase = RON_CLIENT_WAIT_HELLO;
    client->state = RON_STATE_STARTING;
}


uint8_t *
ron_client_space(ron_client_t *client, size_t want, size_t *len)
{
    return ron_conn_space(&client->conn, want, len);
}


ron_status_t
ron_client_came(ron_client_t *client, size_t len)
{
    ron_conn_came(&client->conn, len);

    return ron_client_frames(client);
}


/* In pieces, because one feed may be longer than what input can hold. */

ron_status_t
ron_client_feed(ron_client_t *client, ron_str_t bytes)
{
    ron_str_t     part;
    ron_status_t  status;

    do {
        part.data = bytes.data;
        part.len = ron_min(bytes.len, (size_t) RON_FRAME_MAX);

        status = ron_conn_feed(&client->conn, part);
        if (status != RON_OK) {
            return status;
        }

        status = ron_client_frames(client);
        if (status != RON_OK) {
            return status;
        }

        bytes.len -= part.len;
        bytes.data = bytes.len ? bytes.data + part.len : NULL;

    } while (bytes.len > 0);

    return RON_OK;
}


ron_str_t
ron_client_output(const ron_client_t *client)
{
    return ron_conn_output(&client->conn);
}


void
ron_client_sent(ron_client_t *client, size_t len)
{
    ron_conn_sent(&client->conn, len);
}


bool
ron_client_ready(const ron_client_t *client)
{
    return client->phase == RON_CLIENT_READY
           && client->conn.broken == RON_OK;
}


ron_life_t
ron_client_state(const ron_client_t *client)
{
    return client->state;
}


uint64_t
ron_client_call(ron_client_t *client)
{
    return ++client->call;
}


static ron_status_t
ron_client_frames(ron_client_t *client)
{
    ron_frame_t   frame;
    ron_status_t  status;

    for ( ;; ) {
        status = ron_conn_next(&client->conn, &frame);

        if (status == RON_AGAIN) {
            return RON_OK;
        }

        if (status == RON_OK) {
            status = ron_client_frame(client, &frame);
        }

        if (status != RON_OK) {
            client->conn.broken = status;
            return status;
        }
    }
}


static ron_status_t
ron_client_frame(ron_client_t *client, const ron_frame_t *frame)
{
    switch (client->phase) {

    case RON_CLIENT_WAIT_HELLO:
        return ron_client_got_hello(client, frame);

    case RON_CLIENT_WAIT_READY:
        return ron_client_got_ready(client, frame);

    default:
        break;
    }

    switch (frame->type) {

    case RON_FRAME_OUTCOME:
    case RON_FRAME_BALANCE_IS:
    case RON_FRAME_LOOKUP_IS:
    case RON_FRAME_ADMIN_IS:
        return ron_client_got_answer(client, frame);

    case RON_FRAME_STATE:
        return ron_client_got_state(client, frame);

    case RON_FRAME_COMMIT:
        return ron_client_got_commit(client, frame);

    default:
        return RON_EINVAL;
    }
}


static ron_status_t
ron_client_got_hello(ron_client_t *client, const ron_frame_t *frame)
{
    ron_auth_t    auth;
    ron_status_t  status;

    if (frame->type != RON_FRAME_HELLO) {
        return RON_EINVAL;
    }

    status = ron_hello_get(frame->payload, &client->hello);
    if (status != RON_OK) {
        return status;
    }

    memset(&auth, 0, sizeof(ron_auth_t));
    auth.version = RON_FRAME_VERSION;
    auth.slot = client->conf.slot;
    auth.pid = client->conf.pid;

    status = ron_random(auth.nonce, sizeof(auth.nonce));
    if (status != RON_OK) {
        return status;
    }

    ron_buf_put_str(&client->hello_bytes, frame->payload);

    status = ron_auth_put(&client->auth_bytes, &client->conf.key,
                          ron_buf_str(&client->hello_bytes), &auth);
    if (status != RON_OK) {
        return status;
    }

    client->phase = RON_CLIENT_WAIT_READY;

    return ron_conn_put(&client->conn, RON_FRAME_AUTH, 0, 0,
                        ron_buf_str(&client->auth_bytes));
}


static ron_status_t
ron_client_got_ready(ron_client_t *client, const ron_frame_t *frame)
{
    ron_ready_t   ready;
    ron_status_t  status;

    if (frame->type != RON_FRAME_READY) {
        return RON_EINVAL;
    }

    status = ron_ready_check(frame->payload, &client->conf.key,
                             ron_buf_str(&client->hello_bytes),
                             ron_buf_str(&client->auth_bytes), &ready);
    if (status != RON_OK) {
        return status;
    }

    client->phase = RON_CLIENT_READY;
    client->state = ready.state;

    if (client->conf.on_ready) {
        client->conf.on_ready(client->conf.ctx, &client->hello, &ready);
    }

    return RON_OK;
}


static ron_status_t
ron_client_got_answer(ron_client_t *client, const ron_frame_t *frame)
{
    bool          more;
    ron_str_t     payload;
    ron_status_t  status;

    if (frame->call == 0) {
        return RON_EINVAL;
    }

    more = frame->flags & RON_FRAME_F_MORE;

    if (client->answer_call == 0 && !more) {
        client->conf.on_answer(client->conf.ctx, frame->call, frame->type,
                               frame->payload);
        return RON_OK;
    }

    if (client->answer_call == 0) {
        client->answer_call = frame->call;
        client->answer_type = frame->type;
        ron_buf_reset(&client->answer);
    }

    if (client->answer_call != frame->call
        || client->answer_type != frame->type
        || frame->payload.len == 0)
    {
        return RON_EINVAL;
    }

    ron_buf_put_str(&client->answer, frame->payload);

    status = ron_buf_status(&client->answer);
    if (status != RON_OK || more) {
        return status;
    }

    payload = ron_buf_str(&client->answer);
    client->answer_call = 0;

    client->conf.on_answer(client->conf.ctx, frame->call, frame->type,
                           payload);
    return RON_OK;
}


static ron_status_t
ron_client_got_state(ron_client_t *client, const ron_frame_t *frame)
{
    ron_status_t     status;
    ron_msg_state_t  state;

    status = ron_msg_state_get(frame->payload, &state);
    if (status != RON_OK) {
        return status;
    }

    client->state = state.state;

    if (client->conf.on_state) {
        client->conf.on_state(client->conf.ctx, &state);
    }

    return RON_OK;
}


static ron_status_t
ron_client_got_commit(ron_client_t *client, const ron_frame_t *frame)
{
    ron_status_t      status;
    ron_msg_commit_t  commit;

    status = ron_msg_commit_get(frame->payload, &commit);
    if (status != RON_OK) {
        return status;
    }

    if (client->conf.on_commit) {
        client->conf.on_commit(client->conf.ctx, &commit);
    }

    return RON_OK;
}


static ron_status_t
ron_client_send(ron_client_t *client, ron_frame_type_t type, uint64_t call,
    ron_str_t payload)
{
    if (!ron_client_ready(client)) {
        return RON_AGAIN;
    }

    if (call == 0) {
        return RON_EINVAL;
    }

    return ron_conn_put(&client->conn, type, 0, call, payload);
}


static ron_status_t
ron_client_send_scratch(ron_client_t *client, ron_frame_type_t type,
    uint64_t call)
{
    ron_status_t  status;

    status = ron_buf_status(&client->scratch);

    if (status != RON_OK) {
        return status == RON_EFULL ? RON_ERANGE : status;
    }

    return ron_client_send(client, type, call, ron_buf_str(&client->scratch));
}


ron_status_t
ron_client_unit_wire(ron_client_t *client, uint64_t call, ron_str_t wire)
{
    return ron_client_send(client, RON_FRAME_UNIT, call, wire);
}


ron_status_t
ron_client_balance(ron_client_t *client, uint64_t call, ron_str_t account,
    ron_str_t asset)
{
    ron_buf_reset(&client->scratch);
    ron_msg_two_put(&client->scratch, account, asset);

    return ron_client_send_scratch(client, RON_FRAME_BALANCE, call);
}


ron_status_t
ron_client_lookup(ron_client_t *client, uint64_t call,
    const ron_msg_ask_t *ask)
{
    ron_buf_reset(&client->scratch);
    ron_msg_ask_put(&client->scratch, ask);

    return ron_client_send_scratch(client, RON_FRAME_LOOKUP, call);
}


ron_status_t
ron_client_admin(ron_client_t *client, uint64_t call, ron_admin_t what,
    ron_str_t payload)
{
    ron_buf_reset(&client->scratch);
    ron_buf_put_u8(&client->scratch, (uint8_t) what);
    ron_buf_put_str(&client->scratch, payload);

    return ron_client_send_scratch(client, RON_FRAME_ADMIN, call);
}
