/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.h - check that a rank's OUT ends with what the collective defines. */
#ifndef COLL_LIB_PROOF_JUDGE_H
#define COLL_LIB_PROOF_JUDGE_H

#include "lib/proof/symbolic.h"
#include "lib/plan/plan.h"

struct coll__verdict {
    const struct coll__problem *pbs; /* [nranks], all ranks' */
    int rank;                        /* the rank whose OUT is checked */
    const struct coll__memory *out;
    const int *one;       /* [nranks]: for each rank the set of it alone */
    int all;              /* the set of the ranks that a reduction combines */
    int canonical;        /* the tree that the order asks for */
    struct coll__memory *scratch; /* work space */
    char *why;
    size_t why_len;
};

/* Check a rank's OUT.  COLL_OK; COLL_ERR_INVALID or COLL_ERR_NOMEM, with the fault in
 * why[why_len]. */
int coll__judge_out(const struct coll__verdict *v);

#endif
