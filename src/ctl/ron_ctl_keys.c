
/* ronctl keys new, rotate, list, signing, public. */

#include "ron_ctl.h"
#include "ron_codec.h"
#include "ron_keyring.h"
#include "ron_note.h"
#include "ron_port.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <unistd.h>


static int ctl_key_line(const ron_ctl_args_t *args, const char *kid,
    ron_buf_t *out);
static void ctl_wipe(ron_buf_t *b);
static int ctl_keys_load(const ron_ctl_args_t *args, const char *path,
    ron_buf_t *text, ron_keyring_t *ring);


static void
ctl_wipe(ron_buf_t *b)
{
    if (b->data != NULL) {
        OPENSSL_cleanse(b->data, b->cap);
    }

    ron_buf_free(b);
}


/* "<kid> <base64 of 32 random bytes>\n" */

static int
ctl_key_line(const ron_ctl_args_t *args, const char *kid, ron_buf_t *out)
{
    char     text[ron_base64_len(RON_KEY_LEN)];
    uint8_t  secret[RON_KEY_LEN];

    if (!ron_kid_is_valid(ron_cstr(kid))) {
        return ron_ctl_fail(args, RON_EXIT_USAGE, "\"%s\" is no name for a "
                            "key: 1 to %d of A-Z a-z 0-9 _ . -", kid,
                            RON_KEY_KID_MAX);
    }

    if (ron_random(secret, sizeof(secret)) != RON_OK) {
        return ron_ctl_fail(args, RON_EXIT_IO, "no randomness");
    }

    (void) ron_base64_encode((ron_str_t) { sizeof(secret), secret }, text);

    ron_buf_printf(out, "%s ", kid);
    ron_buf_put(out, text, sizeof(text));
    ron_buf_put_u8(out, '\n');

    OPENSSL_cleanse(text, sizeof(text));
    OPENSSL_cleanse(secret, sizeof(secret));

    return RON_EXIT_OK;
}


static int
ctl_keys_load(const ron_ctl_args_t *args, const char *path, ron_buf_t *text,
    ron_keyring_t *ring)
{
    int                  rc;
    ron_keyring_error_t  err;

    rc = ron_ctl_read_file(args, path, text);

    if (rc == RON_EXIT_OK
        && ron_keyring_parse(ron_buf_str(text), ring, &err) != RON_OK)
    {
        rc = ron_ctl_fail(args, RON_EXIT_IO, "%s: line %zu: %s", path,
                          err.line, err.reason);
    }

    return rc;
}


int
ron_ctl_keys_new(ron_ctl_args_t *args)
{
    int        rc;
    ron_buf_t  line;

    ron_buf_init(&line, 1024);
    rc = ctl_key_line(args, args->pos_n > 1 ? args->pos[1] : "dev", &line);

    if (rc == RON_EXIT_OK) {
        rc = ron_ctl_write_secret(args, args->pos[0], ron_buf_str(&line),
                                  false);
    }

    if (rc == RON_EXIT_OK && args->json) {
        printf("{\"ok\":true}\n");

    } else if (rc == RON_EXIT_OK) {
        printf("%s holds one key; keep it readable by root only, and name it "
               "in nginx.conf:  ron_keys %s;\n", args->pos[0], args->pos[0]);
    }

    ctl_wipe(&line);

    return rc;
}


/*
 * The new key comes first: it is what tokens are minted with.  Of the old
 * ones `keep` stay, so that the tokens that are out go on working.
 */

int
ron_ctl_keys_rotate(ron_ctl_args_t *args)
{
    int             rc;
    char            text[ron_base64_len(RON_KEY_LEN)];
    uint64_t        keep;
    ron_buf_t       old, out;
    ron_keyring_t   ring;

    if (!ron_ctl_number(args, "keep", 1, &keep)) {
        return RON_EXIT_USAGE;
    }

    memset(&ring, 0, sizeof(ring));
    ron_buf_init(&old, 0);
    ron_buf_init(&out, 65536);

    rc = ctl_keys_load(args, args->pos[0], &old, &ring);

    if (rc == RON_EXIT_OK
        && ron_keyring_find(&ring, ron_cstr(args->pos[1])) != NULL)
    {
        rc = ron_ctl_fail(args, RON_EXIT_NO, "there is a key \"%s\" already: "
                          "a new key has a new name", args->pos[1]);
    }

    if (rc == RON_EXIT_OK) {
        rc = ctl_key_line(args, args->pos[1], &out);
    }

    for (size_t i = 0; rc == RON_EXIT_OK && i < ring.keys_n && i < keep
                       && i + 1 < RON_KEYRING_MAX; i++)
    {
        (void) ron_base64_encode((ron_str_t) { RON_KEY_LEN,
                                               ring.keys[i].secret }, text);
        ron_buf_printf(&out, "%s ", ring.keys[i].kid);
        ron_buf_put(&out, text, sizeof(text));
        ron_buf_put_u8(&out, '\n');
    }

    if (rc == RON_EXIT_OK) {
        rc = ron_ctl_write_secret(args, args->pos[0], ron_buf_str(&out),
                                  true);
    }

    if (rc == RON_EXIT_OK && args->json) {
        printf("{\"ok\":true,\"kept\":%llu}\n",
               (unsigned long long) ron_min(keep, ring.keys_n));

    } else if (rc == RON_EXIT_OK) {
        printf("tokens are minted with \"%s\" from now on; %llu older key%s "
               "still verif%s\nreload nginx to use it (nginx -s reload)\n",
               args->pos[1], (unsigned long long) ron_min(keep, ring.keys_n),
               ron_min(keep, ring.keys_n) == 1 ? "" : "s",
               ron_min(keep, ring.keys_n) == 1 ? "ies" : "y");
    }

    OPENSSL_cleanse(text, sizeof(text));
    ron_keyring_wipe(&ring);
    ctl_wipe(&old);
    ctl_wipe(&out);

    return rc;
}


int
ron_ctl_keys_list(ron_ctl_args_t *args)
{
    int             rc;
    ron_buf_t       text, out;
    ron_keyring_t   ring;

    memset(&ring, 0, sizeof(ring));
    ron_buf_init(&text, 0);
    ron_buf_init(&out, 0);

    rc = ctl_keys_load(args, args->pos[0], &text, &ring);

    if (rc == RON_EXIT_OK) {
        if (args->json) {
            ron_buf_put_cstr(&out, "{\"keys\":[");
        }

        for (size_t i = 0; i < ring.keys_n; i++) {
            if (args->json) {
                ron_json_put_comma(&out);
                ron_json_put_string(&out, ron_cstr(ring.keys[i].kid));

            } else {
                ron_buf_printf(&out, "%s%s\n", ring.keys[i].kid,
                               i == 0 ? "  (mints)" : "  (verifies)");
            }
        }

        if (args->json) {
            ron_buf_put_cstr(&out, "]}\n");
        }

        ron_ctl_print(&out);
    }

    ron_keyring_wipe(&ring);
    ctl_wipe(&text);
    ron_buf_free(&out);

    return rc;
}


/* ---- keys that sign checkpoints and snapshots --------------------------- */

int
ron_ctl_keys_signing(ron_ctl_args_t *args)
{
    int            rc;
    char           path[1024];
    ron_buf_t      secret, public_key;
    const char    *out;
    ron_signer_t  *signer;

    out = ron_ctl_value(args, "out");

    if (out == NULL) {
        snprintf(path, sizeof(path), "%s.key", args->pos[0]);
        out = path;
    }

    if (ron_signer_generate(ron_cstr(args->pos[0]), &signer) != RON_OK) {
        return ron_ctl_fail(args, RON_EXIT_USAGE, "\"%s\" is no name for a "
                            "signer: like a host name, without spaces and "
                            "plus signs", args->pos[0]);
    }

    ron_buf_init(&secret, 1024);
    ron_buf_init(&public_key, 1024);

    if (ron_signer_private_text(signer, &secret) != RON_OK
        || ron_signer_public_text(signer, &public_key) != RON_OK)
    {
        rc = ron_ctl_fail(args, RON_EXIT_IO, "no key can be made");

    } else {
        ron_buf_put_u8(&secret, '\n');
        rc = ron_ctl_write_secret(args, out, ron_buf_str(&secret), false);
    }

    if (rc == RON_EXIT_OK && args->json) {
        printf("{\"ok\":true,\"public_key\":\"%.*s\"}\n",
               (int) public_key.len, (const char *) public_key.data);

    } else if (rc == RON_EXIT_OK) {
        printf("%.*s\n", (int) public_key.len,
               (const char *) public_key.data);
        fprintf(stderr, "the secret is in %s; give the line above to "
                "everybody who verifies\n", out);
    }

    ron_signer_free(signer);
    ctl_wipe(&secret);
    ron_buf_free(&public_key);

    return rc;
}


int
ron_ctl_keys_public(ron_ctl_args_t *args)
{
    int            rc;
    ron_buf_t      text, public_key;
    ron_signer_t  *signer;

    ron_buf_init(&text, 0);
    ron_buf_init(&public_key, 1024);
    signer = NULL;

    rc = ron_ctl_read_file(args, args->pos[0], &text);

    if (rc == RON_EXIT_OK
        && (ron_signer_parse(ron_buf_str(&text), &signer) != RON_OK
            || ron_signer_public_text(signer, &public_key) != RON_OK))
    {
        rc = ron_ctl_fail(args, RON_EXIT_NO, "%s: not a signing key",
                          args->pos[0]);
    }

    if (rc == RON_EXIT_OK) {
        printf(args->json ? "{\"public_key\":\"%.*s\"}\n" : "%.*s\n",
               (int) public_key.len, (const char *) public_key.data);
    }

    ron_signer_free(signer);
    ctl_wipe(&text);
    ron_buf_free(&public_key);

    return rc;
}
