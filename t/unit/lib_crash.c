
#include "lib_crash.h"
#include "lib_vfs.h"

#include "ron_digest.h"
#include "ron_port.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define CRASH_T0      UINT64_C(1800000000000)
#define CRASH_REGION  ((size_t) 64 << 20)
#define CRASH_BIG     40


static void crash_state(crash_t *c, ron_hash_t *state, uint64_t *holds);


static crash_t       crash_gold;
static void         *crash_region;
static crash_row_t  *crash_rows;
static uint32_t      crash_row_n;
static uint32_t      crash_row_cap;
static ron_buf_t     crash_bytes;
static ron_signer_t *crash_signer;


/* ---- the workload ------------------------------------------------------- */


__attribute__((format(printf, 2, 3)))
static ron_str_t
crash_text(crash_units_t *u, const char *fmt, ...)
{
    int       n;
    char     *text;
    va_list   args;

    RON_ASSERT(u->text_n < ron_array_n(u->text));
    text = u->text[u->text_n++];

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(u->text[0]), fmt, args);
    va_end(args);

    RON_ASSERT(n > 0 && (size_t) n < sizeof(u->text[0]));

    return (ron_str_t) { (size_t) n, (uint8_t *) text };
}


static ron_unit_t *
crash_unit(crash_units_t *u, uint32_t step, ron_unit_type_t type,
    ron_str_t key)
{
    ron_unit_t  *unit;

    RON_ASSERT(u->unit_n < CRASH_UNITS);
    unit = &u->units[u->unit_n];
    memset(unit, 0, sizeof(ron_unit_t));

    unit->type = type;
    unit->key = key;
    unit->cap = ron_str("dev:tester");
    unit->source_us = (uint64_t) step * 100 + u->unit_n;
    unit->ops = &u->ops[u->op_n];
    u->list[u->unit_n++] = unit;

    return unit;
}


static ron_entry_t *
crash_op(crash_units_t *u, ron_kind_t kind, const char *account,
    const char *to, uint64_t amount)
{
    ron_unit_t   *unit;
    ron_entry_t  *e;

    RON_ASSERT(u->op_n < CRASH_OPS);
    e = &u->ops[u->op_n++];
    memset(e, 0, sizeof(ron_entry_t));

    e->kind = kind;
    e->fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    e->asset = ron_str("ron");
    e->account = ron_cstr(account);
    e->amount = amount;

    if (to != NULL) {
        e->fields |= RON_F_TO;
        e->to = ron_cstr(to);
    }

    unit = &u->units[u->unit_n - 1];
    unit->op_n++;

    return e;
}


static ron_entry_t *
crash_ingested(crash_units_t *u, ron_entry_t *e, uint32_t step)
{
    e->fields |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
    e->id = crash_text(u, "i%u-%u", step, u->op_n);
    e->source_ms = CRASH_T0;
    e->nonce16[0] = (uint8_t) (step >> 16);
    e->nonce16[1] = (uint8_t) (step >> 8);
    e->nonce16[2] = (uint8_t) step;
    e->nonce16[3] = (uint8_t) u->op_n;

    return e;
}


static void
crash_wallet(crash_units_t *u, uint32_t step, ron_kind_t kind,
    const char *to, uint64_t amount, const char *key)
{
    ron_entry_t  *e;

    crash_unit(u, step, RON_UNIT_WALLET, crash_text(u, "%s%u", key, step));
    e = crash_op(u, kind, "bank", to, amount);
    e->fields |= RON_F_NONCE;
    e->nonce = (uint64_t) step * 16 + u->unit_n;
}


/* The entry that an earlier step made under a key. */

static ron_status_t
crash_seq(ron_engine_t *en, crash_units_t *u, const char *key, uint32_t step,
    uint64_t *seq)
{
    bool          durable;
    ron_str_t     bytes;
    ron_entry_t   e;
    ron_status_t  status;

    status = ron_engine_lookup_key(en, ron_str("bank"),
                                   crash_text(u, "%s%u", key, step), &bytes,
                                   &durable);
    if (status == RON_OK) {
        status = ron_entry_decode(bytes, &e);
        *seq = e.seq;
    }

    return status;
}


static const char *
crash_account(uint32_t n)
{
    static const char *const  names[] = {
        "alice", "bob", "carol", "dave", "erin", "frank", "grace"
    };

    return names[n % ron_array_n(names)];
}


/* What step `step` asks for: RON_OK, or why an earlier entry is not found. */

static ron_status_t
crash_make(ron_engine_t *en, uint32_t step, crash_units_t *u)
{
    uint64_t      seq;
    ron_unit_t   *unit;
    ron_entry_t  *e;
    ron_status_t  status;

    u->unit_n = 0;
    u->op_n = 0;
    u->text_n = 0;

    switch (step % 8) {

    case 0:
        crash_unit(u, step, RON_UNIT_INGEST, crash_text(u, "b%u", step));
        e = crash_op(u, RON_KIND_MINT, "bank", NULL, 100000);
        crash_ingested(u, e, step);
        e = crash_op(u, RON_KIND_TRANSFER, "bank", crash_account(step / 8),
                     10);
        crash_ingested(u, e, step);
        e = crash_op(u, RON_KIND_TRANSFER, "nobody", "bank", 1);
        crash_ingested(u, e, step);
        break;

    case 1:
        crash_wallet(u, step, RON_KIND_TRANSFER, crash_account(step), 7, "x");
        crash_wallet(u, step, RON_KIND_TRANSFER, crash_account(step + 1), 8,
                     "y");
        crash_wallet(u, step, RON_KIND_BURN, NULL, 2, "z");
        break;

    case 2:
        crash_wallet(u, step, RON_KIND_HOLD, "shop", 50, "h");
        u->ops[0].fields |= RON_F_EXPIRY;
        u->ops[0].expiry_ms = 45;
        break;

    case 3:
        status = crash_seq(en, u, "h", step - 1, &seq);
        if (status != RON_OK) {
            return status;
        }

        crash_unit(u, step, RON_UNIT_WALLET, crash_text(u, "c%u", step));
        e = crash_op(u, RON_KIND_CAPTURE, "bank", NULL, 20);
        e->fields = RON_F_REF | RON_F_AMOUNT;
        e->account = ron_null_str;
        e->asset = ron_null_str;
        e->ref = seq;
        break;

    case 4:
        unit = crash_unit(u, step, RON_UNIT_INGEST, ron_null_str);
        unit->atomic = true;
        e = crash_op(u, RON_KIND_DEBIT, "bank", NULL, 9);
        crash_ingested(u, e, step);
        e = crash_op(u, RON_KIND_CREDIT, crash_account(step), NULL, 4);
        crash_ingested(u, e, step);
        e = crash_op(u, RON_KIND_CREDIT, crash_account(step + 1), NULL, 5);
        crash_ingested(u, e, step);
        break;

    case 5:
        crash_unit(u, step, RON_UNIT_BATCH, crash_text(u, "w%u", step));
        e = crash_op(u, RON_KIND_TRANSFER, "bank", crash_account(step), 3);
        e->fields |= RON_F_NONCE;
        e->nonce = (uint64_t) step * 16;
        e = crash_op(u, RON_KIND_TRANSFER, "bank", "carol", UINT64_C(1) << 60);
        e->fields |= RON_F_NONCE;
        e->nonce = (uint64_t) step * 16 + 1;
        break;

    case 6:
        status = crash_seq(en, u, "x", step - 5, &seq);
        if (status != RON_OK) {
            return status;
        }

        crash_unit(u, step, RON_UNIT_INGEST, crash_text(u, "r%u", step));
        e = crash_op(u, RON_KIND_REVERSE, crash_account(step - 5), "bank", 5);
        crash_ingested(u, e, step);
        e->fields |= RON_F_REF;
        e->ref = seq;
        break;

    default:
        crash_unit(u, step, RON_UNIT_INGEST, ron_null_str);

        for (uint32_t i = 0; i < CRASH_BIG; i++) {
            e = crash_op(u, RON_KIND_TRANSFER, "bank", crash_account(i), 1);
            crash_ingested(u, e, step);
        }
    }

    return RON_OK;
}


/* ---- a ledger's life ---------------------------------------------------- */


static ron_status_t
crash_unlink(void *ctx, const char *name)
{
    char      path[512];
    crash_t  *c = ctx;

    snprintf(path, sizeof(path), "%s/%s", c->dir, name);

    return unlink(path) == 0 ? RON_OK : RON_EIO;
}


void
crash_empty(crash_t *c)
{
    (void) ron_dir_each(c->dir, crash_unlink, c);
}


static void
crash_conf(crash_t *c)
{
    ron_engine_conf_init(&c->conf);
    c->conf.store.ledger_id = 7;
    c->conf.store.create = true;
    c->conf.queue_batches = 2;

    if (crash_signer == NULL) {
        RON_ASSERT(ron_signer_generate(ron_str("example.org/log"),
                                       &crash_signer) == RON_OK);
    }

    c->units = calloc(CRASH_FLIGHT, sizeof(crash_units_t));
    RON_ASSERT(c->units != NULL);
}


void
crash_init(crash_t *c, bool faulty)
{
    memset(c, 0, sizeof(crash_t));
    ron_buf_init(&c->why, 0);

    snprintf(c->dir, sizeof(c->dir), "%s/ron-crash-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    RON_ASSERT(mkdtemp(c->dir) != NULL);
    snprintf(c->url, sizeof(c->url), "sqlite:%s", c->dir);

    crash_conf(c);
    c->conf.store.url = c->url;
    c->conf.store.wal_pages = 12;
    c->conf.checkpoint_n = 60;
    c->conf.tag_ram = 4096;
    c->conf.key_ram = 4096;
    c->conf.signer = crash_signer;

    if (faulty) {
        vfs_register();
        c->conf.store.vfs = VFS_NAME;
    }
}


void
crash_free(crash_t *c)
{
    crash_close(c);
    crash_empty(c);
    (void) rmdir(c->dir);
    ron_buf_free(&c->why);
    free(c->units);
    c->units = NULL;
}


ron_status_t
crash_open(crash_t *c)
{
    ron_status_t  status;

    ron_buf_reset(&c->why);
    c->failed = RON_OK;
    c->flight = 0;
    c->diverged = false;
    c->threaded = false;
    c->conf.store.url = c->url;

    status = ron_engine_open(&c->conf, &c->en, &c->why);

    if (status == RON_OK) {
        status = ron_engine_acquire(c->en, &c->why);
    }

    return status;
}


ron_status_t
crash_start(crash_t *c)
{
    c->threaded = true;

    return ron_engine_start(c->en, NULL, NULL);
}


void
crash_close(crash_t *c)
{
    ron_engine_close(c->en);
    c->en = NULL;
}


/* ---- playing ------------------------------------------------------------ */


__attribute__((format(printf, 2, 3)))
static void
crash_wrong(crash_t *c, const char *fmt, ...)
{
    va_list  args;

    if (c->wrong[0] == '\0') {
        va_start(args, fmt);
        (void) vsnprintf(c->wrong, sizeof(c->wrong), fmt, args);
        va_end(args);
    }
}


/* All that was answered, but for "it is a repeat". */

static void
crash_answers(const ron_batch_t *batch, ron_hash_t *hash, bool *storage)
{
    uint32_t       at;
    ron_blake3_t   h;
    ron_unit_t    *unit;

    ron_blake3_init(&h);

    for (uint32_t i = 0; i < batch->unit_n; i++) {
        unit = batch->units[i];
        ron_blake3_update_u64(&h, unit->source_us);
        ron_blake3_update_u64(&h, batch->outcomes[i].reason);
        *storage |= batch->outcomes[i].reason == RON_REASON_STORAGE;

        for (at = 0; at < batch->outcomes[i].result_n; at++) {
            ron_blake3_update_u64(&h, batch->outcomes[i].results[at].reason);
            ron_blake3_update_u64(&h, batch->outcomes[i].results[at].seq);
            *storage |= batch->outcomes[i].results[at].reason
                        == RON_REASON_STORAGE;
        }
    }

    ron_blake3_final(&h, hash);
}


static void
crash_judge(crash_t *c, uint32_t step, const ron_batch_t *batch)
{
    bool                storage;
    ron_hash_t          answers;
    const crash_row_t  *row;

    if (batch->status != RON_OK) {
        c->failed = c->failed ? c->failed : batch->status;
        return;
    }

    if (c->failed != RON_OK) {
        crash_wrong(c, "step %u succeeded after a batch had failed: %s", step,
                    ron_status_name(c->failed));
        return;
    }

    storage = false;
    crash_answers(batch, &answers, &storage);
    c->diverged = c->diverged || storage;

    if (c == &crash_gold) {
        crash_rows[step].answers = answers;

    } else if (!c->diverged) {
        row = crash_golden_row(step);

        if (batch->count != 0
            && (batch->seq != row->seq || batch->count != row->count
                || !ron_hash_eq(&batch->root, &row->root)))
        {
            crash_wrong(c, "step %u is %llu entries from seq %llu on, not"
                        " %llu from %llu, or has another root", step,
                        (unsigned long long) batch->count,
                        (unsigned long long) batch->seq,
                        (unsigned long long) row->count,
                        (unsigned long long) row->seq);
        }

        if (!ron_hash_eq(&answers, &row->answers)) {
            crash_wrong(c, "step %u was answered otherwise (%s)", step,
                        batch->count ? "new" : "again");
        }
    }

    if (step + 1 > c->acked && !c->diverged) {
        c->acked = step + 1;
    }

    if (c->ack != NULL) {
        c->ack(c->ack_ctx, c->acked);
    }
}


static void
crash_reap(crash_t *c, uint32_t oldest)
{
    ron_batch_t  *batch;

    while (ron_engine_reap(c->en, &batch) == RON_OK) {
        crash_judge(c, oldest++, batch);
        ron_engine_release(c->en, batch);
        c->flight--;
    }
}


static ron_status_t
crash_decide(crash_t *c, uint32_t step)
{
    crash_units_t      *u;
    ron_status_t        status;
    ron_engine_stat_t   stat;

    u = &c->units[step % CRASH_FLIGHT];
    status = crash_make(c->en, step, u);

    if (status != RON_OK) {
        if (status != RON_EIO && status != RON_ECORRUPT) {
            crash_wrong(c, "step %u: what it refers to is lost: %s", step,
                        ron_status_name(status));
        }

        return RON_EIO;
    }

    ron_engine_stat(c->en, &stat);

    return ron_engine_decide(c->en,
                             ron_max(CRASH_T0 + (uint64_t) step * 10,
                                     ron_max(stat.time_ms,
                                             CRASH_T0 + (uint64_t) c->step
                                             * 10)),
                             1000, u->list, u->unit_n);
}


/*
 * c->step is the highest step decided so far, whose time is the least that
 * may come next.  Two batches are decided before the first is committed.
 */

bool
crash_play(crash_t *c, uint32_t from, uint32_t to)
{
    uint32_t      next;
    ron_status_t  status;

    next = from;
    c->step = from;
    status = RON_OK;

    while (c->failed == RON_OK
           && (c->flight > 0 || (next < to && status == RON_OK)))
    {
        while (next < to && status == RON_OK && c->flight < CRASH_FLIGHT
               && (c->threaded || c->flight < 2)
               && ron_engine_room(c->en) > 0)
        {
            status = crash_decide(c, next);

            if (status == RON_OK) {
                c->step = next++;
                c->flight++;
            }
        }

        if (c->threaded) {
            ron_sleep_us(20);

        } else {
            while (ron_engine_step(c->en) == RON_OK) { /* void */ }
        }

        crash_reap(c, next - c->flight);

        if (ron_engine_room(c->en) == 0 && c->flight == 0) {
            break;
        }
    }

    if (c->failed != RON_OK) {
        if (!c->threaded) {
            while (ron_engine_step(c->en) == RON_OK) { /* void */ }
        }

        crash_reap(c, next - c->flight);

        if (ron_engine_decide(c->en, UINT64_C(4) * CRASH_T0, 1000, NULL, 0)
            != RON_EIO)
        {
            crash_wrong(c, "something was decided after a batch had failed");
        }
    }

    return c->failed == RON_OK && status == RON_OK && next == to
           && c->flight == 0;
}


/* ---- the golden run ----------------------------------------------------- */


static ron_status_t
crash_gold_row(void *ctx, const ron_row_t *row)
{
    uint32_t     *n = ctx;
    crash_row_t  *r;

    RON_ASSERT(*n < crash_row_cap);
    r = &crash_rows[(*n)++];

    r->seq = row->seq;
    r->count = row->count;
    r->time_ms = row->time_ms;
    r->root = row->root;
    r->body = crash_bytes.len;
    r->body_len = row->body.len;
    ron_buf_put_str(&crash_bytes, row->body);
    r->notes = crash_bytes.len;
    r->notes_len = row->notes.len;
    ron_buf_put_str(&crash_bytes, row->notes);

    return ron_buf_status(&crash_bytes);
}


void
crash_golden(uint32_t steps)
{
    uint32_t        from;
    uint64_t        next;
    ron_status_t    status;
    ron_reader_t   *reader;

    if (crash_gold.en == NULL) {
        ron_buf_init(&crash_bytes, 0);
        ron_buf_init(&crash_gold.why, 0);
        crash_region = aligned_alloc(4096, CRASH_REGION);
        RON_ASSERT(crash_region != NULL);
        memset(crash_region, 0, CRASH_REGION);

        crash_conf(&crash_gold);
        snprintf(crash_gold.url, sizeof(crash_gold.url), "memory:%zu",
                 CRASH_REGION);
        crash_gold.conf.store.region = crash_region;
        crash_gold.conf.store.region_len = CRASH_REGION;

        status = crash_open(&crash_gold);
        RON_ASSERT(status == RON_OK);
    }

    if (steps <= crash_row_n) {
        return;
    }

    from = crash_row_n;

    if (steps > crash_row_cap) {
        crash_row_cap = 2 * steps;
        crash_rows = realloc(crash_rows, crash_row_cap * sizeof(crash_row_t));
        RON_ASSERT(crash_rows != NULL);
    }

    for (uint32_t i = from; i < steps; i++) {
        RON_ASSERT(crash_play(&crash_gold, i, i + 1));
        crash_state(&crash_gold, &crash_rows[i].state, &crash_rows[i].holds);
    }

    status = ron_reader_open(ron_engine_store(crash_gold.en), &reader);
    RON_ASSERT(status == RON_OK);

    next = from == 0 ? 1 : crash_rows[from - 1].seq
                           + crash_rows[from - 1].count;
    while (crash_row_n < steps) {
        status = ron_reader_rows(reader, next, 1 << 20, crash_gold_row,
                                 &crash_row_n, &next);
        RON_ASSERT(status == RON_OK);
    }

    ron_reader_close(reader);
    RON_ASSERT(crash_row_n == steps);
}


const crash_row_t *
crash_golden_row(uint32_t step)
{
    crash_golden(step + 1);

    return &crash_rows[step];
}


/* ---- judging ------------------------------------------------------------ */


__attribute__((format(printf, 2, 3)))
static ron_status_t
crash_walk_wrong(crash_walk_t *walk, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(walk->wrong, sizeof(walk->wrong), fmt, args);
    va_end(args);

    return RON_ECORRUPT;
}


static ron_status_t
crash_walk_row(void *ctx, const ron_row_t *row)
{
    ron_hash_t          chain;
    crash_walk_t       *walk = ctx;
    const crash_row_t  *gold;

    gold = crash_golden_row(walk->rows);
    ron_row_chain(&walk->chain, row, &chain);

    if (row->seq != walk->seq + 1) {
        return crash_walk_wrong(walk, "row %u begins with seq %llu after"
                                " %llu", walk->rows,
                                (unsigned long long) row->seq,
                                (unsigned long long) walk->seq);
    }

    if (!ron_hash_eq(&row->chain, &chain)) {
        return crash_walk_wrong(walk, "the chain breaks at seq %llu",
                                (unsigned long long) row->seq);
    }

    if (walk->rows > 0 && !ron_hash_eq(&row->prev_root, &walk->root)) {
        return crash_walk_wrong(walk, "roots do not follow at seq %llu",
                                (unsigned long long) row->seq);
    }

    if (row->epoch < walk->epoch) {
        return crash_walk_wrong(walk, "the epoch falls at seq %llu",
                                (unsigned long long) row->seq);
    }

    if (row->seq != gold->seq || row->count != gold->count
        || row->time_ms != gold->time_ms
        || !ron_hash_eq(&row->root, &gold->root)
        || row->body.len != gold->body_len
        || row->notes.len != gold->notes_len
        || memcmp(row->body.data, crash_bytes.data + gold->body,
                  gold->body_len) != 0
        || (gold->notes_len != 0
            && memcmp(row->notes.data, crash_bytes.data + gold->notes,
                      gold->notes_len) != 0))
    {
        return crash_walk_wrong(walk, "row %u, seq %llu, is not what the"
                                " undisturbed run has", walk->rows,
                                (unsigned long long) row->seq);
    }

    walk->rows++;
    walk->seq = row->seq + row->count - 1;
    walk->epoch = row->epoch;
    walk->chain = row->chain;
    walk->root = row->root;

    return RON_OK;
}


/* What was seen before has to be there still. */

static bool
crash_walk_again(ron_reader_t *reader, crash_walk_t *walk)
{
    ron_row_t     row;
    ron_status_t  status;

    if (walk->rows == 0) {
        return true;
    }

    status = ron_reader_row(reader, walk->seq, &row);

    if (status == RON_OK && ron_hash_eq(&row.chain, &walk->chain)) {
        return true;
    }

    (void) crash_walk_wrong(walk, "seq %llu was there and is gone: %s",
                            (unsigned long long) walk->seq,
                            ron_status_name(status));

    return false;
}


bool
crash_walk(ron_store_t *store, crash_walk_t *walk)
{
    uint64_t       next;
    ron_status_t   status;
    ron_reader_t  *reader;

    walk->wrong[0] = '\0';

    status = ron_reader_open(store, &reader);
    if (status != RON_OK) {
        (void) crash_walk_wrong(walk, "no reader: %s",
                                ron_status_name(status));
        return false;
    }

    if (!crash_walk_again(reader, walk)) {
        ron_reader_close(reader);
        return false;
    }

    do {
        status = ron_reader_rows(reader, walk->seq + 1, 1 << 20,
                                 crash_walk_row, walk, &next);
    } while (status == RON_OK);

    if (status != RON_ENOTFOUND && walk->wrong[0] == '\0') {
        (void) crash_walk_wrong(walk, "after seq %llu: %s: %s",
                                (unsigned long long) walk->seq,
                                ron_status_name(status),
                                ron_reader_error(reader));
    }

    ron_reader_close(reader);

    return status == RON_ENOTFOUND;
}


/* Balances in any order. */

static ron_status_t
crash_state_balance(void *ctx, const ron_balance_t *b)
{
    ron_hash_t   *sum = ctx, one;
    ron_blake3_t  h;

    ron_blake3_init(&h);
    ron_blake3_update_u64(&h, b->account.len);
    ron_blake3_update(&h, b->account.data, b->account.len);
    ron_blake3_update(&h, b->asset.data, b->asset.len);
    ron_blake3_update(&h, &b->available, sizeof(b->available));
    ron_blake3_update(&h, &b->held, sizeof(b->held));
    ron_blake3_update_u64(&h, b->nonce);
    ron_blake3_update_u64(&h, b->version);
    ron_blake3_final(&h, &one);

    for (size_t i = 0; i < RON_HASH_LEN; i++) {
        sum->b[i] ^= one.b[i];
    }

    return RON_OK;
}


static void
crash_state(crash_t *c, ron_hash_t *state, uint64_t *holds)
{
    ron_engine_stat_t  stat;

    memset(state, 0, sizeof(ron_hash_t));
    (void) ron_engine_each_balance(c->en, crash_state_balance, state);

    ron_engine_stat(c->en, &stat);
    *holds = stat.holds;
}


bool
crash_same(crash_t *c, uint32_t steps, char *wrong, size_t len)
{
    uint64_t            holds;
    ron_hash_t          state;
    crash_walk_t        walk;
    const crash_row_t  *gold;

    memset(&walk, 0, sizeof(walk));
    wrong[0] = '\0';

    if (!crash_walk(ron_engine_store(c->en), &walk)) {
        snprintf(wrong, len, "%s", walk.wrong);
        return false;
    }

    if (walk.rows != steps) {
        snprintf(wrong, len, "%u rows, not %u", walk.rows, steps);
        return false;
    }

    crash_state(c, &state, &holds);
    gold = crash_golden_row(steps - 1);

    if (!ron_hash_eq(&state, &gold->state) || holds != gold->holds) {
        snprintf(wrong, len, "the balances, or holds, are others");
        return false;
    }

    return true;
}


static ron_status_t
crash_supply(void *ctx, const ron_supply_t *s)
{
    (void) ctx;

    return s->minted - s->burned == s->available + s->held ? RON_OK
                                                           : RON_ECORRUPT;
}


bool
crash_conserved(crash_t *c)
{
    return ron_engine_each_supply(c->en, crash_supply, NULL) == RON_OK;
}
