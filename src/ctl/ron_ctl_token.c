
/* ronctl token mint, show, attenuate. */

#include "ron_ctl.h"
#include "ron_cap.h"
#include "ron_codec.h"
#include "ron_port.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>


typedef struct {
    ron_buf_t  text;
    size_t     end[RON_CAP_CAVEATS_MAX];
    size_t     n;
} ctl_caveats_t;


static int ctl_caveats(const ron_ctl_args_t *args, ctl_caveats_t *c);
static bool ctl_words(const ron_ctl_args_t *args, const char *name,
    const char *value);
static bool ctl_caveat_add(const ron_ctl_args_t *args, ctl_caveats_t *c,
    const char *name, const char *value);
static void ctl_caveat_views(const ctl_caveats_t *c, ron_str_t *views);
static bool ctl_when(const char *text, uint64_t *seconds);
static int ctl_token(const ron_ctl_args_t *args, ron_buf_t *token);
static void ctl_token_shown(const ron_ctl_args_t *args,
    const ron_macaroon_t *m, const char *why, bool checked, bool valid);
static int ctl_token_print(const ron_ctl_args_t *args, const ron_buf_t *token);


/*
 * Options become caveats in a fixed order, then --caveat as they are; each is
 * refused here rather than by a server later.
 */

static int
ctl_caveats(const ron_ctl_args_t *args, ctl_caveats_t *c)
{
    char         number[32];
    uint64_t     seconds;
    const char  *value, *begin;

    static const char *const  plain[] = {
        "svc", "act", "account", "asset", "max-amount", "max-daily",
        "tenant", "ip"
    };

    memset(c, 0, sizeof(ctl_caveats_t));
    ron_buf_init(&c->text, RON_CAP_TEXT_MAX);

    for (unsigned i = 0; i < ron_array_n(plain); i++) {
        for (unsigned n = 0; (value = ron_ctl_nth(args, plain[i], n)) != NULL;
             n++)
        {
            if (!ctl_words(args, plain[i], value)
                || !ctl_caveat_add(args, c, plain[i], value))
            {
                return RON_EXIT_USAGE;
            }
        }
    }

    for (unsigned i = 0; i < 2; i++) {
        value = ron_ctl_value(args, i == 0 ? "before" : "after");

        if (value == NULL) {
            continue;
        }

        if (!ctl_when(value, &seconds)) {
            return ron_ctl_fail(args, RON_EXIT_USAGE, "\"%s\" is no time: "
                                "seconds since 1970, 2027-01-01T00:00:00.000Z"
                                ", or from now 90s 15m 12h 30d", value);
        }

        snprintf(number, sizeof(number), "%llu",
                 (unsigned long long) seconds);

        if (!ctl_caveat_add(args, c, i == 0 ? "before" : "after", number)) {
            return RON_EXIT_USAGE;
        }
    }

    for (unsigned n = 0; (value = ron_ctl_nth(args, "caveat", n)) != NULL;
         n++)
    {
        begin = strstr(value, " = ");

        if (begin == NULL) {
            return ron_ctl_fail(args, RON_EXIT_USAGE, "\"%s\" is no caveat: "
                                "they read \"name = value\"", value);
        }

        if (!ctl_caveat_add(args, c, NULL, value)) {
            return RON_EXIT_USAGE;
        }
    }

    return RON_EXIT_OK;
}


/*
 * A typing error in a service or an act makes a token that allows nothing.
 * Services are all known; acts of other services than wallet and ledger are
 * theirs, hence only a hint.
 */

static bool
ctl_words(const ron_ctl_args_t *args, const char *name, const char *value)
{
    bool         svc, known;
    size_t       len;
    const char  *p;

#define CTL_SVC_WORD(id, word)  word,
#define CTL_ACT_WORD(id, word)  word,

    static const char *const  svcs[] = { RON_CAP_SVC_TABLE(CTL_SVC_WORD) };
    static const char *const  acts[] = { RON_CAP_ACT_TABLE(CTL_ACT_WORD) };

    svc = strcmp(name, "svc") == 0;

    if (!svc && strcmp(name, "act") != 0) {
        return true;
    }

    for (p = value; *p != '\0'; p += len + (p[len] == ' ')) {
        len = strcspn(p, " ");
        known = false;

        for (size_t i = 0; i < (svc ? ron_array_n(svcs) : ron_array_n(acts));
             i++)
        {
            known = known || (strlen(svc ? svcs[i] : acts[i]) == len
                              && memcmp(svc ? svcs[i] : acts[i], p, len)
                                 == 0);
        }

        if (!known && svc) {
            (void) ron_ctl_fail(args, RON_EXIT_USAGE, "\"%.*s\" is no "
                                "service", (int) len, p);
            return false;
        }

        if (!known) {
            fprintf(stderr, "ronctl: note: \"%.*s\" is no act of wallet or "
                    "ledger\n", (int) len, p);
        }
    }

    return true;
}


static bool
ctl_caveat_add(const ron_ctl_args_t *args, ctl_caveats_t *c,
    const char *name, const char *value)
{
    size_t     begin;
    ron_str_t  caveat;

    if (c->n == RON_CAP_CAVEATS_MAX) {
        (void) ron_ctl_fail(args, RON_EXIT_USAGE, "more than %d caveats",
                            RON_CAP_CAVEATS_MAX);
        return false;
    }

    begin = c->text.len;

    for (const char *p = name; p != NULL && *p != '\0'; p++) {
        ron_buf_put_u8(&c->text, (uint8_t) (*p == '-' ? '_' : *p));
    }

    ron_buf_printf(&c->text, "%s%s", name != NULL ? " = " : "", value);
    caveat = (ron_str_t) { c->text.len - begin, c->text.data + begin };

    if (ron_buf_status(&c->text) != RON_OK
        || ron_cap_caveat_check(caveat) != RON_OK)
    {
        (void) ron_ctl_fail(args, RON_EXIT_USAGE, "\"%.*s\" is not a caveat "
                            "that a server understands", (int) caveat.len,
                            (const char *) caveat.data);
        return false;
    }

    c->end[c->n++] = c->text.len;

    return true;
}


static void
ctl_caveat_views(const ctl_caveats_t *c, ron_str_t *views)
{
    size_t  begin;

    for (size_t i = 0; i < c->n; i++) {
        begin = i == 0 ? 0 : c->end[i - 1];
        views[i] = (ron_str_t) { c->end[i] - begin, c->text.data + begin };
    }
}


static bool
ctl_when(const char *text, uint64_t *seconds)
{
    char      *end;
    uint64_t   ms, unit;

    if (ron_time_parse(ron_cstr(text), &ms) == RON_OK) {
        *seconds = ms / 1000;
        return true;
    }

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }

    *seconds = strtoull(text, &end, 10);

    if (*end == '\0') {
        return *seconds < UINT64_C(1) << 40;
    }

    unit = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600
           : *end == 'd' ? 86400 : 0;

    if (unit == 0 || end[1] != '\0' || *seconds > 100000000) {
        return false;
    }

    *seconds = ron_clock_wall_ms() / 1000 + *seconds * unit;

    return true;
}


int
ron_ctl_keyring(const ron_ctl_args_t *args, const char *path,
    ron_keyring_t *ring)
{
    int                  rc;
    ron_buf_t            text;
    ron_keyring_error_t  err;

    ron_buf_init(&text, 0);
    rc = ron_ctl_read_file(args, path, &text);

    if (rc == RON_EXIT_OK
        && ron_keyring_parse(ron_buf_str(&text), ring, &err) != RON_OK)
    {
        rc = ron_ctl_fail(args, RON_EXIT_IO, "%s: line %zu: %s", path,
                          err.line, err.reason);
    }

    if (text.data != NULL) {
        OPENSSL_cleanse(text.data, text.cap);
    }

    ron_buf_free(&text);

    return rc;
}


/* From the command line or, "-" or nothing, from stdin. */

static int
ctl_token(const ron_ctl_args_t *args, ron_buf_t *token)
{
    int          rc;
    const char  *given;

    given = args->pos_n > 0 ? args->pos[0] : "-";

    if (strcmp(given, "-") != 0) {
        ron_buf_put_cstr(token, given);
        return RON_EXIT_OK;
    }

    rc = ron_ctl_read_file(args, "-", token);

    while (rc == RON_EXIT_OK && token->len != 0
           && (token->data[token->len - 1] == '\n'
               || token->data[token->len - 1] == '\r'
               || token->data[token->len - 1] == ' '))
    {
        token->len--;
    }

    return rc;
}


static int
ctl_token_print(const ron_ctl_args_t *args, const ron_buf_t *token)
{
    ron_buf_t  out;

    ron_buf_init(&out, 0);

    if (args->json) {
        ron_buf_put_u8(&out, '{');
        ron_json_put_member(&out, ron_str("token"), ron_buf_str(token));
        ron_buf_put_u8(&out, '}');

    } else {
        ron_buf_put_str(&out, ron_buf_str(token));
    }

    ron_buf_put_u8(&out, '\n');
    ron_ctl_print(&out);
    ron_buf_free(&out);

    return RON_EXIT_OK;
}


int
ron_ctl_token_mint(ron_ctl_args_t *args)
{
    int              rc;
    char             id[RON_ULID_LEN + 1];
    uint8_t          random[RON_ULID_RANDOM_LEN];
    ron_buf_t        token;
    ron_str_t        views[RON_CAP_CAVEATS_MAX];
    const char      *given, *kid, *keys;
    ctl_caveats_t    caveats;
    ron_keyring_t    ring;
    const ron_key_t  *key;

    keys = ron_ctl_value(args, "keys");
    given = ron_ctl_value(args, "id");
    kid = ron_ctl_value(args, "kid");

    if (keys == NULL) {
        return ron_ctl_fail(args, RON_EXIT_USAGE, "minted with which key? "
                            "--keys FILE (the one that ron_keys names)");
    }

    if (given == NULL) {
        if (ron_random(random, sizeof(random)) != RON_OK) {
            return ron_ctl_fail(args, RON_EXIT_IO, "no randomness");
        }

        id[ron_ulid_encode(ron_clock_wall_ms(), random, id)] = '\0';
        given = id;
    }

    rc = ctl_caveats(args, &caveats);

    if (rc == RON_EXIT_OK) {
        rc = ron_ctl_keyring(args, keys, &ring);
    }

    if (rc != RON_EXIT_OK) {
        ron_buf_free(&caveats.text);
        return rc;
    }

    key = kid != NULL ? ron_keyring_find(&ring, ron_cstr(kid))
                      : &ring.keys[0];
    ron_buf_init(&token, 0);
    ctl_caveat_views(&caveats, views);

    if (key == NULL) {
        rc = ron_ctl_fail(args, RON_EXIT_NO, "%s has no key \"%s\"", keys,
                          kid);

    } else if (ron_cap_mint(key, ron_cstr(given), ron_null_str, views,
                            caveats.n, &token) != RON_OK)
    {
        rc = ron_ctl_fail(args, RON_EXIT_USAGE, "no token can be made: the id "
                          "is 1 to %d visible characters, and all of it fits "
                          "%d", RON_CAP_ID_MAX, RON_CAP_TEXT_MAX);

    } else {
        rc = ctl_token_print(args, &token);
    }

    ron_keyring_wipe(&ring);
    ron_buf_free(&caveats.text);
    ron_buf_free(&token);

    return rc;
}


int
ron_ctl_token_show(ron_ctl_args_t *args)
{
    int               rc;
    bool              valid;
    ron_buf_t         token;
    ron_cap_t         cap;
    const char       *keys;
    ron_keyring_t     ring;
    ron_macaroon_t    m;
    ron_cap_error_t   err;

    ron_buf_init(&token, 0);
    memset(&err, 0, sizeof(err));
    keys = ron_ctl_value(args, "keys");
    valid = false;

    rc = ctl_token(args, &token);

    if (rc == RON_EXIT_OK
        && ron_cap_parse(ron_buf_str(&token), &m, &err) != RON_OK)
    {
        rc = ron_ctl_fail(args, RON_EXIT_NO, "%s", err.reason);
    }

    if (rc == RON_EXIT_OK && keys != NULL) {
        rc = ron_ctl_keyring(args, keys, &ring);

        if (rc == RON_EXIT_OK) {
            valid = ron_cap_verify(&ring, ron_buf_str(&token),
                                   ron_clock_wall_ms(), &cap, &err)
                    == RON_OK;
            ron_keyring_wipe(&ring);
        }
    }

    ron_buf_free(&token);

    if (rc != RON_EXIT_OK) {
        return rc;
    }

    ctl_token_shown(args, &m, keys == NULL ? "not checked (no --keys)"
                    : valid ? "yes" : err.reason, keys != NULL, valid);

    return keys == NULL || valid ? RON_EXIT_OK : RON_EXIT_NO;
}


static void
ctl_token_shown(const ron_ctl_args_t *args, const ron_macaroon_t *m,
    const char *why, bool checked, bool valid)
{
    ron_buf_t  out;
    ron_str_t  caveat;

    ron_buf_init(&out, 0);

    if (args->json) {
        ron_buf_put_u8(&out, '{');
        ron_json_put_member(&out, ron_str("kid"), m->kid);
        ron_json_put_member(&out, ron_str("id"), m->id);
        ron_json_put_key(&out, ron_str("caveats"));
        ron_buf_put_u8(&out, '[');

    } else {
        ron_buf_printf(&out, "key      %.*s\nid       %.*s\n",
                       (int) m->kid.len, (const char *) m->kid.data,
                       (int) m->id.len, (const char *) m->id.data);
    }

    for (size_t i = 0; i < m->caveats_n; i++) {
        caveat = ron_utf8_check(m->caveats[i], NULL) == RON_OK
                 ? m->caveats[i] : ron_str("(binary)");

        if (args->json) {
            ron_json_put_comma(&out);
            ron_json_put_string(&out, caveat);

        } else {
            ron_buf_printf(&out, "caveat   %.*s\n", (int) caveat.len,
                           (const char *) caveat.data);
        }
    }

    if (args->json) {
        ron_buf_put_u8(&out, ']');

        if (checked) {
            ron_json_put_member_bool(&out, ron_str("valid"), valid);
        }

        if (checked && !valid) {
            ron_json_put_member(&out, ron_str("reason"), ron_cstr(why));
        }

        ron_buf_put_cstr(&out, "}\n");

    } else {
        ron_buf_printf(&out, "valid    %s\n", why);
    }

    ron_ctl_print(&out);
    ron_buf_free(&out);
}


int
ron_ctl_token_attenuate(ron_ctl_args_t *args)
{
    int             rc;
    ron_buf_t       token, weaker;
    ron_str_t       views[RON_CAP_CAVEATS_MAX];
    ctl_caveats_t   caveats;
    ron_status_t    status;

    ron_buf_init(&token, 0);
    ron_buf_init(&weaker, 0);

    rc = ctl_caveats(args, &caveats);

    if (rc == RON_EXIT_OK && caveats.n == 0) {
        rc = ron_ctl_fail(args, RON_EXIT_USAGE, "weaker in what? give one "
                          "caveat at least");
    }

    if (rc == RON_EXIT_OK) {
        rc = ctl_token(args, &token);
    }

    if (rc == RON_EXIT_OK) {
        ctl_caveat_views(&caveats, views);
        status = ron_cap_attenuate(ron_buf_str(&token), views, caveats.n,
                                   &weaker);

        rc = status == RON_OK ? ctl_token_print(args, &weaker)
             : ron_ctl_fail(args, RON_EXIT_NO, status == RON_ERANGE
                            ? "the token would be too long"
                            : "this is not a token");
    }

    ron_buf_free(&caveats.text);
    ron_buf_free(&token);
    ron_buf_free(&weaker);

    return rc;
}
