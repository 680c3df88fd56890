/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_history_slow.c - which rank comes last to the calls of a communicator, and how late.
 *
 * A rank is as late to a call as it begins the call after the median rank.  The calls that
 * all files have in common are looked at.
 *
 * Hosts have clocks of their own.  A call that needs all ranks, such as an allreduce, ends
 * on all of them at about the same time, so the difference of two clocks is the median of
 * the differences of such ends, of the SPAN calls around the call in question, since clocks
 * drift.  On each clock the earliest end counts: a busy rank may notice it late.  If there
 * is no such call, the hosts' wall clocks are believed.
 */
#include "tools/coll_history.h"
#include "tools/common/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 16 /* ranks in a table */
#define SPAN 33
#define SERIES "host"

/* How late one rank was. */
struct tardy {
    int i;            /* in calls.ranks */
    int n_last;       /* calls to which it came last */
    double sum, most; /* s; `most`: in call `worst` */
    json_int_t worst;
};

/* The calls that all ranks with a file know.  The times of one call lie side by side. */
struct calls {
    const struct history_group *g;
    int n_ranks, *ranks; /* those with a file */
    int *clocks; /* [n_ranks]: the first index of a rank with this clock */
    int n_clocks,
        n_ends; /* n_ends: calls that compare clocks, for the worst one */
    json_int_t first;
    int n, n_judged;        /* n_judged: those with all times */
    double *called, *ended; /* [n * n_ranks], s; 0: not known */
    struct tardy *tardy;    /* [n_ranks], the latest first */
};

/* ---- reading ------------------------------------------------------------------ */

static double real(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static const struct history_part *part_of(const struct calls *c, int i)
{
    return &c->g->parts[c->ranks[i]];
}

static const char *host_of(const struct calls *c, int i)
{
    return history_word(part_of(c, i)->file, "host");
}

/* Find the first and the last call that every file has. */
static void find_common(struct calls *c)
{
    json_int_t last = -1;

    for (int i = 0; i < c->n_ranks; i++) {
        const json_t *series = history_series(part_of(c, i)->comm, SERIES);
        json_int_t n = history_whole(series, "started");
        json_int_t first = history_whole(
            json_array_get(json_object_get(series, "last"), 0), "seq");

        last = i && last < n ? last : n;
        c->first = c->first > first ? c->first : first;
    }
    if (c->first > 0 && last >= c->first && last - c->first < 1 << 20)
        c->n = (int)(last - c->first) + 1;
}

static void read_times(struct calls *c)
{
    size_t n = (size_t)c->n * (size_t)c->n_ranks;

    c->called = history_must(calloc(n + 1, sizeof(double)));
    c->ended = history_must(calloc(n + 1, sizeof(double)));
    for (int i = 0; i < c->n_ranks; i++)
        for (int k = 0; k < c->n; k++) {
            const json_t *call =
                history_call(part_of(c, i)->comm, SERIES, c->first + k);

            c->called[k * c->n_ranks + i] = real(call, "called");
            c->ended[k * c->n_ranks + i] = real(call, "ended");
        }
}

static void calls_init(struct calls *c, const struct history_group *g)
{
    size_t n = (size_t)g->size;

    *c = (struct calls){.g = g,
                        .ranks = history_must(calloc(n, sizeof(int))),
                        .clocks = history_must(calloc(n, sizeof(int))),
                        .tardy = history_must(calloc(n, sizeof(*c->tardy)))};
    for (int r = 0; r < g->size; r++)
        if (g->parts[r].comm)
            c->ranks[c->n_ranks++] = r;
    find_common(c);
    read_times(c);
}

static void calls_fini(struct calls *c)
{
    free(c->ranks);
    free(c->clocks);
    free(c->called);
    free(c->ended);
    free(c->tardy);
}

/* ---- clocks -------------------------------------------------------------------- */

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Return the lower median, in an order of `values` that has changed. */
static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare_reals);
    return values[(n - 1) / 2];
}

/* Return the wall clock's time at which a rank's clock was 0. */
static double zero_of(const struct calls *c, int i)
{
    return real(part_of(c, i)->file, "time") - part_of(c, i)->clock;
}

/* Processes of one host have one clock; containers of different hosts may share a name. */
static int is_one_clock(const struct calls *c, int i, int j)
{
    return !strcmp(host_of(c, i), host_of(c, j)) &&
           fabs(zero_of(c, i) - zero_of(c, j)) < 1;
}

static void find_clocks(struct calls *c)
{
    for (int i = 0; i < c->n_ranks; i++) {
        int j = 0;

        while (j < i && (c->clocks[j] != j || !is_one_clock(c, i, j)))
            j++;
        c->clocks[i] = j;
        c->n_clocks += j == i;
    }
}

int history_is_joint(const char *collective)
{
    static const char *const names[] = {
        "barrier",  "allreduce",      "allgather",      "allgatherv",
        "alltoall", "reduce_scatter", "reduce_scatterv"};
    size_t i = 0;

    while (i < sizeof(names) / sizeof(names[0]) && strcmp(collective, names[i]))
        i++;
    return i < sizeof(names) / sizeof(names[0]);
}

/* Does the call end on no rank before all have begun it? */
static int needs_all(const struct calls *c, int k)
{
    const json_t *call =
        history_call(part_of(c, 0)->comm, SERIES, c->first + k);
    const char *name = history_word(call, "collective");

    return history_is_joint(name) &&
           (!strcmp(name, "barrier") || history_whole(call, "count") > 0);
}

/* Return the earliest end of the call on this clock, or 0 if a rank has none. */
static double earliest(const struct calls *c, int k, int clock)
{
    double end = 0;

    for (int i = clock; i < c->n_ranks; i++) {
        double at = c->ended[k * c->n_ranks + i];

        if (c->clocks[i] != clock)
            continue;
        if (at <= 0)
            return 0;
        end = end > 0 && end < at ? end : at;
    }
    return end;
}

/* How far a clock is ahead of the first rank's, by the calls that both saw end. */
struct ahead {
    int n, *at;     /* [n]: which calls */
    double *by;     /* [n], s */
    double wall_by; /* by the wall clocks */
};

static void ahead_init(struct ahead *a, const struct calls *c, int clock)
{
    size_t n = (size_t)c->n + 1;

    *a = (struct ahead){.at = history_must(calloc(n, sizeof(int))),
                        .by = history_must(calloc(n, sizeof(double))),
                        .wall_by = zero_of(c, 0) - zero_of(c, clock)};
    for (int k = 0; k < c->n; k++) {
        double here, there;

        if (!needs_all(c, k))
            continue;
        here = earliest(c, k, c->clocks[0]);
        there = earliest(c, k, clock);
        if (here <= 0 || there <= 0)
            continue;
        a->at[a->n] = k;
        a->by[a->n++] = there - here;
    }
}

/* Return how far the clock is ahead in call k; *from is the first of the SPAN calls around
 * it, and only grows. */
static double ahead_in(const struct ahead *a, int k, int *from)
{
    double around[SPAN];
    int n = a->n < SPAN ? a->n : SPAN;

    if (!a->n)
        return a->wall_by;
    while (*from + SPAN < a->n && a->at[*from + SPAN / 2] < k)
        ++*from;
    memcpy(around, a->by + *from, (size_t)n * sizeof(*around));
    return median(around, n);
}

/* Put the times of the ranks with this clock on the first rank's clock. */
static void correct(struct calls *c, int clock)
{
    struct ahead a;
    int from = 0;

    ahead_init(&a, c, clock);
    for (int k = 0; k < c->n; k++) {
        double by = ahead_in(&a, k, &from);

        for (int i = clock; i < c->n_ranks; i++)
            if (c->clocks[i] == clock && c->called[k * c->n_ranks + i] > 0)
                c->called[k * c->n_ranks + i] -= by;
    }
    c->n_ends = c->n_ends < a.n ? c->n_ends : a.n;
    free(a.at);
    free(a.by);
}

/* ---- who is late ------------------------------------------------------------------ */

/* Note how late each rank came to call k, if all ranks' times are known. */
static void judge(struct calls *c, int k, double *sorted)
{
    const double *called = c->called + k * c->n_ranks;
    int last = 0;
    double middle;

    for (int i = 0; i < c->n_ranks; i++)
        if (called[i] == 0)
            return;
    memcpy(sorted, called, (size_t)c->n_ranks * sizeof(*sorted));
    middle = median(sorted, c->n_ranks);
    c->n_judged++;
    for (int i = 0; i < c->n_ranks; i++) {
        struct tardy *t = &c->tardy[i];
        double late = called[i] - middle;

        last = called[i] > called[last] ? i : last;
        t->sum += late > 0 ? late : 0;
        if (late <= t->most)
            continue;
        t->most = late;
        t->worst = c->first + k;
    }
    c->tardy[last].n_last += called[last] > middle;
}

static int compare_tardy(const void *a, const void *b)
{
    const struct tardy *x = a, *y = b;

    return x->sum != y->sum ? (x->sum < y->sum) - (x->sum > y->sum)
                            : x->i - y->i;
}

static void find_late(struct calls *c)
{
    double *sorted =
        history_must(calloc((size_t)c->n_ranks + 1, sizeof(*sorted)));

    find_clocks(c);
    c->n_ends = c->n;
    for (int i = 1; i < c->n_ranks; i++)
        if (c->clocks[i] == i)
            correct(c, i);
    for (int i = 0; i < c->n_ranks; i++)
        c->tardy[i].i = i;
    for (int k = 0; k < c->n; k++)
        judge(c, k, sorted);
    qsort(c->tardy, (size_t)c->n_ranks, sizeof(*c->tardy), compare_tardy);
    free(sorted);
}

/* ---- saying ---------------------------------------------------------------------- */

static int rank_of(const struct calls *c, const struct tardy *t)
{
    return history_rank(c->g, c->ranks[t->i]);
}

static double average(const struct calls *c, const struct tardy *t)
{
    return c->n_judged ? t->sum / c->n_judged : 0;
}

static const char *worst_call(const struct calls *c, const struct tardy *t)
{
    return history_word(history_call(part_of(c, t->i)->comm, SERIES, t->worst),
                        "what");
}

static void print_table(const struct calls *c)
{
    printf("    rank  %-20s     calls  times last  average lateness\n", "host");
    for (int i = 0; i < c->n_ranks && i < SHOWN; i++) {
        const struct tardy *t = &c->tardy[i];

        printf("  %6d  %-20s  %8d  %10d  %13.3f ms\n", rank_of(c, t),
               host_of(c, t->i), c->n_judged, t->n_last, average(c, t) * 1e3);
    }
    if (c->n_ranks > SHOWN)
        printf("  ... (%d ranks in all; --json has them)\n", c->n_ranks);
}

static void print_late(const struct calls *c)
{
    const struct tardy *t = &c->tardy[0];

    if (c->n_clocks > 1 && c->n_ends)
        printf("  %d clocks, compared by the ends of %d calls\n", c->n_clocks,
               c->n_ends);
    else if (c->n_clocks > 1)
        printf("  %d clocks, compared by the hosts' wall clocks\n",
               c->n_clocks);
    print_table(c);
    if (t->sum <= 0) {
        printf("  no rank is late\n");
        return;
    }
    printf(
        "  the latest is rank %d on %s: last in %d of %d calls, %.3f ms after "
        "the median\n  worst in %s, by %.3f ms\n",
        rank_of(c, t), host_of(c, t->i), t->n_last, c->n_judged,
        average(c, t) * 1e3, worst_call(c, t), t->most * 1e3);
}

void history_print_slow(const struct history_group *g)
{
    struct calls c;

    calls_init(&c, g);
    find_late(&c);
    if (c.n_ranks < 2)
        printf("  there is no other rank's file to compare with\n");
    else if (!c.n_judged)
        printf("  no call is in the files of all ranks with its time\n");
    else
        print_late(&c);
    calls_fini(&c);
}

static json_t *tardy_json(const struct calls *c, const struct tardy *t)
{
    return json_pack("{s:i, s:s, s:i, s:i, s:f, s:f, s:I, s:s}", "rank",
                     rank_of(c, t), "host", host_of(c, t->i), "calls",
                     c->n_judged, "times_last", t->n_last, "lateness",
                     average(c, t), "worst", t->most, "worst_seq", t->worst,
                     "worst_call", worst_call(c, t));
}

json_t *history_slow_json(const struct history_group *g)
{
    json_t *list = json_array();
    struct calls c;

    calls_init(&c, g);
    find_late(&c);
    for (int i = 0; i < c.n_ranks; i++)
        json_array_append_new(list, tardy_json(&c, &c.tardy[i]));
    calls_fini(&c);
    return list;
}
