
/* What POST and GET /ledger/admin/snapshot answer. */

#ifndef RON_API_SNAPSHOT_H
#define RON_API_SNAPSHOT_H


#include "ron_api.h"


/*
 * RON_OK: the body.  RON_EINVAL: the problem in err; 409 while one is being
 * taken, 404 when none are configured.
 */
ron_status_t ron_api_snapshot_answer(ron_buf_t *out,
    const ron_msg_admin_t *admin, ron_api_error_t *err);


#endif /* RON_API_SNAPSHOT_H */
