
/*
 * One workload, and how to tell what became of it.
 *
 * Step i of the workload is a list of units that depends on i alone; decided
 * as one batch at its own ledger time it is row i of the journal.  The golden
 * run is the same in memory and undisturbed.  After any crash, then,
 *
 *     the journal is the first n rows of the golden one, byte for byte (but
 *     for epoch, checkpoint and chain);
 *     n is at least the number of steps that were acknowledged;
 *     all steps sent again under their keys and ids add what is missing, and
 *     nothing else: the end is the golden end.
 */

#ifndef LIB_CRASH_H
#define LIB_CRASH_H


#include "ron_engine.h"


#define CRASH_FLIGHT     8
#define CRASH_UNITS      6
#define CRASH_OPS        64


typedef struct {
    ron_unit_t    units[CRASH_UNITS];
    ron_unit_t   *list[CRASH_UNITS];
    uint32_t      unit_n;
    ron_entry_t   ops[CRASH_OPS];
    uint32_t      op_n;
    char          text[4 * CRASH_OPS][24];
    uint32_t      text_n;
} crash_units_t;


typedef struct {
    uint64_t    seq;
    uint64_t    count;
    uint64_t    time_ms;
    ron_hash_t  root;
    ron_hash_t  answers;            /* of reason and seq of all results */
    ron_hash_t  state;              /* of all balances afterwards */
    uint64_t    holds;
    size_t      body;               /* offsets into bytes */
    size_t      body_len;
    size_t      notes;
    size_t      notes_len;
} crash_row_t;


typedef struct {
    ron_engine_t         *en;
    ron_engine_conf_t     conf;
    char                  dir[128];
    char                  url[160];
    ron_buf_t             why;      /* of the last open */
    uint32_t              step;     /* the next to decide */
    uint32_t              acked;    /* steps [0, acked) are */
    uint32_t              flight;   /* decided, not reaped */
    crash_units_t        *units;    /* [CRASH_FLIGHT] */
    bool                  threaded;
    bool                  diverged; /* storage failed while deciding */
    ron_status_t          failed;   /* status of the first failed batch */
    char                  wrong[512];   /* a promise that was broken */
    void                (*ack)(void *ctx, uint32_t acked);
    void                 *ack_ctx;
} crash_t;


/* What is seen of a journal by walking all of it. */
typedef struct {
    uint32_t    rows;
    uint64_t    seq;                /* the last */
    uint64_t    epoch;
    ron_hash_t  chain;
    ron_hash_t  root;
    char        wrong[512];
} crash_walk_t;


/* A new directory; the configuration has small bounds everywhere. */
void crash_init(crash_t *c, bool faulty);
void crash_free(crash_t *c);                    /* removes the directory */
void crash_empty(crash_t *c);                   /* an empty directory again */

ron_status_t crash_open(crash_t *c);            /* open and acquire */
ron_status_t crash_start(crash_t *c);           /* the committer's thread */
void crash_close(crash_t *c);

/*
 * Plays steps [from, to).  True when all of them were acknowledged; else
 * `failed` says why not, or `wrong` which promise was broken.
 */
bool crash_play(crash_t *c, uint32_t from, uint32_t to);

/* Makes the golden run at least `steps` long. */
void crash_golden(uint32_t steps);
const crash_row_t *crash_golden_row(uint32_t step);

/*
 * Walks the journal from row `from` on, whose state before is in *walk (zeros
 * for the first row).  False: walk->wrong says what is wrong.
 */
bool crash_walk(ron_store_t *store, crash_walk_t *walk);

/* Walks, and compares rows, balances and holds with the golden run's. */
bool crash_same(crash_t *c, uint32_t steps, char *wrong, size_t len);

/* Every asset: minted - burned = available + held. */
bool crash_conserved(crash_t *c);


#endif /* LIB_CRASH_H */
