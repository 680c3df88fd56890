/* SPDX-License-Identifier: BSD-3-Clause */
/* bounds.h - which bytes a single step of a plan may touch. */
#ifndef COLL_LIB_PROOF_BOUNDS_H
#define COLL_LIB_PROOF_BOUNDS_H

#include "lib/plan/plan.h"

/* Check each step of one rank's plan alone: the peer exists; writes are within OUT and
 * TMP; the spans have one length and do not overlap, or, in a RECV_REDUCE, are the
 * same; elements are whole; no RECV_REDUCE has a user's operation.
 *
 * Errors:    COLL_ERR_INVALID with the fault in why[len].
 */
int coll__plan_bounds(const struct coll__problem *pb,
                      const struct coll__plan *plan, char *why, size_t len);

#endif
