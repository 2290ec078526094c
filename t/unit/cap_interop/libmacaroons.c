
/*
 * libmacaroons for a script: reads one command a line, its words separated by
 * tabs, and answers each by one line.  Tokens are in the format that this
 * library writes, version 1; a key is 64 hexadecimal digits.
 *
 *     mint <key> <identifier> <location> <caveat>...     the token
 *     attenuate <token> <caveat>...                      the token
 *     verify <key> <token> <caveat>...                   "ok" or "refused"
 */

#include <macaroons.h>
#include <stdio.h>
#include <string.h>


#define WORDS_MAX  64


typedef const unsigned char  bytes_t;


static size_t
split(char *line, char **words)
{
    size_t  n;

    line[strcspn(line, "\n")] = '\0';

    for (n = 0; n < WORDS_MAX && line != NULL; n++) {
        words[n] = line;
        line = strchr(line, '\t');

        if (line != NULL) {
            *line++ = '\0';
        }
    }

    return n;
}


static size_t
unhex(const char *text, unsigned char *out)
{
    size_t    n;
    unsigned  v;

    for (n = 0; n < 32 && sscanf(text + 2 * n, "%2x", &v) == 1; n++) {
        out[n] = (unsigned char) v;
    }

    return n;
}


/* Adds the caveats to m, which it consumes, and prints the token. */
static void
finish(struct macaroon *m, char **caveats, size_t n)
{
    char                      *text;
    size_t                     i, size;
    struct macaroon           *next;
    enum macaroon_returncode   err;

    for (i = 0; i < n && m != NULL; i++) {
        next = macaroon_add_first_party_caveat(m, (bytes_t *) caveats[i],
                                               strlen(caveats[i]), &err);
        macaroon_destroy(m);
        m = next;
    }

    if (m == NULL) {
        printf("failed\n");
        return;
    }

    size = macaroon_serialize_size_hint(m);
    text = malloc(size);

    if (text != NULL && macaroon_serialize(m, text, size, &err) == 0) {
        printf("%s\n", text);

    } else {
        printf("failed\n");
    }

    free(text);
    macaroon_destroy(m);
}


static int
verify(const char *hex, const char *token, char **caveats, size_t n)
{
    int                        good;
    size_t                     i, key_len;
    unsigned char              key[32];
    struct macaroon           *m;
    struct macaroon_verifier  *v;
    enum macaroon_returncode   err;

    key_len = unhex(hex, key);
    m = macaroon_deserialize(token, &err);
    v = macaroon_verifier_create();
    good = m != NULL && v != NULL;

    for (i = 0; i < n && good; i++) {
        good = macaroon_verifier_satisfy_exact(v, (bytes_t *) caveats[i],
                                               strlen(caveats[i]), &err)
               == 0;
    }

    good = good
           && macaroon_verify(v, m, key, key_len, NULL, 0, &err) == 0;

    if (v != NULL) {
        macaroon_verifier_destroy(v);
    }

    if (m != NULL) {
        macaroon_destroy(m);
    }

    return good;
}


int
main(void)
{
    char                      *w[WORDS_MAX];
    size_t                     n, key_len;
    unsigned char              key[32];
    enum macaroon_returncode   err;

    static char  line[65536];

    while (fgets(line, sizeof(line), stdin) != NULL) {
        n = split(line, w);

        if (strcmp(w[0], "mint") == 0 && n >= 4) {
            key_len = unhex(w[1], key);
            finish(macaroon_create((bytes_t *) w[3], strlen(w[3]), key,
                                   key_len, (bytes_t *) w[2], strlen(w[2]),
                                   &err), w + 4, n - 4);

        } else if (strcmp(w[0], "attenuate") == 0 && n >= 2) {
            finish(macaroon_deserialize(w[1], &err), w + 2, n - 2);

        } else if (strcmp(w[0], "verify") == 0 && n >= 3) {
            printf("%s\n", verify(w[1], w[2], w + 3, n - 3) ? "ok"
                                                            : "refused");

        } else {
            printf("unknown command\n");
        }
    }

    return 0;
}
