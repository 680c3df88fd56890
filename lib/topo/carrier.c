/* SPDX-License-Identifier: BSD-3-Clause */
/* carrier.c - choosing and pricing a network device. */
#include "lib/topo/carrier.h"
#include "lib/topo/machine.h"
#include "lib/util/text.h"
#include "lib/util/util.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- prices -------------------------------------------------------------- */

/* A message of a few bytes over RDMA takes 1 to 1.5 us in card, cable and switch, as
 * osu_latency and ucx_perftest show on InfiniBand since FDR and on RoCE, and some time in
 * software.  Cards send a few million messages a second.  Headers take 2 % of the bytes
 * on the wire at an MTU of 4096 (IBTA 9.2, RoCEv2 annex 17). */
#define RDMA_ALPHA 2e-6
#define RDMA_GAP 0.3e-6
#define RDMA_PAYLOAD 0.97

/* A message over TCP takes two system calls, two passes through the kernel and an
 * interrupt.  At an MTU of 1500, 1448 of 1538 bytes on the wire are payload (IEEE 802.3,
 * RFC 7323).  One connection does not fill a fast wire: a core makes its two copies one
 * after the other, at 3 GB/s (the ESnet guide fasterdata.es.net has 20 to 40 Gbit/s for
 * one untuned flow).  The connections of several ranks do fill it. */
#define TCP_ALPHA 15e-6
#define TCP_PAYLOAD 0.94

/* Assume 10 Gbit/s for a device of unknown speed, until it is measured. */
#define UNKNOWN_BETA (1 / 1.1e9)

struct coll__rate coll__carrier_rate(const struct coll__nic *nic,
                                     enum coll__wire wire)
{
    int is_rdma = wire == WIRE_RDMA;
    struct coll__rate rate = {.alpha = is_rdma ? RDMA_ALPHA : TCP_ALPHA,
                              .gap = is_rdma ? RDMA_GAP : 0,
                              .beta = UNKNOWN_BETA,
                              .share = UNKNOWN_BETA};

    if (!nic || nic->gbits <= 0)
        return rate;
    rate.is_known = 1;
    rate.share =
        8 / (nic->gbits * 1e9 * (is_rdma ? RDMA_PAYLOAD : TCP_PAYLOAD));
    rate.beta = is_rdma ? rate.share : max_double(rate.share, COLL__TCP_CORE);
    return rate;
}

void coll__carrier_text(const struct coll__nic *nic, char *text, size_t len)
{
    char port[16] = "";

    if (nic->port)
        snprintf(port, sizeof(port), " port %d", nic->port);
    if (nic->gbits > 0)
        coll__print(text, len, "%s%s, %g Gbit/s by %s", nic->name, port,
                    nic->gbits, nic->is_rdma ? "libibverbs" : "/sys");
    else
        snprintf(text, len, "%s%s, speed not known", nic->name, port);
}

/* ---- choosing ------------------------------------------------------------ */

/* Is this the device's name, with or without its port? */
static int has_name(const struct coll__nic *nic, const char *name)
{
    size_t len = strlen(nic->name);

    if (strncmp(nic->name, name, len))
        return 0;
    if (!nic->is_rdma || !name[len])
        return !name[len];
    return name[len] == ':' && atoi(name + len + 1) == nic->port;
}

const struct coll__nic *coll__carrier_named(const struct coll__nic *nics, int n,
                                            const char *name)
{
    for (int i = 0; i < n; i++)
        if (has_name(&nics[i], name))
            return &nics[i];
    return NULL;
}

int coll__carrier_is_listed(const struct coll__nic *nic, const char *devices)
{
    char copy[256], *rest = copy, *name;

    if (!devices || !*devices || !strcmp(devices, "all"))
        return 1;
    snprintf(copy, sizeof(copy), "%s", devices);
    while ((name = strsep(&rest, ",")))
        if (has_name(nic, name))
            return 1;
    return 0;
}

int coll__carrier_is_up(const struct coll__nic *nic)
{
    return nic->is_rdma ? !strcmp(nic->port_state, "active")
                        : strcmp(nic->port_state, "down") != 0;
}

int coll__carrier_is_better(const struct coll__nic *a,
                            const struct coll__nic *b,
                            const struct coll__carrier_wish *wish)
{
    const char *way = wish->interface ? wish->interface : "";
    int near_a = a->numa_node == wish->numa_node;
    int near_b = b->numa_node == wish->numa_node;

    if (a->is_rdma != b->is_rdma)
        return a->is_rdma;
    if (!a->is_rdma && !strcmp(a->name, way) != !strcmp(b->name, way))
        return !strcmp(a->name, way);
    if (a->gbits > b->gbits || a->gbits < b->gbits)
        return a->gbits > b->gbits;
    return wish->numa_node >= 0 && near_a > near_b;
}

const struct coll__nic *
coll__carrier_guess(const struct coll__nic *nics, int n,
                    const struct coll__carrier_wish *wish,
                    enum coll__wire *wire)
{
    const struct coll__nic *best = NULL;

    for (int i = 0; i < n; i++)
        if (coll__carrier_is_up(&nics[i]) &&
            (wish->may_rdma || !nics[i].is_rdma) &&
            coll__carrier_is_listed(&nics[i], wish->devices) &&
            (!best || coll__carrier_is_better(&nics[i], best, wish)))
            best = &nics[i];
    *wire = best && best->is_rdma ? WIRE_RDMA : WIRE_TCP;
    return best;
}

/* ---- the host's way out -------------------------------------------------- */

void coll__carrier_route_in(const char *path, char *name, size_t len)
{
    char line[256], found[32];
    unsigned long to;
    FILE *file = fopen(path, "re");

    snprintf(name, len, "%s", "");
    while (file && !*name && fgets(line, sizeof(line), file))
        if (sscanf(line, "%31s %lx", found, &to) == 2 && !to)
            snprintf(name, len, "%s", found);
    if (file)
        fclose(file);
}

void coll__carrier_route(char *name, size_t len)
{
    coll__carrier_route_in("/proc/net/route", name, len);
}

/* ---- this host's devices ------------------------------------------------- */

#define MAX_NICS 64

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct coll__nic list[MAX_NICS]; /* written under `once` alone */
static int n_listed;

/* Without memory the list of devices is empty. */
static void look(void)
{
    struct coll__part machine = {.kind = PART_MACHINE, .index = -1};
    struct coll__topo topo = {.machine = &machine};

    if (!coll__verbs_load(&topo))
        coll__net_load(&topo);
    for (const struct coll__part *p = machine.first; p; p = p->next)
        if (p->kind == PART_NIC && n_listed < MAX_NICS)
            list[n_listed++] = p->nic;
    coll__part_free(machine.first);
}

int coll__carriers(const struct coll__nic **nics)
{
    pthread_once(&once, look);
    *nics = list;
    return n_listed;
}
