
/*
 * From what is on disk to a state in RAM.
 *
 *     open     newest checkpoint that the journal vouches for; then the tags
 *              that segments do not cover
 *     follow   rows behind it, each checked against the one before: seq,
 *              root, epoch, time, chain; entries applied, tags put
 *     check    (the writer only) the tree re-derived from tiles and tail has
 *              the head's root; money is conserved; no head was published
 *              that this journal does not hold; no mark of safe mode
 *
 * A follower stops after any row and goes on later.  Whatever is wrong is
 * named with its sequence.
 */

#include "ron_engine_impl.h"
#include "ron_digest.h"


/* Tags are put again in pieces of this much journal. */
#define RON_TAG_REPLAY_BYTES  (4 * 1024 * 1024)

/* Entries that are decoded and hashed before the first of them is applied. */
#define RON_AHEAD_N           32


typedef struct {
    uint32_t       n;
    ron_entry_t    e[RON_AHEAD_N];
    ron_op_tags_t  t[RON_AHEAD_N];
} ron_ahead_t;


static ron_status_t ron_recover_checkpoint(ron_engine_t *en, ron_buf_t *why);
static ron_status_t ron_recover_gen(ron_engine_t *en, uint64_t gen,
    uint32_t count, bool *usable);
static ron_status_t ron_recover_base(ron_engine_t *en, ron_buf_t *why);
static ron_status_t ron_recover_tag_row(void *ctx, const ron_row_t *row);
static ron_status_t ron_follow_row(void *ctx, const ron_row_t *row);
static ron_status_t ron_follow_entries(ron_engine_t *en,
    const ron_row_t *row);
static ron_status_t ron_follow_ahead(ron_engine_t *en, const ron_row_t *row,
    ron_rd_t *rd, ron_ahead_t *ahead);
static ron_status_t ron_follow_entry(ron_engine_t *en, const ron_entry_t *e,
    const ron_op_tags_t *made);
static ron_tags_t *ron_follow_store(ron_engine_t *en, const ron_entry_t *e);
static ron_status_t ron_follow_tags(ron_engine_t *en, const ron_entry_t *e,
    const ron_op_tags_t *made);
static ron_status_t ron_recover_head(ron_engine_t *en, ron_buf_t *why);
static ron_status_t ron_recover_root(ron_engine_t *en, uint64_t size,
    ron_hash_t *root);


ron_status_t
ron_recover_open(ron_engine_t *en, ron_buf_t *why)
{
    ron_status_t  status;

    status = ron_recover_checkpoint(en, why);

    if (status == RON_OK) {
        status = ron_recover_base(en, why);
    }

    return status == RON_OK ? ron_recover_tags(en, why) : status;
}


static ron_status_t
ron_recover_checkpoint(ron_engine_t *en, ron_buf_t *why)
{
    bool          complete, usable;
    uint32_t      count;
    uint64_t      gen, max_gen;
    ron_status_t  status;

    max_gen = UINT64_MAX;
    en->ckpt.gen = 0;

    for ( ;; ) {
        status = ron_reader_gen(en->reader, max_gen, &gen, &count, &complete);

        if (status == RON_ENOTFOUND) {
            return RON_OK;
        }

        if (status != RON_OK) {
            ron_buf_printf(why, "the checkpoints cannot be read: %s",
                           ron_reader_error(en->reader));
            return status;
        }

        en->ckpt.gen = ron_max(en->ckpt.gen, gen);

        if (complete) {
            status = ron_recover_gen(en, gen, count, &usable);
            if (status != RON_OK || usable) {
                return status;
            }
        }

        if (gen == 0) {
            return RON_OK;
        }

        max_gen = gen - 1;
    }
}


/*
 * One generation.  Not usable: the journal says another hash (it was edited),
 * or nothing yet (the process died before the next commit).
 */

static ron_status_t
ron_recover_gen(ron_engine_t *en, uint64_t gen, uint32_t count, bool *usable)
{
    uint64_t      last_seq;
    ron_row_t     row;
    ron_hash_t    hash, vouched;
    ron_status_t  status;

    *usable = false;
    status = ron_ckpt_load(&en->state, en->reader, gen, count, &hash,
                           &last_seq);

    if (status == RON_OK) {
        status = ron_reader_row(en->reader, last_seq + 1, &row);

        /* A slice is exact as of the end of its commit, or it was edited. */

        if (status == RON_OK && row.seq != last_seq + 1) {
            status = ron_corrupt();
        }

        if (status == RON_OK && ron_hash_eq(&hash, &row.checkpoint)) {
            en->ckpt_hash = hash;
            en->ckpt_gen = gen;
            en->ckpt_kept = gen;
            en->ckpt_seq = last_seq;
            *usable = true;
            return RON_OK;
        }

        /*
         * A writer that was stopped behind the last slice vouched for
         * nothing: its successor goes on with the checkpoint before.
         */

        if (status == RON_OK) {
            vouched = row.checkpoint;
            status = ron_reader_row(en->reader, last_seq, &row);
        }

        if (status == RON_OK) {
            status = ron_hash_eq(&vouched, &row.checkpoint)
                         ? RON_ENOTFOUND : ron_corrupt();
        }
    }

    if (status == RON_ECORRUPT) {
        ron_log(RON_LOG_ERROR, "checkpoint %llu is not the one that the"
                " journal vouches for, an older one is used instead",
                (unsigned long long) gen);
    }

    ron_state_free(&en->state);

    if (status != RON_ECORRUPT && status != RON_ENOTFOUND) {
        (void) ron_state_init(&en->state);
        return status;
    }

    return ron_state_init(&en->state);
}


/* The row that the loaded state ends with. */

static ron_status_t
ron_recover_base(ron_engine_t *en, ron_buf_t *why)
{
    ron_row_t     row;
    ron_status_t  status;

    memset(&en->head, 0, sizeof(en->head));
    ron_digest_bytes(en->meta.digest, "", 0, &en->head.root);

    if (en->state.seq == 0) {
        en->head.seq = 1;
        return RON_OK;
    }

    status = ron_reader_row(en->reader, en->state.seq, &row);

    if (status != RON_OK || row.seq + row.count - 1 != en->state.seq) {
        ron_buf_printf(why, "no commit ends at seq %llu, where checkpoint %llu"
                       " begins", (unsigned long long) en->state.seq,
                       (unsigned long long) en->ckpt_gen);
        return status == RON_EIO ? RON_EIO : ron_corrupt();
    }

    en->head = row;
    en->head.body = ron_null_str;
    en->head.notes = ron_null_str;

    return RON_OK;
}


/* What segments do not hold, up to where following will begin. */

ron_status_t
ron_recover_tags(ron_engine_t *en, ron_buf_t *why)
{
    uint64_t      next, from;
    ron_status_t  status;

    from = ron_min(ron_tags_covered(en->tags), ron_tags_covered(en->keys)) + 1;

    while (from <= en->state.seq) {
        status = ron_reader_rows(en->reader, from, RON_TAG_REPLAY_BYTES,
                                 ron_recover_tag_row, en, &next);

        if (status != RON_OK) {
            ron_buf_printf(why, "tags cannot be rebuilt from seq %llu on: %s",
                           (unsigned long long) from,
                           ron_reader_error(en->reader));
            return status == RON_ENOTFOUND ? ron_corrupt() : status;
        }

        from = next;
    }

    return RON_OK;
}


static ron_status_t
ron_recover_tag_row(void *ctx, const ron_row_t *row)
{
    ron_rd_t       rd;
    ron_str_t      bytes;
    ron_entry_t    e;
    ron_engine_t  *en = ctx;
    ron_status_t   status;

    ron_rd_init(&rd, row->body);

    while ((status = ron_body_next(&rd, &bytes)) == RON_OK) {
        status = ron_entry_decode(bytes, &e);

        if (status == RON_OK && e.seq <= en->state.seq) {
            status = ron_follow_tags(en, &e, NULL);
            en->replayed++;
        }

        if (status != RON_OK) {
            return status;
        }
    }

    if (status != RON_ENOTFOUND) {
        return status;
    }

    ron_tags_commit(en->tags, row->seq + row->count - 1, row->time_ms);
    ron_tags_commit(en->keys, row->seq + row->count - 1, row->time_ms);

    return RON_OK;
}


/* Where the tags of an entry are. */

static ron_tags_t *
ron_follow_store(ron_engine_t *en, const ron_entry_t *e)
{
    return (e->fields & RON_F_WALLET) ? en->keys : en->tags;
}


static ron_status_t
ron_follow_tags(ron_engine_t *en, const ron_entry_t *e,
    const ron_op_tags_t *made)
{
    ron_status_t  status;

    if (e->seq <= ron_tags_covered(ron_follow_store(en, e))) {
        return RON_OK;
    }

    status = ron_tag_entry(en, e, made);

    return status == RON_EIO ? RON_OK : status;
}


ron_status_t
ron_engine_follow(ron_engine_t *en, size_t max_bytes, ron_buf_t *why)
{
    uint64_t      next;
    ron_status_t  status;

    status = ron_reader_rows(en->reader, en->state.seq + 1, max_bytes,
                             ron_follow_row, en, &next);

    if (status != RON_OK && status != RON_ENOTFOUND) {
        ron_buf_printf(why, "the journal does not continue at seq %llu: %s",
                       (unsigned long long) en->state.seq + 1,
                       status == RON_EIO ? ron_reader_error(en->reader)
                                         : ron_status_name(status));
    }

    return status;
}


static ron_status_t
ron_follow_row(void *ctx, const ron_row_t *row)
{
    ron_hash_t     chain;
    ron_engine_t  *en = ctx;
    ron_status_t   status;

    ron_row_chain(&en->head.chain, row, &chain);

    if (row->seq != en->state.seq + 1 || row->count == 0
        || row->epoch < en->head.epoch || row->time_ms < en->head.time_ms
        || !ron_hash_eq(&row->prev_root, &en->head.root)
        || !ron_hash_eq(&row->chain, &chain))
    {
        return ron_corrupt();
    }

    ron_state_advance(&en->state, row->time_ms);

    status = ron_follow_entries(en, row);
    if (status != RON_OK) {
        return status;
    }

    en->head = *row;
    en->head.body = ron_null_str;
    en->head.notes = ron_null_str;
    en->replayed += row->count;

    ron_tags_commit(en->tags, en->state.seq, row->time_ms);
    ron_tags_commit(en->keys, en->state.seq, row->time_ms);

    return RON_OK;
}


static ron_status_t
ron_follow_entries(ron_engine_t *en, const ron_row_t *row)
{
    uint64_t      count;
    ron_rd_t      rd;
    ron_ahead_t   ahead;
    ron_status_t  status, more;

    count = 0;
    ron_rd_init(&rd, row->body);

    do {
        more = ron_follow_ahead(en, row, &rd, &ahead);

        for (uint32_t i = 0; i < ahead.n; i++) {
            status = ron_follow_entry(en, &ahead.e[i], &ahead.t[i]);
            if (status != RON_OK) {
                return status;
            }
        }

        count += ahead.n;

    } while (more == RON_OK);

    if (more != RON_ENOTFOUND) {
        return more;
    }

    return count == row->count ? RON_OK : ron_corrupt();
}


/*
 * The next entries of a row, and what applying them will wait for is asked of
 * memory now.  When one is wrong, those before it are right.
 */

static ron_status_t
ron_follow_ahead(ron_engine_t *en, const ron_row_t *row, ron_rd_t *rd,
    ron_ahead_t *ahead)
{
    ron_str_t       bytes;
    ron_entry_t    *e;
    ron_status_t    status;
    ron_op_tags_t  *t;

    status = RON_OK;

    for (ahead->n = 0; ahead->n < RON_AHEAD_N; ahead->n++) {
        e = &ahead->e[ahead->n];
        t = &ahead->t[ahead->n];

        status = ron_body_next(rd, &bytes);

        if (status == RON_OK) {
            status = ron_entry_decode(bytes, e);
        }

        if (status == RON_OK
            && (e->time_ms != row->time_ms
                || e->ledger_id != en->meta.ledger_id))
        {
            status = ron_corrupt();
        }

        if (status != RON_OK) {
            break;
        }

        ron_ahead_one(en, e, t);
        t->made = false;

        if (e->seq > ron_tags_covered(ron_follow_store(en, e))) {
            ron_tag_of_entry(en, e, t);
        }
    }

    ron_ahead_all(en, ahead->t, ahead->n);

    return status;
}


static ron_status_t
ron_follow_entry(ron_engine_t *en, const ron_entry_t *e,
    const ron_op_tags_t *made)
{
    ron_touch_t   touch;
    ron_status_t  status;

    touch = (ron_touch_t) { RON_NONE, RON_NONE };
    status = ron_state_apply(&en->state, e, &touch);

    return status == RON_OK ? ron_follow_tags(en, e, made) : status;
}


ron_status_t
ron_recover_check(ron_engine_t *en, ron_buf_t *why)
{
    ron_buf_t          reason;
    ron_hash_t         root;
    ron_status_t       status;
    ron_tile_reader_t  tiles;

    tiles = (ron_tile_reader_t) { en->reader, en->meta.digest };

    status = ron_tree_load(&en->tree, en->meta.digest, en->state.seq,
                           ron_tile_from_reader, &tiles);

    if (status == RON_OK) {
        ron_tree_root(&en->tree, &root);
        status = ron_hash_eq(&root, &en->head.root) ? RON_OK : ron_corrupt();
    }

    if (status != RON_OK) {
        ron_buf_printf(why, "the tree does not give the root of seq %llu",
                       (unsigned long long) en->state.seq);
        return status;
    }

    en->summed = true;
    en->conserved = en->state.as_of_last == 0
                    && ron_state_check(&en->state) == RON_OK;

    if (!en->conserved) {
        ron_buf_printf(why, "money is not conserved at seq %llu",
                       (unsigned long long) en->state.seq);
        return ron_corrupt();
    }

    status = ron_recover_head(en, why);
    if (status != RON_OK) {
        return status;
    }

    ron_buf_init(&reason, 0);
    status = ron_store_mark_read(en->store, &reason);

    if (status != RON_ENOTFOUND) {
        ron_buf_printf(why, "marked for safe mode: %.*s", (int) reason.len,
                       reason.len ? (const char *) reason.data : "");
        status = (status == RON_OK) ? RON_ECANCELED : status;

    } else {
        status = RON_OK;
    }

    ron_buf_free(&reason);

    return status;
}


/* Was a head published that this journal does not reach, or contradicts? */

static ron_status_t
ron_recover_head(ron_engine_t *en, ron_buf_t *why)
{
    ron_buf_t              note;
    ron_hash_t             root;
    ron_status_t           status;
    ron_checkpoint_note_t  cp;

    ron_buf_init(&note, RON_NOTE_MAX);
    status = ron_store_head_read(en->store, &note);

    if (status == RON_OK) {
        status = ron_note_parse(ron_buf_str(&note), &cp);
    }

    if (status != RON_OK) {

        /* Never published, or torn by a crash: it was not synced. */

        ron_buf_free(&note);
        return RON_OK;
    }

    if (cp.size > en->state.seq) {
        ron_buf_printf(why, "the journal ends at seq %llu, but a head at seq"
                       " %llu was published: it has been cut",
                       (unsigned long long) en->state.seq,
                       (unsigned long long) cp.size);
        status = ron_corrupt();

    } else if (cp.size > 0) {
        status = ron_recover_root(en, cp.size, &root);

        if (status == RON_OK && !ron_hash_eq(&root, &cp.root)) {
            ron_buf_printf(why, "the head published at seq %llu has another"
                           " root than the journal",
                           (unsigned long long) cp.size);
            status = ron_corrupt();
        }
    }

    ron_buf_free(&note);

    return status;
}


/*
 * The root at a size.  Heads are published of whole commits, whose rows say
 * it; the tree is asked only where one says nothing, for it reads a tile for
 * each 256 entries of the last 65 536.
 */

static ron_status_t
ron_recover_root(ron_engine_t *en, uint64_t size, ron_hash_t *root)
{
    ron_row_t          row;
    ron_status_t       status;
    ron_tile_reader_t  tiles;

    if (size == en->state.seq) {
        *root = en->head.root;
        return RON_OK;
    }

    status = ron_reader_row(en->reader, size, &row);

    if (status == RON_OK && row.seq + row.count - 1 == size) {
        *root = row.root;
        return RON_OK;
    }

    tiles = (ron_tile_reader_t) { en->reader, en->meta.digest };

    return ron_proof_root(en->meta.digest, size, ron_tile_from_reader, &tiles,
                          root);
}
