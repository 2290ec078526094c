
/*
 * Engine checkpoints: the whole state, written in slices beside commits.
 *
 * A generation is a run of slices.  Each slice holds one range of one kind of
 * record, encoded right after a batch was decided, and goes into the
 * transaction of that very batch: it is exact as of that batch's last seq.
 * No slice waits for another, so the state is never frozen nor copied, and a
 * commit carries at most one slice.
 *
 *     'A'  accounts [from, from + n), with their balances
 *     'H'  hold records of a range
 *     'R'  reversed totals of a range
 *     'C'  capability sums of a range
 *     'S'  the last one: assets, and how many accounts there were
 *
 * The hash of a generation (BLAKE3 over all its slices, in order) stands in
 * every journal row after the one that carried its last slice, until the next
 * generation is complete.  So the journal's chain vouches for the checkpoint,
 * and one that was edited is noticed before it is used.
 *
 * Loading gives a state of mixed age; replaying the journal from the first
 * slice's seq makes it whole (see `as_of` in ron_state.h).
 */

#ifndef RON_CHECKPOINT_H
#define RON_CHECKPOINT_H


#include "ron_state.h"
#include "ron_store.h"


typedef struct {
    bool          active;
    uint8_t       phase;            /* 'A', 'H', 'R', 'C', 'S' */
    uint32_t      next;             /* record, within the phase */
    uint32_t      no;               /* slice */
    uint64_t      gen;              /* in progress, or the last one */
    uint64_t      begun_seq;
    uint64_t      begun_ms;
    uint64_t      caps_purges;
    ron_blake3_t  hash;
} ron_ckpt_t;


/* Starts generation `gen`. */
void ron_ckpt_begin(ron_ckpt_t *ck, const ron_state_t *st, uint64_t gen);

/*
 * The next slice of the generation in progress, as of st->seq, of `size`
 * units (of 256 accounts, or of 512 other records; at most 16).  slice->body
 * points into `out`.  After the last one *hash is the generation's.
 */
#define RON_SLICE_UNITS_MAX  16

ron_status_t ron_ckpt_slice(ron_ckpt_t *ck, const ron_state_t *st,
    uint32_t size, ron_buf_t *out, ron_slice_t *slice, ron_hash_t *hash);

/*
 * Loads generation `gen` of `count` slices into a fresh state; *hash is what
 * the journal must say, *last_seq that of the last slice.
 */
ron_status_t ron_ckpt_load(ron_state_t *st, ron_reader_t *reader,
    uint64_t gen, uint32_t count, ron_hash_t *hash, uint64_t *last_seq);


#endif /* RON_CHECKPOINT_H */
