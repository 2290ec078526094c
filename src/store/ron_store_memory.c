
/*
 * The memory store: a journal in a region of shared memory, for ledgers that
 * must leave no trace.  No file is ever created or opened here.
 *
 *     0        header: what the ledger is, epoch, number of rows
 *     1, 2     pages of the head: one is current, the other is written next
 *     3, 4     pages of the safe-mode mark, likewise
 *     5 ...    records, one a commit, upwards: columns, tiles, body, notes
 *     ... end  slots, one a commit, downwards: seq and place of the record
 *
 * Nothing in the region points into it or out of it but offsets, so every
 * process may have it at another address.
 *
 * A writer can be killed between any two instructions.  It builds record and
 * slot in space that nobody looks at, and then one store to `rows`, with
 * release order, makes the commit exist; a successor that finds half a record
 * beyond the last row overwrites it.  The head and the mark work the same way
 * with the number of their current page.  So there is no lock for readers,
 * nothing to repair, and views stay good for as long as the region does.
 *
 * A tile is looked for in the commit that made it complete, which its place
 * in the tree tells; so tiles need no index.
 *
 * The writer's lock is the abstract UNIX socket name "ron-ledger-<nonce>":
 * the kernel gives a name to one process only and takes it back on any death.
 * The nonce is drawn when the region is made, hence two ledgers never share a
 * name, and a region that was lost takes its name along.
 *
 * Slices of checkpoints are not kept: recovery replays the region, which
 * takes no longer than to read them would, and ron_reader_gen() says so.
 */

#include "ron_store_impl.h"
#include "ron_port.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>


#define RON_MEMORY_MAGIC     UINT64_C(0x726f6e6d656d3031)       /* ronmem01 */

#define RON_MEMORY_HEAD_PAGE    1
#define RON_MEMORY_MARK_PAGE    3
#define RON_MEMORY_DATA         (5 * (uint64_t) RON_STORE_PAGE)
#define RON_MEMORY_SIZE_MIN     (64 * (uint64_t) 1024)

/* How long ron_store_open() waits for somebody who makes the ledger. */
#define RON_MEMORY_CREATE_US    1000000
#define RON_MEMORY_CREATE_NAP   1000


typedef struct {
    _Atomic uint64_t   nonce;       /* drawn first, before the lock */
    _Atomic uint64_t   magic;       /* set last: what follows is whole */
    uint64_t           format;
    uint64_t           capacity;
    uint64_t           ledger_id;
    uint64_t           digest;
    uint64_t           created_ms;
    _Atomic uint64_t   epoch;
    _Atomic uint64_t   rows;
    _Atomic uint64_t   head_page;   /* 0: none yet, 1 or 2 */
    _Atomic uint64_t   mark_page;
} ron_memory_sh_t;


typedef struct {
    uint64_t           seq;
    uint64_t           off;
} ron_memory_slot_t;


typedef struct {
    uint64_t           len;         /* of all of it, a multiple of 8 */
    uint64_t           seq;
    uint64_t           count;
    uint64_t           epoch;
    uint64_t           time_ms;
    uint64_t           tile_n;
    uint64_t           body_len;
    uint64_t           notes_len;
    ron_hash_t         prev_root;
    ron_hash_t         root;
    ron_hash_t         checkpoint;
    ron_hash_t         chain;
} ron_memory_rec_t;


typedef struct {
    uint64_t           level;
    uint64_t           index;
    ron_hash_t         hashes[RON_TILE_WIDTH];
} ron_memory_tile_t;


typedef struct {
    ron_memory_sh_t   *sh;
    uint8_t           *base;
    uint64_t           len;
} ron_memory_region_t;


typedef struct {
    ron_store_t          store;
    ron_memory_region_t  region;
    bool                 owned;
    int                  lock_fd;
    uint64_t             epoch;
} ron_memory_t;


typedef struct {
    ron_reader_t         reader;
    ron_memory_region_t  region;
} ron_memory_reader_t;


static ron_status_t ron_memory_size(const char *text, uint64_t *size);
static ron_status_t ron_memory_adopt(ron_memory_t *m);
static ron_status_t ron_memory_create(ron_memory_t *m,
    const ron_store_conf_t *conf);
static ron_status_t ron_memory_init(ron_memory_t *m,
    const ron_store_conf_t *conf);
static ron_status_t ron_memory_lock(ron_memory_t *m);
static void ron_memory_unlock(ron_memory_t *m);

static ron_status_t ron_memory_acquire(ron_store_t *store, uint64_t *epoch);
static void ron_memory_release(ron_store_t *store);
static ron_status_t ron_memory_append(ron_store_t *store,
    const ron_row_t *row, const ron_tile_t *tiles, size_t tile_n,
    const ron_slice_t *slice);
static ron_status_t ron_memory_follows(ron_memory_t *m, const ron_row_t *row,
    uint64_t *rows, uint64_t *end);
static void ron_memory_put(uint8_t **p, const void *data, size_t len);
static ron_status_t ron_memory_maintain(ron_store_t *store,
    uint64_t keep_gen);
static ron_status_t ron_memory_head_write(ron_store_t *store,
    const uint8_t *page);
static ron_status_t ron_memory_head_read(ron_store_t *store, uint8_t *page);
static ron_status_t ron_memory_mark_write(ron_store_t *store,
    const uint8_t *page);
static ron_status_t ron_memory_mark_read(ron_store_t *store, uint8_t *page);
static void ron_memory_page_put(ron_memory_t *m, unsigned first,
    _Atomic uint64_t *current, const uint8_t *page);
static ron_status_t ron_memory_page_get(ron_memory_t *m, unsigned first,
    _Atomic uint64_t *current, uint8_t *page);
static ron_status_t ron_memory_probe(ron_store_t *store);
static ron_status_t ron_memory_reader(ron_store_t *store,
    ron_reader_t **reader);
static void ron_memory_close(ron_store_t *store);

static ron_status_t ron_memory_row_head(ron_reader_t *reader, ron_row_t *row);
static ron_status_t ron_memory_row_at(ron_reader_t *reader, uint64_t seq,
    ron_row_t *row);
static ron_status_t ron_memory_rows(ron_reader_t *reader, uint64_t seq,
    size_t max_bytes, ron_row_pt fn, void *ctx, uint64_t *next);
static ron_status_t ron_memory_tile(ron_reader_t *reader, ron_tile_t *tile);
static ron_status_t ron_memory_gen(ron_reader_t *reader, uint64_t max_gen,
    uint64_t *gen, uint32_t *count, bool *complete);
static ron_status_t ron_memory_slice(ron_reader_t *reader, uint64_t gen,
    uint32_t no, ron_slice_t *slice);
static ron_status_t ron_memory_hold(ron_reader_t *reader, bool hold);
static void ron_memory_reader_close(ron_reader_t *reader);

static uint64_t ron_memory_count(const ron_memory_region_t *region);
static ron_memory_slot_t *ron_memory_slot(const ron_memory_region_t *region,
    uint64_t i);
static ron_status_t ron_memory_record(const ron_memory_region_t *region,
    uint64_t i, const ron_memory_rec_t **rec);
static ron_status_t ron_memory_find(const ron_memory_region_t *region,
    uint64_t seq, uint64_t *i);
static ron_status_t ron_memory_row(const ron_memory_region_t *region,
    uint64_t i, ron_row_t *row);


static const ron_store_ops_t  ron_memory_ops = {
    ron_memory_acquire,
    ron_memory_release,
    ron_memory_append,
    ron_memory_maintain,
    ron_memory_head_write,
    ron_memory_head_read,
    ron_memory_mark_write,
    ron_memory_mark_read,
    ron_memory_probe,
    ron_memory_reader,
    ron_memory_close
};


static const ron_reader_ops_t  ron_memory_reader_ops = {
    ron_memory_row_head,
    ron_memory_row_at,
    ron_memory_rows,
    ron_memory_tile,
    ron_memory_gen,
    ron_memory_slice,
    ron_memory_hold,
    ron_memory_reader_close
};


_Static_assert(sizeof(ron_memory_sh_t) <= RON_STORE_PAGE,
               "the header is one page");
_Static_assert(sizeof(ron_memory_rec_t) % 8 == 0
               && sizeof(ron_memory_tile_t) % 8 == 0,
               "records are multiples of 8 bytes");


/* ---- opening and creating ----------------------------------------------- */

ron_status_t
ron_memory_open(const ron_store_conf_t *conf, const char *size, char *error,
    ron_store_t **store)
{
    uint64_t       len;
    ron_status_t   status;
    ron_memory_t  *m;

    if (ron_memory_size(size, &len) != RON_OK) {
        ron_store_say(error, "\"memory:%s\": a size of at least 64k is "
                      "expected", size);
        return RON_EINVAL;
    }

    if (conf->region != NULL
        && (conf->region_len != len || (uintptr_t) conf->region % 16 != 0))
    {
        ron_store_say(error, "\"memory:%s\" does not fit a region of %zu "
                      "bytes at %p", size, conf->region_len, conf->region);
        return RON_EINVAL;
    }

    m = calloc(1, sizeof(ron_memory_t));
    if (m == NULL) {
        ron_store_say(error, "no memory");
        return RON_ENOMEM;
    }

    m->store.ops = &ron_memory_ops;
    m->lock_fd = -1;
    m->region.len = len;
    m->region.base = conf->region;

    if (m->region.base == NULL) {
        m->owned = true;
        m->region.base = aligned_alloc(RON_STORE_PAGE, len);

        if (m->region.base == NULL) {
            ron_store_say(error, "no memory for a ledger of %s", size);
            free(m);
            return RON_ENOMEM;
        }

        memset(m->region.base, 0, RON_STORE_PAGE);
    }

    m->region.sh = (void *) m->region.base;

    status = ron_memory_adopt(m);

    if (status == RON_ENOTFOUND && conf->create) {
        status = ron_memory_create(m, conf);
    }

    if (status != RON_OK) {
        memcpy(error, m->store.error, RON_STORE_ERROR_MAX);
        ron_memory_close(&m->store);
        return status;
    }

    *store = &m->store;

    return RON_OK;
}


/* Digits and one of k, m, g; whole pages, so that all offsets are aligned. */

static ron_status_t
ron_memory_size(const char *text, uint64_t *size)
{
    uint64_t     n;
    const char  *p;

    *size = 0;
    n = 0;

    for (p = text; *p >= '0' && *p <= '9'; p++) {

        if (n > (UINT64_C(1) << 50)) {
            return RON_EINVAL;
        }

        n = n * 10 + (uint64_t) (*p - '0');
    }

    switch (*p) {

    case 'g':
    case 'G':
        n = n > (UINT64_C(1) << 20) ? 0 : n << 30;
        p++;
        break;

    case 'm':
    case 'M':
        n = n > (UINT64_C(1) << 30) ? 0 : n << 20;
        p++;
        break;

    case 'k':
    case 'K':
        n = n > (UINT64_C(1) << 40) ? 0 : n << 10;
        p++;
        break;

    default:
        break;
    }

    if (*p != '\0' || n < RON_MEMORY_SIZE_MIN || n % RON_STORE_PAGE != 0
        || n > SIZE_MAX)
    {
        return RON_EINVAL;
    }

    *size = n;

    return RON_OK;
}


/* Looks and never writes: the region may be another process's by right. */

static ron_status_t
ron_memory_adopt(ron_memory_t *m)
{
    uint64_t            magic;
    ron_memory_sh_t    *sh;
    ron_ledger_meta_t  *meta;

    sh = m->region.sh;
    magic = atomic_load_explicit(&sh->magic, memory_order_acquire);

    if (magic == 0) {
        ron_store_say(m->store.error, "the region holds no ledger");
        return RON_ENOTFOUND;
    }

    if (magic != RON_MEMORY_MAGIC || sh->format == 0) {
        ron_store_say(m->store.error, "the region holds something else");
        return ron_corrupt();
    }

    if (sh->format > RON_STORE_FORMAT) {
        ron_store_say(m->store.error, "ledger format %llu, this program knows "
                      "%d", (unsigned long long) sh->format,
                      RON_STORE_FORMAT);
        return RON_EVERSION;
    }

    if (sh->capacity != m->region.len
        || ron_memory_count(&m->region) > m->region.len
        || (sh->digest != RON_DIGEST_BLAKE3
            && sh->digest != RON_DIGEST_SHA256))
    {
        ron_store_say(m->store.error, "the region's header does not fit a "
                      "region of %llu bytes",
                      (unsigned long long) m->region.len);
        return ron_corrupt();
    }

    meta = &m->store.meta;
    meta->format = (uint32_t) sh->format;
    meta->ledger_id = (uint16_t) sh->ledger_id;
    meta->digest = (ron_digest_t) sh->digest;
    meta->created_ms = sh->created_ms;

    return RON_OK;
}


static ron_status_t
ron_memory_create(ron_memory_t *m, const ron_store_conf_t *conf)
{
    uint64_t          since_us, nonce, none;
    ron_status_t      status;
    ron_memory_sh_t  *sh;

    sh = m->region.sh;

    do {
        status = ron_random(&nonce, sizeof(nonce));
    } while (status == RON_OK && nonce == 0);

    if (status != RON_OK) {
        ron_store_say(m->store.error, "no randomness: %s", ron_port_error());
        return status;
    }

    /* whoever comes first has named the lock for everybody */

    none = 0;
    (void) atomic_compare_exchange_strong(&sh->nonce, &none, nonce);

    since_us = ron_clock_mono_us();

    for ( ;; ) {

        status = ron_memory_lock(m);

        if (status == RON_OK) {
            status = ron_memory_adopt(m);

            if (status == RON_ENOTFOUND) {
                status = ron_memory_init(m, conf);
            }

            ron_memory_unlock(m);

            return status == RON_OK ? ron_memory_adopt(m) : status;
        }

        if (status != RON_AGAIN) {
            return status;
        }

        status = ron_memory_adopt(m);

        if (status != RON_ENOTFOUND) {
            return status;
        }

        if (ron_clock_mono_us() - since_us > RON_MEMORY_CREATE_US) {
            return RON_AGAIN;
        }

        ron_sleep_us(RON_MEMORY_CREATE_NAP);
    }
}


static ron_status_t
ron_memory_init(ron_memory_t *m, const ron_store_conf_t *conf)
{
    uint16_t          ledger_id;
    ron_status_t      status;
    ron_memory_sh_t  *sh;

    ledger_id = conf->ledger_id;

    while (ledger_id == 0) {
        status = ron_random(&ledger_id, sizeof(ledger_id));
        if (status != RON_OK) {
            ron_store_say(m->store.error, "no randomness: %s",
                          ron_port_error());
            return status;
        }
    }

    sh = m->region.sh;

    sh->format = RON_STORE_FORMAT;
    sh->capacity = m->region.len;
    sh->ledger_id = ledger_id;
    sh->digest = conf->digest != 0 ? conf->digest : RON_DIGEST_BLAKE3;
    sh->created_ms = ron_clock_wall_ms();

    atomic_store(&sh->epoch, 0);
    atomic_store(&sh->rows, 0);
    atomic_store(&sh->head_page, 0);
    atomic_store(&sh->mark_page, 0);

    atomic_store_explicit(&sh->magic, RON_MEMORY_MAGIC, memory_order_release);

    return RON_OK;
}


static void
ron_memory_close(ron_store_t *store)
{
    ron_memory_t  *m;

    m = (ron_memory_t *) store;

    if (m->owned) {
        free(m->region.base);
    }

    free(m);
}


/* ---- the writer --------------------------------------------------------- */

/* Bound and never listened on: nobody can connect to a lock. */

static ron_status_t
ron_memory_lock(ron_memory_t *m)
{
    int                 fd, n;
    socklen_t           len;
    struct sockaddr_un  addr;

    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;

    n = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1,
                 "ron-ledger-%016llx", (unsigned long long)
                 atomic_load(&m->region.sh->nonce));

    len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1
                       + (size_t) n);

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        ron_store_say(m->store.error, "the lock's socket: errno %d", errno);
        return RON_EIO;
    }

    if (bind(fd, (struct sockaddr *) &addr, len) != 0) {

        n = errno;
        (void) close(fd);

        if (n == EADDRINUSE) {
            ron_store_say(m->store.error, "another writer holds @%s",
                          addr.sun_path + 1);
            return RON_AGAIN;
        }

        ron_store_say(m->store.error, "binding @%s: errno %d",
                      addr.sun_path + 1, n);
        return RON_EIO;
    }

    m->lock_fd = fd;

    return RON_OK;
}


static void
ron_memory_unlock(ron_memory_t *m)
{
    if (m->lock_fd != -1) {
        (void) close(m->lock_fd);
        m->lock_fd = -1;
    }
}


static ron_status_t
ron_memory_acquire(ron_store_t *store, uint64_t *epoch)
{
    ron_status_t   status;
    ron_memory_t  *m;

    m = (ron_memory_t *) store;

    status = ron_memory_lock(m);

    if (status == RON_OK) {
        m->epoch = atomic_fetch_add(&m->region.sh->epoch, 1) + 1;
        *epoch = m->epoch;
    }

    return status;
}


static void
ron_memory_release(ron_store_t *store)
{
    ron_memory_unlock((ron_memory_t *) store);
}


static void
ron_memory_put(uint8_t **p, const void *data, size_t len)
{
    if (len != 0) {
        memcpy(*p, data, len);
        *p += len;
    }
}


static ron_status_t
ron_memory_append(ron_store_t *store, const ron_row_t *row,
    const ron_tile_t *tiles, size_t tile_n, const ron_slice_t *slice)
{
    size_t              i;
    uint8_t            *p;
    uint64_t            rows, end, len, room;
    ron_status_t        status;
    ron_memory_t       *m;
    ron_memory_rec_t   *rec;
    ron_memory_slot_t  *slot;
    ron_memory_tile_t  *tile;

    (void) slice;

    m = (ron_memory_t *) store;

    status = ron_memory_follows(m, row, &rows, &end);
    if (status != RON_OK) {
        return status;
    }

    len = sizeof(ron_memory_rec_t) + tile_n * sizeof(ron_memory_tile_t)
          + row->body.len + row->notes.len;
    len = (len + 7) & ~UINT64_C(7);

    room = m->region.len - end - rows * sizeof(ron_memory_slot_t);

    if (tile_n > m->region.len / sizeof(ron_memory_tile_t)
        || len > room || room - len < sizeof(ron_memory_slot_t))
    {
        ron_store_say(store->error, "the region is full: %llu bytes are left "
                      "and the commit needs %llu", (unsigned long long) room,
                      (unsigned long long) len);
        return RON_EFULL;
    }

    rec = (void *) (m->region.base + end);

    rec->len = len;
    rec->seq = row->seq;
    rec->count = row->count;
    rec->epoch = row->epoch;
    rec->time_ms = row->time_ms;
    rec->tile_n = tile_n;
    rec->body_len = row->body.len;
    rec->notes_len = row->notes.len;
    rec->prev_root = row->prev_root;
    rec->root = row->root;
    rec->checkpoint = row->checkpoint;
    rec->chain = row->chain;

    tile = (void *) (rec + 1);

    for (i = 0; i < tile_n; i++) {
        tile[i].level = tiles[i].level;
        tile[i].index = tiles[i].index;
        memcpy(tile[i].hashes, tiles[i].hashes, sizeof(tile[i].hashes));
    }

    p = (void *) (tile + tile_n);
    ron_memory_put(&p, row->body.data, row->body.len);
    ron_memory_put(&p, row->notes.data, row->notes.len);

    slot = ron_memory_slot(&m->region, rows);
    slot->seq = row->seq;
    slot->off = end;

    atomic_store_explicit(&m->region.sh->rows, rows + 1,
                          memory_order_release);

    return RON_OK;
}


/* What the triggers of the sqlite store check. */

static ron_status_t
ron_memory_follows(ron_memory_t *m, const ron_row_t *row, uint64_t *rows,
    uint64_t *end)
{
    uint64_t                 seq;
    ron_status_t             status;
    const ron_memory_rec_t  *last;

    if (row->epoch != atomic_load(&m->region.sh->epoch)
        || row->epoch != m->epoch)
    {
        ron_store_say(m->store.error, "ron: the writer has been replaced");
        return RON_EFENCED;
    }

    *rows = ron_memory_count(&m->region);
    *end = RON_MEMORY_DATA;
    seq = 1;

    if (*rows != 0) {

        status = ron_memory_record(&m->region, *rows - 1, &last);

        if (status != RON_OK) {
            m->store.poisoned = true;
            ron_store_say(m->store.error, "the last row is damaged");
            return status;
        }

        *end = ron_memory_slot(&m->region, *rows - 1)->off + last->len;
        seq = last->seq + last->count;
    }

    if (row->seq != seq
        || (*rows != 0 && (!ron_hash_eq(&row->prev_root, &last->root)
                           || row->epoch < last->epoch)))
    {
        ron_store_say(m->store.error, "ron: row does not follow the head");
        return RON_EFENCED;
    }

    return RON_OK;
}


static ron_status_t
ron_memory_maintain(ron_store_t *store, uint64_t keep_gen)
{
    (void) store;
    (void) keep_gen;

    return RON_OK;
}


static void
ron_memory_page_put(ron_memory_t *m, unsigned first,
    _Atomic uint64_t *current, const uint8_t *page)
{
    uint64_t  next;

    next = atomic_load(current) == 1 ? 2 : 1;

    memcpy(m->region.base + (first + next - 1) * RON_STORE_PAGE, page,
           RON_STORE_PAGE);

    atomic_store_explicit(current, next, memory_order_release);
}


/*
 * The page may be overwritten while it is copied, by the second write after
 * the look at `current`; its checksum tells, and the caller comes again.
 */

static ron_status_t
ron_memory_page_get(ron_memory_t *m, unsigned first,
    _Atomic uint64_t *current, uint8_t *page)
{
    uint64_t  at;

    at = atomic_load_explicit(current, memory_order_acquire);

    if (at == 0) {
        return RON_ENOTFOUND;
    }

    if (at > 2) {
        return ron_corrupt();
    }

    memcpy(page, m->region.base + (first + at - 1) * RON_STORE_PAGE,
           RON_STORE_PAGE);

    return RON_OK;
}


static ron_status_t
ron_memory_head_write(ron_store_t *store, const uint8_t *page)
{
    ron_memory_t  *m;

    m = (ron_memory_t *) store;

    ron_memory_page_put(m, RON_MEMORY_HEAD_PAGE, &m->region.sh->head_page,
                        page);

    return RON_OK;
}


static ron_status_t
ron_memory_head_read(ron_store_t *store, uint8_t *page)
{
    ron_memory_t  *m;

    m = (ron_memory_t *) store;

    return ron_memory_page_get(m, RON_MEMORY_HEAD_PAGE,
                               &m->region.sh->head_page, page);
}


static ron_status_t
ron_memory_mark_write(ron_store_t *store, const uint8_t *page)
{
    ron_memory_t  *m;

    m = (ron_memory_t *) store;

    ron_memory_page_put(m, RON_MEMORY_MARK_PAGE, &m->region.sh->mark_page,
                        page);

    return RON_OK;
}


static ron_status_t
ron_memory_mark_read(ron_store_t *store, uint8_t *page)
{
    ron_memory_t  *m;

    m = (ron_memory_t *) store;

    return ron_memory_page_get(m, RON_MEMORY_MARK_PAGE,
                               &m->region.sh->mark_page, page);
}


static ron_status_t
ron_memory_probe(ron_store_t *store)
{
    uint64_t                 rows, end;
    ron_memory_t            *m;
    ron_status_t             status;
    const ron_memory_rec_t  *last;

    m = (ron_memory_t *) store;
    rows = ron_memory_count(&m->region);
    end = RON_MEMORY_DATA;

    if (rows != 0) {
        status = ron_memory_record(&m->region, rows - 1, &last);
        if (status != RON_OK) {
            return status;
        }

        end = ron_memory_slot(&m->region, rows - 1)->off + last->len;
    }

    return m->region.len - end - rows * sizeof(ron_memory_slot_t)
           < RON_STORE_PAGE ? RON_EFULL : RON_OK;
}


static ron_status_t
ron_memory_reader(ron_store_t *store, ron_reader_t **reader)
{
    ron_memory_t         *m;
    ron_memory_reader_t  *r;

    m = (ron_memory_t *) store;

    r = calloc(1, sizeof(ron_memory_reader_t));
    if (r == NULL) {
        ron_store_say(store->error, "no memory");
        return RON_ENOMEM;
    }

    r->reader.ops = &ron_memory_reader_ops;
    r->region = m->region;

    *reader = &r->reader;

    return RON_OK;
}


/* ---- the region --------------------------------------------------------- */

static uint64_t
ron_memory_count(const ron_memory_region_t *region)
{
    return atomic_load_explicit(&region->sh->rows, memory_order_acquire);
}


static ron_memory_slot_t *
ron_memory_slot(const ron_memory_region_t *region, uint64_t i)
{
    return (void *) (region->base + region->len
                     - (i + 1) * sizeof(ron_memory_slot_t));
}


/*
 * Whatever is in the region, nothing outside of it is touched: lengths are
 * believed only after they add up.
 */

static ron_status_t
ron_memory_record(const ron_memory_region_t *region, uint64_t i,
    const ron_memory_rec_t **rec)
{
    uint64_t                  len, room;
    const ron_memory_rec_t   *r;
    const ron_memory_slot_t  *slot;

    *rec = NULL;

    if (i >= (region->len - RON_MEMORY_DATA) / sizeof(ron_memory_slot_t)) {
        return ron_corrupt();
    }

    slot = ron_memory_slot(region, i);
    room = region->len - (i + 1) * sizeof(ron_memory_slot_t);

    if (slot->off < RON_MEMORY_DATA || slot->off % 8 != 0
        || slot->off > room
        || room - slot->off < sizeof(ron_memory_rec_t))
    {
        return ron_corrupt();
    }

    r = (const void *) (region->base + slot->off);
    room -= slot->off;

    if (r->len > room || r->seq != slot->seq || r->count == 0
        || r->seq > RON_STORE_SEQ_MAX || r->count > RON_STORE_SEQ_MAX
        || r->tile_n > room / sizeof(ron_memory_tile_t)
        || r->body_len > room || r->notes_len > room)
    {
        return ron_corrupt();
    }

    len = sizeof(ron_memory_rec_t) + r->tile_n * sizeof(ron_memory_tile_t)
          + r->body_len + r->notes_len;

    if (((len + 7) & ~UINT64_C(7)) != r->len) {
        return ron_corrupt();
    }

    *rec = r;

    return RON_OK;
}


/* The row that holds `seq`, by bisection of the slots. */

static ron_status_t
ron_memory_find(const ron_memory_region_t *region, uint64_t seq, uint64_t *i)
{
    uint64_t                 low, high, mid;
    ron_status_t             status;
    const ron_memory_rec_t  *rec;

    low = 0;
    high = ron_memory_count(region);

    if (high > (region->len - RON_MEMORY_DATA) / sizeof(ron_memory_slot_t)) {
        return ron_corrupt();
    }

    while (low < high) {

        mid = low + (high - low) / 2;

        if (ron_memory_slot(region, mid)->seq <= seq) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    if (low == 0) {
        return RON_ENOTFOUND;
    }

    status = ron_memory_record(region, low - 1, &rec);
    if (status != RON_OK) {
        return status;
    }

    *i = low - 1;

    return seq - rec->seq < rec->count ? RON_OK : RON_ENOTFOUND;
}


static ron_status_t
ron_memory_row(const ron_memory_region_t *region, uint64_t i, ron_row_t *row)
{
    ron_status_t             status;
    const uint8_t           *body;
    const ron_memory_rec_t  *rec;

    status = ron_memory_record(region, i, &rec);
    if (status != RON_OK) {
        return status;
    }

    row->seq = rec->seq;
    row->count = rec->count;
    row->epoch = rec->epoch;
    row->time_ms = rec->time_ms;
    row->prev_root = rec->prev_root;
    row->root = rec->root;
    row->checkpoint = rec->checkpoint;
    row->chain = rec->chain;

    body = (const uint8_t *) (rec + 1)
           + rec->tile_n * sizeof(ron_memory_tile_t);

    row->body = (ron_str_t) { rec->body_len, body };
    row->notes = (ron_str_t) { rec->notes_len, NULL };

    if (rec->notes_len != 0) {
        row->notes.data = body + rec->body_len;
    }

    return RON_OK;
}


/* ---- readers ------------------------------------------------------------ */

static ron_status_t
ron_memory_row_head(ron_reader_t *reader, ron_row_t *row)
{
    uint64_t                    rows;
    const ron_memory_region_t  *region;

    region = &((ron_memory_reader_t *) reader)->region;
    rows = ron_memory_count(region);

    return rows == 0 ? RON_ENOTFOUND : ron_memory_row(region, rows - 1, row);
}


static ron_status_t
ron_memory_row_at(ron_reader_t *reader, uint64_t seq, ron_row_t *row)
{
    uint64_t                    i;
    ron_status_t                status;
    const ron_memory_region_t  *region;

    region = &((ron_memory_reader_t *) reader)->region;

    status = ron_memory_find(region, seq, &i);

    return status == RON_OK ? ron_memory_row(region, i, row) : status;
}


static ron_status_t
ron_memory_rows(ron_reader_t *reader, uint64_t seq, size_t max_bytes,
    ron_row_pt fn, void *ctx, uint64_t *next)
{
    size_t                      given;
    uint64_t                    i, rows;
    ron_row_t                   row;
    ron_status_t                status;
    const ron_memory_region_t  *region;

    region = &((ron_memory_reader_t *) reader)->region;
    given = 0;

    status = ron_memory_find(region, seq, &i);
    if (status != RON_OK) {
        return status;
    }

    rows = ron_memory_count(region);

    do {
        status = ron_memory_row(region, i, &row);
        if (status != RON_OK) {
            return status;
        }

        *next = row.seq;

        status = fn(ctx, &row);
        if (status != RON_OK) {
            return status;
        }

        *next = row.seq + row.count;
        given += row.body.len + row.notes.len;
        i++;

    } while (i < rows && given < max_bytes);

    return RON_OK;
}


static ron_status_t
ron_memory_tile(ron_reader_t *reader, ron_tile_t *tile)
{
    uint64_t                    i, n;
    ron_status_t                status;
    const ron_memory_rec_t     *rec;
    const ron_memory_tile_t    *stored;
    const ron_memory_region_t  *region;

    region = &((ron_memory_reader_t *) reader)->region;

    status = ron_memory_find(region, ron_tile_end(tile->level, tile->index),
                             &i);
    if (status == RON_OK) {
        status = ron_memory_record(region, i, &rec);
    }

    if (status != RON_OK) {
        return status;
    }

    stored = (const void *) (rec + 1);

    for (n = 0; n < rec->tile_n; n++) {

        if (stored[n].level == tile->level && stored[n].index == tile->index) {
            memcpy(tile->hashes, stored[n].hashes, sizeof(tile->hashes));
            return RON_OK;
        }
    }

    return RON_ENOTFOUND;
}


static ron_status_t
ron_memory_gen(ron_reader_t *reader, uint64_t max_gen, uint64_t *gen,
    uint32_t *count, bool *complete)
{
    (void) reader;
    (void) max_gen;
    (void) gen;
    (void) count;
    (void) complete;

    return RON_ENOTFOUND;
}


static ron_status_t
ron_memory_slice(ron_reader_t *reader, uint64_t gen, uint32_t no,
    ron_slice_t *slice)
{
    (void) reader;
    (void) gen;
    (void) no;
    (void) slice;

    return RON_ENOTFOUND;
}


/* What is in the region stays where it is. */

static ron_status_t
ron_memory_hold(ron_reader_t *reader, bool hold)
{
    (void) reader;
    (void) hold;

    return RON_OK;
}


static void
ron_memory_reader_close(ron_reader_t *reader)
{
    free(reader);
}
