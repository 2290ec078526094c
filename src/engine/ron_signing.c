
/*
 * The key that heads are signed with.
 *
 * An operator may bring one (a file in the format of signed notes).  Without,
 * the ledger makes its own when it is first written to, and keeps it beside
 * the journal: signing.key, for the ledger's owner only, and signing.pub, for
 * everybody who wants to check.  A ledger in memory signs with a key that
 * lives as long as its process.
 */

#include "ron_engine_impl.h"

#include <stdio.h>


#define RON_SIGNING_PATH  4096
#define RON_SIGNING_TEXT  1024


static ron_status_t ron_signing_save(const char *dir,
    const ron_signer_t *signer);
static ron_status_t ron_signing_write(const char *dir, const char *name,
    const ron_buf_t *text);


ron_status_t
ron_signing_open(ron_engine_t *en, ron_buf_t *why)
{
    char           name[32];
    const char    *dir;
    ron_status_t   status;

    if (en->conf.signer != NULL) {
        return RON_OK;
    }

    dir = ron_store_dir(en->store);
    status = (dir == NULL) ? RON_ENOTFOUND
                           : ron_signing_load(dir, &en->own_signer);

    if (status == RON_ENOTFOUND) {
        (void) snprintf(name, sizeof(name), "ron-ledger-%u",
                        en->meta.ledger_id);

        status = ron_signer_generate(ron_cstr(en->conf.origin != NULL
                                              ? en->conf.origin : name),
                                     &en->own_signer);

        if (status == RON_OK && dir != NULL) {
            status = ron_signing_save(dir, en->own_signer);
        }
    }

    if (status != RON_OK) {
        ron_buf_printf(why, "the ledger's signing.key cannot be used: %s",
                       ron_status_name(status));
        return status;
    }

    status = ron_signing_origin(en, en->own_signer, why);
    if (status != RON_OK) {
        ron_signer_free(en->own_signer);
        en->own_signer = NULL;
        return status;
    }

    en->conf.signer = en->own_signer;

    return RON_OK;
}


/* Checkpoints begin with the name of their key: no other one can be kept. */

ron_status_t
ron_signing_origin(ron_engine_t *en, const ron_signer_t *signer,
    ron_buf_t *why)
{
    ron_str_t  name;

    name = ron_signer_name(signer);

    if (en->conf.origin == NULL || ron_str_eq(ron_cstr(en->conf.origin), name))
    {
        return RON_OK;
    }

    ron_buf_printf(why, "the origin \"%s\" is not the name in the signing key,"
                   " \"%.*s\"", en->conf.origin, (int) name.len,
                   (const char *) name.data);

    return RON_EINVAL;
}


ron_status_t
ron_signing_load(const char *dir, ron_signer_t **signer)
{
    char          path[RON_SIGNING_PATH];
    uint8_t       text[RON_SIGNING_TEXT];
    uint64_t      size;
    ron_fd_t      fd;
    ron_status_t  status;

    (void) snprintf(path, sizeof(path), "%s/signing.key", dir);

    status = ron_file_open(path, RON_OPEN_READ, &fd);
    if (status != RON_OK) {
        return status;
    }

    status = ron_file_size(fd, &size);

    if (status == RON_OK && size > sizeof(text)) {
        status = RON_EINVAL;
    }

    if (status == RON_OK) {
        status = ron_file_pread(fd, text, size, 0);
    }

    ron_file_close(fd);

    return status == RON_OK
               ? ron_signer_parse((ron_str_t) { size, text }, signer)
               : status;
}


/* The public half first: where there is a key, there is its other half. */

static ron_status_t
ron_signing_save(const char *dir, const ron_signer_t *signer)
{
    ron_buf_t     text;
    ron_status_t  status;

    ron_buf_init(&text, RON_SIGNING_TEXT);

    status = ron_signer_public_text(signer, &text);

    if (status == RON_OK) {
        status = ron_signing_write(dir, "signing.pub", &text);
    }

    ron_buf_reset(&text);

    if (status == RON_OK) {
        status = ron_signer_private_text(signer, &text);
    }

    if (status == RON_OK) {
        status = ron_signing_write(dir, "signing.key", &text);
    }

    if (text.data != NULL) {
        explicit_bzero(text.data, text.cap);
    }

    ron_buf_free(&text);

    return status;
}


static ron_status_t
ron_signing_write(const char *dir, const char *name, const ron_buf_t *text)
{
    char          path[RON_SIGNING_PATH], temp[RON_SIGNING_PATH];
    ron_fd_t      fd;
    ron_status_t  status;

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);
    (void) snprintf(temp, sizeof(temp), "%s/%s.new", dir, name);

    status = ron_file_unlink(temp);

    if (status == RON_OK || status == RON_ENOTFOUND) {
        status = ron_file_open(temp, RON_OPEN_WRITE | RON_OPEN_CREATE
                                     | RON_OPEN_EXCL, &fd);
    }

    if (status != RON_OK) {
        return status;
    }

    status = ron_file_pwrite(fd, text->data, text->len, 0);

    if (status == RON_OK) {
        status = ron_file_sync(fd);
    }

    ron_file_close(fd);

    if (status == RON_OK) {
        status = ron_file_rename(temp, path);
    }

    return status == RON_OK ? ron_dir_sync(dir) : status;
}
