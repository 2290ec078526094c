
/*
 * One connection as two bounded buffers and no socket: bytes in, frames out;
 * frames in, bytes out.  Both sides use it, and so do the simulator and the
 * fuzzers, because nothing here reads, writes or waits.
 *
 * Input.  The owner asks for space, reads into it, says how much came, and
 * takes whole frames until RON_AGAIN.  The payload of a frame is good until
 * the next ron_conn_space() or ron_conn_feed().  The first wrong byte makes
 * the connection `broken` for good: there is no way to find the next frame.
 *
 * Output.  Frames are put at the end, taken from the front.  A peer that does
 * not read makes the buffer reach its bound: the put says RON_EFULL, nothing
 * of that frame stays, and what to do about it is the owner's decision.
 */

#ifndef RON_CONN_H
#define RON_CONN_H


#include "ron_frame.h"


typedef struct {
    ron_buf_t     in;
    ron_buf_t     out;
    size_t        in_pos;
    size_t        out_pos;
    size_t        out_max;
    uint64_t      frames_in;
    uint64_t      frames_out;
    ron_status_t  broken;               /* RON_OK, or what was wrong */
} ron_conn_t;


/* out_max bounds unsent bytes; at least one frame. */
void ron_conn_init(ron_conn_t *conn, size_t out_max);
void ron_conn_free(ron_conn_t *conn);

/* Forgets everything in both directions, keeps the memory. */
void ron_conn_reset(ron_conn_t *conn);

/* At least `want` bytes to read into, NULL without memory. */
uint8_t *ron_conn_space(ron_conn_t *conn, size_t want, size_t *len);
void ron_conn_came(ron_conn_t *conn, size_t len);

/* The same with a copy, for callers that have the bytes elsewhere. */
ron_status_t ron_conn_feed(ron_conn_t *conn, ron_str_t bytes);

/* The next frame; RON_AGAIN: more bytes are needed; else broken. */
ron_status_t ron_conn_next(ron_conn_t *conn, ron_frame_t *frame);

/*
 * Puts a frame in one go.  RON_ERANGE: longer than a frame may be.
 * RON_EFULL: the bound of unsent bytes.
 */
ron_status_t ron_conn_put(ron_conn_t *conn, ron_frame_type_t type,
    uint16_t flags, uint64_t call, ron_str_t payload);

/*
 * The same for an answer of any length: cut into frames with the MORE flag.
 * All of it or nothing.
 */
ron_status_t ron_conn_put_long(ron_conn_t *conn, ron_frame_type_t type,
    uint64_t call, ron_str_t payload);

/* What is to be written, and how much of it was. */
ron_str_t ron_conn_output(const ron_conn_t *conn);
void ron_conn_sent(ron_conn_t *conn, size_t len);


#endif /* RON_CONN_H */
