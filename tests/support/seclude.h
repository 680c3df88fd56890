/* SPDX-License-Identifier: BSD-3-Clause */
/* seclude.h - is anything left in /dev/shm or /tmp when a job has ended?
 *
 * Other programs of the machine write there, too, and so do the tests that run
 * beside this one.  So the process gets empty folders of its own.
 */
#ifndef COLL_TESTS_SECLUDE_H
#define COLL_TESTS_SECLUDE_H

#include <stddef.h>

/* Give this process, and the children that it makes from now on, a /dev/shm and
 * a /tmp that nobody else sees; 0 when it has no right to (user namespaces, or
 * root, are needed), else 1. */
int seclude(void);

/* Write the path of a file that is there into left, "" when there is none, and
 * delete what is there. */
void secluded_leftover(char *left, size_t len);

#endif
