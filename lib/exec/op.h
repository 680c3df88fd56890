/* SPDX-License-Identifier: BSD-3-Clause */
/* op.h - what a reduction operation is: built in, or the caller's own.
 *
 * A caller's operation is known by a handle, a value of enum coll_op from
 * COLL_N_OPS on.  Whoever uses one copies what it stands for and needs the
 * handle no more.
 */
#ifndef COLL_LIB_EXEC_OP_H
#define COLL_LIB_EXEC_OP_H

#include "lib/plan/plan.h"

struct coll__op {
    enum coll_op base; /* SUM for the caller's own */
    coll_user_fn *fn;  /* NULL: base's kernel */
    void *arg;
    int commutes;
    int is_premul; /* IN times scalar first; of `type` alone */
    enum coll_type type;
    unsigned char scalar[8];
};

/* Look an operation up: a built-in one or a handle.
 *
 * Errors:    COLL_ERR_INVALID, not logged; *out is untouched.
 * Threads:   any, while nobody destroys that operation.
 * Cost:      no lock.
 */
int coll__op_get(enum coll_op op, struct coll__op *out);

/* Say whether the operation is defined for that type. */
int coll__op_takes(const struct coll__op *op, enum coll_type type);

/* Write what follows from its operation into a reduction's problem: op,
 * is_user_op, order, and that premul never works in place.
 *
 * Shapes:    pb->type is there, and pb->in_place as the buffers say;
 *            is_reproducible: the same bits are asked for whatever the
 *            algorithm.
 */
void coll__op_apply(const struct coll__op *op, int is_reproducible,
                    struct coll__problem *pb);

/* Return what a message's head says of the operation (head.h). */
uint8_t coll__op_code(const struct coll__op *op);

#endif
