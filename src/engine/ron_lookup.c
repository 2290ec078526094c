
/*
 * Looking back: tags, the entries that they lead to, and the outcomes of
 * keyed batches.  What was decided but is not durable yet is found in the
 * batches in flight, everything else in the journal.
 */

#include "ron_engine_impl.h"
#include "ron_digest.h"

#include <stdlib.h>


#define RON_TAG_TEXT_MAX  1024


static ron_work_t *ron_live_find(ron_engine_t *en, uint64_t seq);
static ron_status_t ron_body_at(ron_str_t body, uint64_t n, ron_str_t *bytes);
static ron_status_t ron_past_find(ron_engine_t *en, uint64_t seq,
    ron_str_t *bytes);
static ron_status_t ron_notes_find(ron_str_t notes, const ron_tag_t *tag,
    ron_hash_t *digest, ron_str_t *outcome);
static ron_status_t ron_batch_entries(ron_engine_t *en,
    ron_outcome_t *outcome, ron_buf_t *entries);


/*
 * A tag is 128 bits of BLAKE3 over its kind and its two parts.  What it leads
 * to is compared in full, so two texts of one tag could only be refused,
 * never be taken for one another.
 */

void
ron_tag_make(ron_tag_kind_t kind, ron_str_t a, ron_str_t b, ron_tag_t *tag)
{
    uint8_t     text[RON_TAG_TEXT_MAX], *p;
    ron_hash_t  hash;

    RON_ASSERT(a.len + b.len + 3 <= sizeof(text));

    p = text;
    *p++ = (uint8_t) kind;
    *p++ = (uint8_t) (a.len >> 8);
    *p++ = (uint8_t) a.len;

    if (a.len != 0) {
        memcpy(p, a.data, a.len);
        p += a.len;
    }

    if (b.len != 0) {
        memcpy(p, b.data, b.len);
        p += b.len;
    }

    ron_blake3(text, (size_t) (p - text), &hash);
    memcpy(tag->b, hash.b, RON_TAG_LEN);
}


/* The account is `to` where an entry has no other: a debit leg reversed. */

void
ron_tag_tuple(const ron_entry_t *op, ron_str_t idem, ron_tag_t *tag)
{
    uint8_t    text[RON_ACCOUNT_MAX + 16 + RON_NONCE_LEN], *p;
    ron_str_t  account;

    account = (op->fields & RON_F_ACCOUNT) ? op->account : op->to;
    p = text;

    for (unsigned i = 0; i < 16; i++) {
        *p++ = (uint8_t) (op->amount >> (8 * i));
    }

    memcpy(p, op->nonce16, RON_NONCE_LEN);
    p += RON_NONCE_LEN;
    memcpy(p, account.data, account.len);
    p += account.len;

    ron_tag_make(RON_TAG_TUPLE, (ron_str_t) { (size_t) (p - text), text },
                 idem, tag);
}


ron_status_t
ron_tag_find(ron_engine_t *en, ron_tag_kind_t kind, const ron_tag_t *tag,
    uint64_t *seq)
{
    ron_tags_t    *store;
    ron_status_t   status;

    store = (kind == RON_TAG_KEY || kind == RON_TAG_CAPKEY) ? en->keys
                                                            : en->tags;

    status = ron_tags_get(store, tag, seq);

    if (status == RON_ECORRUPT) {
        en->tags_bad = true;
    }

    return status;
}


/* A wallet's key is scoped by the account, but in a batch; then it is not. */

void
ron_tag_ops(ron_engine_t *en, const ron_unit_t *unit, uint32_t i,
    ron_op_tags_t *tags)
{
    const ron_entry_t  *op;

    op = &unit->ops[i];
    tags->made = false;

    if (unit->key.len > RON_KEY_MAX || op->account.len > RON_ACCOUNT_MAX
        || op->id.len > RON_ID_MAX || !(op->fields & RON_F_ACCOUNT))
    {
        return;
    }

    if (unit->type == RON_UNIT_WALLET) {
        ron_tag_make(RON_TAG_KEY, op->account, unit->key, &tags->first);
        ron_tags_prefetch(en->keys, &tags->first);
        tags->made = true;

    } else if (unit->type == RON_UNIT_INGEST) {
        ron_tag_make(RON_TAG_ID, op->id, ron_null_str, &tags->first);
        ron_tag_tuple(op, unit->key, &tags->tuple);
        ron_tags_prefetch(en->tags, &tags->first);
        ron_tags_prefetch(en->tags, &tags->tuple);
        tags->made = true;
    }
}


void
ron_tag_of_entry(ron_engine_t *en, const ron_entry_t *e, ron_op_tags_t *tags)
{
    ron_str_t  key;

    key = (e->fields & RON_F_KEY) ? e->key : ron_null_str;
    tags->made = true;

    if (e->fields & RON_F_WALLET) {
        if (e->fields & RON_F_SCOPE) {
            ron_tag_make(RON_TAG_CAPKEY, e->scope, key, &tags->first);

        } else {
            ron_tag_make(RON_TAG_KEY, e->account, key, &tags->first);
        }

        ron_tags_prefetch(en->keys, &tags->first);

    } else {
        ron_tag_make(RON_TAG_ID, e->id, ron_null_str, &tags->first);
        ron_tag_tuple(e, key, &tags->tuple);
        ron_tags_prefetch(en->tags, &tags->first);
        ron_tags_prefetch(en->tags, &tags->tuple);
    }
}


void
ron_ahead_one(ron_engine_t *en, const ron_entry_t *op, ron_op_tags_t *t)
{
    t->from_hash = ron_state_hash(&en->state, op->account);
    t->to_hash = ron_state_hash(&en->state, op->to);
    ron_state_prefetch(&en->state, t->from_hash, 0);
    ron_state_prefetch(&en->state, t->to_hash, 0);
}


void
ron_ahead_all(ron_engine_t *en, const ron_op_tags_t *t, uint32_t n)
{
    for (unsigned stage = 1; stage <= 2; stage++) {
        for (uint32_t i = 0; i < n; i++) {
            ron_state_prefetch(&en->state, t[i].from_hash, stage);
            ron_state_prefetch(&en->state, t[i].to_hash, stage);
        }
    }
}


ron_status_t
ron_tag_entry(ron_engine_t *en, const ron_entry_t *e,
    const ron_op_tags_t *made)
{
    ron_str_t      key;
    ron_tag_t      tag;
    ron_status_t   status;
    ron_op_tags_t  tags;

    status = RON_OK;
    key = (e->fields & RON_F_KEY) ? e->key : ron_null_str;

    if (made == NULL || !made->made) {
        ron_tag_of_entry(en, e, &tags);
        made = &tags;
    }

    if (e->fields & RON_F_WALLET) {
        return ron_tags_put(en->keys, &made->first, e->seq);
    }

    if (e->fields & RON_F_ID) {
        status = ron_tags_put(en->tags, &made->first, e->seq);
    }

    if (status == RON_OK && (e->fields & RON_F_NONCE16)) {
        status = ron_tags_put(en->tags, &made->tuple, e->seq);
    }

    if (status == RON_OK && key.len != 0) {
        ron_tag_make(RON_TAG_BATCH, key, ron_null_str, &tag);

        /* The first entry of a batch stands for it. */

        if (ron_tags_get(en->tags, &tag, &(uint64_t) { 0 }) != RON_OK) {
            status = ron_tags_put(en->tags, &tag, e->seq);
        }
    }

    return status;
}


static ron_work_t *
ron_live_find(ron_engine_t *en, uint64_t seq)
{
    ron_work_t  *w;

    for (w = en->live; w != NULL; w = w->live) {
        if (seq >= w->pub.seq && seq - w->pub.seq < w->pub.count) {
            return w;
        }
    }

    return NULL;
}


static ron_status_t
ron_body_at(ron_str_t body, uint64_t n, ron_str_t *bytes)
{
    ron_rd_t      rd;
    ron_status_t  status;

    ron_rd_init(&rd, body);

    do {
        status = ron_body_next(&rd, bytes);
    } while (status == RON_OK && n-- > 0);

    return status == RON_ENOTFOUND ? ron_corrupt() : status;
}


/*
 * In the journal, which never changes a row.  A row has up to thousands of
 * entries, so neither it nor what stands before an entry is read for each.
 */

static ron_status_t
ron_past_find(ron_engine_t *en, uint64_t seq, ron_str_t *bytes)
{
    ron_rd_t      rd;
    ron_row_t     row;
    ron_str_t     rest;
    ron_status_t  status;

    if (seq < en->past_seq || seq - en->past_seq >= en->past_count) {

        en->past_count = 0;

        status = ron_reader_row(en->reader, seq, &row);
        if (status != RON_OK) {
            return status;
        }

        ron_buf_reset(&en->past);
        ron_buf_put_str(&en->past, row.body);

        if (ron_buf_status(&en->past) != RON_OK) {
            return ron_buf_status(&en->past);
        }

        en->past_seq = row.seq;
        en->past_count = row.count;
        en->past_n = 0;
        en->past_pos = 0;
    }

    if (seq - en->past_seq < en->past_n) {
        en->past_n = 0;
        en->past_pos = 0;
    }

    rest = ron_buf_str(&en->past);
    rest.data += en->past_pos;
    rest.len -= en->past_pos;

    ron_rd_init(&rd, rest);

    do {
        status = ron_body_next(&rd, bytes);

        if (status != RON_OK) {
            en->past_count = 0;
            return status == RON_ENOTFOUND ? ron_corrupt() : status;
        }

        en->past_n++;

    } while (en->past_n <= seq - en->past_seq);

    en->past_pos = en->past.len - ron_rd_left(&rd);

    return RON_OK;
}


ron_status_t
ron_entry_find(ron_engine_t *en, uint64_t seq, ron_entry_t *e,
    ron_str_t *bytes)
{
    ron_str_t     view;
    ron_work_t   *w;
    ron_status_t  status;

    *bytes = ron_null_str;
    memset(e, 0, sizeof(ron_entry_t));

    w = ron_live_find(en, seq);

    if (w != NULL) {
        status = ron_body_at(ron_buf_str(&w->body), seq - w->pub.seq, &view);

    } else {
        status = ron_past_find(en, seq, &view);
    }

    if (status != RON_OK) {
        return status;
    }

    ron_buf_reset(&en->found);
    ron_buf_put_str(&en->found, view);

    if (ron_buf_status(&en->found) != RON_OK) {
        return ron_buf_status(&en->found);
    }

    *bytes = ron_buf_str(&en->found);

    return ron_entry_decode(*bytes, e);
}


void
ron_outcome_note(ron_buf_t *notes, const ron_tag_t *tag,
    const ron_hash_t *digest, const ron_outcome_t *outcome)
{
    ron_buf_t  text;

    ron_buf_init(&text, 0);
    ron_buf_put(&text, tag->b, RON_TAG_LEN);
    ron_buf_put(&text, digest->b, RON_HASH_LEN);
    (void) ron_outcome_encode(outcome, &text);

    if (ron_buf_status(&text) == RON_OK) {
        ron_buf_put_lstr(notes, ron_buf_str(&text));

    } else {
        notes->failed = true;
    }

    ron_buf_free(&text);
}


static ron_status_t
ron_notes_find(ron_str_t notes, const ron_tag_t *tag, ron_hash_t *digest,
    ron_str_t *outcome)
{
    ron_rd_t   rd, note;
    ron_str_t  bytes;

    ron_rd_init(&rd, notes);

    while (ron_rd_left(&rd) > 0) {
        ron_rd_init(&note, ron_rd_lstr(&rd));
        bytes = ron_rd_bytes(&note, RON_TAG_LEN);
        ron_rd_hash(&note, digest);

        if (rd.failed || note.failed) {
            return ron_corrupt();
        }

        if (memcmp(bytes.data, tag->b, RON_TAG_LEN) == 0) {
            *outcome = ron_rd_bytes(&note, ron_rd_left(&note));
            return RON_OK;
        }
    }

    return ron_corrupt();
}


ron_status_t
ron_outcome_find(ron_engine_t *en, uint64_t seq, const ron_tag_t *tag,
    ron_hash_t *digest, ron_str_t *outcome)
{
    ron_row_t     row;
    ron_str_t     view;
    ron_work_t   *w;
    ron_status_t  status;

    *outcome = ron_null_str;
    w = ron_live_find(en, seq);

    if (w != NULL) {
        status = ron_notes_find(ron_buf_str(&w->notes), tag, digest, &view);

    } else {
        status = ron_reader_row(en->reader, seq, &row);
        if (status == RON_OK) {
            status = ron_notes_find(row.notes, tag, digest, &view);
        }
    }

    if (status != RON_OK) {
        return status;
    }

    ron_buf_reset(&en->scratch);
    ron_buf_put_str(&en->scratch, view);
    *outcome = ron_buf_str(&en->scratch);

    return ron_buf_status(&en->scratch);
}


ron_status_t
ron_engine_row(ron_engine_t *en, uint64_t seq, ron_row_t *row)
{
    ron_status_t  status;

    status = ron_reader_row(en->reader, seq, row);

    return status == RON_ENOTFOUND ? ron_corrupt() : status;
}


ron_status_t
ron_batch_find(ron_engine_t *en, uint64_t seq, const ron_tag_t *tag,
    ron_str_t *wire)
{
    ron_buf_t      entries;
    ron_hash_t     digest;
    ron_status_t   status;
    ron_result_t  *results;
    ron_outcome_t  outcome;

    status = ron_outcome_find(en, seq, tag, &digest, wire);
    if (status != RON_OK) {
        return status == RON_ENOTFOUND ? ron_corrupt() : status;
    }

    results = malloc(RON_UNIT_OPS_MAX * sizeof(ron_result_t));
    if (results == NULL) {
        return RON_ENOMEM;
    }

    ron_buf_init(&entries, 0);

    status = ron_outcome_decode(*wire, &outcome, results, RON_UNIT_OPS_MAX);

    if (status == RON_OK) {
        status = ron_batch_entries(en, &outcome, &entries);
    }

    /* the results have no view into the old bytes any more */

    if (status == RON_OK) {
        ron_buf_reset(&en->scratch);
        status = ron_outcome_encode(&outcome, &en->scratch);
        *wire = ron_buf_str(&en->scratch);
    }

    ron_buf_free(&entries);
    free(results);

    return status == RON_EINVAL || status == RON_ENOTFOUND ? ron_corrupt()
                                                           : status;
}


/* Gives each result that was accepted the bytes of its entry. */

static ron_status_t
ron_batch_entries(ron_engine_t *en, ron_outcome_t *outcome,
    ron_buf_t *entries)
{
    size_t         pos;
    ron_entry_t    e;
    ron_status_t   status;
    ron_result_t  *r, *end;

    end = outcome->results + outcome->result_n;

    for (r = outcome->results; r < end; r++) {
        r->bytes = ron_null_str;

        if (r->reason != RON_REASON_OK) {
            continue;
        }

        status = ron_entry_find(en, r->seq, &e, &r->bytes);
        if (status != RON_OK) {
            return status;
        }

        ron_buf_put_str(entries, r->bytes);
    }

    /* the buffer has stopped growing */

    pos = 0;

    for (r = outcome->results; r < end; r++) {
        if (r->bytes.len != 0) {
            r->bytes.data = entries->data + pos;
            pos += r->bytes.len;
        }
    }

    return ron_buf_status(entries);
}
