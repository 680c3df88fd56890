/* SPDX-License-Identifier: BSD-3-Clause */
/* args.c - the command line.  What is wrong gets one sentence on stderr and
 * exit status 2.
 */
#include "benchmarks/rivals/compare.h"
#include "benchmarks/bench.h"
#include "tools/common/size.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
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

enum { OPT_WITHIN = 256, OPT_PATIENCE, OPT_RATE };

static const struct option options[] = {
    {"quick", no_argument, NULL, 'q'},
    {"gate", required_argument, NULL, 'g'},
    {"device", required_argument, NULL, 'd'},
    {"hosts", required_argument, NULL, 'H'},
    {"rate", required_argument, NULL, OPT_RATE},
    {"ranks", required_argument, NULL, 'n'},
    {"collectives", required_argument, NULL, 'c'},
    {"sizes", required_argument, NULL, 's'},
    {"only", required_argument, NULL, 'l'},
    {"rounds", required_argument, NULL, 'r'},
    {"time", required_argument, NULL, 't'},
    {"within", required_argument, NULL, OPT_WITHIN},
    {"patience", required_argument, NULL, OPT_PATIENCE},
    {"json", required_argument, NULL, 'j'},
    {"plot", required_argument, NULL, 'p'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "Measure libcoll and the other libraries of this machine through the\n"
    "same loop, in turns, and say how many times libcoll's time the best of\n"
    "them takes.\n"
    "\n"
    "  -q, --quick           fewer sizes and rounds: under 5 minutes\n"
    "  -g, --gate RATIO      exit status 1 when a cell is below this ratio\n"
    "  -d, --device host|cuda  where the buffers lie (default host)\n"
    "  -H, --hosts N|A+B...  over N hosts made of this one by network\n"
    "                        namespaces, or with A ranks on the first, ...\n"
    "      --rate RATE       of each host's link: 1gbit, 100mbit (default: as\n"
    "                        fast as it goes)\n"
    "  -n, --ranks LIST      numbers of ranks (default 2,4,8; with --hosts "
    "one\n"
    "                        and two on each)\n"
    "  -c, --collectives LIST  of allreduce, broadcast, allgather,\n"
    "                        reduce_scatter, alltoall, barrier (default all)\n"
    "  -s, --sizes LIST      bytes (default 8,64,1K,8K,32K,256K,1M,4M,16M,\n"
    "                        64M; --quick: 8,1K,32K,256K,1M,16M,64M)\n"
    "  -l, --only LIST       of coll-mem, openmpi, openmpi-sm, openmpi-ucx,\n"
    "                        mpich and gloo, or nccl with -d cuda, or encrypt\n"
    "                        and sockets with --hosts (default all); libcoll\n"
    "                        takes part always\n"
    "  -r, --rounds N        rounds a cell, 25 at most (default 7; --quick 3)\n"
    "  -t, --time SECONDS    of samples, a library and round (default 0.1;\n"
    "                        --quick: 0.03)\n"
    "      --within SECONDS  do with fewer rounds (but 2, with --quick 1) so\n"
    "                        that all ends by then (default 1440; --quick:\n"
    "                        270)\n"
    "      --patience SECONDS  give a library up that has not answered for so\n"
    "                        long (default 60; --quick: 20)\n"
    "  -j, --json FILE       write all figures there\n"
    "  -p, --plot FILE       draw the ratios: .svg or .png, by gnuplot\n"
    "  -h, --help            print this and exit\n"
    "  -V, --version         print the version and exit\n"
    "\n"
    "A size is the vector of allreduce and broadcast, the whole output of\n"
    "allgather, and the whole input of reduce_scatter and alltoall on each\n"
    "rank, and an element a block at least.  Elements are f32, reductions are\n"
    "sums.  Every rank's buffers are fresh pages of its own; their content is\n"
    "new for each operation, and results are compared element by element.\n"
    "\n"
    "ratio: the best rival's time over libcoll's; above 1 libcoll wins.\n"
    "spread: (largest - smallest round) / median, the larger one of libcoll's\n"
    "and the best rival's.\n"
    "limit: the share of what the machine could do at best, by the bytes that\n"
    "must be read and written and the flags that must be seen.\n"
    "coll-mem: libcoll again, with buffers from coll_mem_alloc(), not "
    "counting\n"
    "the samples in which the ranks map each other's; mem-lim: its share of\n"
    "the limit.  It is no rival: ratio and gate are of libcoll in private "
    "pages.\n"
    "With -d cuda the rivals are NCCL, where each rank has a GPU of its own, "
    "and\n"
    "the limit is what cuMemcpyAsync copies in the same run.\n"
    "With --hosts the link is the limit: its rate, in packets of 1,514 bytes\n"
    "with headers, for the bytes that must cross a host's; a link lets "
    "through\n"
    "256 KiB at once after a pause.  Without --rate it is what plain sockets\n"
    "take: sockets, a program of this folder, and no rival.  encrypt: libcoll\n"
    "with COLL_NET_ENCRYPT=1; cost: how many times libcoll's time it takes.\n"
    "p99: of single 8-byte operations and barriers, of libcoll.\n"
    "\n"
    "Open MPI runs as it is, with --mca coll_sm_priority 100, and with --mca\n"
    "pml ucx (and pml_ucx_tls and _devices any, which shared memory needs).\n"
    "Ranks are bound to cores where there are enough, but not Gloo's, which\n"
    "have two threads each; where ranks share cores, rank r of N cores is "
    "bound\n"
    "to core r modulo N, as all ranks are with --hosts.\n"
    "\n"
    "Exit status: 0; 1 when libcoll failed, a result was wrong, or a cell is\n"
    "below the gate; 2 for wrong usage.\n";

/* ---- values ------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static int bad(const char *format, ...)
{
    char text[256];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    say("%s", text);
    return 2;
}

static int take_number(const char *text, const char *what, double least,
                       double most, double *number)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value >= least) || value > most)
        return bad("'%s' is no %s; it must be %g to %g", text, what, least,
                   most);
    *number = value;
    return 0;
}

static int take_whole(const char *text, const char *what, int least, int most,
                      int *number)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < least || value > most)
        return bad("'%s' is no number of %s; it must be %d to %d", text, what,
                   least, most);
    *number = (int)value;
    return 0;
}

/* Call take for each word between commas. */
static int take_list(const char *text, struct args *args,
                     int (*take)(const char *word, struct args *args))
{
    char *copy = strdup(text), *rest = copy, *word;
    int rc = copy ? 0 : bad("not enough memory");

    while (!rc && (word = strsep(&rest, ",")))
        rc = take(word, args);
    free(copy);
    return rc;
}

static int take_ranks(const char *word, struct args *args)
{
    int n = 0, rc = take_whole(word, "ranks", 2, PEER_MAX_RANKS, &n);

    if (!rc && args->n_ranks == MAX_LIST)
        return bad("more than %d numbers of ranks; name fewer", MAX_LIST);
    if (!rc)
        args->ranks[args->n_ranks++] = n;
    return rc;
}

static int take_size(const char *word, struct args *args)
{
    size_t bytes = 0;

    if (size_parse(word, &bytes) || bytes < 4 || bytes > 1u << 30)
        return bad("'%s' is no size; write 8, 4K or 64M, at most 1G", word);
    if (args->n_sizes == MAX_LIST)
        return bad("more than %d sizes; name fewer", MAX_LIST);
    args->sizes[args->n_sizes++] = bytes;
    return 0;
}

static int take_op(const char *word, struct args *args)
{
    for (int op = 0; op < PEER_N_OPS; op++)
        if (!strcmp(word, op_names[op]))
            return args->has_op[op] = 1, 0;
    return bad("there is no collective '%s'; there are: allreduce, broadcast, "
               "allgather, reduce_scatter, alltoall, barrier",
               word);
}

static int take_form(const char *word, struct args *args)
{
    for (int f = 0; f < N_FORMS; f++)
        if (!strcmp(word, forms[f].name))
            return args->has_form[f] = 1, 0;
    return bad("there is no library '%s'; there are: libcoll, coll-mem, "
               "openmpi, openmpi-sm, openmpi-ucx, mpich, gloo, nccl, encrypt, "
               "sockets",
               word);
}

static int take_device(const char *word, struct args *args)
{
    args->on_gpu = !strcmp(word, "cuda");
    if (!args->on_gpu && strcmp(word, "host"))
        return bad("there is no device '%s'; use -d host or cuda", word);
    if (args->on_gpu && !bench_device_find(word))
        return bad("libcoll was built without CUDA; use -d host");
    return 0;
}

static int take_hosts(const char *word, struct args *args)
{
    if (hosts_parse(word, &args->hosts))
        return bad("'%s' is no hosts; write 2, or the ranks on each: 3+1; at "
                   "most %d hosts",
                   word, MAX_HOSTS);
    return 0;
}

static int take_rate(const char *word, struct args *args)
{
    if (hosts_parse_rate(word, &args->hosts))
        return bad("'%s' is no rate; write 1gbit, 100mbit or 500kbit", word);
    return 0;
}

static int take_plot(const char *path, struct args *args)
{
    size_t len = strlen(path);

    if (len < 5 ||
        (strcmp(path + len - 4, ".svg") && strcmp(path + len - 4, ".png")))
        return bad("--plot '%s' must end in .svg or .png", path);
    args->plot = path;
    return 0;
}

/* ---- options ------------------------------------------------------------ */

static int take(int option, struct args *args)
{
    switch (option) {
    case 'q':
        args->is_quick = 1;
        return 0;
    case 'd':
        return take_device(optarg, args);
    case 'g':
        return take_number(optarg, "ratio", 0, 1e9, &args->gate);
    case 'n':
        return take_list(optarg, args, take_ranks);
    case 'c':
        return take_list(optarg, args, take_op);
    case 's':
        return take_list(optarg, args, take_size);
    case 'l':
        return take_list(optarg, args, take_form);
    case 'r':
        return take_whole(optarg, "rounds", 1, MAX_ROUNDS, &args->rounds);
    case 't':
        return take_number(optarg, "time in seconds", 0, 60, &args->seconds);
    case 'H':
        return take_hosts(optarg, args);
    case OPT_RATE:
        return take_rate(optarg, args);
    case OPT_WITHIN:
        return take_number(optarg, "time in seconds", 0, 1e6, &args->within);
    case OPT_PATIENCE:
        return take_number(optarg, "time in seconds", 0.1, 1e6,
                           &args->patience);
    case 'j':
        args->json = optarg;
        return 0;
    default:
        return take_plot(optarg, args);
    }
}

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
        take_list("2,4,8", args, take_ranks);
    }
}

/* What each option means alone, but not with the others. */
static int check_hosts(const struct args *args)
{
    const struct hosts *hosts = &args->hosts;
    int each[MAX_HOSTS];

    if (hosts->rate && !hosts->n)
        return bad("--rate is of hosts' links; give --hosts too");
    if (hosts->n && args->on_gpu)
        return bad("--hosts goes with buffers on the host; leave out -d cuda");
    for (int i = 0; i < args->n_ranks && hosts->n; i++) {
        if (args->ranks[i] > PEER_MAX_RANKS)
            return bad("%d ranks are too many; at most %d", args->ranks[i],
                       PEER_MAX_RANKS);
        if (hosts_place(hosts, args->ranks[i], each))
            continue;
        return hosts->placed[0]
                   ? bad("--ranks %d is not what --hosts places; leave it out",
                         args->ranks[i])
                   : bad("%d ranks are not as many on each of %d hosts; say "
                         "which are where: --hosts 3+1",
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
        take_list(sizes, args, take_size);
    if (!args->rounds)
        args->rounds = args->is_quick ? 3 : 7;
    if (args->seconds < 0)
        args->seconds = args->is_quick ? 0.03 : 0.1;
    if (args->within < 0)
        args->within = args->is_quick ? 270 : 1440;
    if (args->patience < 0)
        args->patience = args->is_quick ? 20 : 60;
}

static int refuse(int option, char **argv)
{
    const char *word = argv[optind - 1];

    if (option == ':')
        return bad("option %s needs a value; see --help", word);
    if (!strncmp(word, "--", 2))
        return bad("unknown option %s; see --help", word);
    return bad("unknown option -%c; see --help", optopt);
}

int args_read(int argc, char **argv, struct args *args, int *status)
{
    int option;

    memset(args, 0, sizeof(*args));
    args->seconds = args->within = args->patience = -1;
    *status = 0;
    while ((option = getopt_long(argc, argv, ":qd:g:H:n:c:s:l:r:t:j:p:hV",
                                 options, NULL)) != -1) {
        if (option == 'h') {
            printf("Usage: %s [OPTION]...\n%s", program_invocation_short_name,
                   help);
            return 1;
        }
        if (option == 'V') {
            printf("%s (libcoll) %s\n", program_invocation_short_name,
                   PACKAGE_VERSION);
            return 1;
        }
        *status = option == ':' || option == '?' ? refuse(option, argv)
                                                 : take(option, args);
        if (*status)
            return 1;
    }
    if (optind < argc)
        *status = bad("unexpected argument '%s'; see --help", argv[optind]);
    fill_in(args);
    if (!*status)
        *status = check_hosts(args);
    return *status != 0;
}
