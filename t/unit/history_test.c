
/*
 * history.db: says what the journal says, whenever it is deleted, damaged or
 * read; and tells when the journal has lost what it knows.
 */

#include "ron_test.h"
#include "lib_ledger.h"
#include "ron_api.h"
#include "ron_entry.h"
#include "ron_history_impl.h"
#include "ron_log.h"
#include "ron_port.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <sqlite3.h>
#include <unistd.h>


#define SEQS_MAX  100000

/* In which a thread stops; what slows it down is given more. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IN_TIME   1000
#else
#define IN_TIME   100
#endif


typedef struct {
    char       account[16];
    uint64_t   n;
    uint64_t   seqs[SEQS_MAX];
} seqs_t;


static seqs_t         journal_seqs, history_seqs;
static char           dir[256];
static ron_store_t   *store;


static void
quiet(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;
    (void) level;
    (void) line;
}


static uint64_t
sql_number(const char *sql)
{
    char           path[300];
    uint64_t       n;
    sqlite3       *db;
    sqlite3_stmt  *stmt;

    n = UINT64_MAX;
    snprintf(path, sizeof(path), "%s/history.db", dir);

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK
        && sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK)
    {
        if (sqlite3_step(stmt) == SQLITE_ROW) {
            n = (uint64_t) sqlite3_column_int64(stmt, 0);
        }

        sqlite3_finalize(stmt);
    }

    sqlite3_close(db);

    return n;
}


static ron_status_t
journal_row(void *ctx, const ron_row_t *row)
{
    ron_rd_t      rd;
    ron_str_t     bytes;
    ron_entry_t   e;
    seqs_t       *s = ctx;

    ron_rd_init(&rd, row->body);

    while (ron_body_next(&rd, &bytes) == RON_OK) {
        if (ron_entry_decode(bytes, &e) == RON_OK && s->n < SEQS_MAX
            && (ron_str_eq(e.account, ron_cstr(s->account))
                || ron_str_eq(e.to, ron_cstr(s->account))))
        {
            s->seqs[s->n++] = e.seq;
        }
    }

    return RON_OK;
}


static ron_status_t
history_seq(void *ctx, uint64_t seq)
{
    seqs_t  *s = ctx;

    if (s->n < SEQS_MAX) {
        s->seqs[s->n++] = seq;
    }

    return RON_OK;
}


/* What the journal says of an account. */

static void
journal_of(const char *account)
{
    uint64_t       next;
    ron_reader_t  *journal;

    memset(&journal_seqs, 0, sizeof(seqs_t));
    snprintf(journal_seqs.account, sizeof(journal_seqs.account), "%s",
             account);
    RON_ASSERT(ron_reader_open(store, &journal) == RON_OK);
    next = 1;

    while (ron_reader_rows(journal, next, 1 << 20, journal_row,
                           &journal_seqs, &next) == RON_OK)
    {
        /* all of them */
    }

    ron_reader_close(journal);
}


/* Is what history says of an account the same? */

static bool
same_account(ron_history_reader_t *reader, const char *account)
{
    bool      same;
    uint64_t  before, mark, n;

    journal_of(account);
    memset(&history_seqs, 0, sizeof(seqs_t));

    /* In pages of 7, by the cursor. */

    before = 0;

    do {
        n = history_seqs.n;

        if (ron_history_account(reader, ron_cstr(account), before, 7,
                                history_seq, &history_seqs, &mark) != RON_OK)
        {
            return false;
        }

        before = history_seqs.n ? history_seqs.seqs[history_seqs.n - 1] : 0;

    } while (history_seqs.n != n);

    same = history_seqs.n == journal_seqs.n;

    for (uint64_t i = 0; same && i < journal_seqs.n; i++) {
        same = history_seqs.seqs[i]
               == journal_seqs.seqs[journal_seqs.n - 1 - i];
    }

    if (!same) {
        diag("%s: %llu in history, %llu in the journal", account,
             (unsigned long long) history_seqs.n,
             (unsigned long long) journal_seqs.n);
    }

    return same && journal_seqs.n > 10;
}


static bool
same_accounts(void)
{
    bool                   same;
    char                   account[16];
    ron_history_reader_t  *reader;

    if (ron_history_reader_open(dir, &reader) != RON_OK) {
        return false;
    }

    same = true;

    for (unsigned i = 0; same && i < LEDGER_ACCOUNTS; i++) {
        snprintf(account, sizeof(account), "acc_%02u", i);
        same = same_account(reader, account);
    }

    ron_history_reader_close(reader);

    return same;
}


/* Steps until level; how many steps it took. */

static unsigned
catch_up(ron_history_t *h, uint32_t max_n, ron_status_t *status)
{
    unsigned   n;
    ron_buf_t  why;

    ron_buf_init(&why, 0);

    for (n = 0; (*status = ron_history_step(h, max_n, &why)) == RON_OK
                || *status == RON_AGAIN; n++)
    {
        ron_buf_reset(&why);
    }

    if (*status != RON_ENOTFOUND) {
        diag("%.*s", (int) why.len, why.len ? (const char *) why.data : "");
    }

    ron_buf_free(&why);

    return n;
}


static void
test_project(ledger_t *l)
{
    uint64_t            seq, mark;
    ron_buf_t           why;
    ron_status_t        status;
    ron_history_t      *h, *second;
    ron_engine_stat_t   stat;

    ron_buf_init(&why, 0);
    ron_engine_stat(l->en, &stat);
    seq = stat.seq;

    is_status(ron_history_peek(dir, &mark), RON_ENOTFOUND,
              "no history before it is made");
    is_status(ron_history_open(store, &ron_history_usual, &h, &why),
              RON_OK, "opened");
    is_status(ron_history_open(store, &ron_history_usual, &second, &why),
              RON_EFENCED, "a second projector is refused");

    ok(catch_up(h, 100, &status) > 20, "projected in many steps");
    is_status(status, RON_ENOTFOUND, "until level");
    is_u64(ron_history_watermark(h), seq, "watermark is the head");
    is_u64(sql_number("SELECT count(*) FROM entries"), seq,
           "as many entries as the journal");
    is_u64(sql_number("SELECT max(seq) FROM entries"), seq, "the last one");
    is_u64(sql_number("SELECT sum(count) FROM commits"), seq,
           "commits add up");
    ok(sql_number("SELECT count(*) FROM holds WHERE closed_seq IS NOT NULL")
       > 10, "holds were closed");
    is_u64(sql_number("SELECT count(*) FROM holds WHERE closed_seq IS NULL "
                      "AND amount = '1000' AND remaining = '700'"), 1,
           "one is open, what was captured taken off");
    is_u64(sql_number("SELECT count(*) FROM holds WHERE (remaining = '0') "
                      "<> (closed_seq IS NOT NULL)"), 0,
           "closed exactly when nothing is left");
    is_u64(sql_number("SELECT count(*) FROM holds h WHERE closed_seq IS NOT "
                      "NULL AND CAST(amount AS INTEGER) <> (SELECT "
                      "sum(CAST(amount AS INTEGER)) FROM entries e WHERE "
                      "e.ref = h.seq AND e.kind IN ('Capture', 'Release'))"),
           0, "captures and releases add up to their hold");
    ok(same_accounts(), "every account, page by page, as in the journal");
    journal_of("acc_01");
    is_u64(sql_number("SELECT count(*) FROM account_history "
                      "WHERE name = 'acc_01'"), journal_seqs.n,
           "and in the view for shells");
    is_u64(sql_number("SELECT first_seq FROM accounts WHERE name = 'acc_01'"),
           journal_seqs.seqs[0], "which says where it begins");

    ron_history_close(h);
    ron_buf_free(&why);
}


/* How many runs there are, which have each entry once and nothing left over. */

static uint64_t
runs(void)
{
    is_u64(sql_number("SELECT count(*) FROM account_runs r WHERE first_seq > 1 "
                      "AND NOT EXISTS (SELECT 1 FROM account_runs p WHERE "
                      "p.last_seq = r.first_seq - 1)"), 0,
           "a run begins where another ends");
    is_u64(sql_number("SELECT max(last_seq) FROM account_runs"),
           sql_number("SELECT seq FROM watermark"), "up to the watermark");
    is_u64(sql_number("SELECT count(*) FROM account_links WHERE run NOT IN "
                      "(SELECT run FROM account_runs)"), 0,
           "what was merged is gone");
    is_u64(sql_number("SELECT sum(length(links)) / 8 FROM account_links"),
           sql_number("SELECT count(*) FROM account_history"),
           "as many links as entries have accounts");

    return sql_number("SELECT count(*) FROM account_runs");
}


/* Steps of any length, one run each: there are never many. */

static void
test_runs(void)
{
    uint64_t        most;
    ron_buf_t       why;
    ron_history_t  *h;

    ron_buf_init(&why, 0);
    RON_ASSERT(ron_history_open(store, &ron_history_usual, &h, &why) == RON_OK
               && ron_history_reset(h, &why) == RON_OK);
    most = 0;

    for (unsigned i = 1; ron_history_step(h, 1 + i * i * 7 % 300, &why)
                         == RON_OK; i++)
    {
        most = ron_max(most,
                       sql_number("SELECT count(*) FROM account_runs"));
    }

    is_u64(ron_history_watermark(h), sql_number("SELECT max(seq) FROM entries"),
           "level after many steps");
    ok(most <= 63 + 31 && most > 5, "of which few runs were left: %llu",
       (unsigned long long) most);
    ok(runs() <= most, "and are");
    ok(same_accounts(), "every account is right");
    ron_history_close(h);
    ron_buf_free(&why);
}


static int
link_cmp(const void *one, const void *two)
{
    uint64_t  a, b;

    memcpy(&a, one, sizeof(a));
    memcpy(&b, two, sizeof(b));
    a = ron_history_link_swap(a);
    b = ron_history_link_swap(b);

    return a < b ? -1 : a > b;
}


/* Gives links of one account another hash, in all blocks of the only run. */

static void
rehash(const char *from, const char *to)
{
    char             path[300];
    size_t           n, size, with;
    sqlite3         *db;
    uint64_t         hash[2];
    ron_sipkey_t     key;
    sqlite3_stmt    *get, *put;
    static uint64_t  links[2 * SEQS_MAX];

    snprintf(path, sizeof(path), "%s/history.db", dir);
    RON_ASSERT(sqlite3_open(path, &db) == SQLITE_OK
               && ron_history_key(db, &key) == RON_OK
               && sqlite3_prepare_v2(db, "SELECT links FROM account_links "
                                     "ORDER BY first", -1, &get, NULL)
                  == SQLITE_OK
               && sqlite3_prepare_v2(db, "INSERT INTO account_links SELECT "
                                     "run, ?1, ?2 FROM account_runs", -1,
                                     &put, NULL) == SQLITE_OK);

    hash[0] = ron_history_link(&key, ron_cstr(from));
    hash[1] = ron_history_link(&key, ron_cstr(to));
    n = 0;

    while (sqlite3_step(get) == SQLITE_ROW) {
        size = (size_t) sqlite3_column_bytes(get, 0);
        RON_ASSERT(n + size / 8 <= ron_array_n(links));
        memcpy(&links[n], sqlite3_column_blob(get, 0), size);
        n += size / 8;
    }

    sqlite3_finalize(get);

    for (size_t i = 0; i < n; i++) {
        links[i] = ron_history_link_swap(links[i]);

        if ((links[i] & ~RON_HISTORY_LINK_SEQ) == hash[0]) {
            links[i] = hash[1] | (links[i] & RON_HISTORY_LINK_SEQ);
        }

        links[i] = ron_history_link_swap(links[i]);
    }

    qsort(links, n, sizeof(uint64_t), link_cmp);
    with = n;
    size = 0;

    for (size_t i = 0; i < n; i++) {
        if (i == 0 || links[i] != links[size - 1]) {
            links[size++] = links[i];
        }
    }

    n = size;
    ok(n < with, "an entry may name both");
    RON_ASSERT(sqlite3_exec(db, "DELETE FROM account_links", NULL, NULL, NULL)
               == SQLITE_OK);

    for (size_t i = 0; i < n; i += RON_HISTORY_BLOCK) {
        sqlite3_bind_int64(put, 1,
                           (sqlite3_int64) ron_history_link_swap(links[i]));
        sqlite3_bind_blob(put, 2, &links[i],
                          (int) ron_min(n - i, RON_HISTORY_BLOCK) * 8,
                          SQLITE_STATIC);
        RON_ASSERT(sqlite3_step(put) == SQLITE_DONE);
        sqlite3_reset(put);
    }

    sqlite3_finalize(put);
    sqlite3_close(db);
}


/* An entry whose accounts have one hash has one link. */

static void
test_link(void)
{
    char                  path[300];
    sqlite3              *db;
    _Atomic bool          abandoned;
    sqlite3_stmt         *stmt;
    ron_history_pace_t    pace;
    ron_history_links_t  *links;

    abandoned = false;
    memset(&pace, 0, sizeof(pace));
    pace.share = 100;
    pace.abandoned = &abandoned;
    snprintf(path, sizeof(path), "%s/history.db", dir);
    RON_ASSERT(ron_history_links_create(&links, &pace) == RON_OK
               && sqlite3_open(path, &db) == SQLITE_OK
               && ron_history_links_open(links, db) == RON_OK
               && sqlite3_exec(db, "BEGIN; DELETE FROM account_links", NULL,
                               NULL, NULL) == SQLITE_OK);

    ron_history_links_begin(links, 1000000);
    RON_ASSERT(ron_history_links_add(links, ron_str("a"), 1000000) == RON_OK
               && ron_history_links_add(links, ron_str("a"), 1000000)
                  == RON_OK
               && ron_history_links_add(links, ron_str("a"), 1000001)
                  == RON_OK);
    is_status(ron_history_links_write(links, 1000001), RON_OK, "links");
    RON_ASSERT(sqlite3_prepare_v2(db, "SELECT sum(length(links)) "
                                  "FROM account_links", -1, &stmt, NULL)
               == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW);
    is_u64((uint64_t) sqlite3_column_int64(stmt, 0), 16,
           "an entry that names two of one hash has one");

    sqlite3_finalize(stmt);
    ron_history_links_close(links);
    ron_history_links_free(links);
    sqlite3_close(db);
}


/* Two accounts with one hash: an answer has entries of the one, all of them. */

static void
test_one_hash(void)
{
    bool            same;
    uint64_t        before, mark, n;
    ron_buf_t       why, out;
    const char     *at;
    ron_reader_t   *reader;
    ron_status_t    status;
    ron_history_t  *h;

    ron_buf_init(&why, 0);
    ron_buf_init(&out, 0);
    RON_ASSERT(ron_history_open(store, &ron_history_usual, &h, &why) == RON_OK
               && ron_history_reset(h, &why) == RON_OK
               && ron_reader_open(store, &reader) == RON_OK);
    (void) catch_up(h, 0, &status);
    is_u64(runs(), 1, "one step, one run");
    rehash("acc_02", "acc_01");
    journal_of("acc_01");
    before = 0;
    n = journal_seqs.n;
    same = true;

    do {
        ron_buf_reset(&out);
        status = ron_api_account_entries(store, reader, ron_str("acc_01"),
                                         before, 7, &out, &mark);
        ron_buf_put_u8(&out, '\0');
        at = (const char *) out.data;

        for (unsigned i = 0; i < ron_min(7, n) && same; i++) {
            at = strstr(at, "\"seq\":");
            same = at != NULL
                   && strtoull(at + 6, NULL, 10) == journal_seqs.seqs[n - 1 - i];
            at += same ? 6 : 0;
        }

        same = same && status == RON_OK && strstr(at, "\"seq\":") == NULL;
        n -= ron_min(7, n);
        before = journal_seqs.seqs[n];

    } while (same && n != 0);

    ok(same && journal_seqs.n > 10, "pages of 7 have those of one name");

    ron_reader_close(reader);
    ron_history_close(h);
    ron_buf_free(&out);
    ron_buf_free(&why);
}


/* A file of another version: who reads leaves it, who writes makes it anew. */

static void
test_format(void)
{
    char                   path[600];
    uint64_t               mark, seq;
    ron_buf_t              why;
    ron_status_t           status;
    ron_history_t         *h;
    ron_history_reader_t  *r;

    ron_buf_init(&why, 0);
    (void) snprintf(path, sizeof(path), "%s/history.db", dir);
    seq = sql_number("SELECT seq FROM watermark");
    ledger_shell("sqlite3 '%s' 'ALTER TABLE meta DROP COLUMN links_key; "
                 "PRAGMA user_version = 1'", path);

    is_status(ron_history_peek(dir, &mark), RON_OK, "another format");
    is_u64(mark, seq, "has a watermark");
    RON_ASSERT(ron_history_reader_open(dir, &r) == RON_OK);
    is_status(ron_history_account(r, ron_str("acc_01"), 0, 10, history_seq,
                                  &history_seqs, &mark),
              RON_ENOTFOUND, "and no accounts");
    ok(access(path, F_OK) == 0, "who reads leaves it there");

    is_status(ron_history_open(store, &ron_history_usual, &h, &why), RON_OK,
              "who writes makes it anew");
    is_u64(ron_history_watermark(h), 0, "from the first entry");
    (void) catch_up(h, 0, &status);
    is_status(ron_history_account(r, ron_str("acc_01"), 0, 10, history_seq,
                                  &history_seqs, &mark),
              RON_OK, "and the reader sees it");
    ok(same_accounts(), "and it is right");

    ron_history_reader_close(r);
    ron_history_close(h);
    ron_buf_free(&why);
}


static void
test_interleaved(ledger_t *l)
{
    ron_buf_t           why;
    ron_status_t        status;
    ron_history_t      *h;
    ron_engine_stat_t   stat;

    ron_buf_init(&why, 0);
    is_status(ron_history_open(store, &ron_history_usual, &h, &why),
              RON_OK, "opened again");

    for (unsigned i = 0; i < 60; i++) {
        if (!ledger_grow(l, 2)) {
            fail("the ledger grows");
            return;
        }

        ron_buf_reset(&why);
        (void) ron_history_step(h, 30, &why);

        /* The file and its log go at any time, together or not. */

        if (i == 20) {
            ledger_shell("rm -f '%s'/history.db*", dir);

        } else if (i == 40) {
            ledger_shell("rm -f '%s'/history.db", dir);
        }
    }

    (void) catch_up(h, 0, &status);
    ron_engine_stat(l->en, &stat);

    is_status(status, RON_ENOTFOUND, "level again after two deletions");
    is_u64(ron_history_watermark(h), stat.seq, "with the head");
    is_u64(sql_number("SELECT count(*) FROM entries"), stat.seq,
           "and all entries");
    ok(same_accounts(), "which are the right ones");

    ron_history_close(h);
    ron_buf_free(&why);
}


static void
test_damaged(void)
{
    uint64_t        mark;
    ron_buf_t       why;
    ron_status_t    status;
    ron_history_t  *h;

    ron_buf_init(&why, 0);
    ledger_shell("rm -f '%s'/history.db-*; head -c 20000 /dev/urandom "
                 "> '%s'/history.db", dir, dir);

    is_status(ron_history_open(store, &ron_history_usual, &h, &why),
              RON_OK, "garbage is replaced");
    (void) catch_up(h, 0, &status);
    is_status(status, RON_ENOTFOUND, "and built again");
    mark = ron_history_watermark(h);
    ron_history_close(h);

    ledger_shell("sqlite3 '%s'/history.db 'PRAGMA journal_mode=DELETE' "
                 "> /dev/null; printf XXXXXXXXXXXXXXXX | dd of='%s'/history.db"
                 " bs=1 seek=4096 conv=notrunc 2> /dev/null", dir, dir);

    is_status(ron_history_open(store, &ron_history_usual, &h, &why),
              RON_OK, "a damaged page is no obstacle");
    (void) catch_up(h, 0, &status);
    is_u64(ron_history_watermark(h), mark, "level again");
    ok(same_accounts(), "and right");
    ron_history_close(h);
    ron_buf_free(&why);
}


/* Zeroes in the page below which all links are. */

static void
damage_links(void)
{
    uint64_t  page, size;

    page = sql_number("SELECT rootpage FROM sqlite_master"
                      " WHERE name = 'account_links'");
    size = sql_number("PRAGMA page_size");
    ledger_shell("sqlite3 '%s'/history.db 'PRAGMA wal_checkpoint(truncate)'"
                 " > /dev/null; head -c %llu /dev/zero | dd of='%s'/history.db"
                 " bs=%llu seek=%llu conv=notrunc 2> /dev/null", dir,
                 (unsigned long long) size, dir, (unsigned long long) size,
                 (unsigned long long) (page - 1));
}


/* The projector finds it with a step half written: nothing of that is left. */

static void
test_damaged_step(void)
{
    uint64_t        mark;
    ron_buf_t       why;
    ron_status_t    status;
    ron_history_t  *h;

    ron_buf_init(&why, 0);
    RON_ASSERT(ron_history_open(store, &ron_history_usual, &h, &why) == RON_OK
               && ron_history_reset(h, &why) == RON_OK
               && ron_history_step(h, 1000, &why) == RON_OK);
    mark = ron_history_watermark(h);
    ron_history_close(h);
    damage_links();

    RON_ASSERT(ron_history_open(store, &ron_history_usual, &h, &why)
               == RON_OK);
    is_u64(ron_history_watermark(h), mark, "a damaged page is not seen yet");
    is_status(ron_history_step(h, 0, &why), RON_AGAIN,
              "but by a step that writes more than a block");
    is_u64(ron_history_watermark(h), 0, "after which it is built again");
    (void) catch_up(h, 0, &status);
    is_status(status, RON_ENOTFOUND, "until level");
    (void) runs();
    ok(same_accounts(), "and right");
    ron_history_close(h);
    ron_buf_free(&why);
}


/* A page that the projector has no need of any more: readers see it. */

static void
test_damaged_leaf(void)
{
    char                   path[600];
    uint64_t               mark;
    ron_buf_t              why;
    ron_status_t           status;
    ron_history_t         *h;
    ron_history_reader_t  *r;

    damage_links();
    (void) snprintf(path, sizeof(path), "%s/history.db", dir);

    RON_ASSERT(ron_history_reader_open(dir, &r) == RON_OK);
    is_status(ron_history_account(r, ron_str("acc_01"), 0, 10, history_seq,
                                  &history_seqs, &mark),
              RON_AGAIN, "a reader that finds a damaged page says again");
    ok(access(path, F_OK) != 0, "and the file is gone");
    is_status(ron_history_account(r, ron_str("acc_01"), 0, 10, history_seq,
                                  &history_seqs, &mark),
              RON_ENOTFOUND, "there is none now");

    ron_buf_init(&why, 0);
    RON_ASSERT(ron_history_open(store, &ron_history_usual, &h, &why)
               == RON_OK);
    (void) catch_up(h, 0, &status);
    is_status(status, RON_ENOTFOUND, "it is built again");
    is_status(ron_history_account(r, ron_str("acc_01"), 0, 10, history_seq,
                                  &history_seqs, &mark),
              RON_OK, "and read again");
    ok(same_accounts(), "and right");

    ron_history_reader_close(r);
    ron_history_close(h);
    ron_buf_free(&why);
}


/* Without its schema a file is of no use to anybody, but is evidence. */

static void
test_damaged_schema(void)
{
    char                   path[600];
    uint64_t               mark;
    ron_buf_t              why;
    ron_status_t           status;
    ron_history_t         *h;
    ron_history_reader_t  *r;

    (void) snprintf(path, sizeof(path), "%s/history.db", dir);
    ledger_shell("sqlite3 '%s' 'PRAGMA wal_checkpoint(truncate)' > /dev/null;"
                 " head -c 100 /dev/zero | dd of='%s' bs=100 seek=1"
                 " conv=notrunc 2> /dev/null", path, path);

    is_status(ron_history_peek(dir, &mark), RON_EIO, "no schema: not read");
    ok(access(path, F_OK) == 0, "and who only looks leaves the file there");

    RON_ASSERT(ron_history_reader_open(dir, &r) == RON_OK);
    is_status(ron_history_account(r, ron_str("acc_01"), 0, 10, history_seq,
                                  &history_seqs, &mark),
              RON_AGAIN, "a reader that answers says again");
    ok(access(path, F_OK) != 0, "and the file is gone");

    ron_buf_init(&why, 0);
    RON_ASSERT(ron_history_open(store, &ron_history_usual, &h, &why)
               == RON_OK);
    (void) catch_up(h, 0, &status);
    is_status(ron_history_account(r, ron_str("acc_01"), 0, 10, history_seq,
                                  &history_seqs, &mark),
              RON_OK, "it is built again, and read again");
    ok(same_accounts(), "and right");

    ron_history_reader_close(r);
    ron_history_close(h);
    ron_buf_free(&why);
}


/* What a step made that came to nothing is forgotten with it. */

static void
test_full(void)
{
    ron_buf_t       why;
    ron_history_t  *h;
    ron_status_t    status;
    struct rlimit   small, before;

    ron_buf_init(&why, 0);
    ledger_shell("rm -f '%s'/history.db*", dir);
    is_status(ron_history_open(store, &ron_history_usual, &h, &why),
              RON_OK, "opened");

    (void) getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 160 * 1024;
    (void) signal(SIGXFSZ, SIG_IGN);
    (void) setrlimit(RLIMIT_FSIZE, &small);

    status = ron_history_step(h, 0, &why);

    (void) setrlimit(RLIMIT_FSIZE, &before);

    ok(status != RON_OK && status != RON_ENOTFOUND,
       "a step that cannot be written: %s", ron_status_name(status));
    is_u64(ron_history_watermark(h), 0, "did not happen");

    (void) catch_up(h, 0, &status);
    is_status(status, RON_ENOTFOUND, "goes well the next time");
    ok(same_accounts(), "and every account is right");

    ron_history_close(h);
    ron_buf_free(&why);
}


static void
test_thread(ledger_t *l)
{
    uint64_t               mark, deleted;
    ron_buf_t              why;
    ron_engine_stat_t      stat;
    ron_store_conf_t       conf;
    ron_history_stat_t     hs;
    ron_history_reader_t  *reader;
    ron_history_thread_t  *t;

    ron_buf_init(&why, 0);
    memset(&conf, 0, sizeof(conf));
    conf.url = l->url;
    deleted = 0;

    is_status(ron_history_reader_open(dir, &reader), RON_OK, "a reader");
    is_status(ron_history_thread_start(&conf, &ron_history_usual, &t, &why),
              RON_OK, "the thread starts");

    for (unsigned i = 0; i < 100; i++) {
        if (!ledger_grow(l, 3)) {
            fail("the ledger grows");
            return;
        }

        if (i % 30 == 17) {
            ledger_shell("rm -f '%s'/history.db*", dir);
            deleted++;
        }

        /* Readers get an answer or nothing, never a wrong one. */

        if (ron_history_reader_watermark(reader, &mark) == RON_OK) {
            ron_engine_stat(l->en, &stat);

            if (mark > stat.seq) {
                fail("watermark %llu is ahead of %llu",
                     (unsigned long long) mark,
                     (unsigned long long) stat.seq);
            }
        }

        ron_sleep_us(3000);
    }

    ron_engine_stat(l->en, &stat);

    for (unsigned i = 0; i < 3000; i++) {
        ron_history_thread_stat(t, &hs);

        if (hs.watermark == stat.seq && hs.status == RON_OK
            && ron_history_reader_watermark(reader, &mark) == RON_OK
            && mark == stat.seq)
        {
            break;
        }

        ron_sleep_us(10000);
    }

    is_u64(deleted, 3, "history was deleted under the thread");
    is_u64(hs.watermark, stat.seq, "the thread caught up");
    is_u64(mark, stat.seq, "a reader that was open all the time sees it");
    ok(same_accounts(), "and it is right");
    is_status(ron_history_thread_stop(t, 5000), RON_OK, "it stops");

    ron_history_reader_close(reader);
    ron_buf_free(&why);
}


/* What this program and its threads have used of processors. */

static uint64_t
cpu_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


static bool
has_bytes(const char *path)
{
    struct stat  st;

    return lstat(path, &st) == 0 && st.st_size > 0;
}


/*
 * Far behind, and stopped at any moment: it ends at once.  It runs when nobody
 * else wants to, which may be late: what counts is what it does until then.
 */

static void
test_stop(ledger_t *l)
{
    char                   wal[300];
    unsigned               late, ms;
    uint64_t               used;
    ron_buf_t              why;
    ron_engine_stat_t      stat;
    ron_store_conf_t       conf;
    ron_history_stat_t     hs;
    ron_history_thread_t  *t;

    ron_buf_init(&why, 0);
    memset(&conf, 0, sizeof(conf));
    memset(&hs, 0, sizeof(hs));
    conf.url = l->url;
    late = 0;
    ms = getenv("RON_UNDER_VALGRIND") != NULL ? 3000 : IN_TIME;
    snprintf(wal, sizeof(wal), "%s/history.db-wal", dir);

    ok(ledger_grow(l, 3000), "a longer ledger");
    ledger_shell("rm -f '%s'/history.db*", dir);

    for (unsigned i = 0; i < 12; i++) {
        is_status(ron_history_thread_start(&conf, &ron_history_usual, &t, &why),
              RON_OK, "start");
        ron_sleep_us((1000 + i * 17000) * (ms / 100));

        for (unsigned n = 0; i == 11 && n < 1000 && !has_bytes(wal); n++) {
            ron_sleep_us(10000);
        }

        used = cpu_us();
        is_status(ron_history_thread_stop(t, 20000), RON_OK, "stop");
        late += cpu_us() - used > ms * UINT64_C(1000);
    }

    is_u64(late, 0, "stopped within %u ms of work, whatever it was doing", ms);

    ok(has_bytes(wal),
       "its log is left to the next, not moved into the database");

    ron_engine_stat(l->en, &stat);
    is_status(ron_history_thread_start(&conf, &ron_history_usual, &t, &why),
              RON_OK, "once more");

    for (unsigned i = 0; i < 3000 && hs.watermark != stat.seq; i++) {
        ron_sleep_us(10000);
        ron_history_thread_stat(t, &hs);
    }

    is_u64(hs.watermark, stat.seq, "and it gets there");
    ok(same_accounts(), "and is right");
    is_status(ron_history_thread_stop(t, 5000), RON_OK, "it stops");
    ron_buf_free(&why);
}


/* Behind, with few accounts, each step is twice as long as the one before. */

static void
test_steps(ledger_t *l)
{
    uint64_t            at, last;
    ron_buf_t           why;
    ron_history_t      *h;
    ron_engine_stat_t   stat;

    ron_buf_init(&why, 0);
    ron_engine_stat(l->en, &stat);
    RON_ASSERT(ron_history_open(store, &ron_history_usual, &h, &why) == RON_OK
               && ron_history_reset(h, &why) == RON_OK);
    last = 0;

    for (unsigned n = RON_HISTORY_STEP; n <= 2 * RON_HISTORY_STEP; n *= 2) {
        is_status(ron_history_step(h, 0, &why), RON_OK, "a step");
        at = ron_history_watermark(h);
        ok(at - last >= n && at - last < n + 1000 && ron_history_more(h),
           "of %u entries, and there may be more: %llu", n,
           (unsigned long long) (at - last));
        last = at;
    }

    while (ron_history_step(h, 0, &why) == RON_OK) {
        /* void */
    }

    is_u64(ron_history_watermark(h), stat.seq, "until it is level");
    ok(!ron_history_more(h), "and knows it");
    ok(runs() < 5, "with few runs");
    ok(same_accounts(), "and is right");
    ron_history_close(h);
    ron_buf_free(&why);
}


/* Works for so long, in small pieces; `l` grows meanwhile, or is NULL. */

static void
work(ron_history_pace_t *pace, unsigned ms, ledger_t *l)
{
    uint64_t  end, us;

    us = 0;
    pace->rested = 0;

    while (us < ms * UINT64_C(1000)) {
        if (l != NULL) {
            RON_ASSERT(ledger_grow(l, 1));
        }

        ron_history_pace_begin(pace);
        end = ron_clock_mono_us() + 1000;

        while (ron_clock_mono_us() < end) {
            /* void */
        }

        us += 1000;
        ron_history_pace_rest(pace);
    }
}


/* Three times as long as it worked, while the journal grows. */

static void
test_pace(ledger_t *l)
{
    _Atomic bool        abandoned;
    ron_history_pace_t  pace;

    abandoned = false;
    memset(&pace, 0, sizeof(pace));
    RON_ASSERT(ron_history_pace_open(&pace, store, 25, &abandoned) == RON_OK);

    work(&pace, 50, NULL);
    is_u64(pace.rested, 0, "no rest while the journal is level");

    ron_sleep_us(100000);
    work(&pace, 200, l);
    ok(pace.rested > 300000, "rests while it grows: %llu ms of 200 of work",
       (unsigned long long) pace.rested / 1000);

    abandoned = true;
    work(&pace, 150, l);
    is_u64(pace.rested, 0, "not once it is to end");
    ron_history_pace_close(&pace);

    abandoned = false;
    memset(&pace, 0, sizeof(pace));
    RON_ASSERT(ron_history_pace_open(&pace, store, 100, &abandoned) == RON_OK);
    work(&pace, 150, l);
    is_u64(pace.rested, 0, "nor when all of the time is its own");
    ron_history_pace_close(&pace);
}


/* A journal that lost its end, and one that has another past. */

static void
test_cut(void)
{
    char            other[300];
    ron_buf_t       why;
    ron_store_t    *mine;
    ron_history_t  *h;

    ron_buf_init(&why, 0);
    mine = store;

    ledger_shell("sqlite3 '%s'/ledger.db \"DROP TRIGGER journal_delete; "
                 "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM "
                 "journal)\"", dir);

    is_status(ron_history_open(mine, &ron_history_usual, &h, &why),
              RON_ECORRUPT, "a journal that was cut is noticed");
    ok(why.len > 0 && strstr((const char *) why.data, "it was cut"),
       "and said");

    ledger_shell("sqlite3 '%s'/history.db 'PRAGMA user_version = 1'", dir);
    ron_buf_reset(&why);
    is_status(ron_history_open(mine, &ron_history_usual, &h, &why),
              RON_ECORRUPT, "by a history of another format too");
    is_u64(sql_number("PRAGMA user_version"), 1, "which stays, as evidence");

    ron_buf_reset(&why);
    snprintf(other, sizeof(other), "'%s'/history.db*", dir);
    ledger_shell("rm -f %s", other);
    is_status(ron_history_open(mine, &ron_history_usual, &h, &why),
              RON_OK, "without history nobody knows");
    ron_history_close(h);
    ron_buf_free(&why);
}


int
main(void)
{
    ledger_t          l;
    ron_store_conf_t  conf;

    ron_log_set(quiet, NULL, RON_LOG_DEBUG);
    ledger_dir("history", dir, sizeof(dir));

    /* The last batch captures a part of a hold, which stays open. */

    if (!ledger_open(&l, dir, NULL) || !ledger_grow(&l, 203)) {
        fail("a ledger");
        return done_testing();
    }

    ok(l.refused < 200, "most was accepted (%llu refused)",
       (unsigned long long) l.refused);

    memset(&conf, 0, sizeof(conf));
    conf.url = l.url;

    if (ron_store_open(&conf, &store) != RON_OK) {
        fail("a second handle: %s", ron_store_error(NULL));
        return done_testing();
    }

    test_project(&l);
    test_runs();
    test_link();
    test_one_hash();
    test_format();
    test_interleaved(&l);
    test_damaged();
    test_damaged_step();
    test_damaged_leaf();
    test_damaged_schema();
    test_full();
    test_thread(&l);
    test_stop(&l);
    test_pace(&l);
    test_steps(&l);
    ledger_close(&l);
    test_cut();

    ron_store_close(store);
    ledger_shell("rm -rf '%s'", dir);

    return done_testing();
}
