/* SPDX-License-Identifier: BSD-3-Clause */
/* waits.c - find the steps that each step waits for. */
#include "lib/plan/waits.h"

#include <stdlib.h>

int coll__waits_init(struct coll__waits *w, const struct coll__plan *plan)
{
    int n = plan->n_steps;

    w->first = calloc((size_t)n + 2, sizeof(int));
    w->steps = malloc(((size_t)plan->first_after[n] + 1) * sizeof(int));
    if (!w->first || !w->steps)
        return COLL_ERR_NOMEM;
    for (int i = 0; i < n; i++)
        w->first[i + 2] = w->first[i + 1] + plan->n_deps[i];
    for (int i = 0; i < n; i++)
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++)
            w->steps[w->first[plan->after[e] + 1]++] = i;
    return COLL_OK;
}

void coll__waits_fini(struct coll__waits *w)
{
    free(w->first);
    free(w->steps);
}
