/* SPDX-License-Identifier: BSD-3-Clause */
/* blocking.c - the collectives that block: each is carried, or left to MPI. */
#include "bindings/mpi/preload.h"

MPI_PRELOAD_API int MPI_Barrier(MPI_Comm comm)
{
    struct call call;

    return prepare_barrier(&call, comm) ? call_run(&call) : PMPI_Barrier(comm);
}

MPI_PRELOAD_API int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root,
                              MPI_Comm comm)
{
    struct call call;
    struct side side = {.at = buf, .count = count, .type = type};

    return prepare_bcast(&call, side, root, comm)
               ? call_run(&call)
               : PMPI_Bcast(buf, count, type, root, comm);
}

MPI_PRELOAD_API int MPI_Allgather(const void *in, int n_in, MPI_Datatype of_in,
                                  void *out, int n_out, MPI_Datatype of_out,
                                  MPI_Comm comm)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_allgather(&call, from, to, comm)
               ? call_run(&call)
               : PMPI_Allgather(in, n_in, of_in, out, n_out, of_out, comm);
}

MPI_PRELOAD_API int MPI_Allgatherv(const void *in, int n_in, MPI_Datatype of_in,
                                   void *out, const int counts[],
                                   const int displs[], MPI_Datatype of_out,
                                   MPI_Comm comm)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {
        .at = out, .type = of_out, .counts = counts, .displs = displs};

    return prepare_allgatherv(&call, from, to, comm)
               ? call_run(&call)
               : PMPI_Allgatherv(in, n_in, of_in, out, counts, displs, of_out,
                                 comm);
}

MPI_PRELOAD_API int MPI_Alltoall(const void *in, int n_in, MPI_Datatype of_in,
                                 void *out, int n_out, MPI_Datatype of_out,
                                 MPI_Comm comm)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_alltoall(&call, from, to, comm)
               ? call_run(&call)
               : PMPI_Alltoall(in, n_in, of_in, out, n_out, of_out, comm);
}

MPI_PRELOAD_API int MPI_Alltoallv(const void *in, const int in_counts[],
                                  const int in_displs[], MPI_Datatype of_in,
                                  void *out, const int out_counts[],
                                  const int out_displs[], MPI_Datatype of_out,
                                  MPI_Comm comm)
{
    struct call call;
    struct side from = {
        .at = in, .type = of_in, .counts = in_counts, .displs = in_displs};
    struct side to = {
        .at = out, .type = of_out, .counts = out_counts, .displs = out_displs};

    return prepare_alltoallv(&call, from, to, comm)
               ? call_run(&call)
               : PMPI_Alltoallv(in, in_counts, in_displs, of_in, out,
                                out_counts, out_displs, of_out, comm);
}

MPI_PRELOAD_API int MPI_Gather(const void *in, int n_in, MPI_Datatype of_in,
                               void *out, int n_out, MPI_Datatype of_out,
                               int root, MPI_Comm comm)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_gather(&call, from, to, root, comm)
               ? call_run(&call)
               : PMPI_Gather(in, n_in, of_in, out, n_out, of_out, root, comm);
}

MPI_PRELOAD_API int MPI_Gatherv(const void *in, int n_in, MPI_Datatype of_in,
                                void *out, const int counts[],
                                const int displs[], MPI_Datatype of_out,
                                int root, MPI_Comm comm)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {
        .at = out, .type = of_out, .counts = counts, .displs = displs};

    return prepare_gatherv(&call, from, to, root, comm)
               ? call_run(&call)
               : PMPI_Gatherv(in, n_in, of_in, out, counts, displs, of_out,
                              root, comm);
}

MPI_PRELOAD_API int MPI_Scatter(const void *in, int n_in, MPI_Datatype of_in,
                                void *out, int n_out, MPI_Datatype of_out,
                                int root, MPI_Comm comm)
{
    struct call call;
    struct side from = {.at = in, .count = n_in, .type = of_in};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_scatter(&call, from, to, root, comm)
               ? call_run(&call)
               : PMPI_Scatter(in, n_in, of_in, out, n_out, of_out, root, comm);
}

MPI_PRELOAD_API int MPI_Scatterv(const void *in, const int counts[],
                                 const int displs[], MPI_Datatype of_in,
                                 void *out, int n_out, MPI_Datatype of_out,
                                 int root, MPI_Comm comm)
{
    struct call call;
    struct side from = {
        .at = in, .type = of_in, .counts = counts, .displs = displs};
    struct side to = {.at = out, .count = n_out, .type = of_out};

    return prepare_scatterv(&call, from, to, root, comm)
               ? call_run(&call)
               : PMPI_Scatterv(in, counts, displs, of_in, out, n_out, of_out,
                               root, comm);
}

/* ---- reductions ----------------------------------------------------------- */

MPI_PRELOAD_API int MPI_Allreduce(const void *in, void *out, int count,
                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_allreduce(&call, &r)
               ? call_run(&call)
               : PMPI_Allreduce(in, out, count, type, op, comm);
}

MPI_PRELOAD_API int MPI_Reduce(const void *in, void *out, int count,
                               MPI_Datatype type, MPI_Op op, int root,
                               MPI_Comm comm)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_reduce(&call, &r, root)
               ? call_run(&call)
               : PMPI_Reduce(in, out, count, type, op, root, comm);
}

MPI_PRELOAD_API int MPI_Reduce_scatter_block(const void *in, void *out,
                                             int count, MPI_Datatype type,
                                             MPI_Op op, MPI_Comm comm)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_reduce_scatter_block(&call, &r)
               ? call_run(&call)
               : PMPI_Reduce_scatter_block(in, out, count, type, op, comm);
}

MPI_PRELOAD_API int MPI_Reduce_scatter(const void *in, void *out,
                                       const int counts[], MPI_Datatype type,
                                       MPI_Op op, MPI_Comm comm)
{
    struct call call;
    struct reduction r = {in, out, 0, counts, type, op, comm};

    return prepare_reduce_scatter(&call, &r)
               ? call_run(&call)
               : PMPI_Reduce_scatter(in, out, counts, type, op, comm);
}

MPI_PRELOAD_API int MPI_Scan(const void *in, void *out, int count,
                             MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_scan(&call, &r) ? call_run(&call)
                                   : PMPI_Scan(in, out, count, type, op, comm);
}

MPI_PRELOAD_API int MPI_Exscan(const void *in, void *out, int count,
                               MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct call call;
    struct reduction r = {in, out, count, NULL, type, op, comm};

    return prepare_exscan(&call, &r)
               ? call_run(&call)
               : PMPI_Exscan(in, out, count, type, op, comm);
}
