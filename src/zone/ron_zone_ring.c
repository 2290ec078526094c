
/*
 * The ring of ledger events.
 *
 *     word 0   how many events there ever were (the next index)
 *     line 1.. 1 024 records; that of index i has sequence 2 i + 2
 *
 * The record is written first and the counter raised after, so a writer that
 * is killed in between has published nothing, and its successor writes the
 * same index again.
 */

#include "ron_zone_layout.h"


static ron_word_t *ron_zone_event_at(const ron_zone_t *zone, uint64_t index);


static ron_word_t *
ron_zone_event_at(const ron_zone_t *zone, uint64_t index)
{
    return ron_zone_words(zone, zone->ring) + RON_ZONE_LINE
           + index % RON_ZONE_EVENTS * RON_EVENT_WORDS;
}


ron_status_t
ron_zone_event_put(const ron_zone_t *zone, const ron_event_t *event)
{
    size_t       n;
    uint64_t     index, data[RON_EVENT_DATA];
    ron_word_t  *head, *e;

    if (event->data_len > RON_ZONE_EVENT_MAX) {
        return RON_ERANGE;
    }

    head = ron_zone_words(zone, zone->ring);
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

    e = ron_zone_event_at(zone, index);
    ron_word_set(&e[0], 2 * index + 1);
    ron_zone_rec_end(&e[0], &e[1], &e[RON_ZONE_REC_DATA], 2 * index + 1, data,
                     n);
    ron_word_set(head, index + 1);

    return RON_OK;
}


uint64_t
ron_zone_event_cursor(const ron_zone_t *zone)
{
    return ron_word_get(ron_zone_words(zone, zone->ring));
}


ron_status_t
ron_zone_event_get(const ron_zone_t *zone, uint64_t *cursor,
    ron_event_t *event, uint64_t *lost)
{
    uint64_t       head, data[RON_EVENT_DATA];
    ron_word_t    *e;
    ron_status_t   status;

    memset(event, 0, sizeof(ron_event_t));
    *lost = 0;

    for ( ;; ) {
        head = ron_word_get(ron_zone_words(zone, zone->ring));

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

        e = ron_zone_event_at(zone, *cursor);
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
