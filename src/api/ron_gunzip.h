
/*
 * A compressed body: gzip, one member, up to a bound that is known before.
 */

#ifndef RON_GUNZIP_H
#define RON_GUNZIP_H


#include "ron_buf.h"


/*
 * Appends what `in` inflates to, at most `max` bytes, to `out`, which grows
 * as that comes.  RON_EFULL: it would be more.  RON_EINVAL: not one whole
 * gzip member and nothing else.  RON_ENOMEM.
 */
ron_status_t ron_gunzip(ron_str_t in, size_t max, ron_buf_t *out);


#endif /* RON_GUNZIP_H */
