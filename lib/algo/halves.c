/* SPDX-License-Identifier: BSD-3-Clause */
/* halves.c - recursive halving with doubling distance: neighbours first, so
 * that every element is combined in the canonical tree. */
#include "lib/algo/halves.h"
#include "lib/algo/combine.h"

int coll__halves_rank(const struct coll__halves *h, int operand)
{
    return coll__fold_rank(&h->fold, operand) + (operand == h->swapped);
}

/* A plan on its way down the halves. */
struct halving {
    const struct coll__problem *pb;
    struct coll__plan *plan;
    struct coll__halves *h;
    struct coll__span own, tmp; /* whole vectors; own: in IN, later in h->sum */
};

/* Return blocks [from, to) of a vector. */
static struct coll__span blocks(const struct halving *at,
                                struct coll__span vector, int from, int to)
{
    return coll__cuts(at->pb, vector, at->h->fold.m, from, to);
}

/* Combine this rank's blocks with a peer's.  Operands are in the order of the ranks. */
static void absorb(struct halving *at, int peer)
{
    const struct coll__halves *h = at->h;
    struct coll__span sum = blocks(at, h->sum, h->from, h->to);
    struct coll__span own = blocks(at, at->own, h->from, h->to);
    struct coll__span tmp = blocks(at, at->tmp, h->from, h->to);

    if (peer < at->pb->rank)
        plan_absorb_left(at->plan, peer, sum, own, tmp);
    else
        plan_absorb(at->plan, peer, sum, own, tmp);
    at->own = h->sum;
}

static void fold(struct halving *at)
{
    int rank = at->pb->rank, peer = rank ^ 1;

    if (rank >= 2 * at->h->fold.e)
        return;
    if (at->h->fold.operand < 0)
        plan_send(at->plan, peer, at->own);
    else
        absorb(at, peer);
}

static void halve(struct halving *at, int distance)
{
    struct coll__halves *h = at->h;
    int middle = (h->from + h->to) / 2;
    int peer = coll__halves_rank(h, h->fold.operand ^ distance);

    if (h->fold.operand & distance) {
        plan_send(at->plan, peer, blocks(at, at->own, h->from, middle));
        h->from = middle;
    } else {
        plan_send(at->plan, peer, blocks(at, at->own, middle, h->to));
        h->to = middle;
    }
    absorb(at, peer);
}

/* Return what a rank has before the fold. */
static struct coll__halves halves_of(int p, int rank, int holder)
{
    struct coll__halves h = {.fold = coll__fold_of(p, rank), .swapped = -1};

    h.to = h.fold.m;
    if (holder >= 0 && holder < 2 * h.fold.e && holder % 2) {
        h.swapped = holder / 2;
        if (rank / 2 == holder / 2)
            h.fold.operand = rank == holder ? holder / 2 : -1;
    }
    return h;
}

void coll__halves_reduce(const struct coll__problem *pb,
                         struct coll__plan *plan, struct coll__span sum,
                         int holder, struct coll__halves *h)
{
    size_t free = sum.buf == BUF_TMP ? sum.off + sum.len : 0;
    struct halving at = {pb, plan, h, coll__own_in(pb),
                         coll__scratch(sum, free)};

    *h = halves_of(pb->nranks, pb->rank, holder);
    h->sum = sum;
    fold(&at);
    if (h->fold.operand < 0)
        return;
    for (int d = 1; d < h->fold.m; d *= 2)
        halve(&at, d);
    if (pb->nranks == 1)
        plan_copy(plan, sum, at.own);
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

static void set_blocks(const struct coll__problem *pb, int m, int from, int to,
                       struct coll__round_message *message)
{
    message->at = message->put = from;
    message->n_blocks = to - from;
    message->n =
        (double)coll__cuts(pb, coll__whole(pb, BUF_OUT), m, from, to).len;
}

int coll__halves_send(const struct coll__problem *pb, int round, int rank,
                      struct coll__round_message *message,
                      struct coll__halves *h)
{
    int from = 0, to;

    *h = halves_of(pb->nranks, rank,
                   pb->collective == COLL_REDUCE ? pb->root : -1);
    to = h->to;
    message->to = rank ^ 1;
    message->n_works = 1;
    for (int d = 1; d < 1 << round && h->fold.operand >= 0; d *= 2) {
        int middle = (h->from + h->to) / 2;
        int is_upper = (h->fold.operand & d) != 0;

        message->to = coll__halves_rank(h, h->fold.operand ^ d);
        from = is_upper ? h->from : middle;
        to = is_upper ? middle : h->to;
        h->from = is_upper ? middle : h->from;
        h->to = is_upper ? h->to : middle;
    }
    set_blocks(pb, h->fold.m, from, to, message);
    return message->n > 0 &&
           (round ? h->fold.operand >= 0 : h->fold.operand < 0);
}

int coll__halves_send_back(const struct coll__problem *pb, int round, int rank,
                           struct coll__round_message *message,
                           struct coll__halves *h)
{
    coll__halves_send(pb, round, rank, message, h);
    set_blocks(pb, h->fold.m, h->from, h->to, message);
    message->n_works = 0;
    return message->n > 0 && h->fold.operand >= 0;
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
