/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_data.c - what the buffers hold and what must come out.
 *
 * Element i of rank r's contribution is a(i) + r b(i), with small integers a
 * and b that are a hash of (i, salt).  So the sum over p ranks is p a + p (p -
 * 1) / 2 b.  It is known without the other ranks' buffers, and exact in f32: at
 * most 64 * 128 + 2016 * 16 < 2^24.
 */
#include "benchmarks/rivals/peer.h"

/* Compute the two integers of an element: 0...127 and 1...16. */
static inline void parts(uint32_t i, uint32_t salt, int32_t *a, int32_t *b)
{
    uint32_t x = (i ^ (salt * 0x9e3779b9u)) * 0x85ebca6bu;

    x ^= x >> 15;
    x *= 0xc2b2ae35u;
    *a = (int32_t)(x >> 25);
    *b = (int32_t)((x >> 20) & 15) + 1;
}

/* Return element i of `times` a plus `ranks` b. */
static inline float value(uint32_t i, uint32_t salt, int32_t times,
                          int32_t ranks)
{
    int32_t a, b;

    parts(i, salt, &a, &b);
    return (float)(times * a + ranks * b);
}

static void put(float *to, size_t n, uint32_t first, uint32_t salt, int rank)
{
    for (size_t i = 0; i < n; i++)
        to[i] = value(first + (uint32_t)i, salt, 1, rank);
}

/* Return how many elements of a part differ from `times` a plus `ranks` b; its elements
 * are those from `first` on. */
static size_t differing(const struct peer_case *c, const float *part,
                        size_t first, int32_t times, int32_t ranks)
{
    size_t wrong = 0;

    for (size_t i = 0; i < c->count; i++)
        wrong += part[i] != value((uint32_t)(first + i), c->salt, times, ranks);
    return wrong;
}

size_t peer_count(enum peer_op op, size_t bytes, int ranks)
{
    size_t n = bytes / sizeof(float);

    if (op == PEER_BARRIER)
        return 0;
    if (op != PEER_ALLREDUCE && op != PEER_BROADCAST)
        n /= (size_t)ranks;
    return n ? n : 1;
}

size_t peer_in_len(const struct peer_case *c)
{
    return c->op == PEER_BROADCAST ? 0
           : c->op == PEER_REDUCE_SCATTER || c->op == PEER_ALLTOALL
               ? c->count * (size_t)c->ranks
               : c->count;
}

size_t peer_out_len(const struct peer_case *c)
{
    return c->op == PEER_ALLGATHER || c->op == PEER_ALLTOALL
               ? c->count * (size_t)c->ranks
               : c->count;
}

void peer_fill(const struct peer_case *c, float *in, float *out)
{
    if (c->op == PEER_BROADCAST) {
        if (c->rank == c->root)
            put(out, c->count, 0, c->salt, c->rank);
    } else {
        put(in, peer_in_len(c), 0, c->salt, c->rank);
    }
}

size_t peer_verify(const struct peer_case *c, const float *out)
{
    int p = c->ranks, all = p * (p - 1) / 2;
    size_t n = c->count, block = (size_t)c->rank * n, wrong = 0;

    switch (c->op) {
    case PEER_ALLREDUCE:
        return differing(c, out, 0, p, all);
    case PEER_BROADCAST:
        return differing(c, out, 0, 1, c->root);
    case PEER_REDUCE_SCATTER:
        return differing(c, out, block, p, all);
    case PEER_ALLGATHER:
        for (int r = 0; r < p; r++)
            wrong += differing(c, out + (size_t)r * n, 0, 1, r);
        return wrong;
    case PEER_ALLTOALL:
        for (int r = 0; r < p; r++)
            wrong += differing(c, out + (size_t)r * n, block, 1, r);
        return wrong;
    default:
        return 0;
    }
}
