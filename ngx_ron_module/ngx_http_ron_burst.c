
/*
 * Answers that come together leave together.
 *
 * The helper answers a whole batch in one write, a thread reads many proofs at
 * once.  Answered one by one, each client is woken for an answer of its own,
 * sleeps again before the next one is made, and waking costs more than writing.
 * So what comes together is made first, and written then, in one go.
 *
 * NGINX has the means: a connection whose write event is delayed keeps its
 * output (limit_rate), and its write handler goes on where it was left.
 * Nothing else happens in between: all of it is one call of an event's handler.
 */

#include "ngx_http_ron.h"


#define NGX_HTTP_RON_BURST_MAX  256


static ngx_http_ron_ctx_t  *ngx_http_ron_burst[NGX_HTTP_RON_BURST_MAX];
static ngx_uint_t           ngx_http_ron_burst_n;


ngx_int_t
ngx_http_ron_burst_init(ngx_cycle_t *cycle)
{
    ngx_ron_ipc_answered(ngx_http_ron_burst_over);

    return NGX_OK;
}


void
ngx_http_ron_burst_hold(ngx_http_ron_ctx_t *ctx)
{
    ngx_event_t         *wev;
    ngx_http_request_t  *r;

    r = ctx->request;
    wev = r->connection->write;

    /* streams of HTTP/2 and later are put together by NGINX itself */

    if (ctx->burst || r != r->main || r->http_version >= NGX_HTTP_VERSION_20
        || wev->delayed || !wev->ready
        || ngx_http_ron_burst_n == NGX_HTTP_RON_BURST_MAX)
    {
        return;
    }

    wev->delayed = 1;

    ngx_http_ron_burst[ngx_http_ron_burst_n] = ctx;
    ctx->burst = ++ngx_http_ron_burst_n;
}


void
ngx_http_ron_burst_drop(ngx_http_ron_ctx_t *ctx)
{
    if (ctx->burst == 0) {
        return;
    }

    ngx_http_ron_burst[ctx->burst - 1] = NULL;
    ctx->burst = 0;
    ctx->request->connection->write->delayed = 0;
}


void
ngx_http_ron_burst_over(void)
{
    ngx_uint_t           i;
    ngx_event_t         *wev;
    ngx_http_ron_ctx_t  *ctx;

    for (i = 0; i < ngx_http_ron_burst_n; i++) {

        ctx = ngx_http_ron_burst[i];

        if (ctx == NULL) {
            continue;
        }

        wev = ctx->request->connection->write;

        ngx_http_ron_burst_drop(ctx);

        /* one that waits for a thread has nothing to write yet */

        wev->handler(wev);
    }

    ngx_http_ron_burst_n = 0;
}
