
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


static ngx_http_ron_token_t *ngx_http_ron_token_set(ngx_uint_t capacity,
    const ron_hash_t *key, ngx_log_t *log);
static void ngx_http_ron_token_put(ngx_http_ron_token_t *set,
    const ron_hash_t *key, const ron_cap_t *cap, ngx_log_t *log);


static ngx_http_ron_token_t  *ngx_http_ron_tokens;
static ngx_uint_t             ngx_http_ron_token_sets;


ron_status_t
ngx_http_ron_token_verify(ngx_http_request_t *r, ron_str_t token,
    ron_cap_t *cap, ron_cap_error_t *err)
{
    uint64_t                   now_ms;
    ron_hash_t                 key;
    ngx_log_t                 *log;
    ngx_time_t                *tp;
    ngx_uint_t                 i;
    ron_status_t               rc;
    ngx_http_ron_token_t      *set;
    ngx_http_ron_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_ron_module);
    log = r->connection->log;

    tp = ngx_timeofday();
    now_ms = (uint64_t) tp->sec * 1000 + tp->msec;
    set = NULL;

    if (rmcf->token_cache && token.len <= RON_CAP_TEXT_MAX) {
        ron_blake3(token.data, token.len, &key);
        set = ngx_http_ron_token_set(rmcf->token_cache, &key, log);
    }

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

            ngx_log_debug0(NGX_LOG_DEBUG_HTTP, log, 0,
                           "ron capability from the cache");
            return RON_OK;
        }

        ngx_free(set[i].cap);
        set[i].cap = NULL;
    }

    rc = ron_cap_verify(rmcf->ring, token, now_ms, cap, err);

    if (rc == RON_OK && set) {
        ngx_http_ron_token_put(set, &key, cap, log);
    }

    return rc;
}


static ngx_http_ron_token_t *
ngx_http_ron_token_set(ngx_uint_t capacity, const ron_hash_t *key,
    ngx_log_t *log)
{
    uint32_t  hash;

    if (ngx_http_ron_tokens == NULL) {
        ngx_http_ron_token_sets = (capacity + NGX_HTTP_RON_TOKEN_WAYS - 1)
                                  / NGX_HTTP_RON_TOKEN_WAYS;

        ngx_http_ron_tokens = ngx_calloc(ngx_http_ron_token_sets
                                         * NGX_HTTP_RON_TOKEN_WAYS
                                         * sizeof(ngx_http_ron_token_t), log);
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
