
/* Lines to batches: where the text is cut. */

#include "ron_test.h"
#include "ron_api_ndjson.h"


static void
test_cut(void)
{
    static char  big[RON_API_NDJSON_BATCH + 100];

    is_u64(ron_api_ndjson_cut(ron_str("ab\ncd"), false), 3, "whole lines");
    is_u64(ron_api_ndjson_cut(ron_str("ab\ncd"), true), 5, "and the last");
    is_u64(ron_api_ndjson_cut(ron_str("abcd"), false), 0, "none yet");
    is_u64(ron_api_ndjson_cut(ron_str(""), true), 0, "nothing");

    memset(big, 'x', sizeof(big));
    big[10] = '\n';
    big[sizeof(big) - 1] = '\n';

    is_u64(ron_api_ndjson_cut((ron_str_t) { sizeof(big), (uint8_t *) big },
                              true),
           11, "no more than a batch");

    big[10] = 'x';

    is_u64(ron_api_ndjson_cut((ron_str_t) { sizeof(big), (uint8_t *) big },
                              false),
           sizeof(big), "but at least a line");

    memset(big, '\n', sizeof(big));

    is_u64(ron_api_ndjson_cut((ron_str_t) { RON_API_NDJSON_LINES + 1,
                                            (uint8_t *) big }, true),
           RON_API_NDJSON_LINES, "no more lines than a turn has time for");
    is_u64(ron_api_ndjson_cut((ron_str_t) { RON_API_NDJSON_LINES,
                                            (uint8_t *) big }, false),
           RON_API_NDJSON_LINES, "and not one less");
}


/* One line and its answer; white space is not counted, however much it is. */

static void
test_long(void)
{
    char               *text;
    size_t              len;
    ron_cap_t           cap;
    ron_buf_t           out;
    ron_api_ndbatch_t   b;

    static ron_api_ndjson_t  nd;            /* is for good */

    len = RON_API_NDJSON_ENTRY;
    text = malloc(2 * len);
    memset(&cap, 0, sizeof(ron_cap_t));
    memset(&b, 0, sizeof(ron_api_ndbatch_t));
    ron_api_ndjson_init(&nd);
    ron_buf_init(&b.lines, 0);
    ron_buf_init(&out, 0);

    for (unsigned more = 0; more < 2; more++) {
        memset(text, ' ', 2 * len);
        memset(text, 'x', len + more);
        ron_buf_reset(&out);
        b.first = 1;

        is_u64(ron_api_ndjson_parse(&nd, (ron_str_t) { 2 * len,
                                                       (uint8_t *) text },
                                    &cap, RON_API_RESULTS_REJECTED, &b, &out),
               RON_OK, "a long line is parsed");
        is_u64(b.bad_n, 1, "refused");
        is_u64(memmem(out.data, out.len, "more than 64 KiB", 16) != NULL,
               more, "for its length: %u", more);
    }

    ron_buf_free(&b.lines);
    ron_buf_free(&out);
    free(text);
}


static void
test_chunk(void)
{
    ron_buf_t  text;

    static uint8_t  big[64 * 1024 + 1];

    ron_buf_init(&text, 0);

    is_status(ron_api_ndjson_feed(&text, (ron_str_t) { 64 * 1024, big }),
              RON_OK, "a chunk of 64 KiB");
    is_u64(text.len, 64 * 1024, "is taken");
    is_status(ron_api_ndjson_feed(&text, (ron_str_t) { 64 * 1024 + 1, big }),
              RON_EFULL, "one byte more is refused");
    is_u64(text.len, 64 * 1024, "and nothing of it is taken");
    is_status(ron_api_ndjson_feed(&text, (ron_str_t) { 1, big }), RON_OK,
              "the next one is");
    is_u64(text.len, 64 * 1024 + 1, "behind the first");

    ron_buf_free(&text);
}


int
main(void)
{
    test_cut();
    test_chunk();
    test_long();

    return done_testing();
}
