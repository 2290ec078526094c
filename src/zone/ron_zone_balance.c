
/*
 * Balances of the zone.
 *
 * A key has one bucket of eight places.  A new balance takes the place of the
 * same key, else one that is empty or unreadable, else the one that was not
 * used for longest.  "Used" is a time in whole seconds, written by readers
 * too, and only when it changes, so that a popular balance's cache line is
 * not passed around between processors.
 */

#include "ron_zone_layout.h"

#include "ron_siphash.h"


/* of the words of RON_BALANCE_DATA */

#define RON_BALANCE_AVAILABLE  2
#define RON_BALANCE_HELD       4
#define RON_BALANCE_NONCE      6
#define RON_BALANCE_VERSION    7
#define RON_BALANCE_HEAD       8
#define RON_BALANCE_AS_OF      9


static ron_word_t *ron_balance_bucket(const ron_zone_t *zone,
    const ron_zone_key_t *key, uint64_t *k);
static void ron_balance_ask(ron_word_t *place);
static bool ron_balance_is(ron_word_t *place, const uint64_t *k);
static ron_status_t ron_balance_read(ron_word_t *place, const uint64_t *k,
    uint64_t *data);
static ron_word_t *ron_balance_place(ron_word_t *bucket, const uint64_t *k);


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


/* The first of its places, and the key that they have, which is never 0. */

static ron_word_t *
ron_balance_bucket(const ron_zone_t *zone, const ron_zone_key_t *key,
    uint64_t *k)
{
    k[0] = key->w[0];
    k[1] = (key->w[1] ^ ron_zone_epoch(zone, RON_EPOCH_BALANCES)) | 1;

    return ron_zone_words(zone, zone->balances)
           + ron_zone_one_of(k[0], zone->balance_buckets)
             * RON_ZONE_WAYS * RON_BALANCE_WORDS;
}


/* Both of its lines at once. */

static void
ron_balance_ask(ron_word_t *place)
{
    __builtin_prefetch(place, 1);
    __builtin_prefetch(place + RON_ZONE_LINE, 1);
}


static bool
ron_balance_is(ron_word_t *place, const uint64_t *k)
{
    return ron_word_get(&place[RON_BALANCE_DATA]) == k[0]
           && ron_word_get(&place[RON_BALANCE_DATA + 1]) == k[1];
}


static ron_status_t
ron_balance_read(ron_word_t *place, const uint64_t *k, uint64_t *data)
{
    ron_status_t  status;

    status = ron_zone_rec_read(&place[RON_BALANCE_SEQ],
                               &place[RON_BALANCE_SUM],
                               &place[RON_BALANCE_DATA], data,
                               RON_BALANCE_DATA_N);

    if (status == RON_OK && (data[0] != k[0] || data[1] != k[1])) {
        return RON_AGAIN;
    }

    return status;
}


static ron_word_t *
ron_balance_place(ron_word_t *bucket, const uint64_t *k)
{
    uint32_t     way;
    uint64_t     seq, used, oldest;
    ron_word_t  *place, *empty, *unused;

    empty = NULL;
    unused = NULL;
    oldest = UINT64_MAX;
    place = bucket;

    for (way = 0; way < RON_ZONE_WAYS; way++, place += RON_BALANCE_WORDS) {

        if (ron_balance_is(place, k)) {
            return place;
        }

        seq = ron_word_get(&place[RON_BALANCE_SEQ]);

        if (empty == NULL && (seq == 0 || seq % 2)) {
            empty = place;
        }

        used = ron_word_get(&place[RON_BALANCE_USED]);

        if (used < oldest) {
            oldest = used;
            unused = place;
        }
    }

    return empty ? empty : unused;
}


/*
 * One behind the other and nothing between: what a processor waits for is to
 * find the pages, which it does for as many as it can look ahead to.  Most are
 * in the first place.
 */

void
ron_zone_balances_ahead(const ron_zone_t *zone, const ron_zone_key_t *keys,
    size_t n)
{
    uint64_t  k[2];

    for (size_t i = 0; i < n; i++) {
        ron_balance_ask(ron_balance_bucket(zone, &keys[i], k));
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
    uint64_t     odd, k[2], data[RON_BALANCE_DATA_N];
    ron_word_t  *place;

    place = ron_balance_place(ron_balance_bucket(zone, key, k), k);

    /* it seldom is newer; whether that is so, its sum says */

    if (ron_balance_is(place, k)
        && ron_word_get(&place[RON_BALANCE_DATA + RON_BALANCE_HEAD])
           > balance->seq
        && ron_balance_read(place, k, data) == RON_OK
        && data[RON_BALANCE_HEAD] > balance->seq)
    {
        return;
    }

    data[0] = k[0];
    data[1] = k[1];
    data[RON_BALANCE_AVAILABLE] = (uint64_t) balance->available;
    data[RON_BALANCE_AVAILABLE + 1] = (uint64_t) (balance->available >> 64);
    data[RON_BALANCE_HELD] = (uint64_t) balance->held;
    data[RON_BALANCE_HELD + 1] = (uint64_t) (balance->held >> 64);
    data[RON_BALANCE_NONCE] = balance->nonce;
    data[RON_BALANCE_VERSION] = balance->version;
    data[RON_BALANCE_HEAD] = balance->seq;
    data[RON_BALANCE_AS_OF] = balance->as_of_ms;

    odd = ron_zone_rec_begin(&place[RON_BALANCE_SEQ]);
    ron_word_set(&place[RON_BALANCE_USED], now_ms / 1000);
    ron_zone_rec_end(&place[RON_BALANCE_SEQ], &place[RON_BALANCE_SUM],
                     &place[RON_BALANCE_DATA], odd, data,
                     RON_BALANCE_DATA_N);
}


ron_status_t
ron_zone_balance_get(const ron_zone_t *zone, ron_str_t account,
    ron_str_t asset, ron_zone_balance_t *balance, uint64_t now_ms)
{
    uint32_t         way;
    uint64_t         k[2], data[RON_BALANCE_DATA_N];
    ron_word_t      *place;
    ron_zone_key_t   key;

    memset(balance, 0, sizeof(ron_zone_balance_t));

    ron_zone_key(zone, account, asset, &key);
    place = ron_balance_bucket(zone, &key, k);
    ron_balance_ask(place);

    for (way = 0; way < RON_ZONE_WAYS; way++, place += RON_BALANCE_WORDS) {
        if (ron_balance_is(place, k)
            && ron_balance_read(place, k, data) == RON_OK)
        {
            break;
        }
    }

    if (way == RON_ZONE_WAYS) {
        return RON_ENOTFOUND;
    }

    if (ron_word_get(&place[RON_BALANCE_USED]) != now_ms / 1000) {
        ron_word_set(&place[RON_BALANCE_USED], now_ms / 1000);
    }

    balance->available = (ron_u128_t) data[RON_BALANCE_AVAILABLE + 1] << 64
                         | data[RON_BALANCE_AVAILABLE];
    balance->held = (ron_u128_t) data[RON_BALANCE_HELD + 1] << 64
                    | data[RON_BALANCE_HELD];
    balance->nonce = data[RON_BALANCE_NONCE];
    balance->version = data[RON_BALANCE_VERSION];
    balance->seq = data[RON_BALANCE_HEAD];
    balance->as_of_ms = data[RON_BALANCE_AS_OF];

    return RON_OK;
}


void
ron_zone_balances_wipe(const ron_zone_t *zone)
{
    atomic_fetch_add(&ron_zone_words(zone, 0)[RON_HEAD_EPOCH
                                              + RON_EPOCH_BALANCES], 1);
}
