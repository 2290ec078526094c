
/*
 * The policy file: what it says, and what it refuses to say.
 */

#include "ron_test.h"
#include "ron_cap.h"
#include "ron_policy.h"

#include <stdlib.h>


static ron_policy_t *
parsed(const char *text)
{
    ron_policy_t        *p;
    ron_policy_error_t   err;

    if (ron_policy_parse(ron_cstr(text), &p, &err) != RON_OK) {
        diag("line %zu: %s", err.line, err.reason);
        return NULL;
    }

    return p;
}


static ron_policy_verdict_t
asks(const ron_policy_t *p, const char *kid, const char *id, unsigned act,
    const char *account, const char *asset, ron_policy_ceilings_t *c)
{
    ron_policy_ask_t       ask;
    ron_policy_ceilings_t  none;

    memset(&ask, 0, sizeof(ask));
    ask.kid = ron_cstr(kid);
    ask.id = ron_cstr(id);
    ask.tenant = ron_str("t1");
    ask.act = act;
    ask.account = ron_cstr(account);
    ask.asset = ron_cstr(asset);

    return ron_policy_decide(p, &ask, c ? c : &none);
}


static void
test_rules(void)
{
    ron_policy_t           *p;
    ron_policy_ask_t        ask;
    ron_policy_ceilings_t   c;

    p = parsed("# who may do what\n"
               "\n"
               "deny   cap=dev:guest act=issue,burn\n"
               "allow  cap=dev:guest act=transfer account=acc_*"
               " asset=ron,roc op=100 daily=1000 total=5000\n"
               "deny cap=dev:guest\n"
               "allow cap=ops:* act=admin,read\n"
               "allow tenant=t2 act=issue\n"
               "allow tenant=t1 act=issue op=7");
    ok(p != NULL, "a policy");
    is_u64(ron_policy_rules(p), 6, "of six rules");

    is_u64(asks(p, "dev", "guest", RON_CAP_ACT_ISSUE, "acc_1", "ron", &c),
           RON_POLICY_DENIED, "a deny");
    is_u64(asks(p, "dev", "guest", RON_CAP_ACT_TRANSFER, "acc_1", "ron", &c),
           RON_POLICY_ALLOWED, "an allow");
    ok(c.op == 100 && c.daily == 1000 && c.total == 5000, "its ceilings");
    is_u64(asks(p, "dev", "guest", RON_CAP_ACT_TRANSFER, "acc", "ron", &c),
           RON_POLICY_DENIED, "another account");
    ok(c.op == 0 && c.daily == 0 && c.total == 0, "no ceilings with it");
    is_u64(asks(p, "dev", "guest", RON_CAP_ACT_TRANSFER, "acc_1", "gold", 0),
           RON_POLICY_DENIED, "another asset");
    is_u64(asks(p, "dev", "guest2", RON_CAP_ACT_TRANSFER, "acc_1", "ron", 0),
           RON_POLICY_DENIED, "another capability, no rule speaks of it");
    is_u64(asks(p, "ops", "x", RON_CAP_ACT_ADMIN, "", "", NULL),
           RON_POLICY_ALLOWED, "a kid with any id");
    is_u64(asks(p, "opsy", "x", RON_CAP_ACT_ADMIN, "", "", NULL),
           RON_POLICY_DENIED, "a longer kid is another");
    is_u64(asks(p, "a", "b", RON_CAP_ACT_ISSUE, "z", "ron", &c),
           RON_POLICY_ALLOWED, "by its tenant");
    is_u64((uint64_t) c.op, 7, "and not by another's rule");
    is_u64(asks(p, "dev", "guest", RON_CAP_ACT_TRANSFER, "", "", NULL),
           RON_POLICY_DENIED, "no account: no rule about accounts holds");

    memset(&ask, 0, sizeof(ask));
    ask.kid = ron_str("dev");
    ask.id = ron_str("guest");
    ask.act = RON_CAP_ACT_TRANSFER;
    ask.open = true;
    is_u64(ron_policy_decide(p, &ask, &c), RON_POLICY_OPEN,
           "an account that is not known yet: ask again");
    ask.account = ron_str("acc_9");
    is_u64(ron_policy_decide(p, &ask, &c), RON_POLICY_OPEN, "nor its asset");
    ask.account = ron_str("other");
    is_u64(ron_policy_decide(p, &ask, &c), RON_POLICY_DENIED,
           "what is known may be enough");
    ask.act = RON_CAP_ACT_BURN;
    ask.account = ron_null_str;
    is_u64(ron_policy_decide(p, &ask, &c), RON_POLICY_DENIED,
           "so may be the other conditions");

    ron_policy_free(p);

    p = parsed("allow");
    ok(p != NULL && asks(p, "a", "b", RON_CAP_ACT_BURN, "x", "ron", NULL)
                    == RON_POLICY_ALLOWED,
       "everything for everybody");
    ron_policy_free(p);
}


static void
test_errors(void)
{
    size_t               i;
    ron_status_t         rc;
    ron_policy_t        *p;
    ron_policy_error_t   err;

    static const struct {
        const char  *text;
        size_t       line;
        const char  *why;
    } bad[] = {
        { "", 0, "no rule" },
        { "# only this\n\n  \n", 0, "no rule" },
        { "permit act=read", 1, "begins with" },
        { "\n\nallow act=read\nallow act=reed\n", 4, "no such act" },
        { "allow act=", 1, "without its value" },
        { "allow act", 1, "without its value" },
        { "allow act=read,", 1, "no such act" },
        { "allow who=me", 1, "no such word" },
        { "allow =x", 1, "no such word" },
        { "allow act=read act=burn", 1, "twice" },
        { "allow op=0", 1, "ceiling of 0" },
        { "allow op=01", 1, "is an amount" },
        { "allow op=-1", 1, "is an amount" },
        { "allow op=340282366920938463463374607431768211456", 1,
          "is an amount" },
        { "deny op=5", 1, "no ceilings" },
        { "allow cap=dev", 1, "cap is" },
        { "allow cap=dev:", 1, "cap is" },
        { "allow cap=de*v:x", 1, "cap is" },
        { "allow cap=:x", 1, "cap is" },
        { "allow account=a*b", 1, "account is" },
        { "allow account=a,b", 1, "account is" },
        { "allow asset=ron,,roc", 1, "asset is" },
        { "allow asset=RON!", 1, "asset is" },
        { "allow\tact=read", 1, "begins with" },
        { "allow act=read\r\n", 1, "visible ASCII" },
        { "allow act=read\nallow\ndeny act=burn", 3, "nothing reaches" },
        { "allow op=5\nallow act=read op=6", 2, "nothing reaches" },
        { "allow asset=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", 1, "16 assets" },
    };

    for (i = 0; i < ron_array_n(bad); i++) {
        p = (ron_policy_t *) &err;
        rc = ron_policy_parse(ron_cstr(bad[i].text), &p, &err);
        ok(rc == RON_EINVAL && p == NULL
           && err.line == bad[i].line && strstr(err.reason, bad[i].why) != NULL,
           "refused: %zu, %s; line %zu: %s", i, bad[i].why, err.line,
           err.reason);
    }
}


static void
test_bounds(void)
{
    char                *text, *q;
    size_t               i;
    ron_policy_t        *p;
    ron_policy_error_t   err;

    text = malloc(RON_POLICY_TEXT_MAX + 2);
    q = text;

    for (i = 0; i < RON_POLICY_RULES_MAX; i++) {
        q += snprintf(q, 32, "allow account=a%zu\n", i);
    }

    p = parsed(text);
    ok(p != NULL && ron_policy_rules(p) == RON_POLICY_RULES_MAX,
       "1024 rules");
    is_u64(asks(p, "k", "c", RON_CAP_ACT_READ, "a1023", "ron", NULL),
           RON_POLICY_ALLOWED, "the last of them");
    ron_policy_free(p);

    memcpy(q, "deny", 5);
    ok(ron_policy_parse(ron_cstr(text), &p, &err) == RON_EINVAL
       && err.line == 1025, "one more is refused");

    memset(text, '#', RON_POLICY_LINE_MAX);
    text[RON_POLICY_LINE_MAX] = '\0';
    memcpy(text + RON_POLICY_LINE_MAX, "\nallow", 7);
    p = parsed(text);
    ok(p != NULL, "a line of 1024");
    ron_policy_free(p);

    memcpy(text + RON_POLICY_LINE_MAX, "#\nallow", 8);
    ok(ron_policy_parse(ron_cstr(text), &p, &err) == RON_EINVAL
       && err.line == 1, "one more is refused");

    memset(text, '\n', RON_POLICY_TEXT_MAX + 1);
    memcpy(text, "allow", 5);
    ok(ron_policy_parse((ron_str_t) { RON_POLICY_TEXT_MAX,
                                      (uint8_t *) text }, &p, &err) == RON_OK,
       "256 KiB");
    ron_policy_free(p);
    ok(ron_policy_parse((ron_str_t) { RON_POLICY_TEXT_MAX + 1,
                                      (uint8_t *) text }, &p, &err)
       == RON_EINVAL, "one more is refused");

    free(text);
}


int
main(void)
{
    test_rules();
    test_errors();
    test_bounds();

    return done_testing();
}
