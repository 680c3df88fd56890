/* SPDX-License-Identifier: BSD-3-Clause */
/* carry.c - the host's part in operations of streams; see carry.h.
 *
 * While the transport has something to carry, the communicator counts one batch more that
 * is under way, so that the progress thread looks; while there are graphs, which may be
 * launched at any time, one captured operation more.  The owner alone changes both.
 */
#include "lib/stream/carry.h"
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/exec/sleep.h"
#include "lib/run/owner.h"
#include "lib/run/run.h"
#include "lib/stream/calls.h"
#include "transports/stream.h"

static int is_carrier(const struct coll__stream_tp *tp)
{
    return tp && tp->is_carrier;
}

static void count(struct coll_comm *comm, int is_under_way)
{
    struct coll__carry *carry = &comm->stream->carry;
    int change = is_under_way - carry->is_under_way;

    carry->is_under_way = is_under_way;
    comm->run->n_streaming += change;
    if (change)
        atomic_fetch_add_explicit(&coll__n_streaming, change,
                                  memory_order_relaxed);
}

static void count_graphs(struct coll_comm *comm, int has_graphs)
{
    struct coll__carry *carry = &comm->stream->carry;

    comm->run->n_captured += has_graphs - carry->has_graphs;
    carry->has_graphs = has_graphs;
}

static int has_hosts_steps(const struct coll__stream_call *call)
{
    return call->op.fn || call->pb.is_hosts_op;
}

/* The transport's is_carrier is changed here alone, with ownership; so the caller may
 * read it without. */
int coll__carry_enter(struct coll_comm *comm, const struct coll__batch *batch)
{
    struct coll__carry *carry = &comm->stream->carry;
    struct coll__stream_tp *tp = comm->links.routes.streams;
    int rc;

    if (!is_carrier(tp) && !(tp && has_hosts_steps(&batch->calls[0])))
        return COLL_OK;
    coll__owner_acquire(comm);
    tp->is_carrier = 1;
    rc = coll__comm_status(comm);
    if (rc == COLL_OK) {
        atomic_fetch_add(&carry->n_entering, 1);
        count(comm, 1);
    }
    coll__owner_release(comm);
    coll__sleep_news();
    return rc;
}

void coll__carry_leave(struct coll_comm *comm)
{
    if (is_carrier(comm->links.routes.streams))
        atomic_fetch_sub(&comm->stream->carry.n_entering, 1);
}

static int failed(struct coll_comm *comm, const struct coll__xfer *fault,
                  int status)
{
    return coll__comm_run_failed(comm, fault ? &fault->sig : NULL, fault,
                                 status)
               ? coll__run_quiesce(comm)
               : COLL_OK;
}

/* n_entering is read first: a batch that has left it has begun its run, so the transport
 * is not idle before that run is carried. */
int coll__carry_move(struct coll_comm *comm, int *moved)
{
    struct coll__stream_tp *tp = comm->links.routes.streams;
    int is_entered = atomic_load(&comm->stream->carry.n_entering) == 0;
    struct coll__moved now;
    int status;

    if (!is_carrier(tp) || comm->stream->carry.is_over)
        return COLL_OK;
    status = tp->ops->move(tp, &now);
    *moved |= now.is_any;
    if (status)
        return failed(comm, now.fault, status);
    count_graphs(comm, now.has_graphs);
    count(comm, !(is_entered && now.is_idle));
    return COLL_OK;
}

void coll__carry_drain(struct coll_comm *comm)
{
    if (is_carrier(comm->links.routes.streams) &&
        (comm->run->has_more & RUN_HAS_STREAMS))
        count(comm, 1);
}

/* The failure is noted before streams are let go, also if another thread has yet to do so:
 * the host makes no lane after this that keeps a stream waiting. */
static void let_go(struct coll_comm *comm)
{
    struct coll__stream_tp *tp = comm->links.routes.streams;
    int status =
        atomic_load_explicit(&comm->failure.status, memory_order_acquire);

    if (!tp || !tp->ops->let_go || !status)
        return;
    tp->ops->release(tp, status);
    tp->ops->let_go(tp);
}

void coll__carry_release(struct coll_comm *comm)
{
    let_go(comm);
    count(comm, 0);
    count_graphs(comm, 0);
    comm->stream->carry.is_over = 1;
}
