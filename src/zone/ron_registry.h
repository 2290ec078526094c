
/*
 * The registry: every queue, lock and time-out, with the numbers of the seeds.
 * A queue that is not in this table cannot exist.  Code, /metrics and the
 * tables in docs/ come from it or are tested against it.
 */

#ifndef RON_REGISTRY_H
#define RON_REGISTRY_H


#include "ron.h"


/*
 * X(ID, name, service, kind, capacity, policy, metric label, owner)
 *
 * kind: mpsc, broadcast.  policy: what happens to what does not fit.
 */

#define RON_QUEUES(X)                                                         \
    X(INGRESS, "ingress", "ledger", "mpsc", 2000, "reject", "q",              \
      "worker, counted in the zone")                                          \
    X(PREVAL, "preval", "ledger", "mpsc", 2000, "drop_oldest", "q",           \
      "sequencer")                                                            \
    X(COMMIT, "commit", "ledger", "mpsc", 1000, "reject", "q",                \
      "sequencer to committer")                                               \
    X(ROOT_PUB, "root_pub", "ledger", "broadcast", 1024, "drop_oldest", "q",  \
      "helper to streams, ring in the zone")                                  \
    X(SPANS, "spans", "ledger", "mpsc", 2048, "drop_oldest", "q",             \
      "workers to helper, ron_otlp only")                                     \
    X(WALLET_WORK, "work", "wallet", "mpsc", 512, "reject", "queue",          \
      "worker, counted in the zone")                                          \
    X(WALLET_EVENTS, "events", "wallet", "broadcast", 1024, "drop_oldest",    \
      "queue", "helper to audit stream")                                      \
    X(WALLET_LEDGER_BUS, "ledger", "wallet", "broadcast", 1024,               \
      "drop_oldest", "queue", "ring in the zone to invalidators")             \
    X(REWARDER_REQ, "work_req", "rewarder", "mpsc", 512, "reject", "queue",   \
      "worker")                                                               \
    X(REWARDER_WORK, "work", "rewarder", "mpsc", 512, "retry_once", "queue",  \
      "scheduler")                                                            \
    X(REWARDER_RESULTS, "results", "rewarder", "mpsc", 512, "wait", "queue",  \
      "artifact writer")                                                      \
    X(REWARDER_INTENTS, "intents", "rewarder", "mpsc", 512, "wait", "queue",  \
      "settlement")                                                           \
    X(REWARDER_EVENTS, "events", "rewarder", "broadcast", 1024,               \
      "drop_oldest", "queue", "supervisor")                                   \
    X(INTEROP_WORK, "work", "interop", "mpsc", 512, "reject", "queue",        \
      "worker")                                                               \
    X(INTEROP_EVENTS, "events", "interop", "broadcast", 1024, "drop_oldest",  \
      "queue", "worker")                                                      \
    X(INTEROP_AUDIT, "audit", "interop", "mpsc", 512, "drop_oldest", "queue", \
      "audit sink")                                                           \
    X(EDGE_WORK, "work", "edge", "mpsc", 512, "reject", "queue", "worker")    \
    X(EDGE_EVENTS, "events", "edge", "broadcast", 1024, "drop_oldest",        \
      "queue", "worker")


/*
 * X(ID, name, order, owner): taken in rising order, held over no I/O, no log
 * line and no return to an event loop.
 */

#define RON_LOCKS(X)                                                          \
    X(ENGINE, "engine", 10,                                                   \
      "sequencer and committer: the hand-over of batches")                    \
    X(SERVICE, "service", 20,                                                 \
      "service: counters and requests from other threads")                    \
    X(HISTORY, "history", 30, "history thread: its watermark")                \
    X(SNAPSHOT, "snapshot", 33,                                               \
      "snapshot thread: what it was asked for, and how far it is")            \
    X(SPANS, "spans", 35, "helper: times of its batches, for traces")         \
    X(NODES, "nodes", 37, "worker and its threads: nodes of proofs")          \
    X(SLAB, "slab", 40,                                                       \
      "NGINX's own mutex of a zone: allocation, one record of a trace")


/* X(ID, name, milliseconds, what it bounds) */

#define RON_TIMEOUTS(X)                                                       \
    X(REQUEST, "request", 5000, "a request, from its first byte")             \
    X(UPSTREAM, "upstream", 1000, "one try of a call to another service")     \
    X(RETRY_FIRST, "retry_first", 50, "the first delay between tries")        \
    X(RETRY_LAST, "retry_last", 1000, "the longest delay between tries")      \
    X(HANDSHAKE, "handshake", 1000, "a connection that is not ready yet")     \
    X(DRAIN, "drain", 3000, "prevalidators and sequencer")                    \
    X(DRAIN_COMMIT, "drain_commit", 5000, "the committer's batch in hand")    \
    X(FOLLOW, "follow", 20, "between two tries for the writer's lock")        \
    X(REOPEN_FIRST, "reopen_first", 100, "the first reopening in safe mode")  \
    X(REOPEN_LAST, "reopen_last", 5000, "the longest delay between them")     \
    X(JOIN, "join", 200, "threads, when the helper exits")                    \
    X(TOKEN_TTL, "token_ttl", 60000, "a verified token in the cache")         \
    X(IDEM_TTL, "idem_ttl", 86400000, "an idempotency key")                   \
    X(BREAKER_WINDOW, "breaker_window", 10000, "errors are counted in it")    \
    X(BREAKER_OPEN, "breaker_open", 5000, "a breaker stays open")             \
    X(METRICS_TICK, "metrics_tick", 1000, "samples of depth and in-flight")   \
    X(STREAM_PING, "stream_ping", 15000, "between two comments of a stream")  \
    X(BALANCE_STALE, "balance_stale", 250, "a balance of the zone is fresh")  \
    X(BALANCE_ASK, "balance_ask", 100,                                        \
      "asking for a balance that the zone has, but old")                      \
    X(TRANSIT, "transit", 1000,                                               \
      "a request on its way, before an unknown outcome is final")


#define RON_REGISTRY_ENUM_Q(id, ...)  RON_QUEUE_##id,
#define RON_REGISTRY_ENUM_L(id, ...)  RON_LOCK_##id,
#define RON_REGISTRY_ENUM_T(id, ...)  RON_TIMEOUT_##id,

typedef enum {
    RON_QUEUES(RON_REGISTRY_ENUM_Q)
    RON_QUEUE_N
} ron_queue_id_t;

typedef enum {
    RON_LOCKS(RON_REGISTRY_ENUM_L)
    RON_LOCK_N
} ron_lock_id_t;

typedef enum {
    RON_TIMEOUTS(RON_REGISTRY_ENUM_T)
    RON_TIMEOUT_N
} ron_timeout_id_t;

#undef RON_REGISTRY_ENUM_Q
#undef RON_REGISTRY_ENUM_L
#undef RON_REGISTRY_ENUM_T


typedef struct {
    const char  *name;
    const char  *service;
    const char  *kind;
    uint32_t     capacity;
    const char  *policy;
    const char  *label;
    const char  *owner;
} ron_queue_info_t;

typedef struct {
    const char  *name;
    uint32_t     order;
    const char  *owner;
} ron_lock_info_t;

typedef struct {
    const char  *name;
    uint32_t     ms;
    const char  *what;
} ron_timeout_info_t;


const ron_queue_info_t *ron_queue_info(ron_queue_id_t queue);
const ron_lock_info_t *ron_lock_info(ron_lock_id_t lock);
const ron_timeout_info_t *ron_timeout_info(ron_timeout_id_t timeout);


#endif /* RON_REGISTRY_H */
