
/*
 * Metrics: every family, label and label value that /metrics can show.
 *
 * A family is one row: name, type, four dimensions (the first is always the
 * service), buckets, help.  A dimension is a closed list of values, so that
 * every series has a fixed cell in every process's block of the zone, nobody
 * allocates, and no label can grow without bound.  Rows of one name stand
 * together, because Prometheus wants one HELP and TYPE a name.
 *
 *     cell = one atomic word; a histogram's series has one a bucket, one for
 *            everything over them, one for the sum
 *
 * Each process writes its own block; a reader adds them up.  Counters of a
 * dead process stay in its block, whose next owner counts on.
 *
 * Times are counted in microseconds and shown in seconds.
 */

#ifndef RON_METRICS_H
#define RON_METRICS_H


#include "ron_zone.h"


/* ---- dimensions: the values of each label ------------------------------- */

#define RON_DIM_NONE(X)      X(NONE, ANY, "")

#define RON_DIM_LEDGER(X)    X(LEDGER, ANY, "ledger")
#define RON_DIM_WALLET(X)    X(WALLET, ANY, "wallet")
#define RON_DIM_REWARDER(X)  X(REWARDER, ANY, "rewarder")
#define RON_DIM_INTEROP(X)   X(INTEROP, ANY, "interop")
#define RON_DIM_EDGE(X)      X(EDGE, ANY, "edge")

/* The service of a route is known from the route. */
#define RON_DIM_BY_ROUTE(X)  X(BY_ROUTE, ANY, "")

#define RON_DIM_SERVICE(X)                                                    \
    X(SERVICE, LEDGER, "ledger")                                              \
    X(SERVICE, WALLET, "wallet")                                              \
    X(SERVICE, REWARDER, "rewarder")                                          \
    X(SERVICE, INTEROP, "interop")                                            \
    X(SERVICE, EDGE, "edge")

#define RON_DIM_Q(X)                                                          \
    X(Q, INGRESS, "ingress")                                                  \
    X(Q, PREVAL, "preval")                                                    \
    X(Q, COMMIT, "commit")                                                    \
    X(Q, ROOT_PUB, "root_pub")                                                \
    X(Q, SPANS, "spans")                                                      \
    X(Q, PARSE, "parse")                                                      \
    X(Q, PROOFS, "proofs")                                                    \
    X(Q, BALANCES, "balances")

#define RON_DIM_QUEUE_W(X)                                                    \
    X(QUEUE_W, WORK, "work")                                                  \
    X(QUEUE_W, EVENTS, "events")                                              \
    X(QUEUE_W, LEDGER, "ledger")

#define RON_DIM_QUEUE_R(X)                                                    \
    X(QUEUE_R, WORK_REQ, "work_req")                                          \
    X(QUEUE_R, WORK, "work")                                                  \
    X(QUEUE_R, RESULTS, "results")                                            \
    X(QUEUE_R, INTENTS, "intents")                                            \
    X(QUEUE_R, EVENTS, "events")

#define RON_DIM_QUEUE_I(X)                                                    \
    X(QUEUE_I, WORK, "work")                                                  \
    X(QUEUE_I, EVENTS, "events")                                              \
    X(QUEUE_I, AUDIT, "audit")

#define RON_DIM_QUEUE_E(X)                                                    \
    X(QUEUE_E, WORK, "work")                                                  \
    X(QUEUE_E, EVENTS, "events")

#define RON_DIM_ENDPOINT_W(X)                                                 \
    X(ENDPOINT_W, ISSUE, "issue")                                             \
    X(ENDPOINT_W, TRANSFER, "transfer")                                       \
    X(ENDPOINT_W, BURN, "burn")                                               \
    X(ENDPOINT_W, HOLD, "hold")                                               \
    X(ENDPOINT_W, CAPTURE, "capture")                                         \
    X(ENDPOINT_W, RELEASE, "release")                                         \
    X(ENDPOINT_W, BATCH, "batch")                                             \
    X(ENDPOINT_W, BALANCE, "balance")                                         \
    X(ENDPOINT_W, OUTCOME, "outcome")                                         \
    X(ENDPOINT_W, TX, "tx")                                                   \
    X(ENDPOINT_W, AUDIT, "audit")

#define RON_DIM_ENDPOINT_R(X)  X(ENDPOINT_R, COMPUTE, "compute")

#define RON_DIM_ENDPOINT_I(X)                                                 \
    X(ENDPOINT_I, WEBHOOKS, "webhooks")                                       \
    X(ENDPOINT_I, PUT, "put")                                                 \
    X(ENDPOINT_I, OBJECT, "o")

#define RON_DIM_ENDPOINT_E(X)  X(ENDPOINT_E, ASSETS, "/edge/assets")

#define RON_DIM_KIND(X)                                                       \
    X(KIND, INGRESS, "ingress")                                               \
    X(KIND, PREVALIDATOR, "prevalidator")                                     \
    X(KIND, SEQUENCER, "sequencer")                                           \
    X(KIND, COMMITTER, "committer")                                           \
    X(KIND, ROOTS_PUBLISHER, "roots_publisher")                               \
    X(KIND, HEALTH, "health")                                                 \
    X(KIND, METRICS, "metrics")                                               \
    X(KIND, ADMIN, "admin")                                                   \
    X(KIND, LISTENER, "listener")                                             \
    X(KIND, WORKER, "worker")                                                 \
    X(KIND, INVALIDATOR, "invalidator")

#define RON_DIM_IO(X)                                                         \
    X(IO, READ, "read")                                                       \
    X(IO, WRITE, "write")                                                     \
    X(IO, CONNECT, "connect")                                                 \
    X(IO, LEDGER_RPC, "ledger_rpc")                                           \
    X(IO, FILL, "fill")                                                       \
    X(IO, KMS, "kms")                                                         \
    X(IO, POLICY, "policy")                                                   \
    X(IO, WALLET, "wallet")

#define RON_DIM_IO_R(X)                                                       \
    X(IO_R, READ, "read")                                                     \
    X(IO_R, WRITE, "write")                                                   \
    X(IO_R, CONNECT, "connect")

#define RON_DIM_PEER(X)                                                       \
    X(PEER, ACCOUNTING, "accounting")                                         \
    X(PEER, LEDGER, "ledger")                                                 \
    X(PEER, POLICY, "policy")

#define RON_DIM_SVC(X)                                                        \
    X(SVC, LEDGER, "ledger")                                                  \
    X(SVC, AUTH, "auth")                                                      \
    X(SVC, POLICY, "policy")                                                  \
    X(SVC, KMS, "kms")

#define RON_DIM_CALL(X)                                                       \
    X(CALL, COMMIT, "commit")                                                 \
    X(CALL, READ, "read")                                                     \
    X(CALL, VERIFY, "verify")                                                 \
    X(CALL, BUS, "bus")

#define RON_DIM_RESULT(X)                                                     \
    X(RESULT, OK, "ok")                                                       \
    X(RESULT, ERROR, "error")                                                 \
    X(RESULT, TIMEOUT, "timeout")

#define RON_DIM_TARGET(X)                                                     \
    X(TARGET, KMS, "kms")                                                     \
    X(TARGET, POLICY, "policy")                                               \
    X(TARGET, WALLET, "wallet")                                               \
    X(TARGET, LEDGER, "ledger")

#define RON_DIM_BUS(X)                                                        \
    X(BUS, EVENTS, "events")                                                  \
    X(BUS, LEDGER, "ledger")                                                  \
    X(BUS, ROOT_PUB, "root_pub")

#define RON_DIM_BUS_ONE(X)  X(BUS_ONE, EVENTS, "events")

#define RON_DIM_REASON(X)                                                     \
    X(REASON, BAD_REQUEST, "bad_request")                                     \
    X(REASON, UNAUTHORIZED, "unauthorized")                                   \
    X(REASON, FORBIDDEN, "forbidden")                                         \
    X(REASON, LIMITS_EXCEEDED, "limits_exceeded")                             \
    X(REASON, NOT_FOUND, "not_found")                                         \
    X(REASON, METHOD_NOT_ALLOWED, "method_not_allowed")                       \
    X(REASON, CONFLICT, "conflict")                                           \
    X(REASON, PRECONDITION_FAILED, "precondition_failed")                     \
    X(REASON, UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type")               \
    X(REASON, BUSY, "busy")                                                   \
    X(REASON, INTERNAL, "internal")                                           \
    X(REASON, RETRY_LATER, "retry_later")                                     \
    X(REASON, UPSTREAM_UNAVAILABLE, "upstream_unavailable")                   \
    X(REASON, TIMEOUT, "timeout")                                             \
    X(REASON, SAFE_MODE, "safe_mode")                                         \
    X(REASON, DRAINING, "draining")                                           \
    X(REASON, INSUFFICIENT_FUNDS, "insufficient_funds")                       \
    X(REASON, NONCE_CONFLICT, "nonce_conflict")                               \
    X(REASON, HOLD_NOT_FOUND, "hold_not_found")                               \
    X(REASON, HOLD_CLOSED, "hold_closed")                                     \
    X(REASON, IDEMPOTENCY_MISMATCH, "idempotency_mismatch")                   \
    X(REASON, PREVAL_DROPPED, "preval_dropped")                               \
    X(REASON, COMMIT_BACKPRESSURE, "commit_backpressure")                     \
    X(REASON, BACKPRESSURE, "BACKPRESSURE")                                   \
    X(REASON, UNKNOWN_KIND, "unknown_kind")                                   \
    X(REASON, OTHER, "other")

#define RON_DIM_SAFE_TO(X)                                                    \
    X(SAFE_TO, ON, "on")                                                      \
    X(SAFE_TO, OFF, "off")

#define RON_DIM_SAFE_REASON(X)                                                \
    X(SAFE_REASON, REPLAY, "replay")                                          \
    X(SAFE_REASON, OPEN, "open")                                              \
    X(SAFE_REASON, SYNC, "sync")                                              \
    X(SAFE_REASON, DISK_FULL, "disk_full")                                    \
    X(SAFE_REASON, GAP, "gap")                                                \
    X(SAFE_REASON, DRAIN, "drain")                                            \
    X(SAFE_REASON, OPERATOR, "operator")                                      \
    X(SAFE_REASON, MARKED, "marked")                                          \
    X(SAFE_REASON, OTHER, "other")

/* As RON_STATES has them. */

#define RON_DIM_LIFE(X)                                                       \
    X(LIFE, STARTING, "starting")                                             \
    X(LIFE, FOLLOWING, "following")                                           \
    X(LIFE, RUNNING, "running")                                               \
    X(LIFE, DRAINING, "draining")                                             \
    X(LIFE, STOPPED, "stopped")                                               \
    X(LIFE, SAFE_MODE, "safe_mode")                                           \
    X(LIFE, ABORTING, "aborting")

/*
 * Sequencer and history are threads for as long as the helper lives: they are
 * started again with it, and only with it.
 */

#define RON_DIM_TASK(X)                                                       \
    X(TASK, WORKER, "worker")                                                 \
    X(TASK, HELPER, "helper")                                                 \
    X(TASK, COMMITTER, "committer")

#define RON_DIM_PEER_CLASS(X)                                                 \
    X(PEER_CLASS, TCP, "tcp")                                                 \
    X(PEER_CLASS, UDS, "uds")                                                 \
    X(PEER_CLASS, WORKER, "worker")

#define RON_DIM_STAGE(X)                                                      \
    X(STAGE, MISSING, "missing")                                              \
    X(STAGE, PARSE, "parse")                                                  \
    X(STAGE, SIGNATURE, "signature")                                          \
    X(STAGE, EXPIRED, "expired")                                              \
    X(STAGE, CAVEAT, "caveat")                                                \
    X(STAGE, REVOKED, "revoked")

#define RON_DIM_CHECK(X)                                                      \
    X(CHECK, OK, "ok")                                                        \
    X(CHECK, FAIL, "fail")

#define RON_DIM_EDGE_REJECT(X)                                                \
    X(EDGE_REJECT, AMNESIA, "amnesia")                                        \
    X(EDGE_REJECT, NOT_ALLOWED, "not_allowed")                                \
    X(EDGE_REJECT, DECOMPRESS_CAP, "decompress_cap")                          \
    X(EDGE_REJECT, BODY_CAP, "body_cap")                                      \
    X(EDGE_REJECT, TIMEOUT, "timeout")                                        \
    X(EDGE_REJECT, RATE_LIMIT, "rate_limit")                                  \
    X(EDGE_REJECT, INVALID_RANGE, "invalid_range")                            \
    X(EDGE_REJECT, ETAG_INVALID, "etag_invalid")

#define RON_DIM_RETRY_OP(X)                                                   \
    X(RETRY_OP, LEDGER_RPC, "ledger_rpc")                                     \
    X(RETRY_OP, KMS, "kms")                                                   \
    X(RETRY_OP, POLICY, "policy")                                             \
    X(RETRY_OP, WALLET, "wallet")                                             \
    X(RETRY_OP, ACCOUNTING, "accounting")                                     \
    X(RETRY_OP, EMIT, "emit")

#define RON_DIM_RETRY_E(X)  X(RETRY_E, LIVE_FILL, "live_fill")

#define RON_DIM_BRIDGE(X)   X(BRIDGE, BRIDGE, "bridge")

#define RON_DIM_DEGRADED(X)                                                   \
    X(DEGRADED, BACKPRESSURE, "backpressure")                                 \
    X(DEGRADED, DEP_OUTAGE, "dep_outage")                                     \
    X(DEGRADED, QUOTA, "quota")                                               \
    X(DEGRADED, COST_CAP, "cost_cap")

#define RON_DIM_SPAN_LOSS(X)                                                  \
    X(SPAN_LOSS, QUEUE, "queue")                                              \
    X(SPAN_LOSS, COLLECTOR, "collector")

#define RON_DIM_METHOD(X)                                                     \
    X(METHOD, GET, "GET")                                                     \
    X(METHOD, POST, "POST")                                                   \
    X(METHOD, OTHER, "other")

#define RON_DIM_STATUS(X)                                                     \
    X(STATUS, 200, "200") X(STATUS, 202, "202") X(STATUS, 206, "206")         \
    X(STATUS, 207, "207") X(STATUS, 304, "304") X(STATUS, 400, "400")         \
    X(STATUS, 401, "401") X(STATUS, 403, "403") X(STATUS, 404, "404")         \
    X(STATUS, 405, "405") X(STATUS, 409, "409") X(STATUS, 412, "412")         \
    X(STATUS, 413, "413") X(STATUS, 415, "415") X(STATUS, 416, "416")         \
    X(STATUS, 422, "422") X(STATUS, 429, "429") X(STATUS, 499, "499")         \
    X(STATUS, 500, "500") X(STATUS, 503, "503") X(STATUS, OTHER, "other")

/* In the order of the services: the label service comes from the place. */

#define RON_DIM_ROUTE(X)                                                      \
    X(ROUTE, LEDGER_INGEST, "/ledger/ingest")                                 \
    X(ROUTE, LEDGER_OPS, "/ledger/ops")                                       \
    X(ROUTE, LEDGER_ROOTS, "/ledger/roots")                                   \
    X(ROUTE, LEDGER_ROOTS_STREAM, "/ledger/roots/stream")                     \
    X(ROUTE, LEDGER_BUS, "/ledger/bus")                                       \
    X(ROUTE, LEDGER_ENTRIES, "/ledger/entries")                               \
    X(ROUTE, LEDGER_ENTRY, "/ledger/entries/{seq}")                           \
    X(ROUTE, LEDGER_ACCOUNT, "/ledger/accounts/{account}")                    \
    X(ROUTE, LEDGER_ACCOUNT_ENTRIES, "/ledger/accounts/{account}/entries")    \
    X(ROUTE, LEDGER_PROOF_INCLUSION, "/ledger/proof/inclusion")               \
    X(ROUTE, LEDGER_PROOF_CONSISTENCY, "/ledger/proof/consistency")           \
    X(ROUTE, LEDGER_CHECKPOINT, "/ledger/checkpoint")                         \
    X(ROUTE, LEDGER_TILE, "/ledger/tile/{path}")                              \
    X(ROUTE, LEDGER_ADMIN_DRAIN, "/ledger/admin/drain")                       \
    X(ROUTE, LEDGER_ADMIN_SAFE, "/ledger/admin/safe-mode")                    \
    X(ROUTE, LEDGER_ADMIN_SNAPSHOT, "/ledger/admin/snapshot")                 \
    X(ROUTE, LEDGER_METRICS, "/metrics")                                      \
    X(ROUTE, LEDGER_HEALTHZ, "/healthz")                                      \
    X(ROUTE, LEDGER_READYZ, "/readyz")                                        \
    X(ROUTE, LEDGER_VERSION, "/version")                                      \
    X(ROUTE, LEDGER_OTHER, "other")                                           \
    X(ROUTE, WALLET_ISSUE, "/v1/issue")                                       \
    X(ROUTE, WALLET_TRANSFER, "/v1/transfer")                                 \
    X(ROUTE, WALLET_BURN, "/v1/burn")                                         \
    X(ROUTE, WALLET_HOLD, "/v1/hold")                                         \
    X(ROUTE, WALLET_CAPTURE, "/v1/capture")                                   \
    X(ROUTE, WALLET_RELEASE, "/v1/release")                                   \
    X(ROUTE, WALLET_BATCH, "/v1/batch")                                       \
    X(ROUTE, WALLET_BALANCE, "/v1/balance")                                   \
    X(ROUTE, WALLET_OUTCOME, "/v1/outcome")                                   \
    X(ROUTE, WALLET_TX, "/v1/tx/{txid}")                                      \
    X(ROUTE, WALLET_AUDIT, "/v1/audit/stream")                                \
    X(ROUTE, WALLET_OTHER, "other")                                           \
    X(ROUTE, REWARDER_COMPUTE, "/rewarder/epochs/{epoch}/compute")            \
    X(ROUTE, REWARDER_EPOCH, "/rewarder/epochs/{epoch}")                      \
    X(ROUTE, REWARDER_OTHER, "other")                                         \
    X(ROUTE, INTEROP_WEBHOOKS, "/webhooks/{provider}")                        \
    X(ROUTE, INTEROP_PUT, "/put")                                             \
    X(ROUTE, INTEROP_OBJECT, "/o/{addr}")                                     \
    X(ROUTE, INTEROP_OTHER, "other")                                          \
    X(ROUTE, EDGE_ASSETS, "/edge/assets/{path}")                              \
    X(ROUTE, EDGE_OTHER, "other")


/* X(DIM, label) for every list above. */

#define RON_DIMS(X)                                                           \
    X(NONE, "")                                                               \
    X(LEDGER, "service")                                                      \
    X(WALLET, "service")                                                      \
    X(REWARDER, "service")                                                    \
    X(INTEROP, "service")                                                     \
    X(EDGE, "service")                                                        \
    X(BY_ROUTE, "service")                                                    \
    X(SERVICE, "service")                                                     \
    X(Q, "q")                                                                 \
    X(QUEUE_W, "queue")                                                       \
    X(QUEUE_R, "queue")                                                       \
    X(QUEUE_I, "queue")                                                       \
    X(QUEUE_E, "queue")                                                       \
    X(ENDPOINT_W, "endpoint")                                                 \
    X(ENDPOINT_R, "endpoint")                                                 \
    X(ENDPOINT_I, "endpoint")                                                 \
    X(ENDPOINT_E, "endpoint")                                                 \
    X(KIND, "kind")                                                           \
    X(IO, "op")                                                               \
    X(IO_R, "op")                                                             \
    X(PEER, "peer")                                                           \
    X(SVC, "svc")                                                             \
    X(CALL, "op")                                                             \
    X(RESULT, "outcome")                                                      \
    X(TARGET, "target")                                                       \
    X(BUS, "bus")                                                             \
    X(BUS_ONE, "bus")                                                         \
    X(REASON, "reason")                                                       \
    X(SAFE_TO, "to")                                                          \
    X(SAFE_REASON, "reason")                                                  \
    X(LIFE, "state")                                                          \
    X(TASK, "task")                                                           \
    X(PEER_CLASS, "peer_class")                                               \
    X(STAGE, "stage")                                                         \
    X(CHECK, "outcome")                                                       \
    X(EDGE_REJECT, "reason")                                                  \
    X(RETRY_OP, "op")                                                         \
    X(RETRY_E, "op")                                                          \
    X(BRIDGE, "component")                                                    \
    X(DEGRADED, "cause")                                                      \
    X(SPAN_LOSS, "cause")                                                     \
    X(METHOD, "method")                                                       \
    X(STATUS, "status")                                                       \
    X(ROUTE, "route")


/* ---- buckets: upper bounds, microseconds or units ----------------------- */

#define RON_BUCKETS_NONE(X)
#define RON_BUCKETS_HTTP(X)                                                   \
    X(HTTP, 5000) X(HTTP, 10000) X(HTTP, 25000) X(HTTP, 50000)                \
    X(HTTP, 100000) X(HTTP, 250000) X(HTTP, 500000) X(HTTP, 1000000)          \
    X(HTTP, 2000000) X(HTTP, 5000000)
#define RON_BUCKETS_COMMIT(X)                                                 \
    X(COMMIT, 5000) X(COMMIT, 10000) X(COMMIT, 20000) X(COMMIT, 40000)        \
    X(COMMIT, 80000) X(COMMIT, 150000) X(COMMIT, 300000) X(COMMIT, 600000)
#define RON_BUCKETS_CHECKS(X)                                                 \
    X(CHECKS, 50) X(CHECKS, 100) X(CHECKS, 250) X(CHECKS, 500)                \
    X(CHECKS, 1000) X(CHECKS, 2500) X(CHECKS, 5000) X(CHECKS, 10000)          \
    X(CHECKS, 50000) X(CHECKS, 250000)
#define RON_BUCKETS_BATCH(X)                                                  \
    X(BATCH, 1) X(BATCH, 2) X(BATCH, 4) X(BATCH, 8) X(BATCH, 16)              \
    X(BATCH, 32) X(BATCH, 64) X(BATCH, 128) X(BATCH, 256) X(BATCH, 512)       \
    X(BATCH, 1024)

/* X(LIST, a microsecond is shown as a millionth) */

#define RON_BUCKET_LISTS(X)                                                   \
    X(NONE, false)                                                            \
    X(HTTP, true)                                                             \
    X(COMMIT, true)                                                           \
    X(CHECKS, true)                                                           \
    X(BATCH, false)


/* ---- families ----------------------------------------------------------- */

/* X(ID, name, type, service, label, label, label, buckets, help) */

#define RON_METRICS(X)                                                        \
    X(HTTP_REQUESTS, "http_requests_total", COUNTER,                          \
      BY_ROUTE, ROUTE, METHOD, STATUS, NONE,                                  \
      "Requests answered.")                                                   \
    X(REQUEST_LATENCY, "request_latency_seconds", HISTOGRAM,                  \
      BY_ROUTE, ROUTE, METHOD, NONE, HTTP,                                    \
      "Time from a request's first byte to its answer.")                      \
    X(INFLIGHT_REQUESTS, "inflight_requests", GAUGE,                          \
      BY_ROUTE, ROUTE, NONE, NONE, NONE,                                      \
      "Requests being worked on.")                                            \
    X(REJECTED, "rejected_total", COUNTER,                                    \
      SERVICE, REASON, NONE, NONE, NONE,                                      \
      "Requests refused, by error code.")                                     \
    X(SERVICE_RESTARTS, "service_restarts_total", COUNTER,                    \
      SERVICE, TASK, NONE, NONE, NONE,                                        \
      "Starts of a task after its death.")                                    \
    X(TASKS_SPAWNED, "tasks_spawned_total", COUNTER,                          \
      SERVICE, KIND, NONE, NONE, NONE,                                        \
      "Processes, threads and operations begun.")                             \
    X(TASKS_ABORTED, "tasks_aborted_total", COUNTER,                          \
      SERVICE, KIND, NONE, NONE, NONE,                                        \
      "Tasks ended from outside, past a deadline.")                           \
    X(TASKS_CANCELED, "tasks_canceled_total", COUNTER,                        \
      SERVICE, KIND, NONE, NONE, NONE,                                        \
      "Tasks that ended early because they were asked to.")                   \
    X(TASKS_LEAKED, "tasks_leaked_total", COUNTER,                            \
      SERVICE, NONE, NONE, NONE, NONE,                                        \
      "Tasks still there when their process ended; always 0.")                \
    X(IO_TIMEOUTS, "io_timeouts_total", COUNTER,                              \
      SERVICE, IO, NONE, NONE, NONE,                                          \
      "Deadlines that passed.")                                               \
    X(IO_TIMEOUTS_R, "io_timeouts_total", COUNTER,                            \
      REWARDER, IO_R, PEER, NONE, NONE,                                       \
      "Deadlines that passed.")                                               \
    X(BACKOFF_RETRIES_R, "backoff_retries_total", COUNTER,                    \
      REWARDER, RETRY_OP, NONE, NONE, NONE,                                   \
      "Tries after the first.")                                               \
    X(BACKOFF_RETRIES_W, "backoff_retries_total", COUNTER,                    \
      WALLET, SVC, CALL, NONE, NONE,                                          \
      "Tries after the first.")                                               \
    X(BACKOFF_RETRIES_L, "backoff_retries_total", COUNTER,                    \
      LEDGER, RETRY_OP, NONE, NONE, NONE,                                     \
      "Tries after the first.")                                               \
    X(BACKOFF_RETRIES_E, "backoff_retries_total", COUNTER,                    \
      EDGE, RETRY_E, NONE, NONE, NONE,                                        \
      "Tries after the first.")                                               \
    X(BACKOFF_RETRIES_I, "backoff_retries_total", COUNTER,                    \
      INTEROP, RETRY_OP, RESULT, NONE, NONE,                                  \
      "Tries after the first.")                                               \
    X(BUSY_L, "busy_rejections_total", COUNTER,                               \
      LEDGER, Q, NONE, NONE, NONE,                                            \
      "Refusals because a queue was full.")                                   \
    X(BUSY_W, "busy_rejections_total", COUNTER,                               \
      WALLET, ENDPOINT_W, NONE, NONE, NONE,                                   \
      "Refusals because a queue was full.")                                   \
    X(BUSY_R, "busy_rejections_total", COUNTER,                               \
      REWARDER, ENDPOINT_R, NONE, NONE, NONE,                                 \
      "Refusals because a queue was full.")                                   \
    X(BUSY_I, "busy_rejections_total", COUNTER,                               \
      INTEROP, ENDPOINT_I, NONE, NONE, NONE,                                  \
      "Refusals because a queue was full.")                                   \
    X(BUSY_E, "busy_rejections_total", COUNTER,                               \
      EDGE, ENDPOINT_E, NONE, NONE, NONE,                                     \
      "Refusals because a queue was full.")                                   \
    X(QUEUE_DEPTH_L, "queue_depth", GAUGE,                                    \
      LEDGER, Q, NONE, NONE, NONE,                                            \
      "Items in a queue.")                                                    \
    X(QUEUE_DEPTH_W, "queue_depth", GAUGE,                                    \
      WALLET, QUEUE_W, NONE, NONE, NONE,                                      \
      "Items in a queue.")                                                    \
    X(QUEUE_DEPTH_R, "queue_depth", GAUGE,                                    \
      REWARDER, QUEUE_R, NONE, NONE, NONE,                                    \
      "Items in a queue.")                                                    \
    X(QUEUE_DEPTH_I, "queue_depth", GAUGE,                                    \
      INTEROP, QUEUE_I, NONE, NONE, NONE,                                     \
      "Items in a queue.")                                                    \
    X(QUEUE_DEPTH_E, "queue_depth", GAUGE,                                    \
      EDGE, QUEUE_E, NONE, NONE, NONE,                                        \
      "Items in a queue.")                                                    \
    X(QUEUE_CAPACITY_L, "queue_capacity", GAUGE,                              \
      LEDGER, Q, NONE, NONE, NONE,                                            \
      "What a queue can hold.")                                               \
    X(QUEUE_CAPACITY_W, "queue_capacity", GAUGE,                              \
      WALLET, QUEUE_W, NONE, NONE, NONE,                                      \
      "What a queue can hold.")                                               \
    X(QUEUE_CAPACITY_R, "queue_capacity", GAUGE,                              \
      REWARDER, QUEUE_R, NONE, NONE, NONE,                                    \
      "What a queue can hold.")                                               \
    X(QUEUE_CAPACITY_I, "queue_capacity", GAUGE,                              \
      INTEROP, QUEUE_I, NONE, NONE, NONE,                                     \
      "What a queue can hold.")                                               \
    X(QUEUE_CAPACITY_E, "queue_capacity", GAUGE,                              \
      EDGE, QUEUE_E, NONE, NONE, NONE,                                        \
      "What a queue can hold.")                                               \
    X(QUEUE_DROPPED_W, "queue_dropped_total", COUNTER,                        \
      WALLET, QUEUE_W, NONE, NONE, NONE,                                      \
      "Items that a queue dropped.")                                          \
    X(QUEUE_DROPPED_R, "queue_dropped_total", COUNTER,                        \
      REWARDER, QUEUE_R, NONE, NONE, NONE,                                    \
      "Items that a queue dropped.")                                          \
    X(QUEUE_DROPPED_I, "queue_dropped_total", COUNTER,                        \
      INTEROP, QUEUE_I, NONE, NONE, NONE,                                     \
      "Items that a queue dropped.")                                          \
    X(QUEUE_DROPPED_E, "queue_dropped_total", COUNTER,                        \
      EDGE, QUEUE_E, NONE, NONE, NONE,                                        \
      "Items that a queue dropped.")                                          \
    X(DROPS, "drops_total", COUNTER,                                          \
      LEDGER, Q, NONE, NONE, NONE,                                            \
      "Items dropped, the oldest first.")                                     \
    X(BUS_LAGGED_W, "bus_lagged_total", COUNTER,                              \
      WALLET, BUS, NONE, NONE, NONE,                                          \
      "Events that were overwritten before they were read.")                  \
    X(BUS_LAGGED_R, "bus_lagged_total", COUNTER,                              \
      REWARDER, BUS_ONE, NONE, NONE, NONE,                                    \
      "Events that were overwritten before they were read.")                  \
    X(BUS_LAGGED_I, "bus_lagged_total", COUNTER,                              \
      INTEROP, BUS_ONE, NONE, NONE, NONE,                                     \
      "Events that were overwritten before they were read.")                  \
    X(BUS_LAGGED_E, "bus_lagged_total", COUNTER,                              \
      EDGE, BUS_ONE, NONE, NONE, NONE,                                        \
      "Events that were overwritten before they were read.")                  \
    X(BUS_LAGGED_L, "bus_lagged_total", COUNTER,                              \
      LEDGER, BUS, NONE, NONE, NONE,                                          \
      "Events that were overwritten before they were read.")                  \
    X(STREAMS_OPEN, "streams_open", GAUGE,                                    \
      SERVICE, NONE, NONE, NONE, NONE,                                        \
      "Streams that have a client now.")                                      \
    X(AUTH_FAILURES_L, "auth_failures_total", COUNTER,                        \
      LEDGER, PEER_CLASS, NONE, NONE, NONE,                                   \
      "Failed authentications.")                                              \
    X(AUTH_FAILURES_W, "auth_failures_total", COUNTER,                        \
      WALLET, STAGE, NONE, NONE, NONE,                                        \
      "Failed authentications.")                                              \
    X(UDS_DENIED, "uds_denied_total", COUNTER,                                \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "UNIX socket peers whose credentials are not on the list.")             \
    X(BREAKER_STATE, "breaker_state", GAUGE,                                  \
      LEDGER, TARGET, NONE, NONE, NONE,                                       \
      "0 closed, 1 open, 2 half open.")                                       \
    X(BREAKER_OPEN, "breaker_open_total", COUNTER,                            \
      LEDGER, TARGET, NONE, NONE, NONE,                                       \
      "How often a breaker opened.")                                          \
    X(BREAKER_OPEN_SECONDS, "breaker_open_seconds", GAUGE_US,                 \
      LEDGER, TARGET, NONE, NONE, NONE,                                       \
      "For how long a breaker has been open.")                                \
    X(ROOTS_PUBLISHED, "roots_published_total", COUNTER,                      \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Roots published.")                                                     \
    X(LEDGER_ROOTS_PUBLISHED, "ledger_roots_published_total", COUNTER,        \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Roots published.")                                                     \
    X(LEDGER_COMMITS, "ledger_commits_total", COUNTER,                        \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Durable batches.")                                                     \
    X(LEDGER_ENTRIES, "ledger_entries_total", COUNTER,                        \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Durable entries.")                                                     \
    X(LEDGER_COMMIT_LATENCY, "ledger_commit_latency_seconds", HISTOGRAM,      \
      LEDGER, NONE, NONE, NONE, COMMIT,                                       \
      "Time of one append, its sync included.")                               \
    X(COMMITTER_LATENCY, "committer_batch_latency_seconds", HISTOGRAM,        \
      LEDGER, NONE, NONE, NONE, COMMIT,                                       \
      "Time of one append, its sync included.")                               \
    X(PREVALIDATOR_DURATION, "prevalidator_duration_seconds", HISTOGRAM,      \
      LEDGER, NONE, NONE, NONE, CHECKS,                                       \
      "Capability, policy and wallet checks of one request.")                 \
    X(SEQUENCER_BATCH, "sequencer_batch_size", HISTOGRAM,                     \
      LEDGER, NONE, NONE, NONE, BATCH,                                        \
      "Entries in one batch.")                                                \
    X(LEDGER_BACKLOG, "ledger_backlog", GAUGE,                          \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Units read and not yet durable.")                                      \
    X(COMMITTER_LAG, "committer_lag_seconds", GAUGE_US,                       \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "For how long the append under way has lasted.")                        \
    X(CLOCK_DRIFT, "ledger_clock_drift_seconds", GAUGE_US,                    \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "How far the wall clock is from ledger time.")                          \
    X(CLOCK_STEPS, "ledger_clock_steps_total", COUNTER,                       \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Times that the wall clock came off by more than ron_clock_step.")      \
    X(CLOCK_LEAPS, "ledger_clock_leaps_total", COUNTER,                       \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Starts at which ledger time leapt by more than ron_clock_step.")       \
    X(LEDGER_SEQ, "ledger_seq", GAUGE,                                        \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "The newest durable entry.")                                            \
    X(HISTORY_LAG, "ledger_history_lag_entries", GAUGE,                       \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Entries that history does not show yet.")                              \
    X(LEDGER_SAFE_MODE, "ledger_safe_mode", GAUGE,                            \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "1 while writes are frozen.")                                           \
    X(SAFE_TRANSITIONS, "ledger_safe_mode_transitions_total", COUNTER,        \
      LEDGER, SAFE_TO, SAFE_REASON, NONE, NONE,                               \
      "Changes into and out of safe mode.")                                   \
    X(LIFECYCLE, "lifecycle_transitions_total", COUNTER,                      \
      LEDGER, LIFE, NONE, NONE, NONE,                                         \
      "States that the ledger, and with it the wallet, came into.")           \
    X(SEQ_GAP, "seq_gap_detected_total", COUNTER,                             \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Gaps found in the journal.")                                           \
    X(LEDGER_SEQ_GAP, "ledger_seq_gap_detected_total", COUNTER,               \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Gaps found in the journal.")                                           \
    X(WAL_FSYNC_FAIL, "wal_fsync_fail_total", COUNTER,                        \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Appends that could not be made durable.")                              \
    X(DISK_PRESSURE, "disk_pressure", GAUGE,                                  \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "1 when an append found no room.")                                      \
    X(PREVALIDATORS_BUSY, "ledger_prevalidators_busy", GAUGE,                 \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Checks by other services, under way.")                                 \
    X(INGRESS_BUSY, "ledger_ingress_workers_busy", GAUGE,                     \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Bodies being parsed in threads.")                                      \
    X(WORKER_INFLIGHT, "worker_inflight", GAUGE,                              \
      WALLET, NONE, NONE, NONE, NONE,                                         \
      "Operations taken by the committer and not yet answered.")              \
    X(WALLET_REQUESTS, "wallet_requests_total", COUNTER,                      \
      WALLET, ENDPOINT_W, NONE, NONE, NONE,                                   \
      "Requests.")                                                            \
    X(WALLET_OPS, "wallet_ops_total", COUNTER,                                \
      WALLET, ENDPOINT_W, NONE, NONE, NONE,                                   \
      "Operations answered as entries, the first time.")                      \
    X(WALLET_SUCCESSES, "wallet_successes_total", COUNTER,                    \
      WALLET, NONE, NONE, NONE, NONE,                                         \
      "Operations and batches answered 200, also again.")                     \
    X(WALLET_REJECTS, "wallet_rejects_total", COUNTER,                        \
      WALLET, REASON, NONE, NONE, NONE,                                       \
      "Requests refused, by error code.")                                     \
    X(WALLET_REPLAYS, "wallet_idem_replays_total", COUNTER,                   \
      WALLET, NONE, NONE, NONE, NONE,                                         \
      "Answers given again for the same key.")                                \
    X(WALLET_REPLAYS_LONG, "wallet_idempotency_replays_total", COUNTER,       \
      WALLET, NONE, NONE, NONE, NONE,                                         \
      "Answers given again for the same key.")                                \
    X(WALLET_INFLIGHT, "wallet_inflight", GAUGE,                              \
      WALLET, ENDPOINT_W, NONE, NONE, NONE,                                   \
      "Requests being worked on.")                                            \
    X(WALLET_READY, "wallet_ready", GAUGE,                                    \
      WALLET, NONE, NONE, NONE, NONE,                                         \
      "1 while writes are taken, as /readyz has it.")                         \
    X(WALLET_CONSERVATION, "wallet_conservation_checks_total", COUNTER,       \
      WALLET, CHECK, NONE, NONE, NONE,                                        \
      "Checks that no money appeared or vanished.")                           \
    X(WALLET_NONCE, "wallet_nonce_conflicts_total", COUNTER,                  \
      WALLET, NONE, NONE, NONE, NONE,                                         \
      "Operations refused for their nonce.")                                  \
    X(UPSTREAM_CALLS, "upstream_calls_total", COUNTER,                        \
      WALLET, SVC, CALL, RESULT, NONE,                                        \
      "Calls to another service.")                                            \
    X(UPSTREAM_LATENCY, "upstream_latency_seconds", HISTOGRAM,                \
      WALLET, SVC, CALL, NONE, HTTP,                                          \
      "Time of a call to another service.")                                   \
    X(UPSTREAM_FAIL, "upstream_fail_total", COUNTER,                          \
      WALLET, SVC, NONE, NONE, NONE,                                          \
      "Calls that failed or that an open breaker refused.")                   \
    X(CIRCUIT_OPEN, "circuit_open_total", COUNTER,                            \
      WALLET, SVC, NONE, NONE, NONE,                                          \
      "How often a breaker opened.")                                          \
    X(DROPPED_RESULTS, "dropped_results_total", COUNTER,                      \
      REWARDER, NONE, NONE, NONE, NONE,                                       \
      "Results dropped at shutdown.")                                         \
    X(READYZ_DEGRADED, "readyz_degraded", GAUGE,                              \
      REWARDER, DEGRADED, NONE, NONE, NONE,                                   \
      "1 while readiness suffers from this.")                                 \
    X(AUDIT_DROP, "audit_drop_total", COUNTER,                                \
      INTEROP, NONE, NONE, NONE, NONE,                                        \
      "Audit records dropped.")                                               \
    X(BROWNOUT, "brownout_active", GAUGE,                                     \
      INTEROP, BRIDGE, NONE, NONE, NONE,                                      \
      "1 while bridges shed load.")                                           \
    X(EDGE_REJECTS, "edge_rejects_total", COUNTER,                            \
      EDGE, EDGE_REJECT, NONE, NONE, NONE,                                    \
      "Requests that the edge refused.")                                      \
    X(SPANS_EXPORTED, "otlp_spans_exported_total", COUNTER,                   \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Spans that a collector took.")                                         \
    X(SPANS_DROPPED, "otlp_spans_dropped_total", COUNTER,                     \
      LEDGER, SPAN_LOSS, NONE, NONE, NONE,                                    \
      "Spans, or requests' records, that no collector got.")                  \
    X(METRICS_SAMPLE_AGE, "metrics_sample_age_seconds", GAUGE_US,             \
      LEDGER, NONE, NONE, NONE, NONE,                                         \
      "Age of the gauges that the helper samples.")


/* ---- what the tables become --------------------------------------------- */

/* RON_D_<DIM>_<VALUE>: the index of a value; RON_D_<DIM>_N: how many. */

#define RON_DIM_VALUE_ENUM(dim, id, text)  RON_D_##dim##_##id,
#define RON_DIM_ENUM(dim, label)                                              \
    enum { RON_DIM_##dim(RON_DIM_VALUE_ENUM) RON_D_##dim##_N };

RON_DIMS(RON_DIM_ENUM)

#undef RON_DIM_ENUM
#undef RON_DIM_VALUE_ENUM

/* RON_BUCKET_N_<LIST>: bounds; a series has two cells more, a scalar one. */

#define RON_BUCKET_COUNT(list, bound)  + 1
#define RON_BUCKET_ENUM(list, us)                                             \
    enum { RON_BUCKET_N_##list = 0 RON_BUCKETS_##list(RON_BUCKET_COUNT) };

RON_BUCKET_LISTS(RON_BUCKET_ENUM)

#undef RON_BUCKET_ENUM
#undef RON_BUCKET_COUNT

#define RON_CELLS_COUNTER(list)    1
#define RON_CELLS_GAUGE(list)      1
#define RON_CELLS_GAUGE_US(list)   1
#define RON_CELLS_HISTOGRAM(list)  (RON_BUCKET_N_##list + 2)

/* RON_M_<ID>: the family; RON_AT_<ID>: its first cell. */

#define RON_METRIC_ENUM(id, name, type, s, a, b, c, buckets, help)            \
    RON_M_##id,

typedef enum {
    RON_METRICS(RON_METRIC_ENUM)
    RON_METRIC_N
} ron_metric_t;

#undef RON_METRIC_ENUM

#define RON_METRIC_ENUM(id, name, type, s, a, b, c, buckets, help)            \
    RON_AT_##id,                                                              \
    RON_AT_LAST_##id = RON_AT_##id                                            \
        + RON_D_##s##_N * RON_D_##a##_N * RON_D_##b##_N * RON_D_##c##_N       \
          * RON_CELLS_##type(buckets) - 1,

enum {
    RON_METRICS(RON_METRIC_ENUM)
    RON_METRIC_CELLS
};

#undef RON_METRIC_ENUM

typedef enum {
    RON_METRIC_COUNTER = 0,
    RON_METRIC_GAUGE,
    RON_METRIC_GAUGE_US,
    RON_METRIC_HISTOGRAM
} ron_metric_type_t;

typedef struct {
    const char         *label;
    uint32_t            n;
    const char *const  *values;
} ron_dim_info_t;

typedef struct {
    const char            *name;
    const char            *help;
    ron_metric_type_t      type;
    bool                   seconds;     /* microseconds shown in seconds */
    uint32_t               at;
    uint32_t               bucket_n;
    const uint64_t        *buckets;
    const ron_dim_info_t  *dim[4];
    uint32_t               dim_n[4];    /* dim[]->n, where it is looked for */
    uint32_t               cells;       /* of one series */
} ron_metric_info_t;

/* For tests and docs. */
const ron_metric_info_t *ron_metric_info(ron_metric_t metric);

/* A number that differs when names, labels or cells do. */
uint64_t ron_metrics_signature(void);


/*
 * One process's counts.  s, a, b, c are RON_D_* values of the family's four
 * dimensions, 0 for NONE.  A value that the list does not have is our bug and
 * stops the program.  `slot` may be RON_ZONE_SLOT_NONE: nothing is counted.
 */
void ron_metric_add(const ron_zone_t *zone, uint32_t slot,
    ron_metric_t metric, uint32_t s, uint32_t a, uint32_t b, uint32_t c,
    uint64_t n);

/* Gauges: this process's part of the sum; up and down, or as it is. */
void ron_metric_sub(const ron_zone_t *zone, uint32_t slot,
    ron_metric_t metric, uint32_t s, uint32_t a, uint32_t b, uint32_t c,
    uint64_t n);
void ron_metric_set(const ron_zone_t *zone, uint32_t slot,
    ron_metric_t metric, uint32_t s, uint32_t a, uint32_t b, uint32_t c,
    uint64_t value);

/* Histograms: one observation, in microseconds or units. */
void ron_metric_observe(const ron_zone_t *zone, uint32_t slot,
    ron_metric_t metric, uint32_t s, uint32_t a, uint32_t b, uint32_t c,
    uint64_t value);

/* The sum over all processes; of a histogram, the number of observations. */
uint64_t ron_metric_read(const ron_zone_t *zone, ron_metric_t metric,
    uint32_t s, uint32_t a, uint32_t b, uint32_t c);

/* Sets a dead process's gauges to 0; its counters stay. */
void ron_metrics_retire(const ron_zone_t *zone, uint32_t slot);

/*
 * The Prometheus text format 0.0.4.  Families of more than 256 cells show the
 * series that are not 0.
 */
ron_status_t ron_metrics_render(const ron_zone_t *zone, ron_buf_t *out);


#endif /* RON_METRICS_H */
