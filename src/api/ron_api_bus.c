
#include "ron_api_bus.h"

#include "ron_amount.h"
#include "ron_codec.h"
#include "ron_entry.h"


static void ron_api_bus_hex(ron_buf_t *out, ron_str_t name,
    const uint8_t *bytes, size_t len);
static ron_status_t ron_api_bus_head(ron_str_t head);
static ron_status_t ron_api_bus_parse(ron_api_bus_reader_t *reader,
    ron_api_bus_event_t *event);
static ron_str_t ron_api_bus_field(ron_str_t text, ron_str_t name);
static ron_status_t ron_api_bus_data(ron_json_doc_t *doc, ron_str_t text,
    ron_api_bus_event_t *event);
static ron_status_t ron_api_bus_member(const ron_json_t *object,
    ron_str_t name, uint64_t *v);
static ron_status_t ron_api_bus_bytes(const ron_json_t *object,
    ron_str_t name, uint8_t *to, size_t len);


static const struct {
    ron_str_t            name;
    ron_api_bus_type_t   type;
} ron_api_bus_names[] = {
    { ron_str("hello"), RON_API_BUS_HELLO },
    { ron_str("commit"), RON_API_BUS_COMMIT },
    { ron_str("beat"), RON_API_BUS_BEAT },
    { ron_str("lagged"), RON_API_BUS_LAGGED }
};


/* ---- writing ------------------------------------------------------------ */

void
ron_api_bus_put(ron_buf_t *out, const ron_api_bus_event_t *event)
{
    size_t  i;

    for (i = 0; i < ron_array_n(ron_api_bus_names); i++) {
        if (ron_api_bus_names[i].type == event->type) {
            ron_buf_put_cstr(out, "event: ");
            ron_buf_put(out, ron_api_bus_names[i].name.data,
                        ron_api_bus_names[i].name.len);
        }
    }

    if (event->type == RON_API_BUS_COMMIT) {
        ron_buf_printf(out, "\nid: %llu", (unsigned long long) event->seq);
    }

    ron_buf_put_cstr(out, "\ndata: {");
    ron_json_put_member_u64(out, ron_str("seq"), event->seq);

    if (event->type == RON_API_BUS_HELLO || event->type == RON_API_BUS_BEAT) {
        ron_json_put_member_u64(out, ron_str("us"), event->us);
    }

    if (event->type != RON_API_BUS_BEAT) {
        ron_api_bus_hex(out, ron_str("root"), event->root.b, RON_HASH_LEN);
    }

    switch (event->type) {

    case RON_API_BUS_HELLO:
        ron_api_bus_hex(out, ron_str("check"), event->check,
                        RON_BUS_CHECK_LEN);
        ron_json_put_member_bool(out, ron_str("joined"), event->joined);
        break;

    case RON_API_BUS_COMMIT:
        ron_json_put_member_u64(out, ron_str("count"), event->count);
        ron_api_bus_hex(out, ron_str("touched"), event->touched.b,
                        RON_BUS_FILTER_LEN);
        break;

    case RON_API_BUS_LAGGED:
        ron_json_put_member_u64(out, ron_str("lost"), event->lost);
        break;

    default:
        break;
    }

    ron_buf_put_cstr(out, "}\n\n");
}


static void
ron_api_bus_hex(ron_buf_t *out, ron_str_t name, const uint8_t *bytes,
    size_t len)
{
    ron_json_put_key(out, name);
    ron_json_put_hex(out, (ron_str_t) { len, bytes });
}


/* ---- reading ------------------------------------------------------------ */

void
ron_api_bus_reader_init(ron_api_bus_reader_t *reader)
{
    reader->open = false;
    reader->len = 0;
    ron_json_doc_init(&reader->doc, 0);
}


void
ron_api_bus_reader_free(ron_api_bus_reader_t *reader)
{
    ron_json_doc_free(&reader->doc);
    reader->len = 0;
}


ron_status_t
ron_api_bus_get(ron_api_bus_reader_t *reader, ron_str_t *in,
    ron_api_bus_event_t *event)
{
    size_t         max;
    ron_str_t      end;
    ron_status_t   rc;

    while (in->len > 0) {
        end = reader->open ? ron_str("\n\n") : ron_str("\r\n\r\n");
        max = reader->open ? RON_API_BUS_EVENT_MAX : RON_API_BUS_HEAD_MAX;

        if (reader->len == max) {
            return RON_EINVAL;
        }

        reader->buf[reader->len++] = *in->data++;
        in->len--;

        if (reader->len < end.len
            || memcmp(reader->buf + reader->len - end.len, end.data, end.len)
               != 0)
        {
            continue;
        }

        if (reader->open) {
            rc = ron_api_bus_parse(reader, event);

        } else {
            rc = ron_api_bus_head((ron_str_t) { reader->len, reader->buf });
            reader->open = true;
            event->type = RON_API_BUS_OPEN;
        }

        reader->len = 0;

        if (rc != RON_AGAIN) {
            return rc;
        }
    }

    return RON_AGAIN;
}


/* It was asked for with HTTP/1.0: there are no chunks. */

static ron_status_t
ron_api_bus_head(ron_str_t head)
{
    return head.len > 13 && memcmp(head.data, "HTTP/1.", 7) == 0
           && memcmp(head.data + 8, " 200 ", 5) == 0
           && memmem(head.data, head.len, "text/event-stream", 17) != NULL
           ? RON_OK : RON_EINVAL;
}


static ron_status_t
ron_api_bus_parse(ron_api_bus_reader_t *reader, ron_api_bus_event_t *event)
{
    size_t     i;
    ron_str_t  text, name, data;

    text = (ron_str_t) { reader->len, reader->buf };
    name = ron_api_bus_field(text, ron_str("event: "));
    data = ron_api_bus_field(text, ron_str("data: "));

    memset(event, 0, sizeof(ron_api_bus_event_t));

    for (i = 0; i < ron_array_n(ron_api_bus_names); i++) {
        if (ron_str_eq(name, ron_api_bus_names[i].name)) {
            event->type = ron_api_bus_names[i].type;
            return ron_api_bus_data(&reader->doc, data, event);
        }
    }

    return RON_AGAIN;
}


/* The rest of the first line that begins so. */

static ron_str_t
ron_api_bus_field(ron_str_t text, ron_str_t name)
{
    ron_str_t       line;
    const uint8_t  *p;

    while (text.len > 0) {
        p = memchr(text.data, '\n', text.len);
        line = (ron_str_t) { p ? (size_t) (p - text.data) : text.len,
                             text.data };

        if (line.len >= name.len
            && memcmp(line.data, name.data, name.len) == 0)
        {
            return (ron_str_t) { line.len - name.len, line.data + name.len };
        }

        text.data += ron_min(line.len + 1, text.len);
        text.len -= ron_min(line.len + 1, text.len);
    }

    return ron_null_str;
}


static ron_status_t
ron_api_bus_data(ron_json_doc_t *doc, ron_str_t text,
    ron_api_bus_event_t *event)
{
    ron_status_t        rc;
    ron_json_error_t    err;
    const ron_json_t   *o, *joined;

    rc = ron_json_parse(doc, text, NULL, &o, &err);

    if (rc != RON_OK) {
        return rc;
    }

    if (ron_json_kind(o) != RON_JSON_OBJECT
        || ron_api_bus_member(o, ron_str("seq"), &event->seq) != RON_OK)
    {
        return RON_EINVAL;
    }

    if ((event->type == RON_API_BUS_HELLO || event->type == RON_API_BUS_BEAT)
        && ron_api_bus_member(o, ron_str("us"), &event->us) != RON_OK)
    {
        return RON_EINVAL;
    }

    if (event->type == RON_API_BUS_BEAT) {
        return RON_OK;
    }

    if (ron_api_bus_bytes(o, ron_str("root"), event->root.b, RON_HASH_LEN)
        != RON_OK)
    {
        return RON_EINVAL;
    }

    switch (event->type) {

    case RON_API_BUS_HELLO:
        joined = ron_json_get(o, ron_str("joined"));

        if (joined == NULL || ron_json_kind(joined) != RON_JSON_BOOL) {
            return RON_EINVAL;
        }

        event->joined = ron_json_bool(joined);

        return ron_api_bus_bytes(o, ron_str("check"), event->check,
                                 RON_BUS_CHECK_LEN);

    case RON_API_BUS_COMMIT:
        if (ron_api_bus_member(o, ron_str("count"), &event->count) != RON_OK
            || event->count == 0 || event->count > event->seq)
        {
            return RON_EINVAL;
        }

        return ron_api_bus_bytes(o, ron_str("touched"), event->touched.b,
                                 RON_BUS_FILTER_LEN);

    default:
        return ron_api_bus_member(o, ron_str("lost"), &event->lost);
    }
}


/* What a ledger counts, JSON can say (RON_SEQ_MAX): more is none of it. */

static ron_status_t
ron_api_bus_member(const ron_json_t *object, ron_str_t name, uint64_t *v)
{
    const ron_json_t  *node;

    node = ron_json_get(object, name);

    return node != NULL && ron_json_u64(node, v) == RON_OK
           && *v <= RON_SEQ_MAX ? RON_OK : RON_EINVAL;
}


static ron_status_t
ron_api_bus_bytes(const ron_json_t *object, ron_str_t name, uint8_t *to,
    size_t len)
{
    const ron_json_t  *node;

    node = ron_json_get(object, name);

    if (node == NULL || ron_json_kind(node) != RON_JSON_STRING) {
        return RON_EINVAL;
    }

    return ron_hex_decode(ron_json_text(node), to, len);
}


ron_status_t
ron_api_bus_balance(ron_json_doc_t *doc, ron_str_t body,
    ron_zone_balance_t *balance, uint64_t *stale_ms)
{
    ron_json_error_t    err;
    const ron_json_t   *o, *available, *held;

    memset(balance, 0, sizeof(ron_zone_balance_t));
    *stale_ms = 0;

    if (ron_json_parse(doc, body, NULL, &o, &err) != RON_OK
        || ron_json_kind(o) != RON_JSON_OBJECT)
    {
        return RON_EINVAL;
    }

    available = ron_json_get(o, ron_str("amount_minor"));
    held = ron_json_get(o, ron_str("held_minor"));

    if (available == NULL || held == NULL
        || ron_json_kind(available) != RON_JSON_STRING
        || ron_json_kind(held) != RON_JSON_STRING
        || ron_amount_parse(ron_json_text(available), &balance->available)
           != RON_OK
        || ron_amount_parse(ron_json_text(held), &balance->held) != RON_OK
        || ron_api_bus_member(o, ron_str("nonce"), &balance->nonce) != RON_OK)
    {
        return RON_EINVAL;
    }

    return ron_api_bus_member(o, ron_str("stale_ms"), stale_ms);
}
