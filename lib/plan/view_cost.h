/* SPDX-License-Identifier: BSD-3-Clause */
/* view_cost.h - the predicted time of rounds of messages on a view, in s.
 *
 * The cost function of each algorithm adds these up.
 */
#ifndef COLL_LIB_PLAN_VIEW_COST_H
#define COLL_LIB_PLAN_VIEW_COST_H

#include "lib/plan/view.h"

/* Every rank sends n bytes to rank + distance (modulo nranks), all at once. */
double coll__cost_shift(const struct coll__view *view, int distance, double n);

/* One of many rounds in which every rank sends n bytes to its neighbour in the ring.
 * Ranks run ahead of each other, so the mean of the links counts, or the slowest
 * link's bytes. */
double coll__cost_ring(const struct coll__view *view, double n);

/* Added once to the rounds of a ring: the extra time of the first piece. */
double coll__cost_ring_fill(const struct coll__view *view, double n);

/* As coll__cost_ring(), if each rank reduces what it receives before it passes it
 * on. */
double coll__cost_ring_reduced(const struct coll__view *view, double n);

/* Return the time between two messages of a stream to the neighbour in the ring. */
double coll__cost_ring_next(const struct coll__view *view, double n);

/* As coll__cost_ring() and coll__cost_ring_next(), for a chain: the ring cut before
 * the root. */
double coll__cost_chain(const struct coll__view *view, int root, double n);
double coll__cost_chain_next(const struct coll__view *view, int root, double n);

/* As coll__cost_ring_next(), for a single stream between two neighbours: nothing goes
 * the other way. */
double coll__cost_next(const struct coll__view *view, double n);

/* Every rank exchanges n bytes with the rank whose number differs in one bit,
 * `distance`.  Pairs stay within groups that are larger than `distance`. */
double coll__cost_exchange(const struct coll__view *view, int distance,
                           double n);

/* A round of a tree: one rank in 2 * distance sends n bytes to the rank `distance`
 * away. */
double coll__cost_tree(const struct coll__view *view, int distance, double n);

/* All of n bytes go down a binomial tree over p ranks of an even view (or up, reduced at
 * each rank).
 * There are as many rounds as for the next lower power of two, and one more message of
 * the root if p is above that. */
double coll__cost_binomial(const struct coll__view *view, int p, double n,
                           int is_reduced);

/* Two ranks that are `distance` apart exchange n bytes each; no other ranks do. */
double coll__cost_pair(const struct coll__view *view, int distance, double n);

/* One message alone, to a rank `distance` away. */
double coll__cost_message(const struct coll__view *view, int distance,
                          double n);

/* One rank sends messages of n bytes each to `fan` others, at most
 * `distance` away. */
double coll__cost_fan(const struct coll__view *view, int fan, int distance,
                      double n);

/* Rank `root` sends a message of n bytes to each of the others, in the order of ranks.
 * Messages of one level share its links; those of other levels pass them by. */
double coll__cost_fan_all(const struct coll__view *view, int root, double n);

/* As coll__cost_fan_all(), but all receivers get the same bytes. */
double coll__cost_fan_same(const struct coll__view *view, int root, double n);

/* As coll__cost_fan(), but one rank receives from `fan` others, all at once: near
 * messages come first, and far messages share the slower links. */
double coll__cost_fan_in(const struct coll__view *view, int fan, int distance,
                         double n);

/* Every rank sends n bytes to each of the others, all at once. */
double coll__cost_all(const struct coll__view *view, double n);

/* As coll__cost_all(), but a rank sends the same bytes to all others. */
double coll__cost_all_same(const struct coll__view *view, double n);

/* Every rank sends n bytes to each of the others in its group of a level, all at once. */
double coll__cost_within(const struct coll__view *view, int level, double n);

/* Every rank sends n bytes to each rank outside its group of the level below the last,
 * in one message to each of the other groups. */
double coll__cost_across(const struct coll__view *view, double n);

/* Return the number of pieces that a message of n bytes is cut into (pass_split.c); a
 * shorter last piece counts as a fraction. */
double coll__pieces(const struct coll__view *view, double n);

/* Reduce or copy n bytes. */
static inline double coll__cost_work(const struct coll__view *view, double n)
{
    return n * view->gamma;
}

/* Receive bytes in `come` s and reduce them in `work` s, piece by piece: all overlaps
 * except one reduction or one message. */
static inline double coll__cost_absorb(double pieces, double come, double work)
{
    return come > work ? come + work / pieces : work + come / pieces;
}

#endif
