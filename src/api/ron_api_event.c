
/*
 * What goes through the ring is a struct and not text: the sequencer's thread
 * puts it there between a commit and its answers, and has no time for more.
 * Both sides are processes of one build, which the zone has checked.
 */

#include "ron_api_event.h"
#include "ron_api.h"
#include "ron_codec.h"
#include "ron_digest.h"
#include "ron_json.h"
#include "ron_receipt.h"

#include <stdio.h>


#define RON_EV_FROM    0x01
#define RON_EV_TO      0x02
#define RON_EV_NONCE   0x04
#define RON_EV_AMOUNT  0x08

#define RON_EV_REASON_LEN  40

#define RON_EV_LIFE_LEN    6
#define RON_EV_LIFE        UINT64_C(0xffffffffffff)


typedef struct {
    uint8_t     kind;
    uint8_t     reason;
    uint8_t     has;
    uint8_t     asset_len;
    uint16_t    ledger_id;
    uint8_t     corr_len;
    uint8_t     reserved;
    uint64_t    nonce;
    uint64_t    amount[2];
    uint8_t     from[RON_API_HASH_LEN];
    uint8_t     to[RON_API_HASH_LEN];
    uint8_t     asset[RON_ASSET_MAX];
    uint8_t     corr[RON_CORR_MAX];
} ron_api_event_t;

_Static_assert(sizeof(ron_api_event_t) <= RON_ZONE_EVENT_MAX,
               "an audit event fits into a place of the ring");


static void ron_api_event_fill(const uint8_t key[32], const ron_entry_t *e,
    ron_str_t corr, ron_reason_t reason, ron_event_t *event);
static bool ron_api_event_read(const ron_event_t *event,
    ron_api_event_t *ev);
static void ron_api_event_json(const ron_event_t *event,
    const ron_api_event_t *ev, const char *id, ron_buf_t *out);
static void ron_api_event_hash(ron_buf_t *out, ron_str_t name,
    const uint8_t hash[RON_API_HASH_LEN]);
static void ron_api_event_reason(ron_buf_t *out, ron_reason_t reason);


void
ron_api_account_hash(const uint8_t key[32], ron_str_t account,
    uint8_t hash[RON_API_HASH_LEN])
{
    ron_hash_t    full;
    ron_blake3_t  h;

    static const char  label[] = "ron account pseudonym 1";

    ron_blake3_init(&h);
    ron_blake3_update(&h, label, sizeof(label));
    ron_blake3_update(&h, key, 32);
    ron_blake3_update(&h, account.data, account.len);
    ron_blake3_final(&h, &full);
    memcpy(hash, full.b, RON_API_HASH_LEN);
}


void
ron_api_event_unit(const uint8_t key[32], const ron_unit_t *unit,
    const ron_outcome_t *outcome, uint64_t time_ms,
    void (*put)(void *ctx, const ron_event_t *event), void *ctx)
{
    uint32_t             i, n;
    ron_entry_t          e;
    ron_event_t          event;
    ron_reason_t         reason;
    const ron_result_t  *r;

    if (unit->type == RON_UNIT_INGEST || outcome->replayed) {
        return;
    }

    n = ron_max(outcome->result_n, outcome->reason != RON_REASON_OK);

    for (i = 0; i < n && i < unit->op_n; i++) {
        r = i < outcome->result_n ? &outcome->results[i] : NULL;
        reason = r != NULL ? r->reason : outcome->reason;

        if (r != NULL && r->repeat) {
            continue;
        }

        memset(&event, 0, sizeof(ron_event_t));
        event.type = RON_EVENT_WALLET;
        event.time_ms = time_ms;

        if (reason != RON_REASON_OK) {
            ron_api_event_fill(key, &unit->ops[i], unit->corr, reason,
                               &event);

        } else if (r != NULL && ron_entry_decode(r->bytes, &e) == RON_OK) {
            event.seq = e.seq;
            event.time_ms = e.time_ms;
            ron_api_event_fill(key, &e, unit->corr, reason, &event);

        } else {
            continue;
        }

        put(ctx, &event);
    }
}


static void
ron_api_event_fill(const uint8_t key[32], const ron_entry_t *e,
    ron_str_t corr, ron_reason_t reason, ron_event_t *event)
{
    ron_api_event_t  ev;

    memset(&ev, 0, sizeof(ev));
    ev.kind = (uint8_t) e->kind;
    ev.reason = (uint8_t) reason;
    ev.ledger_id = e->ledger_id;
    ev.corr_len = (uint8_t) ron_min(corr.len, sizeof(ev.corr));
    memcpy(ev.corr, corr.data, ev.corr_len);

    if (e->fields & RON_F_NONCE) {
        ev.has |= RON_EV_NONCE;
        ev.nonce = e->nonce;
    }

    if (e->fields & RON_F_AMOUNT) {
        ev.has |= RON_EV_AMOUNT;
        ev.amount[0] = (uint64_t) e->amount;
        ev.amount[1] = (uint64_t) (e->amount >> 64);
    }

    if (e->fields & RON_F_ASSET) {
        ev.asset_len = (uint8_t) ron_min(e->asset.len, sizeof(ev.asset));
        memcpy(ev.asset, e->asset.data, ev.asset_len);
    }

    /* as receipts have it: who is credited by an issue is "to" */

    if (e->kind == RON_KIND_MINT) {
        ev.has |= RON_EV_TO;
        ron_api_account_hash(key, e->account, ev.to);

    } else if (e->fields & RON_F_ACCOUNT) {
        ev.has |= RON_EV_FROM;
        ron_api_account_hash(key, e->account, ev.from);
    }

    if (e->fields & RON_F_TO) {
        ev.has |= RON_EV_TO;
        ron_api_account_hash(key, e->to, ev.to);
    }

    event->data_len = sizeof(ev);
    memcpy(event->data, &ev, sizeof(ev));
}


static bool
ron_api_event_read(const ron_event_t *event, ron_api_event_t *ev)
{
    if (event->type != RON_EVENT_WALLET || event->data_len != sizeof(*ev)) {
        return false;
    }

    memcpy(ev, event->data, sizeof(*ev));

    return ev->kind > RON_KIND_NONE && ev->kind < RON_KIND_N
           && ev->reason < RON_REASON_N && ev->asset_len <= sizeof(ev->asset)
           && ev->corr_len <= sizeof(ev->corr);
}


bool
ron_api_event_asset(const ron_event_t *event, ron_str_t *asset)
{
    ron_api_event_t  ev;

    if (!ron_api_event_read(event, &ev)) {
        return false;
    }

    asset->len = ev.asset_len;
    asset->data = event->data + offsetof(ron_api_event_t, asset);

    return true;
}


ron_status_t
ron_api_event_put(const ron_event_t *event, uint64_t life, bool lines,
    ron_buf_t *out)
{
    char             id[RON_API_EVENT_ID_LEN + 1];
    ron_api_event_t  ev;

    if (!ron_api_event_read(event, &ev)) {
        return RON_EINVAL;
    }

    (void) ron_api_event_id(life, event->index + 1, id);

    if (!lines) {
        ron_buf_printf(out, "id: %s\ndata: ", id);
    }

    ron_api_event_json(event, &ev, lines ? id : NULL, out);
    ron_buf_put_cstr(out, lines ? "\n" : "\n\n");

    return ron_buf_status(out);
}


static void
ron_api_event_json(const ron_event_t *event, const ron_api_event_t *ev,
    const char *id, ron_buf_t *out)
{
    bool         ok;
    char         txid[RON_TXID_LEN + 1], ts[RON_TIME_LEN + 1];
    const char  *op;

    ok = ev->reason == RON_REASON_OK;
    op = ron_kind_op((ron_kind_t) ev->kind);

    if (ok) {
        ron_buf_printf(out, "{\"event\":\"wallet.%s.accepted\"", op);

    } else {
        ron_buf_put_cstr(out, "{\"event\":\"wallet.request.rejected\"");
    }

    if (id != NULL) {
        ron_json_put_member(out, ron_str("id"), ron_cstr(id));
    }

    ron_json_put_member(out, ron_str("op"), ron_cstr(op));

    if (ok) {
        ron_txid_print(event->time_ms, ev->ledger_id, event->seq, txid);
        ron_json_put_member(out, ron_str("txid"), ron_cstr(txid));
        ron_json_put_member_u64(out, ron_str("seq"), event->seq);

    } else {
        ron_api_event_reason(out, (ron_reason_t) ev->reason);
    }

    if (ev->has & RON_EV_FROM) {
        ron_api_event_hash(out, ron_str("from_hash"), ev->from);
    }

    if (ev->has & RON_EV_TO) {
        ron_api_event_hash(out, ron_str("to_hash"), ev->to);
    }

    if (ev->asset_len > 0) {
        ron_json_put_member(out, ron_str("asset"),
                            (ron_str_t) { ev->asset_len, ev->asset });
    }

    if (ev->has & RON_EV_AMOUNT) {
        ron_json_put_member_amount(out, ron_str("amount_minor"),
                                   (ron_u128_t) ev->amount[1] << 64
                                   | ev->amount[0]);
    }

    if (ev->has & RON_EV_NONCE) {
        ron_json_put_member_u64(out, ron_str("nonce"), ev->nonce);
    }

    if (ron_time_print(event->time_ms, ts) == RON_OK) {
        ron_json_put_member(out, ron_str("ts"), ron_cstr(ts));
    }

    if (ev->corr_len > 0) {
        ron_json_put_member(out, ron_str("corr_id"),
                            (ron_str_t) { ev->corr_len, ev->corr });
    }

    ron_buf_put_u8(out, '}');
}


size_t
ron_api_event_id(uint64_t life, uint64_t n,
    char id[RON_API_EVENT_ID_LEN + 1])
{
    int  len;

    len = snprintf(id, RON_API_EVENT_ID_LEN + 1, "%012llx-%llu",
                   (unsigned long long) (life & RON_EV_LIFE),
                   (unsigned long long) n);
    RON_ASSERT(len > 0 && len <= RON_API_EVENT_ID_LEN);

    return (size_t) len;
}


ron_status_t
ron_api_event_id_parse(ron_str_t id, uint64_t *life, uint64_t *n)
{
    uint8_t  b[RON_EV_LIFE_LEN];

    *life = UINT64_MAX;
    *n = 0;

    if (memchr(id.data, '-', id.len) != NULL) {

        if (id.len <= 2 * sizeof(b) || id.data[2 * sizeof(b)] != '-'
            || ron_hex_decode((ron_str_t) { 2 * sizeof(b), id.data }, b,
                              sizeof(b)) != RON_OK)
        {
            return RON_EINVAL;
        }

        *life = 0;

        for (size_t i = 0; i < sizeof(b); i++) {
            *life = *life << 8 | b[i];
        }

        id.data += 2 * sizeof(b) + 1;
        id.len -= 2 * sizeof(b) + 1;
    }

    return ron_api_u64(id, n) == RON_OK ? RON_OK : RON_EINVAL;
}


static void
ron_api_event_hash(ron_buf_t *out, ron_str_t name,
    const uint8_t hash[RON_API_HASH_LEN])
{
    char  hex[2 * RON_API_HASH_LEN];

    (void) ron_hex_encode((ron_str_t) { RON_API_HASH_LEN, hash }, hex);
    ron_json_put_member(out, name, (ron_str_t) { sizeof(hex),
                                                 (const uint8_t *) hex });
}


/* As metrics and logs have it: the code in lower case. */

static void
ron_api_event_reason(ron_buf_t *out, ron_reason_t reason)
{
    char         text[RON_EV_REASON_LEN];
    size_t       n;
    const char  *code;

    code = ron_reason_info(reason)->code;

    for (n = 0; n < sizeof(text) && code[n] != '\0'; n++) {
        text[n] = code[n] >= 'A' && code[n] <= 'Z' ? (char) (code[n] | 0x20)
                                                   : code[n];
    }

    ron_json_put_member(out, ron_str("reason"),
                        (ron_str_t) { n, (const uint8_t *) text });
}
