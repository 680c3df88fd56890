/* SPDX-License-Identifier: BSD-3-Clause */
/* halves.c - recursive halving with doubling distance: neighbours first, so
 * that every element is combined in the canonical tree. */
#include "lib/algo/halves.h"
#include "lib/algo/combine.h"

int coll__halves_rank(const struct coll__halves *h, int operand)
{
    return coll__fold_rank(&h->fold, operand) + (operand == h->swapped);
}

static void fold(const struct coll__problem *pb, struct coll__plan *plan,
                 struct coll__halves *h, struct coll__span *own,
                 struct coll__span tmp)
{
    int peer = pb->rank ^ 1;

    if (pb->rank >= 2 * h->fold.e)
        return;
    if (h->fold.operand < 0) {
        plan_send(plan, peer, *own);
        return;
    }
    plan_absorb(plan, peer, peer < pb->rank, h->sum, *own, tmp);
    *own = h->sum;
}

static void halve(const struct coll__problem *pb, struct coll__plan *plan,
                  struct coll__halves *h, int distance, struct coll__span own,
                  struct coll__span tmp)
{
    int m = h->fold.m, middle = (h->from + h->to) / 2;
    int is_upper = (h->fold.operand & distance) != 0;
    int peer = coll__halves_rank(h, h->fold.operand ^ distance);

    if (is_upper) {
        plan_send(plan, peer, coll__cuts(pb, own, m, h->from, middle));
        h->from = middle;
    } else {
        plan_send(plan, peer, coll__cuts(pb, own, m, middle, h->to));
        h->to = middle;
    }
    plan_absorb(plan, peer, is_upper, coll__halves_own(pb, h),
                coll__cuts(pb, own, m, h->from, h->to),
                coll__cuts(pb, tmp, m, h->from, h->to));
}

void coll__halves_reduce(const struct coll__problem *pb,
                         struct coll__plan *plan, struct coll__span sum,
                         int holder, struct coll__halves *h)
{
    struct coll__span own = coll__own_in(pb);
    struct coll__span tmp =
        coll__scratch(sum, sum.buf == BUF_TMP ? sum.off + sum.len : 0);

    *h = (struct coll__halves){.fold = coll__fold_of(pb->nranks, pb->rank),
                               .swapped = -1,
                               .sum = sum};
    h->to = h->fold.m;
    if (holder >= 0 && holder < 2 * h->fold.e && holder % 2) {
        h->swapped = holder / 2;
        if (pb->rank / 2 == holder / 2)
            h->fold.operand = pb->rank == holder ? holder / 2 : -1;
    }
    fold(pb, plan, h, &own, tmp);
    if (h->fold.operand < 0)
        return;
    for (int d = 1; d < h->fold.m; d *= 2) {
        halve(pb, plan, h, d, own, tmp);
        own = sum;
    }
    if (pb->nranks == 1)
        plan_copy(plan, sum, own);
}

struct coll__span coll__halves_own(const struct coll__problem *pb,
                                   const struct coll__halves *h)
{
    return coll__cuts(pb, h->sum, h->fold.m, h->from, h->to);
}

struct coll__span coll__halves_other(const struct coll__problem *pb,
                                     const struct coll__halves *h,
                                     int distance)
{
    int n = h->to - h->from;
    int from = h->fold.operand & distance ? h->from - n : h->to;

    return coll__cuts(pb, h->sum, h->fold.m, from, from + n);
}

void coll__halves_join(struct coll__halves *h, int distance)
{
    int n = h->to - h->from;

    if (h->fold.operand & distance)
        h->from -= n;
    else
        h->to += n;
}

int coll__halves_far(const struct coll__problem *pb, int distance)
{
    return power2_below(pb->nranks) < pb->nranks ? 2 * distance : distance;
}

double coll__halves_exchange(const struct coll__problem *pb, int distance,
                             double n)
{
    int m = power2_below(pb->nranks), far = coll__halves_far(pb, distance);
    double all = coll__cost_exchange(pb->view, far, n * m / pb->nranks);
    double alone = coll__cost_pair(pb->view, far, n);

    return all > alone ? all : alone; /* folded ranks send nothing */
}

double coll__halves_cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = (double)coll__problem_bytes(pb), time = 0;
    int m = power2_below(pb->nranks);

    if (m < pb->nranks)
        time += coll__cost_absorb(coll__pieces(view, n),
                                  coll__cost_exchange(view, 1, n),
                                  coll__cost_work(view, n));
    for (int d = 1; d < m; d *= 2) {
        double half = n / (2 * d);

        time += coll__cost_absorb(coll__pieces(view, half),
                                  coll__halves_exchange(pb, d, half),
                                  coll__cost_work(view, half));
    }
    return time;
}
