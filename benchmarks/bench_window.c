/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_window.c - the measured iterations, by the host's clock or by a
 * device's stream, and the check of their results. */
#include "benchmarks/bench_run.h"

static double now(void) { return bench_clock(CLOCK_MONOTONIC); }

/* Return 1 if a barrier ends each iteration. */
int bench_has_barrier(const struct bench *b)
{
    return b->op->runs_ahead || b->args.idle > 0;
}

int bench_call(const struct bench *b, const struct bench_case *c, int i)
{
    int rc = b->op->run(c, b->buffers.in[i], b->buffers.out[i], b->comm);

    return rc || !bench_has_barrier(b) ? rc : coll_barrier(b->comm, c->stream);
}

/* Run one iteration: a call, or a launch of a graph. */
static int run_once(const struct bench *b, const struct bench_case *c, int i)
{
    return b->n_captured ? b->device->launch() : bench_call(b, c, i);
}

static int capture_all(const struct bench *b, const struct bench_case *c)
{
    int rc = b->device->capture(), ended;

    if (rc)
        return rc;
    for (int i = 0; i < b->args.graph && !rc; i++)
        rc = bench_call(b, c, 0);
    ended = b->device->capture_end();
    return rc ? rc : ended;
}

int bench_capture(struct bench *b, const struct bench_case *c)
{
    int32_t worst = capture_all(b, c);
    int rc =
        coll_allreduce(&worst, &worst, 1, COLL_I32, COLL_MIN, b->comm, NULL);

    if (rc || worst)
        return rc ? rc : worst;
    b->n_captured = b->args.graph;
    rc = run_once(b, c, 0);
    return rc ? rc : b->device->wait();
}

/* Run n iterations back to back; times may be NULL. */
int bench_iterate(const struct bench *b, const struct bench_case *c, long n,
                  double *times)
{
    double start = now();
    int rc = COLL_OK;

    for (long i = 0; i < n && !rc; i++) {
        double end;

        rc = run_once(b, c, 0);
        if (!rc && b->device)
            rc = b->device->wait();
        end = now();
        if (times)
            times[i] = end - start;
        start = end;
    }
    return rc;
}

/* As bench_iterate(), in a stream: the host only enqueues the calls, and the stream measures
 * the times. */
static int window_in_stream(const struct bench *b, const struct bench_case *c,
                            long n, double *times)
{
    int rc = b->device->mark(0);

    for (long i = 0; i < n && !rc; i++) {
        rc = run_once(b, c, 0);
        if (!rc)
            rc = b->device->mark(i + 1);
    }
    if (!rc)
        rc = b->device->wait();
    for (long i = 0; i < n && !rc; i++)
        times[i] = b->device->between(i);
    return rc;
}

/* As bench_iterate(), but a large allreduce has just been started before each
 * iteration. */
static int window_beside(const struct bench *b, const struct bench_case *c,
                         long n)
{
    int rc = COLL_OK;

    for (long i = 0; i < n && !rc; i++) {
        rc = bench_beside_start(b->beside);
        if (!rc)
            rc = bench_iterate(b, c, 1, b->times + i);
        if (!rc)
            rc = bench_beside_end(b->beside);
    }
    return rc;
}

/* As bench_iterate(), but one rank is late in each iteration, and only its time
 * counts. */
static int window_idle(struct bench *b, const struct bench_case *c, long n)
{
    int rc = COLL_OK;

    for (long i = 0; i < n && !rc; i++) {
        int is_late = i % c->ranks == c->rank;
        double start, cpu;

        if (is_late)
            bench_pause(b->args.idle);
        start = now();
        cpu = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
        rc = run_once(b, c, 0);
        b->times[i] = is_late ? now() - start : 0;
        if (is_late)
            continue;
        b->waited += now() - start;
        b->waited_cpu += bench_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    }
    return rc;
}

/* Run once more with other content, and compare every element. */
static int run_checked(const struct bench *b, struct bench_case *c, int i,
                       double *seconds, uint64_t *errors)
{
    double start;
    int rc;

    c->salt++;
    rc = bench_buffers_fill(&b->buffers, c, i);
    if (!rc)
        rc = coll_barrier(b->comm, NULL);
    start = now();
    if (!rc)
        rc = run_once(b, c, i);
    if (!rc && b->device)
        rc = b->device->wait();
    *seconds = now() - start;
    return rc || !b->args.checks
               ? rc
               : bench_buffers_verify(&b->buffers, c, i, errors);
}

int bench_measure_kept(struct bench *b, struct bench_case *c, long n,
                       uint64_t *errors)
{
    int rc = coll_barrier(b->comm, NULL);
    double seconds;

    if (!rc)
        rc = b->args.idle > 0 ? window_idle(b, c, n)
             : b->beside      ? window_beside(b, c, n)
             : b->device && !b->args.by_host
                 ? window_in_stream(b, c, n, b->times)
                 : bench_iterate(b, c, n, b->times);
    if (!rc && b->args.checks)
        rc = bench_buffers_verify(&b->buffers, c, 0, errors);
    if (!rc && b->args.checks)
        rc = run_checked(b, c, 0, &seconds, errors);
    return rc;
}

int bench_measure_varied(struct bench *b, struct bench_case *c, long n,
                         uint64_t *errors)
{
    int rc = COLL_OK;

    for (long i = 0; i < n && !rc; i++)
        rc = run_checked(b, c, (int)(i % b->buffers.n), &b->times[i], errors);
    return rc;
}
