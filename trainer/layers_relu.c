/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_relu.c - relu in place, for layers that have no kernel with it. */
#include "trainer/layers.h"
#include "trainer/simd.h"

SIMD_BODY void relu_body(float *values, size_t n)
{
    size_t i = 0;

    for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) {
        vec8f v = *(const vec8f *)(values + i);

        *(vec8f *)(values + i) = (vec8f)((vec8i)v & ~(v <= 0.0f));
    }
    for (; i < n; i++)
        if (values[i] <= 0)
            values[i] = 0;
}

SIMD_KERNEL(relu, (float *values, size_t n), (values, n))

SIMD_BODY void back_body(const float *values, float *gradients, size_t n)
{
    size_t i = 0;

    for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH) {
        vec8f v = *(const vec8f *)(values + i);
        vec8f d = *(const vec8f *)(gradients + i);

        *(vec8f *)(gradients + i) = (vec8f)((vec8i)d & (v > 0.0f));
    }
    for (; i < n; i++)
        if (!(values[i] > 0))
            gradients[i] = 0;
}

SIMD_KERNEL(back, (const float *values, float *gradients, size_t n),
            (values, gradients, n))

void layer__relu(float *values, size_t n) { relu(values, n); }

void layer__relu_back(const float *values, float *gradients, size_t n)
{
    back(values, gradients, n);
}
