/* SPDX-License-Identifier: BSD-3-Clause */
/* proof.h - prove all ranks' plans of one problem together, without running them. */
#ifndef COLL_LIB_PROOF_PROOF_H
#define COLL_LIB_PROOF_PROOF_H

#include "lib/algo/algo.h"
#include "lib/plan/all_ranks.h"

#include <limits.h>

/* Prove all ranks' linked plans for one problem.
 *
 * Shapes:    plans[nranks], pbs[nranks]: the problem of each rank; ranks may differ in
 *            rank, in_place, and the counts that a rank knows alone.  seed chooses one
 *            order of events.
 * Result:    COLL_OK if no rank gets stuck although no message is buffered,
 *            sends match receives, nothing unwritten is read, each step touches only
 *            what it may (bounds.h; the gaps between parts are not written), and OUT
 *            holds on each rank exactly the contributions that the collective defines,
 *            combined in the order that the problem asks for.
 * Errors:    COLL_ERR_INVALID with the fault in why[len]; COLL_ERR_NOMEM.
 */
int coll__plan_check(const struct coll__problem *pbs,
                     const struct coll__plan *plans, unsigned seed, char *why,
                     size_t len);

/* Prove that all ranks' plans finish if they run as listed, step by step, with at most
 * n_slots messages under way from one rank to another; `why` as above.
 *
 * Cost:      O(n) for n steps of all ranks.
 */
#define COLL__ANY_SLOTS INT_MAX
int coll__plans_run_as_listed(const struct coll__plan *plans, int nranks,
                              int n_slots, char *why, size_t len);

/* Find the least n_slots with which all plans finish as listed.
 *
 * Errors:    COLL_ERR_INVALID (no number is enough; not logged), COLL_ERR_NOMEM,
 *            logged; *n_slots is 0.
 * Cost:      O(n log n_slots).
 */
int coll__plans_slots(const struct coll__plan *plans, int nranks, int *n_slots);

/* Build all ranks' plans by an algorithm, for pbs[nranks], whose counts must
 * outlive them.
 *
 * Ownership: *plans is the caller's, to end by coll__plans_fini(); empty on
 *            failure.
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_UNSUPPORTED (the algorithm refuses),
 *            logged.
 */
int coll__plans_build(struct coll__plans *plans, const struct coll__algo *algo,
                      const struct coll__problem *pbs, size_t chunk);

/* Prove the plans: their edges order all steps that touch the same bytes, and
 * coll__plan_check() finds no fault in n_seeds orders of events.
 *
 * Errors:    as coll__plan_check().
 */
int coll__plans_check(const struct coll__plans *plans, int n_seeds, char *why,
                      size_t len);

#endif
