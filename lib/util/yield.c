/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/util/yield.h"

#include <sched.h>
#include <time.h>

#define NAP_NS 50000

int coll__is_real_time(void)
{
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

    return policy == SCHED_FIFO || policy == SCHED_RR ||
           policy == SCHED_DEADLINE;
}

void coll__yield(void)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};

    if (coll__is_real_time())
        nanosleep(&nap, NULL);
    else
        sched_yield();
}
