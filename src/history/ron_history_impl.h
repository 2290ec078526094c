
/* Private to src/history. */

#ifndef RON_HISTORY_IMPL_H
#define RON_HISTORY_IMPL_H


#include "ron_history.h"
#include "ron_siphash.h"

#include <sqlite3.h>


#define RON_HISTORY_PATH_MAX  512
#define RON_HISTORY_DIR_MAX   (RON_HISTORY_PATH_MAX - 24)
#define RON_HISTORY_FORMAT    2
#define RON_HISTORY_APP_ID    0x524f4e48        /* "RONH" */
#define RON_HISTORY_BUSY_MS   100


typedef struct ron_history_rows_s  ron_history_rows_t;
typedef struct ron_history_links_s  ron_history_links_t;


/* RON_EINVAL for a name that does not fit. */
ron_status_t ron_history_path(const char *dir, const char *name,
    char path[RON_HISTORY_PATH_MAX]);

/* What a failed call of SQLite means. */
ron_status_t ron_history_failed(sqlite3 *db);


/*
 * ron_history_pace.c: history has no right to the processor and the disk that
 * payments are made with.  While the journal grows it works for a share of the
 * time, in small pieces, and lags if that is not enough.
 */

typedef struct {
    ron_reader_t        *reader;        /* NULL: it never rests */
    const _Atomic bool  *abandoned;
    uint32_t             share;         /* percent */
    uint64_t             begun;         /* us: what is not yet counted */
    uint64_t             owed;          /* us of rest */
    uint64_t             looked;        /* us: at the journal's head */
    uint64_t             head;
    uint64_t             rested;        /* us, in all */
    bool                 grows;
} ron_history_pace_t;

ron_status_t ron_history_pace_open(ron_history_pace_t *pace,
    ron_store_t *store, uint32_t share, const _Atomic bool *abandoned);
void ron_history_pace_close(ron_history_pace_t *pace);

/* Work begins; whatever was before it was none. */
void ron_history_pace_begin(ron_history_pace_t *pace);

/* Called often while there is work; rests when it is time to. */
void ron_history_pace_rest(void *pace);


/* ron_history_rows.c: writes the rows, of one database after another. */

/* RON_AGAIN from whatever writes rows, once its pace is abandoned. */
ron_status_t ron_history_rows_create(ron_history_rows_t **rows,
    ron_history_pace_t *pace);
void ron_history_rows_free(ron_history_rows_t *rows);

ron_status_t ron_history_rows_open(ron_history_rows_t *rows, sqlite3 *db);
void ron_history_rows_close(ron_history_rows_t *rows);

/* A commit with all its entries; the first one begins a transaction. */
ron_status_t ron_history_rows_put(ron_history_rows_t *rows,
    const ron_row_t *row);

/* Ends it, with the watermark. */
ron_status_t ron_history_rows_commit(ron_history_rows_t *rows, uint64_t seq,
    uint64_t time_ms, const ron_hash_t *chain);

/* Makes one run of several, when it is time to, in a transaction of its own. */
ron_status_t ron_history_rows_merge(ron_history_rows_t *rows);

/* Takes back what is not committed. */
void ron_history_rows_undo(ron_history_rows_t *rows);


/*
 * ron_history_links.c: which entries concern an account.
 *
 * A link: a hash of the name above, an entry's distance from the run's first
 * below.  Its highest bit is 0, as an integer of SQLite has it.
 */

#define RON_HISTORY_LINK_SEQ  UINT64_C(0xffffff)

/* Links of a block, which with its row's other columns is a page of SQLite. */
#define RON_HISTORY_BLOCK     500

ron_status_t ron_history_links_create(ron_history_links_t **links,
    ron_history_pace_t *pace);
void ron_history_links_free(ron_history_links_t *links);
ron_status_t ron_history_links_open(ron_history_links_t *links, sqlite3 *db);
void ron_history_links_close(ron_history_links_t *links);

/* The first entry of a step, the accounts of all its entries, the last one. */
void ron_history_links_begin(ron_history_links_t *links, uint64_t seq);
ron_status_t ron_history_links_add(ron_history_links_t *links, ron_str_t name,
    uint64_t seq);
ron_status_t ron_history_links_write(ron_history_links_t *links,
    uint64_t last);

ron_status_t ron_history_links_due(ron_history_links_t *links, bool *due);
ron_status_t ron_history_links_merge(ron_history_links_t *links);

/* What names are hashed with; RON_ENOTFOUND in a file of another format. */
ron_status_t ron_history_key(sqlite3 *db, ron_sipkey_t *key);


static inline uint64_t
ron_history_link(const ron_sipkey_t *key, ron_str_t name)
{
    return ron_siphash(key, name) >> 1 & ~RON_HISTORY_LINK_SEQ;
}


/* In a block they are big-endian. */

static inline uint64_t
ron_history_link_swap(uint64_t link)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return __builtin_bswap64(link);
#else
    return link;
#endif
}


#endif /* RON_HISTORY_IMPL_H */
