
/*
 * The work of the service: preval, deciding, answering.
 *
 *     read -> preval (bounded, drop oldest) -> engine (bounded by units,
 *     reject) -> durable -> answered
 *
 * A batch is what arrived while the previous one was written.  Units that are
 * few wait for the end of that write and no longer: a commit costs the same for
 * ten entries as for fifty.  Many are decided beside it, up to batch_ops
 * operations at once, so that deciding them does not keep the disk waiting.
 *
 * Nobody is told anything about a batch that is not durable.  That holds for
 * balances and look-ups too: a balance that was read on top of such batches
 * waits until they have come back, and is never given out when they failed.
 */

#include "ron_service_impl.h"

#include <stdlib.h>


#define RON_EXPIRY_LOOK_US  1000000
#define RON_QUIET_US        1000

/* So many operations are worth a batch while another is being written. */
#define RON_SERVICE_MANY    64
#define RON_SERVICE_PART    16          /* of a queue is many, too */

#define RON_ITEM_USUAL      1024        /* bytes of a unit */


static ron_item_t *ron_item_alloc(ron_service_t *s, size_t len);
static void ron_item_release(ron_service_t *s, ron_item_t *it);
static ron_status_t ron_item_make(ron_service_t *s, const ron_reply_t *reply,
    ron_str_t payload, ron_item_t **item);
static void ron_item_free(ron_service_t *s, ron_item_t *item);
static ron_item_t *ron_preval_pop(ron_service_t *s);
static void ron_preval_push(ron_service_t *s, ron_item_t *item);
static bool ron_preval_has(ron_service_t *s, const ron_msg_ask_t *ask);
static uint32_t ron_service_take(ron_service_t *s, uint32_t allowed);
static bool ron_service_decide_one(ron_service_t *s, uint32_t allowed,
    uint64_t now_us);
static bool ron_service_few(const ron_service_t *s);
static void ron_service_backpressure(ron_service_t *s);
static bool ron_service_expiry_due(ron_service_t *s, uint64_t now_us);
static void ron_service_answer_batch(ron_service_t *s,
    const ron_batch_t *batch);
static ron_status_t ron_service_head(ron_service_t *s,
    const ron_batch_t *batch, uint32_t i, ron_msg_batch_t *head);
static void ron_service_published(ron_service_t *s, const ron_batch_t *batch);
static void ron_service_waits_flush(ron_service_t *s);
static void ron_service_wait_answer(ron_service_t *s, const ron_wait_t *wait);
static void ron_service_wait_name(ron_wait_t *wait, ron_str_t account,
    ron_str_t asset);
static void ron_service_wait_publish(ron_service_t *s,
    const ron_wait_t *wait);
static ron_reason_t ron_service_doubt(ron_status_t status);


/* ---- units -------------------------------------------------------------- */

/*
 * One block for the item and its bytes, another for more than one entry.  A
 * few blocks of the usual size are kept instead of freed.
 */

static ron_item_t *
ron_item_alloc(ron_service_t *s, size_t len)
{
    if (len > RON_ITEM_USUAL) {
        return malloc(sizeof(ron_item_t) + len);
    }

    if (s->spare_n > 0) {
        return s->spare[--s->spare_n];
    }

    return malloc(sizeof(ron_item_t) + RON_ITEM_USUAL);
}


static void
ron_item_release(ron_service_t *s, ron_item_t *it)
{
    if (it->bytes_len <= RON_ITEM_USUAL && s->spare_n < RON_SERVICE_SPARE) {
        s->spare[s->spare_n++] = it;
        return;
    }

    free(it);
}


static ron_status_t
ron_item_make(ron_service_t *s, const ron_reply_t *reply, ron_str_t payload,
    ron_item_t **item)
{
    ron_str_t      bytes;
    ron_item_t    *it;
    ron_entry_t   *ops;
    ron_status_t   status;

    *item = NULL;

    it = ron_item_alloc(s, payload.len);
    if (it == NULL) {
        return RON_ENOMEM;
    }

    it->reply = *reply;
    it->bytes_len = payload.len;
    it->len = sizeof(ron_item_t) + payload.len;

    if (payload.len > 0) {
        memcpy(it->bytes, payload.data, payload.len);
    }

    /* nearly all have one entry, which is read to where it stays */

    bytes = (ron_str_t) { payload.len, it->bytes };
    status = ron_unit_decode(bytes, &it->unit, &it->one, 1);

    if (status != RON_OK) {
        status = ron_unit_decode(bytes, &it->unit, s->ops, RON_UNIT_OPS_MAX);
    }

    if (status != RON_OK) {
        ron_item_release(s, it);
        return status;
    }

    if (it->unit.ops != &it->one) {
        ops = malloc(it->unit.op_n * sizeof(ron_entry_t));

        if (ops == NULL) {
            ron_item_release(s, it);
            return RON_ENOMEM;
        }

        memcpy(ops, s->ops, it->unit.op_n * sizeof(ron_entry_t));
        it->unit.ops = ops;
        it->len += it->unit.op_n * sizeof(ron_entry_t);
    }

    it->unit.ctx = it;
    *item = it;

    return RON_OK;
}


static void
ron_item_free(ron_service_t *s, ron_item_t *item)
{
    if (item->unit.ops != &item->one) {
        free(item->unit.ops);
    }

    ron_item_release(s, item);
}


ron_status_t
ron_service_got_unit(ron_service_t *s, const ron_reply_t *reply,
    ron_str_t payload)
{
    ron_item_t    *item;
    ron_status_t   status;

    switch (s->state) {

    case RON_STATE_RUNNING:
    case RON_STATE_DRAINING:
        /* Who drains is sent what was admitted before, and nothing else. */
        break;

    case RON_STATE_ABORTING:
    case RON_STATE_STOPPED:
        ron_service_refuse(s, reply, RON_REASON_DRAINING);
        return RON_OK;

    default:
        ron_service_refuse(s, reply, RON_REASON_SAFE_MODE);
        return RON_OK;
    }

    status = ron_item_make(s, reply, payload, &item);

    if (status == RON_ENOMEM) {
        ron_service_refuse(s, reply, RON_REASON_BUSY);
        return RON_OK;
    }

    if (status != RON_OK) {
        /* The peer is one of ours, and others' calls share its connection. */
        ron_service_count(s, RON_STAT_PROTOCOL_ERRORS, 1);
        ron_service_refuse(s, reply, RON_REASON_MALFORMED);
        return RON_OK;
    }

    ron_preval_push(s, item);

    return RON_OK;
}


static ron_item_t *
ron_preval_pop(ron_service_t *s)
{
    ron_item_t  *item;

    item = s->preval[s->preval_at];
    s->preval_at = (s->preval_at + 1) % s->conf.queue_preval;
    s->preval_n--;
    s->preval_len -= item->len;
    ron_service_gauge(s, RON_STAT_PREVAL_DEPTH, s->preval_n);

    return item;
}


static void
ron_preval_push(ron_service_t *s, ron_item_t *item)
{
    ron_item_t  *oldest;

    while (s->preval_n == s->conf.queue_preval
           || (s->preval_n > 0
               && s->preval_len + item->len > s->conf.preval_bytes))
    {
        oldest = ron_preval_pop(s);
        ron_service_count(s, RON_STAT_PREVAL_DROPS, 1);
        ron_service_refuse(s, &oldest->reply, RON_REASON_PREVAL_DROPPED);
        ron_item_free(s, oldest);
    }

    s->preval[(s->preval_at + s->preval_n) % s->conf.queue_preval] = item;
    s->preval_n++;
    s->preval_len += item->len;
    ron_service_gauge(s, RON_STAT_PREVAL_DEPTH, s->preval_n);
}


/* A unit without an outcome of the engine. */

void
ron_service_refuse(ron_service_t *s, const ron_reply_t *reply,
    ron_reason_t reason)
{
    ron_outcome_t    outcome;
    ron_msg_batch_t  head;

    memset(&outcome, 0, sizeof(outcome));
    outcome.reason = reason;
    head = (ron_msg_batch_t) { s->root, s->seq, s->time_ms };

    ron_buf_reset(&s->scratch);

    if (ron_msg_outcome_put(&s->scratch, &head, &outcome) == RON_OK) {
        ron_service_answer(s, reply, RON_FRAME_OUTCOME,
                           ron_buf_str(&s->scratch));
    }
}


void
ron_service_refuse_preval(ron_service_t *s, ron_reason_t reason)
{
    ron_item_t  *item;

    while (s->preval_n > 0) {
        item = ron_preval_pop(s);
        ron_service_refuse(s, &item->reply, reason);
        ron_item_free(s, item);
    }
}


void
ron_service_forget_preval(ron_service_t *s)
{
    while (s->preval_n > 0) {
        ron_item_free(s, ron_preval_pop(s));
    }

    while (s->spare_n > 0) {
        free(s->spare[--s->spare_n]);
    }
}


/* ---- deciding ----------------------------------------------------------- */

void
ron_service_decide(ron_service_t *s)
{
    uint32_t           allowed;
    uint64_t           now_us;
    ron_engine_stat_t  stat;

    now_us = ron_clock_mono_us();

    while (ron_engine_room(s->engine) > 0) {

        if (ron_service_few(s) && !ron_service_expiry_due(s, now_us)) {
            break;
        }

        ron_engine_stat(s->engine, &stat);
        allowed = s->conf.queue_commit
                  - ron_min(s->conf.queue_commit, stat.queue_units);

        if (allowed == 0) {
            ron_service_backpressure(s);
            break;
        }

        if (!ron_service_decide_one(s, allowed, now_us)) {
            break;
        }
    }

    ron_service_depths(s);
}


/*
 * Nothing to decide, or too little beside a batch that is being written: less
 * than makes a commit worth its price, and than matters to a queue.
 */

static bool
ron_service_few(const ron_service_t *s)
{
    uint32_t           i, ops, many;
    const ron_item_t  *item;

    if (s->reaped == s->decided) {
        return s->preval_n == 0;
    }

    many = ron_min(s->conf.queue_preval, s->conf.queue_commit)
           / RON_SERVICE_PART;
    many = ron_min(many, s->conf.engine.batch_ops);
    many = ron_max(ron_min(many, (uint32_t) RON_SERVICE_MANY), 1u);

    ops = 0;

    for (i = 0; i < s->preval_n && ops < many; i++) {
        item = s->preval[(s->preval_at + i) % s->conf.queue_preval];
        ops += ron_max(item->unit.op_n, 1u);
    }

    return ops < many;
}


/* The front of preval, still in it: at most one batch. */

static uint32_t
ron_service_take(ron_service_t *s, uint32_t allowed)
{
    uint32_t     n;
    uint64_t     ops;
    ron_item_t  *item;

    allowed = ron_min(allowed, s->take_cap);
    ops = 0;

    for (n = 0; n < s->preval_n && n < allowed; n++) {
        item = s->preval[(s->preval_at + n) % s->conf.queue_preval];

        if (n > 0 && ops + item->unit.op_n > s->conf.engine.batch_ops) {
            break;
        }

        ops += item->unit.op_n;
        s->take[n] = &item->unit;
    }

    return n;
}


static bool
ron_service_decide_one(ron_service_t *s, uint32_t allowed, uint64_t now_us)
{
    uint32_t      i, n;
    uint64_t      time_ms;
    ron_item_t   *item;
    ron_status_t  status;

    n = ron_service_take(s, allowed);
    time_ms = ron_engine_clock(s->engine, now_us, ron_clock_wall_ms());
    status = ron_engine_decide(s->engine, time_ms, now_us, s->take, n);

    if (status == RON_OK || status == RON_AGAIN) {
        /*
         * There was room, so "again" says that so many holds had expired that
         * they made a batch of their own; the units are still ours.
         */
        s->decided++;

        if (atomic_load(&s->stat[RON_STAT_SYNC_SINCE_US]) == 0) {
            ron_service_gauge(s, RON_STAT_SYNC_SINCE_US, now_us);
        }
    }

    if (status == RON_AGAIN) {
        return true;
    }

    if (status == RON_ENOMEM) {
        return false;
    }

    for (i = 0; i < n; i++) {
        item = ron_preval_pop(s);

        if (status == RON_OK) {
            s->work_n += item->unit.type != RON_UNIT_INGEST;

        } else {
            ron_service_refuse(s, &item->reply, RON_REASON_SAFE_MODE);
            ron_item_free(s, item);
        }
    }

    if (status != RON_OK) {
        /* Nothing reached the journal: what could not be read, may be again. */
        ron_service_enter_safe(s, RON_SAFE_OPEN, "a batch was not decided");
        return false;
    }

    ron_service_count(s, RON_STAT_UNITS, n);

    return true;
}


/* Before any seq is consumed, so a refusal leaves no gap. */

static void
ron_service_backpressure(ron_service_t *s)
{
    ron_service_count(s, RON_STAT_COMMIT_REJECTS, s->preval_n);
    ron_service_refuse_preval(s, RON_REASON_BACKPRESSURE);
}


/* The clock is asked only when a hold might have expired. */

static bool
ron_service_expiry_due(ron_service_t *s, uint64_t now_us)
{
    uint64_t  next_ms, time_ms;

    next_ms = ron_engine_next_expiry(s->engine);

    if (next_ms == 0) {
        s->expiry_us = 0;
        s->expiry_ms = 0;
        return false;
    }

    if (next_ms == s->expiry_ms && now_us < s->expiry_us) {
        return false;
    }

    time_ms = ron_engine_clock(s->engine, now_us, ron_clock_wall_ms());

    if (next_ms <= time_ms) {
        s->expiry_us = 0;
        return true;
    }

    s->expiry_ms = next_ms;
    s->expiry_us = now_us + ron_min((next_ms - time_ms) * 1000,
                                    (uint64_t) RON_EXPIRY_LOOK_US);
    return false;
}


/* ---- durable ------------------------------------------------------------ */

void
ron_service_reap(ron_service_t *s)
{
    bool           any;
    ron_batch_t   *batch;
    ron_status_t   failed;

    any = false;
    failed = RON_OK;

    while (s->reaped < s->decided
           && ron_engine_reap(s->engine, &batch) == RON_OK)
    {
        any = true;
        s->reaped++;

        if (batch->status != RON_OK && failed == RON_OK) {
            failed = batch->status;
        }

        if (batch->status == RON_OK && batch->count > 0) {
            s->seq = batch->seq + batch->count - 1;
            s->time_ms = batch->time_ms;
            s->root = batch->root;
        }

        ron_service_tried(s, batch->status);
        ron_service_answer_batch(s, batch);

        if (batch->status == RON_OK && batch->count > 0) {
            ron_service_published(s, batch);
        }

        ron_engine_release(s->engine, batch);
    }

    if (!any) {
        return;
    }

    ron_service_gauge(s, RON_STAT_SYNC_SINCE_US,
                      s->reaped < s->decided ? ron_clock_mono_us() : 0);

    if (failed != RON_OK) {
        ron_service_failed(s, failed);
    }

    ron_service_waits_flush(s);
}


static void
ron_service_answer_batch(ron_service_t *s, const ron_batch_t *batch)
{
    uint32_t          i;
    ron_item_t       *item;
    ron_status_t      status;
    ron_msg_batch_t   head;

    s->work_n -= batch->work_n;

    for (i = 0; i < batch->unit_n; i++) {
        item = batch->units[i]->ctx;

        if (batch->status != RON_OK) {
            ron_service_refuse(s, &item->reply,
                               ron_service_doubt(batch->status));
            ron_item_free(s, item);
            continue;
        }

        if (s->conf.on_unit) {
            s->conf.on_unit(s->conf.ctx, &item->unit, &batch->outcomes[i],
                            batch->time_ms);
        }

        ron_buf_reset(&s->scratch);
        status = ron_service_head(s, batch, i, &head);

        if (status == RON_OK) {
            status = ron_msg_outcome_put(&s->scratch, &head,
                                         &batch->outcomes[i]);
        }

        if (status == RON_OK) {
            ron_service_answer(s, &item->reply, RON_FRAME_OUTCOME,
                               ron_buf_str(&s->scratch));

        } else {
            ron_service_refuse(s, &item->reply, RON_REASON_TIMEOUT);
        }

        ron_item_free(s, item);
    }
}


/*
 * The tree that a unit is answered with: that after its batch; of an ingest
 * that comes again, that of then, whatever was committed since.  By now what
 * it repeats is durable, or was decided in this very batch.
 */

static ron_status_t
ron_service_head(ron_service_t *s, const ron_batch_t *batch, uint32_t i,
    ron_msg_batch_t *head)
{
    uint64_t              seq;
    ron_row_t             row;
    ron_status_t          status;
    const ron_outcome_t  *out;

    *head = (ron_msg_batch_t) { s->root, s->seq, s->time_ms };
    out = &batch->outcomes[i];

    if (!out->replayed || batch->units[i]->type != RON_UNIT_INGEST) {
        return RON_OK;
    }

    seq = 0;

    for (uint32_t k = 0; k < out->result_n && seq == 0; k++) {
        seq = out->results[k].seq;
    }

    if (seq == 0 || seq >= batch->seq) {
        return RON_OK;
    }

    status = ron_engine_row(s->engine, seq, &row);

    if (status == RON_OK) {
        *head = (ron_msg_batch_t) { row.root, row.seq + row.count - 1,
                                    row.time_ms };
    }

    return status;
}


/* In doubt is in doubt, unless the store is sure that nothing was written. */

static ron_reason_t
ron_service_doubt(ron_status_t status)
{
    switch (status) {

    case RON_ECANCELED:
    case RON_EFULL:
    case RON_EFENCED:
        return RON_REASON_SAFE_MODE;

    default:
        return RON_REASON_TIMEOUT;
    }
}


static void
ron_service_published(ron_service_t *s, const ron_batch_t *batch)
{
    ron_msg_commit_t  commit;

    ron_service_count(s, RON_STAT_BATCHES, 1);
    ron_service_count(s, RON_STAT_ENTRIES, batch->count);
    ron_service_gauge(s, RON_STAT_SEQ, s->seq);
    ron_service_gauge(s, RON_STAT_TIME_MS, s->time_ms);
    ron_service_gauge(s, RON_STAT_COMMITTED_MS, ron_clock_wall_ms());

    if (s->conf.on_commit) {
        s->conf.on_commit(s->conf.ctx, batch);
    }

    commit = (ron_msg_commit_t) { s->seq, batch->count, s->time_ms, s->root };
    ron_buf_reset(&s->scratch);
    ron_msg_commit_put(&s->scratch, &commit);
    ron_service_push(s, RON_FRAME_COMMIT, ron_buf_str(&s->scratch));
}


/*
 * A signature takes longer than everything else that this thread does for a
 * lone request, and who was just told its outcome is woken on this processor.
 * So the head is signed while a batch is being written, when there is nothing
 * to do, or once nothing has come for a moment; never right after an answer.
 */

uint64_t
ron_service_sign(ron_service_t *s, uint64_t now_us)
{
    if (!s->writer) {
        return UINT64_MAX;
    }

    if (s->reaped != s->decided) {
        ron_engine_sign(s->engine, false);
        return UINT64_MAX;
    }

    if (s->quiet_n != s->reaped) {
        s->quiet_n = s->reaped;
        s->quiet_us = now_us + RON_QUIET_US;
    }

    if (now_us < s->quiet_us) {
        return s->quiet_us - now_us;
    }

    ron_engine_sign(s->engine, true);

    return UINT64_MAX;
}


/* ---- balances and look-ups ---------------------------------------------- */

ron_status_t
ron_service_got_balance(ron_service_t *s, const ron_reply_t *reply,
    ron_str_t payload)
{
    ron_str_t      account, asset;
    ron_wait_t     wait;
    ron_status_t   status;
    ron_balance_t  balance;

    if (ron_msg_two_get(payload, &account, &asset) != RON_OK) {
        return RON_EINVAL;
    }

    memset(&wait, 0, sizeof(wait));
    memset(&balance, 0, sizeof(balance));
    wait.reply = *reply;
    wait.ticket = s->decided;

    status = RON_EIO;

    if (s->engine != NULL
        && (s->state == RON_STATE_RUNNING || s->state == RON_STATE_DRAINING
            || s->state == RON_STATE_ABORTING || s->level))
    {
        status = ron_engine_balance(s->engine, account, asset, &balance);
    }

    if (status == RON_OK) {
        wait.balance.found = true;
        wait.balance.available = balance.available;
        wait.balance.held = balance.held;
        wait.balance.nonce = balance.nonce;
        wait.balance.version = balance.version;
        ron_service_wait_name(&wait, account, asset);

    } else if (status != RON_ENOTFOUND) {
        wait.balance.unavailable = true;
    }

    /* who is in nothing that was decided is in nothing that is durable */

    if (wait.balance.unavailable || status == RON_ENOTFOUND
        || s->reaped == s->decided)
    {
        ron_service_wait_answer(s, &wait);
        return RON_OK;
    }

    if (s->wait_n == RON_SERVICE_WAITS) {
        ron_service_count(s, RON_STAT_BALANCE_REJECTS, 1);
        memset(&wait.balance, 0, sizeof(wait.balance));
        wait.balance.unavailable = true;
        ron_service_wait_answer(s, &wait);
        return RON_OK;
    }

    s->waits[(s->wait_at + s->wait_n) % RON_SERVICE_WAITS] = wait;
    s->wait_n++;
    ron_service_gauge(s, RON_STAT_BALANCE_DEPTH, s->wait_n);

    return RON_OK;
}


static void
ron_service_wait_answer(ron_service_t *s, const ron_wait_t *wait)
{
    ron_msg_balance_t  balance;

    balance = wait->balance;
    balance.seq = s->seq;
    balance.time_ms = s->time_ms;

    ron_buf_reset(&s->scratch);
    ron_msg_balance_put(&s->scratch, &balance);
    ron_service_answer(s, &wait->reply, RON_FRAME_BALANCE_IS,
                       ron_buf_str(&s->scratch));

    ron_service_wait_publish(s, wait);
}


/* No name where there is no room for it: then it is only answered. */

static void
ron_service_wait_name(ron_wait_t *wait, ron_str_t account, ron_str_t asset)
{
    if (account.len > RON_ACCOUNT_MAX || asset.len > RON_ASSET_MAX) {
        return;
    }

    memcpy(wait->name, account.data, account.len);
    memcpy(wait->name + account.len, asset.data, asset.len);
    wait->account_len = (uint16_t) account.len;
    wait->asset_len = (uint16_t) asset.len;
}


/*
 * What later batches have changed since was published with them, and must not
 * be written over.
 */

static void
ron_service_wait_publish(ron_service_t *s, const ron_wait_t *wait)
{
    ron_balance_t  balance;

    if (s->conf.on_balance == NULL || !s->writer || !wait->balance.found
        || wait->account_len == 0 || wait->ticket != s->reaped
        || (s->state != RON_STATE_RUNNING && s->state != RON_STATE_DRAINING))
    {
        return;
    }

    balance.account.data = (const uint8_t *) wait->name;
    balance.account.len = wait->account_len;
    balance.asset.data = balance.account.data + balance.account.len;
    balance.asset.len = wait->asset_len;
    balance.available = wait->balance.available;
    balance.held = wait->balance.held;
    balance.nonce = wait->balance.nonce;
    balance.version = wait->balance.version;

    s->conf.on_balance(s->conf.ctx, &balance, s->seq);
}


static void
ron_service_waits_flush(ron_service_t *s)
{
    while (s->wait_n > 0 && s->waits[s->wait_at].ticket <= s->reaped) {
        ron_service_wait_answer(s, &s->waits[s->wait_at]);
        s->wait_at = (s->wait_at + 1) % RON_SERVICE_WAITS;
        s->wait_n--;
    }

    ron_service_gauge(s, RON_STAT_BALANCE_DEPTH, s->wait_n);
}


/* What they were read from did not become true. */

void
ron_service_waits_fail(ron_service_t *s)
{
    ron_wait_t  *wait;

    while (s->wait_n > 0) {
        wait = &s->waits[s->wait_at];
        memset(&wait->balance, 0, sizeof(wait->balance));
        wait->balance.unavailable = true;
        ron_service_wait_answer(s, wait);
        s->wait_at = (s->wait_at + 1) % RON_SERVICE_WAITS;
        s->wait_n--;
    }

    ron_service_gauge(s, RON_STAT_BALANCE_DEPTH, s->wait_n);
}


static bool
ron_preval_has(ron_service_t *s, const ron_msg_ask_t *ask)
{
    uint32_t           i;
    const ron_unit_t  *unit;

    for (i = 0; i < s->preval_n; i++) {
        unit = &s->preval[(s->preval_at + i) % s->conf.queue_preval]->unit;

        if (unit->type == RON_UNIT_INGEST
            || !ron_str_eq(unit->key, ask->key))
        {
            continue;
        }

        /* The account of a Capture is not known before it is decided. */

        if (unit->type == RON_UNIT_BATCH
            ? ron_str_eq(unit->cap, ask->cap)
            : !(unit->ops[0].fields & RON_F_ACCOUNT)
              || ron_str_eq(unit->ops[0].account, ask->account))
        {
            return true;
        }
    }

    return false;
}


ron_status_t
ron_service_got_lookup(ron_service_t *s, const ron_reply_t *reply,
    ron_str_t payload)
{
    bool              durable;
    ron_str_t         bytes;
    ron_status_t      status;
    ron_msg_ask_t     ask;
    ron_msg_lookup_t  lookup;

    if (ron_msg_ask_get(payload, &ask) != RON_OK) {
        return RON_EINVAL;
    }

    memset(&lookup, 0, sizeof(lookup));
    lookup.what = RON_LOOKUP_UNAVAILABLE;

    if (s->engine != NULL
        && (s->state == RON_STATE_RUNNING || s->state == RON_STATE_DRAINING
            || s->state == RON_STATE_ABORTING || s->level))
    {
        status = ron_engine_lookup_key(s->engine, ask.account, ask.key,
                                       &bytes, &durable);

        if (status == RON_ENOTFOUND && ask.cap.len != 0) {
            status = ron_engine_lookup_batch(s->engine, ask.cap, ask.key,
                                             &bytes, &durable);
            lookup.batch = (status == RON_OK);
        }

        /*
         * What a follower reads of a writer that lives is on disk.  In safe
         * mode it may be in the cache of a file whose sync has failed, so it
         * is committed when the lock has been taken again, and not before.
         */

        if (status == RON_OK
            && (s->writer ? durable : s->state == RON_STATE_FOLLOWING))
        {
            lookup.what = RON_LOOKUP_COMMITTED;
            lookup.entry = bytes;

        } else if (status == RON_OK) {
            lookup.what = RON_LOOKUP_PENDING;
            lookup.batch = false;

        } else if (status == RON_ENOTFOUND) {
            lookup.what = ron_preval_has(s, &ask) ? RON_LOOKUP_PENDING
                                                  : RON_LOOKUP_UNKNOWN;
        }
    }

    ron_buf_reset(&s->scratch);
    ron_msg_lookup_put(&s->scratch, &lookup);
    ron_service_answer(s, reply, RON_FRAME_LOOKUP_IS,
                       ron_buf_str(&s->scratch));
    return RON_OK;
}
