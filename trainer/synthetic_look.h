/* SPDX-License-Identifier: BSD-3-Clause */
/* synthetic_look.h - how a synthetic image looks: what processors and GPUs draw by, to the
 * same bits. */
#ifndef COLL_TRAINER_SYNTHETIC_LOOK_H
#define COLL_TRAINER_SYNTHETIC_LOOK_H

#include "trainer/data.h"
#include "trainer/rng.h"

#define SYNTHETIC_SHIFT 2    /* by so many pixels a pattern is moved at most */
#define SYNTHETIC_NOISE 0.6f /* in units of full brightness */

/* What images are drawn with: a pattern for each class, with rims so that it can move:
 * [DATA_CLASSES][channels][height + 2 SYNTHETIC_SHIFT][width + 2 SYNTHETIC_SHIFT]. */
struct synthetic {
    uint64_t key, first; /* of the set */
    size_t len;          /* of a pattern */
    float *patterns;
};

/* How an image differs from the pattern of its class, `label`. */
struct synthetic_look {
    uint64_t key; /* of the noise */
    int down, right;
    float light;
    unsigned char label;
};

/* Return the look of an image; number: `first` and its place in the set. */
RNG_FUNCTION struct synthetic_look synthetic_look_of(uint64_t set_key,
                                                     uint64_t number)
{
    uint64_t key = rng_key(set_key, DATA_CLASSES + number);
    uint64_t places = 2 * SYNTHETIC_SHIFT + 1;
    struct synthetic_look look = {
        key, (int)rng_below(key, 0, places), (int)rng_below(key, 1, places),
        0.6f + 0.4f * rng_unit(key, 2), (unsigned char)(number % DATA_CLASSES)};

    return look;
}

/* Return pixel `at` of an image, [channel][y][x], given the pattern there. */
RNG_FUNCTION unsigned char synthetic_shade(const struct synthetic_look *look,
                                           float pattern, uint64_t at)
{
    float v = look->light * pattern +
              SYNTHETIC_NOISE * (rng_unit(look->key, 3 + at) - 0.5f);

    v = v < 0 ? 0 : v > 1 ? 1 : v;
    return (unsigned char)(v * 255);
}

#endif
