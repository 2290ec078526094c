
/* ronctl ledger info, verify, mark, clear-mark. */

#include "ron_ctl.h"
#include "ron_codec.h"
#include "ron_history.h"
#include "ron_note.h"
#include "ron_port.h"

#include <stdio.h>


static int ctl_report(const ron_ctl_args_t *args, ron_status_t status,
    const ron_audit_report_t *r, const char *mark);
static void ctl_report_json(const ron_ctl_args_t *args, ron_status_t status,
    const ron_audit_report_t *r, const char *mark);
static void ctl_report_text(const ron_ctl_args_t *args,
    const ron_audit_report_t *r, const char *mark);
static void ctl_mark_text(ron_store_t *store, char *text, size_t size);
static void ctl_info(const ron_ctl_args_t *args, ron_store_t *store,
    const ron_row_t *row);
static ron_status_t ctl_clear(ron_store_t *store, uint64_t *seq,
    ron_buf_t *why);


int
ron_ctl_ledger_verify(ron_ctl_args_t *args)
{
    int                 rc;
    char                mark[512];
    ron_buf_t           key, note;
    ron_store_t        *store;
    ron_status_t        status;
    ron_ctl_meter_t     meter;
    ron_audit_conf_t    conf;
    ron_audit_report_t  report;

    memset(&conf, 0, sizeof(conf));
    ron_buf_init(&key, 0);
    ron_buf_init(&note, 0);

    if (!ron_ctl_number(args, "from", 1, &conf.from)) {
        return RON_EXIT_USAGE;
    }

    conf.no_replay = ron_ctl_value(args, "no-replay") != NULL;
    conf.no_beside = ron_ctl_value(args, "journal-only") != NULL;

    rc = RON_EXIT_OK;

    if (ron_ctl_value(args, "public-key") != NULL) {
        rc = ron_ctl_public_key(args, ron_ctl_value(args, "public-key"),
                                &key);
    }

    if (rc == RON_EXIT_OK && ron_ctl_value(args, "checkpoint") != NULL) {
        rc = ron_ctl_read_file(args, ron_ctl_value(args, "checkpoint"),
                               &note);
    }

    if (rc == RON_EXIT_OK) {
        rc = ron_ctl_open(args, args->pos[0], &store);
    }

    if (rc == RON_EXIT_OK) {
        ron_ctl_meter_init(&meter, "verifying");
        conf.public_key = ron_buf_str(&key);
        conf.note = ron_buf_str(&note);
        conf.progress = ron_ctl_meter;
        conf.ctx = &meter;

        status = ron_audit(store, &conf, &report);

        ron_ctl_meter_end(&meter);
        ctl_mark_text(store, mark, sizeof(mark));
        ron_store_close(store);

        rc = ctl_report(args, status, &report, mark);
    }

    ron_buf_free(&key);
    ron_buf_free(&note);

    return rc;
}


static int
ctl_report(const ron_ctl_args_t *args, ron_status_t status,
    const ron_audit_report_t *r, const char *mark)
{
    if (status == RON_ECANCELED) {
        return ron_ctl_fail(args, RON_EXIT_INT, "interrupted; up to seq %llu "
                            "everything was good",
                            (unsigned long long) r->seq);
    }

    if (status != RON_OK && status != RON_ECORRUPT) {
        return ron_ctl_fail(args, RON_EXIT_IO, "%s", r->why);
    }

    if (args->json) {
        ctl_report_json(args, status, r, mark);

    } else if (status == RON_OK) {
        ctl_report_text(args, r, mark);

    } else {
        printf("DAMAGED\n");

        if (r->bad_seq != 0 && r->bad_last != 0) {
            printf("  commit     seq %llu to %llu\n",
                   (unsigned long long) r->bad_seq,
                   (unsigned long long) r->bad_last);

        } else if (r->bad_seq != 0) {
            printf("  commit     at seq %llu\n",
                   (unsigned long long) r->bad_seq);
        }

        if (r->bad_entry != 0) {
            printf("  entry      %llu\n", (unsigned long long) r->bad_entry);
        }

        printf("  what       %s\n"
               "  why        %s\n"
               "  good       up to seq %llu\n", r->what, r->why,
               (unsigned long long) r->seq);
    }

    return status == RON_OK ? RON_EXIT_OK : RON_EXIT_NO;
}


static void
ctl_report_text(const ron_ctl_args_t *args, const ron_audit_report_t *r,
    const char *mark)
{
    char  hex[2 * RON_HASH_LEN + 1], time[RON_TIME_LEN + 1];

    ron_ctl_hex(&r->root, hex);
    (void) ron_time_print(r->time_ms, time);

    printf("OK\n"
           "  height     %s\n"
           "  root       %s\n"
           "  checked    seq %llu to %llu, %s commits, %s tiles, %s\n"
           "  beside     %s\n"
           "  head       %s, epoch %llu\n"
           "  took       %llu.%02llu s, %s entries/s\n",
           ron_ctl_thousands(r->seq), hex, (unsigned long long) r->from,
           (unsigned long long) r->seq, ron_ctl_thousands(r->commits),
           ron_ctl_thousands(r->tiles),
           r->replayed ? "replayed, money conserved" : "not replayed",
           ron_ctl_value(args, "journal-only") ? "not looked at"
           : "checkpoints, tags, history and published head agree",
           time, (unsigned long long) r->epoch,
           (unsigned long long) r->took_us / 1000000,
           (unsigned long long) r->took_us / 10000 % 100,
           ron_ctl_thousands(ron_ctl_per_second(r->entries, r->took_us)));

    if (r->head_size != 0) {
        printf("  published  seq %llu, %s\n",
               (unsigned long long) r->head_size, r->head_verified
               ? "signed by the key given" : "signature not checked (no "
                                             "--public-key)");
    }

    if (mark[0] != '\0') {
        printf("  mark       %s\n             (ronctl ledger clear-mark "
               "acknowledges it)\n", mark);
    }
}


static void
ctl_report_json(const ron_ctl_args_t *args, ron_status_t status,
    const ron_audit_report_t *r, const char *mark)
{
    ron_buf_t  b;

    (void) args;
    ron_buf_init(&b, 0);
    ron_buf_put_u8(&b, '{');
    ron_json_put_member_bool(&b, ron_str("ok"), status == RON_OK);
    ron_json_put_member_u64(&b, ron_str("from"), r->from);
    ron_json_put_member_u64(&b, ron_str("seq"), r->seq);

    if (status == RON_OK) {
        ron_ctl_put_hash(&b, "root", &r->root);
        ron_ctl_put_hash(&b, "chain", &r->chain);
        ron_json_put_member_u64(&b, ron_str("time_ms"), r->time_ms);
        ron_json_put_member_u64(&b, ron_str("epoch"), r->epoch);
        ron_json_put_member_u64(&b, ron_str("accounts"), r->accounts);
        ron_json_put_member_bool(&b, ron_str("replayed"), r->replayed);
        ron_json_put_member_u64(&b, ron_str("published"), r->head_size);
        ron_json_put_member_bool(&b, ron_str("published_verified"),
                                 r->head_verified);

    } else {
        ron_json_put_member(&b, ron_str("what"), ron_cstr(r->what));
        ron_json_put_member(&b, ron_str("why"), ron_cstr(r->why));
        ron_json_put_member_u64(&b, ron_str("bad_seq"), r->bad_seq);
        ron_json_put_member_u64(&b, ron_str("bad_last"), r->bad_last);
        ron_json_put_member_u64(&b, ron_str("bad_entry"), r->bad_entry);
    }

    ron_json_put_member_u64(&b, ron_str("commits"), r->commits);
    ron_json_put_member_u64(&b, ron_str("entries"), r->entries);
    ron_json_put_member_u64(&b, ron_str("tiles"), r->tiles);
    ron_json_put_member_u64(&b, ron_str("took_us"), r->took_us);
    ron_json_put_member_u64(&b, ron_str("entries_per_s"),
                            ron_ctl_per_second(r->entries, r->took_us));

    if (mark[0] != '\0') {
        ron_json_put_member(&b, ron_str("mark"), ron_cstr(mark));
    }

    ron_buf_put_cstr(&b, "}\n");
    ron_ctl_print(&b);
    ron_buf_free(&b);
}


/* The reason of safe mode, or nothing; only what can be shown. */

static void
ctl_mark_text(ron_store_t *store, char *text, size_t size)
{
    ron_buf_t  reason;

    text[0] = '\0';
    ron_buf_init(&reason, 0);

    if (ron_store_mark_read(store, &reason) == RON_OK) {
        snprintf(text, size, "%.*s", (int) reason.len, reason.len
                 ? (const char *) reason.data : "");

        for (size_t i = 0; text[i] != '\0'; i++) {
            if (text[i] < 0x20 || text[i] > 0x7e) {
                text[i] = '?';
            }
        }
    }

    ron_buf_free(&reason);
}


/* ---- info --------------------------------------------------------------- */

int
ron_ctl_ledger_info(ron_ctl_args_t *args)
{
    int            rc;
    ron_buf_t      why;
    ron_row_t      row;
    ron_store_t   *store;
    ron_reader_t  *reader;
    ron_status_t   status;

    rc = ron_ctl_open(args, args->pos[0], &store);
    if (rc != RON_EXIT_OK) {
        return rc;
    }

    ron_buf_init(&why, 0);
    status = ron_reader_open(store, &reader);

    if (status == RON_OK) {
        status = ron_reader_head(reader, &row);
    }

    if (status == RON_ENOTFOUND) {
        ron_digest_bytes(ron_store_meta(store)->digest, "", 0, &row.root);

    } else if (status != RON_OK) {
        ron_buf_put_cstr(&why, reader ? ron_reader_error(reader)
                                      : ron_store_error(store));
        rc = ron_ctl_failed(args, status, &why);
        ron_reader_close(reader);
        ron_store_close(store);
        ron_buf_free(&why);
        return rc;
    }

    ctl_info(args, store, &row);
    ron_reader_close(reader);
    ron_store_close(store);
    ron_buf_free(&why);

    return RON_EXIT_OK;
}


static void
ctl_info(const ron_ctl_args_t *args, ron_store_t *store, const ron_row_t *row)
{
    char                      mark[512], hex[2 * RON_HASH_LEN + 1];
    char                      created[RON_TIME_LEN + 1];
    char                      time[RON_TIME_LEN + 1];
    uint64_t                  seq, watermark;
    ron_buf_t                 b;
    const ron_ledger_meta_t  *meta;

    meta = ron_store_meta(store);
    seq = row->seq ? row->seq + row->count - 1 : 0;
    ctl_mark_text(store, mark, sizeof(mark));
    ron_ctl_hex(&row->root, hex);
    (void) ron_time_print(meta->created_ms, created);
    (void) ron_time_print(row->time_ms, time);
    (void) ron_history_peek(ron_store_dir(store), &watermark);

    if (args->json) {
        ron_buf_init(&b, 0);
        ron_buf_put_u8(&b, '{');
        ron_json_put_member_u64(&b, ron_str("ledger_id"), meta->ledger_id);
        ron_json_put_member(&b, ron_str("digest"),
                            ron_cstr(ron_digest_name(meta->digest)));
        ron_json_put_member_u64(&b, ron_str("created_ms"), meta->created_ms);
        ron_json_put_member_u64(&b, ron_str("seq"), seq);
        ron_ctl_put_hash(&b, "root", &row->root);
        ron_json_put_member_u64(&b, ron_str("time_ms"), row->time_ms);
        ron_json_put_member_u64(&b, ron_str("epoch"), row->epoch);
        ron_json_put_member_u64(&b, ron_str("history"), watermark);

        if (mark[0] != '\0') {
            ron_json_put_member(&b, ron_str("mark"), ron_cstr(mark));
        }

        ron_buf_put_cstr(&b, "}\n");
        ron_ctl_print(&b);
        ron_buf_free(&b);

    } else {
        printf("ledger     %u, %s, created %s\n"
               "height     %s\n"
               "root       %s\n", meta->ledger_id,
               ron_digest_name(meta->digest), created, ron_ctl_thousands(seq),
               hex);

        if (seq != 0) {
            printf("head       %s, epoch %llu\n", time,
                   (unsigned long long) row->epoch);
        }

        printf("history    up to seq %s\n"
               "safe mode  %s\n", ron_ctl_thousands(watermark),
               mark[0] ? mark : "no mark");
    }
}


/* ---- the mark of safe mode ---------------------------------------------- */

int
ron_ctl_ledger_mark(ron_ctl_args_t *args)
{
    int           rc;
    char          mark[512];
    ron_buf_t     b;
    ron_store_t  *store;

    rc = ron_ctl_open(args, args->pos[0], &store);
    if (rc != RON_EXIT_OK) {
        return rc;
    }

    ctl_mark_text(store, mark, sizeof(mark));
    ron_store_close(store);

    if (args->json) {
        ron_buf_init(&b, 0);
        ron_buf_put_u8(&b, '{');
        ron_json_put_member_bool(&b, ron_str("marked"), mark[0] != '\0');

        if (mark[0] != '\0') {
            ron_json_put_member(&b, ron_str("mark"), ron_cstr(mark));
        }

        ron_buf_put_cstr(&b, "}\n");
        ron_ctl_print(&b);
        ron_buf_free(&b);

    } else {
        printf("%s\n", mark[0] ? mark : "no mark");
    }

    return mark[0] ? RON_EXIT_NO : RON_EXIT_OK;
}


int
ron_ctl_ledger_clear_mark(ron_ctl_args_t *args)
{
    int            rc;
    char           mark[512];
    uint64_t       seq;
    ron_buf_t      why;
    ron_store_t   *store;
    ron_status_t   status;

    rc = ron_ctl_open(args, args->pos[0], &store);
    if (rc != RON_EXIT_OK) {
        return rc;
    }

    ctl_mark_text(store, mark, sizeof(mark));

    if (mark[0] == '\0') {
        ron_store_close(store);

        if (args->json) {
            printf("{\"ok\":true,\"cleared\":false}\n");

        } else {
            printf("there is no mark\n");
        }

        return RON_EXIT_OK;
    }

    ron_buf_init(&why, 0);
    status = ctl_clear(store, &seq, &why);
    ron_store_close(store);

    if (status != RON_OK) {
        rc = ron_ctl_failed(args, status, &why);

    } else if (args->json) {
        printf("{\"ok\":true,\"cleared\":true,\"seq\":%llu}\n",
               (unsigned long long) seq);

    } else {
        printf("verified up to seq %s and cleared: %s\n",
               ron_ctl_thousands(seq), mark);
    }

    ron_buf_free(&why);

    return rc;
}


/* The lock first: what is verified is what the next writer will find. */

static ron_status_t
ctl_clear(ron_store_t *store, uint64_t *seq, ron_buf_t *why)
{
    uint64_t            epoch;
    ron_status_t        status;
    ron_ctl_meter_t     meter;
    ron_audit_conf_t    conf;
    ron_audit_report_t  report;

    *seq = 0;
    status = ron_store_acquire(store, &epoch);

    if (status == RON_OK) {
        memset(&conf, 0, sizeof(conf));
        ron_ctl_meter_init(&meter, "verifying");
        conf.progress = ron_ctl_meter;
        conf.ctx = &meter;

        status = ron_audit(store, &conf, &report);
        ron_ctl_meter_end(&meter);

        if (status != RON_OK) {
            ron_buf_printf(why, "the mark stays: %s", report.why);
            return status;
        }

        *seq = report.seq;
        status = ron_store_mark_write(store, ron_null_str);
    }

    if (status != RON_OK) {
        ron_buf_put_cstr(why, ron_store_error(store));
    }

    return status;
}
