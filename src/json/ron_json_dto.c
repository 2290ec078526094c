
#include "ron_amount.h"
#include "ron_json.h"


static const ron_json_field_t *ron_json_field(const ron_json_field_t *fields,
    size_t fields_n, ron_str_t name, size_t hint);
static const char *ron_json_field_set(const ron_json_field_t *field,
    const ron_json_t *member, uint8_t *dst);
static const char *ron_json_field_string(const ron_json_field_t *field,
    const ron_json_t *member, uint8_t *dst);
static const char *ron_json_field_amount(const ron_json_field_t *field,
    const ron_json_t *member, uint8_t *dst);
static const char *ron_json_field_u64(const ron_json_field_t *field,
    const ron_json_t *member, uint8_t *dst);
static const char *ron_json_field_node(const ron_json_field_t *field,
    const ron_json_t *member, uint8_t *dst);
static size_t ron_json_field_size(ron_json_field_kind_t kind);


ron_status_t
ron_json_bind(const ron_json_t *object, const ron_json_field_t *fields,
    size_t fields_n, void *dst, uint64_t *present, ron_json_error_t *err)
{
    size_t                   i, hint;
    uint64_t                 seen;
    const char              *reason;
    const ron_json_t        *member;
    const ron_json_field_t  *field;

    RON_ASSERT(fields_n <= RON_JSON_FIELDS_MAX);

    if (present != NULL) {
        *present = 0;
    }

    if (ron_json_kind(object) != RON_JSON_OBJECT) {
        return ron_json_refuse(err, "not an object", ron_json_name(object),
                               object->off);
    }

    seen = 0;
    hint = 0;

    for (member = ron_json_child(object); member; member = member->next) {
        field = ron_json_field(fields, fields_n, ron_json_name(member), hint);

        if (field == NULL) {
            return ron_json_refuse(err, "unknown member",
                                   ron_json_name(member), member->off);
        }

        reason = ron_json_field_set(field, member,
                                    (uint8_t *) dst + field->off);

        if (reason != NULL) {
            return ron_json_refuse(err, reason, field->name, member->off);
        }

        seen |= UINT64_C(1) << (field - fields);
        hint = (size_t) (field - fields) + 1;
    }

    for (i = 0; i < fields_n; i++) {
        if (seen >> i & 1) {
            continue;
        }

        if (fields[i].flags & RON_JSON_REQUIRED) {
            return ron_json_refuse(err, "missing member", fields[i].name,
                                   object->off);
        }

        memset((uint8_t *) dst + fields[i].off, 0,
               ron_json_field_size(fields[i].kind));
    }

    if (present != NULL) {
        *present = seen;
    }

    return RON_OK;
}


/* Members mostly come in the order of the table: look behind the last one. */
static const ron_json_field_t *
ron_json_field(const ron_json_field_t *fields, size_t fields_n, ron_str_t name,
    size_t hint)
{
    size_t  i, n;

    for (n = 0, i = hint; n < fields_n; n++, i++) {
        if (i >= fields_n) {
            i = 0;
        }

        if (ron_str_eq(fields[i].name, name)) {
            return &fields[i];
        }
    }

    return NULL;
}


/* NULL, or why the member cannot be what the table says. */
static const char *
ron_json_field_set(const ron_json_field_t *field, const ron_json_t *member,
    uint8_t *dst)
{
    bool  v;

    switch (field->kind) {

    case RON_JSON_F_STRING:
        return ron_json_field_string(field, member, dst);

    case RON_JSON_F_AMOUNT:
    case RON_JSON_F_AMOUNT_INT:
        return ron_json_field_amount(field, member, dst);

    case RON_JSON_F_U64:
        return ron_json_field_u64(field, member, dst);

    case RON_JSON_F_BOOL:

        if (ron_json_kind(member) != RON_JSON_BOOL) {
            return "not a boolean";
        }

        v = ron_json_bool(member);
        memcpy(dst, &v, sizeof(bool));

        return NULL;

    case RON_JSON_F_ARRAY:
    case RON_JSON_F_OBJECT:
    case RON_JSON_F_ANY:
        return ron_json_field_node(field, member, dst);
    }

    RON_ASSERT(!"a kind of field");

    return "";
}


static const char *
ron_json_field_string(const ron_json_field_t *field, const ron_json_t *member,
    uint8_t *dst)
{
    ron_str_t  s;

    if (ron_json_kind(member) != RON_JSON_STRING) {
        return "not a string";
    }

    s = ron_json_text(member);

    if (s.len < field->min) {
        return "string too short";
    }

    if (field->max != 0 && s.len > field->max) {
        return "string too long";
    }

    if (field->check != NULL && !field->check(s)) {
        return "malformed string";
    }

    memcpy(dst, &s, sizeof(ron_str_t));

    return NULL;
}


static const char *
ron_json_field_amount(const ron_json_field_t *field, const ron_json_t *member,
    uint8_t *dst)
{
    ron_u128_t    v;
    ron_status_t  rc;

    if (ron_json_kind(member) != RON_JSON_STRING
        && (field->kind != RON_JSON_F_AMOUNT_INT
            || ron_json_kind(member) != RON_JSON_NUMBER))
    {
        return "not an amount";
    }

    rc = ron_amount_parse(ron_json_text(member), &v);

    if (rc != RON_OK) {
        return rc == RON_ERANGE ? "amount out of range" : "malformed amount";
    }

    if (v < field->min || (field->max != 0 && v > field->max)) {
        return "amount out of range";
    }

    memcpy(dst, &v, sizeof(ron_u128_t));

    return NULL;
}


static const char *
ron_json_field_u64(const ron_json_field_t *field, const ron_json_t *member,
    uint8_t *dst)
{
    uint64_t      v;
    ron_status_t  rc;

    rc = ron_json_u64(member, &v);

    if (rc == RON_EINVAL) {
        return "not an integer";
    }

    if (rc != RON_OK || v < field->min
        || (field->max != 0 && v > field->max))
    {
        return "integer out of range";
    }

    memcpy(dst, &v, sizeof(uint64_t));

    return NULL;
}


static const char *
ron_json_field_node(const ron_json_field_t *field, const ron_json_t *member,
    uint8_t *dst)
{
    ron_json_kind_t     kind;
    const ron_json_t  **slot;

    kind = ron_json_kind(member);

    if (field->kind == RON_JSON_F_ARRAY && kind != RON_JSON_ARRAY) {
        return "not an array";
    }

    if (field->kind == RON_JSON_F_OBJECT && kind != RON_JSON_OBJECT) {
        return "not an object";
    }

    if (field->kind != RON_JSON_F_ANY) {
        if (ron_json_n(member) < field->min) {
            return "too few elements";
        }

        if (field->max != 0 && ron_json_n(member) > field->max) {
            return "too many elements";
        }
    }

    slot = (void *) dst;
    *slot = member;

    return NULL;
}


static size_t
ron_json_field_size(ron_json_field_kind_t kind)
{
    switch (kind) {

    case RON_JSON_F_STRING:
        return sizeof(ron_str_t);

    case RON_JSON_F_AMOUNT:
    case RON_JSON_F_AMOUNT_INT:
        return sizeof(ron_u128_t);

    case RON_JSON_F_U64:
        return sizeof(uint64_t);

    case RON_JSON_F_BOOL:
        return sizeof(bool);

    case RON_JSON_F_ARRAY:
    case RON_JSON_F_OBJECT:
    case RON_JSON_F_ANY:
        return sizeof(const ron_json_t *);
    }

    RON_ASSERT(!"a kind of field");

    return 0;
}


const ron_json_t *
ron_json_get(const ron_json_t *object, ron_str_t name)
{
    const ron_json_t  *member;

    if (ron_json_kind(object) != RON_JSON_OBJECT) {
        return NULL;
    }

    for (member = ron_json_child(object); member; member = member->next) {
        if (ron_str_eq(ron_json_name(member), name)) {
            return member;
        }
    }

    return NULL;
}


ron_status_t
ron_json_u64(const ron_json_t *node, uint64_t *v)
{
    ron_u128_t    wide;
    ron_status_t  rc;

    *v = 0;

    if (ron_json_kind(node) != RON_JSON_NUMBER) {
        return RON_EINVAL;
    }

    /* the text of an amount is that of an integer, only with more room */

    rc = ron_amount_parse(ron_json_text(node), &wide);

    if (rc != RON_OK) {
        return rc;
    }

    if (wide > UINT64_MAX) {
        return RON_ERANGE;
    }

    *v = (uint64_t) wide;

    return RON_OK;
}
