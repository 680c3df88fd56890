/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - the machine on which the figures were measured. */
#include "benchmarks/rivals/compare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

/* Return the rest of the first line of `path` that begins with `key`. */
static void find_line(const char *path, const char *key, char *to, size_t len)
{
    FILE *file = fopen(path, "re");
    char line[512];

    snprintf(to, len, "unknown");
    while (file && fgets(line, sizeof(line), file))
        if (!strncmp(line, key, strlen(key))) {
            const char *value = line + strlen(key);

            value += strspn(value, " \t:");
            snprintf(to, len, "%.*s", (int)strcspn(value, "\n"), value);
            break;
        }
    if (file)
        fclose(file);
}

double machine_memory(void)
{
    char text[64];

    find_line("/proc/meminfo", "MemAvailable", text, sizeof(text));
    return strtod(text, NULL) * 1024;
}

void machine_read(struct machine *machine)
{
    struct utsname system;
    time_t now = time(NULL);
    char pages[128], *chosen;

    find_line("/proc/cpuinfo", "model name", machine->cpu,
              sizeof(machine->cpu));
    find_line("/proc/meminfo", "MemTotal", machine->memory,
              sizeof(machine->memory));
    find_line("/sys/kernel/mm/transparent_hugepage/enabled", "", pages,
              sizeof(pages));
    chosen = strchr(pages, '['); /* always [madvise] never */
    snprintf(machine->pages, sizeof(machine->pages), "%.*s",
             (int)strcspn(chosen ? chosen + 1 : pages, "]"),
             chosen ? chosen + 1 : pages);
    find_line("/proc/sys/net/ipv4/tcp_congestion_control", "", machine->control,
              sizeof(machine->control));
    machine->cores = cores_list(NULL);
    machine->kernel[0] = '\0';
    if (!uname(&system))
        snprintf(machine->kernel, sizeof(machine->kernel), "%.40s %.60s",
                 system.sysname, system.release);
    strftime(machine->date, sizeof(machine->date), "%Y-%m-%dT%H:%M:%SZ",
             gmtime(&now));
}
