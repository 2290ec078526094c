
/*
 * Receipts: what a client keeps.  A pure function of the entry, so that a
 * replay a day later, by another process, gives the same bytes.
 */

#ifndef RON_RECEIPT_H
#define RON_RECEIPT_H


#include "ron_entry.h"


#define RON_TXID_LEN     29                 /* "tx_" + 26 */
#define RON_RECEIPT_MAX  4096


/* "tx_" + Crockford of 48 bits time, 16 bits ledger, 64 bits seq; with NUL. */
void ron_txid_print(uint64_t time_ms, uint16_t ledger_id, uint64_t seq,
    char buf[RON_TXID_LEN + 1]);
ron_status_t ron_txid_parse(ron_str_t txid, uint64_t *time_ms,
    uint16_t *ledger_id, uint64_t *seq);

/*
 * The members that receipt_hash covers, as compact JSON with sorted keys
 * (RFC 8785), and that hash.
 */
ron_status_t ron_receipt_hashed(const ron_entry_t *e, ron_buf_t *out);
ron_status_t ron_receipt_hash(const ron_entry_t *e, ron_hash_t *hash);

/* The whole receipt, one JSON object, without a newline. */
ron_status_t ron_receipt_put(const ron_entry_t *e, ron_buf_t *out);

/* The object of the ingest API: entries, export; one JSON object. */
ron_status_t ron_entry_put_json(const ron_entry_t *e, ron_buf_t *out);


#endif /* RON_RECEIPT_H */
