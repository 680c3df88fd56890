/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - how fast a cell can be at best on this machine.
 *
 * Bytes.  Buffers are private to the ranks, so that whatever the algorithm,
 * every byte of input is read once and every byte of output written once:
 *
 *     allreduce       p n in,  p n out          2 p n
 *     broadcast       n in,    (p - 1) n out    p n     (in place at the root)
 *     allgather       n in,    p n out          (p + 1) n   (n: the output)
 *     reduce_scatter  p n in,  n out            (p + 1) n   (n: the input)
 *     alltoall        p n in,  p n out          2 p n
 *
 * divided by the bytes that all cores together read and write a second when they add
 * (allreduce, reduce_scatter) or copy buffers of that size, with the faster of the two
 * kinds of stores.  No transport between processes reaches this with memory of any
 * kind: a transport that goes through shared memory writes and reads everything once
 * more, unless the buffers themselves are in shared memory (coll_mem_alloc).
 *
 * Latency.  No rank can leave before it has seen the flags of all others, which
 * takes as long as an exchange of flags between two cores; a broadcast needs
 * one way only.  With more ranks than cores every rank must run once an
 * operation: a core has to switch as often as it has ranks.
 *
 * The larger of the two is the limit.
 *
 * On several hosts the limit is the link's alone: the bytes that must go through the
 * busiest one (hosts.c) divided by its rate.  A packet of 1,514 bytes carries 1,448 of
 * them, since the rest is headers.  On a link without a rate limit the limit is the
 * time of plain sockets.
 *
 * On GPUs each GPU's part of the same bytes is divided by what its copies read and
 * write a second, and no operation is faster than a copy of 8 bytes.
 */
#include "benchmarks/rivals/compare.h"

#include <math.h>

double model_bytes(enum peer_op op, size_t bytes, int ranks)
{
    double n = (double)bytes, p = ranks;

    switch (op) {
    case PEER_ALLREDUCE:
    case PEER_ALLTOALL:
        return 2 * p * n;
    case PEER_BROADCAST:
        return p * n;
    case PEER_ALLGATHER:
    case PEER_REDUCE_SCATTER:
        return (p + 1) * n;
    default:
        return 0;
    }
}

static double best_of(const struct area *area, int sums)
{
    const double *ways = sums ? area->sum[1] : area->copy[1];

    return ways[0] > ways[1] ? ways[0] : ways[1];
}

/* Return the bandwidth of all cores together for buffers of `bytes` bytes a core,
 * interpolated between the measured sizes on a logarithmic scale. */
static double bandwidth_at(const struct limits *limits, int sums, double bytes)
{
    const struct area *areas = limits->areas;
    int a = 0;
    double t, low, high;

    while (a < limits->n_areas - 2 && bytes > (double)areas[a + 1].bytes)
        a++;
    low = (double)areas[a].bytes;
    high = (double)areas[a + 1].bytes;
    t = bytes <= low    ? 0
        : bytes >= high ? 1
                        : log(bytes / low) / log(high / low);
    return best_of(&areas[a], sums) * (1 - t) +
           best_of(&areas[a + 1], sums) * t;
}

static double least_latency(const struct cell *cell,
                            const struct limits *limits)
{
    int cores = limits->n_cores;

    if (cell->ranks <= cores)
        return cell->op == PEER_BROADCAST &&
                       limits->round_trip / 2 < limits->exchange
                   ? limits->round_trip / 2
                   : limits->exchange;
    return (double)((cell->ranks + cores - 1) / cores) * limits->yield / 2;
}

static int is_sum(const struct cell *cell)
{
    return cell->op == PEER_ALLREDUCE || cell->op == PEER_REDUCE_SCATTER;
}

double model_buffers(const struct cell *cell, int n_cores)
{
    return model_bytes(cell->op, cell->bytes, cell->ranks) /
           (is_sum(cell) ? 3 : 2) / n_cores;
}

static double on_gpus(const struct cell *cell, const struct limits *limits)
{
    int n = cell->ranks < limits->n_gpus ? cell->ranks : limits->n_gpus;
    double moved = model_bytes(cell->op, cell->bytes, cell->ranks) / n;
    double bandwidth = bandwidth_at(limits, 0, moved / 2);
    double seconds = bandwidth > 0 ? moved / bandwidth : 0;

    return seconds > limits->gpu_small ? seconds : limits->gpu_small;
}

static double on_host(const struct cell *cell, const struct limits *limits)
{
    double moved = model_bytes(cell->op, cell->bytes, cell->ranks);
    double bandwidth = bandwidth_at(limits, is_sum(cell),
                                    model_buffers(cell, limits->n_cores));
    double latency = least_latency(cell, limits);
    double seconds = bandwidth > 0 ? moved / bandwidth : 0;

    return seconds > latency ? seconds : latency;
}

double model_limit(const struct cell *cell, const struct limits *limits)
{
    if (limits->n_gpus)
        return on_gpus(cell, limits);
    return on_host(cell, limits);
}

double model_link(const struct cell *cell, const struct hosts *hosts)
{
    if (hosts->rate)
        return hosts_crossing(hosts, cell->op, cell->bytes, cell->ranks) /
               (hosts->bytes_a_second * 1448 / 1514);
    for (int f = 0; f < N_FORMS; f++)
        if (forms[f].is_measure && cell->outcomes[f].status == MEASURED)
            return cell->outcomes[f].median;
    return 0;
}
