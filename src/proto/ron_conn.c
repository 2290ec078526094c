
/*
 * A connection without a socket.
 *
 * Bounds.  Input holds at most two frames: one that is being taken and what
 * was read behind it.  Output holds out_max unsent bytes; bytes that were
 * sent are reclaimed when they are half of the buffer, so a byte is moved at
 * most once on average.
 */

#include "ron_conn.h"


#define RON_CONN_IN_MAX   (2 * (RON_FRAME_MAX + 4))
#define RON_CONN_OUT_MIN  (RON_FRAME_MAX + 4)


static void ron_conn_compact(ron_buf_t *b, size_t *pos);
static size_t ron_conn_unsent(const ron_conn_t *conn);


void
ron_conn_init(ron_conn_t *conn, size_t out_max)
{
    memset(conn, 0, sizeof(ron_conn_t));
    ron_buf_init(&conn->in, RON_CONN_IN_MAX);
    ron_buf_init(&conn->out, 0);
    conn->out_max = ron_max(out_max, (size_t) RON_CONN_OUT_MIN);
}


void
ron_conn_free(ron_conn_t *conn)
{
    ron_buf_free(&conn->in);
    ron_buf_free(&conn->out);
    ron_conn_reset(conn);
}


void
ron_conn_reset(ron_conn_t *conn)
{
    ron_buf_reset(&conn->in);
    ron_buf_reset(&conn->out);
    conn->in_pos = 0;
    conn->out_pos = 0;
    conn->broken = RON_OK;
}


static void
ron_conn_compact(ron_buf_t *b, size_t *pos)
{
    if (*pos == 0) {
        return;
    }

    if (*pos < b->len) {
        memmove(b->data, b->data + *pos, b->len - *pos);
    }

    b->len -= *pos;
    *pos = 0;
}


uint8_t *
ron_conn_space(ron_conn_t *conn, size_t want, size_t *len)
{
    uint8_t  *p;

    *len = 0;
    ron_conn_compact(&conn->in, &conn->in_pos);

    p = ron_buf_reserve(&conn->in, want);

    if (p == NULL) {
        conn->broken = ron_buf_status(&conn->in);
        return NULL;
    }

    *len = conn->in.cap - conn->in.len;

    return p;
}


void
ron_conn_came(ron_conn_t *conn, size_t len)
{
    RON_ASSERT(len <= conn->in.cap - conn->in.len);

    conn->in.len += len;
}


ron_status_t
ron_conn_feed(ron_conn_t *conn, ron_str_t bytes)
{
    size_t    room;
    uint8_t  *p;

    if (bytes.len == 0) {
        return RON_OK;
    }

    p = ron_conn_space(conn, bytes.len, &room);
    if (p == NULL) {
        return conn->broken;
    }

    memcpy(p, bytes.data, bytes.len);
    ron_conn_came(conn, bytes.len);

    return RON_OK;
}


ron_status_t
ron_conn_next(ron_conn_t *conn, ron_frame_t *frame)
{
    size_t        used;
    ron_str_t     bytes;
    ron_status_t  status;

    memset(frame, 0, sizeof(ron_frame_t));

    if (conn->broken != RON_OK) {
        return conn->broken;
    }

    if (conn->in_pos == conn->in.len) {
        return RON_AGAIN;
    }

    bytes.data = conn->in.data + conn->in_pos;
    bytes.len = conn->in.len - conn->in_pos;

    status = ron_frame_next(bytes, frame, &used);

    if (status == RON_OK) {
        conn->in_pos += used;
        conn->frames_in++;

    } else if (status != RON_AGAIN) {
        conn->broken = status;
    }

    return status;
}


static size_t
ron_conn_unsent(const ron_conn_t *conn)
{
    return conn->out.len - conn->out_pos;
}


ron_status_t
ron_conn_put(ron_conn_t *conn, ron_frame_type_t type, uint16_t flags,
    uint64_t call, ron_str_t payload)
{
    size_t        begin;
    ron_status_t  status;

    if (payload.len > RON_FRAME_PAYLOAD_MAX) {
        return RON_ERANGE;
    }

    if (RON_FRAME_HEADER + payload.len > conn->out_max - ron_conn_unsent(conn))
    {
        return RON_EFULL;
    }

    if (conn->out_pos > conn->out.len / 2) {
        ron_conn_compact(&conn->out, &conn->out_pos);
    }

    begin = ron_frame_begin(&conn->out, type, flags, call);
    ron_buf_put_str(&conn->out, payload);
    status = ron_frame_end(&conn->out, begin);

    if (status == RON_OK) {
        conn->frames_out++;
    }

    return status;
}


ron_status_t
ron_conn_put_long(ron_conn_t *conn, ron_frame_type_t type, uint64_t call,
    ron_str_t payload)
{
    size_t        n, len, before;
    uint16_t      flags;
    ron_str_t     part;
    ron_status_t  status;

    n = payload.len / RON_FRAME_PAYLOAD_MAX + 1;
    len = payload.len + n * RON_FRAME_HEADER;

    if (len > conn->out_max - ron_conn_unsent(conn)) {
        return RON_EFULL;
    }

    /* Compacted first, so that nothing moves between here and taking back. */
    ron_conn_compact(&conn->out, &conn->out_pos);
    before = conn->out.len;

    do {
        part.data = payload.data;
        part.len = ron_min(payload.len, (size_t) RON_FRAME_PAYLOAD_MAX);

        payload.len -= part.len;
        payload.data = payload.len ? payload.data + part.len : NULL;

        flags = payload.len ? RON_FRAME_F_MORE : 0;
        status = ron_conn_put(conn, type, flags, call, part);

        if (status != RON_OK) {
            conn->out.len = before;
            return status;
        }

    } while (payload.len > 0);

    return RON_OK;
}


ron_str_t
ron_conn_output(const ron_conn_t *conn)
{
    ron_str_t  s;

    s.len = ron_conn_unsent(conn);
    s.data = s.len ? conn->out.data + conn->out_pos : NULL;

    return s;
}


void
ron_conn_sent(ron_conn_t *conn, size_t len)
{
    RON_ASSERT(len <= ron_conn_unsent(conn));

    conn->out_pos += len;

    if (conn->out_pos == conn->out.len) {
        conn->out.len = 0;
        conn->out_pos = 0;
    }
}
