/* SPDX-License-Identifier: BSD-3-Clause */
/* view_cost.h - what rounds of messages take on a view, in s.
 *
 * The cost function of each algorithm adds these up.
 */
#ifndef COLL_LIB_PLAN_VIEW_COST_H
#define COLL_LIB_PLAN_VIEW_COST_H

#include "lib/plan/view.h"

/* Every rank sends n bytes to rank + distance (modulo nranks), all at once. */
double coll__cost_shift(const struct coll__view *view, int distance, double n);

/* The same between neighbours in the ring, a round of many: ranks run ahead of
 * each other, so the mean of the links counts, or the slowest one's bytes. */
double coll__cost_ring(const struct coll__view *view, double n);

/* And once for all rounds of it: what the first piece takes longer. */
double coll__cost_ring_fill(const struct coll__view *view, double n);

/* The same where each rank reduces what it gets before it passes it on. */
double coll__cost_ring_reduced(const struct coll__view *view, double n);

/* Of a stream of messages to that neighbour: from one to the next. */
double coll__cost_ring_next(const struct coll__view *view, double n);

/* The same two of the chain that the ring is if it is cut before the root. */
double coll__cost_chain(const struct coll__view *view, int root, double n);
double coll__cost_chain_next(const struct coll__view *view, int root, double n);

/* And of a stream between any neighbours, that nothing comes to meet. */
double coll__cost_next(const struct coll__view *view, double n);

/* Every rank exchanges n bytes with the rank whose number differs by one bit,
 * `distance`: pairs stay within groups that are larger. */
double coll__cost_exchange(const struct coll__view *view, int distance,
                           double n);

/* One rank in 2 * distance sends n bytes to the one `distance` away: a round of
 * a tree. */
double coll__cost_tree(const struct coll__view *view, int distance, double n);

/* The whole of n bytes down a binomial tree over p ranks (or up it, reduced at
 * each rank): as many rounds as the next lower power of two has, and one more
 * message of the root when p is above that. */
double coll__cost_binomial(const struct coll__view *view, int p, double n,
                           int is_reduced);

/* Two ranks so far apart exchange n bytes each, while no others do. */
double coll__cost_pair(const struct coll__view *view, int distance, double n);

/* One message alone, to a rank `distance` away. */
double coll__cost_message(const struct coll__view *view, int distance,
                          double n);

/* One rank sends messages of n bytes each to `fan` others, at most
 * `distance` away. */
double coll__cost_fan(const struct coll__view *view, int fan, int distance,
                      double n);

/* A round of a tree: one rank in radix * step sends to `fan` others, at distances of
 * step, 2 * step, ...; the slowest of them. */
double coll__cost_fan_tree(const struct coll__view *view, int fan, int step,
                           int radix, double n);

/* As coll__cost_fan(), and they are the same bytes for each of them. */
double coll__cost_fan_same(const struct coll__view *view, int fan, double n);

/* The same where one rank gets them, all at once: the near ones come first, and
 * the far ones share the slower way in. */
double coll__cost_fan_in(const struct coll__view *view, int fan, int distance,
                         double n);

/* Every rank sends n bytes to each of the others, all at once. */
double coll__cost_all(const struct coll__view *view, double n);

/* The same, and they are the same bytes for each of them. */
double coll__cost_all_same(const struct coll__view *view, double n);

/* The same to those within its group of a level only. */
double coll__cost_within(const struct coll__view *view, int level, double n);

/* The same to those outside its group of the level below the last only, in one
 * message to each of these groups. */
double coll__cost_across(const struct coll__view *view, double n);

/* The number of pieces that a message of n bytes is cut into (pass_split.c), a
 * fraction for a shorter last one. */
double coll__pieces(const struct coll__view *view, double n);

/* Reduce or copy n bytes. */
static inline double coll__cost_work(const struct coll__view *view, double n)
{
    return n * view->gamma;
}

/* Bytes that come within `come` s and are reduced, `work` s in all: piece by
 * piece, so that all but one reduction or message overlap. */
static inline double coll__cost_absorb(double pieces, double come, double work)
{
    return come > work ? come + work / pieces : work + come / pieces;
}

#endif
