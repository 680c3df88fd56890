/* SPDX-License-Identifier: BSD-3-Clause */
/* levels.h - what the hierarchical algorithms share: which ranks meet on which level
 * of the machine, and the problems that they solve among themselves.
 *
 * All of it comes from the lists of members (view.h), which are in the order of the
 * ranks.  So it does not depend on the ring.  The head of a group is its lowest rank,
 * and groups are in the order of their heads.
 */
#ifndef COLL_LIB_ALGO_LEVELS_H
#define COLL_LIB_ALGO_LEVELS_H

#include "lib/algo/algo.h"

#define COLL__NO_ROOT (-1)

/* The number of groups of the level below (level 0: ranks) in one group of a level. */
struct coll__fan {
    int least, most; /* over all groups of the level */
};
struct coll__fan coll__level_fan(const struct coll__view *view, int level);

/* Ranks that solve a problem among themselves: all are in one group of a level, and
 * each is in another group of the level below. */
struct coll__team {
    int *ranks; /* [n], in order of the groups */
    int n, me;  /* this rank's place */
    int leader; /* the place of the rank that leads the whole group */
};

/* Does a rank lead its group of the level below?  The leader is root, in root's
 * groups, else the head.  On level 0 every rank leads. */
int coll__leads(const struct coll__view *view, int level, int rank, int root);

/* Make the team of the leaders in this rank's group; this rank is one of them.
 *
 * Ownership: *team is the caller's, to end by coll__team_fini().
 * Errors:    plan_status().
 */
int coll__team_of_leaders(struct coll__team *team, struct coll__plan *plan,
                          const struct coll__problem *pb, int level, int root);

/* Make the team of the ranks that have this rank's indexes on all levels below: the
 * rank's index in its innermost group, that group's index in the next larger one, and
 * so on.  On those levels each index must be below the least fan. */
int coll__team_of_index(struct coll__team *team, struct coll__plan *plan,
                        const struct coll__problem *pb, int level);

void coll__team_fini(struct coll__team *team);

/* Make a view of n ranks that are all alike, with the prices of one level; there is
 * nothing to free. */
void coll__level_view(struct coll__view *flat, const struct coll__view *view,
                      int level, int n);

/* The same, with the prices that apply if the messages of `flows` such problems are
 * under way side by side in a group. */
void coll__level_view_of_flows(struct coll__view *flat,
                               const struct coll__view *view, int level, int n,
                               double flows);

/* Return a problem among the ranks of such a view, without counts.  The view is its
 * view, and must outlive it. */
struct coll__problem coll__level_problem(const struct coll__problem *pb,
                                         enum coll_collective collective,
                                         const struct coll__view *flat);

/* Append the steps of an inner problem, by the cheapest algorithm for the problem
 * `priced` (the same problem, or a similar one).  among: NULL-terminated names of
 * algorithms that all serve it; of equal prices the first name wins.  among NULL: any
 * algorithm. */
int coll__plan_cheapest(struct coll__plan *plan,
                        const struct coll__problem *inner,
                        const struct coll__problem *priced,
                        const char *const among[],
                        const struct coll__frame *frame);

/* Predict the time of that algorithm. */
double coll__cheapest_cost(const struct coll__problem *priced,
                           const char *const among[]);

/* Append one level of a reduce or a broadcast: move the whole vector to, or from, the
 * leader of this rank's group, in the team of leaders.  own: this rank's vector; out:
 * where a received vector goes. */
int coll__plan_rooted_level(struct coll__plan *plan,
                            const struct coll__problem *pb, int level,
                            struct coll__span own, struct coll__span out);

/* Predict the time of all levels of a reduce or a broadcast. */
double coll__rooted_levels_cost(const struct coll__problem *pb);

/* The .refuses of hierarchical algorithms. */
const char *coll__needs_groups(const struct coll__problem *pb);

#endif
