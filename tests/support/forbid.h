/* SPDX-License-Identifier: BSD-3-Clause */
/* forbid.h - take away from a process what some machines do not give it. */
#ifndef COLL_TESTS_FORBID_H
#define COLL_TESTS_FORBID_H

/* Forbid process_vm_readv() in the calling thread, and in all threads and
 * processes that it makes from now on: it fails with EPERM, as in a container
 * with a strict seccomp profile.  There is no way back.
 *
 * Result:    0; -1 and errno where the kernel has no seccomp filters.
 */
int forbid_cma(void);

/* The same for membarrier(), futex_waitv(), accept4() and epoll_wait(); for send(),
 * recv(), poll() and ppoll(). */
int forbid_fences(void);
int forbid_waitv(void);
int forbid_accept(void);
int forbid_epoll(void);
int forbid_send(void);
int forbid_recv(void);
int forbid_poll(void);
int forbid_ppoll(void);

#endif
