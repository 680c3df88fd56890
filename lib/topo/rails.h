/* SPDX-License-Identifier: BSD-3-Clause */
/* rails.h - which ports of RDMA devices a process uses between hosts.
 *
 * Ports reach each other where they are of one network: an InfiniBand subnet, or
 * for RoCE one of IP.  Each rank tells the others on which networks it has a port
 * that is up; a communicator uses the one that joins the most hosts, and each
 * rank its fastest port there, of equal ones the nearest to its cores; several
 * that are equal in both are rails.  Where the user names devices, they are taken
 * to reach each other, as one network but for their kind, and are all rails.
 */
#ifndef COLL_LIB_TOPO_RAILS_H
#define COLL_LIB_TOPO_RAILS_H

#include "lib/topo/carrier.h"

#include <ifaddrs.h>
#include <stdint.h>

#define COLL__RAILS 4 /* at most */

struct coll__rails {
    char devices[COLL__RAILS * 40]; /* "mlx5_0:1,mlx5_1:1" as UCX names them;
                                     * "": there is none */
    int n;
    int is_soft;   /* one is made by software: it is on no bus */
    int is_others; /* one has a driver that is not NVIDIA's */
    char why[512]; /* which, and why not the others, for people */
};

/* Name the network of an RDMA port: "ib fe80:0:0:0", "roce 10.1.0.0/16".
 *
 * Shapes:    device_dir is like /sys/class/infiniband/mlx5_0; all: the
 *            addresses of this host, for their masks.
 * Result:    "" where UCX has no use for the port (iWARP), or nothing can be read.
 * Cost:      reads up to some dozens of small files.
 */
void coll__port_fabric(const char *device_dir, int port,
                       const struct ifaddrs *all, char fabric[COLL__FABRIC]);

/* List the networks that this process can use, as numbers, the best first; the
 * rest is 0.  wish as for coll__carrier_guess(). */
void coll__rails_fabrics(const struct coll__nic *nics, int n,
                         const struct coll__carrier_wish *wish,
                         uint32_t fabrics[COLL__FABRICS]);

/* Return the network that the most hosts have, the same on every rank; 0: none has
 * one.  *n_hosts: how many that are. */
uint32_t coll__rails_common(const struct coll__peer *peers, int size,
                            int *n_hosts);

/* Say whether a rank has a port there. */
int coll__rails_has(const struct coll__peer *peer, uint32_t fabric);

/* Choose this process's ports on that network. */
void coll__rails_choose(const struct coll__nic *nics, int n,
                        const struct coll__carrier_wish *wish, uint32_t fabric,
                        struct coll__rails *rails);

#endif
