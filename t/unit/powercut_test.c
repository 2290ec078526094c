
/*
 * The power goes at any instant of a workload that was recorded, and the disk
 * keeps what it must and anything of what it may (see lib_vfs.h).  Then the
 * ledger opens, has everything that was acknowledged and nothing by half.
 *
 * Two disks that lie: one that ignores syncs altogether is the control, and
 * has to be found out; one that fails a sync and drops the data is what Linux
 * does, and what was acknowledged afterwards must not rest on it.
 */

#include "lib_vfs_port.h"

#include "lib_crash.h"
#include "ron_log.h"
#include "ron_test.h"


#define STEPS   40
#define MIDWAY  24
#define ACKS    (4 * STEPS)


typedef struct {
    size_t    at;                   /* changes recorded by then */
    uint32_t  acked;
} ack_t;


static ack_t     acks[ACKS];
static uint32_t  ack_n;
static uint64_t  cut_n;
static uint64_t  rows_lost;         /* not acknowledged, not there */
static uint64_t  rows_kept;         /* not acknowledged, there */


static void
hush(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;
    (void) level;
    (void) line;
}


static void
ack(void *ctx, uint32_t acked)
{
    (void) ctx;

    if (ack_n > 0 && acks[ack_n - 1].acked >= acked) {
        return;
    }

    RON_ASSERT(ack_n < ACKS);
    acks[ack_n].at = vfs_trace_len();
    acks[ack_n++].acked = acked;
}


static uint32_t
acked_at(size_t cut)
{
    uint32_t  acked;

    acked = 0;

    for (uint32_t i = 0; i < ack_n && acks[i].at <= cut; i++) {
        acked = acks[i].acked;
    }

    return acked;
}


/* Two lives of a ledger, the second of which begins with a recovery. */

static void
record(crash_t *c)
{
    vfs_reset();
    vfs_record(true);
    ack_n = 0;
    c->ack = ack;

    RON_ASSERT(crash_open(c) == RON_OK && crash_play(c, 0, MIDWAY));
    crash_close(c);

    RON_ASSERT(crash_open(c) == RON_OK
               && crash_play(c, MIDWAY - 2, STEPS));
    crash_close(c);

    c->ack = NULL;
    vfs_record(false);
}


/* NULL, or which promise is broken by the disk as of `cut`. */

static const char *
broken_at(crash_t *c, size_t cut, vfs_mode_t mode, uint64_t seed,
    uint32_t acked)
{
    uint32_t      decided;
    ron_status_t  status;
    crash_walk_t  walk;
    static char   wrong[600];

    crash_empty(c);
    c->wrong[0] = '\0';
    c->acked = 0;

    if (!vfs_rebuild(cut, mode, seed, c->dir)) {
        return "the disk cannot be rebuilt";
    }

    status = crash_open(c);

    if (status != RON_OK) {
        snprintf(wrong, sizeof(wrong), "does not open: %s: %.*s",
                 ron_status_name(status), (int) ron_min(c->why.len, 400),
                 (const char *) c->why.data);
        return wrong;
    }

    memset(&walk, 0, sizeof(walk));

    if (!crash_walk(ron_engine_store(c->en), &walk)) {
        snprintf(wrong, sizeof(wrong), "%s", walk.wrong);
        return wrong;
    }

    if (walk.rows < acked) {
        snprintf(wrong, sizeof(wrong), "%u steps were acknowledged, %u are"
                 " there", acked, walk.rows);
        return wrong;
    }

    decided = ron_min(acked + 2, STEPS);
    rows_kept += walk.rows - acked;
    rows_lost += decided - ron_min(decided, walk.rows);

    if (!crash_conserved(c)) {
        return "money is not conserved";
    }

    if (!crash_play(c, 0, STEPS) || c->wrong[0] != '\0') {
        snprintf(wrong, sizeof(wrong), "sent again: %s: %s",
                 ron_status_name(c->failed), c->wrong);
        return wrong;
    }

    return crash_same(c, STEPS, wrong, sizeof(wrong)) ? NULL : wrong;
}


static void
test_cuts(crash_t *c, vfs_mode_t mode, const char *what, uint32_t cuts)
{
    size_t       cut;
    uint64_t     seed;
    uint32_t     bad;
    const char  *wrong;

    bad = 0;

    for (uint32_t i = 0; i < cuts && bad < 5; i++) {
        seed = (uint64_t) mode * 1000003 + i;
        cut = (size_t) ((i * vfs_trace_len()) / cuts
                        + seed * 7919 % (vfs_trace_len() / cuts + 1));
        cut = ron_min(cut, vfs_trace_len());

        wrong = broken_at(c, cut, mode, seed, acked_at(cut));
        crash_close(c);
        cut_n++;

        if (wrong != NULL) {
            diag("cut %zu of %zu, seed %llu: %s", cut, vfs_trace_len(),
                 (unsigned long long) seed, wrong);
            bad++;
        }
    }

    ok(bad == 0, "%u cuts, %s", cuts, what);
}


/* Every instant of the making of a ledger, and of its first commits. */

static void
test_beginning(crash_t *c)
{
    uint32_t     bad;
    const char  *wrong;

    bad = 0;

    for (size_t cut = 0; cut <= acks[1].at && bad < 5; cut++) {
        for (vfs_mode_t mode = VFS_DROP; mode < VFS_MODE_N; mode++) {
            wrong = broken_at(c, cut, mode, cut, acked_at(cut));
            crash_close(c);
            cut_n++;

            if (wrong != NULL) {
                diag("cut %zu, mode %d: %s", cut, mode, wrong);
                bad++;
            }
        }
    }

    ok(bad == 0, "any cut before the second commit");
}


/* The harness has to catch a disk that never synced anything. */

static void
test_control(crash_t *c)
{
    size_t    cut;
    uint32_t  dropped, caught, torn, tried;

    dropped = 0;
    caught = 0;
    torn = 0;
    tried = 0;
    vfs_ignore_syncs(true);

    for (uint32_t i = 0; i < ack_n; i += 2) {
        cut = acks[i].at;
        tried++;

        caught += broken_at(c, cut, VFS_DROP, i, acks[i].acked) != NULL;
        crash_close(c);
        torn += broken_at(c, cut, VFS_RANDOM, i, acks[i].acked) != NULL;
        crash_close(c);
        dropped++;
    }

    vfs_ignore_syncs(false);

    ok(tried > 10 && caught == dropped, "control: a disk that drops what was"
       " synced is noticed, %u of %u times", caught, dropped);
    ok(torn > tried / 2, "control: so is one that keeps parts of it, %u of %u",
       torn, tried);
}


/*
 * A sync fails, and the kernel has dropped the pages: who reads sees them in
 * the cache, and after a power cut they are gone.  Whatever the reopened
 * ledger acknowledges must survive that.
 */

static const char *
lost_sync(crash_t *c, crash_t *after, uint64_t n, bool *hit)
{
    size_t         cut[3];
    uint32_t       steps[3];
    ron_status_t   status;
    const char    *wrong;
    crash_walk_t   walk;
    static char    text[700];

    vfs_reset();
    vfs_record(true);
    crash_empty(c);
    c->acked = 0;
    c->wrong[0] = '\0';

    vfs_plan(VFS_LOST, VFS_SYNC, VFS_ANY, n, false);
    status = crash_open(c);

    if (status == RON_OK) {
        (void) crash_play(c, 0, MIDWAY);
    }

    *hit = vfs_hit();
    crash_close(c);
    vfs_heal();

    if (!*hit) {
        return NULL;
    }

    status = crash_open(c);

    if (status != RON_OK) {
        snprintf(text, sizeof(text), "does not open again: %s: %.*s",
                 ron_status_name(status), (int) ron_min(c->why.len, 400),
                 (const char *) c->why.data);
        crash_close(c);
        return text;
    }

    /* What is seen is answered again; then one step more; then the rest. */

    memset(&walk, 0, sizeof(walk));
    (void) crash_walk(ron_engine_store(c->en), &walk);

    steps[0] = walk.rows;
    steps[1] = ron_min(walk.rows + 1, MIDWAY);
    steps[2] = MIDWAY;

    for (uint32_t i = 0; i < 3; i++) {
        if (!crash_play(c, i > 0 ? steps[i - 1] : 0, steps[i])
            || c->wrong[0] != '\0')
        {
            crash_close(c);
            return c->wrong[0] ? c->wrong : "does not go on";
        }

        cut[i] = vfs_trace_len();
    }

    vfs_record(false);
    crash_close(c);

    wrong = NULL;

    for (uint32_t i = 0; i < 3 && wrong == NULL; i++) {
        wrong = broken_at(after, cut[i], VFS_DROP, n, steps[i]);
        crash_close(after);
    }

    return wrong;
}


static void
test_lost_syncs(crash_t *c, crash_t *after)
{
    bool         hit;
    uint64_t     n, bad;
    const char  *wrong;

    bad = 0;
    hit = true;

    for (n = 1; hit; n++) {
        wrong = lost_sync(c, after, n, &hit);

        if (wrong != NULL) {
            bad++;

            if (bad <= 5) {
                diag("sync %llu failed and lost its data: %s",
                     (unsigned long long) n, wrong);
            }
        }
    }

    ok(bad == 0 && n > 10, "nothing is acknowledged on top of what a failed"
       " sync lost: %llu of %llu", (unsigned long long) bad,
       (unsigned long long) n - 2);
}


/*
 * A sync fails once while the ledger is made, the disk is well again, and
 * steps are acknowledged: the names of their files are durable too.
 */

static void
test_names(crash_t *c, crash_t *after)
{
    bool         hit;
    uint32_t     n, bad, acked;
    const char  *wrong;

    bad = 0;
    hit = true;

    for (n = 1; hit && bad < 5; n++) {
        vfs_reset();
        crash_empty(c);
        c->wrong[0] = '\0';
        c->acked = 0;

        vfs_record(true);
        vfs_plan(VFS_EIO, VFS_SYNC, VFS_PORT, n, false);
        (void) crash_open(c);
        hit = vfs_hit();
        crash_close(c);
        vfs_heal();

        RON_ASSERT(crash_open(c) == RON_OK && crash_play(c, 0, 3));
        acked = c->acked;
        vfs_record(false);
        wrong = broken_at(after, vfs_trace_len(), VFS_DROP, n, acked);
        crash_close(after);
        crash_close(c);
        cut_n++;

        if (wrong != NULL) {
            diag("sync %u fails in the beginning: %s", n, wrong);
            bad++;
        }
    }

    ok(bad == 0 && n > 4, "names are durable, whichever of %u syncs failed",
       n - 2);
}


int
main(void)
{
    crash_t   c, after;
    uint32_t  cuts;

    ron_log_set(hush, NULL, RON_LOG_ALERT);
    cuts = getenv("RON_CUTS") ? (uint32_t) strtoul(getenv("RON_CUTS"), NULL,
                                                          10) : 100;

    crash_init(&c, true);
    crash_init(&after, true);

    record(&c);
    ok(ack_n == STEPS && c.wrong[0] == '\0', "%u changes of files recorded",
       (unsigned) vfs_trace_len());

    test_cuts(&after, VFS_DROP, "only what was synced is there", cuts);
    test_cuts(&after, VFS_KEEP, "all of it is there", cuts / 2);
    test_cuts(&after, VFS_PREFIX, "some of the rest, in order and torn", cuts);
    test_cuts(&after, VFS_RANDOM, "some of the rest, in no order and torn",
              2 * cuts);
    test_beginning(&after);
    test_control(&after);
    test_lost_syncs(&c, &after);
    test_names(&c, &after);

    diag("%llu cuts; of the steps in flight %llu were there, %llu not",
         (unsigned long long) cut_n, (unsigned long long) rows_kept,
         (unsigned long long) rows_lost);

    vfs_reset();
    crash_free(&c);
    crash_free(&after);

    return done_testing();
}
