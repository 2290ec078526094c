
/*
 * The judge.  It knows what was asked, what was answered, and the journal;
 * of the engine it knows nothing.  It walks the rows with a connection of its
 * own and works out again, in its own way, everything that they claim:
 *
 *     seqs without a gap, epochs and times that do not fall, one process an
 *     epoch, the chain, the tree's root (by folding peaks), the balance of
 *     every account and hold, supply, each operation at most once and exactly
 *     as it was asked for
 *
 * and compares that with the answers: what was acknowledged is there, once,
 * at the seq and with the bytes that the answer gave.
 *
 * From one walk to the next the journal may only grow.  After a power cut it
 * may have lost what nobody was told of, so the walk begins again.
 */

#include "sim.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "ron_digest.h"
#include "ron_entry.h"


#define JUDGE_OPS     4096
#define JUDGE_NAMES   64
#define JUDGE_HOLDS   2048
#define JUDGE_SEQS    16384
#define JUDGE_EPOCHS  4096
#define JUDGE_HEADS   8192


typedef struct {
    char        account[40];
    char        asset[16];
    ron_u128_t  available;
    ron_u128_t  held;
} purse_t;

typedef struct {
    uint64_t    seq;
    purse_t    *purse;
    ron_u128_t  left;
} hold_t;

typedef struct {
    uint64_t    uid;                            /* 0: nobody's */
    ron_hash_t  bytes;
} seen_t;

typedef struct {
    uint64_t    seq;                            /* of the last entry */
    uint64_t    row;                            /* of the last row */
    uint64_t    epoch;
    uint64_t    time_ms;
    ron_hash_t  root;
    ron_hash_t  chain;
    ron_hash_t  peak[64];
    uint64_t    leaves;
    purse_t     purse[JUDGE_NAMES];
    uint32_t    purse_n;
    hold_t      hold[JUDGE_HOLDS];
    uint32_t    hold_n;
    ron_u128_t  supply[4];                      /* minted less burned */
    char        asset[4][16];
    uint32_t    asset_n;
} judged_t;


typedef struct {
    uint64_t    size;
    ron_hash_t  root;
} head_t;


static sim_op_t   judge_ops[JUDGE_OPS];
static uint64_t   judge_op_n;
static seen_t     judge_seen[JUDGE_SEQS];
static judged_t   judged;
static uint32_t   judge_epoch[JUDGE_EPOCHS];    /* whose process it is */
static ron_hash_t judge_root[JUDGE_SEQS];       /* after this seq, if known */
static head_t     judge_head[JUDGE_HEADS];      /* that answers came with */
static uint32_t   judge_heads;


void
oracle_init(void)
{
    judge_op_n = 0;
    memset(&judged, 0, sizeof(judged));
    ron_digest_bytes(RON_DIGEST_BLAKE3, "", 0, &judged.root);
}


/* ---- what was asked and answered ---------------------------------------- */

sim_op_t *
oracle_op(uint8_t kind, ron_u128_t amount)
{
    sim_op_t  *op;

    RON_ASSERT(judge_op_n < JUDGE_OPS);

    op = &judge_ops[judge_op_n++];
    memset(op, 0, sizeof(sim_op_t));
    op->uid = judge_op_n;
    op->kind = kind;
    op->amount = amount;

    return op;
}


void
oracle_done(sim_op_t *op, uint64_t seq, ron_str_t bytes)
{
    ron_hash_t  hash;

    sim_check(!op->done || op->seq == seq, "operation %llu was acknowledged"
              " at seq %llu and now at seq %llu",
              (unsigned long long) op->uid, (unsigned long long) op->seq,
              (unsigned long long) seq);

    op->done = true;
    op->seq = seq;

    if (bytes.len > 0) {
        ron_blake3(bytes.data, bytes.len, &hash);

        sim_check(!op->has_bytes || ron_hash_eq(&hash, &op->bytes),
                  "operation %llu has been acknowledged with other bytes"
                  " before", (unsigned long long) op->uid);

        op->has_bytes = true;
        op->bytes = hash;
    }
}


void
oracle_refused(sim_op_t *op)
{
    op->refused = true;
}


void
oracle_head(uint64_t size, const ron_hash_t *root)
{
    judge_heads = ron_min(judge_heads, JUDGE_HEADS - 1);
    judge_head[judge_heads].size = size;
    judge_head[judge_heads++].root = *root;
}


bool
oracle_purse(uint32_t n, ron_str_t *account, ron_str_t *asset,
    ron_u128_t *available, ron_u128_t *held)
{
    if (n >= judged.purse_n) {
        return false;
    }

    *account = ron_cstr(judged.purse[n].account);
    *asset = ron_cstr(judged.purse[n].asset);
    *available = judged.purse[n].available;
    *held = judged.purse[n].held;

    return true;
}


uint64_t
oracle_seq(void)
{
    return judged.seq;
}


void
oracle_root(ron_hash_t *root)
{
    *root = judged.root;
}


bool
oracle_hold(uint64_t n, uint64_t *seq, ron_u128_t *left)
{
    hold_t  *h;

    if (judged.hold_n == 0) {
        return false;
    }

    h = &judged.hold[n % judged.hold_n];
    *seq = h->seq;
    *left = h->left;

    return true;
}


/* ---- money -------------------------------------------------------------- */

static purse_t *
judge_purse(ron_str_t account, ron_str_t asset)
{
    uint32_t   i;
    purse_t   *p;

    for (i = 0; i < judged.purse_n; i++) {
        p = &judged.purse[i];

        if (ron_str_eq(account, ron_cstr(p->account))
            && ron_str_eq(asset, ron_cstr(p->asset)))
        {
            return p;
        }
    }

    RON_ASSERT(judged.purse_n < JUDGE_NAMES);
    RON_ASSERT(account.len < sizeof(p->account));
    RON_ASSERT(asset.len < sizeof(p->asset));

    p = &judged.purse[judged.purse_n++];
    memset(p, 0, sizeof(purse_t));
    memcpy(p->account, account.data, account.len);
    memcpy(p->asset, asset.data, asset.len);

    return p;
}


static ron_u128_t *
judge_supply(ron_str_t asset)
{
    uint32_t  i;

    for (i = 0; i < judged.asset_n; i++) {
        if (ron_str_eq(asset, ron_cstr(judged.asset[i]))) {
            return &judged.supply[i];
        }
    }

    RON_ASSERT(i < ron_array_n(judged.asset) && asset.len < 16);
    memcpy(judged.asset[i], asset.data, asset.len);
    judged.asset_n++;

    return &judged.supply[i];
}


static void
judge_take(ron_u128_t *from, ron_u128_t amount, const ron_entry_t *e,
    const char *what)
{
    sim_check(*from >= amount, "entry %llu takes more than there is: %s of"
              " \"%.*s\" would be negative", (unsigned long long) e->seq, what,
              (int) e->account.len, (const char *) e->account.data);
    *from -= amount;
}


static hold_t *
judge_hold(const ron_entry_t *e)
{
    uint32_t  i;

    for (i = 0; i < judged.hold_n; i++) {
        if (judged.hold[i].seq == e->ref) {
            return &judged.hold[i];
        }
    }

    sim_fail("entry %llu ends a hold %llu that is not there",
             (unsigned long long) e->seq, (unsigned long long) e->ref);
}


static void
judge_money(const ron_entry_t *e)
{
    hold_t   *h;
    purse_t  *p;

    sim_check(e->amount > 0, "entry %llu moves nothing",
              (unsigned long long) e->seq);

    p = judge_purse(e->account, e->asset);

    switch (e->kind) {

    case RON_KIND_MINT:
        *judge_supply(e->asset) += e->amount;
        p->available += e->amount;
        break;

    case RON_KIND_BURN:
        judge_take(judge_supply(e->asset), e->amount, e, "the supply");
        judge_take(&p->available, e->amount, e, "the balance");
        break;

    case RON_KIND_TRANSFER:
        judge_take(&p->available, e->amount, e, "the balance");
        judge_purse(e->to, e->asset)->available += e->amount;
        break;

    case RON_KIND_DEBIT:
        judge_take(&p->available, e->amount, e, "the balance");
        break;

    case RON_KIND_CREDIT:
        p->available += e->amount;
        break;

    case RON_KIND_HOLD:
        judge_take(&p->available, e->amount, e, "the balance");
        p->held += e->amount;
        RON_ASSERT(judged.hold_n < JUDGE_HOLDS);
        judged.hold[judged.hold_n++] = (hold_t) { e->seq, p, e->amount };
        break;

    case RON_KIND_CAPTURE:
    case RON_KIND_RELEASE:
        h = judge_hold(e);
        sim_check(h->purse == p, "entry %llu ends the hold of another",
                  (unsigned long long) e->seq);
        judge_take(&h->left, e->amount, e, "the hold");
        judge_take(&p->held, e->amount, e, "what is held");

        if (e->kind == RON_KIND_RELEASE) {
            p->available += e->amount;

        } else {
            judge_purse(e->to, e->asset)->available += e->amount;
        }
        break;

    default:
        sim_fail("entry %llu is of a kind that nobody asked for",
                 (unsigned long long) e->seq);
    }
}


static void
judge_sums(void)
{
    uint32_t    i, k;
    ron_u128_t  sum;

    for (k = 0; k < judged.asset_n; k++) {
        sum = 0;

        for (i = 0; i < judged.purse_n; i++) {
            if (strcmp(judged.purse[i].asset, judged.asset[k]) == 0) {
                sum += judged.purse[i].available + judged.purse[i].held;
            }
        }

        sim_check(sum == judged.supply[k], "supply of %s is not what accounts"
                  " have after seq %llu", judged.asset[k],
                  (unsigned long long) judged.seq);
    }
}


/* ---- rows --------------------------------------------------------------- */

static void
judge_leaf(ron_str_t bytes)
{
    uint32_t    level;
    uint64_t    n;
    ron_hash_t  h;

    ron_digest_leaf(RON_DIGEST_BLAKE3, bytes.data, bytes.len, &h);

    for (level = 0, n = judged.leaves; n & 1; n >>= 1, level++) {
        ron_digest_node(RON_DIGEST_BLAKE3, &judged.peak[level], &h, &h);
    }

    judged.peak[level] = h;
    judged.leaves++;
}


static void
judge_fold(ron_hash_t *root)
{
    bool      any;
    uint32_t  level;

    any = false;

    for (level = 0; level < 63; level++) {
        if (!(judged.leaves >> level & 1)) {
            continue;
        }

        if (any) {
            ron_digest_node(RON_DIGEST_BLAKE3, &judged.peak[level], root,
                            root);
        } else {
            *root = judged.peak[level];
            any = true;
        }
    }
}


static void
judge_entry(ron_str_t bytes, uint64_t seq, uint64_t time_ms)
{
    uint64_t      uid;
    sim_op_t     *op;
    ron_entry_t   e;

    sim_check(ron_entry_decode(bytes, &e) == RON_OK, "entry %llu cannot be"
              " decoded", (unsigned long long) seq);
    sim_check(e.seq == seq && e.time_ms == time_ms, "entry %llu says that it"
              " is %llu", (unsigned long long) seq,
              (unsigned long long) e.seq);

    judge_leaf(bytes);
    judge_money(&e);
    sim_count(SIM_ENTRIES, 1);

    RON_ASSERT(seq < JUDGE_SEQS);
    uid = 0;

    if (e.fields & (RON_F_MEMO | RON_F_NONCE16)) {
        memcpy(&uid, e.fields & RON_F_MEMO ? e.memo.b : e.nonce16,
               sizeof(uid));
        sim_check(uid > 0 && uid <= judge_op_n, "entry %llu is of an"
                  " operation that nobody asked for",
                  (unsigned long long) seq);

        op = &judge_ops[uid - 1];
        sim_check(op->found == 0, "operation %llu was done twice, at seq %llu"
                  " and at seq %llu", (unsigned long long) uid,
                  (unsigned long long) op->found, (unsigned long long) seq);
        sim_check(op->kind == e.kind
                  && (op->amount == 0 || op->amount == e.amount),
                  "entry %llu is not operation %llu as it was asked for",
                  (unsigned long long) seq, (unsigned long long) uid);
        op->found = seq;

    } else {
        sim_check(e.fields & RON_F_EXPIRED, "entry %llu is nobody's",
                  (unsigned long long) seq);
    }

    judge_seen[seq].uid = uid;
    ron_blake3(bytes.data, bytes.len, &judge_seen[seq].bytes);
}


static void
judge_chain(sqlite3_stmt *stmt, ron_hash_t *chain)
{
    int           i;
    ron_blake3_t  h;

    static const uint8_t  none[RON_HASH_LEN];

    ron_blake3_init(&h);
    ron_blake3_update(&h, judged.chain.b, RON_HASH_LEN);

    for (i = 0; i < 4; i++) {
        ron_blake3_update_u64(&h, (uint64_t) sqlite3_column_int64(stmt, i));
    }

    ron_blake3_update(&h, sqlite3_column_blob(stmt, 4), RON_HASH_LEN);
    ron_blake3_update(&h, sqlite3_column_blob(stmt, 5), RON_HASH_LEN);
    ron_blake3_update(&h, sqlite3_column_bytes(stmt, 6)
                          ? sqlite3_column_blob(stmt, 6)
                          : (const void *) none, RON_HASH_LEN);
    ron_blake3_update_u64(&h, (uint64_t) sqlite3_column_bytes(stmt, 9));
    ron_blake3_update_u64(&h, (uint64_t) sqlite3_column_bytes(stmt, 8));
    ron_blake3_update(&h, sqlite3_column_blob(stmt, 9),
                      (size_t) sqlite3_column_bytes(stmt, 9));

    if (sqlite3_column_bytes(stmt, 8) > 0) {
        ron_blake3_update(&h, sqlite3_column_blob(stmt, 8),
                          (size_t) sqlite3_column_bytes(stmt, 8));
    }

    ron_blake3_final(&h, chain);
}


static void
judge_row(sqlite3_stmt *stmt)
{
    uint64_t    seq, count, epoch, time_ms, n;
    ron_rd_t    rd;
    ron_str_t   body, bytes;
    ron_hash_t  chain;

    seq = (uint64_t) sqlite3_column_int64(stmt, 0);
    count = (uint64_t) sqlite3_column_int64(stmt, 1);
    epoch = (uint64_t) sqlite3_column_int64(stmt, 2);
    time_ms = (uint64_t) sqlite3_column_int64(stmt, 3);

    if (seq == judged.row && seq != 0) {
        sim_check(memcmp(sqlite3_column_blob(stmt, 7), judged.chain.b,
                         RON_HASH_LEN) == 0,
                  "row %llu has been written anew", (unsigned long long) seq);
        return;
    }

    sim_check(seq == judged.seq + 1, "row %llu follows entry %llu: a gap",
              (unsigned long long) seq, (unsigned long long) judged.seq);
    sim_check(epoch >= judged.epoch && time_ms >= judged.time_ms,
              "epoch or time falls at row %llu", (unsigned long long) seq);
    sim_check(memcmp(sqlite3_column_blob(stmt, 4), judged.root.b,
                     RON_HASH_LEN) == 0,
              "row %llu does not follow the root before it",
              (unsigned long long) seq);

    judge_chain(stmt, &chain);
    sim_check(memcmp(sqlite3_column_blob(stmt, 7), chain.b,
                     RON_HASH_LEN) == 0,
              "the chain is broken at row %llu", (unsigned long long) seq);

    body.data = sqlite3_column_blob(stmt, 9);
    body.len = (size_t) sqlite3_column_bytes(stmt, 9);
    ron_rd_init(&rd, body);

    for (n = 0; ron_body_next(&rd, &bytes) == RON_OK; n++) {
        judge_entry(bytes, seq + n, time_ms);
    }

    sim_check(n == count, "row %llu has %llu entries and says %llu",
              (unsigned long long) seq, (unsigned long long) n,
              (unsigned long long) count);

    judge_fold(&judged.root);
    sim_check(memcmp(sqlite3_column_blob(stmt, 5), judged.root.b,
                     RON_HASH_LEN) == 0,
              "the root of row %llu is not that of its entries",
              (unsigned long long) seq);

    judged.seq = seq + count - 1;
    judged.row = seq;
    judged.epoch = epoch;
    judged.time_ms = time_ms;
    judged.chain = chain;
    judge_root[judged.seq] = judged.root;
    judge_sums();
}


static void
judge_again(void)
{
    uint64_t  i;

    memset(&judged, 0, sizeof(judged));
    memset(judge_seen, 0, sizeof(judge_seen));
    memset(judge_root, 0, sizeof(judge_root));
    ron_digest_bytes(RON_DIGEST_BLAKE3, "", 0, &judged.root);

    for (i = 0; i < judge_op_n; i++) {
        judge_ops[i].found = 0;
    }
}


bool
oracle_scan(bool again)
{
    bool           read;
    int            rc;
    uint64_t       before;
    sqlite3       *db;
    sqlite3_stmt  *stmt;

    before = again ? 0 : judged.seq;

    if (again) {
        judge_again();
    }

    if (sim_disk_find(SIM_DIR "/ledger.db") == NULL) {
        sim_check(before == 0, "the ledger has gone");
        return true;
    }

    sim_count(SIM_SCANS, 1);
    sim.oracle = true;

    rc = sqlite3_open_v2(SIM_DIR "/ledger.db", &db,
                         SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, SIM_VFS);
    RON_ASSERT(rc == SQLITE_OK);
    (void) sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);

    rc = sqlite3_prepare_v2(db, "SELECT seq, count, epoch, time_ms, prev_root,"
                            " root, checkpoint, chain, notes, body FROM"
                            " journal WHERE seq >= ?1 ORDER BY seq", -1,
                            &stmt, NULL);
    if (rc == SQLITE_OK) {
        (void) sqlite3_bind_int64(stmt, 1, (sqlite3_int64) judged.row);

        for (rc = sqlite3_step(stmt); rc == SQLITE_ROW;
             rc = sqlite3_step(stmt))
        {
            judge_row(stmt);
        }

        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    }

    /*
     * Not to be read this instant: somebody recovers the log, or the ledger
     * is not made yet.  The next walk sees all of it.
     */

    /*
     * A ledger whose creation did not get to its end cannot be read and has
     * nothing: if anything was promised, settling finds that it is lost.
     */

    read = rc == SQLITE_OK
           || (judged.seq == 0
               && (rc == SQLITE_ERROR || rc == SQLITE_CANTOPEN
                   || (rc & 0xff) == SQLITE_READONLY));

    if (rc != SQLITE_OK) {
        sim_trace("the journal cannot be read now: %s", sqlite3_errmsg(db));
        sim_check(rc == SQLITE_BUSY || rc == SQLITE_ERROR
                  || rc == SQLITE_PROTOCOL
                  || rc == SQLITE_BUSY_RECOVERY || rc == SQLITE_CANTOPEN
                  || (rc & 0xff) == SQLITE_READONLY,
                  "the journal cannot be read: %s", sqlite3_errmsg(db));
    }

    (void) sqlite3_finalize(stmt);
    (void) sqlite3_close(db);
    sim.oracle = false;
    sim_check(!read || judged.seq >= before,
              "the journal has become shorter");

    return read;
}


/* What caches are told: the journal's, when it ends with this batch. */

static void
judge_published(const ron_batch_t *batch)
{
    uint32_t              i;
    purse_t              *p;
    const ron_balance_t  *b;

    for (i = 0; i < batch->balance_n; i++) {
        b = &batch->balances[i];
        p = judge_purse(b->account, b->asset);
        sim_check(p->available == b->available && p->held == b->held,
                  "a balance of \"%s\" was published up to seq %llu that is"
                  " not the journal's", p->account,
                  (unsigned long long) judged.seq);
        sim_count(SIM_BALANCES, 1);
    }
}


void
oracle_commit(sim_proc_t *proc, const ron_batch_t *batch)
{
    uint64_t  last;

    if (!oracle_scan(false)) {
        return;
    }

    last = batch->seq + batch->count - 1;
    sim_check(judged.seq >= last, "a batch was published up to seq %llu, and"
              " the journal ends at %llu", (unsigned long long) last,
              (unsigned long long) judged.seq);

    if (judged.seq == last) {
        sim_check(ron_hash_eq(&batch->root, &judged.root), "a root was"
                  " published for seq %llu that is not the journal's",
                  (unsigned long long) judged.seq);
        judge_published(batch);

        RON_ASSERT(judged.epoch < JUDGE_EPOCHS);
        sim_check(judge_epoch[judged.epoch] == 0
                  || judge_epoch[judged.epoch] == proc->no,
                  "two processes have written in epoch %llu",
                  (unsigned long long) judged.epoch);
        judge_epoch[judged.epoch] = proc->no;
    }
}


void
oracle_settle(void)
{
    uint64_t         i;
    const head_t    *h;
    const sim_op_t  *op;

    for (i = 0; i < judge_heads; i++) {
        h = &judge_head[i];
        sim_check(h->size <= judged.seq, "an answer said that the journal has"
                  " %llu entries, and it has %llu",
                  (unsigned long long) h->size,
                  (unsigned long long) judged.seq);
        sim_check(h->size == 0 || ron_hash_eq(&h->root, &judge_root[h->size]),
                  "an answer came with a root for seq %llu that is not the"
                  " journal's", (unsigned long long) h->size);
    }

    for (i = 0; i < judge_op_n; i++) {
        op = &judge_ops[i];

        if (op->done) {
            sim_check(op->found != 0, "operation %llu was acknowledged at seq"
                      " %llu and is lost", (unsigned long long) op->uid,
                      (unsigned long long) op->seq);
            sim_check(op->found == op->seq, "operation %llu was acknowledged"
                      " at seq %llu and is at seq %llu",
                      (unsigned long long) op->uid,
                      (unsigned long long) op->seq,
                      (unsigned long long) op->found);
            sim_check(!op->has_bytes
                      || ron_hash_eq(&op->bytes, &judge_seen[op->seq].bytes),
                      "entry %llu has other bytes than were acknowledged",
                      (unsigned long long) op->seq);
        }

        if (op->refused && op->found != 0) {

            /*
             * A copy that an older connection still held was read after the
             * one that was refused: known, and only then.
             */

            sim_check(op->sent > 1, "operation %llu was refused and is at seq"
                      " %llu", (unsigned long long) op->uid,
                      (unsigned long long) op->found);
            sim_count(SIM_LATE, 1);
        }
    }
}
