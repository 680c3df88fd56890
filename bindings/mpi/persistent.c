/* SPDX-License-Identifier: BSD-3-Clause */
/* persistent.c - carried calls that are prepared once and started often.
 *
 * Ranks may start persistent requests in different orders, so libcoll's requests have
 * any_order.
 *
 * MPI has no persistent generalized requests.  The program gets a persistent receive of
 * this process from itself, which MPI_Start() starts beside the call; when the call ends,
 * an empty message completes the receive.
 */
#include "bindings/mpi/requests.h"

#include <stdlib.h>

#define N_TAGS 32767 /* what MPI_TAG_UB is at least; tag 0 is not for these */

static unsigned char is_taken[N_TAGS + 1];
static int last_tag;

/* A tag that no other persistent request has; 0: there is none. */
static int take_tag(void)
{
    for (int i = 0; i < N_TAGS; i++) {
        last_tag = last_tag % N_TAGS + 1;
        if (!is_taken[last_tag]) {
            is_taken[last_tag] = 1;
            return last_tag;
        }
    }
    return 0;
}

static void discard(struct request *r)
{
    struct comm *comm = r->call.comm;

    coll_request_destroy(r->coll);
    is_taken[r->tag] = 0;
    call_free(&r->call);
    request_forget(r);
    comm_release(comm);
}

/* Give it a handle. */
static int name(struct request *r, MPI_Request *handle)
{
    int rc;

    r->tag = take_tag();
    if (!r->tag)
        return MPI_ERR_NO_MEM;
    rc = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, r->tag, comms.self, handle);
    return rc ? rc : request_name(r, *handle);
}

static int persist(struct call *call, MPI_Request *handle)
{
    struct request *r = request_new(call);
    int status, rc;

    if (!r)
        return comm_error(call->comm->handle, COLL_ERR_NOMEM);
    comm_use(call->comm);
    r->is_persistent = 1;
    r->call.args.any_order = 1;
    atomic_store(&r->is_done, 1);
    status = request_prepare(r);
    rc = status ? comm_error(call->comm->handle, status) : name(r, handle);
    if (rc)
        discard(r);
    return rc;
}

int call_persist(struct call *call, MPI_Request *handle)
{
    int rc;

    *handle = MPI_REQUEST_NULL;
    requests_enter();
    rc = persist(call, handle);
    requests_leave();
    return rc;
}

void persistent_ended(struct request *r)
{
    MPI_Comm comm = r->call.comm->handle;
    int error = r->error;

    PMPI_Send(NULL, 0, MPI_BYTE, 0, r->tag, comms.self);
    atomic_store(&r->is_done, 1);
    if (error)
        PMPI_Comm_call_errhandler(comm, error);
}

/* ---- MPI_Start() and its kin ---------------------------------------------- */

MPI_PRELOAD_API int MPI_Start(MPI_Request *handle)
{
    struct request *r = request_find(*handle);
    int rc = PMPI_Start(handle);

    if (rc || !r)
        return rc;
    requests_enter();
    atomic_store(&r->is_done, 0);
    rc = request_launch(r);
    requests_leave();
    return rc;
}

MPI_PRELOAD_API int MPI_Startall(int n, MPI_Request handles[])
{
    int rc = MPI_SUCCESS;

    for (int i = 0; i < n && rc == MPI_SUCCESS; i++)
        rc = MPI_Start(&handles[i]);
    return rc;
}

MPI_PRELOAD_API int MPI_Request_free(MPI_Request *handle)
{
    struct request *r = request_find(*handle);

    if (r && r->is_persistent) {
        request_settle(*handle);
        requests_enter();
        discard(r);
        requests_leave();
    }
    return PMPI_Request_free(handle);
}
