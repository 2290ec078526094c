
#ifndef _NGX_HTTP_RON_SNAPSHOT_H_INCLUDED_
#define _NGX_HTTP_RON_SNAPSHOT_H_INCLUDED_


#include "ngx_http_ron.h"


/* POST and GET /ledger/admin/snapshot */
ngx_int_t ngx_http_ron_snapshot(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);


#endif /* _NGX_HTTP_RON_SNAPSHOT_H_INCLUDED_ */
