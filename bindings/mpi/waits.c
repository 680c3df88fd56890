/* SPDX-License-Identifier: BSD-3-Clause */
/* waits.c - MPI_Wait(), MPI_Test() and their kin, which move carried calls and MPI's own.
 *
 * While no carried call runs, each is MPI's function.  A wait for carried calls is
 * libcoll's wait, during which MPI's messages move; other waits look at both in turns.
 */
#include "bindings/mpi/requests.h"

#include <sched.h>
#include <unistd.h>

#define N_BUSY 100    /* looks before the first yield */
#define N_YIELDS 2000 /* yields before the first sleep */
#define NAP 50        /* us */

void pause_more(struct pause *pause)
{
    if (++pause->n > N_BUSY + N_YIELDS)
        usleep(NAP);
    else if (pause->n > N_BUSY)
        sched_yield();
}

static int any_runs(void)
{
    return atomic_load_explicit(&requests_running, memory_order_relaxed) != 0;
}

/* Look at the carried calls, before MPI looks at its own. */
static void look(void)
{
    if (any_runs())
        requests_look();
}

/* ---- tests ---------------------------------------------------------------- */

MPI_PRELOAD_API int MPI_Test(MPI_Request *request, int *flag,
                             MPI_Status *status)
{
    look();
    return PMPI_Test(request, flag, status);
}

MPI_PRELOAD_API int MPI_Testall(int n, MPI_Request requests[], int *flag,
                                MPI_Status statuses[])
{
    look();
    return PMPI_Testall(n, requests, flag, statuses);
}

MPI_PRELOAD_API int MPI_Testany(int n, MPI_Request requests[], int *index,
                                int *flag, MPI_Status *status)
{
    look();
    return PMPI_Testany(n, requests, index, flag, status);
}

MPI_PRELOAD_API int MPI_Testsome(int n, MPI_Request requests[], int *n_out,
                                 int indices[], MPI_Status statuses[])
{
    look();
    return PMPI_Testsome(n, requests, n_out, indices, statuses);
}

MPI_PRELOAD_API int MPI_Request_get_status(MPI_Request request, int *flag,
                                           MPI_Status *status)
{
    look();
    return PMPI_Request_get_status(request, flag, status);
}

/* ---- waits ---------------------------------------------------------------- */

MPI_PRELOAD_API int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct pause pause = {0};
    int rc, flag;

    if (any_runs())
        request_settle(*request);
    while (any_runs()) {
        requests_look();
        rc = PMPI_Test(request, &flag, status);
        if (rc || flag)
            return rc;
        pause_more(&pause);
    }
    return PMPI_Wait(request, status);
}

MPI_PRELOAD_API int MPI_Waitall(int n, MPI_Request requests[],
                                MPI_Status statuses[])
{
    struct pause pause = {0};
    int rc, flag;

    for (int i = 0; i < n && any_runs(); i++)
        request_settle(requests[i]);
    while (any_runs()) {
        requests_look();
        rc = PMPI_Testall(n, requests, &flag, statuses);
        if (rc || flag)
            return rc;
        pause_more(&pause);
    }
    return PMPI_Waitall(n, requests, statuses);
}

MPI_PRELOAD_API int MPI_Waitany(int n, MPI_Request requests[], int *index,
                                MPI_Status *status)
{
    struct pause pause = {0};
    int rc, flag;

    while (any_runs()) {
        requests_look();
        rc = PMPI_Testany(n, requests, index, &flag, status);
        if (rc || flag)
            return rc;
        pause_more(&pause);
    }
    return PMPI_Waitany(n, requests, index, status);
}

MPI_PRELOAD_API int MPI_Waitsome(int n, MPI_Request requests[], int *n_out,
                                 int indices[], MPI_Status statuses[])
{
    struct pause pause = {0};
    int rc;

    while (any_runs()) {
        requests_look();
        rc = PMPI_Testsome(n, requests, n_out, indices, statuses);
        if (rc || *n_out)
            return rc;
        pause_more(&pause);
    }
    return PMPI_Waitsome(n, requests, n_out, indices, statuses);
}

/* MPI ends the communicator when its calls have ended; carried calls are not MPI's. */
MPI_PRELOAD_API int MPI_Comm_disconnect(MPI_Comm *handle)
{
    struct comm *comm = handle ? comm_find(*handle) : NULL;
    struct pause pause = {0};

    while (comm && atomic_load(&comm->n_pending)) {
        requests_look();
        mpi_progress(NULL);
        pause_more(&pause);
    }
    return PMPI_Comm_disconnect(handle);
}
