
/*
 * ronctl ledger bench: how fast this machine takes entries, beside a floor.
 *
 * Each round measures, one after another on the same file system:
 *
 *     sync    fdatasync of one overwritten page, the disk's own speed
 *     floor   the same bytes as one blob a commit into a plain SQLite table,
 *             WAL, synchronous=FULL: what any ledger on SQLite must pay
 *     ledger  the engine: decide, encode, tags, tree, chain, commit
 *
 * and the table shows medians over the rounds, with their spread.  Figures
 * count when the disk does at least 3 000 fdatasync/s and is steady; ratios
 * of one run count always.
 */

#include "ron_ctl.h"
#include "ron_ctl_hist.h"
#include "ron_engine.h"
#include "ron_port.h"

#include <getopt.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define BENCH_ROUNDS_MAX  15
#define BENCH_T0          UINT64_C(1800000000000)
#define BENCH_SYNCS       1500


typedef struct {
    const char    *dir;
    uint64_t       entries;
    uint32_t       batch;
    uint64_t       accounts;
    uint64_t       preload;
    uint32_t       rounds;
    bool           hot;
    bool           ingest;
    bool           json;
    bool           keep;
    bool           sync_only;
    bool           memory;
    bool           sign;
    uint64_t       checkpoint_n;
    size_t         ram;
} bench_conf_t;


typedef struct {
    double    sync_rate;
    double    floor_rate;
    double    rate;
    double    p50_us;
    double    p99_us;
    double    max_us;
} bench_round_t;


typedef struct {
    ron_engine_t      *en;
    ron_signer_t      *signer;
    ron_engine_conf_t  conf;
    char               url[600];
    uint64_t           mono;            /* entries made so far */
    uint64_t           nonces;
    uint64_t          *waits;
    uint64_t           wait_n;
    uint64_t           wait_cap;
    uint64_t           bytes;
} bench_t;


typedef struct {
    double       sync;
    double       sync_spread;
    double       floor;
    double       floor_spread;
    double       rate;
    double       rate_spread;
    double       ratio;
    double       p50;
    double       p99;
    double       max;
    bool         calibrated;
    const char  *verdict;
} bench_sums_t;


/*
 * A round of up to this many entries is made before its clock starts, so that
 * only the ledger is measured.  A longer one (--preload) makes them as it
 * goes, in as many sets as batches may fly.
 */
#define BENCH_MADE  2000000
#define BENCH_SETS  4

typedef struct {
    ron_unit_t    *units;
    ron_unit_t   **list;
    ron_entry_t   *ops;
    char         (*text)[128];
    uint32_t       n;                   /* of one set */
    uint32_t       sets;
    uint32_t       set;
    bool           made;
} bench_sets_t;


static int bench_usage(FILE *out);
static bool bench_parse(int argc, char **argv, bench_conf_t *conf, int *rc);
static const char *bench_wrong(const bench_conf_t *conf);
static double bench_syncs(const bench_conf_t *conf, ron_hist_t *hist);
static int bench_sync_only(const bench_conf_t *conf);
static double bench_floor(const bench_conf_t *conf, uint64_t bytes);
static bool bench_open(bench_t *b, const bench_conf_t *conf);
static bool bench_found(bench_t *b);
static bool bench_fill(bench_t *b, const bench_conf_t *conf);
static bool bench_run(bench_t *b, const bench_conf_t *conf, uint64_t entries,
    uint32_t batch, bench_round_t *round);
static void bench_units(bench_t *b, const bench_conf_t *conf, uint32_t n,
    ron_unit_t *units, ron_entry_t *ops, char (*text)[128]);
static void bench_report(const bench_conf_t *conf, bench_t *b,
    bench_round_t *rounds);
static int bench_cmp(const void *a, const void *b);
static int bench_cmp_real(const void *a, const void *b);
static double bench_median(bench_round_t *rounds, uint32_t n, size_t field,
    double *spread);


static const char  bench_help[] =
    "usage: ronctl ledger bench [options]\n"
    "\n"
    "Measures this machine's ledger beside a raw SQLite floor, in a folder\n"
    "that it makes and removes.\n"
    "\n"
    "  --dir DIR         where to work (default: .)\n"
    "  --entries N       entries a round (default: 200000)\n"
    "  --batch N         entries a commit (default: 128)\n"
    "  --accounts N      accounts, filled before (default: 10000)\n"
    "  --preload N       entries remembered before the first round\n"
    "  --rounds N        interleaved rounds (default: 5)\n"
    "  --hot             every payment credits one account\n"
    "  --ingest          ingested entries (two tags each), not payments\n"
    "  --memory          the memory store instead of SQLite\n"
    "  --no-sign         do not sign heads\n"
    "  --checkpoint N    entries between checkpoints\n"
    "  --ram MIB         for tags and keys, each (default: 64)\n"
    "  --keep            leave the ledger there\n"
    "  --sync-only       measure the disk and nothing else\n"
    "  --json            one JSON object instead of a table\n"
    "\n"
    "example: ronctl ledger bench --dir /var/tmp --batch 128 --preload 10000000"
    "\n";


static const struct option  bench_options[] = {
    { "dir", required_argument, NULL, 'd' },
    { "entries", required_argument, NULL, 'e' },
    { "batch", required_argument, NULL, 'b' },
    { "accounts", required_argument, NULL, 'a' },
    { "preload", required_argument, NULL, 'p' },
    { "rounds", required_argument, NULL, 'r' },
    { "checkpoint", required_argument, NULL, 'c' },
    { "ram", required_argument, NULL, 'm' },
    { "hot", no_argument, NULL, 'H' },
    { "ingest", no_argument, NULL, 'i' },
    { "memory", no_argument, NULL, 'M' },
    { "no-sign", no_argument, NULL, 'S' },
    { "keep", no_argument, NULL, 'k' },
    { "sync-only", no_argument, NULL, 'y' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 }
};


static int
bench_usage(FILE *out)
{
    fputs(bench_help, out);

    return out == stderr ? RON_EXIT_USAGE : RON_EXIT_OK;
}


/* The number of an option, or false with a message. */

static bool
bench_number(const char *text, uint64_t *v)
{
    char  *end;

    *v = strtoull(text, &end, 10);

    if (*end != '\0' || end == text || *v > UINT64_C(1000000000000)) {
        fprintf(stderr, "ronctl: \"%s\" is not a number\n", text);
        return false;
    }

    return true;
}


static bool
bench_set(bench_conf_t *conf, int option, const char *text)
{
    uint64_t  v;

    v = 0;

    if (text != NULL && option != 'd' && !bench_number(text, &v)) {
        return false;
    }

    switch (option) {
    case 'd': conf->dir = text; break;
    case 'e': conf->entries = v; break;
    case 'b': conf->batch = (uint32_t) v; break;
    case 'a': conf->accounts = v; break;
    case 'p': conf->preload = v; break;
    case 'r': conf->rounds = (uint32_t) v; break;
    case 'c': conf->checkpoint_n = v; break;
    case 'm': conf->ram = v; break;
    case 'H': conf->hot = true; break;
    case 'i': conf->ingest = true; break;
    case 'M': conf->memory = true; break;
    case 'S': conf->sign = false; break;
    case 'k': conf->keep = true; break;
    case 'y': conf->sync_only = true; break;
    case 'j': conf->json = true; break;
    default: return false;
    }

    return true;
}


static bool
bench_parse(int argc, char **argv, bench_conf_t *conf, int *rc)
{
    int          c;
    const char  *wrong;

    *conf = (bench_conf_t) {
        .dir = ".", .entries = 200000, .batch = 128, .accounts = 10000,
        .rounds = 5, .sign = true, .ram = 64
    };

    *rc = RON_EXIT_USAGE;
    optind = 1;

    while ((c = getopt_long(argc, argv, "", bench_options, NULL)) != -1) {
        if (c == 'h') {
            *rc = bench_usage(stdout);
            return false;
        }

        if (!bench_set(conf, c, optarg)) {
            *rc = bench_usage(stderr);
            return false;
        }
    }

    wrong = bench_wrong(conf);

    if (optind != argc) {
        wrong = "there are options only";
    }

    if (wrong != NULL) {
        fprintf(stderr, "ronctl: %s\n", wrong);
        *rc = bench_usage(stderr);
        return false;
    }

    return true;
}


/* NULL, or what must be otherwise. */

static const char *
bench_wrong(const bench_conf_t *conf)
{
    if (conf->batch == 0 || conf->batch > 8192) {
        return "--batch is from 1 to 8192";
    }

    if (conf->entries < conf->batch) {
        return "--entries is at least --batch";
    }

    if (conf->accounts < 2 || conf->accounts > 100000000) {
        return "--accounts is from 2 to 100000000";
    }

    if (conf->rounds == 0 || conf->rounds > BENCH_ROUNDS_MAX) {
        return "--rounds is from 1 to 15";
    }

    return conf->ram == 0 ? "--ram is at least 1" : NULL;
}


int
ron_ctl_ledger_bench(int argc, char **argv)
{
    int             rc;
    char            cmd[700];
    bench_t         b;
    bench_conf_t    conf;
    bench_round_t   rounds[BENCH_ROUNDS_MAX];

    if (!bench_parse(argc, argv, &conf, &rc)) {
        return rc;
    }

    if (conf.sync_only) {
        return bench_sync_only(&conf);
    }

    memset(&b, 0, sizeof(b));

    if (!bench_open(&b, &conf)) {
        free(b.waits);
        return RON_EXIT_IO;
    }

    for (uint32_t i = 0; i < conf.rounds; i++) {
        rounds[i].sync_rate = bench_syncs(&conf, NULL);

        if (!bench_run(&b, &conf, conf.entries, conf.batch, &rounds[i])) {
            free(b.waits);
            return RON_EXIT_IO;
        }

        rounds[i].floor_rate = bench_floor(&conf, b.bytes);

        if (!conf.json) {
            fprintf(stderr, "round %u: %.0f fdatasync/s, floor %.0f/s,"
                    " ledger %.0f/s, ratio %.2f\n", i + 1,
                    rounds[i].sync_rate, rounds[i].floor_rate,
                    rounds[i].rate, rounds[i].rate / rounds[i].floor_rate);
        }
    }

    bench_report(&conf, &b, rounds);

    ron_engine_close(b.en);
    ron_signer_free(b.signer);
    free(b.waits);

    if (!conf.keep && !conf.memory) {
        snprintf(cmd, sizeof(cmd), "rm -rf -- '%s'",
                 b.url + sizeof("sqlite:") - 1);
        (void) !system(cmd);
    }

    return RON_EXIT_OK;
}


/* How often a second the disk makes one overwritten page durable. */

static double
bench_syncs(const bench_conf_t *conf, ron_hist_t *hist)
{
    char      path[700], page[4096];
    ron_fd_t  fd;
    uint64_t  begin_us, one_us;

    snprintf(path, sizeof(path), "%s/.ron-bench-sync-%d", conf->dir,
             (int) getpid());

    if (ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE, &fd) != RON_OK) {
        return 0;
    }

    memset(page, 0x5a, sizeof(page));

    for (unsigned i = 0; i < 64; i++) {
        (void) ron_file_pwrite(fd, page, sizeof(page), i * sizeof(page));
    }

    (void) ron_file_sync(fd);
    begin_us = ron_clock_mono_us();

    for (unsigned i = 0; i < BENCH_SYNCS; i++) {
        page[0] = (char) i;
        one_us = ron_clock_mono_us();
        (void) ron_file_pwrite(fd, page, sizeof(page), i % 64 * sizeof(page));
        (void) ron_file_sync(fd);

        if (hist != NULL) {
            ron_hist_add(hist, ron_clock_mono_us() - one_us);
        }
    }

    begin_us = ron_clock_mono_us() - begin_us;
    ron_file_close(fd);
    (void) ron_file_unlink(path);

    return BENCH_SYNCS * 1e6 / (double) begin_us;
}


static int
bench_sync_only(const bench_conf_t *conf)
{
    double       rate;
    ron_hist_t  *hist;

    hist = calloc(1, sizeof(ron_hist_t));
    rate = hist != NULL ? bench_syncs(conf, hist) : 0;

    if (hist == NULL || rate <= 0) {
        fprintf(stderr, "ronctl: no file can be synced in %s\n", conf->dir);
        free(hist);
        return RON_EXIT_IO;
    }

    printf(conf->json ? "{\"fdatasync_per_s\":%.0f,\"p50_us\":%llu,"
                        "\"p99_us\":%llu,\"max_us\":%llu}\n"
                      : "%.0f fdatasync/s, p50 %llu us, p99 %llu us, "
                        "max %llu us\n",
           rate, (unsigned long long) ron_hist_quantile(hist, 50000),
           (unsigned long long) ron_hist_quantile(hist, 99000),
           (unsigned long long) hist->max);
    free(hist);

    return RON_EXIT_OK;
}


/* `bytes` in as many blobs as the ledger made commits, and nothing else. */

static double
bench_floor(const bench_conf_t *conf, uint64_t bytes)
{
    char           path[700];
    size_t         len;
    uint64_t       commits, begin_us;
    uint8_t       *blob;
    sqlite3       *db;
    sqlite3_stmt  *insert;

    snprintf(path, sizeof(path), "%s/.ron-bench-floor-%d", conf->dir,
             (int) getpid());

    commits = (conf->entries + conf->batch - 1) / conf->batch;
    len = (size_t) (bytes / commits);
    blob = malloc(len + 1);

    if (blob == NULL || sqlite3_open(path, &db) != SQLITE_OK) {
        free(blob);
        return 0;
    }

    for (size_t i = 0; i < len; i++) {
        blob[i] = (uint8_t) (i * 167 >> 3);
    }

    sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                 "CREATE TABLE t (seq INTEGER PRIMARY KEY, body BLOB)",
                 NULL, NULL, NULL);
    sqlite3_prepare_v2(db, "INSERT INTO t (body) VALUES (?)", -1, &insert,
                       NULL);

    begin_us = ron_clock_mono_us();

    for (uint64_t i = 0; i < commits; i++) {
        sqlite3_bind_blob(insert, 1, blob, (int) len, SQLITE_STATIC);
        (void) sqlite3_step(insert);
        (void) sqlite3_reset(insert);
    }

    begin_us = ron_clock_mono_us() - begin_us;

    sqlite3_finalize(insert);
    sqlite3_close(db);
    free(blob);
    (void) ron_file_unlink(path);

    snprintf(path, sizeof(path), "%s/.ron-bench-floor-%d-wal", conf->dir,
             (int) getpid());
    (void) ron_file_unlink(path);
    snprintf(path, sizeof(path), "%s/.ron-bench-floor-%d-shm", conf->dir,
             (int) getpid());
    (void) ron_file_unlink(path);

    return (double) (commits * conf->batch) * 1e6 / (double) begin_us;
}


static bool
bench_open(bench_t *b, const bench_conf_t *conf)
{
    ron_buf_t     why;
    ron_status_t  status;

    ron_buf_init(&why, 0);
    ron_engine_conf_init(&b->conf);

    if (conf->memory) {
        snprintf(b->url, sizeof(b->url), "memory:4g");

    } else {
        snprintf(b->url, sizeof(b->url), "sqlite:%s/ron-bench-%d", conf->dir,
                 (int) getpid());
    }

    b->conf.store.url = b->url;
    b->conf.store.create = true;
    b->conf.tag_ram = conf->ram << 20;
    b->conf.key_ram = conf->ram << 20;
    b->conf.checkpoint_n = conf->checkpoint_n ? conf->checkpoint_n
                                              : b->conf.checkpoint_n;

    if (conf->sign
        && ron_signer_generate(ron_str("ron-bench"), &b->signer) != RON_OK)
    {
        return false;
    }

    b->conf.signer = b->signer;
    status = ron_engine_open(&b->conf, &b->en, &why);

    if (status == RON_OK) {
        status = ron_engine_acquire(b->en, &why);
    }

    if (status == RON_OK) {
        status = ron_engine_start(b->en, NULL, NULL);
    }

    if (status != RON_OK) {
        fprintf(stderr, "ronctl: %.*s\n", (int) why.len, (char *) why.data);
        return false;
    }

    ron_buf_free(&why);

    return bench_found(b) && bench_fill(b, conf);
}


/* The first entry: a bank that can pay for everything. */

static bool
bench_found(bench_t *b)
{
    ron_entry_t   mint;
    ron_unit_t    unit, *units[1];
    ron_batch_t  *batch;

    memset(&mint, 0, sizeof(mint));
    mint.kind = RON_KIND_MINT;
    mint.fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_AMOUNT;
    mint.asset = ron_str("ron");
    mint.account = ron_str("acc_bank");
    mint.amount = (ron_u128_t) 1 << 100;

    memset(&unit, 0, sizeof(unit));
    unit.type = RON_UNIT_WALLET;
    unit.key = ron_str("bench");
    unit.cap = ron_str("dev:bench");
    unit.op_n = 1;
    unit.ops = &mint;
    units[0] = &unit;

    if (ron_engine_decide(b->en, BENCH_T0, 0, units, 1) != RON_OK
        || ron_engine_quiesce(b->en, 10000) != RON_OK
        || ron_engine_reap(b->en, &batch) != RON_OK)
    {
        fprintf(stderr, "ronctl: the ledger took no first entry\n");
        return false;
    }

    ron_engine_release(b->en, batch);

    return true;
}


/* Every account gets its first balance, then what is to be remembered. */

static bool
bench_fill(bench_t *b, const bench_conf_t *conf)
{
    bench_conf_t   fill;
    bench_round_t  round;

    fill = *conf;
    fill.hot = false;

    if (!bench_run(b, &fill, conf->accounts, 4096, &round)) {
        return false;
    }

    if (conf->preload != 0) {
        fprintf(stderr, "filling %llu entries ...\n",
                (unsigned long long) conf->preload);
        return bench_run(b, conf, conf->preload, 4096, &round);
    }

    return true;
}


/*
 * Entry number n pays from one account to another, both walked in an order
 * that visits all of them and repeats none soon.  The first round over all
 * accounts is paid by the bank.
 */

static void
bench_units(bench_t *b, const bench_conf_t *conf, uint32_t n,
    ron_unit_t *units, ron_entry_t *ops, char (*text)[128])
{
    uint64_t      from, to, k;
    ron_entry_t  *e;
    ron_unit_t   *u;

    for (uint32_t i = 0; i < n; i++) {
        k = b->mono++;
        from = (k * UINT64_C(2654435761)) % conf->accounts;
        to = (from + 1 + k % (conf->accounts - 1)) % conf->accounts;

        if (k < conf->accounts) {
            to = k;
            snprintf(text[i], 32, "acc_bank");

        } else {
            snprintf(text[i], 32, "acc_%08llu", (unsigned long long) from);
        }

        snprintf(text[i] + 32, 32, "acc_%08llu",
                 (unsigned long long) (conf->hot ? 0 : to));
        snprintf(text[i] + 64, 64, "%08llx-bench-%016llx",
                 (unsigned long long) (k * 40503 & 0xffffffff),
                 (unsigned long long) k);

        e = &ops[i];
        memset(e, 0, sizeof(ron_entry_t));
        e->kind = RON_KIND_TRANSFER;
        e->fields = RON_F_ASSET | RON_F_ACCOUNT | RON_F_TO | RON_F_AMOUNT;
        e->asset = ron_str("ron");
        e->account = ron_cstr(text[i]);
        e->to = ron_cstr(text[i] + 32);
        e->amount = k < conf->accounts ? 1000000000 : 1 + k % 100;

        if (e->account.len == e->to.len
            && memcmp(e->account.data, e->to.data, e->to.len) == 0)
        {
            e->to = ron_str("acc_bank");
        }

        u = &units[i];
        memset(u, 0, sizeof(ron_unit_t));
        u->op_n = 1;
        u->ops = e;
        u->source_us = k;
        u->cap = ron_str("dev:bench");

        if (conf->ingest) {
            u->type = RON_UNIT_INGEST;
            e->fields |= RON_F_ID | RON_F_NONCE16 | RON_F_SOURCE;
            e->id = ron_cstr(text[i] + 64);
            memcpy(e->nonce16, &k, sizeof(k));
            e->source_ms = BENCH_T0 + k / 100;

        } else {
            u->type = RON_UNIT_WALLET;
            u->key = ron_cstr(text[i] + 64);
            e->fields |= RON_F_NONCE;
            e->nonce = k + 1;
        }
    }
}


static bool
bench_sets_make(bench_sets_t *sets, bench_t *b, const bench_conf_t *conf,
    uint64_t entries, uint32_t n)
{
    uint64_t  left;

    sets->n = n;
    sets->set = 0;
    sets->made = entries <= BENCH_MADE;
    sets->sets = sets->made ? (uint32_t) ((entries + n - 1) / n) : BENCH_SETS;
    sets->units = calloc((size_t) n * sets->sets, sizeof(ron_unit_t));
    sets->ops = calloc((size_t) n * sets->sets, sizeof(ron_entry_t));
    sets->text = calloc((size_t) n * sets->sets, 128);
    sets->list = calloc(n, sizeof(ron_unit_t *));

    if (!sets->units || !sets->ops || !sets->text || !sets->list) {
        return false;
    }

    left = sets->made ? entries : 0;

    for (uint32_t i = 0; left > 0; i++) {
        n = (uint32_t) ron_min(left, sets->n);
        bench_units(b, conf, n, sets->units + (size_t) i * sets->n,
                    sets->ops + (size_t) i * sets->n,
                    sets->text + (size_t) i * sets->n);
        left -= n;
    }

    return true;
}


static void
bench_sets_free(bench_sets_t *sets)
{
    free(sets->units);
    free(sets->ops);
    free(sets->text);
    free(sets->list);
}


/* Takes back a finished batch, and how long it took. */

static bool
bench_take(bench_t *b, ron_batch_t *batch)
{
    bool  good;

    good = (batch->status == RON_OK && batch->count >= batch->unit_n);

    for (uint32_t i = 0; i < batch->unit_n; i++) {
        good = good && batch->outcomes[i].reason == RON_REASON_OK;
        b->bytes += 1 + batch->outcomes[i].results[0].bytes.len;
    }

    if (b->wait_n == b->wait_cap) {
        b->wait_cap = b->wait_cap ? b->wait_cap * 2 : 4096;
        b->waits = realloc(b->waits, b->wait_cap * sizeof(uint64_t));
        RON_ASSERT(b->waits != NULL);
    }

    b->waits[b->wait_n++] = batch->commit_us;
    ron_engine_release(b->en, batch);

    return good;
}


/* Decides the next `n` entries. */

static bool
bench_give(bench_t *b, const bench_conf_t *conf, bench_sets_t *sets,
    uint32_t n)
{
    size_t  at;

    at = (size_t) sets->set * sets->n;
    sets->set = (sets->set + 1) % sets->sets;

    if (!sets->made) {
        bench_units(b, conf, n, sets->units + at, sets->ops + at,
                    sets->text + at);
    }

    for (uint32_t i = 0; i < n; i++) {
        sets->list[i] = &sets->units[at + i];
    }

    return ron_engine_decide(b->en, BENCH_T0 + b->mono / 100,
                             ron_clock_mono_us(), sets->list, n)
           == RON_OK;
}


static bool
bench_run(bench_t *b, const bench_conf_t *conf, uint64_t entries,
    uint32_t batch_n, bench_round_t *round)
{
    bool           good;
    uint32_t       n;
    uint64_t       left, flying, begin_us;
    ron_batch_t   *batch;
    bench_sets_t   sets;

    good = bench_sets_make(&sets, b, conf, entries, batch_n);
    left = entries;
    flying = 0;
    b->wait_n = 0;
    b->bytes = 0;
    begin_us = ron_clock_mono_us();

    while (good && (left > 0 || flying > 0)) {

        while (ron_engine_reap(b->en, &batch) == RON_OK) {
            good = bench_take(b, batch) && good;
            flying--;
        }

        ron_engine_sign(b->en, flying == 0);

        if (left == 0 || ron_engine_room(b->en) == 0) {
            ron_sleep_us(20);
            continue;
        }

        n = (uint32_t) ron_min(left, batch_n);
        good = bench_give(b, conf, &sets, n) && good;
        flying++;
        left -= n;
    }

    begin_us = ron_clock_mono_us() - begin_us;
    round->rate = (double) entries * 1e6 / (double) begin_us;

    if (good && b->wait_n > 0) {
        qsort(b->waits, b->wait_n, sizeof(uint64_t), bench_cmp);

        n = (uint32_t) b->wait_n - 1;
        round->max_us = (double) b->waits[n];
        n -= n / 100;
        round->p99_us = (double) b->waits[n];
        n = (uint32_t) b->wait_n / 2;
        round->p50_us = (double) b->waits[n];
    }

    bench_sets_free(&sets);

    if (!good) {
        fprintf(stderr, "ronctl: the ledger refused an entry or failed\n");
    }

    return good;
}


static int
bench_cmp(const void *a, const void *b)
{
    const uint64_t  *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}


static int
bench_cmp_real(const void *a, const void *b)
{
    const double  *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}


static double
bench_median(bench_round_t *rounds, uint32_t n, size_t field, double *spread)
{
    double  v[BENCH_ROUNDS_MAX];

    memset(v, 0, sizeof(v));

    for (uint32_t i = 0; i < n; i++) {
        memcpy(&v[i], (const char *) &rounds[i] + field, sizeof(double));
    }

    qsort(v, n, sizeof(double), bench_cmp_real);
    *spread = v[n / 2] > 0 ? 100 * (v[n - 1] - v[0]) / v[n / 2] : 0;

    return v[n / 2];
}


static void
bench_sum_up(const bench_conf_t *conf, bench_round_t *rounds,
    bench_sums_t *s)
{
    double    none, ratios[BENCH_ROUNDS_MAX];
    uint32_t  n;

    memset(ratios, 0, sizeof(ratios));
    n = conf->rounds;
    s->sync = bench_median(rounds, n, offsetof(bench_round_t, sync_rate),
                           &s->sync_spread);
    s->floor = bench_median(rounds, n, offsetof(bench_round_t, floor_rate),
                            &s->floor_spread);
    s->rate = bench_median(rounds, n, offsetof(bench_round_t, rate),
                           &s->rate_spread);
    s->p50 = bench_median(rounds, n, offsetof(bench_round_t, p50_us), &none);
    s->p99 = bench_median(rounds, n, offsetof(bench_round_t, p99_us), &none);
    s->max = bench_median(rounds, n, offsetof(bench_round_t, max_us), &none);

    for (uint32_t i = 0; i < n; i++) {
        ratios[i] = rounds[i].rate / rounds[i].floor_rate;
    }

    qsort(ratios, n, sizeof(double), bench_cmp_real);
    s->ratio = ratios[n / 2];

    s->calibrated = (s->sync >= 3000 && s->sync_spread <= 100);
    s->verdict = s->calibrated ? "calibrated"
                 : s->sync < 3000 ? "slow disk: only ratios count"
                                  : "unsteady disk: only ratios count";
}


static void
bench_report_json(const bench_conf_t *conf, const bench_sums_t *s,
    const ron_engine_stat_t *stat)
{
    printf("{\"batch\":%u,\"entries\":%llu,\"accounts\":%llu,"
           "\"fdatasync_per_s\":%.0f,\"floor_per_s\":%.0f,"
           "\"ledger_per_s\":%.0f,\"ratio\":%.3f,\"commit_p50_us\":%.0f,"
           "\"commit_p99_us\":%.0f,\"commit_max_us\":%.0f,"
           "\"calibrated\":%s,\"state_bytes\":%llu,\"name_bytes\":%llu,"
           "\"seq\":%llu}\n",
           conf->batch, (unsigned long long) conf->entries,
           (unsigned long long) conf->accounts, s->sync, s->floor, s->rate,
           s->ratio, s->p50, s->p99, s->max,
           s->calibrated ? "true" : "false",
           (unsigned long long) stat->state_bytes,
           (unsigned long long) stat->name_bytes,
           (unsigned long long) stat->seq);
}


static void
bench_report(const bench_conf_t *conf, bench_t *b, bench_round_t *rounds)
{
    bench_sums_t       s;
    ron_engine_stat_t  stat;

    bench_sum_up(conf, rounds, &s);
    ron_engine_stat(b->en, &stat);

    if (conf->json) {
        bench_report_json(conf, &s, &stat);
        return;
    }

    printf("%u entries a commit, %llu accounts, %u rounds of %llu entries\n"
           "  fdatasync   %10.0f /s   spread %.0f %%   (%s)\n"
           "  floor       %10.0f /s   spread %.0f %%\n"
           "  ledger      %10.0f /s   spread %.0f %%\n"
           "  ratio       %10.2f\n"
           "  commit      p50 %.0f us, p99 %.0f us, max %.0f us;"
           " 1/fdatasync %.0f us\n"
           "  state       %.1f bytes a balance beside %.1f of names\n",
           conf->batch, (unsigned long long) conf->accounts, conf->rounds,
           (unsigned long long) conf->entries, s.sync, s.sync_spread,
           s.verdict, s.floor, s.floor_spread, s.rate, s.rate_spread, s.ratio,
           s.p50, s.p99, s.max, s.sync > 0 ? 1e6 / s.sync : 0,
           (double) (stat.state_bytes - stat.name_bytes)
               / (double) stat.balances,
           (double) stat.name_bytes / (double) stat.accounts);
}
