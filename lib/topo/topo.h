/* SPDX-License-Identifier: BSD-3-Clause */
/* topo.h - the parts of this machine, and which ranks share it.
 *
 * hwloc.c finds packages, NUMA nodes, caches and cores; verbs.c finds RDMA devices and
 * their ports; topo.c puts them into one description and groups the ranks by host;
 * render.c writes it as a tree or for dot.
 */
#ifndef COLL_LIB_TOPO_TOPO_H
#define COLL_LIB_TOPO_TOPO_H

#include "include/coll/coll.h"
#include "lib/topo/peer.h"

#include <sched.h>

#define COLL__FABRIC 56 /* bytes of a network's name */

/* A network device, from libibverbs or the kernel's list of interfaces. */
struct coll__nic {
    char name[32];       /* "mlx5_0", "eth0" */
    char port_state[16]; /* "active", "down", ... */
    int port;            /* port of an RDMA device, from 1; 0 for an interface */
    int is_rdma;
    int numa_node; /* os index, -1 unknown */
    double gbits;  /* link speed, Gbit/s; 0 unknown */
    char bus[16];  /* its PCI address, "0000:41:00.0"; "" none */
    char fabric[COLL__FABRIC]; /* the network of an RDMA port (lib/topo/rails.h); "" not
                                * known */
};

struct coll__topo; /* this machine */

/* Describe this machine, or the one in COLL_TOPO_FILE.
 *
 * Ownership: the caller ends *topo by coll__topo_destroy().
 * Errors:    COLL_ERR_SYSTEM, COLL_ERR_NOMEM, COLL_ERR_INVALID (the file),
 *            logged.
 */
int coll__topo_create(struct coll__topo **topo);
void coll__topo_destroy(struct coll__topo *topo);

/* Write the description in this format into *text; the caller frees it. */
int coll__topo_format(const struct coll__topo *topo,
                      enum coll_topo_format format, char **text);

/* Fill in this process's own entry: host_id (boot id and network namespace), pid, pid
 * namespace, its quota, the cores that it may run on, and the parts of the machine that
 * hold them (of COLL_TOPO_FILE if it is set). host and local_* stay 0.
 *
 * Errors:    as coll__topo_create(), but only about the file.
 */
int coll__topo_self(struct coll__peer *peer);

/* From every rank's entry, fill in host, local_rank, local_size and local_cores of each.
 * Ranks with equal cpusets share their cores, others have their own; the ranks of a
 * control group share its quota.  Returns the number of hosts, or COLL_ERR_NOMEM
 * (logged). */
int coll__topo_group(struct coll__peer *peers, int size);

/* The cores for a background thread of a rank's process. */
struct coll__seat {
    /* each rank of the host can have a core for its thread, and its control group's
     * quota suffices */
    int has_core;
    cpu_set_t *spare; /* processors that no rank of the host is bound to; NULL if there
                       * are none */
    size_t len;      /* bytes of it */
};

/* Find the cores for one thread of this rank; the caller frees them by CPU_FREE(spare).
 *
 * Threads:   any that holds a struct coll__lock: after a fork during the call, the child
 *            could not use hwloc.
 * Cost:      some ms: hwloc looks at the machine.
 */
void coll__topo_seat(const struct coll__peer *peers, int size, int rank,
                     struct coll__seat *seat);

#endif
