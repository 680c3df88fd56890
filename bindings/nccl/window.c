/* SPDX-License-Identifier: BSD-3-Clause */
/* window.c - GPU memory of ncclMemAlloc(), and buffers that are registered.
 *
 * A symmetric window is registered with all ranks (coll_mem_register()), which then read
 * it in place.  A rank may end its window by itself, but coll_mem_deregister() waits for
 * all ranks.  So a window that was ended stays with the ranks until their next collective
 * or registration, which all of them call; its memory is freed then, too.
 *
 * Other windows, and buffers of ncclCommRegister(), which each rank calls by itself, are
 * known here only: they change nothing.
 */
#include "bindings/nccl/comm.h"
#include "bindings/nccl/result.h"

#include <stdlib.h>

/* For the windows of all communicators that have ended, among which ncclMemFree()
 * looks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ncclWindow *ended;

/* ---- registering ----------------------------------------------------------------- */

static ncclResult_t new_window(const char *who, struct ncclComm *comm, void *at,
                               struct ncclWindow **out)
{
    struct ncclWindow *window = calloc(1, sizeof(*window));

    if (!window)
        return nccl__wrong(ncclSystemError, "%s: no memory", who);
    window->at = at;
    window->comm = comm;
    window->next = comm->windows;
    comm->windows = window;
    *out = window;
    return ncclSuccess;
}

/* Take a window out of a list; 0 if it is not there. */
static int take(struct ncclWindow **list, const struct ncclWindow *window)
{
    while (*list && *list != window)
        list = &(*list)->next;
    if (!*list)
        return 0;
    *list = window->next;
    return 1;
}

static ncclResult_t check_buffer(const char *who, const struct ncclComm *comm,
                                 const void *buffer, size_t size)
{
    ncclResult_t result = nccl__comm_check(who, comm);

    if (result)
        return result;
    if (!buffer || !size)
        return nccl__wrong(ncclInvalidArgument, "%s: the buffer is %s", who,
                           buffer ? "empty" : "NULL");
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size,
                              void **handle)
{
    static const char who[] = "ncclCommRegister";
    struct ncclWindow *window = NULL;
    ncclResult_t result = check_buffer(who, comm, buffer, size);

    if (!result && !handle)
        result = nccl__wrong(ncclInvalidArgument, "%s: handle is NULL", who);
    if (!result)
        result = new_window(who, comm, buffer, &window);
    if (!result)
        *handle = window;
    return nccl__group_spoil(result);
}
NCCL__ALIAS(CommRegister);

/* What the GPUs cannot share is used as other memory. */
static ncclResult_t run_register(struct nccl__job *job)
{
    struct ncclWindow *window = job->window;
    ncclResult_t result = nccl__windows_end(job->owner);
    int rc;

    if (result)
        return result;
    rc = coll_mem_register(job->owner->coll, window->at, job->len);
    window->is_shared = rc == COLL_OK;
    return rc == COLL_ERR_UNSUPPORTED ? ncclSuccess : nccl__of_status(rc);
}

static ncclResult_t share(const char *who, struct ncclWindow *window,
                          size_t size)
{
    struct nccl__job *job;
    ncclResult_t result = nccl__job_new(who, window->comm, &job);

    if (result)
        return result;
    job->window = window;
    job->len = size;
    job->run = run_register;
    return nccl__job_do(job);
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size,
                                    ncclWindow_t *out, int flags)
{
    static const char who[] = "ncclCommWindowRegister";
    struct ncclWindow *window = NULL;
    ncclResult_t result = check_buffer(who, comm, buffer, size);

    if (!result && !out)
        result = nccl__wrong(ncclInvalidArgument, "%s: window is NULL", who);
    if (!result && (flags & ~NCCL_WIN_COLL_SYMMETRIC))
        result = nccl__wrong(ncclInvalidArgument,
                             "%s: the flags are 0x%x; "
                             "there is NCCL_WIN_COLL_SYMMETRIC alone",
                             who, (unsigned)flags);
    if (!result)
        result = new_window(who, comm, buffer, &window);
    if (result)
        return nccl__group_spoil(result);
    *out = window;
    if (flags & NCCL_WIN_COLL_SYMMETRIC)
        result = share(who, window, size);
    return nccl__group_spoil(result);
}
NCCL__ALIAS(CommWindowRegister);

/* ---- ending ------------------------------------------------------------------------ */

int nccl__windows_are_ending(const struct ncclComm *comm)
{
    return atomic_load(&comm->n_ending) > 0;
}

/* Take the window out that the communicator ended first. */
static struct ncclWindow *take_ended(const struct ncclComm *comm)
{
    struct ncclWindow *first = NULL;

    pthread_mutex_lock(&lock);
    for (struct ncclWindow *w = ended; w; w = w->next)
        if (w->comm == comm)
            first = w;
    if (first)
        take(&ended, first);
    pthread_mutex_unlock(&lock);
    return first;
}

ncclResult_t nccl__windows_end(struct ncclComm *comm)
{
    struct ncclWindow *window;
    int rc = COLL_OK;

    while (!rc && (window = take_ended(comm))) {
        rc = coll_mem_deregister(comm->coll, window->at);
        if (!rc && window->is_freed)
            rc = coll_mem_free(window->at);
        atomic_fetch_sub(&comm->n_ending, 1);
        free(window);
    }
    return nccl__of_status(rc);
}

static ncclResult_t run_end(struct nccl__job *job)
{
    return nccl__windows_end(job->owner);
}

ncclResult_t nccl__windows_job(struct ncclComm *comm, struct nccl__job **out)
{
    ncclResult_t result = nccl__job_new("ncclGroupEnd", comm, out);

    if (!result)
        (*out)->run = run_end;
    return result;
}

void nccl__windows_free(struct ncclComm *comm)
{
    struct ncclWindow *window;

    while ((window = take_ended(comm))) {
        if (window->is_freed)
            coll_mem_free(window->at);
        free(window);
    }
    while ((window = comm->windows)) {
        comm->windows = window->next;
        free(window);
    }
}

/* End what the program registered; the ranks' part of it comes later. */
static ncclResult_t end(const char *who, struct ncclComm *comm,
                        struct ncclWindow *window)
{
    ncclResult_t result = nccl__comm_is(who, comm);

    if (result)
        return result;
    if (!window || !take(&comm->windows, window))
        return nccl__wrong(ncclInvalidArgument,
                           "%s: nothing of this handle is registered", who);
    if (!window->is_shared || !comm->coll) {
        free(window);
        return ncclSuccess;
    }
    pthread_mutex_lock(&lock);
    window->next = ended;
    ended = window;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&comm->n_ending, 1);
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return nccl__group_spoil(end("ncclCommDeregister", comm, handle));
}
NCCL__ALIAS(CommDeregister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    return nccl__group_spoil(end("ncclCommWindowDeregister", comm, window));
}
NCCL__ALIAS(CommWindowDeregister);

/* ---- memory ---------------------------------------------------------------------------- */

ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
    return nccl__of_status(coll_mem_alloc_device(ptr, size, -1));
}
NCCL__ALIAS(MemAlloc);

/* Is it the memory of a window that the ranks have yet to end?  Then it is freed after
 * that. */
static int is_freed_later(void *ptr)
{
    int is_later = 0;

    pthread_mutex_lock(&lock);
    for (struct ncclWindow *w = ended; w && !is_later; w = w->next)
        if (w->at == ptr)
            is_later = w->is_freed = 1;
    pthread_mutex_unlock(&lock);
    return is_later;
}

ncclResult_t ncclMemFree(void *ptr)
{
    if (ptr && is_freed_later(ptr))
        return ncclSuccess;
    return nccl__of_status(coll_mem_free(ptr));
}
NCCL__ALIAS(MemFree);
