
#include "ron_api_body.h"

#include "ron_gunzip.h"


void
ron_api_body_init(ron_api_body_t *b)
{
    memset(b, 0, sizeof(ron_api_body_t));

    ron_buf_init(&b->body, 0);
    ron_buf_init(&b->plain, 0);
    ron_api_init(&b->api);
}


void
ron_api_body_free(ron_api_body_t *b)
{
    ron_buf_free(&b->body);
    ron_buf_free(&b->plain);
    ron_api_free(&b->api);
}


void
ron_api_body_key(ron_api_body_t *b, ron_str_t key)
{
    RON_ASSERT(key.len <= sizeof(b->key));

    b->key_len = key.len;

    if (key.len) {
        memcpy(b->key, key.data, key.len);
    }
}


void
ron_api_body_parse(ron_api_body_t *b)
{
    ron_str_t  key;

    b->text = ron_buf_str(&b->body);

    if (b->gzip) {
        b->rc = ron_api_inflate(b->text, b->plain_max, &b->plain, &b->err);

        if (b->rc != RON_OK) {
            return;
        }

        b->text = ron_buf_str(&b->plain);

        /* what was compressed has a bound of its own */

        b->api.body_max = b->text.len;
    }

    switch (b->kind) {

    case RON_API_BODY_WALLET:
        key.data = b->key;
        key.len = b->key_len;

        b->rc = ron_api_wallet_parse(&b->api, b->op, b->text, key, &b->limits,
                                     &b->err);
        break;

    case RON_API_BODY_OPS:
        b->rc = ron_api_ops_parse(&b->api, b->text, &b->limits, &b->ops,
                                  &b->err);
        break;

    default:
        b->rc = ron_api_ingest_parse(&b->api, b->text, &b->err);
    }
}


ron_status_t
ron_api_inflate(ron_str_t in, size_t max, ron_buf_t *out,
    ron_api_error_t *err)
{
    ron_status_t  rc;

    rc = ron_gunzip(in, max, out);

    switch (rc) {

    case RON_EFULL:
        return ron_api_refuse(err, RON_REASON_MALFORMED,
                              "the body inflates to more than is accepted",
                              NULL);

    case RON_EINVAL:
        return ron_api_refuse(err, RON_REASON_MALFORMED,
                              "the body is not gzip", NULL);

    default:
        return rc;
    }
}
