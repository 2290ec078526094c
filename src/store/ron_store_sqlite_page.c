
/*
 * The two pages of a sqlite store that are written in place: the published
 * head, which is not synced, and the mark of safe mode, which is.
 */

#include "ron_store_sqlite.h"
#include "ron_port.h"


static ron_status_t ron_sqlite_mark_create(ron_sqlite_t *s,
    const uint8_t *page);


ron_status_t
ron_sqlite_open_pages(ron_sqlite_t *s)
{
    char          path[RON_SQLITE_PATH_MAX];
    uint8_t       page[RON_STORE_PAGE];
    uint64_t      size;
    ron_status_t  status;

    status = ron_sqlite_mark_create(s, NULL);

    if (status == RON_OK) {
        ron_sqlite_path(s, RON_SQLITE_MARK, path);
        status = ron_file_open(path, RON_OPEN_WRITE, &s->mark_fd);
    }

    if (status != RON_OK) {
        return ron_sqlite_file_failed(s, status, RON_SQLITE_MARK);
    }

    ron_sqlite_path(s, RON_SQLITE_HEAD, path);

    status = ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE,
                           &s->head_fd);
    if (status == RON_OK) {
        status = ron_file_size(s->head_fd, &size);
    }

    if (status == RON_OK && size < RON_STORE_PAGE) {

        /* so that no later write of a head needs a block */

        memset(page, 0, sizeof(page));
        status = ron_file_pwrite(s->head_fd, page, sizeof(page), 0);

        if (status == RON_OK) {
            status = ron_file_sync(s->head_fd);
        }
    }

    if (status != RON_OK) {
        return ron_sqlite_file_failed(s, status, RON_SQLITE_HEAD);
    }

    return RON_OK;
}


/*
 * Closing checkpoints the WAL if nobody else has the ledger open, which is
 * the state a backup likes best; after a failure nothing more is touched.
 */

ron_status_t
ron_sqlite_head_write(ron_store_t *store, const uint8_t *page)
{
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    status = ron_file_pwrite(s->head_fd, page, RON_STORE_PAGE, 0);

    return status == RON_OK
           ? RON_OK : ron_sqlite_file_failed(s, status, RON_SQLITE_HEAD);
}


ron_status_t
ron_sqlite_head_read(ron_store_t *store, uint8_t *page)
{
    char           path[RON_SQLITE_PATH_MAX];
    ron_fd_t       fd;
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    ron_sqlite_path(s, RON_SQLITE_HEAD, path);

    status = ron_file_open(path, RON_OPEN_READ, &fd);

    if (status == RON_OK) {
        status = ron_file_pread(fd, page, RON_STORE_PAGE, 0);
        ron_file_close(fd);
    }

    if (status != RON_OK && status != RON_ENOTFOUND) {
        return ron_sqlite_file_failed(s, status, RON_SQLITE_HEAD);
    }

    return status;
}


ron_status_t
ron_sqlite_mark_read(ron_store_t *store, uint8_t *page)
{
    char           path[RON_SQLITE_PATH_MAX];
    ron_fd_t       fd;
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    ron_sqlite_path(s, RON_SQLITE_MARK, path);

    status = ron_file_open(path, RON_OPEN_READ, &fd);

    if (status != RON_OK) {
        return status == RON_ENOTFOUND
               ? RON_ENOTFOUND
               : ron_sqlite_file_failed(s, status, RON_SQLITE_MARK);
    }

    status = ron_file_pread(fd, page, RON_STORE_PAGE, 0);
    ron_file_close(fd);

    /* a file that ends too early is a mark, not the absence of one */

    return status == RON_ENOTFOUND ? RON_EIO : status;
}


ron_status_t
ron_sqlite_mark_write(ron_store_t *store, const uint8_t *page)
{
    char           path[RON_SQLITE_PATH_MAX];
    ron_fd_t       fd;
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;
    fd = s->mark_fd;

    if (fd == RON_FD_NONE) {
        ron_sqlite_path(s, RON_SQLITE_MARK, path);
        status = ron_file_open(path, RON_OPEN_WRITE, &fd);

        if (status == RON_ENOTFOUND) {
            status = ron_sqlite_mark_create(s, page);

            return status == RON_OK ? RON_OK
                   : ron_sqlite_file_failed(s, status, RON_SQLITE_MARK);
        }

        if (status != RON_OK) {
            return ron_sqlite_file_failed(s, status, RON_SQLITE_MARK);
        }
    }

    status = ron_file_pwrite(fd, page, RON_STORE_PAGE, 0);

    if (status == RON_OK) {
        status = ron_file_sync(fd);
    }

    if (fd != s->mark_fd) {
        ron_file_close(fd);
    }

    return status == RON_OK
           ? RON_OK : ron_sqlite_file_failed(s, status, RON_SQLITE_MARK);
}


/*
 * Made under another name first, since a mark of no bytes, which a crash in
 * between would leave, is one that cannot be read and keeps the ledger shut.
 * Without a page given, an existing mark is left alone and a new one is clear.
 */

static ron_status_t
ron_sqlite_mark_create(ron_sqlite_t *s, const uint8_t *page)
{
    char          path[RON_SQLITE_PATH_MAX], tmp[RON_SQLITE_PATH_MAX];
    uint8_t       clear[RON_STORE_PAGE];
    ron_fd_t      fd;
    ron_status_t  status;

    ron_sqlite_path(s, RON_SQLITE_MARK, path);
    ron_sqlite_path(s, RON_SQLITE_MARK_TMP, tmp);

    if (page == NULL) {
        status = ron_file_open(path, RON_OPEN_READ, &fd);

        if (status == RON_OK) {
            ron_file_close(fd);
        }

        if (status != RON_ENOTFOUND) {
            return status;
        }

        ron_store_page_put(clear, RON_STORE_KIND_MARK, ron_null_str);
        page = clear;
    }

    status = ron_file_open(tmp, RON_OPEN_WRITE | RON_OPEN_CREATE, &fd);
    if (status != RON_OK) {
        return status;
    }

    status = ron_file_pwrite(fd, page, RON_STORE_PAGE, 0);

    if (status == RON_OK) {
        status = ron_file_sync(fd);
    }

    ron_file_close(fd);

    if (status == RON_OK) {
        status = ron_file_rename(tmp, path);
    }

    return status == RON_OK ? ron_dir_sync(s->dir) : status;
}


/* A new file each time: a full disk may still overwrite what it has. */

ron_status_t
ron_sqlite_probe(ron_store_t *store)
{
    char           path[RON_SQLITE_PATH_MAX];
    uint8_t        page[RON_STORE_PAGE];
    ron_fd_t       fd;
    ron_status_t   status;
    ron_sqlite_t  *s;

    s = (ron_sqlite_t *) store;

    ron_sqlite_path(s, RON_SQLITE_PROBE, path);
    memset(page, 0x5a, sizeof(page));

    status = ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE, &fd);

    if (status == RON_OK) {
        status = ron_file_pwrite(fd, page, sizeof(page), 0);

        if (status == RON_OK) {
            status = ron_file_sync(fd);
        }

        ron_file_close(fd);
        (void) ron_file_unlink(path);
    }

    return status == RON_OK
           ? RON_OK : ron_sqlite_file_failed(s, status, RON_SQLITE_PROBE);
}
