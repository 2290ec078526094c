
/*
 * An answer of another HTTP server, as far as a call to one needs it: the
 * status, a few headers, and the whole body.
 */

#ifndef RON_API_HTTP_H
#define RON_API_HTTP_H


#include "ron.h"


#define RON_API_HTTP_HEADER_MAX  (32 * 1024)


typedef struct {
    uint16_t   status;
    bool       keepalive;           /* the connection may be used again */
    bool       json;                /* application/json, or problem+json */
    bool       replayed;            /* Idempotent-Replayed: true */
    bool       has_version;
    uint64_t   version;             /* ETag: "<version>" */
    bool       has_seq;
    uint64_t   seq;                 /* Ledger-Seq: <seq> */
    size_t     total;               /* what the answer was in all, or */
                                    /* RON_AGAIN: will be; 0: unknown */
    ron_str_t  body;
} ron_api_http_t;


/*
 * Takes apart all that has come so far.  RON_OK: the answer is whole, and its
 * chunks, if it had any, were joined in place: `data` is not to be parsed
 * again.  RON_AGAIN: there is more to come, `data` is as it was.  RON_EINVAL:
 * it is no HTTP/1.x answer, has no length, or more bytes than it says.
 */
ron_status_t ron_api_http_parse(uint8_t *data, size_t len,
    ron_api_http_t *answer);


#endif /* RON_API_HTTP_H */
