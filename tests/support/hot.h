/* SPDX-License-Identifier: BSD-3-Clause */
/* hot.h - what a thread does that a repeated call need not do.  A test that is linked with
 * it has its own malloc family, mutexes and system calls, which count; glibc's do the
 * work. */
#ifndef COLL_TESTS_HOT_H
#define COLL_TESTS_HOT_H

/* Sanitizers have malloc for themselves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOT_COUNTS 0
#else
#define HOT_COUNTS 1
#endif

struct hot {
    long allocations; /* and what is freed */
    long locks;       /* mutexes that were taken */
    long system_calls;
};

/* Calls from code of the library whose file name contains `part`, loaded by now, do not
 * count. */
void hot_leave_out(const char *part);

/* All of this thread so far. */
struct hot hot_now(void);

#endif
