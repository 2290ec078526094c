
/*
 * The header If-Match, RFC 9110 13.1.1: "*", or a list of entity tags.
 */

#include "ron_api.h"


static bool ron_api_match_tag(ron_str_t *s, ron_str_t *tag, bool *weak);


ron_status_t
ron_api_match(ron_str_t header, uint64_t *version)
{
    ron_str_t  s;

    s = header;

    if (s.len >= 2 && s.data[0] == '"' && s.data[s.len - 1] == '"') {
        s.data++;
        s.len -= 2;
    }

    return ron_api_u64(s, version);
}


ron_status_t
ron_api_if_match(ron_str_t header, bool *any, uint64_t *version)
{
    bool       weak, found, tags;
    uint64_t   v;
    ron_str_t  s, tag;

    *any = ron_str_eq(header, ron_str("*"));
    *version = 0;

    if (*any || ron_api_u64(header, version) == RON_OK) {
        return RON_OK;
    }

    s = header;
    tags = false;
    found = false;

    while (s.len != 0) {

        /* elements of a list may be empty */

        if (s.data[0] == ',' || s.data[0] == ' ' || s.data[0] == '\t') {
            s.data++;
            s.len--;
            continue;
        }

        if (!ron_api_match_tag(&s, &tag, &weak)) {
            return RON_EINVAL;
        }

        tags = true;

        /* the comparison is the strong one, and a version is a number */

        if (weak || ron_api_u64(tag, &v) != RON_OK) {
            continue;
        }

        if (found && v != *version) {
            return RON_ERANGE;
        }

        found = true;
        *version = v;
    }

    if (!tags) {
        return RON_EINVAL;
    }

    return found ? RON_OK : RON_ENOTFOUND;
}


/* One entity tag and what stands before the next comma, taken off `s`. */

static bool
ron_api_match_tag(ron_str_t *s, ron_str_t *tag, bool *weak)
{
    size_t          i;
    const uint8_t  *p;

    p = s->data;
    i = 0;

    *weak = s->len >= 2 && p[0] == 'W' && p[1] == '/';

    if (*weak) {
        i = 2;
    }

    if (i == s->len || p[i] != '"') {
        return false;
    }

    tag->data = p + ++i;

    while (i < s->len && p[i] != '"') {
        if (p[i] < 0x21 || p[i] == 0x7f) {
            return false;
        }

        i++;
    }

    if (i == s->len) {
        return false;
    }

    tag->len = (size_t) (p + i - tag->data);
    i++;

    while (i < s->len && (p[i] == ' ' || p[i] == '\t')) {
        i++;
    }

    if (i < s->len && p[i] != ',') {
        return false;
    }

    s->data = p + i;
    s->len -= i;

    return true;
}
