/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce.c - choose the instruction set, and the kernel from its table.
 *
 * In a virtual machine CPUID traps into the hypervisor and takes tens of microseconds.
 * So the processor's features, and COLL_SIMD, are read once in a process's life.
 */
#include "lib/device/reduce.h"
#include "lib/device/simd.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <pthread.h>
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

/* __builtin_cpu_supports() also checks that the kernel saves the registers. */
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

/* All sets, the best first. */
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

/* The sets of this processor; written once, under `once`. */
static struct {
    const struct coll__kernels *there[ARRAY_LEN(sets)]; /* the best first */
    size_t n_there;
    const struct coll__kernels *in_force;
    int n_choices; /* how often the processor was asked */
} found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Choose the set that COLL_SIMD names, or the best one if the processor lacks that. */
static void choose(void)
{
    const char *wanted = coll__param_text(PARAM_SIMD);

    found.n_choices++;
    found.n_there = 0; /* a fork may have interrupted an earlier call */
    for (size_t i = 0; i < ARRAY_LEN(sets); i++)
        if (sets[i].is_there())
            found.there[found.n_there++] = sets[i].kernels;
    found.in_force = found.there[0];
    for (size_t i = 0; i < found.n_there; i++)
        if (!strcmp(found.there[i]->name, wanted))
            found.in_force = found.there[i];
}

const struct coll__kernels *coll__kernels_at(int index)
{
    pthread_once(&once, choose);
    return (size_t)index < found.n_there ? found.there[index] : NULL;
}

const struct coll__kernels *coll__kernels_in_force(void)
{
    pthread_once(&once, choose);
    return found.in_force;
}

int coll__kernels_n_choices(void) { return found.n_choices; }

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

coll__multiply_fn *coll__host_multiply(enum coll_type type)
{
    return (unsigned)type < COLL_N_TYPES
               ? coll__kernels_in_force()->multiply[type]
               : NULL;
}
