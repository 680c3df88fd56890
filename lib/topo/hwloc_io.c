/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc_io.c - GPUs and NICs from hwloc, the PCIe switches above them, NVLink.
 *
 * A device hangs below the PCIe switch that it shares with another device, else below its
 * nearest NUMA node, else below the machine.  A switch here is a bridge that leads to
 * several devices; host bridges do not count, since the NUMA node stands for them.
 */
#include "lib/topo/hwloc_int.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BASE_NETWORK = 0x02, CLASS_INFINIBAND = 0x0c06 };

#define MAX_DEPTH 32 /* nesting depth of bridges that is accepted in a user's file */

static void bus_of(const struct hwloc_pcidev_attr_s *pci, char bus[16])
{
    snprintf(bus, 16, "%04x:%02x:%02x.%01x", pci->domain, pci->bus, pci->dev,
             pci->func);
}

/* Does a driver offer the device for computing: CUDA, OpenCL or Level Zero (hwloc's
 * co-processors), NVML or ROCm's library? */
static int has_driver(hwloc_obj_t device)
{
    for (hwloc_obj_t d = device->io_first_child; d; d = d->next_sibling) {
        if (d->type != HWLOC_OBJ_OS_DEVICE || !d->name)
            continue;
        if (d->attr->osdev.type == HWLOC_OBJ_OSDEV_COPROC ||
            !strncmp(d->name, "nvml", 4) || !strncmp(d->name, "rsmi", 4))
            return 1;
    }
    return 0;
}

static int is_gpu(hwloc_obj_t device)
{
    const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;

    return has_driver(device) || coll__pci_computes(&(struct coll__pci){
                                     .class_id = pci->class_id,
                                     .vendor = pci->vendor_id,
                                     .device = pci->device_id,
                                     .domain = pci->domain,
                                     .bus = pci->bus,
                                     .slot = pci->dev,
                                 });
}

/* ---- where a device hangs ------------------------------------------------ */

static int is_network(hwloc_obj_t device)
{
    unsigned class_id = device->attr->pcidev.class_id;

    return class_id >> 8 == BASE_NETWORK || class_id == CLASS_INFINIBAND;
}

/* Count the GPUs and NICs below a bridge; a device counts itself. */
static int count_devices(hwloc_obj_t obj, int depth)
{
    int n =
        obj->type == HWLOC_OBJ_PCI_DEVICE && (is_gpu(obj) || is_network(obj));

    for (hwloc_obj_t d = obj->io_first_child; d && depth < MAX_DEPTH;
         d = d->next_sibling)
        n += count_devices(d, depth + 1);
    return n;
}

/* Count the GPUs and NICs below a switch; 0: the object is no switch. */
static int fan_of(hwloc_obj_t obj)
{
    int n = obj->type == HWLOC_OBJ_BRIDGE &&
                    obj->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI
                ? count_devices(obj, 0)
                : 0;

    return n > 1 ? n : 0;
}

/* Return the next switch above, if it leads to more than `within` devices, else NULL. */
static hwloc_obj_t switch_above(hwloc_obj_t obj, int within)
{
    for (int up = 0; up < MAX_DEPTH; up++) {
        obj = obj->parent;
        if (!obj || (obj->type != HWLOC_OBJ_BRIDGE &&
                     obj->type != HWLOC_OBJ_PCI_DEVICE))
            return NULL;
        if (fan_of(obj) > within)
            return obj;
    }
    return NULL;
}

static struct coll__part *part_of(struct coll__part *part, hwloc_obj_t source)
{
    struct coll__part *found = part->source == source ? part : NULL;

    for (struct coll__part *p = part->first; p && !found; p = p->next)
        found = part_of(p, source);
    return found;
}

/* Return the NUMA node of a device, if its ancestor has just one, else -1. */
static int numa_of(hwloc_topology_t topology, hwloc_obj_t device)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);

    if (!near || !near->nodeset || hwloc_bitmap_weight(near->nodeset) != 1)
        return -1;
    return hwloc_bitmap_first(near->nodeset);
}

/* Find the part where a device or a switch hangs; make the missing switches.  NULL: no
 * memory. */
static struct coll__part *holder_of(struct coll__topo *topo, hwloc_obj_t device,
                                    int within)
{
    hwloc_obj_t above = switch_above(device, within);
    struct coll__part *outer, *part;
    char bus[16];

    if (!above) {
        int numa = numa_of(topo->hwloc->topology, device);
        struct coll__part *near = coll__part_numa(topo->machine, numa);

        return near ? near : topo->machine;
    }
    part = part_of(topo->machine, above);
    if (part)
        return part;
    outer = holder_of(topo, above, fan_of(above));
    part = outer ? coll__part_add(outer, PART_SWITCH, -1) : NULL;
    if (!part)
        return NULL;
    bus_of(&above->attr->bridge.upstream.pci, bus);
    coll__hwloc_name(part->name, sizeof(part->name), bus);
    part->source = above;
    return part;
}

struct coll__part *coll__hwloc_holder(struct coll__topo *topo, const char *bus)
{
    hwloc_obj_t device =
        topo->hwloc
            ? hwloc_get_pcidev_by_busidstring(topo->hwloc->topology, bus)
            : NULL;

    return device ? holder_of(topo, device, 1) : NULL;
}

/* ---- NICs ------------------------------------------------------------------ */

static const char *port_state(hwloc_obj_t device)
{
    static const char *const names[] = {"no change", "down",   "init",
                                        "armed",     "active", "deferred"};
    const char *state = hwloc_obj_get_info_by_name(device, "Port1State");
    int number = state ? atoi(state) : -1;

    return number >= 0 && number < 6 ? names[number] : "unknown";
}

static int add_nic(struct coll__topo *topo, hwloc_obj_t device)
{
    struct coll__nic nic = {.gbits = 0};

    nic.is_rdma = device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
    nic.port = nic.is_rdma;
    nic.numa_node = numa_of(topo->hwloc->topology, device);
    coll__hwloc_name(nic.name, sizeof(nic.name), device->name);
    snprintf(nic.port_state, sizeof(nic.port_state), "%s",
             nic.is_rdma ? port_state(device) : "unknown");
    if (device->parent->type == HWLOC_OBJ_PCI_DEVICE)
        bus_of(&device->parent->attr->pcidev, nic.bus);
    return coll__topo_add_nic(topo, &nic) ? coll__hwloc_no_memory() : COLL_OK;
}

static int is_nic(hwloc_obj_t device)
{
    return device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK ||
           device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
}

static int add_nics(struct coll__topo *topo)
{
    hwloc_topology_t t = topo->hwloc->topology;
    int status = COLL_OK;

    for (hwloc_obj_t d = hwloc_get_next_osdev(t, NULL); d && !status;
         d = hwloc_get_next_osdev(t, d))
        if (is_nic(d))
            status = add_nic(topo, d);
    return status;
}

/* ---- GPUs ------------------------------------------------------------------ */

/* The source is NVML, CUDA's library, or the author of the file. */
static const char *uuid_of(hwloc_obj_t device)
{
    const char *uuid = hwloc_obj_get_info_by_name(device, "NVIDIAUUID");

    for (hwloc_obj_t d = device->io_first_child; d && !uuid;
         d = d->next_sibling)
        uuid = hwloc_obj_get_info_by_name(d, "NVIDIAUUID");
    return uuid;
}

static int add_gpu(struct coll__topo *topo, hwloc_obj_t device)
{
    struct coll__part *near = holder_of(topo, device, 1), *gpu;
    char bus[16], name[sizeof(gpu->name)];

    gpu = near ? coll__part_add(near, PART_GPU, -1) : NULL;
    if (!gpu)
        return coll__hwloc_no_memory();
    bus_of(&device->attr->pcidev, bus);
    snprintf(name, sizeof(name), "%s%s%s", bus, device->name ? " " : "",
             device->name ? device->name : "");
    coll__hwloc_name(gpu->name, sizeof(gpu->name), name);
    coll__hwloc_name(gpu->uuid, sizeof(gpu->uuid), uuid_of(device));
    return COLL_OK;
}

static int add_gpus(struct coll__topo *topo)
{
    hwloc_topology_t t = topo->hwloc->topology;
    int status = COLL_OK;

    for (hwloc_obj_t d = hwloc_get_next_pcidev(t, NULL); d && !status;
         d = hwloc_get_next_pcidev(t, d))
        if (is_gpu(d))
            status = add_gpu(topo, d);
    return status;
}

/* ---- NVLink ---------------------------------------------------------------- */

/* Return the GPU of an object in hwloc's matrix; NULL if the object is a switch. */
static struct coll__part *gpu_of(struct coll__topo *topo, hwloc_obj_t obj)
{
    char bus[16];

    while (obj && obj->type != HWLOC_OBJ_PCI_DEVICE)
        obj = obj->parent;
    if (!obj)
        return NULL;
    bus_of(&obj->attr->pcidev, bus);
    return coll__part_gpu(topo->machine, bus);
}

/* MB/s from each to each. */
static int take_links(const struct hwloc_distances_s *d,
                      struct coll__part *const *gpus)
{
    for (unsigned i = 0; i < d->nbobjs; i++)
        for (unsigned j = 0; j < i; j++) {
            double mbytes = (double)d->values[i * d->nbobjs + j];

            if (gpus[i] && gpus[j] && gpus[i] != gpus[j] && mbytes > 0 &&
                coll__part_join(gpus[i], gpus[j], mbytes / 1000))
                return coll__hwloc_no_memory();
        }
    return COLL_OK;
}

/* NVSwitches join every two GPUs, and hwloc can transform its matrix so that it shows
 * these links.  On a machine without NVSwitches the transformation would lose links. */
static void look_through_switches(hwloc_topology_t topology,
                                  struct hwloc_distances_s *d)
{
    hwloc_distances_transform(
        topology, d, HWLOC_DISTANCES_TRANSFORM_MERGE_SWITCH_PORTS, NULL, 0);
    hwloc_distances_transform(
        topology, d, HWLOC_DISTANCES_TRANSFORM_TRANSITIVE_CLOSURE, NULL, 0);
}

static int take_matrix(struct coll__topo *topo, struct hwloc_distances_s *d)
{
    struct coll__part **gpus =
        calloc(d->nbobjs + 1, sizeof(struct coll__part *));
    int has_switches = 0, status;

    if (!gpus)
        return coll__hwloc_no_memory();
    for (unsigned i = 0; i < d->nbobjs; i++)
        has_switches |= !gpu_of(topo, d->objs[i]);
    if (has_switches) /* it drops their ports */
        look_through_switches(topo->hwloc->topology, d);
    for (unsigned i = 0; i < d->nbobjs; i++)
        gpus[i] = gpu_of(topo, d->objs[i]);
    status = take_links(d, gpus);
    free(gpus);
    return status;
}

static int add_links(struct coll__topo *topo)
{
    hwloc_topology_t t = topo->hwloc->topology;
    struct hwloc_distances_s *d;
    unsigned n = 1;
    int status;

    if (hwloc_distances_get_by_name(t, "NVLinkBandwidth", &n, &d, 0) || !n)
        return COLL_OK;
    status = take_matrix(topo, d);
    hwloc_distances_release(t, d);
    return status;
}

int coll__hwloc_devices(struct coll__topo *topo, int has_nics)
{
    int status = has_nics ? add_nics(topo) : COLL_OK;

    if (!status)
        status = add_gpus(topo);
    return status ? status : add_links(topo);
}
