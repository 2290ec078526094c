
/*
 * The service over real sockets: clients in threads, disconnects, full
 * queues, draining, safe mode, taking over from a killed process.
 */

#include "ron_test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ron_client.h"
#include "ron_log.h"
#include "ron_note.h"
#include "ron_port.h"
#include "ron_service.h"


#define CLIENTS      8
#define ANSWERS      4400
#define WAIT_US      20000000
#define TEST_KEY     "a root key of at least sixteen bytes"


typedef struct {
    uint64_t          call;
    ron_frame_type_t  type;
    ron_buf_t         payload;
} answer_t;

typedef struct {
    int            fd;
    ron_client_t  *c;
    bool           ready;
    answer_t       answers[ANSWERS];
    unsigned       answer_n;
    unsigned       final_commits;
    unsigned       commits;
    uint64_t       ready_seq;
    ron_life_t    state;
    unsigned      states;               /* those that were told, as bits */
    char           reason[RON_MSG_REASON_MAX + 1];
} tc_t;

typedef struct {
    unsigned   no;
    unsigned   n;
    unsigned   failures;
    unsigned   resends;
    bool       disconnects;
    pthread_t  tid;
} load_t;


static char      test_dir[64];
static char      test_url[128];
static char      test_sock[128];
static uint64_t  test_keys;


static ron_auth_key_t
test_auth_key(const char *root)
{
    ron_auth_key_t  key;

    RON_ASSERT(ron_auth_derive(ron_cstr(root), &key) == RON_OK);

    return key;
}


/* ---- a client with a socket --------------------------------------------- */

static void
tc_on_ready(void *ctx, const ron_hello_t *hello, const ron_ready_t *ready)
{
    tc_t  *tc = ctx;

    (void) hello;
    tc->ready = true;
    tc->state = ready->state;
    tc->ready_seq = ready->seq;
}


static void
tc_on_answer(void *ctx, uint64_t call, ron_frame_type_t type,
    ron_str_t payload)
{
    tc_t      *tc = ctx;
    answer_t  *a;

    RON_ASSERT(tc->answer_n < ANSWERS);
    a = &tc->answers[tc->answer_n++];
    a->call = call;
    a->type = type;
    ron_buf_reset(&a->payload);
    ron_buf_put_str(&a->payload, payload);
}


static void
tc_on_state(void *ctx, const ron_msg_state_t *state)
{
    tc_t  *tc = ctx;

    tc->state = state->state;
    tc->states |= 1u << state->state;
    (void) snprintf(tc->reason, sizeof(tc->reason), "%.*s",
                    (int) state->reason.len,
                    (const char *) state->reason.data);
}


static void
tc_on_commit(void *ctx, const ron_msg_commit_t *commit)
{
    tc_t  *tc = ctx;

    tc->commits++;
    tc->final_commits += commit->count == 0;
}


static tc_t *
tc_make_key(const char *root)
{
    tc_t               *tc;
    ron_client_conf_t   conf;

    tc = calloc(1, sizeof(tc_t));
    RON_ASSERT(tc != NULL);
    tc->fd = -1;

    ron_client_conf_init(&conf);
    conf.key = test_auth_key(root);
    conf.slot = 1;
    conf.pid = (uint32_t) getpid();
    conf.on_ready = tc_on_ready;
    conf.on_answer = tc_on_answer;
    conf.on_state = tc_on_state;
    conf.on_commit = tc_on_commit;
    conf.ctx = tc;
    RON_ASSERT(ron_client_create(&conf, &tc->c) == RON_OK);

    return tc;
}


static void
tc_close(tc_t *tc)
{
    if (tc->fd != -1) {
        close(tc->fd);
        tc->fd = -1;
    }

    tc->ready = false;
    ron_client_reset(tc->c);
}


static void
tc_free(tc_t *tc)
{
    unsigned  i;

    tc_close(tc);
    ron_client_destroy(tc->c);

    for (i = 0; i < ANSWERS; i++) {
        ron_buf_free(&tc->answers[i].payload);
    }

    free(tc);
}


static int
tc_socket(const char *path)
{
    int                 fd;
    struct sockaddr_un  addr;

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RON_ASSERT(fd != -1);
    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;
    RON_ASSERT(strlen(path) < sizeof(addr.sun_path));
    memcpy(addr.sun_path, path, strlen(path));

    if (connect(fd, (struct sockaddr *) &addr, sizeof(addr)) == -1) {
        close(fd);
        return -1;
    }

    RON_ASSERT(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);

    return fd;
}


/* Writes and reads once; false when the connection is lost. */

static bool
tc_pump(tc_t *tc, int timeout_ms)
{
    size_t         room;
    ssize_t        n;
    uint8_t       *p;
    ron_str_t      out;
    struct pollfd  pfd;

    out = ron_client_output(tc->c);
    pfd.fd = tc->fd;
    pfd.events = (short) (POLLIN | (out.len ? POLLOUT : 0));
    pfd.revents = 0;

    if (poll(&pfd, 1, timeout_ms) <= 0) {
        return true;
    }

    if (out.len > 0 && (pfd.revents & POLLOUT)) {
        n = send(tc->fd, out.data, out.len, MSG_NOSIGNAL);
        if (n == -1) {
            return errno == EAGAIN;
        }
        ron_client_sent(tc->c, (size_t) n);
    }

    if (pfd.revents & (POLLIN | POLLHUP)) {
        p = ron_client_space(tc->c, 65536, &room);
        RON_ASSERT(p != NULL);
        n = recv(tc->fd, p, room, 0);

        if (n <= 0) {
            return n == -1 && errno == EAGAIN;
        }

        return ron_client_came(tc->c, (size_t) n) == RON_OK;
    }

    return true;
}


/* Until ready, or the time is over. */

static bool
tc_connect(tc_t *tc)
{
    uint64_t  end;

    end = ron_clock_mono_us() + WAIT_US;

    while (ron_clock_mono_us() < end) {
        tc_close(tc);
        tc->fd = tc_socket(test_sock);

        if (tc->fd == -1) {
            ron_sleep_us(2000);
            continue;
        }

        while (tc_pump(tc, 50) && ron_clock_mono_us() < end) {
            if (tc->ready) {
                return true;
            }
        }

        ron_sleep_us(2000);
    }

    return false;
}


static tc_t *
tc_make(void)
{
    tc_t  *tc;

    tc = tc_make_key(TEST_KEY);
    RON_ASSERT(tc_connect(tc));

    return tc;
}


static answer_t *
tc_find(tc_t *tc, uint64_t call)
{
    unsigned  i;

    for (i = 0; i < tc->answer_n; i++) {
        if (tc->answers[i].call == call) {
            return &tc->answers[i];
        }
    }

    return NULL;
}


static answer_t *
tc_wait(tc_t *tc, uint64_t call)
{
    uint64_t   end;
    answer_t  *a;

    end = ron_clock_mono_us() + WAIT_US;

    do {
        a = tc_find(tc, call);
        if (a != NULL) {
            return a;
        }
    } while (tc_pump(tc, 100) && ron_clock_mono_us() < end);

    return tc_find(tc, call);
}


static void
tc_pump_until(tc_t *tc, ron_life_t state)
{
    uint64_t  end;

    end = ron_clock_mono_us() + WAIT_US;

    while (tc->state != state && tc_pump(tc, 50)
           && ron_clock_mono_us() < end)
    { /* void */ }
}


/* ---- units -------------------------------------------------------------- */

static void
test_wire(ron_buf_t *wire, ron_kind_t kind, const char *from, const char *to,
    uint64_t amount, uint64_t nonce, const char *key)
{
    ron_unit_t   unit;
    ron_entry_t  op;

    memset(&op, 0, sizeof(op));
    op.kind = kind;
    op.asset = ron_str("ron");
    op.account = ron_cstr(from);
    op.amount = amount;
    op.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;

    if (to != NULL) {
        op.to = ron_cstr(to);
        op.fields |= RON_F_TO;
    }

    if (nonce > 0) {
        op.nonce = nonce;
        op.fields |= RON_F_NONCE;
    }

    if (kind == RON_KIND_HOLD) {
        op.expiry_ms = 400;
        op.fields |= RON_F_EXPIRY;
    }

    memset(&unit, 0, sizeof(unit));
    unit.type = RON_UNIT_WALLET;
    unit.source_us = ron_clock_wall_ms() * 1000;
    unit.cap = ron_str("dev:test");
    unit.key = ron_cstr(key);
    unit.op_n = 1;
    unit.ops = &op;

    ron_buf_reset(wire);
    RON_ASSERT(ron_unit_encode(&unit, wire) == RON_OK);
}


static ron_status_t
test_outcome(const answer_t *a, ron_reason_t *reason, uint64_t *seq)
{
    ron_status_t     status;
    ron_result_t     results[4];
    ron_outcome_t    outcome;
    ron_msg_batch_t  batch;

    *seq = 0;
    *reason = RON_REASON_N;

    if (a == NULL || a->type != RON_FRAME_OUTCOME) {
        return RON_ENOTFOUND;
    }

    status = ron_msg_outcome_get(ron_buf_str(&a->payload), &batch, &outcome,
                                 results, 4);
    if (status != RON_OK) {
        return status;
    }

    *reason = outcome.reason;

    if (outcome.result_n > 0) {
        *seq = outcome.results[0].seq;
    }

    return RON_OK;
}


/* One unit, one answer: its reason. */

static ron_reason_t
test_one(tc_t *tc, ron_kind_t kind, const char *from, const char *to,
    uint64_t amount, uint64_t nonce)
{
    char          key[32];
    uint64_t      call, seq;
    ron_buf_t     wire;
    ron_reason_t  reason;

    (void) snprintf(key, sizeof(key), "one-%llu",
                    (unsigned long long) ++test_keys);
    ron_buf_init(&wire, 0);
    test_wire(&wire, kind, from, to, amount, nonce, key);

    tc->answer_n = 0;
    call = ron_client_call(tc->c);
    RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
               == RON_OK);
    (void) test_outcome(tc_wait(tc, call), &reason, &seq);
    ron_buf_free(&wire);

    return reason;
}


static bool
test_balance(tc_t *tc, const char *account, ron_msg_balance_t *balance)
{
    uint64_t   call;
    answer_t  *a;

    memset(balance, 0, sizeof(*balance));
    tc->answer_n = 0;
    call = ron_client_call(tc->c);
    RON_ASSERT(ron_client_balance(tc->c, call, ron_cstr(account),
                                  ron_str("ron")) == RON_OK);
    a = tc_wait(tc, call);

    return a != NULL && a->type == RON_FRAME_BALANCE_IS
           && ron_msg_balance_get(ron_buf_str(&a->payload), balance) == RON_OK;
}


static ron_status_t
test_ask(tc_t *tc, uint64_t call, const char *account, const char *cap,
    const char *key)
{
    ron_msg_ask_t  ask;

    ask.account = ron_cstr(account);
    ask.cap = ron_cstr(cap);
    ask.key = ron_cstr(key);

    return ron_client_lookup(tc->c, call, &ask);
}


static ron_lookup_t
test_lookup(tc_t *tc, const char *account, const char *key)
{
    uint64_t          call;
    answer_t         *a;
    ron_msg_lookup_t  lookup;

    tc->answer_n = 0;
    call = ron_client_call(tc->c);
    RON_ASSERT(test_ask(tc, call, account, "dev:test", key) == RON_OK);
    a = tc_wait(tc, call);

    RON_ASSERT(a != NULL && a->type == RON_FRAME_LOOKUP_IS
               && ron_msg_lookup_get(ron_buf_str(&a->payload), &lookup)
                  == RON_OK);

    return lookup.what;
}


static ron_admin_status_t
test_admin(tc_t *tc, ron_admin_t what, ron_msg_admin_t *admin)
{
    uint64_t   call;
    answer_t  *a;

    tc->answer_n = 0;
    call = ron_client_call(tc->c);
    RON_ASSERT(ron_client_admin(tc->c, call, what, ron_null_str) == RON_OK);
    a = tc_wait(tc, call);

    if (a == NULL || a->type != RON_FRAME_ADMIN_IS
        || ron_msg_admin_get(ron_buf_str(&a->payload), admin) != RON_OK)
    {
        return RON_ADMIN_STATUS_N;
    }

    return admin->status;
}


/* An operator tries until the committer is no longer busy. */

static void
test_leave(tc_t *tc)
{
    unsigned         i;
    ron_msg_admin_t  admin;

    for (i = 0; i < 200; i++) {
        if (test_admin(tc, RON_ADMIN_SAFE_LEAVE, &admin) == RON_ADMIN_DONE) {
            break;
        }
        ron_sleep_us(20000);
    }

    is_u64(admin.status, RON_ADMIN_DONE, "an operator ends safe mode");
}


/* ---- services ----------------------------------------------------------- */

static void
test_conf(ron_service_conf_t *conf, const char *name)
{
    (void) snprintf(test_url, sizeof(test_url), "sqlite:%s/%s", test_dir,
                    name);
    (void) snprintf(test_sock, sizeof(test_sock), "%s/%s.sock", test_dir,
                    name);

    ron_service_conf_init(conf);
    conf->engine.store.url = test_url;
    conf->engine.store.create = true;
    conf->engine.tag_ram = 8 * 1024 * 1024;
    conf->engine.key_ram = 8 * 1024 * 1024;
    conf->socket = test_sock;
    conf->generation = 1;
    memcpy(conf->auth_key, test_auth_key(TEST_KEY).b, RON_AUTH_KEY_LEN);
}


static ron_life_t
test_until(ron_service_t *s, ron_life_t state)
{
    uint64_t            end;
    ron_service_stat_t  stat;

    end = ron_clock_mono_us() + WAIT_US;

    do {
        ron_service_stat(s, &stat);
        if (stat.state == state) {
            break;
        }
        ron_sleep_us(1000);
    } while (ron_clock_mono_us() < end);

    return stat.state;
}


static ron_service_t *
test_start(const ron_service_conf_t *conf)
{
    ron_service_t  *s;

    is_status(ron_service_start(conf, &s), RON_OK, "the service starts");
    is_u64(test_until(s, RON_STATE_RUNNING), RON_STATE_RUNNING, "and runs");

    return s;
}


static void
test_stop(ron_service_t *s)
{
    is_status(ron_service_stop(s, 10000), RON_OK, "it stops in time");
}


/* ---- load with disconnects ---------------------------------------------- */

static bool
load_one(load_t *load, tc_t *tc, const ron_buf_t *wire, unsigned *seed)
{
    unsigned       tries;
    uint64_t       call, seq;
    answer_t      *a;
    ron_reason_t   reason;

    for (tries = 0; tries < 2000; tries++) {
        if (tc->fd == -1 && !tc_connect(tc)) {
            return false;
        }

        tc->answer_n = 0;
        call = ron_client_call(tc->c);

        if (ron_client_unit_wire(tc->c, call, ron_buf_str(wire)) != RON_OK) {
            tc_close(tc);
            continue;
        }

        if (load->disconnects && rand_r(seed) % 4 == 0) {
            /* Gone before the answer, with or without having sent it. */
            if (rand_r(seed) % 4 != 0) {
                (void) tc_pump(tc, 10);
            }
            tc_close(tc);
            load->resends++;
            continue;
        }

        a = tc_wait(tc, call);

        if (a == NULL) {
            tc_close(tc);
            load->resends++;
            continue;
        }

        if (test_outcome(a, &reason, &seq) != RON_OK) {
            return false;
        }

        if (reason == RON_REASON_OK && seq > 0) {
            return true;
        }

        if (ron_reason_info(reason)->status != 503
            && ron_reason_info(reason)->status != 429)
        {
            diag("client %u: %s", load->no, ron_reason_info(reason)->name);
            return false;
        }

        load->resends++;
        ron_sleep_us(2000);
    }

    return false;
}


static void *
load_main(void *arg)
{
    char        from[32], key[64];
    tc_t       *tc;
    load_t     *load = arg;
    unsigned    i, seed;
    ron_buf_t   wire;

    seed = load->no + 77;
    tc = tc_make_key(TEST_KEY);
    ron_buf_init(&wire, 0);
    (void) snprintf(from, sizeof(from), "user/%u", load->no);
    (void) snprintf(key, sizeof(key), "mint-%u", load->no);
    test_wire(&wire, RON_KIND_MINT, from, NULL, 1000000, 0, key);
    load->failures += !load_one(load, tc, &wire, &seed);

    for (i = 1; i <= load->n; i++) {
        (void) snprintf(key, sizeof(key), "t-%u-%u", load->no, i);
        test_wire(&wire, RON_KIND_TRANSFER, from, "sink", 7, i, key);
        load->failures += !load_one(load, tc, &wire, &seed);
    }

    ron_buf_free(&wire);
    tc_free(tc);

    return NULL;
}


static void
load_start(load_t *loads, unsigned n, bool disconnects)
{
    unsigned  i;

    memset(loads, 0, CLIENTS * sizeof(load_t));

    for (i = 0; i < CLIENTS; i++) {
        loads[i].no = i;
        loads[i].n = n;
        loads[i].disconnects = disconnects;
        RON_ASSERT(pthread_create(&loads[i].tid, NULL, load_main, &loads[i])
                   == 0);
    }
}


static void
load_finish(load_t *loads, unsigned n, const char *what)
{
    tc_t               *tc;
    unsigned            i, failures, resends;
    ron_u128_t          users;
    char                name[32];
    ron_msg_balance_t   balance;

    failures = 0;
    resends = 0;

    for (i = 0; i < CLIENTS; i++) {
        pthread_join(loads[i].tid, NULL);
        failures += loads[i].failures;
        resends += loads[i].resends;
    }

    is_u64(failures, 0, "%s: every transfer was answered as done", what);
    ok(resends > 0, "%s: %u were sent again", what, resends);

    tc = tc_make();
    users = 0;

    for (i = 0; i < CLIENTS; i++) {
        (void) snprintf(name, sizeof(name), "user/%u", i);
        ok(test_balance(tc, name, &balance) && balance.nonce == n,
           "%s: the nonce of %s", what, name);
        users += balance.available;
    }

    ok(test_balance(tc, "sink", &balance), "%s: the sink", what);
    is_u64(balance.available, (uint64_t) CLIENTS * n * 7,
           "%s: each arrived exactly once", what);
    is_u64(users + balance.available, (uint64_t) CLIENTS * 1000000,
           "%s: and no money was made or lost", what);
    is_u64(balance.seq, (uint64_t) CLIENTS * (n + 1),
           "%s: one entry each, no gap", what);
    tc_free(tc);
}


/* ---- tests -------------------------------------------------------------- */

/* Forks before any thread exists: a process with a service, to be killed. */

static void
test_takeover(void)
{
    pid_t                pid;
    load_t               loads[CLIENTS];
    struct stat          st;
    ron_service_t       *s;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    test_conf(&conf, "takeover");
    pid = fork();
    RON_ASSERT(pid != -1);

    if (pid == 0) {
        if (ron_service_start(&conf, &s) != RON_OK) {
            _exit(1);
        }
        for ( ;; ) {
            pause();
        }
    }

    while (lstat(test_sock, &st) == -1) {
        RON_ASSERT(waitpid(pid, NULL, WNOHANG) == 0);
        ron_sleep_us(1000);
    }

    is_u64(st.st_mode & 07777, 0660, "the socket is 0660");

    conf.generation = 2;
    is_status(ron_service_start(&conf, &s), RON_OK, "a second service");
    is_u64(test_until(s, RON_STATE_FOLLOWING), RON_STATE_FOLLOWING,
           "follows while the first one lives");

    load_start(loads, 200, false);

    do {
        ron_sleep_us(1000);
        ron_service_stat(s, &stat);
    } while (stat.seq < CLIENTS * 40);

    is_u64(stat.state, RON_STATE_FOLLOWING, "and reads what it commits");
    ok(!stat.writer, "without being the writer");
    RON_ASSERT(kill(pid, SIGKILL) == 0);
    RON_ASSERT(waitpid(pid, NULL, 0) == pid);
    is_u64(test_until(s, RON_STATE_RUNNING), RON_STATE_RUNNING,
           "killed, the second one takes over");
    load_finish(loads, 200, "takeover");
    ron_service_stat(s, &stat);
    ok(stat.entries > 0 && stat.entries < CLIENTS * 201,
       "the first wrote some, the second %llu",
       (unsigned long long) stat.entries);
    test_stop(s);
}


static void
test_basic(void)
{
    tc_t                *tc, *other;
    uint64_t             call;
    answer_t            *a;
    ron_str_t            value;
    unsigned             i;
    ron_entry_t          entry;
    ron_service_t       *s;
    struct stat          st;
    ron_msg_admin_t      admin;
    ron_msg_lookup_t     lookup;
    ron_msg_balance_t    balance;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    test_conf(&conf, "basic");
    s = test_start(&conf);
    tc = tc_make();
    is_u64(tc->state, RON_STATE_RUNNING, "ready says running");

    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 100, 0), RON_REASON_OK,
           "mint");
    is_u64(test_one(tc, RON_KIND_TRANSFER, "alice", "bob", 30, 1),
           RON_REASON_OK, "transfer");
    is_u64(test_one(tc, RON_KIND_TRANSFER, "alice", "bob", 300, 2),
           RON_REASON_INSUFFICIENT, "too much");
    ok(test_balance(tc, "alice", &balance) && balance.found, "a balance");
    is_u64(balance.available, 70, "available");
    is_u64(balance.nonce, 1, "nonce");
    is_u64(balance.seq, 2, "as of seq");
    ok(test_balance(tc, "nobody", &balance) && !balance.found
       && !balance.unavailable, "an unknown account");

    tc->answer_n = 0;
    call = ron_client_call(tc->c);
    RON_ASSERT(test_ask(tc, call, "alice", "dev:test", "one-2") == RON_OK);
    a = tc_wait(tc, call);
    ok(a != NULL && ron_msg_lookup_get(ron_buf_str(&a->payload), &lookup)
       == RON_OK && lookup.what == RON_LOOKUP_COMMITTED, "a key is found");
    ok(ron_entry_decode(lookup.entry, &entry) == RON_OK && entry.seq == 2
       && entry.amount == 30, "with its entry");

    tc->answer_n = 0;
    call = ron_client_call(tc->c);
    RON_ASSERT(test_ask(tc, call, "alice", "dev:test", "none") == RON_OK);
    a = tc_wait(tc, call);
    ok(a != NULL && ron_msg_lookup_get(ron_buf_str(&a->payload), &lookup)
       == RON_OK && lookup.what == RON_LOOKUP_UNKNOWN, "another is not");

    is_u64(test_admin(tc, RON_ADMIN_SNAPSHOT, &admin), RON_ADMIN_UNAVAILABLE,
           "snapshots are not available, and it says so");
    is_u64(test_admin(tc, RON_ADMIN_SAFE_LEAVE, &admin), RON_ADMIN_REFUSED,
           "there is no safe mode to leave");
    is_u64(test_admin(tc, RON_ADMIN_STAT, &admin), RON_ADMIN_DONE, "stat");
    value = ron_null_str;
    for (i = 0; i < admin.pair_n; i++) {
        if (ron_str_eq(admin.pair[i].key, ron_str("seq"))) {
            value = admin.pair[i].value;
        }
    }
    ok(ron_str_eq(value, ron_str("2")), "tells the seq");

    other = tc_make();
    is_u64(other->ready_seq, 2, "ready tells the head");
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 1, 0), RON_REASON_OK,
           "a commit");
    for (i = 0; i < 100 && other->commits == 0; i++) {
        (void) tc_pump(other, 20);
    }
    is_u64(other->commits, 1, "is pushed to everybody");

    ron_service_stat(s, &stat);
    ok(stat.connections == 2 && stat.units == 4 && stat.entries == 3
       && stat.writer, "counters");

    tc_free(other);
    tc_free(tc);
    test_stop(s);
    ok(lstat(test_sock, &st) == -1, "the socket is gone");
}


static void
test_load(void)
{
    load_t               loads[CLIENTS];
    ron_service_t       *s;
    ron_service_conf_t   conf;

    test_conf(&conf, "load");
    s = test_start(&conf);
    load_start(loads, 150, true);
    load_finish(loads, 150, "disconnects");
    test_stop(s);

    /* The same again finds everything done already. */
    s = test_start(&conf);
    load_start(loads, 150, true);
    load_finish(loads, 150, "repeated");
    test_stop(s);
}


/* Sends n mints in one write, and counts the reasons of their answers. */

static void
test_burst(tc_t *tc, unsigned n, const char *name, unsigned *counts,
    bool *in_order)
{
    char           key[32];
    uint64_t       call, first, seq, last;
    unsigned       i;
    ron_buf_t      wire;
    ron_reason_t   reason;

    memset(counts, 0, RON_REASON_N * sizeof(unsigned));
    ron_buf_init(&wire, 0);
    tc->answer_n = 0;
    first = 0;

    for (i = 0; i < n; i++) {
        (void) snprintf(key, sizeof(key), "%s-%u", name, i);
        test_wire(&wire, RON_KIND_MINT, "alice", NULL, 1, 0, key);
        call = ron_client_call(tc->c);
        first = first ? first : call;
        RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
                   == RON_OK);
    }

    last = 0;
    *in_order = true;

    for (i = 0; i < n; i++) {
        if (test_outcome(tc_wait(tc, first + i), &reason, &seq) == RON_OK) {
            counts[reason]++;

            if (reason == RON_REASON_OK) {
                *in_order = *in_order && (last == 0 || seq == last + 1);
                last = seq;
            }
        }
    }

    ron_buf_free(&wire);
}


static void
test_full_queues(void)
{
    bool                 in_order;
    tc_t                *tc;
    unsigned             counts[RON_REASON_N];
    ron_service_t       *s;
    ron_msg_balance_t    balance;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    test_conf(&conf, "preval");
    conf.queue_preval = 20;
    conf.engine.batch_ops = 5;
    conf.engine.queue_batches = 2;
    conf.commit_delay_us = 300000;
    s = test_start(&conf);
    tc = tc_make();
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 1, 0), RON_REASON_OK,
           "the committer begins to sleep");
    test_burst(tc, 100, "p", counts, &in_order);
    is_u64(counts[RON_REASON_PREVAL_DROPPED], 80,
           "of 100 the oldest 80 are dropped and told");
    is_u64(counts[RON_REASON_OK], 20, "the newest 20 are done");
    ok(in_order, "in order and without a gap");
    ron_service_stat(s, &stat);
    is_u64(stat.preval_drops, 80, "and counted");
    is_u64(stat.commit_rejects, 0, "nothing else was refused");
    ok(test_balance(tc, "alice", &balance), "balance");
    is_u64(balance.available, 21, "no dropped one had an effect");
    tc_free(tc);
    test_stop(s);

    test_conf(&conf, "commit");
    conf.queue_commit = 12;
    conf.engine.batch_ops = 5;
    conf.engine.queue_batches = 4;
    conf.commit_delay_us = 300000;
    s = test_start(&conf);
    tc = tc_make();
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 1, 0), RON_REASON_OK,
           "the committer begins to sleep");
    test_burst(tc, 100, "c", counts, &in_order);
    is_u64(counts[RON_REASON_BACKPRESSURE], 88,
           "of 100 the last 88 are refused");
    is_u64(counts[RON_REASON_OK], 12, "12 are done");
    ok(in_order, "the refused consumed no seq");
    ron_service_stat(s, &stat);
    is_u64(stat.commit_rejects, 88, "and counted");
    is_u64(stat.preval_drops, 0, "nothing was dropped");
    is_u64(stat.seq, 13, "no gap");
    tc_free(tc);
    test_stop(s);
}


/* One is done, and one behind it with a committer that takes its time. */

static uint64_t
test_behind(tc_t *tc, ron_buf_t *wire)
{
    uint64_t  unit;

    (void) test_one(tc, RON_KIND_MINT, "alice", NULL, 1, 0);

    tc->answer_n = 0;
    unit = ron_client_call(tc->c);
    test_wire(wire, RON_KIND_MINT, "alice", NULL, 5, 0, "second");
    RON_ASSERT(ron_client_unit_wire(tc->c, unit, ron_buf_str(wire))
               == RON_OK);
    (void) tc_pump(tc, 50);
    ron_sleep_us(50000);

    return unit;
}


/* Balances on top of a batch that is being written wait for it, so many. */

static void
test_full_balances(void)
{
    tc_t                *tc;
    unsigned             i, right, refused, last;
    uint64_t             unit, first, depth;
    answer_t            *a;
    ron_buf_t            wire;
    ron_service_t       *s;
    ron_msg_balance_t    b;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    enum { ROOM = 4096, MORE = 100 };

    test_conf(&conf, "balances");
    conf.commit_delay_us = 1000000;
    s = test_start(&conf);
    tc = tc_make();
    ron_buf_init(&wire, 0);
    unit = test_behind(tc, &wire);

    first = 0;

    for (i = 0; i < ROOM + MORE; i++) {
        first = first ? first : ron_client_call(tc->c);
        RON_ASSERT(ron_client_balance(tc->c, i ? ron_client_call(tc->c)
                                               : first,
                                      ron_str("alice"), ron_str("ron"))
                   == RON_OK);
    }

    ok(tc_wait(tc, first + ROOM + MORE - 1) != NULL
       && tc_find(tc, unit) == NULL, "the last is answered, and at once");
    ron_service_stat(s, &stat);
    depth = stat.balance_depth;
    is_u64(tc->answer_n, MORE, "and those that there is no room for");

    right = 0;
    refused = 0;
    last = 0;

    for (i = 0; i < ROOM + MORE; i++) {
        a = tc_wait(tc, first + i);
        RON_ASSERT(a != NULL
                   && ron_msg_balance_get(ron_buf_str(&a->payload), &b)
                      == RON_OK);
        right += b.found && !b.unavailable && b.available == 6;
        refused += b.unavailable && !b.found && b.available == 0;
        last = b.unavailable ? last : i;
    }

    is_u64(right, ROOM, "the others are told what became durable");
    is_u64(refused, MORE, "those were told nothing");
    is_u64(last, ROOM - 1, "the newest");
    is_u64(depth, ROOM, "the depth was what they are");
    ron_service_stat(s, &stat);
    is_u64(stat.balance_depth, 0, "and none is left");
    is_u64(stat.balance_rejects, MORE, "the refused are counted");
    is_u64(stat.preval_drops + stat.commit_rejects, 0, "and nothing else");
    ok(test_balance(tc, "alice", &b) && b.available == 6, "there is room");

    ron_buf_free(&wire);
    tc_free(tc);
    test_stop(s);
}


/* Sends n mints; they were read when a question behind them is answered. */

static void
test_sent(tc_t *tc, unsigned n)
{
    char       key[32];
    unsigned   i;
    ron_buf_t  wire;

    ron_buf_init(&wire, 0);

    for (i = 0; i < n; i++) {
        (void) snprintf(key, sizeof(key), "sent-%llu",
                        (unsigned long long) ++test_keys);
        test_wire(&wire, RON_KIND_MINT, "alice", NULL, 1, 0, key);
        RON_ASSERT(ron_client_unit_wire(tc->c, ron_client_call(tc->c),
                                        ron_buf_str(&wire)) == RON_OK);
    }

    (void) test_lookup(tc, "alice", "none");
    ron_buf_free(&wire);
}


/* While a batch is written, few wait for its end, and many do not. */

static void
test_company(void)
{
    tc_t                *tc;
    uint64_t             limit_us;
    ron_service_t       *s;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    test_conf(&conf, "company");
    conf.engine.queue_batches = 4;
    conf.commit_delay_us = 1000000;
    s = test_start(&conf);
    tc = tc_make();
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 1, 0), RON_REASON_OK,
           "the committer begins to sleep");

    test_sent(tc, 1);
    ron_service_stat(s, &stat);
    is_u64(stat.units, 2, "the first is decided at once");
    test_sent(tc, 1);
    test_sent(tc, 2);
    ron_service_stat(s, &stat);
    is_u64(stat.units, 2, "a few behind it wait");
    test_sent(tc, 70);
    ron_service_stat(s, &stat);
    is_u64(stat.units, 75, "many are decided beside it");
    is_u64(stat.batches, 1, "which is not written yet");

    test_sent(tc, 3);
    limit_us = ron_clock_mono_us() + WAIT_US;

    do {
        (void) tc_pump(tc, 10);
        ron_service_stat(s, &stat);
    } while (stat.seq < 78 && ron_clock_mono_us() < limit_us);

    is_u64(stat.seq, 78, "all are done");
    is_u64(stat.batches, 4, "the last few went with the end of a write");
    tc_free(tc);
    test_stop(s);
}


/* What was published of balances that were asked for. */

typedef struct {
    atomic_uint    n;                           /* last: the rest is there */
    char           account[32];
    ron_balance_t  balance;
    uint64_t       seq;
} asked_t;


static void
on_asked(void *ctx, const ron_balance_t *balance, uint64_t seq)
{
    asked_t  *asked = ctx;

    asked->balance = *balance;
    asked->seq = seq;
    (void) snprintf(asked->account, sizeof(asked->account), "%.*s/%.*s",
                    (int) balance->account.len,
                    (const char *) balance->account.data,
                    (int) balance->asset.len,
                    (const char *) balance->asset.data);
    (void) atomic_fetch_add(&asked->n, 1);
}


/*
 * A balance that was asked for is published, so that nobody has to ask again:
 * one that waited for its batch too, and one that does not exist never.
 */

static void
test_asked(void)
{
    tc_t                *tc;
    asked_t              asked;
    uint64_t             unit, balance;
    ron_buf_t            wire;
    ron_service_t       *s;
    ron_msg_balance_t    b;
    ron_service_conf_t   conf;

    memset(&asked, 0, sizeof(asked));
    test_conf(&conf, "asked");
    conf.commit_delay_us = 300000;
    conf.on_balance = on_asked;
    conf.ctx = &asked;
    s = test_start(&conf);
    tc = tc_make();
    ron_buf_init(&wire, 0);
    (void) test_one(tc, RON_KIND_MINT, "alice", NULL, 7, 0);

    ok(test_balance(tc, "nobody", &b) && !b.found, "nobody is asked for");
    is_u64(atomic_load(&asked.n), 0, "and not published");
    ok(test_balance(tc, "alice", &b) && b.found, "alice is asked for");
    is_u64(atomic_load(&asked.n), 1, "and published");
    is_str(asked.account, "alice/ron", "by name");
    is_u64(asked.balance.available, 7, "what she has");
    is_u64(asked.seq, 1, "as of what is durable");

    unit = ron_client_call(tc->c);
    test_wire(&wire, RON_KIND_MINT, "alice", NULL, 5, 0, "asked-2");
    RON_ASSERT(ron_client_unit_wire(tc->c, unit, ron_buf_str(&wire))
               == RON_OK);
    (void) tc_pump(tc, 50);
    ron_sleep_us(50000);
    balance = ron_client_call(tc->c);
    RON_ASSERT(ron_client_balance(tc->c, balance, ron_str("alice"),
                                  ron_str("ron")) == RON_OK);
    (void) tc_pump(tc, 50);
    is_u64(atomic_load(&asked.n), 1, "what is not durable is not published");
    RON_ASSERT(tc_wait(tc, balance) != NULL && tc_wait(tc, unit) != NULL);
    is_u64(atomic_load(&asked.n), 2, "until it is");
    is_u64(asked.balance.available, 12, "with what it made of it");
    is_u64(asked.seq, 2, "as of its entry");

    ron_buf_free(&wire);
    tc_free(tc);
    test_stop(s);
}


/* The size of the head that is signed, once it is this or time is up. */

static uint64_t
test_head(ron_store_t *store, uint64_t want)
{
    uint64_t               size, limit_us;
    ron_buf_t              note;
    ron_checkpoint_note_t  cp;

    limit_us = ron_clock_mono_us() + WAIT_US;
    ron_buf_init(&note, RON_NOTE_MAX);

    do {
        ron_sleep_us(1000);
        size = ron_store_head_read(store, &note) == RON_OK
               && ron_note_parse(ron_buf_str(&note), &cp) == RON_OK
               ? cp.size : 0;

    } while (size != want && ron_clock_mono_us() < limit_us);

    ron_buf_free(&note);

    return size;
}


/* Signing waits until nothing comes for a moment, and then it happens. */

static void
test_heads(void)
{
    tc_t                *tc;
    unsigned             i;
    ron_store_t         *store;
    ron_service_t       *s;
    ron_service_conf_t   conf;

    test_conf(&conf, "heads");
    s = test_start(&conf);
    tc = tc_make();
    RON_ASSERT(ron_store_open(&conf.engine.store, &store) == RON_OK);

    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 100, 0), RON_REASON_OK,
           "a first entry");
    is_u64(test_head(store, 1), 1, "its head is signed, though no other comes");

    for (i = 1; i <= 20; i++) {
        (void) test_one(tc, RON_KIND_TRANSFER, "alice", "bob", 1, i);
    }

    is_u64(test_head(store, 21), 21, "so is the last one of many");

    ron_store_close(store);
    tc_free(tc);
    test_stop(s);
}


/* What is decided and not yet durable is told to nobody. */

static void
test_undurable(void)
{
    tc_t                *tc;
    uint64_t             unit, balance, lookup, seq;
    ron_buf_t            wire;
    ron_reason_t         reason;
    ron_service_t       *s;
    ron_msg_lookup_t     found;
    ron_msg_balance_t    b;
    ron_service_conf_t   conf;

    test_conf(&conf, "undurable");
    conf.commit_delay_us = 400000;
    s = test_start(&conf);
    tc = tc_make();
    ron_buf_init(&wire, 0);
    unit = test_behind(tc, &wire);

    balance = ron_client_call(tc->c);
    lookup = ron_client_call(tc->c);
    RON_ASSERT(ron_client_balance(tc->c, balance, ron_str("alice"),
                                  ron_str("ron")) == RON_OK);
    RON_ASSERT(test_ask(tc, lookup, "alice", "dev:test", "second")
               == RON_OK);

    RON_ASSERT(tc_wait(tc, lookup) != NULL);
    RON_ASSERT(ron_msg_lookup_get(ron_buf_str(&tc_find(tc, lookup)->payload),
                                  &found) == RON_OK);
    is_u64(found.what, RON_LOOKUP_PENDING, "its key is pending");
    ok(tc_find(tc, balance) == NULL, "its balance is not told");

    RON_ASSERT(tc_wait(tc, balance) != NULL && tc_wait(tc, unit) != NULL);
    RON_ASSERT(ron_msg_balance_get(ron_buf_str(&tc_find(tc, balance)->payload),
                                   &b) == RON_OK);
    is_u64(b.available, 6, "until it is durable");
    is_u64(b.seq, 2, "as of its entry");
    (void) test_outcome(tc_find(tc, unit), &reason, &seq);
    is_u64(reason, RON_REASON_OK, "and the unit is answered");

    ron_buf_free(&wire);
    tc_free(tc);
    test_stop(s);
}


/* A batch's key is the capability's: while it waits, and when it is done. */

static void
test_batch_key(void)
{
    tc_t                *tc;
    uint64_t             first, unit, call[3];
    ron_buf_t            wire;
    ron_unit_t           batch;
    ron_entry_t          ops[2], e;
    ron_result_t         results[2];
    ron_outcome_t        o;
    ron_service_t       *s;
    ron_msg_lookup_t     found[3];
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    static const char   *caps[] = { "dev:test", "dev:other", "" };

    test_conf(&conf, "batchkey");
    conf.commit_delay_us = 400000;
    s = test_start(&conf);
    tc = tc_make();
    ron_buf_init(&wire, 0);
    (void) test_one(tc, RON_KIND_MINT, "alice", NULL, 100, 0);

    memset(&batch, 0, sizeof(batch));
    memset(ops, 0, sizeof(ops));
    batch.type = RON_UNIT_BATCH;
    batch.cap = ron_str("dev:test");
    batch.key = ron_str("many");
    batch.op_n = 2;
    batch.ops = ops;

    for (unsigned i = 0; i < 2; i++) {
        ops[i].kind = RON_KIND_TRANSFER;
        ops[i].fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_TO | RON_F_AMOUNT
                        | RON_F_NONCE;
        ops[i].asset = ron_str("ron");
        ops[i].account = ron_str("alice");
        ops[i].to = ron_str("bob");
        ops[i].nonce = 1 + i;
        ops[i].amount = i == 0 ? 30 : 300;
    }

    /* beside a batch that is being written nobody decides so few */

    tc->answer_n = 0;
    first = ron_client_call(tc->c);
    test_wire(&wire, RON_KIND_MINT, "alice", NULL, 5, 0, "first");
    RON_ASSERT(ron_client_unit_wire(tc->c, first, ron_buf_str(&wire))
               == RON_OK);
    (void) tc_pump(tc, 50);
    ron_sleep_us(50000);

    unit = ron_client_call(tc->c);
    ron_buf_reset(&wire);
    RON_ASSERT(ron_unit_encode(&batch, &wire) == RON_OK
               && ron_client_unit_wire(tc->c, unit, ron_buf_str(&wire))
                  == RON_OK);

    for (unsigned i = 0; i < 3; i++) {
        call[i] = ron_client_call(tc->c);
        RON_ASSERT(test_ask(tc, call[i], "alice", caps[i], "many") == RON_OK);
        RON_ASSERT(tc_wait(tc, call[i]) != NULL
                   && ron_msg_lookup_get(
                          ron_buf_str(&tc_find(tc, call[i])->payload),
                          &found[i]) == RON_OK);
    }

    ron_service_stat(s, &stat);
    is_u64(stat.preval_depth, 1, "the batch is not decided yet");
    is_u64(found[0].what, RON_LOOKUP_PENDING, "its key is pending");
    is_u64(found[1].what, RON_LOOKUP_UNKNOWN, "for who sent it only");
    is_u64(found[2].what, RON_LOOKUP_UNKNOWN, "and who asks for batches");

    RON_ASSERT(tc_wait(tc, unit) != NULL);
    tc->answer_n = 0;

    for (unsigned i = 0; i < 3; i++) {
        call[i] = ron_client_call(tc->c);
        RON_ASSERT(test_ask(tc, call[i], "alice", caps[i], "many") == RON_OK);
        RON_ASSERT(tc_wait(tc, call[i]) != NULL
                   && ron_msg_lookup_get(
                          ron_buf_str(&tc_find(tc, call[i])->payload),
                          &found[i]) == RON_OK);
    }

    ok(found[0].what == RON_LOOKUP_COMMITTED && found[0].batch,
       "then it is committed");
    ok(ron_outcome_decode(found[0].entry, &o, results, 2) == RON_OK
       && o.result_n == 2 && results[0].reason == RON_REASON_OK
       && results[1].reason == RON_REASON_INSUFFICIENT,
       "with what became of each operation");
    ok(ron_entry_decode(results[0].bytes, &e) == RON_OK && e.amount == 30
       && results[1].bytes.len == 0, "and the entry that was made");
    ok(found[1].what == RON_LOOKUP_UNKNOWN
       && found[2].what == RON_LOOKUP_UNKNOWN, "nobody else has such a key");

    ron_buf_free(&wire);
    tc_free(tc);
    test_stop(s);
}


static uint64_t
test_send(tc_t *tc, const ron_buf_t *wire)
{
    uint64_t  call;

    call = ron_client_call(tc->c);
    RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(wire))
               == RON_OK);

    return call;
}


/* The root that an answer names. */

static ron_hash_t
test_root(const answer_t *a)
{
    ron_result_t     results[4];
    ron_outcome_t    outcome;
    ron_msg_batch_t  batch;

    memset(&batch, 0, sizeof(batch));

    RON_ASSERT(a != NULL && a->type == RON_FRAME_OUTCOME
               && ron_msg_outcome_get(ron_buf_str(&a->payload), &batch,
                                      &outcome, results, 4) == RON_OK
               && outcome.reason == RON_REASON_OK);

    return batch.root;
}


/*
 * An ingest that comes again is answered with the root of then: sent at once,
 * decided while the first is being written, and when much else was committed.
 */

static void
test_repeated(void)
{
    tc_t                *tc;
    uint64_t             call[4];
    ron_buf_t            wire;
    ron_hash_t           root[4], now;
    ron_unit_t           unit;
    ron_entry_t          op;
    ron_service_t       *s;
    ron_service_conf_t   conf;

    test_conf(&conf, "repeated");
    conf.commit_delay_us = 400000;
    s = test_start(&conf);
    tc = tc_make();
    ron_buf_init(&wire, 0);
    (void) test_one(tc, RON_KIND_MINT, "alice", NULL, 1, 0);

    memset(&op, 0, sizeof(op));
    op.kind = RON_KIND_MINT;
    op.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT | RON_F_ID
                | RON_F_NONCE16 | RON_F_SOURCE;
    op.asset = ron_str("ron");
    op.account = ron_str("alice");
    op.id = ron_str("run-1");
    op.amount = 5;

    memset(&unit, 0, sizeof(unit));
    unit.type = RON_UNIT_INGEST;
    unit.key = ron_str("run");
    unit.op_n = 1;
    unit.ops = &op;
    RON_ASSERT(ron_unit_encode(&unit, &wire) == RON_OK);

    tc->answer_n = 0;
    call[0] = test_send(tc, &wire);
    call[1] = test_send(tc, &wire);
    (void) tc_pump(tc, 50);
    ron_sleep_us(50000);

    /* many are decided beside what is being written */

    call[2] = test_send(tc, &wire);
    test_sent(tc, 70);
    ok(tc_find(tc, call[0]) == NULL, "an ingest is being written");

    for (unsigned i = 0; i < 3; i++) {
        root[i] = test_root(tc_wait(tc, call[i]));
    }

    (void) test_one(tc, RON_KIND_MINT, "alice", NULL, 2, 0);
    now = test_root(&tc->answers[0]);

    tc->answer_n = 0;
    call[3] = test_send(tc, &wire);
    root[3] = test_root(tc_wait(tc, call[3]));

    ok(ron_hash_eq(&root[1], &root[0]), "twice at once: one root");
    ok(ron_hash_eq(&root[2], &root[0]), "again while it is written");
    ok(ron_hash_eq(&root[3], &root[0]), "and when it is long done");
    ok(!ron_hash_eq(&now, &root[0]), "where the root of now is another");

    ron_buf_free(&wire);
    tc_free(tc);
    test_stop(s);
}


static void
test_preval_bytes(void)
{
    bool                 in_order;
    tc_t                *tc;
    unsigned             counts[RON_REASON_N];
    ron_service_t       *s;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    test_conf(&conf, "bytes");
    conf.preval_bytes = 8192;
    conf.commit_delay_us = 200000;
    s = test_start(&conf);
    tc = tc_make();
    (void) test_one(tc, RON_KIND_MINT, "alice", NULL, 1, 0);
    test_burst(tc, 100, "b", counts, &in_order);
    ron_service_stat(s, &stat);
    ok(stat.preval_drops > 50 && counts[RON_REASON_OK] > 0
       && counts[RON_REASON_OK] + stat.preval_drops == 100,
       "preval is bounded by bytes too: %u of 100",
       counts[RON_REASON_OK]);
    tc_free(tc);
    test_stop(s);
}


/* ---- a disk whose sync fails: the default VFS with one method of ours ---- */

static sqlite3_vfs         test_vfs;
static sqlite3_vfs        *test_vfs_real;
static sqlite3_io_methods  test_methods[4];
static const sqlite3_io_methods  *test_methods_real[4];
static pthread_mutex_t     test_vfs_mutex = PTHREAD_MUTEX_INITIALIZER;
static int               (*test_sync_real)(sqlite3_file *file, int flags);
static int               (*test_read_real)(sqlite3_file *file, void *buf,
    int len, sqlite3_int64 off);
static atomic_int          test_sync_fails_now;
static atomic_int          test_read_fails_now;


static int
test_vfs_sync(sqlite3_file *file, int flags)
{
    if (atomic_load(&test_sync_fails_now)) {
        return SQLITE_IOERR_FSYNC;
    }

    return test_sync_real(file, flags);
}


static int
test_vfs_read(sqlite3_file *file, void *buf, int len, sqlite3_int64 off)
{
    if (atomic_load(&test_read_fails_now)) {
        return SQLITE_IOERR_READ;
    }

    return test_read_real(file, buf, len, off);
}


static int
test_vfs_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file,
    int flags, int *out)
{
    int       rc;
    unsigned  i;

    (void) vfs;
    rc = test_vfs_real->xOpen(test_vfs_real, name, file, flags, out);

    if (rc != SQLITE_OK || file->pMethods == NULL) {
        return rc;
    }

    /* A journal has other methods than a database. */

    pthread_mutex_lock(&test_vfs_mutex);

    for (i = 0; test_methods_real[i] != NULL
                && test_methods_real[i] != file->pMethods; i++)
    { /* void */ }

    RON_ASSERT(i < ron_array_n(test_methods_real) - 1);

    if (test_methods_real[i] == NULL) {
        RON_ASSERT(test_sync_real == NULL
                   || test_sync_real == file->pMethods->xSync);
        test_methods_real[i] = file->pMethods;
        test_sync_real = file->pMethods->xSync;
        test_methods[i] = *file->pMethods;
        test_methods[i].xSync = test_vfs_sync;
        test_read_real = file->pMethods->xRead;
        test_methods[i].xRead = test_vfs_read;
    }

    file->pMethods = &test_methods[i];
    pthread_mutex_unlock(&test_vfs_mutex);

    return rc;
}


static void
test_vfs_make(void)
{
    test_vfs_real = sqlite3_vfs_find(NULL);
    test_vfs = *test_vfs_real;
    test_vfs.zName = "sync-fails";
    test_vfs.xOpen = test_vfs_open;
    RON_ASSERT(sqlite3_vfs_register(&test_vfs, 0) == SQLITE_OK);
}


static void
test_sync_fails(void)
{
    tc_t                *tc;
    unsigned             i;
    ron_buf_t            wire;
    uint64_t             call, seq;
    ron_reason_t         reason;
    ron_service_t       *s;
    ron_msg_admin_t      admin;
    ron_msg_balance_t    b;
    ron_service_conf_t   conf;

    test_vfs_make();
    test_conf(&conf, "sync");
    conf.engine.store.vfs = "sync-fails";
    s = test_start(&conf);
    tc = tc_make();
    ron_buf_init(&wire, 0);
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0), RON_REASON_OK,
           "before");

    atomic_store(&test_sync_fails_now, 1);
    test_wire(&wire, RON_KIND_MINT, "alice", NULL, 7, 0, "doubt");
    tc->answer_n = 0;
    call = ron_client_call(tc->c);
    RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
               == RON_OK);
    (void) test_outcome(tc_wait(tc, call), &reason, &seq);
    is_u64(reason, RON_REASON_TIMEOUT, "a failed sync leaves it in doubt");
    tc_pump_until(tc, RON_STATE_SAFE_MODE);
    ok(strncmp(tc->reason, "sync: ", 6) == 0, "told: %s", tc->reason);
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0),
           RON_REASON_SAFE_MODE, "nothing more is taken");
    atomic_store(&test_sync_fails_now, 0);
    ron_sleep_us(400000);
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0),
           RON_REASON_SAFE_MODE, "a disk that works again changes nothing");

    /* the row is in the file's cache, and its sync has failed */

    for (i = 0; i < 200 && test_lookup(tc, "alice", "doubt")
                           == RON_LOOKUP_UNAVAILABLE; i++)
    {
        ron_sleep_us(20000);
    }
    is_u64(test_lookup(tc, "alice", "doubt"), RON_LOOKUP_PENDING,
           "what may not be on disk is not called committed");

    for (i = 0; i < 100; i++) {
        if (test_admin(tc, RON_ADMIN_SAFE_LEAVE, &admin) == RON_ADMIN_DONE) {
            break;
        }
        ron_sleep_us(20000);
    }
    is_u64(admin.status, RON_ADMIN_DONE, "until an operator says so");

    tc->answer_n = 0;
    call = ron_client_call(tc->c);
    RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
               == RON_OK);
    (void) test_outcome(tc_wait(tc, call), &reason, &seq);
    is_u64(reason, RON_REASON_OK, "sent again with its key it is done");
    is_u64(test_lookup(tc, "alice", "doubt"), RON_LOOKUP_COMMITTED,
           "and called committed");
    ok(test_balance(tc, "alice", &b), "balance");
    is_u64(b.available, 12, "exactly once");

    ron_buf_free(&wire);
    tc_free(tc);
    test_stop(s);
}


static uint64_t
test_admitted(void *ctx)
{
    return atomic_load((_Atomic uint64_t *) ctx);
}


/*
 * What was admitted before and comes late, from a check or out of a body that
 * was long, is taken until the drain's time is over; a successor of one that
 * was told to drain drains as well.
 */

static void
test_drain_admitted(void)
{
    tc_t                *tc;
    ron_service_t       *s;
    _Atomic uint64_t     admitted;
    ron_service_conf_t   conf;

    test_conf(&conf, "admitted");
    atomic_init(&admitted, 1);
    conf.admitted = test_admitted;
    conf.ctx = &admitted;
    s = test_start(&conf);
    tc = tc_make();
    ron_service_drain(s);
    tc_pump_until(tc, RON_STATE_DRAINING);
    ron_sleep_us(300000);
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 1, 0), RON_REASON_OK,
           "a request that was admitted before is done");
    is_u64(test_until(s, RON_STATE_DRAINING), RON_STATE_DRAINING,
           "and one more is waited for");
    atomic_store(&admitted, 0);
    tc_pump_until(tc, RON_STATE_STOPPED);
    is_u64(tc->state, RON_STATE_STOPPED, "until it is answered");
    is_u64(tc->final_commits, 1, "then the final root is published");
    tc_free(tc);
    test_stop(s);

    conf.drained = true;
    conf.drain_ms = 300;
    atomic_store(&admitted, 1);
    is_status(ron_service_start(&conf, &s), RON_OK, "it starts again");
    is_u64(test_until(s, RON_STATE_DRAINING), RON_STATE_DRAINING,
           "who is started drained drains");
    is_u64(test_until(s, RON_STATE_STOPPED), RON_STATE_STOPPED,
           "who does not come in time is not waited for");
    test_stop(s);
}


static void
test_drain(void)
{
    bool                 all;
    tc_t                *tc;
    char                 key[32];
    uint64_t             first, call, seq;
    unsigned             i;
    ron_buf_t            wire;
    struct stat          st;
    ron_reason_t         reason;
    ron_service_t       *s;
    ron_service_conf_t   conf;

    test_conf(&conf, "drain");
    conf.engine.batch_ops = 5;
    conf.commit_delay_us = 50000;
    s = test_start(&conf);
    tc = tc_make();
    ron_buf_init(&wire, 0);
    first = 0;

    for (i = 0; i < 50; i++) {
        (void) snprintf(key, sizeof(key), "d-%u", i);
        test_wire(&wire, RON_KIND_MINT, "alice", NULL, 1, 0, key);
        call = ron_client_call(tc->c);
        first = first ? first : call;
        RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
                   == RON_OK);
    }

    (void) tc_wait(tc, first);
    ron_service_drain(s);
    tc_pump_until(tc, RON_STATE_DRAINING);
    is_u64(tc->state, RON_STATE_DRAINING, "draining is told");

    test_wire(&wire, RON_KIND_MINT, "alice", NULL, 1, 0, "late");
    call = ron_client_call(tc->c);
    RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
               == RON_OK);
    (void) test_outcome(tc_wait(tc, call), &reason, &seq);
    is_u64(reason, RON_REASON_OK, "what was on its way is taken");

    all = true;
    for (i = 0; i < 50; i++) {
        (void) test_outcome(tc_wait(tc, first + i), &reason, &seq);
        all = all && reason == RON_REASON_OK;
    }
    ok(all, "the 50 before are finished");

    tc_pump_until(tc, RON_STATE_STOPPED);
    is_u64(tc->state, RON_STATE_STOPPED, "then it is stopped");
    ok(!(tc->states >> RON_STATE_ABORTING & 1), "and was not aborting");
    is_u64(tc->final_commits, 1, "and the final root was published");
    is_u64(test_until(s, RON_STATE_STOPPED), RON_STATE_STOPPED, "stopped");
    ok(lstat(test_sock, &st) == -1, "the socket is gone");
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 1, 0),
           RON_REASON_DRAINING, "an old connection is still answered");

    ron_buf_free(&wire);
    tc_free(tc);
    test_stop(s);

    /* Longer than its share: what was not decided is refused. */

    test_conf(&conf, "drain2");
    conf.engine.batch_ops = 1;
    conf.commit_delay_us = 150000;
    conf.drain_ms = 100;
    s = test_start(&conf);
    tc = tc_make();
    ron_buf_init(&wire, 0);
    first = 0;
    for (i = 0; i < 20; i++) {
        (void) snprintf(key, sizeof(key), "d-%u", i);
        test_wire(&wire, RON_KIND_MINT, "alice", NULL, 1, 0, key);
        call = ron_client_call(tc->c);
        first = first ? first : call;
        RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
                   == RON_OK);
    }
    (void) tc_wait(tc, first);
    ron_service_drain(s);
    tc_pump_until(tc, RON_STATE_STOPPED);
    is_u64(tc->state, RON_STATE_STOPPED, "a drain ends in time");
    ok(tc->states >> RON_STATE_ABORTING & 1,
       "past its deadline it was aborting");
    call = 0;
    for (i = 0; i < 20; i++) {
        (void) test_outcome(tc_find(tc, first + i), &reason, &seq);
        call += reason == RON_REASON_DRAINING ? 100 : 0;
        call += reason == RON_REASON_OK;
    }
    ok(call % 100 >= 3 && call / 100 > 10 && call % 100 + call / 100 == 20,
       "%llu were done, %llu refused, none forgotten",
       (unsigned long long) call % 100, (unsigned long long) call / 100);
    ron_buf_free(&wire);
    tc_free(tc);
    test_stop(s);
}


static void
test_safe_mode(void)
{
    tc_t                *tc;
    uint64_t             end;
    ron_service_t       *s;
    ron_msg_admin_t      admin;
    ron_msg_balance_t    balance;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    test_conf(&conf, "safe");
    s = test_start(&conf);
    tc = tc_make();
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0), RON_REASON_OK,
           "before");
    is_u64(test_admin(tc, RON_ADMIN_SAFE_ENTER, &admin), RON_ADMIN_DONE,
           "an operator enters safe mode");
    ok(strncmp(tc->reason, "operator: ", 10) == 0, "told: %s", tc->reason);
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0),
           RON_REASON_SAFE_MODE, "writes are refused");
    is_u64(test_admin(tc, RON_ADMIN_DRAIN, &admin), RON_ADMIN_REFUSED,
           "so is draining");

    end = ron_clock_mono_us() + WAIT_US;
    while (test_balance(tc, "alice", &balance) && balance.unavailable
           && ron_clock_mono_us() < end)
    {
        ron_sleep_us(1000);
    }
    is_u64(balance.available, 5, "reads go on");
    tc_free(tc);
    test_stop(s);

    is_status(ron_service_start(&conf, &s), RON_OK, "a restart");
    is_u64(test_until(s, RON_STATE_SAFE_MODE), RON_STATE_SAFE_MODE,
           "does not end it");
    tc = tc_make();
    is_u64(tc->state, RON_STATE_SAFE_MODE, "and tells workers so");
    ron_sleep_us(300000);
    ron_service_stat(s, &stat);
    is_u64(stat.state, RON_STATE_SAFE_MODE, "it waits for an operator");
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0),
           RON_REASON_SAFE_MODE, "writes are refused");
    is_u64(test_admin(tc, RON_ADMIN_SAFE_LEAVE, &admin), RON_ADMIN_DONE,
           "who ends it");
    is_u64(tc->state, RON_STATE_RUNNING, "running is told");
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0), RON_REASON_OK,
           "writes go on");
    ok(test_balance(tc, "alice", &balance), "balance");
    is_u64(balance.available, 10, "from where they were");

    /* a server that is told to end there is not begun again by who ends it */

    is_u64(test_admin(tc, RON_ADMIN_SAFE_ENTER, &admin), RON_ADMIN_DONE,
           "safe mode again");
    ron_service_drain(s);
    ron_sleep_us(50000);
    ron_service_stat(s, &stat);
    is_u64(stat.state, RON_STATE_SAFE_MODE, "a drain has to wait");
    is_u64(test_admin(tc, RON_ADMIN_SAFE_LEAVE, &admin), RON_ADMIN_DONE,
           "until it is left");
    is_u64(test_until(s, RON_STATE_STOPPED), RON_STATE_STOPPED,
           "and is not forgotten");
    tc_free(tc);
    test_stop(s);
}


/* ---- after an unclean death ---------------------------------------------- */

typedef struct {
    atomic_uint        n;
    _Atomic ron_life_t state[16];
    char               reason[16][RON_MSG_REASON_MAX];
    _Atomic uint64_t   head;
} states_t;


static void
test_on_state(void *ctx, ron_life_t state, const char *reason)
{
    states_t *states = ctx;

    unsigned  n;

    n = atomic_load(&states->n);

    if (n < 16) {
        states->state[n] = state;
        (void) snprintf(states->reason[n], sizeof(states->reason[n]), "%s",
                        reason);
        atomic_store(&states->n, n + 1);
    }
}


static void
test_on_head(void *ctx, uint64_t seq, uint64_t time_ms,
    const ron_hash_t *root)
{
    states_t *states = ctx;

    (void) time_ms;
    (void) root;
    atomic_store(&states->head, seq);
}


/* The newest state that was told, when it is this one or time is over. */

static ron_life_t
test_told(states_t *states, ron_life_t state)
{
    unsigned  n;
    uint64_t  end;

    end = ron_clock_mono_us() + WAIT_US;

    do {
        n = atomic_load(&states->n);

        if (n > 0 && states->state[n - 1] == state) {
            return state;
        }

        ron_sleep_us(1000);
    } while (ron_clock_mono_us() < end);

    return RON_STATE_STARTING;
}


/* A batch that does not come back, and 5 s more: what is durable is said. */

static void
test_drain_stuck(void)
{
    tc_t                *tc;
    states_t             states;
    uint64_t             first, call, seq, end;
    ron_buf_t            wire;
    ron_reason_t         reason;
    ron_service_t       *s;
    ron_msg_admin_t      admin;
    ron_service_conf_t   conf;

    test_conf(&conf, "stuck");
    conf.engine.batch_ops = 1;
    conf.commit_delay_us = 5600000;
    conf.drain_ms = 100;
    s = test_start(&conf);
    tc = tc_make();
    ron_buf_init(&wire, 0);

    test_wire(&wire, RON_KIND_MINT, "alice", NULL, 1, 0, "s-1");
    first = ron_client_call(tc->c);
    RON_ASSERT(ron_client_unit_wire(tc->c, first, ron_buf_str(&wire))
               == RON_OK);
    (void) test_outcome(tc_wait(tc, first), &reason, &seq);
    is_u64(reason, RON_REASON_OK, "one is done");

    test_wire(&wire, RON_KIND_MINT, "alice", NULL, 1, 0, "s-2");
    call = ron_client_call(tc->c);
    RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
               == RON_OK);
    end = ron_clock_mono_us() + 100000;
    while (ron_clock_mono_us() < end) {
        (void) tc_pump(tc, 1);
    }
    ron_service_drain(s);
    tc_pump_until(tc, RON_STATE_SAFE_MODE);
    ok(strcmp(tc->reason, "drain: partial at seq 1") == 0,
       "the next is not, when the drain's time is over: %s", tc->reason);
    is_u64(tc->final_commits, 0, "no final root is published");
    (void) test_outcome(tc_wait(tc, call), &reason, &seq);
    ok(reason == RON_REASON_OK && seq == 2, "which is told when it is");
    ron_buf_free(&wire);
    tc_free(tc);
    test_stop(s);

    memset(&states, 0, sizeof(states));
    conf.commit_delay_us = 0;
    conf.on_state = test_on_state;
    conf.ctx = &states;
    is_status(ron_service_start(&conf, &s), RON_OK, "the next one");
    is_u64(test_until(s, RON_STATE_SAFE_MODE), RON_STATE_SAFE_MODE,
           "finds the mark");
    tc = tc_make();
    is_u64(test_told(&states, RON_STATE_SAFE_MODE), RON_STATE_SAFE_MODE,
           "and tells");
    ok(strstr(states.reason[atomic_load(&states.n) - 1], "partial at seq 1")
       != NULL, "why: %s", states.reason[atomic_load(&states.n) - 1]);
    is_u64(test_admin(tc, RON_ADMIN_SAFE_LEAVE, &admin), RON_ADMIN_DONE,
           "until an operator ends it");
    tc_free(tc);
    test_stop(s);
}


/* A service in a process of its own, which is killed in the end. */

static pid_t
test_child(const ron_service_conf_t *conf, bool safe)
{
    tc_t                *tc;
    pid_t                pid;
    char                 byte;
    int                  fds[2];
    ron_service_t       *s;
    ron_msg_admin_t      admin;

    byte = 0;
    RON_ASSERT(pipe(fds) == 0);
    pid = fork();
    RON_ASSERT(pid != -1);

    if (pid == 0) {
        if (ron_service_start(conf, &s) != RON_OK
            || test_until(s, safe ? RON_STATE_SAFE_MODE : RON_STATE_RUNNING)
               != (safe ? RON_STATE_SAFE_MODE : RON_STATE_RUNNING))
        {
            _exit(1);
        }

        if (!safe) {
            tc = tc_make();
            if (test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0)
                != RON_REASON_OK
                || test_admin(tc, RON_ADMIN_STAT, &admin) != RON_ADMIN_DONE)
            {
                _exit(1);
            }
        }

        (void) !write(fds[1], "x", 1);

        for ( ;; ) {
            pause();
        }
    }

    (void) close(fds[1]);
    RON_ASSERT(read(fds[0], &byte, 1) == 1);
    (void) close(fds[0]);

    return pid;
}


static void
test_kill(pid_t pid)
{
    RON_ASSERT(kill(pid, SIGKILL) == 0);
    RON_ASSERT(waitpid(pid, NULL, 0) == pid);
}


static void
test_replay(void)
{
    tc_t                *tc;
    states_t             states;
    ron_service_t       *s;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    test_conf(&conf, "replay");
    test_kill(test_child(&conf, false));

    /* the name that the dead one left says so; so does the flag */

    memset(&states, 0, sizeof(states));
    conf.on_state = test_on_state;
    conf.on_head = test_on_head;
    conf.ctx = &states;
    conf.published_seq = 1;
    s = test_start(&conf);
    is_u64(test_told(&states, RON_STATE_RUNNING), RON_STATE_RUNNING,
           "running is told");
    is_u64(states.state[0], RON_STATE_SAFE_MODE, "after a kill: safe mode");
    ok(strncmp(states.reason[0], "replay: ", 8) == 0, "because: %s",
       states.reason[0]);
    is_u64(atomic_load(&states.n), 2, "two changes");
    is_u64(states.state[1], RON_STATE_RUNNING, "and it leaves by itself");
    is_u64(atomic_load(&states.head), 1, "told of the head");
    ron_service_stat(s, &stat);
    is_u64(stat.safe_entered, 1, "counted once");
    test_stop(s);

    memset(&states, 0, sizeof(states));
    s = test_start(&conf);
    is_u64(states.state[0], RON_STATE_FOLLOWING, "after a stop: no replay");
    test_stop(s);

    memset(&states, 0, sizeof(states));
    conf.unclean = true;
    s = test_start(&conf);
    is_u64(states.state[0], RON_STATE_SAFE_MODE, "unclean says the same");
    is_u64(test_told(&states, RON_STATE_RUNNING), RON_STATE_RUNNING,
           "and is left by itself");
    test_stop(s);

    /* a journal that ends before what was published is not written */

    memset(&states, 0, sizeof(states));
    conf.published_seq = 2;
    is_status(ron_service_start(&conf, &s), RON_OK, "it starts");
    is_u64(test_until(s, RON_STATE_SAFE_MODE), RON_STATE_SAFE_MODE,
           "behind what was published: safe mode");
    tc = tc_make();
    ok(strncmp(states.reason[atomic_load(&states.n) - 1], "gap: ", 5) == 0,
       "gap: %s", states.reason[atomic_load(&states.n) - 1]);
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0),
           RON_REASON_SAFE_MODE, "nothing is written");
    tc_free(tc);
    test_stop(s);

    conf.published_seq = 1;
    conf.unclean = false;
    is_status(ron_service_start(&conf, &s), RON_OK, "started again");
    is_u64(test_until(s, RON_STATE_SAFE_MODE), RON_STATE_SAFE_MODE,
           "it is marked");
    tc = tc_make();
    test_leave(tc);
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0), RON_REASON_OK,
           "until an operator says so");

    /* what somebody derived does not agree */

    ron_service_distrust(s, "history.db does not agree");
    tc_pump_until(tc, RON_STATE_SAFE_MODE);
    is_str(tc->reason, "gap: history.db does not agree", "distrust is told");
    test_leave(tc);
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0), RON_REASON_OK,
           "and ended by an operator");
    tc_free(tc);
    test_stop(s);
}


/*
 * Two in safe mode take the name from each other.  When the one that has it
 * dies, the other is found again.
 */

static void
test_name_lost(void)
{
    tc_t                *tc;
    pid_t                pid;
    ron_service_t       *s;
    ron_msg_admin_t      admin;
    ron_service_conf_t   conf;

    test_conf(&conf, "name");
    s = test_start(&conf);
    tc = tc_make();
    is_u64(test_admin(tc, RON_ADMIN_SAFE_ENTER, &admin), RON_ADMIN_DONE,
           "safe mode");
    tc_free(tc);

    pid = test_child(&conf, true);
    test_kill(pid);

    tc = tc_make_key(TEST_KEY);
    ok(tc_connect(tc), "the one that lives is found");
    is_u64(tc->state, RON_STATE_SAFE_MODE, "still in safe mode");
    test_leave(tc);
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0), RON_REASON_OK,
           "and can be told to leave it");
    tc_free(tc);
    test_stop(s);
}


/* A read that fails is no verdict: nothing is done, nothing is burnt. */

static void
test_read_fails(void)
{
    tc_t                *tc;
    unsigned             i, n;
    char                 key[32];
    uint64_t             call, seq;
    ron_buf_t            wire;
    ron_reason_t         reason;
    ron_service_t       *s;
    ron_msg_balance_t    b;
    ron_service_conf_t   conf;

    test_conf(&conf, "read");
    conf.engine.store.vfs = "sync-fails";
    s = test_start(&conf);
    tc = tc_make();
    ron_buf_init(&wire, 0);

    for (i = 0; i < 3000; i++) {
        (void) snprintf(key, sizeof(key), "r-%u", i);
        ron_buf_reset(&wire);
        test_wire(&wire, RON_KIND_MINT, "alice", NULL, 1, 0, key);
        tc->answer_n = 0;
        call = ron_client_call(tc->c);
        RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
                   == RON_OK);
        (void) test_outcome(tc_wait(tc, call), &reason, &seq);
        RON_ASSERT(reason == RON_REASON_OK);
    }

    atomic_store(&test_read_fails_now, 1);
    n = 0;

    for (i = 0; i < 3000 && n == 0; i += 50) {
        (void) snprintf(key, sizeof(key), "r-%u", i);
        ron_buf_reset(&wire);
        test_wire(&wire, RON_KIND_MINT, "alice", NULL, 1, 0, key);
        tc->answer_n = 0;
        call = ron_client_call(tc->c);
        RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
                   == RON_OK);
        (void) test_outcome(tc_wait(tc, call), &reason, &seq);
        n += reason != RON_REASON_OK;
    }

    atomic_store(&test_read_fails_now, 0);
    ok(n > 0, "a read that was needed failed");
    is_u64(ron_reason_info(reason)->status, 503, "503: %s",
           ron_reason_info(reason)->name);

    for (i = 0; i < 500; i++) {
        tc->answer_n = 0;
        call = ron_client_call(tc->c);
        RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
                   == RON_OK);
        (void) test_outcome(tc_wait(tc, call), &reason, &seq);

        if (reason == RON_REASON_OK) {
            break;
        }

        ron_sleep_us(20000);
    }

    is_u64(reason, RON_REASON_OK, "the same again is what it was");
    ok(test_balance(tc, "alice", &b), "balance");
    is_u64(b.available, 3000, "done once");
    ron_buf_free(&wire);
    tc_free(tc);
    test_stop(s);
}


/* A store that is full: fail closed, marked, until an operator speaks. */

static void
test_disk_full(void)
{
    tc_t                *tc;
    void                *region;
    unsigned             i, done;
    ron_reason_t         reason;
    ron_service_t       *s;
    ron_msg_balance_t    balance;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    test_conf(&conf, "full");
    conf.engine.store.region_len = 1024 * 1024;
    region = aligned_alloc(4096, conf.engine.store.region_len);
    RON_ASSERT(region != NULL);
    memset(region, 0, conf.engine.store.region_len);
    conf.engine.store.url = "memory:1m";
    conf.engine.store.region = region;
    s = test_start(&conf);
    tc = tc_make();
    done = 0;
    reason = RON_REASON_OK;

    for (i = 0; i < 20000 && reason == RON_REASON_OK; i++) {
        reason = test_one(tc, RON_KIND_MINT, "alice", NULL, 1, 0);
        done += reason == RON_REASON_OK;
    }

    is_u64(reason, RON_REASON_SAFE_MODE, "full after %u, refused", done);
    tc_pump_until(tc, RON_STATE_SAFE_MODE);
    ok(strncmp(tc->reason, "disk_full: ", 11) == 0, "told: %s", tc->reason);

    for (i = 0; i < 1000; i++) {
        if (test_balance(tc, "alice", &balance) && !balance.unavailable) {
            break;
        }
        ron_sleep_us(10000);
    }
    is_u64(balance.available, done, "exactly what was answered is there");
    ron_sleep_us(400000);
    ron_service_stat(s, &stat);
    is_u64(stat.state, RON_STATE_SAFE_MODE, "and it stays in safe mode");
    tc_free(tc);
    test_stop(s);
    free(region);
}


/* The one before could not write, its mark neither: a successor tries first. */

static void
test_probe(void)
{
    char                 path[160];
    tc_t                *tc;
    unsigned             i;
    states_t             states;
    ron_service_t       *s;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    test_conf(&conf, "probe");
    s = test_start(&conf);
    test_stop(s);

    (void) snprintf(path, sizeof(path), "%s/probe", test_url + 7);
    RON_ASSERT(mkdir(path, 0700) == 0);

    memset(&states, 0, sizeof(states));
    conf.on_state = test_on_state;
    conf.ctx = &states;
    is_status(ron_service_start(&conf, &s), RON_OK, "it starts");
    is_u64(test_told(&states, RON_STATE_SAFE_MODE), RON_STATE_SAFE_MODE,
           "nothing can be written beside the journal: safe mode");
    i = atomic_load(&states.n) - 1;
    ok(strncmp(states.reason[i], "open: a page could not be written", 33) == 0,
       "because: %s", states.reason[i]);
    tc = tc_make();
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0),
           RON_REASON_SAFE_MODE, "nothing is written");
    ron_sleep_us(300000);
    ron_service_stat(s, &stat);
    is_u64(stat.state, RON_STATE_SAFE_MODE, "it stays");
    tc_free(tc);

    RON_ASSERT(rmdir(path) == 0);
    is_u64(test_told(&states, RON_STATE_RUNNING), RON_STATE_RUNNING,
           "and ends by itself when a page can be written");
    tc = tc_make();
    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0), RON_REASON_OK,
           "then it pays");
    tc_free(tc);
    test_stop(s);
}


static void
test_peers(void)
{
    int                  fd;
    char                 byte;
    tc_t                *tc, *bad;
    unsigned             i;
    uint64_t             begin;
    ron_service_t       *s;
    ron_service_conf_t   conf;
    ron_service_stat_t   stat;

    test_conf(&conf, "peers");
    conf.connections = 3;
    conf.out_max = 1024 * 1024 + 4;
    s = test_start(&conf);
    tc = tc_make();

    bad = tc_make_key("another root key of some bytes");
    bad->fd = tc_socket(test_sock);
    while (tc_pump(bad, 5000) && !bad->ready) { /* void */ }
    ok(!bad->ready, "a wrong key is not let in");
    tc_close(bad);
    ron_service_stat(s, &stat);
    is_u64(stat.auth_failures, 1, "and counted");

    fd = tc_socket(test_sock);
    RON_ASSERT(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
    RON_ASSERT(fcntl(fd, F_SETFL, 0) == 0);
    while (recv(fd, &byte, 1, 0) > 0) { /* void */ }
    close(fd);
    ron_service_stat(s, &stat);
    is_u64(stat.protocol_errors, 1, "another protocol is closed");

    begin = ron_clock_mono_us();
    fd = tc_socket(test_sock);
    RON_ASSERT(fcntl(fd, F_SETFL, 0) == 0);
    while (recv(fd, &byte, 1, 0) > 0) { /* void */ }
    close(fd);
    begin = ron_clock_mono_us() - begin;
    ok(begin > 900000 && begin < 5000000, "a silent one after %llu ms",
       (unsigned long long) begin / 1000);

    tc_free(bad);

    bad = tc_make();
    for (i = 0; i < 4000; i++) {
        if (ron_client_admin(bad->c, ron_client_call(bad->c), RON_ADMIN_STAT,
                             ron_null_str) != RON_OK)
        {
            break;
        }
    }

    for (i = 0; i < 2000; i++) {
        ron_str_t  out = ron_client_output(bad->c);
        ssize_t    n;

        n = send(bad->fd, out.data, out.len, MSG_NOSIGNAL);
        if (n > 0) {
            ron_client_sent(bad->c, (size_t) n);
        }
        ron_service_stat(s, &stat);
        if (stat.slow_closed > 0) {
            break;
        }
        ron_sleep_us(1000);
    }
    is_u64(stat.slow_closed, 1, "one that does not read is closed");
    tc_free(bad);

    is_u64(test_one(tc, RON_KIND_MINT, "alice", NULL, 5, 0), RON_REASON_OK,
           "the others are served");

    {
        int  fds[8];

        for (i = 0; i < 8; i++) {
            fds[i] = tc_socket(test_sock);
        }
        ron_sleep_us(100000);
        ron_service_stat(s, &stat);
        is_u64(stat.connections, 3, "no more connections than allowed");
        for (i = 0; i < 8; i++) {
            close(fds[i]);
        }
    }

    tc_free(tc);
    test_stop(s);
}


static void
test_time(void)
{
    tc_t                *tc;
    uint64_t             call, seq;
    unsigned             i;
    ron_buf_t            wire;
    ron_unit_t           unit;
    ron_entry_t          op;
    ron_reason_t         reason;
    ron_service_t       *s;
    ron_msg_balance_t    balance;
    ron_service_conf_t   conf;

    test_conf(&conf, "time");
    s = test_start(&conf);
    tc = tc_make();
    (void) test_one(tc, RON_KIND_MINT, "alice", NULL, 50, 0);
    is_u64(test_one(tc, RON_KIND_HOLD, "alice", "bob", 20, 1), RON_REASON_OK,
           "a hold of 400 ms");
    ok(test_balance(tc, "alice", &balance) && balance.held == 20, "is held");

    for (i = 0; i < 200 && balance.held > 0; i++) {
        ron_sleep_us(10000);
        (void) test_balance(tc, "alice", &balance);
    }
    ok(balance.held == 0 && balance.available == 50 && balance.seq == 3,
       "and released by the timer, with nobody asking");

    memset(&op, 0, sizeof(op));
    op.kind = RON_KIND_MINT;
    op.asset = ron_str("ron");
    op.account = ron_str("alice");
    op.amount = 1;
    op.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    memset(&unit, 0, sizeof(unit));
    unit.type = RON_UNIT_WALLET;
    unit.deadline_us = 1;
    unit.cap = ron_str("dev:test");
    unit.key = ron_str("too-late");
    unit.op_n = 1;
    unit.ops = &op;
    tc->answer_n = 0;
    call = ron_client_call(tc->c);
    ron_buf_init(&wire, 0);
    RON_ASSERT(ron_unit_encode(&unit, &wire) == RON_OK);
    RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_buf_str(&wire))
               == RON_OK);
    ron_buf_free(&wire);
    (void) test_outcome(tc_wait(tc, call), &reason, &seq);
    is_u64(reason, RON_REASON_RETRY_LATER, "a deadline that has passed");

    tc->answer_n = 0;
    call = ron_client_call(tc->c);
    RON_ASSERT(ron_client_unit_wire(tc->c, call, ron_str("junk")) == RON_OK);
    (void) test_outcome(tc_wait(tc, call), &reason, &seq);
    is_u64(reason, RON_REASON_MALFORMED, "a unit that cannot be decoded");

    tc_free(tc);
    test_stop(s);
}


static void
test_quiet(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;

    if (level == RON_LOG_ALERT || getenv("TEST_LOG") != NULL) {
        fprintf(stderr, "# %s\n", line);
    }
}


int
main(void)
{
    char  command[128];

    (void) snprintf(test_dir, sizeof(test_dir), "/tmp/ron-service-XXXXXX");
    RON_ASSERT(mkdtemp(test_dir) != NULL);
    ron_log_set(test_quiet, NULL, RON_LOG_DEBUG);

    test_takeover();
    test_basic();
    test_load();
    test_full_queues();
    test_full_balances();
    test_company();
    test_undurable();
    test_batch_key();
    test_repeated();
    test_asked();
    test_heads();
    test_preval_bytes();
    test_sync_fails();
    test_drain();
    test_drain_admitted();
    test_drain_stuck();
    test_safe_mode();
    test_read_fails();
    test_replay();
    test_name_lost();
    test_disk_full();
    test_probe();
    test_peers();
    test_time();

    (void) snprintf(command, sizeof(command), "rm -rf %s", test_dir);
    ok(system(command) == 0, "cleaned up");

    return done_testing();
}
