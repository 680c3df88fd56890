/* SPDX-License-Identifier: BSD-3-Clause */
/* fence.h - a full fence that one thread has all others execute.
 *
 * Two threads that each store and then load what the other one stores need a
 * full fence in between, or both may miss the other's store.  Where one of them
 * does so all the time and the other one hardly ever, the rare one can have the
 * fence for both: the kernel then interrupts whoever runs (membarrier(2)), and
 * the frequent one only keeps its compiler from changing the order.
 */
#ifndef COLL_LIB_UTIL_FENCE_H
#define COLL_LIB_UTIL_FENCE_H

#include <stdatomic.h>

/* Let this process take part in the fences of others.
 *
 * Result:    0, or -1: the kernel (before 4.16), or a filter, does not let it.
 * Threads:   any.
 * Cost:      1 us while the process has one thread, else 10 to 20 ms; nothing
 *            once it takes part.
 */
int coll__fence_join(void);

/* A full fence in this thread and in every thread of the processes that take
 * part: of each of them, what it did before the fence is seen by what this
 * thread does after it, or what it does after the fence sees what this thread
 * did before.  0, or -1: there was none. */
int coll__fence_all(void);

/* The frequent one's part, between its store and its load. */
static inline void coll__fence_light(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

#endif
