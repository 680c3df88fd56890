/* SPDX-License-Identifier: BSD-3-Clause */
/* crash.h - end a process in the middle of its n-th call of libc. */
#ifndef COLL_TESTS_CRASH_H
#define COLL_TESTS_CRASH_H

#include <stdatomic.h>

/* Let this process end at its n-th call of libc from now on, in any thread, by
 * the signal or, for 0, by _exit().  *struck then says when. */
void crash_arm(int n_calls, int how, _Atomic double *struck);

/* Another call: the n-th one ends here. */
void crash_tick(void);

/* Count there what this process sends to sockets, from now on. */
void crash_count_sent(atomic_int *n_sent);

/* Set *is_ucx if this process is ended by an assertion of UCX. */
void crash_count_ucx(atomic_int *is_ucx);

#endif
