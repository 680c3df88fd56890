/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - the time, for all that the trainer measures. */
#ifndef COLL_TRAINER_CLOCK_H
#define COLL_TRAINER_CLOCK_H

#include <time.h>

/* Return the seconds of the monotonic clock. */
static inline double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
