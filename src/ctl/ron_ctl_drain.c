
/*
 * ronctl drain: over the ledger's socket, with the key that its workers have.
 *
 * The helper answers at once and tells the rest: each change of state, and
 * the final root.  Done is "stopped"; a drain that ends in safe mode was not
 * finished, and is a "no".
 */

#include "ron_ctl.h"
#include "ron_auth.h"
#include "ron_client.h"
#include "ron_port.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>


#define DRAIN_TIMEOUT_S  15
#define DRAIN_READ       65536


typedef struct {
    int            fd;
    ron_client_t  *client;
    uint64_t       call;
    bool           asked;
    bool           refused;
    bool           partial;             /* it ended in safe mode */
    ron_life_t     state;
    uint64_t       seq;
    ron_hash_t     root;
    char           text[256];
} drain_t;


static int drain_connect(const ron_ctl_args_t *args, drain_t *d,
    const char *path);
static int drain_client(const ron_ctl_args_t *args, drain_t *d,
    const char *keys);
static int drain_run(const ron_ctl_args_t *args, drain_t *d,
    uint64_t limit_us);
static ron_status_t drain_turn(drain_t *d, uint64_t limit_us);
static bool drain_over(const drain_t *d);
static int drain_end(const ron_ctl_args_t *args, const drain_t *d);
static void drain_on_ready(void *ctx, const ron_hello_t *hello,
    const ron_ready_t *ready);
static void drain_on_answer(void *ctx, uint64_t call, ron_frame_type_t type,
    ron_str_t payload);
static void drain_on_state(void *ctx, const ron_msg_state_t *state);
static void drain_on_commit(void *ctx, const ron_msg_commit_t *commit);


int
ron_ctl_drain(ron_ctl_args_t *args)
{
    int       rc;
    char      path[512];
    drain_t   d;
    uint64_t  seconds;

    if (ron_ctl_value(args, "keys") == NULL) {
        return ron_ctl_fail(args, RON_EXIT_USAGE,
                            "--keys FILE is needed: the one of ron_keys");
    }

    if (!ron_ctl_number(args, "timeout", DRAIN_TIMEOUT_S, &seconds)) {
        return RON_EXIT_USAGE;
    }

    if (seconds == 0 || seconds > 3600) {
        return ron_ctl_fail(args, RON_EXIT_USAGE,
                            "--timeout must be from 1 to 3600 seconds");
    }

    if (ron_ctl_value(args, "socket") != NULL) {
        (void) snprintf(path, sizeof(path), "%s",
                        ron_ctl_value(args, "socket"));

    } else if (args->pos_n == 1) {
        (void) snprintf(path, sizeof(path), "%s/ledger.sock",
                        strncmp(args->pos[0], "sqlite:", 7) == 0
                        ? args->pos[0] + 7 : args->pos[0]);

    } else {
        return ron_ctl_fail(args, RON_EXIT_USAGE,
                            "LEDGER or --socket is needed");
    }

    memset(&d, 0, sizeof(d));
    d.fd = -1;
    rc = drain_client(args, &d, ron_ctl_value(args, "keys"));

    if (rc == RON_EXIT_OK) {
        rc = drain_connect(args, &d, path);
    }

    if (rc == RON_EXIT_OK) {
        rc = drain_run(args, &d, ron_clock_mono_us() + seconds * 1000000);
    }

    if (d.fd != -1) {
        (void) close(d.fd);
    }

    if (d.client != NULL) {
        ron_client_destroy(d.client);
    }

    return rc;
}


static int
drain_client(const ron_ctl_args_t *args, drain_t *d, const char *keys)
{
    int                rc;
    ron_keyring_t      ring;
    ron_status_t       status;
    ron_client_conf_t  conf;

    rc = ron_ctl_keyring(args, keys, &ring);

    if (rc != RON_EXIT_OK) {
        return rc;
    }

    ron_client_conf_init(&conf);
    status = ron_auth_derive((ron_str_t) { RON_KEY_LEN, ring.keys[0].secret },
                             &conf.key);
    ron_keyring_wipe(&ring);

    conf.pid = (uint32_t) getpid();
    conf.on_ready = drain_on_ready;
    conf.on_answer = drain_on_answer;
    conf.on_state = drain_on_state;
    conf.on_commit = drain_on_commit;
    conf.ctx = d;

    if (status == RON_OK) {
        status = ron_client_create(&conf, &d->client);
    }

    memset(&conf.key, 0, sizeof(conf.key));

    return status == RON_OK ? RON_EXIT_OK
                            : ron_ctl_failed(args, status, NULL);
}


static int
drain_connect(const ron_ctl_args_t *args, drain_t *d, const char *path)
{
    size_t              len;
    socklen_t           addr_len;
    struct sockaddr_un  addr;

    memset(&addr, 0, sizeof(addr));
    addr.sun_family = AF_UNIX;
    len = strlen(path);

    if (len < 2 || len >= sizeof(addr.sun_path)) {
        return ron_ctl_fail(args, RON_EXIT_USAGE,
                            "\"%s\" is no socket's path", path);
    }

    memcpy(addr.sun_path, path, len);
    addr_len = (socklen_t) sizeof(addr);

    if (path[0] == '@') {
        addr.sun_path[0] = '\0';
        addr_len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len);
    }

    d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (d->fd == -1
        || connect(d->fd, (struct sockaddr *) &addr, addr_len) == -1)
    {
        return ron_ctl_fail(args, RON_EXIT_IO,
                            "no ledger answers at \"%s\": %s", path,
                            strerror(errno));
    }

    return RON_EXIT_OK;
}


static int
drain_run(const ron_ctl_args_t *args, drain_t *d, uint64_t limit_us)
{
    ron_status_t  status;

    status = RON_OK;

    while (status == RON_OK && !drain_over(d)) {

        if (ron_ctl_interrupted()) {
            return RON_EXIT_INT;
        }

        if (ron_clock_mono_us() >= limit_us) {
            return ron_ctl_fail(args, RON_EXIT_NO,
                                "it is not drained in time, it is %s",
                                ron_state_name(d->state));
        }

        if (ron_client_ready(d->client) && !d->asked) {
            d->asked = true;
            d->call = ron_client_call(d->client);
            status = ron_client_admin(d->client, d->call, RON_ADMIN_DRAIN,
                                      ron_null_str);
        }

        if (status == RON_OK) {
            status = drain_turn(d, limit_us);
        }
    }

    if (status != RON_OK) {
        return ron_ctl_fail(args, RON_EXIT_IO, "%s",
                            status == RON_ENOTFOUND
                            ? "the ledger has another key: is this the file "
                              "of ron_keys?"
                            : "the connection to the ledger was lost");
    }

    return drain_end(args, d);
}


/* Writes what is to be written, waits for a tenth of a second, reads. */

static ron_status_t
drain_turn(drain_t *d, uint64_t limit_us)
{
    size_t         len;
    ssize_t        n;
    uint8_t       *p;
    uint64_t       left_us;
    ron_str_t      out;
    struct pollfd  pfd;

    for ( ;; ) {
        out = ron_client_output(d->client);

        if (out.len == 0) {
            break;
        }

        n = send(d->fd, out.data, out.len, MSG_NOSIGNAL);
        if (n <= 0) {
            return RON_EIO;
        }

        ron_client_sent(d->client, (size_t) n);
    }

    left_us = limit_us - ron_min(limit_us, ron_clock_mono_us());
    pfd = (struct pollfd) { d->fd, POLLIN, 0 };

    if (poll(&pfd, 1, (int) ron_min(left_us / 1000 + 1, UINT64_C(100))) <= 0) {
        return RON_OK;
    }

    p = ron_client_space(d->client, DRAIN_READ, &len);
    if (p == NULL) {
        return RON_ENOMEM;
    }

    n = recv(d->fd, p, len, 0);

    return n <= 0 ? RON_EIO : ron_client_came(d->client, (size_t) n);
}


static bool
drain_over(const drain_t *d)
{
    return d->refused || d->partial || d->state == RON_STATE_STOPPED;
}


static int
drain_end(const ron_ctl_args_t *args, const drain_t *d)
{
    char       hex[2 * RON_HASH_LEN + 1];
    ron_buf_t  out;

    if (d->refused || d->partial) {
        return ron_ctl_fail(args, RON_EXIT_NO, "it is not drained: %s",
                            d->text);
    }

    ron_ctl_hex(&d->root, hex);
    ron_buf_init(&out, 0);

    ron_buf_printf(&out, args->json
                   ? "{\"ok\":true,\"state\":\"stopped\",\"seq\":%llu,"
                     "\"root\":\"%s\"}\n"
                   : "drained, the final root is that of seq %llu:\n%s\n",
                   (unsigned long long) d->seq, hex);
    ron_ctl_print(&out);
    ron_buf_free(&out);

    return RON_EXIT_OK;
}


static void
drain_on_ready(void *ctx, const ron_hello_t *hello, const ron_ready_t *ready)
{
    drain_t *d = ctx;

    (void) hello;
    d->state = ready->state;
    d->seq = ready->seq;
    d->root = ready->root;
}


static void
drain_on_answer(void *ctx, uint64_t call, ron_frame_type_t type,
    ron_str_t payload)
{
    drain_t *d = ctx;

    ron_msg_admin_t  admin;

    if (call != d->call || type != RON_FRAME_ADMIN_IS
        || ron_msg_admin_get(payload, &admin) != RON_OK
        || admin.status == RON_ADMIN_DONE)
    {
        return;
    }

    d->refused = true;
    (void) snprintf(d->text, sizeof(d->text), "%.*s", (int) admin.text.len,
                    admin.text.len ? (const char *) admin.text.data : "");
}


static void
drain_on_state(void *ctx, const ron_msg_state_t *state)
{
    drain_t *d = ctx;

    d->state = state->state;
    d->partial = state->state == RON_STATE_SAFE_MODE;
    (void) snprintf(d->text, sizeof(d->text), "%.*s", (int) state->reason.len,
                    state->reason.len ? (const char *) state->reason.data
                                      : "");
}


static void
drain_on_commit(void *ctx, const ron_msg_commit_t *commit)
{
    drain_t *d = ctx;

    d->seq = commit->seq;
    d->root = commit->root;
}
