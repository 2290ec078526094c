
/*
 * ronctl: the commands, and what they share.
 *
 * Every command is a row of one table (ron_ctl_main.c), from which --help,
 * completion and the parser of its options come.
 *
 * Exit codes: 0 done; 1 the answer is no (a verification that failed, a
 * figure out of bounds); 2 the command line is wrong; 3 the ledger or a file
 * cannot be opened, read or written; 4 another process holds the ledger;
 * 130 interrupted.
 */

#ifndef RON_CTL_H
#define RON_CTL_H


#include "ron.h"
#include "ron_audit.h"
#include "ron_buf.h"
#include "ron_json.h"
#include "ron_keyring.h"
#include "ron_store.h"


#define RON_CTL_VERSION  "0.1.0"

#define RON_EXIT_OK      0
#define RON_EXIT_NO      1
#define RON_EXIT_USAGE   2
#define RON_EXIT_IO      3
#define RON_EXIT_LOCKED  4
#define RON_EXIT_INT     130


#define RON_CTL_GIVEN_MAX  64
#define RON_CTL_POS_MAX    8

/* A file that a command reads whole: keys, notes, proofs. */
#define RON_CTL_FILE_MAX   (1024 * 1024)


typedef struct ron_ctl_command_s  ron_ctl_command_t;

typedef struct {
    const char  *name;          /* without the dashes; NULL ends a list */
    const char  *arg;           /* what its value is called; NULL: none */
    const char  *help;
} ron_ctl_option_t;


/* A command line that was understood. */
typedef struct {
    const ron_ctl_command_t  *command;
    const char               *pos[RON_CTL_POS_MAX];
    unsigned                  pos_n;
    bool                      json;
    struct {
        const ron_ctl_option_t  *option;
        const char              *value;
    }                         given[RON_CTL_GIVEN_MAX];
    unsigned                  given_n;
} ron_ctl_args_t;


struct ron_ctl_command_s {
    const char              *name;          /* "ledger verify" */
    int                    (*run)(ron_ctl_args_t *args);
    int                    (*raw)(int argc, char **argv);  /* or this */
    const char              *usage;         /* its arguments */
    unsigned                 pos_min;
    unsigned                 pos_max;
    const char              *summary;
    const char              *text;          /* NULL: raw has its own help */
    const ron_ctl_option_t  *options;
};


/* ---- ron_ctl_util.c ----------------------------------------------------- */

/* The value of an option; "" for one without values, NULL when not given. */
const char *ron_ctl_value(const ron_ctl_args_t *args, const char *name);

/* The i-th value of an option that may be repeated. */
const char *ron_ctl_nth(const ron_ctl_args_t *args, const char *name,
    unsigned i);

/* False, and the message is out, when it is no number; absent: `otherwise`. */
bool ron_ctl_number(const ron_ctl_args_t *args, const char *name,
    uint64_t otherwise, uint64_t *v);
bool ron_ctl_parse_number(const char *text, const char *what, uint64_t *v);

/* "10s", "500ms", "2m", or seconds, up to a day; 0 or the exit code. */
int ron_ctl_time(const ron_ctl_args_t *args, const char *name,
    uint64_t otherwise, uint64_t *us);

/* "ronctl: ..." to stderr, and with --json {"ok":false,...} to stdout. */
int ron_ctl_fail(const ron_ctl_args_t *args, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same from a status and what a library function said. */
int ron_ctl_failed(const ron_ctl_args_t *args, ron_status_t status,
    const ron_buf_t *why);

/* Opens "DIR" or "sqlite:DIR"; 0, or the exit code when the message is out. */
int ron_ctl_open(const ron_ctl_args_t *args, const char *ledger,
    ron_store_t **store);

/* "-" is stdin.  0 or the exit code. */
int ron_ctl_read_file(const ron_ctl_args_t *args, const char *path,
    ron_buf_t *out);

/*
 * Writes a file of mode 0600: a new one only, or (replace) in place of an old
 * one at once, with that one's owner.
 */
int ron_ctl_write_secret(const ron_ctl_args_t *args, const char *path,
    ron_str_t text, bool replace);

/* A verifier key, given as its text or as the name of a file. */
int ron_ctl_public_key(const ron_ctl_args_t *args, const char *given,
    ron_buf_t *out);

/* The capability keys of a file; 0 or the exit code. */
int ron_ctl_keyring(const ron_ctl_args_t *args, const char *path,
    ron_keyring_t *ring);

/* Writes to stdout, and exits when that is impossible. */
void ron_ctl_print(const ron_buf_t *b);
void ron_ctl_put_hash(ron_buf_t *b, const char *name, const ron_hash_t *hash);
void ron_ctl_hex(const ron_hash_t *hash, char hex[2 * RON_HASH_LEN + 1]);

/* 1234567 -> "1 234 567"; good until the fourth call after. */
const char *ron_ctl_thousands(uint64_t v);

uint64_t ron_ctl_per_second(uint64_t n, uint64_t us);

/*
 * Where a ledger is made: a new directory beside the one wanted, which takes
 * its place when all is well.  `dir` must be absent or an empty directory; an
 * empty one keeps its owner.
 */
int ron_ctl_place_begin(const ron_ctl_args_t *args, const char *dir,
    char *temp, size_t size);
int ron_ctl_place_end(const ron_ctl_args_t *args, const char *temp,
    const char *dir);
void ron_ctl_place_undo(const char *temp);


typedef struct {
    const char  *what;
    uint64_t     begin_us;
    uint64_t     shown_us;
    uint64_t     begin_done;
    bool         begun;
    bool         on;            /* stderr is a terminal */
} ron_ctl_meter_t;

void ron_ctl_meter_init(ron_ctl_meter_t *meter, const char *what);

/* A ron_progress_pt: draws, and says stop after an interrupt. */
bool ron_ctl_meter(void *ctx, uint64_t done, uint64_t total);
void ron_ctl_meter_end(ron_ctl_meter_t *meter);

void ron_ctl_signals(void);
bool ron_ctl_interrupted(void);


/* ---- commands ----------------------------------------------------------- */

int ron_ctl_bench(ron_ctl_args_t *args);
int ron_ctl_drain(ron_ctl_args_t *args);
int ron_ctl_top(ron_ctl_args_t *args);
int ron_ctl_ledger_bench(int argc, char **argv);
int ron_ctl_ledger_info(ron_ctl_args_t *args);
int ron_ctl_ledger_verify(ron_ctl_args_t *args);
int ron_ctl_ledger_mark(ron_ctl_args_t *args);
int ron_ctl_ledger_clear_mark(ron_ctl_args_t *args);
int ron_ctl_ledger_entries(ron_ctl_args_t *args);
int ron_ctl_ledger_export(ron_ctl_args_t *args);
int ron_ctl_ledger_import(ron_ctl_args_t *args);
int ron_ctl_ledger_snapshot(ron_ctl_args_t *args);
int ron_ctl_ledger_restore(ron_ctl_args_t *args);
int ron_ctl_ledger_reindex(ron_ctl_args_t *args);
int ron_ctl_proof_inclusion(ron_ctl_args_t *args);
int ron_ctl_proof_consistency(ron_ctl_args_t *args);
int ron_ctl_proof_verify(ron_ctl_args_t *args);
int ron_ctl_token_mint(ron_ctl_args_t *args);
int ron_ctl_token_show(ron_ctl_args_t *args);
int ron_ctl_token_attenuate(ron_ctl_args_t *args);
int ron_ctl_keys_new(ron_ctl_args_t *args);
int ron_ctl_keys_rotate(ron_ctl_args_t *args);
int ron_ctl_keys_list(ron_ctl_args_t *args);
int ron_ctl_keys_signing(ron_ctl_args_t *args);
int ron_ctl_keys_public(ron_ctl_args_t *args);


#endif /* RON_CTL_H */
