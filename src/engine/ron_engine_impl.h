
/*
 * What the files of the engine share.  Who owns what:
 *
 *     sequencer (the caller's thread)   state, tags, keys, reader, clock,
 *                                       checkpoint in progress, free batches
 *     committer (its own thread)        tree, chain, store (append, maintain)
 *     both, under the mutex             the two queues and the flags
 */

#ifndef RON_ENGINE_IMPL_H
#define RON_ENGINE_IMPL_H


#include "ron_checkpoint.h"
#include "ron_engine.h"
#include "ron_log.h"
#include "ron_port.h"
#include "ron_state.h"
#include "ron_tags.h"


/* Where the bytes of a result are, until the buffers stop growing. */
typedef enum {
    RON_SPAN_NONE = 0,
    RON_SPAN_BODY,
    RON_SPAN_EXTRA
} ron_span_where_t;

typedef struct {
    ron_span_where_t  where;
    size_t            off;
    size_t            len;
} ron_span_t;


/*
 * What is hashed of an operation, once and before the batch is decided, so
 * that all of its look-ups can be started together.
 */
typedef struct {
    ron_tag_t  first;               /* key of a wallet's, id of an entry */
    ron_tag_t  tuple;               /* of an entry only */
    uint64_t   from_hash;
    uint64_t   to_hash;
    bool       made;                /* the tags are */
} ron_op_tags_t;


typedef struct ron_work_s  ron_work_t;

struct ron_work_s {
    ron_batch_t     pub;
    ron_work_t     *next;               /* in the one list it is in */
    ron_work_t     *live;               /* the one decided before it */

    ron_buf_t       body;
    ron_buf_t       notes;
    ron_buf_t       extra;              /* bytes of replayed entries */
    ron_buf_t       slice_body;
    ron_slice_t     slice;
    bool            has_slice;
    ron_hash_t      checkpoint;
    uint64_t        gen;                /* whose hash that is */
    uint64_t        keep_gen;           /* 0: nothing to remove */
    uint32_t        expired_max;        /* holds released at most */

    uint32_t        unit_cap;
    ron_result_t   *results;
    ron_span_t     *spans;
    ron_op_tags_t  *tags;
    uint32_t        result_n;
    uint32_t        result_cap;

    struct {
        uint32_t  account;
        uint32_t  asset;
    }              *touched;
    uint32_t        touched_n;
    uint32_t        touched_cap;
    uint32_t        balance_cap;
};


typedef struct {
    ron_work_t  *head;
    ron_work_t  *tail;
    uint32_t     n;
} ron_work_list_t;

/* An empty batch with room for so many units; NULL: no memory. */
ron_work_t *ron_work_get(ron_engine_t *en, uint32_t units);
void ron_work_put_back(ron_engine_t *en, ron_work_t *w);
void ron_work_free(ron_work_t *w);

void ron_list_push(ron_work_list_t *list, ron_work_t *w);
ron_work_t *ron_list_pop(ron_work_list_t *list);


struct ron_engine_s {
    ron_engine_conf_t   conf;
    ron_ledger_meta_t   meta;
    ron_store_t        *store;
    ron_reader_t       *reader;
    ron_signer_t       *own_signer;     /* NULL: the embedder's is used */

    ron_state_t         state;
    ron_tags_t         *tags;           /* tuples, ids, batch ids: for ever */
    ron_tags_t         *keys;           /* idempotency keys: for a day */
    bool                tags_bad;       /* a damaged segment was read */
    ron_ckpt_t          ckpt;
    ron_hash_t          ckpt_hash;      /* of the newest complete one */
    uint64_t            ckpt_gen;       /* its generation */
    uint64_t            ckpt_kept;      /* newest that the journal vouches */
    uint64_t            ckpt_drop;      /* remove what is below, 0: nothing */
    uint64_t            ckpt_seq;
    int64_t             ckpt_credit;    /* bytes that slices may take */

    ron_ledger_clock_t *clock;          /* conf.clock or own_clock */
    ron_ledger_clock_t  own_clock;
    uint64_t            clock_mono_us;  /* ledger time `clock_us` was then */
    uint64_t            clock_us;       /* 0: not read yet */
    uint64_t            clock_idle_us;  /* elapsed, not leaned for yet */
    bool                drift_said;

    ron_row_t           head;           /* replayed or appended; no views */
    uint64_t            head_seq;       /* durable; signed up to signed_seq */
    ron_hash_t          head_root;
    uint64_t            signed_seq;
    uint64_t            signed_us;
    uint64_t            epoch;
    bool                writer;
    bool                summed;         /* as ron_engine_stat_t says */
    bool                conserved;
    uint64_t            replayed;
    ron_buf_t           scratch;
    ron_buf_t           found;

    /*
     * The row of the journal that was looked into last, and how far: who
     * sends a long batch again asks for one entry of it after the other.
     */

    ron_buf_t           past;
    uint64_t            past_seq;
    uint64_t            past_count;     /* 0: none */
    uint64_t            past_n;         /* entries before past_pos */
    size_t              past_pos;

    ron_work_t         *now;            /* the batch that is being decided */
    ron_work_t         *free_works;
    ron_work_t         *live;           /* decided and not released */

    ron_tree_t          tree;
    ron_tile_t         *tiles;
    uint32_t            tile_n;
    uint32_t            tile_cap;

    ron_mutex_t        *mutex;
    ron_cond_t         *wake;
    ron_thread_t       *thread;
    ron_work_list_t     queue;
    ron_work_list_t     done;
    ron_work_t         *working;
    uint32_t            queue_units;
    uint32_t            queue_work;
    uint64_t            durable_seq;
    uint64_t            durable_ms;
    bool                stopping;
    bool                failed;
    void              (*notify)(void *ctx);
    void               *notify_ctx;
};


/* ron_decide.c */
ron_status_t ron_decide_units(ron_engine_t *en, ron_work_t *w,
    uint64_t time_ms, uint64_t now_us);

/* ron_order.c: sorts units as the architecture says. */
ron_status_t ron_order_units(ron_unit_t **units, uint32_t n);

/* ron_lookup.c */
typedef enum {
    RON_TAG_TUPLE = 't',
    RON_TAG_ID = 'i',
    RON_TAG_BATCH = 'b',            /* idem_id of an ingest */
    RON_TAG_KEY = 'k',              /* of one wallet operation */
    RON_TAG_CAPKEY = 'c'            /* of a wallet batch */
} ron_tag_kind_t;

void ron_tag_make(ron_tag_kind_t kind, ron_str_t a, ron_str_t b,
    ron_tag_t *tag);
void ron_tag_tuple(const ron_entry_t *op, ron_str_t idem, ron_tag_t *tag);

/* RON_OK, RON_ENOTFOUND, or what the storage said. */
ron_status_t ron_tag_find(ron_engine_t *en, ron_tag_kind_t kind,
    const ron_tag_t *tag, uint64_t *seq);

/* Makes the tags of an operation, as far as they follow from it alone. */
void ron_tag_ops(ron_engine_t *en, const ron_unit_t *unit, uint32_t i,
    ron_op_tags_t *tags);

/* The same for an entry of the journal; both start the look-ups. */
void ron_tag_of_entry(ron_engine_t *en, const ron_entry_t *e,
    ron_op_tags_t *tags);

/*
 * Memory that will be waited for is asked for before the first of many is
 * looked at: the accounts of each, then those of all, step by step.
 */
void ron_ahead_one(ron_engine_t *en, const ron_entry_t *op, ron_op_tags_t *t);
void ron_ahead_all(ron_engine_t *en, const ron_op_tags_t *t, uint32_t n);

/* Puts the tags of an entry that was applied; made: NULL when unknown. */
ron_status_t ron_tag_entry(ron_engine_t *en, const ron_entry_t *e,
    const ron_op_tags_t *made);

/* The entry `seq`, decided or durable; views are good until the next call. */
ron_status_t ron_entry_find(ron_engine_t *en, uint64_t seq, ron_entry_t *e,
    ron_str_t *bytes);

/* The note of a keyed batch whose first entry is `seq`. */
ron_status_t ron_outcome_find(ron_engine_t *en, uint64_t seq,
    const ron_tag_t *tag, ron_hash_t *digest, ron_str_t *outcome);

/* The same as it was told: in wire form, with the entries that it made. */
ron_status_t ron_batch_find(ron_engine_t *en, uint64_t seq,
    const ron_tag_t *tag, ron_str_t *wire);
void ron_outcome_note(ron_buf_t *notes, const ron_tag_t *tag,
    const ron_hash_t *digest, const ron_outcome_t *outcome);

/* ron_commit.c */
ron_status_t ron_commit_work(ron_engine_t *en, ron_work_t *w);

/* After a commit, when its callers have been told. */
void ron_commit_maintain(ron_engine_t *en, uint64_t keep_gen);

/* ron_engine.c: what is told of a balance. */
void ron_balance_fill(const ron_state_t *st, uint32_t account, uint32_t bal,
    ron_balance_t *balance);

/* ron_signing.c: the writer's key, made if need be. */
ron_status_t ron_signing_open(ron_engine_t *en, ron_buf_t *why);
ron_status_t ron_signing_origin(ron_engine_t *en, const ron_signer_t *signer,
    ron_buf_t *why);

/* ron_recover.c */
ron_status_t ron_recover_open(ron_engine_t *en, ron_buf_t *why);

/* Puts again what segments do not hold, up to the state's seq. */
ron_status_t ron_recover_tags(ron_engine_t *en, ron_buf_t *why);

/* Everything that a writer checks after it has read the tail. */
ron_status_t ron_recover_check(ron_engine_t *en, ron_buf_t *why);


#endif /* RON_ENGINE_IMPL_H */
