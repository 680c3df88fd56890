/* SPDX-License-Identifier: BSD-3-Clause */
/* own_op.h - the caller's own reduction in a program: while it runs, the communicator
 * refuses calls of the thread that runs it. */
#ifndef COLL_LIB_RUN_OWN_OP_H
#define COLL_LIB_RUN_OWN_OP_H

#include "lib/type/op.h"

struct coll_comm;

struct coll__own_op {
    struct coll_comm *comm;
    struct coll__op op;
};

/* Return the operation in the form in which a program calls it.  *own lives as long as the
 * program. */
struct coll__op coll__own_op_bind(struct coll__own_op *own,
                                  struct coll_comm *comm,
                                  const struct coll__op *op);

#endif
