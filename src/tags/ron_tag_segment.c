
/*
 * A segment file, in 4096-byte units:
 *
 *     header     1 unit
 *     blocks     block_n units, 170 records each, the last one zero-padded
 *     filter     line_n lines of 64 bytes
 *     fences     block_n times the first 8 bytes of a block's first tag
 *
 * header (integers big-endian; a hash is BLAKE3):
 *
 *     0   8   "RONTAGS" 0x01
 *     8   8   ledger id
 *     16  8   file number
 *     24  4   tier
 *     28  4   filter probes (8), in the top byte, record length (24)
 *     32  8   seq_lo       40  8  seq_hi
 *     48  8   oldest_ms    56  8  newest_ms
 *     64  8   tag_n        72  8  block_n     80  8  line_n
 *     88  32  hash of filter and fences
 *     120 1+n name of the store, length first
 *     ..      zeroes
 *     4064 32 hash of the 4064 bytes before
 *
 * block: 16 bytes of sum, then records of 16 bytes of tag and 8 of seq,
 * ascending.  The sum is the beginning of the hash of the block with its file
 * number and its own number in place of the sum; so a good block at a wrong
 * place, or from a file that had this place before, is a bad block.
 *
 * filter: a Bloom filter in cache lines, one bit in each of the eight words
 * of one line.  Line: first half of the tag scaled to line_n.  Bit in word i:
 * bits 6i..6i+5 of the second half.  Words are little-endian.
 *
 * Failure model: a file counts once the manifest names it, and the manifest
 * holds the hash of the header, which holds the hash of filter and fences.
 * So opening proves all but the blocks, and each block proves itself whenever
 * it is read.  Nothing is ever written to a file that counts.  At open, bytes
 * that cannot be read are bytes that are damaged; a file that cannot be opened
 * though it is there (too many are) is RON_EIO and no reason to give it up.
 */

#include "ron_tag_segment.h"

#include "ron_digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>


#define RON_TAG_MAGIC          "RONTAGS\001"
#define RON_TAG_MAGIC_LEN      8

#define RON_TAG_PROBES         8
#define RON_TAG_SHAPE          (RON_TAG_PROBES << 24 | RON_TAG_RECORD_LEN)

#define RON_TAG_INDEX_HASH_AT  88
#define RON_TAG_NAME_AT        120
#define RON_TAG_HEADER_SUM_AT  (RON_TAG_BLOCK_LEN - RON_HASH_LEN)

#define RON_TAG_SYNC_LEN       (256 * 1024)
#define RON_TAG_CHECK_BLOCKS   16


_Static_assert(RON_TAG_SUM_LEN + RON_TAG_BLOCK_TAGS * RON_TAG_RECORD_LEN
               == RON_TAG_BLOCK_LEN, "records fill a block to the last byte");
_Static_assert(RON_TAG_PROBES == RON_TAG_LINE_WORDS
               && RON_TAG_LINE_WORDS * 8 == RON_TAG_LINE_LEN,
               "one probe in each word of a line");
_Static_assert(RON_TAG_PIECE_LEN % RON_TAG_BLOCK_LEN == 0,
               "pieces are whole blocks");


static ron_tag_segment_t *ron_tag_segment_new(const ron_tag_info_t *info,
    uint64_t block_n, uint64_t line_n);
static void ron_tag_header_put(const ron_tag_place_t *place,
    const ron_tag_segment_t *seg, const ron_hash_t *index, uint8_t *h);
static ron_status_t ron_tag_header_get(const ron_tag_place_t *place,
    const ron_tag_info_t *want, const uint8_t *h, uint64_t *block_n,
    uint64_t *line_n);
static ron_status_t ron_tag_header_open(const ron_tag_place_t *place,
    const ron_tag_info_t *info, uint8_t *h, ron_fd_t *fd, uint64_t *block_n,
    uint64_t *line_n);
static ron_status_t ron_tag_index_load(ron_tag_segment_t *seg,
    const uint8_t *want);
static void ron_tag_index_hash(const ron_tag_segment_t *seg, ron_hash_t *out);
static void ron_tag_words_le(uint64_t *word, uint64_t n);
static void ron_tag_words_be(uint64_t *word, uint64_t n);
static uint64_t ron_tag_index_at(const ron_tag_segment_t *seg);
static uint64_t ron_tag_fence_seek(const ron_tag_segment_t *seg, uint64_t hi);
static bool ron_tag_block_find(const uint8_t *block, size_t n,
    ron_tag_key_t key, uint64_t *seq);
static size_t ron_tag_block_tags(const ron_tag_segment_t *seg, uint64_t i);
static void ron_tag_block_sum(uint8_t *block, uint64_t no, uint64_t i,
    uint8_t sum[RON_TAG_SUM_LEN]);
static ron_status_t ron_tag_check_block(const ron_tag_segment_t *seg,
    uint64_t i, const uint8_t *block, ron_tag_key_t *last);
static ron_status_t ron_tag_build_open(ron_tag_build_t *b);
static ron_status_t ron_tag_build_fence(ron_tag_build_t *b, uint64_t hi);
static void ron_tag_build_block(ron_tag_build_t *b);
static ron_status_t ron_tag_build_piece(ron_tag_build_t *b);
static ron_status_t ron_tag_build_write(ron_tag_build_t *b, const void *data,
    uint64_t len);
static ron_status_t ron_tag_build_index(ron_tag_build_t *b);


void
ron_tag_segment_path(char path[RON_TAG_PATH_MAX], const ron_tag_place_t *place,
    uint64_t no)
{
    int  n;

    n = snprintf(path, RON_TAG_PATH_MAX, "%s/%s-%016" PRIx64 ".seg",
                 place->dir, place->name, no);

    RON_ASSERT(n > 0 && n < RON_TAG_PATH_MAX);
}


bool
ron_tag_segment_is(const ron_tag_place_t *place, const char *name,
    uint64_t *no)
{
    char      c;
    size_t    i, len;
    uint64_t  v;

    *no = 0;

    len = strlen(place->name);

    if (strncmp(name, place->name, len) != 0 || name[len] != '-') {
        return false;
    }

    name += len + 1;
    v = 0;

    for (i = 0; i < 16; i++) {

        c = name[i];

        if (c >= '0' && c <= '9') {
            v = v << 4 | (uint64_t) (c - '0');

        } else if (c >= 'a' && c <= 'f') {
            v = v << 4 | (uint64_t) (c - 'a' + 10);

        } else {
            return false;
        }
    }

    if (strcmp(name + 16, ".seg") != 0) {
        return false;
    }

    *no = v;

    return true;
}


static ron_tag_segment_t *
ron_tag_segment_new(const ron_tag_info_t *info, uint64_t block_n,
    uint64_t line_n)
{
    ron_tag_segment_t  *seg;

    seg = calloc(1, sizeof(ron_tag_segment_t));
    if (seg == NULL) {
        return NULL;
    }

    seg->info = *info;
    seg->fd = RON_FD_NONE;
    seg->block_n = block_n;
    seg->line_n = line_n;

    /* bounded by what a file can be, so the sizes cannot overflow */

    seg->line = aligned_alloc(RON_TAG_LINE_LEN,
                              (size_t) line_n * RON_TAG_LINE_LEN);
    seg->fence = malloc((size_t) (block_n + 1) * sizeof(uint64_t));

    if (seg->line == NULL || seg->fence == NULL) {
        ron_tag_segment_free(seg);
        return NULL;
    }

    ron_memory_large(seg->line, (size_t) line_n * RON_TAG_LINE_LEN);

    return seg;
}


void
ron_tag_segment_free(ron_tag_segment_t *seg)
{
    if (seg == NULL) {
        return;
    }

    ron_file_close(seg->fd);

    free(seg->line);
    free(seg->fence);
    free(seg);
}


uint64_t
ron_tag_segment_bytes(const ron_tag_segment_t *seg)
{
    return ron_tag_index_at(seg) + seg->line_n * RON_TAG_LINE_LEN
           + seg->block_n * sizeof(uint64_t);
}


/* Where the filter begins. */

static uint64_t
ron_tag_index_at(const ron_tag_segment_t *seg)
{
    return (1 + seg->block_n) * RON_TAG_BLOCK_LEN;
}


static void
ron_tag_header_put(const ron_tag_place_t *place, const ron_tag_segment_t *seg,
    const ron_hash_t *index, uint8_t *h)
{
    size_t      len;
    ron_hash_t  sum;

    memset(h, 0, RON_TAG_BLOCK_LEN);

    len = strlen(place->name);

    memcpy(h, RON_TAG_MAGIC, RON_TAG_MAGIC_LEN);
    ron_tag_wr64(h + 8, place->ledger_id);
    ron_tag_wr64(h + 16, seg->info.no);
    ron_tag_wr64(h + 24, (uint64_t) seg->info.tier << 32 | RON_TAG_SHAPE);
    ron_tag_wr64(h + 32, seg->info.seq_lo);
    ron_tag_wr64(h + 40, seg->info.seq_hi);
    ron_tag_wr64(h + 48, seg->info.oldest_ms);
    ron_tag_wr64(h + 56, seg->info.newest_ms);
    ron_tag_wr64(h + 64, seg->info.tag_n);
    ron_tag_wr64(h + 72, seg->block_n);
    ron_tag_wr64(h + 80, seg->line_n);
    memcpy(h + RON_TAG_INDEX_HASH_AT, index->b, RON_HASH_LEN);
    h[RON_TAG_NAME_AT] = (uint8_t) len;
    memcpy(h + RON_TAG_NAME_AT + 1, place->name, len);

    ron_blake3(h, RON_TAG_HEADER_SUM_AT, &sum);
    memcpy(h + RON_TAG_HEADER_SUM_AT, sum.b, RON_HASH_LEN);
}


/*
 * The hash proves that this is the header that the manifest means; comparing
 * it with one made from the manifest proves every byte that the two share.
 */

static ron_status_t
ron_tag_header_get(const ron_tag_place_t *place, const ron_tag_info_t *want,
    const uint8_t *h, uint64_t *block_n, uint64_t *line_n)
{
    uint8_t            again[RON_TAG_BLOCK_LEN];
    ron_hash_t         index;
    ron_tag_segment_t  seg;

    memset(&seg, 0, sizeof(seg));

    seg.info = *want;
    seg.block_n = ron_tag_rd64(h + 72);
    seg.line_n = ron_tag_rd64(h + 80);
    memcpy(index.b, h + RON_TAG_INDEX_HASH_AT, RON_HASH_LEN);

    ron_tag_header_put(place, &seg, &index, again);

    if (memcmp(h, again, RON_TAG_BLOCK_LEN) != 0
        || memcmp(h + RON_TAG_HEADER_SUM_AT, want->header.b, RON_HASH_LEN) != 0
        || want->tag_n > INT64_MAX / RON_TAG_BLOCK_LEN
        || seg.block_n != (want->tag_n + RON_TAG_BLOCK_TAGS - 1)
                          / RON_TAG_BLOCK_TAGS
        || seg.line_n == 0
        || seg.line_n > INT64_MAX / RON_TAG_BLOCK_LEN)
    {
        return ron_corrupt();
    }

    *block_n = seg.block_n;
    *line_n = seg.line_n;

    return RON_OK;
}


ron_status_t
ron_tag_segment_open(const ron_tag_place_t *place, const ron_tag_info_t *info,
    ron_tag_segment_t **segment)
{
    uint8_t             h[RON_TAG_BLOCK_LEN];
    uint64_t            block_n, line_n;
    ron_fd_t            fd;
    ron_status_t        status;
    ron_tag_segment_t  *seg;

    *segment = NULL;

    status = ron_tag_header_open(place, info, h, &fd, &block_n, &line_n);
    if (status != RON_OK) {
        return status;
    }

    seg = ron_tag_segment_new(info, block_n, line_n);
    if (seg == NULL) {
        ron_file_close(fd);
        return RON_ENOMEM;
    }

    seg->fd = fd;

    status = ron_tag_index_load(seg, h + RON_TAG_INDEX_HASH_AT);
    if (status != RON_OK) {
        ron_tag_segment_free(seg);
        return status;
    }

    *segment = seg;

    return RON_OK;
}


ron_status_t
ron_tag_segment_verify(const ron_tag_place_t *place,
    const ron_tag_info_t *info)
{
    uint8_t       h[RON_TAG_BLOCK_LEN];
    uint64_t      block_n, line_n;
    ron_fd_t      fd;
    ron_status_t  status;

    status = ron_tag_header_open(place, info, h, &fd, &block_n, &line_n);

    ron_file_close(fd);

    return status;
}


/*
 * The header before the size before the memory: nothing is asked for that a
 * hash has not vouched for.
 */

static ron_status_t
ron_tag_header_open(const ron_tag_place_t *place, const ron_tag_info_t *info,
    uint8_t *h, ron_fd_t *fd, uint64_t *block_n, uint64_t *line_n)
{
    char          path[RON_TAG_PATH_MAX];
    uint64_t      size;
    ron_status_t  status;

    *block_n = 0;
    *line_n = 0;

    ron_tag_segment_path(path, place, info->no);

    status = ron_file_open(path, RON_OPEN_READ, fd);
    if (status != RON_OK) {
        return status;
    }

    status = ron_file_size(*fd, &size);

    if (status == RON_OK && size < RON_TAG_BLOCK_LEN) {
        status = ron_corrupt();
    }

    if (status == RON_OK
        && ron_file_pread(*fd, h, RON_TAG_BLOCK_LEN, 0) != RON_OK)
    {
        status = ron_corrupt();
    }

    if (status == RON_OK) {
        status = ron_tag_header_get(place, info, h, block_n, line_n);
    }

    if (status == RON_OK
        && size != (1 + *block_n) * RON_TAG_BLOCK_LEN
                   + *line_n * RON_TAG_LINE_LEN + *block_n * sizeof(uint64_t))
    {
        status = ron_corrupt();
    }

    if (status != RON_OK) {
        ron_file_close(*fd);
        *fd = RON_FD_NONE;
    }

    return status;
}


static ron_status_t
ron_tag_index_load(ron_tag_segment_t *seg, const uint8_t *want)
{
    uint64_t      at, line_len;
    ron_hash_t    hash;
    ron_status_t  status;

    at = ron_tag_index_at(seg);
    line_len = seg->line_n * RON_TAG_LINE_LEN;

    status = ron_file_pread(seg->fd, seg->line, (size_t) line_len, at);

    if (status == RON_OK) {
        status = ron_file_pread(seg->fd, seg->fence,
                                (size_t) seg->block_n * sizeof(uint64_t),
                                at + line_len);
    }

    if (status != RON_OK) {
        return ron_corrupt();
    }

    ron_tag_index_hash(seg, &hash);

    if (memcmp(hash.b, want, RON_HASH_LEN) != 0) {
        return ron_corrupt();
    }

    ron_tag_words_le(seg->line, seg->line_n * RON_TAG_LINE_WORDS);
    ron_tag_words_be(seg->fence, seg->block_n);

    return RON_OK;
}


/* Over the bytes of the file, not over the numbers that they stand for. */

static void
ron_tag_index_hash(const ron_tag_segment_t *seg, ron_hash_t *out)
{
    ron_blake3_t  h;

    ron_blake3_init(&h);
    ron_blake3_update(&h, seg->line, (size_t) seg->line_n * RON_TAG_LINE_LEN);
    ron_blake3_update(&h, seg->fence,
                      (size_t) seg->block_n * sizeof(uint64_t));
    ron_blake3_final(&h, out);
}


/* Bytes of the file to numbers, and back: the same swap both ways. */

static void
ron_tag_words_le(uint64_t *word, uint64_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    (void) word;
    (void) n;
#else
    uint64_t  i;

    for (i = 0; i < n; i++) {
        word[i] = __builtin_bswap64(word[i]);
    }
#endif
}


static void
ron_tag_words_be(uint64_t *word, uint64_t n)
{
    uint64_t  i;

    for (i = 0; i < n; i++) {
        word[i] = ron_tag_rd64((const uint8_t *) &word[i]);
    }
}


ron_status_t
ron_tag_segment_find(const ron_tag_segment_t *seg, ron_tag_key_t key,
    uint64_t *seq)
{
    uint8_t       block[RON_TAG_BLOCK_LEN];
    uint64_t      i;
    ron_status_t  status;

    *seq = 0;

    /* more than one block only when first halves of tags are equal */

    for (i = ron_tag_fence_seek(seg, key.hi);
         i < seg->block_n && seg->fence[i] <= key.hi;
         i++)
    {
        status = ron_tag_segment_read(seg, i, 1, block);
        if (status != RON_OK) {
            return status;
        }

        if (ron_tag_block_find(block, ron_tag_block_tags(seg, i), key, seq)) {
            return RON_OK;
        }
    }

    return RON_ENOTFOUND;
}


/*
 * The last block whose first tag is below hi: what tags of even spread say is
 * within a few blocks of where the division says, hence the gallop.
 */

static uint64_t
ron_tag_fence_seek(const ron_tag_segment_t *seg, uint64_t hi)
{
    uint64_t  lo, mid, end, step;

    if (seg->block_n == 0) {
        return 0;
    }

    mid = ron_tag_scale(hi, seg->block_n);
    step = 1;

    /* until fence[lo] < hi or lo == 0, and fence[end] >= hi or end == n */

    if (seg->fence[mid] < hi) {
        lo = mid;
        end = mid + 1;

        while (end < seg->block_n && seg->fence[end] < hi) {
            lo = end;
            step *= 2;
            end = step < seg->block_n - end ? end + step : seg->block_n;
        }

    } else {
        end = mid;
        lo = mid;

        while (lo > 0 && seg->fence[lo] >= hi) {
            end = lo;
            lo -= ron_min(step, lo);
            step *= 2;
        }
    }

    while (end > lo + 1) {

        mid = lo + (end - lo) / 2;

        if (seg->fence[mid] < hi) {
            lo = mid;

        } else {
            end = mid;
        }
    }

    return lo;
}


static bool
ron_tag_block_find(const uint8_t *block, size_t n, ron_tag_key_t key,
    uint64_t *seq)
{
    size_t          lo, mid, end;
    uint64_t        hi;
    const uint8_t  *p;

    lo = 0;
    end = n;

    while (lo < end) {

        mid = lo + (end - lo) / 2;
        p = block + RON_TAG_SUM_LEN + mid * RON_TAG_RECORD_LEN;
        hi = ron_tag_rd64(p);

        if (hi < key.hi || (hi == key.hi && ron_tag_rd64(p + 8) < key.lo)) {
            lo = mid + 1;

        } else {
            end = mid;
        }
    }

    if (lo == n) {
        return false;
    }

    p = block + RON_TAG_SUM_LEN + lo * RON_TAG_RECORD_LEN;

    if (ron_tag_rd64(p) != key.hi || ron_tag_rd64(p + 8) != key.lo) {
        return false;
    }

    *seq = ron_tag_rd64(p + 16);

    return true;
}


static size_t
ron_tag_block_tags(const ron_tag_segment_t *seg, uint64_t i)
{
    return (size_t) ron_min(seg->info.tag_n - i * RON_TAG_BLOCK_TAGS,
                            RON_TAG_BLOCK_TAGS);
}


ron_status_t
ron_tag_segment_read(const ron_tag_segment_t *seg, uint64_t block, size_t n,
    uint8_t *buf)
{
    size_t        i;
    uint8_t       want[RON_TAG_SUM_LEN], sum[RON_TAG_SUM_LEN];
    ron_status_t  status;

    status = ron_file_pread(seg->fd, buf, n * RON_TAG_BLOCK_LEN,
                            (1 + block) * RON_TAG_BLOCK_LEN);

    if (status == RON_ENOTFOUND) {
        return ron_corrupt();
    }

    if (status != RON_OK) {
        return status;
    }

    for (i = 0; i < n; i++) {

        memcpy(want, buf, RON_TAG_SUM_LEN);
        ron_tag_block_sum(buf, seg->info.no, block + i, sum);

        if (memcmp(want, sum, RON_TAG_SUM_LEN) != 0) {
            return ron_corrupt();
        }

        buf += RON_TAG_BLOCK_LEN;
    }

    return RON_OK;
}


/*
 * The numbers go where the sum was, so that the hash runs over one piece of
 * exactly four of BLAKE3's chunks.
 */

static void
ron_tag_block_sum(uint8_t *block, uint64_t no, uint64_t i,
    uint8_t sum[RON_TAG_SUM_LEN])
{
    ron_hash_t  hash;

    ron_tag_wr64(block, no);
    ron_tag_wr64(block + 8, i);

    ron_blake3(block, RON_TAG_BLOCK_LEN, &hash);

    memcpy(sum, hash.b, RON_TAG_SUM_LEN);
}


ron_status_t
ron_tag_segment_check(const ron_tag_segment_t *seg)
{
    size_t         j, n;
    uint8_t       *buf;
    uint64_t       i;
    ron_status_t   status;
    ron_tag_key_t  last;

    buf = malloc(RON_TAG_CHECK_BLOCKS * RON_TAG_BLOCK_LEN);
    if (buf == NULL) {
        return RON_ENOMEM;
    }

    status = RON_OK;
    last.hi = 0;
    last.lo = 0;

    for (i = 0; i < seg->block_n && status == RON_OK; i += n) {

        n = (size_t) ron_min(seg->block_n - i, RON_TAG_CHECK_BLOCKS);

        status = ron_tag_segment_read(seg, i, n, buf);

        for (j = 0; j < n && status == RON_OK; j++) {
            status = ron_tag_check_block(seg, i + j,
                                         buf + j * RON_TAG_BLOCK_LEN, &last);
        }
    }

    free(buf);

    return status;
}


static ron_status_t
ron_tag_check_block(const ron_tag_segment_t *seg, uint64_t i,
    const uint8_t *block, ron_tag_key_t *last)
{
    size_t           j, n;
    uint64_t         seq;
    ron_tag_key_t    key;
    const uint8_t   *p;
    ron_tag_mask_t   mask;
    const uint64_t  *line;

    n = ron_tag_block_tags(seg, i);

    for (j = 0; j < n; j++) {

        p = block + RON_TAG_SUM_LEN + j * RON_TAG_RECORD_LEN;

        key.hi = ron_tag_rd64(p);
        key.lo = ron_tag_rd64(p + 8);
        seq = ron_tag_rd64(p + 16);

        line = seg->line + RON_TAG_LINE_WORDS
                           * ron_tag_scale(key.hi, seg->line_n);
        ron_tag_mask(&mask, key);

        if (seq == 0
            || seq > seg->info.seq_hi
            || (j == 0 && seg->fence[i] != key.hi)
            || !ron_tag_line_has(line, &mask))
        {
            return ron_corrupt();
        }

        if ((i != 0 || j != 0)
            && (key.hi < last->hi
                || (key.hi == last->hi && key.lo <= last->lo)))
        {
            return ron_corrupt();
        }

        *last = key;
    }

    return RON_OK;
}


ron_status_t
ron_tag_build_start(ron_tag_build_t *b, const ron_tag_place_t *place,
    const ron_tag_info_t *info, uint64_t tag_max, ron_tag_pace_pt pace,
    void *ctx)
{
    uint64_t      line_n;
    ron_status_t  status;

    memset(b, 0, sizeof(ron_tag_build_t));

    b->place = place;
    b->pace = pace;
    b->ctx = ctx;
    b->off = RON_TAG_BLOCK_LEN;

    /* the count is known only after a merge has dropped what was double */

    b->fence_cap = (tag_max + RON_TAG_BLOCK_TAGS - 1) / RON_TAG_BLOCK_TAGS;

    line_n = tag_max * RON_TAG_FILTER_BITS / (RON_TAG_LINE_LEN * 8) + 1;

    b->piece = malloc(RON_TAG_PIECE_LEN);
    b->segment = ron_tag_segment_new(info, b->fence_cap, line_n);

    if (b->piece == NULL || b->segment == NULL) {
        ron_tag_build_abort(b);
        return RON_ENOMEM;
    }

    b->segment->block_n = 0;
    b->segment->info.tag_n = 0;
    memset(b->segment->line, 0, (size_t) line_n * RON_TAG_LINE_LEN);

    status = ron_tag_build_open(b);
    if (status != RON_OK) {
        ron_tag_build_abort(b);
    }

    return status;
}


/* A file of that number can only be what an earlier process left behind. */

static ron_status_t
ron_tag_build_open(ron_tag_build_t *b)
{
    char          path[RON_TAG_PATH_MAX];
    ron_status_t  status;

    ron_tag_segment_path(path, b->place, b->segment->info.no);

    status = ron_file_open(path, RON_OPEN_WRITE | RON_OPEN_CREATE,
                           &b->segment->fd);
    if (status != RON_OK) {
        return status;
    }

    return ron_file_truncate(b->segment->fd, 0);
}


ron_status_t
ron_tag_build_add(ron_tag_build_t *b, ron_tag_key_t key, uint64_t seq)
{
    uint8_t            *p;
    unsigned            i;
    uint64_t           *line;
    ron_status_t        status;
    ron_tag_mask_t      mask;
    ron_tag_segment_t  *seg;

    seg = b->segment;

    RON_ASSERT(seg->info.tag_n == 0
               || key.hi > b->last.hi
               || (key.hi == b->last.hi && key.lo > b->last.lo));

    if (b->record_n == 0) {
        status = ron_tag_build_fence(b, key.hi);
        if (status != RON_OK) {
            return status;
        }
    }

    p = b->piece + b->piece_len + RON_TAG_SUM_LEN
        + b->record_n * RON_TAG_RECORD_LEN;

    ron_tag_wr64(p, key.hi);
    ron_tag_wr64(p + 8, key.lo);
    ron_tag_wr64(p + 16, seq);

    line = seg->line + RON_TAG_LINE_WORDS
                       * ron_tag_scale(key.hi, seg->line_n);
    ron_tag_mask(&mask, key);

    for (i = 0; i < RON_TAG_LINE_WORDS; i++) {
        line[i] |= mask.m[i];
    }

    b->last = key;
    seg->info.tag_n++;

    if (++b->record_n == RON_TAG_BLOCK_TAGS) {
        ron_tag_build_block(b);
    }

    return RON_OK;
}


/* Begins a block, and makes room for it. */

static ron_status_t
ron_tag_build_fence(ron_tag_build_t *b, uint64_t hi)
{
    ron_status_t  status;

    RON_ASSERT(b->segment->block_n < b->fence_cap);

    if (b->piece_len == RON_TAG_PIECE_LEN) {
        status = ron_tag_build_piece(b);
        if (status != RON_OK) {
            return status;
        }
    }

    b->segment->fence[b->segment->block_n] = hi;

    return RON_OK;
}


static void
ron_tag_build_block(ron_tag_build_t *b)
{
    size_t    used;
    uint8_t  *block, sum[RON_TAG_SUM_LEN];

    block = b->piece + b->piece_len;
    used = RON_TAG_SUM_LEN + b->record_n * RON_TAG_RECORD_LEN;

    memset(block + used, 0, RON_TAG_BLOCK_LEN - used);

    ron_tag_block_sum(block, b->segment->info.no, b->segment->block_n, sum);
    memcpy(block, sum, RON_TAG_SUM_LEN);

    b->segment->block_n++;
    b->piece_len += RON_TAG_BLOCK_LEN;
    b->record_n = 0;
}


static ron_status_t
ron_tag_build_piece(ron_tag_build_t *b)
{
    ron_status_t  status;

    status = ron_tag_build_write(b, b->piece, b->piece_len);

    b->piece_len = 0;

    return status;
}


/*
 * Dirty pages go out in small parts: a sync of the journal that finds much of a
 * segment on its way to the same disk waits for all of it.
 */

static ron_status_t
ron_tag_build_write(ron_tag_build_t *b, const void *data, uint64_t len)
{
    size_t          n;
    ron_status_t    status;
    const uint8_t  *p;

    for (p = data; len != 0; p += n, len -= n) {

        n = (size_t) ron_min(len, RON_TAG_PIECE_LEN);

        status = ron_file_pwrite(b->segment->fd, p, n, b->off);

        b->off += n;
        b->unsynced_len += n;

        if (status == RON_OK && b->unsynced_len >= RON_TAG_SYNC_LEN) {
            status = ron_file_sync(b->segment->fd);
            b->unsynced_len = 0;
        }

        if (status == RON_OK && b->pace) {
            status = b->pace(b->ctx);
        }

        if (status != RON_OK) {
            return status;
        }
    }

    return RON_OK;
}


ron_status_t
ron_tag_build_end(ron_tag_build_t *b, ron_tag_segment_t **segment)
{
    ron_status_t  status;

    *segment = NULL;

    if (b->record_n != 0) {
        ron_tag_build_block(b);
    }

    status = ron_tag_build_piece(b);

    if (status == RON_OK) {
        status = ron_tag_build_index(b);
    }

    if (status == RON_OK) {
        status = ron_file_sync(b->segment->fd);
    }

    if (status == RON_OK) {
        status = ron_dir_sync(b->place->dir);
    }

    if (status != RON_OK) {
        return status;
    }

    *segment = b->segment;
    b->segment = NULL;

    free(b->piece);
    b->piece = NULL;

    return RON_OK;
}


/* Filter and fences, and the header last: it has the hash of both. */

static ron_status_t
ron_tag_build_index(ron_tag_build_t *b)
{
    uint8_t             h[RON_TAG_BLOCK_LEN];
    ron_hash_t          index;
    ron_status_t        status;
    ron_tag_segment_t  *seg;

    seg = b->segment;

    ron_tag_words_le(seg->line, seg->line_n * RON_TAG_LINE_WORDS);
    ron_tag_words_be(seg->fence, seg->block_n);

    ron_tag_index_hash(seg, &index);

    status = ron_tag_build_write(b, seg->line,
                                 seg->line_n * RON_TAG_LINE_LEN);

    if (status == RON_OK) {
        status = ron_tag_build_write(b, seg->fence,
                                     seg->block_n * sizeof(uint64_t));
    }

    ron_tag_words_le(seg->line, seg->line_n * RON_TAG_LINE_WORDS);
    ron_tag_words_be(seg->fence, seg->block_n);

    if (status != RON_OK) {
        return status;
    }

    ron_tag_header_put(b->place, seg, &index, h);
    memcpy(seg->info.header.b, h + RON_TAG_HEADER_SUM_AT, RON_HASH_LEN);

    return ron_file_pwrite(seg->fd, h, sizeof(h), 0);
}


void
ron_tag_build_abort(ron_tag_build_t *b)
{
    char  path[RON_TAG_PATH_MAX];

    if (b->segment != NULL && b->segment->fd != RON_FD_NONE) {
        ron_tag_segment_path(path, b->place, b->segment->info.no);
        (void) ron_file_unlink(path);
    }

    ron_tag_segment_free(b->segment);
    b->segment = NULL;

    free(b->piece);
    b->piece = NULL;
}
