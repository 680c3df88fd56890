/* SPDX-License-Identifier: BSD-3-Clause */
/* compare.h - COLL_CHECK: the ranks compare their calls for streams. */
#ifndef COLL_LIB_STREAM_COMPARE_H
#define COLL_LIB_STREAM_COMPARE_H

#include <stdint.h>

struct coll__op;
struct coll__problem;
struct coll_comm;
struct coll_request;

/* Take a request that compares a call for a stream, and put it back.  All ranks start
 * it; it ends when all have made the same call.  For a receive it ends when the sender
 * has made its call.  `places` is a digest of the places of registered buffers, or 0.
 * Statuses, logged; as owner. */
int coll__compare_take(struct coll_comm *comm, const struct coll__problem *pb,
                       const struct coll__op *op, uint32_t places,
                       struct coll_request **request);
void coll__compare_put(struct coll_request *request);

/* Do all of this and wait for its end; not as owner. */
int coll__compare_call(struct coll_comm *comm, const struct coll__problem *pb,
                       const struct coll__op *op, uint32_t places);

#endif
