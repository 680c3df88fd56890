/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_hwloc.c - one host from hwloc's description of it.
 *
 * hwloc's packages become sockets.  Its groups and NUMA nodes become NUMA nodes, its L3
 * caches become caches, and PCIe switches become switches.  The seats are the GPUs, or
 * the cores if there are no GPUs.  NVLink joins pairs of GPUs, or all of them by a
 * switch.  hwloc reports which part contains which, but only NVLink's speed.  The other
 * speeds below are plausible for a server of the 2020s: good for comparisons, not for
 * times.
 */
#include "include/coll/coll.h"
#include "tools/sim/fabric_int.h"
#include "lib/topo/machine.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GB_S(rate) (1 / ((rate)*1e9))

/* The link from a part to what holds it; a seat's own port. */
struct price {
    double latency, beta;
};
static const struct price to_outer[] = {[GRAPH_CACHE] = {40e-9, GB_S(40)},
                                        [GRAPH_SWITCH] = {200e-9, GB_S(25)},
                                        [GRAPH_NUMA] = {60e-9, GB_S(60)},
                                        [GRAPH_NIC] = {200e-9, GB_S(25)}};
static const struct price gpu_link = {400e-9, GB_S(25)};
static const struct price gpu_port = {100e-9, GB_S(300)};
static const struct price core_port = {60e-9, GB_S(12)};
#define NVLINK_LATENCY 250e-9
static const struct price between_sockets = {120e-9, GB_S(30)};
#define RDMA_GBITS 100
#define ETHERNET_GBITS 10

struct reading {
    struct graph *graph;
    int has_gpus, has_rdma;
    int n_named[GRAPH_NIC + 1]; /* parts of each kind so far */
    struct seat_of {
        const struct coll__part *gpu;
        int part; /* of the graph */
    } gpus[FABRIC_MAX_PARTS];
    int n_gpus;
};

static int count_parts(const struct coll__part *part, enum coll__part_kind kind,
                       int is_rdma)
{
    int n = part->kind == kind && (!is_rdma || part->nic.is_rdma);

    for (const struct coll__part *p = part->first; p; p = p->next)
        n += count_parts(p, kind, is_rdma);
    return n;
}

static int children(const struct coll__part *part, enum coll__part_kind kind)
{
    int n = 0;

    for (const struct coll__part *p = part->first; p; p = p->next)
        n += p->kind == kind;
    return n;
}

/* ---- adding -------------------------------------------------------------- */

/* Add a part, joined to the part `within` (-1: to none) by `link`; if link is NULL, the
 * connection costs nothing.  Returns its number; -1 if memory or numbers run out. */
static int add(struct reading *reading, struct graph_part *part, int within,
               const struct price *link)
{
    struct graph_edge edge = {.b = within};

    if (reading->graph->n_parts == FABRIC_MAX_PARTS)
        return -1;
    if (link)
        edge = (struct graph_edge){.b = within,
                                   .latency = link->latency,
                                   .beta = link->beta,
                                   .share = link->beta};
    part->within = within;
    part->inner = -1;
    edge.a = coll__graph_part(reading->graph, part);
    if (edge.a >= 0 && within >= 0 &&
        coll__graph_edge(reading->graph, &edge) < 0)
        return -1;
    return edge.a;
}

static int add_holder(struct reading *reading, enum graph_kind kind, int within)
{
    static const char *const names[] = {[GRAPH_CACHE] = "L3_",
                                        [GRAPH_SWITCH] = "switch",
                                        [GRAPH_NUMA] = "numa",
                                        [GRAPH_SOCKET] = "socket"};
    struct graph_part part = {.kind = kind};

    snprintf(part.name, sizeof(part.name), "%s%d", names[kind],
             reading->n_named[kind]++);
    return add(reading, &part, within, &to_outer[kind]);
}

static int add_seat(struct reading *reading, const char *name,
                    const struct price *port, int within,
                    const struct price *link)
{
    struct graph_part part = {.kind = GRAPH_SEAT,
                              .latency = port->latency,
                              .beta = port->beta};

    snprintf(part.name, sizeof(part.name), "%s%d", name,
             reading->n_named[GRAPH_SEAT]++);
    return add(reading, &part, within, link);
}

static int add_gpu(struct reading *reading, const struct coll__part *gpu,
                   int within)
{
    struct price port = gpu_port;
    int part;

    for (int l = 0; l < gpu->n_links; l++)
        port.beta = min_double(port.beta, GB_S(gpu->links[l].gbytes));
    part = add_seat(reading, "gpu", &port, within, &gpu_link);
    if (part >= 0) /* there is room for as many as the graph has parts */
        reading->gpus[reading->n_gpus++] = (struct seat_of){gpu, part};
    return part;
}

/* If there are RDMA devices, leave out network interfaces: most belong to the same
 * cards. */
static int add_nic(struct reading *reading, const struct coll__nic *nic,
                   int within)
{
    struct graph_part part = {.kind = GRAPH_NIC};
    double gbits = nic->is_rdma ? RDMA_GBITS : ETHERNET_GBITS;

    if (reading->has_rdma && !nic->is_rdma)
        return within;
    if (nic->gbits > 0)
        gbits = nic->gbits;
    part.beta = 8 / (gbits * 1e9);
    part.is_down = nic->is_rdma ? strcmp(nic->port_state, "active") != 0
                                : !strcmp(nic->port_state, "down");
    snprintf(part.name, sizeof(part.name), "%.31s", nic->name);
    return add(reading, &part, within, &to_outer[GRAPH_NIC]);
}

/* ---- reading ------------------------------------------------------------- */

/* Add this hwloc object as a part; returns the part that holds its children (-1: no
 * memory). */
static int add_one(struct reading *reading, const struct coll__part *parent,
                   const struct coll__part *part, int within)
{
    switch (part->kind) {
    case PART_GROUP:
        return add_holder(reading, GRAPH_NUMA, within);
    case PART_NUMA: /* the only NUMA node belongs to its parent */
        return children(parent, PART_NUMA) == 1
                   ? within
                   : add_holder(reading, GRAPH_NUMA, within);
    case PART_L3:
        return add_holder(reading, GRAPH_CACHE, within);
    case PART_CORE:
        return reading->has_gpus
                   ? within
                   : add_seat(reading, "core", &core_port, within, NULL);
    case PART_SWITCH:
        return add_holder(reading, GRAPH_SWITCH, within);
    case PART_GPU:
        return add_gpu(reading, part, within);
    case PART_NIC:
        return add_nic(reading, &part->nic, within);
    case PART_MACHINE:
    case PART_PACKAGE:
    case PART_L2:
        break;
    }
    return within;
}

/* Add all objects below a part, except packages. */
static int read_below(struct reading *reading, const struct coll__part *part,
                      int within)
{
    for (const struct coll__part *p = part->first; p; p = p->next) {
        int at;

        if (p->kind == PART_PACKAGE)
            continue;
        at = add_one(reading, part, p, within);
        if (at < 0 || read_below(reading, p, at))
            return -1;
    }
    return 0;
}

/* Add all packages at any depth; the first socket is part 0. */
static int read_packages(struct reading *reading, const struct coll__part *part)
{
    for (const struct coll__part *p = part->first; p; p = p->next) {
        struct graph_edge edge = {.latency = between_sockets.latency,
                                  .beta = between_sockets.beta,
                                  .share = between_sockets.beta};
        int before = reading->graph->n_parts, socket;

        if (p->kind != PART_PACKAGE) {
            if (read_packages(reading, p))
                return -1;
            continue;
        }
        socket = add_holder(reading, GRAPH_SOCKET, -1);
        if (socket < 0)
            return -1;
        for (edge.b = 0; edge.b < before; edge.b++) {
            edge.a = socket;
            if (reading->graph->parts[edge.b].kind == GRAPH_SOCKET &&
                coll__graph_edge(reading->graph, &edge) < 0)
                return -1;
        }
        if (read_below(reading, p, socket))
            return -1;
    }
    return 0;
}

/* ---- NVLink -------------------------------------------------------------- */

static int add_cable(struct reading *reading, int a, int b, double gbytes)
{
    struct graph_edge edge = {.a = a,
                              .b = b,
                              .latency = NVLINK_LATENCY,
                              .beta = GB_S(gbytes),
                              .share = GB_S(gbytes)};

    return coll__graph_edge(reading->graph, &edge) < 0 ? -1 : 0;
}

/* Are every two GPUs joined?  For more than a few GPUs only a switch can do that. */
static int has_nvswitch(const struct reading *reading)
{
    for (int i = 0; i < reading->n_gpus; i++)
        if (reading->gpus[i].gpu->n_links != reading->n_gpus - 1)
            return 0;
    return reading->n_gpus > 4;
}

static int join_by_switch(struct reading *reading)
{
    struct graph_part part = {.kind = GRAPH_SWITCH, .name = "nvswitch"};
    int at = add(reading, &part, -1, NULL);

    for (int i = 0; i < reading->n_gpus && at >= 0; i++)
        if (add_cable(reading, reading->gpus[i].part, at,
                      reading->gpus[i].gpu->links[0].gbytes))
            return -1;
    return at < 0 ? -1 : 0;
}

static int join_pairs(struct reading *reading)
{
    for (int i = 0; i < reading->n_gpus; i++)
        for (int l = 0; l < reading->gpus[i].gpu->n_links; l++) {
            const struct coll__part_link *link =
                &reading->gpus[i].gpu->links[l];

            for (int j = 0; j < i; j++)
                if (reading->gpus[j].gpu == link->to &&
                    add_cable(reading, reading->gpus[i].part,
                              reading->gpus[j].part, link->gbytes))
                    return -1;
        }
    return 0;
}

static int read_machine(struct reading *reading,
                        const struct coll__part *machine)
{
    int first = 0;

    if (read_packages(reading, machine))
        return -1;
    if (!reading->graph->n_parts)
        first = add_holder(reading, GRAPH_SOCKET, -1);
    if (first < 0 || read_below(reading, machine, first))
        return -1;
    return has_nvswitch(reading) ? join_by_switch(reading)
                                 : join_pairs(reading);
}

static int make_fabric(struct coll__fabric *fabric,
                       const struct coll__part *machine, const char *path)
{
    struct reading reading = {.has_gpus = count_parts(machine, PART_GPU, 0),
                              .has_rdma = count_parts(machine, PART_NIC, 1)};

    fabric->kinds = calloc(1, sizeof(*fabric->kinds));
    fabric->runs = calloc(1, sizeof(*fabric->runs));
    reading.graph = fabric->kinds;
    if (fabric->kinds)
        fabric->n_kinds = 1;
    if (!fabric->runs || !fabric->kinds || read_machine(&reading, machine)) {
        log_error("topo",
                  "%s: no memory left for the machine, or more than %d parts; "
                  "describe it more coarsely in a text file",
                  path, FABRIC_MAX_PARTS);
        return COLL_ERR_NOMEM;
    }
    snprintf(reading.graph->name, sizeof(reading.graph->name), "host");
    if (!reading.n_named[GRAPH_SEAT]) {
        log_error("topo",
                  "%s: a machine without cores; write the file with lstopo "
                  "FILE.xml",
                  path);
        return COLL_ERR_INVALID;
    }
    fabric->n_runs = 1;
    fabric->runs[0].n_hosts = 1;
    return COLL_OK;
}

int coll__fabric_of_hwloc(struct coll__fabric *fabric, const char *path)
{
    struct coll__topo topo = {NULL, NULL};
    int rc = coll__hwloc_load(&topo, path);

    if (rc == COLL_OK)
        rc = make_fabric(fabric, topo.machine, path);
    coll__part_free(topo.machine);
    coll__hwloc_free(topo.hwloc);
    return rc;
}
