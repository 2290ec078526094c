
/*
 * The links of history.db: which entries concern an account.
 *
 * As a row each they would be all over a table, a page written for nearly
 * every one, and each name would have to be looked up.  So they are in runs: a
 * run has the links of consecutive entries, sorted by account, in blocks of a
 * page each.  A step writes one run, page after page; when there are many of a
 * size they become one, so that who reads has few to look at, and a link is
 * written three times or so, however many accounts there are.
 *
 *     account_runs    first_seq, last_seq: entries that it has links of; run
 *     account_links   run, first: its first link, links: 500 of them or fewer
 *
 * A link is 64 bits, big-endian: 39 of a SipHash of the name, 24 that say how
 * many entries after the run's first.  The key is random and the file's own,
 * but two names may have one hash: who reads asks the entry.
 */

#include "ron_history_impl.h"

#include <stdlib.h>


/* A run of this many entries is not merged again. */
#define RON_LINKS_RUN_MAX   (UINT64_C(1) << 21)

/*
 * A run shorter than 64 entries, 2^11, 2^16 or RON_LINKS_RUN_MAX waits until
 * it and those after it are as many, which are no more than this then.
 */
#define RON_LINKS_SHORT     UINT64_C(64)
#define RON_LINKS_GROWTH    5
#define RON_LINKS_RUNS_N    192

/* Passes of the sort, and bits of a hash that one looks at. */
#define RON_LINKS_PASSES    2
#define RON_LINKS_BITS      11


typedef enum {
    RON_LINKS_RUNS = 0,
    RON_LINKS_RUN_ADD,
    RON_LINKS_RUN_DROP,
    RON_LINKS_BLOCK,
    RON_LINKS_BLOCK_ADD,
    RON_LINKS_BLOCKS_DROP,
    RON_LINKS_STMT_N
} ron_links_stmt_t;


typedef struct {
    uint64_t              first;
    uint64_t              last;
    sqlite3_int64         run;
} ron_links_run_t;


/* Where the reading of a run is that is being merged. */
typedef struct {
    uint64_t             *links;        /* of a block */
    size_t                n;
    size_t                i;
    sqlite3_int64         first;        /* of the block; -1: before all */
    uint64_t              after;        /* added to all of them */
    sqlite3_int64         run;
} ron_links_cursor_t;


struct ron_history_links_s {
    sqlite3              *db;
    sqlite3_stmt         *stmt[RON_LINKS_STMT_N];
    ron_sipkey_t          key;
    ron_history_pace_t   *pace;
    uint64_t             *links;        /* of the step in hand */
    uint64_t             *spare;        /* as many, for sorting */
    size_t                n;
    size_t                cap;
    uint64_t              first;        /* of its entries */
    uint64_t              out[RON_HISTORY_BLOCK];
    size_t                out_n;
    ron_links_run_t       runs[RON_LINKS_RUNS_N];       /* newest first */
    size_t                due;          /* of them become one */
};


static const char  *const ron_links_sql[RON_LINKS_STMT_N] = {
    [RON_LINKS_RUNS] = "SELECT run, first_seq, last_seq FROM account_runs "
                       "ORDER BY first_seq DESC",
    [RON_LINKS_RUN_ADD] = "INSERT INTO account_runs VALUES (?1, ?2, ?3)",
    [RON_LINKS_RUN_DROP] = "DELETE FROM account_runs WHERE first_seq = ?1",
    [RON_LINKS_BLOCK] = "SELECT links, first FROM account_links WHERE "
                        "run = ?1 AND first > ?2 ORDER BY first LIMIT 1",
    [RON_LINKS_BLOCK_ADD] = "INSERT INTO account_links VALUES (?1, ?2, ?3)",
    [RON_LINKS_BLOCKS_DROP] = "DELETE FROM account_links WHERE run = ?1",
};


static ron_status_t ron_links_grow(ron_history_links_t *l);
static void ron_links_sort(ron_history_links_t *l);
static ron_status_t ron_links_runs(ron_history_links_t *l, size_t max_n,
    size_t *n);
static ron_status_t ron_links_run_add(ron_history_links_t *l, uint64_t first,
    uint64_t last, sqlite3_int64 run);
static ron_status_t ron_links_put(ron_history_links_t *l, sqlite3_int64 run,
    uint64_t link);
static ron_status_t ron_links_flush(ron_history_links_t *l,
    sqlite3_int64 run);
static ron_status_t ron_links_merge(ron_history_links_t *l,
    ron_links_cursor_t *cursors, sqlite3_int64 run);
static ron_status_t ron_links_next(ron_history_links_t *l,
    ron_links_cursor_t *c);
static ron_status_t ron_links_drop(ron_history_links_t *l);
static ron_status_t ron_links_run(ron_history_links_t *l,
    ron_links_stmt_t no);


ron_status_t
ron_history_links_create(ron_history_links_t **links,
    ron_history_pace_t *pace)
{
    *links = calloc(1, sizeof(ron_history_links_t));

    if (*links == NULL) {
        return RON_ENOMEM;
    }

    (*links)->pace = pace;

    return RON_OK;
}


void
ron_history_links_free(ron_history_links_t *l)
{
    if (l != NULL) {
        free(l->links);
        free(l->spare);
        free(l);
    }
}


ron_status_t
ron_history_links_open(ron_history_links_t *l, sqlite3 *db)
{
    ron_status_t  status;

    l->db = db;

    for (unsigned i = 0; i < RON_LINKS_STMT_N; i++) {
        if (sqlite3_prepare_v3(db, ron_links_sql[i], -1,
                               SQLITE_PREPARE_PERSISTENT, &l->stmt[i], NULL)
            != SQLITE_OK)
        {
            return ron_history_failed(db);
        }
    }

    status = ron_history_key(db, &l->key);

    return status == RON_ENOTFOUND ? RON_EIO : status;
}


void
ron_history_links_close(ron_history_links_t *l)
{
    for (unsigned i = 0; i < RON_LINKS_STMT_N; i++) {
        (void) sqlite3_finalize(l->stmt[i]);
        l->stmt[i] = NULL;
    }

    l->db = NULL;
    l->n = 0;
}


ron_status_t
ron_history_key(sqlite3 *db, ron_sipkey_t *key)
{
    int            rc;
    ron_status_t   status;
    sqlite3_stmt  *stmt;

    if (sqlite3_prepare_v2(db, "SELECT links_key FROM meta", -1, &stmt, NULL)
        != SQLITE_OK)
    {
        return sqlite3_errcode(db) == SQLITE_ERROR ? RON_ENOTFOUND
                                                   : ron_history_failed(db);
    }

    rc = sqlite3_step(stmt);
    status = rc == SQLITE_ROW ? RON_EIO
             : rc == SQLITE_DONE ? RON_ENOTFOUND : ron_history_failed(db);

    if (rc == SQLITE_ROW
        && sqlite3_column_bytes(stmt, 0) == (int) sizeof(ron_sipkey_t))
    {
        memcpy(key, sqlite3_column_blob(stmt, 0), sizeof(ron_sipkey_t));
        status = RON_OK;
    }

    (void) sqlite3_finalize(stmt);

    return status;
}


/* ---- a step ------------------------------------------------------------- */

void
ron_history_links_begin(ron_history_links_t *l, uint64_t seq)
{
    l->first = seq;
    l->n = 0;
}


ron_status_t
ron_history_links_add(ron_history_links_t *l, ron_str_t name, uint64_t seq)
{
    if (l->n == l->cap && ron_links_grow(l) != RON_OK) {
        return RON_ENOMEM;
    }

    l->links[l->n++] = ron_history_link(&l->key, name) | (seq - l->first);

    return RON_OK;
}


static ron_status_t
ron_links_grow(ron_history_links_t *l)
{
    size_t     cap;
    uint64_t  *links;

    cap = l->cap != 0 ? l->cap * 2 : 1024;

    links = realloc(l->links, cap * sizeof(uint64_t));
    if (links == NULL) {
        return RON_ENOMEM;
    }

    l->links = links;
    free(l->spare);

    l->spare = malloc(cap * sizeof(uint64_t));
    l->cap = l->spare != NULL ? cap : 0;

    return l->spare != NULL ? RON_OK : RON_ENOMEM;
}


/* All of them in the transaction of their entries. */

ron_status_t
ron_history_links_write(ron_history_links_t *l, uint64_t last)
{
    size_t         i, n;
    ron_status_t   status;
    sqlite3_int64  run;

    RON_ASSERT(last - l->first <= RON_HISTORY_LINK_SEQ);

    ron_links_sort(l);

    status = ron_links_runs(l, 1, &n);
    run = n != 0 ? l->runs[0].run + 1 : 1;

    if (status == RON_OK) {
        status = ron_links_run_add(l, l->first, last, run);
    }

    /* twice the same: an entry's two accounts have one hash */

    for (i = 0; status == RON_OK && i < l->n; i++) {
        if (i == 0 || l->links[i] != l->links[i - 1]) {
            status = ron_links_put(l, run, l->links[i]);
        }
    }

    if (status == RON_OK) {
        status = ron_links_flush(l, run);
    }

    /* who failed leaves nothing that the next run could begin with */

    l->n = 0;
    l->out_n = 0;

    return status;
}


/*
 * They are sorted by seq.  Two passes bring what has the same upper bits of its
 * hash together, in the order it had; the few that are not in their place then
 * are close to it.
 */

static void
ron_links_sort(ron_history_links_t *l)
{
    size_t     i, k, sum, n, at[(size_t) 1 << RON_LINKS_BITS];
    unsigned   shift;
    uint64_t   link, *swap;

    for (unsigned pass = 0; pass < RON_LINKS_PASSES; pass++) {
        shift = 63 - RON_LINKS_BITS * (RON_LINKS_PASSES - pass);
        memset(at, 0, sizeof(at));

        for (i = 0; i < l->n; i++) {
            at[l->links[i] >> shift & (ron_array_n(at) - 1)]++;
        }

        sum = 0;

        for (k = 0; k < ron_array_n(at); k++) {
            n = at[k];
            at[k] = sum;
            sum += n;
        }

        for (i = 0; i < l->n; i++) {
            link = l->links[i];
            l->spare[at[link >> shift & (ron_array_n(at) - 1)]++] = link;
        }

        swap = l->links;
        l->links = l->spare;
        l->spare = swap;
    }

    for (i = 1; i < l->n; i++) {
        link = l->links[i];

        for (k = i; k > 0 && l->links[k - 1] > link; k--) {
            l->links[k] = l->links[k - 1];
        }

        l->links[k] = link;
    }
}


/* The newest runs, up to one that is not merged. */

static ron_status_t
ron_links_runs(ron_history_links_t *l, size_t max_n, size_t *n)
{
    int               rc;
    sqlite3_stmt     *s;
    ron_links_run_t  *run;

    *n = 0;
    s = l->stmt[RON_LINKS_RUNS];

    while ((rc = sqlite3_step(s)) == SQLITE_ROW && *n < max_n) {
        run = &l->runs[(*n)++];
        run->run = sqlite3_column_int64(s, 0);
        run->first = (uint64_t) sqlite3_column_int64(s, 1);
        run->last = (uint64_t) sqlite3_column_int64(s, 2);

        if (run->last - run->first >= RON_LINKS_RUN_MAX - 1) {
            break;
        }
    }

    (void) sqlite3_reset(s);

    return rc == SQLITE_ROW || rc == SQLITE_DONE ? RON_OK
                                                 : ron_history_failed(l->db);
}


static ron_status_t
ron_links_run_add(ron_history_links_t *l, uint64_t first, uint64_t last,
    sqlite3_int64 run)
{
    sqlite3_stmt  *s;

    s = l->stmt[RON_LINKS_RUN_ADD];
    sqlite3_bind_int64(s, 1, (sqlite3_int64) first);
    sqlite3_bind_int64(s, 2, (sqlite3_int64) last);
    sqlite3_bind_int64(s, 3, run);

    return ron_links_run(l, RON_LINKS_RUN_ADD);
}


static ron_status_t
ron_links_put(ron_history_links_t *l, sqlite3_int64 run, uint64_t link)
{
    ron_status_t  status;

    status = l->out_n == RON_HISTORY_BLOCK ? ron_links_flush(l, run) : RON_OK;

    l->out[l->out_n++] = ron_history_link_swap(link);

    return status;
}


static ron_status_t
ron_links_flush(ron_history_links_t *l, sqlite3_int64 run)
{
    size_t         n;
    sqlite3_stmt  *s;

    n = l->out_n;
    l->out_n = 0;

    if (n == 0) {
        return RON_OK;
    }

    ron_history_pace_rest(l->pace);

    if (*l->pace->abandoned) {
        return RON_AGAIN;
    }

    s = l->stmt[RON_LINKS_BLOCK_ADD];
    sqlite3_bind_int64(s, 1, run);
    sqlite3_bind_int64(s, 2,
                       (sqlite3_int64) ron_history_link_swap(l->out[0]));
    sqlite3_bind_blob(s, 3, l->out, (int) (n * sizeof(uint64_t)),
                      SQLITE_STATIC);

    return ron_links_run(l, RON_LINKS_BLOCK_ADD);
}


/* ---- merging ------------------------------------------------------------ */

/*
 * A short run goes into one of at least 32 times its length.  A run takes with
 * it all that are newer.
 */

ron_status_t
ron_history_links_due(ron_history_links_t *l, bool *due)
{
    size_t        i, n;
    uint64_t      len, sum, wanted;
    ron_status_t  status;

    l->due = 0;
    sum = 0;
    wanted = RON_LINKS_SHORT;
    status = ron_links_runs(l, RON_LINKS_RUNS_N, &n);

    for (i = 0; status == RON_OK && i < n; i++) {
        len = l->runs[i].last - l->runs[i].first + 1;

        if (len >= RON_LINKS_RUN_MAX
            || (i != 0 && l->runs[i].last + 1 != l->runs[i - 1].first)
            || sum + len > RON_HISTORY_LINK_SEQ)
        {
            break;
        }

        while (len >= wanted) {
            wanted <<= RON_LINKS_GROWTH;
        }

        sum += len;

        if (sum >= wanted) {
            l->due = i + 1;
        }
    }

    *due = l->due != 0;

    return status;
}


ron_status_t
ron_history_links_merge(ron_history_links_t *l)
{
    size_t               i;
    uint64_t            *blocks, first, last;
    ron_status_t         status;
    sqlite3_int64        run;
    ron_links_cursor_t  *cursors;

    blocks = malloc(l->due * sizeof(l->out));
    cursors = calloc(l->due, sizeof(ron_links_cursor_t));

    if (blocks == NULL || cursors == NULL) {
        free(blocks);
        free(cursors);
        return RON_ENOMEM;
    }

    first = l->runs[l->due - 1].first;
    last = l->runs[0].last;
    run = l->runs[0].run + 1;

    RON_ASSERT(last - first <= RON_HISTORY_LINK_SEQ);

    /* oldest first: an account's links stay in order */

    for (i = 0; i < l->due; i++) {
        cursors[i].links = blocks + i * RON_HISTORY_BLOCK;
        cursors[i].run = l->runs[l->due - 1 - i].run;
        cursors[i].first = -1;
        cursors[i].after = l->runs[l->due - 1 - i].first - first;
    }

    status = ron_links_merge(l, cursors, run);

    if (status == RON_OK) {
        status = ron_links_drop(l);
    }

    if (status == RON_OK) {
        status = ron_links_run_add(l, first, last, run);
    }

    l->out_n = 0;
    free(blocks);
    free(cursors);

    return status;
}


static ron_status_t
ron_links_merge(ron_history_links_t *l, ron_links_cursor_t *cursors,
    sqlite3_int64 run)
{
    size_t               i;
    uint64_t             hash;
    ron_status_t         status;
    ron_links_cursor_t  *c;

    status = RON_OK;

    for (i = 0; status == RON_OK && i < l->due; i++) {
        status = ron_links_next(l, &cursors[i]);
    }

    while (status == RON_OK) {
        hash = UINT64_MAX;

        for (i = 0; i < l->due; i++) {
            c = &cursors[i];

            if (c->n != 0) {
                hash = ron_min(hash, c->links[c->i] & ~RON_HISTORY_LINK_SEQ);
            }
        }

        if (hash == UINT64_MAX) {
            return ron_links_flush(l, run);
        }

        for (i = 0; status == RON_OK && i < l->due; i++) {
            c = &cursors[i];

            while (status == RON_OK && c->n != 0
                   && (c->links[c->i] & ~RON_HISTORY_LINK_SEQ) == hash)
            {
                status = ron_links_put(l, run, c->links[c->i] + c->after);

                if (status == RON_OK && ++c->i == c->n) {
                    status = ron_links_next(l, c);
                }
            }
        }
    }

    return status;
}


/* The block after the one that it was in; none is n = 0. */

static ron_status_t
ron_links_next(ron_history_links_t *l, ron_links_cursor_t *c)
{
    int            rc;
    size_t         len;
    sqlite3_stmt  *s;

    s = l->stmt[RON_LINKS_BLOCK];
    sqlite3_bind_int64(s, 1, c->run);
    sqlite3_bind_int64(s, 2, c->first);
    c->i = 0;
    c->n = 0;
    rc = sqlite3_step(s);

    if (rc == SQLITE_ROW) {
        c->first = sqlite3_column_int64(s, 1);
        len = (size_t) sqlite3_column_bytes(s, 0);
        c->n = ron_min(len / sizeof(uint64_t), (size_t) RON_HISTORY_BLOCK);

        if (c->n != 0) {
            memcpy(c->links, sqlite3_column_blob(s, 0),
                   c->n * sizeof(uint64_t));
        }

        for (size_t i = 0; i < c->n; i++) {
            c->links[i] = ron_history_link_swap(c->links[i]);
        }
    }

    (void) sqlite3_reset(s);

    return rc == SQLITE_ROW || rc == SQLITE_DONE ? RON_OK
                                                 : ron_history_failed(l->db);
}


static ron_status_t
ron_links_drop(ron_history_links_t *l)
{
    ron_status_t  status;

    status = RON_OK;

    for (size_t i = 0; status == RON_OK && i < l->due; i++) {
        ron_history_pace_rest(l->pace);

        sqlite3_bind_int64(l->stmt[RON_LINKS_BLOCKS_DROP], 1, l->runs[i].run);
        sqlite3_bind_int64(l->stmt[RON_LINKS_RUN_DROP], 1,
                           (sqlite3_int64) l->runs[i].first);
        status = ron_links_run(l, RON_LINKS_BLOCKS_DROP);

        if (status == RON_OK) {
            status = ron_links_run(l, RON_LINKS_RUN_DROP);
        }
    }

    return status;
}


static ron_status_t
ron_links_run(ron_history_links_t *l, ron_links_stmt_t no)
{
    int           rc;
    ron_status_t  status;

    rc = sqlite3_step(l->stmt[no]);
    status = rc == SQLITE_DONE ? RON_OK : ron_history_failed(l->db);
    (void) sqlite3_reset(l->stmt[no]);

    return status;
}
