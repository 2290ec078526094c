
/*
 * What ronctl bench asks for: the requests of a workload, made by patching a
 * template that each connection has, so that making one costs less than
 * sending it.
 *
 * Every write has a key that was never used before.  Accounts are dealt out
 * to connections, and an account pays over its own connection only: so its
 * nonces increase in the order in which the server sees them.
 */

#ifndef RON_CTL_LOAD_H
#define RON_CTL_LOAD_H


#include "ron.h"
#include "ron_buf.h"


#define RON_LOAD_OPS_MAX  100000
#define RON_LOAD_KEY_LEN  29            /* "bench-<run>-<16 hex>" */


typedef enum {
    RON_LOAD_TRANSFER = 0,
    RON_LOAD_ISSUE,
    RON_LOAD_BATCH,
    RON_LOAD_INGEST,
    RON_LOAD_NDJSON,
    RON_LOAD_BALANCE,
    RON_LOAD_PROOF,
    RON_LOAD_SETUP,             /* fills the accounts */
    RON_LOAD_N
} ron_load_kind_t;


typedef struct {
    const char  *name;
    const char  *what;
    unsigned     ops_max;
    unsigned     ops;           /* of a request, unless asked otherwise */
    bool         reads;
} ron_load_info_t;


typedef struct {
    ron_buf_t  text;            /* the request */
    size_t     key;             /* where its key is, 0: none */
    size_t     first;           /* its first operation */
    uint64_t   turn;            /* operations made */
    uint64_t   random;
    uint64_t   key_n;           /* of the request under way */
} ron_load_conn_t;


typedef struct {
    ron_load_kind_t    kind;
    bool               hot;
    unsigned           connections;
    unsigned           ops;
    uint64_t           accounts;
    uint64_t           seqs;            /* proofs are of 1 .. seqs */
    uint64_t           run;             /* whose accounts these are */
    uint64_t           key_run;         /* makes keys of this run its own */
    uint64_t           nonce;           /* the first one */
    ron_str_t          host;
    const ron_buf_t   *tokens;
    unsigned           token_n;

    ron_load_conn_t   *conns;
    uint64_t           keys;            /* used so far */
    uint64_t           filled;          /* accounts, by the setup */

    /* where things are in an operation; SIZE_MAX: nowhere */

    size_t             op_len;
    size_t             at_from;
    size_t             at_to;
    size_t             at_nonce;
    size_t             at_id;
} ron_load_t;


const ron_load_info_t *ron_load_info(ron_load_kind_t kind);
bool ron_load_find(const char *name, ron_load_kind_t *kind);

/* Templates for every connection; RON_ENOMEM. */
ron_status_t ron_load_init(ron_load_t *load);
void ron_load_free(ron_load_t *load);

/* The next request of a connection; false: there is no more to do. */
bool ron_load_request(ron_load_t *load, unsigned connection,
    ron_str_t *bytes);

/*
 * How many operations an answer acknowledges, and the last seq that it names
 * (0: none).
 */
uint64_t ron_load_acked(const ron_load_t *load, unsigned status,
    ron_str_t body, uint64_t *seq);

/*
 * The next number behind `name`, such as "\"seq\":"; *off begins as 0 and goes
 * on.
 */
bool ron_load_number(ron_str_t body, const char *name, size_t *off,
    uint64_t *v);

/* The key of the request under way. */
void ron_load_key(const ron_load_t *load, unsigned connection,
    char key[RON_LOAD_KEY_LEN + 1]);


#endif /* RON_CTL_LOAD_H */
