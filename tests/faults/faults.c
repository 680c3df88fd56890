/* SPDX-License-Identifier: BSD-3-Clause */
/* faults.c - check_faults: many random faults, some of them side by side, and a
 * report of how they ended.  The same seed gives the same cases. */
#include "tests/faults/faults.h"
#include "tests/faults/many.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <string.h>
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

static void run_case(const struct many *o, unsigned i, void *arg)
{
    struct result *results = arg;
    struct fault_case c;

    case_draw(&c, o->seed, o->first + i, o->soon);
    c.is_secluded = o->is_secluded;
    case_run(&c, o->is_verbose, &results[i].verdict);
    results[i].is_done = 1;
    if (o->is_verbose)
        printf(" %s\n",
               results[i].verdict.bits ? results[i].verdict.words : "right");
}

static int run(const struct many *o, struct result *results)
{
    int failed = many_run(o, run_case, results);

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
static void print_table(const struct many *o, const struct result *results,
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

static void print_failures(const struct many *o, const struct result *results)
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

/* More of them than this are no accident of UCX's. */
#define UCX_MOST(n) (2 + (n) / 50)

/* The tables, the failures, and a line with the sum; 1 when there were any. */
static int report(const struct many *o, const struct result *results,
                  double seconds)
{
    struct total all = {0};

    many_print_versions();
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

int main(int argc, char **argv)
{
    struct many o = {.program = "check_faults",
                     .usage = usage,
                     .seed = 1,
                     .n = 1000,
                     .soon = 1,
                     .jobs = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN)};
    struct result *results;
    double begin = coll__now();
    int failed;

    many_parse(argc, argv, &o);
    results = many_share(&o, o.n * sizeof(*results));
    failed = run(&o, results);
    return report(&o, results, coll__now() - begin) || failed;
}
