
/*
 * What differs between the versions of NGINX that this is built for, from
 * 1.22.1 to the current mainline.  Nothing else asks for nginx_version.
 */

#ifndef _NGX_RON_COMPAT_H_INCLUDED_
#define _NGX_RON_COMPAT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#if (nginx_version < 1022001)
#error "ngx_ron needs nginx 1.22.1 or newer"
#endif


/* since 1.23.0 headers of one name are a list */

#if (nginx_version >= 1023000)
#define ngx_ron_table_elt_init(h)  (h)->next = NULL
#else
#define ngx_ron_table_elt_init(h)
#endif


/* a request that was ended while a thread worked for it: since 1.25.4 */

#if (nginx_version >= 1025004)
#define ngx_ron_terminated(r)  ((r)->main->terminated)
#else
#define ngx_ron_terminated(r)  0
#endif


#endif /* _NGX_RON_COMPAT_H_INCLUDED_ */
