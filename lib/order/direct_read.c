/* SPDX-License-Identifier: BSD-3-Clause */
/* direct_read.c - which messages receivers may read directly from the sender's buffer.
 *
 * In a linked plan, the steps that wait for a send are those that write to its bytes
 * (edges.c: a step that only reads has no other conflicts).  If no step waits for a
 * send, its bytes do not change until the run ends, and the receiver may read them at
 * any time, if the sender's run does not end earlier.  No step waits for more than
 * before, so plans that finish with slots still finish.
 *
 * A receiver finds where its messages are from the plans of their senders; their
 * buffers have the same layout as its own.
 */
#include "lib/order/order.h"
#include "lib/trace/log.h"

#include <stdlib.h>

unsigned coll__problem_readable(const struct coll__problem *pb)
{
    unsigned in = 1u << BUF_IN, out = 1u << BUF_OUT;

    switch (pb->collective) {
    case COLL_ALLREDUCE:
    case COLL_ALLTOALL:
        return in | out;
    case COLL_ALLGATHER: /* in place, each rank's part is at another place in out */
        return pb->in_place ? out : in | out;
    case COLL_REDUCE_SCATTER: /* likewise in in */
        return in;
    case COLL_BROADCAST: /* see coll__problem_read_direct() */
        return out;
    default: /* some ranks lack a buffer, or each rank has its own displs */
        return 0;
    }
}

struct coll__problem coll__problem_read_direct(const struct coll__problem *pb,
                                               unsigned direct)
{
    struct coll__problem as = *pb;

    if (pb->collective == COLL_BROADCAST && direct & 1u << BUF_OUT)
        as.in_place = 1;
    return as;
}

static int may_read(const struct coll__plan *plan, int i, unsigned bufs)
{
    return bufs & 1u << plan->steps[i].src.buf &&
           plan->first_after[i] == plan->first_after[i + 1];
}

static void find_sends(const struct coll__plan *plan, unsigned bufs,
                       struct coll__span *direct)
{
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_SEND && may_read(plan, i, bufs))
            direct[i] = plan->steps[i].src;
}

/* Return the next send to `rank`, from step i on. */
static int next_send(const struct coll__plan *plan, int i, int rank)
{
    while (i < plan->n_steps &&
           (plan->steps[i].kind != STEP_SEND || plan->steps[i].peer != rank))
        i++;
    return i;
}

/* What coll__plan_direct_reads() was asked. */
struct search {
    const struct coll__direct *of;
    const struct coll__plan *plan;
    unsigned bufs;             /* those of of->bufs that are readable */
    struct coll__span *direct; /* [n_steps], the answer so far */
};

/* Find the messages from `peer`, whose plan is `theirs`; sends and receives match in
 * order. */
static int find_received(const struct search *s, int peer,
                         const struct coll__plan *theirs)
{
    int at = -1;

    for (int i = 0; i < s->plan->n_steps; i++) {
        const struct coll__step *step = &s->plan->steps[i];

        if (!coll__step_is_recv(step->kind) || step->peer != peer)
            continue;
        at = next_send(theirs, at + 1, s->of->pb->rank);
        if (at == theirs->n_steps ||
            theirs->steps[at].src.len != step->dst.len) {
            log_error("plan", "rank %d does not send what rank %d receives",
                      peer, s->of->pb->rank);
            return COLL_ERR_INTERNAL;
        }
        if (may_read(theirs, at, s->bufs))
            s->direct[i] = theirs->steps[at].src;
    }
    return COLL_OK;
}

static int receives_from(const struct coll__plan *plan, int peer)
{
    for (int i = 0; i < plan->n_steps; i++)
        if (coll__step_is_recv(plan->steps[i].kind) &&
            plan->steps[i].peer == peer)
            return 1;
    return 0;
}

static int find_from(const struct search *s, int peer)
{
    struct coll__problem its = coll__problem_of(s->of->pb, peer);
    struct coll__plan theirs;
    int rc = coll__plan_build_fit(s->of->algo, &its, s->of->slots, &theirs);

    if (rc)
        return rc;
    rc = find_received(s, peer, &theirs);
    coll__plan_fini(&theirs);
    return rc;
}

int coll__plan_direct_reads(const struct coll__direct *of,
                            const struct coll__plan *plan,
                            struct coll__span **out)
{
    struct search s = {
        of, plan, of->bufs & coll__problem_readable(of->pb),
        calloc((size_t)plan->n_steps + 1, sizeof(struct coll__span))};
    int rc = COLL_OK;

    if (!s.direct) {
        log_error("plan", "no memory for a plan of %d steps", plan->n_steps);
        return COLL_ERR_NOMEM;
    }
    find_sends(plan, s.bufs, s.direct);
    for (int r = 0; r < of->pb->nranks && rc == COLL_OK && s.bufs; r++)
        if (r != of->pb->rank && receives_from(plan, r))
            rc = find_from(&s, r);
    if (rc)
        free(s.direct);
    else
        *out = s.direct;
    return rc;
}
