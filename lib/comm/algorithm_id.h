/* SPDX-License-Identifier: BSD-3-Clause */
/* algorithm_id.h - the algorithm of an operation as a few bits of its head: what some ranks do
 * by one and others by another gives wrong data, or no end. */
#ifndef COLL_LIB_COMM_ALGORITHM_ID_H
#define COLL_LIB_COMM_ALGORITHM_ID_H

#include "lib/comm/comm.h"

/* Stamp the request with what names its operation, but for the number.
 *
 * Result:    its head has no way where ranks may choose for themselves: of messages,
 *            and of operations of which no rank knows all counts.
 */
void coll__request_stamp(struct coll_request *request,
                         const struct coll__op *op);

/* Do the heads differ in the way alone? */
int coll__algorithm_ids_differ(const struct coll__head *a,
                               const struct coll__head *b);

/* As coll__head_describe(), and by which algorithm. */
void coll__algorithm_id_describe(const struct coll__head *head, char *text,
                                 size_t len);

#define COLL__SAME_ALGORITHM                                                   \
    "all ranks must have the same algorithm: set coll_args.algo alike"

#endif
