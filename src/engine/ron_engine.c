
/*
 * The pipeline: opening, and the two queues between sequencer and committer.
 * See ron_engine.h for what it promises and ron_engine_impl.h for who owns
 * what.
 */

#include "ron_engine_impl.h"

#include <stdatomic.h>
#include <stdlib.h>


/* More holds than this that expire at once go ahead in a batch of their own. */
#define RON_EXPIRED_MAX      4096

/* About what one unit of a checkpoint slice takes, in bytes. */
#define RON_SLICE_BYTES      (20 * 1024)

/* A file of tags costs four syncs: not for fewer entries than these. */
#define RON_SPAN_MIN         32768

/* A checkpoint of little state costs next to nothing, but not nothing. */
#define RON_CHECKPOINT_MIN   8192
#define RON_CHECKPOINT_EACH  4          /* entries, for each account */
#define RON_CHECKPOINT_MS    2000

/* While batches follow each other, a head is signed no more often. */
#define RON_HEAD_US          5000

#define RON_WAIT_US          100000
#define RON_ENGINE_NAP_US    200
#define RON_ENGINE_JOIN_MS   1000
#define RON_FOLLOW_BYTES     (8 * 1024 * 1024)


static ron_status_t ron_engine_lookup(ron_engine_t *en, ron_tag_kind_t kind,
    ron_str_t scope, ron_str_t key, ron_tag_t *tag, uint64_t *seq,
    ron_str_t *bytes, bool *durable);
static ron_status_t ron_engine_open_parts(ron_engine_t *en, ron_buf_t *why);
static ron_status_t ron_engine_open_tags(ron_engine_t *en);
static ron_status_t ron_engine_newest_gen(ron_engine_t *en, ron_buf_t *why);
static ron_status_t ron_engine_promote(ron_engine_t *en, ron_buf_t *why);
static void ron_engine_thread(void *arg);
static ron_work_t *ron_engine_take_locked(ron_engine_t *en);
static void ron_engine_run(ron_engine_t *en, ron_work_t *w);
static bool ron_engine_failed(ron_engine_t *en);
static ron_status_t ron_engine_ready(ron_engine_t *en);
static ron_status_t ron_engine_forget_tags(ron_engine_t *en);
static ron_status_t ron_engine_checkpoint(ron_engine_t *en, ron_work_t *w);
static bool ron_engine_checkpoint_due(const ron_engine_t *en);
static void ron_engine_enqueue(ron_engine_t *en, ron_work_t *w);
static ron_status_t ron_engine_head(ron_engine_t *en, ron_buf_t *note);
static void ron_engine_durable(ron_engine_t *en, const ron_work_t *w);


void
ron_engine_conf_init(ron_engine_conf_t *conf)
{
    memset(conf, 0, sizeof(ron_engine_conf_t));

    conf->store.digest = RON_DIGEST_BLAKE3;
    conf->store.wal_pages = 1000;
    conf->checkpoint_n = 100000;
    conf->tag_ram = (size_t) 64 * 1024 * 1024;
    conf->key_ram = (size_t) 64 * 1024 * 1024;
    conf->key_ttl_ms = RON_DAY_MS;
    conf->batch_ops = 1024;
    conf->queue_batches = 2;
    conf->clock_step_ms = 5000;
}


ron_status_t
ron_engine_open(const ron_engine_conf_t *conf, ron_engine_t **engine,
    ron_buf_t *why)
{
    ron_engine_t  *en;
    ron_status_t   status;

    *engine = NULL;

    en = calloc(1, sizeof(ron_engine_t));
    if (en == NULL) {
        return RON_ENOMEM;
    }

    en->conf = *conf;
    en->clock = conf->clock != NULL ? conf->clock : &en->own_clock;
    ron_buf_init(&en->scratch, 0);
    ron_buf_init(&en->found, 0);
    ron_buf_init(&en->past, 0);

    status = ron_engine_open_parts(en, why);

    if (status == RON_OK) {
        status = ron_recover_open(en, why);
    }

    if (status != RON_OK) {
        ron_engine_close(en);
        return status;
    }

    *engine = en;

    return RON_OK;
}


static ron_status_t
ron_engine_open_parts(ron_engine_t *en, ron_buf_t *why)
{
    ron_status_t  status;

    if ((status = ron_mutex_create(&en->mutex, RON_LOCK_ENGINE)) != RON_OK
        || (status = ron_cond_create(&en->wake)) != RON_OK
        || (status = ron_state_init(&en->state)) != RON_OK)
    {
        return status;
    }

    if (en->conf.signer != NULL
        && (status = ron_signing_origin(en, en->conf.signer, why)) != RON_OK)
    {
        return status;
    }

    status = ron_store_open(&en->conf.store, &en->store);
    if (status != RON_OK) {
        ron_buf_printf(why, "%s: %s", en->conf.store.url,
                       en->store ? ron_store_error(en->store)
                                 : ron_status_name(status));
        return status;
    }

    en->meta = *ron_store_meta(en->store);

    ron_tree_init(&en->tree, en->meta.digest);

    status = ron_reader_open(en->store, &en->reader);

    if (status == RON_OK) {
        status = ron_engine_open_tags(en);
    }

    if (status != RON_OK) {
        ron_buf_printf(why, "%s: %s", en->conf.store.url,
                       ron_status_name(status));
    }

    return status;
}


static ron_status_t
ron_engine_open_tags(ron_engine_t *en)
{
    ron_status_t     status;
    ron_tags_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    conf.dir = ron_store_dir(en->store);
    conf.ledger_id = en->meta.ledger_id;
    conf.fanout = 8;
    conf.span = ron_max(en->conf.checkpoint_n * 2, (uint64_t) RON_SPAN_MIN);
    conf.read_only = true;

    conf.name = "tag";
    conf.ram_bytes = en->conf.tag_ram;

    status = ron_tags_open(&conf, &en->tags);
    if (status != RON_OK) {
        return status;
    }

    conf.name = "key";
    conf.ram_bytes = en->conf.key_ram;

    return ron_tags_open(&conf, &en->keys);
}


ron_status_t
ron_engine_acquire(ron_engine_t *en, ron_buf_t *why)
{
    ron_status_t  status;

    en->summed = false;
    status = ron_store_acquire(en->store, &en->epoch);

    if (status != RON_OK) {
        if (status != RON_AGAIN) {
            ron_buf_printf(why, "the ledger cannot be opened for writing: %s",
                           ron_store_error(en->store));
        }

        return status;
    }

    do {
        status = ron_engine_follow(en, RON_FOLLOW_BYTES, why);
    } while (status == RON_OK);

    if (status == RON_ENOTFOUND) {
        status = ron_recover_check(en, why);
    }

    if (status == RON_OK) {
        status = ron_engine_newest_gen(en, why);
    }

    if (status == RON_OK) {
        status = ron_engine_promote(en, why);
    }

    if (status == RON_OK) {
        status = ron_signing_open(en, why);
    }

    if (status != RON_OK) {
        ron_store_release(en->store);
        return status;
    }

    en->ckpt_hash = en->head.checkpoint;
    en->ckpt.begun_seq = en->ckpt_seq;
    en->ckpt.begun_ms = en->state.time_ms;
    en->durable_seq = en->state.seq;
    en->durable_ms = en->state.time_ms;
    en->writer = true;

    return RON_OK;
}


/*
 * Segments that were there at opening may be lost by now, and RAM holds only
 * what they did not: then tags are put again from the journal.
 */

static ron_status_t
ron_engine_promote(ron_engine_t *en, ron_buf_t *why)
{
    uint64_t      tags, keys;
    ron_status_t  status;

    tags = ron_tags_covered(en->tags);
    keys = ron_tags_covered(en->keys);

    status = ron_tags_promote(en->tags);

    if (status == RON_OK) {
        status = ron_tags_promote(en->keys);
    }

    if (status != RON_OK) {
        ron_buf_printf(why, "the tags cannot be opened: %s",
                       ron_status_name(status));
        return status;
    }

    if (ron_tags_covered(en->tags) < tags
        || ron_tags_covered(en->keys) < keys)
    {
        status = ron_recover_tags(en, why);
    }

    return status;
}


/*
 * The writer before us went on with checkpoints while we followed: ours must
 * not have the number of one of them.
 */

static ron_status_t
ron_engine_newest_gen(ron_engine_t *en, ron_buf_t *why)
{
    bool          complete;
    uint32_t      count;
    uint64_t      gen;
    ron_status_t  status;

    status = ron_reader_gen(en->reader, UINT64_MAX, &gen, &count, &complete);

    if (status == RON_OK) {
        en->ckpt.gen = ron_max(en->ckpt.gen, gen);

    } else if (status != RON_ENOTFOUND) {
        ron_buf_printf(why, "the checkpoints cannot be read: %s",
                       ron_reader_error(en->reader));
        return status;
    }

    return RON_OK;
}


ron_status_t
ron_engine_start(ron_engine_t *en, void (*notify)(void *ctx), void *ctx)
{
    RON_ASSERT(en->writer && en->thread == NULL);

    en->notify = notify;
    en->notify_ctx = ctx;

    /* The writer before us may have died before it signed. */

    en->head_seq = en->state.seq;
    en->head_root = en->head.root;

    return ron_thread_start(&en->thread, "ron-committer", RON_THREAD_PROMPT,
                            ron_engine_thread, en);
}


static void
ron_engine_thread(void *arg)
{
    ron_work_t    *w;
    ron_engine_t  *en = arg;

    ron_mutex_lock(en->mutex);

    while (!en->stopping) {

        w = ron_engine_take_locked(en);

        if (w == NULL) {
            (void) ron_cond_wait(en->wake, en->mutex, RON_WAIT_US);
            continue;
        }

        ron_mutex_unlock(en->mutex);
        ron_engine_run(en, w);
        ron_mutex_lock(en->mutex);
    }

    ron_mutex_unlock(en->mutex);
}


ron_status_t
ron_engine_step(ron_engine_t *en)
{
    ron_work_t  *w;

    RON_ASSERT(en->thread == NULL);

    ron_mutex_lock(en->mutex);
    w = ron_engine_take_locked(en);
    ron_mutex_unlock(en->mutex);

    if (w == NULL) {
        return RON_AGAIN;
    }

    ron_engine_run(en, w);

    return RON_OK;
}


static ron_work_t *
ron_engine_take_locked(ron_engine_t *en)
{
    ron_work_t  *w;

    w = ron_list_pop(&en->queue);

    if (w != NULL) {
        en->working = w;
        en->queue_units -= w->pub.unit_n;
        en->queue_work -= w->pub.work_n;
    }

    return w;
}


/*
 * Commits what is in `working`, hands it over, tidies up once its callers
 * have been told.  No lock is held meanwhile.
 */

static void
ron_engine_run(ron_engine_t *en, ron_work_t *w)
{
    uint64_t      keep_gen;
    ron_status_t  status;

    keep_gen = w->keep_gen;
    status = ron_engine_failed(en) ? RON_ECANCELED : ron_commit_work(en, w);

    ron_mutex_lock(en->mutex);

    w->pub.status = status;
    en->working = NULL;
    en->failed = en->failed || status != RON_OK;

    if (status == RON_OK && w->pub.count > 0) {
        en->durable_seq = w->pub.seq + w->pub.count - 1;
        en->durable_ms = w->pub.time_ms;
    }

    ron_list_push(&en->done, w);

    ron_mutex_unlock(en->mutex);

    if (en->notify != NULL) {
        en->notify(en->notify_ctx);
    }

    ron_commit_maintain(en, keep_gen);
}


static bool
ron_engine_failed(ron_engine_t *en)
{
    bool  failed;

    ron_mutex_lock(en->mutex);
    failed = en->failed;
    ron_mutex_unlock(en->mutex);

    return failed;
}


uint32_t
ron_engine_room(ron_engine_t *en)
{
    uint32_t  n;

    ron_mutex_lock(en->mutex);
    n = (en->failed || !en->writer || en->queue.n >= en->conf.queue_batches)
            ? 0 : en->conf.queue_batches - en->queue.n;
    ron_mutex_unlock(en->mutex);

    return n;
}


/* ---- deciding ----------------------------------------------------------- */


/*
 * Both under one lock: there is no room in an engine that has failed, and who
 * is told "again" for that believes that a batch of expired holds was made.
 */

static ron_status_t
ron_engine_ready(ron_engine_t *en)
{
    ron_status_t  status;

    ron_mutex_lock(en->mutex);

    status = (en->failed || !en->writer) ? RON_EIO
             : en->queue.n >= en->conf.queue_batches ? RON_AGAIN
             : RON_OK;

    ron_mutex_unlock(en->mutex);

    return status;
}


ron_status_t
ron_engine_decide(ron_engine_t *en, uint64_t time_ms, uint64_t now_us,
    ron_unit_t **units, uint32_t n)
{
    bool          too_many;
    uint32_t      i;
    ron_work_t   *w;
    ron_status_t  status;

    status = ron_engine_ready(en);
    if (status != RON_OK) {
        return status;
    }

    too_many = ron_state_expired_n(&en->state, time_ms, RON_EXPIRED_MAX)
               >= RON_EXPIRED_MAX;

    w = ron_work_get(en, too_many ? 0 : n);
    if (w == NULL) {
        return RON_ENOMEM;
    }

    if (!too_many && n > 0) {
        memcpy(w->pub.units, units, n * sizeof(ron_unit_t *));
    }

    w->expired_max = too_many ? RON_EXPIRED_MAX : UINT32_MAX;
    status = ron_order_units(w->pub.units, w->pub.unit_n);

    if (status == RON_OK) {
        w->live = en->live;
        en->live = w;
        status = ron_decide_units(en, w, time_ms, now_us);

        if (status == RON_OK && en->tags_bad) {
            status = ron_engine_forget_tags(en);
        }

        if (status == RON_OK) {
            status = ron_engine_checkpoint(en, w);
        }
    }

    if (status != RON_OK) {
        ron_log(RON_LOG_ALERT, "deciding failed after seq %llu: %s",
                (unsigned long long) en->state.seq, ron_status_name(status));
        ron_mutex_lock(en->mutex);
        en->failed = true;
        ron_mutex_unlock(en->mutex);

        ron_engine_release(en, &w->pub);
        return RON_EIO;
    }

    w->pub.work_n = 0;

    for (i = 0; i < w->pub.unit_n; i++) {
        w->pub.work_n += w->pub.units[i]->type != RON_UNIT_INGEST;
    }

    w->pub.decide_us = now_us;
    w->pub.decided_us = ron_clock_mono_us();
    ron_engine_enqueue(en, w);

    return too_many ? RON_AGAIN : RON_OK;
}


/*
 * A damaged segment cannot say what it held, so nothing can be decided.  All
 * segments go; opening the ledger again makes them anew from the journal.
 */

static ron_status_t
ron_engine_forget_tags(ron_engine_t *en)
{
    ron_log(RON_LOG_ERROR, "a tag segment is damaged: tags will be rebuilt"
            " from the journal");

    (void) ron_tags_reset(en->tags);
    (void) ron_tags_reset(en->keys);

    return RON_ECORRUPT;
}


/*
 * Which checkpoint this row vouches for, and the next slice of the one in
 * progress.  A generation is begun when enough was written since the last.  A
 * slice is written when the entries since the last slice took as many bytes as
 * it did: checkpoints never cost more than the journal.
 */

static ron_status_t
ron_engine_checkpoint(ron_engine_t *en, ron_work_t *w)
{
    uint32_t      size;
    ron_hash_t    hash;
    ron_status_t  status;

    w->checkpoint = en->ckpt_hash;
    w->gen = en->ckpt_gen;
    w->keep_gen = en->ckpt_drop;
    en->ckpt_drop = 0;

    if (w->pub.count == 0 || ron_store_dir(en->store) == NULL) {
        return RON_OK;
    }

    if (!en->ckpt.active && ron_engine_checkpoint_due(en)) {
        ron_ckpt_begin(&en->ckpt, &en->state, en->ckpt.gen + 1);
        en->ckpt_credit = 0;
    }

    if (!en->ckpt.active) {
        return RON_OK;
    }

    en->ckpt_credit += (int64_t) w->body.len;

    if (en->ckpt_credit <= 0) {
        return RON_OK;
    }

    size = 1 + (uint32_t) (en->ckpt_credit / RON_SLICE_BYTES);
    size = ron_min(size, RON_SLICE_UNITS_MAX);

    status = ron_ckpt_slice(&en->ckpt, &en->state, size, &w->slice_body,
                            &w->slice, &hash);
    if (status != RON_OK) {
        return status;
    }

    w->has_slice = true;
    en->ckpt_credit -= (int64_t) w->slice.body.len;

    if (w->slice.last) {
        en->ckpt_hash = hash;
        en->ckpt_gen = w->slice.gen;
        en->ckpt_seq = w->slice.seq;
    }

    return RON_OK;
}


/*
 * What comes after a checkpoint is what a restart replays, so that one of
 * little state is taken far more often than `checkpoint_n` says: some entries
 * for each account, a twentieth of the bytes.  One of much state comes for as
 * many entries as there are accounts, which adds a third to the bytes of a
 * large ledger that is filled in bulk; and for fewer once some time is over,
 * so that a restart under single payments replays seconds of them.  Then one
 * follows the other, and they are half of what is written.
 */

static bool
ron_engine_checkpoint_due(const ron_engine_t *en)
{
    uint64_t  n, due, accounts;

    n = en->state.seq - en->ckpt.begun_seq;
    accounts = en->state.accounts.n;

    due = ron_max(accounts * RON_CHECKPOINT_EACH,
                  (uint64_t) RON_CHECKPOINT_MIN);
    due = ron_min(due, en->conf.checkpoint_n);

    return n >= due
           && (n >= accounts
               || en->state.time_ms - en->ckpt.begun_ms >= RON_CHECKPOINT_MS);
}


static void
ron_engine_enqueue(ron_engine_t *en, ron_work_t *w)
{
    ron_mutex_lock(en->mutex);

    ron_list_push(&en->queue, w);
    en->queue_units += w->pub.unit_n;
    en->queue_work += w->pub.work_n;

    ron_mutex_unlock(en->mutex);

    /* afterwards: who wakes up at once does not wait for the lock then */

    ron_cond_signal(en->wake);
}


uint64_t
ron_engine_next_expiry(const ron_engine_t *en)
{
    return ron_state_next_expiry((ron_state_t *) (uintptr_t) &en->state);
}


ron_status_t
ron_engine_reap(ron_engine_t *en, ron_batch_t **batch)
{
    ron_work_t  *w;

    *batch = NULL;

    ron_mutex_lock(en->mutex);
    w = ron_list_pop(&en->done);
    ron_mutex_unlock(en->mutex);

    if (w == NULL) {
        return RON_AGAIN;
    }

    if (w->pub.status == RON_OK && w->pub.count > 0) {
        ron_engine_durable(en, w);
    }

    *batch = &w->pub;

    return RON_OK;
}


/* What the sequencer does with the news that a batch is durable. */

static void
ron_engine_durable(ron_engine_t *en, const ron_work_t *w)
{
    uint64_t  last;

    last = w->pub.seq + w->pub.count - 1;

    ron_tags_commit(en->tags, last, w->pub.time_ms);
    ron_tags_commit(en->keys, last, w->pub.time_ms);

    if (w->pub.time_ms > en->conf.key_ttl_ms) {
        (void) ron_tags_expire(en->keys,
                               w->pub.time_ms - en->conf.key_ttl_ms);
    }

    /* The journal vouches for a newer checkpoint: keep it and one before. */

    if (w->gen > en->ckpt_kept) {
        en->ckpt_drop = en->ckpt_kept;
        en->ckpt_kept = w->gen;
    }

    en->head_seq = last;
    en->head_root = w->pub.root;
}


void
ron_engine_sign(ron_engine_t *en, bool idle)
{
    uint64_t   now_us;
    ron_buf_t  note;

    if (en->head_seq == en->signed_seq) {
        return;
    }

    now_us = ron_clock_mono_us();

    if (!idle && now_us - en->signed_us < RON_HEAD_US) {
        return;
    }

    ron_buf_init(&note, RON_NOTE_MAX);

    if (ron_engine_head(en, &note) == RON_OK) {
        (void) ron_store_head_write(en->store, ron_buf_str(&note));
    }

    ron_buf_free(&note);

    en->signed_seq = en->head_seq;
    en->signed_us = now_us;
}


/*
 * A head that the old key signs too names the new one, so that whoever trusts
 * the old one can go on (docs/decisions/0016).
 */

static ron_status_t
ron_engine_head(ron_engine_t *en, ron_buf_t *note)
{
    ron_buf_t              key;
    ron_status_t           status;
    ron_checkpoint_note_t  cp;

    memset(&cp, 0, sizeof(cp));
    cp.origin = ron_signer_name(en->conf.signer);
    cp.size = en->head_seq;
    cp.root = en->head_root;

    if (en->conf.signer_old == NULL) {
        return ron_note_sign(en->conf.signer, &cp, note);
    }

    ron_buf_init(&key, RON_NOTE_MAX);
    ron_buf_put_cstr(&key, "key ");
    status = ron_signer_public_text(en->conf.signer, &key);

    if (status == RON_OK) {
        cp.line[cp.line_n++] = ron_buf_str(&key);
        status = ron_note_sign(en->conf.signer, &cp, note);
    }

    if (status == RON_OK) {
        status = ron_note_cosign(en->conf.signer_old, note);
    }

    ron_buf_free(&key);

    return status;
}


void
ron_engine_release(ron_engine_t *en, ron_batch_t *batch)
{
    ron_work_t  *w, **p;

    w = (ron_work_t *) batch;

    for (p = &en->live; *p != NULL; p = &(*p)->live) {
        if (*p == w) {
            *p = w->live;
            break;
        }
    }

    ron_work_put_back(en, w);
}


ron_status_t
ron_engine_quiesce(ron_engine_t *en, uint64_t timeout_ms)
{
    bool      idle;
    uint64_t  deadline_us;

    deadline_us = ron_clock_mono_us() + timeout_ms * 1000;

    for ( ;; ) {
        ron_mutex_lock(en->mutex);
        idle = (en->queue.n == 0 && en->working == NULL);
        ron_mutex_unlock(en->mutex);

        if (idle) {
            return ron_engine_failed(en) ? RON_EIO : RON_OK;
        }

        if (en->thread == NULL) {
            (void) ron_engine_step(en);
            continue;
        }

        if (ron_clock_mono_us() >= deadline_us) {
            return RON_AGAIN;
        }

        ron_sleep_us(RON_ENGINE_NAP_US);
    }
}


/* ---- questions ---------------------------------------------------------- */


void
ron_balance_fill(const ron_state_t *st, uint32_t account, uint32_t bal,
    ron_balance_t *balance)
{
    ron_purse_t               purse;
    const ron_account_t      *a;
    const ron_balance_rec_t  *b;

    a = ron_account_at(st, account);
    b = ron_balance_at(st, bal);
    purse = ron_cell_get(st, b->purse);

    balance->account = ron_name_at(st, a->name);
    balance->asset = ron_asset_name(st, b->asset);
    balance->available = purse.available;
    balance->held = purse.held;
    balance->nonce = a->nonce;
    balance->version = a->version;
}


ron_status_t
ron_engine_balance(ron_engine_t *en, ron_str_t account, ron_str_t asset,
    ron_balance_t *balance)
{
    uint32_t  no, as, bal;

    memset(balance, 0, sizeof(ron_balance_t));

    no = ron_state_account(&en->state, account);
    as = ron_state_asset(&en->state, asset);
    bal = (no == RON_NONE || as == RON_NONE)
              ? RON_NONE : ron_state_balance(&en->state, no, as);

    if (bal == RON_NONE) {
        return RON_ENOTFOUND;
    }

    ron_balance_fill(&en->state, no, bal, balance);

    return RON_OK;
}


ron_status_t
ron_engine_each_balance(ron_engine_t *en,
    ron_status_t (*fn)(void *ctx, const ron_balance_t *b), void *ctx)
{
    ron_status_t              status;
    ron_balance_t             balance;
    const ron_account_t      *a;

    for (uint32_t no = 0; no < en->state.accounts.n; no++) {
        a = ron_account_at(&en->state, no);

        for (uint32_t bal = a->first;
             bal != RON_NONE;
             bal = ron_balance_at(&en->state, bal)->next)
        {
            ron_balance_fill(&en->state, no, bal, &balance);

            status = fn(ctx, &balance);
            if (status != RON_OK) {
                return status;
            }
        }
    }

    return RON_OK;
}


ron_status_t
ron_engine_each_supply(ron_engine_t *en,
    ron_status_t (*fn)(void *ctx, const ron_supply_t *s), void *ctx)
{
    ron_purse_t               purse;
    ron_state_t              *st;
    ron_status_t              status;
    ron_supply_t             *sums;
    const ron_balance_rec_t  *b;

    st = &en->state;

    sums = calloc(st->asset_n + 1, sizeof(ron_supply_t));
    if (sums == NULL) {
        return RON_ENOMEM;
    }

    for (uint32_t no = 0; no < st->balances.n; no++) {
        b = ron_balance_at(st, no);
        purse = ron_cell_get(st, b->purse);
        sums[b->asset].available += purse.available;
        sums[b->asset].held += purse.held;
    }

    status = RON_OK;

    for (uint32_t i = 0; i < st->asset_n && status == RON_OK; i++) {
        sums[i].asset = ron_asset_name(st, i);
        sums[i].minted = st->assets[i].minted;
        sums[i].burned = st->assets[i].burned;

        status = fn(ctx, &sums[i]);
    }

    free(sums);

    return status;
}


ron_status_t
ron_engine_lookup_key(ron_engine_t *en, ron_str_t scope, ron_str_t key,
    ron_str_t *bytes, bool *durable)
{
    uint64_t   seq;
    ron_tag_t  tag;

    return ron_engine_lookup(en, RON_TAG_KEY, scope, key, &tag, &seq, bytes,
                             durable);
}


ron_status_t
ron_engine_lookup_batch(ron_engine_t *en, ron_str_t cap, ron_str_t key,
    ron_str_t *wire, bool *durable)
{
    uint64_t      seq;
    ron_tag_t     tag;
    ron_status_t  status;

    status = ron_engine_lookup(en, RON_TAG_CAPKEY, cap, key, &tag, &seq, wire,
                               durable);

    return status == RON_OK ? ron_batch_find(en, seq, &tag, wire) : status;
}


static ron_status_t
ron_engine_lookup(ron_engine_t *en, ron_tag_kind_t kind, ron_str_t scope,
    ron_str_t key, ron_tag_t *tag, uint64_t *seq, ron_str_t *bytes,
    bool *durable)
{
    ron_entry_t   e;
    ron_status_t  status;

    *bytes = ron_null_str;
    *durable = false;

    if (scope.len == 0 || scope.len > RON_SCOPE_MAX || key.len == 0
        || key.len > RON_KEY_MAX)
    {
        return RON_EINVAL;
    }

    ron_tag_make(kind, scope, key, tag);
    status = ron_tag_find(en, kind, tag, seq);

    if (status == RON_OK) {
        status = ron_entry_find(en, *seq, &e, bytes);
    }

    if (status != RON_OK) {
        return status;
    }

    if (ron_max(en->state.time_ms, en->clock_us / 1000) - e.time_ms
        >= en->conf.key_ttl_ms)
    {
        *bytes = ron_null_str;
        return RON_ENOTFOUND;
    }

    ron_mutex_lock(en->mutex);
    *durable = !en->writer || *seq <= en->durable_seq;
    ron_mutex_unlock(en->mutex);

    return RON_OK;
}


ron_store_t *
ron_engine_store(ron_engine_t *en)
{
    return en->store;
}


void
ron_engine_stat(ron_engine_t *en, ron_engine_stat_t *stat)
{
    memset(stat, 0, sizeof(ron_engine_stat_t));

    ron_mutex_lock(en->mutex);
    stat->seq = en->writer ? en->durable_seq : en->state.seq;
    stat->time_ms = en->writer ? en->durable_ms : en->state.time_ms;
    stat->queue_units = en->queue_units;
    stat->queue_work = en->queue_work;
    stat->failed = en->failed;
    ron_mutex_unlock(en->mutex);

    stat->decided_seq = en->state.seq;
    stat->accounts = en->state.accounts.n;
    stat->balances = en->state.balances.n;
    stat->holds = en->state.hold_n;
    stat->state_bytes = ron_state_bytes(&en->state, &stat->name_bytes);
    stat->checkpoint_gen = en->ckpt_kept;
    stat->checkpoint_seq = en->ckpt_seq;
    stat->replayed = en->replayed;
    stat->clock_drift_ms = atomic_load_explicit(&en->clock->drift_us,
                                                memory_order_relaxed) / 1000;
    stat->summed = en->summed;
    stat->conserved = en->conserved;
}


void
ron_engine_close(ron_engine_t *en)
{
    ron_work_t  *w;

    if (en == NULL) {
        return;
    }

    if (en->thread != NULL) {
        ron_mutex_lock(en->mutex);
        en->stopping = true;
        ron_cond_signal(en->wake);
        ron_mutex_unlock(en->mutex);

        while (ron_thread_join(en->thread, RON_ENGINE_JOIN_MS) == RON_AGAIN) {
            /* void: an append ends, or the embedder gives up on all of us */
        }
    }

    if (!en->failed) {
        ron_engine_sign(en, true);
    }

    while ((w = en->live) != NULL) {
        en->live = w->live;
        ron_work_free(w);
    }

    while ((w = en->free_works) != NULL) {
        en->free_works = w->next;
        ron_work_free(w);
    }

    ron_tags_close(en->tags);
    ron_tags_close(en->keys);
    ron_reader_close(en->reader);
    ron_store_close(en->store);
    ron_signer_free(en->own_signer);
    ron_state_free(&en->state);
    ron_buf_free(&en->scratch);
    ron_buf_free(&en->found);
    ron_buf_free(&en->past);
    ron_cond_destroy(en->wake);
    ron_mutex_destroy(en->mutex);
    free(en->tiles);
    free(en);
}
