
/*
 * The invalidator of balances of a wallet whose ledger is another server.
 *
 *     tick -> lease -> connect -> hello -> commits, beats -> region
 *              ^                                |
 *              +---- pause <---- silence, end --+
 *
 * One worker listens, the one that has the lease of the region; when it dies
 * another has it a second later.  What it hears it puts into the region (see
 * ron_zone_bus.h), and every worker judges balances by it.  All waits are the
 * tick's, which may be cancelled, and the connection is idle for NGINX, so a
 * worker that is to leave closes it and goes.
 *
 * Clocks of two machines: a beat says when the ledger lived by its own clock.
 * The hello says what that clock was when it was written, which was after we
 * had asked for it: with that difference a beat never looks younger than it
 * is, however long it was on its way.  The difference shrinks by a thousandth
 * of the time that went by, for clocks creep, so once a minute we ask again.
 */

#include "ngx_http_ron_limit.h"
#include "ngx_http_ron_remote.h"
#include "ron_api_bus.h"
#include "ron_port.h"


#define NGX_HTTP_RON_FOLLOW_TICK    100
#define NGX_HTTP_RON_FOLLOW_FIRST   50
#define NGX_HTTP_RON_FOLLOW_LAST    1000
#define NGX_HTTP_RON_FOLLOW_REFUSED 10000
#define NGX_HTTP_RON_FOLLOW_READS   16
#define NGX_HTTP_RON_FOLLOW_RCVBUF  65536


typedef struct {
    ngx_event_t             tick;
    ngx_peer_connection_t   pc;
    ngx_http_ron_remote_t  *remote;
    ron_bus_t              *bus;
    ron_bus_key_t           key;
    ngx_cycle_t            *cycle;

    uint64_t                seq;        /* followed up to here */
    uint64_t                asked_us;   /* of our clock, */
    uint64_t                hello_us;   /* and after it of the ledger's */
    ngx_msec_t              heard;
    ngx_msec_t              retry;
    ngx_msec_t              pause;
    ngx_uint_t              turn;       /* of the upstream's addresses */
    ngx_str_t               request;
    size_t                  sent;

    ron_api_bus_reader_t    reader;

    unsigned                live:1;     /* hello was said */
    unsigned                refused:1;
    unsigned                said:1;     /* that it does not work */
} ngx_http_ron_follow_t;

typedef struct {
    ngx_array_t             followers;  /* ngx_http_ron_follow_t *, worker's */
} ngx_http_ron_follow_main_conf_t;

/* a balance that is being asked for */

typedef struct {
    ron_bus_t              *bus;
    uint64_t                since_us;
} ngx_http_ron_follow_ask_t;


static ngx_int_t ngx_http_ron_follow_init_zone(ngx_shm_zone_t *zone,
    void *data);
static ngx_int_t ngx_http_ron_follow_init_process(ngx_cycle_t *cycle);
static void ngx_http_ron_follow_exit_process(ngx_cycle_t *cycle);
static void *ngx_http_ron_follow_create_main_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_ron_follow_begin(ngx_cycle_t *cycle,
    ngx_array_t *all, ngx_http_ron_remote_t *remote);

static void ngx_http_ron_follow_tick(ngx_event_t *ev);
static void ngx_http_ron_follow_connect(ngx_http_ron_follow_t *f);
static ngx_int_t ngx_http_ron_follow_peer(ngx_http_ron_follow_t *f);
static ngx_int_t ngx_http_ron_follow_request(ngx_http_ron_follow_t *f);
static void ngx_http_ron_follow_write(ngx_event_t *ev);
static void ngx_http_ron_follow_read(ngx_event_t *ev);
static ngx_int_t ngx_http_ron_follow_event(ngx_http_ron_follow_t *f,
    ron_api_bus_event_t *e);
static ngx_int_t ngx_http_ron_follow_hello(ngx_http_ron_follow_t *f,
    ron_api_bus_event_t *e);
static void ngx_http_ron_follow_lost(ngx_http_ron_follow_t *f,
    ron_api_bus_event_t *e, uint64_t lost, bool other);
static void ngx_http_ron_follow_beat(ngx_http_ron_follow_t *f,
    ron_api_bus_event_t *e);
static void ngx_http_ron_follow_fail(ngx_http_ron_follow_t *f,
    const char *why);
static void ngx_http_ron_follow_close(ngx_http_ron_follow_t *f);

static ngx_uint_t ngx_http_ron_follow_known(ngx_http_ron_ctx_t *ctx,
    ron_bus_t *bus, ron_bus_balance_t *is);
static ngx_int_t ngx_http_ron_follow_reply(ngx_http_request_t *r,
    ngx_http_ron_ctx_t *ctx, ron_bus_balance_t *is);
static void ngx_http_ron_follow_answer(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc);
static void ngx_http_ron_follow_fill(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_follow_ask_t *ask, ron_api_http_t *answer);


static ngx_http_module_t  ngx_http_ron_follow_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_ron_follow_create_main_conf,  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_ron_follow_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_follow_module_ctx,       /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_ron_follow_init_process,      /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_ron_follow_exit_process,      /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/* a worker's */

static ron_bus_key_t   ngx_http_ron_follow_key;
static ron_json_doc_t  ngx_http_ron_follow_doc;


/* ---- the region --------------------------------------------------------- */

/* One for each ledger, however many locations pass to it. */

ngx_int_t
ngx_http_ron_follow_add(ngx_conf_t *cf, ngx_http_ron_remote_t *remote)
{
    ngx_str_t        name;
    ngx_shm_zone_t  *zone;

    if (remote->cache == 0) {
        return NGX_OK;
    }

    name.len = sizeof("ron_bus:") - 1 + remote->name.len + remote->path.len;
    name.data = ngx_pnalloc(cf->pool, name.len);

    if (name.data == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(name.data, "ron_bus:%V%V", &remote->name, &remote->path);

    zone = ngx_shared_memory_add(cf, &name, remote->cache,
                                 &ngx_http_ron_follow_module);
    if (zone == NULL) {
        return NGX_ERROR;
    }

    remote->bus = zone;

    if (zone->init) {
        return NGX_OK;
    }

    zone->init = ngx_http_ron_follow_init_zone;
    zone->data = ngx_pcalloc(cf->pool, sizeof(ron_bus_t));

    return zone->data ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_ron_follow_init_zone(ngx_shm_zone_t *zone, void *data)
{
    size_t         len;
    u_char        *region;
    ron_status_t   rc;

    region = ngx_http_ron_region(zone, data, &len);

    rc = region == NULL ? RON_ENOMEM
         : data != NULL ? ron_bus_adopt(region, len, zone->data)
                        : ron_bus_init(region, len, zone->data);

    return ngx_http_ron_region_done(zone, data, region, rc);
}


static void *
ngx_http_ron_follow_create_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_follow_main_conf_t));
}


/* ---- life of a worker --------------------------------------------------- */

static ngx_int_t
ngx_http_ron_follow_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                         i, k;
    ngx_array_t                       *all;
    ngx_http_ron_follow_t            **f;
    ngx_http_ron_remote_t            **remote;
    ngx_http_ron_follow_main_conf_t   *fmcf;
    ngx_http_ron_remote_main_conf_t   *rrmcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    rrmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                                ngx_http_ron_remote_module);
    fmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_ron_follow_module);

    if (rrmcf == NULL || fmcf == NULL) {
        return NGX_OK;
    }

    ngx_ron_bus_key(cycle, &ngx_http_ron_follow_key);
    ron_json_doc_init(&ngx_http_ron_follow_doc, 0);

    all = &fmcf->followers;

    if (ngx_array_init(all, cycle->pool, 1, sizeof(ngx_http_ron_follow_t *))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    remote = rrmcf->all.elts;

    for (i = 0; i < rrmcf->all.nelts; i++) {

        f = all->elts;

        for (k = 0; k < all->nelts; k++) {
            if (f[k]->remote->bus == remote[i]->bus) {
                break;
            }
        }

        if (remote[i]->bus && k == all->nelts
            && ngx_http_ron_follow_begin(cycle, all, remote[i]) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_ron_follow_begin(ngx_cycle_t *cycle, ngx_array_t *all,
    ngx_http_ron_remote_t *remote)
{
    ngx_http_ron_follow_t  *f, **to;

    f = ngx_pcalloc(cycle->pool, sizeof(ngx_http_ron_follow_t));
    to = ngx_array_push(all);

    if (f == NULL || to == NULL) {
        return NGX_ERROR;
    }

    *to = f;

    f->cycle = cycle;
    f->remote = remote;
    f->bus = remote->bus->data;
    f->key = ngx_http_ron_follow_key;
    f->pause = NGX_HTTP_RON_FOLLOW_FIRST;
    f->retry = ngx_current_msec;

    /* the data of an event looks like a connection: debug logs read its fd */

    f->tick.handler = ngx_http_ron_follow_tick;
    f->tick.data = f;
    f->tick.log = cycle->log;
    f->tick.cancelable = 1;

    ngx_add_timer(&f->tick, 1);

    return NGX_OK;
}


static void
ngx_http_ron_follow_exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                         i;
    ngx_http_ron_follow_t            **f;
    ngx_http_ron_follow_main_conf_t   *fmcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return;
    }

    fmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_ron_follow_module);

    if (fmcf == NULL || fmcf->followers.elts == NULL) {
        return;
    }

    f = fmcf->followers.elts;

    for (i = 0; i < fmcf->followers.nelts; i++) {
        ngx_http_ron_follow_close(f[i]);
        ron_bus_leave(f[i]->bus, (uint32_t) ngx_pid);
    }
}


/* ---- the connection ----------------------------------------------------- */

static void
ngx_http_ron_follow_tick(ngx_event_t *ev)
{
    ngx_msec_t              silent;
    ngx_http_ron_follow_t  *f;

    f = ev->data;

    if (ngx_exiting || ngx_quit || ngx_terminate) {
        ngx_http_ron_follow_close(f);
        ron_bus_leave(f->bus, (uint32_t) ngx_pid);
        return;
    }

    if (!ron_bus_lease(f->bus, (uint32_t) ngx_pid, ngx_ron_now(),
                       ron_timeout_info(RON_TIMEOUT_BUS_LEASE)->ms))
    {
        ngx_http_ron_follow_close(f);

    } else if (f->pc.connection == NULL) {

        if ((ngx_msec_int_t) (ngx_current_msec - f->retry) >= 0) {
            ngx_http_ron_follow_connect(f);
        }

    } else if (f->live
               && ngx_ron_now() - f->asked_us / 1000
                  > ron_timeout_info(RON_TIMEOUT_BUS_CLOCK)->ms)
    {
        /* the clocks are compared anew, with the same server */

        f->turn--;
        ngx_http_ron_follow_close(f);
        ngx_http_ron_follow_connect(f);

    } else {
        silent = ngx_current_msec - f->heard;

        if (silent > (f->live ? ron_timeout_info(RON_TIMEOUT_BUS_SILENCE)->ms
                              : f->remote->timeout))
        {
            ngx_ron_count(RON_M_IO_TIMEOUTS, RON_D_SERVICE_WALLET,
                          f->live ? RON_D_IO_READ : RON_D_IO_CONNECT, 0, 0);
            ngx_http_ron_follow_fail(f, "it is silent");
        }
    }

    ngx_add_timer(ev, NGX_HTTP_RON_FOLLOW_TICK);
}


static void
ngx_http_ron_follow_connect(ngx_http_ron_follow_t *f)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;

    ngx_memzero(&f->pc, sizeof(ngx_peer_connection_t));

    f->heard = ngx_current_msec;
    f->sent = 0;
    f->live = 0;
    f->refused = 0;

    if (ngx_http_ron_follow_peer(f) != NGX_OK
        || ngx_http_ron_follow_request(f) != NGX_OK)
    {
        ngx_http_ron_follow_fail(f, "the upstream has no address");
        return;
    }

    f->pc.get = ngx_event_get_peer;
    f->pc.log = f->cycle->log;
    f->pc.log_error = NGX_ERROR_ERR;
    f->pc.rcvbuf = NGX_HTTP_RON_FOLLOW_RCVBUF;

    ron_api_bus_reader_init(&f->reader);

    rc = ngx_event_connect_peer(&f->pc);

    if (rc == NGX_ERROR || rc == NGX_BUSY || rc == NGX_DECLINED) {
        ngx_http_ron_follow_fail(f, "it cannot be reached");
        return;
    }

    c = f->pc.connection;

    c->data = f;
    c->log = f->cycle->log;
    c->read->log = c->log;
    c->write->log = c->log;
    c->read->handler = ngx_http_ron_follow_read;
    c->write->handler = ngx_http_ron_follow_write;

    /* a worker that leaves closes it through its read handler */

    c->idle = 1;

    ngx_ron_tasks_invalidator(NGX_RON_SPAWNED);

    if (rc == NGX_OK) {
        ngx_http_ron_follow_write(c->write);
    }
}


/* The next address; what balances requests is made for requests. */

static ngx_int_t
ngx_http_ron_follow_peer(ngx_http_ron_follow_t *f)
{
    ngx_addr_t                    *addr;
    ngx_uint_t                     i, j, n, turn;
    ngx_http_upstream_server_t    *us;
    ngx_http_upstream_rr_peer_t   *peer;
    ngx_http_upstream_rr_peers_t  *peers;
    ngx_http_upstream_srv_conf_t  *uscf;

    uscf = f->remote->upstream.upstream;
    turn = f->turn++;

    if (uscf->servers == NULL) {
        peers = uscf->peer.data;

        if (peers == NULL || peers->number == 0) {
            return NGX_ERROR;
        }

        peer = peers->peer;

        for (i = turn % peers->number; i > 0; i--) {
            peer = peer->next;
        }

        f->pc.sockaddr = peer->sockaddr;
        f->pc.socklen = peer->socklen;
        f->pc.name = &peer->name;

        return NGX_OK;
    }

    us = uscf->servers->elts;
    n = 0;

    for (i = 0; i < uscf->servers->nelts; i++) {
        n += us[i].down ? 0 : us[i].naddrs;
    }

    if (n == 0) {
        return NGX_ERROR;
    }

    turn %= n;

    for (i = 0; i < uscf->servers->nelts; i++) {
        for (j = 0; !us[i].down && j < us[i].naddrs; j++) {

            if (turn-- == 0) {
                addr = &us[i].addrs[j];

                f->pc.sockaddr = addr->sockaddr;
                f->pc.socklen = addr->socklen;
                f->pc.name = &addr->name;

                return NGX_OK;
            }
        }
    }

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_ron_follow_request(ngx_http_ron_follow_t *f)
{
    u_char                 *p;
    uint64_t                seq;
    ron_hash_t              root;
    ngx_http_ron_remote_t  *remote;

    remote = f->remote;

    if (f->request.data == NULL) {
        f->request.data = ngx_pnalloc(f->cycle->pool, remote->path.len
                                      + remote->host.len + 256);
        if (f->request.data == NULL) {
            return NGX_ERROR;
        }
    }

    p = ngx_sprintf(f->request.data, "GET %Vbus", &remote->path);

    if (ron_bus_is_own(f->bus, &f->key)
        && ron_bus_head(f->bus, &seq, &root) == RON_OK)
    {
        p = ngx_sprintf(p, "?since=%uL&root=", seq);
        p = ngx_hex_dump(p, root.b, RON_HASH_LEN);
    }

    p = ngx_sprintf(p, " HTTP/1.0" CRLF "Host: %V" CRLF CRLF, &remote->host);

    f->request.len = p - f->request.data;

    return NGX_OK;
}


static void
ngx_http_ron_follow_write(ngx_event_t *ev)
{
    ssize_t                 n;
    ngx_connection_t       *c;
    ngx_http_ron_follow_t  *f;

    c = ev->data;
    f = c->data;

    if (f->sent == 0) {
        f->asked_us = ron_clock_mono_us();
    }

    while (f->sent < f->request.len) {

        n = c->send(c, f->request.data + f->sent, f->request.len - f->sent);

        if (n == NGX_AGAIN) {
            break;
        }

        if (n <= 0) {
            ngx_http_ron_follow_fail(f, "it cannot be reached");
            return;
        }

        f->sent += n;
    }

    if (ngx_handle_write_event(ev, 0) != NGX_OK) {
        ngx_http_ron_follow_fail(f, "no memory");
    }
}


static void
ngx_http_ron_follow_read(ngx_event_t *ev)
{
    u_char                  buf[8192];
    ssize_t                 n;
    ngx_uint_t              i;
    ron_str_t               in;
    ron_status_t            rc;
    ngx_connection_t       *c;
    ron_api_bus_event_t     e;
    ngx_http_ron_follow_t  *f;

    c = ev->data;
    f = c->data;

    if (c->close || ngx_exiting) {
        ngx_http_ron_follow_close(f);
        ron_bus_leave(f->bus, (uint32_t) ngx_pid);
        return;
    }

    for (i = 0; i < NGX_HTTP_RON_FOLLOW_READS; i++) {

        n = c->recv(c, buf, sizeof(buf));

        if (n == NGX_AGAIN) {
            if (ngx_handle_read_event(ev, 0) != NGX_OK) {
                ngx_http_ron_follow_fail(f, "no memory");
            }

            return;
        }

        if (n <= 0) {
            ngx_http_ron_follow_fail(f, f->live ? "it ended"
                                                : "it cannot be reached");
            return;
        }

        f->heard = ngx_current_msec;

        in.data = buf;
        in.len = n;

        for ( ;; ) {
            rc = ron_api_bus_get(&f->reader, &in, &e);

            if (rc == RON_AGAIN) {
                break;
            }

            if (rc != RON_OK || ngx_http_ron_follow_event(f, &e) != NGX_OK) {
                ngx_http_ron_follow_fail(f, f->refused
                                            ? "its first key in \"ron_keys\" "
                                              "is not ours"
                                            : "what answered is not a bus");
                return;
            }
        }
    }

    /* others want to be served, too */

    ngx_post_event(ev, &ngx_posted_events);
}


static ngx_int_t
ngx_http_ron_follow_event(ngx_http_ron_follow_t *f, ron_api_bus_event_t *e)
{
    if (e->type == RON_API_BUS_OPEN) {
        return NGX_OK;
    }

    if (e->type == RON_API_BUS_HELLO) {
        return ngx_http_ron_follow_hello(f, e);
    }

    if (!f->live) {
        return NGX_ERROR;
    }

    switch (e->type) {

    case RON_API_BUS_COMMIT:
        if (e->seq - e->count != f->seq) {
            return NGX_ERROR;
        }

        ron_bus_commit(f->bus, e->seq, e->count, &e->root, &e->touched);
        f->seq = e->seq;

        return NGX_OK;

    case RON_API_BUS_BEAT:
        if (e->seq != f->seq) {
            return NGX_ERROR;
        }

        ngx_http_ron_follow_beat(f, e);

        return NGX_OK;

    default:
        ngx_http_ron_follow_lost(f, e, e->lost, 0);
        f->seq = e->seq;

        return NGX_OK;
    }
}


static ngx_int_t
ngx_http_ron_follow_hello(ngx_http_ron_follow_t *f, ron_api_bus_event_t *e)
{
    uint64_t    seq;
    ron_hash_t  root;

    if (ngx_memcmp(e->check, f->key.check, RON_BUS_CHECK_LEN) != 0) {
        f->refused = 1;
        return NGX_ERROR;
    }

    if (ron_bus_head(f->bus, &seq, &root) != RON_OK) {
        ron_bus_lost(f->bus, e->seq, &e->root, 1);

    } else if (!e->joined || !ron_bus_is_own(f->bus, &f->key)) {
        ngx_http_ron_follow_lost(f, e, e->seq > seq ? e->seq - seq : 1, 1);
    }

    ron_bus_own(f->bus, &f->key);

    f->seq = e->seq;
    f->hello_us = e->us;
    f->live = 1;
    f->pause = NGX_HTTP_RON_FOLLOW_FIRST;

    if (f->said) {
        f->said = 0;
        ngx_log_error(NGX_LOG_NOTICE, f->cycle->log, 0,
                      "ron: the bus of the ledger \"%V\" is heard again, "
                      "from seq %uL", &f->remote->host, e->seq);
    }

    return NGX_OK;
}


static void
ngx_http_ron_follow_lost(ngx_http_ron_follow_t *f, ron_api_bus_event_t *e,
    uint64_t lost, bool other)
{
    ron_bus_lost(f->bus, e->seq, &e->root, other);

    ngx_ron_count_n(RON_M_BUS_LAGGED_W, 0, RON_D_BUS_LEDGER, 0, 0, lost);
    ngx_ron_count_n(RON_M_QUEUE_DROPPED_W, 0, RON_D_QUEUE_W_LEDGER, 0, 0,
                    lost);

    ngx_log_error(NGX_LOG_WARN, f->cycle->log, 0,
                  "ron: the bus of the ledger \"%V\" went on without this "
                  "wallet: %uL commits were missed, all balances are dropped",
                  &f->remote->host, lost);
}


static void
ngx_http_ron_follow_beat(ngx_http_ron_follow_t *f, ron_api_bus_event_t *e)
{
    int64_t  at, now;

    now = (int64_t) ron_clock_mono_us();
    at = (int64_t) f->asked_us + (int64_t) e->us - (int64_t) f->hello_us
         - (now - (int64_t) f->asked_us) / 1000;

    if (at > 0) {
        ron_bus_beat(f->bus, e->seq, (uint64_t) ngx_min(at, now));
    }
}


/* Said once, until it is heard again. */

static void
ngx_http_ron_follow_fail(ngx_http_ron_follow_t *f, const char *why)
{
    ngx_msec_t  pause;

    if (!f->said) {
        f->said = 1;
        ngx_log_error(NGX_LOG_WARN, f->cycle->log, 0,
                      "ron: the bus of the ledger \"%V\" is not heard: %s; "
                      "balances are asked for, trying again",
                      &f->remote->host, why);
    }

    ngx_ron_count(RON_M_BACKOFF_RETRIES_W, 0, RON_D_SVC_LEDGER,
                  RON_D_CALL_BUS, 0);

    pause = f->refused ? NGX_HTTP_RON_FOLLOW_REFUSED : f->pause;

    f->pause = ngx_min(2 * f->pause, NGX_HTTP_RON_FOLLOW_LAST);
    f->retry = ngx_current_msec + pause / 2 + ngx_random() % pause;

    ngx_http_ron_follow_close(f);
}


static void
ngx_http_ron_follow_close(ngx_http_ron_follow_t *f)
{
    if (f->pc.connection == NULL) {
        return;
    }

    ngx_close_connection(f->pc.connection);
    f->pc.connection = NULL;

    ron_api_bus_reader_free(&f->reader);

    ngx_ron_tasks_invalidator(NGX_RON_CANCELED);
}


/* ---- balances ----------------------------------------------------------- */

void
ngx_http_ron_follow_wrote(ngx_http_ron_remote_t *remote, uint64_t seq)
{
    if (remote->bus) {
        ron_bus_wrote(remote->bus->data, seq);
    }
}


/*
 * From what was read last while nothing has changed it, else from the ledger,
 * else what was read last, which says how old it is.  Who has something to
 * fall back on does not wait long for a ledger that is silent.
 */

ngx_int_t
ngx_http_ron_follow_balance(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx)
{
    uint64_t                         soon;
    ngx_uint_t                       known;
    ron_bus_t                       *bus;
    ron_bus_balance_t                is;
    ngx_http_ron_remote_t           *remote;
    ngx_http_ron_follow_ask_t       *ask;
    ngx_http_ron_limit_main_conf_t  *lmcf;

    static ngx_str_t                 tail = ngx_string("ops/balance");

    remote = ngx_http_ron_remote_ledger(r);

    /* the ledger decides about who is no client of its own */

    if (remote->bus == NULL
        || !ron_cap_allows_act(ctx->cap, RON_CAP_SVC_LEDGER,
                               RON_CAP_ACT_READ))
    {
        return ngx_http_ron_remote_read(r, ctx, "ops/balance", &r->args);
    }

    bus = remote->bus->data;
    lmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_limit_module);

    known = ngx_http_ron_follow_known(ctx, bus, &is);

    if (known && is.sure && is.stale_ms <= lmcf->stale) {
        return ngx_http_ron_follow_reply(r, ctx, &is);
    }

    ask = ngx_palloc(r->pool, sizeof(ngx_http_ron_follow_ask_t));
    if (ask == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ask->bus = bus;
    ask->since_us = ron_clock_mono_us();

    ngx_http_set_ctx(r, ask, ngx_http_ron_follow_module);

    if (known && !ron_bus_alive(bus, ask->since_us, lmcf->stale)) {
        soon = ask->since_us
               + (uint64_t) ron_timeout_info(RON_TIMEOUT_BALANCE_ASK)->ms
                 * 1000;
        ctx->deadline_us = ngx_min(ctx->deadline_us, soon);
    }

    return ngx_http_ron_remote_call(r, ctx, remote, &tail, &r->args,
                                    ron_null_str, RON_D_CALL_READ,
                                    ngx_http_ron_follow_answer)
           == NGX_DONE
           ? NGX_DONE : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_uint_t
ngx_http_ron_follow_known(ngx_http_ron_ctx_t *ctx, ron_bus_t *bus,
    ron_bus_balance_t *is)
{
    ron_str_t  account, asset;

    account = ron_api_arg(ctx->args, ctx->args_n, ron_str("account"));
    asset = ron_api_arg(ctx->args, ctx->args_n, ron_str("asset"));

    return ron_bus_get(bus, &ngx_http_ron_follow_key, account, asset,
                       ron_clock_mono_us(), is)
           == RON_OK;
}


static ngx_int_t
ngx_http_ron_follow_reply(ngx_http_request_t *r, ngx_http_ron_ctx_t *ctx,
    ron_bus_balance_t *is)
{
    ngx_http_ron_cached_t  c;

    ngx_memzero(&c, sizeof(ngx_http_ron_cached_t));

    c.balance.found = true;
    c.balance.available = is->balance.available;
    c.balance.held = is->balance.held;
    c.balance.nonce = is->balance.nonce;
    c.balance.version = is->balance.version;
    c.stale = is->stale_ms;
    c.as_of = ron_clock_wall_ms() - is->stale_ms;

    return ngx_http_ron_wallet_balance_reply(r, ctx,
                ron_api_arg(ctx->args, ctx->args_n, ron_str("account")),
                ron_api_arg(ctx->args, ctx->args_n, ron_str("asset")), &c);
}


static void
ngx_http_ron_follow_answer(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_rcall_t *call, ngx_int_t rc)
{
    ngx_http_request_t         *r;
    ron_bus_balance_t           is;
    ngx_http_ron_follow_ask_t  *ask;

    r = ctx->request;
    ask = ngx_http_get_module_ctx(r, ngx_http_ron_follow_module);

    if (rc == NGX_OK) {
        ngx_http_ron_follow_fill(ctx, ask, &call->answer);

    } else if (ngx_http_ron_follow_known(ctx, ask->bus, &is)) {
        ngx_http_ron_done(ctx, ngx_http_ron_follow_reply(r, ctx, &is));
        return;
    }

    ngx_http_ron_remote_read_answer(ctx, call, rc);
}


/*
 * Right as of the seq that the ledger named, and as of the time at which it
 * was asked, less what the ledger itself said.
 */

static void
ngx_http_ron_follow_fill(ngx_http_ron_ctx_t *ctx,
    ngx_http_ron_follow_ask_t *ask, ron_api_http_t *answer)
{
    uint64_t            stale;
    ron_str_t           account, asset;
    ron_zone_balance_t  balance;

    if (answer->status != NGX_HTTP_OK || !answer->json || !answer->has_seq
        || !answer->has_version
        || !ron_bus_is_own(ask->bus, &ngx_http_ron_follow_key)
        || ron_api_bus_balance(&ngx_http_ron_follow_doc, answer->body,
                               &balance, &stale) != RON_OK
        || stale >= ask->since_us / 1000)
    {
        return;
    }

    account = ron_api_arg(ctx->args, ctx->args_n, ron_str("account"));
    asset = ron_api_arg(ctx->args, ctx->args_n, ron_str("asset"));

    balance.version = answer->version;
    balance.seq = answer->seq;

    ron_bus_put(ask->bus, account, asset, &balance,
                ask->since_us - stale * 1000);
}
