/* SPDX-License-Identifier: BSD-3-Clause */
/* compare.h - COLL_CHECK: the ranks compare what they call for streams. */
#ifndef COLL_LIB_STREAM_COMPARE_H
#define COLL_LIB_STREAM_COMPARE_H

#include "lib/run/request.h"

/* Take a request by which the ranks compare a call for a stream: all have it
 * started, and it ends when all have called the same (of a message: a receive's, when
 * its sender has).  `places` is a digest of where registered buffers lie, or 0.  To be
 * put back.  Statuses, logged; as owner. */
int coll__compare_take(struct coll_comm *comm, const struct coll__problem *pb,
                       const struct coll__op *op, uint32_t places,
                       struct coll_request **request);
void coll__compare_put(struct coll_request *request);

/* All of that, without owning it: returns when it has ended. */
int coll__compare_call(struct coll_comm *comm, const struct coll__problem *pb,
                       const struct coll__op *op, uint32_t places);

#endif
