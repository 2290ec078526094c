
/*
 * A ledger with a bit of everything in it: all kinds of entries, wallet
 * batches with notes, holds that are captured, released and expire, several
 * epochs, checkpoints of the engine, signed heads.  Made by the engine, the
 * same for the same number of batches but for the key.
 */

#ifndef LIB_LEDGER_H
#define LIB_LEDGER_H


#include "ron_engine.h"


#define LEDGER_ACCOUNTS  24

typedef struct {
    ron_engine_t       *en;
    ron_engine_conf_t   conf;
    char                url[512];
    uint64_t            time_ms;
    uint64_t            n;              /* operations so far */
    uint64_t            batches;
    uint64_t            hold;           /* seq of an open one, 0: none */
    uint64_t            refused;
} ledger_t;


/* Opens or makes the ledger in `dir` and becomes its writer. */
bool ledger_open(ledger_t *l, const char *dir, const ron_signer_t *signer);
bool ledger_grow(ledger_t *l, unsigned batches);
void ledger_close(ledger_t *l);

#define LEDGER_PAST_MAX  32


/* Where a ledger was after each commit; the first place is the empty one. */
typedef struct {
    unsigned    n;
    uint64_t    seq[LEDGER_PAST_MAX];
    ron_hash_t  state[LEDGER_PAST_MAX]; /* every balance, nonce, version */
} ledger_past_t;

void ledger_past_add(ledger_past_t *past, ron_engine_t *en);

/* Which of them this one is; asserts that it is one. */
unsigned ledger_past_find(const ledger_past_t *past, ron_engine_t *en);

/* A directory for tests: "<TMPDIR>/ron-<name>-<pid>", emptied. */
void ledger_dir(const char *name, char *dir, size_t size);
void ledger_shell(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));


#endif /* LIB_LEDGER_H */
