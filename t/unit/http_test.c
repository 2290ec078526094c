
/* Answers of other servers: whole, in every number of pieces, and wrong. */

#include "ron_test.h"
#include "ron_api_http.h"


static uint8_t         text[64 * 1024];
static ron_api_http_t  a;


static ron_status_t
parse(const char *s)
{
    size_t  len;

    len = strlen(s);
    memcpy(text, s, len);

    return ron_api_http_parse(text, len, &a);
}


static void
test_length(void)
{
    size_t             i, len;
    ron_status_t       rc;

    static const char  s[] =
        "HTTP/1.1 409 Conflict\r\nServer: nginx\r\n"
        "content-TYPE: application/problem+json\r\nContent-Length:  5 \r\n"
        "ETag: \"17\"\r\nIdempotent-Replayed: true\r\n\r\nhello";

    len = sizeof(s) - 1;
    rc = RON_AGAIN;

    for (i = 0; i < len && rc == RON_AGAIN; i++) {
        memcpy(text, s, i);
        rc = ron_api_http_parse(text, i, &a);
    }

    is_status(rc, RON_AGAIN, "a part of an answer");
    is_u64(a.total, len, "says how long it will be");

    is_status(parse(s), RON_OK, "an answer");
    is_u64(a.status, 409, "its status");
    ok(a.json && a.replayed && a.keepalive, "what its headers say");
    ok(a.has_version && a.version == 17, "its version");
    ok(ron_str_eq(a.body, ron_str("hello")), "its body");
    is_u64(a.total, len, "its length");

    is_status(parse("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc"),
              RON_EINVAL, "more than it says");
    is_status(parse("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                    "Connection: close\r\n\r\nab"), RON_OK, "the last");
    ok(!a.keepalive && !a.json, "on its connection");
    is_status(parse("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"), RON_OK,
              "HTTP/1.0");
    ok(!a.keepalive, "closes");
    is_status(parse("HTTP/1.1 204 No Content\r\n\r\n"), RON_OK, "no content");
    is_u64(a.body.len, 0, "has none");
}


static void
test_chunked(void)
{
    size_t             i, len;
    ron_status_t       rc;

    static const char  s[] =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0A;x=y\r\n0123456789\r\n1\r\n\n\r\n0\r\nT: v\r\n\r\n";

    len = sizeof(s) - 1;
    rc = RON_AGAIN;

    for (i = 0; i < len && rc == RON_AGAIN; i++) {
        memcpy(text, s, i);
        rc = ron_api_http_parse(text, i, &a);

        if (memcmp(text, s, i) != 0) {
            break;
        }
    }

    is_u64(i, len, "chunks wait for the last, and are left alone till then");
    is_status(parse(s), RON_OK, "chunks");
    ok(ron_str_eq(a.body, ron_str("abc0123456789\n")), "are joined");

    is_status(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "0\r\n\r\n"), RON_OK, "no chunk");
    is_u64(a.body.len, 0, "is no body");

    is_status(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "0\r\n\r\nx"), RON_EINVAL, "more behind the last");
    is_status(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "g\r\n"), RON_EINVAL, "no number");
    is_status(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "1\r\nabc"), RON_EINVAL, "longer than it says");
    is_status(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "fffffffff\r\n"), RON_EINVAL, "too long to be true");
    is_status(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
              RON_EINVAL, "another coding");
}


static void
test_wrong(void)
{
    size_t             i;

    static const char  *wrong[] = {
        "SSH-2.0-x\r\n\r\n",
        "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 2000\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nnothing\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    };

    for (i = 0; i < ron_array_n(wrong); i++) {
        is_status(parse(wrong[i]), RON_EINVAL, "not an answer");
    }

    memset(text, 'x', sizeof(text));
    is_status(ron_api_http_parse(text, RON_API_HTTP_HEADER_MAX - 1, &a),
              RON_AGAIN, "a header may be long");
    is_status(ron_api_http_parse(text, RON_API_HTTP_HEADER_MAX, &a),
              RON_EINVAL, "and has an end");
}


int
main(void)
{
    test_length();
    test_chunked();
    test_wrong();

    return done_testing();
}
