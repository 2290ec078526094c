
/*
 * Liveness and readiness, from what the zone says.  Writes fail first: they
 * are refused by the same judgement that /readyz shows, and reads go on.
 */

#include "ron_api.h"


/* Depth of the commit queue at which writes are no longer taken: 9/10. */
#define RON_API_PRESSURE_NUM  9
#define RON_API_PRESSURE_DEN  10


static bool ron_api_beats(const ron_api_health_t *h);
static ron_life_t ron_api_state(const ron_api_health_t *h);
static bool ron_api_running(const ron_api_health_t *h);
static bool ron_api_lag_ok(const ron_api_health_t *h);
static bool ron_api_queue_ok(const ron_api_health_t *h);
static void ron_api_put_breakers(ron_buf_t *out, const ron_api_health_t *h);
static void ron_api_put_missing(ron_buf_t *out, const char *name, bool there);


bool
ron_api_crash_loop(const ron_api_health_t *h)
{
    return h->looping_n > 0;
}


static bool
ron_api_beats(const ron_api_health_t *h)
{
    return h->has_beat && h->age_ms <= h->lag_max_ms;
}


/* Without a ledger of its own an nginx has nothing to start or to drain. */
static ron_life_t
ron_api_state(const ron_api_health_t *h)
{
    if (h->remote) {
        return RON_STATE_RUNNING;
    }

    return ron_api_beats(h) ? h->state : RON_STATE_STARTING;
}


static bool
ron_api_running(const ron_api_health_t *h)
{
    return ron_api_state(h) == RON_STATE_RUNNING && !h->ledger_down;
}


static bool
ron_api_lag_ok(const ron_api_health_t *h)
{
    return h->lag_ms <= h->lag_max_ms;
}


static bool
ron_api_queue_ok(const ron_api_health_t *h)
{
    return h->remote
           || h->commit_depth * RON_API_PRESSURE_DEN
           < h->commit_capacity * RON_API_PRESSURE_NUM;
}


ron_reason_t
ron_api_shed(const ron_api_health_t *h)
{
    if (!h->has_beat) {
        /* it is starting: a request waits for it, within its deadline */
        return RON_REASON_OK;
    }

    if (h->state == RON_STATE_SAFE_MODE) {
        return RON_REASON_SAFE_MODE;
    }

    if (h->state == RON_STATE_DRAINING || h->state == RON_STATE_ABORTING
        || h->state == RON_STATE_STOPPED)
    {
        return RON_REASON_DRAINING;
    }

    if (h->age_ms > h->lag_max_ms || h->lag_ms > h->lag_max_ms) {
        return RON_REASON_RETRY_LATER;
    }

    return ron_api_queue_ok(h) ? RON_REASON_OK : RON_REASON_BACKPRESSURE;
}


ron_status_t
ron_api_healthz(ron_buf_t *out, const ron_api_health_t *h, uint16_t *status)
{
    uint64_t  percent;

    *status = ron_api_crash_loop(h) ? 503 : 200;

    percent = h->commit_capacity == 0
                  ? 0 : h->commit_depth * 100 / h->commit_capacity;

    ron_buf_put_u8(out, '{');
    ron_json_put_member(out, ron_str("state"),
                        ron_cstr(*status == 503
                                 ? "fatal"
                                 : ron_state_name(ron_api_state(h))));
    ron_json_put_key(out, ron_str("queue_pressure"));
    ron_buf_printf(out, "%u.%02u", (unsigned) (percent / 100),
                   (unsigned) (percent % 100));
    ron_json_put_member_u64(out, ron_str("committer_lag_ms"), h->lag_ms);
    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


bool
ron_api_ready(const ron_api_health_t *h)
{
    return ron_api_running(h) && ron_api_lag_ok(h) && ron_api_queue_ok(h)
           && !ron_api_crash_loop(h)
           && !h->kms_down && !h->policy_down && !h->wallet_down;
}


ron_status_t
ron_api_readyz(ron_buf_t *out, const ron_api_health_t *h, uint16_t *status)
{
    bool      running, lag_ok, queue_ok, ready;
    uint32_t  i;

    running = ron_api_running(h);
    lag_ok = ron_api_lag_ok(h);
    queue_ok = ron_api_queue_ok(h);
    ready = ron_api_ready(h);

    *status = ready ? 200 : 503;

    ron_buf_put_u8(out, '{');
    ron_json_put_member_bool(out, ron_str("ready"), ready);
    ron_json_put_member_bool(out, ron_str("degraded"), !ready);
    ron_json_put_member(out, ron_str("state"),
                        ron_cstr(ron_state_name(ron_api_state(h))));
    ron_json_put_key(out, ron_str("missing"));
    ron_buf_put_u8(out, '[');
    ron_api_put_missing(out, "ledger", running);
    ron_api_put_missing(out, "committer", lag_ok);
    ron_api_put_missing(out, "queue", queue_ok);

    for (i = 0; i < h->looping_n; i++) {
        ron_api_put_missing(out, h->looping[i], false);
    }

    ron_api_put_missing(out, "kms", !h->kms_down);
    ron_api_put_missing(out, "policy", !h->policy_down);
    ron_api_put_missing(out, "wallet", !h->wallet_down);
    ron_buf_put_u8(out, ']');
    ron_json_put_member_u64(out, ron_str("retry_after"),
                            ready ? 0 : ron_api_retry_after(*status));
    ron_json_put_member_bool(out, ron_str("kms_ready"), !h->kms_down);
    ron_json_put_member_bool(out, ron_str("policy_ready"), !h->policy_down);
    ron_json_put_member_bool(out, ron_str("wallet_ready"),
                             running && lag_ok && queue_ok
                             && !h->wallet_down);
    ron_json_put_member_bool(out, ron_str("ledger_ready"), running);
    ron_json_put_member_bool(out, ron_str("backpressure_ok"), queue_ok);
    ron_json_put_member_bool(out, ron_str("queue_ok"),
                             h->work_depth < h->work_capacity);
    ron_api_put_breakers(out, h);
    ron_json_put_member_u64(out, ron_str("committer_lag_ms"), h->lag_ms);
    ron_json_put_member_bool(out, ron_str("safe_mode"),
                             h->has_beat
                             && h->state == RON_STATE_SAFE_MODE);
    ron_json_put_member_u64(out, ron_str("seq"), h->seq);
    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


/* Those that are open. */
static void
ron_api_put_breakers(ron_buf_t *out, const ron_api_health_t *h)
{
    size_t  i;

    const struct {
        const char  *svc;
        bool         down;
    } breakers[] = {
        { "ledger", h->ledger_down },
        { "kms", h->kms_down },
        { "policy", h->policy_down },
        { "wallet", h->wallet_down },
    };

    ron_json_put_key(out, ron_str("breaker"));
    ron_buf_put_u8(out, '[');

    for (i = 0; i < ron_array_n(breakers); i++) {

        if (breakers[i].down) {
            ron_json_put_comma(out);
            ron_buf_put_u8(out, '{');
            ron_json_put_member(out, ron_str("svc"),
                                ron_cstr(breakers[i].svc));
            ron_json_put_member(out, ron_str("state"), ron_str("open"));
            ron_buf_put_u8(out, '}');
        }
    }

    ron_buf_put_u8(out, ']');
}


static void
ron_api_put_missing(ron_buf_t *out, const char *name, bool there)
{
    if (!there) {
        ron_json_put_comma(out);
        ron_json_put_string(out, ron_cstr(name));
    }
}
