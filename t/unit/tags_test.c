
/*
 * The tag store against a naive model, killed at any moment, with flipped
 * bits, lost files and a full disk; at table sizes so small that a few
 * thousand tags make hundreds of segments and merges.
 *
 * TAGS_TEST_SEED sets the seed of the random runs; TAGS_TEST_ROUNDS how many.
 */

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ron_digest.h"
#include "ron_log.h"
#include "ron_port.h"
#include "ron_tag_merge.h"
#include "ron_tags.h"
#include "ron_tags_int.h"
#include "ron_seed.h"
#include "ron_test.h"


#define LEDGER_ID    0x1122334455667788
#define MODEL_IDS    12000
#define MODEL_STEPS  10000


/* What a model knows of an id: when it was last put, and whether it is. */
typedef struct {
    uint64_t  seq;
    bool      maybe;            /* may have expired */
} known_t;


typedef struct {
    uint64_t  seq;
    uint64_t  before;           /* what it was put at until then */
    unsigned  id;
} entry_t;


typedef struct {
    ron_tags_t       *tags;
    ron_tags_conf_t   conf;
    known_t           known[MODEL_IDS];
    entry_t          *journal;      /* every put, in order */
    size_t            journal_n;
    uint64_t          seq;
    uint64_t          committed;
    uint64_t          ms;
    unsigned          ids;
    bool              expires;
    bool              skewed;
    unsigned          bad;
    uint64_t          merges;
    uint64_t          merged;       /* segments that merges took away */
} model_t;


static char        base[64];
static uint64_t    rng = 1;
static unsigned    log_lines;


static void
sink(void *ctx, ron_log_level_t level, const char *line)
{
    (void) ctx;
    (void) level;
    (void) line;

    log_lines++;
}


static uint64_t
rnd(void)
{
    return ron_seed_next(&rng);
}


static void
tag_of(ron_tag_t *tag, uint64_t a, uint64_t b)
{
    uint8_t     in[16];
    ron_hash_t  hash;

    memcpy(in, &a, 8);
    memcpy(in + 8, &b, 8);
    ron_blake3(in, sizeof(in), &hash);
    memcpy(tag->b, hash.b, RON_TAG_LEN);
}


/* Tags that differ late, and some at both ends of the table. */

static void
tag_skewed(ron_tag_t *tag, uint64_t id)
{
    tag_of(tag, id, 7);

    switch (id % 4) {
    case 0:
        memset(tag->b, 0xff, 8);
        break;
    case 1:
        memset(tag->b, 0, 8);
        break;
    case 2:
        memset(tag->b, 0x55, 12);
        break;
    default:
        break;
    }
}


static void
path_of(char *path, size_t len, const char *dir, const char *name)
{
    snprintf(path, len, "%s/%s", dir, name);
}


static ron_status_t
remove_one(void *ctx, const char *name)
{
    char  path[512];

    path_of(path, sizeof(path), ctx, name);

    return ron_file_unlink(path);
}


static void
wipe(char *dir)
{
    (void) ron_dir_each(dir, remove_one, dir);
    (void) rmdir(dir);
}


static void
fresh_dir(char *dir, size_t len, const char *name)
{
    path_of(dir, len, base, name);
    wipe(dir);

    if (ron_dir_make(dir) != RON_OK) {
        printf("Bail out! cannot make %s\n", dir);
        exit(1);
    }
}


static ron_tags_conf_t
conf_of(const char *dir, size_t ram_bytes, uint32_t fanout)
{
    ron_tags_conf_t  conf;

    memset(&conf, 0, sizeof(conf));

    conf.dir = dir;
    conf.name = "tag";
    conf.ledger_id = LEDGER_ID;
    conf.ram_bytes = ram_bytes;
    conf.fanout = fanout;

    return conf;
}


/* ---- tables ------------------------------------------------------------- */

static bool
table_sound(const ron_tag_table_t *t)
{
    size_t                 i, used;
    const ron_tag_slot_t  *s, *last, *home;

    used = 0;
    last = NULL;

    for (i = 0; i < t->slot_n; i++) {

        s = &t->slot[i];

        if (s->seq == 0) {
            if (s->hi != 0 || s->lo != 0) {
                return false;
            }
            continue;
        }

        used++;

        if (last && (last->hi > s->hi
                     || (last->hi == s->hi && last->lo >= s->lo)))
        {
            return false;
        }

        for (home = ron_tag_table_home(t, s->hi); home < s; home++) {
            if (home->seq == 0) {
                return false;
            }
        }

        if (home != s) {
            return false;
        }

        last = s;
    }

    return used == t->used && t->slot[t->slot_n - 1].seq == 0;
}


static void
test_table(bool skewed)
{
    bool             sound, same;
    unsigned         i, id;
    uint64_t         want[512];
    ron_tag_t        tag;
    ron_tag_key_t    key;
    ron_tag_table_t  t;

    memset(want, 0, sizeof(want));
    sound = true;
    same = true;

    (void) ron_tag_table_create(&t, 4096);

    for (i = 0; i < 20000; i++) {

        id = (unsigned) (rnd() % ron_array_n(want));

        if (skewed) {
            tag_skewed(&tag, id);

        } else {
            tag_of(&tag, id, 0);
        }

        key = ron_tag_key(&tag);

        same = same && ron_tag_table_find(&t, key) == want[id];

        if (rnd() % 2) {
            same = same && ron_tag_table_remove(&t, key) == (want[id] != 0);
            want[id] = 0;

        } else if (want[id] == 0) {

            if (t.used >= t.limit && rnd() % 8 == 0) {
                (void) ron_tag_table_grow(&t);
            }

            want[id] = rnd() | 1;
            same = same && ron_tag_table_insert(&t, key, want[id]) == RON_OK;
        }

        if (i % 16 == 0) {
            sound = sound && table_sound(&t);
        }
    }

    ok(same, "table%s answers like an array", skewed ? ", skewed tags," : "");
    ok(sound, "table%s keeps its order and has no holes",
       skewed ? ", skewed tags," : "");

    ron_tag_table_free(&t);
}


/* ---- the model ---------------------------------------------------------- */

static void
model_bad(model_t *m, const char *what, unsigned id, uint64_t got,
    ron_status_t status)
{
    if (m->bad++ < 5) {
        diag("%s: id %u got %" PRIu64 " (%s), want %" PRIu64 "%s; seq %" PRIu64
             " committed %" PRIu64 " covered %" PRIu64, what, id, got,
             ron_status_name(status), m->known[id].seq,
             m->known[id].maybe ? " or nothing" : "", m->seq, m->committed,
             ron_tags_covered(m->tags));
    }
}


static void
model_tag(const model_t *m, ron_tag_t *tag, unsigned id)
{
    if (m->skewed) {
        tag_skewed(tag, id);

    } else {
        tag_of(tag, id, 0);
    }
}


static void
model_get(model_t *m, unsigned id)
{
    uint64_t      seq;
    known_t      *k;
    ron_tag_t     tag;
    ron_status_t  status;

    k = &m->known[id];
    model_tag(m, &tag, id);

    ron_tags_prefetch(m->tags, &tag);
    status = ron_tags_get(m->tags, &tag, &seq);

    if (k->seq != 0 && status == RON_OK && seq == k->seq) {
        return;
    }

    if ((k->seq == 0 || k->maybe) && status == RON_ENOTFOUND && seq == 0) {
        k->seq = 0;
        k->maybe = false;
        return;
    }

    model_bad(m, "get", id, seq, status);
}


static void
model_put(model_t *m, unsigned id, bool look)
{
    ron_tag_t     tag;
    ron_status_t  status;

    if (look) {
        model_get(m, id);
    }

    model_tag(m, &tag, id);

    status = ron_tags_put(m->tags, &tag, m->seq);

    if (status != RON_OK) {
        model_bad(m, "put", id, 0, status);
    }

    m->journal[m->journal_n].seq = m->seq;
    m->journal[m->journal_n].before = m->known[id].seq;
    m->journal[m->journal_n].id = id;
    m->journal_n++;

    m->known[id].seq = m->seq;
    m->known[id].maybe = false;
}


static void
model_entry(model_t *m)
{
    unsigned  n;

    m->seq++;

    for (n = (unsigned) (rnd() % 4); n > 0; n--) {
        model_put(m, (unsigned) (rnd() % m->ids), rnd() % 2);
    }
}


/* Forgets the entries above last; what was before may have expired since. */

static void
model_cut(model_t *m, uint64_t last)
{
    const entry_t  *e;

    while (m->journal_n > 0 && m->journal[m->journal_n - 1].seq > last) {

        e = &m->journal[--m->journal_n];

        if (m->known[e->id].seq == e->seq) {
            m->known[e->id].seq = e->before;
            m->known[e->id].maybe = e->before != 0 && m->expires;
        }
    }

    m->seq = last;
}


static void
model_commit(model_t *m)
{
    m->committed += rnd() % (m->seq - m->committed + 1);
    m->ms += rnd() % 100;

    ron_tags_commit(m->tags, m->committed, m->ms);
}


/* Recovery, as a ledger does it: the journal from the coverage on. */

static void
model_replay(model_t *m)
{
    size_t        i;
    uint64_t      covered;
    ron_tag_t     tag;
    ron_status_t  status;

    covered = ron_tags_covered(m->tags);

    for (i = 0; i < m->journal_n; i++) {

        if (m->journal[i].seq <= covered) {
            continue;
        }

        model_tag(m, &tag, m->journal[i].id);
        status = ron_tags_put(m->tags, &tag, m->journal[i].seq);

        if (status != RON_OK) {
            model_bad(m, "replay", m->journal[i].id, 0, status);
        }

        if (rnd() % 8 == 0 && i + 1 < m->journal_n
            && m->journal[i + 1].seq > m->journal[i].seq
            && m->journal[i].seq <= m->committed)
        {
            ron_tags_commit(m->tags, m->journal[i].seq, m->ms);
        }
    }

    ron_tags_commit(m->tags, m->committed, m->ms);
}


static void
model_close(model_t *m)
{
    ron_tags_stat_t  stat;

    ron_tags_stat(m->tags, &stat);
    m->merges += stat.merges;
    m->merged += stat.merges * (m->conf.fanout - 1);

    ron_tags_close(m->tags);
}


static void
model_reopen(model_t *m)
{
    uint64_t      covered;
    ron_status_t  status;

    covered = ron_tags_covered(m->tags);

    model_close(m);
    model_cut(m, m->committed);

    status = ron_tags_open(&m->conf, &m->tags);

    if (status != RON_OK) {
        printf("Bail out! reopening: %s\n", ron_status_name(status));
        exit(1);
    }

    if (ron_tags_covered(m->tags) < covered
        || ron_tags_covered(m->tags) > m->committed)
    {
        model_bad(m, "covered after reopening", 0, 0, RON_OK);
    }

    model_replay(m);
}


static void
model_expire(model_t *m)
{
    unsigned  id;
    uint64_t  before;

    before = m->ms > 2000 ? m->ms - 2000 : 0;

    (void) ron_tags_expire(m->tags, before);

    /* the model has no clock: whatever is committed may be gone */

    for (id = 0; id < MODEL_IDS; id++) {
        m->known[id].maybe = m->known[id].seq != 0
                             && m->known[id].seq <= m->committed;
    }
}


static void
model_all(model_t *m)
{
    unsigned  id;

    for (id = 0; id < m->ids; id++) {
        model_get(m, id);
    }
}


static void
model_step(model_t *m)
{
    unsigned      what;
    ron_status_t  status;

    what = (unsigned) (rnd() % 1000);

    if (what < 600) {
        model_entry(m);

    } else if (what < 700) {
        model_get(m, (unsigned) (rnd() % m->ids));

    } else if (what < 900) {
        model_commit(m);

    } else if (what < 970) {
        model_cut(m, m->committed + rnd() % (m->seq - m->committed + 1));
        ron_tags_undo(m->tags, m->seq);

    } else if (what < 980) {
        status = ron_tags_flush(m->tags);

        if (status != RON_OK || ron_tags_covered(m->tags) != m->committed) {
            model_bad(m, "flush", 0, 0, status);
        }

    } else if (what < 985) {
        model_reopen(m);

    } else if (what < 988) {
        model_all(m);

    } else if (what < 990 && m->expires) {
        model_expire(m);

    } else if (what == 990) {
        status = ron_tags_check(m->tags);

        if (status != RON_OK) {
            model_bad(m, "check", 0, 0, status);
        }

    } else if (what == 991 && rnd() % 4 == 0 && !m->expires) {

        /* all tables and files gone, and built again from the journal */

        status = ron_tags_reset(m->tags);

        if (status != RON_OK || ron_tags_covered(m->tags) != 0) {
            model_bad(m, "reset", 0, 0, status);
        }

        model_replay(m);
    }
}


static void
test_model(unsigned round, uint64_t *segments, uint64_t *merges)
{
    char             dir[128];
    model_t          m;
    unsigned         i;
    ron_tags_stat_t  stat;

    memset(&m, 0, sizeof(m));

    fresh_dir(dir, sizeof(dir), "model");

    m.conf = conf_of(dir, round % 3 == 0 ? 1 : 2048 << (round % 3),
                     2 + round % 3);
    m.expires = round % 4 == 3;
    m.skewed = round % 5 == 4;
    m.ids = m.skewed ? MODEL_IDS / 8 : MODEL_IDS;
    m.journal = calloc((size_t) MODEL_STEPS * 4, sizeof(entry_t));

    if (m.journal == NULL || ron_tags_open(&m.conf, &m.tags) != RON_OK) {
        printf("Bail out! cannot open\n");
        exit(1);
    }

    for (i = 0; i < MODEL_STEPS && m.bad == 0; i++) {
        model_step(&m);
    }

    model_all(&m);

    (void) ron_tags_flush(m.tags);
    ron_tags_stat(m.tags, &stat);

    if (ron_tags_check(m.tags) != RON_OK) {
        model_bad(&m, "last check", 0, 0, RON_ECORRUPT);
    }

    model_close(&m);
    free(m.journal);

    *segments += stat.segments + m.merged;
    *merges += m.merges;

    ok(m.bad == 0, "model run %u%s%s", round, m.expires ? ", expiring" : "",
       m.skewed ? ", skewed tags" : "");
}


/* ---- a store of seqs 1..n, two tags each -------------------------------- */

static void
fill(ron_tags_t *tags, uint64_t from, uint64_t to)
{
    uint64_t   seq;
    ron_tag_t  tag;

    for (seq = from; seq <= to; seq++) {
        tag_of(&tag, seq, 0);
        (void) ron_tags_put(tags, &tag, seq);
        tag_of(&tag, seq, 1);
        (void) ron_tags_put(tags, &tag, seq);
    }
}


static uint64_t
missing(ron_tags_t *tags, uint64_t from, uint64_t to)
{
    uint64_t   seq, got, n;
    ron_tag_t  tag;

    n = 0;

    for (seq = from; seq <= to; seq++) {
        tag_of(&tag, seq, 0);
        n += ron_tags_get(tags, &tag, &got) != RON_OK || got != seq;
        tag_of(&tag, seq, 1);
        n += ron_tags_get(tags, &tag, &got) != RON_OK || got != seq;
    }

    return n;
}


static uint64_t
present(ron_tags_t *tags, uint64_t from, uint64_t to)
{
    uint64_t   seq, got, n;
    ron_tag_t  tag;

    n = 0;

    for (seq = from; seq <= to; seq++) {
        tag_of(&tag, seq, 0);
        n += ron_tags_get(tags, &tag, &got) != RON_ENOTFOUND;
        tag_of(&tag, seq, 1);
        n += ron_tags_get(tags, &tag, &got) != RON_ENOTFOUND;
    }

    return n;
}


/* ---- kill --------------------------------------------------------------- */

static void
kill_child(const ron_tags_conf_t *conf, volatile uint64_t *committed)
{
    uint64_t     seq;
    ron_tags_t  *tags;

    if (ron_tags_open(conf, &tags) != RON_OK) {
        _exit(2);
    }

    /* the journal holds everything up to *committed, whatever the store has */

    for (seq = ron_tags_covered(tags) + 1; /* void */ ; seq++) {

        fill(tags, seq, seq);

        if (seq % 7 == 0) {

            if (seq > *committed) {
                *committed = seq;
            }

            ron_tags_commit(tags, seq, seq * 10);
        }

        if (seq % 997 == 0) {
            (void) ron_tags_flush(tags);
        }
    }
}


static void
test_kill(void)
{
    char              dir[128];
    pid_t             pid;
    unsigned          i, n, kills, wrong;
    uint64_t          seq, covered, last, lost, most;
    ron_tags_t       *tags;
    ron_tags_conf_t   conf;
    volatile uint64_t  *committed;

    committed = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    kills = 0;
    wrong = 0;
    lost = 0;
    last = 0;
    most = 0;

    for (i = 0; i < 120; i++) {

        if (i % 20 == 0) {
            fresh_dir(dir, sizeof(dir), "kill");
            *committed = 0;
            last = 0;
        }

        conf = conf_of(dir, 8192 << (i % 20 / 7), 3);

        fflush(stdout);
        pid = fork();

        if (pid == 0) {
            kill_child(&conf, committed);
        }

        ron_sleep_us(1000 + rnd() % 15000);
        (void) kill(pid, SIGKILL);
        kills += waitpid(pid, NULL, 0) == pid;

        if (ron_tags_open(&conf, &tags) != RON_OK) {
            wrong++;
            continue;
        }

        covered = ron_tags_covered(tags);

        wrong += covered > *committed || covered < last;
        lost += missing(tags, covered > 1000 ? covered - 1000 : 1, covered);

        for (n = 0; n < 500 && covered != 0; n++) {
            seq = 1 + rnd() % covered;
            lost += missing(tags, seq, seq);
        }

        lost += present(tags, *committed + 1000000, *committed + 1000010);
        wrong += ron_tags_check(tags) != RON_OK;

        last = covered;
        most = ron_max(most, covered);

        ron_tags_close(tags);
    }

    is_u64(kills, 120, "killed 120 writers");
    is_u64(wrong, 0, "each left a sound store, of no less than before");
    is_u64(lost, 0, "and no covered tag was lost");
    ok(most > 500, "covered up to %" PRIu64, most);

    (void) munmap((void *) (uintptr_t) committed, 4096);
}


/* ---- damage ------------------------------------------------------------- */

static char     seg_name[16][64];
static unsigned seg_n;


static ron_status_t
list_one(void *ctx, const char *name)
{
    (void) ctx;

    if (strstr(name, ".seg") && seg_n < ron_array_n(seg_name)) {
        snprintf(seg_name[seg_n++], sizeof(seg_name[0]), "%.63s", name);
    }

    return RON_OK;
}


static int
name_cmp(const void *a, const void *b)
{
    return strcmp(a, b);
}


/* Segments sorted by number: without merges that is their age. */

static void
list_segments(const char *dir)
{
    seg_n = 0;
    (void) ron_dir_each(dir, list_one, NULL);
    qsort(seg_name, seg_n, sizeof(seg_name[0]), name_cmp);
}


static void
flip(const char *path, uint64_t off, unsigned bit)
{
    uint8_t   c;
    ron_fd_t  fd;

    if (ron_file_open(path, RON_OPEN_WRITE, &fd) != RON_OK
        || ron_file_pread(fd, &c, 1, off) != RON_OK)
    {
        printf("Bail out! cannot damage %s\n", path);
        exit(1);
    }

    c ^= (uint8_t) (1 << bit);
    (void) ron_file_pwrite(fd, &c, 1, off);
    ron_file_close(fd);
}


static uint64_t
size_of(const char *path)
{
    struct stat  st;

    return stat(path, &st) == 0 ? (uint64_t) st.st_size : 0;
}


/* The coverage that a follower sees, and what a check says. */

static uint64_t
look(const char *dir, ron_status_t *check)
{
    uint64_t         covered;
    ron_tags_t      *tags;
    ron_status_t     status;
    ron_tags_conf_t  conf;

    conf = conf_of(dir, 4096, 8);
    conf.read_only = true;

    status = ron_tags_open(&conf, &tags);

    if (status != RON_OK) {
        *check = status;
        return UINT64_MAX;
    }

    covered = ron_tags_covered(tags);
    *check = ron_tags_check(tags);

    ron_tags_close(tags);

    return covered;
}


/* Three segments: (0, 400], (400, 800], (800, 1200]. */

static void
three(char *dir, size_t len, const char *name)
{
    unsigned         i;
    ron_tags_t      *tags;
    ron_tags_conf_t  conf;

    fresh_dir(dir, len, name);
    conf = conf_of(dir, 1 << 20, 8);

    (void) ron_tags_open(&conf, &tags);

    for (i = 0; i < 3; i++) {
        fill(tags, i * 400 + 1, i * 400 + 400);
        ron_tags_commit(tags, i * 400 + 400, (i + 1) * 1000);
        (void) ron_tags_flush(tags);
    }

    is_u64(ron_tags_covered(tags), 1200, "%s: three segments", name);
    ron_tags_close(tags);

    list_segments(dir);
}


static void
test_flips(void)
{
    char          dir[128], path[256];
    unsigned      bit, unseen, tried;
    uint64_t      off, size, blocks, covered;
    ron_status_t  check;

    three(dir, sizeof(dir), "flips");
    is_u64(seg_n, 3, "and three files");

    /* every bit of the manifest */

    path_of(path, sizeof(path), dir, "tag.manifest");
    size = size_of(path);
    unseen = 0;

    for (off = 0; off < size; off++) {
        for (bit = 0; bit < 8; bit++) {
            flip(path, off, bit);
            unseen += look(dir, &check) != 0;
            flip(path, off, bit);
        }
    }

    ok(size > 200 && unseen == 0, "each of %u flipped bits of the manifest "
       "is noticed", (unsigned) size * 8);

    /* the second segment: 800 tags in 5 blocks */

    path_of(path, sizeof(path), dir, seg_name[1]);
    size = size_of(path);
    blocks = (800 + RON_TAG_BLOCK_TAGS - 1) / RON_TAG_BLOCK_TAGS;

    for (off = 0, unseen = 0, tried = 0; off < 4096; off++) {
        for (bit = 0; bit < 8; bit++) {

            if (off > 200 && off < 4060 && rnd() % 16 != 0) {
                continue;
            }

            flip(path, off, bit);
            unseen += look(dir, &check) != 400 || check != RON_OK;
            flip(path, off, bit);
            tried++;
        }
    }

    is_u64(unseen, 0, "each of %u flipped bits of a header is noticed",
           tried);

    for (unseen = 0, tried = 0; off < 4096 * (1 + blocks); off++) {

        if (off % 4096 > 40 && rnd() % 8 != 0) {
            continue;
        }

        bit = (unsigned) (rnd() % 8);

        flip(path, off, bit);
        covered = look(dir, &check);
        unseen += covered != 1200 || check != RON_ECORRUPT;
        flip(path, off, bit);
        tried++;
    }

    is_u64(unseen, 0, "each of %u flipped bits of blocks is noticed", tried);

    for (unseen = 0, tried = 0; off < size; off++) {

        bit = (unsigned) (rnd() % 8);

        flip(path, off, bit);
        unseen += look(dir, &check) != 400 || check != RON_OK;
        flip(path, off, bit);
        tried++;
    }

    ok(unseen == 0 && tried > 1000, "each of %u flipped bits of filter and "
       "fences is noticed", tried);

    is_u64(look(dir, &check), 1200, "with all bits as they were all is well");
    is_status(check, RON_OK, "and checks");
}


/* What look-ups say of a block that went bad, or stands at a wrong place. */

static void
test_bad_block(void)
{
    char             dir[128], path[256];
    uint8_t          a[4096], b[4096];
    uint64_t         seq, got, bad, good, wrong;
    ron_fd_t         fd;
    ron_tag_t        tag;
    ron_tags_t      *tags;
    ron_status_t     status;
    ron_tags_conf_t  conf;

    three(dir, sizeof(dir), "bad");
    path_of(path, sizeof(path), dir, seg_name[1]);

    /* two good blocks change places */

    (void) ron_file_open(path, RON_OPEN_WRITE, &fd);
    (void) ron_file_pread(fd, a, 4096, 4096);
    (void) ron_file_pread(fd, b, 4096, 8192);
    (void) ron_file_pwrite(fd, a, 4096, 8192);
    (void) ron_file_pwrite(fd, b, 4096, 4096);
    ron_file_close(fd);

    conf = conf_of(dir, 1 << 20, 8);
    (void) ron_tags_open(&conf, &tags);

    is_u64(ron_tags_covered(tags), 1200, "a bad block shows at look-up only");

    bad = 0;
    good = 0;
    wrong = 0;

    for (seq = 1; seq <= 1200; seq++) {
        tag_of(&tag, seq, 0);
        status = ron_tags_get(tags, &tag, &got);

        if (status == RON_OK && got == seq) {
            good++;

        } else if (status == RON_ECORRUPT && got == 0
                   && seq > 400 && seq <= 800)
        {
            bad++;

        } else {
            wrong++;
        }
    }

    ok(bad > 100 && bad < 250 && wrong == 0,
       "%u of 1200 look-ups say corrupt, the others are right",
       (unsigned) bad);

    is_status(ron_tags_reset(tags), RON_OK, "reset");
    is_u64(ron_tags_covered(tags), 0, "nothing is covered then");
    is_u64(present(tags, 1, 1300), 0, "nothing is there");

    fill(tags, 1, 1300);
    ron_tags_commit(tags, 1300, 5000);

    is_status(ron_tags_flush(tags), RON_OK, "after the rebuild");
    is_u64(ron_tags_covered(tags), 1300, "all is covered");
    is_u64(missing(tags, 1, 1300), 0, "all is there");

    ron_tags_close(tags);
}


/* Damage that a writer finds at open: coverage falls, a replay heals. */

static void
heal(const char *dir, uint64_t want, const char *what)
{
    ron_tags_t      *tags;
    ron_tags_conf_t  conf;
    ron_tags_stat_t  stat;

    conf = conf_of(dir, 1 << 20, 8);

    if (!is_status(ron_tags_open(&conf, &tags), RON_OK, "%s: opens", what)) {
        return;
    }

    is_u64(ron_tags_covered(tags), want, "%s: coverage falls to the gap",
           what);
    is_u64(missing(tags, 1, want), 0, "%s: what is covered is there", what);

    fill(tags, want + 1, 1250);
    ron_tags_commit(tags, 1250, 9000);
    is_u64(missing(tags, 1, 1250), 0, "%s: put again, all is there", what);

    is_status(ron_tags_flush(tags), RON_OK, "%s: flush", what);
    ron_tags_stat(tags, &stat);
    is_u64(stat.disk_tags, 2500, "%s: no tag is on disk twice", what);
    ron_tags_close(tags);

    (void) ron_tags_open(&conf, &tags);
    is_u64(ron_tags_covered(tags), 1250, "%s: and covered from then on", what);
    is_u64(missing(tags, 1, 1250), 0, "%s: all there", what);
    is_status(ron_tags_check(tags), RON_OK, "%s: sound", what);
    ron_tags_close(tags);

    list_segments(dir);
    is_u64(seg_n, stat.segments, "%s: no file is left over", what);
}


static void
test_heal(void)
{
    char             dir[128], path[256];
    ron_fd_t         fd;
    ron_tags_t      *tags;
    ron_status_t     status;
    struct rlimit    limit, old;
    ron_tags_conf_t  conf;

    three(dir, sizeof(dir), "heal");
    path_of(path, sizeof(path), dir, seg_name[1]);
    (void) ron_file_unlink(path);
    heal(dir, 400, "a lost segment");

    three(dir, sizeof(dir), "heal");
    path_of(path, sizeof(path), dir, seg_name[2]);
    (void) ron_file_open(path, RON_OPEN_WRITE, &fd);
    (void) ron_file_truncate(fd, size_of(path) - 1);
    ron_file_close(fd);
    heal(dir, 800, "a short segment");

    three(dir, sizeof(dir), "heal");
    path_of(path, sizeof(path), dir, seg_name[0]);
    flip(path, 40, 3);
    heal(dir, 0, "a bad first header");

    three(dir, sizeof(dir), "heal");
    path_of(path, sizeof(path), dir, "tag.manifest");
    (void) ron_file_unlink(path);
    heal(dir, 0, "a lost manifest");

    three(dir, sizeof(dir), "heal");
    path_of(path, sizeof(path), dir, "tag.manifest");
    flip(path, 50, 0);
    heal(dir, 0, "a bad manifest");

    /* no descriptor left is no reason to give a segment up */

    three(dir, sizeof(dir), "heal");
    conf = conf_of(dir, 1 << 20, 8);
    (void) ron_file_open("/dev/null", RON_OPEN_READ, &fd);
    (void) getrlimit(RLIMIT_NOFILE, &old);
    limit = old;
    limit.rlim_cur = (rlim_t) fd + 2;
    (void) setrlimit(RLIMIT_NOFILE, &limit);
    status = ron_tags_open(&conf, &tags);
    (void) setrlimit(RLIMIT_NOFILE, &old);
    ron_file_close(fd);
    is_status(status, RON_EIO, "without descriptors it does not open");
    heal(dir, 1200, "without descriptors");

    three(dir, sizeof(dir), "heal");
    conf = conf_of(dir, 1 << 20, 8);
    conf.ledger_id++;
    is_status(ron_tags_open(&conf, &tags), RON_EINVAL,
              "another ledger's tags are refused");
    ok(tags == NULL, "and nothing is opened");
    heal(dir, 1200, "what was refused");
}


/* ---- a disk that is full ------------------------------------------------ */

static void
test_full(void)
{
    char             dir[128];
    uint64_t         seq, eio, other, waits, kept;
    ron_tag_t        tag;
    ron_tags_t      *tags;
    ron_status_t     status;
    struct rlimit    limit, old;
    ron_tags_conf_t  conf;
    ron_tags_stat_t  stat, full;

    fresh_dir(dir, sizeof(dir), "full");
    conf = conf_of(dir, 65536, 4);

    (void) ron_tags_open(&conf, &tags);
    ron_tags_stat(tags, &stat);
    kept = stat.ram_bytes;

    fill(tags, 1, 300);
    ron_tags_commit(tags, 300, 1);
    (void) ron_tags_flush(tags);

    /* what is too large for a file looks like what is too large for a disk */

    (void) signal(SIGXFSZ, SIG_IGN);
    (void) getrlimit(RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 4096 * 2;
    (void) setrlimit(RLIMIT_FSIZE, &limit);

    eio = 0;
    other = 0;
    log_lines = 0;

    for (seq = 301; seq <= 5000; seq++) {
        tag_of(&tag, seq, 0);
        status = ron_tags_put(tags, &tag, seq);
        tag_of(&tag, seq, 1);
        eio += status == RON_EIO;
        other += status != RON_EIO && status != RON_OK;
        (void) ron_tags_put(tags, &tag, seq);
        ron_tags_commit(tags, seq, seq);
    }

    status = ron_tags_flush(tags);
    ron_tags_stat(tags, &full);
    waits = missing(tags, 1, 5000);

    (void) setrlimit(RLIMIT_FSIZE, &old);

    is_u64(waits, 0, "on a full disk no tag is lost");
    is_u64(ron_tags_covered(tags), 300, "coverage stays");
    ok(eio > 1000 && other == 0, "%u puts said that they are over the bound",
       (unsigned) eio);
    is_status(status, RON_EFULL, "flush says why");
    ok(full.failing && full.write_failures > 0, "so does the statistics");
    ok(full.ram_bytes > kept, "RAM grew to %u bytes instead",
       (unsigned) full.ram_bytes);
    is_u64(log_lines, 1, "and the log has one line of it");

    is_status(ron_tags_flush(tags), RON_OK, "with room again");
    is_u64(ron_tags_covered(tags), 5000, "all is covered");
    is_u64(missing(tags, 1, 5000), 0, "all is there");

    fill(tags, 5001, 5100);
    ron_tags_commit(tags, 5100, 5100);
    (void) ron_tags_flush(tags);
    ron_tags_stat(tags, &full);
    is_u64(full.ram_bytes, kept, "RAM is what it was");
    ok(!full.failing, "nothing is failing");
    is_status(ron_tags_check(tags), RON_OK, "all is sound");

    ron_tags_close(tags);
}


/* ---- the rest ----------------------------------------------------------- */

static void
test_filter(void)
{
    char             dir[128];
    uint64_t         i, seq, found;
    ron_tag_t        tag;
    ron_tags_t      *tags;
    ron_tags_conf_t  conf;
    ron_tags_stat_t  stat;

    fresh_dir(dir, sizeof(dir), "filter");
    conf = conf_of(dir, 16 << 20, 8);
    (void) ron_tags_open(&conf, &tags);

    fill(tags, 1, 100000);
    ron_tags_commit(tags, 100000, 1);
    (void) ron_tags_flush(tags);

    found = 0;

    for (i = 0; i < 300000; i++) {
        tag_of(&tag, i, 99);
        found += ron_tags_get(tags, &tag, &seq) != RON_ENOTFOUND;
    }

    ron_tags_stat(tags, &stat);

    is_u64(stat.segments, 1, "200 000 tags in one segment");
    is_u64(found, 0, "of 300 000 others none is found");
    ok(stat.filter_hits < 300000 / 200 && stat.filter_hits > 30,
       "%u false positives are no more than 0.5 %%",
       (unsigned) stat.filter_hits);
    ok(stat.filter_bytes <= stat.disk_tags * 2,
       "%u bytes of filter are no more than 2 a tag",
       (unsigned) stat.filter_bytes);
    is_u64(missing(tags, 1, 100000), 0, "none is missing");

    ron_tags_close(tags);
}


static void
test_watermark(void)
{
    char             dir[128];
    uint64_t         seq;
    ron_tag_t        tag;
    ron_tags_t      *tags;
    ron_tags_conf_t  conf;
    ron_tags_stat_t  stat;

    fresh_dir(dir, sizeof(dir), "mark");
    conf = conf_of(dir, 65536, 4);
    (void) ron_tags_open(&conf, &tags);

    tag_of(&tag, 1, 0);
    is_status(ron_tags_put(tags, &tag, 0), RON_EINVAL, "there is no seq 0");

    fill(tags, 1, 10);
    ron_tags_commit(tags, 6, 100);
    is_status(ron_tags_flush(tags), RON_OK, "flush in the middle");
    is_u64(ron_tags_covered(tags), 6, "covers what is committed");

    ron_tags_undo(tags, 8);
    is_u64(missing(tags, 1, 8), 0, "undo after it leaves what is below");
    is_u64(present(tags, 9, 10), 0, "and takes what is above");

    ron_tags_commit(tags, 50, 200);
    (void) ron_tags_flush(tags);
    is_u64(ron_tags_covered(tags), 50, "seqs without tags are covered too");

    ron_tags_commit(tags, 90, 300);
    (void) ron_tags_flush(tags);
    ron_tags_close(tags);

    (void) ron_tags_open(&conf, &tags);
    is_u64(ron_tags_covered(tags), 90, "even by a segment of no tag");

    /* the first two segments are of 100 and 200 ms */

    (void) ron_tags_expire(tags, 201);
    (void) ron_tags_flush(tags);
    ron_tags_stat(tags, &stat);
    is_u64(stat.segments, 1, "what expired goes");
    is_u64(present(tags, 1, 10), 0, "with its tags");
    is_u64(ron_tags_covered(tags), 90, "coverage stays");

    (void) ron_tags_expire(tags, 301);
    (void) ron_tags_flush(tags);
    ron_tags_close(tags);

    (void) ron_tags_open(&conf, &tags);
    ron_tags_stat(tags, &stat);
    is_u64(stat.segments, 0, "all expired");
    is_u64(ron_tags_covered(tags), 90, "coverage stays, after reopening too");

    fill(tags, 91, 95);
    ron_tags_commit(tags, 95, 400);
    (void) ron_tags_flush(tags);
    is_u64(missing(tags, 91, 95), 0, "and it goes on from there");
    is_u64(ron_tags_covered(tags), 95, "with coverage");

    (void) ron_tags_get(tags, &tag, &seq);
    is_u64(seq, 0, "what is not found has no seq");

    ron_tags_close(tags);
}


/*
 * Where tags expire, what is one segment must not span more than they live.
 * The first of a store begins at no time at all, so it stays alone; those after
 * it must not wait for it.
 */

static void
test_merge_spans(void)
{
    char             dir[128];
    unsigned         i;
    ron_tags_t      *tags;
    ron_tags_conf_t  conf;
    ron_tags_stat_t  stat;

    fresh_dir(dir, sizeof(dir), "spans");
    conf = conf_of(dir, 65536, 4);
    RON_ASSERT(ron_tags_open(&conf, &tags) == RON_OK);

    for (i = 1; i <= 17; i++) {
        fill(tags, i * 10, i * 10 + 9);
        ron_tags_commit(tags, i * 10 + 9, 1000000 + i);
        (void) ron_tags_expire(tags, 900000 + i);
        RON_ASSERT(ron_tags_flush(tags) == RON_OK);
    }

    for (i = 0; i < 500; i++) {
        ron_tags_stat(tags, &stat);

        if (stat.merges == 5) {
            break;
        }

        ron_sleep_us(10000);
    }

    is_u64(stat.merges, 5, "16 segments beside the first: four merges and one");
    ron_tags_commit(tags, 179, 1000017);
    ron_tags_stat(tags, &stat);
    is_u64(stat.segments, 2, "the first is left and what they became");
    is_u64(missing(tags, 10, 179), 0, "with all tags");
    ron_tags_close(tags);
}


static void
test_memory(void)
{
    ron_tags_t      *tags;
    ron_tags_conf_t  conf;
    ron_tags_stat_t  stat;

    conf = conf_of(NULL, 4096, 0);
    is_status(ron_tags_open(&conf, &tags), RON_OK, "RAM only");

    fill(tags, 1, 20000);
    ron_tags_commit(tags, 15000, 1);
    is_u64(missing(tags, 1, 20000), 0, "it grows");
    ron_tags_undo(tags, 15000);
    is_u64(missing(tags, 1, 15000), 0, "undo keeps");
    is_u64(present(tags, 15001, 20000), 0, "undo takes");
    is_status(ron_tags_flush(tags), RON_OK, "flush has nothing to do");
    is_u64(ron_tags_covered(tags), 0, "nothing is covered");

    ron_tags_stat(tags, &stat);
    is_u64(stat.ram_tags, 30000, "all are in RAM");

    is_status(ron_tags_reset(tags), RON_OK, "reset");
    is_u64(present(tags, 1, 20000), 0, "takes all");
    ron_tags_close(tags);
}


static void
test_follower(void)
{
    char             dir[128];
    unsigned         i;
    uint64_t         lost, most;
    ron_tags_t      *writer, *follower;
    ron_tags_conf_t  conf, fconf;
    ron_tags_stat_t  stat;

    fresh_dir(dir, sizeof(dir), "follow");
    conf = conf_of(dir, 65536, 3);
    fconf = conf;
    fconf.read_only = true;

    is_status(ron_tags_open(&fconf, &follower), RON_OK,
              "a follower may be there first");
    (void) ron_tags_open(&conf, &writer);

    most = 0;
    lost = 0;

    for (i = 0; i < 60; i++) {
        fill(writer, i * 200 + 1, i * 200 + 200);
        ron_tags_commit(writer, i * 200 + 200, i);
        (void) ron_tags_flush(writer);

        fill(follower, i * 200 + 1, i * 200 + 200);
        ron_tags_commit(follower, i * 200 + 200, i);

        lost += missing(follower, i * 100 + 1, i * 200 + 200);
        ron_tags_stat(follower, &stat);
        most = ron_max(most, stat.ram_tags);
    }

    is_u64(lost, 0, "it knows all that its writer knows");
    ok(most < 3000, "with %u tags in RAM at most", (unsigned) most);

    fill(writer, 12001, 12010);
    fill(follower, 12001, 12010);
    ron_tags_commit(writer, 12010, 70);
    ron_tags_close(writer);

    is_status(ron_tags_promote(follower), RON_OK, "promoted");
    is_u64(missing(follower, 1, 12010), 0, "it has them all");
    ron_tags_undo(follower, 12005);
    is_u64(present(follower, 12006, 12010), 0, "undo works");
    fill(follower, 12006, 12500);
    ron_tags_commit(follower, 12500, 80);
    is_status(ron_tags_flush(follower), RON_OK, "and it writes");
    is_u64(ron_tags_covered(follower), 12500, "all is covered");
    is_u64(missing(follower, 1, 12500), 0, "all is there");
    ron_tags_close(follower);

    (void) ron_tags_open(&conf, &writer);
    is_u64(missing(writer, 1, 12500), 0, "the next writer finds it all");
    is_status(ron_tags_check(writer), RON_OK, "sound");
    ron_tags_close(writer);
}


/*
 * A store that sees few tags: coverage follows all the same, or a start would
 * read a long journal for nothing.
 */

static void
test_quiet(void)
{
    char             dir[128];
    uint64_t         seq, end, step;
    unsigned         i;
    ron_tags_t      *tags;
    ron_tags_conf_t  conf;
    ron_tags_stat_t  stat;

    fresh_dir(dir, sizeof(dir), "quiet");
    conf = conf_of(dir, 65536, 3);
    (void) ron_tags_open(&conf, &tags);

    step = 1000;
    end = 1000 * 1000;

    for (seq = step; seq <= end; seq += step) {
        if (seq % (100 * step) == 0) {
            fill(tags, seq, seq);
        }

        ron_tags_commit(tags, seq, seq);
    }

    seq -= step;

    for (i = 0; i < 1000; i++) {
        ron_tags_commit(tags, seq, seq);

        if (ron_tags_covered(tags) + 200000 > seq) {
            break;
        }

        ron_sleep_us(10000);
    }

    ok(ron_tags_covered(tags) + 200000 > seq,
       "seq %u of %u are covered, by a table that never filled",
       (unsigned) ron_tags_covered(tags), (unsigned) seq);

    ron_tags_stat(tags, &stat);
    ok(stat.segments > 0 && stat.segments <= 5, "in %u segments",
       (unsigned) stat.segments);

    ron_tags_close(tags);
    (void) ron_tags_open(&conf, &tags);
    ok(ron_tags_covered(tags) + 200000 > seq,
       "and so for the next who opens it");

    /* every hundredth has some; those behind the coverage are the journal's */

    seq = ron_tags_covered(tags) / (100 * step) * (100 * step);
    is_u64(missing(tags, seq, seq), 0, "the tags are there");
    is_status(ron_tags_check(tags), RON_OK, "sound");
    ron_tags_close(tags);
}


/* Pages that are resident, and faults. */

static void
resident(long *kib, long *faults)
{
    long           all, pages;
    FILE          *f;
    struct rusage  usage;

    pages = 0;
    f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%ld %ld", &all, &pages) != 2) {
        printf("Bail out! no /proc/self/statm\n");
        exit(1);
    }

    fclose(f);
    (void) getrusage(RUSAGE_SELF, &usage);

    *kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
    *faults = usage.ru_minflt;
}


/*
 * Who takes over from one that was killed has opened the same files, and has
 * nothing to drop: its tables are not walked through for that.
 */

static void
test_follower_soon(void)
{
    char             dir[128];
    long             kib[2], faults[2];
    ron_tags_t      *tags;
    ron_tags_conf_t  conf;

    fresh_dir(dir, sizeof(dir), "soon");
    conf = conf_of(dir, 64 * 1024 * 1024, 3);
    (void) ron_tags_open(&conf, &tags);
    fill(tags, 1, 2000);
    ron_tags_commit(tags, 2000, 1);
    (void) ron_tags_flush(tags);
    ron_tags_close(tags);

    conf.read_only = true;
    (void) ron_tags_open(&conf, &tags);
    is_u64(ron_tags_covered(tags), 2000, "what a file holds is not read again");
    fill(tags, 2001, 2100);
    ron_tags_commit(tags, 2100, 2);

    resident(&kib[0], &faults[0]);
    is_status(ron_tags_promote(tags), RON_OK, "promoted");
    resident(&kib[1], &faults[1]);

    ok(kib[1] - kib[0] < 4096, "with %ld KiB more", kib[1] - kib[0]);
    ok(faults[1] - faults[0] < 1000, "and %ld page faults",
       faults[1] - faults[0]);
    is_u64(missing(tags, 1, 2100), 0, "all is there");
    ron_tags_close(tags);
}


/* A follower whose segments are gone when it takes over. */

static void
test_follower_loss(void)
{
    char             dir[128], path[256];
    ron_tags_t      *follower;
    ron_tags_conf_t  conf;

    three(dir, sizeof(dir), "floss");

    conf = conf_of(dir, 65536, 8);
    conf.read_only = true;
    (void) ron_tags_open(&conf, &follower);

    fill(follower, 1201, 1300);
    ron_tags_commit(follower, 1300, 4000);

    path_of(path, sizeof(path), dir, seg_name[1]);
    flip(path, 100, 1);

    is_status(ron_tags_promote(follower), RON_OK, "promoted over damage");
    is_u64(ron_tags_covered(follower), 400, "coverage falls");
    (void) ron_tags_flush(follower);
    is_u64(ron_tags_covered(follower), 400, "and stays until all is put again");

    fill(follower, 401, 1300);
    ron_tags_commit(follower, 1300, 4000);
    is_u64(missing(follower, 1, 1300), 0, "put again, all is there");
    is_status(ron_tags_flush(follower), RON_OK, "flush");
    ron_tags_close(follower);

    conf.read_only = false;
    (void) ron_tags_open(&conf, &follower);
    is_u64(ron_tags_covered(follower), 1300, "covered");
    is_u64(missing(follower, 1, 1300), 0, "all there");
    ron_tags_close(follower);
}


static ron_tag_segment_t *
segment_of(const ron_tag_place_t *place, uint64_t no, uint64_t from,
    uint64_t to, uint64_t seq_add)
{
    uint64_t            i;
    ron_tag_t           tag;
    ron_tag_key_t       key;
    ron_tag_info_t      info;
    ron_tag_build_t     b;
    ron_tag_segment_t  *seg;

    memset(&info, 0, sizeof(info));
    info.no = no;
    info.seq_hi = to + seq_add;

    (void) ron_tag_build_start(&b, place, &info, to - from, NULL, NULL);

    for (i = from; i < to; i++) {
        memset(&tag, 0, sizeof(tag));
        ron_tag_wr64(tag.b, i << 40);
        key = ron_tag_key(&tag);
        (void) ron_tag_build_add(&b, key, i + seq_add);
    }

    return ron_tag_build_end(&b, &seg) == RON_OK ? seg : NULL;
}


static void
test_merge_equal(void)
{
    char                dir[128];
    uint64_t            i, seq, wrong;
    ron_tag_t           tag;
    ron_tag_info_t      info;
    ron_tag_place_t     place;
    ron_tag_segment_t  *in[2], *out;

    fresh_dir(dir, sizeof(dir), "equal");
    place.dir = dir;
    place.name = "tag";
    place.ledger_id = 1;

    in[0] = segment_of(&place, 1, 1, 1000, 500);
    in[1] = segment_of(&place, 2, 700, 2000, 0);

    memset(&info, 0, sizeof(info));
    info.no = 3;
    info.seq_hi = 2000;

    is_status(ron_tag_merge(&place, in, 2, &info, NULL, NULL, &out), RON_OK,
              "merge of segments that have tags in common");
    is_u64(out->info.tag_n, 1999, "which stay once");

    for (i = 1, wrong = 0; i < 2000; i++) {
        memset(&tag, 0, sizeof(tag));
        ron_tag_wr64(tag.b, i << 40);
        wrong += ron_tag_segment_find(out, ron_tag_key(&tag), &seq) != RON_OK
                 || seq != (i < 1000 ? i + 500 : i);
    }

    is_u64(wrong, 0, "with the greater seq");
    is_status(ron_tag_segment_check(out), RON_OK, "sound");

    ron_tag_segment_free(in[0]);
    ron_tag_segment_free(in[1]);
    ron_tag_segment_free(out);
}


static void
make_base(void)
{
    (void) snprintf(base, sizeof(base), "/dev/shm/ron-tags-XXXXXX");

    if (mkdtemp(base) == NULL) {
        (void) snprintf(base, sizeof(base), "/tmp/ron-tags-XXXXXX");

        if (mkdtemp(base) == NULL) {
            printf("Bail out! no place for files\n");
            exit(1);
        }
    }
}


static ron_status_t
wipe_sub(void *ctx, const char *name)
{
    char  path[512];

    path_of(path, sizeof(path), ctx, name);
    wipe(path);

    return RON_OK;
}


/* Pages of a table that are in memory, in per cent. */

static unsigned
in_memory(const ron_tag_table_t *t)
{
    size_t          i, n, in;
    uintptr_t       from, to;
    unsigned char  *v;

    from = ((uintptr_t) t->slot + 4095) & ~(uintptr_t) 4095;
    to = (uintptr_t) (t->slot + t->slot_n) & ~(uintptr_t) 4095;
    n = (to - from) / 4096;
    v = malloc(n);
    in = 0;

    RON_ASSERT(v != NULL && mincore((void *) from, to - from, v) == 0);

    for (i = 0; i < n; i++) {
        in += v[i] & 1;
    }

    free(v);

    return (unsigned) (in * 100 / n);
}


/*
 * The first tags of a table touch all of its memory, and whoever puts them has
 * no time to get it.  A store that is not used has none at all.
 */

static void
test_warm(void)
{
    char             dir[128];
    unsigned         i, before;
    ron_tags_t      *tags;
    ron_tags_conf_t  conf;

    fresh_dir(dir, sizeof(dir), "warm");
    conf = conf_of(dir, 16 << 20, 8);
    conf.span = 2000;
    RON_ASSERT(ron_tags_open(&conf, &tags) == RON_OK);

    /* some allocators of tests touch what they give */

    before = in_memory(&tags->table[1]);

    fill(tags, 1, 10);
    ron_tags_commit(tags, 10, 10);
    ron_sleep_us(20000);
    is_u64(in_memory(&tags->table[1]), before, "a few tags, no spare table");

    fill(tags, 11, 1000);
    ron_tags_commit(tags, 1000, 1000);

    for (i = 0; i < 1000 && in_memory(&tags->table[1]) < 100; i++) {
        ron_sleep_us(10000);
    }

    is_u64(in_memory(&tags->table[1]), 100, "it is there before it is needed");

    fill(tags, 1001, 2000);
    ron_tags_commit(tags, 2000, 2000);
    RON_ASSERT(ron_tags_flush(tags) == RON_OK);
    ok(tags->active == &tags->table[1], "and then it is needed");
    is_u64(missing(tags, 1, 2000), 0, "nothing is missing");

    fill(tags, 2001, 3000);
    ron_tags_commit(tags, 3000, 3000);
    RON_ASSERT(ron_tags_flush(tags) == RON_OK);
    ok(tags->active == &tags->table[0], "and the first one again");
    is_u64(missing(tags, 1, 3000), 0, "nor there");

    ron_tags_close(tags);
}


int
main(void)
{
    unsigned     i, rounds;
    uint64_t     segments, merges;
    const char  *env;

    env = getenv("TAGS_TEST_SEED");
    rng = env ? strtoull(env, NULL, 10) : 20240601;
    env = getenv("TAGS_TEST_ROUNDS");
    rounds = env ? (unsigned) strtoul(env, NULL, 10) : 16;

    ron_log_set(sink, NULL, RON_LOG_DEBUG);
    make_base();

    test_table(false);
    test_table(true);

    segments = 0;
    merges = 0;

    for (i = 0; i < rounds; i++) {
        test_model(i, &segments, &merges);
    }

    ok(segments > rounds * 50 && merges > rounds * 20,
       "in all %u segments and %u merges", (unsigned) segments,
       (unsigned) merges);

    test_kill();
    test_flips();
    test_bad_block();
    test_heal();
    test_full();
    test_filter();
    test_watermark();
    test_merge_spans();
    test_memory();
    test_follower();
    test_follower_soon();
    test_follower_loss();
    test_quiet();
    test_merge_equal();
    test_warm();

    (void) ron_dir_each(base, wipe_sub, base);
    (void) rmdir(base);

    return done_testing();
}
