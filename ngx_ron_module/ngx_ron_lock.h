
/*
 * The order of locks, asserted in a worker and the helper; see ron_lock.h.
 */

#ifndef _NGX_RON_LOCK_H_INCLUDED_
#define _NGX_RON_LOCK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#ifdef RON_LOCK_CHECK

/* At the start of a process, once NGINX has its event loop. */
void ngx_ron_lock_init(ngx_cycle_t *cycle);

#else

#define ngx_ron_lock_init(cycle)

#endif


#endif /* _NGX_RON_LOCK_H_INCLUDED_ */
