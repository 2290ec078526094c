
/*
 * What a wallet knows of a remote ledger: filters, the region, the lease, and
 * balances under a bus that is late, loses commits or is another one; and the
 * bus as text.
 */

#include "ron_test.h"

#include <sys/mman.h>

#include "ron_api_bus.h"
#include "ron_zone_layout.h"


#define REGION    ((size_t) 2 << 20)
#define ACCOUNTS  24
#define LATE      64


/* The true ledger: the balance of each account after each seq. */

typedef struct {
    uint64_t  seq;
    uint64_t  ms;
    uint64_t  value;
} fact_t;

typedef struct {
    fact_t    *facts;
    size_t     n;
} history_t;

typedef struct {
    uint64_t           seq;
    uint64_t           count;
    ron_hash_t         root;
    ron_bus_filter_t   touched;
} commit_t;


static uint64_t       test_seed = UINT64_C(0x1b873593cc9e2d51);
static ron_bus_key_t  test_key;


static uint64_t
test_random(uint64_t n)
{
    test_seed ^= test_seed << 13;
    test_seed ^= test_seed >> 7;
    test_seed ^= test_seed << 17;

    return test_seed % n;
}


static void
test_region(ron_bus_t *bus)
{
    void  *region;

    region = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    RON_ASSERT(region != MAP_FAILED);
    RON_ASSERT(ron_bus_init(region, REGION, bus) == RON_OK);

    ron_bus_own(bus, &test_key);
}


static void
test_unmap(ron_bus_t *bus)
{
    munmap(bus->zone.base, bus->zone.len);
}


static ron_str_t
test_account(uint64_t n, char *name)
{
    (void) snprintf(name, 32, "account-%llu", (unsigned long long) n);

    return ron_cstr(name);
}


static void
test_root(uint64_t seq, ron_hash_t *root)
{
    memset(root, 0, sizeof(ron_hash_t));
    memcpy(root->b, &seq, sizeof(seq));
}


/* ---- filters ------------------------------------------------------------ */

static void
test_filters(void)
{
    char               name[32];
    uint64_t           i, missing, wrong;
    ron_bus_key_t      other;
    ron_bus_filter_t   filter;

    memset(&filter, 0, sizeof(filter));

    for (i = 0; i < 100; i++) {
        ron_bus_filter_add(&filter, &test_key, test_account(i, name));
    }

    missing = 0;
    wrong = 0;

    for (i = 0; i < 100; i++) {
        missing += !ron_bus_filter_has(&filter, &test_key,
                                       test_account(i, name));
    }

    for (i = 1000; i < 11000; i++) {
        wrong += ron_bus_filter_has(&filter, &test_key,
                                    test_account(i, name));
    }

    is_u64(missing, 0, "no account of a filter is missing from it");
    ok(wrong < 200, "of 10 000 others it has %llu by chance",
       (unsigned long long) wrong);

    ron_bus_key(ron_str("another secret"), &other);
    wrong = 0;

    for (i = 0; i < 100; i++) {
        wrong += ron_bus_filter_has(&filter, &other, test_account(i, name));
    }

    ok(wrong < 15, "who has another secret finds nothing (%llu)",
       (unsigned long long) wrong);
    ok(memcmp(other.check, test_key.check, RON_BUS_CHECK_LEN) != 0,
       "and the check says so");
}


/* ---- the region --------------------------------------------------------- */

static void
test_layout(void)
{
    ron_bus_t  bus, other;

    test_region(&bus);

    is_status(ron_bus_adopt(bus.zone.base, REGION, &other), RON_OK, "adopted");
    ok(memcmp(&bus, &other, sizeof(bus)) == 0, "with the same places");
    is_status(ron_bus_adopt(bus.zone.base, REGION - 4096, &other), RON_EINVAL,
              "not with another length");
    is_status(ron_bus_init(bus.zone.base, RON_BUS_MIN - 64, &other), RON_EFULL,
              "too small");
    ok(bus.zone.balances + bus.zone.balance_buckets * RON_BALANCE_WORDS * 8
       * RON_ZONE_WAYS <= REGION, "all of it is inside");

    test_unmap(&bus);
}


static void
test_lease(void)
{
    ron_bus_t  bus;

    test_region(&bus);

    ok(ron_bus_lease(&bus, 10, 1000, 500), "the first has the lease");
    ok(!ron_bus_lease(&bus, 11, 1499, 500), "nobody else");
    ok(ron_bus_lease(&bus, 10, 1400, 500), "it keeps it");
    ok(!ron_bus_lease(&bus, 11, 1899, 500), "for longer");
    ok(ron_bus_lease(&bus, 11, 1900, 500), "then it is another's");
    ok(!ron_bus_lease(&bus, 10, 1901, 500), "and not the first one's");
    ron_bus_leave(&bus, 10);
    ok(!ron_bus_lease(&bus, 10, 1902, 500), "who cannot give it back");
    ron_bus_leave(&bus, 11);
    ok(ron_bus_lease(&bus, 10, 1903, 500), "its owner can");

    test_unmap(&bus);
}


/* ---- one account, step by step ------------------------------------------ */

static void
test_commit(ron_bus_t *bus, uint64_t seq, uint64_t count, const char *account)
{
    ron_hash_t         root;
    ron_bus_filter_t   filter;

    memset(&filter, 0, sizeof(filter));
    ron_bus_filter_add(&filter, &test_key, ron_cstr(account));
    test_root(seq, &root);
    ron_bus_commit(bus, seq, count, &root, &filter);
}


static void
test_put(ron_bus_t *bus, const char *account, uint64_t seq, uint64_t value,
    uint64_t ms)
{
    ron_zone_balance_t  b;

    memset(&b, 0, sizeof(b));
    b.available = value;
    b.seq = seq;

    ron_bus_put(bus, ron_cstr(account), ron_str("ron"), &b, ms * 1000);
}


static bool
test_sure(ron_bus_t *bus, const char *account, uint64_t ms, uint64_t *stale)
{
    ron_bus_balance_t  is;

    if (ron_bus_get(bus, &test_key, ron_cstr(account), ron_str("ron"),
                    ms * 1000, &is) != RON_OK)
    {
        *stale = UINT64_MAX;
        return false;
    }

    *stale = is.stale_ms;

    return is.sure;
}


static void
test_steps(void)
{
    uint64_t       stale, i;
    ron_bus_t      bus;
    ron_hash_t     root;
    ron_bus_key_t  other;

    test_region(&bus);
    test_root(10, &root);

    ok(!test_sure(&bus, "a", 100, &stale) && stale == UINT64_MAX,
       "nothing is known");
    test_put(&bus, "a", 10, 5, 100);
    ok(!test_sure(&bus, "a", 110, &stale) && stale == 10,
       "without a bus nothing is sure");

    ron_bus_lost(&bus, 10, &root, true);
    ok(!test_sure(&bus, "a", 110, &stale) && stale == UINT64_MAX,
       "what was known before is dropped");
    test_put(&bus, "a", 10, 5, 120);
    ok(test_sure(&bus, "a", 150, &stale) && stale == 30, "of the head");
    ron_bus_beat(&bus, 10, 145000);
    ok(test_sure(&bus, "a", 150, &stale) && stale == 5,
       "a beat says that it was right then");

    test_commit(&bus, 12, 2, "b");
    ok(test_sure(&bus, "a", 160, &stale), "another's commit");
    ron_bus_beat(&bus, 12, 165000);
    ok(test_sure(&bus, "a", 170, &stale) && stale == 5, "changes nothing");
    test_commit(&bus, 13, 1, "a");
    ok(!test_sure(&bus, "a", 170, &stale), "one's own does");
    test_put(&bus, "a", 12, 5, 168);
    ok(!test_sure(&bus, "a", 170, &stale), "what was read before, too");
    test_put(&bus, "a", 13, 6, 171);
    ok(test_sure(&bus, "a", 180, &stale) && stale == 9, "what was read after");

    ron_bus_wrote(&bus, 14);
    ok(!test_sure(&bus, "a", 180, &stale),
       "an own write that the bus has not said");
    test_commit(&bus, 14, 1, "b");
    ok(test_sure(&bus, "a", 180, &stale), "until it says it");

    test_commit(&bus, 17, 2, "b");
    ok(!test_sure(&bus, "a", 180, &stale), "a gap: nobody knows");
    test_put(&bus, "a", 17, 6, 190);
    ok(test_sure(&bus, "a", 190, &stale), "behind it");

    ron_bus_beat(&bus, 19, 200000);
    ok(!test_sure(&bus, "a", 200, &stale), "the ring is behind the beat");
    test_commit(&bus, 19, 2, "b");
    ok(test_sure(&bus, "a", 200, &stale), "and not any more");

    ron_bus_key(ron_str("new"), &other);
    ron_bus_own(&bus, &other);
    ok(!test_sure(&bus, "a", 200, &stale), "the filters are under another key");
    ron_bus_own(&bus, &test_key);

    for (i = 20; i < 20 + RON_ZONE_EVENTS; i++) {
        test_commit(&bus, i, 1, "b");
    }

    ok(!test_sure(&bus, "a", 200, &stale) && stale == 10,
       "the ring went on without it");

    test_root(i, &root);
    ron_bus_lost(&bus, i, &root, false);
    test_put(&bus, "a", i - 1, 6, 300);
    ok(!test_sure(&bus, "a", 300, &stale),
       "what was read before a loss, and put after it");

    test_unmap(&bus);
}


/* ---- any order of things ------------------------------------------------ */

static void
test_fact(history_t *h, uint64_t seq, uint64_t ms, uint64_t value)
{
    h->facts[h->n++] = (fact_t) { seq, ms, value };
}


/* The last fact that is not newer. */

static uint64_t
test_value(const history_t *h, uint64_t seq, uint64_t ms)
{
    size_t  i;

    for (i = h->n; i-- > 0;) {
        if (h->facts[i].seq <= seq && h->facts[i].ms <= ms) {
            return h->facts[i].value;
        }
    }

    return 0;
}


/*
 * A ledger commits, a bus says so later or says that it lost some, beats tell
 * of a time that is past, readers fill the cache late.  What is sure must have
 * been the balance at the time that it names, and when it is not sure, too.
 */

static void
test_property(void)
{
    char          name[32];
    size_t        i, from, to, steps;
    uint64_t      seq, ms, a, told, told_ms, wrong, sure, hits, at, fill_seq;
    uint64_t      fill_ms, fill_a, fill_value;
    bool          filling;
    ron_bus_t     bus;
    history_t     h[ACCOUNTS];
    commit_t     *late, *c;
    ron_bus_balance_t  is;

    test_region(&bus);
    steps = 400000;
    late = calloc(LATE, sizeof(commit_t));
    RON_ASSERT(late != NULL);

    for (i = 0; i < ACCOUNTS; i++) {
        h[i].facts = calloc(steps + 1, sizeof(fact_t));
        RON_ASSERT(h[i].facts != NULL);
        h[i].n = 0;
        test_fact(&h[i], 0, 0, 0);
    }

    seq = 1;
    ms = 1000;
    told = 1;
    told_ms = 0;
    from = 0;
    to = 0;
    wrong = 0;
    sure = 0;
    hits = 0;
    filling = false;
    fill_a = fill_seq = fill_ms = fill_value = 0;

    {
        ron_hash_t  root;

        test_root(seq, &root);
        ron_bus_lost(&bus, seq, &root, true);
    }

    for (i = 0; i < steps; i++) {
        ms += 1 + test_random(2);
        a = test_random(ACCOUNTS);

        switch (test_random(8)) {

        case 0:                         /* a commit of one account or two */
            if (to - from == LATE) {
                break;
            }

            c = &late[to++ % LATE];
            memset(c, 0, sizeof(commit_t));
            c->count = 1 + test_random(3);
            seq += c->count;
            c->seq = seq;
            test_root(seq, &c->root);

            for (at = 0; at <= test_random(2); at++) {
                a = test_random(ACCOUNTS);
                ron_bus_filter_add(&c->touched, &test_key,
                                   test_account(a, name));
                test_fact(&h[a], seq, ms, i + 1);
            }

            break;

        case 1:
        case 2:                         /* the bus says it */
            if (from < to) {
                c = &late[from++ % LATE];
                ron_bus_commit(&bus, c->seq, c->count, &c->root, &c->touched);
                told = c->seq;
                told_ms = from == to ? ms : 0;
            }

            break;

        case 3:                         /* a beat of a time when it was so */
            if (from == to && told_ms != 0) {
                at = told_ms + test_random(ms - told_ms + 1);
                ron_bus_beat(&bus, told, at * 1000);
            }

            break;

        case 4:                         /* it lost some */
            if (test_random(200) == 0 && from < to) {
                from = to;
                c = &late[(to - 1) % LATE];
                told = c->seq;
                told_ms = ms;
                ron_bus_lost(&bus, told, &c->root, false);
            }

            break;

        case 5:                         /* a read begins, */
            filling = true;
            fill_a = a;
            fill_seq = seq - test_random(2) * (seq - told);
            fill_ms = ms;
            fill_value = test_value(&h[a], seq, ms);
            break;

        case 6:                         /* and its answer is there */
            if (filling) {
                filling = false;
                (void) test_account(fill_a, name);
                test_put(&bus, name, fill_seq, fill_value, fill_ms);
            }

            break;

        default:
            if (ron_bus_get(&bus, &test_key, test_account(a, name),
                            ron_str("ron"), ms * 1000, &is) == RON_OK)
            {
                hits++;
                sure += is.sure;
                at = ms - is.stale_ms;
                wrong += (uint64_t) is.balance.available
                         != test_value(&h[a], UINT64_MAX, at);
            }
        }
    }

    is_u64(wrong, 0, "%llu balances were right when they said, %llu sure",
           (unsigned long long) hits, (unsigned long long) sure);
    ok(hits > 1000 && sure > hits / 20 && sure < hits, "both kinds were met");

    for (i = 0; i < ACCOUNTS; i++) {
        free(h[i].facts);
    }

    free(late);
    test_unmap(&bus);
}


/* ---- joining ------------------------------------------------------------ */

static void
test_join(void)
{
    uint64_t    seq, cursor;
    ron_bus_t   bus;
    ron_hash_t  root;

    test_region(&bus);

    seq = 5;
    test_root(5, &root);
    is_status(ron_bus_join(&bus.zone, &seq, &root, &cursor), RON_AGAIN,
              "a ring without a commit");

    ron_bus_lost(&bus, 5, &root, true);
    test_commit(&bus, 6, 1, "a");
    test_commit(&bus, 9, 3, "a");

    seq = 6;
    test_root(6, &root);
    is_status(ron_bus_join(&bus.zone, &seq, &root, &cursor), RON_OK,
              "a commit of the ring");
    is_u64(cursor, 2, "goes on behind it");

    seq = 5;
    test_root(5, &root);
    is_status(ron_bus_join(&bus.zone, &seq, &root, &cursor), RON_OK,
              "a head of the ring");
    is_u64(cursor, 1, "too");

    seq = 6;
    test_root(7, &root);
    is_status(ron_bus_join(&bus.zone, &seq, &root, &cursor), RON_ENOTFOUND,
              "another ledger's seq");
    is_u64(seq, 9, "begins at the newest");
    is_u64(cursor, 3, "and what comes");

    test_unmap(&bus);
}


/* ---- as text ------------------------------------------------------------ */

static void
test_text(void)
{
    size_t                 i, piece, n, wrong;
    ron_buf_t              buf;
    ron_str_t              in;
    ron_status_t           rc;
    ron_api_bus_event_t    events[5], got;
    ron_api_bus_reader_t   reader;

    memset(events, 0, sizeof(events));

    events[0].type = RON_API_BUS_HELLO;
    events[0].seq = 41;
    events[0].us = UINT64_C(9007199254740991);
    events[0].joined = true;
    memcpy(events[0].check, "\x01\x02\xff\x00\x10\x20\x30\x40", 8);
    events[1].type = RON_API_BUS_COMMIT;
    events[1].seq = UINT64_C(9007199254740991);
    events[1].count = 7;
    memset(events[1].root.b, 0xa5, RON_HASH_LEN);
    memset(events[1].touched.b, 0xff, RON_BUS_FILTER_LEN);
    events[2].type = RON_API_BUS_BEAT;
    events[2].seq = 43;
    events[2].us = UINT64_C(123456789012345);
    events[3].type = RON_API_BUS_LAGGED;
    events[3].seq = UINT64_C(9007199254740990);
    events[3].lost = UINT64_C(9007199254740991);
    events[4].type = RON_API_BUS_BEAT;

    ron_buf_init(&buf, 0);
    ron_buf_put_cstr(&buf, "HTTP/1.1 200 OK\r\nContent-Type: "
                           "text/event-stream\r\n\r\nretry: 1000\n\n: ping\n\n"
                           "event: final\ndata: {\"x\":1}\n\n");

    for (i = 0; i < ron_array_n(events); i++) {
        n = ron_buf_str(&buf).len;
        ron_api_bus_put(&buf, &events[i]);
        ok(ron_buf_str(&buf).len - n <= RON_API_BUS_EVENT_MAX,
           "%u bytes of an event", (unsigned) (ron_buf_str(&buf).len - n));
    }

    wrong = 0;

    for (piece = 1; piece < 900; piece += 1 + piece / 8) {
        ron_api_bus_reader_init(&reader);
        n = 0;

        for (i = 0; i < ron_buf_str(&buf).len; i += piece) {
            in = ron_buf_str(&buf);
            in.data += i;
            in.len = ron_min(piece, in.len - i);

            while ((rc = ron_api_bus_get(&reader, &in, &got)) == RON_OK) {
                if (n > 0) {
                    wrong += memcmp(&got, &events[n - 1], sizeof(got)) != 0;
                }

                n++;
            }

            wrong += rc != RON_AGAIN;
        }

        wrong += n != 1 + ron_array_n(events);
        ron_api_bus_reader_free(&reader);
    }

    is_u64(wrong, 0, "events are read as they were written, in any pieces");
    ron_buf_free(&buf);
}


static void
test_bad_text(void)
{
    size_t                 i;
    ron_str_t              in;
    ron_api_bus_event_t    e;
    ron_api_bus_reader_t   reader;

    static char            head[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    static char            longer[RON_API_BUS_EVENT_MAX + 8];
    static const char     *bad[] = {
        "event: beat\ndata: {\"seq\":1}\n\n",
        "event: beat\ndata: {\"seq\":-1,\"us\":1}\n\n",
        "event: beat\ndata: {\"seq\":9007199254740992,\"us\":1}\n\n",
        "event: beat\ndata: {\"seq\":1,\"us\":9007199254740992}\n\n",
        "event: beat\ndata: [1]\n\n",
        "event: beat\n\n",
        "event: commit\ndata: {\"seq\":1,\"count\":2,\"root\":\"00\","
            "\"touched\":\"00\"}\n\n",
        "event: lagged\ndata: {\"seq\":1,\"lost\":2}\n\n",
        "event: hello\ndata: {\"seq\":1,\"us\":1,\"root\":\"\",\"check\":\"\","
            "\"joined\":1}\n\n",
        "event: hello\ndata: {\"seq\":1,\"root\":"
            "\"0000000000000000000000000000000000000000000000000000000000000000\""
            ",\"check\":\"0000000000000000\",\"joined\":true}\n\n",
        longer
    };

    memset(longer, 'x', sizeof(longer) - 1);

    for (i = 0; i < ron_array_n(bad); i++) {
        ron_api_bus_reader_init(&reader);
        in = ron_cstr(head);
        is_status(ron_api_bus_get(&reader, &in, &e), RON_OK, "an answer");
        in = ron_cstr(bad[i]);
        is_status(ron_api_bus_get(&reader, &in, &e), RON_EINVAL,
                  "bad event %u", (unsigned) i);
        ron_api_bus_reader_free(&reader);
    }

    ron_api_bus_reader_init(&reader);
    in = ron_str("HTTP/1.1 404 Not Found\r\n\r\n");
    is_status(ron_api_bus_get(&reader, &in, &e), RON_EINVAL,
              "another answer");
    ron_api_bus_reader_free(&reader);
}


static void
test_balance(void)
{
    uint64_t            stale;
    ron_json_doc_t      doc;
    ron_zone_balance_t  b;

    ron_json_doc_init(&doc, 0);

    is_status(ron_api_bus_balance(&doc, ron_str("{\"account\":\"a\","
                  "\"asset\":\"ron\",\"amount_minor\":\"340282366920938463463"
                  "374607431768211455\",\"held_minor\":\"7\",\"nonce\":3,"
                  "\"as_of\":\"2026-01-01T00:00:00.000Z\",\"stale_ms\":12}"),
                  &b, &stale), RON_OK, "a balance");
    ok(b.available == ~(ron_u128_t) 0 && b.held == 7, "its amounts");
    is_u64(b.nonce, 3, "its nonce");
    is_u64(stale, 12, "its age");
    is_status(ron_api_bus_balance(&doc, ron_str("{\"amount_minor\":\"1\","
                  "\"held_minor\":\"-7\",\"nonce\":3,\"stale_ms\":12}"),
                  &b, &stale), RON_EINVAL, "not an amount");
    is_status(ron_api_bus_balance(&doc, ron_str("[]"), &b, &stale),
              RON_EINVAL, "not an object");

    ron_json_doc_free(&doc);
}


int
main(void)
{
    ron_bus_key(ron_str("the secret of both"), &test_key);

    test_filters();
    test_layout();
    test_lease();
    test_steps();
    test_property();
    test_join();
    test_text();
    test_bad_text();
    test_balance();

    return done_testing();
}
