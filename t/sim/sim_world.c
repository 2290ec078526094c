
/*
 * A world: workers that want something, helpers that do it, masters that
 * start helpers, an operator who acknowledges safe mode, and a director who
 * breaks things.  What is drawn at the beginning (how many, which faults at
 * all, which sizes) differs from seed to seed more than it would if every
 * fault were always possible.
 *
 * A world has two parts.  In the first there are faults.  In the second there
 * are none any more, and then everything must come to its end within bounded
 * time: every unit has an answer for good, the last helper stops, nothing of
 * it is left, and a power cut takes nothing away.
 */

#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "ron_client.h"
#include "ron_engine_impl.h"
#include "ron_log.h"
#include "ron_port.h"
#include "ron_registry.h"
#include "ron_service_impl.h"


#define WORLD_CLIENTS   4
#define WORLD_UNITS     64                      /* a client's */
#define WORLD_HELPERS   256
#define WORLD_END_US    (UINT64_C(300) * 1000000)
#define WORLD_STOP_MS   20000
#define WORLD_RESULTS   8


typedef enum { UNIT_FREE = 0, UNIT_WANTED, UNIT_SENT, UNIT_FINAL } unit_state_t;

typedef struct {
    unit_state_t  state;
    ron_buf_t     wire;
    char          key[24];
    uint32_t      op_n;
    sim_op_t     *ops[SIM_OPS_MAX];
    uint64_t      call;
    uint64_t      again_us;                     /* not before */
    uint64_t      late_us;                      /* not answered until then */
    uint32_t      sends;
} unit_t;

typedef struct {
    uint32_t       no;
    bool           operator;
    ron_client_t  *c;
    sim_end_t     *end;
    bool           ready;
    ron_life_t     state;
    uint64_t       safe_us;                     /* when it is to be left */
    uint64_t       again_us;
    unit_t         units[WORLD_UNITS];
    uint32_t       unit_n;
    uint32_t       unit_max;
    uint32_t       final_n;
    uint32_t       pipeline;
    uint64_t       nonce[2];
    uint64_t       generation;
} client_t;

typedef struct master_s  master_t;

typedef struct {
    sim_proc_t          *proc;
    master_t            *master;
    ron_service_t       *service;
    ron_service_conf_t   conf;
    ron_life_t           state;
    bool                 want_stop;
    bool                 want_drain;
    bool                 ready;                 /* its service runs */
    bool                 gone;
} helper_t;

struct master_s {
    uint32_t             no;
    char                 name[8];
    helper_t            *helper;
    bool                 alive;                 /* wants a helper */
    bool                 clean;                 /* the one before ended well */
    ron_ledger_clock_t   clock;                 /* as its helpers keep it */
    uint64_t             time_ms;               /* of its newest batch, */
    uint64_t             decide_us;             /* decided then; 0: none */
};


static struct {
    client_t        clients[WORLD_CLIENTS + 1];
    uint32_t        client_n;
    helper_t       *helpers[WORLD_HELPERS];
    uint32_t        helper_n;
    master_t        masters[2];
    ron_signer_t   *signer;
    ron_auth_key_t  key;
    uint64_t        generation;
    uint32_t        faults;                     /* what this world may do */
    uint32_t        event_n;
    bool            calm;                       /* the second part */
    bool            power;                      /* is off this instant */

    uint32_t        queue_preval;
    uint32_t        queue_commit;
    uint32_t        queue_batches;
    uint32_t        batch_ops;
    uint32_t        wal_pages;
    uint64_t        checkpoint_n;
    size_t          ram;
} w;


typedef enum {
    CAN_KILL = 0, CAN_POWER, CAN_WORKER, CAN_CONN, CAN_CLOCK, CAN_FULL,
    CAN_EIO, CAN_SYNC, CAN_STALL, CAN_RELOAD, CAN_UPGRADE, CAN_DRAIN, CAN_STOP,
    CAN_N
} can_t;


static const char *const  world_accounts[] = { "a0", "a1", "a2", "a3", "bank" };
static const char *const  world_assets[] = { "ron", "xp" };


static bool
world_can(can_t what)
{
    return (w.faults & (1u << what)) != 0;
}


/* ---- helpers ------------------------------------------------------------ */

/*
 * Behind every step of a helper: what it says of its queues, and what is in
 * them.  Only its own steps change them.
 */

static void
helper_bounds(const sim_proc_t *proc)
{
    const helper_t        *h = proc->data;
    const ron_engine_t    *en;
    const ron_service_t   *s;
    ron_service_stat_t     st;

    if (!h->ready) {
        return;
    }

    s = h->service;
    en = s->engine;
    ron_service_stat(h->service, &st);

    sim_check(st.preval_depth <= h->conf.queue_preval
              && s->preval_n <= h->conf.queue_preval,
              "preval holds %u of %u, and says %llu", s->preval_n,
              h->conf.queue_preval, (unsigned long long) st.preval_depth);
    sim_check(st.commit_depth <= h->conf.queue_commit
              && (en == NULL || en->queue_units <= h->conf.queue_commit),
              "commit holds %u of %u, and says %llu",
              en == NULL ? 0 : en->queue_units, h->conf.queue_commit,
              (unsigned long long) st.commit_depth);
    sim_check(en == NULL || en->queue.n <= h->conf.engine.queue_batches,
              "%u batches of %u are queued", en->queue.n,
              h->conf.engine.queue_batches);
    sim_check(st.connections <= h->conf.connections
              && s->peer_n <= h->conf.connections, "too many connections");
}


static void
helper_on_head(void *ctx, uint64_t seq, uint64_t time_ms,
    const ron_hash_t *root)
{
    ron_hash_t  mine;
    helper_t   *h = ctx;

    /* another master may have been further */

    h->master->time_ms = ron_max(h->master->time_ms, time_ms);

    sim_trace("has the ledger at seq %llu", (unsigned long long) seq);
    sim_count(SIM_TAKEOVERS, 1);
    sim_check(sim_proc_locks(h->proc, SIM_DIR),
              "%s has taken over and does not hold the lock alone",
              h->proc->name);

    if (!oracle_scan(false)) {
        return;
    }

    oracle_root(&mine);
    sim_check(seq == oracle_seq() && ron_hash_eq(&mine, root),
              "%s has taken over at seq %llu, the journal ends at %llu",
              h->proc->name, (unsigned long long) seq,
              (unsigned long long) oracle_seq());
}


/*
 * A wall clock jumps and helpers die, and between two batches of one master
 * ledger time went on by what has passed, and a tenth.
 */

static void
helper_time(master_t *m, const ron_batch_t *batch)
{
    uint64_t  passed_us, most_ms;

    if (m->decide_us != 0) {
        passed_us = batch->decide_us - m->decide_us;
        most_ms = m->time_ms + passed_us * 11 / 10 / 1000 + 2;

        sim_check(batch->time_ms <= most_ms, "ledger time leapt by %llu ms in"
                  " %llu us", (unsigned long long) (batch->time_ms
                                                    - m->time_ms),
                  (unsigned long long) passed_us);
    }

    m->time_ms = batch->time_ms;
    m->decide_us = batch->decide_us;
}


static void
helper_on_commit(void *ctx, const ron_batch_t *batch)
{
    helper_t  *h = ctx;

    helper_time(h->master, batch);
    sim_trace("published seq %llu, %llu entries",
              (unsigned long long) batch->seq,
              (unsigned long long) batch->count);
    oracle_commit(h->proc, batch);
}


static void
helper_on_state(void *ctx, ron_life_t state, const char *reason)
{
    helper_t  *h = ctx;

    h->state = state;
    sim_trace("is %s %s", ron_state_name(state), reason);

    if (state == RON_STATE_SAFE_MODE) {
        sim_count(SIM_SAFE, 1);
    }
}


/* Draining ends by itself, in stopped or in safe mode. */

static void
helper_drain(helper_t *h)
{
    uint64_t  until_us;

    ron_service_drain(h->service);
    until_us = sim.mono_us + UINT64_C(60) * 1000000;

    do {
        sim_sleep(1000 + sim_below(5000));
        sim_check(sim.mono_us < until_us, "%s does not come to the end of its"
                  " drain", h->proc->name);
    } while (h->state != RON_STATE_STOPPED
             && h->state != RON_STATE_SAFE_MODE);
}


static void
helper_main(void *arg)
{
    uint64_t       limit_ms;
    helper_t      *h = arg;
    sim_proc_t    *proc = h->proc;
    ron_status_t   status;

    status = ron_service_start(&h->conf, &h->service);
    RON_ASSERT(status == RON_OK);
    h->ready = true;

    while (!h->want_stop && !h->want_drain) {
        (void) sim_wait(h, sim.mono_us + 10000);
    }

    if (h->want_drain) {
        helper_drain(h);
    }

    limit_ms = sim_chance(1, 10) ? 1 + sim_below(200) : WORLD_STOP_MS;
    sim_trace("stops within %llu ms", (unsigned long long) limit_ms);
    status = ron_service_stop(h->service, limit_ms);
    h->ready = false;

    if (status != RON_OK) {
        sim_check(limit_ms < WORLD_STOP_MS, "%s does not stop", proc->name);
        sim_count(SIM_STOP_LATE, 1);
        h->gone = true;
        sim_proc_kill(proc);
    }

    sim_check(proc->tasks == 1, "%u tasks of %s are left after it stopped",
              proc->tasks - 1, proc->name);
    sim_check(proc->fds == 0, "%u descriptors of %s are left after it stopped",
              proc->fds, proc->name);
    sim_check(sim_vfs_open(proc) == 0, "%u files of SQLite are left open by"
              " %s", sim_vfs_open(proc), proc->name);
    sim_check(!sim_proc_locks(proc, SIM_DIR), "%s stopped with the lock",
              proc->name);

    sim_trace("has stopped");
    h->gone = true;
}


static helper_t *
helper_start(master_t *master, bool unclean)
{
    char                 name[24];
    helper_t            *h;
    ron_service_conf_t  *c;

    h = calloc(1, sizeof(helper_t));
    RON_ASSERT(h != NULL && w.helper_n < WORLD_HELPERS);
    w.helpers[w.helper_n++] = h;

    (void) snprintf(name, sizeof(name), "%s%llu", master->name,
                    (unsigned long long) ++w.generation);
    h->proc = sim_proc_new(name);
    h->proc->data = h;
    h->master = master;

    c = &h->conf;
    ron_service_conf_init(c);
    c->engine.store.url = SIM_URL;
    c->engine.store.create = true;
    c->engine.store.vfs = SIM_VFS;
    c->engine.store.ledger_id = 7;
    c->engine.store.wal_pages = w.wal_pages;
    c->engine.signer = w.signer;
    c->engine.checkpoint_n = w.checkpoint_n;
    c->engine.tag_ram = w.ram;
    c->engine.key_ram = w.ram;
    c->engine.batch_ops = w.batch_ops;
    c->engine.queue_batches = w.queue_batches;
    c->engine.clock = &master->clock;
    c->socket = SIM_SOCK;
    memcpy(c->auth_key, w.key.b, RON_AUTH_KEY_LEN);
    c->generation = w.generation;
    c->connections = 32;
    c->queue_preval = w.queue_preval;
    c->queue_commit = w.queue_commit;
    c->unclean = unclean;
    c->on_head = helper_on_head;
    c->on_commit = helper_on_commit;
    c->on_state = helper_on_state;
    c->ctx = h;

    sim_trace("master %s starts helper %s", master->name, name);
    (void) sim_task_start(h->proc, "main", helper_main, h);

    return h;
}


static void
helper_ask(helper_t *h, bool drain)
{
    h->want_drain = drain;
    h->want_stop = true;
    sim_wake(h, true);
}


static bool
helper_lives(const helper_t *h)
{
    return h != NULL && !h->gone && !h->proc->dead;
}


/* It, or its machine, has begun anew: nobody knows how long it was gone. */

static void
master_forget(master_t *m)
{
    m->decide_us = 0;
    memset(&m->clock, 0, sizeof(m->clock));
}


static void
master_begin(master_t *m)
{
    m->alive = true;
    master_forget(m);
}


/* A master starts a helper again when it dies. */

static void
master_main(void *arg)
{
    master_t  *m = arg;

    for ( ;; ) {
        while (!m->alive || w.power || helper_lives(m->helper)) {
            sim_sleep(2000 + sim_below(4000));
        }

        sim_sleep(sim_below(sim_chance(1, 3) ? 400000 : 20000));

        if (m->alive && !w.power && !helper_lives(m->helper)) {
            m->helper = helper_start(m, !m->clean);
            m->clean = false;
        }
    }
}


/* ---- units -------------------------------------------------------------- */

static sim_op_t *
unit_op(unit_t *u, ron_entry_t *op, ron_kind_t kind)
{
    sim_op_t  *o;

    o = oracle_op((uint8_t) kind, op->amount);
    RON_ASSERT(u->op_n < SIM_OPS_MAX);
    u->ops[u->op_n++] = o;
    op->kind = kind;

    return o;
}


static void
unit_memo(ron_entry_t *op, const sim_op_t *o)
{
    memcpy(op->memo.b, &o->uid, sizeof(o->uid));
    op->fields |= RON_F_MEMO;
}


static void
unit_money(client_t *c, ron_entry_t *op)
{
    memset(op, 0, sizeof(ron_entry_t));
    op->fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    op->asset = ron_cstr(world_assets[sim_chance(1, 5)]);
    op->account = ron_cstr(world_accounts[c->no]);
    op->amount = 1 + sim_below(sim_chance(1, 10) ? 2000 : 200);
}


static void
unit_to(client_t *c, ron_entry_t *op)
{
    op->fields |= RON_F_TO;
    op->to = ron_cstr(world_accounts[(c->no + 1 + sim_below(4)) % 5]);
}


static void
unit_wallet_op(client_t *c, unit_t *u, ron_entry_t *op, bool single)
{
    uint64_t    dice, ref;
    ron_kind_t  kind;
    ron_u128_t  left;

    dice = sim_below(100);
    unit_money(c, op);
    kind = RON_KIND_MINT;

    if (dice < 30) {
        op->amount *= 3;
        op->account = ron_cstr(world_accounts[sim_below(5)]);

    } else if (dice < 65) {
        kind = RON_KIND_TRANSFER;
        unit_to(c, op);

    } else if (dice < 72) {
        kind = RON_KIND_BURN;

    } else if (dice < 86 || !single || !oracle_hold(sim_rand(), &ref, &left)) {
        kind = RON_KIND_HOLD;
        unit_to(c, op);

        if (sim_chance(1, 2)) {
            op->fields |= RON_F_EXPIRY;
            op->expiry_ms = 1 + sim_below(3000);
        }

    } else {
        kind = sim_chance(1, 2) ? RON_KIND_CAPTURE : RON_KIND_RELEASE;
        op->account = ron_null_str;
        op->asset = ron_null_str;
        op->ref = ref;
        op->fields = RON_F_REF;
        op->amount = 0;

        if (kind == RON_KIND_CAPTURE) {
            op->fields |= RON_F_AMOUNT;
            op->amount = left == 0 || sim_chance(1, 3) ? 1 : left;
        }
    }

    if (kind == RON_KIND_TRANSFER || kind == RON_KIND_BURN
        || kind == RON_KIND_HOLD)
    {
        op->nonce = ++c->nonce[0];
        op->fields |= RON_F_NONCE;
    }

    unit_memo(op, unit_op(u, op, kind));
}


static void
unit_ingest_op(client_t *c, unit_t *u, ron_entry_t *op, ron_kind_t kind,
    char *id)
{
    sim_op_t  *o;

    (void) c;
    o = unit_op(u, op, kind);
    (void) snprintf(id, 16, "id%llu", (unsigned long long) o->uid);
    op->id = ron_cstr(id);
    memcpy(op->nonce16, &o->uid, sizeof(o->uid));
    op->source_ms = UINT64_C(1700000000000) + o->uid;
    op->fields |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
}


static uint32_t
unit_ingest(client_t *c, unit_t *u, ron_entry_t *ops, char (*ids)[16])
{
    uint32_t  n, i;

    if (sim_chance(1, 3)) {                     /* a posting of two legs */
        unit_money(c, &ops[0]);
        ops[1] = ops[0];
        ops[1].account = ron_cstr("bank");
        unit_ingest_op(c, u, &ops[0], RON_KIND_DEBIT, ids[0]);
        unit_ingest_op(c, u, &ops[1], RON_KIND_CREDIT, ids[1]);
        return 2;
    }

    n = 1 + (uint32_t) sim_below(3);

    for (i = 0; i < n; i++) {
        unit_money(c, &ops[i]);

        if (sim_chance(1, 2)) {
            unit_ingest_op(c, u, &ops[i], RON_KIND_MINT, ids[i]);

        } else {
            unit_to(c, &ops[i]);
            unit_ingest_op(c, u, &ops[i], RON_KIND_TRANSFER, ids[i]);
        }
    }

    return n;
}


static void
unit_make(client_t *c, unit_t *u)
{
    char         ids[SIM_OPS_MAX][16];
    uint32_t     i;
    uint64_t     dice;
    ron_unit_t   unit;
    ron_entry_t  ops[SIM_OPS_MAX];

    memset(&unit, 0, sizeof(unit));
    (void) snprintf(u->key, sizeof(u->key), "k%u-%u", c->no, c->unit_n);
    u->state = UNIT_WANTED;
    u->again_us = 0;
    u->call = 0;
    u->sends = 0;
    u->op_n = 0;

    unit.source_us = ron_clock_wall_ms() * 1000;
    unit.cap = ron_str("dev:sim");
    unit.key = ron_cstr(u->key);
    unit.ops = ops;
    unit.nonce_strict = sim_chance(1, 5);
    dice = sim_below(100);

    if (dice < 70) {
        unit.type = RON_UNIT_WALLET;
        unit_wallet_op(c, u, &ops[0], true);
        unit.op_n = 1;

    } else if (dice < 84) {
        unit.type = RON_UNIT_BATCH;
        unit.atomic = sim_chance(1, 2);
        unit.op_n = 1 + (uint32_t) sim_below(4);

        for (i = 0; i < unit.op_n; i++) {
            unit_wallet_op(c, u, &ops[i], false);
        }

    } else {
        unit.type = RON_UNIT_INGEST;
        unit.atomic = sim_chance(1, 3);
        unit.op_n = unit_ingest(c, u, ops, ids);
    }

    sim_count(SIM_UNITS, 1);
    ron_buf_reset(&u->wire);
    RON_ASSERT(ron_unit_encode(&unit, &u->wire) == RON_OK);
    sim_trace("wants %s, %u operations from %llu on", u->key, u->op_n,
              (unsigned long long) u->ops[0]->uid);
}


/* ---- clients ------------------------------------------------------------ */

static void
unit_later(unit_t *u)
{
    u->state = UNIT_WANTED;
    u->again_us = sim.mono_us + 1000 + sim_below(60000);
}


static void
unit_answered(client_t *c, unit_t *u, const ron_outcome_t *o)
{
    uint32_t             i;
    const ron_result_t  *r;

    /* nothing that fails and may go by itself is answered by a 500 */

    sim_check(o->reason != RON_REASON_INTERNAL, "%s is answered by a 500",
              u->key);

    if (ron_reason_info(o->reason)->status == 429
        || ron_reason_info(o->reason)->status == 503)
    {
        sim_trace("%s is to be tried again: %s", u->key,
                  ron_reason_info(o->reason)->name);
        unit_later(u);
        return;
    }

    sim_check(o->result_n == u->op_n, "%u results for %u operations of %s",
              o->result_n, u->op_n, u->key);

    u->state = UNIT_FINAL;
    c->final_n++;
    sim_count(o->reason == RON_REASON_OK ? SIM_ACKS : SIM_REFUSED, 1);
    sim_count(SIM_REPEATS, o->replayed);

    for (i = 0; i < u->op_n; i++) {
        r = &o->results[i];
        sim_trace("%s is %s at seq %llu%s", u->key,
                  ron_reason_info(r->reason)->name,
                  (unsigned long long) r->seq,
                  r->repeat || o->replayed ? ", again" : "");

        sim_check(r->reason != RON_REASON_IDEM_MISMATCH
                  && r->reason != RON_REASON_MALFORMED,
                  "%s was refused: %s, detail \"%s\"", u->key,
                  ron_reason_info(r->reason)->name,
                  ron_detail_text(r->detail));

        if (r->reason == RON_REASON_OK) {
            oracle_done(u->ops[i], r->seq, r->bytes);

        } else {
            oracle_refused(u->ops[i]);
        }
    }
}


static void
client_on_answer(void *ctx, uint64_t call, ron_frame_type_t type,
    ron_str_t payload)
{
    uint32_t          i;
    client_t         *c = ctx;
    ron_result_t      results[WORLD_RESULTS];
    ron_outcome_t     outcome;
    ron_msg_batch_t   head;

    if (type == RON_FRAME_ADMIN_IS) {
        return;
    }

    sim_check(type == RON_FRAME_OUTCOME
              && ron_msg_outcome_get(payload, &head, &outcome, results,
                                     WORLD_RESULTS) == RON_OK,
              "an answer that cannot be read");

    if (outcome.reason == RON_REASON_OK) {
        oracle_head(head.size, &head.root);
    }

    for (i = 0; i < c->unit_n; i++) {
        if (c->units[i].state == UNIT_SENT && c->units[i].call == call) {
            unit_answered(c, &c->units[i], &outcome);
            return;
        }
    }

    sim_trace("an answer that nobody waits for");
}


static void
client_on_ready(void *ctx, const ron_hello_t *hello, const ron_ready_t *ready)
{
    client_t  *c = ctx;

    c->ready = true;
    c->state = ready->state;
    c->generation = hello->generation;
    sim_trace("is connected to generation %llu, %s",
              (unsigned long long) hello->generation,
              ron_state_name(ready->state));
}


static void
client_on_state(void *ctx, const ron_msg_state_t *state)
{
    ((client_t *) ctx)->state = state->state;
}


static void
client_lost(client_t *c, const char *why)
{
    uint32_t  i;

    if (c->end == NULL) {
        return;
    }

    sim_trace("loses its connection: %s", why);
    sim_end_close(c->end);
    c->end = NULL;
    c->ready = false;
    c->safe_us = 0;
    c->again_us = sim.mono_us + 500 + sim_below(30000);
    ron_client_reset(c->c);

    for (i = 0; i < c->unit_n; i++) {
        if (c->units[i].state == UNIT_SENT) {
            unit_later(&c->units[i]);
        }
    }
}


static void
client_send(client_t *c)
{
    uint32_t  i, k;
    unit_t   *u;

    for (i = 0; i < c->unit_n; i++) {
        u = &c->units[i];

        if (u->state == UNIT_SENT && u->late_us <= sim.mono_us) {

            /* a helper that is stopped answers nothing and closes nothing */

            client_lost(c, "no answer in time");
            return;
        }

        if (u->state != UNIT_WANTED || u->again_us > sim.mono_us) {
            continue;
        }

        u->call = ron_client_call(c->c);

        if (ron_client_unit_wire(c->c, u->call, ron_buf_str(&u->wire))
            != RON_OK)
        {
            return;
        }

        u->state = UNIT_SENT;
        u->late_us = sim.mono_us + 200000 + sim_below(2000000);
        u->sends++;
        sim_count(SIM_SENDS, 1);

        for (k = 0; k < u->op_n; k++) {
            u->ops[k]->sent++;
        }
    }
}


static void
client_want(client_t *c)
{
    uint32_t  waiting;

    for (waiting = c->unit_n - c->final_n;
         waiting < c->pipeline && c->unit_n < c->unit_max
         && sim_chance(1, 2);
         waiting++)
    {
        unit_make(c, &c->units[c->unit_n++]);
    }
}


static void
client_operate(client_t *c)
{
    if (c->state != RON_STATE_SAFE_MODE) {
        c->safe_us = 0;
        return;
    }

    if (c->safe_us == 0) {
        c->safe_us = sim.mono_us + sim_below(1500000);
        return;
    }

    if (sim.mono_us >= c->safe_us && !sim_disk.full
        && sim_disk.eio_write == 0 && sim_disk.eio_sync == 0)
    {
        c->safe_us = sim.mono_us + 100000;

        if (ron_client_admin(c->c, ron_client_call(c->c),
                             RON_ADMIN_SAFE_LEAVE, ron_null_str) == RON_OK)
        {
            sim_trace("says that the ledger may be written again");
            sim_count(SIM_SAFE_LEFT, 1);
        }
    }
}


static void
client_io(client_t *c)
{
    size_t     room;
    int64_t    n;
    uint8_t   *p;
    ron_str_t  out;

    out = ron_client_output(c->c);

    while (out.len > 0) {
        n = sim_end_send(c->end, out.data, out.len);

        if (n < 0) {
            client_lost(c, "closed while sending");
            return;
        }

        if (n == 0) {
            break;
        }

        ron_client_sent(c->c, (size_t) n);
        out = ron_client_output(c->c);
    }

    for ( ;; ) {
        p = ron_client_space(c->c, 16384, &room);
        RON_ASSERT(p != NULL);
        n = sim_end_recv(c->end, p, room);

        if (n == 0) {
            return;
        }

        if (n < 0) {
            client_lost(c, "closed");
            return;
        }

        sim_check(ron_client_came(c->c, (size_t) n) == RON_OK,
                  "the protocol is broken");
    }
}


static void
client_main(void *arg)
{
    client_t  *c = arg;

    for ( ;; ) {
        if (!c->operator && !w.power) {
            client_want(c);
        }

        if (c->end == NULL && c->again_us <= sim.mono_us && !w.power) {
            c->end = sim_connect(SIM_SOCK);
            c->again_us = sim.mono_us + 1000 + sim_below(30000);
        }

        if (c->end != NULL && c->ready) {
            if (c->operator) {
                client_operate(c);

            } else {
                client_send(c);
            }
        }

        if (c->end != NULL) {
            client_io(c);
        }

        if (world_can(CAN_CONN) && !w.calm && c->end != NULL
            && sim_chance(1, 400))
        {
            sim_count(SIM_F_CONN, 1);
            sim_end_break(c->end);
        }

        if (world_can(CAN_WORKER) && !w.calm && c->end != NULL
            && sim_chance(1, 1500))
        {
            sim_count(SIM_F_WORKER, 1);
            client_lost(c, "the worker dies");
        }

        sim_sleep(100 + sim_below(sim_chance(1, 50) ? 300000
                                  : c->operator ? 50000 : 4000));
    }
}


static void
client_start(uint32_t no, bool operator)
{
    char               name[16];
    client_t          *c;
    ron_client_conf_t  conf;

    c = &w.clients[no];
    c->no = no;
    c->operator = operator;
    c->unit_max = 8 + (uint32_t) sim_below(WORLD_UNITS - 8);
    c->pipeline = 1 + (uint32_t) sim_below(12);

    ron_client_conf_init(&conf);
    conf.key = w.key;
    conf.slot = no;
    conf.pid = no;
    conf.on_ready = client_on_ready;
    conf.on_answer = client_on_answer;
    conf.on_state = client_on_state;
    conf.ctx = c;
    RON_ASSERT(ron_client_create(&conf, &c->c) == RON_OK);

    (void) snprintf(name, sizeof(name), operator ? "operator" : "worker%u",
                    no);
    (void) sim_task_start(NULL, name, client_main, c);
}


/* ---- the director ------------------------------------------------------- */

static void
world_power_cut(void)
{
    uint32_t  i;

    sim_count(SIM_F_POWER, 1);
    sim_trace("POWER CUT");
    w.power = true;
    sim.cut_in = 0;

    for (i = 0; i < w.helper_n; i++) {
        sim_proc_kill(w.helpers[i]->proc);
    }

    master_forget(&w.masters[0]);
    master_forget(&w.masters[1]);

    sim_vfs_power_cut();
    sim_net_forget_names();
    sim_disk_power_cut();

    /* what is on the platter now must hold every promise */

    sim_check(oracle_scan(true), "the journal cannot be read after a power"
              " cut");
    oracle_settle();
    sim_trace("after the cut the journal ends at seq %llu",
              (unsigned long long) oracle_seq());

    for (i = 0; i < w.client_n; i++) {
        client_lost(&w.clients[i], "power cut");
    }

    sim_sleep(1000 + sim_below(100000));
    w.power = false;
}


static void
power_main(void *arg)
{
    (void) arg;

    for ( ;; ) {
        while (sim.cut_in != SIM_NEVER) {
            (void) sim_wait(&sim.cut_in, sim.mono_us + 1000000);
        }

        world_power_cut();
    }
}


static helper_t *
world_victim(void)
{
    uint32_t   i, n;
    helper_t  *live[WORLD_HELPERS];

    for (i = 0, n = 0; i < w.helper_n; i++) {
        if (helper_lives(w.helpers[i])) {
            live[n++] = w.helpers[i];
        }
    }

    return n == 0 ? NULL : live[sim_below(n)];
}


static void
world_reload(master_t *m)
{
    helper_t  *old;

    old = m->helper;

    if (!helper_lives(old) || !m->alive) {
        return;
    }

    sim_count(SIM_F_RELOAD, 1);
    sim_trace("master %s reloads", m->name);
    m->helper = helper_start(m, false);
    sim_sleep(sim_below(300000));

    if (helper_lives(old)) {
        helper_ask(old, false);
    }
}


static void
world_upgrade(void)
{
    uint32_t   quit;
    master_t  *a, *b;

    a = &w.masters[0];
    b = &w.masters[1];

    if (a->alive == b->alive) {
        return;
    }

    sim_count(SIM_F_UPGRADE, 1);
    sim_trace("a second master");
    master_begin(a->alive ? b : a);
    sim_sleep(sim_below(1500000));

    quit = sim_chance(1, 2);
    sim_trace("master %s quits", w.masters[quit].name);
    w.masters[quit].alive = false;

    if (helper_lives(w.masters[quit].helper)) {
        helper_ask(w.masters[quit].helper, sim_chance(1, 2));
    }
}


static void
world_end_helper(master_t *m, bool drain)
{
    if (helper_lives(m->helper)) {
        sim_count(drain ? SIM_F_DRAIN : SIM_F_STOP, 1);
        sim_trace("master %s %s its helper", m->name,
                  drain ? "drains" : "stops");
        m->clean = true;
        helper_ask(m->helper, drain);
    }
}


static void
world_window(void)
{
    if (world_can(CAN_FULL) && sim_chance(1, 2)) {
        sim_disk.full = true;

    } else if (world_can(CAN_SYNC) && sim_chance(1, 2)) {
        sim_disk.eio_sync = 2 + (uint32_t) sim_below(20);

    } else if (world_can(CAN_EIO)) {
        sim_disk.eio_write = 10 + (uint32_t) sim_below(200);
        sim_disk.eio_read = sim_chance(3, 4)
                            ? 5 + (uint32_t) sim_below(400) : 0;
    }

    sim_trace("the disk turns bad: full %u, write %u, read %u, sync %u",
              sim_disk.full, sim_disk.eio_write, sim_disk.eio_read,
              sim_disk.eio_sync);
    sim_sleep(sim_below(400000));
    memset(&sim_disk, 0, sizeof(sim_disk));
    sim_trace("the disk is well again");
}


static void
world_event(void)
{
    can_t      what;
    master_t  *m;
    helper_t  *h;

    do {
        what = (can_t) sim_below(CAN_N);
    } while (!world_can(what));

    m = &w.masters[w.masters[1].alive && sim_chance(1, 2)];
    h = world_victim();

    switch (what) {

    case CAN_KILL:
        if (h != NULL) {
            h->proc->die_in = 1 + sim_below(sim_chance(1, 2) ? 300 : 4000);
        }
        break;

    case CAN_POWER:
        sim.cut_in = 1 + sim_below(sim_chance(1, 2) ? 300 : 4000);
        break;

    case CAN_CLOCK:
        sim_count(SIM_F_CLOCK, 1);
        sim.wall_skew_ms += (int64_t) sim_below(7200000) - 3600000;
        sim_trace("the wall clock jumps to %+lld ms",
                  (long long) sim.wall_skew_ms);
        break;

    case CAN_FULL:
    case CAN_EIO:
    case CAN_SYNC:
        world_window();
        break;

    case CAN_STALL:
        sim_count(SIM_F_STALL, 1);
        sim.mono_us += sim_below(3000000);      /* the machine itself */
        break;

    case CAN_RELOAD:
        world_reload(m);
        break;

    case CAN_UPGRADE:
        world_upgrade();
        break;

    case CAN_DRAIN:
    case CAN_STOP:
        world_end_helper(m, what == CAN_DRAIN);
        break;

    default:
        break;
    }
}


static void
world_stop(master_t *m)
{
    uint64_t   until_us;
    helper_t  *h;

    m->alive = false;
    h = m->helper;

    if (!helper_lives(h)) {
        return;
    }

    if (!h->want_stop) {
        helper_ask(h, sim_chance(1, 2));
    }

    until_us = sim.mono_us + UINT64_C(100) * 1000000;

    while (helper_lives(h)) {
        sim_sleep(5000);
        sim_check(sim.mono_us < until_us, "%s does not end", h->proc->name);
    }
}


static ron_status_t
world_balance(void *ctx, const ron_balance_t *b)
{
    uint32_t    i, *n = ctx;
    ron_str_t   account, asset;
    ron_u128_t  available, held;

    for (i = 0; oracle_purse(i, &account, &asset, &available, &held); i++) {
        if (ron_str_eq(account, b->account) && ron_str_eq(asset, b->asset)) {
            sim_check(available == b->available && held == b->held,
                      "the engine's balance of \"%.*s\" is not the journal's",
                      (int) account.len, (const char *) account.data);
            (*n)++;
            return RON_OK;
        }
    }

    sim_check(b->available == 0 && b->held == 0,
              "the engine has a balance that the journal does not have");

    return RON_OK;
}


/* What a fresh engine reads is what the judge has worked out. */

static void
world_reopen(void)
{
    uint32_t        n, purses;
    ron_buf_t       why;
    ron_str_t       account, asset;
    ron_u128_t      available, held;
    ron_engine_t   *en;
    ron_status_t    status;
    helper_t       *any = w.helpers[0];

    ron_buf_init(&why, 0);
    status = ron_engine_open(&any->conf.engine, &en, &why);
    sim_check(status == RON_OK, "the ledger cannot be opened: %.*s",
              (int) why.len, why.len ? (const char *) why.data : "");

    do {
        status = ron_engine_follow(en, 1 << 20, &why);
    } while (status == RON_OK);

    sim_check(status == RON_ENOTFOUND, "the ledger cannot be followed: %.*s",
              (int) why.len, why.len ? (const char *) why.data : "");

    n = 0;
    (void) ron_engine_each_balance(en, world_balance, &n);

    for (purses = 0; oracle_purse(purses, &account, &asset, &available,
                                  &held); purses++) { /**/ }
    sim_check(n == purses, "the engine knows %u balances of %u", n, purses);

    ron_engine_close(en);
    ron_buf_free(&why);
}


static bool
world_done(const client_t **who)
{
    uint32_t  i;

    for (i = 0; i < w.client_n; i++) {
        *who = &w.clients[i];

        if (!(*who)->operator
            && ((*who)->final_n < (*who)->unit_n
                || (!w.calm && (*who)->unit_n < (*who)->unit_max)))
        {
            return false;
        }
    }

    return true;
}


static void
world_calm_down(void)
{
    uint32_t         i;
    uint64_t         until_us;
    const client_t  *who;

    sim_trace("from here on nothing fails");
    w.calm = true;
    sim.cut_in = 0;
    memset(&sim_disk, 0, sizeof(sim_disk));

    for (i = 0; i < w.helper_n; i++) {
        w.helpers[i]->proc->die_in = 0;
    }

    for (i = 0; i < w.client_n; i++) {
        w.clients[i].unit_max = w.clients[i].unit_n + 2;

        if (w.clients[i].unit_max > WORLD_UNITS) {
            w.clients[i].unit_max = WORLD_UNITS;
        }
    }

    if (!w.masters[0].alive && !w.masters[1].alive) {
        master_begin(&w.masters[0]);
    }

    until_us = sim.mono_us + WORLD_END_US;

    do {
        sim_sleep(20000);
        sim_check(sim.mono_us < until_us, "nothing fails any more, and worker"
                  " %u has no answer for %u units", who->no,
                  who->unit_n - who->final_n);
    } while (!world_done(&who));
}


static void
world_director(void *arg)
{
    uint32_t         i;
    const client_t  *who;

    (void) arg;
    master_begin(&w.masters[0]);

    if (world_can(CAN_POWER) && sim_chance(1, 3)) {
        sim.cut_in = 1 + sim_below(1500);       /* while it is made */
    }

    for (i = 0; i < w.event_n && !world_done(&who); i++) {
        sim_sleep(sim_below(300000));

        while (w.power) {
            sim_sleep(10000);
        }

        world_event();
    }

    while (w.power || (sim.cut_in != 0 && sim_chance(3, 4))) {
        sim_sleep(10000);
    }

    world_calm_down();

    world_stop(&w.masters[0]);
    world_stop(&w.masters[1]);
    sim_check(oracle_scan(false), "the journal cannot be read at the end");
    oracle_settle();
    world_power_cut();
    world_reopen();

    sim_trace("the end, at seq %llu", (unsigned long long) oracle_seq());
    sim.over = true;
    sim_point();
}


static void
world_draw(void)
{
    static const uint32_t  some[] = { 1, 2, 2, 3, 8, 100, 2000 };

    w.faults = (uint32_t) sim_rand() & (uint32_t) sim_rand();
    w.faults |= 1u << sim_below(CAN_N);
    w.faults &= (1u << CAN_N) - 1;
    w.event_n = 2 + (uint32_t) sim_below(12);
    w.queue_preval = some[sim_below(ron_array_n(some))];
    w.queue_commit = some[sim_below(ron_array_n(some))];
    w.queue_batches = 1 + (uint32_t) sim_below(3);
    w.batch_ops = sim_chance(1, 2) ? 1024 : 1 + (uint32_t) sim_below(8);
    w.wal_pages = sim_chance(1, 2) ? 1000 : 4 + (uint32_t) sim_below(60);
    w.checkpoint_n = sim_chance(1, 3) ? 250000 : 5 + sim_below(60);
    w.ram = sim_chance(1, 2) ? 65536 : 4096;
    sim.sticky = (uint32_t) sim_below(100);
    sim.pace_us = 1 + (uint32_t) sim_below(30);

    sim_trace("faults %#x, %u events, preval %u, commit %u, batches %u of %u,"
              " wal %u, checkpoint %llu", w.faults, w.event_n, w.queue_preval,
              w.queue_commit, w.queue_batches, w.batch_ops, w.wal_pages,
              (unsigned long long) w.checkpoint_n);
}


static void
world_log(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;
    (void) level;

    if (!sim.oracle) {
        sim_trace("log: %s", line);
    }
}


void
world_run(uint64_t seed)
{
    uint32_t  i;

    sim.seed = seed;
    sim.mono_us = 1000000;
    sim.point_max = 3000000;
    sim.watch = helper_bounds;
    ron_log_set(world_log, NULL, RON_LOG_WARN);

    sim_disk_init();
    oracle_init();
    world_draw();

    RON_ASSERT(ron_auth_derive(ron_str("a root key of sixteen bytes or so"),
                               &w.key) == RON_OK);
    RON_ASSERT(ron_signer_generate(ron_str("sim.example/ledger"), &w.signer)
               == RON_OK);

    for (i = 0; i < 2; i++) {
        w.masters[i].no = i;
        w.masters[i].clean = true;
        (void) snprintf(w.masters[i].name, sizeof(w.masters[i].name), "%c",
                        (char) ('A' + i));
        (void) sim_task_start(NULL, i ? "masterB" : "masterA", master_main,
                              &w.masters[i]);
    }

    w.client_n = 2 + (uint32_t) sim_below(WORLD_CLIENTS - 1);

    for (i = 0; i < w.client_n; i++) {
        client_start(i, false);
    }

    client_start(w.client_n++, true);

    (void) sim_task_start(NULL, "power", power_main, NULL);
    (void) sim_task_start(NULL, "director", world_director, NULL);

    sim_run();
}
