/* SPDX-License-Identifier: BSD-3-Clause */
/* immediate.c - the collectives that return at once: each is carried, or left to MPI. */
#include "bindings/mpi/preload.h"

MPI_PRELOAD_API int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    struct call call;

    return prepare_barrier(&call, comm) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Ibarrier(comm, request);
}

MPI_PRELOAD_API int MPI_Ibcast(void *buf, int count, MPI_Datatype type,
                               int root, MPI_Comm comm, MPI_Request *request)
{
    struct call call;
    struct side side = {.at = buf, .count = count, .type = type};

    return prepare_bcast(&call, side, root, comm) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Ibcast(buf, count, type, root, comm, request);
}

MPI_PRELOAD_API int MPI_Iallgather(const void *in, int n_in, MPI_Datatype of_in,
                                   void *out, int n_out, MPI_Datatype of_out,
                                   MPI_Comm comm, MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_allgather(&call, from, to, comm) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Iallgather(in, n_in, of_in, out, n_out, of_out, comm,
                                 request);
}

MPI_PRELOAD_API int MPI_Iallgatherv(const void *in, int n_in,
                                    MPI_Datatype of_in, void *out,
                                    const int counts[], const int displs[],
                                    MPI_Datatype of_out, MPI_Comm comm,
                                    MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {
        .at = out, .type = of_out, .counts = counts, .displs = displs};

    return prepare_allgatherv(&call, from, to, comm) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Iallgatherv(in, n_in, of_in, out, counts, displs, of_out,
                                  comm, request);
}

MPI_PRELOAD_API int MPI_Ialltoall(const void *in, int n_in, MPI_Datatype of_in,
                                  void *out, int n_out, MPI_Datatype of_out,
                                  MPI_Comm comm, MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_alltoall(&call, from, to, comm) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Ialltoall(in, n_in, of_in, out, n_out, of_out, comm,
                                request);
}

MPI_PRELOAD_API int MPI_Ialltoallv(const void *in, const int in_counts[],
                                   const int in_displs[], MPI_Datatype of_in,
                                   void *out, const int out_counts[],
                                   const int out_displs[], MPI_Datatype of_out,
                                   MPI_Comm comm, MPI_Request *request)
{
    struct call call;
    struct side from = {
        .at = in, .type = of_in, .counts = in_counts, .displs = in_displs};
    struct side to = {
        .at = out, .type = of_out, .counts = out_counts, .displs = out_displs};

    return prepare_alltoallv(&call, from, to, comm) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Ialltoallv(in, in_counts, in_displs, of_in, out,
                                 out_counts, out_displs, of_out, comm, request);
}

MPI_PRELOAD_API int MPI_Igather(const void *in, int n_in, MPI_Datatype of_in,
                                void *out, int n_out, MPI_Datatype of_out,
                                int root, MPI_Comm comm, MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_gather(&call, from, to, root, comm) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Igather(in, n_in, of_in, out, n_out, of_out, root, comm,
                              request);
}

MPI_PRELOAD_API int MPI_Igatherv(const void *in, int n_in, MPI_Datatype of_in,
                                 void *out, const int counts[],
                                 const int displs[], MPI_Datatype of_out,
                                 int root, MPI_Comm comm, MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {
        .at = out, .type = of_out, .counts = counts, .displs = displs};

    return prepare_gatherv(&call, from, to, root, comm) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Igatherv(in, n_in, of_in, out, counts, displs, of_out,
                               root, comm, request);
}

MPI_PRELOAD_API int MPI_Iscatter(const void *in, int n_in, MPI_Datatype of_in,
                                 void *out, int n_out, MPI_Datatype of_out,
                                 int root, MPI_Comm comm, MPI_Request *request)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_scatter(&call, from, to, root, comm) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Iscatter(in, n_in, of_in, out, n_out, of_out, root, comm,
                               request);
}

MPI_PRELOAD_API int MPI_Iscatterv(const void *in, const int counts[],
                                  const int displs[], MPI_Datatype of_in,
                                  void *out, int n_out, MPI_Datatype of_out,
                                  int root, MPI_Comm comm, MPI_Request *request)
{
    struct call call;
    struct side from = {
        .at = in, .type = of_in, .counts = counts, .displs = displs};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_scatterv(&call, from, to, root, comm) &&
                   call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Iscatterv(in, counts, displs, of_in, out, n_out, of_out,
                                root, comm, request);
}

/* ---- reductions ----------------------------------------------------------- */

MPI_PRELOAD_API int MPI_Iallreduce(const void *in, void *out, int count,
                                   MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                   MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_allreduce(&call, &r) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Iallreduce(in, out, count, type, op, comm, request);
}

MPI_PRELOAD_API int MPI_Ireduce(const void *in, void *out, int count,
                                MPI_Datatype type, MPI_Op op, int root,
                                MPI_Comm comm, MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_reduce(&call, &r, root) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Ireduce(in, out, count, type, op, root, comm, request);
}

MPI_PRELOAD_API int MPI_Ireduce_scatter_block(const void *in, void *out,
                                              int count, MPI_Datatype type,
                                              MPI_Op op, MPI_Comm comm,
                                              MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_reduce_scatter_block(&call, &r) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Ireduce_scatter_block(in, out, count, type, op, comm,
                                            request);
}

MPI_PRELOAD_API int MPI_Ireduce_scatter(const void *in, void *out,
                                        const int counts[], MPI_Datatype type,
                                        MPI_Op op, MPI_Comm comm,
                                        MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, 0, counts, type, op, comm};

    return prepare_reduce_scatter(&call, &r) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Ireduce_scatter(in, out, counts, type, op, comm, request);
}

MPI_PRELOAD_API int MPI_Iscan(const void *in, void *out, int count,
                              MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_scan(&call, &r) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Iscan(in, out, count, type, op, comm, request);
}

MPI_PRELOAD_API int MPI_Iexscan(const void *in, void *out, int count,
                                MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                MPI_Request *request)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_exscan(&call, &r) && call_may_start(&call)
               ? call_start(&call, request)
               : PMPI_Iexscan(in, out, count, type, op, comm, request);
}
