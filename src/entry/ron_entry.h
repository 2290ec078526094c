
/*
 * Entries: what happened to the money, and the canonical bytes that prove it.
 *
 * An entry is self-contained: its effect on balances follows from its own
 * fields, without looking anything up (a Capture names both accounts although
 * its caller named only the hold).  So replay never decides, a verifier needs
 * no history, and a receipt is a pure function of the entry.
 *
 *     kind      from            to
 *     Mint      -               account
 *     Burn      account         -
 *     Transfer  account         to
 *     Debit     account         -           legs of one posting:
 *     Credit    -               account     per asset the sums are equal
 *     Hold      account         account     available -> held (for `to`)
 *     Capture   account (held)  to
 *     Release   account (held)  account
 *     Reverse   account or -    to or -     of the entry `ref`
 *
 * Canonical bytes, version 1 (docs/FORMAT.md is the specification):
 *
 *     u8 version | u8 kind | u16 ledger | varint seq | u48 time_ms |
 *     varint fields | the fields present, in the order of their bits
 *
 * Decoding accepts exactly what encoding produces: shortest varints, minimal
 * amounts, no unknown bit, no bit that the kind does not have, no byte more.
 */

#ifndef RON_ENTRY_H
#define RON_ENTRY_H


#include "ron.h"
#include "ron_buf.h"


#define RON_ENTRY_VERSION   1

#define RON_ACCOUNT_MAX     256
#define RON_ASSET_MAX       32
#define RON_CORR_MAX        128
#define RON_ID_MAX          128
#define RON_KEY_MAX         128
#define RON_SCOPE_MAX       256
#define RON_CAP_MAX         256
#define RON_NONCE_LEN       16
#define RON_NONCE_MAX       ((UINT64_C(1) << 53) - 1)

/* JSON readers keep integers exact up to here. */
#define RON_SEQ_MAX         ((UINT64_C(1) << 53) - 1)

/* 9999-12-31T23:59:59.999Z, the last instant that RFC 3339 can write. */
#define RON_TIME_MAX        UINT64_C(253402300799999)

/* No valid entry is longer, with every field at its bound. */
#define RON_ENTRY_MAX       2048


typedef enum {
    RON_KIND_NONE = 0,
    RON_KIND_MINT,
    RON_KIND_BURN,
    RON_KIND_TRANSFER,
    RON_KIND_DEBIT,
    RON_KIND_CREDIT,
    RON_KIND_HOLD,
    RON_KIND_CAPTURE,
    RON_KIND_RELEASE,
    RON_KIND_REVERSE,
    RON_KIND_N
} ron_kind_t;


/* The bits of `fields`, in the order in which they are encoded. */
#define RON_F_ASSET     0x00001
#define RON_F_ACCOUNT   0x00002
#define RON_F_TO        0x00004
#define RON_F_AMOUNT    0x00008
#define RON_F_NONCE     0x00010     /* a wallet's counting nonce */
#define RON_F_NONCE16   0x00020     /* an ingested entry's 16 bytes */
#define RON_F_ID        0x00040
#define RON_F_SOURCE    0x00080     /* source time, milliseconds */
#define RON_F_SCOPE     0x00100     /* of the key; absent: the account */
#define RON_F_KEY       0x00200     /* idempotency key, or batch idem_id */
#define RON_F_REF       0x00400
#define RON_F_POSTING   0x00800     /* first seq of the posting, legs */
#define RON_F_EXPIRY    0x01000
#define RON_F_MEMO      0x02000     /* BLAKE3 of the memo */
#define RON_F_CAP       0x04000     /* "<kid>:<capability id>" */
#define RON_F_CAPREF    0x08000     /* the caller's own capability_ref */
#define RON_F_SCHEMA    0x10000     /* the caller's v, when not 1 */
#define RON_F_WALLET    0x20000     /* no bytes: came as a wallet operation */
#define RON_F_EXPIRED   0x40000     /* no bytes: released by its expiry */
#define RON_F_ALL       0x7ffff


typedef struct {
    ron_kind_t  kind;
    uint16_t    ledger_id;
    uint32_t    fields;
    uint32_t    posting_n;
    uint32_t    schema;
    uint64_t    seq;
    uint64_t    time_ms;
    ron_u128_t  amount;
    uint64_t    nonce;
    uint64_t    source_ms;
    uint64_t    ref;
    uint64_t    posting_first;
    uint64_t    expiry_ms;
    uint8_t     nonce16[RON_NONCE_LEN];
    ron_hash_t  memo;
    ron_str_t   asset;
    ron_str_t   account;
    ron_str_t   to;
    ron_str_t   id;
    ron_str_t   scope;
    ron_str_t   key;
    ron_str_t   cap;
    ron_str_t   capref;
} ron_entry_t;


/* "Mint", ... as the ingest API spells them; "issue", ... as receipts do. */
const char *ron_kind_name(ron_kind_t kind);
const char *ron_kind_op(ron_kind_t kind);
ron_kind_t ron_kind_parse(ron_str_t name);          /* RON_KIND_NONE */

/* Which fields a kind may have, and which it must. */
uint32_t ron_kind_allows(ron_kind_t kind);
uint32_t ron_kind_needs(ron_kind_t kind);

bool ron_account_valid(ron_str_t account);
bool ron_asset_valid(ron_str_t asset);

/*
 * RON_EINVAL when the entry breaks a rule of its kind: nothing that fails
 * here is ever encoded, and nothing that fails here is ever decoded.
 */
ron_status_t ron_entry_check(const ron_entry_t *e);

/*
 * The part of it that does not depend on the kind: lengths, characters and
 * ranges of the fields present, for an entry that would get this seq.
 */
bool ron_entry_values_valid(const ron_entry_t *e);

/* Appends the canonical bytes. */
ron_status_t ron_entry_encode(const ron_entry_t *e, ron_buf_t *out);

/*
 * The views in `e` point into `bytes`.  RON_EVERSION for a version or kind
 * that this program does not know, RON_ECORRUPT for anything not canonical.
 */
ron_status_t ron_entry_decode(ron_str_t bytes, ron_entry_t *e);


/*
 * Where an entry moves money.  An account that does not take part is a null
 * string; `held` says that the side is the held balance.
 */
typedef struct {
    ron_str_t  from;
    ron_str_t  to;
    bool       from_held;
    bool       to_held;
    bool       mints;
    bool       burns;
} ron_moves_t;

void ron_entry_moves(const ron_entry_t *e, ron_moves_t *m);

/*
 * Does it count against a daily bound?  What mints, and what leaves somebody's
 * available balance; what was held counted when it was held.
 */
bool ron_moves_spend(const ron_moves_t *m);


/* ---- a commit's body: entries, each behind its varint length ------------ */

void ron_body_put(ron_buf_t *body, ron_str_t entry_bytes);

/* The next entry of a body; RON_ENOTFOUND at its end, else RON_ECORRUPT. */
ron_status_t ron_body_next(ron_rd_t *body, ron_str_t *entry_bytes);


#endif /* RON_ENTRY_H */
