/* SPDX-License-Identifier: BSD-3-Clause */
/* cores.h - the processors that this process may run on, on machines of any
 * size.
 *
 * A cpu_set_t has room for 1,024 processors, and sched_getaffinity() fails with
 * EINVAL if the kernel may have more.  So sets are allocated here, and grow.
 */
#ifndef COLL_TOOLS_COMMON_CORES_H
#define COLL_TOOLS_COMMON_CORES_H

#include <sched.h>
#include <stddef.h>
#include <unistd.h>

#define CORES_MOST (1 << 20)

struct cores {
    cpu_set_t *set;
    size_t len; /* bytes */
};

/* Read the set of processors that this process may use.  Result: 0, and the caller
 * frees cores->set by CPU_FREE(); or -1. */
static inline int cores_read(struct cores *cores)
{
    for (int n = CPU_SETSIZE; n <= CORES_MOST; n *= 2) {
        *cores = (struct cores){CPU_ALLOC(n), CPU_ALLOC_SIZE(n)};
        if (cores->set && !sched_getaffinity(0, cores->len, cores->set))
            return 0;
        CPU_FREE(cores->set);
    }
    cores->set = NULL;
    return -1;
}

/* Return how many processors this process may use, or those of the machine if the
 * kernel does not tell.
 */
static inline int cores_count(void)
{
    struct cores cores;
    int n;

    if (cores_read(&cores))
        return (int)sysconf(_SC_NPROCESSORS_ONLN);
    n = CPU_COUNT_S(cores.len, cores.set);
    CPU_FREE(cores.set);
    return n;
}

/* Return the first processor of the set whose number is at least `cpu`; -1: there is
 * none. */
static inline int cores_from(const struct cores *cores, int cpu)
{
    for (; (size_t)cpu < cores->len * 8; cpu++)
        if (CPU_ISSET_S((size_t)cpu, cores->len, cores->set))
            return cpu;
    return -1;
}

/* Bind this process to that processor.  Result: 0, or -1 and errno. */
static inline int cores_bind(int cpu)
{
    size_t len = CPU_ALLOC_SIZE(cpu + 1);
    cpu_set_t *set = CPU_ALLOC(cpu + 1);
    int rc = -1;

    if (set) {
        CPU_ZERO_S(len, set);
        CPU_SET_S((size_t)cpu, len, set);
        rc = sched_setaffinity(0, len, set);
    }
    CPU_FREE(set);
    return rc;
}

#endif
