
/*
 * Checkpoints as signed notes (C2SP signed-note and tlog-checkpoint, Ed25519).
 *
 *     <origin>\n<size>\n<base64 root>\n[<extension line>\n ...]\n
 *     U+2014 <origin> <base64 of 4-byte key hash || 64-byte signature>\n
 *
 * The signing key file is one line, "PRIVATE+KEY+<name>+<hash>+<base64>", as
 * other tools of this format write it; the verifier key is "<name>+<hash>+
 * <base64>".  <hash> is eight lower-case hex digits, the first four bytes of
 * SHA-256(name || "\n" || 0x01 || public key).  A name is UTF-8 without
 * spaces, control characters and plus signs.  Either text may end with one
 * newline when it is read and has none when it is written.
 *
 * A note is read strictly, so that there is one way to write it: UTF-8, no
 * control characters, base64 with its padding and no stray bits, decimal
 * sizes without leading zeros, a newline at the end of every line.
 */

#ifndef RON_NOTE_H
#define RON_NOTE_H


#include "ron.h"
#include "ron_buf.h"


#define RON_NOTE_NAME_MAX   128
#define RON_NOTE_MAX        4096        /* a note that is written here */
#define RON_NOTE_LINES_MAX  8

/* A note that is read here: it may have come back with witnesses' lines. */
#define RON_NOTE_READ_MAX   (128 * 1024)

/* Enough for either text of a key. */
#define RON_NOTE_KEY_MAX    (RON_NOTE_NAME_MAX + 80)


typedef struct ron_signer_s  ron_signer_t;

typedef struct {
    ron_str_t   origin;
    uint64_t    size;
    ron_hash_t  root;
    uint32_t    line_n;
    ron_str_t   line[RON_NOTE_LINES_MAX];   /* extension lines, no newline */
} ron_checkpoint_note_t;


/*
 * From a key file's text; a fresh key; the two texts of a key, appended.
 * RON_EINVAL for a text or a name that is malformed, or whose hash is not its
 * key's.  Whoever asks for the private text wipes the buffer.  A signer may
 * be used by several threads at a time.
 */
ron_status_t ron_signer_parse(ron_str_t text, ron_signer_t **signer);
ron_status_t ron_signer_generate(ron_str_t name, ron_signer_t **signer);
void ron_signer_free(ron_signer_t *signer);
ron_status_t ron_signer_private_text(const ron_signer_t *s, ron_buf_t *out);
ron_status_t ron_signer_public_text(const ron_signer_t *s, ron_buf_t *out);
ron_str_t ron_signer_name(const ron_signer_t *signer);

/*
 * Appends a signed note with any text to `out`, and reads it back: `text` is
 * a view into `note` that ends with a newline.  Refusals of ron_note_open()
 * are those of ron_note_verify() below.
 */
ron_status_t ron_note_seal(const ron_signer_t *signer, ron_str_t text,
    ron_buf_t *out);
ron_status_t ron_note_open(ron_str_t note, ron_str_t public_key,
    ron_str_t *text);

/* Appends the signature of one more key to a sealed note. */
ron_status_t ron_note_cosign(const ron_signer_t *signer, ron_buf_t *note);

/*
 * Appends the whole signed note to `out`.  RON_EINVAL for a checkpoint that
 * would not be read back as it is, or whose origin is not the signer's name:
 * a log signs for itself.  When it fails, `out` is as long as before.
 */
ron_status_t ron_note_sign(const ron_signer_t *signer,
    const ron_checkpoint_note_t *cp, ron_buf_t *out);

/*
 * Verifies one signature line of the key given ("<name>+<hash>+<base64>") and
 * parses the note; other signature lines (witnesses) are skipped.  The views
 * in `cp` point into `note`.  RON_EINVAL: malformed; RON_ENOTFOUND: not
 * signed by that key; RON_ECORRUPT: signature does not verify.
 *
 * A key may sign for several origins: whoever follows one log compares
 * cp->origin with the origin that is expected.
 */
ron_status_t ron_note_verify(ron_str_t note, ron_str_t public_key,
    ron_checkpoint_note_t *cp);

/* Parses without checking any signature: for a reader that has no key. */
ron_status_t ron_note_parse(ron_str_t note, ron_checkpoint_note_t *cp);


#endif /* RON_NOTE_H */
