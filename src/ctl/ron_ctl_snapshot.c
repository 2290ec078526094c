
/* ronctl ledger snapshot, restore, reindex. */

#include "ron_ctl.h"
#include "ron_history.h"
#include "ron_port.h"
#include "ron_snapshot.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>


#define CTL_REINDEX_STEP    200000
#define CTL_REINDEX_NAP_US  UINT64_C(200000)

/* How long a server may take to notice that its history was deleted. */
#define CTL_REINDEX_WAIT_US UINT64_C(10000000)


static int ctl_signer(const ron_ctl_args_t *args, const char *path,
    ron_signer_t **signer);
static int ctl_snapshot_said(const ron_ctl_args_t *args, const char *verb,
    const ron_snapshot_info_t *info);
static int ctl_reindex_tags(const ron_ctl_args_t *args, ron_store_t *store);
static ron_status_t ctl_tag_file(void *ctx, const char *name);
static int ctl_reindex_build(const ron_ctl_args_t *args,
    ron_history_t *history, uint64_t head);
static int ctl_reindex_watch(const ron_ctl_args_t *args, const char *dir,
    uint64_t head);


static const ron_history_conf_t  ctl_reindex = {
    .cache = (size_t) 256 << 20,
    .share = 100
};


static int
ctl_signer(const ron_ctl_args_t *args, const char *path,
    ron_signer_t **signer)
{
    int           rc;
    ron_buf_t     text;
    ron_status_t  status;

    *signer = NULL;

    if (path == NULL) {
        return ron_ctl_fail(args, RON_EXIT_USAGE, "a snapshot is signed: "
                            "--key FILE (ronctl keys signing makes one)");
    }

    ron_buf_init(&text, 0);
    rc = ron_ctl_read_file(args, path, &text);

    if (rc == RON_EXIT_OK) {
        status = ron_signer_parse(ron_buf_str(&text), signer);

        if (status != RON_OK) {
            rc = ron_ctl_fail(args, RON_EXIT_IO, "%s: not a signing key",
                              path);
        }
    }

    if (text.data != NULL) {
        OPENSSL_cleanse(text.data, text.cap);
    }

    ron_buf_free(&text);

    return rc;
}


int
ron_ctl_ledger_snapshot(ron_ctl_args_t *args)
{
    int                   rc;
    ron_buf_t             why;
    ron_store_t          *store;
    ron_signer_t         *signer;
    ron_status_t          status;
    ron_ctl_meter_t       meter;
    ron_snapshot_info_t   info;

    rc = ctl_signer(args, ron_ctl_value(args, "key"), &signer);

    if (rc == RON_EXIT_OK) {
        rc = ron_ctl_open(args, args->pos[0], &store);
    }

    if (rc != RON_EXIT_OK) {
        ron_signer_free(signer);
        return rc;
    }

    ron_buf_init(&why, 0);
    ron_ctl_meter_init(&meter, "copying");

    status = ron_snapshot_take(store, args->pos[1], signer, ron_ctl_meter,
                               &meter, &info, &why);

    ron_ctl_meter_end(&meter);
    ron_store_close(store);
    ron_signer_free(signer);

    rc = status == RON_OK ? ctl_snapshot_said(args, "snapshot of", &info)
                          : ron_ctl_failed(args, status, &why);
    ron_buf_free(&why);

    return rc;
}


static int
ctl_snapshot_said(const ron_ctl_args_t *args, const char *verb,
    const ron_snapshot_info_t *info)
{
    char       root[2 * RON_HASH_LEN + 1], file[2 * RON_HASH_LEN + 1];
    ron_buf_t  b;

    ron_ctl_hex(&info->root, root);
    ron_ctl_hex(&info->file, file);

    if (!args->json) {
        printf("%s ledger %u: height %s, %s commits, %s bytes\n"
               "root %s\n", verb, info->meta.ledger_id,
               ron_ctl_thousands(info->seq), ron_ctl_thousands(info->commits),
               ron_ctl_thousands(info->bytes), root);

        if (info->first > 1) {
            printf("copied from seq %s on; what was there before was kept\n",
                   ron_ctl_thousands(info->first));
        }

        return RON_EXIT_OK;
    }

    ron_buf_init(&b, 0);
    ron_buf_put_cstr(&b, "{\"ok\":true");
    ron_json_put_member_u64(&b, ron_str("ledger_id"), info->meta.ledger_id);
    ron_json_put_member_u64(&b, ron_str("seq"), info->seq);
    ron_json_put_member_u64(&b, ron_str("first"), info->first);
    ron_json_put_member_u64(&b, ron_str("commits"), info->commits);
    ron_ctl_put_hash(&b, "root", &info->root);
    ron_ctl_put_hash(&b, "chain", &info->chain);
    ron_json_put_member_u64(&b, ron_str("bytes"), info->bytes);
    ron_json_put_member(&b, ron_str("blake3"), ron_cstr(file));
    ron_json_put_member_u64(&b, ron_str("took_us"), info->took_us);
    ron_buf_put_cstr(&b, "}\n");
    ron_ctl_print(&b);
    ron_buf_free(&b);

    return RON_EXIT_OK;
}


int
ron_ctl_ledger_restore(ron_ctl_args_t *args)
{
    int                   rc;
    char                  temp[1024];
    ron_buf_t             why, key;
    ron_status_t          status;
    ron_ctl_meter_t       meter;
    ron_snapshot_info_t   info;

    if (ron_ctl_value(args, "public-key") == NULL) {
        return ron_ctl_fail(args, RON_EXIT_USAGE, "whose snapshot is it? "
                            "--public-key KEY (ronctl keys public shows it)");
    }

    ron_buf_init(&key, 0);
    ron_buf_init(&why, 0);

    rc = ron_ctl_public_key(args, ron_ctl_value(args, "public-key"), &key);

    if (rc == RON_EXIT_OK) {
        rc = ron_ctl_place_begin(args, args->pos[1], temp, sizeof(temp));
    }

    if (rc == RON_EXIT_OK) {
        ron_ctl_meter_init(&meter, "restoring");
        status = ron_snapshot_restore(args->pos[0], ron_buf_str(&key), temp,
                                      ron_ctl_meter, &meter, &info, &why);
        ron_ctl_meter_end(&meter);

        rc = status == RON_OK
             ? ron_ctl_place_end(args, temp, args->pos[1])
             : ron_ctl_failed(args, status, &why);

        if (rc != RON_EXIT_OK) {
            ron_ctl_place_undo(temp);
        }
    }

    if (rc == RON_EXIT_OK) {
        if (info.damaged_file) {
            fprintf(stderr, "ronctl: ledger.db of the snapshot has other bytes "
                    "than its manifest says (a copy that was interrupted?); "
                    "every commit up to the signed height is good\n");
        }

        rc = ctl_snapshot_said(args, "restored and verified", &info);
    }

    ron_buf_free(&key);
    ron_buf_free(&why);

    return rc;
}


/* ---- what is derived ---------------------------------------------------- */

int
ron_ctl_ledger_reindex(ron_ctl_args_t *args)
{
    int             rc;
    char            path[1024];
    uint64_t        head;
    ron_buf_t       why;
    ron_row_t       row;
    ron_store_t    *store;
    ron_reader_t   *reader;
    ron_status_t    status;
    ron_history_t  *history;

    rc = ron_ctl_open(args, args->pos[0], &store);
    if (rc != RON_EXIT_OK) {
        return rc;
    }

    if (ron_ctl_value(args, "tags") != NULL) {
        rc = ctl_reindex_tags(args, store);
        ron_store_close(store);
        return rc;
    }

    ron_buf_init(&why, 0);
    head = 0;
    status = ron_reader_open(store, &reader);

    if (status == RON_OK) {
        head = ron_reader_head(reader, &row) == RON_OK
               ? row.seq + row.count - 1 : 0;
        ron_reader_close(reader);
        status = ron_history_open(store, &ctl_reindex, &history, &why);
    }

    if (status == RON_ECORRUPT && ron_ctl_value(args, "force") != NULL) {
        snprintf(path, sizeof(path), "%s/" RON_HISTORY_DB,
                 ron_store_dir(store));
        (void) unlink(path);
        ron_buf_reset(&why);
        status = ron_history_open(store, &ctl_reindex, &history, &why);
    }

    if (status == RON_OK) {
        status = ron_history_reset(history, &why);

        rc = status == RON_OK ? ctl_reindex_build(args, history, head)
                              : ron_ctl_failed(args, status, &why);
        ron_history_close(history);

    } else if (status == RON_EFENCED) {

        /* A server writes it: deleting is asking it to begin again. */

        snprintf(path, sizeof(path), "%s/" RON_HISTORY_DB,
                 ron_store_dir(store));
        (void) unlink(path);
        rc = ctl_reindex_watch(args, ron_store_dir(store), head);

    } else {
        rc = ron_ctl_failed(args, status, &why);
    }

    ron_store_close(store);
    ron_buf_free(&why);

    return rc;
}


static int
ctl_reindex_build(const ron_ctl_args_t *args, ron_history_t *history,
    uint64_t head)
{
    int              rc;
    uint64_t         begin_us, took_us;
    ron_buf_t        why;
    ron_status_t     status;
    ron_ctl_meter_t  meter;

    ron_buf_init(&why, 0);
    ron_ctl_meter_init(&meter, "indexing");
    begin_us = ron_clock_mono_us();

    do {
        status = ron_history_step(history, CTL_REINDEX_STEP, &why);

        if (!ron_ctl_meter(&meter, ron_history_watermark(history), head)) {
            status = RON_ECANCELED;
        }

    } while (status == RON_OK || status == RON_AGAIN);

    ron_ctl_meter_end(&meter);
    took_us = ron_clock_mono_us() - begin_us;
    rc = RON_EXIT_OK;

    if (status != RON_ENOTFOUND) {
        rc = ron_ctl_failed(args, status, &why);

    } else if (args->json) {
        printf("{\"ok\":true,\"watermark\":%llu,\"took_us\":%llu}\n",
               (unsigned long long) ron_history_watermark(history),
               (unsigned long long) took_us);

    } else {
        printf("history.db is rebuilt up to seq %s, %s entries/s\n",
               ron_ctl_thousands(ron_history_watermark(history)),
               ron_ctl_thousands(ron_ctl_per_second(
                                     ron_history_watermark(history),
                                     took_us)));
    }

    ron_buf_free(&why);

    return rc;
}


static int
ctl_reindex_watch(const ron_ctl_args_t *args, const char *dir, uint64_t head)
{
    bool             seen;
    uint64_t         watermark, begin_us;
    ron_ctl_meter_t  meter;

    ron_ctl_meter_init(&meter, "the server is indexing");
    begin_us = ron_clock_mono_us();
    seen = false;

    for ( ;; ) {
        if (ron_history_peek(dir, &watermark) == RON_OK) {
            seen = true;
        }

        if (seen && watermark >= head) {
            break;
        }

        if (!ron_ctl_meter(&meter, watermark, head)) {
            ron_ctl_meter_end(&meter);
            return ron_ctl_fail(args, RON_EXIT_INT, "interrupted; the server "
                                "goes on by itself");
        }

        if (!seen && ron_clock_mono_us() - begin_us > CTL_REINDEX_WAIT_US) {
            ron_ctl_meter_end(&meter);
            return ron_ctl_fail(args, RON_EXIT_LOCKED, "history.db was "
                                "deleted, but the process that writes it has "
                                "not begun again");
        }

        ron_sleep_us(CTL_REINDEX_NAP_US);
    }

    ron_ctl_meter_end(&meter);

    if (args->json) {
        printf("{\"ok\":true,\"watermark\":%llu,\"by\":\"server\"}\n",
               (unsigned long long) watermark);

    } else {
        printf("the server has rebuilt history.db up to seq %s\n",
               ron_ctl_thousands(watermark));
    }

    return RON_EXIT_OK;
}


typedef struct {
    const char  *dir;
    unsigned     n;
} ctl_tag_files_t;


/* "tag-<16 hex>.seg", "tag.manifest", and the same with "key". */

static ron_status_t
ctl_tag_file(void *ctx, const char *name)
{
    char              path[1024];
    size_t            len;
    ctl_tag_files_t  *files = ctx;

    len = strlen(name);

    if ((strncmp(name, "tag", 3) != 0 && strncmp(name, "key", 3) != 0)
        || !((name[3] == '-' && len == 24 && strcmp(name + 20, ".seg") == 0)
             || strcmp(name + 3, ".manifest") == 0))
    {
        return RON_OK;
    }

    snprintf(path, sizeof(path), "%s/%s", files->dir, name);

    if (unlink(path) != 0) {
        return RON_EIO;
    }

    files->n++;

    return RON_OK;
}


static int
ctl_reindex_tags(const ron_ctl_args_t *args, ron_store_t *store)
{
    int              rc;
    uint64_t         epoch;
    ron_buf_t        why;
    ron_status_t     status;
    ctl_tag_files_t  files;

    ron_buf_init(&why, 0);
    status = ron_store_acquire(store, &epoch);

    if (status != RON_OK) {
        ron_buf_put_cstr(&why, ron_store_error(store));
        rc = ron_ctl_failed(args, status, &why);
        ron_buf_free(&why);
        return rc;
    }

    files = (ctl_tag_files_t) { .dir = ron_store_dir(store) };
    status = ron_dir_each(files.dir, ctl_tag_file, &files);
    ron_store_release(store);

    if (status != RON_OK) {
        return ron_ctl_fail(args, RON_EXIT_IO, "%s: %s", files.dir,
                            ron_port_error());
    }

    if (args->json) {
        printf("{\"ok\":true,\"removed\":%u}\n", files.n);

    } else {
        printf("%u files of tags removed; the next start reads the journal "
               "once and makes them again\n", files.n);
    }

    return RON_EXIT_OK;
}
