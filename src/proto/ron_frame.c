
/*
 * Frames.  The format is in ron_frame.h.
 *
 * Every check that the bytes at hand allow is made before more are waited
 * for: a peer that announces a gigabyte, or another version, is found out by
 * its first five bytes, and no room is made for what will not be taken.
 */

#include "ron_frame.h"


#define RON_FRAME_LENGTH_LEN  4
#define RON_FRAME_REST        (RON_FRAME_HEADER - RON_FRAME_LENGTH_LEN)


static bool ron_frame_known(uint8_t type);
static bool ron_frame_flags_valid(uint8_t type, uint16_t flags);


size_t
ron_frame_begin(ron_buf_t *out, ron_frame_type_t type, uint16_t flags,
    uint64_t call)
{
    size_t  begin;

    begin = out->len;

    ron_buf_put_u32(out, 0);
    ron_buf_put_u8(out, RON_FRAME_VERSION);
    ron_buf_put_u8(out, (uint8_t) type);
    ron_buf_put_u16(out, flags);
    ron_buf_put_u64(out, call);

    return begin;
}


ron_status_t
ron_frame_end(ron_buf_t *out, size_t begin)
{
    size_t        len;
    ron_status_t  status;

    status = ron_buf_status(out);

    if (status != RON_OK) {
        ron_buf_reset(out);
        out->len = begin;
        return status;
    }

    len = out->len - begin - RON_FRAME_LENGTH_LEN;

    if (len > RON_FRAME_MAX) {
        out->len = begin;
        return RON_EFULL;
    }

    out->data[begin] = (uint8_t) (len >> 24);
    out->data[begin + 1] = (uint8_t) (len >> 16);
    out->data[begin + 2] = (uint8_t) (len >> 8);
    out->data[begin + 3] = (uint8_t) len;

    return RON_OK;
}


ron_status_t
ron_frame_next(ron_str_t bytes, ron_frame_t *frame, size_t *used)
{
    uint8_t   type;
    uint32_t  len;
    ron_rd_t  rd;

    memset(frame, 0, sizeof(ron_frame_t));
    *used = 0;

    if (bytes.len < RON_FRAME_LENGTH_LEN) {
        return RON_AGAIN;
    }

    ron_rd_init(&rd, bytes);
    len = ron_rd_u32(&rd);

    if (len < RON_FRAME_REST || len > RON_FRAME_MAX) {
        return RON_EINVAL;
    }

    if (ron_rd_left(&rd) > 0 && rd.pos[0] != RON_FRAME_VERSION) {
        return RON_EVERSION;
    }

    if (ron_rd_left(&rd) > 1 && !ron_frame_known(rd.pos[1])) {
        return RON_EINVAL;
    }

    if (ron_rd_left(&rd) < len) {
        return RON_AGAIN;
    }

    (void) ron_rd_u8(&rd);
    type = ron_rd_u8(&rd);
    frame->flags = ron_rd_u16(&rd);
    frame->call = ron_rd_u64(&rd);
    frame->payload = ron_rd_bytes(&rd, len - RON_FRAME_REST);

    if (!ron_frame_flags_valid(type, frame->flags)) {
        memset(frame, 0, sizeof(ron_frame_t));
        return RON_EINVAL;
    }

    frame->type = (ron_frame_type_t) type;
    *used = RON_FRAME_LENGTH_LEN + len;

    return RON_OK;
}


static bool
ron_frame_known(uint8_t type)
{
    switch (type) {

#define RON_FRAME_CASE(name, value)  case value:
    RON_FRAMES(RON_FRAME_CASE)
#undef RON_FRAME_CASE
        return true;

    default:
        return false;
    }
}


/* Only an answer can be long. */

static bool
ron_frame_flags_valid(uint8_t type, uint16_t flags)
{
    switch (type) {

    case RON_FRAME_OUTCOME:
    case RON_FRAME_BALANCE_IS:
    case RON_FRAME_LOOKUP_IS:
    case RON_FRAME_ADMIN_IS:
        return (flags & ~RON_FRAME_F_MORE) == 0;

    default:
        return flags == 0;
    }
}


const char *
ron_state_name(ron_life_t state)
{
    static const char *const  names[] = {
#define RON_STATE_TEXT(name, text)  text,
        RON_STATES(RON_STATE_TEXT)
#undef RON_STATE_TEXT
    };

    return (unsigned) state < RON_STATE_N ? names[state] : "unknown";
}


const char *
ron_frame_name(ron_frame_type_t type)
{
    switch (type) {

#define RON_FRAME_TEXT(name, value)  case RON_FRAME_##name: return #name;
    RON_FRAMES(RON_FRAME_TEXT)
#undef RON_FRAME_TEXT

    default:
        return "unknown";
    }
}
