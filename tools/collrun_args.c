/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_args.c - collrun's options.
 *
 * They have the names that people type for horovodrun, torchrun and mpirun.  A
 * name may be written with _ for -, and after a single -: "-np 2" is np, and
 * not n with the value "p".
 */
#include "tools/collrun.h"
#include "tools/common/cores.h"
#include "tools/common/near.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 4096
#define ENDPOINT_PORT 29400 /* as torchrun has it */
#define MASTER_PORT 29500   /* the same */
#define NEAR 3 /* letters that a name may be wrong in, for a hint */

enum {
    OPT_BIND = 256,
    OPT_PLAIN,
    OPT_TIMEOUT,
    OPT_CHECK,
    OPT_PER_NODE,
    OPT_NODES,
    OPT_HOSTFILE,
    OPT_RESTARTS,
    OPT_RUN_ID,
    OPT_ENDPOINT,
    OPT_NODE_RANK,
    OPT_MASTER_ADDR,
    OPT_MASTER_PORT,
    OPT_SCALING,
    OPT_REPEAT,
    OPT_CSV,
    OPT_MODELS,
    OPT_OUTPUT,
    OPT_ENV_FILE,
    OPT_WITHIN,
    OPT_SLOTS,
    OPT_NO_MATTER
};

static const struct option long_options[] = {
    {"n", required_argument, NULL, 'n'},
    {"np", required_argument, NULL, 'n'},
    {"num-proc", required_argument, NULL, 'n'},
    {"nproc-per-node", required_argument, NULL, OPT_PER_NODE},
    {"npernode", required_argument, NULL, OPT_PER_NODE},
    {"ntasks-per-node", required_argument, NULL, OPT_PER_NODE},
    {"ppn", required_argument, NULL, OPT_PER_NODE},
    {"nnodes", required_argument, NULL, OPT_NODES},
    {"num-nodes", required_argument, NULL, OPT_NODES},
    {"hosts", required_argument, NULL, 'H'},
    {"host", required_argument, NULL, 'H'},
    {"hostfile", required_argument, NULL, OPT_HOSTFILE},
    {"machinefile", required_argument, NULL, OPT_HOSTFILE},
    {"include", required_argument, NULL, 'i'},
    {"exclude", required_argument, NULL, 'e'},
    {"env-file", required_argument, NULL, OPT_ENV_FILE},
    {"output-filename", required_argument, NULL, OPT_OUTPUT},
    {"within", required_argument, NULL, OPT_WITHIN}, /* from here on of */
    {"slots", required_argument, NULL, OPT_SLOTS},   /* collrun to itself */
    {"bind", required_argument, NULL, OPT_BIND},
    {"no-prefix", no_argument, NULL, OPT_PLAIN},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"max-restarts", required_argument, NULL, OPT_RESTARTS},
    {"scaling", required_argument, NULL, OPT_SCALING},
    {"repeat", required_argument, NULL, OPT_REPEAT},
    {"csv", required_argument, NULL, OPT_CSV},
    {"models", required_argument, NULL, OPT_MODELS},
    {"rdzv-id", required_argument, NULL, OPT_RUN_ID},
    {"rdzv-backend", required_argument, NULL, OPT_NO_MATTER},
    {"rdzv-endpoint", required_argument, NULL, OPT_ENDPOINT},
    {"node-rank", required_argument, NULL, OPT_NODE_RANK},
    {"master-addr", required_argument, NULL, OPT_MASTER_ADDR},
    {"master-port", required_argument, NULL, OPT_MASTER_PORT},
    {"standalone", no_argument, NULL, OPT_NO_MATTER},
    {"no-python", no_argument, NULL, OPT_NO_MATTER},
    {"oversubscribe", no_argument, NULL, OPT_NO_MATTER},
    {"allow-run-as-root", no_argument, NULL, OPT_NO_MATTER},
    {"gloo", no_argument, NULL, OPT_NO_MATTER},
    {"cb", no_argument, NULL, OPT_CHECK},
    {"check-build", no_argument, NULL, OPT_CHECK},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* What other launchers have, and what to do instead. */
static const struct {
    const char *name, *instead;
} foreign[] = {
    {"mpi", "it is for horovodrun; start PROGRAM by mpirun itself"},
    {"bind-to", "say --bind core or --bind none"},
    {"map-by", "ranks come in order; say --hosts HOST:RANKS,..."},
    {"mca", "it is Open MPI's; set libcoll's variables by -x COLL_..."},
    {"verbose", "say -x COLL_LOG=info"},
    {"log-level", "say -x COLL_LOG=info"},
    {"timeline-filename", "say -x COLL_TIMELINE=FILE"},
    {"fusion-threshold-mb", "give the program coll_train --bucket-mb"},
    {"cycle-time-ms", "libcoll has no cycle: nothing waits for one"},
    {"cache-capacity", "libcoll does not negotiate, so it caches nothing of "
                       "that"},
    {"disable-cache", "libcoll does not negotiate, so it caches nothing of "
                      "that"},
    {"autotune", "run coll_tune once, then say -x COLL_TUNE_FILE=..."},
    {"network-interfaces", "say -x COLL_NET_INTERFACE=..."},
    {"network-interface", "say -x COLL_NET_INTERFACE=..."},
    {"start-timeout", "say -x COLL_TIMEOUT=..."},
    {"min-np", "the number of ranks is fixed; see --max-restarts"},
    {"max-np", "the number of ranks is fixed; see --max-restarts"},
    {"host-discovery-script", "the hosts are fixed; see --hosts"},
    {"ssh-port", "hosts are reached by srun or mpirun; see --hosts"},
    {"tee", "say --output-filename DIR"},
    {"redirects", "say --output-filename DIR"},
    {"log-dir", "say --output-filename DIR"},
    {"enable-each-rank-log", "say --output-filename DIR"},
    {"num-gpus", "say --nproc-per-node gpu"},
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

static int parse_restarts(const char *text, int *n)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end != text && !*end && value >= 0 && value <= 1000000) {
        *n = (int)value;
        return 0;
    }
    complain("--max-restarts %s: it must be a whole number, 0 or more", text);
    return -1;
}

static int parse_timeout(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    if (end != text && !*end && isfinite(*seconds) && *seconds > 0)
        return 0;
    complain("--timeout %s: it must be a number of seconds above 0", text);
    return -1;
}

static int parse_bind(const char *text, int *is_bound)
{
    *is_bound = !strcmp(text, "core");
    if (*is_bound || !strcmp(text, "none"))
        return 0;
    complain("--bind %s: it must be core or none", text);
    return -1;
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

/* As torchrun reads it: a number, or what to count. */
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
    complain("--nproc-per-node gpu: there is no GPU here; say a number, or "
             "cpu");
    return -1;
}

/* "2", or torchrun's "1:4" where it may grow. */
static int parse_nodes(const char *text, int *n)
{
    if (!strchr(text, ':'))
        return parse_count("--nnodes", text, MAX_RANKS, n);
    complain("--nnodes %s: the number of hosts is fixed; name one", text);
    return -1;
}

static int parse_node_rank(const char *text, int *rank)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end != text && !*end && value >= 0 && value < MAX_RANKS) {
        *rank = (int)value;
        return 0;
    }
    complain("--node-rank %s: it must be 0 to the number of nodes - 1", text);
    return -1;
}

static int parse_port(const char *option, const char *text, int *port)
{
    return parse_count(option, text, 65535, port);
}

/* "h1:3000", "[::1]:3000", or a host alone. */
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
        complain("--rdzv-endpoint %s: it must be HOST:PORT", text);
        return -1;
    }
    if (port)
        *port++ = '\0';
    if (end)
        *end = '\0';
    return port ? parse_port("--rdzv-endpoint HOST:", port, &o->endpoint_port)
                : 0;
}

static int parse_folder(const char *text, const char **folder)
{
    *folder = text;
    if (*text)
        return 0;
    complain("--output-filename wants the name of a folder");
    return -1;
}

static int ask_only(struct options *o, int what)
{
    o->only = what;
    return 0;
}

/* Where an option's text is kept as it is; NULL: it is not. */
static const char **text_of(int c, struct options *o)
{
    switch (c) {
    case 'H':
        return &o->hosts;
    case OPT_HOSTFILE:
        return &o->hostfile;
    case 'i':
        return &o->include;
    case 'e':
        return &o->exclude;
    case OPT_SLOTS:
        return &o->slots;
    case OPT_SCALING:
        return &o->scaling;
    case OPT_CSV:
        return &o->csv;
    case OPT_MODELS:
        return &o->models;
    case OPT_RUN_ID:
        return &o->run_id;
    case OPT_MASTER_ADDR:
        return &o->master_addr;
    default:
        return NULL;
    }
}

/* Act on one option: 0, or -1 when it is wrong, and why has been said. */
static int take_option(int c, struct options *o)
{
    const char **text = text_of(c, o);

    if (text) {
        *text = optarg;
        return 0;
    }
    switch (c) {
    case 'n':
        return parse_count("-n", optarg, MAX_RANKS, &o->n);
    case OPT_PER_NODE:
        return parse_per_node(optarg, &o->per_node);
    case OPT_NODES:
        return parse_nodes(optarg, &o->n_nodes);
    case 'x':
        return variables_take(o, optarg);
    case OPT_ENV_FILE:
        return variables_read(o, optarg);
    case OPT_OUTPUT:
        return parse_folder(optarg, &o->output_folder);
    case OPT_WITHIN:
        return parse_count("--within", optarg, INT_MAX, &o->is_within);
    case OPT_BIND:
        return parse_bind(optarg, &o->is_bound);
    case OPT_PLAIN:
        o->is_plain = 1;
        return 0;
    case OPT_TIMEOUT:
        return parse_timeout(optarg, &o->timeout);
    case OPT_RESTARTS:
        return parse_restarts(optarg, &o->max_restarts);
    case OPT_REPEAT:
        return parse_count("--repeat", optarg, 99, &o->n_rounds);
    case OPT_ENDPOINT:
        return parse_endpoint(o, optarg);
    case OPT_NODE_RANK:
        return parse_node_rank(optarg, &o->node_rank);
    case OPT_MASTER_PORT:
        return parse_port("--master-port", optarg, &o->master_port);
    case OPT_CHECK:
        return ask_only(o, ONLY_CHECK);
    case 'h':
        return ask_only(o, ONLY_HELP);
    case 'V':
        return ask_only(o, ONLY_VERSION);
    default: /* what one collrun on one machine knows by itself */
        return 0;
    }
}

/* ---- what is wrong -------------------------------------------------------- */

/* Return the option's name nearest to this one, or NULL. */
static const char *nearest(const char *name)
{
    const char *best = NULL;
    size_t least = NEAR;

    for (const struct option *o = long_options; o->name; o++) {
        size_t d = near_distance(name, o->name);

        if (d < least && 2 * d < strlen(name)) {
            least = d;
            best = o->name;
        }
    }
    return best;
}

/* getopt speaks by itself, but not with a remedy. */
static void explain_option(int c, const char *word)
{
    size_t dashes = strspn(word, "-");
    char name[64];
    const char *near;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + dashes, "="),
             word + dashes);
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        if (!strcmp(foreign[i].name, name)) {
            complain("collrun has no --%s: %s", name, foreign[i].instead);
            return;
        }
    near = nearest(name);
    if (c == ':')
        complain("option %s wants a value; see collrun --help", word);
    else if (near)
        complain("unknown option %s; did you mean --%s? see collrun --help",
                 word, near);
    else
        complain("unknown option %s; see collrun --help", word);
}

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

/* A link-local address means something together with an interface alone. */
static int needs_interface(const char *host)
{
    struct in6_addr ip;

    return inet_pton(AF_INET6, host, &ip) == 1 && IN6_IS_ADDR_LINKLOCAL(&ip);
}

/* Where several collruns meet; torchrun's lines for one host name a place, too, that
 * nobody need go to. */
static int judge_endpoint(struct options *o, int is_far)
{
    if (o->master_addr && !o->endpoint_host)
        take_master(o);
    if (o->n_nodes <= 1 || is_far) {
        o->endpoint_host = NULL;
        return 0;
    }
    if (!o->endpoint_host)
        complain("--nnodes %d, but which ones? name them by --hosts or "
                 "--hostfile, or start collrun on each, with --rdzv-endpoint "
                 "HOST:PORT",
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

/* What no option can see by itself. */
static int judge(struct options *o)
{
    int is_far = o->hosts || o->hostfile;

    if (o->hosts && o->hostfile) {
        complain("--hosts and --hostfile say the same; leave one out");
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
            complain("-n %d, but --nproc-per-node %d on one machine; leave "
                     "one out",
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
        complain("how many ranks? say collrun -n 4 PROGRAM; see collrun "
                 "--help");
        return -1;
    }
    if (!*o->command) {
        complain("no program to run; say collrun -n 4 PROGRAM ARGUMENTS");
        return -1;
    }
    return 0;
}

/* "--max_restarts=3" becomes "--max-restarts=3". */
static void spell(char *word)
{
    if (word && word[0] == '-')
        for (char *c = word; *c && *c != '='; c++)
            if (*c == '_')
                *c = '-';
}

int options_parse(struct options *o, int argc, char **argv)
{
    char *word;
    int c;

    opterr = 0;
    o->node_rank = -1;
    for (;;) {
        int at = optind;

        word = at < argc ? argv[at] : NULL;
        spell(word);
        c = getopt_long_only(argc, argv, "+:n:H:x:i:e:hV", long_options, NULL);
        if (c == -1)
            break;
        if (c == '?' || c == ':') {
            explain_option(c, word);
            return EXIT_USAGE;
        }
        if (take_option(c, o))
            return EXIT_USAGE;
        if (o->only)
            return 0;
    }
    o->command = argv + optind;
    return judge(o) ? EXIT_USAGE : 0;
}
