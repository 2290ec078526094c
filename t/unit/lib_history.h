
/*
 * Random histories of a ledger: made, played, shown and made smaller.
 *
 * A history is a list of steps: decide these units at this time, reopen, die.
 * It is drawn step by step while it is played, because a capture worth trying
 * must know a hold; what was drawn is plain data and can be played again.
 *
 * Playing gives every unit to an engine and to the model, and compares all
 * that can be seen of either.
 */

#ifndef LIB_HISTORY_H
#define LIB_HISTORY_H


#include "lib_model.h"
#include "ron_engine.h"


#define HISTORY_QUEUE_MAX  8


typedef struct history_chunk_s  history_chunk_t;

typedef enum {
    STEP_DECIDE = 1,
    STEP_REOPEN,                /* everything durable, close, open */
    STEP_CRASH                  /* what is not durable is lost */
} step_kind_t;


typedef struct {
    step_kind_t   kind;
    uint32_t      no;           /* for messages */
    bool          lag;          /* leave the batch in the queue, if it may */
    bool          dropped;      /* by the shrinker */
    uint64_t      time_ms;
    uint64_t      now_us;
    uint32_t      unit_n;
    ron_unit_t  **units;
} step_t;


typedef struct {
    uint64_t           seed;
    bool               sqlite;
    bool               threaded;
    uint64_t           checkpoint_n;
    size_t             tag_ram;
    size_t             key_ram;
    uint64_t           key_ttl_ms;
    uint32_t           queue_batches;
    ron_digest_t       digest;

    uint32_t           step_n;
    uint32_t           step_max;
    step_t            *steps;
    history_chunk_t   *chunks;
} history_t;


/* What a generator remembers of what it drew. */
typedef struct {
    history_t   *h;
    uint64_t     rnd;
    uint64_t     time_ms;
    uint64_t     now_us;
    uint32_t     account_n;
    uint32_t     asset_n;
    uint32_t     id_n;
    uint32_t     key_n;
    uint64_t     nonces[8];     /* the last drawn, an account */
    bool         huge;          /* many amounts at the edge of 128 bits */
    bool         slow;          /* hours pass between batches */
    bool         faults;        /* reopen and crash steps */
    uint32_t     crowd;         /* accounts still to be made, of many */
    uint32_t     unit_n;
    uint32_t     unit_max;
    ron_unit_t **units;         /* all of them */
} generator_t;


typedef struct {
    uint32_t           n;
    uint32_t           step;
    uint64_t           seq;     /* the model's, after the batch */
    uint64_t           first;   /* and before it */
    model_outcome_t  **outcomes;
} expected_t;


typedef struct {
    const history_t  *h;
    model_t           model;
    ron_engine_t     *engine;
    ron_hash_t        root;     /* of the last durable batch */
    uint64_t          durable;
    expected_t        queue[HISTORY_QUEUE_MAX];
    uint32_t          queued;
    uint32_t          step;     /* the one that is played */
    uint64_t           corrupt; /* ron_corrupt_count() before it */
    int               line;     /* of the check that failed, 0: none did */
    char              why[512];
    uint64_t          counts[RON_REASON_N];
    uint64_t          repeats;
    uint64_t          replays;
} world_t;


void history_init(history_t *h, uint64_t seed);
void history_free(history_t *h);
void *history_alloc(history_t *h, size_t size);

/* A copy without what was dropped shares units with the original. */
void history_show(const history_t *h);

void generator_init(generator_t *g, history_t *h);
void generator_free(generator_t *g);
uint64_t generator_below(generator_t *g, uint64_t n);

/* Draws the next step, and appends it to the history. */
step_t *generator_step(generator_t *g, const model_t *m);

/*
 * Each returns false once something differed; `line` and `why` say what.
 * world_end() compares everything, reopens, compares again; world_close()
 * frees, whatever happened.
 */
bool world_open(world_t *w, const history_t *h);
bool world_step(world_t *w, const step_t *step);
bool world_end(world_t *w);
void world_close(world_t *w);

/* All of a history in a world of its own. */
bool history_play(const history_t *h, world_t *w);

/* Drops steps, units and operations for as long as it fails as it did. */
void history_shrink(history_t *h, int line);


#endif /* LIB_HISTORY_H */
