
/*
 * Whole bodies: the same comes of them as of a parse in place, in many
 * threads at once as well.
 */

#include "ron_test.h"
#include "ron_api_body.h"
#include "ron_port.h"

#include <stdlib.h>
#include <zlib.h>


#define TEST_THREADS  8
#define TEST_ROUNDS   50


typedef struct {
    const char           *text;
    ron_api_body_kind_t   kind;
    ron_api_wallet_t      op;
    ron_status_t          rc;
    const char           *field;
} test_case_t;


static void test_fill(ron_api_body_t *b, const test_case_t *c, bool gzip);
static void test_one(const test_case_t *c, bool gzip);
static void test_inflate(void);
static void test_many(void *data);


static const test_case_t  cases[] = {
    { "{\"to\":\"a\",\"asset\":\"ron\",\"amount_minor\":\"7\"}",
      RON_API_BODY_WALLET, RON_API_ISSUE, RON_OK, "" },
    { "{\"to\":\"a\",\"asset\":\"ron\",\"amount_minor\":7}",
      RON_API_BODY_WALLET, RON_API_ISSUE, RON_EINVAL, "amount_minor" },
    { "{\"op\":\"issue\",\"key\":\"k\",\"request\":{\"to\":\"a\","
      "\"asset\":\"ron\",\"amount_minor\":\"7\"}}",
      RON_API_BODY_OPS, RON_API_ISSUE, RON_OK, "" },
    { "{\"op\":\"dance\",\"key\":\"k\",\"request\":{}}",
      RON_API_BODY_OPS, RON_API_ISSUE, RON_EINVAL, "op" },
    { "{\"batch\":[{\"id\":\"e\",\"ts\":1,\"kind\":\"Mint\","
      "\"account\":\"a\",\"amount\":\"7\","
      "\"nonce\":\"AAAAAAAAAAAAAAAAAAAAAA==\",\"v\":1}]}",
      RON_API_BODY_INGEST, RON_API_ISSUE, RON_OK, "" },
    { "{\"batch\":[{\"id\":\"e\"}]}",
      RON_API_BODY_INGEST, RON_API_ISSUE, RON_EINVAL, "ts" },
    { "{", RON_API_BODY_INGEST, RON_API_ISSUE, RON_EINVAL, "" }
};


static void
test_fill(ron_api_body_t *b, const test_case_t *c, bool gzip)
{
    z_stream   z;
    uint8_t   *room;

    ron_api_body_init(b);
    ron_api_limits_init(&b->limits);

    b->kind = c->kind;
    b->op = c->op;
    b->gzip = gzip;
    b->plain_max = strlen(c->text);

    ron_api_body_key(b, ron_str("key"));

    if (!gzip) {
        ron_buf_put_cstr(&b->body, c->text);
        return;
    }

    memset(&z, 0, sizeof(z));
    RON_ASSERT(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8,
                            Z_DEFAULT_STRATEGY) == Z_OK);

    room = ron_buf_reserve(&b->body, 1000);
    RON_ASSERT(room != NULL);

    z.next_in = (Bytef *) (uintptr_t) c->text;
    z.avail_in = (uInt) strlen(c->text);
    z.next_out = room;
    z.avail_out = 1000;

    RON_ASSERT(deflate(&z, Z_FINISH) == Z_STREAM_END);
    b->body.len = 1000 - z.avail_out;
    (void) deflateEnd(&z);
}


static void
test_one(const test_case_t *c, bool gzip)
{
    ron_api_body_t  b;

    test_fill(&b, c, gzip);
    ron_api_body_parse(&b);

    is_status(b.rc, c->rc, "%s%s", gzip ? "gzip: " : "", c->text);
    ok(ron_str_eq(b.text, ron_cstr(c->text)), "its text");

    if (c->rc == RON_OK) {
        is_u64(b.api.unit.op_n, 1, "an operation");
        ok(b.api.unit.ops[0].amount == 7, "its amount");

        if (c->kind == RON_API_BODY_WALLET) {
            ok(ron_str_eq(b.api.unit.key, ron_str("key")), "its key");
        }

    } else {
        is_str(b.err.field, c->field, "the member that is wrong");
    }

    ron_api_body_free(&b);
}


static void
test_inflate(void)
{
    ron_api_body_t  b;

    test_fill(&b, &cases[0], true);
    b.plain_max--;
    ron_api_body_parse(&b);
    is_status(b.rc, RON_EINVAL, "a byte more than it may become");
    is_str(b.err.text, "the body inflates to more than is accepted",
           "says so");
    ron_api_body_free(&b);

    test_fill(&b, &cases[0], true);
    b.body.len--;
    ron_api_body_parse(&b);
    is_status(b.rc, RON_EINVAL, "a byte is missing");
    is_str(b.err.text, "the body is not gzip", "says so");
    ron_api_body_free(&b);

    ron_api_body_init(&b);
    ron_api_body_parse(&b);
    is_status(b.rc, RON_EINVAL, "nothing at all");
    ron_api_body_free(&b);
}


/* Each with bodies of its own; *data: how many were not as they should be. */

static void
test_many(void *data)
{
    size_t           i;
    unsigned        *wrong = data;
    ron_api_body_t  *b;

    b = malloc(sizeof(ron_api_body_t));
    RON_ASSERT(b != NULL);

    for (i = 0; i < TEST_ROUNDS * ron_array_n(cases); i++) {
        test_fill(b, &cases[i % ron_array_n(cases)], i % 2);
        ron_api_body_parse(b);
        *wrong += b->rc != cases[i % ron_array_n(cases)].rc;
        ron_api_body_free(b);
    }

    free(b);
}


int
main(void)
{
    size_t         i;
    unsigned       wrong[TEST_THREADS], all;
    ron_thread_t  *threads[TEST_THREADS];

    for (i = 0; i < ron_array_n(cases); i++) {
        test_one(&cases[i], false);
        test_one(&cases[i], true);
    }

    test_inflate();

    memset(wrong, 0, sizeof(wrong));
    all = 0;

    for (i = 0; i < TEST_THREADS; i++) {
        RON_ASSERT(ron_thread_start(&threads[i], "body", RON_THREAD_USUAL,
                                    test_many, &wrong[i])
                   == RON_OK);
    }

    for (i = 0; i < TEST_THREADS; i++) {
        RON_ASSERT(ron_thread_join(threads[i], 60000) == RON_OK);
        all += wrong[i];
    }

    is_u64(all, 0, "%u threads at once", TEST_THREADS);

    return done_testing();
}
