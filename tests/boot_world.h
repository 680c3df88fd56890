/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_world.h - ranks as threads or as processes, for the tests of lib/boot.
 *
 * A rank is a function; what it returns is its result, 0 for good.
 */
#ifndef COLL_TESTS_BOOT_WORLD_H
#define COLL_TESTS_BOOT_WORLD_H

#include "lib/boot/ctrl.h"

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

/* Join by the rank's id and open the control tree. */
int world_open(struct world_rank *w, const struct coll__ctrl_events *events,
               double timeout, struct coll__ctrl **ctrl);

#endif
