
#include "ron_amount.h"
#include "ron_codec.h"
#include "ron_json.h"


#define RON_JSON_HEX_STEP  64


static inline uint64_t ron_json_special(uint64_t w);
static bool ron_json_plain(ron_str_t s);
static uint8_t *ron_json_room(ron_buf_t *b, size_t n);
static uint8_t *ron_json_key_at(const ron_buf_t *b, uint8_t *p,
    ron_str_t name);
static void ron_json_put_escape(ron_buf_t *b, uint8_t c);


/*
 * 0: as it is; 'u': \u00xx; else the letter after the backslash.  DEL and
 * everything over it is as it is.
 */

static const uint8_t  ron_json_escapes[256] = {
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    'b', 't', 'n', 'u', 'f', 'r', 'u', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    ['"'] = '"',
    ['\\'] = '\\'
};


/* The bytes of a word that need an escape, in their top bits. */

static inline uint64_t
ron_json_special(uint64_t w)
{
    uint64_t  quote, slash;

    static const uint64_t  ones = UINT64_C(0x0101010101010101);
    static const uint64_t  tops = UINT64_C(0x8080808080808080);

    /* a byte that is zero, or under the bound, borrows into its top bit */

    quote = w ^ (ones * '"');
    slash = w ^ (ones * '\\');

    return (((w - ones * 0x20) & ~w) | ((quote - ones) & ~quote)
            | ((slash - ones) & ~slash)) & tops;
}


/* Nothing in it needs an escape: eight bytes at a time, the last ones twice. */

static bool
ron_json_plain(ron_str_t s)
{
    size_t    i;
    uint64_t  w, found;

    if (s.len < 8) {
        for (i = 0; i < s.len; i++) {
            if (ron_json_escapes[s.data[i]] != 0) {
                return false;
            }
        }

        return true;
    }

    memcpy(&w, s.data + s.len - 8, 8);
    found = ron_json_special(w);

    for (i = 0; i + 8 < s.len; i += 8) {
        memcpy(&w, s.data + i, 8);
        found |= ron_json_special(w);
    }

    return found == 0;
}


/*
 * Where n bytes can be written without growing, or NULL: then they are put
 * one by one, and only what really does not fit fails.
 */

static uint8_t *
ron_json_room(ron_buf_t *b, size_t n)
{
    if (b->failed || b->data == NULL || b->cap - b->len < n) {
        return NULL;
    }

    return b->data + b->len;
}


/* Comma if needed, name and colon, at p, which is the end of b. */

static uint8_t *
ron_json_key_at(const ron_buf_t *b, uint8_t *p, ron_str_t name)
{
    uint8_t  last;

    if (b->len != 0) {
        last = p[-1];

        if (last != '{' && last != '[' && last != ':' && last != ',') {
            *p++ = ',';
        }
    }

    *p++ = '"';
    memcpy(p, name.data, name.len);
    p += name.len;
    *p++ = '"';
    *p++ = ':';

    return p;
}


void
ron_json_put_string(ron_buf_t *b, ron_str_t s)
{
    const uint8_t  *pos, *from, *end;

    ron_buf_put_u8(b, '"');

    if (s.len == 0) {
        ron_buf_put_u8(b, '"');
        return;
    }

    from = s.data;
    end = from + s.len;

    for (pos = from; pos < end; pos++) {
        if (ron_json_escapes[*pos] == 0) {
            continue;
        }

        ron_buf_put(b, from, (size_t) (pos - from));
        ron_json_put_escape(b, *pos);
        from = pos + 1;
    }

    if (end != from) {
        ron_buf_put(b, from, (size_t) (end - from));
    }

    ron_buf_put_u8(b, '"');
}


static void
ron_json_put_escape(ron_buf_t *b, uint8_t c)
{
    uint8_t            escape[6];
    static const char  digits[] = "0123456789abcdef";

    escape[0] = '\\';
    escape[1] = ron_json_escapes[c];

    if (escape[1] != 'u') {
        ron_buf_put(b, escape, 2);
        return;
    }

    escape[2] = '0';
    escape[3] = '0';
    escape[4] = (uint8_t) digits[c >> 4];
    escape[5] = (uint8_t) digits[c & 15];

    ron_buf_put(b, escape, 6);
}


void
ron_json_put_u64(ron_buf_t *b, uint64_t v)
{
    char    digits[RON_AMOUNT_MAX];
    size_t  len;

    len = ron_amount_print(v, digits);
    ron_buf_put(b, digits, len);
}


void
ron_json_put_bool(ron_buf_t *b, bool v)
{
    ron_buf_put_str(b, v ? ron_str("true") : ron_str("false"));
}


void
ron_json_put_amount(ron_buf_t *b, ron_u128_t v)
{
    char    text[RON_AMOUNT_MAX + 2];
    size_t  len;

    text[0] = '"';
    len = 1 + ron_amount_print(v, text + 1);
    text[len++] = '"';

    ron_buf_put(b, text, len);
}


void
ron_json_put_hex(ron_buf_t *b, ron_str_t bytes)
{
    char       text[2 * RON_JSON_HEX_STEP];
    size_t     len;
    ron_str_t  part;

    ron_buf_put_u8(b, '"');

    while (bytes.len != 0) {
        part.data = bytes.data;
        part.len = ron_min(bytes.len, RON_JSON_HEX_STEP);

        len = ron_hex_encode(part, text);
        ron_buf_put(b, text, len);

        bytes.data += part.len;
        bytes.len -= part.len;
    }

    ron_buf_put_u8(b, '"');
}


/*
 * The last byte tells: outside of strings only a container that was just
 * opened, or the colon of a member, can end in one of these.  A string ends in
 * its quote.
 */
void
ron_json_put_comma(ron_buf_t *b)
{
    uint8_t  last;

    if (b->len == 0 || b->failed) {
        return;
    }

    last = b->data[b->len - 1];

    if (last != '{' && last != '[' && last != ':' && last != ',') {
        ron_buf_put_u8(b, ',');
    }
}


void
ron_json_put_key(ron_buf_t *b, ron_str_t name)
{
    uint8_t  *p;

    p = ron_json_room(b, name.len + 4);

    if (p != NULL) {
        b->len = (size_t) (ron_json_key_at(b, p, name) - b->data);
        return;
    }

    ron_json_put_comma(b);

    ron_buf_put_u8(b, '"');
    ron_buf_put_str(b, name);
    ron_buf_put(b, "\":", 2);
}


void
ron_json_put_member(ron_buf_t *b, ron_str_t name, ron_str_t s)
{
    uint8_t  *p;

    p = ron_json_room(b, name.len + s.len + 6);

    if (p != NULL && s.len != 0 && ron_json_plain(s)) {
        p = ron_json_key_at(b, p, name);
        *p++ = '"';
        memcpy(p, s.data, s.len);
        p += s.len;
        *p++ = '"';
        b->len = (size_t) (p - b->data);
        return;
    }

    ron_json_put_key(b, name);
    ron_json_put_string(b, s);
}


void
ron_json_put_member_u64(ron_buf_t *b, ron_str_t name, uint64_t v)
{
    uint8_t  *p;

    p = ron_json_room(b, name.len + 4 + RON_AMOUNT_MAX);

    if (p != NULL) {
        p = ron_json_key_at(b, p, name);
        p += ron_amount_print(v, (char *) p);
        b->len = (size_t) (p - b->data);
        return;
    }

    ron_json_put_key(b, name);
    ron_json_put_u64(b, v);
}


void
ron_json_put_member_bool(ron_buf_t *b, ron_str_t name, bool v)
{
    ron_json_put_key(b, name);
    ron_json_put_bool(b, v);
}


void
ron_json_put_member_amount(ron_buf_t *b, ron_str_t name, ron_u128_t v)
{
    ron_json_put_key(b, name);
    ron_json_put_amount(b, v);
}
