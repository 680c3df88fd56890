/* SPDX-License-Identifier: BSD-3-Clause */
/* cost.c - what rounds of messages take on a machine of groups within groups.
 *
 * A round's time is that of its slowest level.  Messages that leave a group of
 * the level below at the same time share its way out: `share` s a byte for all
 * of them, where one alone needs `beta`.
 */
#include "lib/plan/view.h"

static double max_double(double a, double b) { return a > b ? a : b; }

/* Ranks in a group of the level below: those that share a way out. */
static int below(const struct coll__view *view, int l)
{
    return l ? view->levels[l - 1].size_max : 1;
}

/* `flows` messages of n bytes leave each group of the level below l. */
static double level_time(const struct coll__view *view, int l, double flows,
                         double n)
{
    const struct coll__level *level = &view->levels[l];

    return level->alpha + n * max_double(level->beta, flows * level->share);
}

double coll__cost_shift(const struct coll__view *view, int distance, double n)
{
    double time = 0;

    for (int l = 0; l < view->n_levels; l++) {
        int size = below(view, l), flows = size;

        if (view->is_contiguous && distance < size)
            flows = distance;
        if (view->levels[l].size_max > size)
            time = max_double(time, level_time(view, l, flows, n));
    }
    return time;
}

double coll__cost_ring(const struct coll__view *view, double n)
{
    double time = 0;

    for (int l = 0; l < view->n_levels; l++)
        if (view->levels[l].size_max > below(view, l))
            time = max_double(time, level_time(view, l, 1, n));
    return time;
}

double coll__cost_ring_next(const struct coll__view *view, double n)
{
    double time = 0;

    for (int l = 0; l < view->n_levels; l++) {
        const struct coll__level *level = &view->levels[l];

        if (level->size_max > below(view, l))
            time = max_double(time, level->gap + n * max_double(level->beta,
                                                                level->share));
    }
    return time;
}

/* The level whose links join ranks that are `distance` apart. */
static int level_of(const struct coll__view *view, int distance)
{
    int l = 0;

    if (!view->is_contiguous)
        return view->n_levels - 1;
    while (l < view->n_levels - 1 && view->levels[l].size_max <= distance)
        l++;
    return l;
}

double coll__cost_exchange(const struct coll__view *view, int distance,
                           double n)
{
    int l = level_of(view, distance);

    return level_time(view, l, below(view, l), n);
}

double coll__cost_tree(const struct coll__view *view, int distance, double n)
{
    int l = level_of(view, distance), flows = below(view, l) / (2 * distance);

    return level_time(view, l, flows > 1 ? flows : 1, n);
}

double coll__cost_message(const struct coll__view *view, int distance,
                          double n)
{
    return level_time(view, level_of(view, distance), 1, n);
}

double coll__cost_fan(const struct coll__view *view, int fan, int distance,
                      double n)
{
    const struct coll__level *level =
        &view->levels[level_of(view, distance)];

    return fan < 1 ? 0
                   : level->alpha + (fan - 1) * level->gap +
                         fan * n * max_double(level->beta, level->share);
}

double coll__cost_all(const struct coll__view *view, double n)
{
    double p = view->nranks, time = 0;

    for (int l = 0; l < view->n_levels; l++) {
        const struct coll__level *level = &view->levels[l];
        double size = below(view, l), all = level->size_max;

        if (all > size)
            time = max_double(
                time, level->alpha + (p - 1) * level->gap +
                          n * max_double((p - 1) * level->beta,
                                         size * (p - size) * level->share));
    }
    return time;
}

double coll__pieces(const struct coll__view *view, double n)
{
    double chunk = (double)view->chunk;

    if (!view->chunk || n <= chunk)
        return 1;
    return n / max_double(chunk, n / COLL__MAX_PIECES);
}
