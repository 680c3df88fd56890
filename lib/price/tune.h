/* SPDX-License-Identifier: BSD-3-Clause */
/* tune.h - a tuning file: what was measured, for use instead of predictions.
 *
 * coll_tune writes it; COLL_TUNE_FILE names it.  JSON:
 *
 *   {"version": 1,
 *    "links": [{"level": "host", "alpha": 4e-7, "beta": 1e-10}, ...],
 *    "entries": [{"collective": "allreduce", "ranks": [2, 8],
 *                 "hosts": [1, 1], "bytes": [0, 4095], "type": "f32",
 *                 "algorithm": "recursive_doubling"}, ...]}
 *
 * Ranges include both ends.  ranks, hosts, bytes and type may be left out: any
 * will do.  The first entry that fits a problem wins, and one whose algorithm
 * cannot serve it does not fit.  alpha is in s, beta in s a byte.  Other keys
 * are for people, or for later versions.
 */
#ifndef COLL_LIB_PRICE_TUNE_H
#define COLL_LIB_PRICE_TUNE_H

#include "lib/algo/algo.h"

struct coll__tune; /* a file's content */

/* Read a tuning file.
 *
 * Ownership: *tune is the caller's, to end by coll__tune_free().
 * Errors:    COLL_ERR_INVALID (no such file, or it is not as above), logged
 *            with the file and its line, or the entry and field;
 *            COLL_ERR_NOMEM.  *tune is untouched.
 */
int coll__tune_load(const char *path, struct coll__tune **tune);

/* The same of len bytes of text; path is for the messages. */
int coll__tune_parse(const char *path, const char *text, size_t len,
                     struct coll__tune **tune);

/* Own a table together with who owns it now; NULL is allowed in both. */
struct coll__tune *coll__tune_share(struct coll__tune *tune);
void coll__tune_free(struct coll__tune *tune);

/* A number that differs between files of different content; 0 for NULL. */
uint64_t coll__tune_hash(const struct coll__tune *tune);

/* Return the algorithm of the first entry that fits, or NULL.  The same on
 * every rank; tune may be NULL.
 *
 * Shapes:    a problem's bytes are those of the call's count, of its mean for
 *            allgatherv and reduce_scatterv, and 0 for alltoallv, gatherv and
 *            scatterv, whose counts no rank knows.
 */
const struct coll__algo *coll__tune_find(const struct coll__tune *tune,
                                         const struct coll__problem *pb,
                                         int n_hosts);

/* Put the prices of the links that the file has for a level's name in place of
 * the level's own; 1 when it has any. */
int coll__tune_level(const struct coll__tune *tune, struct coll__level *level);

#endif
