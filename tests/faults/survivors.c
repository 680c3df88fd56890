/* SPDX-License-Identifier: BSD-3-Clause */
/* survivors.c - check_survivors: many random deaths, after each of which the others go
 * on, and a report.  The same seed gives the same cases. */
#include "tests/faults/many.h"
#include "tests/faults/survivors.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "Usage: check_survivors [OPTION]...\n"
    "Let ranks of small jobs die at random, also while they agree, shrink and "
    "grow;\n"
    "the others agree, shrink and go on, and every result is checked.\n"
    "\n"
    "  --seed S      draw the cases from S (1)\n"
    "  --cases N     so many, from number 0 on (1000)\n"
    "  --case N      this one alone\n"
    "  --jobs J      so many cases side by side (two for each core)\n"
    "  --soon T      survivors work again T seconds after a death (5)\n"
    "  -v            tell what each rank did last\n"
    "  --help\n"
    "\n"
    "Exit status: 0 when all was right, 1 when not, 2 for wrong usage.\n";

struct result {
    int is_done;
    struct survivors_verdict verdict;
};

static const char *const kinds[] = {
#define X(name, text) text,
    DEATH_MAP(X)
#undef X
};

static const char *const plays[] = {
#define X(name, text) text,
    PLAY_MAP(X)
#undef X
};

static void run_case(const struct many *o, unsigned i, void *arg)
{
    struct result *results = arg;
    struct survivors_case c;

    survivors_draw(&c, o->seed, o->first + i, o->soon);
    c.is_secluded = o->is_secluded;
    if (o->is_verbose)
        printf("case %u: %d ranks over %s, %d new, %d deaths: %s\n", c.number,
               c.size, survivors_transports[c.transports], c.n_new, c.n_deaths,
               kinds[c.kind]);
    survivors_run(&c, o->is_verbose, &results[i].verdict);
    results[i].is_done = 1;
    if (o->is_verbose)
        printf(" %s\n",
               results[i].verdict.bits ? results[i].verdict.words : "right");
}

/* ---- the report ------------------------------------------------------------ */

static int is_right(const struct survivors_verdict *v)
{
    return !(v->bits & ~IS_UCX);
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The cases of which row_of says this row. */
static void print_row(const struct many *o, const struct result *results,
                      const char *name, int row,
                      int (*row_of)(const struct survivors_case *c))
{
    double *times = malloc(o->n * sizeof(*times));
    unsigned n = 0, n_right = 0, n_bits[5] = {0}, n_times = 0;
    struct survivors_case c;

    for (unsigned i = 0; times && i < o->n; i++) {
        const struct survivors_verdict *v = &results[i].verdict;

        survivors_draw(&c, o->seed, o->first + i, o->soon);
        if (row_of && row_of(&c) != row)
            continue;
        n++;
        n_right += (unsigned)is_right(v);
        for (int b = 0; b < 5; b++)
            n_bits[b] += (unsigned)(v->bits >> b & 1);
        if (!v->bits && v->time > 0)
            times[n_times++] = v->time * 1e3;
    }
    if (n_times)
        qsort(times, n_times, sizeof(*times), by_time);
    if (n)
        printf("%-18s %6u %6u %6u %6u %6u %6u %6u %9.1f %9.1f\n", name, n,
               n_right, n_bits[0], n_bits[1], n_bits[2], n_bits[3], n_bits[4],
               n_times ? times[n_times / 2] : 0,
               n_times ? times[(n_times - 1) * 99 / 100] : 0);
    free(times);
}

static void print_table(const struct many *o, const struct result *results,
                        const char *what, const char *const *names, int n,
                        int (*row_of)(const struct survivors_case *c))
{
    printf("%-18s  cases  right  hangs aborts  wrong strays    ucx median ms  "
           "  p99 ms\n",
           what);
    for (int r = 0; r < n; r++)
        print_row(o, results, names[r], r, row_of);
    puts("");
}

static int kind_of(const struct survivors_case *c) { return (int)c->kind; }
static int transports_of(const struct survivors_case *c)
{
    return c->transports;
}
static int play_of(const struct survivors_case *c)
{
    return (int)c->deaths[0].at;
}
static int thread_of(const struct survivors_case *c) { return c->has_thread; }
static int number_of(const struct survivors_case *c)
{
    return c->n_deaths == c->size - 1 ? 2 : c->n_deaths - 1;
}

static void print_tables(const struct many *o, const struct result *results)
{
    static const char *const numbers[] = {"one", "two", "all but one"};
    static const char *const threads[] = {"off", "on"};
    static const char *const all[] = {"all"};

    print_table(o, results, "death", kinds, N_DEATH_KINDS, kind_of);
    print_table(o, results, "transports", survivors_transports,
                SURVIVORS_TRANSPORTS, transports_of);
    print_table(o, results, "first during", plays, N_PLAYS, play_of);
    print_table(o, results, "deaths", numbers, 3, number_of);
    print_table(o, results, "progress thread", threads, 2, thread_of);
    print_table(o, results, "", all, 1, NULL);
}

/* Print the tables and the failures; 1 if there are any. */
static int report(const struct many *o, const struct result *results,
                  double seconds)
{
    unsigned n_right = 0, n_bits[5] = {0};

    many_print_versions();
    printf("seed %u, %u cases from %u on, 2 to %d ranks, %.0f s; times are "
           "from the last death to the\nlast survivor's first operation\n\n",
           o->seed, o->n, o->first, SURVIVORS_OLD, seconds);
    print_tables(o, results);
    for (unsigned i = 0; i < o->n; i++) {
        const struct survivors_verdict *v = &results[i].verdict;

        n_right += (unsigned)is_right(v);
        for (int b = 0; b < 5; b++)
            n_bits[b] += (unsigned)(v->bits >> b & 1);
        if (!is_right(v))
            printf("case %u: %s\n", o->first + i, v->words);
    }
    if (n_right < o->n)
        printf("\nto see one: tests/faults/check_survivors --seed %u --case "
               "NUMBER -v\n",
               o->seed);
    printf("%u cases, %u right (%u where UCX ended a rank), %u hangs, %u "
           "aborted survivors, %u wrong, %u strays\n",
           o->n, n_right, n_bits[4], n_bits[0], n_bits[1], n_bits[2],
           n_bits[3]);
    return n_right < o->n;
}

int main(int argc, char **argv)
{
    struct many o = {.program = "check_survivors",
                     .usage = usage,
                     .seed = 1,
                     .n = 1000,
                     .soon = 5,
                     .jobs = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN)};
    double begin = coll__now();
    struct result *results;
    int failed;

    many_parse(argc, argv, &o);
    results = many_share(&o, o.n * sizeof(*results));
    failed = many_run(&o, run_case, results);
    for (unsigned i = 0; i < o.n; i++)
        if (!results[i].is_done)
            results[i].verdict = (struct survivors_verdict){
                .bits = IS_WRONG, .words = "who judges it died before"};
    return report(&o, results, coll__now() - begin) || failed;
}
