/* SPDX-License-Identifier: BSD-3-Clause */
/* inside.c - distances inside a host, and what they add to a message. */
#include "lib/topo/inside.h"
#include "lib/topo/machine.h"
#include "lib/util/param.h"
#include "lib/util/read.h"
#include "lib/util/util.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- prices -------------------------------------------------------------- */

/* A cache line from another core of the same cache takes 25 to 55 ns.  From another cache
 * of the same node it takes 1.5 to 3 times as long; from other nodes it takes longer in
 * about the proportion of the memory distance (github.com/nviennot/core-to-core-latency:
 * Zen 2 to 4, Ice Lake, Sapphire Rapids).  A message moves two lines, there and back. */
#define LINE 50e-9
#define OTHER_CACHE 1.5

/* Default distances of firmware that was not configured (ACPI, SLIT: 20 for remote, 12
 * for a part of a package). */
#define USUAL_NUMA 1.2
#define USUAL_PACKAGE 2.0

/* Bandwidth out of a cache, a node, a package, shared by all ranks in it: plausible
 * values of a server of the 2020s, as in tools/sim/fabric_hwloc.c. */
#define CACHE_OUT 40e9 /* bytes a second */
#define NUMA_OUT 60e9
#define PACKAGE_OUT 30e9

/* Time of a cache line, relative to a line from a core of the same cache.  A larger part
 * is never nearer than a smaller one. */
static double line_of(const struct coll__inside *inside,
                      enum coll__leaves leaves)
{
    double numa = inside->numa > 1 ? inside->numa : USUAL_NUMA;
    double package = inside->package > 1 ? inside->package : USUAL_PACKAGE;

    switch (leaves) {
    case LEAVES_CACHE:
        return OTHER_CACHE;
    case LEAVES_NUMA:
        return OTHER_CACHE * numa;
    case LEAVES_PACKAGE:
        return OTHER_CACHE * max_double(package, numa);
    default:
        return 1;
    }
}

struct coll__farther coll__inside_price(const struct coll__inside *inside,
                                        enum coll__leaves leaves)
{
    static const double out[COLL__N_LEAVES] = {[LEAVES_CACHE] = CACHE_OUT,
                                               [LEAVES_NUMA] = NUMA_OUT,
                                               [LEAVES_PACKAGE] = PACKAGE_OUT};
    double line = line_of(inside, leaves);

    /* a distant copy is slower, but a core has several lines under way at once */
    return (struct coll__farther){
        .alpha = 2 * LINE * (line - 1),
        .copy = (1 + line) / 2,
        .share = out[leaves] > 0 ? 1 / out[leaves] : 0,
    };
}

void coll__inside_widen(struct coll__inside *inside,
                        const struct coll__inside *other)
{
    inside->numa = max_double(inside->numa, other->numa);
    inside->package = max_double(inside->package, other->package);
}

/* ---- what the kernel says ------------------------------------------------ */

#define MAX_NODES 256

struct node {
    int number, package; /* package -1: without processors */
};

static int is_node(const struct dirent *entry)
{
    return !strncmp(entry->d_name, "node", 4) && entry->d_name[4] >= '0' &&
           entry->d_name[4] <= '9';
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
    return atoi((*a)->d_name + 4) - atoi((*b)->d_name + 4);
}

static int package_of(const char *node_dir, const char *cpu_dir, int number)
{
    char dir[300], cpus[64];

    snprintf(dir, sizeof(dir), "%s/node%d", node_dir, number);
    if (coll__read_line(dir, "cpulist", cpus, sizeof(cpus)) || !*cpus)
        return -1;
    snprintf(dir, sizeof(dir), "%s/cpu%d/topology", cpu_dir, atoi(cpus));
    return (int)coll__read_number(dir, "physical_package_id", -1);
}

/* List the nodes by index, the order of the distance table. */
static int list_nodes(const char *node_dir, const char *cpu_dir,
                      struct node nodes[MAX_NODES])
{
    struct dirent **entries;
    int n = scandir(node_dir, &entries, is_node, by_number), n_kept = 0;

    if (n < 0)
        return 0;
    for (int i = 0; i < n; i++) {
        int number = atoi(entries[i]->d_name + 4);

        if (n_kept < MAX_NODES)
            nodes[n_kept++] =
                (struct node){number, package_of(node_dir, cpu_dir, number)};
        free(entries[i]);
    }
    free(entries);
    return n_kept;
}

/* Read one row of the table: distances from node i, divided by its own. */
static void read_row(const char *node_dir, const struct node *nodes, int n,
                     int i, struct coll__inside *inside)
{
    char dir[300], line[8 * MAX_NODES], *at = line;
    double row[MAX_NODES];

    snprintf(dir, sizeof(dir), "%s/node%d", node_dir, nodes[i].number);
    if (coll__read_line(dir, "distance", line, sizeof(line)))
        return;
    for (int j = 0; j < n; j++) {
        char *end;

        row[j] = (double)strtol(at, &end, 10);
        if (end == at)
            return;
        at = end;
    }
    for (int j = 0; j < n && row[i] > 0; j++) {
        double *far = nodes[j].package == nodes[i].package ? &inside->numa
                                                           : &inside->package;

        if (j != i && nodes[i].package >= 0 && nodes[j].package >= 0)
            *far = max_double(*far, row[j] / row[i]);
    }
}

void coll__inside_read(const char *node_dir, const char *cpu_dir,
                       struct coll__inside *inside)
{
    struct node nodes[MAX_NODES];
    int n = list_nodes(node_dir, cpu_dir, nodes);

    *inside = (struct coll__inside){0};
    for (int i = 0; i < n; i++)
        read_row(node_dir, nodes, n, i, inside);
}

/* ---- this host ----------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct coll__inside here; /* written under `once` alone */

static void look(void)
{
    coll__inside_read("/sys/devices/system/node", "/sys/devices/system/cpu",
                      &here);
}

static int ask_inside(const struct coll__hwloc *hwloc, void *arg)
{
    coll__hwloc_inside(hwloc, arg);
    return COLL_OK;
}

void coll__inside_load(struct coll__inside *inside)
{
    *inside = (struct coll__inside){0};
    if (coll__param_is_set(PARAM_TOPO_FILE)) {
        coll__kept_ask(coll__param_text(PARAM_TOPO_FILE), ask_inside, inside);
        return;
    }
    pthread_once(&once, look);
    *inside = here;
}
