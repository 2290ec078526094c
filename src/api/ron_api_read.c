
/*
 * Bodies that come from the ledger's files.  Everything here blocks, and runs
 * where that is allowed.
 */

#include "ron_amount.h"
#include "ron_api.h"
#include "ron_codec.h"
#include "ron_digest.h"
#include "ron_history.h"
#include "ron_note.h"
#include "ron_port.h"
#include "ron_receipt.h"

#include <stdlib.h>


#define RON_API_ROWS_BYTES   ((size_t) 256 << 10)
#define RON_API_ENTRIES_MAX  1000
#define RON_API_LEVEL_MAX    (RON_TILE_LEVELS - 1)

/* A hash in a list: quoted, behind a comma; and a proof without its path. */
#define RON_API_HASH_ROOM    (2 * RON_HASH_LEN + 3)
#define RON_API_PROOF_ROOM   (2 * RON_AMOUNT_MAX + 2 * RON_API_HASH_ROOM + 64)
#define RON_API_HEAD_TRIES   50
#define RON_API_HEAD_WAIT_US 1000


typedef struct {
    ron_buf_t  *out;
    uint64_t    next;               /* the first seq that is wanted */
    uint64_t    last;               /* and the last, or how many rows */
    uint64_t    n;
    bool        raw;                /* tlog-tiles entries, not JSON */
} ron_api_walk_t;

typedef struct {
    bool      entries;
    uint8_t   level;
    uint16_t  width;
    uint64_t  index;
} ron_api_tile_t;

typedef struct {
    ron_reader_t  *reader;
    ron_str_t      account;
    uint64_t       last;            /* 0: none yet */
    ron_buf_t      bytes;
    ron_buf_t     *out;
} ron_api_named_t;


static ron_status_t ron_api_entry_named(void *ctx, uint64_t seq);
static ron_status_t ron_api_size(ron_reader_t *reader, uint64_t *size,
    ron_hash_t *root);
static ron_status_t ron_api_root_row(void *ctx, const ron_row_t *row);
static ron_status_t ron_api_entry_row(void *ctx, const ron_row_t *row);
static ron_status_t ron_api_walk(ron_reader_t *reader, ron_api_walk_t *walk);
static ron_status_t ron_api_head(ron_store_t *store, uint64_t seq,
    ron_buf_t *note, uint64_t *size);
static void ron_api_put_path(ron_buf_t *out, const ron_proof_t *proof);
static void ron_api_put_hash(ron_buf_t *out, ron_str_t name,
    const ron_hash_t *hash);
static ron_status_t ron_api_tile_parse(ron_str_t path, ron_api_tile_t *t);
static ron_status_t ron_api_tile_index(ron_str_t path, uint64_t *index);


static ron_status_t
ron_api_size(ron_reader_t *reader, uint64_t *size, ron_hash_t *root)
{
    ron_row_t     row;
    ron_status_t  rc;

    *size = 0;

    rc = ron_reader_head(reader, &row);

    if (rc == RON_ENOTFOUND) {
        return RON_OK;
    }

    if (rc == RON_OK) {
        *size = row.seq + row.count - 1;
        *root = row.root;
    }

    return rc;
}


ron_status_t
ron_api_entry_read(ron_reader_t *reader, uint64_t seq, ron_buf_t *bytes,
    ron_entry_t *e)
{
    uint64_t      i;
    ron_rd_t      body;
    ron_str_t     s;
    ron_row_t     row;
    ron_status_t  rc;

    memset(e, 0, sizeof(ron_entry_t));

    if (seq == 0) {
        return RON_ENOTFOUND;
    }

    rc = ron_reader_row(reader, seq, &row);
    if (rc != RON_OK) {
        return rc;
    }

    s = ron_null_str;
    ron_rd_init(&body, row.body);

    for (i = row.seq; i <= seq; i++) {
        rc = ron_body_next(&body, &s);
        if (rc != RON_OK) {
            return ron_corrupt();
        }
    }

    ron_buf_reset(bytes);
    ron_buf_put(bytes, s.data, s.len);

    rc = ron_buf_status(bytes);
    if (rc != RON_OK) {
        return rc;
    }

    return ron_entry_decode(ron_buf_str(bytes), e);
}


ron_status_t
ron_api_roots(ron_reader_t *reader, uint64_t since, uint64_t limit,
    ron_buf_t *out)
{
    uint64_t        seq;
    ron_status_t    rc;
    ron_api_walk_t  walk;

    memset(&walk, 0, sizeof(ron_api_walk_t));

    walk.out = out;
    walk.next = since;
    walk.last = limit;

    ron_buf_put_cstr(out, "{\"roots\":[");

    rc = since == UINT64_MAX ? RON_ENOTFOUND : RON_OK;
    seq = since + 1;

    while (rc == RON_OK && walk.n < limit) {
        rc = ron_reader_rows(reader, seq, RON_API_ROWS_BYTES,
                             ron_api_root_row, &walk, &seq);
    }

    if (rc != RON_OK && rc != RON_ENOTFOUND && rc != RON_AGAIN) {
        return rc;
    }

    ron_buf_put_u8(out, ']');
    ron_json_put_member_u64(out, ron_str("next"), walk.next);
    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


static ron_status_t
ron_api_root_row(void *ctx, const ron_row_t *row)
{
    ron_api_walk_t  *walk = ctx;

    if (walk->n == walk->last) {
        return RON_AGAIN;
    }

    walk->n++;
    walk->next = row->seq + row->count - 1;

    ron_json_put_comma(walk->out);
    ron_buf_put_u8(walk->out, '{');
    ron_json_put_member_u64(walk->out, ron_str("seq"), walk->next);
    ron_api_put_hash(walk->out, ron_str("root"), &row->root);
    ron_json_put_member_u64(walk->out, ron_str("ts"), row->time_ms);
    ron_buf_put_u8(walk->out, '}');

    return RON_OK;
}


ron_status_t
ron_api_entries(ron_reader_t *reader, uint64_t from, uint64_t to,
    ron_buf_t *out, uint64_t *watermark)
{
    ron_hash_t      root;
    ron_status_t    rc;
    ron_api_walk_t  walk;

    rc = ron_api_size(reader, watermark, &root);
    if (rc != RON_OK) {
        return rc;
    }

    memset(&walk, 0, sizeof(ron_api_walk_t));

    walk.out = out;
    walk.next = ron_max(from, 1);
    walk.last = to == 0 ? *watermark : ron_min(to, *watermark);

    if (walk.last >= walk.next
        && walk.last - walk.next >= RON_API_ENTRIES_MAX)
    {
        walk.last = walk.next + RON_API_ENTRIES_MAX - 1;
    }

    ron_buf_put_cstr(out, "{\"entries\":[");

    rc = ron_api_walk(reader, &walk);
    if (rc != RON_OK) {
        return rc;
    }

    ron_buf_put_u8(out, ']');
    ron_json_put_member_u64(out, ron_str("next"), walk.next);
    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


static ron_status_t
ron_api_walk(ron_reader_t *reader, ron_api_walk_t *walk)
{
    uint64_t      seq;
    ron_status_t  rc;

    rc = RON_OK;

    while (rc == RON_OK && walk->next <= walk->last) {
        rc = ron_reader_rows(reader, walk->next, RON_API_ROWS_BYTES,
                             ron_api_entry_row, walk, &seq);
    }

    return rc == RON_AGAIN || rc == RON_ENOTFOUND ? RON_OK : rc;
}


static ron_status_t
ron_api_entry_row(void *ctx, const ron_row_t *row)
{
    ron_api_walk_t  *walk = ctx;

    uint64_t      seq;
    ron_rd_t      body;
    ron_str_t     s;
    ron_entry_t   e;
    ron_status_t  rc;

    ron_rd_init(&body, row->body);

    for (seq = row->seq; seq < row->seq + row->count; seq++) {

        if (seq > walk->last) {
            return RON_AGAIN;
        }

        rc = ron_body_next(&body, &s);
        if (rc != RON_OK) {
            return ron_corrupt();
        }

        if (seq < walk->next) {
            continue;
        }

        if (walk->raw) {
            ron_buf_put_u16(walk->out, (uint16_t) s.len);
            ron_buf_put_str(walk->out, s);

        } else {
            if (ron_entry_decode(s, &e) != RON_OK) {
                return ron_corrupt();
            }

            ron_json_put_comma(walk->out);

            rc = ron_entry_put_json(&e, walk->out);
            if (rc != RON_OK) {
                return rc;
            }
        }

        walk->next = seq + 1;
        walk->n++;
    }

    return RON_OK;
}


ron_status_t
ron_api_inclusion(ron_reader_t *reader, ron_digest_t digest, uint64_t seq,
    uint64_t size, ron_buf_t *out)
{
    uint64_t           head;
    ron_hash_t         root, leaf;
    ron_proof_t        proof;
    ron_entry_t        e;
    ron_status_t       rc;
    ron_tile_reader_t  tiles;

    rc = ron_api_size(reader, &head, &root);
    if (rc != RON_OK) {
        return rc;
    }

    size = size == 0 ? head : size;

    if (seq == 0 || seq > size || size > head) {
        return RON_ERANGE;
    }

    rc = ron_api_entry_read(reader, seq, out, &e);
    if (rc != RON_OK) {
        return rc;
    }

    ron_digest_leaf(digest, out->data, out->len, &leaf);
    ron_buf_reset(out);

    tiles.reader = reader;
    tiles.digest = digest;

    rc = ron_proof_inclusion(digest, seq - 1, size, ron_tile_from_reader,
                             &tiles, &proof);
    if (rc != RON_OK) {
        return rc;
    }

    rc = ron_proof_root(digest, size, ron_tile_from_reader, &tiles, &root);
    if (rc != RON_OK) {
        return rc;
    }

    return ron_api_inclusion_put(out, seq, size, &leaf, &root, &proof);
}


ron_status_t
ron_api_inclusion_cached(ron_reader_t *reader, ron_nodes_t *nodes,
    ron_digest_t digest, uint64_t seq, uint64_t size, ron_buf_t *out)
{
    uint64_t      head;
    ron_hash_t    root;
    ron_status_t  rc;

    rc = ron_api_size(reader, &head, &root);
    if (rc != RON_OK) {
        return rc;
    }

    size = size == 0 ? head : size;

    if (seq == 0 || seq > size || size > head) {
        return RON_ERANGE;
    }

    return ron_api_inclusion_at(reader, nodes, digest, seq, size, out);
}


ron_status_t
ron_api_inclusion_at(ron_reader_t *reader, ron_nodes_t *nodes,
    ron_digest_t digest, uint64_t seq, uint64_t size, ron_buf_t *out)
{
    ron_hash_t         root, leaf;
    ron_proof_t        proof;
    ron_status_t       rc;
    ron_tile_reader_t  tiles;

    tiles.reader = reader;
    tiles.digest = digest;

    rc = ron_nodes_inclusion(nodes, seq - 1, size, ron_tile_from_reader,
                             &tiles, &leaf, &root, &proof);

    if (rc == RON_AGAIN) {
        return ron_api_inclusion(reader, digest, seq, size, out);
    }

    return rc == RON_OK ? ron_api_inclusion_put(out, seq, size, &leaf, &root,
                                                &proof)
                        : rc;
}


ron_status_t
ron_api_inclusion_put(ron_buf_t *out, uint64_t seq, uint64_t size,
    const ron_hash_t *leaf, const ron_hash_t *root, const ron_proof_t *proof)
{
    /* room for all of it, so that nothing grows in between */

    (void) ron_buf_reserve(out, RON_API_PROOF_ROOM + RON_API_HASH_ROOM
                                                     * proof->n);

    ron_buf_put_u8(out, '{');
    ron_json_put_member_u64(out, ron_str("seq"), seq);
    ron_json_put_member_u64(out, ron_str("size"), size);
    ron_api_put_hash(out, ron_str("leaf"), leaf);
    ron_api_put_hash(out, ron_str("root"), root);
    ron_api_put_path(out, proof);
    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


ron_status_t
ron_api_consistency(ron_reader_t *reader, ron_digest_t digest, uint64_t from,
    uint64_t to, ron_buf_t *out)
{
    uint64_t           head;
    ron_hash_t         from_root, to_root;
    ron_proof_t        proof;
    ron_status_t       rc;
    ron_tile_reader_t  tiles;

    rc = ron_api_size(reader, &head, &to_root);
    if (rc != RON_OK) {
        return rc;
    }

    to = to == 0 ? head : to;

    if (from > to || to > head) {
        return RON_ERANGE;
    }

    tiles.reader = reader;
    tiles.digest = digest;

    rc = ron_proof_consistency(digest, from, to, ron_tile_from_reader,
                               &tiles, &proof);

    if (rc == RON_OK) {
        rc = ron_proof_root(digest, from, ron_tile_from_reader, &tiles,
                            &from_root);
    }

    if (rc == RON_OK) {
        rc = ron_proof_root(digest, to, ron_tile_from_reader, &tiles,
                            &to_root);
    }

    if (rc != RON_OK) {
        return rc;
    }

    ron_buf_put_u8(out, '{');
    ron_json_put_member_u64(out, ron_str("from"), from);
    ron_json_put_member_u64(out, ron_str("to"), to);
    ron_api_put_hash(out, ron_str("from_root"), &from_root);
    ron_api_put_hash(out, ron_str("to_root"), &to_root);
    ron_api_put_path(out, &proof);
    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


/*
 * The signed head that holds `seq`.  Heads are signed after the answers went
 * out, so that of an entry which was just committed may be on its way.
 */

static ron_status_t
ron_api_head(ron_store_t *store, uint64_t seq, ron_buf_t *note, uint64_t *size)
{
    ron_checkpoint_note_t  cp;

    for (unsigned i = 0; i < RON_API_HEAD_TRIES; i++) {
        ron_buf_reset(note);

        if (ron_store_head_read(store, note) == RON_OK
            && ron_note_parse(ron_buf_str(note), &cp) == RON_OK
            && cp.size >= seq)
        {
            *size = cp.size;
            return RON_OK;
        }

        ron_sleep_us(RON_API_HEAD_WAIT_US);
    }

    ron_buf_reset(note);

    return RON_ENOTFOUND;
}


/*
 * Of whom an answer was read before, the head that is read now holds it.  Where
 * nobody signs any more, the newest that there is.
 */

ron_status_t
ron_api_checkpoint(ron_store_t *store, ron_reader_t *reader, ron_buf_t *out)
{
    uint64_t      size, held;
    ron_hash_t    root;
    ron_status_t  rc;

    rc = ron_api_size(reader, &size, &root);

    if (rc == RON_OK && size != 0
        && ron_api_head(store, size, out, &held) != RON_OK)
    {
        rc = ron_store_head_read(store, out);
    }

    return rc == RON_OK && out->len == 0 ? RON_ENOTFOUND : rc;
}


ron_status_t
ron_api_receipt_proof(ron_store_t *store, ron_reader_t *reader,
    ron_nodes_t *nodes, uint64_t seq, ron_buf_t *out)
{
    ron_buf_t         entry;
    ron_entry_t       e;
    ron_status_t      rc;
    ron_api_proofs_t  proofs;

    ron_buf_init(&entry, RON_ENTRY_MAX);

    rc = ron_api_entry_read(reader, seq, &entry, &e);

    if (rc == RON_OK) {
        rc = ron_receipt_put(&e, out);
    }

    if (rc == RON_OK) {
        rc = ron_api_proofs_begin(&proofs, store, reader, nodes, seq);

        if (rc == RON_OK) {
            rc = ron_api_proofs_put(&proofs, seq, ron_buf_str(&entry), out);
        }

        ron_api_proofs_end(&proofs);
    }

    ron_buf_free(&entry);

    return rc;
}


ron_status_t
ron_api_batch_proof(ron_store_t *store, ron_reader_t *reader,
    ron_nodes_t *nodes, ron_str_t payload, size_t max, ron_buf_t *out)
{
    uint16_t           status;
    uint64_t           seq;
    ron_result_t      *results;
    ron_status_t       rc;
    ron_outcome_t      outcome;
    ron_api_error_t    err;
    ron_msg_batch_t    batch;
    ron_api_proofs_t   proofs;

    results = malloc(RON_API_BATCH_MAX * sizeof(ron_result_t));
    if (results == NULL) {
        return RON_ENOMEM;
    }

    rc = ron_msg_outcome_get(payload, &batch, &outcome, results,
                             RON_API_BATCH_MAX);
    seq = 0;

    for (uint32_t i = 0; rc == RON_OK && i < outcome.result_n; i++) {
        seq = ron_max(seq, results[i].seq);
    }

    if (rc == RON_OK) {
        rc = ron_api_proofs_begin(&proofs, store, reader, nodes, seq);

        if (rc == RON_OK) {
            rc = ron_api_batch_answer(out, &outcome, &proofs, &status, &err);
        }

        ron_api_proofs_end(&proofs);
    }

    /* it is committed: receipts without their proofs are better than none */

    if (rc == RON_EFULL || (rc == RON_OK && out->len > max)) {
        ron_buf_reset(out);
        rc = ron_api_batch_answer(out, &outcome, NULL, &status, &err);
    }

    free(results);

    return rc == RON_EINVAL ? ron_corrupt() : rc;
}


ron_status_t
ron_api_proofs_begin(ron_api_proofs_t *proofs, ron_store_t *store,
    ron_reader_t *reader, ron_nodes_t *nodes, uint64_t seq)
{
    ron_hash_t  root;

    proofs->reader = reader;
    proofs->nodes = nodes;
    proofs->digest = ron_store_meta(store)->digest;
    ron_buf_init(&proofs->note, RON_NOTE_MAX);

    if (ron_api_head(store, seq, &proofs->note, &proofs->size) == RON_OK) {
        return RON_OK;
    }

    return ron_api_size(reader, &proofs->size, &root);
}


void
ron_api_proofs_end(ron_api_proofs_t *proofs)
{
    ron_buf_free(&proofs->note);
}


ron_status_t
ron_api_proofs_put(ron_api_proofs_t *proofs, uint64_t seq, ron_str_t entry,
    ron_buf_t *out)
{
    char               text[ron_base64_len(RON_ENTRY_MAX)];
    ron_hash_t         leaf, root;
    ron_proof_t        proof;
    ron_status_t       rc;
    ron_tile_reader_t  tiles;

    tiles.reader = proofs->reader;
    tiles.digest = proofs->digest;

    rc = proofs->nodes != NULL
         ? ron_nodes_inclusion(proofs->nodes, seq - 1, proofs->size,
                               ron_tile_from_reader, &tiles, &leaf, &root,
                               &proof)
         : RON_AGAIN;

    if (rc == RON_AGAIN) {
        rc = ron_proof_inclusion(proofs->digest, seq - 1, proofs->size,
                                 ron_tile_from_reader, &tiles, &proof);
    }

    if (rc != RON_OK) {
        return rc;
    }

    ron_digest_leaf(proofs->digest, entry.data, entry.len, &leaf);

    out->len--;                         /* the receipt's closing brace */
    ron_json_put_key(out, ron_str("proof"));
    ron_buf_put_u8(out, '{');
    ron_json_put_member(out, ron_str("entry"),
                        (ron_str_t) { ron_base64_encode(entry, text),
                                      (const uint8_t *) text });
    ron_api_put_hash(out, ron_str("leaf"), &leaf);
    ron_json_put_member_u64(out, ron_str("size"), proofs->size);
    ron_api_put_path(out, &proof);
    ron_json_put_key(out, ron_str("checkpoint"));

    if (proofs->note.len != 0) {
        ron_json_put_string(out, ron_buf_str(&proofs->note));

    } else {
        ron_buf_put_cstr(out, "null");
    }

    ron_buf_put_cstr(out, "}}");

    return ron_buf_status(out);
}


ron_status_t
ron_api_account_entries(ron_store_t *store, ron_reader_t *reader,
    ron_str_t account, uint64_t before, uint64_t limit, ron_buf_t *out,
    uint64_t *watermark)
{
    size_t                 len;
    ron_status_t           rc;
    ron_api_named_t        named;
    ron_history_reader_t  *history;

    *watermark = 0;

    if (ron_store_dir(store) == NULL) {
        return RON_ENOTFOUND;
    }

    rc = ron_history_reader_open(ron_store_dir(store), &history);
    if (rc != RON_OK) {
        return rc;
    }

    named.reader = reader;
    named.account = account;
    named.last = 0;
    named.out = out;

    len = out->len;
    ron_buf_init(&named.bytes, RON_ENTRY_MAX);
    ron_buf_put_cstr(out, "{\"entries\":[");

    rc = ron_history_account(history, account, before,
                             (uint32_t) ron_min(limit, RON_API_ENTRIES_MAX),
                             ron_api_entry_named, &named, watermark);

    ron_history_reader_close(history);
    ron_buf_free(&named.bytes);

    if (rc != RON_OK) {
        out->len = len;
        return rc;
    }

    ron_buf_put_u8(out, ']');
    ron_json_put_member_u64(out, ron_str("next"), named.last);
    ron_buf_put_u8(out, '}');

    return ron_buf_status(out);
}


/* RON_ENOTFOUND: the entry is another account's. */

static ron_status_t
ron_api_entry_named(void *ctx, uint64_t seq)
{
    ron_entry_t       e;
    ron_status_t      rc;
    ron_api_named_t  *named = ctx;

    rc = ron_api_entry_read(named->reader, seq, &named->bytes, &e);

    if (rc != RON_OK) {
        return rc == RON_ENOTFOUND ? ron_corrupt() : rc;
    }

    if (!ron_str_eq(e.account, named->account)
        && !ron_str_eq(e.to, named->account))
    {
        return RON_ENOTFOUND;
    }

    named->last = seq;
    ron_json_put_comma(named->out);

    return ron_entry_put_json(&e, named->out);
}


static void
ron_api_put_hash(ron_buf_t *out, ron_str_t name, const ron_hash_t *hash)
{
    ron_json_put_key(out, name);
    ron_json_put_hex(out, (ron_str_t) { RON_HASH_LEN, hash->b });
}


static void
ron_api_put_path(ron_buf_t *out, const ron_proof_t *proof)
{
    char      *p;
    uint32_t   i;

    ron_json_put_key(out, ron_str("path"));
    ron_buf_put_u8(out, '[');

    for (i = 0; i < proof->n; i++) {
        p = (char *) ron_buf_reserve(out, RON_API_HASH_ROOM);
        if (p == NULL) {
            return;
        }

        if (i != 0) {
            *p++ = ',';
        }

        *p++ = '"';
        p += ron_hex_encode((ron_str_t) { RON_HASH_LEN, proof->path[i].b },
                            p);
        *p++ = '"';
        out->len = (size_t) ((uint8_t *) p - out->data);
    }

    ron_buf_put_u8(out, ']');
}


ron_status_t
ron_api_tile(ron_reader_t *reader, ron_digest_t digest, ron_str_t path,
    ron_buf_t *out)
{
    uint64_t           head, first, span;
    ron_hash_t         root;
    ron_tile_t         tile;
    ron_status_t       rc;
    ron_api_tile_t     t;
    ron_api_walk_t     walk;
    ron_tile_reader_t  tiles;

    rc = ron_api_tile_parse(path, &t);
    if (rc != RON_OK) {
        return rc;
    }

    rc = ron_api_size(reader, &head, &root);
    if (rc != RON_OK) {
        return rc;
    }

    span = UINT64_C(1) << (8 * t.level);
    first = t.index * RON_TILE_WIDTH;

    if (t.index > head / RON_TILE_WIDTH / span
        || head / span - first < t.width)
    {
        return RON_ENOTFOUND;
    }

    if (t.entries) {
        memset(&walk, 0, sizeof(ron_api_walk_t));

        walk.out = out;
        walk.next = first + 1;
        walk.last = first + t.width;
        walk.raw = true;

        rc = ron_api_walk(reader, &walk);

        return rc == RON_OK ? ron_buf_status(out) : rc;
    }

    tile.level = t.level;
    tile.width = t.width;
    tile.index = t.index;

    tiles.reader = reader;
    tiles.digest = digest;

    /* as the right edge of the tree that ends with this tile */

    rc = ron_tile_from_reader(&tiles, (first + t.width) * span, &tile);
    if (rc != RON_OK) {
        return rc;
    }

    ron_buf_put(out, tile.hashes, (size_t) t.width * RON_HASH_LEN);

    return ron_buf_status(out);
}


static ron_status_t
ron_api_tile_parse(ron_str_t path, ron_api_tile_t *t)
{
    size_t          i;
    uint64_t        v;
    ron_str_t       part, index;
    const uint8_t  *slash;

    memset(t, 0, sizeof(ron_api_tile_t));

    slash = path.len ? memchr(path.data, '/', path.len) : NULL;
    if (slash == NULL) {
        return RON_EINVAL;
    }

    part = (ron_str_t) { (size_t) (slash - path.data), path.data };
    index = (ron_str_t) { path.len - part.len - 1, slash + 1 };

    t->entries = ron_str_eq(part, ron_str("entries"));

    if (!t->entries) {
        if (ron_api_u64(part, &v) != RON_OK || v > RON_API_LEVEL_MAX) {
            return RON_EINVAL;
        }

        t->level = (uint8_t) v;
    }

    t->width = RON_TILE_WIDTH;

    for (i = 0; i + 3 <= index.len; i++) {
        if (memcmp(index.data + i, ".p/", 3) != 0) {
            continue;
        }

        part = (ron_str_t) { index.len - i - 3, index.data + i + 3 };

        if (ron_api_u64(part, &v) != RON_OK || v == 0
            || v >= RON_TILE_WIDTH)
        {
            return RON_EINVAL;
        }

        t->width = (uint16_t) v;
        index.len = i;
        break;
    }

    return ron_api_tile_index(index, &t->index);
}


/* x001/x234/067: groups of three digits, all but the last with an x. */
static ron_status_t
ron_api_tile_index(ron_str_t path, uint64_t *index)
{
    size_t          i;
    uint64_t        v;
    const uint8_t  *p, *end;

    p = path.data;
    end = p + path.len;
    v = 0;

    *index = 0;

    for ( ;; ) {
        if (end - p > 3) {
            if (*p++ != 'x') {
                return RON_EINVAL;
            }
        }

        if (end - p < 3 || v > (UINT64_C(1) << 55) / 1000) {
            return RON_EINVAL;
        }

        for (i = 0; i < 3; i++, p++) {
            if (*p < '0' || *p > '9') {
                return RON_EINVAL;
            }

            v = v * 10 + (uint64_t) (*p - '0');
        }

        if (p == end) {
            break;
        }

        if (*p++ != '/') {
            return RON_EINVAL;
        }

        /* the number has no group of zeros in front */

        if (v == 0) {
            return RON_EINVAL;
        }
    }

    *index = v;

    return RON_OK;
}
