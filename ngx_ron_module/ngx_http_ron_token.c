
/*
 * Verified capabilities, a worker's own.
 *
 * A token is found by 128 bits of SipHash-2-4 over its text, with a secret
 * that the worker made for itself, so no token is kept, and nobody can make a
 * text that is found in another's place.  What is kept is the capability as
 * it was verified.  It is good for a minute, by
 * the monotonic clock, and never past its own `before`.  Keys and the list of
 * revoked ids change by a reload only, and that starts other workers, which
 * begin with an empty cache; the old ones go on with what they were given.
 *
 * What another service vouched for is only there for who would have asked it
 * the same: the place of an entry, and its name, are also those of the
 * directive that names the service and of the service that asked.  What was
 * verified with our own keys is not there for them, nor theirs for us.
 *
 * Sets of four; the oldest of a set makes room.  A refusal is never kept.
 */

#include "ngx_http_ron_remote.h"
#include "ron_port.h"
#include "ron_siphash.h"


#define NGX_HTTP_RON_TOKEN_WAYS  4


typedef struct {
    uint64_t  w[2];
} ngx_http_ron_token_key_t;

typedef struct {
    ngx_http_ron_token_key_t   key;
    ron_cap_t                 *cap;     /* its first ron_cap_size() bytes */
    ngx_msec_t                 since;
} ngx_http_ron_token_t;


static uint64_t ngx_http_ron_token_now(void);
static ron_cap_t *ngx_http_ron_token_look(ngx_http_request_t *r,
    ron_str_t token, uint64_t now_ms);
static ngx_http_ron_token_t *ngx_http_ron_token_set(ngx_http_request_t *r,
    ron_str_t token, ngx_http_ron_token_key_t *key);
static ngx_int_t ngx_http_ron_token_create(ngx_uint_t capacity,
    ngx_log_t *log);
static void ngx_http_ron_token_put(ngx_http_ron_token_t *set,
    const ngx_http_ron_token_key_t *key, const ron_cap_t *cap,
    ngx_log_t *log);


static ngx_http_ron_token_t  *ngx_http_ron_tokens;
static ngx_uint_t             ngx_http_ron_token_sets;
static ron_sipkey_t           ngx_http_ron_token_secret;


ron_status_t
ngx_http_ron_token_get(ngx_http_request_t *r, ron_str_t token,
    ngx_uint_t verify, ron_cap_t **cap, ron_cap_error_t *err,
    ngx_uint_t *genuine)
{
    uint64_t                   now_ms;
    ron_status_t               rc;
    ngx_http_ron_main_conf_t  *rmcf;

    now_ms = ngx_http_ron_token_now();

    *genuine = 1;
    *cap = ngx_http_ron_token_look(r, token, now_ms);

    if (*cap) {
        return RON_OK;
    }

    /* nearly all of one is room for text, which most do not have */

    *cap = ngx_http_ron_memory(r->pool, sizeof(ron_cap_t));
    if (*cap == NULL) {
        return RON_ENOMEM;
    }

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    if (!verify) {
        *genuine = 0;
        return ron_cap_read(rmcf->ring->revoked, token, now_ms, *cap, err);
    }

    rc = ron_cap_verify(rmcf->ring, token, now_ms, *cap, err);

    if (rc == RON_OK) {
        ngx_http_ron_token_keep(r, token, *cap);
    }

    return rc;
}


static uint64_t
ngx_http_ron_token_now(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


/* A copy for the request, or NULL: not there, or there is no memory. */

static ron_cap_t *
ngx_http_ron_token_look(ngx_http_request_t *r, ron_str_t token,
    uint64_t now_ms)
{
    size_t                     size;
    ngx_uint_t                 i;
    ron_cap_t                 *cap;
    ngx_http_ron_token_t      *set;
    ngx_http_ron_token_key_t   key;

    set = ngx_http_ron_token_set(r, token, &key);

    for (i = 0; set && i < NGX_HTTP_RON_TOKEN_WAYS; i++) {

        if (set[i].cap == NULL || set[i].key.w[0] != key.w[0]
            || set[i].key.w[1] != key.w[1])
        {
            continue;
        }

        if (ngx_current_msec - set[i].since
                < ron_timeout_info(RON_TIMEOUT_TOKEN_TTL)->ms
            && ron_cap_allows_time(set[i].cap, now_ms))
        {
            size = ron_cap_size(set[i].cap);

            cap = ngx_http_ron_piece(r->pool, size);
            if (cap == NULL) {
                return NULL;
            }

            ngx_memcpy(cap, set[i].cap, size);

            ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                           "ron capability from the cache");
            return cap;
        }

        ngx_free(set[i].cap);
        set[i].cap = NULL;
    }

    return NULL;
}


void
ngx_http_ron_token_keep(ngx_http_request_t *r, ron_str_t token,
    const ron_cap_t *cap)
{
    ngx_http_ron_token_t      *set;
    ngx_http_ron_token_key_t   key;

    set = ngx_http_ron_token_set(r, token, &key);

    if (set) {
        ngx_http_ron_token_put(set, &key, cap, r->connection->log);
    }
}


/* The set that the token may be in, NULL without a cache, and its name. */

static ngx_http_ron_token_t *
ngx_http_ron_token_set(ngx_http_request_t *r, ron_str_t token,
    ngx_http_ron_token_key_t *key)
{
    ron_sip_t                        sip;
    ngx_http_ron_loc_conf_t         *rlcf;
    ngx_http_ron_main_conf_t        *rmcf;
    ngx_http_ron_remote_loc_conf_t  *rrlcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    if (rmcf->token_cache == 0 || token.len > RON_CAP_TEXT_MAX) {
        return NULL;
    }

    if (ngx_http_ron_tokens == NULL
        && ngx_http_ron_token_create(rmcf->token_cache, r->connection->log)
           != NGX_OK)
    {
        return NULL;
    }

    ron_sip_init(&sip, &ngx_http_ron_token_secret);
    ron_sip_update(&sip, token.data, token.len);
    ron_sip_final(&sip, key->w);

    rrlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_remote_module);

    if (rrlcf->kms) {
        rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

        /* nobody can compute what they are mixed with */

        key->w[0] ^= (uintptr_t) rrlcf->kms;
        key->w[1] ^= (uintptr_t) rlcf->service;
    }

    return ngx_http_ron_tokens
           + key->w[0] % ngx_http_ron_token_sets * NGX_HTTP_RON_TOKEN_WAYS;
}


static ngx_int_t
ngx_http_ron_token_create(ngx_uint_t capacity, ngx_log_t *log)
{
    if (ron_random(&ngx_http_ron_token_secret, sizeof(ron_sipkey_t))
        != RON_OK)
    {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "ron: no randomness for the cache of capabilities: %s",
                      ron_port_error());
        return NGX_ERROR;
    }

    ngx_http_ron_token_sets = (capacity + NGX_HTTP_RON_TOKEN_WAYS - 1)
                              / NGX_HTTP_RON_TOKEN_WAYS;

    ngx_http_ron_tokens = ngx_calloc(ngx_http_ron_token_sets
                                     * NGX_HTTP_RON_TOKEN_WAYS
                                     * sizeof(ngx_http_ron_token_t), log);

    return ngx_http_ron_tokens ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_ron_token_put(ngx_http_ron_token_t *set,
    const ngx_http_ron_token_key_t *key, const ron_cap_t *cap, ngx_log_t *log)
{
    size_t                 size;
    ngx_uint_t             i;
    ngx_http_ron_token_t  *t;

    t = &set[0];

    for (i = 0; i < NGX_HTTP_RON_TOKEN_WAYS; i++) {

        if (set[i].cap == NULL) {
            t = &set[i];
            break;
        }

        if (ngx_current_msec - set[i].since > ngx_current_msec - t->since) {
            t = &set[i];
        }
    }

    if (t->cap) {
        ngx_free(t->cap);
    }

    size = ron_cap_size(cap);

    t->cap = ngx_alloc(size, log);
    if (t->cap == NULL) {
        return;
    }

    ngx_memcpy(t->cap, cap, size);
    t->key = *key;
    t->since = ngx_current_msec;
}
