
#include "ron_ctl_hist.h"


static unsigned hist_index(uint64_t us);
static uint64_t hist_value(unsigned index);


/*
 * Below 2 * RON_HIST_STEPS a value is its own index; from there on an index is
 * the power of two and the RON_HIST_BITS bits that follow its highest one.
 */

static unsigned
hist_index(uint64_t us)
{
    unsigned  shift;

    if (us < RON_HIST_STEPS) {
        return (unsigned) us;
    }

    shift = 63 - (unsigned) __builtin_clzll(us) - RON_HIST_BITS;

    return (shift + 1) * RON_HIST_STEPS
           + (unsigned) (us >> shift) - RON_HIST_STEPS;
}


/* The largest value of an index. */

static uint64_t
hist_value(unsigned index)
{
    uint64_t  step;
    unsigned  shift;

    if (index < RON_HIST_STEPS) {
        return index;
    }

    shift = index / RON_HIST_STEPS - 1;
    step = index % RON_HIST_STEPS + RON_HIST_STEPS;

    return ((step + 1) << shift) - 1;
}


void
ron_hist_add(ron_hist_t *h, uint64_t us)
{
    h->n++;
    h->sum += us;
    h->max = ron_max(h->max, us);
    h->count[hist_index(us)]++;
}


uint64_t
ron_hist_quantile(const ron_hist_t *h, uint32_t per_100k)
{
    uint64_t    wanted, seen;
    ron_u128_t  product;

    if (h->n == 0) {
        return 0;
    }

    product = (ron_u128_t) h->n * per_100k + 99999;
    wanted = ron_max((uint64_t) (product / 100000), 1);
    seen = 0;

    for (unsigned i = 0; i < RON_HIST_N; i++) {
        seen += h->count[i];

        if (seen >= wanted) {
            return ron_min(hist_value(i), h->max);
        }
    }

    return h->max;
}
