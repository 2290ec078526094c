
/*
 * Frames: a stream cut anywhere gives the frames of the stream in one piece,
 * and stops at the same wrong byte; what goes out comes in.
 */

#include "ron_fuzz.h"
#include "ron_conn.h"


#define FRAMES_MAX  256


typedef struct {
    ron_frame_t  frame[FRAMES_MAX];
    uint32_t     n;
    size_t       used;
    ron_status_t end;
} frames_t;


/* In one piece. */
static void
whole(ron_str_t s, frames_t *all)
{
    size_t  used;

    all->n = 0;
    all->used = 0;

    do {
        all->end = ron_frame_next(s, &all->frame[all->n], &used);

        if (all->end == RON_OK) {
            RON_ASSERT(used >= RON_FRAME_HEADER && used <= s.len);
            RON_ASSERT(used == RON_FRAME_HEADER
                               + all->frame[all->n].payload.len);
            s.data += used;
            s.len -= used;
            all->used += used;
            all->n++;
        }

    } while (all->end == RON_OK && all->n < FRAMES_MAX);
}


static void
same_frame(const ron_frame_t *a, const ron_frame_t *b)
{
    RON_ASSERT(a->type == b->type && a->flags == b->flags
               && a->call == b->call && ron_str_eq(a->payload, b->payload));
}


static void
fuzz_splits(fuzz_t *f, bool space)
{
    size_t         n, room;
    uint8_t        step[8], *p;
    frames_t       all;
    uint32_t       got, turn;
    ron_conn_t     conn;
    ron_frame_t    frame;
    ron_status_t   status;

    for (unsigned i = 0; i < sizeof(step); i++) {
        step[i] = fuzz_u8(f);
    }

    whole((ron_str_t) { fuzz_left(f), f->pos }, &all);

    if (all.end == RON_OK) {
        return;
    }

    ron_conn_init(&conn, RON_FRAME_MAX + RON_FRAME_HEADER);
    got = 0;
    turn = 0;
    status = RON_AGAIN;

    while (fuzz_left(f) > 0 && status == RON_AGAIN) {
        n = step[turn++ % 8] + 1u;
        n = ron_min(n, fuzz_left(f));

        if (space) {
            p = ron_conn_space(&conn, n, &room);
            RON_ASSERT(p != NULL && room >= n);
            memcpy(p, f->pos, n);
            ron_conn_came(&conn, n);

        } else {
            RON_ASSERT(ron_conn_feed(&conn, (ron_str_t) { n, f->pos })
                       == RON_OK);
        }

        f->pos += n;

        while ((status = ron_conn_next(&conn, &frame)) == RON_OK) {
            RON_ASSERT(got < all.n);
            same_frame(&frame, &all.frame[got++]);
        }
    }

    RON_ASSERT(got == all.n && status == all.end);

    if (status != RON_AGAIN) {
        RON_ASSERT(conn.broken == status);
        (void) ron_conn_feed(&conn, ron_str("more"));
        RON_ASSERT(ron_conn_next(&conn, &frame) == status);
    }

    ron_conn_free(&conn);
}


/* Puts frames, takes the bytes in pieces, and puts long answers together. */
static void
fuzz_put(fuzz_t *f)
{
    static uint8_t  big[3 << 20];

    bool           first, more;
    size_t         n, sent, piece;
    uint64_t       call;
    ron_buf_t      body;
    ron_str_t      s;
    ron_conn_t     a, b;
    ron_frame_t    frame;
    ron_status_t   status;

    ron_conn_init(&a, 4 << 20);
    ron_conn_init(&b, 4 << 20);
    ron_buf_init(&body, 0);

    for (unsigned i = 0; i < 4; i++) {
        n = fuzz_int(f, 3) % sizeof(big);
        n >>= fuzz_u8(f) % 24;
        memset(big, fuzz_u8(f), n);
        call = fuzz_int(f, 8);
        s = (ron_str_t) { n, big };
        sent = ron_conn_output(&a).len;

        status = ron_conn_put(&a, RON_FRAME_UNIT, 0, call, s);
        RON_ASSERT(n <= RON_FRAME_PAYLOAD_MAX ? status == RON_OK
                                              : status == RON_ERANGE);

        if (status != RON_OK) {
            RON_ASSERT(ron_conn_output(&a).len == sent);
        }

        RON_ASSERT(ron_conn_put_long(&a, RON_FRAME_OUTCOME, call, s)
                   == RON_OK);
        ron_buf_reset(&body);
        first = (status == RON_OK);
        more = true;

        while (ron_conn_output(&a).len > 0) {
            s = ron_conn_output(&a);
            piece = fuzz_left(f) ? 1 + fuzz_int(f, 3) % (1 << 20) : 65536;
            s.len = ron_min(s.len, piece);
            RON_ASSERT(ron_conn_feed(&b, s) == RON_OK);
            ron_conn_sent(&a, s.len);

            while (ron_conn_next(&b, &frame) == RON_OK) {
                RON_ASSERT(frame.call == call && more);

                if (first) {
                    RON_ASSERT(frame.type == RON_FRAME_UNIT
                               && ron_str_eq(frame.payload,
                                             (ron_str_t) { n, big }));
                    first = false;
                    continue;
                }

                RON_ASSERT(frame.type == RON_FRAME_OUTCOME);
                ron_buf_put_str(&body, frame.payload);
                more = (frame.flags & RON_FRAME_F_MORE) != 0;
            }
        }

        RON_ASSERT(!first && !more);
        RON_ASSERT(ron_str_eq(ron_buf_str(&body), (ron_str_t) { n, big }));
        RON_ASSERT(ron_conn_next(&b, &frame) == RON_AGAIN);
    }

    ron_buf_free(&body);
    ron_conn_free(&a);
    ron_conn_free(&b);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t   f = { data, data + len };
    uint8_t  what;

    what = fuzz_u8(&f);

    if (what % 8 == 7) {
        fuzz_put(&f);

    } else {
        fuzz_splits(&f, what & 1);
    }

    return 0;
}
