
/*
 * The reader: yajl finds the tokens and checks the grammar, its callbacks
 * build the tree.
 *
 * What yajl leaves to us.  Its UTF-8 check lets overlong forms and surrogates
 * pass, so the whole text is checked before and that check is turned off.  It
 * replaces a lone surrogate by a question mark, so strings with escapes are
 * decoded here once more, from the text.  It knows no duplicates.
 *
 * Memory.  Everything, the parser's own state included, comes from the chunks
 * of the document and is released by the next parse.  yajl does not look
 * whether it got memory; when there is none, its allocator leaves through
 * longjmp(), and since all it holds is in the chunks, nothing leaks.
 *
 * Duplicates.  A filter of 64 bits answers for nearly every member of the
 * objects that people write.  What it cannot tell is compared with the members
 * before, and in objects with more than RON_JSON_SMALL_N members by sorting
 * them when the object ends: no text makes this quadratic.
 */

#include <setjmp.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>

#include "ron_codec.h"
#include "ron_json.h"


#define RON_JSON_CHUNK_MIN  (16 * 1024)
#define RON_JSON_ALIGN      16
#define RON_JSON_SMALL_N    16


struct ron_json_chunk_s {
    ron_json_chunk_t  *next;
    size_t             size;            /* this header included */
};


typedef struct {
    ron_json_t        *node;
    const ron_json_t **tail;
    uint64_t           seen;            /* filter over the names */
} ron_json_level_t;


typedef struct {
    ron_json_doc_t    *doc;
    ron_str_t          text;
    ron_json_limits_t  lim;
    ron_json_error_t  *err;
    ron_status_t       rc;
    yajl_handle        yajl;

    const ron_json_t  *root;
    size_t             end;             /* of the root, in the text */
    ron_str_t          name;            /* of the member whose value follows */
    size_t             depth;
    size_t             nodes_n;
    ron_json_level_t   levels[RON_JSON_DEPTH_MAX];

    jmp_buf            no_memory;
} ron_json_parser_t;


static ron_status_t ron_json_run(ron_json_parser_t *p);
static ron_status_t ron_json_syntax(ron_json_parser_t *p, bool at_end);
static ron_status_t ron_json_rest(ron_json_parser_t *p, size_t off);
static ron_json_limits_t ron_json_defaults(const ron_json_limits_t *lim);
static int ron_json_fail(ron_json_parser_t *p, const char *reason,
    ron_str_t name, size_t off);

static ron_json_t *ron_json_add(ron_json_parser_t *p, ron_json_kind_t kind,
    size_t off);
static int ron_json_open(ron_json_parser_t *p, ron_json_kind_t kind);
static bool ron_json_string(ron_json_parser_t *p, const uint8_t *data,
    size_t len, ron_str_t *s, size_t *off);
static bool ron_json_decode(ron_json_parser_t *p, const uint8_t *pos,
    const uint8_t *end, ron_str_t *s);
static const uint8_t *ron_json_unicode(const uint8_t *pos, const uint8_t *end,
    uint8_t **out, const char **reason);
static uint32_t ron_json_hex4(const uint8_t *p);

static bool ron_json_is_duplicate(const ron_json_level_t *level,
    ron_str_t name);
static const ron_json_t *ron_json_find_duplicate(ron_json_parser_t *p,
    const ron_json_t *object);
static int ron_json_name_cmp(const ron_json_t *a, const ron_json_t *b);

static int ron_json_on_null(void *ctx);
static int ron_json_on_boolean(void *ctx, int value);
static int ron_json_on_number(void *ctx, const char *data, size_t len);
static int ron_json_on_string(void *ctx, const unsigned char *data,
    size_t len);
static int ron_json_on_map_start(void *ctx);
static int ron_json_on_map_key(void *ctx, const unsigned char *data,
    size_t len);
static int ron_json_on_map_end(void *ctx);
static int ron_json_on_array_start(void *ctx);
static int ron_json_on_array_end(void *ctx);

static void *ron_json_doc_alloc(ron_json_doc_t *doc, size_t size);
static void ron_json_doc_reset(ron_json_doc_t *doc);
static bool ron_json_doc_grow(ron_json_doc_t *doc, size_t size);
static void *ron_json_alloc(ron_json_parser_t *p, size_t size);
static void *ron_json_yajl_malloc(void *ctx, size_t size);
static void *ron_json_yajl_realloc(void *ctx, void *ptr, size_t size);
static void ron_json_yajl_free(void *ctx, void *ptr);


static const yajl_callbacks  ron_json_callbacks = {
    ron_json_on_null,
    ron_json_on_boolean,
    NULL,
    NULL,
    ron_json_on_number,
    ron_json_on_string,
    ron_json_on_map_start,
    ron_json_on_map_key,
    ron_json_on_map_end,
    ron_json_on_array_start,
    ron_json_on_array_end
};


/* Parts of yajl's messages, and what we say instead. */

static const struct {
    const char  *part;
    const char  *reason;
} ron_json_reasons[] = {
    { "trailing garbage",  "bytes after the value" },
    { "malformed number",  "malformed number" },
    { "after '\\u'",       "malformed \\u escape in a string" },
    { "inside string",     "character not allowed in a string" },
    { "inside a string",   "unknown escape in a string" },
    { "object key",        "malformed member" }
};


ron_status_t
ron_json_parse(ron_json_doc_t *doc, ron_str_t text,
    const ron_json_limits_t *lim, const ron_json_t **root,
    ron_json_error_t *err)
{
    size_t              off;
    ron_status_t        rc;
    ron_json_parser_t  *p;

    *root = NULL;
    memset(err, 0, sizeof(ron_json_error_t));
    err->reason = "";

    ron_json_doc_reset(doc);

    p = ron_json_doc_alloc(doc, sizeof(ron_json_parser_t));

    if (p == NULL) {
        return RON_ENOMEM;
    }

    p->doc = doc;
    p->text = text;
    p->lim = ron_json_defaults(lim);
    p->err = err;
    p->rc = RON_OK;
    p->yajl = NULL;
    p->root = NULL;
    p->name = ron_null_str;
    p->depth = 0;
    p->nodes_n = 0;

    if (text.len > p->lim.max_len) {
        return ron_json_refuse(err, "text too long", ron_null_str, 0);
    }

    if (ron_utf8_check(text, &off) != RON_OK) {
        return ron_json_refuse(err, "invalid UTF-8", ron_null_str, off);
    }

    rc = ron_json_run(p);

    if (rc == RON_OK) {
        *root = p->root;
    }

    return rc;
}


static ron_json_limits_t
ron_json_defaults(const ron_json_limits_t *lim)
{
    ron_json_limits_t  l;

    memset(&l, 0, sizeof(ron_json_limits_t));

    if (lim != NULL) {
        l = *lim;
    }

    l.max_len = l.max_len ? ron_min(l.max_len, UINT32_MAX) : RON_JSON_LEN;
    l.max_depth = l.max_depth ? ron_min(l.max_depth, RON_JSON_DEPTH_MAX)
                              : RON_JSON_DEPTH;
    l.max_nodes = l.max_nodes ? l.max_nodes : RON_JSON_NODES;

    return l;
}


static ron_status_t
ron_json_run(ron_json_parser_t *p)
{
    bool              at_end;
    size_t            end;
    yajl_status       status;
    yajl_alloc_funcs  funcs;

    if (setjmp(p->no_memory) != 0) {
        return RON_ENOMEM;
    }

    funcs.malloc = ron_json_yajl_malloc;
    funcs.realloc = ron_json_yajl_realloc;
    funcs.free = ron_json_yajl_free;
    funcs.ctx = p;

    p->yajl = yajl_alloc(&ron_json_callbacks, &funcs, p);

    if (p->yajl == NULL
        || !yajl_config(p->yajl, yajl_dont_validate_strings, 1))
    {
        return RON_ENOMEM;
    }

    at_end = false;
    end = p->text.len;
    status = yajl_status_ok;

    if (p->text.len != 0) {
        status = yajl_parse(p->yajl, p->text.data, p->text.len);
    }

    /* a number that ends the text is a token only when the text is complete */

    if (status == yajl_status_ok) {
        at_end = true;
        end = (p->root != NULL) ? p->end : end;
        status = yajl_complete_parse(p->yajl);
    }

    if (status == yajl_status_client_canceled) {
        return p->rc;
    }

    return status == yajl_status_ok ? ron_json_rest(p, end)
                                    : ron_json_syntax(p, at_end);
}


/*
 * A string that nobody ends is no token, so that yajl does not see it.  White
 * space is what yajl takes for it.
 */

static ron_status_t
ron_json_rest(ron_json_parser_t *p, size_t off)
{
    for ( /* void */ ; off < p->text.len; off++) {
        if (memchr(" \t\n\v\f\r", p->text.data[off], 6) == NULL) {
            return ron_json_refuse(p->err, "bytes after the value",
                                   ron_null_str, off);
        }
    }

    return RON_OK;
}


/* Says in our words what yajl did not like. */
static ron_status_t
ron_json_syntax(ron_json_parser_t *p, bool at_end)
{
    size_t       i, n, off;
    const char  *text, *reason;

    /* at the end all but the first row come from a token that is cut off */

    reason = at_end ? "text ends early" : "malformed JSON";
    n = at_end ? 1 : ron_array_n(ron_json_reasons);
    off = at_end ? p->text.len
                 : ron_min(yajl_get_bytes_consumed(p->yajl), p->text.len);

    text = (const char *) yajl_get_error(p->yajl, 0, NULL, 0);

    for (i = 0; text != NULL && i < n; i++) {
        if (strstr(text, ron_json_reasons[i].part) != NULL) {
            reason = ron_json_reasons[i].reason;
            break;
        }
    }

    return ron_json_refuse(p->err, reason, p->name, off);
}


ron_status_t
ron_json_refuse(ron_json_error_t *err, const char *reason, ron_str_t name,
    size_t off)
{
    size_t  i, n;

    err->reason = reason;
    err->off = off;

    n = ron_min(name.len, RON_JSON_NAME_MAX);

    for (i = 0; i < n; i++) {
        err->name[i] = name.data[i] > 0x20 && name.data[i] < 0x7f
                       ? (char) name.data[i] : '?';
    }

    err->name[n] = '\0';

    return RON_EINVAL;
}


static int
ron_json_fail(ron_json_parser_t *p, const char *reason, ron_str_t name,
    size_t off)
{
    p->rc = ron_json_refuse(p->err, reason, name, off);

    return 0;
}


/* ---- values ------------------------------------------------------------- */

static ron_json_t *
ron_json_add(ron_json_parser_t *p, ron_json_kind_t kind, size_t off)
{
    ron_json_t        *node;
    ron_json_level_t  *level;

    if (p->nodes_n == p->lim.max_nodes) {
        ron_json_fail(p, "too many values", p->name, off);
        return NULL;
    }

    node = ron_json_alloc(p, sizeof(ron_json_t));

    node->next = NULL;
    node->u.child = NULL;
    node->name = p->name.data;
    node->name_len = (uint32_t) p->name.len;
    node->n = 0;
    node->off = (uint32_t) off;
    node->kind = (uint8_t) kind;

    p->name = ron_null_str;
    p->nodes_n++;

    if (p->depth == 0) {
        p->root = node;
        p->end = yajl_get_bytes_consumed(p->yajl);
        return node;
    }

    level = &p->levels[p->depth - 1];

    *level->tail = node;
    level->tail = &node->next;
    level->node->n++;

    return node;
}


static int
ron_json_open(ron_json_parser_t *p, ron_json_kind_t kind)
{
    size_t             off;
    ron_json_t        *node;
    ron_json_level_t  *level;

    off = yajl_get_bytes_consumed(p->yajl) - 1;

    if (p->depth == p->lim.max_depth) {
        return ron_json_fail(p, "nested too deep", p->name, off);
    }

    node = ron_json_add(p, kind, off);

    if (node == NULL) {
        return 0;
    }

    level = &p->levels[p->depth++];

    level->node = node;
    level->tail = &node->u.child;
    level->seen = 0;

    return 1;
}


static int
ron_json_on_null(void *ctx)
{
    ron_json_parser_t  *p = ctx;

    return ron_json_add(p, RON_JSON_NULL,
                        yajl_get_bytes_consumed(p->yajl) - 4) != NULL;
}


static int
ron_json_on_boolean(void *ctx, int value)
{
    ron_json_t         *node;
    ron_json_parser_t  *p = ctx;

    node = ron_json_add(p, RON_JSON_BOOL,
                        yajl_get_bytes_consumed(p->yajl) - (value ? 4 : 5));

    if (node == NULL) {
        return 0;
    }

    node->n = value != 0;

    return 1;
}


static int
ron_json_on_number(void *ctx, const char *data, size_t len)
{
    size_t              off;
    uintptr_t           from;
    ron_json_t         *node;
    ron_json_parser_t  *p = ctx;

    from = (uintptr_t) data - (uintptr_t) p->text.data;

    /* a number that ends the text was copied: it could have gone on */
    off = from < p->text.len ? (size_t) from : p->text.len - len;

    node = ron_json_add(p, RON_JSON_NUMBER, off);

    if (node == NULL) {
        return 0;
    }

    node->u.data = p->text.data + off;
    node->n = (uint32_t) len;

    return 1;
}


static int
ron_json_on_string(void *ctx, const unsigned char *data, size_t len)
{
    size_t              off;
    ron_str_t           s;
    ron_json_t         *node;
    ron_json_parser_t  *p = ctx;

    if (!ron_json_string(p, data, len, &s, &off)) {
        return 0;
    }

    node = ron_json_add(p, RON_JSON_STRING, off);

    if (node == NULL) {
        return 0;
    }

    node->u.data = s.data;
    node->n = (uint32_t) s.len;

    return 1;
}


static int
ron_json_on_map_start(void *ctx)
{
    return ron_json_open(ctx, RON_JSON_OBJECT);
}


static int
ron_json_on_array_start(void *ctx)
{
    return ron_json_open(ctx, RON_JSON_ARRAY);
}


static int
ron_json_on_array_end(void *ctx)
{
    ron_json_parser_t  *p = ctx;

    p->depth--;
    p->end = yajl_get_bytes_consumed(p->yajl);

    return 1;
}


static int
ron_json_on_map_key(void *ctx, const unsigned char *data, size_t len)
{
    size_t              off;
    uint64_t            bit;
    ron_str_t           name;
    ron_json_level_t   *level;
    ron_json_parser_t  *p = ctx;

    if (!ron_json_string(p, data, len, &name, &off)) {
        return 0;
    }

    level = &p->levels[p->depth - 1];

    bit = UINT64_C(1);

    if (name.len != 0) {
        bit <<= (name.len * 7 + name.data[0] * 3u
                 + name.data[name.len - 1] * 11u) & 63;
    }

    if ((level->seen & bit) && level->node->n <= RON_JSON_SMALL_N
        && ron_json_is_duplicate(level, name))
    {
        return ron_json_fail(p, "duplicate member", name, off);
    }

    level->seen |= bit;
    p->name = name;

    return 1;
}


static int
ron_json_on_map_end(void *ctx)
{
    const ron_json_t   *again, *object;
    ron_json_parser_t  *p = ctx;

    object = p->levels[--p->depth].node;
    p->end = yajl_get_bytes_consumed(p->yajl);

    if (object->n <= RON_JSON_SMALL_N) {
        return 1;
    }

    again = ron_json_find_duplicate(p, object);

    if (again == NULL) {
        return 1;
    }

    return ron_json_fail(p, "duplicate member", ron_json_name(again),
                         again->off);
}


/* ---- strings ------------------------------------------------------------ */

/*
 * The string whose token yajl has just read.  Without an escape it is a part
 * of the text.  *off is where its opening quote is.
 */
static bool
ron_json_string(ron_json_parser_t *p, const uint8_t *data, size_t len,
    ron_str_t *s, size_t *off)
{
    uintptr_t       from;
    const uint8_t  *pos, *end;

    from = (uintptr_t) data - (uintptr_t) p->text.data;

    if (from < p->text.len) {
        s->len = len;
        s->data = data;
        *off = (size_t) from - 1;
        return true;
    }

    /*
     * The opening quote is the last one without a backslash before it: inside
     * there is always one, and outside of strings there is none at all.
     */

    end = p->text.data + yajl_get_bytes_consumed(p->yajl) - 1;
    pos = end - 1;

    while (*pos != '"' || (pos > p->text.data && pos[-1] == '\\')) {
        pos--;
    }

    *off = (size_t) (pos - p->text.data);

    return ron_json_decode(p, pos + 1, end, s);
}


static bool
ron_json_decode(ron_json_parser_t *p, const uint8_t *pos, const uint8_t *end,
    ron_str_t *s)
{
    uint8_t           *out, *start;
    const char        *reason;
    const uint8_t     *at;
    static const char  from[] = "\"\\/bfnrt";
    static const char  to[] = "\"\\/\b\f\n\r\t";

    start = ron_json_alloc(p, (size_t) (end - pos));
    out = start;

    while (pos < end) {
        if (*pos != '\\') {
            *out++ = *pos++;
            continue;
        }

        at = pos++;

        if (*pos != 'u') {
            *out++ = (uint8_t) to[strchr(from, *pos) - from];
            pos++;
            continue;
        }

        pos = ron_json_unicode(pos + 1, end, &out, &reason);

        if (pos == NULL) {
            return ron_json_fail(p, reason, p->name,
                                 (size_t) (at - p->text.data));
        }
    }

    s->data = start;
    s->len = (size_t) (out - start);

    return true;
}


/* After \u; returns what follows the escape, or NULL and the reason. */
static const uint8_t *
ron_json_unicode(const uint8_t *pos, const uint8_t *end, uint8_t **out,
    const char **reason)
{
    uint8_t   *o;
    uint32_t   c, low;

    c = ron_json_hex4(pos);
    pos += 4;

    if (c == 0) {
        *reason = "NUL in a string";
        return NULL;
    }

    if (c >= 0xd800 && c <= 0xdfff) {
        low = 0;

        if (c < 0xdc00 && end - pos >= 6 && pos[0] == '\\' && pos[1] == 'u') {
            low = ron_json_hex4(pos + 2);
            pos += 6;
        }

        if (low < 0xdc00 || low > 0xdfff) {
            *reason = "lone surrogate in a string";
            return NULL;
        }

        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }

    o = *out;

    if (c < 0x80) {
        *o++ = (uint8_t) c;

    } else if (c < 0x800) {
        *o++ = (uint8_t) (0xc0 | c >> 6);
        *o++ = (uint8_t) (0x80 | (c & 0x3f));

    } else if (c < 0x10000) {
        *o++ = (uint8_t) (0xe0 | c >> 12);
        *o++ = (uint8_t) (0x80 | (c >> 6 & 0x3f));
        *o++ = (uint8_t) (0x80 | (c & 0x3f));

    } else {
        *o++ = (uint8_t) (0xf0 | c >> 18);
        *o++ = (uint8_t) (0x80 | (c >> 12 & 0x3f));
        *o++ = (uint8_t) (0x80 | (c >> 6 & 0x3f));
        *o++ = (uint8_t) (0x80 | (c & 0x3f));
    }

    *out = o;

    return pos;
}


/* yajl has seen that they are hexadecimal. */
static uint32_t
ron_json_hex4(const uint8_t *p)
{
    size_t    i;
    uint32_t  v;

    v = 0;

    for (i = 0; i < 4; i++) {
        v = v << 4 | ((p[i] & 15u) + (p[i] > '9' ? 9 : 0));
    }

    return v;
}


/* ---- duplicates --------------------------------------------------------- */

static bool
ron_json_is_duplicate(const ron_json_level_t *level, ron_str_t name)
{
    const ron_json_t  *member;

    for (member = level->node->u.child; member; member = member->next) {
        if (ron_str_eq(ron_json_name(member), name)) {
            return true;
        }
    }

    return false;
}


/* A merge sort, from runs of one upwards; any two equal names meet in it. */
static const ron_json_t *
ron_json_find_duplicate(ron_json_parser_t *p, const ron_json_t *object)
{
    int                 order;
    size_t              i, j, k, n, run, mid, end;
    const ron_json_t   *member, **from, **to, **swap;

    n = object->n;
    from = ron_json_alloc(p, n * sizeof(ron_json_t *));
    to = ron_json_alloc(p, n * sizeof(ron_json_t *));

    i = 0;

    for (member = object->u.child; member; member = member->next) {
        from[i++] = member;
    }

    for (run = 1; run < n; run *= 2) {
        for (k = 0; k < n; k = end) {
            i = k;
            mid = ron_min(k + run, n);
            end = ron_min(mid + run, n);
            j = mid;

            while (i < mid && j < end) {
                order = ron_json_name_cmp(from[i], from[j]);

                if (order == 0) {
                    return from[j];
                }

                to[k++] = order < 0 ? from[i++] : from[j++];
            }

            while (i < mid) {
                to[k++] = from[i++];
            }

            while (j < end) {
                to[k++] = from[j++];
            }
        }

        swap = from;
        from = to;
        to = swap;
    }

    return NULL;
}


static int
ron_json_name_cmp(const ron_json_t *a, const ron_json_t *b)
{
    if (a->name_len != b->name_len) {
        return a->name_len < b->name_len ? -1 : 1;
    }

    return a->name_len == 0 ? 0 : memcmp(a->name, b->name, a->name_len);
}


/* ---- memory ------------------------------------------------------------- */

void
ron_json_doc_init(ron_json_doc_t *doc, size_t keep)
{
    memset(doc, 0, sizeof(ron_json_doc_t));
    doc->keep = keep;
}


void
ron_json_doc_free(ron_json_doc_t *doc)
{
    ron_json_chunk_t  *chunk, *next;

    for (chunk = doc->chunk; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }

    doc->chunk = NULL;
    doc->pos = NULL;
    doc->end = NULL;
    doc->total = 0;
}


/*
 * Several chunks become one of their size, so that the same text fits without
 * an allocation the next time.
 */
static void
ron_json_doc_reset(ron_json_doc_t *doc)
{
    size_t  total, keep;

    if (doc->chunk == NULL) {
        return;
    }

    keep = doc->keep ? doc->keep : RON_JSON_KEEP;

    if (doc->chunk->next != NULL || doc->total > keep) {
        total = ron_min(doc->total, keep);

        ron_json_doc_free(doc);
        (void) ron_json_doc_grow(doc, total);

        return;
    }

    doc->pos = (uint8_t *) (doc->chunk + 1);
}


static bool
ron_json_doc_grow(ron_json_doc_t *doc, size_t size)
{
    ron_json_chunk_t  *chunk;

    size = ron_max(size, RON_JSON_CHUNK_MIN);
    chunk = malloc(size);

    if (chunk == NULL) {
        return false;
    }

    chunk->next = doc->chunk;
    chunk->size = size;

    doc->chunk = chunk;
    doc->pos = (uint8_t *) (chunk + 1);
    doc->end = (uint8_t *) chunk + size;
    doc->total += size;

    return true;
}


static void *
ron_json_doc_alloc(ron_json_doc_t *doc, size_t size)
{
    size_t    want;
    uint8_t  *ptr;

    size = (size + RON_JSON_ALIGN - 1) & ~(size_t) (RON_JSON_ALIGN - 1);

    if ((size_t) (doc->end - doc->pos) < size) {
        want = size + sizeof(ron_json_chunk_t);

        if (doc->chunk != NULL) {
            want = ron_max(want, 2 * doc->chunk->size);
        }

        if (!ron_json_doc_grow(doc, want)) {
            return NULL;
        }
    }

    ptr = doc->pos;
    doc->pos += size;

    return ptr;
}


/* Never NULL: without memory the parse is over. */
static void *
ron_json_alloc(ron_json_parser_t *p, size_t size)
{
    void  *ptr;

    ptr = ron_json_doc_alloc(p->doc, size);

    if (ptr == NULL) {
        longjmp(p->no_memory, 1);
    }

    return ptr;
}


/* A block for yajl has its size in front of it. */
static void *
ron_json_yajl_malloc(void *ctx, size_t size)
{
    size_t  *ptr;

    ptr = ron_json_alloc(ctx, size + RON_JSON_ALIGN);
    *ptr = size;

    return (uint8_t *) ptr + RON_JSON_ALIGN;
}


static void *
ron_json_yajl_realloc(void *ctx, void *ptr, size_t size)
{
    void    *fresh;
    size_t   old;

    fresh = ron_json_yajl_malloc(ctx, size);

    if (ptr != NULL) {
        memcpy(&old, (uint8_t *) ptr - RON_JSON_ALIGN, sizeof(size_t));
        memcpy(fresh, ptr, ron_min(old, size));
    }

    return fresh;
}


static void
ron_json_yajl_free(void *ctx, void *ptr)
{
    (void) ctx;
    (void) ptr;
}
