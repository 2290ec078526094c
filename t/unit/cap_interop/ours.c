
/*
 * Capabilities of libron for a script: `ours <keys file>` reads one command a
 * line, its words separated by tabs, and answers each by one line.
 *
 *     mint <kid> <id> <location> <caveat>...      the token
 *     attenuate <token> <caveat>...               the token
 *     verify <now in ms> <token>                  "ok <kid> <id>" or
 *                                                 "<status> <reason>"
 *     show <token>                                identifier, location, caveats
 */

#include <stdio.h>
#include <stdlib.h>

#include "ron_cap.h"


#define WORDS_MAX  64


static ron_keyring_t  ring;


static size_t
split(char *line, ron_str_t *words)
{
    char    *tab;
    size_t   n;

    line[strcspn(line, "\n")] = '\0';

    for (n = 0; n < WORDS_MAX; n++) {
        tab = strchr(line, '\t');

        if (tab != NULL) {
            *tab = '\0';
        }

        words[n] = ron_cstr(line);

        if (tab == NULL) {
            return n + 1;
        }

        line = tab + 1;
    }

    return n;
}


static void
print(ron_status_t rc, const ron_buf_t *b)
{
    if (rc == RON_OK) {
        printf("%.*s\n", (int) b->len, (const char *) b->data);

    } else {
        printf("failed: %s\n", ron_status_name(rc));
    }
}


static void
verify(ron_str_t now, ron_str_t token)
{
    ron_cap_t        cap;
    ron_cap_error_t  err;

    if (ron_cap_verify(&ring, token, strtoull((const char *) now.data, NULL,
                                              10), &cap, &err)
        == RON_OK)
    {
        printf("ok %s %s\n", cap.kid, cap.id);

    } else {
        printf("%u %s\n", err.status, err.reason);
    }
}


static void
show(ron_str_t token)
{
    size_t           i;
    ron_macaroon_t   m;
    ron_cap_error_t  err;

    if (ron_cap_parse(token, &m, &err) != RON_OK) {
        printf("%u %s\n", err.status, err.reason);
        return;
    }

    printf("%.*s\t%.*s", (int) m.identifier.len,
           (const char *) m.identifier.data, (int) m.location.len,
           m.location.len ? (const char *) m.location.data : "");

    for (i = 0; i < m.caveats_n; i++) {
        printf("\t%.*s", (int) m.caveats[i].len,
               (const char *) m.caveats[i].data);
    }

    printf("\n");
}


static void
command(ron_str_t *w, size_t n)
{
    ron_buf_t         b;
    const ron_key_t  *key;

    ron_buf_init(&b, 0);

    if (ron_str_eq(w[0], ron_str("mint")) && n >= 4) {
        key = ron_keyring_find(&ring, w[1]);
        print(key ? ron_cap_mint(key, w[2], w[3], w + 4, n - 4, &b)
                  : RON_ENOTFOUND, &b);

    } else if (ron_str_eq(w[0], ron_str("attenuate")) && n >= 2) {
        print(ron_cap_attenuate(w[1], w + 2, n - 2, &b), &b);

    } else if (ron_str_eq(w[0], ron_str("verify")) && n == 3) {
        verify(w[1], w[2]);

    } else if (ron_str_eq(w[0], ron_str("show")) && n == 2) {
        show(w[1]);

    } else {
        printf("unknown command\n");
    }

    ron_buf_free(&b);
}


int
main(int argc, char **argv)
{
    FILE                 *file;
    size_t                n;
    ron_str_t             words[WORDS_MAX];
    ron_keyring_error_t   err;

    static char  text[65536];

    file = argc == 2 ? fopen(argv[1], "r") : NULL;

    if (file == NULL) {
        fprintf(stderr, "usage: ours <keys file>\n");
        return 2;
    }

    n = fread(text, 1, sizeof(text), file);
    (void) fclose(file);

    if (ron_keyring_parse((ron_str_t) { n, (const uint8_t *) text }, &ring,
                          &err)
        != RON_OK)
    {
        fprintf(stderr, "%s:%zu: %s\n", argv[1], err.line, err.reason);
        return 2;
    }

    while (fgets(text, sizeof(text), stdin) != NULL) {
        n = split(text, words);
        command(words, n);
    }

    ron_keyring_wipe(&ring);

    return 0;
}
