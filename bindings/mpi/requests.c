/* SPDX-License-Identifier: BSD-3-Clause */
/* requests.c - carried calls that do not block.
 *
 * The program gets a generalized request of MPI, so that it can wait for carried calls
 * and for MPI's own in one list.  Whoever waits or tests (waits.c) looks at all carried
 * calls, and completes the requests of those that have ended.  Between those calls
 * libcoll's thread moves them.
 *
 * Calls with an operation of MPI_Op_create() are left to MPI, since that thread would
 * call the program's function while the program computes.
 */
#include "bindings/mpi/requests.h"

#include <stdlib.h>
#include <string.h>

atomic_int requests_running;

static struct map requests = MAP_INIT;
static struct request *running, **running_end = &running;

/* Held while any request is started, looked at or completed; so two threads are never in
 * one communicator of libcoll. */
static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int is_forbidden; /* COLL_PROGRESS=off: no thread would move the calls */

static void init(void)
{
    const char *progress = getenv("COLL_PROGRESS");
    pthread_mutexattr_t attr;

    is_forbidden = progress && !strcmp(progress, "off");
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

void requests_enter(void)
{
    pthread_once(&once, init);
    pthread_mutex_lock(&lock);
}

void requests_leave(void) { pthread_mutex_unlock(&lock); }

int call_may_start(struct call *call)
{
    pthread_once(&once, init);
    if (!call->is_user_op && !is_forbidden)
        return 1;
    call_free(call);
    return call_leave(call->args.collective, LEFT_FORM);
}

/* ---- the list ------------------------------------------------------------- */

struct request *request_find(MPI_Request handle)
{
    return map_get(&requests, (uintptr_t)handle);
}

int request_name(struct request *r, MPI_Request handle)
{
    r->handle = handle;
    r->has_handle = 1;
    return map_put(&requests, (uintptr_t)handle, r) ? MPI_ERR_NO_MEM
                                                    : MPI_SUCCESS;
}

void request_forget(struct request *r)
{
    map_take(&requests, (uintptr_t)r->handle);
    free(r);
}

static void append(struct request *r)
{
    r->next = NULL;
    r->at = running_end;
    *running_end = r;
    running_end = &r->next;
    atomic_fetch_add(&r->call.comm->n_pending, 1);
    atomic_fetch_add(&requests_running, 1);
    comm_use(r->call.comm);
}

static void take_out(struct request *r)
{
    *r->at = r->next;
    if (r->next)
        r->next->at = r->at;
    else
        running_end = r->at;
    atomic_fetch_sub(&requests_running, 1);
    atomic_fetch_sub(&r->call.comm->n_pending, 1);
    comm_release(r->call.comm);
}

/* ---- what MPI asks of a generalized request ------------------------------- */

static int query(void *arg, MPI_Status *status)
{
    struct request *r = arg;

    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return r->error;
}

static int discard(void *arg)
{
    request_forget(arg);
    return MPI_SUCCESS;
}

/* A collective cannot be cancelled. */
static int cancel(void *arg, int is_complete)
{
    (void)arg;
    (void)is_complete;
    return MPI_SUCCESS;
}

/* ---- a request's life ----------------------------------------------------- */

/* The call has ended with this status. */
static void complete(struct request *r, int status)
{
    r->error = status ? status_code(status) : call_unpack(&r->call);
    if (r->is_persistent) {
        take_out(r);
        persistent_ended(r);
        return;
    }
    call_free(&r->call);
    coll_request_destroy(r->coll);
    take_out(r);
    atomic_store(&r->is_done, 1);
    if (r->has_handle)
        PMPI_Grequest_complete(r->handle); /* which may free r */
}

int request_prepare(struct request *r)
{
    if (r->call.is_short || call_keep(&r->call))
        return COLL_ERR_NOMEM;
    r->call.args.background = 1;
    return coll_request_create(&r->call.args, r->call.comm->coll, &r->coll);
}

/* Give it a handle of MPI.  Returns MPI's error code. */
static int name(struct request *r, MPI_Request *handle)
{
    int rc = PMPI_Grequest_start(query, discard, cancel, r, handle);

    return rc ? rc : request_name(r, *handle);
}

int request_launch(struct request *r)
{
    int rc = call_pack(&r->call), status;

    if (rc)
        return rc;
    append(r);
    report_carried(r->call.args.collective);
    status = coll_start(r->coll);
    if (status)
        complete(r, status);
    return MPI_SUCCESS;
}

static int start(struct request *r, MPI_Request *handle)
{
    int status = request_prepare(r), rc;

    if (status) {
        rc = comm_error(r->call.comm->handle, status);
        call_free(&r->call);
        free(r);
        return rc;
    }
    rc = handle ? name(r, handle) : MPI_SUCCESS;
    if (rc == MPI_SUCCESS)
        rc = request_launch(r);
    if (rc) {
        coll_request_destroy(r->coll);
        call_free(&r->call);
        free(r);
    }
    return rc;
}

struct request *request_new(struct call *call)
{
    struct request *r = calloc(1, sizeof(*r));

    if (r)
        r->call = *call;
    else
        call_free(call);
    return r;
}

int call_start(struct call *call, MPI_Request *handle)
{
    struct request *r = request_new(call);
    int rc;

    *handle = MPI_REQUEST_NULL;
    if (!r)
        return comm_error(call->comm->handle, COLL_ERR_NOMEM);
    requests_enter();
    rc = start(r, handle);
    requests_leave();
    return rc;
}

int call_run_beside(struct call *call)
{
    struct request *r = request_new(call);
    struct pause pause = {0};
    MPI_Comm comm = call->comm->handle;
    int rc;

    if (!r)
        return comm_error(comm, COLL_ERR_NOMEM);
    requests_enter();
    rc = start(r, NULL);
    requests_leave();
    if (rc)
        return rc;
    while (!atomic_load(&r->is_done)) {
        requests_look();
        mpi_progress(NULL);
        pause_more(&pause);
    }
    rc = r->error;
    free(r);
    if (rc)
        PMPI_Comm_call_errhandler(comm, rc);
    return rc;
}

/* ---- looking -------------------------------------------------------------- */

void requests_look(void)
{
    struct request *r, *next;

    requests_enter();
    for (r = running; r; r = next) {
        int status = coll_test(r->coll);

        next = r->next;
        if (status != COLL_IN_PROGRESS)
            complete(r, status);
    }
    requests_leave();
}

void request_settle(MPI_Request handle)
{
    struct request *r = map_get(&requests, (uintptr_t)handle);
    struct pause pause = {0};

    if (!r)
        return;
    if (!comms.is_threaded && !atomic_load(&r->is_done)) {
        complete(r, coll_wait(r->coll, 0)); /* MPI moves meanwhile: idle */
        return;
    }
    while (!atomic_load(&r->is_done)) {
        requests_look();
        mpi_progress(NULL);
        pause_more(&pause);
    }
}
