
/*
 * Frames between a worker and the helper's sequencer, over a UNIX stream
 * socket.
 *
 *     u32 length | u8 version | u8 type | u16 flags | u64 call | payload
 *
 * `length` counts everything behind itself and is at most RON_FRAME_MAX;
 * `call` is chosen by the asking side and comes back in the answer (0: not an
 * answer).  A frame of another version, an unknown type, or one byte more
 * than the bound closes the connection: the peer is not one of ours.
 *
 *   worker                              helper
 *                                  <-   HELLO   versions, generation, nonce
 *   AUTH   slot, pid, nonce, mac   ->
 *                                  <-   READY   mac, state, seq
 *   UNIT   ron_unit wire form      ->
 *                                  <-   OUTCOME root, time, ron_outcome wire
 *   BALANCE, LOOKUP, ADMIN, ...    ->
 *                                  <-   BALANCE_IS, LOOKUP_IS, ADMIN_IS
 *                                  <-   STATE   (pushed on every change)
 *                                  <-   COMMIT  (pushed: seq, root, time)
 *
 * Both macs are HMAC-SHA256 under a key derived from the root-only keys file
 * over both nonces and a label, so that each side proves it and neither mac
 * can be reflected.
 */

#ifndef RON_FRAME_H
#define RON_FRAME_H


#include "ron.h"
#include "ron_buf.h"


#define RON_FRAME_VERSION   3
#define RON_FRAME_MAX       (1024 * 1024)
#define RON_FRAME_CHUNK     (64 * 1024)     /* of a stream, either way */
#define RON_FRAME_HEADER    16              /* with the length */
#define RON_FRAME_MAC_LEN   32
#define RON_FRAME_NONCE     32


#define RON_FRAMES(X)                                                         \
    X(HELLO, 1)                                                               \
    X(AUTH, 2)                                                                \
    X(READY, 3)                                                               \
    X(UNIT, 16)                                                               \
    X(OUTCOME, 17)                                                            \
    X(BALANCE, 18)                                                            \
    X(BALANCE_IS, 19)                                                         \
    X(LOOKUP, 20)                                                             \
    X(LOOKUP_IS, 21)                                                          \
    X(ADMIN, 22)                                                              \
    X(ADMIN_IS, 23)                                                           \
    X(STATE, 32)                                                              \
    X(COMMIT, 33)

typedef enum {
#define RON_FRAME_ENUM(name, value)  RON_FRAME_##name = value,
    RON_FRAMES(RON_FRAME_ENUM)
#undef RON_FRAME_ENUM
    RON_FRAME_TYPE_END
} ron_frame_type_t;

/* No payload is longer. */
#define RON_FRAME_PAYLOAD_MAX  (RON_FRAME_MAX - (RON_FRAME_HEADER - 4))

const char *ron_frame_name(ron_frame_type_t type);


typedef struct {
    ron_frame_type_t  type;
    uint16_t          flags;
    uint64_t          call;
    ron_str_t         payload;
} ron_frame_t;


/*
 * Writes a frame.  begin() puts the header and returns where it is; end()
 * fills in the length, or takes the frame back and says RON_EFULL (longer
 * than a frame or than the buffer may be) or RON_ENOMEM.
 */
size_t ron_frame_begin(ron_buf_t *out, ron_frame_type_t type, uint16_t flags,
    uint64_t call);
ron_status_t ron_frame_end(ron_buf_t *out, size_t begin);

/*
 * The first whole frame of the bytes: RON_OK and its length with header in
 * *used; RON_AGAIN when more bytes are needed; RON_EINVAL, RON_EVERSION.  The
 * payload points into `bytes`.
 */
ron_status_t ron_frame_next(ron_str_t bytes, ron_frame_t *frame,
    size_t *used);

/*
 * One answer too long for a frame goes in several, all but the last with this
 * flag; the receiver puts them together (bounded by its own limit).
 */
#define RON_FRAME_F_MORE  0x0001


/*
 * The lifecycle of the ledger, as STATE and the zone carry it.  Draining ends
 * in stopped, or past its deadline in aborting: what has no place in the
 * journal yet is given up, and what has is waited for.
 */

#define RON_STATES(X)                                                         \
    X(STARTING, "starting")                                                   \
    X(FOLLOWING, "following")                                                 \
    X(RUNNING, "running")                                                     \
    X(DRAINING, "draining")                                                   \
    X(STOPPED, "stopped")                                                     \
    X(SAFE_MODE, "safe_mode")                                                 \
    X(ABORTING, "aborting")

typedef enum {
#define RON_STATE_ENUM(name, text)  RON_STATE_##name,
    RON_STATES(RON_STATE_ENUM)
#undef RON_STATE_ENUM
    RON_STATE_N
} ron_life_t;

const char *ron_state_name(ron_life_t state);


/* What ADMIN asks for (one byte, then its own payload). */
typedef enum {
    RON_ADMIN_DRAIN = 1,
    RON_ADMIN_SAFE_ENTER,
    RON_ADMIN_SAFE_LEAVE,
    RON_ADMIN_SNAPSHOT,
    RON_ADMIN_STAT
} ron_admin_t;


#endif /* RON_FRAME_H */
