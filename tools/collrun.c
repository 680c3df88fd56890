/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun.c - start the ranks of a job: the command line. */
#include "tools/collrun.h"

#include <coll/coll.h>

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 4096

static const char usage[] =
    "Usage: collrun -n RANKS [options] PROGRAM [ARGUMENTS]\n"
    "       collrun --hosts HOST:RANKS,... [options] PROGRAM [ARGUMENTS]\n"
    "Start RANKS processes of PROGRAM that find each other by libcoll.\n"
    "\n"
    "  -n, --np RANKS     how many ranks, on this machine\n"
    "  -H, --hosts LIST   on these hosts, by srun (inside a Slurm allocation)\n"
    "                     or mpirun, whichever is there\n"
    "      --bind WHAT    core: a core for each rank, in turn; none (default)\n"
    "      --no-prefix    pass the lines on as they are\n"
    "      --timeout S    end the job after S seconds, with status 124\n"
    "  -cb, --check-build print what this build can do and exit\n"
    "  -h, --help         print this and exit\n"
    "  -V, --version      print the version and exit\n"
    "\n"
    "Lines begin with \"[rank] \" once a second rank has written to the same\n"
    "stream.  stdin goes to rank 0.  A rank that fails ends the job: the\n"
    "others have 2 s to report, then get TERM, and KILL 2 s later; collrun\n"
    "exits with the failed rank's status, 128 + the signal that killed it, or\n"
    "127 or 126 when PROGRAM is not found or cannot be run.\n";

void complain(const char *format, ...)
{
    va_list args;

    fputs("collrun: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static int parse_ranks(const char *text, int *n)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < 1 || value > MAX_RANKS) {
        complain("-n %s: the number of ranks must be 1 to %d", text, MAX_RANKS);
        return -1;
    }
    *n = (int)value;
    return 0;
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

enum { OPT_BIND = 256, OPT_PLAIN, OPT_TIMEOUT, OPT_CHECK };

static const struct option long_options[] = {
    {"np", required_argument, NULL, 'n'},
    {"num-proc", required_argument, NULL, 'n'},
    {"hosts", required_argument, NULL, 'H'},
    {"bind", required_argument, NULL, OPT_BIND},
    {"no-prefix", no_argument, NULL, OPT_PLAIN},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"check-build", no_argument, NULL, OPT_CHECK},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* Act on one option; -1 to go on, else the exit status. */
static int take_option(int c, struct options *o)
{
    switch (c) {
    case 'n':
        return parse_ranks(optarg, &o->n) ? EXIT_USAGE : -1;
    case 'H':
        o->hosts = optarg;
        return -1;
    case OPT_BIND:
        return parse_bind(optarg, &o->is_bound) ? EXIT_USAGE : -1;
    case OPT_PLAIN:
        o->is_plain = 1;
        return -1;
    case OPT_TIMEOUT:
        return parse_timeout(optarg, &o->timeout) ? EXIT_USAGE : -1;
    case 'c': /* -cb, which getopt takes for -c with the value b */
        if (strcmp(optarg, "b")) {
            complain("unknown option -c%s; see collrun --help", optarg);
            return EXIT_USAGE;
        }
        check_build();
        return EXIT_SUCCESS;
    case OPT_CHECK:
        check_build();
        return EXIT_SUCCESS;
    case 'h':
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    case 'V':
        printf("collrun (libcoll) %s\n", coll_version());
        return EXIT_SUCCESS;
    default:
        return EXIT_USAGE;
    }
}

/* getopt speaks by itself, but not with a remedy. */
static void explain_option(int c, char **argv)
{
    const char *word = argv[optind - 1];

    if (c == ':')
        complain("option %s wants a value; see collrun --help", word);
    else if (optopt)
        complain("unknown option -%c; see collrun --help", optopt);
    else
        complain("unknown option %s; see collrun --help", word);
}

/* A full disk shows only now. */
static int end_output(void)
{
    if (!ferror(stdout) && !fclose(stdout))
        return EXIT_SUCCESS;
    complain("cannot write the output: %s; make room or write elsewhere",
             strerror(errno));
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct options o = {.n = 0};
    int c, status;

    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:n:H:c:hV", long_options, NULL)) !=
           -1) {
        if (c == '?' || c == ':')
            explain_option(c, argv);
        status = take_option(c, &o);
        if (status >= 0)
            return status ? status : end_output();
    }
    o.command = argv + optind;
    if (!o.n && !o.hosts) {
        complain("how many ranks? say collrun -n 4 PROGRAM; see collrun "
                 "--help");
        return EXIT_USAGE;
    }
    if (!*o.command) {
        complain("no program to run; say collrun -n 4 PROGRAM ARGUMENTS");
        return EXIT_USAGE;
    }
    return o.hosts ? hosts_run(&o) : job_run(&o);
}
