
/*
 * Signed notes, read from anywhere and therefore read with suspicion: one
 * pass checks that all bytes are UTF-8 without control characters, the next
 * one splits, and nothing is copied or allocated before the key has been
 * found on a signature line.
 *
 * The text of a note is what stands before its last empty line, with its last
 * newline; that is what is signed, byte for byte.  At most one signature is
 * verified a note, the first one of the key, whatever number of lines claims
 * to be of it.
 *
 * Whatever OpenSSL leaves in its error queue is taken out again: a server in
 * the same thread would report it as an error of some connection.
 */

#include "ron_note.h"
#include "ron_digest.h"
#include "ron_port.h"

#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>


#define RON_NOTE_ED25519    0x01        /* type of a key and its signatures */
#define RON_NOTE_SEED_LEN   32
#define RON_NOTE_PUB_LEN    32
#define RON_NOTE_SIG_LEN    64
#define RON_NOTE_ID_LEN     4

#define RON_NOTE_DASH       "\xe2\x80\x94 "     /* U+2014 and a space */
#define RON_NOTE_PRIVATE    "PRIVATE+KEY+"


struct ron_signer_s {
    EVP_PKEY  *pkey;
    size_t     name_len;
    uint8_t    name[RON_NOTE_NAME_MAX];
    uint8_t    public_key[RON_NOTE_PUB_LEN];
    uint8_t    id[RON_NOTE_ID_LEN];
};


typedef struct {
    ron_str_t  name;
    uint8_t    id[RON_NOTE_ID_LEN];
    uint8_t    key[RON_NOTE_PUB_LEN];   /* or the seed of a private key */
} ron_note_key_t;


static ron_status_t ron_signer_create(ron_str_t name, const uint8_t *seed,
    ron_signer_t **signer);
static ron_status_t ron_signer_derive(ron_signer_t *s, const uint8_t *seed);
static ron_status_t ron_signer_put_signature(const ron_signer_t *s,
    ron_str_t text, ron_buf_t *out);
static void ron_note_put_key(ron_str_t name, const uint8_t *id,
    const uint8_t *key, ron_buf_t *out);
static void ron_note_key_id(ron_str_t name, const uint8_t *public_key,
    uint8_t *id);
static ron_status_t ron_note_key_parse(ron_str_t text, ron_note_key_t *key);
static ron_status_t ron_note_public_parse(ron_str_t text, ron_note_key_t *key);
static ron_status_t ron_note_split(ron_str_t note, ron_str_t *text,
    ron_str_t *lines);
static ron_status_t ron_note_line(ron_str_t *lines, ron_str_t *name,
    ron_str_t *sig);
static ron_status_t ron_note_check(const ron_note_key_t *key, ron_str_t text,
    const uint8_t *sig);
static ron_status_t ron_note_checkpoint(ron_str_t text,
    ron_checkpoint_note_t *cp);
static ron_status_t ron_note_size(ron_str_t line, uint64_t *size);
static bool ron_note_name_ok(ron_str_t name);
static bool ron_note_text_ok(ron_str_t text);
static bool ron_note_line_ok(ron_str_t line);
static bool ron_note_is_space(uint32_t ch);
static size_t ron_note_rune(ron_str_t s, uint32_t *ch);
static bool ron_note_cut(ron_str_t *s, uint8_t stop, ron_str_t *head);
static void ron_base64_put(ron_buf_t *out, const uint8_t *data, size_t len);
static size_t ron_base64_get(ron_str_t s, uint8_t *out, size_t max);
static int ron_base64_digit(uint8_t ch);


static const char  ron_base64_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";


/* ---- keys --------------------------------------------------------------- */

ron_status_t
ron_signer_parse(ron_str_t text, ron_signer_t **signer)
{
    ron_status_t    rc;
    ron_note_key_t  key;

    *signer = NULL;

    if (text.len < sizeof(RON_NOTE_PRIVATE) - 1
        || memcmp(text.data, RON_NOTE_PRIVATE, sizeof(RON_NOTE_PRIVATE) - 1)
           != 0)
    {
        return RON_EINVAL;
    }

    text.data += sizeof(RON_NOTE_PRIVATE) - 1;
    text.len -= sizeof(RON_NOTE_PRIVATE) - 1;

    rc = ron_note_key_parse(text, &key);

    if (rc == RON_OK) {
        rc = ron_signer_create(key.name, key.key, signer);
    }

    if (rc == RON_OK
        && memcmp(key.id, (*signer)->id, RON_NOTE_ID_LEN) != 0)
    {
        ron_signer_free(*signer);
        *signer = NULL;
        rc = RON_EINVAL;
    }

    OPENSSL_cleanse(&key, sizeof(key));

    return rc;
}


ron_status_t
ron_signer_generate(ron_str_t name, ron_signer_t **signer)
{
    uint8_t       seed[RON_NOTE_SEED_LEN];
    ron_status_t  rc;

    *signer = NULL;

    if (!ron_note_name_ok(name)) {
        return RON_EINVAL;
    }

    rc = ron_random(seed, sizeof(seed));

    if (rc == RON_OK) {
        rc = ron_signer_create(name, seed, signer);
    }

    OPENSSL_cleanse(seed, sizeof(seed));

    return rc;
}


void
ron_signer_free(ron_signer_t *signer)
{
    if (signer != NULL) {
        EVP_PKEY_free(signer->pkey);
        free(signer);
    }
}


ron_status_t
ron_signer_private_text(const ron_signer_t *s, ron_buf_t *out)
{
    int      done;
    size_t   len;
    uint8_t  seed[RON_NOTE_SEED_LEN];

    len = sizeof(seed);

    ERR_set_mark();
    done = EVP_PKEY_get_raw_private_key(s->pkey, seed, &len);
    ERR_pop_to_mark();

    if (done == 1 && len == sizeof(seed)) {
        ron_buf_put_cstr(out, RON_NOTE_PRIVATE);
        ron_note_put_key(ron_signer_name(s), s->id, seed, out);
    }

    OPENSSL_cleanse(seed, sizeof(seed));

    if (done != 1 || len != sizeof(seed)) {
        return RON_ENOMEM;
    }

    return ron_buf_status(out);
}


ron_status_t
ron_signer_public_text(const ron_signer_t *s, ron_buf_t *out)
{
    ron_note_put_key(ron_signer_name(s), s->id, s->public_key, out);

    return ron_buf_status(out);
}


ron_str_t
ron_signer_name(const ron_signer_t *signer)
{
    return (ron_str_t) { signer->name_len, signer->name };
}


static ron_status_t
ron_signer_create(ron_str_t name, const uint8_t *seed, ron_signer_t **signer)
{
    ron_signer_t  *s;
    ron_status_t   rc;

    s = calloc(1, sizeof(ron_signer_t));
    if (s == NULL) {
        return RON_ENOMEM;
    }

    RON_ASSERT(name.len <= sizeof(s->name));

    memcpy(s->name, name.data, name.len);
    s->name_len = name.len;

    ERR_set_mark();
    rc = ron_signer_derive(s, seed);
    ERR_pop_to_mark();

    if (rc != RON_OK) {
        ron_signer_free(s);
        return rc;
    }

    ron_note_key_id(name, s->public_key, s->id);
    *signer = s;

    return RON_OK;
}


/* Any 32 bytes are a seed: what can go wrong here is memory. */

static ron_status_t
ron_signer_derive(ron_signer_t *s, const uint8_t *seed)
{
    size_t  len;

    s->pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed,
                                           RON_NOTE_SEED_LEN);
    if (s->pkey == NULL) {
        return RON_ENOMEM;
    }

    len = sizeof(s->public_key);

    if (EVP_PKEY_get_raw_public_key(s->pkey, s->public_key, &len) != 1
        || len != sizeof(s->public_key))
    {
        return RON_ENOMEM;
    }

    return RON_OK;
}


static void
ron_note_put_key(ron_str_t name, const uint8_t *id, const uint8_t *key,
    ron_buf_t *out)
{
    uint8_t  typed[1 + RON_NOTE_PUB_LEN];

    typed[0] = RON_NOTE_ED25519;
    memcpy(typed + 1, key, RON_NOTE_PUB_LEN);

    ron_buf_put_str(out, name);
    ron_buf_printf(out, "+%02x%02x%02x%02x+", id[0], id[1], id[2], id[3]);
    ron_base64_put(out, typed, sizeof(typed));

    OPENSSL_cleanse(typed, sizeof(typed));
}


static void
ron_note_key_id(ron_str_t name, const uint8_t *public_key, uint8_t *id)
{
    uint8_t     data[RON_NOTE_NAME_MAX + 2 + RON_NOTE_PUB_LEN];
    ron_hash_t  hash;

    memcpy(data, name.data, name.len);
    data[name.len] = '\n';
    data[name.len + 1] = RON_NOTE_ED25519;
    memcpy(data + name.len + 2, public_key, RON_NOTE_PUB_LEN);

    ron_digest_bytes(RON_DIGEST_SHA256, data, name.len + 2 + RON_NOTE_PUB_LEN,
                     &hash);

    memcpy(id, hash.b, RON_NOTE_ID_LEN);
}


/* "<name>+<hash>+<base64>": base64 may have plus signs, the rest has not. */

static ron_status_t
ron_note_key_parse(ron_str_t text, ron_note_key_t *key)
{
    size_t     i, len;
    uint8_t    ch, digit, typed[1 + RON_NOTE_PUB_LEN];
    ron_str_t  id;

    memset(key, 0, sizeof(*key));

    if (text.len != 0 && text.data[text.len - 1] == '\n') {
        text.len--;
    }

    if (!ron_note_cut(&text, '+', &key->name)
        || !ron_note_cut(&text, '+', &id)
        || !ron_note_name_ok(key->name)
        || id.len != 2 * RON_NOTE_ID_LEN)
    {
        return RON_EINVAL;
    }

    for (i = 0; i < id.len; i++) {
        ch = id.data[i];

        if (ch >= '0' && ch <= '9') {
            digit = (uint8_t) (ch - '0');

        } else if (ch >= 'a' && ch <= 'f') {
            digit = (uint8_t) (ch - 'a' + 10);

        } else {
            return RON_EINVAL;
        }

        key->id[i / 2] = (uint8_t) (key->id[i / 2] << 4 | digit);
    }

    len = ron_base64_get(text, typed, sizeof(typed));

    if (len == sizeof(typed) && typed[0] == RON_NOTE_ED25519) {
        memcpy(key->key, typed + 1, sizeof(key->key));
        len = 0;
    }

    OPENSSL_cleanse(typed, sizeof(typed));

    return len == 0 ? RON_OK : RON_EINVAL;
}


static ron_status_t
ron_note_public_parse(ron_str_t text, ron_note_key_t *key)
{
    uint8_t       id[RON_NOTE_ID_LEN];
    ron_status_t  rc;

    rc = ron_note_key_parse(text, key);
    if (rc != RON_OK) {
        return rc;
    }

    ron_note_key_id(key->name, key->key, id);

    return memcmp(id, key->id, sizeof(id)) == 0 ? RON_OK : RON_EINVAL;
}


/* ---- notes -------------------------------------------------------------- */

ron_status_t
ron_note_seal(const ron_signer_t *signer, ron_str_t text, ron_buf_t *out)
{
    size_t        start;
    ron_status_t  rc;

    if (text.len == 0
        || text.len > RON_NOTE_READ_MAX
        || text.data[text.len - 1] != '\n'
        || !ron_note_text_ok(text))
    {
        return RON_EINVAL;
    }

    start = out->len;

    ron_buf_put_str(out, text);
    ron_buf_put_cstr(out, "\n");

    rc = ron_signer_put_signature(signer, text, out);

    if (rc == RON_OK) {
        rc = ron_buf_status(out);
    }

    if (rc == RON_OK && out->len - start > RON_NOTE_READ_MAX) {
        rc = RON_EFULL;
    }

    if (rc != RON_OK) {
        out->len = start;
    }

    return rc;
}


ron_status_t
ron_note_cosign(const ron_signer_t *signer, ron_buf_t *note)
{
    ron_str_t     text, lines;
    ron_status_t  rc;

    rc = ron_note_split(ron_buf_str(note), &text, &lines);

    if (rc == RON_OK) {
        rc = ron_signer_put_signature(signer, text, note);
    }

    return rc == RON_OK ? ron_buf_status(note) : rc;
}


static ron_status_t
ron_signer_put_signature(const ron_signer_t *s, ron_str_t text,
    ron_buf_t *out)
{
    int          done;
    size_t       len;
    uint8_t      sig[RON_NOTE_ID_LEN + RON_NOTE_SIG_LEN];
    EVP_MD_CTX  *ctx;

    memcpy(sig, s->id, RON_NOTE_ID_LEN);
    len = RON_NOTE_SIG_LEN;

    ERR_set_mark();

    ctx = EVP_MD_CTX_new();

    done = ctx != NULL
           && EVP_DigestSignInit(ctx, NULL, NULL, NULL, s->pkey) == 1
           && EVP_DigestSign(ctx, sig + RON_NOTE_ID_LEN, &len, text.data,
                             text.len) == 1
           && len == RON_NOTE_SIG_LEN;

    EVP_MD_CTX_free(ctx);
    ERR_pop_to_mark();

    if (!done) {
        return RON_ENOMEM;
    }

    ron_buf_put_cstr(out, RON_NOTE_DASH);
    ron_buf_put_str(out, ron_signer_name(s));
    ron_buf_put_cstr(out, " ");
    ron_base64_put(out, sig, sizeof(sig));
    ron_buf_put_cstr(out, "\n");

    return RON_OK;
}


ron_status_t
ron_note_open(ron_str_t note, ron_str_t public_key, ron_str_t *text)
{
    size_t          len;
    uint8_t         sig[RON_NOTE_ID_LEN + RON_NOTE_SIG_LEN];
    ron_str_t       body, lines, name, base64;
    ron_status_t    rc;
    ron_note_key_t  key;

    *text = ron_null_str;

    if (ron_note_public_parse(public_key, &key) != RON_OK
        || ron_note_split(note, &body, &lines) != RON_OK)
    {
        return RON_EINVAL;
    }

    while (lines.len != 0) {
        (void) ron_note_line(&lines, &name, &base64);

        if (!ron_str_eq(name, key.name)) {
            continue;
        }

        len = ron_base64_get(base64, sig, sizeof(sig));

        /*
         * The id comes first, so that another kind of signature under the
         * same name, whatever its length, can be told from a bad one of ours.
         */

        if (memcmp(sig, key.id, RON_NOTE_ID_LEN) != 0) {
            continue;
        }

        if (len != sizeof(sig)) {
            return RON_ECORRUPT;
        }

        rc = ron_note_check(&key, body, sig + RON_NOTE_ID_LEN);

        if (rc == RON_OK) {
            *text = body;
        }

        return rc;
    }

    return RON_ENOTFOUND;
}


static ron_status_t
ron_note_check(const ron_note_key_t *key, ron_str_t text, const uint8_t *sig)
{
    int            good;
    EVP_PKEY      *pkey;
    EVP_MD_CTX    *ctx;
    ron_status_t   rc;

    rc = RON_ENOMEM;

    ERR_set_mark();

    ctx = EVP_MD_CTX_new();
    pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key->key,
                                       RON_NOTE_PUB_LEN);

    if (ctx != NULL
        && pkey != NULL
        && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1)
    {
        good = EVP_DigestVerify(ctx, sig, RON_NOTE_SIG_LEN, text.data,
                                text.len);
        rc = good == 1 ? RON_OK : RON_ECORRUPT;
    }

    EVP_PKEY_free(pkey);
    EVP_MD_CTX_free(ctx);
    ERR_pop_to_mark();

    return rc;
}


/* Splits a note that is well-formed down to its last signature line. */

static ron_status_t
ron_note_split(ron_str_t note, ron_str_t *text, ron_str_t *lines)
{
    size_t     i;
    ron_str_t  rest, name, sig;

    if (note.len > RON_NOTE_READ_MAX || !ron_note_text_ok(note)) {
        return RON_EINVAL;
    }

    for (i = note.len; i > 1; i--) {
        if (note.data[i - 1] == '\n' && note.data[i - 2] == '\n') {
            break;
        }
    }

    if (i < 2 || i == note.len) {
        return RON_EINVAL;
    }

    *text = (ron_str_t) { i - 1, note.data };
    *lines = (ron_str_t) { note.len - i, note.data + i };

    for (rest = *lines; rest.len != 0; /* void */) {
        if (ron_note_line(&rest, &name, &sig) != RON_OK) {
            return RON_EINVAL;
        }
    }

    return RON_OK;
}


/* Takes one signature line off the front of `lines`. */

static ron_status_t
ron_note_line(ron_str_t *lines, ron_str_t *name, ron_str_t *sig)
{
    uint8_t    id[RON_NOTE_ID_LEN];
    ron_str_t  line;

    if (!ron_note_cut(lines, '\n', &line)
        || line.len < sizeof(RON_NOTE_DASH) - 1
        || memcmp(line.data, RON_NOTE_DASH, sizeof(RON_NOTE_DASH) - 1) != 0)
    {
        return RON_EINVAL;
    }

    line.data += sizeof(RON_NOTE_DASH) - 1;
    line.len -= sizeof(RON_NOTE_DASH) - 1;

    if (!ron_note_cut(&line, ' ', name)
        || !ron_note_name_ok(*name)
        || ron_base64_get(line, id, sizeof(id)) <= RON_NOTE_ID_LEN)
    {
        return RON_EINVAL;
    }

    *sig = line;

    return RON_OK;
}


/* ---- checkpoints -------------------------------------------------------- */

ron_status_t
ron_note_sign(const ron_signer_t *signer, const ron_checkpoint_note_t *cp,
    ron_buf_t *out)
{
    size_t        start;
    uint32_t      i;
    ron_buf_t     text;
    ron_status_t  rc;

    if (!ron_str_eq(cp->origin, ron_signer_name(signer))
        || cp->line_n > RON_NOTE_LINES_MAX)
    {
        return RON_EINVAL;
    }

    ron_buf_init(&text, RON_NOTE_MAX);

    ron_buf_put_str(&text, cp->origin);
    ron_buf_printf(&text, "\n%llu\n", (unsigned long long) cp->size);
    ron_base64_put(&text, cp->root.b, RON_HASH_LEN);
    ron_buf_put_cstr(&text, "\n");

    for (i = 0; i < cp->line_n; i++) {

        if (!ron_note_line_ok(cp->line[i])) {
            ron_buf_free(&text);
            return RON_EINVAL;
        }

        ron_buf_put_str(&text, cp->line[i]);
        ron_buf_put_cstr(&text, "\n");
    }

    start = out->len;
    rc = ron_buf_status(&text);

    if (rc == RON_OK) {
        rc = ron_note_seal(signer, ron_buf_str(&text), out);
    }

    if (rc == RON_OK && out->len - start > RON_NOTE_MAX) {
        out->len = start;
        rc = RON_EFULL;
    }

    ron_buf_free(&text);

    return rc;
}


ron_status_t
ron_note_verify(ron_str_t note, ron_str_t public_key,
    ron_checkpoint_note_t *cp)
{
    ron_str_t     text;
    ron_status_t  rc;

    memset(cp, 0, sizeof(*cp));

    rc = ron_note_open(note, public_key, &text);
    if (rc != RON_OK) {
        return rc;
    }

    return ron_note_checkpoint(text, cp);
}


ron_status_t
ron_note_parse(ron_str_t note, ron_checkpoint_note_t *cp)
{
    ron_str_t     text, lines;
    ron_status_t  rc;

    memset(cp, 0, sizeof(*cp));

    rc = ron_note_split(note, &text, &lines);
    if (rc != RON_OK) {
        return rc;
    }

    return ron_note_checkpoint(text, cp);
}


/* `text` is UTF-8 without control characters and ends with a newline. */

static ron_status_t
ron_note_checkpoint(ron_str_t text, ron_checkpoint_note_t *cp)
{
    ron_str_t  size, root;

    if (!ron_note_cut(&text, '\n', &cp->origin)
        || !ron_note_cut(&text, '\n', &size)
        || !ron_note_cut(&text, '\n', &root)
        || cp->origin.len == 0
        || ron_note_size(size, &cp->size) != RON_OK
        || ron_base64_get(root, cp->root.b, RON_HASH_LEN) != RON_HASH_LEN)
    {
        goto malformed;
    }

    while (text.len != 0) {

        if (cp->line_n == RON_NOTE_LINES_MAX
            || !ron_note_cut(&text, '\n', &cp->line[cp->line_n])
            || cp->line[cp->line_n].len == 0)
        {
            goto malformed;
        }

        cp->line_n++;
    }

    return RON_OK;

malformed:

    memset(cp, 0, sizeof(*cp));

    return RON_EINVAL;
}


static ron_status_t
ron_note_size(ron_str_t line, uint64_t *size)
{
    size_t    i;
    uint8_t   digit;
    uint64_t  v;

    if (line.len == 0 || (line.len > 1 && line.data[0] == '0')) {
        return RON_EINVAL;
    }

    v = 0;

    for (i = 0; i < line.len; i++) {

        if (line.data[i] < '0' || line.data[i] > '9') {
            return RON_EINVAL;
        }

        digit = (uint8_t) (line.data[i] - '0');

        if (v > (UINT64_MAX - digit) / 10) {
            return RON_EINVAL;
        }

        v = v * 10 + digit;
    }

    *size = v;

    return RON_OK;
}


/* ---- characters --------------------------------------------------------- */

static bool
ron_note_name_ok(ron_str_t name)
{
    size_t    n;
    uint32_t  ch;

    if (name.len == 0 || name.len > RON_NOTE_NAME_MAX) {
        return false;
    }

    while (name.len != 0) {
        n = ron_note_rune(name, &ch);

        if (n == 0 || ch < 0x20 || ch == '+' || ron_note_is_space(ch)) {
            return false;
        }

        name.data += n;
        name.len -= n;
    }

    return true;
}


static bool
ron_note_text_ok(ron_str_t text)
{
    size_t    n;
    uint32_t  ch;

    while (text.len != 0) {
        n = ron_note_rune(text, &ch);

        if (n == 0 || (ch < 0x20 && ch != '\n')) {
            return false;
        }

        text.data += n;
        text.len -= n;
    }

    return true;
}


/* One line that is not empty; its other characters are checked elsewhere. */

static bool
ron_note_line_ok(ron_str_t line)
{
    return line.len != 0 && memchr(line.data, '\n', line.len) == NULL;
}


/* What Unicode calls White_Space. */

static bool
ron_note_is_space(uint32_t ch)
{
    switch (ch) {

    case 0x20:
    case 0x85:
    case 0xa0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202f:
    case 0x205f:
    case 0x3000:
        return true;
    }

    return (ch >= 0x09 && ch <= 0x0d) || (ch >= 0x2000 && ch <= 0x200a);
}


/*
 * The length of the UTF-8 sequence in front, and its code point; 0 for one
 * that is cut, overlong, a surrogate, or beyond U+10FFFF.
 */

static size_t
ron_note_rune(ron_str_t s, uint32_t *ch)
{
    size_t    i, n;
    uint32_t  v, least;

    v = s.data[0];

    if (v < 0x80) {
        *ch = v;
        return 1;
    }

    if (v >= 0xc2 && v <= 0xdf) {
        n = 2;
        v &= 0x1f;
        least = 0x80;

    } else if (v >= 0xe0 && v <= 0xef) {
        n = 3;
        v &= 0x0f;
        least = 0x800;

    } else if (v >= 0xf0 && v <= 0xf4) {
        n = 4;
        v &= 0x07;
        least = 0x10000;

    } else {
        return 0;
    }

    if (s.len < n) {
        return 0;
    }

    for (i = 1; i < n; i++) {
        if ((s.data[i] & 0xc0) != 0x80) {
            return 0;
        }

        v = v << 6 | (s.data[i] & 0x3f);
    }

    if (v < least || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff)) {
        return 0;
    }

    *ch = v;

    return n;
}


/* Takes what stands before the first `stop` off `s`, and the stop with it. */

static bool
ron_note_cut(ron_str_t *s, uint8_t stop, ron_str_t *head)
{
    const uint8_t  *at;

    at = s->len != 0 ? memchr(s->data, stop, s->len) : NULL;
    if (at == NULL) {
        return false;
    }

    head->data = s->data;
    head->len = (size_t) (at - s->data);

    s->len -= head->len + 1;
    s->data = at + 1;

    return true;
}


/* ---- base64 ------------------------------------------------------------- */

static void
ron_base64_put(ron_buf_t *out, const uint8_t *data, size_t len)
{
    size_t    i, n;
    uint8_t   four[4];
    uint32_t  v;

    for ( /* void */ ; len != 0; data += n, len -= n) {
        n = ron_min(len, 3);
        v = 0;

        for (i = 0; i < 3; i++) {
            v = v << 8 | (i < n ? data[i] : 0);
        }

        for (i = 0; i < 4; i++) {
            four[i] = i > n ? '='
                      : (uint8_t) ron_base64_alphabet[v >> (18 - 6 * i) & 63];
        }

        ron_buf_put(out, four, sizeof(four));
    }

    OPENSSL_cleanse(four, sizeof(four));
}


/*
 * Decodes all of `s` and returns its decoded length, of which the first `max`
 * bytes are in `out`; 0 when it is not base64 as it would be written.
 */

static size_t
ron_base64_get(ron_str_t s, uint8_t *out, size_t max)
{
    int       digit;
    size_t    i, j, n, pad;
    uint32_t  v;

    if (s.len == 0 || s.len % 4 != 0) {
        return 0;
    }

    pad = (size_t) (s.data[s.len - 1] == '=')
          + (size_t) (s.data[s.len - 1] == '=' && s.data[s.len - 2] == '=');
    n = 0;

    for (i = 0; i < s.len; i += 4) {
        v = 0;

        for (j = i; j < i + 4; j++) {
            digit = j < s.len - pad ? ron_base64_digit(s.data[j]) : 0;

            if (digit < 0) {
                return 0;
            }

            v = v << 6 | (uint32_t) digit;
        }

        /* bits that the padding says are not there must be zero */

        if (i + 4 == s.len && (v & ((1U << 8 * pad) - 1)) != 0) {
            return 0;
        }

        for (j = 0; j < 3 && n < s.len / 4 * 3 - pad; j++, n++) {
            if (n < max) {
                out[n] = (uint8_t) (v >> (16 - 8 * j));
            }
        }
    }

    return n;
}


static int
ron_base64_digit(uint8_t ch)
{
    if (ch >= 'A' && ch <= 'Z') {
        return ch - 'A';
    }

    if (ch >= 'a' && ch <= 'z') {
        return ch - 'a' + 26;
    }

    if (ch >= '0' && ch <= '9') {
        return ch - '0' + 52;
    }

    if (ch == '+') {
        return 62;
    }

    return ch == '/' ? 63 : -1;
}
