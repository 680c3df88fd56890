/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.c - communicators: initialized, asked, finalized, destroyed, aborted. */
#include "bindings/nccl/comm.h"
#include "bindings/nccl/driver.h"
#include "bindings/nccl/result.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x6c636f6cu
#define CONFIG_MAGIC 0xcafebeefu

_Static_assert(sizeof(ncclUniqueId) == sizeof(struct coll_unique_id),
               "an id of NCCL holds an id of libcoll");

/* ---- the struct ------------------------------------------------------------------ */

ncclResult_t nccl__comm_new(const char *who, struct ncclComm **out)
{
    struct ncclComm *comm = calloc(1, sizeof(*comm));
    ncclResult_t result;

    if (!comm)
        return nccl__wrong(ncclSystemError, "%s: no memory", who);
    result = nccl__driver_here(who, &comm->context, &comm->device);
    if (result) {
        free(comm);
        return result;
    }
    comm->magic = MAGIC;
    comm->is_blocking = 1;
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->idle, NULL);
    *out = comm;
    return ncclSuccess;
}

void nccl__comm_free(struct ncclComm *comm)
{
    nccl__windows_free(comm);
    pthread_cond_destroy(&comm->idle);
    pthread_mutex_destroy(&comm->lock);
    comm->magic = 0;
    free(comm);
}

ncclResult_t nccl__comm_is(const char *who, const struct ncclComm *comm)
{
    if (!comm)
        return nccl__wrong(ncclInvalidArgument, "%s: the communicator is NULL",
                           who);
    if (comm->magic != MAGIC)
        return nccl__wrong(ncclInvalidArgument,
                           "%s: this is no communicator; was it destroyed?",
                           who);
    return ncclSuccess;
}

ncclResult_t nccl__comm_check(const char *who, const struct ncclComm *comm)
{
    ncclResult_t result = nccl__comm_is(who, comm);

    if (result)
        return result;
    if (atomic_load(&comm->n_jobs))
        return nccl__wrong(ncclInvalidUsage,
                           "%s: an earlier call of the communicator is in "
                           "progress; wait until ncclCommGetAsyncError() gives "
                           "ncclSuccess",
                           who);
    if (comm->is_finalized)
        return nccl__wrong(ncclInvalidUsage,
                           "%s: the communicator was finalized", who);
    if (!comm->coll)
        return nccl__wrong(ncclInvalidUsage,
                           "%s: the communicator is not initialized; end the "
                           "group of its ncclCommInitRank() first",
                           who);
    return ncclSuccess;
}

void nccl__comm_made(struct ncclComm *comm, struct coll_comm *coll)
{
    pthread_mutex_lock(&comm->lock);
    comm->coll = coll;
    comm->rank = coll_comm_rank(coll);
    comm->size = coll_comm_size(coll);
    pthread_mutex_unlock(&comm->lock);
}

/* ---- configuration ----------------------------------------------------------------- */

/* Does the program's struct have the field? */
#define HAS(config, field)                                                     \
    ((config)->size >= offsetof(ncclConfig_t, field) + sizeof((config)->field))

ncclResult_t nccl__config_read(const char *who, const ncclConfig_t *config,
                               struct ncclComm *comm)
{
    if (!config)
        return ncclSuccess;
    if (config->magic != CONFIG_MAGIC)
        return nccl__wrong(ncclInvalidArgument,
                           "%s: the config is not initialized; begin it with "
                           "NCCL_CONFIG_INITIALIZER",
                           who);
    if (HAS(config, netName) && config->netName)
        return nccl__wrong(ncclInvalidUsage,
                           "%s: config.netName asks for %s, which libcoll does "
                           "not have; leave it out, and choose transports by "
                           "COLL_TRANSPORTS",
                           who, config->netName);
    if (!HAS(config, blocking) || config->blocking == NCCL_CONFIG_UNDEF_INT)
        return ncclSuccess;
    if (config->blocking != 0 && config->blocking != 1)
        return nccl__wrong(ncclInvalidArgument,
                           "%s: config.blocking is %d; it can be 0 or 1", who,
                           config->blocking);
    comm->is_blocking = config->blocking;
    return ncclSuccess;
}

/* ---- initializing ---------------------------------------------------------------------- */

/* Ranks that are threads, or one thread, destroy their communicators one after the other,
 * so no call may wait for another. */
static ncclResult_t run_init(struct nccl__job *job)
{
    struct coll_config config = {.size = sizeof(config), .deferred = 1};
    struct coll_unique_id id;
    struct coll_comm *coll;
    int rc;

    memcpy(&id, &job->id, sizeof(id));
    rc =
        coll_comm_create(&coll, job->made->size, &id, job->made->rank, &config);
    if (!rc)
        nccl__comm_made(job->made, coll);
    return nccl__of_status(rc);
}

static ncclResult_t init(ncclComm_t *out, struct ncclComm *comm,
                         const ncclUniqueId *id)
{
    struct nccl__job *job;
    ncclResult_t result = nccl__job_new("ncclCommInitRank", comm, &job);

    if (result) {
        nccl__comm_free(comm);
        return result;
    }
    job->run = run_init;
    job->made = comm;
    job->out = out;
    job->id = *id;
    *out = comm;
    return nccl__job_do(job);
}

ncclResult_t nccl__comm_init(ncclComm_t *out, int size, const ncclUniqueId *id,
                             int rank, const ncclConfig_t *config)
{
    static const char who[] = "ncclCommInitRank";
    struct ncclComm *comm;
    ncclResult_t result;

    if (!out)
        return nccl__group_spoil(
            nccl__wrong(ncclInvalidArgument, "%s: comm is NULL", who));
    *out = NULL;
    if (size < 1 || rank < 0 || rank >= size)
        return nccl__group_spoil(
            nccl__wrong(ncclInvalidArgument,
                        "%s: rank %d of %d ranks; ranks are 0 to nranks - 1",
                        who, rank, size));
    result = nccl__comm_new(who, &comm);
    if (result)
        return nccl__group_spoil(result);
    comm->size = size;
    comm->rank = rank;
    result = nccl__config_read(who, config, comm);
    if (result) {
        nccl__comm_free(comm);
        return nccl__group_spoil(result);
    }
    return nccl__group_spoil(init(out, comm, id));
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    struct coll_unique_id ours;
    ncclResult_t result;

    if (!id)
        return nccl__wrong(ncclInvalidArgument, "ncclGetUniqueId: id is NULL");
    result = nccl__of_status(coll_get_unique_id(&ours));
    if (!result)
        memcpy(id, &ours, sizeof(*id));
    return result;
}
NCCL__ALIAS(GetUniqueId);

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id,
                              int rank)
{
    return nccl__comm_init(comm, nranks, &id, rank, NULL);
}
NCCL__ALIAS(CommInitRank);

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    return nccl__comm_init(comm, nranks, &id, rank, config);
}
NCCL__ALIAS(CommInitRankConfig);

/* Ranks of libcoll meet by a tree, whatever the number of ids: the first id serves. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank,
                                      int n_ids, ncclUniqueId *ids,
                                      ncclConfig_t *config)
{
    if (n_ids < 1 || n_ids > nranks || !ids)
        return nccl__group_spoil(nccl__wrong(
            ncclInvalidArgument,
            "ncclCommInitRankScalable: %d ids of %d ranks; pass 1 to nranks",
            ids ? n_ids : 0, nranks));
    for (int i = 1; i < n_ids; i++) {
        struct coll_unique_id unused;

        memcpy(&unused, &ids[i], sizeof(unused));
        coll_unique_id_free(&unused);
    }
    return nccl__comm_init(comm, nranks, ids, rank, config);
}
NCCL__ALIAS(CommInitRankScalable);

/* ---- asking ------------------------------------------------------------------------------ */

/* Answer with a number of the communicator. */
static ncclResult_t answer(const char *who, const struct ncclComm *comm,
                           int *out, int value)
{
    ncclResult_t result = nccl__comm_is(who, comm);

    if (result)
        return result;
    if (!out)
        return nccl__wrong(ncclInvalidArgument, "%s: the result is NULL", who);
    *out = value;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    return answer("ncclCommCount", comm, count, comm ? comm->size : 0);
}
NCCL__ALIAS(CommCount);

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    return answer("ncclCommCuDevice", comm, device, comm ? comm->device : 0);
}
NCCL__ALIAS(CommCuDevice);

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return answer("ncclCommUserRank", comm, rank, comm ? comm->rank : 0);
}
NCCL__ALIAS(CommUserRank);

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    static const char who[] = "ncclCommGetAsyncError";
    ncclResult_t result = nccl__comm_is(who, comm);

    if (result)
        return result;
    if (!error)
        return nccl__wrong(ncclInvalidArgument, "%s: the result is NULL", who);
    pthread_mutex_lock(&comm->lock);
    *error = comm->n_jobs ? ncclInProgress : comm->result;
    if (*error && *error != ncclInProgress)
        nccl__wrong(*error, "%s", comm->why);
    pthread_mutex_unlock(&comm->lock);
    if (*error || !comm->coll)
        return ncclSuccess;
    *error = nccl__of_status(coll_comm_async_error(comm->coll));
    return ncclSuccess;
}
NCCL__ALIAS(CommGetAsyncError);

/* ---- ending -------------------------------------------------------------------------------- */

static void await_jobs(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->n_jobs)
        pthread_cond_wait(&comm->idle, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

/* End the communicator of libcoll, once no other thread is in a call of it. */
static ncclResult_t end_coll(struct ncclComm *comm)
{
    struct coll_comm *coll = comm->coll;

    while (atomic_load(&comm->n_calls))
        sched_yield();
    comm->coll = NULL;
    return nccl__of_status(coll_comm_destroy(coll));
}

static ncclResult_t run_finalize(struct nccl__job *job)
{
    return end_coll(job->owner);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    static const char who[] = "ncclCommFinalize";
    ncclResult_t result = nccl__comm_check(who, comm);
    struct nccl__job *job;

    if (!result)
        result = nccl__group_is_without(who, comm);
    if (!result)
        result = nccl__job_new(who, comm, &job);
    if (result)
        return nccl__group_spoil(result);
    comm->is_finalized = 1;
    job->run = run_finalize;
    return nccl__group_spoil(nccl__job_do(job));
}
NCCL__ALIAS(CommFinalize);

/* May the program end the communicator now?  A group's calls may need it. */
static ncclResult_t may_end(const char *who, const struct ncclComm *comm)
{
    ncclResult_t result = nccl__comm_is(who, comm);

    if (!result)
        result = nccl__group_is_without(who, comm);
    return nccl__group_spoil(result);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    ncclResult_t result;

    if (!comm)
        return ncclSuccess;
    result = may_end("ncclCommDestroy", comm);
    if (result)
        return result;
    await_jobs(comm);
    result = end_coll(comm);
    nccl__comm_free(comm);
    return result;
}
NCCL__ALIAS(CommDestroy);

void nccl__comm_drop(struct ncclComm *comm)
{
    if (comm->coll) {
        coll_comm_abort(comm->coll, "a rank called ncclCommAbort()");
        end_coll(comm);
    }
    nccl__comm_free(comm);
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    ncclResult_t result;
    int is_later;

    if (!comm)
        return ncclSuccess;
    result = may_end("ncclCommAbort", comm);
    if (result)
        return result;
    pthread_mutex_lock(&comm->lock);
    is_later = comm->is_orphan = comm->n_jobs > 0;
    if (is_later && !comm->is_finalized && comm->coll)
        coll_comm_abort(comm->coll, "a rank called ncclCommAbort()");
    pthread_mutex_unlock(&comm->lock);
    if (!is_later)
        nccl__comm_drop(comm);
    return ncclSuccess;
}
NCCL__ALIAS(CommAbort);
