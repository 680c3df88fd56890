/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc_gpus.c - add a driver's information on GPUs to our tree and to hwloc's. */
#include "lib/topo/gpus.h"
#include "lib/topo/hwloc_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If PCI is hidden, as in some containers, the GPU hangs below the machine. */
static struct coll__part *part_of(struct coll__topo *topo, const char *bus)
{
    struct coll__part *part = coll__part_gpu(topo->machine, bus);

    return part ? part : coll__part_add(topo->machine, PART_GPU, -1);
}

static hwloc_obj_t object_of(struct coll__topo *topo, const char *bus)
{
    return hwloc_get_pcidev_by_busidstring(topo->hwloc->topology, bus);
}

static int add_gpu(struct coll__topo *topo, const struct coll__gpu_seen *gpu)
{
    struct coll__part *part = part_of(topo, gpu->bus);
    hwloc_obj_t object = object_of(topo, gpu->bus);
    char name[sizeof(part->name)];

    if (!part)
        return coll__hwloc_no_memory();
    snprintf(name, sizeof(name), "%s %s", gpu->bus, gpu->name);
    coll__hwloc_name(part->name, sizeof(part->name), name);
    coll__gpu_uuid_text(gpu->uuid, part->uuid);
    if (object && !hwloc_obj_get_info_by_name(object, "NVIDIAUUID") &&
        hwloc_obj_add_info(object, "NVIDIAUUID", part->uuid))
        return coll__hwloc_no_memory();
    return COLL_OK;
}

static int join(struct coll__topo *topo, const struct coll__gpu_seen *gpus,
                int n, const unsigned char *nvlink)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double rate = gpus[i].nvlink < gpus[j].nvlink ? gpus[i].nvlink
                                                          : gpus[j].nvlink;

            if ((nvlink[i * n + j] || nvlink[j * n + i]) &&
                coll__part_join(part_of(topo, gpus[i].bus),
                                part_of(topo, gpus[j].bus), rate * 1e-9))
                return coll__hwloc_no_memory();
        }
    return COLL_OK;
}

/* Fill in the matrix as hwloc's plugins do: MB/s, and on the diagonal a value larger than
 * any link's. */
static void fill_matrix(const struct coll__gpu_seen *gpus, int n,
                        const unsigned char *nvlink, hwloc_uint64_t *values)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            values[i * n + j] =
                i == j ? 1000000
                : nvlink[i * n + j] || nvlink[j * n + i]
                    ? (hwloc_uint64_t)((gpus[i].nvlink < gpus[j].nvlink
                                            ? gpus[i].nvlink
                                            : gpus[j].nvlink) *
                                       1e-6)
                    : 0;
}

/* hwloc's own matrix, from NVML, is better than ours, so it is kept. */
static int add_matrix(struct coll__topo *topo,
                      const struct coll__gpu_seen *gpus, int n,
                      const unsigned char *nvlink)
{
    size_t capacity = (size_t)n;
    hwloc_obj_t *objects = calloc(capacity, sizeof(*objects));
    hwloc_uint64_t *values = calloc(capacity * capacity, sizeof(*values));
    hwloc_distances_add_handle_t handle = NULL;
    int is_full = objects && values, n_objects = 0;

    for (int i = 0; i < n && is_full; i++) {
        objects[i] = object_of(topo, gpus[i].bus);
        n_objects += objects[i] != NULL;
    }
    if (is_full && n_objects == n) {
        fill_matrix(gpus, n, nvlink, values);
        handle =
            hwloc_distances_add_create(topo->hwloc->topology, "NVLinkBandwidth",
                                       HWLOC_DISTANCES_KIND_FROM_USER |
                                           HWLOC_DISTANCES_KIND_MEANS_BANDWIDTH,
                                       0);
    }
    if (handle && !hwloc_distances_add_values(topo->hwloc->topology, handle,
                                              (unsigned)n, objects, values, 0))
        hwloc_distances_add_commit(topo->hwloc->topology, handle, 0);
    free(objects);
    free(values);
    return is_full ? COLL_OK : coll__hwloc_no_memory();
}

static int has_matrix(struct coll__topo *topo)
{
    struct hwloc_distances_s *d;
    unsigned n = 1;

    if (hwloc_distances_get_by_name(topo->hwloc->topology, "NVLinkBandwidth",
                                    &n, &d, 0) ||
        !n)
        return 0;
    hwloc_distances_release(topo->hwloc->topology, d);
    return 1;
}

int coll__topo_add_gpus(struct coll__topo *topo,
                        const struct coll__gpu_seen *gpus, int n,
                        const unsigned char *nvlink)
{
    int status = COLL_OK;

    for (int i = 0; i < n && !status; i++)
        status = add_gpu(topo, &gpus[i]);
    if (status || n < 2 || has_matrix(topo) ||
        !memchr(nvlink, 1, (size_t)n * (size_t)n))
        return status;
    status = join(topo, gpus, n, nvlink);
    return status ? status : add_matrix(topo, gpus, n, nvlink);
}
