
/*
 * What the three files of a worker's calls to the helper share:
 *
 *     ngx_ron_ipc.c         the connection
 *     ngx_ron_ipc_calls.c   calls that wait for an answer
 *     ngx_ron_ipc_frames.c  what a call and its answer say
 */

#ifndef _NGX_RON_IPC_H_INCLUDED_
#define _NGX_RON_IPC_H_INCLUDED_


#include "ngx_ron.h"


#define NGX_RON_IPC_BACKOFF_MIN                                               \
    ((ngx_msec_t) ron_timeout_info(RON_TIMEOUT_RETRY_FIRST)->ms)
#define NGX_RON_IPC_BACKOFF_MAX                                               \
    ((ngx_msec_t) ron_timeout_info(RON_TIMEOUT_RETRY_LAST)->ms)

#define NGX_RON_IPC_JITTER       50
#define NGX_RON_IPC_TRY          1000
#define NGX_RON_IPC_TABLE        4096           /* a power of two */


struct ngx_ron_call_s {
    /* looks like a connection to what reads the fd of an event's data */
    ngx_queue_t          queue;
    void                *padding;
    int                  fd;

    uint64_t             id;
    ngx_ron_call_t      *next;              /* in its slot of the table */

    ngx_ron_call_pt      handler;           /* NULL: nobody waits */
    void                *data;

    ngx_queue_t          due;               /* unless its own timer is set */
    ngx_msec_t           due_at;
    ngx_event_t          timer;
    ngx_event_t          retry;

    ron_frame_type_t     type;
    ron_admin_t          admin;
    ron_buf_t            wire;              /* UNIT, or two strings, three */
    size_t               first_len;
    size_t               second_len;
    ngx_msec_t           sent_at;
    ngx_uint_t           tries;
    unsigned             sent:1;
    unsigned             ingest:1;
    unsigned             doubt:1;           /* an earlier try is open */
};


typedef struct {
    ngx_log_t           *log;
    ron_client_t        *client;
    ngx_connection_t    *connection;
    ngx_pid_t            helper;            /* who listens there, or 0 */
    ngx_pid_t            greeted;           /* who was ready last, or 0 */

    ngx_queue_t          calls;
    ngx_queue_t          free;
    ngx_ron_call_t      *table[NGX_RON_IPC_TABLE];      /* by id */
    ngx_queue_t          due;               /* calls, by their time-outs */
    ngx_event_t          due_timer;         /* of the first, or earlier */
    ngx_uint_t           calls_n;
    ngx_uint_t           free_n;

    ngx_event_t          flush;
    ngx_uint_t           put_n;             /* calls since the last write */
    ngx_event_t          connect;
    ngx_event_t          tick;              /* set while calls are sent */
    ngx_msec_t           heard_at;
    ngx_msec_t           backoff;
    ngx_msec_t           lost_at;

    struct sockaddr_un   sockaddr;
    socklen_t            socklen;
    ngx_str_t            name;

    unsigned             closing:1;
    unsigned             told:1;            /* what was wrong was logged */
    unsigned             absent:1;          /* likewise, that it is not there */
    unsigned             draining:1;        /* and calls are waited for */
} ngx_ron_ipc_t;


extern ngx_ron_ipc_t  ngx_ron_ipc;


/* Gives the connection up, and what was sent over it goes to the next one. */
void ngx_ron_ipc_close(ngx_uint_t level, const char *why);

/* A call was put: it leaves with its group, or at the end of the turn. */
void ngx_ron_ipc_put_one(void);


/* A call in the table, its timer set and nothing to say yet; or NULL. */
ngx_ron_call_t *ngx_ron_ipc_call(ron_frame_type_t type, ngx_msec_t timeout,
    ngx_ron_call_pt handler, void *data);
void ngx_ron_ipc_free(ngx_ron_call_t *call);

/* Puts the call's frame, or leaves that for when there is a connection. */
void ngx_ron_ipc_send(ngx_ron_call_t *call);

/* All calls: the worker begins and exits, a helper is ready, and is lost. */
void ngx_ron_ipc_calls_init(void);
void ngx_ron_ipc_calls_exit(void);
void ngx_ron_ipc_calls_send(void);
void ngx_ron_ipc_calls_lost(void);

/* The client's on_answer: ends the call that has this id, if there is one. */
void ngx_ron_ipc_calls_answer(void *ctx, uint64_t id, ron_frame_type_t type,
    ron_str_t payload);


/* RON_EFULL: the helper does not read, something has to leave first. */
ron_status_t ngx_ron_ipc_put(ron_client_t *client, ngx_ron_call_t *call);

/*
 * Whether an answer is only "not now": true of the copy that it answers, while
 * what was sent before may be in the committer's hands.
 */
ngx_uint_t ngx_ron_ipc_unsaid(ron_frame_type_t type, ron_str_t payload);

/* Says once, while the ledger drains, that no call waits any more. */
void ngx_ron_ipc_drained(ngx_ron_ipc_t *ipc);


#endif /* _NGX_RON_IPC_H_INCLUDED_ */
