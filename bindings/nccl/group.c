/* SPDX-License-Identifier: BSD-3-Clause */
/* group.c - groups: what a thread calls between ncclGroupStart() and ncclGroupEnd().
 *
 * Operations are noted and become one group of libcoll at the end.  Before them come the
 * jobs, which make, split and register.
 */
#include "bindings/nccl/comm.h"
#include "bindings/nccl/driver.h"
#include "bindings/nccl/result.h"

#include <stdio.h>
#include <stdlib.h>

#define SIM_MAGIC 0x74685283u

/* The streams that belong to the current context. */
#define LEGACY ((void *)1)
#define PER_THREAD ((void *)2)

struct note {
    struct ncclComm *comm;
    struct coll_args args;
};

static _Thread_local struct {
    int depth;
    ncclResult_t result; /* of the first call that was wrong */
    char why[NCCL__WHY_MAX];
    struct nccl__job *jobs, **jobs_end;
    struct note *notes;
    size_t n_notes, max_notes;
    enum coll_op *ended; /* that the program has destroyed */
    size_t n_ended, max_ended;
} group;

int nccl__group_is_open(void) { return group.depth > 0; }

ncclResult_t nccl__group_spoil(ncclResult_t result)
{
    if (!group.depth || group.result || !result || result == ncclInProgress)
        return result;
    group.result = result;
    snprintf(group.why, sizeof(group.why), "%s", nccl__why());
    return result;
}

/* ---- noting ---------------------------------------------------------------------- */

/* Make room for one more of `each` bytes. */
static ncclResult_t reserve(void **at, size_t n, size_t *max, size_t each)
{
    size_t more = *max ? 2 * *max : 16;
    void *larger;

    if (n < *max)
        return ncclSuccess;
    larger = realloc(*at, more * each);
    if (!larger)
        return nccl__wrong(ncclSystemError, "no memory for a group");
    *at = larger;
    *max = more;
    return ncclSuccess;
}

void nccl__group_add(struct nccl__job *job)
{
    if (!group.jobs)
        group.jobs_end = &group.jobs;
    *group.jobs_end = job;
    group.jobs_end = &job->next;
}

static ncclResult_t note(struct ncclComm *comm, const struct coll_args *args)
{
    void *notes = group.notes;
    ncclResult_t result =
        reserve(&notes, group.n_notes, &group.max_notes, sizeof(*group.notes));

    group.notes = notes;
    if (!result)
        group.notes[group.n_notes++] = (struct note){comm, *args};
    return result;
}

ncclResult_t nccl__group_end_op(enum coll_op op)
{
    void *ended = group.ended;
    ncclResult_t result;

    if (!group.depth)
        return nccl__of_status(coll_op_destroy(op));
    result =
        reserve(&ended, group.n_ended, &group.max_ended, sizeof(*group.ended));
    group.ended = ended;
    if (!result)
        group.ended[group.n_ended++] = op;
    return result;
}

static int has(const struct ncclComm *comm)
{
    for (size_t i = 0; i < group.n_notes; i++)
        if (group.notes[i].comm == comm)
            return 1;
    for (const struct nccl__job *job = group.jobs; job; job = job->next)
        if (job->owner == comm || job->made == comm)
            return 1;
    return 0;
}

ncclResult_t nccl__group_is_without(const char *who,
                                    const struct ncclComm *comm)
{
    if (!has(comm))
        return ncclSuccess;
    return nccl__wrong(ncclInvalidUsage,
                       "%s: the open group has calls of the communicator; end "
                       "the group first",
                       who);
}

/* ---- operations ------------------------------------------------------------------- */

static int issue(struct coll_comm *comm, const struct coll_args *a)
{
    switch (a->collective) {
    case COLL_ALLREDUCE:
        return coll_allreduce(a->in, a->out, a->count, a->type, a->op, comm,
                              a->stream);
    case COLL_REDUCE:
        return coll_reduce(a->in, a->out, a->count, a->type, a->op, a->root,
                           comm, a->stream);
    case COLL_BROADCAST:
        return coll_broadcast(a->in, a->out, a->count, a->type, a->root, comm,
                              a->stream);
    case COLL_REDUCE_SCATTER:
        return coll_reduce_scatter(a->in, a->out, a->count, a->type, a->op,
                                   comm, a->stream);
    case COLL_ALLGATHER:
        return coll_allgather(a->in, a->out, a->count, a->type, comm,
                              a->stream);
    case COLL_SEND:
        return coll_send(a->in, a->count, a->type, a->root, comm, a->stream);
    default:
        return coll_recv(a->out, a->count, a->type, a->root, comm, a->stream);
    }
}

/* Issue it on the communicator's GPU, which need not be the current one. */
static ncclResult_t issue_there(struct ncclComm *comm,
                                const struct coll_args *args)
{
    int is_currents = args->stream == LEGACY || args->stream == PER_THREAD;
    void *context = is_currents ? comm->context : NULL;
    ncclResult_t result = nccl__driver_push(context);

    if (result)
        return result;
    result = nccl__of_status(issue(comm->coll, args));
    nccl__driver_pop(context);
    return result;
}

/* Is it one of which all ranks call the same? */
static int is_collective(const struct coll_args *args)
{
    return args->collective != COLL_SEND && args->collective != COLL_RECV;
}

static ncclResult_t call_now(struct ncclComm *comm,
                             const struct coll_args *args)
{
    ncclResult_t result = ncclSuccess;

    atomic_fetch_add(&comm->n_calls, 1);
    if (is_collective(args) && nccl__windows_are_ending(comm))
        result = nccl__windows_end(comm);
    if (!result)
        result = issue_there(comm, args);
    atomic_fetch_sub(&comm->n_calls, 1);
    return result;
}

ncclResult_t nccl__call(const char *who, struct ncclComm *comm,
                        const struct coll_args *args)
{
    struct coll_args ours = *args;
    ncclResult_t result = nccl__comm_check(who, comm);

    ours.size = sizeof(ours);
    if (!ours.stream)
        ours.stream = LEGACY;
    if (!result)
        result = group.depth ? note(comm, &ours) : call_now(comm, &ours);
    return nccl__group_spoil(result);
}

/* ---- the end ------------------------------------------------------------------------- */

/* Forget everything; a job that was not done has made nothing. */
static void clear(void)
{
    while (group.jobs) {
        struct nccl__job *job = group.jobs;

        group.jobs = job->next;
        if (job->made) {
            if (job->out)
                *job->out = NULL;
            nccl__comm_free(job->made);
        }
        nccl__job_free(job);
    }
    for (size_t i = 0; i < group.n_ended; i++)
        coll_op_destroy(group.ended[i]);
    free(group.notes);
    free(group.ended);
    group.notes = NULL;
    group.ended = NULL;
    group.n_notes = group.max_notes = group.n_ended = group.max_ended = 0;
    group.result = ncclSuccess;
}

/* Have the ranks end the windows that collectives of the group must not meet. */
static ncclResult_t add_endings(void)
{
    for (size_t i = 0; i < group.n_notes; i++) {
        struct ncclComm *comm = group.notes[i].comm;
        struct nccl__job *job;
        ncclResult_t result;

        if (!is_collective(&group.notes[i].args) ||
            !nccl__windows_are_ending(comm))
            continue;
        result = nccl__windows_job(comm, &job);
        if (result)
            return result;
        nccl__group_add(job);
    }
    return ncclSuccess;
}

static ncclResult_t do_jobs(void)
{
    struct nccl__job *jobs;
    ncclResult_t result = add_endings();

    if (result)
        return result;
    jobs = group.jobs;
    group.jobs = NULL;
    return jobs ? nccl__jobs_do(jobs) : ncclSuccess;
}

static void count_calls(int by)
{
    for (size_t i = 0; i < group.n_notes; i++)
        atomic_fetch_add(&group.notes[i].comm->n_calls, by);
}

static ncclResult_t do_operations(void)
{
    ncclResult_t result = ncclSuccess, ended;

    if (!group.n_notes)
        return ncclSuccess;
    count_calls(1);
    coll_group_start();
    for (size_t i = 0; i < group.n_notes && !result; i++)
        result = issue_there(group.notes[i].comm, &group.notes[i].args);
    ended = nccl__of_status(coll_group_end());
    count_calls(-1);
    return result ? result : ended;
}

ncclResult_t nccl__group_start(void)
{
    group.depth++;
    return ncclSuccess;
}

ncclResult_t nccl__group_end(void)
{
    ncclResult_t result, jobs = ncclSuccess;

    if (!group.depth)
        return nccl__wrong(ncclInvalidUsage,
                           "ncclGroupEnd: there is no group; call "
                           "ncclGroupStart() first");
    if (--group.depth)
        return ncclSuccess;
    result = group.result;
    if (result)
        nccl__wrong(result, "%s", group.why);
    else
        result = jobs = do_jobs();
    if (!result || result == ncclInProgress) {
        result = do_operations();
        if (!result)
            result = jobs;
    }
    clear();
    return result;
}

ncclResult_t ncclGroupStart(void) { return nccl__group_start(); }
NCCL__ALIAS(GroupStart);

ncclResult_t ncclGroupEnd(void) { return nccl__group_end(); }
NCCL__ALIAS(GroupEnd);

/* ---- how long it would take ------------------------------------------------------------ */

static ncclResult_t predict(double *seconds)
{
    *seconds = 0;
    for (size_t i = 0; i < group.n_notes; i++) {
        struct coll_plan_info info = {.size = sizeof(info)};
        struct note *note = &group.notes[i];
        ncclResult_t result = nccl__driver_push(note->comm->context);

        if (result)
            return result;
        result = nccl__of_status(
            coll_plan_query(&note->args, note->comm->coll, &info));
        nccl__driver_pop(note->comm->context);
        if (result)
            return result;
        *seconds += info.seconds;
    }
    return ncclSuccess;
}

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    static const char who[] = "ncclGroupSimulateEnd";
    ncclResult_t result = group.result;
    double seconds = 0;

    if (!group.depth)
        return nccl__wrong(ncclInvalidUsage, "%s: there is no group", who);
    if (info && info->magic != SIM_MAGIC)
        return nccl__wrong(ncclInvalidArgument,
                           "%s: the info is not initialized; begin it with "
                           "NCCL_SIM_INFO_INITIALIZER",
                           who);
    if (--group.depth)
        return ncclSuccess;
    if (result)
        nccl__wrong(result, "%s", group.why);
    else if (group.jobs)
        result = nccl__wrong(ncclInvalidUsage,
                             "%s: only operations can be simulated", who);
    else
        result = predict(&seconds);
    clear();
    if (!result && info)
        info->estimatedTime = (float)(seconds * 1e6);
    return result;
}
NCCL__ALIAS(GroupSimulateEnd);
