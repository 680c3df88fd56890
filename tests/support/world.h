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

/* The network that tests use between the ranks of this machine: TEST_NET, ucx or tcp,
 * or tcp.  world_net() returns its name behind a prefix, "self,tcp", until the next
 * call; world_transports() "self,shm" for 0, and "self,tcp" for 1. */
const char *world_net(const char *prefix);
const char *world_transports(int which);

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

/* The same, in processes that reach each other by shared memory, or, with `by` 1, by the
 * network alone. */
int world_fork_by(int size, world_fn *fn, int by, double deadline);

/* The same, with COLL_PLAN_FILE naming a file that holds this plan. */
int world_fork_planned(int size, world_fn *fn, const char *plan,
                       double deadline);

/* As world_fork(), with a communicator of all ranks that is made before fn and destroyed after
 * it, both with success. */
typedef int world_comm_fn(struct world_rank *me, struct coll_comm *comm);
int world_fork_joined(int size, world_comm_fn *fn, void *arg, double deadline);

/* Run fn in `size` threads of this process; as world_fork(), but a deadline
 * that passes ends the whole process. */
int world_threads(int size, world_fn *fn, void *arg, double deadline);

/* Have this process be on a host of its own with those that say the same number, as
 * far as hosts are told apart by what the kernel calls the boot; before it joins.  -1
 * where that is not allowed (it wants to be root). */
int world_on_host(int number);

/* Does a sum over the communicator's ranks of 1 from each of them work, and is it `want`? */
int world_sum_is(struct coll_comm *comm, int want);

/* Make a communicator of all ranks; NULL when that failed, which is said. */
struct coll_comm *world_join(const struct world_rank *me);

/* Make one of all ranks and one of those with this color, and leave a barrier of
 * the first as world_barrier() does; a status. */
int world_divide(const struct world_rank *me, int color, struct coll_comm **all,
                 struct coll_comm **part);

/* Sum ones over comm n times, or until it fails: its status, or
 * COLL_ERR_INTERNAL for a wrong sum. */
int world_sum(struct coll_comm *comm, int n);
int world_sum_until_failure(struct coll_comm *comm);

/* Wait until all ranks came here; by processes or threads alone, no message is
 * sent. */
void world_meet(const struct world_rank *me);

/* Do a barrier of comm and let no rank go on before all have left it: who dies,
 * leaves or errs next does so outside of it.  The barrier's status. */
int world_barrier(const struct world_rank *me, struct coll_comm *comm);

/* Say that this rank is through; wait until n ranks are, up to `deadline` s, and
 * return whether they are. */
void world_through(const struct world_rank *me);
int world_await_through(const struct world_rank *me, int n, double deadline);

/* The deadline of the communicator's waits from now on: a short one, where to join may
 * take longer. */
void world_hurry(struct coll_comm *comm, double timeout);

/* The communicator's control connections. */
struct coll__ctrl *world_ctrl(const struct coll_comm *comm);

/* Wait until the group has failed, up to `deadline` seconds; its status. */
int world_await_failure(struct coll_comm *comm, double deadline);

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

/* Is rc that status, and are the words in the sentence that explains it?  Prints
 * both where they are not. */
int world_expects(const struct world_rank *me, const char *where, int rc,
                  int code, const char *words);

/* Return 1 from the rank's function where they are not. */
#define EXPECT(me, rc, code, words)                                      \
    do {                                                                 \
        if (!world_expects(me, WORLD_HERE, rc, code, words))             \
            return 1;                                                    \
    } while (0)

#define WORLD_HERE WORLD_PLACE(__FILE__, __LINE__)
#define WORLD_PLACE(file, line) WORLD_PLACE_(file, line)
#define WORLD_PLACE_(file, line) file ":" #line

#endif
