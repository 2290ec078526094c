
/*
 * The two algorithms of RFC 9162, step by step and with its names: fn and sn
 * are the position of the node on the way up and the last position of its
 * level, r, fr and sr the hashes made so far.  The numbers in the comments are
 * those of the steps there.
 *
 * A proof that does not hold is the sender's, not damage to what is stored
 * here: so it does not go through ron_corrupt().
 */

#include "ron_verify.h"


static ron_status_t ron_verify_trivial(ron_digest_t digest, uint64_t from,
    uint64_t to, const ron_hash_t *from_root, const ron_hash_t *to_root,
    const ron_proof_t *proof);


ron_status_t
ron_verify_inclusion(ron_digest_t digest, const ron_hash_t *leaf,
    uint64_t index, uint64_t size, const ron_proof_t *proof,
    const ron_hash_t *root)
{
    uint32_t           i;
    uint64_t           fn, sn;
    ron_hash_t         r;
    const ron_hash_t  *p;

    if (index >= size || proof->n > RON_PROOF_MAX) {            /* 1 */
        return RON_ECORRUPT;
    }

    fn = index;                                                 /* 2 */
    sn = size - 1;
    r = *leaf;                                                  /* 3 */

    for (i = 0; i < proof->n; i++) {                            /* 4 */
        p = &proof->path[i];

        if (sn == 0) {                                          /* 4a */
            return RON_ECORRUPT;
        }

        if ((fn & 1) != 0 || fn == sn) {                        /* 4b */
            ron_digest_node(digest, p, &r, &r);

            while ((fn & 1) == 0 && fn != 0) {
                fn >>= 1;
                sn >>= 1;
            }

        } else {
            ron_digest_node(digest, &r, p, &r);
        }

        fn >>= 1;                                               /* 4c */
        sn >>= 1;
    }

    if (sn != 0 || !ron_hash_eq(&r, root)) {                    /* 5 */
        return RON_ECORRUPT;
    }

    return RON_OK;
}


/*
 * The RFC speaks of 0 < from < to only.  For the sizes it leaves out there is
 * nothing to prove, and what the roots must be is known.
 */

static ron_status_t
ron_verify_trivial(ron_digest_t digest, uint64_t from, uint64_t to,
    const ron_hash_t *from_root, const ron_hash_t *to_root,
    const ron_proof_t *proof)
{
    ron_hash_t  empty;

    if (proof->n != 0) {
        return RON_ECORRUPT;
    }

    if (from == 0) {
        ron_digest_bytes(digest, NULL, 0, &empty);

        if (!ron_hash_eq(from_root, &empty)) {
            return RON_ECORRUPT;
        }
    }

    if (from == to && !ron_hash_eq(from_root, to_root)) {
        return RON_ECORRUPT;
    }

    return RON_OK;
}


ron_status_t
ron_verify_consistency(ron_digest_t digest, uint64_t from, uint64_t to,
    const ron_hash_t *from_root, const ron_hash_t *to_root,
    const ron_proof_t *proof)
{
    uint32_t           i;
    uint64_t           fn, sn;
    ron_hash_t         fr, sr;
    const ron_hash_t  *c;

    if (from > to || proof->n > RON_PROOF_MAX) {
        return RON_ECORRUPT;
    }

    if (from == 0 || from == to) {
        return ron_verify_trivial(digest, from, to, from_root, to_root, proof);
    }

    if (proof->n == 0) {                                        /* 1 */
        return RON_ECORRUPT;
    }

    fn = from - 1;                                              /* 3 */
    sn = to - 1;

    while ((fn & 1) != 0) {                                     /* 4 */
        fn >>= 1;
        sn >>= 1;
    }

    if ((from & (from - 1)) == 0) {                             /* 2, 5 */
        fr = *from_root;
        i = 0;

    } else {
        fr = proof->path[0];
        i = 1;
    }

    sr = fr;

    for ( /* void */ ; i < proof->n; i++) {                     /* 6 */
        c = &proof->path[i];

        if (sn == 0) {                                          /* 6a */
            return RON_ECORRUPT;
        }

        if ((fn & 1) != 0 || fn == sn) {                        /* 6b */
            ron_digest_node(digest, c, &fr, &fr);
            ron_digest_node(digest, c, &sr, &sr);

            while ((fn & 1) == 0 && fn != 0) {
                fn >>= 1;
                sn >>= 1;
            }

        } else {
            ron_digest_node(digest, &sr, c, &sr);
        }

        fn >>= 1;                                               /* 6c */
        sn >>= 1;
    }

    if (sn != 0                                                 /* 7 */
        || !ron_hash_eq(&fr, from_root)
        || !ron_hash_eq(&sr, to_root))
    {
        return RON_ECORRUPT;
    }

    return RON_OK;
}
