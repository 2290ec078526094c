
/*
 * What an operator asks of snapshots.  They are taken on a thread of their
 * own; here one is begun, or it is told how it goes, and nothing waits.
 *
 *     ADMIN     u8 RON_ADMIN_SNAPSHOT | u8 take? | name
 *     ADMIN_IS  snapshot (its state), name, began_ms, and
 *               running: done, total
 *               done:    seq, first, commits, root, chain, bytes, blake3,
 *                        took_ms
 *               failed:  why
 */

#include "ron_service_impl.h"
#include "ron_codec.h"

#include <stdio.h>


#define RON_SNAPSHOT_VALUES     12
#define RON_SNAPSHOT_VALUE_LEN  72


typedef struct {
    ron_msg_admin_t      admin;
    ron_snapshot_stat_t  stat;
    unsigned             n;
    char                 value[RON_SNAPSHOT_VALUES][RON_SNAPSHOT_VALUE_LEN];
} ron_service_snapshot_t;


static void ron_snapshot_number(ron_service_snapshot_t *a, const char *key,
    uint64_t number);
static void ron_snapshot_hash(ron_service_snapshot_t *a, const char *key,
    const ron_hash_t *hash);
static void ron_snapshot_tell(ron_service_snapshot_t *a);


void
ron_service_got_snapshot(ron_service_t *s, const ron_reply_t *reply,
    ron_str_t payload)
{
    bool                    take;
    ron_str_t               name;
    ron_status_t            status;
    ron_service_snapshot_t  a;

    memset(&a, 0, sizeof(a));
    a.admin.status = RON_ADMIN_DONE;

    take = payload.len > 0 && payload.data[0] == 1;
    name = payload.len > 0 ? (ron_str_t) { payload.len - 1, payload.data + 1 }
                           : ron_null_str;

    if (s->conf.snapshots == NULL) {
        a.admin.status = RON_ADMIN_UNAVAILABLE;
        a.admin.text = ron_str("there is no \"ron_snapshot_dir\"");

    } else {
        status = take ? ron_snapshot_thread_take(s->conf.snapshots, name)
                      : RON_OK;

        if (status == RON_EFENCED) {
            a.admin.status = RON_ADMIN_REFUSED;
            a.admin.text = ron_str("a snapshot is being taken");

        } else if (status != RON_OK) {
            a.admin.status = RON_ADMIN_FAILED;
            a.admin.text = ron_str("not the name of a snapshot");
        }

        ron_snapshot_thread_stat(s->conf.snapshots, &a.stat);
        ron_snapshot_tell(&a);
    }

    ron_buf_reset(&s->scratch);
    ron_msg_admin_put(&s->scratch, &a.admin);
    ron_service_answer(s, reply, RON_FRAME_ADMIN_IS, ron_buf_str(&s->scratch));
}


static void
ron_snapshot_tell(ron_service_snapshot_t *a)
{
    const ron_snapshot_info_t  *info;

    ron_msg_admin_add(&a->admin, ron_str("snapshot"),
                      ron_cstr(ron_snapshot_state_name(a->stat.state)));

    if (a->stat.state == RON_SNAPSHOT_IDLE) {
        return;
    }

    ron_msg_admin_add(&a->admin, ron_str("name"), ron_cstr(a->stat.name));
    ron_snapshot_number(a, "began_ms", a->stat.began_ms);

    switch (a->stat.state) {

    case RON_SNAPSHOT_RUNNING:
        ron_snapshot_number(a, "done", a->stat.done);
        ron_snapshot_number(a, "total", a->stat.total);
        break;

    case RON_SNAPSHOT_FAILED:
        ron_msg_admin_add(&a->admin, ron_str("why"), ron_cstr(a->stat.why));
        break;

    default:
        info = &a->stat.info;
        ron_snapshot_number(a, "seq", info->seq);
        ron_snapshot_number(a, "first", info->first);
        ron_snapshot_number(a, "commits", info->commits);
        ron_snapshot_number(a, "bytes", info->bytes);
        ron_snapshot_number(a, "took_ms", info->took_us / 1000);
        ron_snapshot_hash(a, "root", &info->root);
        ron_snapshot_hash(a, "chain", &info->chain);
        ron_snapshot_hash(a, "blake3", &info->file);
        break;
    }
}


static void
ron_snapshot_number(ron_service_snapshot_t *a, const char *key,
    uint64_t number)
{
    char  *value;

    RON_ASSERT(a->n < RON_SNAPSHOT_VALUES);
    value = a->value[a->n++];

    (void) snprintf(value, RON_SNAPSHOT_VALUE_LEN, "%llu",
                    (unsigned long long) number);
    ron_msg_admin_add(&a->admin, ron_cstr(key), ron_cstr(value));
}


static void
ron_snapshot_hash(ron_service_snapshot_t *a, const char *key,
    const ron_hash_t *hash)
{
    char  *value;

    RON_ASSERT(a->n < RON_SNAPSHOT_VALUES);
    value = a->value[a->n++];

    value[ron_hex_encode((ron_str_t) { RON_HASH_LEN, hash->b }, value)] = 0;
    ron_msg_admin_add(&a->admin, ron_cstr(key), ron_cstr(value));
}
