
/*
 * See ron_bulk.h.  The schema belongs to the store, which makes the file; what
 * is known of it here are the columns of three tables and the rule for their
 * keys (ron_store_sqlite.c).
 */

#include "ron_bulk.h"
#include "ron_entry.h"
#include "ron_port.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>


#define RON_BULK_PATH_MAX  512

/* Bytes of rows in one transaction. */
#define RON_BULK_BYTES     ((size_t) 32 << 20)

/* As in the store: checkpoint keys are generation << 23 | number. */
#define RON_BULK_NO_BITS   23


struct ron_bulk_s {
    sqlite3       *db;
    sqlite3_stmt  *journal;
    sqlite3_stmt  *tile;
    sqlite3_stmt  *epoch;
    sqlite3_stmt  *slice;
    ron_status_t   tile_status;
    size_t         pending;             /* bytes in the open transaction */
    bool           open;                /* there is one */
    uint64_t       writer;              /* epoch in the table */
    ron_row_t      head;
    ron_tree_t     tree;
    ron_ledger_meta_t  meta;
};


static ron_status_t ron_bulk_load(ron_bulk_t *b, const char *dir,
    const ron_ledger_meta_t *meta, ron_buf_t *why);
static ron_status_t ron_bulk_position(ron_bulk_t *b, ron_store_t *store,
    ron_buf_t *why);
static ron_status_t ron_bulk_connect(ron_bulk_t *b, const char *dir,
    ron_buf_t *why);
static ron_status_t ron_bulk_birth(ron_bulk_t *b, uint64_t created_ms,
    ron_buf_t *why);
static ron_status_t ron_bulk_entries(ron_bulk_t *b, const ron_row_t *row,
    ron_buf_t *why);
static ron_status_t ron_bulk_tile(void *ctx, const ron_tile_t *tile);
static ron_status_t ron_bulk_insert(ron_bulk_t *b, const ron_row_t *row,
    ron_buf_t *why);
static ron_status_t ron_bulk_begin(ron_bulk_t *b, ron_buf_t *why);
static ron_status_t ron_bulk_commit(ron_bulk_t *b, ron_buf_t *why);
static ron_status_t ron_bulk_copy_gen(ron_bulk_t *b, ron_reader_t *from,
    uint64_t gen, uint32_t count, ron_buf_t *why);
static ron_status_t ron_bulk_exec(ron_bulk_t *b, const char *sql,
    ron_buf_t *why);
static ron_status_t ron_bulk_failed(ron_bulk_t *b, const char *what,
    ron_buf_t *why);
static ron_status_t ron_bulk_number(ron_bulk_t *b, const char *sql,
    uint64_t *n, ron_buf_t *why);


ron_status_t
ron_bulk_open(const char *dir, const ron_ledger_meta_t *meta,
    ron_bulk_t **bulk, ron_buf_t *why)
{
    ron_bulk_t    *b;
    ron_status_t   status;

    *bulk = NULL;

    b = calloc(1, sizeof(ron_bulk_t));
    if (b == NULL) {
        return RON_ENOMEM;
    }

    status = ron_bulk_load(b, dir, meta, why);

    if (status != RON_OK) {
        ron_bulk_abort(b);
        return status;
    }

    *bulk = b;

    return RON_OK;
}


static ron_status_t
ron_bulk_load(ron_bulk_t *b, const char *dir, const ron_ledger_meta_t *meta,
    ron_buf_t *why)
{
    char                      url[RON_BULK_PATH_MAX + 8];
    bool                      fresh;
    ron_store_t              *store;
    ron_status_t              status;
    ron_store_conf_t          conf;
    const ron_ledger_meta_t  *found;

    memset(&conf, 0, sizeof(conf));
    (void) snprintf(url, sizeof(url), "sqlite:%s", dir);
    conf.url = url;

    status = ron_store_open(&conf, &store);
    fresh = status == RON_ENOTFOUND;

    if (fresh) {
        conf.create = true;
        conf.digest = meta->digest;
        conf.ledger_id = meta->ledger_id;
        status = ron_store_open(&conf, &store);
    }

    if (status != RON_OK) {
        ron_buf_put_cstr(why, ron_store_error(NULL));
        return status;
    }

    found = ron_store_meta(store);
    b->meta = *meta;

    status = ron_bulk_position(b, store, why);

    /* One without rows may be left from a first try that was interrupted. */

    fresh = fresh || b->head.seq == 0;

    if (status == RON_OK
        && (found->ledger_id != meta->ledger_id
            || found->digest != meta->digest
            || (!fresh && found->created_ms != meta->created_ms)))
    {
        ron_buf_printf(why, "%s holds ledger %u, which is another one than "
                       "ledger %u", dir, found->ledger_id, meta->ledger_id);
        status = RON_EEXIST;
    }

    ron_store_close(store);

    if (status == RON_OK) {
        status = ron_bulk_connect(b, dir, why);
    }

    if (status == RON_OK && fresh) {
        status = ron_bulk_birth(b, meta->created_ms, why);
    }

    return status;
}


static ron_status_t
ron_bulk_position(ron_bulk_t *b, ron_store_t *store, ron_buf_t *why)
{
    ron_hash_t         root;
    ron_reader_t      *reader;
    ron_status_t       status;
    ron_tile_reader_t  tiles;

    ron_tree_init(&b->tree, b->meta.digest);
    ron_tree_root(&b->tree, &b->head.root);

    status = ron_reader_open(store, &reader);
    if (status != RON_OK) {
        ron_buf_put_cstr(why, ron_store_error(store));
        return status;
    }

    status = ron_reader_head(reader, &b->head);

    if (status == RON_OK) {
        b->head.body = ron_null_str;
        b->head.notes = ron_null_str;

        tiles = (ron_tile_reader_t) { reader, b->meta.digest };
        status = ron_tree_load(&b->tree, b->meta.digest, ron_bulk_seq(b),
                               ron_tile_from_reader, &tiles);
        ron_tree_root(&b->tree, &root);

        if (status == RON_OK && !ron_hash_eq(&root, &b->head.root)) {
            status = ron_corrupt();
        }

    } else if (status == RON_ENOTFOUND) {
        ron_tree_root(&b->tree, &b->head.root);
        status = RON_OK;
    }

    if (status != RON_OK) {
        ron_buf_printf(why, "what is in %s already is damaged: %s",
                       ron_store_dir(store), ron_status_name(status));
    }

    ron_reader_close(reader);

    return status;
}


static ron_status_t
ron_bulk_connect(ron_bulk_t *b, const char *dir, ron_buf_t *why)
{
    char          path[RON_BULK_PATH_MAX];
    ron_status_t  status;

    (void) snprintf(path, sizeof(path), "%s/ledger.db", dir);

    if (sqlite3_open_v2(path, &b->db, SQLITE_OPEN_READWRITE
                                      | SQLITE_OPEN_NOMUTEX, NULL)
        != SQLITE_OK)
    {
        return ron_bulk_failed(b, path, why);
    }

    status = ron_bulk_exec(b, "PRAGMA journal_mode = DELETE;"
                           "PRAGMA locking_mode = EXCLUSIVE;"
                           "PRAGMA synchronous = FULL;"
                           "PRAGMA secure_delete = OFF;"
                           "PRAGMA temp_store = MEMORY;"
                           "PRAGMA cache_size = -65536", why);
    if (status != RON_OK) {
        return status;
    }

    if (sqlite3_prepare_v2(b->db, "INSERT INTO journal VALUES (?1, ?2, ?3, "
                           "?4, ?5, ?6, ?7, ?8, ?9, ?10)", -1, &b->journal,
                           NULL) != SQLITE_OK
        || sqlite3_prepare_v2(b->db, "INSERT INTO tile VALUES (?1, ?2)", -1,
                              &b->tile, NULL) != SQLITE_OK
        || sqlite3_prepare_v2(b->db, "UPDATE writer SET epoch = ?1", -1,
                              &b->epoch, NULL) != SQLITE_OK
        || sqlite3_prepare_v2(b->db, "INSERT INTO checkpoint VALUES (?1, ?2, "
                              "?3, ?4)", -1, &b->slice, NULL) != SQLITE_OK)
    {
        return ron_bulk_failed(b, "ledger.db", why);
    }

    return ron_bulk_number(b, "SELECT epoch FROM writer", &b->writer, why);
}


/*
 * A copy of a ledger was born when the ledger was, not now.  The trigger that
 * guards this row is lifted for it and put back, in one transaction.
 */

static ron_status_t
ron_bulk_birth(ron_bulk_t *b, uint64_t created_ms, ron_buf_t *why)
{
    char           sql[128];
    char          *guard;
    ron_status_t   status;
    sqlite3_stmt  *stmt;

    guard = NULL;

    if (sqlite3_prepare_v2(b->db, "SELECT sql FROM sqlite_schema "
                           "WHERE type = 'trigger' AND name = 'meta_update'",
                           -1, &stmt, NULL) != SQLITE_OK)
    {
        return ron_bulk_failed(b, "meta", why);
    }

    if (sqlite3_step(stmt) == SQLITE_ROW) {
        guard = sqlite3_mprintf("%s", sqlite3_column_text(stmt, 0));
    }

    (void) sqlite3_finalize(stmt);

    if (guard == NULL) {
        return ron_bulk_failed(b, "meta", why);
    }

    (void) snprintf(sql, sizeof(sql), "BEGIN IMMEDIATE;"
                    "DROP TRIGGER meta_update;"
                    "UPDATE meta SET created_ms = %llu",
                    (unsigned long long) created_ms);

    status = ron_bulk_exec(b, sql, why);

    if (status == RON_OK) {
        status = ron_bulk_exec(b, guard, why);
    }

    if (status == RON_OK) {
        status = ron_bulk_exec(b, "COMMIT", why);
    }

    sqlite3_free(guard);

    return status;
}


const ron_row_t *
ron_bulk_head(const ron_bulk_t *b)
{
    return &b->head;
}


uint64_t
ron_bulk_seq(const ron_bulk_t *b)
{
    return b->head.seq ? b->head.seq + b->head.count - 1 : 0;
}


/* ---- rows --------------------------------------------------------------- */

ron_status_t
ron_bulk_add(ron_bulk_t *b, const ron_row_t *row, ron_buf_t *why)
{
    const char    *wrong;
    ron_hash_t     chain, root;
    ron_status_t   status;

    ron_row_chain(&b->head.chain, row, &chain);

    wrong = row->seq != ron_bulk_seq(b) + 1 ? "seq does not follow"
            : row->count == 0 ? "it has no entry"
            : row->epoch < b->head.epoch ? "its epoch falls"
            : row->time_ms < b->head.time_ms ? "its time falls"
            : !ron_hash_eq(&row->prev_root, &b->head.root)
              ? "its previous root is not that of the commit before"
            : !ron_hash_eq(&row->chain, &chain)
              ? "its chain is not that of its columns" : NULL;

    if (wrong != NULL) {
        ron_buf_printf(why, "the commit at seq %llu is not good: %s",
                       (unsigned long long) row->seq, wrong);
        return ron_corrupt();
    }

    status = ron_bulk_begin(b, why);
    if (status != RON_OK) {
        return status;
    }

    status = ron_bulk_entries(b, row, why);

    if (status == RON_OK) {
        ron_tree_root(&b->tree, &root);

        if (!ron_hash_eq(&root, &row->root)) {
            ron_buf_printf(why, "the commit at seq %llu is not good: its root "
                           "is not that of its entries",
                           (unsigned long long) row->seq);
            status = ron_corrupt();
        }
    }

    if (status == RON_OK) {
        status = ron_bulk_insert(b, row, why);
    }

    if (status != RON_OK) {
        return status;
    }

    b->head = *row;
    b->head.body = ron_null_str;
    b->head.notes = ron_null_str;
    b->pending += row->body.len + row->notes.len;

    return b->pending > RON_BULK_BYTES ? ron_bulk_commit(b, why) : RON_OK;
}


static ron_status_t
ron_bulk_entries(ron_bulk_t *b, const ron_row_t *row, ron_buf_t *why)
{
    uint64_t      n;
    ron_rd_t      rd;
    ron_str_t     bytes;
    ron_hash_t    leaf;
    ron_entry_t   e;
    ron_status_t  status;

    b->tile_status = RON_OK;
    ron_rd_init(&rd, row->body);

    for (n = 0; (status = ron_body_next(&rd, &bytes)) == RON_OK; n++) {
        status = ron_entry_decode(bytes, &e);

        if (status != RON_OK || e.seq != row->seq + n
            || e.time_ms != row->time_ms || e.ledger_id != b->meta.ledger_id)
        {
            ron_buf_printf(why, "the bytes of entry %llu are not those of an "
                           "entry of this ledger, seq and time",
                           (unsigned long long) row->seq + n);
            return ron_corrupt();
        }

        ron_digest_leaf(b->meta.digest, bytes.data, bytes.len, &leaf);
        status = ron_tree_append(&b->tree, &leaf, ron_bulk_tile, b);

        if (status != RON_OK) {
            return b->tile_status != RON_OK ? ron_bulk_failed(b, "tile", why)
                                            : status;
        }
    }

    if (status != RON_ENOTFOUND || n != row->count) {
        ron_buf_printf(why, "the commit at seq %llu says that it has %llu "
                       "entries and has %llu", (unsigned long long) row->seq,
                       (unsigned long long) row->count,
                       (unsigned long long) n);
        return ron_corrupt();
    }

    return RON_OK;
}


/* The key: (leaf << 3 | level), leaf being the one that made it complete. */

static ron_status_t
ron_bulk_tile(void *ctx, const ron_tile_t *tile)
{
    uint64_t     end;
    ron_bulk_t  *b = ctx;

    end = (tile->index + 1) << 8 * ((unsigned) tile->level + 1);

    sqlite3_bind_int64(b->tile, 1, (sqlite3_int64) (end << 3 | tile->level));
    sqlite3_bind_blob(b->tile, 2, tile->hashes, sizeof(tile->hashes),
                      SQLITE_STATIC);

    if (sqlite3_step(b->tile) != SQLITE_DONE) {
        b->tile_status = RON_EIO;
    }

    (void) sqlite3_reset(b->tile);

    return b->tile_status;
}


static ron_status_t
ron_bulk_insert(ron_bulk_t *b, const ron_row_t *row, ron_buf_t *why)
{
    int                       rc;
    sqlite3_stmt             *s;
    static const ron_hash_t   none;

    if (row->epoch > b->writer) {
        sqlite3_bind_int64(b->epoch, 1, (sqlite3_int64) row->epoch);
        rc = sqlite3_step(b->epoch);
        (void) sqlite3_reset(b->epoch);

        if (rc != SQLITE_DONE) {
            return ron_bulk_failed(b, "epoch", why);
        }

        b->writer = row->epoch;
    }

    s = b->journal;
    sqlite3_bind_int64(s, 1, (sqlite3_int64) row->seq);
    sqlite3_bind_int64(s, 2, (sqlite3_int64) row->count);
    sqlite3_bind_int64(s, 3, (sqlite3_int64) row->epoch);
    sqlite3_bind_int64(s, 4, (sqlite3_int64) row->time_ms);
    sqlite3_bind_blob(s, 5, row->prev_root.b, RON_HASH_LEN, SQLITE_STATIC);
    sqlite3_bind_blob(s, 6, row->root.b, RON_HASH_LEN, SQLITE_STATIC);
    sqlite3_bind_blob(s, 8, row->chain.b, RON_HASH_LEN, SQLITE_STATIC);
    sqlite3_bind_blob64(s, 10, row->body.data, row->body.len, SQLITE_STATIC);

    if (ron_hash_eq(&row->checkpoint, &none)) {
        sqlite3_bind_null(s, 7);

    } else {
        sqlite3_bind_blob(s, 7, row->checkpoint.b, RON_HASH_LEN,
                          SQLITE_STATIC);
    }

    if (row->notes.len == 0) {
        sqlite3_bind_null(s, 9);

    } else {
        sqlite3_bind_blob64(s, 9, row->notes.data, row->notes.len,
                            SQLITE_STATIC);
    }

    rc = sqlite3_step(s);
    (void) sqlite3_reset(s);

    return rc == SQLITE_DONE ? RON_OK : ron_bulk_failed(b, "journal", why);
}


/* ---- checkpoints of the engine ------------------------------------------ */

ron_status_t
ron_bulk_checkpoint(ron_bulk_t *b, ron_reader_t *from, ron_buf_t *why)
{
    bool          complete;
    uint32_t      count;
    uint64_t      gen, max_gen;
    ron_row_t     row;
    ron_slice_t   slice;
    ron_status_t  status;

    max_gen = UINT64_MAX;

    for ( ;; ) {
        status = ron_reader_gen(from, max_gen, &gen, &count, &complete);

        if (status != RON_OK || gen == 0) {
            return status == RON_ENOTFOUND || gen == 0 ? RON_OK : status;
        }

        max_gen = gen - 1;

        if (!complete
            || ron_reader_slice(from, gen, count - 1, &slice) != RON_OK
            || slice.seq >= ron_bulk_seq(b)
            || ron_reader_row(from, slice.seq + 1, &row) != RON_OK)
        {
            continue;
        }

        status = ron_bulk_copy_gen(b, from, gen, count, why);

        if (status != RON_ENOTFOUND) {
            return status;
        }
    }
}


/* RON_ENOTFOUND: its owner removed it meanwhile. */

static ron_status_t
ron_bulk_copy_gen(ron_bulk_t *b, ron_reader_t *from, uint64_t gen,
    uint32_t count, ron_buf_t *why)
{
    int           rc;
    ron_slice_t   slice;
    ron_status_t  status;

    status = ron_bulk_commit(b, why);

    if (status == RON_OK) {
        status = ron_bulk_begin(b, why);
    }

    if (status == RON_OK) {
        status = ron_bulk_exec(b, "DELETE FROM checkpoint", why);
    }

    for (uint32_t no = 0; status == RON_OK && no < count; no++) {
        status = ron_reader_slice(from, gen, no, &slice);

        if (status != RON_OK) {
            break;
        }

        sqlite3_bind_int64(b->slice, 1,
                           (sqlite3_int64) (gen << RON_BULK_NO_BITS | no));
        sqlite3_bind_int64(b->slice, 2, slice.last);
        sqlite3_bind_int64(b->slice, 3, (sqlite3_int64) slice.seq);
        sqlite3_bind_blob64(b->slice, 4, slice.body.data, slice.body.len,
                            SQLITE_STATIC);
        rc = sqlite3_step(b->slice);
        (void) sqlite3_reset(b->slice);

        if (rc != SQLITE_DONE) {
            status = ron_bulk_failed(b, "checkpoint", why);
        }
    }

    if (status != RON_OK) {
        (void) sqlite3_exec(b->db, "ROLLBACK", NULL, NULL, NULL);
        b->open = false;
        return status;
    }

    return ron_bulk_commit(b, why);
}


/* ---- transactions ------------------------------------------------------- */

static ron_status_t
ron_bulk_begin(ron_bulk_t *b, ron_buf_t *why)
{
    ron_status_t  status;

    if (b->open) {
        return RON_OK;
    }

    status = ron_bulk_exec(b, "BEGIN IMMEDIATE", why);
    b->open = status == RON_OK;

    return status;
}


static ron_status_t
ron_bulk_commit(ron_bulk_t *b, ron_buf_t *why)
{
    b->pending = 0;

    if (!b->open) {
        return RON_OK;
    }

    b->open = false;

    return ron_bulk_exec(b, "COMMIT", why);
}


ron_status_t
ron_bulk_finish(ron_bulk_t *b, bool serve, uint64_t *commits, ron_buf_t *why)
{
    ron_status_t  status;

    status = ron_bulk_commit(b, why);

    if (status == RON_OK && commits != NULL) {
        status = ron_bulk_number(b, "SELECT count(*) FROM journal", commits,
                                 why);
    }

    if (status == RON_OK && serve) {
        status = ron_bulk_exec(b, "PRAGMA journal_mode = WAL", why);
    }

    ron_bulk_abort(b);

    return status;
}


void
ron_bulk_abort(ron_bulk_t *b)
{
    if (b == NULL) {
        return;
    }

    if (b->open) {
        (void) sqlite3_exec(b->db, "ROLLBACK", NULL, NULL, NULL);
    }

    (void) sqlite3_finalize(b->journal);
    (void) sqlite3_finalize(b->tile);
    (void) sqlite3_finalize(b->epoch);
    (void) sqlite3_finalize(b->slice);
    (void) sqlite3_close(b->db);
    free(b);
}


static ron_status_t
ron_bulk_exec(ron_bulk_t *b, const char *sql, ron_buf_t *why)
{
    return sqlite3_exec(b->db, sql, NULL, NULL, NULL) == SQLITE_OK
           ? RON_OK : ron_bulk_failed(b, "ledger.db", why);
}


static ron_status_t
ron_bulk_number(ron_bulk_t *b, const char *sql, uint64_t *n, ron_buf_t *why)
{
    ron_status_t   status;
    sqlite3_stmt  *stmt;

    *n = 0;

    if (sqlite3_prepare_v2(b->db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        return ron_bulk_failed(b, "ledger.db", why);
    }

    if (sqlite3_step(stmt) == SQLITE_ROW) {
        *n = (uint64_t) sqlite3_column_int64(stmt, 0);
        status = RON_OK;

    } else {
        status = ron_bulk_failed(b, "ledger.db", why);
    }

    (void) sqlite3_finalize(stmt);

    return status;
}


static ron_status_t
ron_bulk_failed(ron_bulk_t *b, const char *what, ron_buf_t *why)
{
    int  rc;

    rc = b->db != NULL ? sqlite3_extended_errcode(b->db) : SQLITE_NOMEM;

    ron_buf_printf(why, "%s: %s", what,
                   b->db != NULL ? sqlite3_errmsg(b->db) : "no memory");

    switch (rc & 0xff) {

    case SQLITE_FULL:
        return RON_EFULL;

    case SQLITE_NOMEM:
        return RON_ENOMEM;

    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return RON_AGAIN;

    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ron_corrupt();

    default:
        return RON_EIO;
    }
}
