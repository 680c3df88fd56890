/* SPDX-License-Identifier: BSD-3-Clause */
/* all_ranks.h - all ranks' plans of one problem, and their text: a plan file.
 *
 * load.c describes the text, and dump.c writes it.  A loaded plan is well formed, but
 * nothing more is known of it; coll__plans_check() (lib/proof) proves that it is
 * right.
 */
#ifndef COLL_LIB_PLAN_ALL_RANKS_H
#define COLL_LIB_PLAN_ALL_RANKS_H

#include "lib/plan/plan.h"

#define COLL__PLANS_RANKS 1024 /* the most in a file */

struct coll__plans {
    struct coll__problem *pbs; /* [nranks]: each rank's */
    struct coll__plan *plans;  /* [nranks], linked */
    size_t **numbers; /* [nranks]: the counts that pbs point to, or NULL */
    size_t chunk;     /* the chunk size of the splitting, for people */
    int has_edges;    /* the file lists the edges; they are not inferred */
    char algorithm[32];
};

/* Say whether each rank has its own counts of its inputs (its outputs). */
int coll__has_in_counts(enum coll_collective collective);
int coll__has_out_counts(enum coll_collective collective);

/* Read a plan file of at most 64 MiB.
 *
 * Ownership: *plans is the caller's, to end by coll__plans_fini(); empty on
 *            failure.
 * Errors:    COLL_ERR_INVALID (names file, line and field), COLL_ERR_SYSTEM,
 *            COLL_ERR_NOMEM, logged.
 * Cost:      memory in proportion to the file; time nearly so.
 */
int coll__plans_load(const char *path, struct coll__plans *plans);

/* As coll__plans_load(), for text[len]; errors use `name` as the file's name. */
int coll__plans_parse(const char *name, const char *text, size_t len,
                      struct coll__plans *plans);

/* Read a whole plan file as text, without judging it.
 *
 * Ownership: *text is the caller's, to free(); NUL-terminated.
 */
int coll__plans_read(const char *path, char **text, size_t *len);

/* Print them as a plan file. */
void coll__plans_dump(const struct coll__plans *plans, FILE *to);

/* Print the file's head, or one rank's part. */
void coll__plans_dump_head(const struct coll__plans *plans, FILE *to);
void coll__plans_dump_rank(const struct coll__plans *plans, int rank, FILE *to);

void coll__plans_fini(struct coll__plans *plans);

#endif
