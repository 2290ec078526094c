
/*
 * Private to src/store: what a store is made of behind ron_store.h.
 *
 * ron_store.c checks arguments, computes chains, zeroes results and then
 * dispatches through one of two tables; ron_store_sqlite*.c and
 * ron_store_memory.c fill these tables and never see a malformed argument.
 *
 * A page is how both stores keep the two small things that are written in
 * place, the published head and the safe-mode mark:
 *
 *     kind[8] | u32 length | checksum[16] | text | zeros up to 4096
 *
 * The checksum is the front of BLAKE3 over kind, length and text, so a page
 * that was written halfway is known for what it is.
 */

#ifndef RON_STORE_IMPL_H
#define RON_STORE_IMPL_H


#include "ron_store.h"


#define RON_STORE_FORMAT     1

#define RON_STORE_ERROR_MAX  512

#define RON_STORE_PAGE       4096
#define RON_STORE_PAGE_HEAD  (8 + 4 + 16)
#define RON_STORE_PAGE_TEXT  (RON_STORE_PAGE - RON_STORE_PAGE_HEAD)

#define RON_STORE_KIND_HEAD  "ronhead1"
#define RON_STORE_KIND_MARK  "ronmark1"

/* What the reason of a mark reads like when the mark itself cannot be read. */
#define RON_STORE_MARK_LOST  "unreadable mark"

/* No row is larger, so that a damaged length cannot ask for all memory. */
#define RON_STORE_ROW_MAX    ((size_t) 256 << 20)

/* Sequence numbers and tile keys (leaf << 3) fit a signed 64-bit integer. */
#define RON_STORE_SEQ_MAX    (UINT64_C(1) << 60)
#define RON_STORE_TIME_MAX   ((UINT64_C(1) << 63) - 1)

/* A slice's key is gen << 23 | no, below 2^63. */
#define RON_STORE_NO_BITS    23
#define RON_STORE_NO_MAX     ((UINT32_C(1) << RON_STORE_NO_BITS) - 1)
#define RON_STORE_GEN_MAX    ((UINT64_C(1) << (63 - RON_STORE_NO_BITS)) - 1)

/* Level 7 would be complete at 2^64 leaves. */
#define RON_STORE_LEVEL_MAX  6


typedef struct {
    ron_status_t  (*acquire)(ron_store_t *store, uint64_t *epoch);
    void          (*release)(ron_store_t *store);
    ron_status_t  (*append)(ron_store_t *store, const ron_row_t *row,
                            const ron_tile_t *tiles, size_t tile_n,
                            const ron_slice_t *slice);
    ron_status_t  (*maintain)(ron_store_t *store, uint64_t keep_gen);
    ron_status_t  (*head_write)(ron_store_t *store, const uint8_t *page);
    ron_status_t  (*head_read)(ron_store_t *store, uint8_t *page);
    ron_status_t  (*mark_write)(ron_store_t *store, const uint8_t *page);
    ron_status_t  (*mark_read)(ron_store_t *store, uint8_t *page);
    ron_status_t  (*probe)(ron_store_t *store);
    ron_status_t  (*reader)(ron_store_t *store, ron_reader_t **reader);
    void          (*close)(ron_store_t *store);
} ron_store_ops_t;


typedef struct {
    ron_status_t  (*head)(ron_reader_t *reader, ron_row_t *row);
    ron_status_t  (*row)(ron_reader_t *reader, uint64_t seq, ron_row_t *row);
    ron_status_t  (*rows)(ron_reader_t *reader, uint64_t seq,
                          size_t max_bytes, ron_row_pt fn, void *ctx,
                          uint64_t *next);
    ron_status_t  (*tile)(ron_reader_t *reader, ron_tile_t *tile);
    ron_status_t  (*gen)(ron_reader_t *reader, uint64_t max_gen,
                         uint64_t *gen, uint32_t *count, bool *complete);
    ron_status_t  (*slice)(ron_reader_t *reader, uint64_t gen, uint32_t no,
                           ron_slice_t *slice);
    ron_status_t  (*hold)(ron_reader_t *reader, bool hold);
    void          (*close)(ron_reader_t *reader);
} ron_reader_ops_t;


/* First member of both implementations. */
struct ron_store_s {
    const ron_store_ops_t   *ops;
    ron_ledger_meta_t        meta;
    const char              *dir;           /* NULL: memory */
    bool                     writer;        /* we hold the lock */
    bool                     poisoned;      /* an append is in doubt */
    char                     error[RON_STORE_ERROR_MAX];
};


struct ron_reader_s {
    const ron_reader_ops_t  *ops;
    char                     error[RON_STORE_ERROR_MAX];
};


ron_status_t ron_sqlite_open(const ron_store_conf_t *conf, const char *dir,
    char *error, ron_store_t **store);
ron_status_t ron_memory_open(const ron_store_conf_t *conf, const char *size,
    char *error, ron_store_t **store);

/* Formats into an error[RON_STORE_ERROR_MAX]. */
void ron_store_say(char *error, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A whole page of `kind`; the text is at most RON_STORE_PAGE_TEXT long. */
void ron_store_page_put(uint8_t *page, const char *kind, ron_str_t text);

/* The leaf count at which a tile becomes complete. */
uint64_t ron_tile_end(uint8_t level, uint64_t index);


#endif /* RON_STORE_IMPL_H */
