
/*
 * The engine by example: one scene for each promise, on both stores.  What
 * holds for all histories is in property_test.c.
 */

#include "ron_test.h"
#include "ron_engine_impl.h"
#include "ron_note.h"
#include "ron_log.h"
#include "ron_port.h"
#include "ron_seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define T0  UINT64_C(1800000000000)


typedef struct {
    ron_engine_t       *en;
    ron_engine_conf_t   conf;
    char                url[512];
    char                dir[400];
    void               *region;
    uint64_t            time_ms;
    uint64_t            source_us;
    ron_outcome_t       out;
    ron_result_t        results[64];
    uint8_t             bytes[64][RON_ENTRY_MAX];
} scene_t;


static void
scene_open(scene_t *s)
{
    ron_buf_t     why;
    ron_status_t  status;

    ron_buf_init(&why, 0);

    status = ron_engine_open(&s->conf, &s->en, &why);
    if (status == RON_OK) {
        status = ron_engine_acquire(s->en, &why);
    }

    if (status != RON_OK) {
        diag("open: %s: %.*s", ron_status_name(status), (int) why.len,
             (char *) why.data);
        exit(1);
    }

    ron_buf_free(&why);
}


static void
scene_begin(scene_t *s, bool memory)
{
    static unsigned  n;

    memset(s, 0, sizeof(scene_t));
    ron_engine_conf_init(&s->conf);

    if (memory) {
        s->region = aligned_alloc(4096, 8 * 1024 * 1024);
        memset(s->region, 0, 8 * 1024 * 1024);
        snprintf(s->url, sizeof(s->url), "memory:8m");
        s->conf.store.region = s->region;
        s->conf.store.region_len = 8 * 1024 * 1024;

    } else {
        snprintf(s->dir, sizeof(s->dir), "%s/ron-engine-%d-%u",
                 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
                 (int) getpid(), n++);
        snprintf(s->url, sizeof(s->url), "sqlite:%s", s->dir);
    }

    s->conf.store.url = s->url;
    s->conf.store.create = true;
    s->conf.store.ledger_id = 7;
    s->conf.tag_ram = 1024 * 1024;
    s->conf.key_ram = 1024 * 1024;
    s->time_ms = T0;

    scene_open(s);
}


static void
scene_end(scene_t *s)
{
    char  cmd[512];

    ron_engine_close(s->en);
    free(s->region);

    if (s->dir[0]) {
        snprintf(cmd, sizeof(cmd), "rm -rf '%s'", s->dir);
        (void) !system(cmd);
    }
}


/* Decides one unit as a batch of its own, and commits it. */

static ron_reason_t
scene_do(scene_t *s, ron_unit_t *unit)
{
    ron_unit_t   *units[1];
    ron_batch_t  *batch;
    ron_status_t  status;

    units[0] = unit;
    unit->source_us = ++s->source_us;

    status = ron_engine_decide(s->en, s->time_ms, 1000, units, 1);
    if (status != RON_OK || ron_engine_step(s->en) != RON_OK
        || ron_engine_reap(s->en, &batch) != RON_OK
        || batch->status != RON_OK)
    {
        diag("the batch failed: %s", ron_status_name(status));
        exit(1);
    }

    s->out = batch->outcomes[0];
    s->out.results = s->results;

    for (uint32_t i = 0; i < s->out.result_n; i++) {
        s->results[i] = batch->outcomes[0].results[i];

        if (s->results[i].bytes.len > 0) {
            memcpy(s->bytes[i], s->results[i].bytes.data,
                   s->results[i].bytes.len);
        }

        s->results[i].bytes.data = s->bytes[i];
    }

    ron_engine_release(s->en, batch);

    return s->out.reason;
}


static ron_entry_t
op(ron_kind_t kind, const char *account, const char *to, uint64_t amount)
{
    ron_entry_t  e;

    memset(&e, 0, sizeof(e));
    e.kind = kind;
    e.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    e.asset = ron_str("ron");
    e.account = account != NULL ? ron_cstr(account) : ron_null_str;
    e.amount = amount;

    if (to != NULL) {
        e.fields |= RON_F_TO;
        e.to = ron_cstr(to);
    }

    return e;
}


static ron_reason_t
wallet(scene_t *s, ron_entry_t e, uint64_t nonce, const char *key)
{
    ron_unit_t  u;

    if (nonce != 0) {
        e.fields |= RON_F_NONCE;
        e.nonce = nonce;
    }

    memset(&u, 0, sizeof(u));
    u.type = RON_UNIT_WALLET;
    u.key = ron_cstr(key);
    u.cap = ron_str("dev:tester");
    u.op_n = 1;
    u.ops = &e;

    return scene_do(s, &u);
}


static ron_entry_t
ingest_op(ron_entry_t e, const char *id, uint8_t nonce)
{
    e.fields |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
    e.id = ron_cstr(id);
    memset(e.nonce16, nonce, sizeof(e.nonce16));
    e.source_ms = T0;

    return e;
}


static ron_reason_t
ingest(scene_t *s, ron_entry_t *ops, uint32_t n, bool atomic,
    const char *idem)
{
    ron_unit_t  u;

    memset(&u, 0, sizeof(u));
    u.type = RON_UNIT_INGEST;
    u.atomic = atomic;
    u.key = idem ? ron_cstr(idem) : ron_null_str;
    u.cap = ron_str("dev:tester");
    u.op_n = n;
    u.ops = ops;

    return scene_do(s, &u);
}


static uint64_t
available(scene_t *s, const char *account)
{
    ron_balance_t  b;

    return ron_engine_balance(s->en, ron_cstr(account), ron_str("ron"), &b)
               == RON_OK ? (uint64_t) b.available : 0;
}


static void
reopen(scene_t *s)
{
    ron_engine_close(s->en);
    scene_open(s);
}


static void
scene_wallet(bool memory)
{
    scene_t      s;
    ron_str_t    bytes;
    ron_entry_t  e, hold;

    scene_begin(&s, memory);

    is_u64(wallet(&s, op(RON_KIND_MINT, "a", NULL, 100), 0, "k1"),
           RON_REASON_OK, "issue");
    is_u64(s.results[0].seq, 1, "the first entry has seq 1");
    ok(ron_entry_decode(s.results[0].bytes, &e) == RON_OK
       && e.kind == RON_KIND_MINT && e.ledger_id == 7,
       "its bytes come with the result");

    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "a", "b", 30), 5, "k2"),
           RON_REASON_OK, "transfer");
    is_u64(available(&s, "a"), 70, "the payer has less");
    is_u64(available(&s, "b"), 30, "the payee has more");

    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "a", "b", 30), 5, "k2"),
           RON_REASON_OK, "the same again is a replay");
    ok(s.out.replayed && s.results[0].seq == 2, "of the first one");
    is_u64(available(&s, "a"), 70, "which moves nothing");

    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "a", "b", 31), 6, "k2"),
           RON_REASON_IDEM_MISMATCH, "another body under the key is refused");
    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "a", "b", 1), 5, "k3"),
           RON_REASON_NONCE, "a used nonce is refused");
    is_u64(s.results[0].value, 6, "and the expected one named");
    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "a", "b", 71), 6, "k3"),
           RON_REASON_INSUFFICIENT, "an overdraft is refused");
    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "a", "b", 70), 6, "k3"),
           RON_REASON_OK, "which burnt neither key nor nonce");

    hold = op(RON_KIND_HOLD, "b", "shop", 60);
    hold.fields |= RON_F_EXPIRY;
    is_u64(wallet(&s, hold, 1, "h1"), RON_REASON_MALFORMED,
           "a hold that has expired");
    hold.expiry_ms = 1000;
    is_u64(wallet(&s, hold, 1, "h1"), RON_REASON_OK, "hold");
    is_u64(available(&s, "b"), 40, "a hold takes from the available");

    memset(&e, 0, sizeof(e));
    e.kind = RON_KIND_CAPTURE;
    e.fields = RON_F_REF | RON_F_AMOUNT;
    e.ref = s.results[0].seq;
    e.amount = 20;
    is_u64(wallet(&s, e, 0, "c1"), RON_REASON_OK, "capture a part");
    is_u64(available(&s, "shop"), 20, "goes to whom the hold was for");

    reopen(&s);
    is_u64(available(&s, "shop"), 20, "after reopening the balance is there");
    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "a", "b", 30), 5, "k2"),
           RON_REASON_OK, "and a replay still works");
    ok(s.out.replayed && s.results[0].seq == 2, "with the first receipt");

    s.time_ms += 1000;
    is_u64(wallet(&s, e, 0, "c2"), RON_REASON_HOLD_CLOSED,
           "an expired hold cannot be captured");
    is_u64(available(&s, "b"), 80, "what was left went back");

    s.time_ms += 86400000;
    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "b", "a", 1), 2, "h1"),
           RON_REASON_OK, "a key is free again after a day");
    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "b", "a", 1), 2, "h1"),
           RON_REASON_OK, "and a replay of its second use");
    ok(s.out.replayed, "is one");
    is_u64(available(&s, "a"), 1, "and moves nothing");
    (void) bytes;

    scene_end(&s);
}


/* If-Match of a batch: the version of the account that it is about. */

static void
scene_batch_match(bool memory)
{
    scene_t      s;
    ron_unit_t   u;
    ron_entry_t  ops[3];

    scene_begin(&s, memory);

    is_u64(wallet(&s, op(RON_KIND_MINT, "a", NULL, 100), 0, "m1"),
           RON_REASON_OK, "money");
    is_u64(wallet(&s, op(RON_KIND_MINT, "b", NULL, 100), 0, "m2"),
           RON_REASON_OK, "and for another");

    ops[0] = op(RON_KIND_TRANSFER, "a", "c", 1);
    ops[0].fields |= RON_F_NONCE;
    ops[0].nonce = 1;
    ops[1] = ops[0];
    ops[1].nonce = 2;
    ops[2] = ops[0];
    ops[2].account = ron_str("b");

    memset(&u, 0, sizeof(u));
    u.type = RON_UNIT_BATCH;
    u.key = ron_str("b1");
    u.cap = ron_str("dev:tester");
    u.has_match = true;
    u.op_n = 2;
    u.ops = ops;

    u.match = 7;
    is_u64(scene_do(&s, &u), RON_REASON_PRECONDITION,
           "a batch with the version of another day");
    is_u64(s.out.value, 1, "hears which it is");
    is_u64(s.results[1].reason, RON_REASON_PRECONDITION, "all of it");
    is_u64(available(&s, "a"), 100, "nothing moved");

    u.match = 1;
    u.op_n = 3;
    is_u64(scene_do(&s, &u), RON_REASON_MALFORMED, "one version for two");
    is_u64(s.out.detail, RON_DETAIL_MATCH, "is refused, and says why");
    is_u64(available(&s, "a"), 100, "nothing moved");

    ops[1] = op(RON_KIND_RELEASE, NULL, NULL, 0);
    ops[1].fields = RON_F_REF;
    ops[1].ref = 99;
    is_u64(scene_do(&s, &u), RON_REASON_HOLD_NOT_FOUND,
           "nor is it known whose a hold is that is not there");

    ops[1] = ops[0];
    ops[1].nonce = 2;
    u.op_n = 2;
    is_u64(scene_do(&s, &u), RON_REASON_OK, "with the version of now");
    is_u64(available(&s, "a"), 98, "it is done");
    u.match = 1;
    is_u64(scene_do(&s, &u), RON_REASON_OK, "a replay is one still");
    ok(s.out.replayed, "though the version has moved on");

    scene_end(&s);
}


static ron_entry_t
by_txid(ron_kind_t kind, uint64_t seq, uint64_t time_ms, uint16_t ledger_id)
{
    ron_entry_t  e;

    memset(&e, 0, sizeof(e));
    e.kind = kind;
    e.fields = RON_F_REF | RON_F_TXID;
    e.ref = seq;
    e.time_ms = time_ms;
    e.ledger_id = ledger_id;

    if (kind == RON_KIND_CAPTURE) {
        e.fields |= RON_F_AMOUNT;
        e.amount = 10;
    }

    return e;
}


/* A hold's txid is more than its seq: of which ledger, and when. */

static void
scene_txid(bool memory)
{
    char         key[32];
    scene_t      s;
    uint64_t     seq, at;
    ron_unit_t   u;
    ron_entry_t  ops[2];

    scene_begin(&s, memory);
    ron_engine_close(s.en);
    s.conf.checkpoint_n = 5;
    scene_open(&s);

    is_u64(wallet(&s, op(RON_KIND_MINT, "a", NULL, 100), 0, "m"),
           RON_REASON_OK, "money");
    s.time_ms += 77;
    at = s.time_ms;
    is_u64(wallet(&s, op(RON_KIND_HOLD, "a", "shop", 60), 1, "h"),
           RON_REASON_OK, "a hold");
    seq = s.results[0].seq;
    s.time_ms += 1000;

    for (unsigned i = 0; i < 2; i++) {

        is_u64(wallet(&s, by_txid(RON_KIND_CAPTURE, seq, at, 8), 0, "x"),
               RON_REASON_HOLD_NOT_FOUND, "a hold of another ledger");
        is_u64(wallet(&s, by_txid(RON_KIND_CAPTURE, seq, at + 1, 7), 0, "x"),
               RON_REASON_HOLD_NOT_FOUND, "a hold of another time");
        is_u64(wallet(&s, by_txid(RON_KIND_RELEASE, seq, at - 1, 7), 0, "x"),
               RON_REASON_HOLD_NOT_FOUND, "nor is it released");

        snprintf(key, sizeof(key), "c%u", i);
        is_u64(wallet(&s, by_txid(RON_KIND_CAPTURE, seq, at, 7), 0, key),
               RON_REASON_OK, "the hold itself is captured");
        is_u64(available(&s, "shop"), 10 * (i + 1), "once");
        is_u64(wallet(&s, by_txid(RON_KIND_CAPTURE, seq, at, 8), 0, key),
               RON_REASON_HOLD_NOT_FOUND, "nor is a replay of another's one");

        /* out of a checkpoint it does not know its time */

        for (unsigned k = 0; k < 60; k++) {
            snprintf(key, sizeof(key), "t%u-%u", i, k);
            (void) wallet(&s, op(RON_KIND_MINT, "b", NULL, 1), 0, key);
        }

        reopen(&s);
    }

    ops[0] = by_txid(RON_KIND_CAPTURE, seq, at, 7);
    ops[1] = by_txid(RON_KIND_CAPTURE, seq, at, 9);
    memset(&u, 0, sizeof(u));
    u.type = RON_UNIT_BATCH;
    u.key = ron_str("b1");
    u.cap = ron_str("dev:tester");
    u.op_n = 2;
    u.ops = ops;
    is_u64(scene_do(&s, &u), RON_REASON_OK, "a batch with one of each");
    is_u64(s.results[1].reason, RON_REASON_HOLD_NOT_FOUND, "one is none");
    is_u64(scene_do(&s, &u), RON_REASON_OK, "again");
    ok(s.out.replayed, "is a replay");
    ops[1].ledger_id = 7;
    is_u64(scene_do(&s, &u), RON_REASON_IDEM_MISMATCH,
           "with the right one it is another batch");

    /* as notes have it that are older than this */

    u.key = ron_str("b2");
    u.op_n = 1;
    ops[0].fields &= ~(uint32_t) RON_F_TXID;
    is_u64(scene_do(&s, &u), RON_REASON_OK, "a batch that names the seq");
    ops[0].fields |= RON_F_TXID;
    is_u64(scene_do(&s, &u), RON_REASON_OK, "is known by the txid");
    ok(s.out.replayed, "after an upgrade");

    is_u64(wallet(&s, by_txid(RON_KIND_RELEASE, seq, at, 7), 0, "r"),
           RON_REASON_OK, "the hold is released");
    is_u64(wallet(&s, by_txid(RON_KIND_RELEASE, seq, at, 7), 0, "r2"),
           RON_REASON_HOLD_CLOSED, "and closed");
    is_u64(wallet(&s, by_txid(RON_KIND_RELEASE, seq, at + 1, 7), 0, "r2"),
           RON_REASON_HOLD_NOT_FOUND, "under its own name only");
    is_u64(available(&s, "shop"), 40, "nothing else moved");

    scene_end(&s);
}


/* What became of a batch is told by its key, which is the capability's. */

static void
scene_batch_key(bool memory)
{
    bool           durable;
    scene_t        s;
    ron_str_t      wire;
    ron_unit_t     u;
    ron_entry_t    ops[3], e;
    ron_result_t   results[3];
    ron_outcome_t  o;

    scene_begin(&s, memory);

    is_u64(wallet(&s, op(RON_KIND_MINT, "a", NULL, 100), 0, "m1"),
           RON_REASON_OK, "money");

    for (unsigned i = 0; i < 3; i++) {
        ops[i] = op(RON_KIND_TRANSFER, "a", "b", i == 1 ? 1000 : 10 + i);
        ops[i].fields |= RON_F_NONCE;
        ops[i].nonce = 1 + i;
    }

    memset(&u, 0, sizeof(u));
    u.type = RON_UNIT_BATCH;
    u.key = ron_str("b1");
    u.cap = ron_str("dev:tester");
    u.op_n = 3;
    u.ops = ops;
    is_u64(scene_do(&s, &u), RON_REASON_OK, "a batch, one is refused");
    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "a", "b", 1), 9, "b2"),
           RON_REASON_OK, "and a transfer");

    for (unsigned again = 0; again < 2; again++) {

        is_status(ron_engine_lookup_batch(s.en, ron_str("dev:tester"),
                                          ron_str("b1"), &wire, &durable),
                  RON_OK, "its key is found");
        ok(durable, "on disk");
        is_status(ron_outcome_decode(wire, &o, results, 3), RON_OK,
                  "with the outcome of the batch");
        ok(o.reason == RON_REASON_OK && o.result_n == 3
           && results[1].reason == RON_REASON_INSUFFICIENT
           && results[1].bytes.len == 0, "what was refused has no entry");
        ok(ron_entry_decode(results[0].bytes, &e) == RON_OK && e.seq == 2
           && e.amount == 10, "the first one has");
        ok(ron_entry_decode(results[2].bytes, &e) == RON_OK && e.seq == 3
           && e.amount == 12 && results[2].seq == 3, "the last one, too");

        is_status(ron_engine_lookup_batch(s.en, ron_str("dev:other"),
                                          ron_str("b1"), &wire, &durable),
                  RON_ENOTFOUND, "another capability has no such key");
        is_status(ron_engine_lookup_batch(s.en, ron_str("dev:tester"),
                                          ron_str("b2"), &wire, &durable),
                  RON_ENOTFOUND, "nor is an operation's key a batch's");
        is_status(ron_engine_lookup_key(s.en, ron_str("a"), ron_str("b1"),
                                        &wire, &durable),
                  RON_ENOTFOUND, "nor a batch's an operation's");

        reopen(&s);
    }

    s.time_ms += 86400000;
    is_u64(wallet(&s, op(RON_KIND_TRANSFER, "a", "b", 1), 10, "b3"),
           RON_REASON_OK, "a day later");
    is_status(ron_engine_lookup_batch(s.en, ron_str("dev:tester"),
                                      ron_str("b1"), &wire, &durable),
              RON_ENOTFOUND, "it is forgotten");

    scene_end(&s);
}


static void
scene_ingest(bool memory)
{
    scene_t      s;
    ron_entry_t  ops[4];

    scene_begin(&s, memory);

    ops[0] = ingest_op(op(RON_KIND_MINT, "a", NULL, 100), "m1", 1);
    ops[0].fields &= ~(uint32_t) RON_F_SOURCE;
    is_u64(ingest(&s, ops, 1, false, NULL), RON_REASON_MALFORMED,
           "an entry without its ts");
    is_u64(s.results[0].detail, RON_DETAIL_FIELDS, "lacks a member");

    ops[0] = ingest_op(op(RON_KIND_MINT, "a", NULL, 100), "m1", 1);
    ops[1] = ingest_op(op(RON_KIND_TRANSFER, "a", "b", 10), "t1", 2);
    ops[2] = ingest_op(op(RON_KIND_TRANSFER, "a", "b", 1000), "t2", 3);
    is_u64(ingest(&s, ops, 3, false, "batch-1"), RON_REASON_OK,
           "a batch is partly accepted");
    is_u64(s.results[2].reason, RON_REASON_INSUFFICIENT, "one was refused");

    is_u64(ingest(&s, ops, 3, false, "batch-1"), RON_REASON_OK,
           "the same batch again");
    ok(s.out.replayed && s.results[1].seq == 2
       && s.results[2].reason == RON_REASON_INSUFFICIENT,
       "gives the original answer");
    is_u64(ingest(&s, ops, 2, false, "batch-1"), RON_REASON_CONFLICT,
           "another batch under its id is refused");

    is_u64(ingest(&s, ops, 2, false, NULL), RON_REASON_CONFLICT,
           "the id in another batch is another entry");

    ops[0] = ingest_op(op(RON_KIND_TRANSFER, "a", "b", 1), "t3", 4);
    ops[1] = ingest_op(op(RON_KIND_TRANSFER, "a", "b", 5000), "t4", 5);
    is_u64(ingest(&s, ops, 2, true, NULL), RON_REASON_INSUFFICIENT,
           "an atomic batch falls as a whole");
    is_u64(s.results[0].reason, RON_REASON_ABORTED, "also what was good");
    is_u64(available(&s, "a"), 90, "and moves nothing");
    is_u64(ingest(&s, ops, 1, true, NULL), RON_REASON_OK,
           "its ids are free still");
    is_u64(ingest(&s, ops, 1, true, NULL), RON_REASON_OK, "once");
    ok(s.results[0].repeat, "the second time is a repeat");

    ops[0] = ingest_op(op(RON_KIND_DEBIT, "a", NULL, 9), "d1", 6);
    ops[1] = ingest_op(op(RON_KIND_CREDIT, "c", NULL, 4), "d2", 7);
    ops[2] = ingest_op(op(RON_KIND_CREDIT, "d", NULL, 4), "d3", 8);
    is_u64(ingest(&s, ops, 3, false, NULL), RON_REASON_CONFLICT,
           "a posting that does not balance is refused");
    ops[2].amount = 5;
    is_u64(ingest(&s, ops, 3, false, NULL), RON_REASON_OK,
           "one that balances is not");
    is_u64(available(&s, "d"), 5, "all legs were applied");

    ops[3] = ops[2];
    ops[2] = ingest_op(op(RON_KIND_CREDIT, "d", NULL, 5), "d4", 11);
    is_u64(ingest(&s, ops, 3, false, NULL), RON_REASON_CONFLICT,
           "legs that were there with one that was not are refused");
    is_u64(s.results[2].reason, RON_REASON_CONFLICT, "the new one too");
    is_u64(available(&s, "d"), 5, "and nothing moves");
    ops[2] = ops[3];
    is_u64(ingest(&s, ops, 3, false, NULL), RON_REASON_OK,
           "as they were they are repeats");
    ok(s.results[0].repeat && s.results[2].repeat, "all of them");

    ops[3] = ingest_op(op(RON_KIND_REVERSE, "b", NULL, 11), "r1", 9);
    ops[3].fields |= RON_F_REF;
    ops[3].ref = 2;
    is_u64(ingest(&s, &ops[3], 1, false, NULL), RON_REASON_CONFLICT,
           "more than the original cannot be reversed");
    ops[3].amount = 10;
    is_u64(ingest(&s, &ops[3], 1, false, NULL), RON_REASON_OK, "all of it can");
    ops[3] = ingest_op(op(RON_KIND_REVERSE, "b", NULL, 1), "r2", 10);
    ops[3].fields |= RON_F_REF;
    ops[3].ref = 2;
    reopen(&s);
    is_u64(ingest(&s, &ops[3], 1, false, NULL), RON_REASON_CONFLICT,
           "but only once, also after reopening");

    scene_end(&s);
}


/* A ledger that is marked for safe mode has no writer until it is cleared. */

static void
scene_marked(void)
{
    uint64_t   epoch;
    scene_t    s;
    ron_buf_t  why;

    scene_begin(&s, false);
    is_u64(wallet(&s, op(RON_KIND_MINT, "bank", NULL, 7), 0, "m"),
           RON_REASON_OK, "a ledger");
    is_i64(ron_store_mark_write(ron_engine_store(s.en), ron_cstr("a test")),
           RON_OK, "is marked");
    ron_engine_close(s.en);

    ron_buf_init(&why, 0);
    is_i64(ron_engine_open(&s.conf, &s.en, &why), RON_OK, "it opens");
    is_i64(ron_engine_acquire(s.en, &why), RON_ECANCELED,
           "but not for writing");
    ok(why.len > 6 && memcmp(why.data + why.len - 6, "a test", 6) == 0,
       "and says why: %.*s", (int) why.len, (char *) why.data);

    is_i64(ron_store_acquire(ron_engine_store(s.en), &epoch), RON_OK,
           "its lock is free");
    is_i64(ron_store_mark_write(ron_engine_store(s.en), ron_null_str), RON_OK,
           "cleared");
    reopen(&s);
    is_u64(available(&s, "bank"), 7, "it has a writer again");

    ron_buf_free(&why);
    scene_end(&s);
}


/* Many entries with tiny checkpoint intervals, reopened at many points. */

static void
scene_checkpoints(void)
{
    char               key[32], to[32];
    scene_t            s;
    ron_engine_stat_t  stat;

    scene_begin(&s, false);
    ron_engine_close(s.en);
    s.conf.checkpoint_n = 50;
    scene_open(&s);

    is_u64(wallet(&s, op(RON_KIND_MINT, "bank", NULL, 1000000), 0, "m"),
           RON_REASON_OK, "a bank");

    for (unsigned i = 1; i <= 900; i++) {
        snprintf(key, sizeof(key), "k%u", i);
        snprintf(to, sizeof(to), "acc%u", i % 300);

        if (wallet(&s, op(RON_KIND_TRANSFER, "bank", to, 1), i, key)
            != RON_REASON_OK)
        {
            ok(0, "transfer %u", i);
        }

        if (i % 131 == 0) {
            reopen(&s);
        }
    }

    reopen(&s);
    ron_engine_stat(s.en, &stat);

    ok(stat.checkpoint_gen >= 1, "checkpoints were completed (%llu)",
       (unsigned long long) stat.checkpoint_gen);
    ok(stat.checkpoint_seq > 100, "the newest as of seq %llu, %llu replayed",
       (unsigned long long) stat.checkpoint_seq,
       (unsigned long long) stat.replayed);
    is_u64(available(&s, "bank"), 1000000 - 900, "the bank's balance");
    is_u64(available(&s, "acc7"), 3, "an account's balance");

    scene_end(&s);
}


/* The i-th entry of many: one for the account. */

static void
mint(scene_t *s, const char *account, unsigned i)
{
    char         id[32];
    ron_entry_t  e;

    snprintf(id, sizeof(id), "n%u", i);
    e = ingest_op(op(RON_KIND_MINT, account, NULL, 1), id, 0);
    memcpy(e.nonce16, &i, sizeof(i));

    if (ingest(s, &e, 1, false, NULL) != RON_REASON_OK) {
        ok(0, "mint %u", i);
    }
}


/*
 * Much state: a checkpoint has to wait for as many entries as there are
 * accounts, or for two seconds.
 */

static void
scene_checkpoint_large(unsigned later_ms, bool again)
{
    char               id[32];
    scene_t            s;
    ron_engine_stat_t  stat;

    scene_begin(&s, false);
    ron_engine_close(s.en);
    s.conf.checkpoint_n = 50;
    scene_open(&s);

    for (unsigned i = 0; i < 3000; i++) {
        if (i == 2000) {
            s.time_ms += later_ms;
        }

        snprintf(id, sizeof(id), "n%u", i);
        mint(&s, id, i);
    }

    ron_engine_stat(s.en, &stat);
    ok((stat.checkpoint_seq > 2000) == again,
       "3000 accounts, the last 1000 %u ms later: a checkpoint as of seq %llu",
       later_ms, (unsigned long long) stat.checkpoint_seq);

    reopen(&s);
    is_u64(available(&s, "n1999") + available(&s, "n2999"), 2,
           "and all are there");

    scene_end(&s);
}


/* Little state: a restart has not to replay what a large ledger would. */

static void
scene_checkpoint_small(void)
{
    scene_t            s;
    ron_engine_stat_t  stat;

    scene_begin(&s, false);

    for (unsigned i = 0; i < 8400; i++) {
        mint(&s, "bank", i);
    }

    reopen(&s);
    ron_engine_stat(s.en, &stat);
    is_u64(available(&s, "bank"), 8400, "one account, 8400 entries");
    ok(stat.checkpoint_seq > 8000, "a checkpoint as of seq %llu",
       (unsigned long long) stat.checkpoint_seq);

    scene_end(&s);
}


/* The size of the signed head, 0: there is none. */

static uint64_t
head_size(scene_t *s)
{
    uint64_t               size;
    ron_buf_t              note;
    ron_checkpoint_note_t  cp;

    ron_buf_init(&note, RON_NOTE_MAX);

    size = ron_store_head_read(ron_engine_store(s->en), &note) == RON_OK
           && ron_note_parse(ron_buf_str(&note), &cp) == RON_OK ? cp.size : 0;

    ron_buf_free(&note);

    return size;
}


/* Heads are signed apart from the batches: at once, seldom, or at the end. */

static void
scene_heads(bool memory)
{
    char      key[32];
    uint64_t  begin_us, size, signed_n;
    scene_t   s;

    scene_begin(&s, memory);

    is_u64(wallet(&s, op(RON_KIND_MINT, "bank", NULL, 1000), 0, "m"),
           RON_REASON_OK, "a first entry");
    is_u64(head_size(&s), 0, "is durable before its head is signed");

    ron_engine_sign(s.en, true);
    is_u64(head_size(&s), 1, "idle: signed at once");

    begin_us = ron_clock_mono_us();
    signed_n = 0;
    size = 1;

    for (unsigned i = 1; i <= 300; i++) {
        snprintf(key, sizeof(key), "k%u", i);
        (void) wallet(&s, op(RON_KIND_TRANSFER, "bank", "a", 1), i, key);
        ron_engine_sign(s.en, false);

        if (head_size(&s) != size) {
            size = head_size(&s);
            signed_n++;
        }
    }

    ok(signed_n <= (ron_clock_mono_us() - begin_us) / 5000 + 1,
       "busy: %llu of 300 heads in %llu us", (unsigned long long) signed_n,
       (unsigned long long) (ron_clock_mono_us() - begin_us));

    ron_sleep_us(5100);
    ron_engine_sign(s.en, false);
    is_u64(head_size(&s), 301, "busy, and 5 ms after the last: signed");

    (void) wallet(&s, op(RON_KIND_TRANSFER, "bank", "a", 1), 301, "last");

    if (!memory) {
        is_u64(head_size(&s), 301, "the last one is not signed yet");
        reopen(&s);
        is_u64(head_size(&s), 302, "closing signs it");
    }

    scene_end(&s);
}


/* Units of one batch: by their times, and those of one time as given. */

static void
scene_order(bool memory)
{
    char           names[4][8];
    scene_t        s;
    ron_unit_t     units[4], *given[4];
    ron_entry_t    ops[4];
    ron_batch_t   *batch;

    static const uint64_t  times[4] = { 20, 10, 10, 20 };
    static const uint64_t  seqs[4] = { 4, 2, 1, 3 };

    scene_begin(&s, memory);
    memset(units, 0, sizeof(units));

    for (unsigned i = 0; i < 4; i++) {
        snprintf(names[i], sizeof(names[i]), "order%u", i);
        ops[i] = op(RON_KIND_MINT, names[i], NULL, 1);
        units[i].type = RON_UNIT_WALLET;
        units[i].key = ron_cstr(names[i]);
        units[i].cap = ron_str("dev:tester");
        units[i].op_n = 1;
        units[i].ops = &ops[i];
        units[i].source_us = times[i];

        /* the last is given first: where they lie in memory says nothing */

        given[3 - i] = &units[i];
    }

    RON_ASSERT(ron_engine_decide(s.en, s.time_ms, 1000, given, 4) == RON_OK
               && ron_engine_step(s.en) == RON_OK
               && ron_engine_reap(s.en, &batch) == RON_OK);

    for (unsigned i = 0; i < batch->unit_n; i++) {
        for (unsigned k = 0; k < 4; k++) {
            if (batch->units[i] == &units[k]) {
                is_u64(batch->outcomes[i].results[0].seq, seqs[k],
                       "of a batch, unit %u", k);
            }
        }
    }

    ron_engine_release(s.en, batch);
    scene_end(&s);
}


/* The same, one by one: insertion by time and id, then by nonce. */

static void
order_slowly(ron_unit_t **units, uint32_t n)
{
    bool                again;
    ron_unit_t         *u;
    const ron_entry_t  *a, *b;

    for (uint32_t i = 1; i < n; i++) {
        for (uint32_t k = i; k > 0; k--) {
            if (units[k - 1]->source_us < units[k]->source_us
                || (units[k - 1]->source_us == units[k]->source_us
                    && ron_str_cmp(units[k - 1]->ops[0].id,
                                   units[k]->ops[0].id) <= 0))
            {
                break;
            }

            u = units[k];
            units[k] = units[k - 1];
            units[k - 1] = u;
        }
    }

    do {
        again = false;

        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = i + 1; k < n; k++) {
                a = &units[i]->ops[0];
                b = &units[k]->ops[0];

                if (a->kind != RON_KIND_TRANSFER || b->kind != a->kind
                    || !ron_str_eq(a->account, b->account))
                {
                    continue;
                }

                if (a->nonce > b->nonce) {
                    u = units[i];
                    units[i] = units[k];
                    units[k] = u;
                    again = true;
                }

                break;
            }
        }

    } while (again);
}


/*
 * Against the slow one: few accounts or many, of any length, and such that
 * differ only where a glance does not look; nonces in order or not.
 */

static void
scene_order_random(void)
{
    enum { UNITS = 200 };

    char         names[UNITS][48], ids[UNITS][8];
    uint64_t     seed, wrong, moved;
    uint32_t     n;
    ron_unit_t   units[UNITS], *fast[UNITS], *slow[UNITS], *given[UNITS];
    ron_entry_t  ops[UNITS];

    seed = 5;
    wrong = moved = 0;

    for (unsigned round = 0; round < 300; round++) {
        n = (uint32_t) ron_seed_below(&seed, UNITS + 1);
        memset(units, 0, sizeof(units));

        for (uint32_t i = 0; i < n; i++) {
            snprintf(names[i], sizeof(names[i]),
                     round % 3 == 0 ? "%llu"
                     : round % 3 == 1 ? "a:account-%llu"
                     : "the-same%llu:the-same",
                     (unsigned long long)
                         ron_seed_below(&seed, round % 2 ? 500 : 20));
            snprintf(ids[i], sizeof(ids[i]), "%u",
                     (unsigned) ron_seed_below(&seed, 3));
            ops[i] = op(ron_seed_below(&seed, 8) ? RON_KIND_TRANSFER
                                                 : RON_KIND_MINT,
                        names[i], "b", 1);
            ops[i].id = ron_cstr(ids[i]);
            ops[i].fields |= RON_F_NONCE;
            ops[i].nonce = round % 5 ? ron_seed_below(&seed, 4) : i;
            units[i].type = RON_UNIT_WALLET;
            units[i].source_us = round % 4 ? i : ron_seed_below(&seed, 5);
            units[i].op_n = 1;
            units[i].ops = &ops[i];
            given[i] = fast[i] = slow[i] = &units[i];
        }

        RON_ASSERT(ron_order_units(fast, n) == RON_OK);
        order_slowly(slow, n);
        wrong += memcmp(fast, slow, n * sizeof(fast[0])) != 0;
        moved += memcmp(fast, given, n * sizeof(fast[0])) != 0;
    }

    is_u64(wrong, 0, "random batches are in the order of one by one");
    ok(moved > 50, "which changed %llu of them", (unsigned long long) moved);
}


int
main(void)
{
    ron_log_set(NULL, NULL, RON_LOG_ALERT);

    for (int memory = 0; memory <= 1; memory++) {
        diag("%s", memory ? "memory" : "sqlite");
        scene_wallet(memory != 0);
        scene_batch_match(memory != 0);
        scene_batch_key(memory != 0);
        scene_txid(memory != 0);
        scene_ingest(memory != 0);
        scene_heads(memory != 0);
        scene_order(memory != 0);
    }

    scene_order_random();
    scene_marked();
    scene_checkpoints();
    scene_checkpoint_small();
    scene_checkpoint_large(1999, false);
    scene_checkpoint_large(2000, true);

    return done_testing();
}
