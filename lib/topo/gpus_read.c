/* SPDX-License-Identifier: BSD-3-Clause */
/* gpus_read.c - where a GPU is, from the kernel's tree of PCI devices or from a file.
 *
 * The kernel's path of a device lists its bridges, from the root complex down:
 * /sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0
 */
#include "lib/topo/gpus.h"
#include "lib/topo/machine.h"
#include "lib/util/param.h"
#include "lib/util/read.h"
#include "lib/util/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCI_DIR "/sys/bus/pci/devices"
#define PAYLOAD 0.85 /* fraction of PCIe's bytes that is left after headers and flow
                      * control */

/* ---- the kernel ------------------------------------------------------------ */

static int parse_bus(const char *text, uint32_t *bus)
{
    unsigned domain, number, slot, function;

    if (sscanf(text, "%4x:%2x:%2x.%1x", &domain, &number, &slot, &function) !=
        4)
        return -1;
    *bus = domain << 16 | number << 8 | slot << 3 | function;
    return 0;
}

static void read_bridges(const char *path, struct coll__gpu_place *place)
{
    char way[PATH_MAX], *rest = way, *name, *next;
    uint32_t bus;

    if (!realpath(path, way))
        return;
    name = strsep(&rest, "/");
    for (; (next = strsep(&rest, "/"));
         name = next) /* the last is the device */
        if (!parse_bus(name, &bus) && place->n_above < COLL__GPU_ABOVE)
            place->above[place->n_above++] = bus;
}

/* Return the bytes a second for "16.0 GT/s PCIe" and 16 lanes; up to 5 GT/s, 8 of 10
 * bits are payload. */
static double read_rate(const char *path)
{
    char line[64];
    double giga, lanes;

    if (coll__read_line(path, "max_link_speed", line, sizeof(line)))
        return 0;
    giga = coll__strtod(line, NULL);
    lanes = (double)coll__read_number(path, "max_link_width", 0);
    return giga / 8 * 1e9 * lanes * PAYLOAD * (giga > 5 ? 1 : 0.8);
}

void coll__gpu_read(const char *pci_dir, const char *bus,
                    struct coll__gpu_place *place)
{
    char path[PATH_MAX];

    place->n_above = 0;
    place->numa = -1;
    place->pcie = 0;
    if (snprintf(path, sizeof(path), "%s/%s", pci_dir, bus) >=
        (int)sizeof(path))
        return;
    read_bridges(path, place);
    place->numa = (int32_t)coll__read_number(path, "numa_node", -1);
    place->pcie = read_rate(path);
}

/* ---- a file ------------------------------------------------------------------ */

void coll__gpu_uuid_text(const unsigned char uuid[16], char text[48])
{
    char *at = text + sprintf(text, "GPU-");

    for (int i = 0; i < 16; i++)
        at += sprintf(at,
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                      uuid[i]);
}

static struct coll__part *by_uuid(struct coll__part *part, const char *uuid)
{
    struct coll__part *found = NULL;

    if (part->kind == PART_GPU && !strcmp(part->uuid, uuid))
        return part;
    for (struct coll__part *p = part->first; p && !found; p = p->next)
        found = by_uuid(p, uuid);
    return found;
}

/* Find the path to a GPU: its switches and its NUMA node.  Returns 1 if this is its
 * path. */
static int walk(const struct coll__part *part, const struct coll__part *gpu,
                struct coll__gpu_place *place)
{
    struct coll__gpu_place before = *place;

    if (part == gpu)
        return 1;
    if (part->kind == PART_NUMA)
        place->numa = part->index;
    if (part->kind == PART_SWITCH && place->n_above < COLL__GPU_ABOVE &&
        !parse_bus(part->name, &place->above[place->n_above]))
        place->n_above++;
    for (const struct coll__part *p = part->first; p; p = p->next)
        if (walk(p, gpu, place))
            return 1;
    *place = before;
    return 0;
}

struct question {
    const char *bus;
    struct coll__gpu_place *place;
    char uuids[2][48];
    int has_nvlink;
};

static int ask_place(const struct coll__hwloc *hwloc, void *arg)
{
    const struct question *q = arg;
    struct coll__topo topo = {NULL, NULL};
    struct coll__part *gpu;
    int status = coll__hwloc_tree(hwloc, &topo);

    if (status)
        return status;
    gpu = by_uuid(topo.machine, q->uuids[0]);
    if (!gpu)
        gpu = coll__part_gpu(topo.machine, q->bus);
    if (gpu)
        walk(topo.machine, gpu, q->place);
    coll__part_free(topo.machine);
    return COLL_OK;
}

static int ask_nvlink(const struct coll__hwloc *hwloc, void *arg)
{
    struct question *q = arg;
    struct coll__topo topo = {NULL, NULL};
    const struct coll__part *a, *b;
    int status = coll__hwloc_tree(hwloc, &topo);

    if (status)
        return status;
    a = by_uuid(topo.machine, q->uuids[0]);
    b = by_uuid(topo.machine, q->uuids[1]);
    if (a && b)
        q->has_nvlink = 0;
    for (int l = 0; a && b && l < a->n_links; l++)
        q->has_nvlink |= a->links[l].to == b;
    coll__part_free(topo.machine);
    return COLL_OK;
}

/* ---- from /sys or from a file ------------------------------------------------ */

void coll__gpu_find(const char *bus, struct coll__gpu_place *place)
{
    struct question q = {.bus = bus, .place = place};

    if (!coll__param_is_set(PARAM_TOPO_FILE)) {
        coll__gpu_read(PCI_DIR, bus, place);
        return;
    }
    place->n_above = 0;
    place->numa = -1;
    place->pcie = 0;
    coll__gpu_uuid_text(place->uuid, q.uuids[0]);
    coll__kept_ask(coll__param_text(PARAM_TOPO_FILE), ask_place, &q);
}

int coll__gpu_file_nvlink(const unsigned char a[16], const unsigned char b[16])
{
    struct question q = {.has_nvlink = -1};

    if (!coll__param_is_set(PARAM_TOPO_FILE))
        return -1;
    coll__gpu_uuid_text(a, q.uuids[0]);
    coll__gpu_uuid_text(b, q.uuids[1]);
    coll__kept_ask(coll__param_text(PARAM_TOPO_FILE), ask_nvlink, &q);
    return q.has_nvlink;
}
