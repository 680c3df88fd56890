/* SPDX-License-Identifier: BSD-3-Clause */
/* yield.h - yield the core to another thread. */
#ifndef COLL_LIB_UTIL_YIELD_H
#define COLL_LIB_UTIL_YIELD_H

/* Say whether the calling thread has a real-time priority: it keeps its core from all
 * threads of a lower one until it sleeps, and a yield lets only those of the same
 * priority run.  Cost: a system call. */
int coll__is_real_time(void);

/* Let any other thread run: yield or, in a thread of real-time priority, sleep for
 * 50 us. */
void coll__yield(void);

#endif
