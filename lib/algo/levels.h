/* SPDX-License-Identifier: BSD-3-Clause */
/* levels.h - what the hierarchical algorithms share: who meets whom on which
 * level of the machine, and the problems that they solve among themselves.
 *
 * A rank has an index on each level: within its innermost group, then of that
 * group within the next larger one, and so on.  In the ring (view.h) every
 * group is a run of ranks, and its first one has the lowest rank.
 */
#ifndef COLL_LIB_ALGO_LEVELS_H
#define COLL_LIB_ALGO_LEVELS_H

#include "lib/algo/algo.h"

/* The groups of the level below (level 0: the ranks) within one of a level. */
struct coll__fan {
    int least, most; /* over all groups of the level */
};
struct coll__fan coll__level_fan(const struct coll__view *view, int level);

/* The rank with which a group begins in the ring. */
static inline int coll__group_head(const struct coll__view *view, int level,
                                   int group)
{
    const struct coll__level *l = &view->levels[level];

    return l->members[l->first[group]];
}

/* Ranks that solve a problem among themselves. */
struct coll__team {
    int n, me; /* the number of ranks, and this one's place */
    int *ranks;
};

/* The team of a rank on a level: one of each group of the level below that lie
 * in the rank's own group, those with its indexes on the levels below; on level
 * 0 the whole group.  On those levels each index is below the least fan.
 *
 * Ownership: team->ranks is the caller's, to free().
 * Errors:    COLL_ERR_NOMEM, logged.
 */
int coll__team_of_index(const struct coll__view *view, int level, int rank,
                        struct coll__team *team);

/* The same with the leaders of those groups: their heads, but of root's groups
 * root.  team->me is 0 for a rank that leads none of them. */
int coll__team_of_leaders(const struct coll__view *view, int level, int rank,
                          int root, struct coll__team *team);

/* Does a rank lead its group of the level below? */
int coll__leads_below(const struct coll__view *view, int level, int rank,
                      int root);

/* A problem among n ranks on one level, without counts yet.
 *
 * Shapes:    *flat becomes its view: all ranks alike, with the prices of the
 *            level when `flows` of the problems run side by side in a group.
 */
struct coll__problem coll__level_problem(const struct coll__problem *pb,
                                         enum coll_collective collective,
                                         int level, int n, double flows,
                                         struct coll__view *flat);

/* Append the steps of an inner problem, by the algorithm that is the cheapest
 * one for the problem `priced`: the same, or one like it. */
int coll__plan_cheapest(struct coll__plan *plan,
                        const struct coll__problem *inner,
                        const struct coll__problem *priced,
                        const struct coll__frame *frame);

/* Predicted time of that algorithm. */
double coll__cheapest_cost(const struct coll__problem *inner);

/* Why a problem cannot be split by level; NULL when it can. */
const char *coll__level_refuses(const struct coll__problem *pb);

#endif
