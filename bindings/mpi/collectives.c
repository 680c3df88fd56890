/* SPDX-License-Identifier: BSD-3-Clause */
/* collectives.c - the collectives in three forms: those that block, those that return at
 * once, and those of MPI 4 that are prepared once and started often, which Open MPI 4 has as
 * an extension.  Each call is carried, or left to MPI. */
#include "bindings/mpi/requests.h"

#define P(...) __VA_ARGS__

/* A buffer of so many elements, one of blocks, and what a reduction works on. */
#define ONE(at_, n, of) ((struct side){.at = (at_), .count = (n), .type = (of)})
#define BLOCKS(at_, counts_, displs_, of)                                      \
    ((struct side){                                                            \
        .at = (at_), .type = (of), .counts = (counts_), .displs = (displs_)})
#define WHAT(count_, counts_)                                                  \
    (&(struct reduction){in, out, count_, counts_, type, op, comm})

/* Parameters that several collectives have, and their arguments. */
#define PAIR_PARAMS                                                            \
    const void *in, int n_in, MPI_Datatype of_in, void *out, int n_out,        \
        MPI_Datatype of_out
#define PAIR_ARGS in, n_in, of_in, out, n_out, of_out
#define OUT_BLOCKS_PARAMS                                                      \
    const void *in, int n_in, MPI_Datatype of_in, void *out,                   \
        const int counts[], const int displs[], MPI_Datatype of_out
#define OUT_BLOCKS_ARGS in, n_in, of_in, out, counts, displs, of_out
#define IN_BLOCKS_PARAMS                                                       \
    const void *in, const int counts[], const int displs[],                    \
        MPI_Datatype of_in, void *out, int n_out, MPI_Datatype of_out
#define IN_BLOCKS_ARGS in, counts, displs, of_in, out, n_out, of_out
#define ALL_BLOCKS_PARAMS                                                      \
    const void *in, const int in_counts[], const int in_displs[],              \
        MPI_Datatype of_in, void *out, const int out_counts[],                 \
        const int out_displs[], MPI_Datatype of_out
#define ALL_BLOCKS_ARGS                                                        \
    in, in_counts, in_displs, of_in, out, out_counts, out_displs, of_out
#define REDUCTION_PARAMS                                                       \
    const void *in, void *out, int count, MPI_Datatype type, MPI_Op op
#define REDUCTION_ARGS in, out, count, type, op

/* X(name, name behind MPI_I, parameters, arguments, how it is prepared): each is a
 * collective. */
#define COLLECTIVES(X)                                                         \
    X(Barrier, barrier, P(MPI_Comm comm), P(comm),                             \
      prepare_barrier(&call, comm))                                            \
    X(Bcast, bcast,                                                            \
      P(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm),     \
      P(buf, count, type, root, comm),                                         \
      prepare_bcast(&call, ONE(buf, count, type), root, comm))                 \
    X(Allgather, allgather, P(PAIR_PARAMS, MPI_Comm comm), P(PAIR_ARGS, comm), \
      prepare_allgather(&call, ONE(in, n_in, of_in), ONE(out, n_out, of_out),  \
                        comm))                                                 \
    X(Allgatherv, allgatherv, P(OUT_BLOCKS_PARAMS, MPI_Comm comm),             \
      P(OUT_BLOCKS_ARGS, comm),                                                \
      prepare_allgatherv(&call, ONE(in, n_in, of_in),                          \
                         BLOCKS(out, counts, displs, of_out), comm))           \
    X(Alltoall, alltoall, P(PAIR_PARAMS, MPI_Comm comm), P(PAIR_ARGS, comm),   \
      prepare_alltoall(&call, ONE(in, n_in, of_in), ONE(out, n_out, of_out),   \
                       comm))                                                  \
    X(Alltoallv, alltoallv, P(ALL_BLOCKS_PARAMS, MPI_Comm comm),               \
      P(ALL_BLOCKS_ARGS, comm),                                                \
      prepare_alltoallv(&call, BLOCKS(in, in_counts, in_displs, of_in),        \
                        BLOCKS(out, out_counts, out_displs, of_out), comm))    \
    X(Gather, gather, P(PAIR_PARAMS, int root, MPI_Comm comm),                 \
      P(PAIR_ARGS, root, comm),                                                \
      prepare_gather(&call, ONE(in, n_in, of_in), ONE(out, n_out, of_out),     \
                     root, comm))                                              \
    X(Gatherv, gatherv, P(OUT_BLOCKS_PARAMS, int root, MPI_Comm comm),         \
      P(OUT_BLOCKS_ARGS, root, comm),                                          \
      prepare_gatherv(&call, ONE(in, n_in, of_in),                             \
                      BLOCKS(out, counts, displs, of_out), root, comm))        \
    X(Scatter, scatter, P(PAIR_PARAMS, int root, MPI_Comm comm),               \
      P(PAIR_ARGS, root, comm),                                                \
      prepare_scatter(&call, ONE(in, n_in, of_in), ONE(out, n_out, of_out),    \
                      root, comm))                                             \
    X(Scatterv, scatterv, P(IN_BLOCKS_PARAMS, int root, MPI_Comm comm),        \
      P(IN_BLOCKS_ARGS, root, comm),                                           \
      prepare_scatterv(&call, BLOCKS(in, counts, displs, of_in),               \
                       ONE(out, n_out, of_out), root, comm))                   \
    X(Allreduce, allreduce, P(REDUCTION_PARAMS, MPI_Comm comm),                \
      P(REDUCTION_ARGS, comm), prepare_allreduce(&call, WHAT(count, NULL)))    \
    X(Reduce, reduce, P(REDUCTION_PARAMS, int root, MPI_Comm comm),            \
      P(REDUCTION_ARGS, root, comm),                                           \
      prepare_reduce(&call, WHAT(count, NULL), root))                          \
    X(Reduce_scatter_block, reduce_scatter_block,                              \
      P(REDUCTION_PARAMS, MPI_Comm comm), P(REDUCTION_ARGS, comm),             \
      prepare_reduce_scatter_block(&call, WHAT(count, NULL)))                  \
    X(Reduce_scatter, reduce_scatter,                                          \
      P(const void *in, void *out, const int counts[], MPI_Datatype type,      \
        MPI_Op op, MPI_Comm comm),                                             \
      P(in, out, counts, type, op, comm),                                      \
      prepare_reduce_scatter(&call, WHAT(0, counts)))                          \
    X(Scan, scan, P(REDUCTION_PARAMS, MPI_Comm comm), P(REDUCTION_ARGS, comm), \
      prepare_scan(&call, WHAT(count, NULL)))                                  \
    X(Exscan, exscan, P(REDUCTION_PARAMS, MPI_Comm comm),                      \
      P(REDUCTION_ARGS, comm), prepare_exscan(&call, WHAT(count, NULL)))

/* ---- the forms -------------------------------------------------------------- */

#define BLOCKING(name, iname, params, args, prepare)                           \
    MPI_PRELOAD_API int MPI_##name(params)                                     \
    {                                                                          \
        struct call call;                                                      \
                                                                               \
        return (prepare) ? call_run(&call) : PMPI_##name(args);                \
    }

#define IMMEDIATE(name, iname, params, args, prepare)                          \
    MPI_PRELOAD_API int MPI_I##iname(params, MPI_Request *request)             \
    {                                                                          \
        struct call call;                                                      \
                                                                               \
        return (prepare) && call_may_start(&call)                              \
                   ? call_start(&call, request)                                \
                   : PMPI_I##iname(args, request);                             \
    }

#define PERSISTENT(name, iname, params, args, prepare)                         \
    MPI_PRELOAD_API int INIT(MPI, name)(params, MPI_Info info,                 \
                                        MPI_Request * request)                 \
    {                                                                          \
        struct call call;                                                      \
                                                                               \
        return (prepare) && call_may_start(&call)                              \
                   ? call_persist(&call, request)                              \
                   : INIT(PMPI, name)(args, info, request);                    \
    }

#if MPI_VERSION >= 4
#define INIT(prefix, name) prefix##_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_HAVE_MPI_EXT_PCOLLREQ
#define INIT(prefix, name) prefix##X_##name##_init
#endif
#endif

COLLECTIVES(BLOCKING)
COLLECTIVES(IMMEDIATE)
#ifdef INIT
COLLECTIVES(PERSISTENT)
#endif
