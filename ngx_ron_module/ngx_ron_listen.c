
/*
 * UNIX sockets that a server of before left behind: a master that is killed,
 * or a machine that goes down, removes none, and NGINX refuses to start over
 * one ("Address already in use").
 *
 * Before a first start takes its listeners, each of them that is a socket in
 * the file system is tried: one that nobody answers on is removed.  Twice, as
 * another server may just have bound it and not listen yet.  A reload or a
 * binary upgrade finds whoever listens; a test of the configuration and a
 * signal look at nothing.
 */

#include "ngx_ron.h"


#define NGX_RON_LISTEN_AGAIN  100


static ngx_uint_t ngx_ron_listen_dead(ngx_listening_t *ls);


void
ngx_ron_listen_clean(ngx_cycle_t *cycle)
{
    u_char           *name;
    ngx_uint_t        i;
    ngx_file_info_t   fi;
    ngx_listening_t  *ls;

    if (ngx_test_config || ngx_process == NGX_PROCESS_SIGNALLER
        || !ngx_is_init_cycle(cycle->old_cycle))
    {
        return;
    }

    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (ls[i].sockaddr->sa_family != AF_UNIX
            || ls[i].type != SOCK_STREAM)
        {
            continue;
        }

        name = (u_char *) ((struct sockaddr_un *) ls[i].sockaddr)->sun_path;

        if (ngx_link_info(name, &fi) == NGX_FILE_ERROR
            || !S_ISSOCK(fi.st_mode) || !ngx_ron_listen_dead(&ls[i]))
        {
            continue;
        }

        ngx_msleep(NGX_RON_LISTEN_AGAIN);

        if (!ngx_ron_listen_dead(&ls[i])) {
            continue;
        }

        if (ngx_delete_file(name) == NGX_FILE_ERROR) {
            ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                          ngx_delete_file_n " \"%s\" failed", name);
            continue;
        }

        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                      "ron: \"%s\" was left by a server that died, nobody "
                      "answers on it: removed", name);
    }
}


static ngx_uint_t
ngx_ron_listen_dead(ngx_listening_t *ls)
{
    ngx_uint_t    dead;
    ngx_socket_t  s;

    s = ngx_socket(AF_UNIX, SOCK_STREAM, 0);

    if (s == (ngx_socket_t) -1) {
        return 0;
    }

    dead = ngx_nonblocking(s) != -1
           && connect(s, ls->sockaddr, ls->socklen) == -1
           && ngx_socket_errno == NGX_ECONNREFUSED;

    (void) ngx_close_socket(s);

    return dead;
}
