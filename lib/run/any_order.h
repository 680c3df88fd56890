/* SPDX-License-Identifier: BSD-3-Clause */
/* any_order.h - requests that ranks may start in different orders (coll_args.any_order). */
#ifndef COLL_LIB_RUN_ANY_ORDER_H
#define COLL_LIB_RUN_ANY_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct coll_args;
struct coll_comm;
struct coll_request;

/* COLL_OK, or COLL_ERR_INVALID, logged, if args.any_order is wrong. */
int coll__any_order_check(const struct coll_args *args);

/* Count one more request of the communicator: every rank does so for each call that makes
 * one, whether the call succeeds or not.  Returns the request's number.  As owner. */
uint32_t coll__any_order_count(struct coll_comm *comm);

/* Give the request that number.  COLL_OK or COLL_ERR_NOMEM, logged.  The request must leave
 * before it is freed.  As owner. */
int coll__any_order_join(struct coll_request *request, uint32_t number);
void coll__any_order_leave(struct coll_request *request);

/* Start a request that has joined and is not running: it begins when all ranks have
 * started it.  COLL_OK, or the communicator's failure.  As owner. */
int coll__any_order_start(struct coll_request *request);

/* Hear from other ranks, and begin what they have started too.  COLL_OK, or the
 * communicator's failure.  As owner. */
int coll__any_order_move(struct coll_comm *comm, int *moved);

/* Return how many times this rank has started the request with that number.  Any
 * thread. */
uint32_t coll__any_order_n_starts(const struct coll_comm *comm,
                                  uint32_t number);

/* Free what is kept; also in a child. */
void coll__any_order_forget(struct coll_comm *comm);

/* The bytes of what is kept. */
size_t coll__any_order_bytes(const struct coll_comm *comm);

#endif
