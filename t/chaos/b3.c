
/* BLAKE3 of every line of the input: for RonHistory.pm, which has none. */

#include <blake3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


int
main(void)
{
    char           *line = NULL;
    size_t         cap = 0, i;
    ssize_t        len;
    uint8_t        hash[BLAKE3_OUT_LEN];
    blake3_hasher  hasher;

    while ((len = getline(&line, &cap, stdin)) > 0) {
        len -= line[len - 1] == '\n';

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
