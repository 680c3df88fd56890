/* SPDX-License-Identifier: BSD-3-Clause */
/* call.c - one call: copies of buffers that libcoll cannot use as they are, and the call
 * of libcoll. */
#include "bindings/mpi/preload.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PACK_MOST                                                              \
    ((size_t)1 << 30) /* bytes of one MPI_Pack(), which counts in ints */

int call_leave(enum coll_collective collective, enum left_why why)
{
    report_left(collective, why);
    return 0;
}

int call_begin(struct call *call, enum coll_collective collective,
               MPI_Comm handle)
{
    struct comm *comm = comm_find(handle);

    if (!comm)
        return call_leave(collective, LEFT_COMM);
    memset(call, 0, sizeof(*call));
    call->comm = comm;
    call->args.size = sizeof(call->args);
    call->args.collective = collective;
    call->args.type = COLL_U8;
    return 1;
}

/* ---- areas ---------------------------------------------------------------- */

int area_set(struct area *area, const void *at, int count, MPI_Datatype type)
{
    if (count < 0 || !type_describe(type, &area->type))
        return 0;
    area->at = (char *)(uintptr_t)at;
    area->count = (size_t)count;
    return 1;
}

int area_set_blocks(struct area *area, const void *at, const int counts[],
                    const int displs[], int n, MPI_Datatype type)
{
    if (!counts || !type_describe(type, &area->type))
        return 0;
    area->at = (char *)(uintptr_t)at;
    area->counts = counts;
    area->displs = displs;
    area->n = n;
    area->count = 0;
    for (int i = 0; i < n; i++) {
        if (counts[i] < 0)
            return 0;
        area->count += (size_t)counts[i];
    }
    return 1;
}

size_t area_bytes(const struct area *area)
{
    return area->count * area->type.staged;
}

char *area_stage(struct call *call, struct area *area, int is_needed)
{
    if (area->type.is_plain && !is_needed)
        return area->at;
    area->stage = malloc(area_bytes(area) + 1);
    area->is_owner = 1;
    call->is_short |= !area->stage;
    return area->stage;
}

void area_spread(const struct area *area, size_t counts[], size_t displs[])
{
    size_t end = 0;

    for (int i = 0; i < area->n; i++) {
        counts[i] = (size_t)area->counts[i] * area->type.size;
        displs[i] = area->stage || !area->displs
                        ? end
                        : (size_t)area->displs[i] * area->type.size;
        end += counts[i];
    }
}

/* ---- copies --------------------------------------------------------------- */

/* Copy elements whose gaps the stage has, too.  The buffer's gaps stay as they are. */
static void copy_apart(const struct type_info *type, char *at, size_t count,
                       char **stage, int is_in)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(is_in ? *stage : at, is_in ? at : *stage, type->size);
        if (is_in)
            memset(*stage + type->size, 0, type->staged - type->size);
        at += type->extent;
        *stage += type->staged;
    }
}

/* Copy count elements from at into a stage, or out of it; the stage moves on. */
static int copy(const struct type_info *type, char *at, size_t count,
                char **stage, int is_in)
{
    size_t most = type->size ? PACK_MOST / type->size : 1;
    int rc = MPI_SUCCESS;

    if (type->is_plain || !type->size) {
        if (count && type->size)
            memcpy(is_in ? *stage : at, is_in ? at : *stage,
                   count * type->size);
        *stage += count * type->size;
        return MPI_SUCCESS;
    }
    if (type->staged != type->size) {
        copy_apart(type, at, count, stage, is_in);
        return MPI_SUCCESS;
    }
    for (size_t n; count && rc == MPI_SUCCESS; count -= n) {
        int len, position = 0;

        n = count < most ? count : most ? most : 1;
        len = (int)(n * type->size);
        rc = is_in ? PMPI_Pack(at, (int)n, type->handle, *stage, len, &position,
                               comms.self)
                   : PMPI_Unpack(*stage, len, &position, at, (int)n,
                                 type->handle, comms.self);
        at += n * type->extent;
        *stage += len;
    }
    return rc;
}

static int copy_area(const struct area *area, int is_in)
{
    char *stage = area->stage;
    size_t extent = area->type.extent, end = 0;
    int rc = MPI_SUCCESS;

    if (!area->counts)
        return copy(&area->type, area->at, area->count, &stage, is_in);
    for (int i = 0; i < area->n && rc == MPI_SUCCESS; i++) {
        size_t count = (size_t)area->counts[i];
        ptrdiff_t from = area->displs ? area->displs[i] : (ptrdiff_t)end;

        rc = copy(&area->type, area->at + from * (ptrdiff_t)extent, count,
                  &stage, is_in);
        end += count;
    }
    return rc;
}

int call_pack(struct call *call)
{
    return call->in.stage ? copy_area(&call->in, 1) : MPI_SUCCESS;
}

int call_unpack(struct call *call)
{
    return call->out.stage ? copy_area(&call->out, 0) : MPI_SUCCESS;
}

static void area_free(struct area *area, int is_kept)
{
    if (area->is_owner)
        free(area->stage);
    if (!is_kept)
        return;
    free((void *)(uintptr_t)area->counts);
    free((void *)(uintptr_t)area->displs);
    if (!area->type.is_named && area->type.handle != MPI_DATATYPE_NULL)
        PMPI_Type_free(&area->type.handle);
}

void call_free(struct call *call)
{
    area_free(&call->in, call->is_kept);
    area_free(&call->out, call->is_kept);
}

/* ---- the call ------------------------------------------------------------- */

static int reduce(const struct coll_args *a, struct coll_comm *comm)
{
    switch (a->collective) {
    case COLL_ALLREDUCE:
        return coll_allreduce(a->in, a->out, a->count, a->type, a->op, comm,
                              NULL);
    case COLL_REDUCE:
        return coll_reduce(a->in, a->out, a->count, a->type, a->op, a->root,
                           comm, NULL);
    case COLL_REDUCE_SCATTER:
        return coll_reduce_scatter(a->in, a->out, a->count, a->type, a->op,
                                   comm, NULL);
    case COLL_REDUCE_SCATTERV:
        return coll_reduce_scatterv(a->in, a->out, a->in_counts, a->type, a->op,
                                    comm, NULL);
    case COLL_SCAN:
        return coll_scan(a->in, a->out, a->count, a->type, a->op, comm, NULL);
    default:
        return coll_exscan(a->in, a->out, a->count, a->type, a->op, comm, NULL);
    }
}

static int move(const struct coll_args *a, struct coll_comm *comm)
{
    switch (a->collective) {
    case COLL_BARRIER:
        return coll_barrier(comm, NULL);
    case COLL_BROADCAST:
        return coll_broadcast(a->in, a->out, a->count, a->type, a->root, comm,
                              NULL);
    case COLL_ALLGATHER:
        return coll_allgather(a->in, a->out, a->count, a->type, comm, NULL);
    case COLL_ALLGATHERV:
        return coll_allgatherv(a->in, a->out, a->out_counts, a->out_displs,
                               a->type, comm, NULL);
    case COLL_ALLTOALL:
        return coll_alltoall(a->in, a->out, a->count, a->type, comm, NULL);
    case COLL_ALLTOALLV:
        return coll_alltoallv(a->in, a->in_counts, a->in_displs, a->out,
                              a->out_counts, a->out_displs, a->type, comm,
                              NULL);
    case COLL_GATHER:
        return coll_gather(a->in, a->out, a->count, a->type, a->root, comm,
                           NULL);
    case COLL_GATHERV:
        return coll_gatherv(a->in, a->count, a->out, a->out_counts,
                            a->out_displs, a->type, a->root, comm, NULL);
    case COLL_SCATTER:
        return coll_scatter(a->in, a->out, a->count, a->type, a->root, comm,
                            NULL);
    case COLL_SCATTERV:
        return coll_scatterv(a->in, a->in_counts, a->in_displs, a->out,
                             a->count, a->type, a->root, comm, NULL);
    default:
        return reduce(a, comm);
    }
}

static void *copy_of(const void *from, size_t len)
{
    void *to = malloc(len + 1);

    return to ? memcpy(to, from, len) : NULL;
}

/* Keep what a later copy out of the stage, or into it, needs. */
static int area_keep(struct area *area)
{
    size_t len = (size_t)area->n * sizeof(int);
    const int *counts = area->counts, *displs = area->displs;
    MPI_Datatype type = area->type.handle;

    area->counts = area->displs = NULL;
    if (!area->type.is_named)
        area->type.handle = MPI_DATATYPE_NULL;
    if (!area->stage)
        return 0;
    if (!area->type.is_named && PMPI_Type_dup(type, &area->type.handle))
        return -1;
    area->counts = counts ? copy_of(counts, len) : NULL;
    area->displs = displs ? copy_of(displs, len) : NULL;
    return (counts && !area->counts) || (displs && !area->displs) ? -1 : 0;
}

int call_keep(struct call *call)
{
    int in = area_keep(&call->in), out = area_keep(&call->out);

    call->is_kept = 1;
    return in || out ? -1 : 0;
}

int call_run(struct call *call)
{
    int rc, status = COLL_ERR_NOMEM;

    if (__builtin_expect(comms.is_threaded, 0) &&
        atomic_load(&call->comm->n_pending))
        return call_run_beside(call);
    if (__builtin_expect(call->is_short, 0)) {
        call_free(call);
        return comm_error(call->comm->handle, status);
    }
    report_carried(call->args.collective);
    if (__builtin_expect(!call->in.stage && !call->out.stage, 1)) {
        status = move(&call->args, call->comm->coll);
        return __builtin_expect(!status, 1)
                   ? MPI_SUCCESS
                   : comm_error(call->comm->handle, status);
    }
    rc = call_pack(call);
    if (rc == MPI_SUCCESS) {
        status = move(&call->args, call->comm->coll);
        rc =
            status ? comm_error(call->comm->handle, status) : call_unpack(call);
    }
    call_free(call);
    return rc;
}
