/* SPDX-License-Identifier: BSD-3-Clause */
/* threads.c - the number of threads by the batch system. */
#include "trainer/threads.h"
#include "tools/common/cores.h"

#include <stdlib.h>

/* Return the variable's value, a whole number of at least 1, or 0 if it has none.
 * OpenMP allows a list, for nested levels; its first number counts. */
static uint64_t number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long n = text ? strtol(text, &end, 10) : 0;

    return n > 0 && (!*end || *end == ',') ? (uint64_t)n : 0;
}

uint64_t threads_allowed(void)
{
    return (uint64_t)cores_count();
}

uint64_t threads_by_environment(void)
{
    uint64_t n = number_of("OMP_NUM_THREADS"), most = threads_allowed();

    if (!n)
        n = number_of("SLURM_CPUS_PER_TASK");
    return !n ? 1 : n < most ? n : most;
}
