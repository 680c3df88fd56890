/* SPDX-License-Identifier: BSD-3-Clause */
/* far.h - ranks with GPUs on hosts of their own, for tests. */
#ifndef COLL_TESTS_STREAM_FAR_H
#define COLL_TESTS_STREAM_FAR_H

#include "tests/support/device_world.h"

enum { FAR_COUNT = 96 << 10, FAR_LEN = 4 * FAR_COUNT };

/* Can a test not have hosts?  Then it says why. */
int far_lacks_hosts(void);

/* Run fn on each of `size` ranks, n of them on a host; none of whose calls may wait longer
 * than 30 s.  Return how many ranks failed. */
int far_fork(int size, int n, world_fn *fn);

/* Join.  Neighbours share a host. */
int far_join(struct device_rank *r, struct world_rank *me);

/* Enqueue an allreduce of FAR_COUNT numbers in place, or, if it is_odd, a broadcast. */
int far_call(const struct device_rank *r, void *at, int is_odd);

#endif
