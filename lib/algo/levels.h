/* SPDX-License-Identifier: BSD-3-Clause */
/* levels.h - what the hierarchical algorithms share: who meets whom on which
 * level of the machine, and the problems that they solve among themselves.
 *
 * All of it comes from the lists of members (view.h), which are in order of the
 * ranks; so it does not depend on the way of the ring.  The head of a group is
 * its lowest rank, and groups count in order of their heads.
 */
#ifndef COLL_LIB_ALGO_LEVELS_H
#define COLL_LIB_ALGO_LEVELS_H

#include "lib/algo/algo.h"

#define COLL__NO_ROOT (-1)

/* The groups of the level below (level 0: the ranks) within one of a level. */
struct coll__fan {
    int least, most; /* over all groups of the level */
};
struct coll__fan coll__level_fan(const struct coll__view *view, int level);

/* Ranks that solve a problem among themselves: one of each group of the level
 * below that lie in one group of a level. */
struct coll__team {
    int *ranks; /* [n], in order of the groups */
    int n, me;  /* the asking rank's place */
    int leader; /* the place of the one who leads the whole group */
};

/* Does a rank lead its group of the level below?  The head does, but of root's
 * groups root.  On level 0 everybody does. */
int coll__leads(const struct coll__view *view, int level, int rank, int root);

/* The team of the leaders in the group of a rank, which is one of them.
 *
 * Ownership: *team is the caller's, to end by coll__team_fini().
 * Errors:    plan_status().
 */
int coll__team_of_leaders(struct coll__team *team, struct coll__plan *plan,
                          const struct coll__problem *pb, int level, int root);

/* The same with those who have the indexes of this rank on the levels below:
 * within its innermost group, then of that group within the next larger one,
 * and so on.  On those levels each index is below the least fan. */
int coll__team_of_index(struct coll__team *team, struct coll__plan *plan,
                        const struct coll__problem *pb, int level);

void coll__team_fini(struct coll__team *team);

/* The view of n ranks on one level: all alike, with its prices; nothing to
 * free. */
void coll__level_view(struct coll__view *flat, const struct coll__view *view,
                      int level, int n);

/* A problem among n ranks on one level, without counts yet.
 *
 * Shapes:    *flat becomes its view, with the prices when `flows` of the
 *            problems run side by side in a group.
 */
struct coll__problem coll__level_problem(const struct coll__problem *pb,
                                         enum coll_collective collective,
                                         int level, int n, double flows,
                                         struct coll__view *flat);

/* Append the steps of an inner problem, by the algorithm that is the cheapest
 * one for the problem `priced`: the same, or one like it.  among: names, NULL at
 * the end, of which the first is taken where several cost the same; all of them
 * serve it.  among NULL: any algorithm. */
int coll__plan_cheapest(struct coll__plan *plan,
                        const struct coll__problem *inner,
                        const struct coll__problem *priced,
                        const char *const among[],
                        const struct coll__frame *frame);

/* Predicted time of that algorithm. */
double coll__cheapest_cost(const struct coll__problem *priced,
                           const char *const among[]);

/* Append one level of a reduce or a broadcast: the whole vector to, or from,
 * the leader of this rank's group, in the team of leaders.  own: where this
 * rank's vector lies; out: where the one that it gets belongs. */
int coll__plan_rooted_level(struct coll__plan *plan,
                            const struct coll__problem *pb, int level,
                            struct coll__span own, struct coll__span out);

/* Predicted time of all levels of it. */
double coll__rooted_levels_cost(const struct coll__problem *pb);

/* The .refuses of algorithms that go by levels. */
const char *coll__needs_groups(const struct coll__problem *pb);

#endif
