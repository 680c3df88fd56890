/* SPDX-License-Identifier: BSD-3-Clause */
/* init_all.c - one communicator for each of several GPUs of this process. */
#include "bindings/nccl/comm.h"
#include "bindings/nccl/driver.h"
#include "bindings/nccl/result.h"

#include <string.h>

static ncclResult_t check_devices(const char *who, int ndev, const int *devlist)
{
    int n = 0;
    ncclResult_t result = nccl__driver_count(who, &n);

    if (result)
        return result;
    if (ndev < 1 || (!devlist && ndev > n))
        return nccl__wrong(ncclInvalidArgument,
                           "%s: %d communicators; there are %d GPUs", who, ndev,
                           n);
    for (int i = 0; devlist && i < ndev; i++)
        if (devlist[i] < 0 || devlist[i] >= n)
            return nccl__wrong(ncclInvalidArgument,
                               "%s: there is no GPU %d; there are %d", who,
                               devlist[i], n);
    return ncclSuccess;
}

/* Initialize rank `rank` on a GPU, within a group. */
static ncclResult_t init_on(int device, ncclComm_t *comm, int size,
                            const ncclUniqueId *id, int rank)
{
    void *context;
    ncclResult_t result =
        nccl__driver_primary("ncclCommInitAll", device, &context);

    if (!result)
        result = nccl__driver_push(context);
    if (result)
        return nccl__group_spoil(result);
    result = nccl__comm_init(comm, size, id, rank, NULL);
    nccl__driver_pop(context);
    return result;
}

/* Not all could be initialized, so none is. */
static void drop_all(ncclComm_t *comms, int ndev, const ncclUniqueId *id)
{
    struct coll_unique_id unused;

    for (int i = 0; i < ndev; i++) {
        if (comms[i])
            nccl__comm_drop(comms[i]);
        comms[i] = NULL;
    }
    memcpy(&unused, id, sizeof(unused));
    coll_unique_id_free(&unused);
}

static ncclResult_t init_all(ncclComm_t *comms, int ndev, const int *devlist)
{
    ncclUniqueId id;
    ncclResult_t result = ncclGetUniqueId(&id), end;

    if (result)
        return result;
    for (int i = 0; i < ndev; i++)
        comms[i] = NULL;
    nccl__group_start();
    for (int i = 0; i < ndev && !result; i++)
        result = init_on(devlist ? devlist[i] : i, &comms[i], ndev, &id, i);
    end = nccl__group_end();
    result = result ? result : end;
    if (result && !nccl__group_is_open())
        drop_all(comms, ndev, &id);
    return result;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devlist)
{
    static const char who[] = "ncclCommInitAll";
    ncclResult_t result;

    if (!comms)
        return nccl__group_spoil(
            nccl__wrong(ncclInvalidArgument, "%s: comms is NULL", who));
    result = check_devices(who, ndev, devlist);
    if (!result)
        result = init_all(comms, ndev, devlist);
    return nccl__group_spoil(result);
}
NCCL__ALIAS(CommInitAll);
