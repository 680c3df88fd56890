/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.c - the life of a benchmark: join, measure each size, leave.
 *
 * A size is measured in one window: a barrier, then the iterations back to
 * back.  Each rank times each iteration, and the largest time over the ranks is
 * that of the iteration.  The results of the window are compared element by
 * element.  A further run with other content is compared too, so that no old
 * result passes.  With --vary-buffers every iteration is a window of its own,
 * with other memory and content.
 *
 * With --idle one rank, each in its turn, sleeps before its call while the
 * others wait in theirs; a barrier after the call tells when all have left it.
 * The time of an iteration is what the late rank takes for both, less a
 * barrier.
 * With --graph an iteration is one launch of a graph of several calls, and its
 * time is divided by their number.
 * With --beside a large allreduce is started before each iteration, and waited
 * for after it; neither is a part of its time.
 */
#include "benchmarks/bench_run.h"
#include "tools/common/speaks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOISY 20 /* a ratio p99 / p50 that is worth a warning */

static double now(void) { return bench_clock(CLOCK_MONOTONIC); }

static void say(const struct bench *b, const char *text)
{
    fprintf(stderr, "%s_%s: %s\n", b->op->name, b->mode->name, text);
}

/* Return a status; if it is an error, print the library's explanation. */
static int explain(const struct bench *b, int rc)
{
    if (rc)
        say(b, *coll_last_error() ? coll_last_error() : coll_strerror(rc));
    return rc;
}

/* ---- one size ---------------------------------------------------------- */

/* Warm up, and find how many iterations take as long as the mode wants to measure: the
 * same number on every rank. */
static int warm_up(const struct bench *b, const struct bench_case *c, long *n)
{
    long warmup = b->args.warmup ? b->args.warmup : 1;
    double start = now(), wanted;
    int rc = b->args.warmup || !b->args.iters
                 ? bench_iterate(b, c, warmup, NULL)
                 : COLL_OK;
    double each = (now() - start) / (double)warmup;

    *n = b->args.iters;
    if (rc || *n)
        return rc;
    rc = coll_allreduce(&each, &each, 1, COLL_F64, COLL_MAX, b->comm, NULL);
    each += b->args.idle;
    wanted = b->mode->seconds / (each > 1e-9 ? each : 1e-9);
    if (b->beside) /* this takes most of the time */
        wanted = 0;
    *n = wanted < (double)b->mode->min_iters   ? b->mode->min_iters
         : wanted > (double)b->mode->max_iters ? b->mode->max_iters
                                               : (long)wanted;
    return rc;
}

/* Take the largest time over the ranks for each of n iterations, and sort them.
 */
static int gather_times(const struct bench *b, size_t n)
{
    int rc = bench_slowest(b->comm, b->times, n);

    bench_median(b->times, n);
    return rc;
}

static double less(double time, double barrier)
{
    return time > barrier ? time - barrier : 0;
}

/* Give every rank its buffers, or none. */
static int get_buffers(struct bench *b)
{
    long n = b->args.iters ? b->args.iters : b->mode->max_iters;
    int32_t is_there;
    int rc;

    b->times = malloc((size_t)n * sizeof(double));
    b->counts = calloc(2 * (size_t)coll_comm_size(b->comm), sizeof(size_t));
    is_there =
        b->times && b->counts &&
        !bench_buffers_get(b->op, &b->args, b->device, b->comm, &b->buffers) &&
        (!b->args.beside ||
         !bench_beside_make(b->comm, b->args.beside, &b->beside));
    if (!is_there)
        say(b, b->args.is_shared && *coll_last_error()
                   ? coll_last_error()
                   : "not enough memory for the buffers of all ranks; lower "
                     "-e, or start fewer ranks on this host");
    rc = explain(b, coll_allreduce(&is_there, &is_there, 1, COLL_I32, COLL_MIN,
                                   b->comm, NULL));
    return rc ? rc : is_there ? 0 : COLL_ERR_NOMEM;
}

static void release(struct bench *b)
{
    bench_beside_free(b->beside);
    bench_buffers_put(&b->buffers);
    free(b->counts);
    free(b->times);
}

/* Return the share of a core that the ranks used while they waited for late
 * ones. */
static int gather_idle(struct bench *b, double *share)
{
    double sums[2] = {b->waited, b->waited_cpu};
    int rc = coll_allreduce(sums, sums, 2, COLL_F64, COLL_SUM, b->comm, NULL);

    *share = sums[0] > 0 ? sums[1] / sums[0] : 0;
    b->waited = b->waited_cpu = 0;
    return rc;
}

/* Combine times and errors of all ranks into one result.  Each time is that of
 * `calls` calls, and is divided by them. */
static int gather(struct bench *b, int calls, struct bench_result *result)
{
    size_t n = (size_t)(result->iters / calls);
    int rc = gather_times(b, n),
        parts = calls * (b->op->trips ? b->op->trips : 1);

    for (size_t i = 0; i < n; i++)
        b->times[i] /= parts;

    if (!rc && b->args.idle > 0)
        rc = gather_idle(b, &result->idle_cpu);
    if (!rc)
        rc = coll_allreduce(&result->errors, &result->errors, 1, COLL_U64,
                            COLL_SUM, b->comm, NULL);
    result->min = less(b->times[0], b->barrier);
    result->p50 = less(b->times[n / 2], b->barrier);
    result->p99 = less(b->times[(n * 99 + 99) / 100 - 1], b->barrier);
    return rc;
}

/* Is the time shorter than that of the barrier in each iteration?  Then it says nothing
 * about the operation. */
static int is_noise(const struct bench *b, const struct bench_result *r)
{
    return r->p50 > 0 ? r->p99 > NOISY * r->p50
                      : b->barrier > 0 && coll_comm_size(b->comm) > 1;
}

static void warn_of_noise(struct bench *b, const struct bench_result *r)
{
    char what[80];

    if (b->has_warned || !is_noise(b, r))
        return;
    b->has_warned = 1;
    if (r->p50 > 0)
        snprintf(what, sizeof(what), "p99 is %.0f times p50", r->p99 / r->p50);
    else
        snprintf(what, sizeof(what),
                 "half of the iterations took less than a barrier");
    fprintf(stderr,
            "%s_%s: noise: at %zu bytes %s; stop "
            "other work, use no more ranks than cores, or raise -n\n",
            b->op->name, b->mode->name, r->bytes, what);
}

static int gives_parts(const struct bench *b)
{
    return b->op->in == BLOCKS_EACH || b->op->in == BLOCKS_ROOT;
}

static int gets_parts(const struct bench *b)
{
    return b->op->out == BLOCKS_EACH || b->op->out == BLOCKS_ROOT;
}

/* Return the `count` of this rank's call. */
static size_t own_count(const struct bench *b, const struct bench_case *c)
{
    if (!b->op->has_data)
        return 0;
    if (!b->op->has_counts)
        return c->count;
    return gives_parts(b) ? c->in_counts[c->rank] : c->out_counts[c->rank];
}

/* Name the algorithm that the library chooses for this case. */
static int query(const struct bench *b, const struct bench_case *c,
                 struct coll_plan_info *info)
{
    struct coll_args args = {
        .size = sizeof(args),
        .collective = b->op->collective,
        .type = c->type,
        .op = b->op->has_op ? c->op : COLL_SUM,
        .root = c->root,
        .in = b->buffers.in[0],
        .out = b->buffers.out[0],
        .stream = c->stream,
        .count = own_count(b, c),
        .in_counts = gives_parts(b) ? c->in_counts : NULL,
        .out_counts = gets_parts(b) ? c->out_counts : NULL,
    };

    info->size = sizeof(*info);
    return coll_plan_query(&args, b->comm, info);
}

static int measure(struct bench *b, struct bench_case *c,
                   struct bench_result *result)
{
    int calls = b->args.graph ? b->args.graph : 1, rc;
    long n;

    b->n_captured = 0;
    rc = bench_buffers_fill(&b->buffers, c, 0);
    if (!rc)
        rc = warm_up(b, c, &result->iters);
    if (!rc && b->args.graph)
        rc = bench_capture(b, c);
    if (rc)
        return rc;
    n = (result->iters + calls - 1) / calls;
    result->iters = n * calls;
    rc = b->args.varies ? bench_measure_varied(b, c, n, &result->errors)
                        : bench_measure_kept(b, c, n, &result->errors);
    if (!rc && b->args.overlaps)
        rc = bench_overlap(b, c, result);
    return rc ? rc : gather(b, calls, result);
}

/* Find the median time of a barrier, if the operation needs one. */
static int measure_barrier(struct bench *b)
{
    struct bench only = *b;
    struct bench_case c = {.rank = coll_comm_rank(b->comm),
                           .ranks = coll_comm_size(b->comm),
                           .stream = b->device ? b->device->stream() : NULL};
    struct bench_result result = {.count = 0};
    int rc;

    only.op = only.buffers.op = &bench_barrier;
    only.beside = NULL;
    only.args.idle = 0;
    only.args.varies = only.args.checks = only.args.overlaps = 0;
    rc = measure(&only, &c, &result);
    b->barrier = result.p50;
    return explain(b, rc);
}

/* Return the sizes of the uneven parts that rank `rank` sends and receives. */
static void make_counts(const struct bench *b, struct bench_case *c)
{
    size_t *in = b->counts, *out = b->counts + c->ranks;
    int me = b->op->collective == COLL_ALLTOALLV ? c->rank : 0;

    if (!b->op->has_counts)
        return;
    for (int r = 0; r < c->ranks; r++) {
        in[r] = bench_uneven(c, me, r);
        out[r] = bench_uneven(c, r, me);
    }
    c->in_counts = in;
    c->out_counts = out;
}

static int one_size(struct bench *b, size_t count)
{
    struct bench_case c = {
        .type = b->args.type,
        .op = b->args.op,
        .root = b->args.root,
        .rank = coll_comm_rank(b->comm),
        .ranks = coll_comm_size(b->comm),
        .count = count,
        .salt = (unsigned)count,
        .stream = b->device ? b->device->stream() : NULL,
    };
    struct bench_result result = {.count = b->op->has_data ? count : 0};
    struct coll_plan_info info = {.size = sizeof(info)};
    int rc;

    make_counts(b, &c);
    rc = measure(b, &c, &result);
    if (!rc)
        rc = query(b, &c, &info);
    if (rc)
        return explain(b, rc);
    result.bytes = result.count * coll_type_size(c.type) *
                   bench_blocks_given(b->op, b->comm);
    result.algorithm = info.algorithm;
    b->errors += result.errors;
    if (c.rank)
        return COLL_OK;
    bench_report_line(b->op, &b->args, b->comm, &result);
    warn_of_noise(b, &result);
    return COLL_OK;
}

/* ---- all sizes --------------------------------------------------------- */

static int all_sizes(struct bench *b)
{
    size_t last = 0;
    int rc = COLL_OK;

    if (!b->op->has_data)
        return one_size(b, 1);
    for (double bytes = (double)b->args.first;
         bytes <= (double)b->args.last && !rc;
         bytes = bytes < 1 ? 1 : bytes * b->args.factor) {
        size_t count = bench_elements(b->op, &b->args, b->comm, (size_t)bytes);

        if (count != last)
            rc = one_size(b, count);
        last = count;
    }
    return rc;
}

static int check_root(const struct bench *b)
{
    if (b->args.root < coll_comm_size(b->comm))
        return 0;
    if (!coll_comm_rank(b->comm))
        fprintf(stderr,
                "%s_%s: there is no rank %d to be the root; the job "
                "has ranks 0 to %d\n",
                b->op->name, b->mode->name, b->args.root,
                coll_comm_size(b->comm) - 1);
    return 2;
}

static int run_all(struct bench *b)
{
    int rank = coll_comm_rank(b->comm), rc = get_buffers(b);

    if (!rc && bench_has_barrier(b))
        rc = measure_barrier(b);
    if (!rc && !rank)
        bench_report_start(b->op, b->mode, &b->args, b->comm, b->barrier);
    if (!rc)
        rc = all_sizes(b);
    release(b);
    if (!rc && b->errors && !rank)
        fprintf(stderr,
                "%s_%s: %llu elements were wrong; please report this "
                "with the output of coll_info\n",
                b->op->name, b->mode->name, (unsigned long long)b->errors);
    return rc || b->errors ? 1 : 0;
}

/* The ranks of a host share its devices.  Choose this rank's, and create the
 * communicator again, as a program does after it has chosen its device. */
static int take_device(struct bench *b)
{
    int32_t size = coll_comm_size(b->comm), first = size; /* without one */
    struct coll_comm *first_comm = b->comm;
    char why[200];
    int rc;

    b->device = bench_device_find(b->args.device);
    b->args.device =
        b->device->open(coll_comm_local_rank(b->comm), why, sizeof(why));
    if (!b->args.device)
        first = coll_comm_rank(b->comm);
    rc = explain(b, coll_allreduce(&first, &first, 1, COLL_I32, COLL_MIN,
                                   b->comm, NULL));
    if (!rc && first == coll_comm_rank(b->comm))
        say(b, why);
    if (!rc && first < size)
        rc = COLL_ERR_SYSTEM;
    if (!rc)
        rc = explain(b, coll_comm_dup(b->comm, &b->comm));
    explain(b, coll_comm_destroy(first_comm));
    return rc != COLL_OK;
}

/* Check the algorithm's name by the library, which knows the algorithms and lists them
 * if the name is wrong. */
static int join(struct bench *b)
{
    const char *algo = b->args.algo;
    char text[128];
    int rc;

    if (algo) {
        snprintf(text, sizeof(text), "%s:%s",
                 coll_collective_name(b->op->collective), algo);
        setenv("COLL_ALGO", strchr(algo, ':') ? algo : text, 1);
    }
    rc = coll_comm_create_env(&b->comm, NULL);
    if (!rc)
        return strcmp(b->args.device, "host") ? take_device(b) : 0;
    if (rc != COLL_ERR_INVALID || speaks_for_job())
        explain(b, rc);
    return rc == COLL_ERR_INVALID ? 2 : 1;
}

static int finish(const struct bench *b, int status)
{
    char program[64];

    snprintf(program, sizeof(program), "%s_%s", b->op->name, b->mode->name);
    return bench_finish(program, status);
}

int bench_main(int argc, char **argv, const struct bench_op *op,
               const struct bench_mode *mode)
{
    struct bench b = {.op = op, .mode = mode};
    int rc, status = bench_args_read(argc, argv, op, mode, &b.args);

    if (status != BENCH_GOES_ON)
        return finish(&b, status);
    status = join(&b);
    if (status)
        return status;
    status = check_root(&b);
    if (!status)
        status = run_all(&b);
    rc = coll_comm_destroy(b.comm);
    if (rc && !status) /* else it has been said */
        status = explain(&b, rc) != COLL_OK;
    if (b.device)
        b.device->close();
    return finish(&b, status);
}
