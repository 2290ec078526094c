
/*
 * What ronctl top knows of a server at one moment.
 */

#ifndef RON_CTL_TOP_H
#define RON_CTL_TOP_H


#include "ron.h"


#define RON_TOP_BUCKETS  32
#define RON_TOP_ROWS     64
#define RON_TOP_NAME     48
#define RON_TOP_NONE     UINT64_MAX     /* no such figure; "+Inf" */


typedef enum {
    RON_TOP_SEQ = 0,
    RON_TOP_PAYMENTS,
    RON_TOP_COMMITS,
    RON_TOP_ENTRIES,
    RON_TOP_LAG,
    RON_TOP_HISTORY,
    RON_TOP_BACKLOG,
    RON_TOP_AGE,
    RON_TOP_VALUES
} ron_top_value_t;


typedef enum {
    RON_TOP_COMMIT = 0,
    RON_TOP_WALLET,
    RON_TOP_HISTS
} ron_top_hist_id_t;


typedef enum {
    RON_TOP_QUEUES = 0,
    RON_TOP_REFUSED,
    RON_TOP_RESTARTS,
    RON_TOP_TABLES
} ron_top_table_id_t;


typedef struct {
    uint64_t  le_us;
    uint64_t  n;                /* that are not above it */
} ron_top_bucket_t;


typedef struct {
    ron_top_bucket_t  at[RON_TOP_BUCKETS];
    unsigned          n;
} ron_top_hist_t;


typedef struct {
    char      service[RON_TOP_NAME];
    char      name[RON_TOP_NAME];
    uint64_t  value;
    uint64_t  capacity;
} ron_top_row_t;


typedef struct {
    ron_top_row_t  row[RON_TOP_ROWS];
    unsigned       n;
} ron_top_table_t;


typedef struct {
    uint64_t         at_us;
    char             state[RON_TOP_NAME];
    bool             ready;
    bool             metrics;   /* it has been there */
    uint64_t         value[RON_TOP_VALUES];     /* in millionths */
    ron_top_hist_t   hist[RON_TOP_HISTS];
    ron_top_table_t  table[RON_TOP_TABLES];
} ron_top_sample_t;


/* What GET /readyz said, and GET /metrics. */
void ron_top_readyz(ron_top_sample_t *s, ron_str_t body);
void ron_top_metrics(ron_top_sample_t *s, ron_str_t body);

/* The row of the same service and name, or NULL. */
const ron_top_row_t *ron_top_find(const ron_top_table_t *table,
    const ron_top_row_t *like);

/* How many were not above a bound. */
uint64_t ron_top_bucket(const ron_top_hist_t *h, uint64_t le_us);


#endif /* RON_CTL_TOP_H */
