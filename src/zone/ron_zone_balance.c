
/*
 * Balances of the zone.
 *
 * A key has one bucket of eight places, and a bucket one word of marks: a byte
 * for each place, made of the key that is there, 0 for a place that was never
 * used.  A new balance takes the place of the same key, else one that was
 * never used, else one that is unreadable, else the one that was not used for
 * longest.  "Used" is a time in whole seconds, written by readers too, and only
 * when it changes, so that a popular balance's cache line is not passed around
 * between processors.
 *
 * What a reader waits for is not a cache line but to find the page.  So marks
 * lie together, and the first places of all buckets, then the second ones: as
 * long as a bucket has few keys, few pages have all of them.
 *
 * A record is written before its mark.  Without the mark it is not found, and
 * what a mark leads to is believed by its key and its sum only.
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


typedef struct {
    uint64_t     k[2];                  /* the key as places have it */
    uint64_t     mark;                  /* 1 to 255 */
    ron_word_t  *marks;
    ron_word_t  *first;                 /* of the bucket's places */
    size_t       next;                  /* words from one to the next */
} ron_balance_bucket_t;


static void ron_balance_bucket(const ron_zone_t *zone,
    const ron_zone_key_t *key, ron_balance_bucket_t *b);
static uint32_t ron_balance_marked(uint64_t marks, uint64_t mark,
    uint32_t way);
static void ron_balance_set_mark(const ron_balance_bucket_t *b, uint32_t way);
static void ron_balance_ask(ron_word_t *place);
static bool ron_balance_is(ron_word_t *place, const uint64_t *k);
static ron_status_t ron_balance_read(ron_word_t *place, const uint64_t *k,
    uint64_t *data);
static uint32_t ron_balance_way(const ron_balance_bucket_t *b);


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


/* Where it may be.  The key that places have is never 0. */

static void
ron_balance_bucket(const ron_zone_t *zone, const ron_zone_key_t *key,
    ron_balance_bucket_t *b)
{
    uint64_t  no;

    b->k[0] = key->w[0];
    b->k[1] = (key->w[1] ^ ron_zone_epoch(zone, RON_EPOCH_BALANCES)) | 1;
    b->mark = ron_max(b->k[1] >> 56, 1);

    no = ron_zone_one_of(b->k[0], zone->balance_buckets);

    b->marks = ron_zone_words(zone, zone->balance_marks) + no;
    b->first = ron_zone_words(zone, zone->balances) + no * RON_BALANCE_WORDS;
    b->next = (size_t) zone->balance_buckets * RON_BALANCE_WORDS;
}


/* The next way that has this mark, from `way` on; RON_ZONE_WAYS: none. */

static uint32_t
ron_balance_marked(uint64_t marks, uint64_t mark, uint32_t way)
{
    while (way < RON_ZONE_WAYS && (marks >> 8 * way & 0xff) != mark) {
        way++;
    }

    return way;
}


/* Nobody else's mark is lost, if there should be two writers for a moment. */

static void
ron_balance_set_mark(const ron_balance_bucket_t *b, uint32_t way)
{
    uint64_t  marks;

    marks = ron_word_get(b->marks);

    while ((marks >> 8 * way & 0xff) != b->mark
           && !ron_word_cas(b->marks, &marks,
                            (marks & ~(UINT64_C(0xff) << 8 * way))
                            | b->mark << 8 * way))
    {
        /* void */
    }
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


/* Where a key is, or else what makes room for it. */

static uint32_t
ron_balance_way(const ron_balance_bucket_t *b)
{
    uint32_t     way, unused;
    uint64_t     marks, seq, used, oldest;
    ron_word_t  *place;

    marks = ron_word_get(b->marks);
    way = ron_balance_marked(marks, b->mark, 0);

    while (way < RON_ZONE_WAYS) {
        if (ron_balance_is(b->first + way * b->next, b->k)) {
            return way;
        }

        way = ron_balance_marked(marks, b->mark, way + 1);
    }

    way = ron_balance_marked(marks, 0, 0);

    if (way < RON_ZONE_WAYS) {
        return way;
    }

    unused = 0;
    oldest = UINT64_MAX;

    for (way = 0; way < RON_ZONE_WAYS; way++) {
        place = b->first + way * b->next;
        seq = ron_word_get(&place[RON_BALANCE_SEQ]);
        used = seq % 2 ? 0 : ron_word_get(&place[RON_BALANCE_USED]);

        if (used < oldest) {
            oldest = used;
            unused = way;
        }
    }

    return unused;
}


/*
 * One behind the other and nothing between: what a processor waits for is to
 * find the pages, which it does for as many as it can look ahead to.
 */

void
ron_zone_balances_ahead(const ron_zone_t *zone, const ron_zone_key_t *keys,
    size_t n)
{
    uint32_t              way;
    uint64_t              marks;
    ron_balance_bucket_t  b;

    for (size_t i = 0; i < n; i++) {
        ron_balance_bucket(zone, &keys[i], &b);
        marks = ron_word_get(b.marks);
        way = ron_balance_marked(marks, b.mark, 0);

        if (way == RON_ZONE_WAYS) {
            way = ron_balance_marked(marks, 0, 0) % RON_ZONE_WAYS;
        }

        ron_balance_ask(b.first + way * b.next);
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
    uint32_t              way;
    uint64_t              odd, data[RON_BALANCE_DATA_N];
    ron_word_t           *place;
    ron_balance_bucket_t  b;

    ron_balance_bucket(zone, key, &b);
    way = ron_balance_way(&b);
    place = b.first + way * b.next;

    /* it seldom is newer; whether that is so, its sum says */

    if (ron_balance_is(place, b.k)
        && ron_word_get(&place[RON_BALANCE_DATA + RON_BALANCE_HEAD])
           > balance->seq
        && ron_balance_read(place, b.k, data) == RON_OK
        && data[RON_BALANCE_HEAD] > balance->seq)
    {
        return;
    }

    data[0] = b.k[0];
    data[1] = b.k[1];
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
    ron_balance_set_mark(&b, way);
}


ron_status_t
ron_zone_balance_get(const ron_zone_t *zone, ron_str_t account,
    ron_str_t asset, ron_zone_balance_t *balance, uint64_t now_ms)
{
    uint32_t              way;
    uint64_t              marks, data[RON_BALANCE_DATA_N];
    ron_word_t           *place;
    ron_zone_key_t        key;
    ron_balance_bucket_t  b;

    memset(balance, 0, sizeof(ron_zone_balance_t));

    ron_zone_key(zone, account, asset, &key);
    ron_balance_bucket(zone, &key, &b);

    marks = ron_word_get(b.marks);
    way = ron_balance_marked(marks, b.mark, 0);

    for ( ;; ) {
        if (way == RON_ZONE_WAYS) {
            return RON_ENOTFOUND;
        }

        place = b.first + way * b.next;
        ron_balance_ask(place);

        if (ron_balance_is(place, b.k)
            && ron_balance_read(place, b.k, data) == RON_OK)
        {
            break;
        }

        way = ron_balance_marked(marks, b.mark, way + 1);
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
