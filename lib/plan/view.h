/* SPDX-License-Identifier: BSD-3-Clause */
/* view.h - what builders and prices know of the machine: which ranks are near each
 * other, and what the links cost.  It is the same on every rank and does not say which
 * rank this is.
 *
 * The ranks form groups within groups.  Level 0 is the innermost (ranks that share a
 * cache, say), each group lies within one group of the level above, and the last level
 * has one group of all ranks.
 */
#ifndef COLL_LIB_PLAN_VIEW_H
#define COLL_LIB_PLAN_VIEW_H

#include <stddef.h>

#define COLL__LEVELS 6
#define COLL__DISTANCES 31 /* powers of two that an int holds */

/* The groups of one level, and the links within each: they join the groups of the
 * level below (level 0: the ranks). */
struct coll__level {
    char name[16]; /* "numa", "host", "network" */
    int n_groups;
    const int *first;   /* [n_groups + 1]: into members */
    const int *members; /* [nranks]: ranks, group by group */
    const int *group;   /* [nranks]: the group of a rank */
    const int *index;   /* [nranks]: the rank's place among its group's members */
    int size_min, size_max; /* of the groups, in ranks */
    /* The most messages that leave one group of the level below and stay within its
     * group of this level.  exchanged[k]: each rank exchanges with the rank whose
     * number differs by 2^k.  sent[k]: every 2^(k+1)-th rank sends to the rank 2^k
     * further on. */
    int exchanged[COLL__DISTANCES], sent[COLL__DISTANCES];

    /* A single message of n bytes takes alpha + n beta.  Messages that leave (or
     * enter) one group of the level below at the same time share a bandwidth: k of
     * them, of n bytes each, take alpha + n max(beta, k share).  A rank that sends
     * several messages sends the next one after max(gap, n beta).  A short message
     * (COLL__EAGER) has left the sender's buffer after `overhead`.  sim.c describes
     * the machine behind these numbers. */
    double alpha, beta, share, gap; /* s, s a byte, s a byte, s */
    double overhead;                /* s */
    /* The factor on a byte's time, and on the gap, while as many bytes go the other
     * way: 2 if the link is half-duplex, or if the same cores do the work of both.  0
     * counts as 1. */
    double both;
    /* The bandwidth if all groups send to the next group, divided by the bandwidth if
     * all send half way round: n/2 on a ring of n groups, where far messages cross
     * many links.  0 counts as 1. */
    double spread;
    /* The part of beta that is spent only once if several receivers get the same
     * bytes, in shared memory; else 0. */
    double once;
};

/* Bytes.  Messages up to this length leave whether or not the receiver is ready. */
#define COLL__EAGER 8192

/* Return the factor on the time of messages of a level if as many go the other way. */
static inline double coll__both_ways(const struct coll__level *level)
{
    return level->both > 1 ? level->both : 1;
}

struct coll__view {
    int nranks, n_levels;
    struct coll__level levels[COLL__LEVELS];

    /* A ring through all ranks that crosses no link more often than it must, and each
     * rank's place in it; NULL: the ring is in the order of the ranks. */
    const int *ring, *place;
    /* The members of every group are consecutive ranks. */
    int is_contiguous;
    /* Also is_contiguous, and the groups of a level have equal sizes, powers of two
     * below the last level.  Then distances alone say which messages leave a group, and
     * `exchanged` and `sent` are not set. */
    int is_even;

    double gamma; /* s a byte reduced or copied */
    size_t chunk; /* bytes of a pipeline chunk, 0 whole messages */
};

/* Return the rank at a place of the ring (modulo nranks), and the place of a rank;
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

/* Make a view from the group of every rank on each level.
 *
 * Shapes:    color[level][rank] names the group (any number) of each rank,
 *            for the levels below the last; the last one is made here.  The
 *            caller should leave out a level whose groups are those of the
 *            level below, or single ranks.
 * Result:    groups are in order of their lowest rank, members in order of
 *            rank; the ring enters and leaves each group once.  Prices are 0:
 *            the caller fills them in.
 * Ownership: *view is the caller's, to end by coll__view_fini(); color is
 *            read during the call only.
 * Errors:    COLL_ERR_NOMEM, logged.
 */
int coll__view_init(struct coll__view *view, int nranks, int n_levels,
                    const int *const color[]);
void coll__view_fini(struct coll__view *view);

/* Would this level be useful: not single ranks, not one group of all ranks, and not
 * the same groups as the level below (NULL: none)?  color[r]: the lowest rank of r's
 * group. */
int coll__view_is_level(const int *color, const int *below, int nranks);

/* Set the ring: order[nranks] holds each rank once, group after group on every level
 * whose links are expensive (as coll__fabric_ring() does).
 *
 * Ownership: order is copied.
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_INVALID (a rank is missing or there twice),
 *            logged; the view is unchanged.
 */
int coll__view_set_ring(struct coll__view *view, const int *order);

/* Return the members of a rank's group on a level, and their number. */
static inline const int *coll__view_group(const struct coll__view *view,
                                          int level, int rank, int *n)
{
    const struct coll__level *l = &view->levels[level];
    int g = l->group[rank];

    *n = l->first[g + 1] - l->first[g];
    return l->members + l->first[g];
}

/* Return a view of n ranks that are all alike, with the prices of one level; there is
 * nothing to free. */
void coll__view_flat(struct coll__view *view, int nranks,
                     const struct coll__level *prices, double gamma,
                     size_t chunk);

#endif
