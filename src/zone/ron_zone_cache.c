
/*
 * The caches of the zone: balances, tokens, receipts by key.
 *
 * A key has one bucket of eight places.  A new value takes the place of the
 * same key, else one that is empty, expired or unreadable, else the one that
 * was not used for longest.  "Used" is a time in whole seconds, written by
 * readers too, and only when it changes, so that a popular entry's cache line
 * is not passed around between processors.
 *
 * Each cache has an epoch that is mixed into every key.  Raising it forgets
 * everything at once; what is left behind is found by nobody and replaced in
 * time.
 */

#include "ron_zone_layout.h"

#include "ron_siphash.h"


#define RON_ENTRY_DATA_MAX (RON_ENTRY_WORDS(RON_ZONE_IDEM_MAX))
#define RON_ENTRY_HEAD     (RON_ENTRY_VALUE - RON_ENTRY_KEY)
#define RON_EPOCH_BALANCE  2
#define RON_BALANCE_SEQ    6            /* of the words of a value */


typedef struct {
    ron_word_t  *words;
    uint64_t     buckets;
    size_t       stride;                /* words an entry */
    size_t       value_max;
    uint64_t     epoch;
} ron_area_t;


static void ron_zone_area(const ron_zone_t *zone, uint32_t which,
    ron_area_t *area);
static void ron_area_key(const ron_area_t *area, const ron_zone_key_t *key,
    uint64_t *k);
static ron_word_t *ron_area_bucket(const ron_area_t *area, const uint64_t *k);
static ron_status_t ron_area_get(const ron_area_t *area,
    const ron_zone_key_t *key, uint64_t *data, uint64_t now_ms);
static void ron_area_put(const ron_area_t *area, const ron_zone_key_t *key,
    uint64_t *data, size_t n, uint64_t now_ms);
static void ron_entry_write(ron_word_t *entry, const uint64_t *data, size_t n,
    uint64_t now_ms);
static ron_word_t *ron_area_place(const ron_area_t *area, const uint64_t *k,
    uint64_t now_ms);
static bool ron_entry_is(ron_word_t *entry, const uint64_t *k);


void
ron_zone_key(const ron_zone_t *zone, ron_str_t a, ron_str_t b,
    ron_zone_key_t *key)
{
    uint64_t       len;
    ron_sip_t      sip;
    ron_word_t    *head;
    ron_sipkey_t   secret;

    head = ron_zone_words(zone, 0);
    secret.k0 = ron_word_get(&head[RON_HEAD_SECRET]);
    secret.k1 = ron_word_get(&head[RON_HEAD_SECRET + 1]);

    /* the length first: "ab" and "c" are not "a" and "bc" */

    len = a.len;

    ron_sip_init(&sip, &secret);
    ron_sip_update(&sip, &len, sizeof(len));
    ron_sip_update(&sip, a.data, a.len);
    ron_sip_update(&sip, b.data, b.len);
    ron_sip_final(&sip, key->w);
}


static void
ron_zone_area(const ron_zone_t *zone, uint32_t which, ron_area_t *area)
{
    switch (which) {

    case RON_CACHE_TOKEN:
        area->words = ron_zone_words(zone, zone->tokens);
        area->buckets = zone->token_buckets;
        area->stride = RON_TOKEN_WORDS;
        area->value_max = RON_ZONE_TOKEN_MAX;
        break;

    case RON_CACHE_IDEM:
        area->words = ron_zone_words(zone, zone->idem);
        area->buckets = zone->idem_buckets;
        area->stride = RON_IDEM_WORDS;
        area->value_max = RON_ZONE_IDEM_MAX;
        break;

    default:
        area->words = ron_zone_words(zone, zone->balances);
        area->buckets = zone->balance_buckets;
        area->stride = RON_BALANCE_WORDS;
        area->value_max = RON_BALANCE_LEN;
        break;
    }

    area->epoch = ron_word_get(&ron_zone_words(zone, 0)[RON_HEAD_EPOCH
                                                        + which]);
}


/* Never 0, which is an empty place. */

static void
ron_area_key(const ron_area_t *area, const ron_zone_key_t *key, uint64_t *k)
{
    k[0] = key->w[0];
    k[1] = (key->w[1] ^ (area->epoch * UINT64_C(0x9e3779b97f4a7c15))) | 1;
}


/* The first of its places; the others follow, a stride apart. */

static ron_word_t *
ron_area_bucket(const ron_area_t *area, const uint64_t *k)
{
    return area->words + k[0] % area->buckets * RON_ZONE_WAYS * area->stride;
}


static bool
ron_entry_is(ron_word_t *entry, const uint64_t *k)
{
    return ron_word_get(&entry[RON_ENTRY_KEY]) == k[0]
           && ron_word_get(&entry[RON_ENTRY_KEY + 1]) == k[1];
}


/* On RON_OK data[] is key, expiry, length, value. */

static ron_status_t
ron_area_get(const ron_area_t *area, const ron_zone_key_t *key,
    uint64_t *data, uint64_t now_ms)
{
    size_t         n;
    uint32_t       way;
    uint64_t       k[2], len;
    ron_word_t    *e;
    ron_status_t   status;

    ron_area_key(area, key, k);
    e = ron_area_bucket(area, k);

    for (way = 0; way < RON_ZONE_WAYS; way++, e += area->stride) {

        if (!ron_entry_is(e, k)) {
            continue;
        }

        len = ron_word_get(&e[RON_ENTRY_LEN]);

        if (len > area->value_max) {
            continue;
        }

        n = RON_ENTRY_HEAD + (len + 7) / 8;
        status = ron_zone_rec_read(&e[RON_ENTRY_SEQ], &e[RON_ENTRY_SUM],
                                   &e[RON_ENTRY_KEY], data, n);

        if (status != RON_OK || data[0] != k[0] || data[1] != k[1]
            || data[3] != len || data[2] <= now_ms)
        {
            continue;
        }

        if (ron_word_get(&e[RON_ENTRY_USED]) != now_ms / 1000) {
            ron_word_set(&e[RON_ENTRY_USED], now_ms / 1000);
        }

        return RON_OK;
    }

    return RON_ENOTFOUND;
}


static ron_word_t *
ron_area_place(const ron_area_t *area, const uint64_t *k, uint64_t now_ms)
{
    uint32_t     way;
    uint64_t     used, oldest;
    ron_word_t  *e, *empty, *unused;

    empty = NULL;
    unused = NULL;
    oldest = UINT64_MAX;
    e = ron_area_bucket(area, k);

    for (way = 0; way < RON_ZONE_WAYS; way++, e += area->stride) {

        if (ron_entry_is(e, k)) {
            return e;
        }

        if (empty == NULL
            && (ron_word_get(&e[RON_ENTRY_SEQ]) % 2
                || ron_word_get(&e[RON_ENTRY_EXPIRES]) <= now_ms))
        {
            empty = e;
        }

        used = ron_word_get(&e[RON_ENTRY_USED]);

        if (used < oldest) {
            oldest = used;
            unused = e;
        }
    }

    return empty ? empty : unused;
}


static void
ron_area_put(const ron_area_t *area, const ron_zone_key_t *key,
    uint64_t *data, size_t n, uint64_t now_ms)
{
    ron_area_key(area, key, data);
    ron_entry_write(ron_area_place(area, data, now_ms), data, n, now_ms);
}


static void
ron_entry_write(ron_word_t *e, const uint64_t *data, size_t n,
    uint64_t now_ms)
{
    uint64_t  odd;

    odd = ron_zone_rec_begin(&e[RON_ENTRY_SEQ]);
    ron_word_set(&e[RON_ENTRY_USED], now_ms / 1000);
    ron_zone_rec_end(&e[RON_ENTRY_SEQ], &e[RON_ENTRY_SUM], &e[RON_ENTRY_KEY],
                     odd, data, n);
}


/* ---- balances ----------------------------------------------------------- */

/*
 * One behind the other and nothing between: what a processor waits for is to
 * find the pages, which it does for as many as it can look ahead to.
 */

void
ron_zone_balances_ahead(const ron_zone_t *zone, const ron_zone_key_t *keys,
    size_t n)
{
    uint64_t      k[2];
    ron_area_t    area;
    ron_word_t   *e;

    ron_zone_area(zone, RON_EPOCH_BALANCE, &area);

    for (size_t i = 0; i < n; i++) {
        ron_area_key(&area, &keys[i], k);
        e = ron_area_bucket(&area, k);

        /* most are in the first place */

        __builtin_prefetch(e, 1);
        __builtin_prefetch(e + RON_ZONE_LINE, 1);
    }
}


void
ron_zone_balance_put(const ron_zone_t *zone, ron_str_t account,
    ron_str_t asset, const ron_zone_balance_t *balance, uint64_t now_ms)
{
    ron_zone_key_t  key;

    ron_zone_key(zone, account, asset, &key);
    ron_zone_balance_put_key(zone, &key, balance, now_ms);
}


void
ron_zone_balance_put_key(const ron_zone_t *zone, const ron_zone_key_t *key,
    const ron_zone_balance_t *balance, uint64_t now_ms)
{
    uint64_t     data[RON_ENTRY_DATA_MAX];
    ron_area_t   area;
    ron_word_t  *e;

    ron_zone_area(zone, RON_EPOCH_BALANCE, &area);
    ron_area_key(&area, key, data);
    e = ron_area_place(&area, data, now_ms);

    /* it seldom is newer; whether that is so, its sum says */

    if (ron_entry_is(e, data)
        && ron_word_get(&e[RON_ENTRY_VALUE + RON_BALANCE_SEQ]) > balance->seq
        && ron_area_get(&area, key, data, now_ms) == RON_OK
        && data[RON_ENTRY_HEAD + RON_BALANCE_SEQ] > balance->seq)
    {
        return;
    }

    ron_area_key(&area, key, data);
    data[2] = UINT64_MAX;
    data[3] = RON_BALANCE_LEN;
    data[4] = (uint64_t) balance->available;
    data[5] = (uint64_t) (balance->available >> 64);
    data[6] = (uint64_t) balance->held;
    data[7] = (uint64_t) (balance->held >> 64);
    data[8] = balance->nonce;
    data[9] = balance->version;
    data[10] = balance->seq;
    data[11] = balance->as_of_ms;

    ron_entry_write(e, data, RON_ENTRY_HEAD + RON_BALANCE_LEN / 8, now_ms);
}


ron_status_t
ron_zone_balance_get(const ron_zone_t *zone, ron_str_t account,
    ron_str_t asset, ron_zone_balance_t *balance, uint64_t now_ms)
{
    uint64_t         data[RON_ENTRY_DATA_MAX];
    ron_area_t       area;
    ron_zone_key_t   key;
    ron_status_t     status;

    memset(balance, 0, sizeof(ron_zone_balance_t));

    ron_zone_area(zone, RON_EPOCH_BALANCE, &area);
    ron_zone_key(zone, account, asset, &key);

    status = ron_area_get(&area, &key, data, now_ms);
    if (status != RON_OK || data[3] != RON_BALANCE_LEN) {
        return RON_ENOTFOUND;
    }

    balance->available = (ron_u128_t) data[5] << 64 | data[4];
    balance->held = (ron_u128_t) data[7] << 64 | data[6];
    balance->nonce = data[8];
    balance->version = data[9];
    balance->seq = data[10];
    balance->as_of_ms = data[11];

    return RON_OK;
}


void
ron_zone_balances_wipe(const ron_zone_t *zone)
{
    atomic_fetch_add(&ron_zone_words(zone, 0)[RON_HEAD_EPOCH
                                              + RON_EPOCH_BALANCE], 1);
}


/* ---- opaque values ------------------------------------------------------ */

ron_status_t
ron_zone_cache_put(const ron_zone_t *zone, ron_cache_t cache,
    const ron_zone_key_t *key, ron_str_t value, uint64_t expires_ms,
    uint64_t now_ms)
{
    uint64_t    data[RON_ENTRY_DATA_MAX];
    ron_area_t  area;

    RON_ASSERT(cache == RON_CACHE_TOKEN || cache == RON_CACHE_IDEM);
    ron_zone_area(zone, cache, &area);

    if (value.len > area.value_max) {
        return RON_ERANGE;
    }

    memset(data, 0, sizeof(data));
    data[2] = expires_ms;
    data[3] = value.len;

    if (value.len > 0) {
        memcpy(&data[RON_ENTRY_HEAD], value.data, value.len);
    }

    ron_area_put(&area, key, data, RON_ENTRY_HEAD + (value.len + 7) / 8,
                 now_ms);
    return RON_OK;
}


ron_status_t
ron_zone_cache_get(const ron_zone_t *zone, ron_cache_t cache,
    const ron_zone_key_t *key, uint8_t *buf, size_t buf_len, size_t *len,
    uint64_t now_ms)
{
    uint64_t      data[RON_ENTRY_DATA_MAX];
    ron_area_t    area;
    ron_status_t  status;

    *len = 0;
    RON_ASSERT(cache == RON_CACHE_TOKEN || cache == RON_CACHE_IDEM);
    ron_zone_area(zone, cache, &area);

    status = ron_area_get(&area, key, data, now_ms);
    if (status != RON_OK) {
        return status;
    }

    if (data[3] > buf_len) {
        return RON_ERANGE;
    }

    memcpy(buf, &data[RON_ENTRY_HEAD], data[3]);
    *len = data[3];

    return RON_OK;
}


void
ron_zone_cache_wipe(const ron_zone_t *zone, ron_cache_t cache)
{
    RON_ASSERT(cache == RON_CACHE_TOKEN || cache == RON_CACHE_IDEM);
    atomic_fetch_add(&ron_zone_words(zone, 0)[RON_HEAD_EPOCH + cache], 1);
}
