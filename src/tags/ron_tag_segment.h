
/*
 * Segments: immutable sorted files of tags.  The format is in the head of
 * ron_tag_segment.c and in docs/TAGS.md.  Internal to src/tags.
 */

#ifndef RON_TAG_SEGMENT_H
#define RON_TAG_SEGMENT_H


#include "ron_port.h"
#include "ron_tag_table.h"


#define RON_TAG_BLOCK_LEN     4096
#define RON_TAG_SUM_LEN       16
#define RON_TAG_RECORD_LEN    24
#define RON_TAG_BLOCK_TAGS                                                    \
    ((RON_TAG_BLOCK_LEN - RON_TAG_SUM_LEN) / RON_TAG_RECORD_LEN)

#define RON_TAG_LINE_LEN      64
#define RON_TAG_LINE_WORDS    8
#define RON_TAG_FILTER_BITS   15        /* per tag */

#define RON_TAG_NAME_MAX      32
#define RON_TAG_PATH_MAX      1024

#define RON_TAG_PIECE_LEN     (32 * 1024)


/* What every file of a store has in common. */
typedef struct {
    const char  *dir;
    const char  *name;
    uint64_t     ledger_id;
} ron_tag_place_t;


/* Header and manifest both say this of a segment. */
typedef struct {
    uint64_t    no;                 /* file number, never used again */
    uint32_t    tier;
    uint64_t    seq_lo;             /* holds every tag put with a seq in */
    uint64_t    seq_hi;             /* (seq_lo, seq_hi] */
    uint64_t    oldest_ms;          /* ledger time at seq_lo and at seq_hi */
    uint64_t    newest_ms;
    uint64_t    tag_n;
    ron_hash_t  header;             /* hash of the file's header */
} ron_tag_info_t;


typedef struct {
    ron_tag_info_t  info;
    ron_fd_t        fd;
    uint64_t        block_n;
    uint64_t        line_n;
    uint64_t       *line;           /* the filter */
    uint64_t       *fence;          /* first 64 bits of each block */
    uint32_t        refs;           /* views that it is in */
    bool            damaged;        /* a merge could not read it */
} ron_tag_segment_t;


/* What one tag asks of a filter line. */
typedef struct {
    uint64_t  m[RON_TAG_LINE_WORDS];
} ron_tag_mask_t;


/*
 * Six bits of the tag's second half for each word.  The line comes from the
 * first half: so a filter is filled from left to right as its tags ascend.
 */

static inline void
ron_tag_mask(ron_tag_mask_t *mask, ron_tag_key_t key)
{
    unsigned  i;

    for (i = 0; i < RON_TAG_LINE_WORDS; i++) {
        mask->m[i] = UINT64_C(1) << ((key.lo >> (6 * i)) & 63);
    }
}


static inline bool
ron_tag_line_has(const uint64_t *line, const ron_tag_mask_t *mask)
{
    unsigned  i;
    uint64_t  miss;

    miss = 0;

    for (i = 0; i < RON_TAG_LINE_WORDS; i++) {
        miss |= mask->m[i] & ~line[i];
    }

    return miss == 0;
}


void ron_tag_segment_path(char path[RON_TAG_PATH_MAX],
    const ron_tag_place_t *place, uint64_t no);

/* True, and the number, when `name` is that of a segment of this store. */
bool ron_tag_segment_is(const ron_tag_place_t *place, const char *name,
    uint64_t *no);

/*
 * Opens the file that the manifest describes and loads filter and fences.
 * RON_ENOTFOUND; RON_ECORRUPT, also for what cannot be read; RON_EIO when it
 * cannot be opened; RON_ENOMEM.
 */
ron_status_t ron_tag_segment_open(const ron_tag_place_t *place,
    const ron_tag_info_t *info, ron_tag_segment_t **segment);
void ron_tag_segment_free(ron_tag_segment_t *segment);

/* Whether the file of an open segment still stands under its name. */
ron_status_t ron_tag_segment_verify(const ron_tag_place_t *place,
    const ron_tag_info_t *info);

uint64_t ron_tag_segment_bytes(const ron_tag_segment_t *segment);

/* Reads one block, rarely more.  RON_OK, RON_ENOTFOUND, or why not. */
ron_status_t ron_tag_segment_find(const ron_tag_segment_t *segment,
    ron_tag_key_t key, uint64_t *seq);

/* Reads `n` blocks to `buf` and verifies each. */
ron_status_t ron_tag_segment_read(const ron_tag_segment_t *segment,
    uint64_t block, size_t n, uint8_t *buf);

/* Every block, their order, fences, filter, count and seqs. */
ron_status_t ron_tag_segment_check(const ron_tag_segment_t *segment);


/*
 * Writing.  Tags are added ascending; nothing may be relied on before
 * ron_tag_build_end(), which returns with all data synced.  `pace` is called
 * after each piece written and ends the build when it does not return RON_OK.
 */

typedef ron_status_t (*ron_tag_pace_pt)(void *ctx);

typedef struct {
    const ron_tag_place_t  *place;
    ron_tag_segment_t      *segment;
    uint8_t                *piece;
    size_t                  piece_len;      /* whole blocks */
    size_t                  record_n;       /* in the block being filled */
    uint64_t                off;
    uint64_t                unsynced_len;
    uint64_t                fence_cap;
    ron_tag_key_t           last;
    ron_tag_pace_pt         pace;
    void                   *ctx;
} ron_tag_build_t;

/* `info` without no of tags and hash; `tag_max` bounds the tags. */
ron_status_t ron_tag_build_start(ron_tag_build_t *b,
    const ron_tag_place_t *place, const ron_tag_info_t *info,
    uint64_t tag_max, ron_tag_pace_pt pace, void *ctx);
ron_status_t ron_tag_build_add(ron_tag_build_t *b, ron_tag_key_t key,
    uint64_t seq);
ron_status_t ron_tag_build_end(ron_tag_build_t *b,
    ron_tag_segment_t **segment);

/* Removes the file; harmless after an end that succeeded. */
void ron_tag_build_abort(ron_tag_build_t *b);


#endif /* RON_TAG_SEGMENT_H */
