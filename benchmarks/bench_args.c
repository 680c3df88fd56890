/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_args.c - the command line.  What is wrong gets one sentence on stderr,
 * from one process of the job, and exit status 2.
 */
#include "benchmarks/bench.h"
#include "tools/common/size.h"
#include "tools/common/speaks.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAPH_CALLS 10 /* of --graph alone */
#define GRAPH_MOST 1000

/* What the functions below work on. */
struct reader {
    struct bench_args *args;
    const struct bench_op *op;
    char program[32]; /* "allreduce_bw" */
};

__attribute__((format(printf, 2, 3))) static int
bad(const struct reader *reader, const char *format, ...)
{
    va_list list;

    if (!speaks_for_job())
        return 2;
    fprintf(stderr, "%s: ", reader->program);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return 2;
}

/* ---- words ------------------------------------------------------------- */

static const char *type_name(int i)
{
    return coll_type_name((enum coll_type)i);
}
static const char *op_name(int i) { return coll_op_name((enum coll_op)i); }

/* Find text among n names; -1 and a sentence that lists them. */
static int find(const struct reader *reader, const char *what, const char *text,
                const char *(*name)(int), int n)
{
    char known[256] = "";
    size_t len = 0;

    for (int i = 0; i < n; i++) {
        if (!strcmp(name(i), text))
            return i;
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
                                i ? ", " : "", name(i));
    }
    bad(reader, "there is no %s '%s'; there are: %s", what, text, known);
    return -1;
}

static int take_type(struct reader *reader, const char *text)
{
    int type = find(reader, "type", text, type_name, COLL_N_TYPES);

    if (type >= 0)
        reader->args->type = (enum coll_type)type;
    return type < 0 ? 2 : 0;
}

static int take_op(struct reader *reader, const char *text)
{
    int op = find(reader, "operation", text, op_name, COLL_N_OPS);

    if (op >= 0)
        reader->args->op = (enum coll_op)op;
    return op < 0 ? 2 : 0;
}

static int take_device(struct reader *reader, const char *text)
{
    if (!strcmp(text, "cuda") && !bench_device_find(text))
        return bad(reader, "libcoll was built without CUDA; use -d host");
    if (strcmp(text, "host") && !bench_device_find(text))
        return bad(reader, "there is no device '%s'; use -d host or cuda",
                   text);
    reader->args->device = text;
    return 0;
}

static int take_clock(struct reader *reader, const char *text)
{
    if (strcmp(text, "host") && strcmp(text, "events"))
        return bad(reader, "--clock must be events or host, not '%s'", text);
    reader->args->by_host = !strcmp(text, "host");
    return 0;
}

static int take_check(struct reader *reader, const char *text)
{
    if (strcmp(text, "on") && strcmp(text, "off"))
        return bad(reader, "--check must be on or off, not '%s'", text);
    reader->args->checks = !strcmp(text, "on");
    return 0;
}

static int take_memory(struct reader *reader, const char *text)
{
    if (strcmp(text, "malloc") && strcmp(text, "alloc"))
        return bad(reader, "--mem must be malloc or alloc, not '%s'", text);
    reader->args->is_shared = !strcmp(text, "alloc");
    return 0;
}

/* ---- numbers ----------------------------------------------------------- */

static int take_bytes(const struct reader *reader, const char *text,
                      size_t *bytes)
{
    if (size_parse(text, bytes))
        return bad(reader, "'%s' is no size; write 8, 4K or 64M", text);
    return 0;
}

static int take_count(const struct reader *reader, const char *text,
                      const char *what, long least, long *count)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < least || value > 100000000)
        return bad(reader,
                   "'%s' is no number of %s; it must be %ld to "
                   "100000000",
                   text, what, least);
    *count = value;
    return 0;
}

static int take_root(struct reader *reader, const char *text)
{
    long root = 0;
    int rc = take_count(reader, text, "a rank", 0, &root);

    reader->args->root = (int)root;
    return rc;
}

static int take_idle(struct reader *reader, const char *text)
{
    char *end;
    double ms = strtod(text, &end);

    if (end == text || *end || !(ms > 0) || ms > 1e6)
        return bad(reader,
                   "'%s' is no time to be late; it must be above 0, in ms, "
                   "such as 60",
                   text);
    reader->args->idle = ms * 1e-3;
    return 0;
}

static int take_beside(const struct reader *reader, const char *text)
{
    int rc = take_bytes(reader, text, &reader->args->beside);

    if (!rc && reader->args->beside < sizeof(float))
        return bad(reader, "--beside must be %zu bytes at least, such as 16M",
                   sizeof(float));
    return rc;
}

/* text may be NULL. */
static int take_graph(struct reader *reader, const char *text)
{
    char *end = NULL;
    long n = text ? strtol(text, &end, 10) : GRAPH_CALLS;

    if (text && (end == text || *end || n < 1 || n > GRAPH_MOST))
        return bad(reader,
                   "'%s' is no number of calls of a graph; it must be 1 to %d, "
                   "such as --graph=%d",
                   text, GRAPH_MOST, GRAPH_CALLS);
    reader->args->graph = (int)n;
    return 0;
}

static int take_factor(struct reader *reader, const char *text)
{
    char *end;
    double factor = strtod(text, &end);

    if (end == text || *end || !(factor > 1) || factor > 1e6)
        return bad(reader,
                   "'%s' is no factor between sizes; it must be above "
                   "1, such as 2",
                   text);
    reader->args->factor = factor;
    return 0;
}

/* ---- options ----------------------------------------------------------- */

enum {
    OPT_VARY = 256,
    OPT_JSON,
    OPT_CSV,
    OPT_MEM,
    OPT_IDLE,
    OPT_BESIDE,
    OPT_CLOCK,
    OPT_GRAPH,
    OPT_OVERLAP
};

static const struct option options[] = {
    {"begin", required_argument, NULL, 'b'},
    {"end", required_argument, NULL, 'e'},
    {"factor", required_argument, NULL, 'f'},
    {"iters", required_argument, NULL, 'n'},
    {"warmup", required_argument, NULL, 'w'},
    {"type", required_argument, NULL, 't'},
    {"op", required_argument, NULL, 'o'},
    {"root", required_argument, NULL, 'r'},
    {"device", required_argument, NULL, 'd'},
    {"algo", required_argument, NULL, 'a'},
    {"check", required_argument, NULL, 'c'},
    {"vary-buffers", no_argument, NULL, OPT_VARY},
    {"mem", required_argument, NULL, OPT_MEM},
    {"idle", required_argument, NULL, OPT_IDLE},
    {"beside", required_argument, NULL, OPT_BESIDE},
    {"clock", required_argument, NULL, OPT_CLOCK},
    {"graph", optional_argument, NULL, OPT_GRAPH},
    {"stream-overlap", no_argument, NULL, OPT_OVERLAP},
    {"json", no_argument, NULL, OPT_JSON},
    {"csv", no_argument, NULL, OPT_CSV},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void print_ops(void)
{
    printf("  -o, --op OP           the reduction (default sum):");
    for (int i = 0; i < COLL_N_OPS; i++)
        printf("%s%s", !i ? "\n                        " : ", ", op_name(i));
    printf("\n");
}

static void print_data_options(const struct bench_mode *mode)
{
    printf("\n  -b, --begin SIZE      bytes a rank (or the root) gives, first "
           "(default %zu)\n"
           "  -e, --end SIZE        and last (default %zu); 8, 4K, 64M\n"
           "  -f, --factor F        from one size to the next (default 2)\n"
           "  -t, --type TYPE       of the elements (default f32)\n"
           "  -c, --check on|off    compare every element (default on)\n"
           "      --mem malloc|alloc  whose buffers: alloc is coll_mem_alloc() "
           "(default malloc)\n"
           "      --vary-buffers    other memory and content in each "
           "iteration,\n"
           "                        each of them checked\n",
           mode->first, mode->last);
}

static void print_help(const struct reader *reader,
                       const struct bench_mode *mode)
{
    static const char how[] =
        "The time of an iteration is that of its slowest rank; algbw and busbw "
        "(GB/s,\n10^9 bytes) are made from the median.";

    printf(
        "Usage: %s [OPTION]...\n"
        "Measure %s over the ranks of a job (collrun, mpirun, srun).\n\n"
        "  -n, --iters N         timed iterations (default: %ld to %ld, as "
        "fit %g s)\n"
        "  -w, --warmup N        iterations before them (default %ld)\n"
        "  -d, --device host|cuda  where the buffers lie (default host)\n"
        "      --clock events|host  who times what runs on a GPU: the GPU, one "
        "iteration\n"
        "                        behind the other, or the host, which waits "
        "for each\n"
        "                        (default events)\n"
        "      --graph[=N]       N calls (default %d) are captured into a "
        "graph, and an\n"
        "                        iteration is its launch: times are of a "
        "call; for -d cuda\n"
        "      --stream-overlap  also: how much of it hides behind a kernel "
        "that takes 1.5\n"
        "                        times as long in another stream; for -d cuda\n"
        "  -a, --algo NAME       this algorithm (default: the library's "
        "choice)\n"
        "      --idle MS         one rank, each in its turn, comes so much "
        "later than\n"
        "                        the others, which wait for it: the time is "
        "then\n"
        "                        from its coming until all have left; and "
        "what the\n"
        "                        others use of a core while they wait\n"
        "      --beside SIZE     an allreduce of so many bytes is started "
        "before each\n"
        "                        iteration, and waited for behind it, which is "
        "no part\n"
        "                        of the time\n"
        "      --json, --csv     one object, one row a size\n"
        "  -h, --help\n"
        "  -V, --version\n",
        reader->program, reader->op->name, mode->min_iters, mode->max_iters,
        mode->seconds, mode->warmup, GRAPH_CALLS);
    if (reader->op->has_data)
        print_data_options(mode);
    if (reader->op->has_op)
        print_ops();
    if (reader->op->has_root)
        printf("  -r, --root RANK       who gives to all, or gets from all "
               "(default 0)\n");
    if (reader->op->note)
        printf("\n%s.\n", reader->op->note);
    printf("\n%s\n", mode->about ? mode->about : how);
}

static const char *option_name(int letter)
{
    int i = 0;

    while (options[i].val != letter)
        i++;
    return options[i].name;
}

/* Options that the collective has no use for are not accepted. */
static int is_for(const struct bench_op *op, int letter)
{
    if (letter == 'o')
        return op->has_op;
    if (letter == 'r')
        return op->has_root;
    if (letter == OPT_IDLE || letter == OPT_BESIDE)
        return !op->trips;
    return op->has_data || letter == OPT_JSON || letter == OPT_CSV ||
           letter == OPT_CLOCK || letter == OPT_GRAPH ||
           letter == OPT_OVERLAP || strchr("nwdahV", letter);
}

static int take_sizes(struct reader *reader, int letter, const char *text)
{
    struct bench_args *args = reader->args;

    switch (letter) {
    case 'b':
        return take_bytes(reader, text, &args->first);
    case 'e':
        return take_bytes(reader, text, &args->last);
    case 'f':
        return take_factor(reader, text);
    case 'n':
        return take_count(reader, text, "iterations", 1, &args->iters);
    default:
        return take_count(reader, text, "warm-up iterations", 0, &args->warmup);
    }
}

static int take_words(struct reader *reader, int letter, const char *text)
{
    switch (letter) {
    case 't':
        return take_type(reader, text);
    case 'o':
        return take_op(reader, text);
    case 'r':
        return take_root(reader, text);
    case 'd':
        return take_device(reader, text);
    case 'c':
        return take_check(reader, text);
    default:
        reader->args->algo = text;
        return 0;
    }
}

static int take(struct reader *reader, int letter, const char *text)
{
    switch (letter) {
    case OPT_VARY:
        reader->args->varies = 1;
        return 0;
    case OPT_MEM:
        return take_memory(reader, text);
    case OPT_IDLE:
        return take_idle(reader, text);
    case OPT_BESIDE:
        return take_beside(reader, text);
    case OPT_CLOCK:
        return take_clock(reader, text);
    case OPT_GRAPH:
        return take_graph(reader, text);
    case OPT_OVERLAP:
        reader->args->overlaps = 1;
        return 0;
    case OPT_JSON:
        reader->args->form = FORM_JSON;
        return 0;
    case OPT_CSV:
        reader->args->form = FORM_CSV;
        return 0;
    default:
        return strchr("befnw", letter) ? take_sizes(reader, letter, text)
                                       : take_words(reader, letter, text);
    }
}

static int refuse(const struct reader *reader, int letter, const char *word)
{
    if (letter == ':')
        return bad(reader, "option %s needs a value; see --help", word);
    return bad(reader, "unknown option %s; see --help", word);
}

/* What is for devices alone, and what for hosts. */
static int check_device(const struct reader *reader)
{
    const struct bench_args *args = reader->args;

    if (strcmp(args->device, "host") &&
        (args->idle > 0 || args->beside > 0 || args->is_shared))
        return bad(reader, "--idle, --beside and --mem are for buffers on the "
                           "host; give -d host");
    if (!strcmp(args->device, "host") && (args->graph || args->overlaps))
        return bad(reader, "%s is for buffers on a GPU; give -d cuda",
                   args->graph ? "--graph" : "--stream-overlap");
    if ((args->graph > 0) + args->overlaps + args->varies > 1)
        return bad(reader, "--graph, --stream-overlap and --vary-buffers "
                           "measure different things; give one of them");
    return 0;
}

static int check_sizes(const struct reader *reader)
{
    if (reader->args->first > reader->args->last)
        return bad(reader,
                   "the first size, %zu, is above the last, %zu; set "
                   "both -b and -e",
                   reader->args->first, reader->args->last);
    if ((reader->args->idle > 0) + (reader->args->beside > 0) +
            reader->args->varies >
        1)
        return bad(reader, "--idle, --beside and --vary-buffers measure "
                           "different things; give one of them");
    return check_device(reader);
}

/* Name the option that getopt has just refused. */
static const char *refused_word(char **argv, char letter[3])
{
    if (optopt <= ' ' || optopt > 126)
        return argv[optind - 1];
    letter[0] = '-';
    letter[1] = (char)optopt;
    letter[2] = '\0';
    return letter;
}

static int read_options(int argc, char **argv, struct reader *reader,
                        const struct bench_mode *mode)
{
    int letter, rc = 0;
    char word[3];

    opterr = 0;
    while (!rc && (letter = getopt_long(argc, argv, ":b:e:f:n:w:t:o:r:d:a:c:hV",
                                        options, NULL)) != -1) {
        if (letter == '?' || letter == ':')
            return refuse(reader, letter, refused_word(argv, word));
        if (letter == 'h' || letter == 'V') {
            if (letter == 'h' && speaks_for_job())
                print_help(reader, mode);
            else if (speaks_for_job())
                printf("%s (libcoll) %s\n", reader->program, coll_version());
            return -1;
        }
        rc = is_for(reader->op, letter)
                 ? take(reader, letter, optarg)
                 : bad(reader, "%s has no use for --%s; see --help",
                       reader->op->name, option_name(letter));
    }
    if (!rc && optind < argc)
        rc = bad(reader, "unexpected argument %s; see --help", argv[optind]);
    return rc ? rc : check_sizes(reader);
}

int bench_args_read(int argc, char **argv, const struct bench_op *op,
                    const struct bench_mode *mode, struct bench_args *args,
                    int *status)
{
    struct reader reader = {.args = args, .op = op};
    int rc;

    *args = (struct bench_args){
        .first = mode->first,
        .last = mode->last,
        .factor = 2,
        .warmup = mode->warmup,
        .type = COLL_F32,
        .op = op->has_op ? COLL_SUM : COLL_MAX, /* MAX: any value */
        .device = "host",
        .checks = 1,
    };
    if (mode->program)
        snprintf(reader.program, sizeof(reader.program), "%s", mode->program);
    else
        snprintf(reader.program, sizeof(reader.program), "%s_%s", op->name,
                 mode->name);
    rc = read_options(argc, argv, &reader, mode);
    *status = rc < 0 ? 0 : rc;
    return rc != 0;
}
