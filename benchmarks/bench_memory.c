/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_memory.c - how much memory this machine has. */
#include "benchmarks/bench.h"

#include <stdio.h>

double bench_available_memory(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    unsigned long long kib = 0;
    char line[128];

    while (file && !kib && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %llu", &kib) != 1)
            kib = 0;
    if (file)
        fclose(file);
    return kib ? (double)kib * 1024 : 1e30;
}
