
/*
 * Random numbers of tests, splitmix64: every seed gives a good sequence, on
 * every machine the same.  The seed is the state, and the caller's.
 */

#ifndef RON_SEED_H
#define RON_SEED_H


#include <stdint.h>


static inline uint64_t
ron_seed_next(uint64_t *seed)
{
    uint64_t  z;

    z = (*seed += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);

    return z ^ (z >> 31);
}


static inline uint64_t
ron_seed_below(uint64_t *seed, uint64_t n)
{
    return ron_seed_next(seed) % n;
}


#endif /* RON_SEED_H */
