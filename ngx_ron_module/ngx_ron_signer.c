
/*
 * The keys that sign heads, as the master reads them: files of its own, which
 * nobody else may read.
 */

#include "ngx_ron.h"


static ngx_int_t ngx_ron_load_signer(ngx_cycle_t *cycle, ngx_str_t *file,
    ron_signer_t **signer);
static void ngx_ron_free_signer(void *data);
static ngx_int_t ngx_ron_read_file(ngx_cycle_t *cycle, ngx_str_t *name,
    u_char *buf, size_t *len);


ngx_int_t
ngx_ron_init_signer(ngx_cycle_t *cycle, ngx_ron_conf_t *rcf)
{
    ngx_int_t  rc;

    if (rcf->signing_key_old.len && rcf->signing_key.len == 0) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"ron_signing_key_old\" announces the key of "
                      "\"ron_signing_key\", which is not there");
        return NGX_ERROR;
    }

    rc = ngx_ron_load_signer(cycle, &rcf->signing_key, &rcf->signer);

    if (rc == NGX_OK) {
        rc = ngx_ron_load_signer(cycle, &rcf->signing_key_old,
                                 &rcf->signer_old);
    }

    return rc;
}


static ngx_int_t
ngx_ron_load_signer(ngx_cycle_t *cycle, ngx_str_t *file,
    ron_signer_t **signer)
{
    size_t               len;
    u_char               text[1024];
    ron_str_t            s;
    ron_status_t         rc;
    ngx_pool_cleanup_t  *cln;

    if (file->len == 0) {
        return NGX_OK;
    }

    if (ngx_conf_full_name(cycle, file, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    len = sizeof(text);

    if (ngx_ron_read_file(cycle, file, text, &len) != NGX_OK) {
        return NGX_ERROR;
    }

    while (len && (text[len - 1] == LF || text[len - 1] == CR)) {
        len--;
    }

    cln = ngx_pool_cleanup_add(cycle->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    s.data = text;
    s.len = len;

    rc = ron_signer_parse(s, signer);

    ngx_explicit_memzero(text, sizeof(text));

    if (rc != RON_OK) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"%V\" is not a signing key", file);
        return NGX_ERROR;
    }

    cln->handler = ngx_ron_free_signer;
    cln->data = *signer;

    return NGX_OK;
}


static void
ngx_ron_free_signer(void *data)
{
    ron_signer_free(data);
}


static ngx_int_t
ngx_ron_read_file(ngx_cycle_t *cycle, ngx_str_t *name, u_char *buf,
    size_t *len)
{
    ssize_t          n;
    ngx_fd_t         fd;
    ngx_file_info_t  fi;

    fd = ngx_open_file(name->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      ngx_open_file_n " \"%V\" failed", name);
        return NGX_ERROR;
    }

    n = -1;

    if (ngx_fd_info(fd, &fi) != NGX_FILE_ERROR
        && (ngx_file_access(&fi) & 077))
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "\"%V\" holds a secret and is open to others, its mode "
                      "must be 0600", name);

    } else {
        n = ngx_read_fd(fd, buf, *len);

        if (n == -1 || (size_t) n == *len) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log,
                          n == -1 ? ngx_errno : 0,
                          "\"%V\" cannot be read", name);
            n = -1;
        }
    }

    if (ngx_close_file(fd) == NGX_FILE_ERROR) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      ngx_close_file_n " \"%V\" failed", name);
    }

    if (n == -1) {
        return NGX_ERROR;
    }

    *len = n;

    return NGX_OK;
}
