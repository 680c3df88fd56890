/* SPDX-License-Identifier: BSD-3-Clause */
/* problem_op.c - how a reduction operation sets the fields of a problem. */
#include "lib/plan/problem_op.h"

/* May another order of combination give other bits? */
static int order_matters(const struct coll__op *op, enum coll_type type)
{
    if (op->fn)
        return 1;
    return coll__type_rounds(type) &&
           (op->base == COLL_SUM || op->base == COLL_PROD ||
            op->base == COLL_AVG);
}

void coll__problem_set_op(const struct coll__op *op, int is_reproducible,
                     struct coll__problem *pb)
{
    pb->op = op->post.is_set ? COLL_AVG : op->base;
    pb->is_user_op = op->fn != NULL;
    pb->is_hosts_op = coll__op_is_hosts(op, pb->type);
    if (!op->commutes)
        pb->order = ORDER_RANKS;
    else if (is_reproducible && order_matters(op, pb->type))
        pb->order = ORDER_CANONICAL;
    else
        pb->order = ORDER_FREE;
    if (op->pre.is_set) /* IN is then a copy */
        pb->in_place = 0;
}
