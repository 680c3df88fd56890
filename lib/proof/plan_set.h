/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_set.h - proven plans from files (COLL_PLAN_FILE), looked up by problem. */
#ifndef COLL_LIB_PROOF_PLAN_SET_H
#define COLL_LIB_PROOF_PLAN_SET_H

#include "lib/plan/all_ranks.h"

#include <stdint.h>

struct coll__shelf; /* plans shared by communicators */

struct coll__plan_set {
    struct coll__plans *pages; /* [n_pages] */
    int n_pages;
    uint64_t hash; /* hash of the files' contents in their order; 0: no file */
    struct coll__shelf *shelf; /* owns the pages; or NULL */
};

/* Read and prove plan files.  The last call's plans stay in memory: files that have
 * not changed are not read again.
 *
 * Shapes:    paths: names separated by ':'; "" gives an empty set.
 * Ownership: *set is the caller's, to end by coll__plan_set_close(); empty on
 *            failure.
 * Threads:   any.
 * Errors:    COLL_ERR_INVALID (malformed, or a plan fails the proof; the
 *            fault in words), COLL_ERR_SYSTEM, COLL_ERR_NOMEM, logged.
 */
int coll__plan_set_open(struct coll__plan_set *set, const char *paths);
void coll__plan_set_close(struct coll__plan_set *set);

/* Make this rank's plan from the file for its problem.
 *
 * Shapes:    a file serves problems with the same collective, ranks, root, count,
 *            element size and kind of operation, in an order at least as strict.  The
 *            call says whether the rank works in place; if the file says otherwise,
 *            a copy is added first.
 * Result:    whether there is a file for the problem is the same on every rank: it
 *            depends on nothing that only one rank knows.
 * Ownership: *plan is the caller's; its name is the set's.
 * Errors:    COLL_ERR_UNSUPPORTED if no file serves the problem (not logged);
 *            COLL_ERR_NOMEM, logged.
 */
int coll__plan_set_find(const struct coll__plan_set *set,
                        const struct coll__problem *pb,
                        struct coll__plan *plan);

#endif
