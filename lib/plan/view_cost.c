/* SPDX-License-Identifier: BSD-3-Clause */
/* view_cost.c - the time of rounds of messages on a machine of groups within groups.
 *
 * A round takes as long as its slowest level.  Messages that leave a group of the
 * level below at the same time share its bandwidth: all together take `share` s a
 * byte, one alone takes `beta`.
 */
#include "lib/plan/view_cost.h"
#include "lib/plan/plan.h"
#include "lib/util/util.h"

/* Return the largest number of ranks in a group of the level below; they share its
 * links. */
static int below(const struct coll__view *view, int l)
{
    return l ? view->levels[l - 1].size_max : 1;
}

static int least_below(const struct coll__view *view, int l)
{
    return l ? view->levels[l - 1].size_min : 1;
}

/* Return the time if `flows` messages of n bytes leave each group of the level below
 * l. */
static double level_time(const struct coll__view *view, int l, double flows,
                         double n)
{
    const struct coll__level *level = &view->levels[l];

    return level->alpha + n * max_double(level->beta, flows * level->share);
}

/* As level_time(), while as many messages enter each group. */
static double exchange_time(const struct coll__view *view, int l, double flows,
                            double n)
{
    return level_time(view, l, flows, n * coll__both_ways(&view->levels[l]));
}

/* Return the factor on `share` if all messages go `groups` groups further on. */
static double crowd(const struct coll__level *level, double groups)
{
    double times = level->spread < groups ? level->spread : groups;

    return times > 1 ? times : 1;
}

/* Return the latency of a round in which all send to rank + distance.  In an algorithm
 * that doubles the distance each round, a chain of messages leaves a group at most once
 * while the distance is below the group's size.  Only the last such round pays for
 * it. */
static double shift_alpha(const struct coll__view *view, int distance)
{
    int l = view->n_levels - 1;

    while (l && view->is_contiguous && 2 * distance < least_below(view, l))
        l--;
    return view->levels[l].alpha;
}

double coll__cost_shift(const struct coll__view *view, int distance, double n)
{
    int around = view->nranks - distance; /* the other way round */
    int least = distance < around ? distance : around;
    double time = 0;

    for (int l = 0; l < view->n_levels; l++) {
        const struct coll__level *level = &view->levels[l];
        int size = below(view, l), flows = size;
        int on = least % level->size_max / size; /* within its groups */
        int rest = level->size_max - size;       /* ranks of the other groups */

        if (view->is_contiguous && least < size)
            flows = least;
        if (rest < flows)
            flows = rest;
        if (level->size_max > size)
            time = max_double(
                time, n * coll__both_ways(level) *
                          max_double(level->beta,
                                     flows * level->share * crowd(level, on)));
    }
    return shift_alpha(view, distance) + time;
}

/* Return the number of ring edges between groups of the level below l: the ring enters
 * each of these groups once.  Edges that enter a group of level l itself belong to a
 * level above. */
static int ring_edges(const struct coll__view *view, int l)
{
    int n_below = l ? view->levels[l - 1].n_groups : view->nranks;

    return l == view->n_levels - 1 ? n_below
                                   : n_below - view->levels[l].n_groups;
}

/* Return the seconds a byte of a message that shares its group's links with no
 * other. */
static double alone(const struct coll__level *level)
{
    return max_double(level->beta, level->share);
}

/* Which ranks send to their neighbour in the ring.  A number >= 0 is the root of a
 * chain: all ranks send but the last one, and the root receives nothing. */
enum { A_RING = -1, ONE_ALONE = -2 };

/* Return the level of the ring's edge into the root. */
static int edge_before(const struct coll__view *view, int root)
{
    int prev =
        coll__ring_at(view, view->nranks, coll__ring_place(view, root) - 1);
    int l = 0;

    while (l < view->n_levels - 1 &&
           view->levels[l].group[prev] != view->levels[l].group[root])
        l++;
    return l;
}

/* Return the factor on the time of an edge of level l for traffic the other way.  A
 * chain that crosses from one of two groups to the other leaves the way back free. */
static double stretch(const struct coll__view *view, int l, int root)
{
    int top = view->n_levels - 1;
    int groups = l ? view->levels[l - 1].n_groups : view->nranks;

    if (root == ONE_ALONE || (root >= 0 && l == top && groups == 2 &&
                              edge_before(view, root) == top))
        return 1;
    return coll__both_ways(&view->levels[l]);
}

static double edge_time(const struct coll__view *view, int l, int root,
                        double n)
{
    const struct coll__level *level = &view->levels[l];

    return level->alpha + n * alone(level) * stretch(view, l, root);
}

/* Return the time of the one edge that does not count.  A ring's rounds wait for all
 * edges but the cheapest; a chain lacks the edge into the root. */
static double left_out(const struct coll__view *view, int root, double n)
{
    double least = -1;

    if (root >= 0)
        return edge_time(view, edge_before(view, root), root, n);
    for (int l = 0; l < view->n_levels; l++) {
        double each = edge_time(view, l, root, n);

        if (ring_edges(view, l) && (least < 0 || each < least))
            least = each;
    }
    return least;
}

/* Return the mean time of a message over the other p - 1 edges. */
static double mean_edge(const struct coll__view *view, int root, double n)
{
    double sum = 0;

    if (view->nranks < 2)
        return 0;
    for (int l = 0; l < view->n_levels; l++)
        sum += ring_edges(view, l) * edge_time(view, l, root, n);
    return (sum - left_out(view, root, n)) / (view->nranks - 1);
}

/* Return the time between two messages of a stream, on the slowest edge. */
static double next(const struct coll__view *view, int root, double n)
{
    double time = 0;

    for (int l = 0; l < view->n_levels; l++) {
        const struct coll__level *level = &view->levels[l];

        if (ring_edges(view, l))
            time = max_double(time, max_double(level->gap, n * alone(level)) *
                                        stretch(view, l, root));
    }
    return time;
}

/* Return the time of a message that is cut into pieces, to the neighbour in the
 * ring. */
static double to_neighbour(const struct coll__view *view, int root, double n)
{
    double k = coll__pieces(view, n);

    return max_double(mean_edge(view, root, n / k),
                      k * next(view, root, n / k));
}

double coll__cost_ring(const struct coll__view *view, double n)
{
    return to_neighbour(view, A_RING, n);
}

double coll__cost_chain(const struct coll__view *view, int root, double n)
{
    return to_neighbour(view, root, n);
}

double coll__cost_ring_fill(const struct coll__view *view, double n)
{
    double k = coll__pieces(view, n), each = next(view, A_RING, n / k);
    double first = mean_edge(view, A_RING, n / k);

    return k * each > first && first > each ? first - each : 0;
}

double coll__cost_ring_reduced(const struct coll__view *view, double n)
{
    double k = coll__pieces(view, n), work = coll__cost_work(view, n / k);

    return max_double(mean_edge(view, A_RING, n / k) + work,
                      k * max_double(next(view, A_RING, n / k), work));
}

double coll__cost_ring_next(const struct coll__view *view, double n)
{
    return next(view, A_RING, n);
}

double coll__cost_chain_next(const struct coll__view *view, int root, double n)
{
    return next(view, root, n);
}

double coll__cost_next(const struct coll__view *view, double n)
{
    return next(view, ONE_ALONE, n);
}

/* Return the k of the largest 2^k that is not above a distance. */
static int power_of(int distance)
{
    return distance > 1 ? 31 - __builtin_clz((unsigned)distance) : 0;
}

/* Return the level whose links join ranks that are `distance` apart.  If groups
 * differ, it is the highest level that any two such ranks need. */
static int level_of(const struct coll__view *view, int distance)
{
    int last = view->n_levels - 1, k = power_of(distance), l = 0;

    while (l < last && view->levels[l].size_max <= distance)
        l++;
    for (int above = last; above > l && !view->is_even; above--)
        if (view->levels[above].exchanged[k])
            return above;
    return l;
}

double coll__cost_exchange(const struct coll__view *view, int distance,
                           double n)
{
    int l = level_of(view, distance), size = below(view, l);
    double time = 0;

    if (view->is_even)
        return exchange_time(
            view, l, size * crowd(&view->levels[l], distance / size), n);
    for (l = 0; l < view->n_levels; l++) {
        const struct coll__level *level = &view->levels[l];
        int flows = level->exchanged[power_of(distance)];

        size = below(view, l);
        if (flows)
            time = max_double(
                time, exchange_time(view, l,
                                    flows * crowd(level, distance / size), n));
    }
    return time;
}

double coll__cost_tree(const struct coll__view *view, int distance, double n)
{
    int l = level_of(view, distance), flows = below(view, l) / (2 * distance);
    double time = 0;

    if (view->is_even)
        return level_time(view, l, flows > 1 ? flows : 1, n);
    for (l = 0; l < view->n_levels; l++) {
        flows = view->levels[l].sent[power_of(distance)];
        if (flows)
            time = max_double(time, level_time(view, l, flows, n));
    }
    return time;
}

double coll__cost_binomial(const struct coll__view *view, int p, double n,
                           int is_reduced)
{
    double work = is_reduced ? coll__cost_work(view, n) : 0, time = 0;
    double k = coll__pieces(view, n);
    int m = 1;

    for (; m <= p / 2; m *= 2)
        time += coll__cost_absorb(k, coll__cost_tree(view, m, n), work);
    if (m == p)
        return time;
    /* a long vector waits for the vector that it is added to */
    return time + coll__cost_absorb(k,
                                    is_reduced && n > COLL__EAGER
                                        ? coll__cost_message(view, 1, n)
                                        : coll__cost_next(view, n),
                                    work);
}

double coll__cost_pair(const struct coll__view *view, int distance, double n)
{
    return exchange_time(view, level_of(view, distance), 1, n);
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
    double each = n * alone(level);

    return fan < 1 ? 0
                   : level->alpha + each +
                         (fan - 1) * max_double(level->gap, each);
}

double coll__cost_fan_all(const struct coll__view *view, int root, double n)
{
    double side = 0, links[COLL__LEVELS] = {0}, time = 0;
    int fan = view->nranks - 1;

    if (view->n_levels == 1)
        return coll__cost_fan(view, fan, fan, n);
    for (int d = 1; d < view->nranks; d++) {
        int rank = (root + d) % view->nranks, l = 0;
        const struct coll__level *level = view->levels;

        while (level->group && level->group[rank] != level->group[root])
            level = &view->levels[++l];
        links[l] = max_double(side, links[l]) + n * alone(level);
        time = max_double(time, links[l] + level->alpha);
        side += max_double(level->gap, n * alone(&view->levels[0]));
    }
    return time;
}

double coll__cost_fan_in(const struct coll__view *view, int fan, int distance,
                         double n)
{
    const struct coll__level *near = &view->levels[0];
    double each = n * alone(near), time;

    if (fan < 1)
        return 0;
    time = max_double(coll__cost_message(view, distance, n),
                      near->alpha + each +
                          (fan - 1) * max_double(near->gap, each));
    for (int l = 1; l < view->n_levels; l++) {
        const struct coll__level *level = &view->levels[l];
        int far = (fan < level->size_max ? fan + 1 : level->size_max) -
                  below(view, l);

        if (far > 0)
            time = max_double(time, level->alpha + far * n * level->beta);
    }
    return time;
}

/* Return the time of the bytes if every rank sends n bytes to each rank that is outside
 * its group of the level below `from` and inside its group of the level `last`, all at
 * once. */
static double all_bytes(const struct coll__view *view, int from, int last,
                        double n)
{
    double p = view->levels[last].size_max, time = 0;
    double outside = p - least_below(view, from);

    for (int l = from; l <= last; l++) {
        const struct coll__level *level = &view->levels[l];
        double size = below(view, l), least = least_below(view, l);
        double flows = max_double(size * (p - size), least * (p - least));
        double mean = crowd(level, level->spread / 2); /* half way: the most */

        if (level->size_max > size)
            time =
                max_double(time, n * coll__both_ways(level) *
                                     max_double(outside * level->beta,
                                                flows * level->share * mean));
    }
    return time;
}

/* As all_bytes(), with latency and gaps, for n_messages messages of each rank. */
static double all_messages(const struct coll__view *view, int from, int last,
                           int n_messages, double n)
{
    const struct coll__level *level = &view->levels[last];

    return level->alpha +
           max_double(all_bytes(view, from, last, n),
                      (n_messages - 1) * level->gap * coll__both_ways(level));
}

double coll__cost_all(const struct coll__view *view, double n)
{
    return all_messages(view, 0, view->n_levels - 1, view->nranks - 1, n);
}

/* Return the part of beta that is spent once for all receivers, whichever levels lie
 * between. */
static double spent_once(const struct coll__view *view)
{
    double once = view->levels[0].once;

    for (int l = 1; l < view->n_levels; l++)
        if (view->levels[l].once < once)
            once = view->levels[l].once;
    return once;
}

double coll__cost_all_same(const struct coll__view *view, double n)
{
    const struct coll__level *last = &view->levels[view->n_levels - 1];
    double once = spent_once(view), others = view->nranks - 1;

    if (once <= 0)
        return coll__cost_all(view, n);
    return last->alpha + n * once +
           max_double(others * n * (last->beta - once),
                      (others - 1) * last->gap);
}

double coll__cost_fan_same(const struct coll__view *view, int root, double n)
{
    const struct coll__level *last = &view->levels[view->n_levels - 1];
    double k = coll__pieces(view, n), once = spent_once(view);
    int fan = view->nranks - 1;

    if (once <= 0 || fan < 1)
        return coll__cost_fan_all(view, root, n);
    /* a piece is read while the next piece is written */
    return last->alpha + (fan - 1) * last->gap + n / k * once +
           n * max_double(once, last->beta - once);
}

double coll__cost_within(const struct coll__view *view, int level, double n)
{
    return all_messages(view, 0, level, view->levels[level].size_max - 1, n);
}

double coll__cost_across(const struct coll__view *view, double n)
{
    int last = view->n_levels - 1;
    int groups = last ? view->levels[last - 1].n_groups : view->nranks;

    return all_messages(view, last, last, groups - 1, n);
}

double coll__pieces(const struct coll__view *view, double n)
{
    double chunk = (double)view->chunk;

    if (!view->chunk || n <= chunk)
        return 1;
    return n / max_double(chunk, n / COLL__MAX_PIECES);
}
