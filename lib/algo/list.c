/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c - the algorithms there are, and how a vector is cut into blocks. */
#include "lib/algo/algo.h"

#define COLL_ALGO_MAP(X)            \
    X(allreduce_ring)               \
    X(allreduce_recursive_doubling) \
    X(allreduce_binomial)           \
    X(broadcast_binomial)           \
    X(broadcast_chain)              \
    X(allgather_ring)               \
    X(allgather_bruck)              \
    X(barrier_dissemination)

#define X(name) extern const struct coll__algo coll__algo_##name;
COLL_ALGO_MAP(X)
#undef X

const struct coll__algo *const coll__algos[] = {
#define X(name) &coll__algo_##name,
    COLL_ALGO_MAP(X)
#undef X
    NULL,
};

struct coll__span coll__block(const struct coll__problem *pb,
                              enum coll__buf buf, int b)
{
    size_t p = (size_t)pb->nranks, size = coll_type_size(pb->type);
    size_t i = (size_t)((b % pb->nranks + pb->nranks) % pb->nranks);
    size_t base = pb->count / p, longer = pb->count % p;
    size_t first = i * base + (i < longer ? i : longer);

    return (struct coll__span){buf, first * size,
                               (base + (i < longer)) * size};
}
