
#include "ron_ctl_replay.h"
#include "ron_port.h"

#include <stdlib.h>


static void replay_keep(ron_replay_t *r, ron_replay_conn_t *c,
    ron_str_t body);
static uint64_t replay_draw(ron_replay_t *r, uint64_t n);


ron_status_t
ron_replay_init(ron_replay_t *r, unsigned connections, uint64_t percent)
{
    memset(r, 0, sizeof(ron_replay_t));

    if (percent == 0) {
        return RON_OK;
    }

    r->conns = calloc(connections, sizeof(ron_replay_conn_t));

    if (r->conns == NULL) {
        return RON_ENOMEM;
    }

    for (unsigned i = 0; i < connections; i++) {
        for (unsigned k = 0; k < RON_REPLAY_KEPT; k++) {
            ron_buf_init(&r->conns[i].kept[k].request, 0);
            ron_buf_init(&r->conns[i].kept[k].answer, 0);
        }
    }

    r->percent = percent;
    r->connections = connections;
    r->random = ron_clock_mono_us() | 1;

    return RON_OK;
}


void
ron_replay_free(ron_replay_t *r)
{
    for (unsigned i = 0; r->conns != NULL && i < r->connections; i++) {
        for (unsigned k = 0; k < RON_REPLAY_KEPT; k++) {
            ron_buf_free(&r->conns[i].kept[k].request);
            ron_buf_free(&r->conns[i].kept[k].answer);
        }
    }

    free(r->conns);
    r->conns = NULL;
}


bool
ron_replay_request(ron_replay_t *r, unsigned connection, ron_str_t *bytes)
{
    uint64_t            n;
    ron_replay_conn_t  *c;

    if (r->percent == 0) {
        return false;
    }

    c = &r->conns[connection];
    c->again = NULL;
    n = ron_min(c->answered, RON_REPLAY_KEPT);
    r->due += r->percent;

    if (n == 0 || r->due < 100) {
        return false;
    }

    r->due -= 100;
    c->again = &c->kept[replay_draw(r, n)];
    *bytes = ron_buf_str(&c->again->request);
    r->sent++;

    return true;
}


void
ron_replay_new(ron_replay_t *r, unsigned connection, ron_str_t bytes)
{
    if (r->percent != 0) {
        r->conns[connection].bytes = bytes;
    }
}


bool
ron_replay_answer(ron_replay_t *r, unsigned connection, unsigned status,
    ron_str_t body)
{
    ron_replay_conn_t  *c;

    if (r->percent == 0) {
        return false;
    }

    c = &r->conns[connection];

    if (c->again == NULL) {
        if (status == 200) {
            replay_keep(r, c, body);
        }

        return false;
    }

    /* what is refused for want of room is no answer to compare */

    if (status == 200) {
        if (ron_str_eq(ron_buf_str(&c->again->answer), body)) {
            r->same++;

        } else {
            r->differ++;
        }
    }

    return true;
}


/* With luck, in the place of an older one, so that all have the same luck. */

static void
replay_keep(ron_replay_t *r, ron_replay_conn_t *c, ron_str_t body)
{
    uint64_t            at;
    ron_replay_pair_t  *pair;

    at = c->answered < RON_REPLAY_KEPT ? c->answered
                                       : replay_draw(r, c->answered + 1);
    c->answered++;

    if (at >= RON_REPLAY_KEPT) {
        return;
    }

    pair = &c->kept[at];
    ron_buf_reset(&pair->request);
    ron_buf_reset(&pair->answer);
    ron_buf_put_str(&pair->request, c->bytes);
    ron_buf_put_str(&pair->answer, body);

    /* half of an answer would be none like the next */

    RON_ASSERT(ron_buf_status(&pair->request) == RON_OK
               && ron_buf_status(&pair->answer) == RON_OK);
}


static uint64_t
replay_draw(ron_replay_t *r, uint64_t n)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;

    return (r->random >> 11) % n;
}
