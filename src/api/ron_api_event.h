
/*
 * Audit events of the wallet: what became of an operation, as it goes through
 * the ring of the zone, and as a stream says it.
 *
 *     wallet.transfer.accepted    txid, op, asset, amount_minor, nonce, ts,
 *                                 seq, from_hash, to_hash, corr_id
 *     wallet.request.rejected     op, reason, asset, amount_minor, corr_id, ...
 *
 * An accepted operation is durable.  Accounts are in it as hashes under a key
 * that only this server has, the same for the same account; tokens, keys and
 * memos are not in it at all.
 */

#ifndef RON_API_EVENT_H
#define RON_API_EVENT_H


#include "ron_unit.h"
#include "ron_zone.h"


#define RON_API_HASH_LEN   16

/* No event is longer, in either form. */
#define RON_API_EVENT_MAX  960


/* Whoever has the key can tell whether an account is meant; nobody else. */
void ron_api_account_hash(const uint8_t key[32], ron_str_t account,
    uint8_t hash[RON_API_HASH_LEN]);

/*
 * Gives `put` an event for each operation of a wallet's unit that was
 * accepted now (not a repeat) or rejected.  No entry of /ledger/ingest is
 * one.  Never blocks.
 */
void ron_api_event_unit(const uint8_t key[32], const ron_unit_t *unit,
    const ron_outcome_t *outcome, uint64_t time_ms,
    void (*put)(void *ctx, const ron_event_t *event), void *ctx);

/*
 * One line of JSON, or a server-sent event; its id is that of index + 1.
 * RON_EINVAL: not an event of ours; nothing is put.
 */
ron_status_t ron_api_event_put(const ron_event_t *event, uint64_t life,
    bool lines, ron_buf_t *out);

/*
 * An id: the life of the zone that counts, 12 hexadecimal digits, a dash, and
 * what it has counted.  A client that comes back with one of another life is
 * not at a place of this one.
 */
#define RON_API_EVENT_ID_LEN  (12 + 1 + 20)

size_t ron_api_event_id(uint64_t life, uint64_t n,
    char id[RON_API_EVENT_ID_LEN + 1]);

/* RON_EINVAL: not an id.  A number alone is an id of no life. */
ron_status_t ron_api_event_id_parse(ron_str_t id, uint64_t *life,
    uint64_t *n);

/* Has the event to do with this asset? */
bool ron_api_event_asset(const ron_event_t *event, ron_str_t *asset);


#endif /* RON_API_EVENT_H */
