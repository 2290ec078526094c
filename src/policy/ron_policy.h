
/*
 * The policy file: who may do what, and up to how much.
 *
 * A rule a line, its words separated by blanks; blank lines and lines whose
 * first character is # are skipped.
 *
 *     allow|deny [cap=P] [tenant=T] [act=A,...] [account=P] [asset=N,...]
 *                [op=N] [daily=N] [total=N]
 *
 * The first rule whose conditions hold decides; what no rule speaks of is
 * refused.  P is a name, or the beginning of one and a last *.  op, daily and
 * total are ceilings of what an `allow` allows.  A file is taken whole or not
 * at all.
 */

#ifndef RON_POLICY_H
#define RON_POLICY_H


#include "ron.h"


#define RON_POLICY_TEXT_MAX    (256 * 1024)
#define RON_POLICY_LINE_MAX    1024
#define RON_POLICY_RULES_MAX   1024
#define RON_POLICY_ASSETS_MAX  16
#define RON_POLICY_NAME_MAX    256


typedef struct ron_policy_s  ron_policy_t;

/* Line numbers begin at 1; 0 is the file as a whole. */

typedef struct {
    const char  *reason;
    size_t       line;
} ron_policy_error_t;


/*
 * What is asked.  An empty account or asset is not there, and then no rule
 * that names one holds; `open`: they stand in the ledger and will be known.
 */

typedef struct {
    ron_str_t  kid;
    ron_str_t  id;
    ron_str_t  tenant;
    unsigned   act;                     /* one RON_CAP_ACT_* */
    ron_str_t  account;
    ron_str_t  asset;
    bool       open;
} ron_policy_ask_t;

/* 0: no ceiling. */

typedef struct {
    ron_u128_t  op;
    ron_u128_t  daily;
    ron_u128_t  total;
} ron_policy_ceilings_t;

typedef enum {
    RON_POLICY_DENIED = 0,
    RON_POLICY_ALLOWED,
    RON_POLICY_OPEN                     /* ask again with account and asset */
} ron_policy_verdict_t;


/* RON_EINVAL with *err filled, RON_ENOMEM; *policy is NULL then. */
ron_status_t ron_policy_parse(ron_str_t text, ron_policy_t **policy,
    ron_policy_error_t *err);
void ron_policy_free(ron_policy_t *policy);

size_t ron_policy_rules(const ron_policy_t *policy);

/* *ceilings are zero unless allowed. */
ron_policy_verdict_t ron_policy_decide(const ron_policy_t *policy,
    const ron_policy_ask_t *ask, ron_policy_ceilings_t *ceilings);


#endif /* RON_POLICY_H */
