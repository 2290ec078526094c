
/*
 * Checking proofs: the other code path.  Shares no line with ron_tree.c but
 * the hash functions, follows RFC 9162 sections 2.1.3.2 and 2.1.4.2 as
 * written, and needs nothing but the proof, so that a mistake in the code
 * that makes proofs cannot hide behind the same mistake here.
 *
 * RON_OK when the proof holds, RON_ECORRUPT when it does not.
 */

#ifndef RON_VERIFY_H
#define RON_VERIFY_H


#include "ron_tree.h"


ron_status_t ron_verify_inclusion(ron_digest_t digest, const ron_hash_t *leaf,
    uint64_t index, uint64_t size, const ron_proof_t *proof,
    const ron_hash_t *root);

ron_status_t ron_verify_consistency(ron_digest_t digest, uint64_t from,
    uint64_t to, const ron_hash_t *from_root, const ron_hash_t *to_root,
    const ron_proof_t *proof);


#endif /* RON_VERIFY_H */
