
/*
 * What hashing, roots and signing cost: a server that does all of it so many
 * times more, with the same answers and the same ledger.  Its rate beside that
 * of the server as it is tells how much once takes.
 *
 * Linked before libron.a with --wrap of the functions here, for `make bench`
 * alone: `make module AGAIN=4 BUILD=build/again`, with RON_AGAIN_TIMES 4.
 */

#include "ron_digest.h"
#include "ron_note.h"


/* Nodes that one call makes at most. */
#define RON_AGAIN_NODES  256

/* What is wrapped calls what is wrapped: the outermost alone does it again. */
#define ron_again(what)                                                       \
    do {                                                                      \
        if (!ron_again_inside) {                                              \
            ron_again_inside = true;                                          \
                                                                              \
            for (int ron_i = 0; ron_i < RON_AGAIN_TIMES; ron_i++) {                 \
                what;                                                         \
            }                                                                 \
                                                                              \
            ron_again_inside = false;                                         \
        }                                                                     \
    } while (0)

#define RON_AGAIN_FUNCTION(type, name, ...)                                   \
    type __real_##name(__VA_ARGS__);                                          \
    type __wrap_##name(__VA_ARGS__);                                          \
    type __wrap_##name(__VA_ARGS__)


static _Thread_local bool          ron_again_inside;
static _Thread_local bool          ron_again_begun;
static _Thread_local ron_blake3_t  ron_again_hash;


RON_AGAIN_FUNCTION(void, ron_digest_leaf, ron_digest_t digest,
    const void *data, size_t len, ron_hash_t *out)
{
    ron_again(__real_ron_digest_leaf(digest, data, len, out));
    __real_ron_digest_leaf(digest, data, len, out);
}


RON_AGAIN_FUNCTION(void, ron_digest_leaves, ron_digest_t digest,
    const ron_str_t *entries, size_t n, ron_hash_t *out)
{
    bool  inside;

    ron_again(__real_ron_digest_leaves(digest, entries, n, out));

    inside = ron_again_inside;
    ron_again_inside = true;
    __real_ron_digest_leaves(digest, entries, n, out);
    ron_again_inside = inside;
}


/* `out` may be one of those that it is made of. */

RON_AGAIN_FUNCTION(void, ron_digest_node, ron_digest_t digest,
    const ron_hash_t *left, const ron_hash_t *right, ron_hash_t *out)
{
    ron_hash_t  spare;

    ron_again(__real_ron_digest_node(digest, left, right, &spare));
    __real_ron_digest_node(digest, left, right, out);
}


RON_AGAIN_FUNCTION(void, ron_digest_nodes, ron_digest_t digest,
    const ron_hash_t *pairs, size_t n, ron_hash_t *out)
{
    bool        inside;
    ron_hash_t  spare[RON_AGAIN_NODES];

    RON_ASSERT(n <= RON_AGAIN_NODES);

    ron_again(__real_ron_digest_nodes(digest, pairs, n, spare));

    inside = ron_again_inside;
    ron_again_inside = true;
    __real_ron_digest_nodes(digest, pairs, n, out);
    ron_again_inside = inside;
}


RON_AGAIN_FUNCTION(void, ron_blake3, const void *data, size_t len,
    ron_hash_t *out)
{
    ron_again(__real_ron_blake3(data, len, out));
    __real_ron_blake3(data, len, out);
}


/* A running hash takes each byte once: the others go into one of our own. */

RON_AGAIN_FUNCTION(void, ron_blake3_update, ron_blake3_t *h,
    const void *data, size_t len)
{
    if (!ron_again_begun) {
        ron_blake3_init(&ron_again_hash);
        ron_again_begun = true;
    }

    ron_again(__real_ron_blake3_update(&ron_again_hash, data, len));
    __real_ron_blake3_update(h, data, len);
}


RON_AGAIN_FUNCTION(void, ron_blake3_final, const ron_blake3_t *h,
    ron_hash_t *out)
{
    ron_again(__real_ron_blake3_final(h, out));
    __real_ron_blake3_final(h, out);
}


RON_AGAIN_FUNCTION(ron_status_t, ron_note_sign, const ron_signer_t *signer,
    const ron_checkpoint_note_t *cp, ron_buf_t *out)
{
    ron_buf_t  spare;

    ron_buf_init(&spare, RON_NOTE_MAX);

    ron_again(ron_buf_reset(&spare);
              (void) __real_ron_note_sign(signer, cp, &spare));
    ron_buf_free(&spare);

    return __real_ron_note_sign(signer, cp, out);
}
