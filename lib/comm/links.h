/* SPDX-License-Identifier: BSD-3-Clause */
/* links.h - open and close the transports of a communicator. */
#ifndef COLL_LIB_COMM_LINKS_H
#define COLL_LIB_COMM_LINKS_H

#include <stddef.h>

struct coll__options;
struct coll__tp_env;
struct coll_comm;

/* Open transports in order of preference until all ranks reach each other, and
 * agree on the links' cost.  Collective.  Logged; closed by links_close(). */
int coll__comm_links_open(struct coll_comm *comm,
                          const struct coll__options *options);

/* Gather len bytes of each rank over the control tree; arg: the communicator. */
int coll__comm_exchange(void *arg, const void *in, size_t len, void *out);

/* The same, into memory that is the caller's to free; NULL: *rc is a status, logged. */
void *coll__comm_exchange_new(struct coll_comm *comm, const void *in,
                              size_t len, int *rc);

/* Describe the communicator for a transport.  The secret is not filled in: each
 * transport has one of its own. */
struct coll__tp_env coll__comm_env(struct coll_comm *comm);

void coll__comm_links_close(struct coll_comm *comm, int is_orderly);

#endif
