
/*
 * NGINX's logs grow by megabytes a second under full load.  The kernel keeps
 * that for half a minute and then writes all of it at once, every five seconds,
 * and for as long the syncs of a ledger on the same disk take many times what
 * they take otherwise.  So the helper has logs leave as they grow.  Nothing is
 * waited for, nothing becomes durable that was not: the same bytes go out, in
 * smaller pieces.
 */

#include "ngx_ron.h"

#include <fcntl.h>


#define NGX_RON_LOGS_PIECE  (256 * 1024)


static ngx_uint_t ngx_ron_logs_n(void);
static void ngx_ron_logs_file(ngx_open_file_t *file, off_t *begun);


/* With each tick. */

void
ngx_ron_logs(void)
{
    ngx_uint_t        i, n;
    ngx_list_part_t  *part;
    ngx_open_file_t  *file;

    /* up to where each file is on its way; the list is that of one cycle */

    static off_t     *begun;

    if (begun == NULL) {
        begun = ngx_pcalloc(ngx_cycle->pool,
                            ngx_ron_logs_n() * sizeof(off_t));
        if (begun == NULL) {
            return;
        }
    }

    n = 0;

    for (part = (ngx_list_part_t *) &ngx_cycle->open_files.part;
         part;
         part = part->next)
    {
        file = part->elts;

        for (i = 0; i < part->nelts; i++) {
            ngx_ron_logs_file(&file[i], &begun[n++]);
        }
    }
}


static ngx_uint_t
ngx_ron_logs_n(void)
{
    ngx_uint_t        n;
    ngx_list_part_t  *part;

    n = 0;

    for (part = (ngx_list_part_t *) &ngx_cycle->open_files.part;
         part;
         part = part->next)
    {
        n += part->nelts;
    }

    return n;
}


static void
ngx_ron_logs_file(ngx_open_file_t *file, off_t *begun)
{
    off_t            size;
    ngx_file_info_t  fi;

    if (file->fd == NGX_INVALID_FILE
        || ngx_fd_info(file->fd, &fi) == NGX_FILE_ERROR
        || !ngx_is_file(&fi))
    {
        return;
    }

    size = ngx_file_size(&fi);

    /* another one has its name */

    if (size < *begun) {
        *begun = 0;
    }

    if (size - *begun < NGX_RON_LOGS_PIECE) {
        return;
    }

    (void) sync_file_range(file->fd, *begun, size - *begun,
                           SYNC_FILE_RANGE_WRITE);
    *begun = size;
}
