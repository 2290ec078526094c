
/*
 * The rings of events, one behind the other.
 *
 *     word 0   how many events there ever were (the next index)
 *     word 1   when a subscriber said last that it listens
 *     line 1.. 1 024 records; that of index i has sequence 2 i + 2
 *
 * The record is written first and the counter raised after, so a writer that
 * is killed in between has published nothing, and its successor writes the
 * same index again.
 */

#include "ron_zone_layout.h"


#define RON_RING_LISTEN     1
#define RON_RING_LISTEN_MS  60000


static ron_word_t *ron_zone_ring(const ron_zone_t *zone, ron_ring_t ring);
static ron_word_t *ron_zone_event_at(ron_word_t *ring, uint64_t index);


/* What is under the secret of the zone's keys tells nothing about it. */

uint64_t
ron_zone_life(const ron_zone_t *zone)
{
    ron_zone_key_t  key;

    ron_zone_key(zone, ron_str("life"), ron_null_str, &key);

    return key.w[0] >> 16;
}


static ron_word_t *
ron_zone_ring(const ron_zone_t *zone, ron_ring_t ring)
{
    RON_ASSERT((unsigned) ring < RON_RING_N);

    return ron_zone_words(zone, zone->rings) + (size_t) ring * RON_RING_WORDS;
}


static ron_word_t *
ron_zone_event_at(ron_word_t *ring, uint64_t index)
{
    return ring + RON_ZONE_LINE + index % RON_ZONE_EVENTS * RON_EVENT_WORDS;
}


ron_status_t
ron_zone_event_put(const ron_zone_t *zone, ron_ring_t ring,
    const ron_event_t *event)
{
    size_t       n;
    uint64_t     index, data[RON_EVENT_DATA];
    ron_word_t  *head, *e;

    if (event->data_len > RON_ZONE_EVENT_MAX) {
        return RON_ERANGE;
    }

    head = ron_zone_ring(zone, ring);
    index = ron_word_get(head);

    memset(data, 0, sizeof(data));
    data[0] = index;
    data[1] = event->type;
    data[2] = event->seq;
    data[3] = event->count;
    data[4] = event->time_ms;
    data[5] = event->data_len;
    memcpy(&data[6], event->data, event->data_len);
    n = RON_EVENT_DATA;

    e = ron_zone_event_at(head, index);
    ron_word_set(&e[0], 2 * index + 1);
    ron_zone_rec_end(&e[0], &e[1], &e[RON_ZONE_REC_DATA], 2 * index + 1, data,
                     n);
    ron_word_set(head, index + 1);

    return RON_OK;
}


uint64_t
ron_zone_event_cursor(const ron_zone_t *zone, ron_ring_t ring)
{
    return ron_word_get(ron_zone_ring(zone, ring));
}


ron_status_t
ron_zone_event_get(const ron_zone_t *zone, ron_ring_t ring, uint64_t *cursor,
    ron_event_t *event, uint64_t *lost)
{
    uint64_t       head, data[RON_EVENT_DATA];
    ron_word_t    *e, *words;
    ron_status_t   status;

    memset(event, 0, sizeof(ron_event_t));
    *lost = 0;
    words = ron_zone_ring(zone, ring);

    for ( ;; ) {
        head = ron_word_get(words);

        if (*cursor > head) {
            /* A cursor of another zone's life: begin anew. */
            *cursor = head;
        }

        if (*cursor == head) {
            return RON_AGAIN;
        }

        if (head - *cursor > RON_ZONE_EVENTS) {
            *lost += head - RON_ZONE_EVENTS - *cursor;
            *cursor = head - RON_ZONE_EVENTS;
        }

        e = ron_zone_event_at(words, *cursor);
        status = ron_zone_rec_read(&e[0], &e[1], &e[RON_ZONE_REC_DATA], data,
                                   RON_EVENT_DATA);

        if (status == RON_OK && data[0] == *cursor
            && data[5] <= RON_ZONE_EVENT_MAX)
        {
            break;
        }

        /* Overwritten while it was read, so it is one of the lost. */
        (*lost)++;
        (*cursor)++;
    }

    event->index = data[0];
    event->type = data[1];
    event->seq = data[2];
    event->count = data[3];
    event->time_ms = data[4];
    event->data_len = data[5];
    memcpy(event->data, &data[6], data[5]);
    (*cursor)++;

    return RON_OK;
}


void
ron_zone_ring_listen(const ron_zone_t *zone, ron_ring_t ring, uint64_t now_ms)
{
    ron_word_set(&ron_zone_ring(zone, ring)[RON_RING_LISTEN], now_ms);
}


bool
ron_zone_ring_heard(const ron_zone_t *zone, ron_ring_t ring, uint64_t now_ms)
{
    uint64_t  last;

    last = ron_word_get(&ron_zone_ring(zone, ring)[RON_RING_LISTEN]);

    return last != 0 && now_ms < last + RON_RING_LISTEN_MS;
}


/* ---- the invalidator ---------------------------------------------------- */

void
ron_zone_bus_init(const ron_zone_t *zone, ron_zone_bus_t *bus)
{
    bus->cursor = ron_zone_event_cursor(zone, RON_RING_LEDGER);
    bus->seq = 0;
}


uint64_t
ron_zone_bus_follow(const ron_zone_t *zone, ron_zone_bus_t *bus)
{
    uint64_t      lost, missed;
    ron_event_t   event;
    ron_status_t  status;

    missed = 0;

    for ( ;; ) {
        status = ron_zone_event_get(zone, RON_RING_LEDGER, &bus->cursor,
                                    &event, &lost);
        missed += lost;

        if (status != RON_OK) {
            break;
        }

        if (event.type != RON_EVENT_COMMIT) {
            continue;
        }

        if (lost == 0 && bus->seq != 0
            && event.seq - event.count != bus->seq)
        {
            missed++;
        }

        bus->seq = event.seq;
    }

    if (missed > 0) {
        ron_zone_balances_wipe(zone);
    }

    return missed;
}
