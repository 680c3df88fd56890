/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_args.c - collrun's options.
 *
 * They have the names of horovodrun, torchrun and mpirun.  A name may be written with _
 * for -, and after a single -: "-np 2" is np, and not n with the value "p".
 */
#include "tools/collrun.h"
#include "tools/common/cores.h"
#include "tools/common/program.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 4096
#define ENDPOINT_PORT 29400 /* as torchrun has it */
#define MASTER_PORT 29500   /* the same */

/* Options of other launchers, and what to do instead. */
static const struct program_hint foreign[] = {
    {"mpi", "it is for horovodrun; start PROGRAM by mpirun itself"},
    {"bind-to", "say --bind core or --bind none"},
    {"map-by", "ranks come in order; say --hosts HOST:RANKS,..."},
    {"mca", "it is Open MPI's; set libcoll's variables by -x COLL_..."},
    {"verbose", "say -x COLL_LOG=info"},
    {"log-level", "say -x COLL_LOG=info"},
    {"timeline-filename", "say -x COLL_TIMELINE=FILE"},
    {"fusion-threshold-mb", "give the program coll_train --bucket-mb"},
    {"cycle-time-ms", "libcoll has no cycle: nothing waits for one"},
    {"cache-capacity",
     "libcoll does not negotiate, so it caches nothing of that"},
    {"disable-cache",
     "libcoll does not negotiate, so it caches nothing of that"},
    {"autotune", "run coll_tune once, then say -x COLL_TUNE_FILE=..."},
    {"network-interfaces", "say -x COLL_NET_INTERFACE=..."},
    {"network-interface", "say -x COLL_NET_INTERFACE=..."},
    {"start-timeout", "say -x COLL_TIMEOUT=..."},
    {"ssh-port",
     "with --min-np, say --rsh-agent \"ssh -p PORT\"; else hosts are "
     "reached by srun or mpirun"},
    {"tee", "say --output-filename DIR"},
    {"redirects", "say --output-filename DIR"},
    {"log-dir", "say --output-filename DIR"},
    {"enable-each-rank-log", "say --output-filename DIR"},
    {"num-gpus", "say --nproc-per-node gpu"},
    {NULL, NULL},
};

/* ---- values --------------------------------------------------------------- */

static int parse_count(const char *option, const char *text, long most, int *n)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < 1 || value > most) {
        complain("%s %s: the number must be 1 to %ld", option, text, most);
        return -1;
    }
    *n = (int)value;
    return 0;
}

/* Return how many GPUs the driver has made devices for. */
static int count_gpus(void)
{
    DIR *folder = opendir("/proc/driver/nvidia/gpus");
    struct dirent *entry;
    int n = 0;

    if (!folder)
        return 0;
    while ((entry = readdir(folder)))
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

/* Read --nproc-per-node as torchrun does: a number, or what to count. */
static int parse_per_node(const char *text, int *n)
{
    int is_auto = !strcmp(text, "auto");

    if (is_auto || !strcmp(text, "gpu"))
        *n = count_gpus();
    else if (strcmp(text, "cpu"))
        return parse_count("--nproc-per-node", text, MAX_RANKS, n);
    if (!strcmp(text, "cpu") || (is_auto && !*n))
        *n = cores_count();
    if (*n)
        return 0;
    complain(
        "--nproc-per-node gpu: there is no GPU here; say a number, or cpu");
    return -1;
}

/* Read "2", or torchrun's "1:4" for a job that may grow. */
static int parse_nodes(const char *text, int *n)
{
    if (!strchr(text, ':'))
        return parse_count("--nnodes", text, MAX_RANKS, n);
    complain("--nnodes %s: the number of hosts is fixed; name one", text);
    return -1;
}

static int parse_port(const char *option, const char *text, int *port)
{
    return parse_count(option, text, 65535, port);
}

/* Read "h1:3000", "[::1]:3000", or a host alone. */
static int parse_endpoint(struct options *o, const char *text)
{
    char *host = o->endpoint;
    int len = snprintf(host, sizeof(o->endpoint), "%s", text);
    char *end = *host == '[' ? strchr(host, ']') : NULL;
    char *port = strchr(end ? end : host, ':');
    int is_wrong = len >= (int)sizeof(o->endpoint) || *host == ':' || !*host ||
                   (end ? end[1] && port != end + 1
                        : *host == '[' || port != strrchr(host, ':'));

    o->endpoint_host = end ? host + 1 : host;
    o->endpoint_port = ENDPOINT_PORT;
    if (is_wrong) {
        complain("--rdzv-endpoint %s: it must be HOST:PORT, such as h1:3000 or "
                 "[fd00::1]:3000",
                 text);
        return -1;
    }
    if (port)
        *port++ = '\0';
    if (end)
        *end = '\0';
    return port ? parse_port("--rdzv-endpoint HOST:", port, &o->endpoint_port)
                : 0;
}

/* ---- options -------------------------------------------------------------- */

static int take_per_node(const struct program *p, const char *text, void *into)
{
    (void)p;
    return parse_per_node(text, &((struct options *)into)->per_node)
               ? PROGRAM_USAGE
               : 0;
}

static int take_nodes(const struct program *p, const char *text, void *into)
{
    (void)p;
    return parse_nodes(text, &((struct options *)into)->n_nodes) ? PROGRAM_USAGE
                                                                 : 0;
}

static int take_endpoint(const struct program *p, const char *text, void *into)
{
    (void)p;
    return parse_endpoint(into, text) ? PROGRAM_USAGE : 0;
}

static int take_variable(const struct program *p, const char *text, void *into)
{
    (void)p;
    return variables_take(into, text) ? PROGRAM_USAGE : 0;
}

static int take_env_file(const struct program *p, const char *text, void *into)
{
    (void)p;
    return variables_read(into, text) ? PROGRAM_USAGE : 0;
}

/* The value may be empty: the user passed an unset variable of the batch system. */
static int take_run_id(const struct program *p, const char *text, void *into)
{
    (void)p;
    ((struct options *)into)->run_id = text;
    return 0;
}

static int take_check(const struct program *p, const char *text, void *into)
{
    (void)p, (void)text;
    ((struct options *)into)->only = ONLY_CHECK;
    return 0;
}

#define AT(field) offsetof(struct options, field)

/* Other launchers' names of an option of --help. */
#define ALSO(also, kind, at, value)                                            \
    {                                                                          \
        also, 0, kind, at, value, NULL, .help = NULL                           \
    }
#define ALSO_RANKS(also)                                                       \
    {                                                                          \
        also, 0, OPTION_INT, AT(n), "RANKS", NULL, .help = NULL, .least = 1,   \
                                                   .most = MAX_RANKS           \
    }
#define ALSO_LIMIT(also, field)                                                \
    {                                                                          \
        also, 0, OPTION_INT, AT(field), "RANKS", NULL,                         \
            .help = NULL, .least = 1, .most = MAX_RANKS                        \
    }
#define ALSO_PER_NODE(also)                                                    \
    {                                                                          \
        also, 0, OPTION_CALL, 0, "N", NULL, .help = NULL,                      \
                                            .take = take_per_node              \
    }

static const struct program_option options[] = {
    {.name = "", .help = "Ranks and hosts"},
    {"n", 'n', OPTION_INT, AT(n), "RANKS", NULL,
     .help = "number of ranks on this machine; also -np, --num-proc",
     .least = 1, .most = MAX_RANKS},
    ALSO_RANKS("np"),
    ALSO_RANKS("num-proc"),
    {"nproc-per-node", 0, OPTION_CALL, 0, "N", NULL,
     .help = "number of ranks on each host; or cpu, gpu, auto: one for each "
             "core, for each GPU, or for each GPU if there are any, else each "
             "core; also --npernode, --ntasks-per-node, -ppn",
     .take = take_per_node},
    ALSO_PER_NODE("npernode"),
    ALSO_PER_NODE("ntasks-per-node"),
    ALSO_PER_NODE("ppn"),
    {"nnodes", 0, OPTION_CALL, 0, "N", NULL,
     .help = "number of hosts; more than one need --hosts, or a collrun on "
             "each of them with --rdzv-endpoint; also --num-nodes",
     .take = take_nodes},
    {"num-nodes", 0, OPTION_CALL, 0, "N", NULL, .help = NULL,
     .take = take_nodes},
    {"hosts", 'H', OPTION_TEXT, AT(hosts), "HOST:RANKS,...", NULL,
     .help = "start the ranks on these hosts, by srun (inside a Slurm "
             "allocation) or mpirun, whichever is there; with --min-np, by "
             "--rsh-agent; also --host"},
    ALSO("host", OPTION_TEXT, AT(hosts), "HOST:RANKS,..."),
    {"hostfile", 0, OPTION_TEXT, AT(hostfile), "FILE", NULL,
     .help = "the same from a file with lines HOST, HOST:N or HOST slots=N; # "
             "begins a comment; also --machinefile"},
    ALSO("machinefile", OPTION_TEXT, AT(hostfile), "FILE"),
    {"include", 'i', OPTION_TEXT, AT(include), "H[:SLOT,...][@H...]", NULL,
     .help = "use only these of the hosts, and of a host only these slots, "
             "which count from 0; a rank sees the GPU of its slot's number"},
    {"exclude", 'e', OPTION_TEXT, AT(exclude), "H[:SLOT,...][@H...]", NULL,
     .help = "use all hosts and slots but these"},
    {.name = "", .help = "Hosts that each start a collrun"},
    {"rdzv-endpoint", 0, OPTION_CALL, 0, "HOST[:PORT]", NULL,
     .help = "where the collruns meet, in any order, within COLL_TIMEOUT (300 "
             "s): an address of one of the hosts (default port 29400)",
     .take = take_endpoint},
    {"rdzv-id", 0, OPTION_CALL, 0, "ID", NULL,
     .help = "the name of the run, the same for all of them; the ranks find it "
             "in TORCHELASTIC_RUN_ID",
     .take = take_run_id},
    {"node-rank", 0, OPTION_INT, AT(node_rank), "R", NULL,
     .help = "instead of --rdzv-endpoint, with the next two: which host this "
             "is; host 0 is that of --master-addr",
     .most = MAX_RANKS - 1},
    {"master-addr", 0, OPTION_TEXT, AT(master_addr), "HOST", NULL,
     .help = "the address of host 0"},
    {"master-port", 0, OPTION_INT, AT(master_port), "PORT", NULL,
     .help = "the port there (default 29500)", .least = 1, .most = 65535},
    {.name = "", .help = "What ranks see, and their output"},
    {"x", 'x', OPTION_CALL, 0, "VAR[=VALUE]", NULL,
     .help = "set this variable for the ranks, on other hosts as well",
     .take = take_variable},
    {"env-file", 0, OPTION_CALL, 0, "FILE", NULL,
     .help =
         "the same from a file with lines VAR=VALUE or VAR; # begins a comment",
     .take = take_env_file},
    {"bind", 0, OPTION_CHOICE, AT(is_bound), "none|core", NULL,
     .help = "core: bind each rank to a core of its own (default none)"},
    {"no-prefix", 0, OPTION_SWITCH, AT(is_plain), NULL, NULL,
     .help = "print the ranks' lines without their numbers"},
    {"output-filename", 0, OPTION_TEXT, AT(output_folder), "DIR", NULL,
     .help = "also write the output of rank N to DIR/rank.N/stdout and stderr, "
             "on its host; no rank has the terminal itself then"},
    {.name = "", .help = "The end of the job"},
    {"timeout", 0, OPTION_POSITIVE, AT(timeout), "SECONDS", NULL,
     .help = "end the job after so many seconds, with status 124"},
    {"max-restarts", 0, OPTION_INT, AT(max_restarts), "N", NULL,
     .help = "when a rank fails, start all ranks again, N times at most "
             "(default 0); coll_train goes on from its checkpoint; with "
             "--min-np, start N processes in place of failed ranks at most"},
    {"min-np", 0, OPTION_INT, AT(min_np), "RANKS", NULL,
     .help = "when a rank fails, or a host is gone, the others go on as long "
             "as so many are left, by coll_comm_shrink() and coll_comm_grow(); "
             "also --min-num-proc",
     .least = 1, .most = MAX_RANKS},
    ALSO_LIMIT("min-num-proc", min_np),
    {"max-np", 0, OPTION_INT, AT(max_np), "RANKS", NULL,
     .help = "with --min-np: the most ranks at a time (default: those of the "
             "beginning); also --max-num-proc",
     .least = 1, .most = MAX_RANKS},
    ALSO_LIMIT("max-num-proc", max_np),
    {"host-discovery-script", 0, OPTION_TEXT, AT(discovery_script), "SCRIPT",
     NULL,
     .help =
         "with --min-np: run this every second, which prints the hosts that "
         "there are now, as lines HOST or HOST:RANKS; new ones get "
         "processes, up to --max-np (default: any number)"},
    {"rsh-agent", 0, OPTION_TEXT, AT(rsh_agent), "COMMAND", NULL,
     .help = "with --min-np and hosts: start a collrun on each by COMMAND HOST "
             "(default ssh)"},
    {.name = "", .help = "Measuring coll_train"},
    {"scaling", 0, OPTION_TEXT, AT(scaling), "N,N,...", NULL,
     .help = "run coll_train with each of these numbers of ranks, and print a "
             "table"},
    {"repeat", 0, OPTION_INT, AT(n_rounds), "R", NULL,
     .help = "run each R times, the numbers taking turns; the table has the "
             "medians",
     .least = 1, .most = 99},
    {"models", 0, OPTION_TEXT, AT(models), "M,M,...", NULL,
     .help = "print a table for each of these models"},
    {"csv", 0, OPTION_TEXT, AT(csv), "FILE", NULL,
     .help = "also write the table to this file, as CSV"},
    {.name = "", .help = "Other"},
    {"check-build", 0, OPTION_CALL, 0, NULL, NULL,
     .help = "print what this build can do; also -cb", .take = take_check},
    {"cb", 0, OPTION_CALL, 0, NULL, NULL, .help = NULL, .take = take_check},
    /* of collrun to itself */
    {"is-far", 0, OPTION_SWITCH, AT(is_far), NULL, NULL, .help = NULL},
    {"within", 0, OPTION_INT, AT(is_within), "N", NULL, .help = NULL,
     .least = 1},
    ALSO("slots", OPTION_TEXT, AT(slots), "LIST"),
    /* other launchers' options; a collrun on a single machine ignores them */
    ALSO("rdzv-backend", OPTION_NONE, 0, "NAME"),
    ALSO("standalone", OPTION_NONE, 0, NULL),
    ALSO("no-python", OPTION_NONE, 0, NULL),
    ALSO("oversubscribe", OPTION_NONE, 0, NULL),
    ALSO("allow-run-as-root", OPTION_NONE, 0, NULL),
    ALSO("gloo", OPTION_NONE, 0, NULL),
    {.name = NULL},
};

static const struct program program = {
    .name = "collrun",
    .usage = "-n RANKS [OPTION]... PROGRAM [ARGUMENT]...\n"
             "--hosts HOST:RANKS,... [OPTION]... PROGRAM [ARGUMENT]...\n"
             "--nnodes N --nproc-per-node M --rdzv-endpoint HOST:PORT PROGRAM "
             "...",
    .about = "Start processes of PROGRAM that find each other by libcoll: on "
             "this machine, on\nother hosts, or, by the third form on each of "
             "N hosts, M processes there.",
    .notes =
        "The name of an option may have _ in place of -, and a single - before "
        "it.\n\n"
        "Ranks find RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_SIZE, "
        "LOCAL_WORLD_SIZE,\nGROUP_RANK, CROSS_RANK, CROSS_SIZE, MASTER_ADDR "
        "and MASTER_PORT in their\nenvironment, so that programs made for "
        "torchrun start as well.\n\n"
        "Lines begin with \"[rank] \" once a second rank has written to the "
        "same stream.\nRank 0 reads standard input, and has the terminal if "
        "standard output is one.\n\n"
        "A rank that fails ends the job, unless --min-np allows for it: the "
        "others have\n2 s to report, then get TERM, and KILL 2 s later (10 s "
        "after a TERM to collrun).\nThe exit status is that of the failed "
        "rank; "
        "128 + the signal that killed it; or\n127 or 126 when PROGRAM is not "
        "found or cannot be run.\n",
    .options = options,
    .hints = foreign,
    .most_words = -1,
    .is_launcher = 1,
};

/* ---- do the options go together? ------------------------------------------- */

/* Take the endpoint from --master-addr, whose IPv6 address may stand in brackets. */
static void take_master(struct options *o)
{
    size_t len = strlen(o->master_addr);
    int has_brackets =
        len > 2 && *o->master_addr == '[' && o->master_addr[len - 1] == ']';

    snprintf(o->endpoint, sizeof(o->endpoint), "%.*s",
             (int)(len - (has_brackets ? 2 : 0)),
             o->master_addr + has_brackets);
    o->endpoint_host = o->endpoint;
    o->endpoint_port = o->master_port ? o->master_port : MASTER_PORT;
}

/* A link-local address means nothing without an interface. */
static int needs_interface(const char *host)
{
    struct in6_addr ip;

    return inet_pton(AF_INET6, host, &ip) == 1 && IN6_IS_ADDR_LINKLOCAL(&ip);
}

/* Check where several collruns meet.  A torchrun command line for one host names an
 * endpoint too, which is ignored. */
static int judge_endpoint(struct options *o, int is_far)
{
    if (o->master_addr && !o->endpoint_host)
        take_master(o);
    if (o->n_nodes <= 1 || is_far) {
        o->endpoint_host = NULL;
        return 0;
    }
    if (!o->endpoint_host)
        complain(
            "--nnodes %d, but which ones? name them by --hosts or --hostfile, "
            "or start collrun on each, with --rdzv-endpoint HOST:PORT",
            o->n_nodes);
    else if (needs_interface(o->endpoint_host))
        complain("%s is a link-local address, which every interface has: name "
                 "the interface behind it, such as %s%%eth0",
                 o->endpoint_host, o->endpoint_host);
    else if (!o->per_node || o->n)
        complain("how many ranks on this node? say --nproc-per-node, %s",
                 o->n ? "and leave -n out" : "a number, cpu or gpu");
    else if (o->node_rank >= o->n_nodes)
        complain("--node-rank %d of --nnodes %d: it must be 0 to %d",
                 o->node_rank, o->n_nodes, o->n_nodes - 1);
    else if (o->scaling)
        complain("--scaling is for this machine; leave --nnodes out");
    else
        return 0;
    return -1;
}

/* Of which hosts? */
static int judge_choice(const struct options *o, int is_far)
{
    if (!o->include && !o->exclude)
        return 0;
    if (o->include && o->exclude)
        complain("--include and --exclude are two ways to say one thing; leave "
                 "one out");
    else if (!is_far)
        complain("%s chooses among hosts; name them by --hostfile or --hosts",
                 o->include ? "--include" : "--exclude");
    else
        return 0;
    return -1;
}

/* May ranks be lost? */
static int judge_limits(const struct options *o)
{
    int is_far = o->hosts || o->hostfile || o->discovery_script;

    if (!o->min_np && (o->discovery_script || o->rsh_agent))
        complain("%s belongs to --min-np; say how few ranks may be left",
                 o->discovery_script ? "--host-discovery-script"
                                     : "--rsh-agent");
    else if (o->rsh_agent && !is_far)
        complain("--rsh-agent reaches hosts; name them by --hosts, --hostfile "
                 "or --host-discovery-script");
    else if (!o->min_np && !o->max_np)
        return 0;
    else if (!o->min_np)
        complain("--max-np %d, but how few ranks may be left? say --min-np",
                 o->max_np);
    else if (o->scaling)
        complain("--scaling says how many ranks; leave --min-np out");
    else
        return 0;
    return -1;
}

/* Check options that depend on each other. */
static int judge(struct options *o)
{
    int is_far = o->hosts || o->hostfile || o->discovery_script;

    if (!!o->hosts + !!o->hostfile + !!o->discovery_script > 1) {
        complain("--hosts, --hostfile and --host-discovery-script name the "
                 "hosts; leave all but one out");
        return -1;
    }
    if (o->is_within)
        o->n = 1;
    if (judge_endpoint(o, is_far) || judge_choice(o, is_far))
        return -1;
    if (o->scaling && o->output_folder) {
        complain("--output-filename is for one run; leave it or --scaling out");
        return -1;
    }
    if (!is_far && o->per_node) {
        if (o->n && o->n != o->per_node) {
            complain(
                "-n %d, but --nproc-per-node %d on one machine; leave one out",
                o->n, o->per_node);
            return -1;
        }
        o->n = o->per_node;
    }
    if (o->scaling && (o->n || is_far)) {
        complain("--scaling says how many ranks, on this machine; leave %s out",
                 o->n ? "-n" : "--hosts");
        return -1;
    }
    if ((o->csv || o->n_rounds || o->models) && !o->scaling) {
        complain("--repeat, --csv and --models belong to --scaling");
        return -1;
    }
    if (!o->n && !is_far && !o->scaling) {
        complain(
            "how many ranks? say collrun -n 4 PROGRAM; see collrun --help");
        return -1;
    }
    if (judge_limits(o))
        return -1;
    if (!*o->command) {
        complain("no program to run; say collrun -n 4 PROGRAM ARGUMENTS");
        return -1;
    }
    return 0;
}

int options_parse(struct options *o, int argc, char **argv)
{
    int status, first;

    o->node_rank = -1;
    first = program_read(&program, argc, argv, o, &status);
    if (first < 0)
        o->only = ONLY_HELP; /* or an error, already reported */
    if (o->only)
        return status;
    o->command = argv + first;
    return judge(o) ? PROGRAM_USAGE : 0;
}
