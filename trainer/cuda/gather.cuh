/* SPDX-License-Identifier: BSD-3-Clause */
/* gather.cuh - a batch out of a data set in device memory: images_gather() of data.c, bit
 * for bit; a thread a pixel. */
#ifndef COLL_TRAINER_CUDA_GATHER_CUH
#define COLL_TRAINER_CUDA_GATHER_CUH

#include "trainer/cuda/dropout.cuh"
#include "trainer/data.h"

namespace train
{
/* For moves of images. */
DEVICE draw draw_of(span<const train_step> step, uint64_t at)
{
    return step.len ? draw{step.items()->augment, step.items()->first + at}
                    : draw{0, 0};
}

struct image_set {
    span<const uint8_t> pixels, labels;
    span<const uint32_t> index;
    span<const float> table;
};

struct image_shape {
    uint32_t channels, height, width, augment;
};

/* Return the place of a moved image's pixel in the original, -1 in the border.  The
 * numbers are those of draw_move() in data.c. */
DEVICE int64_t original_pixel(const image_shape &s, uint64_t key, int y, int x)
{
    uint64_t places = 2 * AUGMENT_PAD + 1;
    int height = (int)s.height, width = (int)s.width;
    int row = y + (int)rng_below(key, 0, places) - AUGMENT_PAD;
    int column = (rng_below(key, 2, 2) ? width - 1 - x : x) +
                 (int)rng_below(key, 1, places) - AUGMENT_PAD;

    if (row < 0 || row >= height || column < 0 || column >= width)
        return -1;
    return (int64_t)row * width + column;
}

template <typename T>
DEVICE void gather(image_set from, span<T> out, span<uint8_t> picked,
                   image_shape s, draw d)
{
    uint32_t plane = s.height * s.width;
    uint32_t n = (uint32_t)from.index.count() * plane;

    for (uint32_t p = thread(); p < n; p += n_threads()) {
        uint32_t i = p / plane, pixel = p % plane;
        size_t image = from.index.items()[i];
        int64_t at = pixel;

        if (s.augment != AUGMENT_NONE)
            at = original_pixel(s, rng_key(d.key, d.first + i),
                                (int)(pixel / s.width), (int)(pixel % s.width));
        for (uint32_t c = 0; c < s.channels; c++) {
            size_t map = (image * s.channels + c) * plane;
            uint8_t v = at < 0 ? 0 : from.pixels.items()[map + (size_t)at];

            narrow(from.table.items()[v],
                   out.items()[(size_t)p * s.channels + c]);
        }
        if (pixel == 0)
            picked.items()[i] = from.labels.items()[image];
    }
}
} // namespace train

#endif
