
#include "lib_ledger.h"
#include "ron_digest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define LEDGER_T0     UINT64_C(1800000000000)
#define LEDGER_UNITS  48


typedef struct {
    ron_unit_t   unit;
    ron_entry_t  ops[4];
    char         text[4][4][48];
    char         key[32];
} ledger_unit_t;


static void ledger_unit(ledger_t *l, ledger_unit_t *u, unsigned i);
static ron_entry_t *ledger_op(ledger_t *l, ledger_unit_t *u, ron_kind_t kind,
    uint64_t from, uint64_t to, uint64_t amount);
static void ledger_ingest(ledger_t *l, ledger_unit_t *u, ron_entry_t *e);
static void ledger_wallet(ledger_t *l, ledger_unit_t *u, ron_entry_t *e);


bool
ledger_open(ledger_t *l, const char *dir, const ron_signer_t *signer)
{
    ron_buf_t          why;
    ron_status_t       status;
    ron_engine_stat_t  stat;

    memset(l, 0, sizeof(ledger_t));
    ron_engine_conf_init(&l->conf);
    snprintf(l->url, sizeof(l->url), "sqlite:%s", dir);

    l->conf.store.url = l->url;
    l->conf.store.create = true;
    l->conf.store.ledger_id = 77;
    l->conf.signer = signer;
    l->conf.tag_ram = 1024 * 1024;
    l->conf.key_ram = 1024 * 1024;
    l->conf.checkpoint_n = 400;

    ron_buf_init(&why, 0);
    status = ron_engine_open(&l->conf, &l->en, &why);

    if (status == RON_OK) {
        status = ron_engine_acquire(l->en, &why);
    }

    if (status != RON_OK) {
        fprintf(stderr, "# %s: %.*s\n", ron_status_name(status),
                (int) why.len, why.len ? (const char *) why.data : "");
        ron_buf_free(&why);
        ron_engine_close(l->en);
        l->en = NULL;
        return false;
    }

    ron_buf_free(&why);
    ron_engine_stat(l->en, &stat);

    l->n = stat.seq * 8;
    l->batches = stat.seq;
    l->time_ms = stat.seq ? stat.time_ms : LEDGER_T0;

    return true;
}


void
ledger_close(ledger_t *l)
{
    ron_engine_close(l->en);
    l->en = NULL;
}


static ron_status_t
ledger_hash(void *ctx, const ron_balance_t *b)
{
    ron_blake3_t  *h = ctx;

    ron_blake3_update_u64(h, b->account.len);
    ron_blake3_update(h, b->account.data, b->account.len);
    ron_blake3_update(h, b->asset.data, b->asset.len);
    ron_blake3_update(h, &b->available, sizeof(b->available));
    ron_blake3_update(h, &b->held, sizeof(b->held));
    ron_blake3_update_u64(h, b->nonce);
    ron_blake3_update_u64(h, b->version);

    return RON_OK;
}


static void
ledger_state(ron_engine_t *en, ron_hash_t *hash)
{
    ron_blake3_t  h;

    ron_blake3_init(&h);
    RON_ASSERT(ron_engine_each_balance(en, ledger_hash, &h) == RON_OK);
    ron_blake3_final(&h, hash);
}


void
ledger_past_add(ledger_past_t *past, ron_engine_t *en)
{
    ron_engine_stat_t  stat;

    RON_ASSERT(past->n < LEDGER_PAST_MAX);
    ron_engine_stat(en, &stat);
    past->seq[past->n] = stat.seq;
    ledger_state(en, &past->state[past->n++]);
}


unsigned
ledger_past_find(const ledger_past_t *past, ron_engine_t *en)
{
    unsigned           i;
    ron_hash_t         state;
    ron_engine_stat_t  stat;

    ron_engine_stat(en, &stat);

    for (i = 0; i < past->n && past->seq[i] != stat.seq; i++) {
        /* void */
    }

    RON_ASSERT(i < past->n);
    ledger_state(en, &state);
    RON_ASSERT(ron_hash_eq(&state, &past->state[i]));

    return i;
}


static ron_entry_t *
ledger_op(ledger_t *l, ledger_unit_t *u, ron_kind_t kind, uint64_t from,
    uint64_t to, uint64_t amount)
{
    char         (*text)[48];
    ron_entry_t   *e;

    e = &u->ops[u->unit.op_n];
    text = u->text[u->unit.op_n++];
    memset(e, 0, sizeof(ron_entry_t));

    snprintf(text[0], sizeof(text[0]), "acc_%02llu",
             (unsigned long long) from % LEDGER_ACCOUNTS);
    snprintf(text[1], sizeof(text[1]), "acc_%02llu",
             (unsigned long long) to % LEDGER_ACCOUNTS);
    snprintf(text[2], sizeof(text[2]), "id-%llu", (unsigned long long) l->n);

    e->kind = kind;
    e->fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    e->asset = l->n % 11 == 0 ? ron_str("roc") : ron_str("ron");
    e->account = ron_cstr(text[0]);
    e->amount = amount;
    e->id = ron_cstr(text[2]);

    if (to != from) {
        e->fields |= RON_F_TO;
        e->to = ron_cstr(text[1]);
    }

    return e;
}


static void
ledger_ingest(ledger_t *l, ledger_unit_t *u, ron_entry_t *e)
{
    u->unit.type = RON_UNIT_INGEST;
    e->fields |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
    e->source_ms = LEDGER_T0 + l->n;
    memcpy(e->nonce16, &l->n, sizeof(l->n));
    l->n++;
}


static void
ledger_wallet(ledger_t *l, ledger_unit_t *u, ron_entry_t *e)
{
    u->unit.type = RON_UNIT_WALLET;
    snprintf(u->key, sizeof(u->key), "key-%llu", (unsigned long long) l->n);
    u->unit.key = ron_cstr(u->key);
    e->fields |= RON_F_NONCE;
    e->nonce = ++l->n;
}


/* The i-th unit of a batch; accounts and amounts walk by number. */

static void
ledger_unit(ledger_t *l, ledger_unit_t *u, unsigned i)
{
    uint64_t      k;
    ron_entry_t  *e;

    memset(u, 0, sizeof(ledger_unit_t));
    u->unit.ops = u->ops;
    u->unit.cap = ron_str("dev:tests");
    u->unit.source_us = l->n;
    k = l->n * UINT64_C(2654435761) >> 7;

    if (l->batches == 0) {
        e = ledger_op(l, u, RON_KIND_MINT, i, i, UINT64_C(1) << 50);
        ledger_ingest(l, u, e);
        e->asset = i < LEDGER_ACCOUNTS ? ron_str("ron") : ron_str("roc");

    } else if (i == 1 && l->batches % 5 == 1) {
        e = ledger_op(l, u, RON_KIND_HOLD, k, k + 1, 1000);
        ledger_wallet(l, u, e);
        e->fields |= RON_F_EXPIRY;
        e->expiry_ms = 3000;
        u->unit.ctx = &l->hold;

    } else if (i == 1 && l->batches % 5 > 1 && l->hold != 0) {
        e = ledger_op(l, u, l->batches % 5 == 2 ? RON_KIND_CAPTURE
                                                : RON_KIND_RELEASE, k, k, 0);
        snprintf(u->key, sizeof(u->key), "key-%llu",
                 (unsigned long long) l->n++);
        u->unit.type = RON_UNIT_WALLET;
        u->unit.key = ron_cstr(u->key);
        e->fields = RON_F_REF;
        e->ref = l->hold;

        if (e->kind == RON_KIND_CAPTURE) {
            e->fields |= RON_F_AMOUNT;
            e->amount = 300;

        } else {
            l->hold = 0;
        }

    } else if (i == 2 && l->batches % 7 == 3) {
        e = ledger_op(l, u, RON_KIND_DEBIT, k, k, 17);
        ledger_ingest(l, u, e);
        e->asset = ron_str("ron");
        e = ledger_op(l, u, RON_KIND_CREDIT, k + 1, k + 1, 17);
        ledger_ingest(l, u, e);
        e->asset = ron_str("ron");

    } else if (i == 3 && l->batches % 6 == 0) {
        e = ledger_op(l, u, RON_KIND_BURN, k, k, 5);
        ledger_wallet(l, u, e);

    } else if (i == 4 && l->batches % 4 == 0) {
        e = ledger_op(l, u, RON_KIND_TRANSFER, k, k + 3, 2);
        ledger_wallet(l, u, e);
        e = ledger_op(l, u, RON_KIND_TRANSFER, k + 1, k + 4, 3);
        ledger_wallet(l, u, e);
        u->unit.type = RON_UNIT_BATCH;

    } else {
        e = ledger_op(l, u, RON_KIND_TRANSFER, k, k + 1 + k % 5, 1 + k % 97);

        if (i % 2) {
            ledger_ingest(l, u, e);

        } else {
            ledger_wallet(l, u, e);
        }
    }
}


bool
ledger_grow(ledger_t *l, unsigned batches)
{
    bool            good;
    unsigned        n;
    ron_unit_t     *list[LEDGER_UNITS];
    ron_batch_t    *batch;
    ledger_unit_t  *units;

    units = calloc(LEDGER_UNITS, sizeof(ledger_unit_t));
    good = units != NULL;

    for (unsigned b = 0; good && b < batches; b++) {
        n = l->batches == 0 ? LEDGER_UNITS
                            : 1 + (unsigned) (l->batches * 7 % 37);

        for (unsigned i = 0; i < n; i++) {
            ledger_unit(l, &units[i], i);
            list[i] = &units[i].unit;
        }

        l->time_ms += l->batches % 50 == 49 ? 5000 : 1 + l->batches % 9;
        l->batches++;

        good = ron_engine_decide(l->en, l->time_ms, 1000, list, n) == RON_OK
               && ron_engine_step(l->en) == RON_OK
               && ron_engine_reap(l->en, &batch) == RON_OK
               && batch->status == RON_OK;

        for (uint32_t i = 0; good && i < batch->unit_n; i++) {
            l->refused += batch->outcomes[i].reason != RON_REASON_OK;

            if (batch->units[i]->ctx != NULL
                && batch->outcomes[i].reason == RON_REASON_OK)
            {
                l->hold = batch->outcomes[i].results[0].seq;
            }
        }

        if (good) {
            ron_engine_release(l->en, batch);
            ron_engine_sign(l->en, true);
        }
    }

    free(units);

    return good;
}


void
ledger_dir(const char *name, char *dir, size_t size)
{
    snprintf(dir, size, "%s/ron-%s-%d", getenv("TMPDIR") ? getenv("TMPDIR")
                                                         : "/tmp",
             name, (int) getpid());
    ledger_shell("rm -rf '%s'", dir);
}


void
ledger_shell(const char *fmt, ...)
{
    char     cmd[2048];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(cmd, sizeof(cmd), fmt, args);
    va_end(args);

    if (system(cmd) != 0) {
        fprintf(stderr, "# failed: %s\n", cmd);
        exit(1);
    }
}
