
/*
 * The token: its format and its chain of signatures.
 *
 *     u8 2                                       version
 *     [1 location] 2 identifier 0
 *     ( [1 location] 2 identifier [4 vid] 0 )*   caveats
 *     0
 *     6 signature                                nothing after it
 *
 * A field is its type, a varint length and the bytes; only the end, 0, has no
 * more than the type.  A caveat with a vid is for a third party.
 *
 *     root   = HMAC("macaroons-key-generator", secret)
 *     sig[0] = HMAC(root, identifier)
 *     sig[i] = HMAC(sig[i-1], caveat[i])
 *
 * The location is a hint that no signature covers; it is not looked at.
 */

#define OPENSSL_SUPPRESS_DEPRECATED     /* SHA256_Init() and its like */

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "ron_cap.h"
#include "ron_codec.h"


#define RON_CAP_VERSION       2

#define RON_CAP_F_END         0
#define RON_CAP_F_LOCATION    1
#define RON_CAP_F_IDENTIFIER  2
#define RON_CAP_F_VID         4
#define RON_CAP_F_SIGNATURE   6

#define RON_CAP_INNER_PAD     0x36
#define RON_CAP_OUTER_PAD     0x5c


static ron_status_t ron_cap_refuse(ron_cap_error_t *err,
    ron_cap_refusal_t why);
static bool ron_cap_decode(ron_str_t token, ron_macaroon_t *m);
static ron_cap_refusal_t ron_cap_take_apart(ron_macaroon_t *m);
static ron_cap_refusal_t ron_cap_take_caveats(ron_macaroon_t *m, ron_rd_t *rd);
static uint64_t ron_cap_field(ron_rd_t *rd, ron_str_t *data);
static bool ron_cap_split(ron_macaroon_t *m);

static bool ron_cap_chain(const ron_key_t *key, const ron_macaroon_t *m,
    uint8_t sig[RON_CAP_SIG_LEN]);
static bool ron_cap_hmac(uint8_t sig[RON_CAP_SIG_LEN], ron_str_t data);
static ron_status_t ron_cap_judge(const ron_keyring_t *ring,
    const ron_macaroon_t *m, uint64_t now_ms, ron_cap_t *cap,
    ron_cap_error_t *err);

static ron_status_t ron_cap_weigh(const ron_revoked_t *revoked,
    const ron_macaroon_t *m, uint64_t now_ms, ron_cap_t *cap,
    ron_cap_error_t *err);
static ron_status_t ron_cap_write(const ron_macaroon_t *m,
    const ron_str_t *more, size_t more_n, uint8_t sig[RON_CAP_SIG_LEN],
    ron_buf_t *out);
static void ron_cap_put_field(ron_buf_t *b, uint8_t type, ron_str_t data);


static const struct {
    unsigned     status;
    const char  *reason;
} ron_cap_refusals[] = {
    { 200, "" },
#define RON_CAP_REFUSAL_ROW(name, status, reason)  { status, reason },
    RON_CAP_REFUSAL_TABLE(RON_CAP_REFUSAL_ROW)
};


static ron_status_t
ron_cap_refuse(ron_cap_error_t *err, ron_cap_refusal_t why)
{
    err->why = why;
    err->status = ron_cap_refusals[why].status;
    err->reason = ron_cap_refusals[why].reason;

    if (why == RON_CAP_ACCEPTED) {
        return RON_OK;
    }

    return why == RON_CAP_INTERNAL ? RON_ENOMEM : RON_EINVAL;
}


/* ---- reading ------------------------------------------------------------ */

ron_status_t
ron_cap_parse(ron_str_t token, ron_macaroon_t *m, ron_cap_error_t *err)
{
    ron_cap_refusal_t  why;

    memset(m, 0, offsetof(ron_macaroon_t, bytes));

    why = RON_CAP_MALFORMED;

    if (ron_cap_decode(token, m)) {
        why = ron_cap_take_apart(m);
    }

    if (why != RON_CAP_ACCEPTED) {
        memset(m, 0, sizeof(ron_macaroon_t));
    }

    return ron_cap_refuse(err, why);
}


static bool
ron_cap_decode(ron_str_t token, ron_macaroon_t *m)
{
    size_t  padding;

    if (token.len > RON_CAP_TEXT_MAX) {
        return false;
    }

    if (token.len != 0 && token.len % 4 == 0) {
        padding = token.data[token.len - 1] == '=';
        padding += padding && token.data[token.len - 2] == '=';
        token.len -= padding;
    }

    return ron_base64url_decode(token, m->bytes, sizeof(m->bytes),
                                &m->bytes_len)
           == RON_OK;
}


static ron_cap_refusal_t
ron_cap_take_apart(ron_macaroon_t *m)
{
    uint64_t           type;
    ron_rd_t           rd;
    ron_str_t          data;
    ron_cap_refusal_t  why;

    ron_rd_init(&rd, (ron_str_t) { m->bytes_len, m->bytes });

    if (ron_rd_u8(&rd) != RON_CAP_VERSION) {
        return RON_CAP_MALFORMED;
    }

    type = ron_cap_field(&rd, &data);

    if (type == RON_CAP_F_LOCATION) {
        m->location = data;
        type = ron_cap_field(&rd, &data);
    }

    if (type != RON_CAP_F_IDENTIFIER) {
        return RON_CAP_MALFORMED;
    }

    m->identifier = data;

    if (ron_cap_field(&rd, &data) != RON_CAP_F_END || !ron_cap_split(m)) {
        return RON_CAP_MALFORMED;
    }

    why = ron_cap_take_caveats(m, &rd);

    if (why != RON_CAP_ACCEPTED) {
        return why;
    }

    if (ron_cap_field(&rd, &m->sig) != RON_CAP_F_SIGNATURE
        || m->sig.len != RON_CAP_SIG_LEN || ron_rd_end(&rd) != RON_OK)
    {
        return RON_CAP_MALFORMED;
    }

    return RON_CAP_ACCEPTED;
}


static ron_cap_refusal_t
ron_cap_take_caveats(ron_macaroon_t *m, ron_rd_t *rd)
{
    bool       third_party;
    uint64_t   type;
    ron_str_t  data, caveat;

    third_party = false;

    for ( ;; ) {
        type = ron_cap_field(rd, &data);

        if (rd->failed) {
            return RON_CAP_MALFORMED;
        }

        if (type == RON_CAP_F_END) {
            return third_party ? RON_CAP_THIRD_PARTY : RON_CAP_ACCEPTED;
        }

        if (type == RON_CAP_F_LOCATION) {
            third_party = true;
            type = ron_cap_field(rd, &data);
        }

        if (type != RON_CAP_F_IDENTIFIER
            || m->caveats_n == RON_CAP_CAVEATS_MAX)
        {
            return RON_CAP_MALFORMED;
        }

        caveat = data;
        type = ron_cap_field(rd, &data);

        if (type == RON_CAP_F_VID) {
            third_party = true;
            type = ron_cap_field(rd, &data);
        }

        if (type != RON_CAP_F_END) {
            return RON_CAP_MALFORMED;
        }

        m->caveats[m->caveats_n++] = caveat;
    }
}


/* The type of a field; what cannot be read looks like an end, but failed. */
static uint64_t
ron_cap_field(ron_rd_t *rd, ron_str_t *data)
{
    uint64_t  type;

    *data = ron_null_str;
    type = ron_rd_varint(rd);

    if (type != RON_CAP_F_END) {
        *data = ron_rd_lstr(rd);
    }

    return rd->failed ? RON_CAP_F_END : type;
}


/* A kid has no colon, a capability id may have. */
static bool
ron_cap_split(ron_macaroon_t *m)
{
    const uint8_t  *colon;

    if (m->identifier.len == 0) {
        return false;
    }

    colon = memchr(m->identifier.data, ':', m->identifier.len);

    if (colon == NULL) {
        return false;
    }

    m->kid.data = m->identifier.data;
    m->kid.len = (size_t) (colon - m->kid.data);
    m->id.data = colon + 1;
    m->id.len = m->identifier.len - m->kid.len - 1;

    return ron_kid_is_valid(m->kid) && ron_cap_id_is_valid(m->id);
}


/* ---- verifying ---------------------------------------------------------- */

ron_status_t
ron_cap_verify(const ron_keyring_t *ring, ron_str_t token, uint64_t now_ms,
    ron_cap_t *cap, ron_cap_error_t *err)
{
    ron_status_t    rc;
    ron_macaroon_t  m;

    rc = ron_cap_parse(token, &m, err);

    if (rc == RON_OK) {
        rc = ron_cap_judge(ring, &m, now_ms, cap, err);
    }

    if (rc != RON_OK) {
        memset(cap, 0, sizeof(ron_cap_t));
    }

    OPENSSL_cleanse(&m, sizeof(ron_macaroon_t));

    return rc;
}


ron_status_t
ron_cap_read(const ron_revoked_t *revoked, ron_str_t token, uint64_t now_ms,
    ron_cap_t *cap, ron_cap_error_t *err)
{
    ron_status_t    rc;
    ron_macaroon_t  m;

    rc = ron_cap_parse(token, &m, err);

    if (rc == RON_OK) {
        rc = ron_cap_weigh(revoked, &m, now_ms, cap, err);
    }

    if (rc != RON_OK) {
        memset(cap, 0, sizeof(ron_cap_t));
    }

    OPENSSL_cleanse(&m, sizeof(ron_macaroon_t));

    return rc;
}


static ron_status_t
ron_cap_judge(const ron_keyring_t *ring, const ron_macaroon_t *m,
    uint64_t now_ms, ron_cap_t *cap, ron_cap_error_t *err)
{
    bool              matches;
    uint8_t           sig[RON_CAP_SIG_LEN];
    const ron_key_t  *key;

    key = ron_keyring_find(ring, m->kid);

    if (key == NULL) {
        return ron_cap_refuse(err, RON_CAP_UNKNOWN_KID);
    }

    if (!ron_cap_chain(key, m, sig)) {
        return ron_cap_refuse(err, RON_CAP_INTERNAL);
    }

    matches = CRYPTO_memcmp(sig, m->sig.data, RON_CAP_SIG_LEN) == 0;
    OPENSSL_cleanse(sig, sizeof(sig));

    if (!matches) {
        return ron_cap_refuse(err, RON_CAP_SIGNATURE);
    }

    return ron_cap_weigh(ring->revoked, m, now_ms, cap, err);
}


static ron_status_t
ron_cap_weigh(const ron_revoked_t *revoked, const ron_macaroon_t *m,
    uint64_t now_ms, ron_cap_t *cap, ron_cap_error_t *err)
{
    bool    understood;
    size_t  i;

    if (ron_revoked_has(revoked, m->id)) {
        return ron_cap_refuse(err, RON_CAP_REVOKED);
    }

    ron_cap_init(cap);
    memcpy(cap->kid, m->kid.data, m->kid.len);
    memcpy(cap->id, m->id.data, m->id.len);

    understood = true;

    for (i = 0; i < m->caveats_n; i++) {
        if (ron_cap_caveat_add(cap, m->caveats[i]) != RON_OK) {
            understood = false;
        }
    }

    /* 401 before 403: a new token may be better, whatever else it lacks */

    if (now_ms / 1000 >= cap->before_s) {
        return ron_cap_refuse(err, RON_CAP_EXPIRED);
    }

    if (now_ms / 1000 < cap->after_s) {
        return ron_cap_refuse(err, RON_CAP_NOT_YET);
    }

    return ron_cap_refuse(err, understood ? RON_CAP_ACCEPTED : RON_CAP_CAVEAT);
}


static bool
ron_cap_chain(const ron_key_t *key, const ron_macaroon_t *m,
    uint8_t sig[RON_CAP_SIG_LEN])
{
    size_t  i;

    memcpy(sig, key->root, RON_CAP_SIG_LEN);

    if (!ron_cap_hmac(sig, m->identifier)) {
        return false;
    }

    for (i = 0; i < m->caveats_n; i++) {
        if (!ron_cap_hmac(sig, m->caveats[i])) {
            return false;
        }
    }

    return true;
}


/*
 * sig = HMAC-SHA256(sig, data); on failure sig is zeroed.
 *
 * OpenSSL's HMAC() looks its digest up by name at each call and takes five
 * times as long as this.  A key of 32 bytes is below the block size, so it
 * is only padded.
 */
static bool
ron_cap_hmac(uint8_t sig[RON_CAP_SIG_LEN], ron_str_t data)
{
    bool        done;
    size_t      i;
    uint8_t     pad[SHA256_CBLOCK];
    SHA256_CTX  sha;

    memset(pad, RON_CAP_INNER_PAD, sizeof(pad));

    for (i = 0; i < RON_CAP_SIG_LEN; i++) {
        pad[i] ^= sig[i];
    }

    done = SHA256_Init(&sha) && SHA256_Update(&sha, pad, sizeof(pad))
           && SHA256_Update(&sha, data.data, data.len)
           && SHA256_Final(sig, &sha);

    for (i = 0; i < sizeof(pad); i++) {
        pad[i] ^= RON_CAP_INNER_PAD ^ RON_CAP_OUTER_PAD;
    }

    done = done && SHA256_Init(&sha)
           && SHA256_Update(&sha, pad, sizeof(pad))
           && SHA256_Update(&sha, sig, RON_CAP_SIG_LEN)
           && SHA256_Final(sig, &sha);

    if (!done) {
        OPENSSL_cleanse(sig, RON_CAP_SIG_LEN);
    }

    OPENSSL_cleanse(pad, sizeof(pad));
    OPENSSL_cleanse(&sha, sizeof(sha));

    return done;
}


/* ---- writing ------------------------------------------------------------ */

ron_status_t
ron_cap_mint(const ron_key_t *key, ron_str_t id, ron_str_t location,
    const ron_str_t *caveats, size_t caveats_n, ron_buf_t *out)
{
    uint8_t         identifier[RON_KEY_KID_MAX + 1 + RON_CAP_ID_MAX];
    uint8_t         sig[RON_CAP_SIG_LEN];
    ron_str_t       kid;
    ron_status_t    rc;
    ron_macaroon_t  m;

    kid = ron_cstr(key->kid);

    if (!ron_kid_is_valid(kid) || !ron_cap_id_is_valid(id)) {
        return RON_EINVAL;
    }

    memset(&m, 0, offsetof(ron_macaroon_t, bytes));

    memcpy(identifier, kid.data, kid.len);
    identifier[kid.len] = ':';
    memcpy(identifier + kid.len + 1, id.data, id.len);

    m.location = location;
    m.identifier.data = identifier;
    m.identifier.len = kid.len + 1 + id.len;

    if (!ron_cap_chain(key, &m, sig)) {
        return RON_ENOMEM;
    }

    rc = ron_cap_write(&m, caveats, caveats_n, sig, out);

    OPENSSL_cleanse(sig, sizeof(sig));

    return rc;
}


ron_status_t
ron_cap_attenuate(ron_str_t token, const ron_str_t *caveats, size_t caveats_n,
    ron_buf_t *out)
{
    uint8_t          sig[RON_CAP_SIG_LEN];
    ron_status_t     rc;
    ron_macaroon_t   m;
    ron_cap_error_t  err;

    rc = ron_cap_parse(token, &m, &err);

    if (rc != RON_OK) {
        return rc;
    }

    memcpy(sig, m.sig.data, RON_CAP_SIG_LEN);

    rc = ron_cap_write(&m, caveats, caveats_n, sig, out);

    OPENSSL_cleanse(sig, sizeof(sig));
    OPENSSL_cleanse(&m, sizeof(ron_macaroon_t));

    return rc;
}


/* m's caveats are already in sig, `more` are not. */
static ron_status_t
ron_cap_write(const ron_macaroon_t *m, const ron_str_t *more, size_t more_n,
    uint8_t sig[RON_CAP_SIG_LEN], ron_buf_t *out)
{
    char          *text;
    size_t         i;
    ron_buf_t      b;
    ron_status_t   rc;

    if (more_n > RON_CAP_CAVEATS_MAX - m->caveats_n) {
        return RON_ERANGE;
    }

    ron_buf_init(&b, RON_CAP_BYTES_MAX);
    ron_buf_put_u8(&b, RON_CAP_VERSION);

    if (m->location.len != 0) {
        ron_cap_put_field(&b, RON_CAP_F_LOCATION, m->location);
    }

    ron_cap_put_field(&b, RON_CAP_F_IDENTIFIER, m->identifier);
    ron_buf_put_u8(&b, RON_CAP_F_END);

    for (i = 0; i < m->caveats_n; i++) {
        ron_cap_put_field(&b, RON_CAP_F_IDENTIFIER, m->caveats[i]);
        ron_buf_put_u8(&b, RON_CAP_F_END);
    }

    rc = RON_OK;

    for (i = 0; i < more_n && rc == RON_OK; i++) {
        if (more[i].len == 0) {
            rc = RON_EINVAL;

        } else if (!ron_cap_hmac(sig, more[i])) {
            rc = RON_ENOMEM;
        }

        ron_cap_put_field(&b, RON_CAP_F_IDENTIFIER, more[i]);
        ron_buf_put_u8(&b, RON_CAP_F_END);
    }

    ron_buf_put_u8(&b, RON_CAP_F_END);
    ron_cap_put_field(&b, RON_CAP_F_SIGNATURE,
                      (ron_str_t) { RON_CAP_SIG_LEN, sig });

    if (rc == RON_OK && ron_buf_status(&b) != RON_OK) {
        rc = ron_buf_status(&b) == RON_EFULL ? RON_ERANGE : RON_ENOMEM;
    }

    if (rc == RON_OK) {
        text = (char *) ron_buf_reserve(out, ron_base64url_len(b.len));

        if (text != NULL) {
            out->len += ron_base64url_encode(ron_buf_str(&b), text);
        }

        rc = ron_buf_status(out);
    }

    if (b.data != NULL) {
        OPENSSL_cleanse(b.data, b.cap);
    }

    ron_buf_free(&b);

    return rc;
}


static void
ron_cap_put_field(ron_buf_t *b, uint8_t type, ron_str_t data)
{
    ron_buf_put_u8(b, type);
    ron_buf_put_lstr(b, data);
}
