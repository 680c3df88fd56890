/* SPDX-License-Identifier: BSD-3-Clause */
/* view_lanes.c - what a message keeps busy.
 *
 * A message passes its lanes in order and waits at each until it is free.  Its last byte
 * is there when the slowest of them has passed it on.
 */
#include "lib/plan/view_lanes.h"
#include "include/coll/coll.h"
#include "lib/util/util.h"

#include <stdlib.h>

/* The first lanes of a rank. */
enum { SENDS, RECEIVES, WORKS, N_SIDES };

/* A lane that a message uses. */
struct use {
    int lane, back; /* back: of the other direction */
    double busy;    /* s */
};

#define MAX_USES 6

int coll__lanes_init(struct coll__lanes *lanes, const struct coll__view *view)
{
    int n = N_SIDES * view->nranks;

    *lanes = (struct coll__lanes){.view = view};
    for (int l = 1; l < view->n_levels; l++) {
        lanes->ways[l] = n;
        n += 2 * view->nranks;
        lanes->links[l] = n;
        n += 2 * view->levels[l - 1].n_groups;
    }
    lanes->n = n;
    lanes->all = calloc((size_t)n, sizeof(*lanes->all));
    return lanes->all ? COLL_OK : COLL_ERR_NOMEM;
}

void coll__lanes_fini(struct coll__lanes *lanes) { free(lanes->all); }

static int level_of(const struct coll__view *view, int a, int b)
{
    int l = 0;

    while (view->levels[l].group &&
           view->levels[l].group[a] != view->levels[l].group[b])
        l++;
    return l;
}

/* Return the factor on `share` of messages from one group of the level below to another,
 * as far as that. */
static double crowd(const struct coll__view *view, int l,
                    const struct coll__sending *s)
{
    const int *group = l ? view->levels[l - 1].group : NULL;
    int n = l ? view->levels[l - 1].n_groups : view->nranks;
    int far = abs(group ? group[s->from] - group[s->to] : s->from - s->to);
    double groups = far < n - far ? far : n - far;
    double times = min_double(view->levels[l].spread, groups);

    return s->is_crowded && times > 1 ? times : 1;
}

/* Return the use of one of two lanes, sending and receiving, of which the first is
 * given. */
static struct use use_of(int first, int direction, double busy)
{
    return (struct use){first + direction, first + !direction, busy};
}

/* Find what a message of level l uses, in order; returns the number of lanes. */
static int find_uses(const struct coll__lanes *lanes, int l,
                     const struct coll__sending *s, struct use *uses)
{
    const struct coll__view *view = lanes->view;
    const int *group = l ? view->levels[l - 1].group : NULL;
    double way = s->n * view->levels[l].beta;
    double link = s->n * view->levels[l].share * crowd(view, l, s);
    double side = l ? s->n * view->levels[0].beta : max_double(way, link);
    int n = 0;

    uses[n++] = use_of(N_SIDES * s->from, SENDS, side);
    if (l) {
        uses[n++] = use_of(lanes->ways[l] + 2 * s->from, SENDS, way);
        uses[n++] = use_of(lanes->links[l] + 2 * group[s->from], SENDS, link);
        uses[n++] = use_of(lanes->links[l] + 2 * group[s->to], RECEIVES, link);
        uses[n++] = use_of(lanes->ways[l] + 2 * s->to, RECEIVES, way);
    }
    uses[n++] = use_of(N_SIDES * s->to, RECEIVES, side);
    return n;
}

/* Keep a lane busy from `ready` on or later; returns when it begins.  What is ready before
 * messages that were followed earlier passes them by, if it fits. */
static double occupy(struct coll__lane *lane, double ready, double busy)
{
    double begin;

    lane->load += busy;
    for (int i = 0; i < COLL__IDLE && ready < lane->free; i++) {
        begin = max_double(ready, lane->idle[i]);
        if (begin + busy <= lane->idle_end[i]) {
            lane->idle[i] = begin + busy;
            return begin;
        }
    }
    begin = max_double(ready, lane->free);
    if (begin > lane->free + busy) {
        int i = lane->n_idle++ % COLL__IDLE;

        lane->idle[i] = lane->free;
        lane->idle_end[i] = begin;
    }
    lane->free = begin + busy;
    return begin;
}

double coll__lanes_send(struct coll__lanes *lanes,
                        const struct coll__sending *s, double *left)
{
    int l = level_of(lanes->view, s->from, s->to);
    const struct coll__level *level = &lanes->view->levels[l];
    struct use uses[MAX_USES];
    int n_uses = find_uses(lanes, l, s, uses);
    double head = s->ready, tail = 0, both = coll__both_ways(level);

    for (int i = 0; i < n_uses; i++) {
        int is_side = i == 0 || i == n_uses - 1;
        double busy =
            is_side ? max_double(level->gap, uses[i].busy) : uses[i].busy;

        head = occupy(&lanes->all[uses[i].lane], head, busy);
        if (both > 1) /* nothing, or less, goes the other way meanwhile */
            occupy(&lanes->all[uses[i].back], head, (both - 1) * busy);
        tail = max_double(tail, head + uses[i].busy);
    }
    tail += level->alpha;
    *left = s->n > COLL__EAGER ? tail : s->ready + level->overhead;
    return tail;
}

double coll__lanes_work(struct coll__lanes *lanes, int rank, double ready,
                        double n)
{
    double seconds = coll__cost_work(lanes->view, n);

    return occupy(&lanes->all[N_SIDES * rank + WORKS], ready, seconds) +
           seconds;
}

double coll__lanes_load(const struct coll__lanes *lanes)
{
    double load = 0;

    for (int i = 0; i < lanes->n; i++)
        load = max_double(load, lanes->all[i].load);
    return load;
}
