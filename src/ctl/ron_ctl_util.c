
#include "ron_ctl.h"
#include "ron_codec.h"
#include "ron_port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define CTL_METER_US  UINT64_C(200000)


static volatile sig_atomic_t  ctl_stop;


static void ctl_signal(int signo);
static int ctl_code(ron_status_t status);
static bool ctl_write_all(int fd, const uint8_t *data, size_t len);


/* ---- options ------------------------------------------------------------ */

const char *
ron_ctl_value(const ron_ctl_args_t *args, const char *name)
{
    const char  *value;

    value = NULL;

    for (unsigned i = 0; i < args->given_n; i++) {
        if (strcmp(args->given[i].option->name, name) == 0) {
            value = args->given[i].value;
        }
    }

    return value;
}


const char *
ron_ctl_nth(const ron_ctl_args_t *args, const char *name, unsigned n)
{
    for (unsigned i = 0; i < args->given_n; i++) {
        if (strcmp(args->given[i].option->name, name) == 0 && n-- == 0) {
            return args->given[i].value;
        }
    }

    return NULL;
}


bool
ron_ctl_parse_number(const char *text, const char *what, uint64_t *v)
{
    char  *end;

    *v = 0;
    errno = 0;

    if (text[0] >= '0' && text[0] <= '9') {
        *v = strtoull(text, &end, 10);

        if (*end == '\0' && errno == 0 && *v <= INT64_MAX) {
            return true;
        }
    }

    fprintf(stderr, "ronctl: %s: \"%s\" is not a number\n", what, text);
    *v = 0;

    return false;
}


bool
ron_ctl_number(const ron_ctl_args_t *args, const char *name,
    uint64_t otherwise, uint64_t *v)
{
    char         what[64];
    const char  *value;

    value = ron_ctl_value(args, name);

    if (value == NULL) {
        *v = otherwise;
        return true;
    }

    snprintf(what, sizeof(what), "--%s", name);

    return ron_ctl_parse_number(value, what, v);
}


/* ---- failing ------------------------------------------------------------ */

int
ron_ctl_time(const ron_ctl_args_t *args, const char *name, uint64_t otherwise,
    uint64_t *us)
{
    char        *unit;
    uint64_t     v, scale;
    const char  *text;

    *us = otherwise;
    text = ron_ctl_value(args, name);

    if (text == NULL) {
        return RON_EXIT_OK;
    }

    errno = 0;
    v = strtoull(text, &unit, 10);
    scale = strcmp(unit, "ms") == 0 ? 1000
            : *unit == '\0' || strcmp(unit, "s") == 0 ? 1000000
            : strcmp(unit, "m") == 0 ? 60000000 : 0;

    if (unit == text || *text == '-' || scale == 0 || errno != 0
        || v > UINT64_C(86400000000) / scale)
    {
        return ron_ctl_fail(args, RON_EXIT_USAGE, "--%s \"%s\" is no time up "
                            "to a day: 500ms, 10s, 2m", name, text);
    }

    *us = v * scale;

    return RON_EXIT_OK;
}


int
ron_ctl_fail(const ron_ctl_args_t *args, int code, const char *fmt, ...)
{
    char       text[1024];
    va_list    list;
    ron_buf_t  out;

    va_start(list, fmt);
    vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);

    fflush(stdout);
    fprintf(stderr, "ronctl: %s\n", text);

    if (args->json) {
        ron_buf_init(&out, 0);
        ron_buf_put_cstr(&out, "{\"ok\":false");
        ron_json_put_member_u64(&out, ron_str("exit"), (uint64_t) code);
        ron_json_put_key(&out, ron_str("error"));

        if (ron_utf8_check(ron_cstr(text), NULL) == RON_OK) {
            ron_json_put_string(&out, ron_cstr(text));

        } else {
            ron_buf_put_cstr(&out, "\"a name that is not UTF-8\"");
        }

        ron_buf_put_cstr(&out, "}\n");
        ron_ctl_print(&out);
        ron_buf_free(&out);
    }

    return code;
}


static int
ctl_code(ron_status_t status)
{
    switch (status) {

    case RON_OK:
        return RON_EXIT_OK;

    case RON_ECORRUPT:
        return RON_EXIT_NO;

    case RON_AGAIN:
    case RON_EFENCED:
        return RON_EXIT_LOCKED;

    case RON_ECANCELED:
        return RON_EXIT_INT;

    default:
        return RON_EXIT_IO;
    }
}


int
ron_ctl_failed(const ron_ctl_args_t *args, ron_status_t status,
    const ron_buf_t *why)
{
    if (status == RON_ECANCELED) {
        return ron_ctl_fail(args, RON_EXIT_INT, "interrupted");
    }

    if (why->len == 0) {
        return ron_ctl_fail(args, ctl_code(status), "%s",
                            ron_status_name(status));
    }

    return ron_ctl_fail(args, ctl_code(status), "%.*s", (int) why->len,
                        (const char *) why->data);
}


int
ron_ctl_open(const ron_ctl_args_t *args, const char *ledger,
    ron_store_t **store)
{
    char              url[1024];
    ron_status_t      status;
    ron_store_conf_t  conf;

    if (strncmp(ledger, "memory:", 7) == 0) {
        return ron_ctl_fail(args, RON_EXIT_USAGE, "a ledger in memory lives "
                            "in its server and cannot be reached from here");
    }

    memset(&conf, 0, sizeof(conf));
    snprintf(url, sizeof(url), "%s%s", strncmp(ledger, "sqlite:", 7) == 0
             ? "" : "sqlite:", ledger);
    conf.url = url;

    status = ron_store_open(&conf, store);

    if (status != RON_OK) {
        return ron_ctl_fail(args, status == RON_ECORRUPT ? RON_EXIT_NO
                                                         : RON_EXIT_IO,
                            "%s", ron_store_error(NULL));
    }

    return RON_EXIT_OK;
}


/* ---- files -------------------------------------------------------------- */

int
ron_ctl_read_file(const ron_ctl_args_t *args, const char *path,
    ron_buf_t *out)
{
    int       fd;
    ssize_t   n;
    uint8_t  *room;

    fd = strcmp(path, "-") == 0 ? STDIN_FILENO
                                : open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", path,
                            strerror(errno));
    }

    for ( ;; ) {
        room = ron_buf_reserve(out, 65536);
        n = room != NULL ? read(fd, room, 65536) : -1;

        if (n < 0 && room != NULL && errno == EINTR) {
            continue;
        }

        if (n <= 0 || out->len + (size_t) n > RON_CTL_FILE_MAX) {
            break;
        }

        out->len += (size_t) n;
    }

    if (fd != STDIN_FILENO) {
        close(fd);
    }

    if (n != 0) {
        return ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", path, n < 0
                            ? strerror(errno) : "too large");
    }

    return RON_EXIT_OK;
}


static bool
ctl_write_all(int fd, const uint8_t *data, size_t len)
{
    ssize_t  n;

    while (len != 0) {
        n = write(fd, data, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }

        if (n < 0) {
            return false;
        }

        data += n;
        len -= (size_t) n;
    }

    return true;
}


int
ron_ctl_write_secret(const ron_ctl_args_t *args, const char *path,
    ron_str_t text, bool replace)
{
    int          fd, err;
    bool         done;
    char         temp[1024];
    struct stat  st;

    if (!replace) {
        snprintf(temp, sizeof(temp), "%s", path);

    } else if (snprintf(temp, sizeof(temp), "%s.tmp%d", path, (int) getpid())
               >= (int) sizeof(temp))
    {
        return ron_ctl_fail(args, RON_EXIT_IO, "the name is too long");
    }

    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) {
        return ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", path,
                            errno == EEXIST ? "it is there already, and is "
                                              "not overwritten"
                                            : strerror(errno));
    }

    done = ctl_write_all(fd, text.data, text.len) && fchmod(fd, 0600) == 0;

    if (done && replace && stat(path, &st) == 0 && st.st_uid != geteuid()) {
        done = fchown(fd, st.st_uid, st.st_gid) == 0;
    }

    done = done && fsync(fd) == 0;
    done = close(fd) == 0 && done;
    done = done && (!replace || rename(temp, path) == 0);

    if (!done) {
        err = errno;
        (void) unlink(temp);
        return ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", path, strerror(err));
    }

    return RON_EXIT_OK;
}


int
ron_ctl_public_key(const ron_ctl_args_t *args, const char *given,
    ron_buf_t *out)
{
    int  rc;

    /* A key has two plus signs, a file name hardly ever. */

    if (access(given, F_OK) != 0 && strchr(given, '+') != NULL) {
        ron_buf_put_cstr(out, given);
        return RON_EXIT_OK;
    }

    rc = ron_ctl_read_file(args, given, out);

    while (rc == RON_EXIT_OK && out->len != 0
           && (out->data[out->len - 1] == '\n'
               || out->data[out->len - 1] == ' '))
    {
        out->len--;
    }

    return rc;
}


/* ---- output ------------------------------------------------------------- */

void
ron_ctl_print(const ron_buf_t *b)
{
    if (ron_buf_status(b) != RON_OK
        || fwrite(b->data, 1, b->len, stdout) != b->len
        || fflush(stdout) != 0)
    {
        fprintf(stderr, "ronctl: cannot write: %s\n", strerror(errno));
        exit(RON_EXIT_IO);
    }
}


void
ron_ctl_put_hash(ron_buf_t *b, const char *name, const ron_hash_t *hash)
{
    ron_json_put_key(b, ron_cstr(name));
    ron_json_put_hex(b, (ron_str_t) { RON_HASH_LEN, hash->b });
}


void
ron_ctl_hex(const ron_hash_t *hash, char hex[2 * RON_HASH_LEN + 1])
{
    hex[ron_hex_encode((ron_str_t) { RON_HASH_LEN, hash->b }, hex)] = '\0';
}


const char *
ron_ctl_thousands(uint64_t v)
{
    char             digits[24];
    char            *text;
    size_t           len, n;
    static char      texts[4][32];
    static unsigned  turn;

    text = texts[turn++ % 4];
    len = (size_t) snprintf(digits, sizeof(digits), "%llu",
                            (unsigned long long) v);
    n = 0;

    for (size_t i = 0; i < len; i++) {
        if (i != 0 && (len - i) % 3 == 0) {
            text[n++] = ' ';
        }

        text[n++] = digits[i];
    }

    text[n] = '\0';

    return text;
}


uint64_t
ron_ctl_per_second(uint64_t n, uint64_t us)
{
    return us != 0 ? (uint64_t) ((ron_u128_t) n * 1000000 / us) : 0;
}


/* ---- a ledger that comes into being ------------------------------------- */

int
ron_ctl_place_begin(const ron_ctl_args_t *args, const char *dir, char *temp,
    size_t size)
{
    DIR            *d;
    size_t          len;
    struct dirent  *entry;

    d = opendir(dir);

    while (d != NULL && (entry = readdir(d)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0
            && strcmp(entry->d_name, "..") != 0)
        {
            closedir(d);
            return ron_ctl_fail(args, RON_EXIT_IO, "%s is not empty: nothing "
                                "is overwritten", dir);
        }
    }

    if (d != NULL) {
        closedir(d);

    } else if (errno != ENOENT) {
        return ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", dir,
                            strerror(errno));
    }

    len = strlen(dir);

    while (len > 1 && dir[len - 1] == '/') {
        len--;
    }

    if (snprintf(temp, size, "%.*s.part%d", (int) len, dir, (int) getpid())
        >= (int) size)
    {
        return ron_ctl_fail(args, RON_EXIT_IO, "the name of the directory is "
                            "too long");
    }

    if (mkdir(temp, 0700) != 0) {
        return ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", temp,
                            strerror(errno));
    }

    return RON_EXIT_OK;
}


int
ron_ctl_place_end(const ron_ctl_args_t *args, const char *temp,
    const char *dir)
{
    int             fd;
    DIR            *d;
    char            path[1024];
    char           *slash;
    struct stat     st;
    struct dirent  *entry;

    if (stat(dir, &st) == 0 && geteuid() == 0
        && (st.st_uid != 0 || st.st_gid != 0))
    {
        d = opendir(temp);

        while (d != NULL && (entry = readdir(d)) != NULL) {
            if (strcmp(entry->d_name, "..") != 0
                && fchownat(dirfd(d), entry->d_name, st.st_uid, st.st_gid,
                            AT_SYMLINK_NOFOLLOW) != 0)
            {
                fd = errno;
                closedir(d);
                return ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", temp,
                                    strerror(fd));
            }
        }

        if (d != NULL) {
            closedir(d);
        }
    }

    if (rename(temp, dir) != 0) {
        return ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", dir,
                            strerror(errno));
    }

    snprintf(path, sizeof(path), "%s", dir);
    slash = strrchr(path, '/');

    if (slash != NULL) {
        slash[slash == path] = '\0';
    }

    (void) ron_dir_sync(slash != NULL ? path : ".");

    return RON_EXIT_OK;
}


void
ron_ctl_place_undo(const char *temp)
{
    DIR            *d;
    struct dirent  *entry;

    d = opendir(temp);

    while (d != NULL && (entry = readdir(d)) != NULL) {
        (void) unlinkat(dirfd(d), entry->d_name, 0);
    }

    if (d != NULL) {
        closedir(d);
    }

    (void) rmdir(temp);
}


/* ---- progress ----------------------------------------------------------- */

void
ron_ctl_meter_init(ron_ctl_meter_t *meter, const char *what)
{
    memset(meter, 0, sizeof(ron_ctl_meter_t));
    meter->what = what;
    meter->on = isatty(STDERR_FILENO) == 1;
}


bool
ron_ctl_meter(void *ctx, uint64_t done, uint64_t total)
{
    uint64_t          now_us, rate, left;
    ron_ctl_meter_t  *m = ctx;

    if (ctl_stop) {
        return false;
    }

    if (!m->on) {
        return true;
    }

    now_us = ron_clock_mono_us();

    if (!m->begun || done < m->begin_done) {
        m->begun = true;
        m->begin_us = now_us;
        m->begin_done = done;
        m->shown_us = now_us;
        return true;
    }

    if (now_us - m->shown_us < CTL_METER_US) {
        return true;
    }

    m->shown_us = now_us;
    rate = ron_ctl_per_second(done - m->begin_done, now_us - m->begin_us);
    left = rate != 0 && total > done ? (total - done) / rate : 0;

    fprintf(stderr, "\r\033[K%s  %u %%  %s of %s  %s/s  %llu:%02llu left",
            m->what, total != 0 ? (unsigned) ((ron_u128_t) done * 100 / total)
                                : 100,
            ron_ctl_thousands(done), ron_ctl_thousands(total),
            ron_ctl_thousands(rate), (unsigned long long) left / 60,
            (unsigned long long) left % 60);
    fflush(stderr);

    return true;
}


void
ron_ctl_meter_end(ron_ctl_meter_t *m)
{
    if (m->on && m->begun) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}


static void
ctl_signal(int signo)
{
    /* The second one is taken at its word. */

    if (ctl_stop) {
        signal(signo, SIG_DFL);
        raise(signo);
    }

    ctl_stop = 1;
}


void
ron_ctl_signals(void)
{
    struct sigaction  sa;

    memset(&sa, 0, sizeof(sa));
    sa.sa_handler = ctl_signal;
    sigemptyset(&sa.sa_mask);
    (void) sigaction(SIGINT, &sa, NULL);
    (void) sigaction(SIGTERM, &sa, NULL);
}


bool
ron_ctl_interrupted(void)
{
    return ctl_stop != 0;
}
