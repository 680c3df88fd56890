/* SPDX-License-Identifier: BSD-3-Clause */
/* topo.h - what this machine is made of, and which ranks share it.
 *
 * hwloc.c finds packages, NUMA nodes, caches and cores; verbs.c the RDMA
 * devices and their ports; topo.c puts them into one description and groups
 * the ranks by host; text.c writes it as a tree, XML or dot.
 */
#ifndef COLL_LIB_TOPO_TOPO_H
#define COLL_LIB_TOPO_TOPO_H

#include "include/coll/coll.h"
#include "lib/topo/peer.h"

#include <sched.h>

#define COLL__FABRIC 56 /* bytes of a network's name */

/* A network device as libibverbs (or the kernel's list of interfaces) knows
 * it. */
struct coll__nic {
    char name[32];       /* "mlx5_0", "eth0" */
    char port_state[16]; /* "active", "down", ... */
    int port;            /* of an RDMA device, from 1; 0 for an interface */
    int is_rdma;
    int numa_node; /* os index, -1 unknown */
    double gbits;  /* link speed, Gbit/s; 0 unknown */
    char bus[16];  /* its place on PCI, "0000:41:00.0"; "" none */
    char fabric[COLL__FABRIC]; /* the network that an RDMA port is on
                                * (lib/topo/rails.h); "" not known */
};

struct coll__topo; /* this machine */

/* Describe this machine (or what COLL_TOPO_FILE holds).
 *
 * Ownership: *topo is the caller's, to end by coll__topo_destroy().
 * Errors:    COLL_ERR_SYSTEM, COLL_ERR_NOMEM, COLL_ERR_INVALID (the file),
 *            logged.
 */
int coll__topo_create(struct coll__topo **topo);
void coll__topo_destroy(struct coll__topo *topo);

/* Write it in that format into *text, to be released by free(). */
int coll__topo_format(const struct coll__topo *topo,
                      enum coll_topo_format format, char **text);

/* Fill in this process's own entry: host_id (boot id and network namespace),
 * pid, pid namespace, its quota of the processors' time, cores it may run on, and
 * what of the machine holds them, by COLL_TOPO_FILE where that is set.  host and
 * local_* stay 0.
 *
 * Errors:    as coll__topo_create(), of the file alone.
 */
int coll__topo_self(struct coll__peer *peer);

/* Given every rank's entry, fill in host, local_rank, local_size and
 * local_cores of each (ranks with equal cpusets share their cores, others have
 * their own; a quota is shared by its control group).  Returns the number of
 * hosts, or COLL_ERR_NOMEM (logged). */
int coll__topo_group(struct coll__peer *peers, int size);

/* Where a thread can sit that serves a rank's process in the background. */
struct coll__seat {
    int has_core; /* there is one for such a thread of each rank of the host, and
                   * its control group has the time */
    cpu_set_t *spare; /* processors that no rank of the host is bound to; NULL
                       * where there are none */
    size_t len;      /* bytes of it */
};

/* Find a seat for one of this rank's; afterwards free it by CPU_FREE(spare).
 *
 * Threads:   any that holds a struct coll__lock: a fork meanwhile would leave
 *            the child without hwloc.
 * Cost:      some ms: hwloc looks at the machine.
 */
void coll__topo_seat(const struct coll__peer *peers, int size, int rank,
                     struct coll__seat *seat);

#endif
