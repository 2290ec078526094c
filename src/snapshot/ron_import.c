
/*
 * From the text of ron_export.h back to a ledger: line by line, each checked
 * before it is believed, into a ledger in bulk.
 */

#include "ron_export.h"
#include "ron_bulk.h"
#include "ron_codec.h"
#include "ron_entry.h"
#include "ron_json.h"
#include "ron_port.h"
#include "ron_receipt.h"

#include <stdio.h>
#include <stdlib.h>


#define RON_IMPORT_PATH_MAX  512


struct ron_import_s {
    char               dir[RON_IMPORT_PATH_MAX];
    uint64_t           line;
    uint64_t           left;            /* entries of the commit in hand */
    uint64_t           commits;
    uint64_t           begin_us;
    bool               ended;
    ron_bulk_t        *bulk;
    ron_row_t          row;
    ron_buf_t          body;
    ron_buf_t          notes;
    ron_buf_t          shown;
    ron_json_doc_t     doc;
    ron_export_info_t  info;
};


typedef struct {
    uint64_t   version;
    uint64_t   ledger_id;
    uint64_t   created_ms;
    uint64_t   from;
    uint64_t   to;
    ron_str_t  digest;
} ron_import_header_t;

typedef struct {
    uint64_t   seq;
    uint64_t   count;
    uint64_t   epoch;
    uint64_t   time_ms;
    ron_str_t  prev_root;
    ron_str_t  root;
    ron_str_t  checkpoint;
    ron_str_t  chain;
    ron_str_t  notes;
} ron_import_commit_t;

typedef struct {
    uint64_t           seq;
    ron_str_t          bytes;
    const ron_json_t  *entry;
} ron_import_entry_t;

typedef struct {
    uint64_t   seq;
    uint64_t   commits;
    ron_str_t  root;
    ron_str_t  chain;
} ron_import_end_t;


static const ron_json_field_t  ron_import_header_fields[] = {
    RON_JSON_FIELD(ron_import_header_t, version, "ron_export", U64,
                   RON_JSON_REQUIRED, 1, 1, NULL),
    RON_JSON_FIELD(ron_import_header_t, ledger_id, "ledger_id", U64,
                   RON_JSON_REQUIRED, 1, UINT16_MAX, NULL),
    RON_JSON_FIELD(ron_import_header_t, digest, "digest", STRING,
                   RON_JSON_REQUIRED, 1, 16, NULL),
    RON_JSON_FIELD(ron_import_header_t, created_ms, "created_ms", U64,
                   RON_JSON_REQUIRED, 0, 0, NULL),
    RON_JSON_FIELD(ron_import_header_t, from, "from", U64,
                   RON_JSON_REQUIRED, 1, 1, NULL),
    RON_JSON_FIELD(ron_import_header_t, to, "to", U64,
                   RON_JSON_REQUIRED, 0, 0, NULL),
};

static const ron_json_field_t  ron_import_commit_fields[] = {
    RON_JSON_FIELD(ron_import_commit_t, seq, "seq", U64, RON_JSON_REQUIRED,
                   0, 0, NULL),
    RON_JSON_FIELD(ron_import_commit_t, count, "count", U64,
                   RON_JSON_REQUIRED, 0, 0, NULL),
    RON_JSON_FIELD(ron_import_commit_t, epoch, "epoch", U64,
                   RON_JSON_REQUIRED, 0, INT64_MAX, NULL),
    RON_JSON_FIELD(ron_import_commit_t, time_ms, "time_ms", U64,
                   RON_JSON_REQUIRED, 0, INT64_MAX, NULL),
    RON_JSON_FIELD(ron_import_commit_t, prev_root, "prev_root", STRING,
                   RON_JSON_REQUIRED, 64, 64, NULL),
    RON_JSON_FIELD(ron_import_commit_t, root, "root", STRING,
                   RON_JSON_REQUIRED, 64, 64, NULL),
    RON_JSON_FIELD(ron_import_commit_t, checkpoint, "checkpoint", STRING, 0,
                   64, 64, NULL),
    RON_JSON_FIELD(ron_import_commit_t, chain, "chain", STRING,
                   RON_JSON_REQUIRED, 64, 64, NULL),
    RON_JSON_FIELD(ron_import_commit_t, notes, "notes", STRING, 0, 0, 0,
                   NULL),
};

static const ron_json_field_t  ron_import_entry_fields[] = {
    RON_JSON_FIELD(ron_import_entry_t, seq, "seq", U64, RON_JSON_REQUIRED,
                   0, 0, NULL),
    RON_JSON_FIELD(ron_import_entry_t, bytes, "bytes", STRING,
                   RON_JSON_REQUIRED, 1, RON_ENTRY_MAX * 2, NULL),
    RON_JSON_FIELD(ron_import_entry_t, entry, "entry", OBJECT,
                   RON_JSON_REQUIRED, 0, 0, NULL),
};

static const ron_json_field_t  ron_import_end_fields[] = {
    RON_JSON_FIELD(ron_import_end_t, seq, "seq", U64, RON_JSON_REQUIRED,
                   0, 0, NULL),
    RON_JSON_FIELD(ron_import_end_t, commits, "commits", U64,
                   RON_JSON_REQUIRED, 0, 0, NULL),
    RON_JSON_FIELD(ron_import_end_t, root, "root", STRING, RON_JSON_REQUIRED,
                   64, 64, NULL),
    RON_JSON_FIELD(ron_import_end_t, chain, "chain", STRING,
                   RON_JSON_REQUIRED, 64, 64, NULL),
};


static ron_status_t ron_import_header(ron_import_t *im,
    const ron_json_t *root, ron_buf_t *why);
static ron_status_t ron_import_commit(ron_import_t *im,
    const ron_json_t *object, ron_buf_t *why);
static ron_status_t ron_import_entry(ron_import_t *im, ron_str_t line,
    const ron_json_t *root, ron_buf_t *why);
static ron_status_t ron_import_end(ron_import_t *im, const ron_json_t *object,
    ron_buf_t *why);
static ron_status_t ron_import_bind(ron_import_t *im,
    const ron_json_t *object, const ron_json_field_t *fields, size_t n,
    void *dst, ron_buf_t *why);
static ron_status_t ron_import_refuse(ron_import_t *im, ron_buf_t *why,
    const char *what);
static ron_status_t ron_import_hash(ron_str_t text, ron_hash_t *hash);


ron_status_t
ron_import_open(const char *dir, ron_import_t **import, ron_buf_t *why)
{
    ron_import_t  *im;

    *import = NULL;

    if (strlen(dir) + 32 > RON_IMPORT_PATH_MAX) {
        ron_buf_put_cstr(why, "the name of the directory is too long");
        return RON_EINVAL;
    }

    im = calloc(1, sizeof(ron_import_t));
    if (im == NULL) {
        return RON_ENOMEM;
    }

    memcpy(im->dir, dir, strlen(dir));
    im->begin_us = ron_clock_mono_us();
    ron_buf_init(&im->body, 0);
    ron_buf_init(&im->notes, 0);
    ron_buf_init(&im->shown, 0);
    ron_json_doc_init(&im->doc, 0);

    *import = im;

    return RON_OK;
}


ron_status_t
ron_import_line(ron_import_t *im, ron_str_t line, ron_buf_t *why)
{
    ron_status_t        status;
    ron_json_error_t    err;
    ron_json_limits_t   limits;
    const ron_json_t   *root, *object;

    im->line++;
    limits = (ron_json_limits_t) { .max_len = RON_EXPORT_LINE_MAX };
    status = ron_json_parse(&im->doc, line, &limits, &root, &err);

    if (status != RON_OK) {
        return status == RON_ENOMEM ? status
                                    : ron_import_refuse(im, why, err.reason);
    }

    if (ron_json_kind(root) != RON_JSON_OBJECT) {
        return ron_import_refuse(im, why, "not an object");
    }

    if (im->ended) {
        return ron_import_refuse(im, why, "there is more after the last line");
    }

    if (im->bulk == NULL) {
        return ron_import_header(im, root, why);
    }

    if (im->left != 0) {
        return ron_import_entry(im, line, root, why);
    }

    object = ron_json_get(root, ron_str("commit"));

    if (object != NULL && ron_json_n(root) == 1
        && ron_json_kind(object) == RON_JSON_OBJECT)
    {
        return ron_import_commit(im, object, why);
    }

    object = ron_json_get(root, ron_str("end"));

    if (object != NULL && ron_json_n(root) == 1
        && ron_json_kind(object) == RON_JSON_OBJECT)
    {
        return ron_import_end(im, object, why);
    }

    return ron_import_refuse(im, why, "neither a commit nor the end");
}


static ron_status_t
ron_import_header(ron_import_t *im, const ron_json_t *root, ron_buf_t *why)
{
    ron_status_t         status;
    ron_import_header_t  header;

    status = ron_import_bind(im, root, ron_import_header_fields,
                             ron_array_n(ron_import_header_fields), &header,
                             why);
    if (status != RON_OK) {
        return status;
    }

    im->info.meta.format = 1;
    im->info.meta.ledger_id = (uint16_t) header.ledger_id;
    im->info.meta.created_ms = header.created_ms;

    if (ron_digest_parse(header.digest, &im->info.meta.digest) != RON_OK) {
        return ron_import_refuse(im, why, "a digest that is not known");
    }

    status = ron_bulk_open(im->dir, &im->info.meta, &im->bulk, why);

    if (status == RON_OK && ron_bulk_seq(im->bulk) != 0) {
        ron_buf_printf(why, "%s is not empty", im->dir);
        status = RON_EEXIST;
    }

    return status;
}


static ron_status_t
ron_import_commit(ron_import_t *im, const ron_json_t *object, ron_buf_t *why)
{
    size_t               len;
    uint8_t             *room;
    ron_status_t         status;
    ron_import_commit_t  c;

    status = ron_import_bind(im, object, ron_import_commit_fields,
                             ron_array_n(ron_import_commit_fields), &c, why);
    if (status != RON_OK) {
        return status;
    }

    memset(&im->row, 0, sizeof(im->row));
    ron_buf_reset(&im->body);
    ron_buf_reset(&im->notes);

    im->row.seq = c.seq;
    im->row.count = c.count;
    im->row.epoch = c.epoch;
    im->row.time_ms = c.time_ms;

    if (ron_import_hash(c.prev_root, &im->row.prev_root) != RON_OK
        || ron_import_hash(c.root, &im->row.root) != RON_OK
        || ron_import_hash(c.chain, &im->row.chain) != RON_OK
        || (c.checkpoint.len != 0
            && ron_import_hash(c.checkpoint, &im->row.checkpoint) != RON_OK))
    {
        return ron_import_refuse(im, why, "a hash that is not hexadecimal");
    }

    if (c.notes.len != 0) {
        room = ron_buf_reserve(&im->notes, c.notes.len);

        if (room == NULL) {
            return RON_ENOMEM;
        }

        if (ron_base64_decode(c.notes, room, c.notes.len, &len) != RON_OK) {
            return ron_import_refuse(im, why, "notes that are not base64");
        }

        im->notes.len += len;
    }

    if (c.seq != ron_bulk_seq(im->bulk) + 1 || c.count == 0) {
        return ron_import_refuse(im, why, "a commit that does not follow the "
                                 "one before");
    }

    im->left = c.count;

    return RON_OK;
}


static ron_status_t
ron_import_entry(ron_import_t *im, ron_str_t line, const ron_json_t *root,
    ron_buf_t *why)
{
    size_t               len;
    uint8_t              bytes[RON_ENTRY_MAX];
    ron_str_t            shown;
    ron_entry_t          e;
    ron_status_t         status;
    ron_import_entry_t   in;

    status = ron_import_bind(im, root, ron_import_entry_fields,
                             ron_array_n(ron_import_entry_fields), &in, why);
    if (status != RON_OK) {
        return status;
    }

    if (ron_base64_decode(in.bytes, bytes, sizeof(bytes), &len) != RON_OK
        || ron_entry_decode((ron_str_t) { len, bytes }, &e) != RON_OK)
    {
        return ron_import_refuse(im, why, "bytes that are not an entry");
    }

    /* What people read is what is imported, to the character. */

    ron_buf_reset(&im->shown);
    status = ron_entry_put_json(&e, &im->shown);
    if (status != RON_OK) {
        return status;
    }

    shown = ron_buf_str(&im->shown);

    if (e.seq != in.seq || line.len - in.entry->off < shown.len
        || memcmp(line.data + in.entry->off, shown.data, shown.len) != 0)
    {
        return ron_import_refuse(im, why, "\"entry\" does not say what "
                                 "\"bytes\" says");
    }

    ron_body_put(&im->body, (ron_str_t) { len, bytes });
    im->left--;

    if (im->left != 0) {
        return ron_buf_status(&im->body);
    }

    im->row.body = ron_buf_str(&im->body);
    im->row.notes = ron_buf_str(&im->notes);
    im->commits++;

    status = ron_buf_status(&im->body);

    return status == RON_OK ? ron_bulk_add(im->bulk, &im->row, why) : status;
}


static ron_status_t
ron_import_end(ron_import_t *im, const ron_json_t *object, ron_buf_t *why)
{
    ron_hash_t         root, chain;
    ron_status_t       status;
    ron_import_end_t   end;
    const ron_row_t   *head;

    status = ron_import_bind(im, object, ron_import_end_fields,
                             ron_array_n(ron_import_end_fields), &end, why);
    if (status != RON_OK) {
        return status;
    }

    head = ron_bulk_head(im->bulk);

    if (ron_import_hash(end.root, &root) != RON_OK
        || ron_import_hash(end.chain, &chain) != RON_OK
        || end.seq != ron_bulk_seq(im->bulk) || end.commits != im->commits
        || !ron_hash_eq(&root, &head->root)
        || !ron_hash_eq(&chain, &head->chain))
    {
        (void) ron_import_refuse(im, why, "seq, root or chain at the end are "
                                 "not those of what came before");
        return ron_corrupt();
    }

    im->ended = true;
    im->info.seq = end.seq;
    im->info.commits = end.commits;
    im->info.root = root;
    im->info.chain = chain;

    return RON_OK;
}


ron_status_t
ron_import_finish(ron_import_t *im, ron_progress_pt progress, void *ctx,
    ron_export_info_t *info, ron_buf_t *why)
{
    char                 url[RON_IMPORT_PATH_MAX + 8];
    ron_store_t         *store;
    ron_status_t         status;
    ron_store_conf_t     conf;
    ron_audit_conf_t     audit;
    ron_audit_report_t   report;

    memset(info, 0, sizeof(ron_export_info_t));

    if (!im->ended) {
        ron_buf_printf(why, "the text ends at line %llu without its last "
                       "line: it is not whole",
                       (unsigned long long) im->line);
        ron_import_abort(im);
        return RON_EINVAL;
    }

    status = ron_bulk_finish(im->bulk, true, NULL, why);
    im->bulk = NULL;

    memset(&conf, 0, sizeof(conf));
    memset(&audit, 0, sizeof(audit));
    (void) snprintf(url, sizeof(url), "sqlite:%s", im->dir);
    conf.url = url;
    audit.progress = progress;
    audit.ctx = ctx;

    if (status == RON_OK) {
        status = ron_store_open(&conf, &store);

        if (status != RON_OK) {
            ron_buf_put_cstr(why, ron_store_error(NULL));

        } else {
            status = ron_audit(store, &audit, &report);
            ron_store_close(store);

            if (status != RON_OK) {
                ron_buf_put_cstr(why, report.why);
            }
        }
    }

    *info = im->info;
    info->took_us = ron_clock_mono_us() - im->begin_us;
    ron_import_abort(im);

    return status;
}


void
ron_import_abort(ron_import_t *im)
{
    if (im == NULL) {
        return;
    }

    ron_bulk_abort(im->bulk);
    ron_buf_free(&im->body);
    ron_buf_free(&im->notes);
    ron_buf_free(&im->shown);
    ron_json_doc_free(&im->doc);
    free(im);
}


static ron_status_t
ron_import_bind(ron_import_t *im, const ron_json_t *object,
    const ron_json_field_t *fields, size_t n, void *dst, ron_buf_t *why)
{
    ron_status_t      status;
    ron_json_error_t  err;

    status = ron_json_bind(object, fields, n, dst, NULL, &err);

    if (status == RON_EINVAL) {
        ron_buf_printf(why, "line %llu: %s%s%s",
                       (unsigned long long) im->line, err.name,
                       err.name[0] ? ": " : "", err.reason);
    }

    return status;
}


static ron_status_t
ron_import_refuse(ron_import_t *im, ron_buf_t *why, const char *what)
{
    ron_buf_printf(why, "line %llu: %s", (unsigned long long) im->line, what);

    return RON_EINVAL;
}


static ron_status_t
ron_import_hash(ron_str_t text, ron_hash_t *hash)
{
    return ron_hex_decode(text, hash->b, RON_HASH_LEN);
}
