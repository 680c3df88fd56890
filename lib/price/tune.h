/* SPDX-License-Identifier: BSD-3-Clause */
/* tune.h - a tuning file: measured choices and prices, used instead of predictions, and
 * limits, used instead of the library's own.
 *
 * coll_tune writes it; COLL_TUNE_FILE names it.  JSON:
 *
 *   {"version": 1,
 *    "links": [{"level": "host", "alpha": 4e-7, "beta": 1e-10}, ...],
 *    "entries": [{"collective": "allreduce", "ranks": [2, 8],
 *                 "hosts": [1, 1], "bytes": [0, 4095], "type": "f32",
 *                 "algorithm": "recursive_doubling"}, ...],
 *    "limits": {"shm_cell": 131072, "cma_min": "64K", ...}}
 *
 * Ranges include both ends.  Without ranks, hosts, bytes or type, an entry fits any.
 * The first entry that fits a problem wins; an entry does not fit if its algorithm
 * cannot serve the problem.  alpha is in s, beta in s a byte.  lib/util/limit.h lists the
 * limits.  Other keys are ignored: they are for people, or for later versions.
 */
#ifndef COLL_LIB_PRICE_TUNE_H
#define COLL_LIB_PRICE_TUNE_H

#include "lib/algo/algo.h"

struct coll__tune; /* a file's content */

/* Read a tuning file.
 *
 * Ownership: *tune is the caller's, to end by coll__tune_free().
 * Errors:    COLL_ERR_INVALID (there is no such file, or it does not have this form),
 *            logged with the file and its line, or the entry and field;
 *            COLL_ERR_NOMEM.  *tune is untouched.
 */
int coll__tune_load(const char *path, struct coll__tune **tune);

/* Read the tuning file that COLL_TUNE_FILE names, if it names one, and let its limits hold
 * from now on; without a file the defaults hold, and *tune is NULL.
 *
 * Errors:    as coll__tune_load(); the limits are untouched then.
 */
int coll__tune_open(struct coll__tune **tune);

/* Read a tuning file from len bytes of text; path is for error messages. */
int coll__tune_parse(const char *path, const char *text, size_t len,
                     struct coll__tune **tune);

/* Add an owner to a table, or free it with its last owner; both accept NULL. */
struct coll__tune *coll__tune_share(struct coll__tune *tune);
void coll__tune_free(struct coll__tune *tune);

/* Return a hash of the file's content; 0 for NULL. */
uint64_t coll__tune_hash(const struct coll__tune *tune);

/* Return the algorithm of the first entry that fits, or NULL.  The same on every rank;
 * tune may be NULL.
 *
 * Shapes:    a problem's bytes are those of the call's count; for allgatherv and
 *            reduce_scatterv those of the mean count; for alltoallv, gatherv and
 *            scatterv 0, since no rank knows all counts.
 */
const struct coll__algo *coll__tune_find(const struct coll__tune *tune,
                                         const struct coll__problem *pb,
                                         int n_hosts);

/* Replace a level's prices by those that the file has for its name; returns 1 if the
 * file has any. */
int coll__tune_level(const struct coll__tune *tune, struct coll__level *level);

#endif
