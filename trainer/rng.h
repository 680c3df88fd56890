/* SPDX-License-Identifier: BSD-3-Clause */
/* rng.h - random numbers that are functions of a key and a counter.
 *
 * No generator has a state: a number is named by its use (seed, stream, epoch,
 * step, position).  So a run that is resumed, or divided among another number
 * of ranks, draws the same numbers.
 *
 * Source:    Steele, Lea and Flood, "Fast splittable pseudorandom number
 *            generators", OOPSLA 2014 (the mixing function of SplitMix64).
 */
#ifndef COLL_TRAINER_RNG_H
#define COLL_TRAINER_RNG_H

#include <stdint.h>

/* The attributes of the functions here; cuda/span.cuh has those for a device. */
#ifndef RNG_FUNCTION
#define RNG_FUNCTION static inline
#endif

/* What a number is drawn for, so that no two uses share numbers. */
enum rng_stream {
    RNG_INIT = 1,
    RNG_SHUFFLE,
    RNG_DROPOUT,
    RNG_SYNTHETIC,
    RNG_AUGMENT
};

RNG_FUNCTION uint64_t rng_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Return the key of a sub-sequence of `key`. */
RNG_FUNCTION uint64_t rng_key(uint64_t key, uint64_t which)
{
    return rng_mix(rng_mix(key + 0x9e3779b97f4a7c15u) ^
                   (which + 1) * 0xd1b54a32d192ed03u);
}

/* Return number `i` of the sequence `key`, 64 random bits. */
RNG_FUNCTION uint64_t rng_bits(uint64_t key, uint64_t i)
{
    return rng_mix(key + (i + 1) * 0x9e3779b97f4a7c15u);
}

/* Return number `i` of the sequence `key`, evenly in [0, 1). */
RNG_FUNCTION float rng_unit(uint64_t key, uint64_t i)
{
    return (float)(rng_bits(key, i) >> 40) * 0x1p-24f;
}

/* Return number `i` of the sequence `key`, evenly in [0, n). */
RNG_FUNCTION uint64_t rng_below(uint64_t key, uint64_t i, uint64_t n)
{
    return (uint64_t)((unsigned __int128)rng_bits(key, i) * n >> 64);
}

#endif
