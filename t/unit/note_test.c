
/*
 * Signed notes and checkpoints: notes that other programs signed, our own
 * byte for byte as another program would write them, and everything that is
 * almost a note.
 */

#include "ron_note.h"

#include "ron_seed.h"
#include "ron_test.h"

#include <openssl/err.h>


#define DASH  "\xe2\x80\x94 "

/* The key pair, text and signature of the tests of Go's package note. */

#define PETER_KEY  "PeterNeumann+c74f20a3"                                    \
                   "+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
#define PETER_PRIVATE  "PRIVATE+KEY+PeterNeumann+c74f20a3"                    \
                       "+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
#define PETER_TEXT  "If you think cryptography is the answer to your "       \
                    "problem,\nthen you don't know what your problem is.\n"
#define PETER_SIG  "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFY" \
                   "C2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
#define PETER_LINE  DASH "PeterNeumann " PETER_SIG "\n"
#define PETER_NOTE  PETER_TEXT "\n" PETER_LINE

/* A checkpoint of Go's checksum database, and the key that go(1) has. */

#define SUM_KEY  "sum.golang.org+033de0ae"                                    \
                 "+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
#define SUM_TEXT  "go.sum database tree\n20852163\n"                          \
                  "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
#define SUM_SIG  "Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Z" \
                 "hcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8="
#define SUM_NOTE  SUM_TEXT "\n" DASH "sum.golang.org " SUM_SIG "\n"

#define ROOT  "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="


static uint64_t  seed = 7;


static uint64_t
rnd(uint64_t below)
{
    return ron_seed_below(&seed, below);
}


/* Of exactly its length, so that a checker sees a read beyond it. */

static ron_status_t
open_exact(ron_str_t note, ron_str_t key, ron_str_t *text)
{
    uint8_t       *copy;
    ron_status_t   rc;

    copy = malloc(note.len + 1);
    RON_ASSERT(copy != NULL);
    copy = realloc(copy, note.len != 0 ? note.len : 1);
    RON_ASSERT(copy != NULL);

    if (note.len != 0) {
        memcpy(copy, note.data, note.len);
    }

    rc = ron_note_open((ron_str_t) { note.len, copy }, key, text);

    RON_ASSERT(rc == RON_OK || text->data == NULL);
    free(copy);

    return rc;
}


/* A malformed note is none for whoever has the key, nor for who has not. */

static void
is_malformed(ron_str_t note, const char *why)
{
    ron_str_t              text;
    ron_checkpoint_note_t  cp;

    is_status(open_exact(note, ron_str(PETER_KEY), &text), RON_EINVAL,
              "%s", why);
    ok(ron_note_parse(note, &cp) == RON_EINVAL && cp.size == 0
       && cp.origin.data == NULL, "nor is it a checkpoint");
}


static void
test_keys(void)
{
    char           key[] = PETER_KEY, private[] = PETER_PRIVATE;
    size_t         i, k;
    uint32_t       bad;
    ron_buf_t      out;
    ron_str_t      text;
    ron_signer_t  *signer;

    is_status(ron_signer_parse(ron_str(PETER_PRIVATE), &signer), RON_OK,
              "a private key of Go's is read");
    ok(ron_str_eq(ron_signer_name(signer), ron_str("PeterNeumann")),
       "its name");

    ron_buf_init(&out, 0);
    is_status(ron_signer_public_text(signer, &out), RON_OK, "public text");
    ok(ron_str_eq(ron_buf_str(&out), ron_str(PETER_KEY)), "is Go's");
    ron_buf_reset(&out);
    is_status(ron_signer_private_text(signer, &out), RON_OK, "private text");
    ok(ron_str_eq(ron_buf_str(&out), ron_str(PETER_PRIVATE)), "is Go's");
    ok(out.len <= RON_NOTE_KEY_MAX, "and fits");
    ron_buf_free(&out);
    ron_signer_free(signer);

    is_status(ron_signer_parse(ron_str(PETER_PRIVATE "\n"), &signer), RON_OK,
              "a key file may end with a newline");
    ron_signer_free(signer);
    is_status(ron_signer_parse(ron_str(PETER_PRIVATE "\n\n"), &signer),
              RON_EINVAL, "but not with two");
    ok(signer == NULL, "no signer then");

    bad = 0;

    for (i = 0; i < sizeof(key); i++) {
        for (k = i; k < sizeof(key); k++) {
            bad += (i != 0 || k != sizeof(key) - 1)
                   && open_exact(ron_str(PETER_NOTE),
                                 (ron_str_t) { k - i, (uint8_t *) key + i },
                                 &text) != RON_EINVAL;
        }
    }

    is_u64(bad, 0, "no part of a verifier key is one");

    for (i = 0; i < sizeof(key) - 1; i++) {
        key[i]++;
        bad += open_exact(ron_str(PETER_NOTE), ron_cstr(key), &text)
               != RON_EINVAL;
        key[i]--;
    }

    is_u64(bad, 0, "nor is one with a byte changed");

    for (i = 0; i < sizeof(private) - 1; i++) {
        private[i]++;
        bad += ron_signer_parse(ron_cstr(private), &signer) != RON_EINVAL
               || signer != NULL;
        private[i]--;

        bad += ron_signer_parse((ron_str_t) { i, (uint8_t *) private },
                                &signer) != RON_EINVAL;
    }

    is_u64(bad, 0, "nor a private one, nor its beginning");

    is_status(open_exact(ron_str(PETER_NOTE), ron_str("PeterNeumann+cc469956"
              "+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY=="), &text),
              RON_EINVAL, "a key of another length, with its right hash");
    is_status(open_exact(ron_str(PETER_NOTE), ron_str("PeterNeumann+173116ae"
              "+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"), &text),
              RON_EINVAL, "a key of another kind, with its right hash");
    is_status(open_exact(ron_str(PETER_NOTE), ron_str("PeterNeumann+C74F20A3"
              "+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"), &text),
              RON_EINVAL, "a hash in capitals");
}


static void
test_names(void)
{
    size_t         i;
    ron_buf_t      key, priv, note;
    ron_str_t      text;
    ron_signer_t  *signer, *again;

    static const struct {
        ron_str_t    name;
        const char  *what;
    } bad[] = {
        { { 0, (const uint8_t *) "" }, "empty" },
        { { 3, (const uint8_t *) "a b" }, "with a space" },
        { { 3, (const uint8_t *) "a+b" }, "with a plus" },
        { { 3, (const uint8_t *) "a\nb" }, "with a newline" },
        { { 3, (const uint8_t *) "a\0b" }, "with a NUL" },
        { { 3, (const uint8_t *) "a\tb" }, "with a tab" },
        { { 4, (const uint8_t *) "a\xc2\xa0" "b" }, "with U+00A0" },
        { { 4, (const uint8_t *) "a\xc2\x85" "b" }, "with U+0085" },
        { { 5, (const uint8_t *) "a\xe2\x80\x83" "b" }, "with U+2003" },
        { { 5, (const uint8_t *) "a\xe3\x80\x80" "b" }, "with U+3000" },
        { { 2, (const uint8_t *) "a\xff" }, "with a byte that is no UTF-8" },
        { { 2, (const uint8_t *) "a\xc3" }, "with a cut sequence" },
        { { 3, (const uint8_t *) "a\xc0\xaf" }, "overlong in 2" },
        { { 4, (const uint8_t *) "a\xe0\x80\xaf" }, "overlong in 3" },
        { { 5, (const uint8_t *) "a\xf0\x80\x80\xaf" }, "overlong in 4" },
        { { 4, (const uint8_t *) "a\xed\xa0\x80" }, "with a surrogate" },
        { { 5, (const uint8_t *) "a\xf4\x90\x80\x80" }, "above U+10FFFF" },
        { { 4, (const uint8_t *) "a\xe2\x28\xa1" }, "with a bad second byte" }
    };

    static char  longest[RON_NOTE_NAME_MAX + 1];

    static const char  *good[] = {
        "a", "ledger.example/ron", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x92\xb0",
        "\xf4\x8f\xbf\xbf", "\xe2\x80\x94", longest
    };

    for (i = 0; i < ron_array_n(bad); i++) {
        is_status(ron_signer_generate(bad[i].name, &signer), RON_EINVAL,
                  "a name that is %s", bad[i].what);
        ok(signer == NULL, "makes no signer");
    }

    memset(longest, 'n', RON_NOTE_NAME_MAX);
    longest[RON_NOTE_NAME_MAX] = '\0';

    ron_buf_init(&key, RON_NOTE_KEY_MAX);
    ron_buf_init(&priv, RON_NOTE_KEY_MAX);
    ron_buf_init(&note, 0);

    for (i = 0; i < ron_array_n(good); i++) {
        ron_buf_reset(&key);
        ron_buf_reset(&priv);
        ron_buf_reset(&note);

        is_status(ron_signer_generate(ron_cstr(good[i]), &signer), RON_OK,
                  "a name of %zu bytes", strlen(good[i]));
        ok(ron_signer_public_text(signer, &key) == RON_OK
           && ron_signer_private_text(signer, &priv) == RON_OK,
           "its texts fit into RON_NOTE_KEY_MAX");
        is_status(ron_signer_parse(ron_buf_str(&priv), &again), RON_OK,
                  "the private one is read back");
        is_status(ron_note_seal(again, ron_str("x\n"), &note), RON_OK,
                  "and signs");
        is_status(ron_note_open(ron_buf_str(&note), ron_buf_str(&key), &text),
                  RON_OK, "what the public one verifies");

        ron_signer_free(signer);
        ron_signer_free(again);
    }

    /* and one more, beside the first */

    ron_buf_reset(&key);
    is_status(ron_signer_generate(ron_str("another"), &again), RON_OK,
              "another key");
    RON_ASSERT(ron_signer_public_text(again, &key) == RON_OK);
    is_status(ron_note_open(ron_buf_str(&note), ron_buf_str(&key), &text),
              RON_ENOTFOUND, "has not signed");
    is_status(ron_note_cosign(again, &note), RON_OK, "until it does");
    is_status(ron_note_open(ron_buf_str(&note), ron_buf_str(&key), &text),
              RON_OK, "then it has");
    ok(ron_str_eq(text, ron_str("x\n")), "the same text");

    ron_buf_reset(&note);
    ron_buf_put_cstr(&note, "no note\n");
    is_status(ron_note_cosign(again, &note), RON_EINVAL,
              "what is no note is not signed");
    is_u64(note.len, 8, "and stays");
    ron_signer_free(again);

    ron_buf_free(&key);
    ron_buf_free(&priv);
    ron_buf_free(&note);

    ron_signer_free(NULL);
}


static void
test_go(void)
{
    ron_buf_t              out;
    ron_str_t              text;
    ron_signer_t          *signer;
    ron_checkpoint_note_t  cp;

    RON_ASSERT(ron_signer_parse(ron_str(PETER_PRIVATE), &signer) == RON_OK);

    ron_buf_init(&out, 0);
    ron_buf_put_cstr(&out, "before");
    is_status(ron_note_seal(signer, ron_str(PETER_TEXT), &out), RON_OK,
              "a text is signed");
    ok(ron_str_eq(ron_buf_str(&out), ron_str("before" PETER_NOTE)),
       "byte for byte as Go does");
    ron_buf_free(&out);
    ron_signer_free(signer);

    is_status(ron_note_open(ron_str(PETER_NOTE), ron_str(PETER_KEY), &text),
              RON_OK, "and read");
    ok(ron_str_eq(text, ron_str(PETER_TEXT)), "with its text");
    is_status(ron_note_verify(ron_str(PETER_NOTE), ron_str(PETER_KEY), &cp),
              RON_EINVAL, "but it is not a checkpoint");

    is_status(ron_note_verify(ron_str(SUM_NOTE), ron_str(SUM_KEY "\n"), &cp),
              RON_OK, "a checkpoint of the Go checksum database");
    ok(ron_str_eq(cp.origin, ron_str("go.sum database tree")), "its origin");
    is_u64(cp.size, 20852163, "its size");
    is_u64(cp.line_n, 0, "no more lines");
    is_mem(cp.root.b, "\x0a\xc5\x18\x6a\x91\x86\x3e\x8e", 8, "its root");

    is_status(ron_note_parse(ron_str(SUM_NOTE), &cp), RON_OK,
              "parsed without a key");
    is_u64(cp.size, 20852163, "its size");

    is_status(ron_note_verify(ron_str(SUM_NOTE), ron_str(PETER_KEY), &cp),
              RON_ENOTFOUND, "it is not signed by another key");
    ok(cp.origin.data == NULL && cp.size == 0, "and then nothing is told");

    is_status(ron_note_verify(ron_str("go.sum database tree\n20852164\n" ROOT
                              "\n\n" DASH "sum.golang.org " SUM_SIG "\n"),
                              ron_str(SUM_KEY), &cp),
              RON_ECORRUPT, "another size under the same signature");
    is_u64(cp.size, 0, "is not told");

    is_status(open_exact(ron_str("Ognuno sta solo sul cuor della terra\n"
        "trafitto da un raggio di sole:\n\n"
        "ed \xc3\xa8 subito sera.\n\n" DASH
        "quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGIT"
        "LlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n"),
        ron_str(PETER_KEY), &text), RON_ENOTFOUND,
        "the example of the specification is a note");

    is_u64(ERR_peek_error(), 0, "nothing is left in OpenSSL's error queue");
}


static void
test_lines(void)
{
    uint32_t   i, k;
    ron_buf_t  b;
    ron_str_t  text;

    ron_str_t  key = ron_str(PETER_KEY);

    is_status(open_exact(ron_str(PETER_TEXT "\n" DASH "someone AAAAAAE=\n"
                                 DASH "PeterNeumann AAAAAAE=\n" PETER_LINE),
                         key, &text),
              RON_OK, "other keys, and other kinds of the name, are skipped");
    is_status(open_exact(ron_str(PETER_TEXT "\n" DASH "Peter " PETER_SIG "\n"),
                         key, &text),
              RON_ENOTFOUND, "the same id under another name is another key");
    is_status(open_exact(ron_str(PETER_TEXT "\n" PETER_LINE PETER_LINE), key,
                         &text), RON_OK, "signed twice");
    is_status(open_exact(ron_str(PETER_TEXT "\n" DASH "PeterNeumann x08go/aJk"
                                 "uBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN"
                                 "1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
                                 PETER_LINE), key, &text),
              RON_ECORRUPT, "a bad signature first: refused");
    is_status(open_exact(ron_str(PETER_TEXT "\n" DASH "PeterNeumann x08gowA=\n"
                                 PETER_LINE), key, &text),
              RON_ECORRUPT, "a short one by that key: refused");
    is_status(open_exact(ron_str(PETER_TEXT "\n" DASH "PeterNeumann x08go/ZJk"
                                 "uBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN"
                                 "1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAMA\n"),
                         key, &text),
              RON_ECORRUPT, "its good one with a byte behind it: refused");
    is_status(open_exact(ron_str("x\n\n" PETER_TEXT "\n" PETER_LINE), key,
                         &text),
              RON_ECORRUPT, "text in front of the text is text");
    is_status(open_exact(ron_str(PETER_TEXT "\n\n" PETER_LINE), key, &text),
              RON_ECORRUPT, "so is an empty line behind it");

    /* many witnesses, with signatures as long as those after Ed25519 */

    ron_buf_init(&b, 0);
    ron_buf_put_cstr(&b, PETER_TEXT "\n");

    for (i = 0; i < 16; i++) {
        ron_buf_printf(&b, DASH "witness%u.example ", i);

        for (k = 0; k < 1400; k++) {
            ron_buf_put_cstr(&b, "AAAA");
        }

        ron_buf_put_cstr(&b, "\n");
    }

    ron_buf_put_cstr(&b, PETER_LINE);
    is_status(open_exact(ron_buf_str(&b), key, &text), RON_OK,
              "16 witnesses' lines, %zu bytes", b.len);

    ron_buf_reset(&b);
    ron_buf_put_cstr(&b, PETER_TEXT);

    while (b.len <= RON_NOTE_READ_MAX) {
        ron_buf_put_cstr(&b, PETER_TEXT);
    }

    ron_buf_put_cstr(&b, "\n" PETER_LINE);
    is_status(open_exact(ron_buf_str(&b), key, &text), RON_EINVAL,
              "more than RON_NOTE_READ_MAX is not read");
    ron_buf_free(&b);
}


static void
test_malformed(void)
{
    is_malformed(ron_null_str, "nothing");
    is_malformed(ron_str("\n"), "a newline");
    is_malformed(ron_str("\n\n"), "two newlines");
    is_malformed(ron_str(PETER_TEXT), "no signature");
    is_malformed(ron_str(PETER_TEXT "\n"), "no signature line");
    is_malformed(ron_str(PETER_TEXT PETER_LINE), "no empty line");
    is_malformed(ron_str("\n" PETER_LINE), "no text");
    is_malformed(ron_str(PETER_LINE), "only a signature");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann " PETER_SIG),
                 "no newline at the end");
    is_malformed(ron_str(PETER_NOTE "\n"), "an empty line at the end");
    is_malformed(ron_str(PETER_NOTE "x\n"), "a line that is no signature");
    is_malformed(ron_str(PETER_TEXT "\n- PeterNeumann " PETER_SIG "\n"),
                 "a hyphen instead of a dash");
    is_malformed(ron_str(PETER_TEXT "\n\xe2\x80\x94PeterNeumann " PETER_SIG
                         "\n"), "no space after the dash");
    is_malformed(ron_str(PETER_TEXT "\n\xe2\x80\n"), "half a dash");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "\n"), "only a dash");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann\n"), "only a name");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann \n"),
                 "an empty signature");
    is_malformed(ron_str(PETER_TEXT "\n" DASH " " PETER_SIG "\n"),
                 "an empty name");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "Peter+x " PETER_SIG "\n"
                         PETER_LINE), "a name with a plus");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "Peter\xc2\xa0N " PETER_SIG "\n"
                         PETER_LINE), "a name with a space of Unicode's");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann  " PETER_SIG "\n"),
                 "two spaces");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann " PETER_SIG " \n"),
                 "a space at the end");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann x08gow==\n"),
                 "an id and no signature");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann x08g\n"),
                 "less than an id");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann x08goAB=\n"),
                 "stray bits in base64");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann x08goAA\n"),
                 "base64 without its padding");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann x08g=AA=\n"),
                 "padding in the middle");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann x08goA-_\n"),
                 "base64 of the URL kind");
    is_malformed(ron_str(PETER_TEXT "\n" DASH "PeterNeumann ====\n"),
                 "only padding");
    is_malformed(ron_str("a\tb\n\n" PETER_LINE), "a control character");
    is_malformed(ron_str("a\r\n\n" PETER_LINE), "a carriage return");
    is_malformed(ron_str("a\0b\n\n" PETER_LINE), "a NUL");
    is_malformed(ron_str("a\xff\n\n" PETER_LINE), "what is not UTF-8");
    is_malformed(ron_str("a\n\n" PETER_LINE "\xc3"), "half a sequence");
}


static ron_status_t
parse_text(const char *text)
{
    ron_buf_t              b;
    ron_status_t           rc;
    ron_checkpoint_note_t  cp;

    ron_buf_init(&b, 0);
    ron_buf_put_cstr(&b, text);
    ron_buf_put_cstr(&b, "\n" PETER_LINE);

    rc = ron_note_parse(ron_buf_str(&b), &cp);
    ron_buf_free(&b);

    return rc;
}


static void
test_checkpoints(void)
{
    is_status(parse_text("a\n0\n" ROOT "\n"), RON_OK, "size 0");
    is_status(parse_text("a b\n1\n" ROOT "\n"), RON_OK, "origin with a space");
    is_status(parse_text("a\n18446744073709551615\n" ROOT "\n"), RON_OK,
              "size 2^64 - 1");
    is_status(parse_text("a\n1\n" ROOT "\n1\n2\n3\n4\n5\n6\n7\n8\n"), RON_OK,
              "eight more lines");
    is_status(parse_text("a\n1\n" ROOT "\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
              RON_EINVAL, "nine more lines");
    is_status(parse_text("a\n18446744073709551616\n" ROOT "\n"), RON_EINVAL,
              "size 2^64");
    is_status(parse_text("a\n99999999999999999999\n" ROOT "\n"), RON_EINVAL,
              "a size of twenty digits");
    is_status(parse_text("a\n00\n" ROOT "\n"), RON_EINVAL, "size 00");
    is_status(parse_text("a\n01\n" ROOT "\n"), RON_EINVAL, "size 01");
    is_status(parse_text("a\n+1\n" ROOT "\n"), RON_EINVAL, "size +1");
    is_status(parse_text("a\n-1\n" ROOT "\n"), RON_EINVAL, "size -1");
    is_status(parse_text("a\n 1\n" ROOT "\n"), RON_EINVAL, "size with space");
    is_status(parse_text("a\n1x\n" ROOT "\n"), RON_EINVAL, "size 1x");
    is_status(parse_text("a\n\n" ROOT "\n"), RON_EINVAL, "no size");
    is_status(parse_text("\n1\n" ROOT "\n"), RON_EINVAL, "no origin");
    is_status(parse_text("a\n1\n\n"), RON_EINVAL, "no root");
    is_status(parse_text("a\n1\n"), RON_EINVAL, "no line for the root");
    is_status(parse_text("a\n"), RON_EINVAL, "only an origin");
    is_status(parse_text("a\n1\n" ROOT "\n\nb\n"), RON_EINVAL, "empty line");
    is_status(parse_text("a\n1\n" ROOT "\nb\n\n"), RON_EINVAL,
              "empty line at the end");
    is_status(parse_text("a\n1\n" "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxqw=="
                         "\n"), RON_EINVAL, "a root of 31 bytes");
    is_status(parse_text("a\n1\n" "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2Jj"
                         "\n"), RON_EINVAL, "a root of 33 bytes");
    is_status(parse_text("a\n1\n" "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J="
                         "\n"), RON_EINVAL, "a root with stray bits");
}


static void
test_sign(void)
{
    char                   longest[RON_NOTE_MAX];
    uint32_t               i, k;
    ron_buf_t              key, out, small;
    ron_signer_t          *signer;
    ron_checkpoint_note_t  cp, got;

    static const uint64_t  sizes[] = { 0, 1, 10, 4294967296, UINT64_MAX };

    ron_buf_init(&key, 0);
    ron_buf_init(&out, 0);

    RON_ASSERT(ron_signer_generate(ron_str("ledger.example/main"), &signer)
               == RON_OK);
    RON_ASSERT(ron_signer_public_text(signer, &key) == RON_OK);

    memset(&cp, 0, sizeof(cp));
    cp.origin = ron_signer_name(signer);

    for (i = 0; i < ron_array_n(sizes); i++) {
        cp.size = sizes[i];
        cp.root.b[i] = 0xf0;
        cp.line_n = 2 * i;

        for (k = 0; k < cp.line_n; k++) {
            cp.line[k] = k % 2 ? ron_str("epoch 7")
                               : ron_str(DASH "no signature");
        }

        ron_buf_reset(&out);
        is_status(ron_note_sign(signer, &cp, &out), RON_OK,
                  "a checkpoint with %u more lines", cp.line_n);
        is_status(ron_note_verify(ron_buf_str(&out), ron_buf_str(&key), &got),
                  RON_OK, "is verified");
        ok(got.size == cp.size && ron_str_eq(got.origin, cp.origin)
           && ron_hash_eq(&got.root, &cp.root) && got.line_n == cp.line_n,
           "and comes back as it was");

        for (k = 0; k < got.line_n; k++) {
            ok(ron_str_eq(got.line[k], cp.line[k]), "line %u of it", k);
        }
    }

    ron_buf_reset(&out);
    ron_buf_put_cstr(&out, "before");

    cp.line_n = RON_NOTE_LINES_MAX + 1;
    is_status(ron_note_sign(signer, &cp, &out), RON_EINVAL, "too many lines");

    cp.line_n = 1;
    cp.line[0] = ron_null_str;
    is_status(ron_note_sign(signer, &cp, &out), RON_EINVAL, "an empty line");
    cp.line[0] = ron_str("two\nlines");
    is_status(ron_note_sign(signer, &cp, &out), RON_EINVAL, "two in one");
    cp.line[0] = ron_str("tab\there");
    is_status(ron_note_sign(signer, &cp, &out), RON_EINVAL, "a tab");
    cp.line[0] = ron_str("\xc3");
    is_status(ron_note_sign(signer, &cp, &out), RON_EINVAL, "half UTF-8");

    memset(longest, 'x', sizeof(longest));
    cp.line[0] = (ron_str_t) { sizeof(longest), (uint8_t *) longest };
    is_status(ron_note_sign(signer, &cp, &out), RON_EFULL, "a line too long");
    cp.line[0].len -= 150;
    is_status(ron_note_sign(signer, &cp, &out), RON_EFULL,
              "too long with the signature");

    cp.line[0] = ron_str("x");
    cp.origin = ron_str("ledger.example/other");
    is_status(ron_note_sign(signer, &cp, &out), RON_EINVAL,
              "a log does not sign for another");
    ok(ron_str_eq(ron_buf_str(&out), ron_str("before")),
       "what is refused leaves the buffer alone");

    cp.origin = ron_signer_name(signer);
    is_status(ron_note_seal(signer, ron_str("no newline"), &out), RON_EINVAL,
              "a text without its newline");
    is_status(ron_note_seal(signer, ron_null_str, &out), RON_EINVAL, "none");

    ron_buf_init(&small, 100);
    is_status(ron_note_sign(signer, &cp, &small), RON_EFULL, "no room");
    is_u64(small.len, 0, "leaves nothing");
    ron_buf_free(&small);

    ron_buf_free(&key);
    ron_buf_free(&out);
    ron_signer_free(signer);
}


/*
 * A changed note is refused, or it was not the signed part that changed; and
 * what parses is written in exactly one way.
 */
static void
test_changed(void)
{
    size_t                 at, n, len;
    uint8_t               *data;
    uint32_t               i, k, bad, opened, parsed;
    ron_buf_t              b;
    ron_str_t              note, text;
    ron_status_t           rc;
    ron_checkpoint_note_t  cp;

    static const char  insert[] = "\n\n\xe2\x80\x94 +=0A \xff\r";

    bad = opened = parsed = 0;
    ron_buf_init(&b, 0);

    for (i = 0; i < 60000; i++) {
        len = sizeof(SUM_NOTE) - 1;
        data = malloc(len + 8);
        RON_ASSERT(data != NULL);
        memcpy(data, SUM_NOTE, len);

        for (k = 0; k <= rnd(3); k++) {
            at = rnd(len);

            switch (rnd(4)) {
            case 0:
                data[at] ^= (uint8_t) (1 << rnd(8));
                break;
            case 1:
                data[at] = (uint8_t) insert[rnd(sizeof(insert) - 1)];
                break;
            case 2:
                memmove(data + at, data + at + 1, len - at - 1);
                len--;
                break;
            default:
                memmove(data + at + 1, data + at, len - at);
                data[at] = (uint8_t) insert[rnd(sizeof(insert) - 1)];
                len++;
                break;
            }
        }

        data = realloc(data, len);
        RON_ASSERT(data != NULL);
        note = (ron_str_t) { len, data };

        rc = ron_note_open(note, ron_str(SUM_KEY), &text);
        opened += rc == RON_OK;
        bad += rc == RON_OK && !ron_str_eq(text, ron_str(SUM_TEXT));

        if (ron_note_parse(note, &cp) == RON_OK) {
            parsed++;
            ron_buf_reset(&b);
            ron_buf_put_str(&b, cp.origin);
            ron_buf_printf(&b, "\n%llu\n", (unsigned long long) cp.size);
            n = b.len + 45;

            for (k = 0; k < cp.line_n; k++) {
                n += cp.line[k].len + 1;
            }

            bad += memcmp(b.data, data, b.len) != 0 || n >= len
                   || data[n] != '\n' || data[n - 1] != '\n';
        }

        free(data);
    }

    ok(bad == 0 && opened > 10 && parsed > 1000,
       "60000 changed notes: %u still signed, %u still checkpoints", opened,
       parsed);
    is_u64(ERR_peek_error(), 0, "nothing is left in OpenSSL's error queue");

    ron_buf_free(&b);
}


int
main(void)
{
    test_keys();
    test_names();
    test_go();
    test_lines();
    test_malformed();
    test_checkpoints();
    test_sign();
    test_changed();

    return done_testing();
}
