
/*
 * The handshake between a worker and the helper, and its three payloads.
 *
 * The worker's uid may be shared with other programs, so being able to
 * connect proves nothing.  Both sides hold a key derived from the root-only
 * keys file and prove it over a transcript:
 *
 *     HELLO   u8 min | u8 max | u64 generation | 32 nonce        = H
 *     AUTH    u8 version | u32 slot | u32 pid | 32 nonce         = A
 *             | 32 HMAC(key, "worker" label || H || A)           = M
 *     READY   u8 state | u64 seq | u64 time_ms | 32 root         = R
 *             | 32 HMAC(key, "helper" label || H || A || M || R)
 *
 * The labels differ, so a mac cannot be reflected; both nonces are under
 * both macs, so neither can be replayed; so are version, slot, generation and
 * state, so nobody in between can change them.  Versions are negotiated:
 * RON_EVERSION when the two ranges have nothing in common, which is what old
 * and new builds that meet during a binary upgrade see.
 */

#ifndef RON_AUTH_H
#define RON_AUTH_H


#include "ron_frame.h"


#define RON_AUTH_KEY_LEN  32

typedef struct {
    uint8_t  b[RON_AUTH_KEY_LEN];
} ron_auth_key_t;

typedef struct {
    uint8_t   version_min;
    uint8_t   version_max;
    uint64_t  generation;               /* of the helper */
    uint8_t   nonce[RON_FRAME_NONCE];
} ron_hello_t;

typedef struct {
    uint8_t   version;                  /* the one chosen */
    uint32_t  slot;                     /* process slot, for counters */
    uint32_t  pid;
    uint8_t   nonce[RON_FRAME_NONCE];
    uint8_t   mac[RON_FRAME_MAC_LEN];
} ron_auth_t;

typedef struct {
    ron_life_t  state;
    uint64_t     seq;                   /* of the newest durable entry, or 0 */
    uint64_t     time_ms;               /* its ledger time */
    ron_hash_t   root;
    uint8_t      mac[RON_FRAME_MAC_LEN];
} ron_ready_t;


/*
 * The socket's key from the bytes of the keyring's first root key: an HMAC
 * with a label of its own, so that it reveals nothing about capabilities.
 * RON_EINVAL for a root key shorter than 16 bytes.
 */
ron_status_t ron_auth_derive(ron_str_t root_key, ron_auth_key_t *key);

/* Time does not depend on where the bytes differ. */
bool ron_auth_equal(const void *a, const void *b, size_t len);

void ron_hello_put(ron_buf_t *out, const ron_hello_t *hello);
ron_status_t ron_hello_get(ron_str_t payload, ron_hello_t *hello);

/*
 * put computes the mac over the peer's hello as it came (the payload's
 * bytes); check returns RON_ENOTFOUND when the mac is not right.
 */
ron_status_t ron_auth_put(ron_buf_t *out, const ron_auth_key_t *key,
    ron_str_t hello, const ron_auth_t *auth);
ron_status_t ron_auth_check(ron_str_t payload, const ron_auth_key_t *key,
    ron_str_t hello, ron_auth_t *auth);

ron_status_t ron_ready_put(ron_buf_t *out, const ron_auth_key_t *key,
    ron_str_t hello, ron_str_t auth, const ron_ready_t *ready);
ron_status_t ron_ready_check(ron_str_t payload, const ron_auth_key_t *key,
    ron_str_t hello, ron_str_t auth, ron_ready_t *ready);


#endif /* RON_AUTH_H */
