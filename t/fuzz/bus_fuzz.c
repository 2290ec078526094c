
/*
 * What a remote ledger sends: a stream cut anywhere gives the events of the
 * stream in one piece and ends at the same wrong byte; what is accepted is in
 * bounds, and written and read again it is the same; what a ledger writes is
 * read.  And answers to a balance.
 */

#include "ron_fuzz.h"
#include "ron_amount.h"
#include "ron_api_bus.h"
#include "ron_entry.h"


#define EVENTS_MAX  64


typedef struct {
    ron_api_bus_event_t  event[EVENTS_MAX];
    uint32_t             n;
    size_t               used;
    ron_status_t         end;
} events_t;


static const char  head[] = "HTTP/1.1 200 OK\r\n"
                            "Content-Type: text/event-stream\r\n\r\n";


/* Reads all of s, at most as many bytes at a time as one of `step` says. */

static void
take(ron_str_t s, const uint8_t *step, events_t *all)
{
    size_t                        n;
    uint32_t                      turn;
    ron_str_t                     in;
    static ron_api_bus_reader_t   reader;

    ron_api_bus_reader_init(&reader);

    memset(all, 0, sizeof(events_t));
    all->end = RON_AGAIN;
    turn = 0;

    while (s.len > 0 && all->n < EVENTS_MAX
           && (all->end == RON_OK || all->end == RON_AGAIN))
    {
        n = step != NULL ? step[turn++ % 8] + 1u : s.len;
        in = (ron_str_t) { ron_min(n, s.len), s.data };
        n = in.len;

        do {
            all->end = ron_api_bus_get(&reader, &in, &all->event[all->n]);
            all->n += all->end == RON_OK;

            RON_ASSERT(in.len <= n);
            RON_ASSERT(reader.len <= (reader.open ? RON_API_BUS_EVENT_MAX
                                                  : RON_API_BUS_HEAD_MAX));

        } while (all->end == RON_OK && all->n < EVENTS_MAX);

        RON_ASSERT(all->end != RON_AGAIN || in.len == 0);

        all->used += n - in.len;
        s.data += n;
        s.len -= n;
    }

    ron_api_bus_reader_free(&reader);
}


static void
same_event(const ron_api_bus_event_t *a, const ron_api_bus_event_t *b)
{
    RON_ASSERT(a->type == b->type);

    if (a->type != RON_API_BUS_OPEN) {
        RON_ASSERT(a->seq == b->seq && a->count == b->count
                   && a->lost == b->lost && a->us == b->us
                   && a->joined == b->joined
                   && memcmp(a->check, b->check, sizeof(a->check)) == 0
                   && ron_hash_eq(&a->root, &b->root)
                   && memcmp(&a->touched, &b->touched, sizeof(a->touched))
                      == 0);
    }
}


/* Written, and read by whoever has seen a header. */

static void
again(const ron_api_bus_event_t *event)
{
    ron_buf_t        out;
    static events_t  all;

    ron_buf_init(&out, 0);
    ron_buf_put_cstr(&out, head);
    ron_api_bus_put(&out, event);

    RON_ASSERT(out.len - sizeof(head) + 1 <= RON_API_BUS_EVENT_MAX);

    take(ron_buf_str(&out), NULL, &all);

    RON_ASSERT(all.n == 2 && all.end == RON_AGAIN && all.used == out.len);
    RON_ASSERT(all.event[0].type == RON_API_BUS_OPEN);
    same_event(&all.event[1], event);

    ron_buf_free(&out);
}


static void
check_event(const ron_api_bus_event_t *event)
{
    switch (event->type) {

    case RON_API_BUS_OPEN:
        return;

    case RON_API_BUS_COMMIT:
        RON_ASSERT(event->count > 0 && event->count <= event->seq);
        break;

    case RON_API_BUS_HELLO:
    case RON_API_BUS_BEAT:
    case RON_API_BUS_LAGGED:
        break;

    default:
        RON_ASSERT(!"a type that there is");
    }

    RON_ASSERT(event->seq <= RON_SEQ_MAX && event->us <= RON_SEQ_MAX
               && event->lost <= RON_SEQ_MAX);
    again(event);
}


static void
fuzz_stream(fuzz_t *f, bool open)
{
    uint8_t          step[8];
    uint32_t         i;
    ron_buf_t        s;
    ron_str_t        rest;
    static events_t  whole, cut;

    for (i = 0; i < sizeof(step); i++) {
        step[i] = fuzz_u8(f);
    }

    rest = fuzz_rest(f);

    ron_buf_init(&s, 0);

    if (open) {
        ron_buf_put_cstr(&s, head);
    }

    ron_buf_put(&s, rest.data, rest.len);

    take(ron_buf_str(&s), NULL, &whole);
    take(ron_buf_str(&s), step, &cut);

    RON_ASSERT(whole.n == cut.n && whole.end == cut.end
               && whole.used == cut.used);
    RON_ASSERT(!open || whole.n > 0);

    for (i = 0; i < whole.n; i++) {
        RON_ASSERT((i == 0) == (whole.event[i].type == RON_API_BUS_OPEN));
        same_event(&whole.event[i], &cut.event[i]);
        check_event(&whole.event[i]);
    }

    ron_buf_free(&s);
}


static void
fuzz_fill(fuzz_t *f, void *to, size_t len)
{
    ron_str_t  s;

    s = fuzz_bytes(f, len);
    memcpy(to, s.data, s.len);
}


/* What a ledger may say, as its helper makes it. */

static void
fuzz_event(fuzz_t *f)
{
    uint32_t             i, n;
    ron_buf_t            out;
    ron_api_bus_event_t  e;
    static events_t      said, all;

    ron_buf_init(&out, 0);
    ron_buf_put_cstr(&out, head);

    for (n = 0; fuzz_left(f) > 0 && n < EVENTS_MAX - 1; n++) {
        memset(&e, 0, sizeof(e));

        e.type = RON_API_BUS_HELLO + fuzz_below(f, 4);
        e.seq = fuzz_int(f, 8) & RON_SEQ_MAX;

        if (e.type == RON_API_BUS_HELLO || e.type == RON_API_BUS_BEAT) {
            e.us = fuzz_int(f, 8) & RON_SEQ_MAX;
        }

        if (e.type != RON_API_BUS_BEAT) {
            fuzz_fill(f, e.root.b, RON_HASH_LEN);
        }

        switch (e.type) {

        case RON_API_BUS_HELLO:
            fuzz_fill(f, e.check, sizeof(e.check));
            e.joined = fuzz_u8(f) & 1;
            break;

        case RON_API_BUS_COMMIT:
            e.seq += e.seq == 0;
            e.count = 1 + fuzz_int(f, 8) % e.seq;
            fuzz_fill(f, e.touched.b, RON_BUS_FILTER_LEN);
            break;

        case RON_API_BUS_LAGGED:
            e.lost = fuzz_int(f, 8) & RON_SEQ_MAX;
            break;

        default:
            break;
        }

        ron_api_bus_put(&out, &e);
        said.event[n] = e;
    }

    take(ron_buf_str(&out), NULL, &all);

    RON_ASSERT(all.n == n + 1 && all.used == out.len);

    for (i = 0; i < n; i++) {
        same_event(&all.event[i + 1], &said.event[i]);
    }

    ron_buf_free(&out);
}


static void
fuzz_balance(fuzz_t *f)
{
    char                text[2][RON_AMOUNT_MAX];
    uint64_t            stale_ms, stale_again;
    ron_buf_t           out;
    ron_status_t        status;
    ron_json_doc_t      doc;
    ron_zone_balance_t  balance, same;

    ron_json_doc_init(&doc, 0);

    status = ron_api_bus_balance(&doc, fuzz_rest(f), &balance, &stale_ms);

    if (status == RON_OK) {
        RON_ASSERT(balance.nonce <= RON_SEQ_MAX && stale_ms <= RON_SEQ_MAX);

        (void) ron_amount_print(balance.available, text[0]);
        (void) ron_amount_print(balance.held, text[1]);

        ron_buf_init(&out, 0);
        ron_buf_printf(&out, "{\"stale_ms\":%llu,\"nonce\":%llu,"
                       "\"held_minor\":\"%s\",\"amount_minor\":\"%s\"}",
                       (unsigned long long) stale_ms,
                       (unsigned long long) balance.nonce, text[1], text[0]);

        RON_ASSERT(ron_api_bus_balance(&doc, ron_buf_str(&out), &same,
                                       &stale_again)
                   == RON_OK);
        RON_ASSERT(same.available == balance.available
                   && same.held == balance.held
                   && same.nonce == balance.nonce && stale_again == stale_ms);

        ron_buf_free(&out);
    }

    ron_json_doc_free(&doc);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t  f;

    f = (fuzz_t) { data, data + len };

    switch (fuzz_below(&f, 4)) {

    case 0:
        fuzz_stream(&f, false);
        break;

    case 1:
        fuzz_stream(&f, true);
        break;

    case 2:
        fuzz_event(&f);
        break;

    default:
        fuzz_balance(&f);
        break;
    }

    return 0;
}
