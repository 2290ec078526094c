
/*
 * The life of the service.
 *
 *              open          level, lock taken, replayed, bound
 *     STARTING ----> FOLLOWING ----------------------> RUNNING
 *         |            ^   |                            |   |
 *         |            |   +--- checks failed ----+     |   | drain
 *         |            |                          v     |   v
 *         +------------+----------------------> SAFE <--+  DRAINING
 *           cannot open            append failed  MODE <----+  |  \
 *                                                 |  partial|  |   v late
 *                                                 |         |  |  ABORTING
 *                                                 |         +--|---+  |
 *                                                 |            v      |
 *                                                 +--------> STOPPED <+
 *
 * One turn of the loop: what the sockets brought; what the committer has
 * finished; what can be decided now; one write a connection; a signature of
 * the head.  In this order a batch that just became durable makes room for the
 * next one before anybody waits for a socket, and nobody waits for a signature.
 *
 * Safe mode closes the engine, because it holds decisions that never became
 * true, and opens it again as a follower: reading is always possible, and
 * acquiring is what decides.  Who closes the engine gives up the lock, so the
 * mark is written first.
 */

#include "ron_service_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ron_digest.h"


#define RON_SERVICE_EVENTS   256
#define RON_SERVICE_TICK_US  100000
#define RON_SERVICE_CHUNK    (4 * 1024 * 1024)
#define RON_SERVICE_STOP_US  20000          /* of a stop, for closing */
#define RON_SERVICE_IDLE_US  1000000
#define RON_SERVICE_NAP_US   200

#define RON_EPOLL_WAKE       UINT64_C(0)
#define RON_EPOLL_LISTENER   UINT64_C(0xffffffffffffffff)

#define ron_timeout_us(id)                                                    \
    (UINT64_C(1000) * ron_timeout_info(RON_TIMEOUT_##id)->ms)


static ron_status_t ron_service_init(ron_service_t *s);
static ron_status_t ron_service_init_socket(ron_service_t *s);
static void ron_service_free(ron_service_t *s);
static void ron_service_main(void *arg);
static void ron_service_events(ron_service_t *s, uint64_t wait_us);
static void ron_service_notify(void *ctx);
static uint64_t ron_service_step(ron_service_t *s, uint64_t now_us);
static uint64_t ron_service_step_follow(ron_service_t *s, uint64_t now_us);
static uint64_t ron_service_step_run(ron_service_t *s, uint64_t now_us);
static uint64_t ron_service_step_drain(ron_service_t *s, uint64_t now_us);
static uint64_t ron_service_step_safe(ron_service_t *s, uint64_t now_us);
static bool ron_service_unmarked(ron_service_t *s);
static void ron_service_tick(ron_service_t *s, uint64_t now_us);
static ron_status_t ron_service_open(ron_service_t *s);
static ron_status_t ron_service_follow(ron_service_t *s);
static ron_status_t ron_service_acquire(ron_service_t *s);
static ron_status_t ron_service_probe(ron_service_t *s);
static void ron_service_acquired(ron_service_t *s);
static ron_status_t ron_service_read_head(ron_service_t *s);
static void ron_service_refused(ron_service_t *s, ron_status_t status);
static void ron_service_replay(ron_service_t *s);
static void ron_service_unopened(ron_service_t *s);
static void ron_service_close_engine(ron_service_t *s);
static void ron_service_mark(ron_service_t *s);
static void ron_service_delay(ron_service_t *s, uint64_t now_us);
static void ron_service_drained(ron_service_t *s);
static void ron_service_finish(ron_service_t *s);
static const char *ron_service_why(ron_service_t *s);


static const struct {
    const char  *name;
    bool         ack;
} ron_safe_info[] = {
#define RON_SAFE_ROW(id, name, ack)  { name, ack },
    RON_SERVICE_SAFE(RON_SAFE_ROW)
#undef RON_SAFE_ROW
};


/* ---- starting and stopping, on the caller's thread ---------------------- */

void
ron_service_conf_init(ron_service_conf_t *conf)
{
    memset(conf, 0, sizeof(ron_service_conf_t));
    ron_engine_conf_init(&conf->engine);
    conf->connections = 1024;
    conf->queue_preval = ron_queue_info(RON_QUEUE_PREVAL)->capacity;
    conf->queue_commit = ron_queue_info(RON_QUEUE_COMMIT)->capacity;
    conf->preval_bytes = 64 * 1024 * 1024;
    conf->drain_ms = ron_timeout_info(RON_TIMEOUT_DRAIN)->ms;
    conf->out_max = 8 * 1024 * 1024;
}


ron_status_t
ron_service_start(const ron_service_conf_t *conf, ron_service_t **service)
{
    ron_status_t    status;
    ron_service_t  *s;

    *service = NULL;

    if (conf->connections == 0 || conf->connections > UINT16_MAX
        || conf->queue_preval == 0 || conf->queue_commit == 0
        || conf->engine.batch_ops == 0 || conf->socket == NULL)
    {
        return RON_EINVAL;
    }

    s = calloc(1, sizeof(ron_service_t));
    if (s == NULL) {
        return RON_ENOMEM;
    }

    s->conf = *conf;

    if (s->conf.engine.clock == NULL) {
        s->conf.engine.clock = &s->clock;
    }

    s->epoll = -1;
    s->wake = -1;
    s->listener = -1;
    s->unclean = conf->unclean;

    status = ron_service_init(s);

    if (status == RON_OK) {
        status = ron_thread_start(&s->thread, "ron-sequencer",
                                  RON_THREAD_PROMPT, ron_service_main, s);
    }

    if (status != RON_OK) {
        ron_service_free(s);
        return status;
    }

    *service = s;

    return RON_OK;
}


static ron_status_t
ron_service_init(ron_service_t *s)
{
    ron_status_t        status;
    struct epoll_event  ev;

    memcpy(s->key.b, s->conf.auth_key, RON_AUTH_KEY_LEN);
    ron_buf_init(&s->why, RON_SERVICE_WHY);
    ron_buf_init(&s->scratch, 0);

    status = ron_service_init_socket(s);
    if (status != RON_OK) {
        return status;
    }

    s->take_cap = ron_min(s->conf.engine.batch_ops, s->conf.queue_preval);

    s->peers = calloc(s->conf.connections, sizeof(ron_peer_t *));
    s->dirty = calloc(s->conf.connections, sizeof(ron_peer_t *));
    s->preval = calloc(s->conf.queue_preval, sizeof(ron_item_t *));
    s->take = calloc(s->take_cap, sizeof(ron_unit_t *));
    s->ops = calloc(RON_UNIT_OPS_MAX, sizeof(ron_entry_t));
    s->waits = calloc(RON_SERVICE_WAITS, sizeof(ron_wait_t));

    if (s->peers == NULL || s->dirty == NULL || s->preval == NULL
        || s->take == NULL || s->ops == NULL || s->waits == NULL)
    {
        return RON_ENOMEM;
    }

    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    memset(&ev, 0, sizeof(ev));
    ev.events = EPOLLIN;
    ev.data.u64 = RON_EPOLL_WAKE;

    if (s->epoll == -1 || s->wake == -1
        || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &ev) == -1)
    {
        return RON_EIO;
    }

    return RON_OK;
}


static ron_status_t
ron_service_init_socket(ron_service_t *s)
{
    int     n;
    size_t  len;

    len = strlen(s->conf.socket);
    s->abstract = s->conf.socket[0] == '@';
    s->addr.sun_family = AF_UNIX;

    n = snprintf(s->temp, sizeof(s->temp), "%s.%d.tmp", s->conf.socket,
                 (int) getpid());

    if (len < 2 || len >= sizeof(s->addr.sun_path) || n < 0
        || (!s->abstract && (size_t) n >= sizeof(s->addr.sun_path)))
    {
        return RON_EINVAL;
    }

    memcpy(s->addr.sun_path, s->conf.socket, len);
    s->addr_len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len);

    if (s->abstract) {
        s->addr.sun_path[0] = '\0';
    }

    return RON_OK;
}


static void
ron_service_free(ron_service_t *s)
{
    if (s->epoll != -1) {
        (void) close(s->epoll);
    }

    if (s->wake != -1) {
        (void) close(s->wake);
    }

    ron_buf_free(&s->why);
    ron_buf_free(&s->scratch);
    free(s->peers);
    free(s->dirty);
    free(s->preval);
    free(s->take);
    free(s->ops);
    free(s->waits);
    memset(&s->key, 0, sizeof(s->key));
    memset(s->conf.auth_key, 0, sizeof(s->conf.auth_key));
    free(s);
}


void
ron_service_wake(ron_service_t *s)
{
    ssize_t   n;
    uint64_t  one;

    one = 1;
    n = write(s->wake, &one, sizeof(one));
    (void) n;                   /* full means that it is awake already */
}


void
ron_service_drain(ron_service_t *service)
{
    atomic_store(&service->want_drain, true);
    ron_service_wake(service);
}


ron_status_t
ron_service_stop(ron_service_t *service, uint64_t timeout_ms)
{
    uint64_t      limit_us;
    ron_status_t  status;

    limit_us = timeout_ms * 1000;
    atomic_store(&service->stop_us, ron_clock_mono_us() + limit_us
                 - ron_min(limit_us / 2, (uint64_t) RON_SERVICE_STOP_US));
    atomic_store(&service->want_stop, true);
    ron_service_wake(service);

    status = ron_thread_join(service->thread, timeout_ms);

    if (status == RON_OK) {
        ron_service_free(service);
    }

    return status;
}


/* ---- the sequencer's thread --------------------------------------------- */

static void
ron_service_main(void *arg)
{
    uint64_t        now_us, wait_us;
    ron_service_t  *s = arg;

    wait_us = 0;

    while (!atomic_load(&s->want_stop)) {
        ron_service_events(s, wait_us);

        now_us = ron_clock_mono_us();

        if (s->state != RON_STATE_SAFE_MODE     /* where it has to wait */
            && atomic_exchange(&s->want_drain, false))
        {
            ron_service_begin_drain(s);
        }

        ron_service_check_distrust(s);
        wait_us = ron_service_step(s, now_us);

        if (now_us >= s->tick_us) {
            ron_service_tick(s, now_us);
        }

        ron_service_peers_flush(s);

        wait_us = ron_min(wait_us, ron_service_sign(s, now_us));
        wait_us = ron_min(wait_us, (uint64_t) RON_SERVICE_TICK_US);
    }

    ron_service_finish(s);
}


static void
ron_service_events(ron_service_t *s, uint64_t wait_us)
{
    int                 i, n;
    uint64_t            token, count;
    struct epoll_event  events[RON_SERVICE_EVENTS];

    n = epoll_wait(s->epoll, events, RON_SERVICE_EVENTS,
                   (int) ((wait_us + 999) / 1000));

    for (i = 0; i < n; i++) {
        token = events[i].data.u64;

        if (token == RON_EPOLL_WAKE) {
            (void) !read(s->wake, &count, sizeof(count));

        } else if (token == RON_EPOLL_LISTENER) {
            ron_service_accept(s);

        } else {
            ron_service_peer_event(s, token & 0xffff, token >> 16,
                                   events[i].events);
        }
    }
}


/* On the committer's thread, after each batch. */

static void
ron_service_notify(void *ctx)
{
    ron_service_t  *s = ctx;

    ron_service_wake(s);

    if (s->conf.commit_delay_us > 0) {
        ron_sleep_us(s->conf.commit_delay_us);
    }
}


static void
ron_service_tick(ron_service_t *s, uint64_t now_us)
{
    s->tick_us = now_us + RON_SERVICE_TICK_US;
    ron_service_peers_expire(s, now_us);

    /* ledger time is told of the wall clock, however little there is to do */

    if (s->writer) {
        ron_service_depths(s);
        (void) ron_engine_clock(s->engine, now_us, ron_clock_wall_ms());
    }

    if (s->writer && s->listener == -1) {
        ron_service_bind_again(s);
    }

    if (s->state == RON_STATE_SAFE_MODE && !s->writer) {
        ron_service_check_name(s);
    }
}


static uint64_t
ron_service_step(ron_service_t *s, uint64_t now_us)
{
    switch (s->state) {

    case RON_STATE_STARTING:
        if (s->unclean || ron_service_name_dead(s)) {
            ron_service_replay(s);

        } else if (ron_service_open(s) == RON_OK) {
            ron_service_set_state(s, RON_STATE_FOLLOWING, "");

        } else {
            ron_service_enter_safe(s, RON_SAFE_OPEN, ron_service_why(s));
        }
        return 0;

    case RON_STATE_FOLLOWING:
        return ron_service_step_follow(s, now_us);

    case RON_STATE_RUNNING:
        return ron_service_step_run(s, now_us);

    case RON_STATE_DRAINING:
    case RON_STATE_ABORTING:
        return ron_service_step_drain(s, now_us);

    case RON_STATE_SAFE_MODE:
        return ron_service_step_safe(s, now_us);

    default:
        return RON_SERVICE_IDLE_US;
    }
}


static uint64_t
ron_service_step_follow(ron_service_t *s, uint64_t now_us)
{
    ron_status_t  status;

    if (s->level && now_us < s->retry_us) {
        return s->retry_us - now_us;
    }

    status = ron_service_follow(s);

    if (status == RON_OK) {
        return 0;
    }

    if (status != RON_ENOTFOUND) {
        ron_service_found(s, status);
        ron_service_enter_safe(s, RON_SAFE_OPEN, ron_service_why(s));
        return 0;
    }

    status = ron_service_acquire(s);

    if (status == RON_AGAIN) {
        s->retry_us = now_us + ron_timeout_us(FOLLOW);
        return ron_timeout_us(FOLLOW);
    }

    if (status != RON_OK) {
        ron_service_refused(s, status);
    }

    return 0;
}


static uint64_t
ron_service_step_run(ron_service_t *s, uint64_t now_us)
{
    ron_service_reap(s);

    if (s->state != RON_STATE_RUNNING) {
        return 0;
    }

    ron_service_decide(s);

    if (s->expiry_us > now_us) {
        return s->expiry_us - now_us;
    }

    return s->expiry_us ? 1000 : RON_SERVICE_IDLE_US;
}


static uint64_t
ron_service_step_drain(ron_service_t *s, uint64_t now_us)
{
    bool      late;
    char      text[96];
    uint64_t  waited_us;

    ron_service_reap(s);

    if (s->state != RON_STATE_DRAINING && s->state != RON_STATE_ABORTING) {
        return 0;
    }

    waited_us = now_us - ron_min(s->drain_us, now_us);
    late = waited_us >= s->conf.drain_ms * 1000;

    if (!late) {
        ron_service_decide(s);

        if (s->state != RON_STATE_DRAINING) {
            return 0;
        }

    } else if (s->state == RON_STATE_DRAINING
               && (s->preval_n != 0 || s->reaped != s->decided))
    {
        (void) snprintf(text, sizeof(text), "the deadline of the drain passed, "
                        "%u given up", (unsigned) s->preval_n);
        ron_service_set_state(s, RON_STATE_ABORTING, text);
        ron_service_refuse_preval(s, RON_REASON_DRAINING);
    }

    if (s->preval_n == 0 && s->reaped == s->decided
        && (late || s->conf.admitted == NULL
            || s->conf.admitted(s->conf.ctx) == 0))
    {
        ron_service_drained(s);
        return 0;
    }

    if (waited_us > s->conf.drain_ms * 1000 + ron_timeout_us(DRAIN_COMMIT)) {
        (void) snprintf(text, sizeof(text), "partial at seq %llu",
                        (unsigned long long) s->seq);
        ron_service_enter_safe(s, RON_SAFE_DRAIN, text);
        return 0;
    }

    return 10000;
}


/*
 * Nobody listens until the journal has been read: requests wait for that, and
 * the state says to those that come anew that they must not.
 */

static void
ron_service_replay(ron_service_t *s)
{
    ron_service_enter_safe(s, RON_SAFE_REPLAY,
                           "the one before did not end cleanly");
    s->unclean = false;
    s->retry_us = 0;
    s->retry_delay_us = 0;
}


/* What keeps a replay from its end is the reason from now on. */

static void
ron_service_unopened(ron_service_t *s)
{
    if (s->safe == RON_SAFE_REPLAY) {
        ron_service_enter_safe(s, RON_SAFE_OPEN, ron_service_why(s));
    }
}


/*
 * What was in the committer's hands comes back first; then the engine is
 * opened anew, and once it is level with the journal, the lock is asked for,
 * unless an operator must speak first.
 */

static uint64_t
ron_service_step_safe(ron_service_t *s, uint64_t now_us)
{
    ron_status_t  status;

    if (s->reaped < s->decided) {
        ron_service_reap(s);

        if (s->reaped < s->decided) {
            return RON_SERVICE_TICK_US;
        }
    }

    if (s->writer) {
        ron_service_close_engine(s);
    }

    if (now_us < s->retry_us) {
        return s->retry_us - now_us;
    }

    if (s->engine == NULL && ron_service_open(s) != RON_OK) {
        ron_service_unopened(s);
        ron_service_delay(s, now_us);
        return 0;
    }

    status = ron_service_follow(s);

    if (status == RON_OK) {
        return 0;
    }

    if (status != RON_ENOTFOUND) {
        ron_service_unopened(s);
        ron_service_close_engine(s);
        ron_service_delay(s, now_us);
        return 0;
    }

    if (s->safe_ack && !ron_service_unmarked(s)) {
        s->retry_us = now_us + RON_SERVICE_IDLE_US;
        return RON_SERVICE_IDLE_US;
    }

    status = ron_service_acquire(s);

    if (status == RON_AGAIN) {
        ron_service_unlisten(s, false);
        ron_service_peers_close(s);
        ron_service_set_state(s, RON_STATE_FOLLOWING, "another writer");

    } else if (status != RON_OK) {
        ron_service_refused(s, status);
        ron_service_delay(s, now_us);
    }

    return 0;
}


/*
 * Has the operator spoken to another helper, which cleared the mark?  Then
 * that one has the ledger or had it, and we wait for our turn like any other.
 */

static bool
ron_service_unmarked(ron_service_t *s)
{
    bool       clear;
    ron_buf_t  reason;

    if (!s->marked) {
        return false;
    }

    ron_buf_init(&reason, 0);
    clear = ron_store_mark_read(ron_engine_store(s->engine), &reason)
            == RON_ENOTFOUND;
    ron_buf_free(&reason);

    if (clear) {
        s->safe_ack = false;
        s->marked = false;
    }

    return clear;
}


/* Doubles from one try to the next, and is jittered by up to a quarter. */

static void
ron_service_delay(ron_service_t *s, uint64_t now_us)
{
    uint64_t  jitter;

    if (ron_random(&jitter, sizeof(jitter)) != RON_OK) {
        jitter = 0;
    }

    s->retry_delay_us = ron_max(s->retry_delay_us,
                                ron_timeout_us(REOPEN_FIRST));
    s->retry_us = now_us + s->retry_delay_us
                  + jitter % (s->retry_delay_us / 4);
    s->retry_delay_us = ron_min(s->retry_delay_us * 2,
                                ron_timeout_us(REOPEN_LAST));
}


/* ---- the engine --------------------------------------------------------- */

static const char *
ron_service_why(ron_service_t *s)
{
    ron_buf_put_u8(&s->why, 0);

    if (s->why.len == 0 || s->why.data[s->why.len - 1] != 0) {
        return "no reason was given";
    }

    s->why.len--;

    return s->why.len ? (const char *) s->why.data : "no reason was given";
}


static ron_status_t
ron_service_open(ron_service_t *s)
{
    s->level = false;
    s->open_us = ron_clock_mono_us();
    ron_buf_reset(&s->why);

    return ron_engine_open(&s->conf.engine, &s->engine, &s->why);
}


static ron_status_t
ron_service_follow(ron_service_t *s)
{
    ron_status_t       status;
    ron_engine_stat_t  stat;

    ron_buf_reset(&s->why);
    status = ron_engine_follow(s->engine, RON_SERVICE_CHUNK, &s->why);
    s->level = status == RON_ENOTFOUND;

    if (status == RON_OK || status == RON_ENOTFOUND) {
        ron_engine_stat(s->engine, &stat);
        s->seq = stat.seq;
        s->time_ms = stat.time_ms;
        ron_service_gauge(s, RON_STAT_SEQ, s->seq);
        ron_service_gauge(s, RON_STAT_TIME_MS, s->time_ms);
    }

    return status;
}


/* Asks for the lock, and with it for all checks. */

static ron_status_t
ron_service_acquire(ron_service_t *s)
{
    ron_status_t  status;

    s->lock_us = ron_clock_mono_us();
    ron_buf_reset(&s->why);

    status = ron_engine_acquire(s->engine, &s->why);
    ron_service_summed(s);

    if (status != RON_OK) {
        return status;
    }

    status = ron_service_read_head(s);

    if (status == RON_OK) {
        status = ron_service_check_published(s);

        if (status == RON_OK) {
            status = ron_service_probe(s);
        }

        if (status != RON_OK) {

            /* the lock is ours, and goes with the engine: in safe mode */

            s->writer = true;
            return status;
        }

        status = ron_engine_start(s->engine, ron_service_notify, s);
    }

    if (status != RON_OK) {
        ron_buf_put_cstr(&s->why, "the head could not be read, or no thread"
                         " started");
        ron_service_close_engine(s);
        return RON_EIO;
    }

    ron_service_acquired(s);

    return RON_OK;
}


/*
 * The one before us may have been unable to write anything, the mark of its
 * safe mode too: a page beside the journal must be written and synced first.
 */

static ron_status_t
ron_service_probe(ron_service_t *s)
{
    if (ron_store_probe(ron_engine_store(s->engine)) == RON_OK) {
        return RON_OK;
    }

    ron_buf_put_cstr(&s->why, "a page could not be written and synced beside"
                     " the journal");
    return RON_EIO;
}


static ron_status_t
ron_service_read_head(ron_service_t *s)
{
    ron_row_t          row;
    ron_store_t       *store;
    ron_status_t       status;
    ron_reader_t      *reader;

    store = ron_engine_store(s->engine);
    status = ron_reader_open(store, &reader);

    if (status != RON_OK) {
        return status;
    }

    status = ron_reader_head(reader, &row);

    if (status == RON_OK) {
        s->seq = row.seq + row.count - 1;
        s->time_ms = row.time_ms;
        s->root = row.root;

    } else if (status == RON_ENOTFOUND) {
        s->seq = 0;
        s->time_ms = 0;
        ron_digest_bytes(ron_store_meta(store)->digest, "", 0, &s->root);
        status = RON_OK;
    }

    ron_reader_close(reader);

    return status;
}


static void
ron_service_acquired(ron_service_t *s)
{
    s->writer = true;
    s->level = false;
    s->safe_ack = false;
    s->marked = false;
    s->decided = 0;
    s->reaped = 0;
    s->expiry_us = 0;
    s->expiry_ms = 0;
    s->retry_us = 0;
    s->retry_delay_us = 0;
    s->gap = false;

    ron_service_gauge(s, RON_STAT_WRITER, 1);
    ron_service_gauge(s, RON_STAT_NO_ROOM, 0);
    ron_service_gauge(s, RON_STAT_SEQ, s->seq);
    ron_service_gauge(s, RON_STAT_TIME_MS, s->time_ms);
    ron_service_gauge(s, RON_STAT_SYNC_SINCE_US, 0);

    if (s->conf.on_head) {
        s->conf.on_head(s->conf.ctx, s->seq, s->time_ms, &s->root);
    }

    /*
     * Anew even if we listen already: in safe mode nobody held the lock, and
     * another helper in safe mode may have taken the name.
     */
    ron_service_unlisten(s, false);
    ron_service_bind_again(s);
    ron_service_timed(s);

    if (s->conf.drained) {
        s->conf.drained = false;
        s->drain_us = ron_clock_mono_us();
        ron_service_set_state(s, RON_STATE_DRAINING, "drain");
        return;
    }

    ron_service_set_state(s, RON_STATE_RUNNING, "");
}


void
ron_service_bind_again(ron_service_t *s)
{
    ron_status_t  status;

    status = ron_service_listen(s);

    /* Said once: the next try is a tick away, and says the same. */

    if (status != RON_OK && !s->listener_off) {
        s->listener_off = true;
        ron_log(RON_LOG_ERROR, "the ledger's socket \"%s\" cannot be bound:"
                " %s", s->conf.socket, ron_status_name(status));
    }
}


/* The lock could have been had, but the journal must not be written. */

static void
ron_service_refused(ron_service_t *s, ron_status_t status)
{
    ron_safe_t  safe;

    ron_service_found(s, status);

    switch (status) {

    case RON_ECANCELED:
        safe = RON_SAFE_MARKED;
        break;

    case RON_ECORRUPT:
        safe = RON_SAFE_GAP;
        break;

    default:
        safe = RON_SAFE_OPEN;
        break;
    }

    ron_service_enter_safe(s, safe, ron_service_why(s));

    /*
     * Nobody else held the lock a moment ago, so the name is ours to take:
     * workers are told "safe mode" instead of nothing.
     */
    ron_service_bind_again(s);
}


static void
ron_service_close_engine(ron_service_t *s)
{
    ron_service_waits_fail(s);

    if (s->engine != NULL) {
        ron_engine_close(s->engine);
        s->engine = NULL;
    }

    s->writer = false;
    s->level = false;
    s->decided = 0;
    s->reaped = 0;
    s->work_n = 0;
    ron_service_gauge(s, RON_STAT_WRITER, 0);
    ron_service_gauge(s, RON_STAT_COMMIT_DEPTH, 0);
    ron_service_gauge(s, RON_STAT_WORK_TAKEN, 0);
    ron_service_gauge(s, RON_STAT_SYNC_SINCE_US, 0);
}


/* ---- states ------------------------------------------------------------- */

void
ron_service_set_state(ron_service_t *s, ron_life_t state, const char *reason)
{
    bool             left;
    ron_msg_state_t  msg;

    if (s->state == state && strcmp(s->reason, reason) == 0) {
        return;
    }

    left = s->state == RON_STATE_SAFE_MODE && state != RON_STATE_SAFE_MODE;

    s->state = state;
    (void) snprintf(s->reason, sizeof(s->reason), "%s", reason);
    ron_service_gauge(s, RON_STAT_STATE, state);

    ron_log(left || state == RON_STATE_SAFE_MODE ? RON_LOG_ERROR
            : state == RON_STATE_ABORTING ? RON_LOG_WARN : RON_LOG_INFO,
            "ledger is %s%s%s%s%s%s, seq %llu", ron_state_name(state),
            reason[0] ? ": " : "", reason, left ? ", left safe mode (" : "",
            left ? ron_safe_info[s->safe].name : "", left ? ")" : "",
            (unsigned long long) s->seq);

    msg.state = state;
    msg.reason = ron_cstr(s->reason);
    ron_buf_reset(&s->scratch);
    ron_msg_state_put(&s->scratch, &msg);
    ron_service_push(s, RON_FRAME_STATE, ron_buf_str(&s->scratch));

    if (s->conf.on_state) {
        s->conf.on_state(s->conf.ctx, state, s->reason);
    }
}


void
ron_service_enter_safe(ron_service_t *s, ron_safe_t safe, const char *why)
{
    char  reason[RON_MSG_REASON_MAX];

    (void) snprintf(reason, sizeof(reason), "%s: %s",
                    ron_safe_info[safe].name, why);

    if (s->state != RON_STATE_SAFE_MODE) {
        ron_service_count(s, RON_STAT_SAFE_ENTERED, 1);
        ron_service_delay(s, ron_clock_mono_us());
    }

    s->safe = safe;
    s->safe_ack = s->safe_ack || ron_safe_info[safe].ack;

    ron_service_refuse_preval(s, RON_REASON_SAFE_MODE);
    ron_service_waits_fail(s);
    ron_service_set_state(s, RON_STATE_SAFE_MODE, reason);
    s->marked = s->marked || safe == RON_SAFE_MARKED;

    if (ron_safe_info[safe].ack && safe != RON_SAFE_MARKED) {
        ron_service_mark(s);
    }
}


/* The mark must outlive us; if it cannot, there is the successor's probe. */

static void
ron_service_mark(ron_service_t *s)
{
    if (s->engine == NULL
        || ron_store_mark_write(ron_engine_store(s->engine),
                                ron_cstr(s->reason)) != RON_OK)
    {
        ron_log(RON_LOG_ALERT, "safe mode could not be marked beside the"
                " journal");
        return;
    }

    s->marked = true;
}


void
ron_service_failed(ron_service_t *s, ron_status_t status)
{
    char  text[96];

    if (s->state == RON_STATE_SAFE_MODE) {
        return;
    }

    ron_service_found(s, status);

    (void) snprintf(text, sizeof(text), "an append after seq %llu failed: %s",
                    (unsigned long long) s->seq, ron_status_name(status));

    switch (status) {

    case RON_EFENCED:
        /* Somebody else writes: nothing is wrong with the journal. */
        ron_service_enter_safe(s, RON_SAFE_OPEN, text);
        break;

    case RON_EFULL:
        ron_service_enter_safe(s, RON_SAFE_DISK_FULL, text);
        break;

    default:
        ron_service_enter_safe(s, RON_SAFE_SYNC, text);
        break;
    }
}


/*
 * An operator says that the ledger may be written again.  Acquiring opens
 * and checks everything and looks at the mark last, so "canceled" means that
 * the mark is all that is in the way.
 */

ron_status_t
ron_service_leave_safe(ron_service_t *s)
{
    uint64_t      epoch;
    ron_store_t  *store;
    ron_status_t  status;

    ron_buf_reset(&s->why);

    if (s->state != RON_STATE_SAFE_MODE || s->reaped < s->decided) {
        return RON_ECANCELED;
    }

    ron_service_close_engine(s);

    status = ron_service_open(s);

    while (status == RON_OK) {
        status = ron_service_follow(s);
    }

    if (status == RON_ENOTFOUND) {
        status = ron_service_acquire(s);
    }

    if (status == RON_ECANCELED) {
        store = ron_engine_store(s->engine);
        status = ron_store_acquire(store, &epoch);

        if (status == RON_OK) {
            status = ron_store_mark_write(store, ron_null_str);
            ron_store_release(store);
        }

        if (status == RON_OK) {
            status = ron_service_acquire(s);

            if (status != RON_OK && s->engine != NULL) {
                (void) ron_store_mark_write(ron_engine_store(s->engine),
                                            ron_cstr(s->reason));
            }
        }
    }

    if (status == RON_AGAIN) {
        s->safe_ack = false;
        return RON_OK;
    }

    return status == RON_ECANCELED ? RON_EIO : status;
}


void
ron_service_begin_drain(ron_service_t *s)
{
    switch (s->state) {

    case RON_STATE_RUNNING:
        s->drain_us = ron_clock_mono_us();
        ron_service_set_state(s, RON_STATE_DRAINING, "drain");
        break;

    case RON_STATE_STARTING:
    case RON_STATE_FOLLOWING:
        ron_service_close_engine(s);
        ron_service_set_state(s, RON_STATE_STOPPED, "drained");
        break;

    default:
        break;
    }
}


/* The name goes before the lock: after it, it may be a successor's. */

static void
ron_service_drained(ron_service_t *s)
{
    ron_msg_commit_t  commit;

    commit = (ron_msg_commit_t) { s->seq, 0, s->time_ms, s->root };
    ron_buf_reset(&s->scratch);
    ron_msg_commit_put(&s->scratch, &commit);
    ron_service_push(s, RON_FRAME_COMMIT, ron_buf_str(&s->scratch));

    ron_service_unlisten(s, true);
    ron_service_close_engine(s);
    ron_service_set_state(s, RON_STATE_STOPPED, "drained");
}


/* What is decided is finished and answered; what is not, is not. */

static void
ron_service_finish(ron_service_t *s)
{
    uint64_t  limit_us;

    limit_us = atomic_load(&s->stop_us);

    while (s->engine != NULL && s->reaped < s->decided) {
        ron_service_reap(s);

        if (s->reaped == s->decided || ron_clock_mono_us() >= limit_us) {
            break;
        }

        ron_service_peers_flush(s);
        ron_sleep_us(RON_SERVICE_NAP_US);
    }

    ron_service_forget_preval(s);
    ron_service_peers_flush(s);
    ron_service_unlisten(s, s->writer || ron_service_name_is_ours(s));
    ron_service_close_engine(s);
    ron_service_peers_flush(s);
    ron_service_peers_close(s);
}
