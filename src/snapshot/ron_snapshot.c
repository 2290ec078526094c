
#include "ron_snapshot.h"
#include "ron_bulk.h"
#include "ron_codec.h"
#include "ron_port.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>


#define RON_SNAPSHOT_PATH_MAX  512
#define RON_SNAPSHOT_PAGE      ((size_t) 4 << 20)
#define RON_SNAPSHOT_READ      ((size_t) 1 << 20)
#define RON_SNAPSHOT_TRIES     200
#define RON_SNAPSHOT_NAP_US    5000


typedef struct {
    ron_bulk_t  *bulk;
    uint64_t     target;
    ron_buf_t   *why;
} ron_snapshot_copy_t;


static ron_status_t ron_snapshot_lock(const char *dir, ron_fd_t *fd,
    ron_buf_t *why);
static ron_status_t ron_snapshot_base(ron_reader_t *reader, ron_bulk_t *bulk,
    uint64_t *target, ron_buf_t *why);
static ron_status_t ron_snapshot_copy(ron_reader_t *reader, ron_bulk_t *bulk,
    uint64_t target, ron_progress_pt progress, void *ctx, ron_buf_t *why);
static ron_status_t ron_snapshot_row(void *ctx, const ron_row_t *row);
static ron_status_t ron_snapshot_hash(const char *dir, uint64_t seq,
    ron_progress_pt progress, void *ctx, uint64_t *bytes, ron_hash_t *hash,
    ron_buf_t *why);
static ron_status_t ron_snapshot_sign(const char *dir,
    const ron_signer_t *signer, const ron_snapshot_info_t *info,
    ron_buf_t *why);
static ron_status_t ron_snapshot_write(const char *dir, ron_str_t note,
    ron_buf_t *why);
static ron_status_t ron_snapshot_lines(const ron_checkpoint_note_t *cp,
    ron_snapshot_info_t *info);
static void ron_snapshot_hex(const ron_hash_t *hash, char *hex);
static ron_status_t ron_snapshot_rebuild(ron_store_t *source,
    const char *dir, ron_progress_pt progress, void *ctx,
    ron_snapshot_info_t *info, ron_buf_t *why);
static ron_status_t ron_snapshot_audit(const char *dir,
    ron_progress_pt progress, void *ctx, ron_buf_t *why);


/* ---- taking ------------------------------------------------------------- */

ron_status_t
ron_snapshot_take(ron_store_t *source, const char *dir,
    const ron_signer_t *signer, ron_progress_pt progress, void *ctx,
    ron_snapshot_info_t *info, ron_buf_t *why)
{
    ron_fd_t       fd;
    uint64_t       target, begin_us;
    ron_bulk_t    *bulk;
    ron_reader_t  *reader;
    ron_status_t   status;

    memset(info, 0, sizeof(ron_snapshot_info_t));
    begin_us = ron_clock_mono_us();
    info->meta = *ron_store_meta(source);

    status = ron_snapshot_lock(dir, &fd, why);
    if (status != RON_OK) {
        return status;
    }

    bulk = NULL;
    status = ron_reader_open(source, &reader);

    if (status != RON_OK) {
        ron_buf_put_cstr(why, ron_store_error(source));

    } else {
        status = ron_bulk_open(dir, &info->meta, &bulk, why);
    }

    if (status == RON_OK) {
        status = ron_snapshot_base(reader, bulk, &target, why);
    }

    if (status == RON_OK) {
        info->first = ron_bulk_seq(bulk) + 1;
        status = ron_snapshot_copy(reader, bulk, target, progress, ctx, why);
    }

    if (status == RON_OK) {
        status = ron_bulk_checkpoint(bulk, reader, why);
    }

    ron_reader_close(reader);

    if (status != RON_OK) {
        ron_bulk_abort(bulk);

    } else {
        info->seq = ron_bulk_seq(bulk);
        info->root = ron_bulk_head(bulk)->root;
        info->chain = ron_bulk_head(bulk)->chain;
        info->time_ms = ron_bulk_head(bulk)->time_ms;
        info->epoch = ron_bulk_head(bulk)->epoch;

        status = ron_bulk_finish(bulk, false, &info->commits, why);
    }

    if (status == RON_OK) {
        status = ron_snapshot_hash(dir, info->seq, progress, ctx,
                                   &info->bytes, &info->file, why);
    }

    if (status == RON_OK) {
        status = ron_snapshot_sign(dir, signer, info, why);
    }

    ron_file_close(fd);
    info->took_us = ron_clock_mono_us() - begin_us;

    return status;
}


static ron_status_t
ron_snapshot_lock(const char *dir, ron_fd_t *fd, ron_buf_t *why)
{
    char          path[RON_SNAPSHOT_PATH_MAX];
    ron_status_t  status;

    *fd = RON_FD_NONE;

    if (strlen(dir) + 32 > sizeof(path)) {
        ron_buf_put_cstr(why, "the name of the directory is too long");
        return RON_EINVAL;
    }

    status = ron_dir_make(dir);

    if (status == RON_OK) {
        (void) snprintf(path, sizeof(path), "%s/snapshot.lock", dir);
        status = ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE, fd);
    }

    if (status == RON_OK) {
        status = ron_file_lock(*fd);
    }

    if (status == RON_EFENCED) {
        ron_buf_printf(why, "%s: a snapshot is being taken into it right now",
                       dir);

    } else if (status != RON_OK) {
        ron_buf_printf(why, "%s: %s", dir, ron_port_error());
    }

    if (status != RON_OK) {
        ron_file_close(*fd);
        *fd = RON_FD_NONE;
    }

    return status;
}


/* Is what was copied before the front of what is there now? */

static ron_status_t
ron_snapshot_base(ron_reader_t *reader, ron_bulk_t *bulk, uint64_t *target,
    ron_buf_t *why)
{
    uint64_t          have;
    ron_row_t         row;
    ron_status_t      status;
    const ron_row_t  *head;

    *target = 0;
    status = ron_reader_head(reader, &row);

    for (unsigned i = 0; status == RON_AGAIN && i < RON_SNAPSHOT_TRIES; i++) {
        ron_sleep_us(RON_SNAPSHOT_NAP_US);
        status = ron_reader_head(reader, &row);
    }

    if (status == RON_OK) {
        *target = row.seq + row.count - 1;

    } else if (status != RON_ENOTFOUND) {
        ron_buf_put_cstr(why, ron_reader_error(reader));
        return status;
    }

    have = ron_bulk_seq(bulk);
    head = ron_bulk_head(bulk);

    if (*target < have) {
        ron_buf_printf(why, "the ledger ends at seq %llu and the snapshot at "
                       "seq %llu: the ledger has been cut",
                       (unsigned long long) *target,
                       (unsigned long long) have);
        return ron_corrupt();
    }

    if (have == 0) {
        return RON_OK;
    }

    status = ron_reader_row(reader, have, &row);

    if (status != RON_OK || row.seq != head->seq
        || !ron_hash_eq(&row.chain, &head->chain))
    {
        ron_buf_printf(why, "ledger and snapshot are not the same at seq "
                       "%llu: one of them was changed",
                       (unsigned long long) have);
        return status == RON_EIO ? RON_EIO : ron_corrupt();
    }

    return RON_OK;
}


static ron_status_t
ron_snapshot_copy(ron_reader_t *reader, ron_bulk_t *bulk, uint64_t target,
    ron_progress_pt progress, void *ctx, ron_buf_t *why)
{
    unsigned             tries;
    uint64_t             next;
    ron_status_t         status;
    ron_snapshot_copy_t  copy;

    copy = (ron_snapshot_copy_t) { bulk, target, why };
    tries = 0;

    while (ron_bulk_seq(bulk) < target) {

        if (progress != NULL && !progress(ctx, ron_bulk_seq(bulk), target)) {
            return RON_ECANCELED;
        }

        status = ron_reader_rows(reader, ron_bulk_seq(bulk) + 1,
                                 RON_SNAPSHOT_PAGE, ron_snapshot_row, &copy,
                                 &next);

        if (status == RON_AGAIN && ++tries < RON_SNAPSHOT_TRIES) {
            ron_sleep_us(RON_SNAPSHOT_NAP_US);
            continue;
        }

        if (status == RON_OK) {
            tries = 0;
            continue;
        }

        if (why->len == 0) {
            ron_buf_printf(why, "the journal cannot be read at seq %llu: %s",
                           (unsigned long long) ron_bulk_seq(bulk) + 1,
                           status == RON_ENOTFOUND
                           ? "no commit begins there"
                           : ron_reader_error(reader));
        }

        return status == RON_ENOTFOUND ? ron_corrupt() : status;
    }

    if (progress != NULL) {
        (void) progress(ctx, target, target);
    }

    return RON_OK;
}


static ron_status_t
ron_snapshot_row(void *ctx, const ron_row_t *row)
{
    ron_snapshot_copy_t  *copy = ctx;

    if (ron_bulk_seq(copy->bulk) >= copy->target) {
        return RON_OK;
    }

    return ron_bulk_add(copy->bulk, row, copy->why);
}


/* ---- the manifest ------------------------------------------------------- */

static ron_status_t
ron_snapshot_hash(const char *dir, uint64_t seq, ron_progress_pt progress,
    void *ctx, uint64_t *bytes, ron_hash_t *hash, ron_buf_t *why)
{
    char           path[RON_SNAPSHOT_PATH_MAX];
    size_t         n;
    uint8_t       *page;
    uint64_t       off;
    ron_fd_t       fd;
    ron_blake3_t   h;
    ron_status_t   status;

    (void) snprintf(path, sizeof(path), "%s/ledger.db", dir);
    ron_blake3_init(&h);

    page = malloc(RON_SNAPSHOT_READ);
    if (page == NULL) {
        return RON_ENOMEM;
    }

    status = ron_file_open(path, RON_OPEN_READ, &fd);

    if (status == RON_OK) {
        status = ron_file_size(fd, bytes);

        for (off = 0; status == RON_OK && off < *bytes; off += n) {
            n = (size_t) ron_min(RON_SNAPSHOT_READ, *bytes - off);
            status = ron_file_pread(fd, page, n, off);

            if (status == RON_OK) {
                ron_blake3_update(&h, page, n);
            }

            if (progress != NULL && !progress(ctx, seq, seq)) {
                ron_file_close(fd);
                free(page);
                return RON_ECANCELED;
            }
        }

        ron_file_close(fd);
    }

    ron_blake3_final(&h, hash);
    free(page);

    if (status != RON_OK) {
        ron_buf_printf(why, "%s: %s", path, ron_port_error());
    }

    return status;
}


static void
ron_snapshot_hex(const ron_hash_t *hash, char *hex)
{
    hex[ron_hex_encode((ron_str_t) { RON_HASH_LEN, hash->b }, hex)] = '\0';
}


static ron_status_t
ron_snapshot_sign(const char *dir, const ron_signer_t *signer,
    const ron_snapshot_info_t *info, ron_buf_t *why)
{
    char                   line[6][160], hex[2 * RON_HASH_LEN + 1];
    ron_buf_t              note;
    ron_status_t           status;
    ron_checkpoint_note_t  cp;

    memset(&cp, 0, sizeof(cp));
    cp.origin = ron_signer_name(signer);
    cp.size = info->seq;
    cp.root = info->root;
    cp.line_n = 6;

    (void) snprintf(line[0], sizeof(line[0]), "ron-snapshot 1");
    (void) snprintf(line[1], sizeof(line[1]), "ledger %u %s %" PRIu64,
                    info->meta.ledger_id, ron_digest_name(info->meta.digest),
                    info->meta.created_ms);
    (void) snprintf(line[2], sizeof(line[2]), "commits %" PRIu64
                    " from seq 1", info->commits);
    ron_snapshot_hex(&info->chain, hex);
    (void) snprintf(line[3], sizeof(line[3]), "chain %s", hex);
    (void) snprintf(line[4], sizeof(line[4]), "time %" PRIu64 " epoch %"
                    PRIu64, info->time_ms, info->epoch);
    ron_snapshot_hex(&info->file, hex);
    (void) snprintf(line[5], sizeof(line[5]), "ledger.db %" PRIu64 " b3:%s",
                    info->bytes, hex);

    for (unsigned i = 0; i < cp.line_n; i++) {
        cp.line[i] = ron_cstr(line[i]);
    }

    ron_buf_init(&note, RON_NOTE_MAX);
    status = ron_note_sign(signer, &cp, &note);

    if (status != RON_OK) {
        ron_buf_printf(why, "the manifest cannot be signed: %s",
                       ron_status_name(status));

    } else {
        status = ron_snapshot_write(dir, ron_buf_str(&note), why);
    }

    ron_buf_free(&note);

    return status;
}


static ron_status_t
ron_snapshot_write(const char *dir, ron_str_t note, ron_buf_t *why)
{
    char          path[RON_SNAPSHOT_PATH_MAX], temp[RON_SNAPSHOT_PATH_MAX];
    ron_fd_t      fd;
    ron_status_t  status;

    (void) snprintf(path, sizeof(path), "%s/" RON_SNAPSHOT_MANIFEST, dir);
    (void) snprintf(temp, sizeof(temp), "%s/" RON_SNAPSHOT_MANIFEST ".tmp",
                    dir);

    status = ron_file_open(temp, RON_OPEN_WRITE | RON_OPEN_CREATE, &fd);

    if (status == RON_OK) {
        status = ron_file_truncate(fd, 0);

        if (status == RON_OK) {
            status = ron_file_pwrite(fd, note.data, note.len, 0);
        }

        if (status == RON_OK) {
            status = ron_file_sync(fd);
        }

        ron_file_close(fd);
    }

    if (status == RON_OK) {
        status = ron_file_rename(temp, path);
    }

    if (status == RON_OK) {
        status = ron_dir_sync(dir);
    }

    if (status != RON_OK) {
        ron_buf_printf(why, "%s: %s", path, ron_port_error());
    }

    return status;
}


ron_status_t
ron_snapshot_manifest(const char *dir, ron_str_t public_key,
    ron_snapshot_info_t *info, ron_buf_t *why)
{
    char                   path[RON_SNAPSHOT_PATH_MAX];
    uint8_t                text[RON_NOTE_MAX];
    uint64_t               size;
    ron_fd_t               fd;
    ron_str_t              note;
    ron_status_t           status;
    ron_checkpoint_note_t  cp;

    memset(info, 0, sizeof(ron_snapshot_info_t));
    (void) snprintf(path, sizeof(path), "%s/" RON_SNAPSHOT_MANIFEST, dir);

    status = ron_file_open(path, RON_OPEN_READ, &fd);
    if (status != RON_OK) {
        ron_buf_printf(why, "%s: %s", path, ron_port_error());
        return status;
    }

    status = ron_file_size(fd, &size);
    size = ron_min(size, sizeof(text));

    if (status == RON_OK) {
        status = ron_file_pread(fd, text, (size_t) size, 0);
    }

    ron_file_close(fd);

    if (status != RON_OK) {
        ron_buf_printf(why, "%s: %s", path, ron_port_error());
        return status;
    }

    note = (ron_str_t) { (size_t) size, text };
    status = public_key.len ? ron_note_verify(note, public_key, &cp)
                            : ron_note_parse(note, &cp);

    if (status == RON_OK) {
        status = ron_snapshot_lines(&cp, info);
    }

    if (status != RON_OK) {
        memset(info, 0, sizeof(ron_snapshot_info_t));
        ron_buf_printf(why, "%s: %s", path, status == RON_ENOTFOUND
                       ? "not signed by the key given"
                       : status == RON_EINVAL ? "not the manifest of a "
                                                "snapshot"
                                              : "its signature is wrong");
        return ron_corrupt();
    }

    return RON_OK;
}


static ron_status_t
ron_snapshot_lines(const ron_checkpoint_note_t *cp, ron_snapshot_info_t *info)
{
    int       end[4] = { 0, 0, 0, 0 };
    char      line[RON_NOTE_LINES_MAX][160], digest[16];
    char      chain[2 * RON_HASH_LEN + 1], file[2 * RON_HASH_LEN + 1];
    unsigned  ledger_id;

    if (cp->line_n != 6) {
        return RON_EINVAL;
    }

    for (unsigned i = 0; i < cp->line_n; i++) {
        if (cp->line[i].len >= sizeof(line[i])) {
            return RON_EINVAL;
        }

        memcpy(line[i], cp->line[i].data, cp->line[i].len);
        line[i][cp->line[i].len] = '\0';
    }

    /* The lines are signed: a number that does not fit is none of ours. */
    /* NOLINTBEGIN(cert-err34-c) */

    if (strcmp(line[0], "ron-snapshot 1") != 0
        || sscanf(line[1], "ledger %u %15s %" SCNu64, &ledger_id, digest,
                  &info->meta.created_ms) != 3
        || sscanf(line[2], "commits %" SCNu64 " from seq 1%n", &info->commits,
                  &end[0]) != 1 || line[2][end[0]] != '\0' || end[0] == 0
        || sscanf(line[3], "chain %64s%n", chain, &end[1]) != 1
        || line[3][end[1]] != '\0'
        || sscanf(line[4], "time %" SCNu64 " epoch %" SCNu64 "%n",
                  &info->time_ms, &info->epoch, &end[2]) != 2
        || line[4][end[2]] != '\0'
        || sscanf(line[5], "ledger.db %" SCNu64 " b3:%64s%n", &info->bytes,
                  file, &end[3]) != 2 || line[5][end[3]] != '\0'
        || ledger_id > UINT16_MAX
        || ron_digest_parse(ron_cstr(digest), &info->meta.digest) != RON_OK
        || ron_hex_decode(ron_cstr(chain), info->chain.b, RON_HASH_LEN)
           != RON_OK
        || ron_hex_decode(ron_cstr(file), info->file.b, RON_HASH_LEN)
           != RON_OK)
    {
        return RON_EINVAL;
    }

    /* NOLINTEND(cert-err34-c) */

    info->meta.format = 1;
    info->meta.ledger_id = (uint16_t) ledger_id;
    info->seq = cp->size;
    info->root = cp->root;

    return RON_OK;
}


/* ---- restoring ---------------------------------------------------------- */

ron_status_t
ron_snapshot_restore(const char *snapshot, ron_str_t public_key,
    const char *dir, ron_progress_pt progress, void *ctx,
    ron_snapshot_info_t *info, ron_buf_t *why)
{
    char              url[RON_SNAPSHOT_PATH_MAX];
    uint64_t          bytes, begin_us;
    ron_hash_t        hash;
    ron_store_t      *source;
    ron_status_t      status;
    ron_store_conf_t  conf;

    memset(info, 0, sizeof(ron_snapshot_info_t));
    begin_us = ron_clock_mono_us();

    if (public_key.len == 0 || strlen(snapshot) + 32 > sizeof(url)) {
        ron_buf_put_cstr(why, public_key.len == 0
                         ? "a snapshot is restored by its public key only"
                         : "the name of the directory is too long");
        return RON_EINVAL;
    }

    status = ron_snapshot_manifest(snapshot, public_key, info, why);

    if (status == RON_OK) {
        status = ron_snapshot_hash(snapshot, 0, NULL, NULL, &bytes, &hash,
                                   why);
    }

    if (status != RON_OK) {
        return status;
    }

    /* Other bytes may be a copy that was interrupted: the rows will tell. */

    info->damaged_file = bytes != info->bytes
                         || !ron_hash_eq(&hash, &info->file);

    memset(&conf, 0, sizeof(conf));
    (void) snprintf(url, sizeof(url), "sqlite:%s", snapshot);
    conf.url = url;

    status = ron_store_open(&conf, &source);
    if (status != RON_OK) {
        ron_buf_put_cstr(why, ron_store_error(NULL));
        return status;
    }

    status = ron_snapshot_rebuild(source, dir, progress, ctx, info, why);
    ron_store_close(source);

    if (status == RON_OK) {
        status = ron_snapshot_audit(dir, progress, ctx, why);
    }

    info->took_us = ron_clock_mono_us() - begin_us;

    return status;
}


static ron_status_t
ron_snapshot_rebuild(ron_store_t *source, const char *dir,
    ron_progress_pt progress, void *ctx, ron_snapshot_info_t *info,
    ron_buf_t *why)
{
    uint64_t           commits;
    ron_bulk_t        *bulk;
    ron_reader_t      *reader;
    ron_status_t       status;
    ron_ledger_meta_t  meta;

    meta = *ron_store_meta(source);

    if (meta.ledger_id != info->meta.ledger_id
        || meta.digest != info->meta.digest
        || meta.created_ms != info->meta.created_ms)
    {
        ron_buf_put_cstr(why, "ledger.db is not of the ledger that the "
                         "manifest was signed for");
        return ron_corrupt();
    }

    status = ron_reader_open(source, &reader);
    if (status != RON_OK) {
        ron_buf_put_cstr(why, ron_store_error(source));
        return status;
    }

    status = ron_bulk_open(dir, &meta, &bulk, why);

    if (status == RON_OK && ron_bulk_seq(bulk) != 0) {
        ron_buf_printf(why, "%s is not empty", dir);
        status = RON_EEXIST;
    }

    if (status == RON_OK) {
        status = ron_snapshot_copy(reader, bulk, info->seq, progress, ctx,
                                   why);
    }

    if (status == RON_OK
        && (ron_bulk_seq(bulk) != info->seq
            || !ron_hash_eq(&ron_bulk_head(bulk)->root, &info->root)
            || !ron_hash_eq(&ron_bulk_head(bulk)->chain, &info->chain)))
    {
        ron_buf_printf(why, "root or chain at seq %llu is not what was signed",
                       (unsigned long long) info->seq);
        status = ron_corrupt();
    }

    if (status == RON_OK) {
        status = ron_bulk_checkpoint(bulk, reader, why);
    }

    ron_reader_close(reader);

    if (status != RON_OK) {
        ron_bulk_abort(bulk);
        return status;
    }

    return ron_bulk_finish(bulk, true, &commits, why);
}


static ron_status_t
ron_snapshot_audit(const char *dir, ron_progress_pt progress, void *ctx,
    ron_buf_t *why)
{
    char                url[RON_SNAPSHOT_PATH_MAX];
    ron_store_t        *store;
    ron_status_t        status;
    ron_store_conf_t    conf;
    ron_audit_conf_t    audit;
    ron_audit_report_t  report;

    memset(&conf, 0, sizeof(conf));
    memset(&audit, 0, sizeof(audit));
    (void) snprintf(url, sizeof(url), "sqlite:%s", dir);
    conf.url = url;
    audit.progress = progress;
    audit.ctx = ctx;

    status = ron_store_open(&conf, &store);
    if (status != RON_OK) {
        ron_buf_put_cstr(why, ron_store_error(NULL));
        return status;
    }

    status = ron_audit(store, &audit, &report);
    ron_store_close(store);

    if (status != RON_OK) {
        ron_buf_put_cstr(why, report.why);
    }

    return status;
}
