
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


/* RON_EINVAL for a name that does not fit. */
ron_status_t ron_history_path(const char *dir, const char *name,
    char path[RON_HISTORY_PATH_MAX]);

/* What a failed call of SQLite means. */
ron_status_t ron_history_failed(sqlite3 *db);


#endif /* RON_HISTORY_IMPL_H */
