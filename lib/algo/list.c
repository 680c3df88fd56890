/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c - the table of algorithms.  Among equal prices the first one wins; simpler
 * ones come first. */
#include "lib/algo/algo.h"

#include <string.h>

#define COLL_ALGO_MAP(X)             \
    X(allreduce_one_shot)            \
    X(allreduce_ring)                \
    X(allreduce_recursive_doubling)  \
    X(allreduce_binomial)            \
    X(allreduce_two_shot)            \
    X(allreduce_rabenseifner)        \
    X(allreduce_knomial)             \
    X(allreduce_double_tree)         \
    X(allreduce_hierarchical)        \
    X(allreduce_pat)                 \
    X(reduce_direct)                 \
    X(reduce_binomial)               \
    X(reduce_rabenseifner)           \
    X(reduce_knomial)                \
    X(reduce_chain)                  \
    X(reduce_double_tree)            \
    X(reduce_hierarchical)           \
    X(scan_recursive_doubling)       \
    X(scan_chain)                    \
    X(reduce_scatter_direct)         \
    X(reduce_scatter_ring)           \
    X(reduce_scatter_halving)        \
    X(reduce_scatter_pat)            \
    X(reduce_scatter_hierarchical)   \
    X(broadcast_direct)              \
    X(broadcast_binomial)            \
    X(broadcast_chain)               \
    X(broadcast_knomial)             \
    X(broadcast_double_tree)         \
    X(broadcast_scatter_allgather)   \
    X(broadcast_hierarchical)        \
    X(allgather_direct)              \
    X(allgather_ring)                \
    X(allgather_bruck)               \
    X(allgather_recursive_doubling)  \
    X(allgather_pat)                 \
    X(allgather_hierarchical)        \
    X(alltoall_direct)               \
    X(alltoall_pairwise)             \
    X(alltoall_bruck)                \
    X(alltoall_hierarchical)         \
    X(gather_direct)                 \
    X(gather_binomial)               \
    X(scatter_direct)                \
    X(scatter_binomial)              \
    X(p2p_direct)                    \
    X(barrier_direct)                \
    X(barrier_dissemination)         \
    X(barrier_binomial)              \
    X(barrier_hierarchical)

#define X(name) extern const struct coll__algo coll__algo_##name;
COLL_ALGO_MAP(X)
#undef X

const struct coll__algo *const coll__algos[] = {
#define X(name) &coll__algo_##name,
    COLL_ALGO_MAP(X)
#undef X
    NULL,
};

const struct coll__algo *coll__algo_find(enum coll_collective collective,
                                         const char *name)
{
    for (int i = 0; coll__algos[i]; i++)
        if (coll__algos[i]->serves & 1u << collective &&
            !strcmp(coll__algos[i]->name, name))
            return coll__algos[i];
    return NULL;
}

const struct coll__algo *coll__algo_cheapest(const struct coll__problem *pb,
                                             double *seconds)
{
    const struct coll__algo *best = NULL;

    for (int i = 0; coll__algos[i]; i++) {
        const struct coll__algo *algo = coll__algos[i];
        double time;

        if (!(algo->serves & 1u << pb->collective) ||
            coll__algo_refuses(algo, pb))
            continue;
        time = algo->cost(pb);
        if (best && !coll__algo_is_cheaper(time, *seconds))
            continue;
        best = algo;
        *seconds = time;
    }
    return best;
}
