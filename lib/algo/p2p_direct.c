/* SPDX-License-Identifier: BSD-3-Clause */
/* A message from one rank to another: one step at either end.
 *
 * T = alpha + n beta; the only algorithm of send and recv.  The message is not cut,
 * however long it is: no later step could start on a piece of it.  A message to the
 * rank itself is a send and a receive whose peer is this rank.
 *
 *   p = 3, rank 2 sends to rank 0
 *     0: recv peer 2        1: takes no part        2: send peer 0
 */
#include "lib/algo/algo.h"

#include <stdlib.h>

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    if (pb->collective == COLL_SEND)
        plan_send(plan, pb->root, coll__whole(pb, BUF_IN));
    else
        plan_recv(plan, pb->root, coll__whole(pb, BUF_OUT));
    return plan_status(plan);
}

static double cost(const struct coll__problem *pb)
{
    return coll__cost_message(pb->view, abs(pb->rank - pb->root),
                              (double)coll__problem_bytes(pb));
}

const struct coll__algo coll__algo_p2p_direct = {
    .name = "direct",
    .what = "one message",
    .serves = COLL_FOR(SEND) | COLL_FOR(RECV),
    .goes_whole = 1,
    .build = build,
    .cost = cost,
};
