
/*
 * <name>.manifest (integers big-endian):
 *
 *     "RONTAGM" 0x01      the last byte is the version
 *     u64   ledger id
 *     lstr  name of the store (varint length)
 *     u64   next file number
 *     u64   expired seq
 *     u64   expired ms
 *     u32   number of segments, and for each, oldest first:
 *         u64  file number      u32  tier
 *         u64  seq_lo           u64  seq_hi
 *         u64  oldest ms        u64  newest ms
 *         u64  number of tags   32   hash of the file's header
 *     32    BLAKE3 of everything before
 *
 * It is replaced as a whole: temporary file, data sync, rename, directory
 * sync.  A reader finds the old one or the new one.
 */

#include "ron_tag_manifest.h"

#include "ron_buf.h"
#include "ron_digest.h"

#include <stdio.h>
#include <stdlib.h>


#define RON_TAG_MAGIC      "RONTAGM"
#define RON_TAG_MAGIC_LEN  7
#define RON_TAG_VERSION    1

#define RON_TAG_INFO_LEN   (6 * 8 + 4 + RON_HASH_LEN)
#define RON_TAG_MANIFEST_MAX                                                  \
    (1024 + (uint64_t) RON_TAG_SEGMENTS_MAX * RON_TAG_INFO_LEN)


static ron_status_t ron_tag_manifest_load(const char *path, uint8_t **data,
    size_t *len);
static ron_status_t ron_tag_manifest_parse(const ron_tag_place_t *place,
    ron_tag_manifest_t *m, const uint8_t *data, size_t len);
static ron_status_t ron_tag_manifest_infos(ron_tag_manifest_t *m,
    ron_rd_t *rd);
static ron_status_t ron_tag_manifest_put(const ron_tag_place_t *place,
    const ron_tag_manifest_t *m, ron_buf_t *buf);
static void ron_tag_manifest_path(char path[RON_TAG_PATH_MAX],
    const ron_tag_place_t *place, const char *suffix);


static void
ron_tag_manifest_path(char path[RON_TAG_PATH_MAX],
    const ron_tag_place_t *place, const char *suffix)
{
    int  n;

    n = snprintf(path, RON_TAG_PATH_MAX, "%s/%s.manifest%s", place->dir,
                 place->name, suffix);

    RON_ASSERT(n > 0 && n < RON_TAG_PATH_MAX);
}


bool
ron_tag_manifest_is_temp(const ron_tag_place_t *place, const char *name)
{
    size_t  len;

    len = strlen(place->name);

    return strncmp(name, place->name, len) == 0
           && strcmp(name + len, ".manifest.tmp") == 0;
}


ron_status_t
ron_tag_manifest_read(const ron_tag_place_t *place, ron_tag_manifest_t *m)
{
    char          path[RON_TAG_PATH_MAX];
    size_t        len;
    uint8_t      *data;
    ron_status_t  status;

    memset(m, 0, sizeof(ron_tag_manifest_t));

    ron_tag_manifest_path(path, place, "");

    status = ron_tag_manifest_load(path, &data, &len);
    if (status != RON_OK) {
        return status;
    }

    status = ron_tag_manifest_parse(place, m, data, len);

    free(data);

    if (status != RON_OK) {
        ron_tag_manifest_free(m);
    }

    return status;
}


static ron_status_t
ron_tag_manifest_load(const char *path, uint8_t **data, size_t *len)
{
    uint64_t      size;
    ron_fd_t      fd;
    ron_status_t  status;

    *data = NULL;
    *len = 0;

    status = ron_file_open(path, RON_OPEN_READ, &fd);
    if (status != RON_OK) {
        return status;
    }

    status = ron_file_size(fd, &size);

    if (status == RON_OK
        && (size <= RON_HASH_LEN || size > RON_TAG_MANIFEST_MAX))
    {
        status = ron_corrupt();
    }

    if (status == RON_OK) {
        *data = malloc((size_t) size);
        status = *data == NULL ? RON_ENOMEM : RON_OK;
    }

    if (status == RON_OK
        && ron_file_pread(fd, *data, (size_t) size, 0) != RON_OK)
    {
        status = ron_corrupt();
    }

    ron_file_close(fd);

    if (status != RON_OK) {
        free(*data);
        *data = NULL;
        return status;
    }

    *len = (size_t) size;

    return RON_OK;
}


static ron_status_t
ron_tag_manifest_parse(const ron_tag_place_t *place, ron_tag_manifest_t *m,
    const uint8_t *data, size_t len)
{
    uint8_t       version;
    uint64_t      ledger_id;
    ron_rd_t      rd;
    ron_str_t     magic, name;
    ron_hash_t    sum;
    ron_status_t  status;

    len -= RON_HASH_LEN;

    ron_blake3(data, len, &sum);

    if (memcmp(sum.b, data + len, RON_HASH_LEN) != 0) {
        return ron_corrupt();
    }

    ron_rd_init(&rd, (ron_str_t) { len, data });

    magic = ron_rd_bytes(&rd, RON_TAG_MAGIC_LEN);
    version = ron_rd_u8(&rd);

    if (rd.failed
        || !ron_str_eq(magic, (ron_str_t) { RON_TAG_MAGIC_LEN,
                                 (const uint8_t *) RON_TAG_MAGIC }))
    {
        return ron_corrupt();
    }

    if (version > RON_TAG_VERSION) {
        return RON_EVERSION;
    }

    ledger_id = ron_rd_u64(&rd);
    name = ron_rd_lstr(&rd);

    m->next_no = ron_rd_u64(&rd);
    m->expired_seq = ron_rd_u64(&rd);
    m->expired_ms = ron_rd_u64(&rd);

    status = ron_tag_manifest_infos(m, &rd);
    if (status != RON_OK) {
        return status;
    }

    if (ledger_id != place->ledger_id
        || !ron_str_eq(name, ron_cstr(place->name)))
    {
        return RON_EINVAL;
    }

    return RON_OK;
}


static ron_status_t
ron_tag_manifest_infos(ron_tag_manifest_t *m, ron_rd_t *rd)
{
    uint32_t         i, n;
    ron_tag_info_t  *info;

    n = ron_rd_u32(rd);

    if (rd->failed || n > ron_rd_left(rd) / RON_TAG_INFO_LEN) {
        return ron_corrupt();
    }

    m->info = calloc((size_t) n + 1, sizeof(ron_tag_info_t));
    if (m->info == NULL) {
        return RON_ENOMEM;
    }

    m->n = n;

    for (i = 0; i < n; i++) {

        info = &m->info[i];

        info->no = ron_rd_u64(rd);
        info->tier = ron_rd_u32(rd);
        info->seq_lo = ron_rd_u64(rd);
        info->seq_hi = ron_rd_u64(rd);
        info->oldest_ms = ron_rd_u64(rd);
        info->newest_ms = ron_rd_u64(rd);
        info->tag_n = ron_rd_u64(rd);
        ron_rd_hash(rd, &info->header);
    }

    return ron_rd_end(rd) == RON_OK ? RON_OK : ron_corrupt();
}


void
ron_tag_manifest_free(ron_tag_manifest_t *m)
{
    free(m->info);
    memset(m, 0, sizeof(ron_tag_manifest_t));
}


ron_status_t
ron_tag_manifest_write(const ron_tag_place_t *place,
    const ron_tag_manifest_t *m, bool *replaced)
{
    char          path[RON_TAG_PATH_MAX], temp[RON_TAG_PATH_MAX];
    ron_fd_t      fd;
    ron_buf_t     buf;
    ron_status_t  status;

    *replaced = false;

    ron_tag_manifest_path(path, place, "");
    ron_tag_manifest_path(temp, place, ".tmp");

    ron_buf_init(&buf, 0);

    fd = RON_FD_NONE;

    status = ron_tag_manifest_put(place, m, &buf);

    if (status == RON_OK) {
        status = ron_file_open(temp, RON_OPEN_WRITE | RON_OPEN_CREATE, &fd);
    }

    if (status == RON_OK) {
        status = ron_file_truncate(fd, 0);
    }

    if (status == RON_OK) {
        status = ron_file_pwrite(fd, buf.data, buf.len, 0);
    }

    if (status == RON_OK) {
        status = ron_file_sync(fd);
    }

    ron_file_close(fd);
    ron_buf_free(&buf);

    if (status != RON_OK) {
        (void) ron_file_unlink(temp);
        return status;
    }

    /* a rename that fails may still have happened */

    *replaced = true;

    status = ron_file_rename(temp, path);

    return status == RON_OK ? ron_dir_sync(place->dir) : status;
}


static ron_status_t
ron_tag_manifest_put(const ron_tag_place_t *place, const ron_tag_manifest_t *m,
    ron_buf_t *buf)
{
    uint32_t               i;
    ron_hash_t             sum;
    ron_status_t           status;
    const ron_tag_info_t  *info;

    ron_buf_put(buf, RON_TAG_MAGIC, RON_TAG_MAGIC_LEN);
    ron_buf_put_u8(buf, RON_TAG_VERSION);
    ron_buf_put_u64(buf, place->ledger_id);
    ron_buf_put_lstr(buf, ron_cstr(place->name));
    ron_buf_put_u64(buf, m->next_no);
    ron_buf_put_u64(buf, m->expired_seq);
    ron_buf_put_u64(buf, m->expired_ms);
    ron_buf_put_u32(buf, m->n);

    for (i = 0; i < m->n; i++) {

        info = &m->info[i];

        ron_buf_put_u64(buf, info->no);
        ron_buf_put_u32(buf, info->tier);
        ron_buf_put_u64(buf, info->seq_lo);
        ron_buf_put_u64(buf, info->seq_hi);
        ron_buf_put_u64(buf, info->oldest_ms);
        ron_buf_put_u64(buf, info->newest_ms);
        ron_buf_put_u64(buf, info->tag_n);
        ron_buf_put(buf, info->header.b, RON_HASH_LEN);
    }

    status = ron_buf_status(buf);
    if (status != RON_OK) {
        return status;
    }

    ron_blake3(buf->data, buf->len, &sum);
    ron_buf_put(buf, sum.b, RON_HASH_LEN);

    return ron_buf_status(buf);
}
