/* SPDX-License-Identifier: BSD-3-Clause */
/* view_lanes.h - which parts of a machine a message keeps busy, and for how long: for
 * prices that follow an algorithm message by message.
 *
 * A message of level l keeps busy the sending side of one rank and the receiving side of
 * the other, for max(gap, n beta) of level 0; beyond level 0 also both ranks' ways
 * through level l, for n beta, and the links of their groups, for n share.  So messages
 * of one level that a rank sends follow each other, and those of other levels pass them
 * by.
 */
#ifndef COLL_LIB_PLAN_VIEW_LANES_H
#define COLL_LIB_PLAN_VIEW_LANES_H

#include "lib/plan/view_cost.h"

#define COLL__IDLE 4 /* spans of time that a lane keeps */

/* Something that does one thing after the other. */
struct coll__lane {
    double free; /* since when, s */
    double idle[COLL__IDLE],
        idle_end[COLL__IDLE]; /* before, while it was free */
    int n_idle;               /* noted so far; the oldest ones are forgotten */
    double load;              /* how long it is busy in all, s */
};

struct coll__lanes {
    const struct coll__view *view;
    struct coll__lane
        *all; /* [n]: the sides and the processor of each rank first */
    int n;
    int ways[COLL__LEVELS],
        links[COLL__LEVELS]; /* where those of a level begin */
};

/* A message of n bytes, which may leave at that time. */
struct coll__sending {
    int from, to;
    double n, ready; /* bytes, s */
    int is_crowded; /* all ranks send as far, so messages share the links between far
                      * groups */
};

/* Make the lanes of a view, which are free at time 0.
 *
 * Ownership: *lanes is the caller's, to end by coll__lanes_fini() even without memory.
 * Errors:    COLL_ERR_NOMEM.
 */
int coll__lanes_init(struct coll__lanes *lanes, const struct coll__view *view);
void coll__lanes_fini(struct coll__lanes *lanes);

/* Send a message as soon as its lanes are free.  Returns when the last byte is there;
 * *left: when the sender may change the bytes. */
double coll__lanes_send(struct coll__lanes *lanes,
                        const struct coll__sending *sending, double *left);

/* Give a rank's processor n bytes to reduce or to copy, which are ready at that time.
 * Returns when it is done. */
double coll__lanes_work(struct coll__lanes *lanes, int rank, double ready,
                        double n);

/* Return how long the busiest lane is busy. */
double coll__lanes_load(const struct coll__lanes *lanes);

#endif
