/* SPDX-License-Identifier: BSD-3-Clause */
/* world.h - N ranks in a test: as processes or as threads.
 *
 * Processes find each other through a page that they share, threads through
 * memory; both join by coll_comm_create_oob(), so no launcher is needed.
 */
#ifndef COLL_TESTS_WORLD_H
#define COLL_TESTS_WORLD_H

#include "include/coll/coll.h"

#include <sys/types.h>

struct world_rank {
    int rank, size;
    struct coll_oob oob; /* to join with, any number of times */
    void *arg;
    pid_t *pids; /* [size] of processes; NULL for threads */
};

/* What a rank does; 0 when all is well. */
typedef int world_fn(struct world_rank *me);

/* Run fn in `size` forked processes.
 *
 * Result:    the number of ranks that returned something else than 0, or were
 *            killed (a rank killed by the test's own SIGKILL counts), or had
 *            to be killed because `deadline` seconds passed.
 */
int world_fork(int size, world_fn *fn, void *arg, double deadline);

/* Run fn in `size` threads of this process; as world_fork(), but a deadline
 * that passes ends the whole process. */
int world_threads(int size, world_fn *fn, void *arg, double deadline);

/* Print what is not as it should be, and return 1 from the rank's function. */
#define WORLD_CHECK(me, what)                                            \
    do {                                                                 \
        if (!(what)) {                                                   \
            fprintf(stderr, "rank %d of %d, %s:%d: %s (%s)\n",           \
                    (me)->rank, (me)->size, __FILE__, __LINE__, #what,   \
                    coll_last_error());                                  \
            return 1;                                                    \
        }                                                                \
    } while (0)

/* Expect this status, and these words in the sentence that explains it. */
#define EXPECT(me, rc, code, words)                                      \
    do {                                                                 \
        WORLD_CHECK(me, (rc) == (code));                                 \
        WORLD_CHECK(me, strstr(coll_last_error(), words));               \
    } while (0)

#endif
