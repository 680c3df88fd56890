/* SPDX-License-Identifier: BSD-3-Clause */
/* register.c - GPU memory that a communicator's ranks read from each other in place.
 *
 * What streams have been given comes to its end before: the driver may wait for them
 * while it maps and unmaps, and for the other ranks they must not wait then.
 */
#include "lib/comm/comm.h"
#include "lib/run/owner.h"
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

/* Not as owner: what passes through the host goes on. */
static int exchange(struct coll_comm *comm, const char *who, void *ptr,
                    size_t bytes, int is_new)
{
    struct coll__stream_tp *tp = comm->routes.streams;
    struct coll__tp_env env = coll__comm_env(comm);
    int rc;

    atomic_store_explicit(&comm->apart, who, memory_order_release);
    rc = is_new ? tp->ops->enroll(tp, &env, ptr, bytes)
                : tp->ops->dismiss(tp, &env, ptr);
    atomic_store_explicit(&comm->apart, NULL, memory_order_release);
    if (rc && coll__ctrl_status(comm->ctrl) != COLL_OK)
        coll__comm_fail(comm, rc, "%s", coll_last_error());
    return rc;
}

static int change(struct coll_comm *comm, const char *who, void *ptr,
                  size_t bytes, int is_new)
{
    int rc;

    if (!comm) {
        log_error("api", "%s: comm is NULL", who);
        return COLL_ERR_INVALID;
    }
    if (coll__comm_is_inherited(comm))
        return coll__comm_inherited(who);
    rc = drain(comm, who);
    if (rc)
        return rc;
    if (comm->routes.streams)
        return exchange(comm, who, ptr, bytes, is_new);
    log_info("api", "%s: nothing to do, GPU buffers pass through the host (%s)",
             who, comm->no_streams);
    return COLL_OK;
}

int coll_mem_register(struct coll_comm *comm, void *ptr, size_t bytes)
{
    return coll__log_done(change(comm, "coll_mem_register", ptr, bytes, 1));
}

int coll_mem_deregister(struct coll_comm *comm, void *ptr)
{
    return coll__log_done(change(comm, "coll_mem_deregister", ptr, 0, 0));
}
