/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_world.h - ranks as threads or as processes, for the tests of lib/boot.
 *
 * A rank is a function; what it returns is its result, 0 for good.
 */
#ifndef COLL_TESTS_BOOT_WORLD_H
#define COLL_TESTS_BOOT_WORLD_H

#include "lib/ctrl/ctrl.h"
#include "lib/net/net.h"

#include <stdatomic.h>
#include <sys/types.h>

#define WORLD_MAX 64

struct world_rank {
    int rank, size;
    struct coll_unique_id id;
    void *arg;
    int result;
};

/* Run fn on every rank, each a thread of this process; the number of ranks
 * whose result is not 0. */
int world_threads(int size, int (*fn)(struct world_rank *), void *arg);

/* The same with a process for each rank, all ended when this returns. */
int world_forks(int size, int (*fn)(struct world_rank *), void *arg);

/* Start the processes and return; then wait for each and count as above. */
void world_start(int size, int (*fn)(struct world_rank *), void *arg,
                 pid_t pids[WORLD_MAX]);
int world_wait(int size, const pid_t pids[WORLD_MAX]);

/* Map memory that forked processes share, zeroed. */
void *world_shared(size_t len);

/* Count the open descriptors, or the threads, of this process. */
int world_n_fds(void);
int world_n_threads(void);

/* Wait until there are no more threads than before (the kernel may still list some that
 * have been joined, then as well as now); the number in the end. */
int world_settled_threads(int n_threads);

/* Listen on any loopback port; sets *addr. */
int world_listen(struct coll__addr *addr);

/* Join by the rank's id and open the control tree. */
int world_open(struct world_rank *w, const struct coll__ctrl_events *events,
               double timeout, struct coll__ctrl **ctrl);

/* What a rank's failed() was told. */
struct world_notice {
    atomic_int n_calls; /* release: text and status are there */
    int status;
    char text[COLL__TEXT_MAX];
};

/* Make the events that write the notice, and say "in none", 42 started. */
struct coll__ctrl_events world_events(struct world_notice *notice);

/* Return how often failed() was called; await it for a while. */
int world_n_calls(struct world_notice *notice);
int world_await(struct world_notice *notice, double timeout);

/* Wait until n threads of this process have come here; once in a test. */
void world_gather(int n);

void world_nap(double seconds);

/* Gather len bytes from each rank, made from rank and round, and check them;
 * 0 when all are right. */
int world_exchange(struct coll__ctrl *ctrl, int rank, int size, size_t len,
                   int round);

#endif
