/* SPDX-License-Identifier: BSD-3-Clause */
/* beside.c - what the tests of the preload share. */
#include "bindings/mpi/tests/beside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kind kinds[N_KINDS];
char *source, *result;
int rank, size;
size_t n_compared = BYTES;

static char *kept;
static int n_wrong, world_rank;
static char trying[100 + MPI_MAX_OBJECT_NAME];

void complain(const char *what)
{
    if (n_wrong++ < 10)
        fprintf(stderr, "rank %d (%d of %d): %s %s\n", world_rank, rank, size,
                what, trying);
}

void name_try(const char *what, MPI_Datatype type, int count)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    int len;

    PMPI_Type_get_name(type, name, &len);
    snprintf(trying, sizeof(trying), "(%s, %d of %s)", what, count, name);
}

size_t type_size(MPI_Datatype type)
{
    int bytes;

    MPI_Type_size(type, &bytes);
    return (size_t)bytes;
}

void fill_bytes(void)
{
    for (size_t i = 0; i < BYTES; i++)
        source[i] = (char)(i * 7 + (size_t)rank * 31 + i / 256);
}

void fill_integers(size_t bytes)
{
    memset(source, 0, BYTES);
    for (size_t i = 0; i < BYTES / bytes; i++)
        source[i * bytes] = (char)((i * 5 + (size_t)rank * 7 + i / 16) % 3);
}

void fill_doubles(void)
{
    for (size_t i = 0; i < BYTES / sizeof(double); i++)
        ((double *)(void *)source)[i] = (double)((i + (size_t)rank) % 5) - 2;
}

void fill_floats(void)
{
    for (size_t i = 0; i < BYTES / sizeof(float); i++)
        ((float *)(void *)source)[i] = (float)((i + (size_t)rank) % 5) - 2;
}

void fill_pairs(int kind)
{
    size_t step = kind == 0 ? 16 : 8;

    fill_bytes();
    for (size_t i = 0; i < BYTES / step; i++) {
        int value = (int)((i + (size_t)rank) % 3) - 1;
        int index = (int)((i * 5 + (size_t)rank * 3) % 7);
        double as_double = value;
        float as_float = (float)value;
        char *at = source + i * step;

        if (kind == 0)
            memcpy(at, &as_double, sizeof(as_double));
        else if (kind == 1)
            memcpy(at, &as_float, sizeof(as_float));
        else
            memcpy(at, &value, sizeof(value));
        memcpy(at + step / 2, &index, sizeof(index));
    }
}

/* Two ints with a gap, the second one first. */
static MPI_Datatype odd_ints(void)
{
    int lens[2] = {1, 1}, displs[2] = {2, 0};
    MPI_Datatype plain, type;

    MPI_Type_indexed(2, lens, displs, MPI_INT, &plain);
    MPI_Type_create_resized(plain, 0, 4 * sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&plain);
    return type;
}

static void make_kinds(void)
{
    MPI_Datatype pair, copy, odd = odd_ints(), vector, bytes;

    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_dup(pair, &copy);
    MPI_Type_vector(2, 1, 3, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Type_vector(2, 1, 2, MPI_CHAR, &bytes);
    MPI_Type_commit(&bytes);
    kinds[0] = (struct kind){MPI_INT, MPI_INT, 2};
    kinds[1] = (struct kind){pair, MPI_INT, 1};
    kinds[2] = (struct kind){copy, MPI_INT, 1};
    kinds[3] = (struct kind){odd, MPI_INT, 1};
    kinds[4] = (struct kind){vector, MPI_INT, 1};
    kinds[5] = (struct kind){MPI_DOUBLE_INT, MPI_DOUBLE_INT, 2};
    kinds[6] = (struct kind){MPI_CHAR, MPI_CHAR, 2};
    kinds[7] = (struct kind){bytes, MPI_CHAR, 1};
}

void beside_init(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    source = malloc(BYTES);
    result = malloc(BYTES);
    kept = malloc(BYTES);
    if (!source || !result || !kept)
        abort();
    make_kinds();
}

void beside_reset(void)
{
    memcpy(result, source, BYTES);
    memset(result + BYTES / 2, 0x5a, BYTES - BYTES / 2);
}

void beside_keep(void) { memcpy(kept, result, BYTES); }

void beside_compare(const char *what)
{
    if (memcmp(kept, result, n_compared))
        complain(what);
}

void try_sum(MPI_Comm comm)
{
    int one = 1, sum = 0, n;

    MPI_Comm_size(comm, &n);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != n)
        complain("a sum over a communicator is wrong");
}

int beside_end(void)
{
    int all = 0;

    for (int k = 0; k < N_KINDS; k++)
        if (kinds[k].type != kinds[k].basic)
            MPI_Type_free(&kinds[k].type);
    PMPI_Allreduce(&n_wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    free(source);
    free(result);
    free(kept);
    MPI_Finalize();
    return all != 0;
}
