
/*
 * libron logs from threads that must not call NGINX.  Its lines go into a
 * ring of fixed size under a mutex that is held for one copy; the event loop
 * takes them out.  When the ring is full the newest line is counted instead.
 */

#include "ngx_ron.h"
#include "ron_log.h"
#include "ron_port.h"


#define NGX_RON_LOG_LINES  64
#define NGX_RON_LOG_LEN    480


typedef struct {
    ron_log_level_t  level;
    size_t           len;
    u_char           text[NGX_RON_LOG_LEN];
} ngx_ron_log_line_t;


static void ngx_ron_log_sink(void *ctx, ron_log_level_t level,
    const char *line);


static ron_mutex_t         *ngx_ron_log_mutex;
static ngx_ron_log_line_t   ngx_ron_log_ring[NGX_RON_LOG_LINES];
static ngx_uint_t           ngx_ron_log_first;
static ngx_uint_t           ngx_ron_log_n;
static ngx_uint_t           ngx_ron_log_lost;


static ngx_uint_t  ngx_ron_log_levels[] = {
    NGX_LOG_ALERT, NGX_LOG_ERR, NGX_LOG_WARN, NGX_LOG_NOTICE, NGX_LOG_DEBUG
};


void
ngx_ron_log_init(ngx_uint_t level)
{
    if (ngx_ron_log_mutex == NULL
        && ron_mutex_create(&ngx_ron_log_mutex, RON_LOCK_LOG) != RON_OK)
    {
        ngx_ron_log_mutex = NULL;
        return;
    }

    ron_log_set(ngx_ron_log_sink, NULL,
                level >= NGX_LOG_DEBUG ? RON_LOG_DEBUG : RON_LOG_INFO);
}


static void
ngx_ron_log_sink(void *ctx, ron_log_level_t level, const char *text)
{
    size_t               len;
    ngx_ron_log_line_t  *line;

    ron_mutex_lock(ngx_ron_log_mutex);

    if (ngx_ron_log_n == NGX_RON_LOG_LINES) {
        ngx_ron_log_lost++;

    } else {
        line = &ngx_ron_log_ring[(ngx_ron_log_first + ngx_ron_log_n)
                                 % NGX_RON_LOG_LINES];
        len = ngx_min(strlen(text), NGX_RON_LOG_LEN);

        line->level = level;
        line->len = len;
        ngx_memcpy(line->text, text, len);

        ngx_ron_log_n++;
    }

    ron_mutex_unlock(ngx_ron_log_mutex);
}


void
ngx_ron_log_flush(ngx_log_t *log)
{
    ngx_uint_t          lost;
    ngx_ron_log_line_t  line;

    if (ngx_ron_log_mutex == NULL) {
        return;
    }

    for ( ;; ) {
        ron_mutex_lock(ngx_ron_log_mutex);

        lost = ngx_ron_log_lost;
        ngx_ron_log_lost = 0;

        if (ngx_ron_log_n == 0) {
            ron_mutex_unlock(ngx_ron_log_mutex);
            break;
        }

        line = ngx_ron_log_ring[ngx_ron_log_first];
        ngx_ron_log_first = (ngx_ron_log_first + 1) % NGX_RON_LOG_LINES;
        ngx_ron_log_n--;

        ron_mutex_unlock(ngx_ron_log_mutex);

        if (lost) {
            ngx_log_error(NGX_LOG_WARN, log, 0,
                          "ron: %ui log lines were lost", lost);
        }

        ngx_log_error(ngx_ron_log_levels[line.level], log, 0, "ron: %*s",
                      line.len, line.text);
    }
}
