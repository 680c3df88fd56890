/* SPDX-License-Identifier: BSD-3-Clause */
/* problem_op.h - what a reduction operation asks of a problem. */
#ifndef COLL_LIB_PLAN_PROBLEM_OP_H
#define COLL_LIB_PLAN_PROBLEM_OP_H

#include "lib/plan/plan.h"
#include "lib/type/op.h"

/* Write what follows from its operation into a reduction's problem: op, is_user_op
 * and order; premul never works in place.
 *
 * Shapes:    pb->type is set, and pb->in_place as the buffers say;
 *            is_reproducible: the same bits are asked for whatever the
 *            algorithm.
 */
void coll__problem_set_op(const struct coll__op *op, int is_reproducible,
                          struct coll__problem *pb);

#endif
