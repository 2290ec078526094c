
/*
 * Trace context, sampling, batches by seq, spans as JSON.
 */

#include "ron_test.h"
#include "ron_trace.h"


static void test_traceparent(void);
static void test_sampling(void);
static void test_batches(void);
static void test_json(void);


static void
test_traceparent(void)
{
    char      text[RON_TRACEPARENT_LEN];
    size_t    i;
    uint8_t   trace[RON_TRACE_ID_LEN], span[RON_SPAN_ID_LEN];

    static const char  good[] =
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    static const struct {
        const char    *text;
        ron_status_t   status;
    } cases[] = {
        { good, RON_OK },
        { "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
          RON_OK },
        { "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
          RON_OK },
        { "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
          RON_OK },
        { "", RON_EINVAL },
        { "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
          RON_EINVAL },
        { "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
          RON_EINVAL },
        { "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
          RON_EINVAL },
        { "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
          RON_EINVAL },
        { "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
          RON_EINVAL },
        { "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
          RON_EINVAL },
        { "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
          RON_EINVAL },
        { "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
          RON_EINVAL },
        { "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
          RON_EINVAL },
        { "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
          RON_EINVAL }
    };

    for (i = 0; i < ron_array_n(cases); i++) {
        is_status(ron_traceparent_parse(ron_cstr(cases[i].text), trace, span),
                  cases[i].status, "traceparent \"%s\"", cases[i].text);
    }

    (void) ron_traceparent_parse(ron_cstr(good), trace, span);
    ok(trace[0] == 0x4b && trace[15] == 0x36 && span[1] == 0xf0
       && span[7] == 0xb7, "its ids");

    ron_traceparent_put(trace, span, true, text);
    ok(memcmp(text, good, RON_TRACEPARENT_LEN) == 0, "written as it was read");

    ron_traceparent_put(trace, span, false, text);
    ok(text[54] == '0', "not sampled");
}


static void
test_sampling(void)
{
    uint8_t   trace[RON_TRACE_ID_LEN];
    uint32_t  i, n;

    memset(trace, 0xff, sizeof(trace));
    ok(ron_trace_sampled(trace, RON_TRACE_ALL), "all are all");
    ok(!ron_trace_sampled(trace, RON_TRACE_ALL - 1), "nearly all are not");

    memset(trace, 0, sizeof(trace));
    ok(ron_trace_sampled(trace, 1), "the first of a small share");
    ok(!ron_trace_sampled(trace, 0), "none are none");

    n = 0;

    for (i = 0; i < 65536; i++) {
        trace[11] = (uint8_t) (i >> 8);
        trace[12] = (uint8_t) i;
        n += ron_trace_sampled(trace, 100);
    }

    ok(n == 656, "one in a hundred: %u of 65536", n);
}


static void
test_batches(void)
{
    uint64_t                     seq, n;
    ron_trace_batch_t            b;
    const ron_trace_batch_t     *found;
    static ron_trace_batches_t   ring;

    ok(ron_trace_batches_find(&ring, 1) == NULL, "nothing in an empty ring");

    memset(&b, 0, sizeof(b));
    b.seq = 1;

    for (n = 0; n < RON_TRACE_BATCHES + 100; n++) {
        b.count = 1 + n % 3;
        b.decide_us = n;
        ron_trace_batches_put(&ring, &b);
        b.seq += b.count + (n == 2000);     /* an entry of somebody else */
    }

    found = ron_trace_batches_find(&ring, 1);
    ok(found == NULL, "the oldest made room");

    n = 0;

    for (seq = 0; seq < b.seq + 10; seq++) {
        found = ron_trace_batches_find(&ring, seq);

        if (found != NULL) {
            n++;

            if (seq < found->seq || seq >= found->seq + found->count) {
                break;
            }
        }
    }

    ok(seq == b.seq + 10, "a seq is found in its batch or not at all");
    ok(n == b.seq - 1 - 1 - 199, "and all that are there: %llu",
       (unsigned long long) n);
}


static void
test_json(void)
{
    uint32_t             spans;
    ron_buf_t            out;
    ron_trace_conf_t     conf;
    ron_trace_request_t  q;

    memset(&q, 0, sizeof(q));
    memset(q.trace, 0xab, sizeof(q.trace));
    memset(q.span, 0xcd, sizeof(q.span));
    q.begin_us = 1000;
    q.end_us = 900;
    q.status = 503;
    (void) snprintf(q.corr_id, sizeof(q.corr_id), "a\"\\b");

    conf = (ron_trace_conf_t) { ron_str("1"), ron_str("h:1"), 5000000 };

    ron_buf_init(&out, 0);
    is_status(ron_trace_json(&out, &conf, &q, 1, NULL, &spans), RON_OK,
              "a span");
    ron_buf_put_u8(&out, 0);

    ok(spans == 1, "one");
    ok(strstr((char *) out.data, "\"traceId\":\"abababababababababababababababab"
              "\",\"spanId\":\"cdcdcdcdcdcdcdcd\",\"name\":"
              "\"svc.ron-ledger.ingress.handle\",\"kind\":2,"
              "\"startTimeUnixNano\":\"5001000000\","
              "\"endTimeUnixNano\":\"5001000000\"") != NULL,
       "ids, and no end before its beginning");
    ok(strstr((char *) out.data, "\"a\\\"\\\\b\"") != NULL, "escaped");
    ok(strstr((char *) out.data, "\"status\":{\"code\":2}") != NULL,
       "a 5xx is an error");

    ron_buf_free(&out);
}


int
main(void)
{
    test_traceparent();
    test_sampling();
    test_batches();
    test_json();

    return done_testing();
}
