/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_tune_judge.c - separate measured times from noise.
 *
 * If the middle half of n times spans s, the error of their median is 1.57 s / sqrt(n)
 * (the notch of a box plot, 95 %).  A candidate's time is the median of its turns less
 * the median of the barriers alone; its error is the sum of both notches.  A time
 * below its error is noise.
 *
 * Source: McGill, Tukey and Larsen, "Variations of box plots", The American
 * Statistician 32(1), 1978.
 */
#include "tools/coll_tune.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct tune_spread tune_spread_of(double *times, int n)
{
    double span;

    if (n < 1)
        return (struct tune_spread){0, HUGE_VAL};
    qsort(times, (size_t)n, sizeof(*times), by_value);
    span = times[n - 1 - n / 4] - times[n / 4];
    return (struct tune_spread){times[n / 2], 1.57 * span / sqrt(n)};
}

/* Is the best candidate's time above its error and above the noise of the clock and of
 * other programs? */
static int is_known(const struct tune_candidate *best, struct tune_spread turn,
                    double tolerance)
{
    return best->measured > best->error &&
           turn.error <= tolerance * turn.median;
}

void tune_judge(struct tune_row *row, double *times, int n, int stride,
                double tolerance)
{
    struct tune_spread ahead = {0, 0}, best = {HUGE_VAL, HUGE_VAL};

    if (row->runs_ahead)
        ahead = tune_spread_of(times + row->n * stride, n);
    row->best = 0;
    row->rounds = n;
    for (int c = 0; c < row->n; c++) {
        struct tune_spread turn = tune_spread_of(times + c * stride, n);

        row->candidates[c].measured = turn.median - ahead.median;
        row->candidates[c].error = turn.error + ahead.error;
        if (turn.median < best.median) {
            best = turn;
            row->best = c;
        }
    }
    row->is_noise =
        !row->n || !is_known(&row->candidates[row->best], best, tolerance);
}
