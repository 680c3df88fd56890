/* SPDX-License-Identifier: BSD-3-Clause */
/* args.c - the command line of coll_plan. */
#include "tools/plan/tool.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS (1 << 20)
#define MAX_PROVEN 512 /* ranks of --check --all */

static const char usage[] =
    "Usage: coll_plan --collective NAME --ranks N [OPTION]... ACTION\n"
    "       coll_plan --check FILE | --check --all --ranks FIRST:LAST\n"
    "How an operation would be carried out, here or on another machine.\n"
    "\n"
    "Actions:\n"
    "      --explain         every algorithm with its predicted time, and why\n"
    "                        the first one wins\n"
    "      --dump            the plans, as a plan file (COLL_PLAN_FILE)\n"
    "      --dot             a drawing of the plans for graphviz\n"
    "      --check [FILE]    prove the chosen algorithm's plans, or a file's\n"
    "      --check --all     prove every algorithm over a range of ranks\n"
    "      --simulate        run all ranks' plans on the links of --topology\n"
    "      --crossover SVG   draw each algorithm's time from 8 B to 1 GiB\n"
    "\n"
    "Options:\n"
    "  -c, --collective NAME\n"
    "  -n, --ranks N         (FIRST:LAST with --check --all)\n"
    "  -b, --bytes SIZE      of the call's count, such as 64K or 1M [1M]\n"
    "  -t, --type TYPE       [f32]\n"
    "  -o, --op OP           [sum]\n"
    "      --order ORDER     free, canonical (reproducible) or ranks [free]\n"
    "  -r, --root R          [0]\n"
    "      --in-place\n"
    "      --topology FILE   the machine; without it one of hosts of 8 ranks\n"
    "      --placement HOW   of ranks on hosts: block or cyclic [block]\n"
    "  -a, --algo NAME       this algorithm instead of the best\n"
    "      --chunk SIZE      of the pipeline; 0 leaves messages whole [128K]\n"
    "      --rank R          dump or draw this rank's plan alone\n"
    "      --json            for explain, dump, check and simulate\n"
    "  -h, --help\n"
    "  -V, --version\n"
    "\n"
    "A plan file is lines of words; '#' begins a comment.  The head:\n"
    "  coll_plan 1               always the first line\n"
    "  collective allreduce      and type, ranks, count (elements)\n"
    "  op sum, order free, root 0, algorithm NAME, chunk 0, and edges "
    "inferred\n"
    "                            or listed, may be left out\n"
    "then each rank in turn, and its steps, numbered from 0, over bytes of "
    "in,\n"
    "out and tmp:\n"
    "  rank 0 tmp 16 in_place    bytes of scratch; in_place where it is so\n"
    "  0 copy out[0,16) from in[0,16)\n"
    "  1 send peer 1 out[0,16)\n"
    "  2 recv peer 1 tmp[0,16)\n"
    "  3 reduce out[0,16) from tmp[0,16) left waits for 1 2\n"
    "The kinds are copy, reduce, scale (divide, for avg), send, recv,\n"
    "recv_reduce and order (moves nothing; what uses the first span waits for\n"
    "the second).  'recv_reduce peer 1 out[0,16) with in[0,16)': what comes "
    "is\n"
    "combined with in, not out.  'left': what comes is the left operand.  "
    "'waits\n"
    "for' goes with 'edges listed' alone.  Collectives whose name ends in v "
    "have\n"
    "lines of one number a rank behind a rank's line: in_counts, in_displs,\n"
    "out_counts, out_displs.  The sends to one peer, and the receives from "
    "one,\n"
    "keep the order of the list.\n";

enum {
    OPT_EXPLAIN = 256,
    OPT_DUMP,
    OPT_DOT,
    OPT_CHECK,
    OPT_SIMULATE,
    OPT_CROSSOVER,
    OPT_ORDER,
    OPT_IN_PLACE,
    OPT_TOPOLOGY,
    OPT_PLACEMENT,
    OPT_CHUNK,
    OPT_RANK,
    OPT_ALL,
    OPT_JSON
};

static const struct option options[] = {
    {"explain", no_argument, NULL, OPT_EXPLAIN},
    {"dump", no_argument, NULL, OPT_DUMP},
    {"dot", no_argument, NULL, OPT_DOT},
    {"check", no_argument, NULL, OPT_CHECK},
    {"simulate", no_argument, NULL, OPT_SIMULATE},
    {"crossover", required_argument, NULL, OPT_CROSSOVER},
    {"collective", required_argument, NULL, 'c'},
    {"ranks", required_argument, NULL, 'n'},
    {"bytes", required_argument, NULL, 'b'},
    {"type", required_argument, NULL, 't'},
    {"op", required_argument, NULL, 'o'},
    {"order", required_argument, NULL, OPT_ORDER},
    {"root", required_argument, NULL, 'r'},
    {"in-place", no_argument, NULL, OPT_IN_PLACE},
    {"topology", required_argument, NULL, OPT_TOPOLOGY},
    {"placement", required_argument, NULL, OPT_PLACEMENT},
    {"algo", required_argument, NULL, 'a'},
    {"chunk", required_argument, NULL, OPT_CHUNK},
    {"rank", required_argument, NULL, OPT_RANK},
    {"all", no_argument, NULL, OPT_ALL},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* ---- values --------------------------------------------------------------- */

static const char *collective_name(int i)
{
    return coll_collective_name((enum coll_collective)i);
}

static const char *type_name(int i) { return coll_type_name((enum coll_type)i); }

static const char *op_name(int i) { return coll_op_name((enum coll_op)i); }

static const char *order_name(int i)
{
    static const char *const names[] = {"free", "canonical", "ranks"};

    return names[i];
}

static const char *placement_name(int i) { return i ? "cyclic" : "block"; }

/* The index of text among n names, or -1 after a sentence that lists them. */
static int take_name(const char *what, const char *text,
                     const char *(*name)(int), int n)
{
    char known[256];
    size_t len = 0;

    for (int i = 0; i < n; i++)
        if (!strcmp(text, name(i)))
            return i;
    known[0] = '\0';
    for (int i = 0; i < n && len < sizeof(known); i++)
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
                                i ? ", " : "", name(i));
    say(2, "there is no %s '%s'; there are: %s", what, text, known);
    return -1;
}

static int take_int(const char *what, const char *text, int low, int high,
                    int *value)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (end == text || *end || n < low || n > high)
        return say(2, "%s '%s' is not a whole number within %d to %d", what,
                   text, low, high);
    *value = (int)n;
    return 0;
}

static int take_bytes(const char *what, const char *text, size_t *bytes)
{
    if (coll__parse_bytes(text, bytes))
        return say(2, "%s '%s' is not a size such as 64K or 1M", what, text);
    return 0;
}

/* "16" or "1:65" */
static int take_ranks(struct job *job, const char *text)
{
    char first[32];
    const char *colon = strchr(text, ':');
    int rc;

    if (!colon)
        return take_int("--ranks", text, 1, MAX_RANKS, &job->ranks);
    snprintf(first, sizeof(first), "%.*s", (int)(colon - text), text);
    rc = take_int("--ranks", first, 1, MAX_PROVEN, &job->ranks);
    return rc ? rc
              : take_int("--ranks", colon + 1, job->ranks, MAX_PROVEN,
                         &job->ranks_to);
}

/* ---- options -------------------------------------------------------------- */

static int set_action(struct job *job, enum action action)
{
    if (job->action != ACTION_NONE && job->action != action)
        return say(2, "only one action can be given; see coll_plan --help");
    job->action = action;
    return 0;
}

/* Options whose value is a name: -1 none of them, else 0 or 2. */
static int take_named(int letter, struct job *job)
{
    int i;

    switch (letter) {
    case 'c': /* the last two have no collective plan */
        i = take_name("collective", optarg, collective_name, COLL_SEND);
        job->collective = (enum coll_collective)i;
        job->has_collective = 1;
        break;
    case 't':
        i = take_name("type", optarg, type_name, COLL_N_TYPES);
        job->type = (enum coll_type)i;
        break;
    case 'o':
        i = take_name("op", optarg, op_name, COLL_N_OPS);
        job->op = (enum coll_op)i;
        break;
    case OPT_ORDER:
        i = take_name("order", optarg, order_name, 3);
        job->order = (enum coll__order)i;
        break;
    case OPT_PLACEMENT:
        i = take_name("placement", optarg, placement_name, 2);
        job->placement = i ? PLACE_CYCLIC : PLACE_BLOCK;
        break;
    default:
        return -1;
    }
    return i < 0 ? 2 : 0;
}

static int take_value(int letter, struct job *job)
{
    switch (letter) {
    case 'n':
        return take_ranks(job, optarg);
    case 'b':
        return take_bytes("--bytes", optarg, &job->bytes);
    case OPT_CHUNK:
        return take_bytes("--chunk", optarg, &job->chunk);
    case 'r':
        return take_int("--root", optarg, 0, MAX_RANKS - 1, &job->root);
    case OPT_RANK:
        return take_int("--rank", optarg, 0, MAX_RANKS - 1, &job->rank);
    case 'a':
        job->algo = optarg;
        return coll__algo_check(optarg)
                   ? say(2, "--algo: %s", strchr(coll_last_error(), ' ') + 1)
                   : 0;
    case OPT_TOPOLOGY:
        job->topology = optarg;
        return 0;
    case OPT_IN_PLACE:
        job->in_place = 1;
        return 0;
    case OPT_ALL:
        job->all = 1;
        return 0;
    case OPT_JSON:
        job->json = 1;
        return 0;
    default:
        return -1;
    }
}

static int bad_option(char **argv)
{
    char letter[] = {'-', (char)optopt, '\0'};
    int is_letter = optopt > ' ' && optopt < 127;
    const char *word = is_letter ? letter : argv[optind - 1];

    for (const struct option *o = options; o->name; o++)
        if (o->has_arg && (o->val == optopt))
            return say(2, "--%s needs a value; see coll_plan --help", o->name);
    return say(2, "unknown option %s; see coll_plan --help", word);
}

/* One option; -1: go on, else the exit status. */
static int take_option(int letter, char **argv, struct job *job)
{
    int rc;

    switch (letter) {
    case 'h':
        fputs(usage, stdout);
        return 0;
    case 'V':
        printf("coll_plan (libcoll) %s\n", coll_version());
        return 0;
    case '?':
    case ':':
        return bad_option(argv);
    case OPT_CROSSOVER:
        job->svg = optarg;
        break;
    default:
        break;
    }
    if (letter >= OPT_EXPLAIN && letter <= OPT_CROSSOVER)
        rc = set_action(job, ACTION_EXPLAIN + (enum action)(letter -
                                                            OPT_EXPLAIN));
    else if ((rc = take_named(letter, job)) < 0)
        rc = take_value(letter, job);
    return rc > 0 ? rc : -1;
}

/* ---- does it make sense together? ----------------------------------------- */

static int check_all_job(const struct job *job)
{
    if (job->action != ACTION_CHECK || job->file)
        return say(2, "--all goes with --check alone, without a file");
    if (!job->ranks_to)
        return say(2, "--check --all needs --ranks FIRST:LAST, such as 1:65");
    return -1;
}

static int check_op(const struct job *job)
{
    int is_bitwise = job->op == COLL_BAND || job->op == COLL_BOR ||
                     job->op == COLL_BXOR;
    int is_float = job->type == COLL_F16 || job->type == COLL_BF16 ||
                   job->type == COLL_F32 || job->type == COLL_F64;

    if (is_bitwise && is_float && coll__reduces(job->collective))
        return say(2, "--op %s is for integers alone; add --type u32",
                   coll_op_name(job->op));
    return -1;
}

static int check_sizes(const struct job *job)
{
    size_t size = coll_type_size(job->type);

    if (job->bytes % size)
        return say(2, "--bytes %zu is no multiple of the %zu bytes of %s; take "
                   "%zu", job->bytes, size, coll_type_name(job->type),
                   job->bytes / size * size);
    if (job->bytes > PTRDIFF_MAX / (size_t)job->ranks)
        return say(2, "--bytes %zu for %d ranks is larger than the address "
                   "space", job->bytes, job->ranks);
    if (job->root >= job->ranks)
        return say(2, "--root %d is not within 0 to %d", job->root,
                   job->ranks - 1);
    if (job->rank >= job->ranks)
        return say(2, "--rank %d is not within 0 to %d", job->rank,
                   job->ranks - 1);
    return -1;
}

/* A bare name has to be one of this collective's. */
static int check_algo(const struct job *job)
{
    char text[160];

    if (!*job->algo || strpbrk(job->algo, ":,"))
        return -1;
    snprintf(text, sizeof(text), "%s:%s", collective_name(job->collective),
             job->algo);
    return coll__algo_check(text)
               ? say(2, "--algo: %s", strchr(coll_last_error(), ' ') + 1)
               : -1;
}

static int check_job(const struct job *job)
{
    int rc;

    if (job->action == ACTION_NONE)
        return say(2, "name an action, such as --explain; see coll_plan "
                   "--help");
    if (job->all)
        return check_all_job(job);
    if (job->file)
        return job->action == ACTION_CHECK
                   ? -1
                   : say(2, "unexpected argument %s; see coll_plan --help",
                         job->file);
    if (!job->has_collective)
        return say(2, "name a --collective, such as allreduce");
    if (!job->ranks)
        return say(2, "say how many --ranks there are");
    if (job->ranks_to)
        return say(2, "a range of --ranks goes with --check --all alone");
    if (job->json &&
        (job->action == ACTION_DOT || job->action == ACTION_CROSSOVER))
        return say(2, "--json goes with --explain, --dump, --check and "
                   "--simulate");
    rc = check_op(job);
    if (rc < 0)
        rc = check_algo(job);
    return rc < 0 ? check_sizes(job) : rc;
}

int args_take(int argc, char **argv, struct job *job)
{
    int letter, rc;

    opterr = 0;
    while ((letter = getopt_long(argc, argv, ":c:n:b:t:o:r:a:hV", options,
                                 NULL)) != -1) {
        rc = take_option(letter, argv, job);
        if (rc >= 0)
            return rc;
        if (letter == 'h' || letter == 'V')
            return 0;
    }
    if (optind + 1 < argc)
        return say(2, "unexpected argument %s; see coll_plan --help",
                   argv[optind + 1]);
    job->file = argv[optind]; /* NULL when there is none */
    return check_job(job);
}
