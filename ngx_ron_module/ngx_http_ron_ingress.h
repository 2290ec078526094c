
/*
 * Bodies that are parsed in threads.
 *
 * A body that is longer than ron_ingress_offload, or that inflates to more,
 * would keep the event loop from everybody else.  It goes to a thread of
 * NGINX's pool with memory of its own.  ron_ledger_ingress_workers are parsed
 * at once, counted over all workers in the zone; the others wait in the queue
 * "parse", counted there too, which refuses what it has no room for.
 *
 * The request waits under its deadline.  When it ends before its body has
 * been parsed, the task is let go: it comes back to nobody, and is freed.
 */

#ifndef _NGX_HTTP_RON_INGRESS_H_INCLUDED_
#define _NGX_HTTP_RON_INGRESS_H_INCLUDED_


#include "ngx_http_ron.h"

#include "ron_api_body.h"


typedef struct {
    ngx_uint_t       workers;
    size_t           offload;
    ngx_msec_t       delay;                 /* for tests */
} ngx_http_ron_ingress_conf_t;


/*
 * A whole body came.  NGX_DECLINED: it is a small one, to be parsed here.
 * Else what ngx_http_finalize_request() takes: NGX_DONE, and the route's
 * handler is called later, or it was refused.
 */
ngx_int_t ngx_http_ron_ingress(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx);

/* What a thread made of the body; NULL: it is to be parsed here. */
ron_api_body_t *ngx_http_ron_ingress_parsed(ngx_http_ron_ctx_t *ctx);

/* Nobody needs it any more, whatever it is at. */
void ngx_http_ron_ingress_drop(ngx_http_ron_ctx_t *ctx);

/* What gzip may become. */
size_t ngx_http_ron_inflate_max(ngx_http_request_t *r, size_t len);


extern ngx_module_t  ngx_http_ron_ingress_module;


#endif /* _NGX_HTTP_RON_INGRESS_H_INCLUDED_ */
