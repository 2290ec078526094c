
/*
 * Assertions, the corruption breakpoint, and what statuses are called.
 */

#include "ron.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "ron_log.h"


static atomic_uint_fast64_t  ron_corrupt_n;


static const char *const  ron_status_names[] = {
    [RON_OK]        = "ok",
    [RON_AGAIN]     = "try again",
    [RON_ENOMEM]    = "no memory",
    [RON_EINVAL]    = "malformed",
    [RON_ERANGE]    = "out of range",
    [RON_ENOTFOUND] = "not found",
    [RON_EEXIST]    = "exists",
    [RON_EFULL]     = "full",
    [RON_EIO]       = "input/output error",
    [RON_ECORRUPT]  = "corrupt",
    [RON_EFENCED]   = "fenced by another writer",
    [RON_EVERSION]  = "newer format",
    [RON_ECANCELED] = "canceled",
};

_Static_assert(ron_array_n(ron_status_names) == RON_STATUS_N,
               "every status has a name");


void
ron_assert_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "ron: assertion failed: %s, %s:%d\n", expr, file,
            line);
    fflush(stderr);

    abort();
}


ron_status_t
ron_corrupt_at(const char *file, int line)
{
    /*
     * A damaged file is met again at every read, so only the first place is
     * worth a line; how often is what the counter is for.
     */

    if (atomic_fetch_add(&ron_corrupt_n, 1) == 0) {
        ron_log(RON_LOG_ERROR, "stored bytes are corrupt, found at %s:%d",
                file, line);
    }

    return RON_ECORRUPT;
}


uint64_t
ron_corrupt_count(void)
{
    return atomic_load(&ron_corrupt_n);
}


const char *
ron_status_name(ron_status_t status)
{
    if ((unsigned) status >= RON_STATUS_N) {
        return "unknown status";
    }

    return ron_status_names[status];
}


int
ron_str_cmp(ron_str_t a, ron_str_t b)
{
    int     rc;
    size_t  len;

    len = ron_min(a.len, b.len);

    if (len) {
        rc = memcmp(a.data, b.data, len);
        if (rc != 0) {
            return rc < 0 ? -1 : 1;
        }
    }

    return (a.len > b.len) - (a.len < b.len);
}


ron_str_t
ron_cstr(const char *s)
{
    return (ron_str_t) { strlen(s), (const uint8_t *) s };
}
