/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_overlap.c - --stream-overlap: how much of an operation hides behind a
 * kernel that another stream runs.
 *
 * Three things take turns: the operation, a kernel that takes somewhat longer,
 * and both, which begin at the same moment of the device.  All times are
 * measured by the stream.  The slowest rank counts in each turn, and the median
 * of the turns.  What both take longer than the kernel is exposed, whether the
 * operation takes longer or slows the kernel.  The rest of the operation's time
 * alone is hidden.
 */
#include "benchmarks/bench_run.h"

enum { TURNS = 21, TRIES = 4, ALONE = 0, KERNEL, BOTH, N_TIMES };

#define LONGER 1.5  /* times as long as the operation alone */
#define LEAST 50e-6 /* s of the kernel */

/* Put one of the three into the stream, and wait for it. */
static int turn(const struct bench *b, const struct bench_case *c, int what,
                uint64_t work, double *seconds)
{
    const struct bench_device *device = b->device;
    int rc = coll_barrier(b->comm, NULL);

    if (!rc)
        rc = device->mark(0);
    if (!rc && what != ALONE)
        rc = device->fork(work);
    if (!rc && what != KERNEL)
        rc = bench_call(b, c, 0);
    if (!rc && what != ALONE)
        rc = device->join();
    if (!rc)
        rc = device->mark(1);
    if (!rc)
        rc = device->wait();
    if (!rc)
        *seconds = device->between(0);
    return rc ? rc : bench_slowest(b->comm, seconds, 1);
}

/* Find how much work takes somewhat longer than the operation: the same on all
 * ranks. */
static int calibrate(const struct bench *b, const struct bench_case *c,
                     uint64_t *work)
{
    double alone = 0, seen = 0, number = 1000, wanted;
    int rc = turn(b, c, ALONE, 0, &alone);

    wanted = alone * LONGER > LEAST ? alone * LONGER : LEAST;
    for (int i = 0; i < TRIES && !rc; i++) {
        rc = turn(b, c, KERNEL, (uint64_t)number, &seen);
        number *= wanted / (seen > 1e-9 ? seen : 1e-9);
        number = number < 1 ? 1 : number;
    }
    *work = (uint64_t)number;
    return rc;
}

static int take_turns(const struct bench *b, const struct bench_case *c,
                      uint64_t work, double *times)
{
    double seen[N_TIMES][TURNS];
    int n = b->args.iters && b->args.iters < TURNS ? (int)b->args.iters : TURNS;
    int rc = COLL_OK;

    for (int t = 0; t < n && !rc; t++)
        for (int what = ALONE; what < N_TIMES && !rc; what++)
            rc = turn(b, c, what, work, &seen[what][t]);
    for (int what = ALONE; what < N_TIMES && !rc; what++)
        times[what] = bench_median(seen[what], (size_t)n);
    return rc;
}

/* Run once more beside the kernel, with other content. */
static int check(const struct bench *b, struct bench_case *c, uint64_t work,
                 uint64_t *errors)
{
    double seconds;
    int rc;

    c->salt++;
    rc = bench_buffers_fill(&b->buffers, c, 0);
    if (!rc)
        rc = turn(b, c, BOTH, work, &seconds);
    return rc ? rc : bench_buffers_verify(&b->buffers, c, 0, errors);
}

int bench_overlap(const struct bench *b, struct bench_case *c,
                  struct bench_result *result)
{
    double times[N_TIMES] = {0}, exposed;
    uint64_t work = 1;
    int rc = calibrate(b, c, &work);

    if (!rc)
        rc = take_turns(b, c, work, times);
    if (!rc && b->args.checks)
        rc = check(b, c, work, &result->errors);
    exposed = times[BOTH] - times[KERNEL];
    result->alone = times[ALONE];
    result->kernel = times[KERNEL];
    result->both = times[BOTH];
    result->hidden = times[ALONE] > 0 ? 1 - exposed / times[ALONE] : 0;
    result->hidden = result->hidden < 0   ? 0
                     : result->hidden > 1 ? 1
                                          : result->hidden;
    return rc;
}
