
/*
 * Load that remembers.  Many connections to one server, random operations
 * over many accounts, and every attempt goes to a history: when it was sent,
 * when it ended, what was asked, what was answered.  t/lib/RonHistory.pm
 * checks a history against the journal.
 *
 * The client is unpleasant on purpose: it hangs up early, sends again under
 * the same key, sends the same at once on two connections, lets the nonces of
 * one account overtake each other, replays what was answered long ago, tries
 * other payments under keys that are taken, and gives some up without an
 * answer.  What became of a key it also asks.
 *
 *     client -p PORT -t TOKENFILE -o HISTORY [-c CONNECTIONS] [-a ACCOUNTS]
 *            [-s SECONDS] [-e SETTLE] [-n NAME] [-S SEED] [-r RATE] [-f FINAL]
 *            [-x EXPIRY] [-g] [-m]
 *
 *     -g   gentle: nothing unpleasant, only what failed is sent again
 *     -m   a worker may have no memory: a 500 says nothing, and is asked again
 *     -x   some holds expire after EXPIRY seconds (1), or twice that; 0: none do
 *     -f   in the end, what was refused or given up is asked for when FINAL ms
 *          have passed since it was sent: "unknown" may be for good by then
 *
 * After SECONDS, or SIGTERM, nothing new is begun.  What has no final answer
 * is sent again for up to SETTLE seconds, what is remembered is replayed once
 * more, and what was refused or given up is asked for.  The last line says what
 * happened; the exit code is 0 unless the client itself could not go on.
 *
 * A connection that is kept alive may be closed by a server that ends, before
 * a byte of the next answer: that is `lost`, and the request is sent again
 * under its key.  It is also
 *
 *     new      if no answer had come on that connection before, or it was not
 *              even made
 *     cut      if the answer had begun
 *     unheard  if nothing else befell the operation and the server has it all
 *              the same: it was read, and nobody was told (with -g only)
 *
 * A line of the history, separated by tabs:
 *
 *     kind      W an operation, R a read, M another body under a taken key,
 *               O a question what became of an operation
 *     number    of the operation
 *     begin end of the attempt, in us of the monotonic clock
 *     status    of the answer; 0 hung up on; -1 the client did not wait
 *     replayed  1 if the answer said so
 *     tag       entity tag, or -; of a question the age that it named
 *     path key body answer; of a question those of the operation
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>


#define CLIENT_CONNS     512
#define CLIENT_ACCOUNTS  4096
#define CLIENT_BODY      1024
#define CLIENT_KEEP      32768              /* operations to replay */
#define CLIENT_LEFT      256                /* refused or given up */
#define CLIENT_HOLDS     4096
#define CLIENT_IN        65536
#define CLIENT_WAIT_US   7000000            /* longer than any deadline */
#define CLIENT_FUND      20000
#define CLIENT_TOO_MUCH  1000000


typedef enum {
    OP_OPEN = 0,
    OP_DONE,
    OP_REFUSED,
    OP_LEFT                                 /* given up, nobody knows */
} op_state_t;


typedef struct op_s  op_t;

struct op_s {
    uint64_t        id;
    op_state_t      state;
    char            kind;                   /* W, R, M, O */
    bool            queued;
    bool            kept;
    bool            funds;
    uint32_t        entries;                /* of an ingest */
    bool            unheard;                /* was lost, and nothing else */
    uint32_t        flying;
    uint32_t        attempts;
    int32_t         account;                /* whose nonce it has, or -1 */
    int32_t         scope;                  /* whose key it is, or -1 */
    uint64_t        due_us;
    uint64_t        sent_us;                /* the last of it, ever */
    uint64_t        age_ms;                 /* that a question named */
    op_t           *next;
    char            path[128];
    char            key[48];
    char            body[CLIENT_BODY];
};


typedef struct {
    int             fd;
    bool            connecting;
    bool            used;                   /* an answer has come on it */
    op_t           *op;
    uint64_t        begin_us;
    uint64_t        deadline_us;
    uint64_t        retry_us;               /* no connecting before */
    size_t          out_len;
    size_t          out_sent;
    size_t          in_len;
    char            out[4096];
    char            in[CLIENT_IN];
} conn_t;


typedef struct {
    char            txid[40];
    int32_t         account;
} hold_t;


typedef struct {
    op_t           *head;
    op_t           *tail;
} queue_t;


typedef struct {
    int             status;
    bool            replayed;
    bool            close;
    char            tag[24];
    const char     *body;
    size_t          body_len;
    size_t          total;
} answer_t;


static int           port;
static char          token[2048];
static FILE         *history;
static uint32_t      conn_n = 32;
static uint32_t      account_n = 200;
static double        run_seconds = 5;
static double        settle_seconds = 30;
static double        rate;
static uint64_t      final_us;
static uint64_t      expiry_s = 1;
static const char   *name = "x";
static bool          gentle;
static bool          starving;

static int           poll_fd;
static conn_t       *conns;
static queue_t       again;                 /* in the order of their time */
static queue_t       twice;                 /* at once, on another connection */
static op_t         *kept[CLIENT_KEEP];
static uint32_t      kept_n;
static op_t         *left[CLIENT_LEFT];
static uint32_t      left_n;
static hold_t        holds[CLIENT_HOLDS];
static uint32_t      hold_n;
static uint64_t      nonces[CLIENT_ACCOUNTS];
static uint32_t      busy[CLIENT_ACCOUNTS];
static uint64_t      rnd;
static uint64_t      op_last;
static uint64_t      open_n;
static uint32_t      to_fund;
static uint32_t      to_replay;
static uint32_t      to_ask;
static volatile sig_atomic_t  stopping;

static struct {
    uint64_t  ok, replayed, refused, later, lost, gone, reads, attempts, bad;
    uint64_t  fresh, cut, unheard, asked, left;
} count;


static void
die(const char *what)
{
    (void) fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
    exit(1);
}


static void
on_stop(int sig)
{
    (void) sig;
    stopping = 1;
}


static uint64_t
now_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


static uint64_t
draw(uint64_t n)
{
    rnd ^= rnd << 13;
    rnd ^= rnd >> 7;
    rnd ^= rnd << 17;

    return (rnd >> 11) % n;
}


/* One in n, if the client may be unpleasant. */
static bool
mischief(uint64_t n)
{
    return !gentle && !stopping && draw(n) == 0;
}


static void
queue_put(queue_t *q, op_t *op)
{
    op->queued = true;
    op->next = NULL;

    if (q->tail == NULL) {
        q->head = op;
    } else {
        q->tail->next = op;
    }

    q->tail = op;
}


static op_t *
queue_take(queue_t *q)
{
    op_t  *op = q->head;

    q->head = op->next;

    if (q->head == NULL) {
        q->tail = NULL;
    }

    op->queued = false;

    return op;
}


/* ---- operations --------------------------------------------------------- */

static op_t *
op_new(char kind)
{
    op_t  *op = calloc(1, sizeof(op_t));

    if (op == NULL) {
        die("memory");
    }

    op->id = ++op_last;
    op->kind = kind;
    op->account = -1;
    op->scope = -1;
    (void) snprintf(op->key, sizeof(op->key), "%s-%llu", name,
                    (unsigned long long) op->id);

    if (kind == 'W') {
        open_n++;
    }

    return op;
}


static void
op_free(op_t *op)
{
    if (op->flying == 0 && !op->queued && !op->kept) {
        free(op);
    }
}


/* Keeps a finished operation, in the place of an older one. */
static void
op_keep(op_t *op, op_t **place, uint32_t *n, uint32_t max)
{
    op_t      *old;
    uint32_t  i;

    if (op->kept) {
        return;
    }

    i = *n < max ? (*n)++ : (uint32_t) draw(max);
    old = place[i];
    place[i] = op;
    op->kept = true;

    if (old != NULL) {
        old->kept = false;
        op_free(old);
    }
}


static void
op_settled(op_t *op, op_state_t state)
{
    if (op->kind != 'W' || op->state == OP_DONE || op->state == state) {
        return;
    }

    if (op->state == OP_OPEN) {
        open_n--;

        if (op->account >= 0) {
            busy[op->account]--;
        }

        to_fund -= op->funds;
    }

    op->state = state;

    if (state == OP_DONE) {
        op_keep(op, kept, &kept_n, CLIENT_KEEP);

    } else if (op->scope >= 0 && !stopping
               && (state == OP_LEFT || left_n < CLIENT_LEFT / 2))
    {
        op_keep(op, left, &left_n, CLIENT_LEFT);
    }
}


/* An account that has nothing under way, or now and then one that has. */
static uint32_t
some_account(void)
{
    uint32_t  i, a;

    a = (uint32_t) draw(account_n);

    for (i = 0; i < 8 && busy[a] != 0 && !mischief(20); i++) {
        a = (uint32_t) draw(account_n);
    }

    return a;
}


static void
op_body(op_t *op, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));


static void
op_body(op_t *op, const char *path, const char *format, ...)
{
    va_list  args;

    (void) snprintf(op->path, sizeof(op->path), "%s", path);

    va_start(args, format);
    (void) vsnprintf(op->body, sizeof(op->body), format, args);
    va_end(args);
}


static void
op_issue(op_t *op, uint32_t to, uint64_t amount)
{
    op_body(op, "/v1/issue", "{\"to\":\"%s%u\",\"asset\":\"ron\","
            "\"amount_minor\":\"%llu\"}", name, to,
            (unsigned long long) amount);

    op->scope = (int32_t) to;
}


static void
op_batch(op_t *op, uint32_t from)
{
    size_t    len;
    uint32_t  i, n;

    n = 2 + (uint32_t) draw(3);
    (void) snprintf(op->path, sizeof(op->path), "/v1/batch");
    len = (size_t) snprintf(op->body, sizeof(op->body),
                            "{\"atomic\":%s,\"ops\":[",
                            draw(2) ? "true" : "false");

    for (i = 0; i < n; i++) {
        len += (size_t) snprintf(op->body + len, sizeof(op->body) - len,
            "%s{\"op\":\"transfer\",\"from\":\"%s%u\",\"to\":\"%s%u\","
            "\"asset\":\"ron\",\"amount_minor\":\"%llu\",\"nonce\":%llu}",
            i ? "," : "", name, from, name,
            (from + 1 + (uint32_t) draw(account_n - 1)) % account_n,
            (unsigned long long) (1 + draw(120)),
            (unsigned long long) ++nonces[from]);
    }

    (void) snprintf(op->body + len, sizeof(op->body) - len, "]}");
}


/* One more entry of an ingest; its id ends with its place. */
static void
op_entry(op_t *op, const char *kind, uint32_t account, int32_t to,
    uint64_t amount)
{
    size_t             len, i;
    uint32_t           n;
    char               nonce[25], whom[80];
    static const char  digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789+/";

    len = strlen(op->body);
    n = op->entries++;

    for (i = 0; i < 21; i++) {
        nonce[i] = digits[draw(64)];
    }

    /* two of the last digit's bits count */
    nonce[21] = "AQgw"[draw(4)];
    memcpy(nonce + 22, "==", 3);

    whom[0] = '\0';

    if (to >= 0) {
        (void) snprintf(whom, sizeof(whom), "\"to\":\"%s%d\",", name, to);
    }

    (void) snprintf(op->body + len, sizeof(op->body) - len,
        "%s{\"id\":\"%s.%u\",\"ts\":%llu,\"kind\":\"%s\","
        "\"account\":\"%s%u\",%s\"amount\":\"%llu\",\"nonce\":\"%s\","
        "\"v\":1}", n ? "," : "", op->key, n, (unsigned long long) op->id,
        kind, name, account, whom, (unsigned long long) amount, nonce);
}


/* Two or three legs in, or out, and one that balances them. */
static void
op_posting(op_t *op, uint32_t from, uint32_t to)
{
    bool      in;
    uint32_t  i, n;
    uint64_t  amount, sum;

    in = draw(2);
    n = 1 + (uint32_t) draw(2);
    sum = 0;

    if (in) {
        op_entry(op, "Debit", from, -1, 100);
    }

    for (i = 0; i < n; i++) {
        amount = in ? (i + 1 < n ? 1 + draw(98) : 100 - sum) : 1 + draw(90);
        op_entry(op, in ? "Credit" : "Debit",
                 (in ? to + i : from + i) % account_n, -1, amount);
        sum += amount;
    }

    if (!in) {
        /* it may not balance, as little as other things may be covered */
        op_entry(op, "Credit", to, -1, sum + (draw(16) == 0));
    }
}


/*
 * Entries of the ledger itself: no nonces that count, and no scope.  Without
 * an idem_id each entry is known by its id alone, and what was refused may be
 * accepted when it comes again.
 */
static void
op_ingest(op_t *op, uint32_t from, uint32_t to)
{
    bool      keyed;
    size_t    len;
    uint32_t  i, n;
    uint64_t  amount;

    keyed = draw(4) != 0;
    n = 1 + (uint32_t) draw(3);

    op_body(op, "/ledger/ingest", "{\"atomic\":%s,%s%s%s\"batch\":[",
            draw(2) ? "true" : "false", keyed ? "\"idem_id\":\"" : "",
            keyed ? op->key : "", keyed ? "\"," : "");

    if (draw(3) == 0) {
        op_posting(op, from, to);
        n = (uint32_t) draw(2);
    }

    for (i = 0; i < n; i++) {
        amount = draw(12) == 0 ? CLIENT_TOO_MUCH : 1 + draw(120);

        switch (draw(4)) {
        case 0:
            op_entry(op, "Mint", to, -1, 1 + draw(100));
            break;
        case 1:
            op_entry(op, "Burn", from, -1, amount);
            break;
        default:
            op_entry(op, "Transfer", from, (int32_t) to, amount);
        }
    }

    len = strlen(op->body);
    (void) snprintf(op->body + len, sizeof(op->body) - len, "]}");
}


/* What is kept of a hold, and whose key an operation on it has. */
static const char *
some_hold(op_t *op)
{
    const hold_t  *h;

    h = &holds[draw(hold_n < CLIENT_HOLDS ? hold_n : CLIENT_HOLDS)];
    op->scope = h->account;

    return h->txid;
}


static op_t *
op_write(void)
{
    op_t      *op;
    char      expires[40];
    uint32_t  from, to, what;

    op = op_new('W');
    from = some_account();
    to = (from + 1 + (uint32_t) draw(account_n - 1)) % account_n;
    what = (uint32_t) draw(100);

    if (what < 4) {
        op_issue(op, to, 1 + draw(100));
        return op;
    }

    if (what < 12 && hold_n != 0) {
        op_body(op, "/v1/capture",
                "{\"hold\":\"%s\",\"amount_minor\":\"%llu\"}",
                some_hold(op),
                (unsigned long long) (1 + draw(60)));
        return op;
    }

    if (what < 18 && hold_n != 0) {
        op_body(op, "/v1/release", "{\"hold\":\"%s\"}", some_hold(op));
        return op;
    }

    if (what < 22) {
        op_ingest(op, from, to);
        return op;
    }

    op->account = (int32_t) from;
    op->scope = (int32_t) from;
    busy[from]++;

    if (what < 27) {
        op_batch(op, from);
        return op;
    }

    if (what < 31) {
        op_body(op, "/v1/burn", "{\"from\":\"%s%u\",\"asset\":\"ron\","
                "\"amount_minor\":\"%llu\",\"nonce\":%llu}", name, from,
                (unsigned long long) (1 + draw(100)),
                (unsigned long long) ++nonces[from]);
        return op;
    }

    expires[0] = '\0';

    if (what < 35 && expiry_s != 0) {
        (void) snprintf(expires, sizeof(expires), ",\"expires_in\":%llu",
                        (unsigned long long) expiry_s * (what < 34 ? 1 : 2));
    }

    op_body(op, what < 43 ? "/v1/hold" : "/v1/transfer",
            "{\"from\":\"%s%u\",\"to\":\"%s%u\",\"asset\":\"ron\","
            "\"amount_minor\":\"%llu\",\"nonce\":%llu%s}", name, from, name, to,
            (unsigned long long) (draw(64) == 0 ? CLIENT_TOO_MUCH
                                                : 1 + draw(150)),
            (unsigned long long) ++nonces[from], expires);

    return op;
}


static op_t *
op_read(void)
{
    op_t  *op;

    op = op_new('R');
    (void) snprintf(op->path, sizeof(op->path),
                    "/v1/balance?account=%s%u&asset=ron", name,
                    (uint32_t) draw(account_n));

    return op;
}


/* Another amount under the key of an operation that was done. */
static op_t *
op_mismatch(const op_t *taken)
{
    op_t  *op;
    char  *p;

    p = strstr(taken->body, "\"amount_minor\":\"");

    if (p == NULL && strstr(taken->body, "\"idem_id\"") != NULL) {
        p = strstr(taken->body, "\"amount\":\"");
    }

    if (p == NULL) {
        return NULL;
    }

    op = op_new('M');
    op->id = taken->id;
    memcpy(op->path, taken->path, sizeof(op->path));
    memcpy(op->key, taken->key, sizeof(op->key));
    memcpy(op->body, taken->body, sizeof(op->body));
    p = strchr(op->body + (p - taken->body), ':') + 2;
    *p = *p == '7' ? '8' : '7';

    return op;
}


/* What became of it?  NULL: it has no key that can be asked for. */
static op_t *
op_question(const op_t *about)
{
    op_t  *op;

    if (about == NULL || about->kind != 'W' || about->scope < 0
        || about->sent_us == 0)
    {
        return NULL;
    }

    op = op_new('O');
    op->id = about->id;
    op->scope = about->scope;
    op->sent_us = about->sent_us;
    memcpy(op->path, about->path, sizeof(op->path));
    memcpy(op->key, about->key, sizeof(op->key));
    memcpy(op->body, about->body, sizeof(op->body));

    return op;
}


/* One that was done, that is under way, or that was refused or given up. */
static op_t *
op_ask(void)
{
    switch (draw(4)) {

    case 0:
        return op_question(conns[draw(conn_n)].op);

    case 1:
        return left_n != 0 ? op_question(left[draw(left_n)]) : NULL;

    default:
        return kept_n != 0 ? op_question(kept[draw(kept_n)]) : NULL;
    }
}


/*
 * The last questions: NULL while the next one is not yet due.  First every
 * second one, before "unknown" may be for good, then the others.
 */
static op_t *
op_ask_last(uint64_t now)
{
    op_t             *op;
    uint32_t         i, half;
    uint64_t         age_us;
    static uint32_t  next;

    for (op = NULL; op == NULL && next < left_n; next++) {
        half = left_n / 2;
        i = next < half ? 2 * next + 1 : 2 * (next - half);
        age_us = next < half ? final_us / 16 * (8 + next % 8) : final_us;

        if (now < left[i]->sent_us + age_us) {
            return NULL;
        }

        op = op_question(left[i]);
    }

    to_ask = left_n - next;

    return op;
}


/* What to send next, or NULL. */
static op_t *
op_next(uint64_t now)
{
    op_t             *op;
    static uint32_t  fund_next, replay_next;
    static double    begun;
    static uint64_t  first_us;

    if (again.head != NULL && again.head->due_us <= now) {
        return queue_take(&again);
    }

    if (twice.head != NULL) {
        return queue_take(&twice);
    }

    if (fund_next < account_n) {
        op = op_new('W');
        op->funds = true;
        op_issue(op, fund_next++, CLIENT_FUND);
        return op;
    }

    if (to_fund != 0) {
        return NULL;
    }

    if (stopping) {
        if (open_n == 0 && replay_next < to_replay) {
            return kept[replay_next++];
        }

        return open_n == 0 ? op_ask_last(now) : NULL;
    }

    if (open_n > 4 * conn_n) {
        return draw(5) == 0 ? op_read() : NULL;
    }

    if (rate > 0) {
        first_us = first_us == 0 ? now : first_us;

        if (begun > rate * (double) (now - first_us) / 1e6) {
            return NULL;
        }

        begun += 1;
    }

    if (kept_n != 0 && mischief(40)) {
        return kept[draw(kept_n)];
    }

    if (kept_n != 0 && mischief(200)) {
        op = op_mismatch(kept[draw(kept_n)]);
        if (op != NULL) {
            return op;
        }
    }

    if (draw(25) == 0) {
        op = op_ask();
        if (op != NULL) {
            return op;
        }
    }

    if (draw(5) == 0) {
        return op_read();
    }

    op = op_write();

    if (mischief(50)) {
        queue_put(&twice, op);
    }

    return op;
}


/* ---- the history -------------------------------------------------------- */

static void
text_put(const char *p, size_t len)
{
    size_t  i;

    while (len != 0 && (p[len - 1] == '\n' || p[len - 1] == '\r')) {
        len--;
    }

    if (len == 0) {
        (void) putc_unlocked('-', history);
    }

    for (i = 0; i < len; i++) {
        (void) putc_unlocked((unsigned char) p[i] < ' ' ? ' ' : p[i], history);
    }
}


static void
record(const conn_t *c, int status, const answer_t *a)
{
    const op_t  *op = c->op;

    char  tag[24];

    (void) snprintf(tag, sizeof(tag), "%s",
                    a != NULL && a->tag[0] ? a->tag : "-");

    if (op->kind == 'O') {
        (void) snprintf(tag, sizeof(tag), "%llu",
                        (unsigned long long) op->age_ms);
    }

    count.attempts++;
    (void) fprintf(history, "%c\t%llu\t%llu\t%llu\t%d\t%d\t%s\t%s\t%s\t",
                   op->kind, (unsigned long long) op->id,
                   (unsigned long long) c->begin_us,
                   (unsigned long long) now_us(), status,
                   a != NULL && a->replayed, tag, op->path, op->key);
    text_put(op->body, strlen(op->body));
    (void) putc_unlocked('\t', history);
    text_put(a != NULL ? a->body : "", a != NULL ? a->body_len : 0);

    if (putc_unlocked('\n', history) == EOF) {
        die("the history");
    }
}


/* ---- answers ------------------------------------------------------------ */

static void
hold_keep(const op_t *op, const char *answer, size_t len)
{
    hold_t      *h;
    const char  *p;

    p = memmem(answer, len, "\"txid\":\"", 8);

    if (p != NULL && (size_t) (p - answer) + 8 + 29 <= len) {
        h = &holds[hold_n++ % CLIENT_HOLDS];
        memcpy(h->txid, p + 8, 29);
        h->account = op->account;
    }
}


static void
nonce_learn(const op_t *op, const char *answer, size_t len)
{
    uint64_t     n;
    const char  *p;

    p = memmem(answer, len, "\"expected\":", 11);

    if (p != NULL && op->account >= 0) {
        n = strtoull(p + 11, NULL, 10);
        if (n > nonces[op->account] + 1) {
            nonces[op->account] = n - 1;
        }
    }
}


static void
op_later(op_t *op, uint64_t now)
{
    if (op->kind != 'W' || op->state != OP_OPEN || op->queued) {
        op_free(op);
        return;
    }

    op->due_us = now + 20000 + draw(60000);
    queue_put(&again, op);
}


/* Sent, and not answered: now and then that is all, and it is asked for. */
static bool
op_left(op_t *op)
{
    if (op->kind != 'W' || op->state != OP_OPEN || op->queued || op->funds
        || op->flying != 0 || op->scope < 0 || !mischief(3))
    {
        return false;
    }

    op_settled(op, OP_LEFT);
    count.left++;
    op_free(op);

    return true;
}


static void
op_answered(op_t *op, const answer_t *a, uint64_t now)
{
    if (op->kind == 'R') {
        count.reads += a->status == 200;
        op_free(op);
        return;
    }

    if (op->kind == 'O') {
        count.asked += a->status == 200;
        op_free(op);
        return;
    }

    if (a->status == 200 || a->status == 207) {
        count.replayed += a->replayed;
        count.unheard += a->replayed && op->unheard && op->state == OP_OPEN;
        count.ok += op->state != OP_DONE && op->kind == 'W';

        if (op->state != OP_DONE && strcmp(op->path, "/v1/hold") == 0) {
            hold_keep(op, a->body, a->body_len);
        }

        op_settled(op, OP_DONE);
        op_free(op);
        return;
    }

    if (a->status == 429 || a->status == 503
        || (a->status == 500 && starving))
    {
        count.later++;
        op->unheard = false;
        op_later(op, now);
        return;
    }

    if (a->status == 400 || a->status == 401 || a->status == 403
        || a->status >= 500)
    {
        count.bad++;
        (void) fprintf(stderr, "client: %d %s %s: %.*s\n", a->status,
                       op->path, op->body, (int) a->body_len, a->body);
    }

    count.refused++;
    nonce_learn(op, a->body, a->body_len);
    op_settled(op, OP_REFUSED);
    op_free(op);
}


/* True when there is a whole answer. */
static bool
answer_parse(conn_t *c, answer_t *a)
{
    char    *end, *p, *line;
    size_t  len;

    memset(a, 0, sizeof(*a));
    c->in[c->in_len] = '\0';

    end = strstr(c->in, "\r\n\r\n");
    if (end == NULL || c->in_len < 13) {
        return false;
    }

    a->status = (int) strtol(c->in + 9, NULL, 10);
    len = 0;

    for (line = strchr(c->in, '\n') + 1; line < end + 2;
         line = strchr(line, '\n') + 1)
    {
        if (strncasecmp(line, "content-length:", 15) == 0) {
            len = (size_t) strtoull(line + 15, NULL, 10);

        } else if (strncasecmp(line, "idempotent-replayed: true", 25) == 0) {
            a->replayed = true;

        } else if (strncasecmp(line, "connection: close", 17) == 0) {
            a->close = true;

        } else if (strncasecmp(line, "etag: \"", 7) == 0) {
            p = strchr(line + 7, '"');
            if (p != NULL && (size_t) (p - line - 7) < sizeof(a->tag)) {
                memcpy(a->tag, line + 7, (size_t) (p - line - 7));
            }
        }
    }

    a->body = end + 4;
    a->body_len = len;
    a->total = (size_t) (end + 4 - c->in) + len;

    return c->in_len >= a->total;
}


/* ---- connections -------------------------------------------------------- */

static void
conn_close(conn_t *c)
{
    if (c->fd >= 0) {
        (void) close(c->fd);
    }

    c->fd = -1;
    c->connecting = false;
    c->used = false;
    c->in_len = 0;
}


/* What the end of a connection, which the client did not want, counts as. */
static void
conn_lost_count(const conn_t *c)
{
    op_t  *op = c->op;

    count.lost += c->out_sent != 0;
    count.fresh += !c->used;
    count.cut += c->in_len != 0;

    op->unheard = gentle && op->kind == 'W'
                  && (op->attempts == 1 || op->unheard);
}


/* The connection is gone; what was asked on it has no answer. */
static void
conn_lost(conn_t *c, int status, uint64_t now)
{
    op_t  *op = c->op;
    bool  sent = c->out_sent != 0;

    if (op != NULL) {
        if (status == 0) {
            conn_lost_count(c);
        } else {
            count.gone += sent;
            op->unheard = false;
        }

        if (sent) {
            record(c, status, NULL);
        } else {
            c->retry_us = now + 10000 + draw(20000);
        }

        op->flying--;
        c->op = NULL;

        if (!sent || !op_left(op)) {
            op_later(op, now);
        }
    }

    conn_close(c);
}


static bool
conn_open(conn_t *c)
{
    int                 one = 1;
    struct epoll_event  ev;
    struct sockaddr_in  sin;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        die("socket");
    }

    (void) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));

    memset(&sin, 0, sizeof(sin));
    sin.sin_family = AF_INET;
    sin.sin_port = htons((uint16_t) port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    ev.events = EPOLLIN | EPOLLOUT | EPOLLET;
    ev.data.ptr = c;

    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &ev) != 0) {
        die("epoll_ctl");
    }

    if (connect(c->fd, (struct sockaddr *) &sin, sizeof(sin)) == 0) {
        return true;
    }

    c->connecting = errno == EINPROGRESS;

    return c->connecting;
}


static void
conn_write(conn_t *c, uint64_t now)
{
    ssize_t  n;

    while (c->op != NULL && c->out_sent < c->out_len) {
        n = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent,
                 MSG_NOSIGNAL);

        if (n < 0) {
            if (errno != EAGAIN) {
                conn_lost(c, 0, now);
            }
            return;
        }

        c->out_sent += (size_t) n;

        if (c->op->kind != 'O') {
            c->op->sent_us = now_us();
        }
    }
}


/* How old a key is, is said as of now: the question is not yet sent. */
static int
conn_ask(conn_t *c, op_t *op, uint64_t now)
{
    op->age_ms = now > op->sent_us ? (now - op->sent_us) / 1000 : 0;

    return snprintf(c->out, sizeof(c->out),
        "GET /v1/outcome?account=%s%d&age=%llu HTTP/1.1\r\n"
        "Host: localhost\r\nAuthorization: Bearer %s\r\n"
        "Idempotency-Key: %s\r\n\r\n", name, op->scope,
        (unsigned long long) op->age_ms, token, op->key);
}


static void
conn_send(conn_t *c, op_t *op, uint64_t now)
{
    op->flying++;
    op->attempts++;

    c->op = op;
    c->in_len = 0;
    c->out_sent = 0;
    c->begin_us = now;
    c->deadline_us = now + (mischief(60) ? 1 + draw(20000) : CLIENT_WAIT_US);

    c->out_len = (size_t) (op->kind == 'O' ? conn_ask(c, op, now)
        : snprintf(c->out, sizeof(c->out),
        op->kind == 'R'
            ? "GET %s HTTP/1.1\r\nHost: localhost\r\n"
              "Authorization: Bearer %s\r\n\r\n"
            : "POST %s HTTP/1.1\r\nHost: localhost\r\n"
              "Authorization: Bearer %s\r\nIdempotency-Key: %s\r\n"
              "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n"
              "%s",
        op->path, token, op->key, strlen(op->body), op->body));

    if (c->out_len >= sizeof(c->out)) {
        errno = ENOBUFS;
        die("a request");
    }

    if (c->fd < 0 && !conn_open(c)) {
        conn_lost(c, 0, now);
        return;
    }

    if (!c->connecting) {
        conn_write(c, now);
    }
}


static void
conn_answer(conn_t *c, const answer_t *a, uint64_t now)
{
    op_t  *op = c->op;

    record(c, a->status, a);
    op->flying--;
    c->op = NULL;
    c->used = true;
    c->in_len = 0;
    op_answered(op, a, now);

    if (a->close) {
        conn_close(c);
    }
}


static void
conn_read(conn_t *c, uint64_t now)
{
    ssize_t   n;
    answer_t  a;

    while (c->fd >= 0) {
        n = recv(c->fd, c->in + c->in_len, CLIENT_IN - 1 - c->in_len, 0);

        if (n < 0 && errno == EAGAIN) {
            return;
        }

        if (n <= 0) {
            conn_lost(c, 0, now);
            return;
        }

        c->in_len += (size_t) n;

        if (c->op != NULL && answer_parse(c, &a)) {
            conn_answer(c, &a, now);
        }
    }
}


static void
conn_event(conn_t *c, uint32_t events, uint64_t now)
{
    int        error = 0;
    socklen_t  len = sizeof(error);

    if (c->connecting) {
        if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0
            || error != 0)
        {
            conn_lost(c, 0, now);
            return;
        }

        if (events & EPOLLOUT) {
            c->connecting = false;

            /* what was sent meanwhile is after a question, whose age is old */

            if (c->op != NULL && c->op->kind != 'O') {
                c->begin_us = now;
            }
        }
    }

    if (events & EPOLLOUT && !c->connecting) {
        conn_write(c, now);
    }

    if (c->fd >= 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        conn_read(c, now);
    }
}


/* ---- running ------------------------------------------------------------ */

static uint32_t
conns_feed(uint64_t now)
{
    op_t      *op;
    uint32_t  i, flying = 0;

    for (i = 0; i < conn_n; i++) {
        if (conns[i].op != NULL && now >= conns[i].deadline_us) {
            conn_lost(&conns[i], -1, now);
        }

        if (conns[i].op == NULL && now >= conns[i].retry_us) {
            op = op_next(now);
            if (op != NULL) {
                conn_send(&conns[i], op, now);
            }
        }

        flying += conns[i].op != NULL;
    }

    return flying;
}


static void
run(void)
{
    int                 i, n;
    bool                replaying = false;
    uint32_t            flying;
    uint64_t            now, end, last = 0;
    struct epoll_event  events[CLIENT_CONNS];

    to_fund = account_n;
    end = now_us() + (uint64_t) (run_seconds * 1e6);

    for ( ;; ) {
        now = now_us();

        if (!stopping && now >= end) {
            stopping = 1;
        }

        if (stopping && last == 0) {
            last = now + (uint64_t) (settle_seconds * 1e6);
        }

        if (stopping && open_n == 0 && !replaying) {
            replaying = true;
            to_replay = kept_n;
            to_ask = left_n;
        }

        flying = conns_feed(now);

        if (stopping && ((replaying && flying == 0 && again.head == NULL
                          && twice.head == NULL && to_ask == 0)
                         || (last != 0 && now >= last)))
        {
            break;
        }

        n = epoll_wait(poll_fd, events, CLIENT_CONNS, 2);
        now = now_us();

        for (i = 0; i < n; i++) {
            if (((conn_t *) events[i].data.ptr)->fd >= 0) {
                conn_event(events[i].data.ptr, events[i].events, now);
            }
        }
    }

    for (i = 0; i < (int) conn_n; i++) {
        conn_lost(&conns[i], -1, now_us());
    }
}


static void
options(int argc, char **argv)
{
    int     opt;
    FILE    *f;
    size_t  n;

    while ((opt = getopt(argc, argv, "p:t:o:c:a:s:e:n:S:r:f:x:gm")) != -1) {
        switch (opt) {

        case 'p': port = (int) strtol(optarg, NULL, 10); break;
        case 'c': conn_n = (uint32_t) strtoul(optarg, NULL, 10); break;
        case 'a': account_n = (uint32_t) strtoul(optarg, NULL, 10); break;
        case 's': run_seconds = strtod(optarg, NULL); break;
        case 'e': settle_seconds = strtod(optarg, NULL); break;
        case 'r': rate = strtod(optarg, NULL); break;
        case 'f': final_us = strtoull(optarg, NULL, 10) * 1000; break;
        case 'x': expiry_s = strtoull(optarg, NULL, 10); break;
        case 'n': name = optarg; break;
        case 'S': rnd = strtoull(optarg, NULL, 10); break;
        case 'g': gentle = true; break;
        case 'm': starving = true; break;

        case 't':
            f = fopen(optarg, "r");
            if (f == NULL) {
                die(optarg);
            }

            n = fread(token, 1, sizeof(token) - 1, f);
            (void) fclose(f);
            token[strcspn(token, "\r\n")] = '\0';
            if (n == 0) {
                die(optarg);
            }
            break;

        case 'o':
            history = fopen(optarg, "w");
            if (history == NULL) {
                die(optarg);
            }
            break;

        default:
            exit(2);
        }
    }

    if (port == 0 || history == NULL || token[0] == '\0' || conn_n == 0
        || conn_n > CLIENT_CONNS || account_n < 2
        || account_n > CLIENT_ACCOUNTS)
    {
        (void) fprintf(stderr, "usage: client -p PORT -t TOKENFILE -o HISTORY"
                       " [-c 1..%d] [-a 2..%d] [-s SECONDS] [-e SETTLE]"
                       " [-n NAME] [-S SEED] [-r RATE] [-f FINAL] [-x EXPIRY]"
                       " [-g] [-m]\n", CLIENT_CONNS, CLIENT_ACCOUNTS);
        exit(2);
    }
}


int
main(int argc, char **argv)
{
    uint32_t          i;
    struct sigaction  sa;

    rnd = now_us() ^ (uint64_t) getpid() << 32;
    options(argc, argv);
    rnd = rnd * UINT64_C(0x9e3779b97f4a7c15) + 1;

    memset(&sa, 0, sizeof(sa));
    sa.sa_handler = on_stop;
    (void) sigaction(SIGTERM, &sa, NULL);
    (void) sigaction(SIGINT, &sa, NULL);

    (void) setvbuf(history, NULL, _IOFBF, 1 << 20);

    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    conns = calloc(conn_n, sizeof(conn_t));

    if (poll_fd < 0 || conns == NULL) {
        die("start");
    }

    for (i = 0; i < conn_n; i++) {
        conns[i].fd = -1;
    }

    run();

    if (fclose(history) != 0) {
        die("the history");
    }

    (void) printf("ok=%llu replayed=%llu refused=%llu later=%llu lost=%llu"
                  " gone=%llu reads=%llu attempts=%llu bad=%llu open=%llu"
                  " new=%llu cut=%llu unheard=%llu asked=%llu left=%llu\n",
                  (unsigned long long) count.ok,
                  (unsigned long long) count.replayed,
                  (unsigned long long) count.refused,
                  (unsigned long long) count.later,
                  (unsigned long long) count.lost,
                  (unsigned long long) count.gone,
                  (unsigned long long) count.reads,
                  (unsigned long long) count.attempts,
                  (unsigned long long) count.bad,
                  (unsigned long long) open_n,
                  (unsigned long long) count.fresh,
                  (unsigned long long) count.cut,
                  (unsigned long long) count.unheard,
                  (unsigned long long) count.asked,
                  (unsigned long long) count.left);

    return 0;
}
