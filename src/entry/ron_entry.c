
#include "ron_entry.h"
#include "ron_codec.h"


#define RON_F_COMMON                                                          \
    (RON_F_NONCE | RON_F_NONCE16 | RON_F_ID | RON_F_SOURCE | RON_F_SCOPE      \
     | RON_F_KEY | RON_F_MEMO | RON_F_CAP | RON_F_CAPREF | RON_F_SCHEMA       \
     | RON_F_WALLET)

#define RON_F_MONEY  (RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT)


typedef struct {
    const char  *name;
    const char  *op;
    uint32_t     needs;
    uint32_t     allows;        /* beside what it needs, and RON_F_COMMON */
} ron_kind_info_t;


static void ron_entry_write(const ron_entry_t *e, uint8_t *start,
    uint8_t **end);
static uint8_t *ron_write_varint(uint8_t *p, uint64_t v);
static uint8_t *ron_write_be(uint8_t *p, uint64_t v, unsigned bytes);
static uint8_t *ron_write_amount(uint8_t *p, ron_u128_t v);
static uint8_t *ron_write_lstr(uint8_t *p, ron_str_t s);
static void ron_entry_read(ron_rd_t *rd, ron_entry_t *e);
static void ron_entry_read_rest(ron_rd_t *rd, ron_entry_t *e);
static uint32_t ron_read_u32(ron_rd_t *rd);
static ron_u128_t ron_read_amount(ron_rd_t *rd);


static const ron_kind_info_t  ron_kinds[RON_KIND_N] = {

    [RON_KIND_NONE] = { "", "", 0, 0 },

    [RON_KIND_MINT] = { "Mint", "issue", RON_F_MONEY, 0 },

    [RON_KIND_BURN] = { "Burn", "burn", RON_F_MONEY, 0 },

    [RON_KIND_TRANSFER] = { "Transfer", "transfer",
                            RON_F_MONEY | RON_F_TO, 0 },

    [RON_KIND_DEBIT] = { "Debit", "debit",
                         RON_F_MONEY | RON_F_POSTING, 0 },

    [RON_KIND_CREDIT] = { "Credit", "credit",
                          RON_F_MONEY | RON_F_POSTING, 0 },

    [RON_KIND_HOLD] = { "Hold", "hold",
                        RON_F_MONEY | RON_F_TO, RON_F_EXPIRY },

    [RON_KIND_CAPTURE] = { "Capture", "capture",
                           RON_F_MONEY | RON_F_TO | RON_F_REF, 0 },

    [RON_KIND_RELEASE] = { "Release", "release",
                           RON_F_MONEY | RON_F_REF, RON_F_EXPIRED },

    [RON_KIND_REVERSE] = { "Reverse", "reverse",
                           RON_F_ASSET | RON_F_AMOUNT | RON_F_REF,
                           RON_F_ACCOUNT | RON_F_TO },
};


/* [A-Za-z0-9:/_.@-] */
static const uint8_t  ron_account_chars[256] = {
    ['-'] = 1, ['.'] = 1, ['/'] = 1,
    ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1,
    ['6'] = 1, ['7'] = 1, ['8'] = 1, ['9'] = 1, [':'] = 1, ['@'] = 1,
    ['A'] = 1, ['B'] = 1, ['C'] = 1, ['D'] = 1, ['E'] = 1, ['F'] = 1,
    ['G'] = 1, ['H'] = 1, ['I'] = 1, ['J'] = 1, ['K'] = 1, ['L'] = 1,
    ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1, ['Q'] = 1, ['R'] = 1,
    ['S'] = 1, ['T'] = 1, ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1,
    ['Y'] = 1, ['Z'] = 1, ['_'] = 1,
    ['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1,
    ['g'] = 1, ['h'] = 1, ['i'] = 1, ['j'] = 1, ['k'] = 1, ['l'] = 1,
    ['m'] = 1, ['n'] = 1, ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1,
    ['s'] = 1, ['t'] = 1, ['u'] = 1, ['v'] = 1, ['w'] = 1, ['x'] = 1,
    ['y'] = 1, ['z'] = 1,
};


const char *
ron_kind_name(ron_kind_t kind)
{
    RON_ASSERT(kind < RON_KIND_N);

    return ron_kinds[kind].name;
}


const char *
ron_kind_op(ron_kind_t kind)
{
    RON_ASSERT(kind < RON_KIND_N);

    return ron_kinds[kind].op;
}


ron_kind_t
ron_kind_parse(ron_str_t name)
{
    for (unsigned k = RON_KIND_MINT; k < RON_KIND_N; k++) {
        if (ron_str_eq(name, ron_cstr(ron_kinds[k].name))) {
            return (ron_kind_t) k;
        }
    }

    return RON_KIND_NONE;
}


uint32_t
ron_kind_allows(ron_kind_t kind)
{
    RON_ASSERT(kind < RON_KIND_N);

    return ron_kinds[kind].needs | ron_kinds[kind].allows | RON_F_COMMON;
}


uint32_t
ron_kind_needs(ron_kind_t kind)
{
    RON_ASSERT(kind < RON_KIND_N);

    return ron_kinds[kind].needs;
}


bool
ron_account_valid(ron_str_t account)
{
    unsigned  good;

    if (account.len == 0 || account.len > RON_ACCOUNT_MAX) {
        return false;
    }

    good = 1;

    for (size_t i = 0; i < account.len; i++) {
        good &= ron_account_chars[account.data[i]];
    }

    return good;
}


bool
ron_asset_valid(ron_str_t asset)
{
    return asset.len <= RON_ASSET_MAX && ron_account_valid(asset);
}


/* A caller's own text ends up in JSON: it must be UTF-8. */

static bool
ron_text_ok(ron_str_t s, size_t max)
{
    return s.len >= 1 && s.len <= max && ron_utf8_check(s, NULL) == RON_OK;
}


static bool
ron_texts_ok(const ron_entry_t *e)
{
    uint32_t  f;

    f = e->fields;

    return (!(f & RON_F_ASSET) || ron_asset_valid(e->asset))
           && (!(f & RON_F_ACCOUNT) || ron_account_valid(e->account))
           && (!(f & RON_F_TO) || ron_account_valid(e->to))
           && (!(f & RON_F_ID) || ron_text_ok(e->id, RON_ID_MAX))
           && (!(f & RON_F_SCOPE) || ron_text_ok(e->scope, RON_SCOPE_MAX))
           && (!(f & RON_F_KEY) || ron_text_ok(e->key, RON_KEY_MAX))
           && (!(f & RON_F_CAP) || ron_text_ok(e->cap, RON_CAP_MAX))
           && (!(f & RON_F_CAPREF) || ron_text_ok(e->capref, RON_ID_MAX));
}


static bool
ron_numbers_ok(const ron_entry_t *e)
{
    uint32_t  f;

    f = e->fields;

    return (!(f & RON_F_AMOUNT) || e->amount != 0)
           && (!(f & RON_F_NONCE)
               || (e->nonce >= 1 && e->nonce <= RON_NONCE_MAX))
           && (!(f & RON_F_SOURCE) || e->source_ms <= RON_TIME_MAX)
           && (!(f & RON_F_REF) || e->ref >= 1)
           && (!(f & RON_F_EXPIRY) || e->expiry_ms <= RON_TIME_MAX)
           && (!(f & RON_F_SCHEMA) || e->schema >= 2);
}


bool
ron_entry_values_valid(const ron_entry_t *e)
{
    return ron_texts_ok(e) && ron_numbers_ok(e);
}


/* What a field says of other entries, which have to come before this one. */

static bool
ron_links_ok(const ron_entry_t *e)
{
    return (!(e->fields & RON_F_REF) || e->ref < e->seq)
           && (!(e->fields & RON_F_POSTING)
               || (e->posting_n >= 1 && e->posting_first >= 1
                   && e->posting_first <= e->seq
                   && e->seq - e->posting_first < e->posting_n));
}


ron_status_t
ron_entry_check(const ron_entry_t *e)
{
    uint32_t  f, needs;

    if (e->kind == RON_KIND_NONE || e->kind >= RON_KIND_N) {
        return RON_EVERSION;
    }

    f = e->fields;
    needs = ron_kind_needs(e->kind);

    if ((f & needs) != needs || (f & ~ron_kind_allows(e->kind)) != 0
        || e->seq == 0 || e->seq > RON_SEQ_MAX || e->time_ms > RON_TIME_MAX
        || !ron_entry_values_valid(e) || !ron_links_ok(e))
    {
        return RON_EINVAL;
    }

    if ((f & RON_F_NONCE) && (f & RON_F_NONCE16)) {
        return RON_EINVAL;
    }

    if ((f & RON_F_SCOPE) && !(f & RON_F_KEY)) {
        return RON_EINVAL;
    }

    switch (e->kind) {

    case RON_KIND_TRANSFER:
    case RON_KIND_HOLD:
        return ron_str_eq(e->account, e->to) ? RON_EINVAL : RON_OK;

    case RON_KIND_REVERSE:
        return (f & (RON_F_ACCOUNT | RON_F_TO)) ? RON_OK : RON_EINVAL;

    default:
        return RON_OK;
    }
}


ron_status_t
ron_entry_encode(const ron_entry_t *e, ron_buf_t *out)
{
    uint8_t       *start, *end;
    ron_status_t   status;

    status = ron_entry_check(e);
    if (status != RON_OK) {
        return status;
    }

    start = ron_buf_reserve(out, RON_ENTRY_MAX);
    if (start == NULL) {
        return ron_buf_status(out);
    }

    ron_entry_write(e, start, &end);

    RON_ASSERT((size_t) (end - start) <= RON_ENTRY_MAX);

    out->len += (size_t) (end - start);

    return RON_OK;
}


static void
ron_entry_write(const ron_entry_t *e, uint8_t *start, uint8_t **end)
{
    uint8_t   *p;
    uint32_t   f;

    p = start;
    f = e->fields;

    *p++ = RON_ENTRY_VERSION;
    *p++ = (uint8_t) e->kind;
    p = ron_write_be(p, e->ledger_id, 2);
    p = ron_write_varint(p, e->seq);
    p = ron_write_be(p, e->time_ms, 6);
    p = ron_write_varint(p, f);

    p = (f & RON_F_ASSET) ? ron_write_lstr(p, e->asset) : p;
    p = (f & RON_F_ACCOUNT) ? ron_write_lstr(p, e->account) : p;
    p = (f & RON_F_TO) ? ron_write_lstr(p, e->to) : p;
    p = (f & RON_F_AMOUNT) ? ron_write_amount(p, e->amount) : p;
    p = (f & RON_F_NONCE) ? ron_write_varint(p, e->nonce) : p;

    if (f & RON_F_NONCE16) {
        memcpy(p, e->nonce16, RON_NONCE_LEN);
        p += RON_NONCE_LEN;
    }

    p = (f & RON_F_ID) ? ron_write_lstr(p, e->id) : p;
    p = (f & RON_F_SOURCE) ? ron_write_be(p, e->source_ms, 6) : p;
    p = (f & RON_F_SCOPE) ? ron_write_lstr(p, e->scope) : p;
    p = (f & RON_F_KEY) ? ron_write_lstr(p, e->key) : p;
    p = (f & RON_F_REF) ? ron_write_varint(p, e->ref) : p;

    if (f & RON_F_POSTING) {
        p = ron_write_varint(p, e->posting_first);
        p = ron_write_varint(p, e->posting_n);
    }

    p = (f & RON_F_EXPIRY) ? ron_write_be(p, e->expiry_ms, 6) : p;

    if (f & RON_F_MEMO) {
        memcpy(p, e->memo.b, RON_HASH_LEN);
        p += RON_HASH_LEN;
    }

    p = (f & RON_F_CAP) ? ron_write_lstr(p, e->cap) : p;
    p = (f & RON_F_CAPREF) ? ron_write_lstr(p, e->capref) : p;
    p = (f & RON_F_SCHEMA) ? ron_write_varint(p, e->schema) : p;

    *end = p;
}


static uint8_t *
ron_write_varint(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t) (v | 0x80);
        v >>= 7;
    }

    *p++ = (uint8_t) v;

    return p;
}


static uint8_t *
ron_write_be(uint8_t *p, uint64_t v, unsigned bytes)
{
    while (bytes-- > 0) {
        *p++ = (uint8_t) (v >> (8 * bytes));
    }

    return p;
}


/* u8 length, then that many big-endian bytes, the first of them not zero. */

static uint8_t *
ron_write_amount(uint8_t *p, ron_u128_t v)
{
    unsigned  n;

    for (n = 16; n > 1 && (uint8_t) (v >> (8 * (n - 1))) == 0; n--) {
        /* void */
    }

    *p++ = (uint8_t) n;

    while (n-- > 0) {
        *p++ = (uint8_t) (v >> (8 * n));
    }

    return p;
}


static uint8_t *
ron_write_lstr(uint8_t *p, ron_str_t s)
{
    p = ron_write_varint(p, s.len);

    memcpy(p, s.data, s.len);

    return p + s.len;
}


ron_status_t
ron_entry_decode(ron_str_t bytes, ron_entry_t *e)
{
    ron_rd_t  rd;
    uint64_t  fields;
    uint8_t   version, kind;

    memset(e, 0, sizeof(ron_entry_t));

    if (bytes.len > RON_ENTRY_MAX) {
        return ron_corrupt();
    }

    ron_rd_init(&rd, bytes);

    version = ron_rd_u8(&rd);
    kind = ron_rd_u8(&rd);

    if (rd.failed) {
        return ron_corrupt();
    }

    if (version != RON_ENTRY_VERSION || kind == RON_KIND_NONE
        || kind >= RON_KIND_N)
    {
        return RON_EVERSION;
    }

    e->kind = (ron_kind_t) kind;
    e->ledger_id = ron_rd_u16(&rd);
    e->seq = ron_rd_varint(&rd);
    e->time_ms = ron_rd_u48(&rd);
    fields = ron_rd_varint(&rd);

    if (rd.failed || (fields & ~(uint64_t) RON_F_ALL) != 0) {
        memset(e, 0, sizeof(ron_entry_t));
        return ron_corrupt();
    }

    e->fields = (uint32_t) fields;

    ron_entry_read(&rd, e);

    if (ron_rd_end(&rd) != RON_OK || ron_entry_check(e) != RON_OK) {
        memset(e, 0, sizeof(ron_entry_t));
        return ron_corrupt();
    }

    return RON_OK;
}


static uint32_t
ron_read_u32(ron_rd_t *rd)
{
    uint64_t  n;

    n = ron_rd_varint(rd);
    rd->failed |= n > UINT32_MAX;

    return (uint32_t) n;
}


/* The fields present, in the order of their bits: first what money does. */

static void
ron_entry_read(ron_rd_t *rd, ron_entry_t *e)
{
    uint32_t   f;
    ron_str_t  s;

    f = e->fields;

    if (f & RON_F_ASSET) {
        e->asset = ron_rd_lstr(rd);
    }

    if (f & RON_F_ACCOUNT) {
        e->account = ron_rd_lstr(rd);
    }

    if (f & RON_F_TO) {
        e->to = ron_rd_lstr(rd);
    }

    if (f & RON_F_AMOUNT) {
        e->amount = ron_read_amount(rd);
    }

    if (f & RON_F_NONCE) {
        e->nonce = ron_rd_varint(rd);
    }

    if (f & RON_F_NONCE16) {
        s = ron_rd_bytes(rd, RON_NONCE_LEN);
        if (s.len == RON_NONCE_LEN) {
            memcpy(e->nonce16, s.data, RON_NONCE_LEN);
        }
    }

    if (f & RON_F_ID) {
        e->id = ron_rd_lstr(rd);
    }

    if (f & RON_F_SOURCE) {
        e->source_ms = ron_rd_u48(rd);
    }

    ron_entry_read_rest(rd, e);
}


static void
ron_entry_read_rest(ron_rd_t *rd, ron_entry_t *e)
{
    uint32_t  f;

    f = e->fields;

    if (f & RON_F_SCOPE) {
        e->scope = ron_rd_lstr(rd);
    }

    if (f & RON_F_KEY) {
        e->key = ron_rd_lstr(rd);
    }

    if (f & RON_F_REF) {
        e->ref = ron_rd_varint(rd);
    }

    if (f & RON_F_POSTING) {
        e->posting_first = ron_rd_varint(rd);
        e->posting_n = ron_read_u32(rd);
    }

    if (f & RON_F_EXPIRY) {
        e->expiry_ms = ron_rd_u48(rd);
    }

    if (f & RON_F_MEMO) {
        ron_rd_hash(rd, &e->memo);
    }

    if (f & RON_F_CAP) {
        e->cap = ron_rd_lstr(rd);
    }

    if (f & RON_F_CAPREF) {
        e->capref = ron_rd_lstr(rd);
    }

    if (f & RON_F_SCHEMA) {
        e->schema = ron_read_u32(rd);
    }
}


static ron_u128_t
ron_read_amount(ron_rd_t *rd)
{
    uint8_t     n;
    ron_str_t   s;
    ron_u128_t  v;

    n = ron_rd_u8(rd);
    s = ron_rd_bytes(rd, n);

    if (rd->failed || n == 0 || n > 16 || s.data[0] == 0) {
        rd->failed = true;
        return 0;
    }

    v = 0;

    for (size_t i = 0; i < s.len; i++) {
        v = v << 8 | s.data[i];
    }

    return v;
}


void
ron_entry_moves(const ron_entry_t *e, ron_moves_t *m)
{
    memset(m, 0, sizeof(ron_moves_t));

    switch (e->kind) {

    case RON_KIND_MINT:
        m->to = e->account;
        m->mints = true;
        break;

    case RON_KIND_BURN:
        m->from = e->account;
        m->burns = true;
        break;

    case RON_KIND_DEBIT:
        m->from = e->account;
        break;

    case RON_KIND_CREDIT:
        m->to = e->account;
        break;

    case RON_KIND_TRANSFER:
    case RON_KIND_REVERSE:
        m->from = e->account;
        m->to = e->to;
        break;

    case RON_KIND_HOLD:
        m->from = e->account;
        m->to = e->account;
        m->to_held = true;
        break;

    case RON_KIND_CAPTURE:
        m->from = e->account;
        m->from_held = true;
        m->to = e->to;
        break;

    case RON_KIND_RELEASE:
        m->from = e->account;
        m->from_held = true;
        m->to = e->account;
        break;

    default:
        RON_ASSERT(e->kind == RON_KIND_NONE);
    }
}


bool
ron_moves_spend(const ron_moves_t *m)
{
    return m->mints || (m->from.len != 0 && !m->from_held);
}


void
ron_body_put(ron_buf_t *body, ron_str_t entry_bytes)
{
    ron_buf_put_lstr(body, entry_bytes);
}


ron_status_t
ron_body_next(ron_rd_t *body, ron_str_t *entry_bytes)
{
    *entry_bytes = ron_null_str;

    if (ron_rd_left(body) == 0) {
        return body->failed ? ron_corrupt() : RON_ENOTFOUND;
    }

    *entry_bytes = ron_rd_lstr(body);

    if (body->failed || entry_bytes->len == 0) {
        *entry_bytes = ron_null_str;
        return ron_corrupt();
    }

    return RON_OK;
}
