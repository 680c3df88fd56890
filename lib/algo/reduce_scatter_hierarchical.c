/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical reduce-scatter: on each host one rank adds up the host's
 * operands of a part and sends the sum to the part's rank, which adds up the sums of
 * all hosts.
 *
 * With n bytes a part and h hosts of s ranks,
 * T = alpha + (s - 1) (gap + h n beta) on a host's links + alpha + (h - 1)
 * (gap + n beta) on the network + (h s + h) n gamma.  Best if messages between hosts
 * are expensive: each other host sends one sum of a part, the least possible; the
 * direct algorithm sends s operands.
 *
 *   p = 4, hosts 0 1 and 2 3, the operands of ranks 2 and 3 for parts 0 and 1
 *     start      inside               across
 *     2: 20 21   2 has 20 + 30        2->0
 *     3: 30 31   3 has 21 + 31        3->1
 *
 * On another host, the rank that adds up a part is chosen by the number of the
 * part's rank, counted host by host, modulo the host's size.  So all ranks of a host
 * of any size have the same work.
 *
 * Source: Karonis et al., "Exploiting hierarchy in parallel computer networks
 * to optimize collective operation performance", IPDPS 2000, for the levels.
 */
#include "lib/algo/combine.h"
#include "lib/algo/levels.h"
#include "lib/util/util.h"

/* The ranks by hosts, and this rank's place.  Part q is the part of rank q. */
struct hosts {
    const struct coll__problem *pb;
    const struct coll__level *level;
    const int *mine;   /* [size]: this host's ranks */
    int host, size, i; /* this rank is mine[i] */
    size_t slot;       /* bytes of a place in scratch */
    int n_sums;        /* parts that this rank adds up */
    int n_absorbed;    /* so far */
};

static const struct coll__level *level_of(const struct coll__problem *pb)
{
    return &pb->view->levels[pb->view->n_levels - 2];
}

/* Return which rank of a host, by its number there, adds up part q. */
static int adder(const struct coll__level *level, int host, int q)
{
    int size = level->first[host + 1] - level->first[host];
    int home = level->group[q];

    return home == host ? level->index[q]
                        : (level->first[home] + level->index[q]) % size;
}

/* Return the first part, from q on, that rank i of this host adds up; p: none. */
static int next(const struct hosts *h, int i, int q)
{
    while (q < h->pb->nranks && adder(h->level, h->host, q) != i)
        q++;
    return q;
}

static struct hosts hosts_of(const struct coll__problem *pb)
{
    struct hosts h = {.pb = pb, .level = level_of(pb)};

    h.mine =
        coll__view_group(pb->view, pb->view->n_levels - 2, pb->rank, &h.size);
    h.host = h.level->group[pb->rank];
    h.i = h.level->index[pb->rank];
    h.slot = coll__longest_part(pb, BUF_IN);
    for (int q = next(&h, h.i, 0); q < pb->nranks; q = next(&h, h.i, q + 1))
        h.n_sums++;
    return h;
}

static struct coll__span operand(const struct hosts *h, int q)
{
    return q == h->pb->rank ? coll__own_in(h->pb)
                            : coll__part(h->pb, BUF_IN, q);
}

/* Return the place for the host's sum of part q, the k-th part that this rank adds up. */
static struct coll__span sum_of(const struct hosts *h, int q, int k)
{
    if (q == h->pb->rank)
        return coll__whole(h->pb, BUF_OUT);
    return coll__scratch(operand(h, q), (size_t)k * h->slot);
}

/* Add peer's operand to `own`, into `sum`.  If it must be received elsewhere first,
 * two places after all sums are used in turn. */
static void absorb(struct hosts *h, struct coll__plan *plan, int peer,
                   struct coll__span sum, struct coll__span own)
{
    size_t place = (size_t)(h->n_sums + h->n_absorbed++ % 2);

    plan_absorb(plan, peer, sum, own, coll__scratch(sum, place * h->slot));
}

/* Exchange with the two ranks of this host at a distance: send part after part to one
 * rank, and receive part after part from the other. */
static void inside(struct hosts *h, struct coll__plan *plan, int distance)
{
    int to = (h->i + distance) % h->size, p = h->pb->nranks, k = 0;
    int from = (h->i - distance + h->size) % h->size;
    int give = next(h, to, 0), take = next(h, h->i, 0);

    for (; give < p || take < p; k++) {
        if (give < p)
            plan_send(plan, h->mine[to], operand(h, give));
        give = next(h, to, give + 1);
        if (take < p)
            absorb(h, plan, h->mine[from], sum_of(h, take, k),
                   distance > 1 ? sum_of(h, take, k) : operand(h, take));
        take = next(h, h->i, take + 1);
    }
}

/* Send this host's sums to one host, and add another host's sum of this rank's part. */
static void across(struct hosts *h, struct coll__plan *plan, int distance)
{
    const struct coll__level *level = h->level;
    int rank = h->pb->rank, n = level->n_groups, k = 0;
    int to = (h->host + distance) % n, from = (h->host - distance + n) % n;
    int peer = level->members[level->first[from] + adder(level, from, rank)];
    struct coll__span out = coll__whole(h->pb, BUF_OUT);

    for (int q = next(h, h->i, 0); q < h->pb->nranks;
         q = next(h, h->i, q + 1), k++)
        if (level->group[q] == to)
            plan_send(plan, q, h->size > 1 ? sum_of(h, q, k) : operand(h, q));
    absorb(h, plan, peer, out,
           h->size > 1 || distance > 1 ? out : operand(h, rank));
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct hosts h = hosts_of(pb);

    if (pb->nranks == 1)
        plan_copy(plan, coll__whole(pb, BUF_OUT), coll__own_in(pb));
    for (int d = 1; d < h.size; d++)
        inside(&h, plan, d);
    for (int d = 1; d < h.level->n_groups; d++)
        across(&h, plan, d);
    plan_finish(pb, plan, coll__whole(pb, BUF_OUT));
    return plan_status(plan);
}

/* Return the number of parts that enter or leave a host, divided by the number of
 * messages that would do so if every rank sent one message to each rank of other
 * hosts. */
static double crossing(const struct coll__level *hosts, double p)
{
    double most = hosts->size_max, least = hosts->size_min;

    return max_double(most * (hosts->n_groups - 1), p - least) /
           max_double(most * (p - most), least * (p - least));
}

/* One part is reduced while the next one arrives. */
static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    const struct coll__level *hosts = level_of(pb);
    double n = coll__mean_part(pb, BUF_IN), k = coll__pieces(view, n);
    double h = hosts->n_groups, others = hosts->size_max - 1;
    double alpha = hosts->alpha, far = view->levels[view->n_levels - 1].alpha;
    double inside =
        max_double(coll__cost_within(view, view->n_levels - 2, h * n),
                   alpha + (h * others - 1) * hosts->gap);
    double across;

    if (h < 2 || others < 1)
        return coll__cost_all(view, n);
    across = coll__cost_across(view, n * crossing(hosts, pb->nranks));
    return alpha +
           coll__cost_absorb(h * others * k, inside - alpha,
                             coll__cost_work(view, h * others * n)) +
           far +
           coll__cost_absorb((h - 1) * k, across - far,
                             coll__cost_work(view, (h - 1) * n));
}

const struct coll__algo coll__algo_reduce_scatter_hierarchical = {
    .name = "hierarchical",
    .what = "sums of whole hosts, then across, one a part and host",
    .serves = COLL_FOR(REDUCE_SCATTER) | COLL_FOR(REDUCE_SCATTERV),
    .build = build,
    .cost = cost,
    .refuses = coll__needs_groups,
};
