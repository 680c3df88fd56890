/* SPDX-License-Identifier: BSD-3-Clause */
/* fence.h - a full fence in all threads, which one thread executes for them.
 *
 * Two threads each store a word and then load the other's word.  Both need a full fence
 * in between, or both may miss the other's store.  If one does so often and the other
 * rarely, the rare one can execute the fence for both: the kernel interrupts the threads
 * that run (membarrier(2)).  Then the frequent one needs only a compiler barrier.
 */
#ifndef COLL_LIB_UTIL_FENCE_H
#define COLL_LIB_UTIL_FENCE_H

#include <stdatomic.h>

/* Register this process for the fences of others.
 *
 * Result:    0, or -1: the kernel (before 4.16) or a filter refuses.
 * Threads:   any.
 * Cost:      1 us while the process has one thread, else 10 to 20 ms; nothing
 *            once it is registered.
 */
int coll__fence_join(void);

/* Execute a full fence in this thread and in every thread T of the registered processes.
 * Either this thread sees after the fence what T stored before it, or T sees what this
 * thread stored before it.  Returns 0, or -1 if there was no fence. */
int coll__fence_all(void);

/* The compiler barrier of the frequent thread, between its store and its load. */
static inline void coll__fence_light(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

#endif
