/* SPDX-License-Identifier: BSD-3-Clause */
/* faults.c - check_faults: many random faults, some of them side by side, and a
 * report of how they ended.  The same seed gives the same cases. */
#include "tests/faults/faults.h"
#include "tests/support/seclude.h"
#include "lib/util/util.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "Usage: check_faults [OPTION]...\n"
    "Let random faults happen to the ranks of small jobs, and judge the "
    "others:\n"
    "a rank is killed, stopped for a while, stalls, leaves, or crashes at "
    "some\n"
    "call of libc, while communicators are made, used, split and destroyed.\n"
    "\n"
    "  --seed S      draw the cases from S (1)\n"
    "  --cases N     so many, from number 0 on (1000)\n"
    "  --case N      this one alone\n"
    "  --jobs J      so many cases side by side (two for each core)\n"
    "  --soon T      survivors know after T seconds at the latest (1)\n"
    "  -v            tell what each rank saw\n"
    "  --help\n"
    "\n"
    "Exit status: 0 when all was right, 1 when not, 2 for wrong usage.\n";

struct options {
    unsigned seed, first, n;
    int jobs, is_verbose;
    double soon;
};

/* Written by one worker each, read when it has ended. */
struct result {
    int is_done;
    struct verdict verdict;
};

struct total {
    unsigned n, n_struck, n_right, bits[N_VERDICTS];
};

static const char *const kind_names[] = {
#define X(name, text) text,
    FAULTS_KIND_MAP(X)
#undef X
};

static const char *const verdict_names[] = {
#define X(name, text) text,
    FAULTS_VERDICT_MAP(X)
#undef X
};

/* ---- the work ------------------------------------------------------------ */

/* One of the workers: every jobs-th case. */
static int work(const struct options *o, int worker, struct result *results)
{
    struct fault_case c;
    int is_secluded;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    is_secluded = seclude();
    if (!is_secluded)
        puts("check_faults: no folders of its own (it takes root): what stays "
             "in /dev/shm and /tmp is not looked for");
    for (unsigned i = (unsigned)worker; i < o->n; i += (unsigned)o->jobs) {
        case_draw(&c, o->seed, o->first + i, o->soon);
        c.is_secluded = is_secluded;
        case_run(&c, o->is_verbose, &results[i].verdict);
        results[i].is_done = 1;
        if (o->is_verbose)
            printf(" %s\n", results[i].verdict.bits ? results[i].verdict.words
                                                    : "right");
    }
    fflush(NULL);
    _exit(0);
}

static int run(const struct options *o, struct result *results)
{
    int failed = 0, status;

    fflush(NULL);
    for (int w = 0; w < o->jobs; w++) {
        pid_t pid = fork();

        if (pid == 0)
            work(o, w, results);
        if (pid < 0) {
            perror("check_faults: fork");
            return 1;
        }
    }
    while (wait(&status) > 0)
        failed += status != 0;
    for (unsigned i = 0; i < o->n; i++)
        if (!results[i].is_done)
            results[i].verdict = (struct verdict){
                .bits = VERDICT_WRONG, .words = "who judges it died before"};
    return failed;
}

/* ---- the report ---------------------------------------------------------- */

static void add(struct total *t, const struct verdict *v)
{
    t->n++;
    t->n_struck += (unsigned)v->has_struck;
    t->n_right += !(v->bits & ~VERDICT_PARDONED);
    for (int b = 0; b < N_VERDICTS; b++)
        t->bits[b] += (unsigned)(v->bits >> b & 1);
}

static void print_row(const char *name, const struct total *t)
{
    printf("%-16s %6u %6u %6u", name, t->n, t->n_struck, t->n_right);
    for (int b = 0; b < N_VERDICTS; b++)
        printf(" %9u", t->bits[b]);
    puts("");
}

/* The cases in rows, by whatever row_of says of each. */
static void print_table(const struct options *o, const struct result *results,
                        const char *what, const char *const *names, int n,
                        int (*row_of)(const struct fault_case *c))
{
    struct total rows[16] = {0};

    printf("%-16s  cases struck  right unknowable       ucx     hangs    aborts "
           "    wrong leftovers\n",
           what);
    for (unsigned i = 0; i < o->n; i++) {
        struct fault_case c;

        case_draw(&c, o->seed, o->first + i, o->soon);
        add(&rows[row_of(&c)], &results[i].verdict);
    }
    for (int r = 0; r < n; r++)
        if (rows[r].n)
            print_row(names[r], &rows[r]);
}

static int kind_of(const struct fault_case *c) { return (int)c->fault.kind; }

static int transport_of(const struct fault_case *c)
{
    int t = 0;

    while (strcmp(faults_transports[t], c->transports) != 0)
        t++;
    return t;
}

static const char *const step_names[] = {
#define X(name, text) text,
    FAULTS_STEP_MAP(X)
#undef X
};

static int step_of(const struct fault_case *c)
{
    return (int)c->script.steps[c->fault.step].kind;
}

static void print_failures(const struct options *o,
                           const struct result *results)
{
    for (unsigned i = 0; i < o->n; i++) {
        const struct verdict *v = &results[i].verdict;
        struct fault_case c;

        if (!(v->bits & ~VERDICT_PARDONED))
            continue;
        case_draw(&c, o->seed, o->first + i, o->soon);
        printf("case %u (%s, %s, %s, %d ranks):", c.number,
               kind_names[c.fault.kind], step_names[step_of(&c)], c.transports,
               c.script.size);
        for (int b = 0; b < N_VERDICTS; b++)
            if (v->bits >> b & 1)
                printf(" %s;", verdict_names[b]);
        printf(" %s\n", v->words);
    }
}

static const char *ucx_version(void)
{
    struct coll_feature feature;

    for (size_t i = 0; coll_feature_list(i, &feature) == COLL_OK; i++)
        if (!strcmp(feature.group, "Libraries") && !strcmp(feature.name, "ucx"))
            return feature.detail;
    return "?";
}

/* More of them than this are no accident of UCX's. */
#define UCX_MOST(n) (2 + (n) / 50)

/* The tables, the failures, and a line with the sum; 1 when there were any. */
static int report(const struct options *o, const struct result *results,
                  double seconds)
{
    struct total all = {0};

    printf("libcoll %s, UCX %s, %ld cores\n", coll_version(), ucx_version(),
           sysconf(_SC_NPROCESSORS_ONLN));
    printf("seed %u, %u cases from %u on, 2 to %d ranks, a limit of %g s, "
           "%.0f s\n\n",
           o->seed, o->n, o->first, FAULTS_RANKS, o->soon, seconds);
    print_table(o, results, "fault", kind_names, N_FAULT_KINDS, kind_of);
    puts("");
    print_table(o, results, "transports", faults_transports, FAULTS_TRANSPORTS,
                transport_of);
    puts("");
    print_table(o, results, "during", step_names, N_STEP_KINDS, step_of);
    puts("");
    print_failures(o, results);
    for (unsigned i = 0; i < o->n; i++)
        add(&all, &results[i].verdict);
    if (all.n_right < all.n)
        printf("\nto see one: tests/faults/check_faults --seed %u --case NUMBER -v\n",
               o->seed);
    printf("%u cases, %u struck, %u right (%u where nothing can be known, %u "
           "where UCX ended a survivor), %u hangs, %u aborted survivors, %u "
           "wrong, %u leftovers\n",
           all.n, all.n_struck, all.n_right, all.bits[VERDICT_AT_UNKNOWABLE],
           all.bits[VERDICT_AT_UCX], all.bits[VERDICT_AT_HANG],
           all.bits[VERDICT_AT_ABORT], all.bits[VERDICT_AT_WRONG],
           all.bits[VERDICT_AT_LEFTOVER]);
    return all.n_right < all.n || all.bits[VERDICT_AT_UCX] > UCX_MOST(all.n);
}

/* ---- the command line ---------------------------------------------------- */

static double number(const char *text, double low, double high)
{
    char *end;
    double x = strtod(text, &end);

    if (end == text || *end || !(x >= low && x <= high)) {
        fprintf(stderr, "check_faults: '%s' is no number from %g to %g\n", text,
                low, high);
        exit(2);
    }
    return x;
}

static void parse(int argc, char **argv, struct options *o)
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
            o->seed = (unsigned)number(optarg, 0, 1e9);
        else if (opt == 'n')
            o->n = (unsigned)number(optarg, 1, 1e6);
        else if (opt == 'c')
            o->first = (unsigned)number(optarg, 0, 1e6), o->n = 1;
        else if (opt == 'j')
            o->jobs = (int)number(optarg, 1, 1000);
        else if (opt == 't')
            o->soon = number(optarg, 0.01, 1000);
        else if (opt == 'v')
            o->is_verbose = 1;
        else if (opt == 'h')
            fputs(usage, stdout), exit(0);
        else
            exit(2);
    }
    if (optind < argc) {
        fprintf(stderr, "check_faults: '%s' is no option; see --help\n",
                argv[optind]);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct options o = {.seed = 1,
                        .n = 1000,
                        .soon = 1,
                        .jobs = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN)};
    struct result *results;
    double begin = coll__now();
    int failed;

    parse(argc, argv, &o);
    results = mmap(NULL, o.n * sizeof(*results), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED) {
        perror("check_faults: mmap");
        return 2;
    }
    failed = run(&o, results);
    return report(&o, results, coll__now() - begin) || failed;
}
