
/*
 * Signed notes.  A note that verifies is one that this signer would write,
 * byte for byte up to its own signature; a change anywhere undoes it.
 */

#include "ron_fuzz.h"
#include "ron_note.h"
#include "ron_codec.h"


#define PRIVATE  "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
#define PUBLIC   "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"


static ron_signer_t  *signer;


static bool
same(const ron_checkpoint_note_t *a, const ron_checkpoint_note_t *b)
{
    bool  same;

    same = ron_str_eq(a->origin, b->origin) && a->size == b->size
           && ron_hash_eq(&a->root, &b->root) && a->line_n == b->line_n;

    for (uint32_t i = 0; i < a->line_n && same; i++) {
        same = ron_str_eq(a->line[i], b->line[i]);
    }

    return same;
}


static void
fuzz_note(ron_str_t note)
{
    ron_str_t              text;
    ron_buf_t              own;
    ron_status_t           parsed, verified, opened;
    ron_checkpoint_note_t  cp, cp2;

    ron_buf_init(&own, 0);
    parsed = ron_note_parse(note, &cp);
    verified = ron_note_verify(note, ron_str(PUBLIC), &cp2);
    opened = ron_note_open(note, ron_str(PUBLIC), &text);

    if (parsed == RON_OK) {
        RON_ASSERT(cp.line_n <= RON_NOTE_LINES_MAX && cp.origin.len > 0);
        RON_ASSERT(ron_utf8_check(note, NULL) == RON_OK);
    }

    RON_ASSERT(verified != RON_OK
               || (parsed == RON_OK && opened == RON_OK && same(&cp, &cp2)));

    if (opened == RON_OK) {
        RON_ASSERT(text.data == note.data && text.len < note.len
                   && text.data[text.len - 1] == '\n');
        RON_ASSERT(ron_note_seal(signer, text, &own) == RON_OK);
        RON_ASSERT(own.len >= text.len
                   && memcmp(own.data, note.data, text.len) == 0);
    }

    ron_buf_reset(&own);

    if (verified == RON_OK
        && ron_str_eq(cp2.origin, ron_str("PeterNeumann"))
        && ron_note_sign(signer, &cp2, &own) == RON_OK)
    {
        RON_ASSERT(memcmp(own.data, note.data, text.len) == 0);
    }

    ron_buf_free(&own);
}


static void
fuzz_sign(fuzz_t *f)
{
    size_t                 at, text_len;
    uint8_t                bit;
    ron_buf_t              note;
    ron_str_t              text;
    ron_status_t           status;
    ron_checkpoint_note_t  cp, back;

    memset(&cp, 0, sizeof(cp));
    cp.origin = (fuzz_u8(f) & 7) ? ron_str("PeterNeumann") : fuzz_bytes(f, 9);
    cp.size = fuzz_int(f, 8) >> (fuzz_u8(f) & 63);
    memset(cp.root.b, fuzz_u8(f), RON_HASH_LEN);
    cp.line_n = fuzz_u8(f) % (RON_NOTE_LINES_MAX + 1);

    for (uint32_t i = 0; i < cp.line_n; i++) {
        cp.line[i] = (fuzz_u8(f) & 3) ? ron_str("extension 1")
                                      : fuzz_bytes(f, fuzz_u8(f));
    }

    ron_buf_init(&note, 0);
    ron_buf_put_cstr(&note, "before");
    status = ron_note_sign(signer, &cp, &note);

    if (status != RON_OK) {
        RON_ASSERT(note.len == 6);
        ron_buf_free(&note);
        return;
    }

    text = (ron_str_t) { note.len - 6, note.data + 6 };
    RON_ASSERT(ron_note_verify(text, ron_str(PUBLIC), &back) == RON_OK);
    RON_ASSERT(same(&cp, &back));
    RON_ASSERT(ron_note_parse(text, &back) == RON_OK && same(&cp, &back));
    fuzz_note(text);
    text_len = text.len;

    /* One bit, anywhere. */

    at = fuzz_below(f, (uint32_t) text_len);
    bit = (uint8_t) (1u << (fuzz_u8(f) & 7));
    note.data[6 + at] ^= bit;
    RON_ASSERT(ron_note_verify(text, ron_str(PUBLIC), &back) != RON_OK);
    note.data[6 + at] ^= bit;

    /* Cut anywhere. */

    text.len = fuzz_below(f, (uint32_t) text_len);
    RON_ASSERT(ron_note_verify(text, ron_str(PUBLIC), &back) != RON_OK);

    ron_buf_free(&note);
}


static void
fuzz_key(ron_str_t text)
{
    ron_buf_t      again, pub;
    ron_signer_t  *s, *t;

    if (ron_signer_parse(text, &s) != RON_OK) {
        RON_ASSERT(s == NULL);
        return;
    }

    ron_buf_init(&again, 0);
    ron_buf_init(&pub, 0);
    RON_ASSERT(ron_signer_private_text(s, &again) == RON_OK);
    RON_ASSERT(ron_signer_public_text(s, &pub) == RON_OK);
    RON_ASSERT(again.len <= text.len && text.len - again.len <= 1
               && memcmp(again.data, text.data, again.len) == 0);
    RON_ASSERT(ron_signer_parse(ron_buf_str(&again), &t) == RON_OK);
    ron_signer_free(s);
    ron_signer_free(t);
    ron_buf_free(&again);
    ron_buf_free(&pub);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_t   f = { data, data + len };
    uint8_t  what;

    if (signer == NULL) {
        RON_ASSERT(ron_signer_parse(ron_str(PRIVATE), &signer) == RON_OK);
    }

    what = fuzz_u8(&f);

    switch (what % 4) {
    case 0:
    case 1:
        fuzz_note(fuzz_rest(&f));
        break;
    case 2:
        fuzz_sign(&f);
        break;
    default:
        fuzz_key(fuzz_rest(&f));
    }

    return 0;
}
