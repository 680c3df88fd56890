/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_price.h - by which network device UCX reaches other hosts, and UCX's version; needs
 * no UCX. */
#ifndef COLL_TRANSPORTS_UCX_PRICE_H
#define COLL_TRANSPORTS_UCX_PRICE_H

#include "lib/topo/rails.h"

#include <stddef.h>

/* Find the device in the output of ucp_ep_print_info(): that of the first lane that
 * leaves the host.  Returns 1, or 0 if there is none. */
int coll__ucx_lane(const char *text, char device[32], int *is_rdma);

/* Fill in the RDMA networks that UCX, if used here, can reach other hosts by, for a
 * process of that NUMA node (-1: unknown). */
void coll__ucx_fabrics(int numa_node, uint32_t fabrics[COLL__FABRICS]);

/* Choose its ports on one of them. */
void coll__ucx_rails(int numa_node, uint32_t fabric, struct coll__rails *rails);

/* Describe the device that a job is likely to use on this machine, and its price. */
void coll__ucx_note(char *note, size_t len);

/* Describe which UCX this process loads, and from which file; or why none. */
void coll__ucx_loaded(char *text, size_t len);

#endif
