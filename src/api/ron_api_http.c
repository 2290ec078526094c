
/*
 * Always from the first byte: an answer comes in one or two pieces, and a
 * parser without a state has no state to be wrong.
 */

#include "ron_api.h"
#include "ron_api_http.h"


typedef struct {
    bool      chunked;
    bool      has_length;
    uint64_t  length;
} ron_api_http_body_t;


static ron_status_t ron_api_http_status(ron_str_t line, ron_api_http_t *a);
static ron_status_t ron_api_http_header(ron_str_t line, ron_api_http_t *a,
    ron_api_http_body_t *body);
static ron_status_t ron_api_http_body(uint8_t *data, ron_str_t rest,
    size_t len, ron_api_http_body_t *body, ron_api_http_t *answer);
static ron_str_t ron_api_http_line(ron_str_t *rest);
static bool ron_api_http_is(ron_str_t s, const char *text);
static bool ron_api_http_has(ron_str_t s, const char *text);
static ron_status_t ron_api_http_chunks(uint8_t *data, size_t len, bool join,
    size_t *used, size_t *joined);
static ron_status_t ron_api_http_hex(ron_str_t line, uint64_t *v);


ron_status_t
ron_api_http_parse(uint8_t *data, size_t len, ron_api_http_t *answer)
{
    ron_str_t            rest, line;
    ron_status_t         rc;
    ron_api_http_body_t  body;

    memset(answer, 0, sizeof(ron_api_http_t));
    memset(&body, 0, sizeof(body));

    rest = (ron_str_t) { len, data };

    if (memmem(data, len, "\r\n\r\n", 4) == NULL) {
        return len < RON_API_HTTP_HEADER_MAX ? RON_AGAIN : RON_EINVAL;
    }

    rc = ron_api_http_status(ron_api_http_line(&rest), answer);

    while (rc == RON_OK) {
        line = ron_api_http_line(&rest);

        if (line.len == 0) {
            break;
        }

        rc = ron_api_http_header(line, answer, &body);
    }

    if (rc != RON_OK) {
        return rc;
    }

    return ron_api_http_body(data + (len - rest.len), rest, len, &body,
                             answer);
}


static ron_status_t
ron_api_http_body(uint8_t *data, ron_str_t rest, size_t len,
    ron_api_http_body_t *body, ron_api_http_t *answer)
{
    size_t        used, joined;
    ron_status_t  rc;

    if (answer->status == 204 || answer->status == 304) {
        body->has_length = true;
        body->length = 0;
        body->chunked = false;
    }

    if (body->chunked) {

        /* whole first, and only then joined */

        rc = ron_api_http_chunks(data, rest.len, false, &used, &joined);

        if (rc == RON_OK) {
            rc = ron_api_http_chunks(data, rest.len, true, &used, &joined);
        }

        if (rc != RON_OK) {
            return rc;
        }

        answer->body = (ron_str_t) { joined, data };
        answer->total = (len - rest.len) + used;

        return used == rest.len ? RON_OK : RON_EINVAL;
    }

    if (!body->has_length || body->length > SIZE_MAX / 2) {
        return RON_EINVAL;
    }

    answer->total = (len - rest.len) + (size_t) body->length;

    if (rest.len != body->length) {
        return rest.len < body->length ? RON_AGAIN : RON_EINVAL;
    }

    answer->body = rest;

    return RON_OK;
}


/* The next line without its end, which the caller knows to be there. */

static ron_str_t
ron_api_http_line(ron_str_t *rest)
{
    ron_str_t       line;
    const uint8_t  *p;

    p = memmem(rest->data, rest->len, "\r\n", 2);
    RON_ASSERT(p != NULL);

    line = (ron_str_t) { (size_t) (p - rest->data), rest->data };

    rest->data += line.len + 2;
    rest->len -= line.len + 2;

    return line;
}


static ron_status_t
ron_api_http_status(ron_str_t line, ron_api_http_t *a)
{
    uint64_t   status;
    ron_str_t  digits;

    if (line.len < 12 || memcmp(line.data, "HTTP/1.", 7) != 0
        || (line.data[7] != '0' && line.data[7] != '1')
        || line.data[8] != ' ' || (line.len > 12 && line.data[12] != ' '))
    {
        return RON_EINVAL;
    }

    digits = (ron_str_t) { 3, line.data + 9 };

    if (ron_api_u64(digits, &status) != RON_OK || status < 200
        || status > 599)
    {
        return RON_EINVAL;
    }

    a->status = (uint16_t) status;
    a->keepalive = line.data[7] == '1';

    return RON_OK;
}


static ron_status_t
ron_api_http_header(ron_str_t line, ron_api_http_t *a,
    ron_api_http_body_t *body)
{
    uint64_t        length;
    ron_str_t       name, value;
    const uint8_t  *p;

    p = memchr(line.data, ':', line.len);
    if (p == NULL || p == line.data) {
        return RON_EINVAL;
    }

    name = (ron_str_t) { (size_t) (p - line.data), line.data };
    value = (ron_str_t) { line.len - name.len - 1, p + 1 };

    while (value.len && (value.data[0] == ' ' || value.data[0] == '\t')) {
        value.data++;
        value.len--;
    }

    while (value.len && (value.data[value.len - 1] == ' '
                         || value.data[value.len - 1] == '\t'))
    {
        value.len--;
    }

    if (ron_api_http_is(name, "content-length")) {

        if (ron_api_u64(value, &length) != RON_OK
            || (body->has_length && body->length != length))
        {
            return RON_EINVAL;
        }

        body->has_length = true;
        body->length = length;

    } else if (ron_api_http_is(name, "transfer-encoding")) {

        if (!ron_api_http_is(value, "chunked")) {
            return RON_EINVAL;
        }

        body->chunked = true;

    } else if (ron_api_http_is(name, "connection")) {
        a->keepalive = a->keepalive && !ron_api_http_has(value, "close");

    } else if (ron_api_http_is(name, "content-type")) {
        a->json = ron_api_http_has(value, "application/json")
                  || ron_api_http_has(value, "application/problem+json");

    } else if (ron_api_http_is(name, "idempotent-replayed")) {
        a->replayed = ron_api_http_is(value, "true");

    } else if (ron_api_http_is(name, "etag")) {
        a->has_version = ron_api_match(value, &a->version) == RON_OK;

    } else if (ron_api_http_is(name, "ledger-seq")) {
        a->has_seq = ron_api_u64(value, &a->seq) == RON_OK;
    }

    return RON_OK;
}


static bool
ron_api_http_is(ron_str_t s, const char *text)
{
    return s.len == strlen(text) && ron_api_http_has(s, text);
}


/* Begins with it, whatever the case: parameters may follow. */

static bool
ron_api_http_has(ron_str_t s, const char *text)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; text[i] != '\0'; i++) {

        if (i == s.len) {
            return false;
        }

        c = s.data[i];
        c = c >= 'A' && c <= 'Z' ? (uint8_t) (c | 0x20) : c;

        if (c != (uint8_t) text[i]) {
            return false;
        }
    }

    return true;
}


static ron_status_t
ron_api_http_hex(ron_str_t line, uint64_t *v)
{
    size_t   i;
    uint8_t  c;

    *v = 0;

    for (i = 0; i < line.len; i++) {
        c = line.data[i];

        if (c >= '0' && c <= '9') {
            c = (uint8_t) (c - '0');

        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            c = (uint8_t) ((c | 0x20) - 'a' + 10);

        } else {
            break;
        }

        if (i >= 8) {
            return RON_EINVAL;
        }

        *v = *v << 4 | c;
    }

    /* an extension may follow */

    return i && (i == line.len || line.data[i] == ';' || line.data[i] == ' ')
           ? RON_OK : RON_EINVAL;
}


static ron_status_t
ron_api_http_chunks(uint8_t *data, size_t len, bool join, size_t *used,
    size_t *joined)
{
    size_t          at, line;
    uint64_t        n;
    const uint8_t  *p;

    *joined = 0;
    at = 0;

    for ( ;; ) {
        p = memmem(data + at, len - at, "\r\n", 2);
        if (p == NULL) {
            return len - at < 1024 ? RON_AGAIN : RON_EINVAL;
        }

        line = (size_t) (p - (data + at));

        if (ron_api_http_hex((ron_str_t) { line, data + at }, &n) != RON_OK) {
            return RON_EINVAL;
        }

        at += line + 2;

        if (n == 0) {
            break;
        }

        if (len - at < n + 2) {
            return RON_AGAIN;
        }

        if (memcmp(data + at + n, "\r\n", 2) != 0) {
            return RON_EINVAL;
        }

        /* what is joined lies before what is read, and is never longer */

        if (join) {
            memmove(data + *joined, data + at, n);
        }

        *joined += n;
        at += n + 2;
    }

    /* trailers are of no use */

    for ( ;; ) {
        p = memmem(data + at, len - at, "\r\n", 2);
        if (p == NULL) {
            return len - at < 4096 ? RON_AGAIN : RON_EINVAL;
        }

        line = (size_t) (p - (data + at));
        at += line + 2;

        if (line == 0) {
            *used = at;
            return RON_OK;
        }
    }
}
