/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce_base.c - the kernels that every processor runs. */
#include "lib/exec/number.h"
#include "lib/exec/simd.h"

#include <stddef.h>

#define SET base
#define SET_TARGET SIMD_VECTORISE

SET_TARGET static void f16_widen_n(float *out, const half_anywhere *in,
                                   size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = f16_widen(in[i]);
}

SET_TARGET static void f16_narrow_n(uint16_t *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = f16_narrow(in[i]);
}

#include "lib/exec/reduce_kernels.h"
