
/*
 * The JSON reader against yajl used plainly, and against itself: what was
 * read is printed, and read again as the same tree.
 *
 * Ours refuses more than yajl does, and it must say which of its own rules it
 * was; it never takes what yajl refuses.
 */

#include <stdio.h>
#include <stdlib.h>

#include <yajl/yajl_parse.h>

#include "ron_fuzz.h"
#include "ron_json.h"
#include "ron_codec.h"


static bool
naive_accepts(ron_str_t s)
{
    bool         ok;
    yajl_handle  h;

    h = yajl_alloc(NULL, NULL, NULL);
    RON_ASSERT(h != NULL);
    ok = yajl_parse(h, s.data, s.len) == yajl_status_ok
         && yajl_complete_parse(h) == yajl_status_ok;
    yajl_free(h);

    return ok;
}


static void
print(ron_buf_t *out, const ron_json_t *node)
{
    const ron_json_t  *c;

    switch (ron_json_kind(node)) {
    case RON_JSON_NULL:
        ron_buf_put_cstr(out, "null");
        break;
    case RON_JSON_BOOL:
        ron_json_put_bool(out, ron_json_bool(node));
        break;
    case RON_JSON_NUMBER:
        ron_buf_put_str(out, ron_json_text(node));
        break;
    case RON_JSON_STRING:
        ron_json_put_string(out, ron_json_text(node));
        break;
    case RON_JSON_ARRAY:
    case RON_JSON_OBJECT:
        ron_buf_put_u8(out, node->kind == RON_JSON_ARRAY ? '[' : '{');

        for (c = ron_json_child(node); c != NULL; c = ron_json_next(c)) {
            if (c != ron_json_child(node)) {
                ron_buf_put_u8(out, ',');
            }

            if (node->kind == RON_JSON_OBJECT) {
                ron_json_put_string(out, ron_json_name(c));
                ron_buf_put_u8(out, ':');
            }

            print(out, c);
        }

        ron_buf_put_u8(out, node->kind == RON_JSON_ARRAY ? ']' : '}');
        break;
    default:
        RON_ASSERT(0);
    }
}


static bool
same(const ron_json_t *a, const ron_json_t *b)
{
    const ron_json_t  *x, *y;

    if (a->kind != b->kind || a->n != b->n
        || !ron_str_eq(ron_json_name(a), ron_json_name(b)))
    {
        return false;
    }

    switch (ron_json_kind(a)) {
    case RON_JSON_NUMBER:
    case RON_JSON_STRING:
        return ron_str_eq(ron_json_text(a), ron_json_text(b));
    case RON_JSON_ARRAY:
    case RON_JSON_OBJECT:
        break;
    default:
        return true;
    }

    x = ron_json_child(a);
    y = ron_json_child(b);

    for ( ; x && y; x = ron_json_next(x), y = ron_json_next(y)) {
        if (!same(x, y)) {
            return false;
        }

        RON_ASSERT(a->kind == RON_JSON_ARRAY
                   || ron_json_get(a, ron_json_name(x)) == x);
    }

    return x == NULL && y == NULL;
}


/*
 * Its own rules, which the grammar does not have; and a string that is never
 * ended behind the value, which yajl does not see.
 */
static bool
own_rule(const ron_json_error_t *err, ron_str_t s)
{
    static const char  *rules[] = {
        "duplicate member", "NUL in a string", "lone surrogate in a string",
        "invalid UTF-8", "nested too deep", "too many values",
        "text too long",
    };

    for (size_t i = 0; i < ron_array_n(rules); i++) {
        if (strcmp(err->reason, rules[i]) == 0) {
            return true;
        }
    }

    return strcmp(err->reason, "bytes after the value") == 0
           && s.data[err->off] == '"'
           && memchr(s.data + err->off, '\n', s.len - err->off) == NULL;
}


static void
fuzz_bind(const ron_json_t *root)
{
    typedef struct {
        ron_str_t          s;
        ron_u128_t         a, i;
        uint64_t           n;
        bool               b;
        const ron_json_t  *list;
        const ron_json_t  *any;
    } dst_t;

    static const ron_json_field_t  fields[] = {
        RON_JSON_FIELD(dst_t, s, "s", STRING, 0, 1, 8, NULL),
        RON_JSON_FIELD(dst_t, a, "a", AMOUNT, 0, 0, 0, NULL),
        RON_JSON_FIELD(dst_t, i, "i", AMOUNT_INT, 0, 0, 0, NULL),
        RON_JSON_FIELD(dst_t, n, "n", U64, RON_JSON_REQUIRED, 3, 9, NULL),
        RON_JSON_FIELD(dst_t, b, "b", BOOL, 0, 0, 0, NULL),
        RON_JSON_FIELD(dst_t, list, "l", ARRAY, 0, 0, 2, NULL),
        RON_JSON_FIELD(dst_t, any, "y", ANY, 0, 0, 0, NULL),
    };

    dst_t              dst;
    uint64_t           present;
    ron_json_error_t   err;
    const ron_json_t  *c;

    memset(&dst, 0xff, sizeof(dst));

    if (ron_json_bind(root, fields, ron_array_n(fields), &dst, &present, &err)
        != RON_OK)
    {
        RON_ASSERT(err.reason != NULL && err.reason[0] != '\0');
        return;
    }

    RON_ASSERT((present & 8) && dst.n >= 3 && dst.n <= 9);
    RON_ASSERT(ron_json_n(root) == (size_t) __builtin_popcountll(present));
    RON_ASSERT(!(present & 1) || (dst.s.len >= 1 && dst.s.len <= 8));
    RON_ASSERT((present & 1) || dst.s.len == 0);
    RON_ASSERT((present & 2) || dst.a == 0);
    RON_ASSERT(!(present & 32) || ron_json_n(dst.list) <= 2);

    for (c = ron_json_child(root); c != NULL; c = ron_json_next(c)) {
        RON_ASSERT(ron_json_name(c).len == 1
                   && strchr("sainbly", ron_json_name(c).data[0]) != NULL);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    ron_buf_t          text, again;
    ron_str_t          s = { len, data };
    ron_status_t       status;
    ron_json_doc_t     doc, doc2;
    ron_json_error_t   err, err2;
    const ron_json_t  *root, *root2;

    ron_json_doc_init(&doc, 0);
    ron_json_doc_init(&doc2, 0);
    ron_buf_init(&text, 0);
    ron_buf_init(&again, 0);

    status = ron_json_parse(&doc, s, NULL, &root, &err);

    if (status == RON_OK) {
        RON_ASSERT(naive_accepts(s));
        print(&text, root);
        RON_ASSERT(ron_utf8_check(ron_buf_str(&text), NULL) == RON_OK);
        RON_ASSERT(ron_json_parse(&doc2, ron_buf_str(&text), NULL, &root2,
                                  &err2) == RON_OK);
        RON_ASSERT(same(root, root2));
        print(&again, root2);
        RON_ASSERT(ron_str_eq(ron_buf_str(&text), ron_buf_str(&again)));

        if (ron_json_kind(root) == RON_JSON_OBJECT) {
            fuzz_bind(root);
        }

    } else {
        RON_ASSERT(status == RON_EINVAL && root == NULL);
        RON_ASSERT(err.reason != NULL && err.reason[0] != '\0');
        RON_ASSERT(err.off <= len);

        for (const char *p = err.name; *p != '\0'; p++) {
            RON_ASSERT(*p >= 0x20 && *p < 0x7f);
        }

        if (naive_accepts(s) && !own_rule(&err, s)) {
            fprintf(stderr, "refused: %s\n", err.reason);
            RON_ASSERT(!"a rule that is not ours alone");
        }
    }

    ron_buf_free(&text);
    ron_buf_free(&again);
    ron_json_doc_free(&doc);
    ron_json_doc_free(&doc2);

    return 0;
}
