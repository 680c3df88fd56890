/* SPDX-License-Identifier: BSD-3-Clause */
/* persistent_init.c - the collectives of MPI 4 that are prepared once and started often:
 * each is carried, or left to MPI.  Open MPI 4 has them as an extension. */
#include "bindings/mpi/requests.h"

#if MPI_VERSION >= 4
#define INIT(prefix, name) prefix##_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_HAVE_MPI_EXT_PCOLLREQ
#define INIT(prefix, name) prefix##X_##name##_init
#endif
#endif

#ifdef INIT

MPI_PRELOAD_API int INIT(MPI, Barrier)(MPI_Comm comm, MPI_Info info,
                                       MPI_Request *request)
{
    struct call call;

    return prepare_barrier(&call, comm) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Barrier)(comm, info, request);
}

MPI_PRELOAD_API int INIT(MPI, Bcast)(void *buf, int count, MPI_Datatype type,
                                     int root, MPI_Comm comm, MPI_Info info,
                                     MPI_Request *request)
{
    struct call call;
    struct side side = {.at = buf, .count = count, .type = type};

    return prepare_bcast(&call, side, root, comm) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Bcast)(buf, count, type, root, comm, info, request);
}

MPI_PRELOAD_API int INIT(MPI, Allgather)(const void *in, int n_in,
                                         MPI_Datatype of_in, void *out,
                                         int n_out, MPI_Datatype of_out,
                                         MPI_Comm comm, MPI_Info info,
                                         MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_allgather(&call, from, to, comm) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Allgather)(in, n_in, of_in, out, n_out, of_out,
                                       comm, info, request);
}

MPI_PRELOAD_API int INIT(MPI, Allgatherv)(const void *in, int n_in,
                                          MPI_Datatype of_in, void *out,
                                          const int counts[],
                                          const int displs[],
                                          MPI_Datatype of_out, MPI_Comm comm,
                                          MPI_Info info, MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {
        .at = out, .type = of_out, .counts = counts, .displs = displs};

    return prepare_allgatherv(&call, from, to, comm) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Allgatherv)(in, n_in, of_in, out, counts, displs,
                                        of_out, comm, info, request);
}

MPI_PRELOAD_API int INIT(MPI, Alltoall)(const void *in, int n_in,
                                        MPI_Datatype of_in, void *out,
                                        int n_out, MPI_Datatype of_out,
                                        MPI_Comm comm, MPI_Info info,
                                        MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_alltoall(&call, from, to, comm) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Alltoall)(in, n_in, of_in, out, n_out, of_out, comm,
                                      info, request);
}

MPI_PRELOAD_API int INIT(MPI, Alltoallv)(const void *in, const int in_counts[],
                                         const int in_displs[],
                                         MPI_Datatype of_in, void *out,
                                         const int out_counts[],
                                         const int out_displs[],
                                         MPI_Datatype of_out, MPI_Comm comm,
                                         MPI_Info info, MPI_Request *request)
{
    struct call call;
    struct side from = {
        .at = in, .type = of_in, .counts = in_counts, .displs = in_displs};
    struct side to = {
        .at = out, .type = of_out, .counts = out_counts, .displs = out_displs};

    return prepare_alltoallv(&call, from, to, comm) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Alltoallv)(in, in_counts, in_displs, of_in, out,
                                       out_counts, out_displs, of_out, comm,
                                       info, request);
}

MPI_PRELOAD_API int INIT(MPI, Gather)(const void *in, int n_in,
                                      MPI_Datatype of_in, void *out, int n_out,
                                      MPI_Datatype of_out, int root,
                                      MPI_Comm comm, MPI_Info info,
                                      MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_gather(&call, from, to, root, comm) &&
                   call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Gather)(in, n_in, of_in, out, n_out, of_out, root,
                                    comm, info, request);
}

MPI_PRELOAD_API int
INIT(MPI, Gatherv)(const void *in, int n_in, MPI_Datatype of_in, void *out,
                   const int counts[], const int displs[], MPI_Datatype of_out,
                   int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {
        .at = out, .type = of_out, .counts = counts, .displs = displs};

    return prepare_gatherv(&call, from, to, root, comm) &&
                   call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Gatherv)(in, n_in, of_in, out, counts, displs,
                                     of_out, root, comm, info, request);
}

MPI_PRELOAD_API int INIT(MPI, Scatter)(const void *in, int n_in,
                                       MPI_Datatype of_in, void *out, int n_out,
                                       MPI_Datatype of_out, int root,
                                       MPI_Comm comm, MPI_Info info,
                                       MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_scatter(&call, from, to, root, comm) &&
                   call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Scatter)(in, n_in, of_in, out, n_out, of_out, root,
                                     comm, info, request);
}

MPI_PRELOAD_API int INIT(MPI, Scatterv)(const void *in, const int counts[],
                                        const int displs[], MPI_Datatype of_in,
                                        void *out, int n_out,
                                        MPI_Datatype of_out, int root,
                                        MPI_Comm comm, MPI_Info info,
                                        MPI_Request *request)
{
    struct call call;
    struct side from = {
        .at = in, .type = of_in, .counts = counts, .displs = displs};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_scatterv(&call, from, to, root, comm) &&
                   call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Scatterv)(in, counts, displs, of_in, out, n_out,
                                      of_out, root, comm, info, request);
}

/* ---- reductions ----------------------------------------------------------- */

MPI_PRELOAD_API int INIT(MPI, Allreduce)(const void *in, void *out, int count,
                                         MPI_Datatype type, MPI_Op op,
                                         MPI_Comm comm, MPI_Info info,
                                         MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_allreduce(&call, &r) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Allreduce)(in, out, count, type, op, comm, info,
                                       request);
}

MPI_PRELOAD_API int INIT(MPI, Reduce)(const void *in, void *out, int count,
                                      MPI_Datatype type, MPI_Op op, int root,
                                      MPI_Comm comm, MPI_Info info,
                                      MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_reduce(&call, &r, root) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Reduce)(in, out, count, type, op, root, comm, info,
                                    request);
}

MPI_PRELOAD_API int
INIT(MPI, Reduce_scatter_block)(const void *in, void *out, int count,
                                MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                MPI_Info info, MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_reduce_scatter_block(&call, &r) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Reduce_scatter_block)(in, out, count, type, op,
                                                  comm, info, request);
}

MPI_PRELOAD_API int INIT(MPI, Reduce_scatter)(const void *in, void *out,
                                              const int counts[],
                                              MPI_Datatype type, MPI_Op op,
                                              MPI_Comm comm, MPI_Info info,
                                              MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, 0, counts, type, op, comm};

    return prepare_reduce_scatter(&call, &r) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Reduce_scatter)(in, out, counts, type, op, comm,
                                            info, request);
}

MPI_PRELOAD_API int INIT(MPI, Scan)(const void *in, void *out, int count,
                                    MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                    MPI_Info info, MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_scan(&call, &r) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Scan)(in, out, count, type, op, comm, info,
                                  request);
}

MPI_PRELOAD_API int INIT(MPI, Exscan)(const void *in, void *out, int count,
                                      MPI_Datatype type, MPI_Op op,
                                      MPI_Comm comm, MPI_Info info,
                                      MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_exscan(&call, &r) && call_may_persist(&call)
               ? call_persist(&call, request)
               : INIT(PMPI, Exscan)(in, out, count, type, op, comm, info,
                                    request);
}

#endif
