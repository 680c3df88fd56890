/* SPDX-License-Identifier: BSD-3-Clause */
/* cost.c - what the preload adds to a call of libcoll: an allreduce of 8 bytes, both in
 * turns.  "added" is the median of the rounds' differences.
 *
 * mpicc cost.c -lcoll; mpirun -np 2 -x LD_PRELOAD=libcoll_mpi_....so ./a.out
 */
#include "include/coll/coll.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 401
#define CALLS 200

static int exchange(void *arg, const void *in, void *out, size_t len)
{
    (void)arg;
    return PMPI_Allgather(in, (int)len, MPI_BYTE, out, (int)len, MPI_BYTE,
                          MPI_COMM_WORLD);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *of)
{
    qsort(of, ROUNDS, sizeof(*of), compare);
    return of[ROUNDS / 2] * 1e9 / CALLS;
}

int main(int argc, char **argv)
{
    static double direct[ROUNDS], through[ROUNDS], added[ROUNDS];
    struct coll_oob oob = {.size = sizeof(oob), .allgather = exchange};
    struct coll_comm *comm;
    double in = 1, out;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &oob.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &oob.nranks);
    if (coll_comm_create_oob(&comm, &oob, NULL))
        return 1;
    for (int r = 0; r < ROUNDS; r++) {
        double begin = MPI_Wtime();

        for (int i = 0; i < CALLS; i++)
            coll_allreduce(&in, &out, 1, COLL_F64, COLL_SUM, comm, NULL);
        direct[r] = MPI_Wtime() - begin;
        begin = MPI_Wtime();
        for (int i = 0; i < CALLS; i++)
            MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        through[r] = MPI_Wtime() - begin;
        added[r] = through[r] - direct[r];
    }
    if (oob.rank == 0)
        printf("allreduce of 8 bytes, %d ranks, medians of %d rounds of %d "
               "calls: libcoll %.0f ns, through MPI %.0f ns, added %.0f ns\n",
               oob.nranks, ROUNDS, CALLS, median(direct), median(through),
               median(added));
    coll_comm_destroy(comm);
    return MPI_Finalize();
}
