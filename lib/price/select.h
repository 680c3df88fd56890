/* SPDX-License-Identifier: BSD-3-Clause */
/* select.h - choose the algorithm. */
#ifndef COLL_LIB_PRICE_SELECT_H
#define COLL_LIB_PRICE_SELECT_H

#include "lib/algo/algo.h"

/* Check the text of COLL_ALGO: NAME or COLLECTIVE:NAME, separated by commas.
 *
 * Errors:    COLL_ERR_INVALID, logged with the valid names.
 */
int coll__algo_check(const char *forced);

/* An algorithm of the problem's collective, its price, and why it cannot be used. */
struct coll__candidate {
    const struct coll__algo *algo;
    double seconds;      /* predicted, if it can be used */
    const char *refusal; /* why not, in words that follow its name; NULL: it can be
                          * used */
};

/* List the algorithms of the problem's collective: first those that can be used, the
 * cheapest first, then those that cannot.
 *
 * Shapes:    list[max] gets the first of them.  `forced` has passed coll__algo_check();
 *            if none of its algorithms can serve this problem, all are allowed.
 * Result:    how many were written; the same on every rank, whatever pb->rank and
 *            pb->in_place are.
 */
int coll__algo_candidates(const struct coll__problem *pb, const char *forced,
                          struct coll__candidate *list, int max);

/* Is this one of the algorithms that `forced` (not NULL) names for that
 * collective? */
int coll__algo_is_forced(const struct coll__algo *algo, const char *forced,
                         enum coll_collective collective);

#endif
