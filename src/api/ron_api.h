
/*
 * The HTTP contract without HTTP: bodies to units, outcomes to bodies, and
 * errors to RFC 9457 problems.  Pure functions over buffers, so that a fuzzer
 * and a unit test reach all of it without a server.
 *
 * A request is parsed into a workspace (ron_api_t), which one thread owns and
 * uses again for every request: the unit that comes out has views into the
 * workspace and into the body, and is encoded or decided before the next
 * parse.  Nothing is decided here: a parse refuses what no ledger could
 * accept, the sequencer does the rest.
 */

#ifndef RON_API_H
#define RON_API_H


#include "ron_cap.h"
#include "ron_json.h"
#include "ron_msg.h"
#include "ron_nodes.h"
#include "ron_policy.h"
#include "ron_store.h"
#include "ron_unit.h"


#define RON_API_MEMO_MAX    256
#define RON_API_KEY_MAX     64
#define RON_API_CORR_MAX    RON_CORR_MAX
#define RON_API_ASSETS_MAX  32
#define RON_API_BATCH_MAX   1000
#define RON_API_HOLD_MAX_S  (400 * 86400)


/* ---- errors ------------------------------------------------------------- */

/*
 * Why a request was not done.  `status` 0: that of the reason.  `text` is a
 * constant phrase, NULL: that of the detail.  `field` names a member.
 */
typedef struct {
    ron_reason_t  reason;
    ron_detail_t  detail;
    uint16_t      status;
    bool          has_value;
    uint64_t      value;
    const char   *text;
    char          field[RON_JSON_NAME_MAX + 1];
} ron_api_error_t;


/* Fills *err and returns RON_EINVAL. */
ron_status_t ron_api_refuse(ron_api_error_t *err, ron_reason_t reason,
    const char *text, const char *field);

uint16_t ron_api_status(const ron_api_error_t *err);
bool ron_api_retryable(uint16_t status);

/* After how many seconds, when nobody knows better. */
unsigned ron_api_retry_after(uint16_t status);

/*
 * The reason for a status that a server gave by itself; INTERNAL for those
 * over 500 that it has no word for, MALFORMED for those over 400.
 */
ron_reason_t ron_api_reason(uint16_t status);

/* One JSON object without a newline; corr_id may be empty. */
ron_status_t ron_api_problem(ron_buf_t *out, const ron_api_error_t *err,
    ron_str_t corr_id);


/* ---- requests ----------------------------------------------------------- */

typedef struct {
    ron_str_t   asset[RON_API_ASSETS_MAX];
    uint32_t    asset_n;
    ron_u128_t  op_max;                 /* 10^20 */
    ron_u128_t  account_daily;          /* 10^22 */
    ron_u128_t  account_total;          /* 2^128 - 1 - 10^9 */
    bool        nonce_strict;
} ron_api_limits_t;

/* The contract's limits; assets "ron" and "roc". */
void ron_api_limits_init(ron_api_limits_t *limits);


typedef enum {
    RON_API_ISSUE = 0,
    RON_API_TRANSFER,
    RON_API_BURN,
    RON_API_HOLD,
    RON_API_CAPTURE,
    RON_API_RELEASE,
    RON_API_BATCH,
    RON_API_WALLET_N
} ron_api_wallet_t;

/* "transfer" -> RON_API_TRANSFER; false for a name that is none. */
bool ron_api_wallet_find(ron_str_t name, ron_api_wallet_t *op);
const char *ron_api_wallet_name(ron_api_wallet_t op);

/* The act that a capability needs for such an entry, RON_CAP_ACT_*. */
unsigned ron_api_kind_act(ron_kind_t kind);


typedef struct {
    ron_json_doc_t  doc;
    ron_unit_t      unit;
    ron_entry_t    *ops;
    uint32_t        ops_cap;
    size_t          body_max;           /* 0: RON_JSON_LEN */
} ron_api_t;

void ron_api_init(ron_api_t *api);
void ron_api_free(ron_api_t *api);

/*
 * A wallet request.  The unit is complete but for source and deadline times,
 * capability and If-Match.  RON_EINVAL and *err, or RON_ENOMEM.
 */
ron_status_t ron_api_wallet_parse(ron_api_t *api, ron_api_wallet_t op,
    ron_str_t body, ron_str_t key, const ron_api_limits_t *limits,
    ron_api_error_t *err);

/*
 * POST /ledger/ops: a wallet request in an envelope, as a remote wallet sends
 * it.  The wallet's own limits go with it, and can only lower those here.
 */
typedef struct {
    ron_api_wallet_t  op;
    bool              has_match;
    bool              nonce_strict;
    uint64_t          match;
    uint64_t          deadline_ms;      /* wall clock; 0: none */
    ron_u128_t        account_daily;    /* 0: none */
    ron_u128_t        account_total;    /* 0: none */
    ron_str_t         key;
} ron_api_ops_t;

/* The unit is complete but for source and deadline times and capability. */
ron_status_t ron_api_ops_parse(ron_api_t *api, ron_str_t body,
    const ron_api_limits_t *limits, ron_api_ops_t *ops, ron_api_error_t *err);

/* The envelope of `body`, which is one JSON object, checked before. */
ron_status_t ron_api_ops_put(ron_buf_t *out, const ron_api_ops_t *ops,
    ron_str_t body);

/*
 * What a service that checks requests is asked: who wants what, and by when
 * (wall clock, milliseconds) it has to have said.
 */
ron_status_t ron_api_check_put(ron_buf_t *out, ron_str_t svc,
    const ron_unit_t *unit, uint64_t deadline_ms);

/* POST /ledger/ingest, likewise. */
ron_status_t ron_api_ingest_parse(ron_api_t *api, ron_str_t body,
    ron_api_error_t *err);

/* One entry by itself: a unit of it alone. */
ron_status_t ron_api_entry_parse(ron_api_t *api, ron_str_t body,
    ron_api_error_t *err);

/* POST /ledger/admin/safe-mode: {"enter": bool} */
ron_status_t ron_api_safe_mode_parse(ron_api_t *api, ron_str_t body,
    bool *enter, ron_api_error_t *err);

/*
 * The header Idempotency-Key, bare or quoted: *key is what it names.
 * RON_EINVAL when it is not 1-64 visible ASCII characters.
 */
ron_status_t ron_api_key(ron_str_t header, ron_str_t *key);

/* What an ETag says: "<version>", or a bare number. */
ron_status_t ron_api_match(ron_str_t header, uint64_t *version);

/*
 * If-Match: RON_OK and the version that it asks for, or *any ("*": every
 * account has a version).  RON_ENOTFOUND: entity tags that no account ever
 * has, weak ones among them.  RON_ERANGE: several versions.  RON_EINVAL.
 */
ron_status_t ron_api_if_match(ron_str_t header, bool *any, uint64_t *version);

/* 1-128 visible ASCII characters. */
bool ron_api_corr_valid(ron_str_t s);


/*
 * Whether a capability allows a unit: each operation's act, the account that
 * it debits (that an issue credits), its asset and amount.  Service, time and
 * address were checked before.  *unknown: some operation says only `ref`, and
 * whose hold that is stands in the ledger; it is for the caller to ask.
 * RON_OK, or RON_EINVAL and *err.  Fills in the unit's capability and its
 * daily bound; `room` is where its name is kept.
 */
ron_status_t ron_api_allow(const ron_cap_t *cap, unsigned svcs,
    ron_unit_t *unit, ron_buf_t *room, bool *unknown, ron_api_error_t *err);

/* The same for reading. */
ron_status_t ron_api_allow_read(const ron_cap_t *cap, ron_str_t account,
    ron_str_t asset, ron_api_error_t *err);

/* "<kid>:<capability id>", the scope of a batch's key, in `room`. */
ron_status_t ron_api_cap_name(const ron_cap_t *cap, ron_buf_t *room,
    ron_str_t *name);


/*
 * The policy of a location: its rules (NULL: there is none) and tenant.
 * `account` and `asset` are those of a hold that was read for an operation
 * which names only the hold; else empty.
 */

typedef struct {
    const ron_policy_t  *rules;
    ron_str_t            tenant;
    ron_str_t            account;
    ron_str_t            asset;
} ron_api_policy_t;

/*
 * Whether the policy allows a unit; lowers its ceilings.  `act`: one that all
 * its operations need besides their own, or 0.  *unknown as above.
 */
ron_status_t ron_api_policy(const ron_api_policy_t *p, const ron_cap_t *cap,
    unsigned act, ron_unit_t *unit, bool *unknown, ron_api_error_t *err);

/* The same for reading, or for what is about no account: both empty. */
ron_status_t ron_api_policy_read(const ron_api_policy_t *p,
    const ron_cap_t *cap, unsigned act, ron_str_t account, ron_str_t asset,
    ron_api_error_t *err);


/* The arguments of a query: name=value&..., %XX decoded. */

typedef struct {
    ron_str_t  name;
    ron_str_t  value;
} ron_api_arg_t;

/*
 * Up to *n arguments into `args`, decoded into `room` (at least query.len
 * bytes); without an escape they stay where they are, in `query`.
 * RON_EINVAL: a bad escape, too many, or a name twice.
 */
ron_status_t ron_api_query(ron_str_t query, uint8_t *room,
    ron_api_arg_t *args, size_t *n);

/* The value of a name, null when absent. */
ron_str_t ron_api_arg(const ron_api_arg_t *args, size_t n, ron_str_t name);

/* Decimal digits only: the values of from, to, since, limit, size, seq. */
ron_status_t ron_api_u64(ron_str_t s, uint64_t *v);


/* ---- answers ------------------------------------------------------------ */

/*
 * The answer of a wallet operation, from the outcome of its unit: RON_OK and
 * a receipt of *e in `out`, or RON_EINVAL and *err.  RON_ECORRUPT when what
 * came is not an answer to a wallet operation.
 */
ron_status_t ron_api_wallet_answer(ron_buf_t *out,
    const ron_outcome_t *outcome, ron_entry_t *e, ron_api_error_t *err);

/*
 * What the proofs of receipts are made with: the tree as of one head, which
 * is not older than the entry `seq`.  `nodes` is a cache of the tree, or NULL.
 */
typedef struct {
    ron_reader_t  *reader;
    ron_nodes_t   *nodes;
    ron_digest_t   digest;
    uint64_t       size;
    ron_buf_t      note;                /* signed; empty: there is none */
} ron_api_proofs_t;

ron_status_t ron_api_proofs_begin(ron_api_proofs_t *proofs,
    ron_store_t *store, ron_reader_t *reader, ron_nodes_t *nodes,
    uint64_t seq);
void ron_api_proofs_end(ron_api_proofs_t *proofs);

/* A receipt was put last: puts the proof of its entry into it. */
ron_status_t ron_api_proofs_put(ron_api_proofs_t *proofs, uint64_t seq,
    ron_str_t entry, ron_buf_t *out);

/*
 * The same for a batch: {"accepted", "receipts", "reasons"}; *status.
 * `proofs` NULL: receipts have none.
 */
ron_status_t ron_api_batch_answer(ron_buf_t *out,
    const ron_outcome_t *outcome, ron_api_proofs_t *proofs, uint16_t *status,
    ron_api_error_t *err);

/* The answer to an ingest; *status is 200 or 207. */
ron_status_t ron_api_ingest_answer(ron_buf_t *out,
    const ron_msg_batch_t *batch, const ron_outcome_t *outcome,
    uint16_t *status, ron_api_error_t *err);

/*
 * GET /v1/balance; a null balance is that of an account never seen.  Account
 * and asset are valid ones.
 */
ron_status_t ron_api_balance_answer(ron_buf_t *out, ron_str_t account,
    ron_str_t asset, const ron_msg_balance_t *balance, uint64_t as_of_ms,
    uint64_t stale_ms);

/*
 * GET /ledger/accounts/{account}: one more balance; the first begins the
 * object, and "]}" ends it.
 */
void ron_api_account_put(ron_buf_t *out, ron_str_t account, ron_str_t asset,
    const ron_msg_balance_t *balance);

/* GET /v1/outcome; `batch` is a batch's outcome, decoded, or NULL. */
ron_status_t ron_api_outcome_answer(ron_buf_t *out,
    const ron_msg_lookup_t *lookup, const ron_outcome_t *batch, bool final);


/* POST /ledger/admin/...: RON_EINVAL and *err when it was refused. */
ron_status_t ron_api_admin_answer(ron_buf_t *out,
    const ron_msg_admin_t *admin, ron_api_error_t *err);


/* ---- health ------------------------------------------------------------- */

#define RON_API_TASKS_MAX  8

typedef struct {
    bool         has_beat;
    ron_life_t  state;
    uint64_t     age_ms;                /* of the beat */
    uint64_t     lag_ms;                /* of the append under way */
    uint64_t     lag_max_ms;
    uint64_t     seq;
    uint64_t     commit_depth;
    uint64_t     commit_capacity;
    uint64_t     work_depth;            /* of the wallet; for /readyz */
    uint64_t     work_capacity;
    const char  *looping[RON_API_TASKS_MAX];    /* tasks that die too often */
    uint32_t     looping_n;
    bool         remote;                /* the ledger is not ours */
    bool         ledger_down;           /* open breakers */
    bool         kms_down;
    bool         policy_down;
    bool         wallet_down;
} ron_api_health_t;

bool ron_api_crash_loop(const ron_api_health_t *h);

/* The judgement of /readyz. */
bool ron_api_ready(const ron_api_health_t *h);

/* Why a write is refused now; RON_REASON_OK. */
ron_reason_t ron_api_shed(const ron_api_health_t *h);

ron_status_t ron_api_healthz(ron_buf_t *out, const ron_api_health_t *h,
    uint16_t *status);
ron_status_t ron_api_readyz(ron_buf_t *out, const ron_api_health_t *h,
    uint16_t *status);


/* ---- reading the ledger ------------------------------------------------- */

/*
 * The entry of a seq: its bytes in `bytes`, its fields, which point into
 * them, in *e.  RON_ENOTFOUND past the head.
 */
ron_status_t ron_api_entry_read(ron_reader_t *reader, uint64_t seq,
    ron_buf_t *bytes, ron_entry_t *e);

/*
 * Bodies.  Sizes and seqs that the tree does not have: RON_ERANGE.  `size` or
 * `to` 0 stands for the head.
 */
ron_status_t ron_api_roots(ron_reader_t *reader, uint64_t since,
    uint64_t limit, ron_buf_t *out);
ron_status_t ron_api_entries(ron_reader_t *reader, uint64_t from,
    uint64_t to, ron_buf_t *out, uint64_t *watermark);
ron_status_t ron_api_inclusion(ron_reader_t *reader, ron_digest_t digest,
    uint64_t seq, uint64_t size, ron_buf_t *out);

/* The same with a cache of the tree, which it fills. */
ron_status_t ron_api_inclusion_cached(ron_reader_t *reader,
    ron_nodes_t *nodes, ron_digest_t digest, uint64_t seq, uint64_t size,
    ron_buf_t *out);

/* The same of a tree that is known to be there: seq and size are not 0. */
ron_status_t ron_api_inclusion_at(ron_reader_t *reader, ron_nodes_t *nodes,
    ron_digest_t digest, uint64_t seq, uint64_t size, ron_buf_t *out);
ron_status_t ron_api_inclusion_put(ron_buf_t *out, uint64_t seq,
    uint64_t size, const ron_hash_t *leaf, const ron_hash_t *root,
    const ron_proof_t *proof);

ron_status_t ron_api_consistency(ron_reader_t *reader, ron_digest_t digest,
    uint64_t from, uint64_t to, ron_buf_t *out);

/*
 * The signed note of the newest checkpoint: of all that the journal holds, when
 * it is signed in time.  RON_ENOTFOUND when there is none.
 */
ron_status_t ron_api_checkpoint(ron_store_t *store, ron_reader_t *reader,
    ron_buf_t *out);

/*
 * A receipt with its proof: {"entry" (base64), "leaf", "size", "path",
 * "checkpoint"}.  The size is that of the newest signed checkpoint, or the
 * head's when there is none that holds the entry; then "checkpoint" is null.
 * `nodes` is a cache of the tree, or NULL.
 */
ron_status_t ron_api_receipt_proof(ron_store_t *store, ron_reader_t *reader,
    ron_nodes_t *nodes, uint64_t seq, ron_buf_t *out);

/*
 * The answer to a batch, of what the helper said (an OUTCOME's payload), with
 * a proof in each receipt; without any, when it would be longer than `max`.
 */
ron_status_t ron_api_batch_proof(ron_store_t *store, ron_reader_t *reader,
    ron_nodes_t *nodes, ron_str_t payload, size_t max, ron_buf_t *out);

/*
 * GET /ledger/accounts/{account}/entries, newest first, below `before` (0:
 * all).  RON_ENOTFOUND: there is no history (yet).
 */
ron_status_t ron_api_account_entries(ron_store_t *store,
    ron_reader_t *reader, ron_str_t account, uint64_t before, uint64_t limit,
    ron_buf_t *out, uint64_t *watermark);

/*
 * A file of the C2SP tlog-tiles layout, by its path behind "tile/":
 * "<L>/<N>[.p/<W>]" or "entries/<N>[.p/<W>]".  RON_EINVAL: not such a path;
 * RON_ENOTFOUND: not (or no longer) there.
 */
ron_status_t ron_api_tile(ron_reader_t *reader, ron_digest_t digest,
    ron_str_t path, ron_buf_t *out);


#endif /* RON_API_H */
