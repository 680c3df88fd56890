/* SPDX-License-Identifier: BSD-3-Clause */
/* overlap.c - how much of an allreduce hides behind a computation.
 *
 * For each size three things take turns, so that a disturbance of the machine
 * disturbs all: the allreduce alone, started and waited for; a computation
 * alone that takes somewhat longer; and both, the computation between start and
 * wait.  The computation is a chain of multiplications in registers, always of
 * the same length.  The slowest rank counts in each turn, and the median of the
 * turns.
 *
 * What start and wait still take in the third is exposed; the rest of the
 * allreduce's time alone is hidden.  Whatever moves the allreduce meanwhile
 * costs the computing thread time if they share a core: the table shows how
 * much longer the computation takes, and how much more processor time the
 * process used.
 */
#include "benchmarks/bench.h"
#include "tools/common/speaks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS 21
#define PROGRAM "overlap"
#define LONGER 1.5   /* times as long as the allreduce alone */
#define LEAST 200e-6 /* s of computing */
#define TRIES 3      /* to find how much that is */

struct overlap {
    struct bench_args args;
    struct coll_comm *comm;
    void *in, *out;
    uint64_t errors;
};

/* Times in seconds, of one turn or as medians. */
enum { ALONE, COMPUTING, BESIDE, EXPOSED, CPU_ALONE, CPU_BESIDE, N_TIMES };

struct result {
    size_t count;
    double times[N_TIMES];
    uint64_t errors;
};

static const struct bench_mode mode = {
    .name = "overlap",
    .first = 64 << 10,
    .last = 16 << 20,
    .warmup = 5,
    .min_iters = TURNS,
    .max_iters = TURNS,
    .program = PROGRAM,
    .about =
        "Each size: the allreduce alone, a computation alone (1.5 times as "
        "long), and the\nallreduce started before and waited for behind "
        "the computation, in turns.  hidden is\nthe share of the allreduce "
        "that start and wait do not take any more.  Compare\n"
        "COLL_PROGRESS=off, thread and auto.",
};

static double now(void) { return bench_clock(CLOCK_MONOTONIC); }

static int explain(int rc)
{
    fprintf(stderr, PROGRAM ": %s\n",
            *coll_last_error() ? coll_last_error() : coll_strerror(rc));
    return rc;
}

/* ---- one turn ------------------------------------------------------------- */

static volatile double kept; /* so that the computation is not left out */

static void compute(long n)
{
    double x = 1.000001;

    while (n-- > 0)
        x = x * 1.0000001 + 1e-9;
    kept = x;
}

static int communicate(struct coll_request *request)
{
    int rc = coll_start(request);

    return rc ? rc : coll_wait(request, 0);
}

static int turn_alone(const struct overlap *o, struct coll_request *request,
                      double *times)
{
    int rc = coll_barrier(o->comm, NULL);
    double start = now();

    if (!rc)
        rc = communicate(request);
    times[ALONE] = now() - start;
    return rc;
}

static int turn_computing(const struct overlap *o, long n, double *times)
{
    int rc = coll_barrier(o->comm, NULL);
    double cpu = bench_clock(CLOCK_PROCESS_CPUTIME_ID), start = now();

    compute(n);
    times[COMPUTING] = now() - start;
    times[CPU_ALONE] = bench_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    return rc;
}

static int turn_beside(const struct overlap *o, struct coll_request *request,
                       long n, double *times)
{
    int rc = coll_barrier(o->comm, NULL);
    double cpu = bench_clock(CLOCK_PROCESS_CPUTIME_ID), start, middle, end;

    if (rc)
        return rc;
    start = now();
    rc = coll_start(request);
    middle = now();
    compute(n);
    end = now();
    if (!rc)
        rc = coll_wait(request, 0);
    times[BESIDE] = end - middle;
    times[EXPOSED] = middle - start + now() - end;
    times[CPU_BESIDE] = bench_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    return rc;
}

/* ---- one size --------------------------------------------------------------- */

/* Find how many multiplications take `seconds`: the same number on all ranks. */
static int calibrate(const struct overlap *o, double seconds, long *n)
{
    double times[N_TIMES], number = 1e5;
    int rc = COLL_OK;

    for (int i = 0; i < TRIES && !rc; i++) {
        rc = turn_computing(o, (long)number, times);
        if (!rc)
            rc = bench_slowest(o->comm, &times[COMPUTING], 1);
        number *= seconds / (times[COMPUTING] > 1e-9 ? times[COMPUTING] : 1e-9);
    }
    *n = number < 1 ? 1 : (long)number;
    return rc;
}

static int warm_up(const struct overlap *o, struct coll_request *request,
                   double *alone)
{
    double times[N_TIMES] = {0};
    long warmup = o->args.warmup > 0 ? o->args.warmup : 1;
    double seen[TURNS];
    int rc = COLL_OK;

    for (long i = 0; i < warmup && !rc; i++)
        rc = turn_alone(o, request, times);
    for (int i = 0; i < TURNS && !rc; i++) {
        rc = turn_alone(o, request, times);
        seen[i] = times[ALONE];
    }
    if (!rc)
        rc = bench_slowest(o->comm, seen, TURNS);
    if (!rc)
        *alone = bench_median(seen, TURNS);
    return rc;
}

static int take_turns(const struct overlap *o, struct coll_request *request,
                      long n, double *times)
{
    double seen[TURNS][N_TIMES], one[TURNS];
    int turns =
        o->args.iters && o->args.iters < TURNS ? (int)o->args.iters : TURNS;
    int rc = COLL_OK;

    for (int t = 0; t < turns && !rc; t++) {
        rc = turn_alone(o, request, seen[t]);
        if (!rc)
            rc = turn_computing(o, n, seen[t]);
        if (!rc)
            rc = turn_beside(o, request, n, seen[t]);
        if (!rc)
            rc = bench_slowest(o->comm, seen[t], N_TIMES);
    }
    for (int i = 0; i < N_TIMES && !rc; i++) {
        for (int t = 0; t < turns; t++)
            one[t] = seen[t][i];
        times[i] = bench_median(one, (size_t)turns);
    }
    return rc;
}

/* Run once more with other content, and compare every element. */
static int check(const struct overlap *o, struct bench_case *c,
                 struct coll_request *request, long n, uint64_t *errors)
{
    double times[N_TIMES];
    int rc;

    if (!o->args.checks)
        return COLL_OK;
    c->salt++;
    bench_allreduce.fill(c, o->in);
    memset(o->out, 0xa5, c->count * coll_type_size(c->type));
    rc = turn_beside(o, request, n, times);
    if (!rc)
        *errors = bench_allreduce.verify(c, o->out);
    return rc ? rc
              : coll_allreduce(errors, errors, 1, COLL_U64, COLL_SUM, o->comm,
                               NULL);
}

static int with_request(const struct overlap *o, struct bench_case *c,
                        struct coll_request *request, struct result *result)
{
    double alone = 0;
    long n = 0;
    int rc = warm_up(o, request, &alone);

    if (!rc)
        rc = calibrate(o, alone * LONGER > LEAST ? alone * LONGER : LEAST, &n);
    if (!rc)
        rc = take_turns(o, request, n, result->times);
    return rc ? rc : check(o, c, request, n, &result->errors);
}

static int measure(const struct overlap *o, struct result *result)
{
    struct bench_case c = {.type = o->args.type,
                           .op = o->args.op,
                           .rank = coll_comm_rank(o->comm),
                           .ranks = coll_comm_size(o->comm),
                           .count = result->count,
                           .salt = (unsigned)result->count};
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = o->args.type,
                             .op = o->args.op,
                             .in = o->in,
                             .out = o->out,
                             .count = result->count,
                             .algo = o->args.algo,
                             .background = 1};
    struct coll_request *request;
    int rc = coll_request_create(&args, o->comm, &request), ended;

    if (rc)
        return rc;
    bench_allreduce.fill(&c, o->in);
    rc = with_request(o, &c, request, result);
    ended = coll_request_destroy(request);
    return rc ? rc : ended;
}

/* ---- what is printed -------------------------------------------------------- */

static const char *progress_mode(void)
{
    const char *text = getenv("COLL_PROGRESS");

    return text && *text ? text : "auto";
}

static void fill_row(struct table_row *row, const struct overlap *o,
                     const struct result *r)
{
    const double *t = r->times;
    double hidden = t[ALONE] > 0 ? 1 - t[EXPOSED] / t[ALONE] : 0;
    double slower = t[COMPUTING] > 0 ? t[BESIDE] / t[COMPUTING] - 1 : 0;

    *row = (struct table_row){.n = 0};
    row_text(row, "collective", NULL, 0, "allreduce");
    row_count(row, "ranks", NULL, 0, (unsigned)coll_comm_size(o->comm));
    row_count(row, "hosts", NULL, 0, (unsigned)coll_comm_n_hosts(o->comm));
    row_count(row, "bytes", "size[B]", 11,
              r->count * coll_type_size(o->args.type));
    row_count(row, "count", "count", 11, r->count);
    row_text(row, "type", NULL, 0, coll_type_name(o->args.type));
    row_text(row, "op", NULL, 0, coll_op_name(o->args.op));
    row_text(row, "progress", NULL, 0, progress_mode());
    row_real(row, "alone_us", "alone[us]", 11, 1, t[ALONE] * 1e6);
    row_real(row, "computing_us", "compute[us]", 11, 1, t[COMPUTING] * 1e6);
    row_real(row, "beside_us", "beside[us]", 11, 1, t[BESIDE] * 1e6);
    row_real(row, "exposed_us", "exposed[us]", 11, 1, t[EXPOSED] * 1e6);
    row_real(row, "hidden", "hidden", 7, 3, hidden > 0 ? hidden : 0);
    row_real(row, "slower", "slower", 7, 3, slower);
    row_real(row, "cpu_us", "cpu[us]", 11, 1,
             (t[CPU_BESIDE] - t[CPU_ALONE]) * 1e6);
    row_count(row, "errors", "errors", 6, r->errors);
}

static void print_start(const struct overlap *o)
{
    static const struct result none = {.count = 0};
    struct table_row row;
    int ranks = coll_comm_size(o->comm), hosts = coll_comm_n_hosts(o->comm);

    fill_row(&row, o, &none);
    if (o->args.form != TABLE_TEXT) {
        table_print_heads(stdout, &row, o->args.form);
        return;
    }
    printf("# " PROGRAM ", libcoll %s: %d rank%s on %d host%s, transports %s, "
           "COLL_PROGRESS=%s\n",
           coll_version(), ranks, ranks == 1 ? "" : "s", hosts,
           hosts == 1 ? "" : "s", coll_comm_transports(o->comm),
           progress_mode());
    printf("# type %s, op %s, %d turns, verification %s\n",
           coll_type_name(o->args.type), coll_op_name(o->args.op), TURNS,
           o->args.checks ? "of every element" : "off");
    puts("# alone: the allreduce; compute: the computation, alone and with the "
         "allreduce beside it;");
    puts("# exposed: what start and wait still take; cpu: the processors' time "
         "that comes on top");
    table_print_heads(stdout, &row, o->args.form);
}

static void print_result(const struct overlap *o, const struct result *r)
{
    struct table_row row;

    fill_row(&row, o, r);
    table_print_row(stdout, &row, o->args.form);
}

/* ---- all ---------------------------------------------------------------------- */

static int all_sizes(struct overlap *o)
{
    size_t size = coll_type_size(o->args.type), last = 0;
    int rc = COLL_OK;

    if (!coll_comm_rank(o->comm))
        print_start(o);
    for (double bytes = (double)o->args.first;
         bytes <= (double)o->args.last && !rc;
         bytes = bytes < 1 ? 1 : bytes * o->args.factor) {
        size_t count = (size_t)bytes / size;
        struct result result = {.count = count ? count : 1};

        if (result.count == last)
            continue;
        last = result.count;
        rc = measure(o, &result);
        if (!rc && !coll_comm_rank(o->comm))
            print_result(o, &result);
        o->errors += result.errors;
    }
    return rc;
}

static int run(struct overlap *o)
{
    int rc = coll_comm_create_env(&o->comm, NULL), ended;

    if (rc) {
        if (rc != COLL_ERR_INVALID || speaks_for_job())
            explain(rc);
        return rc == COLL_ERR_INVALID ? 2 : 1;
    }
    rc = bench_get_buffers(o->comm, &o->args, &o->in, &o->out);
    if (!rc)
        rc = all_sizes(o);
    if (rc)
        explain(rc);
    if (o->errors && !coll_comm_rank(o->comm))
        fprintf(stderr,
                PROGRAM ": %llu elements were wrong; please report "
                        "this with the output of coll_info\n",
                (unsigned long long)o->errors);
    ended = coll_comm_destroy(o->comm);
    free(o->in);
    free(o->out);
    return rc || ended || o->errors;
}

/* Refuse options that have no use here. */
static int refuse(const struct bench_args *args)
{
    const char *what = args->varies          ? "--vary-buffers"
                       : args->is_shared     ? "--mem alloc"
                       : args->iters > TURNS ? "-n above 21"
                                             : NULL;

    if (strcmp(args->device, "host")) {
        if (speaks_for_job())
            fprintf(stderr, PROGRAM " computes on the host; for a GPU start "
                                    "allreduce_bw -d cuda --stream-overlap\n");
        return 2;
    }
    if (what && speaks_for_job())
        fprintf(stderr, PROGRAM " has no use for %s; see --help\n", what);
    return what ? 2 : 0;
}

int main(int argc, char **argv)
{
    struct overlap o = {.errors = 0};
    int status = bench_args_read(argc, argv, &bench_allreduce, &mode, &o.args);

    if (status != BENCH_GOES_ON)
        return bench_finish(PROGRAM, status);
    status = refuse(&o.args);
    return bench_finish(PROGRAM, status ? status : run(&o));
}
