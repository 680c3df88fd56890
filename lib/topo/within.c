/* SPDX-License-Identifier: BSD-3-Clause */
/* within.c - which cache, NUMA node and package a process is bound to, from the kernel's
 * description of the processors.
 */
#include "lib/topo/machine.h"
#include "lib/util/read.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU_DIR "/sys/devices/system/cpu/cpu%d"

/* The highest cache level that the kernel lists is the outermost. */
static int cache_of(int cpu)
{
    char dir[96];
    int id = -1;

    for (int index = 0; index < 8; index++) {
        int len = snprintf(dir, sizeof(dir), CPU_DIR "/cache/index%d", cpu,
                           index);

        if (len > 0 && coll__read_number(dir, "level", 0) >= 3)
            id = (int)coll__read_number(dir, "id", -1);
    }
    return id;
}

/* A processor's folder has a link nodeN to its NUMA node. */
static int numa_of(int cpu)
{
    char path[64];
    struct dirent *entry;
    int node = -1;
    DIR *dir;

    snprintf(path, sizeof(path), CPU_DIR, cpu);
    dir = opendir(path);
    while (dir && node < 0 && (entry = readdir(dir)))
        if (!strncmp(entry->d_name, "node", 4) && entry->d_name[4] >= '0' &&
            entry->d_name[4] <= '9')
            node = atoi(entry->d_name + 4);
    if (dir)
        closedir(dir);
    return node;
}

static int package_of(int cpu)
{
    char dir[64];

    snprintf(dir, sizeof(dir), CPU_DIR "/topology", cpu);
    return (int)coll__read_number(dir, "physical_package_id", -1);
}

void coll__topo_within(const cpu_set_t *set, size_t len,
                       int32_t within[COLL__WITHIN])
{
    static int (*const part_of[COLL__WITHIN])(int cpu) = {cache_of, numa_of,
                                                          package_of};

    for (int kind = 0; kind < COLL__WITHIN; kind++) {
        int part = -2;

        for (int cpu = 0; cpu < (int)len * 8 && part != -1; cpu++) {
            int here;

            if (!CPU_ISSET_S((size_t)cpu, len, set))
                continue;
            here = part_of[kind](cpu);
            part = part == -2 || part == here ? here : -1;
        }
        within[kind] = part < 0 ? -1 : part;
    }
}
