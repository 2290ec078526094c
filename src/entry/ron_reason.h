
/*
 * Why something was not done: one table for the ingest API's reasons, the
 * problem codes and statuses of HTTP answers, metric labels and the pages in
 * docs/errors/.  A reason that is not here cannot be given.  New ones go to
 * the end: their numbers stand in journals (docs/FORMAT.md).
 *
 *     X(NAME, ingest reason, problem code, status, title)
 *
 * retryable is the status: 429 and 503.
 */

#ifndef RON_REASON_H
#define RON_REASON_H


#include "ron.h"


#define RON_REASONS(X)                                                        \
    X(OK,             "ok",            "OK",                   200,           \
      "done")                                                                 \
    X(MALFORMED,      "malformed",     "BAD_REQUEST",          400,           \
      "the request is malformed")                                             \
    X(UNKNOWN_KIND,   "unknown_kind",  "BAD_REQUEST",          400,           \
      "no such kind of entry")                                                \
    X(UNAUTH,         "unauth",        "UNAUTHORIZED",         401,           \
      "a valid capability is required")                                       \
    X(CAP_INVALID,    "cap_invalid",   "FORBIDDEN",            403,           \
      "the capability does not allow this")                                   \
    X(POLICY_DENIED,  "policy_denied", "FORBIDDEN",            403,           \
      "the policy does not allow this")                                       \
    X(LIMITS,         "policy_denied", "LIMITS_EXCEEDED",      403,           \
      "a limit would be exceeded")                                            \
    X(NOT_FOUND,      "malformed",     "NOT_FOUND",            404,           \
      "there is no such thing")                                               \
    X(HOLD_NOT_FOUND, "conflict",      "HOLD_NOT_FOUND",       404,           \
      "there is no such hold")                                                \
    X(METHOD,         "malformed",     "METHOD_NOT_ALLOWED",   405,           \
      "the method is not allowed here")                                       \
    X(CONFLICT,       "conflict",      "CONFLICT",             409,           \
      "it contradicts what the ledger already holds")                         \
    X(INSUFFICIENT,   "insufficient",  "INSUFFICIENT_FUNDS",   409,           \
      "the balance is too low")                                               \
    X(NONCE,          "conflict",      "NONCE_CONFLICT",       409,           \
      "the nonce was used or passed")                                         \
    X(HOLD_CLOSED,    "conflict",      "HOLD_CLOSED",          409,           \
      "the hold is closed")                                                   \
    X(PRECONDITION,   "conflict",      "PRECONDITION_FAILED",  412,           \
      "the account has changed")                                              \
    X(TOO_LARGE,      "too_large",     "LIMITS_EXCEEDED",      413,           \
      "the body is too large")                                                \
    X(MEDIA_TYPE,     "malformed",     "UNSUPPORTED_MEDIA_TYPE", 415,         \
      "the content type is not supported")                                    \
    X(IDEM_MISMATCH,  "conflict",      "IDEMPOTENCY_MISMATCH", 422,           \
      "the key was used for another request")                                 \
    X(BUSY,           "busy",          "BUSY",                 429,           \
      "a queue is full")                                                      \
    X(PREVAL_DROPPED, "preval_dropped", "PREVAL_DROPPED",      429,           \
      "dropped before sequencing, nothing was committed")                     \
    X(BACKPRESSURE,   "commit_backpressure", "COMMIT_BACKPRESSURE", 429,      \
      "the committer is behind")                                              \
    X(INTERNAL,       "internal",      "INTERNAL",             500,           \
      "an internal error")                                                    \
    X(RETRY_LATER,    "deadline",      "RETRY_LATER",          503,           \
      "not executed before its deadline")                                     \
    X(UPSTREAM,       "timeout",       "UPSTREAM_UNAVAILABLE", 503,           \
      "a service that this needs is unavailable")                             \
    X(TIMEOUT,        "timeout",       "TIMEOUT",              503,           \
      "the outcome is unknown, retry with the same key")                      \
    X(SAFE_MODE,      "safe_mode",     "SAFE_MODE",            503,           \
      "the ledger is in safe mode")                                           \
    X(DRAINING,       "busy",          "DRAINING",             503,           \
      "the ledger is draining")                                               \
    X(ABORTED,        "conflict",      "CONFLICT",             409,           \
      "another part of the same group was refused")                           \
    X(STORAGE,        "internal",      "RETRY_LATER",          503,           \
      "the ledger could not be read, nothing was done")


#define RON_REASON_ENUM(name, ingest, code, status, title)  RON_REASON_##name,

typedef enum {
    RON_REASONS(RON_REASON_ENUM)
    RON_REASON_N
} ron_reason_t;

#undef RON_REASON_ENUM


typedef struct {
    const char  *name;              /* "INSUFFICIENT" */
    const char  *ingest;
    const char  *code;
    uint16_t     status;
    const char  *title;
} ron_reason_info_t;


const ron_reason_info_t *ron_reason_info(ron_reason_t reason);


/* What exactly was wrong: the `detail` of a reason, for people. */

#define RON_DETAILS(X)                                                        \
    X(NONE,           "")                                                     \
    X(FIELDS,         "a member is missing, or not of this kind")             \
    X(AMOUNT,         "the amount must be positive")                          \
    X(ACCOUNTS,       "from and to must differ")                              \
    X(ID_REUSED,      "this id names another entry")                          \
    X(TUPLE_REUSED,   "account, amount and nonce name another entry")         \
    X(BATCH_REUSED,   "this idem_id names another batch")                     \
    X(KEY_REUSED,     "this key names another request")                       \
    X(AVAILABLE,      "not enough available")                                 \
    X(HELD,           "more than what the hold has left")                     \
    X(HOLD_REF,       "ref is not a hold of this account")                    \
    X(HOLD_DONE,      "the hold was captured, released or has expired")       \
    X(UNBALANCED,     "debits and credits of an asset differ")                \
    X(POSTING,        "another leg of the posting was refused")               \
    X(ATOMIC,         "another operation of the batch was refused")           \
    X(REVERSE_REF,    "ref cannot be reversed")                               \
    X(REVERSE_SIDE,   "accounts or asset are not those of the original")      \
    X(REVERSE_OVER,   "more than what is left to reverse")                    \
    X(REVERSE_LEGS,   "all legs of the posting must be in the batch")         \
    X(SUPPLY,         "the asset's supply would overflow")                    \
    X(TOTAL,          "the account's total would exceed its limit")           \
    X(DAILY_ACCOUNT,  "the account's daily ceiling would be exceeded")        \
    X(DAILY_CAP,      "the capability's daily ceiling would be exceeded")     \
    X(NONCE_LOW,      "the nonce must be greater than the last")              \
    X(NONCE_NEXT,     "the nonce must be the next")                           \
    X(VERSION,        "the account has another version")                      \
    X(DEADLINE,       "the deadline passed before it was its turn")           \
    X(EXPIRY,         "the expiry is not in the future")                      \
    X(ASSETS,         "too many assets")                                      \
    X(STORAGE,        "the storage failed")                                   \
    X(MATCH,          "If-Match needs a batch about one account")             \
    X(CHECK,          "a service that checks refused it")


#define RON_DETAIL_ENUM(name, text)  RON_DETAIL_##name,

typedef enum {
    RON_DETAILS(RON_DETAIL_ENUM)
    RON_DETAIL_N
} ron_detail_t;

#undef RON_DETAIL_ENUM


const char *ron_detail_text(ron_detail_t detail);


#endif /* RON_REASON_H */
