/* SPDX-License-Identifier: BSD-3-Clause */
/* beside.h - a call of MPI that libcoll carries, and the same by PMPI, compared. */
#ifndef COLL_BINDINGS_MPI_TESTS_BESIDE_H
#define COLL_BINDINGS_MPI_TESTS_BESIDE_H

#include <mpi.h>

#include <stddef.h>

#define MAX_RANKS 8
#define BYTES ((size_t)60000 * 4 * MAX_RANKS + 4096)

/* A type, and how many elements of it have the signature of 2 elements of basic. */
struct kind {
    MPI_Datatype type, basic;
    int per;
};
#define N_KINDS 8

extern struct kind kinds[N_KINDS];
extern char *source,
    *result;              /* BYTES each; result: what the call is to write */
extern int rank, size;    /* in the communicator that is tried */
extern size_t n_compared; /* bytes of the result that MPI defines */

void beside_init(void);
/* Finalize MPI; the status to exit with. */
int beside_end(void);

/* Fill the source with noise, or with small numbers: Open MPI 4.1 has sums of 16-bit
 * integers that saturate, and MPICH 4.0 compares unsigned numbers as if they had signs. */
void fill_bytes(void);
void fill_integers(size_t bytes);
void fill_doubles(void);
void fill_floats(void);
/* Few values, as double (0), float (1) or int (2), with an index; noise in the gaps. */
void fill_pairs(int kind);
size_t type_size(MPI_Datatype type);
void complain(const char *what);
/* What complaints name beside the call. */
void name_try(const char *what, MPI_Datatype type, int count);

/* Have the result be as it is before each call; keep what libcoll wrote; compare. */
void beside_reset(void);
void beside_keep(void);
void beside_compare(const char *what);

/* Do the call by libcoll and by MPI.  It names `result` where it writes. */
#define TRY(what, ...) TRY_AS(what, (__VA_ARGS__), __VA_ARGS__)

/* The same where MPI is asked in another way; (f, arguments) in brackets. */
#define TRY_AS(what, other, ...)                                               \
    do {                                                                       \
        beside_reset();                                                        \
        if (MPI_##__VA_ARGS__)                                                 \
            complain(what);                                                    \
        beside_keep();                                                         \
        beside_reset();                                                        \
        if (BESIDE_MPI other)                                                  \
            complain("MPI: " what);                                            \
        beside_compare(what);                                                  \
    } while (0)
#define BESIDE_MPI(...) PMPI_##__VA_ARGS__

void try_sum(MPI_Comm comm);

#endif
