
#include "ron_api_stream.h"
#include "ron_codec.h"
#include "ron_json.h"


#define RON_API_STREAM_BYTES  ((size_t) 256 << 10)


typedef struct {
    ron_buf_t  *out;
    uint64_t    next;
    uint64_t    limit;
    uint64_t    n;
} ron_api_stream_walk_t;


static ron_status_t ron_api_stream_row(void *ctx, const ron_row_t *row);


void
ron_api_sse_root(ron_buf_t *out, const char *event, uint64_t seq,
    uint64_t time_ms, const ron_hash_t *root)
{
    char  hex[2 * RON_HASH_LEN];

    if (event != NULL) {
        ron_buf_printf(out, "event: %s\n", event);
    }

    ron_buf_printf(out, "id: %llu\ndata: {", (unsigned long long) seq);
    ron_json_put_member_u64(out, ron_str("seq"), seq);
    (void) ron_hex_encode((ron_str_t) { RON_HASH_LEN, root->b }, hex);
    ron_json_put_member(out, ron_str("root"),
                        (ron_str_t) { sizeof(hex), (const uint8_t *) hex });
    ron_json_put_member_u64(out, ron_str("ts"), time_ms);
    ron_buf_put_cstr(out, "}\n\n");
}


void
ron_api_sse_lagged(ron_buf_t *out, uint64_t lost, uint64_t seq)
{
    ron_buf_put_cstr(out, "event: lagged\ndata: {");
    ron_json_put_member_u64(out, ron_str("lost"), lost);
    ron_json_put_member_u64(out, ron_str("since"), seq);
    ron_buf_put_cstr(out, "}\n\n");
}


ron_status_t
ron_api_sse_roots(ron_reader_t *reader, uint64_t since, uint64_t limit,
    ron_buf_t *out, uint64_t *next, uint64_t *n)
{
    uint64_t               seq;
    ron_status_t           rc;
    ron_api_stream_walk_t  walk;

    walk = (ron_api_stream_walk_t) { out, since, limit, 0 };

    rc = since == UINT64_MAX ? RON_ENOTFOUND : RON_OK;
    seq = since + 1;

    while (rc == RON_OK && walk.n < limit) {
        rc = ron_reader_rows(reader, seq, RON_API_STREAM_BYTES,
                             ron_api_stream_row, &walk, &seq);
    }

    *next = walk.next;
    *n = walk.n;

    if (rc != RON_OK && rc != RON_ENOTFOUND && rc != RON_AGAIN) {
        return rc;
    }

    return ron_buf_status(out);
}


static ron_status_t
ron_api_stream_row(void *ctx, const ron_row_t *row)
{
    ron_api_stream_walk_t  *walk = ctx;

    if (walk->n == walk->limit) {
        return RON_AGAIN;
    }

    walk->n++;
    walk->next = row->seq + row->count - 1;
    ron_api_sse_root(walk->out, NULL, walk->next, row->time_ms, &row->root);

    return RON_OK;
}
