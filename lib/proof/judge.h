/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.h - is what a rank's OUT holds at the end what the collective
 * defines? */
#ifndef COLL_LIB_PROOF_JUDGE_H
#define COLL_LIB_PROOF_JUDGE_H

#include "lib/proof/symbolic.h"
#include "lib/plan/plan.h"

struct coll__verdict {
    const struct coll__problem *pbs; /* [nranks], all ranks' */
    int rank;                        /* whose OUT it is */
    const struct coll__memory *out;
    const int *one;       /* [nranks]: the set of each rank alone */
    int all, canonical;   /* the set of all ranks; the tree asked for */
    struct coll__memory *scratch; /* to work with */
    char *why;
    size_t why_len;
};

/* COLL_OK; COLL_ERR_INVALID with the fault in why[why_len]; COLL_ERR_NOMEM,
 * said there as well. */
int coll__judge_out(const struct coll__verdict *v);

#endif
