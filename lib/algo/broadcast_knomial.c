/* SPDX-License-Identifier: BSD-3-Clause */
/* k-nomial tree broadcast, radix 4: in each round every rank that has the vector
 * sends it to three ranks that do not have it.
 *
 * T = log4(p) (alpha + 2 gap + 3 n beta).  Best for tiny n if a message's
 * latency is well above the gap between two messages.
 *
 *   p = 5, ranks counted from the root     0->4, then 0->3 0->2 0->1
 *
 * Source: the k-nomial trees of Chan et al., Concurr. Comput. Pract. Exp.
 * 19(13), 2007.
 */
#include "lib/algo/knomial.h"
#include "lib/plan/view_tree.h"
#include "lib/util/util.h"

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, v = (pb->rank - pb->root + p) % p;
    int d = coll__knomial_reach(v, p);
    struct coll__span out = coll__whole(pb, BUF_OUT), from = out;

    if (v)
        plan_recv(plan, (pb->root + coll__knomial_parent(v, p)) % p, out);
    else
        from = coll__own_in(pb);
    for (d /= COLL__RADIX; d; d /= COLL__RADIX)
        for (int i = COLL__RADIX - 1; i > 0; i--)
            if (v + i * d < p)
                plan_send(plan, (pb->rank + i * d) % p, from);
    plan_copy(plan, out, from);
    return plan_status(plan);
}

/* Predict the time level by level, from the smallest distance.  whole: the time of a
 * complete subtree; last: that of the last subtree, which ends with rank p - 1 and
 * gets its message first. */
static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = (double)coll__problem_bytes(pb), whole = 0, last = 0;
    struct coll__tree_shape shape = {.radix = COLL__RADIX, .root = pb->root};

    if (!coll__tree_is_even(view, pb->root))
        return coll__tree_cost(view, &shape, TREE_DOWN, n);
    for (int d = 1; d < pb->nranks; d *= COLL__RADIX) {
        int fan = (pb->nranks - 1) / d % COLL__RADIX;
        double all = coll__cost_fan(view, fan, fan * d, n) + whole;

        if (fan == 1)
            all = coll__cost_next(view, n) + whole; /* its parent */
        if (fan)
            last = max_double(coll__cost_message(view, fan * d, n) + last, all);
        whole +=
            coll__cost_fan(view, COLL__RADIX - 1, (COLL__RADIX - 1) * d, n);
    }
    return last;
}

const struct coll__algo coll__algo_broadcast_knomial = {
    .name = "knomial",
    .what = "whole vector down a tree of radix 4",
    .serves = COLL_FOR(BROADCAST),
    .build = build,
    .cost = cost,
};
