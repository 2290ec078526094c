
/*
 * Capabilities: bearer tokens that say who may do what.
 *
 * A token is a macaroon in the version 2 binary format, in base64url.  Its
 * identifier is "<kid>:<capability id>", where kid names the secret that it was
 * minted with.  Everybody who holds a token can add caveats and so make a
 * weaker one; nobody without the secret can take one away.
 *
 * Caveats are "<name> = <value>" with one space on each side and between the
 * words of a list; ron_cap_table.h has the names.  All caveats must hold, the
 * same one repeated too.  What is not understood to the byte refuses the
 * token.  A token without a caveat of some kind is not limited in that way.
 */

#ifndef RON_CAP_H
#define RON_CAP_H


#include "ron.h"
#include "ron_buf.h"
#include "ron_cap_table.h"
#include "ron_keyring.h"


#define RON_CAP_TEXT_MAX     4096
#define RON_CAP_BYTES_MAX    (RON_CAP_TEXT_MAX / 4 * 3)
#define RON_CAP_CAVEATS_MAX  32
#define RON_CAP_SIG_LEN      32


#define RON_CAP_SVC_N(name, word)  RON_CAP_SVC_NO_##name,
#define RON_CAP_ACT_N(name, word)  RON_CAP_ACT_NO_##name,
#define RON_CAP_CAVEAT_N(name, word, what)    RON_CAP_CAVEAT_##name,
#define RON_CAP_REFUSAL_N(name, status, why)  RON_CAP_##name,

enum { RON_CAP_SVC_TABLE(RON_CAP_SVC_N) RON_CAP_SVC_COUNT };
enum { RON_CAP_ACT_TABLE(RON_CAP_ACT_N) RON_CAP_ACT_COUNT };

typedef enum {
    RON_CAP_CAVEAT_TABLE(RON_CAP_CAVEAT_N) RON_CAP_CAVEAT_COUNT
} ron_cap_caveat_t;

typedef enum {
    RON_CAP_ACCEPTED = 0,
    RON_CAP_REFUSAL_TABLE(RON_CAP_REFUSAL_N) RON_CAP_REFUSAL_COUNT
} ron_cap_refusal_t;

/* Bits: RON_CAP_SVC_WALLET, RON_CAP_ACT_READ, ... */

#define RON_CAP_SVC_BIT(name, word)                                           \
    RON_CAP_SVC_##name = 1 << RON_CAP_SVC_NO_##name,
#define RON_CAP_ACT_BIT(name, word)                                           \
    RON_CAP_ACT_##name = 1 << RON_CAP_ACT_NO_##name,

typedef enum { RON_CAP_SVC_TABLE(RON_CAP_SVC_BIT) } ron_cap_svc_t;
typedef enum { RON_CAP_ACT_TABLE(RON_CAP_ACT_BIT) } ron_cap_act_t;


/* A token taken apart, nothing verified.  The strings point into `bytes`. */

typedef struct {
    ron_str_t  location;
    ron_str_t  identifier;
    ron_str_t  kid;
    ron_str_t  id;
    ron_str_t  caveats[RON_CAP_CAVEATS_MAX];
    size_t     caveats_n;
    ron_str_t  sig;
    size_t     bytes_len;
    uint8_t    bytes[RON_CAP_BYTES_MAX];
} ron_macaroon_t;


typedef struct {
    uint16_t  off;
    uint16_t  len;
} ron_cap_span_t;

typedef struct {
    uint8_t   addr[16];         /* IPv4 in its first four */
    uint8_t   len;              /* 4 or 16 */
    uint8_t   bits;
} ron_cap_net_t;


/*
 * What a verified token allows.  It holds no pointer: the first
 * ron_cap_size() bytes can be copied anywhere.  Ask it through
 * ron_cap_allows_*(); a zeroed one allows nothing.
 */

typedef struct {
    ron_u128_t      max_amount;         /* all ones: no bound */
    ron_u128_t      max_daily;          /* all ones: no bound */
    uint64_t        before_s;           /* UINT64_MAX: never ends */
    uint64_t        after_s;
    uint32_t        svcs;
    uint32_t        acts;
    bool            valid;
    bool            has_max_amount;
    bool            has_max_daily;
    bool            has_tenant;
    bool            tenant_conflict;    /* two tenants: none will do */
    uint8_t         acts_n;
    uint8_t         accounts_n;
    uint8_t         assets_n;
    uint8_t         nets_n;
    uint16_t        text_len;
    ron_cap_span_t  tenant;
    char            kid[RON_KEY_KID_MAX + 1];
    char            id[RON_CAP_ID_MAX + 1];
    ron_cap_span_t  act[RON_CAP_CAVEATS_MAX];
    ron_cap_span_t  account[RON_CAP_CAVEATS_MAX];
    ron_cap_span_t  asset[RON_CAP_CAVEATS_MAX];
    ron_cap_net_t   net[RON_CAP_CAVEATS_MAX];
    uint8_t         text[RON_CAP_BYTES_MAX];
} ron_cap_t;


/* `status` is 401, 403 or 500; `reason` is a constant that echoes nothing. */

typedef struct {
    ron_cap_refusal_t  why;
    unsigned           status;
    const char        *reason;
} ron_cap_error_t;


/*
 * Takes a token apart: RON_EINVAL when it is over 4096 characters, malformed,
 * over 32 caveats, or has a third-party one.  Padding is accepted.
 */
ron_status_t ron_cap_parse(ron_str_t token, ron_macaroon_t *m,
    ron_cap_error_t *err);

/*
 * Verifies signature, revocation, time, and that every caveat is understood.
 * RON_OK; else RON_EINVAL (RON_ENOMEM for RON_CAP_INTERNAL), *cap is zeroed and
 * *err says why.
 */
ron_status_t ron_cap_verify(const ron_keyring_t *ring, ron_str_t token,
    uint64_t now_ms, ron_cap_t *cap, ron_cap_error_t *err);

/*
 * The same without a signature, for a token whose key another service has:
 * what it would allow.  Nothing may be done with it before that service said
 * that the token is genuine.
 */
ron_status_t ron_cap_read(const ron_revoked_t *revoked, ron_str_t token,
    uint64_t now_ms, ron_cap_t *cap, ron_cap_error_t *err);

/* Bytes of *cap that are in use: most have nothing in their lists. */
static inline size_t
ron_cap_size(const ron_cap_t *cap)
{
    if ((cap->acts_n | cap->accounts_n | cap->assets_n | cap->nets_n) == 0
        && cap->text_len == 0)
    {
        return offsetof(ron_cap_t, act);
    }

    return offsetof(ron_cap_t, text) + cap->text_len;
}


/* All services and acts given must be allowed. */
bool ron_cap_allows_act(const ron_cap_t *cap, unsigned svcs, unsigned acts);

/* An act that some service has for itself, by its word. */
bool ron_cap_allows_word(const ron_cap_t *cap, unsigned svcs, ron_str_t act);
bool ron_cap_allows_account(const ron_cap_t *cap, ron_str_t account);
bool ron_cap_allows_asset(const ron_cap_t *cap, ron_str_t asset);
bool ron_cap_allows_amount(const ron_cap_t *cap, ron_u128_t amount_minor);
bool ron_cap_allows_tenant(const ron_cap_t *cap, ron_str_t tenant);
bool ron_cap_allows_time(const ron_cap_t *cap, uint64_t now_ms);

/* 4 or 16 bytes in network order; 0 bytes: no address is known. */
bool ron_cap_allows_ip(const ron_cap_t *cap, ron_str_t addr);


/*
 * Appends a new token to `out`.  Caveats are taken as they are (see
 * ron_cap_caveat_check()); `location` may be empty.  RON_EINVAL: bad id or an
 * empty caveat; RON_ERANGE: too many or too long.
 */
ron_status_t ron_cap_mint(const ron_key_t *key, ron_str_t id,
    ron_str_t location, const ron_str_t *caveats, size_t caveats_n,
    ron_buf_t *out);

/* Appends a copy of `token` with more caveats.  It need not be a valid one. */
ron_status_t ron_cap_attenuate(ron_str_t token, const ron_str_t *caveats,
    size_t caveats_n, ron_buf_t *out);

/* RON_OK when ron_cap_verify() understands it. */
ron_status_t ron_cap_caveat_check(ron_str_t caveat);

/* One more caveat into *cap; RON_EINVAL: not understood. */
ron_status_t ron_cap_caveat_add(ron_cap_t *cap, ron_str_t caveat);

/* A capability without any caveat; allows everything. */
void ron_cap_init(ron_cap_t *cap);


#endif /* RON_CAP_H */
