
/*
 * Traces: "ron_otlp http://host:port/path", off without it.
 *
 *     worker:  a request that is sampled ends -> its record into the ring
 *     helper:  once an interval -> records out of the ring, made spans with
 *              the times of their batches, one POST to the collector
 *
 * The ring is shared memory of its own, bounded, and its oldest record makes
 * room; it is under the mutex of its zone, which NGINX's master frees when a
 * worker dies with it, held for one copy and by sampled requests only.  A
 * record that was half copied then is behind the end and is never seen.
 *
 * Nothing waits for the collector.  One POST is under way at a time, from the
 * event loop of the helper, with a time-out; when it fails its spans are
 * counted as dropped, and the next is tried after a pause that doubles.
 * After a reload two helpers live for a moment: the one whose word is newest
 * in the zone sends, which is the one that has the ledger.
 */

#include "ngx_ron.h"
#include "ron_port.h"
#include "ron_registry.h"

#include <ngx_event_connect.h>


#define NGX_RON_OTLP_MAGIC      0x6f746c70
#define NGX_RON_OTLP_TAKE       128         /* requests of one POST */
#define NGX_RON_OTLP_BUF        (4 * 1024 * 1024)
#define NGX_RON_OTLP_PAUSE_MAX  30000
#define NGX_RON_OTLP_PORT       4318


/* in shared memory */

typedef struct {
    ngx_uint_t            magic;
    ngx_uint_t            capacity;
    ngx_uint_t            record;           /* its size, of this build */
    ngx_uint_t            first;
    ngx_uint_t            n;
    ron_trace_request_t   request[1];
} ngx_ron_otlp_ring_t;

typedef struct {
    ngx_str_t             url;
    ngx_url_t             collector;
    ngx_uint_t            share;            /* of RON_TRACE_ALL */
    ngx_uint_t            queue;
    ngx_msec_t            interval;
    ngx_msec_t            timeout;
    ngx_shm_zone_t       *zone;
} ngx_ron_otlp_conf_t;

/* the helper's */

typedef struct {
    ngx_ron_otlp_conf_t  *conf;
    ngx_log_t            *log;
    ngx_event_t           timer;
    ngx_connection_t     *connection;
    ngx_msec_t            pause;

    ron_mutex_t          *mutex;            /* of the batches */
    ron_trace_batches_t  *batches;
    ron_trace_request_t  *requests;

    ron_buf_t             out;
    ron_buf_t             body;
    size_t                sent;
    uint32_t              spans;            /* in the POST under way */
    u_char                answer[32];
    size_t                answer_n;
    unsigned              told:1;           /* that it does not work */
} ngx_ron_otlp_t;


static void *ngx_ron_otlp_create_conf(ngx_cycle_t *cycle);
static char *ngx_ron_otlp_init_conf(ngx_cycle_t *cycle, void *conf);
static char *ngx_ron_otlp(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *ngx_ron_otlp_url(ngx_conf_t *cf, ngx_ron_otlp_conf_t *ocf,
    ngx_str_t *value);
static ngx_int_t ngx_ron_otlp_param(ngx_ron_otlp_conf_t *ocf,
    ngx_str_t *value);
static ngx_int_t ngx_ron_otlp_init_zone(ngx_shm_zone_t *zone, void *data);
static ngx_ron_otlp_ring_t *ngx_ron_otlp_ring(ngx_slab_pool_t **pool);
static void ngx_ron_otlp_tick(ngx_event_t *ev);
static ngx_uint_t ngx_ron_otlp_mine(void);
static uint32_t ngx_ron_otlp_take(void);
static ngx_int_t ngx_ron_otlp_build(uint32_t n);
static void ngx_ron_otlp_connect(void);
static void ngx_ron_otlp_write(ngx_event_t *ev);
static void ngx_ron_otlp_read(ngx_event_t *ev);
static void ngx_ron_otlp_end(ngx_uint_t taken, const char *why);


static ngx_command_t  ngx_ron_otlp_commands[] = {

    { ngx_string("ron_otlp"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_1MORE,
      ngx_ron_otlp,
      0,
      0,
      NULL },

      ngx_null_command
};


static ngx_core_module_t  ngx_ron_otlp_module_ctx = {
    ngx_string("ron_otlp"),
    ngx_ron_otlp_create_conf,
    ngx_ron_otlp_init_conf
};


ngx_module_t  ngx_ron_otlp_module = {
    NGX_MODULE_V1,
    &ngx_ron_otlp_module_ctx,              /* module context */
    ngx_ron_otlp_commands,                 /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_ron_otlp_t  ngx_ron_otlp_sender;


#define ngx_ron_otlp_get_conf(cycle)                                          \
    (ngx_ron_otlp_conf_t *) ngx_get_conf((cycle)->conf_ctx,                   \
                                         ngx_ron_otlp_module)


/* ---- in a worker -------------------------------------------------------- */

ngx_uint_t
ngx_ron_otlp_on(void)
{
    ngx_ron_otlp_conf_t  *ocf;

    ocf = ngx_ron_otlp_get_conf(ngx_cycle);

    return ocf->zone != NULL;
}


uint32_t
ngx_ron_otlp_share(void)
{
    ngx_ron_otlp_conf_t  *ocf;

    ocf = ngx_ron_otlp_get_conf(ngx_cycle);

    return ocf->share;
}


static ngx_ron_otlp_ring_t *
ngx_ron_otlp_ring(ngx_slab_pool_t **pool)
{
    ngx_ron_otlp_conf_t  *ocf;

    ocf = ngx_ron_otlp_get_conf(ngx_cycle);

    if (ocf->zone == NULL) {
        return NULL;
    }

    *pool = (ngx_slab_pool_t *) ocf->zone->shm.addr;

    return ocf->zone->data;
}


void
ngx_ron_otlp_put(const ron_trace_request_t *request)
{
    ngx_uint_t            lost;
    ngx_slab_pool_t      *pool;
    ngx_ron_otlp_ring_t  *ring;

    ring = ngx_ron_otlp_ring(&pool);
    if (ring == NULL) {
        return;
    }

    lost = 0;

    ngx_shmtx_lock(&pool->mutex);

    if (ring->n == ring->capacity) {
        ring->first = (ring->first + 1) % ring->capacity;
        ring->n--;
        lost = 1;
    }

    ring->request[(ring->first + ring->n) % ring->capacity] = *request;
    ring->n++;

    ngx_shmtx_unlock(&pool->mutex);

    if (lost) {
        ngx_ron_count(RON_M_SPANS_DROPPED, 0, RON_D_SPAN_LOSS_QUEUE, 0, 0);
        ngx_ron_count(RON_M_DROPS, 0, RON_D_Q_SPANS, 0, 0);
    }
}


/* ---- in the helper ------------------------------------------------------ */

void
ngx_ron_otlp_helper(ngx_cycle_t *cycle)
{
    ngx_event_t          *ev;
    ngx_ron_otlp_t       *o;
    ngx_ron_otlp_conf_t  *ocf;

    ocf = ngx_ron_otlp_get_conf(cycle);
    o = &ngx_ron_otlp_sender;

    if (ocf->zone == NULL) {
        return;
    }

    o->conf = ocf;
    o->log = cycle->log;
    o->pause = ocf->interval;

    o->requests = ngx_alloc(NGX_RON_OTLP_TAKE * sizeof(ron_trace_request_t),
                            o->log);
    o->batches = ngx_calloc(sizeof(ron_trace_batches_t), o->log);

    if (o->requests == NULL || o->batches == NULL
        || ron_mutex_create(&o->mutex, RON_LOCK_SPANS) != RON_OK)
    {
        ngx_log_error(NGX_LOG_ERR, o->log, 0, "ron: no memory for traces");
        o->conf = NULL;
        return;
    }

    ron_buf_init(&o->out, NGX_RON_OTLP_BUF);
    ron_buf_init(&o->body, NGX_RON_OTLP_BUF);

    ev = &o->timer;
    ev->handler = ngx_ron_otlp_tick;
    ev->data = &ngx_ron_ident;
    ev->log = o->log;
    ev->cancelable = 1;

    ngx_add_timer(ev, ocf->interval);
}


/* On the sequencer's thread. */

void
ngx_ron_otlp_batch(const ron_batch_t *batch)
{
    ngx_ron_otlp_t     *o;
    ron_trace_batch_t   b;

    o = &ngx_ron_otlp_sender;

    if (o->conf == NULL) {
        return;
    }

    b.seq = batch->seq;
    b.count = batch->count;
    b.decide_us = batch->decide_us;
    b.decided_us = batch->decided_us;
    b.append_us = batch->append_us;
    b.durable_us = batch->append_us + batch->commit_us;
    b.published_us = ron_clock_mono_us();

    ron_mutex_lock(o->mutex);
    ron_trace_batches_put(o->batches, &b);
    ron_mutex_unlock(o->mutex);
}


static void
ngx_ron_otlp_tick(ngx_event_t *ev)
{
    uint32_t         n;
    ngx_ron_otlp_t  *o;

    o = &ngx_ron_otlp_sender;

    if (o->connection || !ngx_ron_otlp_mine()) {
        ngx_add_timer(ev, o->conf->interval);
        return;
    }

    n = ngx_ron_otlp_take();

    if (n == 0) {
        ngx_add_timer(ev, o->conf->interval);
        return;
    }

    if (ngx_ron_otlp_build(n) != NGX_OK) {
        ngx_ron_otlp_end(0, "no memory");
        return;
    }

    ngx_ron_otlp_connect();
}


static ngx_uint_t
ngx_ron_otlp_mine(void)
{
    ron_beat_t   beat;
    ron_zone_t  *zone;

    zone = ngx_ron_zone();

    return zone == NULL || ron_zone_beat_read(zone, &beat) != RON_OK
           || beat.pid == (uint64_t) ngx_pid;
}


/* The oldest records, and how full the ring is. */

static uint32_t
ngx_ron_otlp_take(void)
{
    uint32_t              i, n;
    ngx_uint_t            left;
    ngx_slab_pool_t      *pool;
    ngx_ron_otlp_ring_t  *ring;

    ring = ngx_ron_otlp_ring(&pool);

    ngx_shmtx_lock(&pool->mutex);

    n = (uint32_t) ngx_min(ring->n, NGX_RON_OTLP_TAKE);

    for (i = 0; i < n; i++) {
        ngx_ron_otlp_sender.requests[i] =
            ring->request[(ring->first + i) % ring->capacity];
    }

    ring->first = (ring->first + n) % ring->capacity;
    ring->n -= n;
    left = ring->n;

    ngx_shmtx_unlock(&pool->mutex);

    if (ngx_ron_zone()) {
        ron_metric_set(ngx_ron_zone(), ngx_ron_slot(), RON_M_QUEUE_DEPTH_L, 0,
                       RON_D_Q_SPANS, 0, 0, left);
        ron_metric_set(ngx_ron_zone(), ngx_ron_slot(),
                       RON_M_QUEUE_CAPACITY_L, 0, RON_D_Q_SPANS, 0, 0,
                       ring->capacity);
    }

    return n;
}


static ngx_int_t
ngx_ron_otlp_build(uint32_t n)
{
    u_char            name[NGX_MAXHOSTNAMELEN + NGX_INT64_LEN + 2];
    ron_status_t      rc;
    ngx_ron_otlp_t   *o;
    ron_trace_conf_t  conf;

    o = &ngx_ron_otlp_sender;

    conf.version = ron_str(NGX_RON_VERSION);
    conf.instance.data = name;
    conf.instance.len = ngx_snprintf(name, sizeof(name), "%V:%P",
                                     &ngx_cycle->hostname, ngx_pid) - name;
    conf.wall_us = (int64_t) (ron_clock_wall_ms() * 1000)
                   - (int64_t) ron_clock_mono_us();

    ron_buf_reset(&o->body);

    ron_mutex_lock(o->mutex);
    rc = ron_trace_json(&o->body, &conf, o->requests, n, o->batches,
                        &o->spans);
    ron_mutex_unlock(o->mutex);

    ron_buf_reset(&o->out);
    ron_buf_printf(&o->out, "POST %.*s HTTP/1.1\r\nHost: %.*s\r\n"
                   "User-Agent: ngx_ron/" NGX_RON_VERSION "\r\n"
                   "Content-Type: application/json\r\n"
                   "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                   (int) o->conf->collector.uri.len,
                   (char *) o->conf->collector.uri.data,
                   (int) o->conf->url.len, (char *) o->conf->url.data,
                   o->body.len);
    ron_buf_put_str(&o->out, ron_buf_str(&o->body));

    return rc == RON_OK && ron_buf_status(&o->out) == RON_OK ? NGX_OK
                                                             : NGX_ERROR;
}


static void
ngx_ron_otlp_connect(void)
{
    ngx_int_t               rc;
    ngx_addr_t             *addr;
    ngx_ron_otlp_t         *o;
    ngx_connection_t       *c;
    ngx_peer_connection_t   pc;

    o = &ngx_ron_otlp_sender;
    o->sent = 0;
    o->answer_n = 0;

    addr = &o->conf->collector.addrs[0];

    ngx_memzero(&pc, sizeof(ngx_peer_connection_t));

    pc.sockaddr = addr->sockaddr;
    pc.socklen = addr->socklen;
    pc.name = &addr->name;
    pc.get = ngx_event_get_peer;
    pc.log = o->log;
    pc.log_error = NGX_ERROR_IGNORE_ECONNRESET;

    rc = ngx_event_connect_peer(&pc);

    if (rc == NGX_ERROR || rc == NGX_BUSY || rc == NGX_DECLINED) {
        if (pc.connection) {
            ngx_close_connection(pc.connection);
        }

        ngx_ron_otlp_end(0, "it cannot be reached");
        return;
    }

    c = pc.connection;
    c->data = o;
    c->log_error = NGX_ERROR_INFO;
    c->read->handler = ngx_ron_otlp_read;
    c->write->handler = ngx_ron_otlp_write;

    o->connection = c;

    /* one time-out for all of it */

    ngx_add_timer(c->read, o->conf->timeout);
    c->read->cancelable = 1;

    if (rc == NGX_OK) {
        ngx_ron_otlp_write(c->write);
    }
}


static void
ngx_ron_otlp_write(ngx_event_t *ev)
{
    ssize_t            n;
    ngx_ron_otlp_t    *o;
    ngx_connection_t  *c;

    c = ev->data;
    o = c->data;

    while (o->sent < o->out.len) {
        n = c->send(c, o->out.data + o->sent, o->out.len - o->sent);

        if (n == NGX_AGAIN) {
            break;
        }

        if (n == NGX_ERROR || n == 0) {
            ngx_ron_otlp_end(0, "it does not take the request");
            return;
        }

        o->sent += n;
    }

    if (ngx_handle_write_event(ev, 0) != NGX_OK) {
        ngx_ron_otlp_end(0, "no event");
    }
}


/* The status is all that is wanted: 2xx, and they are the collector's. */

static void
ngx_ron_otlp_read(ngx_event_t *ev)
{
    ssize_t            n;
    ngx_ron_otlp_t    *o;
    ngx_connection_t  *c;

    c = ev->data;
    o = c->data;

    if (ev->timedout) {
        ngx_ron_otlp_end(0, "no answer in time");
        return;
    }

    while (o->answer_n < sizeof("HTTP/1.1 200") - 1) {
        n = c->recv(c, o->answer + o->answer_n,
                    sizeof(o->answer) - o->answer_n);

        if (n == NGX_AGAIN) {
            if (ngx_handle_read_event(ev, 0) != NGX_OK) {
                ngx_ron_otlp_end(0, "no event");
            }

            return;
        }

        if (n == NGX_ERROR || n == 0) {
            ngx_ron_otlp_end(0, "it hung up");
            return;
        }

        o->answer_n += n;
    }

    if (ngx_strncmp(o->answer, "HTTP/1.", 7) == 0 && o->answer[9] == '2') {
        ngx_ron_otlp_end(1, NULL);
        return;
    }

    ngx_ron_otlp_end(0, "it refused them");
}


static void
ngx_ron_otlp_end(ngx_uint_t taken, const char *why)
{
    ngx_ron_otlp_t  *o;

    o = &ngx_ron_otlp_sender;

    if (o->connection) {
        ngx_close_connection(o->connection);
        o->connection = NULL;
    }

    if (taken) {
        ngx_ron_count_n(RON_M_SPANS_EXPORTED, 0, 0, 0, 0, o->spans);
        o->pause = o->conf->interval;

        if (o->told) {
            o->told = 0;
            ngx_log_error(NGX_LOG_NOTICE, o->log, 0,
                          "ron: the collector \"%V\" takes spans again",
                          &o->conf->url);
        }

    } else {
        ngx_ron_count_n(RON_M_SPANS_DROPPED, 0, RON_D_SPAN_LOSS_COLLECTOR, 0,
                        0, o->spans);

        if (!o->told) {
            o->told = 1;
            ngx_log_error(NGX_LOG_WARN, o->log, 0,
                          "ron: spans are dropped, the collector \"%V\": %s",
                          &o->conf->url, why);
        }
    }

    ngx_add_timer(&o->timer, o->pause);

    if (!taken) {
        o->pause = ngx_min(o->pause * 2, NGX_RON_OTLP_PAUSE_MAX);
    }
}


/* ---- configuration ------------------------------------------------------ */

static void *
ngx_ron_otlp_create_conf(ngx_cycle_t *cycle)
{
    ngx_ron_otlp_conf_t  *ocf;

    ocf = ngx_pcalloc(cycle->pool, sizeof(ngx_ron_otlp_conf_t));
    if (ocf == NULL) {
        return NULL;
    }

    /* 1 % of the requests */

    ocf->share = RON_TRACE_ALL / 100;
    ocf->queue = ron_queue_info(RON_QUEUE_SPANS)->capacity;
    ocf->interval = 1000;
    ocf->timeout = ron_timeout_info(RON_TIMEOUT_UPSTREAM)->ms;

    return ocf;
}


static char *
ngx_ron_otlp_init_conf(ngx_cycle_t *cycle, void *conf)
{
    ngx_ron_otlp_conf_t *ocf = conf;

    if (ocf->zone && ngx_ron_get_conf(cycle)->url.len == 0) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"ron_otlp\" needs \"ron_ledger\": spans are sent by "
                      "the process that has the ledger");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_ron_otlp(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_ron_otlp_conf_t *ocf = conf;

    size_t       size;
    char        *rc;
    ngx_str_t   *value, name;
    ngx_uint_t   i;

    if (ocf->zone) {
        return "is duplicate";
    }

    value = cf->args->elts;

    rc = ngx_ron_otlp_url(cf, ocf, &value[1]);

    if (rc != NGX_CONF_OK) {
        return rc;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_ron_otlp_param(ocf, &value[i]) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\"", &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    /* the slab allocator keeps a little for each page, and for itself */

    size = ocf->queue * sizeof(ron_trace_request_t);
    size += size / 64 + 16 * ngx_pagesize;

    ngx_str_set(&name, "ngx_ron_otlp");

    ocf->zone = ngx_shared_memory_add(cf, &name, size, &ngx_ron_otlp_module);
    if (ocf->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    ocf->zone->init = ngx_ron_otlp_init_zone;
    ocf->zone->data = (void *) ocf->queue;

    return NGX_CONF_OK;
}


static char *
ngx_ron_otlp_url(ngx_conf_t *cf, ngx_ron_otlp_conf_t *ocf, ngx_str_t *value)
{
    ngx_url_t  *u;

    if (value->len <= 7
        || ngx_strncasecmp(value->data, (u_char *) "http://", 7) != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid collector \"%V\", it must begin with "
                           "\"http://\"; for TLS send to a collector on this "
                           "machine, which passes them on", value);
        return NGX_CONF_ERROR;
    }

    u = &ocf->collector;

    u->url.data = value->data + 7;
    u->url.len = value->len - 7;
    u->default_port = NGX_RON_OTLP_PORT;
    u->uri_part = 1;

    if (ngx_parse_url(cf->pool, u) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s in collector \"%V\"",
                           u->err ? u->err : "error", value);
        return NGX_CONF_ERROR;
    }

    if (u->uri.len == 0) {
        ngx_str_set(&u->uri, "/v1/traces");
    }

    ocf->url.data = value->data + 7;
    ocf->url.len = 0;

    while (ocf->url.len < value->len - 7
           && ocf->url.data[ocf->url.len] != '/')
    {
        ocf->url.len++;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_ron_otlp_param(ngx_ron_otlp_conf_t *ocf, ngx_str_t *value)
{
    size_t      len;
    u_char     *data;
    ngx_int_t   n;
    ngx_str_t   time;

    if (ngx_strncmp(value->data, "sample=", 7) == 0) {
        data = value->data + 7;
        len = value->len - 7;

        if (len < 2 || data[len - 1] != '%') {
            return NGX_ERROR;
        }

        n = ngx_atofp(data, len - 1, 2);
        ocf->share = n;

        return n == NGX_ERROR || n > RON_TRACE_ALL ? NGX_ERROR : NGX_OK;
    }

    if (ngx_strncmp(value->data, "queue=", 6) == 0) {
        n = ngx_atoi(value->data + 6, value->len - 6);
        ocf->queue = n;

        return n < 16 || n > 65536 ? NGX_ERROR : NGX_OK;
    }

    if (ngx_strncmp(value->data, "interval=", 9) == 0) {
        time.data = value->data + 9;
        time.len = value->len - 9;
        n = ngx_parse_time(&time, 0);
        ocf->interval = n;

        return n < 10 || n > 60000 ? NGX_ERROR : NGX_OK;
    }

    if (ngx_strncmp(value->data, "timeout=", 8) == 0) {
        time.data = value->data + 8;
        time.len = value->len - 8;
        n = ngx_parse_time(&time, 0);
        ocf->timeout = n;

        return n < 10 || n > 60000 ? NGX_ERROR : NGX_OK;
    }

    return NGX_ERROR;
}


/* An adopted zone is looked at and not written: the reload may still fail. */

static ngx_int_t
ngx_ron_otlp_init_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_uint_t            capacity;
    ngx_slab_pool_t      *pool;
    ngx_ron_otlp_ring_t  *ring;

    ring = data;

    if (ring && ring->magic == NGX_RON_OTLP_MAGIC
        && ring->record == sizeof(ron_trace_request_t))
    {
        zone->data = ring;
        return NGX_OK;
    }

    capacity = (ngx_uint_t) zone->data;
    pool = (ngx_slab_pool_t *) zone->shm.addr;

    ring = ngx_slab_calloc(pool, sizeof(ngx_ron_otlp_ring_t)
                                 + capacity * sizeof(ron_trace_request_t));
    if (ring == NULL) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm.log, 0,
                      "ron: no memory in zone \"%V\"", &zone->shm.name);
        return NGX_ERROR;
    }

    ring->capacity = capacity;
    ring->record = sizeof(ron_trace_request_t);
    ring->magic = NGX_RON_OTLP_MAGIC;

    zone->data = ring;

    return NGX_OK;
}
