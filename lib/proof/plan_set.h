/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_set.h - proven plans from files (COLL_PLAN_FILE), looked up by problem. */
#ifndef COLL_LIB_PROOF_PLAN_SET_H
#define COLL_LIB_PROOF_PLAN_SET_H

#include "lib/plan/all_ranks.h"

#include <stdint.h>

struct coll__shelf; /* the books of a process */

struct coll__plan_set {
    struct coll__plans *pages; /* [n_pages] */
    int n_pages;
    uint64_t hash; /* of the files' contents in their order; 0 no file */
    struct coll__shelf *shelf; /* where the pages are, or NULL */
};

/* Read and prove plan files.  What the last call read stays: files that have not
 * changed since are not read again.
 *
 * Shapes:    paths: names separated by ':'; "" gives an empty set.
 * Ownership: *set is the caller's, to end by coll__plan_set_close(); empty on
 *            failure.
 * Threads:   any.
 * Errors:    COLL_ERR_INVALID (malformed, or a plan that does not pass, with
 *            the fault in words), COLL_ERR_SYSTEM, COLL_ERR_NOMEM, logged.
 */
int coll__plan_set_open(struct coll__plan_set *set, const char *paths);
void coll__plan_set_close(struct coll__plan_set *set);

/* Make this rank's plan from the page for its problem.
 *
 * Shapes:    a page serves the same collective, ranks, root, count, size of
 *            element and kind of operation, in an order at least as strict.  A
 *            rank works in place or not as the call says: where the page says
 *            otherwise, a copy goes first.
 * Result:    the same on every rank whether there is a page: it depends on
 *            nothing that only one rank knows.
 * Ownership: *plan is the caller's; its name is the set's.
 * Errors:    COLL_ERR_UNSUPPORTED when no page serves it (not logged);
 *            COLL_ERR_NOMEM, logged.
 */
int coll__plan_set_find(const struct coll__plan_set *set,
                        const struct coll__problem *pb,
                        struct coll__plan *plan);

#endif
