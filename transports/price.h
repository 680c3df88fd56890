/* SPDX-License-Identifier: BSD-3-Clause */
/* price.h - estimated link prices, for transports without better data. */
#ifndef COLL_TRANSPORTS_PRICE_H
#define COLL_TRANSPORTS_PRICE_H

#include "lib/net/net.h"
#include "lib/topo/carrier.h"
#include "transports/transport.h"

/* Return how long each message waits, in s, for the peer's time slice if ranks share a
 * core. */
double coll__price_crowd(const struct coll__tp_env *env);

/* Estimate the price of a socket to a rank of this host. */
void coll__price_loopback(const struct coll__tp_env *env,
                          struct coll__link *link);

/* Price a wire of that kind over a device; nic NULL: the device is unknown, `device` is
 * its name. */
void coll__price_device(const struct coll__nic *nic, enum coll__wire wire,
                        const char *device, struct coll__link *link);

/* Price n equal devices used at once; large messages are divided among them. */
void coll__price_rails(int n, struct coll__link *link);

/* Price messages that n connections over equal interfaces share, from the price of one
 * connection. */
void coll__price_ways(int n, struct coll__link *link);

/* Price a connection to that address, by the interface of its route. */
void coll__price_tcp(const struct coll__addr *to, struct coll__link *link);

/* Price a connection to hosts whose addresses are unknown. */
void coll__price_way_out(struct coll__link *link);

/* Say it in words. */
void coll__price_note(const struct coll__link *link, char *note, size_t len);

#endif
