
/*
 * What stands beside the journal.  None of it is the truth, and all of it was
 * written after the commits that it knows of: each is a witness against a
 * journal that was cut.
 */

#include "ron_audit_impl.h"
#include "ron_checkpoint.h"
#include "ron_entry.h"
#include "ron_history.h"
#include "ron_note.h"
#include "ron_tags.h"

#include <stdio.h>


#define RON_AUDIT_TAG_RAM  ((size_t) 1 << 20)


static ron_status_t ron_beside_note(ron_audit_run_t *au);
static ron_status_t ron_beside_tiles(ron_audit_run_t *au);
static ron_status_t ron_beside_tags(ron_audit_run_t *au, const char *name);
static ron_status_t ron_beside_history(ron_audit_run_t *au);
static ron_status_t ron_beside_gens(ron_audit_run_t *au);
static ron_status_t ron_beside_gen(ron_audit_run_t *au, uint64_t gen,
    uint32_t count, bool *compared);
static ron_status_t ron_beside_stopped(ron_audit_run_t *au, uint64_t last_seq,
    const ron_hash_t *next);
static ron_status_t ron_beside_compare(ron_audit_run_t *au, ron_state_t *st,
    uint64_t gen);
static ron_status_t ron_beside_follow(ron_audit_run_t *au, ron_state_t *st);
static ron_status_t ron_beside_row(void *ctx, const ron_row_t *row);
static bool ron_beside_same(ron_audit_run_t *au, ron_state_t *st);
static bool ron_beside_holds(const ron_state_t *a, const ron_state_t *st);
static bool ron_beside_account(const ron_state_t *a, uint32_t no,
    ron_state_t *b);
static ron_status_t ron_beside_newest(ron_audit_run_t *au, uint64_t *seq);


/* ---- signed notes ------------------------------------------------------- */

ron_status_t
ron_audit_head_read(ron_audit_run_t *au)
{
    ron_buf_t              note;
    ron_status_t           status;
    ron_checkpoint_note_t  cp;

    status = au->conf->note.len ? ron_beside_note(au) : RON_OK;
    if (status != RON_OK) {
        return status;
    }

    ron_buf_init(&note, RON_NOTE_MAX);

    status = ron_store_head_read(au->store, &note);

    if (status == RON_OK) {
        status = ron_note_parse(ron_buf_str(&note), &cp);
    }

    if (status != RON_OK) {

        /* Never published, or torn by a crash: it is not synced. */

        ron_buf_free(&note);
        return RON_OK;
    }

    au->head_size = cp.size;
    au->head_root = cp.root;
    au->report->head_size = cp.size;

    if (au->conf->public_key.len != 0) {
        status = ron_note_verify(ron_buf_str(&note), au->conf->public_key,
                                 &cp);
        au->report->head_verified = status == RON_OK;

        if (status != RON_OK) {
            (void) ron_audit_bad(au, "head", NULL, status == RON_ENOTFOUND
                                 ? "the published head is not signed by the "
                                   "key given"
                                 : "the signature of the published head is "
                                   "wrong");
            status = RON_ECORRUPT;
        }
    }

    ron_buf_free(&note);

    return status;
}


static ron_status_t
ron_beside_note(ron_audit_run_t *au)
{
    ron_status_t           status;
    ron_checkpoint_note_t  cp;

    status = au->conf->public_key.len
             ? ron_note_verify(au->conf->note, au->conf->public_key, &cp)
             : ron_note_parse(au->conf->note, &cp);

    if (status != RON_OK) {
        return ron_audit_bad(au, "note", NULL, status == RON_EINVAL
                             ? "the checkpoint that was kept is malformed"
                             : "the checkpoint that was kept is not signed by "
                               "the key given");
    }

    au->note_size = cp.size;
    au->note_root = cp.root;

    return RON_OK;
}


/*
 * Both notes must lie within the journal; where the walk did not pass them,
 * their roots are asked of the tiles.
 */

ron_status_t
ron_audit_heads(ron_audit_run_t *au)
{
    ron_hash_t         root;
    ron_status_t       status;
    ron_tile_reader_t  tiles;

    const struct {
        const char        *what;
        const char        *name;
        uint64_t           size;
        const ron_hash_t  *root;
    } notes[] = {
        { "head", "a head that was published", au->head_size,
          &au->head_root },
        { "note", "the checkpoint that was kept", au->note_size,
          &au->note_root }
    };

    tiles = (ron_tile_reader_t) { au->reader, au->meta.digest };

    for (unsigned i = 0; i < ron_array_n(notes); i++) {

        if (notes[i].size > au->target) {
            return ron_audit_bad(au, notes[i].what, NULL, "the journal ends "
                                 "at seq %llu, but %s has seq %llu: the "
                                 "journal has been cut",
                                 (unsigned long long) au->target,
                                 notes[i].name,
                                 (unsigned long long) notes[i].size);
        }

        if (notes[i].size == 0 || notes[i].size >= au->report->from) {
            continue;
        }

        status = ron_proof_root(au->meta.digest, notes[i].size,
                                ron_tile_from_reader, &tiles, &root);

        if (status != RON_OK || !ron_hash_eq(&root, notes[i].root)) {
            return ron_audit_bad(au, notes[i].what, NULL, "%s has another "
                                 "root at seq %llu than the journal",
                                 notes[i].name,
                                 (unsigned long long) notes[i].size);
        }
    }

    return RON_OK;
}


/* ---- what may be ahead of the journal ----------------------------------- */

ron_status_t
ron_audit_beside(ron_audit_run_t *au)
{
    ron_status_t  status;

    status = ron_beside_tiles(au);

    if (status == RON_OK) {
        status = ron_beside_gens(au);
    }

    if (status == RON_OK && ron_store_dir(au->store) != NULL) {
        status = ron_beside_tags(au, "tag");

        if (status == RON_OK) {
            status = ron_beside_tags(au, "key");
        }

        if (status == RON_OK) {
            status = ron_beside_history(au);
        }
    }

    return status;
}


/* The journal's end now, for it may have grown since the walk began. */

static ron_status_t
ron_beside_newest(ron_audit_run_t *au, uint64_t *seq)
{
    ron_row_t     row;
    ron_status_t  status;

    *seq = 0;
    status = ron_reader_head(au->reader, &row);

    if (status == RON_OK) {
        *seq = row.seq + row.count - 1;
    }

    return status == RON_ENOTFOUND ? RON_OK : status;
}


static ron_status_t
ron_beside_tiles(ron_audit_run_t *au)
{
    uint64_t      index, newest;
    ron_tile_t    tile;
    ron_status_t  status;

    index = au->target / RON_TILE_WIDTH;
    status = ron_reader_tile(au->reader, 0, index, &tile);

    if (status != RON_OK) {
        return status == RON_ENOTFOUND ? RON_OK : status;
    }

    status = ron_beside_newest(au, &newest);

    if (status == RON_OK && newest < (index + 1) * RON_TILE_WIDTH) {
        return ron_audit_bad(au, "tile", NULL, "the journal ends at seq %llu, "
                             "but there is a tile up to seq %llu: the journal "
                             "has been cut", (unsigned long long) newest,
                             ((unsigned long long) index + 1)
                             * RON_TILE_WIDTH);
    }

    return status;
}


static ron_status_t
ron_beside_tags(ron_audit_run_t *au, const char *name)
{
    uint64_t         covered, newest;
    ron_tags_t      *tags;
    ron_status_t     status;
    ron_tags_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    conf.dir = ron_store_dir(au->store);
    conf.name = name;
    conf.ledger_id = au->meta.ledger_id;
    conf.ram_bytes = RON_AUDIT_TAG_RAM;
    conf.read_only = true;

    /* Damaged tags are rebuilt from the journal: no business of ours. */

    status = ron_tags_open(&conf, &tags);
    if (status != RON_OK) {
        return status == RON_ENOMEM ? status : RON_OK;
    }

    covered = ron_tags_covered(tags);
    ron_tags_close(tags);

    if (covered <= au->target) {
        return RON_OK;
    }

    status = ron_beside_newest(au, &newest);

    if (status == RON_OK && newest < covered) {
        return ron_audit_bad(au, "tags", NULL, "the journal ends at seq %llu, "
                             "but tags were written up to seq %llu: the "
                             "journal has been cut",
                             (unsigned long long) newest,
                             (unsigned long long) covered);
    }

    return status;
}


static ron_status_t
ron_beside_history(ron_audit_run_t *au)
{
    uint64_t      watermark, newest;
    ron_status_t  status;

    /* Without one there is nothing to compare; a damaged one is derived. */

    status = ron_history_peek(ron_store_dir(au->store), &watermark);

    if (status != RON_OK || watermark <= au->target) {
        return RON_OK;
    }

    status = ron_beside_newest(au, &newest);

    if (status == RON_OK && newest < watermark) {
        return ron_audit_bad(au, "history", NULL, "the journal ends at seq "
                             "%llu, but history.db knows seq %llu: the "
                             "journal has been cut",
                             (unsigned long long) newest,
                             (unsigned long long) watermark);
    }

    return status;
}


/* ---- checkpoints of the engine ------------------------------------------ */

static ron_status_t
ron_beside_gens(ron_audit_run_t *au)
{
    bool          complete, compared;
    uint32_t      count;
    uint64_t      gen, max_gen;
    ron_status_t  status;

    compared = false;
    max_gen = UINT64_MAX;

    for ( ;; ) {
        status = ron_reader_gen(au->reader, max_gen, &gen, &count, &complete);

        if (status != RON_OK) {
            return status == RON_ENOTFOUND ? RON_OK : status;
        }

        if (complete) {
            status = ron_beside_gen(au, gen, count, &compared);
            if (status != RON_OK) {
                return status;
            }
        }

        if (gen == 0) {
            return RON_OK;
        }

        max_gen = gen - 1;
    }
}


static ron_status_t
ron_beside_gen(ron_audit_run_t *au, uint64_t gen, uint32_t count,
    bool *compared)
{
    bool          vouched;
    uint64_t      last_seq, newest;
    ron_row_t     row;
    ron_hash_t    hash;
    ron_state_t   st;
    ron_status_t  status;

    status = ron_state_init(&st);
    if (status != RON_OK) {
        return status;
    }

    status = ron_ckpt_load(&st, au->reader, gen, count, &hash, &last_seq);

    if (status == RON_ENOTFOUND) {
        ron_state_free(&st);        /* the writer removed it meanwhile */
        return RON_OK;
    }

    au->report->slices += count;
    vouched = false;

    if (status == RON_OK) {
        status = ron_reader_row(au->reader, last_seq + 1, &row);
        vouched = status == RON_OK && ron_hash_eq(&row.checkpoint, &hash);

        if (status == RON_OK && !vouched) {
            status = ron_beside_stopped(au, last_seq, &row.checkpoint);

        } else if (status == RON_ENOTFOUND) {
            status = ron_beside_newest(au, &newest);

            if (status == RON_OK && newest < last_seq) {
                ron_state_free(&st);
                return ron_audit_bad(au, "checkpoint", NULL, "the journal "
                                     "ends at seq %llu, but checkpoint %llu "
                                     "was written at seq %llu: the journal "
                                     "has been cut",
                                     (unsigned long long) newest,
                                     (unsigned long long) gen,
                                     (unsigned long long) last_seq);
            }
        }
    }

    if (status == RON_ECORRUPT) {
        ron_state_free(&st);
        return ron_audit_bad(au, "checkpoint", NULL, "checkpoint %llu is not "
                             "the one that the journal vouches for: it was "
                             "edited", (unsigned long long) gen);
    }

    if (status == RON_OK && vouched && !*compared && au->report->replayed
        && last_seq < au->target)
    {
        *compared = true;
        status = ron_beside_compare(au, &st, gen);
    }

    ron_state_free(&st);

    return status;
}


/*
 * A writer that was stopped behind the last slice vouched for nothing, and its
 * successor goes on with the checkpoint before: as ron_recover.c has it.
 */

static ron_status_t
ron_beside_stopped(ron_audit_run_t *au, uint64_t last_seq,
    const ron_hash_t *next)
{
    ron_row_t     row;
    ron_status_t  status;

    status = ron_reader_row(au->reader, last_seq, &row);

    return status == RON_OK && !ron_hash_eq(next, &row.checkpoint)
           ? RON_ECORRUPT : status;
}


static ron_status_t
ron_beside_compare(ron_audit_run_t *au, ron_state_t *st, uint64_t gen)
{
    ron_status_t  status;

    status = ron_beside_follow(au, st);

    if (status == RON_ECORRUPT
        || (status == RON_OK && !ron_beside_same(au, st)))
    {
        return ron_audit_bad(au, "checkpoint", NULL, "checkpoint %llu leads "
                             "to another state than the journal does",
                             (unsigned long long) gen);
    }

    return status;
}


typedef struct {
    ron_state_t  *st;
    uint64_t      target;
} ron_beside_follow_t;


static ron_status_t
ron_beside_follow(ron_audit_run_t *au, ron_state_t *st)
{
    uint64_t             next;
    ron_status_t         status;
    ron_beside_follow_t  follow;

    follow = (ron_beside_follow_t) { st, au->target };
    status = RON_OK;

    while (status == RON_OK && st->seq < au->target) {
        status = ron_reader_rows(au->reader, st->seq + 1,
                                 RON_AUDIT_PAGE_BYTES, ron_beside_row,
                                 &follow, &next);

        if (au->conf->progress != NULL
            && !au->conf->progress(au->conf->ctx, au->target, au->target))
        {
            return RON_ECANCELED;
        }
    }

    return status;
}


static ron_status_t
ron_beside_row(void *ctx, const ron_row_t *row)
{
    ron_rd_t              rd;
    ron_str_t             bytes;
    ron_entry_t           e;
    ron_touch_t           touch;
    ron_status_t          status;
    ron_beside_follow_t  *follow = ctx;

    if (follow->st->seq >= follow->target) {
        return RON_OK;
    }

    status = RON_OK;
    ron_state_advance(follow->st, row->time_ms);
    ron_rd_init(&rd, row->body);

    while (status == RON_OK && ron_body_next(&rd, &bytes) == RON_OK) {
        status = ron_entry_decode(bytes, &e);

        if (status == RON_OK) {
            touch = (ron_touch_t) { RON_NONE, RON_NONE };
            status = ron_state_apply(follow->st, &e, &touch);
        }
    }

    return status;
}


/* Everything but what capabilities moved today, whose day may have ended. */

static bool
ron_beside_same(ron_audit_run_t *au, ron_state_t *st)
{
    uint32_t            no;
    const ron_state_t  *a;
    const ron_asset_t  *asset;

    a = &au->state;

    if (a->accounts.n != st->accounts.n || a->balances.n != st->balances.n
        || a->hold_n != st->hold_n || a->reversed.n != st->reversed.n
        || a->asset_n != st->asset_n)
    {
        return false;
    }

    for (uint32_t i = 0; i < a->accounts.n; i++) {
        if (!ron_beside_account(a, i, st)) {
            return false;
        }
    }

    for (uint32_t i = 0; i < a->asset_n; i++) {
        asset = &a->assets[i];
        no = ron_state_asset(st, (ron_str_t) { asset->name_len,
                                               (const void *) asset->name });

        if (no == RON_NONE || st->assets[no].minted != asset->minted
            || st->assets[no].burned != asset->burned)
        {
            return false;
        }
    }

    return ron_beside_holds(a, st);
}


static bool
ron_beside_holds(const ron_state_t *a, const ron_state_t *st)
{
    uint32_t               no;
    const ron_hold_t      *hold, *other;
    const ron_reversed_t  *reversed;

    for (uint32_t i = 0; i < a->holds.n; i++) {
        hold = ron_hold_at(a, i);

        if (hold->seq == 0) {
            continue;
        }

        no = ron_state_hold(st, hold->seq);
        other = no == RON_NONE ? NULL : ron_hold_at(st, no);

        if (other == NULL || other->left != hold->left
            || other->expiry_ms != hold->expiry_ms)
        {
            return false;
        }
    }

    for (uint32_t i = 0; i < a->reversed.n; i++) {
        reversed = ron_pool_at(&a->reversed, i);

        if (ron_state_reversed(st, reversed->seq) != reversed->total) {
            return false;
        }
    }

    return true;
}


static bool
ron_beside_purse(const ron_state_t *a, ron_cell_t x, const ron_state_t *b,
    ron_cell_t y)
{
    ron_purse_t  px, py;

    px = ron_cell_get(a, x);
    py = ron_cell_get(b, y);

    return px.available == py.available && px.held == py.held;
}


static bool
ron_beside_account(const ron_state_t *a, uint32_t no, ron_state_t *b)
{
    uint32_t                  other, asset, balance;
    const ron_asset_t        *name;
    const ron_account_t      *x, *y;
    const ron_balance_rec_t  *bx;

    x = ron_account_at(a, no);
    other = ron_state_account(b, ron_name_at(a, x->name));

    if (other == RON_NONE) {
        return false;
    }

    y = ron_account_at(b, other);

    if (x->nonce != y->nonce || x->version != y->version || x->day != y->day
        || !ron_beside_purse(a, x->daily, b, y->daily))
    {
        return false;
    }

    for (uint32_t i = x->first; i != RON_NONE; i = bx->next) {
        bx = ron_balance_at(a, i);
        name = &a->assets[bx->asset];
        asset = ron_state_asset(b, (ron_str_t) { name->name_len,
                                                 (const void *) name->name });
        balance = asset == RON_NONE ? RON_NONE
                                    : ron_state_balance(b, other, asset);
        if (balance == RON_NONE) {
            return false;
        }

        if (!ron_beside_purse(a, bx->purse, b,
                              ron_balance_at(b, balance)->purse))
        {
            return false;
        }
    }

    return true;
}
