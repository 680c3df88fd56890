/* SPDX-License-Identifier: BSD-3-Clause */
/* many.c - see many.h. */
#include "tests/faults/many.h"
#include "tests/support/oracle.h"
#include "tests/support/seclude.h"

#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the command line ---------------------------------------------------- */

static double number(const struct many *o, const char *text, double low,
                     double high)
{
    char *end;
    double x = strtod(text, &end);

    if (end == text || *end || !(x >= low && x <= high)) {
        fprintf(stderr, "%s: '%s' is no number from %g to %g\n", o->program,
                text, low, high);
        exit(2);
    }
    return x;
}

void many_parse(int argc, char **argv, struct many *o)
{
    static const struct option longs[] = {{"seed", 1, NULL, 's'},
                                          {"cases", 1, NULL, 'n'},
                                          {"case", 1, NULL, 'c'},
                                          {"jobs", 1, NULL, 'j'},
                                          {"soon", 1, NULL, 't'},
                                          {"help", 0, NULL, 'h'},
                                          {0}};
    int opt;

    while ((opt = getopt_long(argc, argv, "v", longs, NULL)) != -1) {
        if (opt == 's')
            o->seed = (unsigned)number(o, optarg, 0, 1e9);
        else if (opt == 'n')
            o->n = (unsigned)number(o, optarg, 1, 1e6);
        else if (opt == 'c')
            o->first = (unsigned)number(o, optarg, 0, 1e6), o->n = 1;
        else if (opt == 'j')
            o->jobs = (int)number(o, optarg, 1, 1000);
        else if (opt == 't')
            o->soon = number(o, optarg, 0.01, 1000);
        else if (opt == 'v')
            o->is_verbose = 1;
        else if (opt == 'h')
            fputs(o->usage, stdout), exit(0);
        else
            exit(2);
    }
    if (optind < argc) {
        fprintf(stderr, "%s: '%s' is no option; see --help\n", o->program,
                argv[optind]);
        exit(2);
    }
}

/* ---- the work ------------------------------------------------------------ */

void *many_share(const struct many *o, unsigned long len)
{
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) {
        fprintf(stderr, "%s: no memory of %lu bytes\n", o->program, len);
        exit(2);
    }
    return at;
}

/* Be one of the workers: every jobs-th case is its. */
static _Noreturn void work(struct many o, int worker,
                           void (*one)(const struct many *, unsigned, void *),
                           void *arg)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    o.is_secluded = seclude();
    if (!o.is_secluded)
        printf("%s: no folders of its own (it takes root): what stays in "
               "/dev/shm and /tmp is not looked for\n",
               o.program);
    for (unsigned i = (unsigned)worker; i < o.n; i += (unsigned)o.jobs)
        one(&o, i, arg);
    fflush(NULL);
    _exit(0);
}

int many_run(const struct many *o,
             void (*one)(const struct many *o, unsigned i, void *arg),
             void *arg)
{
    int failed = 0, status;

    fflush(NULL);
    for (int w = 0; w < o->jobs; w++) {
        pid_t pid = fork();

        if (pid == 0)
            work(*o, w, one, arg);
        if (pid < 0) {
            perror("fork");
            return 1;
        }
    }
    while (wait(&status) > 0)
        failed += status != 0;
    return failed;
}

/* ---- draws ---------------------------------------------------------------- */

uint64_t many_state(unsigned seed, unsigned number)
{
    uint64_t state = ((uint64_t)seed << 32 ^ number) * 0x9e3779b97f4a7c15u;

    for (int i = 0; i < 4; i++) {
        oracle_random(&state, 2);
        state ^= state >> 29; /* cases that are neighbours are unlike */
    }
    return state;
}

double many_scale(uint64_t *state, double low, double high)
{
    double x = (double)oracle_random(state, 1u << 20) / (1u << 20);

    return low * pow(high / low, x);
}

/* ---- the report ------------------------------------------------------------ */

static const char *ucx_version(void)
{
    struct coll_feature feature;

    for (size_t i = 0; coll_feature_list(i, &feature) == COLL_OK; i++)
        if (!strcmp(feature.group, "Libraries") && !strcmp(feature.name, "ucx"))
            return feature.detail;
    return "?";
}

void many_print_versions(void)
{
    printf("libcoll %s, UCX %s, %ld cores\n", coll_version(), ucx_version(),
           sysconf(_SC_NPROCESSORS_ONLN));
}
