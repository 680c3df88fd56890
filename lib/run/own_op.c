/* SPDX-License-Identifier: BSD-3-Clause */
/* own_op.c - the caller's own reduction in a program; see own_op.h. */
#include "lib/run/own_op.h"
#include "lib/comm/comm.h"
#include "lib/run/run.h"

#include <pthread.h>
#include <stdatomic.h>

/* Call the caller's function; meanwhile `calling` names the thread that runs it. */
static void call_own(const void *left, const void *right, void *out,
                     size_t count, enum coll_type type, void *arg)
{
    const struct coll__own_op *own = arg;
    struct coll__run *run = own->comm->run;

    atomic_store_explicit(&run->calling, pthread_self(), memory_order_relaxed);
    own->op.fn(left, right, out, count, type, own->op.arg);
    atomic_store_explicit(&run->calling, 0, memory_order_relaxed);
}

struct coll__op coll__own_op_bind(struct coll__own_op *own,
                                  struct coll_comm *comm,
                                  const struct coll__op *op)
{
    struct coll__op to = *op;

    own->comm = comm;
    own->op = *op;
    if (op->fn) {
        to.fn = call_own;
        to.arg = own;
    }
    return to;
}
