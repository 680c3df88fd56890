/* SPDX-License-Identifier: BSD-3-Clause */
/* blocking.c - every carried collective beside MPI's own, which PMPI_ still reaches: the
 * whole output must be equal byte for byte, gaps and what lies behind included. */
#include "bindings/mpi/tests/beside.h"

#include <string.h>

/* ---- moves ---------------------------------------------------------------- */

static void gathers(MPI_Comm comm, const struct kind *in,
                    const struct kind *out)
{
    int n_in = 6 * in->per, n_out = 6 * out->per;

    for (int root = 0; root < size; root++) {
        TRY("gather", Gather(source, n_in, in->type, result, n_out, out->type,
                             root, comm));
        TRY("gather in place",
            Gather(rank == root ? MPI_IN_PLACE : source, n_in, in->type, result,
                   n_out, out->type, root, comm));
        TRY("scatter", Scatter(source, n_out, out->type, result, n_in, in->type,
                               root, comm));
        TRY("scatter in place", Scatter(source, n_out, out->type,
                                        rank == root ? MPI_IN_PLACE : result,
                                        n_in, in->type, root, comm));
        TRY("bcast", Bcast(result, rank == root ? n_in : n_out,
                           rank == root ? in->type : out->type, root, comm));
    }
    TRY("allgather",
        Allgather(source, n_in, in->type, result, n_out, out->type, comm));
    TRY("allgather in place", Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
                                        result, n_out, out->type, comm));
    TRY("alltoall",
        Alltoall(source, n_in, in->type, result, n_out, out->type, comm));
    TRY("alltoall in place", Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
                                      result, n_out, out->type, comm));
}

/* Blocks of 0, 1, 2 ... units, in reverse order, with gaps. */
static void fill_blocks(int per, int counts[], int displs[])
{
    int at = 1;

    for (int r = size - 1; r >= 0; r--) {
        counts[r] = (r % 3) * per;
        displs[r] = at;
        at += counts[r] + r % 2;
    }
}

static void gathers_v(MPI_Comm comm, const struct kind *in,
                      const struct kind *out)
{
    int counts[MAX_RANKS], displs[MAX_RANKS], mine = (rank % 3) * in->per;

    fill_blocks(out->per, counts, displs);
    for (int root = 0; root < size; root++) {
        TRY("gatherv", Gatherv(source, mine, in->type, result, counts, displs,
                               out->type, root, comm));
        TRY("gatherv in place",
            Gatherv(rank == root ? MPI_IN_PLACE : source, mine, in->type,
                    result, counts, displs, out->type, root, comm));
        TRY("scatterv", Scatterv(source, counts, displs, out->type, result,
                                 mine, in->type, root, comm));
        TRY("scatterv in place", Scatterv(source, counts, displs, out->type,
                                          rank == root ? MPI_IN_PLACE : result,
                                          mine, in->type, root, comm));
    }
    TRY("allgatherv", Allgatherv(source, mine, in->type, result, counts, displs,
                                 out->type, comm));
    TRY("allgatherv in place",
        Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, result, counts, displs,
                   out->type, comm));
}

/* Rank r sends (r + q) % 3 units to rank q. */
static void alltoalls_v(MPI_Comm comm, const struct kind *in,
                        const struct kind *out)
{
    int in_counts[MAX_RANKS], in_displs[MAX_RANKS];
    int out_counts[MAX_RANKS], out_displs[MAX_RANKS];

    for (int q = 0; q < size; q++) {
        in_counts[q] = (rank + q) % 3 * in->per;
        in_displs[q] = q * 3 * in->per;
        out_counts[q] = (rank + q) % 3 * out->per;
        out_displs[q] = (size - 1 - q) * 3 * out->per;
    }
    TRY("alltoallv", Alltoallv(source, in_counts, in_displs, in->type, result,
                               out_counts, out_displs, out->type, comm));
    TRY("alltoallv in place",
        Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, result,
                  out_counts, out_displs, out->type, comm));
}

static void moves(MPI_Comm comm)
{
    for (int i = 0; i < N_KINDS; i++)
        for (int o = 0; o < N_KINDS; o++) {
            const struct kind *in = &kinds[i], *out = &kinds[o];

            if (in->basic != out->basic)
                continue;
            gathers(comm, in, out);
            gathers_v(comm, in, out);
            alltoalls_v(comm, in, out);
        }
    TRY("barrier", Barrier(comm));
    TRY("empty bcast", Bcast(NULL, 0, MPI_INT, 0, comm));
    TRY("empty allgather", Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, comm));
}

/* ---- reductions ----------------------------------------------------------- */

static const char *name_of(MPI_Op op)
{
    const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MAX,    MPI_MIN,
                          MPI_LAND, MPI_LOR,  MPI_LXOR,   MPI_BAND,
                          MPI_BOR,  MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
    const char *const names[] = {"sum",  "prod", "max",    "min",
                                 "land", "lor",  "lxor",   "band",
                                 "bor",  "bxor", "minloc", "maxloc"};

    for (int i = 0; i < 12; i++)
        if (ops[i] == op)
            return names[i];
    return "own operation";
}

static void reduce_all(MPI_Comm comm, char *from, int count, MPI_Datatype type,
                       MPI_Op op)
{
    int counts[MAX_RANKS];

    name_try(name_of(op), type, count);
    for (int r = 0; r < size; r++)
        counts[r] = (r + 1) % 3 * (count / 3);
    TRY("allreduce", Allreduce(from, result, count, type, op, comm));
    TRY("allreduce in place",
        Allreduce(MPI_IN_PLACE, result, count, type, op, comm));
    for (int root = 0; root < size; root++) {
        TRY("reduce", Reduce(from, result, count, type, op, root, comm));
        if (from ==
            source) /* MPICH 4.0 fails in place, if op does not commute */
            TRY_AS("reduce in place",
                   (Reduce(from, result, count, type, op, root, comm)),
                   Reduce(rank == root ? MPI_IN_PLACE : from, result, count,
                          type, op, root, comm));
    }
    TRY("scan", Scan(from, result, count, type, op, comm));
    TRY("scan in place", Scan(MPI_IN_PLACE, result, count, type, op, comm));
    TRY("exscan", Exscan(from, result, count, type, op, comm));
    TRY("reduce_scatter_block",
        Reduce_scatter_block(from, result, count, type, op, comm));
    TRY("reduce_scatter", Reduce_scatter(from, result, counts, type, op, comm));
    n_compared = (size_t)count * type_size(type);
    TRY("reduce_scatter_block in place",
        Reduce_scatter_block(MPI_IN_PLACE, result, count, type, op, comm));
    n_compared = (size_t)counts[rank] * type_size(type);
    TRY("reduce_scatter in place",
        Reduce_scatter(MPI_IN_PLACE, result, counts, type, op, comm));
    n_compared = BYTES;
}

static void reductions(MPI_Comm comm)
{
    const MPI_Datatype integers[] = {
        MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_SHORT,    MPI_UNSIGNED_SHORT,
        MPI_INT,         MPI_UNSIGNED,      MPI_LONG,     MPI_UNSIGNED_LONG,
        MPI_LONG_LONG,   MPI_INT8_T,        MPI_UINT16_T, MPI_INT32_T,
        MPI_UINT64_T,    MPI_AINT,          MPI_OFFSET};
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX,  MPI_MIN, MPI_LAND,
                          MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};

    for (size_t t = 0; t < sizeof(integers) / sizeof(*integers); t++)
        for (size_t o = t % 3; o < sizeof(ops) / sizeof(*ops); o += 3) {
            fill_integers(type_size(integers[t]));
            reduce_all(comm, source, 9, integers[t], ops[o]);
        }
    fill_integers(sizeof(int));
    for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++)
        reduce_all(comm, source, 31, MPI_INT, ops[o]);
    for (size_t o = 0; o < 4; o++) {
        fill_doubles();
        reduce_all(comm, source, 12, MPI_DOUBLE, ops[o]);
        fill_floats();
        reduce_all(comm, source, 12, MPI_FLOAT, ops[o]);
    }
    fill_bytes();
    reduce_all(comm, source, 12, MPI_BYTE, MPI_BXOR);
    reduce_all(comm, source + 1, 12, MPI_INT, MPI_SUM); /* misaligned */
    reduce_all(comm, source, 0, MPI_INT, MPI_SUM);
    reduce_all(comm, source, 60000, MPI_INT, MPI_SUM);
}

static void complex_numbers(MPI_Comm comm)
{
    const MPI_Datatype doubles[] = {MPI_C_DOUBLE_COMPLEX, MPI_DOUBLE_COMPLEX,
                                    MPI_CXX_DOUBLE_COMPLEX};
    const MPI_Datatype floats[] = {MPI_C_COMPLEX, MPI_COMPLEX,
                                   MPI_CXX_FLOAT_COMPLEX};

    for (int i = 0; i < 3; i++) {
        fill_doubles();
        reduce_all(comm, source, 9, doubles[i], i % 2 ? MPI_PROD : MPI_SUM);
        reduce_all(comm, source + sizeof(double), 9, doubles[i], MPI_PROD);
        fill_floats();
        reduce_all(comm, source, 9, floats[i], i % 2 ? MPI_SUM : MPI_PROD);
        reduce_all(comm, source + sizeof(float), 9, floats[i], MPI_SUM);
    }
    fill_bytes();
}

/* Many values are equal, so that indices decide; some are negative. */
static void pairs(MPI_Comm comm)
{
    for (int i = 0; i < 6; i++) {
        const MPI_Datatype types[] = {MPI_DOUBLE_INT, MPI_FLOAT_INT, MPI_2INT};
        MPI_Op op = i < 3 ? MPI_MINLOC : MPI_MAXLOC;

        fill_pairs(i % 3);
        reduce_all(comm, source, 9, types[i % 3], op);
        reduce_all(comm, source, 3000, types[i % 3], op);
    }
    fill_pairs(2);
    reduce_all(comm, source + sizeof(int) * 2, 9, MPI_2INTEGER, MPI_MINLOC);
    fill_bytes();
}

static void logicals(MPI_Comm comm)
{
    const MPI_Op ops[] = {MPI_LAND, MPI_LOR, MPI_LXOR};

    fill_integers(1);
    for (size_t i = 0; i < BYTES; i++)
        source[i] = source[i] != 0;
    for (int i = 0; i < 3; i++) {
        reduce_all(comm, source, 9, MPI_C_BOOL, ops[i]);
        reduce_all(comm, source, 9, MPI_CXX_BOOL, ops[i]);
    }
    fill_bytes();
}

/* ---- operations of the program's own -------------------------------------- */

/* Associative, but it does not commute: 16 bits of a, 16 of b, x -> a x + b. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const unsigned *left = in;
    unsigned *right = inout;

    if (*type != MPI_UNSIGNED)
        complain("the function of an operation gets another type");
    for (int i = 0; i < *len; i++) {
        unsigned a = left[i] >> 16, b = left[i] & 0xffff;
        unsigned c = right[i] >> 16, d = right[i] & 0xffff;

        right[i] = (a * c & 0xffff) << 16 | ((c * b + d) & 0xffff);
    }
}

static void add_long(void *in, void *inout, int *len, MPI_Datatype *type)
{
    if (*type != MPI_LONG)
        complain("the function of an operation gets another type");
    for (int i = 0; i < *len; i++)
        ((long *)inout)[i] += ((const long *)in)[i];
}

/* The complex number with the greater absolute value; of equals, by their parts. */
static void longer(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const double *a = in;
    double *b = inout;

    if (*type != MPI_C_DOUBLE_COMPLEX)
        complain("the function of an operation gets another type");
    for (int i = 0; i < 2 * *len; i += 2) {
        double more = a[i] * a[i] + a[i + 1] * a[i + 1] - b[i] * b[i] -
                      b[i + 1] * b[i + 1];

        if (more > 0 ||
            (more == 0 && 8 * a[i] + a[i + 1] > 8 * b[i] + b[i + 1]))
            memcpy(&b[i], &a[i], 2 * sizeof(*a));
    }
}

static void user_operations(MPI_Comm comm)
{
    MPI_Op ordered, sum, longest;

    MPI_Op_create(compose, 0, &ordered);
    MPI_Op_create(add_long, 1, &sum);
    MPI_Op_create(longer, 1, &longest);
    reduce_all(comm, source, 30, MPI_UNSIGNED, ordered);
    reduce_all(comm, source, 3000, MPI_UNSIGNED, ordered);
    reduce_all(comm, source, 30, MPI_LONG, sum);
    fill_doubles();
    reduce_all(comm, source, 300, MPI_C_DOUBLE_COMPLEX, longest);
    fill_bytes();
    MPI_Op_free(&ordered);
    MPI_Op_free(&sum);
    MPI_Op_free(&longest);
}

/* ---- communicators -------------------------------------------------------- */

static void all(MPI_Comm comm)
{
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    fill_bytes();
    moves(comm);
    reductions(comm);
    complex_numbers(comm);
    pairs(comm);
    logicals(comm);
    user_operations(comm);
}

/* Communicators that are freed in another order on each rank. */
static void any_order(void)
{
    MPI_Comm comms[6], grid;
    int dims[1] = {0}, periods[1] = {1}, me, n;

    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int i = 0; i < 6; i++)
        if (i % 2)
            MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &comms[i]);
        else
            MPI_Comm_dup(i ? comms[i - 2] : MPI_COMM_WORLD, &comms[i]);
    dims[0] = n;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &grid);
    for (int i = 0; i < 6; i++)
        try_sum(comms[i]);
    try_sum(grid);
    all(comms[1]);
    for (int i = 0; i < 6; i++)
        MPI_Comm_free(&comms[(i + me) % 6]);
    try_sum(grid);
    MPI_Comm_free(&grid);
    try_sum(MPI_COMM_WORLD);
}

/* An intercommunicator and its merger. */
static void across(void)
{
    MPI_Comm half, inter, merged;
    int me, n, sum, one = 1;

    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 1, &inter);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    if (sum != (me % 2 ? (n + 1) / 2 : n / 2))
        complain("the sum over an intercommunicator is wrong");
    MPI_Intercomm_merge(inter, me % 2, &merged);
    try_sum(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* ---- errors, and MPI's own messages --------------------------------------- */

static void errors(void)
{
    int x = 0, rc;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = MPI_Bcast(&x, -1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rc == MPI_SUCCESS)
        complain("a negative count is no error");
    rc = MPI_Bcast(&x, 1, MPI_INT, 1000, MPI_COMM_WORLD);
    if (rc == MPI_SUCCESS)
        complain("a wrong root is no error");
    rc = MPI_Allreduce(source, result, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD);
    if (rc == MPI_SUCCESS)
        complain("bitwise and of doubles is no error");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Rank 0 waits in a collective while its large message has yet to move, and rank 1 comes
 * to the collective only when it has got it. */
static void messages(void)
{
    static char block[8 << 20];
    MPI_Request request;
    int me;

    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 0)
        MPI_Isend(block, sizeof(block), MPI_BYTE, 1, 7, MPI_COMM_WORLD,
                  &request);
    if (me == 1)
        MPI_Recv(block, sizeof(block), MPI_BYTE, 0, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Rank 1 has a lock on the window of rank 0, which is in a collective. */
static void windows(void)
{
    MPI_Win win;
    int me, at = 0, put = 5;

    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Win_create(&at, sizeof(at), sizeof(at), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    if (me == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(&put, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    beside_init();
    all(MPI_COMM_WORLD);
    any_order();
    across();
    errors();
    messages();
    windows();
    return beside_end();
}
