/* SPDX-License-Identifier: BSD-3-Clause */
/* waits.h - a plan's edges in reverse: the steps that each step waits for. */
#ifndef COLL_LIB_PLAN_WAITS_H
#define COLL_LIB_PLAN_WAITS_H

#include "lib/plan/plan.h"

/* Step i waits for steps[first[i] .. first[i + 1]), in ascending order. */
struct coll__waits {
    int *first, *steps;
};

/* Reverse the edges of a linked plan.  COLL_OK or COLL_ERR_NOMEM; fini() in both
 * cases. */
int coll__waits_init(struct coll__waits *w, const struct coll__plan *plan);
void coll__waits_fini(struct coll__waits *w);

#endif
