/* SPDX-License-Identifier: BSD-3-Clause */
/* requests.c - operations that the caller starts and waits for. */
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/run/args.h"
#include "lib/run/notice.h"
#include "lib/run/owner.h"
#include "lib/run/request.h"
#include "lib/run/stream_calls.h"
#include "lib/trace/log.h"

static int have_notice(const struct coll_args *args)
{
    int fd;

    return args->notify == 1 ? coll__notice_fd(&fd)
                             : coll__args_wrong(args, "notify must be 0 or 1");
}

static int create(const struct coll_args *theirs, struct coll_comm *comm,
                  struct coll_request **request)
{
    struct coll_args args;
    int rc;

    if (!theirs || !comm || !request) {
        log_error("api", "coll_request_create: %s is NULL",
                  !theirs ? "args"
                  : !comm ? "comm"
                          : "request");
        return COLL_ERR_INVALID;
    }
    if (coll__comm_is_inherited(comm))
        return coll__comm_inherited("coll_request_create");
    rc = coll__struct_take(theirs, &args, sizeof(args), "args");
    if (rc == COLL_OK && args.notify)
        rc = have_notice(&args);
    if (rc == COLL_OK)
        rc = coll__owner_enter(comm, "coll_request_create");
    if (rc)
        return rc;
    rc = coll__request_create(comm, &args, request);
    coll__owner_release(comm);
    if (rc == COLL_OK && args.background)
        coll__comm_take_thread(comm);
    return rc;
}

int coll_request_create(const struct coll_args *theirs, struct coll_comm *comm,
                        struct coll_request **request)
{
    return coll__log_done(create(theirs, comm, request));
}

static int destroy(struct coll_request *request)
{
    struct coll_comm *comm = request ? request->call.comm : NULL;
    int rc;

    if (!request)
        return COLL_OK;
    if (coll__comm_is_inherited(comm)) {
        coll__request_abandon(request);
        return COLL_OK;
    }
    rc = coll__owner_enter(comm, "coll_request_destroy");
    if (rc)
        return rc;
    rc = coll__request_destroy(request);
    coll__owner_release(comm);
    return rc;
}

int coll_request_destroy(struct coll_request *request)
{
    return coll__log_done(destroy(request));
}

/* May the function `who` be called for the request?  COLL_OK, or COLL_ERR_INVALID,
 * logged. */
static int judge(const struct coll_request *request, const char *who)
{
    if (!request) {
        log_error("api", "%s: request is NULL", who);
        return COLL_ERR_INVALID;
    }
    if (coll__comm_is_inherited(request->call.comm))
        return coll__comm_inherited(who);
    return COLL_OK;
}

static int start(struct coll_request *request)
{
    int rc = judge(request, "coll_start");

    if (rc == COLL_OK)
        rc = coll__owner_refuses(request->call.comm->run, "coll_start");
    if (rc)
        return rc;
    if (request->kind != REQUEST_STREAM &&
        coll__request_status(request) == COLL_IN_PROGRESS) {
        log_error("api", "coll_start: the request already runs; wait for it "
                         "first");
        return COLL_ERR_INVALID;
    }
    return coll__request_launch(request);
}

int coll_start(struct coll_request *request)
{
    return coll__log_done(start(request));
}

static int test(struct coll_request *request)
{
    int rc = judge(request, "coll_test");

    if (rc == COLL_OK)
        rc = coll__owner_refuses(request->call.comm->run, "coll_test");
    return rc ? rc : coll__request_test(request);
}

int coll_test(struct coll_request *request)
{
    return coll__log_done(test(request));
}

static int wait_for(struct coll_request *request, double timeout)
{
    int rc = judge(request, "coll_wait");

    if (rc)
        return rc;
    if (!(timeout >= 0 && timeout <= 1e9)) {
        log_error("api", "coll_wait: timeout must be 0 to 1e9 seconds");
        return COLL_ERR_INVALID;
    }
    if (coll__request_status(request) == COLL_IN_PROGRESS)
        rc = coll__owner_refuses(request->call.comm->run, "coll_wait");
    if (rc)
        return rc;
    return coll__request_finish(request, timeout ? timeout
                                                 : request->call.comm->timeout);
}

int coll_wait(struct coll_request *request, double timeout)
{
    return coll__log_done(wait_for(request, timeout));
}

static int status_of(const struct coll_request *request)
{
    int rc = judge(request, "coll_request_status");

    return rc ? rc : coll__request_result(request);
}

int coll_request_status(const struct coll_request *request)
{
    return coll__log_done(status_of(request));
}

int coll_progress(void)
{
    coll__active_move_all();
    coll__log_done(COLL_OK);
    return atomic_load_explicit(&coll__n_active, memory_order_relaxed)
               ? COLL_IN_PROGRESS
               : COLL_OK;
}

static int completion_fd(int *fd)
{
    if (fd)
        return coll__notice_fd(fd);
    log_error("api", "coll_completion_fd: fd is NULL");
    return COLL_ERR_INVALID;
}

int coll_completion_fd(int *fd) { return coll__log_done(completion_fd(fd)); }
