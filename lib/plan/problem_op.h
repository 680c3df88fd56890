/* SPDX-License-Identifier: BSD-3-Clause */
/* problem_op.h - how a reduction operation sets the fields of a problem. */
#ifndef COLL_LIB_PLAN_PROBLEM_OP_H
#define COLL_LIB_PLAN_PROBLEM_OP_H

#include "lib/plan/plan.h"
#include "lib/type/op.h"

/* Set the fields of a reduction's problem that follow from its operation: op,
 * is_user_op, is_hosts_op and order.  An operation with a factor for its input, such as an
 * average of f16 or bf16 (coll__op_for()), never works in place.
 *
 * Shapes:    pb->type and pb->in_place are set before;
 *            is_reproducible: the caller wants the same bits from each algorithm.
 */
void coll__problem_set_op(const struct coll__op *op, int is_reproducible,
                          struct coll__problem *pb);

#endif
