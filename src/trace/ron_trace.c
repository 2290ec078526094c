
/*
 * Trace context, sampling, and the times of the newest batches.
 */

#include "ron_trace.h"

#include "ron_codec.h"


#define RON_TRACE_SHARE_BITS  40


static bool ron_trace_hex(const uint8_t *text, size_t len, uint8_t *bytes);


/* Lower case only, and not all zeros. */

static bool
ron_trace_hex(const uint8_t *text, size_t len, uint8_t *bytes)
{
    uint8_t  c, any;
    size_t   i;

    any = 0;

    for (i = 0; i < 2 * len; i++) {
        c = text[i];

        if (c >= '0' && c <= '9') {
            c = (uint8_t) (c - '0');

        } else if (c >= 'a' && c <= 'f') {
            c = (uint8_t) (c - 'a' + 10);

        } else {
            return false;
        }

        bytes[i / 2] = (uint8_t) (i % 2 ? bytes[i / 2] | c : c << 4);
        any |= c;
    }

    return any != 0;
}


/* "00-<32>-<16>-<2>"; a later version may have more behind that. */

ron_status_t
ron_traceparent_parse(ron_str_t text, uint8_t *trace, uint8_t *span)
{
    uint8_t  version[1], flags[1];
    bool     zero;

    if (text.len < RON_TRACEPARENT_LEN || text.data[2] != '-'
        || text.data[35] != '-' || text.data[52] != '-'
        || !ron_trace_hex(text.data + 3, RON_TRACE_ID_LEN, trace)
        || !ron_trace_hex(text.data + 36, RON_SPAN_ID_LEN, span))
    {
        return RON_EINVAL;
    }

    zero = text.data[0] == '0' && text.data[1] == '0';

    if (!zero && !ron_trace_hex(text.data, 1, version)) {
        return RON_EINVAL;
    }

    if (!ron_trace_hex(text.data + 53, 1, flags)
        && !(text.data[53] == '0' && text.data[54] == '0'))
    {
        return RON_EINVAL;
    }

    if (zero) {
        return text.len == RON_TRACEPARENT_LEN ? RON_OK : RON_EINVAL;
    }

    return version[0] != 0xff && (text.len == RON_TRACEPARENT_LEN
                                  || text.data[RON_TRACEPARENT_LEN] == '-')
           ? RON_OK : RON_EINVAL;
}


void
ron_traceparent_put(const uint8_t *trace, const uint8_t *span, bool sampled,
    char *text)
{
    memcpy(text, "00-", 3);
    (void) ron_hex_encode((ron_str_t) { RON_TRACE_ID_LEN, trace }, text + 3);
    text[35] = '-';
    (void) ron_hex_encode((ron_str_t) { RON_SPAN_ID_LEN, span }, text + 36);
    memcpy(text + 52, sampled ? "-01" : "-00", 3);
}


bool
ron_trace_sampled(const uint8_t *trace, uint32_t share)
{
    uint32_t  i;
    uint64_t  v;

    v = 0;

    for (i = RON_TRACE_ID_LEN - RON_TRACE_SHARE_BITS / 8;
         i < RON_TRACE_ID_LEN;
         i++)
    {
        v = v << 8 | trace[i];
    }

    return v * RON_TRACE_ALL < (uint64_t) share << RON_TRACE_SHARE_BITS;
}


void
ron_trace_batches_put(ron_trace_batches_t *ring,
    const ron_trace_batch_t *batch)
{
    ring->batch[ring->n++ % RON_TRACE_BATCHES] = *batch;
}


/* Their seqs rise, so halves are enough. */

const ron_trace_batch_t *
ron_trace_batches_find(const ron_trace_batches_t *ring, uint64_t seq)
{
    uint64_t                  low, high, mid;
    const ron_trace_batch_t  *b;

    high = ring->n;
    low = high - ron_min(high, (uint64_t) RON_TRACE_BATCHES);

    while (low < high) {
        mid = low + (high - low) / 2;
        b = &ring->batch[mid % RON_TRACE_BATCHES];

        if (seq < b->seq) {
            high = mid;

        } else if (seq - b->seq >= b->count) {
            low = mid + 1;

        } else {
            return b;
        }
    }

    return NULL;
}
