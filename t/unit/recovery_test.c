
/*
 * What was done to a ledger while nobody looked is noticed when it is opened:
 * either it does not matter (a checkpoint, tags: the journal has it all), or
 * the ledger stays shut and says at which seq.  And two writers: one that is
 * followed and dies, and one that was replaced and does not know.
 */

#include "lib_crash.h"
#include "lib_vfs.h"

#include "ron_codec.h"
#include "ron_digest.h"
#include "ron_log.h"
#include "ron_port.h"
#include "ron_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>


#define STEPS  120


static char  logged[4096];


static void
keep_log(void *ctx, ron_log_level_t level, const char *line)
{
    size_t  len;

    (void) ctx;
    (void) level;

    len = strlen(logged);
    snprintf(logged + len, sizeof(logged) - len, "%s; ", line);
}


/* ---- a ledger to be tampered with --------------------------------------- */


static void
prepare(crash_t *c, uint32_t steps, uint64_t checkpoint_n)
{
    crash_init(c, false);
    c->conf.checkpoint_n = checkpoint_n;

    RON_ASSERT(crash_open(c) == RON_OK && crash_play(c, 0, steps));
    crash_close(c);
    logged[0] = '\0';
}


static int
one_number(void *ctx, int n, char **values, char **names)
{
    (void) names;

    if (n > 0 && values[0] != NULL) {
        *(int64_t *) ctx = strtoll(values[0], NULL, 10);
    }

    return 0;
}


/* Whoever edits a journal drops the triggers first. */

__attribute__((format(printf, 2, 3)))
static int64_t
edit(crash_t *c, const char *fmt, ...)
{
    int          rc;
    char         path[256], *sql, *error;
    int64_t      number;
    va_list      args;
    sqlite3     *db;

    number = -1;
    error = NULL;
    snprintf(path, sizeof(path), "%s/ledger.db", c->dir);

    va_start(args, fmt);
    sql = sqlite3_vmprintf(fmt, args);
    va_end(args);

    RON_ASSERT(sqlite3_open(path, &db) == SQLITE_OK);
    (void) sqlite3_exec(db, "DROP TRIGGER IF EXISTS journal_insert;"
                        "DROP TRIGGER IF EXISTS journal_update;"
                        "DROP TRIGGER IF EXISTS journal_delete;"
                        "DROP TRIGGER IF EXISTS tile_update;"
                        "DROP TRIGGER IF EXISTS tile_delete", NULL, NULL,
                        NULL);

    rc = sqlite3_exec(db, sql, one_number, &number, &error);
    if (rc != SQLITE_OK) {
        diag("%s: %s", sql, error);
    }

    RON_ASSERT(rc == SQLITE_OK);
    sqlite3_free(sql);
    (void) sqlite3_close(db);

    return number;
}


/* One bit of a blob, somewhere in its middle. */

#define FLIP(column)                                                          \
    "UPDATE %s SET " column " = CAST(substr(" column ", 1,"                   \
    " length(" column ") / 2)"                                                \
    " || CASE hex(substr(" column ", length(" column ") / 2 + 1, 1))"         \
    " WHEN '41' THEN x'40' ELSE x'41' END"                                    \
    " || substr(" column ", length(" column ") / 2 + 2) AS BLOB) WHERE %s"


/* Opens, sends everything again, and finds the undisturbed run. */

static bool
is_whole(crash_t *c, uint32_t steps)
{
    char  wrong[512];
    bool  good;

    c->wrong[0] = '\0';
    c->acked = 0;

    if (crash_open(c) != RON_OK) {
        diag("does not open: %.*s", (int) c->why.len, (char *) c->why.data);
        crash_close(c);
        return false;
    }

    good = crash_same(c, steps, wrong, sizeof(wrong));
    if (!good) {
        diag("%s", wrong);
    }

    if (!crash_play(c, 0, steps) || c->wrong[0] != '\0') {
        diag("sent again: %s %s", ron_status_name(c->failed), c->wrong);
        good = false;
    }

    good = good && crash_same(c, steps, wrong, sizeof(wrong));
    crash_close(c);

    return good;
}


/* Opened, the ledger vouches for this row, before anything is paid. */

static bool
is_published(crash_t *c, const crash_row_t *row)
{
    bool                   good;
    ron_buf_t              note;
    ron_checkpoint_note_t  cp;

    RON_ASSERT(crash_open(c) == RON_OK && crash_start(c) == RON_OK);
    ron_engine_sign(c->en, true);
    ron_buf_init(&note, 0);
    good = ron_store_head_read(ron_engine_store(c->en), &note) == RON_OK
           && ron_note_parse(ron_buf_str(&note), &cp) == RON_OK
           && cp.size == row->seq + row->count - 1
           && ron_hash_eq(&cp.root, &row->root);
    ron_buf_free(&note);
    crash_close(c);

    return good;
}


/* It stays shut, and the reason has these two numbers in it. */

static bool
is_shut(crash_t *c, uint64_t a, uint64_t b)
{
    char          text[1024], want[32];
    bool          good;
    ron_status_t  status;

    status = crash_open(c);
    crash_close(c);

    snprintf(text, sizeof(text), "%.*s", (int) c->why.len,
             (const char *) c->why.data);
    good = (status == RON_ECORRUPT);

    snprintf(want, sizeof(want), "%llu", (unsigned long long) a);
    good = good && strstr(text, want) != NULL;

    snprintf(want, sizeof(want), "%llu", (unsigned long long) b);
    good = good && strstr(text, want) != NULL;

    if (!good) {
        diag("%s, for %llu and %llu: %s", ron_status_name(status),
             (unsigned long long) a, (unsigned long long) b, text);
    }

    return good;
}


static void
file_path(const crash_t *c, const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", c->dir, name);
}


/* False: there is no such file. */

static bool
file_found(const char *path, uint8_t *buf, size_t max, size_t *len)
{
    int      fd;
    ssize_t  n;

    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1) {
        RON_ASSERT(errno == ENOENT);
        return false;
    }

    n = read(fd, buf, max);
    RON_ASSERT(n >= 0 && (size_t) n < max);
    close(fd);
    *len = (size_t) n;

    return true;
}


static size_t
file_load(const char *path, uint8_t *buf, size_t max)
{
    size_t  len;

    RON_ASSERT(file_found(path, buf, max, &len));

    return len;
}


static void
file_save(const char *path, const uint8_t *buf, size_t len)
{
    int  fd;

    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    RON_ASSERT(fd != -1 && write(fd, buf, len) == (ssize_t) len);
    close(fd);
}


static uint8_t  copy_buf[4 << 20];


static bool
copy_between(const crash_t *from, const crash_t *to, const char *name)
{
    char    path[512];
    size_t  len;

    file_path(from, name, path);
    if (!file_found(path, copy_buf, sizeof(copy_buf), &len)) {
        return false;
    }

    file_path(to, name, path);
    file_save(path, copy_buf, len);

    return true;
}


static ron_status_t
copy_name(void *ctx, const char *name)
{
    crash_t  **both = ctx;

    /* the thread that writes tags may rename or drop a listed file */

    if (strstr(name, "-shm") == NULL) {
        (void) copy_between(both[0], both[1], name);
    }

    return RON_OK;
}


static void
copy_ledger(crash_t *from, crash_t *to)
{
    crash_t  *both[2] = { from, to };

    crash_empty(to);
    RON_ASSERT(ron_dir_each(from->dir, copy_name, both) == RON_OK);
}


/* ---- checkpoints -------------------------------------------------------- */


static void
test_checkpoints(void)
{
    crash_t            c;
    uint64_t           newest;
    ron_engine_stat_t  stat;

    prepare(&c, STEPS, 60);

    RON_ASSERT(crash_open(&c) == RON_OK);
    ron_engine_stat(c.en, &stat);
    crash_close(&c);
    newest = stat.checkpoint_gen;
    ok(newest >= 3, "a ledger with %llu checkpoints",
       (unsigned long long) newest);
    ok(stat.checkpoint_seq > 0 && strstr(logged, "vouches") == NULL,
       "of which the newest is used");

    edit(&c, FLIP("body"), "checkpoint", "key = (SELECT max(key) FROM"
         " checkpoint WHERE last = 1)");
    ok(is_whole(&c, STEPS), "an edited checkpoint makes no difference");
    ok(strstr(logged, "vouches") != NULL, "and is noticed: %.100s", logged);

    RON_ASSERT(crash_open(&c) == RON_OK);
    ron_engine_stat(c.en, &stat);
    crash_close(&c);
    ok(stat.checkpoint_gen < newest, "an older one is used");

    logged[0] = '\0';
    edit(&c, FLIP("body"), "checkpoint", "1");
    ok(is_whole(&c, STEPS), "nor do any others, edited all");
    ok(strstr(logged, "vouches") != NULL, "and they are noticed: %.100s",
       logged);

    RON_ASSERT(crash_open(&c) == RON_OK);
    ron_engine_stat(c.en, &stat);
    crash_close(&c);
    is_u64(stat.checkpoint_seq, 0, "the first entry is where it begins");

    crash_free(&c);

    prepare(&c, STEPS, 60);
    edit(&c, "UPDATE checkpoint SET seq = seq - 1");
    ok(is_whole(&c, STEPS), "nor does what they say of themselves");
    edit(&c, "DELETE FROM checkpoint WHERE no = 0");
    ok(is_whole(&c, STEPS), "nor does it matter that slices are missing");
    edit(&c, "DELETE FROM checkpoint");
    ok(is_whole(&c, STEPS), "or all of them");
    crash_free(&c);
}


/* ---- the journal is cut ------------------------------------------------- */


static void
test_cut(void)
{
    char               path[512];
    crash_t            c, copy, other;
    int64_t            end;
    const crash_row_t  *row;

    /* a process that died with commits in the WAL, which then vanishes */

    crash_init(&c, false);
    c.conf.store.wal_pages = 100000;
    RON_ASSERT(crash_open(&c) == RON_OK && crash_play(&c, 0, 40));
    crash_init(&copy, false);
    copy_ledger(&c, &copy);
    crash_close(&c);
    ok(is_whole(&copy, 40), "the files of a dead process are a ledger");

    crash_free(&c);
    crash_init(&c, false);
    c.conf.store.wal_pages = 100000;
    RON_ASSERT(crash_open(&c) == RON_OK && crash_play(&c, 0, 20));
    crash_close(&c);
    RON_ASSERT(crash_open(&c) == RON_OK && crash_start(&c) == RON_OK
               && crash_play(&c, 20, 40));
    ron_engine_sign(c.en, true);
    copy_ledger(&c, &copy);
    crash_close(&c);
    file_path(&copy, "ledger.db-wal", path);
    RON_ASSERT(unlink(path) == 0);
    row = crash_golden_row(39);
    end = edit(&copy, "SELECT seq + count - 1 FROM journal"
               " ORDER BY seq DESC LIMIT 1");
    ok(end > 0 && (uint64_t) end < row->seq, "a WAL is removed");
    ok(is_shut(&copy, (uint64_t) end, row->seq + row->count - 1),
       "which is noticed, with both seqs");

    /* rows deleted at the end, in the middle */

    copy_ledger(&c, &copy);
    edit(&copy, "DELETE FROM journal WHERE seq > %llu",
         (unsigned long long) crash_golden_row(30)->seq);
    ok(is_shut(&copy, crash_golden_row(31)->seq - 1, row->seq + row->count
               - 1), "rows deleted at the end: both seqs");

    copy_ledger(&c, &copy);
    copy.conf.checkpoint_n = 60;
    edit(&copy, "DELETE FROM journal WHERE seq = %llu",
         (unsigned long long) crash_golden_row(38)->seq);
    ok(is_shut(&copy, crash_golden_row(38)->seq, crash_golden_row(38)->seq),
       "a row deleted in the tail: its seq");

    /* a head of later, and of another ledger */

    crash_init(&other, false);
    RON_ASSERT(crash_open(&other) == RON_OK && crash_play(&other, 0, 45));
    crash_close(&other);
    copy_ledger(&c, &copy);
    RON_ASSERT(copy_between(&other, &copy, "head"));
    ok(is_shut(&copy, row->seq + row->count - 1, crash_golden_row(45)->seq
               - 1), "a head that is ahead of the journal: both seqs");

    file_path(&copy, "head", path);
    memset(copy_buf, 0x41, 4096);
    file_save(path, copy_buf, 4096);
    ok(is_published(&copy, row), "a torn head is written again");
    file_save(path, copy_buf, 4096);
    ok(is_whole(&copy, 40), "a torn head is none");
    RON_ASSERT(unlink(path) == 0);
    ok(is_published(&copy, row), "and one that is gone");

    crash_free(&other);
    crash_free(&copy);
    crash_free(&c);
}


/* ---- one bit ------------------------------------------------------------ */


static void
test_bits(void)
{
    crash_t   c, copy;
    uint64_t  seq;
    char      where[64];

    static const struct {
        const char  *name;
        const char  *sql;
    } columns[] = {
        { "seq",        "UPDATE %s SET seq = seq + 1 WHERE %s" },
        { "count",      "UPDATE %s SET count = count + 1 WHERE %s" },
        { "epoch",      "UPDATE %s SET epoch = epoch + 1 WHERE %s" },
        { "time_ms",    "UPDATE %s SET time_ms = time_ms + 1 WHERE %s" },
        { "prev_root",  FLIP("prev_root") },
        { "root",       FLIP("root") },
        { "checkpoint", "UPDATE %s SET checkpoint = randomblob(32) WHERE %s" },
        { "chain",      FLIP("chain") },
        { "notes",      FLIP("notes") },
        { "body",       FLIP("body") },
    };

    prepare(&c, 64, 100000);
    crash_init(&copy, false);
    seq = crash_golden_row(56)->seq;
    snprintf(where, sizeof(where), "seq = %llu", (unsigned long long) seq);

    for (size_t i = 0; i < ron_array_n(columns); i++) {
        copy_ledger(&c, &copy);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        edit(&copy, columns[i].sql, "journal", where);
#pragma GCC diagnostic pop

        ok(is_shut(&copy, seq, seq), "an edited %s: its seq",
           columns[i].name);
    }

    copy_ledger(&c, &copy);
    edit(&copy, FLIP("hashes"), "tile", "1");
    ok(is_shut(&copy, crash_golden_row(64)->seq - 1,
               crash_golden_row(64)->seq - 1),
       "an edited tile: the seq of the head");

    copy_ledger(&c, &copy);
    edit(&copy, "DELETE FROM tile");
    ok(crash_open(&copy) != RON_OK, "a missing tile: %.*s",
       (int) copy.why.len, (char *) copy.why.data);
    crash_close(&copy);

    ok(is_whole(&c, 64), "unedited, it opens");

    crash_free(&copy);
    crash_free(&c);
}


/* ---- a forger ----------------------------------------------------------- */


static void
row_blob(sqlite3_stmt *stmt, int i, ron_hash_t *hash)
{
    memset(hash, 0, sizeof(ron_hash_t));

    if (sqlite3_column_bytes(stmt, i) == RON_HASH_LEN) {
        memcpy(hash->b, sqlite3_column_blob(stmt, i), RON_HASH_LEN);
    }
}


/* Changes the last row, and makes its chain right again. */

static void
forge(crash_t *c, const char *set)
{
    char           path[256];
    sqlite3       *db;
    ron_row_t      row;
    ron_hash_t     before, chain;
    sqlite3_stmt  *stmt;

    edit(c, "UPDATE journal SET %s WHERE seq = (SELECT max(seq) FROM journal)",
         set);

    snprintf(path, sizeof(path), "%s/ledger.db", c->dir);
    RON_ASSERT(sqlite3_open(path, &db) == SQLITE_OK);
    RON_ASSERT(sqlite3_prepare_v2(db, "SELECT seq, count, epoch, time_ms,"
                                  " prev_root, root, checkpoint, body, notes,"
                                  " (SELECT chain FROM journal ORDER BY seq"
                                  " DESC LIMIT 1 OFFSET 1) FROM journal"
                                  " ORDER BY seq DESC LIMIT 1", -1, &stmt,
                                  NULL) == SQLITE_OK);
    RON_ASSERT(sqlite3_step(stmt) == SQLITE_ROW);

    memset(&row, 0, sizeof(row));
    row.seq = (uint64_t) sqlite3_column_int64(stmt, 0);
    row.count = (uint64_t) sqlite3_column_int64(stmt, 1);
    row.epoch = (uint64_t) sqlite3_column_int64(stmt, 2);
    row.time_ms = (uint64_t) sqlite3_column_int64(stmt, 3);
    row_blob(stmt, 4, &row.prev_root);
    row_blob(stmt, 5, &row.root);
    row_blob(stmt, 6, &row.checkpoint);
    row.body.data = sqlite3_column_blob(stmt, 7);
    row.body.len = (size_t) sqlite3_column_bytes(stmt, 7);
    row.notes.data = sqlite3_column_blob(stmt, 8);
    row.notes.len = (size_t) sqlite3_column_bytes(stmt, 8);
    row_blob(stmt, 9, &before);
    ron_row_chain(&before, &row, &chain);

    (void) sqlite3_finalize(stmt);
    RON_ASSERT(sqlite3_prepare_v2(db, "UPDATE journal SET chain = ?1 WHERE seq"
                                  " = (SELECT max(seq) FROM journal)", -1,
                                  &stmt, NULL) == SQLITE_OK);
    (void) sqlite3_bind_blob(stmt, 1, chain.b, RON_HASH_LEN, SQLITE_STATIC);
    RON_ASSERT(sqlite3_step(stmt) == SQLITE_DONE);
    (void) sqlite3_finalize(stmt);
    (void) sqlite3_close(db);
}


/*
 * The chain has no key, so whoever changes the last row can make it right.
 * What does not follow from the row before is refused all the same.
 */

static void
test_forged(void)
{
    crash_t   c, copy;
    uint64_t  seq, past;

    static const struct {
        const char  *set;
        int          past;                      /* what is named: its seq, */
    } rows[] = {                                /* its last, the one behind */
        { "epoch = 0",                  -1 },
        { "time_ms = time_ms - 100000", -1 },
        { "prev_root = root",           -1 },
        { "root = prev_root",           0 },
        { "count = count + 1",          1 },
    };

    crash_init(&c, false);
    c.conf.checkpoint_n = 100000;
    RON_ASSERT(crash_open(&c) == RON_OK && crash_play(&c, 0, 30));
    crash_close(&c);
    RON_ASSERT(crash_open(&c) == RON_OK && crash_start(&c) == RON_OK
               && crash_play(&c, 30, 40));
    crash_close(&c);
    crash_init(&copy, false);

    for (size_t i = 0; i < ron_array_n(rows); i++) {
        past = crash_golden_row(39)->seq + crash_golden_row(39)->count;
        seq = rows[i].past < 0 ? crash_golden_row(39)->seq
                               : past - 1 + (uint64_t) rows[i].past;
        copy_ledger(&c, &copy);
        forge(&copy, rows[i].set);
        ok(is_shut(&copy, seq, seq), "%s, and a chain that is right",
           rows[i].set);
    }

    copy_ledger(&c, &copy);
    forge(&copy, "count = count");
    ok(is_whole(&copy, 40), "with nothing changed it opens");

    crash_free(&copy);
    crash_free(&c);
}


/* A head of one entry more, or of another root, whole as a head is. */

static void
forge_head(const crash_t *c, bool more)
{
    char           path[512], size[24], *line, *end;
    size_t         n;
    uint32_t       len;
    ron_hash_t     sum;
    ron_blake3_t   h;

    file_path(c, "head", path);
    n = file_load(path, copy_buf, sizeof(copy_buf));
    len = (uint32_t) copy_buf[8] << 24 | (uint32_t) copy_buf[9] << 16
          | (uint32_t) copy_buf[10] << 8 | copy_buf[11];
    RON_ASSERT(n >= 28 + len);

    line = strchr((char *) copy_buf + 28, '\n') + 1;
    end = strchr(line, '\n');

    if (more) {
        snprintf(size, sizeof(size), "%llu", strtoull(line, NULL, 10) + 1);
        RON_ASSERT(strlen(size) == (size_t) (end - line));
        memcpy(line, size, strlen(size));

    } else {
        end[1] = end[1] == 'A' ? 'B' : 'A';
    }

    ron_blake3_init(&h);
    ron_blake3_update(&h, copy_buf, 12);
    ron_blake3_update(&h, copy_buf + 28, len);
    ron_blake3_final(&h, &sum);
    memcpy(copy_buf + 12, sum.b, 16);
    file_save(path, copy_buf, n);
}


static void
test_forged_head(void)
{
    crash_t   c, copy;
    uint64_t  end;

    crash_init(&c, false);
    RON_ASSERT(crash_open(&c) == RON_OK && crash_play(&c, 0, 40));
    ron_engine_sign(c.en, true);
    crash_close(&c);
    crash_init(&copy, false);
    end = crash_golden_row(39)->seq + crash_golden_row(39)->count - 1;

    copy_ledger(&c, &copy);
    forge_head(&copy, true);
    ok(is_shut(&copy, end, end + 1), "a head of one entry more: both seqs");

    copy_ledger(&c, &copy);
    forge_head(&copy, false);
    ok(is_shut(&copy, end, end), "a head of another root: its seq");

    crash_free(&copy);
    crash_free(&c);
}


/* An entry into a body, and its leaf. */

static void
forge_entry(ron_buf_t *body, const ron_entry_t *e, ron_hash_t *leaf)
{
    ron_buf_t  bytes;

    ron_buf_init(&bytes, 0);
    RON_ASSERT(ron_entry_encode(e, &bytes) == RON_OK);
    ron_body_put(body, ron_buf_str(&bytes));
    ron_digest_leaf(RON_DIGEST_BLAKE3, bytes.data, bytes.len, leaf);
    ron_buf_free(&bytes);
}


/*
 * A mint, and a credit that nobody was debited for, in a row that is right in
 * itself: chain, root and entries.
 */

static void
test_made_money(void)
{
    char         path[512], set[1024], hex[768], root[80];
    crash_t      c;
    ron_buf_t    body;
    ron_hash_t   leaf[2];
    ron_entry_t  e;

    crash_init(&c, false);
    RON_ASSERT(crash_open(&c) == RON_OK && crash_play(&c, 0, 1));
    crash_close(&c);
    file_path(&c, "head", path);
    RON_ASSERT(unlink(path) == 0);
    ron_buf_init(&body, 0);

    memset(&e, 0, sizeof(e));
    e.kind = RON_KIND_MINT;
    e.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    e.seq = 1;
    e.time_ms = crash_golden_row(0)->time_ms;
    e.ledger_id = c.conf.store.ledger_id;
    e.asset = ron_str("ron");
    e.account = ron_str("alice");
    e.amount = 500;
    forge_entry(&body, &e, &leaf[0]);

    e.kind = RON_KIND_CREDIT;
    e.fields |= RON_F_POSTING;
    e.seq = 2;
    e.posting_first = 2;
    e.posting_n = 2;
    forge_entry(&body, &e, &leaf[1]);
    ron_digest_node(RON_DIGEST_BLAKE3, &leaf[0], &leaf[1], &leaf[0]);

    RON_ASSERT(body.len * 2 < sizeof(hex));
    hex[ron_hex_encode(ron_buf_str(&body), hex)] = '\0';
    root[ron_hex_encode((ron_str_t) { RON_HASH_LEN, leaf[0].b }, root)] = '\0';
    snprintf(set, sizeof(set), "count = 2, body = x'%s', root = x'%s'", hex,
             root);
    forge(&c, set);

    ok(is_shut(&c, 2, 2)
       && memmem(c.why.data, c.why.len, "not conserved", 13) != NULL,
       "money that comes from nowhere");

    ron_buf_free(&body);
    crash_free(&c);
}


/* ---- tags --------------------------------------------------------------- */


typedef struct {
    crash_t     *c;
    const char  *part;              /* of the name */
    int          nth;               /* -1: all */
    int          n;
    char         path[512];         /* the last one found */
    bool         remove;
} pick_t;


static ron_status_t
pick_name(void *ctx, const char *name)
{
    pick_t  *p = ctx;

    if (strstr(name, p->part) == NULL) {
        return RON_OK;
    }

    if (p->nth == -1 || p->n == p->nth) {
        file_path(p->c, name, p->path);

        if (p->remove) {
            RON_ASSERT(unlink(p->path) == 0);
        }
    }

    p->n++;

    return RON_OK;
}


static int
pick(crash_t *c, const char *part, int nth, bool unlink_it, char *path)
{
    pick_t  p;

    memset(&p, 0, sizeof(p));
    p.c = c;
    p.part = part;
    p.nth = nth;
    p.remove = unlink_it;

    RON_ASSERT(ron_dir_each(c->dir, pick_name, &p) == RON_OK);

    if (path != NULL) {
        memcpy(path, p.path, sizeof(p.path));
    }

    return p.n;
}


static void
test_missing_tags(void)
{
    int       n;
    crash_t   c, copy;

    static const char *const  parts[] = {
        ".seg", "tag-", "key-", ".manifest", "tag.manifest"
    };

    prepare(&c, STEPS, 60);
    crash_init(&copy, false);

    n = pick(&c, ".seg", -1, false, NULL);
    ok(n >= 4, "a ledger with %d tag segments", n);

    for (int i = 0; i < n; i++) {
        copy_ledger(&c, &copy);
        pick(&copy, ".seg", i, true, NULL);
        ok(is_whole(&copy, STEPS), "without segment %d everything is still"
           " recognised", i);
    }

    for (size_t i = 0; i < ron_array_n(parts); i++) {
        copy_ledger(&c, &copy);
        n = pick(&copy, parts[i], -1, true, NULL);
        ok(is_whole(&copy, STEPS), "without %d files \"%s\" too", n, parts[i]);
    }

    crash_free(&copy);
    crash_free(&c);
}


/* They go between opening and taking over: what opened is not believed. */

static void
test_tags_lost_meanwhile(void)
{
    int      n;
    char     wrong[512];
    crash_t  c, copy;

    static const char *const  parts[] = { "tag-", "key-", ".manifest" };

    prepare(&c, STEPS, 60);
    crash_init(&copy, false);

    for (size_t i = 0; i < ron_array_n(parts); i++) {
        copy_ledger(&c, &copy);
        RON_ASSERT(is_whole(&copy, STEPS));

        is_status(ron_engine_open(&copy.conf, &copy.en, &copy.why), RON_OK,
                  "a ledger is opened");
        n = pick(&copy, parts[i], -1, true, NULL);
        is_status(ron_engine_acquire(copy.en, &copy.why), RON_OK,
                  "and taken over without %d files \"%s\"", n, parts[i]);
        ok(crash_play(&copy, 0, STEPS) && copy.wrong[0] == '\0'
           && crash_same(&copy, STEPS, wrong, sizeof(wrong)),
           "all is recognised: %s", copy.wrong);
        crash_close(&copy);
    }

    crash_free(&copy);
    crash_free(&c);
}


/* What a row vouches for. */

static ron_hash_t
vouched(crash_t *c, uint64_t seq)
{
    ron_row_t      row;
    ron_reader_t  *reader;

    RON_ASSERT(ron_reader_open(ron_engine_store(c->en), &reader) == RON_OK);
    RON_ASSERT(ron_reader_row(reader, seq, &row) == RON_OK);
    ron_reader_close(reader);

    return row.checkpoint;
}


/* What a successor writes vouches for the checkpoint of the one before. */

static void
test_checkpoint_inherited(void)
{
    crash_t            a, b;
    ron_hash_t         young, old, now;
    ron_engine_stat_t  stat;

    prepare(&a, 8, 60);
    crash_init(&b, false);
    memcpy(b.url, a.url, sizeof(b.url));
    b.conf.store.url = b.url;

    RON_ASSERT(crash_open(&a) == RON_OK);
    is_status(ron_engine_open(&b.conf, &b.en, &b.why), RON_OK,
              "a follower of a young ledger");
    young = vouched(&a, 1);
    ok(crash_play(&a, 8, STEPS), "%d steps later", STEPS);
    ron_engine_stat(a.en, &stat);
    old = vouched(&a, stat.seq);
    crash_close(&a);

    is_status(ron_engine_acquire(b.en, &b.why), RON_OK, "it takes over");
    ok(crash_play(&b, STEPS, STEPS + 2), "and goes on");
    ron_engine_stat(b.en, &stat);
    now = vouched(&b, stat.seq);
    crash_close(&b);

    ok(!ron_hash_eq(&old, &young) && ron_hash_eq(&old, &now),
       "with the checkpoint that the one before vouched for");

    crash_free(&b);
    crash_free(&a);
}


/* Refused because the disk is full: it is not durable, nor is what follows. */

static void
test_failed_batch(void)
{
    crash_t            c;
    uint64_t           seq;
    ron_engine_stat_t  stat;

    crash_init(&c, true);
    RON_ASSERT(crash_open(&c) == RON_OK && crash_play(&c, 0, 8));
    ron_engine_stat(c.en, &stat);
    seq = stat.seq;

    vfs_plan(VFS_FULL, VFS_WRITE, VFS_WAL, 1, false);
    ok(!crash_play(&c, 8, 12), "two batches, and the disk is full");
    is_status(c.failed, RON_EFULL, "the first is refused");
    ron_engine_stat(c.en, &stat);
    is_u64(stat.seq, seq, "what is durable ends before it");
    crash_close(&c);

    vfs_heal();
    ok(is_whole(&c, 8), "and nothing of it is there");
    vfs_reset();
    crash_free(&c);
}


/*
 * A byte of a segment is changed; found at opening, it is rebuilt, found when
 * it is looked at, the answer is that the storage failed.  What was committed
 * is never taken for new.
 */

static void
test_damaged_tags(void)
{
    int           n;
    char          path[512], wrong[512];
    size_t        len;
    crash_t       c, copy;
    bool          again;
    uint32_t      rebuilt, failed, healed, bad;
    crash_walk_t  walk;

    prepare(&c, STEPS, 60);
    crash_init(&copy, false);

    n = pick(&c, ".seg", -1, false, NULL);
    rebuilt = 0;
    failed = 0;
    healed = 0;
    bad = 0;

    for (int i = 0; i < n; i++) {
        for (size_t at = 0; at < 14; at++) {
            copy_ledger(&c, &copy);
            pick(&copy, ".seg", i, false, path);
            len = file_load(path, copy_buf, sizeof(copy_buf));
            copy_buf[at * len / 14 + at] ^= 0x10;
            file_save(path, copy_buf, len);

            copy.wrong[0] = '\0';
            copy.acked = 0;
            wrong[0] = '\0';
            again = false;

            if (crash_open(&copy) != RON_OK) {
                diag("does not open: %.*s", (int) copy.why.len,
                     (char *) copy.why.data);
                bad++;

            } else if (crash_play(&copy, 0, STEPS) && !copy.diverged) {
                rebuilt++;
                bad += !crash_same(&copy, STEPS, wrong, sizeof(wrong));

            } else {
                failed++;
                again = true;
                memset(&walk, 0, sizeof(walk));
                bad += !crash_walk(ron_engine_store(copy.en), &walk)
                       || walk.rows != STEPS || !crash_conserved(&copy);
                snprintf(wrong, sizeof(wrong), "%.400s, %u rows", walk.wrong,
                         walk.rows);
            }

            crash_close(&copy);
            bad += copy.wrong[0] != '\0';

            if (again && bad == 0) {
                healed += is_whole(&copy, STEPS);
            }

            if (bad > 0) {
                diag("segment %d, piece %zu: %s %s", i, at, wrong, copy.wrong);
            }
        }
    }

    ok(bad == 0, "damaged segments: %u times rebuilt, %u times an error, and"
       " nothing taken for new", rebuilt, failed);
    ok(rebuilt > 0 && failed > 0, "both happened");
    is_u64(healed, failed, "after an error, to open again heals it");

    crash_free(&copy);
    crash_free(&c);
}


/* ---- two writers -------------------------------------------------------- */


static void
tell(void *ctx, uint32_t acked)
{
    int  *fd = ctx;

    if (write(*fd, &acked, sizeof(acked)) != sizeof(acked)) {
        _exit(0);
    }
}


static void
test_follower(void)
{
    int                fds[2];
    char               wrong[512];
    pid_t              pid;
    crash_t            a, b;
    uint32_t           acked, got;
    uint64_t           before;
    ron_status_t       status;
    ron_engine_stat_t  stat;

    prepare(&a, 8, 200);
    RON_ASSERT(pipe(fds) == 0);
    crash_golden(20000);
    fflush(NULL);

    pid = fork();

    if (pid == 0) {
        close(fds[0]);
        a.ack = tell;
        a.ack_ctx = &fds[1];

        if (crash_open(&a) == RON_OK && crash_start(&a) == RON_OK) {
            (void) crash_play(&a, 8, 20000);
        }

        _exit(1);
    }

    close(fds[1]);
    crash_init(&b, false);
    memcpy(b.url, a.url, sizeof(b.url));
    b.conf.store.url = b.url;
    b.conf.checkpoint_n = 200;
    acked = 0;
    wrong[0] = '\0';

    while (acked < 100 && read(fds[0], &got, sizeof(got)) == sizeof(got)) {
        acked = got;
    }

    status = ron_engine_open(&b.conf, &b.en, &b.why);
    ok(status == RON_OK, "a follower opens beside a writer");
    is_status(ron_engine_acquire(b.en, &b.why), RON_AGAIN,
              "and does not get the lock");

    while (acked < 1500 && read(fds[0], &got, sizeof(got)) == sizeof(got)) {
        acked = got;

        do {
            status = ron_engine_follow(b.en, 20000, &b.why);
        } while (status == RON_OK);

        if (status != RON_ENOTFOUND && status != RON_AGAIN) {
            diag("follow: %s: %.*s", ron_status_name(status), (int) b.why.len,
                 (char *) b.why.data);
            break;
        }
    }

    ok(acked >= 1500, "it follows %u steps", acked);
    ron_engine_stat(b.en, &stat);
    before = stat.replayed;

    kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);

    while (read(fds[0], &got, sizeof(got)) == sizeof(got)) {
        acked = got;
    }

    close(fds[0]);

    is_status(ron_engine_acquire(b.en, &b.why), RON_OK,
              "the writer is killed and the follower takes over (%.*s)",
              (int) b.why.len, (char *) b.why.data);
    ron_engine_stat(b.en, &stat);
    ok(stat.replayed - before < stat.seq / 2, "which reads %llu entries of"
       " %llu", (unsigned long long) (stat.replayed - before),
       (unsigned long long) stat.seq);

    ok(crash_play(&b, 0, acked) && b.wrong[0] == '\0',
       "all %u acknowledged steps are recognised (%s)", acked, b.wrong);
    ok(crash_play(&b, acked, acked + 50) && b.wrong[0] == '\0',
       "more are committed (%s)", b.wrong);
    ok(crash_same(&b, acked + 50, wrong, sizeof(wrong)),
       "and all is as in the undisturbed run (%s)", wrong);

    crash_free(&b);
    crash_free(&a);
}


/* Loses the locks, as on a file system that forgets them. */

static int
unlock_all(const crash_t *c)
{
    int      n;
    char     link[64], path[512];
    ssize_t  len;

    n = 0;

    for (int fd = 0; fd < 256; fd++) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        len = readlink(link, path, sizeof(path) - 1);

        if (len <= 0) {
            continue;
        }

        path[len] = '\0';

        if (strcmp(path, c->dir) == 0
            || (strncmp(path, c->dir, strlen(c->dir)) == 0
                && strstr(path, "/ledger.lock") != NULL))
        {
            n += flock(fd, LOCK_UN) == 0;
        }
    }

    return n;
}


static void
stale_writer(crash_t *a, int from, int to)
{
    char          byte;
    uint32_t      answer[4];
    crash_walk_t  walk;

    memset(answer, 0, sizeof(answer));

    if (crash_open(a) != RON_OK || !crash_play(a, 0, 20)
        || unlock_all(a) != 2 || write(to, "x", 1) != 1
        || read(from, &byte, 1) != 1)
    {
        _exit(1);
    }

    answer[0] = crash_play(a, 20, 24);
    answer[1] = a->failed;
    answer[2] = a->acked;
    memset(&walk, 0, sizeof(walk));
    answer[3] = a->wrong[0] != '\0';

    _exit(write(to, answer, sizeof(answer)) != sizeof(answer));
}


static void
test_fence(uint32_t commits)
{
    int       up[2], down[2];
    char      byte, wrong[512];
    pid_t     pid;
    crash_t   a, b;
    uint32_t  answer[4];

    prepare(&a, 1, 100000);
    crash_golden(100);
    RON_ASSERT(pipe(up) == 0 && pipe(down) == 0);
    fflush(NULL);

    pid = fork();

    if (pid == 0) {
        stale_writer(&a, down[0], up[1]);
    }

    close(up[1]);
    close(down[0]);

    crash_init(&b, false);
    memcpy(b.url, a.url, sizeof(b.url));
    b.conf.store.url = b.url;

    ok(read(up[0], &byte, 1) == 1, "a writer pauses, and loses its locks");
    is_status(crash_open(&b), RON_OK, "another one takes over");
    ok(crash_play(&b, 20, 20 + commits), "and commits %u batches", commits);

    memset(answer, 0, sizeof(answer));
    ok(write(down[1], "x", 1) == 1
       && read(up[0], answer, sizeof(answer)) == sizeof(answer),
       "the first one goes on");
    is_status((ron_status_t) answer[1], RON_EFENCED, "and is refused");
    is_u64(answer[2], 20, "nothing of it is acknowledged");
    is_u64(answer[0] + answer[3], 0, "nor anything later on that handle");
    (void) waitpid(pid, NULL, 0);

    ok(crash_play(&b, 0, 30) && b.wrong[0] == '\0',
       "the second one goes on undisturbed (%s)", b.wrong);
    ok(crash_same(&b, 30, wrong, sizeof(wrong)), "as if it were alone (%s)",
       wrong);

    close(up[0]);
    close(down[1]);
    crash_free(&b);
    crash_free(&a);
}


int
main(void)
{
    ron_log_set(keep_log, NULL, RON_LOG_WARN);
    crash_golden(STEPS);

    test_checkpoints();
    test_cut();
    test_bits();
    test_forged();
    test_forged_head();
    test_made_money();
    test_missing_tags();
    test_tags_lost_meanwhile();
    test_checkpoint_inherited();
    test_failed_batch();
    test_damaged_tags();
    test_follower();
    test_fence(0);
    test_fence(2);

    return done_testing();
}
