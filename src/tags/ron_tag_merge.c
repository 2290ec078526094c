
/*
 * The merge reads each input in pieces of 16 blocks and picks the smallest
 * head.  Inputs are few (the fan-out), so a scan of the heads beats a heap:
 * they lie in one or two cache lines and nothing is moved.
 */

#include "ron_tag_merge.h"

#include <stdlib.h>


#define RON_TAG_READ_BLOCKS  16


typedef struct {
    ron_tag_segment_t  *segment;
    uint8_t            *buf;
    const uint8_t      *pos;            /* next record */
    uint64_t            block;          /* next one to read */
    uint64_t            left;           /* tags not yet taken as head */
    size_t              block_n;        /* in buf */
    size_t              block_i;
    size_t              record_i;
} ron_tag_reader_t;


typedef struct {
    ron_tag_key_t  key;
    uint64_t       seq;
} ron_tag_head_t;


typedef struct {
    uint32_t           n;
    ron_tag_head_t    *head;            /* of the inputs that have one */
    ron_tag_reader_t  *reader;          /* the same order */
} ron_tag_merger_t;


static ron_status_t ron_tag_merge_start(ron_tag_merger_t *m,
    ron_tag_segment_t **in, uint32_t n);
static ron_status_t ron_tag_merge_run(ron_tag_merger_t *m,
    ron_tag_build_t *b);
static void ron_tag_merge_free(ron_tag_merger_t *m);
static ron_status_t ron_tag_merge_next(ron_tag_merger_t *m, uint32_t i);
static ron_status_t ron_tag_reader_next(ron_tag_reader_t *r,
    ron_tag_head_t *head);
static ron_status_t ron_tag_reader_fill(ron_tag_reader_t *r);


static inline bool
ron_tag_before(const ron_tag_head_t *a, const ron_tag_head_t *b)
{
    if (a->key.hi != b->key.hi) {
        return a->key.hi < b->key.hi;
    }

    if (a->key.lo != b->key.lo) {
        return a->key.lo < b->key.lo;
    }

    return a->seq > b->seq;     /* of equal tags the newest comes first */
}


ron_status_t
ron_tag_merge(const ron_tag_place_t *place, ron_tag_segment_t **in, uint32_t n,
    const ron_tag_info_t *info, ron_tag_pace_pt pace, void *ctx,
    ron_tag_segment_t **out)
{
    uint32_t          i;
    uint64_t          tag_max;
    ron_status_t      status;
    ron_tag_build_t   b;
    ron_tag_merger_t  m;

    *out = NULL;

    tag_max = 0;

    for (i = 0; i < n; i++) {
        tag_max += in[i]->info.tag_n;
    }

    status = ron_tag_build_start(&b, place, info, tag_max, pace, ctx);
    if (status != RON_OK) {
        return status;
    }

    status = ron_tag_merge_start(&m, in, n);

    if (status == RON_OK) {
        status = ron_tag_merge_run(&m, &b);
    }

    if (status == RON_OK) {
        status = ron_tag_build_end(&b, out);
    }

    ron_tag_merge_free(&m);

    if (status != RON_OK) {
        ron_tag_build_abort(&b);
    }

    return status;
}


static ron_status_t
ron_tag_merge_start(ron_tag_merger_t *m, ron_tag_segment_t **in, uint32_t n)
{
    uint32_t           i;
    ron_status_t       status;
    ron_tag_reader_t  *r;

    RON_ASSERT(n >= 1);

    m->n = 0;
    m->head = calloc(n, sizeof(ron_tag_head_t));
    m->reader = calloc(n, sizeof(ron_tag_reader_t));

    if (m->head == NULL || m->reader == NULL) {
        return RON_ENOMEM;
    }

    for (i = 0; i < n; i++) {

        if (in[i]->info.tag_n == 0) {
            continue;
        }

        r = &m->reader[m->n++];

        r->segment = in[i];
        r->left = in[i]->info.tag_n;

        r->buf = malloc(RON_TAG_READ_BLOCKS * RON_TAG_BLOCK_LEN);
        if (r->buf == NULL) {
            return RON_ENOMEM;
        }
    }

    for (i = 0; i < m->n; i++) {
        status = ron_tag_reader_next(&m->reader[i], &m->head[i]);
        if (status != RON_OK) {
            return status;
        }
    }

    return RON_OK;
}


static void
ron_tag_merge_free(ron_tag_merger_t *m)
{
    uint32_t  i;

    for (i = 0; m->reader != NULL && i < m->n; i++) {
        free(m->reader[i].buf);
    }

    free(m->head);
    free(m->reader);
}


static ron_status_t
ron_tag_merge_run(ron_tag_merger_t *m, ron_tag_build_t *b)
{
    bool            any;
    uint32_t        i, first;
    ron_status_t    status;
    ron_tag_head_t  last;

    any = false;
    memset(&last, 0, sizeof(last));

    while (m->n != 0) {

        first = 0;

        for (i = 1; i < m->n; i++) {
            if (ron_tag_before(&m->head[i], &m->head[first])) {
                first = i;
            }
        }

        if (!any
            || m->head[first].key.hi != last.key.hi
            || m->head[first].key.lo != last.key.lo)
        {
            any = true;
            last = m->head[first];

            status = ron_tag_build_add(b, last.key, last.seq);
            if (status != RON_OK) {
                return status;
            }
        }

        status = ron_tag_merge_next(m, first);
        if (status != RON_OK) {
            return status;
        }
    }

    return RON_OK;
}


static ron_status_t
ron_tag_merge_next(ron_tag_merger_t *m, uint32_t i)
{
    ron_tag_key_t  last;
    ron_status_t   status;

    if (m->reader[i].left == 0) {

        free(m->reader[i].buf);

        m->n--;
        m->reader[i] = m->reader[m->n];
        m->head[i] = m->head[m->n];

        return RON_OK;
    }

    last = m->head[i].key;

    status = ron_tag_reader_next(&m->reader[i], &m->head[i]);
    if (status != RON_OK) {
        return status;
    }

    /* sums are right, so somebody wrote these: our bug, but found in time */

    if (m->head[i].key.hi < last.hi
        || (m->head[i].key.hi == last.hi && m->head[i].key.lo <= last.lo))
    {
        m->reader[i].segment->damaged = true;
        return ron_corrupt();
    }

    return RON_OK;
}


static ron_status_t
ron_tag_reader_next(ron_tag_reader_t *r, ron_tag_head_t *head)
{
    ron_status_t  status;

    if (r->record_i == RON_TAG_BLOCK_TAGS) {
        r->record_i = 0;
        r->block_i++;
    }

    if (r->block_i == r->block_n) {

        status = ron_tag_reader_fill(r);
        if (status != RON_OK) {
            return status;
        }
    }

    if (r->record_i == 0) {
        r->pos = r->buf + r->block_i * RON_TAG_BLOCK_LEN + RON_TAG_SUM_LEN;
    }

    head->key.hi = ron_tag_rd64(r->pos);
    head->key.lo = ron_tag_rd64(r->pos + 8);
    head->seq = ron_tag_rd64(r->pos + 16);

    r->pos += RON_TAG_RECORD_LEN;
    r->record_i++;
    r->left--;

    return RON_OK;
}


static ron_status_t
ron_tag_reader_fill(ron_tag_reader_t *r)
{
    ron_status_t  status;

    r->block_n = (size_t) ron_min(r->segment->block_n - r->block,
                                  RON_TAG_READ_BLOCKS);
    r->block_i = 0;

    status = ron_tag_segment_read(r->segment, r->block, r->block_n, r->buf);

    if (status != RON_OK) {
        r->segment->damaged = status == RON_ECORRUPT;
        return status;
    }

    r->block += r->block_n;

    return RON_OK;
}
