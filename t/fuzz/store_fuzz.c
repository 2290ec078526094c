
/*
 * A ledger on disk that somebody edited: bytes of ledger.db, or rows of its
 * tables through SQL with the triggers gone.  A small ledger with a bit of
 * everything is made once; an input says what to change in a copy.  Whoever
 * opens the copy refuses it, or is where the true ledger was after some
 * commit, to the last balance; and becomes its writer only at the true head,
 * which the published note vouches for.  Readers may be told of anything that
 * is malformed, and never read past it.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sqlite3.h>
#include <unistd.h>

#include "ron_fuzz.h"
#include "ron_engine.h"
#include "ron_port.h"
#include "ron_store.h"
#include "lib_ledger.h"


#define ROWS     12
#define FILES    32
#define FILE_MAX (1 << 20)
#define PRIVATE  "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"


typedef struct {
    char      name[64];
    uint8_t  *data;
    size_t    len;
} file_t;


static char           place[64];
static file_t         files[FILES];
static unsigned       file_n;
static file_t        *db;
static uint8_t       *image;
static ledger_past_t  past;
static ron_signer_t  *signer;


static void
path_of(const char *name, char path[160])
{
    snprintf(path, 160, "%s/%s", place, name);
}


static ron_status_t
file_unlink(void *ctx, const char *name)
{
    char  path[160];

    (void) ctx;
    path_of(name, path);
    RON_ASSERT(unlink(path) == 0);

    return RON_OK;
}


static ron_status_t
file_load(void *ctx, const char *name)
{
    int      fd;
    char     path[160];
    file_t  *f;
    ssize_t  n;

    (void) ctx;
    RON_ASSERT(file_n < FILES && strlen(name) < sizeof(f->name));
    f = &files[file_n++];
    snprintf(f->name, sizeof(f->name), "%s", name);
    f->data = malloc(FILE_MAX);
    path_of(name, path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    RON_ASSERT(fd != -1 && f->data != NULL);
    n = read(fd, f->data, FILE_MAX);
    RON_ASSERT(n >= 0 && n < FILE_MAX);
    f->len = (size_t) n;
    close(fd);

    if (strcmp(name, "ledger.db") == 0) {
        db = f;
    }

    return RON_OK;
}


static void
file_save(const char *name, const uint8_t *data, size_t len)
{
    int   fd;
    char  path[160];

    path_of(name, path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    RON_ASSERT(fd != -1 && write(fd, data, len) == (ssize_t) len);
    close(fd);
}


static void
place_gone(void)
{
    (void) rmdir(place);
}


/* The first row is the empty ledger. */

static void
setup(void)
{
    ledger_t  l;

    RON_ASSERT(ron_signer_parse(ron_str(PRIVATE), &signer) == RON_OK);
    snprintf(place, sizeof(place), "%s/ron-fuzz-store-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    RON_ASSERT(mkdtemp(place) != NULL && atexit(place_gone) == 0
               && ledger_open(&l, place, signer));
    ledger_past_add(&past, l.en);

    for (unsigned i = 0; i < ROWS; i++) {
        RON_ASSERT(ledger_grow(&l, 1));
        ledger_past_add(&past, l.en);
    }

    ron_engine_sign(l.en, true);
    ledger_close(&l);

    RON_ASSERT(ron_dir_each(place, file_load, NULL) == RON_OK);
    RON_ASSERT(db != NULL && ron_dir_each(place, file_unlink, NULL) == RON_OK);
    image = malloc(db->len);
    RON_ASSERT(image != NULL);
}


/* Anywhere, or near the beginning of a page, where SQLite has its lists. */

static void
edit_bytes(fuzz_t *f)
{
    size_t    at, from, n;
    uint8_t   how;
    unsigned  edits;

    edits = 1 + (fuzz_u8(f) & 7);

    for (unsigned i = 0; i < edits; i++) {
        how = fuzz_u8(f);
        at = fuzz_int(f, 3) % db->len;
        at = (how & 1) ? at : at / 512 * 512 + at % 64;

        switch (how >> 1 & 3) {
        case 0:
            image[at] = fuzz_u8(f);
            break;
        case 1:
            n = fuzz_u8(f);
            n = ron_min(n, db->len - at);
            from = fuzz_int(f, 3) % (db->len - n);
            memmove(image + at, image + from, n);
            break;
        default:
            image[at] ^= (uint8_t) (1u << (fuzz_u8(f) & 7));
        }
    }
}


/* Columns, and how SQL finds their rows. */

static const struct {
    const char  *table, *key, *column;
    bool         bytes;
} cells[] = {
    { "journal", "seq", "seq", false },
    { "journal", "seq", "count", false },
    { "journal", "seq", "epoch", false },
    { "journal", "seq", "time_ms", false },
    { "journal", "seq", "prev_root", true },
    { "journal", "seq", "root", true },
    { "journal", "seq", "checkpoint", true },
    { "journal", "seq", "chain", true },
    { "journal", "seq", "notes", true },
    { "journal", "seq", "body", true },
    { "checkpoint", "key", "key", false },
    { "checkpoint", "key", "last", false },
    { "checkpoint", "key", "seq", false },
    { "checkpoint", "key", "body", true },
    { "tile", "id", "id", false },
    { "tile", "id", "hashes", true },
    { "meta", "id", "format", false },
    { "meta", "id", "ledger_id", false },
    { "meta", "id", "digest", true },
    { "writer", "id", "epoch", false },
};


/* ?1 is any number, ?2 a small one, ?3 are bytes. */

static void
edit_value(unsigned c, unsigned how, char text[128])
{
    const char  *name;

    name = cells[c].column;

    if (!cells[c].bytes) {
        snprintf(text, 128, how % 8 == 1 ? "?1" : "?2");

    } else if (how % 8 < 4) {
        snprintf(text, 128, "CAST(?3 AS BLOB)");

    } else if (how % 8 == 4) {
        snprintf(text, 128, "NULL");

    } else {
        snprintf(text, 128, "CAST(substr(%s, 1, ?2) || ?3"
                 " || substr(%s, ?2 + 2) AS BLOB)", name, name);
    }
}


/* A cell of a row, or the row; what SQLite does not take stays as it was. */

static void
edit_cell(fuzz_t *f, sqlite3 *sql)
{
    int            len;
    char           text[320], value[128];
    uint8_t        how, blob[64];
    unsigned       c, row;
    sqlite3_stmt  *s;

    c = fuzz_below(f, ron_array_n(cells));
    row = fuzz_u8(f) % 16;
    how = fuzz_u8(f);

    if (how % 8 == 0) {
        len = snprintf(text, sizeof(text), "DELETE FROM %s", cells[c].table);

    } else {
        edit_value(c, how, value);
        len = snprintf(text, sizeof(text), "UPDATE %s SET %s = %s",
                       cells[c].table, cells[c].column, value);
    }

    snprintf(text + len, sizeof(text) - (size_t) len,
             " WHERE %s = (SELECT %s FROM %s LIMIT 1 OFFSET %u)",
             cells[c].key, cells[c].key, cells[c].table, row);

    if (sqlite3_prepare_v2(sql, text, -1, &s, NULL) != SQLITE_OK) {
        return;
    }

    for (size_t i = 0; i < sizeof(blob); i++) {
        blob[i] = fuzz_u8(f);
    }

    (void) sqlite3_bind_int64(s, 1, (sqlite3_int64) fuzz_int(f, 8));
    (void) sqlite3_bind_int64(s, 2, (sqlite3_int64) fuzz_int(f, 1));
    (void) sqlite3_bind_blob(s, 3, blob, how % 8 == 2 ? 32
                             : how % 8 == 3 ? how / 8 : 1, SQLITE_STATIC);
    (void) sqlite3_step(s);
    (void) sqlite3_finalize(s);
}


static void
edit_rows(fuzz_t *f)
{
    char       path[160];
    sqlite3   *sql;
    unsigned   edits;

    path_of("ledger.db", path);
    RON_ASSERT(sqlite3_open(path, &sql) == SQLITE_OK);
    RON_ASSERT(sqlite3_exec(sql, "PRAGMA synchronous = OFF;"
        "PRAGMA writable_schema = ON;"
        "DELETE FROM sqlite_schema WHERE type = 'trigger';"
        "PRAGMA writable_schema = RESET;", NULL, NULL, NULL) == SQLITE_OK);

    edits = 1 + (fuzz_u8(f) & 3);

    while (edits-- > 0) {
        edit_cell(f, sql);
    }

    (void) sqlite3_close(sql);
}


/* Everything that a reader can be asked, of rows, tiles and slices. */

static ron_status_t
read_row(void *ctx, const ron_row_t *row)
{
    uint8_t  *sum = ctx;

    for (size_t i = 0; i < row->body.len; i++) {
        *sum ^= row->body.data[i];
    }

    for (size_t i = 0; i < row->notes.len; i++) {
        *sum ^= row->notes.data[i];
    }

    return RON_OK;
}


static void
read_all(fuzz_t *f, ron_store_t *store)
{
    bool           complete;
    uint8_t        sum;
    uint32_t       count;
    uint64_t       gen, next, at;
    ron_row_t      row;
    ron_tile_t     tile;
    ron_slice_t    slice;
    ron_reader_t  *r;

    if (ron_reader_open(store, &r) != RON_OK) {
        return;
    }

    sum = 0;
    (void) ron_reader_head(r, &row);
    (void) ron_reader_row(r, fuzz_int(f, 1), &row);

    for (next = 0; ; ) {
        at = next;

        if (ron_reader_rows(r, at, 4096, read_row, &sum, &next) != RON_OK) {
            break;
        }

        RON_ASSERT(next > at);
    }

    (void) ron_reader_tile(r, 0, fuzz_int(f, 1), &tile);

    if (ron_reader_gen(r, UINT64_MAX >> 1, &gen, &count, &complete) == RON_OK)
    {
        for (uint32_t i = 0; i < ron_min(count, 8); i++) {
            if (ron_reader_slice(r, gen, i, &slice) == RON_OK) {
                for (size_t k = 0; k < slice.body.len; k++) {
                    sum ^= slice.body.data[k];
                }
            }
        }
    }

    ron_reader_close(r);

    /* the sum is looked at, so that every byte is read */

    RON_ASSERT(sum <= UINT8_MAX);
}


static void
follow(fuzz_t *f)
{
    char                url[128];
    ron_buf_t           why;
    ron_engine_t       *en;
    ron_status_t        status;
    ron_engine_conf_t   conf;

    snprintf(url, sizeof(url), "sqlite:%s", place);
    ron_engine_conf_init(&conf);
    conf.store.url = url;
    conf.signer = signer;
    conf.tag_ram = 1;
    conf.key_ram = 1;

    ron_buf_init(&why, 0);
    status = ron_engine_open(&conf, &en, &why);

    if (status == RON_OK) {
        read_all(f, ron_engine_store(en));

        do {
            status = ron_engine_follow(en, 1 + fuzz_u8(f) * 64u, &why);
        } while (status == RON_OK);

        if (status == RON_ENOTFOUND) {
            (void) ledger_past_find(&past, en);

            if (ron_engine_acquire(en, &why) == RON_OK) {
                RON_ASSERT(ledger_past_find(&past, en) == ROWS);
            }
        }

        ron_engine_close(en);
    }

    ron_buf_free(&why);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t  f = { data, data + len };

    if (db == NULL) {
        setup();
    }

    for (unsigned i = 0; i < file_n; i++) {
        file_save(files[i].name, files[i].data, files[i].len);
    }

    if (fuzz_u8(&f) & 1) {
        edit_rows(&f);

    } else {
        memcpy(image, db->data, db->len);
        edit_bytes(&f);
        file_save(db->name, image, db->len);
    }

    follow(&f);
    RON_ASSERT(ron_dir_each(place, file_unlink, NULL) == RON_OK);

    return 0;
}
