/* SPDX-License-Identifier: BSD-3-Clause */
/* all_ranks.c - all ranks' plans of one problem. */
#include "lib/plan/all_ranks.h"

#include <stdlib.h>

int coll__has_in_counts(enum coll_collective collective)
{
    return collective == COLL_ALLTOALLV || collective == COLL_SCATTERV ||
           collective == COLL_REDUCE_SCATTERV;
}

int coll__has_out_counts(enum coll_collective collective)
{
    return collective == COLL_ALLTOALLV || collective == COLL_ALLGATHERV ||
           collective == COLL_GATHERV;
}

void coll__plans_fini(struct coll__plans *plans)
{
    int p = plans->pbs ? plans->pbs[0].nranks : 0;

    for (int r = 0; r < p; r++) {
        coll__plan_fini(&plans->plans[r]);
        if (plans->numbers)
            free(plans->numbers[r]);
    }
    free(plans->pbs);
    free(plans->plans);
    free(plans->numbers);
    *plans = (struct coll__plans){0};
}
