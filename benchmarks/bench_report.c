/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_report.c - what rank 0 prints: a table, JSON lines or CSV. */
#include "benchmarks/bench.h"

#include <stdio.h>

/* Of each pair, both take the same arguments. */
#define JSON_LINE                                                              \
    "{\"collective\":\"%s\",\"ranks\":%d,\"hosts\":%d,\"bytes\":%zu,"          \
    "\"count\":%zu,\"type\":\"%s\",\"op\":\"%s\",\"device\":\"%s\","           \
    "\"algorithm\":\"%s\",\"iters\":%ld,\"lat_us\":{\"min\":%.3f,"             \
    "\"p50\":%.3f,\"p99\":%.3f},\"algbw_GBps\":%.4f,\"busbw_GBps\":%.4f,"
#define CSV_LINE "%s,%d,%d,%zu,%zu,%s,%s,%s,%s,%ld,%.3f,%.3f,%.3f,%.4f,%.4f,"
#define JSON_IDLE "\"idle_ms\":%g,\"idle_cpu\":%.5f,"
#define CSV_IDLE "%g,%.5f,"
#define JSON_BESIDE "\"beside\":%zu,"
#define CSV_BESIDE "%zu,"
#define JSON_OVERLAP                                                           \
    "\"alone_us\":%.3f,\"kernel_us\":%.3f,\"both_us\":%.3f,\"hidden\":%.3f,"
#define CSV_OVERLAP "%.3f,%.3f,%.3f,%.3f,"
#define JSON_GRAPH "\"graph\":%d,"
#define CSV_GRAPH "%d,"
#define JSON_END "\"errors\":%llu}\n"
#define CSV_END "%llu\n"

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
    printf("#%11s %11s %5s %11s %11s %11s %11s %11s  %-18s %s%s\n", "size[B]",
           "count", "type", "min[us]", "p50[us]", "p99[us]", "algbw[GB/s]",
           "busbw[GB/s]", "algorithm", "errors",
           args->idle > 0   ? "  idle[% of a core]"
           : args->overlaps ? "   alone[us]  kernel[us]    both[us]  hidden"
                            : "");
}

void bench_report_start(const struct bench_op *op,
                        const struct bench_mode *mode,
                        const struct bench_args *args,
                        const struct coll_comm *comm, double barrier)
{
    if (args->form == FORM_TEXT)
        start_text(op, mode, args, comm, barrier);
    else if (args->form == FORM_CSV)
        printf("collective,ranks,hosts,bytes,count,type,op,device,algorithm,"
               "iters,min_us,p50_us,p99_us,algbw_GBps,busbw_GBps,%serrors\n",
               args->idle > 0   ? "idle_ms,idle_cpu,"
               : args->beside   ? "beside,"
               : args->graph    ? "graph,"
               : args->overlaps ? "alone_us,kernel_us,both_us,hidden,"
                                : "");
    fflush(stdout);
}

static void put_row(const struct bench_args *args, const struct bench_result *r,
                    const char *type, double algbw, double busbw)
{
    printf(" %11zu %11zu %5s %11.2f %11.2f %11.2f %11.3f %11.3f  %-18s %6llu",
           r->bytes, r->count, type, r->min * 1e6, r->p50 * 1e6, r->p99 * 1e6,
           algbw, busbw, r->algorithm, (unsigned long long)r->errors);
    if (args->idle > 0)
        printf("  %18.2f", r->idle_cpu * 100);
    if (args->overlaps)
        printf("  %10.2f %11.2f %11.2f %5.0f %%", r->alone * 1e6,
               r->kernel * 1e6, r->both * 1e6, r->hidden * 100);
    putchar('\n');
}

void bench_report_line(const struct bench_op *op, const struct bench_args *args,
                       const struct coll_comm *comm,
                       const struct bench_result *r)
{
    int ranks = coll_comm_size(comm), is_json = args->form == FORM_JSON;
    double rate = r->p50 > 0 ? (double)r->bytes / r->p50 / 1e9 : 0;
    double algbw = rate * op->moved(ranks), busbw = rate * op->traffic(ranks);

    if (args->form == FORM_TEXT) {
        put_row(args, r, type_of(op, args), algbw, busbw);
        fflush(stdout);
        return;
    }
    printf(is_json ? JSON_LINE : CSV_LINE, op->name, ranks,
           coll_comm_n_hosts(comm), r->bytes, r->count, type_of(op, args),
           op_of(op, args), args->device, r->algorithm, r->iters, r->min * 1e6,
           r->p50 * 1e6, r->p99 * 1e6, algbw, busbw);
    if (args->idle > 0)
        printf(is_json ? JSON_IDLE : CSV_IDLE, args->idle * 1e3, r->idle_cpu);
    if (args->beside)
        printf(is_json ? JSON_BESIDE : CSV_BESIDE, args->beside);
    if (args->overlaps)
        printf(is_json ? JSON_OVERLAP : CSV_OVERLAP, r->alone * 1e6,
               r->kernel * 1e6, r->both * 1e6, r->hidden);
    if (args->graph)
        printf(is_json ? JSON_GRAPH : CSV_GRAPH, args->graph);
    printf(is_json ? JSON_END : CSV_END, (unsigned long long)r->errors);
    fflush(stdout);
}
