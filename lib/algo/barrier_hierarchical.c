/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical barrier: in each group all ranks report to the leader, level by
 * level; the leaders of the outermost groups run a dissemination barrier; the
 * release goes back down.
 *
 * With k leaders in a group and h of the outermost groups,
 * T = sum over inner levels of 2 (alpha + (k - 1) gap) + ceil(log2 h) alpha on
 * the outermost.  Best on several hosts: only h log2(h) messages go between them.
 *
 *   p = 5, hosts 0 1 2 and 3 4
 *     up: 1->0 2->0 4->3      across: 0->3 3->0      down: 0->1 0->2 3->4
 *
 * The token is one byte, combined by max.
 *
 * Source: Mellor-Crummey and Scott, ACM Trans. Comput. Syst. 9(1), 1991 (trees
 * that follow the machine); dissemination as in barrier_dissemination.c.
 */
#include "lib/algo/levels.h"

static struct coll__span token(int i)
{
    return (struct coll__span){BUF_TMP, (size_t)i, 1};
}

static void report(const struct coll__problem *pb, struct coll__plan *plan,
                   const struct coll__team *in)
{
    struct coll__span out = coll__whole(pb, BUF_OUT);

    if (in->me > 0)
        plan_send(plan, in->ranks[0], out);
    for (int i = 1; i < in->n && in->me == 0; i++) {
        plan_recv(plan, in->ranks[i], token(i));
        plan_reduce(plan, out, token(i));
    }
}

static void release(const struct coll__problem *pb, struct coll__plan *plan,
                    const struct coll__team *in)
{
    struct coll__span out = coll__whole(pb, BUF_OUT);

    if (in->me > 0)
        plan_recv(plan, in->ranks[0], out);
    for (int i = 1; i < in->n && in->me == 0; i++)
        plan_send(plan, in->ranks[i], out);
}

static void disseminate(const struct coll__problem *pb, struct coll__plan *plan,
                        const struct coll__team *in)
{
    struct coll__span out = coll__whole(pb, BUF_OUT);

    for (int d = 1; d < in->n; d *= 2) {
        plan_send(plan, in->ranks[(in->me + d) % in->n], out);
        plan_recv(plan, in->ranks[(in->me - d + in->n) % in->n], token(0));
        plan_reduce(plan, out, token(0));
    }
}

/* Write the steps of this level; the levels above come in the middle. */
static void climb(const struct coll__problem *pb, struct coll__plan *plan,
                  int level)
{
    struct coll__team in;

    if (!coll__leads(pb->view, level, pb->rank, COLL__NO_ROOT) ||
        coll__team_of_leaders(&in, plan, pb, level, COLL__NO_ROOT))
        return;
    if (level == pb->view->n_levels - 1) {
        disseminate(pb, plan, &in);
    } else {
        report(pb, plan, &in);
        climb(pb, plan, level + 1);
        release(pb, plan, &in);
    }
    coll__team_fini(&in);
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    plan_copy(plan, coll__whole(pb, BUF_OUT), coll__own_in(pb));
    climb(pb, plan, 0);
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    int top = view->n_levels - 1, n = view->levels[top - 1].n_groups;
    struct coll__view inner;
    double time = 0;

    for (int l = 0; l < top; l++) {
        int k = coll__level_fan(view, l).most;

        coll__level_view(&inner, view, l, k);
        time += 2 * coll__cost_fan(&inner, k - 1, k - 1, 1);
    }
    coll__level_view(&inner, view, top, n);
    return time + log2_up(n) * coll__cost_message(&inner, 1, 1);
}

const struct coll__algo coll__algo_barrier_hierarchical = {
    .name = "hierarchical",
    .what = "report inside each group, disseminate among the leaders",
    .serves = COLL_FOR(BARRIER),
    .build = build,
    .cost = cost,
    .refuses = coll__needs_groups,
};
