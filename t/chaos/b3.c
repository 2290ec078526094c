
/*
 * BLAKE3 of every line of the input: for RonHistory.pm, which has none.
 * With -x a line is the bytes in hex.
 */

#include <blake3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* In place; what is not hex ends it. */
static ssize_t
unhex(char *line, ssize_t len)
{
    char      digits[3] = "";
    char     *end;
    ssize_t   i;

    for (i = 0; 2 * i + 1 < len; i++) {
        memcpy(digits, line + 2 * i, 2);
        line[i] = (char) strtoul(digits, &end, 16);

        if (end != digits + 2) {
            break;
        }
    }

    return i;
}


int
main(int argc, char **argv)
{
    bool           hex = argc > 1 && strcmp(argv[1], "-x") == 0;
    char           *line = NULL;
    size_t         cap = 0, i;
    ssize_t        len;
    uint8_t        hash[BLAKE3_OUT_LEN];
    blake3_hasher  hasher;

    while ((len = getline(&line, &cap, stdin)) > 0) {
        len -= line[len - 1] == '\n';
        len = hex ? unhex(line, len) : len;

        blake3_hasher_init(&hasher);
        blake3_hasher_update(&hasher, line, (size_t) len);
        blake3_hasher_finalize(&hasher, hash, sizeof(hash));

        for (i = 0; i < sizeof(hash); i++) {
            (void) printf("%02x", hash[i]);
        }

        (void) putchar('\n');
    }

    free(line);

    return 0;
}
