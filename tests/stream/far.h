/* SPDX-License-Identifier: BSD-3-Clause */
/* far.h - ranks with GPUs on hosts of their own, for tests. */
#ifndef COLL_TESTS_STREAM_FAR_H
#define COLL_TESTS_STREAM_FAR_H

#include "tests/support/staged_world.h"

enum { FAR_COUNT = 96 << 10, FAR_LEN = 4 * FAR_COUNT };

/* Can a test not have hosts?  Then it says why. */
int far_lacks_hosts(void);

/* Before the ranks begin. */
void far_hosts(void);

/* Join.  Neighbours share a host, as many as the int that me->arg points to. */
int far_join(struct staged_rank *r, struct world_rank *me);

/* Enqueue an allreduce of FAR_COUNT numbers in place, or, if it is_odd, a broadcast. */
int far_call(const struct staged_rank *r, void *at, int is_odd);

#endif
