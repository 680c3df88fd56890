/* SPDX-License-Identifier: BSD-3-Clause */
/* immediate.c - collectives that return at once beside MPI's own, waited for in every
 * way, alone and in one list with messages. */
#include "bindings/mpi/tests/beside.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_WAYS 7

/* Wait for a request by the way of that number. */
static int finish(MPI_Request *request, int way)
{
    int flag = 0, index, n = 0, rc = 0;
    MPI_Status status;

    switch (way % N_WAYS) {
    case 0:
        return MPI_Wait(request, MPI_STATUS_IGNORE);
    case 1:
        return MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
    case 2:
        return MPI_Waitany(1, request, &index, &status);
    case 3:
        return MPI_Waitsome(1, request, &n, &index, &status);
    case 4:
        while (!flag && !rc)
            rc = MPI_Test(request, &flag, &status);
        return rc;
    case 5:
        while (!flag && !rc)
            rc = MPI_Testall(1, request, &flag, &status);
        return rc;
    default:
        while (!flag && !rc)
            rc = MPI_Request_get_status(*request, &flag, &status);
        return rc ? rc : MPI_Wait(request, &status);
    }
}

static int way;

/* As TRY() of beside.h; the call names `request`, too. */
#define TRY_I(what, ...)                                                       \
    do {                                                                       \
        MPI_Request request;                                                   \
                                                                               \
        beside_reset();                                                        \
        if (MPI_##__VA_ARGS__ || finish(&request, way++) ||                    \
            request != MPI_REQUEST_NULL)                                       \
            complain(what);                                                    \
        beside_keep();                                                         \
        beside_reset();                                                        \
        if (PMPI_##__VA_ARGS__ || PMPI_Wait(&request, MPI_STATUS_IGNORE))      \
            complain("MPI: " what);                                            \
        beside_compare(what);                                                  \
    } while (0)

/* ---- each function -------------------------------------------------------- */

static void gathers(MPI_Comm comm, const struct kind *in,
                    const struct kind *out)
{
    int n_in = 6 * in->per, n_out = 6 * out->per, root = size - 1;

    TRY_I("igather", Igather(source, n_in, in->type, result, n_out, out->type,
                             root, comm, &request));
    TRY_I("igather in place",
          Igather(rank == root ? MPI_IN_PLACE : source, n_in, in->type, result,
                  n_out, out->type, root, comm, &request));
    TRY_I("iscatter", Iscatter(source, n_out, out->type, result, n_in, in->type,
                               root, comm, &request));
    TRY_I("ibcast",
          Ibcast(result, rank == root ? n_in : n_out,
                 rank == root ? in->type : out->type, root, comm, &request));
    TRY_I("iallgather", Iallgather(source, n_in, in->type, result, n_out,
                                   out->type, comm, &request));
    TRY_I("ialltoall", Ialltoall(source, n_in, in->type, result, n_out,
                                 out->type, comm, &request));
    TRY_I("ialltoall in place",
          Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, result, n_out,
                    out->type, comm, &request));
}

static void gathers_v(MPI_Comm comm, const struct kind *in,
                      const struct kind *out)
{
    int counts[MAX_RANKS], displs[MAX_RANKS], mine = (rank % 3) * in->per;
    int out_counts[MAX_RANKS], in_counts[MAX_RANKS], apart[MAX_RANKS];

    for (int r = 0; r < size; r++) {
        counts[r] = (r % 3) * out->per;
        displs[r] = (size - 1 - r) * 3 * out->per;
        apart[r] = r * 3 * in->per;
        in_counts[r] = (rank + r) % 3 * in->per;
        out_counts[r] = (rank + r) % 3 * out->per;
    }
    TRY_I("igatherv", Igatherv(source, mine, in->type, result, counts, displs,
                               out->type, 0, comm, &request));
    TRY_I("iscatterv", Iscatterv(source, counts, displs, out->type, result,
                                 mine, in->type, 0, comm, &request));
    TRY_I("iallgatherv", Iallgatherv(source, mine, in->type, result, counts,
                                     displs, out->type, comm, &request));
    TRY_I("ialltoallv",
          Ialltoallv(source, in_counts, apart, in->type, result, out_counts,
                     displs, out->type, comm, &request));
}

static void reductions(MPI_Comm comm)
{
    int counts[MAX_RANKS];

    for (int r = 0; r < size; r++)
        counts[r] = (r + 1) % 3 * 4;
    fill_integers(sizeof(int));
    TRY_I("ibarrier", Ibarrier(comm, &request));
    TRY_I("iallreduce",
          Iallreduce(source, result, 12, MPI_INT, MPI_SUM, comm, &request));
    TRY_I("large iallreduce",
          Iallreduce(source, result, 60000, MPI_INT, MPI_SUM, comm, &request));
    TRY_I("iallreduce in place", Iallreduce(MPI_IN_PLACE, result, 12, MPI_INT,
                                            MPI_MAX, comm, &request));
    TRY_I("ireduce",
          Ireduce(source, result, 12, MPI_INT, MPI_PROD, 0, comm, &request));
    TRY_I("iscan", Iscan(source, result, 12, MPI_INT, MPI_SUM, comm, &request));
    TRY_I("iexscan",
          Iexscan(source, result, 12, MPI_INT, MPI_SUM, comm, &request));
    TRY_I("ireduce_scatter", Ireduce_scatter(source, result, counts, MPI_INT,
                                             MPI_SUM, comm, &request));
    TRY_I("ireduce_scatter_block",
          Ireduce_scatter_block(source, result, 12, MPI_INT, MPI_SUM, comm,
                                &request));
    n_compared = 12 * sizeof(int);
    TRY_I("ireduce_scatter_block in place",
          Ireduce_scatter_block(MPI_IN_PLACE, result, 12, MPI_INT, MPI_SUM,
                                comm, &request));
    n_compared = BYTES;
    fill_bytes();
}

/* ---- several requests ----------------------------------------------------- */

#define N_MIXED 12

/* Collectives and messages round a ring, in one list. */
static void mixed(MPI_Comm comm, int how)
{
    MPI_Request list[3 * N_MIXED];
    int in[N_MIXED], sums[N_MIXED], got[N_MIXED], left = 3 * N_MIXED, index;
    int right_rank = (rank + 1) % size, left_rank = (rank + size - 1) % size;

    for (int i = 0; i < N_MIXED; i++) {
        in[i] = rank + i;
        MPI_Irecv(&got[i], 1, MPI_INT, left_rank, i, comm, &list[3 * i]);
        MPI_Iallreduce(&in[i], &sums[i], 1, MPI_INT, MPI_SUM, comm,
                       &list[3 * i + 1]);
        MPI_Isend(&in[i], 1, MPI_INT, right_rank, i, comm, &list[3 * i + 2]);
    }
    if (how == 0)
        MPI_Waitall(left, list, MPI_STATUSES_IGNORE);
    while (how && left) {
        int n = 1, indices[3 * N_MIXED];

        if (how == 1)
            MPI_Waitany(3 * N_MIXED, list, &index, MPI_STATUS_IGNORE);
        else
            MPI_Waitsome(3 * N_MIXED, list, &n, indices, MPI_STATUSES_IGNORE);
        left -= n;
    }
    for (int i = 0; i < N_MIXED; i++)
        if (got[i] != left_rank + i ||
            sums[i] != size * i + size * (size - 1) / 2)
            complain("collectives and messages in one list are wrong");
}

/* Rank 1 answers only when the collective has ended there, which needs rank 0; and that
 * waits in MPI_Recv(). */
static void received(MPI_Comm comm)
{
    static int in[50000], out[50000];
    int answer = 0;
    MPI_Request request;

    MPI_Iallreduce(in, out, 50000, MPI_INT, MPI_SUM, comm, &request);
    if (rank == 0)
        MPI_Recv(&answer, 1, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(&answer, 1, MPI_INT, 0, 3, comm);
}

/* What the program frees while the call runs is still used. */
static void freed(void)
{
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Request request;
    int *buf = calloc(100, sizeof(int));

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_vector(20, 2, 4, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 100; i++)
        buf[i] = rank == 0 ? i : -1;
    MPI_Ibcast(buf, 1, type, 0, comm, &request);
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (buf[5] != 5 || buf[76] != 76 || buf[6] != (rank == 0 ? 6 : -1))
        complain("a broadcast whose type and communicator are freed is wrong");
    free(buf);
}

/* Blocking calls while others run. */
static void among(MPI_Comm comm)
{
    MPI_Request requests[2];
    int one = 1, sums[3] = {0};

    MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Allreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, comm);
    MPI_Iallreduce(&one, &sums[2], 1, MPI_INT, MPI_SUM, comm, &requests[1]);
    try_sum(comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++)
        if (sums[i] != size)
            complain("sums while others run are wrong");
}

/* ---- threads -------------------------------------------------------------- */

#define N_THREADS 3
#define ROUNDS 100

struct thread {
    pthread_t id;
    MPI_Comm comm;
    int n_wrong;
};

/* Sums of one communicator that do not block, with others that do among them. */
static void *work(void *arg)
{
    struct thread *me = arg;
    int n;

    MPI_Comm_size(me->comm, &n);
    for (int i = 0; i < ROUNDS; i++) {
        int one = 1, sums[2] = {0}, flag = 0;
        MPI_Request request;

        MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, me->comm, &request);
        MPI_Allreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, me->comm);
        if (i % 2)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        while (i % 2 == 0 && !flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        me->n_wrong += sums[0] != n || sums[1] != n;
    }
    return NULL;
}

static void threads(void)
{
    struct thread list[N_THREADS] = {0};

    for (int t = 0; t < N_THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &list[t].comm);
    for (int t = 0; t < N_THREADS; t++)
        if (pthread_create(&list[t].id, NULL, work, &list[t]))
            abort();
    for (int t = 0; t < N_THREADS; t++) {
        pthread_join(list[t].id, NULL);
        MPI_Comm_free(&list[t].comm);
        if (list[t].n_wrong)
            complain("sums of several threads are wrong");
    }
}

/* ---- the program ---------------------------------------------------------- */

static void all(MPI_Comm comm)
{
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    fill_bytes();
    for (int i = 0; i < N_KINDS; i++)
        for (int o = 0; o < N_KINDS; o++)
            if (kinds[i].basic == kinds[o].basic) {
                gathers(comm, &kinds[i], &kinds[o]);
                gathers_v(comm, &kinds[i], &kinds[o]);
            }
    reductions(comm);
    among(comm);
    if (size > 1)
        received(comm);
    for (int how = 0; how < 3; how++)
        mixed(comm, how);
}

int main(int argc, char **argv)
{
    int level, wanted = argc > 1 && !strcmp(argv[1], "multiple")
                            ? MPI_THREAD_MULTIPLE
                            : MPI_THREAD_SINGLE;
    MPI_Comm part;

    MPI_Init_thread(&argc, &argv, wanted, &level);
    beside_init();
    all(MPI_COMM_WORLD);
    freed();
    if (level == MPI_THREAD_MULTIPLE && wanted == level)
        threads();
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &part);
    all(part);
    MPI_Comm_free(&part);
    return beside_end();
}
