
#include "ron_export.h"
#include "ron_codec.h"
#include "ron_entry.h"
#include "ron_json.h"
#include "ron_port.h"
#include "ron_receipt.h"

#include <stdlib.h>


#define RON_EXPORT_PAGE    ((size_t) 4 << 20)
#define RON_EXPORT_FLUSH   ((size_t) 256 << 10)
#define RON_EXPORT_TRIES   200
#define RON_EXPORT_NAP_US  5000


typedef struct {
    ron_export_pt       sink;
    void               *ctx;
    ron_buf_t           text;
    ron_buf_t          *why;
    ron_export_info_t  *info;
    uint64_t            target;
    ron_row_t           prev;
    ron_tree_t          tree;
} ron_exporter_t;


static ron_status_t ron_export_rows(ron_exporter_t *ex, ron_reader_t *reader,
    ron_progress_pt progress, void *ctx);
static ron_status_t ron_export_row(void *ctx, const ron_row_t *row);
static void ron_export_commit(ron_buf_t *out, const ron_row_t *row);
static ron_status_t ron_export_entry(ron_exporter_t *ex, uint64_t seq,
    ron_str_t bytes);
static ron_status_t ron_export_flush(ron_exporter_t *ex, size_t above);
static void ron_export_header(ron_exporter_t *ex);
static void ron_export_end(ron_exporter_t *ex);
static void ron_export_put_hash(ron_buf_t *out, ron_str_t name,
    const ron_hash_t *hash);
static void ron_export_put_base64(ron_buf_t *out, ron_str_t name,
    ron_str_t bytes);


ron_status_t
ron_export(ron_store_t *store, ron_export_pt sink, void *ctx,
    ron_progress_pt progress, void *progress_ctx, ron_export_info_t *info,
    ron_buf_t *why)
{
    uint64_t         begin_us;
    ron_row_t        head;
    ron_reader_t    *reader;
    ron_status_t     status;
    ron_exporter_t  *ex;

    memset(info, 0, sizeof(ron_export_info_t));
    begin_us = ron_clock_mono_us();
    info->meta = *ron_store_meta(store);

    ex = calloc(1, sizeof(ron_exporter_t));
    if (ex == NULL) {
        return RON_ENOMEM;
    }

    ex->sink = sink;
    ex->ctx = ctx;
    ex->why = why;
    ex->info = info;
    ron_buf_init(&ex->text, 0);
    ron_tree_init(&ex->tree, info->meta.digest);
    ron_tree_root(&ex->tree, &ex->prev.root);

    status = ron_reader_open(store, &reader);

    if (status != RON_OK) {
        ron_buf_put_cstr(why, ron_store_error(store));

    } else {
        status = ron_reader_head(reader, &head);

        if (status == RON_OK || status == RON_ENOTFOUND) {
            ex->target = status == RON_OK ? head.seq + head.count - 1 : 0;
            ron_export_header(ex);
            status = ron_export_rows(ex, reader, progress, progress_ctx);

        } else {
            ron_buf_put_cstr(why, ron_reader_error(reader));
        }
    }

    if (status == RON_OK) {
        ron_export_end(ex);
        status = ron_export_flush(ex, 0);
    }

    info->seq = ex->target;
    info->root = ex->prev.root;
    info->chain = ex->prev.chain;
    info->took_us = ron_clock_mono_us() - begin_us;

    ron_reader_close(reader);
    ron_buf_free(&ex->text);
    free(ex);

    return status;
}


static ron_status_t
ron_export_rows(ron_exporter_t *ex, ron_reader_t *reader,
    ron_progress_pt progress, void *ctx)
{
    unsigned      tries;
    uint64_t      next;
    ron_status_t  status;

    tries = 0;

    while (ex->tree.size < ex->target) {

        if (progress != NULL && !progress(ctx, ex->tree.size, ex->target)) {
            return RON_ECANCELED;
        }

        status = ron_reader_rows(reader, ex->tree.size + 1, RON_EXPORT_PAGE,
                                 ron_export_row, ex, &next);

        if (status == RON_AGAIN && ++tries < RON_EXPORT_TRIES) {
            ron_sleep_us(RON_EXPORT_NAP_US);
            continue;
        }

        if (status != RON_OK) {
            if (ex->why->len == 0) {
                ron_buf_printf(ex->why, "the journal cannot be read at seq "
                               "%llu: %s; run verify",
                               (unsigned long long) ex->tree.size + 1,
                               status == RON_ENOTFOUND
                               ? "no commit begins there"
                               : ron_reader_error(reader));
            }

            return status == RON_ENOTFOUND ? ron_corrupt() : status;
        }

        tries = 0;
    }

    if (progress != NULL) {
        (void) progress(ctx, ex->target, ex->target);
    }

    return RON_OK;
}


static ron_status_t
ron_export_row(void *ctx, const ron_row_t *row)
{
    ron_rd_t         rd;
    ron_str_t        bytes;
    ron_hash_t       root, chain, leaf;
    ron_status_t     status;
    ron_exporter_t  *ex = ctx;

    if (ex->tree.size >= ex->target) {
        return RON_OK;
    }

    ron_export_commit(&ex->text, row);
    ron_rd_init(&rd, row->body);

    while ((status = ron_body_next(&rd, &bytes)) == RON_OK) {
        ron_digest_leaf(ex->info->meta.digest, bytes.data, bytes.len, &leaf);
        status = ron_tree_append(&ex->tree, &leaf, NULL, NULL);

        if (status == RON_OK) {
            status = ron_export_entry(ex, ex->tree.size, bytes);
        }

        if (status != RON_OK) {
            break;
        }
    }

    ron_tree_root(&ex->tree, &root);
    ron_row_chain(&ex->prev.chain, row, &chain);

    if (status != RON_ENOTFOUND
        || ex->tree.size != row->seq + row->count - 1
        || !ron_hash_eq(&row->prev_root, &ex->prev.root)
        || !ron_hash_eq(&row->root, &root)
        || !ron_hash_eq(&row->chain, &chain))
    {
        ron_buf_printf(ex->why, "the commit at seq %llu is damaged; run "
                       "verify", (unsigned long long) row->seq);
        return ron_corrupt();
    }

    ex->prev = *row;
    ex->prev.body = ron_null_str;
    ex->prev.notes = ron_null_str;
    ex->info->commits++;

    return ron_export_flush(ex, RON_EXPORT_FLUSH);
}


static ron_status_t
ron_export_flush(ron_exporter_t *ex, size_t above)
{
    ron_status_t  status;

    status = ron_buf_status(&ex->text);

    if (status == RON_OK && ex->text.len > above) {
        status = ex->sink(ex->ctx, ron_buf_str(&ex->text));
        ron_buf_reset(&ex->text);

        if (status != RON_OK && ex->why->len == 0) {
            ron_buf_printf(ex->why, "the text cannot be written: %s",
                           ron_status_name(status));
        }
    }

    return status;
}


/* ---- lines -------------------------------------------------------------- */

static void
ron_export_header(ron_exporter_t *ex)
{
    ron_buf_t                *out;
    const ron_ledger_meta_t  *meta;

    out = &ex->text;
    meta = &ex->info->meta;

    ron_buf_put_u8(out, '{');
    ron_json_put_member_u64(out, ron_str("ron_export"), 1);
    ron_json_put_member_u64(out, ron_str("ledger_id"), meta->ledger_id);
    ron_json_put_member(out, ron_str("digest"),
                        ron_cstr(ron_digest_name(meta->digest)));
    ron_json_put_member_u64(out, ron_str("created_ms"), meta->created_ms);
    ron_json_put_member_u64(out, ron_str("from"), 1);
    ron_json_put_member_u64(out, ron_str("to"), ex->target);
    ron_buf_put_cstr(out, "}\n");
}


static void
ron_export_end(ron_exporter_t *ex)
{
    ron_buf_t  *out;

    out = &ex->text;

    ron_buf_put_cstr(out, "{\"end\":{");
    ron_json_put_member_u64(out, ron_str("seq"), ex->target);
    ron_json_put_member_u64(out, ron_str("commits"), ex->info->commits);
    ron_export_put_hash(out, ron_str("root"), &ex->prev.root);
    ron_export_put_hash(out, ron_str("chain"), &ex->prev.chain);
    ron_buf_put_cstr(out, "}}\n");
}


static void
ron_export_commit(ron_buf_t *out, const ron_row_t *row)
{
    static const ron_hash_t  none;

    ron_buf_put_cstr(out, "{\"commit\":{");
    ron_json_put_member_u64(out, ron_str("seq"), row->seq);
    ron_json_put_member_u64(out, ron_str("count"), row->count);
    ron_json_put_member_u64(out, ron_str("epoch"), row->epoch);
    ron_json_put_member_u64(out, ron_str("time_ms"), row->time_ms);
    ron_export_put_hash(out, ron_str("prev_root"), &row->prev_root);
    ron_export_put_hash(out, ron_str("root"), &row->root);

    if (!ron_hash_eq(&row->checkpoint, &none)) {
        ron_export_put_hash(out, ron_str("checkpoint"), &row->checkpoint);
    }

    ron_export_put_hash(out, ron_str("chain"), &row->chain);

    if (row->notes.len != 0) {
        ron_export_put_base64(out, ron_str("notes"), row->notes);
    }

    ron_buf_put_cstr(out, "}}\n");
}


static ron_status_t
ron_export_entry(ron_exporter_t *ex, uint64_t seq, ron_str_t bytes)
{
    ron_entry_t   e;
    ron_status_t  status;

    status = ron_entry_decode(bytes, &e);

    if (status != RON_OK || e.seq != seq) {
        ron_buf_printf(ex->why, "entry %llu is damaged; run verify",
                       (unsigned long long) seq);
        return ron_corrupt();
    }

    ron_buf_put_u8(&ex->text, '{');
    ron_json_put_member_u64(&ex->text, ron_str("seq"), seq);
    ron_export_put_base64(&ex->text, ron_str("bytes"), bytes);
    ron_json_put_key(&ex->text, ron_str("entry"));
    status = ron_entry_put_json(&e, &ex->text);
    ron_buf_put_cstr(&ex->text, "}\n");

    return status;
}


static void
ron_export_put_hash(ron_buf_t *out, ron_str_t name, const ron_hash_t *hash)
{
    ron_json_put_key(out, name);
    ron_json_put_hex(out, (ron_str_t) { RON_HASH_LEN, hash->b });
}


static void
ron_export_put_base64(ron_buf_t *out, ron_str_t name, ron_str_t bytes)
{
    uint8_t  *room;

    ron_json_put_key(out, name);
    ron_buf_put_u8(out, '"');

    room = ron_buf_reserve(out, ron_base64_len(bytes.len));

    if (room != NULL) {
        out->len += ron_base64_encode(bytes, (char *) room);
    }

    ron_buf_put_u8(out, '"');
}
