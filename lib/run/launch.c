/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.c - requests of the caller: started, tested and waited for without owning the
 * communicator. */
#include "lib/comm/comm.h"
#include "lib/run/owner.h"
#include "lib/run/request.h"
#include "lib/run/stream_calls.h"
#include "lib/run/tagged.h"
#include "lib/trace/log.h"

#define BYTES_LEFT (256 << 10) /* from here on, the progress thread starts it */
#define TESTS_IDLE 0xfffu /* between two looks at the clock in coll_test() */

int coll__request_result(const struct coll_request *request)
{
    int status = coll__request_status(request);

    if (status == COLL_ERR_TRUNCATED)
        coll__tagged_say(request);
    else if (status < 0 && coll__comm_has_failed(request->call.comm))
        coll__log_set_error(request->call.comm->failure.text);
    return status;
}

/* Should the progress thread start the request?  Large messages through shared memory
 * are copied as they start, which takes longer than waking the thread. */
static int is_for_thread(const struct coll_request *request)
{
    return request->in_len + request->out_len >= BYTES_LEFT &&
           coll__comm_has_thread_apart(request->call.comm);
}

/* Have others start it. */
static int leave(struct coll_request *request, int is_for_thread)
{
    atomic_store_explicit(&request->status, COLL_IN_PROGRESS,
                          memory_order_release);
    coll__submit(request, is_for_thread);
    return COLL_OK;
}

int coll__request_launch(struct coll_request *request)
{
    struct coll_comm *comm = request->call.comm;
    int rc, moved;

    if (request->kind == REQUEST_STREAM)
        return coll__stream_calls->start(request);
    if (is_for_thread(request))
        return leave(request, 1);
    if (!coll__owner_try(comm)) /* another thread moves it */
        return leave(request, 0);
    coll__submitted_start(comm->run);
    rc = coll__request_start_any(request);
    if (rc == COLL_OK && comm->size == 1) /* it has no progress thread */
        coll__run_progress(comm, &moved);
    coll__owner_release(comm);
    return rc;
}

/* One round of progress for coll_test().  Many rounds without effect are a wait, so
 * they are checked for a stall. */
static void test_once(struct coll_request *request)
{
    struct coll_comm *comm = request->call.comm;
    int moved;

    if (coll__run_progress(comm, &moved))
        return;
    if (moved)
        comm->run->n_tests_idle = 0;
    else if ((++comm->run->n_tests_idle & TESTS_IDLE) == 0)
        coll__request_check_stall(request, comm->timeout, 0);
}

int coll__request_test(struct coll_request *request)
{
    struct coll_comm *comm = request->call.comm;

    coll__active_move();
    if (request->kind == REQUEST_STREAM) {
        coll__stream_calls->look(request);
    } else if (coll__request_status(request) == COLL_IN_PROGRESS &&
               coll__owner_try(comm)) { /* else another thread moves it */
        coll__submitted_start(comm->run);
        test_once(request);
        coll__owner_release(comm);
    }
    return coll__request_result(request);
}

int coll__request_finish(struct coll_request *request, double timeout)
{
    struct coll_comm *comm = request->call.comm;

    if (request->kind == REQUEST_STREAM) {
        coll__stream_calls->wait(request, timeout);
    } else if (coll__request_status(request) == COLL_IN_PROGRESS) {
        coll__owner_acquire(comm);
        coll__request_wait(request, timeout);
        coll__owner_release(comm);
    }
    return coll__request_result(request);
}
