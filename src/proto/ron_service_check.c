
/*
 * What the service asks before it believes that all is well, beyond what the
 * engine checks: does the journal reach what was published, and does whoever
 * looks for the socket's name find somebody?
 *
 * A name that nobody answers at is what a helper leaves behind that had no
 * time to end: a stop removes it, and a successor renames its own over it.
 * So at the start it says that the one before died.  In safe mode, where
 * nobody holds the lock and two helpers may have taken the name from each
 * other, it says that the other one is gone and that it is our turn.
 */

#include "ron_service_impl.h"
#include "ron_history.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>


typedef enum {
    RON_WANT_NOTHING = 0,
    RON_WANT_WRITING,
    RON_WANT_READY
} ron_service_want_t;


/* Is there a name, and nobody behind it? */

bool
ron_service_name_dead(const ron_service_t *s)
{
    int   fd;
    bool  dead;

    if (s->abstract) {
        return false;
    }

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd == -1) {
        return false;
    }

    dead = connect(fd, (const struct sockaddr *) &s->addr, sizeof(s->addr))
           == -1 && errno == ECONNREFUSED;

    (void) close(fd);

    return dead;
}


/* Nobody has renamed another socket over it. */

bool
ron_service_name_is_ours(const ron_service_t *s)
{
    struct stat  st;

    return s->bound && stat(s->conf.socket, &st) == 0
           && (uint64_t) st.st_ino == s->ino
           && (uint64_t) st.st_dev == s->dev;
}


void
ron_service_check_name(ron_service_t *s)
{
    struct stat  st;

    if (s->abstract || s->listener == -1 || ron_service_name_is_ours(s)) {
        return;
    }

    if (stat(s->conf.socket, &st) == 0 && !ron_service_name_dead(s)) {
        return;
    }

    ron_log(RON_LOG_WARN, "nobody answers at the ledger's socket \"%s\":"
            " binding it again", s->conf.socket);

    ron_service_unlisten(s, false);
    ron_service_bind_again(s);
}


/*
 * The head may not be behind what anybody was told: a process that died may
 * have said so in shared memory, and history may have projected it.
 */

ron_status_t
ron_service_check_published(ron_service_t *s)
{
    uint64_t     watermark;
    const char  *dir;

    if (s->conf.published_seq > s->seq) {
        ron_buf_printf(&s->why, "the journal ends at seq %llu, but seq %llu"
                       " was published: it has been cut",
                       (unsigned long long) s->seq,
                       (unsigned long long) s->conf.published_seq);
        return ron_corrupt();
    }

    dir = ron_store_dir(ron_engine_store(s->engine));

    /* history that cannot be read is made anew: it is no witness */

    if (dir != NULL && ron_history_peek(dir, &watermark) == RON_OK
        && watermark > s->seq)
    {
        ron_buf_printf(&s->why, "the journal ends at seq %llu, but history.db"
                       " has entries up to seq %llu: it has been cut",
                       (unsigned long long) s->seq,
                       (unsigned long long) watermark);
        return ron_corrupt();
    }

    return RON_OK;
}


/* ---- somebody else found something -------------------------------------- */

void
ron_service_distrust(ron_service_t *s, const char *why)
{
    int  nothing;

    nothing = RON_WANT_NOTHING;

    if (!atomic_compare_exchange_strong(&s->want_safe, &nothing,
                                        RON_WANT_WRITING))
    {
        return;
    }

    (void) snprintf(s->want_why, sizeof(s->want_why), "%s", why);
    atomic_store(&s->want_safe, RON_WANT_READY);
    ron_service_wake(s);
}


void
ron_service_check_distrust(ron_service_t *s)
{
    if (atomic_load(&s->want_safe) != RON_WANT_READY) {
        return;
    }

    if (s->state == RON_STATE_RUNNING || s->state == RON_STATE_DRAINING) {
        ron_service_enter_safe(s, RON_SAFE_GAP, s->want_why);
    }

    atomic_store(&s->want_safe, RON_WANT_NOTHING);
}
