/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_held.h - what graphs need when they are launched.
 *
 * An owner, such as a communicator, may end before its graphs.  What they need then lasts
 * until the last of them is gone.  CUDA says so on a thread that may not call CUDA, so the
 * end comes at a later call of the library (coll__cuda_held_reclaim()).
 */
#ifndef COLL_LIB_DEVICE_CUDA_HELD_H
#define COLL_LIB_DEVICE_CUDA_HELD_H

#include <stdatomic.h>

/* A member of the object; all zero at first, but for `end`. */
struct coll__cuda_held {
    void (*end)(struct coll__cuda_held *held); /* frees the object */
    atomic_int n_graphs;
    struct coll__cuda_held *next;
};

/* The graph that is being captured on the stream needs the object; the stream's context is
 * current.  By the owner's thread.  A status, logged: then the graph does not. */
int coll__cuda_held_add(struct coll__cuda_held *held, void *stream);

/* Does a graph need it?  By the owner; a graph that is gone may count for a while. */
static inline int coll__cuda_is_held(const struct coll__cuda_held *held)
{
    return atomic_load(&held->n_graphs) > 0;
}

/* The owner is done with it: end it now, or when no graph needs it. */
void coll__cuda_held_leave(struct coll__cuda_held *held);

/* End what was left and is not needed any more.  Any thread that may call CUDA. */
void coll__cuda_held_reclaim(void);

#endif
