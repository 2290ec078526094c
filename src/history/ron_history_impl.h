
/* Private to src/history. */

#ifndef RON_HISTORY_IMPL_H
#define RON_HISTORY_IMPL_H


#include "ron_history.h"

#include <sqlite3.h>


#define RON_HISTORY_PATH_MAX  512
#define RON_HISTORY_DIR_MAX   (RON_HISTORY_PATH_MAX - 24)
#define RON_HISTORY_FORMAT    1
#define RON_HISTORY_APP_ID    0x524f4e48        /* "RONH" */
#define RON_HISTORY_BUSY_MS   100


typedef struct ron_history_rows_s  ron_history_rows_t;


/* RON_EINVAL for a name that does not fit. */
ron_status_t ron_history_path(const char *dir, const char *name,
    char path[RON_HISTORY_PATH_MAX]);

/* What a failed call of SQLite means. */
ron_status_t ron_history_failed(sqlite3 *db);


/* ron_history_rows.c: writes the rows, of one database after another. */

/* What `abandoned` says may become true while rows are written: RON_AGAIN. */
ron_status_t ron_history_rows_create(ron_history_rows_t **rows,
    const _Atomic bool *abandoned);
void ron_history_rows_free(ron_history_rows_t *rows);

ron_status_t ron_history_rows_open(ron_history_rows_t *rows, sqlite3 *db);
void ron_history_rows_close(ron_history_rows_t *rows);

/* A commit with all its entries; the first one begins a transaction. */
ron_status_t ron_history_rows_put(ron_history_rows_t *rows,
    const ron_row_t *row);

/* Ends it, with the watermark. */
ron_status_t ron_history_rows_commit(ron_history_rows_t *rows, uint64_t seq,
    uint64_t time_ms, const ron_hash_t *chain);

/* Takes it back, and forgets the accounts that were added in vain. */
void ron_history_rows_undo(ron_history_rows_t *rows);


#endif /* RON_HISTORY_IMPL_H */
