
/*
 * ronctl ledger proof inclusion, consistency, verify.
 *
 * What is printed is what GET /ledger/proof/... answers, and it is verified
 * before it is printed, by other code than that which made it.
 */

#include "ron_ctl.h"
#include "ron_codec.h"
#include "ron_entry.h"
#include "ron_note.h"
#include "ron_verify.h"

#include <stdio.h>


typedef struct {
    ron_store_t        *store;
    ron_reader_t       *reader;
    ron_tile_reader_t   tiles;
    uint64_t            head;
    ron_digest_t        digest;
} ctl_tree_t;

/* What a saved proof may hold; the same members for all kinds of it. */
typedef struct {
    uint64_t           seq;
    uint64_t           size;
    uint64_t           from;
    uint64_t           to;
    ron_str_t          leaf;
    ron_str_t          root;
    ron_str_t          from_root;
    ron_str_t          to_root;
    ron_str_t          entry;
    ron_str_t          checkpoint;
    const ron_json_t  *path;
} ctl_saved_t;

static const ron_json_field_t  ctl_saved_fields[] = {
    RON_JSON_FIELD(ctl_saved_t, seq, "seq", U64, 0, 0, 0, NULL),
    RON_JSON_FIELD(ctl_saved_t, size, "size", U64, 0, 0, 0, NULL),
    RON_JSON_FIELD(ctl_saved_t, from, "from", U64, 0, 0, 0, NULL),
    RON_JSON_FIELD(ctl_saved_t, to, "to", U64, 0, 0, 0, NULL),
    RON_JSON_FIELD(ctl_saved_t, leaf, "leaf", STRING, 0, 64, 64, NULL),
    RON_JSON_FIELD(ctl_saved_t, root, "root", STRING, 0, 64, 64, NULL),
    RON_JSON_FIELD(ctl_saved_t, from_root, "from_root", STRING, 0, 64, 64,
                   NULL),
    RON_JSON_FIELD(ctl_saved_t, to_root, "to_root", STRING, 0, 64, 64, NULL),
    RON_JSON_FIELD(ctl_saved_t, entry, "entry", STRING, 0, 1,
                   RON_ENTRY_MAX * 2, NULL),
    RON_JSON_FIELD(ctl_saved_t, checkpoint, "checkpoint", STRING, 0, 1, 0,
                   NULL),
    RON_JSON_FIELD(ctl_saved_t, path, "path", ARRAY, RON_JSON_REQUIRED, 0,
                   RON_PROOF_MAX, NULL),
};


static int ctl_tree_open(const ron_ctl_args_t *args, ctl_tree_t *t);
static void ctl_tree_close(ctl_tree_t *t);
static ron_status_t ctl_leaf(ctl_tree_t *t, uint64_t seq, ron_hash_t *leaf);
static int ctl_unproven(const ron_ctl_args_t *args, ron_status_t status);
static void ctl_put_path(ron_buf_t *b, const ron_proof_t *proof);
static ron_status_t ctl_consistency(ctl_tree_t *t, uint64_t from, uint64_t to,
    ron_hash_t *from_root, ron_hash_t *to_root, ron_proof_t *proof);
static int ctl_saved_parse(const ron_ctl_args_t *args, ron_str_t text,
    ron_json_doc_t *doc, ctl_saved_t *in, ron_proof_t *proof);
static int ctl_saved(const ron_ctl_args_t *args, const ctl_saved_t *in,
    const ron_proof_t *proof, ron_digest_t digest);
static int ctl_saved_inclusion(const ron_ctl_args_t *args,
    const ctl_saved_t *in, const ron_proof_t *proof, ron_digest_t digest,
    const ron_checkpoint_note_t *cp);
static int ctl_saved_consistency(const ron_ctl_args_t *args,
    const ctl_saved_t *in, const ron_proof_t *proof, ron_digest_t digest,
    const ron_checkpoint_note_t *cp);
static int ctl_saved_said(const ron_ctl_args_t *args, const char *what,
    bool signed_root);


static int
ctl_tree_open(const ron_ctl_args_t *args, ctl_tree_t *t)
{
    int        rc;
    ron_row_t  row;

    memset(t, 0, sizeof(ctl_tree_t));
    rc = ron_ctl_open(args, args->pos[0], &t->store);

    if (rc != RON_EXIT_OK) {
        return rc;
    }

    if (ron_reader_open(t->store, &t->reader) != RON_OK) {
        rc = ron_ctl_fail(args, RON_EXIT_IO, "%s", ron_store_error(t->store));
        ron_store_close(t->store);
        return rc;
    }

    t->digest = ron_store_meta(t->store)->digest;
    t->tiles = (ron_tile_reader_t) { t->reader, t->digest };
    t->head = ron_reader_head(t->reader, &row) == RON_OK
              ? row.seq + row.count - 1 : 0;

    return RON_EXIT_OK;
}


static void
ctl_tree_close(ctl_tree_t *t)
{
    ron_reader_close(t->reader);
    ron_store_close(t->store);
}


static ron_status_t
ctl_leaf(ctl_tree_t *t, uint64_t seq, ron_hash_t *leaf)
{
    ron_rd_t      rd;
    ron_row_t     row;
    ron_str_t     bytes;
    ron_status_t  status;

    status = ron_reader_row(t->reader, seq, &row);
    if (status != RON_OK) {
        return status;
    }

    ron_rd_init(&rd, row.body);

    for (uint64_t i = row.seq; ; i++) {
        status = ron_body_next(&rd, &bytes);

        if (status != RON_OK) {
            return RON_ECORRUPT;
        }

        if (i == seq) {
            ron_digest_leaf(t->digest, bytes.data, bytes.len, leaf);
            return RON_OK;
        }
    }
}


static void
ctl_put_path(ron_buf_t *b, const ron_proof_t *proof)
{
    ron_json_put_key(b, ron_str("path"));
    ron_buf_put_u8(b, '[');

    for (uint32_t i = 0; i < proof->n; i++) {
        ron_json_put_comma(b);
        ron_json_put_hex(b, (ron_str_t) { RON_HASH_LEN, proof->path[i].b });
    }

    ron_buf_put_cstr(b, "]}\n");
}


static int
ctl_unproven(const ron_ctl_args_t *args, ron_status_t status)
{
    return ron_ctl_fail(args, status == RON_EIO ? RON_EXIT_IO : RON_EXIT_NO,
                        "the tree does not prove it (%s): run ronctl ledger "
                        "verify", ron_status_name(status));
}


int
ron_ctl_proof_inclusion(ron_ctl_args_t *args)
{
    int           rc;
    uint64_t      seq, size;
    ron_buf_t     b;
    ron_hash_t    leaf, root;
    ctl_tree_t    t;
    ron_proof_t   proof;
    ron_status_t  status;

    if (!ron_ctl_parse_number(args->pos[1], "SEQ", &seq)
        || !ron_ctl_number(args, "size", 0, &size))
    {
        return RON_EXIT_USAGE;
    }

    rc = ctl_tree_open(args, &t);
    if (rc != RON_EXIT_OK) {
        return rc;
    }

    size = size ? size : t.head;

    if (seq == 0 || seq > size || size > t.head) {
        rc = ron_ctl_fail(args, RON_EXIT_USAGE, "the ledger has seq 1 to "
                          "%llu: seq %llu at size %llu is not in it",
                          (unsigned long long) t.head,
                          (unsigned long long) seq,
                          (unsigned long long) size);
        ctl_tree_close(&t);
        return rc;
    }

    status = ctl_leaf(&t, seq, &leaf);

    if (status == RON_OK) {
        status = ron_proof_inclusion(t.digest, seq - 1, size,
                                     ron_tile_from_reader, &t.tiles, &proof);
    }

    if (status == RON_OK) {
        status = ron_proof_root(t.digest, size, ron_tile_from_reader,
                                &t.tiles, &root);
    }

    if (status == RON_OK) {
        status = ron_verify_inclusion(t.digest, &leaf, seq - 1, size, &proof,
                                      &root);
    }

    ctl_tree_close(&t);

    if (status != RON_OK) {
        return ctl_unproven(args, status);
    }

    ron_buf_init(&b, 0);
    ron_buf_put_u8(&b, '{');
    ron_json_put_member_u64(&b, ron_str("seq"), seq);
    ron_json_put_member_u64(&b, ron_str("size"), size);
    ron_ctl_put_hash(&b, "leaf", &leaf);
    ron_ctl_put_hash(&b, "root", &root);
    ctl_put_path(&b, &proof);
    ron_ctl_print(&b);
    ron_buf_free(&b);

    return RON_EXIT_OK;
}


static ron_status_t
ctl_consistency(ctl_tree_t *t, uint64_t from, uint64_t to,
    ron_hash_t *from_root, ron_hash_t *to_root, ron_proof_t *proof)
{
    ron_status_t  status;

    status = ron_proof_consistency(t->digest, from, to, ron_tile_from_reader,
                                   &t->tiles, proof);

    if (status == RON_OK) {
        status = ron_proof_root(t->digest, from, ron_tile_from_reader,
                                &t->tiles, from_root);
    }

    if (status == RON_OK) {
        status = ron_proof_root(t->digest, to, ron_tile_from_reader,
                                &t->tiles, to_root);
    }

    if (status == RON_OK) {
        status = ron_verify_consistency(t->digest, from, to, from_root,
                                        to_root, proof);
    }

    return status;
}


int
ron_ctl_proof_consistency(ron_ctl_args_t *args)
{
    int           rc;
    uint64_t      from, to;
    ron_buf_t     b;
    ron_hash_t    from_root, to_root;
    ctl_tree_t    t;
    ron_proof_t   proof;
    ron_status_t  status;

    to = 0;

    if (!ron_ctl_parse_number(args->pos[1], "FROM", &from)
        || (args->pos_n > 2
            && !ron_ctl_parse_number(args->pos[2], "TO", &to)))
    {
        return RON_EXIT_USAGE;
    }

    rc = ctl_tree_open(args, &t);
    if (rc != RON_EXIT_OK) {
        return rc;
    }

    to = args->pos_n > 2 ? to : t.head;

    if (from > to || to > t.head) {
        rc = ron_ctl_fail(args, RON_EXIT_USAGE, "the ledger has %llu entries: "
                          "not from %llu to %llu",
                          (unsigned long long) t.head,
                          (unsigned long long) from,
                          (unsigned long long) to);
        ctl_tree_close(&t);
        return rc;
    }

    status = ctl_consistency(&t, from, to, &from_root, &to_root, &proof);
    ctl_tree_close(&t);

    if (status != RON_OK) {
        return ctl_unproven(args, status);
    }

    ron_buf_init(&b, 0);
    ron_buf_put_u8(&b, '{');
    ron_json_put_member_u64(&b, ron_str("from"), from);
    ron_json_put_member_u64(&b, ron_str("to"), to);
    ron_ctl_put_hash(&b, "from_root", &from_root);
    ron_ctl_put_hash(&b, "to_root", &to_root);
    ctl_put_path(&b, &proof);
    ron_ctl_print(&b);
    ron_buf_free(&b);

    return RON_EXIT_OK;
}


/* ---- offline ------------------------------------------------------------ */

int
ron_ctl_proof_verify(ron_ctl_args_t *args)
{
    int             rc;
    ron_buf_t       text;
    ctl_saved_t     in;
    ron_proof_t     proof;
    ron_digest_t    digest;
    ron_json_doc_t  doc;

    digest = RON_DIGEST_BLAKE3;

    if (ron_ctl_value(args, "digest") != NULL
        && ron_digest_parse(ron_cstr(ron_ctl_value(args, "digest")), &digest)
           != RON_OK)
    {
        return ron_ctl_fail(args, RON_EXIT_USAGE, "--digest is blake3 or "
                            "sha256");
    }

    ron_buf_init(&text, 0);
    ron_json_doc_init(&doc, 0);
    memset(&proof, 0, sizeof(proof));

    rc = ron_ctl_read_file(args, args->pos[0], &text);

    if (rc == RON_EXIT_OK) {
        rc = ctl_saved_parse(args, ron_buf_str(&text), &doc, &in, &proof);
    }

    if (rc == RON_EXIT_OK) {
        rc = ctl_saved(args, &in, &proof, digest);
    }

    ron_json_doc_free(&doc);
    ron_buf_free(&text);

    return rc;
}


static int
ctl_saved_parse(const ron_ctl_args_t *args, ron_str_t text,
    ron_json_doc_t *doc, ctl_saved_t *in, ron_proof_t *proof)
{
    ron_json_error_t   err;
    const ron_json_t  *root, *inner, *node;

    memset(&err, 0, sizeof(err));

    if (ron_json_parse(doc, text, NULL, &root, &err) == RON_OK
        && ron_json_kind(root) == RON_JSON_OBJECT)
    {
        /* A receipt has its proof inside. */

        inner = ron_json_get(root, ron_str("proof"));
        root = inner != NULL && ron_json_kind(inner) == RON_JSON_OBJECT
               ? inner : root;

        if (ron_json_bind(root, ctl_saved_fields,
                          ron_array_n(ctl_saved_fields), in, NULL, &err)
            == RON_OK)
        {
            err.reason = NULL;
        }

    } else if (err.reason == NULL) {
        err.reason = "not an object";
    }

    if (err.reason != NULL) {
        return ron_ctl_fail(args, RON_EXIT_NO, "%s: %s%s%s", args->pos[0],
                            err.name, err.name[0] ? ": " : "", err.reason);
    }

    for (node = ron_json_child(in->path); node != NULL;
         node = ron_json_next(node))
    {
        if (ron_json_kind(node) != RON_JSON_STRING
            || ron_hex_decode(ron_json_text(node), proof->path[proof->n].b,
                              RON_HASH_LEN) != RON_OK)
        {
            return ron_ctl_fail(args, RON_EXIT_NO, "%s: path: not a hash",
                                args->pos[0]);
        }

        proof->n++;
    }

    return RON_EXIT_OK;
}


static int
ctl_saved(const ron_ctl_args_t *args, const ctl_saved_t *in,
    const ron_proof_t *proof, ron_digest_t digest)
{
    int                     rc;
    ron_buf_t               note, key;
    ron_str_t               given;
    ron_status_t            status;
    ron_checkpoint_note_t   cp, *anchor;

    ron_buf_init(&note, 0);
    ron_buf_init(&key, 0);
    anchor = NULL;
    rc = RON_EXIT_OK;

    if (ron_ctl_value(args, "checkpoint") != NULL) {
        rc = ron_ctl_read_file(args, ron_ctl_value(args, "checkpoint"),
                               &note);
    }

    given = note.len != 0 ? ron_buf_str(&note) : in->checkpoint;

    if (rc == RON_EXIT_OK && ron_ctl_value(args, "public-key") != NULL) {
        rc = ron_ctl_public_key(args, ron_ctl_value(args, "public-key"),
                                &key);
    }

    if (rc == RON_EXIT_OK && key.len != 0 && given.len == 0) {
        rc = ron_ctl_fail(args, RON_EXIT_USAGE, "a key, but no checkpoint "
                          "that it could have signed: --checkpoint FILE");
    }

    if (rc == RON_EXIT_OK && given.len != 0) {
        status = key.len != 0 ? ron_note_verify(given, ron_buf_str(&key), &cp)
                              : ron_note_parse(given, &cp);
        anchor = &cp;

        if (status != RON_OK) {
            rc = ron_ctl_fail(args, RON_EXIT_NO, "the checkpoint is %s",
                              status == RON_EINVAL ? "malformed"
                              : status == RON_ENOTFOUND
                                ? "not signed by that key"
                                : "not genuine: its signature is wrong");
        }
    }

    if (rc == RON_EXIT_OK) {
        rc = in->from_root.len != 0 || in->to_root.len != 0
             ? ctl_saved_consistency(args, in, proof, digest, anchor)
             : ctl_saved_inclusion(args, in, proof, digest, anchor);
    }

    ron_buf_free(&note);
    ron_buf_free(&key);

    return rc;
}


static int
ctl_saved_inclusion(const ron_ctl_args_t *args, const ctl_saved_t *in,
    const ron_proof_t *proof, ron_digest_t digest,
    const ron_checkpoint_note_t *cp)
{
    char         what[128];
    size_t       len;
    uint8_t      bytes[RON_ENTRY_MAX];
    uint64_t     seq;
    ron_hash_t   leaf, root, own;
    ron_entry_t  e;

    memset(&leaf, 0, sizeof(leaf));
    memset(&root, 0, sizeof(root));
    seq = in->seq;

    if ((in->leaf.len == 0 && in->entry.len == 0)
        || (in->root.len == 0 && cp == NULL)
        || (in->leaf.len != 0
            && ron_hex_decode(in->leaf, leaf.b, RON_HASH_LEN) != RON_OK)
        || (in->root.len != 0
            && ron_hex_decode(in->root, root.b, RON_HASH_LEN) != RON_OK))
    {
        return ron_ctl_fail(args, RON_EXIT_NO, "the proof has no leaf or no "
                            "root, or they are not hashes");
    }

    if (in->entry.len != 0) {
        if (ron_base64_decode(in->entry, bytes, sizeof(bytes), &len)
            != RON_OK
            || ron_entry_decode((ron_str_t) { len, bytes }, &e) != RON_OK)
        {
            return ron_ctl_fail(args, RON_EXIT_NO, "\"entry\" is not an "
                                "entry");
        }

        ron_digest_leaf(digest, bytes, len, &own);

        if ((in->leaf.len != 0 && !ron_hash_eq(&own, &leaf))
            || (seq != 0 && seq != e.seq))
        {
            return ron_ctl_fail(args, RON_EXIT_NO, "leaf or seq are not those "
                                "of the entry");
        }

        leaf = own;
        seq = e.seq;
    }

    if (cp != NULL) {
        if (cp->size != in->size
            || (in->root.len != 0 && !ron_hash_eq(&root, &cp->root)))
        {
            return ron_ctl_fail(args, RON_EXIT_NO, "the proof is for another "
                                "size or root than the checkpoint");
        }

        root = cp->root;
    }

    if (seq == 0
        || ron_verify_inclusion(digest, &leaf, seq - 1, in->size, proof,
                                &root) != RON_OK)
    {
        return ron_ctl_fail(args, RON_EXIT_NO, "the proof does not hold (or "
                            "the ledger's digest is another: --digest)");
    }

    snprintf(what, sizeof(what), "seq %llu is in the tree of size %llu",
             (unsigned long long) seq, (unsigned long long) in->size);

    return ctl_saved_said(args, what, cp != NULL
                          && ron_ctl_value(args, "public-key") != NULL);
}


static int
ctl_saved_consistency(const ron_ctl_args_t *args, const ctl_saved_t *in,
    const ron_proof_t *proof, ron_digest_t digest,
    const ron_checkpoint_note_t *cp)
{
    char        what[128];
    ron_hash_t  from_root, to_root;

    memset(&from_root, 0, sizeof(from_root));
    memset(&to_root, 0, sizeof(to_root));

    if (ron_hex_decode(in->from_root, from_root.b, RON_HASH_LEN) != RON_OK
        || ron_hex_decode(in->to_root, to_root.b, RON_HASH_LEN) != RON_OK)
    {
        return ron_ctl_fail(args, RON_EXIT_NO, "the proof has no two roots");
    }

    if (cp != NULL
        && !(cp->size == in->to && ron_hash_eq(&cp->root, &to_root))
        && !(cp->size == in->from && ron_hash_eq(&cp->root, &from_root)))
    {
        return ron_ctl_fail(args, RON_EXIT_NO, "the checkpoint is of neither "
                            "end of the proof");
    }

    if (ron_verify_consistency(digest, in->from, in->to, &from_root, &to_root,
                               proof) != RON_OK)
    {
        return ron_ctl_fail(args, RON_EXIT_NO, "the proof does not hold (or "
                            "the ledger's digest is another: --digest)");
    }

    snprintf(what, sizeof(what), "the tree of size %llu is the front of that "
             "of size %llu", (unsigned long long) in->from,
             (unsigned long long) in->to);

    return ctl_saved_said(args, what, cp != NULL
                          && ron_ctl_value(args, "public-key") != NULL);
}


static int
ctl_saved_said(const ron_ctl_args_t *args, const char *what, bool signed_root)
{
    if (args->json) {
        printf("{\"ok\":true,\"signed\":%s}\n", signed_root ? "true"
                                                            : "false");
        return RON_EXIT_OK;
    }

    printf("OK: %s%s\n", what, signed_root
           ? ", whose root is signed by that key"
           : "; whether its root is genuine, only a signed checkpoint says "
             "(--checkpoint and --public-key)");

    return RON_EXIT_OK;
}
