
/*
 * What an operator asks of the service.  The worker has checked the
 * capability; here it is only asked whether the state allows it.
 */

#include "ron_service_impl.h"
#include "ron_codec.h"

#include <stdio.h>


#define RON_ADMIN_VALUE  80


static void ron_admin_answer(ron_service_t *s, const ron_reply_t *reply,
    ron_admin_status_t status, const char *text);
static void ron_admin_drain(ron_service_t *s, const ron_reply_t *reply);
static void ron_admin_enter(ron_service_t *s, const ron_reply_t *reply,
    ron_str_t why);
static void ron_admin_leave(ron_service_t *s, const ron_reply_t *reply);
static void ron_admin_stat(ron_service_t *s, const ron_reply_t *reply);


ron_status_t
ron_service_got_admin(ron_service_t *s, const ron_reply_t *reply,
    ron_str_t payload)
{
    ron_str_t  rest;

    if (payload.len == 0) {
        return RON_EINVAL;
    }

    rest = (ron_str_t) { payload.len - 1, payload.data + 1 };

    switch (payload.data[0]) {

    case RON_ADMIN_DRAIN:
        ron_admin_drain(s, reply);
        return RON_OK;

    case RON_ADMIN_SAFE_ENTER:
        ron_admin_enter(s, reply, rest);
        return RON_OK;

    case RON_ADMIN_SAFE_LEAVE:
        ron_admin_leave(s, reply);
        return RON_OK;

    case RON_ADMIN_SNAPSHOT:
        ron_service_got_snapshot(s, reply, rest);
        return RON_OK;

    case RON_ADMIN_STAT:
        ron_admin_stat(s, reply);
        return RON_OK;

    default:
        ron_admin_answer(s, reply, RON_ADMIN_UNAVAILABLE,
                         "this is not known here");
        return RON_OK;
    }
}


static void
ron_admin_answer(ron_service_t *s, const ron_reply_t *reply,
    ron_admin_status_t status, const char *text)
{
    ron_msg_admin_t  admin;

    memset(&admin, 0, sizeof(admin));
    admin.status = status;
    admin.text = ron_cstr(text);
    ron_msg_admin_add(&admin, ron_str("state"),
                      ron_cstr(ron_state_name(s->state)));

    ron_buf_reset(&s->scratch);
    ron_msg_admin_put(&s->scratch, &admin);
    ron_service_answer(s, reply, RON_FRAME_ADMIN_IS, ron_buf_str(&s->scratch));
}


/* Answered at once; STATE frames tell the rest. */

static void
ron_admin_drain(ron_service_t *s, const ron_reply_t *reply)
{
    if (s->state == RON_STATE_SAFE_MODE) {
        ron_admin_answer(s, reply, RON_ADMIN_REFUSED,
                         "the ledger is in safe mode");
        return;
    }

    ron_service_begin_drain(s);
    ron_admin_answer(s, reply, RON_ADMIN_DONE, "");
}


static void
ron_admin_enter(ron_service_t *s, const ron_reply_t *reply, ron_str_t why)
{
    char  text[128];

    if (s->state != RON_STATE_RUNNING && s->state != RON_STATE_SAFE_MODE) {
        ron_admin_answer(s, reply, RON_ADMIN_REFUSED, "not in this state");
        return;
    }

    (void) snprintf(text, sizeof(text), "%.*s",
                    (int) ron_min(why.len, sizeof(text) - 1),
                    why.len ? (const char *) why.data : "");

    ron_service_enter_safe(s, RON_SAFE_OPERATOR,
                           text[0] ? text : "an operator asked for it");
    ron_admin_answer(s, reply, RON_ADMIN_DONE, "");
}


static void
ron_admin_leave(ron_service_t *s, const ron_reply_t *reply)
{
    ron_status_t  status;

    status = ron_service_leave_safe(s);

    if (status == RON_OK) {
        ron_admin_answer(s, reply, RON_ADMIN_DONE, "");
        return;
    }

    if (status == RON_ECANCELED) {
        ron_admin_answer(s, reply, RON_ADMIN_REFUSED,
                         s->state == RON_STATE_SAFE_MODE
                         ? "the committer is still busy"
                         : "the ledger is not in safe mode");
        return;
    }

    ron_buf_put_u8(&s->why, 0);
    ron_admin_answer(s, reply, RON_ADMIN_FAILED,
                     s->why.len > 1 ? (const char *) s->why.data
                     : ron_status_name(status));
}


static void
ron_admin_stat(ron_service_t *s, const ron_reply_t *reply)
{
    size_t              i;
    char                hex[2 * RON_HASH_LEN];
    char                values[32][RON_ADMIN_VALUE];
    ron_msg_admin_t     admin;
    ron_engine_stat_t   engine;
    ron_service_stat_t  stat;

    memset(&admin, 0, sizeof(admin));
    memset(&engine, 0, sizeof(engine));
    ron_service_stat(s, &stat);

    if (s->engine != NULL) {
        ron_engine_stat(s->engine, &engine);
    }

    (void) ron_hex_encode((ron_str_t) { RON_HASH_LEN, s->root.b }, hex);

    const struct {
        const char  *key;
        uint64_t     value;
    } numbers[] = {
        { "generation", s->conf.generation },
        { "writer", stat.writer },
        { "seq", stat.seq },
        { "time_ms", stat.time_ms },
        { "committed_ms", stat.committed_ms },
        { "preval_depth", stat.preval_depth },
        { "preval_capacity", s->conf.queue_preval },
        { "preval_drops", stat.preval_drops },
        { "commit_depth", stat.commit_depth },
        { "commit_capacity", s->conf.queue_commit },
        { "commit_rejects", stat.commit_rejects },
        { "connections", stat.connections },
        { "units", stat.units },
        { "batches", stat.batches },
        { "entries", stat.entries },
        { "auth_failures", stat.auth_failures },
        { "denied", stat.denied },
        { "protocol_errors", stat.protocol_errors },
        { "slow_closed", stat.slow_closed },
        { "safe_entered", stat.safe_entered },
        { "accounts", engine.accounts },
        { "balances", engine.balances },
        { "holds", engine.holds },
        { "state_bytes", engine.state_bytes },
        { "checkpoint_seq", engine.checkpoint_seq },
        { "replayed", engine.replayed },
        { "clock_drift_ms", engine.clock_drift_ms }
    };

    RON_ASSERT(ron_array_n(numbers) <= ron_array_n(values));

    ron_msg_admin_add(&admin, ron_str("state"),
                      ron_cstr(ron_state_name(s->state)));
    ron_msg_admin_add(&admin, ron_str("reason"), ron_cstr(s->reason));
    ron_msg_admin_add(&admin, ron_str("root"),
                      (ron_str_t) { sizeof(hex), (uint8_t *) hex });

    for (i = 0; i < ron_array_n(numbers); i++) {
        (void) snprintf(values[i], sizeof(values[i]), "%llu",
                        (unsigned long long) numbers[i].value);
        ron_msg_admin_add(&admin, ron_cstr(numbers[i].key),
                          ron_cstr(values[i]));
    }

    ron_buf_reset(&s->scratch);
    ron_msg_admin_put(&s->scratch, &admin);
    ron_service_answer(s, reply, RON_FRAME_ADMIN_IS, ron_buf_str(&s->scratch));
}
