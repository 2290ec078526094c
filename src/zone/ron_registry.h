
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
    X(PARSE, "parse", "ledger", "mpsc", 128, "reject", "q",                   \
      "worker, counted in the zone")                                          \
    X(PREVAL, "preval", "ledger", "mpsc", 2000, "drop_oldest", "q",           \
      "sequencer")                                                            \
    X(COMMIT, "commit", "ledger", "mpsc", 1000, "reject", "q",                \
      "sequencer to committer")                                               \
    X(ROOT_PUB, "root_pub", "ledger", "broadcast", 1024, "drop_oldest", "q",  \
      "helper to streams, ring in the zone")                                  \
    X(SPANS, "spans", "ledger", "mpsc", 2048, "drop_oldest", "q",             \
      "workers to helper, ron_otlp only")                                     \
    X(PROOFS, "proofs", "ledger", "mpsc", 2048, "reject", "q",                \
      "worker to its threads: proofs that are not in memory")                 \
    X(BALANCES, "balances", "ledger", "mpsc", 4096, "reject", "q",            \
      "sequencer: balances that wait for a batch")                            \
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
 * line and no return to an event loop; ron_lock.h asserts it.
 */

#define RON_LOCKS(X)                                                          \
    X(ENGINE, "engine", 10,                                                   \
      "sequencer and committer: the hand-over of batches")                    \
    X(REPLAY, "replay", 15, "an audit and its replay: the pages in between")  \
    X(HELPER, "helper", 20, "helper: the newest head, from its threads")      \
    X(TAGS, "tags", 25, "sequencer and tag writer: tables and segments")      \
    X(HISTORY, "history", 30, "history thread: what it is asked for")         \
    X(PROJECTOR, "projector", 31,                                             \
      "history thread: the connection that may be interrupted")               \
    X(SNAPSHOT, "snapshot", 33,                                               \
      "snapshot thread: what it was asked for, and how far it is")            \
    X(SPANS, "spans", 35, "helper: times of its batches, for traces")         \
    X(NODES, "nodes", 37, "worker and its threads: nodes of proofs")          \
    X(SLAB, "slab", 40,                                                       \
      "NGINX's own mutex of a zone: allocation, one record of a trace")       \
    X(THREAD, "thread", 43, "who joins a thread: that it has ended")          \
    X(LOG, "log", 45, "helper: lines of its threads, for the event loop")


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
    X(JOIN_HISTORY, "join_history", 500, "the history thread, when it exits") \
    X(TOKEN_TTL, "token_ttl", 60000, "a verified token in the cache")         \
    X(IDEM_TTL, "idem_ttl", 86400000, "an idempotency key")                   \
    X(BREAKER_WINDOW, "breaker_window", 10000, "errors are counted in it")    \
    X(BREAKER_OPEN, "breaker_open", 5000, "a breaker stays open")             \
    X(METRICS_TICK, "metrics_tick", 1000, "samples of depth and in-flight")   \
    X(STREAM_PING, "stream_ping", 15000, "between two comments of a stream")  \
    X(BALANCE_STALE, "balance_stale", 250, "a balance of the zone is fresh")  \
    X(BALANCE_ASK, "balance_ask", 100,                                        \
      "asking for a balance that the zone has, but old")                      \
    X(BUS_LEASE, "bus_lease", 1000,                                           \
      "until a dead listener to a remote ledger's bus is replaced")           \
    X(BUS_SILENCE, "bus_silence", 3000,                                       \
      "a remote ledger's bus that says nothing at all")                       \
    X(BUS_CLOCK, "bus_clock", 60000,                                          \
      "before its clock is compared with ours again")                         \
    X(TRANSIT, "transit", 1000,                                               \
      "a request on its way, before an unknown outcome is final")             \
    X(EPISODE, "episode", 5000,                                               \
      "without a refusal, before the next one is another episode")


/*
 * X(name, value, unit, what): how long nothing is done before something is
 * looked at again.  A nap is no time-out: what it waits for has its own, or is
 * there in any case.  The names are macros of the files that take the naps,
 * less the server's prefix; t/00-locks.t compares their values, and knows no
 * other.
 */

#define RON_NAPS(X)                                                           \
    X(RON_LISTEN_AGAIN, 100, "ms", "start: a socket that nobody answers on")  \
    X(RON_TICK, 50, "ms", "helper: its threads, drain, samples")              \
    X(RON_SLOT_TRY, 100, "ms", "who has no slot in the zone: a free one")     \
    X(RON_RETRY, 1000, "ms", "helper: what could not be started")             \
    X(RON_IPC_TICK, 100, "ms", "worker: tries of its calls")                  \
    X(RON_IPC_HANDSHAKE, 1000, "ms", "worker: a hello of the helper")         \
    X(HTTP_RON_INGRESS_POLL, 5, "ms", "worker: a place for a body")           \
    X(HTTP_RON_TASK_HOLD, 60000, "ms", "worker: its threads, at its end")     \
    X(HTTP_RON_FOLLOW_TICK, 100, "ms", "remote bus: what followers do")       \
    X(HTTP_RON_BUS_BEAT, 50, "ms", "ledger bus: a sign of life")              \
    X(HTTP_RON_REMOTE_POLL, 5, "ms", "checks: a free prevalidator")           \
    X(HTTP_RON_STREAM_TICK, 250, "ms", "streams: pings, lag, the end")        \
    X(RON_API_HEAD_WAIT_US, 1000, "us", "reader: a head being written")       \
    X(RON_WAIT_US, 100000, "us", "committer: a batch")                        \
    X(RON_ENGINE_NAP_US, 200, "us", "engine: batches that finish")            \
    X(RON_ENGINE_JOIN_MS, 1000, "ms", "engine: an append at its end")         \
    X(RON_SERVICE_NAP_US, 200, "us", "sequencer: batches at its end")         \
    X(RON_HISTORY_BUSY_MS, 100, "ms", "history: another connection")          \
    X(RON_HISTORY_LOOK_US, 100000, "us", "history: whether the journal grows")\
    X(RON_HISTORY_REST_US, 1000, "us", "history: payments have their time")   \
    X(NODES_WAIT_US, 100000, "us", "proofs: nodes that another loads")        \
    X(RON_AUDIT_SLEEP_US, 5000, "us", "audit: a journal being written")       \
    X(RON_AUDIT_WAIT_US, UINT64_C(1000000), "us", "audit: a page")            \
    X(RON_AUDIT_JOIN_MS, UINT64_C(60000), "ms", "audit: its replay")          \
    X(RON_EXPORT_NAP_US, 5000, "us", "export: a journal being written")       \
    X(RON_SNAPSHOT_NAP_US, 5000, "us", "snapshot: a journal being written")   \
    X(RON_STORE_TORN_SLEEP_US, 200, "us", "reader: a head being written")     \
    X(RON_MEMORY_CREATE_NAP, 1000, "us", "memory: another that makes it")     \
    X(RON_SQLITE_CREATE_NAP, 5000, "us", "database: another that makes it")   \
    X(RON_SQLITE_LOG_NAP, 1000, "us", "database: locks of its log")           \
    X(RON_SQLITE_RESTART_BUSY, 150, "ms", "database: readers of its log")     \
    X(RON_SQLITE_WRITE_BUSY, 1000, "ms", "database: another connection")      \
    X(RON_SQLITE_READ_BUSY, 100, "ms", "reader: another connection")          \
    X(RON_TAGS_WAIT_US, 100000, "us", "tags: a segment")                      \
    X(RON_TAGS_REST_MAX_US, 50000, "us", "tag writer: between two slices")    \
    X(RON_TAG_WIPE_US, 1000, "us", "tag writer: memory of a table")           \
    X(RON_TAGS_JOIN_MS, 1000, "ms", "tags: their writer's end")


/*
 * X(file, name, bound, what): lists that are no queue of a seed, and what
 * keeps them from growing.
 */

#define RON_LISTS(X)                                                          \
    X("ngx_ron_module/ngx_http_ron_proof_module.c", "waiting",                \
      "queue proofs", "batches of proofs for a thread")                       \
    X("ngx_ron_module/ngx_http_ron_proof_module.c", "unused",                 \
      "queue proofs", "batches that are read, for the next")                  \
    X("ngx_ron_module/ngx_http_ron_proof_module.c", "slots",                  \
      "NGX_HTTP_RON_PROOF_RUNNING", "places at the threads")                  \
    X("ngx_ron_module/ngx_http_ron_ingress_module.c",                         \
      "ngx_http_ron_ingress_waiting", "queue parse",                          \
      "long bodies, ledger's and wallet's, that wait for a thread")           \
    X("ngx_ron_module/ngx_http_ron_remote.c", "ngx_http_ron_remote_waiting",  \
      "queue ingress + work; reads: one a request",                           \
      "checks by kms, policy and wallet that wait for a prevalidator")        \
    X("ngx_ron_module/ngx_http_ron_stream.c", "ngx_http_ron_streams",         \
      "worker_connections", "streams of a worker")                            \
    X("ngx_ron_module/ngx_http_ron_burst.c", "ngx_http_ron_burst",            \
      "NGX_HTTP_RON_BURST_MAX", "answers that are made and not written yet")  \
    X("ngx_ron_module/ngx_ron_ipc.h", "calls",                                \
      "NGX_RON_IPC_CALLS", "calls of a worker that have no answer yet")       \
    X("ngx_ron_module/ngx_ron_ipc.h", "due",                                  \
      "NGX_RON_IPC_CALLS", "the same calls, by when they are given up")       \
    X("ngx_ron_module/ngx_ron_ipc.h", "free",                                 \
      "NGX_RON_IPC_FREE", "calls of a worker that ended")                    \
    X("ngx_ron_module/ngx_ron_log.c", "ngx_ron_log_ring",                     \
      "NGX_RON_LOG_LINES", "lines of threads; more are counted as lost")      \
    X("src/proto/ron_service_impl.h", "preval",                               \
      "queue preval", "units that are read, for the engine")                  \
    X("src/proto/ron_service_impl.h", "waits",                                \
      "queue balances", "balances that are read, until they are durable")     \
    X("src/snapshot/ron_audit_impl.h", "pages",                               \
      "RON_AUDIT_PAGES", "pages of a journal for the replay; a reader waits") \
    X("src/engine/ron_engine_impl.h", "queue",                                \
      "queue commit", "batches for the committer")                            \
    X("src/engine/ron_engine_impl.h", "done",                                 \
      "queue commit", "batches that it has done")


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
