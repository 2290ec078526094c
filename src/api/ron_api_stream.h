
/*
 * What a stream says, as server-sent events: bodies only, no server.
 *
 *     id: 42
 *     data: {"seq":42,"root":"<64 hex>","ts":1700000000042}
 *
 * A root's id is the seq of the last entry under it, so a client that comes
 * back with Last-Event-ID says with it what it has.
 */

#ifndef RON_API_STREAM_H
#define RON_API_STREAM_H


#include "ron_buf.h"
#include "ron_store.h"


/* No event of a root is longer. */
#define RON_API_SSE_ROOT_MAX  256


/* `event` names the event; NULL: a plain one. */
void ron_api_sse_root(ron_buf_t *out, const char *event, uint64_t seq,
    uint64_t time_ms, const ron_hash_t *root);

/*
 * Subscribers learn what they did not get: `lost` events were overwritten
 * before they were read, and the last seq that was sent is `seq`.
 */
void ron_api_sse_lagged(ron_buf_t *out, uint64_t lost, uint64_t seq);

/*
 * Up to `limit` roots behind `since`, from the journal.  *next is the seq of
 * the last one, `since` when there was none, and *n how many there were.
 * Blocks.
 */
ron_status_t ron_api_sse_roots(ron_reader_t *reader, uint64_t since,
    uint64_t limit, ron_buf_t *out, uint64_t *next, uint64_t *n);


#endif /* RON_API_STREAM_H */
