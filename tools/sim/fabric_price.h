/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric_price.h - levels under construction; there may be more than a view holds. */
#ifndef COLL_TOOLS_SIM_FABRIC_PRICE_H
#define COLL_TOOLS_SIM_FABRIC_PRICE_H

#include "tools/sim/fabric_int.h"

#define MAX_LEVELS (GRAPH_SOCKET + 2 + FABRIC_MAX_TREE + 2)

struct one_level {
    int *color; /* [nranks]: the leader of the rank's group */
    int n_groups, is_inside;
    struct coll__fabric_price price;
};

struct levels {
    const struct coll__fabric *fabric;
    const int *seat, *sorted; /* [nranks]: seats; ranks in order of seats */
    int nranks, n;
    struct one_level level[MAX_LEVELS];
};

static inline int max_of(int a, int b) { return a > b ? a : b; }

/* Fill in the prices of every level; COLL_ERR_NOMEM is not logged. */
int coll__levels_price(struct levels *levels);

#endif
