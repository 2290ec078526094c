
/*
 * The order of locks, asserted while the program runs.
 *
 * Built with -DRON_LOCK_CHECK=1, every thread knows which locks of the
 * registry it holds.  Taking one whose order is not above that of each lock
 * held, and waiting with any held, ends the process with a line that names
 * both: for a file, a socket, SQLite, a log line, another lock's condition, a
 * thread's end, or the next event.  Without it all of this is nothing, and
 * costs nothing.
 *
 * The port and the log say by themselves that they wait.  What libron calls
 * in the C library and in SQLite goes through ron_lock_wrap.c, which the
 * linker puts before the real function (-Wl,--wrap): the makefile has the
 * list, RON_LOCK_WRAPS.
 */

#ifndef RON_LOCK_H
#define RON_LOCK_H


#include "ron.h"
#include "ron_registry.h"


#ifdef RON_LOCK_CHECK

/* Before a lock is taken: it has to be above each one that is held. */
void ron_lock_take(ron_lock_id_t lock);

/* Before it is given back; one that is not held is an assertion too. */
void ron_lock_leave(ron_lock_id_t lock);

/* Before a wait for `what`: nothing may be held. */
void ron_lock_wait(const char *what);

/* Before a wait for a condition of `lock`: nothing else may be held. */
void ron_lock_wait_for(ron_lock_id_t lock);

#else

#define ron_lock_take(lock)
#define ron_lock_leave(lock)
#define ron_lock_wait(what)
#define ron_lock_wait_for(lock)

#endif


#endif /* RON_LOCK_H */
