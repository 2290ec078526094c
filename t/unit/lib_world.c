
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib_history.h"
#include "ron_amount.h"
#include "ron_digest.h"
#include "ron_port.h"


#define WORLD_LEDGER_ID  7
#define WORLD_REGION     ((size_t) 1 << 20)
#define WORLD_WAIT_MS    20000

#define WORLD_TEST(cond, ...)                                                 \
    do {                                                                      \
        if (!(cond)) {                                                        \
            return world_differs(w, __LINE__, __VA_ARGS__);                   \
        }                                                                     \
    } while (0)


static bool world_reap(world_t *w);
static bool world_reap_all(world_t *w);
static bool world_match_batch(world_t *w, const expected_t *x,
    const ron_batch_t *batch);
static bool world_match_state(world_t *w);
static bool world_match_journal(world_t *w);


/* One history at a time has them. */
static uint8_t  *world_region;
static char      world_dir[64];
static char      world_url[128];


/* ---- small things -------------------------------------------------------- */


/* The first difference is the one that counts. */
__attribute__((format(printf, 3, 4)))
static bool
world_differs(world_t *w, int line, const char *fmt, ...)
{
    int      n;
    va_list  args;

    if (w->line != 0) {
        return false;
    }

    w->line = line;

    n = snprintf(w->why, sizeof(w->why), "step %u: ", w->step);

    va_start(args, fmt);
    (void) vsnprintf(w->why + n, sizeof(w->why) - (size_t) n, fmt, args);
    va_end(args);

    return false;
}


static const char *
world_reason(ron_reason_t reason, ron_detail_t detail)
{
    static char      text[4][128];
    static unsigned  turn;

    turn = (turn + 1) % 4;

    snprintf(text[turn], sizeof(text[turn]), "%s (%s)",
             ron_reason_info(reason)->name, ron_detail_text(detail));

    return text[turn];
}


static const char *
world_number(ron_u128_t v)
{
    static char      text[8][RON_AMOUNT_MAX];
    static unsigned  turn;

    turn = (turn + 1) % 8;
    ron_amount_print(v, text[turn]);

    return text[turn];
}


static ron_status_t
world_unlink(void *ctx, const char *name)
{
    char  path[256];

    (void) ctx;
    snprintf(path, sizeof(path), "%s/%s", world_dir, name);

    return ron_file_unlink(path);
}


static void
world_remove_dir(void)
{
    if (world_dir[0] != '\0') {
        (void) ron_dir_each(world_dir, world_unlink, NULL);
        (void) rmdir(world_dir);
        world_dir[0] = '\0';
    }
}


static bool
world_make_place(const history_t *h)
{
    world_remove_dir();

    if (!h->sqlite) {
        if (world_region == NULL) {
            world_region = aligned_alloc(4096, WORLD_REGION);
        }

        if (world_region == NULL) {
            return false;
        }

        memset(world_region, 0, WORLD_REGION);
        snprintf(world_url, sizeof(world_url), "memory:1m");

        return true;
    }

    snprintf(world_dir, sizeof(world_dir), "%s/ron-world-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");

    if (mkdtemp(world_dir) == NULL) {
        return false;
    }

    snprintf(world_url, sizeof(world_url), "sqlite:%s", world_dir);

    return true;
}


/* ---- an engine's life ---------------------------------------------------- */


static bool
world_start(world_t *w)
{
    ron_buf_t          why;
    ron_status_t       status;
    const history_t   *h;
    ron_engine_conf_t  conf;

    h = w->h;

    ron_engine_conf_init(&conf);
    conf.store.url = world_url;
    conf.store.region = h->sqlite ? NULL : world_region;
    conf.store.region_len = h->sqlite ? 0 : WORLD_REGION;
    conf.store.digest = h->digest;
    conf.store.ledger_id = WORLD_LEDGER_ID;
    conf.store.create = true;
    conf.checkpoint_n = h->checkpoint_n;
    conf.tag_ram = h->tag_ram;
    conf.key_ram = h->key_ram;
    conf.key_ttl_ms = h->key_ttl_ms;
    conf.queue_batches = h->queue_batches;

    ron_buf_init(&why, 0);

    status = ron_engine_open(&conf, &w->engine, &why);

    while (status == RON_OK) {
        status = ron_engine_follow(w->engine, 500, &why);
    }

    if (status == RON_ENOTFOUND) {
        status = ron_engine_acquire(w->engine, &why);
    }

    if (status != RON_OK) {
        world_differs(w, __LINE__, "open: %s: %.*s", ron_status_name(status),
                      (int) why.len, (const char *) why.data);
    }

    ron_buf_free(&why);

    if (status == RON_OK && h->threaded) {
        status = ron_engine_start(w->engine, NULL, NULL);
        WORLD_TEST(status == RON_OK, "start: %s", ron_status_name(status));
    }

    return status == RON_OK;
}


static void
world_stop(world_t *w)
{
    if (w->engine != NULL) {
        ron_engine_close(w->engine);
        w->engine = NULL;
    }
}


bool
world_open(world_t *w, const history_t *h)
{
    memset(w, 0, sizeof(world_t));
    w->h = h;
    w->corrupt = ron_corrupt_count();

    model_init(&w->model, WORLD_LEDGER_ID, h->key_ttl_ms);

    WORLD_TEST(world_make_place(h), "no place for a ledger");

    return world_start(w);
}


void
world_close(world_t *w)
{
    world_stop(w);
    model_free(&w->model);
    world_remove_dir();
}


/* ---- playing ------------------------------------------------------------- */


static bool
world_decide(world_t *w, const step_t *step)
{
    expected_t    *x;
    ron_status_t   status;
    ron_unit_t   **given;

    if (w->queued == w->h->queue_batches && !world_reap(w)) {
        return false;
    }

    x = &w->queue[w->queued++];
    x->n = step->unit_n;
    x->step = w->step;
    x->first = w->model.entry_n;
    x->outcomes = calloc(step->unit_n + 1, sizeof(model_outcome_t *));
    given = calloc(step->unit_n + 1, sizeof(ron_unit_t *));
    RON_ASSERT(x->outcomes != NULL && given != NULL);

    model_decide(&w->model, step->time_ms, step->now_us, step->units,
                 step->unit_n, x->outcomes, NULL);
    x->seq = w->model.entry_n;

    for (uint32_t i = 0; i < step->unit_n; i++) {
        given[i] = step->units[i];
        given[i]->ctx = x->outcomes[i];
    }

    status = ron_engine_decide(w->engine, step->time_ms, step->now_us, given,
                               step->unit_n);
    free(given);

    WORLD_TEST(status == RON_OK, "decide: %s", ron_status_name(status));
    WORLD_TEST(ron_engine_next_expiry(w->engine)
               == model_next_expiry(&w->model), "next expiry %llu, want %llu",
               (unsigned long long) ron_engine_next_expiry(w->engine),
               (unsigned long long) model_next_expiry(&w->model));

    return step->lag ? true : world_reap_all(w);
}


static bool
world_crash(world_t *w)
{
    uint64_t  seq;

    /* By hand, the committer has done nothing since the last reap. */

    if (w->h->threaded) {
        return world_reap_all(w);
    }

    world_stop(w);

    if (w->queued > 0) {
        seq = w->queue[0].first;

        while (w->queued > 0) {
            free(w->queue[--w->queued].outcomes);
        }

        model_cut(&w->model, seq);
    }

    return world_start(w) && world_match_state(w);
}


bool
world_step(world_t *w, const step_t *step)
{
    if (w->line != 0) {
        return false;
    }

    w->step = step->no;

    switch (step->kind) {

    case STEP_DECIDE:
        return world_decide(w, step);

    case STEP_CRASH:
        return world_crash(w);

    default:
        if (!world_reap_all(w)) {
            return false;
        }

        world_stop(w);

        return world_start(w) && world_match_state(w);
    }
}


static bool
world_reap(world_t *w)
{
    bool          good;
    expected_t    x;
    ron_batch_t  *batch;
    ron_status_t  status;

    x = w->queue[0];
    memmove(&w->queue[0], &w->queue[1], --w->queued * sizeof(expected_t));

    status = w->h->threaded ? ron_engine_quiesce(w->engine, WORLD_WAIT_MS)
                            : ron_engine_step(w->engine);
    good = status == RON_OK;

    if (!good) {
        world_differs(w, __LINE__, "committing: %s", ron_status_name(status));

    } else {
        status = ron_engine_reap(w->engine, &batch);
        good = status == RON_OK;

        if (!good) {
            world_differs(w, __LINE__, "reaping: %s", ron_status_name(status));
        }
    }

    if (good) {
        good = world_match_batch(w, &x, batch);
        ron_engine_release(w->engine, batch);
    }

    free(x.outcomes);

    return good;
}


static bool
world_reap_all(world_t *w)
{
    ron_batch_t  *batch;

    while (w->queued > 0) {
        if (!world_reap(w)) {
            return false;
        }
    }

    WORLD_TEST(ron_engine_reap(w->engine, &batch) == RON_AGAIN,
               "a batch that nobody asked for");

    return true;
}


/* ---- comparing a batch --------------------------------------------------- */


static bool
world_match_result(world_t *w, const ron_unit_t *u, uint32_t i,
    const ron_result_t *got, const model_result_t *want, bool replayed)
{
    ron_buf_t  bytes;
    bool       same;

    WORLD_TEST(got->reason == want->reason && got->detail == want->detail,
               "op %u of unit \"%.*s\": %s, want %s", i,
               (int) u->key.len, (const char *) u->key.data,
               world_reason(got->reason, got->detail),
               world_reason(want->reason, want->detail));
    WORLD_TEST(got->seq == want->seq, "op %u: seq %llu, want %llu", i,
               (unsigned long long) got->seq, (unsigned long long) want->seq);
    WORLD_TEST(got->value == want->value, "op %u (%s): value %llu, want %llu",
               i, world_reason(got->reason, got->detail),
               (unsigned long long) got->value,
               (unsigned long long) want->value);
    WORLD_TEST(got->repeat == want->repeat,
               "op %u: repeat %u, want %u", i, got->repeat, want->repeat);

    w->counts[want->reason]++;
    w->repeats += want->repeat && !replayed;
    w->replays += replayed;

    if (u->type == RON_UNIT_INGEST || want->reason != RON_REASON_OK) {
        return true;
    }

    ron_buf_init(&bytes, 0);
    (void) ron_entry_encode(&w->model.entries[want->seq - 1].entry, &bytes);
    same = ron_str_eq(ron_buf_str(&bytes), got->bytes);
    ron_buf_free(&bytes);

    WORLD_TEST(same, "op %u: other bytes of entry %llu", i,
               (unsigned long long) want->seq);

    return true;
}


static bool
world_match_outcome(world_t *w, const ron_unit_t *u,
    const ron_outcome_t *got, const model_outcome_t *want)
{
    WORLD_TEST(got->replayed == want->replayed,
               "unit \"%.*s\": replayed %u (%s), want %u (%s)",
               (int) u->key.len, (const char *) u->key.data, got->replayed,
               world_reason(got->reason, got->detail), want->replayed,
               world_reason(want->reason, want->detail));
    WORLD_TEST(got->result_n == want->result_n,
               "%u results, want %u", got->result_n, want->result_n);

    for (uint32_t i = 0; i < want->result_n; i++) {
        if (!world_match_result(w, u, i, &got->results[i], &want->results[i],
                                want->replayed))
        {
            return false;
        }
    }

    WORLD_TEST(got->reason == want->reason && got->detail == want->detail,
               "unit \"%.*s\": %s, want %s", (int) u->key.len,
               (const char *) u->key.data,
               world_reason(got->reason, got->detail),
               world_reason(want->reason, want->detail));
    WORLD_TEST(got->value == want->value, "unit value %llu, want %llu",
               (unsigned long long) got->value,
               (unsigned long long) want->value);

    return true;
}


static bool
world_match_balance(world_t *w, uint64_t seq, const ron_balance_t *b)
{
    const model_t  *m;

    m = &w->model;

    WORLD_TEST(b->available == model_available(m, seq, b->account, b->asset),
               "after %llu %.*s has %s available, want %s",
               (unsigned long long) seq, (int) b->account.len,
               (const char *) b->account.data, world_number(b->available),
               world_number(model_available(m, seq, b->account, b->asset)));
    WORLD_TEST(b->held == model_held(m, seq, b->account, b->asset),
               "after %llu %.*s has %s held, want %s",
               (unsigned long long) seq, (int) b->account.len,
               (const char *) b->account.data, world_number(b->held),
               world_number(model_held(m, seq, b->account, b->asset)));
    WORLD_TEST(b->nonce == model_nonce(m, seq, b->account),
               "nonce of %.*s is %llu, want %llu", (int) b->account.len,
               (const char *) b->account.data, (unsigned long long) b->nonce,
               (unsigned long long) model_nonce(m, seq, b->account));
    WORLD_TEST(b->version == model_version(m, seq, b->account),
               "version of %.*s is %llu, want %llu", (int) b->account.len,
               (const char *) b->account.data,
               (unsigned long long) b->version,
               (unsigned long long) model_version(m, seq, b->account));

    return true;
}


static bool
world_told(const ron_batch_t *batch, ron_str_t account, ron_str_t asset)
{
    for (uint32_t i = 0; i < batch->balance_n; i++) {
        if (ron_str_eq(batch->balances[i].account, account)
            && ron_str_eq(batch->balances[i].asset, asset))
        {
            return true;
        }
    }

    return false;
}


/* Every balance that a batch moved is in its list, as it was after it. */
static bool
world_match_told(world_t *w, const expected_t *x, const ron_batch_t *batch)
{
    const ron_entry_t  *e;

    for (uint32_t i = 0; i < batch->balance_n; i++) {
        if (!world_match_balance(w, x->seq, &batch->balances[i])) {
            return false;
        }
    }

    for (uint64_t seq = x->first + 1; seq <= x->seq; seq++) {
        e = &w->model.entries[seq - 1].entry;

        WORLD_TEST(!(e->fields & RON_F_ACCOUNT)
                   || world_told(batch, e->account, e->asset),
                   "nothing said of the account of entry %llu",
                   (unsigned long long) seq);
        WORLD_TEST(!(e->fields & RON_F_TO) || e->kind == RON_KIND_HOLD
                   || world_told(batch, e->to, e->asset),
                   "nothing said of the receiver of entry %llu",
                   (unsigned long long) seq);
    }

    return true;
}


static bool
world_match_batch(world_t *w, const expected_t *x, const ron_batch_t *batch)
{
    WORLD_TEST(batch->status == RON_OK, "batch: %s",
               ron_status_name(batch->status));
    WORLD_TEST(batch->unit_n == x->n, "%u units, want %u", batch->unit_n,
               x->n);

    for (uint32_t i = 0; i < x->n; i++) {
        if (!world_match_outcome(w, batch->units[i], &batch->outcomes[i],
                                 batch->units[i]->ctx))
        {
            return false;
        }
    }

    WORLD_TEST(batch->count == x->seq - x->first
               && batch->seq == x->first + 1,
               "entries %llu + %llu, want %llu + %llu",
               (unsigned long long) batch->seq,
               (unsigned long long) batch->count,
               (unsigned long long) x->first + 1,
               (unsigned long long) (x->seq - x->first));

    w->durable = x->seq;
    w->root = batch->root;

    return world_match_told(w, x, batch);
}


/* ---- comparing everything ------------------------------------------------ */


typedef struct {
    world_t   *w;
    uint32_t   n;
} world_walk_t;


static ron_status_t
world_walk_balance(void *ctx, const ron_balance_t *b)
{
    world_walk_t  *walk;

    walk = ctx;
    walk->n++;

    return world_match_balance(walk->w, walk->w->model.entry_n, b)
           ? RON_OK : RON_ECANCELED;
}


static ron_status_t
world_walk_supply(void *ctx, const ron_supply_t *s)
{
    bool           good;
    world_t       *w;
    world_walk_t  *walk;

    walk = ctx;
    walk->n++;
    w = walk->w;

    /*
     * What was ever minted may pass 2^128, what there is never does: so the
     * two sums wrap, and their difference is right.
     */

    good = s->minted == model_minted(&w->model, w->model.entry_n, s->asset)
           && s->burned == model_burned(&w->model, w->model.entry_n, s->asset)
           && s->available + s->held == s->minted - s->burned
           && s->available <= s->minted - s->burned;

    if (!good) {
        world_differs(w, __LINE__, "%.*s: minted %s burned %s available %s "
                      "held %s", (int) s->asset.len,
                      (const char *) s->asset.data, world_number(s->minted),
                      world_number(s->burned), world_number(s->available),
                      world_number(s->held));
    }

    return good ? RON_OK : RON_ECANCELED;
}


/* What any entry ever touched can be asked for. */
static bool
world_match_known(world_t *w)
{
    ron_status_t         status;
    ron_balance_t        b;
    const ron_entry_t   *e;

    for (uint64_t seq = 1; seq <= w->model.entry_n; seq++) {
        e = &w->model.entries[seq - 1].entry;

        if (!(e->fields & RON_F_ACCOUNT)) {
            continue;
        }

        status = ron_engine_balance(w->engine, e->account, e->asset, &b);

        WORLD_TEST(status == RON_OK, "balance of %.*s: %s",
                   (int) e->account.len, (const char *) e->account.data,
                   ron_status_name(status));

        if (!world_match_balance(w, w->model.entry_n, &b)) {
            return false;
        }
    }

    return true;
}


/* The outcome look-up knows the newest entry of each key of a wallet. */
static bool
world_match_keys(world_t *w)
{
    bool                durable, newest, same;
    uint64_t            seq, later;
    ron_str_t           bytes;
    ron_buf_t           want;
    ron_status_t        status;
    const ron_entry_t  *e, *f;

    for (seq = 1; seq <= w->model.entry_n; seq++) {
        e = &w->model.entries[seq - 1].entry;

        if (!(e->fields & RON_F_WALLET) || (e->fields & RON_F_SCOPE)
            || e->time_ms + w->h->key_ttl_ms <= w->model.time_ms)
        {
            continue;
        }

        newest = true;

        for (later = seq + 1; later <= w->model.entry_n; later++) {
            f = &w->model.entries[later - 1].entry;
            newest = newest
                     && !((f->fields & RON_F_WALLET)
                          && !(f->fields & RON_F_SCOPE)
                          && ron_str_eq(f->key, e->key)
                          && ron_str_eq(f->account, e->account));
        }

        if (!newest) {
            continue;
        }

        status = ron_engine_lookup_key(w->engine, e->account, e->key, &bytes,
                                       &durable);

        WORLD_TEST(status == RON_OK, "key %.*s of %.*s: %s",
                   (int) e->key.len, (const char *) e->key.data,
                   (int) e->account.len, (const char *) e->account.data,
                   ron_status_name(status));

        ron_buf_init(&want, 0);
        (void) ron_entry_encode(e, &want);
        same = ron_str_eq(bytes, ron_buf_str(&want));
        ron_buf_free(&want);

        WORLD_TEST(same && durable, "key %.*s: other bytes, or not durable",
                   (int) e->key.len, (const char *) e->key.data);
    }

    return true;
}


static bool
world_match_state(world_t *w)
{
    world_walk_t       walk;
    ron_engine_stat_t  stat;

    walk.w = w;
    walk.n = 0;

    if (ron_engine_each_balance(w->engine, world_walk_balance, &walk)
        != RON_OK)
    {
        return world_differs(w, __LINE__, "balances could not be read");
    }

    if (ron_engine_each_supply(w->engine, world_walk_supply, &walk)
        != RON_OK)
    {
        return world_differs(w, __LINE__, "supplies could not be read");
    }

    ron_engine_stat(w->engine, &stat);

    WORLD_TEST(stat.seq == w->model.entry_n, "seq %llu, want %llu",
               (unsigned long long) stat.seq,
               (unsigned long long) w->model.entry_n);
    WORLD_TEST(ron_engine_next_expiry(w->engine)
               == model_next_expiry(&w->model), "next expiry %llu, want %llu",
               (unsigned long long) ron_engine_next_expiry(w->engine),
               (unsigned long long) model_next_expiry(&w->model));

    return world_match_known(w) && world_match_keys(w);
}


/* The definition of RFC 9162, word for word. */
static void
world_tree(ron_digest_t digest, const ron_hash_t *leaves, uint64_t n,
    ron_hash_t *root)
{
    uint64_t    k;
    ron_hash_t  left, right;

    if (n == 0) {
        ron_digest_bytes(digest, "", 0, root);
        return;
    }

    if (n == 1) {
        *root = leaves[0];
        return;
    }

    for (k = 1; k * 2 < n; k *= 2) { /* void */ }

    world_tree(digest, leaves, k, &left);
    world_tree(digest, leaves + k, n - k, &right);
    ron_digest_node(digest, &left, &right, root);
}


typedef struct {
    world_t     *w;
    uint64_t     seq;
    ron_hash_t   root;
    ron_hash_t  *leaves;
} world_journal_t;


/* A row's entries are the model's next ones, byte by byte. */
static ron_status_t
world_journal_row(void *ctx, const ron_row_t *row)
{
    ron_rd_t          rd;
    world_t          *w;
    ron_str_t         bytes;
    ron_buf_t         want;
    ron_hash_t        root;
    ron_status_t      status;
    world_journal_t  *j;

    j = ctx;
    w = j->w;

    if (row->seq != j->seq + 1 || !ron_hash_eq(&row->prev_root, &j->root)) {
        world_differs(w, __LINE__, "row %llu does not follow %llu",
                      (unsigned long long) row->seq,
                      (unsigned long long) j->seq);
        return RON_ECANCELED;
    }

    ron_buf_init(&want, 0);
    ron_rd_init(&rd, row->body);

    while ((status = ron_body_next(&rd, &bytes)) == RON_OK
           && j->seq < w->model.entry_n)
    {
        ron_buf_reset(&want);
        status = ron_entry_encode(&w->model.entries[j->seq++].entry, &want);

        if (status != RON_OK || !ron_str_eq(bytes, ron_buf_str(&want))) {
            world_differs(w, __LINE__, "entry %llu is not the model's",
                          (unsigned long long) j->seq);
            break;
        }

        ron_digest_leaf(w->h->digest, bytes.data, bytes.len,
                        &j->leaves[j->seq - 1]);
    }

    ron_buf_free(&want);

    if (status != RON_ENOTFOUND || j->seq + 1 != row->seq + row->count) {
        world_differs(w, __LINE__, "row %llu has not %llu entries",
                      (unsigned long long) row->seq,
                      (unsigned long long) row->count);
        return RON_ECANCELED;
    }

    world_tree(w->h->digest, j->leaves, j->seq, &root);

    if (!ron_hash_eq(&root, &row->root)
        || row->time_ms != w->model.entries[j->seq - 1].entry.time_ms)
    {
        world_differs(w, __LINE__, "root or time of row %llu is wrong",
                      (unsigned long long) row->seq);
        return RON_ECANCELED;
    }

    j->root = root;

    return RON_OK;
}


static bool
world_match_journal(world_t *w)
{
    uint64_t          next;
    ron_status_t      status;
    ron_reader_t     *reader;
    world_journal_t   j;

    memset(&j, 0, sizeof(j));
    j.w = w;
    j.leaves = calloc(w->model.entry_n + 1, sizeof(ron_hash_t));
    RON_ASSERT(j.leaves != NULL);
    ron_digest_bytes(w->h->digest, "", 0, &j.root);

    status = ron_reader_open(ron_engine_store(w->engine), &reader);
    next = 1;

    while (status == RON_OK) {
        status = ron_reader_rows(reader, next, 700, world_journal_row, &j,
                                 &next);
    }

    ron_reader_close(reader);
    free(j.leaves);

    WORLD_TEST(status == RON_ENOTFOUND, "journal: %s",
               ron_status_name(status));
    WORLD_TEST(j.seq == w->model.entry_n,
               "the journal ends at %llu, not %llu",
               (unsigned long long) j.seq,
               (unsigned long long) w->model.entry_n);
    WORLD_TEST(w->durable != j.seq || j.seq == 0
               || ron_hash_eq(&w->root, &j.root),
               "a published root is not the journal's");

    return true;
}


bool
world_end(world_t *w)
{
    w->step = w->h->step_n;

    /* What the engine gets over by itself is wrong all the same. */

    WORLD_TEST(ron_corrupt_count() == w->corrupt,
               "stored bytes were found corrupt");

    if (w->line != 0 || !world_reap_all(w) || !world_match_state(w)
        || !world_match_journal(w))
    {
        return false;
    }

    world_stop(w);

    if (!world_start(w) || !world_match_state(w) || !world_match_journal(w)) {
        return false;
    }

    WORLD_TEST(ron_corrupt_count() == w->corrupt,
               "stored bytes were found corrupt in the end");

    return true;
}


bool
history_play(const history_t *h, world_t *w)
{
    bool  good;

    good = world_open(w, h);

    for (uint32_t i = 0; good && i < h->step_n; i++) {
        if (!h->steps[i].dropped) {
            good = world_step(w, &h->steps[i]);
        }
    }

    good = good && world_end(w);

    while (w->queued > 0) {
        free(w->queue[--w->queued].outcomes);
    }

    world_close(w);

    return good;
}
