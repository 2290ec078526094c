
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
}


int
main(void)
{
    test_cut();

    return done_testing();
}
