/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.cu - the trainer's kernels for CUDA, one entry each; kernels.h lists them. */
#include "trainer/cuda/bias.cuh"
#include "trainer/cuda/dropout.cuh"
#include "trainer/cuda/fold.cuh"
#include "trainer/cuda/gather.cuh"
#include "trainer/cuda/kernels.h"
#include "trainer/cuda/mean.cuh"
#include "trainer/cuda/norm.cuh"
#include "trainer/cuda/optim.cuh"
#include "trainer/cuda/paint.cuh"
#include "trainer/cuda/pool.cuh"
#include "trainer/cuda/softmax.cuh"
#include "trainer/cuda/vector.cuh"
#include "trainer/cuda/weights.cuh"

namespace train
{
#define ENTRY(name, type, letters, parameters, arguments)                      \
    extern "C" __global__ void __launch_bounds__(TRAIN_CUDA_THREADS)           \
        train_##name##_##type parameters                                       \
    {                                                                          \
        name arguments;                                                        \
    }

TRAIN_CUDA_KERNELS(ENTRY)
} // namespace train
