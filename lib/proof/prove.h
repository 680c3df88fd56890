/* SPDX-License-Identifier: BSD-3-Clause */
/* prove.h - prove an algorithm for one shape of problem, all ranks at once. */
#ifndef COLL_LIB_PROOF_PROVE_H
#define COLL_LIB_PROOF_PROVE_H

#include "lib/algo/algo.h"

/* One shape of problem.  A send or a receive has two ranks; the root receives.  The
 * seed decides which ranks work in place, the counts and gaps of the v collectives
 * (about `count` elements a part, some 0), and the order of events. */
struct coll__trial {
    enum coll_collective collective;
    enum coll_type type;
    enum coll_op op;
    enum coll__order order;
    int nranks, root;
    size_t count, chunk;
    unsigned seed;
    const struct coll__view *view; /* may be NULL */
};

/* The problem of each rank in a trial, and the arrays that the problems point to. */
struct coll__cast {
    struct coll__problem *pbs; /* [nranks] */
    size_t *numbers;
};

/* Errors:    COLL_ERR_NOMEM (not logged). */
int coll__cast_init(struct coll__cast *cast, const struct coll__trial *trial);
void coll__cast_fini(struct coll__cast *cast);

/* Build all ranks' plans and check them.
 *
 * Result:    COLL_OK; COLL_ERR_UNSUPPORTED if the algorithm refuses the
 *            problem; else as coll__plan_check(), with why[len].
 */
int coll__prove(const struct coll__algo *algo, const struct coll__trial *trial,
                char *why, size_t len);

/* Make three machines of nranks ranks for the trials: ranks that are all alike; hosts
 * of 4, with ranks dealt out in turn; hosts of 3 consecutive ranks, in pairs.  Their
 * prices lead to different choices for different nranks.
 *
 * Ownership: views[] are the caller's, to end by coll__views_fini().
 * Errors:    COLL_ERR_NOMEM, logged; nothing remains.
 */
#define COLL__N_VIEWS 3
int coll__views_init(struct coll__view views[COLL__N_VIEWS], int nranks);
void coll__views_fini(struct coll__view views[COLL__N_VIEWS]);

/* Fill in trial number i of a collective over nranks ranks, of those that tend to
 * break builders; returns 0 past the last one.  Trials take turns with the views, each
 * of nranks ranks. */
int coll__trial_at(int i, enum coll_collective collective, int nranks,
                   const struct coll__view views[COLL__N_VIEWS],
                   struct coll__trial *trial);

#endif
