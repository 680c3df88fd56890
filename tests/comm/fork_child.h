/* SPDX-License-Identifier: BSD-3-Clause */
/* fork_child.h - children made by fork() in a test: they end well, and what their
 * parent sums meanwhile is right. */
#ifndef COLL_TESTS_FORK_CHILD_H
#define COLL_TESTS_FORK_CHILD_H

#include "tests/support/world.h"

#include <unistd.h>

#define DEADLINE 60
#define COUNT 300000

/* What is summed, COUNT elements. */
extern int in[COUNT], out[COUNT];

/* Set all of in; whether all of out is so. */
void fill(int value);
int is_filled(int value);

/* 0: sums of one element and of COUNT are right. */
int sums_well(struct world_rank *me, struct coll_comm *comm);

/* Fork; the child does not outlive the test. */
pid_t fork_child(void);

/* Did the child end well? */
int child_ends_well(pid_t pid);

/* Fork; the child evaluates what must be 0, and ends. */
#define CHILD_CHECK(me, failure)                                               \
    do {                                                                       \
        pid_t child = fork_child();                                            \
                                                                               \
        if (!child)                                                            \
            _exit(failure);                                                    \
        WORLD_CHECK(me, child_ends_well(child));                               \
    } while (0)

#endif
