
/*
 * Who may speak to a ron service over a UNIX socket.
 *
 * The kernel says who connected (SO_PEERCRED); whoever is not on the list of
 * ron_peers is refused before the capability is looked at, which is needed
 * all the same.  What counts is the socket that was listened on: the address
 * of a connection may have been replaced by what a header says.
 *
 * NGINX makes its UNIX sockets for everybody (0666).  Those of servers with a
 * ron service get the mode of ron_peers_mode and belong to the worker user,
 * before a worker accepts on them; who connected in between is asked for its
 * credentials like anybody else.
 */

#include "ngx_http_ron.h"

#include <grp.h>
#include <pwd.h>


#define NGX_HTTP_RON_PEERS_MODE  0660


typedef struct {
    ngx_str_t     path;
    ngx_uint_t    mode;
} ngx_http_ron_peers_socket_t;

typedef struct {
    ngx_array_t   sockets;          /* ngx_http_ron_peers_socket_t */
} ngx_http_ron_peers_main_conf_t;

typedef struct {
    ngx_uint_t    mode;
    ngx_uint_t    has_service;      /* unsigned  has_service:1; */
} ngx_http_ron_peers_srv_conf_t;

typedef struct {
    ngx_flag_t    any;
    ngx_array_t  *uids;             /* ngx_uint_t */
    ngx_array_t  *gids;
} ngx_http_ron_peers_loc_conf_t;


static ngx_int_t ngx_http_ron_peers_handler(ngx_http_request_t *r);
static ngx_uint_t ngx_http_ron_peers_allows(ngx_http_request_t *r,
    ngx_http_ron_peers_loc_conf_t *plcf, struct ucred *cred);
static ngx_uint_t ngx_http_ron_peers_has(ngx_array_t *list, ngx_uint_t id);
static ngx_int_t ngx_http_ron_peers_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_ron_peers_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_ron_peers_socket(ngx_conf_t *cf,
    ngx_http_conf_addr_t *addr);
static void *ngx_http_ron_peers_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_ron_peers_create_srv_conf(ngx_conf_t *cf);
static char *ngx_http_ron_peers_merge_srv_conf(ngx_conf_t *cf, void *parent,
    void *child);
static void *ngx_http_ron_peers_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_ron_peers_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_ron_peers_set(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_ron_peers_add(ngx_conf_t *cf,
    ngx_http_ron_peers_loc_conf_t *plcf, ngx_str_t *value);
static ngx_int_t ngx_http_ron_peers_id(ngx_conf_t *cf, ngx_str_t *name,
    ngx_uint_t group);
static char *ngx_http_ron_peers_set_mode(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


static ngx_command_t  ngx_http_ron_peers_commands[] = {

    { ngx_string("ron_peers"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_ron_peers_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("ron_peers_mode"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_http_ron_peers_set_mode,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_ron_peers_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_ron_peers_init,               /* postconfiguration */

    ngx_http_ron_peers_create_main_conf,   /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_ron_peers_create_srv_conf,    /* create server configuration */
    ngx_http_ron_peers_merge_srv_conf,     /* merge server configuration */

    ngx_http_ron_peers_create_loc_conf,    /* create location configuration */
    ngx_http_ron_peers_merge_loc_conf      /* merge location configuration */
};


ngx_module_t  ngx_http_ron_peers_module = {
    NGX_MODULE_V1,
    &ngx_http_ron_peers_module_ctx,        /* module context */
    ngx_http_ron_peers_commands,           /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_ron_peers_init_module,        /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_ron_peers_handler(ngx_http_request_t *r)
{
    struct ucred                    cred;
    ngx_http_ron_loc_conf_t        *rlcf;
    ngx_http_ron_peers_loc_conf_t  *plcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_module);

    if (rlcf->service == NULL || rlcf->service->svc == 0 || r != r->main
        || r->connection->listening == NULL
        || r->connection->listening->sockaddr->sa_family != AF_UNIX)
    {
        return NGX_DECLINED;
    }

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_ron_peers_module);

    if (plcf->any == 1 || ngx_http_ron_peers_allows(r, plcf, &cred)) {
        return NGX_DECLINED;
    }

    ngx_ron_count(RON_M_UDS_DENIED, 0, 0, 0, 0);

    ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                  "ron: process %P of uid %ui, gid %ui is not in \"ron_peers\"",
                  (ngx_pid_t) cred.pid, (ngx_uint_t) cred.uid,
                  (ngx_uint_t) cred.gid);

    ngx_http_finalize_request(r,
        ngx_http_ron_refuse(r, RON_REASON_POLICY_DENIED,
                            "this user may not use this socket, "
                            "see ron_peers", NULL));
    return NGX_DONE;
}


static ngx_uint_t
ngx_http_ron_peers_allows(ngx_http_request_t *r,
    ngx_http_ron_peers_loc_conf_t *plcf, struct ucred *cred)
{
    socklen_t  len;

    len = sizeof(struct ucred);

    if (getsockopt(r->connection->fd, SOL_SOCKET, SO_PEERCRED, cred, &len)
        == -1
        || len != sizeof(struct ucred))
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, ngx_socket_errno,
                      "ron: getsockopt(SO_PEERCRED) failed");
        ngx_memzero(cred, sizeof(struct ucred));
        cred->uid = (uid_t) -1;
        cred->gid = (gid_t) -1;
        return 0;
    }

    if (plcf->uids == NULL && plcf->gids == NULL) {

        /* nothing is said: root, and who the workers are */

        return cred->uid == 0 || cred->uid == geteuid();
    }

    return ngx_http_ron_peers_has(plcf->uids, cred->uid)
           || ngx_http_ron_peers_has(plcf->gids, cred->gid);
}


static ngx_uint_t
ngx_http_ron_peers_has(ngx_array_t *list, ngx_uint_t id)
{
    ngx_uint_t   i, *ids;

    if (list == NULL) {
        return 0;
    }

    ids = list->elts;

    for (i = 0; i < list->nelts; i++) {
        if (ids[i] == id) {
            return 1;
        }
    }

    return 0;
}


/* In the master, after it has bound and before there are new workers. */

static ngx_int_t
ngx_http_ron_peers_init_module(ngx_cycle_t *cycle)
{
    u_char                          *path;
    ngx_uint_t                       i;
    ngx_core_conf_t                 *ccf;
    ngx_http_ron_peers_socket_t     *s;
    ngx_http_ron_peers_main_conf_t  *pmcf;

    if (ngx_test_config || cycle->conf_ctx[ngx_http_module.index] == NULL) {
        return NGX_OK;
    }

    pmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_ron_peers_module);
    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    s = pmcf->sockets.elts;

    for (i = 0; i < pmcf->sockets.nelts; i++) {
        path = s[i].path.data;

        if (geteuid() == 0 && ccf->user != (ngx_uid_t) NGX_CONF_UNSET_UINT
            && chown((char *) path, ccf->user, ccf->group) == -1)
        {
            ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                          "chown() \"%s\" failed", path);
        }

        if (chmod((char *) path, (mode_t) s[i].mode) == -1) {
            ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                          "chmod() \"%s\" failed", path);
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_ron_peers_init(ngx_conf_t *cf)
{
    ngx_uint_t                  p, a;
    ngx_http_handler_pt        *h;
    ngx_http_conf_port_t       *port;
    ngx_http_conf_addr_t       *addr;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_ACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_ron_peers_handler;

    if (cmcf->ports == NULL) {
        return NGX_OK;
    }

    port = cmcf->ports->elts;

    for (p = 0; p < cmcf->ports->nelts; p++) {

        if (port[p].family != AF_UNIX) {
            continue;
        }

        addr = port[p].addrs.elts;

        for (a = 0; a < port[p].addrs.nelts; a++) {
            if (ngx_http_ron_peers_socket(cf, &addr[a]) != NGX_OK) {
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


/* The strictest mode of the servers on it that have a ron service. */

static ngx_int_t
ngx_http_ron_peers_socket(ngx_conf_t *cf, ngx_http_conf_addr_t *addr)
{
    size_t                            len;
    ngx_uint_t                        i, mode, found;
    struct sockaddr_un               *saun;
    ngx_http_core_srv_conf_t        **cscfp;
    ngx_http_ron_peers_socket_t      *s;
    ngx_http_ron_peers_srv_conf_t    *pscf;
    ngx_http_ron_peers_main_conf_t   *pmcf;

    found = 0;
    mode = 0777;
    cscfp = addr->servers.elts;

    for (i = 0; i < addr->servers.nelts; i++) {
        pscf = cscfp[i]->ctx->srv_conf[ngx_http_ron_peers_module.ctx_index];

        if (pscf->has_service) {
            found = 1;
            mode &= pscf->mode;
        }
    }

    saun = (struct sockaddr_un *) addr->opt.sockaddr;

    if (!found || saun->sun_path[0] == '\0') {
        return NGX_OK;
    }

    pmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_ron_peers_module);

    s = ngx_array_push(&pmcf->sockets);
    if (s == NULL) {
        return NGX_ERROR;
    }

    len = ngx_strlen(saun->sun_path);

    s->mode = mode;
    s->path.len = len;
    s->path.data = ngx_pnalloc(cf->pool, len + 1);

    if (s->path.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(s->path.data, saun->sun_path, len + 1);

    return NGX_OK;
}


static void *
ngx_http_ron_peers_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_ron_peers_main_conf_t  *pmcf;

    pmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_peers_main_conf_t));

    if (pmcf == NULL
        || ngx_array_init(&pmcf->sockets, cf->pool, 1,
                          sizeof(ngx_http_ron_peers_socket_t))
           != NGX_OK)
    {
        return NULL;
    }

    return pmcf;
}


static void *
ngx_http_ron_peers_create_srv_conf(ngx_conf_t *cf)
{
    ngx_http_ron_peers_srv_conf_t  *pscf;

    pscf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_peers_srv_conf_t));
    if (pscf == NULL) {
        return NULL;
    }

    pscf->mode = NGX_CONF_UNSET_UINT;

    return pscf;
}


static char *
ngx_http_ron_peers_merge_srv_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_ron_peers_srv_conf_t *prev = parent;
    ngx_http_ron_peers_srv_conf_t *conf = child;

    ngx_conf_merge_uint_value(conf->mode, prev->mode,
                              NGX_HTTP_RON_PEERS_MODE);
    return NGX_CONF_OK;
}


static void *
ngx_http_ron_peers_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_ron_peers_loc_conf_t  *plcf;

    plcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_ron_peers_loc_conf_t));
    if (plcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     plcf->uids = NULL;
     *     plcf->gids = NULL;
     */

    plcf->any = NGX_CONF_UNSET;

    return plcf;
}


static char *
ngx_http_ron_peers_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_ron_peers_loc_conf_t *prev = parent;
    ngx_http_ron_peers_loc_conf_t *conf = child;

    ngx_http_ron_loc_conf_t        *rlcf;
    ngx_http_ron_peers_srv_conf_t  *pscf;

    if (conf->any == NGX_CONF_UNSET) {
        *conf = *prev;
    }

    rlcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_ron_module);

    if (rlcf->service && rlcf->service->svc) {
        pscf = ngx_http_conf_get_module_srv_conf(cf,
                                                 ngx_http_ron_peers_module);
        pscf->has_service = 1;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_ron_peers_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_ron_peers_loc_conf_t *plcf = conf;

    char        *rv;
    ngx_str_t   *value;
    ngx_uint_t   i;

    if (plcf->any != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "any") == 0) {
        plcf->any = 1;
        return NGX_CONF_OK;
    }

    plcf->any = 0;

    for (i = 1; i < cf->args->nelts; i++) {
        rv = ngx_http_ron_peers_add(cf, plcf, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_ron_peers_add(ngx_conf_t *cf, ngx_http_ron_peers_loc_conf_t *plcf,
    ngx_str_t *value)
{
    ngx_int_t      id;
    ngx_str_t      name;
    ngx_uint_t     group, *slot;
    ngx_array_t  **list;

    if (ngx_strncmp(value->data, "uid=", 4) == 0) {
        group = 0;
        list = &plcf->uids;

    } else if (ngx_strncmp(value->data, "gid=", 4) == 0) {
        group = 1;
        list = &plcf->gids;

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\", "
                           "it must be \"any\", uid=... or gid=...", value);
        return NGX_CONF_ERROR;
    }

    name.data = value->data + 4;
    name.len = value->len - 4;

    id = ngx_http_ron_peers_id(cf, &name, group);

    if (id == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "there is no %s \"%V\" in "
                           "\"%V\"", group ? "group" : "user", &name, value);
        return NGX_CONF_ERROR;
    }

    if (*list == NULL) {
        *list = ngx_array_create(cf->pool, 4, sizeof(ngx_uint_t));

        if (*list == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    slot = ngx_array_push(*list);

    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = (ngx_uint_t) id;

    return NGX_CONF_OK;
}


/* A number needs no entry in the system's lists. */

static ngx_int_t
ngx_http_ron_peers_id(ngx_conf_t *cf, ngx_str_t *name, ngx_uint_t group)
{
    ngx_int_t       id;
    struct group   *gr;
    struct passwd  *pw;

    if (name->len == 0) {
        return NGX_ERROR;
    }

    id = ngx_atoi(name->data, name->len);

    if (id != NGX_ERROR) {
        return id <= (ngx_int_t) UINT32_MAX - 1 ? id : NGX_ERROR;
    }

    if (group) {
        gr = getgrnam((char *) name->data);

        return gr ? (ngx_int_t) gr->gr_gid : NGX_ERROR;
    }

    pw = getpwnam((char *) name->data);

    return pw ? (ngx_int_t) pw->pw_uid : NGX_ERROR;
}


static char *
ngx_http_ron_peers_set_mode(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_ron_peers_srv_conf_t *pscf = conf;

    u_char      *p, *last;
    ngx_str_t   *value;
    ngx_uint_t   mode;

    if (pscf->mode != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;
    p = value[1].data;
    last = p + value[1].len;
    mode = 0;

    for ( /* void */ ; p < last && mode <= 0777; p++) {
        if (*p < '0' || *p > '7') {
            break;
        }

        mode = mode * 8 + (*p - '0');
    }

    if (p != last || value[1].len < 3 || mode > 0777 || (mode & 0600) != 0600)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid mode \"%V\", it must "
                           "be octal and let its owner read and write, "
                           "as 0660", &value[1]);
        return NGX_CONF_ERROR;
    }

    pscf->mode = mode;

    return NGX_CONF_OK;
}
