
/*
 * A whole body, inflated and parsed with memory of its own, so that it can be
 * done in any thread while the request that it belongs to comes to its end.
 */

#ifndef RON_API_BODY_H
#define RON_API_BODY_H


#include "ron_api.h"


typedef enum {
    RON_API_BODY_WALLET = 0,
    RON_API_BODY_OPS,
    RON_API_BODY_INGEST
} ron_api_body_kind_t;

typedef struct {

    /* what it is: filled in by the caller behind init() */

    ron_api_body_kind_t  kind;
    ron_api_wallet_t     op;            /* of a wallet */
    bool                 gzip;
    size_t               plain_max;     /* what gzip may become */
    ron_buf_t            body;
    ron_api_limits_t     limits;        /* assets stay the caller's */

    /* what came of it */

    ron_status_t         rc;            /* of the parse */
    ron_api_error_t      err;
    ron_api_t            api;           /* its unit, good until free() */
    ron_api_ops_t        ops;           /* of RON_API_BODY_OPS */
    ron_str_t            text;          /* the body, inflated */

    /* inside */

    ron_buf_t            plain;
    size_t               key_len;
    uint8_t              key[RON_API_KEY_MAX];
} ron_api_body_t;


void ron_api_body_init(ron_api_body_t *b);
void ron_api_body_free(ron_api_body_t *b);

/* The key of a wallet's request, as ron_api_key() gave it: kept. */
void ron_api_body_key(ron_api_body_t *b, ron_str_t key);

/* Fills in what came of it.  Touches nothing but *b. */
void ron_api_body_parse(ron_api_body_t *b);

/*
 * Appends what a gzip body inflates to, at most `max` bytes.  RON_EINVAL and
 * *err, or RON_ENOMEM.
 */
ron_status_t ron_api_inflate(ron_str_t in, size_t max, ron_buf_t *out,
    ron_api_error_t *err);


#endif /* RON_API_BODY_H */
