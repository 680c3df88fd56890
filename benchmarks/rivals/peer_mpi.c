/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_mpi.c - MPI; compiled once against each implementation. */
#include "benchmarks/rivals/peer.h"

#include <mpi.h>
#include <string.h>

static int failed; /* status of the last call that failed */

static int keep(int rc)
{
    if (rc != MPI_SUCCESS)
        failed = rc;
    return rc != MPI_SUCCESS;
}

static int init(int *argc, char ***argv, int *rank, int *ranks)
{
    if (keep(MPI_Init(argc, argv)))
        return -1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, ranks);
    return 0;
}

static void fini(void) { MPI_Finalize(); }

/* Return a short version text: implementations return several lines and fields, of
 * which the first is enough. */
static const char *version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int len = 0;
    size_t end;

    MPI_Get_library_version(text, &len);
    end = strcspn(text, ",\n");
    text[end] = '\0';
    for (size_t i = 0; i < end; i++)
        if (text[i] == '\t')
            text[i] = ' ';
    return text;
}

static const char *error(void)
{
    static char text[MPI_MAX_ERROR_STRING];
    int len = 0;

    MPI_Error_string(failed, text, &len);
    return text;
}

static int allreduce(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return keep(
        MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}

static int broadcast(const float *in, float *out, size_t count, int root)
{
    (void)in;
    return keep(MPI_Bcast(out, (int)count, MPI_FLOAT, root, MPI_COMM_WORLD));
}

static int allgather(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return keep(MPI_Allgather(in, (int)count, MPI_FLOAT, out, (int)count,
                              MPI_FLOAT, MPI_COMM_WORLD));
}

static int reduce_scatter(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return keep(MPI_Reduce_scatter_block(in, out, (int)count, MPI_FLOAT,
                                         MPI_SUM, MPI_COMM_WORLD));
}

static int alltoall(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return keep(MPI_Alltoall(in, (int)count, MPI_FLOAT, out, (int)count,
                             MPI_FLOAT, MPI_COMM_WORLD));
}

static int barrier(const float *in, float *out, size_t count, int root)
{
    (void)in;
    (void)out;
    (void)count;
    (void)root;
    return keep(MPI_Barrier(MPI_COMM_WORLD));
}

const struct peer_lib peer_lib = {
    .init = init,
    .fini = fini,
    .version = version,
    .error = error,
    .run = {allreduce, broadcast, allgather, reduce_scatter, alltoall, barrier},
};
