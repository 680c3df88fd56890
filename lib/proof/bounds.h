/* SPDX-License-Identifier: BSD-3-Clause */
/* bounds.h - what a single step of a plan may touch. */
#ifndef COLL_LIB_PROOF_BOUNDS_H
#define COLL_LIB_PROOF_BOUNDS_H

#include "lib/plan/plan.h"

/* Judge each step of one rank's plan by itself: peers there are, writes within
 * OUT and TMP, spans of one length that lie apart or, of a RECV_REDUCE, are the
 * same, whole elements, and no RECV_REDUCE for a user's operation.
 *
 * Errors:    COLL_ERR_INVALID with the fault in why[len].
 */
int coll__plan_bounds(const struct coll__problem *pb,
                      const struct coll__plan *plan, char *why, size_t len);

#endif
