
/*
 * The registry's tables.
 */

#include "ron_registry.h"


const ron_queue_info_t *
ron_queue_info(ron_queue_id_t queue)
{
    static const ron_queue_info_t  queues[] = {
#define RON_QUEUE_ROW(id, name, service, kind, capacity, policy, label, owner)\
        { name, service, kind, capacity, policy, label, owner },
        RON_QUEUES(RON_QUEUE_ROW)
#undef RON_QUEUE_ROW
    };

    RON_ASSERT((unsigned) queue < RON_QUEUE_N);

    return &queues[queue];
}


const ron_lock_info_t *
ron_lock_info(ron_lock_id_t lock)
{
    static const ron_lock_info_t  locks[] = {
#define RON_LOCK_ROW(id, name, order, owner)  { name, order, owner },
        RON_LOCKS(RON_LOCK_ROW)
#undef RON_LOCK_ROW
    };

    RON_ASSERT((unsigned) lock < RON_LOCK_N);

    return &locks[lock];
}


const ron_timeout_info_t *
ron_timeout_info(ron_timeout_id_t timeout)
{
    static const ron_timeout_info_t  timeouts[] = {
#define RON_TIMEOUT_ROW(id, name, ms, what)  { name, ms, what },
        RON_TIMEOUTS(RON_TIMEOUT_ROW)
#undef RON_TIMEOUT_ROW
    };

    RON_ASSERT((unsigned) timeout < RON_TIMEOUT_N);

    return &timeouts[timeout];
}
