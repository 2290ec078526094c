
/*
 * Audit, snapshots, exports: whatever is done to a journal is found and
 * named, and a copy that nothing was done to is the same ledger.
 *
 *     snapshot_test                        the tests
 *     snapshot_test make DIR N [KEYFILE]   a ledger for t/06-ronctl.t
 *     snapshot_test grow DIR N [MS]        goes on with it, slowly, so that
 *                                          tools see a ledger that is alive
 */

#include "ron_seed.h"
#include "ron_test.h"
#include "lib_ledger.h"
#include "ron_audit.h"
#include "ron_checkpoint.h"
#include "ron_export.h"
#include "ron_history.h"
#include "ron_log.h"
#include "ron_note.h"
#include "ron_port.h"
#include "ron_snapshot.h"

#include <sqlite3.h>
#include <unistd.h>


#define ROW_COLUMNS  10


static char           dir[256], other[256], third[256];
static ron_signer_t  *signer;
static char           key[256];
static uint64_t       rnd = 88172645463325252u;


static void
quiet(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;
    (void) level;
    (void) line;
}


static uint64_t
below(uint64_t n)
{
    return ron_seed_below(&rnd, n);
}


static ron_store_t *
open_store(const char *where)
{
    char               url[300];
    ron_store_t       *store;
    ron_store_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    snprintf(url, sizeof(url), "sqlite:%s", where);
    conf.url = url;

    if (ron_store_open(&conf, &store) != RON_OK) {
        diag("%s", ron_store_error(NULL));
        return NULL;
    }

    return store;
}


static ron_status_t
audit_conf(const char *where, const ron_audit_conf_t *conf,
    ron_audit_report_t *report)
{
    ron_store_t   *store;
    ron_status_t   status;

    memset(report, 0, sizeof(*report));
    store = open_store(where);

    if (store == NULL) {
        return RON_EIO;
    }

    status = ron_audit(store, conf, report);
    ron_store_close(store);

    return status;
}


static ron_status_t
audit(const char *where, ron_audit_report_t *report)
{
    ron_audit_conf_t  conf;

    memset(&conf, 0, sizeof(conf));

    return audit_conf(where, &conf, report);
}


static void
sql(const char *where, const char *text)
{
    char      path[300];
    char     *error;
    sqlite3  *db;

    snprintf(path, sizeof(path), "%s/ledger.db", where);
    error = NULL;

    if (sqlite3_open(path, &db) != SQLITE_OK
        || sqlite3_exec(db, text, NULL, NULL, &error) != SQLITE_OK)
    {
        fail("%s: %s", text, error ? error : "open");
    }

    sqlite3_close(db);
}


static void
drop_triggers(const char *where)
{
    sql(where, "DROP TRIGGER journal_insert; DROP TRIGGER journal_update;"
        "DROP TRIGGER journal_delete; DROP TRIGGER tile_update;"
        "DROP TRIGGER tile_delete; DROP TRIGGER tile_insert;");
}


/* ---- damage ------------------------------------------------------------- */

static const char *const  columns[ROW_COLUMNS] = {
    "seq", "count", "epoch", "time_ms", "prev_root", "root", "checkpoint",
    "chain", "notes", "body"
};


/* Flips one bit of a column of the row `seq`; again: flips it back. */

static bool
flip(sqlite3 *db, uint64_t seq, unsigned column, uint64_t bit, bool *there)
{
    int             len, rc;
    char            text[200];
    uint8_t        *blob;
    sqlite3_int64   v;
    sqlite3_stmt   *get, *set;

    *there = false;
    snprintf(text, sizeof(text), "SELECT %s FROM journal WHERE seq = %llu",
             columns[column], (unsigned long long) seq);

    if (sqlite3_prepare_v2(db, text, -1, &get, NULL) != SQLITE_OK
        || sqlite3_step(get) != SQLITE_ROW)
    {
        return false;
    }

    snprintf(text, sizeof(text), "UPDATE journal SET %s = ? WHERE seq = %llu",
             columns[column], (unsigned long long) seq);

    if (sqlite3_prepare_v2(db, text, -1, &set, NULL) != SQLITE_OK) {
        return false;
    }

    blob = NULL;

    if (sqlite3_column_type(get, 0) == SQLITE_INTEGER) {
        v = sqlite3_column_int64(get, 0) ^ (INT64_C(1) << bit % 62);
        sqlite3_bind_int64(set, 1, v);
        *there = true;

    } else if (sqlite3_column_bytes(get, 0) > 0) {
        len = sqlite3_column_bytes(get, 0);
        blob = malloc((size_t) len);
        memcpy(blob, sqlite3_column_blob(get, 0), (size_t) len);
        bit %= (uint64_t) len * 8;
        blob[bit / 8] ^= (uint8_t) (1 << bit % 8);
        sqlite3_bind_blob(set, 1, blob, len, SQLITE_STATIC);
        *there = true;
    }

    rc = *there ? sqlite3_step(set) : SQLITE_DONE;

    sqlite3_finalize(get);
    sqlite3_finalize(set);
    free(blob);

    return rc == SQLITE_DONE;
}


/*
 * A row whose key was changed is missing where it was, unless it has come to
 * lie inside a commit before that: the walk meets it first, where the commit
 * behind that one should begin.
 */

static uint64_t
met_at(const uint64_t *seqs, uint64_t at, unsigned column, uint64_t bit)
{
    uint64_t  i, moved;

    moved = column == 0 ? seqs[at] ^ UINT64_C(1) << bit % 62 : seqs[at];

    if (moved >= seqs[at] || moved == 0) {
        return seqs[at];
    }

    for (i = at; i > 0 && seqs[i - 1] > moved; i--) { /* void */ }

    return seqs[i];
}


static void
test_bits(void)
{
    bool                 there, last;
    char                 path[300];
    sqlite3             *db;
    uint64_t             seq, bit, seqs[1000], n, done[ROW_COLUMNS] = { 0 };
    uint64_t             located[ROW_COLUMNS] = { 0 };
    uint64_t             named[ROW_COLUMNS] = { 0 };
    sqlite3_stmt        *list;
    ron_status_t         status;
    ron_audit_report_t   r;

    ledger_shell("rm -rf '%s'; cp -a '%s' '%s'", other, dir, other);
    drop_triggers(other);
    snprintf(path, sizeof(path), "%s/ledger.db", other);
    sqlite3_open(path, &db);
    sqlite3_prepare_v2(db, "SELECT seq FROM journal ORDER BY seq", -1, &list,
                       NULL);

    for (n = 0; n < 1000 && sqlite3_step(list) == SQLITE_ROW; n++) {
        seqs[n] = (uint64_t) sqlite3_column_int64(list, 0);
    }

    sqlite3_finalize(list);

    for (unsigned i = 0; i < 400; i++) {
        unsigned  c = i % ROW_COLUMNS;
        uint64_t  at = below(n);

        seq = seqs[at];
        last = at == n - 1;
        bit = below(100000);

        if (!flip(db, seq, c, bit, &there) || !there) {
            continue;
        }

        status = audit(other, &r);
        done[c]++;

        if (status == RON_ECORRUPT && r.bad_seq == met_at(seqs, at, c, bit)) {
            located[c]++;
        } else if (!last) {
            diag("%s of %llu, bit %llu: %s at %llu: %s", columns[c],
                 (unsigned long long) seq, (unsigned long long) bit,
                 ron_status_name(status), (unsigned long long) r.bad_seq,
                 r.why);
        }

        if (r.what != NULL && strcmp(r.what, columns[c]) == 0) {
            named[c]++;

        } else if (c >= 2 && c <= 9 && c != 8 && !last) {
            diag("%s of %llu, bit %llu is called %s: %s", columns[c],
                 (unsigned long long) seq, (unsigned long long) bit,
                 r.what ? r.what : "nothing", r.why);
        }

        if (c != 0) {
            (void) flip(db, seq, c, bit, &there);
            continue;
        }

        /* The key itself: put it back where it was. */

        snprintf(path, sizeof(path), "UPDATE journal SET seq = %llu WHERE seq"
                 " = %lld", (unsigned long long) seq,
                 (long long) ((int64_t) seq ^ (INT64_C(1) << bit % 62)));
        sqlite3_exec(db, path, NULL, NULL, NULL);
    }

    sqlite3_close(db);

    for (unsigned c = 0; c < ROW_COLUMNS; c++) {
        ok(done[c] >= (c == 8 ? 3 : 10), "%s: %llu bits flipped", columns[c],
           (unsigned long long) done[c]);
        is_u64(located[c], done[c], "%s: each located to its commit",
               columns[c]);
    }

    is_u64(named[3], done[3], "time_ms is named");
    is_u64(named[2], done[2], "epoch is named");
    is_u64(named[4], done[4], "prev_root is named");
    is_u64(named[9], done[9], "body is named");
    is_status(audit(other, &r), RON_OK, "all bits put back: good again");
}


static void
test_tiles(void)
{
    ron_audit_report_t  r;

    ledger_shell("rm -rf '%s'; cp -a '%s' '%s'", other, dir, other);
    drop_triggers(other);
    sql(other, "UPDATE tile SET hashes = CAST(zeroblob(32) || "
        "substr(hashes, 33) AS BLOB) WHERE id = (SELECT id FROM tile LIMIT 1 "
        "OFFSET 2)");

    is_status(audit(other, &r), RON_ECORRUPT, "an edited tile");
    is_str(r.what, "tile", "is called one");

    ledger_shell("rm -rf '%s'; cp -a '%s' '%s'", other, dir, other);
    drop_triggers(other);
    sql(other, "DELETE FROM tile WHERE id = (SELECT max(id) FROM tile)");
    is_status(audit(other, &r), RON_ECORRUPT, "a missing tile");
    is_str(r.what, "tile", "is called one too");
}


/* ---- cuts --------------------------------------------------------------- */

static void
cut(const char *how, const char *files, const char *what)
{
    ron_audit_report_t  r;

    ledger_shell("rm -rf '%s'; cp -a '%s' '%s'; cd '%s'; rm -f %s", other,
                 dir, other, other, files);
    drop_triggers(other);
    sql(other, how);
    is_status(audit(other, &r), RON_ECORRUPT, "cut, told by %s", what);
    is_str(r.what, what, "  which is what it says");
}


static void
test_rewritten(ron_audit_conf_t *conf)
{
    ron_buf_t               note;
    ron_audit_report_t      r;
    ron_checkpoint_note_t   cp;

    ron_buf_init(&note, 0);
    memset(&cp, 0, sizeof(cp));
    cp.origin = ron_signer_name(signer);
    cp.size = 700;
    is_status(ron_note_sign(signer, &cp, &note), RON_OK, "a checkpoint");
    conf->note = ron_buf_str(&note);

    is_status(audit_conf(dir, conf, &r), RON_ECORRUPT,
              "that this ledger never had");
    is_str(r.what, "note", "  is named");
    ok(r.bad_seq <= 700 && r.bad_last >= 700, "  with the commit");

    conf->from = 2000;
    is_status(audit_conf(dir, conf, &r), RON_ECORRUPT,
              "also when the walk begins behind it");
    is_str(r.what, "note", "  is named");
    conf->from = 0;
    ron_buf_free(&note);
}


static void
test_cuts(void)
{
    uint64_t            size;
    ron_buf_t           note;
    ron_store_t        *store;
    ron_audit_conf_t    conf;
    ron_audit_report_t  r;

    cut("DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal)",
        "none", "head");
    cut("DELETE FROM journal WHERE seq > 500", "head", "tile");
    cut("DELETE FROM journal WHERE seq > 500; DELETE FROM tile WHERE id > "
        "(SELECT max(seq + count - 1) FROM journal) << 3 | 7", "head",
        "checkpoint");
    cut("DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal)",
        "head", "history");

    /* A checkpoint that somebody kept is the witness that cannot be had. */

    ron_buf_init(&note, 0);
    store = open_store(dir);
    is_status(ron_store_head_read(store, &note), RON_OK, "a head is there");
    ron_store_close(store);

    ledger_shell("rm -rf '%s'; cp -a '%s' '%s'; cd '%s'; rm -f head "
                 "history.db*", other, dir, other, other);
    drop_triggers(other);
    sql(other, "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM "
        "journal)");
    memset(&conf, 0, sizeof(conf));
    conf.note = ron_buf_str(&note);
    conf.public_key = ron_cstr(key);
    is_status(audit_conf(other, &conf, &r), RON_ECORRUPT,
              "cut, told by a kept checkpoint");
    is_str(r.what, "note", "  which is what it says");

    is_status(audit_conf(dir, &conf, &r), RON_OK, "the original has it");
    ok(r.head_verified, "and its own head is signed by that key");

    /* One that does not fit is history that was rewritten. */

    test_rewritten(&conf);
    conf.note = ron_buf_str(&note);

    /* From the middle, notes are asked of the tiles. */

    conf.from = r.seq / 2;
    size = r.seq;
    is_status(audit_conf(dir, &conf, &r), RON_OK, "from the middle on");
    ok(r.from > 1 && r.from <= size / 2 && !r.replayed && r.seq == size,
       "that is what it did");

    ron_buf_free(&note);
}


/* ---- checkpoints of the engine ------------------------------------------ */

static void
test_checkpoint(void)
{
    ron_audit_report_t  r;

    ledger_shell("rm -rf '%s'; cp -a '%s' '%s'", other, dir, other);
    sql(other, "UPDATE checkpoint SET body = CAST(substr(body, 1, "
        "length(body) - 1) || x'5a' AS BLOB) WHERE key = (SELECT max(key) "
        "FROM checkpoint WHERE last)");

    is_status(audit(other, &r), RON_ECORRUPT, "an edited checkpoint");
    is_str(r.what, "checkpoint", "is called one");
    ok(strstr(r.why, "edited") != NULL, "and edited");
}


/*
 * Somebody who edits a checkpoint and then makes the whole chain fit: no hash
 * is wrong any more, only the state is.
 */

static void
test_forged(void)
{
    bool                complete;
    char                path[300], text[160];
    uint8_t             body[65536];
    int                 len, n;
    uint32_t            count;
    uint64_t            gen, last_seq, seq;
    ron_row_t           row;
    ron_hash_t          old, hash, chain, prev;
    sqlite3            *db;
    ron_state_t         st;
    ron_store_t        *store;
    sqlite3_stmt       *stmt;
    ron_reader_t       *reader;
    ron_status_t        status;
    ron_audit_report_t  r;

    ledger_shell("rm -rf '%s'; cp -a '%s' '%s'", other, dir, other);
    drop_triggers(other);
    store = open_store(other);
    is_status(ron_reader_open(store, &reader), RON_OK, "a reader");

    status = ron_reader_gen(reader, UINT64_MAX, &gen, &count, &complete);

    while (status == RON_OK && !complete) {
        status = ron_reader_gen(reader, gen - 1, &gen, &count, &complete);
    }

    is_status(status, RON_OK, "a complete generation");
    (void) ron_state_init(&st);
    (void) ron_ckpt_load(&st, reader, gen, count, &old, &last_seq);
    ron_state_free(&st);

    snprintf(path, sizeof(path), "%s/ledger.db", other);
    sqlite3_open(path, &db);
    snprintf(text, sizeof(text), "SELECT body FROM checkpoint WHERE key = "
             "%llu", (unsigned long long) (gen << 23));
    sqlite3_prepare_v2(db, text, -1, &stmt, NULL);
    n = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_bytes(stmt, 0) : 0;
    memcpy(body, sqlite3_column_blob(stmt, 0), (size_t) n);
    sqlite3_finalize(stmt);
    snprintf(text, sizeof(text), "UPDATE checkpoint SET body = ? WHERE key = "
             "%llu", (unsigned long long) (gen << 23));

    /* Some byte is that of an amount: the slice still loads. */

    for (len = n - 2, status = RON_EIO; len > 30 && status != RON_OK; len--) {
        body[len] ^= 1;
        sqlite3_prepare_v2(db, text, -1, &stmt, NULL);
        sqlite3_bind_blob(stmt, 1, body, n, SQLITE_STATIC);
        sqlite3_step(stmt);
        sqlite3_finalize(stmt);
        (void) ron_state_init(&st);
        status = ron_ckpt_load(&st, reader, gen, count, &hash, &last_seq);
        ron_state_free(&st);

        if (status != RON_OK) {
            body[len] ^= 1;
        }
    }

    is_status(status, RON_OK, "another checkpoint that can be loaded");

    memset(&prev, 0, sizeof(prev));
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    sqlite3_prepare_v2(db, "UPDATE journal SET checkpoint = ?, chain = ? "
                       "WHERE seq = ?", -1, &stmt, NULL);

    for (seq = 1; ron_reader_row(reader, seq, &row) == RON_OK;
         seq += row.count)
    {
        if (ron_hash_eq(&row.checkpoint, &old)) {
            row.checkpoint = hash;
        }

        ron_row_chain(&prev, &row, &chain);
        prev = chain;
        sqlite3_reset(stmt);
        sqlite3_bind_blob(stmt, 1, row.checkpoint.b, 32, SQLITE_STATIC);
        sqlite3_bind_blob(stmt, 2, chain.b, 32, SQLITE_STATIC);
        sqlite3_bind_int64(stmt, 3, (sqlite3_int64) row.seq);
        sqlite3_step(stmt);
    }

    sqlite3_finalize(stmt);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
    ron_reader_close(reader);
    ron_store_close(store);

    is_status(audit(other, &r), RON_ECORRUPT, "a forged checkpoint");
    is_str(r.what, "checkpoint", "is called one");
    ok(strstr(r.why, "another state") != NULL, "for its state: %s", r.why);
}


/*
 * And one who edits an entry and makes the chain fit: no chain tells, but the
 * root does.
 */

static void
test_rechained(void)
{
    bool                 there;
    char                 path[300];
    uint64_t             seq;
    ron_row_t            row;
    ron_hash_t           chain, prev;
    sqlite3             *db;
    ron_store_t         *store;
    sqlite3_stmt        *stmt;
    ron_reader_t        *reader;
    ron_audit_report_t   r;

    ledger_shell("rm -rf '%s'; cp -a '%s' '%s'", other, dir, other);
    drop_triggers(other);
    snprintf(path, sizeof(path), "%s/ledger.db", other);
    sqlite3_open(path, &db);
    ok(flip(db, 49, 9, 100, &there) && there, "an entry is edited");

    store = open_store(other);
    is_status(ron_reader_open(store, &reader), RON_OK, "a reader");
    memset(&prev, 0, sizeof(prev));
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    sqlite3_prepare_v2(db, "UPDATE journal SET chain = ? WHERE seq = ?", -1,
                       &stmt, NULL);

    for (seq = 1; ron_reader_row(reader, seq, &row) == RON_OK;
         seq += row.count)
    {
        ron_row_chain(&prev, &row, &chain);
        prev = chain;
        sqlite3_reset(stmt);
        sqlite3_bind_blob(stmt, 1, chain.b, 32, SQLITE_STATIC);
        sqlite3_bind_int64(stmt, 2, (sqlite3_int64) row.seq);
        sqlite3_step(stmt);
    }

    sqlite3_finalize(stmt);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
    ron_reader_close(reader);
    ron_store_close(store);

    is_status(audit(other, &r), RON_ECORRUPT, "a chain that was made to fit");
    is_str(r.what, "body", "the entries do not");
    ok(r.bad_seq == 49 && r.bad_entry >= 49
       && strstr(r.why, "made to fit") != NULL, "named: entry %llu, %s",
       (unsigned long long) r.bad_entry, r.why);
}


/* ---- while it is written ------------------------------------------------ */

typedef struct {
    ledger_t   *l;
    bool        good;
    unsigned    batches;
} writer_t;

static void
writer_main(void *arg)
{
    writer_t  *w = arg;

    w->good = true;

    for (unsigned i = 0; w->good && i < w->batches; i++) {
        w->good = ledger_grow(w->l, 1);
    }
}


static void
test_live(ledger_t *l)
{
    unsigned             audits, good, snaps, snap_good;
    uint64_t             heights;
    writer_t             w;
    ron_buf_t            why;
    ron_store_t         *store;
    ron_thread_t        *thread;
    ron_status_t         status;
    ron_audit_conf_t     conf;
    ron_audit_report_t   r;
    ron_snapshot_info_t  info;

    ron_buf_init(&why, 0);
    memset(&conf, 0, sizeof(conf));
    w = (writer_t) { l, false, 400 };
    audits = good = snaps = snap_good = 0;
    heights = 0;
    store = open_store(dir);
    ledger_shell("rm -rf '%s'", third);

    is_status(ron_thread_start(&thread, "writer", RON_THREAD_USUAL,
                               writer_main, &w),
              RON_OK, "somebody writes");

    do {
        status = ron_audit(store, &conf, &r);
        audits++;
        good += status == RON_OK;

        if (status != RON_OK) {
            diag("%s: %s", ron_status_name(status), r.why);
        }

        ron_buf_reset(&why);
        status = ron_snapshot_take(store, third, signer, NULL, NULL, &info,
                                   &why);
        snaps++;
        snap_good += status == RON_OK && info.seq >= heights;
        heights = info.seq;

        if (status != RON_OK) {
            diag("%s: %.*s", ron_status_name(status), (int) why.len,
                 (const char *) why.data);
        }

    } while (ron_thread_join(thread, 1) == RON_AGAIN);

    ok(w.good, "which went well");
    ok(audits > 2, "%u audits meanwhile", audits);
    is_u64(good, audits, "all clean");
    is_u64(snap_good, snaps, "%u snapshots into one directory, each good",
           snaps);
    is_status(audit(third, &r), RON_OK, "the last one passes an audit");
    is_u64(r.seq, info.seq, "at its height");
    ok(r.slices > 0, "with a checkpoint of the engine");

    ron_store_close(store);
    ron_buf_free(&why);
}


/* ---- snapshots ---------------------------------------------------------- */

static ron_status_t
restore(const char *public_key, ron_snapshot_info_t *info, ron_buf_t *why)
{
    ledger_shell("rm -rf '%s'", other);
    ron_buf_reset(why);

    return ron_snapshot_restore(third, ron_cstr(public_key), other, NULL,
                                NULL, info, why);
}


static void
test_snapshot(ledger_t *l)
{
    uint64_t              seq;
    ron_buf_t             why;
    ron_hash_t            root;
    ron_store_t          *store;
    ron_status_t          status;
    ledger_t              copy;
    ron_audit_report_t    r;
    ron_snapshot_info_t   info, again;

    ron_buf_init(&why, 0);
    ledger_shell("rm -rf '%s'", third);
    store = open_store(dir);

    status = ron_snapshot_take(store, third, signer, NULL, NULL, &info, &why);
    is_status(status, RON_OK, "a snapshot");
    is_status(audit(dir, &r), RON_OK, "of a good ledger");
    is_u64(info.seq, r.seq, "of its height");
    ok(ron_hash_eq(&info.root, &r.root), "and root");
    seq = info.seq;
    root = info.root;

    is_status(ron_snapshot_manifest(third, ron_cstr(key), &again, &why),
              RON_OK, "its manifest verifies");
    ok(again.seq == seq && again.meta.ledger_id == 77
       && again.commits == r.commits
       && again.meta.created_ms == ron_store_meta(store)->created_ms,
       "and says so");

    status = restore(key, &info, &why);
    is_status(status, RON_OK, "restored: %.*s", (int) why.len,
              why.len ? (const char *) why.data : "");
    is_status(audit(other, &r), RON_OK, "which is a good ledger");
    ok(r.seq == seq && ron_hash_eq(&r.root, &root), "of the same root");

    ok(ledger_open(&copy, other, signer), "an engine opens it");
    copy.n += 1000000;
    ok(ledger_grow(&copy, 5), "and goes on with it");
    ledger_close(&copy);
    is_status(audit(other, &r), RON_OK, "and it stays good");

    /* More came: only that is copied. */

    ok(ledger_grow(l, 20), "the original grows");
    is_status(ron_snapshot_take(store, third, signer, NULL, NULL, &info,
                                &why), RON_OK, "taken again");
    is_u64(info.first, seq + 1, "from where it ended");
    ok(info.seq > seq, "to a new height");

    /* A run that was interrupted: rows that no manifest speaks of. */

    seq = info.seq;
    ledger_shell("cp '%s'/manifest '%s'.manifest", third, third);
    ok(ledger_grow(l, 20), "the original grows");
    is_status(ron_snapshot_take(store, third, signer, NULL, NULL, &info,
                                &why), RON_OK, "taken again");
    ledger_shell("mv '%s'.manifest '%s'/manifest", third, third);
    is_status(restore(key, &info, &why), RON_OK, "an interrupted one");
    ok(info.damaged_file && info.seq == seq, "gives the signed height");
    is_status(audit(other, &r), RON_OK, "which is good");
    is_u64(r.seq, seq, "and no more");

    ron_store_close(store);
    ron_buf_free(&why);
}


static void
test_snapshot_refused(ledger_t *l)
{
    char                  pub[256];
    ron_buf_t             why, text;
    ron_store_t          *store;
    ron_signer_t         *stranger;
    ron_snapshot_info_t   info;

    ron_buf_init(&why, 0);
    ron_buf_init(&text, 0);
    store = open_store(dir);
    ledger_shell("rm -rf '%s'", third);
    (void) ron_snapshot_take(store, third, signer, NULL, NULL, &info, &why);

    (void) ron_signer_generate(ron_str("stranger"), &stranger);
    (void) ron_signer_public_text(stranger, &text);
    snprintf(pub, sizeof(pub), "%.*s", (int) text.len, (char *) text.data);
    ron_signer_free(stranger);

    is_status(restore(pub, &info, &why), RON_ECORRUPT, "another key");
    is_status(restore("", &info, &why), RON_EINVAL, "no key");

    ledger_shell("sed -i 's/^chain ./chain 0/; s/^time 1/time 2/' "
                 "'%s'/manifest", third);
    is_status(restore(key, &info, &why), RON_ECORRUPT, "an edited manifest");

    (void) ron_snapshot_take(store, third, signer, NULL, NULL, &info, &why);
    drop_triggers(third);
    sql(third, "UPDATE journal SET time_ms = time_ms + 1 WHERE seq = 49");
    is_status(restore(key, &info, &why), RON_ECORRUPT, "an edited time");
    sql(third, "UPDATE journal SET time_ms = time_ms - 1, notes = x'00' "
        "WHERE seq = 49");
    is_status(restore(key, &info, &why), RON_ECORRUPT, "edited notes");
    ok(strstr((const char *) why.data, "the commit at seq 49 is") != NULL,
       "which is named: %.*s", (int) why.len, (const char *) why.data);

    /* The ledger lost what the snapshot has. */

    ledger_shell("rm -rf '%s' '%s'; cp -a '%s' '%s'", other, third, dir,
                 other);
    ron_buf_reset(&why);
    (void) ron_snapshot_take(store, third, signer, NULL, NULL, &info, &why);
    ron_store_close(store);
    drop_triggers(other);
    sql(other, "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM "
        "journal)");
    store = open_store(other);
    ron_buf_reset(&why);
    is_status(ron_snapshot_take(store, third, signer, NULL, NULL, &info,
                                &why), RON_ECORRUPT, "a cut ledger");
    ok(strstr((const char *) why.data, "has been cut") != NULL, "%.*s",
       (int) why.len, (const char *) why.data);
    ron_store_close(store);

    (void) l;
    ron_buf_free(&text);
    ron_buf_free(&why);
}


/* ---- export and import -------------------------------------------------- */

static ron_status_t
take_text(void *ctx, ron_str_t text)
{
    ron_buf_put_str(ctx, text);

    return ron_buf_status(ctx);
}


/* Imports text but for the line `skip`; 0: all of it. */

static ron_status_t
import(const ron_buf_t *text, unsigned skip, ron_export_info_t *info,
    ron_buf_t *why)
{
    unsigned        n;
    ron_str_t       line;
    const uint8_t  *p, *end, *stop;
    ron_import_t   *im;
    ron_status_t    status;

    memset(info, 0, sizeof(*info));
    ledger_shell("rm -rf '%s'", other);
    ron_buf_reset(why);
    status = ron_import_open(other, &im, why);
    p = text->data;
    end = p + text->len;

    for (n = 1; status == RON_OK && p < end; n++) {
        stop = memchr(p, '\n', (size_t) (end - p));
        line = (ron_str_t) { (size_t) (stop - p), p };
        p = stop + 1;

        if (n != skip) {
            status = ron_import_line(im, line, why);
        }
    }

    if (status == RON_OK) {
        return ron_import_finish(im, NULL, NULL, info, why);
    }

    ron_import_abort(im);

    return status;
}


static void
test_export(void)
{
    char                *at;
    unsigned             lines, refused;
    ron_buf_t            text, twice, why;
    ron_store_t         *store;
    ron_status_t         status;
    ron_export_info_t    info, back;
    ron_audit_report_t   r;

    ron_buf_init(&text, 0);
    ron_buf_init(&twice, 0);
    ron_buf_init(&why, 0);

    store = open_store(dir);
    status = ron_export(store, take_text, &text, NULL, NULL, &info, &why);
    ron_store_close(store);
    is_status(status, RON_OK, "exported: %.*s", (int) why.len,
              why.len ? (const char *) why.data : "");

    status = import(&text, 0, &back, &why);
    is_status(status, RON_OK, "imported: %.*s", (int) why.len,
              why.len ? (const char *) why.data : "");
    ok(back.seq == info.seq && ron_hash_eq(&back.root, &info.root)
       && ron_hash_eq(&back.chain, &info.chain), "same root, same chain");
    is_status(audit(other, &r), RON_OK, "a good ledger");
    ok(ron_hash_eq(&r.root, &info.root), "of that root");

    store = open_store(other);
    (void) ron_export(store, take_text, &twice, NULL, NULL, &info, &why);
    ron_store_close(store);
    ok(twice.len == text.len && memcmp(twice.data, text.data, text.len) == 0,
       "exported again: the same %zu bytes", text.len);

    lines = 0;

    for (size_t i = 0; i < text.len; i++) {
        lines += text.data[i] == '\n';
    }

    refused = 0;

    for (unsigned i = 0; i < 20; i++) {
        refused += import(&text, 1 + (unsigned) below(lines), &back, &why)
                   != RON_OK;
    }

    is_u64(refused, 20, "without any one of its lines it is refused");
    ok(import(&text, lines, &back, &why) == RON_EINVAL, "the last one too");

    at = memmem(text.data, text.len, "\"amount\":\"", 10);
    at[10]++;
    is_status(import(&text, 0, &back, &why), RON_EINVAL,
              "an amount that was edited");
    ok(strstr((const char *) why.data, "does not say what") != NULL,
       "is named: %.*s", (int) why.len, (const char *) why.data);

    ron_buf_free(&text);
    ron_buf_free(&twice);
    ron_buf_free(&why);
}


/* A WAL that was taken away: what it held was promised. */

static void
test_wal(ledger_t *l)
{
    ron_audit_report_t  r;

    ledger_shell("rm -rf '%s'; cp -a '%s' '%s'; rm '%s'/ledger.db-*", other,
                 dir, other, other);
    (void) l;

    /*
     * Where the last checkpoint of the WAL ended early, the file itself is in
     * between; else it is an older, sound one, and the head tells.
     */

    is_status(audit(other, &r), RON_ECORRUPT, "a WAL that was removed");
    ok(r.what != NULL && r.why[0] != '\0', "%s: %s",
       r.what ? r.what : "nothing", r.why);
}


static int
make(int argc, char **argv)
{
    ledger_t       l;
    ron_buf_t      text;
    ron_fd_t       fd;
    uint64_t       size;
    ron_signer_t  *own;

    own = NULL;
    ron_buf_init(&text, 4096);

    if (strcmp(argv[1], "make") == 0 && argc > 4) {
        if (ron_file_open(argv[4], RON_OPEN_READ, &fd) != RON_OK
            || ron_file_size(fd, &size) != RON_OK
            || ron_file_pread(fd, ron_buf_reserve(&text, (size_t) size),
                              (size_t) size, 0) != RON_OK
            || ron_signer_parse((ron_str_t) { (size_t) size, text.data },
                                &own) != RON_OK)
        {
            fprintf(stderr, "%s: no key\n", argv[4]);
            return 1;
        }
    }

    if (!ledger_open(&l, argv[2], own)) {
        return 1;
    }

    for (unsigned long n = strtoul(argv[3], NULL, 10); n > 0; n--) {
        if (!ledger_grow(&l, 1)) {
            return 1;
        }

        if (strcmp(argv[1], "grow") == 0 && argc > 4) {
            ron_sleep_us(strtoul(argv[4], NULL, 10) * 1000);
        }
    }

    ledger_close(&l);
    ron_signer_free(own);
    ron_buf_free(&text);

    return 0;
}


int
main(int argc, char **argv)
{
    ledger_t             l;
    ron_buf_t            text, why;
    ron_store_t         *store;
    ron_status_t         status;
    ron_history_t       *history;
    ron_engine_stat_t    stat;
    ron_audit_report_t   r;

    if (argc > 3) {
        return make(argc, argv);
    }

    ron_log_set(quiet, NULL, RON_LOG_DEBUG);
    ledger_dir("audit", dir, sizeof(dir));
    ledger_dir("audit-b", other, sizeof(other));
    ledger_dir("audit-c", third, sizeof(third));

    ron_buf_init(&text, 0);
    ron_buf_init(&why, 0);
    (void) ron_signer_generate(ron_str("tests.example"), &signer);
    (void) ron_signer_public_text(signer, &text);
    snprintf(key, sizeof(key), "%.*s", (int) text.len, (char *) text.data);

    for (unsigned i = 0; i < 3; i++) {
        if (!ledger_open(&l, dir, signer) || !ledger_grow(&l, 40)) {
            fail("a ledger");
            return done_testing();
        }

        ron_engine_stat(l.en, &stat);
        ledger_close(&l);
    }

    status = audit(dir, &r);
    is_status(status, RON_OK, "a good ledger passes: %s", r.why);
    is_u64(r.seq, stat.seq, "up to its head");
    is_u64(r.entries, stat.seq, "all entries");
    is_u64(r.epoch, 3, "in the third epoch");
    ok(r.replayed && r.tiles > 5 && r.slices > 3 && r.accounts > 10,
       "replayed, with %llu tiles, %llu slices, %llu accounts",
       (unsigned long long) r.tiles, (unsigned long long) r.slices,
       (unsigned long long) r.accounts);
    is_u64(r.head_size, stat.seq, "the head is published");

    store = open_store(dir);
    is_status(ron_history_open(store, &ron_history_usual, &history, &why),
              RON_OK, "history");

    while (ron_history_step(history, 0, &why) == RON_OK) {
        /* all of it */
    }

    ron_history_close(history);
    ron_store_close(store);

    test_bits();
    test_tiles();
    test_cuts();
    test_checkpoint();
    test_forged();
    test_rechained();

    if (ledger_open(&l, dir, signer)) {
        test_live(&l);
        test_wal(&l);
        test_snapshot(&l);
        test_snapshot_refused(&l);
        test_export();
        ledger_close(&l);
    }

    ron_signer_free(signer);
    ron_buf_free(&text);
    ron_buf_free(&why);
    ledger_shell("rm -rf '%s' '%s' '%s'", dir, other, third);

    return done_testing();
}
