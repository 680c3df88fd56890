/* SPDX-License-Identifier: BSD-3-Clause */
/* far.c - ranks with GPUs on hosts of their own; see far.h. */
#include "tests/stream/far.h"

#include <stdio.h>
#include <stdlib.h>

static int try_host(struct world_rank *me)
{
    (void)me;
    return world_on_host(1);
}

int far_lacks_hosts(void)
{
    if (!world_fork(1, try_host, NULL, 10))
        return 0;
    printf("skipped: hosts of a test want root\n");
    return 1;
}

int far_fork(int size, int n, world_fn *fn)
{
    setenv("COLL_LOG", "info", 1);
    patient_timeout(30);
    return world_fork(size, fn, &n, patient(60));
}

int far_join(struct device_rank *r, struct world_rank *me)
{
    const int *n = me->arg;

    device_listen();
    return world_on_host(me->rank / *n) || device_join(r, me);
}

int far_call(const struct device_rank *r, void *at, int is_odd)
{
    return is_odd ? coll_broadcast(at, at, FAR_COUNT, COLL_I32, 0, r->comm,
                                   r->stream)
                  : coll_allreduce(at, at, FAR_COUNT, COLL_I32, COLL_SUM,
                                   r->comm, r->stream);
}
