/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_args.c - the command line of the benchmarks: one table of options.  Each
 * collective has the options that make sense for it. */
#include "benchmarks/bench.h"
#include "tools/common/program.h"
#include "tools/common/size.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAPH_CALLS 10 /* of --graph alone */
#define GRAPH_MOST 1000
#define MOST_CALLS 1e8
#define MOST_IDLE 1e6 /* ms */

/* Texts of the help that depend on the program; describe() fills them in. */
static char types[192], ops[160], first[24], last[24], warmup[24], iters[96];

/* ---- values that need a look ------------------------------------------- */

static int take_device(const struct program *p, const char *text, void *into)
{
    if (!strcmp(text, "cuda") && !bench_device_find(text))
        return program_refuse(p, "libcoll was built without CUDA; use -d host");
    if (strcmp(text, "host") && !bench_device_find(text))
        return program_refuse_value(p, "device", text, "host|cuda");
    ((struct bench_args *)into)->device = text;
    return 0;
}

static int take_idle(const struct program *p, const char *text, void *into)
{
    char *end;
    double ms = strtod(text, &end);

    if (end == text || *end || !(ms > 0) || ms > MOST_IDLE)
        return program_refuse_value(p, "idle", text,
                                    "a time above 0 in ms, such as 60");
    ((struct bench_args *)into)->idle = ms * 1e-3;
    return 0;
}

static int take_beside(const struct program *p, const char *text, void *into)
{
    size_t *bytes = &((struct bench_args *)into)->beside;

    if (size_parse(text, bytes) || *bytes < sizeof(float))
        return program_refuse_value(p, "beside", text,
                                    "4 bytes at least, such as 16M");
    return 0;
}

/* `text` is NULL for --graph alone. */
static int take_graph(const struct program *p, const char *text, void *into)
{
    char *end = NULL;
    long n = text ? strtol(text, &end, 10) : GRAPH_CALLS;

    if (text && (end == text || *end || n < 1 || n > GRAPH_MOST))
        return program_refuse_value(
            p, "graph", text,
            "a number of calls from 1 to 1000, such as --graph=10");
    ((struct bench_args *)into)->graph = (int)n;
    return 0;
}

static int take_json(const struct program *p, const char *text, void *into)
{
    (void)p, (void)text;
    ((struct bench_args *)into)->form = TABLE_JSON;
    return 0;
}

static int take_csv(const struct program *p, const char *text, void *into)
{
    (void)p, (void)text;
    ((struct bench_args *)into)->form = TABLE_CSV;
    return 0;
}

/* ---- the table --------------------------------------------------------- */

#define AT(field) offsetof(struct bench_args, field)

static const struct program_option options[] = {
    {.name = "", .help = "What is measured"},
    {"begin", 'b', OPTION_SIZE, AT(first), "SIZE", first,
     .help = "the smallest size: bytes that a rank, or the root, contributes"},
    {"end", 'e', OPTION_SIZE, AT(last), "SIZE", last,
     .help = "the largest size, such as 4K or 64M"},
    {"factor", 'f', OPTION_REAL, AT(factor), "F", "2",
     .help = "each size is F times the size before", .least = 1.001,
     .most = 1e6},
    {"type", 't', OPTION_CHOICE, AT(type), types, "f32",
     .help = "the type of the elements"},
    {"op", 'o', OPTION_CHOICE, AT(op), ops, "sum", .help = "the reduction"},
    {"root", 'r', OPTION_INT, AT(root), "RANK", "0",
     .help = "the rank that sends to all or receives from all",
     .most = MOST_CALLS},
    {"algo", 'a', OPTION_TEXT, AT(algo), "NAME", NULL,
     .help = "use this algorithm (default: the library chooses)"},
    {"device", 'd', OPTION_CALL, 0, "host|cuda", "host",
     .help = "where the buffers are", .take = take_device},
    {"mem", 0, OPTION_CHOICE, AT(is_shared), "malloc|alloc", "malloc",
     .help = "how buffers on the host are allocated; alloc: by "
             "coll_mem_alloc(), so that other ranks can read them in place"},
    {"vary-buffers", 0, OPTION_SWITCH, AT(varies), NULL, NULL,
     .help = "use other memory and content in each iteration, and check each "
             "result"},
    {.name = "", .help = "How it is measured"},
    {"iters", 'n', OPTION_LONG, AT(iters), "N", NULL, .help = iters, .least = 1,
     .most = MOST_CALLS},
    {"warmup", 'w', OPTION_LONG, AT(warmup), "N", warmup,
     .help = "iterations before the measured ones", .most = MOST_CALLS},
    {"check", 'c', OPTION_CHOICE, AT(checks), "off|on", "on",
     .help = "compare every element of the results"},
    {"idle", 0, OPTION_CALL, 0, "MS", NULL,
     .help = "let one rank, each in its turn, come MS ms later than the "
             "others, which wait for it.  The time is measured from its coming "
             "until all ranks have finished; printed as well is the share of a "
             "core that the others use while they wait",
     .take = take_idle},
    {"beside", 0, OPTION_CALL, 0, "SIZE", NULL,
     .help = "start an allreduce of SIZE bytes before each iteration, and wait "
             "for it after the iteration, outside the measured time",
     .take = take_beside},
    {"clock", 0, OPTION_CHOICE, AT(by_host), "events|host", "events",
     .help = "with -d cuda: events: the GPU measures iterations that follow "
             "each other directly; host: the host measures, and waits for each "
             "iteration"},
    {"graph", 0, OPTION_CALL, 0, "[=N]", NULL,
     .help = "with -d cuda: capture N calls (default 10) into a CUDA graph; an "
             "iteration launches the graph, and times are those of one call",
     .take = take_graph},
    {"stream-overlap", 0, OPTION_SWITCH, AT(overlaps), NULL, NULL,
     .help = "with -d cuda: also measure how much of the operation hides "
             "behind a kernel in another stream that takes 1.5 times as long"},
    {.name = "", .help = "Output"},
    {"json", 0, OPTION_CALL, 0, NULL, NULL,
     .help = "print one JSON object for each size", .take = take_json},
    {"csv", 0, OPTION_CALL, 0, NULL, NULL,
     .help = "print one line of CSV for each size", .take = take_csv},
    {.name = NULL},
};

/* A program has the options that its collective can use. */
static int has(const struct program *p, const struct program_option *option)
{
    static const char *const of_data[] = {
        "begin", "end", "factor", "type", "check", "mem", "vary-buffers", NULL};
    const struct bench_op *op = p->context;

    if (!strcmp(option->name, "op"))
        return op->has_op;
    if (!strcmp(option->name, "root"))
        return op->has_root;
    if (!strcmp(option->name, "idle") || !strcmp(option->name, "beside"))
        return !op->trips;
    for (int i = 0; of_data[i]; i++)
        if (!strcmp(option->name, of_data[i]))
            return op->has_data;
    return 1;
}

/* ---- what the help says ------------------------------------------------ */

static void list_names(char *text, size_t room, const char *(*name)(int), int n)
{
    size_t len = 0;

    for (int i = 0; i < n && len < room; i++)
        len += (size_t)snprintf(text + len, room - len, "%s%s", i ? "|" : "",
                                name(i));
}

static const char *type_name(int i)
{
    return coll_type_name((enum coll_type)i);
}

static const char *op_name(int i) { return coll_op_name((enum coll_op)i); }

/* Fill in the texts of the table. */
static void describe(const struct bench_mode *mode)
{
    list_names(types, sizeof(types), type_name, COLL_N_TYPES);
    list_names(ops, sizeof(ops), op_name, COLL_N_OPS);
    snprintf(first, sizeof(first), "%zu", mode->first);
    snprintf(last, sizeof(last), "%zu", mode->last);
    snprintf(warmup, sizeof(warmup), "%ld", mode->warmup);
    snprintf(iters, sizeof(iters),
             "measured iterations (default %ld to %ld, as many as fit in %g s)",
             mode->min_iters, mode->max_iters, mode->seconds);
}

/* The texts that a program shows. */
struct shown {
    char name[32], about[128], notes[1024];
};

static struct program program_of(struct shown *text, const struct bench_op *op,
                                 const struct bench_mode *mode)
{
    static const char how[] =
        "An iteration takes as long as on its slowest rank.  algbw and busbw "
        "(GB/s, 10^9\nbytes) are computed from the median.";

    if (mode->program)
        snprintf(text->name, sizeof(text->name), "%s", mode->program);
    else
        snprintf(text->name, sizeof(text->name), "%s_%s", op->name, mode->name);
    snprintf(text->about, sizeof(text->about),
             "Measure %s over the ranks of a job (collrun, mpirun, srun).",
             op->name);
    snprintf(text->notes, sizeof(text->notes), "%s%s%s\n",
             op->note ? op->note : "", op->note ? ".\n\n" : "",
             mode->about ? mode->about : how);
    return (struct program){.name = text->name,
                            .usage = "[OPTION]...",
                            .about = text->about,
                            .notes = text->notes,
                            .options = options,
                            .is_of_job = 1,
                            .has = has,
                            .context = op};
}

/* ---- do the options go together? --------------------------------------- */

/* Some options are only for devices, and some only for hosts. */
static int check_device(const struct program *p, const struct bench_args *args)
{
    int is_host = !strcmp(args->device, "host");

    if (!is_host && (args->idle > 0 || args->beside > 0 || args->is_shared))
        return program_refuse(p, "--idle, --beside and --mem are for buffers "
                                 "on the host; give -d host");
    if (is_host && (args->graph || args->overlaps))
        return program_refuse(p, "%s is for buffers on a GPU; give -d cuda",
                              args->graph ? "--graph" : "--stream-overlap");
    if ((args->graph > 0) + args->overlaps + args->varies > 1)
        return program_refuse(p, "--graph, --stream-overlap and --vary-buffers "
                                 "measure different things; give one of them");
    return 0;
}

static int check(const struct program *p, const struct bench_args *args)
{
    if (args->first > args->last)
        return program_refuse(
            p,
            "the first size, %zu, is above the last, %zu; set both -b and -e",
            args->first, args->last);
    if ((args->idle > 0) + (args->beside > 0) + args->varies > 1)
        return program_refuse(p, "--idle, --beside and --vary-buffers measure "
                                 "different things; give one of them");
    return check_device(p, args);
}

int bench_args_read(int argc, char **argv, const struct bench_op *op,
                    const struct bench_mode *mode, struct bench_args *args)
{
    struct shown text;
    struct program program = program_of(&text, op, mode);
    int status;

    describe(mode);
    *args = (struct bench_args){.iters = 0};
    program_defaults(&program, args);
    if (!op->has_op)
        args->op = COLL_MAX; /* as good as any */
    if (program_read(&program, argc, argv, args, &status) < 0)
        return status;
    status = check(&program, args);
    return status ? status : BENCH_GOES_ON;
}
