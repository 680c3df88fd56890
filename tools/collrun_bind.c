/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_bind.c - one core for each rank, round robin over the allowed cores.  A core's
 * number is that of its lowest CPU (hardware thread). */
#include "tools/collrun.h"
#include "tools/common/cores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the lowest CPU of the core that cpu belongs to. */
static int core_of(int cpu)
{
    char path[96];
    int first = cpu;
    FILE *file;

    snprintf(path, sizeof(path),
             "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    file = fopen(path, "re");
    if (!file)
        return cpu;
    if (fscanf(file, "%d", &first) != 1)
        first = cpu;
    fclose(file);
    return first;
}

/* List the cores that have an allowed CPU, in order: [most]; returns their number. */
static int list_cores(const struct cores *allowed, int *list, int most)
{
    int n = 0, cpu = -1;

    while (n < most && (cpu = cores_from(allowed, cpu + 1)) >= 0) {
        int core = core_of(cpu), i = 0;

        while (i < n && list[i] != core)
            i++;
        if (i == n)
            list[n++] = core;
    }
    return n;
}

/* Choose the rank's core: remove all CPUs of other cores from *allowed. */
static int choose_core(struct cores *allowed, int rank)
{
    int n = CPU_COUNT_S(allowed->len, allowed->set), core;
    int *list = malloc((size_t)n * sizeof(*list));

    if (!list)
        return -1;
    n = list_cores(allowed, list, n);
    core = list[rank % n];
    free(list);
    for (int cpu = 0; (cpu = cores_from(allowed, cpu)) >= 0; cpu++)
        if (core_of(cpu) != core)
            CPU_CLR_S((size_t)cpu, allowed->len, allowed->set);
    return 0;
}

void bind_to_core(int rank)
{
    struct cores cores;

    if (cores_read(&cores) || choose_core(&cores, rank) ||
        sched_setaffinity(0, cores.len, cores.set))
        complain("rank %d of this machine is not bound to a core: %s", rank,
                 strerror(errno));
    CPU_FREE(cores.set);
}
