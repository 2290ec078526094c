
/*
 * A histogram of latencies in microseconds with a bounded relative error:
 * 128 steps for every power of two, so a quantile is at most 0.8 % above what
 * it stands for.  Its size does not depend on what is put in.
 */

#ifndef RON_CTL_HIST_H
#define RON_CTL_HIST_H


#include "ron.h"


#define RON_HIST_BITS   7
#define RON_HIST_STEPS  (1 << RON_HIST_BITS)
#define RON_HIST_N      ((64 - RON_HIST_BITS + 1) * RON_HIST_STEPS)


typedef struct {
    uint64_t  n;
    uint64_t  sum;
    uint64_t  max;
    uint32_t  count[RON_HIST_N];
} ron_hist_t;


void ron_hist_add(ron_hist_t *h, uint64_t us);

/*
 * The smallest step that `per_100k` of 100 000 values do not pass: 50 000 is
 * the median, 99 900 the 99.9th percentile.  0 for an empty one.
 */
uint64_t ron_hist_quantile(const ron_hist_t *h, uint32_t per_100k);


#endif /* RON_CTL_HIST_H */
