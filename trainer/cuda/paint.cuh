/* SPDX-License-Identifier: BSD-3-Clause */
/* paint.cuh - images of a synthetic set, drawn as synthetic.c does, bit for bit; a thread a
 * pixel of a channel. */
#ifndef COLL_TRAINER_CUDA_PAINT_CUH
#define COLL_TRAINER_CUDA_PAINT_CUH

#include "trainer/cuda/gather.cuh"
#include "trainer/synthetic_look.h"

namespace train
{
struct pattern_set {
    span<const float> patterns;
    uint64_t key, first;
};

/* Return the index of the pattern's value under pixel `at` of an image. */
DEVICE size_t pattern_place(const image_shape &s, const synthetic_look &look,
                            uint32_t at)
{
    uint32_t height = s.height + 2 * SYNTHETIC_SHIFT;
    uint32_t width = s.width + 2 * SYNTHETIC_SHIFT;
    uint32_t row = at / s.width, x = at % s.width;
    uint32_t map = look.label * s.channels + row / s.height;

    return ((size_t)map * height + row % s.height + look.down) * width + x +
           look.right;
}

DEVICE void paint(pattern_set from, span<const uint32_t> index,
                  span<uint8_t> pixels, span<uint8_t> labels,
                  span<uint32_t> order, image_shape s)
{
    uint32_t len = s.channels * s.height * s.width;
    uint32_t n = (uint32_t)index.count() * len;

    for (uint32_t p = thread(); p < n; p += n_threads()) {
        uint32_t i = p / len, at = p % len;
        synthetic_look look =
            synthetic_look_of(from.key, from.first + index.items()[i]);
        float pattern = from.patterns.items()[pattern_place(s, look, at)];

        pixels.items()[p] = synthetic_shade(&look, pattern, at);
        if (at == 0) {
            labels.items()[i] = look.label;
            order.items()[i] = i;
        }
    }
}
} // namespace train

#endif
