
/*
 * Small configurations, explored to the end: wherever more than one task
 * could go on, the world is forked and each of them does.  Time stands still
 * while anybody can go on, and no wait ends by its time-out alone, so a lost
 * wake-up is a deadlock here and not a delay.
 *
 * The engine: a producer with three sends, a queue of two, the committer.
 * The service: two connections with two payments each, a queue of two, the
 * sequencer and the committer.  In both somebody else says that it is to end,
 * and the memory store is beneath: what is explored is queues, threads,
 * wake-ups and shutdown, not the disk.
 */

#include "sim.h"

#include <stdlib.h>

#include "ron_client.h"
#include "ron_service.h"


#define SMALL_SENDS    3
#define SMALL_QUEUE    2
#define SMALL_CLIENTS  2
#define SMALL_UNITS    2                        /* a client's */


typedef struct {
    ron_client_t  *c;
    sim_end_t     *end;
    sim_task_t    *task;
    ron_buf_t      wire;
    uint32_t       no;
    bool           ready;
    bool           closed;
    uint64_t       call[SMALL_UNITS];
    uint32_t       answers;
} small_client_t;


static ron_engine_t  *small_en;
static uint32_t       small_decided;
static uint32_t       small_reaped;
static uint32_t       small_preempt;
static bool           small_late;               /* no shutdown before */
static bool           small_done;
static bool           small_notified;
static bool           small_stop;
static ron_unit_t     small_units[SMALL_CLIENTS * SMALL_UNITS];
static ron_entry_t    small_ops[SMALL_CLIENTS * SMALL_UNITS];
static char           small_ids[SMALL_CLIENTS * SMALL_UNITS][4];

static ron_service_t       *small_service;
static ron_service_conf_t   small_conf;
static small_client_t       small_clients[SMALL_CLIENTS];
static uint32_t             small_clients_done;
static uint32_t             small_applied[SMALL_CLIENTS * SMALL_UNITS];


static void
small_unit(uint32_t i)
{
    ron_entry_t  *op = &small_ops[i];
    ron_unit_t   *unit = &small_units[i];

    small_ids[i][0] = 'i';
    small_ids[i][1] = (char) ('a' + i);
    op->kind = RON_KIND_MINT;
    op->fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT | RON_F_ID
                 | RON_F_NONCE16 | RON_F_SOURCE;
    op->asset = ron_str("ron");
    op->account = ron_str("a");
    op->amount = 1 + i;
    op->id = ron_cstr(small_ids[i]);
    op->nonce16[0] = (uint8_t) (i + 1);
    op->source_ms = 1700000000000 + i;
    unit->type = RON_UNIT_INGEST;
    unit->cap = ron_str("dev:sim");
    unit->op_n = 1;
    unit->ops = op;
    unit->source_us = i + 1;
}


static void
small_all_done(void)
{
    small_done = true;
    sim_wake(&small_done, true);
}


static void
small_over(void)
{
    sim_count(SIM_SCANS, 1);                    /* one interleaving */
    sim.over = true;
    sim_point();
}


/*
 * Shutdown: at any step, or when all is done.  The one finds who does not see
 * it; the other, who sleeps although there is work: shutdown would wake him.
 */

static void
small_stopper(void *arg)
{
    sim_point();

    while (small_late && !small_done) {
        (void) sim_wait(&small_done, SIM_NEVER);
    }

    small_stop = true;
    sim_wake(arg, true);
}


/* ---- the engine --------------------------------------------------------- */

static void
small_notify(void *ctx)
{
    (void) ctx;
    small_notified = true;                      /* stays, as an eventfd's */
    sim_wake(&small_en, true);
}


static void
small_reap(void)
{
    ron_batch_t  *b;

    while (ron_engine_reap(small_en, &b) == RON_OK) {
        sim_check(b->status == RON_OK && b->count == 1
                  && b->seq == small_reaped + 1,
                  "batch %u came back as seq %llu", small_reaped,
                  (unsigned long long) b->seq);
        sim_check(b->outcomes[0].reason == RON_REASON_OK,
                  "unit %u was refused", small_reaped);
        small_reaped++;
        ron_engine_release(small_en, b);
    }
}


static void
small_open(void)
{
    ron_buf_t          why;
    ron_status_t       status;
    ron_engine_conf_t  conf;

    ron_engine_conf_init(&conf);
    conf.store.url = "memory:1m";
    conf.store.ledger_id = 7;
    conf.store.create = true;
    conf.tag_ram = 4096;
    conf.key_ram = 4096;
    conf.queue_batches = SMALL_QUEUE;
    ron_buf_init(&why, 0);

    sim.oracle = true;                          /* no choices before it runs */
    status = ron_engine_open(&conf, &small_en, &why);
    RON_ASSERT(status == RON_OK);
    status = ron_engine_acquire(small_en, &why);
    RON_ASSERT(status == RON_OK);
    sim.oracle = false;
    status = ron_engine_start(small_en, small_notify, NULL);
    RON_ASSERT(status == RON_OK);
}


/* Between two calls it looks whether it is to end, as the service does. */

static void
small_main(void *arg)
{
    sim_proc_t         *proc = arg;
    ron_unit_t         *unit;
    ron_status_t        status;
    ron_engine_stat_t   st;

    small_open();
    (void) sim_task_start(NULL, "stopper", small_stopper, &small_en);

    while (!small_stop) {
        status = RON_AGAIN;
        small_notified = false;

        if (small_decided < SMALL_SENDS) {
            unit = &small_units[small_decided];
            sim_check(ron_engine_room(small_en) <= SMALL_QUEUE,
                      "too much room");
            status = ron_engine_decide(small_en, 1000, 0, &unit, 1);
            sim_check(status == RON_OK || status == RON_AGAIN,
                      "deciding failed");
            small_decided += status == RON_OK;
            ron_engine_stat(small_en, &st);
            sim_check(st.queue_units <= SMALL_QUEUE, "%u units are queued",
                      st.queue_units);
        }

        small_reap();

        if (small_reaped == SMALL_SENDS) {
            small_all_done();
        }

        if (status == RON_AGAIN && !small_stop && !small_notified) {
            (void) sim_wait(&small_en, SIM_NEVER);
        }
    }

    ron_engine_close(small_en);
    sim_check(small_reaped <= small_decided, "more came back than was sent");
    sim_check(proc->tasks == 1, "%u tasks are left", proc->tasks - 1);
    small_over();
}


void
small_engine(uint32_t preempt_max, bool late)
{
    uint32_t     i;
    sim_proc_t  *proc;

    small_late = late;

    for (i = 0; i < SMALL_SENDS; i++) {
        small_unit(i);
    }

    sim.exhaustive = true;
    sim.mono_us = 1000000;
    sim_preempt_set(preempt_max, false);
    proc = sim_proc_new("small");
    (void) sim_task_start(proc, "main", small_main, proc);
    sim_run();
}


/* ---- the service -------------------------------------------------------- */

static void
small_on_unit(void *ctx, const ron_unit_t *unit, const ron_outcome_t *outcome,
    uint64_t time_ms)
{
    uint32_t             i;
    ron_service_stat_t   st;

    (void) ctx;
    (void) time_ms;
    ron_service_stat(small_service, &st);
    sim_check(st.preval_depth <= SMALL_QUEUE && st.commit_depth <= SMALL_QUEUE,
              "preval holds %u, commit %u", (unsigned) st.preval_depth,
              (unsigned) st.commit_depth);

    if (outcome->reason == RON_REASON_OK) {
        i = (uint32_t) (unit->ops[0].id.data[1] - 'a');
        sim_check(++small_applied[i] == 1, "unit %u was applied twice", i);
    }
}


static void
small_on_ready(void *ctx, const ron_hello_t *hello, const ron_ready_t *ready)
{
    small_client_t  *c = ctx;

    (void) hello;
    c->ready = ready->state == RON_STATE_RUNNING;
}


static void
small_on_state(void *ctx, const ron_msg_state_t *state)
{
    small_client_t  *c = ctx;

    c->ready = c->ready || state->state == RON_STATE_RUNNING;
}


static void
small_on_answer(void *ctx, uint64_t call, ron_frame_type_t type,
    ron_str_t payload)
{
    uint32_t          i;
    ron_result_t      result;
    ron_outcome_t     outcome;
    small_client_t   *c = ctx;
    ron_msg_batch_t   head;

    sim_check(type == RON_FRAME_OUTCOME
              && ron_msg_outcome_get(payload, &head, &outcome, &result, 1)
                 == RON_OK, "an answer that cannot be read");

    for (i = 0; i < SMALL_UNITS && c->call[i] != call; i++) { /**/ }

    sim_check(i < SMALL_UNITS, "an answer that nobody waits for");
    c->call[i] = 0;
    c->answers++;

    if (outcome.reason == RON_REASON_OK) {
        i += c->no * SMALL_UNITS;
        sim_check(small_applied[i] == 1, "unit %u was acknowledged and not"
                  " done", i);

    } else {
        sim_check(ron_reason_info(outcome.reason)->status == 429
                  || ron_reason_info(outcome.reason)->status == 503,
                  "a unit was refused: %s",
                  ron_reason_info(outcome.reason)->name);
    }
}


static void
small_flush(small_client_t *c)
{
    int64_t    n;
    ron_str_t  out;

    for (out = ron_client_output(c->c); out.len > 0 && !c->closed;
         out = ron_client_output(c->c))
    {
        n = sim_end_send(c->end, out.data, out.len);
        c->closed = n < 0;
        ron_client_sent(c->c, (size_t) ron_max(n, 0));
    }
}


/* Something came, or the stream ended. */

static void
small_come(small_client_t *c)
{
    size_t    room;
    int64_t   n;
    uint8_t  *p;

    p = ron_client_space(c->c, 16384, &room);
    RON_ASSERT(p != NULL);
    n = sim_end_recv(c->end, p, room);

    if (n == 0) {
        sim_end_wait(c->end);

    } else if (n < 0) {
        c->closed = true;

    } else {
        sim_check(ron_client_came(c->c, (size_t) n) == RON_OK,
                  "the protocol is broken");
    }
}


static void
small_client(void *arg)
{
    uint32_t         i;
    small_client_t  *c = arg;

    while (c->end == NULL) {
        sim_sleep(1000);
        c->end = sim_connect(SIM_SOCK);
    }

    while (!c->ready) {
        small_flush(c);
        small_come(c);
        sim_check(!c->closed, "no connection");
    }

    (void) sim_wait(&small_clients, SIM_NEVER); /* until both are */

    for (i = 0; i < SMALL_UNITS && !c->closed; i++) {
        sim_point();
        c->call[i] = ron_client_call(c->c);
        ron_buf_reset(&c->wire);
        RON_ASSERT(ron_unit_encode(&small_units[c->no * SMALL_UNITS + i],
                                   &c->wire) == RON_OK);
        RON_ASSERT(ron_client_unit_wire(c->c, c->call[i],
                                        ron_buf_str(&c->wire)) == RON_OK);
        small_flush(c);
    }

    while (!c->closed && c->answers < SMALL_UNITS) {
        small_come(c);
    }

    sim_check(!small_late || small_stop || c->answers == SMALL_UNITS,
              "a connection was closed before all was answered");

    if (++small_clients_done == SMALL_CLIENTS) {
        small_all_done();
    }

    sim_end_close(c->end);
}


/* Nothing is explored before everybody is connected. */

static void
small_serve(void *arg)
{
    uint32_t      i;
    sim_proc_t   *proc = arg;

    RON_ASSERT(ron_service_start(&small_conf, &small_service) == RON_OK);

    for (i = 0; i < SMALL_CLIENTS; i++) {
        while (!small_clients[i].ready) {
            sim_sleep(1000);
        }
    }

    sim_sleep(1000);
    sim.exhaustive = true;
    sim_preempt_set(small_preempt, true);
    sim_wake(&small_clients, true);
    (void) sim_task_start(NULL, "stopper", small_stopper, &small_service);

    while (!small_stop) {
        (void) sim_wait(&small_service, SIM_NEVER);
    }

    sim_check(ron_service_stop(small_service, 20000) == RON_OK,
              "it does not stop");
    sim_check(proc->tasks == 1, "%u tasks are left", proc->tasks - 1);
    sim_check(proc->fds == 0, "%u descriptors are left", proc->fds);

    for (i = 0; i < SMALL_CLIENTS; i++) {
        while (!sim_task_done(small_clients[i].task)) {
            (void) sim_wait(small_clients[i].task, SIM_NEVER);
        }
    }

    small_over();
}


static void
small_client_start(uint32_t no, const ron_auth_key_t *key)
{
    small_client_t     *c = &small_clients[no];
    ron_client_conf_t   conf;

    c->no = no;
    ron_client_conf_init(&conf);
    conf.key = *key;
    conf.slot = no;
    conf.pid = no;
    conf.on_ready = small_on_ready;
    conf.on_answer = small_on_answer;
    conf.on_state = small_on_state;
    conf.ctx = c;
    RON_ASSERT(ron_client_create(&conf, &c->c) == RON_OK);
    c->task = sim_task_start(NULL, no ? "second" : "first", small_client, c);
}


void
small_wallet(uint32_t preempt_max, bool late)
{
    uint32_t             i;
    sim_proc_t          *proc;
    ron_auth_key_t       key;
    ron_service_conf_t  *c = &small_conf;

    for (i = 0; i < ron_array_n(small_units); i++) {
        small_unit(i);
    }

    sim.seed = 1;
    sim.mono_us = 1000000;
    sim.pace_us = 1;
    small_preempt = preempt_max;
    small_late = late;
    sim_disk_init();
    RON_ASSERT(ron_auth_derive(ron_str("a root key of sixteen bytes or so"),
                               &key) == RON_OK);

    ron_service_conf_init(c);
    c->engine.store.url = "memory:1m";
    c->engine.store.ledger_id = 7;
    c->engine.store.create = true;
    c->engine.tag_ram = 4096;
    c->engine.key_ram = 4096;
    c->engine.queue_batches = SMALL_QUEUE;
    c->engine.batch_ops = 1;
    c->socket = SIM_SOCK;
    memcpy(c->auth_key, key.b, RON_AUTH_KEY_LEN);
    c->connections = SMALL_CLIENTS;
    c->queue_preval = SMALL_QUEUE;
    c->queue_commit = SMALL_QUEUE;
    c->on_unit = small_on_unit;

    proc = sim_proc_new("small");
    (void) sim_task_start(proc, "main", small_serve, proc);

    for (i = 0; i < SMALL_CLIENTS; i++) {
        small_client_start(i, &key);
    }

    sim_run();
}
