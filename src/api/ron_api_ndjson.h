
/*
 * POST /ledger/ingest as application/x-ndjson: lines to units, outcomes to
 * lines.
 *
 *     {"line":7,"reason":"malformed","detail":"..."}     refused
 *     {"line":8,"seq":41}                                only with "all"
 *     {"batch":1,"first_line":1,"last_line":9,"accepted":8,"rejected":1,
 *      "seq_start":..,"seq_end":..,"root":"..."}
 *
 * Lines are counted from 1; empty ones are skipped.  A bad line is answered
 * by itself, whatever is around it.  Which lines meet in one batch is the
 * server's choice, so the legs of a posting, which must, are refused here.
 */

#ifndef RON_API_NDJSON_H
#define RON_API_NDJSON_H


#include "ron_api.h"


#define RON_API_NDJSON_LINE   (1024 * 1024)
#define RON_API_NDJSON_BATCH  (128 * 1024)
#define RON_API_NDJSON_LINES  2048      /* of a batch, however short */
#define RON_API_NDJSON_ENTRY  (64 * 1024)   /* of a line, less white space */


typedef enum {
    RON_API_RESULTS_REJECTED = 0,
    RON_API_RESULTS_ALL,
    RON_API_RESULTS_SUMMARY
} ron_api_results_t;


/* One batch from its parse to its answer. */
typedef struct {
    uint64_t   number;
    uint64_t   first;                   /* line */
    uint64_t   last;
    uint32_t   op_n;
    uint32_t   bad_n;
    ron_buf_t  lines;                   /* u32 an operation: line - first */
} ron_api_ndbatch_t;


/* The workspace of a thread, for good; the unit lives until the next parse. */
typedef struct {
    ron_api_t     api;
    ron_unit_t    unit;
    ron_entry_t  *ops;
    uint8_t      *arena;
    size_t        arena_cap;
    size_t        arena_len;
    ron_buf_t     cap;

    const ron_api_policy_t  *policy;    /* the caller's; NULL: none */
} ron_api_ndjson_t;

void ron_api_ndjson_init(ron_api_ndjson_t *nd);

/* "", "rejected", "all", "summary". */
ron_status_t ron_api_ndjson_results(ron_str_t s, ron_api_results_t *results);

/*
 * Appends a chunk of what came to the text that waits.  RON_EFULL when it is
 * longer than RON_FRAME_CHUNK: nothing of it is taken.  RON_ENOMEM.
 */
ron_status_t ron_api_ndjson_feed(ron_buf_t *text, ron_str_t chunk);

/*
 * How much of `text` goes into the next batch: whole lines, as many as
 * RON_API_NDJSON_BATCH bytes hold, RON_API_NDJSON_LINES at most, and at least
 * one; with `end`, the last line needs no newline.  0: there is no whole line.
 */
size_t ron_api_ndjson_cut(ron_str_t text, bool end);

/*
 * Parses what cut() gave, beginning at line b->first.  Fills in the rest of
 * *b but its number; puts a line for each bad one into `out`.  RON_ENOMEM.
 */
ron_status_t ron_api_ndjson_parse(ron_api_ndjson_t *nd, ron_str_t text,
    const ron_cap_t *cap, ron_api_results_t results, ron_api_ndbatch_t *b,
    ron_buf_t *out);

/*
 * The lines of a batch.  A null outcome stands for one of bad lines only.
 * RON_ECORRUPT: the outcome is not that of this batch.
 */
ron_status_t ron_api_ndjson_answer(ron_buf_t *out,
    const ron_api_ndbatch_t *b, ron_api_results_t results,
    const ron_msg_batch_t *batch, const ron_outcome_t *outcome);


#endif /* RON_API_NDJSON_H */
