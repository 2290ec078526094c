
/*
 * Strict JSON in, small JSON out.
 *
 * Reading: ron_json_parse() turns one text into a tree of nodes.  Beyond the
 * grammar of RFC 8259 it refuses what two readers could understand in two
 * ways: invalid UTF-8, lone surrogates, NUL in a string, duplicate members,
 * a byte order mark, and anything after the value; and what could exhaust us:
 * depth and number of values are bounded.  Numbers stay text and are never
 * converted to floating point.  ron_json_bind() then maps an object onto a C
 * struct by a static table, refusing members that are not in it.
 *
 * Writing: ron_json_put_*() append to a buffer.  Strings are escaped as RFC
 * 8785 says, so output whose members are written in order is canonical.
 */

#ifndef RON_JSON_H
#define RON_JSON_H


#include "ron.h"
#include "ron_buf.h"


#define RON_JSON_DEPTH      16          /* containers in containers */
#define RON_JSON_DEPTH_MAX  64          /* what limits may raise it to */
#define RON_JSON_LEN        (1024 * 1024)
#define RON_JSON_NODES      131072      /* 40 bytes each */
#define RON_JSON_NAME_MAX   64
#define RON_JSON_KEEP       (8 * 1024 * 1024)


typedef enum {
    RON_JSON_NULL = 1,
    RON_JSON_BOOL,
    RON_JSON_NUMBER,
    RON_JSON_STRING,
    RON_JSON_ARRAY,
    RON_JSON_OBJECT
} ron_json_kind_t;


/* Read it through the functions below. */

typedef struct ron_json_s  ron_json_t;

struct ron_json_s {
    const ron_json_t      *next;        /* in the same container, or NULL */
    union {
        const ron_json_t  *child;       /* array, object: the first, or NULL */
        const uint8_t     *data;        /* string, number */
    } u;
    const uint8_t         *name;        /* of a member, else NULL */
    uint32_t               name_len;
    uint32_t               n;           /* bytes, children, or the boolean */
    uint32_t               off;         /* of the value in the text */
    uint8_t                kind;
};


typedef struct {
    size_t  max_len;        /* bytes of text; 0 in any field: the default */
    size_t  max_depth;
    size_t  max_nodes;
} ron_json_limits_t;


/*
 * `reason` is a constant phrase.  `name` is the member that it is about, or
 * empty; it comes from the text, so everything that is not visible ASCII is a
 * question mark and a long one is cut.
 */

typedef struct {
    const char  *reason;
    size_t       off;
    char         name[RON_JSON_NAME_MAX + 1];
} ron_json_error_t;


/*
 * A document owns the memory of one tree.  The nodes point into it and into
 * the text, and live until the next parse with the same document.  Memory is
 * kept from parse to parse, at most `keep` bytes of it, so that a document
 * that has seen a text of some size takes the next such one without malloc().
 */

typedef struct ron_json_chunk_s  ron_json_chunk_t;

typedef struct {
    ron_json_chunk_t  *chunk;           /* the newest, linked to the older */
    uint8_t           *pos;
    uint8_t           *end;
    size_t             total;
    size_t             keep;
} ron_json_doc_t;


/*
 * Fills *err; `name` may be empty.  Returns RON_EINVAL.  For callers that find
 * something wrong in what the table cannot say.
 */
ron_status_t ron_json_refuse(ron_json_error_t *err, const char *reason,
    ron_str_t name, size_t off);


/* keep 0: RON_JSON_KEEP.  A document that is all zeros is one, too. */
void ron_json_doc_init(ron_json_doc_t *doc, size_t keep);
void ron_json_doc_free(ron_json_doc_t *doc);

/*
 * RON_EINVAL and a filled *err when the text is not acceptable, RON_ENOMEM.
 * lim may be NULL.  *root is NULL on failure.
 */
ron_status_t ron_json_parse(ron_json_doc_t *doc, ron_str_t text,
    const ron_json_limits_t *lim, const ron_json_t **root,
    ron_json_error_t *err);


static inline ron_json_kind_t
ron_json_kind(const ron_json_t *node)
{
    return (ron_json_kind_t) node->kind;
}

/* The bytes of a string, or the text of a number. */
static inline ron_str_t
ron_json_text(const ron_json_t *node)
{
    return (ron_str_t) { node->n, node->u.data };
}

static inline ron_str_t
ron_json_name(const ron_json_t *node)
{
    return (ron_str_t) { node->name_len, node->name };
}

static inline bool
ron_json_bool(const ron_json_t *node)
{
    return node->n != 0;
}

/* The first element or member of a container, in the order of the text. */
static inline const ron_json_t *
ron_json_child(const ron_json_t *node)
{
    return node->u.child;
}

static inline const ron_json_t *
ron_json_next(const ron_json_t *node)
{
    return node->next;
}

/* The number of elements or members of a container. */
static inline size_t
ron_json_n(const ron_json_t *node)
{
    return node->n;
}

/* The member of an object, or NULL. */
const ron_json_t *ron_json_get(const ron_json_t *object, ron_str_t name);

/* A non-negative JSON integer: RON_EINVAL for any other, RON_ERANGE. */
ron_status_t ron_json_u64(const ron_json_t *node, uint64_t *v);


/* ---- binding an object to a struct -------------------------------------- */

typedef enum {
    RON_JSON_F_STRING = 1,  /* ron_str_t */
    RON_JSON_F_AMOUNT,      /* ron_u128_t from a string */
    RON_JSON_F_AMOUNT_INT,  /* ron_u128_t from a string or an integer */
    RON_JSON_F_U64,         /* uint64_t from an integer */
    RON_JSON_F_BOOL,        /* bool */
    RON_JSON_F_ARRAY,       /* const ron_json_t * */
    RON_JSON_F_OBJECT,      /* const ron_json_t * */
    RON_JSON_F_ANY          /* const ron_json_t * */
} ron_json_field_kind_t;


#define RON_JSON_REQUIRED    0x01

#define RON_JSON_FIELDS_MAX  64


typedef struct {
    ron_str_t               name;
    ron_json_field_kind_t   kind;
    unsigned                flags;
    uint64_t                min;    /* bytes, elements, or the integer itself */
    uint64_t                max;    /* 0: no bound */
    size_t                  off;    /* offsetof() in the struct */
    bool                  (*check)(ron_str_t s);    /* strings; may be NULL */
} ron_json_field_t;


/* One row: RON_JSON_FIELD(tx_t, memo, "memo", STRING, 0, 0, 256, NULL) */
#define RON_JSON_FIELD(type, field, text, k, flags, min, max, check)          \
    { ron_str(text), RON_JSON_F_##k, (flags), (min), (max),                   \
      offsetof(type, field), (check) }


/*
 * Fills the fields of `dst` that the table names; those whose member is absent
 * are zero; on failure they are anything.  Bit i of *present (which may be
 * NULL) says that member i of the table was there.  RON_EINVAL and *err:
 * unknown member, wrong type, missing member, out of bounds.  null is a wrong
 * type for all but RON_JSON_F_ANY.
 */
ron_status_t ron_json_bind(const ron_json_t *object,
    const ron_json_field_t *fields, size_t fields_n, void *dst,
    uint64_t *present, ron_json_error_t *err);


/* ---- writing ------------------------------------------------------------ */

/* `s` is valid UTF-8. */
void ron_json_put_string(ron_buf_t *b, ron_str_t s);
void ron_json_put_u64(ron_buf_t *b, uint64_t v);
void ron_json_put_bool(ron_buf_t *b, bool v);

/* A string of digits, as amounts are on the wire. */
void ron_json_put_amount(ron_buf_t *b, ron_u128_t v);

/* A string of lower-case hexadecimal. */
void ron_json_put_hex(ron_buf_t *b, ron_str_t bytes);

/* Puts a comma unless it would be the first thing in its container. */
void ron_json_put_comma(ron_buf_t *b);

/* Comma if needed, name and colon; `name` needs no escaping. */
void ron_json_put_key(ron_buf_t *b, ron_str_t name);

void ron_json_put_member(ron_buf_t *b, ron_str_t name, ron_str_t s);
void ron_json_put_member_u64(ron_buf_t *b, ron_str_t name, uint64_t v);
void ron_json_put_member_bool(ron_buf_t *b, ron_str_t name, bool v);
void ron_json_put_member_amount(ron_buf_t *b, ron_str_t name, ron_u128_t v);


#endif /* RON_JSON_H */
