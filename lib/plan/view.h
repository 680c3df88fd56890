/* SPDX-License-Identifier: BSD-3-Clause */
/* view.h - what builders and prices know of the machine: who is near whom, and
 * what the links cost.  The same on every rank; no rank's own position in it.
 *
 * The ranks form groups within groups: level 0 is the innermost (ranks that
 * share a cache, say), each group lies within one of the level above, and the
 * group of the last level is everybody.
 */
#ifndef COLL_LIB_PLAN_VIEW_H
#define COLL_LIB_PLAN_VIEW_H

#include <stddef.h>

#define COLL__LEVELS 6
#define COLL__DISTANCES 31 /* powers of two that an int holds */

/* The groups of one level, and the links that join the groups of the level
 * below (level 0: the ranks) within one of them. */
struct coll__level {
    char name[16]; /* "numa", "host", "network" */
    int n_groups;
    const int *first;   /* [n_groups + 1]: into members */
    const int *members; /* [nranks]: ranks, group by group */
    const int *group;   /* [nranks]: the group of a rank */
    const int *index;   /* [nranks]: its place among the group's members */
    int size_min, size_max; /* of the groups, in ranks */
    /* The most messages that leave one group of the level below for others of its
     * group of this one, when each rank exchanges with the one whose number differs
     * by 2^k, and when each 2^(k+1)-th sends to the one 2^k on. */
    int exchanged[COLL__DISTANCES], sent[COLL__DISTANCES];
    int hops; /* of this level on the way from rank 0 down a binomial tree that has
               * most of the higher levels' */

    /* A message of n bytes alone takes alpha + n beta.  Messages that leave
     * (or enter) one group of the level below at the same time share `share`:
     * k of them, of n bytes each, take alpha + n max(beta, k share).  A rank
     * that sends several messages sends the next one after max(gap, n beta).
     * A short message (below) has left the sender's buffer after `overhead`.
     * sim.c describes the machine behind these numbers. */
    double alpha, beta, share, gap; /* s, s a byte, s a byte, s */
    double overhead;                /* s */
    /* How many times as long a byte takes while as many go the other way, and the next
     * message: 2 where the link is a half-duplex one, or the same cores do the work of
     * both; 0 is as good as 1. */
    double both;
    /* How many times what they bear when all send to the next group the links
     * bear when all send half way round: n/2 on a ring of n groups, where
     * messages share links with those that they pass.  0 is as good as 1. */
    double spread;
    /* The part of beta that is spent once for all receivers of the same bytes,
     * where ranks share memory; else 0. */
    double once;
};

/* Messages up to here leave whether or not the receiver is ready, bytes. */
#define COLL__EAGER 8192

/* How many times as long a level's messages take that meet as many others. */
static inline double coll__both_ways(const struct coll__level *level)
{
    return level->both > 1 ? level->both : 1;
}

struct coll__view {
    int nranks, n_levels;
    struct coll__level levels[COLL__LEVELS];

    /* A ring through all ranks that crosses no link more often than it must,
     * and each rank's place in it; NULL: the order of the ranks does. */
    const int *ring, *place;
    /* The members of every group are consecutive ranks. */
    int is_contiguous;
    /* And the groups of a level are as large as each other, a power of two below the
     * last one: distances alone say what leaves them, and the counts of such messages
     * are not there. */
    int is_even;

    double gamma; /* s a byte reduced or copied */
    size_t chunk; /* bytes of a pipeline chunk, 0 whole messages */
};

/* The rank at that place of the ring (modulo nranks), and the place of a rank;
 * view may be NULL. */
static inline int coll__ring_at(const struct coll__view *view, int nranks,
                                int place)
{
    int at = (place % nranks + nranks) % nranks;

    return view && view->ring ? view->ring[at] : at;
}

static inline int coll__ring_place(const struct coll__view *view, int rank)
{
    return view && view->place ? view->place[rank] : rank;
}

/* The groups of one level: which group of each level every rank is in.
 *
 * Shapes:    color[level][rank] names the group (any number) of each rank,
 *            for the levels below the last; the last one is made here.  A
 *            level whose groups are those of the level below, or single
 *            ranks, should be left out by the caller.
 * Result:    groups are in order of their lowest rank, members in order of
 *            rank; ring visits group after group within group after group, so
 *            that each is entered and left once.  Prices are 0: the caller's
 *            to fill in.
 * Ownership: *view is the caller's, to end by coll__view_fini(); color is
 *            read during the call only.
 * Errors:    COLL_ERR_NOMEM, logged.
 */
int coll__view_init(struct coll__view *view, int nranks, int n_levels,
                    const int *const color[]);
void coll__view_fini(struct coll__view *view);

/* Would this level be neither single ranks, nor everybody, nor the one below (NULL:
 * none)?  color[r]: the lowest rank of r's group. */
int coll__view_is_level(const int *color, const int *below, int nranks);

/* Let the ring follow the links: order[nranks] holds each rank once, group
 * after group on every level whose links are dear (coll__fabric_ring() does
 * so).
 *
 * Ownership: order is copied.
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_INVALID (a rank twice or none), logged;
 *            the view is as it was.
 */
int coll__view_set_ring(struct coll__view *view, const int *order);

/* Of a rank's group on a level: its members and their number. */
static inline const int *coll__view_group(const struct coll__view *view,
                                          int level, int rank, int *n)
{
    const struct coll__level *l = &view->levels[level];
    int g = l->group[rank];

    *n = l->first[g + 1] - l->first[g];
    return l->members + l->first[g];
}

/* A view of n ranks that are all alike, with the prices of one level; nothing
 * to free. */
void coll__view_flat(struct coll__view *view, int nranks,
                     const struct coll__level *prices, double gamma,
                     size_t chunk);

#endif
