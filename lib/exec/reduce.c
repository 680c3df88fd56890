/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce.c - choose the instruction set, and the kernel from its table. */
#include "lib/exec/reduce.h"
#include "lib/exec/simd.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <string.h>
#if SIMD_X86
#include <cpuid.h>
#endif

#if SIMD_X86
static int has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* __builtin_cpu_supports() also asks whether the kernel saves the registers. */
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && has_f16c();
}

static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static int has_base(void) { return 1; }

static const struct {
    const struct coll__kernels *kernels;
    int (*is_there)(void);
} sets[] = {
#if SIMD_X86
    {&coll__kernels_avx512, has_avx512},
    {&coll__kernels_avx2, has_avx2},
#endif
    {&coll__kernels_base, has_base},
};

const struct coll__kernels *coll__kernels_at(int index)
{
    for (size_t i = 0; i < ARRAY_LEN(sets); i++)
        if (sets[i].is_there() && !index--)
            return sets[i].kernels;
    return NULL;
}

/* A set that COLL_SIMD names and that is not there leaves the best one. */
const struct coll__kernels *coll__kernels_in_force(void)
{
    const struct coll__kernels *kernels;

    for (int i = 0; (kernels = coll__kernels_at(i)); i++)
        if (!strcmp(kernels->name, coll__param_text(PARAM_SIMD)))
            return kernels;
    return coll__kernels_at(0);
}

coll__reduce_fn *coll__host_reduce(enum coll_type type, enum coll_op op)
{
    if ((unsigned)type >= COLL_N_TYPES || (unsigned)op >= COLL_N_OPS)
        return NULL;
    return coll__kernels_in_force()->reduce[type][op];
}

coll__scale_fn *coll__host_scale(enum coll_type type)
{
    return (unsigned)type < COLL_N_TYPES ? coll__kernels_in_force()->scale[type]
                                         : NULL;
}

coll__premul_fn *coll__host_premul(enum coll_type type)
{
    return (unsigned)type < COLL_N_TYPES
               ? coll__kernels_in_force()->premul[type]
               : NULL;
}
