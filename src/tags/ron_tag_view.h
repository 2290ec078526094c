
/*
 * A view: the segments that count at one moment.  Views never change once
 * published; a writer makes another.  Internal to src/tags.
 */

#ifndef RON_TAG_VIEW_H
#define RON_TAG_VIEW_H


#include "ron_tag_manifest.h"


/* All that a look-up touches of a segment that does not have the tag. */
typedef struct {
    const uint64_t  *line;
    uint64_t         line_n;
} ron_tag_probe_t;


typedef struct ron_tag_view_s  ron_tag_view_t;

struct ron_tag_view_s {
    ron_tag_view_t      *next;          /* of those waiting to be freed */
    uint64_t             expired_seq;
    uint64_t             expired_ms;
    uint64_t             covered;
    uint64_t             covered_ms;
    uint32_t             n;
    ron_tag_segment_t  **segment;       /* oldest first */
    ron_tag_probe_t     *probe;         /* the same order */
};


/*
 * What the directory holds.  Segments that `old` (or NULL) has open are
 * shared.  *whole is false when something was left out; *next_no is above
 * every number that the manifest knows.  RON_AGAIN when a file that the
 * manifest names is not there and `again` is set: somebody else writes here,
 * and the manifest has to be read once more.
 */
ron_status_t ron_tag_view_load(const ron_tag_place_t *place,
    const ron_tag_view_t *old, bool again, ron_tag_view_t **view,
    uint64_t *next_no, bool *whole);

/*
 * A view like `old` in which `segment` (NULL: nothing) stands for the `n`
 * segments from `at` on.
 */
ron_status_t ron_tag_view_replace(const ron_tag_view_t *old, uint32_t at,
    uint32_t n, ron_tag_segment_t *segment, ron_tag_view_t **view);

ron_status_t ron_tag_view_empty(ron_tag_view_t **view);

/* Closes the segments that no other view has. */
void ron_tag_view_free(ron_tag_view_t *view);

/* Writes the manifest that says so. */
ron_status_t ron_tag_view_save(const ron_tag_place_t *place,
    const ron_tag_view_t *view, uint64_t next_no, bool *replaced);

/*
 * Removes files of this store that the view does not have (when `unlink`) and
 * raises *next_no above all that there are.
 */
ron_status_t ron_tag_view_sweep(const ron_tag_place_t *place,
    const ron_tag_view_t *view, bool unlink, uint64_t *next_no);


#endif /* RON_TAG_VIEW_H */
