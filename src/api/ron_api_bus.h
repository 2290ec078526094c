
/*
 * The ledger's bus between servers, GET /ledger/bus: server-sent events.
 *
 *     event: hello
 *     data: {"seq":41,"us":123450000,"root":"<64 hex>","check":"<16 hex>",
 *            "joined":true}
 *
 *     event: commit
 *     id: 42
 *     data: {"seq":42,"count":1,"root":"<64 hex>","touched":"<320 hex>"}
 *
 *     event: beat
 *     data: {"seq":42,"us":123456789}
 *
 *     event: lagged
 *     data: {"lost":7,"seq":49,"root":"<64 hex>"}
 *
 * `touched` is a filter of accounts (ron_zone_bus.h), `us` the sender's
 * monotonic time: of the hello, and of a beat that at which the ledger lived
 * and had nothing newer than `seq`.
 */

#ifndef RON_API_BUS_H
#define RON_API_BUS_H


#include "ron_buf.h"
#include "ron_json.h"
#include "ron_zone_bus.h"


/* No event is longer, and no header of an answer is taken that is. */
#define RON_API_BUS_EVENT_MAX  768
#define RON_API_BUS_HEAD_MAX   8192


typedef enum {
    RON_API_BUS_OPEN = 1,           /* the answer has begun, with 200 */
    RON_API_BUS_HELLO,
    RON_API_BUS_COMMIT,
    RON_API_BUS_BEAT,
    RON_API_BUS_LAGGED
} ron_api_bus_type_t;

typedef struct {
    ron_api_bus_type_t   type;
    uint64_t             seq;
    uint64_t             count;
    uint64_t             lost;
    uint64_t             us;
    bool                 joined;
    uint8_t              check[RON_BUS_CHECK_LEN];
    ron_hash_t           root;
    ron_bus_filter_t     touched;
} ron_api_bus_event_t;


/* Writes any event but OPEN. */
void ron_api_bus_put(ron_buf_t *out, const ron_api_bus_event_t *event);


/* A reader of the whole answer, in whatever pieces it comes. */
typedef struct {
    ron_json_doc_t  doc;
    bool            open;
    size_t          len;
    uint8_t         buf[RON_API_BUS_HEAD_MAX];
} ron_api_bus_reader_t;

void ron_api_bus_reader_init(ron_api_bus_reader_t *reader);
void ron_api_bus_reader_free(ron_api_bus_reader_t *reader);

/*
 * Takes bytes from *in until an event is whole.  RON_AGAIN: there are no more
 * bytes.  RON_EINVAL: this is not such an answer; nothing more can be read.
 * What has no name that is known here is passed over.
 */
ron_status_t ron_api_bus_get(ron_api_bus_reader_t *reader, ron_str_t *in,
    ron_api_bus_event_t *event);

/* What GET /ledger/ops/balance answers. */
ron_status_t ron_api_bus_balance(ron_json_doc_t *doc, ron_str_t body,
    ron_zone_balance_t *balance, uint64_t *stale_ms);


#endif /* RON_API_BUS_H */
