/* SPDX-License-Identifier: BSD-3-Clause */
/* rails.h - which ports of RDMA devices a process uses between hosts.
 *
 * Ports on one network reach each other: an InfiniBand subnet or, for RoCE, an IP subnet.
 * Each rank tells the others on which networks it has a port that is up.  A communicator
 * uses the network that joins the most hosts.  Each rank uses its fastest port there;
 * among equally fast ports, the nearest to its cores.  Several ports that are equal in
 * both are rails.  If the user names devices, all of these are rails, and those of one
 * kind are taken to be on one network.
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
    int is_soft;   /* one port is made by software: it is on no bus */
    int is_others; /* one port has a driver that is not NVIDIA's */
    char why[512]; /* the choice and its reasons, in words */
};

/* Name the network of an RDMA port: "ib fe80:0:0:0", "roce 10.1.0.0/16".
 *
 * Shapes:    device_dir is like /sys/class/infiniband/mlx5_0; `all` has this host's
 *            addresses, for their masks.
 * Result:    "" if UCX cannot use the port (iWARP), or nothing can be read.
 * Cost:      reads up to some dozens of small files.
 */
void coll__port_fabric(const char *device_dir, int port,
                       const struct ifaddrs *all, char fabric[COLL__FABRIC]);

/* List the numbers of the networks that this process can use, the best first; unused
 * entries are 0. wish is as for coll__carrier_guess(). */
void coll__rails_fabrics(const struct coll__nic *nics, int n,
                         const struct coll__carrier_wish *wish,
                         uint32_t fabrics[COLL__FABRICS]);

/* Return the network that joins the most hosts, the same on every rank, and set *n_hosts
 * to their number; 0 if no rank has one. */
uint32_t coll__rails_common(const struct coll__peer *peers, int size,
                            int *n_hosts);

/* Say whether a rank has a port on that network. */
int coll__rails_has(const struct coll__peer *peer, uint32_t fabric);

/* Choose this process's ports on that network. */
void coll__rails_choose(const struct coll__nic *nics, int n,
                        const struct coll__carrier_wish *wish, uint32_t fabric,
                        struct coll__rails *rails);

#endif
