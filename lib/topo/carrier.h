/* SPDX-License-Identifier: BSD-3-Clause */
/* carrier.h - which network device carries the messages between two hosts, and
 * what they cost on it.
 *
 * Which one: the device that the transport says it uses (UCX names it for a
 * connected peer); where nothing is connected yet, a guess by what UCX goes by:
 * the devices that the user allows, an active RDMA port before an interface,
 * the fastest first, then the nearest.  What it costs: the bandwidth is the
 * device's own (libibverbs for a port, /sys for an interface) less what headers
 * take, the latency that of its kind.  A speed that nobody vouches for (a
 * virtual interface's) is unknown, and a job then times two messages
 * (lib/comm/measure.c).
 */
#ifndef COLL_LIB_TOPO_CARRIER_H
#define COLL_LIB_TOPO_CARRIER_H

#include "lib/topo/topo.h"

enum coll__wire { WIRE_RDMA, WIRE_TCP };

/* What a message costs between hosts, as struct coll__link of
 * transports/transport.h has it. */
struct coll__rate {
    double alpha, beta, gap; /* s, s a byte, s; gap 0: a part of alpha */
    double share; /* s a byte of all that leaves by the device at once */
    int is_known; /* 0: the device's speed is not, so these are guesses */
};

/* Price the wire of a kind over a device; NULL: not known which. */
struct coll__rate coll__carrier_rate(const struct coll__nic *nic,
                                     enum coll__wire wire);

/* What UCX may choose from. */
struct coll__carrier_wish {
    const char *devices;   /* UCX_NET_DEVICES; NULL or "all": any */
    const char *interface; /* of the host's way out; NULL or "": not known */
    int may_rdma;
    int numa_node; /* of the process, -1 not known */
};

/* Return the device that would be chosen, or NULL; *wire is its kind. */
const struct coll__nic *
coll__carrier_guess(const struct coll__nic *nics, int n,
                    const struct coll__carrier_wish *wish,
                    enum coll__wire *wire);

/* The same in parts: is a device up, among those named (NULL or "all": any), and
 * a better choice than another one? */
int coll__carrier_is_up(const struct coll__nic *nic);
int coll__carrier_is_listed(const struct coll__nic *nic, const char *devices);
int coll__carrier_is_better(const struct coll__nic *a,
                            const struct coll__nic *b,
                            const struct coll__carrier_wish *wish);

/* Return the device of that name, "eth0", "mlx5_0" or "mlx5_0:1", or NULL. */
const struct coll__nic *coll__carrier_named(const struct coll__nic *nics, int n,
                                            const char *name);

/* List this host's devices, looked at once in a process's life.
 *
 * Result:    their number; *nics is static.
 * Threads:   any.
 */
int coll__carriers(const struct coll__nic **nics);

/* Write the interface of the default route; "" when there is none. */
void coll__carrier_route(char *name, size_t len);

/* The same from a file like /proc/net/route. */
void coll__carrier_route_in(const char *path, char *name, size_t len);

/* Say in words what a device is: "mlx5_0 port 1, 200 Gbit/s by libibverbs". */
void coll__carrier_text(const struct coll__nic *nic, char *text, size_t len);

#endif
