
/*
 * The golden vectors of everything that is not an entry: trees, proofs and
 * checkpoints in t/vectors/tree.json; journal rows, pages and a checkpoint
 * of the engine in t/vectors/store.json.
 *
 *     vectors_test --tree >t/vectors/tree.json
 *     vectors_test --store >t/vectors/store.json
 *
 * write them.  A change in them is a change of the format.
 *
 *     vectors_test --ledger <dir> <digest> <entries>
 *
 * makes a real ledger of plain transfers, for programs that read one.
 */

#include "ron_checkpoint.h"
#include "ron_codec.h"
#include "ron_digest.h"
#include "ron_engine_impl.h"
#include "ron_json.h"
#include "ron_note.h"
#include "ron_receipt.h"
#include "ron_store_impl.h"
#include "ron_tree.h"
#include "ron_verify.h"

#include "lib_vector.h"
#include "ron_test.h"


#define TREE_FILE   "t/vectors/tree.json"
#define STORE_FILE  "t/vectors/store.json"

#define TREE_N      20
#define T0          UINT64_C(1767322245678)

/* A key that is for vectors and for nothing else: its seed is 32 times 7. */
#define KEY_TEXT  "PRIVATE+KEY+ron.example/ledger+9d5499d7"                   \
                  "+AQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH"


/* ---- JSON --------------------------------------------------------------- */

static void
put_key(ron_buf_t *out, const char *name)
{
    if (out->data[out->len - 1] != '[' && out->data[out->len - 1] != '{') {
        ron_buf_put_cstr(out, ",");
    }

    ron_buf_put_cstr(out, "\n");

    if (name != NULL) {
        ron_json_put_string(out, ron_cstr(name));
        ron_buf_put_cstr(out, ": ");
    }
}


static void
put_text(ron_buf_t *out, const char *name, ron_str_t s)
{
    put_key(out, name);
    ron_json_put_string(out, s);
}


static void
put_hex(ron_buf_t *out, const char *name, ron_str_t bytes)
{
    put_key(out, name);
    ron_json_put_hex(out, bytes);
}


static void
put_hash(ron_buf_t *out, const char *name, const ron_hash_t *hash)
{
    put_hex(out, name, (ron_str_t) { RON_HASH_LEN, hash->b });
}


static void
put_number(ron_buf_t *out, const char *name, ron_u128_t v)
{
    put_key(out, name);
    ron_json_put_amount(out, v);
}


/* ---- trees -------------------------------------------------------------- */

static const uint64_t  sizes[] = { 0, 1, 2, 3, 4, 7, 8, 13, 16, 20 };

typedef struct {
    ron_digest_t  digest;
    ron_buf_t     bytes[TREE_N];
    ron_hash_t    leaves[TREE_N];
    ron_hash_t    roots[TREE_N + 1];
} forest_t;


static ron_status_t
forest_source(void *ctx, uint64_t size, ron_tile_t *tile)
{
    forest_t  *f = ctx;

    (void) size;
    RON_ASSERT(tile->level == 0 && tile->index == 0);
    memcpy(tile->hashes, f->leaves, tile->width * sizeof(ron_hash_t));

    return RON_OK;
}


/* Commits of 1, 2 and 5 entries, and the rest. */

static uint64_t
forest_time(uint64_t i)
{
    return T0 + (i < 1 ? 0 : i < 3 ? 1 : i < 8 ? 2 : 3);
}


static void
forest_init(forest_t *f, ron_digest_t digest)
{
    ron_tree_t    tree;
    ron_entry_t   e;

    f->digest = digest;
    ron_tree_init(&tree, digest);
    ron_tree_root(&tree, &f->roots[0]);

    for (uint64_t i = 0; i < TREE_N; i++) {
        vector_plain(i + 1, forest_time(i), &e);
        ron_buf_init(&f->bytes[i], 0);
        vector_raw(&e, &f->bytes[i]);
        ron_digest_leaf(digest, f->bytes[i].data, f->bytes[i].len,
                        &f->leaves[i]);
        RON_ASSERT(ron_tree_append(&tree, &f->leaves[i], NULL, NULL)
                   == RON_OK);
        ron_tree_root(&tree, &f->roots[i + 1]);
    }
}


static void
forest_free(forest_t *f)
{
    for (unsigned i = 0; i < TREE_N; i++) {
        ron_buf_free(&f->bytes[i]);
    }
}


static void
put_path(ron_buf_t *out, const ron_proof_t *proof)
{
    ron_buf_put_cstr(out, ",\"path\":[");

    for (uint32_t i = 0; i < proof->n; i++) {
        ron_buf_put_cstr(out, i ? "," : "");
        ron_json_put_hex(out, (ron_str_t) { RON_HASH_LEN, proof->path[i].b });
    }

    ron_buf_put_cstr(out, "]}");
}


/* Proofs as the ledger API answers them. */

static void
put_inclusion(forest_t *f, uint64_t seq, uint64_t size, ron_buf_t *out)
{
    ron_proof_t  proof;

    RON_ASSERT(ron_proof_inclusion(f->digest, seq - 1, size, forest_source, f,
                                   &proof) == RON_OK);
    RON_ASSERT(ron_verify_inclusion(f->digest, &f->leaves[seq - 1], seq - 1,
                                    size, &proof, &f->roots[size]) == RON_OK);

    put_key(out, NULL);
    ron_buf_printf(out, "{\"seq\":%llu,\"size\":%llu,\"leaf\":",
                   (unsigned long long) seq, (unsigned long long) size);
    ron_json_put_hex(out, (ron_str_t) { 32, f->leaves[seq - 1].b });
    ron_buf_put_cstr(out, ",\"root\":");
    ron_json_put_hex(out, (ron_str_t) { 32, f->roots[size].b });
    put_path(out, &proof);
}


static void
put_consistency(forest_t *f, uint64_t from, uint64_t to, ron_buf_t *out)
{
    ron_proof_t  proof;

    RON_ASSERT(ron_proof_consistency(f->digest, from, to, forest_source, f,
                                     &proof) == RON_OK);
    RON_ASSERT(ron_verify_consistency(f->digest, from, to, &f->roots[from],
                                      &f->roots[to], &proof) == RON_OK);

    put_key(out, NULL);
    ron_buf_printf(out, "{\"from\":%llu,\"to\":%llu,\"from_root\":",
                   (unsigned long long) from, (unsigned long long) to);
    ron_json_put_hex(out, (ron_str_t) { 32, f->roots[from].b });
    ron_buf_put_cstr(out, ",\"to_root\":");
    ron_json_put_hex(out, (ron_str_t) { 32, f->roots[to].b });
    put_path(out, &proof);
}


static void
put_note(forest_t *f, const ron_signer_t *signer, const char *line,
    ron_buf_t *note)
{
    ron_checkpoint_note_t  cp;

    memset(&cp, 0, sizeof(cp));
    cp.origin = ron_signer_name(signer);
    cp.size = TREE_N;
    cp.root = f->roots[TREE_N];

    if (line != NULL) {
        cp.line_n = 1;
        cp.line[0] = ron_cstr(line);
    }

    ron_buf_reset(note);
    RON_ASSERT(ron_note_sign(signer, &cp, note) == RON_OK);
}


/* A receipt with its proof: what a client can verify with nothing but a key. */

static void
put_bundle(forest_t *f, uint64_t seq, ron_str_t note, ron_buf_t *out)
{
    ron_entry_t  e;
    ron_proof_t  proof;

    RON_ASSERT(ron_entry_decode(ron_buf_str(&f->bytes[seq - 1]), &e)
               == RON_OK);
    RON_ASSERT(ron_proof_inclusion(f->digest, seq - 1, TREE_N, forest_source,
                                   f, &proof) == RON_OK);

    put_key(out, "receipt");
    RON_ASSERT(ron_receipt_put(&e, out) == RON_OK);
    out->len--;

    ron_buf_put_cstr(out, ",\n\"proof\": {\"entry\":");
    RON_ASSERT(f->bytes[seq - 1].len < 192);
    {
        char  text[257];

        text[ron_base64_encode(ron_buf_str(&f->bytes[seq - 1]), text)] = '\0';
        ron_json_put_string(out, ron_cstr(text));
    }

    ron_buf_put_cstr(out, ",\"leaf\":");
    ron_json_put_hex(out, (ron_str_t) { 32, f->leaves[seq - 1].b });
    ron_buf_printf(out, ",\"size\":%u,\"checkpoint\":", TREE_N);
    ron_json_put_string(out, note);
    put_path(out, &proof);
    ron_buf_put_cstr(out, "}");
}


static void
put_forest(ron_digest_t digest, const ron_signer_t *signer, ron_buf_t *out)
{
    forest_t   f;
    ron_buf_t  note;

    forest_init(&f, digest);
    ron_buf_init(&note, 0);

    put_key(out, ron_digest_name(digest));
    ron_buf_put_cstr(out, "{");
    put_key(out, "roots");
    ron_buf_put_cstr(out, "[");

    for (unsigned i = 0; i <= TREE_N; i++) {
        put_hash(out, NULL, &f.roots[i]);
    }

    ron_buf_put_cstr(out, "]");
    put_key(out, "inclusion");
    ron_buf_put_cstr(out, "[");

    for (size_t i = 1; i < ron_array_n(sizes); i++) {
        for (uint64_t seq = 1; seq <= sizes[i]; seq += 1 + sizes[i] / 8) {
            put_inclusion(&f, seq, sizes[i], out);
        }

        put_inclusion(&f, sizes[i], sizes[i], out);
    }

    ron_buf_put_cstr(out, "]");
    put_key(out, "consistency");
    ron_buf_put_cstr(out, "[");

    for (size_t i = 0; i < ron_array_n(sizes); i++) {
        for (size_t k = i; k < ron_array_n(sizes); k++) {
            put_consistency(&f, sizes[i], sizes[k], out);
        }
    }

    ron_buf_put_cstr(out, "]");

    put_note(&f, signer, NULL, &note);
    put_text(out, "checkpoint", ron_buf_str(&note));
    put_bundle(&f, 7, ron_buf_str(&note), out);

    put_note(&f, signer, "an extension line, \xc3\xa9", &note);
    ron_buf_put_cstr(&note, "\xe2\x80\x94 witness.example "
                     "AAAAAQABAgMEBQYH\n");
    put_text(out, "checkpoint_with_witness", ron_buf_str(&note));

    ron_buf_put_cstr(out, "}");
    ron_buf_free(&note);
    forest_free(&f);
}


static void
generate_tree(ron_buf_t *out)
{
    forest_t       f;
    ron_buf_t      key;
    ron_signer_t  *signer;

    RON_ASSERT(ron_signer_parse(ron_str(KEY_TEXT), &signer) == RON_OK);
    ron_buf_init(&key, 0);
    RON_ASSERT(ron_signer_public_text(signer, &key) == RON_OK);

    ron_buf_init(out, 0);
    ron_buf_put_cstr(out, "{");
    put_text(out, "public_key", ron_buf_str(&key));
    put_key(out, "entries");
    ron_buf_put_cstr(out, "[");

    forest_init(&f, RON_DIGEST_BLAKE3);

    for (unsigned i = 0; i < TREE_N; i++) {
        put_hex(out, NULL, ron_buf_str(&f.bytes[i]));
    }

    ron_buf_put_cstr(out, "]");
    forest_free(&f);

    put_forest(RON_DIGEST_BLAKE3, signer, out);
    put_forest(RON_DIGEST_SHA256, signer, out);
    ron_buf_put_cstr(out, "}\n");

    RON_ASSERT(ron_buf_status(out) == RON_OK);
    ron_buf_free(&key);
    ron_signer_free(signer);
}


/* ---- journal rows and pages --------------------------------------------- */

static void
put_row(ron_buf_t *out, const ron_row_t *row)
{
    put_key(out, NULL);
    ron_buf_put_cstr(out, "{");
    put_number(out, "seq", row->seq);
    put_number(out, "count", row->count);
    put_number(out, "epoch", row->epoch);
    put_number(out, "time_ms", row->time_ms);
    put_hash(out, "prev_root", &row->prev_root);
    put_hash(out, "root", &row->root);
    put_hash(out, "checkpoint", &row->checkpoint);
    put_hex(out, "body", row->body);
    put_hex(out, "notes", row->notes);
    put_hash(out, "chain", &row->chain);
    ron_buf_put_cstr(out, "}");
}


/* What a batch of two that went half well left behind. */

static void
make_notes(ron_buf_t *notes)
{
    ron_tag_t      tag;
    ron_hash_t     digest;
    ron_result_t   results[2];
    ron_outcome_t  outcome;

    memset(&outcome, 0, sizeof(outcome));
    memset(results, 0, sizeof(results));
    memset(tag.b, 0xa5, sizeof(tag.b));
    memset(digest.b, 0x5a, sizeof(digest.b));

    results[0].seq = 4;
    results[1].reason = RON_REASON_INSUFFICIENT;
    results[1].detail = RON_DETAIL_AVAILABLE;
    results[1].value = 300;
    outcome.result_n = 2;
    outcome.results = results;

    ron_outcome_note(notes, &tag, &digest, &outcome);
    RON_ASSERT(ron_buf_status(notes) == RON_OK);
}


static void
put_rows(ron_buf_t *out)
{
    static const unsigned  counts[] = { 1, 2, 5 };

    unsigned     at;
    forest_t     f;
    ron_buf_t    body, notes;
    ron_row_t    row;
    ron_hash_t   chain;

    forest_init(&f, RON_DIGEST_BLAKE3);
    ron_buf_init(&body, 0);
    ron_buf_init(&notes, 0);
    memset(&chain, 0, sizeof(chain));

    put_key(out, "rows");
    ron_buf_put_cstr(out, "[");
    at = 0;

    for (unsigned i = 0; i < ron_array_n(counts); i++) {
        memset(&row, 0, sizeof(row));
        ron_buf_reset(&body);
        ron_buf_reset(&notes);

        for (unsigned n = 0; n < counts[i]; n++) {
            ron_body_put(&body, ron_buf_str(&f.bytes[at + n]));
        }

        if (i == 2) {
            make_notes(&notes);
            memset(row.checkpoint.b, 0xc3, RON_HASH_LEN);
        }

        row.seq = at + 1;
        row.count = counts[i];
        row.epoch = 1 + i / 2;
        row.time_ms = forest_time(at);
        row.prev_root = f.roots[at];
        row.root = f.roots[at + counts[i]];
        row.body = ron_buf_str(&body);
        row.notes = ron_buf_str(&notes);

        ron_row_chain(&chain, &row, &row.chain);
        chain = row.chain;
        at += counts[i];

        put_row(out, &row);
    }

    ron_buf_put_cstr(out, "]");
    ron_buf_free(&body);
    ron_buf_free(&notes);
    forest_free(&f);
}


static void
put_pages(ron_buf_t *out)
{
    uint8_t  page[RON_STORE_PAGE];

    ron_store_page_put(page, RON_STORE_KIND_HEAD, ron_str("a note\n"));
    put_hex(out, "head", (ron_str_t) { sizeof(page), page });

    ron_store_page_put(page, RON_STORE_KIND_MARK, ron_str("fsync failed"));
    put_hex(out, "mark", (ron_str_t) { sizeof(page), page });
}


/* ---- a checkpoint of the engine ----------------------------------------- */

static void
apply(ron_state_t *st, ron_kind_t kind, uint32_t fields, const char *account,
    const char *to, uint64_t amount, uint64_t ref)
{
    ron_entry_t  e;
    ron_touch_t  touch;

    memset(&e, 0, sizeof(e));
    e.kind = kind;
    e.ledger_id = 7;
    e.seq = st->seq + 1;
    e.time_ms = T0 + e.seq;
    e.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT | fields
               | (*to != '\0' ? RON_F_TO : 0) | (ref ? RON_F_REF : 0);
    e.asset = ron_str("ron");
    e.account = ron_cstr(account);
    e.to = ron_cstr(to);
    e.amount = amount;
    e.ref = ref;
    e.nonce = e.seq;
    e.key = ron_str("k");
    e.cap = ron_str("dev:cap-1");
    e.expiry_ms = T0 + 60000;

    RON_ASSERT(ron_entry_check(&e) == RON_OK);
    touch = (ron_touch_t) { RON_NONE, RON_NONE };
    ron_state_advance(st, e.time_ms);
    RON_ASSERT(ron_state_apply(st, &e, &touch) == RON_OK);
}


#define WALLET  (RON_F_WALLET | RON_F_NONCE | RON_F_KEY | RON_F_CAP)


static void
make_state(ron_state_t *st)
{
    RON_ASSERT(ron_state_init(st) == RON_OK);

    apply(st, RON_KIND_MINT, WALLET, "acc_alice", "", 1000000, 0);
    apply(st, RON_KIND_TRANSFER, WALLET, "acc_alice", "acc_bob", 1000, 0);
    apply(st, RON_KIND_HOLD, WALLET | RON_F_EXPIRY, "acc_alice", "acc_carol",
          500, 0);
    apply(st, RON_KIND_REVERSE, 0, "acc_bob", "acc_alice", 300, 2);
    apply(st, RON_KIND_BURN, WALLET, "acc_bob", "", 7, 0);
}


static void
put_state(ron_buf_t *out, ron_state_t *st)
{
    const ron_hold_t         *h;
    const ron_account_t      *a;
    const ron_balance_rec_t  *b;

    put_key(out, "accounts");
    ron_buf_put_cstr(out, "[");

    for (uint32_t i = 0; i < st->accounts.n; i++) {
        a = ron_account_at(st, i);
        put_key(out, NULL);
        ron_buf_put_cstr(out, "{");
        put_text(out, "name", ron_name_at(st, a->name));
        put_number(out, "nonce", a->nonce);
        put_number(out, "version", a->version);
        put_number(out, "day", a->day);
        put_number(out, "daily", ron_cell_get(st, a->daily).available);

        if (a->first != RON_NONE) {
            b = ron_balance_at(st, a->first);
            RON_ASSERT(b->next == RON_NONE);
            put_number(out, "asset", b->asset);
            put_number(out, "available", ron_cell_get(st, b->purse).available);
            put_number(out, "held", ron_cell_get(st, b->purse).held);
        }

        ron_buf_put_cstr(out, "}");
    }

    ron_buf_put_cstr(out, "]");

    RON_ASSERT(st->holds.n == 1 && st->reversed.n == 1 && st->caps.n == 1
               && st->asset_n == 1);

    h = ron_hold_at(st, 0);
    put_key(out, "hold");
    ron_buf_put_cstr(out, "{");
    put_number(out, "seq", h->seq);
    put_number(out, "expiry_ms", h->expiry_ms);
    put_number(out, "left", h->left);
    put_number(out, "account", h->account);
    put_number(out, "to", h->to);
    put_number(out, "asset", h->asset);
    ron_buf_put_cstr(out, "}");

    put_number(out, "reversed_2", ron_state_reversed(st, 2));
    put_number(out, "capability_sum",
               ron_state_cap_daily(st, ron_str("dev:cap-1")));
    put_number(out, "day", st->caps_day);
    put_text(out, "asset", ron_asset_name(st, 0));
    put_number(out, "minted", st->assets[0].minted);
    put_number(out, "burned", st->assets[0].burned);
}


static void
put_checkpoint(ron_buf_t *out)
{
    ron_buf_t    body;
    ron_ckpt_t   ck;
    ron_hash_t   hash;
    ron_state_t  st;
    ron_slice_t  slice;

    make_state(&st);
    ron_buf_init(&body, 0);
    ron_ckpt_begin(&ck, &st, 3);

    put_key(out, "checkpoint");
    ron_buf_put_cstr(out, "{");
    put_state(out, &st);
    put_key(out, "slices");
    ron_buf_put_cstr(out, "[");

    do {
        ron_buf_reset(&body);
        RON_ASSERT(ron_ckpt_slice(&ck, &st, 1, &body, &slice, &hash)
                   == RON_OK);

        put_key(out, NULL);
        ron_buf_put_cstr(out, "{");
        put_number(out, "gen", slice.gen);
        put_number(out, "no", slice.no);
        put_number(out, "last", slice.last);
        put_number(out, "seq", slice.seq);
        put_hex(out, "body", slice.body);
        ron_buf_put_cstr(out, "}");
    } while (!slice.last);

    ron_buf_put_cstr(out, "]");
    put_hash(out, "hash", &hash);
    ron_buf_put_cstr(out, "}");

    ron_buf_free(&body);
    ron_state_free(&st);
}


static void
generate_store(ron_buf_t *out)
{
    ron_buf_init(out, 0);
    ron_buf_put_cstr(out, "{");
    put_rows(out);
    put_pages(out);
    put_checkpoint(out);
    ron_buf_put_cstr(out, "}\n");

    RON_ASSERT(ron_buf_status(out) == RON_OK);
}


/* ---- a ledger on disk --------------------------------------------------- */

#define COMMIT_N  700

typedef struct {
    size_t      n;
    ron_tile_t  tiles[8];
} tiles_t;


static ron_status_t
keep_tile(void *ctx, const ron_tile_t *tile)
{
    tiles_t  *t = ctx;

    RON_ASSERT(t->n < ron_array_n(t->tiles));
    t->tiles[t->n++] = *tile;

    return RON_OK;
}


static int
make_ledger(const char *dir, const char *digest, uint64_t n)
{
    char               url[512];
    uint64_t           seq, epoch;
    ron_buf_t          body, bytes, note;
    ron_row_t          row;
    ron_hash_t         leaf, chain;
    ron_entry_t        e;
    ron_store_t       *store;
    ron_signer_t      *signer;
    ron_store_conf_t   conf;
    ron_checkpoint_note_t  cp;
    static tiles_t     tiles;
    static ron_tree_t  tree;

    memset(&conf, 0, sizeof(conf));
    snprintf(url, sizeof(url), "sqlite:%s", dir);
    conf.url = url;
    conf.ledger_id = 0x2a07;
    conf.create = true;

    if (ron_digest_parse(ron_cstr(digest), &conf.digest) != RON_OK
        || ron_store_open(&conf, &store) != RON_OK
        || ron_store_acquire(store, &epoch) != RON_OK)
    {
        fprintf(stderr, "%s: %s\n", dir, ron_store_error(NULL));
        return 1;
    }

    ron_tree_init(&tree, conf.digest);
    ron_buf_init(&body, 0);
    ron_buf_init(&bytes, 0);
    ron_buf_init(&note, 0);
    memset(&row, 0, sizeof(row));
    memset(&chain, 0, sizeof(chain));
    ron_tree_root(&tree, &row.root);

    for (seq = 1; seq <= n; seq += row.count) {
        row.seq = seq;
        row.count = ron_min(COMMIT_N, n - seq + 1);
        row.epoch = epoch;
        row.time_ms = T0 + seq;
        row.prev_root = row.root;
        tiles.n = 0;
        ron_buf_reset(&body);

        for (uint64_t i = 0; i < row.count; i++) {
            vector_plain(seq + i, row.time_ms, &e);
            ron_buf_reset(&bytes);
            RON_ASSERT(ron_entry_encode(&e, &bytes) == RON_OK);
            ron_body_put(&body, ron_buf_str(&bytes));
            ron_digest_leaf(conf.digest, bytes.data, bytes.len, &leaf);
            RON_ASSERT(ron_tree_append(&tree, &leaf, keep_tile, &tiles)
                       == RON_OK);
        }

        row.body = ron_buf_str(&body);
        ron_tree_root(&tree, &row.root);
        RON_ASSERT(ron_store_append(store, &row, &chain, tiles.tiles, tiles.n,
                                    NULL) == RON_OK);
        chain = row.chain;
    }

    memset(&cp, 0, sizeof(cp));
    RON_ASSERT(ron_signer_parse(ron_str(KEY_TEXT), &signer) == RON_OK);
    cp.origin = ron_signer_name(signer);
    cp.size = n;
    cp.root = row.root;
    RON_ASSERT(ron_note_sign(signer, &cp, &note) == RON_OK
               && ron_store_head_write(store, ron_buf_str(&note)) == RON_OK);

    ron_signer_free(signer);
    ron_buf_free(&note);
    ron_buf_free(&bytes);
    ron_buf_free(&body);
    ron_store_close(store);

    return 0;
}


/* ---- the test ----------------------------------------------------------- */

static void
test_file(const char *path, void (*generate)(ron_buf_t *out))
{
    ron_buf_t  want;

    generate(&want);
    is_u64(vector_file_differs(path, &want), 0, "%s is what is written "
           "today; the number is its first line that is not", path);
    ron_buf_free(&want);
}


static int
print(void (*generate)(ron_buf_t *out))
{
    ron_buf_t  out;

    generate(&out);

    return fwrite(out.data, 1, out.len, stdout) == out.len ? 0 : 1;
}


int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--tree") == 0) {
        return print(generate_tree);
    }

    if (argc == 2 && strcmp(argv[1], "--store") == 0) {
        return print(generate_store);
    }

    if (argc == 5 && strcmp(argv[1], "--ledger") == 0) {
        return make_ledger(argv[2], argv[3], strtoull(argv[4], NULL, 10));
    }

    test_file(TREE_FILE, generate_tree);
    test_file(STORE_FILE, generate_store);

    return done_testing();
}
