
/*
 * What libron waits in and what is not of the port: sockets, the loop of the
 * sequencer, and SQLite.  With -Wl,--wrap=f a call of f() comes to __wrap_f(),
 * and __real_f() is f().  See ron_lock.h.
 */

#include "ron_lock.h"

#ifdef RON_LOCK_CHECK

#include <sqlite3.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>


/* X(type, name, parameters, arguments) */

#define RON_LOCK_WRAPPED(X)                                                   \
    X(ssize_t, read, (int fd, void *buf, size_t len), (fd, buf, len))         \
    X(ssize_t, write, (int fd, const void *buf, size_t len), (fd, buf, len))  \
    X(ssize_t, recv, (int fd, void *buf, size_t len, int flags),              \
      (fd, buf, len, flags))                                                  \
    X(ssize_t, send, (int fd, const void *buf, size_t len, int flags),        \
      (fd, buf, len, flags))                                                  \
    X(int, connect, (int fd, const struct sockaddr *sa, socklen_t len),       \
      (fd, sa, len))                                                          \
    X(int, accept4, (int fd, struct sockaddr *sa, socklen_t *len, int flags), \
      (fd, sa, len, flags))                                                   \
    X(int, epoll_wait, (int fd, struct epoll_event *ev, int n, int ms),       \
      (fd, ev, n, ms))                                                        \
    X(int, sqlite3_open_v2, (const char *path, sqlite3 **db, int flags,       \
      const char *vfs), (path, db, flags, vfs))                               \
    X(int, sqlite3_close, (sqlite3 *db), (db))                                \
    X(int, sqlite3_exec, (sqlite3 *db, const char *sql,                       \
      int (*fn)(void *, int, char **, char **), void *ctx, char **why),       \
      (db, sql, fn, ctx, why))                                                \
    X(int, sqlite3_prepare_v2, (sqlite3 *db, const char *sql, int len,        \
      sqlite3_stmt **stmt, const char **tail), (db, sql, len, stmt, tail))    \
    X(int, sqlite3_prepare_v3, (sqlite3 *db, const char *sql, int len,        \
      unsigned flags, sqlite3_stmt **stmt, const char **tail),                \
      (db, sql, len, flags, stmt, tail))                                      \
    X(int, sqlite3_step, (sqlite3_stmt *stmt), (stmt))                        \
    X(int, sqlite3_finalize, (sqlite3_stmt *stmt), (stmt))                    \
    X(int, sqlite3_wal_checkpoint_v2, (sqlite3 *db, const char *name,         \
      int mode, int *log, int *done), (db, name, mode, log, done))

#define RON_LOCK_WRAP(type, name, params, args)                               \
    type __real_##name params;                                                \
    type __wrap_##name params;                                                \
                                                                              \
                                                                              \
    type                                                                      \
    __wrap_##name params                                                      \
    {                                                                         \
        ron_lock_wait(#name "()");                                            \
                                                                              \
        return __real_##name args;                                            \
    }

RON_LOCK_WRAPPED(RON_LOCK_WRAP)


#endif /* RON_LOCK_CHECK */
