
/*
 * Traces: what a request was doing, and when, as spans for a collector.
 *
 * A worker fills one record for a request that is sampled; the process that
 * has the ledger keeps the times of its newest batches.  A record names the
 * seq that its request got, so that the two are put together only when spans
 * are made, and nothing of a trace is in a frame or in the journal.
 *
 *     ingress.handle  or  wallet.<operation>            the worker
 *       +- prevalidator.check                           the worker
 *       +- wallet.ledger.commit (wallet only)           the worker, waiting
 *       +- sequencer.assign                             the sequencer
 *       +- commit.append_wal                            the committer
 *       +- publish.root                                 the sequencer
 *
 * All times are monotonic microseconds, the same in all processes of a
 * machine; they become wall time when they are written.  No account, amount,
 * token or key is in a record.
 */

#ifndef RON_TRACE_H
#define RON_TRACE_H


#include "ron.h"
#include "ron_buf.h"


#define RON_TRACE_ID_LEN      16
#define RON_SPAN_ID_LEN       8
#define RON_TRACEPARENT_LEN   55
#define RON_TRACE_TEXT        129
#define RON_TRACE_BATCHES     2048

/* Shares are in parts of this. */
#define RON_TRACE_ALL         10000


typedef struct {
    uint8_t   trace[RON_TRACE_ID_LEN];
    uint8_t   span[RON_SPAN_ID_LEN];
    uint8_t   parent[RON_SPAN_ID_LEN];
    bool      has_parent;
    bool      wallet;

    uint64_t  begin_us;
    uint64_t  end_us;
    uint64_t  checked_us;               /* the checks ended; 0: none were */
    uint64_t  checks_us;                /* they took */
    uint64_t  sent_us;                  /* to the sequencer; 0: never */
    uint64_t  answered_us;
    uint64_t  seq;                      /* the first of its entries; 0: none */
    uint32_t  status;

    char      operation[16];            /* of the wallet */
    char      method[8];
    char      route[48];
    char      queue[8];                 /* where it was admitted */
    char      reason[32];
    char      corr_id[RON_TRACE_TEXT];
    char      entry_id[RON_TRACE_TEXT];
    char      kid[65];
    char      cap_id[RON_TRACE_TEXT];
} ron_trace_request_t;


/* One batch that became durable. */
typedef struct {
    uint64_t  seq;
    uint64_t  count;
    uint64_t  decide_us;
    uint64_t  decided_us;
    uint64_t  append_us;
    uint64_t  durable_us;
    uint64_t  published_us;
} ron_trace_batch_t;

/* The newest of them.  Not locked; the owner says who may touch it when. */
typedef struct {
    ron_trace_batch_t  batch[RON_TRACE_BATCHES];
    uint64_t           n;               /* ever */
} ron_trace_batches_t;

void ron_trace_batches_put(ron_trace_batches_t *ring,
    const ron_trace_batch_t *batch);

/* The batch that holds `seq`, or NULL: too old, or not one of ours. */
const ron_trace_batch_t *ron_trace_batches_find(
    const ron_trace_batches_t *ring, uint64_t seq);


/*
 * The header of W3C Trace Context.  RON_EINVAL: not one, begin a new trace.
 * put writes RON_TRACEPARENT_LEN characters.
 */
ron_status_t ron_traceparent_parse(ron_str_t text, uint8_t *trace,
    uint8_t *span);
void ron_traceparent_put(const uint8_t *trace, const uint8_t *span,
    bool sampled, char *text);

/*
 * Is this trace one of `share` parts of RON_TRACE_ALL?  Decided by its id, so
 * that all who ask with the same share agree.
 */
bool ron_trace_sampled(const uint8_t *trace, uint32_t share);


typedef struct {
    ron_str_t  version;
    ron_str_t  instance;
    int64_t    wall_us;                 /* what makes wall time of monotonic */
} ron_trace_conf_t;

/*
 * Spans of `n` requests as the JSON of OTLP's ExportTraceServiceRequest; *spans
 * says how many.  `batches` may be NULL.
 */
ron_status_t ron_trace_json(ron_buf_t *out, const ron_trace_conf_t *conf,
    const ron_trace_request_t *requests, uint32_t n,
    const ron_trace_batches_t *batches, uint32_t *spans);


#endif /* RON_TRACE_H */
