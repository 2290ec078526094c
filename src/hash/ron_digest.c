
/*
 * BLAKE3 is the official C code, which chooses its SIMD at run time.  Its
 * public hasher keeps 1.9 KiB of state for inputs of any length; nearly all
 * that a ledger hashes is one chunk (at most 1024 bytes), and for one chunk
 * the hash is nothing but a chain of block compressions.  So where the
 * library's own header of internals is at hand (that is, where the library
 * is built from source with us), those are called directly, which saves a
 * third of a tree node.  A library that came with the system hides them, and
 * then everything goes through the public functions.
 * -DRON_BLAKE3_INTERNALS=0 or 1 overrides the choice.
 *
 * SHA-256 uses the functions over a context on the stack: those of the EVP
 * layer need an allocation, which can fail, or a context per thread, which
 * somebody would have to free, and take 25 ns more.  OpenSSL marks them as
 * deprecated but keeps them; where a build has left them out, EVP is used.
 */

#define OPENSSL_SUPPRESS_DEPRECATED

#include "ron_digest.h"

#include <blake3.h>
#include <openssl/evp.h>
#include <openssl/sha.h>


#ifndef RON_BLAKE3_INTERNALS
#if defined(__has_include)
#if __has_include(<blake3_impl.h>)
#define RON_BLAKE3_INTERNALS  1
#endif
#endif
#endif

#ifndef RON_BLAKE3_INTERNALS
#define RON_BLAKE3_INTERNALS  0
#endif

#if RON_BLAKE3_INTERNALS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wundef"
#include <blake3_impl.h>
#pragma GCC diagnostic pop
#endif

#ifdef OPENSSL_NO_DEPRECATED_3_0
#define RON_SHA256_EVP  1
#endif

#ifndef RON_SHA256_EVP
#define RON_SHA256_EVP  0
#endif


#define RON_DIGEST_LEAF    0x00
#define RON_DIGEST_NODE    0x01
#define RON_DIGEST_PLAIN   0x100        /* no prefix byte */


_Static_assert(sizeof(blake3_hasher) <= RON_BLAKE3_SIZE,
               "RON_BLAKE3_SIZE is too small for this BLAKE3");
_Static_assert(_Alignof(blake3_hasher) <= _Alignof(ron_blake3_t),
               "ron_blake3_t is aligned too loosely for this BLAKE3");
_Static_assert(BLAKE3_OUT_LEN == RON_HASH_LEN
               && SHA256_DIGEST_LENGTH == RON_HASH_LEN,
               "a hash is 32 bytes whatever made it");


static void ron_digest_prefixed(ron_digest_t digest, unsigned prefix,
    const void *data, size_t len, ron_hash_t *out);
static void ron_digest_blake3(unsigned prefix, const uint8_t *data, size_t len,
    ron_hash_t *out);
static void ron_digest_sha256(unsigned prefix, const uint8_t *data, size_t len,
    ron_hash_t *out);


ron_status_t
ron_digest_parse(ron_str_t name, ron_digest_t *digest)
{
    if (ron_str_eq(name, ron_str("blake3"))) {
        *digest = RON_DIGEST_BLAKE3;
        return RON_OK;
    }

    if (ron_str_eq(name, ron_str("sha256"))) {
        *digest = RON_DIGEST_SHA256;
        return RON_OK;
    }

    memset(digest, 0, sizeof(*digest));

    return RON_EINVAL;
}


const char *
ron_digest_name(ron_digest_t digest)
{
    switch (digest) {

    case RON_DIGEST_BLAKE3:
        return "blake3";

    case RON_DIGEST_SHA256:
        return "sha256";
    }

    return "unknown";
}


void
ron_digest_bytes(ron_digest_t digest, const void *data, size_t len,
    ron_hash_t *out)
{
    ron_digest_prefixed(digest, RON_DIGEST_PLAIN, data, len, out);
}


void
ron_digest_leaf(ron_digest_t digest, const void *data, size_t len,
    ron_hash_t *out)
{
    ron_digest_prefixed(digest, RON_DIGEST_LEAF, data, len, out);
}


void
ron_digest_node(ron_digest_t digest, const ron_hash_t *left,
    const ron_hash_t *right, ron_hash_t *out)
{
    uint8_t  pair[2 * RON_HASH_LEN];

    memcpy(pair, left->b, RON_HASH_LEN);
    memcpy(pair + RON_HASH_LEN, right->b, RON_HASH_LEN);

    ron_digest_prefixed(digest, RON_DIGEST_NODE, pair, sizeof(pair), out);
}


static void
ron_digest_prefixed(ron_digest_t digest, unsigned prefix, const void *data,
    size_t len, ron_hash_t *out)
{
    if (digest == RON_DIGEST_BLAKE3) {
        ron_digest_blake3(prefix, data, len, out);
        return;
    }

    /* a digest that is neither would make a tree that nobody can verify */

    RON_ASSERT(digest == RON_DIGEST_SHA256);

    ron_digest_sha256(prefix, data, len, out);
}


#if RON_BLAKE3_INTERNALS

/*
 * The chunk as BLAKE3 defines it: blocks of 64 bytes chained through `cv`,
 * the last one short and zero-filled, the first and the last one flagged.
 */
static void
ron_digest_chunk(unsigned prefix, const uint8_t *data, size_t len,
    ron_hash_t *out)
{
    size_t    n, take;
    uint8_t   flags, block[BLAKE3_BLOCK_LEN];
    uint32_t  cv[8];

    memcpy(cv, IV, sizeof(cv));
    flags = CHUNK_START;
    n = 0;

    if (prefix != RON_DIGEST_PLAIN) {
        block[n++] = (uint8_t) prefix;
    }

    take = ron_min(len, sizeof(block) - n);

    if (take != 0) {
        memcpy(block + n, data, take);
        data += take;
        len -= take;
        n += take;
    }

    while (len != 0) {
        blake3_compress_in_place(cv, block, BLAKE3_BLOCK_LEN, 0, flags);
        flags = 0;

        n = ron_min(len, sizeof(block));
        memcpy(block, data, n);
        data += n;
        len -= n;
    }

    memset(block + n, 0, sizeof(block) - n);

    blake3_compress_in_place(cv, block, (uint8_t) n, 0,
                             flags | CHUNK_END | ROOT);
    store_cv_words(out->b, cv);
}

#endif


static void
ron_digest_blake3(unsigned prefix, const uint8_t *data, size_t len,
    ron_hash_t *out)
{
    uint8_t        byte;
    blake3_hasher  hasher;

#if RON_BLAKE3_INTERNALS

    if (len <= BLAKE3_CHUNK_LEN - (size_t) (prefix != RON_DIGEST_PLAIN)) {
        ron_digest_chunk(prefix, data, len, out);
        return;
    }

#endif

    blake3_hasher_init(&hasher);

    if (prefix != RON_DIGEST_PLAIN) {
        byte = (uint8_t) prefix;
        blake3_hasher_update(&hasher, &byte, 1);
    }

    if (len != 0) {
        blake3_hasher_update(&hasher, data, len);
    }

    blake3_hasher_finalize(&hasher, out->b, RON_HASH_LEN);
}


#if RON_SHA256_EVP

static void
ron_digest_sha256(unsigned prefix, const uint8_t *data, size_t len,
    ron_hash_t *out)
{
    uint8_t      byte;
    EVP_MD_CTX  *ctx;

    byte = (uint8_t) prefix;
    ctx = EVP_MD_CTX_new();

    RON_ASSERT(ctx != NULL);
    RON_ASSERT(EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1);
    RON_ASSERT(prefix == RON_DIGEST_PLAIN
               || EVP_DigestUpdate(ctx, &byte, 1) == 1);
    RON_ASSERT(len == 0 || EVP_DigestUpdate(ctx, data, len) == 1);
    RON_ASSERT(EVP_DigestFinal_ex(ctx, out->b, NULL) == 1);

    EVP_MD_CTX_free(ctx);
}

#else

static void
ron_digest_sha256(unsigned prefix, const uint8_t *data, size_t len,
    ron_hash_t *out)
{
    uint8_t     byte;
    SHA256_CTX  ctx;

    SHA256_Init(&ctx);

    if (prefix != RON_DIGEST_PLAIN) {
        byte = (uint8_t) prefix;
        SHA256_Update(&ctx, &byte, 1);
    }

    if (len != 0) {
        SHA256_Update(&ctx, data, len);
    }

    SHA256_Final(out->b, &ctx);
}

#endif


void
ron_blake3(const void *data, size_t len, ron_hash_t *out)
{
    ron_digest_blake3(RON_DIGEST_PLAIN, data, len, out);
}


void
ron_blake3_init(ron_blake3_t *h)
{
    blake3_hasher_init((blake3_hasher *) (void *) h->opaque);
}


void
ron_blake3_update(ron_blake3_t *h, const void *data, size_t len)
{
    if (len != 0) {
        blake3_hasher_update((blake3_hasher *) (void *) h->opaque, data, len);
    }
}


void
ron_blake3_update_u64(ron_blake3_t *h, uint64_t v)
{
    size_t   i;
    uint8_t  be[8];

    for (i = 0; i < sizeof(be); i++) {
        be[i] = (uint8_t) (v >> (56 - 8 * i));
    }

    ron_blake3_update(h, be, sizeof(be));
}


void
ron_blake3_final(const ron_blake3_t *h, ron_hash_t *out)
{
    blake3_hasher_finalize((const blake3_hasher *) (const void *) h->opaque,
                           out->b, RON_HASH_LEN);
}
