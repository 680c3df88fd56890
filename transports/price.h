/* SPDX-License-Identifier: BSD-3-Clause */
/* price.h - what links cost, where transports know no better. */
#ifndef COLL_TRANSPORTS_PRICE_H
#define COLL_TRANSPORTS_PRICE_H

#include "lib/net/net.h"
#include "lib/topo/carrier.h"
#include "transports/transport.h"

/* Return what each message waits, in s, where ranks share a core: for the peer's
 * time slice. */
double coll__price_crowd(const struct coll__tp_env *env);

/* Price a way through sockets to a rank of this host, by estimate. */
void coll__price_loopback(const struct coll__tp_env *env,
                          struct coll__link *link);

/* Price a wire of that kind over a device; nic NULL: one that nobody knows, called
 * `device`. */
void coll__price_device(const struct coll__nic *nic, enum coll__wire wire,
                        const char *device, struct coll__link *link);

/* The same over n alike devices at once, among which what is large is divided. */
void coll__price_rails(int n, struct coll__link *link);

/* Price a connection to that address, by the interface that leads there. */
void coll__price_tcp(const struct coll__addr *to, struct coll__link *link);

/* The same to other hosts, of which nobody knows more. */
void coll__price_way_out(struct coll__link *link);

/* Say it in words. */
void coll__price_note(const struct coll__link *link, char *note, size_t len);

#endif
