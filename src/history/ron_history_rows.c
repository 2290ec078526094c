
/*
 * The rows of history.db: what an entry of the journal becomes in it.
 *
 * A statement of SQLite costs more than the row that it writes, so entries go
 * in by eight.
 */

#include "ron_history_impl.h"
#include "ron_amount.h"
#include "ron_entry.h"

#include <stdlib.h>


/* Entries that go into one statement; a row of parameters for each. */
#define RON_HISTORY_ENTRIES_N  8
#define RON_HISTORY_COLUMNS    14
#define RON_HISTORY_ENTRY_1    "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define RON_HISTORY_ENTRY_4    RON_HISTORY_ENTRY_1 ", " RON_HISTORY_ENTRY_1   \
                               ", " RON_HISTORY_ENTRY_1 ", "                  \
                               RON_HISTORY_ENTRY_1


typedef enum {
    RON_HISTORY_BEGIN = 0,
    RON_HISTORY_COMMIT,
    RON_HISTORY_ROLLBACK,
    RON_HISTORY_ENTRY,
    RON_HISTORY_ENTRIES,
    RON_HISTORY_HOLD,
    RON_HISTORY_HOLD_FIND,
    RON_HISTORY_HOLD_USE,
    RON_HISTORY_ROW,
    RON_HISTORY_MARK,
    RON_HISTORY_STMT_N
} ron_history_stmt_t;


struct ron_history_rows_s {
    sqlite3              *db;
    sqlite3_stmt         *stmt[RON_HISTORY_STMT_N];
    ron_history_links_t  *links;
};


static const char  *const ron_history_sql[RON_HISTORY_STMT_N] = {
    [RON_HISTORY_BEGIN] = "BEGIN IMMEDIATE",
    [RON_HISTORY_COMMIT] = "COMMIT",
    [RON_HISTORY_ROLLBACK] = "ROLLBACK",
    [RON_HISTORY_ENTRY] = "INSERT INTO entries VALUES " RON_HISTORY_ENTRY_1,
    [RON_HISTORY_ENTRIES] = "INSERT INTO entries VALUES "
                            RON_HISTORY_ENTRY_4 ", " RON_HISTORY_ENTRY_4,
    [RON_HISTORY_HOLD] = "INSERT INTO holds VALUES (?1, ?2, ?3, ?4, ?5, ?5, "
                         "?6, NULL)",
    [RON_HISTORY_HOLD_FIND] = "SELECT remaining FROM holds WHERE seq = ?1",
    [RON_HISTORY_HOLD_USE] = "UPDATE holds SET remaining = ?2, "
                             "closed_seq = ?3 WHERE seq = ?1",
    [RON_HISTORY_ROW] = "INSERT INTO commits VALUES (?1, ?2, ?3, ?4, ?5)",
    [RON_HISTORY_MARK] = "UPDATE watermark SET seq = ?1, time_ms = ?2, "
                         "chain = ?3",
};


static ron_status_t ron_rows_entries(ron_history_rows_t *r,
    const ron_row_t *row, ron_history_stmt_t no, const ron_entry_t *e,
    size_t n);
static void ron_rows_bind_entry(sqlite3_stmt *s, int at,
    const ron_row_t *row, const ron_entry_t *e, const char *amount);
static ron_status_t ron_rows_concerns(ron_history_rows_t *r,
    const ron_entry_t *e, const char *amount);
static ron_status_t ron_rows_hold(ron_history_rows_t *r, const ron_entry_t *e,
    const char *amount);
static ron_status_t ron_rows_hold_use(ron_history_rows_t *r,
    const ron_entry_t *e);
static ron_status_t ron_rows_run(ron_history_rows_t *r,
    ron_history_stmt_t no);
static void ron_rows_bind(sqlite3_stmt *stmt, int i, ron_str_t s);


ron_status_t
ron_history_rows_create(ron_history_rows_t **rows,
    ron_history_pace_t *pace)
{
    ron_history_rows_t  *r;

    *rows = NULL;

    r = calloc(1, sizeof(ron_history_rows_t));
    if (r == NULL) {
        return RON_ENOMEM;
    }

    if (ron_history_links_create(&r->links, pace) != RON_OK) {
        free(r);
        return RON_ENOMEM;
    }

    *rows = r;

    return RON_OK;
}


ron_status_t
ron_history_rows_open(ron_history_rows_t *r, sqlite3 *db)
{
    r->db = db;

    for (unsigned i = 0; i < RON_HISTORY_STMT_N; i++) {
        if (sqlite3_prepare_v3(db, ron_history_sql[i], -1,
                               SQLITE_PREPARE_PERSISTENT, &r->stmt[i], NULL)
            != SQLITE_OK)
        {
            return ron_history_failed(db);
        }
    }

    return ron_history_links_open(r->links, db);
}


void
ron_history_rows_close(ron_history_rows_t *r)
{
    for (unsigned i = 0; i < RON_HISTORY_STMT_N; i++) {
        (void) sqlite3_finalize(r->stmt[i]);
        r->stmt[i] = NULL;
    }

    ron_history_links_close(r->links);
    r->db = NULL;
}


void
ron_history_rows_free(ron_history_rows_t *r)
{
    if (r != NULL) {
        ron_history_links_free(r->links);
        free(r);
    }
}


ron_status_t
ron_history_rows_put(ron_history_rows_t *r, const ron_row_t *row)
{
    size_t          i, n;
    ron_rd_t        rd;
    ron_str_t       bytes;
    ron_entry_t     group[RON_HISTORY_ENTRIES_N];
    ron_status_t    status;
    sqlite3_stmt   *stmt;

    status = RON_OK;

    if (sqlite3_get_autocommit(r->db)) {
        ron_history_links_begin(r->links, row->seq);
        status = ron_rows_run(r, RON_HISTORY_BEGIN);
    }

    ron_rd_init(&rd, row->body);
    n = 0;

    while (status == RON_OK && ron_body_next(&rd, &bytes) == RON_OK) {
        status = ron_entry_decode(bytes, &group[n]);

        if (status == RON_OK && ++n == RON_HISTORY_ENTRIES_N) {
            status = ron_rows_entries(r, row, RON_HISTORY_ENTRIES, group, n);
            n = 0;
        }
    }

    for (i = 0; status == RON_OK && i < n; i++) {
        status = ron_rows_entries(r, row, RON_HISTORY_ENTRY, &group[i], 1);
    }

    if (status != RON_OK) {
        return status;
    }

    stmt = r->stmt[RON_HISTORY_ROW];
    sqlite3_bind_int64(stmt, 1, (sqlite3_int64) row->seq);
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64) row->count);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64) row->time_ms);
    sqlite3_bind_int64(stmt, 4, (sqlite3_int64) row->epoch);
    sqlite3_bind_blob(stmt, 5, row->root.b, RON_HASH_LEN, SQLITE_STATIC);

    return ron_rows_run(r, RON_HISTORY_ROW);
}


ron_status_t
ron_history_rows_commit(ron_history_rows_t *r, uint64_t seq, uint64_t time_ms,
    const ron_hash_t *chain)
{
    ron_status_t   status;
    sqlite3_stmt  *mark;

    status = ron_history_links_write(r->links, seq);
    if (status != RON_OK) {
        return status;
    }

    mark = r->stmt[RON_HISTORY_MARK];
    sqlite3_bind_int64(mark, 1, (sqlite3_int64) seq);
    sqlite3_bind_int64(mark, 2, (sqlite3_int64) time_ms);
    sqlite3_bind_blob(mark, 3, chain->b, RON_HASH_LEN, SQLITE_STATIC);

    status = ron_rows_run(r, RON_HISTORY_MARK);

    return status == RON_OK ? ron_rows_run(r, RON_HISTORY_COMMIT) : status;
}


ron_status_t
ron_history_rows_merge(ron_history_rows_t *r)
{
    bool          due;
    ron_status_t  status;

    status = ron_history_links_due(r->links, &due);

    if (status != RON_OK || !due) {
        return status;
    }

    status = ron_rows_run(r, RON_HISTORY_BEGIN);

    if (status == RON_OK) {
        status = ron_history_links_merge(r->links);
    }

    return status == RON_OK ? ron_rows_run(r, RON_HISTORY_COMMIT) : status;
}


/* SQLite may have rolled back already, when the disk was full. */

void
ron_history_rows_undo(ron_history_rows_t *r)
{
    if (!sqlite3_get_autocommit(r->db)) {
        (void) ron_rows_run(r, RON_HISTORY_ROLLBACK);
    }
}


/* As many entries as statement `no` has rows. */

static ron_status_t
ron_rows_entries(ron_history_rows_t *r, const ron_row_t *row,
    ron_history_stmt_t no, const ron_entry_t *e, size_t n)
{
    char          amount[RON_HISTORY_ENTRIES_N][RON_AMOUNT_MAX];
    size_t        i;
    ron_status_t  status;

    (void) sqlite3_clear_bindings(r->stmt[no]);

    for (i = 0; i < n; i++) {
        (void) ron_amount_print(e[i].amount, amount[i]);
        ron_rows_bind_entry(r->stmt[no], (int) i * RON_HISTORY_COLUMNS,
                               row, &e[i], amount[i]);
    }

    status = ron_rows_run(r, no);

    for (i = 0; status == RON_OK && i < n; i++) {
        status = ron_rows_concerns(r, &e[i], amount[i]);
    }

    return status;
}


static void
ron_rows_bind_entry(sqlite3_stmt *s, int at, const ron_row_t *row,
    const ron_entry_t *e, const char *amount)
{
    uint32_t  f;

    f = e->fields;

    sqlite3_bind_int64(s, at + 1, (sqlite3_int64) e->seq);
    sqlite3_bind_int64(s, at + 2, (sqlite3_int64) e->time_ms);
    sqlite3_bind_text(s, at + 3, ron_kind_name(e->kind), -1, SQLITE_STATIC);
    ron_rows_bind(s, at + 4, e->account);

    if (f & RON_F_TO) {
        ron_rows_bind(s, at + 5, e->to);
    }

    ron_rows_bind(s, at + 6, e->asset);
    sqlite3_bind_text(s, at + 7, amount, -1, SQLITE_STATIC);

    if (f & RON_F_NONCE) {
        sqlite3_bind_int64(s, at + 8, (sqlite3_int64) e->nonce);
    }

    if (f & RON_F_ID) {
        ron_rows_bind(s, at + 9, e->id);
    }

    if (f & RON_F_SOURCE) {
        sqlite3_bind_int64(s, at + 10, (sqlite3_int64) e->source_ms);
    }

    if (f & RON_F_REF) {
        sqlite3_bind_int64(s, at + 11, (sqlite3_int64) e->ref);
    }

    if (f & RON_F_POSTING) {
        sqlite3_bind_int64(s, at + 12, (sqlite3_int64) e->posting_first);
    }

    if (f & RON_F_EXPIRY) {
        sqlite3_bind_int64(s, at + 13, (sqlite3_int64) e->expiry_ms);
    }

    sqlite3_bind_int64(s, at + 14, (sqlite3_int64) row->seq);
}


/* The accounts of an entry, and the hold that it makes or uses. */

static ron_status_t
ron_rows_concerns(ron_history_rows_t *r, const ron_entry_t *e,
    const char *amount)
{
    ron_status_t  status;

    status = RON_OK;

    if (e->account.len != 0) {
        status = ron_history_links_add(r->links, e->account, e->seq);
    }

    if (status == RON_OK && e->to.len != 0 && !ron_str_eq(e->to, e->account)) {
        status = ron_history_links_add(r->links, e->to, e->seq);
    }

    if (status == RON_OK && e->kind == RON_KIND_HOLD) {
        status = ron_rows_hold(r, e, amount);
    }

    if (status == RON_OK && (e->kind == RON_KIND_CAPTURE
                             || e->kind == RON_KIND_RELEASE))
    {
        status = ron_rows_hold_use(r, e);
    }

    return status;
}


static ron_status_t
ron_rows_hold(ron_history_rows_t *r, const ron_entry_t *e, const char *amount)
{
    sqlite3_stmt  *s;

    s = r->stmt[RON_HISTORY_HOLD];
    (void) sqlite3_clear_bindings(s);
    sqlite3_bind_int64(s, 1, (sqlite3_int64) e->seq);
    ron_rows_bind(s, 2, e->account);
    ron_rows_bind(s, 4, e->asset);
    sqlite3_bind_text(s, 5, amount, -1, SQLITE_STATIC);

    if (e->fields & RON_F_TO) {
        ron_rows_bind(s, 3, e->to);
    }

    if (e->fields & RON_F_EXPIRY) {
        sqlite3_bind_int64(s, 6, (sqlite3_int64) e->expiry_ms);
    }

    return ron_rows_run(r, RON_HISTORY_HOLD);
}


static ron_status_t
ron_rows_hold_use(ron_history_rows_t *r, const ron_entry_t *e)
{
    int            rc;
    char           text[RON_AMOUNT_MAX];
    ron_u128_t     left;
    ron_status_t   status;
    sqlite3_stmt  *s;

    s = r->stmt[RON_HISTORY_HOLD_FIND];
    sqlite3_bind_int64(s, 1, (sqlite3_int64) e->ref);
    rc = sqlite3_step(s);
    status = RON_OK;
    left = 0;

    if (rc == SQLITE_ROW) {
        status = ron_amount_parse(
                     ron_cstr((const char *) sqlite3_column_text(s, 0)),
                     &left);
    }

    (void) sqlite3_reset(s);

    if (rc != SQLITE_ROW) {
        return rc == SQLITE_DONE ? ron_corrupt() : ron_history_failed(r->db);
    }

    if (status != RON_OK || ron_amount_sub(left, e->amount, &left) != RON_OK) {
        return ron_corrupt();
    }

    (void) ron_amount_print(left, text);

    s = r->stmt[RON_HISTORY_HOLD_USE];
    (void) sqlite3_clear_bindings(s);
    sqlite3_bind_int64(s, 1, (sqlite3_int64) e->ref);
    sqlite3_bind_text(s, 2, text, -1, SQLITE_STATIC);

    if (left == 0) {
        sqlite3_bind_int64(s, 3, (sqlite3_int64) e->seq);
    }

    return ron_rows_run(r, RON_HISTORY_HOLD_USE);
}


static ron_status_t
ron_rows_run(ron_history_rows_t *r, ron_history_stmt_t no)
{
    int  rc;

    rc = sqlite3_step(r->stmt[no]);

    if (rc != SQLITE_DONE) {
        ron_status_t  status = ron_history_failed(r->db);

        (void) sqlite3_reset(r->stmt[no]);
        return status;
    }

    (void) sqlite3_reset(r->stmt[no]);

    return RON_OK;
}


static void
ron_rows_bind(sqlite3_stmt *stmt, int i, ron_str_t s)
{
    sqlite3_bind_text64(stmt, i, s.len ? (const char *) s.data : "", s.len,
                        SQLITE_STATIC, SQLITE_UTF8);
}
