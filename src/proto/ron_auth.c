
/*
 * The handshake.  Format and reasons are in ron_auth.h.
 *
 * Each mac covers the payloads as they were on the wire, not the structures
 * that they were decoded to, so that nothing which is not understood can be
 * slipped in; and each payload's length is fixed, so that the pieces of a
 * transcript cannot be shifted against each other.
 */

#include "ron_auth.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>


#define RON_HELLO_LEN      (1 + 1 + 8 + RON_FRAME_NONCE)
#define RON_AUTH_BARE_LEN  (1 + 4 + 4 + RON_FRAME_NONCE)
#define RON_AUTH_LEN       (RON_AUTH_BARE_LEN + RON_FRAME_MAC_LEN)
#define RON_READY_BARE     (1 + 8 + 8 + RON_HASH_LEN)
#define RON_READY_LEN      (RON_READY_BARE + RON_FRAME_MAC_LEN)
#define RON_AUTH_ROOT_MIN  16

/* The longest label and transcript. */
#define RON_AUTH_TEXT_MAX  512


static const char  ron_auth_label_key[] = "ngx_ron socket key v1";
static const char  ron_auth_label_worker[] = "ngx_ron socket worker v1";
static const char  ron_auth_label_helper[] = "ngx_ron socket helper v1";


static ron_status_t ron_auth_mac(const ron_auth_key_t *key, const char *label,
    const ron_str_t *parts, size_t part_n, uint8_t *mac);


ron_status_t
ron_auth_derive(ron_str_t root_key, ron_auth_key_t *key)
{
    unsigned  len;

    memset(key, 0, sizeof(ron_auth_key_t));

    if (root_key.len < RON_AUTH_ROOT_MIN || root_key.len > INT32_MAX) {
        return RON_EINVAL;
    }

    len = 0;

    if (HMAC(EVP_sha256(), root_key.data, (int) root_key.len,
             (const uint8_t *) ron_auth_label_key,
             sizeof(ron_auth_label_key) - 1, key->b, &len)
        == NULL
        || len != RON_AUTH_KEY_LEN)
    {
        memset(key, 0, sizeof(ron_auth_key_t));
        return RON_ENOMEM;
    }

    return RON_OK;
}


bool
ron_auth_equal(const void *a, const void *b, size_t len)
{
    size_t                   i;
    const volatile uint8_t  *x, *y;
    uint8_t                  diff;

    x = a;
    y = b;
    diff = 0;

    for (i = 0; i < len; i++) {
        diff |= (uint8_t) (x[i] ^ y[i]);
    }

    return diff == 0;
}


/* The label goes in with its terminator, which no other label's start has. */

static ron_status_t
ron_auth_mac(const ron_auth_key_t *key, const char *label,
    const ron_str_t *parts, size_t part_n, uint8_t *mac)
{
    size_t    i, used, label_len;
    uint8_t   text[RON_AUTH_TEXT_MAX];
    unsigned  len;

    label_len = strlen(label) + 1;
    RON_ASSERT(label_len <= sizeof(text));

    memcpy(text, label, label_len);
    used = label_len;

    for (i = 0; i < part_n; i++) {
        if (parts[i].len > sizeof(text) - used) {
            return RON_EINVAL;
        }

        if (parts[i].len > 0) {
            memcpy(text + used, parts[i].data, parts[i].len);
            used += parts[i].len;
        }
    }

    len = 0;

    if (HMAC(EVP_sha256(), key->b, RON_AUTH_KEY_LEN, text, used, mac, &len)
        == NULL
        || len != RON_FRAME_MAC_LEN)
    {
        return RON_ENOMEM;
    }

    return RON_OK;
}


void
ron_hello_put(ron_buf_t *out, const ron_hello_t *hello)
{
    ron_buf_put_u8(out, hello->version_min);
    ron_buf_put_u8(out, hello->version_max);
    ron_buf_put_u64(out, hello->generation);
    ron_buf_put(out, hello->nonce, RON_FRAME_NONCE);
}


ron_status_t
ron_hello_get(ron_str_t payload, ron_hello_t *hello)
{
    ron_rd_t  rd;

    memset(hello, 0, sizeof(ron_hello_t));

    if (payload.len != RON_HELLO_LEN) {
        return RON_EINVAL;
    }

    ron_rd_init(&rd, payload);
    hello->version_min = ron_rd_u8(&rd);
    hello->version_max = ron_rd_u8(&rd);
    hello->generation = ron_rd_u64(&rd);
    memcpy(hello->nonce, rd.pos, RON_FRAME_NONCE);

    if (hello->version_min > RON_FRAME_VERSION
        || hello->version_max < RON_FRAME_VERSION)
    {
        memset(hello, 0, sizeof(ron_hello_t));
        return RON_EVERSION;
    }

    return RON_OK;
}


ron_status_t
ron_auth_put(ron_buf_t *out, const ron_auth_key_t *key, ron_str_t hello,
    const ron_auth_t *auth)
{
    size_t        begin;
    uint8_t       mac[RON_FRAME_MAC_LEN];
    ron_str_t     parts[2];
    ron_status_t  status;

    begin = out->len;

    ron_buf_put_u8(out, auth->version);
    ron_buf_put_u32(out, auth->slot);
    ron_buf_put_u32(out, auth->pid);
    ron_buf_put(out, auth->nonce, RON_FRAME_NONCE);

    status = ron_buf_status(out);
    if (status != RON_OK) {
        return status;
    }

    parts[0] = hello;
    parts[1] = (ron_str_t) { RON_AUTH_BARE_LEN, out->data + begin };

    status = ron_auth_mac(key, ron_auth_label_worker, parts, 2, mac);
    if (status != RON_OK) {
        return status;
    }

    ron_buf_put(out, mac, sizeof(mac));

    return ron_buf_status(out);
}


ron_status_t
ron_auth_check(ron_str_t payload, const ron_auth_key_t *key, ron_str_t hello,
    ron_auth_t *auth)
{
    uint8_t       mac[RON_FRAME_MAC_LEN];
    ron_rd_t      rd;
    ron_str_t     parts[2];
    ron_status_t  status;

    memset(auth, 0, sizeof(ron_auth_t));

    if (payload.len != RON_AUTH_LEN || hello.len != RON_HELLO_LEN) {
        return RON_EINVAL;
    }

    parts[0] = hello;
    parts[1] = (ron_str_t) { RON_AUTH_BARE_LEN, payload.data };

    status = ron_auth_mac(key, ron_auth_label_worker, parts, 2, mac);
    if (status != RON_OK) {
        return status;
    }

    if (!ron_auth_equal(mac, payload.data + RON_AUTH_BARE_LEN, sizeof(mac))) {
        return RON_ENOTFOUND;
    }

    ron_rd_init(&rd, payload);
    auth->version = ron_rd_u8(&rd);
    auth->slot = ron_rd_u32(&rd);
    auth->pid = ron_rd_u32(&rd);
    memcpy(auth->nonce, rd.pos, RON_FRAME_NONCE);
    memcpy(auth->mac, mac, sizeof(mac));

    if (auth->version != RON_FRAME_VERSION) {
        memset(auth, 0, sizeof(ron_auth_t));
        return RON_EVERSION;
    }

    return RON_OK;
}


ron_status_t
ron_ready_put(ron_buf_t *out, const ron_auth_key_t *key, ron_str_t hello,
    ron_str_t auth, const ron_ready_t *ready)
{
    size_t        begin;
    uint8_t       mac[RON_FRAME_MAC_LEN];
    ron_str_t     parts[3];
    ron_status_t  status;

    begin = out->len;

    ron_buf_put_u8(out, (uint8_t) ready->state);
    ron_buf_put_u64(out, ready->seq);
    ron_buf_put_u64(out, ready->time_ms);
    ron_buf_put(out, ready->root.b, RON_HASH_LEN);

    status = ron_buf_status(out);
    if (status != RON_OK) {
        return status;
    }

    parts[0] = hello;
    parts[1] = auth;
    parts[2] = (ron_str_t) { RON_READY_BARE, out->data + begin };

    status = ron_auth_mac(key, ron_auth_label_helper, parts, 3, mac);
    if (status != RON_OK) {
        return status;
    }

    ron_buf_put(out, mac, sizeof(mac));

    return ron_buf_status(out);
}


ron_status_t
ron_ready_check(ron_str_t payload, const ron_auth_key_t *key, ron_str_t hello,
    ron_str_t auth, ron_ready_t *ready)
{
    uint8_t       state;
    uint8_t       mac[RON_FRAME_MAC_LEN];
    ron_rd_t      rd;
    ron_str_t     parts[3];
    ron_status_t  status;

    memset(ready, 0, sizeof(ron_ready_t));

    if (payload.len != RON_READY_LEN || hello.len != RON_HELLO_LEN
        || auth.len != RON_AUTH_LEN)
    {
        return RON_EINVAL;
    }

    parts[0] = hello;
    parts[1] = auth;
    parts[2] = (ron_str_t) { RON_READY_BARE, payload.data };

    status = ron_auth_mac(key, ron_auth_label_helper, parts, 3, mac);
    if (status != RON_OK) {
        return status;
    }

    if (!ron_auth_equal(mac, payload.data + RON_READY_BARE, sizeof(mac))) {
        return RON_ENOTFOUND;
    }

    ron_rd_init(&rd, payload);
    state = ron_rd_u8(&rd);
    ready->seq = ron_rd_u64(&rd);
    ready->time_ms = ron_rd_u64(&rd);
    ron_rd_hash(&rd, &ready->root);
    memcpy(ready->mac, mac, sizeof(mac));

    if (state >= RON_STATE_N) {
        memset(ready, 0, sizeof(ron_ready_t));
        return RON_EINVAL;
    }

    ready->state = (ron_life_t) state;

    return RON_OK;
}
