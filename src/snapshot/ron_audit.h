
/*
 * The audit: reads a ledger from its first commit to its head and believes
 * nothing that it can derive itself.
 *
 *     each commit   follows the one before (seq, previous root, epoch and
 *                   time not falling), its chain is that of its columns, its
 *                   root is that of its entries
 *     each entry    is canonical, of this ledger, of its commit's time, and
 *                   can follow from the state before it
 *     each tile     is what the entries give
 *     checkpoints   have the hash that the journal says, and replaying the
 *                   journal over the newest gives the state that replaying
 *                   it from nothing gives
 *     at the end    money is conserved; nothing that was written beside the
 *                   journal (published head, tags, tiles, checkpoints,
 *                   history) knows of an entry that the journal lost
 *
 * It works on a ledger that is being written, without its lock: it looks at
 * the head once, goes that far in short transactions, and stops there.
 */

#ifndef RON_AUDIT_H
#define RON_AUDIT_H


#include "ron_store.h"


/* False: stop, which ends in RON_ECANCELED. */
typedef bool (*ron_progress_pt)(void *ctx, uint64_t done, uint64_t total);


typedef struct {
    uint64_t         from;          /* 0 and 1: everything; else from the
                                       commit that holds this seq, and then
                                       without replay */
    bool             no_replay;     /* bytes, roots and chain only */
    bool             no_beside;     /* the journal and its tiles only */
    ron_str_t        note;          /* a signed checkpoint kept elsewhere */
    ron_str_t        public_key;    /* of that note and the published head */
    ron_progress_pt  progress;
    void            *ctx;
} ron_audit_conf_t;


typedef struct {
    uint64_t    from;               /* first seq that was looked at */
    uint64_t    seq;                /* last seq that was found good */
    uint64_t    commits;
    uint64_t    entries;
    uint64_t    tiles;
    uint64_t    slices;             /* of checkpoints */
    uint64_t    accounts;
    uint64_t    time_ms;
    uint64_t    epoch;
    uint64_t    took_us;
    uint64_t    head_size;          /* published; 0: none */
    bool        replayed;
    bool        head_verified;      /* by the public key */
    ron_hash_t  root;
    ron_hash_t  chain;

    /* What is wrong.  bad_seq 0: not one commit's fault. */
    uint64_t    bad_seq;            /* the commit's first seq, */
    uint64_t    bad_last;           /* its last, */
    uint64_t    bad_entry;          /* and the entry, when it is known */
    const char *what;               /* one word, stable; NULL: nothing */
    char        why[512];
} ron_audit_report_t;


/*
 * RON_OK: everything holds.  RON_ECORRUPT: the report says what does not.
 * RON_ECANCELED: the progress function said so.  Anything else: it could not
 * be read, and `why` says where it stopped.
 */
ron_status_t ron_audit(ron_store_t *store, const ron_audit_conf_t *conf,
    ron_audit_report_t *report);


#endif /* RON_AUDIT_H */
