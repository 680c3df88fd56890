/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_price.h - by which network device UCX reaches other hosts; needs no UCX. */
#ifndef COLL_TRANSPORTS_UCX_PRICE_H
#define COLL_TRANSPORTS_UCX_PRICE_H

#include <stddef.h>

/* Find the device in what ucp_ep_print_info() writes of an endpoint: that of
 * the first lane which leaves the host.  1, or 0: there is none. */
int coll__ucx_lane(const char *text, char device[32], int *is_rdma);

/* Say whether UCX, if it is used here, goes by RDMA to other hosts. */
int coll__ucx_has_rdma(void);

/* Say which device a job is likely to use on this machine, and its price. */
void coll__ucx_note(char *note, size_t len);

#endif
