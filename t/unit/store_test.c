
/*
 * Both stores through one table of tests, then what only one of them has.
 *
 *     store_test              the tests
 *     store_test amnesia      a life of a memory ledger, for t/05-amnesia.t
 */

#include "ron_test.h"
#include "ron_entry.h"
#include "ron_port.h"
#include "ron_store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define ROOTS_MAX     512
#define REGION_LEN    ((size_t) 32 << 20)
#define KILL_ROUNDS   100


/* A writer's view of a ledger: what the engine would keep. */
typedef struct {
    ron_store_conf_t   conf;
    ron_store_t       *store;
    ron_reader_t      *reader;
    ron_tree_t         tree;
    ron_hash_t         chain;
    uint64_t           epoch;
    uint64_t           next;
    ron_buf_t          body;
    ron_buf_t          tiles;
    size_t             entry_len;
    uint32_t           root_n;
    uint64_t           root_size[ROOTS_MAX];
    ron_hash_t         root[ROOTS_MAX];
} world_t;


typedef struct {
    const char  *name;
    void       (*setup)(world_t *w);
} kind_t;


typedef struct {
    uint64_t    next;
    ron_hash_t  chain;
    ron_hash_t  root;
    uint32_t    rows;
    uint32_t    wrong;
    uint64_t    stop_at;
} walk_t;


static char     tmp_dir[128];
static uint32_t dir_n;


/* ---- helpers ------------------------------------------------------------ */

__attribute__((format(printf, 1, 2)))
static void
run(const char *fmt, ...)
{
    char     cmd[1024];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(cmd, sizeof(cmd), fmt, args);
    va_end(args);

    if (system(cmd) != 0) {
        diag("%s failed", cmd);
        exit(1);
    }
}


static void
fresh_dir(char *url, size_t len)
{
    (void) snprintf(url, len, "sqlite:%s/l%u", tmp_dir, dir_n++);
}


static const char *
dir_of(const world_t *w)
{
    return w->conf.url + strlen("sqlite:");
}


static void
setup_sqlite(world_t *w)
{
    static char  urls[64][160];
    static int   n;

    memset(w, 0, sizeof(world_t));
    fresh_dir(urls[n], sizeof(urls[n]));
    w->conf.url = urls[n++];
    w->conf.create = true;
    w->conf.ledger_id = 4711;
}


static void
setup_memory(world_t *w)
{
    memset(w, 0, sizeof(world_t));
    w->conf.url = "memory:32m";
    w->conf.region = mmap(NULL, REGION_LEN, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    w->conf.region_len = REGION_LEN;
    w->conf.create = true;
    w->conf.ledger_id = 4711;

    RON_ASSERT(w->conf.region != MAP_FAILED);
}


static const kind_t  kinds[] = {
    { "sqlite", setup_sqlite },
    { "memory", setup_memory },
};


/* Entries whose bytes follow from their seq, so that anybody can check them. */

static size_t
entry_make(uint64_t seq, size_t len, uint8_t *out)
{
    size_t    i;
    uint64_t  x;

    x = seq * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out[i] = (uint8_t) x;
    }

    return len;
}


static size_t
entry_len(const world_t *w, uint64_t seq)
{
    return w->entry_len != 0 ? w->entry_len : 20 + seq % 211;
}


static ron_status_t
keep_tile(void *ctx, const ron_tile_t *tile)
{
    ron_buf_put(ctx, tile, sizeof(ron_tile_t));

    return RON_OK;
}


/* The row of n entries that follows; `tree` becomes the tree with them. */

static void
row_make(world_t *w, uint64_t n, ron_row_t *row, ron_tree_t *tree)
{
    size_t      len;
    uint8_t     bytes[2048];
    uint64_t    i;
    ron_hash_t  leaf;

    memset(row, 0, sizeof(ron_row_t));
    ron_buf_reset(&w->body);
    ron_buf_reset(&w->tiles);

    *tree = w->tree;
    ron_tree_root(tree, &row->prev_root);

    for (i = 0; i < n; i++) {
        len = entry_make(w->next + i, entry_len(w, w->next + i), bytes);
        ron_body_put(&w->body, (ron_str_t) { len, bytes });
        ron_digest_leaf(RON_DIGEST_BLAKE3, bytes, len, &leaf);
        (void) ron_tree_append(tree, &leaf, keep_tile, &w->tiles);
    }

    ron_tree_root(tree, &row->root);

    row->seq = w->next;
    row->count = n;
    row->epoch = w->epoch;
    row->time_ms = 1700000000000 + w->next;
    row->body = ron_buf_str(&w->body);

    if (w->next % 3 == 0) {
        row->notes = ron_str("a note of this batch");
    }

    if (w->next % 5 == 0) {
        row->checkpoint = row->prev_root;
    }
}


static ron_status_t
commit_with(world_t *w, uint64_t n, const ron_slice_t *slice)
{
    ron_row_t          row;
    ron_status_t       status;
    static ron_tree_t  tree;

    row_make(w, n, &row, &tree);

    status = ron_store_append(w->store, &row, &w->chain,
                              (void *) w->tiles.data,
                              w->tiles.len / sizeof(ron_tile_t), slice);

    if (status == RON_OK) {
        w->tree = tree;
        w->chain = row.chain;
        w->next += n;

        if (w->root_n < ROOTS_MAX) {
            w->root_size[w->root_n] = tree.size;
            w->root[w->root_n++] = row.root;
        }
    }

    return status;
}


static ron_status_t
commit(world_t *w, uint64_t n)
{
    return commit_with(w, n, NULL);
}


static ron_status_t
world_open(world_t *w)
{
    ron_status_t  status;

    if (w->next == 0) {
        ron_tree_init(&w->tree, RON_DIGEST_BLAKE3);
        w->next = 1;
    }

    status = ron_store_open(&w->conf, &w->store);

    if (status == RON_OK) {
        status = ron_reader_open(w->store, &w->reader);
    }

    return status;
}


static ron_status_t
world_start(world_t *w)
{
    ron_status_t  status;

    status = world_open(w);

    return status == RON_OK ? ron_store_acquire(w->store, &w->epoch) : status;
}


static void
world_end(world_t *w)
{
    ron_reader_close(w->reader);
    ron_store_close(w->store);
    w->reader = NULL;
    w->store = NULL;
}


static void
world_free(world_t *w)
{
    world_end(w);
    ron_buf_free(&w->body);
    ron_buf_free(&w->tiles);

    if (w->conf.region != NULL) {
        (void) munmap(w->conf.region, w->conf.region_len);
    }
}


/* Takes up what is stored, as a successor would. */

static ron_status_t
world_recover(world_t *w)
{
    ron_row_t          head;
    ron_status_t       status;
    ron_tile_reader_t  source;

    status = ron_reader_head(w->reader, &head);

    if (status == RON_ENOTFOUND) {
        ron_tree_init(&w->tree, RON_DIGEST_BLAKE3);
        memset(&w->chain, 0, sizeof(w->chain));
        w->next = 1;
        return RON_OK;
    }

    if (status != RON_OK) {
        return status;
    }

    w->next = head.seq + head.count;
    w->chain = head.chain;

    source.reader = w->reader;
    source.digest = RON_DIGEST_BLAKE3;

    return ron_tree_load(&w->tree, RON_DIGEST_BLAKE3, w->next - 1,
                         ron_tile_from_reader, &source);
}


/* Checks order, roots, chain and every entry of a row. */

static ron_status_t
walk_row(void *ctx, const ron_row_t *row)
{
    walk_t      *k;
    uint8_t      want[2048];
    uint64_t     seq;
    ron_rd_t     rd;
    ron_str_t    entry;
    ron_hash_t   chain;

    k = ctx;

    if (k->stop_at != 0 && row->seq >= k->stop_at) {
        return RON_ECANCELED;
    }

    ron_row_chain(&k->chain, row, &chain);

    if (row->seq != k->next || !ron_hash_eq(&chain, &row->chain)
        || (row->seq != 1 && !ron_hash_eq(&k->root, &row->prev_root)))
    {
        k->wrong++;
    }

    ron_rd_init(&rd, row->body);

    for (seq = row->seq; seq < row->seq + row->count; seq++) {

        if (ron_body_next(&rd, &entry) != RON_OK || entry.len > sizeof(want)) {
            k->wrong++;
            break;
        }

        entry_make(seq, entry.len, want);

        if (memcmp(entry.data, want, entry.len) != 0) {
            k->wrong++;
        }
    }

    if (ron_rd_left(&rd) != 0) {
        k->wrong++;
    }

    k->next = row->seq + row->count;
    k->chain = row->chain;
    k->root = row->root;
    k->rows++;

    return RON_OK;
}


static void
walk_init(walk_t *k)
{
    memset(k, 0, sizeof(walk_t));
    k->next = 1;
}


static ron_status_t
walk_all(ron_reader_t *reader, size_t max_bytes, walk_t *k)
{
    uint64_t      next;
    ron_status_t  status;

    for ( ;; ) {
        status = ron_reader_rows(reader, k->next, max_bytes, walk_row, k,
                                 &next);
        if (status != RON_OK) {
            return status;
        }

        if (next != k->next) {
            k->wrong++;
            return RON_ECORRUPT;
        }
    }
}


/* ---- tests that both stores pass ---------------------------------------- */

static void
test_open(const kind_t *kind)
{
    world_t                   w;
    ron_row_t                 row;
    ron_tile_t                tile;
    uint64_t                  gen, next, epoch;
    uint32_t                  count;
    bool                      complete;
    ron_buf_t                 buf;
    ron_store_t              *other;
    const ron_ledger_meta_t  *meta;

    kind->setup(&w);
    w.conf.create = false;
    is_status(ron_store_open(&w.conf, &w.store), RON_ENOTFOUND,
              "%s: nothing there", kind->name);
    ok(w.store == NULL && ron_store_error(NULL)[0] != '\0',
       "%s: and it says so: %s", kind->name, ron_store_error(NULL));

    w.conf.create = true;
    w.conf.digest = RON_DIGEST_SHA256;
    is_status(world_open(&w), RON_OK, "%s: created", kind->name);

    w.conf.digest = RON_DIGEST_BLAKE3;
    w.conf.ledger_id = 1;
    is_status(ron_store_open(&w.conf, &other), RON_OK, "%s: opened again",
              kind->name);

    meta = ron_store_meta(other);
    is_u64(meta->format, 1, "%s: format", kind->name);
    is_u64(meta->ledger_id, 4711, "%s: ledger id stays", kind->name);
    is_u64(meta->digest, RON_DIGEST_SHA256, "%s: digest stays", kind->name);
    ok(meta->created_ms > UINT64_C(1600000000000), "%s: creation time",
       kind->name);

    memset(&row, 0xff, sizeof(row));
    is_status(ron_reader_head(w.reader, &row), RON_ENOTFOUND,
              "%s: an empty ledger has no head", kind->name);
    is_u64(row.seq, 0, "%s: and the result is zeroed", kind->name);
    is_status(ron_reader_row(w.reader, 1, &row), RON_ENOTFOUND,
              "%s: no row", kind->name);
    is_status(ron_reader_rows(w.reader, 1, 100, walk_row, NULL, &next),
              RON_ENOTFOUND, "%s: no rows", kind->name);
    is_status(ron_reader_tile(w.reader, 0, 0, &tile), RON_ENOTFOUND,
              "%s: no tile", kind->name);
    is_status(ron_reader_gen(w.reader, UINT64_MAX, &gen, &count, &complete),
              RON_ENOTFOUND, "%s: no generation", kind->name);

    ron_buf_init(&buf, 0);
    is_status(ron_store_head_read(w.store, &buf), RON_ENOTFOUND,
              "%s: no published head", kind->name);
    is_status(ron_store_mark_read(w.store, &buf), RON_ENOTFOUND,
              "%s: no mark", kind->name);

    is_status(ron_store_acquire(w.store, &epoch), RON_OK, "%s: acquired",
              kind->name);
    is_u64(epoch, 1, "%s: the first epoch", kind->name);
    is_status(ron_store_acquire(other, &epoch), RON_AGAIN,
              "%s: not by two", kind->name);
    is_u64(epoch, 0, "%s: no epoch without the lock", kind->name);
    is_status(ron_store_acquire(w.store, &epoch), RON_EEXIST,
              "%s: not twice", kind->name);

    ron_store_release(w.store);
    is_status(ron_store_acquire(other, &epoch), RON_OK,
              "%s: acquired after release", kind->name);
    is_u64(epoch, 2, "%s: the second epoch", kind->name);

    ron_buf_free(&buf);
    ron_store_close(other);
    world_free(&w);
}


static void
test_rows(const kind_t *kind)
{
    walk_t                 k;
    world_t                w;
    uint64_t               seq, last, i;
    uint32_t               wrong;
    ron_row_t              row;
    static const uint64_t  counts[] = { 1, 1, 3, 128, 255, 256, 257, 1, 600 };

    kind->setup(&w);
    is_status(world_start(&w), RON_OK, "%s: started", kind->name);

    for (i = 0, wrong = 0; i < 3 * ron_array_n(counts); i++) {
        wrong += commit(&w, counts[i % ron_array_n(counts)]) != RON_OK;
    }

    is_u64(wrong, 0, "%s: commits", kind->name);

    is_status(ron_reader_head(w.reader, &row), RON_OK, "%s: head",
              kind->name);
    is_u64(row.seq + row.count, w.next, "%s: is the last row", kind->name);
    is_mem(row.chain.b, w.chain.b, RON_HASH_LEN, "%s: its chain",
           kind->name);

    for (seq = 1, wrong = 0, last = 1; seq < w.next; seq++) {

        if (ron_reader_row(w.reader, seq, &row) != RON_OK
            || seq < row.seq || seq >= row.seq + row.count
            || row.epoch != w.epoch
            || row.time_ms != 1700000000000 + row.seq
            || (row.notes.len != 0) != (row.seq % 3 == 0)
            || (row.seq != last && row.seq != seq))
        {
            wrong++;
        }

        last = row.seq;
    }

    is_u64(wrong, 0, "%s: each of %" PRIu64 " entries has its row",
           kind->name, w.next - 1);

    is_status(ron_reader_row(w.reader, w.next, &row), RON_ENOTFOUND,
              "%s: past the head", kind->name);
    is_status(ron_reader_row(w.reader, 0, &row), RON_ENOTFOUND,
              "%s: seq 0", kind->name);
    is_status(ron_reader_row(w.reader, UINT64_MAX, &row), RON_ENOTFOUND,
              "%s: the largest seq", kind->name);

    walk_init(&k);
    is_status(walk_all(w.reader, 1, &k), RON_ENOTFOUND,
              "%s: rows one at a time", kind->name);
    is_u64(k.rows, 3 * ron_array_n(counts), "%s: all of them", kind->name);
    is_u64(k.wrong, 0, "%s: chain, roots, entries", kind->name);

    walk_init(&k);
    is_status(walk_all(w.reader, 20000, &k), RON_ENOTFOUND,
              "%s: rows in pages", kind->name);
    is_u64(k.next, w.next, "%s: up to the head", kind->name);
    is_u64(k.wrong, 0, "%s: chain, roots, entries", kind->name);

    /* a start in the middle of a row gives that row; a refusal ends it */

    walk_init(&k);
    is_status(ron_reader_rows(w.reader, 2, SIZE_MAX, walk_row, &k, &seq),
              RON_OK, "%s: rows from seq 2", kind->name);
    is_u64(seq, w.next, "%s: the rest in one page", kind->name);

    walk_init(&k);
    k.stop_at = 6;
    is_status(ron_reader_rows(w.reader, 1, SIZE_MAX, walk_row, &k, &seq),
              RON_ECANCELED, "%s: the callback says stop", kind->name);
    is_u64(seq, 6, "%s: and goes on there", kind->name);

    walk_init(&k);
    (void) ron_reader_rows(w.reader, 100, 1, walk_row, &k, &seq);
    is_u64(seq, 134, "%s: a page from inside a row", kind->name);

    world_end(&w);

    /* what a later process finds */

    is_status(world_open(&w), RON_OK, "%s: opened again", kind->name);
    walk_init(&k);
    (void) walk_all(w.reader, 100000, &k);
    is_u64(k.next, w.next, "%s: all is still there", kind->name);
    is_u64(k.wrong, 0, "%s: and right", kind->name);

    world_free(&w);
}


/* A reader that is held reads one state, and the newest when it is let go. */

static void
test_hold(const kind_t *kind)
{
    world_t    w;
    uint64_t   before;
    ron_row_t  row;

    kind->setup(&w);
    is_status(world_start(&w), RON_OK, "%s: started", kind->name);
    is_status(commit(&w, 3), RON_OK, "%s: a commit", kind->name);

    before = w.next;

    is_status(ron_reader_hold(w.reader), RON_OK, "%s: held", kind->name);
    is_status(ron_reader_hold(w.reader), RON_OK, "%s: twice", kind->name);
    is_status(ron_reader_head(w.reader, &row), RON_OK, "%s: its head",
              kind->name);
    is_status(commit(&w, 2), RON_OK, "%s: the writer goes on", kind->name);
    is_status(ron_reader_head(w.reader, &row), RON_OK, "%s: its head again",
              kind->name);
    is_u64(row.seq + row.count, w.conf.region == NULL ? before : w.next,
           "%s: is what it was in SQLite", kind->name);

    is_status(ron_reader_release(w.reader), RON_OK, "%s: let go", kind->name);
    is_status(ron_reader_release(w.reader), RON_OK, "%s: twice", kind->name);
    is_status(ron_reader_head(w.reader, &row), RON_OK, "%s: its head now",
              kind->name);
    is_u64(row.seq + row.count, w.next, "%s: is the newest", kind->name);

    world_free(&w);
}


/* 70 000 leaves: a complete tile of level 1, and partial ones of level 1, 2. */

static void
test_tiles(const kind_t *kind)
{
    world_t            w;
    uint32_t           i, wrong;
    ron_tile_t         tile;
    ron_hash_t         root;
    ron_tree_t         tree;
    ron_tile_reader_t  source;

    kind->setup(&w);
    w.entry_len = 20;
    is_status(world_start(&w), RON_OK, "%s: started", kind->name);

    for (i = 0, wrong = 0; i < 140; i++) {
        wrong += commit(&w, i % 2 == 0 ? 999 : 7) != RON_OK;
    }

    is_u64(wrong, 0, "%s: commits with tiles", kind->name);

    source.reader = w.reader;
    source.digest = RON_DIGEST_BLAKE3;

    for (i = 0, wrong = 0; i < w.root_n; i++) {

        if (ron_proof_root(RON_DIGEST_BLAKE3, w.root_size[i],
                           ron_tile_from_reader, &source, &root) != RON_OK
            || !ron_hash_eq(&root, &w.root[i]))
        {
            wrong++;
        }
    }

    is_u64(wrong, 0, "%s: each of %u roots again from tiles and journal",
           kind->name, w.root_n);

    is_status(ron_tree_load(&tree, RON_DIGEST_BLAKE3, w.next - 1,
                            ron_tile_from_reader, &source), RON_OK,
              "%s: the edge", kind->name);
    ok(tree.size == w.tree.size
       && memcmp(tree.edge_n, w.tree.edge_n, sizeof(tree.edge_n)) == 0,
       "%s: is the edge that the writer has", kind->name);
    ron_tree_root(&tree, &root);
    is_mem(root.b, w.root[w.root_n - 1].b, RON_HASH_LEN, "%s: and its root",
           kind->name);

    is_status(ron_reader_tile(w.reader, 1, 0, &tile), RON_OK,
              "%s: the tile of level 1", kind->name);
    ok(tile.level == 1 && tile.index == 0 && tile.width == 256,
       "%s: with its place", kind->name);
    is_status(ron_reader_tile(w.reader, 0, (w.next - 1) / 256, &tile),
              RON_ENOTFOUND, "%s: an incomplete tile is not stored",
              kind->name);
    is_u64(tile.width, 0, "%s: and gives zeros", kind->name);
    is_status(ron_reader_tile(w.reader, 7, 0, &tile), RON_ENOTFOUND,
              "%s: level 7", kind->name);
    is_status(ron_reader_tile(w.reader, 0, UINT64_MAX, &tile), RON_ENOTFOUND,
              "%s: the last index", kind->name);

    tile.level = 0;
    tile.index = w.next / 256;
    tile.width = 200;
    ok(ron_tile_from_reader(&source, w.next - 1, &tile) != RON_OK,
       "%s: no tile from entries that are not there", kind->name);

    world_free(&w);
}


static void
test_fence(const kind_t *kind)
{
    world_t      w;
    ron_row_t    row, bad;
    ron_tree_t   tree;
    ron_tile_t   tile;
    ron_slice_t  slice;

    kind->setup(&w);
    is_status(world_open(&w), RON_OK, "%s: opened", kind->name);

    row_make(&w, 1, &row, &tree);
    is_status(ron_store_append(w.store, &row, &w.chain, NULL, 0, NULL),
              RON_EFENCED, "%s: no append without the lock", kind->name);

    is_status(ron_store_acquire(w.store, &w.epoch), RON_OK, "%s: acquired",
              kind->name);

    w.next = 2;
    is_status(commit(&w, 1), RON_EFENCED, "%s: the first seq is 1",
              kind->name);
    w.next = 1;
    is_status(commit(&w, 3), RON_OK, "%s: first", kind->name);
    is_status(commit(&w, 5), RON_OK, "%s: second", kind->name);

    row_make(&w, 1, &row, &tree);

#define refused(change, want, ...)                                            \
    bad = row;                                                                \
    change;                                                                   \
    is_status(ron_store_append(w.store, &bad, &w.chain, NULL, 0, NULL),       \
              want, __VA_ARGS__)

    refused(bad.seq++, RON_EFENCED, "%s: a gap", kind->name);
    refused(bad.seq--, RON_EFENCED, "%s: an overlap", kind->name);
    refused(bad.seq = 4, RON_EFENCED, "%s: the head again", kind->name);
    refused(bad.seq = 1, RON_EFENCED, "%s: the first row again", kind->name);
    refused(bad.prev_root.b[31] ^= 1, RON_EFENCED, "%s: another root",
            kind->name);
    refused(bad.epoch++, RON_EFENCED, "%s: an epoch to come", kind->name);
    refused(bad.epoch--, RON_EFENCED, "%s: an epoch gone by", kind->name);
    ok(strncmp(ron_store_error(w.store), "journal: ron: ", 14) == 0
       || strncmp(ron_store_error(w.store), "ron: ", 5) == 0,
       "%s: which is told: %s", kind->name, ron_store_error(w.store));
    refused(bad.count = 0, RON_EINVAL, "%s: no entries", kind->name);
    refused(bad.seq = 0, RON_EINVAL, "%s: seq 0", kind->name);
    refused(bad.count = UINT64_MAX, RON_EINVAL, "%s: too many", kind->name);
    refused(bad.body.len = 1, RON_EINVAL, "%s: no bytes", kind->name);

    memset(&tile, 0, sizeof(tile));
    tile.width = 256;
    bad = row;
    is_status(ron_store_append(w.store, &bad, &w.chain, &tile, 1, NULL),
              RON_EINVAL, "%s: a tile that is not complete", kind->name);

    memset(&slice, 0, sizeof(slice));
    slice.gen = UINT64_MAX;
    bad = row;
    is_status(ron_store_append(w.store, &bad, &w.chain, NULL, 0, &slice),
              RON_EINVAL, "%s: a generation beyond all", kind->name);

    is_status(commit(&w, 1), RON_OK, "%s: the right row is still taken",
              kind->name);

    /* the next owner of the ledger; then the first one comes back */

    ron_store_release(w.store);
    is_status(commit(&w, 1), RON_EFENCED, "%s: released", kind->name);
    is_status(ron_store_acquire(w.store, &w.epoch), RON_OK, "%s: again",
              kind->name);
    w.epoch--;
    is_status(commit(&w, 1), RON_EFENCED, "%s: with the old epoch",
              kind->name);
    w.epoch++;
    is_status(commit(&w, 1), RON_OK, "%s: with the new one", kind->name);

    world_free(&w);
}


static void
test_head_and_mark(const kind_t *kind)
{
    char       text[5000];
    world_t    w;
    ron_buf_t  buf;

    kind->setup(&w);
    ron_buf_init(&buf, 0);
    memset(text, 'x', sizeof(text));

    is_status(world_open(&w), RON_OK, "%s: opened", kind->name);
    is_status(ron_store_head_write(w.store, ron_str("h")), RON_EFENCED,
              "%s: no head without the lock", kind->name);
    is_status(ron_store_acquire(w.store, &w.epoch), RON_OK, "%s: acquired",
              kind->name);
    is_status(ron_store_head_read(w.store, &buf), RON_ENOTFOUND,
              "%s: no head before the first", kind->name);

    is_status(ron_store_head_write(w.store, ron_str("size 1\n")), RON_OK,
              "%s: head", kind->name);
    is_status(ron_store_head_write(w.store, ron_str("size 22\n")), RON_OK,
              "%s: next head", kind->name);
    is_status(ron_store_head_read(w.store, &buf), RON_OK, "%s: read",
              kind->name);
    ok(ron_str_eq(ron_buf_str(&buf), ron_str("size 22\n")),
       "%s: the last one", kind->name);

    is_status(ron_store_head_write(w.store, (ron_str_t) { 4000,
                                   (const uint8_t *) text }), RON_OK,
              "%s: a long head", kind->name);
    is_status(ron_store_head_write(w.store, (ron_str_t) { sizeof(text),
                                   (const uint8_t *) text }), RON_ERANGE,
              "%s: too long", kind->name);
    is_status(ron_store_head_read(w.store, &buf), RON_OK, "%s: read",
              kind->name);
    is_u64(buf.len, 4000, "%s: is the long one", kind->name);

    is_status(ron_store_mark_read(w.store, &buf), RON_ENOTFOUND,
              "%s: no mark", kind->name);
    is_status(ron_store_mark_write(w.store, ron_str("disk full at 7")),
              RON_OK, "%s: marked", kind->name);
    ron_store_release(w.store);

    is_status(ron_store_mark_read(w.store, &buf), RON_OK, "%s: mark",
              kind->name);
    ok(ron_str_eq(ron_buf_str(&buf), ron_str("disk full at 7")),
       "%s: with its reason", kind->name);
    is_status(ron_store_mark_write(w.store, ron_null_str), RON_EFENCED,
              "%s: only the writer clears it", kind->name);
    is_status(ron_store_mark_write(w.store, ron_str("anybody sets it")),
              RON_OK, "%s: but anybody sets it", kind->name);
    world_end(&w);

    is_status(world_start(&w), RON_OK, "%s: opened again", kind->name);
    is_status(ron_store_mark_read(w.store, &buf), RON_OK,
              "%s: the mark survives", kind->name);
    ok(ron_str_eq(ron_buf_str(&buf), ron_str("anybody sets it")),
       "%s: with the last reason", kind->name);
    is_status(ron_store_mark_write(w.store, (ron_str_t) { sizeof(text),
                                   (const uint8_t *) text }), RON_OK,
              "%s: a reason too long is cut, not refused", kind->name);
    is_status(ron_store_mark_read(w.store, &buf), RON_OK, "%s: read",
              kind->name);
    ok(buf.len > 3000, "%s: most of it", kind->name);
    is_status(ron_store_mark_write(w.store, ron_null_str), RON_OK,
              "%s: cleared", kind->name);
    is_status(ron_store_mark_read(w.store, &buf), RON_ENOTFOUND,
              "%s: no mark", kind->name);
    is_status(ron_store_probe(w.store), RON_OK, "%s: probe", kind->name);

    ron_buf_free(&buf);
    world_free(&w);
}


/* A child that takes the lock, says so, and sits on it. */

static pid_t
child_holder(world_t *w)
{
    int       fds[2];
    char      c;
    pid_t     pid;
    uint64_t  epoch;

    RON_ASSERT(pipe(fds) == 0);

    pid = fork();

    if (pid == 0) {
        (void) close(fds[0]);
        w->store = NULL;

        c = ron_store_open(&w->conf, &w->store) == RON_OK
            && ron_store_acquire(w->store, &epoch) == RON_OK ? 'y' : 'n';

        (void) !write(fds[1], &c, 1);
        (void) pause();
        _exit(0);
    }

    (void) close(fds[1]);
    c = 'n';
    (void) !read(fds[0], &c, 1);
    (void) close(fds[0]);
    ok(c == 'y', "the child has the lock");

    return pid;
}


static void
test_lock(const kind_t *kind)
{
    pid_t     pid;
    world_t   w;
    uint64_t  epoch;

    kind->setup(&w);
    is_status(world_start(&w), RON_OK, "%s: started", kind->name);
    world_end(&w);

    pid = child_holder(&w);

    is_status(world_open(&w), RON_OK, "%s: opened beside a writer",
              kind->name);
    is_status(ron_store_acquire(w.store, &epoch), RON_AGAIN,
              "%s: the lock is another process's", kind->name);
    ok(strstr(ron_store_error(w.store), "another writer") != NULL,
       "%s: and it says so: %s", kind->name, ron_store_error(w.store));

    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);

    is_status(ron_store_acquire(w.store, &epoch), RON_OK,
              "%s: killed, and the lock is free", kind->name);
    is_u64(epoch, 3, "%s: its epoch was counted", kind->name);

    world_free(&w);
}


/* A reader in another process checks everything while it is being written. */

static void
test_follow(const kind_t *kind)
{
    int      status;
    pid_t    pid;
    walk_t   k;
    world_t  w;
    uint32_t i, wrong;

    kind->setup(&w);
    w.conf.wal_pages = 50;
    is_status(world_start(&w), RON_OK, "%s: started", kind->name);

    /* a fork() may not carry connections along */

    world_end(&w);
    pid = fork();

    if (pid == 0) {
        alarm(60);

        if (world_open(&w) != RON_OK) {
            _exit(2);
        }

        walk_init(&k);

        while (k.next <= 10000) {
            if (walk_all(w.reader, 30000, &k) != RON_ENOTFOUND) {
                _exit(3);
            }
        }

        _exit(k.wrong == 0 ? 0 : 4);
    }

    is_status(world_start(&w), RON_OK, "%s: started again", kind->name);

    for (i = 0, wrong = 0; i < 1000; i++) {
        wrong += commit(&w, 1 + i % 20) != RON_OK;
        wrong += ron_store_maintain(w.store, 0) != RON_OK;
    }

    is_u64(wrong, 0, "%s: commits while somebody reads", kind->name);

    (void) waitpid(pid, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "%s: the reader saw nothing wrong (%d)", kind->name, status);

    world_free(&w);
}


/* Commits as fast as it can and reports each one that was acknowledged. */

static void
child_writer(world_t *w, int fd)
{
    uint64_t  n;

    if (world_start(w) != RON_OK || world_recover(w) != RON_OK) {
        _exit(2);
    }

    for (n = 0; ; n++) {

        if (commit(w, 1 + (w->next + n) % 40) != RON_OK
            || write(fd, &w->next, sizeof(w->next)) != sizeof(w->next)
            || ron_store_head_write(w->store, ron_str("head")) != RON_OK
            || ron_store_maintain(w->store, 0) != RON_OK)
        {
            _exit(3);
        }
    }
}


static void
test_kill(const kind_t *kind)
{
    int            fds[2], status;
    pid_t          pid;
    walk_t         k;
    world_t        w;
    uint64_t       acked, value;
    uint32_t       i, lost, ended;
    ron_row_t      head;
    struct pollfd  pfd;

    kind->setup(&w);
    w.conf.wal_pages = 60;
    w.entry_len = 30;
    is_status(world_start(&w), RON_OK, "%s: started", kind->name);
    world_end(&w);

    acked = 1;
    lost = 0;
    ended = 0;

    for (i = 0; i < KILL_ROUNDS; i++) {

        RON_ASSERT(pipe(fds) == 0);
        pid = fork();

        if (pid == 0) {
            (void) close(fds[0]);
            child_writer(&w, fds[1]);
        }

        (void) close(fds[1]);

        /* it dies some moments after its first commit */

        pfd.fd = fds[0];
        pfd.events = POLLIN;
        (void) poll(&pfd, 1, 10000);
        ron_sleep_us(i * 37 % 2500);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, &status, 0);
        ended += WIFEXITED(status);

        while (read(fds[0], &value, sizeof(value)) == sizeof(value)) {
            acked = value;
        }

        (void) close(fds[0]);

        /* the writer is dead, and its WAL still has the newest rows */

        if (world_open(&w) != RON_OK
            || ron_reader_head(w.reader, &head) != RON_OK
            || head.seq + head.count < acked)
        {
            diag("round %u: %s, acked %" PRIu64 ", head %" PRIu64, i,
                 ron_store_error(w.store), acked, head.seq + head.count);
            lost++;
        }

        world_end(&w);
    }

    is_u64(ended, 0, "%s: no writer ended by itself", kind->name);
    is_u64(lost, 0, "%s: killed %d times, nothing acknowledged was lost",
           kind->name, KILL_ROUNDS);

    is_status(world_start(&w), RON_OK, "%s: after all that", kind->name);
    is_u64(w.epoch, KILL_ROUNDS + 2, "%s: each one had its epoch",
           kind->name);

    walk_init(&k);
    is_status(walk_all(w.reader, 1 << 20, &k), RON_ENOTFOUND,
              "%s: the whole journal reads", kind->name);
    is_u64(k.wrong, 0, "%s: and follows (%" PRIu64 " entries, %u rows)",
           kind->name, k.next - 1, k.rows);

    is_status(world_recover(&w), RON_OK, "%s: the edge loads", kind->name);
    is_status(commit(&w, 300), RON_OK, "%s: and takes the next commit",
              kind->name);

    world_free(&w);
}


/* ---- sqlite only -------------------------------------------------------- */

static void
raw_exec(const char *dir, const char *sql, const char *want)
{
    int       rc;
    char      path[300];
    char     *why;
    sqlite3  *db;

    (void) snprintf(path, sizeof(path), "%s/ledger.db", dir);

    RON_ASSERT(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL)
               == SQLITE_OK);

    why = NULL;
    rc = sqlite3_exec(db, sql, NULL, NULL, &why);

    if (want == NULL) {
        is_u64(rc, SQLITE_OK, "done: %s (%s)", sql, why != NULL ? why : "");

    } else {
        ok(rc != SQLITE_OK && why != NULL && strstr(why, want) != NULL,
           "refused with \"%s\": %s", why != NULL ? why : "", sql);
    }

    sqlite3_free(why);
    (void) sqlite3_close(db);
}


static void
test_triggers(void)
{
    walk_t       k;
    size_t       i;
    world_t      w;
    const char  *dir;

    static const char *const  refused[][2] = {

        { "UPDATE journal SET body = x'00' WHERE seq = 1", "append-only" },
        { "UPDATE journal SET seq = 99 WHERE seq = 1", "append-only" },
        { "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal)",
          "append-only" },
        { "DELETE FROM journal", "append-only" },
        { "INSERT OR REPLACE INTO journal SELECT * FROM journal "
          "ORDER BY seq DESC LIMIT 1", "does not follow" },
        { "REPLACE INTO journal SELECT * FROM journal ORDER BY seq LIMIT 1",
          "does not follow" },
        { "INSERT OR IGNORE INTO journal SELECT * FROM journal "
          "ORDER BY seq LIMIT 1", "does not follow" },
        { "PRAGMA recursive_triggers = 1; REPLACE INTO journal "
          "SELECT * FROM journal ORDER BY seq LIMIT 1", "does not follow" },
        { "INSERT INTO journal SELECT seq + count, 0, epoch, time_ms, root, "
          "root, NULL, chain, NULL, body FROM journal "
          "ORDER BY seq DESC LIMIT 1", "malformed" },
        { "INSERT INTO journal SELECT seq + count, 1, epoch, time_ms, root, "
          "x'00', NULL, chain, NULL, body FROM journal "
          "ORDER BY seq DESC LIMIT 1", "malformed" },
        { "INSERT INTO journal SELECT seq + count, 1, epoch + 1, time_ms, "
          "root, root, NULL, chain, NULL, body FROM journal "
          "ORDER BY seq DESC LIMIT 1", "replaced" },
        { "INSERT INTO journal SELECT NULL, 1, epoch, time_ms, "
          "root, root, NULL, chain, NULL, body FROM journal "
          "ORDER BY seq DESC LIMIT 1", "does not follow" },
        { "UPDATE tile SET hashes = zeroblob(8192)", "append-only" },
        { "DELETE FROM tile", "append-only" },
        { "REPLACE INTO tile SELECT id, zeroblob(8192) FROM tile LIMIT 1",
          "append-only" },
        { "INSERT INTO tile VALUES (1 << 59, x'00')", "append-only" },
        { "UPDATE writer SET epoch = epoch - 1", "only rises" },
        { "UPDATE writer SET epoch = epoch", "only rises" },
        { "DELETE FROM writer", "one writer" },
        { "REPLACE INTO writer VALUES (1, 0)", "one writer" },
        { "UPDATE meta SET digest = 'sha256'", "never changes" },
        { "DELETE FROM meta", "never changes" },
        { "REPLACE INTO meta VALUES (1, 1, 1, 'sha256', 1)",
          "never changes" },
    };

    setup_sqlite(&w);
    dir = dir_of(&w);
    is_status(world_start(&w), RON_OK, "started");
    is_status(commit(&w, 200), RON_OK, "a row");
    is_status(commit(&w, 100), RON_OK, "a row with a tile");

    for (i = 0; i < ron_array_n(refused); i++) {
        raw_exec(dir, refused[i][0], refused[i][1]);
    }

    is_status(commit(&w, 1), RON_OK, "the writer goes on");

    /* whoever raised the epoch is the writer, lock or no lock */

    raw_exec(dir, "UPDATE writer SET epoch = epoch + 1", NULL);
    is_status(commit(&w, 1), RON_EFENCED, "a writer that was replaced");
    ok(strstr(ron_store_error(w.store), "replaced") != NULL, "is told: %s",
       ron_store_error(w.store));
    w.epoch++;
    is_status(commit(&w, 1), RON_OK, "the epoch of the journal");

    walk_init(&k);
    (void) walk_all(w.reader, 1000, &k);
    is_u64(k.next, w.next, "the journal is what it was");
    is_u64(k.wrong, 0, "and right");

    world_free(&w);
}


/* Either lock alone keeps a writer out. */

static void
test_locks(void)
{
    int                       fd;
    char                      path[300];
    size_t                    i;
    world_t                   w;
    uint64_t                  epoch;
    static const char *const  names[] = { ".", "ledger.lock" };

    setup_sqlite(&w);
    is_status(world_start(&w), RON_OK, "started");
    ron_store_release(w.store);

    for (i = 0; i < ron_array_n(names); i++) {

        (void) snprintf(path, sizeof(path), "%s/%s", dir_of(&w), names[i]);
        fd = open(path, O_RDONLY);
        RON_ASSERT(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);

        is_status(ron_store_acquire(w.store, &epoch), RON_AGAIN,
                  "%s is locked", names[i]);

        (void) close(fd);
    }

    is_status(ron_store_acquire(w.store, &epoch), RON_OK, "nothing is");

    world_free(&w);
}


static uint32_t
mode_of(const char *dir, const char *name)
{
    char         path[300];
    struct stat  st;

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);

    return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}


static void
test_modes(void)
{
    size_t       i;
    mode_t       mask;
    world_t      w;
    const char  *dir;

    static const uint32_t     bad[] = { 0750, 0701, 0770, 0704, 0777 };
    static const char *const  files[] = {
        "ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.lock", "head",
        "safe-mode"
    };

    setup_sqlite(&w);
    dir = dir_of(&w);

    mask = umask(0);
    is_status(world_start(&w), RON_OK, "created with umask 0");
    is_status(commit(&w, 1), RON_OK, "a row");
    is_u64(mode_of(dir, "."), 0700, "the directory is 0700");

    for (i = 0; i < ron_array_n(files); i++) {
        is_u64(mode_of(dir, files[i]), 0600, "%s is 0600", files[i]);
    }

    (void) umask(mask);
    world_end(&w);

    for (i = 0; i < ron_array_n(bad); i++) {
        (void) chmod(dir, bad[i]);
        is_status(ron_store_open(&w.conf, &w.store), RON_EINVAL,
                  "a directory with mode %04o", bad[i]);
        ok(strstr(ron_store_error(NULL), "chmod 0700") != NULL,
           "and what to do: %s", ron_store_error(NULL));
    }

    (void) chmod(dir, 0700);
    is_status(world_start(&w), RON_OK, "with mode 0700 again");

    world_free(&w);
}


/* As a user who owns the directory but may not write into it, and another. */

static void
test_rights(void)
{
    int       fds[2];
    char      text[600];
    pid_t     pid;
    size_t    i;
    ssize_t   n;
    world_t   w;
    uint64_t  epoch;

    if (geteuid() != 0) {
        skip("needs root");
        return;
    }

    setup_sqlite(&w);
    is_status(world_start(&w), RON_OK, "started");
    is_status(commit(&w, 3), RON_OK, "a row");
    world_end(&w);

    for (i = 0; i < 3; i++) {

        if (i == 1) {
            run("rm -f %s/ledger.db-shm", dir_of(&w));
            run("chown -R 65534:65534 %s && chmod 0500 %s", dir_of(&w),
                dir_of(&w));
        }

        if (i == 2) {
            run("chmod 0700 %s", dir_of(&w));
        }

        RON_ASSERT(pipe(fds) == 0);
        pid = fork();

        if (pid == 0) {
            if (i < 2 && (setgid(65534) != 0 || setuid(65534) != 0)) {
                _exit(1);
            }

            w.conf.create = false;
            n = (int) ron_store_open(&w.conf, &w.store);

            if (n == 0 && i == 2) {
                n = (int) ron_store_acquire(w.store, &epoch);
            }

            (void) snprintf(text, sizeof(text), "%d %s", (int) n,
                            ron_store_error(w.store));
            (void) !write(fds[1], text, strlen(text));
            _exit(0);
        }

        (void) close(fds[1]);
        n = read(fds[0], text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = '\0';
        (void) close(fds[0]);
        (void) waitpid(pid, NULL, 0);

        ok(text[0] != '0' && strstr(text, "run as the ") != NULL,
           "%s: %s", i == 0 ? "another user's directory"
                     : i == 1 ? "a directory that cannot be written"
                              : "root in a user's directory", text);
    }

    is_status(world_open(&w), RON_OK, "root may read it, though");
    world_free(&w);
}


static void
overwrite(const world_t *w, const char *name, off_t at, const char *bytes)
{
    int   fd;
    char  path[300];

    (void) snprintf(path, sizeof(path), "%s/%s", dir_of(w), name);
    fd = open(path, O_WRONLY);
    RON_ASSERT(fd >= 0);
    RON_ASSERT(pwrite(fd, bytes, strlen(bytes), at)
               == (ssize_t) strlen(bytes));
    (void) close(fd);
}


static void
test_torn(void)
{
    world_t      w;
    ron_buf_t    buf;
    struct stat  st;
    char         path[300];

    setup_sqlite(&w);
    ron_buf_init(&buf, 0);
    is_status(world_start(&w), RON_OK, "started");

    (void) snprintf(path, sizeof(path), "%s/safe-mode", dir_of(&w));
    ok(stat(path, &st) == 0 && st.st_size == 4096 && st.st_blocks >= 8,
       "the mark's file has its page before it is needed");
    (void) snprintf(path, sizeof(path), "%s/head", dir_of(&w));
    ok(stat(path, &st) == 0 && st.st_size == 4096,
       "the head's file has its page before it is needed");

    (void) ron_store_head_write(w.store, ron_str("this is the head"));
    overwrite(&w, "head", 30, "torn");
    is_status(ron_store_head_read(w.store, &buf), RON_ENOTFOUND,
              "a torn head is absent");

    (void) ron_store_head_write(w.store, ron_str("this is the head"));
    overwrite(&w, "head", 100, "beyond");
    is_status(ron_store_head_read(w.store, &buf), RON_OK,
              "what lies behind it does not matter");

    (void) ron_store_mark_write(w.store, ron_str("this is the reason"));
    overwrite(&w, "safe-mode", 30, "torn");
    is_status(ron_store_mark_read(w.store, &buf), RON_OK,
              "a torn mark is a mark");
    ok(ron_str_eq(ron_buf_str(&buf), ron_str("unreadable mark")),
       "of an unknown reason");

    (void) ron_store_mark_write(w.store, ron_null_str);
    overwrite(&w, "safe-mode", 0, "X");
    is_status(ron_store_mark_read(w.store, &buf), RON_OK,
              "a clear mark that is damaged is a mark");

    (void) snprintf(path, sizeof(path), "%s/safe-mode", dir_of(&w));
    RON_ASSERT(truncate(path, 0) == 0);
    is_status(ron_store_mark_read(w.store, &buf), RON_OK,
              "an empty file is a mark");
    is_status(ron_store_mark_write(w.store, ron_null_str), RON_OK,
              "which the writer clears");
    is_status(ron_store_mark_read(w.store, &buf), RON_ENOTFOUND, "clear");

    world_end(&w);
    RON_ASSERT(unlink(path) == 0);
    is_status(world_start(&w), RON_OK, "started without the file");
    ok(stat(path, &st) == 0 && st.st_size == 4096, "it is made again");
    is_status(ron_store_mark_read(w.store, &buf), RON_ENOTFOUND, "clear");

    world_end(&w);
    RON_ASSERT(unlink(path) == 0);
    is_status(world_open(&w), RON_OK, "opened without the file");
    is_status(ron_store_mark_write(w.store, ron_str("why")), RON_OK,
              "marked without lock or file");
    is_status(ron_store_mark_read(w.store, &buf), RON_OK, "marked");
    ok(ron_str_eq(ron_buf_str(&buf), ron_str("why")), "with the reason");

    ron_buf_free(&buf);
    world_free(&w);
}


static void
test_slices(void)
{
    bool         complete;
    char         text[64];
    world_t      w;
    uint32_t     i, count, wrong;
    uint64_t     gen;
    ron_slice_t  slice, got;

    setup_sqlite(&w);
    is_status(world_start(&w), RON_OK, "started");

    /* generation 5 with 200 slices, 6 with 3, 7 without its end */

    for (i = 0, wrong = 0; i < 205; i++) {
        slice.gen = i < 200 ? 5 : i < 203 ? 6 : 7;
        slice.no = i < 200 ? i : i < 203 ? i - 200 : i - 203;
        slice.last = i == 199 || i == 202;
        slice.seq = w.next - 1;
        (void) snprintf(text, sizeof(text), "slice %u", i);
        slice.body = i == 201 ? ron_null_str : ron_cstr(text);

        wrong += commit_with(&w, 1, &slice) != RON_OK;
    }

    is_u64(wrong, 0, "slices");

    is_status(ron_reader_gen(w.reader, UINT64_MAX, &gen, &count, &complete),
              RON_OK, "the newest generation");
    ok(gen == 7 && count == 2 && !complete, "is 7, with 2 slices, no end");
    is_status(ron_reader_gen(w.reader, 6, &gen, &count, &complete), RON_OK,
              "the one before");
    ok(gen == 6 && count == 3 && complete, "is 6, with 3 slices, complete");
    is_status(ron_reader_gen(w.reader, 5, &gen, &count, &complete), RON_OK,
              "the first");
    ok(gen == 5 && count == 200 && complete, "is 5, with 200, complete");
    is_status(ron_reader_gen(w.reader, 4, &gen, &count, &complete),
              RON_ENOTFOUND, "none before");

    is_status(ron_reader_slice(w.reader, 5, 7, &got), RON_OK, "slice 5/7");
    ok(got.gen == 5 && got.no == 7 && !got.last && got.seq == 7
       && ron_str_eq(got.body, ron_str("slice 7")), "is what was written");
    is_status(ron_reader_slice(w.reader, 6, 2, &got), RON_OK, "slice 6/2");
    ok(got.last && ron_str_eq(got.body, ron_str("slice 202")),
       "is the last one");
    is_status(ron_reader_slice(w.reader, 6, 1, &got), RON_OK, "slice 6/1");
    is_u64(got.body.len, 0, "is empty");
    is_status(ron_reader_slice(w.reader, 6, 3, &got), RON_ENOTFOUND,
              "slice 6/3 is not there");

    slice.gen = 6;
    slice.no = 2;
    is_status(commit_with(&w, 1, &slice), RON_EEXIST,
              "a slice is written once");
    is_status(commit(&w, 1), RON_OK, "and its commit was not half done");

    is_status(ron_store_maintain(w.store, 6), RON_OK, "old ones go");
    is_status(ron_reader_gen(w.reader, 5, &gen, &count, &complete), RON_OK,
              "in pieces");
    is_u64(count, 136, "of 64");
    ok(!complete, "and what is left is not complete");

    for (i = 0; i < 3; i++) {
        is_status(ron_store_maintain(w.store, 6), RON_OK, "another piece");
    }

    is_status(ron_reader_gen(w.reader, 5, &gen, &count, &complete),
              RON_ENOTFOUND, "all gone");
    is_status(ron_reader_gen(w.reader, 6, &gen, &count, &complete), RON_OK,
              "the kept one");
    ok(count == 3 && complete, "is whole");
    is_status(ron_store_maintain(w.store, UINT64_MAX), RON_OK,
              "everything below the end of time");
    is_status(ron_reader_gen(w.reader, UINT64_MAX, &gen, &count, &complete),
              RON_ENOTFOUND, "all gone");

    world_free(&w);
}


static void
test_foreign(void)
{
    world_t  w;
    char     path[300];

    setup_sqlite(&w);
    (void) mkdir(dir_of(&w), 0700);
    run("sqlite3 %s/ledger.db 'CREATE TABLE t (a); PRAGMA user_version = 1'",
        dir_of(&w));
    is_status(ron_store_open(&w.conf, &w.store), RON_EINVAL,
              "another program's database: %s", ron_store_error(NULL));

    setup_sqlite(&w);
    (void) mkdir(dir_of(&w), 0700);
    run("head -c 9000 /dev/urandom >%s/ledger.db", dir_of(&w));
    is_status(ron_store_open(&w.conf, &w.store), RON_ECORRUPT,
              "noise: %s", ron_store_error(NULL));

    setup_sqlite(&w);
    (void) mkdir(dir_of(&w), 0700);
    run("touch %s/ledger.db && chmod 0600 %s/ledger.db", dir_of(&w),
        dir_of(&w));
    w.conf.create = false;
    is_status(ron_store_open(&w.conf, &w.store), RON_ENOTFOUND,
              "a creation that ended at its beginning");
    w.conf.create = true;
    is_status(world_start(&w), RON_OK, "is done again");
    is_status(commit(&w, 1), RON_OK, "and complete");
    world_free(&w);

    raw_exec(dir_of(&w), "PRAGMA user_version = 2", NULL);
    is_status(ron_store_open(&w.conf, &w.store), RON_EVERSION,
              "a newer format: %s", ron_store_error(NULL));

    w.conf.url = "postgres:x";
    is_status(ron_store_open(&w.conf, &w.store), RON_EINVAL,
              "no such store: %s", ron_store_error(NULL));
    w.conf.url = "sqlite:";
    is_status(ron_store_open(&w.conf, &w.store), RON_EINVAL, "no directory");

    memset(path, 'x', sizeof(path));
    memcpy(path, "sqlite:", 7);
    path[sizeof(path) - 1] = '\0';
    w.conf.url = path;
    ok(ron_store_open(&w.conf, &w.store) != RON_OK, "a long name: %s",
       ron_store_error(NULL));
}


static uint64_t
file_size(const char *dir, const char *name)
{
    char         path[300];
    struct stat  st;

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);

    return stat(path, &st) == 0 ? (uint64_t) st.st_size : 0;
}


/* In the middle of a transaction, and not on its way out of it. */

static sqlite3 *
raw_reader(const char *dir)
{
    char      path[300];
    sqlite3  *db;

    (void) snprintf(path, sizeof(path), "%s/ledger.db", dir);

    RON_ASSERT(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL)
               == SQLITE_OK);
    RON_ASSERT(sqlite3_exec(db, "BEGIN; SELECT max(seq) FROM journal", NULL,
                            NULL, NULL) == SQLITE_OK);

    return db;
}


/* Commits, each with what is done between two of them; how many failed. */

static uint32_t
maintained(world_t *w, uint32_t n)
{
    uint32_t  i, wrong;

    for (i = 0, wrong = 0; i < n; i++) {
        wrong += commit(w, 20) != RON_OK;
        wrong += ron_store_maintain(w->store, 0) != RON_OK;
    }

    return wrong;
}


static void
test_wal(void)
{
    world_t   w;
    sqlite3  *reader;
    uint32_t  i;
    uint64_t  size;

    setup_sqlite(&w);
    w.conf.wal_pages = 100;
    is_status(world_start(&w), RON_OK, "started");

    is_u64(maintained(&w, 300), 0, "commits and maintenance");
    size = file_size(dir_of(&w), "ledger.db-wal");
    ok(size > 0 && size < 130 * 4120, "the WAL starts over: %" PRIu64
       " bytes", size);
    ok(file_size(dir_of(&w), "ledger.db") > 300 * 2000,
       "what was in it is in the database");

    for (i = 0; i < 50; i++) {
        (void) commit(&w, 200);
    }

    ok(file_size(dir_of(&w), "ledger.db-wal") > size,
       "without maintenance it grows");

    world_end(&w);
    ok(file_size(dir_of(&w), "ledger.db-wal") >= size,
       "and stays allocated when it is closed");

    is_status(world_start(&w), RON_OK, "started again");

    is_u64(maintained(&w, 100), 0, "commits and maintenance");
    ok(file_size(dir_of(&w), "ledger.db-wal") <= 400 * 4120,
       "it shrinks to four times its bound");

    /* a reader that does not end keeps the WAL from starting over */

    reader = raw_reader(dir_of(&w));

    is_u64(maintained(&w, 300), 0, "commits beside a reader that does not end");
    size = file_size(dir_of(&w), "ledger.db-wal");
    ok(size > 500 * 4120, "the WAL grows meanwhile: %" PRIu64 " bytes",
       size);

    (void) sqlite3_close(reader);

    is_u64(maintained(&w, 200), 0, "commits without it");
    ok(file_size(dir_of(&w), "ledger.db-wal") <= 400 * 4120,
       "and the WAL is short again");

    world_free(&w);
}


/* ---- a disk that fails: a VFS in front of the real one ------------------ */

typedef enum {
    FAULT_NONE, FAULT_FULL, FAULT_WRITE, FAULT_SYNC, FAULT_DB_SYNC,
    FAULT_DB_FULL, FAULT_DB_LATE
} fault_t;

typedef struct {
    sqlite3_io_methods         m;
    const sqlite3_io_methods  *real;
    bool                       wal;
} methods_t;

static fault_t      fault;
static int          fault_in;           /* operations until it strikes */
static int          fault_hits;
static uint32_t     fault_syncs[2];     /* of the database, of its WAL */
static methods_t    fault_tables[2];
static sqlite3_vfs  fault_vfs;


static bool
fault_now(fault_t kind)
{
    if (fault != kind || fault_in-- > 0) {
        return false;
    }

    fault_hits++;

    return true;
}


static int
fault_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 off)
{
    const methods_t  *t;

    t = (const methods_t *) (const void *) f->pMethods;

    if (fault_now(t->wal ? FAULT_FULL : FAULT_DB_FULL)) {
        (void) t->real->xWrite(f, data, n / 2, off);
        return SQLITE_FULL;
    }

    /* the worst kind: it says that it failed, and all of it is there */

    if (t->wal && fault_now(FAULT_WRITE)) {
        (void) t->real->xWrite(f, data, n, off);
        return SQLITE_IOERR_WRITE;
    }

    return t->real->xWrite(f, data, n, off);
}


static int
fault_sync(sqlite3_file *f, int flags)
{
    const methods_t  *t;

    t = (const methods_t *) (const void *) f->pMethods;

    fault_syncs[t->wal]++;

    if (fault_now(t->wal ? FAULT_SYNC : FAULT_DB_SYNC)) {
        return SQLITE_IOERR_FSYNC;
    }

    if (!t->wal && fault_now(FAULT_DB_LATE)) {
        fault = FAULT_NONE;
        ron_sleep_us(500000);
    }

    return t->real->xSync(f, flags);
}


static int
fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
    int *out)
{
    int           rc;
    methods_t    *t;
    sqlite3_vfs  *real;

    real = vfs->pAppData;
    rc = real->xOpen(real, name, f, flags, out);

    if (rc != SQLITE_OK || f->pMethods == NULL
        || !(flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)))
    {
        return rc;
    }

    t = &fault_tables[(flags & SQLITE_OPEN_WAL) != 0];

    if (t->real == NULL) {
        t->real = f->pMethods;
        t->m = *t->real;
        t->m.xWrite = fault_write;
        t->m.xSync = fault_sync;
        t->wal = (flags & SQLITE_OPEN_WAL) != 0;
    }

    f->pMethods = &t->m;

    return rc;
}


static void
fault_register(void)
{
    sqlite3_vfs  *real;

    real = sqlite3_vfs_find(NULL);
    fault_vfs = *real;
    fault_vfs.zName = "fault";
    fault_vfs.pAppData = real;
    fault_vfs.pNext = NULL;
    fault_vfs.xOpen = fault_open;
    (void) sqlite3_vfs_register(&fault_vfs, 0);
}


static void
fault_arm(fault_t kind, int in)
{
    fault = kind;
    fault_in = in;
    fault_hits = 0;
}


/* The head as somebody finds it after the power went this instant. */

static uint64_t
next_after_crash(const world_t *w)
{
    char       copy[160], url[200];
    world_t    c;
    uint64_t   next;
    ron_row_t  head;

    (void) snprintf(copy, sizeof(copy), "%s/crash", tmp_dir);
    (void) snprintf(url, sizeof(url), "sqlite:%s", copy);
    run("rm -rf %s && mkdir -m 0700 %s", copy, copy);
    run("cp %s/ledger.db %s", dir_of(w), copy);
    run("cp %s/ledger.db-wal %s", dir_of(w), copy);

    memset(&c, 0, sizeof(c));
    c.conf.url = url;
    next = 0;

    if (world_open(&c) == RON_OK) {
        next = ron_reader_head(c.reader, &head) == RON_OK
               ? head.seq + head.count : 1;
    }

    world_free(&c);

    return next;
}


/* Commits until a checkpoint is due and meets the fault. */

static ron_status_t
fault_maintain(world_t *w, fault_t kind, int in)
{
    int           n;
    ron_status_t  status;

    fault_arm(kind, in);

    for (n = 0, status = RON_OK; n < 100 && status == RON_OK; n++) {
        status = commit(w, 60) == RON_OK ? ron_store_maintain(w->store, 0)
                                         : RON_ECANCELED;
    }

    fault_arm(FAULT_NONE, 0);

    return status;
}


/*
 * A WAL starts over long before its bound, where that takes little time; that
 * it once took half a second is no reason to wait for eight.
 */

static void
test_wal_small(void)
{
    world_t   w;
    uint32_t  i, wrong;
    uint64_t  size;

    setup_sqlite(&w);
    w.conf.vfs = "fault";
    w.conf.wal_pages = 1600;
    is_status(world_start(&w), RON_OK, "a ledger with a large bound");

    memset(fault_syncs, 0, sizeof(fault_syncs));

    for (i = 0, wrong = 0; i < 40; i++) {
        wrong += maintained(&w, 20);
        ron_sleep_us(20000);

        if (i == 10) {
            fault_arm(FAULT_DB_LATE, 0);
        }
    }

    is_u64(wrong, 0, "commits and maintenance");
    is_u64((uint64_t) fault_hits, 1, "one checkpoint was late");
    ok(fault_syncs[0] >= 10, "of %" PRIu32 " checkpoints", fault_syncs[0]);
    ok(fault_syncs[1] >= 40 * 20
       && fault_syncs[1] <= 40 * 20 + fault_syncs[0],
       "the WAL was synced by commits, and when it starts over: %" PRIu32,
       fault_syncs[1]);
    size = file_size(dir_of(&w), "ledger.db-wal");
    ok(size < 800 * 4120, "its WAL has %" PRIu64 " bytes", size);
    world_free(&w);
    fault_arm(FAULT_NONE, 0);
}


static void
test_faults(void)
{
    int           n, hits;
    walk_t        k;
    world_t       w;
    uint32_t      full, sure, doubt, dead, back;
    ron_status_t  status;

    setup_sqlite(&w);
    w.conf.vfs = "fault";
    is_status(world_start(&w), RON_OK, "started on a disk that will fail");
    is_status(commit(&w, 3), RON_OK, "first commit");

    /*
     * A full disk at each write of a commit: never there, and we go on.
     * Frames go out in pieces of 64 KiB, so the commit has to be a large one.
     */

    for (n = 0, full = 0, sure = 0, back = 0, hits = 1; hits != 0; n++) {

        fault_arm(FAULT_FULL, n);
        status = commit(&w, 4000);
        hits = fault_hits;
        fault_arm(FAULT_NONE, 0);

        if (hits != 0) {
            full += status == RON_EFULL;
            sure += next_after_crash(&w) == w.next;
            back += commit(&w, 150) == RON_OK && next_after_crash(&w) == w.next;
        }
    }

    n--;
    ok(n >= 5, "a disk that is full at one of %d writes", n);
    is_u64(full, n, "says so");
    is_u64(sure, n, "and nothing was written");
    is_u64(back, n, "and the handle goes on when there is room");

    /* a write or sync that fails: in doubt, and the handle is dead */

    for (n = 0, doubt = 0, dead = 0, back = 0; n < 8; n++) {

        fault_arm(n < 5 ? FAULT_WRITE : FAULT_SYNC, n < 5 ? n : 0);
        status = commit(&w, 4000);
        doubt += status == RON_EIO && fault_hits == 1;
        fault_arm(FAULT_NONE, 0);

        dead += commit(&w, 60) == RON_EIO
                && ron_store_maintain(w.store, 0) == RON_EIO;
        ron_store_release(w.store);
        dead += ron_store_acquire(w.store, &w.epoch) == RON_EIO;
        world_end(&w);

        back += world_start(&w) == RON_OK && world_recover(&w) == RON_OK
                && commit(&w, 60) == RON_OK;
    }

    is_u64(doubt, 8, "a write or a sync that fails leaves a doubt");
    is_u64(dead, 16, "in which nothing more is taken");
    is_u64(back, 8, "until the ledger has been reopened");

    fault_arm(FAULT_SYNC, 0);
    world_end(&w);
    ok(world_start(&w) != RON_OK, "no epoch without a sync: %s",
       ron_store_error(w.store));
    fault_arm(FAULT_NONE, 0);
    world_end(&w);

    /* the checkpoint fails: what is committed stays committed */

    w.conf.wal_pages = 20;
    is_status(world_start(&w), RON_OK, "started again");
    is_status(world_recover(&w), RON_OK, "recovered");

    status = fault_maintain(&w, FAULT_DB_FULL, 3);
    is_status(status, RON_EFULL, "no room for the checkpoint: %s",
              ron_store_error(w.store));
    is_u64(next_after_crash(&w), w.next, "everything is there");
    is_status(commit(&w, 60), RON_OK, "commits go on");

    status = fault_maintain(&w, FAULT_DB_SYNC, 0);
    is_status(status, RON_EIO, "the checkpoint's sync fails: %s",
              ron_store_error(w.store));
    is_u64(next_after_crash(&w), w.next, "everything is there");
    is_status(commit(&w, 60), RON_EIO, "but this disk is not trusted");
    world_end(&w);

    is_status(world_start(&w), RON_OK, "reopened");
    walk_init(&k);
    (void) walk_all(w.reader, 1 << 20, &k);
    is_u64(k.next, w.next, "everything is there");
    is_u64(k.wrong, 0, "and right");

    world_free(&w);
}


/* ---- memory only -------------------------------------------------------- */

static void
test_region(void)
{
    size_t       i;
    uint32_t     n;
    walk_t       k;
    world_t      w;
    uint8_t     *region;
    ron_store_t *store;

    static const char *const  bad[] = {
        "memory:", "memory:1k", "memory:12", "memory:64kb", "memory:-1m",
        "memory:99999999999999999999g", "memory:65537", "memory:m"
    };

    memset(&w, 0, sizeof(w));
    w.conf.create = true;

    for (i = 0; i < ron_array_n(bad); i++) {
        w.conf.url = bad[i];
        is_status(ron_store_open(&w.conf, &store), RON_EINVAL, "%s: %s",
                  bad[i], ron_store_error(NULL));
    }

    /* its own region */

    w.conf.url = "memory:64k";
    w.entry_len = 100;
    is_status(world_start(&w), RON_OK, "64k of its own");

    for (n = 0; commit(&w, 10) == RON_OK; n++) { /* void */ }

    ok(n > 20 && n < 40, "%u commits fill it", n);
    is_status(commit(&w, 10), RON_EFULL, "full: %s",
              ron_store_error(w.store));
    is_status(commit(&w, 1), RON_OK, "a smaller one still fits");

    /* smaller and smaller, until some row ends at the very last slot */

    for (w.entry_len = 1500; w.entry_len > 0; w.entry_len--) {
        while (commit(&w, 1) == RON_OK) { /* void */ }
    }

    is_status(ron_store_probe(w.store), RON_EFULL, "a full region fails "
              "the probe");

    walk_init(&k);
    (void) walk_all(w.reader, 1000, &k);
    is_u64(k.next, w.next, "all that was taken is there");
    is_u64(k.wrong, 0, "and right");
    world_free(&w);

    /* an embedder's region */

    setup_memory(&w);
    w.conf.region_len /= 2;
    is_status(ron_store_open(&w.conf, &store), RON_EINVAL,
              "a region of another size: %s", ron_store_error(NULL));
    w.conf.region_len *= 2;
    is_status(world_start(&w), RON_OK, "started");

    w.conf.url = "memory:16m";
    w.conf.region_len /= 2;
    is_status(ron_store_open(&w.conf, &store), RON_ECORRUPT,
              "a ledger of another size: %s", ron_store_error(NULL));
    w.conf.url = "memory:32m";
    w.conf.region_len *= 2;

    is_status(commit(&w, 10), RON_OK, "a row");
    is_status(commit(&w, 10), RON_OK, "a row");

    /* damage anywhere: never a crash, never a wrong row */

    region = w.conf.region;

    for (i = 0, n = 0; i < 8 * 8; i++) {
        region[5 * 4096 + i] ^= 0x80;
        walk_init(&k);
        n += walk_all(w.reader, 1000, &k) == RON_ECORRUPT || k.wrong != 0;
        region[5 * 4096 + i] ^= 0x80;
    }

    is_u64(n, 64, "each damaged byte of a record's head is noticed");

    for (i = 1, n = 0; i <= 32; i++) {
        region[REGION_LEN - i] ^= 0x80;
        walk_init(&k);
        n += walk_all(w.reader, 1000, &k) != RON_ENOTFOUND || k.next != 21;
        region[REGION_LEN - i] ^= 0x80;
    }

    is_u64(n, 32, "each damaged byte of a slot is noticed");

    region[8] ^= 1;
    is_status(ron_store_open(&w.conf, &store), RON_ECORRUPT,
              "something else in the region: %s", ron_store_error(NULL));
    region[8] ^= 1;

    world_free(&w);
}


/* ---- the life of a memory ledger, watched from outside ------------------ */

static int
amnesia(void)
{
    walk_t       k;
    world_t      w;
    uint32_t     i;
    ron_buf_t    buf;
    ron_slice_t  slice;

    memset(&w, 0, sizeof(w));
    memset(&slice, 0, sizeof(slice));
    setup_memory(&w);
    ron_buf_init(&buf, 0);

    if (world_start(&w) != RON_OK) {
        return 1;
    }

    for (i = 0; i < 200; i++) {
        slice.no = i;

        if (commit_with(&w, 40, &slice) != RON_OK
            || ron_store_head_write(w.store, ron_str("head")) != RON_OK
            || ron_store_maintain(w.store, i) != RON_OK)
        {
            return 1;
        }
    }

    if (ron_store_mark_write(w.store, ron_str("reason")) != RON_OK
        || ron_store_mark_read(w.store, &buf) != RON_OK
        || ron_store_mark_write(w.store, ron_null_str) != RON_OK
        || ron_store_head_read(w.store, &buf) != RON_OK
        || ron_store_probe(w.store) != RON_OK)
    {
        return 1;
    }

    world_end(&w);

    walk_init(&k);

    if (world_start(&w) != RON_OK || world_recover(&w) != RON_OK
        || walk_all(w.reader, 10000, &k) != RON_ENOTFOUND || k.wrong != 0
        || commit(&w, 40) != RON_OK)
    {
        return 1;
    }

    ron_buf_free(&buf);
    world_free(&w);

    printf("%" PRIu64 " entries\n", k.next - 1);

    return 0;
}


int
main(int argc, char **argv)
{
    size_t  i;

    if (argc > 1 && strcmp(argv[1], "amnesia") == 0) {
        return amnesia();
    }

    (void) snprintf(tmp_dir, sizeof(tmp_dir), "/tmp/ron-store-XXXXXX");
    RON_ASSERT(mkdtemp(tmp_dir) != NULL);
    (void) chmod(tmp_dir, 0711);

    for (i = 0; i < ron_array_n(kinds); i++) {
        test_open(&kinds[i]);
        test_rows(&kinds[i]);
        test_hold(&kinds[i]);
        test_tiles(&kinds[i]);
        test_fence(&kinds[i]);
        test_head_and_mark(&kinds[i]);
        test_lock(&kinds[i]);
        test_follow(&kinds[i]);
        test_kill(&kinds[i]);
    }

    test_triggers();
    test_locks();
    test_modes();
    test_rights();
    test_torn();
    test_slices();
    test_foreign();
    test_wal();
    fault_register();
    test_wal_small();
    test_faults();
    test_region();

    run("rm -rf %s", tmp_dir);

    return done_testing();
}
