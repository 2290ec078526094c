
/*
 * The policy file.  What is parsed decides the same when blanks, blank lines
 * and comments are put in, and a first rule that denies an act is obeyed.
 */

#include <stdlib.h>

#include "ron_fuzz.h"
#include "ron_buf.h"
#include "ron_cap.h"
#include "ron_policy.h"


static ron_str_t
pick(fuzz_t *f, const char *const *of, uint32_t n)
{
    return ron_cstr(of[fuzz_below(f, n)]);
}


static void
an_ask(fuzz_t *f, ron_policy_ask_t *ask)
{
    static const char *const  kids[] = { "dev", "ops", "d" };
    static const char *const  ids[] = { "a", "till", "till2", "*" };
    static const char *const  tenants[] = { "", "t1", "t2" };
    static const char *const  accounts[] = { "", "a", "acc_1", "acc_", "z" };
    static const char *const  assets[] = { "", "ron", "roc" };

    memset(ask, 0, sizeof(ron_policy_ask_t));
    ask->kid = pick(f, kids, ron_array_n(kids));
    ask->id = pick(f, ids, ron_array_n(ids));
    ask->tenant = pick(f, tenants, ron_array_n(tenants));
    ask->account = pick(f, accounts, ron_array_n(accounts));
    ask->asset = pick(f, assets, ron_array_n(assets));
    ask->act = 1U << fuzz_below(f, RON_CAP_ACT_COUNT);
    ask->open = fuzz_u8(f) & 1;
}


/* The same rules, written in another way. */

static void
rewritten(ron_str_t text, ron_buf_t *out)
{
    bool  comment;

    comment = false;
    ron_buf_put_cstr(out, "# first\n\n");

    for (size_t i = 0; i < text.len; i++) {

        if (i == 0 || text.data[i - 1] == '\n') {
            comment = text.data[i] == '#';
        }

        ron_buf_put_u8(out, text.data[i]);

        if (text.data[i] == ' ' && !comment) {
            ron_buf_put_u8(out, ' ');
        }

        if (text.data[i] == '\n') {
            ron_buf_put_cstr(out, "#\n \n");
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t                  f = { data, data + len };
    ron_str_t               text;
    ron_buf_t               out;
    ron_policy_t           *p, *again;
    ron_status_t            rc;
    ron_policy_ask_t        ask;
    ron_policy_error_t      err;
    ron_policy_verdict_t    v;
    ron_policy_ceilings_t   a, b;

    an_ask(&f, &ask);
    text = fuzz_rest(&f);

    rc = ron_policy_parse(text, &p, &err);

    if (rc != RON_OK) {
        RON_ASSERT(rc == RON_EINVAL && p == NULL && err.reason[0] != '\0');
        RON_ASSERT(err.line <= text.len + 1);
        return 0;
    }

    RON_ASSERT(ron_policy_rules(p) >= 1
               && ron_policy_rules(p) <= RON_POLICY_RULES_MAX);

    v = ron_policy_decide(p, &ask, &a);

    RON_ASSERT(v != RON_POLICY_OPEN
               || (ask.open && (ask.account.len == 0
                                || ask.asset.len == 0)));
    RON_ASSERT(v == RON_POLICY_ALLOWED
               || (a.op == 0 && a.daily == 0 && a.total == 0));

    /* lines and files have a bound, which the second may pass */

    ron_buf_init(&out, 0);
    rewritten(text, &out);

    if (ron_policy_parse(ron_buf_str(&out), &again, &err) == RON_OK) {
        RON_ASSERT(ron_policy_rules(again) == ron_policy_rules(p));
        RON_ASSERT(ron_policy_decide(again, &ask, &b) == v);
        RON_ASSERT(memcmp(&a, &b, sizeof(a)) == 0);
        ron_policy_free(again);

    } else {
        RON_ASSERT(strstr(err.reason, "longer") != NULL);
    }

    ron_buf_reset(&out);
    ron_buf_put_cstr(&out, "deny act=read,issue,transfer,burn,hold,ingest,"
                           "reverse,admin\n");
    ron_buf_put_str(&out, text);

    if (ron_policy_parse(ron_buf_str(&out), &again, &err) == RON_OK) {
        RON_ASSERT(ron_policy_decide(again, &ask, &b) == RON_POLICY_DENIED);
        ron_policy_free(again);
    }

    ron_buf_free(&out);
    ron_policy_free(p);

    return 0;
}
