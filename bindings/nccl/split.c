/* SPDX-License-Identifier: BSD-3-Clause */
/* split.c - communicators made of another one: split, and without some of its ranks. */
#include "bindings/nccl/comm.h"
#include "bindings/nccl/result.h"

#include <stdlib.h>
#include <string.h>

/* Make a communicator for a part of `parent`, on the same GPU. */
static ncclResult_t new_part(const char *who, struct ncclComm *parent,
                             const ncclConfig_t *config, struct ncclComm **out)
{
    struct ncclComm *part;
    ncclResult_t result = nccl__comm_new(who, &part);

    if (result)
        return result;
    part->context = parent->context;
    part->device = parent->device;
    part->is_blocking = parent->is_blocking;
    result = nccl__config_read(who, config, part);
    if (result) {
        nccl__comm_free(part);
        return result;
    }
    *out = part;
    return ncclSuccess;
}

/* Begin a job of `parent` that makes *out. */
static ncclResult_t begin(const char *who, struct ncclComm *parent,
                          struct ncclComm **out, struct ncclComm *part,
                          struct nccl__job **job)
{
    ncclResult_t result = nccl__job_new(who, parent, job);

    if (result) {
        if (part)
            nccl__comm_free(part);
        return result;
    }
    (*job)->made = part;
    (*job)->out = out;
    *out = part;
    return ncclSuccess;
}

/* ---- split ------------------------------------------------------------------------- */

static ncclResult_t run_split(struct nccl__job *job)
{
    struct coll_comm *part = NULL;
    ncclResult_t result = nccl__of_status(
        coll_comm_split(job->owner->coll, job->color, job->key, &part));

    if (!result && job->made)
        nccl__comm_made(job->made, part);
    return result;
}

static ncclResult_t split(const char *who, struct ncclComm *comm,
                          const struct nccl__job *asked, ncclComm_t *out,
                          const ncclConfig_t *config)
{
    struct ncclComm *part = NULL;
    struct nccl__job *job;
    ncclResult_t result = ncclSuccess;

    if (asked->color != NCCL_SPLIT_NOCOLOR)
        result = new_part(who, comm, config, &part);
    if (!result)
        result = begin(who, comm, out, part, &job);
    if (result)
        return result;
    job->color =
        asked->color == NCCL_SPLIT_NOCOLOR ? COLL_NO_COLOR : asked->color;
    job->key = asked->key;
    job->run = run_split;
    return nccl__job_do(job);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
                           ncclConfig_t *config)
{
    static const char who[] = "ncclCommSplit";
    struct nccl__job asked = {.color = color, .key = key};
    ncclResult_t result = nccl__comm_check(who, comm);

    if (!result && !out)
        result = nccl__wrong(ncclInvalidArgument, "%s: newcomm is NULL", who);
    if (!result)
        result = split(who, comm, &asked, out, config);
    return nccl__group_spoil(result);
}
NCCL__ALIAS(CommSplit);

/* ---- shrink -------------------------------------------------------------------------- */

static int is_excluded(const struct nccl__job *job, int rank)
{
    for (int i = 0; i < job->n_excluded; i++)
        if (job->excluded[i] == rank)
            return 1;
    return 0;
}

/* Return how many ranks below `rank` stay. */
static int staying(const struct nccl__job *job, int rank)
{
    int n = 0;

    for (int r = 0; r < rank; r++)
        n += !is_excluded(job, r);
    return n;
}

/* Send the id to all who stay, but this rank. */
static int send_id(const struct nccl__job *job, const struct coll_unique_id *id)
{
    const struct ncclComm *comm = job->owner;
    int rc = COLL_OK;

    for (int r = comm->rank + 1; r < comm->size && !rc; r++)
        if (!is_excluded(job, r))
            rc = coll_send(id, sizeof(*id), COLL_U8, r, comm->coll, NULL);
    return rc;
}

/* The first of the ranks that stay sends the others an id, by which they meet.  Those that
 * leave take no part. */
static ncclResult_t run_shrink(struct nccl__job *job)
{
    struct coll_config config = {.size = sizeof(config), .deferred = 1};
    struct ncclComm *comm = job->owner;
    int size = staying(job, comm->size), rank = staying(job, comm->rank);
    struct coll_unique_id id;
    struct coll_comm *coll;
    int first = 0, rc;

    while (is_excluded(job, first))
        first++;
    if (comm->rank == first) {
        rc = coll_get_unique_id(&id);
        if (!rc)
            rc = send_id(job, &id);
    } else {
        rc = coll_recv(&id, sizeof(id), COLL_U8, first, comm->coll, NULL);
    }
    if (!rc)
        rc = coll_comm_create(&coll, size, &id, rank, &config);
    if (!rc)
        nccl__comm_made(job->made, coll);
    return nccl__of_status(rc);
}

static ncclResult_t check_excluded(const char *who, const struct ncclComm *comm,
                                   const int *excluded, int n)
{
    if (n < 1 || n >= comm->size || !excluded)
        return nccl__wrong(ncclInvalidArgument,
                           "%s: %d of %d ranks are excluded; exclude 1 or more "
                           "and leave one",
                           who, excluded ? n : 0, comm->size);
    for (int i = 0; i < n; i++) {
        if (excluded[i] < 0 || excluded[i] >= comm->size)
            return nccl__wrong(ncclInvalidArgument,
                               "%s: there is no rank %d of %d", who,
                               excluded[i], comm->size);
        if (excluded[i] == comm->rank)
            return nccl__wrong(ncclInvalidArgument,
                               "%s: rank %d is excluded and must not call it",
                               who, comm->rank);
    }
    return ncclSuccess;
}

static ncclResult_t shrink(const char *who, struct ncclComm *comm,
                           const struct nccl__job *asked, ncclComm_t *out,
                           const ncclConfig_t *config)
{
    size_t len = sizeof(int) * (size_t)asked->n_excluded;
    struct ncclComm *part;
    struct nccl__job *job;
    ncclResult_t result = new_part(who, comm, config, &part);

    if (!result)
        result = begin(who, comm, out, part, &job);
    if (result)
        return result;
    job->excluded = malloc(len);
    if (!job->excluded) {
        nccl__job_free(job);
        nccl__comm_free(part);
        *out = NULL;
        return nccl__wrong(ncclSystemError, "%s: no memory", who);
    }
    memcpy(job->excluded, asked->excluded, len);
    job->n_excluded = asked->n_excluded;
    job->run = run_shrink;
    return nccl__job_do(job);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int n_excluded,
                            ncclComm_t *out, ncclConfig_t *config, int flags)
{
    static const char who[] = "ncclCommShrink";
    struct nccl__job asked = {.excluded = excluded, .n_excluded = n_excluded};
    ncclResult_t result = nccl__comm_check(who, comm);

    if (!result && !out)
        result = nccl__wrong(ncclInvalidArgument, "%s: newcomm is NULL", who);
    if (!result && flags != NCCL_SHRINK_DEFAULT)
        result = nccl__wrong(ncclInvalidUsage,
                             "%s: libcoll shrinks communicators that have not "
                             "failed (NCCL_SHRINK_DEFAULT); after a failure "
                             "let the ranks that are left initialize a new one",
                             who);
    if (!result)
        result = check_excluded(who, comm, excluded, n_excluded);
    if (!result)
        result = shrink(who, comm, &asked, out, config);
    return nccl__group_spoil(result);
}
NCCL__ALIAS(CommShrink);
