
/*
 * What the files of the service share.  Everything is owned by the
 * sequencer's thread but the words marked atomic.
 *
 *     ron_service.c        life: states, taking over, safe mode, stopping
 *     ron_service_conn.c   sockets, handshake, frames in and out
 *     ron_service_work.c   preval, deciding, answering
 *     ron_service_admin.c  what an operator asks
 *     ron_service_snapshot.c  and of snapshots
 *     ron_service_stat.c   what is only counted
 *     ron_service_check.c  is the journal what was published, and the name?
 */

#ifndef RON_SERVICE_IMPL_H
#define RON_SERVICE_IMPL_H


#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ron_auth.h"
#include "ron_conn.h"
#include "ron_log.h"
#include "ron_msg.h"
#include "ron_port.h"
#include "ron_registry.h"
#include "ron_service.h"


#define RON_SERVICE_WHY     1024
#define RON_SERVICE_SPARE   256             /* blocks of items kept */

/* balance queries that wait */
#define RON_SERVICE_WAITS   (ron_queue_info(RON_QUEUE_BALANCES)->capacity)


typedef struct {
    int         fd;
    uint32_t    no;
    uint64_t    serial;                 /* tells it from an earlier one */
    uint64_t    since_us;
    ron_conn_t  conn;
    ron_buf_t   hello;                  /* as it was sent, until READY */
    uint32_t    pid;
    uint32_t    slot;
    bool        ready;
    bool        polled_out;
    bool        dirty;                  /* in the list of those to write */
    bool        doomed;                 /* to be closed at the turn's end */
} ron_peer_t;

/* Where an answer goes, if that connection still lives. */
typedef struct {
    uint32_t  no;
    uint64_t  serial;
    uint64_t  call;
} ron_reply_t;

/* A unit that was read: one block, its bytes behind it. */
typedef struct {
    ron_unit_t   unit;
    ron_reply_t  reply;
    size_t       len;                   /* of all of it */
    size_t       bytes_len;
    ron_entry_t  one;                   /* ops of the most common unit */
    uint8_t      bytes[];
} ron_item_t;

/* A balance that was read on top of batches that are not durable yet. */
typedef struct {
    ron_reply_t        reply;
    uint64_t           ticket;          /* batches decided until then */
    ron_msg_balance_t  balance;
    uint16_t           account_len;
    uint16_t           asset_len;       /* behind the account */
    char               name[RON_ACCOUNT_MAX + RON_ASSET_MAX];
} ron_wait_t;


typedef enum {
    RON_STAT_STATE = 0,
    RON_STAT_WRITER,
    RON_STAT_PREVAL_DEPTH,
    RON_STAT_PREVAL_DROPS,
    RON_STAT_COMMIT_DEPTH,
    RON_STAT_COMMIT_REJECTS,
    RON_STAT_BALANCE_DEPTH,
    RON_STAT_BALANCE_REJECTS,
    RON_STAT_WORK_TAKEN,
    RON_STAT_CONNECTIONS,
    RON_STAT_UNITS,
    RON_STAT_BATCHES,
    RON_STAT_ENTRIES,
    RON_STAT_SEQ,
    RON_STAT_TIME_MS,
    RON_STAT_COMMITTED_MS,
    RON_STAT_SYNC_SINCE_US,
    RON_STAT_AUTH_FAILURES,
    RON_STAT_DENIED,
    RON_STAT_PROTOCOL_ERRORS,
    RON_STAT_SLOW_CLOSED,
    RON_STAT_SAFE_ENTERED,
    RON_STAT_SYNC_FAILURES,
    RON_STAT_GAPS,
    RON_STAT_CONSERVED,
    RON_STAT_NOT_CONSERVED,
    RON_STAT_NO_ROOM,
    RON_STAT_N
} ron_service_word_t;


struct ron_service_s {
    ron_service_conf_t    conf;
    ron_auth_key_t        key;
    struct sockaddr_un    addr;
    socklen_t             addr_len;
    char                  temp[sizeof(((struct sockaddr_un *) 0)->sun_path)
                               + 16];
    bool                  abstract;

    ron_thread_t         *thread;
    int                   epoll;
    int                   wake;             /* eventfd */
    int                   listener;
    bool                  listener_off;     /* no descriptors left */
    bool                  bound;            /* the path is ours */
    uint64_t              ino;              /* what we gave the name to */
    uint64_t              dev;

    /* atomic, any thread */
    _Atomic uint64_t      stat[RON_STAT_N];
    atomic_bool           want_drain;
    atomic_bool           want_stop;
    atomic_int            want_safe;        /* and want_why says why */
    char                  want_why[160];
    _Atomic uint64_t      stop_us;

    /* life */
    ron_engine_t         *engine;           /* NULL: not open */
    bool                  writer;           /* acquire succeeded */
    ron_life_t            state;
    ron_safe_t            safe;
    bool                  safe_ack;         /* an operator must say so */
    bool                  marked;           /* and the mark says it too */
    bool                  level;            /* follower has seen the head */
    bool                  gap;              /* found, and counted */
    bool                  unclean;
    uint64_t              open_us;          /* the engine's, begun */
    uint64_t              lock_us;          /* the lock asked for last */
    uint64_t              retry_us;
    uint64_t              retry_delay_us;
    uint64_t              drain_us;         /* when draining began */
    uint64_t              tick_us;
    uint64_t              expiry_us;        /* look at holds then */
    uint64_t              expiry_ms;        /* which hold that is for */
    ron_ledger_clock_t    clock;            /* if the embedder keeps none */
    ron_buf_t             why;
    char                  reason[RON_MSG_REASON_MAX];

    /* the head that was made durable */
    uint64_t              seq;
    uint64_t              time_ms;
    ron_hash_t            root;

    /* connections */
    ron_peer_t          **peers;
    uint32_t              peer_n;
    uint32_t              unready_n;
    uint64_t              serial;
    ron_peer_t          **dirty;
    uint32_t              dirty_n;
    ron_buf_t             scratch;

    /* preval, and what the engine has */
    ron_item_t          **preval;
    uint32_t              preval_at;
    uint32_t              preval_n;
    size_t                preval_len;
    ron_unit_t          **take;             /* one batch */
    uint32_t              take_cap;
    ron_entry_t          *ops;              /* for decoding */
    ron_item_t           *spare[RON_SERVICE_SPARE];
    uint32_t              spare_n;
    uint64_t              decided;          /* batches given to the engine */
    uint64_t              reaped;
    uint64_t              quiet_n;          /* the last one reaped, seen */
    uint64_t              quiet_us;         /* nothing came: sign then */
    uint32_t              work_n;           /* of a wallet, in its hands */

    ron_wait_t           *waits;
    uint32_t              wait_at;
    uint32_t              wait_n;
};


static inline void
ron_service_count(ron_service_t *s, ron_service_word_t word, uint64_t n)
{
    atomic_fetch_add_explicit(&s->stat[word], n, memory_order_relaxed);
}


static inline void
ron_service_gauge(ron_service_t *s, ron_service_word_t word, uint64_t value)
{
    atomic_store_explicit(&s->stat[word], value, memory_order_relaxed);
}


/* ron_service.c */
void ron_service_wake(ron_service_t *s);
void ron_service_set_state(ron_service_t *s, ron_life_t state,
    const char *reason);
void ron_service_enter_safe(ron_service_t *s, ron_safe_t safe,
    const char *why);

/*
 * What an operator asks for, done at once.  RON_ECANCELED: not in this state;
 * anything else: s->why says what was found.
 */
ron_status_t ron_service_leave_safe(ron_service_t *s);
void ron_service_begin_drain(ron_service_t *s);

/* Listens, or says once why that cannot be. */
void ron_service_bind_again(ron_service_t *s);

/* A batch came back with this, or could not be decided. */
void ron_service_failed(ron_service_t *s, ron_status_t status);

/*
 * ron_service_stat.c: what is only counted.  The journal, or an append, was
 * found to be so; acquire added the money up; an append was tried.
 */
void ron_service_depths(ron_service_t *s);
void ron_service_found(ron_service_t *s, ron_status_t status);
void ron_service_summed(ron_service_t *s);
void ron_service_tried(ron_service_t *s, ron_status_t status);

/* Says how long it took to become the writer, and what it read for that. */
void ron_service_timed(ron_service_t *s);

/* ron_service_conn.c */
ron_status_t ron_service_listen(ron_service_t *s);
void ron_service_unlisten(ron_service_t *s, bool unlink);
void ron_service_accept(ron_service_t *s);
void ron_service_peer_event(ron_service_t *s, uint32_t no, uint64_t serial,
    uint32_t events);
void ron_service_peers_flush(ron_service_t *s);
void ron_service_peers_expire(ron_service_t *s, uint64_t now_us);
void ron_service_peers_close(ron_service_t *s);
void ron_service_push(ron_service_t *s, ron_frame_type_t type,
    ron_str_t payload);
void ron_service_answer(ron_service_t *s, const ron_reply_t *reply,
    ron_frame_type_t type, ron_str_t payload);

/* ron_service_work.c */
ron_status_t ron_service_got_unit(ron_service_t *s, const ron_reply_t *reply,
    ron_str_t payload);
ron_status_t ron_service_got_balance(ron_service_t *s,
    const ron_reply_t *reply, ron_str_t payload);
ron_status_t ron_service_got_lookup(ron_service_t *s,
    const ron_reply_t *reply, ron_str_t payload);
void ron_service_refuse(ron_service_t *s, const ron_reply_t *reply,
    ron_reason_t reason);
void ron_service_refuse_preval(ron_service_t *s, ron_reason_t reason);
void ron_service_forget_preval(ron_service_t *s);
void ron_service_reap(ron_service_t *s);
void ron_service_decide(ron_service_t *s);
void ron_service_waits_fail(ron_service_t *s);

/* Signs the head when that keeps nobody waiting; in how long to ask again. */
uint64_t ron_service_sign(ron_service_t *s, uint64_t now_us);

/* ron_service_check.c */
bool ron_service_name_dead(const ron_service_t *s);
bool ron_service_name_is_ours(const ron_service_t *s);
void ron_service_check_name(ron_service_t *s);
ron_status_t ron_service_check_published(ron_service_t *s);
void ron_service_check_distrust(ron_service_t *s);

/* ron_service_admin.c */
ron_status_t ron_service_got_admin(ron_service_t *s,
    const ron_reply_t *reply, ron_str_t payload);


/* ron_service_snapshot.c */
void ron_service_got_snapshot(ron_service_t *s, const ron_reply_t *reply,
    ron_str_t payload);


#endif /* RON_SERVICE_IMPL_H */
