
/*
 * Verified capabilities, a worker's own.
 *
 * A token is found by the BLAKE3 of its text, so no token is kept, and what
 * is kept is the capability as it was verified.  It is good for a minute, by
 * the monotonic clock, and never past its own `before`.  Keys and the list of
 * revoked ids change by a reload only, and that starts other workers, which
 * begin with an empty cache; the old ones go on with what they were given.
 *
 * Sets of four; the oldest of a set makes room.  A refusal is never kept.
 */

#include "ngx_http_ron.h"
#include "ron_digest.h"


#define NGX_HTTP_RON_TOKEN_WAYS  4
#define NGX_HTTP_RON_TOKEN_AGE   60000


typedef struct {
    ron_hash_t   key;
    ron_cap_t   *cap;                   /* its first ron_cap_size() bytes */
    ngx_msec_t   since;
} ngx_http_ron_token_t;


static uint64_t ngx_http_ron_token_now(void);
static ngx_int_t ngx_http_ron_token_look(ngx_http_request_t *r,
    ron_str_t token, ron_cap_t *cap, uint64_t now_ms);
static ngx_http_ron_token_t *ngx_http_ron_token_set(ngx_http_request_t *r,
    ron_str_t token, ron_hash_t *key);
static void ngx_http_ron_token_put(ngx_http_ron_token_t *set,
    const ron_hash_t *key, const ron_cap_t *cap, ngx_log_t *log);


static ngx_http_ron_token_t  *ngx_http_ron_tokens;
static ngx_uint_t             ngx_http_ron_token_sets;


ron_status_t
ngx_http_ron_token_verify(ngx_http_request_t *r, ron_str_t token,
    ron_cap_t *cap, ron_cap_error_t *err)
{
    uint64_t                   now_ms;
    ron_status_t               rc;
    ngx_http_ron_main_conf_t  *rmcf;

    now_ms = ngx_http_ron_token_now();

    if (ngx_http_ron_token_look(r, token, cap, now_ms) == NGX_OK) {
        return RON_OK;
    }

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    rc = ron_cap_verify(rmcf->ring, token, now_ms, cap, err);

    if (rc == RON_OK) {
        ngx_http_ron_token_keep(r, token, cap);
    }

    return rc;
}


ron_status_t
ngx_http_ron_token_read(ngx_http_request_t *r, ron_str_t token,
    ron_cap_t *cap, ron_cap_error_t *err, ngx_uint_t *known)
{
    uint64_t                   now_ms;
    ngx_http_ron_main_conf_t  *rmcf;

    now_ms = ngx_http_ron_token_now();

    *known = ngx_http_ron_token_look(r, token, cap, now_ms) == NGX_OK;

    if (*known) {
        return RON_OK;
    }

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);

    return ron_cap_read(rmcf->ring->revoked, token, now_ms, cap, err);
}


static uint64_t
ngx_http_ron_token_now(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


static ngx_int_t
ngx_http_ron_token_look(ngx_http_request_t *r, ron_str_t token,
    ron_cap_t *cap, uint64_t now_ms)
{
    ron_hash_t             key;
    ngx_uint_t             i;
    ngx_http_ron_token_t  *set;

    set = ngx_http_ron_token_set(r, token, &key);

    for (i = 0; set && i < NGX_HTTP_RON_TOKEN_WAYS; i++) {

        if (set[i].cap == NULL
            || ngx_memcmp(&set[i].key, &key, sizeof(ron_hash_t)) != 0)
        {
            continue;
        }

        if (ngx_current_msec - set[i].since < NGX_HTTP_RON_TOKEN_AGE
            && ron_cap_allows_time(set[i].cap, now_ms))
        {
            ngx_memcpy(cap, set[i].cap, ron_cap_size(set[i].cap));

            ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                           "ron capability from the cache");
            return NGX_OK;
        }

        ngx_free(set[i].cap);
        set[i].cap = NULL;
    }

    return NGX_DECLINED;
}


void
ngx_http_ron_token_keep(ngx_http_request_t *r, ron_str_t token,
    const ron_cap_t *cap)
{
    ron_hash_t             key;
    ngx_http_ron_token_t  *set;

    set = ngx_http_ron_token_set(r, token, &key);

    if (set) {
        ngx_http_ron_token_put(set, &key, cap, r->connection->log);
    }
}


/* The set that the token may be in, NULL without a cache, and its name. */

static ngx_http_ron_token_t *
ngx_http_ron_token_set(ngx_http_request_t *r, ron_str_t token,
    ron_hash_t *key)
{
    uint32_t                   hash;
    ngx_uint_t                 capacity;
    ngx_http_ron_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);
    capacity = rmcf->token_cache;

    if (capacity == 0 || token.len > RON_CAP_TEXT_MAX) {
        return NULL;
    }

    ron_blake3(token.data, token.len, key);

    if (ngx_http_ron_tokens == NULL) {
        ngx_http_ron_token_sets = (capacity + NGX_HTTP_RON_TOKEN_WAYS - 1)
                                  / NGX_HTTP_RON_TOKEN_WAYS;

        ngx_http_ron_tokens = ngx_calloc(ngx_http_ron_token_sets
                                         * NGX_HTTP_RON_TOKEN_WAYS
                                         * sizeof(ngx_http_ron_token_t),
                                         r->connection->log);
        if (ngx_http_ron_tokens == NULL) {
            return NULL;
        }
    }

    ngx_memcpy(&hash, key->b, sizeof(uint32_t));

    return ngx_http_ron_tokens
           + hash % ngx_http_ron_token_sets * NGX_HTTP_RON_TOKEN_WAYS;
}


static void
ngx_http_ron_token_put(ngx_http_ron_token_t *set, const ron_hash_t *key,
    const ron_cap_t *cap, ngx_log_t *log)
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
