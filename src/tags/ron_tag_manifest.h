
/*
 * The manifest: which segments count.  Format in ron_tag_manifest.c and in
 * docs/TAGS.md.  Internal to src/tags.
 */

#ifndef RON_TAG_MANIFEST_H
#define RON_TAG_MANIFEST_H


#include "ron_tag_segment.h"


#define RON_TAG_SEGMENTS_MAX  100000


/* Segments oldest first; each begins with the seq that the last ended with. */
typedef struct {
    uint64_t         next_no;
    uint64_t         expired_seq;       /* the first segment begins here */
    uint64_t         expired_ms;        /* ledger time of expired_seq */
    uint32_t         n;
    ron_tag_info_t  *info;
} ron_tag_manifest_t;


/*
 * RON_ENOTFOUND when there is none.  RON_ECORRUPT, RON_EVERSION for a later
 * format, RON_EINVAL for a sound manifest of another ledger or store.
 */
ron_status_t ron_tag_manifest_read(const ron_tag_place_t *place,
    ron_tag_manifest_t *m);
void ron_tag_manifest_free(ron_tag_manifest_t *m);

/*
 * Replaces the manifest.  When it fails with *replaced set, either one may be
 * what a power failure leaves: files that any of them names must stay.
 */
ron_status_t ron_tag_manifest_write(const ron_tag_place_t *place,
    const ron_tag_manifest_t *m, bool *replaced);

/* True when `name` is a temporary file of ron_tag_manifest_write(). */
bool ron_tag_manifest_is_temp(const ron_tag_place_t *place, const char *name);


#endif /* RON_TAG_MANIFEST_H */
