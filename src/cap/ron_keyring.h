
/*
 * The secrets that capabilities are minted with, and the list of those that
 * are revoked.  Both come from small text files; blank lines and lines whose
 * first character is # are skipped.
 */

#ifndef RON_KEYRING_H
#define RON_KEYRING_H


#include "ron.h"


#define RON_KEY_LEN       32
#define RON_KEY_KID_MAX   64
#define RON_KEYRING_MAX   16        /* keys */
#define RON_CAP_ID_MAX    128
#define RON_REVOKED_MAX   1048576   /* ids */


typedef struct {
    char     kid[RON_KEY_KID_MAX + 1];
    uint8_t  secret[RON_KEY_LEN];   /* as in the file */
    uint8_t  root[RON_KEY_LEN];     /* what the first HMAC of a token takes */
} ron_key_t;


/* Capability ids, sorted; they point into `text`, which is the list's own. */

typedef struct {
    ron_str_t  *ids;
    size_t      ids_n;
    uint8_t    *text;
} ron_revoked_t;


typedef struct {
    ron_key_t             keys[RON_KEYRING_MAX];    /* in the file's order */
    size_t                keys_n;
    const ron_revoked_t  *revoked;                  /* or NULL; not owned */
} ron_keyring_t;


/* Line numbers begin at 1; 0 is the file as a whole. */

typedef struct {
    const char  *reason;
    size_t       line;
} ron_keyring_error_t;


/*
 * "<kid> <base64 of 32 bytes>" a line; a kid is 1 to 64 of [A-Za-z0-9_.-] and
 * occurs once.  RON_EINVAL with *err filled, also for a file without any key;
 * the ring is then zeroed.
 */
ron_status_t ron_keyring_parse(ron_str_t text, ron_keyring_t *ring,
    ron_keyring_error_t *err);

/* Overwrites the secrets. */
void ron_keyring_wipe(ron_keyring_t *ring);

const ron_key_t *ron_keyring_find(const ron_keyring_t *ring, ron_str_t kid);

/*
 * One key outside of a ring, from a kid and its 32 bytes.  RON_EINVAL for a
 * bad kid or length, RON_ENOMEM.
 */
ron_status_t ron_key_init(ron_key_t *key, ron_str_t kid, ron_str_t secret);
void ron_key_wipe(ron_key_t *key);


/* One capability id a line, any number of times; no id at all is fine. */
ron_status_t ron_revoked_parse(ron_str_t text, ron_revoked_t *list,
    ron_keyring_error_t *err);
void ron_revoked_free(ron_revoked_t *list);

/* `list` may be NULL. */
bool ron_revoked_has(const ron_revoked_t *list, ron_str_t id);

/* 1 to 128 visible ASCII characters. */
bool ron_cap_id_is_valid(ron_str_t id);
bool ron_kid_is_valid(ron_str_t kid);


#endif /* RON_KEYRING_H */
