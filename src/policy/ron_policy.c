
#include <stdlib.h>

#include "ron_policy.h"
#include "ron_amount.h"
#include "ron_cap.h"
#include "ron_entry.h"


/* A name, or its beginning when `open`; any when empty and open. */

typedef struct {
    ron_str_t  text;
    bool       open;
    bool       given;
} ron_pattern_t;

typedef struct {
    bool                   allow;
    unsigned               words;       /* bits of RON_POLICY_* below */
    unsigned               acts;        /* 0: all */
    ron_pattern_t          cap;
    ron_pattern_t          account;
    ron_str_t              tenant;
    ron_str_t              assets[RON_POLICY_ASSETS_MAX];
    size_t                 assets_n;
    ron_policy_ceilings_t  ceilings;
} ron_policy_rule_t;

struct ron_policy_s {
    ron_policy_rule_t  *rules;
    size_t              rules_n;
    uint8_t            *text;           /* what the rules point into */
};


static const char *ron_policy_line(ron_policy_t *policy, ron_str_t line);
static const char *ron_policy_word(ron_policy_rule_t *rule, ron_str_t word);
static const char *ron_policy_cap(ron_policy_rule_t *rule, ron_str_t value);
static const char *ron_policy_tenant(ron_policy_rule_t *rule,
    ron_str_t value);
static const char *ron_policy_act(ron_policy_rule_t *rule, ron_str_t value);
static const char *ron_policy_account(ron_policy_rule_t *rule,
    ron_str_t value);
static const char *ron_policy_asset(ron_policy_rule_t *rule,
    ron_str_t value);
static const char *ron_policy_amount(ron_u128_t *v, ron_str_t value);
static const char *ron_policy_op(ron_policy_rule_t *rule, ron_str_t value);
static const char *ron_policy_daily(ron_policy_rule_t *rule,
    ron_str_t value);
static const char *ron_policy_total(ron_policy_rule_t *rule,
    ron_str_t value);
static ron_str_t ron_policy_cut(ron_str_t *rest, char c);
static ron_pattern_t ron_pattern(ron_str_t value);
static bool ron_pattern_holds(const ron_pattern_t *p, ron_str_t name);
static bool ron_policy_cap_holds(const ron_pattern_t *p,
    const ron_policy_ask_t *ask);
static bool ron_policy_asset_holds(const ron_policy_rule_t *rule,
    ron_str_t asset);


/* The names that a rule may have, each once. */

static const struct {
    const char   *name;
    bool          ceiling;
    const char *(*set)(ron_policy_rule_t *rule, ron_str_t value);
} ron_policy_words[] = {
    { "cap",     false, ron_policy_cap },
    { "tenant",  false, ron_policy_tenant },
    { "act",     false, ron_policy_act },
    { "account", false, ron_policy_account },
    { "asset",   false, ron_policy_asset },
    { "op",      true,  ron_policy_op },
    { "daily",   true,  ron_policy_daily },
    { "total",   true,  ron_policy_total },
};

#define RON_POLICY_ACT(name, word)  { word, RON_CAP_ACT_##name },

static const struct {
    const char  *word;
    unsigned     act;
} ron_policy_acts[] = {
    RON_CAP_ACT_TABLE(RON_POLICY_ACT)
};


ron_status_t
ron_policy_parse(ron_str_t text, ron_policy_t **policy,
    ron_policy_error_t *err)
{
    size_t         n;
    ron_str_t      rest, line;
    const char    *reason;
    ron_policy_t  *p;

    *policy = NULL;
    err->reason = "no memory for the policy";
    err->line = 0;

    if (text.len > RON_POLICY_TEXT_MAX) {
        err->reason = "the file is longer than 256 KiB";
        return RON_EINVAL;
    }

    p = calloc(1, sizeof(ron_policy_t));
    if (p == NULL) {
        return RON_ENOMEM;
    }

    p->text = malloc(text.len + 1);
    p->rules = calloc(RON_POLICY_RULES_MAX, sizeof(ron_policy_rule_t));

    if (p->text == NULL || p->rules == NULL) {
        ron_policy_free(p);
        return RON_ENOMEM;
    }

    if (text.len != 0) {
        memcpy(p->text, text.data, text.len);
    }

    rest = (ron_str_t) { text.len, p->text };
    n = 0;

    while (rest.len != 0) {
        line = ron_policy_cut(&rest, '\n');
        n++;
        reason = ron_policy_line(p, line);

        if (reason != NULL) {
            err->reason = reason;
            err->line = n;
            ron_policy_free(p);
            return RON_EINVAL;
        }
    }

    if (p->rules_n == 0) {
        err->reason = "no rule, so everything would be refused";
        ron_policy_free(p);
        return RON_EINVAL;
    }

    err->reason = "";
    *policy = p;

    return RON_OK;
}


void
ron_policy_free(ron_policy_t *policy)
{
    if (policy != NULL) {
        free(policy->rules);
        free(policy->text);
        free(policy);
    }
}


size_t
ron_policy_rules(const ron_policy_t *policy)
{
    return policy->rules_n;
}


/* What is before the next `c`, which goes too. */

static ron_str_t
ron_policy_cut(ron_str_t *rest, char c)
{
    ron_str_t       s;
    const uint8_t  *p;

    s = *rest;
    p = s.len != 0 ? memchr(s.data, c, s.len) : NULL;

    if (p == NULL) {
        *rest = ron_null_str;
        return s;
    }

    s.len = (size_t) (p - s.data);
    rest->data += s.len + 1;
    rest->len -= s.len + 1;

    return s;
}


static const char *
ron_policy_line(ron_policy_t *policy, ron_str_t line)
{
    unsigned            conditions;
    ron_str_t           word;
    const char         *reason;
    ron_policy_rule_t  *rule, *last;

    if (line.len > RON_POLICY_LINE_MAX) {
        return "the line is longer than 1024 characters";
    }

    if (line.len != 0 && line.data[0] == '#') {
        return NULL;
    }

    rule = NULL;

    while (line.len != 0) {
        word = ron_policy_cut(&line, ' ');

        if (word.len == 0) {
            continue;
        }

        if (rule != NULL) {
            reason = ron_policy_word(rule, word);
            if (reason != NULL) {
                return reason;
            }

            continue;
        }

        if (policy->rules_n == RON_POLICY_RULES_MAX) {
            return "more than 1024 rules";
        }

        rule = &policy->rules[policy->rules_n++];
        rule->allow = ron_str_eq(word, ron_str("allow"));

        if (!rule->allow && !ron_str_eq(word, ron_str("deny"))) {
            return "a rule begins with \"allow\" or \"deny\"";
        }
    }

    if (rule == NULL || policy->rules_n == 1) {
        return NULL;
    }

    last = rule - 1;
    conditions = 0;

    for (size_t i = 0; i < ron_array_n(ron_policy_words); i++) {
        conditions |= ron_policy_words[i].ceiling ? 0 : 1U << i;
    }

    return (last->words & conditions) == 0
               ? "nothing reaches this rule, the one before is for everything"
               : NULL;
}


static const char *
ron_policy_word(ron_policy_rule_t *rule, ron_str_t word)
{
    ron_str_t  name, value;

    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] < 0x21 || word.data[i] > 0x7e) {
            return "words are visible ASCII, with spaces between them";
        }
    }

    value = word;
    name = ron_policy_cut(&value, '=');

    for (size_t i = 0; i < ron_array_n(ron_policy_words); i++) {

        if (!ron_str_eq(name, ron_cstr(ron_policy_words[i].name))) {
            continue;
        }

        if (rule->words & 1U << i) {
            return "the same word twice in a rule";
        }

        if (ron_policy_words[i].ceiling && !rule->allow) {
            return "\"deny\" has no ceilings";
        }

        rule->words |= 1U << i;

        return value.len != 0 ? ron_policy_words[i].set(rule, value)
                              : "a word without its value";
    }

    return "no such word: cap, tenant, act, account, asset, op, daily, total";
}


static ron_pattern_t
ron_pattern(ron_str_t value)
{
    ron_pattern_t  p;

    p.given = true;
    p.open = value.data[value.len - 1] == '*';
    p.text = value;
    p.text.len -= p.open;

    return p;
}


static bool
ron_pattern_holds(const ron_pattern_t *p, ron_str_t name)
{
    if (p->text.len > name.len || (!p->open && p->text.len != name.len)) {
        return false;
    }

    return p->text.len == 0
           || memcmp(p->text.data, name.data, p->text.len) == 0;
}


static const char *
ron_policy_cap(ron_policy_rule_t *rule, ron_str_t value)
{
    ron_str_t  kid, id;

    rule->cap = ron_pattern(value);
    id = rule->cap.text;
    kid = ron_policy_cut(&id, ':');

    if (kid.len == rule->cap.text.len) {

        /* no colon: the beginning of a kid */

        return rule->cap.open && (kid.len == 0 || ron_kid_is_valid(kid))
                   ? NULL : "cap is \"<kid>:<id>\", a last * for any end";
    }

    return ron_kid_is_valid(kid)
           && (id.len == 0 ? rule->cap.open : ron_cap_id_is_valid(id))
           && memchr(rule->cap.text.data, '*', rule->cap.text.len) == NULL
               ? NULL : "cap is \"<kid>:<id>\", a last * for any end";
}


static const char *
ron_policy_tenant(ron_policy_rule_t *rule, ron_str_t value)
{
    rule->tenant = value;

    return value.len <= RON_POLICY_NAME_MAX ? NULL : "the tenant is too long";
}


static const char *
ron_policy_act(ron_policy_rule_t *rule, ron_str_t value)
{
    size_t     i;
    ron_str_t  word;

    do {
        word = ron_policy_cut(&value, ',');

        for (i = 0; i < ron_array_n(ron_policy_acts); i++) {
            if (ron_str_eq(word, ron_cstr(ron_policy_acts[i].word))) {
                break;
            }
        }

        if (i == ron_array_n(ron_policy_acts)) {
            return "no such act: read, issue, transfer, burn, hold, ingest, "
                   "reverse, admin";
        }

        rule->acts |= ron_policy_acts[i].act;

    } while (value.data != NULL);

    return NULL;
}


static const char *
ron_policy_account(ron_policy_rule_t *rule, ron_str_t value)
{
    rule->account = ron_pattern(value);

    return (rule->account.text.len == 0 && rule->account.open)
           || ron_account_valid(rule->account.text)
               ? NULL : "account is a name, a last * for any end";
}


static const char *
ron_policy_asset(ron_policy_rule_t *rule, ron_str_t value)
{
    ron_str_t  asset;

    do {
        asset = ron_policy_cut(&value, ',');

        if (!ron_asset_valid(asset)) {
            return "asset is a list of names with commas between them";
        }

        if (rule->assets_n == RON_POLICY_ASSETS_MAX) {
            return "more than 16 assets";
        }

        rule->assets[rule->assets_n++] = asset;

    } while (value.data != NULL);

    return NULL;
}


static const char *
ron_policy_amount(ron_u128_t *v, ron_str_t value)
{
    if (ron_amount_parse(value, v) != RON_OK) {
        return "a ceiling is an amount in minor units, below 2^128";
    }

    return *v != 0 ? NULL : "a ceiling of 0 allows nothing, say \"deny\"";
}


static const char *
ron_policy_op(ron_policy_rule_t *rule, ron_str_t value)
{
    return ron_policy_amount(&rule->ceilings.op, value);
}


static const char *
ron_policy_daily(ron_policy_rule_t *rule, ron_str_t value)
{
    return ron_policy_amount(&rule->ceilings.daily, value);
}


static const char *
ron_policy_total(ron_policy_rule_t *rule, ron_str_t value)
{
    return ron_policy_amount(&rule->ceilings.total, value);
}


/* The pattern is over "<kid>:<id>". */

static bool
ron_policy_cap_holds(const ron_pattern_t *p, const ron_policy_ask_t *ask)
{
    size_t   len;
    uint8_t  name[RON_KEY_KID_MAX + 1 + RON_CAP_ID_MAX];

    if (ask->kid.len > RON_KEY_KID_MAX || ask->id.len > RON_CAP_ID_MAX) {
        return false;
    }

    memcpy(name, ask->kid.data, ask->kid.len);
    len = ask->kid.len;
    name[len++] = ':';
    memcpy(name + len, ask->id.data, ask->id.len);
    len += ask->id.len;

    return ron_pattern_holds(p, (ron_str_t) { len, name });
}


static bool
ron_policy_asset_holds(const ron_policy_rule_t *rule, ron_str_t asset)
{
    for (size_t i = 0; i < rule->assets_n; i++) {
        if (ron_str_eq(rule->assets[i], asset)) {
            return true;
        }
    }

    return false;
}


ron_policy_verdict_t
ron_policy_decide(const ron_policy_t *policy, const ron_policy_ask_t *ask,
    ron_policy_ceilings_t *ceilings)
{
    bool                      open;
    const ron_policy_rule_t  *rule;

    memset(ceilings, 0, sizeof(ron_policy_ceilings_t));

    for (size_t i = 0; i < policy->rules_n; i++) {
        rule = &policy->rules[i];
        open = false;

        if ((rule->acts != 0 && !(rule->acts & ask->act))
            || (rule->tenant.len != 0
                && !ron_str_eq(rule->tenant, ask->tenant))
            || (rule->cap.given && !ron_policy_cap_holds(&rule->cap, ask)))
        {
            continue;
        }

        if (rule->account.given) {
            if (ask->account.len == 0) {
                open = true;

            } else if (!ron_pattern_holds(&rule->account, ask->account)) {
                continue;
            }
        }

        if (rule->assets_n != 0) {
            if (ask->asset.len == 0) {
                open = true;

            } else if (!ron_policy_asset_holds(rule, ask->asset)) {
                continue;
            }
        }

        if (open && ask->open) {
            return RON_POLICY_OPEN;
        }

        if (open) {
            continue;
        }

        if (!rule->allow) {
            return RON_POLICY_DENIED;
        }

        *ceilings = rule->ceilings;

        return RON_POLICY_ALLOWED;
    }

    return RON_POLICY_DENIED;
}
