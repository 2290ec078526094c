
/*
 * A stream of lines, the way the module reads one: chunks of any size, a batch
 * whenever one is due, an answer to each.  Batches are the stream, cut between
 * lines and nowhere else, each as large as its bounds allow; a line is taken
 * when it would be by itself, and as it would be; every answer is a line of
 * JSON that names the line it is about, and a reason that is in the table.
 *
 * An input is what the stream is made of: bytes that stand for themselves,
 * and four that do not, so that bounds are a few bytes away.
 *
 *     01 n len    the len bytes before, n times more; F0: 4096 times, ...
 *     02          an entry that is accepted, of an id of its own
 *     03          one that a capability may refuse
 *     04          a leg of a posting
 */

#include <stdio.h>
#include <stdlib.h>

#include "ron_fuzz.h"
#include "ron_api_ndjson.h"
#include "ron_seed.h"


#define STREAM_MAX  (RON_API_NDJSON_LINE + 4 * RON_API_NDJSON_BATCH)


static ron_api_t          alone;
static ron_cap_t          caps[2];
static ron_buf_t          stream, text, out, room, one, two;
static ron_json_doc_t     doc;
static ron_result_t      *results;
static ron_api_ndjson_t   nd;
static ron_api_ndbatch_t  batch;

static uint64_t           seed;
static const ron_cap_t   *cap;
static ron_api_results_t  mode;
static uint64_t           seq;
static size_t             step;                 /* bytes of a chunk, at most */


static void
setup(void)
{
    ron_api_init(&alone);
    ron_api_ndjson_init(&nd);
    ron_json_doc_init(&doc, 0);
    ron_buf_init(&stream, 0);
    ron_buf_init(&text, 0);
    ron_buf_init(&out, 0);
    ron_buf_init(&room, 0);
    ron_buf_init(&one, 0);
    ron_buf_init(&two, 0);
    ron_buf_init(&batch.lines, 0);

    results = calloc(RON_API_NDJSON_LINES + 1, sizeof(ron_result_t));
    RON_ASSERT(results != NULL);

    for (unsigned i = 0; i < ron_array_n(caps); i++) {
        ron_cap_init(&caps[i]);
        memcpy(caps[i].kid, "dev", 4);
        memcpy(caps[i].id, "c1", 3);
    }

    RON_ASSERT(ron_cap_caveat_add(&caps[1], ron_str("account = alice"))
               == RON_OK);
    RON_ASSERT(ron_cap_caveat_add(&caps[1], ron_str("max_amount = 100"))
               == RON_OK);
}


/* ---- the stream --------------------------------------------------------- */

static void
put_entry(uint8_t what, uint32_t n)
{
    char  line[256];
    int   len;

    len = snprintf(line, sizeof(line),
                   "{\"id\":\"e%u\",\"ts\":1700000000000,\"kind\":\"%s\","
                   "\"account\":\"%s\",\"asset\":\"ron\",\"amount\":%u,"
                   "\"nonce\":\"AAAAAAAAAAAAAAAAAAAAAA==\",\"v\":1}\n",
                   n, what == 4 ? "Debit" : "Mint",
                   what == 3 && (n & 1) ? "bob" : "alice",
                   what == 3 ? 99 + n : 7);
    ron_buf_put(&stream, line, (size_t) len);
}


static void
make(fuzz_t *f, size_t max)
{
    uint8_t   c;
    size_t    len;
    uint32_t  i, n;

    static uint8_t  again[256];

    ron_buf_reset(&stream);

    for (i = 0; fuzz_left(f) > 0 && stream.len < max; i++) {
        c = fuzz_u8(f);

        if (c >= 2 && c <= 4) {
            put_entry(c, i);
            continue;
        }

        if (c != 1) {
            ron_buf_put_u8(&stream, c);
            continue;
        }

        n = fuzz_u8(f);
        n = n < 0xf0 ? n : (n - 0xf0 + 1) * 4096;
        len = fuzz_u8(f);
        len = ron_min(len, stream.len);

        if (len > 0) {
            memcpy(again, stream.data + stream.len - len, len);
        }

        for ( ; len > 0 && n > 0 && stream.len < max; n--) {
            ron_buf_put(&stream, again, len);
        }
    }

    RON_ASSERT(ron_buf_status(&stream) == RON_OK);
}


/* ---- batches ------------------------------------------------------------ */

/* Line by line, as the header says it. */
static size_t
naive_cut(ron_str_t s, bool end)
{
    size_t    n, stop;
    uint32_t  lines;

    for (n = 0, lines = 0; n < s.len && lines < RON_API_NDJSON_LINES;
         n = stop, lines++)
    {
        for (stop = n; stop < s.len && s.data[stop] != '\n'; stop++) { /**/ }

        if (stop == s.len && !end) {
            break;
        }

        stop = ron_min(stop + 1, s.len);

        if (lines > 0 && stop > RON_API_NDJSON_BATCH) {
            break;
        }
    }

    return n;
}


static bool
is_blank(ron_str_t line, size_t *black)
{
    bool  blank = true;

    *black = 0;

    for (size_t i = 0; i < line.len; i++) {
        blank = blank && strchr(" \t\r", line.data[i]) != NULL
                && line.data[i] != '\0';
        *black += line.data[i] > 0x20;
    }

    return blank;
}


/* What becomes of a line by itself: its operation, or why there is none. */
static bool
by_itself(ron_str_t line, size_t black, ron_api_error_t *err)
{
    bool        unknown;
    ron_kind_t  kind;

    memset(err, 0, sizeof(*err));

    if (black > RON_API_NDJSON_ENTRY) {
        err->reason = RON_REASON_MALFORMED;
        err->text = "more than 64 KiB that is not white space";
        return false;
    }

    if (ron_api_entry_parse(&alone, line, err) != RON_OK) {
        return false;
    }

    RON_ASSERT(alone.unit.op_n == 1);
    RON_ASSERT(ron_entry_values_valid(&alone.unit.ops[0]));
    kind = alone.unit.ops[0].kind;

    if (kind == RON_KIND_DEBIT || kind == RON_KIND_CREDIT) {
        err->reason = RON_REASON_MALFORMED;
        err->text = "the legs of a posting must come in one "
                    "application/json batch";
        return false;
    }

    return ron_api_allow(cap, RON_CAP_SVC_LEDGER, &alone.unit, &room,
                         &unknown, err) == RON_OK;
}


static void
is_same(const ron_entry_t *op)
{
    ron_unit_t   unit;
    ron_entry_t  copy = *op;

    memset(&unit, 0, sizeof(unit));
    unit.type = RON_UNIT_INGEST;
    unit.ops = &copy;
    unit.op_n = 1;
    ron_buf_reset(&one);
    ron_buf_reset(&two);
    RON_ASSERT(ron_unit_encode(&unit, &one) == RON_OK);
    unit.ops = alone.unit.ops;
    RON_ASSERT(ron_unit_encode(&unit, &two) == RON_OK);
    RON_ASSERT(ron_str_eq(ron_buf_str(&one), ron_buf_str(&two)));
}


/* ---- answers ------------------------------------------------------------ */

static const ron_json_t *
next_line(ron_str_t *rest)
{
    ron_str_t          line;
    const uint8_t     *p;
    ron_json_error_t   err;
    const ron_json_t  *root;

    p = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
    RON_ASSERT(p != NULL);
    line.data = rest->data;
    line.len = (size_t) (p - rest->data);
    rest->data += line.len + 1;
    rest->len -= line.len + 1;

    RON_ASSERT(ron_json_parse(&doc, line, NULL, &root, &err) == RON_OK);
    RON_ASSERT(ron_json_kind(root) == RON_JSON_OBJECT);

    return root;
}


static uint64_t
number(const ron_json_t *object, const char *name)
{
    uint64_t           v;
    const ron_json_t  *member;

    member = ron_json_get(object, ron_cstr(name));
    RON_ASSERT(member != NULL && ron_json_u64(member, &v) == RON_OK);

    return v;
}


static void
is_refused(const ron_json_t *line, uint64_t no, ron_reason_t reason,
    const char *detail)
{
    const ron_json_t  *said;

    RON_ASSERT(reason > RON_REASON_OK && reason < RON_REASON_N);
    RON_ASSERT(number(line, "line") == no);
    said = ron_json_get(line, ron_str("reason"));
    RON_ASSERT(said != NULL
               && ron_str_eq(ron_json_text(said),
                             ron_cstr(ron_reason_info(reason)->ingest)));
    said = ron_json_get(line, ron_str("detail"));
    RON_ASSERT(said != NULL
               && ron_str_eq(ron_json_text(said), ron_cstr(detail)));
}


/* What a committer might say of a batch; the reason of each line it had. */
static void
decide(ron_outcome_t *o, ron_msg_batch_t *tree)
{
    memset(o, 0, sizeof(*o));
    memset(tree, 0, sizeof(*tree));
    memset(tree->root.b, (int) ron_seed_below(&seed, 256), RON_HASH_LEN);
    o->results = results;
    o->result_n = batch.op_n;
    o->reason = ron_seed_below(&seed, 4) == 0
                ? (ron_reason_t) ron_seed_below(&seed, RON_REASON_N)
                : RON_REASON_OK;
    o->detail = (ron_detail_t) ron_seed_below(&seed, RON_DETAIL_N);

    if (o->reason != RON_REASON_OK && ron_seed_below(&seed, 2)) {
        o->result_n = 0;                        /* refused as a whole */
    }

    for (uint32_t i = 0; i < batch.op_n; i++) {
        memset(&results[i], 0, sizeof(ron_result_t));
        results[i].reason = ron_seed_below(&seed, 3) == 0
                            ? (ron_reason_t) ron_seed_below(&seed,
                                                            RON_REASON_N)
                            : RON_REASON_OK;

        if (o->reason != RON_REASON_OK) {
            results[i].reason = o->reason;
        }

        results[i].detail = (ron_detail_t) ron_seed_below(&seed, RON_DETAIL_N);
        results[i].seq = ++seq;
    }
}


/* Each operation's line, then the one of the batch. */
static void
is_answer(const ron_outcome_t *o)
{
    uint32_t           off;
    uint64_t           accepted, first, last, no;
    ron_str_t          rest;
    ron_reason_t       reason;
    const ron_json_t  *line;

    rest = ron_buf_str(&out);
    accepted = first = last = 0;

    for (uint32_t i = 0; o != NULL && i < batch.op_n; i++) {
        memcpy(&off, batch.lines.data + i * sizeof(off), sizeof(off));
        no = batch.first + off;
        reason = o->result_n ? o->results[i].reason : o->reason;

        if (reason != RON_REASON_OK) {
            if (mode != RON_API_RESULTS_SUMMARY) {
                is_refused(next_line(&rest), no, reason,
                           ron_detail_text(o->result_n ? o->results[i].detail
                                                       : o->detail));
            }

            continue;
        }

        first = accepted++ ? first : o->results[i].seq;
        last = o->results[i].seq;

        if (mode == RON_API_RESULTS_ALL) {
            line = next_line(&rest);
            RON_ASSERT(number(line, "line") == no);
            RON_ASSERT(number(line, "seq") == o->results[i].seq);
        }
    }

    line = next_line(&rest);
    RON_ASSERT(rest.len == 0);
    RON_ASSERT(number(line, "batch") == batch.number);
    RON_ASSERT(number(line, "first_line") == batch.first);
    RON_ASSERT(number(line, "last_line") == batch.last);
    RON_ASSERT(number(line, "accepted") == accepted);
    RON_ASSERT(number(line, "rejected")
               == batch.op_n + batch.bad_n - accepted);

    if (accepted) {
        RON_ASSERT(number(line, "seq_start") == first);
        RON_ASSERT(number(line, "seq_end") == last);
        RON_ASSERT(ron_json_get(line, ron_str("root")) != NULL);

    } else {
        RON_ASSERT(ron_json_get(line, ron_str("root")) == NULL);
    }
}


static void
answer(void)
{
    ron_outcome_t    o;
    ron_msg_batch_t  tree;

    ron_buf_reset(&out);
    batch.number++;

    if (batch.op_n == 0) {
        RON_ASSERT(ron_api_ndjson_answer(&out, &batch, mode, NULL, NULL)
                   == RON_OK);
        is_answer(NULL);
        return;
    }

    decide(&o, &tree);
    RON_ASSERT(ron_api_ndjson_answer(&out, &batch, mode, &tree, &o) == RON_OK);
    is_answer(&o);

    /* done, but not this many: of another batch */

    o.reason = RON_REASON_OK;
    o.result_n = batch.op_n + 1;
    ron_buf_reset(&out);
    RON_ASSERT(ron_api_ndjson_answer(&out, &batch, mode, &tree, &o)
               == RON_ECORRUPT);
}


/* One batch: what was taken, what was refused, and what is said of it. */
static void
judge(ron_str_t s)
{
    size_t           black;
    uint32_t         op, bad, off;
    uint64_t         no;
    ron_str_t        line, said;
    ron_api_error_t  err;

    ron_buf_reset(&out);
    RON_ASSERT(ron_api_ndjson_parse(&nd, s, cap, mode, &batch, &out)
               == RON_OK);
    RON_ASSERT(batch.op_n == nd.unit.op_n);
    RON_ASSERT(batch.lines.len == batch.op_n * sizeof(off));
    RON_ASSERT(nd.unit.type == RON_UNIT_INGEST && !nd.unit.atomic);

    said = ron_buf_str(&out);
    op = bad = 0;
    no = batch.first;

    for (size_t n = 0; n < s.len; n += line.len + 1, no++) {
        line.data = s.data + n;

        for (line.len = 0; n + line.len < s.len && line.data[line.len] != '\n';
             line.len++) { /**/ }

        if (is_blank(line, &black)) {
            continue;
        }

        if (!by_itself(line, black, &err)) {
            bad++;

            if (mode != RON_API_RESULTS_SUMMARY) {
                is_refused(next_line(&said), no, err.reason,
                           err.text ? err.text
                                    : ron_reason_info(err.reason)->title);
            }

            continue;
        }

        RON_ASSERT(op < batch.op_n);
        memcpy(&off, batch.lines.data + op * sizeof(off), sizeof(off));
        RON_ASSERT(batch.first + off == no);
        is_same(&nd.unit.ops[op++]);
    }

    RON_ASSERT(no == batch.last + 1);
    RON_ASSERT(op == batch.op_n && bad == batch.bad_n && said.len == 0);

    answer();
}


/* ---- the module's part -------------------------------------------------- */

/* false: nothing is due.  *taken: how much of the stream went into batches. */
static bool
turn(bool end, size_t *taken)
{
    size_t     len, lines;
    ron_str_t  s;

    s = ron_buf_str(&text);
    len = ron_api_ndjson_cut(s, end);
    RON_ASSERT(len == naive_cut(s, end));

    if (len == 0) {
        RON_ASSERT(s.len == 0 || (!end && memchr(s.data, '\n', s.len) == NULL));
        return false;
    }

    RON_ASSERT(len <= s.len && *taken + len <= stream.len);
    RON_ASSERT(memcmp(s.data, stream.data + *taken, len) == 0);
    RON_ASSERT(s.data[len - 1] == '\n' || (end && len == s.len));

    s.len = len;
    lines = 0;

    for (size_t i = 0; i < len; i++) {
        lines += s.data[i] == '\n' || i + 1 == len;
    }

    RON_ASSERT(lines <= RON_API_NDJSON_LINES);
    RON_ASSERT(len <= RON_API_NDJSON_BATCH || lines == 1);

    judge(s);
    RON_ASSERT(batch.last - batch.first + 1 == lines);

    batch.first = batch.last + 1;
    *taken += len;
    text.len -= len;
    memmove(text.data, text.data + len, text.len);

    return true;
}


static void
feed(void)
{
    size_t     fed, taken, n, most;
    uint64_t   lines;
    ron_str_t  chunk;

    ron_buf_reset(&text);
    batch.first = 1;
    batch.number = 0;

    most = ron_max(step, stream.len / 16 + 1);

    for (fed = 0, taken = 0; fed < stream.len; fed += n) {
        n = 1 + ron_seed_below(&seed, most);
        n = ron_min(n, stream.len - fed);
        chunk.data = stream.data + fed;
        chunk.len = n;

        if (n > RON_FRAME_CHUNK) {
            RON_ASSERT(ron_api_ndjson_feed(&text, chunk) == RON_EFULL);
            chunk.len = n = RON_FRAME_CHUNK;
        }

        RON_ASSERT(ron_api_ndjson_feed(&text, chunk) == RON_OK);
        RON_ASSERT(text.len == fed + n - taken);

        if (text.len >= RON_API_NDJSON_BATCH
            || ron_seed_below(&seed, 4) == 0)
        {
            (void) turn(false, &taken);
        }
    }

    while (turn(true, &taken)) { /**/ }

    RON_ASSERT(taken == stream.len && text.len == 0);

    lines = 1;

    for (size_t i = 0; i < stream.len; i++) {
        lines += stream.data[i] == '\n' || i + 1 == stream.len;
    }

    RON_ASSERT(batch.first == lines);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t   f = { data, data + len };
    uint8_t  how;

    if (results == NULL) {
        setup();
    }

    how = fuzz_u8(&f);
    seed = fuzz_u8(&f);
    cap = &caps[how & 1];
    mode = (ron_api_results_t) ((how >> 1 & 3) % 3);
    step = (size_t) 4 << (how >> 4);
    seq = 0;

    /* most are short: the long ones are slow */

    make(&f, how & 8 ? STREAM_MAX : 8192);
    feed();

    return 0;
}
