/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_report.c - what rank 0 prints: a table, JSON lines or CSV. */
#include "benchmarks/bench.h"
#include "tools/common/table.h"

#include <stdio.h>

static const char *type_of(const struct bench_op *op,
                           const struct bench_args *args)
{
    return op->has_data ? coll_type_name(args->type) : "none";
}

static const char *op_of(const struct bench_op *op,
                         const struct bench_args *args)
{
    return op->has_op ? coll_op_name(args->op) : "none";
}

static const char *check_of(const struct bench_op *op,
                            const struct bench_args *args)
{
    if (!op->has_data)
        return "not needed";
    return args->checks ? "of every element" : "off";
}

static void start_text(const struct bench_op *op, const struct bench_mode *mode,
                       const struct bench_args *args,
                       const struct coll_comm *comm, double barrier)
{
    int ranks = coll_comm_size(comm), hosts = coll_comm_n_hosts(comm);

    printf("# %s_%s, libcoll %s: %d rank%s on %d host%s, transports %s\n",
           op->name, mode->name, coll_version(), ranks, ranks == 1 ? "" : "s",
           hosts, hosts == 1 ? "" : "s", coll_comm_transports(comm));
    printf("# type %s, op %s, device %s, warm-up %ld, iterations ",
           type_of(op, args), op_of(op, args), args->device, args->warmup);
    if (args->iters)
        printf("%ld", args->iters);
    else
        printf("%ld to %ld", mode->min_iters, mode->max_iters);
    printf(", buffers %s%s, verification %s\n",
           args->is_shared ? "from coll_mem_alloc, " : "",
           args->varies ? "varied" : "kept", check_of(op, args));
    if (args->idle > 0)
        printf("# each time, one rank comes %g ms late; its time until all "
               "have left\n",
               args->idle * 1e3);
    if (args->beside)
        printf("# each beside an allreduce of %zu bytes, started before it\n",
               args->beside);
    if (args->graph)
        printf("# launches of a graph of %d calls each; their times divided by "
               "that\n",
               args->graph);
    if (args->overlaps)
        puts("# alone, a kernel of another stream, and both begun together; "
             "hidden is the share of\n# alone that both do not take more than "
             "the kernel");
    if (op->runs_ahead || args->idle > 0)
        printf("# a barrier ends each iteration; its median, %.2f us, is "
               "subtracted\n",
               barrier * 1e6);
    if (op->note)
        printf("# %s\n", op->note);
}

/* What a row is about. */
static void add_case(struct table_row *row, const struct bench_op *op,
                     const struct bench_args *args,
                     const struct coll_comm *comm, const struct bench_result *r)
{
    row_text(row, "collective", NULL, 0, op->name);
    row_count(row, "ranks", NULL, 0, (unsigned)coll_comm_size(comm));
    row_count(row, "hosts", NULL, 0, (unsigned)coll_comm_n_hosts(comm));
    row_count(row, "bytes", "size[B]", 11, r->bytes);
    row_count(row, "count", "count", 11, r->count);
    row_text(row, "type", "type", 5, type_of(op, args));
    row_text(row, "op", NULL, 0, op_of(op, args));
    row_text(row, "device", NULL, 0, args->device);
    row_text(row, "algorithm", NULL, 0, r->algorithm);
    row_count(row, "iters", NULL, 0, (unsigned long)r->iters);
}

static void add_rates(struct table_row *row, const struct bench_op *op,
                      int ranks, const struct bench_result *r)
{
    double rate = r->p50 > 0 ? (double)r->bytes / r->p50 / 1e9 : 0;
    double algbw = rate * op->moved(ranks), busbw = rate * op->traffic(ranks);

    row_real(row, NULL, "min[us]", 11, 2, r->min * 1e6);
    row_real(row, NULL, "p50[us]", 11, 2, r->p50 * 1e6);
    row_real(row, NULL, "p99[us]", 11, 2, r->p99 * 1e6);
    row_real(row, "lat_us.min", NULL, 0, 3, r->min * 1e6);
    row_real(row, "lat_us.p50", NULL, 0, 3, r->p50 * 1e6);
    row_real(row, "lat_us.p99", NULL, 0, 3, r->p99 * 1e6);
    row_real(row, NULL, "algbw[GB/s]", 11, 3, algbw);
    row_real(row, NULL, "busbw[GB/s]", 11, 3, busbw);
    row_real(row, "algbw_GBps", NULL, 0, 4, algbw);
    row_real(row, "busbw_GBps", NULL, 0, 4, busbw);
}

/* Add the columns of --idle, --beside, --stream-overlap and --graph. */
static void add_extras(struct table_row *row, const struct bench_args *args,
                       const struct bench_result *r)
{
    if (args->idle > 0) {
        row_real(row, "idle_ms", NULL, 0, 3, args->idle * 1e3);
        row_real(row, "idle_cpu", NULL, 0, 5, r->idle_cpu);
        row_real(row, NULL, "idle[% of a core]", 18, 2, r->idle_cpu * 100);
    }
    if (args->beside)
        row_count(row, "beside", NULL, 0, args->beside);
    if (args->overlaps) {
        row_real(row, "alone_us", "alone[us]", 11, 3, r->alone * 1e6);
        row_real(row, "kernel_us", "kernel[us]", 11, 3, r->kernel * 1e6);
        row_real(row, "both_us", "both[us]", 11, 3, r->both * 1e6);
        row_real(row, "hidden", "hidden", 7, 3, r->hidden);
    }
    if (args->graph)
        row_count(row, "graph", NULL, 0, (unsigned)args->graph);
}

static void fill_row(struct table_row *row, const struct bench_op *op,
                     const struct bench_args *args,
                     const struct coll_comm *comm, const struct bench_result *r)
{
    *row = (struct table_row){.n = 0};
    add_case(row, op, args, comm, r);
    add_rates(row, op, coll_comm_size(comm), r);
    row_text(row, NULL, "algorithm", -18, r->algorithm);
    add_extras(row, args, r);
    row_count(row, "errors", "errors", 6, r->errors);
}

void bench_report_start(const struct bench_op *op,
                        const struct bench_mode *mode,
                        const struct bench_args *args,
                        const struct coll_comm *comm, double barrier)
{
    static const struct bench_result none = {.algorithm = ""};
    struct table_row row;

    if (args->form == TABLE_TEXT)
        start_text(op, mode, args, comm, barrier);
    fill_row(&row, op, args, comm, &none);
    table_print_heads(stdout, &row, args->form);
}

void bench_report_line(const struct bench_op *op, const struct bench_args *args,
                       const struct coll_comm *comm,
                       const struct bench_result *r)
{
    struct table_row row;

    fill_row(&row, op, args, comm, r);
    table_print_row(stdout, &row, args->form);
}
