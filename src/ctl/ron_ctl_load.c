
#include "ron_ctl_load.h"

#include <stdlib.h>


/*
 * Names are of a fixed width, so that a template stays as long as it is:
 *
 *     acc_<run, 6 hex>_<8 digits>       an account
 *     bench-<run, 6 hex>-<16 hex>       a key, an id
 */
#define LOAD_ACCOUNT      "acc_000000_00000000"
#define LOAD_ACCOUNT_RUN  4
#define LOAD_ACCOUNT_NO   11
#define LOAD_ACCOUNT_W    8
#define LOAD_KEY          "bench-000000-0000000000000000"
#define LOAD_KEY_RUN      6
#define LOAD_KEY_NO       13

/* 16 bytes in base64: 64 bits of a counter in hex, the run, zeros. */
#define LOAD_NONCE        "000000000000000000000A=="
#define LOAD_NONCE_RUN    16

/*
 * Nonces begin with the microseconds of the clock, so that they are higher
 * than those of an earlier run over the same accounts; always 16 digits.
 */
#define LOAD_NONCE_TEXT   "1000000000000000"
#define LOAD_NONCE_W      16

#define LOAD_HOT          99999999
#define LOAD_FILL         "1000000000000"

/* A seq has no leading zeros: the line begins where its digits let it. */
#define LOAD_PROOF        "GET /ledger/proof/inclusion?seq="
#define LOAD_SEQ_ROOM     "0000000000"

#define LOAD_NOWHERE      SIZE_MAX


static const ron_load_info_t  load_infos[RON_LOAD_N] = {
    [RON_LOAD_TRANSFER] = { "transfer", "POST /v1/transfer", 1, 1, false },
    [RON_LOAD_ISSUE]    = { "issue", "POST /v1/issue", 1, 1, false },
    [RON_LOAD_BATCH]    = { "batch", "POST /v1/batch of transfers", 1000,
                            1000, false },
    [RON_LOAD_INGEST]   = { "ingest", "POST /ledger/ingest as JSON", 16384,
                            1000, false },
    [RON_LOAD_NDJSON]   = { "ndjson", "POST /ledger/ingest as lines",
                            RON_LOAD_OPS_MAX, 4000, false },
    [RON_LOAD_BALANCE]  = { "balance", "GET /v1/balance", 1, 1, true },
    [RON_LOAD_PROOF]    = { "proof", "GET /ledger/proof/inclusion", 1, 1,
                            true },
    [RON_LOAD_SETUP]    = { "setup", "POST /v1/batch of issues", 1000, 500,
                            false },
};


static const char *const  load_lines[RON_LOAD_N] = {
    [RON_LOAD_TRANSFER] = "POST /v1/transfer",
    [RON_LOAD_ISSUE]    = "POST /v1/issue",
    [RON_LOAD_BATCH]    = "POST /v1/batch",
    [RON_LOAD_INGEST]   = "POST /ledger/ingest",
    [RON_LOAD_NDJSON]   = "POST /ledger/ingest?results=summary",
    [RON_LOAD_BALANCE]  = "GET /v1/balance?account=" LOAD_ACCOUNT
                          "&asset=ron",
    [RON_LOAD_PROOF]    = LOAD_PROOF LOAD_SEQ_ROOM,
    [RON_LOAD_SETUP]    = "POST /v1/batch",
};


static ron_status_t load_places(ron_load_t *load);
static ron_status_t load_template(ron_load_t *load, unsigned connection);
static size_t load_find(ron_str_t text, size_t from, const char *what);
static void load_run(ron_buf_t *text, const char *what, size_t at,
    uint64_t run, unsigned width);
static size_t load_body(const ron_load_t *load, ron_buf_t *body);
static void load_op(const ron_load_t *load, ron_buf_t *b);
static void load_head(const ron_load_t *load, ron_buf_t *b,
    unsigned connection, size_t body_len);
static bool load_patch_setup(ron_load_t *load, ron_load_conn_t *c);
static size_t load_patch_proof(const ron_load_t *load, ron_load_conn_t *c);
static void load_patch(const ron_load_t *load, ron_load_conn_t *c,
    unsigned connection, uint8_t *op, unsigned i);
static uint64_t load_payer(const ron_load_t *load, const ron_load_conn_t *c,
    unsigned connection);
static uint64_t load_random(ron_load_conn_t *c);
static void load_hex(uint8_t *p, uint64_t v, unsigned width);
static unsigned load_digits(uint8_t *end, uint64_t v, unsigned width);


const ron_load_info_t *
ron_load_info(ron_load_kind_t kind)
{
    return &load_infos[kind];
}


bool
ron_load_find(const char *name, ron_load_kind_t *kind)
{
    for (unsigned i = 0; i < RON_LOAD_SETUP; i++) {
        if (strcmp(load_infos[i].name, name) == 0) {
            *kind = (ron_load_kind_t) i;
            return true;
        }
    }

    return false;
}


ron_status_t
ron_load_init(ron_load_t *load)
{
    ron_status_t  rc;

    load->conns = calloc(load->connections, sizeof(ron_load_conn_t));

    if (load->conns == NULL) {
        return RON_ENOMEM;
    }

    rc = load_places(load);

    for (unsigned i = 0; i < load->connections && rc == RON_OK; i++) {
        load->conns[i].random = (load->key_run + 1) * (i + 1)
                                * UINT64_C(0x9e3779b97f4a7c15);
        load->conns[i].random |= 1;
        rc = load_template(load, i);
    }

    return rc;
}


void
ron_load_free(ron_load_t *load)
{
    for (unsigned i = 0; load->conns != NULL && i < load->connections; i++) {
        ron_buf_free(&load->conns[i].text);
    }

    free(load->conns);
    load->conns = NULL;
}


/* ---- templates ---------------------------------------------------------- */

/* Where an operation has its parts; the same for all of them. */

static ron_status_t
load_places(ron_load_t *load)
{
    ron_buf_t  op;
    ron_str_t  s;

    ron_buf_init(&op, 0);

    if (load->kind == RON_LOAD_BALANCE || load->kind == RON_LOAD_PROOF) {
        ron_buf_put_cstr(&op, load_lines[load->kind]);

    } else {
        load_op(load, &op);
    }

    if (ron_buf_status(&op) != RON_OK) {
        return RON_ENOMEM;
    }

    s = ron_buf_str(&op);
    load->op_len = s.len;
    load->at_from = load_find(s, 0, LOAD_ACCOUNT);
    load->at_to = load_find(s, load->at_from + 1, LOAD_ACCOUNT);
    load->at_nonce = load_find(s, 0, load->kind == RON_LOAD_INGEST
                                     || load->kind == RON_LOAD_NDJSON
                                     ? LOAD_NONCE : LOAD_NONCE_TEXT "}");
    load->at_id = load_find(s, 0, LOAD_KEY);
    ron_buf_free(&op);

    return RON_OK;
}


static ron_status_t
load_template(ron_load_t *load, unsigned connection)
{
    ron_buf_t         body, *text;
    ron_load_conn_t  *c;

    c = &load->conns[connection];
    text = &c->text;
    ron_buf_init(text, 0);
    ron_buf_init(&body, 0);

    if (!load_infos[load->kind].reads) {
        c->first = load_body(load, &body);
    }

    load_head(load, text, connection, body.len);

    if (!load_infos[load->kind].reads) {
        c->key = load_find(ron_buf_str(text), 0, LOAD_KEY);
        c->first += text->len;
    }

    ron_buf_put_str(text, ron_buf_str(&body));

    if (ron_buf_status(text) != RON_OK || ron_buf_status(&body) != RON_OK) {
        ron_buf_free(&body);
        return RON_ENOMEM;
    }

    ron_buf_free(&body);
    load_run(text, LOAD_ACCOUNT, LOAD_ACCOUNT_RUN, load->run, 6);
    load_run(text, LOAD_KEY, LOAD_KEY_RUN, load->key_run, 6);
    load_run(text, LOAD_NONCE, LOAD_NONCE_RUN, load->key_run, 5);

    return RON_OK;
}


/* The offset, or LOAD_NOWHERE. */

static size_t
load_find(ron_str_t text, size_t from, const char *what)
{
    const uint8_t  *p;

    if (from >= text.len) {
        return LOAD_NOWHERE;
    }

    p = memmem(text.data + from, text.len - from, what, strlen(what));

    return p == NULL ? LOAD_NOWHERE : (size_t) (p - text.data);
}


/* Makes every such name one of this run. */

static void
load_run(ron_buf_t *text, const char *what, size_t at, uint64_t run,
    unsigned width)
{
    size_t  i;

    for (i = load_find(ron_buf_str(text), 0, what); i != LOAD_NOWHERE;
         i = load_find(ron_buf_str(text), i + strlen(what), what))
    {
        load_hex(text->data + i + at, run, width);
    }
}


/* Returns where the first operation is. */

static size_t
load_body(const ron_load_t *load, ron_buf_t *body)
{
    bool    array;
    size_t  first;

    array = (load->kind == RON_LOAD_BATCH || load->kind == RON_LOAD_SETUP);

    if (array) {
        ron_buf_put_cstr(body, "{\"ops\":[");

    } else if (load->kind == RON_LOAD_INGEST) {
        ron_buf_put_cstr(body, "{\"batch\":[");
        array = true;
    }

    first = body->len;

    for (unsigned i = 0; i < load->ops; i++) {
        load_op(load, body);

        if (load->kind == RON_LOAD_NDJSON) {
            ron_buf_put_u8(body, '\n');

        } else if (array && i + 1 < load->ops) {
            ron_buf_put_u8(body, ',');
        }
    }

    if (array) {
        ron_buf_put_cstr(body, "]}");
    }

    return first;
}


static void
load_op(const ron_load_t *load, ron_buf_t *b)
{
    switch (load->kind) {

    case RON_LOAD_TRANSFER:
    case RON_LOAD_BATCH:
        ron_buf_printf(b, "{%s\"from\":\"" LOAD_ACCOUNT "\",\"to\":\""
                       LOAD_ACCOUNT "\",\"asset\":\"ron\","
                       "\"amount_minor\":\"1\",\"nonce\":" LOAD_NONCE_TEXT
                       "}", load->kind == RON_LOAD_BATCH
                            ? "\"op\":\"transfer\"," : "");
        break;

    case RON_LOAD_ISSUE:
        ron_buf_put_cstr(b, "{\"to\":\"" LOAD_ACCOUNT "\",\"asset\":\"ron\","
                         "\"amount_minor\":\"1\"}");
        break;

    case RON_LOAD_SETUP:
        ron_buf_put_cstr(b, "{\"op\":\"issue\",\"to\":\"" LOAD_ACCOUNT "\","
                         "\"asset\":\"ron\",\"amount_minor\":\"" LOAD_FILL
                         "\"}");
        break;

    default:        /* INGEST, NDJSON */
        ron_buf_put_cstr(b, "{\"id\":\"" LOAD_KEY "\",\"ts\":1800000000000,"
                         "\"kind\":\"Transfer\",\"account\":\"" LOAD_ACCOUNT
                         "\",\"to\":\"" LOAD_ACCOUNT "\",\"asset\":\"ron\","
                         "\"amount\":\"1\",\"nonce\":\"" LOAD_NONCE
                         "\",\"v\":1}");
        break;
    }
}


static void
load_head(const ron_load_t *load, ron_buf_t *b, unsigned connection,
    size_t body_len)
{
    ron_str_t  token;

    ron_buf_printf(b, "%s HTTP/1.1\r\nHost: %.*s\r\n", load_lines[load->kind],
                   (int) load->host.len, (const char *) load->host.data);

    if (load->token_n > 0) {
        token = ron_buf_str(&load->tokens[connection % load->token_n]);
        ron_buf_printf(b, "Authorization: Bearer %.*s\r\n", (int) token.len,
                       (const char *) token.data);
    }

    if (!load_infos[load->kind].reads) {
        ron_buf_printf(b, "Content-Type: application/%s\r\n"
                       "Idempotency-Key: " LOAD_KEY "\r\n"
                       "Content-Length: %zu\r\n",
                       load->kind == RON_LOAD_NDJSON ? "x-ndjson" : "json",
                       body_len);
    }

    ron_buf_put_cstr(b, "\r\n");
}


/* ---- requests ----------------------------------------------------------- */

bool
ron_load_request(ron_load_t *load, unsigned connection, ron_str_t *bytes)
{
    size_t            begin;
    uint8_t          *op;
    ron_load_conn_t  *c;

    c = &load->conns[connection];
    begin = 0;

    if (load->kind == RON_LOAD_SETUP) {
        if (!load_patch_setup(load, c)) {
            return false;
        }

    } else if (load->kind == RON_LOAD_PROOF) {
        begin = load_patch_proof(load, c);

    } else {
        op = c->text.data + c->first;

        for (unsigned i = 0; i < load->ops; i++) {
            load_patch(load, c, connection, op, i);
            op += load->op_len + 1;
        }
    }

    if (c->key != 0) {
        c->key_n = load->keys++;
        load_hex(c->text.data + c->key + LOAD_KEY_NO, c->key_n, 16);
    }

    *bytes = (ron_str_t) { c->text.len - begin, c->text.data + begin };

    return true;
}


/* The last request fills some accounts once more. */

static bool
load_patch_setup(ron_load_t *load, ron_load_conn_t *c)
{
    uint8_t  *op;

    if (load->filled >= load->accounts) {
        return false;
    }

    op = c->text.data + c->first + load->at_from + LOAD_ACCOUNT_NO;

    for (unsigned i = 0; i < load->ops; i++) {
        (void) load_digits(op + LOAD_ACCOUNT_W,
                           load->filled++ % load->accounts, LOAD_ACCOUNT_W);
        op += load->op_len + 1;
    }

    return true;
}


static size_t
load_patch_proof(const ron_load_t *load, ron_load_conn_t *c)
{
    size_t  end;

    end = sizeof(LOAD_PROOF LOAD_SEQ_ROOM) - 1;
    end -= load_digits(c->text.data + end, load_random(c) % load->seqs + 1, 0);
    end -= sizeof(LOAD_PROOF) - 1;
    memcpy(c->text.data + end, LOAD_PROOF, sizeof(LOAD_PROOF) - 1);

    return end;
}


static void
load_patch(const ron_load_t *load, ron_load_conn_t *c, unsigned connection,
    uint8_t *op, unsigned i)
{
    bool      pays;
    uint64_t  from, to;

    pays = (load->at_to != LOAD_NOWHERE);
    from = pays ? load_payer(load, c, connection)
                : load_random(c) % load->accounts;

    if (pays || !load->hot) {
        (void) load_digits(op + load->at_from + LOAD_ACCOUNT_NO
                           + LOAD_ACCOUNT_W, from, LOAD_ACCOUNT_W);
    }

    if (pays) {
        to = load_random(c) % load->accounts;
        to = load->hot ? LOAD_HOT : to != from ? to
                                  : (to + 1) % load->accounts;
        (void) load_digits(op + load->at_to + LOAD_ACCOUNT_NO
                           + LOAD_ACCOUNT_W, to, LOAD_ACCOUNT_W);
    }

    if (load->at_id != LOAD_NOWHERE) {
        load_hex(op + load->at_id + LOAD_KEY_NO,
                 load->keys << 20 | i, 16);
        load_hex(op + load->at_nonce, load->keys << 20 | i, 16);

    } else if (load->at_nonce != LOAD_NOWHERE) {
        (void) load_digits(op + load->at_nonce + LOAD_NONCE_W,
                           load->nonce + c->turn, LOAD_NONCE_W);
    }

    c->turn++;
}


/* The accounts of a connection, all before one comes again. */

static uint64_t
load_payer(const ron_load_t *load, const ron_load_conn_t *c,
    unsigned connection)
{
    uint64_t  own;

    own = (load->accounts - connection + load->connections - 1)
          / load->connections;

    /* fewer accounts than connections: only where order does not matter */

    if (connection >= load->accounts) {
        return connection % load->accounts;
    }

    return connection + c->turn % own * load->connections;
}


static uint64_t
load_random(ron_load_conn_t *c)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;

    return c->random >> 11;
}


static void
load_hex(uint8_t *p, uint64_t v, unsigned width)
{
    while (width-- > 0) {
        p[width] = (uint8_t) "0123456789abcdef"[v & 15];
        v >>= 4;
    }
}


/* Digits that end before `end`, at least `width`; returns how many. */

static unsigned
load_digits(uint8_t *end, uint64_t v, unsigned width)
{
    unsigned  n;

    for (n = 0; v != 0 || n < width; n++) {
        *--end = (uint8_t) ('0' + v % 10);
        v /= 10;
    }

    return n;
}


/* ---- answers ------------------------------------------------------------ */

uint64_t
ron_load_acked(const ron_load_t *load, unsigned status, ron_str_t body,
    uint64_t *seq)
{
    size_t    off;
    uint64_t  n, acked;

    *seq = 0;

    if (status != 200 && status != 207) {
        return 0;
    }

    if (load_infos[load->kind].reads) {
        return 1;
    }

    off = 0;
    acked = 0;

    if (load->kind == RON_LOAD_NDJSON) {
        while (ron_load_number(body, "\"accepted\":", &off, &n)) {
            acked += n;
            (void) ron_load_number(body, "\"seq_end\":", &off, seq);
        }

        return acked;
    }

    if (status == 200 && load->kind != RON_LOAD_SETUP) {
        return load->ops;
    }

    while (ron_load_number(body, "\"seq\":", &off, &n)) {
        acked++;
        *seq = ron_max(*seq, n);
    }

    /* what only answers "200" has no seqs */

    return status == 200 ? load->ops : acked;
}


bool
ron_load_number(ron_str_t body, const char *name, size_t *off, uint64_t *v)
{
    size_t  at;

    at = load_find(body, *off, name);

    if (at == LOAD_NOWHERE) {
        return false;
    }

    at += strlen(name);

    for (*v = 0; at < body.len && body.data[at] >= '0'
                 && body.data[at] <= '9'; at++)
    {
        *v = *v * 10 + (uint64_t) (body.data[at] - '0');
    }

    *off = at;

    return true;
}


void
ron_load_key(const ron_load_t *load, unsigned connection,
    char key[RON_LOAD_KEY_LEN + 1])
{
    const ron_load_conn_t  *c;

    c = &load->conns[connection];
    memcpy(key, c->text.data + c->key, RON_LOAD_KEY_LEN);
    key[RON_LOAD_KEY_LEN] = '\0';
}
