
/*
 * Frames, handshake, payloads and the client, without a socket.  The helper's
 * side of a handshake is played by hand here, so that it can cheat.
 */

#include "ron_seed.h"
#include "ron_test.h"

#include "ron_client.h"
#include "ron_port.h"


typedef struct {
    unsigned          ready_n;
    unsigned          answer_n;
    unsigned          state_n;
    unsigned          commit_n;
    uint64_t          generation;
    uint64_t          call;
    ron_frame_type_t  type;
    ron_buf_t         payload;
    ron_life_t       state;
    uint64_t          seq;
} seen_t;


static uint64_t  test_seed = UINT64_C(0x9e3779b97f4a7c15);


static uint64_t test_random(void);
static void test_frames(void);
static void test_frame_bounds(void);
static void test_frame_fuzz(void);
static void test_conn(void);
static void test_conn_long(void);
static void test_auth(void);
static void test_messages(void);
static void test_client(void);
static void test_client_refuses(void);
static void test_client_long(void);
static ron_client_t *test_client_make(seen_t *seen, const char *key);
static void test_play_hello(ron_client_t *c, ron_buf_t *hello);
static void test_play_ready(ron_client_t *c, ron_buf_t *hello,
    const char *key);
static ron_status_t test_give(ron_client_t *c, ron_frame_type_t type,
    uint16_t flags, uint64_t call, ron_str_t payload);
static void test_key(const char *text, ron_auth_key_t *key);


static uint64_t
test_random(void)
{
    return ron_seed_next(&test_seed);
}


static void
test_key(const char *text, ron_auth_key_t *key)
{
    RON_ASSERT(ron_auth_derive(ron_cstr(text), key) == RON_OK);
}


static void
test_frames(void)
{
    size_t        begin, used, i;
    unsigned      wrong;
    ron_buf_t     b;
    ron_str_t     part;
    ron_frame_t   f;
    ron_status_t  status;

    ron_buf_init(&b, 0);
    begin = ron_frame_begin(&b, RON_FRAME_OUTCOME, RON_FRAME_F_MORE,
                            UINT64_C(0x0102030405060708));
    ron_buf_put_cstr(&b, "payload");
    is_status(ron_frame_end(&b, begin), RON_OK, "a frame is written");
    is_u64(b.len, RON_FRAME_HEADER + 7, "its length");
    is_mem(b.data, "\0\0\0\x13\x03\x11\0\x01\1\2\3\4\5\6\7\x08payload", b.len,
           "its bytes are those of the header's drawing");

    is_status(ron_frame_next(ron_buf_str(&b), &f, &used), RON_OK, "read");
    is_u64(used, b.len, "all of it");
    is_u64(f.type, RON_FRAME_OUTCOME, "type");
    is_u64(f.flags, RON_FRAME_F_MORE, "flags");
    is_u64(f.call, UINT64_C(0x0102030405060708), "call");
    ok(ron_str_eq(f.payload, ron_str("payload")), "payload");

    wrong = 0;
    for (i = 0; i < b.len; i++) {
        part = (ron_str_t) { i, b.data };
        wrong += ron_frame_next(part, &f, &used) != RON_AGAIN || used != 0;
    }
    is_u64(wrong, 0, "every truncation asks for more");

    b.data[4] = RON_FRAME_VERSION + 1;
    part = (ron_str_t) { 5, b.data };
    is_status(ron_frame_next(part, &f, &used), RON_EVERSION,
              "another version is found by the fifth byte");
    b.data[4] = RON_FRAME_VERSION;

    b.data[5] = 99;
    part = (ron_str_t) { 6, b.data };
    is_status(ron_frame_next(part, &f, &used), RON_EINVAL,
              "an unknown type is found by the sixth byte");
    b.data[5] = RON_FRAME_OUTCOME;

    b.data[6] = 0x80;
    is_status(ron_frame_next(ron_buf_str(&b), &f, &used), RON_EINVAL,
              "an unknown flag is refused");
    b.data[6] = 0;
    b.data[5] = RON_FRAME_UNIT;
    is_status(ron_frame_next(ron_buf_str(&b), &f, &used), RON_EINVAL,
              "a question cannot be long");

    b.data[3] = 11;
    status = ron_frame_next((ron_str_t) { 4, b.data }, &f, &used);
    is_status(status, RON_EINVAL, "shorter than a header is refused");

    is_str(ron_state_name(RON_STATE_SAFE_MODE), "safe_mode", "state name");
    is_str(ron_state_name((ron_life_t) 77), "unknown", "no such state");
    is_str(ron_frame_name(RON_FRAME_LOOKUP_IS), "LOOKUP_IS", "frame name");

    ron_buf_free(&b);
}


static void
test_frame_bounds(void)
{
    size_t       begin, used;
    uint8_t     *p;
    ron_buf_t    b;
    ron_frame_t  f;

    ron_buf_init(&b, 0);
    ron_buf_put_cstr(&b, "before");
    begin = ron_frame_begin(&b, RON_FRAME_UNIT, 0, 1);
    p = ron_buf_reserve(&b, RON_FRAME_PAYLOAD_MAX);
    memset(p, 'x', RON_FRAME_PAYLOAD_MAX);
    b.len += RON_FRAME_PAYLOAD_MAX;
    is_status(ron_frame_end(&b, begin), RON_OK, "a frame of exactly 1 MiB");
    is_u64(b.len - begin - 4, 1024 * 1024, "1 MiB behind its length");

    is_status(ron_frame_next((ron_str_t) { b.len - begin, b.data + begin },
                             &f, &used), RON_OK, "is accepted");
    is_u64(f.payload.len, RON_FRAME_PAYLOAD_MAX, "whole");

    b.data[begin + 3] = 1;
    is_status(ron_frame_next((ron_str_t) { 4, b.data + begin }, &f, &used),
              RON_EINVAL, "one byte more is refused by its length alone");

    b.len = 6;
    begin = ron_frame_begin(&b, RON_FRAME_UNIT, 0, 1);
    p = ron_buf_reserve(&b, RON_FRAME_PAYLOAD_MAX + 1);
    memset(p, 'x', RON_FRAME_PAYLOAD_MAX + 1);
    b.len += RON_FRAME_PAYLOAD_MAX + 1;
    is_status(ron_frame_end(&b, begin), RON_EFULL, "nor is it written");
    is_u64(b.len, 6, "and it was taken back");
    ron_buf_free(&b);

    ron_buf_init(&b, 24);
    ron_buf_put_cstr(&b, "before");
    begin = ron_frame_begin(&b, RON_FRAME_UNIT, 0, 1);
    ron_buf_put_cstr(&b, "too much");
    is_status(ron_frame_end(&b, begin), RON_EFULL, "a full buffer");
    ok(b.len == 6 && !b.failed, "keeps what was before, and goes on");
    ron_buf_free(&b);
}


/* What is accepted is what would be written; the rest never goes too far. */

static void
test_frame_fuzz(void)
{
    size_t        begin, used, len, flip;
    unsigned      i, accepted, wrong;
    ron_buf_t     b, again;
    ron_frame_t   f;
    ron_status_t  status;

    ron_buf_init(&b, 0);
    ron_buf_init(&again, 0);
    accepted = 0;
    wrong = 0;

    for (i = 0; i < 200000; i++) {
        ron_buf_reset(&b);
        begin = ron_frame_begin(&b, RON_FRAME_BALANCE, 0, test_random());

        for (len = test_random() % 40; len; len--) {
            ron_buf_put_u8(&b, (uint8_t) test_random());
        }

        RON_ASSERT(ron_frame_end(&b, begin) == RON_OK);

        for (flip = test_random() % 3; flip; flip--) {
            b.data[test_random() % b.len] ^= (uint8_t) (1 << test_random() % 8);
        }

        b.len -= test_random() % 8 == 0 ? test_random() % b.len : 0;

        status = ron_frame_next(ron_buf_str(&b), &f, &used);

        if (status != RON_OK) {
            wrong += used != 0 || f.payload.len != 0;
            continue;
        }

        accepted++;
        ron_buf_reset(&again);
        begin = ron_frame_begin(&again, f.type, f.flags, f.call);
        ron_buf_put_str(&again, f.payload);
        RON_ASSERT(ron_frame_end(&again, begin) == RON_OK);
        wrong += used > b.len || used != again.len
                 || memcmp(again.data, b.data, used) != 0;
    }

    ok(accepted > 50000 && accepted < 200000, "%u of 200000 accepted",
       accepted);
    is_u64(wrong, 0, "all of them are what would be written");

    ron_buf_free(&b);
    ron_buf_free(&again);
}


static void
test_conn(void)
{
    size_t        i, n, room;
    uint8_t      *p;
    uint64_t      got, expect;
    unsigned      wrong;
    ron_conn_t    a, b;
    ron_str_t     out;
    ron_frame_t   f;
    ron_status_t  status;
    uint8_t       text[256];

    ron_conn_init(&a, 0);
    ron_conn_init(&b, 0);
    memset(text, 'y', sizeof(text));
    got = 0;
    expect = 0;
    wrong = 0;

    for (i = 0; i < 20000; i++) {
        n = test_random() % sizeof(text);
        status = ron_conn_put(&a, RON_FRAME_UNIT, 0, ++expect,
                              (ron_str_t) { n, text });
        wrong += status != RON_OK;

        out = ron_conn_output(&a);
        n = test_random() % 300;
        n = ron_min(out.len, n);
        if (n == 0) {
            continue;
        }

        p = ron_conn_space(&b, n, &room);
        RON_ASSERT(p != NULL && room >= n);
        memcpy(p, out.data, n);
        ron_conn_came(&b, n);
        ron_conn_sent(&a, n);

        while ((status = ron_conn_next(&b, &f)) == RON_OK) {
            wrong += f.call != ++got;
            wrong += f.payload.len > 0 && f.payload.data[0] != 'y';
        }
        wrong += status != RON_AGAIN;
    }

    out = ron_conn_output(&a);
    RON_ASSERT(ron_conn_feed(&b, out) == RON_OK);
    ron_conn_sent(&a, out.len);
    while (ron_conn_next(&b, &f) == RON_OK) {
        wrong += f.call != ++got;
    }

    is_u64(got, expect, "20000 frames in pieces of any size");
    is_u64(wrong, 0, "in order and whole");
    is_u64(ron_conn_output(&a).len, 0, "nothing is left to send");

    n = 0;
    while (ron_conn_put(&a, RON_FRAME_UNIT, 0, 1,
                        (ron_str_t) { sizeof(text), text }) == RON_OK)
    {
        n++;
    }
    is_u64(n, (RON_FRAME_MAX + 4) / (RON_FRAME_HEADER + sizeof(text)),
           "a peer that does not read fills exactly the bound");
    is_u64(ron_conn_output(&a).len, n * (RON_FRAME_HEADER + sizeof(text)),
           "and nothing of the refused frame stays");
    out = (ron_str_t) { RON_FRAME_PAYLOAD_MAX + 1, text };
    is_status(ron_conn_put(&b, RON_FRAME_UNIT, 0, 1, out), RON_ERANGE,
              "longer than a frame is another error");

    is_status(ron_conn_feed(&b, ron_str("\xff\xff\xff\xff")), RON_OK, "junk");
    is_status(ron_conn_next(&b, &f), RON_EINVAL, "breaks it");
    RON_ASSERT(ron_conn_feed(&b, ron_str("\0\0\0\x0c")) == RON_OK);
    is_status(ron_conn_next(&b, &f), RON_EINVAL, "for good");
    ron_conn_reset(&b);
    is_status(ron_conn_next(&b, &f), RON_AGAIN, "until it is reset");

    ron_conn_free(&a);
    ron_conn_free(&b);
}


static void
test_conn_long(void)
{
    unsigned      n;
    ron_buf_t     big;
    ron_conn_t    a, b;
    ron_frame_t   f;
    ron_str_t     out;
    uint64_t      total;

    ron_buf_init(&big, 0);
    RON_ASSERT(ron_buf_reserve(&big, 3 * RON_FRAME_PAYLOAD_MAX) != NULL);
    big.len = 2 * RON_FRAME_PAYLOAD_MAX + 5;
    memset(big.data, 'z', big.len);

    ron_conn_init(&a, 4 * RON_FRAME_MAX);
    ron_conn_init(&b, 0);

    is_status(ron_conn_put_long(&a, RON_FRAME_OUTCOME, 7, ron_buf_str(&big)),
              RON_OK, "an answer of three frames");

    total = 0;
    n = 0;

    while ((out = ron_conn_output(&a)).len > 0) {
        out.len = ron_min(out.len, (size_t) 65536);
        RON_ASSERT(ron_conn_feed(&b, out) == RON_OK);
        ron_conn_sent(&a, out.len);

        while (ron_conn_next(&b, &f) == RON_OK) {
            n++;
            total += f.payload.len;
            ok((f.flags == RON_FRAME_F_MORE) == (n < 3), "frame %u", n);
        }
    }
    is_u64(n, 3, "frames");
    is_u64(total, big.len, "bytes");

    big.len = RON_FRAME_PAYLOAD_MAX;
    is_status(ron_conn_put_long(&a, RON_FRAME_OUTCOME, 7, ron_buf_str(&big)),
              RON_OK, "a full frame");
    is_u64(ron_conn_output(&a).len, RON_FRAME_MAX + 4, "is one frame");

    big.len = 3 * RON_FRAME_PAYLOAD_MAX;
    is_status(ron_conn_put_long(&a, RON_FRAME_OUTCOME, 8, ron_buf_str(&big)),
              RON_EFULL, "all or nothing");
    is_u64(ron_conn_output(&a).len, RON_FRAME_MAX + 4, "nothing");

    ron_conn_free(&a);
    ron_conn_free(&b);
    ron_buf_free(&big);
}


static void
test_auth(void)
{
    size_t          i;
    unsigned        accepted;
    ron_buf_t       h, a, r;
    ron_auth_t      auth, got;
    ron_hello_t     hello;
    ron_ready_t     ready, seen;
    ron_auth_key_t  key, other;

    test_key("0123456789abcdef0123456789abcdef", &key);
    test_key("0123456789abcdef0123456789abcdeF", &other);
    ok(!ron_auth_equal(&key, &other, sizeof(key)), "keys differ");
    ok(memcmp(key.b, "0123456789abcdef", 16) != 0, "a key is not its root");
    is_status(ron_auth_derive(ron_str("short"), &other), RON_EINVAL,
              "a short root key is refused");
    test_key("0123456789abcdef0123456789abcdeF", &other);

    ron_buf_init(&h, 0);
    ron_buf_init(&a, 0);
    ron_buf_init(&r, 0);

    memset(&hello, 0, sizeof(hello));
    hello.version_min = RON_FRAME_VERSION;
    hello.version_max = RON_FRAME_VERSION;
    hello.generation = 42;
    memset(hello.nonce, 'h', sizeof(hello.nonce));
    ron_hello_put(&h, &hello);

    memset(&auth, 0, sizeof(auth));
    auth.version = RON_FRAME_VERSION;
    auth.slot = 3;
    auth.pid = 4711;
    memset(auth.nonce, 'a', sizeof(auth.nonce));
    is_status(ron_auth_put(&a, &key, ron_buf_str(&h), &auth), RON_OK, "auth");

    memset(&ready, 0, sizeof(ready));
    ready.state = RON_STATE_RUNNING;
    ready.seq = 9;
    ready.time_ms = 10;
    memset(ready.root.b, 'r', sizeof(ready.root.b));
    is_status(ron_ready_put(&r, &key, ron_buf_str(&h), ron_buf_str(&a),
                            &ready), RON_OK, "ready");

    is_status(ron_auth_check(ron_buf_str(&a), &key, ron_buf_str(&h), &got),
              RON_OK, "the right key");
    ok(got.slot == 3 && got.pid == 4711, "what it says");
    is_status(ron_auth_check(ron_buf_str(&a), &other, ron_buf_str(&h), &got),
              RON_ENOTFOUND, "a wrong key is refused");
    is_u64(got.pid, 0, "and tells nothing");

    is_status(ron_ready_check(ron_buf_str(&r), &key, ron_buf_str(&h),
                              ron_buf_str(&a), &seen), RON_OK, "ready");
    ok(seen.seq == 9 && seen.state == RON_STATE_RUNNING
       && ron_hash_eq(&seen.root, &ready.root), "what it says");

    accepted = 0;
    for (i = 0; i < a.len; i++) {
        a.data[i] ^= 1;
        accepted += ron_auth_check(ron_buf_str(&a), &key, ron_buf_str(&h),
                                   &got) == RON_OK;
        a.data[i] ^= 1;
    }
    for (i = 0; i < h.len; i++) {
        h.data[i] ^= 1;
        accepted += ron_auth_check(ron_buf_str(&a), &key, ron_buf_str(&h),
                                   &got) == RON_OK;
        accepted += ron_ready_check(ron_buf_str(&r), &key, ron_buf_str(&h),
                                    ron_buf_str(&a), &seen) == RON_OK;
        h.data[i] ^= 1;
    }
    for (i = 0; i < r.len; i++) {
        r.data[i] ^= 1;
        accepted += ron_ready_check(ron_buf_str(&r), &key, ron_buf_str(&h),
                                    ron_buf_str(&a), &seen) == RON_OK;
        r.data[i] ^= 1;
    }
    is_u64(accepted, 0, "no byte of a transcript can be changed");

    memcpy(r.data + r.len - RON_FRAME_MAC_LEN,
           a.data + a.len - RON_FRAME_MAC_LEN, RON_FRAME_MAC_LEN);
    is_status(ron_ready_check(ron_buf_str(&r), &key, ron_buf_str(&h),
                              ron_buf_str(&a), &seen), RON_ENOTFOUND,
              "a reflected mac is refused");

    hello.nonce[0] = 'i';
    ron_buf_reset(&h);
    ron_hello_put(&h, &hello);
    is_status(ron_auth_check(ron_buf_str(&a), &key, ron_buf_str(&h), &got),
              RON_ENOTFOUND, "a replayed auth is refused");

    hello.version_min = RON_FRAME_VERSION + 1;
    hello.version_max = RON_FRAME_VERSION + 3;
    ron_buf_reset(&h);
    ron_hello_put(&h, &hello);
    is_status(ron_hello_get(ron_buf_str(&h), &hello), RON_EVERSION,
              "nothing in common with a newer helper");
    h.len--;
    is_status(ron_hello_get(ron_buf_str(&h), &hello), RON_EINVAL, "short");
    a.len--;
    is_status(ron_auth_check(ron_buf_str(&a), &key, ron_buf_str(&h), &got),
              RON_EINVAL, "short");

    ron_buf_free(&h);
    ron_buf_free(&a);
    ron_buf_free(&r);
}


#define test_cuts(b, call, text)                                              \
    do {                                                                      \
        size_t    cut_, len_ = (b)->len;                                      \
        unsigned  bad_ = 0;                                                   \
                                                                              \
        for (cut_ = 0; cut_ < len_; cut_++) {                                 \
            (b)->len = cut_;                                                  \
            bad_ += (call) != RON_EINVAL;                                     \
        }                                                                     \
        (b)->len = len_;                                                      \
        ron_buf_put_u8((b), 0);                                               \
        bad_ += (call) != RON_EINVAL;                                         \
        (b)->len = len_;                                                      \
        is_u64(bad_, 0, text ": nothing shorter or longer");                  \
    } while (0)


static void
test_messages(void)
{
    ron_buf_t          b;
    ron_str_t          x, y;
    ron_result_t       results[2], got_results[2];
    ron_outcome_t      outcome, got_outcome;
    ron_msg_admin_t    admin, got_admin;
    ron_msg_batch_t    batch, got_batch;
    ron_msg_ask_t      ask;
    ron_msg_state_t    state;
    ron_msg_lookup_t   lookup;
    ron_msg_commit_t   commit, got_commit;
    ron_msg_balance_t  balance, got_balance;

    ron_buf_init(&b, 0);

    memset(&balance, 0, sizeof(balance));
    balance.found = true;
    balance.available = ((ron_u128_t) 7 << 100) + 5;
    balance.held = 3;
    balance.nonce = 12;
    balance.version = 13;
    balance.seq = 14;
    balance.time_ms = 15;
    ron_msg_balance_put(&b, &balance);
    is_status(ron_msg_balance_get(ron_buf_str(&b), &got_balance), RON_OK,
              "balance");
    ok(got_balance.found && got_balance.available == balance.available
       && got_balance.held == 3 && got_balance.nonce == 12
       && got_balance.version == 13 && got_balance.seq == 14
       && got_balance.time_ms == 15, "comes back");
    test_cuts(&b, ron_msg_balance_get(ron_buf_str(&b), &got_balance),
              "balance");
    b.data[0] = 2;
    is_status(ron_msg_balance_get(ron_buf_str(&b), &got_balance), RON_OK,
              "unavailable");
    ok(got_balance.unavailable && !got_balance.found, "is neither");
    b.data[0] = 3;
    is_status(ron_msg_balance_get(ron_buf_str(&b), &got_balance), RON_EINVAL,
              "and there is nothing else");

    ron_buf_reset(&b);
    ron_msg_two_put(&b, ron_str("acc_a"), ron_str("ron"));
    is_status(ron_msg_two_get(ron_buf_str(&b), &x, &y), RON_OK, "two");
    ok(ron_str_eq(x, ron_str("acc_a")) && ron_str_eq(y, ron_str("ron")),
       "come back");
    test_cuts(&b, ron_msg_two_get(ron_buf_str(&b), &x, &y), "two");

    ron_buf_reset(&b);
    ask = (ron_msg_ask_t) { ron_str("acc_a"), ron_str("dev:one"),
                            ron_str("k") };
    ron_msg_ask_put(&b, &ask);
    is_status(ron_msg_ask_get(ron_buf_str(&b), &ask), RON_OK, "ask");
    ok(ron_str_eq(ask.account, ron_str("acc_a"))
       && ron_str_eq(ask.cap, ron_str("dev:one"))
       && ron_str_eq(ask.key, ron_str("k")), "comes back");
    test_cuts(&b, ron_msg_ask_get(ron_buf_str(&b), &ask), "ask");

    ron_buf_reset(&b);
    lookup.what = RON_LOOKUP_COMMITTED;
    lookup.batch = true;
    lookup.entry = ron_str("entry bytes");
    ron_msg_lookup_put(&b, &lookup);
    is_status(ron_msg_lookup_get(ron_buf_str(&b), &lookup), RON_OK, "lookup");
    ok(lookup.what == RON_LOOKUP_COMMITTED && lookup.batch
       && ron_str_eq(lookup.entry, ron_str("entry bytes")), "comes back");
    test_cuts(&b, ron_msg_lookup_get(ron_buf_str(&b), &lookup), "lookup");
    b.data[1] = 2;
    is_status(ron_msg_lookup_get(ron_buf_str(&b), &lookup), RON_EINVAL,
              "of a batch or not");
    b.data[0] = RON_LOOKUP_PENDING;
    is_status(ron_msg_lookup_get(ron_buf_str(&b), &lookup), RON_EINVAL,
              "only a committed one has bytes");
    ron_buf_reset(&b);
    lookup.what = RON_LOOKUP_PENDING;
    lookup.batch = true;
    lookup.entry = ron_null_str;
    ron_msg_lookup_put(&b, &lookup);
    is_status(ron_msg_lookup_get(ron_buf_str(&b), &lookup), RON_EINVAL,
              "and is of a batch");

    ron_buf_reset(&b);
    memset(&admin, 0, sizeof(admin));
    admin.status = RON_ADMIN_REFUSED;
    admin.text = ron_str("why");
    ron_msg_admin_add(&admin, ron_str("seq"), ron_str("12"));
    ron_msg_admin_add(&admin, ron_str("state"), ron_str("running"));
    ron_msg_admin_put(&b, &admin);
    is_status(ron_msg_admin_get(ron_buf_str(&b), &got_admin), RON_OK, "admin");
    ok(got_admin.status == RON_ADMIN_REFUSED && got_admin.pair_n == 2
       && ron_str_eq(got_admin.pair[1].value, ron_str("running")),
       "comes back");
    test_cuts(&b, ron_msg_admin_get(ron_buf_str(&b), &got_admin), "admin");

    ron_buf_reset(&b);
    state.state = RON_STATE_DRAINING;
    state.reason = ron_str("operator");
    ron_msg_state_put(&b, &state);
    is_status(ron_msg_state_get(ron_buf_str(&b), &state), RON_OK, "state");
    ok(state.state == RON_STATE_DRAINING
       && ron_str_eq(state.reason, ron_str("operator")), "comes back");
    test_cuts(&b, ron_msg_state_get(ron_buf_str(&b), &state), "state");

    ron_buf_reset(&b);
    memset(&commit, 0, sizeof(commit));
    commit.seq = 5;
    commit.count = 6;
    commit.time_ms = 7;
    commit.root.b[31] = 8;
    ron_msg_commit_put(&b, &commit);
    is_status(ron_msg_commit_get(ron_buf_str(&b), &got_commit), RON_OK,
              "commit");
    ok(got_commit.seq == 5 && got_commit.count == 6 && got_commit.time_ms == 7
       && got_commit.root.b[31] == 8, "comes back");
    test_cuts(&b, ron_msg_commit_get(ron_buf_str(&b), &got_commit), "commit");

    ron_buf_reset(&b);
    memset(&outcome, 0, sizeof(outcome));
    memset(results, 0, sizeof(results));
    memset(&batch, 0, sizeof(batch));
    batch.size = 77;
    batch.time_ms = 78;
    results[0].seq = 76;
    results[1].reason = RON_REASON_INSUFFICIENT;
    outcome.result_n = 2;
    outcome.results = results;
    is_status(ron_msg_outcome_put(&b, &batch, &outcome), RON_OK, "outcome");
    is_status(ron_msg_outcome_get(ron_buf_str(&b), &got_batch, &got_outcome,
                                  got_results, 2), RON_OK, "outcome");
    ok(got_batch.size == 77 && got_batch.time_ms == 78
       && got_outcome.result_n == 2 && got_outcome.results[0].seq == 76
       && got_outcome.results[1].reason == RON_REASON_INSUFFICIENT,
       "comes back");
    b.len = RON_HASH_LEN + 15;
    is_status(ron_msg_outcome_get(ron_buf_str(&b), &got_batch, &got_outcome,
                                  got_results, 2), RON_EINVAL, "cut off");

    ron_buf_free(&b);
}


static void
test_on_ready(void *ctx, const ron_hello_t *hello, const ron_ready_t *ready)
{
    seen_t  *seen = ctx;

    seen->ready_n++;
    seen->generation = hello->generation;
    seen->state = ready->state;
    seen->seq = ready->seq;
}


static void
test_on_answer(void *ctx, uint64_t call, ron_frame_type_t type,
    ron_str_t payload)
{
    seen_t  *seen = ctx;

    seen->answer_n++;
    seen->call = call;
    seen->type = type;
    ron_buf_reset(&seen->payload);
    ron_buf_put_str(&seen->payload, payload);
}


static void
test_on_state(void *ctx, const ron_msg_state_t *state)
{
    seen_t  *seen = ctx;

    seen->state_n++;
    seen->state = state->state;
}


static void
test_on_commit(void *ctx, const ron_msg_commit_t *commit)
{
    seen_t  *seen = ctx;

    seen->commit_n++;
    seen->seq = commit->seq;
}


static ron_client_t *
test_client_make(seen_t *seen, const char *key)
{
    ron_client_t       *c;
    ron_client_conf_t   conf;

    memset(seen, 0, sizeof(seen_t));
    ron_buf_init(&seen->payload, 0);

    ron_client_conf_init(&conf);
    test_key(key, &conf.key);
    conf.slot = 1;
    conf.pid = 2;
    conf.answer_max = 3 * 1024 * 1024;
    conf.on_ready = test_on_ready;
    conf.on_answer = test_on_answer;
    conf.on_state = test_on_state;
    conf.on_commit = test_on_commit;
    conf.ctx = seen;

    RON_ASSERT(ron_client_create(&conf, &c) == RON_OK);
    ron_client_reset(c);

    return c;
}


static ron_status_t
test_give(ron_client_t *c, ron_frame_type_t type, uint16_t flags,
    uint64_t call, ron_str_t payload)
{
    size_t        begin;
    ron_buf_t     b;
    ron_status_t  status;

    ron_buf_init(&b, 0);
    begin = ron_frame_begin(&b, type, flags, call);
    ron_buf_put_str(&b, payload);
    RON_ASSERT(ron_frame_end(&b, begin) == RON_OK);
    status = ron_client_feed(c, ron_buf_str(&b));
    ron_buf_free(&b);

    return status;
}


static void
test_play_hello(ron_client_t *c, ron_buf_t *hello)
{
    ron_hello_t  h;

    memset(&h, 0, sizeof(h));
    h.version_min = RON_FRAME_VERSION;
    h.version_max = RON_FRAME_VERSION;
    h.generation = 99;
    memset(h.nonce, 'n', sizeof(h.nonce));

    ron_buf_reset(hello);
    ron_hello_put(hello, &h);
    is_status(test_give(c, RON_FRAME_HELLO, 0, 0, ron_buf_str(hello)), RON_OK,
              "hello");
}


/* Takes the client's AUTH from its output and answers it. */

static void
test_play_ready(ron_client_t *c, ron_buf_t *hello, const char *text)
{
    size_t          used;
    ron_buf_t       ready;
    ron_str_t       out;
    ron_auth_t      auth;
    ron_frame_t     f;
    ron_ready_t     r;
    ron_auth_key_t  key;

    out = ron_client_output(c);
    RON_ASSERT(ron_frame_next(out, &f, &used) == RON_OK);
    RON_ASSERT(f.type == RON_FRAME_AUTH && used == out.len);

    test_key(text, &key);
    is_status(ron_auth_check(f.payload, &key, ron_buf_str(hello), &auth),
              RON_OK, "the client proves its key");
    ok(auth.slot == 1 && auth.pid == 2, "and says who it is");

    memset(&r, 0, sizeof(r));
    r.state = RON_STATE_RUNNING;
    r.seq = 1234;
    ron_buf_init(&ready, 0);
    RON_ASSERT(ron_ready_put(&ready, &key, ron_buf_str(hello), f.payload, &r)
               == RON_OK);
    ron_client_sent(c, used);
    is_status(test_give(c, RON_FRAME_READY, 0, 0, ron_buf_str(&ready)),
              RON_OK, "ready");
    ron_buf_free(&ready);
}


#define TEST_KEY  "a root key of at least sixteen bytes"


static void
test_client(void)
{
    size_t        used;
    seen_t        seen;
    uint64_t      call, other;
    ron_buf_t     hello;
    ron_str_t     x, y;
    ron_frame_t   f;
    ron_client_t  *c;

    ron_buf_init(&hello, 0);
    c = test_client_make(&seen, TEST_KEY);

    ok(!ron_client_ready(c), "not ready before the handshake");
    is_status(ron_client_unit_wire(c, 1, ron_str("u")), RON_AGAIN,
              "and nothing is sent");

    test_play_hello(c, &hello);
    ok(!ron_client_ready(c), "not ready after hello");
    test_play_ready(c, &hello, TEST_KEY);
    ok(ron_client_ready(c), "ready");
    ok(seen.ready_n == 1 && seen.generation == 99 && seen.seq == 1234,
       "and on_ready was told");
    is_u64(ron_client_state(c), RON_STATE_RUNNING, "state");

    call = ron_client_call(c);
    is_status(ron_client_balance(c, call, ron_str("acc"), ron_str("ron")),
              RON_OK, "balance");
    RON_ASSERT(ron_frame_next(ron_client_output(c), &f, &used) == RON_OK);
    ok(f.type == RON_FRAME_BALANCE && f.call == call, "is a frame");
    is_status(ron_msg_two_get(f.payload, &x, &y), RON_OK, "of two strings");
    ron_client_sent(c, used);

    is_status(ron_client_admin(c, call, RON_ADMIN_STAT, ron_null_str), RON_OK,
              "admin");
    RON_ASSERT(ron_frame_next(ron_client_output(c), &f, &used) == RON_OK);
    ok(f.payload.len == 1 && f.payload.data[0] == RON_ADMIN_STAT, "one byte");
    ron_client_sent(c, used);

    is_status(ron_client_unit_wire(c, 0, ron_str("u")), RON_EINVAL,
              "call 0 is nobody's");
    x = (ron_str_t) { RON_FRAME_PAYLOAD_MAX + 1, (const uint8_t *) "" };
    is_status(ron_client_unit_wire(c, call, x), RON_ERANGE,
              "a unit longer than a frame");

    is_status(test_give(c, RON_FRAME_BALANCE_IS, 0, call, ron_str("answer")),
              RON_OK, "answer");
    ok(seen.answer_n == 1 && seen.call == call
       && seen.type == RON_FRAME_BALANCE_IS
       && ron_str_eq(ron_buf_str(&seen.payload), ron_str("answer")),
       "comes to on_answer");

    is_status(test_give(c, RON_FRAME_STATE, 0, 0, ron_str("\3\0")), RON_OK,
              "state");
    ok(seen.state_n == 1 && ron_client_state(c) == RON_STATE_DRAINING,
       "is noticed");

    ron_client_reset(c);
    ok(!ron_client_ready(c), "a new connection begins at hello");
    other = ron_client_call(c);
    ok(other > call, "but call ids go on");
    test_play_hello(c, &hello);
    test_play_ready(c, &hello, TEST_KEY);
    is_u64(seen.ready_n, 2, "ready again");

    ron_client_destroy(c);
    ron_buf_free(&hello);
    ron_buf_free(&seen.payload);
}


static void
test_client_refuses(void)
{
    size_t          used;
    seen_t          seen;
    ron_buf_t       hello, ready;
    ron_frame_t     f;
    ron_ready_t     r;
    ron_client_t   *c;
    ron_auth_key_t  key;

    ron_buf_init(&hello, 0);
    ron_buf_init(&ready, 0);
    c = test_client_make(&seen, TEST_KEY);

    is_status(test_give(c, RON_FRAME_OUTCOME, 0, 1, ron_str("x")), RON_EINVAL,
              "an outcome before hello");
    is_status(ron_client_feed(c, ron_null_str), RON_EINVAL, "stays broken");

    ron_client_reset(c);
    test_play_hello(c, &hello);
    RON_ASSERT(ron_frame_next(ron_client_output(c), &f, &used) == RON_OK);
    test_key("another root key that is long enough", &key);
    memset(&r, 0, sizeof(r));
    RON_ASSERT(ron_ready_put(&ready, &key, ron_buf_str(&hello), f.payload, &r)
               == RON_OK);
    is_status(test_give(c, RON_FRAME_READY, 0, 0, ron_buf_str(&ready)),
              RON_ENOTFOUND, "a helper with another key is refused");
    ok(!ron_client_ready(c) && seen.ready_n == 0, "and nobody was told");

    ron_client_reset(c);
    test_play_hello(c, &hello);
    RON_ASSERT(ron_frame_next(ron_client_output(c), &f, &used) == RON_OK);
    ron_buf_reset(&ready);
    test_key(TEST_KEY, &key);
    RON_ASSERT(ron_ready_put(&ready, &key, ron_buf_str(&hello), f.payload, &r)
               == RON_OK);
    memcpy(ready.data + ready.len - RON_FRAME_MAC_LEN,
           f.payload.data + f.payload.len - RON_FRAME_MAC_LEN,
           RON_FRAME_MAC_LEN);
    is_status(test_give(c, RON_FRAME_READY, 0, 0, ron_buf_str(&ready)),
              RON_ENOTFOUND, "the client's own mac, reflected, is refused");

    ron_client_reset(c);
    test_play_hello(c, &hello);
    is_status(test_give(c, RON_FRAME_HELLO, 0, 0, ron_buf_str(&hello)),
              RON_EINVAL, "a second hello");

    ron_client_reset(c);
    test_play_hello(c, &hello);
    test_play_ready(c, &hello, TEST_KEY);
    is_status(test_give(c, RON_FRAME_UNIT, 0, 1, ron_str("x")), RON_EINVAL,
              "a question from the helper");
    ok(!ron_client_ready(c), "ends being ready");

    ron_client_destroy(c);
    ron_buf_free(&hello);
    ron_buf_free(&ready);
    ron_buf_free(&seen.payload);
}


static void
test_client_long(void)
{
    seen_t            seen;
    uint8_t          *p;
    ron_buf_t         hello, commit;
    ron_str_t         part;
    ron_client_t     *c;
    ron_status_t      status;
    ron_msg_commit_t  m;

    ron_buf_init(&hello, 0);
    ron_buf_init(&commit, 0);
    c = test_client_make(&seen, TEST_KEY);
    test_play_hello(c, &hello);
    test_play_ready(c, &hello, TEST_KEY);

    memset(&m, 0, sizeof(m));
    m.seq = 55;
    ron_msg_commit_put(&commit, &m);

    status = test_give(c, RON_FRAME_OUTCOME, RON_FRAME_F_MORE, 5,
                       ron_str("one "));
    is_status(status, RON_OK, "the first part");
    is_u64(seen.answer_n, 0, "is no answer yet");
    is_status(test_give(c, RON_FRAME_COMMIT, 0, 0, ron_buf_str(&commit)),
              RON_OK, "a push in between");
    ok(seen.commit_n == 1 && seen.seq == 55, "is noticed");
    is_status(test_give(c, RON_FRAME_OUTCOME, RON_FRAME_F_MORE, 5,
                        ron_str("two ")), RON_OK, "the second part");
    is_status(test_give(c, RON_FRAME_OUTCOME, 0, 5, ron_str("three")), RON_OK,
              "the last");
    ok(seen.answer_n == 1
       && ron_str_eq(ron_buf_str(&seen.payload), ron_str("one two three")),
       "are one answer");

    is_status(test_give(c, RON_FRAME_OUTCOME, RON_FRAME_F_MORE, 6,
                        ron_str("one")), RON_OK, "a part of call 6");
    is_status(test_give(c, RON_FRAME_OUTCOME, 0, 7, ron_str("x")), RON_EINVAL,
              "and then of call 7");

    ron_client_reset(c);
    test_play_hello(c, &hello);
    test_play_ready(c, &hello, TEST_KEY);
    p = calloc(1, RON_FRAME_PAYLOAD_MAX);
    RON_ASSERT(p != NULL);
    part = (ron_str_t) { RON_FRAME_PAYLOAD_MAX, p };
    is_status(test_give(c, RON_FRAME_OUTCOME, RON_FRAME_F_MORE, 8, part),
              RON_OK, "1 MiB");
    is_status(test_give(c, RON_FRAME_OUTCOME, RON_FRAME_F_MORE, 8, part),
              RON_OK, "2 MiB");
    is_status(test_give(c, RON_FRAME_OUTCOME, RON_FRAME_F_MORE, 8, part),
              RON_OK, "3 MiB");
    is_status(test_give(c, RON_FRAME_OUTCOME, RON_FRAME_F_MORE, 8, part),
              RON_EFULL, "a bound of 3 MiB holds");
    free(p);

    ron_client_destroy(c);
    ron_buf_free(&hello);
    ron_buf_free(&commit);
    ron_buf_free(&seen.payload);
}


int
main(void)
{
    test_frames();
    test_frame_bounds();
    test_frame_fuzz();
    test_conn();
    test_conn_long();
    test_auth();
    test_messages();
    test_client();
    test_client_refuses();
    test_client_long();

    return done_testing();
}
