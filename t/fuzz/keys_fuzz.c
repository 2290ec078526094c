
/*
 * The two text files of capabilities: keys, and ids that are revoked.
 */

#include <stdlib.h>

#include "ron_fuzz.h"
#include "ron_codec.h"
#include "ron_keyring.h"


static void
fuzz_keys(ron_str_t text)
{
    char                 b64[64];
    size_t               n;
    ron_buf_t            out;
    const ron_key_t     *k;
    ron_keyring_error_t  err;

    static ron_keyring_t  ring, again;

    if (ron_keyring_parse(text, &ring, &err) != RON_OK) {
        RON_ASSERT(ring.keys_n == 0 && err.reason != NULL);
        return;
    }

    RON_ASSERT(ring.keys_n >= 1 && ring.keys_n <= RON_KEYRING_MAX);
    ron_buf_init(&out, 0);

    for (size_t i = 0; i < ring.keys_n; i++) {
        k = &ring.keys[i];
        RON_ASSERT(ron_kid_is_valid(ron_cstr(k->kid)));
        RON_ASSERT(ron_keyring_find(&ring, ron_cstr(k->kid)) == k);
        n = ron_base64_encode((ron_str_t) { RON_KEY_LEN, k->secret }, b64);
        ron_buf_printf(&out, "%s %.*s\n", k->kid, (int) n, b64);
    }

    RON_ASSERT(ron_keyring_parse(ron_buf_str(&out), &again, &err) == RON_OK);
    RON_ASSERT(memcmp(&ring, &again, sizeof(ring)) == 0);
    ron_buf_free(&out);

    ron_keyring_wipe(&ring);
    RON_ASSERT(ring.keys_n == 0);
}


/* Every line that is an id is revoked, and the next id over is not. */
static void
fuzz_revoked(ron_str_t text)
{
    size_t               n, ids;
    uint8_t              other[RON_CAP_ID_MAX];
    ron_str_t            id;
    ron_revoked_t        list;
    const uint8_t       *p, *end, *eol;
    ron_keyring_error_t  err;

    if (ron_revoked_parse(text, &list, &err) != RON_OK) {
        RON_ASSERT(list.ids_n == 0);
        return;
    }

    ids = 0;
    end = text.data + text.len;

    for (p = text.data; p < end; p = eol + 1) {
        eol = memchr(p, '\n', (size_t) (end - p));
        eol = eol == NULL ? end : eol;
        n = (size_t) (eol - p);

        if (n == 0 || *p == '#' || !ron_cap_id_is_valid((ron_str_t) { n, p }))
        {
            continue;
        }

        ids++;
        id = (ron_str_t) { n, p };
        RON_ASSERT(ron_revoked_has(&list, id));

        memcpy(other, p, n);
        other[n - 1] ^= 1;
        id.data = other;

        if (ron_revoked_has(&list, id)) {
            RON_ASSERT(memmem(text.data, text.len, other, n) != NULL);
        }
    }

    RON_ASSERT(list.ids_n <= text.len && (ids == 0 || list.ids_n > 0));

    for (size_t i = 0; i < list.ids_n; i++) {
        RON_ASSERT(ron_revoked_has(&list, list.ids[i]));
        RON_ASSERT(ron_cap_id_is_valid(list.ids[i]));
    }

    RON_ASSERT(!ron_revoked_has(&list, ron_null_str));
    ron_revoked_free(&list);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t   f = { data, data + len };
    uint8_t  what;

    what = fuzz_u8(&f);

    if (what & 1) {
        fuzz_revoked(fuzz_rest(&f));

    } else {
        fuzz_keys(fuzz_rest(&f));
    }

    return 0;
}
