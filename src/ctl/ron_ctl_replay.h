
/*
 * Duplicates in a load: a share of the requests is sent again, as it was, long
 * after it was answered, and has to be answered as it was, byte for byte.
 *
 * Each connection keeps some requests with their answers, and draws by lot
 * which: whatever was answered in the run so far may be sent again.
 */

#ifndef RON_CTL_REPLAY_H
#define RON_CTL_REPLAY_H


#include "ron.h"
#include "ron_buf.h"


#define RON_REPLAY_KEPT  16         /* of a connection */


typedef struct {
    ron_buf_t  request;
    ron_buf_t  answer;
} ron_replay_pair_t;


typedef struct {
    ron_replay_pair_t   kept[RON_REPLAY_KEPT];
    ron_replay_pair_t  *again;      /* under way; NULL: a new one is */
    ron_str_t           bytes;      /* the new one */
    uint64_t            answered;
} ron_replay_conn_t;


typedef struct {
    uint64_t            percent;    /* of the requests; 0: none, no memory */
    unsigned            connections;
    ron_replay_conn_t  *conns;
    uint64_t            random;
    uint64_t            due;        /* hundredths of a duplicate */

    uint64_t            sent;
    uint64_t            same;
    uint64_t            differ;
} ron_replay_t;


/* RON_ENOMEM. */
ron_status_t ron_replay_init(ron_replay_t *r, unsigned connections,
    uint64_t percent);
void ron_replay_free(ron_replay_t *r);

/* Whether a connection's next request is one again; then its bytes. */
bool ron_replay_request(ron_replay_t *r, unsigned connection,
    ron_str_t *bytes);

/* It is a new one, which may be sent again later. */
void ron_replay_new(ron_replay_t *r, unsigned connection, ron_str_t bytes);

/* What a connection was answered; true: that was one again. */
bool ron_replay_answer(ron_replay_t *r, unsigned connection, unsigned status,
    ron_str_t body);


#endif /* RON_CTL_REPLAY_H */
