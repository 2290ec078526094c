
/* ronctl ledger entries, export, import. */

#include "ron_ctl.h"
#include "ron_amount.h"
#include "ron_codec.h"
#include "ron_entry.h"
#include "ron_export.h"
#include "ron_port.h"
#include "ron_receipt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define CTL_ENTRIES_PAGE   ((size_t) 1 << 20)
#define CTL_ENTRIES_FLUSH  65536
#define CTL_ENTRIES_LAST   20
#define CTL_IMPORT_READ    ((size_t) 1 << 18)


typedef struct {
    uint64_t    from;
    uint64_t    to;
    uint64_t    left;
    uint64_t    next;
    bool        json;
    bool        bytes;
    ron_str_t   account;
    ron_buf_t   out;
} ctl_entries_t;

typedef struct {
    int       fd;
    uint64_t  bytes;
} ctl_sink_t;


static int ctl_entries_walk(const ron_ctl_args_t *args, ron_reader_t *reader,
    ctl_entries_t *e);
static ron_status_t ctl_entries_row(void *ctx, const ron_row_t *row);
static void ctl_entries_put(ctl_entries_t *c, const ron_entry_t *e,
    ron_str_t bytes);
static ron_status_t ctl_sink(void *ctx, ron_str_t text);
static int ctl_export_said(const ron_ctl_args_t *args, const char *verb,
    const ron_export_info_t *info);
static int ctl_import_read(const ron_ctl_args_t *args, int fd,
    ron_import_t *import, ron_buf_t *why, uint64_t size);
static ron_status_t ctl_import_lines(ron_import_t *import, ron_buf_t *buf,
    size_t seen, ron_buf_t *why);


int
ron_ctl_ledger_entries(ron_ctl_args_t *args)
{
    int            rc;
    uint64_t       seq;
    ron_row_t      row;
    ron_store_t   *store;
    ron_reader_t  *reader;
    ctl_entries_t  e;

    memset(&e, 0, sizeof(e));

    if (!ron_ctl_number(args, "from", 0, &e.from)
        || !ron_ctl_number(args, "to", 0, &e.to)
        || !ron_ctl_number(args, "limit", 0, &e.left))
    {
        return RON_EXIT_USAGE;
    }

    e.json = args->json;
    e.bytes = ron_ctl_value(args, "bytes") != NULL;

    if (ron_ctl_value(args, "account") != NULL) {
        e.account = ron_cstr(ron_ctl_value(args, "account"));
    }

    rc = ron_ctl_open(args, args->pos[0], &store);
    if (rc != RON_EXIT_OK) {
        return rc;
    }

    if (ron_reader_open(store, &reader) != RON_OK) {
        rc = ron_ctl_fail(args, RON_EXIT_IO, "%s", ron_store_error(store));
        ron_store_close(store);
        return rc;
    }

    seq = ron_reader_head(reader, &row) == RON_OK ? row.seq + row.count - 1
                                                  : 0;

    /* Nothing asked for: the newest ones, as a log is read. */

    if (e.from == 0) {
        e.from = 1;

        if (e.to == 0 && e.account.len == 0) {
            e.left = e.left ? e.left : CTL_ENTRIES_LAST;
            e.from = seq > e.left ? seq - e.left + 1 : 1;
        }
    }

    e.to = e.to == 0 || e.to > seq ? seq : e.to;
    e.left = e.left ? e.left : UINT64_MAX;
    e.next = e.from;
    ron_buf_init(&e.out, 0);

    rc = ctl_entries_walk(args, reader, &e);

    ron_buf_free(&e.out);
    ron_reader_close(reader);
    ron_store_close(store);

    return rc;
}


static int
ctl_entries_walk(const ron_ctl_args_t *args, ron_reader_t *reader,
    ctl_entries_t *e)
{
    uint64_t      next;
    ron_status_t  status;

    if (!e->json) {
        printf("%12s  %-24s  %-8s  %s\n", "seq", "time", "kind",
               "amount asset, account -> to");
    }

    while (e->next <= e->to && e->left != 0) {

        if (ron_ctl_interrupted()) {
            return RON_EXIT_INT;
        }

        status = ron_reader_rows(reader, e->next, CTL_ENTRIES_PAGE,
                                 ctl_entries_row, e, &next);

        ron_ctl_print(&e->out);
        ron_buf_reset(&e->out);

        if (status == RON_AGAIN) {
            ron_sleep_us(5000);
            continue;
        }

        if (status == RON_ECANCELED) {
            break;
        }

        if (status != RON_OK) {
            return ron_ctl_fail(args, status == RON_EIO ? RON_EXIT_IO
                                                        : RON_EXIT_NO,
                                "the journal is damaged at seq %llu: run "
                                "ronctl ledger verify",
                                (unsigned long long) e->next);
        }

        e->next = next;
    }

    return RON_EXIT_OK;
}


static ron_status_t
ctl_entries_row(void *ctx, const ron_row_t *row)
{
    ron_rd_t        rd;
    ron_str_t       bytes;
    ron_entry_t     entry;
    ron_status_t    status;
    ctl_entries_t  *e = ctx;

    ron_rd_init(&rd, row->body);

    while ((status = ron_body_next(&rd, &bytes)) == RON_OK) {
        status = ron_entry_decode(bytes, &entry);

        if (status != RON_OK) {
            e->next = row->seq;
            return RON_ECORRUPT;
        }

        if (entry.seq > e->to || e->left == 0) {
            return RON_ECANCELED;
        }

        if (entry.seq < e->from
            || (e->account.len != 0
                && !ron_str_eq(entry.account, e->account)
                && !ron_str_eq(entry.to, e->account)))
        {
            continue;
        }

        ctl_entries_put(e, &entry, bytes);
        e->left--;

        if (e->out.len > CTL_ENTRIES_FLUSH) {
            ron_ctl_print(&e->out);
            ron_buf_reset(&e->out);
        }
    }

    return status == RON_ENOTFOUND ? RON_OK : RON_ECORRUPT;
}


static void
ctl_entries_put(ctl_entries_t *c, const ron_entry_t *e, ron_str_t bytes)
{
    char      time[RON_TIME_LEN + 1], amount[RON_AMOUNT_MAX];
    uint8_t  *room;

    if (c->json) {
        (void) ron_entry_put_json(e, &c->out);

        if (c->bytes) {
            c->out.len--;               /* the closing brace */
            ron_json_put_key(&c->out, ron_str("bytes"));
            ron_buf_put_u8(&c->out, '"');
            room = ron_buf_reserve(&c->out, ron_base64_len(bytes.len));

            if (room != NULL) {
                c->out.len += ron_base64_encode(bytes, (char *) room);
            }

            ron_buf_put_cstr(&c->out, "\"}");
        }

        ron_buf_put_u8(&c->out, '\n');
        return;
    }

    (void) ron_time_print(e->time_ms, time);
    (void) ron_amount_print(e->amount, amount);

    ron_buf_printf(&c->out, "%12llu  %s  %-8s  %s %.*s, %.*s",
                   (unsigned long long) e->seq, time, ron_kind_name(e->kind),
                   amount, (int) e->asset.len, (const char *) e->asset.data,
                   (int) e->account.len, e->account.len
                   ? (const char *) e->account.data : "");

    if (e->to.len != 0) {
        ron_buf_printf(&c->out, " -> %.*s", (int) e->to.len,
                       (const char *) e->to.data);
    }

    if (e->fields & RON_F_REF) {
        ron_buf_printf(&c->out, "  (of %llu)", (unsigned long long) e->ref);
    }

    ron_buf_put_u8(&c->out, '\n');
}


/* ---- export ------------------------------------------------------------- */

int
ron_ctl_ledger_export(ron_ctl_args_t *args)
{
    int                rc;
    ron_buf_t          why;
    ctl_sink_t         sink;
    const char        *path;
    ron_store_t       *store;
    ron_status_t       status;
    ron_ctl_meter_t    meter;
    ron_export_info_t  info;

    path = ron_ctl_value(args, "out");
    sink = (ctl_sink_t) { .fd = STDOUT_FILENO };

    if (args->json && (path == NULL || strcmp(path, "-") == 0)) {
        return ron_ctl_fail(args, RON_EXIT_USAGE, "--json and an export to "
                            "the same place: use --out FILE");
    }

    rc = ron_ctl_open(args, args->pos[0], &store);
    if (rc != RON_EXIT_OK) {
        return rc;
    }

    if (path != NULL && strcmp(path, "-") != 0) {
        sink.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (sink.fd < 0) {
            rc = ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", path,
                              strerror(errno));
            ron_store_close(store);
            return rc;
        }
    }

    ron_buf_init(&why, 0);
    ron_ctl_meter_init(&meter, "exporting");

    status = ron_export(store, ctl_sink, &sink, ron_ctl_meter, &meter, &info,
                        &why);

    ron_ctl_meter_end(&meter);
    ron_store_close(store);

    if (status == RON_OK && sink.fd != STDOUT_FILENO && fsync(sink.fd) != 0) {
        ron_buf_printf(&why, "%s: %s", path, strerror(errno));
        status = RON_EIO;
    }

    if (sink.fd != STDOUT_FILENO) {
        close(sink.fd);

        if (status != RON_OK) {
            RON_ASSERT(path != NULL);
            (void) unlink(path);
        }
    }

    if (status != RON_OK) {
        rc = ron_ctl_failed(args, status, &why);

    } else if (sink.fd != STDOUT_FILENO) {
        rc = ctl_export_said(args, "exported", &info);
    }

    ron_buf_free(&why);

    return rc;
}


static ron_status_t
ctl_sink(void *ctx, ron_str_t text)
{
    ssize_t      n;
    ctl_sink_t  *sink = ctx;

    while (text.len != 0) {
        n = write(sink->fd, text.data, text.len);

        if (n < 0 && errno == EINTR && !ron_ctl_interrupted()) {
            continue;
        }

        if (n < 0) {
            return ron_ctl_interrupted() ? RON_ECANCELED
                   : errno == ENOSPC ? RON_EFULL : RON_EIO;
        }

        text.data += n;
        text.len -= (size_t) n;
        sink->bytes += (uint64_t) n;
    }

    return RON_OK;
}


static int
ctl_export_said(const ron_ctl_args_t *args, const char *verb,
    const ron_export_info_t *info)
{
    char       hex[2 * RON_HASH_LEN + 1];
    ron_buf_t  b;

    ron_ctl_hex(&info->root, hex);

    if (!args->json) {
        printf("%s seq 1 to %s in %s commits, %s entries/s\nroot %s\n", verb,
               ron_ctl_thousands(info->seq), ron_ctl_thousands(info->commits),
               ron_ctl_thousands(ron_ctl_per_second(info->seq,
                                                    info->took_us)), hex);
        return RON_EXIT_OK;
    }

    ron_buf_init(&b, 0);
    ron_buf_put_cstr(&b, "{\"ok\":true");
    ron_json_put_member_u64(&b, ron_str("ledger_id"), info->meta.ledger_id);
    ron_json_put_member_u64(&b, ron_str("seq"), info->seq);
    ron_json_put_member_u64(&b, ron_str("commits"), info->commits);
    ron_ctl_put_hash(&b, "root", &info->root);
    ron_json_put_member_u64(&b, ron_str("took_us"), info->took_us);
    ron_buf_put_cstr(&b, "}\n");
    ron_ctl_print(&b);
    ron_buf_free(&b);

    return RON_EXIT_OK;
}


/* ---- import ------------------------------------------------------------- */

int
ron_ctl_ledger_import(ron_ctl_args_t *args)
{
    int                 rc, fd;
    char                temp[1024];
    off_t               size;
    ron_buf_t           why;
    const char         *path;
    ron_import_t       *import;
    ron_status_t        status;
    ron_ctl_meter_t     meter;
    ron_export_info_t   info;

    path = args->pos_n > 1 ? args->pos[1] : "-";
    fd = strcmp(path, "-") == 0 ? STDIN_FILENO
                                : open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", path,
                            strerror(errno));
    }

    size = lseek(fd, 0, SEEK_END);
    (void) lseek(fd, 0, SEEK_SET);

    rc = ron_ctl_place_begin(args, args->pos[0], temp, sizeof(temp));
    if (rc != RON_EXIT_OK) {
        return rc;
    }

    ron_buf_init(&why, 0);
    status = ron_import_open(temp, &import, &why);

    rc = status != RON_OK ? ron_ctl_failed(args, status, &why)
         : ctl_import_read(args, fd, import, &why,
                           size > 0 ? (uint64_t) size : 0);

    if (rc == RON_EXIT_OK) {
        ron_ctl_meter_init(&meter, "verifying");
        status = ron_import_finish(import, ron_ctl_meter, &meter, &info,
                                   &why);
        ron_ctl_meter_end(&meter);

        if (status != RON_OK) {
            rc = status == RON_EINVAL
                 ? ron_ctl_fail(args, RON_EXIT_NO, "%.*s", (int) why.len,
                                (const char *) why.data)
                 : ron_ctl_failed(args, status, &why);
        }

    } else {
        ron_import_abort(import);
    }

    if (rc == RON_EXIT_OK) {
        rc = ron_ctl_place_end(args, temp, args->pos[0]);
    }

    if (rc != RON_EXIT_OK) {
        ron_ctl_place_undo(temp);

    } else {
        rc = ctl_export_said(args, "imported", &info);
    }

    ron_buf_free(&why);

    return rc;
}


static int
ctl_import_read(const ron_ctl_args_t *args, int fd, ron_import_t *import,
    ron_buf_t *why, uint64_t size)
{
    ssize_t          n;
    uint8_t         *room;
    uint64_t         done;
    ron_buf_t        buf;
    ron_status_t     status;
    ron_ctl_meter_t  meter;

    ron_buf_init(&buf, RON_EXPORT_LINE_MAX + CTL_IMPORT_READ);
    ron_ctl_meter_init(&meter, "importing (bytes)");
    status = RON_OK;
    done = 0;

    while (status == RON_OK) {
        room = ron_buf_reserve(&buf, CTL_IMPORT_READ);

        if (room == NULL) {
            ron_buf_put_cstr(why, "a line is too long");
            status = RON_EINVAL;
            break;
        }

        n = read(fd, room, CTL_IMPORT_READ);

        if (!ron_ctl_meter(&meter, done, size ? size : done)) {
            status = RON_ECANCELED;
            break;
        }

        if (n < 0 && errno == EINTR) {
            continue;
        }

        if (n < 0) {
            ron_buf_put_cstr(why, strerror(errno));
            status = RON_EIO;
        }

        if (n <= 0) {
            break;
        }

        done += (uint64_t) n;
        buf.len += (size_t) n;
        status = ctl_import_lines(import, &buf, buf.len - (size_t) n, why);
    }

    if (status == RON_OK && buf.len != 0) {
        status = ron_import_line(import, ron_buf_str(&buf), why);
    }

    ron_ctl_meter_end(&meter);
    ron_buf_free(&buf);

    return status == RON_OK ? RON_EXIT_OK
           : status == RON_EINVAL
             ? ron_ctl_fail(args, RON_EXIT_NO, "%.*s", (int) why->len,
                            (const char *) why->data)
             : ron_ctl_failed(args, status, why);
}


/* Whole lines leave the buffer; `seen` bytes of it have no end of a line. */

static ron_status_t
ctl_import_lines(ron_import_t *import, ron_buf_t *buf, size_t seen,
    ron_buf_t *why)
{
    size_t         begin;
    uint8_t       *end;
    ron_status_t   status;

    status = RON_OK;
    begin = 0;

    while (status == RON_OK
           && (end = memchr(buf->data + seen, '\n', buf->len - seen)) != NULL)
    {
        seen = (size_t) (end - buf->data) + 1;
        status = ron_import_line(import, (ron_str_t) { seen - begin - 1,
                                                       buf->data + begin },
                                 why);
        begin = seen;
    }

    memmove(buf->data, buf->data + begin, buf->len - begin);
    buf->len -= begin;

    return status;
}
