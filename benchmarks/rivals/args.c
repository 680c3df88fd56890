/* SPDX-License-Identifier: BSD-3-Clause */
/* args.c - the command line of compare. */
#include "benchmarks/rivals/compare.h"
#include "benchmarks/bench.h"
#include "tools/common/program.h"
#include "tools/common/size.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *const op_names[PEER_N_OPS] = {"allreduce", "broadcast",
                                          "allgather", "reduce_scatter",
                                          "alltoall",  "barrier"};

int say(const char *format, ...)
{
    va_list list;

    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return 1;
}

/* ---- values ------------------------------------------------------------- */

static int take_ranks(const struct program *p, const char *word,
                      struct args *args)
{
    char *end;
    long n = strtol(word, &end, 10);

    if (end == word || *end || n < 2 || n > PEER_MAX_RANKS)
        return program_refuse(p,
                              "'%s' is no number of ranks; it must be 2 to %d",
                              word, PEER_MAX_RANKS);
    if (args->n_ranks == MAX_LIST)
        return program_refuse(p, "more than %d numbers of ranks; name fewer",
                              MAX_LIST);
    args->ranks[args->n_ranks++] = (int)n;
    return 0;
}

static int take_size(const struct program *p, const char *word,
                     struct args *args)
{
    size_t bytes = 0;

    if (size_parse(word, &bytes) || bytes < 4 || bytes > 1u << 30)
        return program_refuse(
            p, "'%s' is no size; write 8, 4K or 64M, from 4 bytes to 1G", word);
    if (args->n_sizes == MAX_LIST)
        return program_refuse(p, "more than %d sizes; name fewer", MAX_LIST);
    args->sizes[args->n_sizes++] = bytes;
    return 0;
}

static int take_op(const struct program *p, const char *word, struct args *args)
{
    for (int op = 0; op < PEER_N_OPS; op++)
        if (!strcmp(word, op_names[op]))
            return args->has_op[op] = 1, 0;
    return program_refuse(
        p,
        "there is no collective '%s'; there are: allreduce, broadcast, "
        "allgather, reduce_scatter, alltoall, barrier",
        word);
}

static int take_form(const struct program *p, const char *word,
                     struct args *args)
{
    for (int f = 0; f < N_FORMS; f++)
        if (!strcmp(word, forms[f].name))
            return args->has_form[f] = 1, 0;
    return program_refuse(
        p,
        "there is no library '%s'; there are: libcoll, coll-mem, openmpi, "
        "openmpi-sm, openmpi-ucx, mpich, gloo, nccl, encrypt, sockets",
        word);
}

/* Call take for each word between commas. */
static int take_list(const struct program *p, const char *text,
                     struct args *args,
                     int (*take)(const struct program *p, const char *word,
                                 struct args *args))
{
    char *copy = strdup(text), *rest = copy, *word;
    int rc = copy ? 0 : program_refuse(p, "not enough memory");

    while (!rc && (word = strsep(&rest, ",")))
        rc = take(p, word, args);
    free(copy);
    return rc;
}

static int take_all_ranks(const struct program *p, const char *text, void *into)
{
    return take_list(p, text, into, take_ranks);
}

static int take_sizes(const struct program *p, const char *text, void *into)
{
    return take_list(p, text, into, take_size);
}

static int take_ops(const struct program *p, const char *text, void *into)
{
    return take_list(p, text, into, take_op);
}

static int take_forms(const struct program *p, const char *text, void *into)
{
    return take_list(p, text, into, take_form);
}

static int take_device(const struct program *p, const char *text, void *into)
{
    struct args *args = into;

    args->on_gpu = !strcmp(text, "cuda");
    if (!args->on_gpu && strcmp(text, "host"))
        return program_refuse_value(p, "device", text, "host|cuda");
    if (args->on_gpu && !bench_device_find(text))
        return program_refuse(p, "libcoll was built without CUDA; use -d host");
    return 0;
}

static int take_hosts(const struct program *p, const char *text, void *into)
{
    struct args *args = into;

    if (!hosts_parse(text, &args->hosts))
        return 0;
    return program_refuse(p,
                          "'%s' is no hosts; write 2, or the ranks on each: "
                          "3+1; at most %d hosts",
                          text, MAX_HOSTS);
}

static int take_rate(const struct program *p, const char *text, void *into)
{
    struct args *args = into;

    if (!hosts_parse_rate(text, &args->hosts))
        return 0;
    return program_refuse(p, "'%s' is no rate; write 1gbit, 100mbit or 500kbit",
                          text);
}

static int take_plot(const struct program *p, const char *path, void *into)
{
    size_t len = strlen(path);

    if (len < 5 ||
        (strcmp(path + len - 4, ".svg") && strcmp(path + len - 4, ".png")))
        return program_refuse(p, "--plot '%s' must end in .svg or .png", path);
    ((struct args *)into)->plot = path;
    return 0;
}

/* ---- options ------------------------------------------------------------ */

#define AT(field) offsetof(struct args, field)

static const struct program_option options[] = {
    {"quick", 'q', OPTION_SWITCH, AT(is_quick), NULL, NULL,
     .help = "measure fewer sizes and rounds, in under 5 minutes"},
    {"gate", 'g', OPTION_REAL, AT(gate), "RATIO", NULL,
     .help = "end with status 1 when a ratio is below this one", .most = 1e9},
    {"device", 'd', OPTION_CALL, 0, "host|cuda", "host",
     .help = "where the buffers are", .take = take_device},
    {"hosts", 'H', OPTION_CALL, 0, "N|A+B...", NULL,
     .help =
         "measure over N hosts, which are network namespaces of this one; or "
         "over hosts with A ranks on the first, B on the second, and so on",
     .take = take_hosts},
    {"rate", 0, OPTION_CALL, 0, "RATE", NULL,
     .help = "the rate of each host's link, such as 1gbit or 100mbit (default: "
             "no limit)",
     .take = take_rate},
    {"ranks", 'n', OPTION_CALL, 0, "LIST", NULL,
     .help =
         "numbers of ranks (default 2,4,8; with --hosts one and two on each)",
     .take = take_all_ranks},
    {"collectives", 'c', OPTION_CALL, 0, "LIST", NULL,
     .help = "of allreduce, broadcast, allgather, reduce_scatter, alltoall and "
             "barrier (default: all)",
     .take = take_ops},
    {"sizes", 's', OPTION_CALL, 0, "LIST", NULL,
     .help = "bytes (default 8,64,1K,8K,32K,256K,1M,4M,16M,64M; with --quick "
             "8,1K,32K,256K,1M,16M,64M)",
     .take = take_sizes},
    {"only", 'l', OPTION_CALL, 0, "LIST", NULL,
     .help = "these libraries beside libcoll, of coll-mem, openmpi, "
             "openmpi-sm, openmpi-ucx, mpich and gloo; with -d cuda of nccl; "
             "with --hosts also of encrypt and sockets (default: all)",
     .take = take_forms},
    {"rounds", 'r', OPTION_INT, AT(rounds), "N", NULL,
     .help = "rounds for each line (default 7; with --quick 3)", .least = 1,
     .most = MAX_ROUNDS},
    {"time", 't', OPTION_REAL, AT(seconds), "SECONDS", NULL,
     .help = "time of the samples of one library in one round (default 0.1; "
             "with --quick 0.03); the machine's limits take less time, too, "
             "below 0.03",
     .most = 60},
    {"within", 0, OPTION_REAL, AT(within), "SECONDS", NULL,
     .help = "run fewer rounds, 2 at least (with --quick 1), so that all is "
             "done by then (default 1440; with --quick 270)",
     .most = 1e6},
    {"patience", 0, OPTION_REAL, AT(patience), "SECONDS", NULL,
     .help = "leave a library out that has not answered for so long (default "
             "60; with --quick 20)",
     .least = 0.1, .most = 1e6},
    {"json", 'j', OPTION_TEXT, AT(json), "FILE", NULL,
     .help = "write all figures to this file"},
    {"plot", 'p', OPTION_CALL, 0, "FILE", NULL,
     .help = "draw the ratios to this file, .svg or .png, by gnuplot",
     .take = take_plot},
    {.name = NULL},
};

static const char notes[] =
    "Sizes: a size is the vector of allreduce and broadcast, the whole output "
    "of\nallgather, and the whole input of reduce_scatter and alltoall on each "
    "rank; each\nrank's block has one element at least.  Elements are f32 and "
    "reductions are sums.\nEvery rank's buffers are fresh pages of its own; "
    "their content is new for each\noperation, and results are compared "
    "element by element.\n\n"
    "Columns:\n"
    "  ratio    the best rival's time divided by libcoll's; above 1 libcoll is "
    "faster\n"
    "  spread   (largest round - smallest round) / median: of libcoll or of "
    "the best\n           rival, whichever is larger\n"
    "  limit    the share of the best that this machine could do, by the bytes "
    "that\n           must be read and written and the flags that must be "
    "seen\n"
    "  mem-lim  the same of coll-mem\n"
    "  p99      of single 8-byte operations and barriers of libcoll\n"
    "  cost     how many times libcoll's time encrypt takes\n\n"
    "Libraries: coll-mem is libcoll with buffers from coll_mem_alloc(), "
    "without the\nsamples in which the ranks map each other's buffers; it is "
    "no rival, and ratio and\n--gate are of libcoll with private pages.  "
    "openmpi is Open MPI as it is installed,\nopenmpi-sm with --mca "
    "coll_sm_priority 100, and openmpi-ucx with --mca pml ucx.\nencrypt is "
    "libcoll with COLL_NET_ENCRYPT=1.  sockets are plain TCP sockets, and\nno "
    "rival.  With -d cuda the rival is NCCL, if each rank has a GPU of its "
    "own, and\nthe limit is the rate of cuMemcpyAsync in the same run.\n\n"
    "With --hosts the limit is that of the link: its rate, in packets of 1,514 "
    "bytes\nwith headers, for the bytes that must cross it; after a pause a "
    "link lets 256 KiB\nthrough at once.  Without --rate the limit is the time "
    "of sockets.\n\n"
    "Ranks are bound to cores if there are enough, but not Gloo's, which have "
    "two\nthreads each.  If ranks share cores, rank r of N cores is bound to "
    "core r modulo N,\nas all ranks are with --hosts.\n\n"
    "Exit status: 0; 1 when libcoll failed, a result was wrong, or a ratio is "
    "below\n--gate; 2 for wrong usage.\n";

static const struct program *program_here(void)
{
    static struct program program = {
        .usage = "[OPTION]...",
        .about = "Measure libcoll and the other libraries of this machine "
                 "through the same loop, in\nturns, and print how many times "
                 "libcoll's time the best of them takes.",
        .notes = notes,
        .options = options,
    };

    program.name = program_invocation_short_name;
    return &program;
}

/* ---- do the options go together? ---------------------------------------- */

static void fill_in_ranks(struct args *args)
{
    const struct hosts *hosts = &args->hosts;
    int placed = 0;

    if (args->n_ranks)
        return;
    for (int h = 0; h < hosts->n; h++)
        placed += hosts->placed[h];
    if (placed) {
        args->ranks[args->n_ranks++] = placed;
    } else if (hosts->n) {
        args->ranks[args->n_ranks++] = hosts->n;
        args->ranks[args->n_ranks++] = 2 * hosts->n;
    } else {
        take_list(program_here(), "2,4,8", args, take_ranks);
    }
}

/* Check options together: each is right alone. */
static int check_hosts(const struct args *args)
{
    const struct hosts *hosts = &args->hosts;
    const struct program *p = program_here();
    int each[MAX_HOSTS];

    if (hosts->rate && !hosts->n)
        return program_refuse(p, "--rate is of hosts' links; give --hosts too");
    if (hosts->n && args->on_gpu)
        return program_refuse(
            p, "--hosts goes with buffers on the host; leave out -d cuda");
    for (int i = 0; i < args->n_ranks && hosts->n; i++) {
        if (args->ranks[i] > PEER_MAX_RANKS)
            return program_refuse(p, "%d ranks are too many; at most %d",
                                  args->ranks[i], PEER_MAX_RANKS);
        if (hosts_place(hosts, args->ranks[i], each))
            continue;
        return hosts->placed[0]
                   ? program_refuse(
                         p,
                         "--ranks %d is not what --hosts places; leave it out",
                         args->ranks[i])
                   : program_refuse(p,
                                    "%d ranks are not as many on each of %d "
                                    "hosts; say which are where: --hosts 3+1",
                                    args->ranks[i], hosts->n);
    }
    return 0;
}

static void fill_in(struct args *args)
{
    const char *sizes = args->is_quick ? "8,1K,32K,256K,1M,16M,64M"
                                       : "8,64,1K,8K,32K,256K,1M,4M,16M,64M";
    int n_ops = 0, n_forms = 0;

    for (int op = 0; op < PEER_N_OPS; op++)
        n_ops += args->has_op[op];
    for (int op = 0; op < PEER_N_OPS && !n_ops; op++)
        args->has_op[op] = 1;
    for (int f = 0; f < N_FORMS; f++)
        n_forms += args->has_form[f];
    for (int f = 0; f < N_FORMS && !n_forms; f++)
        args->has_form[f] = form_is_for(&forms[f], args);
    args->has_form[0] = 1;
    fill_in_ranks(args);
    if (!args->n_sizes)
        take_list(program_here(), sizes, args, take_size);
    if (!args->rounds)
        args->rounds = args->is_quick ? 3 : 7;
    if (args->seconds < 0)
        args->seconds = args->is_quick ? 0.03 : 0.1;
    if (args->within < 0)
        args->within = args->is_quick ? 270 : 1440;
    if (args->patience < 0)
        args->patience = args->is_quick ? 20 : 60;
}

int args_read(int argc, char **argv, struct args *args, int *status)
{
    memset(args, 0, sizeof(*args));
    args->seconds = args->within = args->patience = -1;
    if (program_read(program_here(), argc, argv, args, status) < 0)
        return 1;
    fill_in(args);
    *status = check_hosts(args);
    return *status != 0;
}
