/* SPDX-License-Identifier: BSD-3-Clause */
/* enroll.c - GPU memory that a communicator's ranks read from each other in place.
 *
 * First all enqueued operations end.  The driver may wait for the streams while it maps
 * and unmaps memory, so the streams must not wait for other ranks then.
 */
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/comm/links.h"
#include "lib/ctrl/ctrl.h"
#include "lib/run/owner.h"
#include "lib/stream/calls.h"
#include "lib/trace/log.h"
#include "transports/stream.h"

static int drain(struct coll_comm *comm, const char *who)
{
    int rc = coll__owner_enter(comm, who);

    if (rc)
        return rc;
    rc = coll__comm_status(comm);
    if (rc == COLL_OK)
        rc = coll__stream_drain(comm);
    coll__owner_release(comm);
    return rc;
}

/* Not as owner, so that others carry what is to be carried. */
static int exchange(struct coll_comm *comm, const char *who, void *ptr,
                    size_t bytes, int is_new)
{
    struct coll__stream_tp *tp = comm->links.routes.streams;
    struct coll__tp_env env = coll__comm_env(comm);
    int rc;

    atomic_store_explicit(&comm->calls.apart, who, memory_order_release);
    rc = is_new ? tp->ops->enroll(tp, &env, ptr, bytes)
                : tp->ops->dismiss(tp, &env, ptr);
    atomic_store_explicit(&comm->calls.apart, NULL, memory_order_release);
    if (rc && coll__ctrl_status(comm->ctrl) != COLL_OK)
        coll__comm_fail(comm, rc, "%s", coll_last_error());
    return rc;
}

int coll__stream_enroll(struct coll_comm *comm, const char *who, void *ptr,
                        size_t bytes, int is_new)
{
    int rc = drain(comm, who);

    if (rc)
        return rc;
    if (comm->links.routes.streams && !comm->stream->is_plain &&
        !comm->links.routes.streams->n_carried)
        return exchange(comm, who, ptr, bytes, is_new);
    log_info("api",
             "%s: nothing to do, not all ranks read each other's GPUs (%s)",
             who, comm->stream->no_streams);
    return COLL_OK;
}
