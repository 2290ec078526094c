
/*
 * The words of capabilities, each in one place.
 *
 * Order matters: a service or an act is the bit of its row.  New rows go to the
 * end of their table.
 */

#ifndef RON_CAP_TABLE_H
#define RON_CAP_TABLE_H


/* X(NAME, "word") */

#define RON_CAP_SVC_TABLE(X)                                                  \
    X(WALLET,    "wallet")                                                    \
    X(LEDGER,    "ledger")                                                    \
    X(REWARDER,  "rewarder")                                                  \
    X(INTEROP,   "interop")                                                   \
    X(EDGE,      "edge")

#define RON_CAP_ACT_TABLE(X)                                                  \
    X(READ,      "read")                                                      \
    X(ISSUE,     "issue")                                                     \
    X(TRANSFER,  "transfer")                                                  \
    X(BURN,      "burn")                                                      \
    X(HOLD,      "hold")                                                      \
    X(INGEST,    "ingest")                                                    \
    X(REVERSE,   "reverse")                                                   \
    X(ADMIN,     "admin")

/* X(NAME, "caveat", "what its value is") */

#define RON_CAP_CAVEAT_TABLE(X)                                               \
    X(SVC,         "svc",         "services, separated by a space")           \
    X(ACT,         "act",         "acts, separated by a space")               \
    X(ACCOUNT,     "account",     "accounts; a last * is any continuation")   \
    X(ASSET,       "asset",       "assets, separated by a space")             \
    X(MAX_AMOUNT,  "max_amount",  "minor units, for one operation")           \
    X(MAX_DAILY,   "max_daily",   "minor units, for one day in UTC")          \
    X(BEFORE,      "before",      "seconds since 1970: valid until then")     \
    X(AFTER,       "after",       "seconds since 1970: valid from then on")   \
    X(TENANT,      "tenant",      "one tenant")                               \
    X(IP,          "ip",          "an address or a network in CIDR form")

/* X(NAME, HTTP status, "reason") */

#define RON_CAP_REFUSAL_TABLE(X)                                              \
    X(MALFORMED,    401, "malformed token")                                   \
    X(THIRD_PARTY,  401, "third-party caveat")                                \
    X(UNKNOWN_KID,  401, "unknown key")                                       \
    X(SIGNATURE,    401, "wrong signature")                                   \
    X(REVOKED,      401, "revoked")                                           \
    X(EXPIRED,      401, "expired")                                           \
    X(NOT_YET,      401, "not valid yet")                                     \
    X(CAVEAT,       403, "caveat not understood")                             \
    X(INTERNAL,     500, "no memory to verify the token")


#endif /* RON_CAP_TABLE_H */
