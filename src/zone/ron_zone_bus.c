
#include "ron_zone_bus.h"

#include "ron_digest.h"
#include "ron_port.h"
#include "ron_zone_layout.h"


#define RON_BUS_MAGIC    UINT64_C(0x3273756272656e6f)
#define RON_BUS_HEADER   512

/* words of the header, where ron_zone.c has no secret and no epoch */

#define RON_BUS_W_MAGIC  0
#define RON_BUS_W_LEN    1
#define RON_BUS_W_LEASE  40
#define RON_BUS_W_WROTE  48
#define RON_BUS_W_CHECK  49

#define RON_BUS_PID      22
#define RON_BUS_HASHES   4
#define RON_BUS_BITS     (RON_BUS_FILTER_LEN * 8)

/* a balance that was looked back for so far is written again */

#define RON_BUS_FAR      16
#define RON_BUS_OLD_MS   1000


typedef enum {
    RON_BUS_SAME = 0,
    RON_BUS_TOUCHED,
    RON_BUS_UNKNOWN
} ron_bus_is_t;


static ron_status_t ron_bus_layout(void *region, size_t len, ron_bus_t *bus);
static uint64_t ron_bus_hash(const ron_bus_key_t *key, ron_str_t account);
static ron_bus_is_t ron_bus_walk(const ron_bus_t *bus,
    const ron_bus_key_t *key, ron_str_t account, uint64_t since,
    uint64_t *head, uint64_t *steps);


/* ---- filters ------------------------------------------------------------ */

void
ron_bus_key(ron_str_t secret, ron_bus_key_t *key)
{
    ron_hash_t         hash;
    ron_blake3_t       h;

    static const char  label[] = "ron ledger bus 1";

    ron_blake3_init(&h);
    ron_blake3_update(&h, label, sizeof(label));
    ron_blake3_update_u64(&h, secret.len);
    ron_blake3_update(&h, secret.data, secret.len);
    ron_blake3_final(&h, &hash);

    memcpy(&key->sip.k0, hash.b, 8);
    memcpy(&key->sip.k1, hash.b + 8, 8);
    memcpy(key->check, hash.b + 16, RON_BUS_CHECK_LEN);
}


static uint64_t
ron_bus_hash(const ron_bus_key_t *key, ron_str_t account)
{
    return ron_siphash(&key->sip, account);
}


void
ron_bus_filter_add(ron_bus_filter_t *filter, const ron_bus_key_t *key,
    ron_str_t account)
{
    uint32_t  i;
    uint64_t  h, bit;

    h = ron_bus_hash(key, account);

    for (i = 0; i < RON_BUS_HASHES; i++) {
        bit = ((h & UINT32_MAX) + i * ((h >> 32) | 1)) % RON_BUS_BITS;
        filter->b[bit / 8] |= (uint8_t) (1 << bit % 8);
    }
}


bool
ron_bus_filter_has(const ron_bus_filter_t *filter, const ron_bus_key_t *key,
    ron_str_t account)
{
    uint32_t  i;
    uint64_t  h, bit;

    h = ron_bus_hash(key, account);

    for (i = 0; i < RON_BUS_HASHES; i++) {
        bit = ((h & UINT32_MAX) + i * ((h >> 32) | 1)) % RON_BUS_BITS;

        if (!(filter->b[bit / 8] & 1 << bit % 8)) {
            return false;
        }
    }

    return true;
}


void
ron_bus_event(ron_event_t *event, const ron_hash_t *root,
    const ron_bus_filter_t *filter)
{
    memcpy(event->data, root->b, RON_HASH_LEN);
    memcpy(event->data + RON_HASH_LEN, filter->b, RON_BUS_FILTER_LEN);
    event->data_len = RON_HASH_LEN + RON_BUS_FILTER_LEN;
}


ron_status_t
ron_bus_event_get(const ron_event_t *event, ron_hash_t *root,
    ron_bus_filter_t *filter)
{
    if (event->data_len != RON_HASH_LEN + RON_BUS_FILTER_LEN) {
        memset(root, 0, sizeof(ron_hash_t));
        memset(filter, 0, sizeof(ron_bus_filter_t));
        return RON_EINVAL;
    }

    memcpy(root->b, event->data, RON_HASH_LEN);
    memcpy(filter->b, event->data + RON_HASH_LEN, RON_BUS_FILTER_LEN);

    return RON_OK;
}


ron_status_t
ron_bus_join(const ron_zone_t *zone, uint64_t *seq, ron_hash_t *root,
    uint64_t *cursor)
{
    bool          found;
    uint64_t      at, lost, head;
    ron_event_t   event;

    at = 0;
    head = 0;
    found = false;
    *cursor = 0;

    while (ron_zone_event_get(zone, RON_RING_LEDGER, &at, &event, &lost)
           == RON_OK)
    {
        if (event.data_len < RON_HASH_LEN) {
            continue;
        }

        if (!found && event.seq == *seq
            && memcmp(event.data, root->b, RON_HASH_LEN) == 0)
        {
            found = true;
            *cursor = at;
        }

        head = at;
    }

    if (found) {
        return RON_OK;
    }

    if (head == 0) {
        return RON_AGAIN;
    }

    at = head - 1;

    if (ron_zone_event_get(zone, RON_RING_LEDGER, &at, &event, &lost)
        != RON_OK
        || event.data_len < RON_HASH_LEN)
    {
        return RON_AGAIN;
    }

    *seq = event.seq;
    memcpy(root->b, event.data, RON_HASH_LEN);
    *cursor = at;

    return RON_ENOTFOUND;
}


/* ---- the region --------------------------------------------------------- */

static ron_status_t
ron_bus_layout(void *region, size_t len, ron_bus_t *bus)
{
    size_t  at;

    memset(bus, 0, sizeof(ron_bus_t));

    if (region == NULL || ((uintptr_t) region & 63) != 0) {
        return RON_EINVAL;
    }

    if (len < RON_BUS_MIN) {
        return RON_EFULL;
    }

    bus->zone.base = region;
    bus->zone.len = len;

    at = RON_BUS_HEADER;
    bus->zone.beat = at;
    at += 3 * RON_ZONE_LINE * sizeof(ron_word_t);
    bus->zone.rings = at;
    at += RON_RING_WORDS * sizeof(ron_word_t);
    at = (at + 63) / 64 * 64;
    bus->zone.balances = at;
    bus->zone.balance_buckets = (len - at) / RON_BALANCE_BUCKET;
    bus->zone.balance_marks = at + bus->zone.balance_buckets * RON_ZONE_WAYS
                                   * RON_BALANCE_WORDS * sizeof(ron_word_t);

    RON_ASSERT(bus->zone.balance_buckets > 0);

    return RON_OK;
}


ron_status_t
ron_bus_init(void *region, size_t len, ron_bus_t *bus)
{
    ron_word_t    *head;
    ron_status_t   rc;

    rc = ron_bus_layout(region, len, bus);

    if (rc == RON_OK) {
        rc = ron_zone_clear(&bus->zone);
    }

    if (rc != RON_OK) {
        memset(bus, 0, sizeof(ron_bus_t));
        return rc;
    }

    head = ron_zone_words(&bus->zone, 0);
    ron_word_set(&head[RON_BUS_W_LEN], len);
    ron_word_set(&head[RON_BUS_W_MAGIC], RON_BUS_MAGIC);

    return RON_OK;
}


ron_status_t
ron_bus_adopt(void *region, size_t len, ron_bus_t *bus)
{
    ron_word_t    *head;
    ron_status_t   rc;

    rc = ron_bus_layout(region, len, bus);
    if (rc != RON_OK) {
        return rc;
    }

    head = ron_zone_words(&bus->zone, 0);

    if (ron_word_get(&head[RON_BUS_W_MAGIC]) != RON_BUS_MAGIC
        || ron_word_get(&head[RON_BUS_W_LEN]) != len)
    {
        memset(bus, 0, sizeof(ron_bus_t));
        return RON_EINVAL;
    }

    return RON_OK;
}


/* One word: until when, and who. */

bool
ron_bus_lease(const ron_bus_t *bus, uint32_t pid, uint64_t now_ms,
    uint64_t lease_ms)
{
    uint64_t     old, until;
    ron_word_t  *lease;

    lease = &ron_zone_words(&bus->zone, 0)[RON_BUS_W_LEASE];
    old = ron_word_get(lease);
    until = old >> RON_BUS_PID;

    if (until > now_ms && (old & ((1 << RON_BUS_PID) - 1)) != pid) {
        return false;
    }

    return ron_word_cas(lease, &old, (now_ms + lease_ms) << RON_BUS_PID
                                     | (pid & ((1 << RON_BUS_PID) - 1)));
}


void
ron_bus_leave(const ron_bus_t *bus, uint32_t pid)
{
    uint64_t     old;
    ron_word_t  *lease;

    lease = &ron_zone_words(&bus->zone, 0)[RON_BUS_W_LEASE];
    old = ron_word_get(lease);

    if ((old & ((1 << RON_BUS_PID) - 1)) == pid) {
        (void) ron_word_cas(lease, &old, 0);
    }
}


/* ---- what the bus says -------------------------------------------------- */

bool
ron_bus_is_own(const ron_bus_t *bus, const ron_bus_key_t *key)
{
    uint64_t  check;

    memcpy(&check, key->check, sizeof(check));

    return ron_word_get(&ron_zone_words(&bus->zone, 0)[RON_BUS_W_CHECK])
           == check;
}


void
ron_bus_own(const ron_bus_t *bus, const ron_bus_key_t *key)
{
    uint64_t  check;

    memcpy(&check, key->check, sizeof(check));
    ron_word_set(&ron_zone_words(&bus->zone, 0)[RON_BUS_W_CHECK], check);
}


ron_status_t
ron_bus_head(const ron_bus_t *bus, uint64_t *seq, ron_hash_t *root)
{
    uint64_t      cursor, lost;
    ron_event_t   event;

    *seq = 0;
    memset(root, 0, sizeof(ron_hash_t));

    cursor = ron_zone_event_cursor(&bus->zone, RON_RING_LEDGER);

    if (cursor-- == 0
        || ron_zone_event_get(&bus->zone, RON_RING_LEDGER, &cursor, &event,
                              &lost) != RON_OK)
    {
        return RON_ENOTFOUND;
    }

    *seq = event.seq;
    memcpy(root->b, event.data, RON_HASH_LEN);

    return RON_OK;
}


void
ron_bus_commit(const ron_bus_t *bus, uint64_t seq, uint64_t count,
    const ron_hash_t *root, const ron_bus_filter_t *filter)
{
    ron_event_t  event;

    memset(&event, 0, sizeof(ron_event_t));

    event.type = RON_EVENT_COMMIT;
    event.seq = seq;
    event.count = count;
    ron_bus_event(&event, root, filter);

    (void) ron_zone_event_put(&bus->zone, RON_RING_LEDGER, &event);
}


void
ron_bus_beat(const ron_bus_t *bus, uint64_t seq, uint64_t at_us)
{
    ron_beat_t  beat;

    memset(&beat, 0, sizeof(ron_beat_t));

    beat.state = RON_STATE_RUNNING;
    beat.generation = 1;
    beat.beat_us = at_us;
    beat.seq = seq;

    ron_zone_beat_write(&bus->zone, &beat);
}


/*
 * The event first: what is put after the balances were dropped, and was read
 * before, does not join on to what follows.
 */

void
ron_bus_lost(const ron_bus_t *bus, uint64_t seq, const ron_hash_t *root,
    bool other)
{
    ron_event_t  event;

    memset(&event, 0, sizeof(ron_event_t));

    event.type = RON_EVENT_HEAD;
    event.seq = seq;
    event.data_len = RON_HASH_LEN;
    memcpy(event.data, root->b, RON_HASH_LEN);

    (void) ron_zone_event_put(&bus->zone, RON_RING_LEDGER, &event);
    ron_zone_balances_wipe(&bus->zone);

    if (other) {
        ron_word_set(&ron_zone_words(&bus->zone, 0)[RON_BUS_W_WROTE], 0);
    }
}


void
ron_bus_wrote(const ron_bus_t *bus, uint64_t seq)
{
    uint64_t     old;
    ron_word_t  *wrote;

    wrote = &ron_zone_words(&bus->zone, 0)[RON_BUS_W_WROTE];
    old = ron_word_get(wrote);

    while (old < seq && !ron_word_cas(wrote, &old, seq)) {
        /* void */
    }
}


/* ---- balances ----------------------------------------------------------- */

/*
 * From the newest commit back to `since`.  On RON_BUS_SAME *head is the seq up
 * to which nothing touched the account.
 */

static ron_bus_is_t
ron_bus_walk(const ron_bus_t *bus, const ron_bus_key_t *key,
    ron_str_t account, uint64_t since, uint64_t *head, uint64_t *steps)
{
    uint64_t           at, cursor, lost, base;
    ron_hash_t         root;
    ron_event_t        event;
    ron_bus_filter_t   filter;

    at = ron_zone_event_cursor(&bus->zone, RON_RING_LEDGER);
    base = 0;
    *head = 0;
    *steps = 0;

    while (at-- > 0 && *steps < RON_ZONE_EVENTS) {
        cursor = at;

        if (ron_zone_event_get(&bus->zone, RON_RING_LEDGER, &cursor, &event,
                               &lost) != RON_OK
            || lost != 0)
        {
            return RON_BUS_UNKNOWN;
        }

        if (*steps == 0) {
            *head = ron_max(event.seq, since);

        } else if (event.seq != base) {
            return RON_BUS_UNKNOWN;
        }

        (*steps)++;

        if (event.seq <= since) {
            return RON_BUS_SAME;
        }

        if (event.type != RON_EVENT_COMMIT || event.count > event.seq
            || ron_bus_event_get(&event, &root, &filter) != RON_OK)
        {
            return RON_BUS_UNKNOWN;
        }

        if (ron_bus_filter_has(&filter, key, account)) {
            return RON_BUS_TOUCHED;
        }

        base = event.seq - event.count;

        if (base <= since) {
            return RON_BUS_SAME;
        }
    }

    return RON_BUS_UNKNOWN;
}


ron_status_t
ron_bus_get(const ron_bus_t *bus, const ron_bus_key_t *key,
    ron_str_t account, ron_str_t asset, uint64_t now_us,
    ron_bus_balance_t *is)
{
    uint64_t       head, steps, silent, old;
    ron_beat_t     beat;
    ron_word_t    *words;
    ron_status_t   rc;

    is->sure = false;
    is->stale_ms = 0;

    rc = ron_zone_balance_get(&bus->zone, account, asset, &is->balance,
                              now_us / 1000);
    if (rc != RON_OK) {
        return rc;
    }

    old = is->balance.as_of_ms;
    is->stale_ms = now_us > old * 1000 ? (now_us - old * 1000 + 999) / 1000
                                       : 0;

    /* the beat first: what the ring has then covers its head */

    if (ron_zone_beat_read(&bus->zone, &beat) != RON_OK) {
        memset(&beat, 0, sizeof(ron_beat_t));
    }

    words = ron_zone_words(&bus->zone, 0);

    if (!ron_bus_is_own(bus, key)
        || ron_bus_walk(bus, key, account, is->balance.seq, &head, &steps)
           != RON_BUS_SAME
        || head < ron_word_get(&words[RON_BUS_W_WROTE])
        || head < beat.seq)
    {
        return RON_OK;
    }

    is->sure = true;

    if (beat.generation == 0 || beat.beat_us > now_us) {
        return RON_OK;
    }

    /* never younger than it is */

    silent = (now_us - beat.beat_us + 999) / 1000;

    if (silent >= is->stale_ms) {
        return RON_OK;
    }

    is->stale_ms = silent;
    is->balance.as_of_ms = beat.beat_us / 1000;

    if (steps > RON_BUS_FAR
        || is->balance.as_of_ms >= old + RON_BUS_OLD_MS)
    {
        is->balance.seq = head;
        ron_zone_balance_put(&bus->zone, account, asset, &is->balance,
                             now_us / 1000);
    }

    return RON_OK;
}


bool
ron_bus_alive(const ron_bus_t *bus, uint64_t now_us, uint64_t window_ms)
{
    ron_beat_t  beat;

    return ron_zone_beat_read(&bus->zone, &beat) == RON_OK
           && beat.generation != 0
           && now_us < beat.beat_us + window_ms * 1000;
}


void
ron_bus_put(const ron_bus_t *bus, ron_str_t account, ron_str_t asset,
    const ron_zone_balance_t *balance, uint64_t at_us)
{
    ron_zone_balance_t  b;

    b = *balance;
    b.as_of_ms = at_us / 1000;

    ron_zone_balance_put(&bus->zone, account, asset, &b, at_us / 1000);
}
