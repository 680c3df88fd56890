/* SPDX-License-Identifier: BSD-3-Clause */
/* weights.cuh - the weights of convolutions in the order that a library wants, and
 * channels up to the number that it wants. */
#ifndef COLL_TRAINER_CUDA_WEIGHTS_CUH
#define COLL_TRAINER_CUDA_WEIGHTS_CUH

#include "trainer/cuda/span.cuh"

namespace train
{
template <typename T>
DEVICE void pack_weights(span<const float> from, span<T> to, uint32_t ins,
                         uint32_t padded, uint32_t area)
{
    uint32_t n = (uint32_t)to.count();

    for (uint32_t e = thread(); e < n; e += n_threads()) {
        uint32_t in = e % padded, k = e / padded % area;
        uint32_t out = e / padded / area;

        narrow(in < ins ? from.items()[(out * ins + in) * area + k] : 0,
               to.items()[e]);
    }
}

template <typename T>
DEVICE void unpack_weights(span<const T> from, span<float> to, uint32_t ins,
                           uint32_t padded, uint32_t area)
{
    uint32_t n = (uint32_t)to.count();

    for (uint32_t e = thread(); e < n; e += n_threads()) {
        uint32_t k = e % area, in = e / area % ins, out = e / area / ins;

        to.items()[e] += widen(from.items()[(out * area + k) * padded + in]);
    }
}

template <typename T>
DEVICE void pad_channels(span<const T> from, span<T> to, uint32_t channels,
                         uint32_t padded)
{
    for (size_t e = thread(); e < to.count(); e += n_threads()) {
        size_t row = e / padded;
        uint32_t c = (uint32_t)(e - row * padded);

        to.items()[e] = c < channels ? from.items()[row * channels + c] : T();
    }
}
} // namespace train

#endif
