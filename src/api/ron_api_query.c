
#include "ron_amount.h"
#include "ron_api.h"


static int ron_api_hex(uint8_t c);
static ron_status_t ron_api_unescape(ron_str_t in, uint8_t **room,
    ron_str_t *out);


ron_status_t
ron_api_u64(ron_str_t s, uint64_t *v)
{
    ron_u128_t    wide;
    ron_status_t  rc;

    *v = 0;

    rc = ron_amount_parse(s, &wide);
    if (rc != RON_OK) {
        return rc;
    }

    if (wide > UINT64_MAX) {
        return RON_ERANGE;
    }

    *v = (uint64_t) wide;

    return RON_OK;
}


ron_status_t
ron_api_query(ron_str_t query, uint8_t *room, ron_api_arg_t *args, size_t *n)
{
    bool            plain;
    size_t          max, i;
    ron_str_t       part, name, value;
    const uint8_t  *p, *end, *amp, *eq;

    max = *n;
    *n = 0;

    p = query.data;
    end = p + query.len;

    plain = query.len == 0 || (memchr(p, '%', query.len) == NULL
                               && memchr(p, '+', query.len) == NULL);

    while (p < end) {
        amp = memchr(p, '&', (size_t) (end - p));
        amp = amp != NULL ? amp : end;

        part = (ron_str_t) { (size_t) (amp - p), p };
        p = amp < end ? amp + 1 : end;

        if (part.len == 0) {
            continue;
        }

        eq = memchr(part.data, '=', part.len);
        name = part;
        value = ron_str("");

        if (eq != NULL) {
            name.len = (size_t) (eq - part.data);
            value.data = eq + 1;
            value.len = part.len - name.len - 1;
        }

        if (*n == max) {
            return RON_EINVAL;
        }

        if (plain) {
            args[*n].name = name;
            args[*n].value = value;

        } else if (ron_api_unescape(name, &room, &args[*n].name) != RON_OK
                   || ron_api_unescape(value, &room, &args[*n].value)
                      != RON_OK)
        {
            return RON_EINVAL;
        }

        for (i = 0; i < *n; i++) {
            if (ron_str_eq(args[i].name, args[*n].name)) {
                return RON_EINVAL;
            }
        }

        (*n)++;
    }

    return RON_OK;
}


/* What comes out is never longer than what went in. */
static ron_status_t
ron_api_unescape(ron_str_t in, uint8_t **room, ron_str_t *out)
{
    int       high, low;
    size_t    i;
    uint8_t  *p;

    p = *room;
    out->data = p;

    for (i = 0; i < in.len; i++) {

        if (in.data[i] == '+') {
            *p++ = ' ';
            continue;
        }

        if (in.data[i] != '%') {
            *p++ = in.data[i];
            continue;
        }

        if (in.len - i < 3) {
            return RON_EINVAL;
        }

        high = ron_api_hex(in.data[i + 1]);
        low = ron_api_hex(in.data[i + 2]);

        if (high < 0 || low < 0) {
            return RON_EINVAL;
        }

        *p++ = (uint8_t) (high << 4 | low);
        i += 2;
    }

    out->len = (size_t) (p - out->data);
    *room = p;

    return RON_OK;
}


static int
ron_api_hex(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c |= 0x20;

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


ron_str_t
ron_api_arg(const ron_api_arg_t *args, size_t n, ron_str_t name)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (ron_str_eq(args[i].name, name)) {
            return args[i].value;
        }
    }

    return ron_null_str;
}
