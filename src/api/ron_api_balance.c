
/*
 * The answer to GET /v1/balance, which is read more often than all others
 * together: its form is known, so it is written without looking back.
 */

#include "ron_amount.h"
#include "ron_api.h"
#include "ron_codec.h"


/* Everything but the names, which need no escape. */
#define RON_API_BALANCE_ROOM  (5 * RON_AMOUNT_MAX + RON_TIME_LEN + 160)

#define ron_api_put(p, text)                                                  \
    (memcpy(p, text, sizeof(text) - 1), (p) += sizeof(text) - 1)


ron_status_t
ron_api_balance_answer(ron_buf_t *out, ron_str_t account, ron_str_t asset,
    const ron_msg_balance_t *balance, uint64_t as_of_ms, uint64_t stale_ms)
{
    char      *p;
    uint8_t   *room;

    room = ron_buf_reserve(out, account.len + asset.len
                                + RON_API_BALANCE_ROOM);
    if (room == NULL) {
        return ron_buf_status(out);
    }

    p = (char *) room;

    ron_api_put(p, "{\"account\":\"");
    memcpy(p, account.data, account.len);
    p += account.len;

    ron_api_put(p, "\",\"asset\":\"");
    memcpy(p, asset.data, asset.len);
    p += asset.len;

    ron_api_put(p, "\",\"amount_minor\":\"");
    p += ron_amount_print(balance->available, p);

    ron_api_put(p, "\",\"held_minor\":\"");
    p += ron_amount_print(balance->held, p);

    ron_api_put(p, "\",\"nonce\":");
    p += ron_amount_print(balance->nonce, p);

    ron_api_put(p, ",\"as_of\":\"");

    if (ron_time_print(as_of_ms, p) == RON_OK) {
        p += RON_TIME_LEN;
    }

    ron_api_put(p, "\",\"stale_ms\":");
    p += ron_amount_print(stale_ms, p);
    *p++ = '}';

    out->len += (size_t) ((uint8_t *) p - room);

    return RON_OK;
}
