
/*
 * Several segments into one.  Internal to src/tags.
 */

#ifndef RON_TAG_MERGE_H
#define RON_TAG_MERGE_H


#include "ron_tag_segment.h"


/*
 * Merges n neighbours, oldest first, into the segment that `info` describes;
 * of equal tags the greatest seq stays.  An input that cannot be read is
 * marked as damaged.  RON_ECANCELED and the like come from `pace`.
 */
ron_status_t ron_tag_merge(const ron_tag_place_t *place,
    ron_tag_segment_t **in, uint32_t n, const ron_tag_info_t *info,
    ron_tag_pace_pt pace, void *ctx, ron_tag_segment_t **out);


#endif /* RON_TAG_MERGE_H */
