
/*
 * The asking side of the socket: a worker, a tool, a test.
 *
 * Sans-IO: the owner has the socket, the event loop and the clock; this is
 * the handshake, the call ids, the frames and the putting together of long
 * answers.  One client is one connection at a time, used by one thread.
 *
 *     connect()
 *     ron_client_reset(c)                     (also before the first time)
 *     readable:  p = ron_client_space(c, 64 KiB, &n); r = read(fd, p, n)
 *                ron_client_came(c, r)        -> callbacks
 *     writable:  s = ron_client_output(c); w = write(fd, s.data, s.len)
 *                ron_client_sent(c, w)
 *     lost:      ron_client_reset(c), connect again, send the same units
 *
 * After each ron_client_came() and after each send, look at
 * ron_client_output(): whatever is there wants to be written.  Write once a
 * turn of the event loop, not once a frame.
 *
 * Nothing may be sent before on_ready: sends say RON_AGAIN until then.  The
 * helper's proof has been checked when on_ready is called.
 *
 * Outcomes are unknown, never guessed: a call whose answer did not come
 * before the connection was lost may have been committed.  Send the same unit
 * again (the same wire bytes); the ledger recognises it.  This library keeps
 * no pending table and no timer: both are the owner's, who must arm a timer
 * for each call, because a helper that is stopped answers nothing and closes
 * nothing.
 *
 * Callbacks run inside ron_client_came()/_feed().  They may send; they must
 * not call reset, destroy, came or feed of the same client (note it and do it
 * after came() has returned).  Payload views are good during the callback.
 */

#ifndef RON_CLIENT_H
#define RON_CLIENT_H


#include "ron_auth.h"
#include "ron_conn.h"
#include "ron_msg.h"
#include "ron_unit.h"


typedef struct ron_client_s  ron_client_t;

typedef struct {
    ron_auth_key_t  key;                /* ron_auth_derive() */
    uint32_t        slot;               /* the worker's process slot */
    uint32_t        pid;
    size_t          out_max;            /* unsent bytes; 8 MiB */
    size_t          answer_max;         /* one put-together answer; 16 MiB */

    /*
     * The handshake is done, calls may be sent.  hello.generation tells a
     * new helper from the one before.
     */
    void  (*on_ready)(void *ctx, const ron_hello_t *hello,
        const ron_ready_t *ready);

    /*
     * The answer to `call`: OUTCOME, BALANCE_IS, LOOKUP_IS or ADMIN_IS;
     * decode with ron_msg_*_get().  A call that nobody waits for any more
     * (its client went away) still gets its answer: ignore it.
     */
    void  (*on_answer)(void *ctx, uint64_t call, ron_frame_type_t type,
        ron_str_t payload);

    /* Pushed on each change of the ledger's state; NULL: not wanted. */
    void  (*on_state)(void *ctx, const ron_msg_state_t *state);

    /* Pushed after each durable batch; NULL: not wanted. */
    void  (*on_commit)(void *ctx, const ron_msg_commit_t *commit);

    void   *ctx;
} ron_client_conf_t;


/* Defaults for the sizes, zero for the rest. */
void ron_client_conf_init(ron_client_conf_t *conf);

/* Copies conf.  The client waits for the helper's hello. */
ron_status_t ron_client_create(const ron_client_conf_t *conf,
    ron_client_t **client);
void ron_client_destroy(ron_client_t *client);

/*
 * A new connection: forgets both buffers, half answers and the handshake.
 * Call ids go on, so a late answer can never meet a new call.
 */
void ron_client_reset(ron_client_t *client);

/*
 * Input.  space/came read without a copy, feed is both in one.  Any status
 * but RON_OK: close the connection.
 *
 *     RON_EVERSION   the helper speaks other versions: back off
 *     RON_ENOTFOUND  the helper does not know our key: back off, alert once
 *     RON_EINVAL     not the protocol
 *     RON_EFULL      an answer longer than answer_max
 *     RON_ENOMEM
 */
uint8_t *ron_client_space(ron_client_t *client, size_t want, size_t *len);
ron_status_t ron_client_came(ron_client_t *client, size_t len);
ron_status_t ron_client_feed(ron_client_t *client, ron_str_t bytes);

/* Output: what to write now (len 0: nothing), and how much was written. */
ron_str_t ron_client_output(const ron_client_t *client);
void ron_client_sent(ron_client_t *client, size_t len);

bool ron_client_ready(const ron_client_t *client);

/* As the newest READY or STATE said; STARTING before. */
ron_life_t ron_client_state(const ron_client_t *client);

/* A fresh call id, never 0.  The sends below take one each. */
uint64_t ron_client_call(ron_client_t *client);

/*
 * Sends.  `call` comes back in on_answer; the same call id may be used for
 * sending the same unit again after a reset.
 *
 *     RON_AGAIN   not ready
 *     RON_ERANGE  longer than a frame: 413, never try again
 *     RON_EFULL   out_max bytes wait to be written: the helper is behind
 */
ron_status_t ron_client_unit_wire(ron_client_t *client, uint64_t call,
    ron_str_t wire);            /* as ron_unit_encode() gave it */
ron_status_t ron_client_balance(ron_client_t *client, uint64_t call,
    ron_str_t account, ron_str_t asset);
ron_status_t ron_client_lookup(ron_client_t *client, uint64_t call,
    const ron_msg_ask_t *ask);
ron_status_t ron_client_admin(ron_client_t *client, uint64_t call,
    ron_admin_t what, ron_str_t payload);


#endif /* RON_CLIENT_H */
