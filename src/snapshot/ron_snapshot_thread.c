
#include "ron_snapshot_thread.h"
#include "ron_engine.h"
#include "ron_log.h"
#include "ron_port.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>


#define RON_SNAPSHOT_DIR_MAX  400


struct ron_snapshot_thread_s {
    ron_snapshot_thread_conf_t  conf;
    ron_mutex_t                *mutex;
    ron_thread_t               *thread;         /* the tick's; NULL: none */

    /* under the mutex; RUNNING from take() until the thread is joined */
    bool                        stopping;
    bool                        ended;
    ron_snapshot_stat_t         stat;
    ron_snapshot_state_t        result;
};

typedef struct {
    const char  *name;
    uint32_t     n;
    bool         found;
} ron_snapshot_names_t;


static void ron_snapshot_main(void *arg);
static ron_status_t ron_snapshot_one(ron_snapshot_thread_t *t,
    const char *name, ron_snapshot_info_t *info, ron_buf_t *why);
static ron_status_t ron_snapshot_place(ron_snapshot_thread_t *t,
    const char *name, char *dir, ron_buf_t *why);
static ron_status_t ron_snapshot_name(void *ctx, const char *name);
static bool ron_snapshot_progress(void *ctx, uint64_t done, uint64_t total);
static void ron_snapshot_ended(ron_snapshot_thread_t *t, ron_status_t status,
    const ron_snapshot_info_t *info, const ron_buf_t *why);


bool
ron_snapshot_name_valid(ron_str_t name)
{
    size_t   i;
    uint8_t  ch;

    if (name.len == 0 || name.len > RON_SNAPSHOT_NAME_MAX
        || name.data[0] == '.')
    {
        return false;
    }

    for (i = 0; i < name.len; i++) {
        ch = name.data[i];

        if (!(ch >= 'a' && ch <= 'z') && !(ch >= 'A' && ch <= 'Z')
            && !(ch >= '0' && ch <= '9') && ch != '.' && ch != '_'
            && ch != '-')
        {
            return false;
        }
    }

    return true;
}


const char *
ron_snapshot_state_name(ron_snapshot_state_t state)
{
    static const char *const  names[] = {
#define RON_SNAPSHOT_STATE(id, text)  text,
        RON_SNAPSHOT_STATES(RON_SNAPSHOT_STATE)
#undef RON_SNAPSHOT_STATE
    };

    RON_ASSERT((unsigned) state < RON_SNAPSHOT_STATE_N);

    return names[state];
}


ron_status_t
ron_snapshot_thread_start(const ron_snapshot_thread_conf_t *conf,
    ron_snapshot_thread_t **thread)
{
    ron_status_t            status;
    ron_snapshot_thread_t  *t;

    *thread = NULL;

    if (conf->dir == NULL
        || strlen(conf->dir) + RON_SNAPSHOT_NAME_MAX + 2
           > RON_SNAPSHOT_DIR_MAX)
    {
        return RON_EINVAL;
    }

    t = calloc(1, sizeof(ron_snapshot_thread_t));
    if (t == NULL) {
        return RON_ENOMEM;
    }

    t->conf = *conf;
    t->conf.store.create = false;

    status = ron_mutex_create(&t->mutex, RON_LOCK_SNAPSHOT);

    if (status != RON_OK) {
        free(t);
        return status;
    }

    *thread = t;

    return RON_OK;
}


ron_status_t
ron_snapshot_thread_take(ron_snapshot_thread_t *t, ron_str_t name)
{
    ron_status_t  status;

    if (!ron_snapshot_name_valid(name)) {
        return RON_EINVAL;
    }

    status = RON_EFENCED;
    ron_mutex_lock(t->mutex);

    if (t->stat.state != RON_SNAPSHOT_RUNNING && !t->stopping) {
        memset(&t->stat, 0, sizeof(t->stat));
        t->stat.state = RON_SNAPSHOT_RUNNING;
        t->stat.began_ms = ron_clock_wall_ms();
        memcpy(t->stat.name, name.data, name.len);
        t->ended = false;
        status = RON_OK;
    }

    ron_mutex_unlock(t->mutex);

    return status;
}


void
ron_snapshot_thread_stat(ron_snapshot_thread_t *t, ron_snapshot_stat_t *stat)
{
    ron_mutex_lock(t->mutex);
    *stat = t->stat;
    ron_mutex_unlock(t->mutex);
}


void
ron_snapshot_thread_tick(ron_snapshot_thread_t *t)
{
    bool          wanted, ended;
    ron_status_t  status;

    ron_mutex_lock(t->mutex);
    wanted = t->stat.state == RON_SNAPSHOT_RUNNING && !t->stopping;
    ended = t->ended;
    ron_mutex_unlock(t->mutex);

    if (t->thread != NULL) {

        if (ended && ron_thread_join(t->thread, 0) == RON_OK) {
            t->thread = NULL;

            ron_mutex_lock(t->mutex);
            t->stat.state = t->result;
            ron_mutex_unlock(t->mutex);
        }

        return;
    }

    if (!wanted) {
        return;
    }

    status = ron_thread_start(&t->thread, "ron-snapshot", RON_THREAD_IDLE,
                              ron_snapshot_main, t);

    if (status != RON_OK) {
        t->thread = NULL;

        ron_mutex_lock(t->mutex);
        t->stat.state = RON_SNAPSHOT_FAILED;
        (void) snprintf(t->stat.why, sizeof(t->stat.why), "no thread: %s",
                        ron_status_name(status));
        ron_mutex_unlock(t->mutex);
    }
}


ron_status_t
ron_snapshot_thread_stop(ron_snapshot_thread_t *t, uint64_t timeout_ms)
{
    ron_status_t  status;

    ron_mutex_lock(t->mutex);
    t->stopping = true;
    ron_mutex_unlock(t->mutex);

    status = t->thread != NULL ? ron_thread_join(t->thread, timeout_ms)
                               : RON_OK;

    if (status == RON_OK) {
        ron_mutex_destroy(t->mutex);
        free(t);
    }

    return status;
}


/* ---- the thread --------------------------------------------------------- */

static void
ron_snapshot_main(void *arg)
{
    char                    name[RON_SNAPSHOT_NAME_MAX + 1];
    ron_buf_t               why;
    ron_status_t            status;
    ron_snapshot_info_t     info;
    ron_snapshot_thread_t  *t = arg;

    ron_mutex_lock(t->mutex);
    memcpy(name, t->stat.name, sizeof(name));
    ron_mutex_unlock(t->mutex);

    ron_buf_init(&why, 1024);
    memset(&info, 0, sizeof(info));
    status = ron_snapshot_one(t, name, &info, &why);
    ron_snapshot_ended(t, status, &info, &why);
    ron_buf_free(&why);
}


static ron_status_t
ron_snapshot_one(ron_snapshot_thread_t *t, const char *name,
    ron_snapshot_info_t *info, ron_buf_t *why)
{
    char           dir[RON_SNAPSHOT_DIR_MAX];
    ron_store_t   *store;
    ron_status_t   status;
    ron_signer_t  *own;

    own = NULL;
    store = NULL;

    status = ron_snapshot_place(t, name, dir, why);

    if (status == RON_OK) {
        status = ron_store_open(&t->conf.store, &store);

        if (status != RON_OK) {
            ron_buf_put_cstr(why, ron_store_error(NULL));
        }
    }

    if (status == RON_OK && t->conf.room != NULL
        && !t->conf.room(t->conf.ctx, ron_store_dir(store), dir))
    {
        ron_buf_printf(why, "there is no room for it in %s", t->conf.dir);
        status = RON_EFULL;
    }

    if (status == RON_OK && t->conf.signer == NULL) {
        status = ron_signing_load(ron_store_dir(store), &own);

        if (status != RON_OK) {
            ron_buf_put_cstr(why, "the ledger's signing.key cannot be read");
        }
    }

    if (status == RON_OK) {
        status = ron_snapshot_take(store, dir, own != NULL ? own
                                                           : t->conf.signer,
                                   ron_snapshot_progress, t, info, why);
    }

    if (own != NULL) {
        ron_signer_free(own);
    }

    if (store != NULL) {
        ron_store_close(store);
    }

    return status;
}


/* A name that is not there yet must still fit among the others. */

static ron_status_t
ron_snapshot_place(ron_snapshot_thread_t *t, const char *name, char *dir,
    ron_buf_t *why)
{
    ron_status_t          status;
    ron_snapshot_names_t  names;

    names = (ron_snapshot_names_t) { name, 0, false };

    status = ron_dir_make(t->conf.dir);

    if (status == RON_OK) {
        status = ron_dir_each(t->conf.dir, ron_snapshot_name, &names);
    }

    if (status != RON_OK) {
        ron_buf_printf(why, "%s: %s", t->conf.dir, ron_port_error());
        return status;
    }

    if (!names.found && names.n >= t->conf.max) {
        ron_buf_printf(why, "there are %u snapshots already, which is what "
                       "ron_snapshot_dir allows: take one of their names, or "
                       "remove one", names.n);
        return RON_EFULL;
    }

    (void) snprintf(dir, RON_SNAPSHOT_DIR_MAX, "%s/%s", t->conf.dir, name);

    return RON_OK;
}


static ron_status_t
ron_snapshot_name(void *ctx, const char *name)
{
    ron_snapshot_names_t  *names = ctx;

    if (ron_snapshot_name_valid(ron_cstr(name))) {
        names->n++;
        names->found = names->found || strcmp(name, names->name) == 0;
    }

    return RON_OK;
}


static bool
ron_snapshot_progress(void *ctx, uint64_t done, uint64_t total)
{
    bool                    go_on;
    ron_snapshot_thread_t  *t = ctx;

    ron_mutex_lock(t->mutex);
    t->stat.done = done;
    t->stat.total = total;
    go_on = !t->stopping;
    ron_mutex_unlock(t->mutex);

    return go_on;
}


static void
ron_snapshot_ended(ron_snapshot_thread_t *t, ron_status_t status,
    const ron_snapshot_info_t *info, const ron_buf_t *why)
{
    ron_snapshot_stat_t  stat;

    ron_mutex_lock(t->mutex);

    t->ended = true;

    if (status == RON_OK) {
        t->result = RON_SNAPSHOT_DONE;
        t->stat.info = *info;

    } else {
        t->result = RON_SNAPSHOT_FAILED;
        (void) snprintf(t->stat.why, sizeof(t->stat.why), "%.*s",
                        (int) why->len,
                        why->len ? (const char *) why->data : "");

        if (why->len == 0) {
            (void) snprintf(t->stat.why, sizeof(t->stat.why), "%s",
                            status == RON_ECANCELED
                            ? "the server was ending; take it again, it goes "
                              "on where it was" : ron_status_name(status));
        }
    }

    stat = t->stat;
    ron_mutex_unlock(t->mutex);

    if (status == RON_OK) {
        ron_log(RON_LOG_INFO, "snapshot \"%s\": height %" PRIu64 ", from seq "
                "%" PRIu64 ", %" PRIu64 " bytes, in %" PRIu64 " ms", stat.name,
                info->seq, info->first, info->bytes, info->took_us / 1000);

    } else {
        ron_log(RON_LOG_ERROR, "snapshot \"%s\" failed: %s", stat.name,
                stat.why);
    }
}
