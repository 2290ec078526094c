
/*
 * Two writers of one ledger whose lock was lost: flock() is given to
 * everybody here, SQLite's own locks are what they are.  What one of them
 * does is interrupted before each of its reads, writes, syncs and locks, and
 * there the other one has its turn.  Each time:
 *
 *     what anybody acknowledged is in the journal, whose chain is whole;
 *     of two rows that follow the same head only one is acknowledged;
 *     the one who was replaced is refused;
 *     ledger.db and its log say the same without the index in shared memory.
 *
 * And a log whose end was only in the cache, from which it went away while
 * somebody read.
 */

#define ron_file_lock      real_file_lock
#define ron_sleep_us       real_sleep_us
#define ron_clock_mono_us  real_clock_mono_us

#include "lib_vfs_port.h"

#undef ron_file_lock
#undef ron_sleep_us
#undef ron_clock_mono_us

#include "ron_digest.h"
#include "ron_entry.h"
#include "ron_log.h"
#include "ron_store.h"
#include "ron_test.h"

#include <sqlite3.h>


#define WRITERS     3
#define SEQ_MAX     200
#define BODY        3000
#define WAL_PAGES   4
#define LOG_MAX     ((size_t) 1 << 20)


ron_status_t ron_file_lock(ron_fd_t fd);
void ron_sleep_us(uint64_t us);
uint64_t ron_clock_mono_us(void);


typedef struct {
    ron_store_t   *store;
    uint64_t       epoch;
    uint64_t       next;
    ron_hash_t     root;
    ron_hash_t     chain;
} writer_t;


typedef struct {
    const char    *what;
    void         (*outer)(void);
    void         (*inner)(void *ctx);
} scene_t;


typedef struct {
    ron_hash_t     chain;
    ron_hash_t     root;
    uint64_t       rows;
    bool           wrong;
} walk_t;


static char         base[64];
static char         dir[96];
static char         copy[96];
static uint32_t     dirs;
static uint64_t     slept;
static writer_t     writers[WRITERS];
static bool         acked[SEQ_MAX];
static ron_hash_t   acks[SEQ_MAX];
static char         wrong[512];
static uint8_t      log_bytes[LOG_MAX];
static size_t       log_len;


/* ---- what the lock and the clock are here ------------------------------- */


ron_status_t
ron_file_lock(ron_fd_t fd)
{
    (void) fd;

    return RON_OK;
}


/* Nobody goes on while the only thread sleeps. */

void
ron_sleep_us(uint64_t us)
{
    slept += us;
}


uint64_t
ron_clock_mono_us(void)
{
    return real_clock_mono_us() + slept;
}


static void
hush(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;
    (void) level;
    (void) line;
}


/* ---- writers ------------------------------------------------------------ */


__attribute__((format(printf, 1, 2)))
static void
say(const char *fmt, ...)
{
    va_list  args;

    if (wrong[0] == '\0') {
        va_start(args, fmt);
        (void) vsnprintf(wrong, sizeof(wrong), fmt, args);
        va_end(args);
    }
}


static ron_status_t
writer_open(writer_t *w, const char *where)
{
    char              url[128];
    ron_store_conf_t  conf;

    (void) snprintf(url, sizeof(url), "sqlite:%s", where);

    conf = (ron_store_conf_t) {
        .url = url, .create = true, .ledger_id = 7, .vfs = VFS_NAME,
        .wal_pages = WAL_PAGES
    };

    memset(w, 0, sizeof(writer_t));

    return ron_store_open(&conf, &w->store);
}


static void
writer_close(writer_t *w)
{
    if (w->store != NULL) {
        ron_store_release(w->store);
        ron_store_close(w->store);
        w->store = NULL;
    }
}


/* As a successor does: the lock, then what the journal says. */

static ron_status_t
writer_take(writer_t *w)
{
    ron_row_t      head;
    ron_reader_t  *reader;
    ron_status_t   status;

    status = ron_store_acquire(w->store, &w->epoch);

    if (status != RON_OK) {
        return status;
    }

    status = ron_reader_open(w->store, &reader);

    if (status == RON_OK) {
        status = ron_reader_head(reader, &head);

        if (status == RON_OK) {
            w->next = head.seq + head.count;
            w->root = head.root;
            w->chain = head.chain;

        } else if (status == RON_ENOTFOUND) {
            w->next = 1;
            status = RON_OK;
        }

        ron_reader_close(reader);
    }

    if (status != RON_OK) {
        ron_store_release(w->store);
    }

    return status;
}


static ron_status_t
writer_commit(writer_t *w)
{
    uint8_t       bytes[BODY];
    ron_buf_t     body;
    ron_row_t     row;
    ron_status_t  status;

    memset(&row, 0, sizeof(row));
    memset(bytes, (int) (w->next * 7 + w->epoch), sizeof(bytes));

    ron_buf_init(&body, 0);
    ron_body_put(&body, (ron_str_t) { sizeof(bytes), bytes });

    row.seq = w->next;
    row.count = 1;
    row.epoch = w->epoch;
    row.time_ms = 1700000000000 + w->next;
    row.prev_root = w->root;
    row.body = ron_buf_str(&body);
    ron_blake3(row.body.data, row.body.len, &row.root);

    status = ron_store_append(w->store, &row, &w->chain, NULL, 0, NULL);

    ron_buf_free(&body);

    if (status != RON_OK) {
        return status;
    }

    RON_ASSERT(row.seq < SEQ_MAX);

    if (acked[row.seq]) {
        say("seq %llu is acknowledged twice", (unsigned long long) row.seq);
    }

    acked[row.seq] = true;
    acks[row.seq] = row.chain;
    w->chain = row.chain;
    w->root = row.root;
    w->next++;

    return RON_OK;
}


/* ---- what must be true -------------------------------------------------- */


static ron_status_t
walk_row(void *ctx, const ron_row_t *row)
{
    walk_t      *k = ctx;
    ron_hash_t   chain;

    ron_row_chain(&k->chain, row, &chain);

    if (row->seq != k->rows + 1 || row->count != 1
        || !ron_hash_eq(&row->prev_root, &k->root)
        || !ron_hash_eq(&row->chain, &chain)
        || (row->seq < SEQ_MAX && acked[row->seq]
            && !ron_hash_eq(&chain, &acks[row->seq])))
    {
        say("row %llu is not the one that was acknowledged",
            (unsigned long long) row->seq);
        k->wrong = true;
        return RON_ECORRUPT;
    }

    k->rows++;
    k->chain = chain;
    k->root = row->root;

    return RON_OK;
}


static void
check_journal(ron_store_t *store, const char *what)
{
    walk_t         k;
    uint64_t       next, last;
    ron_reader_t  *reader;
    ron_status_t   status;

    memset(&k, 0, sizeof(k));

    status = ron_reader_open(store, &reader);
    if (status != RON_OK) {
        say("%s: %s", what, ron_store_error(store));
        return;
    }

    next = 1;

    do {
        status = ron_reader_rows(reader, next, 1 << 20, walk_row, &k, &next);
    } while (status == RON_OK);

    for (last = SEQ_MAX - 1; last > 0 && !acked[last]; last--) {
        /* void */
    }

    if (status != RON_ENOTFOUND || k.rows < last) {
        say("%s: %llu rows, %llu were acknowledged: %s", what,
            (unsigned long long) k.rows, (unsigned long long) last,
            status == RON_ENOTFOUND ? "no more" : ron_reader_error(reader));
    }

    ron_reader_close(reader);
}


static void
check_pages(const char *where)
{
    char           path[128];
    sqlite3       *db;
    sqlite3_stmt  *stmt;

    (void) snprintf(path, sizeof(path), "%s/ledger.db", where);
    stmt = NULL;

    if (sqlite3_open(path, &db) != SQLITE_OK
        || sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL)
           != SQLITE_OK
        || sqlite3_step(stmt) != SQLITE_ROW
        || strcmp((const char *) sqlite3_column_text(stmt, 0), "ok") != 0)
    {
        say("%s: %s", path, sqlite3_errmsg(db));
    }

    (void) sqlite3_finalize(stmt);
    (void) sqlite3_close(db);
}


__attribute__((format(printf, 1, 2)))
static void
shell(const char *fmt, ...)
{
    char     cmd[512];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(cmd, sizeof(cmd), fmt, args);
    va_end(args);

    RON_ASSERT(system(cmd) == 0);
}


/* As it is, and as whoever has to make the index finds it. */

static void
check_all(writer_t *w)
{
    writer_t  late;

    check_journal(w->store, "as it is");

    (void) snprintf(copy, sizeof(copy), "%s/c%u", base, dirs);
    shell("cp -a %s %s && rm -f %s/ledger.db-shm", dir, copy, copy);

    if (writer_open(&late, copy) != RON_OK || writer_take(&late) != RON_OK) {
        say("a copy: %s", ron_store_error(late.store));
    }

    if (late.store != NULL) {
        check_journal(late.store, "a copy");
        writer_close(&late);
        check_pages(copy);
    }
}


/* ---- scenes ------------------------------------------------------------- */


static void
commit_first(void)
{
    (void) writer_commit(&writers[0]);
}


static void
tend_first(void)
{
    (void) ron_store_maintain(writers[0].store, 0);
}


static void
take_second(void)
{
    (void) writer_take(&writers[1]);
}


static void
first_commits(void *ctx)
{
    (void) ctx;
    commit_first();
}


static void
first_goes_on(void *ctx)
{
    uint32_t  i;

    (void) ctx;

    for (i = 0; i < 5; i++) {
        commit_first();
        tend_first();
    }
}


static void
second_replaces(void *ctx)
{
    (void) ctx;

    if (writer_take(&writers[1]) == RON_OK) {
        (void) writer_commit(&writers[1]);
        (void) writer_commit(&writers[1]);
    }
}


static void
third_replaces(void *ctx)
{
    (void) ctx;

    if (writer_take(&writers[2]) == RON_OK) {
        (void) writer_commit(&writers[2]);
    }
}


static const scene_t  scenes[] = {
    { "one takes over, the other commits", take_second, first_commits },
    { "one takes over, the other goes on", take_second, first_goes_on },
    { "one commits, is replaced", commit_first, second_replaces },
    { "one checkpoints, is replaced", tend_first, second_replaces },
    { "one takes over, a third does too", take_second, third_replaces },
};


/*
 * A log that has started over, so that what is committed lies where older
 * frames were, with enough behind it that a checkpoint is due.
 */

static void
begin(void)
{
    uint32_t  i;

    (void) snprintf(dir, sizeof(dir), "%s/l%u", base, ++dirs);
    memset(acked, 0, sizeof(acked));
    wrong[0] = '\0';
    vfs_reset();

    for (i = 0; i < WRITERS; i++) {
        RON_ASSERT(writer_open(&writers[i], dir) == RON_OK);
    }

    RON_ASSERT(writer_take(&writers[0]) == RON_OK);

    for (i = 0; i < 12; i++) {
        RON_ASSERT(writer_commit(&writers[0]) == RON_OK);
    }

    RON_ASSERT(ron_store_maintain(writers[0].store, 0) == RON_OK);

    for (i = 0; i < 5; i++) {
        RON_ASSERT(writer_commit(&writers[0]) == RON_OK);
    }
}


static void
end(void)
{
    uint32_t  i;

    vfs_between(0, NULL, NULL);

    for (i = 0; i < WRITERS; i++) {
        writer_close(&writers[i]);
    }

    shell("rm -rf %s %s", dir, copy);
}


/* Nobody is interrupted any more; then one takes over, and is the only one. */

static void
settle(void)
{
    uint32_t  i, good;

    vfs_between(0, NULL, NULL);

    for (i = 0, good = 0; i < WRITERS; i++) {
        good += writers[i].epoch != 0
                && writer_commit(&writers[i]) == RON_OK;
    }

    if (good > 1) {
        say("%u writers at once", good);
    }

    check_all(&writers[0]);

    writer_close(&writers[2]);
    RON_ASSERT(writer_open(&writers[2], dir) == RON_OK);

    if (writer_take(&writers[2]) != RON_OK
        || writer_commit(&writers[2]) != RON_OK)
    {
        say("nobody can take over: %s", ron_store_error(writers[2].store));
    }

    if (writer_commit(&writers[0]) == RON_OK
        || (writers[1].epoch != 0 && writer_commit(&writers[1]) == RON_OK))
    {
        say("one who was replaced is not refused");
    }

    check_journal(writers[2].store, "in the end");
}


static void
test_scene(const scene_t *scene)
{
    bool      done;
    uint32_t  n, bad;

    bad = 0;
    done = true;

    for (n = 1; done && bad < 3; n++) {
        begin();
        vfs_between(n, scene->inner, NULL);
        scene->outer();
        done = vfs_between_done();
        settle();
        end();

        if (wrong[0] != '\0') {
            diag("%s before step %u: %s", scene->what, n, wrong);
            bad++;
        }
    }

    ok(bad == 0 && n > 6, "%s, at each of %u steps", scene->what, n - 2);
}


/* ---- the cache ---------------------------------------------------------- */


static void
log_save(void)
{
    int      fd;
    char     path[128];
    ssize_t  n;

    (void) snprintf(path, sizeof(path), "%s/ledger.db-wal", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    RON_ASSERT(fd != -1);
    n = read(fd, log_bytes, LOG_MAX);
    RON_ASSERT(n > 0 && n < (ssize_t) LOG_MAX);
    log_len = (size_t) n;
    (void) close(fd);
}


/* What was written since is gone, as if it had never been on the disk. */

static void
log_forget(void *ctx)
{
    int   fd;
    char  path[128];

    (void) ctx;

    (void) snprintf(path, sizeof(path), "%s/ledger.db-wal", dir);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    RON_ASSERT(fd != -1);
    RON_ASSERT(pwrite(fd, log_bytes, log_len, 0) == (ssize_t) log_len);
    RON_ASSERT(ftruncate(fd, (off_t) log_len) == 0);
    (void) close(fd);
}


/* A commit that nobody was told of: its sync failed. */

static void
commit_in_doubt(void)
{
    uint64_t  seq;

    log_save();
    seq = writers[0].next;
    RON_ASSERT(writer_commit(&writers[0]) == RON_OK);
    acked[seq] = false;
    writer_close(&writers[0]);
    RON_ASSERT(writer_open(&writers[0], dir) == RON_OK);
}


static void
test_evicted(uint32_t more, const char *what)
{
    uint32_t       i;
    ron_row_t      row;
    ron_reader_t  *reader;

    begin();

    for (i = 0; i < more; i++) {
        RON_ASSERT(writer_commit(&writers[0]) == RON_OK);
    }

    RON_ASSERT(ron_reader_open(writers[2].store, &reader) == RON_OK);

    commit_in_doubt();

    is_status(ron_reader_head(reader, &row), RON_OK, "%s: a reader", what);
    is_u64(row.seq, 18 + more, "sees it while it is there");

    log_forget(NULL);

    is_status(writer_take(&writers[1]), RON_OK, "it is gone: one takes over");
    is_u64(writers[1].next, 18 + more, "behind what was acknowledged");
    is_status(writer_commit(&writers[1]), RON_OK, "and commits");
    is_status(ron_reader_head(reader, &row), RON_OK, "the reader goes on");
    is_u64(row.seq, 18 + more, "with the row that is there now");

    check_all(&writers[1]);
    is_str(wrong, "", "nothing is lost");

    ron_reader_close(reader);
    end();
}


/* The same where the sync of the one who takes over fails too. */

static void
test_evicted_again(void)
{
    bool           done;
    uint32_t       n, bad;
    ron_row_t      row;
    ron_reader_t  *reader;

    bad = 0;
    done = true;

    for (n = 1; done && bad < 3; n++) {
        begin();
        RON_ASSERT(ron_reader_open(writers[2].store, &reader) == RON_OK);
        commit_in_doubt();

        vfs_plan(VFS_EIO, VFS_SYNC, VFS_PORT, 1, false);
        vfs_between(n, log_forget, NULL);

        if (writer_take(&writers[1]) == RON_OK) {
            say("takes over without a sync");
        }

        done = vfs_between_done();

        vfs_heal();
        vfs_between(0, NULL, NULL);

        if (ron_reader_head(reader, &row) != RON_OK) {
            say("a reader: %s", ron_reader_error(reader));
        }

        if (writer_take(&writers[1]) != RON_OK
            || writer_commit(&writers[1]) != RON_OK)
        {
            say("the next try: %s", ron_store_error(writers[1].store));
        }

        check_all(&writers[1]);
        ron_reader_close(reader);
        end();

        if (wrong[0] != '\0') {
            diag("gone before step %u: %s", n, wrong);
            bad++;
        }
    }

    ok(bad == 0 && n > 5, "gone while one takes over and cannot sync, at each "
       "of %u steps", n - 2);
}


int
main(void)
{
    size_t  i;

    (void) snprintf(base, sizeof(base), "/tmp/ron-writers-XXXXXX");
    RON_ASSERT(mkdtemp(base) != NULL);

    ron_log_set(hush, NULL, RON_LOG_ALERT);
    vfs_register();

    for (i = 0; i < ron_array_n(scenes); i++) {
        test_scene(&scenes[i]);
    }

    test_evicted(0, "frames over older ones");
    test_evicted(20, "frames at the end of the log");
    test_evicted_again();

    shell("rm -rf %s", base);

    return done_testing();
}
