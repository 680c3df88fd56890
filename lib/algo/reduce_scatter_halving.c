/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive halving: a group of ranks splits in two halves; each rank sends its
 * sums of the other half's parts to a partner there, and then only its own half is
 * split again.
 *
 * With n bytes a part, T = log2(p) alpha + (p-1) n (beta + gamma) for a power
 * of two.  Any p will do.  In an odd group the lower half is one rank larger; its last
 * rank has no partner, so it sends to the other half's last rank and receives
 * nothing.  Parts stay contiguous, but the farthest partners exchange most.
 * Best for medium n in a flat network.
 *
 *   p = 5     0 1 2 | 3 4     0-34->3 1-34->4 2-34->4   3-012->0 4-012->1
 *             0 1 | 2   3 | 4     0-2->2 1-2->2 2-01->0     3-4->4 4-3->3
 *             0 | 1               0-1->1 1-0->0
 *
 * Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl.
 * 19(1), 2005; odd groups after Iannello, IEEE Trans. Parallel Distrib. Syst.
 * 8(9), 1997.
 */
#include "lib/algo/combine.h"
#include "lib/plan/view_rounds.h"
#include "lib/util/util.h"

struct halving {
    const struct coll__problem *pb;
    struct coll__plan *plan;
    int low, high;      /* the group's ranks, and also its parts: [low, high) */
    int is_begun;       /* the sums are in scratch or, if IN may be overwritten, in IN */
    enum coll__buf sum;
    size_t base;        /* the offset in IN at which the sums begin */
    size_t tmp;         /* where scratch for receives begins */
};

/* Return parts [from, to) as one span of IN, or of the sums. */
static struct coll__span parts(const struct halving *h, enum coll__buf buf,
                               int from, int to)
{
    struct coll__span first = coll__part(h->pb, BUF_IN, from);
    struct coll__span last = coll__part(h->pb, BUF_IN, to - 1);
    size_t base = buf == BUF_IN ? 0 : h->base;

    return (struct coll__span){buf, first.off - base,
                               last.off + last.len - first.off};
}

/* Add this rank's operands of parts [from, to) to the sums; the range may be empty. */
static void add_own(const struct halving *h, int from, int to)
{
    if (from < to)
        plan_reduce(h->plan, parts(h, h->sum, from, to),
                    parts(h, BUF_IN, from, to));
}

/* Receive the sums of this group's parts from a rank of the other half, and add them. */
static void absorb(struct halving *h, int peer)
{
    struct coll__span sum = parts(h, h->sum, h->low, h->high);
    struct coll__span tmp = coll__scratch(sum, h->tmp);
    int r = h->pb->rank;

    plan_recv(h->plan, peer, h->is_begun ? tmp : sum);
    if (h->is_begun) {
        plan_reduce(h->plan, sum, tmp);
    } else if (!h->pb->in_place) {
        add_own(h, h->low, h->high);
    } else {
        add_own(h, h->low, r);
        plan_reduce(h->plan, parts(h, h->sum, r, r + 1), coll__own_in(h->pb));
        add_own(h, r + 1, h->high);
    }
    h->is_begun = 1;
}

static void halve(struct halving *h)
{
    int n = h->high - h->low, longer = (n + 1) / 2, middle = h->low + longer;
    int r = h->pb->rank, is_upper = r >= middle, end = h->high;
    int partner = is_upper ? r - longer : r + longer;
    int is_single = partner >= end;
    enum coll__buf from = h->is_begun ? h->sum : BUF_IN;

    if (is_upper)
        plan_send(h->plan, partner, parts(h, from, h->low, middle));
    else
        plan_send(h->plan, is_single ? end - 1 : partner,
                  parts(h, from, middle, end));
    if (is_upper)
        h->low = middle;
    else
        h->high = middle;
    if (!h->is_begun && h->sum == BUF_TMP) {
        h->base = parts(h, BUF_IN, h->low, h->high).off;
        h->tmp = parts(h, BUF_IN, h->low, h->high).len;
    }
    if (!is_single)
        absorb(h, partner);
    if (is_upper && r == end - 1 && n % 2)
        absorb(h, middle - 1);
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct halving h = {pb, plan, 0, pb->nranks, pb->spoils_in, BUF_TMP, 0, 0};
    int r = pb->rank;

    if (pb->spoils_in)
        h.sum = BUF_IN;
    while (h.high - h.low > 1)
        halve(&h);
    if (!pb->spoils_in)
        plan_copy(plan, coll__whole(pb, BUF_OUT),
                  h.is_begun ? parts(&h, h.sum, r, r + 1) : coll__own_in(pb));
    plan_finish(pb, plan, coll__whole(pb, BUF_OUT));
    return plan_status(plan);
}

static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    int low = 0, high = pb->nranks, middle, longer;

    for (;; round--) {
        longer = (high - low + 1) / 2;
        middle = low + longer;
        if (!round || high - low < 2)
            break;
        if (rank >= middle)
            low = middle;
        else
            high = middle;
    }
    message->at = message->put = rank >= middle ? low : middle;
    message->n_blocks = rank >= middle ? longer : high - middle;
    message->n = coll__mean_part(pb, BUF_IN) * message->n_blocks;
    message->to =
        rank >= middle ? rank - longer : min_int(rank + longer, high - 1);
    message->n_works = 1;
    return high - low > 1;
}

/* Return the time to receive half of the parts (`n_parts`) from a partner at that
 * distance.  is_twice: a rank without a partner sends them too. */
static double step(const struct coll__problem *pb, int distance, int n_parts,
                   int is_twice)
{
    const struct coll__view *view = pb->view;
    int p = pb->nranks, is_aligned = p == power2_below(p);
    double n = n_parts * coll__mean_part(pb, BUF_IN);
    double work = coll__cost_work(view, is_twice ? 2 * n : n);
    double come = coll__cost_exchange(view, distance, n);

    if (!is_aligned) /* then groups of every size cross borders */
        come = coll__cost_shift(view, distance, n) -
               coll__cost_shift(view, distance, 0) +
               coll__cost_message(view, p, 0);
    if (is_twice)
        come += coll__cost_next(view, n);
    return coll__cost_absorb(coll__pieces(view, n), come, work);
}

/* Groups of each depth have two sizes, k and k + 1.  time[] is the time that groups of
 * these sizes still need, computed from the innermost groups out. */
static double cost(const struct coll__problem *pb)
{
    double time[2] = {0, 0};
    struct coll__rounds rounds = {.pb = pb,
                                  .n = log2_up(pb->nranks),
                                  .n_blocks = pb->nranks,
                                  .block = coll__mean_part(pb, BUF_IN),
                                  .send = send_in};

    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds) +
               coll__cost_work(pb->view, rounds.block);
    for (int depth = log2_up(pb->nranks + 1) - 1; depth >= 0; depth--) {
        int k = pb->nranks >> depth, inner = k / 2;
        double next[2] = {0, 0};

        for (int n = k < 2 ? 2 : k; n <= k + 1; n++) {
            int longer = (n + 1) / 2, rest = n / 2;
            double low = step(pb, longer, longer, 0) + time[longer - inner];
            double up = step(pb, longer, rest, n % 2) + time[rest - inner];

            next[n - k] = low > up ? low : up;
        }
        time[0] = next[0];
        time[1] = next[1];
    }
    return time[0] + coll__cost_work(pb->view, coll__mean_part(pb, BUF_IN));
}

const struct coll__algo coll__algo_reduce_scatter_halving = {
    .name = "halving",
    .what = "half of the parts to a partner in each of log2(p) rounds",
    .serves = COLL_FOR(REDUCE_SCATTER) | COLL_FOR(REDUCE_SCATTERV),
    .build = build,
    .cost = cost,
};
