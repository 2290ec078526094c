
/*
 * Caveats: their grammar, what they leave of a capability, and whether that is
 * enough.
 *
 * Sets of bits, amounts and times are intersected when a caveat is added.
 * Lists of words stay text, one span for each caveat, and each of the spans
 * must have a word that fits.  A service or an act that we do not know grants
 * nothing, and a list may have it beside others.
 */

#include <arpa/inet.h>

#include "ron_amount.h"
#include "ron_cap.h"


#define RON_CAP_V4_IN_V6_LEN  12


static ron_status_t ron_cap_add_bits(ron_str_t value, const ron_str_t *words,
    size_t words_n, uint32_t *bits);
static ron_status_t ron_cap_add_words(ron_cap_t *cap, ron_str_t value,
    ron_cap_span_t *spans, uint8_t *spans_n);
static ron_status_t ron_cap_add_amount(ron_str_t value, ron_u128_t *max,
    bool *has);
static ron_status_t ron_cap_add_time(ron_cap_t *cap, ron_cap_caveat_t kind,
    ron_str_t value);
static ron_status_t ron_cap_add_tenant(ron_cap_t *cap, ron_str_t value);
static ron_status_t ron_cap_add_net(ron_cap_t *cap, ron_str_t value);

static bool ron_cap_split_caveat(ron_str_t caveat, ron_str_t *name,
    ron_str_t *value);
static bool ron_cap_list_is_valid(ron_str_t value, bool patterns);
static bool ron_cap_next_word(ron_str_t *rest, ron_str_t *word);
static bool ron_cap_spans_match(const ron_cap_t *cap,
    const ron_cap_span_t *spans, size_t spans_n, ron_str_t s, bool patterns);
static ron_str_t ron_cap_span_str(const ron_cap_t *cap, ron_cap_span_t span);
static ron_cap_span_t ron_cap_keep(ron_cap_t *cap, ron_str_t s);
static bool ron_cap_net_has(const ron_cap_net_t *net, ron_str_t addr);


#define RON_CAP_WORD(name, word)               ron_str_init(word),
#define RON_CAP_CAVEAT_WORD(name, word, what)  ron_str_init(word),
#define ron_str_init(literal)                                                 \
    { sizeof(literal) - 1, (const uint8_t *) (literal) }

static const ron_str_t  ron_cap_svcs[] = { RON_CAP_SVC_TABLE(RON_CAP_WORD) };
static const ron_str_t  ron_cap_acts[] = { RON_CAP_ACT_TABLE(RON_CAP_WORD) };
static const ron_str_t  ron_cap_caveats[] = {
    RON_CAP_CAVEAT_TABLE(RON_CAP_CAVEAT_WORD)
};


void
ron_cap_init(ron_cap_t *cap)
{
    memset(cap, 0, offsetof(ron_cap_t, text));

    cap->max_amount = ~(ron_u128_t) 0;
    cap->max_daily = ~(ron_u128_t) 0;
    cap->before_s = UINT64_MAX;
    cap->svcs = UINT32_MAX;
    cap->acts = UINT32_MAX;
    cap->valid = true;
}


ron_status_t
ron_cap_caveat_check(ron_str_t caveat)
{
    ron_cap_t  cap;

    ron_cap_init(&cap);

    return ron_cap_caveat_add(&cap, caveat);
}


ron_status_t
ron_cap_caveat_add(ron_cap_t *cap, ron_str_t caveat)
{
    size_t     kind;
    ron_str_t  name, value;

    if (!ron_cap_split_caveat(caveat, &name, &value)) {
        return RON_EINVAL;
    }

    for (kind = 0; kind < RON_CAP_CAVEAT_COUNT; kind++) {
        if (ron_str_eq(name, ron_cap_caveats[kind])) {
            break;
        }
    }

    switch (kind) {

    case RON_CAP_CAVEAT_SVC:
        return ron_cap_add_bits(value, ron_cap_svcs, RON_CAP_SVC_COUNT,
                                &cap->svcs);

    case RON_CAP_CAVEAT_ACT:

        if (ron_cap_add_bits(value, ron_cap_acts, RON_CAP_ACT_COUNT,
                             &cap->acts)
            != RON_OK)
        {
            return RON_EINVAL;
        }

        return ron_cap_add_words(cap, value, cap->act, &cap->acts_n);

    case RON_CAP_CAVEAT_ACCOUNT:
        return ron_cap_list_is_valid(value, true)
               ? ron_cap_add_words(cap, value, cap->account, &cap->accounts_n)
               : RON_EINVAL;

    case RON_CAP_CAVEAT_ASSET:
        return ron_cap_list_is_valid(value, false)
               ? ron_cap_add_words(cap, value, cap->asset, &cap->assets_n)
               : RON_EINVAL;

    case RON_CAP_CAVEAT_MAX_AMOUNT:
        return ron_cap_add_amount(value, &cap->max_amount,
                                  &cap->has_max_amount);

    case RON_CAP_CAVEAT_MAX_DAILY:
        return ron_cap_add_amount(value, &cap->max_daily,
                                  &cap->has_max_daily);

    case RON_CAP_CAVEAT_BEFORE:
    case RON_CAP_CAVEAT_AFTER:
        return ron_cap_add_time(cap, (ron_cap_caveat_t) kind, value);

    case RON_CAP_CAVEAT_TENANT:
        return ron_cap_add_tenant(cap, value);

    case RON_CAP_CAVEAT_IP:
        return ron_cap_add_net(cap, value);
    }

    return RON_EINVAL;
}


/* "<name> = <value>", and a value is never empty. */
static bool
ron_cap_split_caveat(ron_str_t caveat, ron_str_t *name, ron_str_t *value)
{
    const uint8_t  *space;

    if (caveat.len == 0) {
        return false;
    }

    space = memchr(caveat.data, ' ', caveat.len);

    if (space == NULL) {
        return false;
    }

    name->data = caveat.data;
    name->len = (size_t) (space - caveat.data);

    if (caveat.len < name->len + 4 || memcmp(space, " = ", 3) != 0) {
        return false;
    }

    value->data = space + 3;
    value->len = caveat.len - name->len - 3;

    return true;
}


static ron_status_t
ron_cap_add_bits(ron_str_t value, const ron_str_t *words, size_t words_n,
    uint32_t *bits)
{
    size_t     i;
    uint32_t   set;
    ron_str_t  word;

    if (!ron_cap_list_is_valid(value, false)) {
        return RON_EINVAL;
    }

    set = 0;

    while (ron_cap_next_word(&value, &word)) {
        for (i = 0; i < words_n; i++) {
            if (ron_str_eq(word, words[i])) {
                set |= (uint32_t) 1 << i;
            }
        }
    }

    *bits &= set;

    return RON_OK;
}


static ron_status_t
ron_cap_add_words(ron_cap_t *cap, ron_str_t value, ron_cap_span_t *spans,
    uint8_t *spans_n)
{
    if (*spans_n == RON_CAP_CAVEATS_MAX
        || value.len > sizeof(cap->text) - cap->text_len)
    {
        return RON_EINVAL;
    }

    spans[(*spans_n)++] = ron_cap_keep(cap, value);

    return RON_OK;
}


static ron_status_t
ron_cap_add_amount(ron_str_t value, ron_u128_t *max, bool *has)
{
    ron_u128_t  v;

    if (ron_amount_parse(value, &v) != RON_OK) {
        return RON_EINVAL;
    }

    *max = ron_min(*max, v);
    *has = true;

    return RON_OK;
}


static ron_status_t
ron_cap_add_time(ron_cap_t *cap, ron_cap_caveat_t kind, ron_str_t value)
{
    uint64_t    seconds;
    ron_u128_t  v;

    if (ron_amount_parse(value, &v) != RON_OK || v > UINT64_MAX) {
        return RON_EINVAL;
    }

    seconds = (uint64_t) v;

    if (kind == RON_CAP_CAVEAT_BEFORE) {
        cap->before_s = ron_min(cap->before_s, seconds);

    } else {
        cap->after_s = ron_max(cap->after_s, seconds);
    }

    return RON_OK;
}


static ron_status_t
ron_cap_add_tenant(ron_cap_t *cap, ron_str_t value)
{
    if (!ron_cap_list_is_valid(value, false)
        || memchr(value.data, ' ', value.len) != NULL)
    {
        return RON_EINVAL;
    }

    if (cap->has_tenant) {
        if (!ron_str_eq(ron_cap_span_str(cap, cap->tenant), value)) {
            cap->tenant_conflict = true;
        }

        return RON_OK;
    }

    if (value.len > sizeof(cap->text) - cap->text_len) {
        return RON_EINVAL;
    }

    cap->tenant = ron_cap_keep(cap, value);
    cap->has_tenant = true;

    return RON_OK;
}


static ron_status_t
ron_cap_add_net(ron_cap_t *cap, ron_str_t value)
{
    char            text[INET6_ADDRSTRLEN];
    unsigned        max_bits;
    ron_str_t       addr, prefix;
    ron_u128_t      bits;
    ron_cap_net_t   net;
    const uint8_t  *slash;

    addr = value;
    prefix = ron_null_str;
    slash = memchr(value.data, '/', value.len);

    if (slash != NULL) {
        addr.len = (size_t) (slash - value.data);
        prefix.data = slash + 1;
        prefix.len = value.len - addr.len - 1;
    }

    if (addr.len >= sizeof(text) || cap->nets_n == RON_CAP_CAVEATS_MAX
        || memchr(addr.data, '\0', addr.len) != NULL)
    {
        return RON_EINVAL;
    }

    memcpy(text, addr.data, addr.len);
    text[addr.len] = '\0';

    memset(&net, 0, sizeof(ron_cap_net_t));

    if (inet_pton(AF_INET, text, net.addr) == 1) {
        net.len = 4;

    } else if (inet_pton(AF_INET6, text, net.addr) == 1) {
        net.len = 16;

    } else {
        return RON_EINVAL;
    }

    max_bits = net.len * 8u;
    bits = max_bits;

    if (slash != NULL
        && (ron_amount_parse(prefix, &bits) != RON_OK || bits > max_bits))
    {
        return RON_EINVAL;
    }

    net.bits = (uint8_t) bits;
    cap->net[cap->nets_n++] = net;

    return RON_OK;
}


/* ---- words -------------------------------------------------------------- */

/* Words of visible ASCII with one space between; * only as a pattern's end. */
static bool
ron_cap_list_is_valid(ron_str_t value, bool patterns)
{
    size_t   i;
    uint8_t  c, last;

    last = ' ';

    for (i = 0; i < value.len; i++) {
        c = value.data[i];

        if (c < ' ' || c >= 0x7f || (c == ' ' && last == ' ')
            || (patterns && last == '*' && c != ' '))
        {
            return false;
        }

        last = c;
    }

    return last != ' ';
}


static bool
ron_cap_next_word(ron_str_t *rest, ron_str_t *word)
{
    const uint8_t  *space;

    if (rest->len == 0) {
        return false;
    }

    *word = *rest;
    space = memchr(rest->data, ' ', rest->len);

    if (space == NULL) {
        rest->len = 0;
        return true;
    }

    word->len = (size_t) (space - rest->data);
    rest->data += word->len + 1;
    rest->len -= word->len + 1;

    return true;
}


static bool
ron_cap_spans_match(const ron_cap_t *cap, const ron_cap_span_t *spans,
    size_t spans_n, ron_str_t s, bool patterns)
{
    bool       found;
    size_t     i;
    ron_str_t  rest, word, head;

    for (i = 0; i < spans_n; i++) {
        found = false;
        rest = ron_cap_span_str(cap, spans[i]);

        while (!found && ron_cap_next_word(&rest, &word)) {
            head = s;

            if (patterns && word.data[word.len - 1] == '*') {
                word.len--;
                head.len = ron_min(head.len, word.len);
            }

            found = ron_str_eq(word, head);
        }

        if (!found) {
            return false;
        }
    }

    return true;
}


static ron_str_t
ron_cap_span_str(const ron_cap_t *cap, ron_cap_span_t span)
{
    return (ron_str_t) { span.len, cap->text + span.off };
}


/* The caller has seen that there is room. */
static ron_cap_span_t
ron_cap_keep(ron_cap_t *cap, ron_str_t s)
{
    ron_cap_span_t  span;

    span.off = cap->text_len;
    span.len = (uint16_t) s.len;

    memcpy(cap->text + span.off, s.data, s.len);
    cap->text_len = (uint16_t) (cap->text_len + s.len);

    return span;
}


/* ---- asking ------------------------------------------------------------- */

bool
ron_cap_allows_act(const ron_cap_t *cap, unsigned svcs, unsigned acts)
{
    return cap->valid && (cap->svcs & svcs) == svcs
           && (cap->acts & acts) == acts;
}


bool
ron_cap_allows_word(const ron_cap_t *cap, unsigned svcs, ron_str_t act)
{
    return cap->valid && (cap->svcs & svcs) == svcs
           && ron_cap_spans_match(cap, cap->act, cap->acts_n, act, false);
}


bool
ron_cap_allows_account(const ron_cap_t *cap, ron_str_t account)
{
    return cap->valid && ron_cap_spans_match(cap, cap->account,
                                             cap->accounts_n, account, true);
}


bool
ron_cap_allows_asset(const ron_cap_t *cap, ron_str_t asset)
{
    return cap->valid && ron_cap_spans_match(cap, cap->asset, cap->assets_n,
                                             asset, false);
}


bool
ron_cap_allows_amount(const ron_cap_t *cap, ron_u128_t amount_minor)
{
    return cap->valid && amount_minor <= cap->max_amount;
}


bool
ron_cap_allows_tenant(const ron_cap_t *cap, ron_str_t tenant)
{
    if (!cap->valid || cap->tenant_conflict) {
        return false;
    }

    return !cap->has_tenant
           || ron_str_eq(ron_cap_span_str(cap, cap->tenant), tenant);
}


bool
ron_cap_allows_time(const ron_cap_t *cap, uint64_t now_ms)
{
    return cap->valid && now_ms / 1000 < cap->before_s
           && now_ms / 1000 >= cap->after_s;
}


bool
ron_cap_allows_ip(const ron_cap_t *cap, ron_str_t addr)
{
    size_t                i;
    static const uint8_t  v4_in_v6[RON_CAP_V4_IN_V6_LEN] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff
    };

    if (!cap->valid) {
        return false;
    }

    /* a dual-stack listener shows IPv4 peers like that */

    if (addr.len == 16 && memcmp(addr.data, v4_in_v6, sizeof(v4_in_v6)) == 0) {
        addr.data += sizeof(v4_in_v6);
        addr.len = 4;
    }

    for (i = 0; i < cap->nets_n; i++) {
        if (!ron_cap_net_has(&cap->net[i], addr)) {
            return false;
        }
    }

    return true;
}


static bool
ron_cap_net_has(const ron_cap_net_t *net, ron_str_t addr)
{
    size_t    whole;
    unsigned  rest;

    if (addr.len != net->len) {
        return false;
    }

    whole = net->bits / 8;
    rest = net->bits % 8;

    if (memcmp(addr.data, net->addr, whole) != 0) {
        return false;
    }

    return rest == 0
           || (addr.data[whole] ^ net->addr[whole]) >> (8 - rest) == 0;
}
