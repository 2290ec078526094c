
/*
 * The table of commands, the command line, help and completion.
 */

#include "ron_ctl.h"

#include <stdio.h>
#include <stdlib.h>


#define CTL_NAME_WORDS   3
#define CTL_NAME_MAX     64


static int ctl_help(int argc, char **argv);
static int ctl_help_list(const char *group);
static int ctl_help_command(const ron_ctl_command_t *c);
static bool ctl_is_help(const char *word);
static int ctl_completion(int argc, char **argv);
static const ron_ctl_command_t *ctl_find(int argc, char **argv, int *words);
static int ctl_unknown(int argc, char **argv);
static void ctl_join(char given[CTL_NAME_MAX], int n, char **argv);
static const char *ctl_guess(const char *given);
static unsigned ctl_distance(const char *a, const char *b);
static int ctl_parse(const ron_ctl_command_t *c, int argc, char **argv,
    ron_ctl_args_t *args);
static int ctl_option(ron_ctl_args_t *args, int argc, char **argv, int *i);
static const ron_ctl_option_t *ctl_option_find(const ron_ctl_command_t *c,
    const char *name, size_t len);


static const ron_ctl_option_t  ctl_verify_options[] = {
    { "from", "SEQ", "begin with the commit that holds SEQ (no replay)" },
    { "checkpoint", "FILE", "a checkpoint kept elsewhere must be on the way" },
    { "public-key", "KEY", "check signatures by it; text or file" },
    { "no-replay", NULL, "chain, roots and tiles, not what entries do" },
    { "journal-only", NULL, "leave checkpoints, tags and history alone" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_entries_options[] = {
    { "from", "SEQ", "the first entry" },
    { "to", "SEQ", "the last entry" },
    { "account", "ACCOUNT", "only entries that name it" },
    { "limit", "N", "at most so many (the newest 20 without a range)" },
    { "bytes", NULL, "with --json: the canonical bytes too, in base64" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_export_options[] = {
    { "out", "FILE", "a new file instead of stdout" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_snapshot_options[] = {
    { "key", "FILE", "the signing key (ronctl keys signing)" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_restore_options[] = {
    { "public-key", "KEY", "who must have signed it; text or file" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_reindex_options[] = {
    { "tags", NULL, "tags of the writer instead of history (server stopped)" },
    { "force", NULL, "although history knows more than the journal" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_inclusion_options[] = {
    { "size", "SIZE", "in the tree of that many entries (default: all)" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_proof_options[] = {
    { "checkpoint", "FILE", "the signed checkpoint that it must lead to" },
    { "public-key", "KEY", "whose signature that must be; text or file" },
    { "digest", "NAME", "of the ledger: blake3 (default) or sha256" },
    { NULL, NULL, NULL }
};

#define CTL_CAVEATS                                                           \
    { "svc", "WORDS", "services: wallet ledger rewarder interop edge" },      \
    { "act", "WORDS", "acts: read issue transfer burn hold ingest reverse "   \
                      "admin" },                                              \
    { "account", "WORDS", "accounts; a last * is any continuation" },         \
    { "asset", "WORDS", "assets" },                                           \
    { "max-amount", "N", "of one operation, in minor units" },                \
    { "max-daily", "N", "of one day (UTC), in minor units" },                 \
    { "before", "TIME", "not valid from then on: 30d, 12h, a date" },         \
    { "after", "TIME", "not valid before" },                                  \
    { "tenant", "NAME", "one tenant" },                                       \
    { "ip", "CIDR", "an address or a network" },                              \
    { "caveat", "TEXT", "\"name = value\", as it is; may be repeated" }

static const ron_ctl_option_t  ctl_mint_options[] = {
    { "keys", "FILE", "the file that ron_keys names" },
    { "kid", "KID", "the key (default: the file's first)" },
    { "id", "ID", "the capability's id, for ron_revoked (default: a ULID)" },
    CTL_CAVEATS,
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_show_options[] = {
    { "keys", "FILE", "verify it by these keys too" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_attenuate_options[] = {
    CTL_CAVEATS,
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_rotate_options[] = {
    { "keep", "N", "old keys that still verify (default: 1)" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_signing_options[] = {
    { "out", "FILE", "the new file (default: NAME.key)" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_bench_options[] = {
    { "url", "URL", "the server (default: http://127.0.0.1:8080)" },
    { "workload", "NAME", "transfer issue batch ingest ndjson balance proof" },
    { "connections", "N", "how many (default: 64)" },
    { "duration", "TIME", "how long: 10s, 2m (default: 10s)" },
    { "warm-up", "TIME", "not measured, before that (default: 1s)" },
    { "rate", "N", "open loop: so many requests a second" },
    { "duplicates", "PERCENT", "so many of them again, as they were" },
    { "ops", "N", "operations of one request (batch ingest ndjson)" },
    { "hot", NULL, "every payment credits one account" },
    { "accounts", "N", "accounts, filled before (default: 1000)" },
    { "no-setup", NULL, "do not fill accounts; for reads, or with --run" },
    { "run", "HEX", "the accounts of an earlier run: 6 digits" },
    { "seqs", "N", "proofs are of 1 to N (default: what the setup made)" },
    { "token", "TOKEN", "the capability (default: $RON_TOKEN)" },
    { "keys", "FILE", "mint capabilities by these keys, one a connection" },
    { "timeout", "TIME", "of one answer (default: 10s)" },
    { "record", "FILE", "write key and seq of all that was acknowledged" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_drain_options[] = {
    { "keys", "FILE", "the file that ron_keys names; its first key is asked" },
    { "socket", "PATH", "where ron_socket is; @NAME is abstract" },
    { "timeout", "SECONDS", "wait so long (default: 15)" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_top_options[] = {
    { "url", "URL", "the server (default: http://127.0.0.1:8080)" },
    { "interval", "TIME", "between two looks: 500ms, 10s (default: 1s)" },
    { "once", NULL, "one interval, and no more" },
    { NULL, NULL, NULL }
};

static const ron_ctl_option_t  ctl_no_options[] = { { NULL, NULL, NULL } };


static const ron_ctl_command_t  ctl_commands[] = {

    { "ledger info", ron_ctl_ledger_info, NULL, "LEDGER", 1, 1,
      "what a ledger is and how far it goes",
      "example: ronctl ledger info /var/lib/nginx/ron\n", ctl_no_options },

    { "ledger verify", ron_ctl_ledger_verify, NULL, "LEDGER", 1, 1,
      "check everything, from the first commit to the head",
      "Reads the whole journal and believes nothing: the chain over all\n"
      "columns, every root, every tile, every entry; replays all entries,\n"
      "compares checkpoints, and looks for anything that knows of entries\n"
      "which the journal lost.  Damage is located to its commit.  A server\n"
      "may go on writing meanwhile.\n\n"
      "example: ronctl ledger verify /var/lib/nginx/ron --json\n",
      ctl_verify_options },

    { "ledger entries", ron_ctl_ledger_entries, NULL, "LEDGER", 1, 1,
      "show entries",
      "With --json one object a line.\n\n"
      "example: ronctl ledger entries /var/lib/nginx/ron --account acc_a\n",
      ctl_entries_options },

    { "ledger export", ron_ctl_ledger_export, NULL, "LEDGER", 1, 1,
      "write the whole history as NDJSON",
      "Everything that is needed to make the same ledger again, with the\n"
      "same chain and roots; readable by people and by jq.\n\n"
      "example: ronctl ledger export /var/lib/nginx/ron | zstd > ron.zst\n",
      ctl_export_options },

    { "ledger import", ron_ctl_ledger_import, NULL, "DIR [FILE]", 1, 2,
      "make a ledger from an export",
      "DIR must be absent or empty.  The result is verified in full before\n"
      "it takes its place; an empty DIR keeps its owner.\n\n"
      "example: zstdcat ron.zst | ronctl ledger import /var/lib/nginx/ron2\n",
      ctl_no_options },

    { "ledger snapshot", ron_ctl_ledger_snapshot, NULL, "LEDGER SNAPSHOT", 2,
      2, "copy a ledger, signed, while it is being written",
      "SNAPSHOT is a directory; when it holds an older snapshot of the same\n"
      "ledger, only what came since is copied.\n\n"
      "example: ronctl ledger snapshot /var/lib/nginx/ron /backup/ron \\\n"
      "             --key /etc/nginx/ron-backup.key\n",
      ctl_snapshot_options },

    { "ledger restore", ron_ctl_ledger_restore, NULL, "SNAPSHOT DIR", 2, 2,
      "make a ledger from a snapshot",
      "Checks the signature, copies and checks every commit up to the signed\n"
      "height, verifies the result in full, and only then puts it in place.\n"
      "DIR must be absent or empty; an empty DIR keeps its owner.\n\n"
      "example: ronctl ledger restore /backup/ron /var/lib/nginx/ron \\\n"
      "             --public-key ron-backup+3f0c...\n",
      ctl_restore_options },

    { "ledger proof inclusion", ron_ctl_proof_inclusion, NULL, "LEDGER SEQ",
      2, 2, "prove that an entry is in the ledger",
      "Prints what GET /ledger/proof/inclusion answers.\n\n"
      "example: ronctl ledger proof inclusion /var/lib/nginx/ron 42\n",
      ctl_inclusion_options },

    { "ledger proof consistency", ron_ctl_proof_consistency, NULL,
      "LEDGER FROM [TO]", 2, 3,
      "prove that a ledger only grew",
      "Prints what GET /ledger/proof/consistency answers; FROM and TO are\n"
      "numbers of entries.\n\n"
      "example: ronctl ledger proof consistency /var/lib/nginx/ron 1000\n",
      ctl_no_options },

    { "ledger proof verify", ron_ctl_proof_verify, NULL, "FILE", 1, 1,
      "check a saved proof, without the ledger",
      "FILE (- is stdin) is a proof as printed above or as HTTP answers it,\n"
      "or a receipt with its proof inside.\n\n"
      "example: ronctl ledger proof verify proof.json \\\n"
      "             --checkpoint checkpoint --public-key ron+12ab...\n",
      ctl_proof_options },

    { "ledger reindex", ron_ctl_ledger_reindex, NULL, "LEDGER", 1, 1,
      "build history.db again",
      "Deletes history.db and builds it from the journal, or, where a server\n"
      "writes it, has the server do that and waits.\n\n"
      "example: ronctl ledger reindex /var/lib/nginx/ron\n",
      ctl_reindex_options },

    { "ledger mark", ron_ctl_ledger_mark, NULL, "LEDGER", 1, 1,
      "show why a ledger is in safe mode",
      "Exit code 1 when there is a mark.\n\n"
      "example: ronctl ledger mark /var/lib/nginx/ron\n", ctl_no_options },

    { "ledger clear-mark", ron_ctl_ledger_clear_mark, NULL, "LEDGER", 1, 1,
      "verify, and acknowledge the mark of safe mode",
      "Takes the writer's lock (the server must not have it), verifies in\n"
      "full, and removes the mark only when nothing is wrong.\n\n"
      "example: ronctl ledger clear-mark /var/lib/nginx/ron\n",
      ctl_no_options },

    { "ledger bench", NULL, ron_ctl_ledger_bench, "[options]", 0, 0,
      "measure this machine, beside a floor", NULL, NULL },

    { "token mint", ron_ctl_token_mint, NULL, "--keys FILE [caveats]", 0, 0,
      "make a capability",
      "What is not limited is allowed: give it the services, acts and\n"
      "accounts that it is for, and an end.\n\n"
      "example: ronctl token mint --keys /etc/nginx/ron.keys \\\n"
      "             --svc wallet --act 'read transfer' --account acc_a \\\n"
      "             --before 30d\n",
      ctl_mint_options },

    { "token show", ron_ctl_token_show, NULL, "[TOKEN]", 0, 1,
      "take a capability apart",
      "Without TOKEN, or with -, it is read from stdin, where no list of\n"
      "processes shows it.  With --keys: exit code 1 when it is not valid.\n"
      "\n"
      "example: ronctl token show --keys /etc/nginx/ron.keys < token\n",
      ctl_show_options },

    { "token attenuate", ron_ctl_token_attenuate, NULL, "[TOKEN] caveats", 0,
      1, "make a weaker capability of one",
      "Needs no key: whoever holds a capability can pass on less of it.\n\n"
      "example: ronctl token attenuate --max-amount 100 --before 1h < token\n",
      ctl_attenuate_options },

    { "keys new", ron_ctl_keys_new, NULL, "FILE [KID]", 1, 2,
      "make a file of capability keys",
      "Mode 0600; an existing file is left alone.\n\n"
      "example: ronctl keys new /etc/nginx/ron.keys k1\n", ctl_no_options },

    { "keys rotate", ron_ctl_keys_rotate, NULL, "FILE KID", 2, 2,
      "put a new capability key in front",
      "example: ronctl keys rotate /etc/nginx/ron.keys k2\n",
      ctl_rotate_options },

    { "keys list", ron_ctl_keys_list, NULL, "FILE", 1, 1,
      "name the capability keys of a file",
      "example: ronctl keys list /etc/nginx/ron.keys\n", ctl_no_options },

    { "keys signing", ron_ctl_keys_signing, NULL, "NAME", 1, 1,
      "make a key that signs checkpoints or snapshots",
      "NAME is what verifiers will see, a host name as a rule.  Prints the\n"
      "public key.\n\n"
      "example: ronctl keys signing ledger.example --out ron.key\n",
      ctl_signing_options },

    { "keys public", ron_ctl_keys_public, NULL, "FILE", 1, 1,
      "show the public half of a signing key",
      "example: ronctl keys public ron.key\n", ctl_no_options },

    { "bench", ron_ctl_bench, NULL, "", 0, 0,
      "put load on a server and measure it",
      "Keep-alive connections, every write with a fresh key, a capability\n"
      "and nonces in order.  Closed loop: each connection sends when it has\n"
      "its answer.  With --rate requests are due at fixed times and their\n"
      "latency counts from then, so a stall counts for all who waited.\n"
      "Exit code 1 when a request was refused or not answered.\n\n"
      "example: ronctl bench --keys run/ron.keys --workload transfer \\\n"
      "             --connections 128 --duration 10s\n",
      ctl_bench_options },

    { "drain", ron_ctl_drain, NULL, "[LEDGER] --keys FILE", 0, 1,
      "finish what is in hand and take no more",
      "Asks the server's helper over the ledger's socket, waits until the\n"
      "final root is published, and prints it.  Reads go on; writes are\n"
      "refused until nginx is reloaded or started again.  As a rule a QUIT\n"
      "follows.  Exit code 1: safe mode, or not in time.\n\n"
      "example: ronctl drain /var/lib/nginx/ron --keys /etc/nginx/ron.keys\n",
      ctl_drain_options },

    { "top", ron_ctl_top, NULL, "", 0, 0,
      "show how a server is, again and again",
      "State, payments and commits a second, entries per commit, queues,\n"
      "latencies, lag, refusals by reason and restarts, of what came since\n"
      "the look before; all of it from GET /readyz and GET /metrics.  On a\n"
      "terminal q or Ctrl-C ends it; elsewhere a block of lines, or with\n"
      "--json an object, an interval.\n\n"
      "example: ronctl top --url http://127.0.0.1:8080\n"
      "example: ronctl top --once --json --interval 10s\n",
      ctl_top_options },

    { "completion", NULL, ctl_completion, "bash", 0, 0,
      "print a completion script for a shell",
      "example: ronctl completion bash > /etc/bash_completion.d/ronctl\n",
      NULL },
};


int
main(int argc, char **argv)
{
    int                       rc, words;
    ron_ctl_args_t            args;
    const ron_ctl_command_t  *c;

    if (argc < 2) {
        (void) ctl_help_list("");
        return RON_EXIT_USAGE;
    }

    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("ronctl " RON_CTL_VERSION "\n");
        return RON_EXIT_OK;
    }

    if (strcmp(argv[1], "help") == 0) {
        return ctl_help(argc - 2, argv + 2);
    }

    c = ctl_find(argc - 1, argv + 1, &words);

    if (c == NULL) {
        return ctl_is_help(argv[argc - 1]) ? ctl_help(argc - 2, argv + 1)
                                           : ctl_unknown(argc - 1, argv + 1);
    }

    ron_ctl_signals();

    if (c->raw != NULL) {
        return c->text != NULL && ctl_is_help(argv[argc - 1])
               ? ctl_help_command(c) : c->raw(argc - words, argv + words);
    }

    rc = ctl_parse(c, argc - words - 1, argv + words + 1, &args);

    return rc >= 0 ? rc : c->run(&args);
}


/* The command whose words the line begins with, the longest one. */

static const ron_ctl_command_t *
ctl_find(int argc, char **argv, int *words)
{
    char  name[CTL_NAME_MAX];

    for (*words = CTL_NAME_WORDS; *words > 0; (*words)--) {
        if (*words > argc) {
            continue;
        }

        name[0] = '\0';

        for (int i = 0; i < *words; i++) {
            snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s%s",
                     i ? " " : "", argv[i]);
        }

        for (size_t i = 0; i < ron_array_n(ctl_commands); i++) {
            if (strcmp(ctl_commands[i].name, name) == 0) {
                return &ctl_commands[i];
            }
        }
    }

    return NULL;
}


/* ---- the command line --------------------------------------------------- */

/* -1: run it; else the exit code. */

static int
ctl_parse(const ron_ctl_command_t *c, int argc, char **argv,
    ron_ctl_args_t *args)
{
    int   rc;
    bool  options;

    memset(args, 0, sizeof(ron_ctl_args_t));
    args->command = c;
    options = true;

    for (int i = 0; i < argc; i++) {

        if (options && strcmp(argv[i], "--") == 0) {
            options = false;

        } else if (options && ctl_is_help(argv[i])) {
            return ctl_help_command(c);

        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            rc = ctl_option(args, argc, argv, &i);

            if (rc >= 0) {
                return rc;
            }

        } else if (args->pos_n == c->pos_max) {
            fprintf(stderr, "ronctl: \"%s\" is one argument too many\n",
                    argv[i]);
            fprintf(stderr, "usage: ronctl %s %s\n", c->name, c->usage);
            return RON_EXIT_USAGE;

        } else {
            args->pos[args->pos_n++] = argv[i];
        }
    }

    if (args->pos_n < c->pos_min) {
        fprintf(stderr, "ronctl: an argument is missing\n"
                "usage: ronctl %s %s\n", c->name, c->usage);
        return RON_EXIT_USAGE;
    }

    return -1;
}


static int
ctl_option(ron_ctl_args_t *args, int argc, char **argv, int *i)
{
    size_t                   len;
    const char              *name, *value;
    const ron_ctl_option_t  *option;

    name = argv[*i];
    name += name[1] == '-' ? 2 : 1;
    len = strcspn(name, "=");
    value = name[len] == '=' ? name + len + 1 : NULL;

    if (strcmp(name, "json") == 0) {
        args->json = true;
        return -1;
    }

    option = ctl_option_find(args->command, name, len);

    if (option == NULL || argv[*i][1] != '-') {
        fprintf(stderr, "ronctl: %s has no option \"%s\"; see ronctl help "
                "%s\n", args->command->name, argv[*i], args->command->name);
        return RON_EXIT_USAGE;
    }

    if (option->arg != NULL && value == NULL) {
        if (*i + 1 >= argc) {
            fprintf(stderr, "ronctl: --%s needs a value, %s\n", option->name,
                    option->arg);
            return RON_EXIT_USAGE;
        }

        value = argv[++*i];

    } else if (option->arg == NULL && value != NULL) {
        fprintf(stderr, "ronctl: --%s takes no value\n", option->name);
        return RON_EXIT_USAGE;
    }

    if (args->given_n == RON_CTL_GIVEN_MAX) {
        fprintf(stderr, "ronctl: too many options\n");
        return RON_EXIT_USAGE;
    }

    args->given[args->given_n].option = option;
    args->given[args->given_n++].value = value != NULL ? value : "";

    return -1;
}


static const ron_ctl_option_t *
ctl_option_find(const ron_ctl_command_t *c, const char *name, size_t len)
{
    const ron_ctl_option_t  *o;

    for (o = c->options; o->name != NULL; o++) {
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0) {
            return o;
        }
    }

    return NULL;
}


/* ---- help --------------------------------------------------------------- */

/* What `help` is asked for: all, a group of commands, or one of them. */

static int
ctl_help(int argc, char **argv)
{
    int                       words;
    char                      given[CTL_NAME_MAX];
    const ron_ctl_command_t  *c;

    c = ctl_find(argc, argv, &words);

    if (c != NULL) {
        return ctl_help_command(c);
    }

    ctl_join(given, ron_min(argc, CTL_NAME_WORDS), argv);

    return ctl_help_list(given) == RON_EXIT_OK ? RON_EXIT_OK
                                               : ctl_unknown(argc, argv);
}


static bool
ctl_is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}


/* A group is the first words of some commands, "" all of them. */

static int
ctl_help_list(const char *group)
{
    bool    any;
    size_t  len;

    len = strlen(group);
    any = false;

    if (len == 0) {
        printf("ronctl: the operator's tool of a ron ledger\n\n"
               "usage: ronctl <command> [arguments] [options]\n\n");
    }

    for (size_t i = 0; i < ron_array_n(ctl_commands); i++) {
        if (len == 0 || (strncmp(ctl_commands[i].name, group, len) == 0
                         && ctl_commands[i].name[len] == ' '))
        {
            printf("  %-25s  %s\n", ctl_commands[i].name,
                   ctl_commands[i].summary);
            any = true;
        }
    }

    if (!any) {
        return RON_EXIT_USAGE;
    }

    printf("\n  --json on any command: one JSON object (or one a line) instead "
           "of text\n  ronctl help <command>: its arguments, options and an "
           "example\n\n"
           "LEDGER is the ledger's directory, as in ron_ledger "
           "sqlite:<directory>.\n"
           "Exit codes: 0 done; 1 the answer is no; 2 wrong command line; "
           "3 cannot read\nor write; 4 another process holds it; "
           "130 interrupted.\n");

    return RON_EXIT_OK;
}


static int
ctl_help_command(const ron_ctl_command_t *c)
{
    char                     left[64];
    const ron_ctl_option_t  *o;

    if (c->text == NULL) {
        return c->raw(2, (char *[]) { (char []) { "ronctl" },
                                      (char []) { "--help" }, NULL });
    }

    printf("usage: ronctl %s%s%s%s\n\n%c%s.\n\n%s\n", c->name,
           c->usage[0] != '\0' ? " " : "", c->usage,
           c->options != NULL && c->options->name != NULL ? " [options]" : "",
           c->summary[0] & ~0x20, c->summary + 1, c->text);

    for (o = c->options; o != NULL && o->name != NULL; o++) {
        snprintf(left, sizeof(left), "--%s%s%s", o->name, o->arg ? " " : "",
                 o->arg ? o->arg : "");
        printf("  %-20s  %s\n", left, o->help);
    }

    if (c->run != NULL) {
        printf("  %-20s  %s\n", "--json", "JSON instead of text");
    }

    return RON_EXIT_OK;
}


/* What was probably meant: the words given are tried with fewer and fewer. */

static int
ctl_unknown(int argc, char **argv)
{
    int          n;
    char         given[CTL_NAME_MAX];
    const char  *guess;

    for (n = 0; n < argc && n < CTL_NAME_WORDS && argv[n][0] != '-'; n++) {
        /* words */
    }

    ctl_join(given, n < 1 ? 1 : n, argv);

    for (size_t i = 0; i < ron_array_n(ctl_commands); i++) {
        if (n == 1 && strncmp(ctl_commands[i].name, given, strlen(given)) == 0
            && ctl_commands[i].name[strlen(given)] == ' ')
        {
            (void) ctl_help_list(given);
            return RON_EXIT_USAGE;
        }
    }

    fprintf(stderr, "ronctl: there is no command \"%s\"", given);

    for (guess = NULL; n > 0 && guess == NULL; n--) {
        ctl_join(given, n, argv);
        guess = ctl_guess(given);
    }

    if (guess != NULL) {
        fprintf(stderr, "; did you mean \"ronctl %s\"?", guess);
    }

    fprintf(stderr, "\nronctl --help lists them all\n");

    return RON_EXIT_USAGE;
}


static void
ctl_join(char given[CTL_NAME_MAX], int n, char **argv)
{
    given[0] = '\0';

    for (int i = 0; i < n; i++) {
        snprintf(given + strlen(given), CTL_NAME_MAX - strlen(given), "%s%s",
                 i ? " " : "", argv[i]);
    }
}


/* By the fewest letters that differ. */

static const char *
ctl_guess(const char *given)
{
    size_t       len, name_len;
    unsigned     distance, best;
    const char  *name, *guess;

    guess = NULL;
    best = 4;
    len = strlen(given);

    for (size_t i = 0; i < ron_array_n(ctl_commands); i++) {
        name = ctl_commands[i].name;
        name_len = strlen(name);
        distance = ctl_distance(given, name);

        /* "verify" alone means the one command that ends like that. */

        if (len != 0 && name_len > len
            && strcmp(name + name_len - len, given) == 0)
        {
            distance = ron_min(distance, 1);
        }

        if (distance < best) {
            best = distance;
            guess = name;
        }
    }

    return guess;
}


static unsigned
ctl_distance(const char *a, const char *b)
{
    size_t    n;
    unsigned  row[CTL_NAME_MAX + 1], left, up, cost;

    n = strlen(b);

    if (n > CTL_NAME_MAX || strlen(a) > CTL_NAME_MAX) {
        return UINT32_MAX;
    }

    for (size_t j = 0; j <= n; j++) {
        row[j] = (unsigned) j;
    }

    for (size_t i = 0; a[i] != '\0'; i++) {
        left = row[0];
        row[0] = (unsigned) i + 1;

        for (size_t j = 0; j < n; j++) {
            up = row[j + 1];
            cost = left + (a[i] != b[j]);
            cost = ron_min(cost, up + 1);
            row[j + 1] = ron_min(cost, row[j] + 1);
            left = up;
        }
    }

    return row[n];
}


/* ---- completion --------------------------------------------------------- */

static int
ctl_completion(int argc, char **argv)
{
    const ron_ctl_option_t  *o;

    if (argc != 2 || strcmp(argv[1], "bash") != 0) {
        fprintf(stderr, "ronctl: there is a completion for bash only\n"
                "usage: ronctl completion bash\n");
        return RON_EXIT_USAGE;
    }

    printf("# bash completion of ronctl %s\n"
           "_ronctl() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} line words= c rest\n"
           "    line=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\"\n"
           "    local -A opts=(\n", RON_CTL_VERSION);

    for (size_t i = 0; i < ron_array_n(ctl_commands); i++) {
        printf("        [\"%s\"]=\"", ctl_commands[i].name);

        for (o = ctl_commands[i].options; o != NULL && o->name != NULL; o++) {
            printf("--%s ", o->name);
        }

        printf("--help%s\"\n", ctl_commands[i].run ? " --json" : "");
    }

    printf("    )\n"
           "    for c in \"${!opts[@]}\"; do\n"
           "        if [[ \"$line \" == \"$c \"* ]]; then\n"
           "            if [[ $cur == -* ]]; then\n"
           "                if [[ ${opts[$c]} == --help ]]; then\n"
           "                    opts[$c]+=\" $(ronctl help $c 2>/dev/null "
           "| sed -n 's/^ *\\(--[a-z-]*\\).*/\\1/p')\"\n"
           "                fi\n"
           "                COMPREPLY=($(compgen -W \"${opts[$c]}\" -- "
           "\"$cur\"))\n"
           "            else\n"
           "                COMPREPLY=($(compgen -f -- \"$cur\"))\n"
           "            fi\n"
           "            return\n"
           "        fi\n"
           "        if [[ -z $line || $c == \"$line \"* ]]; then\n"
           "            rest=${c#\"$line\"}\n"
           "            rest=${rest# }\n"
           "            words+=\" ${rest%%%% *}\"\n"
           "        fi\n"
           "    done\n"
           "    COMPREPLY=($(compgen -W \"$words help --help --version\" -- "
           "\"$cur\"))\n"
           "}\n"
           "complete -o filenames -F _ronctl ronctl\n");

    return RON_EXIT_OK;
}
