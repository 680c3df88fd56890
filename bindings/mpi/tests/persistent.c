/* SPDX-License-Identifier: BSD-3-Clause */
/* persistent.c - collectives that are prepared once, beside MPI's blocking ones; ranks
 * start them in different orders. */
#include "bindings/mpi/tests/beside.h"

#include <stdlib.h>
#include <string.h>

#if MPI_VERSION >= 4
#define INIT(name) MPI_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_HAVE_MPI_EXT_PCOLLREQ
#define INIT(name) MPIX_##name##_init
#endif
#endif

#ifdef INIT

#define STARTS 3

/* As TRY() of beside.h: prepare the call, and start it again and
 * again; MPI's own blocking call has the same arguments. */
#define TRY_P(name, ...)                                                       \
    do {                                                                       \
        MPI_Request request;                                                   \
                                                                               \
        if (INIT(name)(__VA_ARGS__, comm, MPI_INFO_NULL, &request))            \
            complain("cannot prepare " #name);                                 \
        for (int s = 0; s < STARTS; s++) {                                     \
            beside_reset();                                                    \
            if (MPI_Start(&request) ||                                         \
                MPI_Wait(&request, MPI_STATUS_IGNORE) ||                       \
                request == MPI_REQUEST_NULL)                                   \
                complain(#name);                                               \
            beside_keep();                                                     \
            beside_reset();                                                    \
            if (PMPI_##name(__VA_ARGS__, comm))                                \
                complain("MPI: " #name);                                       \
            beside_compare(#name);                                             \
        }                                                                      \
        MPI_Request_free(&request);                                            \
    } while (0)

static void moves(MPI_Comm comm, const struct kind *in, const struct kind *out)
{
    int n_in = 6 * in->per, n_out = 6 * out->per, root = size - 1;
    int counts[MAX_RANKS], displs[MAX_RANKS], mine = (rank % 3) * in->per;

    for (int r = 0; r < size; r++) {
        counts[r] = (r % 3) * out->per;
        displs[r] = (size - 1 - r) * 3 * out->per;
    }
    TRY_P(Bcast, result, rank == root ? n_in : n_out,
          rank == root ? in->type : out->type, root);
    TRY_P(Allgather, source, n_in, in->type, result, n_out, out->type);
    TRY_P(Allgatherv, source, mine, in->type, result, counts, displs,
          out->type);
    TRY_P(Alltoall, source, n_in, in->type, result, n_out, out->type);
    TRY_P(Gather, source, n_in, in->type, result, n_out, out->type, root);
    TRY_P(Gatherv, source, mine, in->type, result, counts, displs, out->type,
          root);
    TRY_P(Scatter, source, n_out, out->type, result, n_in, in->type, root);
    TRY_P(Scatterv, source, counts, displs, out->type, result, mine, in->type,
          root);
}

static void alltoall_v(MPI_Comm comm)
{
    int counts[MAX_RANKS], displs[MAX_RANKS];

    for (int q = 0; q < size; q++) {
        counts[q] = (rank + q) % 3;
        displs[q] = q * 3;
    }
    TRY_P(Alltoallv, source, counts, displs, MPI_INT, result, counts, displs,
          MPI_INT);
}

static void reductions(MPI_Comm comm)
{
    int counts[MAX_RANKS];

    for (int r = 0; r < size; r++)
        counts[r] = (r + 1) % 3 * 4;
    fill_integers(sizeof(int));
    TRY_P(Allreduce, source, result, 12, MPI_INT, MPI_SUM);
    TRY_P(Allreduce, MPI_IN_PLACE, result, 12, MPI_INT, MPI_SUM);
    TRY_P(Allreduce, source, result, 60000, MPI_INT, MPI_SUM);
    TRY_P(Reduce, source, result, 12, MPI_INT, MPI_PROD, 0);
    TRY_P(Scan, source, result, 12, MPI_INT, MPI_SUM);
    TRY_P(Exscan, source, result, 12, MPI_INT, MPI_SUM);
    TRY_P(Reduce_scatter, source, result, counts, MPI_INT, MPI_SUM);
    TRY_P(Reduce_scatter_block, source, result, 12, MPI_INT, MPI_SUM);
}

/* Each rank starts them in an order of its own, with messages in the list. */
static void any_order(MPI_Comm comm)
{
    enum { N = 5 };
    MPI_Request list[N + 3];
    int in[N], sums[N], sent = rank, got = -1, n = N;

    for (int i = 0; i < N; i++)
        INIT(Allreduce)
    (&in[i], &sums[i], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &list[i]);
    INIT(Barrier)(comm, MPI_INFO_NULL, &list[n++]);
    MPI_Recv_init(&got, 1, MPI_INT, (rank + size - 1) % size, 1, comm,
                  &list[n++]);
    MPI_Send_init(&sent, 1, MPI_INT, (rank + 1) % size, 1, comm, &list[n++]);
    for (int s = 0; s < STARTS; s++) {
        for (int i = 0; i < N; i++)
            in[i] = i + s;
        if (s == 0)
            MPI_Startall(n, list);
        for (int i = 0; s && i < n; i++)
            MPI_Start(&list[(i + rank * s) % n]);
        MPI_Waitall(n, list, MPI_STATUSES_IGNORE);
        for (int i = 0; i < N; i++)
            if (sums[i] != size * (i + s))
                complain("persistent sums in any order are wrong");
        if (got != (rank + size - 1) % size)
            complain("a persistent receive is wrong");
    }
    for (int i = 0; i < n; i++)
        MPI_Request_free(&list[i]);
}

/* Rank 0: start both, wait for the second, then for the first.  The others: the second one,
 * and a blocking call, before they start the first one. */
static void crosswise(MPI_Comm comm)
{
    MPI_Request first, second;
    int in[2], sums[2], one = 1, sum;

    INIT(Allreduce)
    (&in[0], &sums[0], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &first);
    INIT(Allreduce)
    (&in[1], &sums[1], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &second);
    for (int s = 0; s < 20 * STARTS; s++) {
        in[0] = s;
        in[1] = s + 1;
        if (rank == 0)
            MPI_Start(&first);
        MPI_Start(&second);
        MPI_Wait(&second, MPI_STATUS_IGNORE);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (rank)
            MPI_Start(&first);
        MPI_Wait(&first, MPI_STATUS_IGNORE);
        if (sums[0] != size * s || sums[1] != size * (s + 1) || sum != size)
            complain("persistent sums crosswise are wrong");
    }
    MPI_Request_free(&first);
    MPI_Request_free(&second);
}

static void all(void)
{
    moves(MPI_COMM_WORLD, &kinds[0], &kinds[3]);
    moves(MPI_COMM_WORLD, &kinds[4], &kinds[1]);
    alltoall_v(MPI_COMM_WORLD);
    reductions(MPI_COMM_WORLD);
    any_order(MPI_COMM_WORLD);
    crosswise(MPI_COMM_WORLD);
}

#else /* this MPI has none */
static void all(void) {}
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    beside_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    fill_bytes();
    all();
    try_sum(MPI_COMM_WORLD);
    return beside_end();
}
