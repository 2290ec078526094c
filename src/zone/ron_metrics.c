
/*
 * Metrics: counting and rendering.  The tables are in ron_metrics.h.
 *
 * A cell is added to with one relaxed atomic instruction: the threads of one
 * process share a block, and no order between cells is promised.  So a
 * histogram that is read while it is counted may be one observation behind
 * in its sum; its count is computed from its buckets and always agrees with
 * them.
 */

#include "ron_metrics.h"

#include <inttypes.h>

#include "ron_port.h"
#include "ron_zone_layout.h"


#define RON_METRICS_SPARSE  256
#define RON_METRIC_DIMS     4

/* Bounds of one histogram and its two cells more. */
#define RON_METRIC_SERIES_MAX  16


#define RON_DIM_VALUE_TEXT(dim, id, text)  text,
#define RON_DIM_TABLE(dim, label)                                             \
    static const char *const  ron_dim_values_##dim[] = {                      \
        RON_DIM_##dim(RON_DIM_VALUE_TEXT)                                     \
    };                                                                        \
    static const ron_dim_info_t  ron_dim_##dim = {                            \
        label, RON_D_##dim##_N, ron_dim_values_##dim                          \
    };

RON_DIMS(RON_DIM_TABLE)


#define RON_BUCKET_BOUND(list, bound)  bound,
#define RON_BUCKET_TABLE(list, us)                                            \
    static const uint64_t  ron_buckets_##list[] = {                           \
        RON_BUCKETS_##list(RON_BUCKET_BOUND) 0                                \
    };                                                                        \
    enum { RON_BUCKET_US_##list = us };

RON_BUCKET_LISTS(RON_BUCKET_TABLE)


static const ron_metric_info_t  ron_metric_table[] = {
#define RON_METRIC_ROW(id, name, type, s, a, b, c, buckets, help)             \
    { name, help, RON_METRIC_##type,                                          \
      RON_METRIC_##type == RON_METRIC_GAUGE_US || RON_BUCKET_US_##buckets,    \
      RON_AT_##id, RON_BUCKET_N_##buckets, ron_buckets_##buckets,             \
      { &ron_dim_##s, &ron_dim_##a, &ron_dim_##b, &ron_dim_##c },             \
      { RON_D_##s##_N, RON_D_##a##_N, RON_D_##b##_N, RON_D_##c##_N },         \
      RON_METRIC_##type == RON_METRIC_HISTOGRAM                               \
      ? RON_BUCKET_N_##buckets + 2 : 1 },
    RON_METRICS(RON_METRIC_ROW)
#undef RON_METRIC_ROW
};


static uint32_t ron_metric_series(const ron_metric_info_t *info);
static uint32_t ron_metric_cells(const ron_metric_info_t *info);
static ron_word_t *ron_metric_cell(const ron_zone_t *zone, uint32_t slot,
    const ron_metric_info_t *info, const uint32_t *at);
static void ron_metric_sum(const ron_zone_t *zone, uint32_t cell, uint32_t n,
    uint64_t *sums);
static void ron_metric_render(const ron_zone_t *zone,
    const ron_metric_info_t *info, ron_buf_t *out);
static void ron_metric_put_labels(const ron_metric_info_t *info,
    const uint32_t *at, ron_buf_t *out);
static void ron_metric_put_histogram(const ron_metric_info_t *info,
    const uint32_t *at, const uint64_t *sums, ron_buf_t *out);
static uint64_t ron_metric_age_us(const ron_zone_t *zone);
static void ron_metric_put_value(const ron_metric_info_t *info, uint64_t value,
    ron_buf_t *out);
static const char *ron_route_service(uint32_t route);


const ron_metric_info_t *
ron_metric_info(ron_metric_t metric)
{
    RON_ASSERT((unsigned) metric < RON_METRIC_N);

    return &ron_metric_table[metric];
}


uint64_t
ron_metrics_signature(void)
{
    size_t                    i, d;
    uint32_t                  v;
    uint64_t                  h;
    const char               *p;
    const ron_metric_info_t  *info;

    h = UINT64_C(0xcbf29ce484222325);

    for (i = 0; i < RON_METRIC_N; i++) {
        info = &ron_metric_table[i];
        h = (h ^ info->at ^ info->bucket_n) * UINT64_C(0x100000001b3);

        for (p = info->name; *p; p++) {
            h = (h ^ (uint8_t) *p) * UINT64_C(0x100000001b3);
        }

        for (d = 0; d < RON_METRIC_DIMS; d++) {
            for (v = 0; v < info->dim[d]->n; v++) {
                for (p = info->dim[d]->values[v]; *p; p++) {
                    h = (h ^ (uint8_t) *p) * UINT64_C(0x100000001b3);
                }
            }
        }
    }

    return h;
}


static uint32_t
ron_metric_series(const ron_metric_info_t *info)
{
    return info->dim[0]->n * info->dim[1]->n * info->dim[2]->n
           * info->dim[3]->n;
}


static uint32_t
ron_metric_cells(const ron_metric_info_t *info)
{
    return info->cells;
}


static ron_word_t *
ron_metric_cell(const ron_zone_t *zone, uint32_t slot,
    const ron_metric_info_t *info, const uint32_t *at)
{
    uint32_t         cell;
    const uint32_t  *n;

    n = info->dim_n;

    RON_ASSERT(slot < RON_ZONE_SLOTS && at[0] < n[0] && at[1] < n[1]
               && at[2] < n[2] && at[3] < n[3]);

    cell = ((at[0] * n[1] + at[1]) * n[2] + at[2]) * n[3] + at[3];
    cell = info->at + cell * info->cells;

    return ron_zone_words(zone, zone->metrics)
           + (size_t) slot * RON_ZONE_BLOCK + cell;
}


void
ron_metric_add(const ron_zone_t *zone, uint32_t slot, ron_metric_t metric,
    uint32_t s, uint32_t a, uint32_t b, uint32_t c, uint64_t n)
{
    ron_word_t      *cell;
    const uint32_t   at[RON_METRIC_DIMS] = { s, a, b, c };

    if (slot != RON_ZONE_SLOT_NONE) {
        cell = ron_metric_cell(zone, slot, ron_metric_info(metric), at);
        atomic_fetch_add_explicit(cell, n, memory_order_relaxed);
    }
}


void
ron_metric_sub(const ron_zone_t *zone, uint32_t slot, ron_metric_t metric,
    uint32_t s, uint32_t a, uint32_t b, uint32_t c, uint64_t n)
{
    ron_metric_add(zone, slot, metric, s, a, b, c, 0 - n);
}


void
ron_metric_set(const ron_zone_t *zone, uint32_t slot, ron_metric_t metric,
    uint32_t s, uint32_t a, uint32_t b, uint32_t c, uint64_t value)
{
    ron_word_t      *cell;
    const uint32_t   at[RON_METRIC_DIMS] = { s, a, b, c };

    if (slot != RON_ZONE_SLOT_NONE) {
        cell = ron_metric_cell(zone, slot, ron_metric_info(metric), at);
        atomic_store_explicit(cell, value, memory_order_relaxed);
    }
}


void
ron_metric_observe(const ron_zone_t *zone, uint32_t slot, ron_metric_t metric,
    uint32_t s, uint32_t a, uint32_t b, uint32_t c, uint64_t value)
{
    uint32_t                  i;
    ron_word_t               *cell;
    const uint32_t            at[RON_METRIC_DIMS] = { s, a, b, c };
    const ron_metric_info_t  *info;

    info = ron_metric_info(metric);
    RON_ASSERT(info->type == RON_METRIC_HISTOGRAM);

    if (slot == RON_ZONE_SLOT_NONE) {
        return;
    }

    cell = ron_metric_cell(zone, slot, info, at);

    for (i = 0; i < info->bucket_n && value > info->buckets[i]; i++) {
        /* void */
    }

    atomic_fetch_add_explicit(cell + i, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(cell + info->bucket_n + 1, value,
                              memory_order_relaxed);
}


static void
ron_metric_sum(const ron_zone_t *zone, uint32_t cell, uint32_t n,
    uint64_t *sums)
{
    uint32_t     i, slot, slots;
    ron_word_t  *block;

    memset(sums, 0, n * sizeof(uint64_t));
    slots = ron_zone_slots_used(zone);

    for (slot = 0; slot < slots; slot++) {
        block = ron_zone_words(zone, zone->metrics)
                + (size_t) slot * RON_ZONE_BLOCK + cell;

        for (i = 0; i < n; i++) {
            sums[i] += atomic_load_explicit(block + i, memory_order_relaxed);
        }
    }
}


uint64_t
ron_metric_read(const ron_zone_t *zone, ron_metric_t metric, uint32_t s,
    uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t                  i, cells;
    uint64_t                  total, sums[RON_METRIC_SERIES_MAX];
    ron_word_t               *cell, *block;
    const uint32_t            at[RON_METRIC_DIMS] = { s, a, b, c };
    const ron_metric_info_t  *info;

    info = ron_metric_info(metric);
    cells = ron_metric_cells(info);
    RON_ASSERT(cells <= RON_METRIC_SERIES_MAX);

    block = ron_zone_words(zone, zone->metrics);
    cell = ron_metric_cell(zone, 0, info, at);
    ron_metric_sum(zone, (uint32_t) (cell - block), cells, sums);

    if (info->type != RON_METRIC_HISTOGRAM) {
        return sums[0];
    }

    total = 0;

    for (i = 0; i <= info->bucket_n; i++) {
        total += sums[i];
    }

    return total;
}


void
ron_metrics_retire(const ron_zone_t *zone, uint32_t slot)
{
    uint32_t                  i, m, n;
    ron_word_t               *cell;
    const ron_metric_info_t  *info;

    for (m = 0; m < RON_METRIC_N; m++) {
        info = &ron_metric_table[m];

        if (info->type != RON_METRIC_GAUGE
            && info->type != RON_METRIC_GAUGE_US)
        {
            continue;
        }

        n = ron_metric_series(info);
        cell = ron_zone_words(zone, zone->metrics)
               + (size_t) slot * RON_ZONE_BLOCK + info->at;

        for (i = 0; i < n; i++) {
            atomic_store_explicit(cell + i, 0, memory_order_relaxed);
        }
    }
}


ron_status_t
ron_metrics_render(const ron_zone_t *zone, ron_buf_t *out)
{
    uint32_t                  i;
    const ron_metric_info_t  *info, *prev;

    static const char *const  types[] = {
        "counter", "gauge", "gauge", "histogram"
    };

    prev = NULL;

    for (i = 0; i < RON_METRIC_N; i++) {
        info = &ron_metric_table[i];

        if (prev == NULL || strcmp(prev->name, info->name) != 0) {
            ron_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", info->name,
                           info->help, info->name, types[info->type]);
        }

        ron_metric_render(zone, info, out);
        prev = info;
    }

    return ron_buf_status(out);
}


static void
ron_metric_render(const ron_zone_t *zone, const ron_metric_info_t *info,
    ron_buf_t *out)
{
    bool      any, sparse;
    uint32_t  i, d, n, rest, cells, at[RON_METRIC_DIMS];
    uint64_t  sums[RON_METRIC_SERIES_MAX];

    n = ron_metric_series(info);
    cells = ron_metric_cells(info);
    sparse = n * cells > RON_METRICS_SPARSE;
    RON_ASSERT(cells <= RON_METRIC_SERIES_MAX);

    for (i = 0; i < n; i++) {
        ron_metric_sum(zone, info->at + i * cells, cells, sums);

        if (info == &ron_metric_table[RON_M_METRICS_SAMPLE_AGE]) {
            sums[0] = ron_metric_age_us(zone);
        }

        any = false;
        for (d = 0; d < cells; d++) {
            any |= sums[d] != 0;
        }

        if (sparse && !any) {
            continue;
        }

        rest = i;
        for (d = RON_METRIC_DIMS; d-- > 0; ) {
            at[d] = rest % info->dim[d]->n;
            rest /= info->dim[d]->n;
        }

        if (info->type == RON_METRIC_HISTOGRAM) {
            ron_metric_put_histogram(info, at, sums, out);
            continue;
        }

        ron_buf_put_cstr(out, info->name);
        ron_metric_put_labels(info, at, out);
        ron_buf_put_cstr(out, "} ");
        ron_metric_put_value(info, sums[0], out);
        ron_buf_put_cstr(out, "\n");
    }
}


/* Nobody can say how old its own words are: whoever reads them does. */

static uint64_t
ron_metric_age_us(const ron_zone_t *zone)
{
    uint64_t    now_us;
    ron_beat_t  beat;

    now_us = ron_clock_mono_us();

    if (ron_zone_beat_read(zone, &beat) != RON_OK || beat.sample_us == 0
        || beat.sample_us > now_us)
    {
        return 0;
    }

    return now_us - beat.sample_us;
}


/* The labels without the closing brace: a histogram has one more. */

static void
ron_metric_put_labels(const ron_metric_info_t *info, const uint32_t *at,
    ron_buf_t *out)
{
    uint32_t     d;
    const char  *value;

    for (d = 0; d < RON_METRIC_DIMS; d++) {
        if (info->dim[d]->label[0] == '\0') {
            continue;
        }

        value = info->dim[d]->values[at[d]];

        if (info->dim[d] == &ron_dim_BY_ROUTE) {
            value = ron_route_service(at[1]);
        }

        ron_buf_printf(out, "%s%s=\"%s\"", d == 0 ? "{" : ",",
                       info->dim[d]->label, value);
    }
}


static const char *
ron_route_service(uint32_t route)
{
    if (route <= RON_D_ROUTE_LEDGER_OTHER) {
        return "ledger";
    }

    if (route <= RON_D_ROUTE_WALLET_OTHER) {
        return "wallet";
    }

    if (route <= RON_D_ROUTE_REWARDER_OTHER) {
        return "rewarder";
    }

    return route <= RON_D_ROUTE_INTEROP_OTHER ? "interop" : "edge";
}


static void
ron_metric_put_histogram(const ron_metric_info_t *info, const uint32_t *at,
    const uint64_t *sums, ron_buf_t *out)
{
    uint32_t  i;
    uint64_t  count;

    count = 0;

    for (i = 0; i <= info->bucket_n; i++) {
        count += sums[i];

        ron_buf_printf(out, "%s_bucket", info->name);
        ron_metric_put_labels(info, at, out);
        ron_buf_put_cstr(out, ",le=\"");

        if (i < info->bucket_n) {
            ron_metric_put_value(info, info->buckets[i], out);

        } else {
            ron_buf_put_cstr(out, "+Inf");
        }

        ron_buf_printf(out, "\"} %" PRIu64 "\n", count);
    }

    ron_buf_printf(out, "%s_sum", info->name);
    ron_metric_put_labels(info, at, out);
    ron_buf_put_cstr(out, "} ");
    ron_metric_put_value(info, sums[info->bucket_n + 1], out);

    ron_buf_printf(out, "\n%s_count", info->name);
    ron_metric_put_labels(info, at, out);
    ron_buf_printf(out, "} %" PRIu64 "\n", count);
}


/* Microseconds as seconds, without trailing zeros. */

static void
ron_metric_put_value(const ron_metric_info_t *info, uint64_t value,
    ron_buf_t *out)
{
    int       digits;
    uint64_t  fraction;

    if (!info->seconds) {
        ron_buf_printf(out, "%" PRIu64, value);
        return;
    }

    fraction = value % 1000000;
    ron_buf_printf(out, "%" PRIu64, value / 1000000);

    if (fraction == 0) {
        return;
    }

    for (digits = 6; fraction % 10 == 0; digits--) {
        fraction /= 10;
    }

    ron_buf_printf(out, ".%0*" PRIu64, digits, fraction);
}
