/* SPDX-License-Identifier: BSD-3-Clause */
/* carrier.h - which network device carries the messages between two hosts, and
 * what they cost on it.
 *
 * The device is the one that the transport says it uses (UCX names it for a connected
 * peer).  Before a peer is connected, the device is guessed by UCX's rules: only devices
 * that the user allows, an active RDMA port before an interface, then the fastest, then
 * the nearest.  The bandwidth is the device's own (libibverbs for a port, /sys for an
 * interface) less the headers; the latency is that of the kind of device.  If no source
 * gives a reliable speed (a virtual interface), the speed is unknown, and the job times
 * some messages (lib/comm/measure.c).
 */
#ifndef COLL_LIB_TOPO_CARRIER_H
#define COLL_LIB_TOPO_CARRIER_H

#include "lib/topo/topo.h"

enum coll__wire { WIRE_RDMA, WIRE_TCP };

#define COLL__TCP_CORE                                                         \
    (1 / 3e9) /* s a byte: what one core sends by TCP, however many
                                  * connections and devices it has */

/* The cost of a message between hosts; the fields are as in struct coll__link of
 * transports/transport.h. */
struct coll__rate {
    double alpha, beta, gap; /* s, s a byte, s; gap 0: alpha includes it */
    double share; /* s a byte, counting all bytes that leave by the device at once */
    int is_known; /* 0: the device's speed is unknown, so these are guesses */
};

/* Price a wire of this kind over a device; nic is NULL if the device is unknown. */
struct coll__rate coll__carrier_rate(const struct coll__nic *nic,
                                     enum coll__wire wire);

/* What UCX may choose from. */
struct coll__carrier_wish {
    const char *devices;   /* UCX_NET_DEVICES; NULL or "all": any */
    const char *interface; /* interface of the default route; NULL or "": not known */
    int may_rdma;
    int numa_node; /* of the process, -1 not known */
};

/* Return the device that would be chosen, or NULL; *wire is its kind. */
const struct coll__nic *
coll__carrier_guess(const struct coll__nic *nics, int n,
                    const struct coll__carrier_wish *wish,
                    enum coll__wire *wire);

/* The steps of coll__carrier_guess(): is a device up, is it among those named (NULL or
 * "all": any), and is it a better choice than another one? */
int coll__carrier_is_up(const struct coll__nic *nic);
int coll__carrier_is_listed(const struct coll__nic *nic, const char *devices);
int coll__carrier_is_better(const struct coll__nic *a,
                            const struct coll__nic *b,
                            const struct coll__carrier_wish *wish);

/* Return the device of that name, "eth0", "mlx5_0" or "mlx5_0:1", or NULL. */
const struct coll__nic *coll__carrier_named(const struct coll__nic *nics, int n,
                                            const char *name);

/* List this host's devices, which the process reads only once.
 *
 * Result:    their number; *nics is static.
 * Threads:   any.
 */
int coll__carriers(const struct coll__nic **nics);

/* Write the interface of the default route; "" when there is none. */
void coll__carrier_route(char *name, size_t len);

/* Do so from a file like /proc/net/route. */
void coll__carrier_route_in(const char *path, char *name, size_t len);

/* Say in words what a device is: "mlx5_0 port 1, 200 Gbit/s by libibverbs". */
void coll__carrier_text(const struct coll__nic *nic, char *text, size_t len);

#endif
