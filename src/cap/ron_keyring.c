
#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "ron_codec.h"
#include "ron_keyring.h"


static bool ron_keyring_line(ron_str_t *rest, ron_str_t *line, size_t *line_n);
static const char *ron_keyring_add(ron_keyring_t *ring, ron_str_t line);
static ron_status_t ron_revoked_fill(ron_revoked_t *list, ron_str_t text,
    size_t ids_n, ron_keyring_error_t *err);
static int ron_revoked_cmp(const void *a, const void *b);


/* What macaroon libraries make a root key with, padded by zeros. */

static const char  ron_key_generator[RON_KEY_LEN] = "macaroons-key-generator";


ron_status_t
ron_keyring_parse(ron_str_t text, ron_keyring_t *ring,
    ron_keyring_error_t *err)
{
    size_t       line_n;
    ron_str_t    line;
    const char  *reason;

    memset(ring, 0, sizeof(ron_keyring_t));
    err->reason = "";
    err->line = 0;

    line_n = 0;

    while (ron_keyring_line(&text, &line, &line_n)) {
        reason = ron_keyring_add(ring, line);

        if (reason != NULL) {
            ron_keyring_wipe(ring);
            err->reason = reason;
            err->line = line_n;
            return RON_EINVAL;
        }
    }

    if (ring->keys_n == 0) {
        err->reason = "no key";
        return RON_EINVAL;
    }

    return RON_OK;
}


/* The next line that says something, without blanks around it. */
static bool
ron_keyring_line(ron_str_t *rest, ron_str_t *line, size_t *line_n)
{
    size_t          len;
    const uint8_t  *end;

    while (rest->len != 0) {
        end = memchr(rest->data, '\n', rest->len);
        len = end != NULL ? (size_t) (end - rest->data) : rest->len;

        line->data = rest->data;
        line->len = len;

        len += end != NULL;
        rest->data += len;
        rest->len -= len;
        *line_n += 1;

        if (line->len != 0 && line->data[line->len - 1] == '\r') {
            line->len--;
        }

        while (line->len != 0
               && (line->data[0] == ' ' || line->data[0] == '\t'))
        {
            line->data++;
            line->len--;
        }

        while (line->len != 0 && (line->data[line->len - 1] == ' '
                                  || line->data[line->len - 1] == '\t'))
        {
            line->len--;
        }

        if (line->len != 0 && line->data[0] != '#') {
            return true;
        }
    }

    return false;
}


static const char *
ron_keyring_add(ron_keyring_t *ring, ron_str_t line)
{
    size_t        i, len;
    uint8_t       bytes[RON_KEY_LEN];
    ron_str_t     kid, text;
    ron_status_t  rc;

    kid = line;

    for (i = 0; i < line.len; i++) {
        if (line.data[i] == ' ' || line.data[i] == '\t') {
            break;
        }
    }

    kid.len = i;

    while (i < line.len && (line.data[i] == ' ' || line.data[i] == '\t')) {
        i++;
    }

    text.data = line.data + i;
    text.len = line.len - i;

    if (!ron_kid_is_valid(kid)) {
        return "kid is not 1 to 64 of A-Z a-z 0-9 _ . -";
    }

    if (ron_keyring_find(ring, kid) != NULL) {
        return "duplicate kid";
    }

    if (ring->keys_n == RON_KEYRING_MAX) {
        return "more than 16 keys";
    }

    rc = ron_base64_decode(text, bytes, sizeof(bytes), &len);

    if (rc == RON_OK) {
        rc = ron_key_init(&ring->keys[ring->keys_n], kid,
                          (ron_str_t) { len, bytes });
        ring->keys_n += rc == RON_OK;
    }

    OPENSSL_cleanse(bytes, sizeof(bytes));

    if (rc == RON_OK) {
        return NULL;
    }

    return rc == RON_ENOMEM ? "no memory"
                            : "key is not the base64 of 32 bytes";
}


void
ron_keyring_wipe(ron_keyring_t *ring)
{
    OPENSSL_cleanse(ring, sizeof(ron_keyring_t));
}


const ron_key_t *
ron_keyring_find(const ron_keyring_t *ring, ron_str_t kid)
{
    size_t  i;

    for (i = 0; i < ring->keys_n; i++) {
        if (ron_str_eq(ron_cstr(ring->keys[i].kid), kid)) {
            return &ring->keys[i];
        }
    }

    return NULL;
}


ron_status_t
ron_key_init(ron_key_t *key, ron_str_t kid, ron_str_t secret)
{
    unsigned  len;

    memset(key, 0, sizeof(ron_key_t));

    if (!ron_kid_is_valid(kid) || secret.len != RON_KEY_LEN) {
        return RON_EINVAL;
    }

    memcpy(key->kid, kid.data, kid.len);
    memcpy(key->secret, secret.data, RON_KEY_LEN);

    len = RON_KEY_LEN;

    if (HMAC(EVP_sha256(), ron_key_generator, sizeof(ron_key_generator),
             secret.data, secret.len, key->root, &len)
        == NULL)
    {
        ron_key_wipe(key);
        return RON_ENOMEM;
    }

    return RON_OK;
}


void
ron_key_wipe(ron_key_t *key)
{
    OPENSSL_cleanse(key, sizeof(ron_key_t));
}


bool
ron_kid_is_valid(ron_str_t kid)
{
    size_t   i;
    uint8_t  c;

    if (kid.len == 0 || kid.len > RON_KEY_KID_MAX) {
        return false;
    }

    for (i = 0; i < kid.len; i++) {
        c = kid.data[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')
              || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-'))
        {
            return false;
        }
    }

    return true;
}


bool
ron_cap_id_is_valid(ron_str_t id)
{
    size_t  i;

    if (id.len == 0 || id.len > RON_CAP_ID_MAX) {
        return false;
    }

    for (i = 0; i < id.len; i++) {
        if (id.data[i] <= 0x20 || id.data[i] >= 0x7f) {
            return false;
        }
    }

    return true;
}


/* ---- revoked ids -------------------------------------------------------- */

ron_status_t
ron_revoked_parse(ron_str_t text, ron_revoked_t *list,
    ron_keyring_error_t *err)
{
    size_t     ids_n, line_n;
    ron_str_t  rest, line;

    memset(list, 0, sizeof(ron_revoked_t));
    err->reason = "";
    err->line = 0;

    ids_n = 0;
    line_n = 0;
    rest = text;

    while (ron_keyring_line(&rest, &line, &line_n)) {
        if (!ron_cap_id_is_valid(line)) {
            err->reason = "not a capability id";
            err->line = line_n;
            return RON_EINVAL;
        }

        if (++ids_n > RON_REVOKED_MAX) {
            err->reason = "too many ids";
            err->line = line_n;
            return RON_EINVAL;
        }
    }

    return ids_n == 0 ? RON_OK : ron_revoked_fill(list, text, ids_n, err);
}


static ron_status_t
ron_revoked_fill(ron_revoked_t *list, ron_str_t text, size_t ids_n,
    ron_keyring_error_t *err)
{
    size_t     line_n;
    ron_str_t  rest;

    list->text = malloc(text.len);
    list->ids = malloc(ids_n * sizeof(ron_str_t));

    if (list->text == NULL || list->ids == NULL) {
        ron_revoked_free(list);
        err->reason = "no memory";
        return RON_ENOMEM;
    }

    memcpy(list->text, text.data, text.len);
    rest.data = list->text;
    rest.len = text.len;
    line_n = 0;

    while (ron_keyring_line(&rest, &list->ids[list->ids_n], &line_n)) {
        if (++list->ids_n == ids_n) {
            break;
        }
    }

    qsort(list->ids, list->ids_n, sizeof(ron_str_t), ron_revoked_cmp);

    return RON_OK;
}


void
ron_revoked_free(ron_revoked_t *list)
{
    free(list->text);
    free(list->ids);
    memset(list, 0, sizeof(ron_revoked_t));
}


bool
ron_revoked_has(const ron_revoked_t *list, ron_str_t id)
{
    return list != NULL && list->ids_n != 0
           && bsearch(&id, list->ids, list->ids_n, sizeof(ron_str_t),
                      ron_revoked_cmp)
              != NULL;
}


static int
ron_revoked_cmp(const void *a, const void *b)
{
    return ron_str_cmp(*(const ron_str_t *) a, *(const ron_str_t *) b);
}
