
/*
 * The JSON reader, the binding of objects to structs, and the writer.
 *
 * The reader is included and not linked, so that its memory can run out.
 */

#include <stdlib.h>

#include "ron.h"


static size_t  blocks_left = SIZE_MAX;


static void *
scarce_malloc(size_t size)
{
    if (blocks_left == 0) {
        return NULL;
    }

    blocks_left--;

    return malloc(size);
}


#define malloc(size)  scarce_malloc(size)
#include "ron_json.c"
#undef malloc

#include "ron_test.h"


#define TEXT(s)  { sizeof(s) - 1, (const uint8_t *) s }


static ron_json_doc_t    doc;
static ron_json_error_t  err;


static ron_status_t
parse(ron_str_t text, const ron_json_t **root)
{
    return ron_json_parse(&doc, text, NULL, root, &err);
}


static void
test_refused(void)
{
    size_t             i;
    const ron_json_t  *root;

    static const struct {
        ron_str_t    text;
        const char  *reason;
        const char  *name;
    } rows[] = {
        { { 0, NULL }, "text ends early", "" },
        { TEXT(""), "text ends early", "" },
        { TEXT(" \n\t\r "), "text ends early", "" },
        { TEXT("{"), "text ends early", "" },
        { TEXT("{\"a\":1"), "text ends early", "" },
        { TEXT("[1,2"), "text ends early", "" },
        { TEXT("\"abc"), "text ends early", "" },
        { TEXT("[\"abc]"), "text ends early", "" },
        { TEXT("tru"), "text ends early", "" },
        { TEXT("-"), "text ends early", "" },
        { TEXT("1."), "text ends early", "" },
        { TEXT("{} {}"), "bytes after the value", "" },
        { TEXT("{}x"), "bytes after the value", "" },
        { TEXT("1 2"), "bytes after the value", "" },
        { TEXT("{}\0"), "bytes after the value", "" },
        { TEXT("{}]"), "bytes after the value", "" },
        { TEXT("truefalse"), "bytes after the value", "" },
        { TEXT("01"), "bytes after the value", "" },
        { TEXT("{}\""), "bytes after the value", "" },
        { TEXT("{\"a\":1} \"b"), "bytes after the value", "" },
        { TEXT("[[]] \"b\\\""), "bytes after the value", "" },
        { TEXT("\"a\" \"b"), "bytes after the value", "" },
        { TEXT("12 \"b"), "bytes after the value", "" },
        { TEXT("null\n\""), "bytes after the value", "" },
        { TEXT("\xef\xbb\xbf{}"), NULL, "" },
        { TEXT("[01]"), NULL, "" },
        { TEXT("[-01]"), NULL, "" },
        { TEXT("[+1]"), NULL, "" },
        { TEXT("[.5]"), NULL, "" },
        { TEXT("[1.]"), "malformed number", "" },
        { TEXT("[1e]"), "malformed number", "" },
        { TEXT("[1e+]"), "malformed number", "" },
        { TEXT("[-]"), "malformed number", "" },
        { TEXT("[0x1]"), NULL, "" },
        { TEXT("[NaN]"), NULL, "" },
        { TEXT("[Infinity]"), NULL, "" },
        { TEXT("[-Infinity]"), NULL, "" },
        { TEXT("[True]"), NULL, "" },
        { TEXT("[nul]"), NULL, "" },
        { TEXT("[1,]"), NULL, "" },
        { TEXT("[,1]"), NULL, "" },
        { TEXT("[1 2]"), NULL, "" },
        { TEXT("[1}"), NULL, "" },
        { TEXT("{]"), NULL, "" },
        { TEXT("{\"a\":1,}"), NULL, "" },
        { TEXT("{\"a\" 1}"), NULL, "a" },
        { TEXT("{\"a\":}"), NULL, "a" },
        { TEXT("{\"a\"}"), NULL, "a" },
        { TEXT("{a:1}"), NULL, "" },
        { TEXT("{1:1}"), NULL, "" },
        { TEXT("{'a':1}"), NULL, "" },
        { TEXT("['a']"), NULL, "" },
        { TEXT("[1] // x"), NULL, "" },
        { TEXT("/* x */ [1]"), NULL, "" },
        { TEXT("[1]\xa0"), "invalid UTF-8", "" },
        { TEXT("[\"\x01\"]"), "character not allowed in a string", "" },
        { TEXT("[\"\n\"]"), "character not allowed in a string", "" },
        { TEXT("[\"\t\"]"), "character not allowed in a string", "" },
        { TEXT("[\"\0\"]"), "character not allowed in a string", "" },
        { TEXT("[\"\x1f\"]"), "character not allowed in a string", "" },
        { TEXT("[\"\\a\"]"), "unknown escape in a string", "" },
        { TEXT("[\"\\'\"]"), "unknown escape in a string", "" },
        { TEXT("[\"\\x41\"]"), "unknown escape in a string", "" },
        { TEXT("[\"\\U0041\"]"), "unknown escape in a string", "" },
        { TEXT("[\"\\u12\"]"), "malformed \\u escape in a string", "" },
        { TEXT("[\"\\u12g4\"]"), "malformed \\u escape in a string", "" },
        { TEXT("[\"\\u0000\"]"), "NUL in a string", "" },
        { TEXT("{\"a\":\"x\\u0000\"}"), "NUL in a string", "a" },
        { TEXT("{\"a\\u0000\":1}"), "NUL in a string", "" },
        { TEXT("[\"\\ud800\"]"), "lone surrogate in a string", "" },
        { TEXT("[\"\\udc00\"]"), "lone surrogate in a string", "" },
        { TEXT("[\"\\ud800x\"]"), "lone surrogate in a string", "" },
        { TEXT("[\"\\ud800\\n\"]"), "lone surrogate in a string", "" },
        { TEXT("[\"\\ud800\\ud800\"]"), "lone surrogate in a string", "" },
        { TEXT("[\"\\ud800\\u0041\"]"), "lone surrogate in a string", "" },
        { TEXT("[\"\\udc00\\ud800\"]"), "lone surrogate in a string", "" },
        { TEXT("[\"\xff\"]"), "invalid UTF-8", "" },
        { TEXT("[\"\xc0\x80\"]"), "invalid UTF-8", "" },
        { TEXT("[\"\xc1\xbf\"]"), "invalid UTF-8", "" },
        { TEXT("[\"\xe0\x9f\xbf\"]"), "invalid UTF-8", "" },
        { TEXT("[\"\xed\xa0\x80\"]"), "invalid UTF-8", "" },
        { TEXT("[\"\xf0\x8f\xbf\xbf\"]"), "invalid UTF-8", "" },
        { TEXT("[\"\xf4\x90\x80\x80\"]"), "invalid UTF-8", "" },
        { TEXT("[\"\xe2\x82\"]"), "invalid UTF-8", "" },
        { TEXT("{\"a\":1,\"a\":1}"), "duplicate member", "a" },
        { TEXT("{\"\":1,\"\":1}"), "duplicate member", "" },
        { TEXT("{\"a\":1,\"b\":2,\"c\":3,\"b\":4}"), "duplicate member", "b" },
        { TEXT("{\"a\":1,\"\\u0061\":1}"), "duplicate member", "a" },
        { TEXT("{\"x\":{\"k\":1,\"k\":2}}"), "duplicate member", "k" },
        { TEXT("{\"a b\xc3\xa9\":1,\"a b\xc3\xa9\":1}"),
          "duplicate member", "a?b??" },
        { TEXT("[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]"), "nested too deep", "" },
        { TEXT("[[[[[[[[[[[[[[[[{\"a\":1}]]]]]]]]]]]]]]]]"),
          "nested too deep", "" },
        { TEXT("[[[[[[[[[[[[[[[{\"m\":[1]}]]]]]]]]]]]]]]]"),
          "nested too deep", "m" },
    };

    for (i = 0; i < ron_array_n(rows); i++) {
        root = (const ron_json_t *) &doc;

        is_status(parse(rows[i].text, &root), RON_EINVAL,
                  "row %zu refused", i);
        ok(root == NULL, "row %zu: no tree", i);

        if (rows[i].reason != NULL) {
            is_str(err.reason, rows[i].reason, "row %zu: reason", i);

        } else {
            ok(err.reason[0] != '\0', "row %zu: %s", i, err.reason);
        }

        is_str(err.name, rows[i].name, "row %zu: name", i);
    }
}


static void
test_offsets(void)
{
    size_t             i;
    const ron_json_t  *root;

    static const struct {
        ron_str_t  text;
        size_t     off;
    } rows[] = {
        { TEXT("[1, \"\\ud800\"]"), 5 },
        { TEXT("{\"a\":1, \"a\":2}"), 8 },
        { TEXT("{\"a\":1, \"\\u0061\":2}"), 8 },
        { TEXT("[\"\xc3\xa9\", \"\x80\"]"), 8 },
        { TEXT("[[[[[[[[[[[[[[[[ [1]]]]]]]]]]]]]]]]]"), 17 },
        { TEXT("[1"), 2 },
    };

    for (i = 0; i < ron_array_n(rows); i++) {
        (void) parse(rows[i].text, &root);
        is_u64(err.off, rows[i].off, "row %zu: offset of the error", i);
    }

    (void) parse(ron_str("[1, 2, }"), &root);
    ok(err.off == 7 || err.off == 8, "grammar: at or behind the token");
}


static void
test_accepted(void)
{
    size_t             i, n;
    const ron_json_t  *root, *v;

    static const ron_str_t  numbers[] = {
        TEXT("0"), TEXT("-0"), TEXT("1"), TEXT("-1"), TEXT("1.5"),
        TEXT("1e5"), TEXT("1E+5"), TEXT("-1.25e-10"), TEXT("0.0"),
        TEXT("340282366920938463463374607431768211456"),
        TEXT("1e999999999"), TEXT("123456789012345678901234567890.5")
    };

    static const struct {
        ron_str_t  text, want;
    } strings[] = {
        { TEXT("\"\""), TEXT("") },
        { TEXT("\"abc\""), TEXT("abc") },
        { TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), TEXT("\"\\/\b\f\n\r\t") },
        { TEXT("\"\\u0041\\u00e9\\u20aC\\uD83D\\ude00z\""),
          TEXT("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z") },
        { TEXT("\"\\u0001\\u007f\\u0080\\u07ff\\u0800\\uffff\""),
          TEXT("\x01\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf") },
        { TEXT("\"\\ud800\\udc00\\udbff\\udfff\""),
          TEXT("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf") },
        { TEXT("\"\x7f\xc3\xa9\""), TEXT("\x7f\xc3\xa9") },
        { TEXT("\"\\\\\\\"\""), TEXT("\\\"") },
        { TEXT("\"\\\\\\\\\""), TEXT("\\\\") },
        { TEXT("\"\\u0009\\u000A\\u00aF\\uaBcD\""),
          TEXT("\t\n\xc2\xaf\xea\xaf\x8d") },
    };

    for (i = 0; i < ron_array_n(numbers); i++) {
        if (ok(parse(numbers[i], &root) == RON_OK, "number %zu", i))
        {
            is_u64(ron_json_kind(root), RON_JSON_NUMBER, "kind");
            ok(ron_str_eq(ron_json_text(root), numbers[i]), "raw text");
            is_u64(root->off, 0, "offset");
        }
    }

    is_status(parse(ron_str("  -12.5e3 "), &root), RON_OK, "blanks around");
    ok(ron_str_eq(ron_json_text(root), ron_str("-12.5e3")), "are not in it");
    is_u64(root->off, 2, "offset");
    is_status(parse(ron_str("\n 77"), &root), RON_OK, "blanks before");
    ok(ron_str_eq(ron_json_text(root), ron_str("77")), "are not in it");
    is_u64(root->off, 2, "offset");

    for (i = 0; i < ron_array_n(strings); i++) {
        if (ok(parse(strings[i].text, &root) == RON_OK, "string %zu", i))
        {
            is_u64(ron_json_kind(root), RON_JSON_STRING, "kind");
            ok(ron_str_eq(ron_json_text(root), strings[i].want),
               "string %zu: its bytes", i);
            is_u64(root->off, 0, "offset");
        }
    }

    is_status(parse(ron_str("[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"), &root),
              RON_OK, "16 levels");

    for (n = 0, v = root; ron_json_kind(v) == RON_JSON_ARRAY; n++) {
        v = ron_json_child(v);
    }

    is_u64(n, 16, "are 16");
    is_status(parse(ron_str("{\"a\":{\"a\":1},\"b\":{\"a\":1}}"), &root),
              RON_OK, "the same name in several objects");
}


static void
test_tree(void)
{
    size_t             i;
    ron_str_t          text;
    const ron_json_t  *root, *v;

    static const struct {
        const char       *name;
        ron_json_kind_t   kind;
        const char       *at;
    } want[] = {
        { "s", RON_JSON_STRING, "\"x\\ty\"" },
        { "n", RON_JSON_NUMBER, "12" },
        { "t", RON_JSON_BOOL, "true" },
        { "f", RON_JSON_BOOL, "false" },
        { "z", RON_JSON_NULL, "null" },
        { "e", RON_JSON_OBJECT, "{}" },
        { "a", RON_JSON_ARRAY, "[ 1 , [ ] , \"\\\"\" ]" },
        { "q\"", RON_JSON_STRING, "\"\\\\\"" },
        { "", RON_JSON_NUMBER, "-0}" }
    };

    text = ron_str(" { \"s\" : \"x\\ty\" , \"n\":12,\"t\": true ,\"f\":false,"
                   "\"z\":null , \"e\":{},\"a\":[ 1 , [ ] , \"\\\"\" ],"
                   "\"q\\\"\":\"\\\\\",\"\":-0} ");

    if (!ok(parse(text, &root) == RON_OK, "a tree")) {
        return;
    }

    is_u64(ron_json_kind(root), RON_JSON_OBJECT, "an object");
    is_u64(ron_json_n(root), ron_array_n(want), "its members");
    is_u64(root->off, 1, "its offset");

    v = ron_json_child(root);

    for (i = 0; i < ron_array_n(want) && v != NULL; i++) {
        ok(ron_str_eq(ron_json_name(v), ron_cstr(want[i].name)), "name %zu", i);
        is_u64(ron_json_kind(v), want[i].kind, "kind %zu", i);
        ok(memcmp(text.data + v->off, want[i].at, strlen(want[i].at)) == 0,
           "offset %zu", i);
        ok(ron_json_get(root, ron_cstr(want[i].name)) == v, "get %zu", i);
        v = ron_json_next(v);
    }

    ok(v == NULL && i == ron_array_n(want), "in order, and no more");
    ok(ron_json_get(root, ron_str("no")) == NULL, "get what is not there");
    ok(ron_json_bool(ron_json_get(root, ron_str("t"))), "true");
    ok(!ron_json_bool(ron_json_get(root, ron_str("f"))), "false");
    ok(ron_json_child(ron_json_get(root, ron_str("e"))) == NULL, "no child");

    v = ron_json_get(root, ron_str("a"));
    is_u64(ron_json_n(v), 3, "array of three");
    ok(ron_json_name(ron_json_child(v)).len == 0, "elements have no name");
    ok(ron_json_get(v, ron_str("")) == NULL, "and an array no member");

    v = ron_json_next(ron_json_next(ron_json_child(v)));
    ok(ron_str_eq(ron_json_text(v), ron_str("\"")), "a quote");
    ok(ron_json_next(v) == NULL, "the last one");
}


/* Many members: sorted at the end, found wherever they are. */
static void
test_duplicates(void)
{
    size_t              i, j, n, missed, wrong;
    ron_buf_t           b;
    const ron_json_t   *root;

    static const size_t  sizes[] = { 15, 16, 17, 18, 31, 32, 33, 100, 257 };

    ron_buf_init(&b, 0);
    missed = 0;
    wrong = 0;
    n = 0;

    for (i = 0; i < ron_array_n(sizes); i++) {
        for (j = 0; j < sizes[i]; j++) {
            size_t  k;

            ron_buf_reset(&b);
            ron_buf_put_u8(&b, '{');

            for (k = 0; k < sizes[i]; k++) {
                ron_buf_printf(&b, "%s\"m%zu\":%zu", k ? "," : "",
                               k * 7919 % 1000, k);
            }

            if (parse((ron_str_t) { b.len + 0, b.data }, &root) == RON_OK) {
                wrong++;            /* it has no end yet */
            }

            ron_buf_put_u8(&b, '}');

            if (parse(ron_buf_str(&b), &root) != RON_OK
                || ron_json_n(root) != sizes[i])
            {
                wrong++;
            }

            b.len--;
            ron_buf_printf(&b, ",\"m%zu\":0}", j * 7919 % 1000);

            missed += parse(ron_buf_str(&b), &root) != RON_EINVAL
                      || strcmp(err.reason, "duplicate member") != 0;
            n++;
        }
    }

    is_u64(wrong, 0, "%zu objects without duplicates", n);
    is_u64(missed, 0, "%zu objects with one", n);

    /* a megabyte of members is no way to keep us busy */

    ron_buf_reset(&b);
    ron_buf_put_u8(&b, '{');

    for (i = 0; i < 80000; i++) {
        ron_buf_printf(&b, "%s\"%zu\":1", i ? "," : "", i + 100000);
    }

    ron_buf_put_u8(&b, '}');

    is_status(parse(ron_buf_str(&b), &root), RON_OK, "80000 members");

    b.len--;
    ron_buf_put_cstr(&b, ",\"123456\":1}");
    is_status(parse(ron_buf_str(&b), &root), RON_EINVAL, "and one again");
    is_str(err.name, "123456", "is named");

    ron_buf_free(&b);
}


static void
test_limits(void)
{
    size_t              i;
    ron_buf_t           b;
    ron_json_doc_t      small;
    const ron_json_t   *root;
    ron_json_limits_t   lim;

    memset(&lim, 0, sizeof(lim));

    lim.max_len = 10;
    is_status(ron_json_parse(&doc, ron_str("[1,2,3,45]"), &lim, &root, &err),
              RON_OK, "10 bytes");
    is_status(ron_json_parse(&doc, ron_str("[1,2,3,456]"), &lim, &root, &err),
              RON_EINVAL, "11 bytes");
    is_str(err.reason, "text too long", "reason");

    lim.max_len = 0;
    lim.max_nodes = 4;
    is_status(ron_json_parse(&doc, ron_str("[1,2,3]"), &lim, &root, &err),
              RON_OK, "4 values");
    is_status(ron_json_parse(&doc, ron_str("[1,2,3,4]"), &lim, &root, &err),
              RON_EINVAL, "5 values");
    is_str(err.reason, "too many values", "reason");

    lim.max_nodes = 0;
    lim.max_depth = 2;
    is_status(ron_json_parse(&doc, ron_str("[[1]]"), &lim, &root, &err),
              RON_OK, "2 levels");
    is_status(ron_json_parse(&doc, ron_str("[[[]]]"), &lim, &root, &err),
              RON_EINVAL, "3 levels");

    lim.max_depth = 1000;
    ron_buf_init(&b, 0);

    for (i = 0; i < RON_JSON_DEPTH_MAX + 1; i++) {
        ron_buf_put_u8(&b, '[');
    }

    for (i = 0; i < RON_JSON_DEPTH_MAX + 1; i++) {
        ron_buf_put_u8(&b, ']');
    }

    is_status(ron_json_parse(&doc, ron_buf_str(&b), &lim, &root, &err),
              RON_EINVAL, "no limit is over the stack");
    is_status(ron_json_parse(&doc, (ron_str_t) { b.len - 2, b.data + 1 },
                             &lim, &root, &err),
              RON_OK, "one less fits");

    /* memory: bounded between parses, and steady */

    ron_json_doc_init(&small, 64 * 1024);
    ron_buf_reset(&b);
    ron_buf_put_u8(&b, '[');

    for (i = 0; i < 20000; i++) {
        ron_buf_put_cstr(&b, i ? ",\"\\n\"" : "\"\\n\"");
    }

    ron_buf_put_u8(&b, ']');

    is_status(ron_json_parse(&small, ron_buf_str(&b), NULL, &root, &err),
              RON_OK, "a large text");
    ok(small.total > 64 * 1024, "takes memory");
    is_status(ron_json_parse(&small, ron_str("[1]"), NULL, &root, &err),
              RON_OK, "a small one");
    ok(small.total <= 64 * 1024, "gives it back: %zu", small.total);

    ron_json_doc_free(&small);
    memset(&small, 0, sizeof(small));

    for (i = 0; i < 3; i++) {
        ron_json_chunk_t  *chunk;

        chunk = small.chunk;
        is_status(ron_json_parse(&small, ron_buf_str(&b), NULL, &root, &err),
                  RON_OK, "the large text again");

        if (i == 2) {
            ok(small.chunk == chunk, "in the same block of memory");
        }
    }

    is_status(ron_json_parse(&small, ron_str("[1]"), NULL, &root, &err),
              RON_OK, "a small one");
    ok(small.total > 64 * 1024, "which a document of zeros keeps, too");

    ron_json_doc_free(&small);
    ron_buf_free(&b);
}


/* No prefix of a text is a text, and no prefix or mutation upsets us. */
static void
test_mutations(void)
{
    size_t             i, bit, taken, n;
    uint8_t           *copy;
    ron_str_t          text, part;
    const ron_json_t  *root;

    text = ron_str("{\"batch\":[{\"id\":\"\\u00e9\\ud83d\\ude00\","
                   "\"n\":-1.5e+3,\"t\":true,\"f\":false,\"z\":null,"
                   "\"\xc3\xa9\":[[],{}]}]}");

    taken = 0;

    for (i = 0; i < text.len; i++) {

        /* a block of its own size, so that a sanitizer sees its end */
        copy = malloc(i + 1);
        memcpy(copy, text.data, i);
        part.data = copy;
        part.len = i;
        taken += parse(part, &root) == RON_OK;
        free(copy);
    }

    is_u64(taken, 0, "none of %zu truncations is taken", text.len);

    copy = malloc(text.len);
    part.data = copy;
    part.len = text.len;
    n = 0;

    for (i = 0; i < text.len; i++) {
        for (bit = 0; bit < 8; bit++) {
            memcpy(copy, text.data, text.len);
            copy[i] ^= (uint8_t) (1u << bit);

            if (parse(part, &root) == RON_OK) {
                n++;

            } else if (root != NULL || err.reason[0] == '\0'
                       || err.off > text.len)
            {
                fail("byte %zu bit %zu: no good error", i, bit);
            }
        }
    }

    ok(n > 0 && n < 8 * text.len, "%zu of %zu flips are still JSON", n,
       8 * text.len);

    free(copy);
}


/* Without the n-th block, for all n: refused, and the next parse is fine. */
static void
test_no_memory(void)
{
    size_t              n, i, refused, wrong;
    ron_buf_t           b;
    ron_json_doc_t      fresh;
    const ron_json_t   *root;

    ron_buf_init(&b, 0);
    ron_buf_put_u8(&b, '[');

    for (i = 0; i < 20000; i++) {
        ron_buf_put_cstr(&b, "\"\\n\",");
    }

    ron_buf_put_u8(&b, '"');

    for (i = 0; i < 100000; i++) {
        ron_buf_put_cstr(&b, "\\t");
    }

    ron_buf_put_cstr(&b, "\"]");

    refused = 0;
    wrong = 0;

    for (n = 0; n < 100; n++) {
        ron_status_t  rc;

        ron_json_doc_init(&fresh, 0);

        blocks_left = n;
        rc = ron_json_parse(&fresh, ron_buf_str(&b), NULL, &root, &err);
        blocks_left = SIZE_MAX;

        refused += rc == RON_ENOMEM;
        wrong += rc == RON_ENOMEM ? root != NULL : rc != RON_OK;
        wrong += ron_json_parse(&fresh, ron_buf_str(&b), NULL, &root, &err)
                 != RON_OK;

        ron_json_doc_free(&fresh);

        if (rc == RON_OK) {
            break;
        }
    }

    is_u64(wrong, 0, "out of memory at each of %zu blocks", n);
    ok(refused > 3 && refused == n, "and taken with one more");

    ron_buf_free(&b);
}


/* ---- binding ------------------------------------------------------------ */

typedef struct {
    ron_str_t          from;
    ron_str_t          memo;
    ron_u128_t         amount;
    ron_u128_t         fee;
    uint64_t           nonce;
    bool               atomic;
    const ron_json_t  *ops;
    const ron_json_t  *extra;
    const ron_json_t  *any;
} tx_t;


static bool
is_account(ron_str_t s)
{
    return memchr(s.data, ' ', s.len) == NULL;
}


static const ron_json_field_t  tx_fields[] = {
    RON_JSON_FIELD(tx_t, from, "from", STRING, RON_JSON_REQUIRED, 1, 8,
                   is_account),
    RON_JSON_FIELD(tx_t, memo, "memo", STRING, 0, 0, 0, NULL),
    RON_JSON_FIELD(tx_t, amount, "amount", AMOUNT, RON_JSON_REQUIRED, 1, 0,
                   NULL),
    RON_JSON_FIELD(tx_t, fee, "fee", AMOUNT_INT, 0, 0, 100, NULL),
    RON_JSON_FIELD(tx_t, nonce, "nonce", U64, 0, 1,
                   UINT64_C(9007199254740991), NULL),
    RON_JSON_FIELD(tx_t, atomic, "atomic", BOOL, 0, 0, 0, NULL),
    RON_JSON_FIELD(tx_t, ops, "ops", ARRAY, 0, 1, 2, NULL),
    RON_JSON_FIELD(tx_t, extra, "extra", OBJECT, 0, 0, 1, NULL),
    RON_JSON_FIELD(tx_t, any, "any", ANY, 0, 0, 0, NULL)
};


static ron_status_t
bind(const char *text, tx_t *tx, uint64_t *present)
{
    const ron_json_t  *root;

    if (parse(ron_cstr(text), &root) != RON_OK) {
        return RON_ECORRUPT;
    }

    return ron_json_bind(root, tx_fields, ron_array_n(tx_fields), tx, present,
                         &err);
}


static void
test_bind(void)
{
    tx_t      tx;
    size_t    i;
    uint64_t  present;

    static const struct {
        const char  *text, *reason, *name;
    } bad[] = {
        { "[]", "not an object", "" },
        { "\"from\"", "not an object", "" },
        { "{}", "missing member", "from" },
        { "{\"from\":\"a\"}", "missing member", "amount" },
        { "{\"from\":\"a\",\"amount\":\"1\",\"frm\":1}", "unknown member",
          "frm" },
        { "{\"from\":\"a\",\"amount\":\"1\",\"From\":1}", "unknown member",
          "From" },
        { "{\"from\":\"a\",\"amount\":\"1\",\"\":1}", "unknown member", "" },
        { "{\"<b>\\u0007 \xc3\xa9\":1}", "unknown member", "<b>????" },
        { "{\"from\":1}", "not a string", "from" },
        { "{\"from\":null}", "not a string", "from" },
        { "{\"from\":[\"a\"]}", "not a string", "from" },
        { "{\"from\":\"\"}", "string too short", "from" },
        { "{\"from\":\"123456789\"}", "string too long", "from" },
        { "{\"from\":\"a b\"}", "malformed string", "from" },
        { "{\"amount\":1}", "not an amount", "amount" },
        { "{\"amount\":true}", "not an amount", "amount" },
        { "{\"amount\":\"01\"}", "malformed amount", "amount" },
        { "{\"amount\":\"1.0\"}", "malformed amount", "amount" },
        { "{\"amount\":\"-1\"}", "malformed amount", "amount" },
        { "{\"amount\":\"\"}", "malformed amount", "amount" },
        { "{\"amount\":\"0\"}", "amount out of range", "amount" },
        { "{\"amount\":\"340282366920938463463374607431768211456\"}",
          "amount out of range", "amount" },
        { "{\"fee\":-1}", "malformed amount", "fee" },
        { "{\"fee\":1.0}", "malformed amount", "fee" },
        { "{\"fee\":1e1}", "malformed amount", "fee" },
        { "{\"fee\":101}", "amount out of range", "fee" },
        { "{\"fee\":{}}", "not an amount", "fee" },
        { "{\"nonce\":\"1\"}", "not an integer", "nonce" },
        { "{\"nonce\":1.0}", "not an integer", "nonce" },
        { "{\"nonce\":1e3}", "not an integer", "nonce" },
        { "{\"nonce\":-1}", "not an integer", "nonce" },
        { "{\"nonce\":-0}", "not an integer", "nonce" },
        { "{\"nonce\":0}", "integer out of range", "nonce" },
        { "{\"nonce\":9007199254740992}", "integer out of range", "nonce" },
        { "{\"nonce\":18446744073709551616}", "integer out of range",
          "nonce" },
        { "{\"nonce\":999999999999999999999999999999999999999999}",
          "integer out of range", "nonce" },
        { "{\"atomic\":1}", "not a boolean", "atomic" },
        { "{\"atomic\":\"true\"}", "not a boolean", "atomic" },
        { "{\"ops\":{}}", "not an array", "ops" },
        { "{\"ops\":[]}", "too few elements", "ops" },
        { "{\"ops\":[1,2,3]}", "too many elements", "ops" },
        { "{\"extra\":[]}", "not an object", "extra" },
        { "{\"extra\":{\"a\":1,\"b\":1}}", "too many elements", "extra" }
    };

    is_status(bind("{\"from\":\"acc_a\",\"memo\":\"\",\"amount\":\"340282366"
                   "920938463463374607431768211455\",\"fee\":7,\"nonce\":900719"
                   "9254740991,\"atomic\":true,\"ops\":[1,2],\"extra\":{},"
                   "\"any\":null}", &tx, &present), RON_OK, "all members");
    is_u64(present, 0x1ff, "all present");
    ok(ron_str_eq(tx.from, ron_str("acc_a")), "string");
    is_u64(tx.memo.len, 0, "empty string");
    ok(tx.amount == ~(ron_u128_t) 0, "amount");
    ok(tx.fee == 7, "amount from an integer");
    is_u64(tx.nonce, UINT64_C(9007199254740991), "integer");
    ok(tx.atomic, "boolean");
    ok(tx.ops != NULL && ron_json_n(tx.ops) == 2, "array");
    ok(tx.extra != NULL && ron_json_n(tx.extra) == 0, "object");
    ok(tx.any != NULL && ron_json_kind(tx.any) == RON_JSON_NULL, "anything");

    memset(&tx, 0xff, sizeof(tx));
    is_status(bind("{\"fee\":\"100\",\"amount\":\"1\",\"from\":\"12345678\"}",
                   &tx, &present), RON_OK, "few members, other order");
    is_u64(present, 1 | 4 | 8, "those");
    ok(tx.amount == 1 && tx.fee == 100 && tx.from.len == 8, "their values");
    ok(tx.memo.len == 0 && tx.memo.data == NULL && tx.nonce == 0 && !tx.atomic
       && tx.ops == NULL && tx.extra == NULL && tx.any == NULL,
       "the others are zero");

    is_status(bind("{\"from\":\"a\",\"amount\":\"1\"}", &tx, NULL), RON_OK,
              "nobody asks what was present");

    for (i = 0; i < ron_array_n(bad); i++) {
        present = 7;
        is_status(bind(bad[i].text, &tx, &present), RON_EINVAL,
                  "bind row %zu: %s", i, bad[i].text);
        is_str(err.reason, bad[i].reason, "reason");
        is_str(err.name, bad[i].name, "name");
        is_u64(present, 0, "nothing present");
    }

    is_status(bind("{\"from\":\"a\", \"x\":1}", &tx, NULL), RON_EINVAL,
              "unknown");
    is_u64(err.off, 17, "where its value is");
}


static void
test_u64(void)
{
    size_t             i;
    uint64_t           v;
    const ron_json_t  *root;

    static const struct {
        ron_str_t     text;
        ron_status_t  rc;
        uint64_t      want;
    } rows[] = {
        { TEXT("0"), RON_OK, 0 },
        { TEXT("18446744073709551615"), RON_OK, UINT64_MAX },
        { TEXT("18446744073709551616"), RON_ERANGE, 0 },
        { TEXT("18446744073709551617"), RON_ERANGE, 0 },
        { TEXT("36893488147419103233"), RON_ERANGE, 0 },
        { TEXT("-1"), RON_EINVAL, 0 },
        { TEXT("1.0"), RON_EINVAL, 0 },
        { TEXT("1E2"), RON_EINVAL, 0 },
        { TEXT("\"1\""), RON_EINVAL, 0 },
        { TEXT("true"), RON_EINVAL, 0 },
        { TEXT("[]"), RON_EINVAL, 0 }
    };

    for (i = 0; i < ron_array_n(rows); i++) {
        v = 7;
        is_status(parse(rows[i].text, &root), RON_OK, "row %zu is JSON", i);
        is_status(ron_json_u64(root, &v), rows[i].rc, "row %zu as integer", i);
        is_u64(v, rows[i].want, "its value");
    }
}


static void
test_long_name(void)
{
    tx_t        tx;
    char        text[400];
    ron_buf_t   b;

    memset(text, 'n', sizeof(text));
    ron_buf_init(&b, 0);
    ron_buf_put_cstr(&b, "{\"");
    ron_buf_put(&b, text, sizeof(text));
    ron_buf_put(&b, "\":1}", 5);

    is_status(bind((const char *) b.data, &tx, NULL), RON_EINVAL,
              "a name of 400");
    is_u64(strlen(err.name), RON_JSON_NAME_MAX, "is cut");

    ron_buf_free(&b);
}


/* ---- writing ------------------------------------------------------------ */

static void
test_put(void)
{
    size_t             i;
    uint8_t            all[0x80];
    ron_buf_t          b;
    const ron_json_t  *root;

    ron_buf_init(&b, 0);

    ron_buf_put_u8(&b, '{');
    ron_json_put_member(&b, ron_str("s"), ron_str("a\"\\\b\f\n\r\t\x01\x1f/"
                                                  "\x7f\xc3\xa9"));
    ron_json_put_member_u64(&b, ron_str("n"), UINT64_MAX);
    ron_json_put_member_bool(&b, ron_str("t"), true);
    ron_json_put_member_bool(&b, ron_str("f"), false);
    ron_json_put_member_amount(&b, ron_str("a"), ~(ron_u128_t) 0);
    ron_json_put_key(&b, ron_str("l"));
    ron_json_put_comma(&b);
    ron_buf_put_u8(&b, '[');
    ron_json_put_comma(&b);
    ron_json_put_u64(&b, 0);
    ron_json_put_comma(&b);
    ron_json_put_string(&b, ron_null_str);
    ron_json_put_comma(&b);
    ron_buf_put_u8(&b, '{');
    ron_json_put_member(&b, ron_str("k"), ron_str("{"));
    ron_json_put_member(&b, ron_str("m"), ron_str(","));
    ron_buf_put_cstr(&b, "}]");
    ron_json_put_key(&b, ron_str("h"));
    ron_json_put_hex(&b, ron_str("\x00\x7f\xff"));
    ron_buf_put_u8(&b, '}');
    ron_buf_put_u8(&b, '\0');

    is_str((const char *) b.data,
           "{\"s\":\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f/\x7f\xc3\xa9\","
           "\"n\":18446744073709551615,\"t\":true,\"f\":false,"
           "\"a\":\"340282366920938463463374607431768211455\","
           "\"l\":[0,\"\",{\"k\":\"{\",\"m\":\",\"}],\"h\":\"007fff\"}",
           "an object");

    /* what we write is what we read */

    for (i = 1; i < sizeof(all); i++) {
        all[i - 1] = (uint8_t) i;
    }

    ron_buf_reset(&b);
    ron_json_put_string(&b, (ron_str_t) { sizeof(all) - 1, all });
    is_status(parse(ron_buf_str(&b), &root), RON_OK, "every ASCII character");
    ok(ron_str_eq(ron_json_text(root), (ron_str_t) { sizeof(all) - 1, all }),
       "comes back");

    ron_buf_reset(&b);

    for (i = 0; i < 100; i++) {
        all[i] = (uint8_t) i;
    }

    ron_json_put_hex(&b, (ron_str_t) { 100, all });
    is_u64(b.len, 202, "a long hexadecimal string");
    ok(memcmp(b.data + 1 + 2 * 63, "3f4041", 6) == 0, "over its steps");

    ron_buf_free(&b);
    ron_buf_init(&b, 4);
    ron_json_put_member(&b, ron_str("long"), ron_str("value"));
    is_status(ron_buf_status(&b), RON_EFULL, "a full buffer says so");
    ron_buf_free(&b);
}


/*
 * A member is written in one go when it fits as it is, and piece by piece
 * otherwise: every byte at every place of strings of every short length, into
 * buffers of every size, against a writer that knows only one way.
 */

static size_t
naive_member(char *out, size_t n, unsigned at, uint8_t c)
{
    size_t  len;

    len = (size_t) snprintf(out, 256, "{\"n\":\"");

    for (unsigned i = 0; i < n; i++) {
        if (i != at) {
            out[len++] = 'a';

        } else if (c == '"' || c == '\\') {
            out[len++] = '\\';
            out[len++] = (char) c;

        } else if (c < 0x20) {
            static const char  letters[32] = {
                ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                ['\r'] = 'r'
            };

            len += letters[c] ? (size_t) snprintf(out + len, 8, "\\%c",
                                                  letters[c])
                              : (size_t) snprintf(out + len, 8, "\\u%04x", c);

        } else {
            out[len++] = (char) c;
        }
    }

    out[len++] = '"';

    return len;
}


static void
test_put_member(void)
{
    char       want[256];
    size_t     len;
    uint8_t    text[40];
    unsigned   wrong, unbounded;
    ron_buf_t  b;

    wrong = 0;
    unbounded = 0;

    for (unsigned n = 1; n <= 20; n++) {
        for (unsigned at = 0; at < n; at++) {
            for (unsigned c = 0; c < 256; c++) {
                memset(text, 'a', sizeof(text));
                text[at] = (uint8_t) c;
                len = naive_member(want, n, at, (uint8_t) c);

                ron_buf_init(&b, c % 3 == 0 ? len - c % 2 : 0);
                ron_buf_put_u8(&b, '{');

                if (c % 3 == 1) {
                    (void) ron_buf_reserve(&b, 100);
                }

                ron_json_put_member(&b, ron_str("n"),
                                    (ron_str_t) { n, text });

                if (c % 3 == 0 && c % 2 == 1) {
                    unbounded += ron_buf_status(&b) != RON_EFULL;

                } else {
                    wrong += b.len != len || memcmp(b.data, want, len) != 0;
                }

                ron_buf_free(&b);
            }
        }
    }

    is_u64(wrong, 0, "every byte at every place of a member");
    is_u64(unbounded, 0, "one byte too few is too few");

    ron_buf_init(&b, 0);
    (void) ron_buf_reserve(&b, 200);
    ron_buf_put_u8(&b, '{');
    ron_json_put_member_u64(&b, ron_str("a"), UINT64_MAX);
    ron_json_put_member(&b, ron_str("b"), ron_null_str);
    ron_json_put_member_u64(&b, ron_str("c"), 0);
    ron_json_put_key(&b, ron_str("d"));
    ron_buf_put_u8(&b, '[');
    ron_json_put_comma(&b);
    ron_buf_put_u8(&b, '1');
    ron_json_put_comma(&b);
    ron_buf_put_cstr(&b, "2]}");
    ron_buf_put_u8(&b, '\0');
    is_str((char *) b.data, "{\"a\":18446744073709551615,\"b\":\"\",\"c\":0,"
           "\"d\":[1,2]}", "commas where they belong");
    ron_buf_free(&b);
}


int
main(void)
{
    ron_json_doc_init(&doc, 0);

    test_refused();
    test_offsets();
    test_accepted();
    test_tree();
    test_duplicates();
    test_limits();
    test_mutations();
    test_no_memory();
    test_bind();
    test_u64();
    test_long_name();
    test_put();
    test_put_member();

    ron_json_doc_free(&doc);

    return done_testing();
}
