/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_bind.c - one core for each rank, round robin over those allowed.  A
 * core is known by the lowest of the CPUs (hardware threads) that share it. */
#include "tools/collrun.h"

#include <sched.h>
#include <stdio.h>

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

/* List the cores that have an allowed CPU, in order; their number. */
static int list_cores(const cpu_set_t *allowed, int cores[CPU_SETSIZE])
{
    int n = 0;

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        int core, i = 0;

        if (!CPU_ISSET(cpu, allowed))
            continue;
        core = core_of(cpu);
        while (i < n && cores[i] != core)
            i++;
        if (i == n)
            cores[n++] = core;
    }
    return n;
}

void bind_to_core(int rank)
{
    int cores[CPU_SETSIZE], n, core;
    cpu_set_t allowed, chosen;

    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        return;
    n = list_cores(&allowed, cores);
    if (!n)
        return;
    core = cores[rank % n];
    CPU_ZERO(&chosen);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && core_of(cpu) == core)
            CPU_SET(cpu, &chosen);
    sched_setaffinity(0, sizeof(chosen), &chosen);
}
